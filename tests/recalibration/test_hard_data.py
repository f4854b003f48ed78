"""Data on which fits have no optimum or no rows: a warning or one sentence.

Never nan, never outside [0, 1].
"""

import re

import numpy as np
import pytest
from scipy.special import softmax

from fastece.recalibration import recalibrate
from helpers.recalibration_cases import (
    METHODS,
    OPTIMA,
    PENALISED,
    PROBLEMS,
    VARIANTS,
    assert_probabilities,
    make,
    outcome,
)

RNG = np.random.default_rng(12)
LABELS = np.tile([0, 1], 20)
LABELS3 = np.tile([0, 1, 2], 14)[:40]
LINE = np.linspace(0.02, 0.98, 40)
SURE = softmax(4 * np.eye(3)[LABELS3] + 0.3 * RNG.standard_normal((40, 3)), axis=1)
# Name -> (X, y, from_logits).
HARD = {
    "separable": (LINE, (LINE > 0.5).astype(int), False),
    "separable the other way": (LINE, (LINE < 0.5).astype(int), False),
    "separable columns": (np.column_stack([1 - LINE, LINE]), (LINE > 0.5).astype(int), False),
    "separable classes": (SURE, LABELS3, False),
    "separable but for a tie": (np.r_[LINE, 0.5, 0.5], np.r_[LINE > 0.5, False, True], False),
    "never right": (SURE, (LABELS3 + 1) % 3, False),
    "constant": (np.full(40, 0.3), LABELS, False),
    "constant 0": (np.zeros(40), LABELS, False),
    "constant 1": (np.ones(40), LABELS, False),
    "constant classes": (np.tile([0.2, 0.3, 0.5], (40, 1)), LABELS3, False),
    "constant corner": (np.tile([0.0, 0.0, 1.0], (40, 1)), LABELS3, False),
    "one class absent": (softmax(RNG.standard_normal((40, 4)), axis=1), LABELS3, False),
    "one class alone": (softmax(RNG.standard_normal((40, 3)), axis=1), np.ones(40, int), False),
    "zeros and ones": (RNG.integers(0, 2, 40).astype(float), LABELS, False),
    "certain and right": (LABELS.astype(float), LABELS, False),
    "certain and wrong": (1.0 - LABELS, LABELS, False),
    "certain classes, right": (np.eye(3)[LABELS3], LABELS3, False),
    "a column of zeros": (np.column_stack([LINE, 1 - LINE, 0 * LINE]), LABELS3, False),
    "logits of 1e4": (1e4 * (2.0 * RNG.integers(0, 2, 40) - 1), LABELS, True),
    "class logits of 1e4, right": (1e4 * (2 * np.eye(3)[LABELS3] - 1), LABELS3, True),
    "one logit of 1e4": (np.r_[1e4, 2 * RNG.standard_normal(39)], LABELS, True),
    "logits of 1e300": (1e300 * RNG.standard_normal((40, 3)), LABELS3, True),
    "log odds of 1e-300": (1e-300 * RNG.standard_normal(40), LABELS, True),
    "log odds of 400": (400 + RNG.standard_normal(40), LABELS, True),
    "logits of 1e-300": (1e-300 * RNG.standard_normal((40, 3)), LABELS3, True),
    "offset of 1e6": (1e6 + RNG.standard_normal((40, 3)), LABELS3, True),
    "two rows": (np.array([0.3, 0.6]), np.array([0, 1]), False),
    "two rows, alike": (np.array([0.3, 0.3]), np.array([0, 1]), False),
    "two rows of classes": (np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]), np.array([0, 1]), False),
    "one row": (np.array([[0.7, 0.2, 0.1]]), np.array([0]), False),
    "tiny scores": (LINE * 1e-300, LABELS, False),
    "subnormal scores": (np.r_[np.full(20, 5e-324), LINE[:20]], LABELS, False),
}
SEPARABLE = [
    "separable", "separable columns", "separable classes", "certain and right", "two rows",
    "certain classes, right", "class logits of 1e4, right",
]  # fmt: skip
# Rows to transform, by the number of their columns.
NEW_ROWS = {
    1: np.array([0.0, 1e-300, 0.1, 0.3, 0.5, 0.99, 1.0]),
    2: np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1e-300, 1.0]]),
    3: np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.2, 0.3, 0.5], [1 / 3] * 3, [1.0, 0.0, 0.0]]),
    4: np.array([[0.0, 1.0, 0.0, 0.0], [0.25] * 4, [0.1, 0.2, 0.3, 0.4]]),
}
LOGITS = np.array([-1e4, -1.0, 0.0, 30.0, 1e4])
NEW_LOGITS = {1: LOGITS, 3: np.array(np.meshgrid(LOGITS, LOGITS, LOGITS)).reshape(3, -1).T}
# Cases that a method may refuse.
MAY_BE_REFUSED = re.compile("one class alone|one row|logits of 1e300|constant|two rows|absent")


