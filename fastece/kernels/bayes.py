"""Cells of rows, and Laplace fits of a Gaussian process for the calibration curve.

Rows are summed in C cells of equal weight, (3, C) arrays whose lines are the weight, the hits and
the mean score of each cell; an empty cell has three zeros.

The curve is ``logit c = x + b_0 + b_1 t + f`` in these cells, f with a prior precision of five
diagonals. Fits with sixteen hyperparameters stand side by side: the innermost loops go over them,
so they vectorise, and no sum changes its order.

The posterior precision of a fit is ``[[A, W T], [T' W, T' W T + line]]`` with T the columns (1, t),
W the weights of the working response and ``A = precision + W = L D L'``.

All numbers of a cell are one line of one flat array, the state ((C + 4) * LINE,), and positions are
unsigned: so the compiler knows how far apart two numbers are, and needs no checks whether arrays
overlap (a step of 96 cells takes 8 us; with an array for each quantity 40). A line has sixteen
numbers, one for each hyperparameter, of each of these twelve quantities::

    F               the curve f
    LOWER1, LOWER2  entries of the factor L, one and two cells up
    PIVOT           1 / D
    ALONG0, ALONG1  the columns of W T, on the way to A**-1 W T
    STEP            the gradient, on the way to the step of f
    SUM00 ... REST1 running sums for the two equations of the line b

Two lines before the first cell and after the last repeat the cells as in a mirror. The numbers of
the lines b stand in an array of their own, quantity by quantity::

    B0, B1                     the changes of the logit
    SCHUR00, SCHUR01, SCHUR11  the entries of their precision with f integrated out
    DAMPING, PRODUCT           work space of a step, and of the evidence
"""

import math
from typing import Any

import numpy as np

from fastece.kernels.arithmetic import exponential, lane_sum
from fastece.kernels.compiling import jit
from fastece.kernels.errors import add_norm
from fastece.kernels.types import F64, I32, U8

# Ranks may lie on the edge of a cell: which cell they belong to must not depend on the scale of the
# weights.
ROUNDING = 1e-7
# A grid of fine cells has 2**7 cells in each of 54 octaves below 0.5, and as many above.
OCTAVES = 54
CELL_BITS = 7
FINE_CELLS = 2 * (OCTAVES << CELL_BITS)
SMALLEST_DISTANCE = 0.5**OCTAVES
# The exponent and the first bits of a float, shifted down by so many bits, tell its fine cell.
SHIFT = 52 - CELL_BITS
# The lowest fine cell, in units of these bits.
FIRST_BITS = (1023 - OCTAVES) << CELL_BITS
# Rows that are put in fine cells together.
FINE_BLOCK = 512
# A score of 0 or 1 has this logit, where it is not cut further: with it a hit or a miss is as
# impossible as a float64 can say.
INFINITE_LOGIT = 700.0
# Newton's method ends with a step that changes no logit by more: then its factors, which belong
# to the point before, give the evidence to 1e-6, and the remaining distance is the square of this.
SMALL_STEP = 1e-7
# Five or six steps are enough; where rows deny their scores altogether, a step is two or three
# logits, and there are dozens. Rounding may keep very large problems above SMALL_STEP.
MAX_STEPS = 200
# Pivots of this many rows are multiplied before a logarithm is taken of them: each is from 1e-12 to
# 1e12 or so, and a logarithm takes as long as twenty products.
PIVOTS_PER_LOGARITHM = 16
# log(1 + e) = 2 atanh(e / (2 + e)), whose series has these factors: 1e-14 up to e = 1.
ATANH = tuple(2.0 / (2 * k + 1) for k in reversed(range(14)))

# Hyperparameters side by side, and where each quantity begins in the line of a cell.
LANES = np.uint64(16)
F, LOWER1, LOWER2, PIVOT, ALONG0, ALONG1, STEP = (LANES * j for j in range(7))
SUM00, SUM01, SUM11, REST0, REST1, LINE = (LANES * j for j in range(7, 13))
# On the way up the sums are over, and their place has the changes of b_0 and b_1, and the largest
# change of a logit.
CHANGE0 = SUM00
CHANGE1 = SUM01
LARGEST = SUM11
LINE2 = LINE + LINE
# Where each quantity of the lines b begins.
B0, B1, SCHUR00, SCHUR01, SCHUR11, DAMPING, PRODUCT = (LANES * j for j in range(7))
LINE_QUANTITIES = 7
# Rows of the prior precision that differ: the first two, all in the middle, and the last two; and
# their entries on the diagonal and to its left.
MIDDLE = 2
BAND1, BAND2, BANDS = (LANES * j for j in range(1, 4))
# Unsigned, as positions are.
ZERO = np.uint64(0)


