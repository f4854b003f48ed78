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

import fastece
from fastece.grids import convex_layout, hard_layout, uniform_layout
from fastece.kernels import binning, quantiles, reading

FOLDER = Path(fastece.__file__).parent / "kernels"
BINS = [1, 2, 3, 7, 10, 15, 49, 100, 1000]
RANGES = [(0.0, 1.0), (1 / 3, 1.0), (0.1, 0.7), (1 / 7, 1.0)]


def forms(kernel):
    """The kernel as it is called, and as plain Python."""
    return [kernel, getattr(kernel, "py_func", kernel)]


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
@pytest.mark.parametrize("even", [True, False])
def test_knots_passed_are_counted_exactly(even, right):
    rng = np.random.default_rng(1)
    kernels = [binning.search_knots] + ([binning.nearest_knots] if even else [])
    for n in (2, 3, 14, binning.LINEAR_SEARCH, binning.LINEAR_SEARCH + 1, 64, 300):
        knots = np.linspace(0.1, 0.8, n) if even else np.sort(rng.choice(rng.random(n), n))
        s = awkward_scores(knots)
        find = bisect_left if right else bisect_right
        expected = [find(knots.tolist(), x) for x in s]
        passed = np.empty(s.size, np.int32)
        for kernel in kernels:
            for form in forms(kernel):
                form(s, knots, right, passed)
                assert passed.tolist() == expected, (kernel, n)


def test_no_knots_are_never_passed():
    passed = np.full(3, 7, np.int32)
    for kernel in forms(binning.search_knots):
        kernel(np.array([0.0, 0.5, 1.0]), np.empty(0), True, passed)
        assert passed.tolist() == [0, 0, 0]


@pytest.mark.parametrize("edges", [[0, 1], [0, 0.5, 1], [0, 0.2, 0.2, 0.2, 0.9, 1], [0.5] * 4])
def test_convex_shares_are_those_of_the_two_nearest_centres(edges):
    found = reference.centres(edges)
    centres = np.array([c for c, _ in found])
    s = awkward_scores([c for c, _ in found] + edges)
    lower = np.empty(s.size, np.int32)
    upper, share = np.empty_like(lower), np.empty(s.size)
    for kernel in forms(binning.convex_shares):
        lower[:] = np.searchsorted(centres, s, "right")
        kernel(s, centres, lower, upper, share)
        for i, x in enumerate(s):
            expected = dict(reference.convex_shares(x, found))
            got = {found[lower[i]][1]: share[i]}
            if share[i] < 1:
                got[found[upper[i]][1]] = 1 - share[i]
            assert {b: a for b, a in got.items() if a} == {b: a for b, a in expected.items() if a}


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


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("problems", [1, 3, binning.LANES + 1, binning.BLOCK + 2])
def test_cell_moments_are_the_sums_of_shares(problems, even, weighted, convex):
    rng = np.random.default_rng(3)
    n = 2 * binning.BLOCK + 37 if problems == 1 else 7  # two whole blocks and a part of one
    score = rng.random((n, problems))
    hit = rng.integers(0, 2, (n, problems)).astype(np.uint8)
    w = rng.random(n) if weighted else None
    if even:
        chosen = uniform_layout(7, 0.1, 0.9, True, convex)
    else:
        edges = np.array([0.1, 0.15, 0.15, 0.3, 0.31, 0.6, 0.8, 0.9])
        chosen = convex_layout(edges, False) if convex else hard_layout(edges, edges[1:-1], True)
    cuts = chosen.edges.tolist()
    found = reference.centres(cuts)
    expected = np.zeros((problems, 4, 7))
    for k in range(problems):
        for s, y, v in zip(score[:, k], hit[:, k], w if weighted else np.ones(n), strict=True):
            if s > 0.05:
                hard = [(reference.which_bin(s, cuts), 1.0)]
                for b, a in reference.convex_shares(s, found) if convex else hard:
                    expected[k, :, b] += a * v * np.array([y - s, 1, s, y])
    for kernel in forms(binning.cell_moments):
        out = np.full((problems, 4, chosen.cells), np.nan)
        kernel(score, hit, w, *chosen.grid, 0.05, out)
        out = chosen.spread(out)
        assert out == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("edges", [None, [0.0, 0.1, 0.1, 0.7, 1.0]])
def test_a_block_of_replicates_is_each_of_them(edges, convex):
    rng = np.random.default_rng(7)
    n, replicates = 50, 32
    s, terms = rng.random(n), rng.random((2, n))
    c = rng.integers(0, 4, (n, replicates)).astype(np.uint8)
    if edges is None:
        chosen = uniform_layout(4, 0.0, 1.0, True, convex)
    else:
        e = np.array(edges)
        chosen = convex_layout(e, False) if convex else hard_layout(e, e[1:-1], True)
    found = reference.centres(chosen.edges.tolist())
    expected = np.zeros((2, 4, replicates))
    for i in range(n):
        hard = [(reference.which_bin(s[i], chosen.edges.tolist()), 1.0)]
        for b, a in reference.convex_shares(s[i], found) if convex else hard:
            expected[:, b] += a * terms[:, i, None] * c[i]
    lower, upper, share = np.zeros(n, np.int32), np.zeros(n, np.int32), np.ones(n)
    for place, add in zip(forms(binning.place), forms(binning.block_moments), strict=True):
        place(s, *chosen.grid, lower, upper, share)
        out = np.full((2, chosen.cells, replicates), np.nan)
        add(terms, lower, upper, share, convex, c, out)
        spread = chosen.spread(out.swapaxes(1, 2)).swapaxes(1, 2)
        assert spread == pytest.approx(expected, abs=1e-12)


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


