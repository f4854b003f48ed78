"""Scores in increasing order: sort, edges of equal-mass bins, monotone sweep.

The sweep finds how many bins of equal weight have hit rates that do not decrease.
"""

from typing import Any

import numpy as np

from fastece.kernels.arithmetic import two_sum
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I32, U8, U64

# Cumulative weights closer than this, relative to the total, are equal.
TOLERANCE = 1e-12
# Digits of 10 bits: 1024 lines of memory that a pass writes to stay in the second-level cache.
# A key is the bits of a score up to 1/2, else `HALF` twice less those of its distance from 1; then
# comes a bit for the hit, not sorted by. From `TOP` on, 3 digits are the exponent and the first 19
# bits. Few rows have these in common, and up to so many of them are sorted by insertion.
DIGITS, HALF, FEW = 2**10, np.uint64(0x3FE << 52), 24
ONE, WIDTH, TOP, BITS, LAST = (np.uint64(k) for k in (1, 10, 34, 64, DIGITS - 1))
# Parts of the weight that a sweep finds at once: few of many rows, so that they stay in the cache.
MOST_PARTS = 2**12


# --- the sort, digit by digit: 4 to 7 ns a row where comparisons take 25 to 90 -----------------


@jit
def sort_neighbours(key: U64, row: I32) -> bool:
    """Sort keys ordered by their bits from `TOP` on, if few share them; return if so."""
    start = 0
    for i in range(1, key.size):
        x, start = i, start if key[i] >> TOP == key[i - 1] >> TOP else i
        while x > start and key[x] >> ONE < key[x - 1] >> ONE:
            if i - start >= FEW:
                return False
            key[x], key[x - 1] = key[x - 1], key[x]
            if row.size > 0:
                row[x], row[x - 1] = row[x - 1], row[x]
            x -= 1
    return True


@jit
def increasing_order(score: F64, hit: U8, row: I32) -> None:
    """Sort scores in [0, 1] in place, stably, with hits and rows, if there are any.

    As bits, floats that are not negative are integers in the same order; -0 becomes 0. Above 1/2,
    the distance from 1 is exact, and tells scores that crowd there apart by the upper digits.
    """
    bits, n = score.view(np.uint64), score.size
    key, moved, old_row, moved_row = np.empty_like(bits), bits, row, np.empty_like(row)
    distance = key.view(np.float64)
    for i in range(n):
        distance[i] = score[i] + 0.0 if score[i] < 0.5 else 1.0 - score[i]
        key[i] = (key[i] if score[i] < 0.5 else HALF + HALF - key[i]) << ONE
    for i in range(hit.size):
        key[i] |= np.uint64(hit[i])
    for low in (TOP, ONE):  # the upper digits, and where they are not enough all of them
        shift, at, following = low, np.zeros(DIGITS, np.int64), np.empty(DIGITS, np.int64)
        for i in range(n):
            at[(key[i] >> low) & LAST] += 1
        while shift < BITS:
            total = np.int64(0)
            for value in range(DIGITS):
                count = at[value]
                at[value], following[value] = total, 0
                total += count
            next_shift = (shift + WIDTH) % BITS  # behind the last digit it does not matter
            for i in range(n):
                digit = (key[i] >> shift) & LAST
                to = np.uint64(at[digit])
                at[digit] += 1
                moved[to] = key[i]
                following[(key[i] >> next_shift) & LAST] += 1
                if row.size > 0:
                    moved_row[to] = old_row[i]
            key, moved, old_row, moved_row = moved, key, moved_row, old_row
            at, following = following, at
            shift += WIDTH
        if low == TOP and sort_neighbours(key, old_row):
            break
    for i in range(hit.size):
        hit[i] = key[i] & ONE
    for i in range(row.size):  # `row[:] = old_row` compiles numba's error messages too: 2 s
        row[i] = old_row[i]
    for i in range(n):
        k = key[i] >> ONE
        bits[i] = k if k < HALF else HALF + HALF - k
        score[i] = score[i] if k < HALF else 1.0 - score[i]


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
    n, n_bins = u.size, edges.size - 1
    edges[:n_bins], edges[n_bins] = low, high
    knots[:] = np.inf
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
        of_miss = amount - of_hit
        hit, rounded = two_sum(hit, of_hit) if w.size > 0 else (hit + of_hit, 0.0)
        hit_lost += rounded
        miss, rounded = two_sum(miss, of_miss) if w.size > 0 else (miss + of_miss, 0.0)
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
def occupied_bins(
    hits: F64, misses: F64, guide: I32, n_bins: int, first: Any, end: int, last: I32
) -> int:
    """Fill `last` with the last run of each occupied bin; return their number.

    Bins before run `first` are one, and those behind run `end` are left out: where the two classes
    are nearly apart, a sweep over thousands of bins is short. As `quantile_edges` defines it, a cut
    is behind the first run up to which the weight is the share j / B of all. It is looked for
    between two entries of the guide.
    """
    count, total, parts = 0, hits[-1] + misses[-1], guide.size - 1
    j: Any = np.int64(1)
    if first > 0:
        j = max(int((hits[first - 1] + misses[first - 1]) / total * n_bins) - 1, 1)
    before: Any = -1
    while before < end:
        least, _ = cut_weights(j, n_bins, total)
        q = int(least / total * parts)
        # One part more on either side, since shares are rounded.
        run, high = guide[min(max(q - 1, 0), parts)], guide[min(max(q + 2, 0), parts)]
        while run < high and j < n_bins:
            middle = (run + high) // 2
            if hits[middle] + misses[middle] >= least:
                high = middle
            else:
                run = middle + 1
        run = hits.size - 1 if j >= n_bins else run
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


@jit
def sweep_bins(s: F64, y: U8, w: F64, most: int, tolerance: float) -> tuple[I32, int]:
    """Find the row behind the last of each occupied bin, and the number of all bins.

    It is that of `most_bins`. Rows are as in `run_sums`.
    """
    end, last, sums = np.empty(s.size, np.int32), np.empty(s.size, np.int32), np.empty((2, s.size))
    guide = np.empty(min(s.size, MOST_PARTS) + 1, np.int32)
    count = run_sums(s, y, w, end, sums[0], sums[1], guide)
    hits, misses = sums[0, :count], sums[1, :count]
    n_bins = most_bins(hits, misses, guide, most, tolerance)
    occupied = occupied_bins(hits, misses, guide, n_bins, np.int64(0), count - 1, last)
    for k in range(occupied):
        last[k] = end[last[k]]
    return last[:occupied], n_bins
