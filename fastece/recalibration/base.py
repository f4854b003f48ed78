"""Base classes of recalibration methods, by the conventions of scikit-learn.

scikit-learn itself is not needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError, rename_arguments, warn
from fastece.checks.parameters import check_flag
from fastece.data.sample import Sample
from fastece.recalibration.rows import (
    FIT,
    Predictions,
    Rows,
    Score,
    check_classes,
    name_classes,
    read_predictions,
    read_rows,
)
from fastece.typing import F64

# Times a logit of 1e100, and added up over classes, it is a number still.
LARGEST_PARAMETER = 1e200


class Parameter(NamedTuple):
    """Shape and bounds of a fitted attribute.

    `shape` has a letter for each axis: K classes, B bins or points, b one less. A parameter of
    `each` problem is one of this shape if there are two classes; else an array or a list of K.
    """

    shape: str = ""
    each: bool = False
    low: float = -LARGEST_PARAMETER
    high: float = LARGEST_PARAMETER
    increasing: bool = False
    may_be_nan: bool = False


@dataclass(kw_only=True, eq=False)
class Calibrator(ABC):
    """A map from predictions to better ones, fitted to rows held apart.

    A subclass has the options as fields, and writes `_fit`, which sets the fitted attributes, and
    `_map`. `PARAMETERS` has these attributes by their names without the "_".
    """

    # The name of the method in texts.
    title: ClassVar[str]
    PARAMETERS: ClassVar[dict[str, Parameter]] = {}
    # Whether the class of the largest probability stays the same, of class vectors.
    keeps_argmax: ClassVar[bool] = False
    # The kind of predictions that it maps, "logits" or "probabilities": each is made of the other.
    needs: ClassVar[str] = "probabilities"

    from_logits: bool = False

    def __post_init__(self) -> None:
        check_flag("from_logits", self.from_logits)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Fit the map.

        Parameters
        ----------
        X : array_like (n,) or (n, K)
            Probabilities of the positive class or class vectors; with `from_logits` log odds or
            logits.
        y : array_like (n,)
            Labels from 0 to K - 1, or the K sorted strings that stand for them.
        sample_weight : array_like (n,), optional
            Not negative; rows of weight 0 do not exist.

        Returns
        -------
        The object itself. Its fitted attributes end in "_"; `classes_` are the labels of the
        columns, where these are strings, else None.

        Raises
        ------
        ValueError, TypeError
            For values that are not probabilities or labels, and for labels of one class alone.
        """
        with rename_arguments(FIT):
            rows = read_rows(y, X, sample_weight, self.from_logits, "X").of_weight()
            check_classes(rows, "y")
        return self.fit_rows(rows)

    def fit_rows(self, rows: Rows) -> Self:
        """Fit the map to rows that have been checked, and have weights above 0."""
        self._fit(rows)
        self.n_classes_, self.classes_ = rows.predictions.n_classes, rows.classes
        return self

    def transform(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Map predictions to recalibrated probabilities.

        Parameters
        ----------
        X : array_like (n,) or (n, K)
            Predictions of the kind that the map was fitted to; of two classes, one column or two.

        Returns
        -------
        (n,) or (n, K) array
            Probabilities of the shape of X: float32 where X is, else float64.

        Raises
        ------
        ValueError, TypeError
            Before `fit`; for another number of classes; for values that are not probabilities.
        """
        if not self.__sklearn_is_fitted__():
            raise InputError("X", f"{type(self).__name__} must be fitted before it maps anything")
        with rename_arguments(FIT):
            predictions = read_predictions(X, self.from_logits, "X")
        if predictions.n_classes != self.n_classes_:
            rule = f"must have {self.n_classes_} classes, as the rows that the map was fitted to"
            raise InputError("X", rule, value=predictions.x.shape)
        return self.map_predictions(predictions)

    def map_predictions(self, predictions: Predictions) -> NDArray[Any]:
        """Map predictions that have been checked."""
        p = self._map(predictions)
        if p.ndim == 2 and predictions.x.ndim == 1:
            p = p[:, 1]
        elif p.ndim == 1 and predictions.x.ndim == 2:
            p = np.column_stack([1 - p, p])
        return p.astype(predictions.x.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[Any]:  # noqa: N803
        """Fit the map to rows, and map the same rows.

        The map has seen their labels; with `recalibrate` it has not.
        """
        return self.fit(X, y, sample_weight).transform(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the options by name; `deep`, of scikit-learn, changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Replace options; an unknown name or a bad value is a ValueError or a TypeError."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise InputError(name, f"{type(self).__name__} has {', '.join(known)} alone")
        type(self)(**{**known, **params})
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @abstractmethod
    def _fit(self, rows: Rows) -> None:
        """Set the fitted attributes from rows."""

    @abstractmethod
    def _map(self, predictions: Predictions) -> NDArray[Any]:
        """Map predictions to probabilities (n,) of class 1, or (n, K)."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None, target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(), input_tags=InputTags(one_d_array=True),
        )  # fmt: skip


class BinaryFit(NamedTuple):
    """Parameters of a map of one score, and a warning or an empty string.

    The parameters are in the order of `PARAMETERS`.
    """

    parameters: Sequence[float | F64]
    warning: str = ""


@dataclass(kw_only=True, eq=False)
class OneVsRest(Calibrator):
    """A method for binary problems, applied to each class against the rest.

    With two classes, only the second is fitted. A subclass writes `_fit_one` and `_map_one`.
    Its fitted attributes are the parameters of the one problem of two classes, or a list with
    the parameters of each class; numbers make an array. Mapped scores of more than two classes are
    divided by their sum; where all are 0 each class gets 1/K.
    """

    def _fit(self, rows: Rows) -> None:
        fits = [self._fit_one(score, sample) for score, sample in rows.problems()]
        for text in dict.fromkeys(fit.warning for fit in fits if fit.warning):
            found = [k for k, fit in enumerate(fits) if fit.warning == text]
            warn("X" if len(fits) == 1 else f"X, {name_classes(found)}", text)
        columns: Any = zip(*(fit.parameters for fit in fits), strict=True)
        for name, column in zip(self.PARAMETERS, columns, strict=True):
            is_number = isinstance(column[0], float)
            values = np.array(column) if is_number else list(column)
            setattr(self, f"{name}_", column[0] if len(fits) == 1 else values)

    def _map(self, predictions: Predictions) -> NDArray[Any]:
        fitted = [getattr(self, f"{name}_") for name in self.PARAMETERS]
        if predictions.n_classes == 2:
            return self._map_one(predictions.score(1), *fitted)
        p: NDArray[Any] = np.empty(predictions.x.shape)
        for k, score in predictions.scores():
            p[:, k] = self._map_one(score, *(values[k] for values in fitted))
        total = p.sum(axis=1, keepdims=True)
        share: NDArray[Any] = np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1])
        return share

    @abstractmethod
    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:
        """Fit the map to one problem."""

    @abstractmethod
    def _map_one(self, score: Score, *parameters: Any) -> F64:
        """Map scores to probabilities (n,) of the event."""
