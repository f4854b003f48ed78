"""Scores in increasing order: sort, edges of equal-mass bins, monotone sweep.

The sweep finds how many bins of equal weight have hit rates that do not decrease.
"""

from typing import Any

import numpy as np

from fastece.kernels._jit import jit
from fastece.kernels.arithmetic import two_sum
from fastece.typing import F64, I32, I64, U8, U64

# Cumulative weights closer than this, relative to the total, are equal.
TOLERANCE = 1e-12
# Digits of 8 bits: the 256 lines of memory that a pass writes to stay in the first-level cache.
DIGITS = 2**8
WIDTH, LAST = np.uint64(8), np.uint64(DIGITS - 1)
# From this bit on, 4 digits are the exponent and the first 22 bits of a float64 from 0 to 1, which
# has 62 bits. Few rows have these in common, and up to so many of them are sorted by insertion.
TOP, FEW = np.uint64(30), 24
# Parts of the weight that a sweep finds at once: few of many rows, so that they stay in the cache.
MOST_PARTS = 2**12


# --- the sort, digit by digit: 8 to 15 ns a row where comparisons take 50 ---------------------


@jit
def move_rows(key: U64, row: I32, shift: Any, at: I64, moved: U64, moved_row: I32) -> None:
    """Move keys and their rows to the places `at` of their digits, which go up."""
    for i in range(key.size):
        digit = (key[i] >> shift) & LAST
        to = np.uint64(at[digit])
        at[digit] += 1
        moved[to], moved_row[to] = key[i], row[i]


@jit
def sort_neighbours(key: U64, row: I32, low: Any) -> bool:
    """Sort keys already ordered by their bits from `low` on; return if it worked.

    It does if few keys have these bits in common.
    """
    start = 0
    for i in range(1, key.size):
        if key[i] >> low != key[i - 1] >> low:
            start = i
        elif key[i] < key[i - 1]:
            if i - start >= FEW:
                return False
            k, x, place = key[i], i, row[i]
            while x > start and key[x - 1] > k:
                key[x], row[x] = key[x - 1], row[x - 1]
                x -= 1
            key[x], row[x] = k, place
    return True


@jit
def increasing_order(score: F64, row: I32) -> None:
    """Sort scores in [0, 1] in place, stably, and `row` along with them.

    As bits, floats that are not negative are integers in the same order; -0 becomes 0. Four digits
    are counted in one pass: half the time of a pass for each.
    """
    for i in range(score.size):
        score[i] += 0.0
    key = score.view(np.uint64)
    moved, moved_row = np.empty_like(key), np.empty_like(row)
    for turn in range(3):  # the upper digits; where they are not enough, the lower and the upper
        shift: Any = np.uint64(0) if turn == 1 else TOP
        at = np.zeros((4, DIGITS), np.int64)
        for i in range(key.size):
            k = key[i] >> shift
            at[0, k & LAST] += 1
            at[1, (k >> WIDTH) & LAST] += 1
            at[2, (k >> (WIDTH + WIDTH)) & LAST] += 1
            at[3, (k >> (WIDTH + WIDTH + WIDTH)) & LAST] += 1
        for digit in range(4):
            total = np.int64(0)
            for value in range(DIGITS):
                count = at[digit, value]
                at[digit, value] = total
                total += count
        for digit in range(0, 4, 2):  # there and back
            move_rows(key, row, shift, at[digit], moved, moved_row)
            move_rows(moved, moved_row, shift + WIDTH, at[digit + 1], key, row)
            shift += WIDTH + WIDTH
        if turn == 0 and sort_neighbours(key, row, TOP):
            return


@jit
def scores_between(s: F64, low: float, high: float, out: F64) -> tuple[int, int]:
    """Copy the scores from `low` to `high`; count those below, and them.

    `out` has room for all scores.
    """
    below: Any = np.uint64(0)
    count: Any = np.uint64(0)
    for i in range(s.size):  # without a branch, which would be mispredicted
        out[count] = s[i]
        count += np.uint64((s[i] >= low) & (s[i] <= high))
        below += np.uint64(s[i] < low)
    return np.int64(below), np.int64(count)  # type: ignore[return-value]


# --- edges ----------------------------------------------------------------------------------


