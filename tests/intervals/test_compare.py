"""Comparisons whose intervals are joined from the intervals of both models."""

import pickle

import numpy as np
import pytest

from fastece import compare
from fastece.document.numbers import ConfidenceInterval
from fastece.intervals.compare import ALPHAS, ModelError, difference_of
from helpers.answer_cases import LEVELS, Stand
from helpers.probes import OneBin
from helpers.resample_cases import binary, classes, same_bits, two_models

ESTIMATORS = ["ece", "ece_ac", "ece_kde", "ece_bayes", OneBin(), Stand()]
OPTIONS = {"method": "mover", "n_resamples": 99, "rng": 0}


def check_laws(result):
    """Higher levels hold lower ones, and 0 is outside where the p-value says so."""
    intervals = [result.interval(level) for level in LEVELS]
    for level, (low, high) in zip(LEVELS, intervals, strict=True):
        assert -1 <= low <= high <= 1
        if abs(result.p_value - (1 - level)) > 1e-9:
            assert (low > 0 or high < 0) == (result.p_value < 1 - level)
    assert np.all(np.diff(intervals, axis=0) * [-1, 1] >= 0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_p_value_and_interval_agree_at_every_level(estimator):
    for seed in range(5):
        true, a, b = two_models(70, seed)
        result = compare(true, a**2, b, estimator=estimator, **OPTIONS)
        check_laws(result)
        p = result.p_value
        if 1e-3 < p < 0.99:
            low, high = result.interval(1 - p * 0.99)
            assert low <= 0 <= high
            low, high = result.interval(1 - p * 1.01)
            assert low > 0 or high < 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("setting", ["auto", "classwise"])
def test_a_model_does_not_differ_from_itself(estimator, setting):
    for data in (binary(40), classes(40)):
        result = compare(*data, data[1], estimator=estimator, setting=setting, **OPTIONS)
        assert (result.value, result.p_value, *result.confidence_interval) == (0, 1, 0, 0)


def test_the_values_are_those_of_other_methods():
    data = two_models(60)
    one = compare(*data, estimator="ece", **OPTIONS)
    other = compare(*data, estimator="ece", n_resamples=99, method="basic")
    assert (one.value, one.a, one.b) == (other.value, other.a, other.b)
    assert one.method == "mover"
    assert "95 % CI (mover)" in str(one)
    assert (one.bootstrap_distribution.size, other.bootstrap_distribution.size) == (0, 99)
    assert np.isnan([one.standard_error, one.bias]).all()
    with pytest.raises(ValueError, match=r"^method: "):
        one.interval(method="basic")


def test_exchanging_the_models_mirrors_the_interval():
    true, a, b = two_models(80)
    for estimator in ("ece", Stand()):
        one = compare(true, a, b, estimator=estimator, **OPTIONS)
        other = compare(true, b, a, estimator=estimator, **OPTIONS)
        for level in LEVELS:
            low, high = other.interval(level)
            assert tuple(one.interval(level)) == pytest.approx((-high, -low), abs=1e-12)
        assert one.p_value == pytest.approx(other.p_value)


def test_classes_are_compared_one_by_one_and_results_can_be_pickled():
    true, a = classes(60)
    b = np.roll(a, 1, axis=0)
    every = compare(true, a, b, setting="classwise", average=None, estimator="ece", **OPTIONS)
    assert np.shape(every.confidence_interval) == (2, 3)
    assert every.p_value.shape == (3,)
    again = pickle.loads(pickle.dumps(every))
    assert same_bits(np.array(again.confidence_interval), np.array(every.confidence_interval))
    found = compare(true, a, b, estimator=["ece", "ece_ac"], **OPTIONS)
    assert (
        found["ece"].confidence_interval
        == compare(true, a, b, estimator="ece", **OPTIONS).confidence_interval
    )
    assert np.isnan(
        compare(true, a, b, estimator="ece", norm=np.inf, min_count=1e9, **OPTIONS).p_value
    )


def side(centre, low, high, influence):
    return ModelError(centre, lambda _: ConfidenceInterval(low, high), np.asarray(influence))


def test_ends_are_joined_by_mover():
    # By hand: (0.1 - 0.05) and (0.09 - 0.06) with a correlation of 0.5.
    x, y = [1.0, -1, 1, -1], [1.0, -1, 3, -3]
    r = np.corrcoef(x, y)[0, 1]
    a, b = side(0.1, 0.05, 0.16, x), side(0.06, 0.02, 0.09, y)
    low, high = difference_of(a, b).interval(0.95)
    assert low == pytest.approx(0.04 - np.sqrt(0.05**2 - 2 * r * 0.05 * 0.03 + 0.03**2))
    assert high == pytest.approx(0.04 + np.sqrt(0.06**2 - 2 * r * 0.06 * 0.04 + 0.04**2))


def test_a_model_that_may_be_calibrated_leaves_the_other_its_interval():
    a, b = side(0.02, 0.0, 0.05, [1.0, -1, 2]), side(0.1, 0.07, 0.13, [1.0, -1, 2])
    low, high = difference_of(a, b).interval(0.95)
    assert low == pytest.approx(-0.13)
    assert high == pytest.approx(-0.08, abs=2e-3)
    assert ALPHAS[-1] == pytest.approx(1 / 2000)
    assert tuple(difference_of(a, b).interval(1 - 1e-4)) == (-1, 1)


@pytest.mark.slow
def test_models_of_which_one_is_calibrated_are_covered():
    # A binomial of 200 with 94 % is below 88 % once in 1500.
    rng, covered = np.random.default_rng(1), 0
    q = rng.beta(2, 0.8, 40_000)
    truth = -np.mean(np.abs(1 / (1 + ((1 - q) / q) ** 1.6) - q))
    for i in range(200):
        q = rng.beta(2, 0.8, 200)
        y = rng.random(200) < q
        b = 1 / (1 + ((1 - q) / q) ** 1.6)
        result = compare(y, q, b, method="mover", n_resamples=199, rng=i)
        covered += result.confidence_interval.low <= truth <= result.confidence_interval.high
    assert covered >= 0.88 * 200


def test_methods_that_are_known_are_named():
    with pytest.raises(ValueError, match=r"method: .*'honest'.*mover.*basic"):
        compare(*two_models(20), method="honest")
