"""The part of a report on its rows: how many, of which classes, and how the test went."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastece.data.table import RowTable
from fastece.display.documents import Cell, Section
from fastece.display.numbers import Number, equate_p, format_p, format_percents, smallest_p
from fastece.display.results import group_notes
from fastece.estimators.binned import Binned
from fastece.estimators.losses import mean_of
from fastece.kernels.types import F64
from fastece.reliability.diagram import diagrams_of
from fastece.report.doubts import list_doubts
from fastece.report.inputs import ReportInput
from fastece.report.result import Report
from fastece.report.words import question

# Rows of a table that are read at once.
ROWS_AT_ONCE = 2**20
STREAM_NOTE = (
    "Rows were added up in cells of their score, and are not kept. Errors of equal-width bins "
    "whose edges are ends of cells (10, 12, 15, 16, 18, 20, 25, 30, 50 or 100 on [0, 1]) are "
    "exact; ranks of edges of equal-mass bins are exact to 1e-4 and the share of rows in their "
    "cell; densities to 0.2 %. Labels of tests are drawn by cell, with normal noise. Log loss, "
    "intervals of densities and groups need every row, so they are absent."
)
# Names in print of numbers of a stream; others have their own.
STREAM_NAMES = {"skipped": "rows skipped", "cut_files": "files cut off"}


# --- numbers --------------------------------------------------------------------------------


def measure_sample(inputs: ReportInput) -> dict[str, Any]:
    """Count the rows, measure accuracy and mean confidence, and run the test."""
    call = inputs.call
    table = inputs.table
    request = inputs.request
    test = inputs.test
    single_bin = diagrams_of(Binned(1), table)[0]
    accuracy, confidence = measure_top_label(inputs)
    return {
        "title": request.title,
        "by": request.by_name,
        "groups": request.groups_name,
        "event": request.event,
        "note": request.note,
        "pairs": request.pairs,
        "stream": None if inputs.has_rows else request.stream or {},
        "n": call.n,
        "n_effective": table.votes * float(single_bin.rows[0]) / call.design_effect,
        "n_groups": call.n_groups,
        "n_classes": count_classes(inputs),
        "accuracy": accuracy,
        "mean_confidence": confidence,
        "setting": call.setting,
        "confidence_level": call.level,
        "seed": inputs.seed,
        "n_resamples": 0 if test is None else test.null_distribution.shape[-1],
        "p_value": None if test is None else test.p_value,
        "components": None if test is None else test.components,
        "_copies": describe_copies(inputs),
        "_notes_on_rows": list_notes(inputs),
    }


def describe_copies(inputs: ReportInput) -> dict[str, Cell]:
    """Write how many rows the table stands for, and the sum of their weights."""
    call = inputs.call
    facts: dict[str, Cell] = {}
    if call.counts is not None:
        facts["counts"] = f"{call.n} rows in {call.counts.size} of the table"
    weights = weights_of(inputs)
    if weights is not None:
        text = f"{float(weights.sum()):.10g} in {call.n} rows"
        if call.counts is None and are_counts(weights):
            text += "; if these are counts, use --counts"
        facts["weights"] = text
    return facts


def weights_of(inputs: ReportInput) -> F64 | None:
    """Return the weight (n,) of each row by all of its copies; None without weights."""
    if inputs.request.reading.sample_weight is None or not inputs.has_rows:
        return None
    if inputs.table.votes > 1:  # whose shares are weights too
        return None
    return inputs.table.samples(reads_only=True)[0].total_weights


def are_counts(weights: F64) -> bool:
    """Decide whether weights are whole numbers, of which some are more than 1."""
    return bool((weights == np.floor(weights)).all() and weights.max() > 1)


def list_notes(inputs: ReportInput) -> list[str]:
    """List sentences on signs that numbers mislead, on counts and on groups."""
    notes = list_doubts(inputs)
    if inputs.call.counts is not None:
        notes.append(
            "Rows of the table stand for so many independent rows as they count. Thresholds with a "
            "promise and errors of class vectors need each row by itself, so they are absent."
        )
    if inputs.call.n_groups is not None:
        notes.append(
            "Rows of one group may depend on each other: intervals and p-values are those of whole "
            "groups."
        )
        notes += group_notes(inputs.call.n_groups)
    return notes


def count_classes(inputs: ReportInput) -> int | None:
    """Return the number of classes, None where a file does not have it."""
    if inputs.request.pairs:
        return inputs.request.n_classes
    if inputs.has_rows or inputs.request.top_label is None:
        return inputs.table.n_classes
    return inputs.request.top_label.table().n_classes


def measure_top_label(inputs: ReportInput) -> tuple[float | None, float | None]:
    """Measure the accuracy and the mean confidence, where the table has them."""
    table = table_of_top_labels(inputs)
    if table is None:
        return None, None
    if table.c is None:
        # A part of the rows at a time, as scores and outcomes of all take 16 bytes a row.
        means = mean_of(table.parts(ROWS_AT_ONCE), lambda part: np.stack([part.s, part.y]))
        confidence, accuracy = means.tolist()
        return accuracy, confidence
    is_of_label_1 = table.setting.name == "binary" and not inputs.request.pairs
    bins = Binned(2 if is_of_label_1 else 1, score_range="unit")
    (diagram,) = diagrams_of(bins, table)
    hits = np.nan_to_num(diagram.frequency)
    score = np.nan_to_num(diagram.score)
    if is_of_label_1:
        # Scores of label 1 up to one half are predictions of label 0.
        hits[0] = 1 - hits[0]
        score[0] = 1 - score[0]
    share = diagram.count / diagram.count.sum()
    return float(share @ hits), float(share @ score)


def table_of_top_labels(inputs: ReportInput) -> RowTable | None:
    """Return the rows in a setting that has the accuracy; None without one."""
    if inputs.is_top_label:
        return inputs.table
    if inputs.has_rows:
        return inputs.read_rows(setting="confidence")
    if inputs.table.setting.name == "binary":
        return inputs.table
    top_label = inputs.request.top_label
    return None if top_label is None else top_label.table()


# --- what follows from the numbers ----------------------------------------------------------


def is_of_top_label(report: Report) -> bool:
    """Return whether the question is if the predicted class is right."""
    return report.pairs or report.setting == "confidence"


def hits_of(report: Report) -> tuple[float, float] | None:
    """Return accuracy and mean confidence, where top labels are measured."""
    if not is_of_top_label(report) or report.accuracy is None or report.mean_confidence is None:
        return None
    return report.accuracy, report.mean_confidence


def bins_of_event(report: Report) -> tuple[F64, F64, F64] | None:
    """Return share, score and frequency (B,) of the bins, if there is a single event."""
    if is_of_top_label(report) or len(report.diagrams) > 1:
        return None
    (diagram,) = report.diagrams
    share = diagram.count / max(float(diagram.count.sum()), 1e-300)
    return share, np.nan_to_num(diagram.score), np.nan_to_num(diagram.frequency)


def rates_of(report: Report) -> tuple[float, float] | None:
    """Compute the predicted and the observed rate, if there is a single event."""
    bins = bins_of_event(report)
    if bins is None:
        return None
    share, score, frequency = bins
    return float(share @ score), float(share @ frequency)


def linear_slope_of(report: Report) -> float | None:
    """Compute the slope of a line through the bins, if there is a single event.

    It is less than 1 where predictions are too extreme.
    """
    bins = bins_of_event(report)
    if bins is None:
        return None
    share, score, frequency = bins
    distance = share * (score - share @ score)
    variance = float(distance @ score)
    return None if variance <= 0 else float(distance @ frequency) / variance


# --- sections -------------------------------------------------------------------------------


def describe_sample(report: Report) -> list[Section]:
    """Describe the rows, the test, and the sums of a stream."""
    facts = facts_of_rows(report)
    if report.p_value is not None and report.components is not None:
        facts["test"] = describe_test(report, report.p_value, report.components)
    if report.note:
        facts["read as"] = report.note
    sample = Section("Sample", facts, notes=report.notes)
    if report.stream is None:
        return [sample]
    notes = [*report.stream.get("notes", []), STREAM_NOTE]
    return [sample, Section("Streamed", facts_of_stream(report.stream), notes=notes)]


def facts_of_rows(report: Report) -> dict[str, Cell]:
    """Write how many rows there are, and how often their outcome comes."""
    facts: dict[str, Cell] = {"rows": report.n, **report._copies}
    if report.n_groups is not None:
        by = f" by {report.groups}" if report.groups else ""
        facts["groups"] = f"{report.n_groups}{by}"
    if round(report.n_effective) != report.n:
        facts["effective rows"] = f"{report.n_effective:.0f} ({reason_of_effective(report)}, Kish)"
    facts["classes"] = "not known" if report.n_classes is None else report.n_classes
    rates = rates_of(report)
    if rates is not None:
        facts["predicted rate"], facts["observed rate"] = format_percents(*rates, places=2)
    elif report.accuracy is not None:
        facts["accuracy"] = Number(report.accuracy, form=".4f")
        facts["mean confidence"] = Number(report.mean_confidence, form=".4f")
    facts["setting"] = question(report.setting, report.pairs)
    return facts


def reason_of_effective(report: Report) -> str:
    """Name the reason why the effective number of rows is another one."""
    if report.n_groups:
        return "groups"
    return "votes" if report.n_effective > report.n else "weights"


def describe_test(report: Report, p_value: float, components: Sequence[Any]) -> str:
    """Write the p-values of the test and of its statistics."""
    smallest = smallest_p(report.n_resamples)
    p_values = [f"{format_p(x.p_value, smallest)} ({x.name})" for x in components]
    return f"{equate_p(p_value, smallest)}; p-values of its statistics: {', '.join(p_values)}"


def facts_of_stream(stream: dict[str, Any]) -> dict[str, Cell]:
    """Return the counts of a stream by their names in print."""
    return {
        STREAM_NAMES.get(name, name): count
        for name, count in stream.items()
        if isinstance(count, int) and count
    }
