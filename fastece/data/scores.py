"""Scores and outcomes of a setting, from arrays of probabilities or logits and class indices.

Values are checked while they are read: a function returns None if one of them is not good, and
`fastece.data.reading` then finds out which one, and words the message.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import ROW_SUM_TOLERANCE, contiguous, row_slices
from fastece.data.samples import ALL
from fastece.data.table import Arrays, Setting
from fastece.data.threads import Map
from fastece.kernels.types import F64

# The types that kernels read, in native order of bytes: float32 only where the largest entries of
# rows are read, which converted entries would make 1.3 to 1.6 times as slow. Arrays that numpy
# makes share these objects, so that `is` finds them, in a tenth of the time of a comparison.
FLOAT64 = np.dtype(np.float64)
FLOAT32 = np.dtype(np.float32)
INT64 = np.dtype(np.int64)
UINT8 = np.dtype(np.uint8)
LARGEST = float(np.finfo(np.float64).max)
# Sums in another order are rounded differently, so the quick check leaves rows whose sum is this
# part of the tolerance away from 1 to the slow one, which alone decides.
NEARLY = 0.9
# How far sums of rows of float64 and float32 probabilities may be from 1 in the quick check.
QUICK_TOLERANCE = NEARLY * ROW_SUM_TOLERANCE
# Entries of class vectors that are read at once: some milliseconds of one thread.
MAX_ENTRIES_READ = 2**20
# Rows whose scores and outcomes, 9 bytes each, are kept: 38 MB. More are only checked, and read
# again part by part whenever they are needed.
MAX_ROWS_KEPT = 2**22


def are_native(label: NDArray[Any], prob: NDArray[Any]) -> bool:
    """Decide whether arrays are float64 and int64 as kernels take them."""
    is_native = prob.dtype is FLOAT64 and label.dtype is INT64
    return is_native and prob.flags.carray and label.flags.carray


def read_arrays(
    setting: Setting, prob: NDArray[Any], label: NDArray[Any], from_logits: bool, tolerance: float,
    run: Map,
) -> Arrays | None:  # fmt: skip
    """Read or, if there are many, only check all rows; None if a value is invalid."""
    if label.size <= MAX_ROWS_KEPT:
        return read_rows(setting, prob, label, from_logits, tolerance, run)
    step = max(1, MAX_ENTRIES_READ // 8 * len(prob) // prob.size)

    def is_good(start: int) -> bool:
        rows = slice(start, start + step)
        return read_rows(setting, prob[rows], label[rows], from_logits, tolerance) is not None

    return (prob, label) if all(run(is_good, range(0, label.size, step))) else None


def read_rows(
    setting: Setting, prob: NDArray[Any], label: NDArray[Any], from_logits: bool = False,
    tolerance: float = math.inf, run: Map = map,
) -> Arrays | None:  # fmt: skip
    """Read scores and outcomes, or class vectors; None if a value is invalid.

    Parameters
    ----------
    setting : Setting
    prob : (n,) or (n, K) array of float
        Probabilities, or logits.
    label : (n,) array of int or bool
        Classes.
    from_logits : bool
    tolerance : float
        How far sums of class vectors may be from 1.
    run : callable
        `map`, or the `map` of a pool of threads.
    """
    if prob.ndim == 1:
        if setting.column is not None:
            return read_binary(prob, label, setting.column == 1, from_logits)
        prob = two_columns(prob, from_logits)
    if setting.is_top:
        return read_top_label(prob, label, from_logits, tolerance, run)
    arrays = read_classes(prob, label, from_logits, tolerance, run)
    if arrays is None or setting.column is None:
        return arrays
    prob, label = arrays
    return prob[:, setting.column].astype(np.float64), (label == setting.column).view(np.uint8)


def read_binary(
    prob: NDArray[Any], label: NDArray[Any], is_positive: bool, from_logits: bool
) -> Arrays | None:
    """Read scores and outcomes of a class from the probability of the positive one."""
    label = as_integers(label)
    is_plain = is_positive and not from_logits
    if is_plain and label.dtype is INT64:
        score = as_scores(prob)
        hit = np.empty(label.size, np.uint8)
        return (score, hit) if kernels.reading.read_binary(score, label, hit) else None
    if not are_hits(label):
        return None
    hit = label.astype(np.uint8, copy=False)
    if is_plain:
        score = as_scores(prob)
        if not kernels.reading.are_scores(score):
            return None
    elif from_logits:
        if not np.less(prob, np.inf).all():
            return None
        score = (prob if is_positive else -prob).astype(np.float64)
        kernels.arithmetic.sigmoid(score, score)
    else:
        score = as_scores(1 - prob.astype(np.float64, copy=False))
        if not kernels.reading.are_scores(score):
            return None
    return score, hit if is_positive else hit ^ 1


def are_hits(label: NDArray[Any]) -> bool:
    """Decide whether integers, of which there are some, are all 0 or 1."""
    bits = np.bitwise_or.reduce(label)
    return bool(0 <= bits <= 1)


def as_integers(label: NDArray[Any]) -> NDArray[Any]:
    """Convert class indices to one of the two types that kernels are compiled for."""
    if label.dtype.kind == "b":
        label = label.view(np.uint8)
    if (label.dtype is INT64 or label.dtype is UINT8) and label.flags.carray:
        return label
    return contiguous(label, np.uint8 if label.dtype == np.uint8 else np.int64)


def as_scores(prob: NDArray[Any]) -> F64:
    """Convert numbers to float64, as kernels take them."""
    if prob.dtype is FLOAT64 and prob.flags.carray:
        return prob
    return contiguous(prob, np.float64)


def read_classes(
    prob: NDArray[Any], label: NDArray[Any], from_logits: bool, tolerance: float, run: Map
) -> Arrays | None:
    """Read class vectors and classes; None if a value is invalid."""
    if from_logits:
        if not np.isfinite(prob.max(axis=1)).all():
            return None
        tolerance = math.inf
    prob = class_vectors(prob, from_logits)
    label = contiguous(label, np.int64)
    if prob.size <= MAX_ENTRIES_READ:
        prob = as_scores(prob)
        return (prob, label) if kernels.reading.are_classes(prob, label, tolerance) else None
    step = max(1, MAX_ENTRIES_READ // prob.shape[1])

    def are_good(start: int) -> bool:
        part = slice(start, start + step)
        return all(
            kernels.reading.are_classes(vectors, label[part][rows], tolerance)
            for rows, vectors in float64_parts(prob[part])
        )

    return (prob, label) if all(run(are_good, range(0, label.size, step))) else None


def read_top_label(
    prob: NDArray[Any], label: NDArray[Any], from_logits: bool, tolerance: float, run: Map,
    *distances: F64,
) -> Arrays | None:  # fmt: skip
    """Read the largest probability, and whether its class is the label.

    The class of the largest logit is the top label, although its softmax may equal the softmax of
    other logits. `distances` (n,), if given, is filled with squared distances of the class vectors
    from their classes. The return value is None if a value is invalid.
    """
    n, n_classes = prob.shape
    arrays: Any = np.empty(n), np.empty(n, np.uint8), *distances
    if prob.size <= MAX_ENTRIES_READ and not from_logits:
        vectors = native_floats(prob)
        classes = contiguous(label, np.int64)
        is_good = kernels.reading.read_top_label(vectors, classes, 0.0, 1.0, tolerance, *arrays)
        return arrays[:2] if is_good else None
    bounds = (-math.inf, LARGEST, math.inf) if from_logits else (0.0, 1.0, tolerance)
    step = max(1, MAX_ENTRIES_READ // n_classes)

    def read_part(start: int) -> bool:
        rows = slice(start, start + step)
        vectors = native_floats(prob[rows])
        classes = contiguous(label[rows], np.int64)
        score, *others = (array[rows] for array in arrays)
        is_good = kernels.reading.read_top_label(vectors, classes, *bounds, score, *others)
        if is_good and from_logits:
            score[:] = softmax(vectors, score, 1)[:, 0]
        return bool(is_good)

    return arrays[:2] if all(run(read_part, range(0, n, step))) else None


def float64_parts(prob: NDArray[Any]) -> Iterator[tuple[slice, F64]]:
    """Yield the rows of a matrix as float64, with their places.

    Other numbers are converted in parts that fit the cache.
    """
    if prob.dtype is FLOAT64:
        yield ALL, prob
        return
    for start, part in row_slices(prob):
        yield slice(start, start + len(part)), part.astype(np.float64)


def native_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Convert probabilities to one of the two types that are kept."""
    if (array.dtype is FLOAT64 or array.dtype is FLOAT32) and array.flags.carray:
        return array
    return contiguous(array, np.float32 if array.dtype == np.float32 else np.float64)


def class_vectors(prob: NDArray[Any], from_logits: bool) -> NDArray[Any]:
    """Return class vectors as they are kept; logits are replaced by their softmax."""
    prob = native_floats(prob)
    if not from_logits:
        return prob
    return softmax(prob, prob.max(axis=1).astype(np.float64), prob.shape[1])


def two_columns(prob: NDArray[Any], from_logits: bool) -> F64:
    """Build class vectors of two classes from the positive one alone."""
    prob = prob.astype(np.float64, copy=False)
    return np.column_stack([np.zeros(prob.size) if from_logits else 1 - prob, prob])


def softmax(z: NDArray[Any], top: F64, columns: int) -> F64:
    """Compute the softmax of rows of logits whose largest are `top`.

    `columns` is 1 for the softmax of the largest alone, or the number of classes.
    """
    p = np.empty((len(z), columns))
    with np.errstate(over="ignore"):  # -inf, beyond float64, is a probability of 0
        for rows, logits in float64_parts(z):
            kernels.arithmetic.softmax(logits, top[rows], p[rows])
    return p