# --- rows in cells --------------------------------------------------------------------------


@jit
def sum_cells(s: F64, y: U8, w: F64, count: float, n_cells: int) -> tuple[F64, I32]:
    """Sum up sorted rows, equal scores together, in the cells of their mid-ranks.

    Parameters
    ----------
    s, y, w : (n,) arrays
        Scores, hits, and weights, empty where every row counts 1.
    count : float
        The effective number of rows, which the weights are scaled to.
    n_cells : int

    Returns
    -------
    cells : (3, C) float64 array
    cell : (n,) int32 array
        The cell of each row.
    """
    n = s.size
    cells = np.zeros((3, n_cells))
    cell = np.empty(n, np.int32)
    total = lane_sum(w) if w.size > 0 else np.float64(n)
    scale = count / total
    cells_per_weight = n_cells / total
    below = weight = hits = 0.0
    first = 0
    for i in range(n):
        v = w[i] if w.size > 0 else 1.0
        weight += v
        hits += v * y[i]
        if i + 1 < n and s[i + 1] == s[i]:
            continue
        c = min(int((below + 0.5 * weight) * cells_per_weight + ROUNDING), n_cells - 1)
        for k in range(first, i + 1):
            cell[k] = c
        cells[0, c] += scale * weight
        cells[1, c] += scale * hits
        cells[2, c] += scale * weight * s[i]
        below += weight
        weight = hits = 0.0
        first = i + 1
    for c in range(n_cells):
        if cells[0, c] > 0.0:
            cells[2, c] /= cells[0, c]
    return cells, cell


@jit
def find_fine_cells(s: F64, low: float, high: float, fine: I32) -> None:
    """Find the fine cell of each score; fine cells rise with the score.

    Scores are first moved into [low, high]. The cell is given by the exponent and the first 7 bits:
    of s below 0.5, and above it of 1 - s, which is exact. So cells get finer towards 0 and 1, and
    none is wider than a hundredth of its distance from them.
    """
    last = np.int32(FINE_CELLS - 1)
    for i in range(s.size):
        x = s[i]
        x = low if x < low else x
        x = high if x > high else x
        distance = x if x < 0.5 else 1.0 - x
        distance = distance if distance > SMALLEST_DISTANCE else SMALLEST_DISTANCE
        j = np.int32((np.float64(distance).view(np.int64) >> SHIFT) - FIRST_BITS)
        fine[i] = j if x < 0.5 else last - j


@jit
def sum_fine_cells(s: F64, y: U8, w: F64, low: float, high: float, sums: F64) -> None:
    """Add rows in any order to sums in fine cells.

    The sums (FINE_CELLS, 3) are of w, w y and w s. `w` is empty where every row counts 1.
    """
    fine_block = np.empty(FINE_BLOCK, np.int32)
    for start in range(0, s.size, FINE_BLOCK):
        score = s[start : start + FINE_BLOCK]
        hit = y[start : start + FINE_BLOCK]
        weight = w[start : start + FINE_BLOCK]
        fine = fine_block[: score.size]
        find_fine_cells(score, low, high, fine)
        for i in range(score.size):
            k = np.uint32(fine[i])
            v = weight[i] if w.size > 0 else 1.0
            sums[k, 0] += v
            sums[k, 1] += v * hit[i]
            sums[k, 2] += v * score[i]


