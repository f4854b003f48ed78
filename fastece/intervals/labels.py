"""Test inversion by drawn labels, for estimators without gaps.

Labels are drawn from the hypotheses.

What a hypothesis says is taken from the gaps of bins of equal weight, which any data have. Nothing
but `prepare` and `evaluate` is needed of the estimator, or the draws `Labels` and `Chances` where
it takes the labels themselves, so it costs some bootstraps.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fastece.data.source import SETTINGS, Problems
from fastece.estimators.base import Chances, Estimator
from fastece.estimators.binned import Binned, place_rows
from fastece.intervals.cells import bin_cells
from fastece.intervals.inversion import ConfidenceCurve, Path, gap_directions, invert
from fastece.resampling.arguments import Call
from fastece.resampling.draws import ClassDraws
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate, plan_replicates
from fastece.resampling.labels import (
    draws_for,
    probabilities_for,
    problems_for,
    takes_labels,
)
from fastece.typing import F64

BINS = Binned(edges="quantile")
# Replicates and hypotheses of a path: with 192 the p-value 0.05 is known to 0.016.
REPLICATES, NODES = 192, 8


def classes_of(call: Call, estimator: Any) -> Problems:
    """Return the problems whose gaps make the hypotheses.

    They are the problems of the only model of a call or, of whole class vectors, all classes
    against the rest.
    """
    (data,) = call.models
    if not call.uses_class_vectors(estimator):
        return data
    assert data.vectors is not None
    rows, whole = data.positions, data.vectors
    return replace(
        data, setting=SETTINGS["classwise"], prob=whole.prob[rows], label=whole.label[rows],
        low=0.0, vectors=None,
    )  # fmt: skip


def row_directions(data: Problems, are_classes: bool) -> list[list[F64] | None]:
    """Return the changes of the rows' probabilities along both paths, by problem.

    None for the first path where there is no gap to begin with.

    Classes of one vector cannot go up together, as problems of their own can: there the second path
    has the mean gap of each class in all rows, whose noise adds up most.
    """
    bins = BINS.bins(data, moments=3)
    cells = bin_cells(BINS, data, bins, np.zeros((*bins.gap.shape, 0)), 0)
    share = np.where(cells.share > 0, cells.share, 1.0)
    places = [place_rows(BINS, sample, share.shape[1]).lower for sample in data.samples()]
    sparse, dense = gap_directions(cells)
    mean = cells.gap.sum(axis=1, keepdims=True)
    if are_classes and mean.any():
        dense = mean * share
    return [
        None if gap is None else [(gap / share)[k][place] for k, place in enumerate(places)]
        for gap in (sparse, dense)
    ]


def true_error(
    call: Call, estimator: Estimator, members: list[PreparedStatistic], prob: list[F64]
) -> float:
    """Compute the true error for given probabilities of labels, averaged."""
    if not takes_labels(call, estimator):
        values = []
        for hit, member in zip(prob, members, strict=True):
            c = np.concatenate([hit, 1 - hit])
            c = c if member.order is None else c[member.order]
            values.append(float(estimator.evaluate(member.plan, c)))
        return min(float(np.mean(values)), estimator.largest)
    if call.uses_class_vectors(estimator):
        each = [ClassDraws(0, np.column_stack(prob)).shares]
    else:
        each = [np.column_stack([1 - hit, hit]) for hit in prob]
    pairs = zip(members, each, strict=True)
    return float(np.mean([estimator.values(member.plan, Chances(q))[0] for member, q in pairs]))


def label_curve(call: Call, estimator: Any, key: int) -> ConfidenceCurve:
    """Compute the confidence curve of the error of the only model of a call.

    Draws depend on the key.
    """
    problems = problems_for(call, estimator)
    scores = probabilities_for(call, estimator)
    draws = draws_for(call, estimator, scores, key)
    members = plan_replicates([estimator], problems, draws, call.n).members
    population = estimator.of_population()

    def drawn(prob: list[F64], count: int) -> F64:
        replicates = Replicates(draws_for(call, estimator, prob, key), members)
        values = evaluate(replicates, 0, count, call.jobs, call.executor)
        return np.asarray(values.mean(0))

    def path(direction: list[F64]) -> Path:
        def probabilities(m: float) -> list[F64]:
            return [np.clip(s + m * d, 0, 1) for s, d in zip(scores, direction, strict=True)]

        return Path(
            lambda scales: np.array(
                [true_error(call, population, members, probabilities(m)) for m in scales]
            ),
            lambda scales: np.array([drawn(probabilities(m), count) for m in scales]),
            NODES,
        )

    count = min(call.n_resamples, REPLICATES)
    sparse, dense = (
        None if direction is None else path(direction)
        for direction in row_directions(
            classes_of(call, estimator), call.uses_class_vectors(estimator)
        )
    )
    assert dense is not None
    seen = float(np.mean(estimator.point_values(call.models[0])))
    return invert(drawn(scores, call.n_resamples), seen, 0.0, sparse, dense)
