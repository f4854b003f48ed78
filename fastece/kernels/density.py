"""Densities of scores on a grid, and the errors they integrate to.

A density is made in four steps, each a section below::

    scores                      how wide they lie: the bandwidth of Silverman's rule
      -> cells                  rows added up in evenly spaced cells, misses and hits apart
      -> densities              cells smoothed by the kernel, which is reflected at both ends
      -> errors                 the norm of the gap between hits and scores

`density_error` takes all but the first for the rows of one problem. Resampling takes them one by
one, for many replicates at once: the innermost loop is over replicates, "lanes", and vectorises.
Arrays of sums are (L, ..., W) then, L batches of W lanes, so that whatever one step of a kernel
reads and writes stays in the first-level cache.

The cells of a grid, here with five inside the range, go on beyond both ends::

    cell          0     1  |  2     3     4     5     6  |  7     8
    stands for    3     2  |                             |  6     5
                  ghosts   low                       high    ghosts
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import GAUSSIAN, REPLICATES, TRIWEIGHT
from fastece.kernels.arithmetic import BLOCK, ONE, ROUND, THREE, TWO, lane_sum, zero
from fastece.kernels.compiling import jit
from fastece.kernels.moments import even_shares, move_into_range
from fastece.kernels.quantiles import quantile_edges, total_weight
from fastece.kernels.replicates import OrderedRows, add_twice, cuts_of, power_of_two, weights_below
from fastece.kernels.selection import deciding_rows
from fastece.kernels.types import F64, I32, I64, U8

# Bandwidth where all scores are equal, and the smallest that Silverman's rule gives.
MIN_BANDWIDTH = 3e-4
# Distance between the quartiles of a normal distribution, in standard deviations.
IQR_OF_NORMAL = 1.349
# Where each kernel ends, or is less than 1e-6 of its height, in standard deviations; here and below
# in the order Gaussian, triweight, Epanechnikov.
REACH = (5.5, 3.0, math.sqrt(5.0))
# Cells per bandwidth with which an error of norm 1 is right to 1e-3, and how many times as many
# other norms need: they look at ratios of densities, which change within much less than a bandwidth
# where a kernel ends with a slope. scripts/evidence/kde_accuracy.py measures whether they are
# enough: in 300 random cases of each kernel, with norms from 1 to 2, the largest deviation from
# brute force is 0.27, 0.17 and 0.15 of the tolerance, 1e-3 of the value plus 1e-6. A new kernel
# gets numbers with which it stays below 1.
CELLS_PER_BANDWIDTH = (4.5, 6.0, 24.0)
REFINEMENT_OF_RATIOS = (1.0, 1.0, 4.0)
# A kernel this many times as wide as the range is level, to three digits.
MAX_RELATIVE_BANDWIDTH = 10.0
# Grids are made for bandwidths from ``MIN_BANDWIDTH * 2**(level / 4)`` on, so that replicates share
# them; a grid is up to 1.2 times as fine as its bandwidth needs.
LEVELS_PER_OCTAVE = 4.0
# A bandwidth that lies on a level up to rounding belongs to it.
LEVEL_ROUNDING = 1e-9
# Fewer cells than these do not follow the score from one end of the range to the other.
MIN_CELLS = 48
# Cells beyond each end of the range, which cubic shares reach.
GHOSTS = 2
# Share of two equal terms that rounding may leave of their difference.
ROUNDING = 1e-12
# Where the density of the scores is less than this share of its mean over the range, there are too
# few rows for a hit rate.
SUPPORT = 0.01
SIXTH = 1.0 / 6.0


# --- bandwidths -------------------------------------------------------------------------------


@jit
def silverman(weight: float, first: float, second: float, iqr: float, n: float) -> float:
    """Compute the bandwidth of Silverman's rule from sums over the scores.

    ``max(0.0003, min(sd, iqr / 1.349) * (3 n / 4)**(-1/5))`` with ``sd**2 = sum w (s - m)**2 / W *
    n / (n - 1)``; the distance between the quartiles is left out where it is 0 (Silverman 1986,
    section 3.4.2).

    Parameters
    ----------
    weight, first, second : float
        W, and the sums of ``w (s - a)`` and ``w (s - a)**2`` for any centre a among the scores,
        with which squares do not cancel.
    iqr : float
        Distance between the quartiles.
    n : float
        Number of rows, which weights do not change.
    """
    variance = (second - first * (first / weight)) / weight * (n / max(n - 1.0, 1.0))
    width = math.sqrt(max(variance, 0.0))
    if iqr > 0.0:
        width = min(width, iqr / IQR_OF_NORMAL)
    return float(max(MIN_BANDWIDTH, width * (0.75 * n) ** -0.2))


@jit
def add_distances(s: F64, w: F64, centre: float) -> tuple[float, float]:
    """Sum up distances of scores from a centre, and squares; empty weights are 1."""
    terms = np.empty(BLOCK)
    first = 0.0
    second = 0.0
    for start in range(0, s.size, BLOCK):
        scores = s[start : start + BLOCK]
        weight = w[start : start + BLOCK]
        for i in range(scores.size):
            terms[i] = scores[i] - centre
        for i in range(weight.size):
            terms[i] *= weight[i]
        first += lane_sum(terms[: scores.size])
        for i in range(scores.size):
            terms[i] *= scores[i] - centre
        second += lane_sum(terms[: scores.size])
    return first, second


@jit
def scores_inside(s: F64, low: float, high: float) -> F64:
    """Return scores (n,) with those outside a range moved to its nearest end."""
    if (low <= 0.0) & (high >= 1.0):
        return s
    moved = s.copy()
    move_into_range(moved, low, high)
    return moved


@jit
def bandwidth_of_scores(s: F64, w: F64, low: float, high: float, n: float) -> float:
    """Compute Silverman's bandwidth of unsorted scores (n,), moved into [low, high].

    Weights may be empty: every row counts 1.
    """
    moved = scores_inside(s, low, high)
    u, weight = deciding_rows(moved, w, even_shares(4), -np.inf)
    edges = np.empty(5)
    quantile_edges(u, weight, low, high, bool(ONE), edges, np.empty(3))
    total = lane_sum(w) if w.size > 0 else np.float64(s.size)
    first, second = add_distances(moved, w, moved[0])
    return silverman(total, first, second, edges[3] - edges[1], n)


@jit
def bandwidths_of_counts(c: U8, rows: OrderedRows, terms: F64, n: float, out: F64) -> None:
    """Compute Silverman's bandwidth (32 G,) of each replicate from counts of rows.

    Parameters
    ----------
    c : (G, n, 32) uint8 array
        How often each row counts.
    rows : OrderedRows
    terms : (2, n) float64 array
        ``w (s - a)`` and ``w (s - a)**2`` of each row.
    n : float
        Number of rows of a draw.
    out : (32 G,) float64 array
        Overwritten.
    """
    n_rows = rows.u.size
    groups = (n_rows + rows.group - 1) // rows.group
    below = np.empty((power_of_two(groups), REPLICATES))
    edges = np.empty((5, REPLICATES))
    cuts = np.empty((5, REPLICATES), np.int32)
    first = np.empty(REPLICATES)
    second = np.empty(REPLICATES)
    for r in range(REPLICATES):
        edges[0, r] = rows.low
        edges[4, r] = rows.high
    for g in range(c.shape[0]):
        zero(first)
        zero(second)
        weights_below(c[g], rows, below)
        cuts_of(c[g], rows, below, bool(ONE), edges, cuts)
        add_twice(c[g], rows.order, terms[0], terms[1], np.int64(0), n_rows, first, second)
        for r in range(REPLICATES):
            iqr = edges[3, r] - edges[1, r]
            h = silverman(below[groups, r], first[r], second[r], iqr, n)
            out[g * REPLICATES + r] = h


@jit
def bandwidths_of_drawn(u: F64, w: F64, low: float, high: float, n: float, out: F64) -> None:
    """Compute Silverman's bandwidth (R,) of each replicate from lists of drawn rows.

    Parameters
    ----------
    u : (R, size) float64 array
        Scores of the drawn rows, in increasing order.
    w : (R, size) float64 array
        Their weights; empty where every row counts 1.
    low, high : float
        The range of the scores.
    n : float
        Number of rows of a draw.
    out : (R,) float64 array
        Overwritten.
    """
    edges = np.empty(5)
    knots = np.empty(3)
    no_weights = knots[:0]
    for r in range(u.shape[0]):
        weight = no_weights if w.size == 0 else w[r]
        total = np.float64(u.shape[1]) if w.size == 0 else total_weight(weight)
        first, second = add_distances(u[r], weight, u[r, 0])
        quantile_edges(u[r], weight, low, high, bool(ONE), edges, knots)
        out[r] = silverman(total, first, second, edges[3] - edges[1], n)


# --- grids ------------------------------------------------------------------------------------


@jit
def grid_bandwidths(h: F64, per_octave: float, out: F64) -> None:
    """Find the smallest bandwidth (R,) that the grid of each one (R,) is made for."""
    for r in range(h.size):
        level = math.floor(per_octave * math.log2(h[r] / MIN_BANDWIDTH) + LEVEL_ROUNDING)
        out[r] = MIN_BANDWIDTH * 2.0 ** (level / per_octave)


@jit
def cells_needed(kind: int, fineness: float, width: float, h: float) -> float:
    """Return how many cells of a range a kernel needs, not rounded."""
    return float(fineness * CELLS_PER_BANDWIDTH[kind] * width / h)


@jit
def mirrored_cells(count: int, reach: int) -> I32:
    """Return the cell of each position from -reach to count + reach, as an array.

    Cells beyond the ends are images of those inside, as in two mirrors that face each other; the
    cells themselves begin behind the ghosts.
    """
    cell = np.empty(count + 2 * reach, np.int32)
    place = -reach % (2 * count)
    for j in range(cell.size):
        cell[j] = GHOSTS + min(place, 2 * count - 1 - place)
        place = place + 1 if place + 1 < 2 * count else 0
    return cell


# --- cells ------------------------------------------------------------------------------------


@jit
def centre_below(s: float, low: float, step: float, n_cells: int) -> tuple[float, float]:
    """Find the centre below a score, from -1 on, and the place up to the next one."""
    x = (s - low) * (1.0 / step) - 0.5
    last = n_cells - 1.0
    j = (x + ROUND) - ROUND
    j -= 1.0 if j > x else 0.0
    j = -1.0 if j < -1.0 else j
    j = last if j > last else j
    t = x - j
    t = 0.0 if t < 0.0 else t
    return j, 1.0 if t > 1.0 else t


@jit
def place(s: F64, low: float, step: float, n_cells: int, cell: I32, share: F64) -> None:
    """Find the first of four neighbouring cells (n,) of each score, and shares (4, n).

    Centres are ``low + (j + 1/2) step``, and two cells lie before the range. Shares are Lagrange's
    cubic ones, which keep the first three moments. Loops without branches vectorise: 3 ns a row,
    not 12.
    """
    first = share[0]
    second = share[1]
    third = share[2]
    fourth = share[3]
    for i in range(s.size):
        j, second[i] = centre_below(s[i], low, step, n_cells)
        cell[i] = np.int32(j) + np.int32(1)
    for i in range(s.size):
        t = second[i]
        a = t * (t - 1.0)
        b = (t + 1.0) * (t - 2.0)
        first[i] = -a * (t - 2.0) * SIXTH
        second[i] = b * (t - 1.0) * 0.5
        third[i] = -b * t * 0.5
        fourth[i] = a * (t + 1.0) * SIXTH


@jit
def add_rows_to_cells(x: F64, y: U8, w: F64, low: float, step: float, out: F64) -> None:
    """Share rows among cells, and add them up to `out` (2, C), misses and hits apart.

    The shares that `place` gives are polynomials of the place t between two centres, so there are
    four sums between any two: of 1, t, t**2 and t**3, next to each other, which are one addition of
    four numbers. Rows in turn have two of each, as one row after the other would wait for the sum.
    1.8 ns a row, where `place` and `spread` take 9.

    Parameters
    ----------
    x, y, w : (n,) float64, uint8 and float64 arrays
        Scores, outcomes, and weights; empty weights are 1.
    low, step : float
        As in `place`.
    out : (2, C) float64 array
        Added to.
    """
    n_cells = out.shape[1] - 2 * GHOSTS
    block_size = min(x.size, BLOCK)
    line = np.empty(block_size, np.uint32)
    place_between = np.empty(block_size)
    size_of_kind = np.uint32(4 * (n_cells + 1))
    sums = np.zeros(np.uint32(4) * size_of_kind)
    for start in range(0, x.size, BLOCK):  # slices with an end vectorise
        stop = start + BLOCK
        scores = x[start:stop]
        outcome = y[start:stop]
        weight = w[start:stop]
        for i in range(scores.size):
            j, place_between[i] = centre_below(scores[i], low, step, n_cells)
            line[i] = np.uint32(4) * np.uint32(np.int32(j) + np.int32(1))
        for i in range(scores.size):
            t = place_between[i]
            amount = weight[i] if weight.size else 1.0
            kind = np.uint32(outcome[i]) + np.uint32(2) * np.uint32(i & 1)
            k = np.uint64(line[i] + kind * size_of_kind)
            square = t * t * amount
            sums[k] += amount
            sums[k + ONE] += t * amount
            sums[k + TWO] += square
            sums[k + THREE] += t * square
    turns = sums.reshape((2, 2, n_cells + 1, 4))
    for hit in range(2):
        total = out[hit]
        for j in range(n_cells + 1):
            even = turns[0, hit, j]
            odd = turns[1, hit, j]
            amount = even[0] + odd[0]
            first = even[1] + odd[1]
            second = even[2] + odd[2]
            third = even[3] + odd[3]
            total[j] -= (third - 3.0 * second + 2.0 * first) * SIXTH
            total[j + 1] += (third - 2.0 * second - first) * 0.5 + amount
            total[j + 2] -= (third - second - 2.0 * first) * 0.5
            total[j + 3] += (third - first) * SIXTH


@jit
def spread(c: NDArray[Any], hit: U8, cell: I32, share: F64, out: F64) -> None:
    """Add counted rows up in the cells of each replicate, misses and hits apart.

    Parameters
    ----------
    c : (L, n, W) array
        How often each row counts.
    hit, cell, share : (n,) uint8, (n,) int32 and (4, n) float64 arrays
        Outcome of each row, the first of its neighbouring cells, and its shares of them times its
        weight.
    out : (L, 2, C, W) float64 array
        Overwritten.
    """
    sums = out.reshape(out.size)
    zero(sums)
    lanes = np.uint64(c.shape[2])
    cells = np.uint64(out.shape[2])
    amount = np.empty(lanes)
    for batch in range(c.shape[0]):
        counts = c[batch].reshape(c.shape[1] * c.shape[2])
        for i in range(c.shape[1]):
            row = np.uint64(i) * lanes
            for r in range(np.uint64(0), lanes):
                amount[r] = np.float64(counts[row + r])
            k = (np.uint64(2 * batch + hit[i]) * cells + np.uint64(cell[i])) * lanes
            for j in range(share.shape[0]):
                term = share[j, i]
                for r in range(np.uint64(0), lanes):
                    sums[k + r] += term * amount[r]
                k += lanes


@jit
def spread_drawn_rows(
    rows: I32, s: F64, y: U8, v: F64, low: float, step: float, out: F64
) -> None:  # fmt: skip
    """Place drawn rows and add them up in the cells of each replicate.

    Only drawn rows are placed, a replicate at a time, and its sums are next to each other until
    they are complete: cells that are a line of memory apart are too many for the first-level cache.

    Parameters
    ----------
    rows : (L, W, size) int32 array
        Rows of each replicate, each counting once.
    s, y, v : (n,) float64, uint8 and float64 arrays
        Score, outcome and weight of each row; empty weights are 1.
    low, step : float
        As in `place`.
    out : (L, 2, C, W) float64 array
        Overwritten.
    """
    size = rows.shape[2]
    cells = np.uint64(out.shape[2])
    score = np.empty(size)
    begin = np.empty(size, np.uint64)
    cell = np.empty(size, np.int32)
    share = np.empty((4, size))
    first = share[0]
    second = share[1]
    third = share[2]
    fourth = share[3]
    sums = np.empty(2 * cells)
    for batch in range(rows.shape[0]):
        for r in range(rows.shape[1]):
            drawn = rows[batch, r]
            for i in range(size):
                row = np.uint64(drawn[i])
                score[i] = s[row]
                begin[i] = np.uint64(y[row]) * cells
            place(score, low, step, out.shape[2] - 2 * GHOSTS, cell, share)
            if v.size > 0:
                for i in range(size):
                    weight = v[np.uint64(drawn[i])]
                    for j in range(4):
                        share[j, i] *= weight
            zero(sums)
            for i in range(size):
                k = begin[i] + np.uint64(cell[i])
                sums[k] += first[i]
                sums[k + ONE] += second[i]
                sums[k + TWO] += third[i]
                sums[k + THREE] += fourth[i]
            for j in range(np.uint64(0), cells):
                out[batch, 0, j, r] = sums[j]
                out[batch, 1, j, r] = sums[cells + j]


@jit
def gather_lanes(c: U8, lanes: I64, out: U8) -> None:
    """Copy the counts (G, n, 32) of some replicates, by number, to (L, n, W)."""
    for j in range(lanes.size):
        g = lanes[j] // REPLICATES
        r = lanes[j] % REPLICATES
        batch = j // out.shape[2]
        lane = j % out.shape[2]
        for i in range(out.shape[1]):
            out[batch, i, lane] = c[g, i, r]


@jit
def spread_gaps(c: NDArray[Any], s: F64, gap: F64, sums: F64) -> None:
    """Add gaps of rows, drawn c (n, W) times, up in even cells, `sums` (W, C).

    The cells divide [0, 1]. A row is shared linearly by the two cells whose centres are around its
    score, and a share beyond an end belongs to the cell there, its image.
    """
    lanes = np.uint64(sums.shape[0])
    count = sums.shape[1]
    padded = np.empty((count + 2) * sums.shape[0])  # with a cell beyond each end
    zero(padded)
    is_single = lanes == ONE
    for i in range(s.size):
        position = s[i] * count + 0.5
        cell = np.uint64(position)
        upper = (position - np.float64(cell)) * gap[i]
        lower = gap[i] - upper
        row = c[i]
        if is_single:  # a third of the time of loops over one lane
            padded[cell] += lower * row[0]
            padded[cell + ONE] += upper * row[0]
            continue
        k = cell * lanes
        for r in range(np.uint64(0), lanes):
            padded[k + r] += lower * row[r]
            padded[k + lanes + r] += upper * row[r]
    for r in range(sums.shape[0]):
        for j in range(count):
            sums[r, j] = padded[(j + 1) * sums.shape[0] + r]
        sums[r, 0] += padded[r]
        sums[r, count - 1] += padded[(count + 1) * sums.shape[0] + r]


# --- smoothing --------------------------------------------------------------------------------


@jit
def kernel_height(kind: int, u: float) -> float:
    """Return the height of a kernel, 1 in the middle, at u standard deviations."""
    if kind == GAUSSIAN:
        return math.exp(-0.5 * u * u)
    if kind == TRIWEIGHT:
        x = 1.0 - u * u / 9.0
        return x * x * x
    return 1.0 - u * u / 5.0  # Epanechnikov


@jit
def tap_count(kind: int, step: float, h: float) -> int:
    """Return the number of taps M + 1 that a kernel of bandwidth h has."""
    return 1 + max(1, math.ceil(REACH[kind] * h / step))


@jit
def fill_taps(kind: int, step: float, h: F64, taps: F64) -> None:
    """Fill in taps (L, M + 1, W): kernels of bandwidths (L, W), from the middle on.

    Taps are at multiples of `step`. They are 0 from the kernel's reach on, and both halves of a
    kernel add up to 1.
    """
    reach = REACH[kind]
    for batch in range(h.shape[0]):
        for r in range(h.shape[1]):
            scale = step / h[batch, r]
            total = 0.0
            for m in range(taps.shape[1]):
                u = m * scale
                tap = kernel_height(kind, u) if m == 0 or u < reach else 0.0
                taps[batch, m, r] = tap
                total += tap if m == 0 else 2.0 * tap
            for m in range(taps.shape[1]):
                taps[batch, m, r] /= total


@jit
def smooth_line(x: F64, taps: F64, out: F64) -> None:
    """Convolve cells (C,) with the taps (M + 1,) of a kernel into `out` (G,).

    It is `smooth` for one replicate, along the cells: a tenth of the time of a lane. Ghosts are
    added to the cells that they stand for; a single cell is the image of all of them.
    """
    reach = taps.size - 1
    last = GHOSTS + out.size - 1
    for g in range(GHOSTS):
        depth = min(g, out.size - 1)
        x[GHOSTS + depth] += x[GHOSTS - 1 - g]
        x[last - depth] += x[last + 1 + g]
    mirror = mirrored_cells(out.size, reach)
    line = np.empty(mirror.size)
    for q in range(mirror.size):
        line[q] = x[mirror[q]]
    for j in range(out.size):
        out[j] = 0.0
    for m in range(reach + 1):
        left = line[reach - m :]
        right = line[reach + m :]
        tap = taps[m]
        for j in range(out.size):
            out[j] += tap * (left[j] + right[j] if m else left[j])


@jit
def smooth(cells: F64, taps: F64, out: F64) -> None:
    """Convolve the cells of each replicate with a kernel reflected at both ends.

    Parameters
    ----------
    cells : (L, 2, C, W) float64 array
        Weights of misses and hits; those of ghosts are with their images.
    taps : (L, M + 1, W) float64 array
        The kernels from their middles on.
    out : (L, 2, G, W) float64 array
        Overwritten with ``sum_m taps[|m|] cells[mirror[j + M + m]]``, where `mirrored_cells` are
        the cells of positions within and beyond the range.
    """
    count = out.shape[2]
    reach = taps.shape[1] - 1
    mirror = mirrored_cells(count, reach)
    lanes = np.uint64(out.shape[3])
    filled = np.zeros(mirror.size + 1, np.int32)
    for batch in range(cells.shape[0]):
        weights = taps[batch].reshape((reach + 1) * out.shape[3])
        for signal in range(2):
            x = cells[batch, signal].reshape(cells.shape[2] * out.shape[3])
            y = out[batch, signal].reshape(count * out.shape[3])
            for q in range(mirror.size):
                k = np.uint64(mirror[q]) * lanes
                total = 0.0
                for r in range(k, k + lanes):
                    total += abs(x[r])
                filled[q + 1] = filled[q] + (1 if total > 0.0 else 0)
            for j in range(count):
                to = np.uint64(j) * lanes
                middle = np.uint64(mirror[j + reach]) * lanes
                for r in range(np.uint64(0), lanes):
                    y[to + r] = weights[r] * x[middle + r]
                if filled[j + 2 * reach + 1] == filled[j]:
                    continue  # sharp scores leave most cells empty
                # Two cells of either side at a time, so that sums are seldom stored.
                for m in range(1, reach, 2):
                    left = j + reach - m
                    right = j + reach + m
                    a = np.uint64(mirror[left]) * lanes
                    b = np.uint64(mirror[right]) * lanes
                    c = np.uint64(mirror[left - 1]) * lanes
                    d = np.uint64(mirror[right + 1]) * lanes
                    near = np.uint64(m) * lanes
                    far = near + lanes
                    for r in range(np.uint64(0), lanes):
                        inner = weights[near + r] * (x[a + r] + x[b + r])
                        y[to + r] += inner + weights[far + r] * (x[c + r] + x[d + r])
                if reach % 2 == 1:
                    a = np.uint64(mirror[j]) * lanes
                    b = np.uint64(mirror[j + 2 * reach]) * lanes
                    last = np.uint64(reach) * lanes
                    for r in range(np.uint64(0), lanes):
                        y[to + r] += weights[last + r] * (x[a + r] + x[b + r])


@jit
def normalise(smoothed: F64, step: float) -> None:
    """Turn smoothed misses and hits (L, 2, G, W) into densities of scores and hits.

    The density of scores has mass 1. Values below 0, or next to nothing beside the highest point,
    were left by rounding, or by cubic shares where a kernel ends: their ratios mean nothing.
    """
    batches, _, count, lanes = smoothed.shape
    total = np.empty(lanes)
    highest = np.empty(lanes)
    for batch in range(batches):
        f = smoothed[batch, 0]
        g = smoothed[batch, 1]
        zero(total)
        zero(highest)
        for j in range(count):
            for r in range(lanes):
                g[j, r] = max(g[j, r], 0.0)
                f[j, r] = max(f[j, r], 0.0) + g[j, r]
                total[r] += f[j, r]
                highest[r] = max(highest[r], f[j, r])
        for j in range(count):
            for r in range(lanes):
                # Divided twice: weights may be so small that a product or a reciprocal is nothing.
                is_density = f[j, r] > highest[r] * ROUNDING
                f[j, r] = f[j, r] / total[r] / step if is_density else 0.0
                g[j, r] = g[j, r] / total[r] / step if is_density else 0.0


# --- errors -----------------------------------------------------------------------------------


@jit
def mean_size(gap: F64) -> float:
    """Sum up the sizes of the gaps of even cells.

    Where they change their sign, the excess is taken off: there the mean of the sizes of -a and b
    is (a**2 + b**2) / (2 (a + b)).
    """
    size = np.abs(gap)
    excess = np.zeros(gap.size)
    for j in range(gap.size - 1):
        a = size[j]
        b = size[j + 1]
        excess[j] = a * b / (a + b) if gap[j] * gap[j + 1] < 0.0 else 0.0
    return float(lane_sum(size) - lane_sum(excess))


@jit
def gap_at(x: float, f: float, g: float) -> float:
    """Compute the gap ``g - x f`` at score x, 0 where only rounding is left.

    On which side of 0 a remainder of rounding lies means nothing, and must not depend on the order
    of sums.
    """
    u = g - x * f
    return u if abs(u) > ROUNDING * g else 0.0


@jit
def integrand(u: float, f: float, p: float) -> float:
    """Compute ``|u / f|**p f`` of a gap u and density f; 0 without density."""
    if p == 1.0:
        return abs(u)
    gap = abs(u) / f if f > 0.0 else 0.0
    return (gap * gap if p == 2.0 else gap**p) * f


@jit
def crossing(a: float, b: float, f: float, p: float) -> tuple[float, float, float]:
    """Integrate over a unit interval in which u runs in a line from -a to b.

    The density f is above 0. Returned with the integral is how much faster the integrand rises at
    either end than it falls.
    """
    total = a + b
    if p == 1.0:
        return (a * a + b * b) / (2.0 * total), total, total
    near = a / f
    far = b / f
    area = f * (near ** (p + 1.0) + far ** (p + 1.0)) * f / ((p + 1.0) * total)
    return area, p * total * near ** (p - 1.0), p * total * far ** (p - 1.0)


@jit
def between_points(
    x: tuple[float, float], w: tuple[float, float], f: tuple[float, float],
    g: tuple[float, float], p: float,
) -> float:  # fmt: skip
    """Integrate ``|g / f - s|**p f`` from one point to the next.

    Parameters
    ----------
    x, w, f, g : tuple of float
        Scores of both points, widths, and the densities of scores and hits.
    p : float
    """
    u0 = gap_at(x[0], f[0], g[0])
    u1 = gap_at(x[1], f[1], g[1])
    # A sign may change where u is 0: at the very centre of a cell.
    if ((u0 < 0.0) != (u1 < 0.0)) & (f[0] > 0.0) & (f[1] > 0.0):
        area, rise_0, rise_1 = crossing(abs(u0), abs(u1), 0.5 * (f[0] + f[1]), p)
        return 0.5 * (w[0] + w[1]) * (area + (rise_0 + rise_1) / 12.0)
    return 0.5 * (w[0] * integrand(u0, f[0], p) + w[1] * integrand(u1, f[1], p))


@jit
def up_to_end(end: float, x: float, f: float, g: float, p: float) -> float:
    """Integrate from the outermost point, of width 1 and score x, to the range's end."""
    u0 = gap_at(end, f, g)
    u1 = gap_at(x, f, g)
    if (u0 < 0.0) != (u1 < 0.0):
        area, _, rise = crossing(abs(u0), abs(u1), f, p)
        return 0.5 * area + rise / 6.0
    return (5.0 * integrand(u1, f, p) + integrand(u0, f, p)) / 12.0


