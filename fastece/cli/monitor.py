"""The command ``monitor``: an alarm when files, one after another, are calibrated no longer."""

import os
from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from fastece.cli.inputs import class_numbers, data_of, read_independent, title_of
from fastece.cli.output import Page, Progress
from fastece.data.errors import InputError
from fastece.decisions.monitor import Monitor
from fastece.display.documents import Section, Table
from fastece.display.numbers import Number, PValue
from fastece.display.pages import picture_of
from fastece.display.writers import to_html
from fastece.files import FilePredictions, expand_paths, write_file
from fastece.metrics import ece
from fastece.report.inputs import LEAD

KEYS = ("file", "rows", "error", "e_value", "p_value", "alarm")
HEAD = ("file", "rows", "error", "e-value", "p-value", "alarm")
NOTE = f"error: {LEAD} of the file alone; e-value, p-value, alarm: of all rows up to its end"


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece monitor FILE [FILE ...]``."""
    options.setting = "auto"
    monitor, lines, cells = None, [], []
    for path in expand_paths(options.files):
        progress(f"reading {title_of(path)}")
        rows = read_independent(path, options)
        monitor = monitor or make_monitor(rows, options)
        values: list[Any] = [title_of(path), *add_rows(monitor, rows, options)]
        values += [monitor.e_value, monitor.p_value, monitor.alarm]
        lines.append(dict(zip(KEYS, values, strict=True)))
        shown = Number(values[3], form=".3g"), PValue(values[4]), "yes" if values[5] else "no"
        cells.append([*values[:3], *shown])
    assert monitor is not None, "there is a file"
    page = monitor.document()
    by_file = Section("By file", table=Table(HEAD, cells), notes=[NOTE])
    page = replace(page, sections=[*page.sections, by_file])
    writers = {
        "state": monitor.save,
        "plot": lambda path: write_file(path, picture_of(path, monitor._figure())),
        "html": lambda path: write_file(path, to_html(page).encode()),
    }
    return Page(page, {**monitor.to_dict(), "files": lines}, writers)


def make_monitor(rows: FilePredictions, options: Namespace) -> Monitor:
    """Make a monitor for rows of this kind, or read the one of the state."""
    if options.state is None or not os.path.exists(options.state):
        shape = np.asarray(rows.y_prob).shape
        level = 0.05 if options.level is None else options.level
        return Monitor(level, n_classes=shape[1] if len(shape) > 1 else None)
    monitor = Monitor.load(options.state)
    if options.level not in (None, monitor.level):
        raise InputError(
            "level", f"must be {monitor.level:g}, as of the state", value=options.level
        )
    return monitor


def add_rows(monitor: Monitor, rows: FilePredictions, options: Namespace) -> tuple[int, Any]:
    """Add the rows of a file, and return their number and their error."""
    prob, logits = np.asarray(rows.y_prob), rows.from_logits
    with rows.located():
        y, _ = class_numbers(data_of(rows, options))
        monitor.update(y, prob, from_logits=logits)
        return len(y), ece(y, prob, estimator=LEAD, from_logits=logits)
