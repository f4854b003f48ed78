"""Reading the caller's rows as scores and hits, and checking them, in one pass.

Each kernel says whether all is good, not what is wrong: whoever calls it then looks again, slowly,
to name the first offending entry. Nothing is read through a label that is not checked yet.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.typing import F64, I64, U8

# A running maximum waits for the comparison before it. In long rows, many of them side by side
# wait less and vectorise: 50 000 x 1000 float32 take 18 ms rather than 42.
LANES = 64
LONG = 2 * LANES

LARGEST = np.finfo(np.float64).max
# Entries that are looked at twice, once each and once in the sum of their row.
BLOCK = 4096


@jit
def row_sum(row: NDArray[Any]) -> Any:
    """Sum of a row. A loop over slices compiles to half the time of one over positions."""
    total = row[0]
    for k in range(1, row.size):
        total += row[k]
    return total


@jit
def are_scores(score: NDArray[Any]) -> bool:
    """Whether every number is in [0, 1], as nan is not (0.25 ns each)."""
    outside = np.int64(0)
    for i in range(score.size):
        x = score[i]
        outside |= np.int64(0) if (x >= 0.0) & (x <= 1.0) else np.int64(1)
    return bool(outside == 0)


@jit
def read_hits(label: NDArray[Any], hit: U8) -> bool:
    """Copy labels 0 and 1, int64 or uint8; False if there is another."""
    bits = np.int64(0)
    for i in range(label.size):
        bits |= np.int64(label[i])
        hit[i] = np.uint8(label[i])
    return bool((bits >= 0) & (bits <= 1))


@jit
def are_classes(prob: NDArray[Any], label: I64, tolerance: float) -> bool:
    """Whether every probability (n, K) is in [0, 1], every row sums to 1 within the tolerance, and
    every label (n,) is from 0 to K - 1."""
    n, n_classes = prob.shape
    rows = max(1, BLOCK // n_classes)
    good = True
    for start in range(0, n, rows):  # so that sums find the entries in the first-level cache
        part = prob[start : start + rows]
        good &= are_scores(part.reshape(part.size))
        for i in range(part.shape[0]):
            y = label[start + i]
            good &= (y >= 0) & (y < n_classes) & (abs(row_sum(part[i]) - 1) <= tolerance)
    return good


@jit
def short_row(row: NDArray[Any]) -> tuple[Any, int, Any, Any]:
    """Largest entry, its first column, smallest entry and sum; no branch that could be
    mispredicted."""
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
    return top, column, low, total


@jit
def long_row(row: NDArray[Any], lanes: NDArray[Any]) -> tuple[Any, Any, Any]:
    """Largest entry, smallest entry and sum of at least `LANES` entries; `lanes` (3, LANES) is work
    space."""
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
    return top, low, total


@jit
def is_first(row: NDArray[Any], column: Any, top: Any) -> bool:
    """Whether `top` is in this column, and in none before."""
    first = row[column] == top
    if first:
        for k in range(column):
            first &= row[k] < top
    return bool(first)


@jit
def read_top_label(
    prob: NDArray[Any],
    label: NDArray[Any],
    logits: bool,
    tolerance: float,
    score: F64,
    hit: U8,
) -> bool:
    """Fill `score` with the largest entry of each row (n, K), and `hit` with whether the label is
    its column, the first if there are more; False as `are_classes`.

    With `logits`, entries are to be less than infinite, and a row not all -inf.
    """
    lanes = np.empty((3, LANES), prob.dtype)
    n_classes = prob.shape[1]
    good = True
    for i in range(prob.shape[0]):
        y = np.int64(label[i])
        known = (y >= 0) & (y < n_classes)
        if n_classes < LONG:
            top, column, low, total = short_row(prob[i])
            is_hit = column == y
        else:
            top, low, total = long_row(prob[i], lanes)
            is_hit = is_first(prob[i], y, top) if known else False
        # a nan is in no comparison, but in the sum
        if logits:
            good &= (top >= -LARGEST) & (top <= LARGEST) & (total == total)
        else:
            good &= (low >= 0) & (top <= 1) & (abs(total - 1) <= tolerance)
        good &= known
        score[i] = top
        hit[i] = is_hit
    return good
