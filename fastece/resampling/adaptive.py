"""The adaptive test of calibration: the smallest p-value of several statistics.

Its statistics are the gaps of cells of the scores, looked at along fixed directions: `slope` and
`smooth`, and the error "ece". Each has a p-value among the draws; the smallest one is compared with
the smallest p-value of every draw (min-p), so that the level is exact: Westfall and Young (1993),
"Resampling-based multiple testing", section 2.3.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastece.estimators.binned import Binned, Bins
from fastece.kernels.types import F64
from fastece.resampling.call import Call, average_classes
from fastece.resampling.engine import ranges
from fastece.resampling.outcome_sums import NullModel, make_outcome_sums, rows_or_cells

COMPONENTS = ("slope", "smooth", "ece")
# Equal-mass cells of the scores: the fewer, the less a statistic knows of the logits in one.
MAX_CELLS = 256
MIN_CELLS = 16
# Cells of all classes together, unless each had fewer than `MIN_CELLS`.
MAX_CELLS_OF_CLASSES = 2**12
# Directions of the smooth statistic, and how fast their weights k**-DECAY fall. With 25 shapes of
# miscalibration this is the best compromise of decays 0.25 to 1.5 and of 8 to 32 directions.
DIRECTIONS = 16
DECAY = 0.75
# A direction is left out if less than this fraction of it is orthogonal to the ones before.
MIN_NEW_FRACTION = 1e-6
# Sums of outcomes in cells that are in memory at once, 80 MB.
MAX_SUMS = 10**7
# Statistics closer than this are equal: sums in another order round otherwise.
ROUNDING = 1e-9


class Component(NamedTuple):
    """One of the statistics of an adaptive test.

    Attributes
    ----------
    name : {"slope", "smooth", "ece"}
    statistic : float
    p_value : float
        P-value of this statistic alone, among the same draws.
    """

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class AdaptiveTest:
    """Several statistics of one test, for `fastece.calibration_test` alone.

    Attributes
    ----------
    n_bins : int or "sqrt"
        Bins of the error "ece" among the statistics, and of the band.
    """

    n_bins: Any = 15

    is_calibration_error: ClassVar = True
    needs_vectors: ClassVar = False
    native: ClassVar = ()

    @property
    def ece(self) -> Binned:
        """The error among the statistics."""
        return Binned(self.n_bins)

    def __str__(self) -> str:
        return "adaptive" if self == ADAPTIVE else f"adaptive(n_bins={self.n_bins})"


ADAPTIVE = AdaptiveTest()


# --- score statistics -----------------------------------------------------------------------


def make_directions(score: F64, variance: F64, n: float) -> F64:
    """Compute directions (D, B) along which gaps of B cells are independent.

    Along each of them the variance of the gaps is 1.

    The shapes are 1, the logit of the mean score, its square, and cosines ``cos(pi k u)`` of the
    share u of the variance below a cell; each is made orthogonal to those before, with respect to
    the variances. The first two are the score statistics of the intercept and the slope of a
    logistic recalibration (Cox 1958, "Two further applications of a model for binary regression"),
    all of them a smooth test (Neyman 1937, "Smooth test for goodness of fit").

    Parameters
    ----------
    score : (B,) float64 array
        Mean score of each cell.
    variance : (B,) float64 array
        Variance of the gap of each cell, if the model is calibrated.
    n : float
        Number of rows, which bounds the logits.
    """
    total = variance.sum()
    if total == 0:
        return np.zeros((DIRECTIONS, score.size))
    smallest = 1 / (2 * n + 2)
    clipped = score.clip(smallest, 1 - smallest)
    logit = np.log(clipped / (1 - clipped))
    logit = logit - logit @ variance / total
    share_below = (np.cumsum(variance) - variance / 2) / total
    k = np.arange(1, DIRECTIONS - 2)
    shapes = [np.ones(score.size), logit, logit**2, *np.cos(np.pi * np.outer(k, share_below))]
    deviation = np.sqrt(variance)
    basis, remainders = np.linalg.qr((np.array(shapes) * deviation).T)
    length = np.linalg.norm(remainders, axis=0)
    basis *= np.abs(np.diag(remainders)) > MIN_NEW_FRACTION * length
    return np.asarray(np.divide(basis.T, deviation, out=np.zeros_like(basis.T), where=variance > 0))


def score_statistics(directions: F64, gaps: F64) -> F64:
    """Compute the slope and the smooth statistic (2, R) of gaps (B, R).

    With the projections q_k of the gaps on the directions they are ``q_1**2 + q_2**2`` and
    ``sum_k q_k**2 / k**DECAY``.
    """
    squares = np.einsum("db,br->dr", directions, gaps) ** 2
    weights = np.arange(1, len(squares) + 1) ** -DECAY
    slope = squares[:2].sum(0)
    smooth = np.einsum("d,dr->r", weights, squares)
    return np.stack([slope, smooth])


@dataclass(frozen=True)
class ScoreTest:
    """Score statistics of K problems, from the outcomes in their cells.

    Attributes
    ----------
    bins : Bins
        Sums of the data over the C cells of each problem.
    directions : list of (D, C) float64 arrays
        Those of each problem, as `make_directions` computes them.
    """

    bins: Bins
    directions: list[F64]

    def of_data(self) -> list[F64]:
        """Compute the statistics (2, 1) of each problem on the data."""
        return self._of_gaps(self.bins.gap[:, :, None])

    def of_outcomes(self, weights: F64) -> list[F64]:
        """Compute the statistics (2, R) of each problem from weights (K, C, R)."""
        return self._of_gaps(weights - self.bins.score[:, :, None])

    def _of_gaps(self, gaps: F64) -> list[F64]:
        pairs = zip(self.directions, gaps, strict=True)
        return [score_statistics(directions, gap) for directions, gap in pairs]


def make_score_test(bins: Bins, variance: F64, n: float) -> ScoreTest:
    """Make the test of n rows from bins, and the variances (K, C) of their gaps."""
    score = np.divide(bins.score, bins.weight, out=np.zeros_like(bins.score), where=bins.weight > 0)
    pairs = zip(score, variance, strict=True)
    return ScoreTest(bins, [make_directions(mean, noise, n) for mean, noise in pairs])


def score_cells(n_problems: int) -> Binned:
    """Return the equal-mass cells in which outcomes are summed up."""
    n_cells = max(MIN_CELLS, min(MAX_CELLS, MAX_CELLS_OF_CLASSES // n_problems))
    return Binned(n_cells, edges="quantile")


def compute_score_statistics(call: Call, key: int) -> F64:
    """Compute score statistics (K, 2, 1 + R) of each problem, of the data first."""
    data = rows_or_cells(call, "the test")
    binned = score_cells(data.n_problems)
    bins = binned.bins(data)
    model = NullModel(call, data, make_outcome_sums(binned, data, bins.gap.shape[1]), key)
    test = make_score_test(bins, model.noise()[0], call.n)
    statistics = [test.of_data()]
    step = max(1, MAX_SUMS // bins.gap.size)
    for first, last in ranges(0, call.n_resamples, step):
        statistics.append(test.of_outcomes(model.draw(first, last)))
    return np.concatenate(statistics, axis=-1)


# --- the smallest p-value -------------------------------------------------------------------


class Components(NamedTuple):
    """Statistics and p-values (..., 3, 1 + R) of the data and of R draws."""

    statistics: F64
    p_values: F64

    def of_data(self) -> Any:
        """Return the components of the data: a tuple, or a list of one for each class."""
        statistics = self.statistics[..., 0]
        p_values = self.p_values[..., 0]
        if statistics.ndim == 1:
            return make_components(statistics, p_values)
        return [make_components(*pair) for pair in zip(statistics, p_values, strict=True)]


def make_components(statistics: F64, p_values: F64) -> tuple[Component, ...]:
    """Name three statistics with their p-values."""
    return tuple(map(Component, COMPONENTS, statistics.tolist(), p_values.tolist()))


def compute_components(call: Call, key: int, error: Any, null_errors: F64) -> Components:
    """Compute the statistics of the data and of all draws, with their p-values.

    `error` and `null_errors` are the error "ece" of the data, and of the draws of the same key.
    """
    scores = average_classes(call, compute_score_statistics(call, key))
    errors = np.concatenate([np.asarray(error)[..., None], null_errors], axis=-1)
    statistics = np.concatenate([scores, errors[..., None, :]], axis=-2)
    return Components(statistics, rank_p_values(statistics))


def rank_p_values(statistics: F64) -> F64:
    """Compute the share (..., R) of statistics (..., R) that are as large as each."""
    lines = statistics.reshape(-1, statistics.shape[-1])
    thresholds = lines - ROUNDING * np.abs(lines) - ROUNDING**2
    n_smaller = [
        np.searchsorted(np.sort(line), threshold)
        for line, threshold in zip(lines, thresholds, strict=True)
    ]
    count = lines.shape[-1]
    return ((count - np.array(n_smaller)) / count).reshape(statistics.shape)


def min_p_statistics(components: Components) -> F64:
    """Compute the smallest p-value (..., 1 + R) of the data and of each draw."""
    return np.asarray(components.p_values.min(-2))
