"""Sums over bins of a few drawn rows, compiled and as plain Python, against loops over the rows."""

import numpy as np
import pytest

from fastece.kernels import MOMENTS, subsets, weights
from helpers.kernel_cases import (
    RANGES_OF_QUANTILES,
    WEIGHTS,
    expected_sums,
    ordered_sets,
    quantile_fields,
    weights_of,
)
from helpers.kernel_forms import forms
from helpers.samples import sample_of

SETS = ordered_sets(80)


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
    for kernel in forms(subsets.drawn_sums):
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
                for kernel in forms(subsets.drawn_equal_mass_sums)[: None if size == 13 else 1]:
                    total, out = np.full(2, np.nan), np.full((2, n_bins, 2), np.nan)
                    kernel(*arrays, *options, np.array(MOMENTS[:2]), rows, total, out)
                    for r in range(2):
                        drawn = (np.bincount(rows[r], minlength=n) * v).tolist()
                        weight, sums = expected_sums(sample, drawn, fields)
                        assert total[r] == pytest.approx(weight, rel=1e-14)
                        assert out[..., r] == pytest.approx(sums, abs=1e-12 * max(1.0, v.max()))
