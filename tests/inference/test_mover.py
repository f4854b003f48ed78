"""Comparisons whose intervals are joined from the confidence distributions of both models."""

import pickle
from statistics import NormalDist

import numpy as np
import pytest

from fastece import compare
from fastece.inference.mover import (
    ALPHAS,
    POWER_OF_LIKENESS,
    ModelError,
    interval_quantiles,
    join_errors,
)
from fastece.recalibration import recalibrate
from helpers.answer_cases import LEVELS, Stand
from helpers.probes import OneBin
from helpers.resample_cases import binary, classes, same_bits, two_models

OPTIONS = {"method": "mover", "n_resamples": 99, "rng": 0}


def check_laws(result):
    """Higher levels hold lower ones, and 0 is outside where the p-value says so."""
    intervals = [result.interval(level) for level in LEVELS]
    for level, (low, high) in zip(LEVELS, intervals, strict=True):
        assert -1 <= low <= high <= 1
        if abs(result.p_value - (1 - level)) > 1e-9:
            assert (low > 0 or high < 0) == (result.p_value < 1 - level)
    assert np.all(np.diff(intervals, axis=0) * [-1, 1] >= 0)


@pytest.mark.parametrize("estimator", ["ece", "ece_bayes", OneBin(), Stand()])
def test_p_value_and_interval_agree_at_every_level(estimator):
    for seed in range(3):
        true, a, b = two_models(70, seed)
        result = compare(true, a**2, b, estimator=estimator, **OPTIONS)
        check_laws(result)
        p = result.p_value
        if 1e-3 < p < 0.99:
            low, high = result.interval(1 - p * 0.99)
            assert low <= 0 <= high
            low, high = result.interval(1 - p * 1.01)
            assert low > 0 or high < 0


@pytest.mark.parametrize(
    ("estimator", "setting"),
    [("ece", "auto"), ("ece_kde", "classwise"), ("ece_bayes", "classwise"), (OneBin(), "auto")],
)
def test_a_model_does_not_differ_from_itself_by_mover(estimator, setting):
    for data in (binary(40), classes(40)):
        result = compare(*data, data[1], estimator=estimator, setting=setting, **OPTIONS)
        assert (result.value, result.p_value, *result.confidence_interval) == (0, 1, 0, 0)


def test_mover_has_the_values_of_other_methods():
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
    for estimator in ("ece", "ece_bayes", Stand()):
        one = compare(true, a, b, estimator=estimator, **OPTIONS)
        other = compare(true, b, a, estimator=estimator, **OPTIONS)
        for level in LEVELS:
            low, high = other.interval(level)
            assert tuple(one.interval(level)) == pytest.approx((-high, -low), abs=1e-12)
        assert one.p_value == pytest.approx(other.p_value)


def test_each_class_is_compared_by_mover_and_results_can_be_pickled():
    true, a = classes(60)
    b = np.roll(a, 1, axis=0)
    every = compare(true, a, b, setting="classwise", average=None, estimator="ece", **OPTIONS)
    assert np.shape(every.confidence_interval) == (2, 3)
    assert every.p_value.shape == (3,)
    again = pickle.loads(pickle.dumps(every))
    assert same_bits(np.array(again.confidence_interval), np.array(every.confidence_interval))
    results = compare(true, a, b, estimator=["ece", "ece_ac"], **OPTIONS)
    assert (
        results["ece"].confidence_interval
        == compare(true, a, b, estimator="ece", **OPTIONS).confidence_interval
    )
    assert np.isnan(
        compare(true, a, b, estimator="ece", norm=np.inf, min_count=1e9, **OPTIONS).p_value
    )


def nearly_calibrated_pair(name):
    """Outcomes, two models of which the second is nearly calibrated, and options."""
    rng = np.random.default_rng(7)
    if name == "classes":
        p = rng.dirichlet([1.0, 1, 2], 300)
        y = (p.cumsum(1) < rng.random(300)[:, None]).sum(1)
        a = p**1.6 / (p**1.6).sum(1, keepdims=True)
        return y, a, p, {"setting": "classwise"}
    size = 900 if name == "sharp" else 240
    q = rng.beta(9, 0.5, size) if name == "sharp" else rng.random(size)
    if name == "ties":  # which stay ties when they are moved
        q = q.round(2).clip(0.005, 0.995)
    y = (rng.random(size) < q).astype(int)
    if name == "both":
        return y, q, recalibrate(y, q**1.5, method="beta", rng=0), {}
    options = {"sample_weight": rng.random(size) + 0.5} if name == "weights" else {}
    return y, q**1.5, q, options


