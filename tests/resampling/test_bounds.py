"""No value and no end of an interval is beyond what an estimator can have; nothing else is cut."""

from dataclasses import dataclass
from math import inf, log, pi, sqrt

import numpy as np
import pytest

import fastece
from fastece import ESTIMATORS, SKCE, Accumulator, Binned, BrierScore, LogLoss, NetBenefit
from fastece.estimators.table import STATISTICS
from helpers.table import CASES, VECTORS

# Few rows of wrong models have warnings, such as swapped columns.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SLACK = 1e-12
NET_BENEFIT = {"net benefit": NetBenefit(0.2)}
ALL = {**CASES, **STATISTICS, **NET_BENEFIT}

WRONG = np.zeros(3000, int), np.ones(3000)
RIGHT = np.arange(3000) % 2, np.arange(3000) % 2.0
REVERSED = RIGHT[0], 1.0 - RIGHT[1]
FAR_CLASS = [0], np.eye(1200)[[1199]]
RARE = np.arange(3000) == 0, np.ones(3000)
EVEN_ODDS = np.arange(3000) % 2, np.full(3000, 0.5)
HALF = np.array([0, 1]), np.array([0.5, 0.5])
NO_EVENT = np.zeros(9, int), np.full(9, 0.5)
ALL_EVENTS = np.ones(9, int), np.full(9, 0.5)
HIT = np.ones(9, int), np.ones(9)
IMPOSSIBLE = np.ones(9, int), np.zeros(9)
# The rows with the highest scores are the misses.
CONFIDENT_MISSES = np.arange(3000) < 1500, np.arange(3000) / 6000
OTHER_CLASS = np.array([1, 1, 1]), np.array([[1.0, 0.0, 0.0]] * 3)
OWN_CLASS = np.array([0, 1, 2]), np.eye(3)
OPPOSITE_GAPS = np.array([1, 0]), np.eye(2)
ERRORS = dict.fromkeys(
    [*(name for name in ESTIMATORS if ESTIMATORS[name].is_calibration_error), "ici", "e50", "e90",
     "emax"],
    (0.0, RIGHT, 1.0, WRONG),
)  # fmt: skip
# For each estimator the least value, rows that have it, the largest value, and rows that have it:
# infinite ones are passed by thousands.
EXTREMES = {
    **ERRORS,
    "ece_kde": (0.0, EVEN_ODDS, 1.0, WRONG),
    "ece_debiased": (-1 / sqrt(4 * pi), HALF, 1.0, WRONG),
    "canonical": (0.0, (np.array([0, 0]), np.eye(3)[[0, 0]]), 2.0, OTHER_CLASS),
    "skce": (-2.0, OPPOSITE_GAPS, 2.0, OTHER_CLASS),
    "brier_score": (0.0, OWN_CLASS, 2.0, OTHER_CLASS),
    "ranked_probability_score": (0.0, OWN_CLASS, inf, FAR_CLASS),
    "log_loss": (0.0, OWN_CLASS, inf, OTHER_CLASS),
    "accuracy": (0.0, WRONG, 1.0, RIGHT),
    "sharpness": (0.0, HALF, 0.25, RIGHT),
    "entropy": (0.0, RIGHT, inf, None),
    "oe": (0.0, NO_EVENT, inf, IMPOSSIBLE),
    "calibration_intercept": (-inf, NO_EVENT, inf, ALL_EVENTS),
    "calibration_slope": (-inf, REVERSED, inf, RIGHT),
    "c_statistic": (0.0, REVERSED, 1.0, RIGHT),
    "scaled_brier": (-inf, RARE, 1.0, RIGHT),
    "aurc": (0.0, HIT, 1.0, WRONG),
    "e_aurc": (0.0, HIT, log(2), CONFIDENT_MISSES),
    "augrc": (0.0, HIT, 0.5, WRONG),
    "net benefit": (-0.25, WRONG, 1.0, HIT),
}
# The kernel error in the form that may be negative, of which even distant rows are pairs.
FORMS = {"skce": SKCE(form="unbiased", width=1e9)}
SIGNED = ["calibration_intercept", "calibration_slope", "scaled_brier", "net benefit"]


@pytest.mark.parametrize("name", [*ESTIMATORS, *STATISTICS, *NET_BENEFIT])
def test_the_least_and_the_largest_value_are_those_that_there_can_be(name):
    estimator = FORMS.get(name) or ALL[name]
    lowest, least_rows, largest, most_rows = EXTREMES[name]
    assert (estimator.lowest, estimator.largest) == (lowest, largest)
    for bound, rows in ((lowest, least_rows), (largest, most_rows)):
        if rows is None:  # the entropy of K classes is at most log K
            rows = [0, 1], np.full((2, 5000), 1 / 5000)
            assert fastece.ece(*rows, estimator=estimator) == pytest.approx(log(5000))
            continue
        value = fastece.ece(*rows, estimator=estimator)
        if np.isinf(bound):
            assert np.sign(bound) * value > 1000
        else:
            assert value == pytest.approx(bound, abs=2e-3)


def small_samples():
    """Models of few rows: right, wrong, sure, reversed, and with few events."""
    rng = np.random.default_rng(5)
    for n in (4, 30):
        p = rng.random(n)
        yield rng.random(n) < p, p
        yield rng.random(n) < 1 - p, p
        yield rng.random(n) < 0.9, p / 20
        yield rng.random(n) < 0.1, (p > 0.2).astype(float)
        yield np.arange(n) == 1, p**4


