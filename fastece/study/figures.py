"""Pictures of a study, from its tables alone. Needs the extra "study".

Estimators differ in grey too: families by their markers, variants by dashes and filling. Beside
estimators of the user's own, which have their names at their lines, all others are grey.
"""

import io
import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.display.axes import new_figure
from fastece.display.marks import BLACK
from fastece.files import write_file
from fastece.kernels.types import F64
from fastece.study.candidates import BANDWIDTHS, BAYES, BINS, ZERO

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
# Metadata that leave out the time of writing, by kind of file.
UNDATED: dict[str, dict[str, None]] = {
    ".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None},
}  # fmt: skip
# Inches of a panel, of a line of the legend, of a letter in it, and of its marks.
PANEL, LINE, LETTER, MARK = (4.6, 4.1), 0.19, 0.076, 0.9
BAND = 0.1  # opacity of an interval: sixteen of them lie over each other
MARKERS_A_CURVE = 4

# Of each measure: the label of its axis, and whether that is logarithmic.
MEASURES = {
    "p95_relative_error": ("relative error, 95th percentile\n(median over distributions)", True),
    "p95_absolute_error": ("absolute error, 95th percentile\n(median over distributions)", True),
    "median_abs_log_ratio": ("median of |log(estimate / truth)|", True),
    "relative_bias": ("bias relative to the truth", False),
}
# Title, colour, marker and variants of each family. Okabe and Ito's colours:
# blues are hard bins, oranges convex ones, the light ones adaptive; their yellow is too pale for a
# line, so that the last is another.
FAMILIES: dict[str, tuple[str, str, str, tuple[Any, ...]]] = {
    "ece": ("equal width", "#0072B2", "o", BINS),
    "ece_a": ("equal mass", "#56B4E9", "s", BINS),
    "ece_c": ("equal width, convex", "#D55E00", "^", BINS),
    "ece_ac": ("equal mass, convex", "#E69F00", "v", BINS),
    "ece_kde": ("kernel density", "#009E73", "D", BANDWIDTHS),
    BAYES: ("Bayesian curve", "#882255", "p", ()),
}
OWN, OWN_COLOR, OWN_MARKERS = "own", "#C2185B", "*PXh<>d"
# Colour of the others beside it, and width of its line.
PALE, BOLD = "0.62", 2.4
# Of the first, second and third variant: dashes, and whether its markers are filled.
VARIANTS: tuple[tuple[Any, bool], ...] = (
    ("-", True), ((0, (5, 1.5)), False), ((0, (1.2, 1.3)), True),
)  # fmt: skip

TITLE = {"linestyle": "none"}  # the line of a title in the legend
# Settings of the lines of estimators, by the title of their family and their name.
Looks = dict[str, dict[str, dict[str, Any]]]


