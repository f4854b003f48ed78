"""The command ``report``: calibration of a classifier, on one page.

Its rows come from a file, or from a stream of files.
"""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.labels import as_groups, as_labels
from fastece.checks.probabilities import column_names
from fastece.cli.inputs import columns_of, data_of, estimators_of, file_options, read_demo, title_of
from fastece.cli.page import Page
from fastece.cli.targets import check_page, check_picture
from fastece.cli.terminal import Progress, show_progress
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

DEMO = "handwritten digits, a small neural network"
# Replicates of a report of rows.
REPLICATES = 1999
# Files and reasons that are listed.
MOST_FILES = 10
# Slices of a stream, which has the sums of each: some megabytes.
MOST_SLICES = 200


def run_report(options: Namespace) -> Page:
    """Run ``fastece report FILE [FILE ...]``, or ``fastece demo``, which has no file."""
    paths = expand_paths(getattr(options, "files", []))
    picture = options.plot and check_picture(options.plot)
    html = options.html and check_page(options.html)
    with show_progress() as progress:
        rows = None if getattr(options, "stream", False) else read_rows(paths, options, progress)
        if rows is None:
            report = report_of_stream(paths, options, progress)
        else:
            report = report_of_rows(rows, title_of(paths[0]) if paths else DEMO, options, progress)
        page = Page(report.document(), report.to_dict())
        if html:
            progress("the page")
            report.to_html(html)
            page = page.with_file("html", options.html)
        if picture:
            progress("the picture")
            save_picture(picture, report._panels)
            page = page.with_file("plot", options.plot)
    return page


def read_rows(paths: Sequence[str], options: Namespace, progress: Progress) -> Predictions | None:
    """Read one file as a whole, or the predictions that are part of fastece.

    None where that is a stream: of several files, and of one that is too large.
    """
    if len(paths) > 1:
        return None
    if not paths:
        return read_demo()
    if options.on_error != "stop":
        raise InputError("on_error", "must be stop for one file", hint="skip goes with {stream}")
    progress(f"reading {title_of(paths[0])}")
    more = {**file_options(options), "columns": columns_of(options, "by", "groups")}
    return read_whole(paths[0], is_limited=paths[0] != STANDARD_INPUT, **more)


def report_of_rows(
    rows: Predictions, title: str, options: Namespace, progress: Progress
) -> Report:  # fmt: skip
    """Make the report on the rows of a file."""
    named = columns_of(options, "by", "groups")
    count = REPLICATES if options.resamples is None else options.resamples
    with rows.located():
        return make_report(
            data_of(rows, options), estimators_of(rows, options), title=title, n_jobs=-1,
            by=rows.others.get("by"), groups=rows.others.get("groups"), note=rows.note,
            names=(named.get("by", ""), named.get("groups", "")), pairs=rows.pairs,
            n_classes=rows.classes, progress=progress, rng=options.seed, n_resamples=count,
            confidence_level=options.confidence_level,
        )  # fmt: skip


# --- streams ----------------------------------------------------------------------------------


def report_of_stream(paths: Sequence[str], options: Namespace, progress: Progress) -> Report:
    """Make the report on files whose rows are added up as they are read."""
    for name in ("groups", "resamples"):
        if getattr(options, name):
            rule = "needs all rows at once, which a stream does not keep"
            raise InputError(name, rule, hint=advice(paths, options))
    title = title_of(paths[0])
    title += f" and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
    sums = Sums(options)
    reading = read_stream(paths, title, sums, options, progress)
    if sums.rows is None:
        reason = next(file.reason for file in reading.files if file.reason)
        raise InputError("path", f"no row is good; the first: {reason}", place=title)
    return make_report(
        {"y_true": sums.rows}, sums.estimators, title=title, rng=options.seed, top=sums.top,
        by=sums.slices or None, names=(options.by or "", ""), pairs=sums.pairs,
        n_classes=sums.n_classes, stream=summary_of(reading.files),
        confidence_level=options.confidence_level, progress=progress,
    )  # fmt: skip


def advice(paths: Sequence[str], options: Namespace) -> str:
    """Return advice on how to have all rows at once."""
    if options.stream:
        return "without {stream} one file is read whole, if it is not too large"
    if len(paths) > 1:
        return "one file is read whole, if it is not too large"
    return "the file is too large to be read whole: take a sample of its rows"


def read_stream(
    paths: Sequence[str], title: str, sums: "Sums", options: Namespace, progress: Progress
) -> FileSum:
    """Add up the rows of files, and show the progress."""
    sizes = {path: os.path.getsize(path) if os.path.exists(path) else 0 for path in paths}
    total = max(sum(sizes.values()), 1)

    def show(count: FileCount, share: float) -> None:
        sums.check()
        done = sum(sizes[file.file] for file in reading.files[:-1])
        rows = sum(file.rows for file in reading.files)
        part = (done + share * sizes[count.file]) / total
        progress(f"{rows} rows, {100 * part:.0f} % of {title} read")

    reading = FileSum(sums.add, options.on_error == "skip", show)
    more = {**file_options(options), "columns": columns_of(options, "by")}
    any_labels = options.labels is not None or options.pos_label is not None
    for path in paths:
        reading.add_file(Reader(path, **more, any_labels=any_labels))
    return reading


