"""Axes with one model or several, and legends that cover nothing. Needs matplotlib."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fastece.data.errors import to_unicode
from fastece.data.parameters import check_flag, check_real
from fastece.display import marks
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

# Labels of the axes, of the top label and else.
LABELS = {True: ("Confidence", "Accuracy"), False: ("Predicted probability", "Observed frequency")}
# Errors by the parameters of an estimator, and kinds of estimators without bins.
QUANTITIES = {"norm=2": "RMS calibration error", "norm=inf": "MCE"}
KINDS = {"KDE": "kernel density", "BayesCurve": "Bayesian"}
# Characters of the name of a model or a class.
LONGEST_NAME = 28
# Where axes may end at least.
LEAST_END = 1e-6
# Inches of one result with its legend.
WIDTH, HEIGHT = 4.5, 5.4
# From so many times as wide as high, the place of axes has room for a legend beside the square.
BESIDE = 1.4
# In heights of a letter: its width, and the width of an entry beside its text.
LETTER, HANDLE = 0.53, 2.8
# Parts of the place of axes that a legend below takes: it may lie below their ticks too.
WIDER = 1.18
# Points from axes to the far side of their label, beside the letters, which are 1.2 high.
PADS = 12.0
# Characters of an entry.
LONGEST = 44
# Points of a cumulative gap that are drawn, beside its extremes, and the size that Brownian motion
# on [0, 1] exceeds with the probability 0.05.
MOST_POINTS, BAND = 2000, 2.241403
# The largest e-value on axes, which infinite ones have too.
HUGE = 1e200


class Drawable(Protocol):
    """A result that can be drawn."""

    def drawing(self, band: Any = True) -> marks.Drawing:
        """Return the marks of a picture, with intervals or a band, or without."""


def plot_result(
    result: Drawable, ax: "Axes | None" = None, *, color: Any = None, label: str | None = None,
    legend: bool = True, band: Any = True, zoom: float | None = None,
) -> "Axes":  # fmt: skip
    """Draw a reliability diagram or a curve, beside others on the axes.

    Parameters
    ----------
    result : ReliabilityDiagram or ReliabilityCurve
    ax, color, label, legend, band, zoom
        As in its method `plot`.

    Returns
    -------
    matplotlib Axes
    """
    check_flag("legend", legend)
    drawing = result.drawing(band)
    end = drawing.end if zoom is None else check_real("zoom", zoom, LEAST_END, 1.0)
    if ax is None:
        ax, *others = new_axes(2 if drawing.is_heaped else 1)
        for other in others:
            draw_model(drawing, other, color, label, legend, marks.logit_range([drawing]))
    draw_model(drawing, ax, color, label, legend, marks.AxesRange(0.0, end))
    return ax


def draw_model(
    drawing: marks.Drawing, ax: "Axes", color: Any = None, label: str | None = None,
    legend: bool = True, span: marks.AxesRange = marks.PLAIN,
) -> None:  # fmt: skip
    """Draw a model on axes, which others may be on, and name it."""
    place = sum(map(marks.is_model, ax.get_lines()))
    name = error_text(drawing.estimator, drawing.value)
    if place and not span.is_logit:
        span = marks.AxesRange(*ax.get_xlim())
    elif not place:
        marks.draw_square(ax, span)
        scale = " (log odds)" if span.is_logit else ""
        across, up = axis_labels(drawing.setting)
        ax.set(xlabel=across + scale, ylabel=up + scale)
    if not ax.get_title():
        set_title(ax, title_of(drawing.setting, drawing.estimator))
    if label is not None:
        name = f"{shorten(label)}, {name}"
    drawing.draw(ax, marks.Style(color, name, place, span, marks.scale_of(ax)))
    if legend:
        draw_legend(ax)


def axis_labels(setting: str) -> tuple[str, str]:
    """Return the labels of both axes."""
    return LABELS[setting == "confidence"]


def title_of(setting: str, estimator: str = "") -> str:
    """Return the title of a diagram or a curve, with the class if it is of one."""
    title = "Reliability curve" if estimator.startswith((*KINDS,)) else "Reliability diagram"
    title += ", equal-mass bins" * ("edges='quantile'" in estimator)
    return title + f", {setting}" * (setting not in ("binary", "confidence"))


def error_text(estimator: str, value: float) -> str:
    """Write an error with its name: ECE 0.109, ECE 0.112 (Bayesian)."""
    names = (name for key, name in QUANTITIES.items() if key in estimator)
    digits = f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"
    kind = KINDS.get(estimator.partition("(")[0])
    return f"{next(names, 'ECE')} {digits}" + (f" ({kind})" if kind else "")


def thin_path(path: Sequence[F64]) -> list[F64]:
    """Select points of a path, the least and the greatest gap among them."""
    count, ends = path[0].size, [path[1].argmin(), path[1].argmax()]
    points = np.union1d(np.linspace(0, count - 1, min(MOST_POINTS, count)).astype(int), ends)
    return [x[points] for x in path]


def draw_cumulative(
    ax: "Axes", path: Sequence[F64], deviation: float, value: float, label: str | None = None
) -> None:
    """Draw a path of shares of rows, cumulative gaps and scores on the axes."""
    place = sum(map(marks.is_model, ax.get_lines()))
    share, gap, score = path
    if not place:
        ax.axhline(0, color=marks.GREY, linewidth=1, linestyle=(0, (4, 2)), label="calibrated")
        ax.set(xlabel="share of rows, by increasing score", ylabel="cumulative gap", xlim=(0, 1))
    name = f"range {value:.4f}" if label is None else f"{shorten(label)}, range {value:.4f}"
    style = marks.Style(None, name, place, marks.PLAIN, marks.scale_of(ax))
    color = marks.draw_line(ax, style, share, gap, 1.2)
    high = BAND * deviation
    ax.axhspan(-high, high, facecolor=(color, 0.1), zorder=1, label="95 % of calibrated models")
    if label is None and not place:
        at = np.linspace(0, 1, 5)
        names = [f"{x:.2g}" for x in np.interp(at, share, score)]
        ax.secondary_xaxis("top", xlabel=LABELS[False][0]).set_xticks(at, names)
    draw_legend(ax)


def draw_evidence(
    ax: "Axes", looks: Mapping[str, Sequence[float]], level: float, since: int | None
) -> "Axes":
    """Draw e-values over rows, the line of the alarm, and the change if there is one."""
    values, last = np.minimum(looks["e_value"], HUGE), looks["e_value"][-1]
    ax.axhline(1 / level, color=marks.BLACK, linewidth=1, linestyle=(0, (4, 2)),
               label=f"alarm from {1 / level:.3g}")  # fmt: skip
    if since is not None:
        ax.axvline(since, color=marks.GREY, linewidth=1, label=f"change after about {since} rows")
    ax.plot(looks["n"], values, linewidth=1.5, label=f"e-value {last:.3g}")
    ax.set(xlabel="rows", ylabel="e-value: evidence against calibration", yscale="log")
    draw_legend(ax)
    return ax


def draw_risks(
    ax: "Axes", curve: F64, risks: F64, event: str, level: str, lines: Sequence[str]
) -> "Axes":
    """Draw a calibration curve (4, G), and the predictions (2, B) by outcome below."""
    score, probability, low, high = curve
    top = min(1.0, 1.05 * max(float(score[-1]), float(probability.max()), 1e-6))
    ax.plot([0, top], [0, top], color=marks.GREY, linewidth=1, linestyle=(0, (4, 2)),
            label="calibrated")  # fmt: skip
    (line,) = ax.plot(score, probability, linewidth=2, label="Bayesian curve")
    ax.fill_between(score, low, high, facecolor=(line.get_color(), 0.2), label=level)
    ax.set(xlim=(0, top), ylim=(0, top), aspect="equal", ylabel=f"observed frequency of {event}")
    ax.text(0.03, 0.97, "\n".join(lines), transform=ax.transAxes, va="top", fontsize="small")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    ax.tick_params(labelbottom=False)
    below = ax.inset_axes((0, -0.3, 1, 0.26), sharex=ax)
    edges = np.linspace(0, score[-1], risks.shape[1] + 1)
    largest = np.maximum(risks.max(axis=1, keepdims=True), 1e-300)
    for height, name, color in zip(risks / largest * [[-1], [1]], ("no event", "event"),
                                   (marks.GREY, line.get_color()), strict=True):  # fmt: skip
        below.stairs(height, edges, fill=True, color=color, label=name)
    below.axhline(0, color=marks.BLACK, linewidth=0.6)
    below.set(xlabel=f"predicted probability of {event}", ylim=(-1.1, 1.1), yticks=[-0.5, 0.5])
    names = zip(("no event", "event"), largest[:, 0], strict=True)
    below.set_yticklabels([f"{name}\nup to {most:.3g}" for name, most in names])
    return ax


def shorten(label: str) -> str:
    """Cut a long name, and quote one with "_", which matplotlib would hide."""
    label = repr(label) if label.startswith("_") else to_unicode(label)
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"


def new_axes(count: int) -> "list[Axes]":
    """Make axes side by side on a new figure of pyplot."""
    figure = open_figure((WIDTH * count, HEIGHT))
    return list(figure.subplots(1, count, squeeze=False).flat)


def open_figure(size: tuple[float, float]) -> "Figure":
    """Make a figure of pyplot of a width and a height in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'fastece[plot]'") from error
    return plt.figure(figsize=size, layout="constrained")


