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

__all__ = ["panels_size", "plot_classes", "plot_curve", "plot_diagram", "plot_result"]

# Of more classes than can be read, small multiples show the worst.
MOST_PANELS = 12
# Inches of a panel with its title, and of what is around all of them.
PANEL, AROUND = (1.9, 2.05), (0.6, 0.9)
# Characters of the name of a class over a panel, and inches of an entry of the legend.
LONGEST_NAME, ENTRY = 28, 1.9


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


def plot_result(result: Any, ax: "Axes | None" = None, band: Any = None) -> "Axes":
    """A diagram or a curve on axes of its own, with a legend below, where it hides nothing."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(4.5, 5.4), layout="constrained")[1]
    if is_curve(result):
        draw_curve(result, ax, f"density of scores (peak {result.density.max():.3g})")
    else:
        share = result.count.max() / max(result.count.sum(), 1e-300)
        draw_diagram(result, ax, f"rows (fullest bin {share:.0%})", band)
    across, up = labels_of(result)
    ax.set(xlabel=across, ylabel=up)
    # Labels of classes are the caller's: a dollar is no formula.
    ax.set_title(f"{result.setting}, calibration error {result.value:.4f}", parse_math=False)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize="small"
    )
    return ax


def is_curve(result: Any) -> bool:
    """Whether this is a curve rather than a diagram."""
    return hasattr(result, "posterior")


def labels_of(result: Any) -> tuple[str, str]:
    """What is across and what is up."""
    curve, diagram = ("score", "probability of a hit"), ("mean score", "frequency of hits")
    return curve if is_curve(result) else diagram


def plot_classes(
    results: "Sequence[ReliabilityDiagram] | Sequence[ReliabilityCurve]",
    *,
    columns: int | None = None,
    figure: "Figure | None" = None,
) -> "Figure":
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
    worst = list(results)
    if len(worst) > MOST_PANELS:
        errors = np.nan_to_num([result.value for result in results], nan=-1.0)
        worst = [results[k] for k in np.argsort(-errors, kind="stable")[:MOST_PANELS]]
    n = len(worst)
    across = best_columns(n) if columns is None else check_integer("columns", columns, 1, 2**31)
    across = min(across, n)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=panels_size(n, across), layout="constrained")
    if n < len(results):
        figure.suptitle(f"the {n} of {len(results)} classes with the largest errors")
    grid = figure.subplots(-(-n // across), across, sharex=True, sharey=True, squeeze=False)
    panels = list(grid.flat[:n])
    for ax in grid.flat[n:]:
        ax.remove()
    for ax, result in zip(panels, worst, strict=True):
        draw_panel(result, ax)
    label_panels(figure, panels, across, labels_of(worst[0]))
    return figure


def best_columns(n: int) -> int:
    """Columns that leave few gaps: all of a few, else three to five, rather four."""
    return n if n <= 4 else min((4, 3, 5), key=lambda columns: -n % columns)


def panels_size(n: int, columns: int | None = None) -> tuple[float, float]:
    """Inches of a figure of `n` panels that wastes no room."""
    n = min(n, MOST_PANELS)
    across = min(columns or best_columns(n), n)
    return AROUND[0] + PANEL[0] * across, AROUND[1] + PANEL[1] * -(-n // across)


def draw_panel(result: Any, ax: "Axes") -> None:
    """One of the small multiples."""
    if is_curve(result):
        draw_curve(result, ax, "density (own scale)", scale=0.7)
    else:
        draw_diagram(result, ax, "rows (own scale)", scale=0.7)
    name, error = result.setting, f"{result.value:.4f}"
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    title = f"{name}, {error}" if len(name) <= LONGEST_NAME / 2 else f"{name}\n{error}"
    ax.set_title(title, fontsize="small", parse_math=False)
    ax.tick_params(labelsize="small")


def label_panels(
    figure: "Figure", panels: "list[Axes]", across: int, labels: tuple[str, str]
) -> None:
    """Labels at the left and at the foot, and a legend of whatever occurs in one of the panels."""
    for ax in panels[-across:]:  # the lowest of each column
        ax.set_xlabel(labels[0], fontsize="small")
        ax.tick_params(labelbottom=True)
    for ax in panels[::across]:
        ax.set_ylabel(labels[1], fontsize="small")
    entries: dict[str, Any] = {}
    for ax in panels:
        marks, names = ax.get_legend_handles_labels()
        entries = {**dict(zip(names, marks, strict=True)), **entries}
    figure.legend(
        entries.values(), entries, loc="outside lower center", frameon=False, fontsize="small",
        ncols=max(2, int(figure.get_figwidth() // ENTRY)),
    )  # fmt: skip
