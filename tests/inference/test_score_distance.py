"""Bounds of differences where the scores of one model are a function of the other's."""

from statistics import NormalDist

import numpy as np
import pytest

from fastece import BayesCurve, compare
from fastece.estimators.protocol import Sample
from fastece.inference.mover import ALPHAS, Difference
from fastece.inference.score_distance import (
    MAX_ORDERED_ROWS,
    MIN_ROWS,
    is_increasing_function,
    score_distance,
)
from fastece.resampling.groups import Groups
from helpers.answer_cases import LEVELS

N = 400


def outcomes(n=N, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 0.8, n)
    return (rng.random(n) < p).astype(int), p


def sample(s, y, **fields):
    return Sample(s, np.asarray(y, np.uint8), fields.get("v"), 0.0, 1.0, np.arange(s.size),
                  c=fields.get("c"))  # fmt: skip


def limit(a, b, level=0.95, norm=1):
    """The bound in plain terms: mean distance times a log-normal factor."""
    power = np.abs(a - b) ** norm
    spread = power.std() / np.sqrt(a.size) / power.mean()
    z = NormalDist().inv_cdf(1 - (1 - level) / 4)
    return (power.mean() * np.exp(spread * z)) ** (1 / norm)


def is_function(x, y):
    """The definition, pair by pair."""
    for i in range(x.size):
        for j in range(x.size):
            falls = x[i] < x[j] and y[i] > y[j] + 1e-6
            differs = x[i] == x[j] and abs(y[i] - y[j]) > 1e-6
            if falls or differs:
                return False
    return True


@pytest.mark.parametrize("norm", [1, 2])
def test_recalibrated_scores_bound_the_difference(norm):
    y, p = outcomes()
    b = p / (p + 0.97 * (1 - p))  # a small shift in the log odds
    result = compare(y, p, b, estimator=BayesCurve(norm=norm))
    for level in (0.5, 0.8, 0.9, 0.95, 0.99):
        low, high = result.interval(level)
        assert -limit(p, b, level, norm) - 1e-9 <= low <= high <= limit(p, b, level, norm) + 1e-9
    assert np.ptp(result.confidence_interval) < 0.02  # two intervals of .06 to .1 each


@pytest.mark.filterwarnings("ignore::fastece.data.errors.RowsWarning")
def test_rounded_scores_bound_one_side_alone():
    # The scores are upside down, with an error of .5. Their mean alone has the error 0, which
    # differs by more than the distance of .25.
    rng = np.random.default_rng(6)
    p = rng.random(N)
    y = rng.random(N) < 1 - p
    constant = np.full(N, 0.5)
    bound = limit(p, constant)
    assert compare(y, p, constant).confidence_interval.high > 0.4 > bound
    other = compare(y, constant, p).confidence_interval
    assert other.low < -0.4 < -bound < other.high <= bound + 1e-9


def test_no_bound_without_a_shared_order():
    y, p = outcomes()
    rng = np.random.default_rng(3)
    noisy = np.clip(p + 0.001 * rng.normal(size=N), 0, 1)
    assert np.ptp(compare(y, p, noisy).confidence_interval) > 4 * limit(p, noisy)


def test_no_bound_for_bins_few_rows_or_other_outcomes():
    y, p = outcomes()
    shifted = p / (p + 0.99 * (1 - p))
    binned = compare(y, p, shifted, estimator="ece", n_resamples=99).confidence_interval
    assert np.ptp(binned) > 4 * limit(p, shifted)
    first = sample(p, y)
    assert score_distance(first, sample(shifted, y), 1.0, None) is not None
    assert score_distance(first, sample(shifted, 1 - y), 1.0, None) is None
    first_rows = slice(MIN_ROWS - 1)
    y = y[first_rows]
    first = sample(p[first_rows], y)
    assert score_distance(first, sample(shifted[first_rows], y), 1.0, None) is None


def test_order_is_found_as_pair_by_pair():
    rng = np.random.default_rng(5)
    for _ in range(300):
        x = rng.integers(0, 6, 7) / 6
        y = rng.choice([0.1, 0.2, 0.2 + 5e-7, 0.9], 7)
        if rng.random() < 0.5:
            y = np.sort(y)[x.argsort().argsort()]
        assert is_increasing_function(x, y) == is_function(x, y)


