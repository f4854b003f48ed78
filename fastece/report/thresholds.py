"""The part of a report on thresholds: scores from which predictions are right often enough."""

from collections.abc import Sequence

from fastece.decisions.threshold import LABEL_1, Threshold, rank_call, threshold_of_ranking
from fastece.display.documents import Section, Table
from fastece.estimators.table import ESTIMATORS
from fastece.report.inputs import ReportInput

# How often predictions are to be right that act without a person.
ACCURACIES = (0.9, 0.95, 0.99)
PROMISES_NOTE = (
    "With {:g} % confidence for each row, predictions with at least this score are right at least "
    "that often, although the score was chosen on these data. Without a score, no such promise can "
    "be made."
)
# Columns of the table of a threshold that a report shows: all except the accuracy it promises.
SHOWN_COLUMNS = slice(1, 5)


def choose_thresholds(inputs: ReportInput) -> list[Threshold] | None:
    """Choose the scores from which predictions are right often enough.

    A prediction is the most probable class; of two classes it is label 1, if the report is about
    that: hits and confidences look the same. There is no promise for rows with counts, for soft
    labels, and for weights with groups.
    """
    call = inputs.call
    if call.counts is not None:
        return None
    rows = call.models[0]
    if rows.votes > 1 or (call.clusters is not None and rows.v is not None):
        return None
    table = inputs.table
    is_about_label_1 = table.n_classes == 2 and table.setting.column == 1
    if not (inputs.is_top_label or is_about_label_1):
        table = inputs.read_rows(setting="confidence")
    call = inputs.call_with(table, {"": ESTIMATORS["accuracy"]})
    ranking = rank_call(call)
    return [threshold_of_ranking(call, ranking, accuracy, call.level) for accuracy in ACCURACIES]


def thresholds_section(thresholds: Sequence[Threshold] | None, level: float) -> Section | None:
    """Describe the scores from which predictions may act alone."""
    if thresholds is None:
        return None
    tables = [threshold.table() for threshold in thresholds]
    rows = [
        [f"{100 * threshold.required_accuracy:g} %", *table.rows[0][SHOWN_COLUMNS]]
        for threshold, table in zip(thresholds, tables, strict=True)
    ]
    table = Table(["right in", *tables[0].head[SHOWN_COLUMNS]], rows)
    notes = [PROMISES_NOTE.format(100 * level)]
    if thresholds[0].setting != "confidence":
        notes.append(LABEL_1)
    return Section("Which predictions may act alone", table=table, notes=notes)
