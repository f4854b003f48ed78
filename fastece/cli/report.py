"""The command ``report``: calibration of a classifier, on one page.

Its rows come from a file, from logs of one run, or from a stream of files: each way of reading ends
in the arguments of `build_report`, which makes the report.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastece.cli.arguments import (
    Parser,
    add_clip,
    add_columns,
    add_event,
    add_groups,
    add_report,
    add_scale,
    add_slices,
    add_soft_labels,
)
from fastece.cli.inputs import (
    apply_options,
    data_of,
    estimators_of,
    file_options,
    needs_everything,
    slice_columns,
    title_of,
)
from fastece.cli.output import Page, save_picture
from fastece.cli.progress import Progress
from fastece.cli.stream_sums import HINT_WHOLE, StreamSums, describe_files, read_stream
from fastece.data.errors import InputError
from fastece.data.options import reading_options
from fastece.display.numbers import count_of
from fastece.files import (
    FilePredictions,
    expand_paths,
    is_piped,
    read_logs,
    read_predictions,
    read_whole,
)
from fastece.report.first_page import first_page
from fastece.report.inputs import LEAD, TEST, ReportRequest
from fastece.report.report import make_report
from fastece.report.result import Report

DESCRIPTION = """Report on a file with the columns y_true,y_prob or y_true,p_0,...,p_{K-1} or
true_label,pred_label,confidence, or on a log of an evaluation. Several files
are one stream of rows, which need not fit in memory."""
EXAMPLES = """
  fastece report predictions.csv --html report.html
  fastece report trial.csv --y-true died --y-prob risk --groups patient
"""


def make_parser() -> Parser:
    """Make the parser of ``fastece report FILE [FILE ...]``."""
    parser = Parser("report", DESCRIPTION, "fastece report FILE [FILE ...] [options]", EXAMPLES)
    add = parser.input.add_argument
    add(
        "files", metavar="FILE", nargs="+", help="tables, folders, 'patterns*'; - is standard input"
    )
    add_columns(parser)
    add_soft_labels(parser)
    add_scale(parser)
    add_clip(parser)
    add_groups(parser)
    add_slices(parser)
    add_event(parser)
    add("--stream", action="store_true", help="keep no rows, as with several files")
    add("--on-error", choices=["stop", "skip"], default="stop", help="bad rows of a stream (stop)")
    add_report(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece report FILE [FILE ...]``."""
    paths = expand_paths(options.files)
    title = title_of(paths[0])
    if len(paths) > 1:
        title += f" and {count_of(len(paths) - 1, 'more file')}"
    rows = read_rows(paths, title, options, progress)
    if rows is None:
        report = report_of_stream(paths, title, options, progress)
    else:
        rows = apply_options(rows, options)
        report = report_of_rows(rows, title, options, progress)
    return make_page(report, options)


def read_rows(
    paths: Sequence[str], title: str, options: Namespace, progress: Progress
) -> FilePredictions | None:
    """Read the rows of a file or of logs; return None for a stream."""
    if options.stream:
        return None
    if len(paths) > 1:
        # Whether a file is a log shows when it is read, and a pipe cannot be read again.
        has_pipe = any(map(is_piped, paths))
        return None if has_pipe else read_logs(paths, **file_options(options))
    if options.on_error != "stop":
        rule = "must be stop for one file"
        raise InputError("on_error", rule, hint="skip goes with {stream}")
    progress(f"reading {title}")
    # A file that is too large is read again as a stream, which a pipe cannot be.
    read = read_predictions if is_piped(paths[0]) else read_whole
    return read(paths[0], **file_options(options))


def report_of_rows(
    rows: FilePredictions, title: str, options: Namespace, progress: Progress
) -> Report:
    """Make the report on rows that are in memory."""
    columns = slice_columns(options)
    if "task" in rows.others:
        # Several logs have a task each.
        columns = {"task": "task", **columns}
    slices = {name: rows.others[argument] for argument, name in columns.items()}
    with rows.located():
        arguments = data_of(rows, options)
        return build_report(
            rows,
            options,
            title=title,
            y_true=arguments.pop("y_true"),
            y_prob=arguments.pop("y_prob"),
            reading=reading_options(arguments),
            by=slices if len(slices) > 1 else next(iter(slices.values()), None),
            by_name=", ".join(slices),
            groups=rows.others.get("groups"),
            pairs=rows.hits,
            n_classes=rows.classes,
            row_name=rows.row,
            note=rows.note,
            progress=progress,
        )


def report_of_stream(
    paths: Sequence[str], title: str, options: Namespace, progress: Progress
) -> Report:
    """Make the report on files whose rows are added up as they are read."""
    for name in ("groups", "soft", "votes", "clip"):
        if getattr(options, name):
            raise InputError(name, "needs all rows at once, which no stream keeps", hint=HINT_WHOLE)
    sums = StreamSums(options)
    counts = read_stream(paths, title, sums, options, progress)
    if sums.first is None:
        reason = next(file.reason for file in counts if file.reason)
        raise InputError("path", f"no row is good; the first: {reason}", place=title)
    return build_report(
        sums.first,
        options,
        title=title,
        y_true=sums.rows,
        by=sums.merge_slices() or None,
        by_name=", ".join(slice_columns(options).values()),
        pairs=sums.first.hits,
        n_classes=sums.first.classes,
        stream=describe_files(counts),
        top_label=sums.top,
        progress=progress,
    )


def build_report(rows: FilePredictions, options: Namespace, **request: Any) -> Report:
    """Make the report with the options of the command.

    `rows` show which errors there are; `request` has the other fields of a `ReportRequest`.
    """
    return make_report(
        ReportRequest(
            errors=estimators_of(rows, options),
            rng=options.rng,
            n_resamples=options.n_resamples,
            confidence_level=options.confidence_level,
            n_jobs=-1,
            is_full=needs_everything(options),
            groups_name=options.groups or "",
            event=options.event or "",
            **request,
        )
    )


def make_page(report: Report, options: Namespace) -> Page:
    """Make the page of a report: everything, or one screen of it."""
    if options.full:
        document = report.document()
    else:
        document = first_page(report, [LEAD, TEST, *options.estimator])

    def draw(path: Path) -> None:
        save_picture(path, report._panels)

    # Some numbers are for programs alone, and take as long as half of the others.
    values = report.to_dict() if options.json else {}
    return Page(document, values, {"html": report.to_html, "plot": draw})
