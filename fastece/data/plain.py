"""Plain numpy arrays as problems, without conversions: what most calls pass.

`plain_problems` returns the same problems as `fastece.data.reading.read_problems`, to the last bit:
both read values by the same kernels. It leaves out the conversions, which would take longer
than `ece` of 100 rows. Anything that is not plain, or not good, is left to `read_problems`, which
has the conversions and the messages.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import SLICE, contiguous
from fastece.data.doubts import may_contradict
from fastece.data.samples import Vectors
from fastece.data.scores import (
    MAX_ROWS_KEPT,
    QUICK_TOLERANCE,
    UINT8,
    are_native,
    native_floats,
    read_arrays,
    read_rows,
)
from fastece.data.separate import is_separate
from fastece.data.table import Arrays, RowTable, class_count, find_setting
from fastece.data.threads import Map
from fastece.kernels.types import F64


def are_plain(y: Any, p: Any) -> bool:
    """Decide whether labels and probabilities are arrays that need no conversion."""
    return (
        type(y) is type(p) is np.ndarray
        and p.dtype.char in "df"
        and y.dtype.kind in "iub"
        and p.ndim in (1, 2)
        and p.shape[1:] != (1,)
        and p.size > 0
        and y.shape == p.shape[:1]
    )


def plain_problems(
    y: NDArray[Any], p: NDArray[Any], setting: Any, sample_weight: Any, with_vectors: bool,
    run: Map,
) -> RowTable | None:  # fmt: skip
    """Read labels and probabilities that `are_plain`; None for a closer look."""
    if is_separate(setting):
        return None
    chosen = find_setting(setting, p.shape)
    if chosen.is_top and p.ndim == 1 and y.dtype.kind == "b":
        return None  # scores below 1/2 may be confidences of answers that were wrong
    weights = None
    if sample_weight is not None:
        weights = plain_weights(sample_weight, y.size)
        if weights is None:
            return None
    # To convert a few bytes is faster than to look at them by several functions.
    label = y.astype(np.int64) if y.dtype is UINT8 and y.size <= SLICE else y
    if chosen.column == p.ndim == 1 and y.size <= MAX_ROWS_KEPT and are_native(label, p):
        arrays = read_native(label, p)
    elif may_contradict(p, y, from_logits=False):
        return None
    else:
        arrays = read_arrays(chosen, p, y, False, QUICK_TOLERANCE, run)
    if arrays is None:
        return None
    n_classes = class_count(p.shape)
    scores, outcomes = arrays
    low = 1 / n_classes if chosen.is_top else 0.0
    problems = RowTable(chosen, scores, outcomes, low, 1.0, n_classes, weights)
    if with_vectors and p.ndim == 2 and isinstance(setting, str) and setting == "auto":
        problems.vectors = Vectors(native_floats(p), contiguous(y, np.int64))
    if y.size > MAX_ROWS_KEPT:
        problems.convert = partial(read_rows, chosen)
    return problems


def read_native(y: NDArray[Any], p: F64) -> Arrays | None:
    """Read scores and hits of a binary problem that `are_native`, by one kernel.

    The result is None if a value is invalid, or if labels may contradict the predictions.
    """
    hit = np.empty(y.size, np.uint8)
    return (p, hit) if kernels.reading.read_hits(p, y, hit) else None


def plain_weights(weights: Any, n: int) -> F64 | None:
    """Return float64 weights (n,) that are all above 0 and finite; None for others."""
    if type(weights) is not np.ndarray or weights.dtype.char != "d" or weights.shape != (n,):
        return None
    weights = contiguous(weights, np.float64)
    low, high = kernels.reading.extremes(weights)
    return weights if 0 < low <= high < math.inf else None
