"""The first page of a report: the verdict, the main errors and the diagram on one screen."""

import math
from collections.abc import Container
from dataclasses import replace

from fastece.display.documents import Cell, Document, Section
from fastece.display.numbers import format_cell
from fastece.display.writers import LINE_WIDTH, to_text
from fastece.report.breakdown import classes_section, slices_section
from fastece.report.errors import errors_table
from fastece.report.pictures import DIAGRAM_TITLE
from fastece.report.result import Report
from fastece.report.sample import sample_section, stream_section

# Lines of the first page, and of its diagram with the head.
MAX_PAGE_LINES = 30
MAX_DIAGRAM_LINES = 10
# Lines of each table of classes or slices.
MAX_BRIEF_LINES = 3
# Texts beside the errors that always come first.
BEST_GUESS = "best guess of the error"
USUAL = "the usual ECE, {} of {} bins used"
MORE = "--full: other errors, scores, class vectors, classes, bins; --html FILE: pictures; --json"


def first_page(report: Report, errors: Container[str], max_lines: int = MAX_PAGE_LINES) -> Document:
    """Describe the verdict, the main errors and the diagram on one screen.

    Parameters
    ----------
    report : Report
    errors : container of str
        Names of the errors to show.
    max_lines : int
        Lines of the page; the diagram takes the lines that are left.
    """
    sections = [
        Section("Sample", brief_facts(report), notes=report.notes),
        main_errors(report, errors),
        *short_breakdowns(report),
    ]
    stream_notes = (report.stream or {}).get("notes", [])
    end = Section(notes=[*stream_notes[:1], MORE])
    page = Document(report.title, report.headline, [*sections, end])
    # Two lines are the title of the diagram and the one above it.
    lines_left = min(max_lines - count_lines(page) - 2, MAX_DIAGRAM_LINES)
    bins = lines_left - 1  # without the head
    if len(report.diagrams) == 1 and bins > 1:
        table = report.diagrams[0].pool(bins).table()
        sections.append(Section(DIAGRAM_TITLE, table=table))
    return replace(page, sections=[*sections, end])


def count_lines(page: Document) -> int:
    """Count the lines of a page in a terminal, where long lines are broken."""
    return sum(max(1, math.ceil(len(line) / LINE_WIDTH)) for line in to_text(page).splitlines())


def brief_facts(report: Report) -> dict[str, Cell]:
    """Describe the rows, the direction and the classes, in a line each."""
    stream = stream_section(report.stream) or Section()
    sample = sample_section(report._names, report._summary, report._test)
    facts = {**stream.facts, **sample.facts}
    direction = report.direction
    if direction is not None:
        over, under, gap = map(format_cell, (direction.over, direction.under, direction.mean_gap))
        interval = format_cell(direction.mean_gap_interval)
        gap_text = f"observed minus predicted {gap} {interval}"
        facts["direction"] = f"too high {over}, too low {under}; {gap_text}"
    off = [f"{off} of {count} {name}" for name, (off, count) in report._breakdowns.off.items()]
    if off:
        facts[f"joint p <= {1 - report.confidence_level:.2g}"] = ", ".join(off)
    return facts


def main_errors(report: Report, errors: Container[str]) -> Section:
    """Describe the first error, the usual one, and others by name."""
    lines = [line for line in report.measures if line.name in errors]
    usual = lines[1]
    texts = [BEST_GUESS, USUAL.format(usual.occupied, usual.n_bins)]
    texts += [""] * (len(lines) - len(texts))
    table = errors_table(lines, report.confidence_level, texts)
    return Section("Calibration errors", table=table)


def short_breakdowns(report: Report) -> list[Section]:
    """Describe the classes and slices with the most evidence, without notes."""
    sections = [slices_section(report._breakdowns, MAX_BRIEF_LINES)]
    if len(report.diagrams) > 1:
        sections.insert(0, classes_section(report._breakdowns, MAX_BRIEF_LINES))
    return [replace(section, notes=[]) for section in sections if section is not None]
