"""`fastece.compat.relplot`: the bins of relplot, and fastece's own smooth error by its name."""

import numpy as np
import pytest

import fastece
from fastece.compat import relplot as compat
from helpers.compat_cases import FEW, SEEDS, binary_case, library, near, quietly, tolerance
from oracles import reference_compat as reference


@pytest.fixture
def peer():
    return library("relplot.metrics")


def arguments(seed):
    """`(f, y, n_bins, kind)`: labels of several types."""
    rng, f, y, n_bins, kind = binary_case(seed)
    y = y.astype([np.int64, np.float64, bool, kind, np.uint8][rng.integers(0, 5)])
    return f, y, n_bins, kind


@FEW
def test_value_is_the_reference(seeds):
    for seed in seeds:
        f, y, n_bins, kind = arguments(seed)
        got = compat.binnedECE(f, y, n_bins)
        assert isinstance(got, np.float64)
        want = reference.binned_ece(f.tolist(), y.tolist(), n_bins, kind)
        near(got, want, tolerance(kind, len(f)), seed)


@SEEDS
def test_value_is_the_library(peer, seeds):
    for seed in seeds:
        f, y, n_bins, kind = arguments(seed)
        want = quietly(peer.binnedECE, f, y, n_bins)
        near(compat.binnedECE(f, y, n_bins), want, tolerance(kind, len(f)), seed)


@pytest.mark.slow
@FEW
def test_smooth_errors_are_those_of_smooth_ece(seeds):
    for seed in seeds:
        f, y, *_ = arguments(seed)
        own = fastece.ece(y, f, estimator="smooth_ece")
        value, width = compat.smECE(f, y, 0.0, return_width=True)
        assert own < 5e-6 or value == width == own
        assert isinstance(value, np.float64)
        at_least = fastece.ece(y, f, estimator="smooth_ece", scale=0.05)
        pair = (own, own) if own >= 0.05 else (at_least, 0.05)
        assert compat.smECE(f, y, 0.05, return_width=True) == pair
        assert compat.smECE(f, y, 0.05) == pair[0]
        assert compat.smECE_sigma(f, y, 0.05) == compat.smECE_sigma(f, y) == at_least


@pytest.mark.parametrize(("name", "apart"), [("uniform", 0.0012), ("sharp", 0.0045)])
def test_smooth_errors_are_as_near_as_the_page_says(peer, name, apart):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        f = rng.random(1000) if name == "uniform" else rng.beta(0.3, 0.3, 1000)
        y = (rng.random(1000) < 0.7 * f + 0.15).astype(int)
        assert compat.smECE(f, y) == pytest.approx(peer.smECE(f, y), abs=apart)
        for sigma in (0.01, 0.05, 0.1):
            want = peer.smECE_sigma(f, y, sigma)
            assert compat.smECE_sigma(f, y, sigma) == pytest.approx(want, abs=apart)


def test_one_beside_the_last_bin(peer):
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


def test_place_beyond_the_array(peer):
    """For some numbers of bins 1 in float32 has a place that does not exist there."""
    f, y = np.array([1.0, 0.5], dtype=np.float32), np.array([0, 0])
    for n_bins in (93, 99, 123, 186, 198):
        with pytest.raises(IndexError):
            peer.binnedECE(f, y, n_bins)
        assert compat.binnedECE(f, y, n_bins) == pytest.approx(0.75)
