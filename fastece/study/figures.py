"""Pictures of a study, from its tables alone. Needs the extra "study".

Estimators are told apart in grey too: families by their markers, variants by dashes and filling.
"""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.checks.parameters import check_choice
from fastece.plot.axes import new_figure
from fastece.plot.marks import BLACK
from fastece.plot.pages import KINDS
from fastece.study.candidates import BANDWIDTHS, BAYES, BINS, ZERO
from fastece.study.store import write_whole
from fastece.typing import F64

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
NOT_MEASURING = "not\nmeasuring"
# Inches of a panel, of a line of the legend, of a letter in it, and of a column without letters.
PANEL, LINE, LETTER, MARK = (4.6, 4.1), 0.19, 0.076, 0.7
BAND = 0.1  # opacity of an interval: sixteen of them lie over each other
MARKERS_A_CURVE = 4
FITTING = 7  # sizes that can be written below a panel in letters of the usual size

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
OWN, OWN_COLOR, OWN_MARKERS = "own", "#CC79A7", "*PXh<>d"
# Of the first, second and third variant: dashes, and whether its markers are filled.
VARIANTS: tuple[tuple[Any, bool], ...] = (
    ("-", True), ((0, (5, 1.5)), False), ((0, (1.2, 1.3)), True),
)  # fmt: skip

# Settings of the lines of estimators, by the title of their family and their name.
Looks = dict[str, dict[str, dict[str, Any]]]


class Curve(NamedTuple):
    """One measure of one estimator over the sizes, and its interval, each (n_sizes,), sizes
    ascending; nan for what has no place on the axis."""

    n: F64
    value: F64
    low: F64
    high: F64


def curves_figure(summary: "pyarrow.Table", measure: str = "p95_relative_error") -> "Figure":
    """A measure of every estimator over the size of the evaluation set, a panel for each setting,
    with one legend, grouped by family.

    Errors have logarithmic axes, like Figure 2 of Posocco and Bonnefoy (2021). The baseline
    "zero", which always estimates 0, is the line "not measuring": an estimator above it is worse
    than none. The `summary` has the columns "setting", "estimator", "n" and the measure, one of
    `MEASURES`, and may have those of its interval, which is shaded: the measure's name with _low
    and _high. Panels and the legend keep the order of the rows.
    """
    label, is_log = MEASURES[check_choice("measure", measure, list(MEASURES))]
    panels = curves_of(summary, measure, is_log)
    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    looks = looks_of([name for name in names if name != ZERO])
    figure = new_figure(curves_size(len(panels), looks))
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (setting, curves) in zip(row, panels.items(), strict=True):
        for place, lines in enumerate(looks.values()):
            for name, line in lines.items():
                if name in curves:
                    draw_curve(curves[name], ax, place, line)
        ax.set_title(setting, parse_math=False)
        ax.set_xlabel("rows in the evaluation set")
    row[0].set_ylabel(label)
    draw_scales(row, list(panels.values()), is_log)
    draw_legend(figure, looks, beside=len(panels) == 1)
    return figure


def curves_of(summary: "pyarrow.Table", measure: str, is_log: bool) -> dict[str, dict[str, Curve]]:
    """The curves of each setting, by estimator."""
    columns = summary.column_names
    for name in ("setting", "estimator", "n", measure):
        if name not in columns:
            have = ", ".join(columns) or "none"
            raise ValueError(f"summary: has no column {name}; its columns: {have}")
    if not summary.num_rows:
        raise ValueError("summary: there are no rows to draw")

    def column(name: str) -> F64:
        if name not in columns:
            return np.full(summary.num_rows, np.nan)
        value = summary[name].cast("float64").to_numpy()
        return np.where(np.isfinite(value) & ((value > 0) | (not is_log)), value, np.nan)

    values = [column(name) for name in ("n", measure, f"{measure}_low", f"{measure}_high")]
    panels: dict[str, dict[str, Curve]] = {}
    keys = list(zip(summary["setting"].to_pylist(), summary["estimator"].to_pylist(), strict=True))
    for setting, name in dict.fromkeys(keys):
        rows = np.array([i for i, key in enumerate(keys) if key == (setting, name)])
        rows = rows[np.argsort(values[0][rows], kind="stable")]
        panels.setdefault(setting, {})[name] = Curve(*(value[rows] for value in values))
    return panels