def summary_of(files: Sequence[FileCount]) -> dict[str, Any]:
    """Summarize the rows that were read and skipped, in all and by file."""
    faulty = [file for file in files if file.reason]
    notes = [f"skipped {describe_skipped(file)}; first: {file.reason}" for file in faulty]
    if len(faulty) > MOST_FILES:
        more = f"and in {len(faulty) - MOST_FILES} more files (--json has them all)"
        notes = [*notes[:MOST_FILES], more]
    return {
        "files": len(files),
        "rows": sum(file.rows for file in files),
        "batches": sum(file.batches for file in files),
        "skipped": sum(file.skipped for file in files),
        "cut_files": sum(file.is_cut for file in files),
        "notes": notes,
        "by_file": [asdict(file) for file in files],
    }


def describe_skipped(file: FileCount) -> str:
    """Describe the rows of a file that were left out."""
    rows = [count_of(file.skipped, "row")] if file.skipped else []
    return " and ".join(rows + ["the rest, which cannot be read"] * file.is_cut)


class Sums:
    """Sums of a stream: of all rows, of each slice, and of the top label.

    The top label, the most probable class, is added up where the setting is of single classes.
    """

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.rows: Accumulator | None = None
        self.top: Accumulator | None = None
        self.slices: dict[Any, Accumulator] = {}
        self.estimators: dict[str, Any] = {}
        self.pairs, self.is_checked = False, False
        self.n_classes: int | None = None

    def add(self, found: Predictions) -> None:
        """Add a batch; the first one sets the number of classes."""
        if self.rows is not None and found.pairs != self.pairs:
            raise InputError("y_prob", "must have the kind of columns that the file before has")
        data = data_of(found, self.options)
        y, p, v = self.labels_of(found, data), found.y_prob, found.weights
        if self.rows is None:
            self.start(found, data, y)
        else:
            self.rows.update(y, p, v)
            if self.top is not None:
                self.top.update(y, p, v)
        self.add_slices(found, data, y)

    def labels_of(self, found: Predictions, data: dict[str, Any]) -> Any:
        """Return labels as numbers of classes."""
        if data["labels"] is None and data["pos_label"] is None:
            return found.y_true
        names = column_names(found.y_prob)
        labels = data["labels"], data["pos_label"]
        return as_labels(found.y_true, found.y_prob, "y_prob", names, *labels)[0]

    def start(self, found: Predictions, data: dict[str, Any], y: Any) -> None:
        """Begin the sums with the first batch."""
        self.new = self.accumulator(found, data)
        setting = "binary" if found.pairs else data["setting"]
        is_of_class = setting == "classwise" or isinstance(setting, int)
        rows = self.new(setting).update(y, found.y_prob, found.weights)
        if is_of_class:
            self.top = self.new("confidence").update(y, found.y_prob, found.weights)
        self.rows, self.pairs = rows, found.pairs
        self.estimators = estimators_of(found, self.options)
        self.n_classes = found.classes if found.pairs else rows.n_classes

    def accumulator(self, found: Predictions, data: dict[str, Any]) -> Any:
        """Return a function that makes an empty accumulator for a setting.

        It is for rows of the kind of a batch.
        """
        n_classes = found.y_prob.shape[1] if found.y_prob.ndim > 1 else None
        logits = data["from_logits"]
        return lambda setting: Accumulator(n_classes, setting=setting, from_logits=logits)

    def add_slices(self, found: Predictions, data: dict[str, Any], y: Any) -> None:
        """Add the rows of each slice to its own sums."""
        if "by" not in found.others:
            return
        positions, labels = as_groups(found.others["by"], len(y))
        for k, label in enumerate(labels):
            if label not in self.slices and len(self.slices) == MOST_SLICES:
                rule = f"must have at most {MOST_SLICES} different values in a stream"
                raise InputError("by", rule, value=label, hint="take a column with fewer")
            rows = np.flatnonzero(positions == k)
            setting = "binary" if found.pairs else data["setting"]
            sums = self.slices.setdefault(label, self.new(setting))
            weights = None if found.weights is None else found.weights[rows]
            sums.update(y[rows], found.y_prob[rows], weights)

    def check(self) -> None:
        """Refuse estimators without a value from sums, once there are some rows."""
        if self.rows is None or not self.rows.n or self.is_checked:
            return
        self.is_checked = True
        for name, estimator in self.estimators.items():
            if name != LEAD:  # which takes longer, and which sums always tell
                self.rows.ece(estimator)
