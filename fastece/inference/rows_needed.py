"""Rows that a test set needs, found by simulation on the scores of a pilot."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_real
from fastece.data.samples import Sample, scale_weights
from fastece.data.sources import one_problem
from fastece.display.documents import Document, Section
from fastece.display.numbers import ConfidenceInterval
from fastece.display.results import Result
from fastece.estimators.bayes.cells import cells_of_rows
from fastece.estimators.bayes.curves import Curves
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.risk import Logistic, curve_probabilities
from fastece.inference.estimate import estimate_of
from fastece.kernels.types import F64
from fastece.resampling import arguments, engine
from fastece.resampling.arguments import require_one_problem
from fastece.resampling.calibration_test import calibration_test
from fastece.resampling.call import Call
from fastece.resampling.draws import new_key
from fastece.resampling.naming import describe

# Replicates of each simulated interval, which with 199 is 3 to 10 % wider than with 1999; those of
# a test, or as many as leave ten beyond the level.
RESAMPLES, TEST_RESAMPLES, BEYOND = 999, 199, 10
# Rows of a simulated interval, beyond which widths fall by a power law; and of a simulated test.
# With more rows than these the error is larger, by the root of how many times as many: the power
# depends on their product where frequencies are not far from scores.
MOST_ROWS, MOST_TEST_ROWS = 2**17, 2**15
# A round simulates so many samples of each of these sizes, in units of the present guess, which
# changes by a factor of 8 at most. All sizes within a factor of 2 of the guess are fitted.
ROUND, SPREAD, NEAR, STEP = 20, 2.0 ** np.array([-0.5, 0.0, 0.5]), math.log(2), math.log(8)
MOST_ROUNDS, FEWEST_ROWS, MOST_ANSWER = 60, 10, 1e9
# Slopes of the logarithm of the width that are believed.
SLOPES = (-1.2, -0.2)
# The power at no rows is 1 - level, which counts as much as so many samples.
ANCHOR = 20.0
TEXT = (
    "About {} rows ({} to {}, {:g} % CI of the simulation) give {}: from {} samples of the scores "
    "of {} rows, with {}. Scores and curve are taken as these rows have them."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsNeeded(Result):
    """How many rows make an interval so short, or a test find so large an error.

    Attributes
    ----------
    value : int
        The number of rows, at least 10.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `level`: what the simulation leaves open, for this pilot.
    goal : str
        The width, or the power and the error, in words.
    level : float
        Of the interval, or 1 minus the size of the test.
    shape : str
        Where the labels of the simulation came from.
    n, n_simulations : int
        Rows of the pilot, and samples behind the answer.
    """

    value: int
    confidence_interval: ConfidenceInterval
    goal: str
    level: float
    shape: str
    n: int
    n_simulations: int

    def document(self) -> Document:
        """Describe the number of rows in a sentence."""
        ends, percent = self.confidence_interval, 100 * self.level
        facts = (self.value, *ends, percent, self.goal, self.n_simulations, self.n, self.shape)
        return Document("Rows needed", sections=[Section(notes=[TEXT.format(*facts)])])

    def _columns(self) -> dict[str, Any]:
        return {name: [value] for name, value in self.to_dict().items()}


@dataclass(frozen=True, eq=False)
class Pilot:
    """Scores of a pilot, and how often they come true."""

    sample: Sample
    frequency: F64
    logit: F64  # infinite for scores of 0 and 1, which a change of logits leaves where they are
    change: F64  # of the logits, in units
    shape: str
    rng: np.random.Generator

    def draw(self, n: int, frequency: F64) -> Sample:
        """Draw rows, and labels with the frequencies (N,) of all of them."""
        rows = self.rng.integers(self.sample.n, size=n)
        hit = (self.rng.random(n) < frequency[rows]).view(np.uint8)
        return replace(self.sample.where(rows), y=hit, rows=np.arange(n))

    def frequencies(self, units: float) -> F64:
        """Compute frequencies (N,) for a change of the logits in units."""
        return np.asarray(0.5 + 0.5 * np.tanh((self.logit + units * self.change) / 2))

    def error(self, units: float) -> float:
        """Compute the error for a change of the logits in units."""
        gaps = np.abs(self.frequencies(units) - self.sample.s)
        return float(np.average(gaps, weights=self.sample.v))

    def with_error(self, error: float) -> F64:
        """Compute frequencies (N,) that have an error, or the largest one."""
        from scipy.optimize import brentq

        error = min(error, self.error(MOST_ANSWER))
        return self.frequencies(brentq(lambda x: self.error(x) - error, 0.0, MOST_ANSWER))


def pilot_of(sample: Sample, has_labels: bool, level: float, key: int) -> Pilot:
    """Find the curve of a pilot, and the change of logits that errors come from."""
    s, shape = sample.s, "a shift of all logits"
    with np.errstate(divide="ignore"):
        logit = np.log(s) - np.log1p(-s)
    # Towards one half, where there is room for larger errors.
    change = np.full(s.size, 1.0 if np.average(s, weights=sample.v) < 0.5 else -1.0)
    frequency = s
    if has_labels:
        ordered = sample.sorted()
        curves = Curves(cells_of_rows(ordered))
        score, p = curve_probabilities(ordered, curves)
        frequency = np.interp(s, score, p.mean(axis=1))
        if BayesCurve().posterior([sample]).interval(level)[0] > 0:
            own = logit.clip(curves.logits.low, curves.logits.high)
            shape, change = "their curve, scaled", np.log(frequency / (1 - frequency)) - own
    return Pilot(sample, frequency, logit, change, shape, np.random.default_rng(key))


# --- goals ----------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A mean of simulated results that is to be reached."""

    argument: str
    text: str
    simulate: Callable[[int], float]  # the result of a sample of so many rows
    # The logarithm of the number of rows, and its standard error, from numbers of rows and results.
    solve: Callable[[F64, F64], tuple[float, float]]
    samples: int  # near the answer
    most_rows: float  # beyond which the fit is extrapolated
    start: float


