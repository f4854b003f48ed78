"""Every kernel, compiled and as plain Python, against the plain definitions."""

import ast
import importlib
from bisect import bisect_left, bisect_right
from fractions import Fraction
from math import fsum
from pathlib import Path

import numpy as np
import pytest
import reference
import strategies as cases
from kernel_forms import forms

import fastece
from fastece.binned.edges import convex_layout, float_scores, hard_layout, uniform_layout
from fastece.kernels import binning, logits, moments, quantiles, reading

# The test files that call kernels.
TESTS = Path(__file__).parents[1]
KERNEL_TESTS = [
    "kernels/test_kernels", "kernels/test_density_kernels", "binned/test_blocks",
    "kernels/test_resampling",
]  # fmt: skip
FOLDER = Path(fastece.__file__).parent / "kernels"
BINS = [1, 2, 3, 7, 10, 15, 49, 100, 1000]
RANGES = [(0.0, 1.0), (1 / 3, 1.0), (0.1, 0.7), (1 / 7, 1.0)]


def awkward_scores(edges):
    """Every edge with its neighbours, 0, 1, the smallest float, the same through float32."""
    scores = np.concatenate([cases.around(edges), [0.0, 1.0, 5e-324], np.linspace(0, 1, 101)])
    return np.concatenate([scores, scores.astype(np.float32).astype(np.float64).clip(0, 1)])


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("limits", RANGES)
def test_uniform_bins_are_right_on_every_edge_and_both_its_neighbours(limits, right):
    for n_bins in BINS:
        edges = reference.uniform_edges(n_bins, *limits)
        s = awkward_scores(edges)
        find = bisect_left if right else bisect_right
        expected = [min(max(find(edges, x) - 1, 0), n_bins - 1) for x in s]
        cell = np.empty(s.size, np.int32)
        for kernel in forms(binning.uniform_bins):
            kernel(s, *limits, n_bins, right, cell)
            assert cell.tolist() == expected, n_bins


@pytest.mark.parametrize("right", [True, False])
def test_knots_passed_are_counted_exactly(right):
    rng = np.random.default_rng(1)
    for n in (2, 3, 14, binning.LINEAR_SEARCH, binning.LINEAR_SEARCH + 1, 64, 300):
        knots = np.sort(rng.choice(rng.random(n), n))
        s = awkward_scores(knots)
        find = bisect_left if right else bisect_right
        expected = [find(knots.tolist(), x) for x in s]
        passed = np.empty(s.size, np.int32)
        for form in forms(binning.search_knots):
            form(s, knots, right, passed)
            assert passed.tolist() == expected, n


def test_a_quotient_by_the_reciprocal_is_right_to_the_last_bit():
    rng = np.random.default_rng(8)
    counts = [*range(1, 200), 1000, 4096, 99_991, 2**24 - 1, 2**24, *rng.integers(1, 2**24, 50)]
    for count in counts:
        j = np.arange(count + 1.0) if count < 1000 else rng.integers(0, count + 1, 5000) * 1.0
        for form in forms(binning.reciprocal):
            a, b = form(float(count))
            assert (j * a + j * b == j / count).all(), count


def test_no_knots_are_never_passed():
    passed = np.full(3, 7, np.int32)
    for kernel in forms(binning.search_knots):
        kernel(np.array([0.0, 0.5, 1.0]), np.empty(0), True, passed)
        assert passed.tolist() == [0, 0, 0]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("edges", [[0, 1], [0, 0.5, 1], [0, 0.2, 0.2, 0.2, 0.9, 1], [0.5] * 4])
