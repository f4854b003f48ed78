"""The error of a Bayesian calibration curve."""

from fastece.bayes.estimator import BayesCurve

__all__ = ["BayesCurve"]
