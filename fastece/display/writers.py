"""Writers of documents: text, Markdown, and HTML as a page or as a part of one.

Each format is one function that takes a `Document` and returns text. Texts come from users, so each
writer escapes markup and the characters that a terminal obeys; `format_cell` writes the cells of
all formats.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import count
from string import Template
from textwrap import fill

from fastece.data.errors import to_printable
from fastece.display.documents import Cell, Document, Section, Table
from fastece.display.numbers import format_cell

# A page with so many sections has a table of contents.
MIN_SECTIONS_OF_CONTENTS = 4
# Characters of a line of sentences in a terminal, and by how many sections are indented.
LINE_WIDTH = 100
INDENT = 2
# Characters that are markup in Markdown.
MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "\\|*_`<>[]"})


# --- cells of all formats -------------------------------------------------------------------


def format_facts(facts: Mapping[str, Cell]) -> list[list[str]]:
    """Write facts as rows of two cells."""
    return [[format_cell(name), format_cell(value)] for name, value in facts.items()]


def format_rows(table: Table) -> list[list[str]]:
    """Write the cells of a table, without its head."""
    return [[format_cell(cell) for cell in row] for row in table.rows]


def text_columns(table: Table) -> list[bool]:
    """Find the columns of texts: they are aligned to the left, numbers to the right."""
    _, *columns = table.cells_by_column()
    have_text = [any(isinstance(x, str) and x != "-" for x in cells) for cells in columns]
    return [True, *have_text]


# --- text -----------------------------------------------------------------------------------


def to_text(document: Document) -> str:
    """Write a document for a terminal."""
    lines = [document.title, *fill(document.lead, LINE_WIDTH).splitlines()]
    for section in document.sections:
        if section.title:
            lines += ["", section.title]
        lines += [f"{' ' * INDENT}{line}" for line in section_lines(section)]
    return to_printable("\n".join(lines))


def section_lines(section: Section) -> Iterator[str]:
    """Write the facts, the table and the notes of a section."""
    if section.facts:
        yield from align(format_facts(section.facts), [True, True])
    if section.table is not None:
        rows = [[format_cell(name) for name in section.table.head], *format_rows(section.table)]
        yield from align(rows, text_columns(section.table))
    for note in section.notes:
        yield from fill(note, LINE_WIDTH - INDENT).splitlines()


def align(rows: Sequence[Sequence[str]], are_texts: Sequence[bool]) -> list[str]:
    """Join the cells of each row to a line with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [
        f"{{:{'<' if is_text else '>'}{width}}}"
        for is_text, width in zip(are_texts, widths, strict=True)
    ]
    line = "  ".join(cells)
    return [line.format(*row).rstrip() for row in rows]


# --- Markdown -------------------------------------------------------------------------------


def to_markdown(document: Document) -> str:
    """Write a document as Markdown, without pictures."""
    blocks = [f"# {escape_markdown(document.title)}"]
    if document.lead:
        blocks.append(f"**{escape_markdown(document.lead)}**")
    for section in document.sections:
        blocks += markdown_blocks(section)
    return to_printable("\n\n".join(blocks) + "\n")


def markdown_blocks(section: Section) -> Iterator[str]:
    """Write the title, the facts, the table and the notes of a section as blocks."""
    if section.title:
        yield f"## {escape_markdown(section.title)}"
    if section.facts:
        facts = format_facts(section.facts)
        yield "\n".join(f"- {escape_markdown(name)}: {escape_markdown(x)}" for name, x in facts)
    if section.table is not None:
        yield markdown_table(section.table)
    for note in section.notes:
        yield escape_markdown(note)


