"""Errors of replicates under hypotheses, and their noise, against loops."""

from itertools import product
from math import inf

import numpy as np
import pytest
import reference

from fastece.kernels import errors

NORMS = [1.0, 2.0, 3.5, inf]


@pytest.mark.parametrize(("count", "chance"), [(1, 0.0), (1, 0.7), (3, 1e-6), (20, 0.9), (60, 0.3)])
@pytest.mark.parametrize("step", [0.01, -0.02])
def test_numbers_of_rows_follow_a_binomial_law(count, chance, step):
    order = np.random.default_rng(1).permutation(50).astype(np.int32)
    expected = reference.binomial_noise(0.3, step, count, chance, order)
    out = np.empty(50)
    errors.binomial_noise(0.3, step, float(count), chance, order, out)
    assert out == pytest.approx(expected, abs=1e-12)


def test_many_rows_are_about_normal():
    order = np.arange(2000, dtype=np.int32)
    out = np.empty(2000)
    errors.binomial_noise(30.0, 0.001, 1e5, 0.3, order, out)
    assert out.mean() == pytest.approx(30, abs=1e-4)
    assert out.std() == pytest.approx(0.001 * (1e5 * 0.3 * 0.7) ** 0.5, rel=0.01)


@pytest.mark.parametrize("norm", NORMS)
def test_errors_of_replicates_are_norms_of_noisy_gaps(norm):
    for side, count in product([0, 1, -1], [1, 3, errors.LANES, errors.LANES + 9]):
        check_errors_of_replicates(norm, count, side)


def check_errors_of_replicates(norm, count, side):
    rng = np.random.default_rng(count)
    gap, noise = rng.normal(size=(2, 3, 2, 4)) * 0.02
    gap[0] *= 1e-200
    noise[0] *= 1e-200
    gap[2, 0] = noise[2, 0] = 0.0
    null = rng.normal(size=(2, 4, count))
    # Two of the cells have few rows, and an order of their own.
    step = rng.choice([-0.01, 0.02], (3, 2, 4))
    chance = rng.random((3, 2, 4))
    which = np.full((2, 4), -1, np.int32)
    which[1, 2] = 0
    which[0, 0] = 1
    rows = np.zeros((3, 2, 4))
    rows[1:, 1, 2] = 9
    rows[1, 0, 0] = 1
    order = rng.permuted(np.tile(np.arange(count, dtype=np.int32), (2, 1)), axis=1)
    expected = []
    for m in range(3):
        rare = {
            (k, b): reference.binomial_noise(
                gap[m, k, b], step[m, k, b], int(rows[m, k, b]), chance[m, k, b], order[which[k, b]]
            )
            for k, b in np.argwhere(rows[m] > 0).tolist()
        }
        expected.append(reference.replicate_errors(gap[m], noise[m], null, rare, norm, side))
    out = np.full((3, count), np.nan)
    rare = errors.RareRows(step, rows, chance, which, order)
    errors.gap_errors(gap, noise, null, rare, float(side), norm, out)
    assert out == pytest.approx(np.array(expected), rel=1e-12)


def sums_of_bins(n_bins, count):
    """Gaps and weights (B, R) of bins, some of them empty, and the weights of all (R,)."""
    rng = np.random.default_rng(n_bins + count)
    weight = rng.integers(0, 4, (n_bins, count)) * rng.choice([1.0, 0.1, 1e-19], (n_bins, count))
    weight[:, 0] = 0.0  # a problem without rows
    gap = weight * rng.uniform(-1, 1, (n_bins, count))
    return gap, weight, weight.sum(axis=0)


@pytest.mark.parametrize("norm", [1.0, 2.0, inf])
def test_norms_have_the_same_bits_alone_and_among_others(norm):
    gap, weight, total = sums_of_bins(40, errors.LANES + 2)
    together = np.empty(total.size)
    errors.norms(gap, weight, total, norm, False, 0.0, together)
    for r in range(0, total.size, 16):
        alone = np.empty(1)
        column = [np.ascontiguousarray(sums[:, r : r + 1]) for sums in (gap, weight)]
        errors.norms(*column, total[r : r + 1], norm, False, 0.0, alone)
        assert alone[0] == together[r]