def test_order_is_looked_for_in_rows_from_all_over():
    x = np.linspace(0, 1, 3 * MAX_ORDERED_ROWS)
    y = x**2
    assert is_increasing_function(x, y)
    y[-x.size // 100 :] = 0.5
    assert not is_increasing_function(x, y)


def test_single_precision_keeps_the_bound():
    y, p = outcomes()
    logits = np.log(p / (1 - p)).astype(np.float32)
    a, b = (1 / (1 + np.exp(-logits / t)) for t in (np.float32(1), np.float32(1.02)))
    assert np.ptp(compare(y, a, b).confidence_interval) <= 2 * limit(a, b) + 1e-6


def test_counts_equal_repeated_rows_and_weights_scale_the_mean():
    y, p = outcomes(60)
    q = p**1.2
    repeats = np.random.default_rng(2).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), repeats)
    table = score_distance(
        sample(p, y, c=repeats.astype(float)), sample(q, y, c=repeats.astype(float)), 1.0, None
    )
    repeated = score_distance(sample(p[rows], y[rows]), sample(q[rows], y[rows]), 1.0, None)
    assert table == pytest.approx(repeated)
    weighted = score_distance(sample(p, y, v=repeats * 1.0), sample(q, y), 1.0, None)
    assert weighted.mean == pytest.approx(repeated.mean)
    assert weighted.standard_error > repeated.standard_error


def test_groups_of_equal_rows_count_as_one_row_each():
    y, p = outcomes(60)
    q = p**1.2
    rows = np.repeat(np.arange(60), 3)
    single = score_distance(sample(p, y), sample(q, y), 1.0, None)
    data = sample(p[rows], y[rows]), sample(q[rows], y[rows])
    grouped = score_distance(*data, 1.0, Groups.of(rows))
    assert grouped == pytest.approx(single)
    assert score_distance(*data, 1.0, None).standard_error < single.standard_error


def test_each_class_and_their_mean_have_bounds():
    rng = np.random.default_rng(4)
    prob = rng.dirichlet([1, 1, 1], N)
    label = (prob.cumsum(1) < rng.random(N)[:, None]).sum(1)
    mixed = 0.98 * prob + 0.02 / 3  # every class keeps its order
    every = compare(label, prob, mixed, setting="classwise", average=None).confidence_interval
    bounds = np.array([limit(prob[:, k], mixed[:, k]) for k in range(3)])
    assert (np.abs(np.array(every)) <= bounds + 1e-9).all()
    mean = compare(label, prob, mixed, setting="classwise").confidence_interval
    assert np.abs(mean).max() <= bounds.mean() + 1e-9


def test_intervals_beyond_the_bounds_end_there_and_stay_nested():
    low = np.linspace(0.3, -0.5, ALPHAS.size)
    high = np.linspace(0.4, 0.9, ALPHAS.size)
    width = np.linspace(0.1, 0.2, ALPHAS.size)
    cut = Difference(low, high).within(-width, width)
    assert (np.diff(cut.low) <= 0).all()
    assert (np.diff(cut.high) >= 0).all()
    assert (cut.low <= cut.high).all()
    assert (cut.low[0], cut.high[0]) == (0.1, 0.1)
    assert (cut.low[-1], cut.high[-1]) == (low[-1], high[-1])


@pytest.mark.parametrize("power", [1, 1.2, 3])
def test_ends_for_a_comparison_are_nested_in_the_level(power):
    y, p = outcomes(150)
    s = p**power
    posterior = BayesCurve().posterior([sample(s, y)])
    ends = np.array(
        [posterior.comparison_interval(level) for level in sorted([1e-9, 0.01, *LEVELS, 0.9995])]
    )
    assert (np.diff(ends, axis=0) * [-1, 1] >= 0).all()
    assert (ends >= 0).all()
    assert (ends <= posterior.max_error).all()
    assert (ends[:, 0] <= posterior.value).all()
    assert (ends[:, 1] >= posterior.value).all()


def test_scores_of_zero_and_one_keep_their_binomial_interval():
    y, p = outcomes(80)
    posterior = BayesCurve().posterior([sample((p > 0.5).astype(float), y)])
    assert posterior.comparison_interval(0.95) == posterior.interval(0.95)


def test_the_unit_of_weights_does_not_matter():
    rng = np.random.default_rng(7)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    intervals = []
    for unit in (1.0, 2.0**40, 1e-200, 1e200):
        result = compare(y, p, p**2, sample_weight=np.full(300, unit))
        intervals.append([result.confidence_interval.low, result.confidence_interval.high])
    assert np.array(intervals) == pytest.approx(np.array(intervals[:1] * 4), abs=1e-12)
