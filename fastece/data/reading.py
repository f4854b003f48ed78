"""Conversion of a caller's arrays to problems.

One fast pass checks everything; where it fails, a slow check builds the message.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import containers as arrays
from fastece.data.errors import InputError, InputTypeError, RowsWarning, warn
from fastece.data.labels import as_labels, as_soft_labels, check_class_indices
from fastece.data.parameters import check_flag
from fastece.data.samples import Vectors
from fastece.data.sources import Arrays, Problems, Setting, Source, class_count, find_setting
from fastece.kernels.types import F64

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]

# At this part of the distance from 1 that the sum of a row may have, the slow check looks at it,
# which alone decides: sums in another order are rounded otherwise.
NEARLY = 0.9
TOLERANCE = NEARLY * arrays.ROW_SUM_TOLERANCE
# Entries of class vectors that are read at once: some milliseconds of one thread.
SLICE = 2**20
# Standard deviations of the number of rows in which a constant guess is better than predictions.
SURE = 4
# Means of probabilities that differ by less are equal.
EQUAL = 1e-12
# Rows whose scores and outcomes, 9 bytes each, are kept: 38 MB.
MOST_KEPT = 2**22
# Scores and labels of the rows, or None if one of them is not good.
Found = Arrays | None


def read_source(
    y_true: Any, y_prob: Any, *, setting: Any = "auto", prob_name: str = "y_prob",
    vectors: bool = False, checks_order: bool = False, run: Map = map, **options: Any,
) -> Source:  # fmt: skip
    """Return a source as it is, or read the caller's arrays as `read_problems` does."""
    if isinstance(y_true, Source):
        refuse_options(y_true, **{prob_name: y_prob}, **options)
        y_true.check_setting(setting)
        return y_true
    return read_problems(
        y_true, y_prob, setting=setting, prob_name=prob_name, vectors=vectors,
        checks_order=checks_order, run=run, **options,
    )  # fmt: skip


