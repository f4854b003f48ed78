"""Joint p-values, against plain loops."""

import numpy as np
import pytest

from fastece.inference.joint import joint_p_values


def by_loops(alone, statistics):
    """Step-down min-p of p-values (S,) and statistics (S, R), hypothesis by hypothesis."""
    n_draws = statistics.shape[1]
    p_values_of_draws = [
        [np.count_nonzero(line >= each) / (n_draws + 1) for each in line] for line in statistics
    ]
    joint = np.full(alone.size, np.nan)
    left = sorted(np.flatnonzero(~np.isnan(alone)), key=lambda i: alone[i])
    largest = 0.0
    while left:
        smallest = [min(p_values_of_draws[i][r] for i in left) for r in range(n_draws)]
        n_as_small = sum(p_value <= alone[left[0]] for p_value in smallest)
        probability = max(n_as_small / (n_draws + 1), alone[left[0]])
        largest = max(largest, min(probability, len(left) * alone[left[0]], 1.0))
        joint[left.pop(0)] = largest
    return joint


@pytest.mark.parametrize("n_hypotheses", [1, 2, 7])
@pytest.mark.parametrize("n_draws", [3, 60])
@pytest.mark.parametrize("values", [2, 10**9])
def test_joint_p_values_equal_plain_loops(n_hypotheses, n_draws, values):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        statistics = rng.integers(-values, values, (n_hypotheses, n_draws)).astype(np.float64)
        statistics[-1] = statistics[0]
        alone = rng.integers(1, n_draws + 2, n_hypotheses) / (n_draws + 1)
        alone[1:2] = np.nan if seed % 2 else 0.0
        joint = joint_p_values(alone, statistics)
        assert joint.tolist() == pytest.approx(by_loops(alone, statistics).tolist(), nan_ok=True)


def test_hypotheses_that_are_the_same_count_once_and_untested_ones_for_none():
    alone = np.array([0.02, np.nan, 0.3, 0.02])
    statistics = np.random.default_rng(0).random((4, 1000))
    statistics[3] = statistics[0]
    joint = joint_p_values(alone, statistics)
    assert np.isnan(joint).tolist() == [False, True, False, False]
    assert joint[0] == joint[3] == pytest.approx(1 - 0.98**2, abs=0.005)
    assert joint[2] == pytest.approx(0.3, abs=0.002)
    assert np.isnan(joint_p_values(np.full(4, np.nan), statistics)).all()


def test_a_statistic_that_is_not_known_in_a_draw_is_no_evidence_there():
    alone = np.array([0.2, 0.3])
    statistics = np.random.default_rng(0).random((2, 99))
    lowest = np.where(statistics < 0.5, -1.0, statistics)
    unknown = np.where(statistics < 0.5, np.nan, statistics)
    assert joint_p_values(alone, unknown).tolist() == joint_p_values(alone, lowest).tolist()


def test_without_draws_each_p_value_is_multiplied_by_the_hypotheses_that_are_left():
    assert joint_p_values(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
    assert joint_p_values(np.array([0.5, 0.6])).tolist() == [1.0, 1.0]
    assert joint_p_values(np.array([np.nan, 0.01]))[1] == 0.01
    assert joint_p_values(np.empty(0)).size == 0
