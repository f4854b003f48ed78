"""Rows summed in cells of equal weight, which is all that a curve is fitted to."""

import math
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.samples import Sample, effective_rows, in_order, scale_weights, sort_rows
from fastece.data.table import RowTable, rows_of_problem
from fastece.data.threads import Map
from fastece.kernels.types import F64, I32

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
    cells : (3, C) float64 array
        Weight, hits and mean score of each cell; the weights add up to `n`, and an empty cell has
        three zeros.
    cell : (n,) int32 array
        Cell of each row, in increasing order of the score; empty where rows were not sorted.
    cell_of_fine_cell : (F,) int32 array
        Cell of each fine cell, where rows were not sorted; otherwise empty.
    """

    n: float
    cells: F64
    cell: I32 = NO_CELLS
    cell_of_fine_cell: I32 = NO_CELLS

    def thinned(self, effect: float) -> "CellRows":
        """Divide the number of rows by a design effect; their hit rates stay."""
        if effect == 1:
            return self
        weight, hits, score = self.cells
        cells = np.array([weight / effect, hits / effect, score])
        return self._replace(n=self.n / effect, cells=cells)

    def drawn(self, rng: np.random.Generator) -> "CellRows":
        """Draw the hits in the cells of a calibrated model, from binomial laws."""
        weight, _, score = self.cells
        rows = np.maximum(np.rint(weight), 1.0)
        hits = weight / rows * rng.binomial(rows.astype(np.int64), score)
        return self._replace(cells=np.array([weight, hits, score]))

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
    n = sample.n_effective / sample.votes
    weight = kernels.weights(sample.weight)
    return CellRows(n, *kernels.bayes.sum_cells(sample.s, sample.y, weight, n, cell_count(n)))


def cells_of_problems(problems: RowTable, run: Map) -> list[CellRows]:
    """Sum each problem in cells; many rows are summed in fine cells, not sorted."""
    problems, _ = scale_weights(problems)
    if problems.n < MIN_ROWS_IN_FINE_CELLS:
        return [cells_of_problem(problems, k) for k in range(problems.n_problems)]
    starts = range(0, problems.n, CHUNK_ROWS)
    sums_of_problems = reduce(np.add, run(partial(sum_chunk, problems), starts))
    n = effective_rows(problems.v, problems.n) / problems.votes
    cells = [kernels.bayes.join_fine_cells(sums, n, cell_count(n)) for sums in sums_of_problems]
    return [CellRows(n, of_problem, NO_CELLS, fine) for of_problem, fine in cells]


def cells_of_problem(problems: RowTable, k: int) -> CellRows:
    """Sort the rows of a problem, and sum them in cells."""
    rows = problems.rows_of(k)
    s, y = problems.read_problem(k, rows)
    if problems.v is None:
        s, y = sort_rows(s, y)
        weight = kernels.NO_WEIGHTS
        n = s.size / problems.votes
    else:
        s, order = in_order(s)
        y = y[order]
        weight = problems.v[rows][order]
        n = effective_rows(weight, s.size) / problems.votes
    return CellRows(n, *kernels.bayes.sum_cells(s, y, weight, n, cell_count(n)))


def sum_chunk(problems: RowTable, start: int) -> F64:
    """Sum w, w y and w s of a chunk of rows in fine cells: (K, F, 3)."""
    sums = np.zeros((problems.n_problems, kernels.bayes.FINE_CELLS, 3))
    stop = min(start + CHUNK_ROWS, problems.n)
    for begin in range(start, stop, BLOCK_ROWS):
        rows = slice(begin, min(begin + BLOCK_ROWS, stop))
        prob, label = problems.read_kept(rows)
        weight = kernels.NO_WEIGHTS if problems.v is None else problems.v[rows]
        for k, sums_of_problem in enumerate(sums):
            s, y = rows_of_problem(prob, label, k)
            kernels.bayes.sum_fine_cells(s, y, weight, problems.low, problems.high, sums_of_problem)
    return sums
