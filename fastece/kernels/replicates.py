"""Sums over bins for 32 replicates at once.

The innermost loop is over replicates: it vectorises, and every sum is added up in the order of the
rows. If the bins do not depend on the draw, rows are put into an order in which the rows of a bin
are neighbours within a tile of rows, so that counts are read from the first-level cache. Equal-mass
bins depend on the draw: each replicate has its own cuts between the sorted rows, found from
cumulative weights, without a sort.
"""

from typing import Any, NamedTuple

import numpy as np

from fastece.kernels import REPLICATES
from fastece.kernels.arithmetic import column_sums, two_sum, zero
from fastece.kernels.compiling import jit
from fastece.kernels.quantiles import cut_weights
from fastece.kernels.types import F64, I32, I64, U8


class OrderedRows(NamedTuple):
    """Rows in increasing order of the score, equal ones side by side.

    Attributes
    ----------
    s, u : (n,) float64 arrays
        Scores, and scores moved into the range.
    v : (n,) float64 array
        Sample weights; empty: every row counts 1.
    order : (n,) int32 array
        0, 1, 2, ...
    run, first : (n,) and (runs + 1,) int32 arrays
        To which run of equal scores each row belongs, and where it begins.
    skip : int
        How many rows of the draw come before them: those that do not exist.
    low, high : float
        Range that bins divide.
    group : int
        Rows between the cumulative weights that are kept, 256 bytes each: the more rows, the fewer
        of them are looked at for a cut.
    """

    s: F64
    u: F64
    v: F64
    order: I32
    run: I32
    first: I32
    skip: int
    low: float
    high: float
    group: int


# --- sums over rows -------------------------------------------------------------------------


@jit
def add_rows(c: U8, order: I32, x: F64, first: Any, last: Any, sums: F64) -> None:
    """Add ``x[i] * c[order[i], r]`` to ``sums[r]`` for rows `first` to `last`.

    Rows are added in this order, four at a time, so that the sums are seldom stored.
    """
    i = first
    while i + 4 <= last:
        x0 = x[i]
        x1 = x[i + 1]
        x2 = x[i + 2]
        x3 = x[i + 3]
        c0 = c[order[i]]
        c1 = c[order[i + 1]]
        c2 = c[order[i + 2]]
        c3 = c[order[i + 3]]
        for r in range(REPLICATES):
            total = sums[r] + x0 * np.float64(c0[r])
            total += x1 * np.float64(c1[r])
            total += x2 * np.float64(c2[r])
            total += x3 * np.float64(c3[r])
            sums[r] = total
        i += 4
    while i < last:
        x0 = x[i]
        c0 = c[order[i]]
        for r in range(REPLICATES):
            sums[r] += x0 * np.float64(c0[r])
        i += 1


@jit
def add_twice(
    c: U8, order: I32, x: F64, y: F64, first: Any, last: Any, sums: F64, others: F64
) -> None:
    """Add x to `sums` and y to `others`, as `add_rows`, in one reading of the counts."""
    i = first
    while i + 2 <= last:
        x0 = x[i]
        x1 = x[i + 1]
        y0 = y[i]
        y1 = y[i + 1]
        c0 = c[order[i]]
        c1 = c[order[i + 1]]
        for r in range(REPLICATES):
            a = np.float64(c0[r])
            b = np.float64(c1[r])
            sums[r] = (sums[r] + x0 * a) + x1 * b
            others[r] = (others[r] + y0 * a) + y1 * b
        i += 2
    if i < last:
        x0 = x[i]
        y0 = y[i]
        c0 = c[order[i]]
        for r in range(REPLICATES):
            a = np.float64(c0[r])
            sums[r] += x0 * a
            others[r] += y0 * a


@jit
def add_shares(c: U8, x: F64, s: F64, first: Any, last: Any, ends: F64, sums: F64) -> None:
    """Add ``x[i] * c[i, r]`` and its lower and upper shares to three sums.

    The first sum gets the term itself, the second the term times ``ends[1, r] - s[i]``, and the
    third the term times ``s[i] - ends[0, r]``.

    The lower and the upper shares are two sums: where one of them is 0, a difference would be a
    rounding error, and some norms make that large.
    """
    low = ends[0]
    high = ends[1]
    total = sums[0]
    below = sums[1]
    above = sums[2]
    for i in range(first, last):
        row = c[i]
        term = x[i]
        score = s[i]
        for r in range(REPLICATES):
            amount = term * np.float64(row[r])
            total[r] += amount
            below[r] += amount * (high[r] - score)
            above[r] += amount * (score - low[r])


