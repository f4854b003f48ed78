"""Marks of the pictures: what a diagram and a curve look like on given axes. Needs matplotlib.

Models are told apart by colour, and in grey by the shape of their points and by dashes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.reliability.curve import ReliabilityCurve
from fastece.reliability.diagram import ReliabilityDiagram
from fastece.typing import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK, GREY = "0.1", "0.55"
# Occupancy, hatches and density are seen on white and on black; the density is darker than the band
# that may lie over it.
LIGHT, DENSITY = ("0.5", 0.3), ("0.5", 0.45)
# The fewest rows that make a curve: one alone counts as 1.4.
FEWEST = 5
# Bins of fewer rows are hollow: at 10 hits of 20 the 95 % interval is still half of the axes wide.
FEW = 20
# Opacity of their intervals; no line leads to them.
PALE = 0.35
# Square points of the mark of a bin without weight, and what the fullest has more: 7 points wide.
AREA, MORE = 10.0, 30.0
# Occupancy and density take the lowest quarter of the axes.
LOWEST = 0.25
# Points of the side of axes with the marks above; on smaller ones they are smaller, to a limit.
SIDE, THIN = 220, 0.6
# The legend of all small panels says nothing of a single one.
OWN = "own scale"
# The first models on the same axes; the next begin again.
SHAPES, DASHES = "osD^v", ("-", "--", "-.", ":")
# What the line of a model, and the hatch where one has too few scores, are known by among all that
# may be on axes.
MODEL, HATCH = "fastece-model", "fastece-hatch"
# A mark of 7 points covers 0.05 of axes of two inches: of scores so near the ends all lie on each
# other, and where they are most of the rows, a picture needs axes that spread them.
NEAR, HEAPED = 0.05, 0.5
# The smallest distance from 0 and 1 on axes of log odds, and what is marked there.
NEAREST = 1e-4
ODDS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999)


class Frame(NamedTuple):
    """What axes span, both ways, and whether they are of log odds."""

    low: float = 0.0
    high: float = 1.0
    is_logit: bool = False


class Look(NamedTuple):
    """How a result is drawn."""

    color: Any  # None: the next of the axes
    label: str
    band: Any  # a ConsistencyBand, or whether there are to be intervals at all
    place: int  # of how many models there are marks on the axes before
    frame: Frame
    scale: float  # what widths of lines and marks are multiplied by
    is_panel: bool = False

    def inside(self, values: F64) -> F64:
        """Values that lie on the axes: of log odds, 0 and 1 do not."""
        return np.asarray(values.clip(self.frame.low, self.frame.high))


def draw_diagram(diagram: ReliabilityDiagram, ax: "Axes", look: Look) -> None:
    """The bins on axes, as points with intervals, with their occupancy and the band."""
    filled, scale = diagram.count > 0, look.scale
    left, width, rows = diagram.edges[:-1], np.diff(diagram.edges), diagram.rows[filled]
    score, frequency = look.inside(diagram.score[filled]), look.inside(diagram.frequency[filled])
    shape = SHAPES[look.place % len(SHAPES)]
    # The legend shows the mark; on the axes it is drawn by rows, below.
    few = rows < FEW
    color = draw_line(
        ax, look, score, np.where(few, np.nan, frequency), 0.8, marker=shape, markevery=[]
    )
    ax.scatter(
        score, frequency, s=scale**2 * (AREA + MORE * rows / rows.max(initial=1e-300)),
        marker=shape, facecolors=["none" if hollow else color for hollow in few],
        edgecolors=color, linewidths=scale, zorder=5, clip_on=False,
    )  # fmt: skip
    if few.any():
        ax.plot(
            [], [], color=color, marker=shape, markerfacecolor="none", markersize=4 * scale,
            linestyle="", label=f"fewer than {FEW} rows",
        )  # fmt: skip
    level = getattr(look.band, "confidence_level", 0.95)
    if look.band:
        low, high = (look.inside(end[filled]) for end in diagram.interval(level))
        for which, alpha in ((~few, 1.0), (few, PALE)):
            if which.any():
                ax.vlines(
                    score[which], low[which], high[which], color=color, alpha=alpha, zorder=3,
                    linewidth=1.2 * scale, label=f"{100 * level:g} % interval",
                )  # fmt: skip
    if hasattr(look.band, "low"):  # with an outline, which is told from the occupancy in print
        low, high = look.inside(look.band.low[filled]), look.inside(look.band.high[filled])
        ax.bar(
            left[filled], high - low, width[filled], bottom=low, align="edge",
            facecolor=(color, 0.15), edgecolor=(color, 0.5), linewidth=0.8 * scale, zorder=2,
            label=f"{100 * level:g} % if calibrated",
        )  # fmt: skip
    share = diagram.count.max() / max(diagram.count.sum(), 1e-300)
    height = to_quarter(diagram.count)
    if look.place:
        draw_outline(ax, look, color, height, diagram.edges)
    elif not look.frame.is_logit:
        ax.bar(
            left, height, width, align="edge", facecolor=LIGHT, zorder=1,
            label=f"rows ({OWN if look.is_panel else f'up to {100 * share:.0f} %'})",
        )  # fmt: skip


def draw_curve(curve: ReliabilityCurve, ax: "Axes", look: Look) -> None:
    """The curve on axes, with its band and the density of the scores."""
    scale, s, height = look.scale, look.inside(curve.score), to_quarter(curve.density)
    # With sharp scores the bandwidth is small, and elsewhere a density jumps from row to row.
    fewest = 0 if curve.bandwidth is None else FEWEST
    enough = curve.supported & (curve.rows >= fewest)
    known = np.where(enough, curve.probability, np.nan)
    color = draw_line(ax, look, s, look.inside(known), 2.0, clip_on=False)
    if look.band and curve.low is not None and curve.high is not None:
        of = "resamples" if curve.n_resamples else "the posterior"
        ax.fill_between(
            s, look.inside(curve.low), look.inside(curve.high), where=enough, zorder=3,
            facecolor=(color, 0.2), edgecolor=(color, 0.6), linewidth=0.8,
            label=f"{100 * curve.confidence_level:g} % of {of}",
        )  # fmt: skip
    if look.band and curve.median is not None:
        ax.plot(
            s, look.inside(np.where(enough, curve.median, np.nan)), color=color, zorder=5,
            linewidth=0.8 * scale, linestyle=":", clip_on=False, label="median of resamples",
        )  # fmt: skip
    if look.place:  # a hatch would not tell which of the models has too few scores there
        for mark in [mark for mark in ax.collections if mark.get_gid() == HATCH]:
            mark.remove()
        draw_outline(ax, look, color, height[:-1], s)
    elif not look.frame.is_logit:
        ax.fill_between(
            s, height, facecolor=DENSITY, edgecolor=GREY, linewidth=0.6, zorder=1,
            label=f"density ({OWN if look.is_panel else f'up to {curve.density.max():.3g}'})",
        )  # fmt: skip
        if not enough.all():
            ax.fill_between(
                s, 0, 1, where=~enough, facecolor="none", edgecolor=LIGHT, hatch="///",
                linewidth=0.5, zorder=0, label="too few scores", gid=HATCH,
            )  # fmt: skip


def draw_line(ax: "Axes", look: Look, x: F64, y: F64, width: float, **style: Any) -> Any:
    """The line that a model is known by in the legend; its colour."""
    dashes = DASHES[look.place % len(DASHES)]
    (line,) = ax.plot(
        x, y, color=look.color, linestyle=dashes, linewidth=width * look.scale, zorder=4,
        label=look.label, gid=MODEL, **style,
    )  # fmt: skip
    return line.get_color()


def draw_outline(ax: "Axes", look: Look, color: Any, height: F64, edges: F64) -> None:
    """Occupancy or density of a model that comes after others, which it must not cover."""
    if not look.frame.is_logit:
        ax.stairs(height, edges, color=color, linewidth=0.8 * look.scale, alpha=0.7, zorder=1.5)


def place_of(ax: "Axes") -> tuple[float, float]:
    """Points across and up that a figure has for axes."""
    box, place = ax.figure.bbox, ax.get_position(original=True)
    unit = 72 / ax.figure.dpi
    return float(place.width * box.width * unit), float(place.height * box.height * unit)


def scale_of(ax: "Axes") -> float:
    """How much smaller marks are on small axes."""
    return min(1.0, max(THIN, min(place_of(ax)) / SIDE))


def draw_frame(ax: "Axes", frame: Frame) -> None:
    """A square, and its diagonal, where scores come true as often as they say."""
    from matplotlib.ticker import MaxNLocator

    low, high, is_logit = frame
    ax.plot(
        [low, high], [low, high], color=GREY, linewidth=1, linestyle=(0, (4, 2)), zorder=2,
        label="calibrated",
    )  # fmt: skip
    for axis, set_scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        if is_logit:
            set_scale("logit", nonpositive="clip")
            ticks = [p for p in ODDS if low < p < high]  # what is beyond lies at the ends
            axis.set_ticks(ticks, labels=[f"{p:g}" for p in ticks])
            axis.set_ticks([], minor=True)
        else:  # as many as there is room for
            axis.set_major_locator(MaxNLocator("auto", steps=[2, 5, 10]))
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")


class Kind(NamedTuple):
    """How one kind of result is drawn, and the names of its rates of hits and of how often its
    scores occur."""

    draw: Callable[[Any, "Axes", Look], None]
    rate: str
    weight: str
    across: str
    up: str


KINDS: dict[type[Any], Kind] = {
    ReliabilityDiagram: Kind(draw_diagram, "frequency", "count", "mean score", "frequency of hits"),
    ReliabilityCurve: Kind(draw_curve, "probability", "density", "score", "probability of a hit"),
}


def kind_of(result: Any) -> Kind:
    """The row of the table for a result."""
    if type(result) not in KINDS:
        raise TypeError(
            f"results: must be of {' or '.join(kind.__name__ for kind in KINDS)}, got "
            f"{type(result).__name__}"
        )
    return KINDS[type(result)]


def is_heaped(result: Any) -> bool:
    """Whether most rows have scores so near 0 or 1 that plain axes do not tell them apart."""
    weight = getattr(result, kind_of(result).weight)
    near = np.abs(result.score - 0.5) >= 0.5 - NEAR  # no: nan, where a bin is empty
    return bool(weight[near].sum() > HEAPED * weight.sum())


def logit_frame(results: Any) -> Frame:
    """Axes of log odds with every score of some results, and every rate that is not 0 or 1."""
    parts = [(result.score, getattr(result, kind_of(result).rate)) for result in results]
    values = np.concatenate([part for pair in parts for part in pair])
    values = values[(values > NEAREST) & (values < 1 - NEAREST)]
    odds = np.log(values / (1 - values))
    low, high = 1 / (1 + np.exp(-np.array([odds.min(initial=0) - 0.5, odds.max(initial=0) + 0.5])))
    return Frame(max(float(low), NEAREST), min(float(high), 1 - NEAREST), True)


def to_quarter(height: F64) -> F64:
    """Heights of which the largest is a quarter."""
    return np.asarray(LOWEST * height / max(height.max(), 1e-300))
