"""Which probabilities and logits are refused, clipped or warned of."""

import re
import warnings
from math import inf, nan

import numpy as np
import pytest

import fastece
from helpers.bad_input import (
    CLASS_TRUE,
    PROB,
    ROWS,
    TRUE,
    WEIGHT,
    assert_refused,
    classes,
    ece,
    put,
)

REFUSED = {
    "y_prob nan": (lambda: ece(prob=put(PROB, (3, nan), (6, nan))), ["y_prob", r"\b3\b", "nan"]),
    "y_prob inf": (lambda: ece(prob=put(PROB, (2, inf), (5, nan))), ["y_prob", r"\b2\b", "inf"]),
    "y_prob -inf": (lambda: ece(prob=put(PROB, (2, -inf))), ["y_prob", r"\b2\b", "-inf"]),
    "y_prob nan first": (lambda: ece(prob=put(PROB, (0, nan))), ["y_prob", r"\b0\b", "nan"]),
    "y_prob nan last": (lambda: ece(prob=put(PROB, (7, nan))), ["y_prob", r"\b7\b", "nan"]),
    "y_prob float32 nan": (
        lambda: ece(prob=put(PROB, (3, nan)).astype(np.float32)),
        ["y_prob", r"\b3\b", "nan"],
    ),
    "y_prob float16 nan": (
        lambda: ece(prob=put(PROB, (3, nan)).astype(np.float16)),
        ["y_prob", r"\b3\b", "nan"],
    ),
    "row nan": (
        lambda: classes(prob=put(ROWS, ((4, 1), nan), ((6, 0), nan))),
        ["y_prob", r"\b4\b", r"\b1\b", "nan"],
    ),
    "row nan of weight 0": (
        lambda: classes(prob=put(ROWS, ((4, 1), nan)), sample_weight=put(WEIGHT, (4, 0.0))),
        ["y_prob", r"\b4\b", "nan"],
    ),
    "logit beyond float64": (
        lambda: ece(prob=put(PROB.astype("g"), (3, np.longdouble("1e4000"))), from_logits=True),
        ["y_prob", r"\b3\b", r"inf|1e\+4000"],
    ),
    "logit nan": (
        lambda: ece(prob=put(PROB, (3, nan)), from_logits=True),
        ["y_prob", r"\b3\b", "nan"],
    ),
    "logit inf": (
        lambda: ece(prob=put(PROB, (3, inf)), from_logits=True),
        ["y_prob", r"\b3\b", "inf"],
    ),
    "logit row inf": (
        lambda: classes(prob=put(ROWS, ((2, 1), inf)), from_logits=True),
        ["y_prob", r"\b2\b", "inf"],
    ),
    "logit row all -inf": (
        lambda: classes(prob=put(ROWS, (5, -inf)), from_logits=True),
        ["y_prob", r"\b5\b", "-inf"],
    ),
    "above 1": (
        lambda: ece(prob=put(PROB, (3, 1.5), (6, 2.5))),
        ["y_prob", r"\b3\b", r"1\.5", r"\[0, 1\]"],
    ),
    "below 0": (lambda: ece(prob=put(PROB, (3, -0.25), (6, 7))), ["y_prob", r"\b3\b", r"-0\.25"]),
    "just above 1": (lambda: ece(prob=put(PROB, (3, 1.00001))), ["y_prob", r"\b3\b", r"1\.0000"]),
    "just below 0": (
        lambda: ece(prob=put(PROB, (3, -2e-6))),
        ["y_prob", r"\b3\b", r"-2(\.\d+)?e-0?6"],
    ),
    "percent": (lambda: ece(prob=100 * PROB), ["y_prob", r"\b0\b", r"25"]),
    "integer probability": (lambda: ece(prob=np.arange(8)), ["y_prob", r"\b2\b"]),
    "row above 1": (
        lambda: classes(prob=put(ROWS, ((3, 2), 1.5), ((5, 0), -1))),
        ["y_prob", r"\b3\b", r"\b2\b", r"1\.5"],
    ),
    "float32 above 1": (
        lambda: ece(prob=put(PROB, (3, 1.5)).astype(np.float32)),
        ["y_prob", r"\b3\b", r"1\.5"],
    ),
    "no columns": (lambda: classes(prob=np.empty((8, 0))), ["y_prob"]),
    "one column": (lambda: ece(prob=PROB[:, None]), ["y_prob", r"\(8, 1\)|one column|1 column"]),
    "three dimensions": (lambda: classes(prob=ROWS[None]), ["y_prob", r"\b3\b|dimension"]),
    "binary of three columns": (
        lambda: classes(setting="binary"),
        ["setting|y_prob", "binary", r"\b3\b"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told(name):
    assert_refused(*REFUSED[name])


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


@pytest.mark.parametrize(
    ("prob", "hint"),
    [
        (100 * PROB, r"percentages: divide by 100\?"),
        (100 * ROWS, r"percentages: divide by 100\?"),
        (np.round(100 * PROB), r"labels: y_true comes first, or percentages: divide by 100\?"),
        (np.arange(8), r"it looks like labels: y_true comes first$"),
        (9 * PROB - 4, "logits: from_logits=True"),
        (8 * ROWS - 4, "logits: from_logits=True"),
        (8 * ROWS, "logits: from_logits=True"),
        (1.5 * PROB, r"is 1\.125$"),
    ],
)
def test_numbers_that_are_no_probabilities_are_guessed_at(prob, hint):
    call = ece if prob.ndim == 1 else classes
    assert_refused(lambda: call(prob=prob), ["y_prob", hint])
    if "percentages" in hint:
        with pytest.raises(ValueError, match=r"^((?!from_logits).)*$"):
            call(prob=prob)


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
