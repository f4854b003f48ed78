"""Figures of a study, from its tables alone. Needs the extra "study".

To draw another column of the summary, add it to `MEASURES`, and to the files of a study in
`fastece.study.run.draw_figures`. Estimators differ in grey too: families by their markers, variants
by dashes and filling. Beside estimators of the user's own, which stand out, all others are grey.
"""

import io
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.display.axes import new_figure, shorten
from fastece.display.marks import BLACK
from fastece.files import write_file
from fastece.kernels.types import F64
from fastece.study.candidates import BANDWIDTHS, BAYES, BIN_NUMBERS, DENSITY, ZERO

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
# Metadata that leave out the time of writing, by kind of file.
UNDATED: dict[str, dict[str, None]] = {
    ".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None},
}  # fmt: skip
# Inches of a panel, and of the legend and each of its lines.
PANEL_WIDTH = 4.6
PANEL_HEIGHT = 4.1
LEGEND_WIDTH = 2.2
LEGEND_LINE = 0.19
# Opacity of an interval: sixteen of them lie over each other.
INTERVAL_ALPHA = 0.1
MARKERS_PER_CURVE = 4
# Digits of a tick whose numbers lie between two powers of ten.
ROUND_DIGITS = (1.0, 2.0, 5.0)

# Columns of the summary that can be drawn, with the label of their axis.
MEASURES = {
    "p95_relative_error": "relative error, 95th percentile\n(median over distributions)",
    "p95_absolute_error": "absolute error, 95th percentile\n(median over distributions)",
    "median_abs_log_ratio": "median of |log(estimate / truth)|",
    "relative_bias": "bias relative to the truth",
}
# The measure that may be negative: its axis is linear, those of the others are logarithmic.
SIGNED_MEASURE = "relative_bias"
# Measures in which "zero" is drawn: its log ratio is infinite, and its relative bias -1 everywhere.
MEASURES_WITH_ZERO = ("p95_relative_error", "p95_absolute_error")


class Family(NamedTuple):
    """Estimators of one kind, with up to three variants.

    Parameters
    ----------
    title : str
    names : tuple of str
        The estimator's variants.
    color, marker : str
        As in matplotlib.
    """

    title: str
    names: tuple[str, ...]
    color: str
    marker: str


def variants(kind: str, endings: Sequence[Any]) -> tuple[str, ...]:
    """Name the variants of a kind of estimators."""
    return tuple(f"{kind}_{ending}" for ending in endings)


# The colours are Okabe and Ito's: blues are hard bins, oranges convex ones, the light ones
# adaptive; their yellow is too pale for a line, so that the last colour is another.
FAMILIES = (
    Family("equal width", variants("ece", BIN_NUMBERS), "#0072B2", "o"),
    Family("equal mass", variants("ece_a", BIN_NUMBERS), "#56B4E9", "s"),
    Family("equal width, convex", variants("ece_c", BIN_NUMBERS), "#D55E00", "^"),
    Family("equal mass, convex", variants("ece_ac", BIN_NUMBERS), "#E69F00", "v"),
    Family("kernel density", variants(DENSITY, BANDWIDTHS), "#009E73", "D"),
    Family("Bayesian curve", (BAYES,), "#882255", "p"),
)
# Dashes of the variants of a family, as in matplotlib; the markers of the second are not filled.
SOLID = "-"
DASHED = (0, (5, 1.5))
DOTTED = (0, (1.2, 1.3))
DASHES = (SOLID, DASHED, DOTTED)
# The user's own estimators, and the colour of the others beside them.
TITLE_OF_USER = "own"
COLOR_OF_USER = "#C2185B"
MARKERS_OF_USER = "PXh<>d8"
PALE = "0.62"
TITLE_OF_ZERO = "not measuring"
# Points: widths of lines, and the size of markers.
LINE_WIDTH = 1.4
BOLD_LINE_WIDTH = 2.4
MARKER_SIZE = 4.5

# Settings of a line, as in matplotlib.
Line = dict[str, Any]


def curves_figure(summary: "pyarrow.Table", measure: str = "p95_relative_error") -> "Figure":
    """Draw a measure of every estimator over the size of the evaluation set.

    Parameters
    ----------
    summary : pyarrow.Table
        It has the columns "setting", "estimator", "n" and the measure, and may have the columns
        of its interval, which is shaded: the measure's name with _low and _high.
    measure : str
        One of `MEASURES`. Errors have logarithmic axes.

    Returns
    -------
    matplotlib Figure
        A panel for each setting, with one legend, grouped by family. The black line of errors is
        the baseline "zero": an estimator above it is worse than not to measure.
    """
    check_choice("measure", measure, list(MEASURES))
    columns = read_columns(summary, measure)
    settings = list(dict.fromkeys(columns["setting"].tolist()))
    names = list(dict.fromkeys(columns["estimator"].tolist()))
    if measure not in MEASURES_WITH_ZERO:
        names = [name for name in names if name != ZERO]
    lines = choose_lines(names)
    height = max(PANEL_HEIGHT, LEGEND_LINE * (len(names) + len(lines) + 2))
    figure = new_figure((PANEL_WIDTH * len(settings) + LEGEND_WIDTH, height))
    panels = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
    for ax, setting in zip(panels, settings, strict=True):
        draw_axes(ax, is_log=measure != SIGNED_MEASURE)
        for of_family in lines.values():
            for name, line in of_family.items():
                is_of_curve = (columns["setting"] == setting) & (columns["estimator"] == name)
                rows = np.flatnonzero(is_of_curve)
                rows = rows[np.argsort(columns["n"][rows])]
                n, value, low, high = (columns[key][rows] for key in ("n", measure, "low", "high"))
                draw_curve(ax, n, value, low, high, line)
        ax.set_title(setting)
        ax.set_xlabel("rows in the evaluation set")
    panels[0].set_ylabel(MEASURES[measure])
    draw_legend(figure, lines)
    return figure


