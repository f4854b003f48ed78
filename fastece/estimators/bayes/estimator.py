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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, reduce
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.data.samples import Sample, in_order, scale_weights
from fastece.data.sources import Problems, Source, one_problem
from fastece.data.threads import Map
from fastece.estimators.base import Parameters
from fastece.estimators.bayes import pieces
from fastece.estimators.bayes.pieces import draw_curves, filter_cells, log_rests, normal_quantiles
from fastece.estimators.binned.cell_sums import CHUNK_SCORES, bin_sums
from fastece.estimators.binned.float_grid import fits_float_grid, float_layout
from fastece.estimators.binomial import binomial_ends
from fastece.kernels import HITS, SCORE, WEIGHT
from fastece.kernels.types import F64, I32, I64

if TYPE_CHECKING:
    from fastece.kernels.bayes import Cells, Fits, Priors
    from fastece.kernels.pieces import Chains, States

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
# Families of curves: chains few of whose pieces are off, the process, chains of many; and how many
# curves of each are drawn for an interval.
SPARSE, PROCESS, ROUGH = range(3)
FAMILY_DRAWS = (48, 96, 32)
# Which chains are of two of them.
CHAINS = {SPARSE: slice(0, len(pieces.SPARSE)), ROUGH: slice(len(pieces.SPARSE), None)}
# A family with a smaller share of the value is left out of it.
LEAST_SHARE = 0.01
SMALLEST_SHARE = 1e-300


class Belief(NamedTuple):
    """Prior probabilities of the families, and shares that each keeps."""

    prior: tuple[float, float, float]
    kept: tuple[float, float, float] = (0.0, 0.0, 0.0)


# Of the value; of the errors of an interval, and of its low end and its high end, each of which has
# the prior that likes it further out.
VALUE, MIDDLE = Belief((0.04, 0.95, 0.01)), Belief((0.3, 0.5, 0.2))
LOW = Belief((0.7, 0.2, 0.1), (0.2, 0.0, 0.0))
HIGH = Belief((0.15, 0.7, 0.15), (0.0, 0.0, 0.12))
PROCESS_ALONE = Belief((0.0, 1.0, 0.0))


class Hyperpriors(NamedTuple):
    """Hyperparameters with their log priors, ordered by scale."""

    curve: "Priors"
    value: F64  # (G,) log prior probability of each hyperparameter
    interval: F64  # (G,)


def cell_count(n: float) -> int:
    """Return the number of cells for `n` rows."""
    steps = round(CELLS / CELL_STEP * math.sqrt(math.sqrt(n / 100)))
    return min(max(CELL_STEP * steps, FEWEST_CELLS), MOST_CELLS)


@lru_cache(maxsize=32)
def hyperpriors(n_cells: int) -> Hyperpriors:
    """Compute the hyperparameters and their priors for a number of cells."""
    chosen = [(tau, *roughness) for tau in SCALES for roughness in ROUGHNESS]
    scale = np.array([tau for tau, _, _ in chosen])
    laws = (VALUE_POWER, VALUE_MIDDLE), (INTERVAL_POWER, INTERVAL_MIDDLE)
    of_scales = (log_probabilities(scale, *law) for law in laws)
    return Hyperpriors(priors_of(n_cells, chosen), *of_scales)


def priors_of(n_cells: int, chosen: Sequence[tuple[float, float, int]]) -> "Priors":
    """Arrange results of `prior_of` for all hyperparameters as kernels take them."""
    found = [prior_of(n_cells, *hyperparameter) for hyperparameter in chosen]
    bands, line, log_det = (np.array(part) for part in zip(*found, strict=True))
    rows = bands[:, :, [0, 1, kernels.bayes.MIDDLE, n_cells - 2, n_cells - 1]].T.ravel()
    return kernels.bayes.Priors(rows, line.T.copy(), log_det / 2)


