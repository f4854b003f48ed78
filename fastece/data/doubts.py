"""Labels that contradict the predictions, of which every function that reads them warns.

Columns in another order are like that, or the probability of the other class. The warning must
never come for good data: `tests/report/test_signs.py` counts how often it does.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.errors import RowsWarning, warn
from fastece.data.samples import Sample
from fastece.data.scores import MAX_ENTRIES_READ, are_native, class_vectors, two_columns
from fastece.data.table import RowTable, class_count
from fastece.kernels import MAX_ROWS_COMPARED, MIN_DEVIATIONS
from fastece.kernels.types import F64, I64

# Means of probabilities that differ by less are equal.
MEAN_TOLERANCE = 1e-12


# --- outcomes that cannot be ----------------------------------------------------------------


def are_impossible(sample: Sample) -> NDArray[np.bool_]:
    """Decide for rows (n,) whether their outcome had the probability 0."""
    impossible = ((sample.s <= 0) & (sample.y > 0)) | ((sample.s >= 1) & (sample.y < 1))
    return np.asarray(impossible)


def impossible_rows(table: RowTable) -> list[NDArray[np.bool_]]:
    """Find the rows (n,) of each problem whose outcome had probability 0.

    The problems of a stream have rows of their own, and not the same number of them.
    """
    return [are_impossible(sample) for sample in table.samples(reads_only=True)]


# --- labels that do not belong to the predictions --------------------------------------------


@dataclass(frozen=True)
class LabelledVectors:
    """Rows of class vectors with their labels, all rows or evenly spaced ones.

    Attributes
    ----------
    p : (n,) or (n, K) array
        Probabilities, or logits; (n,) of the positive class.
    y : (n,) int64 array
    from_logits : bool
    """

    p: NDArray[Any]
    y: I64
    from_logits: bool

    @property
    def is_binary(self) -> bool:
        """Whether the caller has one column."""
        return self.p.ndim == 1

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return class_count(self.p.shape)

    @cached_property
    def advantage(self) -> F64:
        """Probability of the positive class minus the other one, or its logit (n,)."""
        p = self.p.astype(np.float64, copy=False)
        return p if self.from_logits else np.asarray(p - (1 - p))

    @cached_property
    def predicted(self) -> I64:
        """The most probable class (n,) of each row, the first of equal ones."""
        if self.is_binary:
            return (self.advantage > 0).astype(np.int64)
        return np.asarray(self.p.argmax(axis=1))

    @cached_property
    def probabilities(self) -> F64:
        """Probabilities (n, K)."""
        p = two_columns(self.p, self.from_logits) if self.is_binary else self.p
        return class_vectors(p, self.from_logits)


def warn_of_contradiction(
    prob: NDArray[Any], label: NDArray[Any], from_logits: bool, names: Any, prob_name: str
) -> None:
    """Warn of labels that contradict the predictions, as columns in another order do."""
    if not may_contradict(prob, label, from_logits):
        return
    rows = some_rows(prob)
    labelled = LabelledVectors(prob[rows], label[rows].astype(np.int64, copy=False), from_logits)
    rule = contradiction(labelled, names)
    if rule:
        warn(prob_name, rule, kind=RowsWarning)


def may_contradict(prob: NDArray[Any], label: NDArray[Any], from_logits: bool) -> bool:
    """Decide by some rows whether `contradiction` has to look at more of them.

    A part of many rows has to lean to that side, and all of few rows as far as for a warning.
    Labels of any integers or bools will do, also those that are no classes.
    """
    step = 1 + len(prob) // MAX_ROWS_COMPARED
    deviations = MIN_DEVIATIONS if step == 1 else 0.0  # as `kernels.reading.rows_compared`
    if not are_native(label, prob):
        prob = contiguous(prob[::step], np.float64)
        label = contiguous(label[::step], np.int64)
        step = 1
    if prob.ndim == 2:
        return kernels.reading.is_worse_than_guess(prob, label, step, deviations)
    middle = 0.0 if from_logits else 0.5
    return kernels.reading.is_worse_than_complement(prob, label, middle, step, deviations)


def some_rows(prob: NDArray[Any]) -> slice:
    """Choose all rows, or evenly spaced ones of many."""
    return slice(None, None, 1 + prob.size // MAX_ENTRIES_READ)


def contradiction(rows: LabelledVectors, names: Any) -> str:
    """Describe predictions that contradict the labels, as columns in another order do.

    By a sign test, the predicted class is right less often than the most frequent one would be; and
    labels have no higher probability than in other rows. One column may hold confidences of hits:
    their complement has to be right more often than the most frequent class would be.
    """
    y = rows.y
    share = np.bincount(y, minlength=rows.n_classes) / max(y.size, 1)
    most_frequent = int(share.argmax())
    is_guess_right = y == most_frequent
    is_prediction_right = rows.predicted == y
    n_gained = np.count_nonzero(is_prediction_right) - np.count_nonzero(is_guess_right)
    n_lost = -n_gained
    n_changed = np.count_nonzero(is_prediction_right != is_guess_right)
    if rows.is_binary:
        is_complement_right = (rows.advantage < 0) == y
        n_lost = np.count_nonzero(is_complement_right) - np.count_nonzero(is_guess_right)
        n_changed = np.count_nonzero(is_complement_right != is_guess_right)
    if n_lost <= MIN_DEVIATIONS * math.sqrt(n_changed):
        return ""
    p = rows.probabilities
    p = p - p.mean(axis=0)
    lift = p[np.arange(y.size), y] - p @ share
    if lift.mean() >= 3 * lift.std() / math.sqrt(y.size) - MEAN_TOLERANCE:
        return ""
    class_names = names or range(p.shape[1])
    right = f"{100 * (n_gained / y.size + share[most_frequent]):.3g} %"
    by_guess = f"{100 * share[most_frequent]:.3g} %"
    question = "are labels and columns in the same order?"
    if rows.is_binary:
        question = f"is it the probability of {class_names[1]!r}?"
    return (
        f"its class is right in {right} of the rows, and {class_names[most_frequent]!r} for all "
        f"would be in {by_guess}: {question}"
    )
