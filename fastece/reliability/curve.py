"""Reliability curves: the probability of the event at any score."""

import math
from dataclasses import dataclass
from functools import singledispatch
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fastece.checks.arrays import as_real, refuse_where
from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_average
from fastece.data.reading import read_source
from fastece.data.sample import Sample
from fastece.data.source import need_rows
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import Number
from fastece.estimators.base import Counts, Statistic
from fastece.estimators.bayes import REACH, BayesCurve, rows_near
from fastece.estimators.density import (
    KDE,
    Copies,
    CountBlocks,
    DensityPlan,
    is_supported,
    posterior,
)
from fastece.estimators.table import find_estimator
from fastece.plot.marks import FEWEST, CurveDrawing
from fastece.reliability.diagram import Plottable
from fastece.resampling.arguments import Call, add_groups, read_call
from fastece.resampling.draws import new_key
from fastece.resampling.results import ConfidenceInterval, as_float, quantiles, tails_of
from fastece.typing import F64

# How far beyond 0 and 1 a score may be, as of rounded probabilities.
TOLERANCE = 1e-6
# A curve has so many times as many points as its error needs: its pieces look smooth.
REFINEMENT = 2.0
# Points of a Bayesian curve, in a range.
BAYES_POINTS = 501
# Values of all replicates that are kept at once: 256 MB. A finer grid is done in parts.
MAX_VALUES = 2**25
BAND = ("low", "high", "median")


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityCurve(Plottable):
    """The probability of the event as a function of the score, on a grid.

    Attributes
    ----------
    score : (G,) float64 array
        Evenly spaced scores: the centres of G cells of the range; of a `BayesCurve` from one end
        of the range to the other.
    probability : (G,) float64 array
        ``P(y = 1 | s)``; nan where the curve is not `supported`, as are `lce`, `low`, `high` and
        `median`.
    lce : (G,) float64 array
        Local calibration error, ``probability - score``.
    density : (G,) float64 array
        Density of the scores.
    supported : (G,) bool array
        Whether there are enough scores: ``density >= 0.01 / (high - low)``, a hundredth of its
        mean over the range; of a `BayesCurve`, a row within 0.025.
    rows : (G,) float64 array
        About how many rows the curve rests on: n times the density times the width that the kernel
        averages over; of a `BayesCurve`, those within 0.025.
    low, high, median : (G,) float64 array or None
        Ends of the interval of the posterior at each score by itself: of a `BayesCurve` between
        quantiles of its posterior, without a median; else of the bootstrap distribution, with its
        median; None without resamples.
    confidence_level, n_resamples, key : float, int, int or None
        Of the band; the key determines the draws, None without resamples.
    value, bandwidth : float, float or None
        The calibration error, as `fastece.ece` gives it, and the standard deviation of the kernel;
        None of a `BayesCurve`.
    score_range, n : tuple of float, int
        Ends of the range, and number of rows of positive weight.
    estimator, setting : str
        The estimator with its parameters, and the setting it used.
    """

    score: F64
    probability: F64
    lce: F64
    density: F64
    supported: NDArray[np.bool_]
    rows: F64
    confidence_level: float
    score_range: tuple[float, float]
    n: int
    estimator: str
    low: F64 | None = None
    high: F64 | None = None
    median: F64 | None = None
    n_resamples: int = 0
    value: float = math.nan
    bandwidth: float | None = None
    key: int | None = None
    setting: str = ""

    def __call__(self, s: Any) -> Any:
        """Interpolate the probability of the event at a score, or at each of some.

        Parameters
        ----------
        s : float or array_like
            Scores in [0, 1]. Anything else raises a ValueError or a TypeError.

        Returns
        -------
        float, or float64 array of the shape of `s`
            Interpolated linearly; of a `BayesCurve` its posterior mean. Outside the range, the
            value at its nearest end. Where the curve is not `supported`, nan: too few scores.
        """
        return self._at(s, self.probability)

    def interval(self, s: Any) -> ConfidenceInterval:
        """Interpolate the interval of the probability at a score, or at each of some.

        Parameters
        ----------
        s : float or array_like
            Scores in [0, 1].

        Returns
        -------
        ConfidenceInterval
            ``(low, high)``, floats or arrays of the shape of `s`, at the `confidence_level` of the
            curve: quantiles of the posterior of a `BayesCurve`, of the resamples of a `KDE`. Where
            the curve is not `supported`, nan.

        Raises
        ------
        ValueError, TypeError
            For values that are not scores; for a `KDE` without resamples.
        """
        if self.low is None or self.high is None:
            raise InputError("n_resamples", "must be 1 or more for an interval of this curve")
        return ConfidenceInterval(self._at(s, self.low), self._at(s, self.high))

    def _at(self, s: Any, values: NDArray[Any]) -> Any:
        """Interpolate values on the grid."""
        one = isinstance(s, Real)
        at = np.asarray(as_real("s", [s] if one else s), np.float64)
        refuse_where(
            "s", "must be a score from 0 to 1", np.atleast_1d(at),
            lambda x: ~(np.abs(x - 0.5) <= 0.5 + TOLERANCE),
        )  # fmt: skip
        found = np.interp(at, self.score, values)
        return float(found[0]) if one else as_float(found)

    def drawing(self, band: Any = True) -> CurveDrawing:
        """Return the curve to draw, with its band or without."""
        # With sharp scores the bandwidth is small, and elsewhere a density jumps from row to row.
        fewest = 0 if self.bandwidth is None else FEWEST
        of = "resamples" if self.n_resamples else "posterior"
        ends: dict[str, Any] = {name: getattr(self, name) if band else None for name in BAND}
        return CurveDrawing(
            **self._headline,
            **ends,
            frequency=self.probability,
            weight=self.density,
            interval_name=f"{100 * self.confidence_level:g} % CI ({of})",
            enough=self.supported & (self.rows >= fewest),
        )

    def document(self) -> Document:
        """Describe the curve at eleven scores from one end of its range to the other."""
        title = f"{self.estimator}, setting {self.setting}: {self.value:.5f}, {self.n} rows"
        if self.bandwidth is not None:
            title += f", bandwidth {self.bandwidth:.4g}"
        table = self.table(np.linspace(*self.score_range, 11))
        return Document(title, sections=[Section(table=table)])

    def table(self, scores: Any) -> Table:
        """Describe the curve at some scores of its range."""
        rows = []
        for s in scores:
            is_known, near = not math.isnan(self(s)), self._at(s, self.rows)
            ends = [] if self.low is None else [self.interval(s) if is_known else None]
            probability = Number(self(s) if is_known else None, form=".4f")
            note = "" if is_known else "no scores"
            rows.append((Number(s, form=".3f"), probability, *ends, Number(near, form=".0f"), note))
        level = [] if self.low is None else [f"{100 * self.confidence_level:g} % CI"]
        return Table(["score", "frequency", *level, "rows nearby", ""], rows)

    def _columns(self) -> dict[str, Any]:
        names = ["score", "probability", "lce", "density", "supported", "rows"]
        names += [name for name in BAND if getattr(self, name) is not None]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Curve(Statistic):
    """The curve of a `KDE` at some scores, as a statistic that is resampled."""

    kde: KDE
    score: F64

    def prepare(self, sample: Sample, size: int) -> DensityPlan:
        """Make a plan with grids that are fine enough to be interpolated."""
        return self.kde.plan(sample, size, REFINEMENT)

    def values(self, plan: DensityPlan, draws: Counts) -> F64:
        """Compute the curve (G, 32 B) of each of the replicates."""
        resamples = CountBlocks(draws.blocks(plan.sample.n))
        out = np.empty((self.score.size, resamples.count))
        for mesh, density, lanes in plan.densities(resamples):
            at = np.interp(self.score, mesh.score, np.arange(mesh.count))
            j = at.astype(np.int64)
            t, following = (at - j)[:, None], np.minimum(j + 1, mesh.count - 1)
            f, g = ((1 - t) * density[:, :, j] + t * density[:, :, following]).swapaxes(0, 1)
            found = posterior(f, g, self.score[:, None], mesh.low, mesh.high).swapaxes(0, 1)
            out[:, lanes] = found.reshape(self.score.size, -1)[:, : lanes.size]
        return out


