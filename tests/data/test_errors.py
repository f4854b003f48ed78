"""Errors about input: their fields, their words for each reader, their way between processes."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import fastece
from fastece.data.errors import InputError, InputTypeError, InputWarning, rename_arguments, warn
from helpers.bad_input import PROB, ROWS, TRUE, put

ERROR = InputError(
    "y_prob", "must lie in [0, 1]", index=(1, 2), value=np.float64(1.5), rows=3,
    hint="logits: pass {from_logits}",
)  # fmt: skip


def test_fields_name_the_first_bad_entry():
    with pytest.raises(InputError) as caught:
        fastece.ece(TRUE, put(PROB, (3, 1.5), (5, 2.0)))
    error = caught.value
    assert (error.argument, error.index, error.value, error.rows) == ("y_prob", (3,), 1.5, 2)
    assert (error.place, error.hint) == (None, "")
    with pytest.raises(InputTypeError) as caught:
        fastece.ece(TRUE, PROB, n_bins=1.5)
    assert (caught.value.argument, caught.value.value) == ("n_bins", 1.5)
    with pytest.raises(InputError) as caught:
        fastece.ece(np.arange(8) % 3, put(ROWS, ((2, 1), np.nan)))
    assert caught.value.index == (2, 1)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_errors_come_from_other_processes_as_they_are(way):
    other = way(ERROR)
    assert type(other) is InputError
    assert str(other) == str(ERROR)
    assert {**vars(other)} == {**vars(ERROR)}


def test_every_reader_has_own_words():
    assert str(ERROR) == (
        "y_prob: must lie in [0, 1]; y_prob[1, 2] is 1.5; logits: pass from_logits=True"
    )
    error = copy.copy(ERROR)
    error.rename({"y_prob": "X", "from_logits": None})
    assert (error.argument, str(error)) == ("X", "X: must lie in [0, 1]; X[1, 2] is 1.5")
    error = copy.copy(ERROR)
    error.place = "a.csv: line 3, column p"
    error.rename({"from_logits": "--from-logits"})
    assert str(error) == (
        "a.csv: line 3, column p: must lie in [0, 1], got 1.5; logits: pass --from-logits; "
        "and 2 more rows"
    )


def test_what_is_in_braces_and_no_argument_stays():
    error = InputError("labels", "must be {y_true}, not {'a': 1}, {}", value="{b}")
    assert str(error) == "labels: must be y_true, not {'a': 1}, {}, got '{b}'"


def test_arguments_are_renamed_where_others_call_them_so():
    with (
        pytest.raises(InputError, match=r"^target: must be set$"),
        rename_arguments({"y": "target"}),
    ):
        raise InputError("y", "must be set")


def test_warnings_have_fields_and_point_outside():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("X", "is odd", hint="see {labels}")
    (one,) = caught
    assert one.category is InputWarning
    assert (one.message.argument, str(one.message)) == ("X", "X: is odd; see labels=")
    assert one.filename == __file__
