"""The parts of a report on classes and slices: the errors of parts of the rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fastece.data.table import RowTable, TableMaker
from fastece.display.documents import Section
from fastece.display.numbers import equate_p
from fastece.inference.selections import (
    Selection,
    classes_with_rows,
    select_by_class,
    select_by_columns,
    select_by_prediction,
    select_streams,
)
from fastece.inference.slices import Slices, slices_of
from fastece.report.inputs import ReportInput
from fastece.report.verdict import PartsOff
from fastece.report.words import sentence

# Lines of a table, those with the most evidence first; the others are counted.
MAX_TABLE_LINES = 40
# Classes that are shown where none are miscalibrated.
MIN_CLASS_LINES = 3
# Ends the name of classes where predicted classes are there too.
AGAINST_REST = " against the rest"
NOT_JUDGED = "Not judged: {} of {} classes, which no row has or is predicted to have."
BREAKDOWN_NOTE = "{} of {} with p <= {:.2g}; p-values are of the {}, adjusted for all {} ({})."


@dataclass(frozen=True, kw_only=True)
class Breakdowns:
    """Errors of classes and of slices; None where there are none.

    Attributes
    ----------
    predicted_classes, classes, slices : Slices or None
        Errors of the rows of each predicted class, of each class against the rest, and of the
        values of `by`.
    by : str
        Name of the values of `by`, "" without one.
    notes : list of str
        How many classes are not judged, if any.
    """

    predicted_classes: Slices | None
    classes: Slices | None
    slices: Slices | None
    by: str
    notes: list[str]

    @property
    def off(self) -> list[PartsOff]:
        """How many classes and slices are miscalibrated, and which most clearly."""
        one_class = ("class", "classes")
        if self.predicted_classes is not None:
            one_class = (f"class{AGAINST_REST}", f"classes{AGAINST_REST}")
        tables = [
            (self.predicted_classes, "predicted class", "predicted classes"),
            (self.classes, *one_class),
            (self.slices, "slice", "slices"),
        ]
        return [parts_off(table, *names) for table, *names in tables if table]


def parts_off(table: Slices, name: str, plural: str) -> PartsOff:
    """Count the miscalibrated parts of a table, and name the clearest one in words."""
    (first,) = table.clearest(1)
    label = f"{first.label}"
    p_value = "" if math.isnan(first.p_value) else equate_p(first.p_value, table.bound_of(first))
    return PartsOff(
        n_off=table.off,
        n_parts=len(table),
        name=name,
        plural=plural,
        clearest=label if name == "slice" else f"class {label.removeprefix('class ')}",
        p_value=p_value,
    )


# --- numbers --------------------------------------------------------------------------------


def select_slices(inputs: ReportInput) -> list[Selection] | None:
    """Check the labels of slices, and find the rows of each; None without labels."""
    by = inputs.data.by
    if by is None:
        return None
    if isinstance(by, Mapping) and any(isinstance(x, TableMaker) for x in by.values()):
        return select_streams({label: stream.table() for label, stream in by.items()})
    inputs.table.need_shared_rows("the error of each slice", "by")
    return select_by_columns(inputs.call, by, inputs.data.y_prob)


def measure_breakdowns(inputs: ReportInput, selections: list[Selection] | None) -> Breakdowns:
    """Measure the errors of classes and of slices, as far as the table has them."""
    predicted_classes = None
    classes = None
    notes = []
    by_class = read_classes(inputs)
    if by_class is not None:
        call = inputs.call_with(by_class, inputs.lead.estimators)
        judged = classes_with_rows(by_class)
        classes = slices_of(call, select_by_class(call, judged), inputs.key)
        n_left = by_class.n_problems - len(judged)
        if n_left:
            notes.append(NOT_JUDGED.format(n_left, by_class.n_problems))
        if inputs.table.setting.is_top and inputs.has_rows:
            by_prediction = select_by_prediction(inputs.lead, by_class)
            predicted_classes = slices_of(inputs.lead, by_prediction, inputs.key)
    return Breakdowns(
        predicted_classes=predicted_classes,
        classes=classes,
        slices=None if selections is None else slices_of(inputs.lead, selections, inputs.key),
        by=inputs.names.by,
        notes=notes,
    )


def read_classes(inputs: ReportInput) -> RowTable | None:
    """Read the rows class by class, if the question is about classes.

    Two classes of rows mirror each other. A stream has classes only if it was added up class by
    class.
    """
    table = inputs.table
    if not inputs.has_rows:
        return table if table.setting.per_class else None
    is_of_classes = table.setting.is_top or table.setting.per_class
    if not is_of_classes or table.n_classes == 2:
        return None
    return inputs.read_rows(setting="classwise")


# --- sections -------------------------------------------------------------------------------


def predicted_classes_section(breakdowns: Breakdowns) -> Section | None:
    """Describe the errors of the rows of each predicted class."""
    table = breakdowns.predicted_classes
    if table is None:
        return None
    lines = min(max(table.off, MIN_CLASS_LINES), MAX_TABLE_LINES)
    return table_section("Predicted classes", table, "predicted class", lines)


def classes_section(breakdowns: Breakdowns, max_lines: int = MAX_TABLE_LINES) -> Section | None:
    """Describe the errors of classes against the rest.

    Beside predicted classes they answer another question, so they are shown only if some are
    miscalibrated.
    """
    table = breakdowns.classes
    if table is None:
        return None
    if breakdowns.predicted_classes is None:
        lines = min(max(table.off, MIN_CLASS_LINES), max_lines)
        return table_section("Classes", table, "class", lines)
    if table.off == 0:
        return None
    return table_section("Classes against the rest", table, "class", min(table.off, max_lines))


def slices_section(breakdowns: Breakdowns, max_lines: int = MAX_TABLE_LINES) -> Section | None:
    """Describe the errors of slices."""
    table = breakdowns.slices
    if table is None:
        return None
    title = f"Slices by {breakdowns.by}" if breakdowns.by else "Slices"
    return table_section(title, table, "slice", min(len(table), max_lines))


def table_section(
    title: str, table: Slices, name: Literal["predicted class", "class", "slice"], max_lines: int
) -> Section:
    """Describe the lines with the most evidence, and count the others."""
    alpha = 1 - table.confidence_level
    note = BREAKDOWN_NOTE.format(
        table.off, len(table), alpha, table.test, len(table), table.correction
    )
    left = len(table) - max_lines
    if left > 0:
        title = f"{title}, {max_lines} of {len(table)}"
        note = f"and {left} with less evidence; {note}"
    lines = table.table(name, max_lines)
    return Section(f"{title}, {table.order(max_lines)}", table=lines, notes=[sentence(note)])