class Curve(NamedTuple):
    """One measure of one estimator over the sizes, and its interval, each (n_sizes,).

    Sizes ascend; nan stands for values that have no place on the axis.
    """

    n: F64
    value: F64
    low: F64
    high: F64


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
        A panel for each setting, with one legend, grouped by family. The line "not measuring" is
        the baseline "zero": an estimator above it is worse than none.
    """
    label, is_log = MEASURES[check_choice("measure", measure, list(MEASURES))]
    panels = curves_of(summary, measure, is_log)
    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    looks = looks_of([name for name in names if name != ZERO])
    # Entries of the legend: lines below the titles of their families.
    entries = [x for title, lines in looks.items() for x in ((title, TITLE), *lines.items())]
    letters = max((len(name) for name, _ in entries), default=0)
    width = PANEL[0] * len(panels) + MARK + LETTER * letters
    figure = new_figure((width, max(PANEL[1], LINE * (len(entries) + 2))))
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (setting, curves) in zip(row, panels.items(), strict=True):
        for place, lines in enumerate(looks.values()):
            for name in (name for name in lines if name in curves):
                draw_curve(curves[name], ax, place, lines[name])
                if lines is looks.get(OWN):
                    draw_name(name, curves[name], ax)
        ax.set_title(setting, parse_math=False)
        ax.set_xlabel("rows in the evaluation set")
    row[0].set_ylabel(label)
    draw_scales(row, list(panels.values()), is_log)
    draw_legend(figure, entries)
    return figure


def curves_of(summary: "pyarrow.Table", measure: str, is_log: bool) -> dict[str, dict[str, Curve]]:
    """Read the curves of each setting, by estimator."""
    columns = summary.column_names
    for name in ("setting", "estimator", "n", measure):
        if name not in columns:
            raise InputError("summary", f"has no column {name}; its columns: {', '.join(columns)}")
    if not summary.num_rows:
        raise InputError("summary", "there are no rows to draw")

    def drawable(value: float | None) -> float:
        x = math.nan if value is None else float(value)
        return x if math.isfinite(x) and (x > 0 or not is_log) else math.nan

    found: dict[str, dict[str, list[list[float]]]] = {}
    for row in summary.to_pylist():
        numbers = [row.get(name) for name in ("n", measure, f"{measure}_low", f"{measure}_high")]
        lines = found.setdefault(row["setting"], {}).setdefault(row["estimator"], [])
        lines.append([drawable(x) for x in numbers])
    return {
        setting: {name: Curve(*np.array(sorted(lines)).T) for name, lines in curves.items()}
        for setting, curves in found.items()
    }


def looks_of(names: Sequence[str]) -> Looks:
    """Choose line styles for estimators by family; unknown ones are the user's."""
    looks, others = Looks(), list(names)
    for prefix, (title, color, marker, variants) in FAMILIES.items():
        every = [f"{prefix}_{variant}" for variant in variants] or [prefix]
        mine = [name for name in names if name in every]
        looks[title] = {name: line_of(color, marker, *VARIANTS[every.index(name)]) for name in mine}
        others = [name for name in others if name not in every]
    if others:
        for line in (line for lines in looks.values() for line in lines.values()):
            full = line["markerfacecolor"] != "white"
            line |= {"color": PALE, "markerfacecolor": PALE if full else "white"}
    styles = zip(others, cycle(OWN_MARKERS), cycle(VARIANTS), strict=False)
    looks[OWN] = {
        name: line_of(OWN_COLOR, marker, *style) | {"linewidth": BOLD}
        for name, marker, style in styles
    }
    return {title: lines for title, lines in looks.items() if lines}


def line_of(color: str, marker: str, dashes: Any, full: bool) -> dict[str, Any]:
    """Return the settings of a line."""
    return {
        "color": color, "linestyle": dashes, "linewidth": 1.4, "marker": marker,
        "markersize": 7 if marker == "*" else 4.5, "markeredgewidth": 1,
        "markerfacecolor": color if full else "white",
    }  # fmt: skip


