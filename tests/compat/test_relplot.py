"""`fastece.compat.relplot` gives the values of relplot."""

import numpy as np
import pytest

from fastece.compat import relplot as compat
from helpers.compat_cases import ONLY_QUICK, SEEDS, binary_case, library, near, quietly, tolerance
from oracles import reference_compat as reference


@pytest.fixture
def peer():
    return library("relplot.metrics")


def arguments(seed):
    """`(f, y, n_bins, kind)`: labels of several types."""
    rng, f, y, n_bins, kind = binary_case(seed)
    y = y.astype([np.int64, np.float64, bool, kind, np.uint8][rng.integers(0, 5)])
    return f, y, n_bins, kind


@ONLY_QUICK
def test_values_equal_the_reference(seeds):
    for seed in seeds:
        f, y, n_bins, kind = arguments(seed)
        got = compat.binnedECE(f, y, n_bins)
        assert isinstance(got, np.float64)
        want = reference.binned_ece(f.tolist(), y.tolist(), n_bins, kind)
        near(got, want, tolerance(kind, len(f)), seed)


@SEEDS
def test_values_equal_the_library(peer, seeds):
    for seed in seeds:
        f, y, n_bins, kind = arguments(seed)
        want = quietly(peer.binnedECE, f, y, n_bins)
        near(compat.binnedECE(f, y, n_bins), want, tolerance(kind, len(f)), seed)


def test_scores_of_one_have_a_bin_of_their_own(peer):
    """A quirk that stays; only rounding of the width can put 1 into the last bin."""
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


def test_scores_beyond_the_last_bin_have_a_value(peer):
    """For some numbers of bins the library has no place for 1 in float32."""
    f = np.array([1.0, 0.5], dtype=np.float32)
    y = np.array([0, 0])
    for n_bins in (93, 99, 123, 186, 198):
        with pytest.raises(IndexError):
            peer.binnedECE(f, y, n_bins)
        assert compat.binnedECE(f, y, n_bins) == pytest.approx(0.75)