def log_probabilities(scale: F64, power: float, middle: float) -> F64:
    """Compute log probabilities of scales, of ``sech(log(tau / middle))**power``."""
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
def normals(n_cells: int, k: int, draws: int = DRAWS) -> F64:
    """Return standard normal numbers (C + 2, S) for the draws of problem k.

    In each line the quantiles of (q + 1/2) / S in random order (McKay, Beckman and Conover 1979: a
    Latin hypercube), which for another problem is turned by as much as no other line.
    """
    rng = np.random.RandomState(SEED)  # whose stream never changes
    quantiles = normal_quantiles(draws)
    order = rng.random_sample((n_cells + 2, draws)).argsort(axis=1, kind="stable")
    turn = k * rng.randint(1, draws, (n_cells + 2, 1))
    return quantiles[np.take_along_axis(order, (np.arange(draws) + turn) % draws, axis=1)]


@lru_cache(maxsize=64)
def pool_order(k: int) -> I64:
    """Return the order in which curves of the pool of problem k are taken.

    It goes by family, the process by scale; curves of chains are in random order, which has nothing
    to do with another problem's.
    """
    rng = np.random.RandomState(SEED + 1 + k)
    ends = np.cumsum((0, *FAMILY_DRAWS))
    parts = [np.arange(*ends[j : j + 2]) for j in range(len(FAMILY_DRAWS))]
    return np.concatenate([x if j == PROCESS else rng.permutation(x) for j, x in enumerate(parts)])


@lru_cache(maxsize=8)
def draw_order(draws: int = DRAWS) -> F64:
    """Return a normal number (S,) for each draw, in an unrelated order."""
    golden = np.arange(draws) * ((math.sqrt(5) - 1) / 2) % 1
    return normal_quantiles(draws)[golden.argsort().argsort()]


# Logits are cut at odds of 2 + n / 2, two misses among n rows, or of 2 + 2 n, half a one: the rows
# do not tell larger ones apart.
LEAST_ODDS, NEAR_ODDS, FAR_ODDS = 2.0, 0.5, 2.0


class CellRows(NamedTuple):
    """Rows of one problem, summed in cells."""

    n: float  # the effective number of rows
    cells: "Cells"  # their weights add up to `n`
    # Cell (n,) of each row, in increasing order of the score; empty where rows were not sorted.
    cell: I32
    # Cell (G,) of each cell of the float grid, where rows were not sorted; otherwise empty.
    of_grid: I32

    def thinned(self, effect: float) -> "CellRows":
        """Divide the number of rows by a design effect; their hit rates stay."""
        weight, hits, score = self.cells
        cells = kernels.bayes.Cells(weight / effect, hits / effect, score)
        return self._replace(n=self.n / effect, cells=cells) if effect != 1 else self

    def drawn(self, rng: np.random.Generator) -> "CellRows":
        """Draw the hits in the cells of a calibrated model, from binomial laws."""
        weight, _, score = self.cells
        rows = np.maximum(np.rint(weight), 1.0)
        hits = weight / rows * rng.binomial(rows.astype(np.int64), score)
        return self._replace(cells=self.cells._replace(hits=hits))

    def cell_of(self, sample: Sample) -> I32:
        """Return the cell (n,) of each row of the sample that made the cells."""
        cell = np.empty(sample.n, np.int32)
        if self.of_grid.size:
            work = np.empty(sample.n)
            kernels.binning.float_cells(sample.s, sample.low, sample.high, work, cell)
            return self.of_grid[cell]
        cell[in_order(sample.s)[1]] = self.cell
        return cell


def effective_count(w: F64 | None, n: int) -> float:
    """Compute Kish's (1965) effective number of rows ``(sum w)**2 / sum w**2``."""
    if w is None:
        return float(n)
    # The squares of 1e300 and of 1e-300 are no numbers; a power of two rounds nothing.
    w = np.ldexp(w, -math.frexp(w.max())[1])
    return float(w.sum() ** 2 / (w * w).sum())


def cells_of_rows(sample: Sample, c: NDArray[Any] | None = None) -> CellRows:
    """Sum a sorted sample in cells, row i being ``c[i]`` rows."""
    s, y, w = sample.s, sample.y, sample.v
    if c is None or (c == 1).all():
        count = effective_count(w, s.size)
    else:
        kept = c > 0
        s, y, c = s[kept], y[kept], c[kept].astype(np.float64)
        count = float(c.sum())
        if w is not None:
            w = w[kept]
            count = float((c * w).sum() ** 2 / (c * w * w).sum())
        w = c if w is None else c * w
    count /= sample.votes  # without a design effect, votes of one row say no more than one
    cells = kernels.bayes.Cells(*np.zeros((3, cell_count(count))))
    cell = np.empty(s.size, np.int32)
    kernels.bayes.sum_cells(s, y, kernels.weights(w), count, cells, cell)
    return CellRows(count, cells, cell, np.empty(0, np.int32))


