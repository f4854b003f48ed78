"""Write what the pages of the documentation say of other libraries from the table of conventions.

python scripts/write_conventions.py

Between two comments, ``<!-- conventions NAME -->`` and ``<!-- end -->``, a page has the rows of one
library, or of all; whatever stands between them is written anew.
"""

import re
from itertools import groupby
from pathlib import Path

from fastece.compat.conventions import CONVENTIONS, Convention

DOCS = Path(__file__).parents[1] / "docs"
ALL = "all"
BLOCK = re.compile(r"(<!-- conventions ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = """\
| function | edges of B bins | closed at the | scores of 0 and 1 | nan, outside [0, 1] |
|---|---|---|---|---|
"""
OURS = "| `fastece.ece` | `j / B` | right | 0 in the first bin, 1 in the last | an error |\n"


def row_of(row: Convention, with_library: bool) -> str:
    """A line of the table."""
    functions = ", ".join(f"`{name}`" for name in row.functions)
    library = f"{row.library}: " if with_library else ""
    cells = (f"{library}{functions}", row.formula, row.closed, row.ends, row.bad)
    return f"| {' | '.join(cells)} |\n"


def block(library: str) -> str:
    """The rows of a library, the definition first, and what else is different; or all rows."""
    rows = [row for row in CONVENTIONS.values() if library in (ALL, row.library)]
    table = HEAD + OURS + "".join(row_of(row, library == ALL) for row in rows)
    if library == ALL:
        return f"\n{table}\n"
    notes = []
    for departs, some in groupby(rows, lambda row: row.departs):
        names = dict.fromkeys(name for row in some for name in row.functions)
        notes.append(f"- {', '.join(f'`{name}`' for name in names)}: {departs}\n")
    return f"\n{table}\n{''.join(notes)}\n"


def filled(text: str) -> str:
    """A page with its blocks written anew."""
    return BLOCK.sub(lambda found: found[1] + block(found[2]) + found[3], text)


if __name__ == "__main__":
    for page in (DOCS / "conventions.md", *sorted((DOCS / "migration").glob("*.md"))):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
