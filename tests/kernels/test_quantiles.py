"""The sort, equal-mass edges and the sweep, by the definitions."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
import reference

from fastece.kernels import NO_WEIGHTS, quantiles


def test_a_cut_may_lie_between_scores_within_rounding_of_its_share():
    for j, n_bins, total in ((1, 2, 1.0), (3, 7, 0.3), (9, 10, 1e8)):
        lowest, highest = quantiles.cut_weights(j, n_bins, total)
        share = Fraction(total) * j / n_bins
        assert lowest < share < highest
        assert highest - lowest == pytest.approx(2e-12 * total, rel=1e-3)


@pytest.mark.parametrize("right", [True, False])
def test_quantile_edges_and_knots_equal_the_definition(right):
    rng = np.random.default_rng(4)
    adjacent = np.nextafter(0.3, [0, 1, 1])
    sets = [rng.random(50), np.round(rng.random(60), 1), np.full(9, 0.4), np.array([0.7]),
            adjacent, np.repeat([0.0, 0.2, 1.0], 20)]  # fmt: skip
    for u in map(np.sort, sets):
        integers = rng.integers(0, 3, u.size).astype(float)
        integers[0] += 1
        for w in (NO_WEIGHTS, integers):
            for n_bins in (1, 2, 3, 7, 10, 15):
                edges = np.empty(n_bins + 1)
                knots = np.empty(n_bins - 1)
                weights = w.tolist() or [1.0] * u.size
                expected = reference.quantile_edges(
                    u.tolist(), weights, n_bins, 0.0, 1.0, "right" if right else "left"
                )
                quantiles.quantile_edges(u, w, 0.0, 1.0, right, edges, knots)
                assert edges == pytest.approx(expected, abs=1e-16)
                assert (np.diff(edges) >= 0).all()
                closed = "right" if right else "left"
                bins = [reference.which_bin(x, expected, closed) for x in u]
                side = "left" if right else "right"
                assert np.searchsorted(knots, u, side).tolist() == bins


def test_no_scores_have_no_inner_edges():
    edges = np.empty(4)
    knots = np.empty(2)
    quantiles.quantile_edges(np.empty(0), NO_WEIGHTS, 0.2, 0.9, True, edges, knots)
    assert edges.tolist() == [0.2, 0.2, 0.2, 0.9]
    assert (knots == np.inf).all()


def test_total_weight_loses_nothing_to_rounding():
    w = np.array([1.0, 1e-16, 1e-16, 1e-16, 1e-16] * 50)
    assert quantiles.total_weight(w) == fsum(w) == float(sum(map(Fraction, w)))


def score_sets(n):
    """Scores with ties of every kind, and many that share their first bits."""
    rng = np.random.default_rng(n)
    return [
        rng.random(n), rng.random(n).round(1), np.full(n, 0.3), 1 - rng.random(n) * 1e-9,
        rng.random(n).astype(np.float32).astype(np.float64), np.where(rng.random(n) < 0.5, 0, -0.0),
        rng.beta(0.05, 0.05, n), 0.5 + (np.arange(n) % 40)[::-1] * 2.0**-50,
    ]  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 30, 150, quantiles.MAX_FEW_SCORES + 1])
def test_increasing_order_is_stable(n):
    # Plain loops over many scores take seconds, so one set is enough there.
    for s in score_sets(n)[: None if n <= 150 else 1]:
        order = np.argsort(s, kind="stable")
        y = (np.arange(n) % 3 == 0).astype(np.uint8)
        for hit, row in ((y, []), ([], np.arange(n)), (y, np.arange(n))):
            score = s.copy()
            hit = np.array(hit, np.uint8)
            row = np.array(row, np.int32)
            quantiles.increasing_order(score, hit, row)
            assert score.tolist() == np.sort(s).tolist()
            assert not np.signbit(score).any()
            assert hit.tolist() in ([], y[order].tolist())
            assert row.tolist() in ([], order.tolist())


def sorted_rows(n, kind, rng):
    """Sorted scores, hits and weights; weights other than the first may be 0."""
    s = np.sort({"ties": rng.random(n).round(1), "one": np.full(n, 0.4)}.get(kind, rng.random(n)))
    y = s > 0.5 if kind == "apart" else rng.random(n) < s
    if kind == "nearly apart":
        y = s > 0.5
        y[n // 2 - 1 : n // 2 + 1] ^= True
    weight = rng.integers(0, 3, n).astype(np.float64)
    weight[0] += 1
    return s, y.astype(np.uint8), weight


@pytest.mark.parametrize("kind", ["spread", "ties", "one", "apart", "nearly apart"])
def test_the_largest_number_of_monotone_bins_equals_the_definition(kind):
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 25):
        s, y, v = sorted_rows(n, kind, rng)
        for w in (NO_WEIGHTS, v):
            weights = w.tolist() or None
            once = np.ones(n) if weights is None else w
            problem = (s.tolist(), y.tolist(), 0.0, 1.0)
            max_bins = int((once > 0).sum())
            expected = reference.sweep_bins(problem, weights)
            cells = reference.members(problem, weights, n_bins=expected, edges="quantile")[1]
            filled = [cell for cell in cells if cell]
            end = np.empty(n, np.int32)
            sums_of_hits = np.empty(n)
            sums_of_misses = np.empty(n)
            guide = np.empty(min(n, 9) + 1, np.int32)
            count = quantiles.run_sums(s, y, w, end, sums_of_hits, sums_of_misses, guide)
            assert count == np.unique(s[once > 0]).size
            hits = sums_of_hits[:count].copy()
            misses = sums_of_misses[:count].copy()
            last = np.empty(count, np.int32)
            assert hits[-1] == once @ y
            assert misses[-1] == once @ (1 - y)
            n_bins = quantiles.monotone_bin_count(hits, misses, guide, max_bins, 0.0)
            assert n_bins == expected
            n_filled = quantiles.occupied_bins(hits, misses, guide, n_bins, 0, count - 1, last)
            assert n_filled == len(filled)
            assert [s[end[k] - 1] for k in last[:n_filled]] == [cell[-1][0] for cell in filled]
            ends, n_bins = quantiles.sweep_bins(s, y, w, max_bins, 0.0)
            assert n_bins == expected
            assert ends.tolist() == end[last[:n_filled]].tolist()


def test_neither_a_heavy_last_score_nor_rounding_is_a_decrease():
    hits = np.array([1.0, 1.0, 11.0])
    misses = np.array([0.0, 1.0, 1.0])
    guide = np.array([0, 2, 2, 2], np.int32)
    assert quantiles.monotone_bin_count(hits, misses, guide, 3, 0.0) == 3
    hits = np.array([1.0, 2.0])
    misses = np.array([3.0, 6.0 + 1e-13])
    assert not quantiles.has_decrease(hits, misses, np.arange(2, dtype=np.int32), 1e-12)
