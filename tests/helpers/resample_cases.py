"""Data, variants and comparisons of the tests of what resamples."""

import numpy as np
import pytest

import fastece
from fastece import Binned
from fastece.estimators.table import ESTIMATORS

BINNED = [name for name, estimator in ESTIMATORS.items() if isinstance(estimator, Binned)]


VARIANTS = [
    *(ESTIMATORS[name] for name in BINNED),
    Binned(n_bins="sqrt"),
    Binned(n_bins="sqrt", edges="quantile", mapping="convex"),
    Binned(n_bins=3, edges="quantile", closed="left", norm=2),
    Binned(n_bins=4, norm=np.inf),
    Binned(n_bins=4, edges="quantile", bin_weights="equal", threshold=0.3),
    Binned(n_bins=5, score_range="support"),
]


MANY = 500


METHODS = ["basic", "percentile", "bca"]


def binary(n, seed=0, decimals=None):
    """(y_true, y_prob) of a classifier that is a little too sure of itself."""
    rng = np.random.default_rng(seed)
    prob = rng.random(n) if decimals is None else rng.random(n).round(decimals)
    return (rng.random(n) < 0.1 + 0.7 * prob).astype(np.int64), prob


def classes(n, n_classes=3, seed=0):
    """(y_true, y_prob) of several classes; the same labels for any number of them."""
    rng = np.random.default_rng(seed)
    prob = rng.random((n, n_classes)) ** 3
    prob /= prob.sum(axis=1, keepdims=True)
    return np.where(rng.random(n) < 0.6, prob.argmax(axis=1), rng.integers(0, n_classes, n)), prob


def two_models(n, seed=0):
    """(y_true, y_prob_a, y_prob_b): the second is the first with noise."""
    true, prob = binary(n, seed)
    noise = np.random.default_rng(seed + 1).normal(0, 0.15, n)
    return true, prob, np.clip(prob + noise, 0, 1)


def near(value, slack=1e-12):
    return pytest.approx(value, abs=slack, nan_ok=True)


def same_bits(a, b):
    """The same numbers to the last bit, nan included."""
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)


def distribution(*data, n_resamples=40, rng=5, **options):
    result = fastece.bootstrap(*data, n_resamples=n_resamples, rng=rng, **options)
    return result.bootstrap_distribution


def basic(theta, values, level):
    """Reflected quantiles."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return 2 * theta - high, 2 * theta - low
