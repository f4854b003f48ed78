"""The table of methods."""

from typing import Any

from fastece.recalibration.base import Calibrator
from fastece.recalibration.bins import HistogramBinning, ScalingBinning
from fastece.recalibration.curve import CurveCalibration
from fastece.recalibration.isotonic import IsotonicCalibration
from fastece.recalibration.logistic import BetaCalibration, PlattScaling
from fastece.recalibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling

METHODS: dict[str, type[Calibrator]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
    "scaling_binning": ScalingBinning,
    "curve": CurveCalibration,
}


def method_name(model: Any) -> str | None:
    """The name in the table of the class that an object is of, if it is there."""
    return next((name for name, row in METHODS.items() if row is type(model)), None)
