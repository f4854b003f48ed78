"""Marks of pictures: how bins and a curve look on given axes. Needs matplotlib.

Each model has a colour of its own and, for prints in grey, its own shape of points and dashes.
`BinDrawing` and `CurveDrawing` hold the numbers of one model and draw its marks; `Style` is the
style of a model, and `next_style` chooses it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.kernels.types import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK = "0.1"
GREY = "0.55"
# Occupancy and hatches are visible on white and on black.
LIGHT = ("0.5", 0.3)
# The line on which a calibrated model lies.
CALIBRATED: dict[str, Any] = {
    "color": GREY,
    "linewidth": 1,
    "linestyle": (0, (4, 2)),
    "label": "calibrated",
}
# A curve is drawn where its kernel averages over at least this many rows; one row counts as 1.4.
MIN_ROWS_OF_CURVE = 5
# Points of bins with fewer rows are hollow: at 10 hits of 20 rows, the 95 % interval is half as
# wide as the axes. No line leads to these points.
MIN_ROWS_OF_FILLED_POINT = 20
# Axes of scores that are all below this number end just beyond the largest score.
RARE_SCORE = 0.3
# Styles of the first models on the same axes; they repeat after these.
SHAPES = "osD^v"
DASHES = ("-", "--", "-.", ":")
# Entries in the attributes of an artist, with which it is found again among all on the axes. An id
# of matplotlib would be written to SVG files.
ROLE = "fastece role"
DENSITY_UNIT = "fastece density unit"
# Values of ROLE: the line that stands for a model, and the hatch where scores are too few.
MODEL = "model"
HATCH = "hatch"
# A point 7 points wide covers 0.05 of axes of two inches, so scores that are this near to 0 or 1
# lie on each other. Where they are more than this share of rows, log odds spread them.
NEAR_END = 0.05
CROWDED_SHARE = 0.5
# The smallest distance from 0 and 1 on axes of log odds, and the ticks there.
MIN_PROBABILITY = 1e-4
LOGIT_TICKS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999)
# The smallest divisor; where nothing is counted, heights are 0.
MIN_DIVISOR = 1e-300


# --- styles ---------------------------------------------------------------------------------


class AxesRange(NamedTuple):
    """Range of square axes, plain or of log odds."""

    low: float = 0.0
    high: float = 1.0
    is_logit: bool = False


PLAIN = AxesRange()


class Style(NamedTuple):
    """Style of one model on its axes.

    Attributes
    ----------
    color : color or None
        None for the next colour of the axes.
    label : str
        Name in the legend.
    model_index : int
        Number of models that are on the axes already.
    span : AxesRange
    scale : float
        Factor of the widths of lines and points.
    is_panel : bool
        Whether the axes are one of many small ones, which share a legend.
    """

    color: Any
    label: str
    model_index: int
    span: AxesRange
    scale: float
    is_panel: bool = False

    @property
    def is_first(self) -> bool:
        """Whether the model is the first on its axes, which owns the occupancy."""
        return self.model_index == 0

    @property
    def shape(self) -> str:
        """Shape of points."""
        return SHAPES[self.model_index % len(SHAPES)]

    @property
    def dashes(self) -> str:
        """Dashes of lines."""
        return DASHES[self.model_index % len(DASHES)]

    def clip(self, values: F64) -> F64:
        """Clip values to the range of the axes; log odds have no place for 0 and 1."""
        return np.asarray(values.clip(self.span.low, self.span.high))


def next_style(
    ax: "Axes", label: str, color: Any = None, *, span: AxesRange = PLAIN, is_panel: bool = False
) -> Style:
    """Choose the style of the next model on axes, on which others may be."""
    return Style(color, label, count_models(ax), span, scale_of(ax), is_panel)


def count_models(ax: "Axes") -> int:
    """Count the models on axes."""
    return sum(map(is_model, ax.get_lines()))


def is_model(artist: Any) -> bool:
    """Return whether an artist stands for a model, not for its interval or rows."""
    return has_role(artist, MODEL)


def has_role(artist: Any, role: str) -> bool:
    """Return whether an artist was drawn here for a role."""
    return bool(getattr(artist, "__dict__", {}).get(ROLE) == role)


def size_of(ax: "Axes") -> tuple[float, float]:
    """Measure the width and the height in points that a figure has for axes."""
    box = ax.figure.bbox
    place = ax.get_position(original=True)
    unit = 72 / ax.figure.dpi
    return float(place.width * box.width * unit), float(place.height * box.height * unit)


def scale_of(ax: "Axes") -> float:
    """Return the factor by which marks shrink on axes of less than 220 points."""
    return min(1.0, max(0.6, min(size_of(ax)) / 220))


# --- drawings of one model ------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing(ABC):
    """Numbers of one model that a picture shows; arrays are (G,).

    Attributes
    ----------
    estimator, setting : str
        The estimator of the error that title and legend name, and its setting.
    value : float
        That error.
    score, frequency : (G,) float64 arrays
        Scores, and the observed frequency at each.
    weight : (G,) float64 array
        How often each score occurs, in any unit.
    low, high : (G,) float64 arrays or None
        Interval of the frequency.
    interval_name : str
        Name of the interval in the legend.
    """

    estimator: str
    setting: str
    value: float
    score: F64
    frequency: F64
    weight: F64
    low: F64 | None
    high: F64 | None
    interval_name: str

    @property
    def is_crowded(self) -> bool:
        """Whether most scores are too near to 0 or 1 to be separated on plain axes."""
        # The score of an empty bin is nan, which is not near.
        is_near = np.abs(self.score - 0.5) >= 0.5 - NEAR_END
        return bool(self.weight[is_near].sum() > CROWDED_SHARE * self.weight.sum())

    @property
    def end(self) -> float:
        """End of axes for these scores."""
        return axes_end(float(self.score[self.weight > 0].max(initial=0.0)))

    @abstractmethod
    def draw(self, ax: "Axes", style: Style) -> None:
        """Draw the marks on axes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BinDrawing(Drawing):
    """Bins: points with intervals, their occupancy, and the band of a test.

    Attributes
    ----------
    edges : (G + 1,) float64 array
    rows : (G,) float64 array
        Number of rows that each bin is worth.
    band : pair of (G,) float64 arrays, or None
        Range in which the frequency of a calibrated model is expected.
    band_name : str
        Name of the band in the legend.
    """

    edges: F64
    rows: F64
    band: tuple[F64, F64] | None
    band_name: str

    @property
    def filled(self) -> NDArray[np.intp]:
        """Positions of the bins that hold rows."""
        return np.flatnonzero(self.weight > 0)

    def draw(self, ax: "Axes", style: Style) -> None:
        """Draw points, intervals, the band and the occupancy."""
        color = self._draw_points(ax, style)
        self._draw_intervals(ax, style, color)
        self._draw_band(ax, style, color)
        self._draw_occupancy(ax, style, color)

    def _draw_points(self, ax: "Axes", style: Style) -> Any:
        """Draw the points of all bins that hold rows, and return their colour."""
        rows = self.rows[self.filled]
        is_hollow = rows < MIN_ROWS_OF_FILLED_POINT
        score = style.clip(self.score[self.filled])
        frequency = style.clip(self.frequency[self.filled])
        line = np.where(is_hollow, np.nan, frequency)
        # The legend shows the shape; on the axes, the size of points depends on their rows.
        options = {"marker": style.shape, "markevery": []}
        color = draw_line(ax, style, score, line, width=0.8 * style.scale, **options)
        # The point of the fullest bin is 7 points wide.
        area = 10.0 + 30.0 * rows / rows.max(initial=MIN_DIVISOR)
        ax.scatter(
            score,
            frequency,
            s=style.scale**2 * area,
            marker=style.shape,
            facecolors=["none" if hollow else color for hollow in is_hollow],
            edgecolors=color,
            linewidths=style.scale,
            zorder=5,
            clip_on=False,
        )
        if is_hollow.any():
            ax.plot(
                [],
                [],
                color=color,
                marker=style.shape,
                markerfacecolor="none",
                markersize=4 * style.scale,
                linestyle="",
                label=f"fewer than {MIN_ROWS_OF_FILLED_POINT} rows",
            )
        return color

    def _draw_intervals(self, ax: "Axes", style: Style, color: Any) -> None:
        """Draw the interval of each point, paler where the point is hollow."""
        if self.low is None or self.high is None:
            return
        is_hollow = self.rows < MIN_ROWS_OF_FILLED_POINT
        is_filled = self.weight > 0
        for bins, alpha in ((is_filled & ~is_hollow, 1.0), (is_filled & is_hollow, 0.35)):
            if bins.any():
                ax.vlines(
                    style.clip(self.score[bins]),
                    style.clip(self.low[bins]),
                    style.clip(self.high[bins]),
                    color=color,
                    alpha=alpha,
                    zorder=3,
                    linewidth=1.2 * style.scale,
                    label=self.interval_name,
                )

    def _draw_band(self, ax: "Axes", style: Style, color: Any) -> None:
        """Draw the band of a test as bars, whose outline sets them off in print."""
        if self.band is None:
            return
        low, high = (style.clip(end[self.filled]) for end in self.band)
        ax.bar(
            self.edges[self.filled],
            high - low,
            np.diff(self.edges)[self.filled],
            bottom=low,
            align="edge",
            zorder=2,
            facecolor=(color, 0.15),
            edgecolor=(color, 0.5),
            linewidth=0.8 * style.scale,
            label=self.band_name,
        )

    def _draw_occupancy(self, ax: "Axes", style: Style, color: Any) -> None:
        """Draw the share of rows over the width of each bin; later models get an outline."""
        width = np.diff(self.edges)
        share = self.weight / max(self.weight.sum(), MIN_DIVISOR)
        height = occupancy_height(ax, style, share / np.maximum(width, MIN_DIVISOR))
        if not style.is_first:
            draw_outline(ax, style, color, height, self.edges)
            return
        if style.span.is_logit:
            return
        name = "density of rows"
        if np.ptp(width) < 1e-9 and not style.is_panel:
            name = f"rows (up to {100 * share.max():.0f} %)"
        ax.bar(self.edges[:-1], height, width, align="edge", facecolor=LIGHT, zorder=1, label=name)


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveDrawing(Drawing):
    """A curve with its band, and the density of the scores.

    Attributes
    ----------
    enough : (G,) bool array
        Where there are enough scores for a curve.
    median : (G,) float64 array or None
        Median of the curves of resamples.
    """

    enough: Any
    median: F64 | None

    def draw(self, ax: "Axes", style: Style) -> None:
        """Draw the curve, its band, the density, and a hatch where scores are few."""
        color = self._draw_curve(ax, style)
        self._draw_density(ax, style, color)
        if style.is_first and not self.enough.all():
            hatch = ax.fill_between(
                style.clip(self.score),
                style.span.low,
                style.span.high,
                where=~self.enough,
                facecolor="none",
                edgecolor=LIGHT,
                hatch="///",
                linewidth=0.5,
                zorder=0,
                label="too few scores",
            )
            vars(hatch)[ROLE] = HATCH

    def _draw_curve(self, ax: "Axes", style: Style) -> Any:
        """Draw the curve with its band and its median, and return its colour."""
        score = style.clip(self.score)
        is_drawn = self.enough & (score == self.score)
        frequency = style.clip(np.where(is_drawn, self.frequency, np.nan))
        color = draw_line(ax, style, score, frequency, width=2.0 * style.scale, clip_on=False)
        if self.low is not None and self.high is not None:
            ax.fill_between(
                score,
                style.clip(self.low),
                style.clip(self.high),
                where=is_drawn,
                zorder=3,
                facecolor=(color, 0.2),
                edgecolor=(color, 0.6),
                linewidth=0.8,
                label=self.interval_name,
            )
        if self.median is not None:
            ax.plot(
                score,
                style.clip(np.where(is_drawn, self.median, np.nan)),
                color=color,
                zorder=5,
                linewidth=0.8 * style.scale,
                linestyle=":",
                clip_on=False,
                label="median of resamples",
            )
        return color

    def _draw_density(self, ax: "Axes", style: Style, color: Any) -> None:
        """Draw the density of the scores; later models get an outline."""
        score = style.clip(self.score)
        height = occupancy_height(ax, style, self.weight)
        if not style.is_first:
            # A hatch would not show which of the models has too few scores there.
            for artist in [x for x in ax.collections if has_role(x, HATCH)]:
                artist.remove()
            draw_outline(ax, style, color, height[:-1], score)
        elif not style.span.is_logit:
            unit = "own scale" if style.is_panel else f"up to {self.weight.max():.2g}"
            ax.fill_between(
                score,
                height,
                facecolor=("0.5", 0.45),  # darker than the band that may lie over it
                edgecolor=GREY,
                linewidth=0.6,
                zorder=1,
                label=f"density ({unit})",
            )


