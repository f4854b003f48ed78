"""Figures and axes: how they are made, named, laid out and saved. Needs matplotlib."""

import io
from collections.abc import Callable
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

from fastece.data.errors import InputTypeError, to_printable
from fastece.data.parameters import check_real
from fastece.display import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.legend import Legend

# Labels of the axes across and up, for scores that are no confidences.
SCORE_AXES = ("Predicted probability", "Observed frequency")
# Names of errors by the norm of their estimator, and of estimators without bins by their class.
QUANTITIES = {"norm=2": "RMS calibration error", "norm=inf": "MCE"}
CURVE_NAMES = {"KDE": "kernel density", "BayesCurve": "Bayesian"}
# Characters of the name of a model or a class.
MAX_NAME = 28
# The smallest end of axes that a caller may choose.
MIN_ZOOM = 1e-6
# Inches of one result with its legend.
RESULT_WIDTH = 4.5
RESULT_HEIGHT = 5.4
# Inches of a picture on a page of HTML: three fit in one row of 1120 pixels. A telephone of 390
# pixels shows one in its full width, so that no letters get smaller.
PAGE_WIDTH = 3.6
PAGE_SIZE = (PAGE_WIDTH, 4.6)
# Characters of a line of a legend.
LEGEND_LINE = 44
# By this label the axes of a histogram are found.
HISTOGRAM_LABEL = "distribution of scores"


# --- figures --------------------------------------------------------------------------------


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


def draw_on_page(draw: Callable[["Axes"], Any]) -> "Figure":
    """Let a function draw on the axes of a new figure for a page."""
    figure = new_figure(PAGE_SIZE)
    draw(figure.subplots())
    return figure


def check_axes(ax: Any) -> None:
    """Check that a caller's axes are axes of matplotlib, or None."""
    if ax is not None and not hasattr(ax, "get_lines"):
        raise InputTypeError("ax", "must be Axes of matplotlib", value=ax)


def new_axes(count: int) -> "list[Axes]":
    """Make axes side by side on a new figure of pyplot."""
    figure = open_figure((RESULT_WIDTH * count, RESULT_HEIGHT))
    return list(figure.subplots(1, count, squeeze=False).flat)


def axes_below(ax: "Axes") -> "Axes":
    """Return the axes for a histogram of scores below others, with ticks in common.

    A second picture on the same axes has the histogram of the first.
    """
    for child in ax.child_axes:
        if child.get_label() == HISTOGRAM_LABEL:
            return cast("Axes", child)
    ax.tick_params(labelbottom=False)
    return ax.inset_axes((0, -0.3, 1, 0.25), sharex=ax, label=HISTOGRAM_LABEL)


def settle_layout(figure: "Figure | SubFigure") -> None:
    """Compute the layout of a figure, so that saving it cuts nothing off.

    A figure without a layout of its own, and a part of a figure, stay as they are.
    """
    if figure.get_layout_engine() is None or not hasattr(figure, "draw_without_rendering"):
        return
    # The width of square axes depends on the height that earlier turns leave them and their legend.
    for _ in range(4):
        figure.draw_without_rendering()


def choose_end(zoom: Any, default_end: float) -> float:
    """Return the end of axes: the checked zoom of a caller, or else a default."""
    return default_end if zoom is None else check_real("zoom", zoom, MIN_ZOOM, 1.0)


def svg_of(figure: "Figure") -> bytes:
    """Write a figure as SVG, which is the same for the same figure."""
    from matplotlib import rc_context

    settle_layout(figure)
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "fastece"}):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()


# --- legends --------------------------------------------------------------------------------


def draw_legend(ax: "Axes") -> None:
    """Draw a legend below axes, or on them in a figure without a layout."""
    place: dict[str, Any] = {"loc": "best"}
    if ax.figure.get_layout_engine() is not None:
        place = {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0),
            "borderaxespad": 4.8,  # heights of its letters, for the label of the axes
            "frameon": False,
        }
    show_dollars(ax.legend(*legend_entries(ax), fontsize="small", **place))


def legend_entries(*axes: "Axes") -> tuple[list[Any], list[str]]:
    """List artists and their names: each name once, diagonal and models first."""
    artists: dict[str, Any] = {}
    for ax in axes:
        for artist, name in zip(*ax.get_legend_handles_labels(), strict=True):
            lines = [fill(x, LEGEND_LINE, replace_whitespace=False) for x in name.split("\n")]
            artists.setdefault("\n".join(lines), artist)

    def comes_later(name: str) -> bool:
        return name != marks.CALIBRATED["label"] and not marks.is_model(artists[name])

    names = sorted(artists, key=comes_later)
    return [artists[name] for name in names], names


def show_dollars(legend: "Legend") -> None:
    """Show dollars in a legend as they are: names are the caller's, and no formulas."""
    for text in legend.get_texts():
        text.set_parse_math(False)


# --- words ----------------------------------------------------------------------------------


def axis_labels(setting: str) -> tuple[str, str]:
    """Return the labels of the axis across and of the axis up."""
    return ("Confidence", "Accuracy") if setting == "confidence" else SCORE_AXES


def title_of(setting: str, estimator: str = "") -> str:
    """Return the title of a diagram or a curve, with the class if it is of one."""
    title = "Reliability diagram"
    if estimator.startswith(tuple(CURVE_NAMES)):
        title = "Reliability curve"
    if "edges='quantile'" in estimator:
        title += ", equal-mass bins"
    if setting not in ("binary", "confidence"):
        title += f", {setting}"
    return title


def error_text(estimator: str, value: float) -> str:
    """Write an error with its name: ECE 0.109, ECE 0.112 (Bayesian)."""
    names = [name for norm, name in QUANTITIES.items() if norm in estimator]
    name = names[0] if names else "ECE"
    digits = f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"
    curve = CURVE_NAMES.get(estimator.partition("(")[0])
    return f"{name} {digits}" if curve is None else f"{name} {digits} ({curve})"


def shorten(label: str) -> str:
    """Cut a long name, and quote one with "_", which matplotlib would hide."""
    label = repr(label) if label.startswith("_") else to_printable(label)
    return label if len(label) <= MAX_NAME else f"{label[: MAX_NAME - 1]}…"


def set_title(ax: "Axes", title: str) -> None:
    """Set a title in lines that are as wide as the place of the axes."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size="medium").get_size_in_points()
    width, _ = marks.size_of(ax)
    # A bold letter is 0.6 times as wide as its font is high.
    characters = max(12, int(width / (0.6 * size)))
    # Labels of classes are the caller's: a dollar is no formula.
    ax.set_title(fill(title, characters), fontsize=size, parse_math=False)
