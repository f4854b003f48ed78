"""Intervals from a distribution."""

from math import nan

import numpy as np
import pytest

import fastece
from fastece.estimators.table import ESTIMATORS
from helpers.probes import Distinct, Mean
from helpers.resample_cases import (
    BINNED,
    MANY,
    METHODS,
    basic,
    binary,
    classes,
    near,
)


def bca(theta, values, deleted, level):
    """Efron's (1987) interval from replicates without ties and delete-block values."""
    from scipy.special import ndtr, ndtri

    z0 = ndtri(np.mean(values < theta))
    d = np.mean(deleted) - deleted
    a = np.sum(d**3) / (6 * np.sum(d**2) ** 1.5)
    z = z0 + ndtri([(1 - level) / 2, (1 + level) / 2])
    return tuple(np.quantile(values, ndtr(z0 + z / (1 - a * z))))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_are_quantiles_by_the_linear_rule(level):
    data = binary(60)
    for estimator in ("ece", "ece_ac"):
        result = fastece.bootstrap(*data, estimator=estimator, n_resamples=MANY, rng=3)
        values = result.bootstrap_distribution
        quantiles = tuple(np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
        assert result.interval(level, "percentile") == near(quantiles)
        clipped = tuple(min(max(0.0, end), 1.0) for end in basic(result.value, values, level))
        assert result.interval(level, "basic") == near(clipped)


@pytest.mark.parametrize(("hits", "ends"), [(52, (0, 0.04)), (50, (0, 0))])
def test_basic_interval_is_clipped_at_zero(hits, ends):
    # The error of one bin is |hits / 100 - 1/2|, and of some draw it is 0, of others above 0.1.
    true = np.arange(100) < hits
    prob = np.full(100, 0.5)
    result = fastece.bootstrap(true, prob, n_bins=1, n_resamples=MANY, rng=1)
    low, high = basic(result.value, result.bootstrap_distribution, 0.95)
    assert low < -0.05
    assert high <= ends[1] + 1e-12
    assert result.confidence_interval == near((0, max(0, high)))
    assert result.confidence_interval.low == 0
    assert result.confidence_interval.high >= 0


@pytest.mark.parametrize("n", [50, 200, 400])
def test_bca_accelerates_by_deleted_blocks(n):
    true, prob = binary(n)
    prob = prob**4  # skewed
    order = np.random.default_rng(1).permutation(n)
    true = true[order]
    prob = prob[order]
    result = fastece.bootstrap(true, prob, estimator=Mean(), n_resamples=999, rng=4, method="bca")
    blocks = np.arange(n) % min(n, 200)
    x = true + prob
    deleted = np.array([x[blocks != b].mean() for b in range(min(n, 200))])
    for level in (0.5, 0.95):
        want = bca(result.value, result.bootstrap_distribution, deleted, level)
        assert result.interval(level, "bca") == near(want, 1e-9)
    assert result.confidence_interval == result.interval(0.95, "bca")


# Many replicates of accuracy are equal, and equal to the estimate.
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "accuracy"])
def test_bca_interval_follows_from_single_calls(name):
    true, prob = binary(60)
    # Its width would be the median distance of the rows that are left, not of all rows.
    estimator = fastece.SKCE(width=0.3) if name == "skce" else name
    result = fastece.bootstrap(
        true, prob, estimator=estimator, n_resamples=MANY, rng=4, method="bca"
    )
    rows = np.arange(60)
    deleted = [fastece.ece(true[rows != i], prob[rows != i], estimator=estimator) for i in rows]
    want = bca(result.value, result.bootstrap_distribution, np.array(deleted), 0.9)
    assert result.interval(0.9, "bca") == near(want, 1e-9 if name in BINNED else 1e-6)


def test_bca_is_nan_where_all_replicates_are_on_one_side():
    result = fastece.bootstrap(
        *binary(50), estimator=Distinct(), n_resamples=50, rng=0, method="bca"
    )
    assert result.value == 1 > result.bootstrap_distribution.max()
    assert result.confidence_interval == near((nan, nan))
    assert np.isfinite(result.interval(method="percentile")).all()


def test_interval_of_each_class_equals_the_interval_alone():
    options = {"n_resamples": MANY, "rng": 3, "method": "bca"}
    every = fastece.bootstrap(*classes(80), setting="classwise", average=None, **options)
    for k in range(3):
        alone = fastece.bootstrap(*classes(80), setting=k, **options)
        for method in METHODS:
            low, high = every.interval(0.8, method)
            assert (low[k], high[k]) == near(tuple(alone.interval(0.8, method)))


@pytest.mark.parametrize("size", [1, 5, 49, 51, 120])
def test_draws_of_another_size_have_a_distribution_and_no_interval(size):
    for method in METHODS:
        result = fastece.bootstrap(*binary(50), size=size, n_resamples=40, rng=0, method=method)
        assert (result.n, result.size) == (50, size)
        assert result.value == fastece.ece(*binary(50))
        assert np.isfinite(result.bootstrap_distribution).all()
        assert np.isfinite([result.standard_error, result.bias]).all()
        assert result.confidence_interval == near((nan, nan))
        assert result.interval(0.5, "percentile") == near((nan, nan))
