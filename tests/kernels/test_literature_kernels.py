"""Kernels of the debiased errors, the sweep, MMCE and smooth errors, and the sort by digits."""

from math import erf, exp, inf, pi, sqrt

import numpy as np
import pytest
import reference

from fastece.kernels import NO_WEIGHTS, density, moments, quantiles, vectors
from helpers.kernel_forms import PLAIN, forms

# -- sorting ---------------------------------------------------------------------------------------


def score_sets(n):
    """Scores with ties of every kind, and many that share their first bits."""
    rng = np.random.default_rng(n)
    return [
        rng.random(n), rng.random(n).round(1), np.full(n, 0.3), 1 - rng.random(n) * 1e-9,
        rng.random(n).astype(np.float32).astype(np.float64), np.where(rng.random(n) < 0.5, 0, -0.0),
        rng.beta(0.05, 0.05, n), 0.5 + (np.arange(n) % 40)[::-1] * 2.0**-50,
    ]  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 30, 150])
def test_increasing_order_is_stable(n):
    for s in score_sets(n):
        for kernel in forms(quantiles.increasing_order):
            order = np.empty(n, np.int32)
            kernel(s, order)
            assert order.tolist() == np.argsort(s, kind="stable").tolist()


def test_keys_are_moved_into_the_order_of_one_digit():
    rng, rows = np.random.default_rng(1), np.arange(90, dtype=np.int32)
    key = rng.integers(0, 2**62, 90).astype(np.uint64)
    expected = np.argsort(key >> np.uint64(54) & np.uint64(255), kind="stable")
    for kernel in forms(quantiles.sort_digit):
        moved, moved_row = np.empty_like(key), np.empty_like(rows)
        kernel(key, rows, np.uint64(54), moved, moved_row)
        assert moved.tolist() == key[expected].tolist()
        assert moved_row.tolist() == expected.tolist()


def test_few_neighbours_are_sorted_by_insertion_and_many_are_not():
    for kernel in forms(quantiles.sort_neighbours):
        key, order = np.array([3, 1, 2, 16 + 2, 16 + 1], np.uint64), np.arange(5, dtype=np.int32)
        assert kernel(key, order, np.uint64(4))
        assert key.tolist() == [1, 2, 3, 17, 18]
        assert order.tolist() == [1, 2, 0, 4, 3]
        key = np.arange(quantiles.FEW + 1, dtype=np.uint64)[::-1].copy()
        assert not kernel(key, np.arange(key.size, dtype=np.int32), np.uint64(10))


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
        for kernel in forms(moments.debiased_errors):
            found = debiased(kernel, gap * count, count, rate * count, count)
            assert gap - found == pytest.approx(chance_gap(gap, rate, count), abs=1e-15)


def test_rows_are_counted_by_their_weights():
    for kernel in forms(moments.debiased_errors):
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
    for kernel in forms(moments.debiased_errors):
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


# -- the sweep -------------------------------------------------------------------------------------


def sorted_rows(n, kind, rng):
    """Sorted scores, hits and weights, some of which are 0."""
    s = np.sort({"ties": rng.random(n).round(1), "one": np.full(n, 0.4)}.get(kind, rng.random(n)))
    y = s > 0.5 if kind == "apart" else rng.random(n) < s
    if kind == "nearly apart":
        y = s > 0.5
        y[n // 2 - 1 : n // 2 + 1] ^= True
    return s, y.astype(np.uint8), rng.integers(0, 3, n).astype(np.float64) + (np.arange(n) == 0)


@pytest.mark.parametrize("kind", ["spread", "ties", "one", "apart", "nearly apart"])
def test_the_most_bins_without_a_decrease_are_those_of_the_definition(kind):
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 25):
        s, y, v = sorted_rows(n, kind, rng)
        for w in (NO_WEIGHTS, v):
            weights = w.tolist() or None
            once = np.ones(n) if weights is None else w
            problem = (s.tolist(), y.tolist(), 0.0, 1.0)
            most = int((once > 0).sum())
            expected = reference.sweep_bins(problem, weights)
            cells = reference.members(problem, weights, n_bins=expected, edges="quantile")[1]
            filled = [cell for cell in cells if cell]
            for k in range(1 if PLAIN else 2):
                run_sums, most_bins, occupied_bins = (
                    forms(kernel)[k]
                    for kernel in (quantiles.run_sums, quantiles.most_bins, quantiles.occupied_bins)
                )
                end, sums = np.empty(n, np.int32), np.empty((3, n))
                guide = np.empty(n + 1, np.int32)
                count = run_sums(s, y, w, end, *sums, guide)
                kept = once > 0
                assert count == np.unique(s[kept]).size
                weight, hits, misses = (part[:count].copy() for part in sums)
                assert weight[-1] == once.sum()
                assert hits[-1] == once @ y
                assert misses.tolist() == (weight - hits).tolist()
                guide, last = guide[: count + 1], np.empty(count, np.int32)
                n_bins = most_bins(weight, hits, misses, guide, most, 0.0)
                assert n_bins == expected
                found = occupied_bins(weight, guide, n_bins, last)
                assert found == len(filled)
                assert [s[end[k] - 1] for k in last[:found]] == [cell[-1][0] for cell in filled]


