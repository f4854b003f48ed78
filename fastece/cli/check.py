"""The command ``check``: a gate for builds, which passes, fails, or cannot tell."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from fastece.cli.inputs import (
    describe_data,
    read_data,
    slice_columns,
    title_of,
    with_options,
)
from fastece.cli.options import (
    BY,
    COLUMNS,
    COUNTS,
    FILE,
    GROUPS,
    ID,
    INPUT,
    INTERVALS,
    MEASURE,
    OUTPUT,
    Command,
    value,
)
from fastece.cli.output import Page
from fastece.cli.output_files import JUNIT, SUMMARY
from fastece.cli.pairing import ModelFile, read_same_rows
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.decisions.gate import check_bounds, check_of, choose_estimator
from fastece.display.documents import Document, Section
from fastece.display.writers import to_markdown
from fastece.estimators.table import find_estimator
from fastece.files import FilePredictions, write_file
from fastece.inference.selections import Selection, select_by_columns
from fastece.inference.slices import MIN_ROWS
from fastece.resampling.call import Call

EXIT_CODES = {True: 0, False: 1, None: 3}


def describe() -> Command:
    """Describe ``fastece check FILE``."""
    return Command(
        "Decide whether a calibration error, or O/E, is within its bounds. Exit codes: 0 passes "
        "(the interval lies within them), 1 fails (outside), 3 cannot tell (it includes a bound), "
        "2 bad input.",
        run,
        (FILE,),
        (
            *COLUMNS, COUNTS, BY, GROUPS, *INTERVALS,
            value("--max-error", MEASURE, "largest error that is allowed", metavar="E",
                  read=float),
            value("--max-ratio", MEASURE, "in its place, for rare events: observed over expected "
                  "events may be from 1/R to R, such as 1.25", metavar="R", read=float),
            value("--baseline", INPUT, "predictions of another model for the same rows",
                  metavar="FILE", reads_file=True),
            ID,
            value("--max-increase", MEASURE, "by how much the error may exceed that of --baseline",
                  metavar="E", read=float),
            value("--min-rows", MEASURE, "slices with fewer rows are not judged, and a file with "
                  f"fewer cannot tell ({MIN_ROWS})", metavar="N", read=int, default=MIN_ROWS),
            value("--estimator", MEASURE, "calibration error to check (default ece_bayes)",
                  metavar="NAME",
                  default="ece_bayes"),
            value("--junit", OUTPUT, "write the verdicts as JUnit XML", metavar="FILE",
                  writes=JUNIT),
            value("--summary", OUTPUT, "write the page as Markdown, such as for the page of a "
                  "build", metavar="FILE", writes=SUMMARY),
        ),
    )  # fmt: skip


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece check FILE``."""
    title = title_of(options.file)
    has_baseline = options.baseline is not None
    bounds = check_bounds(options.max_error, options.max_ratio, options.max_increase, has_baseline)
    estimators = {"": find_estimator(choose_estimator(options.estimator, bounds), {})}
    progress(f"reading {title}")
    files = [ModelFile(options.file, options)]
    if has_baseline:
        # The file alone decides about groups and slices.
        files.append(ModelFile(options.baseline, with_options(options, groups=None, by=None)))
    elif options.id is not None:
        raise InputError("id", "goes with {baseline}, whose rows it pairs with the file's")
    rows, *baselines = read_same_rows(files, options.id)
    call = read_data(rows, options, estimators, min_resamples=1)
    slices = groups_of(call, rows, options)
    notes = []
    for baseline in baselines:
        baseline_call = read_data(baseline, options, estimators, min_resamples=1)
        call = replace(call, tables=[*call.tables, *baseline_call.tables])
        if baseline.note:
            notes.append(f"{title_of(options.baseline)}: {baseline.note}")
    check = check_of(call, slices, bounds, options.min_rows, options.seed)

    def write_junit(path: Path) -> None:
        write_file(path, check.to_junit(title).encode())

    def write_summary(path: Path) -> None:
        sections = [Section(facts=describe_data(call, rows)), *check.document().sections]
        write_file(path, to_markdown(Document(title, check.line, sections)).encode())

    document = check.document()
    return Page(
        replace(document, sections=[*document.sections, Section(notes=notes)]),
        {"title": title, "note": "; ".join(filter(None, [rows.note, *notes])), **check.to_dict()},
        {"junit": write_junit, "summary": write_summary},
        exit_code=EXIT_CODES[check.passed],
    )


def groups_of(call: Call, rows: FilePredictions, options: Namespace) -> list[Selection]:
    """Find the slices of the rows by the columns of `--by`; none without it."""
    if not options.by:
        return []
    columns = {name: rows.others[argument] for argument, name in slice_columns(options).items()}
    with rows.located():
        return select_by_columns(call, rows.others.get("by", columns), rows.y_prob)