@jit
def join_fine_cells(sums: F64, count: float, n_cells: int) -> tuple[F64, I32]:
    """Join fine cells, by the mid-ranks of their rows, to cells of equal weight.

    Fine cells are narrower than a hundredth of the distance from 0 or 1, so that the rows in one
    may be taken as rows of one score.

    Parameters
    ----------
    sums : (FINE_CELLS, 3) float64 array
        The sums of w, w y and w s.
    count : float
        The effective number of rows, which the weights are scaled to.
    n_cells : int

    Returns
    -------
    cells : (3, C) float64 array
    cell : (FINE_CELLS,) int32 array
        The cell of each fine cell.
    """
    cells = np.zeros((3, n_cells))
    cell = np.empty(FINE_CELLS, np.int32)
    total = 0.0
    for k in range(FINE_CELLS):
        total += sums[k, 0]
    scale = count / total
    cells_per_weight = n_cells / total
    below = 0.0
    for k in range(FINE_CELLS):
        weight = sums[k, 0]
        c = min(int((below + 0.5 * weight) * cells_per_weight + ROUNDING), n_cells - 1)
        cell[k] = c
        for j in range(3):
            cells[j, c] += scale * sums[k, j]
        below += weight
    for c in range(n_cells):
        # Rounding may take sums out of their range.
        cells[1, c] = min(cells[1, c], cells[0, c])
        if cells[0, c] > 0.0:
            cells[2, c] = min(cells[2, c] / cells[0, c], 1.0)
    return cells, cell


@jit
def cut_logits(cells: F64, near: float, far: float) -> tuple[F64, F64, float, float, float]:
    """Compute the logits of the mean scores of cells (3, C), cut at both ends.

    They are cut at `near`, or at an end at `far`, if the hits of the cells beyond `near` are
    likelier then. Empty cells have the logit of the cell before, the first ones the logit of the
    first cell that is not empty.

    Returns
    -------
    x, t : (C,) float64 arrays
        The logits, and their distances from their mean.
    low, high : float
        The cuts.
    likelihood : float
        The log likelihood of uncut logits, ``sum hits * x - weight * log(1 + exp(x))``.
    """
    n_cells = cells.shape[1]
    first = n_cells
    total = mean = 0.0
    cuts = INFINITE_LOGIT, near, far
    x = np.empty(n_cells)
    t = np.empty(n_cells)
    # Log likelihoods of both sides: of all cells, and of those beyond `near` with either cut.
    sums = np.zeros((3, 2))
    for c in range(n_cells):
        x[c] = x[c - 1] if c > first else 0.0
        weight = cells[0, c]
        hits = cells[1, c]
        s = cells[2, c]
        if weight > 0.0:
            first = min(first, c)
            odds = s / (1.0 - s) if s < 1.0 else np.inf
            x[c] = z = math.log(odds) if odds > 0.0 else -np.inf
            for k in range(3 if abs(z) > near else 1):
                u = min(max(z, -cuts[k]), cuts[k])
                log_odds = max(u, 0.0) + math.log1p(math.exp(-abs(u)))
                sums[k, 1 if z > 0.0 else 0] += hits * u - weight * log_odds
    low = -(far if sums[2, 0] > sums[1, 0] else near)
    high = far if sums[2, 1] > sums[1, 1] else near
    for c in range(n_cells):
        x[c] = min(max(x[max(c, first)], low), high)
        total += cells[0, c]
        mean += cells[0, c] * x[c]
    for c in range(n_cells):
        t[c] = x[c] - mean / total
    return x, t, low, high, sums[0, 0] + sums[0, 1]


# --- the Gaussian process -------------------------------------------------------------------


@jit
def prior_pull(bands: F64, state: F64, middle: Any, k: Any) -> float:
    """Multiply f by a row of the prior precision, at position k of the state.

    Cells go on beyond the ends as in a mirror, so that every row is like those in the middle, whose
    bands begin at `middle`.
    """
    near = state[k - LINE] + state[k + LINE]
    next_to = state[k - LINE2] + state[k + LINE2]
    pull = bands[middle] * state[k] + bands[middle + BAND1] * near + bands[middle + BAND2] * next_to
    return float(pull)


