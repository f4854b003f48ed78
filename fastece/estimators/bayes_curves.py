"""Cells of equal weight, priors, and posterior draws of the calibration curve.

::

    rows -> cells      weight, hits and mean score of each
         -> fits       Laplace's approximation for every hyperparameter
         -> shares     what each of them is believed: prior times evidence
         -> draws      curves: the probability of a hit in each cell

``logit c(s) = x + b_0 + b_1 (x - mean x) + f(u)`` with x the logit of the score and u its mid-rank,
from 0 to 1. All of it has the scale tau: b_0 is normal with standard deviation tau, b_1 with tau /
2, and f is a Gaussian process with the cosines ``cos(pi k u)``, k = 0, 1, 2, ..., whose variances
``v_k = 2 tau**2 / (1 + (k / rho)**d) / Z`` add up to ``2 tau**2`` from k = 1 on: on average over u
its variance is ``tau**2``. With a decay d of 2 or 4 that is, in C cells of equal weight, a
precision of three or five diagonals. Every constant has its reason in docs/bayes.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.reading import Map
from fastece.data.sample import Sample, increasing, scale_weights
from fastece.data.source import Problems, one_problem
from fastece.estimators.bin_sums import cell_sums, fits_float_grid
from fastece.estimators.layouts import float_layout
from fastece.kernels import MOMENTS
from fastece.typing import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.bayes import Cells, Fits

# Scales tau, and how rough f is: (rho, d). The first is smooth, with a turn or two; the second has
# bends of every size.
SCALES = 2.0 ** np.arange(-5, 3)
ROUGHNESS = ((3.0, 4), (9.0, 2))
# p(tau) ~ sech(log(tau / middle))**power: of the value, and, wider, of the interval.
VALUE_POWER, VALUE_MIDDLE = 8.0, 0.4
INTERVAL_POWER, INTERVAL_MIDDLE = 4.0, 0.45
# Standard deviation of b_1, in units of tau.
SLOPE = 0.5
# Cells: so many for a hundred rows, in steps of 16, as the fourth root of the rows.
CELLS, CELL_STEP, FEWEST_CELLS, MOST_CELLS = 64, 16, 48, 256
# Draws from the posterior: the value's own noise is then a thirtieth of its standard error.
DRAWS = 128
SEED = 5


class Hyperpriors(NamedTuple):
    """Hyperparameters with their log priors, ordered by scale.

    Attributes
    ----------
    fits : Fits
        What `kernels.bayes.fit` begins with, to be copied.
    value, interval : (G,) float64 array
        Log prior probability of each hyperparameter.
    """

    fits: "Fits"
    value: F64
    interval: F64


def cell_count(n: float) -> int:
    """Return the number of cells for `n` rows."""
    steps = round(CELLS / CELL_STEP * math.sqrt(math.sqrt(n / 100)))
    return min(max(CELL_STEP * steps, FEWEST_CELLS), MOST_CELLS)


@lru_cache(maxsize=32)
def hyperpriors(n_cells: int) -> Hyperpriors:
    """Compute the hyperparameters and their priors for a number of cells."""
    chosen = [(tau, *roughness) for tau in SCALES for roughness in ROUGHNESS]
    scale = np.array([tau for tau, _, _ in chosen])
    return Hyperpriors(
        prior_fits(n_cells, [prior_of(n_cells, *h) for h in chosen]),
        log_probabilities(scale, VALUE_POWER, VALUE_MIDDLE),
        log_probabilities(scale, INTERVAL_POWER, INTERVAL_MIDDLE),
    )


def prior_fits(n_cells: int, priors: list[tuple[F64, F64, float]]) -> "Fits":
    """Arrange the prior precisions of all hyperparameters as fits start with them.

    `priors` are the results of `prior_of` for each hyperparameter.
    """
    lanes, quantities = kernels.bayes.LANES, int(kernels.bayes.LINE) // kernels.bayes.LANES
    band = int(kernels.bayes.BAND0) // lanes
    blocks = len(priors) // lanes
    state = np.zeros((blocks, n_cells + 4, quantities, lanes))
    line = np.empty((blocks, 2, lanes))
    for g, (bands, of_line, _) in enumerate(priors):
        state[g // lanes, 2:, band : band + 3, g % lanes] = bands.T
        line[g // lanes, :, g % lanes] = of_line
    half = np.array([log_det / 2 for _, _, log_det in priors])
    return kernels.bayes.Fits(
        state.reshape(blocks, -1), np.zeros_like(line), line, np.empty((blocks, 3, lanes)), half
    )


def log_probabilities(scale: F64, power: float, middle: float) -> F64:
    """Compute normalized log prior probabilities of scales tau.

    They are proportional to ``sech(log(tau / middle))**power``.
    """
    log_p = -power * np.log((scale / middle + middle / scale) / 2)
    return np.asarray(log_p - np.log(np.exp(log_p).sum()))


def prior_of(n_cells: int, tau: float, rho: float, decay: int) -> tuple[F64, F64, float]:
    """Compute the prior precisions of f and b, and their log determinant.

    Bands (3, C + 2) of the precision of f, the two precisions of b, and the log determinant of
    both.

    The second difference L of cells with level ends has the eigenvectors ``cos(pi k (c + 1/2) /
    C)`` and the eigenvalues ``2 - 2 cos(pi k / C)``, about ``(pi k / C)**2``: a multiple of ``1 +
    (C / pi / rho)**d L**(d / 2)`` is the precision of the process, exact but for the highest k.
    """
    factor = (n_cells / math.pi / rho) ** decay
    root = 2 - 2 * np.cos(math.pi * np.arange(n_cells) / n_cells)
    variance = 1 / (1 + factor * root ** (decay // 2))
    unit = variance[1:].sum() / 2 / tau**2
    scale = unit * 2 / n_cells
    power = np.zeros((3, n_cells + 2))  # of L
    if decay == 2:
        power[0, :n_cells], power[1, 1:n_cells] = 2, -1
        power[0, [0, n_cells - 1]] = 1
    else:
        power[0, :n_cells], power[1, 1:n_cells], power[2, 2:n_cells] = 6, -4, 1
        power[0, [0, n_cells - 1]], power[1, [1, n_cells - 1]] = 2, -3
    bands = scale * factor * power
    bands[0, :n_cells] += scale
    # The process has a constant of its own, which is taken off b_0.
    line = np.array([1 / (tau**2 - 0.5 / unit), 1 / (SLOPE * tau) ** 2])
    return bands, line, float(np.log(scale / variance).sum() + np.log(line).sum())


@lru_cache(maxsize=64)
def normals(n_cells: int, k: int) -> F64:
    """Return standard normal numbers (C + 2, S) for the draws of problem k.

    In each line the quantiles of (q + 1/2) / S in random order (McKay, Beckman and Conover 1979: a
    Latin hypercube), which for another problem is turned by as much as no other line.
    """
    rng = np.random.RandomState(SEED)  # whose stream never changes
    quantiles = normal_quantiles()
    order = rng.random_sample((n_cells + 2, DRAWS)).argsort(axis=1, kind="stable")
    turn = k * rng.randint(1, DRAWS, (n_cells + 2, 1))
    return quantiles[np.take_along_axis(order, (np.arange(DRAWS) + turn) % DRAWS, axis=1)]


@lru_cache(maxsize=1)
def normal_quantiles() -> F64:
    """Return standard normal quantiles (S,), in increasing order."""
    return np.array([NormalDist().inv_cdf((q + 0.5) / DRAWS) for q in range(DRAWS)])


@lru_cache(maxsize=1)
def draw_order() -> F64:
    """Return a normal number (S,) for each draw, in an unrelated order."""
    golden = np.arange(DRAWS) * ((math.sqrt(5) - 1) / 2) % 1
    return normal_quantiles()[golden.argsort().argsort()]


# A score of 0 or 1 has this logit, where it is not cut further: with it a hit or a miss is as
# impossible as a float64 can say.
INFINITE_LOGIT = 700.0
# Logits are cut at odds of 2 + n / 2, two misses among n rows, or of 2 + 2 n, half a one: the rows
# do not tell larger ones apart.
LEAST_ODDS, NEAR_ODDS, FAR_ODDS = 2.0, 0.5, 2.0


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
        kernels.arithmetic.sigmoid(flat, flat)
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
        out = np.empty((3, len(p)))
        kernels.bayes.mean_gaps(self.rows.cells.score, p, out)
        return out

    def errors(self, p: F64, norm: float, side: int = 0) -> F64:
        """Compute the calibration error (S,) of each curve p (C, S).

        For the side 1 that of the scores below the curve alone, for -1 that of those above it.
        """
        share = self.rows.cells.weight / self.rows.cells.weight.sum()
        scale = np.sign(share) if norm == math.inf else share ** (1 / norm)
        gap, scale = (-scale * self.rows.cells.score)[None, None], scale[None, None]
        rare, out = kernels.errors.NO_RARE_ROWS, np.empty((1, p.shape[1]))
        kernels.errors.gap_errors(gap, scale, p[None], rare, float(side), norm, out)
        return np.asarray(np.minimum(out[0], 1.0))  # which shares that add up to more would exceed

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
