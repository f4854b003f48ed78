"""Marks of pictures: how bins and a curve look on given axes. Needs matplotlib.

Models differ in colour, and in grey in the shape of their points and in dashes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.kernels.types import F64

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
# Square points of the mark of an empty bin, and the excess of the fullest, which is 7 points wide.
AREA, MORE = 10.0, 30.0
# Occupancy and density take the lowest quarter of the axes.
LOWEST = 0.25
# Axes of scores that are all less than this end beyond them, by this factor.
RARE, MARGIN = 0.3, 1.1
# Widths of bins that differ by less are equal.
EVEN = 1e-9
# Points of the side of axes with the marks above; on smaller ones they are smaller, to a limit.
SIDE, THIN = 220, 0.6
# The first models on the same axes; the next begin again.
SHAPES, DASHES = "osD^v", ("-", "--", "-.", ":")
# What the line of a model, and the hatch where one has too few scores, are known by among all that
# may be on axes: an entry of their attributes, as an id would be written to SVG, each time.
ROLE, MODEL, HATCH = "fastece", "model", "hatch"
# The entry of the texts that a page shows while the pointer is on each part of a mark.
TIPS = "fastece tips"
# A mark of 7 points covers 0.05 of axes of two inches: of scores so near the ends all lie on each
# other, and where they are most of the rows, a picture needs axes that spread them.
NEAR, HEAPED = 0.05, 0.5
# The smallest distance from 0 and 1 on axes of log odds, and the ticks there.
NEAREST = 1e-4
ODDS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999)


class AxesRange(NamedTuple):
    """Range of axes, the same both ways, plain or of log odds."""

    low: float = 0.0
    high: float = 1.0
    is_logit: bool = False


PLAIN = AxesRange()


class Style(NamedTuple):
    """Style of a model: the `place`-th on its axes, lines `scale` times as wide."""

    color: Any  # None: the next of the axes
    label: str
    place: int
    span: AxesRange
    scale: float
    is_panel: bool = False

    def inside(self, values: F64) -> F64:
        """Clip values to the axes; log odds have no place for 0 and 1."""
        return np.asarray(values.clip(self.span.low, self.span.high))


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing(ABC):
    """Numbers that a picture shows of one model; arrays are (G,)."""

    estimator: str  # of the error that the title and the legend name
    setting: str
    value: float
    score: F64
    frequency: F64  # observed at each score
    weight: F64  # how often scores occur
    low: F64 | None  # interval of the frequency
    high: F64 | None
    interval_name: str

    @property
    def is_heaped(self) -> bool:
        """Whether most scores are too near 0 or 1 to be separated on plain axes."""
        near = np.abs(self.score - 0.5) >= 0.5 - NEAR  # no: nan, where a bin is empty
        return bool(self.weight[near].sum() > HEAPED * self.weight.sum())

    @property
    def end(self) -> float:
        """End of axes for these scores."""
        return axes_end(float(self.score[self.weight > 0].max(initial=0.0)))

    @abstractmethod
    def draw(self, ax: "Axes", style: Style) -> None:
        """Draw the marks on axes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BinDrawing(Drawing):
    """Bins, as points with intervals, with their occupancy and the band of a test."""

    edges: F64  # (G + 1,)
    rows: F64  # that each bin is worth
    band: tuple[F64, F64] | None  # where the frequency of a calibrated model is to be expected
    band_name: str

    def draw(self, ax: "Axes", style: Style) -> None:
        """Draw points, intervals, the band and the occupancy."""
        filled, scale = self.weight > 0, style.scale
        rows = self.rows[filled]
        few = rows < FEW
        score, frequency = (style.inside(x[filled]) for x in (self.score, self.frequency))
        shape = SHAPES[style.place % len(SHAPES)]
        # The legend shows the mark; on the axes it is drawn by rows, below.
        line = np.where(few, np.nan, frequency)
        color = draw_line(ax, style, score, line, 0.8, marker=shape, markevery=[])
        points = ax.scatter(
            score, frequency, s=scale**2 * (AREA + MORE * rows / rows.max(initial=1e-300)),
            marker=shape, facecolors=["none" if hollow else color for hollow in few],
            edgecolors=color, linewidths=scale, zorder=5, clip_on=False,
        )  # fmt: skip
        tips = vars(points)[TIPS] = [self.tip(int(k)) for k in np.flatnonzero(filled)]
        if few.any():
            ax.plot(
                [], [], color=color, marker=shape, markerfacecolor="none", markersize=4 * scale,
                linestyle="", label=f"fewer than {FEW} rows",
            )  # fmt: skip
        if self.low is not None and self.high is not None:
            low, high = style.inside(self.low[filled]), style.inside(self.high[filled])
            for which, alpha in ((~few, 1.0), (few, PALE)):
                if which.any():
                    ax.vlines(
                        score[which], low[which], high[which], color=color, alpha=alpha, zorder=3,
                        linewidth=1.2 * scale, label=self.interval_name,
                    )  # fmt: skip
        left, width = self.edges[:-1], np.diff(self.edges)
        if self.band is not None:  # as bars, with an outline to set them off in print
            low, high = (style.inside(end[filled]) for end in self.band)
            ax.bar(
                left[filled], high - low, width[filled], bottom=low, align="edge", zorder=2,
                facecolor=(color, 0.15), edgecolor=(color, 0.5), linewidth=0.8 * scale,
                label=self.band_name,
            )  # fmt: skip
        share = self.weight / max(self.weight.sum(), 1e-300)
        height = to_quarter(ax, style, share / np.maximum(width, 1e-300))
        if style.place:
            draw_outline(ax, style, color, height, self.edges)
        elif not style.span.is_logit:
            is_even = np.ptp(width) < EVEN and not style.is_panel
            name = f"rows (up to {100 * share.max():.0f} %)" if is_even else "density of rows"
            bars = ax.bar(left, height, width, align="edge", facecolor=LIGHT, zorder=1, label=name)
            for k, tip in zip(np.flatnonzero(filled), tips, strict=True):
                vars(bars[k])[TIPS] = [tip]

    def tip(self, k: int) -> str:
        """Write the numbers of a bin."""
        place = f"{self.edges[k]:.3g} to {self.edges[k + 1]:.3g}: {self.rows[k]:.6g} rows"
        text = f"{place}, score {self.score[k]:.3g}, observed {self.frequency[k]:.3g}"
        if self.low is None or self.high is None:
            return text
        return f"{text}, {self.interval_name} {self.low[k]:.3g} to {self.high[k]:.3g}"


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveDrawing(Drawing):
    """A curve with its band and the density of the scores."""

    enough: Any  # (G,) bools: where there are scores enough for a curve
    median: F64 | None  # of resamples

    def draw(self, ax: "Axes", style: Style) -> None:
        """Draw the curve, its band, the density, and a hatch where scores are few."""
        s = style.inside(self.score)
        enough = self.enough & (s == self.score)
        known = np.where(enough, self.frequency, np.nan)
        color = draw_line(ax, style, s, style.inside(known), 2.0, clip_on=False)
        if self.low is not None and self.high is not None:
            ax.fill_between(
                s, style.inside(self.low), style.inside(self.high), where=enough, zorder=3,
                facecolor=(color, 0.2), edgecolor=(color, 0.6), linewidth=0.8,
                label=self.interval_name,
            )  # fmt: skip
        if self.median is not None:
            ax.plot(
                s, style.inside(np.where(enough, self.median, np.nan)), color=color, zorder=5,
                linewidth=0.8 * style.scale, linestyle=":", clip_on=False,
                label="median of resamples",
            )  # fmt: skip
        height = to_quarter(ax, style, self.weight)
        if style.place:  # a hatch would not tell which of the models has too few scores there
            for mark in [mark for mark in ax.collections if vars(mark).get(ROLE) == HATCH]:
                mark.remove()
            draw_outline(ax, style, color, height[:-1], s)
        elif not style.span.is_logit:
            scale = "own scale" if style.is_panel else f"up to {self.weight.max():.2g}"
            ax.fill_between(
                s, height, facecolor=DENSITY, edgecolor=GREY, linewidth=0.6, zorder=1,
                label=f"density ({scale})",
            )  # fmt: skip
        if not style.place and not self.enough.all():
            hatch = ax.fill_between(
                s, *style.span[:2], where=~self.enough, facecolor="none", edgecolor=LIGHT,
                hatch="///", linewidth=0.5, zorder=0, label="too few scores",
            )  # fmt: skip
            vars(hatch)[ROLE] = HATCH