@jit
def arrange_tiles(lower: I32, cells: int, tile: int, order: I32, starts: I32, runs: I32) -> int:
    """Order the rows of each tile by their cells `lower`; return the number of runs.

    Filled in are `order`, `starts` and `runs`, the `cells` of `tile_sums`, with room for n runs.
    """
    count = 0
    place = np.empty(cells, np.int32)
    for first in range(0, lower.size, tile):
        last = min(lower.size, first + tile)
        for b in range(cells):
            place[b] = 0
        for i in range(first, last):
            place[lower[i]] += 1
        start = first
        for b in range(cells):
            if place[b] > 0:
                starts[count] = start
                runs[count] = b
                count += 1
            start += place[b]
            place[b] = start - place[b]
        for i in range(first, last):
            order[place[lower[i]]] = i
            place[lower[i]] += 1
    starts[count] = lower.size
    return count


@jit
def tile_sums(terms: F64, order: I32, starts: I32, cells: I32, step: int, c: U8, out: F64) -> None:
    """Sum up terms in the cells of a grid that does not depend on the draw.

    Parameters
    ----------
    terms : (Q, n) or (2 Q, n) float64 array
        The term of each row in each sum when it is drawn once, in the order of `order`. With convex
        mapping, first all terms in the lower cells and then all terms in the upper ones.
    order : (n,) int32 array
        The rows: tile by tile, and in a tile cell by cell.
    starts, cells : (S + 1,) and (S,) int32 arrays
        Where in `order` each run of rows of one cell begins, and its cell.
    step : int
        From the lower to the upper cell.
    c : (G, n, 32) uint8 array
        How often each replicate drew each row.
    out : (Q, cells, 32 G) float64 array
        Overwritten.
    """
    sums = np.empty(REPLICATES)
    other_sums = np.empty(REPLICATES)
    zero(out.reshape(out.size))
    moments = out.shape[0]
    convex = terms.shape[0] > moments
    for g in range(c.shape[0]):
        block = slice(g * REPLICATES, (g + 1) * REPLICATES)
        for j in range(cells.size):
            first = np.int64(starts[j])
            last = np.int64(starts[j + 1])
            cell = cells[j]
            # Two sums at a time, in both cells or else of two moments, take 1.3 times one.
            for q in range(0, moments, 1 if convex else 2):
                zero(sums)
                if convex | (q + 1 < moments):
                    zero(other_sums)
                    other_terms = terms[q + moments if convex else q + 1]
                    add_twice(
                        c[g], order, terms[q], other_terms, first, last,
                        sums=sums, others=other_sums,
                    )  # fmt: skip
                    to = out[q, cell + step, block] if convex else out[q + 1, cell, block]
                    for r in range(REPLICATES):
                        to[r] += other_sums[r]
                else:
                    add_rows(c[g], order, terms[q], first, last, sums)
                to = out[q, cell, block]
                for r in range(REPLICATES):
                    to[r] += sums[r]


# --- cuts between bins of equal weight ------------------------------------------------------


