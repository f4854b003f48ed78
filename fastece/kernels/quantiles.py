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
# Values of a digit, which has `WIDTH` bits: the 1024 lines of memory that a pass writes to stay in
# the second-level cache.
DIGITS = 2**10
WIDTH = np.uint64(10)
LAST_DIGIT = np.uint64(DIGITS - 1)
BITS = np.uint64(64)
ONE = np.uint64(1)
# The bits of 1/2. A key is the bits of a score up to 1/2, else twice these less the bits of its
# distance from 1; then comes a bit for the hit, not sorted by.
HALF = np.uint64(0x3FE << 52)
# From this bit on, 3 digits of a key are the exponent and the first 19 bits.
TOP = np.uint64(34)
# From this bit on, 2 digits are the exponent and the first 9 bits: enough for few scores, for which
# a pass takes as long as its digits have values. 100 scores take 0.65 of the time.
TOP_OF_FEW = TOP + WIDTH
MAX_FEW_SCORES = 1024
# Rows that have these digits in common are sorted by insertion, if they are not more.
MAX_INSERTED = 24
# Even parts of the weight whose first scores a sweep finds once: 16 KB stay in the cache.
MAX_PARTS = 2**12


# --- the sort, digit by digit: 4 to 7 ns a row where comparisons take 25 to 90 -----------------


@jit
def sort_neighbours(key: U64, row: I32, top: Any) -> bool:
    """Sort keys ordered by their bits from `top` on, if few share them; return if so."""
    start = 0
    for i in range(1, key.size):
        x = i
        if key[i] >> top != key[i - 1] >> top:
            start = i
        while x > start and key[x] >> ONE < key[x - 1] >> ONE:
            if i - start >= MAX_INSERTED:
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
    n = score.size
    bits = score.view(np.uint64)
    key = np.empty(n, np.uint64)
    moved = bits
    old_row = row
    moved_row = np.empty(row.size, np.int32)
    for i in range(n):
        distance = score[i] + 0.0 if score[i] < 0.5 else 1.0 - score[i]
        bits_of_distance = np.float64(distance).view(np.uint64)
        key[i] = (bits_of_distance if score[i] < 0.5 else HALF + HALF - bits_of_distance) << ONE
    for i in range(hit.size):
        key[i] |= np.uint64(hit[i])
    top = TOP_OF_FEW if n <= MAX_FEW_SCORES else TOP
    for low in (top, ONE):  # the upper digits, and where they are not enough all of them
        shift = low
        # How many keys have each value of a digit, and then the place of the next such key.
        places = np.zeros(DIGITS, np.int64)
        next_counts = np.empty(DIGITS, np.int64)
        for i in range(n):
            places[(key[i] >> low) & LAST_DIGIT] += 1
        while shift < BITS:
            total = np.int64(0)
            for value in range(DIGITS):
                count = places[value]
                places[value] = total
                next_counts[value] = 0
                total += count
            next_shift = (shift + WIDTH) % BITS  # behind the last digit it does not matter
            for i in range(n):
                digit = (key[i] >> shift) & LAST_DIGIT
                to = np.uint64(places[digit])
                places[digit] += 1
                moved[to] = key[i]
                next_counts[(key[i] >> next_shift) & LAST_DIGIT] += 1
                if row.size > 0:
                    moved_row[to] = old_row[i]
            key, moved = moved, key
            old_row, moved_row = moved_row, old_row
            places, next_counts = next_counts, places
            shift += WIDTH
        if low == top and sort_neighbours(key, old_row, top):
            break
    for i in range(hit.size):
        hit[i] = key[i] & ONE
    for i in range(row.size):  # `row[:] = old_row` compiles numba's error messages too: 2 s
        row[i] = old_row[i]
    for i in range(n):
        k = key[i] >> ONE
        bits[i] = k if k < HALF else HALF + HALF - k
        score[i] = score[i] if k < HALF else 1.0 - score[i]


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
    """Compute bounds of the weight of the scores up to cut j.

    The scores up to the cut weigh at least the first. They weigh at most the second where the cut
    lies between two scores, and not on one. This is the formula of every cut of equal weight.
    """
    target = j * total / n_bins
    slack = TOLERANCE * total
    return target - slack, target + slack


@jit
def count_edges(u: F64, right: bool, edges: F64, knots: F64) -> None:
    """Fill in inner edges and knots of sorted scores that count 1 each.

    They have the definition of `quantile_edges`. The place of a cut is computed, and only scores
    equal to the one there are looked at: a fifth of the time.
    """
    n = u.size
    n_bins = edges.size - 1
    end = 0
    for j in range(1, n_bins if n > 0 else 0):
        lowest, highest = cut_weights(j, n_bins, np.float64(n))
        first = max(int(np.ceil(lowest)), 1)
        x = u[first - 1]
        end = max(end, first)
        while end < n and u[end] == x:
            end += 1
        following = u[end] if (end <= highest) & (end < n) else x
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
    edges[:n_bins] = low
    edges[n_bins] = high
    knots[:] = np.inf
    if w.size == 0:
        count_edges(u, right, edges, knots)
        return
    total = total_weight(w)
    j = np.int64(1)
    lowest, highest = cut_weights(j, n_bins, total)  # divides: anew only where j changes
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
        while j < n_bins and below + lost >= lowest:
            following = u[i] if (below + lost <= highest) & (i < n) else x
            edges[j] = 0.5 * (x + following)
            knots[j - 1] = x if right else following
            j += 1
            lowest, highest = cut_weights(j, n_bins, total)


