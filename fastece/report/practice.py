"""The parts of a report on a model at work: which predictions may act alone, and its validation."""

from dataclasses import replace
from functools import partial
from typing import Any

from fastece.decisions.threshold import LABEL_1, rank_call, threshold_of_ranking
from fastece.display.axes import draw_on_page
from fastece.display.documents import Picture, Section, Table
from fastece.estimators.table import ESTIMATORS
from fastece.report.inputs import ReportInput
from fastece.report.pictures import MAX_ROWS_OF_PATHS
from fastece.report.result import Report
from fastece.report.words import event_of
from fastece.risk.validation import check_thresholds, validation_of

# How often predictions are to be right that act without a person.
ACCURACIES = (0.9, 0.95, 0.99)
# Columns of the table of a threshold that a report shows: all except the accuracy it promises.
SHOWN_COLUMNS = slice(1, 5)


# --- numbers --------------------------------------------------------------------------------


def choose_thresholds(inputs: ReportInput) -> dict[str, Any]:
    """Choose the scores from which predictions are right often enough.

    A prediction is the most probable class; of two classes it is label 1, if the report is about
    that: hits and confidences look the same. There is no promise for rows with counts, for soft
    labels, and for weights with groups.
    """
    call = inputs.call
    if not (inputs.is_full and inputs.has_rows) or call.counts is not None:
        return {"thresholds": None}
    rows = call.models[0]
    if rows.votes > 1 or (call.clusters is not None and rows.v is not None):
        return {"thresholds": None}
    table = inputs.table
    is_about_label_1 = table.n_classes == 2 and table.setting.column == 1
    if not (inputs.is_top_label or is_about_label_1):
        table = inputs.read_rows(setting="confidence")
    call = inputs.call_with(table, {"": ESTIMATORS["accuracy"]})
    ranking = rank_call(call)
    thresholds = [
        threshold_of_ranking(call, ranking, accuracy, call.level, is_of_hits=inputs.request.pairs)
        for accuracy in ACCURACIES
    ]
    return {"thresholds": thresholds}


def validate_rows(inputs: ReportInput) -> dict[str, Any]:
    """Validate a risk model, if the setting is of one event and rows are not too many."""
    has_all = inputs.is_full and inputs.has_rows
    is_of_classes = inputs.is_top_label or inputs.table.setting.per_class
    if not has_all or is_of_classes or inputs.n_rows > MAX_ROWS_OF_PATHS:
        return {"validation": None}
    call = inputs.call
    points: dict[str, Any] = {str(point): point for point in check_thresholds(None)}
    event = inputs.request.event or event_of(call.setting)
    validation = validation_of(replace(call, estimators=points), inputs.key, event)
    return {"validation": validation}


# --- sections -------------------------------------------------------------------------------


def describe_thresholds(report: Report) -> list[Section]:
    """Describe the scores from which predictions may act alone."""
    thresholds = report.thresholds
    if thresholds is None:
        return []
    tables = [threshold.table() for threshold in thresholds]
    rows = [
        [f"{100 * threshold.required_accuracy:g} %", *table.rows[0][SHOWN_COLUMNS]]
        for threshold, table in zip(thresholds, tables, strict=True)
    ]
    table = Table(["right in", *tables[0].head[SHOWN_COLUMNS]], rows)
    notes = [
        f"With {100 * report.confidence_level:g} % confidence for each row, predictions with at "
        "least this score are right at least that often, although the score was chosen on these "
        "data. Without a score, no such promise can be made."
    ]
    if thresholds[0].setting != "confidence" and not report.pairs:
        notes.append(LABEL_1)
    return [Section("Which predictions may act alone", table=table, notes=notes)]


def describe_validation(report: Report) -> list[Section]:
    """Describe the validation of a risk model, with its picture, and its net benefit."""
    validation = report.validation
    if validation is None:
        return []
    quantities, benefit = validation.document().sections
    first = replace(
        quantities,
        title=f"Validation of the predicted probability of {validation.event}",
        notes=[validation.sentence, *quantities.notes],
        pictures=[Picture(f"{report.title}: validation", partial(draw_on_page, validation.plot))],
    )
    return [first, benefit]