def draw_curve(curve: Curve, ax: "Axes", place: int, line: dict[str, Any]) -> None:
    """Draw a line with its interval, and markers at sizes of its own.

    Lines of other families have their markers at other sizes.
    """
    step = max(1, curve.n.size // MARKERS_A_CURVE)
    ax.plot(curve.n, curve.value, markevery=(place % step, step), zorder=3 + place / 10, **line)
    inside = np.isfinite(curve.low + curve.high)
    shade = {"color": line["color"], "alpha": BAND, "linewidth": 0, "zorder": 2}
    ax.fill_between(curve.n, curve.low, curve.high, where=inside, **shade)


def draw_name(name: str, curve: Curve, ax: "Axes") -> None:
    """Write the name of an estimator at the right end of its line."""
    known = np.flatnonzero(np.isfinite(curve.value))
    if known.size:
        end = curve.n[known[-1]], curve.value[known[-1]]
        ax.annotate(
            name, end, (-4, 5), textcoords="offset points", ha="right", va="bottom", zorder=6,
            fontsize="small", fontweight="bold", color=OWN_COLOR, parse_math=False,
        )  # fmt: skip


def draw_scales(row: "Sequence[Axes]", panels: Sequence[dict[str, Curve]], is_log: bool) -> None:
    """Draw axes with their ticks, a faint grid, and the baseline."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    for ax, curves in zip(row, panels, strict=True):
        sizes = np.concatenate([curve.n for curve in curves.values()])
        least, most = sizes.min(), sizes.max()
        # Ticks too near one of the ends are left out.
        ticks = [x for x in round_numbers(least, most) if least * 1.4 <= x <= most / 1.4]
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(sorted({least, *ticks, most})))
        ax.tick_params("x", labelsize="small")
        if is_log:
            ax.set_yscale("log")
        else:
            ax.axhline(0, color=BLACK, linewidth=0.8, zorder=2.5)
        ax.grid(color="0.9", linewidth=0.6, zorder=0)
        ax.set_axisbelow(True)
        if ZERO in curves:
            draw_zero(curves[ZERO], ax, is_log)
    numbers = FuncFormatter(lambda value, _: np.format_float_positional(value, trim="-"))
    for ax in row:
        if is_log:
            low, high = ax.get_ylim()
            inside = round_numbers(low, high)
            if len(inside) < 4 and low > 0:  # evenly spaced ones, if the range is short
                evenly = [float(f"{x:.6g}") for x in MaxNLocator(6).tick_values(low, high)]
                inside = [x for x in evenly if low <= x <= high]
            ax.yaxis.set_major_locator(FixedLocator(inside))
        for axis in (ax.xaxis, ax.yaxis) if is_log else (ax.xaxis,):
            axis.set_major_formatter(numbers)
            axis.set_minor_locator(NullLocator())


def draw_zero(curve: Curve, ax: "Axes", is_log: bool) -> None:
    """Draw the line of not measuring, with a label at its right end.

    A linear axis is not stretched for it: the label beside the axis gives its value.
    """
    value, (low, high) = float(curve.value[-1]), ax.get_ylim()
    text, y = "not\nmeasuring", min(max(value, low), high)
    if np.isnan(value):
        text, y = f"{text}:\ninfinite", high
    elif is_log or y == value:
        mark = "_" if curve.n.size == 1 else ""  # a single size makes no line
        style: dict[str, Any] = {"color": BLACK, "marker": mark, "markersize": 40, "linewidth": 1.8}
        ax.plot(curve.n, curve.value, zorder=2.6, **style)
        y = value
    else:
        text = f"{text}:\n{value:.3g}"
    ax.annotate(
        text, (1, y), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", fontsize="small", color=BLACK, annotation_clip=False,
    )  # fmt: skip


def round_numbers(low: float, high: float) -> list[float]:
    """List 1, 2, 5 times powers of ten from low, if there is anything, to high."""
    if not low > 0:
        return []
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{x}e{k}") for k in decades for x in (1, 2, 5)]
    return [x for x in ticks if low <= x <= high]


def draw_legend(figure: "Figure", entries: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Draw names with their lines, titles in bold, in one column beside the panels."""
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], **line) for _, line in entries]
    legend = figure.legend(
        marks, [" "] * len(entries), loc="outside right center", frameon=False, fontsize="small",
        handlelength=2.9, handletextpad=0.6,
    )  # fmt: skip
    for text, (label, line) in zip(legend.get_texts(), entries, strict=True):
        # Names of estimators may be the user's: a dollar is no formula.
        text.set(text=label, parse_math=False, fontweight="bold" if line is TITLE else "normal")


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, completely or not at all.

    The same figure gives the same bytes. A file that is there is replaced.
    """
    import matplotlib

    path = Path(path)
    kind = path.suffix.lower()
    if kind not in UNDATED:
        raise InputError("path", "must end in .png, .svg or .pdf", value=str(path))
    options: dict[str, Any] = {"format": kind[1:], "dpi": DPI, "metadata": UNDATED[kind]}
    with matplotlib.rc_context({"svg.hashsalt": "fastece"}):  # no random names of parts
        figure.draw_without_rendering()  # the layout settles at the second turn
        figure.savefig(content := io.BytesIO(), **options)
    write_file(path, content.getvalue())
