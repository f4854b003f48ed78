"""Pictures in files, and as elements of a page that loads nothing, several beside one another."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import fastece
from fastece.cli.output import check_file
from fastece.data.errors import InputError
from fastece.display.pages import Panel, draw_page, draw_picture
from fastece.display.svg import to_svg

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.figure")
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def diagram():
    p = np.linspace(0, 1, 60)
    return fastece.reliability_diagram(p > 0.4, p, n_bins=5)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_name_of_the_file_says_its_kind(diagram, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    check_file("plot", str(path))
    path.write_bytes(draw_picture(path, [Panel({None: diagram.drawing()})]))
    assert path.read_bytes().startswith(STARTS[suffix.lower()])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.gif", "must end in .png, .svg or .pdf"),
        ("png", "must end in .png, .svg or .pdf"),
        ("nowhere/a.png", "must be in a folder"),
        ("folder.png", "can be written"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, message):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=f"plot: .*{message}"):
        check_file("plot", str(tmp_path / name))
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


def test_classes_are_small_panels_and_the_title_says_which(diagram):
    panels = [Panel({None: replace(diagram, setting=f"class {k}").drawing()}) for k in range(13)]
    figure = draw_page(panels, "$note")
    assert len(figure.axes) == 12
    note, own = figure.get_suptitle().splitlines()
    assert own == "$note"
    assert note == "the 12 of 13 classes with the largest errors"
    figure.draw_without_rendering()


HOSTILE = '</text><script>alert(1)</script> id="x" #000000 & $'


def draw(label="net"):
    p = np.linspace(0, 1, 60)
    figure = matplotlib.figure.Figure(layout="constrained")
    fastece.reliability_diagram(p > 0.4, p, n_bins=5).plot(figure.subplots(), label=label)
    return figure


def test_several_can_stand_on_a_page():
    page = "".join(to_svg(draw(), "title", key) for key in ("a", "b-1"))
    tree = ET.fromstring(f"<div>{page}</div>")
    ids = [node.get("id") for node in tree.iter() if node.get("id")]
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


def test_points_and_bars_have_their_numbers_for_the_pointer():
    tree, space = ET.fromstring(to_svg(draw(), "title", "a")), "{http://www.w3.org/2000/svg}"
    tips = [node.text for node in tree.iter(f"{space}title")][1:]
    assert len(tips) == 10  # of a point and of a bar of each of five bins
    assert sorted(tips) == sorted(2 * [*dict.fromkeys(tips)])
    assert tips[0] == "0 to 0.2: 12 rows, score 0.0932, observed 0, 95 % CI 0 to 0.265"
    p = np.repeat([0.3, 0.8], 50)  # two points of the same size, and empty bins
    figure = matplotlib.figure.Figure()
    fastece.reliability_diagram(p > 0.4, p).plot(figure.subplots(), band=False)
    tree = ET.fromstring(to_svg(figure, "title", "a"))
    parents = {child: parent for parent in tree.iter() for child in parent}
    nodes = [*tree.iter(f"{space}title")][1:]
    assert [node.text[:24] for node in nodes].count("0.267 to 0.333: 50 rows,") == 2
    assert {parents[node].tag for node in nodes} <= {f"{space}path", f"{space}use"}
    assert len(nodes) == 4


def test_title_and_labels_are_text():
    tree = ET.fromstring(to_svg(draw(HOSTILE[:27]), HOSTILE, "a"))
    space = "{http://www.w3.org/2000/svg}"
    assert tree[0].text == HOSTILE
    assert tree[0].tag == f"{space}title"
    texts = [node.text or "" for node in tree.iter(f"{space}text")]
    assert any(text.startswith("</text><script>alert(1)") for text in texts)
    assert "Predicted probability" in texts


def test_the_same_figure_is_the_same_text_and_nothing_global_changes():
    before = dict(matplotlib.rcParams)
    assert to_svg(draw(), "title", "a") == to_svg(draw(), "title", "a")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("key", ["", "1", "a b", 'a"', "a#"])
def test_keys_are_words(key):
    with pytest.raises(ValueError, match="key: must be letters, digits and hyphens"):
        to_svg(draw(), "title", key)
