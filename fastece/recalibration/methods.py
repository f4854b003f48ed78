"""The table of methods, and the objects that are fitted in their place."""

from typing import Any, Self

from numpy.typing import NDArray

from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, list_names
from fastece.recalibration.binning import HistogramBinning, ScalingBinning
from fastece.recalibration.calibrator import Calibrator
from fastece.recalibration.curves import CurveCalibration, IsotonicCalibration
from fastece.recalibration.ensemble import EnsembleTemperatureScaling
from fastece.recalibration.identity import Identity
from fastece.recalibration.logistic import BetaCalibration, PlattScaling, QuadraticCalibration
from fastece.recalibration.outputs import LabelledOutputs, ModelOutputs, read_outputs
from fastece.recalibration.prior import PriorShift
from fastece.recalibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from fastece.recalibration.structured import StructuredMatrixScaling, StructuredVectorScaling

METHODS: dict[str, type[Calibrator]] = {
    "none": Identity,
    "temperature": TemperatureScaling,
    "ets": EnsembleTemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "svs": StructuredVectorScaling,
    "sms": StructuredMatrixScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "quadratic": QuadraticCalibration,
    "isotonic": IsotonicCalibration,
    "histogram": HistogramBinning,
    "scaling_binning": ScalingBinning,
    "curve": CurveCalibration,
    "prior_shift": PriorShift,
}
# In place of a method: the one that suits the rows is chosen.
AUTO = "auto"


class ForeignCalibrator:
    """An object of another library, fitted to checked rows like our own methods.

    Parameters
    ----------
    model : object
        It has `fit` and `transform`.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit_rows(self, rows: LabelledOutputs) -> Self:
        """Fit the object, with weights if the caller has passed some."""
        weights = {} if rows.sample_weight is None else {"sample_weight": rows.sample_weight}
        self.model.fit(rows.values, rows.label, **weights)
        return self

    def map_outputs(self, outputs: ModelOutputs) -> NDArray[Any]:
        """Map predictions to probabilities of their shape, by the fitted object."""
        name = "method.transform(X)"
        values = self.model.transform(outputs.values)
        p = read_outputs(values, from_logits=False, name=name).values
        shape = outputs.values.shape
        if p.shape != shape:
            raise InputError(name, f"must have the shape of X, {shape}", value=p.shape)
        return p


def find_method(method: Any, from_logits: bool) -> Calibrator | ForeignCalibrator | None:
    """Return the method to fit, from its name or an object; None for "auto"."""
    if isinstance(method, str):
        name = check_choice("method", method, [AUTO, *METHODS])
        return None if name == AUTO else METHODS[name](from_logits=from_logits)
    has_verbs = all(callable(getattr(method, verb, None)) for verb in ("fit", "transform"))
    if isinstance(method, type) or not has_verbs:
        rule = "must be a name or an object with fit and transform"
        raise InputTypeError("method", rule, value=method, hint=list_names([AUTO, *METHODS]))
    if not isinstance(method, Calibrator) or has_other_verbs(type(method)):
        return ForeignCalibrator(method)
    if method.from_logits != from_logits:
        raise InputError("from_logits", f"must be {method.from_logits} for {method!r}")
    return method


def has_other_verbs(kind: type[Calibrator]) -> bool:
    """Return whether a class has its own `fit` or `transform` in place of ours."""
    return kind.fit != Calibrator.fit or kind.transform != Calibrator.transform
