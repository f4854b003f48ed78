"""Labels drawn from the predicted probabilities, for estimators that take a whole sample."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece.data.samples import Sample
from fastece.data.sources import Problems
from fastece.estimators.draws import Labels
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.draws import (
    ClassDraws,
    ClassLabelDraws,
    LabelDraws,
    OutcomeDraws,
    ReplicateDraws,
)
from fastece.resampling.problem import Problem
from fastece.resampling.table_draws import TableClassDraws, TableOutcomeDraws


def double_rows(sample: Sample) -> Sample:
    """Return a sample with every row twice: with the outcome 1, then with 0."""
    twice = sample.where(np.tile(np.arange(sample.n), 2))
    return replace(twice, y=np.repeat(np.array([1, 0], np.uint8), sample.n))


def make_null_draws(
    call: Call, scores: list[F64], key: int, first_row: int = 0
) -> ClassDraws | OutcomeDraws:
    """Make draws of labels: classes, or the outcomes of the only problem.

    Parameters
    ----------
    call : Call
        A call on one model.
    scores : list of K (n,) arrays
        The scores of each problem, for some consecutive rows of the data.
    key : int
    first_row : int
        The number of the first of these rows.
    """
    is_per_class = call.sources[0].setting.per_class
    if call.counts is not None:
        assert call.dependence is None, "groups of a table are refused before"
        if is_per_class:
            return TableClassDraws(key, np.column_stack(scores), counts=call.counts)
        return TableOutcomeDraws(key, scores[0], counts=call.counts)
    dependence = call.dependence
    if dependence is not None:
        dependence = dependence.rows(first_row, len(scores[0]))
    first_row_of_draws = call.first_row + first_row
    if is_per_class:
        return ClassDraws(key, np.column_stack(scores), first_row_of_draws, dependence)
    return OutcomeDraws(key, scores[0], first_row_of_draws, dependence)


@dataclass(frozen=True)
class LabelModel:
    """A model whose labels are drawn for an estimator, in the form that it takes.

    Most estimators take labels as counts: every row is there with the outcome 1 and with 0, and one
    of the two is drawn. Estimators that take `Labels`, and estimators of whole class vectors, take
    the labels themselves.

    Attributes
    ----------
    call : Call
        A call on the model.
    key : int
        The number that the draws depend on.
    problems : list of Problem
    scores : list of (n,) float64 arrays
        The scores of each problem, or the probabilities of each class of whole class vectors.
    takes_labels : bool
    takes_class_vectors : bool
    """

    call: Call
    key: int
    problems: list[Problem]
    scores: list[F64]
    takes_labels: bool
    takes_class_vectors: bool

    def draws(self, scores: list[F64]) -> ReplicateDraws:
        """Make the draws of labels with given probabilities instead of the model's own."""
        if self.takes_class_vectors:
            vectors = np.column_stack(scores)
            return ClassLabelDraws(ClassDraws(self.key, vectors, 0, self.call.dependence))
        draws = make_null_draws(self.call, scores, self.key)
        return LabelDraws(draws) if self.takes_labels else draws


def make_label_model(call: Call, estimator: Any, key: int) -> LabelModel:
    """Return the only model of a call, for draws of labels that depend on a key."""
    takes_class_vectors = call.uses_class_vectors(estimator)
    takes_labels = takes_class_vectors or Labels in estimator.native
    # Copies of a row may have different labels, which a sample of labels has no room for.
    data = call.models[0] if takes_labels else call.tables[0]
    samples = data.samples()
    scores = class_scores(data) if takes_class_vectors else [sample.s for sample in samples]
    if not takes_labels:
        samples = [double_rows(sample) for sample in samples]
    problems = [Problem(sample) for sample in samples]
    return LabelModel(call, key, problems, scores, takes_labels, takes_class_vectors)


def class_scores(data: Problems) -> list[F64]:
    """Return the probabilities (n,) of each class of whole class vectors."""
    assert data.vectors is not None
    return list(data.vectors.prob[data.positions].astype(np.float64).T)
