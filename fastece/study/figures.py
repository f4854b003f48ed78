"""Pictures of a study, from its tables alone. Needs the extra "study".

Estimators are told apart in grey too: families by their markers, variants by dashes and filling.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.inputs.parameters import check_choice
from fastece.plot.files import KINDS, new_figure
from fastece.study.contestants import BANDWIDTHS, BINS, ZERO
from fastece.study.store import write_whole

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MEASURES", "curves_figure", "ranking_figure", "save_figure"]

F64 = NDArray[np.float64]

DPI = 200
NOT_MEASURING = "not\nmeasuring"
NONE = "\N{EN DASH}"
# Inches of a panel, of a line of the legend, of a letter in it, and of a column without letters.
PANEL, LINE, LETTER, MARK = (4.6, 4.1), 0.19, 0.076, 0.7
BAND = 0.1  # opacity of an interval: fifteen of them lie over each other
MARKERS_A_CURVE = 4
FITTING = 7  # sizes that can be written below a panel in letters of the usual size
BLACK = "0.1"


class Measure(NamedTuple):
    """What is drawn over the sizes: its label, and its kind of axis."""

    label: str
    logarithmic: bool = True


MEASURES = {
    "p95_relative_error": Measure("relative error, 95th percentile\n(median over distributions)"),
    "p95_absolute_error": Measure("absolute error, 95th percentile\n(median over distributions)"),
    "median_abs_log_ratio": Measure("median of |log(estimate / truth)|"),
    "relative_bias": Measure("bias relative to the truth", logarithmic=False),
}


class Family(NamedTuple):
    """Estimators that share a colour and a marker."""

    title: str
    variants: Sequence[Any]
    color: str
    marker: str


# Okabe and Ito's colours: blues are hard bins, oranges convex ones, the light ones adaptive.
FAMILIES = {
    "ece": Family("equal width", BINS, "#0072B2", "o"),
    "ece_a": Family("equal mass", BINS, "#56B4E9", "s"),
    "ece_c": Family("equal width, convex", BINS, "#D55E00", "^"),
    "ece_ac": Family("equal mass, convex", BINS, "#E69F00", "v"),
    "ece_kde": Family("kernel density", BANDWIDTHS, "#009E73", "D"),
}
OWN, OWN_COLOR, OWN_MARKERS = "own", "#CC79A7", "*PXh<>d"
# Of the first, second and third variant: dashes, and whether its markers are filled.
VARIANTS = (("-", True), ((0, (5, 1.5)), False), ((0, (1.2, 1.3)), True))


class Look(NamedTuple):
    """How a curve looks: the place of its family, and the settings of its line."""

    place: int
    line: dict[str, Any]


class Curve(NamedTuple):
    """One measure of one estimator over the sizes, each (n_sizes,), sizes ascending."""

    n: F64
    value: F64
    low: F64 | None
    high: F64 | None


def curves_figure(summary: "pyarrow.Table", measure: str = "p95_relative_error") -> "Figure":
    """A measure of every estimator over the size of the evaluation set, a panel for each setting.

    Errors have logarithmic axes, like Figure 2 of Posocco and Bonnefoy (2021). The baseline
    "zero", which always estimates 0, is the line "not measuring": an estimator above it is worse
    than none. Where it is infinite, or beyond the linear axis of the bias, a label says so.

    Parameters
    ----------
    summary : pyarrow.Table
        A row for each setting, estimator and size, with the columns ``setting``, ``estimator``,
        ``n`` and the measure. Where there are those of its interval (the measure's name with _low
        and _high), it is shaded. Panels and the legend keep the order of the rows.
    measure : {"p95_relative_error", "p95_absolute_error", "median_abs_log_ratio", "relative_bias"}

    Returns
    -------
    matplotlib Figure
        One that no window knows of, with one legend, grouped by family.

    Raises
    ------
    ValueError
        For an unknown measure, and a table without rows or without one of its columns.
    """
    wanted = MEASURES[check_choice("measure", measure, list(MEASURES))]
    panels = curves_of(summary, measure)
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    groups, looks = looks_of(name for name in names if name != ZERO)
    figure = new_figure(curves_size(len(panels), groups))
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (setting, curves) in zip(row, panels.items(), strict=True):
        for name, look in looks.items():
            if name in curves:
                draw_curve(curves[name], ax, look, wanted.logarithmic)
        ax.set_title(setting, parse_math=False)
        ax.set_xlabel("rows in the evaluation set")
    row[0].set_ylabel(wanted.label)
    draw_scales(row, panels, wanted.logarithmic)
    draw_legend(figure, groups, looks, beside=len(panels) == 1)
    return figure


def curves_of(table: "pyarrow.Table", measure: str) -> dict[str, dict[str, Curve]]:
    """The curves of each setting, by estimator."""
    check_columns("summary", table, ["setting", "estimator", "n", measure])
    keys = list(zip(*(table[name].to_pylist() for name in ("setting", "estimator")), strict=True))
    band = [f"{measure}_low", f"{measure}_high"]
    band = band if set(band) <= set(table.column_names) else []
    numbers = [column_of(table, name) for name in ("n", measure, *band)]
    panels: dict[str, dict[str, Curve]] = {}
    for setting, name in dict.fromkeys(keys):
        rows = np.array([i for i, key in enumerate(keys) if key == (setting, name)])
        rows = rows[np.argsort(numbers[0][rows], kind="stable")]
        n, value, *ends = (column[rows] for column in numbers)
        low, high = ends or (None, None)
        panels.setdefault(setting, {})[name] = Curve(n, value, low, high)
    return panels


def check_columns(name: str, table: "pyarrow.Table", columns: Iterable[str]) -> None:
    """Whether there are rows, and these columns.

    Raises
    ------
    ValueError
    """
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise ValueError(
            f"{name}: has no column {', '.join(missing)}; its columns: "
            f"{', '.join(table.column_names) or 'none'}"
        )
    if not table.num_rows:
        raise ValueError(f"{name}: there are no rows to draw")


def column_of(table: "pyarrow.Table", name: str) -> F64:
    """A column of numbers, nan where there is none."""
    return np.array([np.nan if x is None else x for x in table[name].to_pylist()], dtype=np.float64)


def looks_of(names: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, Look]]:
    """Estimators by the title of their family, and the look of each."""
    looks = {}
    titles = [*(family.title for family in FAMILIES.values()), OWN]
    known = {
        f"{name}_{variant}": look_of(place, family.color, family.marker, *VARIANTS[j])
        for place, (name, family) in enumerate(FAMILIES.items())
        for j, variant in enumerate(family.variants)
    }
    own = zip(cycle(OWN_MARKERS), cycle(VARIANTS), strict=False)
    for name in names:
        if name in known:
            looks[name] = known[name]
        else:
            marker, variant = next(own)
            looks[name] = look_of(len(FAMILIES), OWN_COLOR, marker, *variant)
    groups: dict[str, list[str]] = {}
    for name in sorted(looks, key=lambda name: looks[name].place):
        groups.setdefault(titles[looks[name].place], []).append(name)
    return groups, looks


def look_of(place: int, color: str, marker: str, dashes: Any, filled: bool) -> Look:
    """The look of a curve; those of a higher place are drawn above the others."""
    line = {
        "color": color, "linestyle": dashes, "linewidth": 1.4, "marker": marker,
        "markersize": 7 if marker == "*" else 4.5, "markeredgewidth": 1,
        "markerfacecolor": color if filled else "white", "zorder": 3 + place / 10,
    }  # fmt: skip
    return Look(place, line)


def curves_size(panels: int, groups: dict[str, list[str]]) -> tuple[float, float]:
    """Inches of the figure: the legend is beside one panel, and below several."""
    width, height = PANEL
    letters = [max(map(len, [title, *names])) for title, names in groups.items()] or [0]
    if panels == 1:
        lines = sum(len(names) + 1 for names in groups.values())
        return width + MARK + LETTER * max(letters), max(height, LINE * (lines + 2))
    lines = 1 + max(map(len, groups.values()), default=0)
    wide = MARK * len(groups) + LETTER * sum(letters)
    return max(width * panels, wide), height + LINE * (lines + 1)


def draw_curve(curve: Curve, ax: "Axes", look: Look, logarithmic: bool) -> None:
    """A line with a few markers, at other sizes than those of other families and wherever a value
    is alone, and its interval."""
    value = drawable(curve.value, logarithmic)
    step = max(1, value.size // MARKERS_A_CURVE)
    there = np.isfinite(np.r_[np.nan, value, np.nan])
    marked = ~there[:-2] & ~there[2:]
    marked[look.place % step :: step] = True
    ax.plot(curve.n, value, markevery=marked.tolist(), **look.line)
    if curve.low is not None and curve.high is not None:
        low, high = drawable(curve.low, logarithmic), drawable(curve.high, logarithmic)
        ax.fill_between(
            curve.n, low, high, where=np.isfinite(low + high), color=look.line["color"], alpha=BAND,
            linewidth=0, zorder=2,
        )  # fmt: skip


def drawable(value: F64, logarithmic: bool) -> F64:
    """Values with nan for those that an axis cannot show."""
    shown = np.isfinite(value) & ((value > 0) | (not logarithmic))
    return np.where(shown, value, np.nan)


def draw_scales(
    row: "Sequence[Axes]", panels: dict[str, dict[str, Curve]], logarithmic: bool
) -> None:
    """Axes with their ticks, a faint grid, and the line of the baseline."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for ax, curves in zip(row, panels.values(), strict=True):
        ax.set_xscale("log")
        if logarithmic:
            ax.set_yscale("log")
        else:
            ax.axhline(0, color=BLACK, linewidth=0.8, zorder=2.5)
        ax.grid(color="0.9", linewidth=0.6, zorder=0)
        ax.set_axisbelow(True)
        n = np.concatenate([curve.n for curve in curves.values()])
        ticks = size_ticks(n.min(), n.max())
        ax.xaxis.set_major_locator(FixedLocator(ticks))
        ax.tick_params("x", labelsize="medium" if len(ticks) <= FITTING else "small")
    for ax, curves in zip(row, panels.values(), strict=True):
        if ZERO in curves:
            draw_zero(curves[ZERO], ax, logarithmic)
    written = FuncFormatter(lambda value, _: np.format_float_positional(value, trim="-"))
    for ax in row:
        axes = [ax.xaxis, ax.yaxis] if logarithmic else [ax.xaxis]
        if logarithmic:
            ax.yaxis.set_major_locator(FixedLocator(round_numbers(*ax.get_ylim())))
        for axis in axes:
            axis.set_major_formatter(written)
            axis.set_minor_locator(NullLocator())


