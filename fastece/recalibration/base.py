"""Rows, and the base classes of recalibration methods, by the conventions of scikit-learn.

scikit-learn itself is not needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import containers as arrays
from fastece.data.errors import InputError, Names, rename_arguments, warn
from fastece.data.labels import as_labels, check_class_indices
from fastece.data.parameters import check_flag, check_real
from fastece.data.samples import Sample
from fastece.data.scores import native_floats, two_columns
from fastece.data.sources import class_count
from fastece.kernels.types import F64, I64

# Probabilities are at least this far from 0 and 1 before their logarithms are taken, if none of the
# rows that a map is fitted to is exactly 0 or 1, up to so many units of rounding.
CLIP, ROUNDED = 2.0**-52, 4
IMPOSSIBLE = (
    "some labels have probability 0, and the map depends on the clip that stands for it: isotonic "
    "and curve calibration take no logarithms"
)
# Logits up to this have squares that can be added.
LARGEST = 1e100
# Times the largest logit, and added up over classes, it is a number still.
LARGEST_PARAMETER = 1e200
# Arguments in errors: none names labels, and `fit(X, y)` has its own names.
NO_LABELS: Names = {"labels": "numbers of classes", "pos_label": None}
FIT: Names = {**NO_LABELS, "y_true": "y", "y_prob": "X", "first": "X"}


# -- rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """Scores (n,) of a binary problem, with their logits where the caller gave logits."""

    s: F64
    given_logit: F64 | None = None
    clip: float = CLIP

    @cached_property
    def logit(self) -> F64:
        """Log odds of the scores."""
        if self.given_logit is not None:
            return self.given_logit
        p = self.s.clip(self.clip, 1 - self.clip)
        return np.asarray(np.log(p) - np.log1p(-p))

    @property
    def logs(self) -> F64:
        """Logarithms (n, 2) of 1 minus the scores, and of the scores."""
        return np.asarray(-np.logaddexp(0.0, np.column_stack([self.logit, -self.logit])))


@dataclass(frozen=True)
class Rows:
    """Checked predictions (n,) or (n, K), with labels and weights of rows to fit to.

    Labels (n,) are from 0 to K - 1; classes have names where the caller's labels are not numbers.
    """

    x: NDArray[Any]
    from_logits: bool
    label: Any = None
    v: F64 | None = None
    classes: list[Any] | None = None
    clip: float = CLIP  # the least probability before logarithms

    @property
    def n_classes(self) -> int:
        """Number of classes; one column stands for two."""
        return class_count(self.x.shape)

    @property
    def weight(self) -> F64:
        """Weights that sum to 1."""
        return unit_weights(self.v, len(self.x))

    def where(self, rows: NDArray[Any]) -> "Rows":
        """Select some of the rows."""
        v = None if self.v is None else self.v[rows]
        return replace(self, x=self.x[rows], label=self.label[rows], v=v)

    def to_fit(self, name: str) -> "Rows":
        """Select the rows whose weight is not 0; refuse labels of one class alone.

        Messages call the labels `name`; classes without a label are a warning.
        """
        rows = self if self.v is None or self.v.all() else self.where(np.flatnonzero(self.v))
        count = np.bincount(rows.label, minlength=self.n_classes)
        found, never = np.flatnonzero(count), np.flatnonzero(count == 0)
        if found.size == 1:
            rule = "must have labels of two classes or more to be fitted to"
            raise InputError(name, f"{rule}, got {found[0]} alone")
        if never.size:
            warn(name, f"no label is of {name_classes(never)}, which is fitted as if it never were")
        return rows

    def logits(self) -> NDArray[Any]:
        """Return logits (n, K), or log probabilities, in the caller's dtype.

        A logit of -inf counts as a probability of `clip` times the largest.
        """
        if not self.from_logits:
            if self.x.ndim == 1:
                return self.score(1).logs
            return np.asarray(np.log(np.maximum(self.x, self.x.dtype.type(self.clip))))
        z = self.x if self.x.ndim == 2 else two_columns(self.x, from_logits=True)
        lowest = z == -np.inf
        if not lowest.any():
            return z
        return np.where(lowest, z.max(axis=1, keepdims=True) + z.dtype.type(np.log(self.clip)), z)

    def score(self, k: int) -> Score:
        """Return the scores of class k; one column holds the scores of class 1."""
        if not self.from_logits:
            p = self.x if self.x.ndim == 1 else self.x[:, k]
            return Score(np.ascontiguousarray(p, np.float64), clip=self.clip)
        best, top, log_rest = self._others
        below = self.logits()[:, k].astype(np.float64) - top
        # exp(z_k) taken off a sum that it is most of would leave rounding alone.
        others = np.where(best == k, 1.0, 1 + np.exp(log_rest) - np.exp(below))
        logit = below - np.where(best == k, log_rest, np.log(others))
        return Score(sigmoid(logit), logit)

    @cached_property
    def _others(self) -> tuple[I64, F64, F64]:
        """The class of the largest logit, that logit, and the log sum of the others.

        The last is ``log(sum(exp(z_j - z)))`` over the other classes j.
        """
        from scipy.special import logsumexp

        logits = self.logits()
        best = logits.argmax(axis=1)
        top = logits[np.arange(best.size), best].astype(np.float64)
        below = logits - top[:, None]
        below[np.arange(best.size), best] = -np.inf
        return best, top, logsumexp(below, axis=1)


def unit_weights(v: F64 | None, n: int) -> F64:
    """Scale weights so that they sum to 1."""
    if v is None:
        return np.full(n, 1 / n)
    weight = v / v.max()  # sums may be beyond float64
    return np.asarray(weight / weight.sum())


def name_classes(classes: Sequence[int] | NDArray[Any]) -> str:
    """List classes in words, the first few by number."""
    shown = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
    return f"class {shown}" if len(classes) == 1 else f"{len(classes)} classes ({shown})"


def sigmoid(z: F64) -> F64:
    """Compute ``1 / (1 + exp(-z))`` of logits (n,)."""
    p = np.empty(z.size)
    kernels.arithmetic.sigmoid(z, p)
    return p


def read_predictions(value: Any, from_logits: bool, name: str) -> Rows:
    """Check probabilities or logits (n,) or (n, K)."""
    array = arrays.as_probabilities(value, name)
    tolerance = arrays.row_sum_tolerance(value, array)
    if from_logits:
        arrays.warn_if_probabilities(array, tolerance, name)
    if arrays.check_probabilities(array, from_logits, name, tolerance):
        array = array.clip(0.0, 1.0)
    if from_logits and array.dtype == np.float64:
        rule = f"logits must lie within {LARGEST:g} of 0, or be -inf"
        arrays.refuse_where(name, rule, array, lambda z: (np.abs(z) > LARGEST) & (z != -np.inf))
    return Rows(native_floats(array), from_logits)


def read_rows(
    y_true: Any, y_prob: Any, sample_weight: Any, from_logits: bool, name: str = "y_prob"
) -> Rows:
    """Check labels, predictions and weights."""
    rows = read_predictions(y_prob, from_logits, name)
    with rename_arguments(NO_LABELS):
        # `fit` takes strings as scikit-learn orders them; `recalibrate` needs columns' names.
        columns, is_sorted = arrays.column_names(y_prob), name == "X"
        label, order = as_labels(y_true, rows.x, name, columns, None, None, is_sorted)
        label = label if order is not None else check_class_indices(label, rows.n_classes, rows.x)
    v = arrays.as_weights(sample_weight, len(rows.x))
    arrays.warn_of_index(name, y_prob, y_true)
    return replace(rows, label=arrays.contiguous(label, np.int64), v=v, classes=order)


# -- methods ---------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    """Name without the "_", shape and bounds of a fitted attribute.

    `shape` has a letter for each axis: K classes, B bins or points, b one less.
    """

    name: str
    shape: str = ""
    low: float = -LARGEST_PARAMETER
    high: float = LARGEST_PARAMETER
    increasing: bool = False
    may_be_nan: bool = False


@dataclass(kw_only=True, eq=False)
class Calibrator(ABC):
    """A map from predictions to better ones, fitted to rows held apart.

    A subclass has the options as fields, and writes `_fit`, which sets the fitted attributes, and
    `_map`. `PARAMETERS` describes these attributes, `SHARED` numbers that all classes share.
    """

    # The name of the method in texts.
    title: ClassVar[str]
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    SHARED: ClassVar[tuple[Parameter, ...]] = ()
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
            Labels from 0 to K - 1, or strings: names of the columns of `X`, or else the K sorted
            ones, as scikit-learn's classifiers order their columns.
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
            rows = read_rows(y, X, sample_weight, self.from_logits, "X").to_fit("y")
        return self.fit_rows(rows)

    def fit_rows(self, rows: Rows) -> Self:
        """Fit the map to rows that have been checked, and have weights above 0."""
        self._fit(rows)
        self.n_classes_, self.classes_ = rows.n_classes, rows.classes
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
            rows = read_predictions(X, self.from_logits, "X")
        if rows.n_classes != self.n_classes_:
            rule = f"must have {self.n_classes_} classes, as the rows that the map was fitted to"
            raise InputError("X", rule, value=rows.x.shape)
        return self.map_rows(rows)

    def map_rows(self, rows: Rows) -> NDArray[Any]:
        """Map predictions that have been checked."""
        p = self._map(rows)
        if p.ndim == 2 and rows.x.ndim == 1:
            p = p[:, 1]
        elif p.ndim == 1 and rows.x.ndim == 2:
            p = np.column_stack([1 - p, p])
        return p.astype(rows.x.dtype, copy=False)

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
        vars(self).update(params)
        return self

    @abstractmethod
    def _fit(self, rows: Rows) -> None:
        """Set the fitted attributes from rows."""

    @abstractmethod
    def _map(self, rows: Rows) -> NDArray[Any]:
        """Map predictions to probabilities (n,) of class 1, or (n, K)."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None, target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(), input_tags=InputTags(one_d_array=True),
        )  # fmt: skip


