"""Reliability diagrams as papers print them: curve, points, scores below, statistics."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import shows_options
from fastece.data.parameters import check_choice
from fastece.data.samples import Sample
from fastece.display import axes, marks
from fastece.display.numbers import Number, decimals, format_number
from fastece.estimators.binned import Binned
from fastece.inference.estimate import estimate_results
from fastece.inference.selections import select_by_columns
from fastece.kernels.types import F64
from fastece.reliability.curve import curve_of, smooth_end
from fastece.reliability.decomposition import isotonic_blocks
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.reliability.models import check_one_problem, models_by_name
from fastece.resampling.arguments import ResamplingKeywords, add_groups, read_call
from fastece.resampling.call import Call
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import tails_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = ("bayes", "isotonic", "none")
# The error beside a curve, and that it is not resampled.
FIXED = {"estimator": "ece_bayes", "n_resamples": 0}
# Groups of rows in one picture: with more, curves are not told apart.
MAX_CURVES = 4
# Equal-mass bins that are drawn as points.
N_BINS = 10
# Bars of the distribution of scores, from 0 to the end of the axes.
N_BARS = 25
# Resamples of the outcomes behind a consistency band.
N_RESAMPLES = 500
# A curve is drawn across gaps without rows near, up to this width in scores: its pieces look torn.
MAX_GAP = 0.025
# Groups of neighbouring scores that outcomes are drawn for, at most.
MAX_SCORES_OF_BAND = 4000
# Width and height of a new figure in inches: one column of a journal.
FIGURE_SIZE = (3.3, 4.1)
# Size of letters, in points.
FONT_SIZE = 7.0


# --- numbers --------------------------------------------------------------------------------


class CurveBand(NamedTuple):
    """A band: ends at increasing scores, its name in the legend, and how it is filled."""

    score: F64
    low: F64
    high: F64
    name: str
    color: Any  # None for the colour of the model
    alpha: float


class PlottedModel(NamedTuple):
    """Numbers of one model in the picture.

    Attributes
    ----------
    error : str
        The calibration error with its interval, in words.
    diagram : ReliabilityDiagram
        The bins that are drawn as points.
    score, weight : (n,) float64 arrays
        The scores in increasing order, and their weights.
    curve : pair of (G,) float64 arrays
        Increasing scores, and the rate at each; empty without a curve.
    band : CurveBand or None
    """

    error: str
    diagram: ReliabilityDiagram
    score: F64
    weight: F64
    curve: tuple[F64, F64]
    band: CurveBand | None


def plotted_model(call: Call, kind: str, n_bins: int, rng: Any) -> PlottedModel:
    """Compute the numbers of the picture from a call on one model with one estimator."""
    (table,) = call.tables
    (estimator,) = call.estimators.values()
    check_one_problem(table)
    (diagram,) = diagrams_of(Binned(n_bins, edges="quantile"), table)
    ordered = table.seen_by(estimator).sample(0).sorted()
    estimate = estimate_results(call, rng=rng)
    level = f"{100 * call.level:g} %"
    curve = np.empty(0), np.empty(0)
    band = None
    if kind == "bayes":
        curve, band = bayes_curve(call, ordered, level)
    elif kind == "isotonic":
        if call.clusters is not None:
            rule = "goes without groups and votes, as its band is of independent rows"
            raise InputError("curve", rule, value=kind)
        curve = isotonic_curve(ordered)
        band = consistency_band(ordered, call.level, rng)
    return PlottedModel(
        error=error_text(estimate.value, estimate.confidence_interval, level),
        diagram=diagram,
        score=ordered.s,
        weight=ordered.total_weights,
        curve=curve,
        band=band,
    )


def error_text(value: float, interval: Any, level: str) -> str:
    """Write an error with its interval: Bayesian ECE 0.170 (95 % CI 0.138 to 0.192)."""
    low, high = (format_number(end, decimals(interval)) for end in interval)
    return f"Bayesian ECE {Number(value, interval)} ({level} CI {low} to {high})"


def bayes_curve(call: Call, ordered: Sample, level: str) -> tuple[tuple[F64, F64], CurveBand]:
    """Compute the Bayesian curve of a sorted sample with its smoothed interval."""
    fit = curve_of(call, ordered)
    assert fit.low is not None
    assert fit.high is not None
    low = smooth_end(fit.probability, fit.low)
    high = smooth_end(fit.probability, fit.high)
    is_drawn = ~is_in_short_gap(fit.score, fit.supported)
    band = CurveBand(
        score=fit.score[is_drawn], low=low[is_drawn], high=high[is_drawn],
        name=f"{level} CI of the curve", color=None, alpha=0.2,
    )  # fmt: skip
    return (fit.score[is_drawn], fit.probability[is_drawn]), band


def is_in_short_gap(score: F64, is_supported: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Find the scores (G,) without rows near, in gaps that a curve is drawn across."""
    known = score[is_supported]
    after = np.searchsorted(known, score)
    is_between = (after > 0) & (after < known.size) & ~is_supported
    width = known[np.minimum(after, known.size - 1)] - known[np.maximum(after - 1, 0)]
    return np.asarray(is_between & (width <= MAX_GAP))


