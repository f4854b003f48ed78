"""Several models against the first: p-values and intervals that hold for all of them together.

Each comparison has its p-value and its intervals of all levels by itself. Draws of the rows, which
all models share, show how the differences depend on each other: the joint p-values are adjusted by
step-down min-p (Westfall and Young 1993, "Resampling-based multiple testing", algorithm 2.8; for
comparisons Romano and Wolf 2005, "Stepwise multiple testing as formalized data snooping"), and the
intervals have one level for all comparisons, at which they hold together (Beran 1988, "Balanced
simultaneous confidence sets").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastece.data.samples import Sample
from fastece.estimators.base import Statistic
from fastece.estimators.draws import Counts, TableCounts, columns
from fastece.inference.joint_test import adjust_on_draws, share_as_small
from fastece.inference.mover import ModelError
from fastece.inference.results import ComparisonResult, JointLevels
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.draws import make_row_draws
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate

# Levels of the quantiles between which a normal number lies within one standard deviation.
ONE_DEVIATION = np.array([0.15865525393145707, 0.8413447460685429])


@dataclass(frozen=True)
class JointTest:
    """The comparisons of M models with the first, tested together.

    Attributes
    ----------
    p_values : (M,) or (M, K) float64 array
        Joint p-value of each comparison, or of each class of each.
    levels : list of JointLevels
        The levels of joint intervals, of each class or the only one.
    """

    p_values: F64
    levels: list[JointLevels]


# --- deviations of the differences on shared draws ------------------------------------------


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


# --- p-values and levels --------------------------------------------------------------------


def two_tailed(deviations: F64) -> F64:
    """Compute twice the smaller tail (..., R) of deviations (..., R) among all."""
    tails = np.minimum(share_as_small(deviations), share_as_small(-deviations))
    return np.asarray(np.minimum(2 * tails, 1.0))


def join_comparisons(results: Sequence[ComparisonResult], deviations: F64) -> JointTest:
    """Test comparisons with the first model together.

    Classes that have values of their own are families of their own.

    Parameters
    ----------
    results : sequence of M ComparisonResult
    deviations : (M, K, R) float64 array
        Deviations of the differences on shared draws, of each class or the only one.
    """
    # A difference that is not known in a draw is no evidence there.
    deviations = np.where(np.isnan(deviations), 0.0, deviations)
    p_values_alone = np.array([np.atleast_1d(result.p_value) for result in results])
    p_values_of_draws = share_as_small(-np.abs(deviations))
    joint = [
        adjust_on_draws(p_values_alone[:, k], p_values_of_draws[:, k])
        for k in range(deviations.shape[1])
    ]
    # Intervals have equal tails, whatever the shape of the law between their ends.
    smallest_tails = np.sort(two_tailed(deviations).min(axis=0), axis=-1)
    levels = [JointLevels(of_class, len(results)) for of_class in smallest_tails]
    p_values = np.array(joint).T
    is_per_class = np.ndim(results[0].value) > 0
    return JointTest(p_values if is_per_class else p_values[:, 0], levels)
