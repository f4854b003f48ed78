"""Sums over the rows of problems in the cells of a grid, and over those of small draws.

Rows are taken in blocks that stay in the first-level cache: one vectorised loop finds the cells,
another computes what is to be added, and one adds it.

Of a draw much smaller than the data only the drawn rows are added. With bins that do not depend on
the draw, all that a row brings lies in one record, found once for all draws (a third of the time of
looking it up again); with bins of equal weight, each draw is a small sample of its own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import COUNTS, GAP, HITS, PACK, SCORE, SQUARE, WEIGHT
from fastece.kernels.arithmetic import BLOCK, lane_sum, two_sum, zero
from fastece.kernels.binning import ANY, FLOAT, Grid, float_cells, place, search_knots, uniform_bins
from fastece.kernels.compiling import jit
from fastece.kernels.quantiles import quantile_edges, total_weight
from fastece.kernels.reading import are_hits, are_scores, read_top_label
from fastece.kernels.types import F64, I32, I64, U8

# Eight private accumulators a cell: where many rows in succession go to one cell, each addition
# waits for the one before (80 % zeros: 3.1 ns a row); with eight lanes in turn 0.6 ns.
LANES = 8
# More cells times eight lanes are beyond the first-level cache, and slow to clear.
FEW_CELLS = 4096
# No score, and more than one distinct score.
NONE, SEVERAL = -1.0, 2.0
# Up to so many numbers `lane_sum` is numpy's.
MOST_BINS = 128


@jit
def moment(kind: int, s: F64, y: U8, weight: F64, threshold: float, x: F64) -> None:
    """Compute the term x of each row in the sum of one of `kernels.MOMENTS`.

    It is 0 where the score is not above the threshold. Empty weights are 1.
    """
    for i in range(s.size):
        if kind == GAP:
            term = np.float64(y[i]) - s[i]
        elif kind == SCORE:
            term = s[i]
        elif kind == HITS:
            term = np.float64(y[i])
        elif kind == COUNTS:
            term = 1.0 + PACK * np.float64(y[i])
        else:
            term = 1.0
        x[i] = term if s[i] > threshold else 0.0
    for i in range(weight.size):
        x[i] *= weight[i] * weight[i] if kind == SQUARE else weight[i]


@jit
def scatter(cell: I32, x: F64, lanes: int, sums: F64, lost: F64) -> None:
    """Add x up in the cells: ``sums[cell * lanes + lane] += x``.

    The lanes, 1 or `LANES`, are used in turn.

    If there is room for what each addition rounds off, `lost`, it goes there, with one lane.
    """
    whole = cell.size // LANES * LANES
    width = np.uint64(lanes)
    for i in range(cell.size if lost.size > 0 else 0):
        at = np.uint64(cell[i]) * width
        sums[at], rounded = two_sum(sums[at], x[i])
        lost[at] += rounded
    if lost.size > 0:
        return
    mask = np.uint64(lanes - 1)
    for i in range(0, whole, LANES):
        for lane in range(LANES):
            sums[np.uint64(cell[i + lane]) * width + (np.uint64(lane) & mask)] += x[i + lane]
    for i in range(whole, cell.size):
        sums[np.uint64(cell[i]) * width] += x[i]


@jit
def scatter_shares(cell: I32, x: F64, share: F64, step: int, lanes: int, sums: F64) -> None:
    """Add ``x * share`` up in each cell, and the rest `step` cells further on.

    Lanes are used as in `scatter`.
    """
    whole, width = cell.size // LANES * LANES, np.uint64(lanes)
    next_cell = np.uint64(step) * width
    for i in range(cell.size):
        lane = np.uint64(i & (lanes - 1)) if i < whole else np.uint64(0)
        at = np.uint64(cell[i]) * width + lane
        sums[at] += x[i] * share[i]
        sums[at + next_cell] += x[i] * (1.0 - share[i])


@jit
def lane_total(sums: F64, b: int, lanes: int) -> float:
    """Add up the lanes of the sum of cell b."""
    total = 0.0
    for lane in range(lanes):
        total += sums[b * lanes + lane]
    return total


@jit
def scatter_rows(cell: I32, s: F64, y: NDArray[Any], kinds: np.int64, sums: F64) -> None:
    """Add the first 1 or 4 of `kernels.MOMENTS` of rows up in their cells.

    Lanes are used as in `scatter`. The sums of one lie side by side: four take 1.4 times the time
    of one.
    """
    whole, lanes, width = cell.size // LANES * LANES, np.uint64(LANES), np.uint64(kinds)
    for begin, end, mask in ((0, whole, LANES - 1), (whole, cell.size, 0)):
        for i in range(begin, end):
            at = (np.uint64(cell[i]) * lanes + np.uint64(i & mask)) * width
            hit = np.float64(y[i])
            sums[at] += hit - s[i]
            if kinds > 1:
                sums[at + np.uint64(1)] += 1.0
                sums[at + np.uint64(2)] += s[i]
                sums[at + np.uint64(3)] += hit


@jit
def hard_error(prob: NDArray[Any], label: NDArray[Any], bins: F64, out: F64) -> float:
    """Compute the error of the most common call as a whole, from a caller's arrays.

    It is ``sum_b |D_b| / n`` over hard bins, of rows that count 1 each; nan if something is not
    good, or if it is not known whether it is.

    Parameters
    ----------
    prob : (n,) or (n, K) array
        Probabilities of the positive class, float64; or class vectors, whose top label is measured.
    label : (n,) int64 array, or of hits uint8
    bins : float64 array
        As `estimators.bins.common_grid` makes it, with at most `MOST_BINS` bins.
    out : (1, B), (4, B) or (0, 0) float64 array
        The first of the sums of `kernels.MOMENTS`, unless it is empty; overwritten.
    """
    # As `cell_moments` does it, without all that a single problem does not need.
    n, kinds, tolerance, n_bins = label.size, max(1, out.shape[0]), bins[0], int(bins[3])
    right, cuts = bins[5] > 0.0, bins[7:]
    rows, vectors = min(n, BLOCK), min(n, BLOCK) if prob.ndim > 1 else 0
    score_block, hit_block = np.empty(vectors), np.empty(vectors, np.uint8)
    cell_block, totals = np.empty(rows, np.int32), out if out.size else np.empty((1, n_bins))
    sums, gap = np.zeros(n_bins * LANES * kinds), np.empty(n_bins)
    for start in range(0, n, BLOCK):
        p, label_block = prob[start : start + BLOCK], label[start : start + BLOCK]
        cell = cell_block[: label_block.size]
        if prob.ndim == 1:
            s, y = p, label_block
            good = are_scores(p) & are_hits(y)
        else:
            s, y = score_block[: cell.size], hit_block[: cell.size]
            good = read_top_label(p, label_block, n < 0, tolerance, s, y)
        if not good:  # before anything is looked up by it
            return np.nan
        if bins[4] == ANY:
            search_knots(s, cuts, right, cell)
        else:
            uniform_bins(s, bins[1], bins[2], n_bins, right, cell)
        if kinds == 1:  # with constants, but no types of their own: a tenth faster
            scatter_rows(cell, s, y, np.int64(1), sums)
        else:
            scatter_rows(cell, s, y, np.int64(4), sums)
    for b in range(n_bins):
        for q in range(kinds):
            totals[q, b] = 0.0
            for lane in range(LANES):
                totals[q, b] += sums[(b * LANES + lane) * kinds + q]
        gap[b] = abs(totals[0, b])
    return float(lane_sum(gap) / n)


@jit
def read_block(
    prob: NDArray[Any], label: NDArray[Any], start: int, stop: int, score: F64, hit: U8
) -> tuple[F64, U8]:
    """Read scores and hits of some rows into arrays with room for them.

    Rows of one problem are read as they are; of class vectors (n, K) and classes, one problem after
    the other for each row.
    """
    if prob.ndim == 1:
        return prob[start:stop], label[start:stop]
    n_classes = prob.shape[1]
    part = prob[start:stop]
    flat = part.reshape(part.size)
    for i in range(flat.size):
        score[i], hit[i] = np.float64(flat[i]), 0
    for i in range(stop - start):
        hit[i * n_classes + label[start + i]] = 1
    return score[: flat.size], hit[: flat.size]


@jit
def first_cells(rows: int, problems: int, cells: int) -> I32:
    """Fill in the first cell of the problem of each score of a block of rows."""
    first = np.empty(rows * problems, np.int32)
    for i in range(first.size):
        first[i] = i % problems * cells
    return first


@jit
def rows_in_cells(
    prob: NDArray[Any], label: NDArray[Any], low: float, high: float, wanted: U8,
    row: I64, problem: I32, score: F64, hit: U8,
) -> int:  # fmt: skip
    """Find the rows in the `wanted` cells of a float grid; return their number.

    The grid goes from `low` to `high`, and `wanted` (K cells,) is 1 for a cell to look in. `prob`
    and `label` are as in `cell_moments`. Position, problem, score and hit of each row found are
    written to arrays with room for n K.
    """
    n = label.size
    problems = prob.size // n
    rows = min(n, max(1, BLOCK // problems))
    size = rows * problems
    score_block, hit_block, work = np.empty(size), np.empty(size, np.uint8), np.empty(size)
    cell = np.empty(size, np.int32)
    first_cell = first_cells(rows, problems, wanted.size // problems)
    count = 0
    for start in range(0, n, rows):
        s, y = read_block(prob, label, start, min(start + rows, n), score_block, hit_block)
        float_cells(s, low, high, work, cell)
        for i in range(s.size):
            if wanted[np.uint32(cell[i] + first_cell[i])]:  # rarely: easy to predict
                row[count] = start + i // problems
                problem[count] = i % problems
                score[count] = s[i]
                hit[count] = y[i]
                count += 1
    return count


@jit
def cell_moments(
    prob: NDArray[Any], label: NDArray[Any], weight: F64, grid: Grid, threshold: float,
    kinds: I64, only: F64, out: F64,
) -> None:  # fmt: skip
    """Sum up moments in each cell of one grid, of one problem or of every class.

    Parameters
    ----------
    prob : (n,) float64, or (n, K) float64 or float32 array
        Scores, or class vectors, of which every class is a problem.
    label : (n,) uint8 or int64 array
        Hits, or classes.
    weight : (n,) float64 array
        Empty: every row counts 1.
    grid : Grid
    threshold : float
        Scores up to this one do not exist.
    kinds : (Q,) int64 array
        Which of `kernels.MOMENTS` are added up.
    only : (K cells,) float64 array
        Full of `NONE`; gets the score of each cell where it has but one, `SEVERAL` where it has
        more. Empty: not wanted.
    out : (Q, K, cells) float64 array
        Overwritten.
    """
    n = label.size
    moments, problems, cells = out.shape
    # A block is whole rows. Neighbours of different problems need no lanes to be apart.
    rows = min(n, max(1, BLOCK // problems))
    lanes = 1 if problems >= LANES else LANES if cells <= FEW_CELLS else 2
    is_float = grid.spacing == FLOAT
    step = 1 if grid.knots.size > 1 else 0
    size = rows * problems
    score_block, hit_block = np.empty(size), np.empty(size, np.uint8)
    # Most entries of long class vectors are in one bin, and beside one another there.
    next_cell, next_problem = (1, cells) if is_float else (problems, 1)
    lower_block, first_cell = np.empty(size, np.int32), first_cells(rows, problems, next_problem)
    share_block, weight_block, x_block = np.empty(size), np.empty(size), np.empty(size)
    sums, nothing = np.zeros((moments + is_float, problems * cells * lanes)), np.empty(0)
    lost = sums[moments] if is_float else nothing
    for start in range(0, n, rows):
        s, y = read_block(prob, label, start, min(start + rows, n), score_block, hit_block)
        lower, share, x = lower_block[: s.size], share_block[: s.size], x_block[: s.size]
        place(s, grid, lower, x, share)
        if problems > 1:
            for i in range(s.size):
                lower[i] = lower[i] * np.int32(next_cell) + first_cell[i]
        if only.size > 0:
            for i in range(s.size):
                seen = only[np.uint32(lower[i])]
                # No branch: where some scores are tied and some not, it would be mispredicted.
                kept = s[i] if (seen == NONE) | (seen == s[i]) else SEVERAL
                only[np.uint32(lower[i])] = kept if s[i] > threshold else seen
        w = weight[start : start + rows]
        if (w.size > 0) & (problems > 1):
            w = weight_block[: s.size]
            for i in range(s.size):
                w[i] = weight[start + i // problems]
        for q in range(moments):
            moment(kinds[q], s, y, w, threshold, x)
            if grid.convex:
                scatter_shares(lower, x, share, step * next_cell, lanes, sums[q])
            else:
                is_exact = (kinds[q] == WEIGHT) & (w.size > 0)
                scatter(lower, x, lanes, sums[q], lost if is_exact else nothing)
    for q in range(moments):
        if kinds[q] == WEIGHT:
            for i in range(lost.size):
                sums[q, i] += lost[i]
        for k in range(problems):
            for b in range(cells):
                out[q, k, b] = lane_total(sums[q], k * next_problem + b * next_cell, lanes)


# --- draws much smaller than the data -----------------------------------------------------------


@jit
def drawn_sums(records: F64, step: int, rows: I32, out: F64) -> None:
    """Sum up drawn rows in the cells of a grid that does not depend on the draw.

    Sums are in `out` (Q, cells, R), of the `rows` (R, size) of each replicate; `step` leads from
    the lower to the upper cell.

    A row's record, (n, 1 + Q) or with convex mapping (n, 1 + 2 Q), is its cell and what it adds
    there to each sum, and then in the upper cell. Next to each other, so that a row costs one visit
    to a line of memory that is not in the cache.
    """
    moments, cells, size = out.shape[0], out.shape[1], rows.shape[1]
    # Where many rows in succession are in one cell, they need not wait for one another.
    lanes = LANES // 2 if cells <= size else 1
    width, mask, upper = np.uint64(lanes), lanes - 1, np.uint64(step * lanes)
    convex = records.shape[1] > 1 + moments
    sums = np.empty(cells * lanes)
    for q in range(moments):
        for r in range(rows.shape[0]):
            zero(sums)
            row = rows[r]
            for i in range(size):
                record = records[np.uint64(row[i])]
                at = np.uint64(record[0]) * width + np.uint64(i & mask)
                sums[at] += record[1 + q]
                if convex:
                    sums[at + upper] += record[1 + q + moments]
            for b in range(cells):
                out[q, b, r] = lane_total(sums, b, lanes)


@jit
def distinct_centres(edges: F64, centres: F64, bins: I32) -> int:
    """Fill in distinct bin centres and the first bin of each; return their number."""
    count = 0
    for b in range(edges.size - 1):
        centre = (edges[b] + edges[b + 1]) / 2
        if count == 0 or centre > centres[count - 1]:
            centres[count], bins[count] = centre, b
            count += 1
    return count


@jit
def drawn_equal_mass_sums(
    s: F64, y: U8, v: F64, threshold: float, low: float, high: float, right: bool,
    convex: bool, kinds: I64, rows: I32, total: F64, out: F64,
) -> None:  # fmt: skip
    """Sum up drawn rows in bins of equal weight, each replicate in its own.

    Sums of `kinds` (Q,), some of `kernels.MOMENTS`, are in `out` (Q, B, R), and the weights of the
    draws are in `total` (R,).

    Scores are in increasing order, as are the `rows` (R, size) of each replicate. Scores up to the
    threshold do not exist. With an empty `v`, every row counts 1.
    """
    size, n_bins = rows.shape[1], out.shape[1]
    # Rows of one bin follow one another: with lanes they need not wait for one another.
    lanes = LANES if n_bins <= size else 1
    edges, cuts = np.empty(n_bins + 1), np.empty(n_bins - 1)
    centres, bins = np.empty(n_bins), np.empty(n_bins, np.int32)
    sums, nothing = np.empty(n_bins * lanes), np.empty(0)
    score_line, inside_line, weight_line = np.empty(size), np.empty(size), np.empty(size)
    share_line, term_line = np.empty(size), np.empty(size)
    hit_line, cell_line = np.empty(size, np.uint8), np.empty(size, np.int32)
    for b in range(n_bins):
        bins[b] = b
    for r in range(rows.shape[0]):
        skip = 0
        while skip < size and not s[np.uint64(rows[r, skip])] > threshold:
            skip += 1
        m = size - skip
        for i in range(m):
            row = np.uint64(rows[r, skip + i])
            score_line[i], hit_line[i] = s[row], y[row]
            weight_line[i] = v[row] if v.size > 0 else 1.0
        score, u, weight = score_line[:m], inside_line[:m], weight_line[: m if v.size > 0 else 0]
        hit, cell, share, x = hit_line[:m], cell_line[:m], share_line[:m], term_line[:m]
        for i in range(m):
            x_i = score[i] if score[i] > low else low
            u[i] = x_i if x_i < high else high
        total[r] = total_weight(weight) if v.size > 0 else m
        quantile_edges(u, weight, low, high, right, edges, cuts)
        count = distinct_centres(edges, centres, bins) if convex else n_bins
        # Moved into the range, scores need no cuts beyond it; convex shares do not look at either.
        knots = centres[:count] if convex else cuts
        grid = Grid(low, high, n_bins, ANY, knots, right & (not convex), convex)
        place(score if convex else u, grid, cell, x, share)
        for q in range(out.shape[0]):
            moment(kinds[q], score, hit, weight, threshold, x)
            zero(sums)
            if convex:
                scatter_shares(cell, x, share, 1 if count > 1 else 0, lanes, sums)
            else:
                scatter(cell, x, lanes, sums, nothing)
            if count < n_bins:
                for b in range(n_bins):
                    out[q, b, r] = 0.0
            for b in range(count):
                out[q, bins[b], r] = lane_total(sums, b, lanes)
