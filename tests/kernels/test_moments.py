"""Sums of what rows bring to cells, compiled and as plain Python, against loops over the rows."""

from math import fsum

import numpy as np
import pytest
import reference

from fastece.estimators.binned import Binned
from fastece.kernels import (
    MOMENTS,
    NO_WEIGHTS,
    PACK,
    binning,
    moments,
    weights,
)
from helpers.kernel_cases import (
    RANGES_OF_QUANTILES,
    WEIGHTS,
    expected_sums,
    ordered_sets,
    packed_grid,
    quantile_fields,
    seven_bins,
    weights_of,
)
from helpers.kernel_forms import forms
from helpers.samples import sample_of
from helpers.strategies import as_lists

SETS = ordered_sets(80)

# The gap, whose sums nobody wants.
NO_SUMS = np.empty((0, 0))


def test_scatter_keeps_what_is_rounded_off():
    w = np.array([1.0, *[1e-17] * 1000, 0.1] * 3)
    cell = np.zeros(w.size, np.int32)
    for kernel in forms(moments.scatter):
        sums, lost = np.zeros(2), np.zeros(2)
        kernel(cell, w, 2, sums, lost)
        assert sums[0] + lost[0] == fsum(w)
        assert sums[1] == lost[1] == 0


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("problems", [1, 3, moments.LANES + 1, moments.BLOCK + 2])
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


CUTS = [0.1, 0.1, 0.25, 0.5, 0.5, 0.875, 0.9, 0.9]


@pytest.mark.parametrize("edges", [None, CUTS])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("n", [1, 7, 2100])
def test_sums_of_bins_are_those_of_the_definition(n, right, edges):
    rng = np.random.default_rng(n)
    y = rng.integers(0, 2, n)
    closed = "right" if right else "left"
    if edges is None:
        p, fields = rng.random(n).round(1), {"n_bins": 10, "score_range": (0.2, 1.0)}
    else:
        p, fields = rng.integers(0, 9, n) / 8, {"edges": edges}
    bins = packed_grid(Binned(**fields, closed=closed))
    _, cells = reference.cells((*as_lists(p, y), 0.0, 1.0), closed=closed, **fields)
    weight, gap, score, hits = zip(*cells, strict=True)
    expected = reference.ece(*as_lists(y, p), closed=closed, **fields)
    for kernel in forms(moments.hard_error):
        sums, gaps = np.full((4, len(gap)), 7.0), np.full((1, len(gap)), 7.0)
        value = kernel(p, y, bins, sums)
        assert value == pytest.approx(expected, abs=1e-13)
        assert value == kernel(p, y.astype(np.uint8), bins, gaps) == kernel(p, y, bins, NO_SUMS)
        assert gaps.tolist() == sums[:1].tolist()
        assert sums == pytest.approx(np.array([gap, weight, score, hits]), abs=1e-11)
        assert np.isnan(kernel(p, y + 2, bins, sums))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [None, 2, 200])
def test_what_is_not_good_has_no_value(n_classes, dtype):
    n = 130
    y = np.zeros(n, np.int64)
    p = np.full(n if n_classes is None else (n, n_classes), 1 / (n_classes or 2), dtype)
    for kernel in forms(moments.hard_error):

        def value(p, y, kernel=kernel):
            return kernel(p, y, packed_grid(Binned()), NO_SUMS)

        assert value(p, y) == value(p, y)
        for where in (0, 129):
            for bad in (np.nan, np.inf, -np.inf, -1e-9, 1 + 5e-7, 1.5):
                changed = p.copy()
                changed.reshape(n, -1)[where, -1] = bad
                assert np.isnan(value(changed, y)), bad
            for bad in (-1, n_classes or 2, 2**62):
                labels = y.copy()
                labels[where] = bad
                assert np.isnan(value(p, labels)), bad
        if n_classes is not None:
            assert np.isnan(value(p * 1.002, y))


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("cells", [1, 4])
def test_drawn_rows_are_added_one_after_the_other(convex, cells):
    rng = np.random.default_rng(8)
    n = 30
    last = max(cells - 2, 0) if convex else cells - 1
    cell, share = rng.integers(0, last + 1, n), rng.random(n) if convex else np.ones(n)
    terms = rng.normal(size=(2, n))
    parts = [*(terms * share), *(terms * (1 - share))] if convex else terms
    records = np.column_stack([cell, *parts])
    rows = rng.integers(0, n, (5, 12)).astype(np.int32)
    expected = np.zeros((2, cells, 5))
    for q in range(2):
        for r in range(5):
            for i in rows[r]:
                part = terms[q, i] * share[i]
                expected[q, cell[i], r] += part
                if convex:
                    expected[q, cell[i] + min(cells - 1, 1), r] += terms[q, i] - part
    for kernel in forms(moments.drawn_sums):
        out = np.full(expected.shape, np.nan)
        kernel(records, min(cells - 1, 1), rows, out)
        assert out == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_bins_of_equal_weight_are_those_of_the_drawn_rows(name, right, convex):
    s, rng = SETS[name], np.random.default_rng(7)
    n = len(s)
    y = rng.random(n) < s
    for kind in WEIGHTS:
        sample = sample_of(s, y, weights_of(kind, n))
        v = np.ones(n) if sample.v is None else sample.v
        arrays = sample.s, sample.y, weights(sample.v)
        for size in (1, 2, 13, min(2 * n, 40)):
            rows = np.sort(rng.integers(0, n, (2, size)), axis=1).astype(np.int32)
            for n_bins, low, high, threshold in RANGES_OF_QUANTILES[::2]:
                fields = quantile_fields(n_bins, low, high, threshold, right, convex)
                options = threshold, low, high, right, convex
                for kernel in forms(moments.drawn_equal_mass_sums)[: None if size == 13 else 1]:
                    total, out = np.full(2, np.nan), np.full((2, n_bins, 2), np.nan)
                    kernel(*arrays, *options, np.array(MOMENTS[:2]), rows, total, out)
                    for r in range(2):
                        drawn = (np.bincount(rows[r], minlength=n) * v).tolist()
                        weight, sums = expected_sums(sample, drawn, fields)
                        assert total[r] == pytest.approx(weight, rel=1e-14)
                        assert out[..., r] == pytest.approx(sums, abs=1e-12 * max(1.0, v.max()))