def isotonic_curve(ordered: Sample) -> tuple[F64, F64]:
    """Compute the rate of each block of the isotonic fit, at its first and last score."""
    blocks = isotonic_blocks(ordered)
    ends = np.stack([blocks.first_score, blocks.last_score], axis=1)
    return ends.ravel(), np.repeat(blocks.hits / (blocks.hits + blocks.misses), 2)


def consistency_band(ordered: Sample, level: float, rng: Any) -> CurveBand:
    """Compute quantiles of the isotonic fits of a calibrated model, at each score.

    Outcomes are drawn with the scores as their probabilities (Dimitriadis, Gneiting and Jordan
    2021). A score of several rows with weights w has the mean of a binomial number of
    ``(sum w)^2 / sum w^2`` outcomes.
    """
    from scipy.optimize import isotonic_regression

    row_weights = ordered.total_weights
    first = np.flatnonzero(ordered.is_first_of_score)
    first = first[:: math.ceil(first.size / MAX_SCORES_OF_BAND)]
    weight = np.add.reduceat(row_weights, first)
    squares = np.add.reduceat(row_weights * ordered.weights, first)
    score = np.add.reduceat(row_weights * ordered.s, first) / weight
    n_rows = np.maximum(np.rint(weight**2 / squares), 1).astype(np.int64)
    generator = np.random.default_rng(new_key(rng))
    hits = generator.binomial(n_rows, score, (N_RESAMPLES, score.size))
    fits = [isotonic_regression(rates, weights=weight).x for rates in hits / n_rows]
    low, high = np.quantile(fits, tails_of(level), axis=0)
    return CurveBand(
        score=score, low=low, high=high, name=f"{100 * level:g} % of calibrated models",
        color=marks.GREY, alpha=0.25,
    )  # fmt: skip


# --- the picture ----------------------------------------------------------------------------


@shows_options
def reliability_plot(
    y_true: Any, y_prob: Any = None, *, curve: Literal["bayes", "isotonic", "none"] = "bayes",
    by: Any = None, bins: int = N_BINS, zoom: float | None = None, ax: "Axes | None" = None,
    figsize: tuple[float, float] = FIGURE_SIZE, groups: Any = None, rng: Any = 0,
    **options: Unpack[ResamplingKeywords],
) -> "Axes":  # fmt: skip
    """Draw a reliability diagram for a paper, from arrays; needs matplotlib.

    A curve with its band, equal-mass bins as points, the distribution of scores below, and the
    calibration error with its interval. All letters have 7 points.

    Parameters
    ----------
    y_true : array_like
        As in `fastece.ece`.
    y_prob : array_like, Accumulator, or dict of these
        Predictions, or the predictions of several models by their names.
    curve : {"bayes", "isotonic", "none"}, default "bayes"
        "bayes": the curve of `BayesCurve` with the interval at each score, whose ends are smoothed.
        "isotonic": isotonic regression, with the band in which it lies, at each score, if the model
        is calibrated: the consistency band of Dimitriadis et al. "none": points alone.
    by : (n,) array_like, optional
        The group of each row, such as the sex of patients: a curve of each, with its name and its
        own error. Numbers are cut at their quartiles, as in `fastece.slices`, which has a table of
        more than 4 groups.
    bins : int, default 10
        Number of equal-mass bins.
    zoom : float, optional
        Where the axes end. None: at 1, and just beyond the largest score if that is below 0.3.
    ax : matplotlib Axes, optional
        Where to draw; without it, on a new figure.
    figsize : (width, height), default (3.3, 4.1)
        Inches of a new figure.
    groups : (n,) array_like, optional
        As in `fastece.estimate`; not with "isotonic".
    rng : None, int or numpy.random.Generator, default 0
        Seed of the consistency band.
    **options
        As in `fastece.estimate`, whose error of "ece_bayes" is shown.

    Returns
    -------
    matplotlib Axes
        The axes of the diagram; the distribution of scores is ``ax.child_axes[0]``.

    Raises
    ------
    ValueError, TypeError
        As `fastece.estimate`; for a dict without models, for "classwise", which is no single
        problem, and for another `curve` or `zoom`.

    Notes
    -----
    Dimitriadis, Gneiting and Jordan (2021, "Stable reliability diagrams for probabilistic
    classifiers", section "Uncertainty quantification"): outcomes are drawn 500 times with the
    scores as probabilities. Where there are more than 4000 distinct scores, neighbours are drawn
    together.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import reliability_plot
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> ax = reliability_plot(y, {"before": p**2, "after": p}, ax=Figure().subplots())
    >>> print(ax.get_legend().get_texts()[1].get_text())
    before: Bayesian ECE 0.170
    (95 % CI 0.138 to 0.192)
    """
    kind = check_choice("curve", curve, CURVES)
    if by is not None and isinstance(y_prob, Mapping):
        raise InputError("by", "goes with one model, and {y_prob} is a dict of models")
    for name in FIXED:
        if name in options:
            rule = "is fixed in reliability_plot, with the error of 'ece_bayes'"
            raise InputTypeError(name, rule)
    models = {}
    for name, prob in models_by_name(y_prob).items():
        call = read_call("reliability_plot", y_true, {"y_prob": prob}, 0, **FIXED, **options)
        call = add_groups(call, groups, prob)
        calls = {name: call} if by is None else calls_on_groups(call, by, prob)
        for label, call_on_rows in calls.items():
            models[label] = plotted_model(call_on_rows, kind, bins, rng)
    largest_score = max(float(model.score[-1]) for model in models.values())
    default_end = marks.axes_end(largest_score)
    axes.check_axes(ax)
    if ax is not None and marks.count_models(ax):
        default_end = max(default_end, ax.get_xlim()[1])
    end = axes.choose_end(zoom, default_end)
    ax = axes.open_figure(figsize).subplots() if ax is None else ax
    draw_models(ax, models, end)
    axes.settle_layout(ax.figure)
    return ax


