"""Uncertainty that drawn curves leave out, and draws in which classes are calibrated.

`family_widening` is for what cells, Laplace's approximation and fixed priors leave out.
`sampling_widening` is for scores that are a sample too, and for classes that share their rows. And
since the error of a drawn curve is never 0, the errors of many calibrated classes have a mean that
is clearly above 0: `calibrated_draws` tells in which draws a class has no error.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fastece.estimators.bayes.curves import FAMILY_DRAWS
from fastece.estimators.bayes.process import DRAWS, normal_quantiles
from fastece.kernels.types import F64

# The variance of log errors of each family is multiplied by this: cells, Laplace's approximation
# and fixed priors leave something out.
VARIANCE_FACTORS = (1.65, 1.15, 1.65)
# No error is smaller, where there is a curve.
MIN_ERROR = 1e-12
# The range of shares from 0 to 1 is halved so often: the share is known to 1e-9.
HALVINGS = 30
# The exponential of a larger logarithm of a Bayes factor is no finite number.
MAX_LOG_FACTOR = 700.0
SEED_OF_LEVELS = 11


# --- spread ---------------------------------------------------------------------------------


def family_widening(errors: F64) -> F64:
    """Compute factors that widen the errors (P,) of a pool by family."""
    families = np.split(errors, np.cumsum(FAMILY_DRAWS)[:-1])
    return np.concatenate([*map(spread_factors, families, VARIANCE_FACTORS)])


def sampling_deviation(size: F64, weight: F64, n: float) -> float:
    """Compute the deviation of a mean gap over other scores, relative to the mean.

    The error is the mean of the sizes (M,) of the gaps over all possible scores. The scores of `n`
    rows are only a sample of these; sizes have weights (M,).
    """
    share = weight / weight.sum()
    mean = (share * size).sum()
    return math.sqrt((share * (size - mean) ** 2).sum() / n) / mean if mean > 0 else 0.0


def sampling_widening(errors: F64, variance_factor: float, deviation: float) -> F64:
    """Compute factors (..., S) that give mean errors the missing variance.

    Several classes have the same rows: their influences add up with a variance that is the sum of
    their variances times a factor. And the mean over other scores has a relative deviation.
    """
    return spread_factors(errors, variance_factor) * np.exp(deviation * draw_order())


def shared_variance(influences: Sequence[F64], weight: F64) -> float:
    """Compute the ratio of the variance of a sum to the sum of the variances."""
    apart = sum((weight * influence**2).sum() for influence in influences)
    together = (weight * np.sum(influences, axis=0) ** 2).sum()
    return float(together / apart) if apart > 0 else 1.0


def spread_factors(errors: F64, variance_factor: float) -> F64:
    """Compute factors (..., S) that multiply the variance of log errors."""
    log_errors = np.log(np.maximum(errors, MIN_ERROR))
    median = np.sort(log_errors, axis=-1)[..., log_errors.shape[-1] // 2, None]
    return np.asarray(np.exp((math.sqrt(variance_factor) - 1) * (log_errors - median)))


@lru_cache(maxsize=8)
def draw_order(draws: int = DRAWS) -> F64:
    """Return a normal number (S,) for each draw, in an order unrelated to the draws."""
    golden = np.arange(draws) * ((math.sqrt(5) - 1) / 2) % 1
    return normal_quantiles(draws)[golden.argsort().argsort()]


# --- calibrated classes ---------------------------------------------------------------------


def calibrated_draws(log_factors: F64) -> NDArray[np.bool_]:
    """Decide in which draws (K, S) problems are calibrated, from log factors (K,).

    Each Bayes factor compares a curve with ``c = s``. The share of draws in which a problem is
    calibrated is its posterior probability, and its prior probability is the share of calibrated
    problems.
    """
    factors = np.exp(np.clip(log_factors, -MAX_LOG_FACTOR, MAX_LOG_FACTOR))
    share = calibrated_share(factors)
    probability = share / (share + (1 - share) * factors)
    levels = np.array([shuffled_levels(k) for k in range(factors.size)])
    return np.asarray(levels < probability[:, None])


def calibrated_share(factors: F64) -> float:
    """Compute the likeliest share of calibrated problems from Bayes factors (K,).

    With the share x a problem with the Bayes factor B has the likelihood ``x + (1 - x) B``, up to a
    constant (Efron 2008, "Microarrays, empirical Bayes and the two-groups model"). The logarithm of
    their product is concave in x, so its derivative changes its sign once at most.
    """
    low = 0.0
    high = 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        derivative = ((1 - factors) / (middle + (1 - middle) * factors)).sum()
        if derivative > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=256)
def shuffled_levels(k: int, draws: int = DRAWS) -> F64:
    """Return the levels (q + 1/2) / S between 0 and 1, in an order of problem k."""
    rng = np.random.RandomState([SEED_OF_LEVELS, k])  # whose stream never changes
    return (rng.permutation(draws) + 0.5) / draws