def draw_zero(curve: Curve, ax: "Axes", logarithmic: bool) -> None:
    """The line of not measuring, labelled at its right end. Where it is infinite, and beyond a
    linear axis, which is not stretched for it, the label says where it would be."""
    value = drawable(curve.value, logarithmic)
    shown = np.flatnonzero(np.isfinite(value))
    low, high = ax.get_ylim()
    if not shown.size:
        text, y, va = f"{NOT_MEASURING}:\ninfinite", high, "top"
    elif logarithmic or low <= value[shown].min() <= value[shown].max() <= high:
        # A single size is marked, as it makes no line.
        mark = "_" if value.size == 1 else ""
        ax.plot(curve.n, value, color=BLACK, linewidth=1.8, zorder=2.6, marker=mark, markersize=40)
        text, y, va = NOT_MEASURING, value[shown[-1]], "center"
    else:
        text = f"{NOT_MEASURING}:\n{value[shown[-1]]:.3g}"
        y, va = (low, "bottom") if value[shown[-1]] < low else (high, "top")
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


def size_ticks(least: float, most: float) -> list[float]:
    """1, 2 and 5 times powers of ten, and both ends unless they are too near to one of them."""
    ticks = [float(f"{x}e{k}") for k in range(10) for x in (1, 2, 5)]
    ticks = [x for x in ticks if least * 1.4 <= x <= most / 1.4]
    return sorted({least, *ticks, most})


