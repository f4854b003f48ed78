"""Axes with one model or several. Needs matplotlib."""

from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

from fastece.checks.parameters import check_flag
from fastece.plot.legend import LETTER, draw_legend
from fastece.plot.marks import (
    AxesRange,
    Drawing,
    Style,
    draw_square,
    is_model,
    logit_range,
    scale_of,
    size_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS, UP = "predicted probability", "observed frequency"
# Characters of the name of a model or a class.
LONGEST_NAME = 28
# Inches of one result with its legend.
WIDTH, HEIGHT = 4.5, 5.4


class Drawable(Protocol):
    """A result that can be drawn."""

    def drawing(self, band: Any = True) -> Drawing:
        """Return the marks of a picture, with intervals or a band, or without."""


def plot_result(
    result: Drawable, ax: "Axes | None" = None, *, color: Any = None, label: str | None = None,
    legend: bool = True, band: Any = True,
) -> "Axes":  # fmt: skip
    """Draw a reliability diagram or a curve, beside others on the axes.

    Parameters
    ----------
    result : ReliabilityDiagram or ReliabilityCurve
    ax : matplotlib Axes, optional
        Where to draw. Without it, on a new figure; where more than half of the rows have scores
        within 0.05 of 0 or 1, other axes beside show the same over log odds.
    color : color, optional
        By default the next one of the axes.
    label : str, optional
        Name of the model in the legend.
    legend : bool, default True
        Whether there is a legend: beside the axes, or below their labels.
    band : bool or ConsistencyBand, default True
        Whether to draw intervals; of a diagram also the band of a test.

    Returns
    -------
    matplotlib Axes
    """
    check_flag("legend", legend)
    drawing = result.drawing(band)
    if ax is None:
        ax, *others = new_axes(2 if drawing.is_heaped else 1)
        for other in others:
            draw_model(drawing, other, color, label, legend, logit_range([drawing]))
    draw_model(drawing, ax, color, label, legend)
    return ax


def draw_model(
    drawing: Drawing, ax: "Axes", color: Any = None, label: str | None = None,
    legend: bool = True, span: AxesRange | None = None,
) -> None:  # fmt: skip
    """Draw a model on axes, which others may be on, and name it."""
    place = sum(map(is_model, ax.get_lines()))
    title = f"{drawing.estimator}, {drawing.setting}"
    name = f"error {drawing.value:.4f}"
    if not place:
        draw_square(ax, span or AxesRange())
        scale = " (log odds)" if span and span.is_logit else ""
        ax.set(xlabel=ACROSS + scale, ylabel=UP + scale)
    if not ax.get_title():
        set_title(ax, title)
    elif label is None and ax.get_title().split() != title.split():
        name = f"{name}, {drawing.estimator}"
    if label is not None:
        name = f"{shorten(label)}, {name}"
    drawing.draw(ax, Style(color, name, place, span or AxesRange(), scale_of(ax)))
    if legend:
        draw_legend(ax)


def shorten(label: str) -> str:
    """Cut a long name, and quote one with "_", which matplotlib would hide."""
    label = repr(label) if label.startswith("_") else label
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"


def new_axes(count: int) -> "list[Axes]":
    """Make axes side by side on a new figure of pyplot."""
    figure = open_figure((WIDTH * count, HEIGHT))
    return list(figure.subplots(1, count, squeeze=False).flat)


def open_figure(size: tuple[float, float]) -> "Figure":
    """Make a figure of pyplot of a width and a height in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'fastece[plot]'") from error
    return plt.figure(figsize=size, layout="constrained")


def new_figure(size: tuple[float, float]) -> "Figure":
    """Make a figure outside pyplot, which no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def set_title(ax: "Axes", title: str) -> None:
    """Set a title in lines that are as wide as the place of the axes."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size="medium").get_size_in_points()
    width = max(12, int(size_of(ax)[0] / (LETTER * size)))
    # Labels of classes are the caller's: a dollar is no formula.
    ax.set_title(fill(title, width), fontsize=size, parse_math=False)
