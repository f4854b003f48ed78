"""Recalibration: maps to better calibrated predictions, fitted to held-out rows.

>>> import numpy as np
>>> from fastece.recalibration import recalibrate
>>> rng = np.random.default_rng(0)
>>> p = rng.random(1000)
>>> better = recalibrate(rng.random(1000) < p**2, p, method="beta")
"""

from fastece.recalibration.base import Calibrator as Calibrator
from fastece.recalibration.binary import BetaCalibration as BetaCalibration
from fastece.recalibration.binary import CurveCalibration as CurveCalibration
from fastece.recalibration.binary import HistogramBinning as HistogramBinning
from fastece.recalibration.binary import IsotonicCalibration as IsotonicCalibration
from fastece.recalibration.binary import PlattScaling as PlattScaling
from fastece.recalibration.binary import ScalingBinning as ScalingBinning
from fastece.recalibration.methods import METHODS as METHODS
from fastece.recalibration.methods import load as load
from fastece.recalibration.methods import recalibrate as recalibrate
from fastece.recalibration.methods import save as save
from fastece.recalibration.prior import PriorShift as PriorShift
from fastece.recalibration.scaling import MatrixScaling as MatrixScaling
from fastece.recalibration.scaling import TemperatureScaling as TemperatureScaling
from fastece.recalibration.scaling import VectorScaling as VectorScaling