def draw_legend(
    figure: "Figure", groups: dict[str, list[str]], looks: dict[str, Look], beside: bool
) -> None:
    """A column for each family under its title; beside the panels, all of them in one column."""
    from matplotlib.lines import Line2D

    if not groups:
        return
    lines = 0 if beside else max(map(len, groups.values()))
    entries: list[tuple[str, dict[str, Any] | None]] = []
    for title, names in groups.items():
        entries += [(title, None), *((name, looks[name].line) for name in names)]
        entries += [("", None)] * (lines - len(names))
    marks = [Line2D([], [], **(style or {"linestyle": "none"})) for _, style in entries]
    legend = figure.legend(
        marks, [" "] * len(entries), ncols=1 if beside else len(groups), frameon=False,
        loc="outside right center" if beside else "outside lower center", fontsize="small",
        handlelength=2.9, handletextpad=0.6, columnspacing=1.3,
    )  # fmt: skip
    for text, (label, style) in zip(legend.get_texts(), entries, strict=True):
        # Names of estimators may be the user's: a dollar is no formula.
        text.set(text=label, parse_math=False)
        if style is None:
            text.set_fontweight("bold")


# Inches of a row of the ranking, of the rows above the first, and around the tables.
ROW, HEAD, MARGIN = 0.235, 0.8, 0.2
# Inches of the title of the errors in one line.
TITLE = 2.3
# Opacity of the darkest cell: black on it is easily read.
DARKEST = 0.5
ERROR = re.compile(r"error_at_(\d+)")


