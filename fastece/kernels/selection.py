"""The few rows that decide where cuts of equal weight are, without a sort of all rows.

Scores are counted in parts of [0, 1]. A part that holds no cut is on one side of every cut, so its
rows need not be known one by one: their weight is added to a row before them. The rows of the other
parts are kept, and sorted. `quantile_edges` finds the same cuts among these *deciding rows* as
among all, since its decisions are about the weight up to a score next to a cut.

`deciding_rows` takes all steps, in the order of this page.
"""

from typing import Any, NamedTuple

import numpy as np

from fastece.kernels.arithmetic import BLOCK, two_sum
from fastece.kernels.compiling import jit
from fastece.kernels.quantiles import increasing_order, total_weight
from fastece.kernels.types import F64, I32, I64, U8

# Up to this many scores are all sorted: 1000 take 6 us, and to count them in parts takes as long.
MAX_SORTED = 1024
# The counts of so many even parts stay in the second-level cache.
MAX_EVEN_PARTS = 2**14
# Scores of a part, on average. With fewer it takes longer to look through the parts than to sort.
SCORES_PER_PART = 4
# Scores that are looked at first, and a distance from 0 or 1 within which at most one in eight of
# them may be. Where more are, parts get narrower towards 0 and 1, as floats do: in even parts most
# scores of a sharp model are in the last one.
PROBES = 64
END = 1 / 64
MAX_SHARE_AT_ENDS = 1 / 8
# Parts as narrow as floats: 2**bits for each of so many halvings of the distance from 0 and from 1.
OCTAVES = 54
MIN_BITS = 3
MAX_BITS = 7
SMALLEST = 2.0**-OCTAVES
SIGNIFICAND_BITS = 52
EXPONENT_OF_SMALLEST = 1023 - OCTAVES
# In place of bits: parts are even.
EVEN = -1
# Parts whose cumulative weight is this close to a cut, relative to all weight, are kept too. It is
# wider than `quantiles.TOLERANCE`, since sums of parts are rounded.
CUT_TOLERANCE = 1e-11
# If a larger share of the rows is in parts with a cut, it pays to look for parts of one score.
CROWDED = 1 / 16
# Scores among which one of each such part is looked for.
SCORES_LOOKED_AT = 2**12


class Split(NamedTuple):
    """How [0, 1] is divided into parts, which rise with the score.

    Attributes
    ----------
    n_parts : int
        Number P of parts.
    bits : int
        `EVEN`, or there are 2**bits parts for each halving of the distance from 0 and from 1.
    """

    n_parts: int
    bits: int


class Marks(NamedTuple):
    """Which parts hold a cut.

    Attributes
    ----------
    keeps : (P + 1,) uint8 array
        Whether the rows of a part are kept. The last entry, 0, is for rows that do not exist.
    part : (Q,) int64 array
        The parts that hold a cut, in order.
    left_out : (Q + 1,) float64 array
        The weight of the rows before each of these parts, from the one before on, and behind all.
    only_score : (Q,) float64 array
        The score of a part all of whose rows have the same, so that none of them is kept; else nan.
    """

    keeps: U8
    part: I64
    left_out: F64
    only_score: F64


# --- parts ----------------------------------------------------------------------------------