def test_no_scores_have_no_inner_edges():
    edges, knots = np.empty(4), np.empty(2)
    for kernel in forms(quantiles.quantile_edges):
        kernel(np.empty(0), None, 0.2, 0.9, True, edges, knots)
        assert edges.tolist() == [0.2, 0.2, 0.2, 0.9]
        assert (knots == np.inf).all()


def test_total_weight_loses_nothing_to_rounding():
    w = np.array([1.0, 1e-16, 1e-16, 1e-16, 1e-16] * 50)
    for kernel in forms(quantiles.total_weight):
        assert kernel(w, w.size) == fsum(w) == float(sum(map(Fraction, w)))
        assert kernel(None, 7) == 7.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_top_label_is_the_first_maximum(dtype):
    rng = np.random.default_rng(5)
    for n_classes in (2, 3, 10, reading.LONG - 1, reading.LONG, reading.LONG + 5, 300):
        prob = (rng.integers(0, 40, (60, n_classes)) / 40).astype(dtype)
        label = np.where(rng.random(60) < 0.6, prob.argmax(1), rng.integers(0, n_classes, 60))
        score, hit = np.empty(60), np.empty(60, np.uint8)
        for kernel in forms(reading.read_top_label):
            kernel(prob, label, np.inf, score, hit)
            assert score.tolist() == prob.max(1).tolist()
            assert hit.tolist() == (prob.argmax(1) == label).tolist()
        lanes = np.empty((3, reading.LANES), dtype)
        for row, y, x, h in zip(prob, label, score, hit, strict=True):
            expected = (x, h, row.min(), pytest.approx(row.sum(dtype=float), rel=1e-5))
            for kernel in forms(reading.short_row):
                assert kernel(row, y) == expected
            if n_classes >= reading.LANES:
                for kernel in forms(reading.long_row):
                    assert kernel(row, y, lanes) == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_classes_are_copied_with_a_one_at_the_label(dtype):
    prob = np.random.default_rng(6).dirichlet([1, 1, 1], 20).astype(dtype)
    label = np.arange(20, dtype=np.uint8) % 3
    score, hit = np.empty((20, 3)), np.empty((20, 3), np.uint8)
    for kernel in forms(reading.read_classes):
        assert kernel(prob, label, 1e-3, score, hit)
        assert score.tolist() == prob.astype(np.float64).tolist()
        assert hit.tolist() == np.eye(3)[label].tolist()


def test_binary_is_copied():
    prob, label = np.array([0.0, -0.0, 0.25, 1.0], np.float32), np.array([0, 1, 1, 0])
    score, hit = np.empty(4), np.empty(4, np.uint8)
    for kernel in forms(reading.read_binary):
        assert kernel(prob, label, score, hit)
        assert score.tolist() == prob.tolist()
        assert hit.tolist() == label.tolist()


BAD_SCORES = [np.nan, np.inf, -np.inf, -1e-9, np.nextafter(1, 2), 1.5]
BAD_LABELS = [-1, 300, -(2**63), 2**62]


@pytest.mark.parametrize("where", [0, 3, 129])
def test_reading_tells_unclean_rows_wherever_they_are(where):
    n = 130
    score, hit = np.empty(n), np.empty(n, np.uint8)
    p, y = np.full(n, 0.5), np.zeros(n, np.int64)
    for bad in BAD_SCORES:
        q = p.copy()
        q[where] = bad
        assert not any(kernel(q, y, score, hit) for kernel in forms(reading.read_binary))
    for bad in [2, *BAD_LABELS]:
        z = y.copy()
        z[where] = bad
        assert not any(kernel(p, z, score, hit) for kernel in forms(reading.read_binary))
    for n_classes in (3, 200):
        p = np.full((n, n_classes), 1 / n_classes)
        wide, hits = np.empty(p.shape), np.empty(p.shape, np.uint8)
        for bad in [*BAD_SCORES, 0.5]:
            q = p.copy()
            q[where, n_classes - 1] = bad
            for kernel in forms(reading.read_top_label):
                assert kernel(p, y, 1e-3, score, hit)
                assert not kernel(q, y, 1e-3, score, hit)
            for kernel in forms(reading.read_classes):
                assert kernel(p, y, 1e-3, wide, hits)
                assert not kernel(q, y, 1e-3, wide, hits)
        for bad in BAD_LABELS:
            z = y.copy()
            z[where] = bad
            assert not any(k(p, z, 1e-3, score, hit) for k in forms(reading.read_top_label))
            assert not any(k(p, z, 1e-3, wide, hits) for k in forms(reading.read_classes))


def test_every_kernel_is_tested_here():
    tested = Path(__file__).read_text(encoding="utf-8")
    for path in FOLDER.glob("[a-z]*.py"):
        module = importlib.import_module(f"fastece.kernels.{path.stem}")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert names
        for name in names:
            assert hasattr(module, name)
            assert f"{path.stem}.{name}" in tested, f"no test of {path.stem}.{name}"
