"""Confidence curves of errors without gaps, from labels that are drawn anew.

Hypotheses change the probabilities of the rows along the gaps of bins; then labels are drawn from
them and the error is computed, as a caller would. It costs some bootstraps.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece.data.table import SETTINGS, RowTable
from fastece.estimators.base import values_of_problems
from fastece.estimators.binned import Binned
from fastece.inference.binned_cells import noiseless_cells
from fastece.inference.cell_curves import gap_directions
from fastece.inference.inversion import ConfidenceCurve, Path, invert
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.draws import CLASSES, OUTCOMES_AS_COUNTS, LabelDraws
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate, plan_replicates
from fastece.resampling.labels import LabelModel, make_label_model

# Bins along whose gaps the probabilities of the rows change.
BINS = Binned(edges="quantile")
# Replicates and hypotheses of a path: with 192 the p-value 0.05 is known to 0.016.
MAX_REPLICATES = 192
NODES = 8


@dataclass(frozen=True)
class Hypotheses:
    """Models near the model of a call, and the errors of an estimator under them.

    Attributes
    ----------
    call : Call
        A call on the model.
    estimator : Estimator
    model : LabelModel
        The model, whose labels are drawn.
    members : list of PreparedStatistic
        The estimator, prepared on each problem.
    """

    call: Call
    estimator: Any
    model: LabelModel
    members: list[PreparedStatistic]

    def draw_errors(self, scores: list[F64], count: int) -> F64:
        """Draw labels from scores (n,) of each problem, and compute the errors (count,)."""
        replicates = Replicates(self.model.draws(scores), self.members)
        return np.asarray(evaluate(replicates, 0, count, self.call.workers).mean(0))

    def path(self, direction: list[F64]) -> Path:
        """Make the path of scores that change by m times the direction of each problem."""
        count = min(self.call.n_resamples, MAX_REPLICATES)

        def scores_at(m: float) -> list[F64]:
            pairs = zip(self.model.scores, direction, strict=True)
            return [np.clip(score + m * change, 0, 1) for score, change in pairs]

        return Path(
            sizes=lambda scales: np.array([self.true_error(scores_at(m)) for m in scales]),
            errors=lambda scales: np.array([self.draw_errors(scores_at(m), count) for m in scales]),
            nodes=NODES,
        )

    def true_error(self, probabilities: list[F64]) -> float:
        """Compute the true error if labels have some probabilities (n,) in each problem.

        It is the mean over the problems, without a correction for chance, of which a population has
        none.
        """
        population = self.estimator.of_population()
        if self.model.form != OUTCOMES_AS_COUNTS:
            pairs = zip(self.members, self.chances(probabilities), strict=True)
            errors = [population.truth(x.plan, prob) for x, prob in pairs]
            return float(np.mean(errors))
        # Rows are there twice, with the outcome 1 and with 0, and count by their probabilities.
        errors = []
        for member, prob in zip(self.members, probabilities, strict=True):
            counts = np.concatenate([prob, 1 - prob])
            if self.call.counts is not None:
                counts *= np.tile(self.call.counts, 2)
            if member.order is not None:
                counts = counts[member.order]
            errors.append(float(population.evaluate(member.plan, counts)))
        return min(float(np.mean(errors)), float(self.estimator.largest))

    def chances(self, probabilities: list[F64]) -> list[F64]:
        """Return the probabilities (n, K) of the classes of each problem."""
        if self.model.form == CLASSES:
            return [LabelDraws(0, np.column_stack(probabilities)).shares]
        return [np.column_stack([1 - prob, prob]) for prob in probabilities]


def label_curve(call: Call, estimator: Any, key: int) -> ConfidenceCurve:
    """Compute the confidence curve of the only model of a call by drawn labels.

    It is for estimators without gaps, which need `prepare` and `evaluate` alone, or the draws
    `Labels` and the method `truth` where they take the labels themselves.
    """
    model = make_label_model(call, estimator, key)
    draws = model.draws(model.scores)
    members = plan_replicates(
        [estimator], model.problems, draws, [call.n] * len(model.problems)
    ).members
    hypotheses = Hypotheses(call, estimator, model, members)
    sparse, dense = row_directions(call, estimator)
    seen = float(np.mean(values_of_problems(estimator, call.tables[0])))
    null = hypotheses.draw_errors(model.scores, call.n_resamples)
    sparse_path = None if sparse is None else hypotheses.path(sparse)
    return invert(null, seen, 0.0, sparse_path, hypotheses.path(dense))


def row_directions(call: Call, estimator: Any) -> tuple[list[F64] | None, list[F64]]:
    """Return the changes of the rows' probabilities along both paths, by problem.

    The first is None where there is no gap to begin with. Whole class vectors are problems of every
    class against all others, which cannot go up together, as problems of their own can: there the
    second path has the mean gap of each class in all rows, whose noise adds up most.
    """
    data = call.tables[0]
    are_classes = call.uses_class_vectors(estimator)
    if are_classes:
        data = each_class(call.models[0])
    cells = noiseless_cells(replace(call, tables=[data]), BINS)
    share = np.where(cells.share > 0, cells.share, 1.0)
    sparse, dense = gap_directions(cells)
    mean_gap = cells.gap.sum(axis=1, keepdims=True)
    if are_classes and mean_gap.any():
        dense = mean_gap * share
    bins = [BINS.place(sample, share.shape[1]).lower for sample in data.samples()]

    def of_rows(gap: F64) -> list[F64]:
        pairs = zip(gap / share, bins, strict=True)
        return [change_of_bin[bin_of_row] for change_of_bin, bin_of_row in pairs]

    return None if sparse is None else of_rows(sparse), of_rows(dense)


def each_class(data: RowTable) -> RowTable:
    """Turn whole class vectors into problems of every class against all others."""
    assert data.vectors is not None
    return data.replace(
        prob=data.vectors.prob[data.positions],
        label=data.vectors.label[data.positions],
        low=0.0,
        setting=SETTINGS["classwise"],
        vectors=None,
        convert=None,
    )