@singledispatch
def curve_of(estimator: Any, ordered: Sample, n: int, level: float) -> dict[str, Any]:  # noqa: ARG001
    """Compute the own fields of a curve, by name, from a sorted sample of n rows."""
    raise InputTypeError(
        "estimator", "a reliability curve needs a BayesCurve, or densities, KDE", value=estimator
    )


@curve_of.register
def _(estimator: BayesCurve, ordered: Sample, n: int, level: float) -> dict[str, Any]:
    score = np.linspace(ordered.low, ordered.high, BAYES_POINTS)  # scores may be heaped at the ends
    mean, low, high = estimator.curve(ordered, score, level)
    rows = rows_near(ordered, score)
    width = np.minimum(score + REACH, ordered.high) - np.maximum(score - REACH, ordered.low)
    return {
        "score": score, "probability": mean, "density": rows / (n * width), "supported": rows > 0,
        "rows": rows, "low": low, "high": high, "score_range": (ordered.low, ordered.high),
    }  # fmt: skip


@curve_of.register
def _(estimator: KDE, ordered: Sample, n: int, level: float) -> dict[str, Any]:  # noqa: ARG001
    plan, once = estimator.plan(ordered, n, REFINEMENT, even=True), Copies(ordered.counts)
    ((mesh, densities, _),) = plan.densities(once)
    density, hits = densities[0, :, :, 0].copy()
    score, bandwidth = mesh.score.copy(), float(plan.bandwidths(once)[0])
    supported = is_supported(density, mesh.low, mesh.high)
    probability = posterior(density, hits, score, mesh.low, mesh.high)
    probability[~supported] = np.nan
    rows = np.minimum(n, n * density * mesh.effective_width(bandwidth))
    return {
        "score": score, "probability": probability, "density": density, "supported": supported,
        "rows": rows, "bandwidth": bandwidth, "score_range": estimator.range_of(ordered),
    }  # fmt: skip


