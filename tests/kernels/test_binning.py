"""Bins and shares of scores, against the definitions."""

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
import reference

from fastece.kernels import binning
from helpers.strategies import around

BINS = [1, 2, 3, 7, 10, 15, 49, 100, 1000]


RANGES = [(0.0, 1.0), (1 / 3, 1.0), (0.1, 0.7), (1 / 7, 1.0)]


def awkward_scores(edges):
    """Every edge with its neighbours, 0, 1, the smallest float, the same through float32."""
    scores = np.concatenate([around(edges), [0.0, 1.0, 5e-324], np.linspace(0, 1, 101)])
    return np.concatenate([scores, scores.astype(np.float32).astype(np.float64).clip(0, 1)])


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("limits", RANGES)
def test_uniform_bins_are_right_on_every_edge_and_both_its_neighbours(limits, right):
    low, high = limits
    for n_bins in BINS:
        edges = reference.uniform_edges(n_bins, *limits)
        s = awkward_scores(edges)
        find = bisect_left if right else bisect_right
        expected = [min(max(find(edges, x) - 1, 0), n_bins - 1) for x in s]
        cell = np.empty(s.size, np.int32)
        binning.uniform_bins(s, low, high, n_bins, right, cell)
        assert cell.tolist() == expected, n_bins


@pytest.mark.parametrize("right", [True, False])
def test_edges_of_any_number_of_bins_are_right_to_the_last_bit(right):
    rng = np.random.default_rng(8)
    counts = [*range(1, 200), 1000, 4096, 99_991, 2**24 - 1, 2**24, *rng.integers(1, 2**24, 50)]
    for count in map(int, counts):
        j = np.arange(count) if count < 1000 else rng.integers(0, count, 500)
        cell = np.empty(j.size, np.int32)
        binning.uniform_bins(j / count, 0.0, 1.0, count, right, cell)
        assert cell.tolist() == (np.maximum(j - right, 0)).tolist(), count
        binning.uniform_bins(np.nextafter(j / count, 2.0), 0.0, 1.0, count, right, cell)
        assert cell.tolist() == j.tolist(), count


@pytest.mark.parametrize("right", [True, False])
def test_knots_passed_are_counted_exactly(right):
    rng = np.random.default_rng(1)
    for n in (0, 2, 3, 14, binning.LINEAR_SEARCH, binning.LINEAR_SEARCH + 1, 64, 300):
        knots = np.sort(rng.choice(rng.random(n + 1), n))
        s = awkward_scores(knots)
        find = bisect_left if right else bisect_right
        expected = [find(knots.tolist(), x) for x in s]
        passed = np.empty(s.size, np.int32)
        binning.search_knots(s, knots, right, passed)
        assert passed.tolist() == expected, n


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("edges", [[0, 1], [0, 0.5, 1], [0, 0.2, 0.2, 0.2, 0.9, 1], [0.5] * 4])
def test_convex_shares_belong_to_the_two_nearest_centres(edges, even):
    if even:
        edges = reference.uniform_edges(len(edges), 0.1, 0.7)
    centres_and_bins = reference.centres(edges)
    bins = [b for _, b in centres_and_bins]
    centres = np.array([c for c, _ in centres_and_bins])
    s = awkward_scores(centres.tolist() + edges)
    lower = np.empty(s.size, np.int32)
    left = np.empty(s.size)
    share = np.empty(s.size)
    is_even = even and centres.size > 1
    grid = binning.Grid(0.0, 1.0, 1, is_even, knots=centres, right=False, convex=True)
    binning.place(s, grid, lower, left, share)
    for x, j, a in zip(s, lower, share, strict=True):
        got = {bins[j]: a}
        if a < 1:
            got[bins[j + 1]] = 1 - a
        # Where the place of centres is computed, a score next to a centre may be put on it.
        expected = dict(reference.convex_shares(x, centres_and_bins))
        for b in {*got, *expected}:
            assert abs(got.get(b, 0) - expected.get(b, 0)) <= (2e-14 if is_even else 0)
