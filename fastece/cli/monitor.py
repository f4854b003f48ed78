"""The command ``monitor``: an alarm when files, one after another, are calibrated no longer."""

import os
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fastece.cli.arguments import (
    Parser,
    add_class_names,
    add_forms,
    add_labels,
    add_missing,
    add_page,
    add_percent,
    add_picture,
    add_probabilities,
    add_scale,
)
from fastece.cli.inputs import class_numbers, data_of, read_independent, title_of
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.data.errors import InputError, InputWarning, RowsWarning, warn_outside
from fastece.decisions.monitor import Monitor
from fastece.display.documents import Section, Table
from fastece.display.numbers import Number, PValue
from fastece.display.pages import picture_of
from fastece.display.writers import to_html
from fastece.files import (
    FilePredictions,
    expand_paths,
    find_number_out_of_order,
    write_file,
)
from fastece.metrics import ece
from fastece.recalibration import load
from fastece.report.inputs import LEAD

DESCRIPTION = """Test calibration over time; the chance that it ever alarms falsely is at most
the level. Files come in the order of time, those of a folder or a pattern in
the order of the numbers in their names. An alarm exits with 1."""
EXAMPLES = """
  fastece monitor 'days/*.csv' --state monitor.json
"""
# Chance of a false alarm of a new monitor.
LEVEL = 0.05
# Exit code of an alarm, which a scheduler takes for a failure.
ALARM_CODE = 1
HEAD = ("file", "rows", "error", "e-value", "p-value", "alarm")
NOTE = f"error: {LEAD} of the file alone; e-value, p-value, alarm: of all rows up to its end"
NOTE_ON_REFERENCE = "errors and evidence are those of the predictions that the reference maps"
UNLABELLED = (
    "no label yet and are left out; once they are labelled, give them in a file of their own"
)


def make_parser() -> Parser:
    """Make the parser of ``fastece monitor FILE [FILE ...]``."""
    parser = Parser("monitor", DESCRIPTION, "fastece monitor FILE [FILE ...] [options]", EXAMPLES)
    add = parser.input.add_argument
    add("files", metavar="FILE", nargs="+", help="tables, folders or patterns in quotes")
    add_labels(parser)
    add_probabilities(parser)
    add_class_names(parser)
    add_scale(parser)
    add_percent(parser)
    # Labels may come later.
    add_missing(parser, "skip")
    add("--reference", metavar="FILE", help="test what this map of recalibrate makes of them")
    add = parser.measure.add_argument
    add("--forget", metavar="ROWS", type=int, help="rows over which bets begin, as of a year")
    add("--level", metavar="L", type=float, help=f"chance of a false alarm, ever ({LEVEL})")
    add = parser.output.add_argument
    add("--state", metavar="FILE", help="go on from this file if it exists, and write it")
    add_picture(parser)
    add_page(parser)
    add_forms(parser)
    return parser


@dataclass(frozen=True)
class FileLine:
    """The rows of a file, their error, and the evidence of all rows so far."""

    file: str
    rows: int
    error: float
    e_value: float
    p_value: float
    alarm: bool
    unlabelled: int

    def cells(self) -> list[Any]:
        """Return the cells of the file's row in a table."""
        e_value = Number(self.e_value, form=".3g")
        alarm = "yes" if self.alarm else "no"
        return [self.file, self.rows, self.error, e_value, PValue(self.p_value), alarm]


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece monitor FILE [FILE ...]``."""
    options.setting = "auto"
    monitor: Monitor | None = None
    lines = []
    paths = expand_paths(options.files)
    warn_of_order(paths)
    for path in paths:
        progress(f"reading {title_of(path)}")
        rows = read_independent(path, options)
        if monitor is None:
            monitor = make_monitor(rows, options)
        lines.append(add_file(monitor, rows, title_of(path), options))
    assert monitor is not None, "there is a file"
    return make_page(monitor, lines)


def warn_of_order(paths: list[str]) -> None:
    """Warn of files in the order of texts, in which day10 precedes day2."""
    found = find_number_out_of_order(paths)
    if found is not None:
        before, after = map(title_of, found)
        rule = f"is read after {before}, though its number is less; files are in the order of time"
        hint = "a folder, or a pattern in quotes, is read in the order of numbers"
        warn_outside(InputWarning("path", rule, place=after, hint=hint))


def make_monitor(rows: FilePredictions, options: Namespace) -> Monitor:
    """Make a monitor for rows of this kind, or read the one of the state."""
    reference = None if options.reference is None else load(options.reference)
    if options.state is None or not os.path.exists(options.state):
        shape = np.asarray(rows.y_prob).shape
        level = LEVEL if options.level is None else options.level
        n_classes = shape[1] if len(shape) > 1 else None
        return Monitor(level, reference=reference, n_classes=n_classes, forget=options.forget)
    monitor = Monitor.load(options.state, reference)
    for name in ("level", "forget"):
        saved = getattr(monitor, name)
        chosen = getattr(options, name)
        if chosen not in (None, saved):
            raise InputError(name, f"must be {saved}, as in the state", value=chosen)
    return monitor


def add_file(
    monitor: Monitor, rows: FilePredictions, title: str, options: Namespace
) -> FileLine:  # fmt: skip
    """Add the rows of a file to a monitor."""
    if rows.n_unpredicted:
        rule = f"{rows.n_unpredicted} rows without a prediction are left out"
        warn_outside(RowsWarning("y_prob", rule, place=title))
    prob = np.asarray(rows.y_prob)
    with rows.located():
        y, _ = class_numbers(data_of(rows, options))
        monitor.update(y, prob, from_logits=rows.from_logits)
        if monitor.reference is not None:
            prob = monitor.reference.transform(prob)
        error = ece(y, prob, estimator=LEAD, from_logits=rows.from_logits)
    return FileLine(
        file=title,
        rows=len(y),
        error=error,
        e_value=monitor.e_value,
        p_value=monitor.p_value,
        alarm=monitor.alarm,
        unlabelled=rows.n_unlabelled,
    )


def make_page(monitor: Monitor, lines: list[FileLine]) -> Page:
    """Make the page of a monitor, with a row for each file."""
    document = monitor.document()
    table = Table(HEAD, [line.cells() for line in lines])
    notes = [NOTE]
    if monitor.reference is not None:
        notes.append(NOTE_ON_REFERENCE)
    n_unlabelled = sum(line.unlabelled for line in lines)
    if n_unlabelled:
        rows = "row has" if n_unlabelled == 1 else "rows have"
        notes.append(f"{n_unlabelled} {rows} {UNLABELLED}")
    by_file = Section("By file", table=table, notes=notes)
    document = replace(document, sections=[*document.sections, by_file])

    def plot(path: Path) -> None:
        write_file(path, picture_of(path, monitor._figure()))

    def write_page(path: Path) -> None:
        write_file(path, to_html(document).encode())

    values = {**monitor.to_dict(), "files": [vars(line) for line in lines]}
    return Page(
        document,
        values,
        {"state": monitor.save, "plot": plot, "html": write_page},
        exit_code=ALARM_CODE if monitor.alarm else 0,
    )