@dataclass(kw_only=True, eq=False)
class LogitMap(Calibrator):
    """A map of logarithms of probabilities, which are finite after a clip."""

    SHARED = (Parameter("clip", low=CLIP, high=0.5),)

    clip: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip is not None:
            check_real("clip", self.clip, CLIP, 0.5)

    def fit_rows(self, rows: Rows) -> Self:
        """Choose the clip, and fit the map to rows that have been checked."""
        self.clip_ = find_clip(rows) if self.clip is None else float(self.clip)
        return super().fit_rows(replace(rows, clip=self.clip_))

    def map_rows(self, rows: Rows) -> NDArray[Any]:
        """Map predictions that have been checked."""
        return super().map_rows(replace(rows, clip=self.clip_))


def find_clip(rows: Rows) -> float:
    """Find the least probability before logarithms; warn of labels that have none.

    Of n rows to fit to it is 1 / (2 n + 2) if some probabilities are exactly 0 or 1, or the next
    one to 0 or 1, so that no other one is clipped.
    """
    x, label, zero = rows.x, rows.label, ROUNDED * CLIP
    if rows.from_logits:
        z = two_columns(x, from_logits=True) if x.ndim == 1 else x
        x = np.exp(z - z.max(axis=1, keepdims=True))
        is_exact = z == -np.inf
    else:
        one = np.finfo(x.dtype).eps * ROUNDED
        x = np.column_stack([1 - x, x]) if x.ndim == 1 else x
        is_exact = x < (zero if rows.x.ndim == 2 else [one, zero])
    if not is_exact.any():
        return CLIP
    if is_exact[np.arange(label.size), label].any():
        warn("X", IMPOSSIBLE)
    least = 1 / (2 * label.size + 2)
    return max(CLIP, float(x.min(where=~is_exact, initial=least)))


