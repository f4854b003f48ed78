"""Checking and converting a slice of the caller's rows, in one pass over them.

Each kernel says whether the slice is clean, not what is wrong with it: whoever calls it then looks
again, slowly, to name the first offending entry. Nothing is read through a label that is not
checked yet.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit

__all__ = ["read_binary", "read_classes", "read_top_label"]

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]

# A running maximum waits for the comparison before it. In long rows, many of them side by side
# wait less and vectorise: 50 000 x 1000 float32 take 14 ms rather than 42.
LANES = 64
LONG = 2 * LANES


@jit
def read_binary(prob: NDArray[Any], label: NDArray[Any], score: F64, hit: U8) -> bool:
    """Copy probabilities (n,) and labels (n,); False if a probability is not in [0, 1] or a label
    not 0 or 1."""
    outside = np.int64(0)
    bits = np.int64(0)
    for i in range(prob.size):
        x = np.float64(prob[i])
        outside |= np.int64(0) if (x >= 0.0) & (x <= 1.0) else np.int64(1)
        score[i] = x
        bits |= np.int64(label[i])
        hit[i] = np.uint8(label[i])
    return bool((outside == 0) & (bits >= 0) & (bits <= 1))


@jit
def read_classes(
    prob: NDArray[Any], label: NDArray[Any], tolerance: float, score: F64, hit: U8
) -> bool:
    """Copy probabilities (n, K), and labels (n,) as 1 in their column; False if a probability is
    not in [0, 1], a row does not sum to 1 within the tolerance, or a label is not 0 to K - 1."""
    outside = np.int64(0)
    for i in range(prob.shape[0]):
        total = 0.0
        for k in range(prob.shape[1]):
            x = np.float64(prob[i, k])
            outside |= np.int64(0) if (x >= 0.0) & (x <= 1.0) else np.int64(1)
            score[i, k] = x
            total += x
            hit[i, k] = 0
        y = np.int64(label[i])
        known = (y >= 0) & (y < prob.shape[1])
        outside |= np.int64(0) if known & (abs(total - 1.0) <= tolerance) else np.int64(1)
        hit[i, y if known else 0] = 1
    return bool(outside == 0)


@jit
def short_row(row: NDArray[Any], label: Any) -> tuple[Any, bool, Any, Any]:
    """Largest entry, whether its first column is the label, smallest entry and sum; no branch that
    could be mispredicted."""
    top = row[0]
    low = row[0]
    total = row[0]
    column = 0
    for k in range(1, row.size):
        x = row[k]
        larger = x > top
        top = x if larger else top
        column = k if larger else column
        low = x if x < low else low
        total += x
    return top, column == label, low, total


@jit
def long_row(row: NDArray[Any], label: Any, lanes: NDArray[Any]) -> tuple[Any, bool, Any, Any]:
    """`short_row` for at least `LANES` entries; `lanes` (3, LANES) is work space."""
    tops, lows, totals = lanes[0], lanes[1], lanes[2]
    for lane in range(LANES):
        tops[lane] = lows[lane] = totals[lane] = row[lane]
    whole = row.size // LANES * LANES
    for k in range(LANES, whole, LANES):
        for lane in range(LANES):
            x = row[k + lane]
            tops[lane] = x if x > tops[lane] else tops[lane]
            lows[lane] = x if x < lows[lane] else lows[lane]
            totals[lane] += x
    top = tops[0]
    low = lows[0]
    total = totals[0]
    for lane in range(1, LANES):
        top = tops[lane] if tops[lane] > top else top
        low = lows[lane] if lows[lane] < low else low
        total += totals[lane]
    for k in range(whole, row.size):
        x = row[k]
        top = x if x > top else top
        low = x if x < low else low
        total += x
    first = (label >= 0) & (label < row.size)
    if first:
        first = row[label] == top
    if first:
        for k in range(label):
            first &= row[k] < top
    return top, first, low, total


@jit
def read_top_label(
    prob: NDArray[Any], label: NDArray[Any], tolerance: float, score: F64, hit: U8
) -> bool:
    """Fill `score` with the largest probability of each row (n, K), and `hit` with whether the
    label is its column, the first if there are more; False as `read_classes`."""
    lanes = np.empty((3, LANES), prob.dtype)
    n_classes = prob.shape[1]
    clean = True
    for i in range(prob.shape[0]):
        y = np.int64(label[i])
        if n_classes < LONG:
            top, is_hit, low, total = short_row(prob[i], y)
        else:
            top, is_hit, low, total = long_row(prob[i], y, lanes)
        # a nan is in no comparison, but in the sum
        clean &= (low >= 0) & (top <= 1) & (abs(total - 1) <= tolerance)
        clean &= (y >= 0) & (y < n_classes)
        score[i] = top
        hit[i] = is_hit
    return clean
