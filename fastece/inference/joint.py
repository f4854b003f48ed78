"""P-values of several hypotheses that hold for all of them together.

Draws that all hypotheses share show how these depend on each other, whatever they have in common:
step-down min-p, Westfall and Young (1993), "Resampling-based multiple testing", algorithm 2.8; for
comparisons of models Romano and Wolf (2005), "Stepwise multiple testing as formalized data
snooping". The hypotheses may be slices, classes, predicted classes or models; whoever asks makes
the draws.
"""

import numpy as np

from fastece.kernels.types import F64
from fastece.resampling.adaptive import rank_p_values


def joint_p_values(alone: F64, statistics: F64 | None = None) -> F64:
    """Adjust p-values (S,) so that they hold for all S hypotheses together.

    The hypotheses are taken from the smallest p-value on. Each has the probability that the
    smallest p-value of those that are not before it is as small, and at least the joint p-value of
    the hypothesis before. The probability is at most the p-value times the number of hypotheses
    that are left, which is Holm's (1979, "A simple sequentially rejective multiple test
    procedure"), and at least the p-value. Shared draws tell where it lies between the two.

    Parameters
    ----------
    alone : (S,) float64 array
        P-value of each hypothesis by itself, of any test. A hypothesis whose p-value is nan is not
        tested and counts for none.
    statistics : (S, R) float64 array, optional
        A statistic of each hypothesis on R draws that all share, larger where there is more
        evidence; nan is none. Only its order among the draws counts. Without it, the hypotheses may
        depend on each other in any way, and the largest probability is taken.

    Returns
    -------
    (S,) float64 array
    """
    n_tested = alone.size - int(np.isnan(alone).sum())
    order = np.argsort(alone, kind="stable")[:n_tested]  # nan is last
    p_values = alone[order]
    probabilities = p_values * np.arange(n_tested, 0, -1)
    if statistics is not None and n_tested:
        shares = shares_of_smallest(p_values, statistics[order])
        probabilities = np.clip(shares, p_values, probabilities)
    joint = np.full(alone.size, np.nan)
    joint[order] = np.maximum.accumulate(np.minimum(probabilities, 1.0))
    return joint


def shares_of_smallest(p_values: F64, statistics: F64) -> F64:
    """Compute for each p-value (S,) the share of draws whose smallest one is as small.

    The p-values are in increasing order. The smallest one of a draw is taken over the hypotheses
    that are not before the one that it is compared with.

    Parameters
    ----------
    p_values : (S,) float64 array
    statistics : (S, R) float64 array
    """
    n_draws = statistics.shape[1]
    shares = rank_p_values(np.where(np.isnan(statistics), -np.inf, statistics))
    # A p-value counts the data among the draws, so the smallest one has rank 1.
    p_values_of_draws = np.rint(shares * n_draws) / (n_draws + 1)
    smallest = np.minimum.accumulate(p_values_of_draws[::-1], axis=0)[::-1]
    n_as_small = np.count_nonzero(smallest <= p_values[:, None], axis=1)
    return np.asarray(n_as_small / (n_draws + 1))
