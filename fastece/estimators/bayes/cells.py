"""Rows summed in cells of equal weight, which is all that a curve is fitted to."""

import math
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.samples import Sample, effective_rows, in_order, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.kernels.types import F64, I32

if TYPE_CHECKING:
    from fastece.kernels.bayes import RankCells

# Cells for a hundred rows; their number grows in steps as the fourth root of the rows.
CELLS_OF_100_ROWS = 64
CELL_STEP = 16
MIN_CELLS = 48
MAX_CELLS = 256
# From so many rows on, fine cells are faster than a sort.
MIN_ROWS_IN_FINE_CELLS = 2**16
# Rows that a thread sums at once, and rows that are read at once.
CHUNK_ROWS = 2**20
BLOCK_ROWS = 2**15
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
    cell_of_fine_cell : (F,) int32 array
        Cell of each fine cell, where rows were not sorted; otherwise empty.
    """

    n: float
    cells: "RankCells"
    cell: I32
    cell_of_fine_cell: I32

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
        if self.cell_of_fine_cell.size:
            kernels.bayes.find_fine_cells(sample.s, sample.low, sample.high, cell)
            return self.cell_of_fine_cell[cell]
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
    """Sum each problem in cells; many rows are summed in fine cells, not sorted."""
    problems, _ = scale_weights(problems)
    if problems.n < MIN_ROWS_IN_FINE_CELLS:
        return [cells_of_rows(problems.view(k).sorted()) for k in range(problems.n_problems)]
    starts = range(0, problems.n, CHUNK_ROWS)
    sums_of_problems = reduce(np.add, run(partial(sum_chunk, problems), starts))
    count = effective_rows(problems.v, problems.n) / problems.votes
    return [join_fine_cells(sums, count) for sums in sums_of_problems]


def sum_chunk(problems: RowTable, start: int) -> F64:
    """Sum a chunk of the rows of K problems in fine cells: sums (K, F, 3) of w, w y and w s."""
    sums = np.zeros((problems.n_problems, kernels.bayes.FINE_CELLS, 3))
    stop = min(start + CHUNK_ROWS, problems.n)
    for begin in range(start, stop, BLOCK_ROWS):
        rows = slice(begin, min(begin + BLOCK_ROWS, stop))
        prob, label = problems.read(rows)
        weight = kernels.NO_WEIGHTS if problems.v is None else problems.v[rows]
        for k, sums_of_problem in enumerate(sums):
            s, y = prob, label
            if prob.ndim == 2:
                s = prob[:, k].astype(np.float64)
                y = (label == k).view(np.uint8)
            kernels.bayes.sum_fine_cells(s, y, weight, problems.low, problems.high, sums_of_problem)
    return sums


def join_fine_cells(sums: F64, count: float) -> CellRows:
    """Make cells from the sums (F, 3) of w, w y and w s in fine cells.

    These are narrower than a hundredth of the distance from 0 or 1, so that the rows in one may be
    taken as rows of one score.
    """
    cells = kernels.bayes.RankCells(*np.zeros((3, cell_count(count))))
    cell_of_fine_cell = np.empty(kernels.bayes.FINE_CELLS, np.int32)
    kernels.bayes.join_fine_cells(sums, count, cells, cell_of_fine_cell)
    return CellRows(count, cells, NO_CELLS, cell_of_fine_cell)
