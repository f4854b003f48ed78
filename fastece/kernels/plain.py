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
from fastece.kernels.binning import Grid, hard_bins
from fastece.kernels.compiling import jit
from fastece.kernels.moments import LANES, even_shares, move_into_range, open_ends, scatter
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
def unpack_bins(bins: F64) -> Grid:
    """Make the grid of hard bins that are given as one array.

    It has low, high, n_bins, even and right of a `Grid`, and then the knots. Each argument of a
    kernel of its own would take some 0.03 us.
    """
    n_bins = int(bins[2])
    even = bins[3] != 0.0
    right = bins[4] != 0.0
    return Grid(bins[0], bins[1], n_bins, even, bins[5:], right, convex=False)


@jit
def add_gaps(
    score: F64, label: NDArray[Any], grid: Grid, work: F64, cell_block: I32, sums: F64
) -> bool:  # fmt: skip
    """Add up the gaps of a block of rows in hard bins; False if a row is not valid.

    Parameters
    ----------
    score, label : (n,) float64 and int64 or uint8 arrays
        At most `ROWS` rows.
    grid : Grid
    work, cell_block : (ROWS,) float64 and int32 arrays
        Work space.
    sums : (B LANES,) float64 array
        Added to, unless a row is not valid.
    """
    gap = work[: score.size]
    cell = cell_block[: score.size]
    outside = np.int64(0)
    bits = np.int64(0)
    for i in range(score.size):
        outside |= is_outside(score[i])
        bits |= np.int64(label[i])
        gap[i] = np.float64(label[i]) - score[i]
    if (outside != 0) | (bits < 0) | (bits > 1):
        return False  # the cell of a nan is nowhere
    hard_bins(score, grid, cell)
    scatter(cell, gap, LANES, sums)
    return True


@jit
def add_lanes(sums: F64, gaps: F64) -> None:
    """Add the lanes of each bin up, and the total to its gap; the lanes are set to 0."""
    for b in range(gaps.size):
        total = 0.0
        for lane in range(LANES):
            total += sums[b * LANES + lane]
            sums[b * LANES + lane] = 0.0
        gaps[b] += total


@jit
def mean_size(gaps: F64, n: int) -> float:
    """Return the sum of the sizes of the gaps of bins, as a part of `n` rows."""
    total = 0.0
    for b in range(gaps.size):
        total += abs(gaps[b])
    return total / n


@jit
def binary_error(score: F64, label: NDArray[Any], bins: F64) -> float:
    """Compute ``sum_b |D_b| / n`` of one problem in hard bins; nan for a closer look.

    Parameters
    ----------
    score, label : (n,) float64 and int64 or uint8 arrays
        At least one row.
    bins : float64 array
        As for `unpack_bins`.
    """
    grid = unpack_bins(bins)
    work = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(grid.n_bins * LANES)
    gaps = np.empty(grid.n_bins)
    return error_of_rows(score, label, grid, work, cell_block, sums, gaps)


@jit
def are_valid(score: F64, label: NDArray[Any]) -> bool:
    """Return whether scores (n,) are in [0, 1], and labels (n,) are 0 or 1."""
    outside = np.int64(0)
    bits = np.int64(0)
    for i in range(score.size):
        outside |= is_outside(score[i])
        bits |= np.int64(label[i])
    return bool((outside == 0) & (bits >= 0) & (bits <= 1))


@jit
def equal_mass_error(score: F64, label: NDArray[Any], bins: F64) -> float:
    """Compute ``sum_b |D_b| / n`` in bins of equal mass; nan for a closer look.

    Parameters
    ----------
    score, label : (n,) float64 and int64 or uint8 arrays
        At least one row.
    bins : float64 array
        As for `unpack_bins`, with knots of any value: they are found here.
    """
    if not are_valid(score, label):
        return np.nan  # the part of a nan is nowhere
    grid = unpack_bins(bins.copy())
    edges = np.empty(grid.n_bins + 1)
    u, w = deciding_rows(score, np.empty(0), even_shares(grid.n_bins), -np.inf)
    move_into_range(u, grid.low, grid.high)
    quantile_edges(u, w, grid.low, grid.high, grid.right, edges, grid.knots)
    open_ends(grid.knots, grid.low, grid.high, grid.right)
    work = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(grid.n_bins * LANES)
    return error_of_rows(score, label, grid, work, cell_block, sums, edges[1:])


