"""The commands ``report`` and ``demo``: calibration of a classifier, on one page.

Its rows come from a file, or from a stream of files.
"""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.labels import as_groups
from fastece.cli import inputs
from fastece.cli.output import Page, Progress
from fastece.files import (
    STANDARD_INPUT,
    FileCount,
    FileSum,
    Predictions,
    Reader,
    expand_paths,
    read_whole,
)
from fastece.plot.pages import save_picture
from fastece.report.report import LEAD, make_report
from fastece.report.result import Report
from fastece.report.words import count_of
from fastece.streams.accumulator import Accumulator

DEMO = "digits_neural_network.npz"
DEMO_TITLE = "handwritten digits, a small neural network"
# Replicates of a report of rows.
REPLICATES = 1999
# Files and reasons that are listed.
MOST_FILES = 10
# Slices of a stream, which has the sums of each: some megabytes.
MOST_SLICES = 200


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece report FILE [FILE ...]``, or ``fastece demo``, which has no file."""
    paths = expand_paths(options.files or [])
    title, rows = inputs.title_of(paths[0]) if paths else DEMO_TITLE, None
    if not paths:
        with as_file(files("fastece").joinpath("data", DEMO)) as shipped:
            rows = inputs.read_file(str(shipped), options)
    elif len(paths) == 1 and not options.stream:
        if options.on_error != "stop":
            rule = "must be stop for one file"
            raise InputError("on_error", rule, hint="skip goes with {stream}")
        progress(f"reading {title}")
        is_limited = paths[0] != STANDARD_INPUT
        rows = read_whole(paths[0], is_limited=is_limited, **inputs.file_options(options))
    if rows is None:  # of several files, or of one that is too large
        report = report_of_stream(paths, title, options, progress)
    else:
        report = report_of_rows(inputs.mark_logits(rows, options), title, options, progress)

    def draw(path: Path) -> None:
        save_picture(path, report._panels)

    return Page(report.document(), report.to_dict(), {"html": report.to_html, "plot": draw})


def report_of_rows(
    rows: Predictions, title: str, options: Namespace, progress: Progress
) -> Report:  # fmt: skip
    """Make the report on the rows of a file."""
    count = REPLICATES if options.resamples is None else options.resamples
    with rows.located():
        return make_report(
            inputs.data_of(rows, options), inputs.estimators_of(rows, options), title=title,
            n_jobs=-1, by=rows.others.get("by"), groups=rows.others.get("groups"), note=rows.note,
            names=(options.by or "", options.groups or ""), pairs=rows.pairs,
            n_classes=rows.classes, progress=progress, rng=options.seed, n_resamples=count,
            confidence_level=options.confidence_level,
        )  # fmt: skip


# --- streams ----------------------------------------------------------------------------------


def report_of_stream(
    paths: Sequence[str], title: str, options: Namespace, progress: Progress
) -> Report:
    """Make the report on files whose rows are added up as they are read."""
    several = len(paths) > 1
    for name in ("groups", "resamples"):
        if getattr(options, name):
            advice = "one file is read whole, if it is not too large"
            if options.stream:
                advice = f"without {{stream}} {advice}"
            elif not several:
                advice = "the file is too large to be read whole: take a sample of its rows"
            rule = "needs all rows at once, which a stream does not keep"
            raise InputError(name, rule, hint=advice)
    title += f" and {count_of(len(paths) - 1, 'more file')}" if several else ""
    sums = Sums(options)
    counts = read_stream(paths, title, sums, options, progress)
    if sums.first is None:
        reason = next(file.reason for file in counts if file.reason)
        raise InputError("path", f"no row is good; the first: {reason}", place=title)
    return make_report(
        {"y_true": sums.rows}, inputs.estimators_of(sums.first, options), title=title, top=sums.top,
        by=sums.slices or None, names=(options.by or "", ""), pairs=sums.first.pairs,
        n_classes=sums.first.classes if sums.first.pairs else sums.rows.n_classes,
        stream=describe_files(counts), confidence_level=options.confidence_level,
        rng=options.seed, progress=progress,
    )  # fmt: skip


def read_stream(
    paths: Sequence[str], title: str, sums: "Sums", options: Namespace, progress: Progress
) -> list[FileCount]:
    """Add up the rows of files, show the progress, and return the counts of each file."""
    sizes = {path: os.path.getsize(path) if os.path.exists(path) else 0 for path in paths}
    total = max(sum(sizes.values()), 1)

    def show(count: FileCount, share: float) -> None:
        done = sum(sizes[file.file] for file in reading.files[:-1])
        rows = sum(file.rows for file in reading.files)
        part = (done + share * sizes[count.file]) / total
        progress(f"{rows} rows, {100 * part:.0f} % of {title} read")

    reading = FileSum(sums.add, options.on_error == "skip", show)
    any_labels = options.labels is not None or options.pos_label is not None
    for path in paths:
        reading.add_file(Reader(path, **inputs.file_options(options), any_labels=any_labels))
    return reading.files


def describe_files(files: Sequence[FileCount]) -> dict[str, Any]:
    """Count the rows that were read and skipped, in all and by file."""
    notes = []
    for file in files:
        if file.reason:
            parts = [count_of(file.skipped, "row")] if file.skipped else []
            parts += ["the rest, which cannot be read"] * file.is_cut
            notes.append(f"skipped {' and '.join(parts)}; first: {file.reason}")
    if len(notes) > MOST_FILES:
        more = f"and in {len(notes) - MOST_FILES} more files (--json has them all)"
        notes = [*notes[:MOST_FILES], more]
    totals = {name: sum(getattr(file, name) for file in files)
              for name in ("rows", "batches", "skipped")}  # fmt: skip
    cut_files = sum(file.is_cut for file in files)
    by_file = [asdict(file) for file in files]
    return {"files": len(files), **totals, "cut_files": cut_files, "notes": notes,
            "by_file": by_file}  # fmt: skip


class Sums:
    """Sums of a stream: of all rows, of each slice, and of the top label.

    The top label, the most probable class, is added up where the setting is of single classes.
    """

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.first: Predictions | None = None
        self.rows: Accumulator
        self.top: Accumulator | None = None
        self.slices: dict[Any, Accumulator] = {}

    def add(self, found: Predictions) -> None:
        """Add a batch; the first one sets the number of classes."""
        if self.first is not None and found.pairs != self.first.pairs:
            raise InputError("y_prob", "must have the kind of columns that the file before has")
        found = inputs.mark_logits(found, self.options)
        data = inputs.data_of(found, self.options)
        y, p, v = inputs.class_numbers(data), found.y_prob, found.weights
        setting = "binary" if found.pairs else data["setting"]
        n_classes = p.shape[1] if p.ndim > 1 else None

        def new(setting: Any) -> Accumulator:
            return Accumulator(n_classes, setting=setting, from_logits=found.from_logits)

        by = found.others.get("by")
        positions, labels = (y, []) if by is None else as_groups(by, len(y))
        if self.first is None:
            self.rows = new(setting).update(y, p, v)
            if setting == "classwise" or isinstance(setting, int):
                self.top = new("confidence").update(y, p, v)
            self.first = found
            self.check_estimators()
        else:
            self.rows.update(y, p, v)
            if self.top is not None:
                self.top.update(y, p, v)
        for k, label in enumerate(labels):
            if label not in self.slices and len(self.slices) == MOST_SLICES:
                rule = f"must have at most {MOST_SLICES} different values in a stream"
                raise InputError("by", rule, value=label, hint="take a column with fewer")
            rows = np.flatnonzero(positions == k)
            sums = self.slices.setdefault(label, new(setting))
            sums.update(y[rows], p[rows], None if v is None else v[rows])

    def check_estimators(self) -> None:
        """Refuse estimators without a value from sums, once there are rows of some weight."""
        if self.first is not None and self.rows.n:
            for name, estimator in inputs.estimators_of(self.first, self.options).items():
                if name != LEAD:  # which takes longer, and which sums always have
                    self.rows.ece(estimator)
