"""Sums over the rows of problems in cells of the score, named as in `kernels.MOMENTS`.

=======================  ======================================================================
kernel                   rows and cells
=======================  ======================================================================
`cell_moments`           one problem or every class, with weights or none, in the cells of a grid
`hard_moments`           one problem whose rows count 1 each, in hard bins: half of the time
`equal_mass_moments`     problems that share their rows, in bins of equal weight
`drawn_sums`             small draws from the rows, in the cells of a grid
`drawn_equal_mass_sums`  small draws from the rows, each in its own bins of equal weight
=======================  ======================================================================

Rows are taken in blocks that stay in the first-level cache: one vectorised loop finds the cells,
another computes the terms of the sums, and one adds them up.

A draw much smaller than the data costs only its own rows. If the bins do not depend on the draw,
the cell and the terms of a row lie in one record, which is made once for all draws (a third of the
time of looking them up again). With bins of equal weight, each draw is a small sample of its own.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import COUNTS, GAP, HITS, MOMENTS, PACK, SCORE, SQUARE, WEIGHT
from fastece.kernels.arithmetic import BLOCK, zero
from fastece.kernels.binning import (
    Grid,
    GridFields,
    lower_shares,
    place,
    search_cells,
    search_knots,
    uniform_bins,
)
from fastece.kernels.compiling import jit
from fastece.kernels.quantiles import quantile_edges, total_weight
from fastece.kernels.selection import deciding_rows
from fastece.kernels.types import F64, I32, I64, U8

# Eight private accumulators a cell: where many rows in succession go to one cell, each addition
# waits for the one before (80 % zeros: 3.1 ns a row); with eight lanes in turn 0.6 ns.
LANES = 8
# Eight lanes of more cells are beyond the first-level cache, and slow to clear.
MAX_CELLS_IN_LANES = 4096
# A term of `kernels.MOMENTS`, without its weight, is linear in score and hit, which are exact here:
# a constant, a factor of the score, and one of the hit.
TERMS = np.zeros((len(MOMENTS), 3))
TERMS[GAP] = 0.0, -1.0, 1.0
TERMS[WEIGHT] = 1.0, 0.0, 0.0
TERMS[SCORE] = 0.0, 1.0, 0.0
TERMS[HITS] = 0.0, 0.0, 1.0
TERMS[SQUARE] = 1.0, 0.0, 0.0
TERMS[COUNTS] = 1.0, 0.0, PACK

# --- terms, and adding them up --------------------------------------------------------------


@jit
def moment(kind: int, s: F64, y: U8, weight: F64, threshold: float, x: F64) -> None:
    """Compute the term x of each row in the sum of one of `kernels.MOMENTS`.

    It is 0 where the score is not above the threshold. Empty weights are 1.
    """
    constant = TERMS[kind, 0]
    by_score = TERMS[kind, 1]
    by_hit = TERMS[kind, 2]
    for i in range(s.size):
        term = constant + by_score * s[i] + by_hit * np.float64(y[i])
        x[i] = term if s[i] > threshold else 0.0
    for i in range(weight.size):
        x[i] *= weight[i] * weight[i] if kind == SQUARE else weight[i]


@jit
def scatter(cell: I32, x: F64, lanes: int, sums: F64) -> None:
    """Add x up in the cells: ``sums[cell * lanes + lane] += x``.

    The lanes, 1 or `LANES`, are used in turn.
    """
    width = np.uint64(lanes)
    n_in_lanes = cell.size // LANES * LANES
    mask = np.uint64(lanes - 1)
    for i in range(0, n_in_lanes, LANES):
        for lane in range(LANES):
            sums[np.uint64(cell[i + lane]) * width + (np.uint64(lane) & mask)] += x[i + lane]
    for i in range(n_in_lanes, cell.size):
        sums[np.uint64(cell[i]) * width] += x[i]


@jit
def scatter_shares(cell: I32, x: F64, share: F64, step: int, lanes: int, sums: F64) -> None:
    """Add ``x * share`` up in each cell, and the remainder `step` cells further on.

    Lanes are used as in `scatter`.
    """
    n_in_lanes = cell.size // LANES * LANES
    width = np.uint64(lanes)
    next_cell = np.uint64(step) * width
    for i in range(cell.size):
        lane = np.uint64(i & (lanes - 1)) if i < n_in_lanes else np.uint64(0)
        place_of_sum = np.uint64(cell[i]) * width + lane
        sums[place_of_sum] += x[i] * share[i]
        sums[place_of_sum + next_cell] += x[i] * (1.0 - share[i])


@jit
def lane_total(sums: F64, b: int, lanes: int) -> float:
    """Add up the lanes of the sum of cell b."""
    total = 0.0
    for lane in range(lanes):
        total += sums[b * lanes + lane]
    return total


# --- cells that do not depend on the rows ---------------------------------------------------


@jit
def hard_moments(score: F64, hit: U8, grid_fields: GridFields, out: F64) -> None:
    """Sum up 1 or 4 moments of one problem in hard bins.

    Rows count 1 each. The sums have the bits of `cell_moments`, in half of the time; and this
    kernel takes a third of the time to compile.

    Parameters
    ----------
    score, hit : (n,) float64 and uint8 arrays
    grid_fields : tuple
        The fields of a `Grid` with hard mapping, with at most `MAX_CELLS_IN_LANES` cells.
    out : (1, 1, cells) or (4, 1, cells) float64 array
        Overwritten.
    """
    grid = Grid(*grid_fields)
    n_kinds, _, n_cells = out.shape
    sums = np.zeros(n_cells * LANES * n_kinds)
    cell_block = np.empty(min(score.size, BLOCK), np.int32)
    gap_block = np.empty(cell_block.size)
    for start in range(0, score.size, BLOCK):
        s = score[start : start + BLOCK]
        y = hit[start : start + BLOCK]
        cell = cell_block[: s.size]
        gap = gap_block[: s.size]
        if grid.even:
            uniform_bins(s, grid.low, grid.high, grid.n_bins, grid.right, cell)
        else:
            search_knots(s, grid.knots, grid.right, cell)
        for i in range(s.size):  # a loop of its own, which vectorises
            gap[i] = np.float64(y[i]) - s[i]
        if n_kinds == 1:
            scatter(cell, gap, LANES, sums)
            continue
        # The four sums of a lane lie side by side: they take 1.4 times the time of one.
        n_in_lanes = s.size // LANES * LANES
        for i in range(s.size):
            own_lane = i & (LANES - 1) if i < n_in_lanes else 0
            place_of_sum = np.uint64(4 * (cell[i] * LANES + own_lane))
            sums[place_of_sum] += gap[i]
            sums[place_of_sum + np.uint64(1)] += 1.0
            sums[place_of_sum + np.uint64(2)] += s[i]
            sums[place_of_sum + np.uint64(3)] += np.float64(y[i])
    for q in range(n_kinds):
        for b in range(n_cells):
            total = 0.0
            for lane in range(LANES):
                total += sums[(b * LANES + lane) * n_kinds + q]
            out[q, 0, b] = total


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
    rows = prob[start:stop]
    flat = rows.reshape(rows.size)
    for i in range(flat.size):
        score[i] = np.float64(flat[i])
        hit[i] = 0
    for i in range(stop - start):
        hit[i * n_classes + label[start + i]] = 1
    return score[: flat.size], hit[: flat.size]


@jit
def lane_count(problems: int, cells: int) -> int:
    """Return the number of lanes of each sum of `cell_moments`."""
    if problems >= LANES:  # neighbours are rows of different problems: they do not wait
        return 1
    return LANES if cells <= MAX_CELLS_IN_LANES else 2


@jit
def cell_moments(
    prob: NDArray[Any], label: NDArray[Any], weight: F64, grid_fields: GridFields,
    threshold: float, kinds: I64, out: F64,
) -> None:  # fmt: skip
    """Sum up moments in each cell of one grid, of one problem or of every class.

    Parameters
    ----------
    prob : (n,) or (n, K) float64 array
        Scores, or class vectors, of which every class is a problem.
    label : (n,) uint8 or int64 array
        Hits, or classes.
    weight : (n,) float64 array
        Empty: every row counts 1.
    grid_fields : tuple
        The fields of a `Grid`.
    threshold : float
        Scores up to this one do not exist.
    kinds : (Q,) int64 array
        Which of `kernels.MOMENTS` are added up.
    out : (Q, K, cells) float64 array
        Overwritten.
    """
    grid = Grid(*grid_fields)
    n = label.size
    n_kinds, problems, cells = out.shape
    rows = min(n, max(1, BLOCK // problems))  # a block has whole rows
    lanes = lane_count(problems, cells)
    step = 1 if grid.knots.size > 1 else 0
    # The sums of a cell are neighbours: most entries of long class vectors are in one bin.
    size = rows * problems
    score_block = np.empty(size)
    hit_block = np.empty(size, np.uint8)
    lower_block = np.empty(size, np.int32)
    share_block = np.empty(size)
    weight_block = np.empty(size)
    term_block = np.empty(size)
    problem_of_score = np.empty(size, np.int32)
    for i in range(size):
        problem_of_score[i] = i % problems
    sums = np.zeros((n_kinds, problems * cells * lanes))
    for start in range(0, n, rows):
        s, y = read_block(prob, label, start, min(start + rows, n), score_block, hit_block)
        lower = lower_block[: s.size]
        share = share_block[: s.size]
        term = term_block[: s.size]
        place(s, grid, lower, term, share)
        if problems > 1:
            for i in range(s.size):
                lower[i] = lower[i] * np.int32(problems) + problem_of_score[i]
        w = weight[start : start + rows]
        if (w.size > 0) & (problems > 1):
            w = weight_block[: s.size]
            for i in range(s.size):
                w[i] = weight[start + i // problems]
        for q in range(n_kinds):
            moment(kinds[q], s, y, w, threshold, term)
            if grid.convex:
                scatter_shares(lower, term, share, step * problems, lanes, sums[q])
            else:
                scatter(lower, term, lanes, sums[q])
    for q in range(n_kinds):
        for k in range(problems):
            for b in range(cells):
                out[q, k, b] = lane_total(sums[q], b * problems + k, lanes)


# --- bins of equal weight -------------------------------------------------------------------


class Block(NamedTuple):
    """Work space for the rows of a block."""

    lower: I32
    share: F64
    term: F64


@jit
def new_block(size: int) -> Block:
    """Make work space for so many rows."""
    return Block(np.empty(size, np.int32), np.empty(size), np.empty(size))


class EqualMass(NamedTuple):
    """How rows get into bins of equal weight.

    Attributes
    ----------
    low, high : float
        Range that the bins divide.
    right : bool
        Bins are closed at the right.
    convex : bool
        A score is shared by the two bin centres around it.
    threshold : float
        Scores up to this one do not exist.
    """

    low: float
    high: float
    right: bool
    convex: bool
    threshold: float


EqualMassFields = tuple[float, float, bool, bool, float]


@jit
def open_ends(cuts: F64, low: float, high: float, right: bool) -> None:
    """Move cuts at the ends of a range to infinity, in place.

    A score outside the range counts as the nearest end of it. So where a cut is at an end, the
    scores beyond that end have to be on the same side of the cut as the end itself: the upper end
    is below its cut where bins are closed at the right, else the lower end is above its cut.
    """
    for j in range(cuts.size):
        if right:
            cuts[j] = np.inf if cuts[j] >= high else cuts[j]
        else:
            cuts[j] = -np.inf if cuts[j] <= low else cuts[j]


@jit
def distinct_centres(edges: F64, centres: F64, bins: I32) -> int:
    """Fill in distinct bin centres and the first bin of each; return their number."""
    count = 0
    for b in range(edges.size - 1):
        centre = (edges[b] + edges[b + 1]) / 2
        if count == 0 or centre > centres[count - 1]:
            centres[count] = centre
            bins[count] = b
            count += 1
    return count


@jit
def equal_mass_grid(
    u: F64, w: F64, rule: EqualMass, edges: F64, knots: F64, bin_of_cell: I32
) -> Grid:
    """Find bins of equal weight, and return the grid of their cells.

    Parameters
    ----------
    u, w : (n,) float64 arrays
        Scores in increasing order, moved into the range, and their weights as in `quantile_edges`.
    rule : EqualMass
    edges : (B + 1,) float64 array
        Overwritten.
    knots : (B,) float64 array
        Overwritten; the knots of the grid are a part of it.
    bin_of_cell : (B,) int32 array
        Overwritten with the bin of each cell.
    """
    n_bins = edges.size - 1
    cuts = knots[: n_bins - 1]
    quantile_edges(u, w, rule.low, rule.high, rule.right, edges=edges, knots=cuts)
    if rule.convex:
        n_cells = distinct_centres(edges, knots, bin_of_cell)
        centres = knots[:n_cells]
        return Grid(rule.low, rule.high, n_cells, False, centres, right=False, convex=True)
    for b in range(n_bins):
        bin_of_cell[b] = b
    open_ends(cuts, rule.low, rule.high, rule.right)
    return Grid(rule.low, rule.high, n_bins, False, cuts, right=rule.right, convex=False)


@jit
def add_rows(
    s: F64, y: U8, w: F64, grid: Grid, threshold: float, kinds: I64, block: "Block", lanes: int,
    sums: F64,
) -> None:  # fmt: skip
    """Add moments of rows up in cells with knots anywhere: (Q, cells lanes) sums."""
    lower = block.lower[: s.size]
    share = block.share[: s.size]
    term = block.term[: s.size]
    search_cells(s, grid, lower)
    if grid.convex:
        lower_shares(s, grid, lower, term, share)
    step = 1 if grid.knots.size > 1 else 0
    for q in range(kinds.size):
        moment(kinds[q], s, y, w, threshold, term)
        if grid.convex:
            scatter_shares(lower, term, share, step, lanes, sums[q])
        else:
            scatter(lower, term, lanes, sums[q])


@jit
def even_shares(n_bins: int) -> F64:
    """Return the share (B - 1,) of weight up to each cut of equal weight."""
    shares = np.empty(n_bins - 1)
    for j in range(1, n_bins):
        shares[j - 1] = j / n_bins
    return shares


@jit
def move_into_range(u: F64, low: float, high: float) -> None:
    """Move scores outside a range to its nearest end, in place."""
    for i in range(u.size):
        x = u[i] if u[i] > low else low
        u[i] = x if x < high else high


@jit
def equal_mass_moments(
    score: F64, hit: U8, weight: F64, rule_fields: EqualMassFields, kinds: I64, edges: F64,
    out: F64,
) -> None:  # fmt: skip
    """Sum up moments in bins of equal weight, of K problems that share their rows.

    Parameters
    ----------
    score, hit : (K, n) float64 and uint8 arrays
    weight : (n,) float64 array
        Empty: every row counts 1.
    rule_fields : tuple
        The fields of an `EqualMass`.
    kinds : (Q,) int64 array
        Which of `kernels.MOMENTS` are added up.
    edges : (K, B + 1) float64 array
        Overwritten with the edges of each problem.
    out : (Q, K, B) float64 array
        Overwritten.
    """
    rule = EqualMass(*rule_fields)
    n_kinds, n_problems, n_bins = out.shape
    n = score.shape[1]
    shares = even_shares(n_bins)
    knots = np.empty(n_bins)
    bin_of_cell = np.empty(n_bins, np.int32)
    block = new_block(min(n, BLOCK))
    for k in range(n_problems):
        u, w = deciding_rows(score[k], weight, shares, rule.threshold)
        move_into_range(u, rule.low, rule.high)
        grid = equal_mass_grid(u, w, rule, edges[k], knots, bin_of_cell)
        lanes = lane_count(1, grid.n_bins)
        sums = np.zeros((n_kinds, grid.n_bins * lanes))
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            add_rows(
                score[k][rows], hit[k][rows], weight[rows], grid, threshold=rule.threshold,
                kinds=kinds, block=block, lanes=lanes, sums=sums,
            )  # fmt: skip
        for q in range(n_kinds):
            zero(out[q, k])
            for b in range(grid.n_bins):
                out[q, k, bin_of_cell[b]] = lane_total(sums[q], b, lanes)


# --- draws much smaller than the data -----------------------------------------------------------


@jit
def drawn_sums(records: F64, step: int, rows: I32, out: F64) -> None:
    """Sum up drawn rows in the cells of a grid that does not depend on the draw.

    Sums are in `out` (Q, cells, R), of the `rows` (R, size) of each replicate; `step` leads from
    the lower to the upper cell.

    The record of a row, (n, 1 + Q) or with convex mapping (n, 1 + 2 Q), is its cell and its terms
    there in each sum, and then those in the upper cell. They lie next to each other, so that a row
    costs one visit to a line of memory that is not in the cache.
    """
    n_kinds, cells, _ = out.shape
    size = rows.shape[1]
    # Where many rows in succession are in one cell, they need not wait for one another.
    lanes = LANES // 2 if cells <= size else 1
    width = np.uint64(lanes)
    mask = lanes - 1
    upper = np.uint64(step * lanes)
    convex = records.shape[1] > 1 + n_kinds
    sums = np.empty(cells * lanes)
    for q in range(n_kinds):
        for r in range(rows.shape[0]):
            zero(sums)
            row = rows[r]
            for i in range(size):
                record = records[np.uint64(row[i])]
                place_of_sum = np.uint64(record[0]) * width + np.uint64(i & mask)
                sums[place_of_sum] += record[1 + q]
                if convex:
                    sums[place_of_sum + upper] += record[1 + q + n_kinds]
            for b in range(cells):
                out[q, b, r] = lane_total(sums, b, lanes)


@jit
def drawn_equal_mass_sums(
    s: F64, y: U8, v: F64, rule_fields: EqualMassFields, kinds: I64, rows: I32, total: F64, out: F64
) -> None:
    """Sum up drawn rows in bins of equal weight, each replicate in its own.

    Parameters
    ----------
    s, y, v : (n,) float64, uint8 and float64 arrays
        Scores in increasing order, hits and weights; empty weights are 1.
    rule_fields : tuple
        The fields of an `EqualMass`.
    kinds : (Q,) int64 array
        Which of `kernels.MOMENTS` are added up.
    rows : (R, size) int32 array
        The rows of each replicate, in increasing order.
    total : (R,) float64 array
        Overwritten with the weights of the draws.
    out : (Q, B, R) float64 array
        Overwritten.
    """
    rule = EqualMass(*rule_fields)
    size = rows.shape[1]
    n_kinds, n_bins, _ = out.shape
    # Rows of one bin follow one another: with lanes they need not wait for one another.
    lanes = LANES if n_bins <= size else 1
    edges = np.empty(n_bins + 1)
    knots = np.empty(n_bins)
    bin_of_cell = np.empty(n_bins, np.int32)
    sums = np.empty((n_kinds, n_bins * lanes))
    block = new_block(size)
    score_line = np.empty(size)
    clipped_line = np.empty(size)
    hit_line = np.empty(size, np.uint8)
    weight_line = np.empty(size)
    for r in range(rows.shape[0]):
        skip = 0
        while skip < size and not s[np.uint64(rows[r, skip])] > rule.threshold:
            skip += 1
        count = size - skip
        for i in range(count):
            row = np.uint64(rows[r, skip + i])
            score_line[i] = s[row]
            hit_line[i] = y[row]
            weight_line[i] = v[row] if v.size > 0 else 1.0
            clipped_line[i] = s[row]
        clipped = clipped_line[:count]
        move_into_range(clipped, rule.low, rule.high)
        weight = weight_line[: count if v.size > 0 else 0]
        total[r] = total_weight(weight) if v.size > 0 else count
        grid = equal_mass_grid(clipped, weight, rule, edges, knots, bin_of_cell)
        zero(sums.reshape(sums.size))
        add_rows(
            score_line[:count], hit_line[:count], weight, grid, threshold=rule.threshold,
            kinds=kinds, block=block, lanes=lanes, sums=sums,
        )  # fmt: skip
        for q in range(n_kinds):
            for b in range(n_bins):
                out[q, b, r] = 0.0
            for b in range(grid.n_bins):
                out[q, bin_of_cell[b], r] = lane_total(sums[q], b, lanes)
