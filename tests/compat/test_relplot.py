"""`fastece.compat.relplot` computes what relplot does."""

import numpy as np
import pytest

from helpers.compat_cases import FEW, SEEDS, binary_case, library, near, quietly, tolerance
from oracles import reference_compat as reference


@pytest.fixture
def compat():
    from fastece.compat import relplot

    return relplot


@pytest.fixture
def peer():
    return library("relplot.metrics")


def arguments(seed):
    """`(f, y, n_bins, sigma, kind)`: labels of several types."""
    rng, f, y, n_bins, kind = binary_case(seed)
    y = y.astype([np.int64, np.float64, bool, kind, np.uint8][rng.integers(0, 5)])
    return f, y, n_bins, float(rng.choice([0.01, 0.05, 0.1, 0.3, 1.0])), kind


def expected(function, f, y, n_bins, sigma, kind):
    """What the reference says."""
    f, y = f.tolist(), y.tolist()
    if function == "binnedECE":
        return reference.binned_ece(f, y, n_bins, kind)
    if function == "smECE_sigma":
        return reference.sm_ece_sigma(f, y, sigma, kind)
    return reference.sm_ece(f, y, 0.001, kind)


def value(module, function, f, y, n_bins, sigma):
    """The value of a module; `smECE` with its width."""
    if function == "binnedECE":
        return module.binnedECE(f, y, n_bins)
    if function == "smECE_sigma":
        return module.smECE_sigma(f, y, sigma)
    return module.smECE(f, y, 0.001, True)


def at_the_limit(f, y, width, kind):
    """Does the last digit of float32 decide whether a width, or the one below, is large enough?"""
    for at in (width, width - 1 / 1024):
        value = reference.sm_ece_sigma(f.tolist(), y.tolist(), at, kind) if at > 0.001 else 0.0
        if abs(value - at) < 1e-6:
            return True
    return False


def same(got, want, f, y, kind, seed):
    """Are two values the same, or two pairs of value and width?"""
    apart = np.shape(got) == (2,) and got[1] != want[1]
    if not (apart and kind is np.float32 and at_the_limit(f, y, max(got[1], want[1]), kind)):
        near(got, want, tolerance(kind, len(f)), seed)


def fewer(seeds, function):
    """The smooth error takes 30 ms a case: a quarter of the quick ones."""
    return seeds[::4] if function == "smECE" and len(seeds) < 100 else seeds


FUNCTIONS = pytest.mark.parametrize("function", ["binnedECE", "smECE_sigma", "smECE"])


@FEW
@FUNCTIONS
def test_value_is_the_reference(compat, function, seeds):
    for seed in fewer(seeds, function):
        f, y, n_bins, sigma, kind = arguments(seed)
        want = expected(function, f, y, n_bins, sigma, kind)
        got = value(compat, function, f, y, n_bins, sigma)
        assert isinstance(got[0] if function == "smECE" else got, np.float64)
        same(got, want, f, y, kind, seed)


@FEW
@FUNCTIONS
def test_reference_is_the_library(peer, function, seeds):
    for seed in fewer(seeds, function):
        f, y, n_bins, sigma, kind = arguments(seed)
        want = expected(function, f, y, n_bins, sigma, kind)
        same(quietly(value, peer, function, f, y, n_bins, sigma), want, f, y, kind, seed)


@SEEDS
@FUNCTIONS
def test_value_is_the_library(compat, peer, function, seeds):
    for seed in fewer(seeds, function):
        f, y, n_bins, sigma, kind = arguments(seed)
        want = quietly(value, peer, function, f, y, n_bins, sigma)
        same(value(compat, function, f, y, n_bins, sigma), want, f, y, kind, seed)


def test_options_of_the_smooth_error(compat):
    rng = np.random.default_rng(1)
    f = rng.random(400)
    y = (rng.random(400) < f).astype(int)
    pair = compat.smECE(f, y, return_width=True)
    assert isinstance(pair, tuple)
    assert compat.smECE(f, y) == pair[0]
    for eps in (0.001, 0.1, 0.3, 2.0):
        want = reference.sm_ece(f.tolist(), y.tolist(), eps, np.float64)
        assert compat.smECE(f, y, eps, return_width=True) == pytest.approx(want, abs=1e-12)
    assert compat.smECE_sigma(f, y) == compat.smECE_sigma(f, y, 0.05)
    assert compat.binnedECE(f, y) == compat.binnedECE(f, y, 10)