def width_goal(pilot: Pilot, call: Call, width: float) -> Goal:
    """Make the goal of a mean width of the interval of an estimate."""

    def simulate(n: int) -> float:
        drawn = replace(call, sources=[one_problem(pilot.draw(n, pilot.frequency))])
        low, high = estimate_of(drawn, "", int(pilot.rng.integers(2**63))).confidence_interval
        return float(high - low)

    def solve(n: F64, widths: F64) -> tuple[float, float]:
        middle = np.log(n).mean()
        off, y = np.log(n) - middle, np.log(np.maximum(widths, 1e-12))
        slope = float(np.clip(off @ y / max(off @ off, 1e-300), *SLOPES))
        level = widths * np.exp(-slope * off)
        far = math.log(width / level.mean()) / slope
        spread = level.std() / level.mean()
        return middle + far, spread * math.sqrt(1 / n.size + far**2 / (off @ off)) / -slope

    (estimator,) = map(describe, call.estimators.values())
    text = f"a mean width of {width:g} of the {100 * call.level:g} % CI of {estimator}"
    return Goal("width", text, simulate, solve, 240, MOST_ROWS, call.n)


def power_goal(pilot: Pilot, level: float, error: float, power: float) -> Goal:
    """Make the goal of a power of `calibration_test` for an error."""
    alpha, frequencies = round(1 - level, 12), cache(pilot.with_error)
    resamples = max(TEST_RESAMPLES, math.ceil(BEYOND / alpha) - 1)

    def simulate(n: int) -> float:
        larger = error * math.sqrt(max(n / MOST_TEST_ROWS, 1.0))
        sample = pilot.draw(min(n, MOST_TEST_ROWS), frequencies(larger))
        options: Any = {"sample_weight": sample.v, "n_resamples": resamples, "rng": pilot.rng}
        return float(calibration_test(sample.y, sample.s, **options).p_value <= alpha)

    def solve(n: F64, found: F64) -> tuple[float, float]:
        # A logistic regression on the root of n. Half a sample of either kind keeps it finite.
        root = np.sqrt(np.concatenate([n, [0.0, n.mean()]]))
        y, w = np.append(found, [alpha, 0.5]), np.append(np.ones(n.size), [ANCHOR, 1.0])
        line = Logistic(np.column_stack([np.ones(w.size), root]), np.zeros(w.size), y, w)
        beta, _ = line.fit()
        x = (math.log(power / (1 - power)) - beta[0]) / max(beta[1], 1e-9)
        gradient = np.array([1.0, x]) / max(beta[1], 1e-9)
        spread = math.sqrt(gradient @ np.linalg.pinv(line.information(beta)) @ gradient)
        return 2 * math.log(max(x, 1.0)), 2 * spread / max(x, 1.0)

    # What a test of the mean gap would need.
    s, quantile = pilot.sample.s, NormalDist().inv_cdf
    variance = float(np.average(s * (1 - s), weights=pilot.sample.v))
    start = ((quantile(1 - alpha / 2) + quantile(power)) / error) ** 2 * variance
    text = f"power {power:g} for an error of {error:g} at level {100 * level:g} %"
    return Goal("detect", text, simulate, solve, 900, math.inf, start)


