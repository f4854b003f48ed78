"""Reading and checking the caller's rows as scores and hits, in one pass.

Each kernel returns whether all is good, not where it is wrong: whoever calls it then looks again,
slowly, to name the first offending entry. Nothing is read through a label that is not checked yet.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.typing import F64, I64, U8

# A running maximum waits for the comparison before it. In long rows, many of them side by side
# wait less and vectorise: 50 000 x 1000 float32 take 18 ms rather than 42.
LANES = 32
LONG = 3 * LANES

LARGEST = np.finfo(np.float64).max
# How often 1 is counted in sums of squared distances, which are up to 2, and how often the last bit
# of a number in its second word.
DISTANCE_UNIT, DETAIL = 2.0**29, 2.0**32


@jit
def are_scores(score: NDArray[Any]) -> bool:
    """Return whether every number is in [0, 1], as nan is not (0.25 ns each)."""
    outside = np.int64(0)
    for i in range(score.size):
        x = score[i]
        outside |= np.int64(0) if (x >= 0.0) & (x <= 1.0) else np.int64(1)
    return bool(outside == 0)


@jit
def read_hits(label: NDArray[Any], hit: U8) -> bool:
    """Copy labels 0 and 1, int64 or uint8, to `hit`; return False if there is another."""
    bits = np.int64(0)
    for i in range(label.size):
        bits |= np.int64(label[i])
        hit[i] = np.uint8(label[i])
    return bool((bits >= 0) & (bits <= 1))


@jit
def short_row(row: NDArray[Any]) -> tuple[Any, int, Any, Any]:
    """Return largest entry, its first column, smallest entry and sum of a row.

    It has no branch that could be mispredicted.
    """
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
    """Return largest entry, smallest entry and sum of a long row.

    It has at least `LANES` entries; `lanes` (3, LANES) is work space.
    """
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
def add_distances(prob: NDArray[Any], label: I64, weight: F64, words: I64) -> None:
    """Add squared distances of class vectors from one-hot classes to two words.

    The sum is ``w sum_k (p_k - [k = y])**2``, of class vectors (n, K), float64 or float32; empty
    weights are 1.

    There are four sums a row, since a single one waits for every addition.
    """
    whole = prob.shape[1] // 4 * 4
    for i in range(label.size):
        row = prob[i]
        a = b = c = d = 0.0
        for k in range(0, whole, 4):
            p, q = np.float64(row[k]), np.float64(row[k + 1])
            r, s = np.float64(row[k + 2]), np.float64(row[k + 3])
            a, b, c, d = a + p * p, b + q * q, c + r * r, d + s * s
        for k in range(whole, row.size):
            a += np.float64(row[k]) * np.float64(row[k])
        x = (((a + b) + (c + d)) - 2.0 * np.float64(row[label[i]]) + 1.0) * DISTANCE_UNIT
        x = x * weight[i] if weight.size else x
        high = np.int64(x)
        words[0] += high
        words[1] += np.int64((x - np.float64(high)) * DETAIL)


@jit
def read_top_label(
    prob: NDArray[Any], label: I64, logits: bool, tolerance: float, score: F64, hit: U8
) -> bool:
    """Read scores and hits of top labels from rows (n, K); False if one is bad.

    `score` is filled with the largest entry of each row, and `hit` with whether the label is its
    column, the first if there are more.

    Returned is False if an entry is not in [0, 1], a row does not sum to 1 within the tolerance, or
    a label is not from 0 to K - 1. Of `logits`, entries are to be less than infinite, and a row not
    all -inf.
    """
    lanes = np.empty((3, LANES), prob.dtype)
    n_classes = prob.shape[1]
    good = True
    for i in range(prob.shape[0]):
        y = label[i]
        known = (y >= 0) & (y < n_classes)
        if n_classes < LONG:
            top, column, low, total = short_row(prob[i])
            is_hit = column == y
        else:
            top, low, total = long_row(prob[i], lanes)
            is_hit = known and prob[i, y] == top
            if is_hit:
                for k in range(y):
                    is_hit &= prob[i, k] < top
        # a nan is in no comparison, but in the sum
        if logits:
            good &= (top >= -LARGEST) & (top <= LARGEST) & (total == total)
        else:
            good &= (low >= 0) & (top <= 1) & (abs(total - 1) <= tolerance)
        good &= known
        score[i] = top
        hit[i] = is_hit
    return good