def new_rows(x, from_logits):
    n_columns = 1 if x.ndim == 1 else x.shape[1]
    return NEW_LOGITS[n_columns] if from_logits else NEW_ROWS[n_columns]


@pytest.mark.slow
@pytest.mark.parametrize("case", HARD)
def test_hard_data_are_fitted_or_refused_by_every_method_with_every_option(case):
    x, y, from_logits = HARD[case]
    for variant in VARIANTS:
        model, messages = outcome(
            lambda variant=variant: make(variant, from_logits=from_logits).fit(x, y)
        )
        if model is None:
            assert MAY_BE_REFUSED.search(case), (variant, messages)
            continue
        for rows in (x, new_rows(x, from_logits)):
            answer, messages = outcome(lambda rows=rows, model=model: model.transform(rows))
            assert not messages, variant
            assert_probabilities(answer, rows)


@pytest.mark.parametrize("case", SEPARABLE)
def test_separable_data_are_a_warning(case):
    """Without a bound the optimum would be infinite, for any loss."""
    x, y, from_logits = HARD[case]
    for name in OPTIMA:
        map_of = METHODS[name](from_logits=from_logits).fit
        model, messages = outcome(lambda map_of=map_of: map_of(x, y))
        assert len(messages) == 1, name
        if model is not None and name not in ("scaling_binning", *PENALISED):
            q = model.transform(x)
            right = q[np.arange(len(y)), y] if q.ndim == 2 else np.where(y == 1, q, 1 - q)
            assert right.mean() > 0.95, name


@pytest.mark.parametrize("case", ["separable the other way", "never right", "certain and wrong"])
def test_scores_that_are_wrong_have_no_temperature(case):
    """The smallest loss is at an infinite temperature: a warning, and uniform probabilities."""
    x, y, _ = HARD[case]
    model, messages = outcome(lambda: METHODS["temperature"]().fit(x, y))
    # Another warning is about labels of probability 0.
    assert len(messages) == (2 if case == "certain and wrong" else 1)
    if model is not None:
        uniform = 0.5 if x.ndim == 1 else 1 / x.shape[1]
        np.testing.assert_allclose(model.transform(x), uniform, rtol=0, atol=1e-3)


SHARE_MAPS = ["vector", "matrix", "platt", "beta", "isotonic", "histogram", "scaling_binning"]


@pytest.mark.parametrize("name", SHARE_MAPS)
def test_a_constant_score_becomes_the_share_of_hits(name):
    y = (np.arange(50) % 5 == 0).astype(int)
    for value in (0.3, 0.5, 1e-9):
        x = np.full(50, value)
        model, _ = outcome(lambda x=x: METHODS[name]().fit(x, y))
        if model is not None:
            np.testing.assert_allclose(model.transform(x[:3]), 0.2, rtol=0, atol=1e-6)
            weight = np.where(y == 1, 3.0, 0.7)
            weighted, _ = outcome(lambda x=x, weight=weight: METHODS[name]().fit(x, y, weight))
            share = weight @ y / weight.sum()
            np.testing.assert_allclose(weighted.transform(x[:3]), share, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("label", "problem"), [(0, "one column"), (1, "two columns")])
