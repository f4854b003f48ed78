"""The part of a report on scores: Brier score, log loss and others, and the Brier score's parts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.data.table import RowTable
from fastece.display.documents import Section, Table
from fastece.display.numbers import ConfidenceInterval
from fastece.estimators.table import ESTIMATORS
from fastece.kernels.types import F64
from fastece.reliability.decomposition import ScoreComponents, ScoreDecomposition, score_components
from fastece.report.errors import name_interval, with_interval
from fastece.report.inputs import ReportInput
from fastece.report.result import Report, ScoreLine
from fastece.report.words import SCORES, infinite_loss
from fastece.resampling.call import Call, compute_values, find_infinite_rows
from fastece.risk.variance import SamplingLaw, wilson_interval

ACCURACY_OF_SCORE = "how often a score above 1/2 is right"


# --- numbers --------------------------------------------------------------------------------


def measure_scores(inputs: ReportInput) -> dict[str, Any]:
    """Measure the scores, and decompose the Brier score where every row is there."""
    if not inputs.is_full:
        return {"scores": [], "decomposition": None}
    return {
        "scores": list_scores(inputs),
        "decomposition": decompose_brier_score(inputs) if inputs.has_rows else None,
    }


def scores_of(pairs: bool) -> dict[str, Any]:
    """List the scores by name.

    With hits and confidences alone there is no accuracy: it would be the accuracy of guessing
    whether a prediction is right.
    """
    return {name: ESTIMATORS[name] for name in SCORES if name != "accuracy" or not pairs}


def list_scores(inputs: ReportInput) -> list[ScoreLine]:
    """Measure each score that the table allows."""
    table = inputs.table
    call = inputs.call_with(table, scores_of(inputs.request.pairs))
    lines = []
    for name, mean in call.estimators.items():
        if not has_data_for(table, mean):
            continue
        (value,) = compute_values(call, name)
        line = ScoreLine(name=name, value=value, meaning=meaning_of(name, table))
        if inputs.has_rows and math.isfinite(value):
            interval = score_interval(call, name, value) or ConfidenceInterval(None, None)
            line = replace(line, low=interval.low, high=interval.high)
        elif inputs.has_rows and math.isinf(value):
            rows = find_infinite_rows(call, name, value)
            line = replace(line, note=infinite_loss(name, rows, inputs.request.row_name))
        lines.append(line)
    return lines


def has_data_for(table: RowTable, estimator: Any) -> bool:
    """Return whether a table has the data that an estimator needs."""
    try:
        table.seen_by(estimator)
    except InputError:
        return False
    return True


def meaning_of(name: str, table: RowTable) -> str:
    """Write the meaning of a score; the accuracy of a class is another one."""
    is_of_prediction = table.setting.is_top or table.setting.name == "binary"
    if name == "accuracy" and not is_of_prediction:
        return ACCURACY_OF_SCORE
    return SCORES[name]


def score_interval(call: Call, name: str, value: float) -> ConfidenceInterval | None:
    """Compute the normal interval of a score, and Wilson's interval of an accuracy.

    With groups, the variance is the one of their sums. A mean square around the mean score moves
    with each row as if that mean were known.
    """
    mean = call.estimators[name]
    law = SamplingLaw(call.clusters, call.level, call.counts)
    samples = call.tables[0].samples(reads_only=True)
    # In place, as reports of millions of rows hold every array of this function at once.
    deviations = mean_numbers(mean, samples)
    deviations -= value
    weight = samples[0].weight
    deviations *= 1 / samples[0].n if weight is None else weight / weight.sum()
    if name == "accuracy":
        return wilson_interval(value, deviations, law)
    return law.quantity(value, deviations, low=0.0).confidence_interval


def mean_numbers(mean: Any, samples: Sequence[Sample]) -> F64:
    """Average the numbers (n,) whose mean is a score, over all problems."""
    # Copies, since a score may have more numbers of each row, which are then free.
    numbers = [np.atleast_2d(mean.numbers(sample))[0].copy() for sample in samples]
    return np.asarray(np.mean(numbers, axis=0))


def decompose_brier_score(inputs: ReportInput) -> ScoreDecomposition:
    """Decompose the Brier score of the setting; average its parts over classes."""
    table = inputs.call.rows.replace(vectors=None)
    parts = [score_components("brier", table, k) for k in range(table.n_problems)]
    means = ScoreComponents(*np.mean(parts, axis=0).tolist())
    return ScoreDecomposition(
        **means._asdict(), rule="brier", n=inputs.call.n, setting=inputs.call.setting
    )


# --- section --------------------------------------------------------------------------------


def describe_scores(report: Report) -> list[Section]:
    """Describe the scores, and the parts of the Brier score."""
    lines = report.scores
    if not lines:
        return []
    rows = [[x.name, *with_interval(x.value, x.low, x.high), x.meaning] for x in lines]
    table = Table(["score", "value", name_interval(report.confidence_level), ""], rows)
    notes = [line.note for line in lines if line.note is not None]
    if report.decomposition is not None:
        notes.insert(0, describe_decomposition(report.decomposition, lines[0].value))
    return [Section("Scores", table=table, notes=notes)]


def describe_decomposition(parts: ScoreDecomposition, brier_score: float) -> str:
    """Write the Brier score of the setting as the sum of its parts."""
    # By default class vectors are scored whole, and the top label's score is decomposed.
    is_same = math.isclose(parts.score, brier_score, rel_tol=1e-9)
    name = "Brier score" if is_same else "Brier score of the top label"
    return (
        f"{name} {parts.score:.4f} = miscalibration {parts.miscalibration:.4f} - discrimination "
        f"{parts.discrimination:.4f} + uncertainty {parts.uncertainty:.4f} (isotonic regression)."
    )
