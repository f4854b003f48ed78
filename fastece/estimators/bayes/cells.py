"""Rows summed in cells of equal weight, which is all that a curve is fitted to."""

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.samples import Sample, effective_rows, in_order, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.binned.cell_sums import bin_sums
from fastece.estimators.binned.float_grid import fits_float_grid, float_layout
from fastece.kernels import HITS, SCORE, WEIGHT
from fastece.kernels.types import F64, I32

if TYPE_CHECKING:
    from fastece.kernels.bayes import RankCells

# Cells for a hundred rows; their number grows in steps as the fourth root of the rows.
CELLS_OF_100_ROWS = 64
CELL_STEP = 16
MIN_CELLS = 48
MAX_CELLS = 256
NO_CELLS = np.empty(0, np.int32)


class CellRows(NamedTuple):
    """Rows of one problem, summed in cells.

    Attributes
    ----------
    n : float
        The effective number of rows.
    cells : RankCells
        Their weights add up to `n`.
    cell : (n,) int32 array
        Cell of each row, in increasing order of the score; empty where rows were not sorted.
    cell_of_float_cell : (G,) int32 array
        Cell of each cell of the float grid, where rows were not sorted; otherwise empty.
    """

    n: float
    cells: "RankCells"
    cell: I32
    cell_of_float_cell: I32

    def thinned(self, effect: float) -> "CellRows":
        """Divide the number of rows by a design effect; their hit rates stay."""
        if effect == 1:
            return self
        weight, hits, score = self.cells
        cells = kernels.bayes.RankCells(weight / effect, hits / effect, score)
        return self._replace(n=self.n / effect, cells=cells)

    def drawn(self, rng: np.random.Generator) -> "CellRows":
        """Draw the hits in the cells of a calibrated model, from binomial laws."""
        weight, _, score = self.cells
        rows = np.maximum(np.rint(weight), 1.0)
        hits = weight / rows * rng.binomial(rows.astype(np.int64), score)
        return self._replace(cells=self.cells._replace(hits=hits))

    def find_cells(self, sample: Sample) -> I32:
        """Return the cell (n,) of each row of the sample that made the cells."""
        cell = np.empty(sample.n, np.int32)
        if self.cell_of_float_cell.size:
            work = np.empty(sample.n)
            kernels.binning.float_cells(sample.s, sample.low, sample.high, work, cell)
            return self.cell_of_float_cell[cell]
        cell[in_order(sample.s)[1]] = self.cell
        return cell


def cell_count(n: float) -> int:
    """Return the number of cells for `n` rows."""
    steps = round(CELLS_OF_100_ROWS / CELL_STEP * math.sqrt(math.sqrt(n / 100)))
    return min(max(CELL_STEP * steps, MIN_CELLS), MAX_CELLS)


def cells_of_rows(sample: Sample, c: NDArray[Any] | None = None) -> CellRows:
    """Sum a sorted sample in cells, row i being ``c[i]`` rows."""
    if c is not None and (c != 1).any():
        sample = replace(sample, c=c.astype(np.float64)).where(c > 0)
    elif sample.c is not None:
        sample = replace(sample, c=None)
    # Without a design effect, the votes of one row are worth one row.
    count = sample.n_effective / sample.votes
    cells = kernels.bayes.RankCells(*np.zeros((3, cell_count(count))))
    cell = np.empty(sample.n, np.int32)
    weight = kernels.weights(sample.weight)
    kernels.bayes.sum_cells(sample.s, sample.y, weight, count, cells, cell)
    return CellRows(count, cells, cell, NO_CELLS)


def cells_of_problems(problems: RowTable, run: Map) -> list[CellRows]:
    """Sum each problem in cells; many rows are summed in a fine grid, not sorted."""
    problems, _ = scale_weights(problems)
    if not fits_float_grid(problems, MAX_CELLS, False):
        return [cells_of_rows(problems.view(k).sorted()) for k in range(problems.n_problems)]
    count = effective_rows(problems.v, problems.n) / problems.votes
    grid = float_layout(problems.low, problems.high)
    sums = bin_sums(problems, grid, -math.inf, (WEIGHT, HITS, SCORE), run)
    return list(map(partial(cells_of_sums, count), sums[WEIGHT], sums[HITS], sums[SCORE]))


def cells_of_sums(count: float, weight: F64, hits: F64, score: F64) -> CellRows:
    """Make cells from the sums of w, w y and w s in the cells of a fine grid.

    These are narrower than a hundredth of the distance from 0 or 1, so that the rows in one may be
    taken as rows of one score.
    """
    n_cells = cell_count(count)
    mid_rank = np.cumsum(weight) - weight / 2
    place = mid_rank * (n_cells / weight.sum()) + kernels.bayes.ROUNDING
    cell = place.astype(np.int32).clip(0, n_cells - 1)
    scale = count / weight.sum()
    weight, hits, score = (scale * np.bincount(cell, x, n_cells) for x in (weight, hits, score))
    mean = np.divide(score, weight, out=np.zeros(n_cells), where=weight > 0)
    # Rounding may take sums out of their range.
    cells = kernels.bayes.RankCells(weight, hits.clip(0, weight), mean.clip(0, 1))
    return CellRows(count, cells, NO_CELLS, cell)