class BinaryFit(NamedTuple):
    """Parameters of a map of one score, in their order, and a warning or nothing."""

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
        place = np.arange(rows.label.size)
        fits = []
        for k in range(rows.n_classes) if rows.n_classes > 2 else [1]:
            score = rows.score(k)
            outcome = (rows.label == k).view(np.uint8)
            sample = Sample(score.s, outcome, rows.v, 0.0, 1.0, place)
            fits.append(self._fit_one(score, sample))
        for text in dict.fromkeys(fit.warning for fit in fits if fit.warning):
            found = [k for k, fit in enumerate(fits) if fit.warning == text]
            warn("X" if len(fits) == 1 else f"X, {name_classes(found)}", text)
        columns: Any = zip(*(fit.parameters for fit in fits), strict=True)
        for parameter, column in zip(self.PARAMETERS, columns, strict=True):
            values = list(column) if parameter.shape else np.array(column)
            setattr(self, f"{parameter.name}_", column[0] if len(fits) == 1 else values)

    def _map(self, rows: Rows) -> NDArray[Any]:
        fitted = [getattr(self, f"{parameter.name}_") for parameter in self.PARAMETERS]
        if rows.n_classes == 2:
            return self._map_one(rows.score(1), *fitted)
        p: NDArray[Any] = np.empty(rows.x.shape)
        for k in range(rows.n_classes):
            p[:, k] = self._map_one(rows.score(k), *(values[k] for values in fitted))
        total = p.sum(axis=1, keepdims=True)
        share: NDArray[Any] = np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1])
        return share

    @abstractmethod
    def _fit_one(self, score: Score, sample: Sample) -> BinaryFit:
        """Fit the map to one problem."""

    @abstractmethod
    def _map_one(self, score: Score, *parameters: Any) -> F64:
        """Map scores to probabilities (n,) of the event."""
