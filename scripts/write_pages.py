"""Write tables of results and of conventions into README.md and the pages under docs/.

    python scripts/write_pages.py [--check]

A page has blocks, from a comment to ``<!-- end -->``, and this script writes what stands between:

``<!-- table NAME rows=1000 scores="calibrated|too sure" columns="scores|coverage" -->``
    The table of ``docs/evidence/results/NAME.csv``. Columns and rows can be chosen: ``columns``
    names columns in their order, and any other word is a column with the values to keep.
``<!-- conventions table -->`` and ``<!-- conventions NAME -->``
    The table of the conventions of all libraries, and the notes on one library.

With ``--check`` no page changes, and the exit code is 1 if a block differs.
"""

import argparse
import csv
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

from fastece.compat.conventions import CONVENTIONS, Convention

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- (table|conventions) (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"[-+]?\.?\d")
BETWEEN = "|"
TABLE = "table"
CONVENTION_HEAD = [
    "function", "edges of B bins", "closed at the", "scores of 0 and 1", "nan, outside [0, 1]"
]  # fmt: skip
OWN_CONVENTION = [
    "`fastece.ece`", "`j / B`", "right", "0 in the first bin, 1 in the last", "an error"
]  # fmt: skip


def write_table(head: list[str], rows: list[list[str]], is_number: list[bool]) -> str:
    """Write a table in Markdown, with numbers at the right of their columns."""
    ruler = "".join("---:|" if number else "---|" for number in is_number)
    first, *others = [f"| {' | '.join(cells)} |" for cells in [head, *rows]]
    return "\n".join([first, f"|{ruler}", *others])


def write_results(root: Path, words: list[str]) -> str:
    """Write the chosen rows and columns of a file of results.

    Raises
    ------
    ValueError
        If there is no such column, or no such value in it.
    """
    name, *choices = words
    path = root / "docs" / "evidence" / "results" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    columns = head
    for choice in choices:
        column, _, values = choice.partition("=")
        wanted = values.split(BETWEEN)
        if column == "columns":
            columns = wanted
            continue
        position = head.index(column)
        unknown = set(wanted) - {row[position] for row in rows}
        if unknown:
            raise ValueError(f"{path.name}: no {column} is {min(unknown)!r}")
        rows = [row for row in rows if row[position] in wanted]
    positions = [head.index(column) for column in columns]
    rows = [[row[position] for position in positions] for row in rows]
    is_number = [
        all(NUMBER.match(row[k]) for row in rows if row[k] not in ("", "nan"))
        for k in range(len(columns))
    ]
    return write_table(columns, rows, is_number)


def convention_row(row: Convention) -> list[str]:
    """Return the cells of one convention."""
    functions = ", ".join(f"`{name}`" for name in row.functions)
    return [f"{row.library}: {functions}", row.formula, row.closed, row.ends, row.bad]


def notes_of(library: str) -> str:
    """Return the notes in the docstring of a library's module, which are a list of Markdown."""
    name = next(name for name, row in CONVENTIONS.items() if row.library == library)
    doc = import_module(f"fastece.compat.{name}").__doc__ or ""
    return doc.partition("Notes\n-----\n")[2].rstrip()


def write_conventions(name: str) -> str:
    """Write the table of all conventions, or the notes of one library."""
    if name != TABLE:
        return notes_of(name)
    rows = [OWN_CONVENTION, *map(convention_row, CONVENTIONS.values())]
    return write_table(CONVENTION_HEAD, rows, [False] * len(CONVENTION_HEAD))


def write_block(root: Path, block: re.Match[str]) -> str:
    """Return a block with what stands in it."""
    comment, kind, words, _, end = block.groups()
    text = (
        write_conventions(words)
        if kind == "conventions"
        else write_results(root, shlex.split(words))
    )
    return f"{comment}\n{text}\n\n{end}"


def main(root: Path = ROOT) -> None:
    """Write all blocks of all pages, or name those that differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only name blocks that differ")
    options = parser.parse_args()
    differing = []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            written = write_block(root, block)
            if written != block[0]:
                differing.append(f"{page.relative_to(root).as_posix()}: {block[2]} {block[3]}")
                text = text.replace(block[0], written)
        if not options.check:
            page.write_text(text, encoding="utf-8")
    if options.check and differing:
        sys.exit("\n".join(["write_pages.py: these blocks differ from their sources:", *differing]))


if __name__ == "__main__":
    main()