def draw_line(ax: "Axes", style: Style, x: F64, y: F64, width: float, **options: Any) -> Any:
    """Draw the line that a model is known by in the legend; return its colour."""
    (line,) = ax.plot(
        x, y, color=style.color, linestyle=DASHES[style.place % len(DASHES)],
        linewidth=width * style.scale, zorder=4, label=style.label, **options,
    )  # fmt: skip
    vars(line)[ROLE] = MODEL
    return line.get_color()


def draw_outline(ax: "Axes", style: Style, color: Any, height: F64, edges: F64) -> None:
    """Draw occupancy or density of a model that must not cover those before it."""
    if not style.span.is_logit:
        ax.stairs(height, edges, color=color, linewidth=0.8 * style.scale, alpha=0.7, zorder=1.5)


def to_quarter(ax: "Axes", style: Style, density: F64) -> F64:
    """Scale densities by the largest of the first model, which has a quarter."""
    if not style.place or ROLE not in vars(ax):
        vars(ax)[ROLE] = max(density.max(), 1e-300)
    height = style.span.high * LOWEST * density / vars(ax)[ROLE]
    return np.asarray(height.clip(0, style.span.high))


def axes_end(top: float) -> float:
    """Return the end of axes: beyond the scores of rare events, and 1 of others."""
    return MARGIN * max(top, 1e-6) if top < RARE else 1.0


def is_model(mark: Any) -> bool:
    """Return whether a mark stands for a model, not for its interval or rows."""
    return bool(vars(mark).get(ROLE) == MODEL) if hasattr(mark, "__dict__") else False


def size_of(ax: "Axes") -> tuple[float, float]:
    """Measure the points across and up that a figure has for axes."""
    box, place = ax.figure.bbox, ax.get_position(original=True)
    unit = 72 / ax.figure.dpi
    return float(place.width * box.width * unit), float(place.height * box.height * unit)


def scale_of(ax: "Axes") -> float:
    """Return the factor by which marks shrink on small axes."""
    return min(1.0, max(THIN, min(size_of(ax)) / SIDE))


def draw_square(ax: "Axes", span: AxesRange) -> None:
    """Set up square axes with the diagonal of a calibrated model."""
    from matplotlib.ticker import MaxNLocator

    low, high, is_logit = span
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


def logit_range(drawings: Any) -> AxesRange:
    """Find axes of log odds that hold all scores and rates but 0 and 1."""
    values = np.concatenate([part for x in drawings for part in (x.score, x.frequency)])
    values = values[(values > NEAREST) & (values < 1 - NEAREST)]
    odds = np.log(values / (1 - values))
    low, high = 1 / (1 + np.exp(-np.array([odds.min(initial=0) - 0.5, odds.max(initial=0) + 0.5])))
    return AxesRange(max(float(low), NEAREST), min(float(high), 1 - NEAREST), True)