def test_small_errors_have_fine_grids(compat, peer):
    """A width of 0.001 needs a grid of 10001 places."""
    rng = np.random.default_rng(8)
    f = rng.integers(0, 2, 500) * 0.998 + 0.001
    y = (f > 0.5).astype(int)
    assert compat.smECE(f, y, return_width=True) == pytest.approx(
        peer.smECE(f, y, return_width=True), abs=1e-12
    )
    for sigma in (0.001, 0.0037, 0.00099):
        want = peer.smECE_sigma(f, y, sigma)
        assert compat.smECE_sigma(f, y, sigma) == pytest.approx(want, abs=1e-12)


@FUNCTIONS
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_row(compat, peer, function, kind):
    for score in (0.0, 0.3, 1.0):
        for y in (0, 1):
            data = np.array([score], dtype=kind), np.array([y])
            want = quietly(value, peer, function, *data, 10, 0.05)
            near(value(compat, function, *data, 10, 0.05), want, tolerance(kind, 1), score)


def test_lists(compat):
    f, y = [0.2, 0.6, 0.9], [0, 1, 1]
    for function in (compat.smECE, compat.smECE_sigma, compat.binnedECE):
        assert function(f, y) == function(np.array(f), np.array(y))


# -- where ours departs: what relplot does is asserted too, so that a change is noticed ------------


def test_one_beside_the_last_bin(compat, peer):
    """The quirk that stays: 1 is in a bin of its own, but for bins whose width says otherwise."""
    y = np.array([1, 0])
    for kind, n_bins, share in (
        (np.float64, 10, 0.525),
        (np.float32, 10, 0.525),
        (np.float32, 7, 0.475),  # 1 / (1 / 7) is 6.9999995 in float32
        (np.float64, 93, None),
    ):
        f = np.array([0.95 if n_bins < 93 else 0.999, 1.0], dtype=kind)
        got = compat.binnedECE(f, y, n_bins)
        assert got == pytest.approx(peer.binnedECE(f, y, n_bins), abs=1e-7)
        assert share is None or got == pytest.approx(share, abs=1e-6)


def test_place_beyond_the_array(compat, peer):
    """For some numbers of bins 1 in float32 has a place that does not exist there."""
    f, y = np.array([1.0, 0.5], dtype=np.float32), np.array([0, 0])
    for n_bins in (93, 99, 123, 186, 198):
        with pytest.raises(IndexError):
            peer.binnedECE(f, y, n_bins)
        assert compat.binnedECE(f, y, n_bins) == pytest.approx(0.75)


def test_no_rows_and_lengths(compat, peer):
    """0 or nan for no rows there, and one label is taken for all rows; ours are errors."""
    f, y = np.array([0.2, 0.6, 0.9]), np.array([0, 1, 1])
    assert quietly(peer.smECE, f[:0], y[:0]) == 0
    assert np.isnan(quietly(peer.binnedECE, f[:0], y[:0]))
    assert np.isfinite(peer.smECE(f, y[:1]))
    for function in (compat.smECE, compat.smECE_sigma, compat.binnedECE):
        for data in ((f[:0], y[:0]), (f, y[:1]), (f, y[:2]), (f[:, None], y)):
            with pytest.raises(ValueError, match=r"\bf\b|\by\b"):
                function(*data)


def test_nan_and_range(compat, peer):
    """A number, or an IndexError there; ours is an error that names the argument."""
    y = np.array([0, 1, 1])
    assert np.isfinite(quietly(peer.smECE, np.array([0.2, 1.3, 0.9]), y))
    with pytest.raises(IndexError):
        quietly(peer.binnedECE, np.array([0.2, 1.3, 0.9]), y)
    assert np.isfinite(quietly(peer.binnedECE, np.array([0.2, -0.3, 0.9]), y))
    for function in (compat.smECE, compat.smECE_sigma, compat.binnedECE):
        for odd in (np.nan, 1.3, -0.3):
            with pytest.raises(ValueError, match=r"\bf\b"):
                function(np.array([0.2, odd, 0.9]), y)
        with pytest.raises(ValueError, match=r"\by\b"):
            function(np.array([0.2, 0.3, 0.9]), [0, 1, 2])


def test_bad_options(compat):
    f, y = [0.2, 0.6], [0, 1]
    for n_bins in (0, 2.5):
        with pytest.raises((ValueError, TypeError), match="nbins"):
            compat.binnedECE(f, y, n_bins)
    for sigma in (0.0, -1.0, float("nan")):
        with pytest.raises((ValueError, TypeError), match="sigma"):
            compat.smECE_sigma(f, y, sigma)
