"""Errors of many slices on shared draws, for estimators without a posterior.

The labels of all rows are drawn once, as if the model were calibrated, and the error of every slice
is computed on its part of each draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastece.data.samples import Sample
from fastece.estimators.base import Statistic
from fastece.estimators.draws import Counts, Labels, TableCounts
from fastece.inference.selections import Selection
from fastece.kernels.types import F64, I64
from fastece.resampling.call import Call
from fastece.resampling.draws import OUTCOMES_AS_COUNTS
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate
from fastece.resampling.labels import LabelModel, make_label_model
from fastece.resampling.problem import Problem


@dataclass(frozen=True)
class OnRows(Statistic):
    """A statistic of some of the rows that are drawn.

    Attributes
    ----------
    statistic : Statistic
    positions : (m,) int64 array
        Positions of its rows among the rows that have counts or labels.
    sample : Sample
        These rows, in this order.
    """

    statistic: Statistic
    positions: I64
    sample: Sample

    needs_sorted = False

    @property
    def native(self) -> tuple[type, ...]:  # type: ignore[override]
        """The kinds of draws that the statistic takes at full speed."""
        return self.statistic.native

    def prepare(self, sample: Sample, size: int) -> Any:  # noqa: ARG002
        """Prepare the statistic on its own rows, for draws of `size` rows."""
        return self.statistic.prepare(self.sample, size)

    def values(self, plan: Any, draws: Counts | TableCounts | Labels) -> F64:
        """Compute the values (R,) of all replicates of draws of all rows."""
        if isinstance(draws, Labels):
            labels = np.take(draws.y, self.positions, axis=1)
            return self.statistic.values(plan, Labels(labels, self.sample))
        counts: Any = np.take(draws.c, self.positions, axis=1)
        return self.statistic.values(plan, type(draws)(counts))


def select_rows(
    model: LabelModel, estimator: Statistic, problem: Problem, selection: Selection
) -> OnRows:
    """Make the statistic of a selection, with rows as an estimator needs them."""
    n_drawn = problem.sample.n
    positions = np.arange(n_drawn)
    if selection.rows is not None:
        positions = selection.rows
        if model.form == OUTCOMES_AS_COUNTS:  # every row is there with the outcome 1, then with 0
            positions = np.concatenate([positions, n_drawn // 2 + positions])
    of_slice = Problem(problem.sample.where(positions))
    if not estimator.needs_sorted:
        return OnRows(estimator, positions, of_slice.sample)
    return OnRows(estimator, positions[of_slice.order], of_slice.ordered)


def draw_errors(call: Call, selections: Sequence[Selection], estimator: Any, key: int) -> F64:
    """Compute the errors (S, R) of selections on labels of a calibrated model."""
    model = make_label_model(call, estimator, key)
    members = []
    slice_of_member = []
    for k, problem in enumerate(model.problems):
        for number, selection in enumerate(selections):
            if selection.problem not in (None, k):
                continue
            statistic = select_rows(model, estimator, problem, selection)
            size = call.n if selection.rows is None else call.rows.count(selection.rows)
            plan = statistic.prepare(statistic.sample, size)
            members.append(PreparedStatistic(k, None, None, statistic, plan))
            slice_of_member.append(number)
    draws = model.draws(model.scores)
    values = evaluate(Replicates(draws, members), 0, call.n_resamples, call.workers)
    numbers = np.array(slice_of_member)
    return np.array([values[numbers == number].mean(axis=0) for number in range(len(selections))])