@jit
def total_weight(w: F64) -> float:
    """Sum up the weights, with a single rounding at the end.

    The remainders of all additions are added up apart.
    """
    total = lost = 0.0
    for i in range(w.size):
        total, rounded = two_sum(total, w[i])
        lost += rounded
    return total + lost


@jit
def cut_weights(j: Any, n_bins: int, total: float) -> tuple[float, float]:
    """Compute the least and the most weight of the scores up to cut j.

    They have at least the first, and at most the second where the cut lies between two scores
    rather than on one.
    """
    target, slack = j * total / n_bins, TOLERANCE * total
    return target - slack, target + slack


@jit
def count_edges(u: F64, right: bool, edges: F64, knots: F64) -> None:
    """Fill in inner edges and knots of sorted scores that count 1 each.

    They are those of `quantile_edges`. The place of a cut is computed, and only scores equal to the
    one there are looked at (a fifth of the time).
    """
    n, n_bins = u.size, edges.size - 1
    end = 0
    for j in range(1, n_bins if n > 0 else 0):
        least, most = cut_weights(j, n_bins, np.float64(n))
        first = max(int(np.ceil(least)), 1)
        x = u[first - 1]
        end = max(end, first)
        while end < n and u[end] == x:
            end += 1
        following = u[end] if (end <= most) & (end < n) else x
        edges[j] = 0.5 * (x + following)
        knots[j - 1] = x if right else following


@jit
def quantile_edges(
    u: F64, w: F64, low: float, high: float, right: bool, edges: F64, knots: F64
) -> None:
    """Fill in edges of bins of equal weight, and knots that assign scores to bins.

    With ``C`` the weight of all scores up to the distinct score ``u_k``, edge j is the first
    ``u_k`` with ``C >= j W / B``, or the midpoint of ``u_k`` and the next distinct score where the
    two are equal. The knot is not the edge: a midpoint may round onto one of its neighbours, but
    at equality the cut lies between them.

    Parameters
    ----------
    u : (n,) float64 array
        Scores in increasing order, moved into [low, high].
    w : (n,) float64 array
        Their weights; scores of weight 0 do not exist. Empty: every score counts 1.
    right : bool
        Bins are closed at the right: a score passes a knot when it is greater, else when it is
        not less.
    edges : (B + 1,) float64 array, overwritten
    knots : (B - 1,) float64 array, overwritten
    """
    n = u.size
    n_bins = edges.size - 1
    for b in range(n_bins):
        edges[b] = low
    edges[n_bins] = high
    for b in range(knots.size):
        knots[b] = np.inf
    if w.size == 0:
        count_edges(u, right, edges, knots)
        return
    total = total_weight(w)
    j = np.int64(1)
    least, most = cut_weights(j, n_bins, total)  # divides: anew only where j changes
    below = lost = 0.0
    i = 0
    while i < n and j < n_bins:
        x = u[i]
        while i < n and u[i] == x:
            below, rounded = two_sum(below, w[i])
            lost += rounded
            i += 1
        while i < n and w[i] == 0.0:
            i += 1
        while j < n_bins and below + lost >= least:
            following = u[i] if (below + lost <= most) & (i < n) else x
            edges[j] = 0.5 * (x + following)
            knots[j - 1] = x if right else following
            j += 1
            least, most = cut_weights(j, n_bins, total)


# --- the sweep ------------------------------------------------------------------------------


@jit
def run_sums(s: F64, y: U8, w: F64, end: I32, hits: F64, misses: F64, guide: I32) -> int:
    """Fill in running sums by distinct score with weight; return their number.

    Of each, arrays with room for n get the row behind its last one, and the weight of the hits and
    of the misses up to it; and `guide` (P + 1,), for each of P even parts of the weight, the first
    score that reaches it. `s` is in increasing order, and `w` are weights; empty: every row
    counts 1.
    """
    count, n, drawn = 0, s.size, False
    hit = miss = hit_lost = miss_lost = 0.0
    for i in range(n):
        # No branch that depends on the hit or the weight: it would be mispredicted.
        amount = w[i] if w.size > 0 else 1.0
        of_hit = amount * y[i]
        hit, rounded = two_sum(hit, of_hit)
        hit_lost += rounded
        miss, rounded = two_sum(miss, amount - of_hit)
        miss_lost += rounded
        drawn |= amount > 0.0
        end[count], hits[count], misses[count] = i + 1, hit + hit_lost, miss + miss_lost
        is_last = (i + 1 == n) or (s[i + 1] != s[i])
        count += 1 if is_last & drawn else 0
        drawn &= not is_last
    k, share = 0, (hits[count - 1] + misses[count - 1]) / (guide.size - 1)
    for q in range(guide.size):
        target = q * share
        while k < count - 1 and hits[k] + misses[k] < target:
            k += 1
        guide[q] = k
    return count


