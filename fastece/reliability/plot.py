"""Reliability diagrams as papers print them: curve, points, scores below, statistics."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_real
from fastece.data.samples import Sample
from fastece.display import axes, legends, marks
from fastece.display.numbers import ConfidenceInterval, Number, decimals, format_number
from fastece.estimators.binned import Binned
from fastece.inference.estimate import estimate_results
from fastece.kernels.types import F64
from fastece.reliability.curve import curve_of, smooth_end
from fastece.reliability.decomposition import isotonic_blocks
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.call import Call
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import tails_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = ("bayes", "isotonic", "none")
# Bins of the points, and bars of the scores up to the end of the axes.
BINS, BARS = 10, 25
# Replicates of a consistency band, and cells of neighbouring scores that outcomes are drawn for.
DRAWS, CELLS = 500, 4000
# Points of letters, and inches: one column of a journal.
SMALL, SIZE = 7.0, (3.3, 4.1)


class Model(NamedTuple):
    """Numbers of one model; its curve and its band have scores of their own."""

    setting: str
    error: str
    level: str
    diagram: ReliabilityDiagram
    score: F64
    weight: F64
    curve: tuple[F64, F64] | None
    band: tuple[F64, F64, F64] | None

    @classmethod
    def of(cls, call: Call, kind: str, bins: int, rng: Any) -> "Model":
        """Compute the numbers of a call on one model with one estimator."""
        (data,), (estimator,) = call.sources, call.estimators.values()
        if data.n_problems > 1:
            raise InputError("setting", "must be that of one problem", value=data.setting.name)
        (diagram,) = diagrams_of(Binned(bins, edges="quantile"), data)
        sample = data.sample(0, data.needs_of(estimator)).sorted()
        found = estimate_results(call, rng=rng)
        ends: ConfidenceInterval = found.confidence_interval
        digits = [format_number(x, decimals(ends)) for x in ends]
        level = f"{100 * call.level:g} %"
        error = f"ECE {Number(found.value, ends)} ({level} CI {' to '.join(digits)})"
        curve, band = None, None
        if kind == "bayes":
            one = curve_of(estimator, sample, call)
            low, high = (smooth_end(one["probability"], one[x]) for x in ("low", "high"))
            curve, band = (one["score"], one["probability"]), (one["score"], low, high)
        elif kind == "isotonic":
            if call.clusters is not None:
                rule = "goes without groups and votes, as its band is of independent rows"
                raise InputError("curve", rule, value=kind)
            curve, band = isotonic_curve(sample), consistency_band(sample, call.level, rng)
        weight = np.ones(sample.n) if sample.weight is None else sample.weight
        return cls(diagram.setting, error, level, diagram, sample.s, weight, curve, band)


def isotonic_curve(ordered: Sample) -> tuple[F64, F64]:
    """Compute the rate of each block of the isotonic fit, at its first and last score."""
    low, high, hits, misses = isotonic_blocks(ordered)
    return np.stack([low, high], 1).ravel(), np.repeat(hits / (hits + misses), 2)


def consistency_band(ordered: Sample, level: float, rng: Any) -> tuple[F64, F64, F64]:
    """Compute scores, and quantiles of the isotonic fits of a calibrated model there."""
    from scipy.optimize import isotonic_regression

    w = np.ones(ordered.n) if ordered.weight is None else ordered.weight
    first = np.flatnonzero(np.append(True, ordered.s[1:] != ordered.s[:-1]))
    first = first[:: -(-first.size // CELLS)]
    weight, squares, total = (np.add.reduceat(x, first) for x in (w, w * w, w * ordered.s))
    score, rows = total / weight, np.maximum(np.rint(weight**2 / squares), 1).astype(np.int64)
    draws = np.random.default_rng(new_key(rng)).binomial(rows, score, (DRAWS, score.size)) / rows
    fits = [isotonic_regression(share, weights=weight).x for share in draws]
    low, high = np.quantile(fits, tails_of(level), axis=0)
    return score, low, high


def reliability_plot(
    y_true: Any, y_prob: Any = None, *, curve: Literal["bayes", "isotonic", "none"] = "bayes",
    bins: int = BINS, zoom: float | None = None, ax: "Axes | None" = None,
    figsize: tuple[float, float] = SIZE, groups: Any = None, rng: Any = 0, **options: Any,
) -> "Axes":  # fmt: skip
    """Draw a reliability diagram for a paper, from arrays; needs matplotlib.

    A curve with its band, equal-mass bins as points, the distribution of scores below, and the
    calibration error with its interval. All letters have 7 points.

    Parameters
    ----------
    y_true : array_like
        As in `fastece.ece`.
    y_prob : array_like, Accumulator, or dict of these
        Predictions, or those of several models by their names.
    curve : {"bayes", "isotonic", "none"}, default "bayes"
        "bayes": the curve of `BayesCurve` with the interval at each score, whose ends are smoothed.
        "isotonic": isotonic regression, with the band in which it lies, at each score, if the model
        is calibrated: the consistency band of Dimitriadis et al. "none": points alone.
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
        `setting`, `labels`, `pos_label`, `sample_weight`, `from_logits`, `soft`, `votes` and
        `confidence_level`, as in `fastece.estimate`, whose error of "ece_bayes" is shown.

    Returns
    -------
    matplotlib Axes
        Those of the diagram; the distribution of scores is ``ax.child_axes[0]``.

    Raises
    ------
    ValueError, TypeError
        As `fastece.estimate`; for a dict without models, for "classwise", which is no single
        problem, and for another `curve` or `zoom`.

    Notes
    -----
    Dimitriadis, Gneiting and Jordan (2021, "Stable reliability diagrams for probabilistic
    classifiers", section "Uncertainty quantification"): outcomes are drawn 500 times with the
    scores as probabilities. Of more than 4000 distinct scores, neighbours are drawn together.

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
    before: ECE 0.170
    (95 % CI 0.138 to 0.192)
    """
    kind = check_choice("curve", curve, CURVES)
    models = y_prob if isinstance(y_prob, Mapping) else {None: y_prob}
    if not models:
        raise InputError("y_prob", "must have at least one model")
    found, options = {}, options | {"estimator": "ece_bayes", "n_resamples": 0}
    for name, prob in models.items():
        call = read_call("reliability_plot", y_true, {"y_prob": prob}, 0, **options)
        found[name] = Model.of(add_groups(call, groups, prob), kind, bins, rng)
    end = marks.axes_end(max(float(model.score[-1]) for model in found.values()))
    end = end if zoom is None else check_real("zoom", zoom, axes.MIN_ZOOM, 1.0)
    ax = axes.open_figure(figsize).subplots() if ax is None else ax
    draw_models(ax, found, end, kind)
    axes.settle_layout(ax.figure)
    return ax


def draw_models(ax: "Axes", found: Mapping[Any, Model], end: float, kind: str) -> None:
    """Draw models on axes, their scores below, and the legend."""
    span, setting = marks.AxesRange(0.0, end), next(iter(found.values())).setting
    across, up = axes.axis_labels(setting)
    marks.draw_square(ax, span)
    below = axes.axes_below(ax)
    for name, model in found.items():
        error = model.error.replace(" (", "\n(")  # so that names have room
        text = model.error if name is None else f"{axes.shorten(str(name))}: {error}"
        style = marks.next_style(ax, text, span=span)._replace(scale=0.8)
        draw_one(ax, below, style, model, kind)
    ax.set_title(axes.title_of(setting), fontsize=SMALL + 1, parse_math=False)
    ax.set_ylabel(up, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    below.set_xlabel(across, fontsize=SMALL)
    below.set_ylabel("Share of rows", fontsize=SMALL)
    below.set(xlim=(0, end), ylim=(0, None))
    below.locator_params(axis="y", nbins=2)
    below.tick_params(labelsize=SMALL)
    handles, names = zip(*legends.entries_of(ax), strict=True)
    gap = sum(float(np.nansum(x.diagram.gap * x.diagram.count)) for x in found.values())
    legend = ax.legend(
        handles, names, fontsize=SMALL, frameon=False, handlelength=1.6, borderaxespad=0.3,
        loc="upper left" if gap <= 0 else "lower right",  # the other side of the curves
    )  # fmt: skip
    legends.show_dollars(legend)


def draw_one(ax: "Axes", below: "Axes", style: marks.Style, model: Model, kind: str) -> None:
    """Draw the curve, the band, the points and the scores of a model."""
    rows = model.diagram.count > 0
    at, frequency = (style.clip(x[rows]) for x in (model.diagram.score, model.diagram.frequency))
    shape, nothing = style.shape, np.empty(0)
    score, rate = (nothing, nothing) if model.curve is None else model.curve
    line_options = {"marker": shape, "markevery": [], "markersize": 3.5}
    color = marks.draw_line(ax, style, score, style.clip(rate), width=2.0, **line_options)
    ax.scatter(at, frequency, s=12, marker=shape, facecolors="white", edgecolors=[color],
               linewidths=0.8, zorder=5, clip_on=False)  # fmt: skip
    if model.band is not None:
        at, low, high = model.band
        shade = (color, 0.2) if kind == "bayes" else (marks.GREY, 0.25)
        name = f"{model.level} CI of the curve"
        name = name if kind == "bayes" else f"{model.level} of calibrated models"
        ax.fill_between(at, style.clip(low), style.clip(high), facecolor=shade, linewidth=0,
                        zorder=1, label=name)  # fmt: skip
    share, edges = np.histogram(
        model.score, np.linspace(0, style.span.high, BARS + 1), weights=model.weight
    )
    share = share / model.weight.sum()
    below.stairs(share, edges, color=color, fill=style.is_first, alpha=0.6 if style.is_first
                 else 1.0)  # fmt: skip
