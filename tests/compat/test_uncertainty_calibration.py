"""`fastece.compat.uncertainty_calibration` computes what uncertainty-calibration does."""

import numpy as np
import pytest

from fastece.compat import uncertainty_calibration as compat
from helpers.compat_cases import (
    FEW,
    SEEDS,
    binary_case,
    class_case,
    library,
    near,
    quietly,
    tolerance,
    until,
)
from oracles import reference_compat as reference

MODES = ("marginal", "top-label")


@pytest.fixture
def peer():
    return library("calibration")


def ece_options(seed, rng, n_bins):
    """The arguments of `get_ece` and `get_ece_em` after the first two."""
    return seed % 5 == 0, n_bins, str(rng.choice(MODES))


def error_options(seed, rng, n_bins):  # noqa: ARG001
    """Those of `get_calibration_error`: p, debias, mode."""
    p = int(rng.choice([1, 2, 2, 3]))
    return p, p < 3 and seed % 2 == 0, str(rng.choice(MODES))


OPTIONS = {
    "get_ece": ece_options,
    "get_ece_em": ece_options,
    "get_calibration_error": error_options,
}
FUNCTIONS = pytest.mark.parametrize("function", OPTIONS)
SHAPES = pytest.mark.parametrize("case", [binary_case, class_case])


def arguments(case, function, seed):
    """`(probs, labels, options, kind)`."""
    rng, probs, labels, n_bins, kind = case(seed)
    return probs, labels, OPTIONS[function](seed, rng, n_bins), kind


def expected(function, probs, labels, options, kind):
    """What the reference says."""
    last = () if function == "get_ece" else (kind,)
    return getattr(reference, function)(probs.tolist(), labels.tolist(), *options, *last)


@FEW
@SHAPES
@FUNCTIONS
def test_value_is_the_reference(function, case, seeds):
    for seed in seeds:
        probs, labels, options, kind = arguments(case, function, seed)
        got = getattr(compat, function)(probs, labels, *options)
        assert isinstance(got, np.float64)
        want = expected(function, probs, labels, options, kind)
        # The root of a difference that is 0 but for its last digits.
        exact = not (function == "get_calibration_error" and options[0] > 1 and want < 1e-6)
        near(got, want, 1e-12 if exact else 1e-7, seed)


def draws_at_random(function, options):
    """Does the library draw normal numbers: with debias and an exponent that is not 2?"""
    if function == "get_calibration_error":
        return options[1] and options[0] != 2
    return options[0]


def compare_with_library(value, peer, function, case, seeds):
    """`value(case)` against the library, where that does not draw at random."""

    def compare(seed):
        probs, labels, options, kind = arguments(case, function, seed)
        if draws_at_random(function, options):
            return False
        want = quietly(getattr(peer, function), probs, labels, *options)
        got = value(probs, labels, options, kind)
        # Roots of small sums: compared before the root is taken.
        p = options[0] if function == "get_calibration_error" else 1
        near(got**p, want**p, tolerance(kind, len(labels)), seed)
        return True

    until(seeds, compare)


@SEEDS
@SHAPES
@FUNCTIONS
def test_value_is_the_library(peer, function, case, seeds):
    def value(probs, labels, options, kind):  # noqa: ARG001
        return getattr(compat, function)(probs, labels, *options)

    compare_with_library(value, peer, function, case, seeds)


def test_defaults():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(4), 90)
    y = rng.integers(0, 4, 90)
    rows, labels = p.tolist(), y.tolist()
    got = [compat.get_ece(p, y), compat.get_ece_em(p, y), compat.get_calibration_error(p, y)]
    want = [
        reference.get_ece(rows, labels, False, 15, "top-label"),
        reference.get_ece_em(rows, labels, False, 15, "top-label", np.float64),
        reference.get_calibration_error(rows, labels, 2, True, "marginal", np.float64),
    ]
    assert got == pytest.approx(want, abs=1e-12)
    assert [compat.get_ece(rows, labels), compat.get_ece_em(rows, labels)] == got[:2]


def test_discrete_scores_have_a_bin_each():
    """Fewer distinct scores than a quarter of the rows in every column, else 15 equal masses."""
    p = np.repeat([0.2, 0.7], 5)
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0])
    got = compat.get_calibration_error(p, y, p=1, debias=False)
    assert got == pytest.approx(0.05)
    few = np.repeat([0.2, 0.7], 4)  # 2 is not below 8 / 4: equal masses, whose edges are equal
    got = compat.get_calibration_error(few, y[:8], p=1, debias=False)
    want = reference.get_calibration_error(
        few.tolist(), y[:8].tolist(), 1, False, "marginal", np.float64
    )
    assert got == pytest.approx(want, abs=1e-14)


