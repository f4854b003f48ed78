"""Marks of the pictures: what a diagram and a curve look like on given axes. Needs matplotlib.

What is shown is told apart in grey too: by its width, its dashes, its lightness or an outline.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.reliability.curve import ReliabilityCurve
    from fastece.reliability.diagram import ReliabilityDiagram
    from fastece.resampling.calibration_test import ConsistencyBand

__all__ = ["draw_curve", "draw_diagram"]

# Okabe and Ito's blue and vermilion: apart for every kind of colour vision.
BLUE, VERMILION, SKY = "#0072B2", "#D55E00", "#56B4E9"
BLACK, GREY, LIGHT = "0.1", "0.55", "0.85"
# The density is darker than the band that may lie over it.
DENSITY = "0.78"

# The fewest rows that make a curve: one alone counts as 1.4.
FEWEST = 5
# Occupancy and density take the lowest quarter of the axes.
LOWEST = 0.25


def draw_diagram(
    diagram: "ReliabilityDiagram",
    ax: "Axes",
    rows: str,
    band: "ConsistencyBand | None" = None,
    scale: float = 1,
) -> None:
    """The bins on axes; `rows` is what the legend says of their occupancy, `scale` multiplies the
    widths of lines."""
    filled = diagram.count > 0
    score, frequency = diagram.score[filled], diagram.frequency[filled]
    ax.bar(
        diagram.edges[:-1], to_quarter(diagram.count), np.diff(diagram.edges), align="edge",
        color=LIGHT, edgecolor="white", linewidth=0.5, zorder=1, label=rows,
    )  # fmt: skip
    if band is not None:
        draw_band(diagram, band, ax)
    draw_diagonal(ax)
    ax.vlines(
        score, score, frequency, color=VERMILION, linewidth=2.5 * scale, zorder=3, label="gap"
    )
    ax.plot(
        score, frequency, color=BLUE, marker="o", markersize=5 * scale, linewidth=1.5 * scale,
        zorder=4, clip_on=False, label="frequency",
    )  # fmt: skip
    draw_frame(ax)


def draw_band(diagram: "ReliabilityDiagram", band: "ConsistencyBand", ax: "Axes") -> None:
    """A bar in each bin that holds rows, with an outline, which is told from the grey of the
    occupancy in print too."""
    from matplotlib.colors import to_rgba

    filled = diagram.count > 0
    low, high = band.low[filled], band.high[filled]
    ax.bar(
        diagram.edges[:-1][filled], high - low, np.diff(diagram.edges)[filled], bottom=low,
        align="edge", facecolor=to_rgba(SKY, 0.25), edgecolor=SKY, linewidth=1, zorder=2,
        label=f"{100 * band.confidence_level:g} % if calibrated",
    )  # fmt: skip


def draw_curve(curve: "ReliabilityCurve", ax: "Axes", density: str, scale: float = 1) -> None:
    """The curve on axes; `density` is what the legend says of that of the scores."""
    s, shown = curve.score, has_scores(curve)
    ax.fill_between(
        s, to_quarter(curve.density), facecolor=DENSITY, edgecolor=GREY, linewidth=0.6, zorder=1,
        label=density,
    )  # fmt: skip
    draw_diagonal(ax)
    if not shown.all():
        ax.fill_between(
            s, 0, 1, where=~shown, facecolor="none", edgecolor=LIGHT, hatch="///", linewidth=0.5,
            zorder=0, label="too few scores",
        )  # fmt: skip
    level = f"{100 * curve.confidence_level:g} %"
    if curve.low is not None and curve.high is not None:
        draw_interval(s, curve.low, curve.high, shown, ax, f"{level} of resamples")
    if curve.median is not None:
        ax.plot(
            s, np.where(shown, curve.median, np.nan), color=BLUE, linewidth=2 * scale, zorder=4,
            label="median of resamples",
        )  # fmt: skip
    thin = curve.median is not None
    ax.plot(
        s, np.where(shown, curve.posterior, np.nan), color=BLACK if thin else BLUE,
        linewidth=scale * (0.8 if thin else 2), zorder=5, label="probability of a hit",
    )  # fmt: skip
    draw_frame(ax)


def has_scores(curve: "ReliabilityCurve") -> NDArray[np.bool_]:
    """Where there is a curve to draw: where it is supported, and the kernel reaches some rows.

    With sharp scores the bandwidth is small, and elsewhere the curve jumps from row to row.
    """
    return np.asarray(curve.supported & (curve.rows >= FEWEST))


def draw_interval(
    s: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    shown: NDArray[np.bool_],
    ax: "Axes",
    label: str,
) -> None:
    """A filled band with an outline, which is told from the density in print too."""
    from matplotlib.colors import to_rgba

    ax.fill_between(
        s, low, high, where=shown, facecolor=to_rgba(SKY, 0.3), edgecolor=SKY, linewidth=0.8,
        zorder=3, label=label,
    )  # fmt: skip


def draw_diagonal(ax: "Axes") -> None:
    """Where scores come true as often as they say."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=2, label="calibrated")


def draw_frame(ax: "Axes") -> None:
    """A square from 0 to 1, with the same ticks both ways."""
    ticks = np.linspace(0, 1, 6)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=ticks, yticks=ticks, aspect="equal")


def to_quarter(height: NDArray[np.float64]) -> NDArray[np.float64]:
    """Heights of which the largest is a quarter."""
    return np.asarray(LOWEST * height / max(height.max(), 1e-300))
