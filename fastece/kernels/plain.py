"""Plain arrays in one pass: rows are checked, binned and added up, block by block.

This serves speed alone: values have the bits of `kernels.moments` and `kernels.errors`. A value is
nan where a row is not valid, and where labels may contradict the predictions: the ordinary road
then reads all rows, and has the words.

Rows are read through slices, for which numba asks for no negative index, and loops vectorise.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels.binning import search_knots, uniform_bins
from fastece.kernels.compiling import jit
from fastece.kernels.moments import LANES, scatter
from fastece.kernels.reading import (
    is_outside,
    is_worse_than_complement,
    is_worse_than_guess,
    read_binary,
    read_top_label,
)
from fastece.kernels.types import F64, I32, I64, U8

# Rows of a block: faster than longer ones and shorter ones, from 1e4 to 1e7 rows.
ROWS = 512

# Hard bins: low, high, their number, whether they have equal width, whether they are closed at the
# right, and the inner cuts of others. As arguments of their own they take less time than a tuple.
PlainBins = tuple[float, float, int, bool, bool, F64]


@jit
def read_hits(score: F64, label: NDArray[Any], step: int, deviations: float, hit: U8) -> bool:
    """Fill `hit` with labels; False if they may contradict scores, or are not valid.

    Parameters
    ----------
    score, label, hit
        As in `read_binary`.
    step, deviations : int, float
        As in `is_worse_than_complement`.
    """
    if is_worse_than_complement(score, label, 0.5, step, deviations):
        return False
    return read_binary(score, label, hit)


@jit
def add_gaps(
    score: F64, label: NDArray[Any], low: float, high: float, n_bins: int, is_even: bool,
    right: bool, cuts: F64, work: F64, cell_block: I32, sums: F64,
) -> bool:  # fmt: skip
    """Add up the gaps of a block of rows in hard bins; False if a row is not valid.

    Parameters
    ----------
    score, label : (n,) float64 and int64 or uint8 arrays
        At most `ROWS` rows.
    low, high, n_bins, right
        As in `kernels.binning.Grid`.
    is_even : bool
        Bins have equal width; else their inner `cuts` are searched.
    work, cell_block : (ROWS,) float64 and int32 arrays
        Work space.
    sums : (n_bins LANES,) float64 array
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
    if is_even:
        uniform_bins(score, low, high, n_bins, right, cell)
    else:
        search_knots(score, cuts, right, cell)
    scatter(cell, gap, LANES, sums, work[:0])
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
def binary_error(
    score: F64, label: NDArray[Any], step: int, deviations: float, chunk: int,
    low: float, high: float, n_bins: int, is_even: bool, right: bool, cuts: F64,
) -> float:  # fmt: skip
    """Compute ``sum_b |D_b| / n`` of one problem in hard bins; nan for a closer look.

    Parameters
    ----------
    score, label : (n,) float64 and int64 or uint8 arrays
        At least one row.
    step, deviations : int, float
        As in `is_worse_than_complement`.
    chunk : int
        Rows that are added up before others.
    low, high, n_bins, is_even, right, cuts
        As in `add_gaps`.
    """
    if is_worse_than_complement(score, label, 0.5, step, deviations):
        return np.nan
    work = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(n_bins * LANES)
    gaps = np.zeros(n_bins)
    for first in range(0, score.size, chunk):
        scores = score[first : first + chunk]
        labels = label[first : first + chunk]
        for start in range(0, scores.size, ROWS):
            if not add_gaps(
                scores[start : start + ROWS], labels[start : start + ROWS],
                low, high, n_bins, is_even, right, cuts, work, cell_block, sums,
            ):  # fmt: skip
                return np.nan
        add_lanes(sums, gaps)
    return mean_size(gaps, score.size)


@jit
def top_label_error(
    prob: NDArray[Any], label: I64, step: int, deviations: float, tolerance: float, chunk: int,
    low: float, high: float, n_bins: int, is_even: bool, right: bool, cuts: F64,
) -> float:  # fmt: skip
    """Compute ``sum_b |D_b| / n`` of top labels in hard bins; nan for a closer look.

    Parameters
    ----------
    prob, label : (n, K) float64 or float32 and (n,) int64 arrays
        At least one row of two columns.
    step, deviations : int, float
        As in `is_worse_than_guess`.
    tolerance : float
        How far the sum of a row may be from 1.
    chunk, low, high, n_bins, is_even, right, cuts
        As in `binary_error`.
    """
    if is_worse_than_guess(prob, label, step, deviations):
        return np.nan
    score = np.empty(ROWS)
    hit = np.empty(ROWS, np.uint8)
    work = np.empty(ROWS)
    cell_block = np.empty(ROWS, np.int32)
    sums = np.zeros(n_bins * LANES)
    gaps = np.zeros(n_bins)
    for first in range(0, label.size, chunk):
        probs = prob[first : first + chunk]
        labels = label[first : first + chunk]
        for start in range(0, labels.size, ROWS):
            rows = labels[start : start + ROWS]
            s = score[: rows.size]
            y = hit[: rows.size]
            if not read_top_label(probs[start : start + ROWS], rows, False, tolerance, s, y):
                return np.nan
            add_gaps(s, y, low, high, n_bins, is_even, right, cuts, work, cell_block, sums)
        add_lanes(sums, gaps)
    return mean_size(gaps, label.size)
