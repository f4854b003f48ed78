"""The most common call as a whole, from a caller's arrays to its value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.binning import LANES, moment, scatter, uniform_bins
from fastece.kernels.moments import BLOCK, lane_total
from fastece.kernels.reading import are_scores, read_hits, read_top_label
from fastece.typing import F64

# Up to so many numbers `numpy_sum` is numpy's.
MOST_BINS = 128


@jit
def numpy_sum(x: F64) -> float:
    """The sum of up to 128 numbers that are not negative, in the order in which numpy adds."""
    whole = x.size // 8 * 8
    total = 0.0
    if whole > 0:
        a, b, c, d, e, f, g, h = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
        for i in range(8, whole, 8):
            a, b, c, d = a + x[i], b + x[i + 1], c + x[i + 2], d + x[i + 3]
            e, f, g, h = e + x[i + 4], f + x[i + 5], g + x[i + 6], h + x[i + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(whole, x.size):
        total += x[i]
    return total


@jit
def uniform_error(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, n_bins: int, right: bool,
    tolerance: float,
) -> float:  # fmt: skip
    """``sum_b |D_b| / n`` over uniform bins with hard mapping, of rows that count 1 each.

    Parameters
    ----------
    prob : (n,) float64, or (n, K) float64 or float32 array
        Probabilities of the positive class, or class vectors, whose top label is measured.
    label : (n,) int64 or uint8 array
    low, high, n_bins, right
        As in `binning.Grid`; at most `MOST_BINS` bins.
    tolerance : float
        How far from 1 the sum of a class vector may be.

    Returns
    -------
    float
        nan if something is not good, or if it is not known whether it is.
    """
    n = label.size
    hit = np.empty(n, np.uint8)
    if prob.ndim == 1:
        score = prob
        good = are_scores(prob) & read_hits(label, hit)
    else:
        score = np.empty(n)
        good = read_top_label(prob, label, n < 0, tolerance, score, hit)
    if not good:
        return np.nan
    # As `moments.cell_moments` does it, without all that a single problem does not need.
    size, no_weights = min(n, BLOCK), np.empty(0)
    gaps: Any = np.int64(0)  # as elsewhere: numba compiles for a 0 of its own
    cell_block, gap_block, sums = np.empty(size, np.int32), np.empty(size), np.zeros(n_bins * LANES)
    for start in range(0, n, BLOCK):
        s, y = score[start : start + BLOCK], hit[start : start + BLOCK]
        cell, gap = cell_block[: s.size], gap_block[: s.size]
        uniform_bins(s, low, high, n_bins, right, cell)
        moment(gaps, s, y, no_weights, -np.inf, gap)
        scatter(cell, gap, LANES, sums)
    size_of_gap = np.empty(n_bins)
    for b in range(n_bins):
        size_of_gap[b] = abs(lane_total(sums, b, LANES))
    return numpy_sum(size_of_gap) / n
