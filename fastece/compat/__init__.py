"""Calibration errors of other libraries by their names, arguments and numbers.

A program changes one line, ``from torchmetrics.functional.classification import
multiclass_calibration_error`` to ``from fastece.compat.torchmetrics import
multiclass_calibration_error``, and gets the number that it had, sooner. There is a module for each
library, which is not imported itself: `torchmetrics`, `netcal`, `uncertainty_calibration`,
`sklearn`, `relplot` and `robustness_metrics`; `hle` has errors of benchmarks of language models.

Begin with `conventions`, the table of where they put the edges of their bins; `edges` has the rules
and `names` their words for arguments. Add a convention as a row of the table, never as a copy of an
algorithm.
"""

from fastece.compat import conventions as conventions
from fastece.compat import hle as hle
from fastece.compat import netcal as netcal
from fastece.compat import relplot as relplot
from fastece.compat import robustness_metrics as robustness_metrics
from fastece.compat import sklearn as sklearn
from fastece.compat import torchmetrics as torchmetrics
from fastece.compat import uncertainty_calibration as uncertainty_calibration