@jit
def integrate(
    density: F64, score: F64, width: F64, low: float, high: float, p: float, out: F64
) -> None:  # fmt: skip
    """Compute ``(int |g / f - s|**p f ds)**(1/p)`` of each replicate, in `out` (L, W).

    Arguments are those of `density_norms`.

    The trapezoidal rule, corrected by its first Euler-Maclaurin term where it needs it: around
    scores at which g - s f changes its sign, and at both ends, where f and g are level. So a few
    cells a bandwidth give four digits.
    """
    batches, _, count, lanes = density.shape
    zero(out.reshape(out.size))
    for batch in range(batches):
        total = out[batch]
        f = density[batch, 0]
        g = density[batch, 1]
        for j in range(count - 1):
            x = score[j], score[j + 1]
            w = width[j], width[j + 1]
            f0 = f[j]
            f1 = f[j + 1]
            g0 = g[j]
            g1 = g[j + 1]
            for r in range(lanes):
                total[r] += between_points(x, w, (f0[r], f1[r]), (g0[r], g1[r]), p)
        last = count - 1
        for r in range(lanes):
            total[r] += width[0] * up_to_end(low, score[0], f[0, r], g[0, r], p)
            total[r] += width[last] * up_to_end(high, score[last], f[last, r], g[last, r], p)
            if p == 2.0:
                total[r] = math.sqrt(total[r])
            elif p != 1.0:
                total[r] **= 1.0 / p


