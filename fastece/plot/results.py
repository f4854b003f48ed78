"""Pictures, drawn from results alone. Needs matplotlib (``pip install fastece[plot]``)."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.checks.parameters import check_flag, check_integer
from fastece.plot.legend import LETTER, draw_legend, entries_of
from fastece.plot.marks import (
    MODEL,
    Frame,
    Look,
    draw_frame,
    is_heaped,
    kind_of,
    logit_frame,
    place_of,
    scale_of,
)

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
# Points of the height of axes below which the label at their side takes two lines.
LOW = 165
# Inches of one result with its legend.
WIDTH, HEIGHT = 4.5, 5.4


class Panel(NamedTuple):
    """What axes show: results by the names of their models, the band of the first, or whether there
    are intervals, and whether the axes are of log odds."""

    results: Mapping[str | None, Any]
    band: Any = True
    is_logit: bool = False

    @property
    def first(self) -> Any:
        """The result that names the axes."""
        return next(iter(self.results.values()))

    @property
    def error(self) -> float:
        """The largest error of the models; one without a value comes last."""
        return max(float(np.nan_to_num(result.value, nan=-1.0)) for result in self.results.values())

    def check(self) -> None:
        """A band has a bar for each bin that holds rows."""
        filled = getattr(self.first, "count", np.zeros(0)) > 0
        known = np.isfinite(self.band.low) if hasattr(self.band, "low") else filled
        if not np.array_equal(known, filled):
            raise ValueError(
                f"band: must be of the bins of the diagram, {filled.size} of which {filled.sum()} "
                f"hold rows; got {known.size} of which {known.sum()} do"
            )

    def draws(self) -> Iterator[tuple[str | None, Any, Any]]:
        """The name, the result and the band of each model."""
        for place, (name, result) in enumerate(self.results.items()):
            yield name, result, bool(self.band) if place else self.band


def plot_diagram(
    diagram: "ReliabilityDiagram", ax: "Axes | None" = None, *, color: Any = None,
    label: str | None = None, legend: bool = True, band: "ConsistencyBand | bool | None" = True,
) -> "Axes":  # fmt: skip
    """Frequency of hits over the mean score of each bin, with its interval, and the occupancy.

    The area of a point grows with the rows of its bin; bins of fewer than 20 rows are hollow. A
    second model on the same axes has the next colour, another shape of points, and an outline for
    its occupancy.

    Parameters
    ----------
    diagram : ReliabilityDiagram
    ax : matplotlib Axes, optional
        Where to draw. Without it, on a new figure; where more than half of the rows have scores
        within 0.05 of 0 or 1, other axes beside show the same over log odds.
    color : color, optional
        By default the next one of the axes.
    label : str, optional
        Name of the model in the legend.
    legend : bool, default True
        Whether there is a legend: beside the axes, or below their labels.
    band : bool or ConsistencyBand, default True
        Whether to draw the intervals of the bins (`ReliabilityDiagram.interval`). The band of
        `fastece.calibration_test` for the same bins adds a bar in each, where the frequency of a
        calibrated model is to be expected; intervals then have its level.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        For a band of other bins, or a legend that is neither True nor False.
    """
    Panel({None: diagram}, band).check()
    return plot_result(diagram, ax, color=color, label=label, legend=legend, band=band)


def plot_curve(
    curve: "ReliabilityCurve", ax: "Axes | None" = None, *, color: Any = None,
    label: str | None = None, legend: bool = True, band: bool = True,
) -> "Axes":  # fmt: skip
    """Probability of a hit over the score, with the diagonal, and the density of the scores below.

    Where there are too few scores to speak of, there is no curve, and a hatch where it is the only
    one: where the curve has no support, and where its kernel averages over fewer than five rows.

    Parameters
    ----------
    curve : ReliabilityCurve
    ax, color, label, legend
        As of `plot_diagram`.
    band : bool, default True
        Whether to draw the interval of the curve, and the median of resamples if there are any.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For a legend that is neither True nor False.
    """
    return plot_result(curve, ax, color=color, label=label, legend=legend, band=band)


def plot_result(
    result: Any, ax: "Axes | None" = None, *, color: Any = None, label: str | None = None,
    legend: bool = True, band: Any = True, frame: Frame | None = None,
) -> "Axes":  # fmt: skip
    """A diagram or a curve on axes, which other results may be on."""
    check_flag("legend", legend)
    if ax is None:
        ax, *others = new_axes(2 if is_heaped(result) else 1)
        options: dict[str, Any] = {"color": color, "label": label, "legend": legend, "band": band}
        for other in others:
            plot_result(result, other, frame=logit_frame([result]), **options)
    place = sum(line.get_gid() == MODEL for line in ax.get_lines())
    title = f"{result.estimator}, {result.setting}"
    name = f"error {result.value:.4f}"
    if not place:
        kind = kind_of(result)
        draw_frame(ax, frame or Frame())
        scale = " (log odds)" if frame and frame.is_logit else ""
        is_low = place_of(ax)[1] < LOW
        up = kind.up.replace(" of ", "\nof ") if is_low else kind.up
        ax.set(xlabel=kind.across + scale, ylabel=up + scale)
    if not ax.get_title():
        set_title(ax, title)
    elif label is None and ax.get_title().split() != title.split():
        name = f"{name}, {result.estimator}"
    if label is not None:
        name = f"{name_of(label)}, {name}"
    look = Look(color, name, band, place, frame or Frame(), scale_of(ax))
    kind_of(result).draw(result, ax, look)
    if legend:
        draw_legend(ax)
    return ax


def name_of(label: str) -> str:
    """A label that is not too long, nor taken for one that is to be hidden, as those with "_"."""
    label = repr(label) if label.startswith("_") else label
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"


def new_axes(count: int) -> "list[Axes]":
    """Axes side by side on a new figure of pyplot."""
    figure = open_figure((WIDTH * count, HEIGHT))
    return list(figure.subplots(1, count, squeeze=False).flat)


def open_figure(size: tuple[float, float]) -> "Figure":
    """A new figure of pyplot, of a width and a height in inches, or an error that says what to
    install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'fastece[plot]'") from error
    return plt.figure(figsize=size, layout="constrained")