def test_convex_shares_are_those_of_the_two_nearest_centres(edges, even):
    if even:
        edges = reference.uniform_edges(len(edges), 0.1, 0.7)
    found = reference.centres(edges)
    centres = np.array([c for c, _ in found])
    s = awkward_scores([c for c, _ in found] + edges)
    lower, left, share = np.empty(s.size, np.int32), np.empty(s.size), np.empty(s.size)
    spacing = binning.EVEN if even and centres.size > 1 else binning.ANY
    grid = (0.0, 1.0, 1, spacing, centres, False, True)
    for kernel in forms(binning.place):
        kernel(s, *grid, lower, left, share)
        for x, j, a in zip(s, lower, share, strict=True):
            got = {found[j][1]: a}
            if a < 1:
                got[found[j + 1][1]] = 1 - a
            # where centres are found by arithmetic, a score next to one may be put on it
            expected = dict(reference.convex_shares(x, found))
            for b in {*got, *expected}:
                assert abs(got.get(b, 0) - expected.get(b, 0)) <= (2e-14 if grid[3] else 0)
    for kernel in forms(binning.convex_shares):
        again, left_again = np.empty(s.size), np.empty(s.size)
        kernel(s, centres, lower, left_again, again)
        assert again.tolist() == share.tolist()
    if grid[3]:
        for kernel in forms(binning.nearest_centres):
            kernel(s, centres, lower)
            inside = s.clip(centres[0], centres[-1])
            step = (1 + 1e-12) * (centres[1] - centres[0])
            assert (abs(inside - centres[lower]) <= step).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_of_gap_weight_score_and_hit_above_the_threshold(weighted):
    s, y = np.array([0.1, 0.5, 0.9]), np.array([1, 0, 1], np.uint8)
    w = np.array([2.0, 3.0, 0.0]) if weighted else None
    v = w if weighted else np.ones(3)
    expected = [v * (y - s), v, v * s, v * y]
    x = np.empty(3)
    for kernel in forms(binning.moment):
        for q in range(4):
            kernel(q, s, y, w, -np.inf, x)
            assert x.tolist() == expected[q].tolist()
            kernel(q, s, y, w, 0.5, x)
            assert x.tolist() == [0.0, 0.0, expected[q][2]]


def test_scatter_adds_every_row_once():
    rng = np.random.default_rng(2)
    for n in (0, 1, 7, 8, 9, 100):
        cell, x = rng.integers(0, 5, n).astype(np.int32), rng.random(n)
        for kernel in forms(binning.scatter):
            for lanes in (1, binning.LANES):
                sums = np.zeros(5 * lanes)
                kernel(cell, x, lanes, sums)
                expected = np.bincount(cell, x, minlength=5)
                assert sums.reshape(5, -1).sum(1) == pytest.approx(expected, abs=1e-14)


def test_scatter_weights_keeps_what_is_rounded_off():
    w = np.array([1.0, *[1e-17] * 1000, 0.1] * 3)
    cell = np.zeros(w.size, np.int32)
    for kernel in forms(binning.scatter_weights):
        sums, lost = np.zeros(2), np.zeros(2)
        kernel(cell, w, 2, sums, lost)
        assert sums[0] + lost[0] == fsum(w)
        assert sums[1] == lost[1] == 0


def test_scatter_shares_adds_both_parts_of_every_row():
    rng = np.random.default_rng(9)
    for n in (0, 1, 7, 8, 9, 100):
        cell, x, a = rng.integers(0, 4, n).astype(np.int32), rng.random(n), rng.random(n)
        for kernel in forms(binning.scatter_shares):
            for lanes in (1, binning.LANES):
                for step in (0, 1):
                    sums = np.zeros(5 * lanes)
                    kernel(cell, x, a, step, lanes, sums)
                    expected = np.bincount(cell, x * a, minlength=5)
                    expected += np.bincount(cell + step, x * (1 - a), minlength=5)
                    assert sums.reshape(5, -1).sum(1) == pytest.approx(expected, abs=1e-13)


