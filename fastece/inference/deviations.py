"""Deviations of the differences of several models' errors from the first one's on shared draws.

Draws of the rows, which all models share, show how the differences depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastece.data.samples import Sample
from fastece.estimators.base import Statistic
from fastece.estimators.draws import Counts, TableCounts, columns
from fastece.inference.mover import ModelError
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.draws import make_row_draws
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate

# Levels of the quantiles between which a normal number lies within one standard deviation.
ONE_DEVIATION = np.array([0.15865525393145707, 0.8413447460685429])


@dataclass(frozen=True)
class InfluenceSums(Statistic):
    """Sums of the influences of the rows that are drawn.

    Attributes
    ----------
    influences : list of (n,) float64 arrays
    """

    influences: list[F64]

    needs_sorted = False
    native = (Counts, TableCounts)

    def prepare(self, sample: Sample, size: int) -> None:
        """Prepare nothing: the influences are all that is needed."""

    def values(self, plan: None, draws: Counts | TableCounts) -> F64:  # noqa: ARG002
        """Compute the sums (P, R) of P influences over all replicates."""
        counts = columns(draws.c).astype(np.float64)
        # One product for each, so that equal influences have equal sums to the last bit.
        return np.array([counts @ influence for influence in self.influences])


def draw_deviations(call: Call, errors: Sequence[Sequence[ModelError]], key: int) -> F64:
    """Compute the deviations (M, K, R) of differences on draws of the rows.

    To the first order, an error changes by the sum of the influences of the rows that are drawn. In
    units of its standard deviation, this sum is multiplied by half the width of the central 68 % of
    the confidence distribution of the error.

    Parameters
    ----------
    call : Call
        A call on all models.
    errors : sequence of sequences of ModelError
        The errors of all models, of each class or the only one.
    key : int
    """
    n_classes = len(errors[0])
    errors_of_all = [error for of_model in errors for error in of_model]
    statistic = InfluenceSums([error.influence for error in errors_of_all])
    member = PreparedStatistic(0, None, None, statistic, None)
    draws = make_row_draws(key, call.units, call.units.total)
    sums = evaluate(Replicates(draws, [member]), 0, call.n_resamples, call.workers)[0]
    deviations = []
    for of_draws, error in zip(sums, errors_of_all, strict=True):
        low, high = error.quantiles(ONE_DEVIATION)
        spread = of_draws.std()
        unit = (high - low) / 2 / spread if spread > 0 else 0.0
        deviations.append(unit * (of_draws - of_draws.mean()))
    first, *others = np.reshape(deviations, (len(errors), n_classes, -1))
    return np.array([first - other for other in others])
