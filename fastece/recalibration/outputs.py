"""Checked outputs of models: probabilities or logits, with labels and weights to fit to.

A map reads outputs in one of two forms: logits (n, K), or the score of one class with its log odds.
Each form is computed from the caller's probabilities or logits, whichever were passed.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import containers as arrays
from fastece.data.errors import InputError, Names, rename_arguments, warn
from fastece.data.labels import as_labels, check_class_indices
from fastece.data.samples import Sample, effective_rows
from fastece.data.scores import native_floats, two_columns
from fastece.data.table import class_count
from fastece.kernels.types import F64, I64, U8

# Probabilities are at least this far from 0 and 1 before their logarithms are taken, unless a map
# has chosen another distance: see `fastece.recalibration.calibrator`.
MIN_CLIP = 2.0**-52
# Logits up to this size have squares that can be added.
MAX_LOGIT = 1e100
# Classes that a message lists by number; it counts the others.
MAX_LISTED_CLASSES = 5
# Arguments in errors: no function of this room has `labels=`, and `fit(X, y)` has its own names.
NAMES_IN_RECALIBRATE: Names = {
    "labels": "numbers of classes",
    "pos_label": None,
    "percent": "divide by 100?",
    "ignore_label": None,
    "counts": None,
    "ignore_nan": None,
    "class_axis_1": None,
}
NAMES_IN_FIT: Names = {**NAMES_IN_RECALIBRATE, "y_true": "y", "y_prob": "X", "first": "X"}


@dataclass(frozen=True)
class Score:
    """The probability of one class against all others, and the same as log odds.

    Either is computed when it is first read, as most maps need only one of them.

    Parameters
    ----------
    outputs : ModelOutputs
    k : int
        The class; one column holds the probabilities of class 1.
    """

    outputs: "ModelOutputs"
    k: int

    @cached_property
    def s(self) -> F64:
        """Probabilities (n,)."""
        if self.outputs.from_logits:
            return sigmoid(self.logit)
        values = self.outputs.values
        return np.ascontiguousarray(values if values.ndim == 1 else values[:, self.k], np.float64)

    @cached_property
    def logit(self) -> F64:
        """Log odds (n,), which are finite."""
        if self.outputs.from_logits:
            return self.outputs.log_odds(self.k)
        clip = self.outputs.clip
        p = self.s.clip(clip, 1 - clip)
        return np.asarray(np.log(p) - np.log1p(-p))

    @property
    def log_probabilities(self) -> F64:
        """Logarithms (n, 2) of 1 minus the probabilities, and of the probabilities."""
        log_odds = np.column_stack([self.logit, -self.logit])
        return np.asarray(-np.logaddexp(0.0, log_odds))


class LargestLogit(NamedTuple):
    """The class of the largest logit of each row, and how the others compare to it.

    Parameters
    ----------
    column : (n,) int64 array
        The class of the largest logit.
    logit : (n,) float64 array
        The largest logit itself.
    log_sum_of_others : (n,) float64 array
        ``log(sum_j exp(z_j - logit))`` over all other classes j.
    """

    column: I64
    logit: F64
    log_sum_of_others: F64


@dataclass(frozen=True)
class ModelOutputs:
    """Checked outputs of a model.

    Parameters
    ----------
    values : (n,) or (n, K) float64 or float32 array
        Probabilities or logits; one column is for class 1 of two classes.
    from_logits : bool
        Whether they are logits.
    clip : float
        The smallest probability before logarithms are taken.
    """

    values: NDArray[Any]
    from_logits: bool
    clip: float = MIN_CLIP

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def n_classes(self) -> int:
        """Number of classes; one column stands for two."""
        return class_count(self.values.shape)

    def where(self, rows: NDArray[Any]) -> Self:
        """Select rows by their positions, or by a mask."""
        return replace(self, values=self.values[rows])

    def logits(self) -> NDArray[Any]:
        """Return logits (n, K), or log probabilities, in the caller's dtype.

        A logit of -inf counts as a probability of `clip` times the largest one of its row.
        """
        if self.from_logits:
            return self._finite_logits()
        if self.values.ndim == 1:
            return self.score(1).log_probabilities
        min_probability = self.values.dtype.type(self.clip)
        return np.asarray(np.log(np.maximum(self.values, min_probability)))

    def _finite_logits(self) -> NDArray[Any]:
        """Return the caller's logits (n, K), with a finite number in place of -inf."""
        logits = self.values
        if logits.ndim == 1:
            logits = two_columns(logits, from_logits=True)
        is_impossible = logits == -np.inf
        if not is_impossible.any():
            return logits
        log_clip = logits.dtype.type(np.log(self.clip))
        return np.where(is_impossible, logits.max(axis=1, keepdims=True) + log_clip, logits)

    def score(self, k: int) -> Score:
        """Return the scores of class k; one column holds the scores of class 1."""
        return Score(self, k)

    def log_odds(self, k: int) -> F64:
        """Compute ``z_k - log(sum_j exp(z_j))`` of logits z, over j other than k."""
        if self.n_classes == 2:
            logits = self.logits().astype(np.float64, copy=False)
            return logits[:, k] - logits[:, 1 - k]
        largest = self._largest_logit
        is_largest = largest.column == k
        below_largest = self.logits()[:, k].astype(np.float64) - largest.logit
        # The sum over all classes less exp(z_k) gives the sum over the others, unless z_k is the
        # largest: then it is most of the sum, and the difference would be nothing but rounding.
        sum_of_others = 1 + np.exp(largest.log_sum_of_others) - np.exp(below_largest)
        log_sum = np.log(np.where(is_largest, 1.0, sum_of_others))
        return below_largest - np.where(is_largest, largest.log_sum_of_others, log_sum)

    @cached_property
    def _largest_logit(self) -> LargestLogit:
        """The largest logit of each row; all classes share one pass over the logits."""
        from scipy.special import logsumexp

        logits = self.logits()
        column = logits.argmax(axis=1)
        each_row = np.arange(column.size)
        largest = logits[each_row, column].astype(np.float64)
        below_largest = logits - largest[:, None]
        below_largest[each_row, column] = -np.inf
        return LargestLogit(column, largest, logsumexp(below_largest, axis=1))


