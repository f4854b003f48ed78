"""The shortcut of plain arrays: the bits, the errors and the warnings of the ordinary road.

`ece` with any option, even of its default value, takes the ordinary road.
"""

import numpy as np
import pytest

import fastece
from fastece import Binned
from fastece.estimators.plain import plain_value
from helpers.kernel_forms import PLAIN
from helpers.layouts import frozen, strided
from helpers.outcomes import outcome_of

BINS = {
    "ece": "ece",
    "ece_a": "ece_a",
    "ece_c": "ece_c",
    "ece_ac": "ece_ac",
    "one bin": Binned(n_bins=1),
    "many bins": Binned(n_bins=5000),
    "closed at the left": Binned(n_bins=40, closed="left"),
    "given edges": Binned(edges=[0, 0.1, 0.5, 0.5, 0.9, 1]),
    "given edges, convex": Binned(edges=[0, 0.1, 0.5, 0.5, 0.9, 1], mapping="convex"),
    "a range": Binned(score_range=(0.2, 0.8)),
    "norm 2": Binned(norm=2),
    "equal weights": Binned(bin_weights="equal"),
    "threshold": Binned(threshold=0.3),
    "support": Binned(score_range="support"),
    "square root": Binned(n_bins="sqrt", edges="quantile"),
    "Brier score": "brier_score",
    "log loss": "log_loss",
    "clipped log loss": fastece.LogLoss(clip=1e-3),
}
SIZES = [1, 2, 8, 100, 513] if PLAIN else [1, 2, 8, 100, 513, 70_001, 2**19 + 5]


def rows(n, n_classes=None):
    """Labels that follow from the probabilities, many of which are tied."""
    rng = np.random.default_rng(n)
    if n_classes is None:
        p = np.where(rng.random(n) < 0.5, rng.random(n), rng.integers(0, 11, n) / 10)
        return (rng.random(n) < p).astype(np.int64), p
    p = rng.dirichlet(np.full(n_classes, 0.3), n)
    return (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, n_classes - 1), p


@pytest.mark.parametrize("name", BINS)
def test_plain_arrays_have_the_bits_of_the_ordinary_road(name):
    number = [*BINS].index(name)
    for n in SIZES[number % 2 :: 2]:
        check_plain_arrays(BINS[name], n)


def check_plain_arrays(estimator, n):
    y, p = rows(n)
    for label, prob in ((y, p), (y.astype(np.uint8), p), (y > 0, p), (y, p.astype(np.float32))):
        value = fastece.ece(label, prob, estimator=estimator)
        assert value == fastece.ece(label, prob, estimator=estimator, percent=False)
        assert type(value) is float


@pytest.mark.parametrize(("n_classes", "n"), [(2, 1), (3, 513), (10, 8), (150, 100)])
def test_plain_matrices_have_the_bits_of_the_ordinary_road(n_classes, n):
    y, p = rows(n, n_classes)
    for prob in (p, p.astype(np.float32)):
        for name in ("ece", "closed at the left", "given edges", "ece_a"):
            value = fastece.ece(y, prob, estimator=BINS[name])
            assert value == fastece.ece(y, prob, estimator=BINS[name], percent=False)


@pytest.mark.parametrize("name", ["ece", "ece_a", "ece_c", "brier_score"])
@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("n", [100, 3000])
def test_swapped_columns_are_warned_of(name, n_classes, n):
    y, _ = rows(n, n_classes)
    p = np.where(y == 1, 0.9, 0.2) if n_classes is None else 0.7 * np.eye(n_classes)[y] + 0.1
    swapped = 1 - p if n_classes is None else np.roll(p, 1, axis=1)
    for prob, n_warnings in ((p, 0), (swapped, 1)):
        outcome, caught = outcome_of(lambda p=prob: fastece.ece(y, p, estimator=name))
        assert len(caught) == n_warnings
        assert (outcome, caught) == outcome_of(
            lambda p=prob: fastece.ece(y, p, estimator=name, percent=False)
        )


@pytest.mark.parametrize("name", ["ece", "ece_a", "ece_c", "brier_score", "log_loss"])
@pytest.mark.parametrize("n_classes", [None, 3])
def test_bad_rows_are_refused_in_the_words_of_the_ordinary_road(name, n_classes):
    y, p = rows(9, n_classes)
    for bad_score in (np.nan, np.inf, -0.1, 1.5):
        for bad_label in (None, -1, 3, 2**62):
            label = y.copy()
            prob = p.copy()
            prob[(-1,) * prob.ndim] = bad_score
            if bad_label is not None:
                label[4] = bad_label
            outcome = outcome_of(lambda y=label, p=prob: fastece.ece(y, p, estimator=name))
            assert isinstance(outcome[0], tuple)
            assert outcome == outcome_of(
                lambda y=label, p=prob: fastece.ece(y, p, estimator=name, percent=False)
            )


class Doubled(Binned):
    """Bins with another formula."""

    def errors(self, bins):
        return 2 * super().errors(bins)


class RootScore(fastece.BrierScore):
    """A score with other numbers."""

    def of_terms(self, x):
        return np.sqrt(x)


def test_parameters_of_the_estimator_leave_the_shortcut_open():
    y, p = rows(300)
    for fields in ({"n_bins": 7}, {"closed": "left"}, {"norm": 2}):
        value = fastece.ece(y, p, **fields)
        assert value == fastece.ece(y, p, **fields, percent=False)
        assert value == fastece.ece(y, p, estimator=Binned(**fields))


def test_other_arrays_and_estimators_take_the_ordinary_road():
    y, p = rows(50)
    assert plain_value(y, p, Binned()) == fastece.ece(y, p)
    assert plain_value(y, p, fastece.BrierScore()) == fastece.brier_score(y, p)
    shifted = np.frombuffer(b" " + p.tobytes(), np.uint8)[1:].view(p.dtype)
    for label, prob in (
        (y.tolist(), p), (y, p.tolist()), (y, frozen(p)), (frozen(y), p), (y, strided(p)),
        (y, p.astype(">f8")), (y.astype("i4"), p), (y.astype(float), p),
        (y, shifted), (y[:0], p[:0]), (y, p[:9]), (y[0], p[0]), (y[:, None], p[:, None]),
        (y, p[:, None]), (y, np.ma.masked_array(p)), (None, None), (y, None),
    ):  # fmt: skip
        for estimator in (Binned(), fastece.BrierScore()):
            assert np.isnan(plain_value(label, prob, estimator))
    for estimator in (None, [], fastece.KDE(), fastece.Accuracy(), Doubled(), RootScore()):
        assert np.isnan(plain_value(y, p, estimator))
    doubled = fastece.ece(y, p, estimator=Doubled())
    assert doubled == pytest.approx(2 * fastece.ece(y, p), rel=1e-15)


def test_arrays_are_no_settings():
    y, p = rows(50)
    for function in (fastece.ece, fastece.sce):
        with pytest.raises((fastece.InputError, fastece.InputTypeError), match=r"^setting: "):
            function(y, p, setting=np.array([0, 1]))


def test_arrays_are_left_as_they_are():
    y, p = rows(100)
    kept = y.copy(), p.copy()
    for name in ("ece", "ece_a", "ece_c", "ece_ac", "brier_score", "log_loss"):
        fastece.ece(y, p, estimator=name)
        fastece.ece(y > 0, p, estimator=name)
    assert np.array_equal(y, kept[0])
    assert np.array_equal(p, kept[1])
