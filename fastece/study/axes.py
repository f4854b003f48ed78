"""Axes of the pictures of a study: their ticks, their grid, and the line of not measuring."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.display.marks import BLACK
from fastece.kernels.types import F64
from fastece.study.candidate import ZERO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ticks of sizes nearer to one of the ends than this factor are left out, as they would touch it.
MIN_TICK_DISTANCE = 1.4
# A logarithmic axis with fewer round numbers has evenly spaced ticks, about as many as this.
MIN_ROUND_TICKS = 4
EVEN_TICKS = 6
# Points: a mark in place of the line of not measuring where there is a single size.
ZERO_MARK_SIZE = 40


class MeasureCurve(NamedTuple):
    """One measure of one estimator over the sizes, and its interval.

    Parameters
    ----------
    n : (n_sizes,) float64 array
        Sizes of the evaluation sets, increasing.
    value, low, high : (n_sizes,) float64 array
        The measure and its interval; nan stands for values that have no place on the axis.
    """

    n: F64
    value: F64
    low: F64
    high: F64


Panel = Mapping[str, MeasureCurve]


def draw_scales(row: "Sequence[Axes]", panels: Sequence[Panel], is_log: bool) -> None:
    """Draw axes with their ticks, a faint grid, and the baseline.

    Parameters
    ----------
    row : sequence of Axes
        Panels that share the axis of the measure.
    panels : sequence of dict
        Their curves by estimator.
    is_log : bool
        Whether the axis of the measure is logarithmic.
    """
    for ax, curves in zip(row, panels, strict=True):
        draw_size_axis(ax, np.concatenate([curve.n for curve in curves.values()]))
        if is_log:
            ax.set_yscale("log")
        else:
            ax.axhline(0, color=BLACK, linewidth=0.8, zorder=2.5)
        ax.grid(color="0.9", linewidth=0.6, zorder=0)
        ax.set_axisbelow(True)
        if ZERO in curves:
            draw_zero(curves[ZERO], ax, is_log)
    if is_log:
        for ax in row:
            draw_log_ticks(ax)


def draw_size_axis(ax: "Axes", sizes: F64) -> None:
    """Draw the axis of sizes, with round numbers and both ends as ticks."""
    from matplotlib.ticker import FixedLocator

    smallest = sizes.min()
    largest = sizes.max()
    first_tick = smallest * MIN_TICK_DISTANCE
    last_tick = largest / MIN_TICK_DISTANCE
    inner = [tick for tick in round_numbers(smallest, largest) if first_tick <= tick <= last_tick]
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(sorted({smallest, *inner, largest})))
    ax.tick_params("x", labelsize="small")
    show_plain_numbers(ax.xaxis)


def draw_log_ticks(ax: "Axes") -> None:
    """Draw the ticks of a logarithmic axis of a measure, once its range is settled."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    low, high = ax.get_ylim()
    ticks = round_numbers(low, high)
    if len(ticks) < MIN_ROUND_TICKS and low > 0:
        even = [float(f"{tick:.6g}") for tick in MaxNLocator(EVEN_TICKS).tick_values(low, high)]
        ticks = [tick for tick in even if low <= tick <= high]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    show_plain_numbers(ax.yaxis)


def show_plain_numbers(axis: Any) -> None:
    """Write the ticks of an axis without powers of ten, and no minor ticks."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_formatter(
        FuncFormatter(lambda value, _: np.format_float_positional(value, trim="-"))
    )
    axis.set_minor_locator(NullLocator())


def draw_zero(curve: MeasureCurve, ax: "Axes", is_log: bool) -> None:
    """Draw the line of not measuring, with a label at its right end.

    A linear axis is not stretched for it: the label beside the axis gives its value.
    """
    value = float(curve.value[-1])
    low, high = ax.get_ylim()
    label = "not\nmeasuring"
    if np.isnan(value):
        draw_label(ax, f"{label}:\ninfinite", high)
    elif is_log or low <= value <= high:
        has_single_size = curve.n.size == 1
        ax.plot(
            curve.n, curve.value, color=BLACK, marker="_" if has_single_size else "",
            markersize=ZERO_MARK_SIZE, linewidth=1.8, zorder=2.6,
        )  # fmt: skip
        draw_label(ax, label, value)
    else:
        draw_label(ax, f"{label}:\n{value:.3g}", min(max(value, low), high))


def draw_label(ax: "Axes", text: str, y: float) -> None:
    """Write a text at the right of axes."""
    ax.annotate(
        text, (1, y), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", fontsize="small", color=BLACK, annotation_clip=False,
    )  # fmt: skip


def round_numbers(low: float, high: float) -> list[float]:
    """List 1, 2 and 5 times powers of ten from low, if it is positive, to high."""
    if not low > 0:
        return []
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [float(f"{digit}e{decade}") for decade in decades for digit in (1, 2, 5)]
    return [number for number in numbers if low <= number <= high]
