"""Place scores in cells: loops over a block of rows that vectorise."""

from typing import NamedTuple

import numpy as np

from fastece.kernels.arithmetic import ROUND
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I32

# Up to this many knots, a multiple of four, comparing with every one (0.07 ns each, vectorised)
# beats bisection.
LINEAR_SEARCH = 48
# Multiplying by 2**27 + 1 and subtracting splits a float64 into halves (Dekker 1971).
SPLIT = 134217729.0


class Grid(NamedTuple):
    """Cells of scores, given by a list of knots in increasing order.

    Python passes a grid to kernels as a plain tuple of its fields, and kernels make it a `Grid`
    again: numba looks at the type of a named tuple in Python, which takes 0.7 us a call, a sixth of
    `ece` of 100 rows.

    Attributes
    ----------
    low, high : float
        Range that the bins divide.
    n_bins : int
        Number of bins.
    even : bool
        The knots are evenly spaced, so that arithmetic finds the nearest one.
    knots : float64 array
        With hard mapping the inner cuts, which are read unless they are even: the number of those
        that a score has passed is its cell. With convex mapping the distinct bin centres.
    right : bool
        A score passes a knot when it is greater; else when it is not less.
    convex : bool
        A score is shared by the two centres around it.
    """

    low: float
    high: float
    n_bins: int
    even: bool
    knots: F64
    right: bool
    convex: bool


GridFields = tuple[float, float, int, bool, F64, bool, bool]


@jit
def uniform_bins(s: F64, low: float, high: float, n_bins: int, right: bool, cell: I32) -> None:
    """Find the bin of each score among equal-width bins, exactly.

    The edges are ``low + (high - low) * (j / n_bins)``.

    The nearest edge is found by arithmetic and compared with the score: one comparison settles
    the bin, on every edge and both its float neighbours, without a table.

    With ``1 / n_bins`` in two parts, a and b, ``j * a + j * b`` is ``j / n_bins`` to the last bit,
    up to 2**26 bins: j * a is exact, and the sum is within 2**-78 of the quotient, which is further
    than that from every midpoint of two floats. Two products are faster than a division.
    """
    count = np.float64(n_bins)
    last = count - 1.0
    width = high - low
    scale = count / width
    part = (1.0 / count) * SPLIT
    a = part - (part - 1.0 / count)
    b = (1.0 - a * count) / count
    for i in range(s.size):
        x = s[i]
        j = ((x - low) * scale + ROUND) - ROUND
        edge = low + width * (j * a + j * b)
        below = (x <= edge) if right else (x < edge)
        j -= 1.0 if below else 0.0
        j = 0.0 if j < 0.0 else j
        j = last if j > last else j
        cell[i] = np.int32(j)


@jit
def search_knots(s: F64, knots: F64, right: bool, passed: I32) -> None:
    """Count the knots that each score has passed, wherever the knots lie."""
    for i in range(s.size):
        passed[i] = 0
    if knots.size <= LINEAR_SEARCH:
        last = np.empty(LINEAR_SEARCH)
        for k in range(LINEAR_SEARCH):
            last[k] = np.inf  # beyond the knots: no score has passed it
        for k in range(knots.size):  # the largest score that has not passed it
            last[k] = knots[k] if right else np.nextafter(knots[k], -np.inf)
        for k in range(0, knots.size, 4):  # four at once: half the time of one after the other
            a = last[k]
            b = last[k + 1]
            c = last[k + 2]
            d = last[k + 3]
            for i in range(s.size):
                x = s[i]
                passed[i] += np.int32(x > a) + np.int32(x > b) + np.int32(x > c) + np.int32(x > d)
        return
    step = 1
    while 2 * step <= knots.size:
        step *= 2
    while step > 0:
        for i in range(s.size):
            k = passed[i] + step
            knot = knots[np.uint64(min(k, knots.size) - 1)]
            # no branch: it would be mispredicted half of the time
            is_passed = (s[i] > knot) | ((not right) & (s[i] == knot))
            passed[i] = k if is_passed & (k <= knots.size) else passed[i]
        step //= 2


@jit
def even_cells(s: F64, grid: Grid, lower: I32) -> None:
    """Find the lower of the two evenly spaced centres around each score.

    On a centre, it may be that centre or the one before: both give the centre all of the score.
    """
    first = grid.knots[0]
    last = grid.knots.size - 2.0
    scale = (grid.knots.size - 1.0) / (grid.knots[-1] - first)
    for i in range(s.size):
        j = ((s[i] - first) * scale - 0.5 + ROUND) - ROUND
        j = 0.0 if j < 0.0 else j
        j = last if j > last else j
        lower[i] = np.int32(j)


@jit
def search_cells(s: F64, grid: Grid, lower: I32) -> None:
    """Find the cell of each score between knots that lie anywhere.

    With convex mapping it is the lower of the two centres around the score.
    """
    search_knots(s, grid.knots, grid.right, lower)
    if grid.convex:
        last = np.int32(max(grid.knots.size - 2, 0))
        for i in range(s.size):
            j = lower[i] - np.int32(1)
            j = np.int32(0) if j < 0 else j
            lower[i] = last if j > last else j


@jit
def lower_shares(s: F64, grid: Grid, lower: I32, work: F64, share: F64) -> None:
    """Compute the share of each score in the lower of its two centres."""
    step = np.uint64(1 if grid.knots.size > 1 else 0)  # a single centre has all
    for i in range(s.size):  # a loop of its own, so that the other one vectorises
        j = np.uint64(lower[i])
        work[i] = grid.knots[j]
        share[i] = grid.knots[j + step]
    for i in range(s.size):
        left = work[i]
        right = share[i]
        a = (right - s[i]) / (right - left) if right > left else 1.0
        a = 0.0 if a < 0.0 else a
        share[i] = 1.0 if a > 1.0 else a


@jit
def place(s: F64, grid: Grid, lower: I32, work: F64, share: F64) -> None:
    """Find the cell of each score, and with convex mapping its share.

    Parameters
    ----------
    s : (n,) float64 array
    grid : Grid
    lower : (n,) int32 array
        Overwritten with the cell; with convex mapping that is the lower of the two centres around
        the score, and the next one has the remainder.
    work : (n,) float64 array
        Work space.
    share : (n,) float64 array
        Overwritten with convex mapping.
    """
    if not grid.even:
        search_cells(s, grid, lower)
    elif grid.convex:
        even_cells(s, grid, lower)
    else:
        uniform_bins(s, grid.low, grid.high, grid.n_bins, grid.right, lower)
    if grid.convex:
        lower_shares(s, grid, lower, work, share)
