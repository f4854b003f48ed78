"""The commands ``report`` and ``demo``: calibration of a classifier, on one page.

Its rows come from a file, or from a stream of files.
"""

import csv
import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from fastece.cli import inputs
from fastece.cli.options import FORMS
from fastece.cli.output import Page, Progress, run_beside, save_picture
from fastece.data.errors import InputError
from fastece.data.labels import as_groups
from fastece.display.numbers import count_of
from fastece.files import (
    FileCount,
    FilePredictions,
    FileSum,
    Reader,
    expand_paths,
    is_piped,
    read_logs,
    read_predictions,
    read_whole,
)
from fastece.files.cells import decode_labels, encode_texts
from fastece.inference.selections import MAX_NUMBERS
from fastece.report.first_page import MAX_PAGE_LINES, first_page
from fastece.report.inputs import LEAD, TEST, ReportData, ReportNames, ReportOptions
from fastece.report.report import make_report
from fastece.report.result import Report
from fastece.streams.accumulator import Accumulator

DEMO = "digits_neural_network.npz"
DEMO_TITLE = "handwritten digits, a small neural network"
# Replicates of a report of rows.
REPLICATES = 1999
# Files and reasons that are listed.
MOST_FILES = 10
# Lines that list the files that were written.
FILE_LINES = 4
# Slices of a stream, which has the sums of each: some megabytes.
MOST_SLICES = 200
WHOLE = "without {stream} one file of at most 10 million rows is read whole"


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece report FILE [FILE ...]``, or ``fastece demo``, which has no file."""
    # A page with pictures and a program get everything.
    shows_all, is_json = options.full, options.form is FORMS["--json"][1]
    options.all_classes = shows_all or is_json
    options.full = bool(shows_all or options.html or options.plot or is_json)
    paths = expand_paths(options.files or [])
    title, rows = inputs.title_of(paths[0]) if paths else DEMO_TITLE, None
    if not paths:
        with as_file(files("fastece").joinpath("data", DEMO)) as shipped:
            rows = inputs.read_file(str(shipped), options)
    elif len(paths) > 1 and not options.stream and not any(map(is_piped, paths)):
        rows = read_logs(paths, **inputs.file_options(options))
        title += more_files(paths) if rows else ""
    elif len(paths) == 1 and not options.stream:
        if options.on_error != "stop":
            rule = "must be stop for one file"
            raise InputError("on_error", rule, hint="skip goes with {stream}")
        progress(f"reading {title}")
        # A pipe cannot be read again as a stream, if it is too large.
        read = read_predictions if is_piped(paths[0]) else read_whole
        rows = read(paths[0], **inputs.file_options(options))
    if rows is None:  # of several files, or of one that is too large
        report = report_of_stream(paths, title, options, progress)
    else:
        report = report_of_rows(inputs.apply_options(rows, options), title, options, progress)

    def draw(path: Path) -> None:
        save_picture(path, report._pictures.panels)

    left = MAX_PAGE_LINES - (FILE_LINES if options.html or options.plot else 0)
    chosen = [LEAD, TEST, *options.estimators]
    page = report.document() if shows_all else first_page(report, chosen, left)
    return Page(page, report.to_dict(), {"html": report.to_html, "plot": draw})


def report_of_rows(
    rows: FilePredictions, title: str, options: Namespace, progress: Progress
) -> Report:  # fmt: skip
    """Make the report on the rows of a file."""
    prob = np.asarray(rows.y_prob)
    columns = {"task": "task"} if "task" in rows.others else {}  # of several logs
    columns |= inputs.slice_columns(options)
    named = {name: rows.others[key] for key, name in columns.items()}
    ndim, kind = 2 if prob.shape[1:] > (2,) else 1, prob.dtype.str[1:]
    with run_beside(f"compile_page({ndim}, {kind!r})"), rows.located():
        names = ReportNames(
            title=title,
            by=", ".join(named),
            groups=options.groups or "",
            event=options.event or "",
            note=rows.note,
        )
        data = ReportData(
            arguments=inputs.data_of(rows, options),
            by=named if len(named) > 1 else next(iter(named.values()), None),
            groups=rows.others.get("groups"),
            pairs=rows.pairs,
            n_classes=rows.classes,
            row_name=rows.row,
        )
        return make_report(names, data, report_options(rows, options), progress)


def report_options(rows: FilePredictions, options: Namespace) -> ReportOptions:
    """Return the options of a report that the command line names."""
    return ReportOptions(
        errors=inputs.estimators_of(rows, options),
        rng=options.seed,
        n_resamples=REPLICATES if options.resamples is None else options.resamples,
        confidence_level=options.confidence_level,
        n_jobs=-1,
        is_full=options.full,
        has_all_vectors=options.all_classes,
    )


def more_files(paths: Sequence[str]) -> str:
    """Count the files after the first, for a title."""
    return f" and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""


# --- streams ----------------------------------------------------------------------------------


def report_of_stream(
    paths: Sequence[str], title: str, options: Namespace, progress: Progress
) -> Report:
    """Make the report on files whose rows are added up as they are read."""
    for name in ("groups", "soft", "votes", "clip"):
        if getattr(options, name):
            raise InputError(name, "needs all rows at once, which no stream keeps", hint=WHOLE)
    title += more_files(paths)
    sums = Sums(options)
    counts = read_stream(paths, title, sums, options, progress)
    if sums.first is None:
        reason = next(file.reason for file in counts if file.reason)
        raise InputError("path", f"no row is good; the first: {reason}", place=title)
    rows, first = sums.sums["rows", None], sums.first
    by = ", ".join(inputs.slice_columns(options).values())
    names = ReportNames(title=title, by=by, event=options.event or "")
    data = ReportData(
        arguments={"y_true": rows},
        by=sums.slices or None,
        pairs=first.pairs,
        n_classes=first.classes,
        stream=describe_files(counts),
        top_label=sums.sums.get(("top", None)),
    )
    return make_report(names, data, report_options(first, options), progress)


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
    labels = [*next(csv.reader([options.labels or ""]), []), *filter(None, [options.pos_label])]
    for path in paths:
        reading.add_file(Reader(path, **inputs.file_options(options), labels=labels))
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
    names = {"rows": "rows", "batches": "batches", "skipped": "skipped", "is_cut": "cut_files"}
    totals = {key: sum(getattr(file, name) for file in files) for name, key in names.items()}
    by_file = [asdict(file) for file in files]
    return {"files": len(files), **totals, "notes": notes, "by_file": by_file}


class Sums:
    """Sums of a stream: all "rows", the "top" label, and slices of each column.

    The top label, the most probable class, is added up where the setting is of single classes.
    """

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.first: FilePredictions | None = None
        self.order: list[Any] | None = None
        self.sums: dict[tuple[str, Any], Accumulator] = {}

    def add(self, found: FilePredictions) -> None:
        """Add a batch; the first one sets the number of classes."""
        if self.first is not None and found.pairs != self.first.pairs:
            raise InputError("y_prob", "must have the kind of columns that the file before has")
        found = inputs.apply_options(found, self.options)
        data = inputs.data_of(found, self.options)
        data["labels"] = data["labels"] or self.order
        (y, order), p, v = inputs.class_numbers(data), found.y_prob, found.weights
        setting = "binary" if found.pairs else data["setting"]
        parts: list[Any] = [(("rows", None), setting, slice(None))]
        if setting == "classwise" or isinstance(setting, int):
            parts.append((("top", None), "confidence", slice(None)))
        for by, column in inputs.slice_columns(self.options).items():
            positions, labels = as_groups(found.others[by], len(y), by)
            parts += [((by, x), setting, positions == k) for k, x in enumerate(labels)]
            if len({*labels, *(x for name, x in self.sums if name == by)}) > MOST_SLICES:
                rule = f"must have at most {MOST_SLICES} different values in a stream"
                raise InputError("by", rule, value=column, hint="take a column with fewer")
        n_classes = p.shape[1] if p.ndim > 1 and p.shape[1] > 1 else None
        for key, setting, rows in parts:
            options: Any = {"setting": setting, "from_logits": found.from_logits}
            sums = self.sums.get(key) or Accumulator(n_classes, **options)
            self.sums[key] = sums.update(y[rows], p[rows], None if v is None else v[rows])
        if order is not None and None not in order:
            self.order = order  # the other label of a positive one is the same in all batches
        if self.first is None:
            self.first, rows = found, self.sums["rows", None]
            for name, estimator in inputs.estimators_of(found, self.options).items():
                if rows.n and name != LEAD:  # which takes longer, and which sums always have
                    rows.ece(estimator)

    @property
    def slices(self) -> dict[Any, Accumulator]:
        """Sums of each slice by its label; strings are numbers if all are written so."""
        slices: dict[Any, Accumulator] = {}
        for by, column in inputs.slice_columns(self.options).items():
            found = {label: sums for (name, label), sums in self.sums.items() if name == by}
            texts = [label for label in found if isinstance(label, str)]
            numbers = dict(
                zip(texts, decode_labels([encode_texts(texts)])[0].tolist(), strict=True)
            )
            keys = {label: numbers.get(label, label) for label in found}
            if len({*keys.values()}) > MAX_NUMBERS and str not in {*map(type, keys.values())}:
                rule = f"must have at most {MAX_NUMBERS} different numbers in a stream"
                raise InputError("by", rule, value=column, hint=WHOLE)
            for label, sums in found.items():
                key = keys[label] if by == "by" else f"{column} {keys[label]}"
                slices[key] = slices[key] + sums if key in slices else sums
        return slices
