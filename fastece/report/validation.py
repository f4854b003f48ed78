"""The part of a report on validation: the numbers of a risk model in a clinical paper."""

from dataclasses import replace
from functools import partial
from typing import Any

from fastece.display.axes import draw_on_page
from fastece.display.documents import Picture, Section
from fastece.inference.validation import Validation, check_thresholds, validation_of
from fastece.report.inputs import ReportInput
from fastece.report.pictures import MAX_ROWS_OF_PATHS
from fastece.report.words import event_of


def validate_rows(inputs: ReportInput) -> Validation | None:
    """Validate a risk model, if the setting is of one event and rows are not too many."""
    call = inputs.call
    setting = inputs.table.setting
    if inputs.is_top_label or setting.per_class or inputs.n_rows > MAX_ROWS_OF_PATHS:
        return None
    points: dict[str, Any] = {str(point): point for point in check_thresholds(None)}
    event = inputs.names.event or event_of(call.setting)
    return validation_of(replace(call, estimators=points), inputs.key, event)


def validation_sections(validation: Validation | None, title: str) -> list[Section]:
    """Describe the validation of a risk model, with its picture, and its net benefit."""
    if validation is None:
        return []
    quantities, benefit = validation.document().sections
    first = replace(
        quantities,
        title=f"Validation of the predicted probability of {validation.event}",
        notes=[validation.sentence, *quantities.notes],
        pictures=[Picture(f"{title}: validation", partial(draw_on_page, validation.plot))],
    )
    return [first, benefit]
