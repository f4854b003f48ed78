"""The calibration error that estimates are compared with."""

import math
from typing import NamedTuple

import numpy as np

from fastece.data.problems import one_problem
from fastece.data.sample import Sample
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.table import direct_values
from fastece.study.arena import Population
from fastece.typing import F64

PUBLISHED = Binned(n_bins=2000, closed="left")


class Truth(NamedTuple):
    """The calibration error of a problem, and how each row (n,) pulls at it: the standard error is
    the root of the sum of their squares, divided by n."""

    value: float
    influence: F64


def debiased_error(s: F64, q: F64, n_bins: int) -> Truth:
    """``E |P(hit | s) - s|``, from scores s (n,) and what is known of hits q (n,): their exact
    probabilities, or the hits themselves.

    With D the mean of ``q - s`` over the W_b rows of bin b, of equal mass, and d its standard
    error, the value is ``sum_b W_b / n (2 |D| - E |N(D, d**2)|)``: what chance adds to |D| is
    estimated by what it would add once more. Without that, calibrated scores have a floor; with
    hits in place of probabilities it is several times as high.

    A row of bin b pulls by ``sign(D) (q - s - D)``, and by how much the bin's part exceeds the
    value, since its score too could have been another. Where D is 0 that is 22 % too much, and at
    two d 8 % too little.
    """
    order = np.argsort(s, kind="stable")
    s, gap = s[order], q[order] - s[order]
    bins = np.searchsorted(s, s) * n_bins // s.size  # ties together, where the first of them is
    _, bins, count = np.unique(bins, return_inverse=True, return_counts=True)
    mean = np.bincount(bins, gap) / count
    squares = np.bincount(bins, (gap - mean[bins]) ** 2)
    error = np.sqrt(squares / (count * np.maximum(count - 1, 1)))
    corrected = 2 * np.abs(mean) - mean_of_folded(np.abs(mean), error)
    value = float(corrected @ count / s.size)
    influence = np.empty(s.size)
    influence[order] = (np.sign(mean)[bins] * (gap - mean[bins])) + corrected[bins] - value
    return Truth(value, influence)


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
    """The published truth: 2000 bins of equal width on the labels of all rows."""
    return float(direct_values(PUBLISHED, one_problem(sample))[0])


def truths_of(population: Population) -> tuple[float, float, float]:
    """The mean over the problems of the debiased error and of the truth from labels, and the
    standard error of the former: the problems have the same rows, so their pulls add up."""
    pairs = zip(population.samples, population.chances, strict=True)
    found = [debiased_error(sample.s, q, population.n_bins) for sample, q in pairs]
    pull = np.mean([truth.influence for truth in found], axis=0)
    labels = np.mean([truth_from_labels(sample) for sample in population.samples])
    value = float(np.mean([truth.value for truth in found]))
    return value, float(labels), float(np.sqrt(pull @ pull) / pull.size)
