"""Densities of scores on a grid, and their integrals, for many replicates at once.

The innermost loop is over replicates, "lanes", and vectorises: arrays of sums are (L, ..., W), L
parts of W lanes, so that what a kernel reaches stays in the first-level cache.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import REPLICATES
from fastece.kernels.arithmetic import BLOCK, ONE, ROUND, THREE, TWO, lane_sum, zero
from fastece.kernels.compiling import jit
from fastece.kernels.quantiles import quantile_edges, total_weight
from fastece.kernels.replicates import OrderedRows, add_twice, cuts_of, power_of_two, weights_below
from fastece.kernels.types import F64, I32, I64, U8

# Kernels, as `fill_taps` knows them.
GAUSSIAN, TRIWEIGHT, EPANECHNIKOV = 0, 1, 2
# Part of two equal terms that rounding may leave of their difference.
ROUNDING = 1e-12
SIXTH = 1.0 / 6.0

# --- spread: how wide scores lie --------------------------------------------------------------


@jit
def spreads(c: U8, rows: OrderedRows, terms: F64, out: F64) -> None:
    """Compute the sums and quartile distance of Silverman's rule by replicate.

    Overwritten is `out` (4, 32 G): of each replicate its weight, its sums of the two `terms` (2,
    n), and the distance between its quartiles.
    Multiplicities c (G, n, 32) are those of the rows; the terms are weight times score, and times
    its square, about some centre.
    """
    n, start, right = rows.u.size, np.int64(0), bool(ONE)
    groups = (n + rows.group - 1) // rows.group
    below = np.empty((power_of_two(groups), REPLICATES))
    edges, cuts = np.empty((5, REPLICATES)), np.empty((5, REPLICATES), np.int32)
    sums, squares = np.empty(REPLICATES), np.empty(REPLICATES)
    for r in range(REPLICATES):
        edges[0, r], edges[4, r] = rows.low, rows.high
    for g in range(c.shape[0]):
        zero(sums)
        zero(squares)
        weights_below(c[g], rows, below)
        cuts_of(c[g], rows, below, right, edges, cuts)
        add_twice(c[g], rows.order, terms[0], terms[1], start, n, sums, squares)
        for r in range(REPLICATES):
            at = g * REPLICATES + r
            out[0, at], out[1, at], out[2, at] = below[groups, r], sums[r], squares[r]
            out[3, at] = edges[3, r] - edges[1, r]


@jit
def distances(s: F64, w: F64, centre: float) -> tuple[float, float]:
    """Sum up distances of scores from a centre, and squares; empty weights are 1."""
    terms, first, second = np.empty(BLOCK), 0.0, 0.0
    for start in range(0, s.size, BLOCK):
        part, weight = s[start : start + BLOCK], w[start : start + BLOCK]
        for i in range(part.size):
            terms[i] = part[i] - centre
        for i in range(weight.size):
            terms[i] *= weight[i]
        first += lane_sum(terms[: part.size])
        for i in range(part.size):
            terms[i] *= part[i] - centre
        second += lane_sum(terms[: part.size])
    return first, second


@jit
def drawn_spreads(u: F64, w: F64, centre: float, low: float, high: float, out: F64) -> None:
    """Compute `spreads` of drawn rows, sorted scores (R, size), into (4, R)."""
    edges, knots, once = np.empty(5), np.empty(3), w.size == 0
    for r in range(u.shape[0]):
        weight = knots[:0] if once else w[r]
        out[0, r] = u.shape[1] if once else total_weight(weight)
        out[1, r], out[2, r] = distances(u[r], weight, centre)
        quantile_edges(u[r], weight, low, high, bool(ONE), edges, knots)
        out[3, r] = edges[3] - edges[1]


# --- binning ----------------------------------------------------------------------------------


@jit
def centre_below(s: float, low: float, step: float, last: float) -> tuple[float, float]:
    """Find the centre below a score, from -1 to `last`, and its place up to the next."""
    x = (s - low) * (1.0 / step) - 0.5
    j = (x + ROUND) - ROUND
    j -= 1.0 if j > x else 0.0
    j = -1.0 if j < -1.0 else j
    j = last if j > last else j
    t = x - j
    t = 0.0 if t < 0.0 else t
    return j, 1.0 if t > 1.0 else t


@jit
def place(s: F64, low: float, step: float, count: int, cubic: bool, cell: I32, share: F64) -> None:
    """Place scores on evenly spaced centres: the first cell and shares of each.

    Centres are ``low + (j + 1/2) step``. Found are the first of four neighbouring cells, of which
    two are before the range, and (4, n) shares: linear ones of the inner two, or Lagrange's cubic
    ones, which keep the first three moments. Loops without branches vectorise: 3 ns a row, not 12.
    """
    first, second, third, fourth = share[0], share[1], share[2], share[3]
    last = count - 1.0
    for i in range(s.size):
        j, second[i] = centre_below(s[i], low, step, last)
        cell[i] = np.int32(j) + np.int32(1)
    if cubic:
        for i in range(s.size):
            t = second[i]
            a, b = t * (t - 1.0), (t + 1.0) * (t - 2.0)
            first[i], fourth[i] = -a * (t - 2.0) * SIXTH, a * (t + 1.0) * SIXTH
            second[i], third[i] = b * (t - 1.0) * 0.5, -b * t * 0.5
    else:
        for i in range(s.size):
            t = second[i]
            first[i], second[i], third[i], fourth[i] = 0.0, 1.0 - t, t, 0.0


@jit
def spread(c: NDArray[Any], hit: U8, cell: I32, share: F64, out: F64) -> None:
    """Add drawn rows up in their cells of each replicate, misses and hits apart.

    Rows are drawn c (L, n, W) times, and sums are in `out` (L, 2, cells, W). `cell` is the first of
    S neighbouring cells of each row, and `share` (S, n) its shares of them, times its weight.
    """
    sums = out.reshape(out.size)
    zero(sums)
    lanes, cells = np.uint64(c.shape[2]), np.uint64(out.shape[2])
    amount = np.empty(lanes)
    for part in range(c.shape[0]):
        counts = c[part].reshape(c.shape[1] * c.shape[2])
        for i in range(c.shape[1]):
            row = np.uint64(i) * lanes
            for r in range(np.uint64(0), lanes):
                amount[r] = np.float64(counts[row + r])
            at = (np.uint64(2 * part + hit[i]) * cells + np.uint64(cell[i])) * lanes
            for k in range(share.shape[0]):
                term = share[k, i]
                for r in range(np.uint64(0), lanes):
                    sums[at + r] += term * amount[r]
                at += lanes


@jit
def spread_scores(
    rows: I32, s: F64, y: U8, v: F64, low: float, step: float, count: int, cubic: bool,
    out: F64,
) -> None:  # fmt: skip
    """Place drawn rows (L, W, size) and add them up in cells, as `spread` does.

    Each counts once. Rows have scores s, hits y and weights v, empty if every row counts 1.
    Only what is drawn is placed, a replicate at a time, and its sums are next to each other until
    they are complete: cells that are a line of memory apart are too many for the first-level cache.
    """
    size, cells = rows.shape[2], np.uint64(out.shape[2])
    score, begin, sums = np.empty(size), np.empty(size, np.uint64), np.empty(2 * cells)
    cell, share = np.empty(size, np.int32), np.empty((4, size))
    first, second, third, fourth = share[0], share[1], share[2], share[3]
    for part in range(rows.shape[0]):
        for r in range(rows.shape[1]):
            drawn = rows[part, r]
            for i in range(size):
                row = np.uint64(drawn[i])
                score[i], begin[i] = s[row], np.uint64(y[row]) * cells
            place(score, low, step, count, cubic, cell, share)
            if v.size > 0:
                for i in range(size):
                    weight = v[np.uint64(drawn[i])]
                    for k in range(4):
                        share[k, i] *= weight
            zero(sums)
            for i in range(size):
                at = begin[i] + np.uint64(cell[i])
                sums[at] += first[i]
                sums[at + ONE] += second[i]
                sums[at + TWO] += third[i]
                sums[at + THREE] += fourth[i]
            for j in range(np.uint64(0), cells):
                out[part, 0, j, r], out[part, 1, j, r] = sums[j], sums[cells + j]


@jit
def share_rows(
    x: F64, y: U8, w: F64, low: float, step: float, count: int, cubic: bool, out: F64
) -> None:
    """Place rows and add them up in cells, misses and hits apart, to `out` (2, C).

    The shares that `place` gives are polynomials of the place t between two centres, so there are
    four sums between any two: of 1, t, t**2 and t**3, next to each other, which are one addition of
    four numbers. Rows in turn have two of each, as one row after the other would wait for the sum.
    With empty weights every row counts 1. 1.8 ns a row, where `place` and `spread` take 9.
    """
    size, last, lines = min(x.size, BLOCK), count - 1.0, np.uint32(4 * (count + 1))
    line, place_in = np.empty(size, np.uint32), np.empty(size)
    sums = np.zeros(np.uint32(4) * lines)
    for start in range(0, x.size, BLOCK):  # whose slices vectorise
        stop = start + BLOCK
        part, outcome, weight = x[start:stop], y[start:stop], w[start:stop]
        for i in range(part.size):
            j, place_in[i] = centre_below(part[i], low, step, last)
            line[i] = np.uint32(4) * np.uint32(np.int32(j) + np.int32(1))
        for i in range(part.size):
            t, amount = place_in[i], weight[i] if weight.size else 1.0
            kind = np.uint32(outcome[i]) + np.uint32(2) * np.uint32(i & 1)
            at_line = np.uint64(line[i] + kind * lines)
            square = t * t * amount
            sums[at_line] += amount
            sums[at_line + ONE] += t * amount
            sums[at_line + TWO] += square
            sums[at_line + THREE] += t * square
    turns = sums.reshape((2, 2, count + 1, 4))
    for hit in range(2):
        total = out[hit]
        for j in range(count + 1):
            a, b = turns[0, hit, j], turns[1, hit, j]
            one, first, second, third = a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]
            if cubic:
                total[j] -= (third - 3.0 * second + 2.0 * first) * SIXTH
                total[j + 1] += (third - 2.0 * second - first) * 0.5 + one
                total[j + 2] -= (third - second - 2.0 * first) * 0.5
                total[j + 3] += (third - first) * SIXTH
            else:
                total[j + 1] += one - first
                total[j + 2] += first


@jit
def gather_lanes(c: U8, lanes: I64, out: U8) -> None:
    """Copy some replicates of multiplicities (G, n, 32) to (L, n, W), by number."""
    for at in range(lanes.size):
        g, r = lanes[at] // REPLICATES, lanes[at] % REPLICATES
        part, to = at // out.shape[2], at % out.shape[2]
        for i in range(out.shape[1]):
            out[part, i, to] = c[g, i, r]


@jit
def spread_gaps(c: NDArray[Any], s: F64, gap: F64, sums: F64) -> None:
    """Add gaps of rows, drawn c (n, W) times, up in even cells, `sums` (W, C).

    The cells divide [0, 1]. A row is shared linearly by the two cells whose centres are around its
    score, and what goes beyond an end belongs to the cell there, its image.
    """
    lanes, count = np.uint64(sums.shape[0]), sums.shape[1]
    inside = np.empty((count + 2) * sums.shape[0])
    zero(inside)
    one = lanes == ONE
    for i in range(s.size):
        place = s[i] * count + 0.5
        cell = np.uint64(place)
        upper = (place - np.float64(cell)) * gap[i]
        lower, row = gap[i] - upper, c[i]
        if one:  # a third of the time of loops over one lane
            inside[cell] += lower * row[0]
            inside[cell + ONE] += upper * row[0]
            continue
        at = cell * lanes
        for r in range(np.uint64(0), lanes):
            inside[at + r] += lower * row[r]
            inside[at + lanes + r] += upper * row[r]
    for r in range(sums.shape[0]):
        for j in range(count):
            sums[r, j] = inside[(j + 1) * sums.shape[0] + r]
        sums[r, 0] += inside[r]
        sums[r, count - 1] += inside[(count + 1) * sums.shape[0] + r]


# --- smoothing --------------------------------------------------------------------------------


@jit
def fill_taps(shape: int, reach: float, step: float, h: F64, is_folded: bool, taps: F64) -> None:
    """Fill in kernels (L, M + 1, W) of bandwidths (L, W), from their middles on.

    Taps are at multiples of `step`. Their standard deviation is the bandwidth. They are cut off at
    `reach` bandwidths, or else behind the last one; both halves add up to 1. If they are folded,
    those beyond the last are added to their images, there and back: without the taps themselves,
    which may be many more than cells.
    """
    last = taps.shape[1] - 1
    zero(taps.reshape(taps.size))
    for part in range(h.shape[0]):
        for r in range(h.shape[1]):
            scale, total = step / h[part, r], 0.0
            m, at, way = 0, 0, 1
            while m == 0 or (m * scale < reach and (is_folded or m <= last)):
                u = m * scale
                if shape == GAUSSIAN:
                    tap = math.exp(-0.5 * u * u)
                elif shape == TRIWEIGHT:
                    rest = 1.0 - u * u / 9.0
                    tap = rest * rest * rest
                else:
                    tap = 1.0 - u * u / 5.0
                # At an end of what is folded the other half is met too.
                is_twice = is_folded and m > 0 and (at == 0 or at == last)
                taps[part, at, r] += 2.0 * tap if is_twice else tap
                total += tap if m == 0 else 2.0 * tap
                m += 1
                at += way
                way = -1 if at == last else 1 if at == 0 else way
            for m in range(last + 1):
                taps[part, m, r] /= total


@jit
def smooth(cells: F64, taps: F64, fold: I32, out: F64) -> None:
    """Convolve cells (L, 2, C, W) with a symmetric kernel of each replicate.

    The `taps` (L, M + 1, W) are the kernels from their middles on, and `out` (L, 2, G, W) is
    ``out[j] = sum_m taps[|m|] cells[fold[j + M + m]]``.
    `fold` (G + 2 M,) gives the cell that each number stands for.
    """
    count, reach, lanes = out.shape[2], taps.shape[1] - 1, np.uint64(out.shape[3])
    filled, line = np.empty(fold.size + 1, np.int32), np.empty(fold.size)
    for part in range(cells.shape[0]):
        weights = taps[part].reshape((reach + 1) * out.shape[3])
        for signal in range(2):
            x = cells[part, signal].reshape(cells.shape[2] * out.shape[3])
            y = out[part, signal].reshape(count * out.shape[3])
            if lanes == ONE:  # along the cells: a tenth of the time
                zero(y)
                for q in range(fold.size):
                    line[q] = x[fold[q]]
                for m in range(reach + 1):
                    left, right, tap = line[reach - m :], line[reach + m :], weights[m]
                    for j in range(count):
                        y[j] += tap * (left[j] + right[j] if m else left[j])
                continue
            filled[0] = 0
            for q in range(fold.size):
                at, total = np.uint64(fold[q]) * lanes, 0.0
                for r in range(at, at + lanes):
                    total += abs(x[r])
                filled[q + 1] = filled[q] + (1 if total > 0.0 else 0)
            for j in range(count):
                to = np.uint64(j) * lanes
                middle = np.uint64(fold[j + reach]) * lanes
                for r in range(np.uint64(0), lanes):
                    y[to + r] = weights[r] * x[middle + r]
                if filled[j + 2 * reach + 1] == filled[j]:
                    continue  # sharp scores leave most cells empty
                # Two cells of either side at a time, so that sums are seldom stored.
                for m in range(1, reach, 2):
                    left, right = j + reach - m, j + reach + m
                    a, b = np.uint64(fold[left]) * lanes, np.uint64(fold[right]) * lanes
                    c, d = np.uint64(fold[left - 1]) * lanes, np.uint64(fold[right + 1]) * lanes
                    near = np.uint64(m) * lanes
                    far = near + lanes
                    for r in range(np.uint64(0), lanes):
                        inner = weights[near + r] * (x[a + r] + x[b + r])
                        y[to + r] += inner + weights[far + r] * (x[c + r] + x[d + r])
                if reach % 2 == 1:
                    a, b = np.uint64(fold[j]) * lanes, np.uint64(fold[j + 2 * reach]) * lanes
                    last = np.uint64(reach) * lanes
                    for r in range(np.uint64(0), lanes):
                        y[to + r] += weights[last + r] * (x[a + r] + x[b + r])


@jit
def squared_sums(taps: F64, fold: I32, x: F64, out: F64) -> None:
    """Smooth weights of cells (C, Q) with squared taps into points, `out` (G, Q).

    The tap of a cell at point j is the sum of the taps of all its images, which must be added up
    before they are squared.

    Parameters
    ----------
    taps : (M + 1,) float64 array
        A symmetric kernel from its middle on.
    fold : (G + 2 M,) int32 array
        The cell that each number stands for.
    x : (C, Q) float64 array
        Weights, of several kinds.
    out : (G, Q) float64 array
        Overwritten.
    """
    reach = taps.size - 1
    brought = np.zeros(x.shape[0])
    for j in range(out.shape[0]):
        for m in range(-reach, reach + 1):
            brought[fold[j + reach + m]] += taps[abs(m)]
        for q in range(out.shape[1]):
            out[j, q] = 0.0
        for m in range(-reach, reach + 1):
            at = fold[j + reach + m]
            for q in range(out.shape[1]):
                out[j, q] += brought[at] * brought[at] * x[at, q]
            brought[at] = 0.0


@jit
def normalise(smoothed: F64, step: float) -> None:
    """Turn smoothed misses and hits (L, 2, G, W) into densities of scores and hits.

    The density of scores has mass 1. Values below 0, or next to nothing beside the highest point,
    were left by rounding, or by cubic shares where a kernel ends: their ratios mean nothing.
    """
    parts, _, count, lanes = smoothed.shape
    total, highest = np.empty(lanes), np.empty(lanes)
    for part in range(parts):
        f, g = smoothed[part, 0], smoothed[part, 1]
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
                kept = f[j, r] > highest[r] * ROUNDING
                f[j, r] = f[j, r] / total[r] / step if kept else 0.0
                g[j, r] = g[j, r] / total[r] / step if kept else 0.0


# --- integrating ------------------------------------------------------------------------------


@jit
def mean_size(gap: F64) -> float:
    """Sum up the sizes of the gaps of even cells.

    Where they change their sign, the excess is taken off: there the mean of the sizes of -a and b
    is (a**2 + b**2) / (2 (a + b)).
    """
    size, excess = np.abs(gap), np.zeros(gap.size)
    for j in range(gap.size - 1):
        a, b = size[j], size[j + 1]
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
    near, far = a / f, b / f
    area = f * (near ** (p + 1.0) + far ** (p + 1.0)) * f / ((p + 1.0) * total)
    return area, p * total * near ** (p - 1.0), p * total * far ** (p - 1.0)


@jit
def integrate(
    density: F64, score: F64, width: F64, low: float, high: float, p: float, out: F64
) -> None:
    """Integrate ``|g / f - s|**p f`` from `low` to `high`, in `out` (L, W).

    The densities f of the scores and g of the hits (L, 2, G, W) are at the centres `score` of cells
    of these widths.

    The trapezoidal rule, corrected by its first Euler-Maclaurin term where it needs it: around
    scores at which g - s f changes its sign, and at both ends, where f and g are level. So a few
    cells a bandwidth give four digits.
    """
    parts, _, count, lanes = density.shape
    zero(out.reshape(out.size))
    for part in range(parts):
        total, f, g = out[part], density[part, 0], density[part, 1]
        for j in range(count - 1):
            x0, x1 = score[j], score[j + 1]
            w0, w1 = width[j], width[j + 1]
            f0, f1, g0, g1 = f[j], f[j + 1], g[j], g[j + 1]
            for r in range(lanes):
                u0, u1 = gap_at(x0, f0[r], g0[r]), gap_at(x1, f1[r], g1[r])
                # A sign may change where u is 0: at the very centre of a cell.
                if ((u0 < 0.0) != (u1 < 0.0)) & (f0[r] > 0.0) & (f1[r] > 0.0):
                    a, b, mean = abs(u0), abs(u1), 0.5 * (f0[r] + f1[r])
                    area, rise_a, rise_b = crossing(a, b, mean, p)
                    total[r] += 0.5 * (w0 + w1) * (area + (rise_a + rise_b) / 12.0)
                else:
                    total[r] += 0.5 * (w0 * integrand(u0, f0[r], p) + w1 * integrand(u1, f1[r], p))
        for end in range(2):
            j, wall = (0, low) if end == 0 else (count - 1, high)
            for r in range(lanes):
                mean = f[j, r]
                u0, u1 = gap_at(wall, mean, g[j, r]), gap_at(score[j], mean, g[j, r])
                if (u0 < 0.0) != (u1 < 0.0):
                    a, b = abs(u0), abs(u1)
                    area, _, rise = crossing(a, b, mean, p)
                    total[r] += width[j] * (0.5 * area + rise / 6.0)
                else:
                    inner, outer = integrand(u1, mean, p), integrand(u0, mean, p)
                    total[r] += width[j] * (5.0 * inner + outer) / 12.0
