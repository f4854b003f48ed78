"""Logistic maps of one score: Platt scaling, beta and quadratic calibration."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_flag
from fastece.kernels.types import F64
from fastece.recalibration.calibrator import LogitMap, Parameter
from fastece.recalibration.code import Program
from fastece.recalibration.losses import MIN_SCALE, LogisticLoss, Minimum, minimise
from fastece.recalibration.one_vs_rest import BinaryFit, OneVsRest
from fastece.recalibration.outputs import MIN_CLIP, BinaryProblem, Score, sigmoid

PLATT_PARAMETERS = Parameter("slope"), Parameter("intercept")
CONSTANT = "all scores are equal, so the map is their observed frequency, for any score"


@dataclass(kw_only=True, eq=False)
class LogisticMap(LogitMap, OneVsRest):
    """A map that is the sigmoid of a linear function of features of a score.

    A subclass writes `_features`, and names the weights of the features and the intercept in
    `PARAMETERS`.
    """

    @abstractmethod
    def _features(self, score: Score) -> F64:
        """Compute the features (n, d) of scores."""

    def _targets(self, problem: BinaryProblem) -> F64:
        """Return the outcome (n,) of each row, or a share of outcomes of 1."""
        return problem.outcome.astype(np.float64)

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        line = fit_line(self._features(problem.score), self._targets(problem), problem)
        return BinaryFit(line.theta.tolist(), line.warning)

    def _map_one(self, score: Score, *parameters: float) -> F64:
        *weights, intercept = parameters
        return sigmoid(self._features(score) @ weights + intercept)


@dataclass(kw_only=True, eq=False)
class PlattScaling(LogisticMap):
    """Platt scaling: a logistic curve of the log odds.

    The map is ``sigmoid(slope logit(s) + intercept)``.

    Parameters
    ----------
    smooth : bool, default False
        Whether the n+ outcomes of 1 count as ``(n+ + 1) / (n+ + 2)``, and the n- of 0 as ``1 / (n-
        + 2)``; n+ and n- are sums of weights.
    clip : float, optional
        The smallest distance of a score from 0 and 1, as in `TemperatureScaling`.
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
    PARAMETERS = PLATT_PARAMETERS

    smooth: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("smooth", self.smooth)

    def _features(self, score: Score) -> F64:
        return score.logit[:, None]

    def _check_increasing(self) -> None:
        slope, _ = self._fitted_parameters()
        refuse_negative_slope(slope)

    def _write_code(self, program: Program) -> None:
        slope, intercept = self._fitted_parameters()
        write_line(program, slope, intercept, self.clip_)
        program.sigmoid("recalibrated", "line")

    def _targets(self, problem: BinaryProblem) -> F64:
        return smooth_targets(problem) if self.smooth else super()._targets(problem)


def refuse_negative_slope(slope: float) -> None:
    """Refuse an inverse of a map of two classes that decreases."""
    if slope < 0:
        rule = "must not be below 0 for an inverse: the map decreases"
        raise InputError("slope_", rule, value=slope)


def write_line(program: Program, slope: float, intercept: float, clip: float) -> None:
    """Write the linear function of the log odds."""
    program.define(slope=slope, intercept=intercept)
    program.add_log_odds(clip)
    program.value("line", "slope * z + intercept")


def smooth_targets(problem: BinaryProblem) -> F64:
    """Compute Platt's targets (n,), which keep a distance from the outcomes 0 and 1.

    They are ``(n+ + 1) / (n+ + 2)`` for outcomes of 1 and ``1 / (n- + 2)`` for outcomes of 0.
    """
    outcome = problem.outcome.astype(np.float64)
    weight = problem.sample_weight
    if weight is None:
        weight = np.ones(problem.n_rows)
    n_ones = weight @ outcome
    n_zeros = weight @ (1 - outcome)
    return np.where(problem.outcome == 1, (n_ones + 1) / (n_ones + 2), 1 / (n_zeros + 2))


