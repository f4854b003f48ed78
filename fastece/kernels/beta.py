"""Tables of beta kernels: of each point of a grid the scores that matter to it."""

import math

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.shared import zero

__all__ = ["fill_table", "reach_of", "scaled", "table_sums"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# Logarithm of the share of its largest value below which a kernel is left out.
NEGLIGIBLE = -13.0
# Scores next to the ends, where logarithms are finite.
SMALLEST, LARGEST = 1e-300, 1.0 - 2.0**-53


@jit
def log_kernel(a: float, c: float, node: float, rest: float) -> float:
    """Logarithm of ``s**(a - 1) (1 - s)**(c - 1)`` from those of s and 1 - s; a, c >= 1."""
    value = 0.0
    if a > 1.0:
        value += (a - 1.0) * node
    if c > 1.0:
        value += (c - 1.0) * rest
    return value


@jit
def first_above(x: F64, least: float) -> int:
    """Where in increasing numbers those begin that are not less."""
    begin, end = 0, x.size
    while begin < end:
        i = (begin + end) // 2
        if x[i] < least:
            begin = i + 1
        else:
            end = i
    return begin


@jit
def reach_of(a: F64, c: F64, node: F64, rest: F64, first: I64, last: I64) -> None:
    """From which node to before which one each point's kernel is more than negligible.

    Parameters
    ----------
    a, c : (G,) float64 arrays
        Parameters of the beta density of each point.
    node, rest : (N,) float64 arrays
        Logarithms of increasing scores s, and of 1 - s.
    first, last : (G,) int64 arrays
        Overwritten.
    """
    for j in range(a.size):
        mode = 0.5 if a[j] + c[j] <= 2.0 else (a[j] - 1.0) / (a[j] + c[j] - 2.0)
        mode = min(max(mode, SMALLEST), LARGEST)
        least = log_kernel(a[j], c[j], math.log(mode), math.log1p(-mode)) + NEGLIGIBLE
        # The kernel rises up to its mode and falls from there: two bisections.
        middle = first_above(node, math.log(mode))
        begin, end = 0, middle
        while begin < end:
            i = (begin + end) // 2
            if log_kernel(a[j], c[j], node[i], rest[i]) < least:
                begin = i + 1
            else:
                end = i
        first[j] = begin
        begin, end = middle, node.size
        while begin < end:
            i = (begin + end) // 2
            if log_kernel(a[j], c[j], node[i], rest[i]) < least:
                end = i
            else:
                begin = i + 1
        last[j] = begin


@jit
def fill_table(
    a: F64, c: F64, log_beta: F64, node: F64, rest: F64, first: I64, last: I64, table: F64
) -> None:
    """The kernels one after the other: ``s**(a - 1) (1 - s)**(c - 1) / B(a, c)``."""
    at = 0
    for j in range(a.size):
        for i in range(first[j], last[j]):
            table[at] = math.exp(log_kernel(a[j], c[j], node[i], rest[i]) - log_beta[j])
            at += 1


@jit
def table_sums(table: F64, first: I64, last: I64, weight: F64, cells: F64, out: F64) -> None:
    """Add ``weight[r] * sum_i table[j, i] * cells[i, r]`` to ``out[j, r]``.

    Parameters
    ----------
    table, first, last
        `fill_table`.
    weight : (W,) float64 array
        Of this table for each replicate.
    cells : (C, W) float64 array
    out : (G, W) float64 array
    """
    lanes = np.uint64(out.shape[1])
    x, y = cells.reshape(cells.size), out.reshape(out.size)
    sums = np.empty(lanes)
    at = np.uint64(0)
    for j in range(first.size):
        begin, end = np.uint64(first[j]), np.uint64(last[j])
        if begin >= end:
            continue
        zero(sums)
        i = begin
        while i + np.uint64(4) <= end:  # four at a time, so that sums are seldom stored
            t0, t1 = table[at], table[at + np.uint64(1)]
            t2, t3 = table[at + np.uint64(2)], table[at + np.uint64(3)]
            x0 = i * lanes
            x1, x2, x3 = x0 + lanes, x0 + lanes + lanes, x0 + lanes + lanes + lanes
            for r in range(np.uint64(0), lanes):
                sums[r] += (t0 * x[x0 + r] + t1 * x[x1 + r]) + (t2 * x[x2 + r] + t3 * x[x3 + r])
            i += np.uint64(4)
            at += np.uint64(4)
        while i < end:
            t0, x0 = table[at], i * lanes
            for r in range(np.uint64(0), lanes):
                sums[r] += t0 * x[x0 + r]
            i += np.uint64(1)
            at += np.uint64(1)
        to = np.uint64(j) * lanes
        for r in range(np.uint64(0), lanes):
            y[to + r] += weight[r] * sums[r]


@jit
def scaled(cells: F64, per: float, out: F64) -> None:
    """Turn sums (L, 2, G, W) of kernels over misses and over hits into densities of scores and of
    hits: by the weight of all rows (L, 2, C, W), and of a unit of the score by `per`."""
    lanes = out.shape[3]
    total = np.empty(lanes)
    for part in range(out.shape[0]):
        zero(total)
        for signal in range(2):
            for i in range(cells.shape[2]):
                for r in range(lanes):
                    total[r] += cells[part, signal, i, r]
        f, g = out[part, 0], out[part, 1]
        for j in range(out.shape[2]):
            for r in range(lanes):
                # Divided twice: weights may be so small that a reciprocal is infinite.
                g[j, r] = max(g[j, r], 0.0) / total[r] / per
                f[j, r] = max(f[j, r], 0.0) / total[r] / per + g[j, r]
