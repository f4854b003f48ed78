"""The most common call as a whole, from a caller's arrays to its value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import GAP
from fastece.kernels._jit import jit
from fastece.kernels.binning import LANES, moment, scatter, search_knots, uniform_bins
from fastece.kernels.moments import BLOCK, lane_total
from fastece.kernels.reading import are_scores, read_hits, read_top_label
from fastece.kernels.shared import lane_sum
from fastece.typing import F64, I64

# Up to so many numbers `lane_sum` is numpy's.
MOST_BINS = 128
# Rows that are added up in one piece, as `fastece.estimators.binned.single.CHUNK_SCORES` has it.
CHUNK_ROWS = 2**19


@jit
def hard_sums(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, n_bins: int, right: bool,
    cuts: F64, tolerance: float, kinds: I64, out: F64,
) -> bool:  # fmt: skip
    """Some `kernels.MOMENTS` (Q,) of bins with hard mapping, of rows that count 1 each; False if
    something is not good, or if it is not known whether it is.

    `prob` has probabilities of the positive class (n,), or class vectors (n, K), which sum to 1
    within the tolerance, and whose top label is measured; `label` is int64 or uint8. The rest is as
    in `binning.Grid`, with at most `MOST_BINS` bins; they are of equal width if there are no cuts.
    `out` (Q, B) is overwritten.
    """
    n = label.size
    # As `moments.cell_moments` does it for chunks, without all that a single problem does not need.
    rows, no_weights = min(n, BLOCK), np.empty(0)
    score_block, hit_block = np.empty(rows), np.empty(rows, np.uint8)
    cell_block, term_block = np.empty(rows, np.int32), np.empty(rows)
    sums = np.empty((kinds.size, n_bins * LANES))
    out[:] = 0.0
    for chunk in range(0, n, CHUNK_ROWS):
        sums[:] = 0.0
        for start in range(chunk, min(chunk + CHUNK_ROWS, n), BLOCK):
            p, label_block = prob[start : start + BLOCK], label[start : start + BLOCK]
            size = label_block.size
            y, cell, term = hit_block[:size], cell_block[:size], term_block[:size]
            if prob.ndim == 1:
                s = p
                good = are_scores(p) & read_hits(label_block, y)
            else:
                s = score_block[:size]
                good = read_top_label(p, label_block, n < 0, tolerance, s, y)
            if not good:  # before anything is looked up by it
                return False
            if cuts.size:
                search_knots(s, cuts, right, cell)
            else:
                uniform_bins(s, low, high, n_bins, right, cell)
            for q in range(kinds.size):
                moment(kinds[q], s, y, no_weights, -np.inf, term)
                scatter(cell, term, LANES, sums[q])
        for q in range(kinds.size):
            for b in range(n_bins):
                out[q, b] += lane_total(sums[q], b, LANES)
    return True


@jit
def hard_error(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, n_bins: int, right: bool,
    cuts: F64, tolerance: float,
) -> float:  # fmt: skip
    """``sum_b |D_b| / n`` over the bins of `hard_sums`; nan where that is False."""
    gaps, gap = np.empty((1, n_bins)), np.full(1, GAP)
    if not hard_sums(prob, label, low, high, n_bins, right, cuts, tolerance, gap, gaps):
        return np.nan
    for b in range(n_bins):
        gaps[0, b] = abs(gaps[0, b])
    return lane_sum(gaps[0]) / label.size
