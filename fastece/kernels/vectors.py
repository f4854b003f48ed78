"""Pairs of rows of class vectors: kernel values in bands, and sums over them.

A band has the pairs of some rows, from `first` on, with the rows from 0 on: one line for each of
the former. Class vectors of the columns lie class by class, (K, n), so that loops over rows
vectorise. Sums over all pairs of scores with a Laplacian kernel take one pass over sorted rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels.arithmetic import BLOCK, LOWEST_EXPONENT, exponential, lane_sum, zero
from fastece.kernels.compiling import jit
from fastece.kernels.quantiles import increasing_order
from fastece.kernels.reading import read_problem
from fastece.kernels.types import F64, U8

# Columns of a line that are filled at a time: with four classes they stay in the first-level cache.
PIECE = 512
# A number that is exp(-46), 1e-20, of a sum does not change it.
UNSEEN = 46.0
# In widths of a kernel, up to which a polynomial is right to 4e-17, and takes a tenth of the time.
NEAR = 2.0**-9


@jit
def add_products(a: F64, c: F64, columns: F64, first: int, out: F64, more: F64) -> None:
    """Add the products of two vectors (K,) with columns to `out` and `more` (m,).

    The columns are those from `first` on. There are two vectors at once, since to read the columns
    takes longer than to multiply: 0.9 ns instead of 1.4 for ten classes.
    """
    n_in_fours = a.size // 4 * 4
    last = first + out.size
    for k in range(0, n_in_fours, 4):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        c0, c1, c2, c3 = c[k], c[k + 1], c[k + 2], c[k + 3]
        b0 = columns[k, first:last]
        b1 = columns[k + 1, first:last]
        b2 = columns[k + 2, first:last]
        b3 = columns[k + 3, first:last]
        for j in range(out.size):
            x0, x1, x2, x3 = b0[j], b1[j], b2[j], b3[j]
            out[j] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
            more[j] += (c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)
    for k in range(n_in_fours, a.size):
        b0 = columns[k, first:last]
        for j in range(out.size):
            out[j] += a[k] * b0[j]
            more[j] += c[k] * b0[j]


@jit
def add_squares(a: F64, c: F64, columns: F64, first: int, out: F64, more: F64) -> None:
    """Add squared distances of two vectors (K,) from columns to `out` and `more`.

    Both are (m,), and the columns are those from `first` on.

    They are sums over differences: a product taken off squares would lose half of the digits of
    small distances.
    """
    n_in_pairs = a.size // 2 * 2
    last = first + out.size
    for k in range(0, n_in_pairs, 2):
        a0, a1 = a[k], a[k + 1]
        c0, c1 = c[k], c[k + 1]
        b0 = columns[k, first:last]
        b1 = columns[k + 1, first:last]
        for j in range(out.size):
            x0, x1 = b0[j], b1[j]
            d0, d1 = a0 - x0, a1 - x1
            e0, e1 = c0 - x0, c1 - x1
            out[j] += d0 * d0 + d1 * d1
            more[j] += e0 * e0 + e1 * e1
    for k in range(n_in_pairs, a.size):
        b0 = columns[k, first:last]
        for j in range(out.size):
            d0 = a[k] - b0[j]
            e0 = c[k] - b0[j]
            out[j] += d0 * d0
            more[j] += e0 * e0


@jit
def fill_pairs(rows: F64, columns: F64, constant: F64, is_square: bool, band: F64) -> None:
    """Fill `band` with a constant plus products of rows (b, K) with columns (K, m).

    The constant (m,) may be empty. If `is_square`, it is squared distances instead of products.
    """
    work = np.empty((2, PIECE))
    for left in range(0, band.shape[1], PIECE):
        shift = constant[left : left + PIECE]
        size = min(PIECE, band.shape[1] - left)
        upper = work[0, :size]
        lower = work[1, :size]
        for i in range(0, band.shape[0], 2):
            zero(upper)
            zero(lower)
            for j in range(shift.size):
                upper[j] = lower[j] = shift[j]
            row_below = rows[min(i + 1, rows.shape[0] - 1)]
            if is_square:
                add_squares(rows[i], row_below, columns, left, upper, lower)
            else:
                add_products(rows[i], row_below, columns, left, upper, lower)
            for k in range(min(2, band.shape[0] - i)):
                line = band[i + k, left : left + PIECE]
                value = work[k]
                for j in range(line.size):
                    line[j] = value[j]


@jit
def fill_kernel(
    rows: F64, columns: F64, scale: float, is_gaussian: bool, first: int, band: F64
) -> None:
    """Fill `band` with twice the kernel values of pairs of two rows.

    Rows are those from `first` on, and columns all up to the last of them. Each pair stands there
    once, and a row makes none with itself.

    The kernel is ``exp(scale * d)``, with d the distance or, if `is_gaussian`, its square; 1 where
    the distance is 0, so that the scale may be -inf.
    """
    work = np.empty(PIECE)
    fill_pairs(rows, columns, np.empty(0), rows.size >= 0, band)  # a variable, as elsewhere
    for i in range(band.shape[0]):
        line = band[i, : first + i]
        for left in range(0, line.size, PIECE):
            part = line[left : left + PIECE]
            for j in range(part.size):
                d = part[j] if is_gaussian else np.sqrt(part[j])
                part[j] = scale * d if part[j] > 0.0 else 0.0
            exponential(part, work)
            for j in range(part.size):
                part[j] *= 2.0
        zero(band[i, first + i :])


@jit
def largest(x: F64) -> float:
    """Return the largest number of x, found in eight lanes."""
    n_in_lanes = x.size // 8 * 8
    a = b = c = d = e = f = g = h = -np.inf
    for i in range(0, n_in_lanes, 8):
        a, b = max(a, x[i]), max(b, x[i + 1])
        c, d = max(c, x[i + 2]), max(d, x[i + 3])
        e, f = max(e, x[i + 4]), max(f, x[i + 5])
        g, h = max(g, x[i + 6]), max(h, x[i + 7])
    top = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for i in range(n_in_lanes, x.size):
        top = max(top, x[i])
    return top


@jit
def exponentiate(band: F64, v: F64) -> None:
    """Replace each line by its exponentials, divided by the largest of them.

    They are multiplied by the weights, if there are any.
    """
    work = np.empty(BLOCK)
    for i in range(band.shape[0]):
        top = largest(band[i])
        for left in range(0, band.shape[1], BLOCK):
            part = band[i, left : left + BLOCK]
            for j in range(part.size):
                part[j] -= top
            exponential(part, work)
            for j in range(part.size if v.size > 0 else 0):
                part[j] *= v[left + j]


@jit
def log_sums(band: F64, constant: F64, inverse: F64, out: F64) -> None:
    """Compute log sums of exponentials of each line, for each h, in `out` (H, b).

    They are ``log sum_j exp(constant[h, j] + inverse[h] * band[i, j])``.

    Piece by piece, so that the constants stay in the cache, and for some lines one after another. A
    piece in which all is too small to be seen beside what came before needs no exponential.
    """
    x = np.empty(PIECE)
    work = np.empty(PIECE)
    total = np.zeros(out.shape)
    for h in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[h, i] = -np.inf
    for left in range(0, band.shape[1], PIECE):
        for h in range(out.shape[0]):
            shift = constant[h, left : left + PIECE]
            scale = inverse[h]
            part = x[: shift.size]
            for i in range(out.shape[1]):
                line = band[i, left : left + PIECE]
                top = out[h, i]
                for j in range(part.size):
                    part[j] = shift[j] + scale * line[j]
                best = largest(part)
                if best < top - UNSEEN or best == -np.inf:
                    continue
                if best > top:
                    total[h, i] *= np.exp(max(top - best, LOWEST_EXPONENT))
                    out[h, i] = top = best
                for j in range(part.size):
                    part[j] -= top
                exponential(part, work)
                total[h, i] += lane_sum(part)
    for h in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[h, i] += np.log(total[h, i])


# --- pairs of scores ------------------------------------------------------------------------


@jit
def add_row_to_pairs(
    level: float, gap: float, decay: float, loss: float, pairs: float
) -> tuple[float, float]:
    """Add the next row in the order of the scores to a sum over pairs.

    Parameters
    ----------
    level : float
        Sum of the kernels of the rows before, at this row: ``e_i T_{i-1}`` of `pair_sums`.
    gap : float
        Gap of the row, times how often it counts.
    decay, loss : float
        As `decay_over` returns them for the step to the row after.
    pairs : float
        Sum over the pairs of the rows before.

    Returns
    -------
    level, pairs : float
        The sum of kernels at the row after, and the sum over pairs with this row.
    """
    kernels_so_far = level + gap
    return kernels_so_far * decay, pairs + kernels_so_far * kernels_so_far * loss


@jit
def pair_sums(
    c: NDArray[Any], gap: F64, weight: F64, decay: F64, loss: F64, out: F64, total: F64
) -> None:
    """Sum up products of gaps over pairs with a Laplacian kernel, by replicate.

    In `out` (G, W) is ``sum_ij r_i r_j exp(-|s_i - s_j| / width)``, with ``r_i = c_i gap_i``, and
    in `total` the sum of ``c_i weight_i``; an empty `total` is left out.

    With the sum ``T_i = r_i + e_i T_{i-1}`` of the kernels of all rows up to i, at row i, where e_i
    is the decay from the row before, ``r_i`` is ``T_i - e_i T_{i-1}``, and the sum is
    ``sum_i T_i**2 - (e_i T_{i-1})**2 = sum_i T_i**2 (1 - e_{i+1}**2)``: no term is negative, and
    nothing cancels. Multiplicities c are (G, n, W), and the rest is in the order of the scores.
    """
    lanes = c.shape[2]
    level = np.empty(lanes)
    for g in range(c.shape[0]):
        zero(level)
        sums = out[g]
        zero(sums)
        for r in range(lanes if weight.size > 0 else 0):
            total[g, r] = 0.0
        for i in range(gap.size):
            count = c[g, i]
            for r in range(lanes):
                level[r], sums[r] = add_row_to_pairs(
                    level[r], gap[i] * count[r], decay[i], loss[i], sums[r]
                )
            if weight.size > 0:
                for r in range(lanes):
                    total[g, r] += weight[i] * count[r]


@jit
def decay_over(step: float) -> tuple[float, float]:
    """Compute how a Laplacian kernel decays over a step of the score.

    Parameters
    ----------
    step : float
        Minus the distance to the next score, in widths of the kernel: 0 or less; -inf after the
        last score.

    Returns
    -------
    decay, loss : float
        ``e = exp(step)``, and ``1 - e**2``, which a difference would round to nothing for small
        steps. With ``c = e - 1`` it is ``-c (2 + c)``.
    """
    if step > -NEAR:
        inner = 1 / 2 + step * (1 / 6 + step * (1 / 24 + step * (1 / 120)))
        change = step * (1 + step * inner)
    else:
        change = float(np.expm1(step))
    return 1.0 + change, -change * (2.0 + change)


@jit
def pair_terms(s: F64, width: float, decay: F64, loss: F64) -> None:
    """Fill in `decay_over` the step from each score to the next, in order."""
    for i in range(s.size):
        step = (s[i] - s[i + 1]) / width if i + 1 < s.size else -np.inf
        decay[i], loss[i] = decay_over(step)


@jit
def pair_errors(
    prob: NDArray[Any], label: NDArray[Any], weight: F64, width: float, score: F64, hit: U8,
    out: F64,
) -> None:  # fmt: skip
    """Compute the error of each problem over pairs of rows that count once each.

    It has the bits of `pair_sums` with counts of 1, whose operations it does in the same order.

    Parameters
    ----------
    prob, label : arrays
        As in `fastece.kernels.reading.read_problem`.
    weight : (n,) or (0,) float64 array
        Weights of the rows; empty: every row counts 1.
    width : float
        Width of the kernel, in units of the score.
    score, hit : (n,) float64 and uint8 arrays
        Work space. numpy has large arrays in larger pages than a kernel has: 1e6 rows take 10 ms
        instead of 18.
    out : (K,) float64 array
        Overwritten with the root of the sum over pairs, by the weight of all rows.
    """
    row = np.empty(weight.size, np.int32)
    for k in range(out.size):
        s, y = read_problem(prob, label, k, score, hit)
        if prob.ndim == 1:
            for i in range(s.size):
                score[i] = s[i]
                hit[i] = y[i]
        for i in range(row.size):
            row[i] = i
        increasing_order(score, hit, row)
        level = pairs = total = 0.0
        for i in range(score.size):
            gap = np.float64(hit[i]) - score[i]
            if row.size > 0:
                gap *= weight[row[i]]
                total += weight[row[i]]
            step = (score[i] - score[i + 1]) / width if i + 1 < score.size else -np.inf
            decay, loss = decay_over(step)
            level, pairs = add_row_to_pairs(level, gap, decay, loss, pairs)
        out[k] = np.sqrt(pairs) / (total if row.size > 0 else np.float64(score.size))


# --- cumulated gaps -------------------------------------------------------------------------


@jit
def cumulated_extremes(
    c: NDArray[Any], gap: F64, weight: F64, is_last: U8, low: F64, high: F64, total: F64
) -> None:
    """Find the ends of the range of cumulated gaps, 0 among them, by replicate.

    In `low` and `high` (G, W) are the smallest and the largest of 0 and the sums of
    ``c_i gap_i`` up to every row that `is_last` of its score, and in `total` the sum of
    ``c_i weight_i``, unless there are no weights. Multiplicities c are (G, n, W), and the rest is
    in the order of the scores.
    """
    lanes = c.shape[2]
    level = np.empty(lanes)
    for g in range(c.shape[0]):
        lowest = low[g]
        highest = high[g]
        zero(level)
        zero(lowest)
        zero(highest)
        for r in range(lanes if weight.size > 0 else 0):
            total[g, r] = 0.0
        for i in range(gap.size):
            count = c[g, i]
            for r in range(lanes):
                level[r] += gap[i] * count[r]
            if is_last[i]:
                for r in range(lanes):
                    lowest[r] = min(lowest[r], level[r])
                    highest[r] = max(highest[r], level[r])
            if weight.size > 0:
                for r in range(lanes):
                    total[g, r] += weight[i] * count[r]
