"""Sums over all pairs of rows with a Laplacian kernel, in one pass over the sorted rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.shared import zero
from fastece.typing import F64


@jit
def pair_sums(
    c: NDArray[Any], gap: F64, weight: F64, decay: F64, loss: F64, out: F64, total: F64
) -> None:
    """``sum_ij r_i r_j exp(-|s_i - s_j| / width)`` of each replicate, in `out` (G, W), with ``r_i =
    c_i gap_i``, and in `total` the sum of ``c_i weight_i``, empty where it is not asked for.

    With the sum ``T_i = r_i + e_i T_{i-1}`` of the kernels of all rows up to i, at row i, where e_i
    is the decay from the row before, ``r_i`` is ``T_i - e_i T_{i-1}``, and the sum is
    ``sum_i T_i**2 - (e_i T_{i-1})**2 = sum_i T_i**2 (1 - e_{i+1}**2)``: no term is negative, and
    nothing cancels. Multiplicities c are (G, n, W), and the rest is in the order of the scores.
    """
    lanes = c.shape[2]
    level = np.empty(lanes)
    for g in range(c.shape[0]):
        zero(level)
        sums = out[g]
        zero(sums)
        for r in range(lanes if weight.size > 0 else 0):
            total[g, r] = 0.0
        for i in range(gap.size):
            row, x, left, lost = c[g, i], gap[i], decay[i], loss[i]
            for r in range(lanes):
                t = level[r] + x * row[r]
                sums[r] += t * t * lost
                level[r] = t * left
            if weight.size > 0:
                v = weight[i]
                for r in range(lanes):
                    total[g, r] += v * row[r]
