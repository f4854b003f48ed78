"""Pictures as elements of a page: nothing is loaded, and several can stand beside one another."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import fastece
from fastece.plot import to_svg

matplotlib = pytest.importorskip("matplotlib")
HOSTILE = '</text><script>alert(1)</script> id="x" #000000 & $'


def draw(label="net"):
    from matplotlib.figure import Figure

    p = np.linspace(0, 1, 60)
    figure = Figure(layout="constrained")
    fastece.reliability_diagram(p > 0.4, p, n_bins=5).plot(figure.subplots(), label=label)
    return figure


def ids_of(tree):
    return [node.get("id") for node in tree.iter() if node.get("id")]


def test_several_can_stand_on_a_page():
    page = "".join(to_svg(draw(), "title", key) for key in ("a", "b-1"))
    tree = ET.fromstring(f"<div>{page}</div>")
    ids = ids_of(tree)
    assert len(ids) == len(set(ids))
    asked = re.findall(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"", page)
    assert asked
    assert {one or other for one, other in asked} <= set(ids)
    assert [svg.get("aria-labelledby") for svg in tree] == ["a-title", "b-1-title"]


def test_nothing_is_loaded_and_black_is_the_colour_of_text():
    svg = to_svg(draw(), "title", "a")
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?:[^\"\s]*", svg)) == names
    for part in ("<script", "<style", "<image", "@import", "<!DOCTYPE", "<?xml", "#000000"):
        assert part not in svg
    assert "currentColor" in svg
    assert not re.search(r'id="a-patch_[12]">\s*<path[^>]*style="fill: #', svg)  # no background


def test_title_and_labels_are_text():
    tree = ET.fromstring(to_svg(draw(HOSTILE[:27]), HOSTILE, "a"))
    space = "{http://www.w3.org/2000/svg}"
    assert tree[0].text == HOSTILE
    assert tree[0].tag == f"{space}title"
    texts = [node.text or "" for node in tree.iter(f"{space}text")]
    assert any(text.startswith("</text><script>alert(1)") for text in texts)
    assert "predicted probability" in texts


def test_the_same_figure_is_the_same_text_and_nothing_global_changes():
    before = dict(matplotlib.rcParams)
    assert to_svg(draw(), "title", "a") == to_svg(draw(), "title", "a")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("key", ["", "1", "a b", 'a"', "a#"])
def test_keys_are_words(key):
    with pytest.raises(ValueError, match="key: must be letters, digits and hyphens"):
        to_svg(draw(), "title", key)