@dataclass(kw_only=True, eq=False)
class BetaCalibration(LogisticMap):
    """Beta calibration: the likelihood ratio of two beta distributions.

    The map is ``logit q = a log s - b log(1 - s) + c``.

    Parameters
    ----------
    clip : float, optional
        The smallest distance of a score from 0 and 1, as in `TemperatureScaling`.
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

    def _features(self, score: Score) -> F64:
        return score.log_probabilities[:, ::-1] * [1, -1]  # log(s) and -log(1 - s)

    def _check_increasing(self) -> None:
        """Accept the map, as neither a nor b is negative."""

    def _write_code(self, program: Program) -> None:
        a, b, c = self._fitted_parameters()
        program.define(a=a, b=b, c=c)
        program.add_log_probabilities(self.clip_)
        program.value("line", "a * log_p1 - b * log_p0 + c")
        program.sigmoid("recalibrated", "line")

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        line = fit_rising_line(self._features(problem.score), self._targets(problem), problem)
        return BinaryFit(line.theta.tolist(), line.warning)


@dataclass(kw_only=True, eq=False)
class QuadraticCalibration(LogitMap, OneVsRest):
    """Quadratic calibration: a parabola of the log odds that does not fall.

    The map is ``sigmoid(a + b z + c z**2)`` of the log odds z.

    Parameters
    ----------
    clip : float, optional
        The smallest distance of a score from 0 and 1, as in `TemperatureScaling`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    a_, b_, c_ : float, or (K,) float64 arrays
    low_, high_ : float, or (K,) float64 arrays
        The smallest and the largest log odds of the rows. The parabola does not fall between them,
        and beyond them goes on as its tangent.
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Where the log odds of both classes have normal distributions with different variances, the
    probability of class 1 is such a sigmoid (Berta, Holzmüller, Jordan and Bach 2026, "Structured
    matrix scaling for multi-class calibration"). A parabola that does not fall between `low_` and
    `high_` is a sum of ``(z - low)**2`` and ``-(high - z)**2`` with weights of 0 or more, and a
    constant; the log loss is convex in them.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import QuadraticCalibration
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(-2, 2, 20_000)
    >>> y = rng.random(z.size) < 1 / (1 + np.exp(-z - 0.2 * z**2))
    >>> model = QuadraticCalibration(from_logits=True).fit(z, y)
    >>> print(f"{model.a_:.1f} + {model.b_:.1f} z + {model.c_:.1f} z**2")
    0.0 + 1.0 z + 0.2 z**2
    """

    title = "quadratic calibration"
    PARAMETERS = tuple(map(Parameter, ("a", "b", "c", "low", "high")))

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        z = problem.score.logit
        low = float(z.min())
        high = float(z.max())
        features = np.column_stack([(z - low) ** 2, -((high - z) ** 2)])
        line = fit_rising_line(features, problem.outcome.astype(np.float64), problem)
        convex, concave, constant = line.theta.tolist()
        a = constant + convex * low**2 - concave * high**2
        b = 2 * (concave * high - convex * low)
        return BinaryFit((a, b, convex - concave, low, high), line.warning)

    def _map_one(self, score: Score, a: float, b: float, c: float, low: float, high: float) -> F64:
        z = score.logit
        nearest = z.clip(low, high)  # the nearest log odds on the parabola
        return sigmoid(a + b * nearest + c * nearest**2 + (b + 2 * c * nearest) * (z - nearest))

    def _check_increasing(self) -> None:
        """Accept the map, whose parabola does not fall."""

    def _write_code(self, program: Program) -> None:
        a, b, c, low, high = self._fitted_parameters()
        program.define(a=a, b=b, c=c, low=low, high=high)
        program.add_log_odds(self.clip_)
        program.value("nearest", "min(max(z, low), high)")
        program.value("parabola", "a + b * nearest + c * nearest * nearest")
        program.value("line", "parabola + (b + 2 * c * nearest) * (z - nearest)")
        program.sigmoid("recalibrated", "line")


def fit_rising_line(features: F64, target: F64, problem: BinaryProblem) -> Minimum:
    """Find the best weights of 0 or more for two features (n, 2), and an intercept.

    The loss is convex. So if one weight of the unconstrained minimum is negative, it is 0 at the
    best weights; if the other one is negative then, both are 0.
    """
    best = fit_line(features, target, problem)
    if is_rising(best):
        return best
    candidates = []
    for zero in np.flatnonzero(best.theta[:2] < 0):
        minimum = fit_line(np.delete(features, zero, axis=1), target, problem)
        candidates.append(minimum._replace(theta=np.insert(minimum.theta, zero, 0.0)))
    rising = list(filter(is_rising, candidates))
    if rising:
        return min(rising, key=lambda minimum: minimum.loss)
    constant = fit_line(features[:, :0], target, problem)
    return constant._replace(theta=np.insert(constant.theta, 0, [0.0, 0.0]))


def is_rising(minimum: Minimum) -> bool:
    """Return whether neither weight is negative."""
    return bool(minimum.theta[:2].min() >= 0)


def fit_line(x: F64, target: F64, problem: BinaryProblem) -> Minimum:
    """Find weights of features (n, d), and an intercept, of the smallest log loss.

    Where features or labels are all equal, the weights are 0 and the map is the same everywhere.
    """
    n_features = x.shape[1]
    is_constant = n_features > 0 and np.ptp(x, axis=0).max() < MIN_SCALE
    if is_constant or problem.outcome.min() == problem.outcome.max():
        rate = np.clip(problem.unit_weight @ problem.outcome, MIN_CLIP, 1 - MIN_CLIP)
        log_odds = np.log(rate) - np.log1p(-rate)
        theta = np.append(np.zeros(n_features), log_odds)
        return Minimum(theta, 0.0, CONSTANT if is_constant else "")
    mean = x.mean(axis=0)
    scale = np.maximum(x.std(axis=0), MIN_SCALE)
    features = np.column_stack([(x - mean) / scale, np.ones(problem.n_rows)])
    loss = LogisticLoss(features, target, problem.unit_weight)
    minimum = minimise(loss, np.zeros(features.shape[1]))
    # The line of the standardised features becomes a line of x.
    weights = minimum.theta[:-1] / scale
    intercept = minimum.theta[-1] - weights @ mean
    return minimum._replace(theta=np.append(weights, intercept))