def cells_of_problems(problems: Problems, run: Map) -> list[CellRows]:
    """Sum each problem in cells; many rows are summed in a fine grid, not sorted."""
    problems, _ = scale_weights(problems)
    if not fits_float_grid(problems, MOST_CELLS, False):
        return [cells_of_rows(problems.view(k).sorted()) for k in range(problems.n_problems)]
    count = effective_count(problems.v, problems.n) / problems.votes
    grid = float_layout(problems.low, problems.high)
    sums = bin_sums(problems, grid, -math.inf, (WEIGHT, HITS, SCORE), run)
    return list(map(partial(cells_of_sums, count), sums[WEIGHT], sums[HITS], sums[SCORE]))


def cells_of_sums(count: float, weight: F64, hits: F64, score: F64) -> CellRows:
    """Make cells from the sums of w, w y and w s in the cells of a fine grid.

    These are narrower than a hundredth of the distance from 0 or 1, so that the rows in one may be
    taken as rows of one score.
    """
    n_cells = cell_count(count)
    middle = np.cumsum(weight) - weight / 2
    place = middle * (n_cells / weight.sum()) + kernels.bayes.ROUNDING
    place = place.astype(np.int32).clip(0, n_cells - 1)
    scale = count / weight.sum()
    weight, hits, score = (scale * np.bincount(place, x, n_cells) for x in (weight, hits, score))
    mean = np.divide(score, weight, out=np.zeros(n_cells), where=weight > 0)
    cells = kernels.bayes.Cells(weight, hits.clip(0, weight), mean.clip(0, 1))  # of rounding
    return CellRows(count, cells, np.empty(0, np.int32), place)


