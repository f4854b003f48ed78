"""The true calibration error of a distribution of scores, from all of its rows."""

import math
from typing import NamedTuple

import numpy as np

from fastece.data.table import one_problem
from fastece.estimators.binned import Binned
from fastece.kernels.types import F64
from fastece.study.design import Population

# The published truth: bins of equal width on the labels of all rows.
PUBLISHED_TRUTH = Binned(n_bins=2000, closed="left")


class Truth(NamedTuple):
    """True errors of a distribution of scores in one setting: means over its problems.

    Parameters
    ----------
    debiased : float
        The error from exact probabilities or outcomes, by `debiased_error`.
    from_labels : float
        The published truth: the error of 2000 bins of equal width on labels.
    standard_error : float
        Standard error of the debiased error.
    """

    debiased: float
    from_labels: float
    standard_error: float


def truth_of(population: Population) -> Truth:
    """Compute the true errors of the rows of a distribution in one setting.

    The problems have the same rows, so that their influences add up.
    """
    values = []
    influences = []
    for sample, chance in zip(population.samples, population.chances, strict=True):
        value, influence_on_value = debiased_error(sample.s, chance, population.n_bins)
        values.append(value)
        influences.append(influence_on_value)
    labels = [PUBLISHED_TRUTH.point_values(one_problem(sample))[0] for sample in population.samples]
    influence = np.mean(influences, axis=0)
    return Truth(
        debiased=float(np.mean(values)),
        from_labels=float(np.mean(labels)),
        standard_error=float(np.sqrt(influence @ influence) / influence.size),
    )


def debiased_error(s: F64, chance: F64, n_bins: int) -> tuple[float, F64]:
    """Compute ``E |P(event | s) - s|``, without the part that is due to chance.

    Parameters
    ----------
    s : (n,) float64 array
        Scores.
    chance : (n,) float64 array
        Exact probability of the event in each row, or outcomes.
    n_bins : int
        Number of bins of equal mass.

    Returns
    -------
    value : float
    influence : (n,) float64 array
        Influence of each row on the value, whose standard error is ``sqrt(sum influence**2) / n``.

    Notes
    -----
    With D the mean of ``chance - s`` over the W_b rows of bin b, and d its standard error, the
    value is ``sum_b W_b / n (2 |D| - E |N(D, d**2)|)``: the part of |D| that is due to chance is
    estimated by the part that chance would add again. Without that, calibrated scores have a floor;
    with outcomes in place of probabilities it is several times as high.

    The influence of a row of bin b is ``sign(D) (chance - s - D)`` plus the excess of the bin's
    part over the value, since its score is random too. Where D is 0 that is 22 % too much, and at
    two d 8 % too little.
    """
    order = np.argsort(s, kind="stable")
    sorted_s = s[order]
    gap = chance[order] - sorted_s
    # Rows of equal scores are in the bin of the first of them.
    first_of_score = np.searchsorted(sorted_s, sorted_s)
    _, bin_of_row, count = np.unique(
        first_of_score * n_bins // s.size, return_inverse=True, return_counts=True
    )
    mean = np.bincount(bin_of_row, gap) / count
    residual = gap - mean[bin_of_row]
    squares = np.bincount(bin_of_row, residual**2)
    standard_error = np.sqrt(squares / (count * np.maximum(count - 1, 1)))
    size = np.abs(mean)
    part = 2 * size - mean_of_folded(size, standard_error)
    value = float(part @ count / s.size)
    influence = np.empty(s.size)
    influence[order] = np.sign(mean)[bin_of_row] * residual + part[bin_of_row] - value
    return value, influence


def mean_of_folded(mean: F64, sd: F64) -> F64:
    """Compute ``E |N(mean, sd**2)|`` of the folded normal distribution, mean >= 0.

    Leone, Nelson and Nottingham (1961, "The folded normal distribution").
    """
    from scipy.special import ndtr

    z = mean / np.maximum(sd, np.finfo(float).tiny)
    with np.errstate(under="ignore", over="ignore"):
        density_part = sd * math.sqrt(2 / math.pi) * np.exp(-0.5 * z * z)
        return np.asarray(density_part + mean * (1 - 2 * ndtr(-z)))
