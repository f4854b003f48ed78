"""Inference on calibration errors: intervals, comparisons, slices, direction, plans.

An error that is a norm of gaps has `cells`, gaps with the noise that a calibrated model has
(`binned_cells`, `density_cells`). Tests of hypotheses about them become a confidence curve in
`inversion`, along the paths of `cell_curves` or, without gaps, of `label_curves`. `estimate`
chooses between this and a posterior, and `mover` joins two answers to a comparison. P-values of
several slices, classes or models are adjusted by `joint`, on draws that all share: `slice_tests`
and `slice_errors` make the draws of slices, and `deviations` the draws of models.

Change here which hypotheses are tested, how their noise is known and what follows from it; draws
and replicates are made in `fastece.resampling`, and values in `fastece.estimators`. Begin with
`estimate`, then read `cells` and `inversion`.
"""
