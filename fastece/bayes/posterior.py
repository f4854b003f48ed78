"""The posterior of the calibration error, and the interval that is read off it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.bayes.curves import Curves, cells_of_rows
from fastece.bayes.hyperpriors import DRAWS, draw_order
from fastece.inputs.parameters import check_real
from fastece.protocol import Sample, increasing

__all__ = ["Posterior", "posterior_of"]

F64 = NDArray[np.float64]

# The variance of log errors is taken so many times as large: cells, Laplace's approximation and
# fixed hyperpriors leave something out.
WIDER = 1.15


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the rows say of the calibration error: of one problem, or of the mean over classes.

    Attributes
    ----------
    value : float
        The posterior mean.
    errors : (S,) float64 array
        The error of curves drawn from the wider posterior of intervals, with what the scores of
        other rows would change.
    influence : (n,) float64 array
        How each row pulls at the error, in the order of the rows: the sum over problems of ``E
        sign(c - s) (y - E c)``.
    log_bayes_factor : float
        Log of how much likelier the hits are under some curve than under ``c = s``; class by class
        of the mean of these factors.
    """

    value: float
    errors: F64
    influence: F64
    log_bayes_factor: float

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Ends of the interval at a level; a higher level is never narrower.

        With alpha = 1 - level it is from 0 to the quantile 1 - alpha of the errors, unless the
        Bayes factor exceeds 1 / alpha, which it does in a share of alpha of calibrated samples at
        most; then between the quantiles alpha / 2 and 1 - alpha / 2.
        """
        alpha = 1 - check_real("confidence_level", confidence_level, 0.0, 1.0)
        # From which alpha on calibration is doubted. Below, one side has all of alpha; but the high
        # end stays above those of all lower levels.
        doubt = math.exp(-max(self.log_bayes_factor, 0.0))
        if alpha > doubt:
            below, above = alpha / 2, alpha / 2
        else:
            below, above = 0.0, min(alpha, doubt / 2) if doubt < 1 else alpha
        high = float(np.quantile(self.errors, 1 - above))
        low = float(np.quantile(self.errors, below)) if below else 0.0
        return min(low, self.value), max(high, self.value)


class ByRow(NamedTuple):
    """Of each row (n,): its influence, and the size of the gap at its score."""

    influence: F64
    size: F64


def rows_of(curves: Curves, p: F64, y: NDArray[np.uint8], order: NDArray[np.int64]) -> ByRow:
    """Influences and gaps of rows, from drawn curves p (C, S); `y` in increasing order of the score,
    `order` the places of these rows."""
    cells = curves.rows.cells
    means = np.empty((3, cells.weight.size))
    kernels.bayes.summarise_gaps(cells, p, np.empty(DRAWS), means)
    gap, size, sign = means
    cell = curves.rows.cell
    influence, sizes = np.empty((2, y.size))
    influence[order] = sign[cell] * (y - (cells.score + gap)[cell])
    sizes[order] = size[cell]
    return ByRow(influence, sizes)


def posterior_of(samples: Sequence[Sample], norm: float) -> Posterior:
    """The posterior of the mean over some problems of the same rows, in the same order."""
    values, errors, factors, by_row = [], [], [], []
    for k, sample in enumerate(samples):
        order = increasing(sample.s)
        ordered = sample.where(order)
        curves = Curves(cells_of_rows(ordered), k, for_interval=True)
        p = curves.probabilities(curves.value_draws())
        values.append(curves.errors(p, norm).mean())
        p = curves.probabilities(curves.interval_draws())
        errors.append(curves.errors(p, norm))
        factors.append(curves.log_bayes_factor)
        by_row.append(rows_of(curves, p, ordered.y, order))
    v = samples[0].v
    w = np.full(samples[0].n, 1 / samples[0].n) if v is None else v / v.sum()
    top = max(factors)
    return Posterior(
        value=float(np.mean(values)),
        errors=widened(np.mean(errors, axis=0), by_row, w, curves.rows.count, norm),
        influence=np.sum([part.influence for part in by_row], axis=0),
        log_bayes_factor=top + math.log(np.mean(np.exp(np.array(factors) - top))),
    )


def widened(errors: F64, by_row: Sequence[ByRow], w: F64, count: float, norm: float) -> F64:
    """Errors (S,) spread about their median, on the log scale, for what the draws leave out.

    The rows of several classes are the same: their influences add up with a variance that is not
    the sum of theirs. And scores are a sample too: for the norm 1 the error is the mean of the
    gap over all scores there are, of which this many were seen.
    """
    total = np.sum([part.influence for part in by_row], axis=0)
    apart = sum(w @ part.influence**2 for part in by_row)
    variance = WIDER * (w @ total**2 / apart if apart > 0 else 1.0)
    size = np.sum([part.size for part in by_row], axis=0)
    mean = w @ size
    scores = 0.0
    if mean > 0 and not math.isinf(norm):
        scores = math.sqrt(w @ (size - mean) ** 2 / count) / mean
    middle = max(float(np.median(errors)), np.finfo(float).tiny)
    log_ratio = np.log(np.maximum(errors, np.finfo(float).tiny) / middle)
    return np.minimum(middle * np.exp(math.sqrt(variance) * log_ratio + scores * draw_order()), 1.0)