@jit
def error_of_rows(
    score: F64, label: NDArray[Any], grid: Grid, work: F64, cell_block: I32, sums: F64, gaps: F64
) -> float:
    """Compute `binary_error` in work space.

    `work`, `cell_block` and `sums` are as for `add_gaps`; `sums` are 0, and so afterwards, and
    `gaps` (n_bins,) are overwritten.
    """
    step, deviations = rows_compared(score.size)
    if is_worse_than_complement(score, label, 0.5, step, deviations):
        return np.nan
    gaps[:] = 0.0
    for first in range(0, score.size, CHUNK_SCORES):
        scores = score[first : first + CHUNK_SCORES]
        labels = label[first : first + CHUNK_SCORES]
        for start in range(0, scores.size, ROWS):
            s = scores[start : start + ROWS]
            y = labels[start : start + ROWS]
            if not add_gaps(s, y, grid, work, cell_block, sums):
                sums[:] = 0.0
                return np.nan
        add_lanes(sums, gaps)
    return mean_size(gaps, score.size)


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
        As for `unpack_bins`.
    out : (G,) float64 array
        Overwritten.
    """
    grid = unpack_bins(bins)
    work = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(grid.n_bins * LANES)
    gaps = np.empty(grid.n_bins)
    for g in range(out.size):
        rows = slice(offsets[g], offsets[g + 1])
        out[g] = error_of_rows(score[rows], label[rows], grid, work, cell_block, sums, gaps)


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
        As for `unpack_bins`.
    """
    step, deviations = rows_compared(label.size)
    if is_worse_than_guess(prob, label, step, deviations):
        return np.nan
    grid = unpack_bins(bins)
    score = np.empty(ROWS)
    hit = np.empty(ROWS, np.uint8)
    work = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(grid.n_bins * LANES)
    gaps = np.zeros(grid.n_bins)
    for first in range(0, label.size, CHUNK_SCORES):
        probs = prob[first : first + CHUNK_SCORES]
        labels = label[first : first + CHUNK_SCORES]
        for start in range(0, labels.size, ROWS):
            rows = labels[start : start + ROWS]
            s = score[: rows.size]
            y = hit[: rows.size]
            if not read_top_label(probs[start : start + ROWS], rows, False, tolerance, s, y):
                return np.nan
            add_gaps(s, y, grid, work, cell_block, sums)
        add_lanes(sums, gaps)
    return mean_size(gaps, label.size)


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
    grid = unpack_bins(bins)
    most_rows = 0
    for g in range(keys.size):
        most_rows = max(most_rows, offsets[g + 1] - offsets[g])
    cells = np.empty(most_rows, np.int32)
    orders = np.empty(most_rows, np.int32)
    starts = np.empty(most_rows + 1, np.int32)
    runs = np.empty(most_rows, np.int32)
    terms = np.empty((1, most_rows))
    counts = np.empty(most_rows * REPLICATES, np.uint8)
    sums = np.empty((1, grid.n_bins, REPLICATES))
    for g in range(keys.size):
        rows = slice(offsets[g], offsets[g + 1])
        s = score[rows]
        y = label[rows]
        cell = cells[: s.size]
        order = orders[: s.size]
        hard_bins(s, grid, cell)
        n_runs = arrange_tiles(cell, grid.n_bins, tile, order, starts, runs)
        term = terms[:, : s.size]
        for i in range(s.size):
            row = np.uint64(order[i])
            term[0, i] = np.float64(y[row]) - s[row]
        drawn = counts[: s.size * REPLICATES].reshape(1, s.size, REPLICATES)
        law = laws[law_of_group[g]]
        tail = tails[law_of_group[g]]
        for first in range(0, out.shape[1], REPLICATES):
            multiplicities(keys[g], first // REPLICATES, s.size, law, tail, drawn)
            tile_sums(term, order, starts[: n_runs + 1], runs[:n_runs], 0, drawn, sums)
            for r in range(min(REPLICATES, out.shape[1] - first)):
                total = 0.0
                for b in range(grid.n_bins):
                    total += abs(sums[0, b, r])
                out[g, first + r] = total / s.size
