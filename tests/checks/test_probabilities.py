"""Which probabilities and logits are warned of."""

import re
import warnings

import numpy as np
import pytest

import fastece
from helpers.bad_input import CLASS_TRUE, PROB, ROWS, TRUE, put


@pytest.mark.parametrize("setting", ["confidence", "classwise", 1])
@pytest.mark.parametrize("function", ["ece", "mce", "reliability_diagram"])
def test_rows_that_do_not_sum_to_one_warn_once_and_name_the_first(function, setting):
    rows = put(ROWS, ((5, 1), 0.5), ((6, 1), 0.125), ((7, 0), 0.5))
    with pytest.warns(UserWarning, match="y_prob") as caught:
        getattr(fastece, function)(CLASS_TRUE, rows, setting=setting)
    assert len(caught) == 1
    assert re.search(r"\b5\b", str(caught[0].message)), str(caught[0].message)
    assert caught[0].filename == __file__  # points at the caller's line


def test_the_tolerance_of_row_sums_is_a_thousandth():
    above, below = put(ROWS, ((5, 0), 0.1265)), put(ROWS, ((5, 0), 0.1255))
    with pytest.warns(UserWarning, match=r"\b5\b"):
        fastece.ece(CLASS_TRUE, above)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fastece.ece(CLASS_TRUE, below) >= 0
        assert fastece.ece(CLASS_TRUE, 3 * ROWS, from_logits=True) >= 0


@pytest.mark.parametrize(("dtype", "n_classes"), [("f2", 60_000), ("f4", 3)])
def test_the_rounding_of_short_floats_is_no_fault_of_a_row(dtype, n_classes):
    even = np.full((2, n_classes), 1 / n_classes).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fastece.ece([0, 1], even) >= 0
        assert fastece.ece([0, 1], even, setting=1) >= 0
    off = even.copy()
    off[1, :10] += np.array(0.01, dtype)
    with pytest.warns(UserWarning, match=r"1 of 2 rows .* the first is y_prob\[1\]"):
        fastece.ece([0, 1], off)


@pytest.mark.parametrize(("true", "prob"), [(TRUE, PROB), (CLASS_TRUE, ROWS)])
def test_probabilities_that_pass_as_logits_are_warned_of(true, prob):
    twice, many = np.concatenate([true, true]), np.concatenate([prob, prob])
    with pytest.warns(UserWarning, match="probabilities, but from_logits=True") as caught:
        fastece.ece(twice, many, from_logits=True)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for logits in (1.01 * many, -many, np.full(many.shape, 0.5)):
            fastece.ece(twice, logits, from_logits=True)
        fastece.ece(true, prob, from_logits=True)  # so few may be by chance


def test_two_models_must_have_the_same_classes_before_labels_are_read():
    with pytest.raises(ValueError, match="y_prob_b: must have the classes of y_prob_a, 3, got 2"):
        fastece.compare(CLASS_TRUE, ROWS, ROWS[:, :2] * 2)