# --- the sweep ------------------------------------------------------------------------------


@jit
def run_sums(s: F64, y: U8, w: F64, end: I32, hits: F64, misses: F64, guide: I32) -> int:
    """Fill in running sums by distinct score with weight; return their number.

    Parameters
    ----------
    s, y, w : (n,) float64, uint8 and float64 arrays
        Scores in increasing order, hits and weights; empty weights are 1.
    end : (n,) int32 array
        Gets the row behind the last one of each distinct score.
    hits, misses : (n,) float64 arrays
        Get the weight of the hits, and of the misses, up to each distinct score.
    guide : (P + 1,) int32 array
        Gets the first distinct score that reaches each of P even parts of the weight.
    """
    count = 0
    n = s.size
    drawn = False
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
        end[count] = i + 1
        hits[count] = hit + hit_lost
        misses[count] = miss + miss_lost
        is_last = (i + 1 == n) or (s[i + 1] != s[i])
        count += 1 if is_last & drawn else 0
        drawn &= not is_last
    k = 0
    share = (hits[count - 1] + misses[count - 1]) / (guide.size - 1)
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

    Bins before run `first` are one, and bins behind run `end` are left out: where the two classes
    are nearly apart, a sweep over thousands of bins is short. As `quantile_edges` defines it, a cut
    is behind the first run up to which the weight is the share j / B of all. It is looked for
    between two entries of the guide.
    """
    count = 0
    total = hits[-1] + misses[-1]
    parts = guide.size - 1
    j: Any = np.int64(1)
    if first > 0:
        j = max(int((hits[first - 1] + misses[first - 1]) / total * n_bins) - 1, 1)
    before: Any = -1
    while before < end:
        lowest, _ = cut_weights(j, n_bins, total)
        q = int(lowest / total * parts)
        # One part more on either side, since shares are rounded.
        run = guide[min(max(q - 1, 0), parts)]
        high = guide[min(max(q + 2, 0), parts)]
        while run < high and j < n_bins:
            middle = (run + high) // 2
            if hits[middle] + misses[middle] >= lowest:
                high = middle
            else:
                run = middle + 1
        run = hits.size - 1 if j >= n_bins else run
        if run > before:
            last[count] = run
            count += 1
            before = run
        # The first cut after cut j that may be behind a later run than this one.
        j = max(j + 1, int((hits[before] + misses[before]) / total * n_bins))
    return count


@jit
def has_decrease(hits: F64, misses: F64, last: I32, tolerance: float) -> bool:
    """Return whether some bin has a lower hit rate than the one before it.

    `last` are the last runs of the bins. Rates ``h / (h + m)`` are compared as ``h m'`` and
    ``h' m``, which are exact where rows count 1; a rate is lower if it is by more than rounding.
    """
    last_hit = last_miss = hits_before = misses_before = 0.0
    for run in last:
        hit = hits[run] - hits_before
        miss = misses[run] - misses_before
        slack = tolerance * (hit + miss) * (last_hit + last_miss)
        if hit * last_miss + slack < last_hit * miss:
            return True
        last_hit = hit
        last_miss = miss
        hits_before = hits[run]
        misses_before = misses[run]
    return False


@jit
def monotone_bin_count(hits: F64, misses: F64, guide: I32, max_bins: int, tolerance: float) -> int:
    """Find the largest number of bins up to which no hit rates decrease.

    It is the largest B, at most `max_bins`, such that for each of 1, ..., B bins the hit rates of
    the occupied ones do not decrease, from the arrays that `run_sums` has filled in.
    """
    runs = hits.size
    # The runs of the first hit and of the last miss: rates before are 0, and rates behind are 1.
    first = 0
    end = runs - 1
    while first < runs - 1 and hits[first] == 0.0:
        first += 1
    while end > 0 and misses[end - 1] == misses[runs - 1]:
        end -= 1
    # Where the rates of single scores do not decrease, the rates of no bins do.
    last = np.empty(runs, np.int32)
    start = max(first - 1, 0)
    for k in range(start, end + 1):
        last[k] = k
    if not has_decrease(hits, misses, last[start : end + 1], tolerance):
        return max_bins
    for n_bins in range(2, max_bins + 1):
        count = occupied_bins(hits, misses, guide, n_bins, first=first, end=end, last=last)
        if has_decrease(hits, misses, last[:count], tolerance):
            return n_bins - 1
    return max_bins


@jit
def sweep_bins(s: F64, y: U8, w: F64, max_bins: int, tolerance: float) -> tuple[I32, int]:
    """Find the row behind the last of each occupied bin, and the number of all bins.

    The number is found by `monotone_bin_count`. Rows are as in `run_sums`.
    """
    end = np.empty(s.size, np.int32)
    last = np.empty(s.size, np.int32)
    sums = np.empty((2, s.size))
    guide = np.empty(min(s.size, MAX_PARTS) + 1, np.int32)
    count = run_sums(s, y, w, end, hits=sums[0], misses=sums[1], guide=guide)
    hits = sums[0, :count]
    misses = sums[1, :count]
    n_bins = monotone_bin_count(hits, misses, guide, max_bins, tolerance)
    occupied = occupied_bins(
        hits, misses, guide, n_bins, first=np.int64(0), end=count - 1, last=last
    )
    for k in range(occupied):
        last[k] = end[last[k]]
    return last[:occupied], n_bins
