"""The mean gap, observed frequency minus mean score, with its interval."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from fastece.data.samples import Sample, scale_weights
from fastece.display.numbers import ConfidenceInterval
from fastece.kernels.types import F64
from fastece.resampling.intervals import as_float

# Rows whose gaps are added up at once.
PART = 2**18


def mean_gap(
    samples: Sequence[Sample], effect: float, per_class: bool, level: float
) -> tuple[Any, ConfidenceInterval]:
    """Compute the mean gap of problems, and its interval with a design effect.

    It is that of each class, or their mean.
    """
    found = np.array([gap_interval(scale_weights(x)[0], level, effect) for x in samples])
    value, low, high = found.T if per_class else found.mean(0)
    return as_float(value), ConfidenceInterval(as_float(low), as_float(high))


def gap_interval(sample: Sample, level: float, effect: float = 1.0) -> tuple[float, float, float]:
    """Compute the mean gap of a problem, and the ends of its interval.

    The interval is Wilson's, for scores that differ.

    If a part of the misses comes true, or of the hits does not, so that the mean gap is d, the mean
    gap D has the variance ``v(d)`` of the only cell in `intervals.cells`. V is raised where labels
    vary more than that around the mean gap that is seen. The interval has all d for which
    ``(D - d)^2 <= z^2 v(d)``.
    """
    sums: F64 = np.sum([gap_sums(part) for part in sample.parts(PART)], axis=0)
    score, mean = (sums[1:3] / sums[0]).tolist()
    per_row, model, cross, square = (sums[3:] / sums[0] ** 2).tolist()
    # Below 0 and above it the variance grows with the size of d by these.
    slopes = [per_row - 2 * model / room if room > 0 else per_row for room in (score, 1 - score)]
    seen = square - 2 * mean * cross + mean * mean * per_row
    variance = max(model, seen - slopes[mean > 0] * abs(mean) + mean * mean * per_row)
    # With a design effect all of this is as of fewer rows, whose variance is not known as well.
    z = NormalDist().inv_cdf((1 + level) / 2)
    if effect > 1:
        from scipy.special import stdtrit

        z = float(stdtrit(max(1 / (effect * per_row) - 1, 1.0), (1 + level) / 2))
    z_square = effect * z**2
    ends = []
    for slope in (-slopes[0], slopes[1]):
        a, b = 1 + z_square * per_row, mean + z_square * slope / 2
        root = math.sqrt(max(b * b - a * (mean * mean - z_square * variance), 0.0))
        ends.append(((b - root) / a, (b + root) / a))
    is_clear = mean * mean > z_square * variance
    low, high = ends[mean > 0] if is_clear else (ends[0][0], ends[1][1])
    return mean, min(max(low, -score), mean), max(min(high, 1 - score), mean)


def gap_sums(sample: Sample) -> F64:
    """Sum up weights, scores, gaps, and four products with squared weights (7,)."""
    s, gap, once = sample.s, sample.y - sample.s, np.ones(sample.n)
    w, v = (once if x is None else x for x in (sample.weight, sample.v))
    squares = [once, s * (1 - s), gap, gap * gap]
    return np.array([w @ x for x in (once, s, gap)] + [(w * v) @ x for x in squares])
