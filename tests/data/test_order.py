"""Rows in order of the score, edges between them, and weights that can be added."""

import numpy as np
import pytest
import reference

from fastece.data.sample import scale_weights
from fastece.data.source import one_problem
from fastece.estimators.layouts import order_rows, quantile_edges, sort_scores
from helpers.samples import runs_of, sample_of


@pytest.mark.parametrize("threshold", [-np.inf, 0.1, 0.3, 0.35, 1.0])
def test_rows_that_exist_are_those_above_the_threshold(threshold):
    sample = sample_of([0.9, 0.1, 0.3, 0.3, 0.5], [1, 0, 1, 0, 1], [5.0, 1.0, 2.0, 3.0, 4.0])
    rows = order_rows(sample, 0.2, 0.6, threshold)
    kept = sample.s > threshold
    assert rows.skip == np.count_nonzero(~kept)
    assert rows.s.tolist() == sample.s[kept].tolist()
    assert rows.v.tolist() == sample.v[kept].tolist()
    assert rows.u.tolist() == sample.s[kept].clip(0.2, 0.6).tolist()
    assert rows.order.tolist() == list(range(len(rows.s)))
    run, first = runs_of(rows.u)
    assert (rows.run.tolist(), rows.first.tolist()) == (run.tolist(), first.tolist())
    assert (rows.low, rows.high) == (0.2, 0.6)


def test_scores_outside_the_range_are_one_run():
    rows = order_rows(sample_of([0.0, 0.1, 0.5, 0.8, 0.9], [0] * 5), 0.25, 0.6)
    assert rows.u.tolist() == [0.25, 0.25, 0.5, 0.6, 0.6]
    assert rows.first.tolist() == [0, 2, 3, 5]
    inside = order_rows(sample_of([0.3, 0.5], [0, 1]), 0.25, 0.6)
    assert inside.u is inside.s  # nothing to move


def test_arrays_are_of_the_types_that_kernels_are_compiled_for():
    for weight in (None, [1.0, 2.0]):
        rows = order_rows(sample_of([0.3, 0.5], [0, 1], weight), 0.0, 1.0)
        assert rows.order.dtype == rows.run.dtype == rows.first.dtype == np.int32
        assert rows.v.tolist() == (weight or [])
        for array in (rows.s, rows.u, rows.order, rows.run, rows.first):
            assert array.flags.carray


def test_scores_are_sorted_with_their_weights():
    s, w = np.array([0.5, 0.1, 0.5, 0.3]), np.array([1.0, 2.0, 3.0, 4.0])
    assert [x.tolist() for x in sort_scores(s, w)] == [[0.1, 0.3, 0.5, 0.5], [2.0, 4.0, 1.0, 3.0]]
    alone, nothing = sort_scores(s, None)
    assert (alone.tolist(), nothing) == ([0.1, 0.3, 0.5, 0.5], None)
    assert s.tolist() == [0.5, 0.1, 0.5, 0.3]


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("limits", [(0.0, 1.0), (0.25, 0.6)])
def test_edges_are_those_of_the_definition(limits, right):
    rng = np.random.default_rng(0)
    u = np.sort(rng.random(50).round(2))
    for w in (None, rng.integers(1, 4, 50).astype(float)):
        edges, cuts = quantile_edges(u, w, 6, *limits, right)
        weights = [1.0] * 50 if w is None else w.tolist()
        expected = reference.quantile_edges(u.tolist(), weights, 6, *limits, None)
        assert edges.tolist() == expected
        side = "left" if right else "right"
        closed = "right" if right else "left"
        inside = u.clip(*limits)
        bins = [reference.which_bin(x, [limits[0], *cuts, limits[1]], closed) for x in inside]
        assert np.searchsorted(cuts, inside, side).tolist() == bins
        assert bins == sorted(bins)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_weights_of_any_size_become_such_as_can_be_multiplied(scale):
    v = np.array([1.0, 2.5, 1e-8]) * scale
    sample = sample_of([0.2, 0.5, 0.7], [0, 1, 1], v)
    for problem in (sample, one_problem(sample)):
        scaled, unit = scale_weights(problem)
        assert (scaled.v * unit).tolist() == v.tolist()  # nothing is rounded
        assert np.frexp(unit)[0] == 0.5  # a power of two
        assert 0.5 < scaled.v.max() < 1e10
        assert (scaled.v > 0).all()


def test_weights_are_left_alone_where_they_can_be():
    sample = sample_of([0.2, 0.5], [0, 1], [1.0, 3.0])
    assert scale_weights(sample) == (sample, 1.0)
    without = sample_of([0.2, 0.5], [0, 1])
    assert scale_weights(without) == (without, 1.0)
    # A row is not to vanish: a weight that is next to nothing stays greater than 0.
    scaled, _ = scale_weights(sample_of([0.2, 0.5], [0, 1], [1e300, 1e-300]))
    assert scaled.v.min() > 0
