"""Maps of one score at a time; class vectors are mapped one class at a time."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_flag, check_integer
from fastece.data.samples import Sample, scale_weights
from fastece.data.sources import one_problem
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.binned import MAX_BINS, Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import find_estimator
from fastece.kernels.types import F64
from fastece.recalibration.base import (
    CLIP,
    BinaryFit,
    LogitMap,
    OneVsRest,
    Parameter,
    Score,
    sigmoid,
    unit_weights,
)
from fastece.recalibration.regression import SMALLEST, LogisticLoss, Minimum, minimise
from fastece.reliability.curve import reliability_curve
from fastece.reliability.decomposition import isotonic_blocks

Edges = Literal["uniform", "quantile"]
LINE = Parameter("slope"), Parameter("intercept")
Share = partial(Parameter, low=0.0, high=1.0)
POINTS = Share("score", "B", increasing=True), Share("value", "B")
BINS = Share("cut", "b", increasing=True), Share("value", "B", may_be_nan=True)
CONSTANT = "all scores are equal, so the map is their observed frequency, for any score"
# Weight of a point of the grid without rows in a projection, as a share of all rows.
LEAST_WEIGHT = 1e-6


# -- logistic maps ---------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class PlattScaling(LogitMap, OneVsRest):
    """Platt scaling: a logistic curve of the log odds.

    The map is ``sigmoid(slope logit(s) + intercept)``.

    Parameters
    ----------
    smooth : bool, default False
        Whether the n+ outcomes of 1 count as ``(n+ + 1) / (n+ + 2)``, and the n- of 0 as ``1 / (n-
        + 2)``; n+ and n- are sums of weights.
    clip : float, optional
        The least distance of a score from 0 and 1, as of `TemperatureScaling`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    slope_, intercept_ : float, or (K,) float64 arrays
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Platt (1999, "Probabilistic outputs for support vector machines"), on the log odds of the
    clipped scores.

    Examples
    --------
    >>> from fastece.recalibration import PlattScaling
    >>> model = PlattScaling().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.1, 0.5, 0.9]).round(3))
    [0.035 0.5   0.965]
    """

    title = "Platt scaling"
    PARAMETERS = LINE

    smooth: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("smooth", self.smooth)

    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:
        return fit_platt(score, sample, self.smooth)

    def _map_one(self, score: Score, slope: float, intercept: float) -> F64:
        return sigmoid(slope * score.logit + intercept)


@dataclass(kw_only=True, eq=False)
class BetaCalibration(LogitMap, OneVsRest):
    """Beta calibration: the likelihood ratio of two beta distributions.

    The map is ``logit q = a log s - b log(1 - s) + c``.

    Parameters
    ----------
    clip : float, optional
        The least distance of a score from 0 and 1, as of `TemperatureScaling`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    a_, b_, c_ : float, or (K,) float64 arrays
        a and b are 0 or more: the map does not decrease.
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Kull, Silva Filho and Flach (2017, "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers"). The log loss is convex, so the
    best non-negative a and b are the unconstrained minimum, or the best with one of them, or both,
    at 0.

    Examples
    --------
    >>> from fastece.recalibration import BetaCalibration
    >>> model = BetaCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.1, 0.5, 0.9]).round(3))
    [0.035 0.5   0.965]
    """

    title = "beta calibration"
    PARAMETERS = Parameter("a", low=0.0), Parameter("b", low=0.0), Parameter("c")

    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:
        both, target = score.logs[:, ::-1] * [1, -1], sample.y.astype(np.float64)
        found: list[Minimum] = []
        for used in product([True, False], repeat=2):
            theta, columns = np.zeros(3), np.array([*used, True])
            one = fit_line(both[:, columns[:2]], target, sample)
            theta[columns] = one.theta
            if theta[:2].min() >= 0:
                found.append(one._replace(theta=theta))
                if all(used):
                    break
        best = min(found, key=lambda one: one.loss)
        return BinaryFit(best.theta.tolist(), best.warning)

    def _map_one(self, score: Score, a: float, b: float, c: float) -> F64:
        return sigmoid(score.logs @ [-b, a] + c)


def fit_line(x: F64, target: F64, sample: Sample) -> Minimum:
    """Find the weights of features (n, d) and the intercept of the least log loss.

    Where features or labels are all equal, the weights are 0 and the map is the same everywhere.
    """
    weight = unit_weights(sample.v, sample.n)
    spread = x.std(axis=0)
    is_constant = x.size > 0 and np.ptp(x, axis=0).max() < SMALLEST
    if is_constant or sample.y.min() == sample.y.max():
        rate = np.clip(weight @ sample.y, CLIP, 1 - CLIP)
        theta = np.append(np.zeros(spread.size), np.log(rate) - np.log1p(-rate))
        return Minimum(theta, 0.0, CONSTANT if is_constant else "")
    mean, spread = x.mean(axis=0), np.maximum(spread, SMALLEST)
    features = np.column_stack([(x - mean) / spread, np.ones(sample.n)])
    found = minimise(LogisticLoss(features, target, weight), np.zeros(features.shape[1]))
    weights = found.theta[:-1] / spread
    return found._replace(theta=np.append(weights, found.theta[-1] - weights @ mean))


def fit_platt(score: Score, sample: Sample, smooth: bool = False) -> BinaryFit:
    """Find the slope and the intercept of the least log loss."""
    target = sample.y.astype(np.float64)
    if smooth:
        v = np.ones(sample.n) if sample.v is None else sample.v
        ones, zeros = v @ target, v @ (1 - target)
        target = np.where(sample.y == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2))
    found = fit_line(score.logit[:, None], target, sample)
    return BinaryFit(found.theta.tolist(), found.warning)


# -- maps that are constant in bins ----------------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class HistogramBinning(OneVsRest):
    """Histogram binning: the observed frequency in the bin of the score.

    Parameters
    ----------
    n_bins : int, default 15
    edges : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of equal weight, as in `fastece.Binned`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    cut_ : (n_bins - 1,) float64 array, or a list of one for each class
        Inner edges of the bins; a score on an edge belongs to the bin below.
    value_ : (n_bins,) float64 array, or a list of one for each class
        Observed frequency; nan in bins without rows, whose scores stay as they are.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; as `fit` and `transform` do.

    Notes
    -----
    Zadrozny and Elkan (2001, "Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers"); of several classes Guo et al. (2017, section 4.2).

    Examples
    --------
    >>> from fastece.recalibration import HistogramBinning
    >>> model = HistogramBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.5, 0.8]).round(3))
    [0.333 0.333 0.667]
    """

    title = "histogram binning"
    PARAMETERS = BINS

    n_bins: int = 15
    edges: Edges = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        make_bins(self.n_bins, self.edges)

    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:  # noqa: ARG002
        bins = make_bins(self.n_bins, self.edges)
        return BinaryFit(bin_means(bins, sample, sample.y.astype(np.float64)))

    def _map_one(self, score: Score, cut: F64, value: F64) -> F64:
        return step(score.s, cut, value)


@dataclass(kw_only=True, eq=False)
class ScalingBinning(LogitMap, OneVsRest):
    """Platt scaling, whose probabilities are then averaged in bins of equal weight.

    Parameters
    ----------
    n_bins : int, default 15
    clip : float, optional
        The least distance of a score from 0 and 1, as of `TemperatureScaling`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    slope_, intercept_ : float, or (K,) float64 arrays
        As of `PlattScaling`.
    cut_ : (n_bins - 1,) float64 array, or a list of one for each class
        Inner edges of the bins of the scaled scores.
    value_ : (n_bins,) float64 array, or a list of one for each class
        Means of the scaled scores; nan in bins without rows, whose scores stay as they were scaled.
    clip_ : float
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; as `fit` and `transform` do.

    Notes
    -----
    Kumar, Liang and Ma (2019, "Verified uncertainty calibration", section 4): the variance of a
    mean of scaled scores is far below that of an observed frequency. All rows are used for both
    steps, as in their program.

    Examples
    --------
    >>> from fastece.recalibration import ScalingBinning
    >>> model = ScalingBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.8]).round(3))
    [0.202 0.798]
    """

    title = "scaling-binning"
    PARAMETERS = LINE + BINS

    n_bins: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        make_bins(self.n_bins, "quantile")

    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:
        (slope, intercept), warning = fit_platt(score, sample)
        p = sigmoid(slope * score.logit + intercept)
        scaled = Sample(p, sample.y, sample.v, 0.0, 1.0, sample.rows)
        means = bin_means(make_bins(self.n_bins, "quantile"), scaled, p)
        return BinaryFit((slope, intercept, *means), warning)

    def _map_one(self, score: Score, slope: float, intercept: float, cut: F64, value: F64) -> F64:
        return step(sigmoid(slope * score.logit + intercept), cut, value)


def make_bins(n_bins: int, edges: Edges) -> Binned:
    """Build bins whose number is known beforehand."""
    n_bins = check_integer("n_bins", n_bins, 1, MAX_BINS)
    check_choice("edges", edges, ("uniform", "quantile"))
    return Binned(n_bins, edges=edges)


def bin_means(bins: Binned, sample: Sample, target: F64) -> tuple[F64, F64]:
    """Find inner edges (B - 1,) of bins, and weighted means (B,) of a target.

    The mean of a bin without rows is nan.
    """
    sample, _ = scale_weights(sample)
    cut = bins.layout(one_problem(sample), int(bins.n_bins)).edges[1:-1]
    where = np.searchsorted(cut, sample.s)
    v = np.ones(sample.n) if sample.v is None else sample.v
    weight, total = (np.bincount(where, x, cut.size + 1) for x in (v, v * target))
    return cut, np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def step(score: F64, cut: F64, value: F64) -> F64:
    """Map each score to the value of its bin; scores in empty bins stay."""
    p = value[np.searchsorted(cut, score)]
    return np.where(np.isnan(p), score, p)


# -- maps that are linear between points -----------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class Interpolation(OneVsRest):
    """A map that is linear between some points and constant beyond them."""

    PARAMETERS = POINTS

    def _map_one(self, score: Score, points: F64, value: F64) -> F64:
        return np.interp(score.s, points, value)


@dataclass(kw_only=True, eq=False)
class IsotonicCalibration(Interpolation):
    """Isotonic regression: the non-decreasing function of least squared error.

    Parameters
    ----------
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    score_, value_ : float64 array, or a list of one for each class
        Ends of the constant pieces, and the observed frequencies there: between them the map is
        linear, and outside it has the value at the nearest end.
    n_classes_ : int

    Notes
    -----
    Zadrozny and Elkan (2002, "Transforming classifier scores into accurate multiclass probability
    estimates"), by `scipy.optimize.isotonic_regression`; rows of equal scores count as one. A piece
    without an outcome of 1 has probability 0: one such outcome makes the log loss infinite.

    Examples
    --------
    >>> from fastece.recalibration import IsotonicCalibration
    >>> model = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.5, 0.65]))
    [0.   0.5  0.75]
    """

    title = "isotonic calibration"

    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:  # noqa: ARG002
        low, high, hits, misses = isotonic_blocks(sample)
        ends, first = np.unique(np.stack([low, high], axis=1), return_index=True)
        return BinaryFit((ends, (hits / (hits + misses))[first // 2]))


@dataclass(kw_only=True, eq=False)
class CurveCalibration(Interpolation):
    """The probability of the event at each score, by a reliability curve.

    Parameters
    ----------
    estimator : {"ece_bayes", "ece_kde"}, BayesCurve or KDE, default "ece_bayes"
        A Bayesian curve, or densities.
    monotone : bool, default True
        Whether the curve is replaced by the nearest non-decreasing one: isotonic regression of its
        points, weighted by the number of scores there.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    score_, value_ : float64 array, or a list of one for each class
        Points of the curve where there are enough scores; the map is linear between them, and
        outside it has the value at the nearest end.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For an estimator without a curve; as `fit` and `transform` do.

    Notes
    -----
    Posocco and Bonnefoy (2021, "Estimating expected calibration errors", conclusion) propose the
    curve of densities as a map, and note that it need not be monotone. Weighted rows are as many as
    the estimator takes them for: a weight of 2 is not quite the same as two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import CurveCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> print(CurveCalibration().fit(p, y).transform([0.2, 0.5, 0.8]).round(1))
    [0.  0.3 0.7]
    """

    title = "curve calibration"

    estimator: Any = "ece_bayes"
    monotone: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("monotone", self.monotone)
        found = find_estimator(self.estimator, {})
        if type(found) not in CURVES:
            raise InputError("estimator", "must have a curve: ece_bayes or ece_kde", value=found)

    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:  # noqa: ARG002
        from scipy.optimize import isotonic_regression

        estimator: Any = find_estimator(self.estimator, {})
        at, value, weight = CURVES[type(estimator)](estimator, sample)
        known = ~np.isnan(value)
        at, value, weight = at[known], value[known], weight[known]
        if self.monotone:
            value = isotonic_regression(value, weights=weight).x
        return BinaryFit((at, value.clip(0.0, 1.0)))


def density_curve(estimator: KDE, sample: Sample) -> tuple[F64, F64, F64]:
    """Compute scores, probabilities of the event and densities along a curve."""
    curve = reliability_curve(sample.y, sample.s, estimator=estimator, sample_weight=sample.v)
    return curve.score, curve.probability, curve.density


def bayes_curve(estimator: BayesCurve, sample: Sample) -> tuple[F64, F64, Any]:
    """Compute scores, probabilities of the event, and weights of the rows near by."""
    score = estimator.curve_scores(sample.sorted())
    near = np.searchsorted((score[1:] + score[:-1]) / 2, sample.s)
    weight = np.bincount(near, unit_weights(sample.v, sample.n), score.size)
    return score, estimator.curve_draws(sample, score).mean(axis=1), LEAST_WEIGHT + weight


CURVES: dict[type, Any] = {BayesCurve: bayes_curve, KDE: density_curve}
