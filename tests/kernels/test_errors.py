"""Errors of replicates under hypotheses, compiled and as plain Python, against plain loops."""

from math import erf, exp, inf, pi, sqrt

import numpy as np
import pytest
import reference

from fastece.kernels import errors
from helpers.kernel_forms import forms

NORMS = [1.0, 2.0, 3.5, inf]


@pytest.mark.parametrize("norm", NORMS)
def test_norms_are_added_for_each_column(norm):
    x = np.random.default_rng(0).normal(size=(5, 7)) ** 9
    x[:, 2] = 0
    x[:, 3] = 1e-200
    expected = [reference.p_norm(column, norm) + 1 for column in x.T]
    for kernel in forms(errors.add_norm):
        out = np.ones(7)
        kernel(x, norm, np.empty(7), np.empty(7), out)
        assert out == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.7, 5.0, 60.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_rare_rows_follow_a_poisson_law(mean, sign):
    row, order = 0.01, np.random.default_rng(1).permutation(50).astype(np.int32)
    gap = sign * mean * row
    expected = reference.rare_noise(gap, row, 0.8, order)
    for kernel in forms(errors.rare_noise):
        out = np.empty(50)
        kernel(gap, row, 0.8, order, out)
        assert out == pytest.approx(expected, abs=1e-12)


def test_many_rare_rows_are_about_normal():
    order = np.arange(2000, dtype=np.int32)
    for kernel in forms(errors.rare_noise):
        out = np.empty(2000)
        kernel(30.0, 0.001, 1.0, order, out)
        assert out.mean() == pytest.approx(30, abs=1e-4)
        assert out.std() == pytest.approx((30 * 0.001) ** 0.5, rel=0.01)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("side", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 3, errors.LANES, errors.LANES + 9])
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
    for kernel in forms(errors.gap_errors):
        out = np.full((3, count), np.nan)
        kernel(gap, noise, null, errors.RareRows(row, part, which, order), float(side), norm, out)
        assert out == pytest.approx(np.array(expected), rel=1e-12)


# -- debiased errors -------------------------------------------------------------------------------


def chance_gap(gap, rate, count):
    """How much larger than a gap the mean size of a normal variable around it is."""
    t = sqrt(rate * (1 - rate) / count)
    mean = abs(gap) * erf(abs(gap) / (t * sqrt(2))) if t else abs(gap)
    return mean + t * sqrt(2 / pi) * exp(-(gap**2) / (2 * t * t) if t else -inf) - gap


def debiased(kernel, gap, weight, hits, square, norm=1.0):
    """The debiased error of a single bin."""
    out = np.empty(1)
    bins = (np.array([[x]]) for x in (gap, weight, hits, square))
    kernel(*bins, np.array([weight]), 0.0, False, norm, out)
    return out[0]


def test_the_gap_of_chance_is_that_of_many_normal_draws():
    z = np.random.default_rng(2).standard_normal(200_000)
    cases = (0.0, 0.5, 10.0), (0.1, 0.3, 20.0), (0.9, 0.5, 100.0), (0.2, 1.0, 3.0)
    for gap, rate, count in cases:
        t = sqrt(rate * (1 - rate) / count)
        chance = np.abs(gap + t * z).mean() - gap
        assert chance_gap(gap, rate, count) == pytest.approx(chance, abs=4 * t / sqrt(z.size))
        for kernel in forms(errors.debiased_errors):
            found = debiased(kernel, gap * count, count, rate * count, count)
            assert gap - found == pytest.approx(chance_gap(gap, rate, count), abs=1e-15)


def test_rows_are_counted_by_their_weights():
    for kernel in forms(errors.debiased_errors):
        for weight, square, count in ((6.0, 12.0, 3.0), (6.0, 9.0, 4.0)):
            found = debiased(kernel, 0.5 * weight, weight, 0.5 * weight, square, 2.0)
            assert found == pytest.approx(sqrt(0.25 - 0.25 / (count - 1)), abs=1e-15)
        for weight, square in ((6.0, 36.0), (1e-200, 0.0)):  # one row; the square is nothing
            assert debiased(kernel, 0.5 * weight, weight, 0.5 * weight, square, 2.0) == 0.0


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_debiased_errors_add_up_the_bins_that_are_not_empty(norm):
    gap, weight = np.array([[0.3, 0.0, -2.0]]), np.array([[1.0, 0.0, 8.0]])
    hits, square = np.array([[1.0, 0.0, 4.0]]), np.array([[1.0, 0.0, 16.0]])
    none, total, out = np.empty((0, 0)), np.array([9.0]), np.empty(1)
    for kernel in forms(errors.debiased_errors):
        for squares, count in ((square, 4.0), (none, 8.0)):
            part = 0.25 - chance_gap(0.25, 0.5, count)
            first, second = (0.3, part) if norm == 1 else (0.0, 0.0625 - 0.25 / (count - 1))
            expected = (first + 8 * second) / 9
            kernel(gap, weight, hits, squares, total, 0.0, False, norm, out)
            expected = expected if norm == 1 else sqrt(max(expected, 0.0))
            assert out[0] == pytest.approx(expected, abs=1e-15)
            kernel(gap, weight, hits, squares, total, 0.2, True, norm, out)
            expected = second / 3 if norm == 1 else sqrt(max(second / 3, 0.0))
            assert out[0] == pytest.approx(expected, abs=1e-15)
