"""The reliability curve as a map."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastece.checks.parameters import check_flag
from fastece.data.sample import Sample
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import find_estimator
from fastece.recalibration.one_vs_rest import PointsOneVsRest, Say
from fastece.recalibration.rows import Score, row_weights
from fastece.reliability.curve import reliability_curve
from fastece.typing import F64

# Scores at which a Bayesian curve is taken: evenly spaced, and closer towards both ends, where
# modern networks have most of their scores.
TOWARDS_END = np.logspace(-9, -2, 141)
GRID = np.unique(np.concatenate([np.linspace(0, 1, 501), TOWARDS_END, 1 - TOWARDS_END]))
# What a point without rows counts, in a projection, of all rows.
LEAST_WEIGHT = 1e-6


@dataclass(kw_only=True, eq=False)
class CurveCalibration(PointsOneVsRest):
    """How often a score comes true, by a reliability curve.

    Parameters
    ----------
    estimator : {"ece_bayes", "ece_kde"}, BayesCurve or KDE, default "ece_bayes"
        A Bayesian curve, or densities.
    monotone : bool, default True
        Whether the curve is replaced by the nearest that does not decrease: isotonic regression of
        its points, which count by how many scores are there.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    score_, value_ : float64 array, or a list of one for each class
        Points of the curve where there are scores to speak of; the map is linear between them, and
        outside it is that of the nearest end.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For an estimator without a curve; as `fit` and `transform` say.

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

    title: ClassVar[str] = "curve calibration"

    estimator: Any = "ece_bayes"
    monotone: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("monotone", self.monotone)
        found = find_estimator(self.estimator, {})
        if not isinstance(found, BayesCurve | KDE):
            raise ValueError(f"estimator: must have a curve, ece_bayes or ece_kde, got {found}")

    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[F64]:  # noqa: ARG002
        from scipy.optimize import isotonic_regression

        found = find_estimator(self.estimator, {})
        if isinstance(found, BayesCurve):
            at, value = GRID, found.mean_curve(sample, GRID)
            near = np.searchsorted((GRID[1:] + GRID[:-1]) / 2, sample.s)
            weight = LEAST_WEIGHT + np.bincount(near, row_weights(sample), GRID.size)
        else:
            curve = reliability_curve(sample.y, sample.s, estimator=found, sample_weight=sample.v)
            at, value, weight = curve.score, curve.probability, curve.density
        known = ~np.isnan(value)
        at, value, weight = at[known], value[known], weight[known]
        if self.monotone:
            value = isotonic_regression(value, weights=weight).x
        return at, value.clip(0.0, 1.0)
