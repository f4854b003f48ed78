"""Rows with counts: row i stands for so many independent rows.

Twenty grades may stand for 10^8 loans. Counts of events are read as rows with labels.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers
from fastece.data.errors import InputError, RowsWarning, rename_indices, warn
from fastece.data.options import ReadingOptions
from fastece.kernels.types import F64, I64

# Sums of counts are exact as float64, and as the int64 of random draws.
MAX_TOTAL = 2.0**53
# Standard deviations of the number of events that scores hardly ever leave.
MIN_DEVIATIONS = 4


# --- reading --------------------------------------------------------------------------------


class CountedTable(NamedTuple):
    """A caller's table, after counts of events became rows with labels.

    Attributes
    ----------
    y_true : array_like
        A label for each row.
    y_prob, sample_weight : array_like
        Those of the caller, or of the rows made of counts of events.
    counts : (n,) float64 array
    origin : (n,) int64 array or None
        The caller's row of each row; None where these are the same rows.
    """

    y_true: Any
    y_prob: Any
    sample_weight: Any
    counts: F64
    origin: I64 | None

    def naming_rows(self) -> AbstractContextManager[None]:
        """Name the caller's rows in errors of the block, and not the rows made of them."""
        origin = self.origin
        if origin is None:
            return nullcontext()
        return rename_indices(lambda _, index: (int(origin[index[0]]), *index[1:]))


class LabelCounts(NamedTuple):
    """Labels, their counts (n,) and the caller's rows, as in `CountedTable`."""

    y_true: Any
    counts: F64
    origin: I64 | None


def read_counted_arrays(
    y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str = "y_prob",
    has_classes: bool = False,
) -> CountedTable:  # fmt: skip
    """Check counts (n,), and turn counts of events into rows with labels.

    Where counts of events become rows, probabilities lose the names of their columns. With
    `has_classes`, (n,) are labels of classes in any case.
    """
    has_labels = has_classes or not (
        options.labels is options.pos_label is options.ignore_label is None
    )
    sample_weight = options.sample_weight
    y, c, origin = read_labels(y_true, y_prob, options.counts, has_labels, prob_name)
    index = containers.index_of(y_true, y_prob)
    containers.warn_of_index("counts", options.counts, index)
    if origin is None:
        return CountedTable(y, y_prob, sample_weight, c, None)
    containers.check_order_of_numbers(
        containers.column_names(y_true), containers.column_names(y_prob), prob_name
    )
    containers.warn_of_index(prob_name, y_prob, index)
    containers.warn_of_index("sample_weight", sample_weight, index)
    prob = containers.as_array(prob_name, y_prob)
    weights = containers.as_weights(sample_weight, len(prob))
    weights = None if weights is None else weights[origin]
    return CountedTable(y, prob[origin], weights, c, origin)


def read_labels(
    y_true: Any, y_prob: Any, counts: Any, has_labels: bool, prob_name: str
) -> LabelCounts:
    """Check counts (n,), and find whether `y_true` counts events.

    Parameters
    ----------
    y_true : (n,) or (n, K) array_like
        Labels; or, of the rows behind each row, how many had the event (n,), or had each class
        (n, K). Integers of which none exceeds 1 are labels.
    y_prob : (n,) or (n, K) array_like
    counts : (n,) array_like of int
    has_labels : bool
        Whether the caller named labels, so that these are no counts.
    prob_name : str
        The caller's name of `y_prob`.
    """
    prob = containers.as_array(prob_name, y_prob)
    n = len(prob) if prob.ndim else 0
    c = as_counts(counts, n)
    y = containers.as_array("y_true", y_true)
    if y.ndim == 2 and y.shape[1] > 1:
        return rows_of_classes(as_class_counts(y, prob, c))
    is_binary = prob.ndim == 1 or prob.shape[1] <= 2
    if has_labels or not is_binary:
        return LabelCounts(y_true, c, None)
    if not is_event_count(y, c):
        warn_if_events(y, prob, c)
        return LabelCounts(y_true, c, None)
    events = containers.as_real("y_true", y).reshape(-1)
    containers.refuse_infinite("y_true", events)
    refuse_fractions("y_true", events)
    containers.refuse_where("y_true", "must not be negative", events, lambda part: part < 0)
    too_large = events > c
    if too_large.any():
        row = int(too_large.argmax())
        rule = f"must not exceed {{counts}}, which is {c[row]:g} there"
        raise InputError("y_true", rule, index=row, value=events[row])
    return rows_of_classes(np.column_stack([c - events, events]))


