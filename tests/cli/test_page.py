"""What a command prints, and the files that it wrote."""

import json
from argparse import Namespace

from fastece.cli.commands import FORMS
from fastece.cli.output import Page
from fastece.document.document import Document, Section


def test_files_are_named_at_the_end(tmp_path):
    options = Namespace(plot=str(tmp_path / "a.png"), out=str(tmp_path / "b.csv"), save=None)
    writers = {name: lambda path: path.write_text("x") for name in ("plot", "out", "save")}
    page = Page(Document("title", "lead", [Section(facts={"rows": 1})]), {"n": 1}, writers)
    page = page.write(options, print)
    assert page.to_dict() == {"n": 1, "plot": options.plot, "out": options.out}
    assert page.document().sections[-1].facts == {
        "picture": options.plot, "predictions": options.out
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "b.csv"}


def test_numbers_that_json_has_not():
    page = Page(Document("title"), {"a": float("nan"), "b": [float("inf"), -float("inf")]})
    assert json.loads(FORMS["json"](page)) == {"a": None, "b": ["inf", "-inf"]}
    assert FORMS["markdown"](page) == "# title"
