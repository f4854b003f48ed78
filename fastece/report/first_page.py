"""The first page of a report: a fixed choice of short sections that one screen holds."""

import math
from collections.abc import Container
from dataclasses import replace

from fastece.display.documents import Cell, Document, Section, Table
from fastece.display.numbers import format_cell, outside_text
from fastece.report.breakdown import describe_classes, describe_slices
from fastece.report.errors import errors_table, with_interval, without_noise
from fastece.report.pictures import DIAGRAM_TITLE
from fastece.report.result import MISCALIBRATED, UNCLEAR, ErrorLine, Report
from fastece.report.sample import facts_of_rows, facts_of_stream
from fastece.report.verdict import AGAINST_REST, list_parts_off

# Rows of its diagram, and lines of each table of classes or slices.
MAX_DIAGRAM_ROWS = 10
MAX_BRIEF_LINES = 3
# Texts beside the errors that always come first.
BEST_GUESS = "best estimate of the error"
USUAL = "the usual ECE, {} of {} bins used"
MORE = "More: --full; pictures: --html FILE; for programs: --json"


def first_page(report: Report, errors: Container[str]) -> Document:
    """Describe the verdict, rows, the errors that are named, slices and the diagram."""
    stream_notes = (report.stream or {}).get("notes", [])
    sections = [
        Section("Sample", brief_facts(report), notes=report.notes),
        main_errors(report, errors),
        *brief_tables(report),
        *brief_diagram(report),
        Section(notes=[*stream_notes[:1], MORE]),
    ]
    return Document(report.title, report.headline, sections)


def brief_facts(report: Report) -> dict[str, Cell]:
    """Describe the rows, the direction and the classes, in a line each."""
    facts = {**facts_of_stream(report.stream or {}), **facts_of_rows(report)}
    if report.note:
        facts["read as"] = report.note
    direction = report.direction
    if direction is not None and report.verdict == MISCALIBRATED:
        over, under, gap = map(format_cell, (direction.over, direction.under, direction.mean_gap))
        interval = format_cell(direction.mean_gap_interval)
        gap_text = f"observed minus predicted {gap} {interval}"
        facts["direction"] = f"too high {over}, too low {under}; {gap_text}"
    # A headline that has nothing else to report names the parts itself.
    if report.verdict != UNCLEAR:
        parts = list_parts_off(report)
        facts |= {f"by {part.name.removesuffix(AGAINST_REST)}": part.fact for part in parts}
    return facts


def main_errors(report: Report, errors: Container[str]) -> Section:
    """Describe the first error, the usual one, and others by name."""
    lines, notes = without_noise([line for line in report.measures if line.name in errors])
    texts = [BEST_GUESS, text_of_usual(lines[1])]
    texts += [""] * (len(lines) - len(texts))
    table = errors_table(report, lines, texts)
    return Section("Calibration errors", table=table, notes=notes)


def text_of_usual(line: ErrorLine) -> str:
    """Introduce the usual error, unless a remark about its value takes the place."""
    _, interval = with_interval(line.value, line.low, line.high)
    if outside_text(line.value, interval):
        return ""
    return USUAL.format(line.occupied, line.n_bins)


def brief_tables(report: Report) -> list[Section]:
    """Describe the classes and slices with the most evidence, without notes."""
    sections = describe_slices(report, MAX_BRIEF_LINES)
    if len(report.diagrams) > 1:
        sections = [*describe_classes(report, MAX_BRIEF_LINES), *sections]
    return [replace(section, notes=[]) for section in sections]


def brief_diagram(report: Report) -> list[Section]:
    """Show the diagram in few rows, if there is a single one.

    A single event has deciles of its predictions, of which most may lie in one bin of equal width.
    """
    deciles = report._pictures.deciles
    if deciles is not None:
        table = deciles.table()
        # Bars, which show how many rows there are, would all be alike.
        table = Table(table.head[:-1], [row[:-1] for row in table.rows])
        return [Section(f"{DIAGRAM_TITLE}, {deciles.count.size} bins of equal mass", table=table)]
    if len(report.diagrams) > 1:
        return []
    (diagram,) = report.diagrams
    n_bins = diagram.count.size
    title = f"{DIAGRAM_TITLE}, {n_bins} bins of equal width"
    if n_bins > MAX_DIAGRAM_ROWS:
        title += ", neighbours put together"
    bins_per_row = math.ceil(n_bins / MAX_DIAGRAM_ROWS)
    return [Section(title, table=diagram.pool(math.ceil(n_bins / bins_per_row)).table())]