def grid_of(even, convex):
    """Seven bins, evenly spaced or not."""
    if even:
        return uniform_layout(7, 0.1, 0.9, True, convex)
    edges = np.array([0.1, 0.15, 0.15, 0.3, 0.31, 0.6, 0.8, 0.9])
    return convex_layout(edges, False) if convex else hard_layout(edges, edges[1:-1], True)


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("problems", [1, 3, binning.LANES + 1, moments.BLOCK + 2])
def test_cell_moments_are_the_sums_of_shares(problems, even, weighted, convex):
    rng = np.random.default_rng(3)
    n = 2 * moments.BLOCK + 37 if problems == 1 else 7  # two whole blocks and a part of one
    prob = rng.dirichlet(np.full(problems, 0.5), n) if problems > 1 else rng.random(n)
    label = rng.integers(0, max(2, problems), n)
    w = rng.random(n) if weighted else None
    chosen = grid_of(even, convex)
    cuts = chosen.edges.tolist()
    found = reference.centres(cuts)
    expected = np.zeros((problems, 4, 7))
    scores = prob.reshape(n, problems)
    hits = label[:, None] == np.arange(problems) if problems > 1 else label[:, None]
    for k in range(problems):
        for s, y, v in zip(scores[:, k], hits[:, k], w if weighted else np.ones(n), strict=True):
            if s > 0.05:
                hard = [(reference.which_bin(s, cuts), 1.0)]
                for b, a in reference.convex_shares(s, found) if convex else hard:
                    expected[k, :, b] += a * v * np.array([y - s, 1, s, y])
    for kernel in forms(moments.cell_moments):
        out = np.full((4, problems, chosen.cells), np.nan)
        rows = (prob, label, w, 1e-3)
        assert kernel(*rows, *chosen.grid, 0.05, np.empty(0), out)
        out = chosen.spread(out).swapaxes(0, 1)
        assert out == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("limits", [*RANGES, (0.1, 0.4), (0.5, 0.9), (0.6, 0.61)])
def test_float_cells_rise_with_the_score_and_hold_theirs(limits):
    low, high = limits
    scores = float_scores()
    tiny = [5e-324, 2.0**-54, 2.0**-53, 1e-9]
    s = np.concatenate([cases.around(scores[::97]), tiny, 1 - np.array(tiny), [0, 0.5, 1, *limits]])
    s = np.sort(np.concatenate([s, cases.around([0.25, 0.5, 0.75])]))
    work, cell = np.empty(s.size), np.empty(s.size, np.int32)
    for kernel in forms(binning.float_cells):
        kernel(s, low, high, work, cell)
        assert (np.diff(cell) >= 0).all()
        assert (cell >= 0).all()
        assert (cell < binning.FLOAT_CELLS).all()
        moved = s.clip(low, high)
        again = np.empty_like(cell)
        kernel(moved, 0.0, 1.0, work, again)
        assert cell.tolist() == again.tolist()


def test_each_cell_that_can_have_a_score_has_that_of_the_table():
    scores = float_scores()
    below, above = np.split(np.arange(scores.size), 2)
    # Next to 1 there are more cells than floats: those without one have the nearest in the table.
    exact = (1 - scores[above])[::-1] == scores[below]
    above = above[exact[::-1] & (scores[above] >= 0.5)]
    used = np.concatenate([below[scores[below] < 0.5], above])
    s = scores[used]
    work, cell = np.empty(s.size), np.empty(s.size, np.int32)
    for kernel in forms(binning.float_cells):
        kernel(s, 0.0, 1.0, work, cell)
        assert cell.tolist() == used.tolist()
        kernel(np.random.default_rng(0).random(s.size), 0.0, 1.0, work, cell)
        assert np.isin(cell, used).all()


def test_the_only_score_of_a_cell_is_noted():
    s, cell = np.array([0.1, 0.1, 0.2, 0.3, 0.9, 0.05]), np.array([0, 0, 1, 1, 3, 0], np.int32)
    for kernel in forms(moments.note_scores):
        only = np.full(5, moments.NONE)
        kernel(s, cell, 0.06, only)
        assert only.tolist() == [0.1, moments.SEVERAL, moments.NONE, 0.9, moments.NONE]


def test_first_cells_are_those_of_the_problem():
    for kernel in forms(moments.first_cells):
        assert kernel(2, 3, 10).tolist() == [0, 10, 20, 0, 10, 20]