def search(goal: Goal) -> tuple[float, float, int]:
    """Find the log of the rows that reach a goal, its error, and count samples."""
    rows, results = np.empty(0), np.empty(0)
    guess, fewest, most = math.log(max(goal.start, 1)), math.log(FEWEST_ROWS), math.log(MOST_ANSWER)
    for _ in range(MOST_ROUNDS):
        # At the limit all three sizes are below it.
        middle = min(math.exp(max(guess, fewest)), goal.most_rows / SPREAD[-1])
        sizes = np.maximum(np.rint(middle * SPREAD), FEWEST_ROWS).repeat(ROUND)
        rows, results = (
            np.append(rows, sizes),
            np.append(results, [*map(goal.simulate, sizes.astype(int).tolist())]),
        )
        if np.isnan(results).any():
            rule = f"has no interval for {sizes[0]:.0f} rows such as these"
            raise InputError("estimator", rule)
        near = np.abs(np.log(rows / middle)) <= NEAR
        found, error = goal.solve(rows[near], results[near])
        is_beyond = found > math.log(middle) and guess > math.log(goal.most_rows)
        last, guess = (
            guess,
            found if is_beyond else min(max(found, guess - STEP, fewest), guess + STEP),
        )
        count = int(near.sum())
        for callback in engine.progress_callbacks:
            callback(min(count, goal.samples), goal.samples)
        if guess > most:
            break
        if count >= goal.samples and (is_beyond or abs(guess - last) < NEAR):
            return guess, error, count
    raise InputError(goal.argument, f"needs more than {MOST_ANSWER:g} rows such as these")


# --- the call -------------------------------------------------------------------------------


def check_goals(width: Any, detect: Any, power: Any, level: Any) -> None:
    """Check the numbers of a goal: a width, or an error with a power."""
    if (width is None) == (detect is None):
        raise InputTypeError("width", "or {detect} must be given, and not both")
    for name, x in {"width": width, "detect": detect, "power": power, "level": level}.items():
        if x is not None and not 0 < check_real(name, x, 0.0, 1.0) < 1:
            raise InputError(name, "must be between 0 and 1", value=x)
    if power <= 1 - level:
        raise InputError("power", "must be more than 1 - {level}, that of no rows", value=power)


