"""The table of methods, and out-of-fold probabilities by any of them."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.labels import as_groups
from fastece.checks.parameters import check_choice, check_flag, check_integer, list_names
from fastece.recalibration.base import Calibrator
from fastece.recalibration.binary import (
    BetaCalibration,
    CurveCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
)
from fastece.recalibration.rows import (
    Predictions,
    Rows,
    check_classes,
    read_predictions,
    read_rows,
)
from fastece.recalibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from fastece.resampling.draws import new_key
from fastece.resampling.engine import progress_callbacks
from fastece.typing import I64

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
    """Find the name of an object's class in the table, else None."""
    return next((name for name, row in METHODS.items() if row is type(model)), None)


def recalibrate(
    y_true: Any, y_prob: Any, *, method: Any, cv: int = 5, groups: Any = None, rng: Any = 0,
    from_logits: bool = False, sample_weight: Any = None,
) -> NDArray[Any]:  # fmt: skip
    """Recalibrate all rows, each by a map that was fitted without its label.

    Parameters
    ----------
    y_true : array_like (n,)
        Labels from 0 to K - 1, or the K sorted strings that stand for them.
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
    rows = read_rows(y_true, y_prob, sample_weight, from_logits)
    fold = draw_folds(rows.label, check_integer("cv", cv, 2, rows.label.size), groups, rng)
    out = np.empty_like(rows.predictions.x)
    for part in range(cv):
        others = rows.where(fold != part).of_weight()
        check_classes(others, f"y_true without fold {part}")
        fitted = deepcopy(model).fit_rows(others)
        out[fold == part] = fitted.map_predictions(rows.predictions.where(fold == part))
        for callback in progress_callbacks:
            callback(part + 1, cv)
    return out


class ForeignCalibrator:
    """An object of another library, fitted to checked rows like our own methods."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit_rows(self, rows: Rows) -> Self:
        """Fit the object, with weights if there are any."""
        weight = {} if rows.v is None else {"sample_weight": rows.v}
        self.model.fit(rows.predictions.x, rows.label, **weight)
        return self

    def map_predictions(self, predictions: Predictions) -> NDArray[Any]:
        """Map predictions to probabilities of their shape, by the fitted object."""
        x, name = predictions.x, "method.transform(X)"
        p = read_predictions(self.model.transform(x), False, name).x
        if p.shape != x.shape:
            raise InputError(name, f"must have the shape of X, {x.shape}", value=p.shape)
        return p


def find_method(method: Any, from_logits: bool) -> Calibrator | ForeignCalibrator:
    """Return the method to fit, from its name or an object."""
    if isinstance(method, str):
        return METHODS[check_choice("method", method, list(METHODS))](from_logits=from_logits)
    has_verbs = callable(getattr(method, "fit", None)) and callable(
        getattr(method, "transform", None)
    )
    if isinstance(method, type) or not has_verbs:
        rule = "must be a name or an object with fit and transform"
        raise InputTypeError("method", rule, value=method, hint=list_names(METHODS))
    kind, own = type(method), (Calibrator.fit, Calibrator.transform)
    if not isinstance(method, Calibrator) or (kind.fit, kind.transform) != own:
        return ForeignCalibrator(method)
    if method.from_logits != from_logits:
        raise InputError("from_logits", f"must be {method.from_logits} for {method!r}")
    return method


def draw_folds(label: I64, cv: int, groups: Any, rng: Any) -> I64:
    """Draw the fold (n,) of each row, stratified by class unless there are groups.

    Folds are numbered from 0 to cv - 1; groups stay together.
    """
    generator = np.random.default_rng(new_key(rng))
    order = generator.permutation(label.size)
    if groups is not None:
        return fold_groups(as_groups(groups, label.size, "groups")[0], cv, generator)
    # Rows in turn, class by class: a fold has its share of each, and as many rows as others.
    order = order[np.argsort(label[order], kind="stable")]
    fold = np.empty(label.size, np.int64)
    fold[order] = np.arange(label.size) % cv
    return fold


def fold_groups(group: I64, cv: int, generator: np.random.Generator) -> I64:
    """Draw folds (n,) of about equal size that keep groups together."""
    count = np.bincount(group)
    if count.size < cv:
        raise InputError("cv", f"must be at most the {count.size} groups there are", value=cv)
    home, load = np.empty(count.size, np.int64), np.zeros(cv)
    shuffled = generator.permutation(count.size)
    for one in shuffled[np.argsort(-count[shuffled], kind="stable")]:  # the largest first
        home[one] = load.argmin()
        load[home[one]] += count[one]
    return home[group]