@jit
def fit_process(
    cells: F64, x: F64, t: F64, bands: F64, precision: F64
) -> tuple[F64, F64, F64, F64]:
    """Fit the curve of every hyperparameter by Newton's method.

    A whole step may go too far. ``log(1 + m) / m`` of it, with m its largest change of a logit,
    never does for a logistic likelihood (Sun and Tran-Dinh 2019, "Generalized self-concordant
    functions", theorem 2 for nu = 2), and is soon all of it: no objective is computed on the way.

    Parameters
    ----------
    cells : (3, C) float64 array
    x, t : (C,) float64 arrays
        Logits of the scores and their distances from the mean.
    bands : (5 * BANDS,) float64 array
        Prior precisions of f: the entries (c, c), (c, c - 1), (c, c - 2) for c = 0, 1, any other,
        C - 2, C - 1. Cells go on beyond both ends as in a mirror.
    precision : (2 * 16,) float64 array
        Prior precisions of b_0 and b_1.

    Returns
    -------
    state : ((C + 4) * LINE,) float64 array
    b : (7 * 16,) float64 array
        The lines.
    logit : (C * 16,) float64 array
        The logits of the modes.
    odds : (C * 16,) float64 array
        ``exp(-abs(logit))``.
    """
    n_logits = x.size * np.int64(LANES)
    state = np.zeros((x.size + 4) * np.int64(LINE))
    b = np.zeros(LINE_QUANTITIES * np.int64(LANES))
    logit = np.empty(n_logits)
    odds = np.empty(n_logits)
    work = np.empty(n_logits)
    middle = np.uint64(MIDDLE) * BANDS
    end = np.uint64(x.size + 2) * LINE
    for c in range(x.size):
        for lane in range(ZERO, LANES):
            k = np.uint64(c) * LANES + lane
            logit[k] = x[c]
            odds[k] = -abs(x[c])
    exponential(odds, work)
    largest = np.inf
    steps = 0
    while largest > SMALL_STEP and steps < MAX_STEPS:
        # Down: the state gets the factors of A, and the right sides after forward substitution, the
        # gradient and W T; and running sums of the terms of the two equations of the line.
        for c in range(x.size):
            first = np.uint64(c + 2) * LINE
            first_logit = np.uint64(c) * LANES
            row = np.uint64(min(c, MIDDLE) + max(c - x.size + 3, 0)) * BANDS
            weight = cells[0, c]
            hits = cells[1, c]
            a = t[c]
            for lane in range(ZERO, LANES):
                k = first + lane
                band = row + lane
                up = k - LINE
                up2 = k - LINE2
                e = odds[first_logit + lane]
                q = (1.0 if logit[first_logit + lane] >= 0.0 else e) / (1.0 + e)
                w = weight * q * (1.0 - q)
                residual = hits - weight * q
                pull = prior_pull(bands, state, middle + lane, k)
                band2 = bands[band + BAND2]
                lower2 = band2 * state[up2 + PIVOT]
                entry = bands[band + BAND1] - band2 * state[up + LOWER1]
                lower1 = entry * state[up + PIVOT]
                pivot = 1.0 / (bands[band] + w - entry * lower1 - band2 * lower2)
                a0 = w - lower1 * state[up + ALONG0] - lower2 * state[up2 + ALONG0]
                a1 = w * a - lower1 * state[up + ALONG1] - lower2 * state[up2 + ALONG1]
                step = residual - pull - lower1 * state[up + STEP] - lower2 * state[up2 + STEP]
                state[k + LOWER1] = lower1
                state[k + LOWER2] = lower2
                state[k + PIVOT] = pivot
                state[k + ALONG0] = a0
                state[k + ALONG1] = a1
                state[k + STEP] = step
                state[k + SUM00] = state[up + SUM00] + (w - a0 * a0 * pivot)
                state[k + SUM01] = state[up + SUM01] + (w * a - a0 * a1 * pivot)
                state[k + SUM11] = state[up + SUM11] + (w * a * a - a1 * a1 * pivot)
                state[k + REST0] = state[up + REST0] + (residual - a0 * step * pivot)
                state[k + REST1] = state[up + REST1] + (residual * a - a1 * step * pivot)
        # The changes of the lines.
        for lane in range(ZERO, LANES):
            last = end + lane - LINE
            s00 = precision[B0 + lane] + state[last + SUM00]
            s11 = precision[B1 + lane] + state[last + SUM11]
            s01 = state[last + SUM01]
            rest0 = state[last + REST0] - precision[B0 + lane] * b[B0 + lane]
            rest1 = state[last + REST1] - precision[B1 + lane] * b[B1 + lane]
            det = s00 * s11 - s01 * s01
            state[end + lane + CHANGE0] = (s11 * rest0 - s01 * rest1) / det
            state[end + lane + CHANGE1] = (s00 * rest1 - s01 * rest0) / det
            state[end + lane + LARGEST] = 0.0
            b[SCHUR00 + lane] = s00
            b[SCHUR01 + lane] = s01
            b[SCHUR11 + lane] = s11
        # Up: the steps of the curves by back substitution, and the largest changes of a logit.
        for c in range(x.size - 1, -1, -1):
            first = np.uint64(c + 2) * LINE
            along = t[c]
            for lane in range(ZERO, LANES):
                k = first + lane
                down = k + LINE
                down2 = k + LINE2
                d0 = state[down + CHANGE0]
                d1 = state[down + CHANGE1]
                right_side = state[k + STEP] - state[k + ALONG0] * d0 - state[k + ALONG1] * d1
                step = right_side * state[k + PIVOT] - state[down + LOWER1] * state[down + STEP]
                step -= state[down2 + LOWER2] * state[down2 + STEP]
                state[k + STEP] = step
                state[k + CHANGE0] = d0
                state[k + CHANGE1] = d1
                state[k + LARGEST] = max(state[down + LARGEST], abs(step + d0 + d1 * along))
        # Move lines and curves by the damped step.
        largest = 0.0
        for lane in range(ZERO, LANES):
            k = LINE2 + lane
            m = state[k + LARGEST]
            largest = max(largest, m)
            damping = math.log1p(m) / m if m > SMALL_STEP else 1.0
            b[DAMPING + lane] = damping
            b[B0 + lane] += damping * state[k + CHANGE0]
            b[B1 + lane] += damping * state[k + CHANGE1]
        for c in range(x.size):
            first = np.uint64(c + 2) * LINE
            first_logit = np.uint64(c) * LANES
            centre = x[c]
            along = t[c]
            for lane in range(ZERO, LANES):
                k = first + lane
                f = state[k] + b[DAMPING + lane] * state[k + STEP]
                z = centre + b[B0 + lane] + b[B1 + lane] * along + f
                state[k] = f
                logit[first_logit + lane] = z
                odds[first_logit + lane] = -abs(z)
        for lane in range(ZERO, LANES):
            k = LINE2 + lane
            after = end + lane
            state[k - LINE] = state[k]
            state[k - LINE2] = state[k + LINE]
            state[after] = state[after - LINE]
            state[after + LINE] = state[after - LINE2]
        exponential(odds, work)
        steps += 1
    return state, b, logit, odds


