"""The error of a Bayesian calibration curve, its posterior, and intervals from it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError
from fastece.checks.parameters import check_real
from fastece.data.reading import Map
from fastece.data.sample import Sample, scale_weights
from fastece.data.source import Problems
from fastece.estimators.base import Estimator
from fastece.estimators.bayes_curves import (
    CellRows,
    Curves,
    cells_of_problems,
    cells_of_rows,
    draw_order,
    sample_cells,
)
from fastece.typing import F64

# The variance of log errors is taken so many times as large: cells, Laplace's approximation and
# fixed hyperpriors leave something out.
WIDER = 1.15
# Beyond the last two of 128 draws on either side, errors follow a log-normal law, whose deviation
# is 1.3 times that between the median and those two: with 1, intervals of 20 groups of 1000 rows do
# not all hold in 7.0 % of samples, where 5 % may be. At most 1, as some draws may be 0.
TAIL, HEAVIER, STEEPEST = 1 / 64, 1.3, 1.0


class RowEffects(NamedTuple):
    """Effects of each row (n,) on the error, in the order of the rows.

    `influence` is how a row pulls at the error, `size` the mean size of the gap at its score.
    """

    influence: F64
    size: F64


@dataclass(frozen=True, eq=False)
class ProblemPosterior:
    """The posterior of one problem.

    Attributes
    ----------
    sample : Sample
    rows : CellRows
    means : (3, C) float64 array
        Of drawn curves: of the gap in each cell, of its size and of its sign.
    """

    sample: Sample
    rows: CellRows
    means: F64

    @cached_property
    def row_effects(self) -> RowEffects:
        """Effects of each row on the error, from its cell."""
        gap, size, sign = self.means
        cell = self.rows.cell_of(self.sample)
        chance = (self.rows.cells.score + gap)[cell]
        return RowEffects(sign[cell] * (self.sample.y - chance), size[cell])


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
    log_bayes_factor : float
        Log of how much likelier the hits are under some curve than under ``c = s``; class by class
        of the mean of these factors.
    parts : tuple
        The problems, which `influence` comes from.
    most : float
        The largest possible error.
    """

    value: float
    errors: F64
    log_bayes_factor: float
    parts: tuple[ProblemPosterior, ...] = field(repr=False)
    most: float = 1.0

    @cached_property
    def influence(self) -> F64:
        """Influence (n,) of each row on the error, in the order of the rows.

        It is the sum over problems of ``E sign(c - s) (y - E c)``.
        """
        return np.asarray(np.sum([part.row_effects.influence for part in self.parts], axis=0))

    def interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Compute the ends of the interval at a level.

        The interval of a higher level is never narrower.

        With alpha = 1 - level it is from 0 to the quantile 1 - alpha of the errors, unless the
        Bayes factor exceeds 1 / alpha, which it does in a share of alpha of calibrated samples at
        most; then between the quantiles alpha / 2 and 1 - alpha / 2.
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
        high = self.quantile(1 - above)
        low = self.quantile(below) if below else 0.0
        return min(low, self.value), max(high, self.value)

    def quantile(self, level: float) -> float:
        """Compute a quantile of the errors, extrapolated beyond the extreme draws."""
        known = min(max(level, TAIL), 1 - TAIL)
        error, middle = (float(x) for x in np.quantile(self.errors, [known, 0.5]))
        if known == level or min(error, middle) <= 0:
            return error
        place = (known * (self.errors.size - 1) + 0.5) / self.errors.size  # of numpy's quantile
        z, z_known = (NormalDist().inv_cdf(p) for p in (level, place))
        deviation = min(HEAVIER * math.log(error / middle) / z_known, STEEPEST)
        return min(error * math.exp(deviation * (z - z_known)), self.most)


def curves_of(samples: Sequence[Sample]) -> Iterator[Curves]:
    """Yield the curves of each problem."""
    for k, sample in enumerate(samples):
        yield Curves(sample_cells(sample), k)


def posterior_of(samples: Sequence[Sample], norm: float) -> Posterior:
    """Compute the posterior of the mean error over some problems.

    The problems have the same rows, in the same order.
    """
    values, errors, limits, factors, parts = [], [], [], [], []
    for sample, curves in zip(samples, curves_of(samples), strict=True):
        values.append(curves.errors(curves.probabilities(curves.value_draws()), norm).mean())
        p = curves.probabilities(curves.interval_draws())
        errors.append(curves.errors(p, norm))
        limits.append(curves.largest_error(norm))
        factors.append(curves.log_bayes_factor)
        parts.append(ProblemPosterior(sample, curves.rows, curves.means(p)))
    top, most, n = max(factors), float(np.mean(limits)), curves.rows.n
    return Posterior(
        value=float(np.mean(values)),
        errors=np.minimum(widened(np.mean(errors, axis=0), parts, n, norm), most),
        log_bayes_factor=top + math.log(np.mean(np.exp(np.array(factors) - top))),
        parts=tuple(parts),
        most=most,
    )


