"""The calibration error that estimates are compared with."""

import math
from collections.abc import Sequence

import numpy as np

from fastece.binned.estimator import Binned
from fastece.estimators import direct_values
from fastece.problems.problems import one_problem
from fastece.protocol import Sample
from fastece.typing import F64

# 1000 rows of a hold-out of 200 000 in each. With half or twice as many bins the truth changes by
# less than 2 % wherever it is above 0.02.
BINS = 200
PUBLISHED = Binned(n_bins=2000, closed="left")


def truth_from_posterior(s: F64, q: F64, n_bins: int = BINS) -> float:
    """``E |P(hit | s) - s|``, from scores s (n,) and exact probabilities q (n,) of hits.

    With D the mean of ``q - s`` over the rows of one of `n_bins` bins of equal mass and d its
    standard error, the value is the mean over bins of ``2 |D| - E |N(D, d**2)|``: what chance adds
    to |D| is estimated by what it would add once more. Without that, calibrated scores have a
    floor; with labels in place of q it is several times as high.
    """
    order = np.argsort(s, kind="stable")
    s, gap = s[order], q[order] - s[order]
    bins = np.searchsorted(s, s) * n_bins // s.size  # ties together, where the first of them is
    _, bins, count = np.unique(bins, return_inverse=True, return_counts=True)
    mean = np.bincount(bins, gap) / count
    squares = np.bincount(bins, (gap - mean[bins]) ** 2)
    error = np.sqrt(squares / (count * np.maximum(count - 1, 1)))
    corrected = 2 * np.abs(mean) - mean_of_folded(np.abs(mean), error)
    return float(corrected @ count / s.size)


def mean_of_folded(mean: F64, sd: F64) -> F64:
    """``E |N(mean, sd**2)|``, mean >= 0: of the folded normal distribution (Leone, Nelson and
    Nottingham, 1961)."""
    from scipy.special import ndtr

    z = mean / np.maximum(sd, np.finfo(float).tiny)
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(
            sd * math.sqrt(2 / math.pi) * np.exp(-0.5 * z * z) + mean * (1 - 2 * ndtr(-z))
        )


def truth_from_labels(sample: Sample) -> float:
    """The published truth: 2000 bins of equal width on the labels of the hold-out."""
    return float(direct_values(PUBLISHED, one_problem(sample))[0])


def truths_of(samples: Sequence[Sample], chances: Sequence[F64]) -> tuple[float, float]:
    """The mean over the problems of the truth from the posterior, given the exact probabilities of
    hits of each, and of the truth from labels."""
    pairs = zip(samples, chances, strict=True)
    exact = np.mean([truth_from_posterior(sample.s, q) for sample, q in pairs])
    return float(exact), float(np.mean([truth_from_labels(sample) for sample in samples]))
