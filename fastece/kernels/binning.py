"""Sums over the cells of a score grid: hard bins and convex (linear) binning, on any edges.

A grid is a list of *knots* in increasing order: the inner bin edges for hard binning, the bin
centres for convex binning. The number of knots that a score has passed says where it goes. Rows are
taken in blocks that stay in the first-level cache: one vectorised loop finds the cells, another
computes what is to be added, and one adds it.
"""

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit

__all__ = ["cell_moments"]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]

BLOCK = 1024
# Eight private accumulators a cell: `sums[cell] += x` in a plain loop waits for the store before
# it (3.4 ns a row), with eight lanes in turn 0.9 ns.
LANES = 8
# Adding and subtracting 1.5 * 2**52 rounds a float64 below 2**51 to the nearest integer, in two
# instructions that vectorise (np.rint does not, in numba).
ROUND = 6755399441055744.0
# Up to this many knots, comparing with every one (0.13 ns each, vectorised) beats bisection.
LINEAR_SEARCH = 48


@jit
def uniform_bins(s: F64, low: float, high: float, n_bins: int, right: bool, cell: I32) -> None:
    """Bin of each score on the edges ``low + (high - low) * (j / n_bins)``, exactly.

    The nearest edge is found by arithmetic and compared with the score: one comparison settles
    the bin, on every edge and both its float neighbours, without a table.
    """
    count = np.float64(n_bins)
    last = count - 1.0
    width = high - low
    scale = count / width
    for i in range(s.size):
        x = s[i]
        j = ((x - low) * scale + ROUND) - ROUND
        edge = low + width * (j / count)
        b = j - (1.0 if (x < edge) | (right & (x == edge)) else 0.0)
        b = 0.0 if b < 0.0 else b
        b = last if b > last else b
        cell[i] = np.int32(b)


@jit
def nearest_knots(s: F64, knots: F64, right: bool, passed: I32) -> None:
    """Number of evenly spaced knots that each score has passed: the nearest one decides."""
    first = knots[0]
    last = knots.size - 1.0
    scale = last / (knots[-1] - first)
    for i in range(s.size):
        j = ((s[i] - first) * scale + ROUND) - ROUND
        j = 0.0 if j < 0.0 else j
        j = last if j > last else j
        passed[i] = np.int32(j)
    for i in range(s.size):
        x = s[i]
        knot = knots[np.uint32(passed[i])]
        passed[i] += np.int32((x > knot) | ((not right) & (x == knot)))


@jit
def search_knots(s: F64, knots: F64, right: bool, passed: I32) -> None:
    """Number of knots that each score has passed, wherever the knots lie."""
    for i in range(s.size):
        passed[i] = 0
    if knots.size <= LINEAR_SEARCH:
        for k in range(knots.size):
            knot = knots[k]
            for i in range(s.size):
                passed[i] += np.int32((s[i] > knot) | ((not right) & (s[i] == knot)))
        return
    step = 1
    while 2 * step <= knots.size:
        step *= 2
    while step > 0:
        for i in range(s.size):
            k = passed[i] + step
            if k <= knots.size:
                knot = knots[k - 1]
                if (s[i] > knot) | ((not right) & (s[i] == knot)):
                    passed[i] = k
        step //= 2


@jit
def convex_shares(s: F64, centres: F64, lower: I32, upper: I32, share: F64) -> None:
    """Share of the lower of the two centres around each score, and the two cells.

    `lower` comes in as the number of centres that the score has reached.
    """
    last = np.int32(centres.size - 1)
    for i in range(s.size):
        above = min(lower[i], last)
        below = max(lower[i] - np.int32(1), np.int32(0))
        left = centres[np.uint32(below)]
        right = centres[np.uint32(above)]
        share[i] = (right - s[i]) / (right - left) if right > left else 1.0
        lower[i] = below
        upper[i] = above


@jit
def place(
    s: F64,
    low: float,
    high: float,
    n_bins: int,
    even: bool,
    knots: F64,
    right: bool,
    convex: bool,
    lower: I32,
    upper: I32,
    share: F64,
) -> None:
    """Cell of each score on any grid: `lower`; with convex mapping two of them, and the share of
    the first."""
    if even & (not convex):
        uniform_bins(s, low, high, n_bins, right, lower)
    elif even:
        nearest_knots(s, knots, right, lower)
    else:
        search_knots(s, knots, right, lower)
    if convex:
        convex_shares(s, knots, lower, upper, share)


@jit
def moment(q: int, s: F64, y: U8, weight: F64 | None, threshold: float, x: F64) -> None:
    """What row i adds to moment `q`: 0 weight * (hit - score), 1 weight, 2 and 3 weight times
    score and hit; nothing where the score is not above the threshold."""
    for i in range(s.size):
        if q == 0:
            term = np.float64(y[i]) - s[i]
        elif q == 1:
            term = 1.0
        elif q == 2:
            term = s[i]
        else:
            term = np.float64(y[i])
        if weight is not None:
            term *= weight[i]
        x[i] = term if s[i] > threshold else 0.0


