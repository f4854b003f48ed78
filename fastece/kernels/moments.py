"""Sums of what rows bring to the cells of a grid, from the caller's arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit
from fastece.kernels.binning import (
    FLOAT,
    LANES,
    float_cells,
    moment,
    place,
    scatter,
    scatter_shares,
    scatter_weights,
)
from fastece.kernels.reading import read

__all__ = ["cell_moments", "rows_in_cells"]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]

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
    prob: NDArray[Any],
    label: NDArray[Any],
    tolerance: float,
    low: float,
    high: float,
    wanted: U8,
    row: NDArray[np.int64],
    problem: I32,
    score: F64,
    hit: U8,
) -> int:
    """Find the rows in some cells of the float grid.

    Parameters
    ----------
    prob, label, tolerance
        Clean rows, as `reading.read` takes them.
    low, high : float
        Range of the grid.
    wanted : (K cells,) uint8 array
        1 for the cells of each problem that are asked for.
    row, problem, score, hit : (n K,) arrays
        Position, problem, score and hit of each; overwritten, as far as there are such rows.

    Returns
    -------
    int
        Their number.
    """
    n = label.size
    problems = prob.size // n
    cells = wanted.size // problems
    rows = min(n, max(1, BLOCK // problems))
    size = rows * problems
    s, y, work = np.empty(size), np.empty(size, np.uint8), np.empty(size)
    cell = np.empty(size, np.int32)
    first_cell = first_cells(rows, problems, cells)
    count = 0
    for start in range(0, n, rows):
        m = min(rows, n - start)
        part = slice(start, start + m)
        read(prob[part], label[part], tolerance, s[: m * problems], y[: m * problems])
        float_cells(s[: m * problems], low, high, work, cell)
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
    prob: NDArray[Any],
    label: NDArray[Any],
    weight: F64 | None,
    tolerance: float,
    low: float,
    high: float,
    n_bins: int,
    spacing: int,
    knots: F64,
    right: bool,
    convex: bool,
    threshold: float,
    only: F64,
    out: F64,
) -> bool:
    """Moments in each cell of one grid, of one problem or of every class, from the rows as they lie
    in memory; False, and nothing of use in `out`, if a row is not clean.

    Parameters
    ----------
    prob, label, weight, tolerance
        The rows: `fastece.protocol.Rows`, in its order.
    low, high, n_bins, spacing, knots, right, convex
        The grid: `fastece.binned.edges.Grid`, in its order.
    threshold : float
        Scores up to this one do not exist.
    only : (K cells,) float64 array
        On a float grid: overwritten with the score of each cell where it has but one, `NONE` or
        `SEVERAL` where not. Not read on another grid.
    out : (Q, K, cells) float64 array
        The first Q of: sum of w (y - s), w, w s, w y. Overwritten.
    """
    n = label.size
    moments, problems, cells = out.shape
    # A block is whole rows. Neighbours of different problems need no lanes to be apart.
    rows = min(n, max(1, BLOCK // problems))
    lanes = 1 if problems >= LANES else LANES if cells <= FEW_CELLS else 2
    step = 1 if knots.size > 1 else 0
    size = rows * problems
    score, hit = np.empty(size), np.empty(size, np.uint8)
    lower_block, first_cell = np.empty(size, np.int32), first_cells(rows, problems, cells)
    share_block, weight_block, x_block = np.empty(size), np.empty(size), np.empty(size)
    sums = np.zeros((moments, problems * cells * lanes))
    lost = np.zeros(problems * cells * lanes if spacing == FLOAT else 0)
    # Loops: expressions of arrays take seconds to compile, with their messages about shapes.
    if spacing == FLOAT:
        for i in range(only.size):
            only[i] = NONE
    for start in range(0, n, rows):
        m = min(rows, n - start)
        s, y = score[: m * problems], hit[: m * problems]
        lower, share, x = lower_block[: s.size], share_block[: s.size], x_block[: s.size]
        rows_of = slice(start, start + m)
        if not read(prob[rows_of], label[rows_of], tolerance, s, y):
            return False  # what is no score has no cell
        place(s, low, high, n_bins, spacing, knots, right, convex, lower, x, share)
        if problems > 1:
            for i in range(s.size):
                lower[i] += first_cell[i]
        if spacing == FLOAT:
            note_scores(s, lower, threshold, only)
        w = weight_block[: s.size]
        if weight is not None:
            if problems == 1:
                w = weight[start : start + m]
            else:
                for i in range(m):
                    w[i * problems : (i + 1) * problems] = weight[start + i]
        for q in range(moments):
            moment(q, s, y, weight if weight is None else w, threshold, x)
            if convex:
                scatter_shares(lower, x, share, step, lanes, sums[q])
            elif (q == 1) & (spacing == FLOAT) & (weight is not None):
                scatter_weights(lower, x, lanes, sums[q], lost)
            else:
                scatter(lower, x, lanes, sums[q])
    if moments > 1:
        for i in range(lost.size):
            sums[1, i] += lost[i]
    for q in range(moments):
        for k in range(problems):
            for b in range(cells):
                total = 0.0
                for lane in range(lanes):
                    total += sums[q, (k * cells + b) * lanes + lane]
                out[q, k, b] = total
    return True