@dataclass(frozen=True, eq=False)
class Curves:
    """The posterior of the calibration curve of one problem."""

    rows: CellRows
    k: int = 0  # number of the problem, whose interval has random numbers of its own

    @cached_property
    def cut(self) -> tuple[float, float, float, F64, F64]:
        """Limits at which logits are cut; log likelihood of uncut ones; `logits`.

        At each end it is the further one of two cuts, unless the hits of what lies beyond the
        nearer one are less likely then: a heap of scores at 1 that comes true in 95 of 100 is not
        as far from calibrated with the nearer one.
        """
        near, far = (math.log(LEAST_ODDS + odds * self.rows.n) for odds in (NEAR_ODDS, FAR_ODDS))
        x, t = np.empty((2, self.rows.cells.weight.size))
        return *kernels.bayes.cut_logits(self.rows.cells, near, far, x, t), x, t

    @property
    def logits(self) -> tuple[F64, F64]:
        """Cut logits of the mean scores (C,), and their distances from the mean."""
        return self.cut[3:]

    @cached_property
    def fits(self) -> "Fits":
        """Laplace approximations, one for each hyperparameter."""
        bayes, (x, t), of_all = kernels.bayes, self.logits, (self.rows.cells, self.priors.curve)
        state, logit = np.empty((x.size + 4) * int(bayes.LINE)), np.repeat(x, bayes.LANES)
        line, schur = np.empty((2, bayes.LANES)), np.empty((3, bayes.LANES))
        fits = bayes.Fits(state, line, schur, np.empty(bayes.LANES))
        bayes.fit(x, t, *of_all, logit, fits)
        bayes.add_evidence(logit, log_rests(logit), *of_all, fits)
        return fits

    @cached_property
    def chains(self) -> tuple["States", "Chains"]:
        """Chains of pieces, and their states."""
        return filter_cells(self.rows.n, self.rows.cells, self.logits[0])

    def draws(self, log_prior: F64, k: int, count: int) -> F64:
        """Draw logits (C, S) of the process, in increasing order of its scale tau."""
        x, t = self.logits
        logit = np.empty((x.size, count))
        kernels.bayes.draw_logits(x, t, self.fits, log_prior, normals(x.size, k, count), logit)
        return logit

    @property
    def priors(self) -> Hyperpriors:
        """Hyperparameters with their priors, for these cells."""
        return hyperpriors(self.rows.cells.weight.size)

    @cached_property
    def sparse(self) -> F64:
        """Drawn logits (C, S) of sparse chains."""
        return self.chain_draws(SPARSE)

    @cached_property
    def rough(self) -> F64:
        """Drawn logits (C, S) of rough chains."""
        return self.chain_draws(ROUGH)

    def chain_draws(self, family: int) -> F64:
        """Draw logits (C, S) of the chains of a family, with one set of numbers."""
        e, chains = self.chains[1].log_evidence, CHAINS[family]
        share = np.zeros(e.size)
        share[chains] = np.exp(e[chains] - e[chains].max())
        return draw_curves(self.logits[0], *self.chains, share, FAMILY_DRAWS[family])

    def value_draws(self, family: int) -> F64:
        """Draw logits (C, S) of curves of a family, for the value."""
        if family == PROCESS:
            return self.draws(self.priors.value, 0, DRAWS)
        return (self.sparse if family == SPARSE else self.rough).copy()

    def pool(self) -> F64:
        """Draw logits (C, 176) of curves of all families, for intervals."""
        process = self.draws(self.priors.interval, self.k, FAMILY_DRAWS[PROCESS])
        return np.concatenate([self.sparse, process, self.rough], axis=1)

    @cached_property
    def chain_evidence(self) -> tuple[float, float]:
        """Log evidence of sparse chains and of rough ones, the mean of each family's."""
        found = (self.chains[1].log_evidence[CHAINS[family]] for family in (SPARSE, ROUGH))
        sparse, rough = (float(np.logaddexp.reduce(e)) - math.log(e.size) for e in found)
        return sparse, rough

    def log_evidence(self, log_prior: F64) -> F64:
        """Compute the log evidence (3,) of each family, with a prior of hyperparameters."""
        sparse, rough = self.chain_evidence
        return np.array([sparse, np.logaddexp.reduce(self.fits.log_evidence + log_prior), rough])

    @cached_property
    def interval_evidence(self) -> F64:
        """Log evidence (3,) of each family with the prior of the interval."""
        return self.log_evidence(self.priors.interval)

    def chosen(self, *beliefs: Belief) -> I64:
        """Choose the curves (B, S) of the pool that make up a posterior with each belief."""
        each = np.repeat(shares(self.interval_evidence, beliefs) / FAMILY_DRAWS, FAMILY_DRAWS, 1)
        row = np.arange(len(beliefs))[:, None]  # so that all rows are one increasing sequence
        place = row + (np.arange(DRAWS) + 0.5) / DRAWS
        sums = row + np.cumsum(each, axis=1)
        sums[:, -1] = row[:, 0] + 1.0
        return np.asarray(
            pool_order(self.k)[np.searchsorted(sums.ravel(), place) - row * each.shape[1]]
        )

    def values(self, norm: float, sides: Sequence[int] = (0,)) -> F64:
        """Compute the posterior mean (D,) of the error and of its parts on some sides."""
        share, total = shares(self.log_evidence(self.priors.value), [VALUE])[0], 0.0
        share[share < LEAST_SHARE] = 0.0
        for family in np.flatnonzero(share).tolist():
            p = probabilities(self.value_draws(family))
            means = [self.errors(p, norm, side).sum() / p.shape[1] for side in sides]
            total = total + share[family] * np.array(means)
        return np.asarray(total / share.sum())

    def interval_draws(self) -> F64:
        """Draw logits (C, S) of curves under the prior of the interval."""
        return np.asarray(np.take(self.pool(), self.chosen(MIDDLE)[0], axis=1))

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
            own = (np.log(score) - np.log1p(-score)).clip(*self.cut[:2])
        found, rest = logit[below], logit[above]
        rest -= found  # in place: what takes time here is the memory
        rest *= part
        found += rest
        return probabilities(np.add(found, own[:, None], out=found))

    def means(self, p: F64, weight: F64) -> F64:
        """Average the gap ``c - s``, its size and its sign over drawn curves: (3, C)."""
        out = np.empty((3, len(p)))
        kernels.bayes.mean_gaps(self.rows.cells.score, p, weight, out)
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

    @property
    def log_bayes_factor(self) -> float:
        """Log Bayes factor of a curve against perfect calibration, ``c = s``."""
        log_p = self.interval_evidence + np.log(MIDDLE.prior)
        return float(np.logaddexp.reduce(log_p)) - self.cut[2]


