"""Statistics for validating a risk model: rates, recalibration, discrimination."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_real
from fastece.data.samples import Sample, scale_weights
from fastece.estimators.base import Parameters
from fastece.estimators.bayes.cells import cells_of_rows
from fastece.estimators.bayes.curves import Curves
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.losses import Mean, SumPlan
from fastece.kernels.types import F64, I32, U8

# Newton's method stops where a step promises to raise the likelihood by less than this part of it.
PRECISION = 1e-13
# Steps of Newton's method, and halvings of a step.
MAX_STEPS = 100
# A step of Newton's method changes no logit by more: further off, probabilities are 0 or 1 up to
# rounding, and the curvature of the likelihood says nothing about where it is largest.
MAX_CHANGE_OF_LOGIT = 20.0
# A longer step is divided by a curvature that is no more than a rounding error.
LARGEST_STEP = 1e100
# A step is halved until it raises the likelihood by this part of what its slope promises (Armijo).
PART_OF_RISE = 1e-4
# Logits that differ by a smaller part of the largest one are equal up to rounding: the slope, which
# is not worth a digit there, would be one of rounding errors.
MIN_SPREAD_OF_LOGITS = 1e-5
# Scores at which curves are evaluated: every one of fewer rows, or quantiles.
CURVE_SCORES = 2049


class RiskRows(NamedTuple):
    """Rows of a sample as they count: none has the weight 0.

    Attributes
    ----------
    s, y : (n,) float64 array
        Scores and outcomes.
    w : (n,) float64 array
        Weight of all copies of each row.
    n : float
        How many rows they stand for.
    c : (n,) float64 array
        How often each row counts.
    ranking : (n,) float64 array
        Numbers in the order of the scores, which rounding may hide.
    chosen_clip : float or None
        The caller's `clip`.
    """

    s: F64
    y: F64
    w: F64
    n: float
    c: F64
    ranking: F64
    chosen_clip: float | None = None

    @property
    def squares(self) -> F64:
        """Sum (n,) of the squared weights of the copies of each row."""
        return self.w * self.w / self.c

    @property
    def is_mixed(self) -> bool:
        """Whether there are both events and rows without one."""
        return bool(self.y.min() < self.y.max())

    @property
    def are_constant(self) -> bool:
        """Return whether the logits of all scores differ by rounding alone."""
        logit = self.logit
        largest = max(float(np.abs(logit).max()), 1.0)
        return bool(np.ptp(logit) <= MIN_SPREAD_OF_LOGITS * largest)

    @property
    def clip(self) -> float:
        """The probability that stands for a score of 0; its complement stands for 1."""
        return 1 / (2 * self.n + 2) if self.chosen_clip is None else self.chosen_clip

    @property
    def is_certain(self) -> NDArray[np.bool_]:
        """Whether each score (n,) is 0 or 1."""
        return (self.s <= 0) | (self.s >= 1)

    @property
    def logit(self) -> F64:
        """Logits of the scores; a chosen clip cuts all of them, the other one 0 and 1."""
        if self.chosen_clip is None:
            return self.logit_of_clip(self.clip)
        s = self.s.clip(self.chosen_clip, 1 - self.chosen_clip)
        return np.asarray(np.log(s) - np.log1p(-s))

    def logit_of_clip(self, low: float) -> F64:
        """Compute logits of the scores, where a small probability stands for 0."""
        high = 1 - low
        scores_with_logit = self.s[(self.s > 0) & (self.s < 1)]
        if scores_with_logit.size:  # these are not moved, and the order of all scores stays
            low = min(low, scores_with_logit.min())
            high = max(high, scores_with_logit.max())
        s = self.s.clip(low, high)
        return np.asarray(np.log(s) - np.log1p(-s))


def rows_of(sample: Sample, c: NDArray[Any] | None = None) -> RiskRows:
    """Return the rows of a sample that count, row i ``c[i]`` times."""
    c = np.asarray(sample.counts if c is None else c, np.float64)
    w = c if sample.v is None else c * sample.v
    n = float(c.sum())
    counts = w > 0
    if not counts.all():
        sample = sample.where(counts)
        w = w[counts]
        c = c[counts]
    # Millions of rows are not copied where all of them count.
    return RiskRows(sample.s, sample.y.astype(np.float64), w, n, c, sample.ranking)


# --- logistic recalibration -----------------------------------------------------------------


class Logistic(NamedTuple):
    """A logistic regression of outcomes on some columns (n, k), with an offset.

    A row with counts has the total weight w of its copies, and their squared weights add up to
    `squares`.
    """

    x: F64
    offset: F64
    y: F64
    w: F64
    squares: F64

    def log_likelihood(self, beta: F64) -> float:
        """Compute the weighted log likelihood at some coefficients."""
        # In place, as validations of millions of rows hold a dozen such arrays.
        eta = self.logits(beta)
        terms = self.y * eta
        terms -= np.logaddexp(0.0, eta, out=eta)
        return float(self.w @ terms)

    def logits(self, beta: F64) -> F64:
        """Compute the logits (n,) at some coefficients."""
        eta = np.asarray(self.x @ beta)
        eta += self.offset
        return eta

    def score(self, beta: F64) -> F64:
        """Compute the derivative (k,) of the log likelihood."""
        return np.asarray(self.x.T @ (self.w * self.residuals(beta)))

    def residuals(self, beta: F64) -> F64:
        """Compute outcomes minus probabilities (n,) at some coefficients."""
        from scipy.special import expit

        p = self.logits(beta)
        expit(p, out=p)
        return np.subtract(self.y, p, out=p)

    def information(self, beta: F64) -> F64:
        """Compute the Fisher information (k, k)."""
        return self._products(beta, self.w)

    def variance_of_scores(self, beta: F64) -> F64:
        """Compute the variance (k, k) of the weighted scores of independent rows."""
        return self._products(beta, self.squares)

    def _products(self, beta: F64, weights: F64) -> F64:
        """Sum ``weights p (1 - p)`` times products of the columns (k, k)."""
        return np.asarray((self.x.T * self._variances(beta, weights)) @ self.x)

    def _variances(self, beta: F64, weights: F64) -> F64:
        """Compute ``weights p (1 - p)`` (n,), also where p is 1 up to rounding."""
        odds = self.logits(beta)
        np.abs(odds, out=odds)
        np.negative(odds, out=odds)
        np.exp(odds, out=odds)
        divisor = 1 + odds
        odds /= divisor
        odds /= divisor
        odds *= weights
        return odds

    def fit(self) -> tuple[F64, float]:
        """Maximise the likelihood by Newton's method, and return where it is largest.

        The likelihood is concave, so that short enough steps always reach its maximum.
        """
        beta = self.flattest()
        value = self.log_likelihood(beta)
        for _ in range(MAX_STEPS if beta.size else 0):
            score = self.score(beta)
            step = self.newton_step(beta, score)
            rise = float(score @ step)
            if rise <= PRECISION * abs(value):
                beta = beta + step
                return beta, self.log_likelihood(beta)
            beta, value = self.step_up(beta, step, value, rise)
        return beta, value

    def newton_step(self, beta: F64, score: F64) -> F64:
        """Return the step (k,) of Newton's method, or a part of it that is not too long."""
        step = np.asarray(np.linalg.lstsq(self.information(beta), score, rcond=None)[0])
        if not 0 < np.abs(step).max() < LARGEST_STEP:
            # All probabilities are 0 or 1 up to rounding: there is a slope, and no curvature.
            step = score
        largest_change = np.abs(self.x @ step).max()
        if largest_change > MAX_CHANGE_OF_LOGIT:
            step = step * (MAX_CHANGE_OF_LOGIT / largest_change)
        return step

    def flattest(self) -> F64:
        """Return the coefficients (k,) whose logits are nearest to the event rate's."""
        events = self.w @ self.y
        others = self.w @ (1 - self.y)
        distance = math.log(events) - math.log(others) - self.offset
        products = (self.x.T * self.w) @ self.x
        return np.asarray(np.linalg.lstsq(products, self.x.T @ (self.w * distance), rcond=None)[0])

    def step_up(self, beta: F64, step: F64, value: float, rise: float) -> tuple[F64, float]:
        """Go a step, or so short a part of it that the likelihood rises."""
        for halvings in range(MAX_STEPS):
            part = 0.5**halvings
            new_beta = beta + part * step
            new_value = self.log_likelihood(new_beta)
            if new_value >= value + PART_OF_RISE * part * rise:
                return new_beta, new_value
        return beta, value

    def profile(self, j: int, value: float) -> float:
        """Maximise the likelihood with coefficient j at a value."""
        other_columns = np.delete(self.x, j, axis=1)
        offset = self.offset + value * self.x[:, j]
        return self._replace(x=other_columns, offset=offset).fit()[1]


