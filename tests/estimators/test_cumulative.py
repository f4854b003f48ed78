"""Cumulative errors: values by hand, ties, and p-values of Brownian motion."""

import math

import numpy as np
import pytest

import fastece
from fastece import Accumulator, CumulativeError
from fastece.estimators.cumulative import CROSSING, range_survival, size_survival

RANGE, SIZE = CumulativeError(), CumulativeError("max")
# Mean distance of the largest of a random walk from that of Brownian motion, in steps: Chernoff
# (1965), -zeta(1/2) / sqrt(2 pi).
MISSED = 0.5826


def data(n, seed=0, digits=2):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(digits)
    return rng.random(n) < p, p, rng.random(n) + 0.1


def test_values_that_can_be_worked_out():
    # Sums: -0.1, then 0.5 and -0.5 at one score, then -0.1 + 0.2.
    y, p = [0, 1, 0, 1], [0.1, 0.5, 0.5, 0.8]
    assert fastece.ece(y, p, estimator="ecce_r") == pytest.approx(0.2 / 4)
    assert fastece.ece(y, p, estimator="ecce_mad") == pytest.approx(0.1 / 4)
    weight = [1, 1, 3, 1]  # -0.1, -1.1, -0.9
    assert fastece.ece(y, p, estimator="ecce_r", sample_weight=weight) == pytest.approx(1.1 / 6)
    # The largest of all begins at 0: a path above 0 throughout.
    assert fastece.ece([1, 1], [0.2, 0.4], estimator="ecce_r") == pytest.approx(1.4 / 2)


def test_an_error_is_at_least_the_mean_gap_and_the_range_at_most_twice_the_size():
    for seed in range(20):
        y, p, w = data(50, seed, digits=1)
        high = fastece.ece(y, p, estimator=RANGE, sample_weight=w)
        size = fastece.ece(y, p, estimator=SIZE, sample_weight=w)
        assert abs(np.average(y - p, weights=w)) <= size + 1e-12
        assert size - 1e-12 <= high <= 2 * size + 1e-12


def test_values_and_laws_are_those_of_mapie(monkeypatch):
    theirs = pytest.importorskip("mapie.metrics.calibration")
    monkeypatch.setattr(theirs, "add_jitter", lambda x, **_: x)
    for seed in range(20):
        y, p, _ = data(200, seed, digits=15)
        path = np.append(0.0, theirs.cumulative_differences(y, p, noise_amplitude=0))
        value = fastece.ece(y, p, estimator=RANGE)
        assert value == pytest.approx(np.ptp(path), abs=1e-10)
        size = fastece.ece(y, p, estimator=SIZE) / theirs.length_scale(p)
        assert size == pytest.approx(theirs.kolmogorov_smirnov_statistic(y, p), abs=1e-10)
        if path[1:].min() < 0 < path[1:].max():
            known = theirs.kuiper_statistic(y, p)
            assert value / theirs.length_scale(p) == pytest.approx(known, abs=1e-10)
    for x in (0.3, 0.8, 1.2, 1.5, 2.0, 3.0):
        assert 1 - range_survival(x) == pytest.approx(theirs.kuiper_cdf(x), abs=1e-10)
        assert 1 - size_survival(x) == pytest.approx(theirs.kolmogorov_smirnov_cdf(x), abs=1e-10)


# --- Brownian motion ------------------------------------------------------------------------


def test_the_two_series_of_a_law_meet():
    for law in (range_survival, size_survival):
        assert law(CROSSING - 1e-13) == pytest.approx(law(CROSSING), abs=1e-12)
        grid = [law(x) for x in np.linspace(0.0, 8.0, 400)]
        assert grid[0] == 1
        assert (np.diff(grid) <= 1e-14).all()


@pytest.mark.parametrize("x", [0.6, 1.0, 1.4, 1.6, 2.5, 4.0])
def test_laws_are_those_by_other_ways(x):
    # The size by reflection at both ends, a normal law's intervals with alternating signs.
    def normal(z):
        return math.erfc(-z / math.sqrt(2)) / 2

    inside = math.fsum(
        (-1) ** k * (normal((2 * k + 1) * x) - normal((2 * k - 1) * x)) for k in range(-40, 41)
    )
    assert size_survival(x) == pytest.approx(1 - inside, abs=1e-12)
    # The range by Feller's density (1951, eq. 3.6), integrated by Gauss and Legendre.
    nodes, weights = np.polynomial.legendre.leggauss(200)
    r, k = x + (nodes[:, None] + 1) * 10, np.arange(1, 60)
    density = 8 * (-1.0) ** (k - 1) * k**2 * np.exp(-((k * r) ** 2) / 2) / math.sqrt(2 * math.pi)
    assert range_survival(x) == pytest.approx(10 * weights @ density.sum(1), abs=1e-10)


def test_far_tails_keep_their_digits():
    # One term alone: 4 erfc(x / sqrt 2) and 2 erfc(x / sqrt 2).
    tail = math.erfc(20 / math.sqrt(2))
    assert range_survival(20.0) == pytest.approx(4 * tail, rel=1e-10)
    assert size_survival(20.0) == pytest.approx(2 * tail, rel=1e-10)


def test_laws_are_those_of_simulated_paths():
    # 4000 walks of 1000 steps: a share is known to 0.008, and all are within 4 of these.
    rng = np.random.default_rng(0)
    steps = 1000
    path = np.cumsum(rng.standard_normal((4000, steps)) / math.sqrt(steps), axis=1)
    high, low = path.max(1).clip(0), path.min(1).clip(None, 0)
    missed = MISSED / math.sqrt(steps)
    for x in (0.8, 1.2, 1.6, 2.2, 2.8):
        ranges, sizes = high - low + 2 * missed, np.maximum(high, -low) + missed
        assert (ranges > x).mean() == pytest.approx(range_survival(x), abs=0.032)
        assert (sizes > x).mean() == pytest.approx(size_survival(x), abs=0.032)


# --- p-values -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [RANGE, SIZE], ids=str)
def test_p_values_are_close_to_those_by_draws(estimator):
    y, p, w = data(3000, 1, digits=15)
    for weight in (None, w):
        options = {"sample_weight": weight}
        drawn = fastece.calibration_test(y, p, estimator=estimator, n_resamples=999, **options)
        # Of 999 draws the p-value is known to 0.016, and of 3000 rows the limit to 0.02.
        closed = estimator.asymptotic_p_value(y, p, **options)
        assert closed == pytest.approx(drawn.p_value, abs=0.08)


def test_p_values_take_weights_settings_and_streams_as_values_do():
    y, p, w = data(500, 2)
    value = RANGE.asymptotic_p_value(y, p, sample_weight=w)
    assert RANGE.asymptotic_p_value(y, p, sample_weight=w * 1e300) == pytest.approx(value)
    vectors = np.column_stack([1 - p, p])
    each = RANGE.asymptotic_p_value(y, vectors, setting="classwise", sample_weight=w)
    assert each == pytest.approx([value, value])
    state = Accumulator(None).update(y, p, sample_weight=w)
    assert RANGE.asymptotic_p_value(state) == pytest.approx(value, rel=0.02)
    with pytest.raises(TypeError, match="sample_weight: goes with arrays"):
        RANGE.asymptotic_p_value(state, sample_weight=w)


def test_certain_scores_have_a_p_value_of_0_or_1():
    assert RANGE.asymptotic_p_value([0, 1], [0.0, 1.0]) == 1
    assert SIZE.asymptotic_p_value([1, 1], [0.0, 1.0]) == 0