def shares(log_evidence: F64, beliefs: Sequence[Belief]) -> F64:
    """Compute the posterior probabilities (B, 3) of families with each belief."""
    prior, kept = np.array(beliefs).transpose(1, 0, 2)
    p = prior * np.exp(log_evidence - log_evidence.max())
    p = np.maximum(p, prior * SMALLEST_SHARE)  # which may be all that there is
    rest = 1 - kept.sum(1, keepdims=True)
    return np.asarray(rest * p / p.sum(1, keepdims=True) + kept)


def probabilities(logit: F64) -> F64:
    """Turn logits of any shape into probabilities, in place."""
    flat = logit.reshape(-1)
    kernels.arithmetic.sigmoid(flat, flat)
    return logit


# The variance of log errors of each family is taken so many times as large: cells, Laplace's
# approximation and fixed priors leave something out.
WIDER = (1.65, 1.15, 1.65)
# Beyond the last two of 128 draws on either side, errors follow a log-normal law, whose deviation
# is 1.3 times that between the median and those two: with 1, intervals of 20 groups of 1000 rows do
# not all hold in 7.0 % of samples, where 5 % may be. At most 1, as some draws may be 0.
TAIL, HEAVIER, STEEPEST = 1 / 64, 1.3, 1.0
# Values of calibrated samples behind a floor, of many classes fewer: fits take 0.4 ms each.
FLOOR_VALUES, FEWEST_VALUES, MOST_FITS = 99, 19, 1000
# No error is smaller, where there is a curve.
LEAST_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class ProblemPosterior:
    """The posterior of one problem."""

    sample: Sample
    rows: CellRows
    means: F64  # (3, C) of drawn curves: of the gap in each cell, of its size and of its sign

    @cached_property
    def influence(self) -> F64:
        """Influence (n,) of each row on the error, from its cell; of many, part by part."""
        gap, _, sign = self.means
        chance, influence, done = self.rows.cells.score + gap, np.empty(self.sample.n), 0
        for part in self.sample.parts(CHUNK_SCORES if self.rows.of_grid.size else self.sample.n):
            cell = self.rows.cell_of(part)
            influence[done : done + part.n] = sign[cell] * (part.y - chance[cell])
            done += part.n
        return influence


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of the calibration error of a problem, or of the mean over classes.

    Attributes
    ----------
    value : float
        The posterior mean.
    errors : (S,) float64 array
        The error of curves drawn from the wider posterior of intervals, with what the scores of
        other rows would change.
    ends : (2, S) float64 array or None
        The same under the priors of the low end and of the high end; None: that of both is
        `errors`.
    log_bayes_factor : float
        Log of how much likelier the hits are under some curve than under ``c = s``; class by class
        of the mean of these factors.
    parts : tuple
        The problems, which `influence` comes from.
    most : float
        The largest possible error.
    norm : float
        Of the gaps.
    wrong : tuple of float or None
        Where all scores are 0 and 1, the number of rows that make the error, and of the others.
    """

    value: float
    errors: F64
    log_bayes_factor: float
    parts: tuple[ProblemPosterior, ...] = field(repr=False)
    most: float = 1.0
    ends: F64 | None = None
    norm: float = 1.0
    wrong: tuple[float, float] | None = None

    @cached_property
    def null(self) -> F64:
        """Values (S,) of drawn calibrated models with the same cells."""
        rng, most = np.random.default_rng(SEED), MOST_FITS // len(self.parts)
        count = min(max(most, FEWEST_VALUES), FLOOR_VALUES)
        drawn = [[part.rows.drawn(rng) for part in self.parts] for _ in range(count)]
        found = [[float(Curves(x).values(self.norm)[0]) for x in rows] for rows in drawn]
        return np.asarray(np.mean(found, axis=1))

    @cached_property
    def influence(self) -> F64:
        """Influence (n,) of each row on the error, in the order of the rows.

        It is the sum over problems of ``E sign(c - s) (y - E c)``.
        """
        return reduce(np.add, (part.influence for part in self.parts))

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Compute the ends of the interval at a level.

        The interval of a higher level is never narrower.

        With alpha = 1 - level it is from 0 to the quantile 1 - alpha of the errors, unless the
        Bayes factor exceeds 1 / alpha, which it does in a share of alpha of calibrated samples at
        most; then between the quantiles alpha / 2 and 1 - alpha / 2. Where all scores are 0 and 1,
        the error is a share of the rows, and the interval holds that of its binomial law.
        """
        alpha = 1 - check_real("confidence_level", confidence_level, 0.0, 1.0)
        if not 0 < alpha < 1:
            raise InputError("confidence_level", "must be between 0 and 1", value=confidence_level)
        # From which alpha on calibration is doubted. Below, one side has all of alpha; but the high
        # end stays above those of all lower levels.
        doubt = math.exp(-max(self.log_bayes_factor, 0.0))
        if alpha > doubt:
            below, above = alpha / 2, alpha / 2
        else:
            below, above = 0.0, min(alpha, doubt / 2) if doubt < 1 else alpha
        of_low, of_high = (self.errors, self.errors) if self.ends is None else self.ends
        high = self.quantile(of_high, 1 - above)
        low = self.quantile(of_low, below) if below else 0.0
        if self.wrong is not None:
            ends = binomial_ends(*self.wrong, alpha / 2, 1 - alpha / 2)
            low, high = min(low, float(ends[0])), max(high, float(ends[1]))
        return min(low, self.value), max(high, self.value)

    def quantile(self, errors: F64, level: float) -> float:
        """Compute a quantile of errors, extrapolated beyond the extreme draws."""
        known, last = min(max(level, TAIL), 1 - TAIL), errors.size - 1
        places = last * known, last * 0.5
        error, middle = np.interp(places, np.arange(errors.size), np.sort(errors)).tolist()
        if known == level or min(error, middle) <= 0:
            return float(error)
        place = (places[0] + 0.5) / errors.size
        z, z_known = (NormalDist().inv_cdf(p) for p in (level, place))
        deviation = min(HEAVIER * math.log(error / middle) / z_known, STEEPEST)
        return min(error * math.exp(deviation * (z - z_known)), self.most)