@jit
def largest_gaps(density: F64, score: F64, low: float, high: float, out: F64) -> None:
    """Find the largest ``|g / f - s|`` of each replicate, in `out` (L, W).

    Scores with a density of less than `SUPPORT` times its mean do not count; without any other the
    gap is nan. From the outermost points to the ends of the range densities are level.
    """
    min_density = SUPPORT / (high - low)
    batches, _, count, lanes = density.shape
    for batch in range(batches):
        largest = out[batch]
        f = density[batch, 0]
        g = density[batch, 1]
        for r in range(lanes):
            largest[r] = -1.0
        for j in range(count):
            x = score[j]
            left = low if j == 0 else x
            right = high if j == count - 1 else x
            for r in range(lanes):
                if f[j, r] >= min_density:
                    rate = g[j, r] / f[j, r]
                    gap = max(abs(rate - x), max(abs(rate - left), abs(rate - right)))
                    largest[r] = max(largest[r], gap)
        for r in range(lanes):
            if largest[r] < 0.0:
                largest[r] = np.nan


@jit
def density_norms(
    density: F64, score: F64, width: F64, low: float, high: float, p: float, out: F64
) -> None:  # fmt: skip
    """Compute the error of the densities of each replicate in a norm from 1 to inf.

    Parameters
    ----------
    density : (L, 2, G, W) float64 array
        Densities f of the scores and g of the hits at some points.
    score, width : (G,) float64 arrays
        The points, and the part of the range that each stands for.
    low, high : float
        The range.
    p : float
        The norm.
    out : (L, W) float64 array
        Overwritten.
    """
    if p == np.inf:
        largest_gaps(density, score, low, high, out)
    else:
        integrate(density, score, width, low, high, p, out)


