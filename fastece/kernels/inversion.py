"""Errors of replicates under hypotheses about gaps of cells, for test inversion."""

import math

import numpy as np

from fastece.kernels._jit import jit
from fastece.kernels.shared import zero
from fastece.typing import F64, I32

# Replicates that are taken at once, so that the gaps of all cells of a problem stay in the cache.
LANES = 128


@jit
def add_norm(x: F64, norm: float, largest: F64, value: F64, out: F64) -> None:
    """Add the p-norm of each column of x (B, R) to `out` (R,).

    `largest` and `value` (R,) are work space. Of powers other than the square the largest entry is
    taken out first, since a large power of a small number is 0.
    """
    zero(value)
    if norm == 1.0:
        for b in range(x.shape[0]):
            for r in range(out.size):
                value[r] += abs(x[b, r])
    elif norm == 2.0:
        for b in range(x.shape[0]):
            for r in range(out.size):
                value[r] += x[b, r] * x[b, r]
        for r in range(out.size):
            value[r] = np.sqrt(value[r])
    else:
        zero(largest)
        for b in range(x.shape[0]):
            for r in range(out.size):
                largest[r] = max(largest[r], abs(x[b, r]))
        if norm < np.inf:
            for b in range(x.shape[0]):
                for r in range(out.size):
                    if x[b, r] != 0.0:
                        value[r] += (abs(x[b, r]) / largest[r]) ** norm
        for r in range(out.size):
            value[r] = largest[r] * (value[r] ** (1.0 / norm) if norm < np.inf else 1.0)
    for r in range(out.size):
        out[r] += value[r]


@jit
def rare_noise(gap: float, row: float, part: float, order: I32, out: F64) -> None:
    """Fill `out` (R,) with noise of a cell of extreme scores: quantiles of its law.

    In such a cell rows that should never hit, or never miss, now and then do.

    Parameters
    ----------
    gap : float
        The mean.
    row : float
        What a single row adds to a gap: the mean is that of a Poisson law of rows.
    part : float
        What deviations from the mean are multiplied by, as rows are not that many.
    order : (R,) int32 array
        A permutation: replicate ``order[j]`` has the quantile ``(j + 1/2) / R`` of the law.
    out : (R,) float64 array
        Overwritten.
    """
    mean = abs(gap) / row
    k = max(0.0, np.floor(mean - 10.0 * np.sqrt(mean)))
    p = math.exp(k * math.log(mean) - mean - math.lgamma(k + 1.0)) if mean > 0.0 else 1.0
    below = p
    step = part * (row if gap > 0.0 else -row)
    for j in range(order.size):
        while below < (j + 0.5) / order.size and p > 0.0:
            k += 1.0
            p *= mean / k
            below += p
        out[order[j]] = gap + step * (k - mean)


@jit
def statistics(
    gap: F64, noise: F64, null: F64, row: F64, part: F64, which: I32, order: I32, side: float,
    norm: float, out: F64,
) -> None:  # fmt: skip
    """Compute the error of each replicate under each hypothesis, in `out` (M, R).

    It is the mean over problems of norms of gaps.

    Parameters
    ----------
    gap : (M, K, B) float64 array
        Of each hypothesis the gap of each cell of each problem, in units in which a problem's error
        is a plain norm.
    noise : (M, K, B) float64 array
        What the noise of each cell is multiplied by.
    null : (K, B, R) float64 array
        The noise of the replicates.
    row : (K, B) float64 array
        What a single row adds to the gap of a cell.
    part : (M, K, B) float64 array
        Where it is not 0, there is `rare_noise` beside the other, multiplied by this.
    which : (K, B) int32 array
        The line of `order` of each cell that may have such noise.
    order : (C, R) int32 array
        Permutations.
    side : float
        Which gaps count: those above 0 for 1, those below for -1, all for 0.
    norm : float
    out : (M, R) float64 array
        Overwritten.
    """
    problems, cells, count = null.shape
    x, largest, value = np.zeros((cells, LANES)), np.empty(LANES), np.empty(LANES)
    total, rare = np.empty(LANES), np.empty(order.shape)
    for m in range(gap.shape[0]):
        for k in range(problems):
            for b in range(cells):
                if part[m, k, b] > 0.0:
                    c = which[k, b]
                    rare_noise(gap[m, k, b], row[k, b], part[m, k, b], order[c], rare[c])
        for first in range(0, count, LANES):
            lanes = min(LANES, count - first)
            zero(total)
            for k in range(problems):
                for b in range(cells):
                    f, sums = noise[m, k, b], x[b]
                    line = null[k, b, first : first + lanes]
                    if part[m, k, b] > 0.0:
                        more = rare[which[k, b], first : first + lanes]
                        for r in range(lanes):
                            sums[r] = more[r] + f * line[r]
                    else:
                        d = gap[m, k, b]
                        for r in range(lanes):
                            sums[r] = d + f * line[r]
                    if side != 0.0:
                        for r in range(lanes):
                            sums[r] = max(side * sums[r], 0.0)
                add_norm(x, norm, largest, value, total)
            for r in range(lanes):
                out[m, first + r] = total[r] / problems


@jit
def squared_sums(taps: F64, fold: I32, x: F64, out: F64) -> None:
    """Smooth weights of cells (C, Q) with squared taps into points, `out` (G, Q).

    The tap of a cell at point j is the sum of the taps of all its images, which must be added up
    before they are squared.

    Parameters
    ----------
    taps : (M + 1,) float64 array
        A symmetric kernel from its middle on.
    fold : (G + 2 M,) int32 array
        The cell that each number stands for.
    x : (C, Q) float64 array
        Weights, of several kinds.
    out : (G, Q) float64 array
        Overwritten.
    """
    reach = taps.size - 1
    brought = np.zeros(x.shape[0])
    for j in range(out.shape[0]):
        for m in range(-reach, reach + 1):
            brought[fold[j + reach + m]] += taps[abs(m)]
        for q in range(out.shape[1]):
            out[j, q] = 0.0
        for m in range(-reach, reach + 1):
            at = fold[j + reach + m]
            for q in range(out.shape[1]):
                out[j, q] += brought[at] * brought[at] * x[at, q]
            brought[at] = 0.0
