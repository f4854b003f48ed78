"""Pictures, drawn from results alone. Needs matplotlib (``pip install fastece[plot]``)."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.consistency import ConsistencyBand
    from fastece.reliability import ReliabilityDiagram

__all__ = ["plot_diagram"]

# Okabe and Ito's blue and vermilion: apart for every kind of colour vision, and in grey.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "0.55"
SKY = "#56B4E9"


def plot_diagram(
    diagram: "ReliabilityDiagram",
    ax: "Axes | None" = None,
    band: "ConsistencyBand | None" = None,
) -> "Axes":
    """Frequency of hits over the mean score of each bin, gaps to the diagonal, occupancy below.

    Parameters
    ----------
    diagram : ReliabilityDiagram
    ax : matplotlib Axes, optional
        Where to draw; without it, on a new figure.
    band : ConsistencyBand, optional
        Of `fastece.calibration_test` for the same bins: a bar in each bin, where the frequency
        of a calibrated model is to be expected.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        For a band of other bins.
    """
    filled = diagram.count > 0
    if band is not None and not np.array_equal(np.isfinite(band.low), filled):
        raise ValueError(
            f"band: must be of the bins of the diagram, {filled.size} of which {filled.sum()} hold "
            f"rows; got {band.low.size} of which {np.isfinite(band.low).sum()} do"
        )
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    score, frequency = diagram.score[filled], diagram.frequency[filled]
    share = diagram.count / max(diagram.count.sum(), 1e-300)
    # Occupancy takes the lowest quarter: full height is the fullest bin.
    ax.bar(
        diagram.edges[:-1], 0.25 * share / max(share.max(), 1e-300), np.diff(diagram.edges),
        align="edge", color="0.85", edgecolor="white", linewidth=0.5, zorder=1,
        label=f"rows (fullest bin {share.max():.0%})",
    )  # fmt: skip
    if band is not None:
        draw_band(diagram, band, ax)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=2, label="calibrated")
    ax.vlines(score, score, frequency, color=VERMILION, linewidth=2.5, zorder=3, label="gap")
    ax.plot(
        score, frequency, color=BLUE, marker="o", markersize=5, linewidth=1.5, zorder=4,
        clip_on=False, label="frequency",
    )  # fmt: skip
    ax.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="mean score", ylabel="frequency of hits",
        title=f"{diagram.setting}, calibration error {diagram.value:.4f}",
    )  # fmt: skip
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize="small"
    )
    return ax


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