@pytest.mark.parametrize("name", ["plain", "both", "sharp", "weights", "ties", "classes"])
def test_the_last_bits_of_the_scores_do_not_matter(name):
    y, a, b, options = nearly_calibrated_pair(name)
    one = compare(y, a, b, **options)
    step = np.ones(b.shape) if name == "ties" else np.arange(b.size).reshape(b.shape) % 3
    for change in (1 - 1e-12, 1 + 1e-13, 1 - 1e-14):
        moved = b * change**step
        other = compare(y, a, moved, **options)
        assert other.p_value == pytest.approx(one.p_value, abs=1e-6)
        assert tuple(other.confidence_interval) == pytest.approx(
            tuple(one.confidence_interval), abs=1e-6
        )


def normal_error(mean, deviation, influence):
    law = NormalDist(mean, deviation)
    return ModelError(lambda u: np.array([law.inv_cdf(x) for x in u]), np.asarray(influence))


@pytest.mark.parametrize("shared", [1.0, 0.6])
def test_normal_errors_have_a_normal_difference(shared):
    x = [1.0, -1, 1, -1]
    y = [1.0, -1, 3, -3]
    r = np.corrcoef(x, y)[0, 1]
    r *= shared + (1 - shared) * r**POWER_OF_LIKENESS
    a = normal_error(0.1, 0.01, x)
    b = normal_error(0.08, 0.02, y)
    law = NormalDist(0.02, np.sqrt(0.01**2 + 0.02**2 - 2 * r * 0.01 * 0.02))
    difference = join_errors(a, b, shared)
    for level in (0.5, 0.8, 0.95, 0.99):
        ends = law.inv_cdf((1 - level) / 2), law.inv_cdf((1 + level) / 2)
        assert tuple(difference.interval(level)) == pytest.approx(ends, abs=6e-4)
    assert difference.p_value == pytest.approx(2 * law.cdf(0), rel=0.05)


def test_ends_of_intervals_are_quantiles_of_the_confidence_distribution():
    law = NormalDist(0.1, 0.02)

    def interval(level):
        return law.inv_cdf((1 - level) / 2), law.inv_cdf((1 + level) / 2)

    levels = np.array([0.001, 0.025, 0.3, 0.5, 0.9, 0.999])
    quantiles = interval_quantiles(interval)(levels)
    assert quantiles == pytest.approx([law.inv_cdf(u) for u in levels], abs=1e-4)


def test_difference_from_a_calibrated_model_keeps_the_interval():
    a = ModelError(np.zeros_like, np.array([1.0, -1, 2]))
    b = normal_error(0.1, 0.015, [1.0, -1, 2])
    low, high = join_errors(a, b, 1.0).interval(0.95)
    assert (low, high) == pytest.approx((-0.1 - 1.96 * 0.015, -0.1 + 1.96 * 0.015), abs=1e-4)
    assert ALPHAS[-1] == pytest.approx(1 / 2000)
    assert tuple(join_errors(a, b, 1.0).interval(1 - 1e-4)) == (-1, 1)


@pytest.mark.slow
def test_mover_covers_the_difference_from_a_calibrated_model():
    # A binomial of 60 with 94 % is below 50 once in 1200.
    rng = np.random.default_rng(1)
    covered = 0
    q = rng.beta(2, 0.8, 40_000)
    truth = -np.mean(np.abs(1 / (1 + ((1 - q) / q) ** 1.6) - q))
    for i in range(60):
        q = rng.beta(2, 0.8, 200)
        y = rng.random(200) < q
        b = 1 / (1 + ((1 - q) / q) ** 1.6)
        result = compare(y, q, b, method="mover", n_resamples=199, rng=i)
        covered += result.confidence_interval.low <= truth <= result.confidence_interval.high
    assert covered >= 50


def test_unknown_comparison_methods_list_the_known_methods():
    with pytest.raises(ValueError, match=r"method: .*'honest'.*mover.*basic"):
        compare(*two_models(20), method="honest")


def test_groups_widen_differences_unless_they_have_one_row():
    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(60), 8)
    p = rng.beta(5, 1.5, group.size)
    y = (rng.random(60)[group] < p).astype(int)  # labels of a group share their number
    models = y, p, p**1.5
    single, grouped = (compare(*models, groups=x) for x in (np.arange(group.size), group))
    assert single.confidence_interval == compare(*models).confidence_interval
    assert grouped.method == "mover"
    assert np.ptp(grouped.confidence_interval) > 1.3 * np.ptp(single.confidence_interval)
    with pytest.raises(ValueError, match=r"^method: must draw rows for size="):
        compare(*models, size=100, method="mover")
