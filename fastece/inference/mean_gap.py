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
    samples: Sequence[Sample], effect: float, per_class: bool, level: float,
    shares: F64 | None = None,
) -> tuple[Any, ConfidenceInterval]:  # fmt: skip
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
    shares : (K,) float64 array, optional
        Weights of the samples in their mean, by default equal ones.
    """
    gaps = np.array([gap_interval(scale_weights(sample)[0], level, effect) for sample in samples])
    value, low, high = gaps.T if per_class else np.average(gaps, axis=0, weights=shares)
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
    moments = sum_up(sample)
    mean = moments.mean
    score = moments.score
    z_square = effect * normal_or_t_quantile(level, effect, moments.per_row) ** 2
    variance = moments.variance_at_zero()
    ends_below = solve_quadratic(moments, z_square, variance, -moments.slope(score))
    ends_above = solve_quadratic(moments, z_square, variance, moments.slope(1 - score))
    if mean * mean <= z_square * variance:  # 0 is in the interval
        low, _ = ends_below
        _, high = ends_above
    elif mean > 0:
        low, high = ends_above
    else:
        low, high = ends_below
    return MeanGap(mean, min(max(low, -score), mean), max(min(high, 1 - score), mean))


class GapMoments(NamedTuple):
    """Moments of the gaps g of rows with weights w and scores s.

    Attributes
    ----------
    score, mean : float
        Mean score and mean gap, ``sum w s / W`` and ``sum w g / W``.
    per_row : float
        ``sum w^2 / W^2``: one over Kish's number of rows.
    null_variance : float
        Variance of the mean gap of a calibrated model, ``sum w^2 s (1 - s) / W^2``.
    cross, square : float
        ``sum w^2 g / W^2`` and ``sum w^2 g^2 / W^2``.
    """

    score: float
    mean: float
    per_row: float
    null_variance: float
    cross: float
    square: float

    def slope(self, room: float) -> float:
        """Return u - 2 v(0) / room: how the variance grows with the size of a mean gap.

        The variance at the mean gap d is ``v(0) + slope |d| - per_row d^2``, up to the largest size
        `room` that it can have.
        """
        return self.per_row - 2 * self.null_variance / room if room > 0 else self.per_row

    def variance_at_zero(self) -> float:
        """Return v(0), raised so that the variance at the mean gap is the one of the data."""
        of_data = self.square - 2 * self.mean * self.cross + self.mean * self.mean * self.per_row
        slope = self.slope(1 - self.score if self.mean > 0 else self.score)
        at_zero = of_data - slope * abs(self.mean) + self.mean * self.mean * self.per_row
        return max(self.null_variance, at_zero)


def sum_up(sample: Sample) -> GapMoments:
    """Compute the moments of the gaps of a sample, some rows at a time."""
    sums = np.sum([sum_gaps(part) for part in sample.parts(ROWS_AT_ONCE)], axis=0)
    score, mean = (sums[1:3] / sums[0]).tolist()
    per_row, null_variance, cross, square = (sums[3:] / sums[0] ** 2).tolist()
    return GapMoments(score, mean, per_row, null_variance, cross, square)


def sum_gaps(sample: Sample) -> F64:
    """Sum up seven products of weights w, scores s and gaps g.

    They are w, ``w s``, ``w g``, w^2, ``w^2 s (1 - s)``, ``w^2 g`` and ``w^2 g^2``.
    """
    s = sample.s
    gap = sample.y - s
    once = np.ones(sample.n)
    weight = sample.total_weights
    square = weight * sample.weights
    sums = [weight @ x for x in (once, s, gap)]
    sums += [square @ x for x in (once, s * (1 - s), gap, gap * gap)]
    return np.array(sums)


def normal_or_t_quantile(level: float, effect: float, per_row: float) -> float:
    """Return the quantile of a normal law, or of Student's t law with groups."""
    if effect <= 1:
        return NormalDist().inv_cdf((1 + level) / 2)
    from scipy.special import stdtrit

    degrees_of_freedom = max(1 / (effect * per_row) - 1, 1.0)
    return float(stdtrit(degrees_of_freedom, (1 + level) / 2))


def solve_quadratic(
    moments: GapMoments, z_square: float, variance: float, slope: float
) -> tuple[float, float]:
    """Solve ``(mean - d)^2 = z^2 (variance + slope d - per_row d^2)`` for d."""
    a = 1 + z_square * moments.per_row
    b = moments.mean + z_square * slope / 2
    c = moments.mean * moments.mean - z_square * variance
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a
