"""Gaps between hits and scores, spread to the cells of a grid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.shared import ONE, zero
from fastece.typing import F64


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