def curves_of(samples: Sequence[Sample], effect: float = 1.0) -> Iterator[Curves]:
    """Yield the curves of each problem, of rows with a design effect."""
    for k, sample in enumerate(samples):
        if sample.c is None:
            (rows,) = cells_of_problems(one_problem(sample), map)
        else:
            rows = cells_of_rows(sample, sample.c)
        yield Curves(rows.thinned(effect / sample.votes), k)


def posterior_of(samples: Sequence[Sample], norm: float, effect: float = 1.0) -> Posterior:
    """Compute the posterior of the mean error over problems of the same rows."""
    return posteriors_of(samples, norm, (0,), effect)[0]


def side_posteriors(samples: Sequence[Sample], norm: float, effect: float = 1.0) -> list[Posterior]:
    """Compute the posteriors of the mean error and of its two one-sided parts.

    First the error as `posterior_of` has it, then the part of it of scores above the curve, then
    the part of scores below.
    """
    return posteriors_of(samples, norm, (0, -1, 1), effect)


def posteriors_of(
    samples: Sequence[Sample], norm: float, sides: tuple[int, ...], effect: float
) -> list[Posterior]:
    """Compute the posteriors of the mean error, or of its parts, by side."""
    # Errors of several classes together vary less: no share of theirs is kept for sparse chains.
    low = LOW if len(samples) == 1 else Belief(LOW.prior)
    values, errors, limits, factors, parts = [], [], [], [], []
    wrong: list[tuple[float, float] | None] = [None] * len(sides)
    for sample, curves in zip(samples, curves_of(samples, effect), strict=True):
        p = probabilities(curves.pool())
        chosen = curves.chosen(MIDDLE, low, HIGH, PROCESS_ALONE)
        values.append(curves.values(norm, sides))
        found = np.array([curves.errors(p, norm, side) for side in sides])
        errors.append((found * family_widening(found[0]))[:, chosen])
        # The largest error: all scores below one half always come true, and no others ever.
        farthest = np.where(curves.rows.cells.score < 0.5, 1.0, 0.0)
        limits.append(curves.errors(farthest[:, None], norm))
        factors.append(curves.log_bayes_factor)
        if norm == 1 and len(samples) == 1:
            wrong = [wrong_rows(curves.rows, side) for side in sides]
        weight = np.bincount(chosen[0], minlength=p.shape[1]) / DRAWS
        parts.append(ProblemPosterior(sample, curves.rows, curves.means(p, weight)))
    top, most = max(factors), float(np.mean(limits))
    log_bayes_factor = top + math.log(np.mean(np.exp(np.array(factors) - top)))
    error = np.sum(errors, axis=0) / len(errors)  # (D, 4, S)
    error = np.minimum(error * widening(error[0], parts, curves.rows.n, norm), most)
    out = []
    means = np.mean(values, axis=0).tolist()
    for value, rows, (middle, *rest) in zip(means, wrong, error, strict=True):
        ends = np.sort(rest)
        if len(samples) > 1:
            ends[0], ends[1] = np.minimum(ends[0], ends[2]), np.maximum(ends[1], ends[2])
        facts = most, ends[:2], norm, rows
        out.append(Posterior(value, middle, log_bayes_factor, tuple(parts), *facts))
    return out


