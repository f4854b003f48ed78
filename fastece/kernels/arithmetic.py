"""Sums in lanes, words of eight counts, exponentials, sigmoid and softmax.

Each gives the same bits on every machine.
"""

from typing import Any

import numpy as np

from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64, U64

# Positions and shifts of unsigned words: with an int64 numba would make them floats, or signed.
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
EIGHT = np.uint64(8)
EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
# Adding and subtracting 1.5 * 2**52 rounds a float64 below 2**51 to the nearest integer, in two
# instructions that vectorise (np.rint does not, in numba).
ROUND = 6755399441055744.0
# Rows are taken in blocks of about so many numbers, which stay in the first-level cache.
BLOCK = 1024
# Below, a float64 loses digits and then becomes 0; such a share of a softmax is 0 at once.
LOWEST_EXPONENT = -708.0
LOG2_E = 1.4426950408889634
# log(2) in two parts: the first has 24 bits, so that its product with an exponent is exact.
LOG_2 = 0.693147182464599609375
LOG_2_REST = -1.904654299957768e-09


# --- sums -----------------------------------------------------------------------------------


@jit
def zero(sums: F64) -> None:
    """Set an array of sums to 0."""
    for i in range(sums.size):
        sums[i] = 0.0


@jit
def lane_sum(x: F64) -> float:
    """Sum up numbers in eight lanes, since a single one waits for every addition.

    Up to 128 numbers that are not negative are added in the order in which numpy adds them.
    """
    n_in_lanes = x.size // 8 * 8
    a = b = c = d = e = f = g = h = 0.0
    for i in range(0, n_in_lanes, 8):
        a, b, c, d = a + x[i], b + x[i + 1], c + x[i + 2], d + x[i + 3]
        e, f, g, h = e + x[i + 4], f + x[i + 5], g + x[i + 6], h + x[i + 7]
    total: float = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(n_in_lanes, x.size):
        total += x[i]
    return total


@jit
def lane_max(x: F64) -> float:
    """Return the largest number, found in eight lanes as a sum is."""
    n_in_lanes = x.size // 8 * 8
    a = b = c = d = e = f = g = h = -np.inf
    for i in range(0, n_in_lanes, 8):
        a, b, c, d = max(a, x[i]), max(b, x[i + 1]), max(c, x[i + 2]), max(d, x[i + 3])
        e, f, g, h = max(e, x[i + 4]), max(f, x[i + 5]), max(g, x[i + 6]), max(h, x[i + 7])
    largest = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for i in range(n_in_lanes, x.size):
        largest = max(largest, x[i])
    return largest


