"""The common call by one kernel, compiled and as plain Python, against the definition."""

import numpy as np
import pytest
import reference

from fastece.estimators.binned import Binned
from fastece.kernels import GAP, HITS, SCORE, WEIGHT, moments
from helpers.kernel_forms import forms
from helpers.strategies import as_lists

NO_CUTS = np.empty(0)
# The gap, whose sums nobody wants.
ALONE = np.array([GAP]), np.empty((0, 0))
LIMITS = [(0.0, 1.0), (0.2, 0.7)]


def class_vectors(n, n_classes, dtype=np.float64, seed=0):
    """Labels and class vectors."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.3), n).astype(dtype)
    return np.where(rng.random(n) < 0.5, prob.argmax(1), rng.integers(0, n_classes, n)), prob


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(("low", "high"), LIMITS)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_the_error_of_a_binary_problem_is_that_of_the_definition(dtype, low, high, right):
    rng = np.random.default_rng(1)
    fields = {"score_range": (low, high), "closed": "right" if right else "left"}
    for n in (1, 7, 1025):
        p, y = rng.random(n).round(2), rng.integers(0, 2, n).astype(dtype)
        for n_bins in (1, 2, 10, moments.MOST_BINS):
            expected = reference.ece(*as_lists(y, p), n_bins=n_bins, **fields)
            for kernel in forms(moments.hard_error):
                value = kernel(p, y, low, high, n_bins, right, NO_CUTS, 1e-3, *ALONE)
                assert value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("right", [True, False])
def test_bins_between_cuts_are_those_of_the_definition(right):
    rng = np.random.default_rng(2)
    edges = [0.1, 0.1, 0.25, 0.5, 0.5, 0.875, 0.9, 0.9]
    layout = Binned(edges=edges, closed="right" if right else "left").fixed_layout(7, 0.1, 0.9)
    for n in (1, 7, 1025):
        p, y = rng.integers(0, 9, n) / 8, rng.integers(0, 2, n)
        closed = "right" if right else "left"
        expected = reference.ece(*as_lists(y, p), edges=edges, closed=closed)
        for kernel in forms(moments.hard_error):
            value = kernel(p, y, 0.1, 0.9, 7, right, layout.grid.knots, 1e-3, *ALONE)
            assert value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 200])
def test_the_error_of_a_top_label_is_that_of_the_definition(n_classes, dtype):
    y, prob = class_vectors(40, n_classes, dtype)
    expected = reference.ece(*as_lists(y, prob))
    for kernel in forms(moments.hard_error):
        value = kernel(prob, y, 0.0, 1.0, 15, True, NO_CUTS, 1e-3, *ALONE)
        assert value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n", [1, 7, 2100])
def test_sums_of_bins_are_those_of_the_definition(n):
    rng = np.random.default_rng(n)
    p, y = rng.random(n).round(1), rng.integers(0, 2, n)
    kinds = np.array([GAP, WEIGHT, SCORE, HITS])
    _, cells = reference.cells((*as_lists(p, y), 0.0, 1.0), n_bins=10)
    weight, gap, score, hits = zip(*cells, strict=True)
    for kernel in forms(moments.hard_error):
        sums = np.full((4, 10), 7.0)
        value = kernel(p, y, 0.0, 1.0, 10, True, NO_CUTS, 1e-3, kinds, sums)
        assert value == kernel(p, y, 0.0, 1.0, 10, True, NO_CUTS, 1e-3, *ALONE)
        assert sums == pytest.approx(np.array([gap, weight, score, hits]), abs=1e-11)
        assert np.isnan(kernel(p, y + 1, 0.0, 1.0, 10, True, NO_CUTS, 1e-3, kinds, sums))


@pytest.mark.parametrize("n_classes", [None, 2, 200])
def test_what_is_not_good_has_no_value(n_classes):
    n = 130
    y = np.zeros(n, np.int64)
    p = np.full(n if n_classes is None else (n, n_classes), 1 / (n_classes or 2))
    for kernel in forms(moments.hard_error):

        def value(p, y, kernel=kernel):
            return kernel(p, y, 0.0, 1.0, 15, True, NO_CUTS, 1e-3, *ALONE)

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
