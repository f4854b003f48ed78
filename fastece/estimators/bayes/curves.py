"""Cells of equal weight, and posterior draws of the calibration curve.

::

    rows -> cells      weight, hits and mean score of each
         -> fits       Laplace's approximation for every hyperparameter
         -> shares     what each of them is believed: prior times evidence
         -> draws      curves: the probability of a hit in each cell
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.order import scale_weights
from fastece.data.problems import Problems, one_problem
from fastece.data.reading import Map
from fastece.data.sample import Sample, increasing
from fastece.estimators.bayes.hyperpriors import DRAWS, MOST_CELLS, cell_count, hyperpriors, normals
from fastece.estimators.binned.edges import float_layout
from fastece.estimators.binned.single import cell_sums, fits_float_grid
from fastece.kernels import MOMENTS
from fastece.typing import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.bayes import Cells, Fits


# A score of 0 or 1 has this logit, where it is not cut further: with it a hit or a miss is as
# impossible as a float64 can say.
INFINITE_LOGIT = 700.0
# Logits are cut at odds of 2 + n / 2, two misses among n rows, or of 2 + 2 n, half a one: the rows
# do not tell larger ones apart.
LEAST_ODDS, NEAR_ODDS, FAR_ODDS = 2.0, 0.5, 2.0
TINY = 1e-300


class CellRows(NamedTuple):
    """Rows of one problem, summed in cells.

    Attributes
    ----------
    n : float
        The effective number of rows.
    cells : Cells
        Their weights add up to `n`.
    cell : (n,) int32 array
        Cell of each row, in increasing order of the score; empty where rows were not sorted.
    of_grid : (G,) int32 array
        Cell of each cell of the float grid, where rows were not sorted; otherwise empty.
    """

    n: float
    cells: "Cells"
    cell: I32
    of_grid: I32

    def cell_of(self, sample: Sample) -> I32:
        """Return the cell (n,) of each row of the sample that made the cells."""
        cell = np.empty(sample.n, np.int32)
        if self.of_grid.size:
            work = np.empty(sample.n)
            kernels.binning.float_cells(sample.s, sample.low, sample.high, work, cell)
            return self.of_grid[cell]
        cell[increasing(sample.s)] = self.cell
        return cell


def effective_count(w: F64 | None, n: int) -> float:
    """Compute Kish's effective number of rows from their weights.

    ``(sum w)**2 / sum w**2`` (Kish 1965).
    """
    if w is None:
        return float(n)
    # The squares of 1e300 and of 1e-300 are no numbers; a power of two rounds nothing.
    w = np.ldexp(w, -math.frexp(w.max())[1])
    return float(w.sum() ** 2 / (w * w).sum())


def cells_of_rows(sample: Sample, c: NDArray[Any] | None = None) -> CellRows:
    """Sum a sorted sample in cells, row i counting ``c[i]`` times.

    A row that counts c times is the same as c rows.
    """
    s, y, w = sample.s, sample.y, sample.v
    if c is not None and not (c == 1).all():
        kept = c > 0
        s, y, c = s[kept], y[kept], c[kept].astype(np.float64)
        count = float(c.sum())
        if w is not None:
            w = w[kept]
            count = float((c * w).sum() ** 2 / (c * w * w).sum())
        w = c if w is None else c * w
    else:
        count = effective_count(w, s.size)
    return sum_rows(s, y, w, count)


def sum_rows(s: F64, y: U8, w: F64 | None, count: float) -> CellRows:
    """Sum rows, sorted by score, in cells, with weights scaled to a count."""
    cells = kernels.bayes.Cells(*np.empty((3, cell_count(count))))
    cell = np.empty(s.size, np.int32)
    kernels.bayes.sum_cells(s, y, kernels.weights(w), count, cells, cell)
    return CellRows(count, cells, cell, np.empty(0, np.int32))


def cells_of_problems(problems: Problems, run: Map) -> list[CellRows]:
    """Sum each problem in cells; many rows are summed in a fine grid, not sorted."""
    problems, _ = scale_weights(problems)
    if not fits_float_grid(problems, MOST_CELLS, False):
        samples = (problems.sample(k).sorted() for k in range(problems.n_problems))
        return [cells_of_rows(sample) for sample in samples]
    count = effective_count(problems.v, problems.n)
    sums = cell_sums(
        problems, float_layout(problems.low, problems.high), -math.inf, MOMENTS[:3], run
    )
    return [cells_of_sums(count, *(part[k] for part in sums)) for k in range(problems.n_problems)]


def sample_cells(sample: Sample) -> CellRows:
    """Sum a sample in cells; a sample with counts must be sorted."""
    if sample.c is not None:
        return cells_of_rows(sample, sample.c)
    return cells_of_problems(one_problem(sample), map)[0]


def cells_of_sums(count: float, gap: F64, weight: F64, score: F64) -> CellRows:
    """Make cells from the sums of a fine grid.

    The sums are those of w (y - s), w and w s. Cells of the grid are narrower than a hundredth of
    the distance from 0 or 1, so that the rows in one may be taken as rows of one score.
    """
    n_cells = cell_count(count)
    middle = np.cumsum(weight) - weight / 2
    place = middle * (n_cells / weight.sum()) + kernels.bayes.ROUNDING
    place = place.astype(np.int32).clip(0, n_cells - 1)
    scale = count / weight.sum()
    weight, hits, score = (
        scale * np.bincount(place, x, n_cells) for x in (weight, score + gap, score)
    )
    mean = np.divide(score, weight, out=np.zeros(n_cells), where=weight > 0)
    cells = kernels.bayes.Cells(weight, hits.clip(0, weight), mean.clip(0, 1))  # of rounding
    return CellRows(count, cells, np.empty(0, np.int32), place)


@dataclass(frozen=True, eq=False)
class Curves:
    """The posterior of the calibration curve of one problem.

    Attributes
    ----------
    rows : CellRows
    k : int
        Number of the problem, whose interval has random numbers of its own.
    """

    rows: CellRows
    k: int = 0

    @cached_property
    def logits(self) -> tuple[F64, F64]:
        """Clipped logits of the mean scores (C,), and their distances from the mean."""
        x, weight = self.cut_logits(*self.logit_range)[0], self.rows.cells.weight
        return x, x - (weight @ x) / weight.sum()

    def cut_logits(self, low: float, high: float) -> tuple[F64, float]:
        """Clip the logits of the mean scores; with their log likelihood.

        Empty cells have those of the cell before, or else of the first that is not empty.
        """
        x = np.empty(self.rows.cells.weight.size)
        return x, kernels.bayes.cell_logits(self.rows.cells, low, high, x)

    @cached_property
    def logit_range(self) -> tuple[float, float]:
        """Limits at which logits are clipped.

        At each end it is the further one of two cuts, unless the hits of what lies beyond the
        nearer one are less likely then: a heap of scores at 1 that comes true in 95 of 100 is not
        as far from calibrated with the nearer one.
        """
        near, far = (math.log(LEAST_ODDS + odds * self.rows.n) for odds in (NEAR_ODDS, FAR_ODDS))
        ends = ((-near, near), (-far, near), (-near, far))
        both, low, high = (self.cut_logits(*cut)[1] for cut in ends)
        return -(far if low > both else near), far if high > both else near

    @cached_property
    def fits(self) -> "Fits":
        """Laplace approximations, one for each hyperparameter."""
        x, t = self.logits
        fits = hyperpriors(x.size).fits
        fits = type(fits)(*(part.copy() for part in fits))
        kernels.bayes.fit(x, t, self.rows.cells, fits)
        return fits

    def shares(self, log_prior: F64) -> tuple[F64, float]:
        """Compute the posterior (G,) of the hyperparameters and the total log evidence."""
        log_p = self.fits.log_evidence + log_prior
        top = log_p.max()
        p = np.exp(log_p - top)
        total = p.sum()
        return p / total, float(top + math.log(total))

    def draws(self, log_prior: F64, k: int) -> F64:
        """Draw logits (C, S) of curves, in increasing order of their scale tau."""
        x, t = self.logits
        logit = np.empty((x.size, DRAWS))
        share, _ = self.shares(log_prior)
        kernels.bayes.draw_logits(x, t, self.fits, share, normals(x.size, k), logit)
        return logit

    def value_draws(self) -> F64:
        """Draw logits (C, S) of curves under the prior of the value.

        All problems have the same random numbers.
        """
        return self.draws(hyperpriors(self.logits[0].size).value, 0)

    def interval_draws(self) -> F64:
        """Draw logits (C, S) of curves under the prior of the interval."""
        return self.draws(hyperpriors(self.logits[0].size).interval, self.k)

    def probabilities(self, logit: F64) -> F64:
        """Turn logits (C, S) into probabilities, in place."""
        flat = logit.reshape(-1)
        kernels.logits.sigmoid(flat, flat)
        return logit

    def at(self, score: F64) -> F64:
        """Compute probabilities (G, S) of drawn curves at scores (G,).

        How far their logits are from the scores' is interpolated between the cells, and level
        beyond the first and the last.
        """
        filled = self.rows.cells.weight > 0
        logit = (self.interval_draws() - self.logits[0][:, None])[filled]
        place = np.interp(score, self.rows.cells.score[filled], np.arange(len(logit)))
        below = place.astype(np.int64)
        above = np.minimum(below + 1, len(logit) - 1)
        part = (place - below)[:, None]
        with np.errstate(divide="ignore"):
            own = (np.log(score) - np.log1p(-score)).clip(*self.logit_range)
        return self.probabilities(own[:, None] + (1 - part) * logit[below] + part * logit[above])

    def means(self, p: F64) -> F64:
        """Average the gap, its size and its sign over drawn curves: (3, C).

        The gap is ``c - s``.
        """
        gap = p - self.rows.cells.score[:, None]
        mean, above = gap.mean(axis=1), np.count_nonzero(gap > 0, axis=1) / p.shape[1]
        return np.stack([mean, np.abs(gap, out=gap).mean(axis=1), 2 * above - 1])

    def errors(self, p: F64, norm: float, side: int = 0) -> F64:
        """Compute the calibration error (S,) of each curve p (C, S).

        For the side 1 that of the scores below the curve alone, for -1 that of those above it.
        """
        if side:
            score = self.rows.cells.score[:, None]
            p = np.maximum(p, score) if side > 0 else np.minimum(p, score)
        share = self.rows.cells.weight / self.rows.cells.weight.sum()
        gap = np.abs(p - self.rows.cells.score[:, None])
        if norm == 1:
            return np.asarray(np.minimum(share @ gap, 1.0))
        gap, share = gap[share > 0], share[share > 0]
        if norm == math.inf:
            return np.asarray(gap.max(axis=0))
        # Parts of the largest: powers of small gaps would be 0.
        largest = np.maximum(gap.max(axis=0), TINY)
        error = largest * (share @ (gap / largest) ** norm) ** (1 / norm)
        return np.asarray(np.minimum(error, 1.0))  # which shares that add up to more would exceed

    def largest_error(self, norm: float) -> float:
        """Compute the largest possible error for a norm.

        It is the error if all scores below one half always came true, and no others ever.
        """
        worst = (self.rows.cells.score < 0.5).astype(np.float64)[:, None]
        return float(self.errors(worst, norm)[0])

    @property
    def log_bayes_factor(self) -> float:
        """Log Bayes factor of a curve against perfect calibration, ``c = s``."""
        x, calibrated = self.cut_logits(-INFINITE_LOGIT, INFINITE_LOGIT)
        return self.shares(hyperpriors(x.size).interval)[1] - calibrated
