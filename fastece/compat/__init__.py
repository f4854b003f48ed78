"""The calibration errors of other libraries: their names, their arguments, their numbers.

A program changes one line, ``from torchmetrics.functional.classification import
multiclass_calibration_error`` to ``from fastece.compat.torchmetrics import
multiclass_calibration_error``, and gets the number that it had, sooner. There is a module for each
library, which is not imported itself: `torchmetrics`, `netcal`, `uncertainty_calibration`,
`sklearn`, `relplot` and `robustness_metrics`. How they differ is in `conventions`.
"""
