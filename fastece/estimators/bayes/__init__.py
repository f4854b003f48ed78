"""Calibration errors from a Bayesian calibration curve, with their posteriors.

Here stand the estimator `BayesCurve` and its prior beliefs about curves: change a prior in
`process`, `pieces` or `curves`, and the interval in `widening` or `posterior`; every constant has
its reason in docs/explanation/bayes.md, and the fixed random numbers stay as they are. Read
`estimator`, then in the order of that page `cells`, the two kinds of curves `process` and `pieces`,
`curves`, which mixes their families, `widening` and `posterior`.
"""
