"""Recalibration: maps to better calibrated predictions, fitted to held-out rows.

A map reads the outputs of a model and gives probabilities. To add one that is a softmax of linear
functions of all logits, subclass `SoftmaxMap` and write its loss; one of the logit of each class
alone, `LogisticMap` and its features; any other, `Calibrator` or `OneVsRest`. Then add it to
`METHODS`: the checks of input and the files, which all maps share by their `PARAMETERS`, stay as
they are. Begin to read in `calibrator.py`, then in `scaling.py`.

===================  ============================================================================
file                 contents
===================  ============================================================================
`calibrator.py`      `Calibrator`, the base class: fit, transform, options; `LogitMap` and its clip
`outputs.py`         checked probabilities or logits, as logits or as the scores of one class
`scaling.py`         maps of all logits of a row: temperature, vector and matrix scaling
`structured.py`      vector and matrix scaling near to temperature scaling
`ensemble.py`        a mixture of predictions before and after temperature scaling
`one_vs_rest.py`     maps of one score, applied class by class
`logistic.py`        Platt scaling, beta and quadratic calibration
`binning.py`         histogram binning and scaling-binning
`curves.py`          isotonic and curve calibration
`prior.py`           another base rate, given or estimated
`mixture.py`         shares of a mixture, of the greatest likelihood
`identity.py`        no map
`losses.py`          losses with their derivatives, and the search for their minimum
`methods.py`         `METHODS`, the table of all maps
`folds.py`           folds of rows
`choice.py`          the choice among a few methods by their out-of-fold log loss
`cross_fitting.py`   `recalibrate` and `recommend`, which fit maps out of fold
`saved.py`           maps as plain values, and in files
`code.py`            `Program`: a map as steps, and its text in Python, SQL and JavaScript
`inverse.py`         the smallest number from which on a condition holds
===================  ============================================================================

>>> import numpy as np
>>> from fastece.recalibration import recalibrate
>>> rng = np.random.default_rng(0)
>>> p = rng.random(1000)
>>> better = recalibrate(rng.random(1000) < p**2, p, method="beta")
"""

from fastece.recalibration.binning import HistogramBinning as HistogramBinning
from fastece.recalibration.binning import ScalingBinning as ScalingBinning
from fastece.recalibration.calibrator import Calibrator as Calibrator
from fastece.recalibration.cross_fitting import recalibrate as recalibrate
from fastece.recalibration.cross_fitting import recommend as recommend
from fastece.recalibration.curves import CurveCalibration as CurveCalibration
from fastece.recalibration.curves import IsotonicCalibration as IsotonicCalibration
from fastece.recalibration.ensemble import (
    EnsembleTemperatureScaling as EnsembleTemperatureScaling,
)
from fastece.recalibration.identity import Identity as Identity
from fastece.recalibration.logistic import BetaCalibration as BetaCalibration
from fastece.recalibration.logistic import PlattScaling as PlattScaling
from fastece.recalibration.logistic import QuadraticCalibration as QuadraticCalibration
from fastece.recalibration.methods import METHODS as METHODS
from fastece.recalibration.prior import PriorShift as PriorShift
from fastece.recalibration.saved import load as load
from fastece.recalibration.saved import save as save
from fastece.recalibration.scaling import MatrixScaling as MatrixScaling
from fastece.recalibration.scaling import TemperatureScaling as TemperatureScaling
from fastece.recalibration.scaling import VectorScaling as VectorScaling
from fastece.recalibration.structured import StructuredMatrixScaling as StructuredMatrixScaling
from fastece.recalibration.structured import StructuredVectorScaling as StructuredVectorScaling
