"""Reliability curves: the observed frequency as a function of the score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_real, refuse_where
from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import shows_options
from fastece.data.samples import Sample
from fastece.display.documents import Document, Section, Table
from fastece.display.marks import MIN_ROWS_OF_CURVE, CurveDrawing
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.estimators.base import values_of_problems
from fastece.estimators.curve import Curve
from fastece.estimators.table import RowEstimatorKeywords
from fastece.kernels.types import F64
from fastece.reliability.plottable import Plottable
from fastece.resampling.arguments import ResamplingKeywords, add_groups, read_call
from fastece.resampling.call import Call, bootstrap_values, calls_on_problems, make_problem
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import as_float, quantiles, tails_of
from fastece.resampling.naming import describe

# How far beyond 0 and 1 a score may be, by rounding of probabilities.
SCORE_TOLERANCE = 1e-6
# A table has the curve at these quantiles of the scores, and where thresholds often are.
TABLE_QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
TABLE_SCORES = (0.9, 0.95, 0.99)
# Decimals of a score in a table.
MIN_DECIMALS = 3
MAX_DECIMALS = 9
# Mark of a point whose interval comes mostly from assumptions: the prior, or the kernel.
FEW_ROWS = "few rows"
# Values of all replicates that are kept at once: 256 MB. A finer grid is done in parts.
MAX_VALUES = 2**25
# Standard deviation, in scores of a curve's grid, of the average that smooths a band.
SMOOTHING_WIDTH = 10.0


# --- the result -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityCurve(Plottable):
    """The probability of the event as a function of the score, on a grid.

    Attributes
    ----------
    score : (G,) float64 array
        Increasing scores: the centres of G cells of the range; with a `BayesCurve` 501 scores from
        one end of the range to the other and 513 quantiles of the scores.
    probability : (G,) float64 array
        ``P(y = 1 | s)``. It is nan where the curve is not `supported`, and so are `lce`, `low`,
        `high` and `median`.
    lce : (G,) float64 array
        Local calibration error, ``probability - score``.
    density : (G,) float64 array
        Density of the scores.
    supported : (G,) bool array
        Whether there are enough scores: ``density >= 0.01 / (high - low)``, a hundredth of its
        mean over the range; with a `BayesCurve`, a row within 0.025.
    rows : (G,) float64 array
        About how many rows the curve rests on: n times the density times the width that the kernel
        averages over; with a `BayesCurve`, the rows within 0.025.
    low, high, median : (G,) float64 array or None
        Ends of the interval at each score by itself: quantiles of the posterior of a `BayesCurve`,
        which has no median, or of the bootstrap distribution, with its median. None without
        resamples.
    confidence_level, n_resamples, key : float, int, int or None
        Level and resamples of the band, and the key that determines the draws; it is None without
        resamples.
    value, bandwidth : float, float or None
        The calibration error, as `fastece.ece` gives it, and the standard deviation of the kernel,
        None for a `BayesCurve`.
    score_range, n : tuple of float, int
        Ends of the range, and number of rows of positive weight.
    marks : (M,) float64 array
        The scores of tables: quantiles of the scores, from 0 to 100 %, and 0.9, 0.95 and 0.99.
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
        """Interpolate the probability of the event at one score or several.

        Parameters
        ----------
        s : float or array_like
            Scores in [0, 1]. Anything else raises a ValueError or a TypeError.

        Returns
        -------
        float, or float64 array of the shape of `s`
            Interpolated linearly; a `BayesCurve` has its posterior mean. Outside the range, the
            value at its nearest end. Where the curve is not `supported`, nan: too few scores.
        """
        return self._interpolate(s, self.probability)

    def interval(self, s: Any) -> ConfidenceInterval:
        """Interpolate the interval of the probability at one score or several.

        Parameters
        ----------
        s : float or array_like
            Scores in [0, 1].

        Returns
        -------
        ConfidenceInterval
            ``(low, high)``, floats or arrays of the shape of `s`, at the `confidence_level` of the
            curve: quantiles of the posterior of a `BayesCurve`, or of the resamples of a `KDE`.
            Where the curve is not `supported`, nan.

        Raises
        ------
        ValueError, TypeError
            For values that are not scores; for a `KDE` without resamples.
        """
        if self.low is None or self.high is None:
            raise InputError("n_resamples", "must be 1 or more for an interval of this curve")
        return ConfidenceInterval(self._interpolate(s, self.low), self._interpolate(s, self.high))

    def _interpolate(self, s: Any, values: NDArray[Any]) -> Any:
        """Interpolate values on the grid at a score, or at an array of scores."""
        is_number = isinstance(s, Real)
        scores = np.asarray(as_real("s", [s] if is_number else s), np.float64)
        refuse_where("s", "must be a score from 0 to 1", np.atleast_1d(scores), is_no_score)
        interpolated = np.interp(scores, self.score, values)
        return float(interpolated[0]) if is_number else as_float(interpolated)

    # --- text -------------------------------------------------------------------------------

    def document(self) -> Document:
        """Describe the curve at quantiles of the scores, and at 0.9, 0.95 and 0.99."""
        section = self.section()
        return Document(f"{section.title}, {self.n} rows", sections=[replace(section, title="")])

    def points(self, scores: Any = None) -> list[dict[str, Any]]:
        """Evaluate the curve at scores, by default at `marks`; nan where none is near.

        Each point has its score, probability, low, high, rows, and whether it is supported.
        """
        s = np.asarray(self.marks if scores is None else scores, np.float64)
        is_inside = (s >= self.score_range[0]) & (s <= self.score_range[1])
        low = high = np.full(s.size, np.nan)
        if self.low is not None:
            low, high = self.interval(s)
        probability = np.where(is_inside, self(s), np.nan)
        columns = {
            "score": s,
            "probability": probability,
            "low": np.where(is_inside, low, np.nan),
            "high": np.where(is_inside, high, np.nan),
            "rows": np.where(is_inside, self._interpolate(s, self.rows), 0.0),
            "supported": np.isfinite(probability),
        }
        points = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, point, strict=True)) for point in points]

    def section(self, scores: Any = None) -> Section:
        """Describe the curve at scores, by default at `marks`, in a table."""
        has_band = self.low is not None
        rows = []
        for point in self.points(scores):
            score = Number(point["score"], form=score_format(point["score"]))
            row: list[Any] = [score, Number(point["probability"], form=".4f")]
            if has_band:
                row.append(ConfidenceInterval(point["low"], point["high"]))
            row.append(Number(point["rows"], form=".0f"))
            row.append(mark_of(point))
            rows.append(tuple(row))
        level = [f"{100 * self.confidence_level:g} % CI"] if has_band else []
        title = f"{self.estimator}, setting {self.setting}: error {self.value:.5f}"
        if self.bandwidth is not None:
            title += f", bandwidth {self.bandwidth:.4g}"
        return Section(title, table=Table(["score", "frequency", *level, "rows nearby", ""], rows))

    def _columns(self) -> dict[str, Any]:
        names = ["score", "probability", "lce", "density", "supported", "rows"]
        names += [x for x in ("low", "high", "median") if getattr(self, x) is not None]
        return {name: getattr(self, name) for name in names}

    # --- picture ----------------------------------------------------------------------------

    def drawing(self, band: Any = True) -> CurveDrawing:
        """Collect the curve to draw, with its band or without."""
        is_bayes = self.bandwidth is None
        low = high = median = None
        if band and self.low is not None and self.high is not None:
            median = self.median
            low = smooth_end(self.probability, self.low) if is_bayes else self.low
            high = smooth_end(self.probability, self.high) if is_bayes else self.high
        enough = self.supported
        if not is_bayes:
            # With sharp scores the bandwidth is small: elsewhere a density jumps from row to row.
            enough = enough & (self.rows >= MIN_ROWS_OF_CURVE)
        origin = "resamples" if self.n_resamples else "posterior"
        return CurveDrawing(
            estimator=self.estimator, setting=self.setting, value=self.value, score=self.score,
            frequency=self.probability, weight=self.density, low=low, high=high, median=median,
            enough=enough, interval_name=f"{100 * self.confidence_level:g} % CI ({origin})",
        )  # fmt: skip


