"""Marks of the pictures: what a diagram and a curve look like on given axes. Needs matplotlib.

Marks are told apart in grey too: by width, dashes, lightness or an outline.
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
    from matplotlib.colors import to_rgba

    filled = diagram.count > 0
    left, width = diagram.edges[:-1], np.diff(diagram.edges)
    score, frequency = diagram.score[filled], diagram.frequency[filled]
    ax.bar(
        left, to_quarter(diagram.count), width, align="edge", color=LIGHT, edgecolor="white",
        linewidth=0.5, zorder=1, label=rows,
    )  # fmt: skip
    if band is not None:  # with an outline, which is told from the grey of the occupancy in print
        low, high = band.low[filled], band.high[filled]
        ax.bar(
            left[filled], high - low, width[filled], bottom=low, align="edge",
            facecolor=to_rgba(SKY, 0.25), edgecolor=SKY, linewidth=1, zorder=2,
            label=f"{100 * band.confidence_level:g} % if calibrated",
        )  # fmt: skip
    draw_frame(ax)
    ax.vlines(
        score, score, frequency, color=VERMILION, linewidth=2.5 * scale, zorder=3, label="gap"
    )
    ax.plot(
        score, frequency, color=BLUE, marker="o", markersize=5 * scale, linewidth=1.5 * scale,
        zorder=4, clip_on=False, label="frequency",
    )  # fmt: skip


def draw_curve(curve: "ReliabilityCurve", ax: "Axes", density: str, scale: float = 1) -> None:
    """The curve on axes; `density` is what the legend says of that of the scores."""
    from matplotlib.colors import to_rgba

    s, enough = curve.score, has_scores(curve)
    ax.fill_between(
        s, to_quarter(curve.density), facecolor=DENSITY, edgecolor=GREY, linewidth=0.6, zorder=1,
        label=density,
    )  # fmt: skip
    draw_frame(ax)
    if not enough.all():
        ax.fill_between(
            s, 0, 1, where=~enough, facecolor="none", edgecolor=LIGHT, hatch="///", linewidth=0.5,
            zorder=0, label="too few scores",
        )  # fmt: skip
    line, width = BLUE, 2.0
    if curve.low is not None and curve.high is not None:
        of = "resamples" if curve.n_resamples else "the posterior"
        ax.fill_between(
            s, curve.low, curve.high, where=enough, facecolor=to_rgba(SKY, 0.3), edgecolor=SKY,
            linewidth=0.8, zorder=3, label=f"{100 * curve.confidence_level:g} % of {of}",
        )  # fmt: skip
    if curve.median is not None:
        ax.plot(
            s, np.where(enough, curve.median, np.nan), color=BLUE, linewidth=2 * scale, zorder=4,
            clip_on=False, label="median of resamples",
        )  # fmt: skip
        line, width = BLACK, 0.8
    ax.plot(
        s, np.where(enough, curve.posterior, np.nan), color=line, linewidth=width * scale,
        zorder=5, clip_on=False, label="probability of a hit",
    )  # fmt: skip


def has_scores(curve: "ReliabilityCurve") -> NDArray[np.bool_]:
    """Where there is a curve to draw: where it is supported, and the kernel reaches some rows.

    With sharp scores the bandwidth is small, and elsewhere the curve jumps from row to row; a
    Bayesian curve does not.
    """
    few = curve.bandwidth is not None and curve.rows < FEWEST
    return np.asarray(curve.supported & ~np.asarray(few))


def draw_frame(ax: "Axes") -> None:
    """A square from 0 to 1 with the same ticks both ways, and the diagonal, where scores come true
    as often as they say."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=2, label="calibrated")
    ticks = np.linspace(0, 1, 6)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=ticks, yticks=ticks, aspect="equal")


def to_quarter(height: NDArray[np.float64]) -> NDArray[np.float64]:
    """Heights of which the largest is a quarter."""
    return np.asarray(LOWEST * height / max(height.max(), 1e-300))
