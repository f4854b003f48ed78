"""The largest entry of each row, and whether it stands at the label."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit

__all__ = ["top_label"]

# A running maximum waits for the comparison before it. In long rows, many of them side by side
# wait less and vectorise: 50 000 x 1000 float32 take 14 ms rather than 60.
LANES = 64
LONG = 2 * LANES


@jit
def hit_in_short_row(row: NDArray[Any], label: int) -> tuple[Any, bool]:
    """Largest entry, and whether its first column is the label; no branch that could be
    mispredicted."""
    top = row[0]
    column = 0
    for k in range(1, row.size):
        larger = row[k] > top
        top = row[k] if larger else top
        column = k if larger else column
    return top, column == label


@jit
def hit_in_long_row(row: NDArray[Any], label: int, lanes: NDArray[Any]) -> tuple[Any, bool]:
    """Largest entry, and whether its first column is the label; `lanes` is work space."""
    lanes[:] = row[:LANES]
    whole = row.size // LANES * LANES
    for k in range(LANES, whole, LANES):
        for lane in range(LANES):
            x = row[k + lane]
            lanes[lane] = x if x > lanes[lane] else lanes[lane]
    top = lanes[0]
    for lane in range(1, LANES):
        top = lanes[lane] if lanes[lane] > top else top
    for k in range(whole, row.size):
        top = row[k] if row[k] > top else top
    if row[label] < top:
        return top, False
    first = True
    for k in range(label):
        first &= row[k] < top
    return top, first


@jit
def top_label(
    key: NDArray[Any], label: NDArray[np.int64], top: NDArray[np.float64], hit: NDArray[np.uint8]
) -> None:
    """Fill `top` with the largest entry of each row of `key` (n, K), float64 or float32 without
    nan, and `hit` with whether the label is its column; the first maximum wins."""
    lanes = np.empty(LANES, key.dtype)
    for i in range(key.shape[0]):
        if key.shape[1] < LONG:
            x, is_hit = hit_in_short_row(key[i], label[i])
        else:
            x, is_hit = hit_in_long_row(key[i], label[i], lanes)
        top[i] = x
        hit[i] = is_hit