@pytest.mark.parametrize("problems", [1, 3])
def test_rows_in_cells_are_all_that_are_wanted(problems):
    rng = np.random.default_rng(12)
    n = moments.BLOCK + 9 if problems == 1 else 700
    prob = rng.random(n) if problems == 1 else rng.dirichlet([1] * problems, n)
    label = rng.integers(0, max(2, problems), n)
    wanted = rng.random((problems, binning.FLOAT_CELLS)) < 0.1
    cell, columns = np.empty(n, np.int32), prob.reshape(n, problems)
    found = set()
    for k in range(problems):
        s = columns[:, k].copy()
        binning.float_cells(s, 0.2, 0.9, np.empty(n), cell)
        hit = label == k if problems > 1 else label
        found |= {(i, k, s[i], hit[i]) for i in np.flatnonzero(wanted[k, cell])}
    for kernel in forms(moments.rows_in_cells):
        row, problem = np.empty(prob.size, np.int64), np.empty(prob.size, np.int32)
        s, y = np.empty(prob.size), np.empty(prob.size, np.uint8)
        flags = wanted.ravel().view(np.uint8)
        count = kernel(prob, label, 1e-3, 0.2, 0.9, flags, row, problem, s, y)
        got = list(zip(row[:count], problem[:count], s[:count], y[:count], strict=True))
        assert len(got) == len(found)
        assert set(got) == found


@pytest.mark.parametrize("right", [True, False])
def test_quantile_edges_and_knots_cut_where_the_definition_says(right):
    rng = np.random.default_rng(4)
    adjacent = np.nextafter(0.3, [0, 1, 1])
    sets = [rng.random(50), np.round(rng.random(60), 1), np.full(9, 0.4), np.array([0.7]),
            adjacent, np.repeat([0.0, 0.2, 1.0], 20)]  # fmt: skip
    for u in map(np.sort, sets):
        for w in (None, rng.integers(0, 3, u.size) + (np.arange(u.size) == 0) * 1.0):
            for n_bins in (1, 2, 3, 10, 15):
                edges, knots = np.empty(n_bins + 1), np.empty(n_bins - 1)
                weights = [1.0] * u.size if w is None else w.tolist()
                expected = reference.quantile_edges(
                    u.tolist(), weights, n_bins, 0.0, 1.0, "right" if right else "left"
                )
                for kernel in forms(quantiles.quantile_edges):
                    kernel(u, w, 0.0, 1.0, right, edges, knots)
                    assert edges == pytest.approx(expected, abs=1e-16)
                    assert (np.diff(edges) >= 0).all()
                    closed = "right" if right else "left"
                    bins = [reference.which_bin(x, expected, closed) for x in u]
                    side = "left" if right else "right"
                    assert np.searchsorted(knots, u, side).tolist() == bins


@pytest.mark.parametrize("right", [True, False])
def test_edges_of_scores_that_count_once_are_those_with_weights(right):
    rng = np.random.default_rng(5)
    sets = [rng.random(n) for n in (1, 2, 5, 30, 300)] + [rng.random(300).round(d) for d in (1, 2)]
    for u in (*map(np.sort, sets), np.full(40, 0.3)):
        for n_bins in (1, 2, 3, 7, 10, 49, 400):
            once, plain = np.full((2, n_bins + 1), np.nan), np.full((2, n_bins - 1), np.nan)
            quantiles.quantile_edges(u, np.ones(u.size), 0.0, 1.0, right, once[0], plain[0])
            for kernel in forms(quantiles.count_edges):
                kernel(u, right, once[1], plain[1])
                assert once[1, 1:-1].tolist() == once[0, 1:-1].tolist()
                assert plain[1].tolist() == plain[0].tolist()


def test_no_scores_have_no_inner_edges():
    edges, knots = np.empty(4), np.empty(2)
    for kernel in forms(quantiles.quantile_edges):
        kernel(np.empty(0), None, 0.2, 0.9, True, edges, knots)
        assert edges.tolist() == [0.2, 0.2, 0.2, 0.9]
        assert (knots == np.inf).all()


def test_total_weight_loses_nothing_to_rounding():
    w = np.array([1.0, 1e-16, 1e-16, 1e-16, 1e-16] * 50)
    for kernel in forms(quantiles.total_weight):
        assert kernel(w) == fsum(w) == float(sum(map(Fraction, w)))