def markdown_table(table: Table) -> str:
    """Write a table as Markdown."""
    head, *rows = [
        [escape_markdown(cell) for cell in row] for row in (table.head, *format_rows(table))
    ]
    rule = ["---" if is_text else "---:" for is_text in text_columns(table)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def escape_markdown(text: str) -> str:
    """Escape a text so that nothing in it is markup."""
    return to_printable(" ".join(text.split())).translate(MARKUP)


# --- HTML -----------------------------------------------------------------------------------


def to_html(document: Document) -> str:
    """Write a document as one page, with its pictures, that loads nothing."""
    page = files("fastece").joinpath("display", "page.html").read_text(encoding="utf-8")
    body = "\n".join(page_lines(document))
    return to_printable(Template(page).substitute(title=escape(document.title), body=body))


def to_fragment(document: Document) -> str:
    """Write a document as HTML for a notebook, without pictures."""
    lines = list(head_lines(document, "h4"))
    for section in document.sections:
        if section.title:
            lines.append(element("h5", section.title))
        lines += facts_lines(section)
        lines += table_lines(section)
        lines += note_lines(section.notes)
    if document.footer:
        lines += note_lines([document.footer])
    return to_printable("\n".join(["<div>", *lines, "</div>"]))


def page_lines(document: Document) -> Iterator[str]:
    """Write a document as the elements of a page: contents, sections and pictures."""
    keys = (f"picture-{number}" for number in count(1))
    yield from head_lines(document, "h1")
    yield from contents_lines(document)
    for k, section in enumerate(document.sections):
        if section.title:
            yield element("h2", section.title, f' id="part-{k}"')
        yield from facts_lines(section)
        if section.pictures:
            yield from reading_lines(section)
            figures = [f"<figure>{draw(next(keys))}</figure>" for draw in section.pictures]
            yield from ('<div class="pictures">', *figures, "</div>")
            yield from hidden_table_lines(section)
        else:
            yield from table_lines(section)
        yield from note_lines(section.notes)
    if document.footer:
        yield from note_lines([document.footer])


def head_lines(document: Document, tag: str) -> Iterator[str]:
    """Write the title and the most important sentence."""
    yield element(tag, document.title)
    if document.lead:
        yield f'<p class="lead {document.tone}">{escape(document.lead)}</p>'


def contents_lines(document: Document) -> Iterator[str]:
    """Write the table of contents of a long page."""
    if len(document.sections) < MIN_SECTIONS_OF_CONTENTS:
        return
    links = [
        element("a", section.title, f' href="#part-{k}"')
        for k, section in enumerate(document.sections)
        if section.title
    ]
    yield f"<nav>{' '.join(links)}</nav>"


def facts_lines(section: Section) -> Iterator[str]:
    """Write the facts of a section as a table without a head."""
    if section.facts:
        yield '<div class="scroll"><table class="facts">'
        for facts in format_facts(section.facts):
            yield row_element("td", facts, [True, True])
        yield "</table></div>"


def table_lines(section: Section) -> Iterator[str]:
    """Write the table of a section; cells of texts have the class "text"."""
    if section.table is None:
        return
    are_texts = text_columns(section.table)
    yield '<div class="scroll"><table class="numbers">'
    yield row_element("th", section.table.head, are_texts)
    for row in format_rows(section.table):
        yield row_element("td", row, are_texts)
    yield "</table></div>"


def hidden_table_lines(section: Section) -> Iterator[str]:
    """Write the table of a section with pictures so that a reader may open it."""
    if section.table is not None:
        yield "<details><summary>As a table</summary>"
        yield from table_lines(section)
        yield "</details>"


def reading_lines(section: Section) -> Iterator[str]:
    """Write how the pictures of a section are read, as a list."""
    if section.reading:
        items = "".join(element("li", text) for text in section.reading)
        yield f'<ul class="reading">{items}</ul>'


def note_lines(notes: Sequence[str]) -> Iterator[str]:
    """Write notes as paragraphs."""
    for note in notes:
        yield f'<p class="note">{escape(note)}</p>'


def row_element(tag: str, cells: Sequence[str], are_texts: Sequence[bool]) -> str:
    """Write one row of a table."""
    elements = [
        element(tag, cell, ' class="text"' if is_text else "")
        for cell, is_text in zip(cells, are_texts, strict=True)
    ]
    return f"<tr>{''.join(elements)}</tr>"


def element(tag: str, text: str, attributes: str = "") -> str:
    """Write an element of HTML whose content is text."""
    return f"<{tag}{attributes}>{escape(text)}</{tag}>"