def wrong_rows(rows: CellRows, side: int) -> tuple[float, float] | None:
    """Count the rows that make the error, and the others, if all scores are 0 and 1."""
    weight, hits, score = rows.cells
    if not np.isin(score, (0.0, 1.0)).all():
        return None
    gaps = np.where(score == 1, hits - weight, hits)  # observed minus expected hits
    wrong = float(np.abs(gaps[gaps * side >= 0]).sum())
    return wrong, rows.n - wrong


def widening(errors: F64, parts: Sequence[ProblemPosterior], count: float, norm: float) -> F64:
    """Compute factors that widen errors (4, S) by variance that the draws leave out.

    The rows of several classes are the same: their influences add up with a variance that is not
    the sum of theirs. And scores are a sample too: for the norm 1 the error is the mean of the gap
    over all scores there are, of which this many were seen.
    """
    variance, size, w = 1.0, parts[0].means[1], parts[0].rows.cells.weight
    if len(parts) > 1:
        v = parts[0].sample.v
        w = np.ones(parts[0].sample.n) if v is None else v
        influence = [part.influence for part in parts]
        apart = sum((w * x**2).sum() for x in influence)
        together = (w * np.sum(influence, axis=0) ** 2).sum()
        variance = together / apart if apart > 0 else 1.0
        size = np.sum([part.means[1][part.rows.cell_of(part.sample)] for part in parts], axis=0)
    w = w / w.sum()
    mean = (w * size).sum()
    by_scores = 0.0
    if mean > 0 and not math.isinf(norm):
        by_scores = math.sqrt((w * (size - mean) ** 2).sum() / count) / mean
    return spread_factors(errors, variance) * np.exp(by_scores * draw_order())


def family_widening(errors: F64) -> F64:
    """Compute factors that widen the errors (P,) of a pool by family."""
    parts = np.split(errors, np.cumsum(FAMILY_DRAWS)[:-1])
    return np.concatenate([*map(spread_factors, parts, WIDER)])


