"""Writers of documents: text, Markdown, and HTML as a page or as a part of one."""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import count
from string import Template
from textwrap import fill

from fastece.data.errors import to_unicode
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import format_cell

# Sections of a page that has a table of contents.
LEAST_CONTENTS = 4
# Characters of a line of sentences.
WIDTH = 100
MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "\\|*_`<>[]"})


def is_text(table: Table) -> list[bool]:
    """Find the columns of texts: they are aligned to the left, numbers to the right."""
    columns = zip(*table.rows, strict=True) if table.rows else ([] for _ in table.head)
    found = [any(isinstance(cell, str) and cell != "-" for cell in column) for column in columns]
    return [True, *found[1:]]


def align(rows: Sequence[Sequence[str]], left: Sequence[bool]) -> list[str]:
    """Join the cells of each row to a line with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if is_left else ">" for is_left in left]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return [form.format(*row).rstrip() for row in rows]


def to_text(document: Document) -> str:
    """Write a document for a terminal."""
    lines = [document.title]
    lines += fill(document.lead, WIDTH).splitlines()
    for section in document.sections:
        lines += ["", section.title] if section.title else []
        lines += [f"  {line}" for line in section_lines(section)]
    return to_unicode("\n".join(lines))


def section_lines(section: Section) -> Iterator[str]:
    """Write the facts, the table and the notes of a section."""
    if section.facts:
        facts = [(name, format_cell(value)) for name, value in section.facts.items()]
        yield from align(facts, [True, True])
    if section.table is not None:
        rows = [list(map(format_cell, row)) for row in section.table.rows]
        yield from align([list(section.table.head), *rows], is_text(section.table))
    for note in section.notes:
        yield from fill(note, WIDTH - 2).splitlines()  # which are indented


def to_markdown(document: Document) -> str:
    """Write a document as Markdown, without pictures."""
    lines = [f"# {escape_markdown(document.title)}"]
    lines += ["", f"**{escape_markdown(document.lead)}**"] if document.lead else []
    for section in document.sections:
        lines += ["", f"## {escape_markdown(section.title)}"] if section.title else []
        facts = [f"- {escape_markdown(name)}: {escape_markdown(format_cell(section.facts[name]))}"
                 for name in section.facts]  # fmt: skip
        lines += ["", *facts] if facts else []
        if section.table is not None:
            rule = ["---" if is_left else "---:" for is_left in is_text(section.table)]
            rows = [[escape_markdown(format_cell(cell)) for cell in row]
                    for row in (section.table.head, *section.table.rows)]  # fmt: skip
            rows.insert(1, rule)
            lines += ["", *(f"| {' | '.join(row)} |" for row in rows)]
        lines += [line for note in section.notes for line in ("", escape_markdown(note))]
    return to_unicode("\n".join([*lines, ""]))


def escape_markdown(text: str) -> str:
    """Escape a text so that nothing in it is markup."""
    return " ".join(text.split()).translate(MARKUP)


def to_html(document: Document) -> str:
    """Write a document as one page, with its pictures, that loads nothing."""
    page = files("fastece").joinpath("display", "page.html").read_text(encoding="utf-8")
    body = "\n".join(html_lines(document, 1, shows_pictures=True))
    return to_unicode(Template(page).substitute(title=escape(document.title), body=body))


def to_fragment(document: Document) -> str:
    """Write a document as HTML for a notebook, without pictures."""
    return to_unicode("\n".join(["<div>", *html_lines(document, 4), "</div>"]))


def html_lines(document: Document, level: int, *, shows_pictures: bool = False) -> Iterator[str]:
    """Write a document as elements of HTML, its title as a heading of a level."""
    keys = (f"picture-{i}" for i in count(1))
    yield element(f"h{level}", document.title)
    if document.lead:
        yield f'<p class="lead {document.tone}">{escape(document.lead)}</p>'
    titles = [section.title for section in document.sections]
    if shows_pictures and len(titles) >= LEAST_CONTENTS:
        links = (element("a", x, f' href="#part-{k}"') for k, x in enumerate(titles) if x)
        yield f"<nav>{' '.join(links)}</nav>"
    for k, section in enumerate(document.sections):
        if section.title:
            place = f' id="part-{k}"' if shows_pictures else ""
            yield element(f"h{level + 1}", section.title, place)
        if section.facts:
            facts = [(name, format_cell(value)) for name, value in section.facts.items()]
            yield from html_table([], facts, [True, True], "facts")
        pictures = section.pictures if shows_pictures else ()
        if pictures:
            drawn = [f"<figure>{draw(key)}</figure>" for draw, key in zip(pictures, keys)]  # noqa: B905
            yield "\n".join(['<div class="pictures">', *drawn, "</div>"])
        if section.table is not None:
            rows = [list(map(format_cell, row)) for row in section.table.rows]
            yield "<details><summary>As a table</summary>" if pictures else ""
            yield from html_table(section.table.head, rows, is_text(section.table))
            yield "</details>" if pictures else ""
        for note in section.notes:
            yield f'<p class="note">{escape(note)}</p>'
    if document.footer:
        yield f'<p class="note">{escape(document.footer)}</p>'


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[bool], kind: str = "numbers"
) -> Iterator[str]:
    """Write a table; cells of texts have the class "text"."""
    yield f'<div class="scroll"><table class="{kind}">'
    for tag, row in [*([("th", head)] if head else []), *(("td", row) for row in rows)]:
        kinds = [' class="text"' if is_left else "" for is_left in left]
        cells = [element(tag, cell, of) for cell, of in zip(row, kinds, strict=True)]
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table></div>"


def element(tag: str, text: str, attributes: str = "") -> str:
    """Write an element of HTML whose content is text."""
    return f"<{tag}{attributes}>{escape(text)}</{tag}>"
