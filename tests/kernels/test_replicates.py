"""Sums over bins for 32 replicates, compiled and as plain Python, against loops over the rows."""

from math import fsum

import numpy as np
import pytest

from fastece.estimators.binned.replicates import GROUP_SIZES, order_rows
from fastece.kernels import NO_WEIGHTS, replicates
from helpers.kernel_cases import (
    RANGES_OF_QUANTILES,
    WEIGHTS,
    counts,
    expected_sums,
    ordered_sets,
    quantile_fields,
    weights_of,
)
from helpers.samples import R, runs_of, sample_of

MAX_ROWS_OF_SMALLEST_GROUPS, _ = GROUP_SIZES[0]
SETS = ordered_sets(MAX_ROWS_OF_SMALLEST_GROUPS)
SIZES = [size for _, size in GROUP_SIZES]


def rows_of(u, v, group):
    """Rows in increasing order of their scores, all in the range."""
    order = np.arange(u.size, dtype=np.int32)
    run, first = runs_of(u)
    return replicates.OrderedRows(
        u, u, v, order, run, first, skip=0, low=0.0, high=1.0, group=group
    )


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("moments", [1, 2, 3])
def test_tiles_are_added_run_by_run(convex, step, moments):
    rng = np.random.default_rng(2)
    n = 50
    cells = np.array([0, 2, 1, 2, 0], np.int32)
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
            # The upper cell comes first, which only matters where both cells are the same.
            if convex:
                expected[:, cell + step, g * R : (g + 1) * R] += part[moments:]
            expected[:, cell, g * R : (g + 1) * R] += part[:moments]
    out = np.full(expected.shape, np.nan)
    replicates.tile_sums(terms, order, starts, cells, step, c, out)
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("tile", [1, 7, 64, 1000])
@pytest.mark.parametrize("n", [1, 7, 63, 64, 150])
def test_rows_are_brought_into_tiles_and_runs(n, tile):
    lower = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
    expected = sorted(range(n), key=lambda i: (i // tile, lower[i], i))
    kinds = [(i // tile, lower[i]) for i in expected]
    first = [i for i in range(n) if i == 0 or kinds[i] != kinds[i - 1]]
    order, starts, runs = (np.full(n + k, -1, np.int32) for k in (0, 1, 0))
    count = replicates.arrange_tiles(lower, 9, tile, order, starts, runs)
    assert order.tolist() == expected
    assert starts[: count + 1].tolist() == [*first, n]
    assert runs[:count].tolist() == [kinds[i][1] for i in first]


def test_rounded_off_weights_are_kept():
    n = 3000
    v = np.concatenate([[1.0], np.full(n - 1, 1e-16)])
    c = np.ones((n, R), np.uint8)
    for group in SIZES:
        below = np.empty((2 ** (-(-n // group)).bit_length(), R))
        replicates.weights_below(c, rows_of(np.zeros(n), v, group), below)
        # Within a group nothing is kept: the loss is 15 or 63 of 2999 small weights.
        slack = 0 if group == 1 else 1e-15 + 1e-16 * group
        assert below[-(-n // group), 0] == pytest.approx(fsum(v), rel=slack, abs=0)
        replicates.weights_below(
            np.full((n, R), 255, np.uint8), rows_of(np.zeros(n), NO_WEIGHTS, group), below
        )
        expected = [255 * min(group * q, n) for q in range(-(-n // group) + 1)]
        assert below[: len(expected), 7].tolist() == expected


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_bins_of_equal_weight_equal_each_replicate(name, right, convex):
    s = SETS[name]
    rng = np.random.default_rng(6)
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
            total = np.full(2 * R, np.nan)
            out = np.full((2, n_bins, 2 * R), np.nan)
            replicates.equal_mass_sums(rows, terms, right, convex, c, total, out)
            for r in (0, 5, 6, 31, 40):  # replicate 5 has no row, 6 the last one alone
                drawn = (c[r // R, :, r % R] * v).tolist()
                weight, sums = expected_sums(sample, drawn, fields)
                assert total[r] == pytest.approx(weight, rel=1e-14)
                assert out[..., r] == pytest.approx(sums, abs=1e-12 * max(1.0, v.max()))
