"""The table of methods, and out-of-fold probabilities by any of them."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import index_of, warn_of_index
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, check_flag, check_integer, list_names
from fastece.recalibration.binning import HistogramBinning, ScalingBinning
from fastece.recalibration.calibrator import Calibrator
from fastece.recalibration.curves import CurveCalibration, IsotonicCalibration
from fastece.recalibration.ensemble import EnsembleTemperatureScaling
from fastece.recalibration.folds import draw_folds
from fastece.recalibration.logistic import BetaCalibration, PlattScaling, QuadraticCalibration
from fastece.recalibration.outputs import (
    LabelledOutputs,
    ModelOutputs,
    read_labelled_outputs,
    read_outputs,
)
from fastece.recalibration.prior import PriorShift
from fastece.recalibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from fastece.recalibration.structured import StructuredMatrixScaling, StructuredVectorScaling
from fastece.resampling.engine import progress_callbacks

METHODS: dict[str, type[Calibrator]] = {
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


def recalibrate(
    y_true: Any, y_prob: Any, *, method: Any, cv: int = 5, groups: Any = None, rng: Any = 0,
    from_logits: bool = False, sample_weight: Any = None,
) -> NDArray[Any]:  # fmt: skip
    """Recalibrate all rows, each by a map that was fitted without its label.

    Parameters
    ----------
    y_true : array_like (n,)
        Labels from 0 to K - 1, or strings that name the columns of `y_prob`.
    y_prob : array_like (n,) or (n, K)
        Probabilities of the positive class or class vectors.
    method : str or object
        A name of `METHODS`, or an object with `fit` and `transform` as its classes have them.
    cv : int, default 5
        Number of folds: each is recalibrated by a map that was fitted to the others.
    groups : array_like (n,), optional
        Rows of one group, such as one patient, stay in one fold.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the folds. Rows are shuffled, and every fold gets its share of each class; with
        `groups`, folds only have about equally many rows.
    from_logits : bool, default False
        Whether predictions are log odds or logits.
    sample_weight : array_like (n,), optional
        Not negative. Rows of weight 0 are recalibrated, but nothing is fitted to them.

    Returns
    -------
    (n,) or (n, K) array
        Probabilities of the shape of `y_prob`, whose errors are an estimate of the errors on new
        rows.

    Raises
    ------
    ValueError, TypeError
        For an unknown method, more folds than rows or groups, training rows of a fold that have one
        class alone, an object that gives no probabilities of the shape of `y_prob`, and as
        `fastece.ece` does for labels and probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import ece
    >>> from fastece.recalibration import recalibrate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> better = recalibrate(y, p, method="beta")
    >>> print(f"{ece(y, p):.3f} {ece(y, better):.3f}")
    0.171 0.025
    """
    model = find_method(method, check_flag("from_logits", from_logits))
    rows = read_labelled_outputs(
        y_true, y_prob, sample_weight, from_logits, name="y_prob", sorts_labels=False
    )
    n_folds = check_integer("cv", cv, 2, rows.n_rows)
    warn_of_index("groups", groups, index_of(y_true, y_prob))
    fold_of_row = draw_folds(rows.label, n_folds, groups, rng)
    recalibrated = np.empty_like(rows.values)
    for fold in range(n_folds):
        is_in_fold = fold_of_row == fold
        other_folds = rows.where(~is_in_fold).rows_to_fit(f"y_true without fold {fold}")
        fitted = deepcopy(model).fit_rows(other_folds)
        recalibrated[is_in_fold] = fitted.map_outputs(rows.where(is_in_fold))
        for callback in progress_callbacks:
            callback(fold + 1, n_folds)
    return recalibrated


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


def find_method(method: Any, from_logits: bool) -> Calibrator | ForeignCalibrator:
    """Return the method to fit, from its name or an object."""
    if isinstance(method, str):
        return METHODS[check_choice("method", method, list(METHODS))](from_logits=from_logits)
    has_verbs = all(callable(getattr(method, verb, None)) for verb in ("fit", "transform"))
    if isinstance(method, type) or not has_verbs:
        rule = "must be a name or an object with fit and transform"
        raise InputTypeError("method", rule, value=method, hint=list_names(METHODS))
    if not isinstance(method, Calibrator) or has_other_verbs(type(method)):
        return ForeignCalibrator(method)
    if method.from_logits != from_logits:
        raise InputError("from_logits", f"must be {method.from_logits} for {method!r}")
    return method


def has_other_verbs(kind: type[Calibrator]) -> bool:
    """Return whether a class has its own `fit` or `transform` in place of ours."""
    return kind.fit != Calibrator.fit or kind.transform != Calibrator.transform
