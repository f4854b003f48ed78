"""Arguments that are refused, and the name in the message."""

from math import nan

import numpy as np
import pytest

import fastece
from helpers.resample_cases import (
    binary,
    two_models,
)

BAD = [
    *[("n_resamples", value) for value in (0, -1, 1.5, True, "many", None)],
    *[("size", value) for value in (0, -3, 2.5, True, "n")],
    *[("confidence_level", value) for value in (0, 1, 1.5, -0.1, nan, "high", None, True)],
    *[("method", value) for value in ("studentized", None, 3)],
    *[("rng", value) for value in ("seed", 1.5, -1, True)],
    *[("executor", value) for value in (object(), 3, "threads")],
    *[("n_jobs", value) for value in (0, 1.5)],
    *[("estimator", value) for value in ([], (), "nothing", ["ece", "nothing"], [3])],
    *[("average", value) for value in ("micro", 1)],
    ("setting", "nothing"),
]


def test_unknown_method_lists_the_known_methods():
    result = fastece.bootstrap(*binary(20), n_resamples=10, rng=0)
    for call in (
        lambda: fastece.bootstrap(*binary(20), n_resamples=10, method="BC"),
        lambda: result.interval(method="BC"),
    ):
        with pytest.raises(ValueError, match=r"basic.*percentile.*bca"):
            call()
    for level in (0, 1, nan, "high"):
        with pytest.raises((ValueError, TypeError), match="confidence_level"):
            result.interval(level)


def test_bad_data_are_refused_by_argument_name():
    true, a, b = two_models(10)
    bad = np.where(np.arange(10) == 3, 1.5, a)
    options = {"n_resamples": 5}
    with pytest.raises(ValueError, match=r"y_prob\[3\]"):
        fastece.bootstrap(true, bad, **options)
    with pytest.raises(ValueError, match=r"y_prob\[3\]"):
        fastece.calibration_test(true, bad, **options)
    with pytest.raises(ValueError, match=r"y_prob_a\[3\]"):
        fastece.compare(true, bad, b, **options)
    with pytest.raises(ValueError, match=r"y_prob_b\[3\]"):
        fastece.compare(true, a, bad, **options)
    with pytest.raises(ValueError, match="y_prob_b"):
        fastece.compare(true, a, b[:9], **options)
    with pytest.raises(ValueError, match=r"y_true\[0\]"):
        fastece.bootstrap([5, *true[1:]], a, **options)
    with pytest.raises(TypeError, match="n_bin"):
        fastece.bootstrap(true, a, n_bin=3, **options)


ANSWERS = ("estimate", "compare", "calibration_test", "direction", "slices")


@pytest.mark.parametrize("name", ANSWERS)
def test_unknown_options_are_refused_by_name(name):
    models = two_models(10)[: 3 if name == "compare" else 2]
    with pytest.raises(TypeError, match=rf"^no_such: .*Binned.*{name}"):
        getattr(fastece, name)(*models, estimator="ece", no_such=3)


@pytest.mark.parametrize("name", ["calibration_test", "estimate", "direction", "slices"])
@pytest.mark.parametrize("option", ["size", "method"])
def test_options_of_other_functions_are_refused(name, option):
    with pytest.raises(TypeError, match=f"^{option}: .*{name}"):
        getattr(fastece, name)(*binary(10), estimator="ece", **{option: 3})


def test_bad_arguments_of_resampling_are_refused_by_name():
    for name, value in BAD:
        check_bad_argument(name, value)


def check_bad_argument(name, value):
    true, a, b = two_models(10)
    options = {"n_resamples": 5, name: value}
    with pytest.raises((ValueError, TypeError), match=name):
        fastece.bootstrap(true, a, **options)
    if value is not None:  # its method
        with pytest.raises((ValueError, TypeError), match=name):
            fastece.compare(true, a, b, **options)
    if name not in {"size", "method"} and not isinstance(value, list | tuple):
        with pytest.raises((ValueError, TypeError), match=name):
            fastece.calibration_test(true, a, **options)
