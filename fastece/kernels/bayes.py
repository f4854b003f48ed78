"""Laplace fits of a Gaussian process for the calibration curve, and their draws.

The curve is ``logit c = x + b_0 + b_1 t + f`` in C cells of equal weight, f with a prior precision
of five diagonals. Fits with sixteen hyperparameters stand side by side: the innermost loops go over
them, so they vectorise, and no sum changes its order.

All numbers of a cell are one line of one flat array, `Fits.state`, and positions are unsigned: so
the compiler knows how far apart two numbers are, and needs no checks whether arrays overlap (a step
of 96 cells takes 8 us; with an array for each quantity 40). A line has sixteen numbers, one for
each hyperparameter, of each of these twelve quantities::

    F               the curve f
    LOWER1, LOWER2  entries of the factor L, one and two cells up
    PIVOT           1 / D
    ALONG0, ALONG1  the columns of W T, on the way to A**-1 W T
    STEP            the gradient, on the way to the step of f
    SUM00 ... REST1 running sums for the two equations of the line b

Lines before the first cell and after the last repeat the cells as in a mirror.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fastece.kernels.arithmetic import exponential, lane_sum
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I32, U8

# Newton's method ends with a step that changes no logit by more: then its factors, which belong
# to the point before, give the evidence to 1e-6, and the remaining distance is the square of this.
SMALL_STEP = 1e-7
# Five or six steps are enough; where rows deny their scores altogether, a step is two or three
# logits, and there are dozens. Rounding may keep very large problems above SMALL_STEP.
MAX_STEPS = 200
# A score of 0 or 1 has this logit, where it is not cut further: with it a hit or a miss is as
# impossible as a float64 can say.
INFINITE_LOGIT = 700.0
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
# Up to this size a gap has no sign, or in proportion: those of calibrated pieces are 1e-15.
GAP_WITH_SIGN = 1e-6
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
# Where each quantity of the lines b begins in `Fits.line`; `Priors.line` begins with the precisions
# of b_0 and b_1, too. The last two are work space of a step, and of the evidence.
B0, B1, SCHUR00, SCHUR01, SCHUR11, DAMPING, PRODUCT = (LANES * j for j in range(7))
LINE_QUANTITIES = 7
# Rows of the prior precision that differ: the first two, all in the middle, and the last two; and
# their entries on the diagonal and to its left.
MIDDLE = 2
BAND1, BAND2, BANDS = (LANES * j for j in range(1, 4))
# Unsigned, as positions are.
ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)


class RankCells(NamedTuple):
    """Weight, hits and mean score of the rows of each of C cells; empty cells weigh 0."""

    weight: F64
    hits: F64
    score: F64  # mean


class Priors(NamedTuple):
    """Prior precisions of f and b for each hyperparameter.

    The precision of f is given by its entries (c, c), (c, c - 1), (c, c - 2) for c = 0, 1, any
    other, C - 2, C - 1: cells go on beyond both ends as in a mirror.
    """

    bands: F64  # (5 * BANDS,)
    line: F64  # (2 * 16,): of b_0 and b_1
    half: F64  # (16,): half the log determinant of both


class Fits(NamedTuple):
    """Modes and shapes of the posteriors of the curve, one for each hyperparameter.

    The posterior precision is ``[[A, W T], [T' W, T' W T + line]]`` with T the columns (1, t), W
    the weights of the working response and ``A = precision + W = L D L'``.

    Attributes
    ----------
    state : ((C + 4) * LINE,) float64 array
        Lines of C cells, with two lines of padding before and after.
    line : (7 * 16,) float64 array
        b_0 and b_1; the entries 00, 01, 11 of their precision with f integrated out; work space.
    log_evidence : (16,) float64 array
    """

    state: F64
    line: F64
    log_evidence: F64


class Logits(NamedTuple):
    """Logits of the probabilities of hits in the cells of all curves, in a fit."""

    logit: F64  # (C * 16,)
    odds: F64  # (C * 16,): exp(-abs(logit))
    work: F64  # (C * 16,): work space


@jit
def sum_cells(s: F64, y: U8, w: F64, count: float, cells: RankCells, cell: I32) -> None:
    """Sum up sorted rows, equal scores together, in the cells of their mid-ranks.

    Parameters
    ----------
    s, y, w : (n,) arrays
        Scores, hits, and weights, empty where every row counts 1.
    count : float
        The effective number of rows, which the weights are scaled to.
    cells : RankCells
        All 0 before.
    cell : (n,) int32 array
        The cell of each row; overwritten.
    """
    n = s.size
    n_cells = cells.weight.size
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
        cells.weight[c] += scale * weight
        cells.hits[c] += scale * hits
        cells.score[c] += scale * weight * s[i]
        below += weight
        weight = hits = 0.0
        first = i + 1
    for c in range(n_cells):
        if cells.weight[c] > 0.0:
            cells.score[c] /= cells.weight[c]


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
    """Add rows in any order to the sums (FINE_CELLS, 3) of w, w y and w s in fine cells.

    `w` is empty where every row counts 1.
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
def join_fine_cells(sums: F64, count: float, cells: RankCells, cell: I32) -> None:
    """Join fine cells, by the mid-ranks of their rows, to cells of equal weight.

    Parameters
    ----------
    sums : (FINE_CELLS, 3) float64 array
        The sums of w, w y and w s.
    count : float
        The effective number of rows, which the weights are scaled to.
    cells : RankCells
        All 0 before.
    cell : (FINE_CELLS,) int32 array
        The cell of each fine cell; overwritten.
    """
    n_cells = cells.weight.size
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
        cells.weight[c] += scale * weight
        cells.hits[c] += scale * sums[k, 1]
        cells.score[c] += scale * sums[k, 2]
        below += weight
    for c in range(n_cells):
        # Rounding may take sums out of their range.
        cells.hits[c] = min(cells.hits[c], cells.weight[c])
        if cells.weight[c] > 0.0:
            cells.score[c] = min(cells.score[c] / cells.weight[c], 1.0)