def side_posteriors(samples: Sequence[Sample], norm: float) -> tuple[Posterior, ...]:
    """Compute the posteriors of the mean error and of its two one-sided parts.

    First the error as `posterior_of` has it, then the part of it of scores above the curve, then
    the part of scores below.
    """
    whole, values, errors = posterior_of(samples, norm), [], []
    for curves in curves_of(samples):
        drawn = [curves.value_draws(), curves.interval_draws()]
        found = [
            [curves.errors(p, norm, side) for side in (0, -1, 1)]
            for p in map(curves.probabilities, drawn)
        ]
        values.append(np.mean(found[0], axis=1))
        errors.append(found[1])
    value, error = np.mean(values, axis=0), np.mean(errors, axis=0)
    # What widens the error of a draw widens its parts.
    error *= np.divide(whole.errors, error[0], out=np.ones_like(error[0]), where=error[0] > 0)
    sides = [replace(whole, value=float(value[i]), errors=error[i]) for i in (1, 2)]
    return whole, *sides


def widened(errors: F64, parts: Sequence[ProblemPosterior], count: float, norm: float) -> F64:
    """Widen errors (S,) about their median for variance that the draws leave out.

    They are spread on the log scale.

    The rows of several classes are the same: their influences add up with a variance that is not
    the sum of theirs. And scores are a sample too: for the norm 1 the error is the mean of the gap
    over all scores there are, of which this many were seen.
    """
    variance, size, w = WIDER, parts[0].means[1], parts[0].rows.cells.weight
    if len(parts) > 1:
        v = parts[0].sample.v
        w = np.ones(parts[0].sample.n) if v is None else v
        row_effects = [part.row_effects for part in parts]
        apart = sum((w * row.influence**2).sum() for row in row_effects)
        together = (w * np.sum([row.influence for row in row_effects], axis=0) ** 2).sum()
        variance *= together / apart if apart > 0 else 1.0
        size = np.sum([row.size for row in row_effects], axis=0)
    w = w / w.sum()
    mean = (w * size).sum()
    by_scores = 0.0
    if mean > 0 and not math.isinf(norm):
        by_scores = math.sqrt((w * (size - mean) ** 2).sum() / count) / mean
    errors = np.maximum(errors, np.finfo(float).tiny)
    middle = float(np.median(errors))
    spread = math.sqrt(variance) * np.log(errors / middle) + by_scores * draw_order()
    return np.asarray(middle * np.exp(spread))


# A score has rows to speak of where there is one no further away.
REACH = 0.025


@dataclass(frozen=True)
class BayesCurve(Estimator):
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
    0.086
    >>> print(BayesCurve(norm=2))
    BayesCurve(norm=2.0)
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check_real("norm", self.norm, 1.0))

    def __str__(self) -> str:
        return "BayesCurve()" if self.norm == 1 else f"BayesCurve(norm={self.norm!r})"

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sorted sample: the cells depend on the draw."""
        return scale_weights(sample)[0]

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return self.value(cells_of_rows(plan, c))

    def direct(self, problems: Problems, run: Map = map) -> F64:
        """Compute the value of each problem, every row counting once.

        Many rows are not sorted.
        """
        return np.array(list(run(self.value, cells_of_problems(problems, run))))

    def value(self, rows: CellRows) -> float:
        """Compute the posterior mean of the error from rows in cells."""
        curves = Curves(rows)
        return float(curves.errors(curves.probabilities(curves.value_draws()), self.norm).mean())

    def posterior(self, samples: Sequence[Sample]) -> Posterior:
        """Compute the posterior of the mean error over some problems.

        Parameters
        ----------
        samples : sequence of Sample
            One problem, or one for each class; of the same rows, in the same order.

        Returns
        -------
        Posterior
        """
        return posterior_of([scale_weights(sample)[0] for sample in samples], self.norm)

    def curve(self, sample: Sample, score: F64, confidence_level: float) -> tuple[F64, F64, F64]:
        """Compute the probability of a hit, with intervals, at some scores.

        The values are the posterior mean, and the ends of the interval at each score by itself.

        Where no row is within 0.025 of a score, nothing is known of it: all three are nan.

        Parameters
        ----------
        sample : Sample
        score : (G,) float64 array
            In [0, 1].
        confidence_level : float

        Returns
        -------
        three (G,) float64 arrays
        """
        p, tail = self._draws(sample, score), (1 - confidence_level) / 2
        low, high = np.quantile(p, [tail, 1 - tail], axis=1)
        return p.mean(axis=1), low, high

    def mean_curve(self, sample: Sample, score: F64) -> F64:
        """Compute the posterior mean (G,) of `curve` alone, in a third of the time."""
        return np.asarray(self._draws(sample, score).mean(axis=1))

    def _draws(self, sample: Sample, score: F64) -> F64:
        """Draw the curve (G, 128) at some scores; nan where no row is near."""
        ordered = scale_weights(sample)[0].sorted()
        p = Curves(cells_of_rows(ordered, ordered.c)).at(score)
        p[rows_near(ordered, score) == 0] = np.nan
        return p


def rows_near(ordered: Sample, score: F64) -> F64:
    """Count the rows (G,) of a sorted sample within 0.025 of each score."""
    first = np.searchsorted(ordered.s, score - REACH, "left")
    last = np.searchsorted(ordered.s, score + REACH, "right")
    below = np.append(0.0, np.cumsum(ordered.counts, dtype=np.float64))
    return np.asarray(below[last] - below[first])
