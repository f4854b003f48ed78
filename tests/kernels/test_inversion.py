"""Errors of replicates under hypotheses, compiled and as plain Python, against plain loops."""

from math import inf

import numpy as np
import pytest
import reference

from fastece.kernels import inversion
from helpers.kernel_forms import forms

NORMS = [1.0, 2.0, 3.5, inf]


@pytest.mark.parametrize("norm", NORMS)
def test_norms_are_added_for_each_column(norm):
    x = np.random.default_rng(0).normal(size=(5, 7)) ** 9
    x[:, 2] = 0
    x[:, 3] = 1e-200
    expected = [reference.p_norm(column, norm) + 1 for column in x.T]
    for kernel in forms(inversion.add_norm):
        out = np.ones(7)
        kernel(x, norm, np.empty(7), np.empty(7), out)
        assert out == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.7, 5.0, 60.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_rare_rows_follow_a_poisson_law(mean, sign):
    row, order = 0.01, np.random.default_rng(1).permutation(50).astype(np.int32)
    gap = sign * mean * row
    expected = reference.rare_noise(gap, row, 0.8, order)
    for kernel in forms(inversion.rare_noise):
        out = np.empty(50)
        kernel(gap, row, 0.8, order, out)
        assert out == pytest.approx(expected, abs=1e-12)


def test_many_rare_rows_are_about_normal():
    order = np.arange(2000, dtype=np.int32)
    for kernel in forms(inversion.rare_noise):
        out = np.empty(2000)
        kernel(30.0, 0.001, 1.0, order, out)
        assert out.mean() == pytest.approx(30, abs=1e-4)
        assert out.std() == pytest.approx((30 * 0.001) ** 0.5, rel=0.01)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("side", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 3, inversion.LANES, inversion.LANES + 9])
def test_errors_of_replicates_are_norms_of_noisy_gaps(norm, count, side):
    rng = np.random.default_rng(count)
    gap, noise = rng.normal(size=(2, 3, 2, 4)) * 0.02
    null = rng.normal(size=(2, 4, count))
    which, part = np.full((2, 4), -1, np.int32), np.zeros((3, 2, 4))
    row = np.full((2, 4), 0.01)
    which[1, 2], which[0, 0] = 0, 1
    part[:, 1, 2], part[1, 0, 0] = 0.9, 1.0
    order = rng.permuted(np.tile(np.arange(count, dtype=np.int32), (2, 1)), axis=1)
    expected = []
    for m in range(3):
        rare = {
            (k, b): reference.rare_noise(gap[m, k, b], 0.01, part[m, k, b], order[which[k, b]])
            for k, b in np.argwhere(part[m] > 0).tolist()
        }
        expected.append(reference.replicate_errors(gap[m], noise[m], null, rare, norm, side))
    for kernel in forms(inversion.statistics):
        out = np.full((3, count), np.nan)
        kernel(gap, noise, null, row, part, which, order, float(side), norm, out)
        assert out == pytest.approx(np.array(expected), rel=1e-12)


def test_squares_are_of_what_a_cell_brings_with_all_its_images():
    rng = np.random.default_rng(3)
    for count, reach in ((6, 2), (4, 7), (1, 3)):
        taps, x = rng.random(reach + 1), rng.random((count + 4, 2))
        at = np.arange(-reach, count + reach) % (2 * count)
        fold = (np.minimum(at, 2 * count - 1 - at) + 2).astype(np.int32)
        expected = np.zeros((count, 2))
        for j in range(count):
            for cell in range(count + 4):
                brought = sum(
                    taps[abs(m)] for m in range(-reach, reach + 1) if fold[j + reach + m] == cell
                )
                expected[j] += brought**2 * x[cell]
        for kernel in forms(inversion.squared_sums):
            out = np.full((count, 2), np.nan)
            kernel(taps, fold, x, out)
            assert out == pytest.approx(expected, rel=1e-13)
