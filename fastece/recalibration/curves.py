"""Maps of one score that are linear between points: isotonic and curve calibration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_flag
from fastece.data.samples import Sample
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import find_estimator
from fastece.kernels.types import F64
from fastece.recalibration.calibrator import Probability
from fastece.recalibration.code import Program
from fastece.recalibration.one_vs_rest import BinaryFit, OneVsRest
from fastece.recalibration.outputs import BinaryProblem, Score, scale_to_unit_sum
from fastece.reliability.curve import reliability_curve
from fastece.reliability.decomposition import isotonic_blocks

# Weight of a point without rows in a projection, as a share of the weight of all rows.
MIN_POINT_WEIGHT = 1e-6


@dataclass(kw_only=True, eq=False)
class Interpolation(OneVsRest):
    """A map that is linear between points, and constant beyond the first and the last."""

    PARAMETERS = Probability("score", "B", increasing=True), Probability("value", "B")

    def _map_one(self, score: Score, score_of_point: F64, value_of_point: F64) -> F64:
        return np.interp(score.s, score_of_point, value_of_point)

    def _check_increasing(self) -> None:
        """Accept the map, as values of its points do not decrease."""

    def _write_code(self, program: Program) -> None:
        score, value = self._fitted_parameters()
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            slope = np.diff(value) / np.diff(score)
        # A piece lies before each point, and one behind the last.
        program.define(
            x=[*score, 1.0],
            y=[*value, value[-1]],
            slope=[0.0, *np.nan_to_num(slope), 0.0],
        )
        program.add_probability()
        program.piece("recalibrated", "y[k] + slope[k] * (p - x[k])", ends="x", variable="p")


@dataclass(kw_only=True, eq=False)
class IsotonicCalibration(Interpolation):
    """Isotonic regression: the non-decreasing function of smallest squared error.

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

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        first_score, last_score, hits, misses = isotonic_blocks(problem.to_sample())
        frequency = hits / (hits + misses)
        # A block of a single score has one point rather than two.
        ends = np.stack([first_score, last_score], axis=1)
        score, place = np.unique(ends, return_index=True)
        return BinaryFit((score, frequency[place // 2]))


class CurvePoints(NamedTuple):
    """Points of a reliability curve.

    Parameters
    ----------
    score : (G,) float64 array
        Increasing.
    probability : (G,) float64 array
        Probability of the event; nan where too few scores are near.
    weight : (G,) float64 array
        Weight of the scores near each point, greater than 0, on any scale.
    """

    score: F64
    probability: F64
    weight: F64


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
    curve of densities as a map, and note that it need not be monotone. The estimator decides how
    many rows weighted rows are worth: a weight of 2 is not quite the same as two rows.

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
        estimator = find_estimator(self.estimator, {})
        if type(estimator) not in CURVES:
            raise InputError(
                "estimator", "must have a curve: ece_bayes or ece_kde", value=estimator
            )

    def _check_increasing(self) -> None:
        if not self.monotone:
            raise InputError("monotone", "must be True for an inverse: the map may decrease")

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        from scipy.optimize import isotonic_regression

        estimator: Any = find_estimator(self.estimator, {})
        points = CURVES[type(estimator)](estimator, problem.to_sample())
        is_supported = ~np.isnan(points.probability)
        score = points.score[is_supported]
        value = points.probability[is_supported]
        if self.monotone:
            value = isotonic_regression(value, weights=points.weight[is_supported]).x
        return BinaryFit((score, value.clip(0.0, 1.0)))


def density_curve(estimator: KDE, sample: Sample) -> CurvePoints:
    """Compute the points of the curve of two densities, weighted by the density."""
    curve = reliability_curve(sample.y, sample.s, estimator=estimator, sample_weight=sample.v)
    return CurvePoints(curve.score, curve.probability, curve.density)


def bayes_curve(estimator: BayesCurve, sample: Sample) -> CurvePoints:
    """Compute the posterior mean of a Bayesian curve, weighted by the rows near by."""
    score = estimator.curve_scores(sample.sorted())
    halfway = (score[1:] + score[:-1]) / 2
    nearest_point = np.searchsorted(halfway, sample.s)
    share = np.bincount(nearest_point, scale_to_unit_sum(sample.v, sample.n), score.size)
    probability = estimator.curve_draws(sample, score).mean(axis=1)
    return CurvePoints(score, probability, np.asarray(MIN_POINT_WEIGHT + share, np.float64))


# The estimators that have a curve, by their class.
CURVES: dict[type, Callable[[Any, Sample], CurvePoints]] = {
    BayesCurve: bayes_curve,
    KDE: density_curve,
}