def rows_needed_of(
    call: Call, width: Any, detect: Any, power: Any, key: int, has_labels: bool = True
) -> RowsNeeded:
    """Find the rows needed, from the only model of a call."""
    arguments.require_calibration_error(call, "rows_needed")
    (estimator,) = call.estimators.values()
    data = require_one_problem(call)
    if data.votes > 1:
        raise InputError("y_true", "rows_needed simulates rows of one label, not soft ones")
    sample = replace(scale_weights(data.sample(0))[0], vectors=None)
    pilot = pilot_of(sample, has_labels, call.level, key)
    if detect is None:
        goal, shape = width_goal(pilot, call, width), "labels drawn from their curve"
    else:
        if describe(estimator) != str(BayesCurve()):
            raise InputError("estimator", "goes with {width}, as {detect} has its own test")
        if (largest := pilot.error(MOST_ANSWER)) <= detect:
            rule = f"must be less than {largest:.4g}, the largest error of these scores"
            raise InputError("detect", rule, value=detect)
        goal, shape = power_goal(pilot, call.level, detect, power), pilot.shape
    log_rows, error, count = search(goal)
    value = max(round(math.exp(log_rows), 6), FEWEST_ROWS)
    half = NormalDist().inv_cdf((1 + call.level) / 2) * error
    ends = [max(FEWEST_ROWS, math.ceil(value * math.exp(x))) for x in (-half, half)]
    return RowsNeeded(
        value=math.ceil(value), confidence_interval=ConfidenceInterval(*ends), goal=goal.text,
        level=call.level, shape=shape, n=call.n, n_simulations=count,
    )  # fmt: skip


def rows_needed(
    y_true: Any, y_prob: Any, *, width: float | None = None, detect: float | None = None,
    power: float = 0.8, level: float = 0.95, estimator: Any = "ece_bayes", rng: Any = 0,
    **options: Any,
) -> RowsNeeded:  # fmt: skip
    """Find how many rows make an interval so short, or a test find so large an error.

    Parameters
    ----------
    y_true, y_prob
        A pilot: labels and probabilities as in `fastece.ece`, of one problem. With ``y_true=None``
        the probabilities alone are the law of scores, and the model is taken as calibrated.
    width : float, optional
        Mean width of the interval of `fastece.estimate` that is wanted.
    detect : float, optional
        The error ``E|c(s) - s|`` that `fastece.calibration_test` is to find. Either this or
        `width` must be given.
    power : float, default 0.8
        How often it is to find it.
    level : float, default 0.95
        Of the interval; the test rejects at 1 - `level`.
    estimator : str or object, default "ece_bayes"
        Of the interval, as in `fastece.estimate`.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result.
    **options
        `setting`, `labels`, `pos_label`, `sample_weight`, `from_logits` and parameters of the
        estimator, as in `fastece.ece`.

    Returns
    -------
    RowsNeeded

    Raises
    ------
    ValueError, TypeError
        As in `fastece.estimate`; without a goal or with two; for several problems; for an error
        that scores such as these cannot have; where more than 1e9 rows would be needed.

    Notes
    -----
    Samples of some sizes are simulated: rows of the pilot, with their weights, are drawn with
    replacement, and labels from its Bayesian curve. For `detect` the labels come from ``logit s +
    k d`` with the k that has this error; d is how far the pilot's curve is from the scores, or,
    where the interval of the pilot's error begins at 0, the same for all scores, towards one half.
    Scores of 0 and 1 stay right. Then ``width = a n**b``, or ``logit(power) = a + b sqrt(n)``, is
    fitted to the sizes within a factor of 2 of the answer. `confidence_interval` is that of the
    fit; that another pilot would have other scores and another curve is not in it. A test draws
    199 sets of labels. It takes some seconds: 1 s for hundreds of rows, longer for ten thousands.

    Sample sizes for precision are the way of Riley et al. (2021, "Minimum sample size for external
    validation of a clinical prediction model with a binary outcome").

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import rows_needed
    >>> p = np.random.default_rng(0).random(500)
    >>> rows_needed(None, p, detect=0.1).value < 500
    True
    """
    arguments.check_single(estimator)
    check_goals(width, detect, power, level)
    labels = np.zeros(len(y_prob), np.int64) if y_true is None else y_true
    options |= {"estimator": estimator, "n_resamples": RESAMPLES, "confidence_level": level}
    call = arguments.read_call("rows_needed", labels, {"y_prob": y_prob}, **options)
    return rows_needed_of(call, width, detect, power, new_key(rng), y_true is not None)