def curves_of(call: Call, rng: Any) -> list[ReliabilityCurve]:
    """Make the curve of each problem of a call with one estimator."""
    (estimator,), (source,) = call.estimators.values(), call.sources
    samples = source.samples(source.needs_of(estimator))
    each = [curve_of(estimator, sample.sorted(), call.n, call.level) for sample in samples]
    values = estimator.point_values(source).tolist()
    if call.n_resamples and "low" not in each[0]:
        need_rows(source, "a band of resamples", "n_resamples")
        key = new_key(rng)  # all problems see the same draws
        each = [
            {**own, **band_of(call, sample, own, key), "n_resamples": call.n_resamples, "key": key}
            for own, sample in zip(each, samples, strict=True)
        ]
    elif call.groups is not None:
        rule = "go with a KDE and n_resamples of 1 or more, as nothing else is made of draws"
        raise InputError("groups", rule)
    return [
        ReliabilityCurve(
            **own, lce=own["probability"] - own["score"], value=values[k], setting=source.name(k),
            confidence_level=call.level, n=call.n, estimator=str(estimator),
        )
        for k, own in enumerate(each)
    ]  # fmt: skip


def band_of(call: Call, sample: Sample, curve: dict[str, Any], key: int) -> dict[str, F64]:
    """Compute the band of a curve, and the median of its replicates."""
    (estimator,), score = call.estimators.values(), curve["score"]
    levels = np.append(tails_of(call.level), 0.5)
    step = max(1, MAX_VALUES // call.n_resamples)
    problems, draws, parts = [call.problem(sample)], call.draws(key, call.n), []
    for begin in range(0, score.size, step):
        some = Curve(estimator, score[begin : begin + step])
        values = call.replicates([some], problems, draws, call.n, 0, call.n_resamples)
        parts.append(quantiles(values[0], levels).T)
    band = np.where(curve["supported"], np.concatenate(parts, axis=1), np.nan)
    return {name: part.copy() for name, part in zip(BAND, band, strict=True)}


@overload
def reliability_curve(
    y_true: Any, y_prob: Any = ..., *, setting: Literal["classwise"], **options: Any
) -> list[ReliabilityCurve]: ...
@overload
def reliability_curve(
    y_true: Any, y_prob: Any = ..., *, setting: str | int = ..., **options: Any
) -> ReliabilityCurve: ...
def reliability_curve(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece_bayes", n_resamples: int = 0,
    rng: Any = 0, groups: Any = None, **options: Any,
) -> ReliabilityCurve | list[ReliabilityCurve]:  # fmt: skip
    """Estimate the probability of the event as a function of the score.

    Parameters
    ----------
    y_true, y_prob, rng, **options
        As in `fastece.estimate`, but every class has a curve of its own. Others are parameters of
        the estimator to replace, such as ``bandwidth=0.05``.
    estimator : {"ece_bayes", "ece_kde"}, BayesCurve or KDE, default "ece_bayes"
    n_resamples : int, default 0
        Bootstrap resamples behind the band of a `KDE`; without any, there is none. A `BayesCurve`
        has its band from the posterior, and makes none.
    groups : (n,) array_like, optional
        As in `fastece.bootstrap`, for the band of a `KDE`: whole groups are drawn.

    Returns
    -------
    ReliabilityCurve, or for ``setting="classwise"`` a list of K of them

    Raises
    ------
    ValueError, TypeError
        As `fastece.bootstrap`; for an estimator without densities; for `groups` without a band that
        is made of resamples.

    Notes
    -----
    A `BayesCurve` is the posterior mean, and the band is between quantiles of the posterior at
    every score by itself. It also works where scores are heaped, as scores of modern networks are
    at 1. Its assumptions are in ``docs/bayes.md``.

    A `KDE` gives ``P(y = 1 | s) = g(s) / f(s)`` with the densities f of the scores and g of the
    hits: Posocco and Bonnefoy (2021, "Estimating expected calibration errors", section 3 and figure
    1). Its band is made of the percentiles of the curves of resampled rows, each with its own
    bandwidth, at every score by itself; it does not include the bias of smoothing.

    Where there are not enough scores, the curve is nan: of a `BayesCurve` where no row
    is within 0.025, of a `KDE` where ``f < 0.01 / (high - low)``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> curve = reliability_curve(y, p)
    >>> low, high = curve.interval(0.5)  # 0.25 is true
    >>> low < curve(0.5) < high, low < 0.25 < high
    (True, True)
    >>> print(reliability_curve(y, p, estimator="ece_kde", n_resamples=500))
    KDE(bandwidth='silverman'), setting binary: 0.14969, 1000 rows, bandwidth 0.07576
      score  frequency           95 % CI  rows nearby
      0.000     0.0044  [0.0015, 0.0090]          119
      0.100     0.0241    [0.011, 0.043]          206
      0.200     0.0697    [0.038, 0.105]          250
      0.300     0.1238    [0.089, 0.166]          252
      0.400     0.1941    [0.151, 0.240]          268
      0.500     0.2756    [0.231, 0.324]          274
      0.600     0.3888      [0.33, 0.44]          282
      0.700     0.5028      [0.45, 0.56]          287
      0.800     0.6470      [0.60, 0.70]          295
      0.900     0.8288    [0.789, 0.870]          239
      1.000     0.9320    [0.904, 0.960]          135
    """
    if "average" in options:
        raise InputTypeError("average", "is no option of reliability_curve: classes have their own")
    call = read_call(
        "reliability_curve", y_true, {"y_prob": y_prob}, 0, estimator=estimator,
        n_resamples=n_resamples, **options, average=None,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob)
    curves = curves_of(call, rng)
    return curves if call.sources[0].setting.per_class else curves[0]


# --- errors by bandwidth --------------------------------------------------------------------


@singledispatch
def sweep(estimator: Any, sample: Sample, size: int, bandwidths: F64) -> F64:  # noqa: ARG001
    """Compute values (H,) of an estimator on a sorted sample, at bandwidths (H,)."""
    raise InputTypeError("estimator", "must have a bandwidth, as KDE has", value=estimator)


@sweep.register
def _(estimator: KDE, sample: Sample, size: int, bandwidths: F64) -> F64:
    return estimator.sweep(sample, size, bandwidths)


def bandwidth_sweep(
    y_true: Any, y_prob: Any = None, bandwidths: Any = (), *, estimator: Any = "ece_kde",
    setting: Any = "auto", average: Any = "macro", labels: Any = None, pos_label: Any = None,
    sample_weight: Any = None, from_logits: bool = False, **fields: Any,
) -> F64:  # fmt: skip
    """Compute the density-based error for each of some bandwidths.

    Scores are binned once for all, and with beta kernels once for those that differ by less than a
    fifth.

    Parameters
    ----------
    y_true, y_prob, setting, average, labels, pos_label, sample_weight, from_logits
        As in `fastece.ece`.
    bandwidths : (H,) array-like of float
        Standard deviations of the kernel, greater than 0.
    estimator : str or KDE, default "ece_kde"
        Its own bandwidth is not used.
    **fields
        Other parameters of the estimator to replace, such as ``kernel="beta"``.

    Returns
    -------
    (H,) float64 array, or (K, H) for the classes with ``average=None``

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`; for a bandwidth that is not positive and finite; for an estimator without
        one.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import bandwidth_sweep
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> print(bandwidth_sweep(rng.random(500) < p, p, [0.01, 0.05, 0.2]).round(3))
    [0.075 0.028 0.035]
    """
    check_average(average)
    if "bandwidth" in fields:
        raise InputTypeError("bandwidth", "must not be given, as {bandwidths} has them all")
    chosen = find_estimator(estimator, fields)
    h = np.asarray(as_real("bandwidths", bandwidths), np.float64)
    if h.ndim != 1 or not h.size:
        raise InputError("bandwidths", f"must be a list of numbers, got shape {h.shape}")
    refuse_where(
        "bandwidths", "must be positive and finite", h, lambda x: ~((x > 0) & (x < np.inf))
    )
    source = read_source(
        y_true, y_prob, setting=setting, labels=labels, pos_label=pos_label,
        sample_weight=sample_weight, from_logits=from_logits,
    )  # fmt: skip
    samples = source.samples(source.needs_of(chosen))
    values = np.array([sweep(chosen, sample.sorted(), source.n, h) for sample in samples])
    # Of one problem, the mean is its own value.
    per_class = source.setting.per_class and average is None
    return values if per_class else np.asarray(values.mean(0))
