"""Sums of rows over cells, compiled and as plain Python, against loops over the rows."""

from math import inf

import numpy as np
import pytest
import reference

from fastece.estimators.binned.layouts import fixed_layout
from fastece.kernels import (
    MOMENTS,
    NO_WEIGHTS,
    PACK,
    moments,
    weights,
)
from helpers.kernel_cases import (
    RANGES_OF_QUANTILES,
    WEIGHTS,
    bin_rule,
    expected_sums,
    ordered_sets,
    quantile_fields,
    seven_bins,
    weights_of,
)
from helpers.samples import sample_of
from helpers.strategies import as_lists

SETS = ordered_sets(80)
CUTS = (0.1, 0.1, 0.25, 0.5, 0.5, 0.875, 0.9, 0.9)


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("problems", [1, 3, moments.LANES + 1, moments.BLOCK + 2])
def test_cell_moments_are_the_sums_of_shares(problems, even, weighted, convex):
    rng = np.random.default_rng(3)
    # A single problem has two blocks of rows and a part of one; blocks of vectors have few rows.
    n = {1: 2 * moments.BLOCK + 37, moments.BLOCK + 2: 2}.get(problems, 7)
    prob = rng.dirichlet(np.full(problems, 0.5), n) if problems > 1 else rng.random(n)
    label = rng.integers(0, max(2, problems), n)
    label = label.astype(np.uint8 if problems == 1 else np.int64)
    w = rng.random(n) if weighted else NO_WEIGHTS
    chosen = seven_bins(even, convex)
    cuts = chosen.edges.tolist()
    centres = reference.centres(cuts)
    expected = np.zeros((problems, 6, 7))
    scores = prob.reshape(n, problems)
    hits = label[:, None] == np.arange(problems) if problems > 1 else label[:, None]
    for k in range(problems):
        for s, y, v in zip(scores[:, k], hits[:, k], w if weighted else np.ones(n), strict=True):
            if s > 0.05:
                shares = [(reference.which_bin(s, cuts), 1.0)]
                if convex:
                    shares = reference.convex_shares(s, centres)
                for b, a in shares:
                    of_row = np.array([y - s, 1, s, y, v, (1 + PACK * y) / PACK])
                    expected[k, :, b] += a * v * of_row
    out = np.full((6, problems, chosen.cells), np.nan)
    moments.cell_moments(prob, label, w, chosen.grid_fields, 0.05, np.array(MOMENTS), out)
    out[5] /= PACK
    out = chosen.spread(out).swapaxes(0, 1)
    assert out == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("edges", [None, CUTS])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("n", [1, 7, 2100])
def test_plain_rows_have_the_sums_of_the_definition_and_the_bits_of_all_rows(n, right, edges):
    rng = np.random.default_rng(n)
    y = rng.integers(0, 2, n).astype(np.uint8)
    closed = "right" if right else "left"
    if edges is None:
        p = rng.random(n).round(1)
        fields = {"n_bins": 10, "score_range": (0.2, 1.0)}
        rule = bin_rule(10, 0.2, 1.0, closed_right=right)
    else:
        p = rng.integers(0, 9, n) / 8
        fields = {"edges": list(edges)}
        rule = bin_rule(len(edges) - 1, 0.1, 0.9, edges=edges, closed_right=right)
    grid = fixed_layout(rule).grid_fields
    _, cells = reference.cells((*as_lists(p, y), 0.0, 1.0), closed=closed, **fields)
    weight, gap, score, hits = zip(*cells, strict=True)
    general = np.empty((4, 1, len(gap)))
    moments.cell_moments(p, y, NO_WEIGHTS, grid, -inf, np.arange(4), general)
    assert general[:, 0] == pytest.approx(np.array([gap, weight, score, hits]), abs=1e-11)
    sums = np.full((4, 1, len(gap)), np.nan)
    gaps = np.full((1, 1, len(gap)), np.nan)
    moments.hard_moments(p, y, grid, sums)
    moments.hard_moments(p, y, grid, gaps)
    assert sums.tolist() == general.tolist()
    assert gaps.tolist() == sums[:1].tolist()


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_bins_of_equal_weight_equal_the_definition(name, right, convex):
    ordered = SETS[name]
    rng = np.random.default_rng(7)
    n = len(ordered)
    s = rng.permutation(ordered)
    y = rng.random(n) < s
    for kind in WEIGHTS:
        sample = sample_of(s, y, weights_of(kind, n))
        v = np.ones(n) if sample.v is None else sample.v
        for n_bins, low, high, threshold in RANGES_OF_QUANTILES:
            fields = quantile_fields(n_bins, low, high, threshold, right, convex)
            rule = low, high, right, convex, threshold
            _, expected = expected_sums(sample, v.tolist(), fields)
            edges = np.full((1, n_bins + 1), np.nan)
            out = np.full((2, 1, n_bins), np.nan)
            arrays = sample.s[None], sample.y[None], weights(sample.v)
            moments.equal_mass_moments(*arrays, rule, np.array(MOMENTS[:2]), edges, out)
            assert out[:, 0] == pytest.approx(expected, abs=1e-12 * max(1.0, v.max()))
            assert (np.diff(edges) >= 0).all()
            assert (edges[0, 0], edges[0, -1]) == (low, high)


