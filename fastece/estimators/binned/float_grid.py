"""Equal-mass bins of many rows without a sort.

This serves speed alone: with 1e6 rows it takes a third of the time of a sort. The edges have the
same bits as by a sort, and the sums differ by rounding.

A first pass adds the rows up in a grid of 13 824 cells, which get finer towards 0 and 1 as floats
do. The weights of the cells tell in which few cells the cuts are, and a second pass reads the rows
of these again. Every other cell is in one bin as a whole. `condense` makes both passes.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.samples import Sample
from fastece.data.table import NO_ROWS, RowTable, one_problem
from fastece.data.threads import Map
from fastece.estimators.binned.cell_sums import bin_sums, sum_cells
from fastece.estimators.binned.layouts import BinRule, Layout, equal_mass_layout
from fastece.kernels import WEIGHT
from fastece.kernels.types import F64, I32, I64, U8

Mask = NDArray[np.bool_]

# From about so many rows on, the grid is faster than a sort.
MIN_ROWS = 2**16
# The cells of each problem take 0.4 MB.
MAX_PROBLEMS = 32
# With more bins most rows are near a cut and read again.
MAX_GRID_BINS = 512
# With a larger share of its rows near cuts a problem is sorted, which takes less memory.
MAX_SHARE_NEAR_CUTS = 0.4
# Cells whose cumulative weight is this close to a cut, relative to all weight, are read again too.
# It is wider than `kernels.quantiles.TOLERANCE`, since sums of cells are rounded.
CUT_TOLERANCE = 1e-11
# Scores of a chunk that is searched for the rows of a few cells.
SEARCH_SCORES = 2**18


class CondensedRows(NamedTuple):
    """The rows of one problem: single ones near cuts, and cells with all others.

    Attributes
    ----------
    sample : Sample
        The rows near the cuts.
    cell_score : (C,) float64 array
        A score in each of the other cells; the only score of its rows, if they have the same.
    cell_sums : dict of (C,) float64 arrays
        Sums over the rows of these cells by their kind. WEIGHT is always among them.
    """

    sample: Sample
    cell_score: F64
    cell_sums: dict[int, F64]

    def layout(self, rule: BinRule) -> Layout:
        """Make the layout of equal-mass bins; it is the same as from all rows."""
        s = self.sample.s
        w = self.sample.v
        if self.cell_score.size:
            row_weight = np.ones(s.size) if w is None else w
            s = np.append(s, self.cell_score)
            w = np.append(row_weight, self.cell_sums[WEIGHT])
        return equal_mass_layout(rule, s, w)

    def bin_sums(self, rule: BinRule, layout: Layout) -> dict[int, F64]:
        """Add up the rows and the cells in hard bins: kind -> (1, B) sums."""
        score = self.cell_score.clip(rule.low, rule.high)
        side: Literal["left", "right"] = "left" if rule.closed_right else "right"
        bin_of_cell = np.searchsorted(layout.grid.knots, score, side)
        # Without any cells numpy counts in integers.
        sums = {
            kind: np.bincount(bin_of_cell, values, rule.n_bins).astype(np.float64)[None]
            for kind, values in self.cell_sums.items()
        }
        if self.sample.n == 0:
            return sums
        sums_of_rows = bin_sums(one_problem(self.sample), layout, rule.threshold, [*sums])
        return {kind: sums[kind] + sums_of_rows[kind] for kind in sums}


def fits_float_grid(problems: RowTable, n_bins: int, is_convex: bool) -> bool:
    """Decide whether the grid is faster than a sort, and has room in memory.

    With convex mapping the grid gives the edges alone, and rows are added up in another pass with
    one layout, which can be of one problem only.
    """
    max_problems = 1 if is_convex else MAX_PROBLEMS
    is_small = problems.n_problems <= max_problems and n_bins <= MAX_GRID_BINS
    return is_small and problems.n >= MIN_ROWS


def condense(
    rule: BinRule, problems: RowTable, kinds: Sequence[int], run: Map
) -> list[CondensedRows]:
    """Condense each problem to its rows near the cuts of equal-mass bins, and cells."""
    grid = float_layout(rule.low, rule.high)
    if WEIGHT not in kinds:
        kinds = (*kinds, WEIGHT)
    sums_of_cells, only_score = sum_cells(
        problems, grid, rule.threshold, kinds, run, finds_only_scores=True
    )
    only_score = only_score.reshape(problems.n_problems, -1)
    weight = sums_of_cells[WEIGHT]
    is_reread = cells_near_cuts(only_score, weight, rule.n_bins)
    needs_sort = np.zeros(problems.n_problems, np.bool_)
    if problems.v is None:  # else the weight does not tell how many rows there are
        needs_sort = weight.sum(1, where=is_reread) > MAX_SHARE_NEAR_CUTS * problems.n
        is_reread[needs_sort] = False
    score = scores_of_cells(only_score)
    condensed = []
    for k, rows_near_cuts in enumerate(rows_in_cells(problems, grid, is_reread, run)):
        if needs_sort[k]:
            sample = problems.view(k)
            stays_cell = np.zeros(grid.cells, np.bool_)
        else:
            sample = rows_near_cuts
            stays_cell = (weight[k] > 0) & ~is_reread[k]
        if rule.threshold > -math.inf:
            sample = sample.where(sample.s > rule.threshold)
        cell_sums = {kind: sums[k, stays_cell] for kind, sums in sums_of_cells.items()}
        condensed.append(CondensedRows(sample, score[k, stays_cell], cell_sums))
    return condensed


def cells_near_cuts(only_score: F64, weight: F64, n_bins: int) -> Mask:
    """Find the cells (K, cells) that a cut of equal weight may divide.

    A cell whose rows all have the same score is not divided.
    """
    has_several: Mask = only_score == kernels.moments.SEVERAL
    is_beside_cut = [cells_beside_cuts(weights, n_bins) for weights in weight]
    return has_several & np.array(is_beside_cut)


def cells_beside_cuts(weight: F64, n_bins: int) -> Mask:
    """Find the cells (cells,) that have the score on either side of a cut."""
    is_beside = np.zeros(weight.size, np.bool_)
    filled = np.flatnonzero(weight)
    if not filled.size:
        return is_beside
    cumulative = np.cumsum(weight[filled])
    cut = np.arange(1, n_bins) * (cumulative[-1] / n_bins)
    slack = CUT_TOLERANCE * cumulative[-1]
    first = np.searchsorted(cumulative, cut - slack)
    last = np.searchsorted(cumulative, cut + slack, "right").clip(max=filled.size - 1)
    # Each cut marks the filled cells from its first to its last one.
    n_begun = np.bincount(first, minlength=filled.size + 1)
    n_ended = np.bincount(last + 1, minlength=filled.size + 1)
    n_marks = np.cumsum(n_begun - n_ended)[:-1]
    is_beside[filled[n_marks > 0]] = True
    return is_beside


def scores_of_cells(only_score: F64) -> F64:
    """Return a score in each cell (K, cells); if its rows have only one, that one."""
    is_score = (only_score != kernels.moments.NONE) & (only_score != kernels.moments.SEVERAL)
    return np.where(is_score, only_score, float_scores())


def rows_in_cells(problems: RowTable, grid: Layout, is_wanted: Mask, run: Map) -> list[Sample]:
    """Return the rows of each problem in its wanted cells (K, cells) of a float grid."""
    n_problems = problems.n_problems
    chunk_rows = max(SEARCH_SCORES // n_problems, 1)
    flags = is_wanted.ravel().view(np.uint8)
    low = grid.grid.low
    high = grid.grid.high
    # If they are not needed, positions and problems are not kept: less than half of the memory.
    needs_position = problems.v is not None
    needs_problem = n_problems > 1

    def search_chunk(start: int) -> tuple[I64, I32 | I64, F64, U8]:
        prob, label = problems.read(slice(start, start + chunk_rows))
        position = np.empty(prob.size, np.int64)
        problem = np.empty(prob.size, np.int32)
        score = np.empty(prob.size)
        hit = np.empty(prob.size, np.uint8)
        count = kernels.moments.rows_in_cells(
            prob, label, low, high, wanted=flags, row=position, problem=problem, score=score,
            hit=hit,
        )  # fmt: skip
        return (
            position[:count] + start if needs_position else NO_ROWS,
            problem[:count].copy() if needs_problem else NO_ROWS,
            score[:count].copy(),
            hit[:count].copy(),
        )

    # If no cell is wanted, one chunk is enough to find no rows.
    starts = range(0, problems.n, chunk_rows) if is_wanted.any() else range(1)
    columns = zip(*run(search_chunk, starts), strict=True)
    position, problem, score, hit = map(np.concatenate, columns)
    v = None if problems.v is None else problems.v[position]
    rows = Sample(score, hit, v, low, high, position)
    if not needs_problem:
        return [rows]
    return [rows.where(problem == k) for k in range(n_problems)]


# --- the grid -------------------------------------------------------------------------------


def float_layout(low: float, high: float) -> Layout:
    """Make the layout of the float grid, for scores moved into [low, high].

    As edges it has a score of each cell.
    """
    scores = float_scores()
    grid = kernels.binning.Grid(
        low=low, high=high, n_bins=scores.size, spacing=kernels.binning.FLOAT, knots=np.empty(0),
        right=True, convex=False,
    )  # fmt: skip
    return Layout(grid, np.append(scores, 1.0), None)


@lru_cache(maxsize=1)
def float_scores() -> F64:
    """Return one score of each cell of the float grid, in increasing order."""
    binning = kernels.binning
    n_below_half = binning.FLOAT_CELLS // 2
    first = (1023 - binning.OCTAVES) << binning.CELL_BITS
    upper_bits = (np.arange(n_below_half) + first).astype(np.int64)
    distance = (upper_bits << (52 - binning.CELL_BITS)).view(np.float64)
    return np.concatenate([distance, (1 - distance)[::-1]])
