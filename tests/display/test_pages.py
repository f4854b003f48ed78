"""Pictures in files, and on a page that loads nothing and fits on a telephone."""

import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import fastece
from fastece.cli.output import check_name, check_place
from fastece.data.errors import InputError
from fastece.display.axes import draw_on_page, settle_layout
from fastece.display.documents import Document, Picture, Section
from fastece.display.pages import Panel, draw_page, draw_picture, page_pictures
from fastece.display.writers import to_html

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.figure")
pytest.importorskip("jinja2")
FIRST_BYTES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script> id="x" #000000 & $'


@pytest.fixture(scope="module")
def diagram():
    p = np.linspace(0, 1, 60)
    return fastece.reliability_diagram(p > 0.4, p, n_bins=5)


# --- files and pages ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".PNG"])
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


@pytest.mark.slow
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


# --- pictures of a page ---------------------------------------------------------------------


def pictures_of(page):
    """The pictures of a page: their descriptions, and trees of their SVG."""
    found = re.findall(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)">', page)
    return [(unescape(title), ET.fromstring(b64decode(content))) for title, content in found]


def page_of(panels, title="title"):
    return to_html(Document("page", sections=[Section(pictures=page_pictures(panels, title))]))


@pytest.mark.slow
def test_pictures_of_a_page_are_images_that_hold_all_they_show(diagram):
    page = page_of([Panel({HOSTILE[:27]: diagram.drawing()})], HOSTILE)
    ((title, drawing),) = pictures_of(page)
    assert title == HOSTILE
    assert drawing.tag == f"{SVG}svg"
    assert "<script" not in page
    assert page.count("src=") == 1
    links = [x for node in drawing.iter() for name, x in node.items() if name.endswith("href")]
    assert links
    assert all(link.startswith("#") for link in links)


@pytest.mark.slow
def test_pictures_of_a_page_fit_on_a_telephone_with_letters_of_ten_pixels(diagram):
    p = np.linspace(0.01, 0.99, 60)
    y = p > 0.4
    classes = [Panel({"a": replace(diagram, setting=f"class {k}").drawing()}) for k in range(5)]
    panels = [Panel({None: diagram.drawing()}, is_logit=is_logit) for is_logit in (False, True)]
    (evidence,) = fastece.Monitor().update(y, p).document().sections
    pictures = [*page_pictures(panels, ""), *page_pictures(classes, ""), *evidence.pictures]
    pictures.append(Picture("", lambda: draw_on_page(fastece.validate(y, p, n_resamples=0).plot)))
    assert len(pictures) == 2 + 2 + 1 + 1  # panels of the first two, four classes and one
    for picture in pictures:
        figure = picture.draw()
        settle_layout(figure)
        texts = [x for x in figure.findobj(matplotlib.text.Text) if x.get_text()]
        assert min(text.get_fontsize() for text in texts) * 96 / 72 >= 10
        box = figure.get_tightbbox()
        width, height = figure.get_size_inches()
        assert width * 96 <= 390 - 2 * 16  # a pixel is 1/96 inch, and margins are 16
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height


@pytest.mark.slow
def test_the_same_page_is_the_same_text_and_nothing_global_changes(diagram):
    before = dict(matplotlib.rcParams)
    panels = [Panel({None: diagram.drawing()})]
    assert page_of(panels) == page_of(panels)
    assert dict(matplotlib.rcParams) == before