def calls_on_groups(call: Call, by: Any, y_prob: Any) -> dict[Any, Call]:
    """Return a call on the rows of each group of rows, by its label."""
    selections = select_by_columns(call, by, y_prob)
    if len(selections) > MAX_CURVES:
        raise InputError("by", f"must have at most {MAX_CURVES} groups", value=len(selections))
    calls = {}
    for selection in selections:
        groups = None if call.groups is None else call.groups.where(selection.rows)
        calls[selection.label] = replace(call, tables=[selection.make_table()], groups=groups)
    return calls


def draw_models(ax: "Axes", models: Mapping[Any, PlottedModel], end: float) -> None:
    """Draw models on axes that end at a score, their scores below, and the legend."""
    span = marks.AxesRange(0.0, end)
    marks.draw_square(ax, span)
    below = axes.axes_below(ax)
    for name, model in models.items():
        # In two lines the legend finds a place beside the curves.
        error = model.error.replace(" (", "\n(")
        text = error if name is None else f"{axes.shorten(str(name))}: {error}"
        style = marks.next_style(ax, text, span=span)
        color = draw_curve(ax, style, model.curve)
        draw_points(ax, style, model.diagram, color)
        if model.band is not None:
            draw_band(ax, style, model.band, color)
        draw_scores(below, style, model, color)
    name_axes(ax, below, next(iter(models.values())).diagram.setting, end)
    legend = ax.legend(
        *axes.legend_entries(ax),
        fontsize=FONT_SIZE,
        handlelength=1.6,
        borderaxespad=0.3,
    )
    axes.show_dollars(legend)


def draw_curve(ax: "Axes", style: marks.Style, curve: tuple[F64, F64]) -> Any:
    """Draw the curve that stands for a model in the legend, and return its colour."""
    score, rate = curve
    options = {"marker": style.shape, "markevery": [], "markersize": 3.5}
    return marks.draw_line(ax, style, score, style.clip(rate), width=1.6, **options)


def draw_points(ax: "Axes", style: marks.Style, diagram: ReliabilityDiagram, color: Any) -> None:
    """Draw the bins that hold rows as white points."""
    has_rows = diagram.count > 0
    ax.scatter(
        style.clip(diagram.score[has_rows]),
        style.clip(diagram.frequency[has_rows]),
        s=12,
        marker=style.shape,
        facecolors="white",
        edgecolors=[color],
        linewidths=0.8,
        zorder=5,
        clip_on=False,
    )


def draw_band(ax: "Axes", style: marks.Style, band: CurveBand, color: Any) -> None:
    """Draw a band, in the colour of its model unless it has one of its own."""
    ax.fill_between(
        band.score,
        style.clip(band.low),
        style.clip(band.high),
        facecolor=(color if band.color is None else band.color, band.alpha),
        linewidth=0,
        zorder=1,
        label=band.name,
    )


def draw_scores(below: "Axes", style: marks.Style, model: PlottedModel, color: Any) -> None:
    """Draw the distribution of scores, filled for the first model."""
    edges = np.linspace(0, style.span.high, N_BARS + 1)
    weight_of_bar, _ = np.histogram(model.score, edges, weights=model.weight)
    share = weight_of_bar / model.weight.sum()
    alpha = 0.6 if style.is_first else 1.0
    below.stairs(share, edges, color=color, fill=style.is_first, alpha=alpha)


def name_axes(ax: "Axes", below: "Axes", setting: str, end: float) -> None:
    """Name the axes of the diagram and of the scores below, in small letters."""
    across, up = axes.axis_labels(setting)
    ax.set_title(axes.title_of(setting), fontsize=FONT_SIZE + 1, parse_math=False)
    ax.set_ylabel(up, fontsize=FONT_SIZE)
    ax.tick_params(labelsize=FONT_SIZE)
    below.set_xlabel(across, fontsize=FONT_SIZE)
    below.set_ylabel("Share of rows", fontsize=FONT_SIZE)
    below.autoscale(axis="y")  # there may be bars of an earlier picture
    below.set(xlim=(0, end), ylim=(0, None))
    below.locator_params(axis="y", nbins=2)
    below.tick_params(labelsize=FONT_SIZE)