# --- parts of drawings ----------------------------------------------------------------------


def draw_line(ax: "Axes", style: Style, x: F64, y: F64, *, width: float, **options: Any) -> Any:
    """Draw the line that stands for a model in the legend, and return its colour."""
    (line,) = ax.plot(
        x,
        y,
        color=style.color,
        linestyle=style.dashes,
        linewidth=width,
        zorder=4,
        label=style.label,
        **options,
    )
    vars(line)[ROLE] = MODEL
    return line.get_color()


def draw_outline(ax: "Axes", style: Style, color: Any, height: F64, edges: F64) -> None:
    """Draw occupancy or density of a model that must not cover those before it."""
    if not style.span.is_logit:
        ax.stairs(height, edges, color=color, linewidth=0.8 * style.scale, alpha=0.7, zorder=1.5)


def occupancy_height(ax: "Axes", style: Style, density: F64) -> F64:
    """Scale densities so that the largest one takes the lowest quarter of the axes.

    The first model on the axes sets the unit.
    """
    if style.is_first or DENSITY_UNIT not in vars(ax):
        vars(ax)[DENSITY_UNIT] = max(density.max(), MIN_DIVISOR)
    height = style.span.high * 0.25 * density / vars(ax)[DENSITY_UNIT]
    return np.asarray(height.clip(0, style.span.high))