def test_cuts_are_behind_the_run_that_reaches_their_share():
    weight = np.array([1.0, 2.0, 6.0, 8.0])
    s, y, guide = np.arange(4.0), np.zeros(4, np.uint8), np.empty(5, np.int32)
    for kernel in forms(quantiles.run_sums):
        end, sums = np.empty(4, np.int32), np.empty((3, 4))
        assert kernel(s, y, np.array([1.0, 1.0, 4.0, 2.0]), end, *sums, guide) == 4
        assert sums[0].tolist() == weight.tolist()
        assert guide.tolist() == [0, 1, 2, 2, 3]
    for kernel in forms(quantiles.run_of_cut):
        assert [kernel(weight, guide, j, 4) for j in (1, 2, 3)] == [1, 2, 2]
        assert [kernel(weight, guide, j, 8) for j in range(1, 8)] == [0, 1, 2, 2, 2, 2, 3]
    for kernel in forms(quantiles.occupied_bins):
        last = np.empty(4, np.int32)
        assert kernel(weight, guide, 8, last) == 4
        assert kernel(weight, guide, 4, last) == 3
        assert last[:3].tolist() == [1, 2, 3]
    for kernel in forms(quantiles.is_less):
        assert kernel(1.0, 3.0, 2.0, 2.0, 0.0)
        assert not kernel(1.0, 3.0, 2.0, 6.0, 0.0)
        assert not kernel(1.0, 3.0, 1.0, 3.0 - 1e-13, 1e-12)
    hits, misses = np.array([0.0, 1.0, 1.0, 3.0]), np.array([1.0, 1.0, 5.0, 5.0])
    for kernel in forms(quantiles.has_decrease):
        assert not kernel(weight, hits, misses, guide, 2, 1, 2, 0.0)
        assert kernel(weight, hits, misses, guide, 8, 1, 2, 0.0)
        assert kernel(weight, misses, hits, guide, 8, 0, 3, 0.0)
        rising = np.array([0.0, 0.0, 1.0, 2.0]), np.array([1.0, 2.0, 5.0, 6.0])
        assert not kernel(weight, *rising, guide, 8, 2, 3, 0.0)
    heavy = np.array([1.0, 2.0, 12.0]), np.array([1.0, 1.0, 11.0]), np.array([0.0, 1.0, 1.0])
    for kernel in forms(quantiles.most_bins):  # no cut of three bins is before the last score
        assert kernel(*heavy, np.array([0, 2, 2, 2], np.int32), 3, 0.0) == 3


# -- pairs and gaps --------------------------------------------------------------------------------


def test_sums_of_pairs_are_those_over_all_pairs():
    rng = np.random.default_rng(4)
    for n in (1, 2, 30):
        s = np.sort(rng.random(n).round(1))
        gap, v, c = rng.normal(size=n), rng.random(n), rng.integers(0, 3, (2, n, 4))
        near = np.exp(-np.abs(s[:, None] - s) / 0.4)
        decay = np.exp(-np.append(np.diff(s), inf) / 0.4)
        loss = 1 - decay**2
        for kernel in forms(vectors.pair_sums):
            for weight in (NO_WEIGHTS, v):
                out, total = np.full((2, 4), np.nan), np.full((2, 4), -1.0)
                kernel(c.astype(np.uint8), gap, weight, decay, loss, out, total)
                r = c * gap[:, None]
                assert out == pytest.approx(np.einsum("gir,ij,gjr->gr", r, near, r), abs=1e-12)
                assert (out >= 0).all()
                expected = np.einsum("gir,i->gr", c, v) if weight.size else -np.ones((2, 4))
                assert total == pytest.approx(expected)


def test_gaps_are_shared_by_the_cells_around_their_score():
    s = np.array([0.0, 0.1, 0.125, 0.3, 0.625, 1.0])
    gap, rng = np.array([1.0, -1.0, 2.0, 0.5, -0.25, 3.0]), np.random.default_rng(5)
    share = np.array([  # centres at 1/8, 3/8, 5/8, 7/8; beyond them the end cell has all
        [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1],
    ])  # fmt: skip
    for kernel in forms(density.spread_gaps):
        for lanes in (1, 3):
            c, out = rng.integers(0, 3, (6, lanes)), np.full((lanes, 4), np.nan)
            kernel(c.astype(np.float64), s, gap, out)
            assert out == pytest.approx((c * gap[:, None]).T @ share, abs=1e-14)
            assert out.sum(1) == pytest.approx(gap @ c)