@jit
def log_one_plus(x: float) -> float:
    """Return log(1 + x) for x from 0 to 1.

    Unlike the C library's function, it is vectorised in a loop.
    """
    e = x / (2.0 + x)
    total = 0.0
    for factor in ATANH:
        total = total * (e * e) + factor
    return e * total


@jit
def process_evidence(
    cells: F64, bands: F64, precision: F64, half: F64, state: F64, b: F64, logit: F64, odds: F64
) -> F64:
    """Compute the log evidence (16,) of each fit at its mode.

    With Laplace's approximation: log likelihood + log prior - half the log determinant of the
    posterior precision. On the way `ALONG` gets its back substitution.

    Parameters
    ----------
    cells, bands, precision : arrays
        As for `fit_process`.
    half : (16,) float64 array
        Half the log determinants of the prior precisions of f and b.
    state, b, logit, odds : arrays
        As `fit_process` returns them; the odds are overwritten.
    """
    log_rest = odds  # log(1 + exp(-abs(logit)))
    for i in range(logit.size):
        log_rest[i] = log_one_plus(odds[i])
    evidence = np.empty(np.int64(LANES))
    middle = np.uint64(MIDDLE) * BANDS
    for lane in range(ZERO, LANES):
        b0 = b[B0 + lane]
        b1 = b[B1 + lane]
        schur01 = b[SCHUR01 + lane]
        evidence[lane] = half[lane]
        evidence[lane] -= 0.5 * (precision[B0 + lane] * b0 * b0 + precision[B1 + lane] * b1 * b1)
        b[PRODUCT + lane] = 1.0 / (b[SCHUR00 + lane] * b[SCHUR11 + lane] - schur01 * schur01)
    for c in range(cells.shape[1] - 1, -1, -1):
        first = np.uint64(c + 2) * LINE
        first_logit = np.uint64(c) * LANES
        weight = cells[0, c]
        hits = cells[1, c]
        for lane in range(ZERO, LANES):
            k = first + lane
            down = k + LINE
            down2 = k + LINE2
            pivot = state[k + PIVOT]
            l1 = state[down + LOWER1]
            l2 = state[down2 + LOWER2]
            a0 = state[k + ALONG0] * pivot - l1 * state[down + ALONG0] - l2 * state[down2 + ALONG0]
            a1 = state[k + ALONG1] * pivot - l1 * state[down + ALONG1] - l2 * state[down2 + ALONG1]
            state[k + ALONG0] = a0
            state[k + ALONG1] = a1
            b[PRODUCT + lane] *= pivot
            z = logit[first_logit + lane]
            evidence[lane] += hits * z - weight * (max(z, 0.0) + log_rest[first_logit + lane])
            evidence[lane] -= 0.5 * state[k] * prior_pull(bands, state, middle + lane, k)
        if c % PIVOTS_PER_LOGARITHM == 0:
            for lane in range(ZERO, LANES):
                evidence[lane] += 0.5 * math.log(b[PRODUCT + lane])
                b[PRODUCT + lane] = 1.0
    return evidence


