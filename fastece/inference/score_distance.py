"""A bound for the difference of two errors where one model's scores determine the other's.

If the scores b are a function of the scores a, as after recalibration, let c be the observed
frequency at a. The frequency at b is the mean of c where b has one value, so by Jensen's and
Minkowski's inequalities::

    error(b) <= ||c - b|| <= ||c - a|| + ||a - b|| = error(a) + ||a - b||

with norms over the population. No labels are in ``||a - b||``, so the rows show it well. Rows can
only show a function that never falls: among scores without ties every other model is a function.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastece.data.samples import Sample
from fastece.kernels.types import F64
from fastece.resampling.groups import Groups

# Rows below which two models may have one order by chance. For 20 rows its probability is 4e-19.
MIN_ROWS = 20
# Scores may break the order by so much: float32 rounds probabilities by up to 6e-8, and a
# recalibration that computes with them by a few times as much.
TOLERANCE = 1e-6
# Rows of which the order is looked at, evenly spaced: if all of them agree, at most one row in
# 20 000 breaks the order, with a confidence of 95 %. To sort them takes 5 ms.
MAX_ORDERED_ROWS = 2**16
# Rows that are looked at first, as most pairs of models differ in the order of these.
FIRST_ROWS = 256


class ScoreDistance(NamedTuple):
    """Mean distance ``|a - b|**p`` of two models' scores, and which one follows.

    The norm of their errors is p.

    Attributes
    ----------
    mean, standard_error : float
    norm : float
    is_function_of_second, is_function_of_first : bool
        Whether the first model's scores follow from the second's, and the other way round.
    """

    mean: float
    standard_error: float
    norm: float
    is_function_of_second: bool
    is_function_of_first: bool

    def upper_ends(self, z: F64) -> F64:
        """Compute upper limits (M,) of the distance for normal quantiles z (M,).

        The log of the mean is taken to be normal, as means of distances are skewed.
        """
        if self.mean <= 0:
            return np.zeros(z.shape)
        spread = self.standard_error / self.mean
        return np.asarray((self.mean * np.exp(spread * z)) ** (1 / self.norm))


def bound_difference(
    pairs: Sequence[tuple[Sample, Sample]], norm: float, clusters: Groups | None, z: F64
) -> tuple[F64, F64]:
    """Compute bounds (M,) of the mean difference over the problems of two models.

    Parameters
    ----------
    pairs : sequence of pairs of Sample
        Each problem of the first and of the second model.
    norm : float
    clusters : Groups or None
        Groups of rows that depend on each other.
    z : (M,) float64 array
        Normal quantiles of the levels of the bounds.

    Returns
    -------
    two (M,) float64 arrays
        The lower and the upper bounds: -1 and 1 where none is known.
    """
    lower = np.full(z.shape, -1.0)
    upper = np.full(z.shape, 1.0)
    distances = []
    for first, second in pairs:
        distance = score_distance(first, second, norm, clusters)
        if distance is None:
            return lower, upper
        distances.append(distance)
    limit = np.mean([distance.upper_ends(z) for distance in distances], axis=0)
    if all(distance.is_function_of_first for distance in distances):
        lower = np.maximum(lower, -limit)
    if all(distance.is_function_of_second for distance in distances):
        upper = np.minimum(upper, limit)
    return lower, upper


def score_distance(
    first: Sample, second: Sample, norm: float, clusters: Groups | None
) -> ScoreDistance | None:
    """Compute the distance of two models' scores; None where neither follows.

    One model's scores follow from the other's if they are a function of them that never falls, as
    `ScoreDistance` has it. Few rows do not show that, and models of other outcomes have no bound.
    """
    if first.n < MIN_ROWS or not np.array_equal(first.y, second.y):
        return None
    is_function_of_first = is_increasing_function(first.s, second.s)
    is_function_of_second = is_increasing_function(second.s, first.s)
    if not (is_function_of_first or is_function_of_second):
        return None
    power = np.power(np.abs(first.s - second.s), norm)
    # In units of a power of two, which rounds nothing: squares of 1e300 and 1e-300 are no numbers.
    weights = np.ldexp(first.weights, -math.frexp(first.weights.max())[1])
    weight = first.counts * weights
    total = weight.sum()
    mean = float(weight @ power / total)
    deviation = weights * (power - mean)
    if clusters is None:
        variance = float(first.counts @ deviation**2)
    else:
        deviation_of_group = np.bincount(clusters.of_row, first.counts * deviation)
        variance = float(deviation_of_group @ deviation_of_group)
    return ScoreDistance(
        mean=mean,
        standard_error=math.sqrt(variance) / float(total),
        norm=norm,
        is_function_of_second=is_function_of_second,
        is_function_of_first=is_function_of_first,
    )


def is_increasing_function(x: F64, y: F64) -> bool:
    """Decide whether y (n,) never falls as x (n,) rises, and is equal where x is.

    Of many rows, it looks at some alone.
    """
    step = math.ceil(x.size / MAX_ORDERED_ROWS)
    if not is_increasing_in_all(x[:FIRST_ROWS], y[:FIRST_ROWS]):
        return False
    return is_increasing_in_all(x[::step], y[::step])


def is_increasing_in_all(x: F64, y: F64) -> bool:
    """Decide whether y (n,) never falls as x (n,) rises, looking at all rows."""
    order = np.argsort(x, kind="stable")
    x = x[order]
    y = y[order]
    is_new = np.append(True, x[1:] > x[:-1])
    first_of_score = np.maximum.accumulate(np.where(is_new, np.arange(x.size), 0))
    fall = np.maximum.accumulate(y) - y
    spread = np.abs(y - y[first_of_score])
    return bool(fall.max() <= TOLERANCE and spread.max() <= TOLERANCE)
