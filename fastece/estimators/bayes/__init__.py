"""Bayesian calibration curves: priors, posteriors and the estimator of their error."""