@jit
def run_of_cut(hits: F64, misses: F64, guide: I32, j: Any, n_bins: int) -> Any:
    """Find the run behind which cut j is, by the cumulative weights of runs.

    As `quantile_edges` defines it, it is the first run up to which the weight is the share j / B of
    all. Looked for between two entries of the guide.
    """
    parts, total = guide.size - 1, hits[-1] + misses[-1]
    least, _ = cut_weights(j, n_bins, total)
    q = int(least / total * parts)
    # One part more on either side, since shares are rounded.
    first, last = guide[min(max(q - 1, 0), parts)], guide[min(max(q + 2, 0), parts)]
    while first < last:
        middle = (first + last) // 2
        if hits[middle] + misses[middle] >= least:
            last = middle
        else:
            first = middle + 1
    return np.int64(first)


@jit
def occupied_bins(
    hits: F64, misses: F64, guide: I32, n_bins: int, first: int, end: int, last: I32
) -> int:
    """Fill `last` with the last run of each occupied bin; return their number.

    Bins before run `first` are one, and those behind run `end` are left out: where the two classes
    are nearly apart, a sweep over thousands of bins is short.
    """
    count, total = 0, hits[-1] + misses[-1]
    j: Any = np.int64(1)
    if first > 0:
        j = max(int((hits[first - 1] + misses[first - 1]) / total * n_bins) - 1, 1)
    before: Any = -1
    while before < end:
        run = hits.size - 1 if j >= n_bins else run_of_cut(hits, misses, guide, j, n_bins)
        if run > before:
            last[count] = run
            count, before = count + 1, run
        # The first cut after cut j that may be behind a later run than this one.
        j = max(j + 1, int((hits[before] + misses[before]) / total * n_bins))
    return count


@jit
def has_decrease(hits: F64, misses: F64, last: I32, tolerance: float) -> bool:
    """Return whether some bin has a lower hit rate than the one before it.

    `last` are the last runs of the bins. Rates ``h / (h + m)`` are compared as ``h m'`` and
    ``h' m``, which are exact where rows count 1; less is by more than rounding.
    """
    h = m = hits_before = misses_before = 0.0
    for run in last:
        hit, miss = hits[run] - hits_before, misses[run] - misses_before
        if hit * m + tolerance * (hit + miss) * (h + m) < h * miss:
            return True
        h, m, hits_before, misses_before = hit, miss, hits[run], misses[run]
    return False


@jit
def most_bins(hits: F64, misses: F64, guide: I32, most: int, tolerance: float) -> int:
    """Find the largest number of bins up to which no hit rates decrease.

    It is the largest B, at most `most`, such that of each of 1, ..., B bins the hit rates of the
    occupied ones do not decrease, from the arrays that `run_sums` has filled in.
    """
    runs = hits.size
    first, end = 0, runs - 1  # of the first hit, and of the last miss: before 0, behind 1 are rates
    while first < runs - 1 and hits[first] == 0.0:
        first += 1
    while end > 0 and misses[end - 1] == misses[runs - 1]:
        end -= 1
    # Where the scores themselves have rates that do not decrease, no bins of them have.
    last, start = np.empty(runs, np.int32), max(first - 1, 0)
    for k in range(start, end + 1):
        last[k] = k
    if not has_decrease(hits, misses, last[start : end + 1], tolerance):
        return most
    for n_bins in range(2, most + 1):
        count = occupied_bins(hits, misses, guide, n_bins, first, end, last)
        if has_decrease(hits, misses, last[:count], tolerance):
            return n_bins - 1
    return most
