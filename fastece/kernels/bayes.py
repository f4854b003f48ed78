"""Laplace fits of a Gaussian process for the calibration curve, and their draws.

The curve is ``logit c = x + b_0 + b_1 t + f`` in C cells of equal weight, f with a prior precision
of five diagonals. Fits with sixteen hyperparameters stand side by side: the innermost loops go over
them, so they vectorise without any sum changing its order.

All that belongs to a cell is one line of one flat array, and positions are unsigned: so the
compiler knows how far apart two numbers are, and needs no checks whether arrays overlap (a
step of 96 cells takes 10 us; with an array for each quantity 40).
"""

import math
from typing import NamedTuple

import numpy as np

from fastece.kernels._jit import jit
from fastece.kernels.arithmetic import exponential, lane_sum, sigmoid, zero
from fastece.typing import F64, I32, U8

# Newton's method ends with a step that changes no logit by more: then its factors, which belong
# to the point before, give the evidence to 1e-6, and what is left to go is the square of this.
SMALL_STEP = 1e-7
# Five or six are enough; where rows deny their scores altogether, a step is two or three logits,
# and there are dozens. Rounding may keep very large problems above SMALL_STEP.
MOST_STEPS = 200
# Ranks may lie on the edge of a cell: which one they belong to must not depend on the scale of the
# weights.
ROUNDING = 1e-7
# Pivots of so many rows are multiplied before a logarithm is taken of them: each is from 1e-12 to
# 1e12 or so, and a logarithm takes as long as twenty products.
PIVOTS = 16
# log(1 + e) = 2 atanh(e / (2 + e)), whose series has these factors: 1e-14 up to e = 1.
ATANH = tuple(2.0 / (2 * k + 1) for k in reversed(range(14)))

# Hyperparameters side by side, and the quantities in a line of them, each sixteen numbers on.
LANES = 16
F, BAND0, BAND1, BAND2, WEIGHT, RESIDUAL, LOWER1, LOWER2, PIVOT, ALONG0, ALONG1, STEP = (
    np.uint64(LANES * j) for j in range(12)
)
SUM00, SUM01, SUM11, REST0, REST1, LINE = (np.uint64(LANES * j) for j in range(12, 18))
LINE2 = np.uint64(2) * LINE


class Cells(NamedTuple):
    """Weight, hits and mean score of the rows of each of C cells; empty ones weigh 0."""

    weight: F64
    hits: F64
    score: F64  # mean


class Fits(NamedTuple):
    """Modes and shapes of the posteriors of the curve, one for each hyperparameter.

    Of each hyperparameter the precision is ``[[A, W T], [T' W, T' W T + line]]`` with T the columns
    (1, t), W the weights of the working response and ``A = precision + W = L D L'``.

    Attributes
    ----------
    state : (blocks, (C + 4) * LINE) float64 array
        Lines of C cells, with two of padding before and after. A line has sixteen numbers of each
        of: f; `BAND`, three entries (c, c), (c, c - 1), (c, c - 2) of the prior precision; `LOWER`,
        two of L; `PIVOT`, 1 / D; `ALONG`, two of ``A**-1 W T``; and what is used on the way.
    line : (blocks, 2, 16) float64 array
        b_0 and b_1.
    line_precision : (blocks, 2, 16) float64 array
        Of their prior.
    schur : (blocks, 3, 16) float64 array
        Precision of b with f integrated out: entries 00, 01, 11.
    log_evidence : (16 blocks,) float64 array
        Before the fit, half the log determinant of the prior precision.
    """

    state: F64
    line: F64
    line_precision: F64
    schur: F64
    log_evidence: F64


@jit
def sum_cells(s: F64, y: U8, w: F64, count: float, cells: Cells, cell: I32) -> None:
    """Sum up sorted rows, equal scores together, in the cells of their mid-ranks.

    Parameters
    ----------
    s, y, w : (n,) arrays
        Scores, hits, and weights, empty where every row counts 1.
    count : float
        The effective number of rows, which the weights are scaled to.
    cells : Cells
        All 0 before.
    cell : (n,) int32 array
        The cell of each row; overwritten.
    """
    n, last = s.size, cells.weight.size - 1
    total = 0.0
    for i in range(n):
        total += w[i] if w.size > 0 else 1.0
    scale, per_weight = count / total, cells.weight.size / total
    below, i = 0.0, 0
    while i < n:
        j, x, weight, hits = i, s[i], 0.0, 0.0
        while j < n and s[j] == x:
            v = w[j] if w.size > 0 else 1.0
            weight += v
            hits += v * y[j]
            j += 1
        c = min(int((below + 0.5 * weight) * per_weight + ROUNDING), last)
        for k in range(i, j):
            cell[k] = c
        cells.weight[c] += scale * weight
        cells.hits[c] += scale * hits
        cells.score[c] += scale * weight * x
        below += weight
        i = j
    for c in range(cells.weight.size):
        if cells.weight[c] > 0.0:
            cells.score[c] /= cells.weight[c]


