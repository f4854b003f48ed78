"""`fastece.compat.uncertainty_calibration` gives the values of uncertainty-calibration."""

import numpy as np
import pytest

from fastece.compat import uncertainty_calibration as compat
from helpers.compat_cases import (
    ONLY_QUICK,
    RANDOM_LABELS,
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

pytestmark = RANDOM_LABELS

MODES = ("marginal", "top-label")


@pytest.fixture
def peer():
    return library("calibration")


def ece_options(seed, rng, n_bins):
    """The options of `get_ece` and `get_ece_em`."""
    return {"debias": seed % 5 == 0, "num_bins": n_bins, "mode": str(rng.choice(MODES))}


def error_options(seed, rng, n_bins):  # noqa: ARG001
    """The options of `get_calibration_error`."""
    p = int(rng.choice([1, 2, 2, 3]))
    return {"p": p, "debias": p < 3 and seed % 2 == 0, "mode": str(rng.choice(MODES))}


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


@ONLY_QUICK
@SHAPES
@FUNCTIONS
def test_values_equal_the_reference(function, case, seeds):
    for seed in seeds:
        probs, labels, options, kind = arguments(case, function, seed)
        got = getattr(compat, function)(probs, labels, **options)
        assert isinstance(got, np.float64)
        precision = {} if function == "get_ece" else {"kind": kind}
        oracle = getattr(reference, function)
        want = oracle(probs.tolist(), labels.tolist(), **options, **precision)
        # Rounding decides the root of a difference that should be 0.
        is_root_of_rounding = options.get("p", 1) > 1 and want < 1e-6
        near(got, want, 1e-7 if is_root_of_rounding else 1e-12, seed)


def draws_at_random(options):
    """Does the library draw normal numbers: with debias and an exponent that is not 2?"""
    return options["debias"] and options.get("p", 1) != 2


@SEEDS
@SHAPES
@FUNCTIONS
def test_values_equal_the_library(peer, function, case, seeds):
    """Where the library does not draw at random."""

    def compare(seed):
        probs, labels, options, kind = arguments(case, function, seed)
        if draws_at_random(options):
            return False
        want = quietly(getattr(peer, function), probs, labels, **options)
        got = getattr(compat, function)(probs, labels, **options)
        # Roots of small sums are compared before the root is taken.
        p = options.get("p", 1)
        near(got**p, want**p, tolerance(kind, len(labels)), seed)
        return True

    until(seeds, compare)


def test_discrete_scores_have_a_bin_each():
    """Fewer distinct scores than a quarter of the rows in every column, else 15 equal masses."""
    p = np.repeat([0.2, 0.7], 5)
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0])
    got = compat.get_calibration_error(p, y, p=1, debias=False)
    assert got == pytest.approx(0.05)
    # 2 is not below 8 / 4, so there are equal masses, with equal edges.
    shorter = np.repeat([0.2, 0.7], 4)
    got = compat.get_calibration_error(shorter, y[:8], p=1, debias=False)
    want = reference.get_calibration_error(
        shorter.tolist(), y[:8].tolist(), 1, False, "marginal", np.float64
    )
    assert got == pytest.approx(want, abs=1e-14)


def test_debias_of_the_first_power_is_the_expectation(peer):
    """The library takes the mean of 1000 draws, another number each time; ours is exact."""
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
    """The library refuses a bin of one row or none; ours adds nothing for it."""
    p = np.array([0.2, 0.6, 0.9])
    y = np.array([0, 1, 1])
    for function in ("get_ece", "get_ece_em"):
        with pytest.raises(ValueError, match="at least 2 points"):
            getattr(peer, function)(p, y, debias=True)
        got = getattr(compat, function)(p, y, debias=True)
        assert got == pytest.approx((0.2 + 0.4 + 0.1) / 3)
