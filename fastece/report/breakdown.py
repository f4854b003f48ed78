"""The parts of a report on classes and on slices: the errors of parts of the rows."""

from typing import Any, Literal

from fastece.data.table import RowTable
from fastece.display.documents import Section
from fastece.inference.selections import classes_with_rows, select_by_class, select_by_prediction
from fastece.inference.slices import Slices, slices_of
from fastece.report.inputs import ReportInput
from fastece.report.result import Report
from fastece.report.words import sentence

# Lines of a table, those with the most evidence first; the others are counted.
MAX_TABLE_LINES = 40
# Classes that are shown where none are miscalibrated.
MIN_CLASS_LINES = 3


# --- numbers --------------------------------------------------------------------------------


def measure_classes(inputs: ReportInput) -> dict[str, Any]:
    """Measure each class against the rest, and the rows of each predicted class."""
    by_class = read_classes(inputs)
    if by_class is None:
        return {"classes": None, "predicted_classes": None, "_notes_on_classes": []}
    call = inputs.call_with(by_class, inputs.lead.estimators)
    judged = classes_with_rows(by_class)
    notes = []
    n_left = by_class.n_problems - len(judged)
    if n_left:
        notes.append(
            f"Not judged: {n_left} of {by_class.n_problems} classes, which no row has or is "
            "predicted to have."
        )
    predicted_classes = None
    if inputs.table.setting.is_top and inputs.has_rows:
        by_prediction = select_by_prediction(inputs.lead, by_class)
        predicted_classes = slices_of(inputs.lead, by_prediction, inputs.key)
    return {
        "classes": slices_of(call, select_by_class(call, judged), inputs.key),
        "predicted_classes": predicted_classes,
        "_notes_on_classes": notes,
    }


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


def measure_slices(inputs: ReportInput) -> dict[str, Any]:
    """Measure the slices by the values of `by`."""
    if inputs.selections is None:
        return {"slices": None}
    return {"slices": slices_of(inputs.lead, inputs.selections, inputs.key)}


# --- sections -------------------------------------------------------------------------------


def describe_classes(report: Report, max_lines: int = MAX_TABLE_LINES) -> list[Section]:
    """Describe the rows of each predicted class, and each class against the rest.

    Beside predicted classes, classes against the rest answer another question, so they are shown
    only if some are miscalibrated.
    """
    classes = report.classes
    predicted = report.predicted_classes
    if classes is None:
        return []
    if predicted is None:
        n_lines = min(max(classes.off, MIN_CLASS_LINES), max_lines)
        return [table_section("Classes", classes, "class", n_lines)]
    n_lines = min(max(predicted.off, MIN_CLASS_LINES), max_lines)
    sections = [table_section("Predicted classes", predicted, "predicted class", n_lines)]
    if classes.off:
        n_lines = min(classes.off, max_lines)
        sections.append(table_section("Classes against the rest", classes, "class", n_lines))
    return sections


def describe_slices(report: Report, max_lines: int = MAX_TABLE_LINES) -> list[Section]:
    """Describe the errors of slices."""
    if report.slices is None:
        return []
    title = f"Slices by {report.by}" if report.by else "Slices"
    n_lines = min(len(report.slices), max_lines)
    return [table_section(title, report.slices, "slice", n_lines)]


def table_section(
    title: str, table: Slices, name: Literal["predicted class", "class", "slice"], n_lines: int
) -> Section:
    """Describe the lines with the most evidence, and count the others."""
    alpha = 1 - table.confidence_level
    note = (
        f"{table.off} of {len(table)} with p <= {alpha:.2g}; p-values are of the {table.test}, "
        f"adjusted for all {len(table)} ({table.correction})."
    )
    left = len(table) - n_lines
    if left > 0:
        title = f"{title}, {n_lines} of {len(table)}"
        note = f"and {left} with less evidence; {note}"
    lines = table.table(name, n_lines)
    return Section(f"{title}, {table.order(n_lines)}", table=lines, notes=[sentence(note)])
