"""Write the table of other libraries' conventions into pages of the documentation.

python scripts/evidence/write_conventions.py

Between two comments, ``<!-- conventions NAME -->`` and ``<!-- end -->``, a page has the rows of one
library and the notes of its module in `fastece.compat`, or the rows of all libraries. This script
replaces the text between them.
"""

import re
from importlib import import_module
from pathlib import Path

from fastece.compat.conventions import CONVENTIONS, Convention

DOCS = Path(__file__).parents[2] / "docs"
ALL = "all"
BLOCK = re.compile(r"(<!-- conventions ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = """\
| function | edges of B bins | closed at the | scores of 0 and 1 | nan, outside [0, 1] |
|---|---|---|---|---|
"""
OURS = "| `fastece.ece` | `j / B` | right | 0 in the first bin, 1 in the last | an error |\n"


def row_of(row: Convention, with_library: bool) -> str:
    """Return a line of the table."""
    functions = ", ".join(f"`{name}`" for name in row.functions)
    library = f"{row.library}: " if with_library else ""
    cells = (f"{library}{functions}", row.formula, row.closed, row.ends, row.bad)
    return f"| {' | '.join(cells)} |\n"


def notes_of(library: str) -> str:
    """Return the notes in the docstring of a library's module, which are a list of Markdown."""
    name = next(name for name, row in CONVENTIONS.items() if row.library == library)
    doc = import_module(f"fastece.compat.{name}").__doc__ or ""
    return doc.partition("Notes\n-----\n")[2].rstrip()


def block(library: str) -> str:
    """Return the rows of a library, below the one of fastece, and its notes; or all rows."""
    rows = [row for row in CONVENTIONS.values() if library in (ALL, row.library)]
    table = HEAD + OURS + "".join(row_of(row, library == ALL) for row in rows)
    if library == ALL:
        return f"\n{table}\n"
    return f"\n{table}\n{notes_of(library)}\n\n"


def filled(text: str) -> str:
    """Return the text of a page with all blocks replaced."""
    return BLOCK.sub(lambda match: match[1] + block(match[2]) + match[3], text)


if __name__ == "__main__":
    for page in (DOCS / "reference/conventions.md", *(DOCS / "how_to/migration").glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
