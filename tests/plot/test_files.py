"""Pictures in files: their kinds, their titles, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import fastece
from fastece.checks.errors import InputError
from fastece.cli.output import check_file
from fastece.plot.pages import Panel, draw_page, save_picture

pytest.importorskip("matplotlib")
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def diagram():
    p = np.linspace(0, 1, 60)
    return fastece.reliability_diagram(p > 0.4, p, n_bins=5)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_name_of_the_file_says_its_kind(diagram, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    check_file("plot", str(path))
    save_picture(path, [Panel({None: diagram.drawing()})])
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
    estimator, note, own = figure.get_suptitle().splitlines()
    assert (estimator, own) == ("Binned(n_bins=5)", "$note")
    assert note == "the 12 of 13 classes with the largest errors"
    figure.draw_without_rendering()