@jit
def cell_logits(cells: Cells, low: float, high: float, x: F64) -> float:
    """Fill in the logits x (C,) of the mean scores.

    They are cut to ``[low, high]``. Empty cells have those of the cell before, the first ones those
    of the first that is not empty. What is returned is the log likelihood of the logits, ``sum hits
    * x - weight * log(1 + exp(x))``.
    """
    likelihood, first = 0.0, x.size
    for c in range(x.size):
        if cells.weight[c] > 0.0:
            s = cells.score[c]
            odds = s / (1.0 - s) if s < 1.0 else np.inf
            z = math.log(odds) if odds > 0.0 else -np.inf
            x[c] = z = min(max(z, low), high)
            rest = math.log1p(math.exp(-abs(z)))
            likelihood += cells.hits[c] * z - cells.weight[c] * (max(z, 0.0) + rest)
            first = min(first, c)
        elif c > first:
            x[c] = x[c - 1]
    for c in range(first):
        x[c] = x[first]
    return likelihood


@jit
def factorise(p: F64, t: F64, cells: Cells, state: F64) -> None:
    """Turn probabilities p (C * 16,) into the factors of A, on the way down.

    Filled in are the weights of the working response and the gradient, the factors of A, and the
    right sides after forward substitution.
    """
    for c in range(t.size):
        first = np.uint64(c + 2) * LINE
        weight, hits, a = cells.weight[c], cells.hits[c], t[c]
        for g in range(LANES):
            k = first + np.uint64(g)
            up, up2, down, down2 = k - LINE, k - LINE2, k + LINE, k + LINE2
            q = p[c * LANES + g]
            w, residual = weight * q * (1.0 - q), hits - weight * q
            band0, band1, band2 = state[k + BAND0], state[k + BAND1], state[k + BAND2]
            gradient = residual - (
                band0 * state[k]
                + (band1 * state[up] + state[down + BAND1] * state[down])
                + (band2 * state[up2] + state[down2 + BAND2] * state[down2])
            )
            lower2 = band2 * state[up2 + PIVOT]
            entry = band1 - band2 * state[up + LOWER1]
            lower1 = entry * state[up + PIVOT]
            state[k + WEIGHT], state[k + RESIDUAL] = w, residual
            state[k + LOWER1], state[k + LOWER2] = lower1, lower2
            state[k + PIVOT] = 1.0 / (band0 + w - entry * lower1 - band2 * lower2)
            state[k + ALONG0] = w - lower1 * state[up + ALONG0] - lower2 * state[up2 + ALONG0]
            state[k + ALONG1] = w * a - lower1 * state[up + ALONG1] - lower2 * state[up2 + ALONG1]
            state[k + STEP] = gradient - lower1 * state[up + STEP] - lower2 * state[up2 + STEP]


@jit
def substitute(t: F64, state: F64) -> None:
    """Solve for the steps of f by back substitution, in `state`, on the way up.

    Running sums of the terms that the two equations of the line need are made on the way.
    """
    for c in range(t.size - 1, -1, -1):
        first, along = np.uint64(c + 2) * LINE, t[c]
        for g in range(LANES):
            k = first + np.uint64(g)
            down, down2 = k + LINE, k + LINE2
            pivot, l1, l2 = state[k + PIVOT], state[down + LOWER1], state[down2 + LOWER2]
            a0 = state[k + ALONG0] * pivot - l1 * state[down + ALONG0] - l2 * state[down2 + ALONG0]
            a1 = state[k + ALONG1] * pivot - l1 * state[down + ALONG1] - l2 * state[down2 + ALONG1]
            change = state[k + STEP] * pivot - l1 * state[down + STEP] - l2 * state[down2 + STEP]
            state[k + ALONG0], state[k + ALONG1], state[k + STEP] = a0, a1, change
            w, rest = state[k + WEIGHT], state[k + RESIDUAL] - state[k + WEIGHT] * change
            state[k + SUM00] = state[down + SUM00] + w * (1.0 - a0)
            state[k + SUM01] = state[down + SUM01] + w * (along - a1)
            state[k + SUM11] = state[down + SUM11] + w * (along - a1) * along
            state[k + REST0] = state[down + REST0] + rest
            state[k + REST1] = state[down + REST1] + rest * along


