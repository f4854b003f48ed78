"""The command ``monitor``: an alarm when files, one after another, are calibrated no longer."""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fastece.calls import ece
from fastece.checks.errors import InputError
from fastece.cli.inputs import class_numbers, data_of, read_file, title_of
from fastece.cli.output import Page, Progress
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import Number, PValue
from fastece.document.writers import to_html
from fastece.files import Predictions, expand_paths, write_file
from fastece.monitor import Monitor
from fastece.plot.axes import new_figure
from fastece.plot.pages import picture_of, to_svg
from fastece.recalibration import load
from fastece.report.report import LEAD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {
    "file": "file", "rows": "rows", "error": "error", "e_value": "e-value", "p_value": "p-value",
    "alarm": "alarm",
}  # fmt: skip
NOTES = (f"error: {LEAD} of the file alone; e-value, p-value, alarm: of all rows up to its end",)
SIZE = (7.2, 4.0)


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece monitor FILE [FILE ...]``."""
    options.setting = "auto"
    monitor, lines = None, []
    for path in expand_paths(options.files):
        progress(f"reading {title_of(path)}")
        rows = read_file(path, options)
        monitor = monitor or make_monitor(rows, options)
        lines.append(add_rows(monitor, rows, options))
    assert monitor is not None, "there is a file"
    page = page_of(monitor, lines)
    writers = {
        "state": monitor.save,
        "plot": lambda path: write_file(path, picture_of(path, draw(monitor))),
        "html": lambda path: write_file(path, to_html(page).encode()),
    }
    return Page(page, {**monitor.to_dict(), "files": lines}, writers)


def page_of(monitor: Monitor, lines: Sequence[dict[str, Any]]) -> Document:
    """Describe the evidence, and the files one by one."""
    page = monitor.document()
    cells = [
        [x["file"], x["rows"], x["error"], Number(x["e_value"], form=".3g"), PValue(x["p_value"]),
         "yes" if x["alarm"] else "no"]
        for x in lines
    ]  # fmt: skip
    by_file = Section(
        "By file", table=Table([*COLUMNS.values()], cells, [*COLUMNS]), notes=NOTES,
        pictures=[lambda key: to_svg(draw(monitor), page.title, key)],
    )  # fmt: skip
    return replace(page, sections=[*page.sections, by_file])


def draw(monitor: Monitor) -> "Figure":
    """Draw the e-value on a figure of its own."""
    figure = new_figure(SIZE)
    monitor.plot(figure.subplots())
    return figure


def make_monitor(rows: Predictions, options: Namespace) -> Monitor:
    """Make a monitor for rows like those of the first file, or read the one of the state."""
    reference = None if options.reference is None else load(options.reference)
    if options.state is None or not os.path.exists(options.state):
        shape = np.asarray(rows.y_prob).shape
        level = 0.05 if options.level is None else options.level
        return Monitor(level, reference=reference, n_classes=shape[1] if len(shape) > 1 else None)
    monitor = Monitor.load(options.state, reference)
    if options.level not in (None, monitor.level):
        rule = f"must be that of the state, {monitor.level:g}"
        raise InputError("level", rule, value=options.level)
    return monitor


def add_rows(monitor: Monitor, rows: Predictions, options: Namespace) -> dict[str, Any]:
    """Add the rows of a file, and return the cells of its line."""
    prob, logits = np.asarray(rows.y_prob), rows.from_logits
    with rows.located():
        y, _ = class_numbers(data_of(rows, options))
        if monitor.reference is not None:
            monitor.update(y, prob)
            prob, logits = monitor.reference.transform(prob), False
        else:
            monitor.update(y, prob, from_logits=logits)
        error = ece(y, prob, estimator=LEAD, from_logits=logits)
    found = (getattr(monitor, name) for name in ("e_value", "p_value", "alarm"))
    return dict(zip(COLUMNS, (title_of(rows.file), len(y), error, *found), strict=True))
