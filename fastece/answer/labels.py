"""Test inversion for estimators that tell no gaps: labels are drawn from the hypotheses.

What a hypothesis says is taken from the gaps of bins of equal weight, which any data have. Nothing
but `prepare` and `evaluate` is asked of the estimator, so it costs some bootstraps.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.answer.bins import bin_cells
from fastece.answer.cells import label_draws
from fastece.answer.inversion import ConfidenceCurve, Path, directions, invert
from fastece.binned.estimator import Binned, place_rows
from fastece.kde.estimator import KDE
from fastece.problems.problems import Problems
from fastece.protocol import Sample
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import hits_and_misses
from fastece.resampling.engine import Problem, Replicates, evaluate, plan_replicates
from fastece.typing import F64

BINS = Binned(edges="quantile")
# Replicates and hypotheses of a path: with 192 the p-value 0.05 is known to 0.016.
REPLICATES, NODES = 192, 8


def row_directions(data: Problems, samples: Sequence[Sample]) -> list[list[F64] | None]:
    """How the probabilities of the rows of each problem change along both paths; None for the first
    path where there is no gap to begin with."""
    bins = BINS.bins(data, moments=3)
    cells = bin_cells(BINS, data, bins, np.zeros((*bins.gap.shape, 0)), 0)
    share = np.where(cells.share > 0, cells.share, 1.0)
    places = [place_rows(BINS, sample, share.shape[1])[1] for sample in samples]
    return [
        None if gap is None else [(gap / share)[k][place] for k, place in enumerate(places)]
        for gap in directions(cells)
    ]


def label_curve(call: Call, estimator: Any, key: int) -> ConfidenceCurve:
    """The confidence curve of the error of the only model of a call; draws depend on the key."""
    (data,) = call.models
    samples = data.samples()
    problems = [Problem(hits_and_misses(sample)) for sample in samples]

    # What chance adds is no part of the error of a population.
    is_debiased = isinstance(estimator, Binned) and estimator.debias
    truth = replace(estimator, debias=False) if is_debiased else estimator
    # The mass of beta kernels is not exactly 1, nor are their errors at most 1.
    most = 1.0 if isinstance(estimator, Binned | KDE) else np.inf
    scores = [sample.s for sample in samples]
    members = plan_replicates([estimator], problems, label_draws(call, scores, key), call.n).members

    def drawn(prob: list[F64], count: int) -> F64:
        replicates = Replicates(label_draws(call, prob, key), members)
        values = evaluate(replicates, 0, count, call.jobs, call.executor)
        return np.asarray(values.mean(0))

    def expected(hits: list[F64], of: Any) -> float:
        values = []
        for hit, member in zip(hits, members, strict=True):
            c = np.concatenate([hit, 1 - hit])
            c = c if member.order is None else c[member.order]
            values.append(float(of.evaluate(member.plan, c)))
        return min(float(np.mean(values)), most)

    def path(direction: list[F64]) -> Path:
        def probabilities(m: float) -> list[F64]:
            return [np.clip(s + m * d, 0, 1) for s, d in zip(scores, direction, strict=True)]

        return Path(
            lambda scales: np.array([expected(probabilities(m), truth) for m in scales]),
            lambda scales: np.array([drawn(probabilities(m), count) for m in scales]),
            NODES,
        )

    count = min(call.n_resamples, REPLICATES)
    few, even = (None if d is None else path(d) for d in row_directions(data, samples))
    assert even is not None
    seen = expected([sample.y.astype(np.float64) for sample in samples], estimator)
    return invert(drawn(scores, call.n_resamples), seen, 0.0, few, even)