def as_counts(value: Any, n: int) -> F64:
    """Read counts (n,), positive whole numbers."""
    counts = containers.as_row_numbers("counts", value, n)
    containers.refuse_infinite("counts", counts)
    refuse_fractions("counts", counts)
    containers.refuse_where(
        "counts", "must be at least 1", counts, lambda part: part < 1, "leave such rows out"
    )
    total = float(counts.sum(dtype=np.float64))
    if total > MAX_TOTAL:
        raise InputError("counts", f"must add up to at most {MAX_TOTAL:.0f}", value=total)
    return containers.contiguous(counts, np.float64)


def refuse_fractions(name: str, array: NDArray[Any]) -> None:
    """Refuse numbers that are not whole."""
    containers.refuse_where(
        name, "must be whole numbers", array, lambda part: part != np.floor(part),
        "weights go to {sample_weight}",
    )  # fmt: skip


def is_event_count(y: NDArray[Any], counts: F64) -> bool:
    """Decide whether labels are counts of events, of which some exceed 1."""
    if y.dtype.kind not in "iuf" or y.size != counts.size:
        return False
    return bool((y > 1).any())


def as_class_counts(y: NDArray[Any], prob: NDArray[Any], counts: F64) -> F64:
    """Check counts (n, K) of each class, which add up to the counts of the rows."""
    n_classes = prob.shape[1] if prob.ndim > 1 and prob.shape[1] > 1 else 2
    of_classes = containers.as_real("y_true", y)
    if of_classes.shape != (counts.size, n_classes):
        rule = f"must have shape ({counts.size}, {n_classes}) as counts of classes"
        raise InputError("y_true", f"{rule}, got {of_classes.shape}")
    containers.refuse_infinite("y_true", of_classes)
    refuse_fractions("y_true", of_classes)
    containers.refuse_where("y_true", "must not be negative", of_classes, lambda part: part < 0)
    differs = of_classes.sum(axis=1) != counts
    if differs.any():
        row = int(differs.argmax())
        rule = f"must add up to {{counts}} in each row, and row {row} has {counts[row]:g}"
        raise InputError("y_true", rule, value=float(of_classes[row].sum()))
    return of_classes.astype(np.float64)


def rows_of_classes(of_classes: F64) -> LabelCounts:
    """Make a row of each class that occurs in a row, from counts (n, K)."""
    origin, label = np.nonzero(of_classes)
    return LabelCounts(label, of_classes[origin, label], origin)


def warn_if_events(y: NDArray[Any], prob: NDArray[Any], counts: F64) -> None:
    """Warn of labels 0 and 1 that may be counts of few events.

    They may be if each score is there once, and if the scores expect about so many events, but not
    as many as there are by labels: within four standard deviations, and beyond.
    """
    if y.dtype.kind not in "iuf" or prob.dtype.kind not in "iuf" or y.shape != prob.shape:
        return
    if not (prob.size and prob.min() >= 0 and prob.max() <= 1):  # percents, logits, or a fault
        return
    if counts.max() == 1 or np.unique(prob).size < prob.size:
        return
    expected = float(counts @ prob)
    margin = MIN_DEVIATIONS * math.sqrt(max(float(counts @ (prob * (1 - prob))), 0.0))
    by_events = abs(float(y.sum()) - expected)
    by_labels = abs(float(counts @ y.reshape(-1)) - expected)
    if by_events <= margin < by_labels:
        warn(
            "y_true",
            "is 0 or 1 in each row, so these are labels; if they are counts of events, pass "
            "np.column_stack([counts - events, events])",
            kind=RowsWarning,
        )