@jit
def scatter(cell: I32, x: F64, lanes: int, sums: F64) -> None:
    """``sums[cell * lanes + lane] += x``, the lanes, 1 or `LANES`, in turn."""
    whole = cell.size // LANES * LANES
    width = np.uint64(lanes)
    mask = np.uint64(lanes - 1)
    for i in range(0, whole, LANES):
        for lane in range(LANES):
            sums[np.uint64(cell[i + lane]) * width + (np.uint64(lane) & mask)] += x[i + lane]
    for i in range(whole, cell.size):
        sums[np.uint64(cell[i]) * width] += x[i]


@jit
def cell_moments(
    score: F64,
    hit: U8,
    weight: F64 | None,
    low: float,
    high: float,
    n_bins: int,
    even: bool,
    knots: F64,
    right: bool,
    convex: bool,
    threshold: float,
    out: F64,
) -> None:
    """Moments of several problems over the same rows, in each cell of one grid.

    Parameters
    ----------
    score, hit : (n, K) C-contiguous float64 and uint8 arrays
        One column for each problem, so that a class vector is read as it lies in memory.
    weight : (n,) float64 array or None
    low, high, n_bins, even, knots, right, convex
        The grid: `fastece.grids.Grid`, in its order.
    threshold : float
        Scores up to this one do not exist.
    out : (K, Q, cells) float64 array
        The first Q of: sum of w (y - s), w, w s, w y. Overwritten.
    """
    n, problems = score.shape
    moments, cells = out.shape[1], out.shape[2]
    all_scores, all_hits = score.reshape(n * problems), hit.reshape(n * problems)
    # A block is whole rows. Neighbours of different problems need no lanes to be apart.
    rows = max(1, BLOCK // problems)
    lanes = LANES if problems < LANES else 1
    size = rows * problems
    lower_block, upper_block = np.empty(size, np.int32), np.empty(size, np.int32)
    share_block, weight_block = np.empty(size), np.empty(size)
    x_block, part_block = np.empty(size), np.empty(size)
    sums = np.zeros((moments, problems * cells * lanes))
    for start in range(0, n, rows):
        m = min(rows, n - start)
        s = all_scores[start * problems : (start + m) * problems]
        y = all_hits[start * problems : (start + m) * problems]
        lower, upper, share = lower_block[: s.size], upper_block[: s.size], share_block[: s.size]
        x, part, w = x_block[: s.size], part_block[: s.size], weight_block[: s.size]
        place(s, low, high, n_bins, even, knots, right, convex, lower, upper, share)
        if problems > 1:
            for i in range(m):
                for k in range(problems):
                    lower[i * problems + k] += np.int32(k * cells)
                    upper[i * problems + k] += np.int32(k * cells)
        if weight is not None:
            if problems == 1:
                w = weight[start : start + m]
            else:
                for i in range(m):
                    w[i * problems : (i + 1) * problems] = weight[start + i]
        for q in range(moments):
            moment(q, s, y, weight if weight is None else w, threshold, x)
            if convex:
                for i in range(s.size):
                    part[i] = x[i] * share[i]
                    x[i] = x[i] * (1.0 - share[i])
                scatter(lower, part, lanes, sums[q])
                scatter(upper, x, lanes, sums[q])
            else:
                scatter(lower, x, lanes, sums[q])
    for k in range(problems):
        for q in range(moments):
            for b in range(cells):
                total = 0.0
                for lane in range(lanes):
                    total += sums[q, (k * cells + b) * lanes + lane]
                out[k, q, b] = total


@jit
def block_moments(
    terms: F64, lower: I32, upper: I32, share: F64, convex: bool, c: U8, out: F64
) -> None:
    """Moments of one problem in each cell, for several replicates at once.

    Parameters
    ----------
    terms : (Q, n) float64 array
        What each row adds to each moment when it is drawn once.
    lower, upper, share : (n,) arrays
        Where `place` put the rows; the last two are read with `convex` only.
    c : (n, R) uint8 array
        How often each replicate drew each row.
    out : (Q, cells, R) float64 array
        Overwritten. The innermost loop is over replicates, so it vectorises without changing the
        order of any sum.
    """
    out[:] = 0.0
    for q in range(terms.shape[0]):
        for i in range(terms.shape[1]):
            a = share[i] if convex else 1.0
            x = terms[q, i] * a
            for r in range(c.shape[1]):
                out[q, lower[i], r] += x * np.float64(c[i, r])
            if convex:
                x = terms[q, i] * (1.0 - a)
                for r in range(c.shape[1]):
                    out[q, upper[i], r] += x * np.float64(c[i, r])
