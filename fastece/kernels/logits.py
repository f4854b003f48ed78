"""Probabilities of logits: sigmoid and softmax, in the same bits on every machine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.binning import ROUND
from fastece.kernels.shared import lane_sum
from fastece.typing import F64, I64

# Rows are taken in blocks of about so many numbers, which stay in the first-level cache.
BLOCK = 1024
# Below, a float64 loses digits and then becomes 0; such a share of a softmax is 0 at once.
LOWEST_EXPONENT = -708.0
LOG2_E = 1.4426950408889634
# log(2) in two parts: the first has 24 bits, so that its product with an exponent is exact.
LOG_2 = 0.693147182464599609375
LOG_2_REST = -1.904654299957768e-09


@jit
def exponential(x: F64, work: F64) -> None:
    """Replace x <= 0 by exp(x), to 1e-15; `work` has at least its size.

    exp(x) = 2**k exp(r) with abs(r) <= log(2) / 2. The polynomial for (exp(r) - 1 - r) / r**2
    interpolates at ten Chebyshev nodes: its error is 1.6e-17, and it vectorises, 1.4 ns a
    number; np.exp in a kernel takes 4.3.
    """
    # Three loops: in one, operations that wait for one another fill the processor's queue.
    for i in range(x.size):
        normal = x[i] >= LOWEST_EXPONENT
        z = x[i] if normal else LOWEST_EXPONENT
        shifted = z * LOG2_E + ROUND  # k, in the last bits
        k = shifted - ROUND
        work[i] = shifted if normal else ROUND - 1023.0  # makes 1.0 a 0.0
        x[i] = (z - k * LOG_2) - k * LOG_2_REST if normal else 0.0
    for i in range(x.size):
        r = x[i]
        r2 = r * r
        r4 = r2 * r2
        p01 = 5.0e-01 + 1.6666666666666669e-01 * r
        p23 = 4.166666666662413e-02 + 8.333333333330062e-03 * r
        p45 = 1.3888888917213717e-03 + 1.9841269863053618e-04 * r
        p67 = 2.4801521295954376e-05 + 2.7557268459997064e-06 * r
        p89 = 2.7620088445409746e-07 + 2.510038549551032e-08 * r
        p = (p01 + p23 * r2) + ((p45 + p67 * r2) + p89 * r4) * r4
        x[i] = (p * r2 + r) + 1.0
    powers = work.view(np.int64)
    bits = x.view(np.int64)
    for i in range(x.size):
        bits[i] += powers[i] << 52


@jit
def exponentials(z: NDArray[Any], top: F64, inverse: float, e: F64, work: F64) -> None:
    """Fill `e` (n K,) with ``exp(inverse * (z - top))`` of rows of logits (n, K)."""
    n_classes = z.shape[1]
    for i in range(z.shape[0]):
        row, largest, part = z[i], top[i], e[i * n_classes : (i + 1) * n_classes]
        for k in range(n_classes):
            part[k] = (np.float64(row[k]) - largest) * inverse
    exponential(e, work)


@jit
def sigmoid(z: NDArray[Any], p: F64) -> None:
    """Compute ``1 / (1 + exp(-z))`` of logits, without overflow on either side."""
    work, e_block = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, z.size, BLOCK):
        part = z[start : start + BLOCK]
        e, score = e_block[: part.size], p[start : start + BLOCK]
        for i in range(part.size):
            e[i] = -abs(np.float64(part[i]))
        exponential(e, work)
        for i in range(part.size):
            e[i] = (1.0 if part[i] >= 0.0 else e[i]) / (1.0 + e[i])
        for i in range(part.size):  # apart, since z and p may be the same
            score[i] = e[i]


@jit
def softmax(z: NDArray[Any], top: F64, p: F64) -> None:
    """Compute the softmax of rows of logits (n, K) whose largest are `top`.

    It is that of every class in `p` (n, K), or in `p` (n, 1) of the largest alone, 1 over the sum
    of exp(z - top).
    """
    n_classes = z.shape[1]
    rows = max(1, BLOCK // n_classes)
    work, e_block = np.empty(rows * n_classes), np.empty(rows * n_classes)
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        e = e_block[: part.size]
        exponentials(part, top[start : start + rows], 1.0, e, work)
        for i in range(part.shape[0]):
            row = e[i * n_classes : (i + 1) * n_classes]
            total = lane_sum(row)
            share = p[start + i]
            if share.size < n_classes:
                share[0] = 1.0 / total
            else:
                for k in range(n_classes):
                    share[k] = row[k] / total


@jit
def temperature_sums(
    z: NDArray[Any], top: F64, label: I64, weight: F64, inverse: float, sums: F64
) -> None:
    """Add log loss and derivatives of ``softmax(inverse * z)`` to `sums`.

    Rows of logits (n, K) have the largest `top`. Derivatives are by ``log(inverse)``, and all is
    times the weights.

    With d = inverse (z - top): ``log sum_k exp(d_k) - d_y``, the first derivative ``m - d_y`` with
    m the mean of d under the softmax, and the variance of d, which is the second less the first.
    """
    n_classes = z.shape[1]
    rows = max(1, BLOCK // n_classes)
    work, e_block = np.empty(rows * n_classes), np.empty(rows * n_classes)
    d = np.empty(n_classes)
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        e_rows = e_block[: part.size]
        exponentials(part, top[start : start + rows], inverse, e_rows, work)
        for i in range(part.shape[0]):
            row, largest = part[i], top[start + i]
            e = e_rows[i * n_classes : (i + 1) * n_classes]
            total = lane_sum(e)
            for k in range(n_classes):
                d[k] = (np.float64(row[k]) - largest) * inverse
                e[k] *= d[k]
            mean = lane_sum(e) / total
            for k in range(n_classes):
                e[k] *= d[k]
            variance = lane_sum(e) / total - mean * mean
            true, w = d[label[start + i]], weight[start + i]
            sums[0] += w * (np.log(total) - true)
            sums[1] += w * (mean - true)
            sums[2] += w * variance
