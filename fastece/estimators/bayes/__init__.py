"""The error of a Bayesian calibration curve."""

from fastece.estimators.bayes.estimator import BayesCurve

__all__ = ["BayesCurve"]
