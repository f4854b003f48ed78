"""Gaps between hits and scores, spread to the cells of a grid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.shared import EIGHT, FOUR, ONE, THREE, TWO, zero
from fastece.typing import F64, U8


@jit
def spread_gaps(c: NDArray[Any], s: F64, gap: F64, sums: F64) -> None:
    """Add the gaps of rows, drawn c (n, W) times, up in even cells of [0, 1], in `sums` (W, C).

    A row is shared linearly by the two cells whose centres are around its score, and what goes
    beyond an end belongs to the cell there, its image.
    """
    lanes, count = np.uint64(sums.shape[0]), sums.shape[1]
    inside = np.empty((count + 2) * sums.shape[0])
    zero(inside)
    one = lanes == ONE
    for i in range(s.size):
        place = s[i] * count + 0.5
        cell = np.uint64(place)
        upper = (place - np.float64(cell)) * gap[i]
        lower, row = gap[i] - upper, c[i]
        if one:  # a third of the time of loops over one lane
            inside[cell] += lower * row[0]
            inside[cell + ONE] += upper * row[0]
            continue
        at = cell * lanes
        for r in range(np.uint64(0), lanes):
            inside[at + r] += lower * row[r]
            inside[at + lanes + r] += upper * row[r]
    for r in range(sums.shape[0]):
        for j in range(count):
            sums[r, j] = inside[(j + 1) * sums.shape[0] + r]
        sums[r, 0] += inside[r]
        sums[r, count - 1] += inside[(count + 1) * sums.shape[0] + r]


@jit
def interval_sums(s: F64, y: U8, sums: F64) -> None:
    """Rows and gaps in each of C even intervals of [0, 1], added up in `sums` (C, 2, 4), rows in
    turn in the two lanes: their number, the sum of their distances from the lower end, in
    intervals, and the same times the gap.

    Linear shares of the two ends are made of these, in half the time of adding up the shares.
    """
    count, last = np.float64(sums.shape[0]), np.float64(sums.shape[0] - 1)
    flat = sums.reshape(sums.size)
    zero(flat)
    for i in range(s.size):
        place = s[i] * count
        cell = min(np.float64(np.int64(place)), last)
        share, gap = place - cell, np.float64(y[i]) - s[i]
        at = np.uint64(cell) * EIGHT + (np.uint64(i) & ONE) * FOUR
        flat[at] += 1.0
        flat[at + ONE] += share
        flat[at + TWO] += gap
        flat[at + THREE] += share * gap
