"""Sums over the rows of problems in the cells of a grid."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import WEIGHT
from fastece.kernels._jit import jit
from fastece.kernels.binning import (
    FLOAT,
    LANES,
    Grid,
    float_cells,
    moment,
    place,
    scatter,
    scatter_shares,
    search_knots,
    uniform_bins,
)  # fmt: skip
from fastece.kernels.reading import are_scores, read_hits, read_top_label
from fastece.kernels.shared import lane_sum
from fastece.typing import F64, I32, I64, U8

BLOCK = 1024
# More cells times eight lanes are beyond the first-level cache, and slow to clear.
FEW_CELLS = 4096
# No score, and more than one distinct score.
NONE, SEVERAL = -1.0, 2.0
# Up to so many numbers `lane_sum` is numpy's.
MOST_BINS = 128
# A bin of two rows has as many, whatever its weights round to.
FEWEST = 2.0 - 1e-9
# Gaps beyond so many deviations, times sqrt(2), are noise in no digit: exp(-36) is 2e-16.
FAR = 6.0


@jit
def lane_total(sums: F64, b: int, lanes: int) -> float:
    """Add up the lanes of the sum of cell b."""
    total = 0.0
    for lane in range(lanes):
        total += sums[b * lanes + lane]
    return total


@jit
def hard_error(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, n_bins: int, right: bool,
    cuts: F64, tolerance: float, kinds: I64, out: F64,
) -> float:  # fmt: skip
    """Compute the error of the most common call as a whole, from a caller's arrays.

    It is ``sum_b |D_b| / n`` over hard bins, of rows that count 1 each; nan if something is not
    good, or if it is not known whether it is.

    Parameters
    ----------
    prob : (n,) or (n, K) array
        Probabilities of the positive class, float64; or class vectors, which sum to 1 within the
        tolerance, and whose top label is measured.
    label : (n,) int64 array, or of hits uint8
    low, high, n_bins, right, cuts
        As in `binning.Grid`, with at most `MOST_BINS` bins; of equal width if there are no cuts.
    kinds : (Q,) int64 array
        Which of `kernels.MOMENTS` are added up; the error is that of the first as D.
    out : (Q, B) or (0, 0) float64 array
        Their sums, unless it is empty; overwritten.
    """
    n = label.size
    # As `cell_moments` does it, without all that a single problem does not need.
    rows, nothing, lanes = min(n, BLOCK), np.empty(0), LANES if n > 0 else 1
    score_block, hit_block = np.empty(rows), np.empty(rows, np.uint8)
    cell_block, term_block = np.empty(rows, np.int32), np.empty(rows)
    sums, gap = np.zeros((kinds.size, n_bins * LANES)), np.empty(n_bins)
    for start in range(0, n, BLOCK):
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
            return np.nan
        if cuts.size:
            search_knots(s, cuts, right, cell)
        else:
            uniform_bins(s, low, high, n_bins, right, cell)
        for q in range(kinds.size):
            moment(kinds[q], s, y, nothing, -np.inf, term)
            scatter(cell, term, lanes, sums[q], nothing)
    for q in range(out.shape[0]):
        for b in range(n_bins):
            out[q, b] = lane_total(sums[q], b, lanes)
    for b in range(n_bins):
        gap[b] = abs(lane_total(sums[0], b, lanes))
    return lane_sum(gap) / n


@jit
def read_block(
    prob: NDArray[Any], label: NDArray[Any], start: int, stop: int, score: F64, hit: U8
) -> tuple[F64, U8]:
    """Read scores and hits of some rows into arrays with room for them.

    Rows of one problem are read as they are; of class vectors (n, K) and classes, one problem after
    the other for each row.
    """
    if prob.ndim == 1:
        return prob[start:stop], label[start:stop]
    n_classes = prob.shape[1]
    part = prob[start:stop]
    flat = part.reshape(part.size)
    for i in range(flat.size):
        score[i], hit[i] = np.float64(flat[i]), 0
    for i in range(stop - start):
        hit[i * n_classes + label[start + i]] = 1
    return score[: flat.size], hit[: flat.size]


@jit
def first_cells(rows: int, problems: int, cells: int) -> I32:
    """Fill in the first cell of the problem of each score of a block of rows."""
    first = np.empty(rows * problems, np.int32)
    for i in range(first.size):
        first[i] = i % problems * cells
    return first


@jit
def rows_in_cells(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, wanted: U8,
    row: I64, problem: I32, score: F64, hit: U8,
) -> int:  # fmt: skip
    """Find the rows in the `wanted` cells of a float grid; return their number.

    The grid goes from `low` to `high`, and `wanted` (K cells,) is 1 for a cell to look in. `prob`
    and `label` are as in `cell_moments`. Position, problem, score and hit of each row found are
    written to arrays with room for n K.
    """
    n = label.size
    problems = prob.size // n
    rows = min(n, max(1, BLOCK // problems))
    size = rows * problems
    score_block, hit_block, work = np.empty(size), np.empty(size, np.uint8), np.empty(size)
    cell = np.empty(size, np.int32)
    first_cell = first_cells(rows, problems, wanted.size // problems)
    count = 0
    for start in range(0, n, rows):
        s, y = read_block(prob, label, start, min(start + rows, n), score_block, hit_block)
        float_cells(s, low, high, work, cell)
        for i in range(s.size):
            if wanted[np.uint32(cell[i] + first_cell[i])]:  # rarely: easy to predict
                row[count] = start + i // problems
                problem[count] = i % problems
                score[count] = s[i]
                hit[count] = y[i]
                count += 1
    return count


@jit
def cell_moments(
    prob: NDArray[Any], label: NDArray[Any], weight: F64, grid: Grid, threshold: float,
    kinds: I64, only: F64, out: F64,
) -> None:  # fmt: skip
    """Sum up moments in each cell of one grid, of one problem or of every class.

    Parameters
    ----------
    prob : (n,) float64, or (n, K) float64 or float32 array
        Scores, or class vectors, of which every class is a problem.
    label : (n,) uint8 or int64 array
        Hits, or classes.
    weight : (n,) float64 array
        Empty: every row counts 1.
    grid : Grid
    threshold : float
        Scores up to this one do not exist.
    kinds : (Q,) int64 array
        Which of `kernels.MOMENTS` are added up.
    only : (K cells,) float64 array
        On a float grid: overwritten with the score of each cell where it has but one, `NONE` or
        `SEVERAL` where not. Not read on another grid.
    out : (Q, K, cells) float64 array
        Overwritten.
    """
    n = label.size
    moments, problems, cells = out.shape
    # A block is whole rows. Neighbours of different problems need no lanes to be apart.
    rows = min(n, max(1, BLOCK // problems))
    lanes = 1 if problems >= LANES else LANES if cells <= FEW_CELLS else 2
    is_float = grid.spacing == FLOAT
    step = 1 if grid.knots.size > 1 else 0
    size = rows * problems
    score_block, hit_block = np.empty(size), np.empty(size, np.uint8)
    lower_block, first_cell = np.empty(size, np.int32), first_cells(rows, problems, cells)
    share_block, weight_block, x_block = np.empty(size), np.empty(size), np.empty(size)
    sums = np.zeros((moments, problems * cells * lanes))
    lost, nothing = np.zeros(problems * cells * lanes if is_float else 0), np.empty(0)
    # Loops: expressions of arrays take seconds to compile, with their messages about shapes.
    if is_float:
        for i in range(only.size):
            only[i] = NONE
    for start in range(0, n, rows):
        s, y = read_block(prob, label, start, min(start + rows, n), score_block, hit_block)
        lower, share, x = lower_block[: s.size], share_block[: s.size], x_block[: s.size]
        place(s, grid, lower, x, share)
        if problems > 1:
            for i in range(s.size):
                lower[i] += first_cell[i]
        if is_float:
            for i in range(s.size):
                seen = only[np.uint32(lower[i])]
                # No branch: where some scores are tied and some not, it would be mispredicted.
                kept = s[i] if (seen == NONE) | (seen == s[i]) else SEVERAL
                only[np.uint32(lower[i])] = kept if s[i] > threshold else seen
        w = weight[start : start + rows]
        if (w.size > 0) & (problems > 1):
            w = weight_block[: s.size]
            for i in range(s.size):
                w[i] = weight[start + i // problems]
        for q in range(moments):
            moment(kinds[q], s, y, w, threshold, x)
            if grid.convex:
                scatter_shares(lower, x, share, step, lanes, sums[q])
            else:
                is_exact = (kinds[q] == WEIGHT) & (w.size > 0)
                scatter(lower, x, lanes, sums[q], lost if is_exact else nothing)
    for q in range(moments):
        if kinds[q] == WEIGHT:
            for i in range(lost.size):
                sums[q, i] += lost[i]
        for k in range(problems):
            for b in range(cells):
                out[q, k, b] = lane_total(sums[q], k * cells + b, lanes)


@jit
def debiased_errors(
    gap: F64, weight: F64, hits: F64, square: F64, total: F64, least: float, is_equal: bool,
    norm: float, out: F64,
) -> None:  # fmt: skip
    """Compute the debiased error of each problem, in `out` (K,), from sums in bins.

    What chance adds to a gap g is ``E|N(g, t**2)| - g``, with the variance ``t**2 = q (1 - q) / n``
    of the hit rate q of n rows: the mean size of a normal variable around it, less the gap.

    Parameters
    ----------
    gap, weight, hits : (K, B) float64 arrays
        Sums of w (y - s), w and w y in each bin.
    square : (K, B) or (0, 0) float64 array
        Those of w**2; empty: every row counts 1.
    total : (K,) float64 array
        Weight of the rows.
    least : float
        Bins that do not have more than this share of it are empty.
    is_equal : bool
        Bins count 1 / B instead of their share.
    norm : float
        1 or 2.
    """
    problems, n_bins = gap.shape
    for k in range(problems):
        value = 0.0
        for b in range(n_bins):
            w = weight[k, b]
            if not w > least * total[k]:
                continue
            g, q = abs(gap[k, b]) / w, min(hits[k, b] / w, 1.0)
            count = w
            if square.size > 0:  # as many rows of one weight would be as noisy
                # Divided twice: the square of a small weight may be nothing.
                count = w / (square[k, b] / w) if square[k, b] > 0.0 else 1.0
            if norm == 1.0:
                noise, part = math.sqrt(2.0 * max(q * (1.0 - q), 0.0) / count), g
                if g < FAR * noise:
                    z = g / noise
                    part -= noise / math.sqrt(math.pi) * math.exp(-z * z) - g * math.erfc(z)
            elif count >= FEWEST:
                part = g * g - max(q * (1.0 - q), 0.0) / (count - 1.0)
            else:
                part = 0.0
            value += part / n_bins if is_equal else part * (w / total[k])
        out[k] = value if norm == 1.0 else math.sqrt(max(value, 0.0))
