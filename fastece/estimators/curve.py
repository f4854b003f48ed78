"""Calibration curves on a grid: the probability of the event as a function of the score."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample
from fastece.kernels.types import F64

# A curve is supported at a score if there is a row no further away than this.
REACH = 0.025


class Curve(NamedTuple):
    """The curve of an estimator on its grid; arrays are (G,).

    Attributes
    ----------
    score : float64 array
        Increasing.
    probability : float64 array
        Probability of the event, nan where the curve is not supported.
    density : float64 array
        Density of the scores.
    supported : bool array
        Whether there are enough scores.
    rows : float64 array
        About how many rows the curve rests on.
    score_range : tuple of float
        Ends of the range.
    low, high : float64 array or None
        Ends of the interval at each score by itself; None where nothing but resamples gives it.
    bandwidth : float or None
        Standard deviation of the kernel, of a curve that has one.
    """

    score: F64
    probability: F64
    density: F64
    supported: NDArray[np.bool_]
    rows: F64
    score_range: tuple[float, float]
    low: F64 | None = None
    high: F64 | None = None
    bandwidth: float | None = None


def curve_near_rows(
    ordered: Sample, size: int, score: F64, probability: F64,
    low: F64 | None = None, high: F64 | None = None,
) -> Curve:  # fmt: skip
    """Make the curve of a sorted sample that is supported where a row is within 0.025.

    Parameters
    ----------
    ordered : Sample
    size : int
        Number of rows.
    score, probability : (G,) float64 arrays
        Increasing scores, and the curve there; nan where no row is near.
    low, high : (G,) float64 arrays, optional
        Ends of its interval at each score by itself.
    """
    rows = rows_near(ordered, score)
    width = np.minimum(score + REACH, ordered.high) - np.maximum(score - REACH, ordered.low)
    return Curve(
        score=score,
        probability=probability,
        density=rows / (size * width),
        supported=rows > 0,
        rows=rows,
        score_range=(ordered.low, ordered.high),
        low=low,
        high=high,
    )


def rows_near(ordered: Sample, score: F64) -> F64:
    """Count the rows (G,) of a sorted sample within 0.025 of each score."""
    first = np.searchsorted(ordered.s, score - REACH, "left")
    last = np.searchsorted(ordered.s, score + REACH, "right")
    if ordered.c is None:
        return np.asarray(last - first, np.float64) / ordered.votes
    below = np.append(0.0, np.cumsum(ordered.c))
    return np.asarray(below[last] - below[first])
