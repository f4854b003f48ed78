"""The most common call as a whole, from a caller's arrays to its value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.binning import LANES, moment, scatter, uniform_bins
from fastece.kernels.moments import BLOCK, lane_total
from fastece.kernels.reading import are_scores, read_hits, read_top_label
from fastece.kernels.shared import lane_sum

# Up to so many numbers `lane_sum` is numpy's.
MOST_BINS = 128


@jit
def uniform_error(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, n_bins: int, right: bool,
    tolerance: float,
) -> float:  # fmt: skip
    """``sum_b |D_b| / n`` over uniform bins with hard mapping, of rows that count 1 each; nan if
    something is not good, or if it is not known whether it is.

    `prob` has probabilities of the positive class (n,), or class vectors (n, K), which sum to 1
    within the tolerance, and whose top label is measured; `label` is int64 or uint8. The rest is as
    in `binning.Grid`, with at most `MOST_BINS` bins.
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
    return lane_sum(size_of_gap) / n