@dataclass(frozen=True, kw_only=True)
class LabelledOutputs(ModelOutputs):
    """Checked outputs of a model with the labels of their rows.

    Parameters
    ----------
    label : (n,) int64 array
        Labels from 0 to K - 1.
    sample_weight : (n,) float64 array or None
        The caller's weights, not negative; None where the caller passed none.
    class_names : list of str or None
        The labels of the columns where the caller's labels are strings.
    """

    label: I64
    sample_weight: F64 | None = None
    class_names: list[Any] | None = None

    @property
    def unit_weight(self) -> F64:
        """Weights (n,) that sum to 1."""
        return scale_to_unit_sum(self.sample_weight, self.n_rows)

    @property
    def n_effective(self) -> float:
        """Number of rows of equal weight whose mean varies as much (`effective_rows`)."""
        return effective_rows(self.sample_weight, self.n_rows)

    def where(self, rows: NDArray[Any]) -> Self:
        """Select rows by their positions, or by a mask."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, values=self.values[rows], label=self.label[rows], sample_weight=weight)

    def rows_to_fit(self, name: str) -> Self:
        """Select the rows whose weight is not 0.

        Parameters
        ----------
        name : str
            The name of the labels in messages.

        Raises
        ------
        ValueError
            Where all labels are of one class.

        Warns
        -----
        UserWarning
            Where a class has no label.
        """
        rows = self
        if self.sample_weight is not None and not self.sample_weight.all():
            rows = self.where(np.flatnonzero(self.sample_weight))
        count = np.bincount(rows.label, minlength=self.n_classes)
        present = np.flatnonzero(count)
        absent = np.flatnonzero(count == 0)
        if present.size == 1:
            rule = "must have labels of two classes or more to be fitted to"
            raise InputError(name, f"{rule}, got {present[0]} alone")
        if absent.size:
            classes = list_classes(absent)
            warn(name, f"no label is of {classes}, which is fitted as if it never were")
        return rows

    def problem(self, k: int) -> "BinaryProblem":
        """Return the problem of class k against all others."""
        outcome = (self.label == k).view(np.uint8)
        return BinaryProblem(self.score(k), outcome, self.sample_weight)


class BinaryProblem(NamedTuple):
    """Scores of one class, with the outcomes and weights of rows to fit to.

    Parameters
    ----------
    score : Score
    outcome : (n,) uint8 array
    sample_weight : (n,) float64 array or None
        Greater than 0; None where the caller passed none.
    """

    score: Score
    outcome: U8
    sample_weight: F64 | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.outcome.size

    @property
    def unit_weight(self) -> F64:
        """Weights (n,) that sum to 1."""
        return scale_to_unit_sum(self.sample_weight, self.n_rows)

    def to_sample(self, score: F64 | None = None) -> Sample:
        """Make a sample for estimators, of the scores or of others (n,) in their place."""
        return Sample(
            s=self.score.s if score is None else score, y=self.outcome, v=self.sample_weight,
            low=0.0, high=1.0, rows=np.arange(self.n_rows),
        )  # fmt: skip


def scale_to_unit_sum(weight: F64 | None, n_rows: int) -> F64:
    """Scale weights so that they sum to 1; without weights, all rows are equal."""
    if weight is None:
        return np.full(n_rows, 1 / n_rows)
    relative = weight / weight.max()  # The sum of the weights themselves may be infinite.
    return np.asarray(relative / relative.sum())


def list_classes(classes: NDArray[Any] | list[int]) -> str:
    """List classes in words, the first few by number."""
    numbers = ", ".join(map(str, classes[:MAX_LISTED_CLASSES]))
    if len(classes) == 1:
        return f"class {numbers}"
    if len(classes) > MAX_LISTED_CLASSES:
        numbers += ", ..."
    return f"{len(classes)} classes ({numbers})"


def sigmoid(logit: F64) -> F64:
    """Compute ``1 / (1 + exp(-z))`` of logits (n,)."""
    p = np.empty(logit.size)
    kernels.arithmetic.sigmoid(logit, p)
    return p


def read_outputs(value: Any, from_logits: bool, name: str) -> ModelOutputs:
    """Check the caller's probabilities or logits (n,) or (n, K)."""
    array = arrays.as_probabilities(value, name)
    tolerance = arrays.row_sum_tolerance(value, array)
    if from_logits:
        arrays.warn_if_probabilities(array, tolerance, name)
    needs_clip = arrays.check_probabilities(array, from_logits, name, tolerance)
    if needs_clip:
        array = array.clip(0.0, 1.0)
    if from_logits and array.dtype == np.float64:
        rule = f"logits must lie within {MAX_LOGIT:g} of 0, or be -inf"
        arrays.refuse_where(name, rule, array, is_large_logit)
    return ModelOutputs(native_floats(array), from_logits)