@jit
def move(t: F64, b: F64, precision: F64, schur: F64, state: F64) -> float:
    """Take a damped step of lines and curves; return the largest undamped change.

    The sums for the lines end in the first cell. The change is of a logit.

    A whole step of Newton's method may go too far. ``log(1 + m) / m`` of it, with m its largest
    change of a logit, never does for a logistic likelihood (Sun and Tran-Dinh 2019, "Generalized
    self-concordant functions", theorem 2 for nu = 2), and is soon all of it: no objective is
    computed on the way.
    """
    part, change = np.zeros(LANES), np.empty((2, LANES))
    for g in range(LANES):
        k = LINE2 + np.uint64(g)
        s00 = precision[0, g] + state[k + SUM00]
        s01 = state[k + SUM01]
        s11 = precision[1, g] + state[k + SUM11]
        rest0 = state[k + REST0] - precision[0, g] * b[0, g]
        rest1 = state[k + REST1] - precision[1, g] * b[1, g]
        det = s00 * s11 - s01 * s01
        change[0, g] = (s11 * rest0 - s01 * rest1) / det
        change[1, g] = (s00 * rest1 - s01 * rest0) / det
        schur[0, g], schur[1, g], schur[2, g] = s00, s01, s11
    for c in range(t.size):
        first, along = np.uint64(c + 2) * LINE, t[c]
        for g in range(LANES):
            k = first + np.uint64(g)
            d0, d1 = change[0, g], change[1, g]
            state[k + STEP] -= state[k + ALONG0] * d0 + state[k + ALONG1] * d1
        for g in range(LANES):
            k = first + np.uint64(g)
            of_logit = abs(state[k + STEP] + change[0, g] + change[1, g] * along)
            part[g] = max(part[g], of_logit)
    largest = 0.0
    for g in range(LANES):
        m = part[g]
        largest = max(largest, m)
        part[g] = math.log1p(m) / m if m > SMALL_STEP else 1.0
        b[0, g] += part[g] * change[0, g]
        b[1, g] += part[g] * change[1, g]
    for c in range(t.size):
        first = np.uint64(c + 2) * LINE
        for g in range(LANES):
            k = first + np.uint64(g)
            state[k] += part[g] * state[k + STEP]
    return largest


@jit
def add_evidence(
    logit: F64, b: F64, precision: F64, schur: F64, cells: Cells, state: F64, work: F64, out: F64
) -> None:
    """Turn half the log determinants of the prior in `out` into log evidences.

    With Laplace's approximation `out` (16,) gets + log likelihood + log prior - half the log
    determinant of the posterior precision.

    Parameters
    ----------
    logit : (C * 16,) float64 array
        Of the curves at the top of the posterior.
    work : (2, C * 16) float64 array
    """
    rest = work[0]
    for i in range(logit.size):
        rest[i] = -abs(logit[i])
    exponential(rest, work[1])
    for i in range(rest.size):  # log(1 + e), unlike the library's it vectorises
        e = rest[i] / (2.0 + rest[i])
        total = 0.0
        for factor in ATANH:
            total = total * (e * e) + factor
        rest[i] = e * total
    quadratic, product = np.empty(LANES), np.empty(LANES)
    for g in range(LANES):
        quadratic[g] = precision[0, g] * b[0, g] * b[0, g] + precision[1, g] * b[1, g] * b[1, g]
        product[g] = 1.0 / (schur[0, g] * schur[2, g] - schur[1, g] * schur[1, g])
    for c in range(cells.weight.size):
        first, weight, hits = np.uint64(c + 2) * LINE, cells.weight[c], cells.hits[c]
        for g in range(LANES):
            z = logit[c * LANES + g]
            out[g] += hits * z - weight * (max(z, 0.0) + rest[c * LANES + g])
        for g in range(LANES):
            k = first + np.uint64(g)
            half = state[k + BAND1] * state[k - LINE] + state[k + BAND2] * state[k - LINE2]
            quadratic[g] += state[k] * (state[k + BAND0] * state[k] + 2.0 * half)
        for g in range(LANES):
            product[g] *= state[first + np.uint64(g) + PIVOT]
        if c % PIVOTS == 0 or c == cells.weight.size - 1:
            for g in range(LANES):
                out[g] += 0.5 * math.log(product[g])
                product[g] = 1.0
    for g in range(LANES):
        out[g] -= 0.5 * quadratic[g]