def small_vectors():
    """The same of class vectors."""
    rng = np.random.default_rng(6)
    for n in (4, 30):
        for concentration in (0.05, 1.0):
            p = rng.dirichlet(np.full(3, concentration), n)
            yield p.argmax(axis=1), p
            yield p.argmin(axis=1), p
            yield rng.integers(0, 3, n), p


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_no_value_and_no_end_of_an_interval_is_beyond_them(name):
    estimator = ALL[name]
    samples = [*small_samples()]
    if name in VECTORS or estimator.needs_vectors:
        samples += small_vectors()
    for y, p in samples:
        lowest, largest = estimator.bounds(3 if np.ndim(p) > 1 else None)
        assert estimator.lowest <= lowest < largest <= estimator.largest
        result = fastece.bootstrap(y, p, estimator=estimator, n_resamples=64, rng=0)
        for numbers in (
            [result.value],
            result.bootstrap_distribution,
            result.interval(0.95, "basic"),
            result.interval(0.99, "percentile"),
        ):
            known = np.array(numbers)
            known = known[~np.isnan(known)]
            assert (known >= lowest - SLACK).all()
            assert (known <= largest + SLACK).all()


@pytest.mark.parametrize("name", [*SIGNED, "ece_debiased"])
def test_nothing_is_cut_off_a_statistic_with_a_sign(name):
    rng = np.random.default_rng(1)
    p = rng.random(400)
    rates = {"ece_debiased": p, "net benefit": 0.05}
    y = rng.random(400) < rates.get(name, 0.7 * (1 - p))
    result = fastece.bootstrap(y, p, estimator=ALL[name], n_resamples=499, rng=0)
    low, high = np.quantile(result.bootstrap_distribution, [0.025, 0.975])
    ends = 2 * result.value - high, 2 * result.value - low
    assert ends[0] < 0
    assert result.confidence_interval == pytest.approx(ends, abs=SLACK)


def test_the_interval_of_an_intercept_is_around_it():
    p = np.random.default_rng(0).uniform(0.5, 0.9, 300)
    y = np.random.default_rng(1).random(300) < 0.3
    result = fastece.bootstrap(y, p, estimator="calibration_intercept", n_resamples=499, rng=0)
    low, high = result.confidence_interval
    assert low < result.value < high < -1


def test_an_end_is_infinite_where_many_replicates_are():
    # Some of ten draws have no event, and so the intercept -inf.
    y, p = np.arange(30) < 2, np.full(30, 0.5)
    result = fastece.bootstrap(y, p, estimator="calibration_intercept", n_resamples=999, rng=0)
    assert 0.05 < np.mean(np.isinf(result.bootstrap_distribution)) < 0.3
    assert result.interval(0.95, "percentile").low == -inf
    assert result.confidence_interval.high == inf
    assert np.isfinite(result.confidence_interval.low)
    assert np.isfinite(result.interval(0.5, "percentile")).all()
    assert result.bias == -inf
    assert np.isnan(result.standard_error)


@dataclass(frozen=True)
class MeanGap:
    """Weighted mean of y - s, without bounds."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.y - sample.s, sample.weights

    def evaluate(self, plan, c):
        gap, weight = plan
        return float(np.average(gap, weights=weight * c))


class BoundedGap(MeanGap):
    lowest = -0.3
    largest = -0.28


class SignedGap(Binned):
    """A formula of one's own over the bins of another estimator, whose bounds it does not have."""

    def errors(self, bins):
        return bins.gap.sum(axis=1) / bins.weight.sum(axis=1)


def test_an_estimator_of_ones_own_is_cut_off_where_it_says_so():
    p = np.random.default_rng(0).random(200) / 2 + 0.5
    y = np.random.default_rng(1).random(200) < p - 0.3
    free, of_bins, bounded = (
        fastece.bootstrap(y, p, estimator=estimator, n_resamples=199, rng=0)
        for estimator in (MeanGap(), SignedGap(), BoundedGap())
    )
    low, high = free.confidence_interval
    assert low < -0.3
    assert -0.28 < high < 0
    assert of_bins.confidence_interval == pytest.approx(free.confidence_interval, abs=SLACK)
    assert bounded.confidence_interval == (-0.3, -0.28)


def test_a_difference_is_at_most_the_whole_range():
    y = np.arange(8) == 0
    p, q = 1.0 - y, y * 1.0
    p[:2] = 0.5
    for estimator in ("ece", "brier_score"):
        result = fastece.compare(
            y, p, q, estimator=estimator, method="basic", n_resamples=199, rng=0
        )
        assert -1 <= result.confidence_interval.low <= result.confidence_interval.high <= 1
        assert result.interval(0.999).high == 1
        assert result.interval(0.999, "percentile").high <= 1


def test_bounds_depend_on_parameters_and_on_the_number_of_classes():
    assert (LogLoss(clip=0.1).lowest, LogLoss(clip=0.1).largest) == (-log(0.9), -log(0.1))
    assert Binned(debias=True, norm=2).lowest == 0
    assert BrierScore().bounds(None) == (0, 1)
    assert BrierScore().bounds(3) == (0, 2)
    assert ESTIMATORS["entropy"].bounds(None) == (0, log(2))
    assert NetBenefit(0.9).lowest == pytest.approx(-9)


def test_a_stream_has_the_same_bounds():
    p = np.random.default_rng(0).random(40) / 3
    stream = Accumulator(n_replicates=64, seed=0).update(p < 0.3, p)
    result = fastece.bootstrap(stream, estimator="ece")
    assert result.confidence_interval.high <= 1
    assert result.interval(0.999).high <= 1
