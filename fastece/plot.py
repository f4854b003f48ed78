"""Pictures, drawn from results alone. Needs matplotlib (``pip install fastece[plot]``)."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.reliability import ReliabilityDiagram

__all__ = ["plot_diagram"]

# Okabe and Ito's blue and vermilion: apart for every kind of colour vision, and in grey.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "0.55"


def plot_diagram(diagram: "ReliabilityDiagram", ax: "Axes | None" = None) -> "Axes":
    """Frequency of hits over the mean score of each bin, gaps to the diagonal, occupancy below.

    Parameters
    ----------
    diagram : ReliabilityDiagram
    ax : matplotlib Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    filled = diagram.count > 0
    score, frequency = diagram.score[filled], diagram.frequency[filled]
    share = diagram.count / max(diagram.count.sum(), 1e-300)
    # Occupancy takes the lowest quarter: full height is the fullest bin.
    ax.bar(
        diagram.edges[:-1], 0.25 * share / max(share.max(), 1e-300), np.diff(diagram.edges),
        align="edge", color="0.85", edgecolor="white", linewidth=0.5, zorder=1,
        label=f"rows (fullest bin {share.max():.0%})",
    )  # fmt: skip
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