def refuse_options(source: Source, **options: Any) -> None:
    """Refuse options that only arrays have, unless they are None or False."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputTypeError(name, f"goes with arrays, and here is {source!r}")


def read_problems(
    y_true: Any, y_prob: Any, *, setting: Any = "auto", labels: Any = None, pos_label: Any = None,
    sample_weight: Any = None, from_logits: bool = False, guess_logits: bool = False,
    soft: bool = False, votes: Any = None, prob_name: str = "y_prob", vectors: bool = False,
    checks_order: bool = False, run: Map = map,
) -> Problems:  # fmt: skip
    """Check the caller's data and read them as problems; rows of weight 0 are dropped.

    With `vectors`, the setting "auto" keeps class vectors beside the problem of the top label; with
    `guess_logits`, numbers outside [0, 1] are read as logits; with `checks_order`, predictions that
    contradict the labels are a warning. A row with a soft label becomes several, a label each.
    """
    from_logits = check_flag("from_logits", from_logits)
    is_soft = check_flag("soft", soft) or votes is not None
    is_plain = not is_soft and labels is pos_label is None and are_plain(y_true, y_prob)
    prob = y_prob if is_plain else arrays.as_probabilities(y_prob, prob_name)
    row = find_setting(setting, prob.shape)
    n_classes = class_count(prob.shape)
    label, order, n = y_true, None, len(prob)
    columns = [] if is_plain else arrays.column_names(y_prob)
    names = arrays.class_names(columns)
    if is_soft:
        if labels is not None or pos_label is not None:
            raise InputError("labels", "names hard labels, as {pos_label} does, not {soft} ones")
        origin, label, part = as_soft_labels(y_true, votes, prob, prob_name, columns)
    elif not is_plain:
        label, order = as_labels(y_true, prob, prob_name, columns, labels, pos_label)
        names = names if order is None else None
    if not is_plain:
        arrays.warn_of_index(prob_name, y_prob, y_true)
        arrays.warn_of_index("sample_weight", sample_weight, y_true)
    v = arrays.as_weights(sample_weight, n)
    tolerance = arrays.row_sum_tolerance(y_prob, prob)
    if from_logits:
        arrays.warn_if_probabilities(prob, tolerance, prob_name)
    if is_soft:
        if arrays.check_probabilities(prob, from_logits, prob_name, tolerance):
            prob = prob.clip(0.0, 1.0)
        prob, tolerance = prob[origin], math.inf
        v = part if v is None else part * v[origin]
        v = None if (v == 1).all() else v
    found = None
    if label.dtype.kind != "f":
        found = read_arrays(row, prob, label, from_logits, NEARLY * tolerance, run)
    if found is None:
        from_logits = from_logits or (guess_logits and arrays.are_logits(prob, prob_name))
        clip = arrays.check_probabilities(prob, from_logits, prob_name, tolerance)
        label = label if order is not None else check_class_indices(label, n_classes, prob)
        prob = prob.clip(0.0, 1.0) if clip else prob
        found = read_arrays(row, prob, label, from_logits, math.inf, run)
    assert found is not None, "what the slow check lets pass can be read"
    if checks_order and not is_soft:
        warn_of_order(prob, label, v, from_logits, order or names, prob_name)
    low = 1 / n_classes if row.is_top else 0.0
    whole = None
    if vectors and prob.ndim == 2 and isinstance(setting, str) and setting == "auto":
        whole = Vectors(class_vectors(prob, from_logits), arrays.contiguous(label, np.int64))
    convert = partial(read_rows, row, from_logits) if label.size > MOST_KEPT else None
    problems = Problems(row, *found, low, 1.0, n_classes, v, None, order, whole, convert, names)
    if not (v is None or v.all()):
        problems = problems.where(np.flatnonzero(v))
    if len(prob) > n:
        rows = np.unique(origin[problems.positions]).size
        problems = replace(problems, origin=origin, votes=problems.n / rows)
    return problems


def warn_of_order(
    prob: NDArray[Any], label: NDArray[Any], v: F64 | None, logits: bool, names: Any, name: str
) -> None:
    """Warn of predictions that contradict the labels, as of columns in another order.

    By a sign test, the predicted class is right less often than the most frequent one would be; and
    labels have no higher probability than in other rows. One column may hold confidences of hits:
    their complement has to be right more often than the most frequent class would be.
    """
    rows = np.arange(0, label.size, 1 + prob.size // SLICE)
    rows = rows if v is None else rows[v[rows] > 0]
    p, y = prob[rows], label[rows].astype(np.int64)
    p = two_columns(p, logits) if prob.ndim == 1 else p
    share = np.bincount(y, minlength=p.shape[1]) / max(y.size, 1)
    usual = int(share.argmax())
    gain = (p.argmax(axis=1) == y) * 1.0 - (y == usual)
    less = (p.argmin(axis=1) == y) * 1.0 - (y == usual) if prob.ndim == 1 else -gain
    if less.sum() <= SURE * math.sqrt(abs(less).sum()):
        return
    p = class_vectors(p, logits)
    p = p - p.mean(axis=0)
    lift = p[np.arange(y.size), y] - p @ share
    if lift.mean() >= 3 * lift.std() / math.sqrt(y.size) - EQUAL:
        return
    shown = names or range(p.shape[1])
    right, most = (f"{100 * x:.3g} %" for x in (gain.mean() + share[usual], share[usual]))
    rule = f"its class is right in {right} of the rows, and {shown[usual]!r} for all would be in "
    order = "are labels and columns in the same order?"
    order = f"is it the probability of {shown[1]!r}?" if prob.ndim == 1 else order
    warn(name, f"{rule}{most}: {order}", kind=RowsWarning)


def part_of(p: NDArray[Any], y: NDArray[Any], start: int, rows: int) -> tuple[Any, Any]:
    """Return a part of plain arrays, of the types that kernels take."""
    whole = rows >= y.size
    prob, label = (p, y) if whole else (p[start : start + rows], y[start : start + rows])
    if p.ndim == 1:
        return prob.astype(np.float64, copy=False), label
    return prob, label.astype(np.int64, copy=False)


def are_plain(y: Any, p: Any) -> bool:
    """Return whether labels and probabilities are arrays that need no conversion."""
    return (
        type(y) is type(p) is np.ndarray and p.dtype.char in "df" and y.dtype.kind in "iub"
        and p.ndim in (1, 2) and p.shape[1:] != (1,) and p.size > 0 and y.shape == p.shape[:1]
    )  # fmt: skip


def read_arrays(
    row: Setting, prob: NDArray[Any], label: NDArray[Any], logits: bool, tolerance: float, run: Map
) -> Found:
    """Read scores and labels; many are only checked here, and read again part by part."""
    if label.size <= MOST_KEPT:
        return read_rows(row, logits, prob, label, tolerance, run)
    step = max(1, SLICE // 8 * len(prob) // prob.size)
    parts = (slice(start, start + step) for start in range(0, label.size, step))
    found = run(
        lambda at: read_rows(row, logits, prob[at], label[at], tolerance) is not None, parts
    )
    return (prob, label) if all(found) else None


def read_rows(
    row: Setting, logits: bool, prob: NDArray[Any], label: NDArray[Any],
    tolerance: float = math.inf, run: Map = map,
) -> Found:  # fmt: skip
    """Read scores and labels for a setting; None if any of them is invalid."""
    if prob.ndim == 1 and row.column is None:
        prob = two_columns(prob, logits)
    if prob.ndim == 1:
        return read_binary(prob, label, row.column == 1, logits)
    if row.is_top:
        return read_top_label(prob, label, logits, tolerance, run)
    found = read_classes(prob, label, logits, tolerance, run)
    if found is None or row.column is None:
        return found
    prob, label = found
    return prob[:, row.column].astype(np.float64), (label == row.column).view(np.uint8)


def plain_problem(p: NDArray[Any], label: NDArray[Any]) -> Problems | None:
    """Read plain arrays as one problem; None if they are not valid."""
    if (found := read_plain(p, label)) is None:
        return None
    row = find_setting("auto", p.shape)
    return Problems(row, *found, 1 / p.shape[1] if row.is_top else 0.0, 1.0)


def read_plain(p: NDArray[Any], label: NDArray[Any]) -> Found:
    """Read the scores and outcomes of plain arrays, or of the top label of vectors."""
    if p.ndim > 1:
        return read_top_label(p, label, False, TOLERANCE, map)
    return read_binary(p, label, True, False)


def read_binary(p: NDArray[Any], label: NDArray[Any], positive: bool, logits: bool) -> Found:
    """Read scores and outcomes from the probability of the positive class."""
    label = label.view(np.uint8) if label.dtype == np.bool_ else label
    label = arrays.contiguous(label, np.uint8 if label.dtype == np.uint8 else np.int64)
    if not kernels.reading.are_hits(label):
        return None
    hit = label.astype(np.uint8)
    if logits:
        if not np.less(p, np.inf).all():
            return None
        score = (p if positive else -p).astype(np.float64)
        kernels.arithmetic.sigmoid(score, score)
    else:
        score = p if positive else 1 - p.astype(np.float64, copy=False)
        score = arrays.contiguous(score, np.float64)
        if not kernels.reading.are_scores(score):
            return None
    return score, hit if positive else hit ^ 1


def read_classes(
    prob: NDArray[Any], label: NDArray[Any], logits: bool, tolerance: float, run: Map
) -> Found:
    """Read class vectors and classes."""
    if logits and not np.isfinite(prob.max(axis=1)).all():
        return None
    prob, label = class_vectors(prob, logits), arrays.contiguous(label, np.int64)
    most, step = math.inf if logits else tolerance, max(1, SLICE // prob.shape[1])

    def one(start: int) -> bool:
        part = slice(start, start + step)
        return kernels.reading.are_classes(prob[part], label[part], most)

    return (prob, label) if all(run(one, range(0, label.size, step))) else None


def read_top_label(
    prob: NDArray[Any], label: NDArray[Any], logits: bool, tolerance: float, run: Map, *squares: F64
) -> Found:
    """Read the largest probability, and whether its class is the label.

    Of logits, the class of the largest is taken: their softmax may have ties where they have none.
    `squares` (n,), if given, is filled with squared distances from the true class.
    """
    found: Any = np.empty(label.size), np.empty(label.size, np.uint8), *squares
    step = max(1, SLICE // prob.shape[1])

    def one(start: int) -> bool:
        part = slice(start, start + step)
        p, y = native_scores(prob[part]), arrays.contiguous(label[part], np.int64)
        score, *rest = (x[part] for x in found)
        good: bool = kernels.reading.read_top_label(p, y, logits, tolerance, score, *rest)
        if good and logits:
            score[:] = softmax(p, score, 1)[:, 0]
        return good

    return found[:2] if all(run(one, range(0, label.size, step))) else None


def native_scores(array: NDArray[Any]) -> NDArray[Any]:
    """Convert probabilities to one of the two types that kernels are compiled for."""
    return arrays.contiguous(array, np.float32 if array.dtype == np.float32 else np.float64)


def class_vectors(prob: NDArray[Any], logits: bool) -> NDArray[Any]:
    """Return class vectors as kernels take them, of logits their softmax."""
    prob = native_scores(prob)
    return softmax(prob, prob.max(axis=1).astype(np.float64), prob.shape[1]) if logits else prob


def two_columns(p: NDArray[Any], logits: bool) -> F64:
    """Build class vectors of two classes from the positive one alone."""
    p = p.astype(np.float64, copy=False)
    return np.column_stack([np.zeros(p.size) if logits else 1 - p, p])


def softmax(z: NDArray[Any], top: F64, columns: int) -> F64:
    """Compute the softmax of rows of logits whose largest are `top`.

    `columns` is 1 for the softmax of the largest alone, or the number of classes.
    """
    p = np.empty((len(z), columns))
    with np.errstate(over="ignore"):  # -inf, beyond float64, is a probability of 0
        kernels.arithmetic.softmax(z, top, p)
    return p