def spread_factors(errors: F64, variance: float) -> F64:
    """Compute factors (..., S) that multiply the variance of log errors."""
    log_e = np.log(np.maximum(errors, LEAST_ERROR))
    middle = np.sort(log_e, axis=-1)[..., log_e.shape[-1] // 2, None]
    return np.asarray(np.exp((math.sqrt(variance) - 1) * (log_e - middle)))


# A score has rows to speak of where there is one no further away.
REACH = 0.025
# A curve is taken at so many even scores and quantiles. Of 501 even ones alone half are of no use
# to a network with four fifths of its scores above 0.999: the band held 67 % of its bins.
EVEN_SCORES, QUANTILES = 501, 513


@dataclass(frozen=True)
class BayesCurve(Parameters):
    """Calibration error of a Bayesian calibration curve: its posterior mean.

    The probability of a hit is ``logit c(s) = x + b_0 + b_1 (x - mean x) + f(u)``, with x the logit
    of the score, cut at odds of ``2 + 2 n`` or ``2 + n / 2``, and u its mid-rank. Around ``c = s``
    the line b is normal and f a Gaussian process; their scale and the roughness of f are averaged
    over by what the rows say of them. The value is the posterior mean of ``(E |c(s) -
    s|**p)**(1/p)`` over the scores there are, for p = inf of the largest ``|c(s) - s|``.

    Parameters
    ----------
    norm : float
        p, at least 1; ``inf`` for the maximum calibration error.

    Raises
    ------
    ValueError, TypeError
        For a norm below 1.

    Notes
    -----
    Laplace's approximation for each of some scales and roughnesses (Rasmussen and Williams 2006,
    "Gaussian processes for machine learning", section 3.4), in cells of equal weight, and 128 draws
    from their mixture. Where rows have weights, they are as many as Kish's effective number. What
    is assumed, with reasons and measurements, is in docs/bayes.md.

    Examples
    --------
    >>> from fastece import BayesCurve, ece
    >>> print(f"{ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=BayesCurve()):.3f}")
    0.085
    >>> print(BayesCurve(norm=2))
    BayesCurve(norm=2.0)
    """

    norm: float = 1.0

    checks: ClassVar = {"norm": partial(check_real, low=1.0)}

    def __str__(self) -> str:
        return "BayesCurve()" if self.norm == 1 else super().__str__()

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sorted sample: the cells depend on the draw."""
        return scale_weights(sample)[0]

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return self.value(cells_of_rows(plan, c))

    def point_values(self, source: Source, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a source; many rows are not sorted."""
        if not isinstance(source, Problems):
            return super().point_values(source, run)
        return np.array(list(run(self.value, cells_of_problems(source, run))))

    def value(self, rows: CellRows) -> float:
        """Compute the posterior mean of the error from rows in cells."""
        return float(Curves(rows).values(self.norm)[0])

    def posterior(self, samples: Sequence[Sample], effect: float = 1.0) -> Posterior:
        """Compute the posterior of the mean error over some problems.

        Parameters
        ----------
        samples : sequence of Sample
            One problem, or one for each class; of the same rows, in the same order.
        effect : float, default 1.0
            The design effect of rows that depend on each other, at least 1: so many of them say as
            much as an independent one (Kish 1965, "Survey sampling", section 8.2).

        Returns
        -------
        Posterior
        """
        return posterior_of([scale_weights(sample)[0] for sample in samples], self.norm, effect)

    def curve_scores(self, ordered: Sample) -> F64:
        """Return scores (G,) between which a curve may be interpolated.

        Evenly spaced ones over the range, and quantiles of the scores, which heaps are among.
        """
        even = np.linspace(ordered.low, ordered.high, EVEN_SCORES)
        return np.unique(np.concatenate([even, ordered.quantiles(np.linspace(0, 1, QUANTILES))]))

    def curve(
        self, sample: Sample, score: F64, confidence_level: float, effect: float = 1.0
    ) -> tuple[F64, F64, F64]:
        """Compute the probability of a hit, with intervals, at some scores.

        Parameters
        ----------
        sample : Sample
        score : (G,) float64 array
            In [0, 1].
        confidence_level : float
        effect : float, default 1.0
            As of `posterior`.

        Returns
        -------
        three (G,) float64 arrays
            The posterior mean, and the ends of the interval at each score by itself; nan where no
            row is within 0.025.
        """
        p, tail = self.curve_draws(sample, score, effect), (1 - confidence_level) / 2
        low, high = np.quantile(p, [tail, 1 - tail], axis=1)
        return p.mean(axis=1), low, high

    def curve_draws(self, sample: Sample, score: F64, effect: float = 1.0) -> F64:
        """Draw the curve (G, 128) at some scores; nan where no row is near."""
        ordered, _ = scale_weights(sample)
        if not (ordered.s[1:] >= ordered.s[:-1]).all():
            ordered = ordered.sorted()
        rows = cells_of_rows(ordered, ordered.c).thinned(effect / sample.votes)
        p = Curves(rows).at(score)
        p[rows_near(ordered, score) == 0] = np.nan
        return p


def rows_near(ordered: Sample, score: F64) -> F64:
    """Count the rows (G,) of a sorted sample within 0.025 of each score."""
    first = np.searchsorted(ordered.s, score - REACH, "left")
    last = np.searchsorted(ordered.s, score + REACH, "right")
    if ordered.c is None:
        return np.asarray(last - first, np.float64) / ordered.votes
    below = np.append(0.0, np.cumsum(ordered.c))
    return np.asarray(below[last] - below[first])
