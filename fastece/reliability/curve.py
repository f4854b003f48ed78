"""Reliability curves: the observed frequency as a function of the score."""

import math
from dataclasses import dataclass, replace
from functools import singledispatch
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_real, refuse_where
from fastece.data.errors import InputError, InputTypeError
from fastece.data.samples import Sample
from fastece.data.sources import need_rows
from fastece.display.documents import Document, Section, Table
from fastece.display.marks import MIN_ROWS_OF_CURVE, CurveDrawing
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.estimators.base import Statistic
from fastece.estimators.bayes.estimator import REACH, BayesCurve, rows_near
from fastece.estimators.density.estimator import KDE, is_supported, posterior
from fastece.estimators.density.plan import replicate_count, smooth_sums
from fastece.estimators.draws import Counts
from fastece.kernels.types import F64
from fastece.reliability.diagram import Plottable
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.call import Call, bootstrap_values, make_problem
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import as_float, quantiles, tails_of

if TYPE_CHECKING:
    pass
# How far beyond 0 and 1 a score may be, as of rounded probabilities.
TOLERANCE = 1e-6
# A curve has so many times as many points as its error needs: its pieces look smooth.
REFINEMENT = 2.0
# A table has the curve at the quantiles of the scores, and where thresholds often are.
TABLE_QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
TABLE_SCORES = (0.9, 0.95, 0.99)
# Values of all replicates that are kept at once: 256 MB. A finer grid is done in parts.
MAX_VALUES = 2**25
# Standard deviation, in scores of a curve's grid, of the average that smooths a band.
SPREAD = 10.0
BAND = ("low", "high", "median")
POINT = ("score", "probability", "low", "high", "rows", "supported")


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityCurve(Plottable):
    """The probability of the event as a function of the score, on a grid.

    Attributes
    ----------
    score : (G,) float64 array
        Increasing scores: the centres of G cells of the range; of a `BayesCurve` 501 from one end
        of the range to the other and 513 quantiles of the scores.
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
    marks : (M,) float64 array
        What tables show: quantiles of the scores, 0 to 100 %, and 0.9, 0.95 and 0.99.
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
    marks: F64
    estimator: str
    low: F64 | None = None
    high: F64 | None = None
    median: F64 | None = None
    n_resamples: int = 0
    value: float = math.nan
    bandwidth: float | None = None
    key: int | None = None
    setting: str = ""

    def __repr__(self) -> str:
        return f"<ReliabilityCurve({self.estimator}): {self.n} rows, error {self.value:.4f}>"

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
        rule, most = "must be a score from 0 to 1", 0.5 + TOLERANCE
        refuse_where("s", rule, np.atleast_1d(at), lambda x: ~(np.abs(x - 0.5) <= most))
        found = np.interp(at, self.score, values)
        return float(found[0]) if one else as_float(found)

    def drawing(self, band: Any = True) -> CurveDrawing:
        """Return the curve to draw, with its band or without."""
        # With sharp scores the bandwidth is small, and elsewhere a density jumps from row to row.
        fewest = 0 if self.bandwidth is None else MIN_ROWS_OF_CURVE
        of = "resamples" if self.n_resamples else "posterior"
        ends: dict[str, Any] = {name: getattr(self, name) if band else None for name in BAND}
        if self.bandwidth is None and ends["low"] is not None:
            ends |= {x: smooth_end(self.probability, ends[x]) for x in ("low", "high")}
        fields = self._fields() | ends | {"enough": self.supported & (self.rows >= fewest)}
        fields["interval_name"] = f"{100 * self.confidence_level:g} % CI ({of})"
        return CurveDrawing(**fields, frequency=self.probability, weight=self.density)

    def document(self) -> Document:
        """Describe the curve at quantiles of the scores, and at 0.9, 0.95 and 0.99."""
        section = self.section()
        return Document(f"{section.title}, {self.n} rows", sections=[replace(section, title="")])

    def points(self, scores: Any = None) -> list[dict[str, Any]]:
        """Evaluate the curve at some scores; values are nan where there are none near by."""
        at = np.asarray(self.marks if scores is None else scores, np.float64)
        inside = (at >= self.score_range[0]) & (at <= self.score_range[1])
        ends = [np.full(at.size, np.nan)] * 2 if self.low is None else self.interval(at)
        probability, low, high = (np.where(inside, x, np.nan) for x in (self(at), *ends))
        near = np.where(inside, self._at(at, self.rows), 0.0)
        columns = (at, probability, low, high, near, np.isfinite(probability))
        lines = zip(*(column.tolist() for column in columns), strict=True)
        return [dict(zip(POINT, line, strict=True)) for line in lines]

    def section(self, scores: Any = None) -> Section:
        """Describe the curve at some scores in a table."""
        rows = []
        for x in self.points(scores):
            ends = [] if self.low is None else [ConfidenceInterval(x["low"], x["high"])]
            score = Number(x["score"], form=form_of(x["score"]))
            probability, near = Number(x["probability"], form=".4f"), Number(x["rows"], form=".0f")
            rows.append((score, probability, *ends, near, "" if x["supported"] else "no scores"))
        level = [] if self.low is None else [f"{100 * self.confidence_level:g} % CI"]
        bandwidth = "" if self.bandwidth is None else f", bandwidth {self.bandwidth:.4g}"
        title = f"{self.estimator}, setting {self.setting}: error {self.value:.5f}"
        table = Table(["score", "frequency", *level, "rows nearby", ""], rows)
        return Section(title + bandwidth, table=table)

    def _columns(self) -> dict[str, Any]:
        names = ["score", "probability", "lce", "density", "supported", "rows"]
        names += [name for name in BAND if getattr(self, name) is not None]
        return {name: getattr(self, name) for name in names}


def smooth_end(middle: F64, end: F64) -> F64:
    """Average the distance of a band's end from its curve over some scores.

    For pictures alone: a quantile of 128 curves is noisy.
    """
    from scipy.ndimage import gaussian_filter1d

    is_known = np.isfinite(middle)
    share = np.maximum(gaussian_filter1d(is_known * 1.0, SPREAD), 1e-300)
    distance = gaussian_filter1d(np.where(is_known, end - middle, 0.0), SPREAD) / share
    return np.asarray(np.where(is_known, middle + distance, np.nan))


def marks_of(ordered: Sample) -> F64:
    """Return the scores that a table of a curve shows, from a sorted sample."""
    inside = [x for x in TABLE_SCORES if ordered.s[0] < x < ordered.s[-1]]
    return np.unique(np.concatenate([ordered.quantiles(TABLE_QUANTILES), inside]))


def form_of(s: float) -> str:
    """Return the format that leaves two digits of the distance from 0 or 1."""
    rest = min(s, 1 - s)
    return f".{min(max(1 - math.floor(math.log10(rest)), 3), 9)}f" if rest > 0 else ".0f"


@dataclass(frozen=True, eq=False)
class Curve(Statistic):
    """The curve of a `KDE` at some scores, as a statistic that is resampled."""

    kde: KDE
    score: F64

    def prepare(self, sample: Sample, size: int) -> Any:
        """Make a plan with grids that are fine enough to be interpolated."""
        return self.kde.plan(sample, size, REFINEMENT)

    def values(self, plan: Any, draws: Counts) -> F64:
        """Compute the curve (G, 32 B) of each of the replicates."""
        out = np.empty((self.score.size, replicate_count(draws)))
        for mesh, density, lanes in plan.densities(draws):
            at = np.interp(self.score, mesh.score, np.arange(mesh.count))
            j = at.astype(np.int64)
            t, following = (at - j)[:, None], np.minimum(j + 1, mesh.count - 1)
            f, g = ((1 - t) * density[:, :, j] + t * density[:, :, following]).swapaxes(0, 1)
            found = posterior(f, g, self.score[:, None], mesh.low, mesh.high).swapaxes(0, 1)
            out[:, lanes] = found.reshape(self.score.size, -1)[:, : lanes.size]
        return out


@singledispatch
def curve_of(estimator: Any, ordered: Sample, call: Call) -> dict[str, Any]:  # noqa: ARG001
    """Compute the own fields of a curve, by name, from a sorted sample of a call."""
    rule = "a reliability curve needs a BayesCurve, or densities, KDE"
    raise InputTypeError("estimator", rule, value=estimator)


@curve_of.register
def _(estimator: BayesCurve, ordered: Sample, call: Call) -> dict[str, Any]:
    score, n = estimator.curve_scores(ordered), call.n
    mean, low, high = estimator.curve(ordered, score, call.level, call.design_effect)
    rows = rows_near(ordered, score)
    width = np.minimum(score + REACH, ordered.high) - np.maximum(score - REACH, ordered.low)
    return {
        "score": score, "probability": mean, "density": rows / (n * width), "supported": rows > 0,
        "rows": rows, "low": low, "high": high, "score_range": (ordered.low, ordered.high),
    }  # fmt: skip


@curve_of.register
def _(estimator: KDE, ordered: Sample, call: Call) -> dict[str, Any]:
    n = call.n
    plan = estimator.plan(ordered, n, REFINEMENT)
    bandwidth = plan.bandwidth_of_counts(ordered.c)
    mesh = plan.rule.even_mesh(plan.bandwidth)
    sums = plan.sums_in_cells(mesh, ordered.c)
    density, hits = smooth_sums(mesh, sums, bandwidth).values[0, :, :, 0].copy()
    score = mesh.score.copy()
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
    samples = source.samples(source.needs_of(estimator), reads_only=True)
    ordered = map(Sample.sorted, samples)
    each = [{**curve_of(estimator, x, call), "marks": marks_of(x)} for x in ordered]
    values = estimator.point_values(source).tolist()
    if call.n_resamples and "low" not in each[0]:
        need_rows(source, "a band of resamples", "n_resamples")
        key = new_key(rng)  # all problems see the same draws
        each = [
            {**own, **band_of(call, sample, own, key), "n_resamples": call.n_resamples, "key": key}
            for own, sample in zip(each, samples, strict=True)
        ]
    elif call.groups is not None and "low" not in each[0]:
        rule = "go with n_resamples of 1 or more for a KDE, as nothing else is made of draws"
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
    problem, parts = make_problem(call, sample), []
    for begin in range(0, score.size, step):
        some = Curve(estimator, score[begin : begin + step])
        parts.append(quantiles(bootstrap_values(call, some, problem, key), levels).T)
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
        As in `fastece.estimate`, for the band: of a `KDE` whole groups are drawn.

    Returns
    -------
    ReliabilityCurve, or for ``setting="classwise"`` a list of K of them

    Raises
    ------
    ValueError, TypeError
        As `fastece.bootstrap`; for an estimator without densities; for `groups` without a band.

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
    KDE(bandwidth='silverman'), setting binary: error 0.14969, bandwidth 0.07576, 1000 rows
      score    frequency           95 % CI  rows nearby
      0.00019     0.0044  [0.0015, 0.0090]          119
      0.066       0.0129    [0.005, 0.024]          163
      0.119       0.0320    [0.015, 0.055]          226
      0.274       0.1068    [0.073, 0.145]          250
      0.529       0.3083      [0.26, 0.36]          277
      0.764       0.5902      [0.54, 0.65]          294
      0.895       0.8208    [0.780, 0.863]          245
      0.900       0.8288    [0.789, 0.870]          239
      0.944       0.8959    [0.862, 0.929]          173
      0.950       0.9031    [0.870, 0.935]          165
      0.990       0.9309    [0.902, 0.959]          136
      0.99950     0.9320    [0.904, 0.960]          135
    """
    if "average" in options:
        raise InputTypeError("average", "is no option of reliability_curve: classes have their own")
    options |= {"estimator": estimator, "n_resamples": n_resamples, "average": None}
    call = read_call("reliability_curve", y_true, {"y_prob": y_prob}, 0, **options)
    call = add_groups(call, groups, y_prob)
    curves = curves_of(call, rng)
    return curves if call.sources[0].setting.per_class else curves[0]
