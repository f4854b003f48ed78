"""The share of calibrated problems among several, as among classes, by maximum likelihood.

The error of a drawn curve is never 0, so the errors of many calibrated classes have a mean that is
clearly above 0. The low end of the interval of a mean therefore allows for classes without error.
"""

import numpy as np
from numpy.typing import NDArray

from fastece.estimators.bayes.fixed_numbers import shuffled_levels
from fastece.kernels.types import F64

# The range of shares from 0 to 1 is halved so often: the share is known to 1e-9.
HALVINGS = 30
# The exponential of a larger logarithm of a Bayes factor is no finite number.
MAX_LOG_FACTOR = 700.0


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
