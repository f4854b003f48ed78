"""Rows for recalibration methods: checked predictions, labels and weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.arrays import as_weights, contiguous, refuse_where
from fastece.checks.errors import InputError, Names, rename_arguments, warn
from fastece.checks.labels import as_labels, check_class_indices
from fastece.checks.probabilities import (
    as_probabilities,
    check_probabilities,
    column_names,
    row_sum_tolerance,
    warn_if_probabilities,
)
from fastece.data.reading import SLICE, native_scores, softmax, two_columns
from fastece.data.sample import Sample
from fastece.data.source import class_count
from fastece.typing import F64, I64

# Probabilities are at least this far from 0 and 1 before their logarithms are taken.
CLIP = 2.0**-52
LOG_CLIP = float(np.log(CLIP))
# Logits up to this have squares that can be added.
LARGEST = 1e100
# Arguments in errors: nothing names labels, and `fit(X, y)` has its own names.
NO_LABELS: Names = {"labels": None, "pos_label": None}
FIT: Names = {**NO_LABELS, "y_true": "y", "y_prob": "X", "first": "X"}


@dataclass(frozen=True)
class Score:
    """Scores (n,) of a binary problem, with their logits where the caller gave logits."""

    s: F64
    given_logit: F64 | None = None

    @cached_property
    def logit(self) -> F64:
        """Log odds of the scores."""
        if self.given_logit is not None:
            return self.given_logit
        p = self.s.clip(CLIP, 1 - CLIP)
        return np.asarray(np.log(p) - np.log1p(-p))

    @property
    def log_score(self) -> F64:
        """Logarithms of the scores."""
        return np.asarray(-np.logaddexp(0.0, -self.logit))

    @property
    def log_complement(self) -> F64:
        """Logarithms of 1 minus the scores."""
        return np.asarray(-np.logaddexp(0.0, self.logit))


@dataclass(frozen=True)
class Predictions:
    """Probabilities or logits (n,) or (n, K), each value checked."""

    x: NDArray[Any]
    from_logits: bool

    @property
    def n_classes(self) -> int:
        """Number of classes; one column stands for two."""
        return class_count(self.x.shape)

    def where(self, rows: NDArray[Any]) -> "Predictions":
        """Select some of the rows."""
        return Predictions(self.x[rows], self.from_logits)

    def logits(self) -> NDArray[Any]:
        """Return logits (n, K), or log probabilities, in the caller's dtype.

        A logit of -inf counts as a probability of 2**-52 times the largest.
        """
        if self.from_logits:
            z = self.x if self.x.ndim == 2 else two_columns(self.x, logits=True)
            lowest = z == -np.inf
            if not lowest.any():
                return z
            return np.where(lowest, z.max(axis=1, keepdims=True) + z.dtype.type(LOG_CLIP), z)
        if self.x.ndim == 1:
            score = self.score(1)
            return np.column_stack([score.log_complement, score.log_score])
        return np.asarray(np.log(np.maximum(self.x, self.x.dtype.type(CLIP))))

    def score(self, k: int) -> Score:
        """Return the scores of class k; one column holds the scores of class 1."""
        if not self.from_logits:
            p = self.x if self.x.ndim == 1 else self.x[:, k]
            return Score(np.ascontiguousarray(p, np.float64))
        best, top, log_rest = self._others
        below = self.logits()[:, k].astype(np.float64) - top
        # exp(z_k) taken off a sum that it is most of would leave rounding alone.
        others = np.where(best == k, 1.0, 1 + np.exp(log_rest) - np.exp(below))
        logit = below - np.where(best == k, log_rest, np.log(others))
        return Score(sigmoid(logit), logit)

    @cached_property
    def _others(self) -> tuple[I64, F64, F64]:
        """The class of the largest logit z, z, and the log of a sum over the others.

        The last is ``log(sum(exp(z_j - z)))`` over the other classes j.
        """
        from scipy.special import logsumexp

        logits = self.logits()
        best = logits.argmax(axis=1)
        top = logits[np.arange(best.size), best].astype(np.float64)
        below = logits - top[:, None]
        below[np.arange(best.size), best] = -np.inf
        return best, top, logsumexp(below, axis=1)

    def scores(self) -> Iterator[tuple[int, Score]]:
        """Yield classes with their scores against the rest; of two, only the second."""
        for k in range(self.n_classes) if self.n_classes > 2 else [1]:
            yield k, self.score(k)


class Rows(NamedTuple):
    """Data to fit: predictions, labels from 0 to K - 1, weights, class names.

    Classes have names where the caller's labels are not numbers.
    """

    predictions: Predictions
    label: I64
    v: F64 | None
    classes: list[Any] | None = None

    @property
    def weight(self) -> F64:
        """Weights that sum to 1."""
        return unit_weights(self.v, self.label.size)

    def where(self, rows: NDArray[Any]) -> "Rows":
        """Select some of the rows."""
        v = None if self.v is None else self.v[rows]
        return self._replace(predictions=self.predictions.where(rows), label=self.label[rows], v=v)

    def of_weight(self) -> "Rows":
        """Select the rows whose weight is not 0."""
        return self if self.v is None or self.v.all() else self.where(np.flatnonzero(self.v))

    def problems(self) -> Iterator[tuple[Score, Sample]]:
        """Yield the problems of classes against the rest; of two, only the second."""
        place = np.arange(self.label.size)
        for k, score in self.predictions.scores():
            outcome = (self.label == k).view(np.uint8)
            yield score, Sample(score.s, outcome, self.v, 0.0, 1.0, place)


def unit_weights(v: F64 | None, n: int) -> F64:
    """Scale weights so that they sum to 1."""
    if v is None:
        return np.full(n, 1 / n)
    weight = v / v.max()  # sums may be beyond float64
    return np.asarray(weight / weight.sum())


def read_predictions(value: Any, from_logits: bool, name: str) -> Predictions:
    """Check probabilities or logits (n,) or (n, K)."""
    array = as_probabilities(value, name)
    tolerance = row_sum_tolerance(value, array)
    if from_logits:
        warn_if_probabilities(array, tolerance, name)
    if check_probabilities(array, from_logits, name, tolerance):
        array = array.clip(0.0, 1.0)
    if from_logits and array.dtype == np.float64:
        rule = f"logits must lie within {LARGEST:g} of 0, or be -inf"
        refuse_where(name, rule, array, lambda z: (np.abs(z) > LARGEST) & (z != -np.inf))
    return Predictions(native_scores(array), from_logits)


def read_rows(
    y_true: Any, y_prob: Any, sample_weight: Any, from_logits: bool, name: str = "y_prob"
) -> Rows:
    """Check labels, predictions and weights."""
    predictions = read_predictions(y_prob, from_logits, name)
    x, n_classes = predictions.x, predictions.n_classes
    with rename_arguments(NO_LABELS):
        label, order = as_labels(y_true, x, name, column_names(y_prob), None, None)
        label = label if order is not None else check_class_indices(label, n_classes, x)
    v = as_weights(sample_weight, len(x))
    return Rows(predictions, contiguous(label, np.int64), v, order)


def check_classes(rows: Rows, name: str) -> None:
    """Refuse labels that are all of one class; warn of classes without a label.

    Messages call the labels `name`.
    """
    n_classes = rows.predictions.n_classes
    count = np.bincount(rows.label, minlength=n_classes)
    found, never = np.flatnonzero(count), np.flatnonzero(count == 0)
    if found.size == 1:
        rule = "must have labels of two classes or more to be fitted to"
        raise InputError(name, f"{rule}, got {found[0]} alone")
    if never.size:
        warn(name, f"no label is of {name_classes(never)}, which is fitted as if it never were")


def name_classes(classes: Sequence[int] | NDArray[Any]) -> str:
    """List classes in words, the first few by number."""
    shown = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
    return f"class {shown}" if len(classes) == 1 else f"{len(classes)} classes ({shown})"


def sigmoid(z: F64) -> F64:
    """Compute ``1 / (1 + exp(-z))`` of logits (n,)."""
    p = np.empty(z.size)
    kernels.logits.sigmoid(z, p)
    return p


def softmax_of(z: NDArray[Any], inverse: float) -> NDArray[Any]:
    """Compute the softmax of logits (n, K) times a positive number, in their dtype."""
    p = np.empty_like(z)
    step = max(1, SLICE // z.shape[1])
    for start in range(0, len(z), step):
        part = z[start : start + step].astype(np.float64) * inverse
        p[start : start + step] = softmax(part, part.max(axis=1), z.shape[1])
    return p
