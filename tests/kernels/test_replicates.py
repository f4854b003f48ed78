"""Sums over bins for 32 replicates, compiled and as plain Python, against loops over the rows."""

from bisect import bisect_left, bisect_right
from math import fsum, inf

import numpy as np
import pytest
import reference

from fastece.estimators.bins import GROUPS, order_rows
from fastece.kernels import NO_WEIGHTS, replicates, weights
from helpers.kernel_cases import (
    RANGES_OF_QUANTILES,
    WEIGHTS,
    counts,
    expected_sums,
    ordered_sets,
    quantile_fields,
    weights_of,
)
from helpers.kernel_forms import forms
from helpers.samples import R, runs_of, sample_of

FEW_ROWS, _ = GROUPS[0]
SETS = ordered_sets(FEW_ROWS)
SIZES = [size for _, size in GROUPS]


def rows_of(u, v, group):
    """Rows in increasing order of their scores, all in the range."""
    order = np.arange(u.size, dtype=np.int32)
    return replicates.OrderedRows(u, u, v, order, *runs_of(u), 0, 0.0, 1.0, group)


def weights_drawn(c, v, r):
    """Weight of each row in one replicate."""
    return (c[:, r] * (v if v.size else np.ones(len(c)))).tolist()


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("moments", [1, 2, 3])
def test_tiles_are_added_run_by_run(convex, step, moments):
    rng = np.random.default_rng(2)
    n, cells = 50, np.array([0, 2, 1, 2, 0], np.int32)
    starts = np.array([0, 3, 10, 10, 31, 50], np.int32)
    order = rng.permutation(n).astype(np.int32)
    terms = rng.normal(size=(moments * (2 if convex else 1), n))
    c = np.array([counts(n, 0), counts(n, 1), counts(n, 2, 30.0)])
    expected = np.zeros((moments, 4, 3 * R))
    for g in range(3):
        for j, cell in enumerate(cells):
            part = np.zeros((len(terms), R))
            for i in range(starts[j], starts[j + 1]):
                part += terms[:, i, None] * c[g, order[i]]
            # the upper cell first, which only matters where they are the same
            if convex:
                expected[:, cell + step, g * R : (g + 1) * R] += part[moments:]
            expected[:, cell, g * R : (g + 1) * R] += part[:moments]
    for kernel in forms(replicates.tile_sums):
        out = np.full(expected.shape, np.nan)
        kernel(terms, order, starts, cells, step, c, out)
        assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("tile", [1, 7, 64, 1000])
