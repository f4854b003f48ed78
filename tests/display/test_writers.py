"""Every form of a document has all that it says, and nothing in it is markup."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, PValue
from fastece.display.writers import to_fragment, to_html, to_markdown, to_text

ENDS = ConfidenceInterval(0.012, 0.034)
TABLE = Table(
    ["name", "value", "95 % CI", "p-value", ""],
    [["a|b", Number(0.0234, ENDS), ENDS, PValue(0.5), "<b>"], ["c", None, None, PValue(None), ""]],
    ["name", "value", "confidence_interval", "p_value", "note"],
)


@pytest.fixture
def document():
    return Document(
        title="A & B",
        lead="Miscalibrated.",
        sections=[
            Section("First", {"rows": 12}, TABLE, ["A note."]),
            Section("Second", pictures=[lambda key: f'<svg id="{key}"></svg>'] * 2),
        ],
        tone="bad",
        footer="the end",
    )


def test_text_is_aligned_and_raw_values_are_columns(document):
    lines = to_text(document).splitlines()
    assert lines[:3] == ["A & B", "Miscalibrated.", ""]
    head, first, second = lines[5:8]
    assert first.index("0.023") + 5 == head.index("value") + 5 == second.index("-") + 1
    assert first.index("<b>") > head.index("p-value")
    assert TABLE.columns() == {
        "name": ["a|b", "c"], "value": [0.0234, None], "low": [0.012, None],
        "high": [0.034, None], "p_value": [0.5, None], "note": ["<b>", ""],
    }  # fmt: skip


def test_markdown_escapes(document):
    text = to_markdown(document)
    assert "| a\\|b | 0.023 |" in text
    assert "\\<b\\>" in text
    assert text.count("\n#") == 2
    assert "**Miscalibrated.**" in text


def test_long_pages_have_contents_and_headings_their_ids(document):
    assert "<nav>" not in to_html(document)
    long = replace(document, sections=[Section(f"A & {k}", {"x": 1}) for k in range(4)])
    page = to_html(long)
    links = re.findall(r'<a href="#(part-\d)">A &amp; (\d)</a>', page)
    assert links == [(f"part-{k}", f"{k}") for k in range(4)]
    assert re.findall(r'<h2 id="(part-\d)">', page) == [place for place, _ in links]
    assert "part-" not in to_fragment(long)


def test_pages_have_pictures_with_keys_of_their_own_and_fragments_have_none(document):
    page, part = to_html(document), ET.fromstring(to_fragment(document))
    assert [f'id="picture-{k}"' in page for k in (1, 2, 3)] == [True, True, False]
    assert "<title>A &amp; B</title>" in page
    assert 'class="lead bad"' in page
    assert part.find(".//svg") is None
    assert [cell.text for cell in part.iter("th")] == ["name", "value", "95 % CI", "p-value", None]
    assert "the end" in "".join(part.itertext())
