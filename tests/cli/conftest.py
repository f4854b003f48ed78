"""Files to read, and figures that are written."""

import pytest

from fastece.display import pages


@pytest.fixture
def write(tmp_path):
    """Write a file and give its path."""

    def write_file(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def figures(monkeypatch):
    """The figures that are written."""
    pytest.importorskip("matplotlib")
    printed = []
    draw = pages.draw_page

    def draw_page(*arguments):
        printed.append(draw(*arguments))
        return printed[-1]

    monkeypatch.setattr(pages, "draw_page", draw_page)
    monkeypatch.setattr(pages, "DOTS_PER_INCH", 20)
    return printed
