"""Tests of laws: seeds are fixed, so a test that passes once passes always.

Comments state false-alarm rates over all seeds, which count when the draws change.
"""

from itertools import product
from math import exp, factorial, prod

import numpy as np
from scipy import stats

ALPHA = 1e-4  # of each test of a law


def chi_square_p(observed, expected):
    """P-value of counts; cells in which fewer than 5 are expected are one cell."""
    order = np.argsort(expected)
    observed = np.asarray(observed)[order]
    expected = np.asarray(expected)[order]
    rare = np.cumsum(expected) < 5
    rare[: np.count_nonzero(rare) + 1] = True  # with the cell that makes the sum 5
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if len(observed) == 1:
        return 1.0
    return stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(observed) - 1)


def multinomial_law(n, size):
    """Multiplicities -> probability, by enumeration."""
    every = [c for c in product(range(size + 1), repeat=n) if sum(c) == size]
    return {c: factorial(size) / prod(map(factorial, c)) / n**size for c in every}


def poisson_probabilities(rate, up_to=40):
    """The probabilities of the counts 0, 1, ... under a Poisson law."""
    return [exp(-rate) * rate**k / factorial(k) for k in range(up_to)]


def class_probabilities(n_classes, n=6, seed=0):
    """(n, K) probabilities, of which about a third are 0, the first and the last at times too."""
    rng = np.random.default_rng(seed)
    prob = rng.random((n, n_classes))
    prob = np.where(rng.random((n, n_classes)) < 0.7, prob, 0.0)
    prob[0] = 1.0
    prob[1, 0] = prob[2, -1] = 0.0
    prob[:, n_classes // 2] += 0.01
    prob[3] = np.arange(n_classes) == n_classes - 1
    return prob / prob.sum(1, keepdims=True)