@pytest.mark.parametrize("name", METHODS)
def test_one_class_alone_of_two_is_refused(name, label, problem):
    data = PROBLEMS[problem]()
    model, messages = outcome(lambda: METHODS[name]().fit(data.X, np.full(len(data.y), label)))
    assert model is None
    assert "class" in messages[0]
    assert f"{label}" in messages[0]
    # Also where the other class has no weight.
    model, _ = outcome(lambda: METHODS[name]().fit(data.X, data.y, (data.y == label).astype(float)))
    assert model is None


@pytest.mark.parametrize("name", METHODS)
def test_a_class_that_is_never_the_label_is_named_in_a_warning(name):
    data = PROBLEMS["three classes"]()
    y = np.where(data.y == 1, 2, data.y)
    with pytest.warns(UserWarning, match=r"^y\b.*\b1\b") as caught:
        model = METHODS[name]().fit(data.X, y)
    assert len(caught) == 1
    q = model.transform(data.new)
    assert_probabilities(q, data.new)
    # Others cannot leave a class out, or need not.
    if name not in ("none", "temperature", "ets", "svs", "curve"):
        even = (q == q[:, :1]).all(axis=1)  # all maps gave 0
        assert q[~even, 1].max() < 0.05


@pytest.mark.filterwarnings("ignore:.*some labels have probability 0")
@pytest.mark.parametrize("name", METHODS)
def test_rows_a_little_off_are_clipped_or_a_warning(name):
    """As everywhere: a probability may be 1e-6 outside [0, 1]; sums off by 1e-3 are a warning."""
    data = PROBLEMS["one column"]()
    model = METHODS[name]().fit(np.r_[-5e-7, 1 + 5e-7, data.X[2:]], data.y)
    assert_probabilities(model.transform(np.array([-5e-7, 1 + 5e-7])), [0, 0])
    rows = PROBLEMS["three classes"]()
    with pytest.warns(UserWarning, match="sum"):
        METHODS[name]().fit(rows.X * 0.9, rows.y)


@pytest.mark.parametrize("name", METHODS)
def test_a_fold_without_a_class_is_fitted_or_refused(name):
    """A class of one row is missing in the fit that answers this row."""
    data = PROBLEMS["three classes"](n=60)
    y = np.where(data.y == 2, 1, data.y)
    y[5] = 2
    answer, messages = outcome(lambda: recalibrate(y, data.X, method=name, cv=2))
    assert messages
    if answer is not None:
        assert_probabilities(answer, data.X)
    x = PROBLEMS["one column"](n=60).X
    answer, messages = outcome(
        lambda: recalibrate((np.arange(60) == 5).astype(int), x, method=name)
    )
    assert answer is None
    assert messages


@pytest.mark.parametrize("name", METHODS)
def test_minus_infinite_logits_are_probabilities_of_0(name):
    """As in all of the package; plus infinity is refused."""
    data = PROBLEMS["three classes"]()
    z = data.logits.copy()
    z[np.arange(0, len(z), 9), (data.y[::9] + 1) % 3] = -np.inf
    model, messages = outcome(lambda: METHODS[name](from_logits=True).fit(z, data.y))
    if model is None:
        assert "inf" in messages[0]
    else:
        assert_probabilities(model.transform(z), z)


@pytest.mark.parametrize("name", ["vector", "matrix", "platt"])
def test_logits_far_from_0_have_the_map_of_those_near(name):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((500, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    if name == "platt":
        z = z[:, 0] - z[:, 1]
        y = y == 0
    near, far = (METHODS[name](from_logits=True).fit(x, y).transform(x) for x in (z, z + 1e5))
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-6)  # and nothing is warned of
