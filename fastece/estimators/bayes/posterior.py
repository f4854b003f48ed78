"""The posterior of the calibration error of a problem, or of a mean over classes.

Two corrections widen the draws of an interval: `family_widening` for what cells, Laplace's
approximation and fixed priors leave out, and `sampling_widening` for scores that are a sample too
and for classes that share their rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.data.samples import Sample
from fastece.data.table import one_problem
from fastece.estimators.bayes.calibrated_share import calibrated_draws
from fastece.estimators.bayes.cells import CellRows, cells_of_problems, cells_of_rows
from fastece.estimators.bayes.comparison_ends import EndShifts, end_shifts
from fastece.estimators.bayes.curves import (
    ERROR_BELIEF,
    FAMILY_DRAWS,
    HIGH_BELIEF,
    LOW_BELIEF,
    PROCESS_ALONE,
    Belief,
    Curves,
    probabilities,
)
from fastece.estimators.bayes.fixed_numbers import DRAWS, SEED, draw_order
from fastece.estimators.binomial import binomial_ends
from fastece.kernels import CHUNK_SCORES
from fastece.kernels.types import F64

# The variance of log errors of each family is multiplied by this: cells, Laplace's approximation
# and fixed priors leave something out.
VARIANCE_FACTORS = (1.65, 1.15, 1.65)
# Beyond the last two of 128 draws on either side, errors follow a log-normal law.
TAIL = 1 / 64
# Its deviation is this many times the deviation between the median and those two: with 1, intervals
# of 20 groups of 1000 rows do not all hold in 7.0 % of samples, where 5 % may be.
TAIL_DEVIATION_FACTOR = 1.3
# Its largest deviation, as some draws may be 0.
MAX_TAIL_DEVIATION = 1.0
# Values of calibrated samples behind a floor.
FLOOR_VALUES = 99
# The number of fits is limited, at 0.4 ms each, so there are fewer values of many classes.
MIN_FLOOR_VALUES = 19
MAX_FLOOR_FITS = 1000
# No error is smaller, where there is a curve.
MIN_ERROR = 1e-12
STANDARD_NORMAL = NormalDist()


class MeanGaps(NamedTuple):
    """Means over drawn curves, of each of C cells.

    Attributes
    ----------
    gap, size, sign : (C,) float64 arrays
        The gap ``c - s``, its size and its sign.
    """

    gap: F64
    size: F64
    sign: F64


class WrongRows(NamedTuple):
    """Numbers of rows that make the error, and of others, if all scores are 0 and 1."""

    wrong: float
    right: float


@dataclass(frozen=True, eq=False)
class ProblemPosterior:
    """The posterior of one problem."""

    sample: Sample
    rows: CellRows
    mean_gaps: MeanGaps

    @cached_property
    def influence(self) -> F64:
        """Influence (n,) of each row on the error, by its cell."""
        chance = self.rows.cells.score + self.mean_gaps.gap
        influence = np.empty(self.sample.n)
        rows_at_once = CHUNK_SCORES if self.rows.cell_of_fine_cell.size else self.sample.n
        begin = 0
        for part in self.sample.parts(rows_at_once):
            cell = self.rows.find_cells(part)
            influence[begin : begin + part.n] = self.mean_gaps.sign[cell] * (part.y - chance[cell])
            begin += part.n
        return influence


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of the calibration error of a problem, or of the mean over classes.

    Attributes
    ----------
    value : float
        The posterior mean.
    errors : (S,) float64 array
        The error of curves drawn from the wider posterior of intervals, with the change that the
        scores of other rows would make.
    log_bayes_factor : float
        Log of how much likelier the hits are under some curve than under ``c = s``; of several
        classes the log of the mean of their factors.
    problems : tuple of ProblemPosterior
        The problems, from which `influence` is computed.
    max_error : float
        The largest possible error.
    end_errors : (2, S) float64 array or None
        The errors under the priors of the low end and of the high end; None: `errors`, for both.
    errors_with_calibrated : (S,) float64 array or None
        Errors of a mean in whose draws some problems are calibrated, for the low end of its
        interval; None for one problem.
    norm : float
        Norm of the gaps.
    wrong_rows : WrongRows or None
        Where all scores are 0 and 1.
    shares : (K,) float64 array or None
        Weights of problems with rows of their own; None for equal ones.
    """

    value: float
    errors: F64
    log_bayes_factor: float
    problems: tuple[ProblemPosterior, ...] = field(repr=False)
    max_error: float = 1.0
    end_errors: F64 | None = None
    errors_with_calibrated: F64 | None = None
    norm: float = 1.0
    wrong_rows: WrongRows | None = None
    shares: F64 | None = None

    @cached_property
    def null(self) -> F64:
        """Values (S,) of drawn calibrated models with the same cells."""
        rng = np.random.default_rng(SEED)
        count = max(MAX_FLOOR_FITS // len(self.problems), MIN_FLOOR_VALUES)
        values = [self._draw_null(rng) for _ in range(min(count, FLOOR_VALUES))]
        return np.asarray(np.average(values, axis=1, weights=self.shares))

    @cached_property
    def influence(self) -> F64:
        """Influence (n,) of each row on the error, in the order of the rows.

        It is the sum over problems of ``E sign(c - s) (y - E c)``.
        """
        return reduce(np.add, (problem.influence for problem in self.problems))

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Compute the ends of the interval at a level.

        The interval of a higher level is never narrower.

        With alpha = 1 - level it is from 0 to the quantile 1 - alpha of the errors, unless the
        Bayes factor exceeds 1 / alpha, which it does in a share of alpha of calibrated samples at
        most; then between the quantiles alpha / 2 and 1 - alpha / 2. Where all scores are 0 and 1,
        the error is a share of the rows, and the interval holds its binomial interval.
        """
        alpha = 1 - check_real("confidence_level", confidence_level, 0.0, 1.0)
        if not 0 < alpha < 1:
            raise InputError("confidence_level", "must be between 0 and 1", value=confidence_level)
        # Calibration is doubted from this alpha on. Below it, one side has all of alpha; but the
        # high end stays above the high ends of all lower levels.
        doubt = math.exp(-max(self.log_bayes_factor, 0.0))
        if alpha > doubt:
            below = above = alpha / 2
        else:
            below = 0.0
            above = min(alpha, doubt / 2) if doubt < 1 else alpha
        low_errors = high_errors = self.errors
        if self.end_errors is not None:
            low_errors, high_errors = self.end_errors
        if self.errors_with_calibrated is not None:
            low_errors = self.errors_with_calibrated
        low = self.quantile(low_errors, below) if below else 0.0
        high = self.quantile(high_errors, 1 - above)
        if self.wrong_rows is not None:
            wrong, right = self.wrong_rows
            binomial_low, binomial_high = binomial_ends(wrong, right, alpha / 2, 1 - alpha / 2)
            low = min(low, float(binomial_low))
            high = max(high, float(binomial_high))
        return min(low, self.value), max(high, self.value)

    def comparison_interval(self, confidence_level: float) -> tuple[float, float]:
        """Compute the ends at a level for a comparison with the error of another model.

        Where all scores are 0 and 1, the binomial interval is exact.
        """
        if self.wrong_rows is not None:
            return self.interval(confidence_level)
        low_errors = high_errors = self.errors
        if self.end_errors is not None:
            low_errors, high_errors = self.end_errors
        shifts = self._end_shifts
        alpha = 1 - confidence_level
        z = STANDARD_NORMAL.inv_cdf(1 - alpha / 2)
        high = self.quantile(high_errors, STANDARD_NORMAL.cdf(z + shifts.high))
        low = 0.0
        if alpha > shifts.max_alpha_of_zero:
            low = self.quantile(low_errors, STANDARD_NORMAL.cdf(shifts.low - z))
        return min(low, self.value), max(high, self.value)

    @cached_property
    def _end_shifts(self) -> EndShifts:
        """How far the ends move for a comparison, at all levels."""
        return end_shifts(self.log_bayes_factor)

    def quantile(self, errors: F64, level: float) -> float:
        """Compute a quantile of errors, extrapolated beyond the extreme draws."""
        inner_level = min(max(level, TAIL), 1 - TAIL)
        last = errors.size - 1
        places = last * inner_level, last * 0.5
        error, median = np.interp(places, np.arange(errors.size), np.sort(errors)).tolist()
        if inner_level == level or min(error, median) <= 0:
            return float(error)
        inner_z = STANDARD_NORMAL.inv_cdf((places[0] + 0.5) / errors.size)
        z = STANDARD_NORMAL.inv_cdf(level)
        deviation = TAIL_DEVIATION_FACTOR * math.log(error / median) / inner_z
        deviation = min(deviation, MAX_TAIL_DEVIATION)
        return min(error * math.exp(deviation * (z - inner_z)), self.max_error)

    def _draw_null(self, rng: np.random.Generator) -> list[float]:
        """Draw calibrated hits in the cells of each problem, and compute the values."""
        drawn = [problem.rows.drawn(rng) for problem in self.problems]
        return [float(Curves(rows).values(self.norm)[0]) for rows in drawn]


def posterior_of(
    samples: Sequence[Sample], norm: float, effect: float = 1.0, shares: F64 | None = None
) -> Posterior:
    """Compute the posterior of the mean error over problems.

    They are problems of the same rows, in the same order; or, with shares in the mean (K,), of rows
    of their own.
    """
    return posteriors_of(samples, norm, (0,), effect, shares)[0]


def side_posteriors(samples: Sequence[Sample], norm: float, effect: float = 1.0) -> list[Posterior]:
    """Compute the posteriors of the mean error and of its two one-sided parts.

    First the error as `posterior_of` has it, then its part where scores are above the curve, then
    its part where scores are below.
    """
    return posteriors_of(samples, norm, (0, -1, 1), effect)


class ProblemErrors(NamedTuple):
    """Errors of one problem, on each of D sides.

    Attributes
    ----------
    posterior : ProblemPosterior
    values : (D,) float64 array
        Posterior means.
    errors : (D, 4, S) float64 array
        Errors of drawn curves with four beliefs: for the errors themselves, for the low end, for
        the high end, and with the process alone.
    max_error : float
        The largest possible error.
    log_bayes_factor : float
    """

    posterior: ProblemPosterior
    values: F64
    errors: F64
    max_error: float
    log_bayes_factor: float


def posteriors_of(
    samples: Sequence[Sample], norm: float, sides: tuple[int, ...], effect: float,
    shares: F64 | None = None,
) -> list[Posterior]:  # fmt: skip
    """Compute the posteriors of the mean error, or of its parts, by side."""
    # Errors of several classes together vary less: they keep no share for sparse chains.
    low_belief = LOW_BELIEF if len(samples) == 1 else Belief(LOW_BELIEF.prior)
    beliefs = ERROR_BELIEF, low_belief, HIGH_BELIEF, PROCESS_ALONE
    errors_by_problem = [
        problem_errors(sample, curves, norm, sides, beliefs)
        for sample, curves in zip(samples, curves_of(samples, effect), strict=True)
    ]
    problems = tuple(problem.posterior for problem in errors_by_problem)
    max_errors = [problem.max_error for problem in errors_by_problem]
    max_error = float(np.average(max_errors, weights=shares))
    factors = np.array([problem.log_bayes_factor for problem in errors_by_problem])
    top = float(factors.max())
    log_bayes_factor = top + math.log(np.average(np.exp(factors - top), weights=shares))
    errors_of_problems = np.array([problem.errors for problem in errors_by_problem])
    values_of_problems = [problem.values for problem in errors_by_problem]
    errors = mean_over_problems(errors_of_problems, shares)
    widening = sampling_widening(errors[0], problems, norm, shares)
    errors = np.minimum(errors * widening, max_error)
    low_errors = None
    if len(samples) > 1:
        low_errors = errors_with_calibrated(errors_of_problems, factors, widening, shares)
    values = np.average(values_of_problems, axis=0, weights=shares).tolist()
    posteriors = []
    for d, side in enumerate(sides):
        error, low, high, process_alone = errors[d]
        end_errors = np.sort([low, high])
        if low_errors is not None:
            process_alone = np.sort(process_alone)
            end_errors[0] = np.minimum(end_errors[0], process_alone)
            end_errors[1] = np.maximum(end_errors[1], process_alone)
        wrong_rows = None
        if norm == 1 and len(samples) == 1:
            wrong_rows = count_wrong_rows(problems[0].rows, side)
        posteriors.append(
            Posterior(
                value=values[d],
                errors=error,
                log_bayes_factor=log_bayes_factor,
                problems=problems,
                max_error=max_error,
                end_errors=end_errors,
                errors_with_calibrated=None if low_errors is None else low_errors[d],
                norm=norm,
                wrong_rows=wrong_rows,
                shares=shares,
            )
        )
    return posteriors


def mean_over_problems(errors: F64, shares: F64 | None) -> F64:
    """Average errors (K, ...) over problems, with shares or equal weights."""
    if shares is None:
        return np.asarray(errors.sum(axis=0) / len(errors))
    return np.asarray(np.tensordot(shares, errors, axes=1))


def errors_with_calibrated(errors: F64, log_factors: F64, widening: F64, shares: F64 | None) -> F64:
    """Compute sorted mean errors (D, S) that are 0 for calibrated problems.

    The smaller ones with the belief of the low end and with the process alone.
    """
    is_calibrated = calibrated_draws(log_factors)[:, None, None]
    means = mean_over_problems(np.where(is_calibrated, 0.0, errors), shares)
    _, low, _, process_alone = np.moveaxis(np.sort(means * widening), 1, 0)
    return np.asarray(np.minimum(low, process_alone))


def curves_of(samples: Sequence[Sample], effect: float) -> Iterator[Curves]:
    """Yield the curves of each problem, of rows with a design effect."""
    for k, sample in enumerate(samples):
        if sample.c is None:
            (rows,) = cells_of_problems(one_problem(sample), map)
        else:
            ordered = sample.sorted()
            rows = cells_of_rows(ordered, ordered.c)
        yield Curves(rows.thinned(effect / sample.votes), k)


def problem_errors(
    sample: Sample, curves: Curves, norm: float, sides: tuple[int, ...], beliefs: tuple[Belief, ...]
) -> ProblemErrors:
    """Compute the errors of the drawn curves of one problem."""
    p = probabilities(curves.pool())
    chosen = curves.choose(*beliefs)
    errors = np.array([curves.errors(p, norm, side) for side in sides])
    widened = errors * family_widening(errors[0])
    # The error is largest where scores below one half always come true, and no others ever.
    farthest = np.where(curves.rows.cells.score < 0.5, 1.0, 0.0)
    weight = np.bincount(chosen[0], minlength=p.shape[1]) / DRAWS
    mean_gaps = MeanGaps(*curves.mean_gaps(p, weight))
    return ProblemErrors(
        posterior=ProblemPosterior(sample, curves.rows, mean_gaps),
        values=curves.values(norm, sides),
        errors=widened[:, chosen],
        max_error=float(curves.errors(farthest[:, None], norm)[0]),
        log_bayes_factor=curves.log_bayes_factor,
    )


def count_wrong_rows(rows: CellRows, side: int) -> WrongRows | None:
    """Count the rows that make the error of a side, if all scores are 0 and 1."""
    weight, hits, score = rows.cells
    if not np.isin(score, (0.0, 1.0)).all():
        return None
    gaps = np.where(score == 1, hits - weight, hits)  # observed minus expected hits
    wrong = float(np.abs(gaps[gaps * side >= 0]).sum())
    return WrongRows(wrong, rows.n - wrong)


def family_widening(errors: F64) -> F64:
    """Compute factors that widen the errors (P,) of a pool by family."""
    families = np.split(errors, np.cumsum(FAMILY_DRAWS)[:-1])
    return np.concatenate([*map(spread_factors, families, VARIANCE_FACTORS)])


def sampling_widening(
    errors: F64, problems: Sequence[ProblemPosterior], norm: float, shares: F64 | None = None
) -> F64:
    """Compute factors that widen errors (4, S) by variance that the draws leave out.

    The rows of several classes are the same: their influences add up with a variance that is not
    the sum of their variances. And scores are a sample too: for the norm 1 the error is the mean of
    the gap over all possible scores, of which the rows are only a sample. Problems with shares have
    rows of their own, whose dependence the design effect has in it.
    """
    if shares is not None:
        variance_factor = 1.0
        weights = [p.rows.cells.weight for p in problems]
        weight = np.concatenate([s * w / w.sum() for s, w in zip(shares, weights, strict=True)])
        size = np.concatenate([p.mean_gaps.size for p in problems])
    elif len(problems) == 1:
        variance_factor = 1.0
        weight = problems[0].rows.cells.weight
        size = problems[0].mean_gaps.size
    else:
        sample = problems[0].sample
        weight = sample.total_weights
        variance_factor = shared_variance([problem.influence for problem in problems], weight)
        size = np.sum([p.mean_gaps.size[p.rows.find_cells(p.sample)] for p in problems], axis=0)
    share = weight / weight.sum()
    mean = (share * size).sum()
    deviation = 0.0  # of the mean over the scores, relative to it
    if mean > 0 and not math.isinf(norm):
        n = problems[-1].rows.n
        if shares is not None:
            n = 1 / float((shares**2 / [problem.rows.n for problem in problems]).sum())
        deviation = math.sqrt((share * (size - mean) ** 2).sum() / n) / mean
    return spread_factors(errors, variance_factor) * np.exp(deviation * draw_order())


def shared_variance(influences: Sequence[F64], weight: F64) -> float:
    """Compute the ratio of the variance of a sum to the sum of the variances."""
    apart = sum((weight * influence**2).sum() for influence in influences)
    together = (weight * np.sum(influences, axis=0) ** 2).sum()
    return float(together / apart) if apart > 0 else 1.0


def spread_factors(errors: F64, variance_factor: float) -> F64:
    """Compute factors (..., S) that multiply the variance of log errors."""
    log_errors = np.log(np.maximum(errors, MIN_ERROR))
    median = np.sort(log_errors, axis=-1)[..., log_errors.shape[-1] // 2, None]
    return np.asarray(np.exp((math.sqrt(variance_factor) - 1) * (log_errors - median)))
