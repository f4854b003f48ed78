"""The command ``check``: a gate for builds, which passes, fails, or cannot tell."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from fastece.cli.arguments import (
    Parser,
    add_columns,
    add_counts,
    add_file,
    add_forms,
    add_groups,
    add_id,
    add_intervals,
    add_scale,
    add_setting,
    add_slices,
)
from fastece.cli.inputs import (
    describe_data,
    read_data,
    slice_columns,
    title_of,
    with_options,
)
from fastece.cli.output import Page
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

DESCRIPTION = """Decide whether a calibration error, or O/E, is within its bounds. Exit codes:
0 passes (the interval lies within them), 1 fails (outside), 3 cannot tell (it
includes a bound), 2 bad input."""
EXAMPLES = """
  fastece check new.csv --max-error 0.05
  fastece check new.csv --max-error 0.1 --max-increase 0.02 --baseline old.csv
"""
EXIT_CODES = {True: 0, False: 1, None: 3}


def make_parser() -> Parser:
    """Make the parser of ``fastece check FILE``."""
    parser = Parser("check", DESCRIPTION, "fastece check FILE --max-error E [options]", EXAMPLES)
    add_file(parser)
    add_columns(parser)
    add_counts(parser)
    add_scale(parser)
    add_slices(parser)
    add_groups(parser)
    add = parser.input.add_argument
    add("--baseline", metavar="FILE", help="another model's predictions for the same rows")
    add_id(parser)
    add = parser.measure.add_argument
    add("--max-error", metavar="E", type=float, help="largest error that is allowed")
    add("--max-ratio", metavar="R", type=float, help="for rare events: O/E from 1/R to R, as 1.25")
    add("--max-increase", metavar="E", type=float, help="largest excess over --baseline")
    add("--min-rows", metavar="N", type=int, default=MIN_ROWS,
        help=f"slices with fewer are not judged ({MIN_ROWS})")  # fmt: skip
    add("--estimator", metavar="NAME", default="ece_bayes", help="the error (ece_bayes)")
    add_setting(parser)
    add_intervals(parser)
    add = parser.output.add_argument
    add("--junit", metavar="FILE", help="the verdicts as JUnit XML")
    add("--summary", metavar="FILE", help="the page as Markdown, as for a build's page")
    add_forms(parser)
    return parser


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
    check = check_of(call, slices, bounds, options.min_rows, options.rng)

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