@jit
def fit(x: F64, t: F64, cells: Cells, fits: Fits) -> int:
    """Fit the curve of every hyperparameter by Laplace's method; return most steps.

    Each fit begins with the curve that ``f`` and the line in `fits` give. Returned is the number of
    steps of the fit that took most.

    Parameters
    ----------
    x, t : (C,) float64 arrays
        Logits of the scores, and their distance from the mean.
    cells : Cells
    fits : Fits
        With the precisions of the prior; all else is overwritten.
    """
    logit, work = np.empty(x.size * LANES), np.empty((2, x.size * LANES))
    most = 0
    for block in range(fits.state.shape[0]):
        state, b, precision = fits.state[block], fits.line[block], fits.line_precision[block]
        schur, largest, steps = fits.schur[block], np.inf, 0
        while True:
            for c in range(x.size):
                k = np.uint64(c + 2) * LINE
                for g in range(LANES):
                    logit[c * LANES + g] = x[c] + b[0, g] + b[1, g] * t[c] + state[k + np.uint64(g)]
            if largest <= SMALL_STEP or steps == MOST_STEPS:
                break
            sigmoid(logit, logit)
            factorise(logit, t, cells, state)
            substitute(t, state)
            largest = move(t, b, precision, schur, state)
            steps += 1
        most = max(most, steps)
        out = fits.log_evidence[block * LANES : (block + 1) * LANES]
        add_evidence(logit, b, precision, schur, cells, state, work, out)
    return most


@jit
def draw_logits(x: F64, t: F64, fits: Fits, share: F64, normals: F64, logit: F64) -> None:
    """Draw logits of curves from the posterior, a mixture over hyperparameters.

    Parameters
    ----------
    share : (G,) float64 array
        Weights of the hyperparameters, which add up to 1. The draws take theirs in order: draw q
        the one where the sum of the weights passes ``(q + 1/2) / S``.
    normals : (C + 2, S) float64 array
        Standard normal numbers.
    logit : (C, S) float64 array
        Logits of the probability of a hit in each cell; overwritten.
    """
    n_cells, draws = logit.shape
    d0, d1 = np.empty(draws), np.empty(draws)
    begin, passed = 0, 0.0
    zero(logit[n_cells - 1])
    for g in range(share.size):
        passed += share[g]
        end = min(math.floor(passed * draws + 0.5), draws)
        if end <= begin:
            continue
        block, lane = g // LANES, g % LANES
        state, b, schur = fits.state[block], fits.line[block], fits.schur[block]
        l00 = math.sqrt(schur[0, lane])
        l10 = schur[1, lane] / l00
        l11 = math.sqrt(schur[2, lane] - l10 * l10)
        for q in range(begin, end):
            d1[q] = normals[n_cells + 1, q] / l11
            d0[q] = (normals[n_cells, q] - l10 * d1[q]) / l00
        for c in range(n_cells - 1, -1, -1):
            k = np.uint64(c + 2) * LINE + np.uint64(lane)
            scale = math.sqrt(state[k + PIVOT])
            # Beyond the last cell nothing is taken off.
            l1 = state[k + LINE + LOWER1] if c + 1 < n_cells else 0.0
            l2 = state[k + LINE2 + LOWER2] if c + 2 < n_cells else 0.0
            one, two = logit[min(c + 1, n_cells - 1)], logit[min(c + 2, n_cells - 1)]
            for q in range(begin, end):
                logit[c, q] = scale * normals[c, q] - l1 * one[q] - l2 * two[q]
        for c in range(n_cells):
            k = np.uint64(c + 2) * LINE + np.uint64(lane)
            middle = x[c] + state[k] + b[0, lane] + b[1, lane] * t[c]
            by0, by1 = 1.0 - state[k + ALONG0], t[c] - state[k + ALONG1]
            for q in range(begin, end):
                logit[c, q] += middle + by0 * d0[q] + by1 * d1[q]
        begin = end


@jit
def mean_gaps(score: F64, p: F64, out: F64) -> None:
    """Average gaps ``p - score`` over draws p (C, S), their sizes and their signs.

    The means are in `out` (3, C).
    """
    draws = p.shape[1]
    gap = np.empty(draws)
    for c in range(score.size):
        above = 0
        for q in range(draws):
            gap[q] = p[c, q] - score[c]
            above += 1 if gap[q] > 0.0 else 0
        out[0, c], out[2, c] = lane_sum(gap) / draws, 2.0 * above / draws - 1.0
        for q in range(draws):
            gap[q] = abs(gap[q])
        out[1, c] = lane_sum(gap) / draws