def read_with(kernel, prob, label, tolerance=1e-3):
    """Clean or not, scores and hits, one row for each of the data."""
    n = len(label)
    score, hit = np.empty(prob.size), np.empty(prob.size, np.uint8)
    clean = kernel(prob, label, tolerance, score, hit)
    return clean, score.reshape(n, -1), hit.reshape(n, -1)


def top_label_with(kernel, prob, label, of_logits=False, tolerance=1e-3):
    """Clean or not, scores and hits."""
    score, hit = np.empty(len(label)), np.empty(len(label), np.uint8)
    return kernel(prob, label, of_logits, tolerance, score, hit), score, hit


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_top_label_is_the_first_maximum(dtype):
    rng = np.random.default_rng(5)
    for n_classes in (2, 3, 10, reading.LONG - 1, reading.LONG, reading.LONG + 5, 300):
        prob = (rng.integers(0, 40, (60, n_classes)) / 40).astype(dtype)
        label = np.where(rng.random(60) < 0.6, prob.argmax(1), rng.integers(0, n_classes, 60))
        for kernel in forms(reading.read_top_label):
            clean, score, hit = top_label_with(kernel, prob, label, tolerance=np.inf)
            assert clean
            assert score.tolist() == prob.max(1).tolist()
            assert hit.tolist() == (prob.argmax(1) == label).tolist()
        lanes = np.empty((3, reading.LANES), dtype)
        for row, y in zip(prob, label, strict=True):
            total = pytest.approx(row.sum(dtype=float), rel=1e-5)
            for kernel in forms(reading.short_row):
                assert kernel(row) == (row.max(), row.argmax(), row.min(), total)
            for kernel in forms(reading.is_first):
                assert kernel(row, y, row.max()) == (row.argmax() == y)
            for kernel in forms(reading.row_sum):
                assert kernel(row) == total
            for kernel in forms(logits.lane_sum):
                assert kernel(row.astype(np.float64)) == total
            if n_classes >= reading.LANES:
                for kernel in forms(reading.long_row):
                    assert kernel(row, lanes) == (row.max(), row.min(), total)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_classes_are_copied_with_a_one_at_the_label(dtype):
    prob = np.random.default_rng(6).dirichlet([1, 1, 1], 20).astype(dtype)
    label = np.arange(20, dtype=np.uint8) % 3
    for kernel in [*forms(reading.read), *forms(reading.read_classes)]:
        clean, score, hit = read_with(kernel, prob, label)
        assert clean
        assert score.tolist() == prob.astype(np.float64).tolist()
        assert hit.tolist() == np.eye(3)[label].tolist()


def test_binary_is_copied():
    prob, label = np.array([0.0, -0.0, 0.25, 1.0], np.float32), np.array([0, 1, 1, 0])
    score, hit = np.empty(4), np.empty(4, np.uint8)
    for kernel in forms(reading.read_binary):
        assert kernel(prob, label, score, hit)
        assert score.tolist() == prob.tolist()
        assert hit.tolist() == label.tolist()


def test_exponential_is_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(10)
    x = np.concatenate([-rng.exponential(s, 3000) for s in (1e-9, 1e-3, 1, 30, 200)])
    x = np.concatenate([x, [0.0, -0.0, -708.0, -708.1, -745.0, -1e300, -np.inf]])
    expected = np.where(x >= logits.LOWEST_EXPONENT, np.exp(x), 0.0)
    for kernel in forms(logits.exponential):
        e = x.copy()
        kernel(e, np.empty_like(x))
        assert (abs(e - expected) <= 2 * np.spacing(expected)).all()
        assert (e[-4:] == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [1, 2, 10, 200, logits.BLOCK + 3])
