"""Names that no font, page or terminal expects: of files, columns, classes and groups of rows."""

import html.parser
import json
import os
import re
from pathlib import Path

import pytest

from fastece.cli import main
from helpers import output_faults as faults

if os.name != "posix":
    pytest.skip("has other names of files", allow_module_level=True)

NAMES = {
    "surrogate": "\ud800",
    "escape": "\x1b[31mred\x1b]0;title\x07",
    "control": "a\x01\x7f\x9bb",
    "lines": "a\nb\r\nc\u2028d",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>&\"'",
    "markdown": "|`*_[a](javascript:1)#",
    "formula": "$\\frac{$ ^_ $x$",
    "direction": "\u202egnp.exe",
    "no glyph": "\u4e2d\U0001f600\uffff",
    "long": "n" * 500,
}
REPORT = ["report", "a.jsonl", "--resamples", "0"]
# Characters that a terminal obeys, or that turn or break the lines that it shows.
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
TEXTS = ["--json", "--markdown", ""]
PICTURES = ["--html x.html", "--plot x.png", "--plot x.svg"]


class Page(html.parser.HTMLParser):
    """The names of the elements of a page, and of their attributes."""

    def __init__(self, text):
        super().__init__()
        self.elements = set()
        self.attributes = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attributes}


def lines_of(**columns):
    """JSON Lines of these columns, with the scores and outcomes."""
    rows = [
        {"y_true": y, "y_prob": p}
        | {name: values[i % len(values)] for name, values in columns.items()}
        for i, (y, p) in enumerate(zip(faults.OUTCOMES, faults.SCORES, strict=True))
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def group_of_rows(name):
    return lines_of(g=[name, "other"]), [*REPORT, "--by", "g"]


def column(name):
    return lines_of(**{name: ["b", "a"]}), [*REPORT, "--by", name]


def group_of_a_stream(name):
    return lines_of(g=[name, "other"]), ["report", "a.jsonl", "--by", "g", "--stream"]


def classes(name):
    rows = [
        {"y_true": (name, "b", "c")[i % 3], "p_0": p, "p_1": (1 - p) / 2, "p_2": (1 - p) / 2}
        for i, p in enumerate(faults.SCORES)
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    return content, [*REPORT, "--labels", f"{name},b,c", "--setting", "classwise"]


PLACES = [group_of_rows, classes, column, group_of_a_stream]


def run(capsys, line, form):
    """Run a command, and give its exit code; all that it prints or writes is whole and harmless."""
    path = Path((form or "none").split()[-1])
    path.unlink(missing_ok=True)
    try:
        code = main([*line, *form.split()])
    except SystemExit as stop:  # of the parser, which cannot take it
        code = stop.code
    out, err = capsys.readouterr()
    for text in (out, err):
        text.encode()
        assert form == "--json" or not CONTROLS.search(text)
    assert all(line.startswith("fastece: ") for line in err.splitlines() if line)
    if code:
        assert (code, out, path.exists(), err.count("\n")) == (2, "", False, 1)
    elif form == "--json":
        json.loads(out)
        assert out.isascii()
        assert out.count("\n") == 1
    elif form == "--markdown":
        assert not re.search(r"(?<!\\)<(script|img)", out)
    elif form:
        content = path.read_bytes()
        assert faults.CHECKS[path.suffix[1:]](content)
        if path.suffix == ".html":
            assert not CONTROLS.search(content.decode())
            page = Page(content.decode())
            assert not page.elements & {"script", "iframe", "object"}
            assert "onerror" not in page.attributes
    return code


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_name_does_no_harm_in_any_form(name, tmp_path, monkeypatch, capsys):
    """Of a column, a class or a group; each name meets each form of text, in another place."""
    monkeypatch.chdir(tmp_path)
    number = list(NAMES).index(name)
    for k, form in enumerate(TEXTS):
        content, line = PLACES[(number + k) % 4](NAMES[name])
        Path("a.jsonl").write_text(content)
        run(capsys, line, form)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_name_does_no_harm_on_a_page_or_a_picture(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    number = list(NAMES).index(name)
    content, line = PLACES[number % 2](NAMES[name])
    Path("a.jsonl").write_text(content)
    run(capsys, line, PICTURES[1 + number % 2])
    faults.without_drawing(monkeypatch.setattr)
    for place in PLACES[:2]:
        content, line = place(NAMES[name])
        Path("a.jsonl").write_text(content)
        run(capsys, line, PICTURES[0])


@pytest.mark.slow
def test_names_of_files_are_those_that_the_system_gives(tmp_path, monkeypatch, capsys):
    """Bytes that are no UTF-8 are lone surrogates."""
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate(NAMES.values()):
        path = name.replace("/", "-").replace("\ud800", "\udcff\udc80")[:100] + ".csv"
        Path(path).write_text(faults.CONTENT)
        assert run(capsys, ["report", path, "--resamples", "0"], TEXTS[k % 3]) == 0
        assert run(capsys, ["report", path, "--n-bins", "0"], "") == 2
        assert run(capsys, ["report", path, "--weights", "none"], "") == 2
