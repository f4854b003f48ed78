"""Sums of what rows bring to cells, compiled and as plain Python, against loops over the rows."""

import numpy as np
import pytest
import reference

from fastece.estimators.layouts import float_layout
from fastece.kernels import MOMENTS, NO_WEIGHTS, PACK, binning, moments
from helpers.kernel_cases import seven_bins
from helpers.kernel_forms import forms


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("problems", [1, 3, binning.LANES + 1, moments.BLOCK + 2])
def test_cell_moments_are_the_sums_of_shares(problems, even, weighted, convex):
    rng = np.random.default_rng(3)
    # Two whole blocks and a part of one; or of blocks of a few rows.
    n = 2 * moments.BLOCK + 37 if problems == 1 else 7 if problems < 100 else 2
    prob = rng.dirichlet(np.full(problems, 0.5), n) if problems > 1 else rng.random(n)
    label = rng.integers(0, max(2, problems), n)
    label = label.astype(np.uint8 if problems == 1 else np.int64)
    w = rng.random(n) if weighted else NO_WEIGHTS
    chosen = seven_bins(even, convex)
    cuts = chosen.edges.tolist()
    found = reference.centres(cuts)
    expected = np.zeros((problems, 6, 7))
    scores = prob.reshape(n, problems)
    hits = label[:, None] == np.arange(problems) if problems > 1 else label[:, None]
    for k in range(problems):
        for s, y, v in zip(scores[:, k], hits[:, k], w if weighted else np.ones(n), strict=True):
            if s > 0.05:
                hard = [(reference.which_bin(s, cuts), 1.0)]
                for b, a in reference.convex_shares(s, found) if convex else hard:
                    of_row = np.array([y - s, 1, s, y, v, (1 + PACK * y) / PACK])
                    expected[k, :, b] += a * v * of_row
    for kernel in forms(moments.cell_moments):
        out = np.full((6, problems, chosen.cells), np.nan)
        kernel(prob, label, w, chosen.grid, 0.05, np.array(MOMENTS), np.empty(0), out)
        out[5] /= PACK
        out = chosen.spread(out).swapaxes(0, 1)
        assert out == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("problems", [1, 3])
def test_cells_of_a_float_grid_keep_their_only_score(problems, weighted):
    rng = np.random.default_rng(13)
    n, cells, threshold = 300, binning.FLOAT_CELLS, 0.2
    prob = rng.random((n, problems)).round(2)
    prob[:5] += 1e-7  # another score of the same cell
    label = rng.integers(0, 2, n)
    label = label.astype(np.uint8 if problems == 1 else np.int64)
    w = rng.random(n) if weighted else NO_WEIGHTS
    v = w if weighted else np.ones(n)
    hits = label[:, None] == (1 if problems == 1 else np.arange(problems))
    cell, layout = np.empty(n, np.int32), float_layout(0.1, 0.9)
    sums, only = np.zeros((2, problems, cells)), np.full((problems, cells), moments.NONE)
    for k in range(problems):
        s = prob[:, k].copy()
        binning.float_cells(s, 0.1, 0.9, np.empty(n), cell)
        for i in np.flatnonzero(s > threshold):
            sums[:, k, cell[i]] += v[i] * (hits[i, k] - s[i]), v[i]
            seen = only[k, cell[i]]
            only[k, cell[i]] = s[i] if seen in (moments.NONE, s[i]) else moments.SEVERAL
    data = prob[:, 0].copy() if problems == 1 else prob
    assert (only == moments.SEVERAL).any()
    for kernel in forms(moments.cell_moments)[: None if problems == 1 else 1]:
        found, out = np.full(problems * cells, np.nan), np.full(sums.shape, np.nan)
        kernel(data, label, w, layout.grid, threshold, np.array(MOMENTS[:2]), found, out)
        assert out == pytest.approx(sums, abs=1e-13)
        assert found.tolist() == only.ravel().tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_class_vectors_are_spread_with_a_one_at_the_label(dtype):
    prob = np.random.default_rng(6).dirichlet([1, 1, 1], 20).astype(dtype)
    label = np.arange(20) % 3
    for kernel in forms(moments.read_block):
        score, hit = kernel(prob, label, 5, 19, np.full(60, np.nan), np.full(60, 9, np.uint8))
        assert score.tolist() == prob[5:19].ravel().astype(np.float64).tolist()
        assert hit.tolist() == np.eye(3)[label[5:19]].ravel().tolist()


def test_the_lanes_of_a_cell_are_added_in_turn():
    sums = np.array([1.0, 1e-16, 1e-16, -1.0, 0.1, 0.2, 0.3, 0.4])
    for kernel in forms(moments.lane_total):
        assert kernel(sums, 0, 4) == ((1.0 + 1e-16) + 1e-16) - 1.0
        assert kernel(sums, 1, 4) == ((0.1 + 0.2) + 0.3) + 0.4
        assert kernel(sums, 5, 1) == 0.2


def test_first_cells_are_those_of_the_problem():
    for kernel in forms(moments.first_cells):
        assert kernel(2, 3, 10).tolist() == [0, 10, 20, 0, 10, 20]


@pytest.mark.parametrize("problems", [1, 3])
def test_rows_in_cells_are_all_that_are_wanted(problems):
    rng = np.random.default_rng(12)
    n = moments.BLOCK + 9 if problems == 1 else moments.BLOCK // 3 + 20
    prob = rng.random(n) if problems == 1 else rng.dirichlet([1] * problems, n)
    label = rng.integers(0, max(2, problems), n)
    label = label.astype(np.uint8 if problems == 1 else np.int64)
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
        count = kernel(prob, label, 0.2, 0.9, flags, row, problem, s, y)
        got = list(zip(row[:count], problem[:count], s[:count], y[:count], strict=True))
        assert len(got) == len(found)
        assert set(got) == found