@jit
def choose_split(s: F64) -> Split:
    """Choose the parts for scores (n,), by a look at some of them."""
    step = max(s.size // PROBES, 1)
    n_at_ends = 0
    for i in range(0, s.size, step):
        n_at_ends += 1 if abs(s[i] - 0.5) > 0.5 - END else 0
    if n_at_ends * step <= MAX_SHARE_AT_ENDS * s.size:
        n_parts = 1
        while n_parts < min(s.size // SCORES_PER_PART, MAX_EVEN_PARTS):
            n_parts *= 2
        return Split(n_parts + 1, EVEN)  # the score 1 has a part of its own
    bits = MIN_BITS
    while bits < MAX_BITS and (2 * OCTAVES) << bits < s.size // SCORES_PER_PART:
        bits += 1
    # Distances from 0 are less than 1/2, and those from 1 at most 1/2.
    return Split(2 * ((OCTAVES - 1) << bits) + 1, bits)


@jit
def find_parts(s: F64, split: Split, threshold: float, work: F64, part: I32) -> None:
    """Find the part of each score; scores up to the threshold are in part P.

    `work` and `part` have room for the scores.
    """
    if split.bits == EVEN:
        scale = np.float64(split.n_parts - 1)
        for i in range(s.size):
            part[i] = np.int32(s[i] * scale)
    else:
        shift = np.int64(SIGNIFICAND_BITS - split.bits)
        first = np.int64(EXPONENT_OF_SMALLEST) << np.int64(split.bits)
        last = np.int32(split.n_parts - 1)
        for i in range(s.size):
            distance = s[i] if s[i] < 0.5 else 1.0 - s[i]
            work[i] = distance if distance > SMALLEST else SMALLEST
        for i in range(s.size):
            j = np.int32((np.float64(work[i]).view(np.int64) >> shift) - first)
            part[i] = j if s[i] < 0.5 else last - j
    if threshold > -np.inf:
        nowhere = np.int32(split.n_parts)
        for i in range(s.size):
            part[i] = part[i] if s[i] > threshold else nowhere


class Parts(NamedTuple):
    """Rows and weight of each part.

    Attributes
    ----------
    n_rows : (P,) int64 array
    weight : (P,) float64 array
        The weight of these rows.
    total : float
        The weight of all rows.
    """

    n_rows: I64
    weight: F64
    total: float


@jit
def count_parts(s: F64, w: F64, split: Split, threshold: float) -> Parts:
    """Add up the rows of each part; see `deciding_rows` for the arguments."""
    # Two lanes of counts, so that neighbours do not wait for each other; rows that do not exist are
    # counted behind the parts. With weights, what additions round off is kept.
    counts = np.zeros((split.n_parts + 1, 2), np.int64)
    sums = np.zeros((split.n_parts + 1 if w.size > 0 else 0, 2))
    part = np.empty(min(s.size, BLOCK), np.int32)
    work = np.empty(part.size)
    for start in range(0, s.size, BLOCK):
        block = s[start : start + BLOCK]
        find_parts(block, split, threshold, work, part)
        for i in range(block.size):
            counts[np.uint64(part[i]), np.uint64(i & 1)] += 1
        weights = w[start : start + BLOCK]
        for i in range(weights.size):
            j = np.uint64(part[i])
            sums[j, 0], rounded = two_sum(sums[j, 0], weights[i])
            sums[j, 1] += rounded
    n_rows = np.empty(split.n_parts, np.int64)
    weight = np.empty(split.n_parts)
    n_in_all = 0
    for p in range(split.n_parts):
        n_rows[p] = counts[p, 0] + counts[p, 1]
        n_in_all += n_rows[p]
        weight[p] = np.float64(n_rows[p])
    total = float(n_in_all)
    if w.size > 0:
        for p in range(split.n_parts):
            weight[p] = sums[p, 0] + sums[p, 1]
        total = total_weight(weight)
    return Parts(n_rows, weight, total)


# --- parts that hold a cut ------------------------------------------------------------------


@jit
def mark_parts(parts: Parts, shares: F64) -> Marks:
    """Mark the parts that hold a score next to a cut.

    `shares` (C,) are those of all weight up to each cut, in increasing order.
    """
    weight = parts.weight
    n_parts = weight.size
    keeps = np.zeros(n_parts + 1, np.uint8)
    part = np.empty(n_parts, np.int64)
    left_out = np.empty(n_parts + 1)
    slack = CUT_TOLERANCE * parts.total
    n_passed = -1
    cut = -np.inf
    below = waiting = 0.0
    n_marked = 0
    for p in range(n_parts):
        if weight[p] == 0.0:
            continue
        while cut + slack < below:  # cuts that are below this part
            n_passed += 1
            cut = shares[n_passed] * parts.total if n_passed < shares.size else np.inf
        below += weight[p]
        if cut - slack <= below:
            keeps[p] = 1
            part[n_marked] = p
            left_out[n_marked] = waiting
            waiting = 0.0
            n_marked += 1
        else:
            waiting += weight[p]
    left_out[n_marked] = waiting
    only_score = np.full(n_marked, np.nan)
    return Marks(keeps, part[:n_marked], left_out[: n_marked + 1], only_score)


@jit
def count_kept(parts: Parts, marks: Marks) -> int:
    """Count the rows of the parts that are kept."""
    n_kept = 0
    for p in marks.part:
        n_kept += parts.n_rows[p] if marks.keeps[p] == 1 else 0
    return n_kept


@jit
def merge_ties(s: F64, split: Split, threshold: float, marks: Marks) -> None:
    """Keep no rows of a part all of whose rows have one score.

    A score of each part is taken from an evenly spaced choice of rows, and compared with all rows;
    a part without one in the choice has few rows.
    """
    step = max(s.size // SCORES_LOOKED_AT, 1)
    some = np.empty((s.size - 1) // step + 1)
    for i in range(some.size):
        some[i] = s[i * step]
    part = np.empty(max(some.size, BLOCK), np.int32)
    work = np.empty(part.size)
    find_parts(some, split, threshold, work, part)
    score = np.full(split.n_parts + 1, np.nan)
    for i in range(some.size):
        score[np.uint64(part[i])] = some[i]
    # The second column of a part gets 1 where a row has another score.
    has_score = np.zeros((split.n_parts + 1, 2), np.uint8)
    next_look = BLOCK
    for start in range(0, s.size, BLOCK):
        if start == next_look:
            next_look *= 2
            n_tied = 0
            for p in marks.part:
                n_tied += 1 if has_score[p, 1] == 0 else 0
            if n_tied == 0:
                return
        block = s[start : start + BLOCK]
        find_parts(block, split, threshold, work, part)
        for i in range(block.size):  # nothing is read that an earlier row has written
            j = np.uint64(part[i])
            has_score[j, np.uint64(block[i] != score[j])] = 1
    for q in range(marks.part.size):
        p = marks.part[q]
        if has_score[p, 1] == 0:
            marks.only_score[q] = score[p]
            marks.keeps[p] = 0


# --- rows that are kept ---------------------------------------------------------------------


@jit
def keep_rows(
    s: F64, w: F64, split: Split, threshold: float, keeps: U8, n_kept: int
) -> tuple[F64, F64]:  # fmt: skip
    """Copy the scores and weights of the `n_kept` rows of parts that are kept."""
    # Every row is written, and the place moves on behind those that are kept: a branch would be
    # mispredicted.
    kept = np.empty(n_kept + 1)
    kept_weight = np.empty(n_kept + 1 if w.size > 0 else 0)
    part = np.empty(min(s.size, BLOCK), np.int32)
    work = np.empty(part.size)
    j: Any = np.uint64(0)
    for start in range(0, s.size if n_kept > 0 else 0, BLOCK):
        block = s[start : start + BLOCK]
        weights = w[start : start + BLOCK]
        find_parts(block, split, threshold, work, part)
        if weights.size > 0:
            for i in range(block.size):
                kept[j] = block[i]
                kept_weight[j] = weights[i]
                j += np.uint64(keeps[np.uint64(part[i])])
        else:
            for i in range(block.size):
                kept[j] = block[i]
                j += np.uint64(keeps[np.uint64(part[i])])
    return kept[:n_kept], kept_weight[: min(n_kept, kept_weight.size)]


@jit
def existing_rows(s: F64, w: F64, threshold: float) -> tuple[F64, F64]:
    """Return the rows with a score above the threshold."""
    if threshold == -np.inf:
        return s, w
    score = np.empty(s.size)
    weight = np.empty(w.size)
    count = 0
    for i in range(s.size):
        score[count] = s[i]
        if w.size > 0:
            weight[count] = w[i]
        count += 1 if s[i] > threshold else 0
    return score[:count], weight[: min(count, weight.size)]


@jit
def sort_kept(kept: F64, kept_weight: F64, only_score: F64) -> tuple[F64, F64]:
    """Sort the rows that are kept, and the only score of each part that has but one.

    `kept` and `kept_weight` (m,) are scores and weights; empty weights stay empty. The weight of an
    only score is left for `add_left_out` to fill in.
    """
    n_rows = kept.size
    for x in only_score:
        n_rows += 0 if np.isnan(x) else 1
    u = np.empty(n_rows)
    for i in range(kept.size):
        u[i] = kept[i]
    n_rows = kept.size
    for x in only_score:
        if not np.isnan(x):
            u[n_rows] = x
            n_rows += 1
    row = np.empty(n_rows if kept_weight.size > 0 else 0, np.int32)
    for i in range(row.size):
        row[i] = i
    increasing_order(u, np.empty(0, np.uint8), row)
    w = np.empty(row.size)
    for i in range(row.size):
        w[i] = kept_weight[row[i]] if row[i] < kept_weight.size else 0.0
    return u, w


@jit
def add_left_out(w: F64, n_rows: int, parts: Parts, marks: Marks) -> F64:
    """Return the weights of sorted rows, each with all weight left out behind.

    `w` are the weights of the `n_rows` rows themselves; empty weights are 1.
    """
    with_others = np.empty(n_rows)
    for i in range(n_rows):
        with_others[i] = w[i] if w.size > 0 else 1.0
    end = 0
    for q in range(marks.part.size):
        p = marks.part[q]
        begin = end
        if marks.keeps[p] == 1:
            end += parts.n_rows[p]
        else:
            with_others[begin] = parts.weight[p]
            end += 1
        # There is no row before the first part, so its first row has the weight there.
        with_others[max(begin - 1, 0)] += marks.left_out[q]
    if end > 0:
        with_others[end - 1] += marks.left_out[marks.part.size]
    return with_others


@jit
def deciding_rows(s: F64, w: F64, shares: F64, threshold: float) -> tuple[F64, F64]:
    """Find scores in increasing order, and weights, with the same cuts as all rows.

    Parameters
    ----------
    s, w : (n,) float64 arrays
        Scores in [0, 1] and weights, in any order; empty weights are 1, also in the result.
    shares : (C,) float64 array
        The share of all weight up to each cut, in increasing order.
    threshold : float
        Scores up to this one do not exist.
    """
    if s.size <= MAX_SORTED:
        kept, kept_weight = existing_rows(s, w, threshold)
        return sort_kept(kept, kept_weight, np.empty(0))
    split = choose_split(s)
    parts = count_parts(s, w, split, threshold)
    marks = mark_parts(parts, shares)
    if count_kept(parts, marks) > CROWDED * s.size:
        merge_ties(s, split, threshold, marks)
    kept, kept_weight = keep_rows(s, w, split, threshold, marks.keeps, count_kept(parts, marks))
    u, u_weight = sort_kept(kept, kept_weight, marks.only_score)
    return u, add_left_out(u_weight, u.size, parts, marks)
