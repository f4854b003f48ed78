"""Sums of what rows bring to the cells of a grid, from the arrays of problems."""

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
    scatter_weights,
)
from fastece.typing import F64, I32, I64, U8

BLOCK = 1024
# More cells times eight lanes are beyond the first-level cache, and slow to clear.
FEW_CELLS = 4096
# No score, and more than one distinct score.
NONE, SEVERAL = -1.0, 2.0


@jit
def first_cells(rows: int, problems: int, cells: int) -> I32:
    """First cell of the problem of each score of a block of rows."""
    first = np.empty(rows * problems, np.int32)
    for i in range(rows):
        for k in range(problems):
            first[i * problems + k] = k * cells
    return first


@jit
def spread_classes(prob: NDArray[Any], label: NDArray[Any], score: F64, hit: U8) -> None:
    """Scores and hits (n K,) of class vectors (n, K) with labels (n,), as they lie in memory."""
    n, n_classes = prob.shape
    flat = prob.reshape(prob.size)
    for i in range(flat.size):
        score[i] = np.float64(flat[i])
        hit[i] = 0
    for i in range(n):
        hit[i * n_classes + label[i]] = 1


@jit
def lane_total(sums: F64, b: int, lanes: int) -> float:
    """The sum of cell b, of all lanes."""
    total = 0.0
    for lane in range(lanes):
        total += sums[b * lanes + lane]
    return total


@jit
def note_scores(s: F64, cell: I32, threshold: float, only: F64) -> None:
    """Keep the score of each cell in `only` while it has but one."""
    for i in range(s.size):
        x = s[i]
        seen = only[np.uint32(cell[i])]
        # No branch: where some scores are tied and some not, it would be mispredicted (3.4 ns).
        kept = x if (seen == NONE) | (seen == x) else SEVERAL
        only[np.uint32(cell[i])] = kept if x > threshold else seen


@jit
def rows_in_cells(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, wanted: U8,
    row: I64, problem: I32, score: F64, hit: U8,
) -> int:  # fmt: skip
    """Find the rows in some cells of the float grid from `low` to `high`: 1 in `wanted` (K cells,).

    `prob` and `label` are as in `cell_moments`. Position, problem, score and hit of each row found
    are written to arrays with room for n K; their number is returned.
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
        m = min(rows, n - start)
        s, y = score_block[: m * problems], hit_block[: m * problems]
        if prob.ndim == 1:
            s, y = prob[start : start + m], label[start : start + m]
        else:
            spread_classes(prob[start : start + m], label[start : start + m], s, y)
        float_cells(s, low, high, work, cell)
        for i in range(m * problems):
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
    """Moments in each cell of one grid, of one problem or of every class.

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
    lost = np.zeros(problems * cells * lanes if is_float else 0)
    # Loops: expressions of arrays take seconds to compile, with their messages about shapes.
    if is_float:
        for i in range(only.size):
            only[i] = NONE
    for start in range(0, n, rows):
        m = min(rows, n - start)
        s, y = score_block[: m * problems], hit_block[: m * problems]
        lower, share, x = lower_block[: s.size], share_block[: s.size], x_block[: s.size]
        if prob.ndim == 1:
            s, y = prob[start : start + m], label[start : start + m]
        else:
            spread_classes(prob[start : start + m], label[start : start + m], s, y)
        place(s, grid, lower, x, share)
        if problems > 1:
            for i in range(s.size):
                lower[i] += first_cell[i]
        if is_float:
            note_scores(s, lower, threshold, only)
        w = weight[start : start + m]
        if (w.size > 0) & (problems > 1):
            w = weight_block[: s.size]
            for i in range(s.size):
                w[i] = weight[start + i // problems]
        for q in range(moments):
            moment(kinds[q], s, y, w, threshold, x)
            if grid.convex:
                scatter_shares(lower, x, share, step, lanes, sums[q])
            elif (kinds[q] == WEIGHT) & is_float & (w.size > 0):
                scatter_weights(lower, x, lanes, sums[q], lost)
            else:
                scatter(lower, x, lanes, sums[q])
    for q in range(moments):
        if kinds[q] == WEIGHT:
            for i in range(lost.size):
                sums[q, i] += lost[i]
        for k in range(problems):
            for b in range(cells):
                out[q, k, b] = lane_total(sums[q], k * cells + b, lanes)
