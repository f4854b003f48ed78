"""Calibration errors from a Bayesian calibration curve, with their posteriors.

Here stand the estimator `BayesCurve` and its prior beliefs about curves: change a prior in
`process`, `pieces` or `curves`, and the interval in `posterior`; every constant has its reason in
docs/explanation/bayes.md, and the fixed random numbers stay as they are. Begin with `estimator`,
then follow `cells`, the two families of curves `process` and `pieces`, `curves`, which mixes them,
and `posterior`, with `calibrated_share` for means over classes.
"""