def mark_of(point: Mapping[str, Any]) -> str:
    """Mark a point of a table that rests on few rows, or on none."""
    if not point["supported"]:
        return "no scores"
    return FEW_ROWS if point["rows"] < MIN_ROWS_OF_CURVE else ""


def is_no_score(values: F64) -> NDArray[np.bool_]:
    """Return which values are neither from 0 to 1 nor rounded scores."""
    return np.asarray(~(np.abs(values - 0.5) <= 0.5 + SCORE_TOLERANCE))


def smooth_end(middle: F64, end: F64) -> F64:
    """Average the distance of a band's end from its curve over neighbouring scores.

    For pictures alone: a quantile of 128 curves is noisy.
    """
    from scipy.ndimage import gaussian_filter1d

    is_known = np.isfinite(middle)
    share_known = gaussian_filter1d(np.where(is_known, 1.0, 0.0), SMOOTHING_WIDTH)
    distance = gaussian_filter1d(np.where(is_known, end - middle, 0.0), SMOOTHING_WIDTH)
    distance /= np.maximum(share_known, 1e-300)
    return np.asarray(np.where(is_known, middle + distance, np.nan))


def table_scores(ordered: Sample) -> F64:
    """Choose the scores that a table of a curve shows, from a sorted sample."""
    scores_in_range = [x for x in TABLE_SCORES if ordered.s[0] < x < ordered.s[-1]]
    return np.unique(np.concatenate([ordered.quantiles(TABLE_QUANTILES), scores_in_range]))