@pytest.mark.parametrize("convex", [False, True])
def test_problems_in_bins_of_equal_weight_have_the_bits_of_single_problems(convex):
    rng = np.random.default_rng(5)
    n = 1100
    n_bins = 5
    score = rng.random((3, n))
    hit = rng.integers(0, 2, (3, n)).astype(np.uint8)
    weight = rng.random(n) + 0.1
    rule = 0.0, 1.0, True, convex, -inf
    kinds = np.array(MOMENTS[:2])
    kernel = moments.equal_mass_moments
    edges = np.empty((3, n_bins + 1))
    out = np.empty((2, 3, n_bins))
    kernel(score, hit, weight, rule, kinds, edges, out)
    for k in range(3):
        line = np.empty((1, n_bins + 1))
        sums = np.empty((2, 1, n_bins))
        kernel(score[k : k + 1], hit[k : k + 1], weight, rule, kinds, line, sums)
        assert line[0].tolist() == edges[k].tolist()
        assert sums[:, 0].tolist() == out[:, k].tolist()


@pytest.mark.parametrize("low", [0.0, 0.4])
@pytest.mark.parametrize("power", [0.5, 40.0])
def test_weights_of_one_have_the_bits_of_no_weights(power, low):
    rng = np.random.default_rng(7)
    n = 1100
    score = 1 - rng.random((1, n)) ** power
    hit = (rng.random((1, n)) < score).astype(np.uint8)
    rule = low, 1.0, True, False, -inf
    kinds = np.array(MOMENTS[:2])
    edges = np.empty((2, 1, 16))
    sums = np.empty((2, 2, 1, 15))
    for weight, edges_of_weight, sums_of_weight in zip(
        (NO_WEIGHTS, np.ones(n)), edges, sums, strict=True
    ):
        moments.equal_mass_moments(score, hit, weight, rule, kinds, edges_of_weight, sums_of_weight)
    assert edges[0].tolist() == edges[1].tolist()
    assert sums[0].tolist() == sums[1].tolist()


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("cells", [1, 4])
def test_drawn_rows_are_added_one_after_the_other(convex, cells):
    rng = np.random.default_rng(8)
    n = 30
    last = max(cells - 2, 0) if convex else cells - 1
    cell = rng.integers(0, last + 1, n)
    share = rng.random(n) if convex else np.ones(n)
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
    out = np.full(expected.shape, np.nan)
    moments.drawn_sums(records, min(cells - 1, 1), rows, out)
    assert out == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_drawn_bins_of_equal_weight_equal_the_drawn_rows(name, right, convex):
    s = SETS[name]
    rng = np.random.default_rng(7)
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
                rule = low, high, right, convex, threshold
                total = np.full(2, np.nan)
                out = np.full((2, n_bins, 2), np.nan)
                moments.drawn_equal_mass_sums(
                    *arrays, rule, np.array(MOMENTS[:2]), rows, total, out
                )
                for r in range(2):
                    drawn = (np.bincount(rows[r], minlength=n) * v).tolist()
                    weight, sums = expected_sums(sample, drawn, fields)
                    assert total[r] == pytest.approx(weight, rel=1e-14)
                    assert out[..., r] == pytest.approx(sums, abs=1e-12 * max(1.0, v.max()))