# -- where ours departs: what the library does is asserted too, so that a change is noticed --------


def test_debias_of_the_first_power_is_the_expectation(peer):
    """There the mean of 1000 draws, another number each time; ours is what it is the mean of."""
    rng = np.random.default_rng(6)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    np.random.seed(7)  # noqa: NPY002
    for function in ("get_ece", "get_ece_em"):
        draws = [getattr(peer, function)(p, y, debias=True, num_bins=5) for _ in range(30)]
        assert np.std(draws) > 1e-6
        got = getattr(compat, function)(p, y, debias=True, num_bins=5)
        assert got == getattr(compat, function)(p, y, debias=True, num_bins=5)
        assert abs(np.mean(draws) - got) < 5 * np.std(draws, ddof=1) / np.sqrt(30)
    draws = [peer.get_calibration_error(p, y, p=1) for _ in range(30)]
    got = compat.get_calibration_error(p, y, p=1)
    assert abs(np.mean(draws) - got) < 5 * np.std(draws, ddof=1) / np.sqrt(30)


def test_debias_with_small_bins(peer):
    """A bin of one row or none is an error there; ours adds nothing to it or for it."""
    p, y = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 1])
    for function in ("get_ece", "get_ece_em"):
        with pytest.raises(ValueError, match="at least 2 points"):
            getattr(peer, function)(p, y, debias=True)
        got = getattr(compat, function)(p, y, debias=True)
        assert got == pytest.approx((0.2 + 0.4 + 0.1) / 3)


def test_debias_of_a_higher_power(peer):
    p, y = np.full(40, 0.3), np.arange(40) % 2
    assert np.isfinite(peer.get_calibration_error(p, y, p=3, debias=True))
    with pytest.raises(ValueError, match=r"debias|p "):
        compat.get_calibration_error(p, y, p=3, debias=True)


def test_nan_and_range(peer):
    """nan, 0 or the nearest bin there; ours is an error."""
    y = np.array([0, 1, 1])
    assert np.isnan(quietly(peer.get_ece, np.array([0.2, np.nan, 0.9]), y))
    # By the order in which a set is gone through.
    value = quietly(peer.get_calibration_error, np.array([0.2, np.nan, 0.9]), y)
    assert value == 0 or np.isnan(value)
    assert quietly(peer.get_ece, np.array([0.2, 1.4, 0.9]), y) == pytest.approx(0.7 / 3)
    for x in ([0.2, np.nan, 0.9], [0.2, 1.4, 0.9], [0.2, -1.4, 0.9]):
        for function in OPTIONS:
            with pytest.raises(ValueError, match="probs"):
                getattr(compat, function)(np.array(x), y)


def test_types_of_labels(peer):
    """Labels of a type other than integers are an error there; whole numbers are labels here."""
    p, y = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 1])
    for labels in (y.astype(float), y.astype(bool)):
        with pytest.raises(ValueError, match="integer"):
            peer.get_ece(p, labels)
        assert compat.get_ece(p, labels) == compat.get_ece(p, y)


@FUNCTIONS
def test_bad_arguments(function):
    call = getattr(compat, function)
    rows = [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]
    for probs, labels, names in (
        ([], [], "probs|labels"),
        ([0.2, 0.4], [1], "probs|labels"),
        ([0.2, 0.4], [0, 2], "labels"),
        (rows, [0, 3], "labels"),
        (rows, [0, -1], "labels"),
        (rows, [0, 0.5], "labels"),
        ([rows], [0, 1], "probs"),
    ):
        with pytest.raises(ValueError, match=names):
            call(probs, labels)
    with pytest.raises(ValueError, match="mode"):
        call(rows, [0, 1], mode="odd")
    if function == "get_calibration_error":
        with pytest.raises(ValueError, match=r"\bp\b"):
            call(rows, [0, 1], p=0.5, debias=False)
        with pytest.raises(ValueError, match="debias"):
            call(rows, [0, 1], p=3, debias=True)
    else:
        for bins in (0, 2.5):
            with pytest.raises((ValueError, TypeError), match="num_bins"):
                call(rows, [0, 1], num_bins=bins)
