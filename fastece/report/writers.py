"""The forms of a report: text, Markdown, and one HTML file that needs nothing else."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from textwrap import fill
from typing import TYPE_CHECKING

from fastece import __version__
from fastece.document.writers import align, element
from fastece.plot.pages import draw_page
from fastece.plot.svg import to_svg
from fastece.report.sections import Section, sections_of

if TYPE_CHECKING:
    from fastece.report.report import Report

NEEDS = "to_html: needs jinja2 and matplotlib: pip install 'fastece[report]'"
# Characters of a line of sentences.
WIDTH = 100
MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|*_`<>[]"})


def to_text(report: "Report") -> str:
    """The report for a terminal."""
    return page_text(report.title, report.headline, sections_of(report))


def page_text(title: str, headline: str, sections: Sequence[Section]) -> str:
    """Sections for a terminal, below a title and a sentence."""
    lines = [title, *fill(headline, WIDTH).splitlines()]
    for section in sections:
        lines += ["", section.title]
        if section.facts:
            lines += indented(align([*section.facts.items()], [True, True]))
        if section.rows:
            lines += indented(align([section.head, *section.rows], sides_of(section.head)))
        for note in section.notes:
            lines += indented(fill(note, WIDTH).splitlines())
        lines += [str(result) for result in section.results if hasattr(result, "edges")]
    return "\n".join(lines)


def indented(lines: Sequence[str]) -> list[str]:
    """Lines that stand below a title."""
    return [f"  {line}" for line in lines]


def to_markdown(report: "Report") -> str:
    """The report as Markdown, without pictures."""
    lines = [f"# {marked(report.title)}", "", f"**{marked(report.headline)}**"]
    for section in sections_of(report):
        if not (section.facts or section.rows):
            continue
        lines += ["", f"## {section.title}", ""]
        lines += [f"- {name}: {marked(value)}" for name, value in section.facts.items()]
        if section.rows:
            rule = ["---", *["---:"] * (len(section.head) - 2), "---"]
            cells = [[marked(cell) for cell in row] for row in (section.head, *section.rows)]
            cells.insert(1, rule)
            lines += [f"| {' | '.join(row)} |" for row in cells]
        lines += [line for note in section.notes for line in ("", marked(note))]
    return "\n".join([*lines, ""])


def sides_of(head: Sequence[str]) -> list[bool]:
    """Which columns are aligned to the left."""
    return [i in (0, len(head) - 1) for i in range(len(head))]


def html_row(tag: str, cells: Sequence[str]) -> str:
    """A row of a table of HTML; what is in its cells is text."""
    return f"<tr>{''.join(element(tag, cell) for cell in cells)}</tr>"


def marked(text: str) -> str:
    """A text in which nothing is markup."""
    return " ".join(text.split()).translate(MARKS)


def to_html(report: "Report") -> str:
    """The report as one page with its pictures in it: no script, and nothing that it loads."""
    check_packages()
    from jinja2 import Environment

    source = files("fastece").joinpath("report", "page.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    svg = pictures_of(report)
    sections = [(section, svg if section.results else []) for section in sections_of(report)]
    page: str = template.from_string(source).render(
        report=report, sections=sections, version=__version__
    )
    return page


def to_fragment(report: "Report") -> str:
    """The report as HTML for a notebook: its tables, without pictures."""
    lines = [f"<h3>{escape(report.title)}</h3>", f"<p><b>{escape(report.headline)}</b></p>"]
    for section in sections_of(report):
        rows = [section.head, *section.rows] if section.rows else []
        body = [html_row("td", fact) for fact in section.facts.items()]
        body += [html_row("td" if i else "th", row) for i, row in enumerate(rows)]
        if body:
            lines += [f"<h4>{section.title}</h4>", "<table>", *body, "</table>"]
            lines += [f"<p>{escape(note)}</p>" for note in section.notes]
    return "\n".join(lines)


def check_packages() -> None:
    """What the page needs is there, or an error says how to get it."""
    try:
        import jinja2  # noqa: F401
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(NEEDS) from error


def pictures_of(report: "Report") -> list[str]:
    """Drawings of the panels as SVG: each by itself, so that narrow pages have them one below the
    other; those of classes together."""
    panels = report._panels
    pages = [[panel] for panel in panels] if report.curve is not None else [panels]
    return [
        to_svg(draw_page(page), f"{report.title}: picture {i}", f"picture-{i}")
        for i, page in enumerate(pages, 1)
    ]
