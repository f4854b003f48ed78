"""The first page of a report: a fixed choice of short sections that one screen holds."""

import math
from collections.abc import Container
from dataclasses import replace

from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import format_cell
from fastece.report.breakdown import describe_classes, describe_slices
from fastece.report.errors import errors_table, without_noise
from fastece.report.result import DIAGRAM_TITLE, MISCALIBRATED, UNCLEAR, Report
from fastece.report.sample import facts_of_rows, facts_of_stream
from fastece.report.verdict import describe_parts_off, tables_of_parts
from fastece.report.words import sentence

# Rows of its diagram, and lines of each table of classes or slices.
MAX_DIAGRAM_ROWS = 10
MAX_BRIEF_LINES = 3


def first_page(report: Report, errors: Container[str]) -> Document:
    """Describe the verdict, rows, the errors that are named, slices and the diagram."""
    more = "More: --full; pictures: --html FILE; for programs: --json"
    stream_notes = (report.stream or {}).get("notes", [])
    sections = [
        brief_sample(report),
        main_errors(report, errors),
        *brief_tables(report),
        *brief_diagram(report),
        Section(notes=[*stream_notes[:1], more]),
    ]
    return Document(report.title, report.headline, sections)


def brief_sample(report: Report) -> Section:
    """Describe the rows, the direction, and how many classes and slices are off."""
    facts = {**facts_of_stream(report.stream or {}), **facts_of_rows(report)}
    if report.note:
        facts["read as"] = report.note
    direction = report.direction
    if direction is not None and report.verdict == MISCALIBRATED:
        over, under, gap = map(format_cell, (direction.over, direction.under, direction.mean_gap))
        interval = format_cell(direction.mean_gap_interval)
        gap_text = f"observed minus predicted {gap} {interval}"
        facts["direction"] = f"too high {over}, too low {under}; {gap_text}"
    notes = list(report.notes)
    # A headline that has nothing else to report describes the classes and slices itself.
    if report.verdict != UNCLEAR:
        for name, table in tables_of_parts(report).items():
            notes.append(f"{sentence(describe_parts_off(name, table))}.")
    return Section("Sample", facts, notes=notes)


def main_errors(report: Report, errors: Container[str]) -> Section:
    """Describe the first error, the usual one, and others by name."""
    lines, notes = without_noise([line for line in report.measures if line.name in errors])
    usual = f"the usual ECE, {lines[1].occupied} of {lines[1].n_bins} bins used"
    texts = ["best estimate of the error", usual, *[""] * (len(lines) - 2)]
    table = errors_table(report, lines, texts)
    return Section("Calibration errors", table=table, notes=notes)


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
    deciles = report._deciles
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