# --- square axes ----------------------------------------------------------------------------


def axes_end(top: float) -> float:
    """Return the end of axes: just beyond the scores of rare events, 1 for others."""
    return 1.1 * max(top, 1e-6) if top < RARE_SCORE else 1.0


def draw_square(ax: "Axes", span: AxesRange) -> None:
    """Set up square axes with the diagonal of a calibrated model."""
    from matplotlib.ticker import MaxNLocator

    draw_diagonal(ax, span.low, span.high)
    for axis, set_scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        if span.is_logit:
            set_scale("logit", nonpositive="clip")
            ticks = [p for p in LOGIT_TICKS if span.low < p < span.high]
            axis.set_ticks(ticks, labels=[f"{p:g}" for p in ticks])
            axis.set_ticks([], minor=True)
            axis.set_tick_params(labelsize="small")
        else:  # as many ticks as there is room for
            axis.set_major_locator(MaxNLocator("auto", steps=[2, 5, 10]))
    limits = (span.low, span.high)
    ax.set(xlim=limits, ylim=limits, aspect="equal")


def draw_diagonal(ax: "Axes", low: float, high: float) -> None:
    """Draw the line on which a calibrated model lies."""
    ax.plot([low, high], [low, high], **CALIBRATED, zorder=2)


def logit_range(drawings: Iterable[Drawing]) -> AxesRange:
    """Find axes of log odds that hold all scores and rates between 0 and 1."""
    values = np.concatenate([x for drawing in drawings for x in (drawing.score, drawing.frequency)])
    values = values[(values > MIN_PROBABILITY) & (values < 1 - MIN_PROBABILITY)]
    log_odds = np.log(values / (1 - values))
    ends = np.array([log_odds.min(initial=0) - 0.5, log_odds.max(initial=0) + 0.5])
    low, high = 1 / (1 + np.exp(-ends))
    return AxesRange(
        low=max(float(low), MIN_PROBABILITY),
        high=min(float(high), 1 - MIN_PROBABILITY),
        is_logit=True,
    )