@jit
def cut_logits(
    cells: RankCells, near: float, far: float, x: F64, t: F64, sums: F64
) -> tuple[float, float, float]:
    """Fill in the logits x (C,) of mean scores, and distances t from their mean.

    They are cut at `near`, or at an end at `far`, if the hits of the cells beyond `near` are
    likelier then. Empty cells have the logit of the cell before, the first ones the logit of the
    first cell that is not empty.

    `sums` (3, 2), 0 before, get log likelihoods of both sides: of all cells, and of those beyond
    `near` with either cut.

    Returns
    -------
    low, high : float
        The cuts.
    likelihood : float
        The log likelihood of uncut logits, ``sum hits * x - weight * log(1 + exp(x))``.
    """
    first = x.size
    total = mean = 0.0
    cuts = INFINITE_LOGIT, near, far
    for c in range(x.size):
        x[c] = x[c - 1] if c > first else 0.0
        weight = cells.weight[c]
        hits = cells.hits[c]
        s = cells.score[c]
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
    for c in range(x.size):
        x[c] = min(max(x[max(c, first)], low), high)
        total += cells.weight[c]
        mean += cells.weight[c] * x[c]
    for c in range(x.size):
        t[c] = x[c] - mean / total
    return low, high, sums[0, 0] + sums[0, 1]


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
def factorise(t: F64, cells: RankCells, logits: Logits, bands: F64, state: F64) -> None:
    """Turn logits into the factors of A, on the way down.

    The state gets the factors of A, and the right sides after forward substitution: the gradient
    and W T. On the way it gets running sums of the terms of the two equations of the line.
    """
    logit = logits.logit
    odds = logits.odds
    middle = np.uint64(MIDDLE) * BANDS
    for c in range(t.size):
        first = np.uint64(c + 2) * LINE
        first_logit = np.uint64(c) * LANES
        row = np.uint64(min(c, MIDDLE) + max(c - t.size + 3, 0)) * BANDS
        weight = cells.weight[c]
        hits = cells.hits[c]
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


@jit
def solve_steps(t: F64, precision: F64, b: F64, state: F64) -> None:
    """Solve for the steps of lines and curves by back substitution, on the way up.

    The state gets the changes of b and the largest change of a logit, by curve. `precision` has the
    prior precisions of b; after b stand the entries of its posterior precision, filled in here.
    """
    end = np.uint64(t.size + 2) * LINE
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
    for c in range(t.size - 1, -1, -1):
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


