"""Labels drawn from the predicted probabilities, for estimators that take a whole sample."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fastece.data.samples import Sample
from fastece.estimators.draws import Labels
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.draws import CLASSES, OUTCOMES, OUTCOMES_AS_COUNTS, LabelDraws
from fastece.resampling.problem import Problem


def double_rows(sample: Sample) -> Sample:
    """Return a sample with every row twice: with the outcome 1, then with 0."""
    twice = sample.where(np.tile(np.arange(sample.n), 2))
    return replace(twice, y=np.repeat(np.array([1, 0], np.uint8), sample.n))


def make_null_draws(
    call: Call,
    scores: list[F64],
    key: int,
    first_row: int = 0,
    form: str = OUTCOMES_AS_COUNTS,
) -> LabelDraws:
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
    form : str
        As for `LabelDraws`.
    """
    dependence = call.dependence
    if dependence is not None:
        dependence = dependence.rows(first_row, len(scores[0]))
    is_per_class = form == CLASSES or call.tables[0].setting.per_class
    prob = np.column_stack(scores) if is_per_class else scores[0]
    first_of_all = call.first_row + first_row
    return LabelDraws(key, prob, first_of_all, dependence, call.counts, form)


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
    form : str
        As for `LabelDraws`.
    """

    call: Call
    key: int
    problems: list[Problem]
    scores: list[F64]
    form: str

    def draws(self, scores: list[F64]) -> LabelDraws:
        """Make the draws of labels with given probabilities instead of the model's own."""
        return make_null_draws(self.call, scores, self.key, form=self.form)


def make_label_model(call: Call, estimator: Any, key: int) -> LabelModel:
    """Return the only model of a call, for draws of labels that depend on a key."""
    takes_class_vectors = call.uses_class_vectors(estimator)
    form = OUTCOMES_AS_COUNTS
    if takes_class_vectors:
        form = CLASSES
    elif Labels in estimator.native:
        form = OUTCOMES
    # Copies of a row may have different labels, which a sample of labels has no room for.
    data = call.uncounted_tables[0] if form == OUTCOMES_AS_COUNTS else call.models[0]
    samples = data.samples()
    scores = [sample.s for sample in samples]
    if takes_class_vectors:
        assert data.vectors is not None
        scores = [*data.vectors.prob[data.positions].astype(np.float64).T]
    if form == OUTCOMES_AS_COUNTS:
        samples = [double_rows(sample) for sample in samples]
    problems = [Problem(sample) for sample in samples]
    return LabelModel(call, key, problems, scores, form)
