"""Edges of bins of equal weight, compiled and as plain Python, against the definition."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
import reference

from fastece.kernels import NO_WEIGHTS, quantiles
from helpers.kernel_forms import forms


def test_a_cut_may_lie_between_scores_within_rounding_of_its_share():
    for kernel in forms(quantiles.cut_weights):
        for j, n_bins, total in ((1, 2, 1.0), (3, 7, 0.3), (9, 10, 1e8)):
            least, most = kernel(j, n_bins, total)
            share = Fraction(total) * j / n_bins
            assert least < share < most
            assert most - least == pytest.approx(2e-12 * total, rel=1e-3)


@pytest.mark.parametrize("right", [True, False])
def test_quantile_edges_and_knots_cut_where_the_definition_says(right):
    rng = np.random.default_rng(4)
    adjacent = np.nextafter(0.3, [0, 1, 1])
    sets = [rng.random(50), np.round(rng.random(60), 1), np.full(9, 0.4), np.array([0.7]),
            adjacent, np.repeat([0.0, 0.2, 1.0], 20)]  # fmt: skip
    for u in map(np.sort, sets):
        for w in (NO_WEIGHTS, rng.integers(0, 3, u.size) + (np.arange(u.size) == 0) * 1.0):
            for n_bins in (1, 2, 3, 10, 15):
                edges, knots = np.empty(n_bins + 1), np.empty(n_bins - 1)
                weights = w.tolist() or [1.0] * u.size
                expected = reference.quantile_edges(
                    u.tolist(), weights, n_bins, 0.0, 1.0, "right" if right else "left"
                )
                for kernel in forms(quantiles.quantile_edges):
                    kernel(u, w, 0.0, 1.0, right, edges, knots)
                    assert edges == pytest.approx(expected, abs=1e-16)
                    assert (np.diff(edges) >= 0).all()
                    closed = "right" if right else "left"
                    bins = [reference.which_bin(x, expected, closed) for x in u]
                    side = "left" if right else "right"
                    assert np.searchsorted(knots, u, side).tolist() == bins


@pytest.mark.parametrize("right", [True, False])
def test_edges_of_scores_that_count_once_are_those_with_weights(right):
    rng = np.random.default_rng(5)
    sets = [rng.random(n) for n in (1, 2, 5, 30, 300)] + [rng.random(300).round(d) for d in (1, 2)]
    for u in (*map(np.sort, sets), np.full(40, 0.3)):
        for n_bins in (1, 2, 3, 7, 10, 49, 400):
            once, plain = np.full((2, n_bins + 1), np.nan), np.full((2, n_bins - 1), np.nan)
            quantiles.quantile_edges(u, np.ones(u.size), 0.0, 1.0, right, once[0], plain[0])
            for kernel in forms(quantiles.count_edges):
                kernel(u, right, once[1], plain[1])
                assert once[1, 1:-1].tolist() == once[0, 1:-1].tolist()
                assert plain[1].tolist() == plain[0].tolist()


def test_no_scores_have_no_inner_edges():
    edges, knots = np.empty(4), np.empty(2)
    for kernel in forms(quantiles.quantile_edges):
        kernel(np.empty(0), NO_WEIGHTS, 0.2, 0.9, True, edges, knots)
        assert edges.tolist() == [0.2, 0.2, 0.2, 0.9]
        assert (knots == np.inf).all()


def test_total_weight_loses_nothing_to_rounding():
    w = np.array([1.0, 1e-16, 1e-16, 1e-16, 1e-16] * 50)
    for kernel in forms(quantiles.total_weight):
        assert kernel(w) == fsum(w) == float(sum(map(Fraction, w)))