@jit
def draw_process(x: F64, t: F64, state: F64, b: F64, log_weight: F64, normals: F64) -> F64:
    """Draw logits (C, S) of curves from the posterior, a mixture over hyperparameters.

    Parameters
    ----------
    x, t, state, b : arrays
        As `fit_process` takes and returns them; with the evidence worked out.
    log_weight : (16,) float64 array
        Log evidence plus log prior probability of each hyperparameter. Draw q takes the one where
        the sum of their posterior probabilities, in order, passes ``(q + 1/2) / S``.
    normals : (C + 2, S) float64 array
        Standard normal numbers.
    """
    n_cells = x.size
    draws = normals.shape[1]
    # Two more lines get the distances of b from its mode.
    logit = np.zeros((n_cells + 2, draws))
    top = -np.inf
    total = 0.0
    for lane in range(ZERO, LANES):
        top = max(top, log_weight[lane])
    for lane in range(ZERO, LANES):
        total += math.exp(log_weight[lane] - top)
    begin = 0
    passed = 0.0
    for lane in range(ZERO, LANES):
        passed += math.exp(log_weight[lane] - top) / total
        end = min(math.floor(passed * draws + 0.5), draws)
        if end == begin:
            continue
        for c in range(n_cells - 1, -1, -1):
            k = np.uint64(c + 2) * LINE + lane
            scale = math.sqrt(state[k + PIVOT])
            l1 = state[k + LINE + LOWER1]
            l2 = state[k + LINE2 + LOWER2]
            for q in range(begin, end):
                bend = scale * normals[c, q] - l1 * logit[c + 1, q] - l2 * logit[c + 2, q]
                logit[c, q] = bend
        l00 = math.sqrt(b[SCHUR00 + lane])
        l10 = b[SCHUR01 + lane] / l00
        l11 = math.sqrt(b[SCHUR11 + lane] - l10 * l10)
        for q in range(begin, end):
            logit[n_cells + 1, q] = normals[n_cells + 1, q] / l11
            logit[n_cells, q] = (normals[n_cells, q] - l10 * logit[n_cells + 1, q]) / l00
        for c in range(n_cells):
            k = np.uint64(c + 2) * LINE + lane
            middle = x[c] + state[k] + b[B0 + lane] + b[B1 + lane] * t[c]
            by0 = 1.0 - state[k + ALONG0]
            by1 = t[c] - state[k + ALONG1]
            for q in range(begin, end):
                line = middle + by0 * logit[n_cells, q] + by1 * logit[n_cells + 1, q]
                logit[c, q] += line
        begin = end
    return logit[:n_cells]


# --- errors of drawn curves -----------------------------------------------------------------


@jit
def curve_errors(cells: F64, p: F64, side: float, norm: float) -> F64:
    """Compute the calibration error (S,) of each curve p (C, S) in cells (3, C).

    Side 1 counts only scores below the curve, side -1 only scores above it, and side 0 all.
    """
    n_cells, draws = p.shape
    total = 0.0
    for c in range(n_cells):
        total += cells[0, c]
    gap = np.empty((n_cells, draws))
    for c in range(n_cells):
        scale = (cells[0, c] / total) ** (1.0 / norm) if cells[0, c] > 0.0 else 0.0
        score = scale * cells[2, c]
        for q in range(draws):
            gap[c, q] = scale * p[c, q] - score
        if side != 0.0:
            for q in range(draws):
                gap[c, q] = max(side * gap[c, q], 0.0)
    errors = np.zeros(draws)
    add_norm(gap, norm, np.empty(draws), np.empty(draws), errors)
    for q in range(draws):
        errors[q] = min(errors[q], 1.0)  # shares may add up to a little more than 1
    return errors