def looks_of(names: Sequence[str]) -> Looks:
    """The looks of some estimators, those of every family apart; what no family knows is the
    user's own."""
    looks, others = Looks(), list(names)
    for prefix, (title, color, marker, variants) in FAMILIES.items():
        every = [f"{prefix}_{variant}" for variant in variants] or [prefix]
        known = {name: k for k, name in enumerate(every)}
        mine = [name for name in names if name in known]
        looks[title] = {name: line_of(color, marker, *VARIANTS[known[name]]) for name in mine}
        others = [name for name in others if name not in known]
    styles = zip(others, cycle(OWN_MARKERS), cycle(VARIANTS), strict=False)
    looks[OWN] = {name: line_of(OWN_COLOR, marker, *style) for name, marker, style in styles}
    return looks


def line_of(color: str, marker: str, dashes: Any, full: bool) -> dict[str, Any]:
    """The settings of a line."""
    return {
        "color": color, "linestyle": dashes, "linewidth": 1.4, "marker": marker,
        "markersize": 7 if marker == "*" else 4.5, "markeredgewidth": 1,
        "markerfacecolor": color if full else "white",
    }  # fmt: skip


def curves_size(panels: int, looks: Looks) -> tuple[float, float]:
    """Inches of the figure: the legend is beside one panel, and below several."""
    width, height = PANEL
    columns = [[title, *lines] for title, lines in looks.items() if lines] or [[]]
    letters = [max(map(len, column), default=0) for column in columns]
    if panels == 1:
        count = sum(map(len, columns))
        return width + MARK + LETTER * max(letters), max(height, LINE * (count + 2))
    wide = MARK * len(columns) + LETTER * sum(letters)
    return max(width * panels, wide), height + LINE * (1 + max(map(len, columns)))


