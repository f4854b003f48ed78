"""Comparisons of two models on the same draws."""

import numpy as np
import pytest

import fastece
from fastece.estimators.table import ESTIMATORS
from helpers.resample_cases import (
    basic,
    binary,
    classes,
    near,
    two_models,
)

BASIC = {"estimator": "ece", "method": "basic"}


@pytest.mark.representative
@pytest.mark.parametrize("setting", ["auto", "classwise", 1])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_does_not_differ_from_itself_on_draws(name, setting):
    for data in (binary(40), classes(40)):
        result = fastece.compare(
            *data, data[1], estimator=name, setting=setting, n_resamples=50, rng=0, method="basic"
        )
        assert result.value == 0
        assert result.p_value == 1
        assert np.all(result.bootstrap_distribution == 0)
        assert result.confidence_interval == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_difference_has_the_p_value_and_intervals_of_the_definitions(seed):
    data = two_models(60, seed)
    result = fastece.compare(*data, **BASIC, n_resamples=199, rng=seed, confidence_level=0.9)
    d = result.value
    values = result.bootstrap_distribution
    assert result.p_value == (1 + np.sum(np.abs(values - d) >= abs(d))) / 200
    assert result.confidence_interval == near(basic(d, values, 0.9))
    assert result.interval(0.5, "percentile") == near(tuple(np.quantile(values, [0.25, 0.75])))


def test_each_class_is_compared_on_the_same_draws():
    true, a = classes(60)
    b = np.roll(a, 1, axis=0)
    options = {"n_resamples": 99, "rng": 1, **BASIC}
    every = fastece.compare(true, a, b, setting="classwise", average=None, **options)
    assert every.bootstrap_distribution.shape == (3, 99)
    for k in range(3):
        alone = fastece.compare(true, a, b, setting=k, **options)
        assert every.value[k] == near(alone.value)
        assert every.p_value[k] == alone.p_value
        assert every.bootstrap_distribution[k] == near(alone.bootstrap_distribution)
        low, high = every.confidence_interval
        assert (low[k], high[k]) == near(tuple(alone.confidence_interval))


def test_default_method_is_mover_for_errors_and_basic_for_means():
    data = two_models(40)
    results = fastece.compare(*data, estimator=["ece_bayes", "ece", "brier_score"], n_resamples=99)
    assert [result.method for result in results.values()] == ["mover", "mover", "basic"]
    assert results["ece"].bootstrap_distribution.size == 0
    alone = fastece.compare(*data, estimator="brier_score", n_resamples=99)
    assert alone.to_dict() == results["brier_score"].to_dict()
    assert fastece.compare(*data, n_resamples=9).estimator == "BayesCurve()"
    groups = np.arange(40) // 2
    assert fastece.compare(*data, n_resamples=9, groups=groups).method == "mover"
