"""Every format has all of a document, and nothing in it is markup."""

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import fastece
from fastece.data.errors import InputError
from fastece.display.documents import Document, Picture, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, PValue
from fastece.display.writers import read_templates, to_fragment, to_html, to_markdown, to_text

pytest.importorskip("jinja2")
Figure = pytest.importorskip("matplotlib.figure").Figure

INTERVAL = ConfidenceInterval(0.012, 0.034)
TABLE = Table(
    head=["name", "value", "95 % CI", "p-value", ""],
    rows=[
        ["a|b", Number(0.0234, INTERVAL), INTERVAL, PValue(0.5), "<b>"],
        ["c", None, None, PValue(None), ""],
    ],
    keys=["name", "value", "confidence_interval", "p_value", "note"],
)


@pytest.fixture
def document():
    return Document(
        title="A & B",
        lead="Miscalibrated.",
        sections=[
            Section("First", {"rows": 12}, TABLE, ["A note."]),
            Section("Second", pictures=[Picture("<points>", lambda: Figure((1, 1)))] * 2),
        ],
        tone="bad",
        footer="the end",
    )


def test_columns_of_a_table_are_raw_values_and_ends_of_intervals():
    assert TABLE.columns() == {
        "name": ["a|b", "c"],
        "value": [0.0234, None],
        "low": [0.012, None],
        "high": [0.034, None],
        "p_value": [0.5, None],
        "note": ["<b>", ""],
    }
    assert replace(TABLE, rows=[]).columns()["value"] == []


def test_text_is_aligned(document):
    lines = to_text(document).splitlines()
    assert lines[:5] == ["A & B", "Miscalibrated.", "", "First", "  rows  12"]
    head, first, second = lines[5:8]
    assert first.index("0.023") + 5 == head.index("value") + 5 == second.index("-") + 1
    assert first.index("<b>") > head.index("p-value")
    assert lines[8:] == ["  A note.", "", "Second"]


def test_markdown_escapes_texts(document):
    text = to_markdown(document)
    assert "| a\\|b | 0.023 |" in text
    assert "\\<b\\>" in text
    assert text.count("\n#") == 2
    assert "**Miscalibrated.**" in text


def test_characters_that_a_terminal_obeys_are_shown_as_in_python():
    name = "\x1b[2Jred\x07\u202e\nnext"
    shown = "\\x1b[2Jred\\x07\\u202e"
    table = Table(head=["", name], rows=[[name, 1.0], ["b", 2.0]])
    document = Document(name, name, [Section(name, {name: name}, table, [name])])
    text = to_text(document)
    assert text.count(shown) == 8
    assert text.count(f"{shown}\\nnext") == 4  # cells remain in one line
    for write in (to_text, to_markdown, to_html, to_fragment):
        assert not re.search("[\x07\x1b\u202e]", write(document))


def test_messages_show_characters_that_a_terminal_obeys():
    error = InputError("y_prob", "must have columns", place="a\x1b]0;title\x07.csv")
    assert str(error) == r"a\x1b]0;title\x07.csv: must have columns"


def test_long_pages_have_contents_and_headings_their_ids(document):
    assert "<nav>" not in to_html(document)
    sections = [Section(f"A & {k}", {"x": 1}) for k in range(4)]
    long_document = replace(document, sections=sections)
    page = to_html(long_document)
    links = re.findall(r'<a href="#(part-\d)">A &amp; (\d)</a>', page)
    assert links == [(f"part-{k}", f"{k}") for k in range(4)]
    assert re.findall(r'<h2 id="(part-\d)">', page) == [place for place, _ in links]
    assert "part-" not in to_fragment(long_document)


def test_pictures_on_a_page_have_descriptions(document):
    page = to_html(document)
    assert page.count('<figure><img alt="&lt;points&gt;" src="data:image/svg+xml;base64,') == 2
    assert "<title>A &amp; B</title>" in page
    assert 'class="lead bad"' in page


def test_a_table_beside_pictures_is_folded(document):
    (second,) = document.sections[1:]
    page = to_html(replace(document, sections=[replace(second, table=TABLE)]))
    details = page.index("<details><summary>As a table</summary>")
    assert page.index("</figure>") < details < page.index("a|b") < page.index("</details>")
    assert "<details>" not in to_html(document)


def test_fragments_have_no_pictures(document):
    fragment = ET.fromstring(to_fragment(document))
    assert fragment.find(".//img") is None
    heads = [cell.text for cell in fragment.iter("th")]
    assert heads == ["name", "value", "95 % CI", "p-value", None]
    assert "the end" in "".join(fragment.itertext())


def test_without_jinja2_notebooks_show_text_and_pages_say_what_to_install(document, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    read_templates.cache_clear()
    assert fastece.estimate([0, 1, 1], [0.2, 0.5, 0.7])._repr_html_() is None
    with pytest.raises(ImportError, match=r"pages need jinja2: pip install 'fastece\[report\]'"):
        to_html(document)
    report = fastece.calibration_report([0, 1, 1], [0.2, 0.5, 0.7], n_resamples=0)
    with pytest.raises(ValueError, match=r"to_html: needs jinja2 .* 'fastece\[report\]'"):
        report.to_html()