@pytest.mark.parametrize("n", [1, 7, 63, 64, 150])
def test_rows_are_brought_into_tiles_and_runs(n, tile):
    lower = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
    expected = sorted(range(n), key=lambda i: (i // tile, lower[i], i))
    kinds = [(i // tile, lower[i]) for i in expected]
    first = [i for i in range(n) if i == 0 or kinds[i] != kinds[i - 1]]
    for kernel in forms(replicates.arrange_tiles):
        order, starts, runs = (np.full(n + k, -1, np.int32) for k in (0, 1, 0))
        count = kernel(lower, 9, tile, order, starts, runs)
        assert order.tolist() == expected
        assert starts[: count + 1].tolist() == [*first, n]
        assert runs[:count].tolist() == [kinds[i][1] for i in first]


@pytest.mark.parametrize("group", SIZES)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 130])
def test_weights_before_each_group_are_kept(n, group):
    c = counts(n, n, 20.0)
    groups = -(-n // group)
    power = 2 ** groups.bit_length()
    for kernel in forms(replicates.power_of_two):
        assert kernel(groups) == power > groups >= power // 2
    for kind in WEIGHTS:
        v = weights(weights_of(kind, n))
        for kernel in forms(replicates.weights_below):
            below = np.full((power, R), np.nan)
            kernel(c, rows_of(np.zeros(n), v, group), below)
            for r in range(R):
                w = weights_drawn(c, v, r)
                expected = [fsum(w[: group * q]) for q in range(groups + 1)]
                slack = 0 if kind in ("none", "integers") else 1e-15 + 1e-16 * group
                assert below[: groups + 1, r] == pytest.approx(expected, rel=slack, abs=0)
                assert (below[groups + 1 :, r] == inf).all()
        for kernel in forms(replicates.weight_of):
            assert kernel(c, v, n - 1, 3) == weights_drawn(c, v, 3)[-1]
    for kernel in forms(replicates.weights_below):
        below = np.full((power, R), np.nan)
        kernel(np.full((n, R), 255, np.uint8), rows_of(np.zeros(n), NO_WEIGHTS, group), below)
        expected = [255 * min(group * q, n) for q in range(groups + 1)]
        assert below[: groups + 1, 7].tolist() == expected


def test_what_is_rounded_off_is_kept():
    n = 3000
    v = np.concatenate([[1.0], np.full(n - 1, 1e-16)])
    c = np.ones((n, R), np.uint8)
    for group in SIZES:
        for kernel in forms(replicates.weights_below)[: None if group > 1 else 1]:
            below = np.empty((2 ** (-(-n // group)).bit_length(), R))
            kernel(c, rows_of(np.zeros(n), v, group), below)
            # of the rows of one group, nothing is kept: 15 or 63 of 2999 small ones
            slack = 0 if group == 1 else 1e-15 + 1e-16 * group
            assert below[-(-n // group), 0] == pytest.approx(fsum(v), rel=slack, abs=0)


def below_of(c, v, group):
    """`weights_below` as the kernel gives them."""
    below = np.empty((2 ** (-(-len(c) // group)).bit_length(), R))
    replicates.weights_below(c, rows_of(np.zeros(len(c)), v, group), below)
    return below


def expected_cuts(u, w, n_bins, low, high, right):
    """Edges, and the rows at which bins begin, of one replicate."""
    closed = "right" if right else "left"
    edges = reference.quantile_edges(u, w, n_bins, low, high, None)
    cuts = reference.quantile_edges(u, w, n_bins, low, high, closed)
    find = bisect_right if right else bisect_left
    # A score outside the range is at its nearest end, and that in the bin it is closed to.
    return edges, [find(u, e) for e in cuts[1:-1]]


def cuts_with(kernel, c, v, u, n_bins, right, low, high, group):
    edges, cuts = np.full((n_bins + 1, R), np.nan), np.full((n_bins + 1, R), -1, np.int32)
    edges[0], edges[-1] = low, high
    kernel(c, rows_of(u, v, group), below_of(c, v, group), right, edges, cuts)
    return edges, cuts


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("name", SETS)
def test_cuts_are_where_the_definition_says(name, right):
    u = SETS[name]
    n = len(u)
    group = SIZES[n > FEW_ROWS]
    for kind in ("none", "integers", "random"):
        c, v = counts(n, 3), weights(weights_of(kind, n))
        for n_bins in (1, 2, 5, 10) if n < 100 else (7,):
            for kernel in forms(replicates.cuts_of)[: None if n < 100 else 1]:
                edges, cuts = cuts_with(kernel, c, v, u, n_bins, right, 0.0, 1.0, group)
                assert (cuts[0] == 0).all()
                assert (cuts[-1] == n).all()
                for r in range(R) if n < 100 else (0, 1, 6, 31):
                    w = weights_drawn(c, v, r)
                    if not any(w):
                        assert (np.diff(cuts[:, r]) >= 0).all()
                        continue
                    cut_edges, rows = expected_cuts(u.tolist(), w, n_bins, 0.0, 1.0, right)
                    assert edges[:, r].tolist() == cut_edges
                    drawn = np.cumsum(c[:, r] > 0)
                    passed = np.append(0, drawn)  # rows that are not drawn may be on either side
                    assert passed[cuts[1:-1, r]].tolist() == passed[rows].tolist()


def test_a_row_that_is_not_drawn_does_not_move_an_edge():
    u = np.array([0.1, 0.3, 0.6, 0.8])
    c = np.zeros((4, R), np.uint8)
    c[[0, 3]] = 1
    c[1, 1] = 1
    for right in (True, False):
        for kernel in forms(replicates.cuts_of):
            edges, cuts = cuts_with(kernel, c, NO_WEIGHTS, u, 2, right, 0.0, 1.0, 1)
            assert edges[1, 0] == (0.1 + 0.8) / 2
            assert cuts[1, 0] == 1
            assert edges[1, 1] == 0.3
            assert cuts[1, 1] == (2 if right else 1)


def random_cuts(n, n_bins, seed=0):
    """(B + 1, 32) rows at which bins begin, some of them empty."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, n + 1, (n_bins + 1, R)), axis=0)
    cuts[0], cuts[-1] = 0, n
    return cuts.astype(np.int32)


def cut_sums_with(kernel, s, c, terms, convex, place, centre, bins, count):
    """Sums of the second of three blocks; what the kernel leaves must be as it was."""
    head, following = np.full(len(s) + 1, -1, np.int32), np.empty(place.size, np.int32)
    out, rows = np.full((2, len(place), 3 * R), np.nan), rows_of(s, NO_WEIGHTS, 1)
    kernel(c, rows, terms, convex, place, centre, bins, count, head, following, R, out)
    assert np.isnan(out[..., :R]).all()
    assert np.isnan(out[..., 2 * R :]).all()
    assert (head == -1).all()
    return out[..., R : 2 * R]


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("n_bins", [1, 2, 9])
def test_sums_between_cuts_are_of_their_rows(n, n_bins):
    rng = np.random.default_rng(n)
    cuts, c, terms = random_cuts(n, n_bins), counts(n), rng.normal(size=(2, n))
    expected = np.zeros((2, n_bins, R))
    for r in range(R):
        for b in range(n_bins):
            for i in range(cuts[b, r], cuts[b + 1, r]):
                expected[:, b, r] += terms[:, i] * c[i, r]
    nothing, whole = np.empty((0, R)), np.empty((0, R), np.int32)
    for kernel in forms(replicates.cut_sums):
        centres = nothing, whole, whole[:, 0].copy()
        out = cut_sums_with(kernel, np.zeros(n), c, terms, False, cuts[1:], *centres)
        assert out.tolist() == expected.tolist()  # the same bits


def padded_bits(s):
    """Scores as integers, and infinite ones up to a power of two."""
    padded = np.full(2 ** len(s).bit_length(), inf)
    padded[: len(s)] = s
    return padded.view(np.int64)


def some_edges(n_bins, low, high, seed=0):
    """(B + 1, 32) edges in increasing order, with ties."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.random((n_bins + 1, R)).round(1), axis=0).clip(low, high)
    edges[:, 3] = edges[:, 4] = low  # a single centre, and one besides
    edges[0], edges[-1] = low, high
    return edges


def centres_with(kernel, s, edges):
    n_bins = len(edges) - 1
    centre = np.full((n_bins, R), np.nan)
    place, bins = np.full((2, n_bins, R), -1, np.int32)
    count = np.full(R, -1, np.int32)
    kernel(padded_bits(s), len(s), edges, centre, place, bins, count)
    return centre, place, bins, count


@pytest.mark.parametrize("name", ["one", "zeros", "hundredths", "constant", "spread"])
@pytest.mark.parametrize("n_bins", [1, 2, 8])
def test_distinct_centres_are_found_with_their_bins_and_rows(name, n_bins):
    s, edges = SETS[name], some_edges(n_bins, 0.1, 0.7)
    for kernel in forms(replicates.centres_of):
        centre, place, bins, count = centres_with(kernel, s, edges)
        for r in range(R):
            found = reference.centres(edges[:, r].tolist())
            assert count[r] == len(found)
            assert centre[: count[r], r].tolist() == [c for c, _ in found]
            assert bins[: count[r], r].tolist() == [b for _, b in found]
            expected = [bisect_left(s.tolist(), c) for c, _ in found]
            assert place[:, r].tolist() == expected + [len(s)] * (n_bins - len(found))


@pytest.mark.parametrize("name", ["one", "zeros", "hundredths", "constant", "spread"])
@pytest.mark.parametrize("n_bins", [1, 2, 8])
def test_rows_are_shared_by_the_centres_around_them(name, n_bins):
    s, edges = SETS[name], some_edges(n_bins, 0.1, 0.7)
    n, rng = len(s), np.random.default_rng(5)
    c, terms = counts(n, 8), rng.normal(size=(2, n))
    expected = np.zeros((2, n_bins, R))
    for r in range(R):
        found = reference.centres(edges[:, r].tolist())
        for i in range(n):
            for b, a in reference.convex_shares(s[i], found):
                expected[:, b, r] += a * terms[:, i] * c[i, r]
    centre, place, bins, count = centres_with(replicates.centres_of, s, edges)
    for kernel in forms(replicates.cut_sums):
        out = cut_sums_with(kernel, s, c, terms, True, place, centre, bins, count)
        assert out == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_bins_of_equal_weight_are_those_of_each_replicate(name, right, convex):
    s, rng = SETS[name], np.random.default_rng(6)
    n = len(s)
    y = rng.random(n) < s
    for kind in WEIGHTS if n < 100 else WEIGHTS[:2]:
        sample = sample_of(s, y, weights_of(kind, n))
        v = np.ones(n) if sample.v is None else sample.v
        c = np.array([counts(n, 1), counts(n, 2, 0.3)])
        for n_bins, low, high, threshold in RANGES_OF_QUANTILES:
            fields = quantile_fields(n_bins, low, high, threshold, right, convex)
            rows = order_rows(sample, low, high, threshold)
            w = v[rows.skip :]
            terms = np.array([w * (sample.y - sample.s)[rows.skip :], w])
            for kernel in forms(replicates.equal_mass_sums)[: None if n < 20 else 1]:
                total, out = np.full(2 * R, np.nan), np.full((2, n_bins, 2 * R), np.nan)
                kernel(rows, terms, right, convex, c, total, out)
                for at in (0, 5, 6, 31, 40):  # 5 has no row, 6 the last one alone
                    drawn = (c[at // R, :, at % R] * v).tolist()
                    weight, sums = expected_sums(sample, drawn, fields)
                    assert total[at] == pytest.approx(weight, rel=1e-14)
                    assert out[..., at] == pytest.approx(sums, abs=1e-12 * max(1.0, v.max()))
