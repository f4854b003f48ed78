"""Marks of the pictures: what a diagram and a curve look like on given axes. Needs matplotlib.

Marks are told apart in grey too: by width, dashes, lightness or an outline.
"""

from typing import TYPE_CHECKING

import numpy as np

from fastece.typing import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.reliability.curve import ReliabilityCurve
    from fastece.reliability.diagram import ReliabilityDiagram
    from fastece.resampling.calibration_test import ConsistencyBand

# Okabe and Ito's blue and vermilion: apart for every kind of colour vision.
BLUE, VERMILION, SKY = "#0072B2", "#D55E00", "#56B4E9"
BLACK, GREY, LIGHT = "0.1", "0.55", "0.85"
# The density is darker than the band that may lie over it.
DENSITY = "0.78"
# The fewest rows that make a curve: one alone counts as 1.4.
FEWEST = 5
# Occupancy and density take the lowest quarter of the axes.
LOWEST = 0.25
# Small panels have thinner lines, and one legend for all, which says nothing of a single one.
THIN, OWN = 0.7, "own scale"


def draw_diagram(
    diagram: "ReliabilityDiagram", ax: "Axes", band: "ConsistencyBand | None", is_panel: bool
) -> None:
    """The bins on axes, with their occupancy and the band."""
    scale = THIN if is_panel else 1.0
    share = diagram.count.max() / max(diagram.count.sum(), 1e-300)
    filled = diagram.count > 0
    left, width = diagram.edges[:-1], np.diff(diagram.edges)
    score, frequency = diagram.score[filled], diagram.frequency[filled]
    ax.bar(
        left, to_quarter(diagram.count), width, align="edge", color=LIGHT, edgecolor="white",
        linewidth=0.5, zorder=1,
        label=f"rows ({OWN if is_panel else f'fullest bin {share:.0%}'})",
    )  # fmt: skip
    if band is not None:  # with an outline, which is told from the grey of the occupancy in print
        low, high = band.low[filled], band.high[filled]
        ax.bar(
            left[filled], high - low, width[filled], bottom=low, align="edge",
            facecolor=(SKY, 0.25), edgecolor=SKY, linewidth=1, zorder=2,
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


def draw_curve(curve: "ReliabilityCurve", ax: "Axes", is_panel: bool) -> None:
    """The curve on axes, with its band and the density of the scores."""
    scale, s = THIN if is_panel else 1.0, curve.score
    peak = f"of scores (peak {curve.density.max():.3g})"
    # With sharp scores the bandwidth is small, and elsewhere a density jumps from row to row.
    fewest = 0 if curve.bandwidth is None else FEWEST
    enough = curve.supported & (curve.rows >= fewest)
    ax.fill_between(
        s, to_quarter(curve.density), facecolor=DENSITY, edgecolor=GREY, linewidth=0.6, zorder=1,
        label=f"density {f'({OWN})' if is_panel else peak}",
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
            s, curve.low, curve.high, where=enough, facecolor=(SKY, 0.3), edgecolor=SKY,
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


def draw_frame(ax: "Axes") -> None:
    """A square from 0 to 1 with the same ticks both ways, and the diagonal, where scores come true
    as often as they say."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=2, label="calibrated")
    ticks = np.linspace(0, 1, 6)
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=ticks, yticks=ticks, aspect="equal")


def to_quarter(height: F64) -> F64:
    """Heights of which the largest is a quarter."""
    return np.asarray(LOWEST * height / max(height.max(), 1e-300))