def set_title(ax: "Axes", title: str) -> None:
    """A title in lines that are as wide as the place of the axes."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size="medium").get_size_in_points()
    width = max(12, int(place_of(ax)[0] / (LETTER * size)))
    # Labels of classes are the caller's: a dollar is no formula.
    ax.set_title(fill(title, width), fontsize=size, parse_math=False)


def plot_panel(panel: Panel, ax: "Axes") -> None:
    """All results of a panel on axes of their own."""
    frame = logit_frame(panel.results.values()) if panel.is_logit else Frame()
    for name, result, band in panel.draws():
        plot_result(result, ax, label=name, band=band, frame=frame)


def plot_classes(
    results: "Sequence[ReliabilityDiagram] | Sequence[ReliabilityCurve] | Mapping[str, Any]", *,
    band: Any = True, columns: int | None = None, figure: "Figure | None" = None,
) -> "Figure":  # fmt: skip
    """A panel for each class, all with the same axes and one legend.

    Parameters
    ----------
    results : list of ReliabilityDiagram or of ReliabilityCurve
        Those of ``setting="classwise"``; of several models, a dict of such lists by the names of
        the models. Of more than twelve classes, the twelve with the largest errors are shown, the
        largest first, and the title says so.
    band : bool, or list of ConsistencyBand, default True
        As of `plot_diagram`; of one model also the band of each class, as
        `fastece.calibration_test` gives them.
    columns : int, optional
        Panels side by side; without it, as many as fill the rows best.
    figure : matplotlib Figure, optional
        Where to draw: an empty one with ``layout="constrained"``; without it, a new one.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError, TypeError
        Without results, or without columns; for models, or a band, of other classes or bins.
    """
    models = results if isinstance(results, Mapping) else {None: results}
    counts = sorted({len(classes) for classes in models.values()})
    if not counts or not counts[-1]:
        raise ValueError("results: there are none to draw")
    bands = band if isinstance(band, Sequence) else [band] * counts[-1]
    if len({*counts, len(bands)}) > 1:
        raise ValueError(
            f"results: must be of the same classes, as band; got {counts} and {len(bands)} of them"
        )
    panels = [
        Panel(dict(zip(models, of_class, strict=True)), one)
        for *of_class, one in zip(*models.values(), bands, strict=True)
    ]
    return draw_classes(panels, columns, figure)


def draw_classes(
    panels: Sequence[Panel], columns: int | None = None, figure: "Figure | None" = None
) -> "Figure":
    """Small multiples."""
    for panel in panels:
        panel.check()
    count, worst = len(panels), list(panels)
    if count > MOST_PANELS:
        worst = sorted(panels, key=lambda panel: panel.error, reverse=True)[:MOST_PANELS]
    n = len(worst)
    across = best_columns(n) if columns is None else check_integer("columns", columns, 1, 2**31)
    across = min(across, n)
    if figure is None:
        figure = open_figure(panels_size(n, across))
    if n < count:
        figure.suptitle(f"the {n} of {count} classes with the largest errors")
    grid = figure.subplots(-(-n // across), across, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[n:]:
        ax.remove()
    axes = list(grid.flat[:n])
    for panel, ax in zip(worst, axes, strict=True):
        draw_panel(panel, ax)
    kind = kind_of(worst[0].first)
    for ax in axes[-across:]:  # the lowest of each column
        ax.set_xlabel(kind.across, fontsize="small")
        ax.tick_params(labelbottom=True)
    for ax in axes[::across]:
        ax.set_ylabel(kind.up, fontsize="small")
    marks, names = zip(*entries_of(*axes), strict=True)
    legend = figure.legend(
        marks, names, loc="outside lower center", frameon=False, fontsize="small",
        ncols=max(2, int(figure.get_figwidth() // ENTRY)),
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def best_columns(n: int) -> int:
    """Columns that leave few gaps: all of a few, else three to five, rather four."""
    return n if n <= 4 else min((4, 3, 5), key=lambda columns: -n % columns)


def panels_size(n: int, columns: int | None = None) -> tuple[float, float]:
    """Inches of a figure of `n` panels that wastes no room."""
    n = min(n, MOST_PANELS)
    across = min(columns or best_columns(n), n)
    return AROUND[0] + PANEL[0] * across, AROUND[1] + PANEL[1] * -(-n // across)


def draw_panel(panel: Panel, ax: "Axes") -> None:
    """Draw one of the small multiples."""
    errors = ", ".join(f"{result.value:.4f}" for result in panel.results.values())
    name = panel.first.setting
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    is_short = len(f"{name}, {errors}") <= LONGEST_NAME / 2 + len(", 0.0000")
    title = f"{name}, {errors}" if is_short else f"{name}\n{errors}"
    ax.set_title(title, fontsize="small", parse_math=False)
    ax.tick_params(labelsize="small")
    draw_frame(ax, Frame())
    for place, (label, result, band) in enumerate(panel.draws()):
        kind = kind_of(result)
        name = kind.up if label is None else name_of(label)
        kind.draw(result, ax, Look(None, name, band, place, Frame(), scale_of(ax), is_panel=True))
