"""The adaptive test of calibration: the smallest p-value of several statistics."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastece.estimators.binned import Binned
from fastece.kernels.types import F64
from fastece.resampling.arguments import Call
from fastece.resampling.labels import hit_sums, noise_and_hits, rows_or_cells

COMPONENTS = "slope", "smooth", "ece"
# Cells of the scores: the fewer, the less a statistic knows of logits in one of them. Of all
# classes there are at most so many.
MOST_CELLS, LEAST_CELLS, CELLS_OF_ALL = 256, 16, 2**12
# Directions of the smooth statistic, and how fast their weights 1 / k**DECAY fall. With 25 shapes
# of miscalibration this is the best compromise of decays 0.25 to 1.5 and of 8 to 32 directions.
DIRECTIONS, DECAY = 16, 0.75
# A direction of which less than this is left when the ones before are taken off is no new one.
LEAST_PART = 1e-6
# Sums of hits in cells that are in memory at once, 80 MB.
MOST_SUMS = 10**7
# Statistics closer than this are equal: one is rounded otherwise than the other.
ROUNDING = 1e-9


class Component(NamedTuple):
    """One of the statistics of an adaptive test.

    Attributes
    ----------
    name : {"slope", "smooth", "ece"}
    statistic : float
    p_value : float
        Of this statistic alone, among the same draws.
    """

    name: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class AdaptiveTest:
    """Several statistics of one test, for `fastece.calibration_test` alone.

    `n_bins` is of the error "ece" among them, and of the band.
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


def directions_of(score: F64, variance: F64, n: float) -> F64:
    """Compute directions (D, B) in which gaps of B cells have variance 1.

    They are independent: the intercept, the logit of the mean `score`, its square, and cosines
    of the share of the `variance` below a cell, each made orthogonal to those before.
    """
    clipped = score.clip(1 / (2 * n + 2), 1 - 1 / (2 * n + 2))
    logit = np.log(clipped / (1 - clipped))
    total = variance.sum()
    if total == 0:
        return np.zeros((DIRECTIONS, score.size))
    logit = logit - logit @ variance / total
    below = (np.cumsum(variance) - variance / 2) / total
    k = np.arange(1, DIRECTIONS - 2)
    shapes = [np.ones(score.size), logit, logit**2, *np.cos(np.pi * np.outer(k, below))]
    deviation = np.sqrt(variance)
    basis, left = np.linalg.qr((np.array(shapes) * deviation).T)
    length = np.linalg.norm(left, axis=0)
    basis *= np.abs(np.diag(left)) > LEAST_PART * length
    return np.asarray(np.divide(basis.T, deviation, out=np.zeros_like(basis.T), where=variance > 0))


def score_statistics(directions: F64, gaps: F64) -> F64:
    """Compute the statistics (2, R) "slope" and "smooth" of gaps (B, R).

    With the projections q_k of the gaps they are ``q_1**2 + q_2**2`` and
    ``sum_k q_k**2 / k**DECAY``.
    """
    squares = np.einsum("db,br->dr", directions, gaps) ** 2
    weights = np.arange(1, len(squares) + 1) ** -DECAY
    return np.stack([squares[:2].sum(0), np.einsum("d,dr->r", weights, squares)])


def score_values(call: Call, key: int) -> F64:
    """Compute score statistics (K, 2, 1 + R) of each problem, of the data first."""
    data = rows_or_cells(call, "the test")
    count = max(LEAST_CELLS, min(MOST_CELLS, CELLS_OF_ALL // data.n_problems))
    binned = Binned(count, edges="quantile")
    bins, sums, problems = binned.bins(data), hit_sums(binned, data, count), range(data.n_problems)
    means = np.divide(bins.score, bins.weight, out=np.zeros_like(bins.score), where=bins.weight > 0)
    step = max(1, MOST_SUMS // bins.gap.size)
    found: list[list[F64]] = []
    for first in range(0, call.n_resamples, step):
        last = min(first + step, call.n_resamples)
        noise, hits = noise_and_hits(call, data, sums, key, first, last)
        gaps = hits - bins.score[:, :, None]
        if not found:  # those of the data come first
            directions = [directions_of(means[k], noise[0, k], call.n) for k in problems]
            gaps = np.concatenate([bins.gap[:, :, None], gaps], axis=2)
        found.append([score_statistics(directions[k], gaps[k]) for k in problems])
    return np.concatenate(found, axis=-1)


def ranks_among(statistics: F64) -> F64:
    """Compute the share (..., R) of statistics (..., R) that are as large as each."""
    lines = statistics.reshape(-1, statistics.shape[-1])
    least = lines * (1 - ROUNDING) - ROUNDING**2
    smaller = [np.searchsorted(np.sort(line), x) for line, x in zip(lines, least, strict=True)]
    count = lines.shape[-1]
    return ((count - np.array(smaller)) / count).reshape(statistics.shape)


def adaptive_values(call: Call, key: int, value: Any, null: F64) -> tuple[F64, F64, Any]:
    """Compute the smallest p-values of the data and of all draws, and the components.

    `value` and `null` are the error "ece" of the data and of the draws of the same key.
    """
    scores = call.average_of(score_values(call, key))
    error = np.concatenate([np.asarray(value)[..., None], null], axis=-1)
    statistics = np.concatenate([scores, error[..., None, :]], axis=-2)
    p_values = ranks_among(statistics)
    smallest = p_values.min(-2)

    def components(found: F64, p: F64) -> tuple[Component, ...]:
        return tuple(map(Component, COMPONENTS, found.tolist(), p.tolist()))

    first = statistics[..., 0], p_values[..., 0]
    known = components(*first) if smallest.ndim == 1 else [*map(components, *first)]
    return smallest[..., 0], smallest[..., 1:], known
