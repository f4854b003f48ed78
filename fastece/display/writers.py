"""Writers of documents: text, Markdown, and HTML as a page or as a part of one.

Each format is one function that takes a `Document` and returns text. Texts come from users, so each
writer escapes markup and the characters that a terminal obeys; `format_cell` writes the cells of
all formats. HTML is written by the templates in the folder `templates`, which needs jinja2.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from textwrap import fill
from typing import TYPE_CHECKING

from fastece.data.errors import to_printable
from fastece.display.axes import svg_of
from fastece.display.documents import Cell, Document, Picture, Section, Table
from fastece.display.numbers import format_cell

if TYPE_CHECKING:
    from jinja2 import Environment

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
    return render("page.html", document)


def to_fragment(document: Document) -> str:
    """Write a document as HTML for a notebook, without pictures."""
    return render("fragment.html", document)


def render(name: str, document: Document) -> str:
    """Fill a template with a document."""
    return to_printable(read_templates().get_template(name).render(document=document))


@cache
def read_templates() -> "Environment":
    """Read the templates, which escape all texts."""
    try:
        from jinja2 import Environment, PackageLoader
    except ImportError as error:
        raise ImportError("pages need jinja2: pip install 'fastece[report]'") from error
    loader = PackageLoader("fastece.display")
    templates = Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update(cell=format_cell, text_columns=text_columns, source=source_of)
    return templates


def source_of(picture: Picture) -> str:
    """Return the address of a picture that holds the picture itself, as SVG."""
    return f"data:image/svg+xml;base64,{b64encode(svg_of(picture.draw())).decode()}"
