"""Rows, weights and groups at the limits of what sums of cells can tell."""

import numpy as np
import pytest

import fastece
from fastece import Accumulator


@pytest.mark.parametrize("noise", [1e-12, 6e-8])
def test_heaps_with_a_little_noise_are_not_told_apart_by_their_hits(noise):
    rng = np.random.default_rng(0)
    heap = rng.integers(1, 10, 20_000) / 10
    p, y = heap + noise * rng.normal(size=heap.size), rng.random(heap.size) < heap
    state = Accumulator().update(y, p)
    for name in ("ece_bayes", "ece_a", "ece_kde"):
        assert state.ece(name) == pytest.approx(fastece.ece(y, p, estimator=name), abs=1e-3), name
    assert state.estimate().confidence_interval.low == 0


def test_a_group_with_all_the_weight_there_may_be_does_not_overflow():
    state = Accumulator(n_replicates=320, seed=1).update([1, 0], [0.7, 0.7], [60, 4], groups=[0, 0])
    for _ in range(26):
        state.merge(state)
    values = state.bootstrap().bootstrap_distribution
    assert values == pytest.approx(np.full(values.size, state.ece()))
    with pytest.raises(ValueError, match="sample_weight: the weights"):
        state.merge(state)


def test_squared_distances_fit_up_to_the_limit():
    state = Accumulator(3).update([0], [[0.0, 0.0, 1.0]])
    for _ in range(32):
        state.merge(state)
    assert state.brier_score() == 2


@pytest.mark.parametrize("weight", [1e-10, 1e-5])
def test_small_weights_are_weights(weight):
    state = Accumulator().update([0, 1, 1], [0.7, 0.2, 0.4], [weight] * 3)
    assert state.ece() == pytest.approx(fastece.ece([0, 1, 1], [0.7, 0.2, 0.4]), abs=1e-4)
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is 1e-14"):
        state.update([0, 1, 1], [0.1, 0.2, 0.3], [0, 1, 1e-14])
    with pytest.raises(ValueError, match="at least 9"):
        Accumulator(n_replicates=1, seed=0).update([1], [0.3], [1e-7])


def test_replicates_that_drew_no_group_are_left_out():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    options = {"n_replicates": 1000, "seed": 0}
    state = Accumulator(**options).update(y, p, groups=np.arange(2000) % 5)
    for name in ("ece", "ece_kde", "brier_score"):
        result = state.bootstrap(name)
        assert 900 < result.bootstrap_distribution.size < 1000
        assert np.isfinite(result.bootstrap_distribution).all()
    with pytest.raises(ValueError, match="groups: are so few"):
        Accumulator(n_replicates=1, seed=0).update([1], [0.3]).bootstrap()


def test_settings_may_be_numbers_of_numpy():
    a, b = Accumulator(10, n_cells=900), Accumulator(np.int64(10), n_cells=np.int32(900))
    p = np.full((2, 10), 0.1)
    assert a.update([1, 2], p).merge(b.update([3, 4], p)).n == 4
    assert Accumulator(10, setting=np.int64(3)).merge(Accumulator(10, setting=3)).n == 0


def test_the_groups_3_and_3_point_0_are_one_and_objects_are_none():
    options = {"n_replicates": 64, "seed": 0}
    a = Accumulator(**options).update([1], [0.3], groups=[3])
    assert a == Accumulator(**options).update([1], [0.3], groups=np.array([3.0]))
    assert a == Accumulator(**options).update([1], [0.3], groups=np.array([np.int8(3)], object))
    assert a != Accumulator(**options).update([1], [0.3], groups=["3"])
    with pytest.raises(TypeError, match="groups: must be numbers or strings"):
        a.update([1], [0.3], groups=np.array([(1, 2), None], object)[:1])


def test_a_state_below_0_is_refused():
    state = Accumulator().update([1], [0.3])
    arrays = state.state_dict()
    arrays["fine"] = -arrays["fine"]
    with pytest.raises(ValueError, match="state: has weights or counts below 0"):
        Accumulator().load_state_dict(arrays)