def intercept_model(rows: RiskRows) -> Logistic:
    """Make the regression with an intercept alone, and the logit as offset."""
    return Logistic(np.ones((rows.s.size, 1)), rows.logit, rows.y, rows.w, rows.squares)


def slope_model(rows: RiskRows, clip: float | None = None) -> Logistic:
    """Make the regression with an intercept and a slope of the logit."""
    logit = rows.logit if clip is None else rows.logit_of_clip(clip)
    columns = np.column_stack([np.ones(rows.s.size), logit])
    no_offset = np.broadcast_to(0.0, rows.s.size)
    return Logistic(columns, no_offset, rows.y, rows.w, rows.squares)


def intercept(rows: RiskRows) -> float:
    """Compute the calibration intercept; infinite if all outcomes are the same."""
    if not rows.is_mixed:
        return math.inf if rows.y[0] else -math.inf
    return float(intercept_model(rows).fit()[0][0])


def slope(rows: RiskRows) -> float:
    """Compute the calibration slope; infinite if a threshold separates the outcomes.

    It is nan where all outcomes or all scores are the same, or nearly so.
    """
    if not rows.is_mixed or rows.s.min() == rows.s.max():
        return math.nan
    events = rows.s[rows.y == 1]
    others = rows.s[rows.y == 0]
    if events.min() >= others.max():
        return math.inf
    if events.max() <= others.min():
        return -math.inf
    if rows.are_constant:
        return math.nan
    return float(slope_model(rows).fit()[0][1])


