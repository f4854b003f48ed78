"""Small data, ways to spoil them, and the words that a refusal must have."""

import re
import warnings

import numpy as np
import pytest

import fastece

TRUE = np.array([0, 1, 1, 0, 1, 0, 1, 1])
PROB = np.array([0.25, 0.75, 0.5, 0.125, 1.0, 0.0, 0.625, 0.875])
CLASS_TRUE = np.array([0, 1, 2, 0, 1, 2, 2, 1])
ROWS = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]] * 2)
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.25, 1.0])


def put(array, *changes):
    """A copy of the array with `(index, value)` changes, of a dtype that can hold them."""
    copy = np.array(array, dtype=np.result_type(array, *(np.asarray(v) for _, v in changes)))
    for index, value in changes:
        copy[index] = value
    return copy


def ece(true=TRUE, prob=PROB, **options):
    return fastece.ece(true, prob, **options)


def classes(true=CLASS_TRUE, prob=ROWS, **options):
    return fastece.ece(true, prob, **options)


def message_of(call):
    """The message of the error that a call raises; it must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError)) as error:
            call()
    return str(error.value)


def assert_refused(call, patterns):
    """An error whose message matches all patterns: argument, rule, first offending index and its
    value. Most calls have a second offender, which must not be the one named."""
    message = message_of(call)
    assert not [pattern for pattern in patterns if not re.search(pattern, message)], message
