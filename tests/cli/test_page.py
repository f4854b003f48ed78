"""What a command prints, and the files that it wrote."""

import json

from fastece.cli.commands import FORMS
from fastece.cli.page import Page
from fastece.document.document import Document, Section


def test_files_are_named_at_the_end():
    page = Page(Document("title", "lead", [Section(facts={"rows": 1})]), {"n": 1})
    page = page.with_file("plot", "a.png").with_file("out", "b.csv", "all")
    assert page.to_dict() == {"n": 1, "plot": "a.png", "out": "b.csv"}
    assert str(page).endswith("Files\n  picture      a.png\n  predictions  b.csv (all)")


def test_numbers_that_json_has_not():
    page = Page(Document("title"), {"a": float("nan"), "b": [float("inf"), -float("inf")]})
    assert json.loads(FORMS["json"](page)) == {"a": None, "b": ["inf", "-inf"]}
    assert FORMS["markdown"](page) == "# title"