def score_format(s: float) -> str:
    """Choose the format that leaves two digits of the distance from 0 or 1."""
    distance = min(s, 1 - s)
    if distance <= 0:
        return ".0f"
    decimals = 1 - math.floor(math.log10(distance))
    return f".{min(max(decimals, MIN_DECIMALS), MAX_DECIMALS)}f"


# --- bands of resamples ---------------------------------------------------------------------


class Band(NamedTuple):
    """Quantiles (G,) of the curves of all resamples at each score by itself."""

    low: F64
    high: F64
    median: F64


def needs_resamples(call: Call, fit: Curve) -> bool:
    """Return whether a band is made of resamples; groups without a band are refused."""
    if fit.low is not None:
        return False
    (estimator,) = call.estimators.values()
    if call.n_resamples and estimator.curve_statistic is None:
        rule = f"must be 0 for {describe(estimator)}, whose curve is not resampled"
        raise InputError("n_resamples", rule, value=call.n_resamples)
    if call.n_resamples == 0 and call.groups is not None:
        rule = "go with n_resamples of 1 or more for a KDE, as nothing else is made of draws"
        raise InputError("groups", rule)
    return call.n_resamples > 0


def band_of(call: Call, sample: Sample, fit: Curve, key: int) -> Band:
    """Compute the band of a curve from the curves of resampled rows."""
    (estimator,) = call.estimators.values()
    levels = np.append(tails_of(call.level), 0.5)
    step = max(1, MAX_VALUES // call.n_resamples)
    problem = make_problem(call, sample)
    parts = []
    for begin in range(0, fit.score.size, step):
        statistic = estimator.curve_statistic(fit.score[begin : begin + step])
        parts.append(quantiles(bootstrap_values(call, statistic, problem, key), levels).T)
    low, high, median = np.where(fit.supported, np.concatenate(parts, axis=1), np.nan)
    return Band(low.copy(), high.copy(), median.copy())


# --- the call -------------------------------------------------------------------------------


def curve_of(call: Call, ordered: Sample) -> Curve:
    """Compute the curve of the only estimator of a call from a sorted sample."""
    (estimator,) = call.estimators.values()
    if estimator.curve is None:
        rule = "a reliability curve needs a BayesCurve, or densities, KDE"
        raise InputTypeError("estimator", rule, value=estimator)
    # For a band of resamples whole groups are drawn; other bands need their design effect.
    effect = call.design_effect if estimator.curve_statistic is None else 1.0
    curve: Curve = estimator.curve(ordered, call.n, call.level, effect)
    return curve


def curves_of(call: Call, rng: Any) -> list[ReliabilityCurve]:
    """Make the curve of each problem of a call with one estimator."""
    if call.tables[0].has_own_rows:
        names = call.tables[0].problem_names
        curves = [curves_of(part, rng)[0] for part in calls_on_problems(call)]
        return [replace(curve, setting=name) for curve, name in zip(curves, names, strict=True)]
    (estimator,) = call.estimators.values()
    (table,) = call.tables
    samples = table.seen_by(estimator).samples(reads_only=True)
    ordered = [sample.sorted() for sample in samples]
    fits = [curve_of(call, sample) for sample in ordered]
    values = values_of_problems(estimator, table).tolist()
    bands: Sequence[Band | None] = [None] * len(fits)
    key = None
    if needs_resamples(call, fits[0]):
        table.need_rows("a band of resamples", "n_resamples")
        key = new_key(rng)  # all problems see the same draws
        bands = [band_of(call, *pair, key) for pair in zip(samples, fits, strict=True)]
    return [
        ReliabilityCurve(
            score=fit.score,
            probability=fit.probability,
            lce=fit.probability - fit.score,
            density=fit.density,
            supported=fit.supported,
            rows=fit.rows,
            low=fit.low if band is None else band.low,
            high=fit.high if band is None else band.high,
            median=None if band is None else band.median,
            confidence_level=call.level,
            n_resamples=0 if band is None else call.n_resamples,
            key=key,
            value=values[k],
            bandwidth=fit.bandwidth,
            score_range=fit.score_range,
            n=call.n,
            marks=table_scores(ordered[k]),
            estimator=str(estimator),
            setting=table.name(k),
        )
        for k, (fit, band) in enumerate(zip(fits, bands, strict=True))
    ]


@overload
def reliability_curve(
    y_true: Any, y_prob: Any = ..., *, setting: Literal["classwise"], estimator: Any = ...,
    n_resamples: int = ..., confidence_level: float = ..., rng: Any = ..., groups: Any = ...,
    n_jobs: int | None = ..., executor: Any = ..., **options: Unpack[RowEstimatorKeywords],
) -> list[ReliabilityCurve]: ...  # fmt: skip
@overload
def reliability_curve(
    y_true: Any, y_prob: Any = ..., *, setting: str | int = ..., estimator: Any = ...,
    n_resamples: int = ..., confidence_level: float = ..., rng: Any = ..., groups: Any = ...,
    n_jobs: int | None = ..., executor: Any = ..., **options: Unpack[RowEstimatorKeywords],
) -> ReliabilityCurve: ...  # fmt: skip
@shows_options
def reliability_curve(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece_bayes", n_resamples: int = 0,
    rng: Any = 0, groups: Any = None, **options: Unpack[ResamplingKeywords],
) -> ReliabilityCurve | list[ReliabilityCurve]:  # fmt: skip
    """Estimate the probability of the event as a function of the score.

    Parameters
    ----------
    y_true, y_prob, rng, **options
        As in `fastece.estimate`, but every class has a curve of its own. Others are parameters of
        the estimator to replace, such as ``bandwidth=0.05``.
    estimator : {"ece_bayes", "ece_kde"}, BayesCurve or KDE, default "ece_bayes"
        Or an object of your own with a method `curve`.
    n_resamples : int, default 0
        Bootstrap resamples behind the band of a `KDE`, which has none without them. The band of a
        `BayesCurve` is made from its posterior, without resamples.
    groups : (n,) array_like, optional
        As in `fastece.estimate`, for the band; for a `KDE` whole groups are drawn.

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
    every score by itself. It also works where many scores are equal, such as the scores of modern
    networks that are 1. Its assumptions are in ``docs/explanation/bayes.md``.

    A `KDE` gives ``P(y = 1 | s) = g(s) / f(s)`` with the densities f of the scores and g of the
    hits: Posocco and Bonnefoy (2021, "Estimating expected calibration errors", section 3 and figure
    1). Its band is made of the percentiles of the curves of resampled rows, each with its own
    bandwidth, at every score by itself; it does not include the bias of smoothing.

    Where there are not enough scores, the curve is nan: a `BayesCurve` where no row is within
    0.025, a `KDE` where ``f < 0.01 / (high - low)``.

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
    call = read_call(
        "reliability_curve", y_true, {"y_prob": y_prob}, 0, estimator=estimator,
        n_resamples=n_resamples, average=None, **options,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob)
    curves = curves_of(call, rng)
    return curves if call.tables[0].setting.per_class else curves[0]
