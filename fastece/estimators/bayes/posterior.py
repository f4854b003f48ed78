"""The posterior of the calibration error of a problem, or of a mean over classes.

::

    curves -> errors     of the pool of drawn curves, widened by family
           -> ends       errors that are chosen with the belief of each end of the interval
           -> mean       over classes, widened by the sampling of scores and rows
           -> interval   quantiles of the errors of each end
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import one_problem
from fastece.estimators.bayes.cells import CellRows, cells_of_problems, cells_of_rows
from fastece.estimators.bayes.curves import (
    ERROR_BELIEF,
    HIGH_BELIEF,
    LOW_BELIEF,
    PROCESS_ALONE,
    Belief,
    Curves,
    probabilities,
)
from fastece.estimators.bayes.process import DRAWS, SEED
from fastece.estimators.bayes.widening import (
    calibrated_draws,
    family_widening,
    sampling_deviation,
    sampling_widening,
    shared_variance,
)
from fastece.estimators.binomial import binomial_ends
from fastece.kernels import CHUNK_SCORES
from fastece.kernels.types import F64

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
STANDARD_NORMAL = NormalDist()
# Smaller gaps count as a part of a sign, in proportion: rounding makes gaps of 1e-15 in calibrated
# pieces.
GAP_WITH_SIGN = 1e-6

# The interval of a difference is made from two intervals, so that whatever is too wide in each adds
# up. A difference reaches its end only if both errors reach theirs, so its low ends may lie further
# in; and its high ends lie further out, as an error that the rows cannot see, of a rough curve,
# widens the interval of the other model little. The constants were chosen among 50 sets on 45 pairs
# of models with 300, 1000 and 3000 rows, 240 samples of each;
# ``scripts/evidence/compare_coverage.py`` repeats the measurement on other samples.
#
# Ends are moved by amounts that depend on the evidence against calibration, the log of the Bayes
# factor. Between two values of the evidence an amount changes in proportion.
HIGH_EVIDENCE = (-2.0, 1.0)
# The high end is moved out by these standard normal units. With 0 the lowest coverage of a pair
# is 77 %, and not 87 %, at a mean width of 1.46 and not 1.58 times the basic interval.
HIGH_SHIFTS = (0.1, 0.3)
LOW_EVIDENCE = (1.0, 10.0)
# The low end is moved in by these standard normal units. With 0 the mean width is 1.78 times the
# basic interval, and the mean coverage 98.3 %, not 96.9 %.
LOW_SHIFTS = (1.3, 0.5)
# The low end is 0 up to this alpha times the Bayes factor. `estimate` has 1: there a Bayes factor
# of 20 is needed at 95 %, here one of 3. With 1 the mean width is 1.68 times the basic interval.
MAX_ALPHA_OF_ZERO = 0.15


class Problem(NamedTuple):
    """One problem of a posterior, with errors of drawn curves on D sides.

    Attributes
    ----------
    sample : Sample
    rows : CellRows
    mean_gaps : (3, C) float64 array
        Means over drawn curves of the gap ``c - s`` in each cell, of its size and of its sign.
    values : (D,) float64 array
        Posterior means.
    errors : (D, 4, S) float64 array
        Errors of drawn curves with four beliefs: for the errors themselves, for the low end, for
        the high end, and with the process alone.
    max_error : float
        The largest possible error.
    log_bayes_factor : float
    """

    sample: Sample
    rows: CellRows
    mean_gaps: F64
    values: F64
    errors: F64
    max_error: float
    log_bayes_factor: float

    def influence(self) -> F64:
        """Compute the influence (n,) of each row on the error, by its cell."""
        gap, _, sign = self.mean_gaps
        chance = self.rows.cells[2] + gap
        influence = np.empty(self.sample.n)
        rows_at_once = CHUNK_SCORES if self.rows.cell_of_fine_cell.size else self.sample.n
        begin = 0
        for part in self.sample.parts(rows_at_once):
            cell = self.rows.find_cells(part)
            influence[begin : begin + part.n] = sign[cell] * (part.y - chance[cell])
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
    low_errors, high_errors : (S,) float64 arrays
        The errors under the priors of the low end and of the high end, in increasing order. In the
        draws of a low end of a mean some problems are calibrated.
    low_errors_compared : (S,) float64 array
        Those of the low end for a comparison, where no problem of a mean is calibrated.
    log_bayes_factor : float
        Log of how much likelier the hits are under some curve than under ``c = s``; of several
        classes the log of the mean of their factors.
    problems : tuple of Problem
        The problems, from which `influence` is computed.
    max_error : float
        The largest possible error.
    norm : float
        Norm of the gaps.
    wrong_rows : (float, float) or None
        Where all scores are 0 and 1, the numbers of rows that make the error, and of others.
    shares : (K,) float64 array or None
        Weights of problems with rows of their own; None for equal ones.
    """

    value: float
    errors: F64
    low_errors: F64
    high_errors: F64
    low_errors_compared: F64
    log_bayes_factor: float
    problems: tuple[Problem, ...] = field(repr=False)
    max_error: float = 1.0
    norm: float = 1.0
    wrong_rows: tuple[float, float] | None = None
    shares: F64 | None = None

    @cached_property
    def null(self) -> F64:
        """Values (S,) of drawn calibrated models with the same cells."""
        rng = np.random.default_rng(SEED)
        count = max(MAX_FLOOR_FITS // len(self.problems), MIN_FLOOR_VALUES)
        values = [self._draw_null(rng) for _ in range(min(count, FLOOR_VALUES))]
        return np.asarray(np.average(values, axis=1, weights=self.shares))

    def _draw_null(self, rng: np.random.Generator) -> list[float]:
        """Draw calibrated hits in the cells of each problem, and compute the values."""
        drawn = [problem.rows.drawn(rng) for problem in self.problems]
        return [float(Curves(rows).values(self.norm)[0]) for rows in drawn]

    @cached_property
    def influence(self) -> F64:
        """Influence (n,) of each row on the error, in the order of the rows.

        It is the sum over problems of ``E sign(c - s) (y - E c)``.
        """
        return reduce(np.add, (problem.influence() for problem in self.problems))

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
        low = self.quantile(self.low_errors, below) if below else 0.0
        high = self.quantile(self.high_errors, 1 - above)
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
        low_shift, high_shift, max_alpha_of_zero = self._end_shifts
        alpha = 1 - confidence_level
        z = STANDARD_NORMAL.inv_cdf(1 - alpha / 2)
        high = self.quantile(self.high_errors, STANDARD_NORMAL.cdf(z + high_shift))
        low = 0.0
        if alpha > max_alpha_of_zero:
            low = self.quantile(self.low_errors_compared, STANDARD_NORMAL.cdf(low_shift - z))
        return min(low, self.value), max(high, self.value)

    @cached_property
    def _end_shifts(self) -> tuple[float, float, float]:
        """How far the ends move for a comparison, by the evidence against calibration.

        Standard normal units by which the low end is moved in, and the high end out; and the alpha
        up to which the low end is 0.
        """
        evidence = self.log_bayes_factor
        return (
            float(np.interp(evidence, LOW_EVIDENCE, LOW_SHIFTS)),
            float(np.interp(evidence, HIGH_EVIDENCE, HIGH_SHIFTS)),
            MAX_ALPHA_OF_ZERO * math.exp(-max(evidence, math.log(MAX_ALPHA_OF_ZERO))),
        )

    def quantile(self, errors: F64, level: float) -> float:
        """Compute a quantile of increasing errors, extrapolated beyond the extreme draws."""
        inner_level = min(max(level, TAIL), 1 - TAIL)
        last = errors.size - 1
        error = interpolate(errors, last * inner_level)
        median = interpolate(errors, last * 0.5)
        if inner_level == level or min(error, median) <= 0:
            return error
        inner_z = STANDARD_NORMAL.inv_cdf((last * inner_level + 0.5) / errors.size)
        z = STANDARD_NORMAL.inv_cdf(level)
        deviation = TAIL_DEVIATION_FACTOR * math.log(error / median) / inner_z
        deviation = min(deviation, MAX_TAIL_DEVIATION)
        return min(error * math.exp(deviation * (z - inner_z)), self.max_error)


def interpolate(numbers: F64, place: float) -> float:
    """Interpolate numbers (S,) at a place from 0 to S - 1; `numpy.interp` takes 3 us."""
    below = int(place)
    above = min(below + 1, numbers.size - 1)
    number = float(numbers[below])
    return number + (place - below) * (float(numbers[above]) - number)


# --- from samples to posteriors -------------------------------------------------------------


def posteriors_of(
    samples: Sequence[Sample], norm: float, sides: tuple[int, ...], effect: float,
    shares: F64 | None = None,
) -> list[Posterior]:  # fmt: skip
    """Compute the posteriors of a mean error, or of its parts, by side.

    They are problems of the same rows, in the same order; or, with shares in the mean (K,), of rows
    of their own.
    """
    # Errors of several classes together vary less: they keep no share for sparse chains.
    is_one = len(samples) == 1
    low_belief = LOW_BELIEF if is_one else Belief(LOW_BELIEF.prior)
    beliefs = ERROR_BELIEF, low_belief, HIGH_BELIEF, PROCESS_ALONE
    problems = tuple(
        fit_problem(k, sample, norm, sides, effect, beliefs) for k, sample in enumerate(samples)
    )
    max_error = float(np.average([problem.max_error for problem in problems], weights=shares))
    factors = np.array([problem.log_bayes_factor for problem in problems])
    top = float(factors.max())
    log_bayes_factor = top + math.log(np.average(np.exp(factors - top), weights=shares))
    values = np.average([problem.values for problem in problems], axis=0, weights=shares).tolist()
    errors_of_problems = np.array([problem.errors for problem in problems])
    errors = mean_over_problems(errors_of_problems, shares)
    widening = mean_widening(errors[0], problems, norm, shares)
    errors = np.minimum(errors * widening, max_error)
    _, low, high, process_alone = np.moveaxis(np.sort(errors), 1, 0)
    low_compared = low
    if not is_one:
        low_compared = np.minimum(low, process_alone)
        high = np.maximum(high, process_alone)
        is_calibrated = calibrated_draws(factors)[:, None, None]
        rarer = mean_over_problems(np.where(is_calibrated, 0.0, errors_of_problems), shares)
        _, low, _, process_alone = np.moveaxis(np.sort(rarer * widening), 1, 0)
        low = np.minimum(low, process_alone)
    return [
        Posterior(
            value=values[d],
            errors=errors[d, 0],
            low_errors=low[d],
            high_errors=high[d],
            low_errors_compared=low_compared[d],
            log_bayes_factor=log_bayes_factor,
            problems=problems,
            max_error=max_error,
            norm=norm,
            wrong_rows=count_wrong_rows(problems[0].rows, side) if norm == 1 and is_one else None,
            shares=shares,
        )
        for d, side in enumerate(sides)
    ]


def fit_problem(
    k: int, sample: Sample, norm: float, sides: tuple[int, ...], effect: float,
    beliefs: tuple[Belief, ...],
) -> Problem:  # fmt: skip
    """Fit the curves of problem k, and compute the errors of drawn ones."""
    sample, _ = scale_weights(sample)
    if sample.c is None:
        (rows,) = cells_of_problems(one_problem(sample), map)
    else:
        ordered = sample.sorted()
        rows = cells_of_rows(ordered, ordered.c)
    curves = Curves(rows.thinned(effect / sample.votes), k)
    p = probabilities(curves.pool())
    chosen = curves.choose(*beliefs)
    errors = np.array([curves.errors(p, norm, side) for side in sides])
    widened = errors * family_widening(errors[0])
    score = curves.rows.cells[2]
    # The error is largest where scores below one half always come true, and no others ever.
    farthest = np.where(score < 0.5, 1.0, 0.0)
    share_of_curve = np.bincount(chosen[0], minlength=p.shape[1]) / DRAWS
    return Problem(
        sample=sample,
        rows=curves.rows,
        mean_gaps=mean_gaps(p - score[:, None], share_of_curve),
        values=curves.values(norm, sides),
        errors=widened[:, chosen],
        max_error=float(curves.errors(farthest[:, None], norm)[0]),
        log_bayes_factor=curves.log_bayes_factor,
    )


def mean_gaps(gap: F64, share: F64) -> F64:
    """Average gaps (C, S), their sizes and their signs over curves: (3, C).

    Curves have shares (S,). Curves in pieces are calibrated in some cells: there the gap is
    rounding, and its sign counts as 0.
    """
    sign = np.clip(gap / GAP_WITH_SIGN, -1.0, 1.0)
    return np.array([(part * share).sum(axis=1) for part in (gap, np.abs(gap), sign)])


def mean_over_problems(errors: F64, shares: F64 | None) -> F64:
    """Average errors (K, ...) over problems, with shares or equal weights."""
    if shares is None:
        return np.asarray(errors.sum(axis=0) / len(errors))
    return np.asarray(np.tensordot(shares, errors, axes=1))


def mean_widening(errors: F64, problems: Sequence[Problem], norm: float, shares: F64 | None) -> F64:
    """Compute factors (4, S) that widen the mean errors (4, S) of problems.

    The rows of several classes are the same. Problems with shares have rows of their own, whose
    dependence the design effect has in it.
    """
    variance_factor = 1.0
    n = problems[-1].rows.n
    weights = [problem.rows.cells[0] for problem in problems]
    sizes = [problem.mean_gaps[1] for problem in problems]
    if shares is not None:
        parts = zip(shares, weights, strict=True)
        weight = np.concatenate([share * w / w.sum() for share, w in parts])
        size = np.concatenate(sizes)
        n = 1 / float((shares**2 / [problem.rows.n for problem in problems]).sum())
    elif len(problems) == 1:
        weight = weights[0]
        size = sizes[0]
    else:
        weight = problems[0].sample.total_weights
        variance_factor = shared_variance([problem.influence() for problem in problems], weight)
        size = np.sum([p.mean_gaps[1][p.rows.find_cells(p.sample)] for p in problems], axis=0)
    deviation = 0.0 if math.isinf(norm) else sampling_deviation(size, weight, n)
    return sampling_widening(errors, variance_factor, deviation)


def count_wrong_rows(rows: CellRows, side: int) -> tuple[float, float] | None:
    """Count rows that make the error of a side, and others, for scores 0 and 1."""
    weight, hits, score = rows.cells
    if not np.isin(score, (0.0, 1.0)).all():
        return None
    gaps = np.where(score == 1, hits - weight, hits)  # observed minus expected hits
    wrong = float(np.abs(gaps[gaps * side >= 0]).sum())
    return wrong, rows.n - wrong