@jit
def weights_below(c: U8, rows: OrderedRows, below: F64) -> None:
    """Fill in the weight of the rows before each group of rows, and of all.

    It goes to `below` (2**k, 32), infinite behind the last.
    """
    zero(below[0])
    order = rows.order
    v = rows.v
    group = rows.group
    groups = (order.size + group - 1) // group
    for q in range(groups + 1, below.shape[0]):
        for r in range(REPLICATES):
            below[q, r] = np.inf
    if v.size == 0:
        words = c.reshape(c.size).view(np.uint64)
        sums = np.empty(8, np.uint64)
        halves = sums.view(np.uint16)
        for q in range(groups):
            column_sums(words, 4 * group * q, min(words.size, 4 * group * (q + 1)), sums)
            before = below[q]
            after = below[q + 1]
            for r in range(REPLICATES // 2):
                after[2 * r] = before[2 * r] + np.float64(halves[r])
                after[2 * r + 1] = before[2 * r + 1] + np.float64(halves[r + REPLICATES // 2])
    else:
        total = np.zeros(REPLICATES)
        lost = np.zeros(REPLICATES)
        weight_of_group = np.empty(REPLICATES)
        for q in range(groups):
            zero(weight_of_group)
            add_rows(c, order, v, group * q, min(order.size, group * (q + 1)), weight_of_group)
            for r in range(REPLICATES):
                total[r], rounded = two_sum(total[r], weight_of_group[r])
                lost[r] += rounded
                below[q + 1, r] = total[r] + lost[r]


@jit
def weight_of(c: U8, v: F64, i: int, r: int) -> float:
    """Return the weight of row i in replicate r."""
    return np.float64(c[i, r]) if v.size == 0 else c[i, r] * v[i]


@jit
def power_of_two(count: int) -> int:
    """Return the smallest power of two greater than `count`."""
    power = 1
    while power <= count:
        power *= 2
    return power


@jit
def rows_reaching(
    c: U8, v: F64, group: int, below: F64, target: F64, row: I64, weight: F64
) -> None:
    """Find the first row up to which each replicate reaches its target weight.

    First the group: the last one with less than the target before it, by bisection (in which
    ``below[row]`` is always less than the target, and ``below[row + 2 step]`` is not). Then the row
    in it, one after the other. As many steps for every replicate, and floats that are not negative
    compared as integers: a branch that depends on the draw would be mispredicted, and take five
    times as long.
    """
    for r in range(REPLICATES):
        row[r] = 0
    step = below.shape[0] // 2
    while step > 0:
        for r in range(REPLICATES):
            # The sign, -1 or 0, is a mask: step if this cumulative weight is less.
            weight_bits = np.float64(below[np.uint64(row[r] + step), r]).view(np.int64)
            target_bits = np.float64(target[r]).view(np.int64)
            row[r] += ((weight_bits - target_bits) >> 63) & step
        step //= 2
    last = c.shape[0] - 1
    for r in range(REPLICATES):
        row[r] = min(row[r], last // group)
        weight[r] = below[np.uint64(row[r]), r]
        row[r] *= group
    for _ in range(group - 1):
        for r in range(REPLICATES):
            i = row[r]
            following = weight[r] + weight_of(c, v, min(i, last), r)
            less = (following < target[r]) & (i < last)
            row[r] = i + 1 if less else i
            weight[r] = following if less else weight[r]
    for r in range(REPLICATES):
        weight[r] += weight_of(c, v, row[r], r)


@jit
def cuts_of(c: U8, rows: OrderedRows, below: F64, right: bool, edges: F64, cuts: I32) -> None:
    """Find the edges of equal-mass bins in each replicate, and their first rows.

    Edges are as `quantiles.quantile_edges` defines them.

    A cut is on the score of the row i that reaches its weight, and then behind or before the whole
    run of this score; or, where the run holds no more than that, between it and the next score that
    was drawn::

        scores   .2  .2 | .5  .5  .5 | .7          of one replicate; i is in the run of .5
                        ^ first[run[i]]            closed at the left: the bin begins here
                                     ^ first[run[i] + 1], closed at the right, or in between

    Parameters
    ----------
    c : (n, 32) uint8 array
        How often each replicate drew each row.
    rows : OrderedRows
    below : (2**k, 32) float64 array
        Cumulative weights, as `weights_below` fills them in.
    right : bool
        Bins are closed at the right.
    edges : (B + 1, 32) float64 array
        Overwritten, except the first and the last line: these are the ends of the range.
    cuts : (B + 1, 32) int32 array
        Overwritten: bin b has the rows from ``cuts[b]`` to ``cuts[b + 1]``.
    """
    n = c.shape[0]
    n_bins = edges.shape[0] - 1
    u = rows.u
    v = rows.v
    run = rows.run
    first = rows.first
    group = rows.group
    total = below[(n + group - 1) // group]
    row = np.empty(REPLICATES, np.int64)
    weight = np.empty(REPLICATES)
    lowest = np.empty(REPLICATES)
    highest = np.empty(REPLICATES)
    for r in range(REPLICATES):
        cuts[0, r] = 0
        cuts[n_bins, r] = n
    for j in range(1, n_bins):
        for r in range(REPLICATES):
            lowest[r], highest[r] = cut_weights(j, n_bins, total[r])
        rows_reaching(c, v, group, below, target=lowest, row=row, weight=weight)
        for r in range(REPLICATES):
            i = row[r]
            end = first[run[i] + 1]
            following = i
            # Seldom: a bin may hold exactly its share. The weight of the whole run is asked second.
            if weight[r] <= highest[r]:
                weight_to_end = below[end // group, r]
                for k in range(end // group * group, end):
                    weight_to_end += weight_of(c, v, k, r)
                if weight_to_end <= highest[r]:
                    following = end
                    while following < n and c[following, r] == 0:
                        following += 1
                    following = following if following < n else i
            edges[j, r] = 0.5 * (u[i] + u[following])
            cuts[j, r] = end if right | (following > i) else first[run[i]]


@jit
def chain(rows: I32, head: I32, following: I32) -> None:
    """Chain up the cuts at each row, so that a sweep over the rows meets them.

    `rows` (B, 32) are the rows of the cuts. `head` (n + 1,), all -1 before, gets the first cut at
    each row that has one, and `following` (32 B,) the next cut at the row of each, -1 after the
    last.
    """
    for j in range(rows.shape[0]):
        for r in range(REPLICATES):
            e = np.int32(j * REPLICATES + r)
            following[e] = head[rows[j, r]]
            head[rows[j, r]] = e


@jit
def centres_of(
    bits: I64, n: int, edges: F64, centre: F64, place: I32, bins: I32, count: I32
) -> None:
    """Find the distinct bin centres of each replicate, and their places among rows.

    From the n scores in increasing order, `bits` as integers, with greater ones after them, 2**k in
    all; and from the edges (B + 1, 32) of `cuts_of`. Filled in: the distinct centres (B, 32), as
    far as there are any; `place`, the first row that is not below each of them, n after the last;
    `bins`, the first bin with each; `count`, their number.
    """
    middle = np.empty(REPLICATES)
    row = np.empty(REPLICATES, np.int64)
    for r in range(REPLICATES):
        count[r] = 0
    for b in range(edges.shape[0] - 1):
        for r in range(REPLICATES):
            middle[r] = (edges[b, r] + edges[b + 1, r]) / 2 + 0.0
            row[r] = 0
        step = bits.size // 2
        while step > 0:  # scores below are counted without branches, as in `rows_reaching`
            for r in range(REPLICATES):
                middle_bits = np.float64(middle[r]).view(np.int64)
                row[r] += ((bits[np.uint64(row[r] + step - 1)] - middle_bits) >> 63) & step
            step //= 2
        for r in range(REPLICATES):
            t = count[r]
            if t == 0 or middle[r] > centre[t - 1, r]:
                centre[t, r] = middle[r]
                bins[t, r] = b
                place[t, r] = row[r]
                count[r] = t + 1
    for r in range(REPLICATES):
        last = count[r] - 1
        for t in range(last + 1, place.shape[0]):
            bins[t, r] = bins[last, r]
            place[t, r] = n


@jit
def cut_sums(
    c: U8, rows: OrderedRows, terms: F64, convex: bool, place: I32, centre: F64, bins: I32,
    count: I32, head: I32, following: I32, start: int, out: F64,
) -> None:  # fmt: skip
    """Sum up the rows between the cuts of each replicate, in one sweep over the rows.

    `sums` holds the terms that came after the last cut of each replicate; where the sweep meets its
    next cut, they go to its bin. Rows between two neighbouring cuts of any replicate are added in
    one go, for all replicates.

    If `convex`, cuts are centres of bins. Between two of them a row gives ``x (s - lower) / (upper
    - lower)`` to the upper one, and the remainder to the lower one. The width is the same for all
    rows in between, so it is enough to add up x, ``x (upper - s)`` and ``x (s - lower)``, and to
    divide where a replicate meets its next centre. Before the first centre, and after the last one,
    it gets all of x. Between two rows of the sweep, of every replicate::

        centre t - 1          row i          centre t         t = seen[r]
             |  . . . added up . .|               |           sums[0]  x
        ends[0, r]                           ends[1, r]       sums[1]  x (ends[1, r] - s)
                                                              sums[2]  x (s - ends[0, r])

    The sums of the block go to `out` (Q, B, 32 G) from replicate `start` on. `place` (B, 32) are
    the first rows behind the cuts. Centres are as `centres_of` fills them in; `head` and
    `following` are room for `chain`.
    """
    n = rows.s.size
    sums = np.empty((3, REPLICATES))
    ends = np.empty((2, REPLICATES))
    seen = np.empty(REPLICATES, np.int32)
    for q in range(terms.shape[0]):
        for b in range(out.shape[1] if convex else 0):
            zero(out[q, b, start : start + REPLICATES])
        zero(sums.reshape(sums.size))
        for r in range(REPLICATES):
            seen[r] = 0
            ends[0, r] = 0.0
            ends[1, r] = centre[0, r] if convex else 0.0
        chain(place, head, following)
        i = np.int64(0)  # with a plain 0, numba would compile the functions below a second time
        while i <= n:
            e = head[i]
            head[i] = -1
            while e >= 0:
                r = e % REPLICATES
                t = seen[r]
                if not convex:
                    out[q, t, start + r] = sums[0, r]
                    sums[0, r] = 0.0
                    seen[r] = t + 1
                elif t < count[r]:
                    share = sums[0, r]
                    if t > 0:
                        width = centre[t, r] - centre[t - 1, r]
                        share = sums[2, r] / width
                        out[q, bins[t - 1, r], start + r] += sums[1, r] / width
                    out[q, bins[t, r], start + r] += share
                    ends[0, r] = centre[t, r]
                    ends[1, r] = centre[min(t + 1, count[r] - 1), r]
                    sums[0, r] = sums[1, r] = sums[2, r] = 0.0
                    seen[r] = t + 1
                e = following[e]
            k = i + 1
            while k < n and head[k] < 0:
                k += 1
            if i < n and convex:
                add_shares(c, terms[q], rows.s, i, k, ends=ends, sums=sums)
            elif i < n:
                add_rows(c, rows.order, terms[q], i, k, sums[0])
            i = k
        for r in range(REPLICATES if convex else 0):
            out[q, bins[count[r] - 1, r], start + r] += sums[0, r]


@jit
def equal_mass_sums(
    rows: OrderedRows, terms: F64, right: bool, convex: bool, c: U8, total: F64, out: F64
) -> None:
    """Sum up drawn rows in bins of equal weight, each replicate in its own.

    Parameters
    ----------
    rows : OrderedRows
    terms : (Q, n) float64 array
        The term of each row in each sum when it is drawn once.
    right : bool
        Bins are closed at the right.
    convex : bool
        Rows are shared by the two centres around their score.
    c : (G, skip + n, 32) uint8 array
        How often each replicate drew each row.
    total : (32 G,) float64 array
        Overwritten with the drawn weight.
    out : (Q, B, 32 G) float64 array
        Overwritten with the sums.
    """
    n = rows.s.size
    n_bins = out.shape[1]
    if n == 0:
        zero(total)
        zero(out.reshape(out.size))
        return
    groups = (n + rows.group - 1) // rows.group
    below = np.empty((power_of_two(groups), REPLICATES))
    edges = np.empty((n_bins + 1, REPLICATES))
    cuts = np.empty((n_bins + 1, REPLICATES), np.int32)
    cells = n_bins if convex else 0
    centre = np.empty((cells, REPLICATES))
    place = cuts[1:]
    bins = np.empty((cells, REPLICATES), np.int32)
    count = np.empty(REPLICATES, np.int32)
    head = np.empty(n + 1, np.int32)
    following = np.empty(n_bins * REPLICATES, np.int32)
    for i in range(n + 1):
        head[i] = -1
    padded = np.empty(power_of_two(n) if convex else 0)
    for i in range(padded.size):  # as an integer, -0 would be no small one
        padded[i] = rows.s[i] + 0.0 if i < n else np.inf
    for r in range(REPLICATES):
        edges[0, r] = rows.low
        edges[n_bins, r] = rows.high
    for g in range(c.shape[0]):
        start = g * REPLICATES
        drawn = c[g, rows.skip :]
        weights_below(drawn, rows, below)
        for r in range(REPLICATES):
            total[start + r] = below[groups, r]
        cuts_of(drawn, rows, below, right, edges, cuts)
        if convex:
            centres_of(
                padded.view(np.int64), n, edges,
                centre=centre, place=place, bins=bins, count=count,
            )  # fmt: skip
        cut_sums(
            drawn, rows, terms, convex, place=place, centre=centre, bins=bins, count=count,
            head=head, following=following, start=start, out=out,
        )  # fmt: skip