# --- the other statistics -------------------------------------------------------------------


def observed_over_expected(rows: RiskRows) -> float:
    """Compute the ratio of observed and predicted events."""
    observed = float(rows.w @ rows.y)
    expected = float(rows.w @ rows.s)
    if expected == 0:
        return math.inf if observed else math.nan
    return observed / expected


def placements(rows: RiskRows) -> F64:
    """Compute the share (n,) of rows with the other outcome on the right side."""
    scores, place = np.unique(rows.ranking, return_inverse=True)
    n_scores = scores.size
    out = np.empty(rows.s.size)
    for outcome in (0, 1):
        weights = np.where(rows.y == outcome, rows.w, 0.0)
        w = np.asarray(np.bincount(place, weights, n_scores), np.float64)
        total = w.sum()
        # The weight below each score, with half of the weight at it.
        share: F64 = np.cumsum(w)
        w /= 2
        share -= w
        share /= total
        if outcome == 1:
            np.subtract(1, share, out=share)
        other = rows.y != outcome
        out[other] = share[place[other]]
    return out


def c_statistic(rows: RiskRows) -> float:
    """Compute the C statistic, the area under the ROC curve; nan of one outcome alone."""
    if not rows.is_mixed:
        return math.nan
    w = rows.w * rows.y
    return float(w @ placements(rows) / w.sum())


