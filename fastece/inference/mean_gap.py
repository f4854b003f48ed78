"""The mean gap, observed frequency minus mean score, with its interval."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fastece.data.samples import Sample, scale_weights
from fastece.display.numbers import ConfidenceInterval
from fastece.kernels.types import F64
from fastece.resampling.intervals import as_float

# Rows whose gaps are added up at once.
ROWS_AT_ONCE = 2**18


class MeanGap(NamedTuple):
    """The mean gap of a problem, with the ends of its interval."""

    value: float
    low: float
    high: float


def mean_gap(
    samples: Sequence[Sample], effect: float, per_class: bool, level: float
) -> tuple[Any, ConfidenceInterval]:
    """Compute the mean gap of each class, or their mean, with its interval.

    Parameters
    ----------
    samples : sequence of Sample
    effect : float
        Design effect of groups, 1 without.
    per_class : bool
        Whether each class has a value of its own.
    level : float
        The confidence level.
    """
    gaps = np.array([gap_interval(scale_weights(sample)[0], level, effect) for sample in samples])
    value, low, high = gaps.T if per_class else gaps.mean(0)
    return as_float(value), ConfidenceInterval(as_float(low), as_float(high))


def gap_interval(sample: Sample, level: float, effect: float = 1.0) -> MeanGap:
    """Compute the mean gap of a problem, and its interval.

    It extends the interval of Wilson (1927), "Probable inference, the law of succession, and
    statistical inference", to scores that differ: all d with ``(D - d)^2 <= z^2 v(d)``, where
    D is the mean gap of the data. If a part of the outcomes 0 becomes 1, or of the outcomes 1
    becomes 0, so that the mean gap is d, D has the variance ``v(d)`` of a single cell in
    `inference.cells`. This is raised where labels vary more around the mean gap of the data.

    With a design effect, z^2 is multiplied by it, and z is a quantile of Student's t distribution,
    as the variance of fewer rows is not known as well.
    """
    sums = GapSums(*np.sum([sum_gaps(part) for part in sample.parts(ROWS_AT_ONCE)], axis=0))
    score = float(sums.score / sums.weight)
    mean = float(sums.gap / sums.weight)
    square_of_weight = sums.weight**2
    per_row = float(sums.squares / square_of_weight)
    null_variance = float(sums.variance / square_of_weight)
    # v(d) is v(0) + slope |d| - d^2 / n, with a slope below 0 and one above.
    slope_below = slope_of_variance(per_row, null_variance, score)
    slope_above = slope_of_variance(per_row, null_variance, 1 - score)
    slope = slope_above if mean > 0 else slope_below
    cross = float(sums.square_gap / square_of_weight)
    square = float(sums.square_square / square_of_weight)
    variance_seen = square - 2 * mean * cross + mean * mean * per_row
    variance = max(null_variance, variance_seen - slope * abs(mean) + mean * mean * per_row)

    z_square = effect * normal_or_t_quantile(level, effect, per_row) ** 2
    ends_below = solve_quadratic(mean, z_square, per_row, variance, -slope_below)
    ends_above = solve_quadratic(mean, z_square, per_row, variance, slope_above)
    if mean * mean <= z_square * variance:  # 0 is in the interval
        low, _ = ends_below
        _, high = ends_above
    elif mean > 0:
        low, high = ends_above
    else:
        low, high = ends_below
    return MeanGap(mean, min(max(low, -score), mean), max(min(high, 1 - score), mean))


def slope_of_variance(per_row: float, null_variance: float, room: float) -> float:
    """Return how fast the variance of a mean gap grows with its size, up to `room`."""
    return per_row - 2 * null_variance / room if room > 0 else per_row


def normal_or_t_quantile(level: float, effect: float, per_row: float) -> float:
    """Return the quantile of a normal law, or of Student's t law with groups."""
    if effect <= 1:
        return NormalDist().inv_cdf((1 + level) / 2)
    from scipy.special import stdtrit

    degrees_of_freedom = max(1 / (effect * per_row) - 1, 1.0)
    return float(stdtrit(degrees_of_freedom, (1 + level) / 2))


def solve_quadratic(
    mean: float, z_square: float, per_row: float, variance: float, slope: float
) -> tuple[float, float]:
    """Solve ``(mean - d)^2 = z^2 (variance + slope d - per_row d^2)`` for d."""
    a = 1 + z_square * per_row
    b = mean + z_square * slope / 2
    root = math.sqrt(max(b * b - a * (mean * mean - z_square * variance), 0.0))
    return (b - root) / a, (b + root) / a


class GapSums(NamedTuple):
    """Sums over rows with weights w, gaps g and scores s.

    They are sums of w, ``w s``, ``w g``, w^2, ``w^2 s (1 - s)``, ``w^2 g`` and ``w^2 g^2``.
    """

    weight: float
    score: float
    gap: float
    squares: float
    variance: float
    square_gap: float
    square_square: float


def sum_gaps(sample: Sample) -> F64:
    """Sum up the quantities (7,) of `GapSums`."""
    s = sample.s
    gap = sample.y - s
    once = np.ones(sample.n)
    weight = sample.total_weights
    square = weight * sample.weights
    sums = [weight @ x for x in (once, s, gap)]
    sums += [square @ x for x in (once, s * (1 - s), gap, gap * gap)]
    return np.array(sums)