@jit
def move(x: F64, t: F64, b: F64, logits: Logits, state: F64) -> float:
    """Take a damped step of lines and curves; return the largest undamped change.

    The logits of the curves are overwritten, and their odds by the logarithms of these.

    A whole step of Newton's method may go too far. ``log(1 + m) / m`` of it, with m its largest
    change of a logit, never does for a logistic likelihood (Sun and Tran-Dinh 2019, "Generalized
    self-concordant functions", theorem 2 for nu = 2), and is soon all of it: no objective is
    computed on the way.
    """
    logit = logits.logit
    odds = logits.odds
    largest = 0.0
    for lane in range(ZERO, LANES):
        k = LINE2 + lane
        m = state[k + LARGEST]
        largest = max(largest, m)
        damping = math.log1p(m) / m if m > SMALL_STEP else 1.0
        b[DAMPING + lane] = damping
        b[B0 + lane] += damping * state[k + CHANGE0]
        b[B1 + lane] += damping * state[k + CHANGE1]
    n_cells = np.uint64(x.size)
    for c in range(ZERO, n_cells):
        first = (c + TWO) * LINE
        first_logit = c * LANES
        middle = x[c]
        along = t[c]
        for lane in range(ZERO, LANES):
            k = first + lane
            f = state[k] + b[DAMPING + lane] * state[k + STEP]
            z = middle + b[B0 + lane] + b[B1 + lane] * along + f
            state[k] = f
            logit[first_logit + lane] = z
            odds[first_logit + lane] = -abs(z)
    after_last = (n_cells + TWO) * LINE
    for lane in range(ZERO, LANES):
        k = LINE2 + lane
        end = after_last + lane
        state[k - LINE] = state[k]
        state[k - LINE2] = state[k + LINE]
        state[end] = state[end - LINE]
        state[end + LINE] = state[end - LINE2]
    return largest


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
def fill_evidence(cells: RankCells, logits: Logits, priors: Priors, fits: Fits) -> None:
    """Compute the log evidence of each fit from the logits of its mode.

    With Laplace's approximation: log likelihood + log prior - half the log determinant of the
    posterior precision. On the way `ALONG` gets its back substitution.
    """
    state = fits.state
    logit = logits.logit
    log_rest = logits.work  # log(1 + exp(-abs(logit)))
    for i in range(logit.size):
        log_rest[i] = log_one_plus(logits.odds[i])
    b = fits.line
    out = fits.log_evidence
    bands = priors.bands
    line = priors.line
    middle = np.uint64(MIDDLE) * BANDS
    for lane in range(ZERO, LANES):
        b0 = b[B0 + lane]
        b1 = b[B1 + lane]
        schur01 = b[SCHUR01 + lane]
        out[lane] = priors.half[lane]
        out[lane] -= 0.5 * (line[B0 + lane] * b0 * b0 + line[B1 + lane] * b1 * b1)
        b[PRODUCT + lane] = 1.0 / (b[SCHUR00 + lane] * b[SCHUR11 + lane] - schur01 * schur01)
    for c in range(cells.weight.size - 1, -1, -1):
        first = np.uint64(c + 2) * LINE
        first_logit = np.uint64(c) * LANES
        weight = cells.weight[c]
        hits = cells.hits[c]
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
            out[lane] += hits * z - weight * (max(z, 0.0) + log_rest[first_logit + lane])
            out[lane] -= 0.5 * state[k] * prior_pull(bands, state, middle + lane, k)
        if c % PIVOTS_PER_LOGARITHM == 0:
            for lane in range(ZERO, LANES):
                out[lane] += 0.5 * math.log(b[PRODUCT + lane])
                b[PRODUCT + lane] = 1.0


@jit
def fit(x: F64, t: F64, cells: RankCells, logits: Logits, priors: Priors, fits: Fits) -> int:
    """Fit the curve of every hyperparameter by Laplace's method; return the steps.

    `x` and `t` (C,) are logits of the scores and their distances from the mean. State and line of
    `fits` are 0 before; they and `logits` are overwritten.
    """
    odds = logits.odds
    for c in range(ZERO, np.uint64(x.size)):
        for k in range(c * LANES, (c + ONE) * LANES):
            logits.logit[k] = x[c]
            odds[k] = -abs(x[c])
    steps = 0
    largest = np.inf
    while True:
        exponential(odds, logits.work)
        if largest <= SMALL_STEP or steps == MAX_STEPS:
            return steps
        factorise(t, cells, logits, priors.bands, fits.state)
        solve_steps(t, priors.line, fits.line, fits.state)
        largest = move(x, t, fits.line, logits, fits.state)
        steps += 1


@jit
def draw_logits(x: F64, t: F64, fits: Fits, log_prior: F64, normals: F64, logit: F64) -> None:
    """Draw logits of curves from the posterior, a mixture over hyperparameters.

    Parameters
    ----------
    log_prior : (16,) float64 array
        Log prior probability of each hyperparameter. Draw q takes the one where the sum of their
        posterior probabilities, in order, passes ``(q + 1/2) / S``.
    normals : (C + 2, S) float64 array
        Standard normal numbers.
    logit : (C + 2, S) float64 array
        Logits of the probability of a hit in each cell; overwritten. The last two lines, 0 before,
        get the distances of b from its mode.
    """
    n_cells = x.size
    draws = logit.shape[1]
    state = fits.state
    b = fits.line
    log_evidence = fits.log_evidence
    top = -np.inf
    total = 0.0
    for lane in range(ZERO, LANES):
        top = max(top, log_evidence[lane] + log_prior[lane])
    for lane in range(ZERO, LANES):
        total += math.exp(log_evidence[lane] + log_prior[lane] - top)
    begin = 0
    passed = 0.0
    for lane in range(ZERO, LANES):
        passed += math.exp(log_evidence[lane] + log_prior[lane] - top) / total
        end = min(math.floor(passed * draws + 0.5), draws)
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


@jit
def mean_gaps(score: F64, p: F64, share: F64, out: F64) -> None:
    """Average gaps ``p - score`` over draws p (C, S), their sizes and their signs.

    Draws have shares (S,); the means are in `out` (3, C). Curves in pieces are calibrated in some
    cells: there the gap is rounding, and its sign counts as 0.
    """
    terms = np.empty((3, share.size))
    for c in range(score.size):
        for q in range(share.size):
            gap = share[q] * (p[c, q] - score[c])
            terms[0, q] = gap
            terms[1, q] = abs(gap)
            terms[2, q] = share[q] * min(max((p[c, q] - score[c]) / GAP_WITH_SIGN, -1.0), 1.0)
        for j in range(3):
            out[j, c] = lane_sum(terms[j])