def scaled_brier(rows: RiskRows) -> float:
    """Compute 1 minus the ratio of the Brier score to that of the observed rate."""
    if not rows.is_mixed:
        return math.nan
    rate = float(np.average(rows.y, weights=rows.w))
    return 1 - float(np.average((rows.y - rows.s) ** 2, weights=rows.w)) / (rate * (1 - rate))


def curve_probabilities(ordered: Sample, curves: Curves) -> tuple[F64, F64]:
    """Compute scores (G,), and probabilities (G, S) of drawn curves there."""
    score = np.unique(ordered.quantiles(np.linspace(0, 1, CURVE_SCORES)))
    return score, curves.at(score)


def distance_quantiles(distance: F64, weight: F64) -> F64:
    """Compute E50, E90 and Emax (3,) of distances (C,) in cells with weights."""
    order = np.argsort(distance)
    order = order[weight[order] > 0]  # empty cells have no rows to be far from
    total = np.cumsum(weight[order])
    # Sums are rounded, and a share of exactly one half has to be reached.
    place = np.searchsorted(total, np.array([0.5, 0.9]) * total[-1] * (1 - 1e-12))
    return np.asarray(distance[order[np.append(place, -1)]])


BY_ROWS: dict[str, Callable[[RiskRows], float]] = {
    "oe": observed_over_expected, "calibration_intercept": intercept, "calibration_slope": slope,
    "c_statistic": c_statistic, "scaled_brier": scaled_brier,
}  # fmt: skip
BY_CURVE = ("e50", "e90", "emax")
QUANTITIES = ("oe", "calibration_intercept", "calibration_slope", "ici", *BY_CURVE,
              "c_statistic", "scaled_brier")  # fmt: skip
