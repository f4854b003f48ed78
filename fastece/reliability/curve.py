"""Reliability curves: how often a score comes true, from densities, at any score."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fastece.bayes.estimator import REACH, BayesCurve, rows_near
from fastece.estimators import direct_values
from fastece.inputs.arrays import as_real, refuse_where
from fastece.kde.estimator import KDE, is_supported, posterior
from fastece.kde.plan import Copies, DensityPlan
from fastece.problems.problems import one_problem
from fastece.protocol import Sample
from fastece.resampling.arguments import Call, read_call
from fastece.resampling.draws import draws_of, new_key
from fastece.resampling.engine import Problem, plan_replicates
from fastece.resampling.intervals import ConfidenceInterval, quantiles, tails_of
from fastece.resampling.results import as_float, as_python

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SHOWN", "ReliabilityCurve", "curves_of", "reliability_curve"]

F64 = NDArray[np.float64]
# How far beyond 0 and 1 a score may be, as of rounded probabilities.
TOLERANCE = 1e-6
# Where in its range a printed curve is shown.
SHOWN = np.linspace(0, 1, 11)
# A curve has so many times as many points as its error needs: its pieces look smooth.
FINER = 2.0
# Points of a Bayesian curve, in a range.
BAYES_POINTS = 501
# Values of all replicates that are kept at once: 256 MB. A finer grid is done in parts.
MOST_VALUES = 2**25


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityCurve:
    """The probability of a hit as a function of the score, on a grid.

    Attributes
    ----------
    score : (G,) float64 array
        Evenly spaced scores: the centres of G cells of the range; of a `BayesCurve` from one end
        of the range to the other.
    posterior : (G,) float64 array
        ``P(y = 1 | s)``; where the curve has no support the score itself, of a `BayesCurve` nan.
    lce : (G,) float64 array
        Local calibration error, ``posterior - score``.
    density : (G,) float64 array
        Density of the scores.
    supported : (G,) bool array
        Whether there are scores to speak of: ``density >= 0.01 / (high - low)``, a hundredth of its
        mean over the range; of a `BayesCurve`, a row within 0.025.
    rows : (G,) float64 array
        About how many rows the curve rests on: n times the density times the width that the kernel
        averages over; of a `BayesCurve`, those within 0.025.
    low, high : (G,) float64 array or None
        Ends of the interval of the posterior at each score by itself: of a `BayesCurve` between
        quantiles of its posterior, else of the bootstrap distribution; None without resamples.
    median : (G,) float64 array or None
        Median of the bootstrap distribution.
    confidence_level : float
        Of the band.
    n_resamples : int
    value : float
        The calibration error, as `fastece.ece` gives it.
    bandwidth : float or None
        The standard deviation of the kernel; None of a `BayesCurve`.
    score_range : tuple of float
        Ends of the range.
    n : int
        Number of rows of positive weight.
    key : int or None
        Key of the draws; None without resamples.
    estimator : str
        The estimator with its parameters.
    setting : str
        The setting it used.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> curve = reliability_curve(rng.random(1000) < p**2, p, n_resamples=500, rng=0)
    >>> print(curve)
    KDE(bandwidth='silverman'), setting binary: 0.14969, 1000 rows, bandwidth 0.07576
      score  P(hit)    rows  95 % interval
      0.000  0.0044     119  [0.0015, 0.0090]
      0.100  0.0241     206  [0.0107, 0.0427]
      0.200  0.0697     250  [0.0381, 0.1055]
      0.300  0.1238     252  [0.0891, 0.1658]
      0.400  0.1941     268  [0.1511, 0.2405]
      0.500  0.2756     274  [0.2309, 0.3240]
      0.600  0.3888     282  [0.3319, 0.4446]
      0.700  0.5028     287  [0.4516, 0.5594]
      0.800  0.6470     295  [0.5958, 0.7019]
      0.900  0.8288     239  [0.7893, 0.8702]
      1.000  0.9320     135  [0.9038, 0.9602]
    """

    score: F64
    posterior: F64
    lce: F64
    density: F64
    supported: NDArray[np.bool_]
    rows: F64
    low: F64 | None
    high: F64 | None
    median: F64 | None
    confidence_level: float
    n_resamples: int
    value: float
    bandwidth: float | None
    score_range: tuple[float, float]
    n: int
    key: int | None
    estimator: str
    setting: str

    def __call__(self, s: Any) -> Any:
        """Probability of a hit at a score, or at an array of them, interpolated linearly.

        Parameters
        ----------
        s : float or array-like of float
            Scores in [0, 1]; those outside the range count as its nearest end.

        Returns
        -------
        float or float64 array

        Raises
        ------
        ValueError, TypeError
            For what is no score.
        """
        return self._at(s, self.posterior)

    def interval(self, s: Any) -> ConfidenceInterval:
        """Confidence interval of the probability of a hit at a score, or at an array of them.

        Parameters
        ----------
        s : float or array-like of float
            As for the curve itself.

        Returns
        -------
        ConfidenceInterval
            ``(low, high)`` at the `confidence_level` of the curve.

        Raises
        ------
        ValueError
            For a curve without resamples.
        """
        if self.low is None or self.high is None:
            raise ValueError("interval: the curve has no resamples; ask for them by n_resamples=")
        return ConfidenceInterval(self._at(s, self.low), self._at(s, self.high))

    def _at(self, s: Any, values: F64) -> Any:
        """Values on the grid, interpolated."""
        one = isinstance(s, Real)
        at = np.asarray(as_real("s", [s] if one else s), np.float64)
        outside = "must be a score from 0 to 1"
        refuse_where(
            "s", outside, np.atleast_1d(at), lambda x: ~(np.abs(x - 0.5) <= 0.5 + TOLERANCE)
        )
        found = np.interp(at, self.score, values)
        return float(found[0]) if one else as_float(found)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the curve with its band, and the density underneath; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        from fastece.plot.results import plot_curve

        return plot_curve(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {name: as_python(getattr(self, name)) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        head = f"{self.estimator}, setting {self.setting}: {self.value:.5f}, {self.n} rows"
        if self.bandwidth is not None:
            head += f", bandwidth {self.bandwidth:.4g}"
        band = self.low is not None
        wide = f"  {100 * self.confidence_level:g} % interval" if band else ""
        lines = [head, f"  score  P(hit)    rows{wide}"]
        low, high = self.score_range
        for s in low + (high - low) * SHOWN:
            if math.isnan(self(s)):
                lines.append(f"  {s:.3f}       -  {self._at(s, self.rows):6.0f}  no scores")
                continue
            line = f"  {s:.3f}  {self(s):.4f}  {self._at(s, self.rows):6.0f}"
            if band:
                line += "  [{:.4f}, {:.4f}]".format(*self.interval(s))
            supported = self._at(s, self.supported.astype(np.float64)) == 1
            lines.append(line if supported else f"{line}  no support")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Curve:
    """The estimator of the curve of a `KDE` at some scores: one value for each of them, of each
    replicate on a grid that fits its own bandwidth."""

    kde: KDE
    score: F64

    needs_sorted = True

    def prepare(self, sample: Sample, size: int) -> DensityPlan:
        """A plan with grids that are fine enough to be interpolated."""
        return self.kde.plan(sample, size, FINER)

    def blocks(self, plan: DensityPlan, c: NDArray[np.uint8]) -> F64:
        """The curve (G, 32 B) of each of the replicates."""
        resamples = plan.blocks(c)
        out = np.empty((self.score.size, resamples.count))
        for mesh, density, lanes in plan.densities(resamples):
            at = np.interp(self.score, mesh.score, np.arange(mesh.count))
            j = at.astype(np.int64)
            t, following = (at - j)[:, None], np.minimum(j + 1, mesh.count - 1)
            f, g = ((1 - t) * x[:, j] + t * x[:, following] for x in (density[:, 0], density[:, 1]))
            found = posterior(f, g, self.score[:, None], mesh.low, mesh.high).swapaxes(0, 1)
            out[:, lanes] = found.reshape(self.score.size, -1)[:, : lanes.size]
        return out


def band_of(call: Call, kde: KDE, sample: Sample, score: F64, key: int) -> F64:
    """Lower end, median and upper end (3, G) of the curve of each replicate."""
    low, high = tails_of(call.level)
    step = max(1, MOST_VALUES // call.n_resamples)
    parts = []
    for begin in range(0, score.size, step):
        estimator = Curve(kde, score[begin : begin + step])
        draws = draws_of(key, call.n, call.n)
        replicates = plan_replicates([estimator], [Problem(sample)], draws, call.n)
        values = call.evaluate(replicates, 0, call.n_resamples)
        parts.append(quantiles(values[0], np.array([low, 0.5, high])).T)
    return np.concatenate(parts, axis=1)


def curve_of(call: Call, k: int, sample: Sample, key: int | None) -> ReliabilityCurve:
    """The curve of problem k."""
    (kde,) = call.estimators.values()
    ordered = sample.sorted()
    once = Copies(np.ones(ordered.n))
    plan = kde.plan(ordered, ordered.n, FINER, even=True)
    ((mesh, densities, _),) = plan.densities(once)
    density, hits = densities[0, :, :, 0].copy()
    score = mesh.score.copy()
    curve = posterior(density, hits, score, mesh.low, mesh.high)
    band = None if key is None else band_of(call, kde, sample, score, key)
    low, median, high = (None, None, None) if band is None else band
    return ReliabilityCurve(
        score=score,
        posterior=curve,
        lce=curve - score,
        density=density,
        supported=is_supported(density, mesh.low, mesh.high),
        rows=np.minimum(call.n, call.n * density * mesh.effective_width(plan.bandwidth)),
        low=low,
        high=high,
        median=median,
        confidence_level=call.level,
        n_resamples=call.n_resamples,
        value=float(kde.values(kde.prepare(ordered, ordered.n), once)[0]),
        bandwidth=plan.bandwidth,
        score_range=kde.range_of(sample),
        n=call.n,
        key=key,
        estimator=str(kde),
        setting=call.models[0].name(k),
    )


def bayes_curve_of(call: Call, k: int, sample: Sample) -> ReliabilityCurve:
    """The Bayesian curve of problem k."""
    (bayes,) = call.estimators.values()
    score = np.linspace(sample.low, sample.high, BAYES_POINTS)  # scores may be heaped at the ends
    mean, low, high = bayes.curve(sample, score, call.level)
    rows = rows_near(sample.sorted(), score).astype(np.float64)
    width = np.minimum(score + REACH, sample.high) - np.maximum(score - REACH, sample.low)
    return ReliabilityCurve(
        score=score,
        posterior=mean,
        lce=mean - score,
        density=rows / (sample.n * width),
        supported=rows > 0,
        rows=rows,
        low=low,
        high=high,
        median=None,
        confidence_level=call.level,
        n_resamples=0,
        value=float(direct_values(bayes, one_problem(sample))[0]),
        bandwidth=None,
        score_range=(sample.low, sample.high),
        n=call.n,
        key=None,
        estimator=str(bayes),
        setting=call.models[0].name(k),
    )


def curves_of(call: Call, rng: Any) -> list[ReliabilityCurve]:
    """One curve for each problem; all see the same draws."""
    (kde,) = call.estimators.values()
    if isinstance(kde, BayesCurve):
        samples = call.models[0].samples()
        return [bayes_curve_of(call, k, sample) for k, sample in enumerate(samples)]
    if not isinstance(kde, KDE):
        raise TypeError(
            f"estimator: a reliability curve needs a BayesCurve, or densities, KDE, got {kde!r}"
        )
    key = new_key(rng) if call.n_resamples else None
    samples = call.models[0].samples()
    return [curve_of(call, k, sample, key) for k, sample in enumerate(samples)]


@overload
def reliability_curve(
    y_true: Any, y_prob: Any, *, setting: Literal["classwise"], **options: Any
) -> list[ReliabilityCurve]: ...
@overload
def reliability_curve(
    y_true: Any, y_prob: Any, *, setting: str | int = ..., **options: Any
) -> ReliabilityCurve: ...
def reliability_curve(
    y_true: Any,
    y_prob: Any,
    *,
    estimator: Any = "ece_kde",
    setting: Any = "auto",
    n_resamples: int = 0,
    confidence_level: float = 0.95,
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    from_logits: bool = False,
    rng: Any = None,
    n_jobs: int | None = None,
    executor: Any = None,
    **fields: Any,
) -> ReliabilityCurve | list[ReliabilityCurve]:
    """The probability of a hit as a function of the score, from kernel densities or as a Bayesian
    curve.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits
        As in `fastece.ece`.
    estimator : str, KDE or BayesCurve, default "ece_kde"
    n_resamples : int, default 0
        Bootstrap resamples behind the band of a `KDE`; without any, there is none. A `BayesCurve`
        has its band from the posterior, and needs none.
    confidence_level, rng, n_jobs, executor
        As in `fastece.bootstrap`.
    **fields
        Parameters of the estimator to replace, such as ``bandwidth=0.05``.

    Returns
    -------
    ReliabilityCurve, or for ``setting="classwise"`` a list of K of them

    Raises
    ------
    ValueError, TypeError
        As `fastece.bootstrap`; for an estimator without densities.

    Notes
    -----
    ``P(y = 1 | s) = g(s) / f(s)`` with the densities f of the scores and g of the hits: Posocco and
    Bonnefoy (2021, "Estimating expected calibration errors", section 3 and figure 1). Where
    ``f < 0.01 / (high - low)`` the curve is the diagonal, and not `supported`. The band is made of
    the percentiles of the curves of resampled rows, each with its own bandwidth, at every score by
    itself; what smoothing itself puts off, bias, is not in it.

    A `BayesCurve` also works where scores are heaped. It is the posterior mean, between quantiles
    of the posterior at every score by itself; where no row is within 0.025 of a score, there is no
    number (nan).

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> curve = reliability_curve(rng.random(1000) < p**2, p, n_resamples=500, rng=0)
    >>> "probability {:.3f}, interval {:.3f} to {:.3f}".format(curve(0.5), *curve.interval(0.5))
    'probability 0.276, interval 0.231 to 0.324'
    """
    call = read_call(
        y_true, {"y_prob": y_prob}, estimator=estimator, fields=fields, n_resamples=n_resamples,
        least=0, confidence_level=confidence_level, method="percentile", setting=setting,
        average=None, labels=labels, pos_label=pos_label, sample_weight=sample_weight,
        from_logits=from_logits, n_jobs=n_jobs, executor=executor,
    )  # fmt: skip
    curves = curves_of(call, rng)
    return curves if call.models[0].setting.per_class else curves[0]