def is_large_logit(logit: NDArray[Any]) -> NDArray[Any]:
    """Return whether each logit is too far from 0; -inf is a probability of 0."""
    return np.asarray((np.abs(logit) > MAX_LOGIT) & (logit != -np.inf))


def read_labelled_outputs(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    from_logits: bool,
    *,
    name: str,
    sorts_labels: bool,
) -> LabelledOutputs:
    """Check the caller's labels, outputs and weights.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As in `fastece.recalibration.recalibrate`.
    from_logits : bool
    name : str
        The caller's name of `y_prob`.
    sorts_labels : bool
        Whether columns without names are in the order of the sorted strings among the labels.
    """
    outputs = read_outputs(y_prob, from_logits, name)
    with rename_arguments(NAMES_IN_RECALIBRATE):
        label, class_names = as_labels(
            y_true, outputs.values, name, arrays.column_names(y_prob), labels=None, pos_label=None,
            is_sorted=sorts_labels,
        )  # fmt: skip
        if class_names is None:
            label = check_class_indices(label, outputs.n_classes, outputs.values)
    weight = arrays.as_weights(sample_weight, outputs.n_rows)
    index = arrays.index_of(y_true, y_prob)
    arrays.warn_of_index(name, y_prob, index)
    arrays.warn_of_index("sample_weight", sample_weight, index)
    return LabelledOutputs(
        values=outputs.values, from_logits=from_logits, label=arrays.contiguous(label, np.int64),
        sample_weight=weight, class_names=class_names,
    )  # fmt: skip