def read_columns(summary: "pyarrow.Table", measure: str) -> dict[str, Any]:
    """Read the columns that are drawn, with nan for missing intervals."""
    names = summary.column_names
    for name in ("setting", "estimator", "n", measure):
        if name not in names:
            raise InputError("summary", f"has no column {name}; its columns: {', '.join(names)}")
    if not summary.num_rows:
        raise InputError("summary", "there are no rows to draw")
    columns = {name: np.array(summary[name].to_pylist()) for name in ("setting", "estimator", "n")}
    for key, name in ((measure, measure), ("low", f"{measure}_low"), ("high", f"{measure}_high")):
        values = summary[name].to_pylist() if name in names else [None] * summary.num_rows
        columns[key] = np.array(values, np.float64)
    return columns


def draw_curve(ax: "Axes", n: F64, value: F64, low: F64, high: F64, line: Line) -> None:
    """Draw a measure over sizes with its interval; infinite values are gaps.

    Parameters
    ----------
    ax : Axes
    n : (n_sizes,) array
        Sizes, increasing.
    value, low, high : (n_sizes,) float64 array
        The measure and its interval.
    line : dict
        Settings of the line.
    """
    step = max(1, n.size // MARKERS_PER_CURVE)
    ax.plot(n, np.where(np.isfinite(value), value, np.nan), markevery=step, **line)
    has_interval = np.isfinite(low + high)
    ax.fill_between(
        n, low, high, where=has_interval, color=line["color"], alpha=INTERVAL_ALPHA, linewidth=0
    )


def draw_axes(ax: "Axes", is_log: bool) -> None:
    """Draw the axis of sizes, the one of the measure, and a faint grid."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_xscale("log")
    logarithmic: list[Any] = [ax.xaxis]
    if is_log:
        ax.set_yscale("log", nonpositive="mask")
        logarithmic.append(ax.yaxis)
    else:
        ax.axhline(0, color=BLACK, linewidth=0.8)
    for axis in logarithmic:
        axis.set_major_locator(LogLocator(subs=ROUND_DIGITS))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:g}")
    ax.tick_params("x", labelsize="small")
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def draw_legend(figure: "Figure", lines: dict[str, dict[str, Line]]) -> None:
    """Draw one column of names and lines, below the titles of their families."""
    from matplotlib.lines import Line2D

    handles = []
    for title, of_family in lines.items():
        handles.append(Line2D([], [], linestyle="none", label=title))
        # A name with an underscore at its beginning is quoted, as matplotlib would hide it.
        handles += [Line2D([], [], label=shorten(name), **line) for name, line in of_family.items()]
    figure.legend(
        handles=handles, loc="outside right center", frameon=False, fontsize="small",
        handlelength=2.9,
    )  # fmt: skip


# -- lines of estimators ---------------------------------------------------------------------------


def choose_lines(names: Sequence[str]) -> dict[str, dict[str, Line]]:
    """Choose the lines of estimators by family; unknown estimators are the user's."""
    known = {name for family in FAMILIES for name in family.names}
    of_user = [name for name in names if name not in known and name != ZERO]
    lines = {}
    for family in FAMILIES:
        color = PALE if of_user else family.color
        lines[family.title] = {
            name: line_of(color, family.marker, dashes, dashes != DASHED)
            for name, dashes in zip(family.names, DASHES, strict=False)
            if name in names
        }
    styles = zip(of_user, cycle(MARKERS_OF_USER), cycle(DASHES), strict=False)
    lines[TITLE_OF_USER] = {
        name: line_of(COLOR_OF_USER, marker, dashes, dashes != DASHED)
        | {"linewidth": BOLD_LINE_WIDTH}
        for name, marker, dashes in styles
    }
    if ZERO in names:
        lines[TITLE_OF_ZERO] = {ZERO: line_of(BLACK, "", SOLID, True)}
    return {title: of_family for title, of_family in lines.items() if of_family}


def line_of(color: str, marker: str, dashes: Any, is_filled: bool) -> Line:
    """Return the settings of a line."""
    return {
        "color": color, "linestyle": dashes, "linewidth": LINE_WIDTH, "marker": marker,
        "markersize": MARKER_SIZE, "markeredgewidth": 1,
        "markerfacecolor": color if is_filled else "white",
    }  # fmt: skip


# -- files -----------------------------------------------------------------------------------------


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, completely or not at all.

    The same figure gives the same bytes. A file that is there is replaced.
    """
    import matplotlib

    path = Path(path)
    ending = path.suffix.lower()
    if ending not in UNDATED:
        raise InputError("path", "must end in .png, .svg or .pdf", value=str(path))
    content = io.BytesIO()
    options: dict[str, Any] = {"format": ending[1:], "dpi": DPI, "metadata": UNDATED[ending]}
    with matplotlib.rc_context({"svg.hashsalt": "fastece"}):  # Otherwise parts have random names.
        figure.draw_without_rendering()  # The layout settles at the second turn.
        figure.savefig(content, **options)
    write_file(path, content.getvalue())
