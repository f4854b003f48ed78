"""Pictures of a study, from its tables alone. Needs the extra "study".

To draw another column of the summary, add it to `MEASURES`, and to the files of a study in
`fastece.study.run.draw_figures`.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.display.axes import new_figure
from fastece.files import write_file
from fastece.study.axes import MeasureCurve, draw_scales
from fastece.study.candidate import ZERO
from fastece.study.styles import COLOR_OF_USER, TITLE_OF_USER, Line, LinesByFamily, choose_lines

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 200
# Metadata that leave out the time of writing, by kind of file.
UNDATED: dict[str, dict[str, None]] = {
    ".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None},
}  # fmt: skip
# Inches of a panel, and of the legend: a line, a letter, and the mark beside a text.
PANEL_WIDTH = 4.6
PANEL_HEIGHT = 4.1
LEGEND_LINE = 0.19
LEGEND_LETTER = 0.076
LEGEND_MARK = 0.9
# Opacity of an interval: sixteen of them lie over each other.
INTERVAL_ALPHA = 0.1
MARKERS_PER_CURVE = 4
# Drawing order: intervals lie below the lines, of which the last families lie on top.
INTERVAL_ORDER = 2
LINE_ORDER = 3
NAME_ORDER = 6


class Measure(NamedTuple):
    """A column of the summary that can be drawn.

    Parameters
    ----------
    label : str
        Label of its axis.
    is_log : bool
        Whether its axis is logarithmic.
    """

    label: str
    is_log: bool


MEASURES = {
    "p95_relative_error": Measure(
        "relative error, 95th percentile\n(median over distributions)", is_log=True
    ),
    "p95_absolute_error": Measure(
        "absolute error, 95th percentile\n(median over distributions)", is_log=True
    ),
    "median_abs_log_ratio": Measure("median of |log(estimate / truth)|", is_log=True),
    "relative_bias": Measure("bias relative to the truth", is_log=False),
}


class LegendEntry(NamedTuple):
    """A line of the legend: the title of a family, or an estimator."""

    text: str
    line: Line
    is_title: bool


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
    panels = read_curves(summary, measure, is_log)
    names = dict.fromkeys(name for curves in panels.values() for name in curves if name != ZERO)
    lines = choose_lines(list(names))
    entries = legend_entries(lines)
    figure = new_figure(figure_size(len(panels), entries))
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (setting, curves) in zip(row, panels.items(), strict=True):
        draw_panel(ax, curves, lines)
        ax.set_title(setting, parse_math=False)
        ax.set_xlabel("rows in the evaluation set")
    row[0].set_ylabel(label)
    draw_scales(row, list(panels.values()), is_log)
    draw_legend(figure, entries)
    return figure


def read_curves(
    summary: "pyarrow.Table", measure: str, is_log: bool
) -> dict[str, dict[str, MeasureCurve]]:
    """Read the curves of each setting, by estimator."""
    columns = summary.column_names
    for name in ("setting", "estimator", "n", measure):
        if name not in columns:
            raise InputError("summary", f"has no column {name}; its columns: {', '.join(columns)}")
    if not summary.num_rows:
        raise InputError("summary", "there are no rows to draw")
    points: dict[str, dict[str, list[list[float]]]] = {}
    for row in summary.to_pylist():
        numbers = [row.get(name) for name in ("n", measure, f"{measure}_low", f"{measure}_high")]
        of_setting = points.setdefault(row["setting"], {})
        of_estimator = of_setting.setdefault(row["estimator"], [])
        of_estimator.append([to_drawable(number, is_log) for number in numbers])
    return {
        setting: {
            name: MeasureCurve(*np.array(sorted(of_estimator)).T)
            for name, of_estimator in of_setting.items()
        }
        for setting, of_setting in points.items()
    }


def to_drawable(value: float | None, is_log: bool) -> float:
    """Return a number, or nan where it has no place on the axis."""
    if value is None or not math.isfinite(value):
        return math.nan
    return math.nan if is_log and value <= 0 else float(value)


def draw_panel(ax: "Axes", curves: dict[str, MeasureCurve], lines: LinesByFamily) -> None:
    """Draw the curves of one setting, and names at the lines of the user's estimators."""
    for place, (title, of_family) in enumerate(lines.items()):
        for name, line in of_family.items():
            if name in curves:
                draw_curve(curves[name], ax, place, line)
                if title == TITLE_OF_USER:
                    draw_name(name, curves[name], ax)


def draw_curve(curve: MeasureCurve, ax: "Axes", place: int, line: Line) -> None:
    """Draw a line with its interval, and markers at the sizes of its family.

    Parameters
    ----------
    curve : MeasureCurve
    ax : Axes
    place : int
        The number of the family: families have their markers at different sizes.
    line : dict
        Settings of the line.
    """
    step = max(1, curve.n.size // MARKERS_PER_CURVE)
    order = LINE_ORDER + place / 10
    ax.plot(curve.n, curve.value, markevery=(place % step, step), zorder=order, **line)
    has_interval = np.isfinite(curve.low + curve.high)
    ax.fill_between(
        curve.n, curve.low, curve.high, where=has_interval, color=line["color"],
        alpha=INTERVAL_ALPHA, linewidth=0, zorder=INTERVAL_ORDER,
    )  # fmt: skip


def draw_name(name: str, curve: MeasureCurve, ax: "Axes") -> None:
    """Write the name of an estimator at the right end of its line."""
    drawn_sizes = np.flatnonzero(np.isfinite(curve.value))
    if drawn_sizes.size:
        end = curve.n[drawn_sizes[-1]], curve.value[drawn_sizes[-1]]
        ax.annotate(
            name, end, (-4, 5), textcoords="offset points", ha="right", va="bottom",
            zorder=NAME_ORDER, fontsize="small", fontweight="bold", color=COLOR_OF_USER,
            parse_math=False,
        )  # fmt: skip


# -- legend ----------------------------------------------------------------------------------------


def legend_entries(lines: LinesByFamily) -> list[LegendEntry]:
    """List the entries of the legend: lines below the titles of their families."""
    entries = []
    for title, of_family in lines.items():
        entries.append(LegendEntry(title, {"linestyle": "none"}, is_title=True))
        entries += [LegendEntry(name, line, is_title=False) for name, line in of_family.items()]
    return entries


def figure_size(n_panels: int, entries: Sequence[LegendEntry]) -> tuple[float, float]:
    """Compute the width and the height of a figure in inches."""
    letters = max((len(entry.text) for entry in entries), default=0)
    width = PANEL_WIDTH * n_panels + LEGEND_MARK + LEGEND_LETTER * letters
    return width, max(PANEL_HEIGHT, LEGEND_LINE * (len(entries) + 2))


def draw_legend(figure: "Figure", entries: Sequence[LegendEntry]) -> None:
    """Draw names with their lines, titles in bold, in one column beside the panels."""
    from matplotlib.lines import Line2D

    legend = figure.legend(
        [Line2D([], [], **entry.line) for entry in entries], [" "] * len(entries),
        loc="outside right center", frameon=False, fontsize="small", handlelength=2.9,
        handletextpad=0.6,
    )  # fmt: skip
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        # Names of estimators may be the user's, where a dollar begins no formula.
        weight = "bold" if entry.is_title else "normal"
        text.set(text=entry.text, parse_math=False, fontweight=weight)


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
