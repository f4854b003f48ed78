"""The part of a report on whole class vectors, which may be off where no class shows it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.data.table import RowTable
from fastece.data.threads import with_threads
from fastece.display.documents import Section, Table
from fastece.display.numbers import PValue, smallest_p
from fastece.estimators.canonical import SKCE
from fastece.estimators.table import ESTIMATORS
from fastece.report.inputs import ReportInput
from fastece.report.result import ClassVectors, Report, VectorLine
from fastece.resampling.calibration_test import calibration_results

# Errors by name, with their meanings. The second one has the stronger test.
VECTOR_ERRORS = {
    "canonical": "distance of class vectors from their observed frequencies",
    "skce": "whether rows with similar class vectors are miscalibrated alike",
}
DECISIVE = "skce"
# With fewer classes the vectors show no more than the classes.
MIN_VECTOR_CLASSES = 3
# With more classes, vectors of one sample do not lie near each other.
MAX_VECTOR_CLASSES = 20
# The estimators look at all pairs of rows, in seconds.
MAX_VECTOR_ROWS = 20_000
# Pairs that all replicates together look at, in about a second. With 20 000 rows the bandwidth
# alone takes 4 s, and the smallest number of replicates of a test 10 s.
MAX_PAIRS = 10**9
MIN_VECTOR_REPLICATES = 32


# --- numbers --------------------------------------------------------------------------------


def measure_vectors(inputs: ReportInput) -> dict[str, Any]:
    """Measure the errors of class vectors, or the one that may change the verdict.

    They take most of the time of a report on ten classes. Where the test rejects, or where there is
    none, no error of class vectors changes the verdict.
    """
    if not has_class_vectors(inputs):
        return {"vectors": None}
    if inputs.is_full:
        return {"vectors": measure_vector_errors(inputs, list(VECTOR_ERRORS))}
    if inputs.test is None or inputs.test.p_value < 1 - inputs.call.level:
        return {"vectors": None}
    return {"vectors": measure_vector_errors(inputs, [DECISIVE])}


def has_class_vectors(inputs: ReportInput) -> bool:
    """Return whether rows have class vectors, and the question is about classes."""
    table = inputs.table
    if table.c is not None or inputs.request.pairs:
        return False
    is_of_classes = table.setting.is_top or table.setting.per_class
    return is_of_classes and table.n_classes >= MIN_VECTOR_CLASSES


def measure_vector_errors(inputs: ReportInput, names: Sequence[str]) -> ClassVectors:
    """Measure errors of class vectors, unless there are too many classes or rows."""
    reason = reason_to_leave_out(inputs.table.n_classes, inputs.call.n)
    if reason:
        return ClassVectors(note=f"Left out: {reason}.")
    inputs.request.progress("class vectors")
    vectors = inputs.read_rows(setting="auto", vectors=True)
    estimators = choose_estimators(vectors, names, inputs.call.workers.jobs)
    n_resamples = count_replicates(inputs)
    call = replace(inputs.call_with(vectors, estimators), n_resamples=n_resamples, average="macro")
    if n_resamples == 0:
        lines = [
            VectorLine(
                name=name,
                value=float(estimator.point_values(vectors)[0]),
                meaning=VECTOR_ERRORS[name],
            )
            for name, estimator in estimators.items()
        ]
        return ClassVectors(lines)
    lines = [
        VectorLine(
            name=name,
            value=result.value,
            if_calibrated=float(np.mean(result.null_distribution)),
            p_value=result.p_value,
            meaning=VECTOR_ERRORS[name],
        )
        for name, result in calibration_results(call, inputs.seed).items()
    ]
    return ClassVectors(lines, n_resamples)


def reason_to_leave_out(n_classes: int, n: int) -> str:
    """Write the reason why class vectors are not measured, "" without one."""
    limits = {"classes": (n_classes, MAX_VECTOR_CLASSES), "rows": (n, MAX_VECTOR_ROWS)}
    for name, (count, limit) in limits.items():
        if count > limit:
            other = 'fastece.calibration_test(y, p, estimator="skce") takes them'
            return f"{count} {name}, of at most {limit}; {other}"
    return "one row has no pairs" if n < 2 else ""


def choose_estimators(vectors: RowTable, names: Sequence[str], jobs: int) -> dict[str, Any]:
    """Find the estimators; votes have no canonical error, and the biased kernel error."""
    estimators: dict[str, Any] = {name: ESTIMATORS[name] for name in names}
    if vectors.votes != 1:
        estimators.pop("canonical", None)
        if "skce" in estimators:
            estimators["skce"] = SKCE("biased")
    if "canonical" in estimators:
        # The bandwidth that the likelihood chooses takes longest, so all replicates share it.
        kde = estimators["canonical"]
        sample = vectors.sample(0)
        plan = with_threads(jobs, lambda run: kde.prepare(sample, sample.n, run))
        estimators["canonical"] = replace(kde, bandwidth=plan.bandwidth)
    return estimators


def count_replicates(inputs: ReportInput) -> int:
    """Choose the number of replicates, as many as a p-value that rejects needs."""
    call = inputs.call
    needed = max(MIN_VECTOR_REPLICATES, math.ceil(1 / (1 - call.level)))
    return min(call.n_resamples, max(MAX_PAIRS // call.n**2, needed))


# --- section --------------------------------------------------------------------------------


def describe_vectors(report: Report) -> list[Section]:
    """Describe errors of whole class vectors, or the reason why there are none."""
    vectors = report.vectors
    if vectors is None:
        return []
    title = "Class vectors"
    if vectors.note:
        return [Section(title, notes=[vectors.note])]
    smallest = smallest_p(vectors.n_resamples)
    rows = [
        [line.name, line.value, line.if_calibrated, PValue(line.p_value, smallest), line.meaning]
        for line in vectors.lines
    ]
    table = Table(["error", "value", "chance alone", "p-value", ""], rows)
    notes = []
    if vectors.n_resamples:
        notes.append(
            "Class vectors may be off where top label and classes are not. Chance alone: mean of "
            f"{vectors.n_resamples} draws."
        )
    return [Section(title, table=table, notes=notes)]