def test_logits_are_read_as_their_softmax(dtype, n_classes):
    rng = np.random.default_rng(11)
    z = (30 * rng.standard_normal((40, n_classes))).astype(dtype)
    z[rng.random(z.shape) < 0.1] = -np.inf
    z[:, 0] = np.where(np.isinf(z).all(axis=1), 3.0, z[:, 0])
    z[:5] = 1e30  # equal, and their exponentials beyond every float
    label = rng.integers(0, n_classes, 40)
    top = z.max(axis=1).astype(np.float64)
    below = z.astype(np.float64) - top[:, None]
    p = np.exp(below)
    p /= p.sum(axis=1, keepdims=True)
    for kernel in forms(logits.softmax):
        got = np.empty(z.shape)
        kernel(z, top, got)
        assert got == pytest.approx(p, rel=1e-13, abs=1e-300)
        assert ((got == 0) == (below < logits.LOWEST_EXPONENT)).all()
    for kernel in forms(logits.exponentials):
        e = np.empty(z.size)
        kernel(z, top, e, np.empty(z.size))
        assert e == pytest.approx(np.exp(below).ravel(), rel=1e-14, abs=1e-300)
    for kernel in forms(logits.softmax):
        largest = np.empty((40, 1))
        kernel(z, top, largest)
        assert largest[:, 0] == pytest.approx(p.max(axis=1), rel=1e-13)
    for kernel in forms(reading.read_top_label):
        clean, score, hit = top_label_with(kernel, z, label, of_logits=True)
        assert clean
        assert score.tolist() == top.tolist()
        assert hit.tolist() == (z.argmax(axis=1) == label).tolist()


def test_a_binary_logit_is_read_as_its_sigmoid():
    z = np.array([-np.inf, -1e4, -750.0, -40.0, -1.0, -0.0, 0.0, 1.0, 40.0, 1e4, 1.7e308, np.inf])
    expected = [0, 0, 0, np.exp(-40), 1 / (1 + np.e), 0.5, 0.5, np.e / (1 + np.e), 1, 1, 1, 1]
    z, expected = np.tile(z, 100), expected * 100  # more than a block
    for kernel in forms(logits.sigmoid):
        p = np.empty(z.size)
        kernel(z, p)
        assert p == pytest.approx(expected, rel=1e-14)


BAD_SCORES = [np.nan, np.inf, -np.inf, -1e-9, np.nextafter(1, 2), 1.5]
BAD_LABELS = [-1, 300, -(2**63), 2**62]


@pytest.mark.parametrize("where", [0, 3, 129])
@pytest.mark.parametrize("n_classes", [None, 3, 200])
def test_reading_tells_unclean_rows_wherever_they_are(where, n_classes):
    n = 130
    y = np.zeros(n, np.int64)
    p = np.full(n if n_classes is None else (n, n_classes), 1 / (n_classes or 2))
    last = where if n_classes is None else (where, n_classes - 1)
    checks = [lambda *rows, k=k: read_with(k, *rows)[0] for k in forms(reading.read)]
    if n_classes:
        checks += [
            lambda *rows, k=k: top_label_with(k, *rows)[0] for k in forms(reading.read_top_label)
        ]
    for check in checks:
        assert check(p, y)
        for bad in BAD_SCORES if n_classes is None else [*BAD_SCORES, 0.5]:
            q = p.copy()
            q[last] = bad
            assert not check(q, y), bad
        for bad in BAD_LABELS if n_classes else [2, *BAD_LABELS]:
            labels = y.copy()
            labels[where] = bad
            assert not check(p, labels), bad
    if n_classes:
        for kernel in forms(reading.read_top_label):
            for bad, at in ((np.nan, last), (np.inf, last), (-np.inf, where)):
                z = p.copy()
                z[at] = bad
                assert not top_label_with(kernel, z, y, True)[0], bad


def test_unclean_rows_have_no_sums():
    p, y = np.full(3000, 0.5), np.zeros(3000, np.uint8)
    p[2900] = np.nan
    for kernel in forms(moments.cell_moments):
        grid = uniform_layout(15, 0.0, 1.0, True, False).grid
        assert not kernel(p, y, None, 1e-3, *grid, -np.inf, np.empty(0), np.empty((1, 1, 15)))


def test_every_kernel_is_tested_by_name():
    files = [TESTS / f"{name}.py" for name in KERNEL_TESTS]
    tested = "".join(path.read_text(encoding="utf-8") for path in files)
    for path in FOLDER.glob("[a-z]*.py"):
        module = importlib.import_module(f"fastece.kernels.{path.stem}")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert names
        for name in names:
            assert hasattr(module, name)
            assert f"{path.stem}.{name}" in tested, f"no test of {path.stem}.{name}"
