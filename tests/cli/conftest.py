"""Figures that commands write."""

import pytest

from fastece.display import pages


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
