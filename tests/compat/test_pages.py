"""Pages about other libraries agree with the table of conventions."""

import runpy
from pathlib import Path

import pytest

from fastece.compat.conventions import CONVENTIONS

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "evidence" / "write_conventions.py"))
INDEX = ROOT / "docs/how_to/migration/index.md"
PAGES = [
    ROOT / "docs/reference/conventions.md",
    *sorted({*INDEX.parent.glob("*.md")} - {INDEX}),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_are_as_the_table_writes_them(page):
    text = page.read_text(encoding="utf-8")
    assert SCRIPT["BLOCK"].search(text)
    assert SCRIPT["filled"](text) == text


def test_every_library_has_a_page():
    written = "".join(page.read_text(encoding="utf-8") for page in PAGES[1:])
    for row in CONVENTIONS.values():
        assert f"<!-- conventions {row.library} -->" in written
        for function in row.functions:
            assert f"`{function}`" in written
