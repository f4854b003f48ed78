"""Labels drawn from probabilities, and problems in the form for such draws.

Most estimators take labels as multiplicities: every row stands there as a hit and as a miss, and
one of the two is drawn. Those that take `Labels`, and those of whole class vectors, take the
labels themselves.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fastece.data.sample import Sample
from fastece.estimators.base import Labels
from fastece.resampling.arguments import Call
from fastece.resampling.draws import ClassDraws, HitDraws, LabelDraws
from fastece.resampling.engine import Problem
from fastece.typing import F64


def hits_and_misses(sample: Sample) -> Sample:
    """Return a sample with every row twice: as a hit and as a miss.

    `HitDraws` draws one of the two.
    """
    twice = sample.where(np.tile(np.arange(sample.n), 2))
    return replace(twice, y=np.repeat(np.array([1, 0], np.uint8), sample.n))


def label_draws(call: Call, prob: list[F64], key: int) -> ClassDraws | HitDraws:
    """Make draws of labels with probabilities (n,) for each problem.

    Of all classes together, or of the only one's hits.
    """
    if call.models[0].setting.per_class:
        return ClassDraws(key, np.column_stack(prob))
    return HitDraws(key, prob[0])


def takes_labels(call: Call, estimator: Any) -> bool:
    """Return whether an estimator takes labels themselves."""
    return Labels in estimator.native or call.uses_class_vectors(estimator)


def probabilities_for(call: Call, estimator: Any) -> list[F64]:
    """Return the label probabilities (n,) of the only model of a call.

    Of every class of whole class vectors, or of the hits of each problem.
    """
    (data,) = call.models
    if call.uses_class_vectors(estimator):
        assert data.vectors is not None
        return list(data.vectors.prob[data.positions].astype(np.float64).T)
    return [data.score_and_outcome(k)[0] for k in range(data.n_problems)]


def draws_for(
    call: Call, estimator: Any, prob: list[F64], key: int
) -> ClassDraws | HitDraws | LabelDraws:
    """Make draws of labels from probabilities in the form that an estimator takes.

    The probabilities are as `probabilities_for` returns them.
    """
    if call.uses_class_vectors(estimator):
        return LabelDraws(ClassDraws(key, np.column_stack(prob)), are_classes=True)
    draws = label_draws(call, prob, key)
    return LabelDraws(draws, are_classes=False) if takes_labels(call, estimator) else draws


def problems_for(call: Call, estimator: Any) -> list[Problem]:
    """Return the problems of the only model of a call for such draws."""
    samples = call.models[0].samples()
    if takes_labels(call, estimator):
        return [Problem(sample) for sample in samples]
    return [Problem(hits_and_misses(sample)) for sample in samples]
