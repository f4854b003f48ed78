"""Pictures in files, and as elements of a page that loads nothing, several beside one another."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import fastece
from fastece.cli.output import check_name, check_place
from fastece.data.errors import InputError
from fastece.display.pages import Panel, draw_page, draw_picture
from fastece.display.svg import to_svg

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.figure")
FIRST_BYTES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script> id="x" #000000 & $'


@pytest.fixture(scope="module")
def diagram():
    p = np.linspace(0, 1, 60)
    return fastece.reliability_diagram(p > 0.4, p, n_bins=5)


def draw(diagram, label="net"):
    figure = matplotlib.figure.Figure(layout="constrained")
    diagram.plot(figure.subplots(), label=label)
    return figure


# --- files and pages ------------------------------------------------------------------------


@pytest.mark.representative(1)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_name_of_a_file_chooses_its_format(diagram, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    check_name("plot", str(path))
    content = draw_picture(path, [Panel({None: diagram.drawing()})])
    assert content.startswith(FIRST_BYTES[suffix.lower()])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.gif", "must end in .png, .svg or .pdf"),
        ("png", "must end in .png, .svg or .pdf"),
        ("nowhere/a.png", "must be in a folder"),
        ("folder.png", "can be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(tmp_path, name, message):
    (tmp_path / "folder.png").mkdir()
    path = str(tmp_path / name)
    with pytest.raises(InputError, match=f"plot: .*{message}"):  # noqa: PT012
        check_name("plot", path)
        check_place("plot", path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_panels_of_one_setting_are_side_by_side(diagram):
    models = {"a": diagram.drawing(), "b": replace(diagram, value=0.5).drawing()}
    figure = draw_page([Panel(models), Panel({None: diagram.drawing()}, is_logit=True)], "$note")
    left, right = figure.axes
    assert left.get_legend() is not None
    assert right.get_legend() is not None
    assert right.get_xscale() == "logit"
    assert figure.get_suptitle() == "$note"  # and no formula
    figure.draw_without_rendering()


@pytest.mark.slow
def test_the_title_of_many_classes_counts_those_that_are_shown(diagram):
    panels = [Panel({None: replace(diagram, setting=f"class {k}").drawing()}) for k in range(13)]
    figure = draw_page(panels, "$note")
    assert len(figure.axes) == 12
    lines = figure.get_suptitle().splitlines()
    assert lines == ["the 12 of 13 classes with the largest errors", "$note"]
    figure.draw_without_rendering()


# --- elements of a page ---------------------------------------------------------------------


def test_several_elements_of_a_page_share_no_ids(diagram):
    page = "".join(to_svg(draw(diagram), "title", key) for key in ("a", "b-1"))
    tree = ET.fromstring(f"<div>{page}</div>")
    ids = [node.get("id") for node in tree.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    references = re.findall(r"(?:url\(#|href=\"#)([^)\"]*)", page)
    assert references
    assert set(references) <= set(ids)
    assert [svg.get("aria-labelledby") for svg in tree] == ["a-title", "b-1-title"]


def test_nothing_is_loaded_and_black_is_the_colour_of_text(diagram):
    svg = to_svg(draw(diagram), "title", "a")
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?:[^\"\s]*", svg)) == names
    for forbidden in ("<script", "<style", "<image", "@import", "<!DOCTYPE", "<?xml", "#000000"):
        assert forbidden not in svg
    assert "currentColor" in svg
    assert not re.search(r'id="a-patch_[12]">\s*<path[^>]*style="fill: #', svg)  # no background


def test_points_and_bars_have_their_numbers_for_the_pointer(diagram):
    tree = ET.fromstring(to_svg(draw(diagram), "title", "a"))
    tooltips = [node.text for node in tree.iter(f"{SVG}title")][1:]
    assert len(tooltips) == 10  # a point and a bar in each of five bins
    assert sorted(tooltips) == sorted(2 * list(dict.fromkeys(tooltips)))
    assert tooltips[0] == "0 to 0.2: 12 rows, score 0.0932, observed 0, 95 % CI 0 to 0.265"


def test_points_of_the_same_size_have_tooltips_and_empty_bins_have_none():
    p = np.repeat([0.3, 0.8], 50)
    figure = matplotlib.figure.Figure()
    fastece.reliability_diagram(p > 0.4, p).plot(figure.subplots(), band=False)
    tree = ET.fromstring(to_svg(figure, "title", "a"))
    parents = {child: parent for parent in tree.iter() for child in parent}
    tooltips = list(tree.iter(f"{SVG}title"))[1:]
    assert [node.text[:24] for node in tooltips].count("0.267 to 0.333: 50 rows,") == 2
    assert {parents[node].tag for node in tooltips} <= {f"{SVG}path", f"{SVG}use"}
    assert len(tooltips) == 4


def test_titles_and_labels_are_text(diagram):
    tree = ET.fromstring(to_svg(draw(diagram, HOSTILE[:27]), HOSTILE, "a"))
    assert tree[0].text == HOSTILE
    assert tree[0].tag == f"{SVG}title"
    texts = [node.text or "" for node in tree.iter(f"{SVG}text")]
    assert any(text.startswith("</text><script>alert(1)") for text in texts)
    assert "Predicted probability" in texts


def test_the_same_figure_is_the_same_text_and_nothing_global_changes(diagram):
    before = dict(matplotlib.rcParams)
    assert to_svg(draw(diagram), "title", "a") == to_svg(draw(diagram), "title", "a")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("key", ["", "1", "a b", 'a"', "a#"])
def test_keys_are_words(key):
    with pytest.raises(ValueError, match="key: must be letters, digits and hyphens"):
        to_svg(matplotlib.figure.Figure(), "title", key)
