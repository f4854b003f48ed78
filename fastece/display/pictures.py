"""Pictures on one pair of axes: models, cumulative gaps, evidence and risks. Needs matplotlib.

Several models come on the same axes by one call after the other; each draws in the next style.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastece.display import marks
from fastece.display.axes import (
    SCORE_AXES,
    axes_below,
    axis_labels,
    check_axes,
    draw_legend,
    error_text,
    legend_entries,
    open_figure,
    set_title,
    shorten,
    show_dollars,
    title_of,
)
from fastece.display.numbers import count_of
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a cumulative gap that are drawn, besides its extremes.
MAX_PATH_POINTS = 2000
# Size that Brownian motion on [0, 1] exceeds with the probability 0.05.
BROWNIAN_QUANTILE = 2.241403
# E-values that are larger, infinite ones among them, are drawn here.
MAX_E_VALUE = 1e200
# Colours of evidence.
ALARM_COLOR = "#c0392b"
NO_ALARM_COLOR = "#1f77b4"
# Stretches of rows whose gaps are drawn.
MAX_STRETCHES = 30
# Slices of one picture.
MAX_SLICES_DRAWN = 40


# --- models ---------------------------------------------------------------------------------


def draw_model(
    drawing: marks.Drawing,
    ax: "Axes",
    *,
    color: Any = None,
    label: str | None = None,
    legend: bool = True,
    span: marks.AxesRange = marks.PLAIN,
) -> None:
    """Draw a model on axes, which others may be on, and name it.

    Plain axes that have a model already keep their range.
    """
    if marks.count_models(ax) == 0:
        marks.draw_square(ax, span)
        across, up = axis_labels(drawing.setting)
        scale = " (log odds)" if span.is_logit else ""
        ax.set(xlabel=across + scale, ylabel=up + scale)
    elif not span.is_logit:
        span = marks.AxesRange(*ax.get_xlim())
    if not ax.get_title():
        set_title(ax, title_of(drawing.setting, drawing.estimator))
    name = error_text(drawing.estimator, drawing.value)
    n_models = marks.count_models(ax)
    if label is not None:
        name = f"{shorten(label)}, {name}"
    elif n_models > 0:
        name = f"model {n_models + 1}, {name}"
    drawing.draw(ax, marks.next_style(ax, name, color, span=span))
    if legend:
        draw_legend(ax)


def draw_attributes(ax: "Axes", base_rate: float, legend: bool = True) -> None:
    """Draw the lines and the area of the attributes diagram behind a model.

    With the observed base rate o, a forecast of o alone has no resolution, the horizontal line, and
    stands at the vertical one. A point (s, y) adds to the Brier skill score where it is nearer to
    the diagonal than to o: beyond the line of no skill, ``y = (s + o) / 2``.
    """
    low, high = ax.get_xlim()
    scores = np.array([low, base_rate, high])
    no_skill = (scores + base_rate) / 2
    grey: dict[str, Any] = {"color": marks.GREY, "linewidth": 1.0, "zorder": 1}
    ax.plot([low, high], [base_rate, base_rate], linestyle=":", label="no resolution", **grey)
    ax.plot([base_rate, base_rate], [low, high], linestyle=":", **grey)
    ax.plot(scores, no_skill, linestyle="-.", label="no skill", **grey)
    has_skill: dict[str, Any] = {
        "facecolor": "tab:olive",  # not like the grey bars of the rows
        "alpha": 0.2,
        "linewidth": 0,
        "zorder": 0,
    }
    ax.fill_between(scores[:2], low, no_skill[:2], **has_skill)
    ax.fill_between(scores[1:], no_skill[1:], high, **has_skill, label="adds to the Brier skill")
    ax.set(xlim=(low, high), ylim=(low, high))
    if legend:
        draw_legend(ax)


# --- cumulative gaps ------------------------------------------------------------------------


def thin_path(path: Sequence[F64]) -> list[F64]:
    """Select points of a path of shares and gaps, the extreme gaps among them."""
    share, gap, _ = path
    spaced = np.linspace(0, share.size - 1, min(MAX_PATH_POINTS, share.size)).astype(int)
    points = np.union1d(spaced, [gap.argmin(), gap.argmax()])
    return [x[points] for x in path]


def distinct_labels(scores: Sequence[float]) -> list[str]:
    """Write scores with 2 to 5 digits that make them differ; "" for repeats."""
    for digits in range(2, 6):
        labels = [f"{score:.{digits}g}" for score in scores]
        if len({*labels}) == len({*scores}):
            break
    is_new = [k == 0 or labels[k] != labels[k - 1] for k in range(len(labels))]
    return [label if new else "" for label, new in zip(labels, is_new, strict=True)]


def draw_cumulative(
    ax: "Axes", path: Sequence[F64], deviation: float, value: float, label: str | None = None
) -> None:
    """Draw a path of shares of rows, cumulative gaps and scores on the axes."""
    share, gap, score = path
    is_first = marks.count_models(ax) == 0
    if is_first:
        ax.axhline(0, **marks.CALIBRATED)
        ax.set(xlabel="share of rows, by increasing score", ylabel="cumulative gap", xlim=(0, 1))
    name = f"range {value:.4f}" if label is None else f"{shorten(label)}, range {value:.4f}"
    style = marks.next_style(ax, name)
    color = marks.draw_line(ax, style, share, gap, width=1.2 * style.scale)
    end = BROWNIAN_QUANTILE * deviation
    ax.axhspan(-end, end, facecolor=(color, 0.1), zorder=1, label="95 % of calibrated models")
    if label is None and is_first:
        ticks = np.linspace(0, 1, 5)
        labels = distinct_labels(np.interp(ticks, share, score).tolist())
        ax.secondary_xaxis("top", xlabel=SCORE_AXES[0]).set_xticks(ticks, labels)
    show_dollars(ax.legend(*legend_entries(ax), fontsize="small"))


# --- slices ---------------------------------------------------------------------------------


def draw_slices(slices: Sequence[Any], ax: "Axes | None", level: float, title: str) -> "Axes":
    """Draw the error of each slice with its interval, the first slice on top.

    Slices that are miscalibrated by their joint p-value at the level are filled, others open.
    """
    check_axes(ax)
    drawn = slices[:MAX_SLICES_DRAWN]
    if ax is None:
        # Each slice takes 0.3 inches, and the axis below 1.1.
        ax = open_figure((5.5, 1.1 + 0.3 * len(drawn))).subplots()
    height_of_slice = np.arange(len(drawn))[::-1]
    values = np.array([each.value for each in drawn])
    is_off = np.array([each.p_value <= 1 - level for each in drawn])
    ax.hlines(
        height_of_slice,
        [each.low for each in drawn],
        [each.high for each in drawn],
        color=marks.GREY,
        linewidth=1.5,
    )
    for is_chosen, color, face_color in (
        (is_off, ALARM_COLOR, ALARM_COLOR),
        (~is_off, NO_ALARM_COLOR, "white"),
    ):
        points = values[is_chosen], height_of_slice[is_chosen]
        ax.plot(*points, "o", color=color, markerfacecolor=face_color)
    names = [f"{shorten(str(each.label))} ({count_of(each.n, 'row')})" for each in drawn]
    ax.set_yticks(height_of_slice, names, parse_math=False)
    ax.set(
        xlabel=f"calibration error, joint {100 * level:g} % CI\n"
        f"filled: joint p-value at most {1 - level:.2g}",
        xlim=(0, None),
        ylim=(-0.6, len(drawn) - 0.4),
    )
    if len(drawn) < len(slices):
        title += f"; the {len(drawn)} of {len(slices)} groups with the most evidence"
    set_title(ax, title)
    return ax


# --- evidence of a monitor ------------------------------------------------------------------


def draw_evidence(
    ax: "Axes",
    looks: Sequence[Any],
    *,
    level: float,
    since: int | None,
    change: str | None,
    outcome: str,
) -> "Axes":
    """Draw e-values with the line of the alarm, and observed - predicted below.

    Parameters
    ----------
    ax : matplotlib Axes
    looks : sequence of EvidencePoint
        The evidence after some rows, and the sums of their outcomes and scores.
    level : float
        Chance of a false alarm.
    since : int or None
        Rows before the change; None without an alarm.
    change : str or None
        How the predictions are off.
    outcome : str
        The outcomes in the plural.
    """
    n = np.array([look.n for look in looks])
    values = np.exp(np.minimum([look.log_e_value for look in looks], math.log(MAX_E_VALUE)))
    limit = 1 / level
    color = NO_ALARM_COLOR if since is None else ALARM_COLOR
    ax.axhline(limit, color=marks.BLACK, linewidth=1, linestyle=marks.CALIBRATED["linestyle"])
    place = ax.get_yaxis_transform()
    ax.text(0.01, limit, f"alarm from {limit:.3g}", transform=place, va="bottom", size="small")
    ax.plot(n, values, linewidth=2, color=color)
    ax.set(ylabel="evidence against\ncalibration (e-value)", yscale="log")
    ax.yaxis.set_major_formatter("{x:g}")  # exponents of powers of ten are too small to read
    ax.set_ylim(min(0.1, values.min() / 2), max(10 * limit, 5 * values.max()))
    ax.set_xlim(0, max(n[-1], 1))
    below = axes_below(ax)
    below.set_xlabel("rows")
    draw_gaps(below, looks, since, outcome)
    if since is None:
        verdict = f"No alarm in {n[-1]} rows: the largest e-value is {values.max():.3g}"
    else:
        verdict = f"ALARM, since about row {since}: {change}"
        for panel in (ax, below):
            panel.axvspan(since, max(n[-1], 1), color=ALARM_COLOR, alpha=0.12, linewidth=0)
    set_title(ax, verdict)
    ax.title.set(color=color, weight="bold")
    return ax


def draw_gaps(ax: "Axes", looks: Sequence[Any], since: int | None, outcome: str) -> None:
    """Draw bars of the mean outcome minus the mean score in even stretches of rows."""
    n, hits, scores = np.array([(look.n, look.hits, look.scores) for look in looks]).T
    ends = np.unique(np.searchsorted(n, np.linspace(0, n[-1], MAX_STRETCHES + 1)))
    width = np.diff(n[ends])
    gap = (np.diff(hits[ends]) - np.diff(scores[ends])) / np.maximum(width, 1)
    ax.axhline(0, color=marks.BLACK, linewidth=1)
    is_after = n[ends[:-1]] >= (n[-1] if since is None else since)
    color = np.where(is_after, ALARM_COLOR, marks.GREY)
    ax.bar(n[ends[:-1]], gap, width, align="edge", color=color, edgecolor="white", linewidth=0.5)
    size = 1.2 * np.abs(gap).max(initial=0.01)
    ax.set_ylim(-size, size)
    ax.set_ylabel("observed -\npredicted", size="small")
    for height, place, word in ((0.95, "top", "more"), (0.05, "bottom", "fewer")):
        text = f"{word} {outcome} than predicted"
        ax.text(0.01, height, text, transform=ax.transAxes, va=place, size="small")


# --- risks ----------------------------------------------------------------------------------


def draw_risks(
    ax: "Axes", curve: F64, risks: F64, event: str, level: str, lines: Sequence[str]
) -> "Axes":
    """Draw the calibration curve of a risk model, and predictions by outcome below.

    Parameters
    ----------
    ax : matplotlib Axes
    curve : (4, G) float64 array
        Scores, probabilities, and the ends of their intervals.
    risks : (2, B) float64 array
        Weight of the rows in bins of equal width, without and with the event.
    event, level : str
        Names of the event and of the interval.
    lines : sequence of str
        Statistics that stand in the corner.
    """
    score, probability, low, high = curve
    end = min(1.0, 1.05 * max(float(score[-1]), float(probability.max()), 1e-6))
    marks.draw_diagonal(ax, 0, end)
    (line,) = ax.plot(score, probability, linewidth=2, label="Bayesian curve")
    color = line.get_color()
    ax.fill_between(score, low, high, facecolor=(color, 0.2), label=level)
    ax.set(xlim=(0, end), ylim=(0, end), aspect="equal", ylabel=f"observed frequency of {event}")
    text = ax.text(0.03, 0.97, "\n".join(lines), transform=ax.transAxes, va="top", fontsize="small")
    # Numbers of many digits would leave the axes no room.
    text.set_in_layout(False)
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    below = axes_below(ax)
    below.set_xlabel(f"predicted probability of {event}")
    draw_outcomes(below, risks, np.linspace(0, score[-1], risks.shape[1] + 1), color)
    return ax


def draw_outcomes(ax: "Axes", risks: F64, edges: F64, color: Any) -> None:
    """Draw a histogram of rows with the event upwards, and of the others downwards."""
    without, with_event = risks
    largest = [max(float(weight.max()), marks.MIN_DIVISOR) for weight in risks]
    ax.stairs(-without / largest[0], edges, fill=True, color=marks.GREY, label="no event")
    ax.stairs(with_event / largest[1], edges, fill=True, color=color, label="event")
    ax.axhline(0, color=marks.BLACK, linewidth=0.6)
    ax.set(ylim=(-1.1, 1.1), yticks=[-0.5, 0.5])
    ax.set_yticklabels([f"no event\nup to {largest[0]:.3g}", f"event\nup to {largest[1]:.3g}"])