@jit
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum of two numbers, and its exact remainder.

    The method is Knuth's (1969, section 4.2.2). Whether two weights are equal may depend on the
    remainders of many additions.
    """
    total = a + b
    b_in_total = total - a
    return total, (a - (total - b_in_total)) + (b - b_in_total)


@jit
def column_sums(words: U64, first: int, last: int, sums: U64) -> Any:
    """Sum up each of the 32 columns of at most 256 rows of counts.

    Returned is the bitwise or of all words.

    The counts are those in the words, four a row, from `first` to `last`. `sums`, 8 words, are
    overwritten: as 32 uint16, first the sums of the even columns, then of the odd ones. Eight
    counts of a word are added at once, in two words of four sums of 16 bits: 0.06 ns a count, where
    a loop over bytes takes 0.9.
    """
    seen = np.uint64(0)
    e0 = e1 = e2 = e3 = o0 = o1 = o2 = o3 = np.uint64(0)
    for i in range(np.uint64(first), np.uint64(last), FOUR):
        w0, w1, w2, w3 = words[i], words[i + ONE], words[i + TWO], words[i + THREE]
        seen |= w0 | w1 | w2 | w3
        e0, o0 = e0 + (w0 & EVEN_BYTES), o0 + ((w0 >> EIGHT) & EVEN_BYTES)
        e1, o1 = e1 + (w1 & EVEN_BYTES), o1 + ((w1 >> EIGHT) & EVEN_BYTES)
        e2, o2 = e2 + (w2 & EVEN_BYTES), o2 + ((w2 >> EIGHT) & EVEN_BYTES)
        e3, o3 = e3 + (w3 & EVEN_BYTES), o3 + ((w3 >> EIGHT) & EVEN_BYTES)
    sums[0], sums[1], sums[2], sums[3] = e0, e1, e2, e3
    sums[4], sums[5], sums[6], sums[7] = o0, o1, o2, o3
    return seen


# --- exponentials ---------------------------------------------------------------------------


@jit
def exponential(x: F64, work: F64) -> None:
    """Replace x <= 0 by exp(x), to 1e-15; `work` has at least its size.

    exp(x) = 2**k exp(r) with abs(r) <= log(2) / 2. The polynomial for (exp(r) - 1 - r) / r**2
    interpolates at ten Chebyshev nodes: its error is 1.6e-17, and it vectorises, 1.4 ns a
    number; np.exp in a kernel takes 4.3.
    """
    # Three loops: in one, operations that wait for one another fill the processor's queue.
    for i in range(x.size):
        normal = x[i] >= LOWEST_EXPONENT
        z = x[i] if normal else LOWEST_EXPONENT
        shifted = z * LOG2_E + ROUND  # k, in the last bits
        k = shifted - ROUND
        work[i] = shifted if normal else ROUND - 1023.0  # makes 1.0 a 0.0
        x[i] = (z - k * LOG_2) - k * LOG_2_REST if normal else 0.0
    for i in range(x.size):
        r = x[i]
        r2 = r * r
        r4 = r2 * r2
        p01 = 5.0e-01 + 1.6666666666666669e-01 * r
        p23 = 4.166666666662413e-02 + 8.333333333330062e-03 * r
        p45 = 1.3888888917213717e-03 + 1.9841269863053618e-04 * r
        p67 = 2.4801521295954376e-05 + 2.7557268459997064e-06 * r
        p89 = 2.7620088445409746e-07 + 2.510038549551032e-08 * r
        p = (p01 + p23 * r2) + ((p45 + p67 * r2) + p89 * r4) * r4
        x[i] = (p * r2 + r) + 1.0
    for i in range(x.size):
        power = np.float64(work[i]).view(np.int64) << 52
        x[i] = np.int64(np.float64(x[i]).view(np.int64) + power).view(np.float64)


@jit
def exponentials(z: F64, top: F64, inverse: float, e: F64, work: F64) -> None:
    """Fill `e` (n K,) with ``exp(inverse * (z - top))`` of rows of logits (n, K)."""
    n_classes = z.shape[1]
    for i in range(z.shape[0]):
        row = z[i]
        exponents = e[i * n_classes : (i + 1) * n_classes]
        for k in range(n_classes):
            exponents[k] = (row[k] - top[i]) * inverse
    exponential(e, work)


@jit
def sigmoid(z: F64, p: F64) -> None:
    """Compute ``1 / (1 + exp(-z))`` of logits, without overflow on either side."""
    work = np.empty(BLOCK)
    e_block = np.empty(BLOCK)
    for start in range(0, z.size, BLOCK):
        part = z[start : start + BLOCK]
        e = e_block[: part.size]
        score = p[start : start + BLOCK]
        for i in range(part.size):
            e[i] = -abs(part[i])
        exponential(e, work)
        for i in range(part.size):
            e[i] = (1.0 if part[i] >= 0.0 else e[i]) / (1.0 + e[i])
        for i in range(part.size):  # apart, since z and p may be the same
            score[i] = e[i]


@jit
def softmax(z: F64, top: F64, p: F64) -> None:
    """Compute the softmax of rows of logits (n, K) whose largest are `top`.

    If `p` is (n, K), it is filled for every class; if it is (n, 1), for the largest alone, with 1
    over the sum of exp(z - top).
    """
    n_classes = z.shape[1]
    rows = max(1, BLOCK // n_classes)
    work = np.empty(rows * n_classes)
    e_block = np.empty(rows * n_classes)
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        e = e_block[: part.size]
        exponentials(part, top[start : start + rows], 1.0, e, work)
        for i in range(part.shape[0]):
            row = e[i * n_classes : (i + 1) * n_classes]
            total = lane_sum(row)
            share = p[start + i]
            if share.size < n_classes:
                share[0] = 1.0 / total
            else:
                for k in range(n_classes):
                    share[k] = row[k] / total


@jit
def temperature_sums(z: F64, top: F64, label: I64, weight: F64, inverse: float, sums: F64) -> None:
    """Add log loss and derivatives of ``softmax(inverse * z)`` to `sums`.

    Rows of logits (n, K) have the largest `top`. Derivatives are by ``log(inverse)``, and all is
    times the weights.

    With d = inverse (z - top): ``log sum_k exp(d_k) - d_y``, the first derivative ``m - d_y`` with
    m the mean of d under the softmax, and the variance of d, which is the second less the first.
    """
    n_classes = z.shape[1]
    rows = max(1, BLOCK // n_classes)
    work = np.empty(rows * n_classes)
    e_block = np.empty(rows * n_classes)
    d = np.empty(n_classes)
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        e_rows = e_block[: part.size]
        exponentials(part, top[start : start + rows], inverse, e_rows, work)
        for i in range(part.shape[0]):
            row = part[i]
            largest = top[start + i]
            e = e_rows[i * n_classes : (i + 1) * n_classes]
            total = lane_sum(e)
            for k in range(n_classes):
                d[k] = (row[k] - largest) * inverse
                e[k] *= d[k]
            mean = lane_sum(e) / total
            for k in range(n_classes):
                e[k] *= d[k]
            variance = lane_sum(e) / total - mean * mean
            w = weight[start + i]
            d_of_label = d[label[start + i]]
            sums[0] += w * (np.log(total) - d_of_label)
            sums[1] += w * (mean - d_of_label)
            sums[2] += w * variance


# --- vector scaling -------------------------------------------------------------------------

# Sums over rows that `vector_sums` adds up for each class: the derivatives of the log loss by the
# slope and the intercept of its line, and the three second derivatives by both.
BY_SLOPE, BY_INTERCEPT, SLOPE_TWICE, BOTH, INTERCEPT_TWICE = VECTOR_SUMS = tuple(range(5))


@jit
def line_shares(
    z: F64, mean: F64, slope: F64, intercept: F64, x: F64, e: F64, top: F64, work: F64
) -> None:
    """Fill `e` (n K,) with exponentials of lines, less the largest of a row, `top`.

    The lines are ``slope * x + intercept``, and `x` (n K,) is filled with ``z - mean`` of rows of
    logits (n, K).
    """
    n_classes = z.shape[1]
    for i in range(z.shape[0]):
        row = z[i]
        place = slice(i * n_classes, (i + 1) * n_classes)
        distance = x[place]
        line = e[place]
        for k in range(n_classes):
            distance[k] = row[k] - mean[k]
            line[k] = slope[k] * distance[k] + intercept[k]
        largest = lane_max(line)
        for k in range(n_classes):
            line[k] -= largest
        top[i] = largest
    exponential(e, work)


@jit
def vector_sums(
    z: F64, mean: F64, slope: F64, intercept: F64, label: I64, weight: F64, sums: F64
) -> float:
    """Add derivatives of the log loss of lines to `sums` (5, K), and return the loss.

    Rows of logits (n, K) have the shares p, the softmax of ``slope * (z - mean) + intercept``.
    """
    n_classes = z.shape[1]
    rows = max(1, BLOCK // n_classes)
    work = np.empty(rows * n_classes)
    x_block = np.empty(rows * n_classes)
    e_block = np.empty(rows * n_classes)
    top = np.empty(rows)
    by_slope = sums[BY_SLOPE]
    by_intercept = sums[BY_INTERCEPT]
    slope_twice = sums[SLOPE_TWICE]
    both = sums[BOTH]
    intercept_twice = sums[INTERCEPT_TWICE]
    loss = 0.0
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        x_rows = x_block[: part.size]
        e_rows = e_block[: part.size]
        line_shares(part, mean, slope, intercept, x_rows, e_rows, top, work)
        for i in range(part.shape[0]):
            x = x_rows[i * n_classes : (i + 1) * n_classes]
            e = e_rows[i * n_classes : (i + 1) * n_classes]
            w = weight[start + i]
            y = label[start + i]
            total = lane_sum(e)
            for k in range(n_classes):
                p = e[k] / total
                share = w * p
                curvature = share * (1.0 - p)
                by_slope[k] += share * x[k]
                by_intercept[k] += share
                slope_twice[k] += curvature * x[k] * x[k]
                both[k] += curvature * x[k]
                intercept_twice[k] += curvature
            by_slope[y] -= w * x[y]
            by_intercept[y] -= w
            line = slope[y] * x[y] + intercept[y]
            loss += w * (np.log(total) - (line - top[i]))
    return loss


@jit
def vector_product(
    z: F64, mean: F64, slope: F64, intercept: F64, slope_change: F64, intercept_change: F64,
    weight: F64, sums: F64,
) -> None:  # fmt: skip
    """Add to `sums` (2, K) second derivatives of the log loss times changed lines.

    A change u of the lines of a row changes its shares p by ``p (u - sum p u)``.
    """
    n_classes = z.shape[1]
    rows = max(1, BLOCK // n_classes)
    work = np.empty(rows * n_classes)
    x_block = np.empty(rows * n_classes)
    e_block = np.empty(rows * n_classes)
    top = np.empty(rows)
    u = np.empty(n_classes)
    by_slope = sums[BY_SLOPE]
    by_intercept = sums[BY_INTERCEPT]
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        x_rows = x_block[: part.size]
        e_rows = e_block[: part.size]
        line_shares(part, mean, slope, intercept, x_rows, e_rows, top, work)
        for i in range(part.shape[0]):
            x = x_rows[i * n_classes : (i + 1) * n_classes]
            e = e_rows[i * n_classes : (i + 1) * n_classes]
            total = lane_sum(e)
            for k in range(n_classes):
                change = slope_change[k] * x[k] + intercept_change[k]
                work[k] = e[k] * change
                u[k] = change
            mean_change = lane_sum(work[:n_classes]) / total
            share = weight[start + i] / total
            for k in range(n_classes):
                product = share * e[k] * (u[k] - mean_change)
                by_slope[k] += product * x[k]
                by_intercept[k] += product