# The greatest value of these is best. For distances from a curve it is the least, and for the other
# quantities 0 or 1.
GREATEST = ("c_statistic", "scaled_brier")
# The least and the largest value that there can be.
BOUNDS = {
    "oe": (0.0, math.inf), "calibration_intercept": (-math.inf, math.inf),
    "calibration_slope": (-math.inf, math.inf), "ici": (0.0, 1.0), "e50": (0.0, 1.0),
    "e90": (0.0, 1.0), "emax": (0.0, 1.0), "c_statistic": (0.0, 1.0),
    "scaled_brier": (-math.inf, 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class RiskStatistic(Parameters):
    """A statistic of the validation of a risk model, by its name.

    Parameters
    ----------
    quantity : str
        "oe", observed over predicted events; "calibration_intercept", with the logit of the score
        as offset; "calibration_slope", of logistic recalibration; "ici", "e50", "e90" and "emax",
        mean, median, 0.9 quantile and largest over the rows of the posterior mean of
        ``|c(s) - s|``, with the curve c of `BayesCurve`; "c_statistic", the area under the ROC
        curve; "scaled_brier", 1 minus the ratio of the Brier score to the Brier score of the
        observed rate.

    Raises
    ------
    ValueError, TypeError
        For another name.

    Notes
    -----
    Cox (1958, "Two further applications of a model for binary regression"); Austin and Steyerberg
    (2019, "The Integrated Calibration Index (ICI) and related metrics"). Scores of exactly 0 and 1
    have the logit of ``1 / (2 n + 2)``, or of its complement; with `from_logits` the C statistic
    ranks rows by their logits, of which rounding makes equal scores. The intercept is infinite
    where all outcomes are the same, the slope where a threshold separates events from the others. A
    statistic that is not defined is nan. `fastece.validate` gives all of them with intervals.

    Examples
    --------
    >>> from fastece import RiskStatistic, ece
    >>> y, p = [0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.6, 0.7]
    >>> round(ece(y, p, estimator=RiskStatistic("c_statistic")), 6)
    0.833333
    >>> round(ece(y, p, estimator="oe"), 6)
    1.052632
    """

    quantity: str = "oe"

    is_calibration_error = False
    greater_is_better = None
    checks: ClassVar = {"quantity": partial(check_choice, choices=QUANTITIES)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantity in (*GREATEST, "ici", *BY_CURVE):
            object.__setattr__(self, "greater_is_better", self.quantity in GREATEST)

    @property
    def lowest(self) -> float:
        """The least value."""
        return BOUNDS[self.quantity][0]

    @property
    def largest(self) -> float:
        """The largest value."""
        return BOUNDS[self.quantity][1]

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sorted sample."""
        return scale_weights(sample)[0]

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        if self.quantity == "ici":
            return BayesCurve().evaluate(plan, c)
        if self.quantity in BY_CURVE:
            curves = Curves(cells_of_rows(plan, c))
            quantiles = distance_quantiles(curves.distances(), curves.rows.cells[0])
            return float(quantiles[BY_CURVE.index(self.quantity)])
        return BY_ROWS[self.quantity](rows_of(plan, c))


def check_threshold(name: str, value: Any) -> float:
    """Return a probability threshold, above 0 and below 1."""
    number = check_real(name, value, -math.inf)
    if not 0 < number < 1:
        raise InputError(name, "must be greater than 0 and less than 1", value=value)
    return float(number)


@dataclass(frozen=True)
class NetBenefit(Mean):
    """Net benefit of treating the rows with a score of at least a threshold.

    ``sum_i w_i [s_i >= t] (y_i - (1 - y_i) t / (1 - t)) / W``: a treated event counts 1, and a
    treated row without it costs the odds of the threshold (Vickers and Elkin 2006, "Decision curve
    analysis").

    Parameters
    ----------
    threshold : float
        t, greater than 0 and less than 1.

    Raises
    ------
    ValueError, TypeError
        For another threshold.

    Examples
    --------
    >>> from fastece import NetBenefit, ece
    >>> round(ece([0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.6, 0.7], estimator=NetBenefit(0.2)), 6)
    0.3
    """

    threshold: float = 0.5

    greater_is_better = True
    largest = 1.0
    checks: ClassVar = {"threshold": check_threshold}

    @property
    def lowest(self) -> float:
        """The least value: the cost of treating only rows without an event."""
        return -self.threshold / (1 - self.threshold)

    def numbers(self, sample: Sample) -> F64:
        """Compute the benefit (n,) of each row, 0 of those below the threshold."""
        return benefits(self.threshold, sample.s, sample.y)

    def prepare(self, sample: Sample, size: int) -> SumPlan:
        """Keep the rows of a sample, or the terms of rows with weights."""
        if sample.v is not None:
            return super().prepare(sample, size)
        return BenefitPlan(self.threshold, sample.s, sample.y)


def benefits(threshold: float, s: F64, y: U8) -> F64:
    """Compute the benefit (n,) of treating rows with some scores and outcomes."""
    odds = threshold / (1 - threshold)
    return np.where(s >= threshold, y - odds * (1.0 - y), 0.0)


@dataclass(frozen=True)
class BenefitPlan(SumPlan):
    """Rows without weights, whose benefits are computed when they are added up.

    A validation has nine thresholds, whose terms would take 72 bytes a row.

    Attributes
    ----------
    threshold : float
    s, y : (n,) float64 and uint8 arrays
        Scores and outcomes.
    """

    threshold: float
    s: F64
    y: U8

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.s.size

    def terms_of(self, rows: slice) -> F64:
        """Compute the benefits (1, m) of some rows."""
        return benefits(self.threshold, self.s[rows], self.y[rows])[None]

    def sums_of(self, drawn: I32) -> F64:
        """Sum the benefits (1, R) of lists of rows (R, size)."""
        sums: F64 = benefits(self.threshold, self.s[drawn], self.y[drawn]).sum(axis=1)
        return sums[None]

    def means(self, sums: F64, size: float) -> F64:
        """Compute the mean benefit (1, R) from sums over draws of `size` rows."""
        return sums / size
