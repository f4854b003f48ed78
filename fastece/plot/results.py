"""Pictures, drawn from results alone. Needs matplotlib (``pip install fastece[plot]``)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastece.inputs.parameters import check_integer
from fastece.plot.marks import draw_curve, draw_diagram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastece.reliability.curve import ReliabilityCurve
    from fastece.reliability.diagram import ReliabilityDiagram
    from fastece.resampling.calibration_test import ConsistencyBand

# Of more classes than can be read, small multiples show the worst.
MOST_PANELS = 12
# Inches of a panel with its title, and of what is around all of them.
PANEL, AROUND = (1.9, 2.05), (0.6, 0.9)
# Characters of the name of a class over a panel, and inches of an entry of the legend.
LONGEST_NAME, ENTRY = 28, 1.9


def plot_diagram(
    diagram: "ReliabilityDiagram", ax: "Axes | None" = None, band: "ConsistencyBand | None" = None
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
    known = filled if band is None else np.isfinite(band.low)
    if not np.array_equal(known, filled):
        raise ValueError(
            f"band: must be of the bins of the diagram, {filled.size} of which {filled.sum()} hold "
            f"rows; got {known.size} of which {known.sum()} do"
        )
    return plot_result(diagram, ax, band)


def plot_curve(curve: "ReliabilityCurve", ax: "Axes | None" = None) -> "Axes":
    """Probability of a hit over the score, with the diagonal, and the density of the scores below.

    With resamples, their median and their band; the curve of the data itself is then the thin line.
    Where there are too few scores to speak of, there is a hatch and no curve: where the curve has
    no support, and where its kernel averages over fewer than five rows.

    Parameters
    ----------
    curve : ReliabilityCurve
    ax : matplotlib Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib Axes
    """
    return plot_result(curve, ax)


def plot_result(
    result: Any, ax: "Axes | None" = None, band: "ConsistencyBand | None" = None
) -> "Axes":
    """A diagram or a curve on axes of its own, with a legend below, where it hides nothing."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(4.5, 5.4), layout="constrained")[1]
    across, up = draw_result(result, ax, band)
    ax.set(xlabel=across, ylabel=up)
    # Labels of classes are the caller's: a dollar is no formula.
    ax.set_title(f"{result.setting}, calibration error {result.value:.4f}", parse_math=False)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize="small"
    )
    return ax


def draw_result(
    result: Any, ax: "Axes", band: "ConsistencyBand | None" = None, is_panel: bool = False
) -> tuple[str, str]:
    """Draw a diagram or a curve; what is across and what is up."""
    if hasattr(result, "posterior"):
        draw_curve(result, ax, is_panel)
        return "score", "probability of a hit"
    draw_diagram(result, ax, band, is_panel)
    return "mean score", "frequency of hits"


def plot_classes(
    results: "Sequence[ReliabilityDiagram] | Sequence[ReliabilityCurve]", *,
    columns: int | None = None, figure: "Figure | None" = None,
) -> "Figure":  # fmt: skip
    """A panel for each class, all with the same axes and one legend.

    Parameters
    ----------
    results : list of ReliabilityDiagram or of ReliabilityCurve
        Those of ``setting="classwise"``. Of more than twelve, the twelve with the largest errors
        are shown, the largest first, and the title says so.
    columns : int, optional
        Panels side by side; without it, as many as fill the rows best.
    figure : matplotlib Figure, optional
        Where to draw: an empty one with ``layout="constrained"``; without it, a new one.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError
        Without results, or without columns.
    """
    if not len(results):
        raise ValueError("results: there are none to draw")
    worst: list[Any] = list(results)
    if len(worst) > MOST_PANELS:
        worst = sorted(worst, key=lambda result: np.nan_to_num(-result.value, nan=1.0))
    worst = worst[:MOST_PANELS]
    n = len(worst)
    across = best_columns(n) if columns is None else check_integer("columns", columns, 1, 2**31)
    across = min(across, n)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=panels_size(n, across), layout="constrained")
    if n < len(results):
        figure.suptitle(f"the {n} of {len(results)} classes with the largest errors")
    grid = figure.subplots(-(-n // across), across, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[n:]:
        ax.remove()
    panels = list(grid.flat[:n])
    labels = [draw_panel(result, ax) for ax, result in zip(panels, worst, strict=True)]
    for ax in panels[-across:]:  # the lowest of each column
        ax.set_xlabel(labels[0][0], fontsize="small")
        ax.tick_params(labelbottom=True)
    for ax in panels[::across]:
        ax.set_ylabel(labels[0][1], fontsize="small")
    entries: dict[str, Any] = {}  # whatever occurs in one of the panels
    for ax in panels:
        marks, names = ax.get_legend_handles_labels()
        entries = {**dict(zip(names, marks, strict=True)), **entries}
    figure.legend(
        entries.values(), entries, loc="outside lower center", frameon=False, fontsize="small",
        ncols=max(2, int(figure.get_figwidth() // ENTRY)),
    )  # fmt: skip
    return figure


def best_columns(n: int) -> int:
    """Columns that leave few gaps: all of a few, else three to five, rather four."""
    return n if n <= 4 else min((4, 3, 5), key=lambda columns: -n % columns)


def panels_size(n: int, columns: int | None = None) -> tuple[float, float]:
    """Inches of a figure of `n` panels that wastes no room."""
    n = min(n, MOST_PANELS)
    across = min(columns or best_columns(n), n)
    return AROUND[0] + PANEL[0] * across, AROUND[1] + PANEL[1] * -(-n // across)


def draw_panel(result: Any, ax: "Axes") -> tuple[str, str]:
    """Draw one of the small multiples; what is across and what is up."""
    name, error = result.setting, f"{result.value:.4f}"
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    title = f"{name}, {error}" if len(name) <= LONGEST_NAME / 2 else f"{name}\n{error}"
    ax.set_title(title, fontsize="small", parse_math=False)
    ax.tick_params(labelsize="small")
    return draw_result(result, ax, is_panel=True)
