"""Plain arrays in one pass: rows are checked, binned and added up, block by block.

This serves speed alone: values have the bits of `kernels.moments` and `kernels.errors`. A value is
nan where a row is not valid, and where labels may contradict the predictions: the ordinary road
then reads all rows, and has the words.

Rows are read through slices, for which numba asks for no negative index, and loops vectorise.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import CHUNK_SCORES, REPLICATES
from fastece.kernels.arithmetic import zero
from fastece.kernels.binning import search_knots, uniform_bins
from fastece.kernels.compiling import jit
from fastece.kernels.moments import (
    LANES,
    even_shares,
    lane_total,
    move_into_range,
    open_ends,
    scatter,
)
from fastece.kernels.quantiles import quantile_edges
from fastece.kernels.reading import (
    is_outside,
    is_worse_than_complement,
    is_worse_than_guess,
    read_top_label,
    rows_compared,
    term,
)
from fastece.kernels.replicates import arrange_tiles, tile_sums
from fastece.kernels.resampling import multiplicities
from fastece.kernels.selection import deciding_rows
from fastece.kernels.types import F64, I32, I64, U8, U16, U64

# Rows of a block: faster than longer ones and shorter ones, from 1e4 to 1e7 rows.
ROWS = 512


@jit
def find_bins(score: F64, bins: F64, cell: I32) -> None:
    """Find the bin of each score in hard bins that are given as one array.

    It has low, high, n_bins, even and right of a `Grid`, and then the knots. Each argument of a
    kernel of its own would take some 0.03 us.
    """
    right = bins[4] != 0.0
    if bins[3] != 0.0:
        uniform_bins(score, bins[0], bins[1], int(bins[2]), right, cell)
    else:
        search_knots(score, bins[5:], right, cell)


@jit
def find_equal_mass(score: F64, bins: F64) -> bool:
    """Fill in the knots of bins of equal mass; False if a score is not valid.

    Parameters
    ----------
    score : (n,) float64 array
        At least one score.
    bins : float64 array
        As for `find_bins`; the knots are overwritten.
    """
    outside = np.int64(0)
    for i in range(score.size):
        outside |= is_outside(score[i])
    if outside != 0:
        return False  # the part of a nan is nowhere
    low = bins[0]
    high = bins[1]
    n_bins = int(bins[2])
    right = bins[4] != 0.0
    u, w = deciding_rows(score, np.empty(0), even_shares(n_bins), -np.inf)
    move_into_range(u, low, high)
    quantile_edges(u, w, low, high, right, np.empty(n_bins + 1), bins[5:])
    open_ends(bins[5:], low, high, right)
    return True


@jit
def binary_error(score: F64, label: NDArray[Any], bins: F64) -> float:
    """Compute ``sum_b |D_b| / n`` of one problem in hard bins; nan for a closer look.

    Parameters
    ----------
    score, label : (n,) float64 and int64 or uint8 arrays
        At least one row.
    bins : float64 array
        As for `find_bins`.
    """
    step, deviations = rows_compared(score.size)
    if is_worse_than_complement(score, label, 0.5, step, deviations):
        return np.nan
    n_bins = int(bins[2])
    # One piece of memory, as a group of few rows has no time for four.
    work = np.empty(2 * ROWS + n_bins * (LANES + 1))
    gap_block = work[:ROWS]
    cell_block = work[ROWS : 2 * ROWS].view(np.int32)
    sums = work[2 * ROWS : 2 * ROWS + n_bins * LANES]
    gaps = work[2 * ROWS + n_bins * LANES :]
    zero(work[2 * ROWS :])
    for first in range(0, score.size, CHUNK_SCORES):
        scores = score[first : first + CHUNK_SCORES]
        labels = label[first : first + CHUNK_SCORES]
        for start in range(0, scores.size, ROWS):
            s = scores[start : start + ROWS]
            y = labels[start : start + ROWS]
            gap = gap_block[: s.size]
            cell = cell_block[: s.size]
            # Rows are checked before they are binned: the cell of a nan is nowhere.
            outside = np.int64(0)
            bits = np.int64(0)
            for i in range(s.size):
                outside |= is_outside(s[i])
                bits |= np.int64(y[i])
                gap[i] = np.float64(y[i]) - s[i]
            if (outside != 0) | (bits < 0) | (bits > 1):
                return np.nan
            find_bins(s, bins, cell)
            scatter(cell, gap, LANES, sums)
        # The lanes of each bin are added up, and begin anew with the next chunk.
        for b in range(gaps.size):
            gaps[b] += lane_total(sums, b, LANES)
        zero(sums)
    error = 0.0
    for b in range(gaps.size):
        error += abs(gaps[b])
    return error / score.size


@jit
def checked_terms(kind: int, score: F64, label: NDArray[Any], x: F64) -> bool:
    """Compute a `term` of each row of one problem; False if a row is not valid.

    Parameters
    ----------
    kind : int
        `DISTANCE` or `CHANCE`.
    score, label : (n,) float64 and int64 or uint8 arrays
    x : (n,) float64 array
        Overwritten.
    """
    outside = np.int64(0)
    bits = np.int64(0)
    for i in range(x.size):
        outside |= is_outside(score[i])
        bits |= np.int64(label[i])
        x[i] = term(kind, score[i], label[i] == 1)
    return bool((outside == 0) & (bits >= 0) & (bits <= 1))


@jit
def errors_of_groups(score: F64, label: U8, offsets: I64, bins: F64, out: F64) -> None:
    """Compute the `binary_error` (G,) of groups of rows, one after the other.

    Parameters
    ----------
    score, label : (n,) float64 and uint8 arrays
    offsets : (G + 1,) int64 array
        Where the rows of each group begin.
    bins : float64 array
        As for `find_bins`.
    out : (G,) float64 array
        Overwritten.
    """
    for g in range(out.size):
        rows = slice(offsets[g], offsets[g + 1])
        out[g] = binary_error(score[rows], label[rows], bins)


@jit
def top_label_error(prob: NDArray[Any], label: I64, tolerance: float, bins: F64) -> float:
    """Compute ``sum_b |D_b| / n`` of top labels in hard bins; nan for a closer look.

    Parameters
    ----------
    prob, label : (n, K) float64 or float32 and (n,) int64 arrays
        At least one row of two columns.
    tolerance : float
        How far the sum of a row may be from 1.
    bins : float64 array
        As for `find_bins`.
    """
    step, deviations = rows_compared(label.size)
    if is_worse_than_guess(prob, label, step, deviations):
        return np.nan
    n_bins = int(bins[2])
    score_block = np.empty(ROWS)
    hit_block = np.empty(ROWS, np.uint8)
    gap_block = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(n_bins * LANES)
    gaps = np.zeros(n_bins)
    for first in range(0, label.size, CHUNK_SCORES):
        probs = prob[first : first + CHUNK_SCORES]
        labels = label[first : first + CHUNK_SCORES]
        for start in range(0, labels.size, ROWS):
            vectors = probs[start : start + ROWS]
            classes = labels[start : start + ROWS]
            s = score_block[: classes.size]
            hit = hit_block[: classes.size]
            gap = gap_block[: classes.size]
            cell = cell_block[: classes.size]
            if not read_top_label(vectors, classes, 0.0, 1.0, tolerance, s, hit):
                return np.nan
            for i in range(s.size):
                gap[i] = np.float64(hit[i]) - s[i]
            find_bins(s, bins, cell)
            scatter(cell, gap, LANES, sums)
        for b in range(gaps.size):
            gaps[b] += lane_total(sums, b, LANES)
        zero(sums)
    error = 0.0
    for b in range(gaps.size):
        error += abs(gaps[b])
    return error / label.size


# --- replicates of many groups ----------------------------------------------------------------


@jit
def replicates_of_groups(
    score: F64, label: U8, offsets: I64, keys: U64, bins: F64, laws: U16, tails: F64,
    law_of_group: I64, tile: int, out: F64,
) -> None:  # fmt: skip
    """Compute the replicates (G, R) of ``sum_b |D_b| / n`` of groups of rows.

    They have the bits of draws of all rows of each group by itself: `multiplicities`, `tile_sums`,
    and the norm of the bins in their order.

    Parameters
    ----------
    score, label, offsets, bins
        As in `errors_of_groups`.
    keys : (G,) uint64 array
        The key of the draws of each group.
    laws, tails : (L, LEVELS) uint16 and (L, m) float64 arrays
        Poisson laws of the distinct sizes of groups.
    law_of_group : (G,) int64 array
    tile : int
        Rows of a tile, as in `arrange_tiles`.
    out : (G, R) float64 array
        Overwritten.
    """
    n_bins = int(bins[2])
    most_rows = 0
    for g in range(keys.size):
        most_rows = max(most_rows, offsets[g + 1] - offsets[g])
    cells = np.empty(most_rows, np.int32)
    orders = np.empty(most_rows, np.int32)
    starts = np.empty(most_rows + 1, np.int32)
    runs = np.empty(most_rows, np.int32)
    terms = np.empty(most_rows)
    counts = np.empty(most_rows * REPLICATES, np.uint8)
    sums = np.empty((1, n_bins, REPLICATES))
    no_step: Any = np.int64(0)  # with a plain 0, numba would compile `tile_sums` a second time
    for g in range(keys.size):
        rows = slice(offsets[g], offsets[g + 1])
        s = score[rows]
        y = label[rows]
        cell = cells[: s.size]
        order = orders[: s.size]
        find_bins(s, bins, cell)
        n_runs = arrange_tiles(cell, n_bins, tile, order, starts, runs)
        term = terms[: s.size]
        for i in range(s.size):
            row = np.uint64(order[i])
            term[i] = np.float64(y[row]) - s[row]
        lines = term.reshape(1, s.size)
        drawn = counts[: s.size * REPLICATES].reshape(1, s.size, REPLICATES)
        law = laws[law_of_group[g]]
        tail = tails[law_of_group[g]]
        for first in range(0, out.shape[1], REPLICATES):
            multiplicities(keys[g], first // REPLICATES, s.size, law, tail, drawn)
            tile_sums(lines, order, starts[: n_runs + 1], runs[:n_runs], no_step, drawn, sums)
            for r in range(min(REPLICATES, out.shape[1] - first)):
                total = 0.0
                for b in range(n_bins):
                    total += abs(sums[0, b, r])
                out[g, first + r] = total / s.size