def new_figure(size: tuple[float, float]) -> "Figure":
    """Make a figure outside pyplot, which no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def set_title(ax: "Axes", title: str) -> None:
    """Set a title in lines that are as wide as the place of the axes."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size="medium").get_size_in_points()
    width = max(12, int(marks.size_of(ax)[0] / (LETTER * size)))
    # Labels of classes are the caller's: a dollar is no formula.
    ax.set_title(fill(title, width), fontsize=size, parse_math=False)


def entries_of(*axes: "Axes") -> list[tuple[Any, str]]:
    """List the entries of a legend: marks with names, each once, models together.

    Models that have an error but no name are numbered.
    """
    pairs = [pair for ax in axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    models = [mark for mark, _ in pairs if marks.is_model(mark)]
    known: set[str] = set()
    entries: list[tuple[Any, str]] = []
    for mark, name in pairs:
        is_own = marks.is_model(mark) and len(axes) == 1
        if is_own and len(models) > 1 and name.startswith(("ECE ", *QUANTITIES.values())):
            name = f"model {models.index(mark) + 1}, {name}"
        if is_own or name not in known:
            known.add(name)
            entries.append((mark, name))
    first = next((i for i, (mark, _) in enumerate(entries) if marks.is_model(mark)), 0)
    lines = [entry for entry in entries if marks.is_model(entry[0])]
    return [*entries[:first], *lines, *(x for x in entries[first:] if not marks.is_model(x[0]))]


def draw_legend(ax: "Axes") -> "Legend":
    """Draw a legend beside axes that have room there, else below their labels.

    The layout of a figure makes room for it. A figure without one lets axes and legend share the
    place of the axes.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    entries = entries_of(ax)
    names = [x if len(x) <= LONGEST else f"{x[: LONGEST - 1]}…" for _, x in entries]
    across, up = marks.size_of(ax)
    is_beside = across > BESIDE * up
    labels = (ax.xaxis.label, *ax.get_xticklabels()[:1])
    below = PADS + 1.2 * sum(float(label.get_fontsize()) for label in labels)
    size = FontProperties(size="small").get_size_in_points()
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "borderaxespad": 0.5}
    if not is_beside:
        move = ScaledTranslation(0, -below / 72, ax.figure.dpi_scale_trans)
        widest = size * (LETTER * max(map(len, names)) + HANDLE)
        place = {
            "loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 0,
            "bbox_transform": ax.transAxes + move, "ncols": 1 + (2 * widest < WIDER * across),
        }  # fmt: skip
    legend = ax.legend(
        [mark for mark, _ in entries], names, frameon=False, fontsize=size, handlelength=1.5,
        handletextpad=0.5, columnspacing=0.8, borderpad=0, **place,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)  # names are the caller's: a dollar is no formula
    if ax.figure.get_layout_engine() is None:
        ax.set_axes_locator(SharedPlace(legend, below, is_beside))
    return legend


@dataclass(frozen=True)
class SharedPlace:
    """A place of axes that leave a part of it to their legend, at any size.

    They leave room for labels that the figure would cut off, too. Only the lowest axes may have
    theirs below their place.
    """

    legend: Any
    below: float  # points from the axes to the far side of their label
    is_beside: bool

    def __call__(self, ax: Any, renderer: Any) -> "Bbox":
        """Return the place in parts of the figure, which matplotlib needs to draw."""
        from matplotlib.transforms import Bbox

        place, whole = ax.get_position(original=True), ax.figure.bbox
        box = self.legend.get_window_extent(renderer)
        width, height = box.width / whole.width, box.height / whole.height
        outside = self.below / 72 * ax.figure.dpi / whole.height + 0.01
        x1, y0 = (place.x1 - width, place.y0) if self.is_beside else (place.x1, place.y0 + height)
        if place.y0 <= min(other.get_position(original=True).y0 for other in ax.figure.axes):
            y0 = max(place.y0, outside + y0 - place.y0)
        elif not self.is_beside:
            y0 += outside
        return Bbox.from_extents(place.x0, min(y0, place.y1), max(x1, place.x0), place.y1)