def draw_curve(curve: Curve, ax: "Axes", place: int, line: dict[str, Any]) -> None:
    """A line with a few markers, at other sizes than those of other families and wherever a value
    is alone, and its interval."""
    step = max(1, curve.n.size // MARKERS_A_CURVE)
    there = np.isfinite(np.r_[np.nan, curve.value, np.nan])
    markers = ~there[:-2] & ~there[2:]
    markers[place % step :: step] = True
    ax.plot(curve.n, curve.value, markevery=markers.tolist(), zorder=3 + place / 10, **line)
    inside = np.isfinite(curve.low + curve.high)
    shade = {"color": line["color"], "alpha": BAND, "linewidth": 0, "zorder": 2}
    ax.fill_between(curve.n, curve.low, curve.high, where=inside, **shade)


def draw_scales(row: "Sequence[Axes]", panels: Sequence[dict[str, Curve]], is_log: bool) -> None:
    """Axes with their ticks, a faint grid, and the line of the baseline."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    numbers = FuncFormatter(lambda value, _: np.format_float_positional(value, trim="-"))
    for ax, curves in zip(row, panels, strict=True):
        ax.set_xscale("log")
        if is_log:
            ax.set_yscale("log")
        else:
            ax.axhline(0, color=BLACK, linewidth=0.8, zorder=2.5)
        ax.grid(color="0.9", linewidth=0.6, zorder=0)
        ax.set_axisbelow(True)
        ticks = size_ticks(np.concatenate([curve.n for curve in curves.values()]))
        ax.xaxis.set_major_locator(FixedLocator(ticks))
        ax.tick_params("x", labelsize="medium" if len(ticks) <= FITTING else "small")
    for ax, curves in zip(row, panels, strict=True):
        if ZERO in curves:
            draw_zero(curves[ZERO], ax, is_log)
    for ax in row:
        if is_log:
            ax.yaxis.set_major_locator(FixedLocator(round_numbers(*ax.get_ylim())))
        for axis in (ax.xaxis, ax.yaxis) if is_log else (ax.xaxis,):
            axis.set_major_formatter(numbers)
            axis.set_minor_locator(NullLocator())


def draw_zero(curve: Curve, ax: "Axes", is_log: bool) -> None:
    """The line of not measuring, with a label at its right end. Where it is infinite, and beyond a
    linear axis, which is not stretched for it, the label says where it would be."""
    value = curve.value[np.isfinite(curve.value)]
    low, high = ax.get_ylim()
    if not value.size:
        text, y, va = f"{NOT_MEASURING}:\ninfinite", high, "top"
    elif is_log or low <= value.min() <= value.max() <= high:
        # A single size is a mark, as it makes no line.
        mark = "_" if curve.n.size == 1 else ""
        ax.plot(
            curve.n, curve.value, color=BLACK, marker=mark, markersize=40, linewidth=1.8, zorder=2.6
        )
        text, y, va = NOT_MEASURING, value[-1], "center"
    else:
        text = f"{NOT_MEASURING}:\n{value[-1]:.3g}"
        y, va = (low, "bottom") if value[-1] < low else (high, "top")
    ax.annotate(
        text, (1, y), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va=va, fontsize="small", color=BLACK, annotation_clip=False,
    )  # fmt: skip


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers of a logarithmic axis: as few kinds of them as make four."""
    from matplotlib.ticker import MaxNLocator

    if not low > 0:  # there is nothing on the axis
        return []
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for leading in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, *range(2, 10))):
        ticks = [float(f"{x}e{k}") for k in decades for x in leading]
        ticks = [x for x in ticks if low <= x <= high]
        if len(ticks) >= 4:
            return ticks
    evenly = MaxNLocator(6).tick_values(low, high)
    return [float(f"{x:.6g}") for x in evenly if low <= x <= high]


def size_ticks(sizes: F64) -> list[float]:
    """1, 2 and 5 times powers of ten, and both ends unless they are too near to one of them."""
    least, most = sizes.min(), sizes.max()
    ticks = [float(f"{x}e{k}") for k in range(10) for x in (1, 2, 5)]
    return sorted({least, *(x for x in ticks if least * 1.4 <= x <= most / 1.4), most})


def draw_legend(figure: "Figure", looks: Looks, beside: bool) -> None:
    """A column for each family under its title; beside the panels, all of them in one column."""
    from matplotlib.lines import Line2D

    shown = {title: lines for title, lines in looks.items() if lines}
    if not shown:
        return
    longest = 0 if beside else max(map(len, shown.values()))
    entries: list[tuple[str, dict[str, Any] | None]] = []
    for title, lines in shown.items():
        entries += [(title, None), *lines.items(), *[("", None)] * (longest - len(lines))]
    marks = [Line2D([], [], **(line or {"linestyle": "none"})) for _, line in entries]
    legend = figure.legend(
        marks, [" "] * len(entries), ncols=1 if beside else len(shown), frameon=False,
        loc="outside right center" if beside else "outside lower center", fontsize="small",
        handlelength=2.9, handletextpad=0.6, columnspacing=1.3,
    )  # fmt: skip
    for text, (label, line) in zip(legend.get_texts(), entries, strict=True):
        # Names of estimators may be the user's: a dollar is no formula.
        text.set(text=label, parse_math=False)
        if line is None:
            text.set_fontweight("bold")


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure to a path that ends in .png, .svg or .pdf: the whole file or none, the same
    bytes for the same figure. A file that is there is replaced."""
    import matplotlib

    path = Path(path)
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"path: {path} must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    # Neither the time nor random names of parts.
    undated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[kind]
    with matplotlib.rc_context({"svg.hashsalt": "fastece"}):
        figure.draw_without_rendering()  # the layout settles at the second turn
        write_whole(
            path, lambda file: figure.savefig(file, format=kind[1:], dpi=DPI, metadata=undated)
        )
