"""The first page of a report: the verdict, the main errors and the diagram on one screen."""

import math
from collections.abc import Container
from dataclasses import replace

from fastece.display.documents import Cell, Document, Section, Table
from fastece.display.numbers import format_cell, outside_text
from fastece.display.writers import LINE_WIDTH, to_text
from fastece.report.breakdown import AGAINST_REST, classes_section, slices_section
from fastece.report.errors import ErrorLine, errors_table, with_interval, without_noise
from fastece.report.pictures import DIAGRAM_TITLE
from fastece.report.result import Report
from fastece.report.sample import sample_section, stream_section
from fastece.report.verdict import MISCALIBRATED, UNCLEAR

# Lines of the first page.
MAX_PAGE_LINES = 30
# Rows of its diagram; where the fewest do not fit, the sample is described in fewer lines, and then
# the table of slices has one.
MIN_DIAGRAM_ROWS = 6
MAX_DIAGRAM_ROWS = 10
# Lines of each table of classes or slices, and where the diagram needs the place.
MAX_BRIEF_LINES = 3
MIN_BRIEF_LINES = 1
# Facts that the headline or a table repeats.
REPEATED = {
    "classes", "predicted rate", "observed rate", "accuracy", "mean confidence", "direction",
}  # fmt: skip
# Texts beside the errors that always come first.
BEST_GUESS = "best estimate of the error"
USUAL = "the usual ECE, {} of {} bins used"
MORE = "More: --full; pictures: --html FILE; for programs: --json"


def first_page(report: Report, errors: Container[str], max_lines: int = MAX_PAGE_LINES) -> Document:
    """Describe the verdict, the main errors and the diagram on one screen.

    Parameters
    ----------
    report : Report
    errors : container of str
        Names of the errors to show.
    max_lines : int
        Lines of the page; the diagram takes the lines that are left. Where many notes leave too
        few of them, the page is longer.
    """
    stream_notes = (report.stream or {}).get("notes", [])
    end = Section(notes=[*stream_notes[:1], MORE])
    has_diagram = bins_section(report, MIN_DIAGRAM_ROWS) is not None
    facts_of_sample = brief_facts(report)
    fewer_facts = {name: fact for name, fact in facts_of_sample.items() if name not in REPEATED}
    layouts = [
        (facts_of_sample, MAX_BRIEF_LINES),
        (fewer_facts, MAX_BRIEF_LINES),
        (fewer_facts, MIN_BRIEF_LINES),
    ]
    measured = main_errors(report, errors)
    lines_left = 0
    for facts, max_brief_lines in layouts:
        sample = Section("Sample", facts, notes=report.notes)
        breakdowns = short_breakdowns(report, max_brief_lines)
        sections = [sample, measured, *breakdowns]
        page = Document(report.title, report.headline, [*sections, end])
        # Two lines are the title of the diagram and the one above it, one is its head.
        lines_left = max_lines - count_lines(page) - 3
        if not has_diagram or lines_left >= MIN_DIAGRAM_ROWS:
            break
    bins = bins_section(report, min(max(lines_left, MIN_DIAGRAM_ROWS), MAX_DIAGRAM_ROWS))
    if bins is not None:
        sections.append(bins)
    return replace(page, sections=[*sections, end])


def bins_section(report: Report, max_rows: int) -> Section | None:
    """Show the diagram in at most so many rows; None for the diagrams of all classes.

    A single event has deciles of its predictions, of which most may lie in one bin of equal width.
    """
    deciles = report._pictures.deciles
    if deciles is None and len(report.diagrams) > 1:
        return None
    diagram = report.diagrams[0] if deciles is None else deciles
    n_bins = diagram.count.size
    kind = "equal width" if deciles is None else "equal mass"
    title = f"{DIAGRAM_TITLE}, {n_bins} bins of {kind}"
    if n_bins > max_rows:
        title += ", neighbours put together"
    if deciles is None:
        bins_per_row = math.ceil(n_bins / max_rows)
        table = diagram.pool(math.ceil(n_bins / bins_per_row)).table()
        return Section(title, table=table)
    table = diagram.pool(max_rows).table()
    # Bars, which show how many rows there are, would all be alike.
    return Section(title, table=Table(table.head[:-1], [row[:-1] for row in table.rows]))


def count_lines(page: Document) -> int:
    """Count the lines of a page in a terminal, where long lines are broken."""
    return sum(max(1, math.ceil(len(line) / LINE_WIDTH)) for line in to_text(page).splitlines())


def brief_facts(report: Report) -> dict[str, Cell]:
    """Describe the rows, the direction and the classes, in a line each."""
    stream = stream_section(report.stream) or Section()
    sample = sample_section(report._names, report._summary, report._test)
    facts = {**stream.facts, **sample.facts}
    facts.pop("test", None)  # the headline has its p-value
    direction = report.direction
    if direction is not None and report.verdict == MISCALIBRATED:
        over, under, gap = map(format_cell, (direction.over, direction.under, direction.mean_gap))
        interval = format_cell(direction.mean_gap_interval)
        gap_text = f"observed minus predicted {gap} {interval}"
        facts["direction"] = f"too high {over}, too low {under}; {gap_text}"
    # A headline that has nothing else to report names the parts itself.
    if report.verdict != UNCLEAR:
        off = report._breakdowns.off
        facts |= {f"by {parts.name.removesuffix(AGAINST_REST)}": parts.fact for parts in off}
    return facts


def main_errors(report: Report, errors: Container[str]) -> Section:
    """Describe the first error, the usual one, and others by name."""
    lines, notes = without_noise([line for line in report.measures if line.name in errors])
    texts = [BEST_GUESS, text_of_usual(lines[1])]
    texts += [""] * (len(lines) - len(texts))
    table = errors_table(lines, report._test, texts)
    return Section("Calibration errors", table=table, notes=notes)


def text_of_usual(line: ErrorLine) -> str:
    """Introduce the usual error, unless a remark about its value takes the place."""
    _, interval = with_interval(line.value, line.low, line.high)
    if outside_text(line.value, interval):
        return ""
    return USUAL.format(line.occupied, line.n_bins)


def short_breakdowns(report: Report, max_lines: int) -> list[Section]:
    """Describe the classes and slices with the most evidence, without notes."""
    sections = [slices_section(report._breakdowns, max_lines)]
    if len(report.diagrams) > 1:
        sections.insert(0, classes_section(report._breakdowns, max_lines))
    return [replace(section, notes=[]) for section in sections if section is not None]