class Column(NamedTuple):
    """A column of the table: what is written in its cells, and how dark they are, from 0 to 1."""

    head: str
    width: float
    cells: list[str]
    shade: F64 | None = None
    left: bool = False


def ranking_figure(ranking: "pyarrow.Table", measure: str = "p95_relative_error") -> "Figure":
    """The ranking as a table for each setting, rows in their order.

    The darker a cell, the larger the error among those of its column, on a logarithmic scale; the
    smallest is bold.

    Parameters
    ----------
    ranking : pyarrow.Table
        A row for each setting and estimator, with the columns ``setting``, ``rank``,
        ``estimator``, ``mean_rank``, one or more ``error_at_<n>`` (the measure at n rows), ``best``
        (share of the distributions, from 0 to 1) and ``relative_bias``. The rank 0 is none.
    measure : str
        What was ranked: one of `MEASURES`.

    Returns
    -------
    matplotlib Figure
        One that no window knows of.

    Raises
    ------
    ValueError
        For a table without rows or without one of its columns, and for an unknown measure.
    """
    over = MEASURES[check_choice("measure", measure, list(MEASURES))].label.partition("\n")[0]
    errors = [name for name in ranking.column_names if ERROR.fullmatch(name)]
    fixed = ["setting", "rank", "estimator", "mean_rank", "best", "relative_bias"]
    check_columns("ranking", ranking, [*fixed, *(errors[:1] or ["error_at_<n>"])])
    settings = ranking["setting"].to_pylist()
    tables = {}
    for setting in dict.fromkeys(settings):
        tables[setting] = ranking.take([i for i, other in enumerate(settings) if other == setting])
    columns = {setting: ranking_columns(table, errors) for setting, table in tables.items()}
    width = max(sum(column.width for column in table) for table in columns.values())
    heights = [HEAD + ROW * table.num_rows for table in tables.values()]
    whole = width + 2 * MARGIN, sum(heights) + MARGIN * (len(heights) + 1)
    figure = new_figure(whole)
    figure.set_layout_engine("none")  # the axes are measured in inches
    top = whole[1]
    for (setting, table), height in zip(columns.items(), heights, strict=True):
        top -= MARGIN + height
        box = MARGIN / whole[0], top / whole[1], width / whole[0], height / whole[1]
        ax = figure.add_axes(box, xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        draw_table(ax, (setting, over), table, tables[setting]["estimator"].to_pylist())
    return figure


def ranking_columns(table: "pyarrow.Table", errors: Sequence[str]) -> list[Column]:
    """The columns of the table of one setting."""
    names = [
        "zero (not measuring)" if name == ZERO else name for name in table["estimator"].to_pylist()
    ]
    rank = [f"{x:.0f}" if x >= 1 else NONE for x in column_of(table, "rank")]
    mean, best = column_of(table, "mean_rank"), column_of(table, "best")
    columns = [
        Column("rank", 0.5, rank),
        Column("estimator", 0.3 + 0.078 * max(map(len, names)), names, left=True),
        Column("mean\nrank", 0.6, [f"{x:.1f}" if np.isfinite(x) else NONE for x in mean]),
    ]
    values = [column_of(table, name) for name in errors]
    decimals = decimals_of(np.concatenate(values))
    for name, value in zip(errors, values, strict=True):
        head = f"n = {name.removeprefix('error_at_')}"
        cells = [f"{x:.{decimals}f}" if np.isfinite(x) else NONE for x in value]
        columns.append(Column(head, 0.78, cells, shade_of(value)))
    bias = column_of(table, "relative_bias")
    return [
        *columns,
        Column("share\nbest", 0.78, [percent(x) for x in best]),
        Column("relative\nbias", 0.8, [percent(x, sign=True) for x in bias]),
    ]


def decimals_of(value: F64) -> int:
    """So many that the smallest of the numbers has two significant digits, but at most three."""
    size = np.abs(value[np.isfinite(value) & (value != 0)])
    return int(np.clip(1 - np.floor(np.log10(size.min())), 0, 3)) if size.size else 0


def percent(value: float, sign: bool = False) -> str:
    """A share, with a decimal where it is small."""
    if not np.isfinite(value):
        return NONE
    size = round(abs(100 * value), 1)
    decimals = 1 if 0 < size < 1 else 0
    text = f"{100 * value if size else 0.0:{'+' if sign else ''}.{decimals}f} %"
    return text.replace("-", "\N{MINUS SIGN}")


def shade_of(value: F64) -> F64:
    """0 for the smallest and 1 for the largest of the values on a logarithmic scale; nan where
    there is none."""
    logs = np.log(drawable(value, logarithmic=True))
    if not np.isfinite(logs).any():
        return logs
    low, high = np.nanmin(logs), np.nanmax(logs)
    return np.asarray((logs - low) / max(high - low, 1e-300))


def draw_table(
    ax: "Axes", heads: tuple[str, str], columns: Sequence[Column], names: Sequence[str]
) -> None:
    """Cells, heads (of the table, and of its errors) and rules; the axes are in inches, from the
    top down."""
    width = sum(column.width for column in columns)
    foot = HEAD + ROW * len(names)
    ax.text(0, 0.12, heads[0], fontsize=11, fontweight="bold", va="center", parse_math=False)
    left, shaded = 0.0, []
    for column in columns:
        if column.shade is not None:
            shaded.append((left, left + column.width))
        draw_column(ax, column, left, names)
        left += column.width
    ends = shaded[0][0] + 0.06, shaded[-1][1] - 0.02
    over = heads[1].replace(", ", ",\n") if ends[1] - ends[0] < TITLE else heads[1]
    ax.text(
        sum(ends) / 2, 0.36, over, fontsize=9, ha="center", va="bottom", linespacing=1.1,
        parse_math=False,
    )  # fmt: skip
    ax.plot(ends, (0.41, 0.41), color=BLACK, linewidth=0.5)
    for y, line in ((HEAD, 0.8), (foot, 0.8)):
        ax.plot((0, width), (y, y), color=BLACK, linewidth=line, clip_on=False)
    for i, name in enumerate(names):
        if name == ZERO:
            for y in (HEAD + ROW * i, HEAD + ROW * (i + 1)):
                ax.plot((0, width), (y, y), color=BLACK, linewidth=0.6, linestyle=(0, (3, 2)))


def draw_column(ax: "Axes", column: Column, left: float, names: Sequence[str]) -> None:
    """The head and the cells of one column that begins at `left`."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    right = left + column.width
    x, side = (left + 0.14, "left") if column.left else (right - 0.14, "right")
    ax.text(x, HEAD - 0.08, column.head, fontsize=9, ha=side, va="baseline", linespacing=1.1)
    for i, (cell, name) in enumerate(zip(column.cells, names, strict=True)):
        y = HEAD + ROW * i
        shade = np.nan if column.shade is None else column.shade[i]
        if np.isfinite(shade):
            color = to_rgba(FAMILIES["ece"].color, DARKEST * shade)
            ax.add_patch(Rectangle((left, y), column.width, ROW, color=color, linewidth=0))
        ax.text(
            x, y + ROW / 2, cell, fontsize=9, ha=side, va="center_baseline", parse_math=False,
            fontweight="bold" if shade == 0 else "normal",
            fontstyle="italic" if name == ZERO else "normal",
        )  # fmt: skip


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure: the whole file or none, the same bytes for the same figure.

    Parameters
    ----------
    figure : matplotlib Figure
    path : str or Path
        Ends in .png, .svg or .pdf. A file that is there is replaced.

    Raises
    ------
    ValueError
        For another ending.
    OSError
        If the file cannot be written.
    """
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
