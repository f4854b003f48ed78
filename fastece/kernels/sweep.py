"""How many bins of equal weight have hit rates that do not decrease."""

from typing import Any

import numpy as np

from fastece.kernels._jit import jit
from fastece.kernels.quantiles import cut_weights
from fastece.kernels.shared import two_sum
from fastece.typing import F64, I32, U8


@jit
def run_sums(s: F64, y: U8, w: F64, end: I32, weight: F64, hits: F64, misses: F64) -> int:
    """The distinct scores that have weight: their number.

    Of each, arrays with room for n get the row behind its last one, and the weight of all rows, of
    the hits and of the misses up to it. `s` is in increasing order, and `w` are weights; empty:
    every row counts 1.
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
        weight[count] = hits[count] + misses[count]
        is_last = (i + 1 == n) or (s[i + 1] != s[i])
        count += 1 if is_last & drawn else 0
        drawn &= not is_last
    return count


@jit
def fill_guide(weight: F64, guide: I32) -> None:
    """Fill `guide` with the first run that reaches each of G + 1 even parts of the weight."""
    parts, k = guide.size - 1, 0
    share = weight[-1] / parts
    for q in range(parts + 1):
        target = q * share
        while k < weight.size - 1 and weight[k] < target:
            k += 1
        guide[q] = k


@jit
def run_of_cut(weight: F64, guide: I32, j: Any, n_bins: int) -> Any:
    """The run behind which cut j is, as `quantiles.quantile_edges` defines it: the first up to
    which the weight is the share j / B of all. Looked for between two entries of the guide."""
    least, _ = cut_weights(j, n_bins, weight[-1])
    parts = guide.size - 1
    q = int(least / weight[-1] * parts)
    # One part more on either side, since shares are rounded.
    first, last = guide[min(max(q - 1, 0), parts)], guide[min(max(q + 2, 0), parts)]
    while first < last:
        middle = (first + last) // 2
        if weight[middle] >= least:
            last = middle
        else:
            first = middle + 1
    return np.int64(first)


@jit
def next_cut(weight: F64, run: int, j: Any, n_bins: int) -> Any:
    """The first cut after cut j that may be behind a later run than this one, or one before it."""
    passed = int(weight[run] / weight[-1] * n_bins)
    return max(j + 1, passed)


@jit
def is_less(
    hits: float, misses: float, other_hits: float, other_misses: float, tolerance: float
) -> bool:
    """Whether one hit rate is less than another, by more than rounding: ``h / (h + m)`` are
    compared as ``h m'`` and ``h' m``, which are exact where rows count 1."""
    slack = tolerance * (hits + misses) * (other_hits + other_misses)
    return hits * other_misses + slack < other_hits * misses


@jit
def has_decrease(
    weight: F64, hits: F64, misses: F64, guide: I32, n_bins: int, first: int, last: int,
    tolerance: float,
) -> bool:  # fmt: skip
    """Whether of so many bins one has a lower hit rate than the occupied one before it.

    `first` is the run of the first hit, and `last` that of the last miss: bins before have the rate
    0, those behind the rate 1, and are not looked at. Where the two classes are nearly apart, a
    sweep over thousands of bins is short.
    """
    j: Any = np.int64(1)
    before: Any = -1
    if first > 0:
        j = max(int(weight[first - 1] / weight[-1] * n_bins) - 1, 1)
        run = run_of_cut(weight, guide, j, n_bins)
        if run < first:
            before = run
            j = next_cut(weight, run, j, n_bins)
    h = m = 0.0
    while before < last:
        run = weight.size - 1 if j >= n_bins else run_of_cut(weight, guide, j, n_bins)
        if run > before:
            hit = hits[run] - (hits[before] if before >= 0 else 0.0)
            miss = misses[run] - (misses[before] if before >= 0 else 0.0)
            if is_less(hit, miss, h, m, tolerance):
                return True
            h, m, before = hit, miss, run
        j = next_cut(weight, before, j, n_bins)
    return False


@jit
def most_bins(weight: F64, hits: F64, misses: F64, guide: I32, most: int, tolerance: float) -> int:
    """The largest B, at most `most`, such that of each of 1, ..., B bins the hit rates of the
    occupied ones do not decrease, from what `run_sums` has filled in and the guide."""
    runs = weight.size
    first, last = 0, runs - 1
    while first < runs - 1 and hits[first] == 0.0:
        first += 1
    while last > 0 and misses[last - 1] == misses[runs - 1]:
        last -= 1
    # Where the scores themselves have rates that do not decrease, no bins of them have.
    ordered, h, m = True, 0.0, 0.0
    for k in range(first, last + 1):
        hit = hits[k] - (hits[k - 1] if k > 0 else 0.0)
        miss = misses[k] - (misses[k - 1] if k > 0 else 0.0)
        ordered = ordered and not is_less(hit, miss, h, m, tolerance)
        h, m = hit, miss
    if ordered:
        return most
    for n_bins in range(2, most + 1):
        if has_decrease(weight, hits, misses, guide, n_bins, first, last, tolerance):
            return n_bins - 1
    return most


@jit
def occupied_bins(weight: F64, guide: I32, n_bins: int, last: I32) -> int:
    """The last run of each occupied bin, in `last`; their number."""
    count = 0
    j: Any = np.int64(1)
    before: Any = -1
    while before < weight.size - 1:
        run = weight.size - 1 if j >= n_bins else run_of_cut(weight, guide, j, n_bins)
        if run > before:
            last[count] = run
            count, before = count + 1, run
        j = next_cut(weight, before, j, n_bins)
    return count