# --- one problem ------------------------------------------------------------------------------


@jit
def density_error(
    s: F64, y: U8, w: F64, kind: int, fineness: float, low: float, high: float,
    bandwidth: float, p: float,
) -> float:  # fmt: skip
    """Compute the error of the rows of one problem, on a grid that fits.

    Parameters
    ----------
    s, y, w : (n,) float64, uint8 and float64 arrays
        Scores, outcomes, and weights; empty weights are 1.
    kind : int
        The kernel.
    fineness : float
        How many times as fine the grid is as errors of norm 1 need.
    low, high : float
        The range, to whose nearest end scores outside are moved.
    bandwidth : float
    p : float
        The norm.
    """
    moved = scores_inside(s, low, high)
    h = np.full((1, 1), bandwidth)
    finest = np.empty(1)
    grid_bandwidths(h.reshape(1), LEVELS_PER_OCTAVE, finest)
    count = max(math.ceil(cells_needed(kind, fineness, high - low, finest[0])), MIN_CELLS)
    step = (high - low) / count
    h[0, 0] = min(bandwidth, MAX_RELATIVE_BANDWIDTH * (high - low))
    cells = np.zeros((2, count + 2 * GHOSTS))
    add_rows_to_cells(moved, y, w, low, step, cells)
    taps = np.empty((1, tap_count(kind, step, h[0, 0]), 1))
    fill_taps(kind, step, h, taps)
    density = np.empty((1, 2, count, 1))
    for signal in range(2):
        line = density[0, signal].reshape(count)
        smooth_line(cells[signal], taps.reshape(taps.size), line)
    normalise(density, step)
    score = np.empty(count)
    for j in range(count):
        score[j] = low + (high - low) * ((j + 0.5) / count)
    error = np.empty((1, 1))
    density_norms(density, score, np.full(count, step), low, high, p, error)
    return float(error[0, 0])
