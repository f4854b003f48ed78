"""How well a classifier is calibrated, of files that are too large to be read whole."""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fastece.checks.errors import InputError
from fastece.cli.inputs import data_of, estimators_of, title_of
from fastece.cli.page import Page
from fastece.cli.targets import check_page, check_picture
from fastece.cli.terminal import progress
from fastece.files import STANDARD_INPUT, FileCount, FileSum, Predictions
from fastece.plot.pages import save_picture
from fastece.report.measures import LEAD
from fastece.report.report import make_report
from fastece.report.words import count_of
from fastece.streams.accumulator import Accumulator

# Larger files are streams without being asked for: a reader holds some ten times as much.
LARGE = 256 * 2**20
# Replicates of a report that is not asked for others.
REPLICATES = (0, 1999)
# Files and reasons that are listed.
MOST_FILES = 10
NEEDS_ROWS = "needs all rows at once, which a stream does not keep"


def is_stream(paths: Sequence[str], options: Namespace) -> bool:
    """Whether files are added up batch by batch: if it is asked for, or they are several or
    large."""
    if options.stream or len(paths) > 1:
        return True
    (path,) = paths
    return path != STANDARD_INPUT and os.path.exists(path) and os.path.getsize(path) > LARGE


def run_stream(paths: Sequence[str], options: Namespace) -> Page:
    """``fastece report FILE [FILE ...]`` of a stream."""
    check_options(options)
    picture = options.plot and check_picture(options.plot)
    if options.html:
        check_page(options.html)
    more = f" and {count_of(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
    title = title_of(paths[0]) + more
    sums = Sums(options)
    with progress() as say:
        bytes_of = {path: os.path.getsize(path) if os.path.exists(path) else 0 for path in paths}
        total = max(sum(bytes_of.values()), 1)

        def tell(count: FileCount, share: float) -> None:
            sums.check()
            done = sum(bytes_of[file.file] for file in reading.files[:-1])
            rows = sum(file.rows for file in reading.files)
            part = (done + share * bytes_of[count.file]) / total
            say(f"{rows} rows, {100 * part:.0f} % of {title} read")

        reading = FileSum(sums.add, options.on_error == "skip", tell)
        for path in paths:
            reading.add_file(
                path, y_true=options.y_true, y_prob=options.y_prob, classes=options.classes,
                weights=options.weights,
            )  # fmt: skip
        if sums.rows is None:
            reasons = [file.reason for file in reading.files if file.reason]
            raise ValueError(f"no row is good; the first: {reasons[0]}")
        report = make_report(
            {"y_true": sums.rows}, sums.estimators, title=title, rng=options.seed, top=sums.top,
            pairs=sums.pairs, n_classes=sums.n_classes, stream=summary_of(reading.files),
            confidence_level=options.confidence_level, progress=say,
        )  # fmt: skip
        if options.html:
            say("the page")
            report.to_html(options.html)
        page = Page(str(report), report.to_dict())
        page = page.with_file("html", options.html) if options.html else page
        if picture:
            say("the picture")
            save_picture(picture, report._panels)
            page = page.with_file("plot", options.plot)
    return page


def summary_of(files: Sequence[FileCount]) -> dict[str, Any]:
    """Sum up what was read and what was not, in all and by file."""
    skipped, cut = sum(file.skipped for file in files), sum(file.is_cut for file in files)
    faulty = [file for file in files if file.reason]
    notes = [f"skipped {describe_skipped(file)}; first: {file.reason}" for file in faulty]
    if len(faulty) > MOST_FILES:
        more = f"and in {len(faulty) - MOST_FILES} more files (--json has them all)"
        notes = [*notes[:MOST_FILES], more]
    return {
        "files": len(files),
        "rows": sum(file.rows for file in files),
        "batches": sum(file.batches for file in files),
        "skipped": skipped,
        "cut_files": cut,
        "notes": notes,
        "by_file": [asdict(file) for file in files],
    }


def describe_skipped(file: FileCount) -> str:
    """Write what was left out of a file."""
    rows = [count_of(file.skipped, "row")] if file.skipped else []
    return " and ".join(rows + ["the rest, which cannot be read"] * file.is_cut)


def check_options(options: Namespace) -> None:
    """No option is given that a stream cannot answer."""
    for name in ("by", "groups", "labels", "pos_label"):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option}: {NEEDS_ROWS}; read one file without --stream")
    if options.resamples not in REPLICATES:
        raise ValueError(f"--resamples: {NEEDS_ROWS}; its interval is that of a posterior")


class Sums:
    """The rows of a stream in the setting that is asked for, and, where that is of single classes,
    the score of the most probable one too."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.rows: Accumulator | None = None
        self.top: Accumulator | None = None
        self.estimators: dict[str, Any] = {}
        self.pairs, self.is_checked = False, False
        self.n_classes: int | None = None

    def add(self, found: Predictions) -> None:
        """Add a batch; the first one says how many classes there are."""
        if self.rows is not None and found.pairs != self.pairs:
            raise InputError("y_prob", "must have the kind of columns that the file before has")
        data = data_of(found, self.options)
        batch = data["y_true"], data["y_prob"], data["sample_weight"]
        if self.rows is not None:
            self.rows.update(*batch)
            if self.top is not None:
                self.top.update(*batch)
            return
        n_classes = found.y_prob.shape[1] if found.y_prob.ndim > 1 else None

        def add_up(setting: str | int) -> Accumulator:
            rows = Accumulator(n_classes, setting=setting, from_logits=data["from_logits"])
            return rows.update(*batch)

        setting = "binary" if found.pairs else data["setting"]
        is_of_class = setting == "classwise" or isinstance(setting, int)
        rows, top = add_up(setting), add_up("confidence") if is_of_class else None
        self.estimators = estimators_of(found, self.options)
        self.rows, self.top, self.pairs = rows, top, found.pairs
        self.n_classes = found.classes if found.pairs else n_classes or 2

    def check(self) -> None:
        """What the first rows hold is enough for all estimators, or an error says why it is not."""
        if self.rows is None or not self.rows.n or self.is_checked:
            return
        self.is_checked = True
        for name, estimator in self.estimators.items():
            if name != LEAD:  # which takes longer, and which sums always tell
                self.rows.ece(estimator)
