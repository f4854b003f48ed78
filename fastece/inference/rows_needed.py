"""Rows that a test set needs, found by simulation on the scores of a pilot."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple, Unpack

import numpy as np

from fastece.data.axes import find_row_axes
from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import shows_options
from fastece.data.parameters import check_real
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import one_problem
from fastece.display.documents import Document, Section
from fastece.display.numbers import ConfidenceInterval
from fastece.display.results import Result
from fastece.estimators.bayes.cells import cells_of_rows
from fastece.estimators.bayes.curves import Curves
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.risk import curve_probabilities
from fastece.inference.estimate import estimate_of
from fastece.kernels.types import F64
from fastece.resampling import arguments, engine
from fastece.resampling.arguments import ResamplingKeywords, require_one_problem
from fastece.resampling.calibration_test import calibration_test
from fastece.resampling.call import Call
from fastece.resampling.draws import new_key
from fastece.resampling.naming import describe, name_of

# Replicates of each simulated interval. With 199 it would be 3 to 10 % wider than with 1999.
INTERVAL_RESAMPLES = 999
# Replicates of each simulated test: at least 199, and enough that ten are beyond the level.
MIN_TEST_RESAMPLES = 199
RESAMPLES_BEYOND_LEVEL = 10
# Rows of a simulated interval at most. Beyond them, widths are taken to fall by a power law.
MAX_INTERVAL_ROWS = 2**17
# Rows of a simulated test at most. A test of k times as many rows is simulated with an error that
# is larger by the root of k: the power depends on error times root of rows, where frequencies are
# not far from scores.
MAX_TEST_ROWS = 2**15
# Simulated samples of each size in a round.
SAMPLES_PER_ROUND = 20
# Factors between the three sizes that are tried in a round around a guess. Over a wider range the
# power is no logistic function of the logarithm of the rows, which would cost 2 % of the rows. From
# a wider one widths beyond the largest simulated size are known better.
FACTOR_OF_INTERVALS = 2**0.5
FACTOR_OF_TESTS = 2**0.25
# The guess changes by at most this factor in a round; a logarithm.
MAX_STEP = math.log(8)
MAX_ROUNDS = 60
# The smallest and the largest number of rows that is an answer.
MIN_ROWS = 10
MAX_ROWS = 1e9
# A slope that differs by more than this factor from what normal theory expects is noise.
MAX_SLOPE_FACTOR = 3.0
# Simulated samples near the answer: 240 intervals, and 900 tests, whose results are 0 or 1.
INTERVALS_NEAR_ANSWER = 240
TESTS_NEAR_ANSWER = 900
TEXT = (
    "About {value} rows ({low} to {high}, {percent:g} % CI of the simulation) give {goal}. They "
    "come from {n_simulations} samples of the scores of {n} rows, with {shape}. The pilot's "
    "scores and calibration curve are taken as given."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsNeeded(Result):
    """Number of rows for an interval of a given width, or a test of a given power.

    Attributes
    ----------
    value : int
        The number of rows, at least 10.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `level`: the uncertainty of the simulation, for this pilot.
    goal : str
        The width, or the power and the error, in words.
    level : float
        The level of the interval, or 1 minus the size of the test.
    shape : str
        The source of the labels of the simulation, in words.
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
        low, high = self.confidence_interval
        text = TEXT.format(
            value=self.value,
            low=low,
            high=high,
            percent=100 * self.level,
            goal=self.goal,
            n_simulations=self.n_simulations,
            n=self.n,
            shape=self.shape,
        )
        return Document("Rows needed", sections=[Section(notes=[text])])

    def _columns(self) -> dict[str, Any]:
        return {name: [value] for name, value in self.to_dict().items()}


@dataclass(frozen=True, eq=False)
class Pilot:
    """Scores of a pilot, with a curve of frequencies that labels are drawn from.

    Attributes
    ----------
    sample : Sample
        The N rows of the pilot.
    frequency : (N,) float64 array
        Probability of the event in each row, by the curve of the pilot.
    logit : (N,) float64 array
        Logits of the scores; infinite for scores of 0 and 1, which no change of logits moves.
    change : (N,) float64 array
        Change of each logit that makes errors, up to a factor.
    shape : str
        The change in words.
    rng : numpy.random.Generator
    """

    sample: Sample
    frequency: F64
    logit: F64
    change: F64
    shape: str
    rng: np.random.Generator

    def draw(self, n: int, frequency: F64) -> Sample:
        """Draw n rows with replacement, and labels with the frequencies (N,) of the rows."""
        rows = self.rng.integers(self.sample.n, size=n)
        hit = (self.rng.random(n) < frequency[rows]).view(np.uint8)
        return replace(self.sample.where(rows), y=hit, rows=np.arange(n))

    def frequencies(self, factor: float) -> F64:
        """Compute the frequencies (N,) when logits are changed by a factor times `change`."""
        return np.asarray(0.5 + 0.5 * np.tanh((self.logit + factor * self.change) / 2))

    def error(self, factor: float) -> float:
        """Compute the error when logits are changed by a factor times `change`."""
        gaps = np.abs(self.frequencies(factor) - self.sample.s)
        return float(np.average(gaps, weights=self.sample.v))

    def largest_error(self) -> float:
        """Compute the largest error that these scores can have."""
        return self.error(MAX_ROWS)

    def frequencies_with_error(self, error: float) -> F64:
        """Compute frequencies (N,) with an error, or with the largest one if that is less."""
        from scipy.optimize import brentq

        error = min(error, self.largest_error())
        factor = brentq(lambda factor: self.error(factor) - error, 0.0, MAX_ROWS)
        return self.frequencies(factor)


def make_pilot(sample: Sample, has_labels: bool, level: float, key: int) -> Pilot:
    """Find the curve of a pilot, and the change of logits that errors are made by.

    Without labels the model is taken as calibrated. Errors come from the pilot's own curve if its
    interval shows that there is an error, and otherwise from a shift of all logits towards one
    half, where there is room for larger errors.
    """
    scores = sample.s
    with np.errstate(divide="ignore"):
        logit = np.log(scores) - np.log1p(-scores)
    direction = 1.0 if np.average(scores, weights=sample.v) < 0.5 else -1.0
    pilot = Pilot(
        sample,
        frequency=scores,
        logit=logit,
        change=np.full(scores.size, direction),
        shape="a shift of all logits",
        rng=np.random.default_rng(key),
    )
    if not has_labels:
        return pilot
    ordered = sample.sorted()
    curves = Curves(cells_of_rows(ordered))
    grid, probabilities = curve_probabilities(ordered, curves)
    frequency = np.interp(scores, grid, probabilities.mean(axis=1))
    pilot = replace(pilot, frequency=frequency)
    lowest_error, _ = BayesCurve().posterior([sample]).interval(level)
    if lowest_error <= 0:
        return pilot
    logit_of_score = logit.clip(*curves.cuts)
    change = np.log(frequency / (1 - frequency)) - logit_of_score
    return replace(pilot, shape="their curve, scaled", change=change)


# --- targets --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A mean of simulated results that a number of rows is to reach.

    Attributes
    ----------
    argument : str
        The argument of `rows_needed` that asks for it.
    text : str
        The target in words.
    value : float
        The mean, between 0 and 1.
    simulate : callable
        Returns the result of one sample of a number of rows.
    n_samples : int
        Samples near the answer.
    factor : float
        Factor between the sizes of a round; those within its square of the guess enter the fit.
    max_rows : float
        Rows beyond which the fit is extrapolated.
    start : float
        A first guess of the rows.
    slope : float
        How fast the logit of the mean changes with the logarithm of the rows, by normal theory.
    """

    argument: str
    text: str
    value: float
    simulate: Callable[[int], float]
    n_samples: int
    factor: float
    max_rows: float
    start: float
    slope: float


def width_target(pilot: Pilot, call: Call, width: float) -> Target:
    """Make the target of a mean width of the interval of an estimate.

    By normal theory the width falls with the root of the rows.
    """

    def simulate(n: int) -> float:
        drawn = replace(call, tables=[one_problem(pilot.draw(n, pilot.frequency))])
        key = int(pilot.rng.integers(2**63))
        low, high = estimate_of(drawn, "", key).confidence_interval
        return float(high - low)

    (name,) = map(name_of, call.estimators.values())
    n_deviations = 2 * NormalDist().inv_cdf((1 + call.level) / 2)
    return Target(
        argument="width",
        text=f"a mean width of {width:g} of the {100 * call.level:g} % CI of {name}",
        value=width,
        simulate=simulate,
        n_samples=INTERVALS_NEAR_ANSWER,
        factor=FACTOR_OF_INTERVALS,
        max_rows=MAX_INTERVAL_ROWS,
        start=rows_of_mean_gap(pilot.sample, n_deviations, width),
        slope=-0.5 / (1 - width),
    )


def power_target(pilot: Pilot, level: float, error: float, power: float) -> Target:
    """Make the target of a power of `calibration_test` for an error.

    By normal theory the logit of the power rises about linearly with the root of the rows, and the
    power at no rows is ``1 - level``.
    """
    alpha = round(1 - level, 12)
    frequencies_with_error = cache(pilot.frequencies_with_error)
    n_resamples = max(MIN_TEST_RESAMPLES, math.ceil(RESAMPLES_BEYOND_LEVEL / alpha) - 1)

    def simulate(n: int) -> float:
        error_of_rows = error * math.sqrt(max(n / MAX_TEST_ROWS, 1.0))
        sample = pilot.draw(min(n, MAX_TEST_ROWS), frequencies_with_error(error_of_rows))
        test = calibration_test(
            sample.y,
            sample.s,
            sample_weight=sample.v,
            n_resamples=n_resamples,
            rng=pilot.rng,
        )
        return 1.0 if test.p_value <= alpha else 0.0

    quantile = NormalDist().inv_cdf
    n_deviations = quantile(1 - alpha / 2) + quantile(power)
    return Target(
        argument="detect",
        text=f"power {power:g} for an error of {error:g} by a test at {100 * alpha:g} %",
        value=power,
        simulate=simulate,
        n_samples=TESTS_NEAR_ANSWER,
        factor=FACTOR_OF_TESTS,
        max_rows=math.inf,
        start=rows_of_mean_gap(pilot.sample, n_deviations, error),
        slope=(logit_of(power) - logit_of(alpha)) / 2,
    )


def logit_of(p: float) -> float:
    """Compute the logit of a probability."""
    return math.log(p / (1 - p))


def rows_of_mean_gap(sample: Sample, n_deviations: float, size: float) -> float:
    """Compute the rows whose mean gap has a size in so many standard deviations."""
    variance = float(np.average(sample.s * (1 - sample.s), weights=sample.v))
    return (n_deviations / size) ** 2 * variance


# --- the search -----------------------------------------------------------------------------


class Answer(NamedTuple):
    """The rows that reach a target.

    Attributes
    ----------
    log_rows, standard_error : float
        Their logarithm, with its standard error.
    n_samples : int
        Samples near them.
    """

    log_rows: float
    standard_error: float
    n_samples: int


def search(target: Target) -> Answer:
    """Find the rows that reach a target by rounds of simulated samples around a guess."""
    factors = target.factor ** np.array([-1.0, 0.0, 1.0])
    window = 2 * math.log(target.factor)
    rows = np.empty(0)
    results = np.empty(0)
    guess = math.log(np.clip(target.start, MIN_ROWS, MAX_ROWS))
    for _ in range(MAX_ROUNDS):
        # At the limit of the rows that are simulated all sizes are below it.
        is_at_limit = guess > math.log(target.max_rows)
        centre = min(math.exp(guess), target.max_rows / target.factor)
        sizes = np.rint(centre * factors).clip(MIN_ROWS).repeat(SAMPLES_PER_ROUND)
        rows = np.append(rows, sizes)
        results = np.append(results, [target.simulate(int(size)) for size in sizes])
        if np.isnan(results).any():
            rule = f"has no interval for {sizes[0]:.0f} rows such as these"
            raise InputError("estimator", rule)
        is_near = np.abs(np.log(rows / centre)) <= window
        max_step = math.inf if is_at_limit else MAX_STEP
        answer = fit(target, rows[is_near], results[is_near], max_step)
        show_progress(answer.n_samples, target.n_samples)
        last_guess = guess
        guess = max(answer.log_rows, math.log(MIN_ROWS))
        if guess > math.log(MAX_ROWS):
            break
        is_beyond = is_at_limit and guess > math.log(centre)
        has_settled = is_beyond or abs(guess - last_guess) < window
        if answer.n_samples >= target.n_samples and has_settled:
            return answer
    raise InputError(target.argument, f"needs more than {MAX_ROWS:g} rows such as these")


def fit(target: Target, rows: F64, results: F64, max_step: float) -> Answer:
    """Fit the rows that reach a target to results (m,) of some numbers of rows.

    The logit of the mean result is linear in the logarithm of the rows. The answer is at most
    `max_step` from the mean of these.
    """
    from scipy.optimize import curve_fit
    from scipy.special import expit

    log_rows = np.log(rows)
    logit = logit_of(target.value)

    def mean_results(log_rows: F64, answer: float, slope: float) -> F64:
        """Compute the mean results of numbers of rows, in units of the target."""
        return np.asarray(expit(logit + slope * (log_rows - answer)) / target.value)

    centre = float(log_rows.mean())
    slopes = sorted([target.slope / MAX_SLOPE_FACTOR, target.slope * MAX_SLOPE_FACTOR])
    (answer, _), covariance = curve_fit(
        mean_results,
        log_rows,
        results / target.value,
        p0=(centre, target.slope),
        bounds=([centre - max_step, slopes[0]], [centre + max_step, slopes[1]]),
    )
    return Answer(float(answer), math.sqrt(covariance[0, 0]), rows.size)


def show_progress(done: int, total: int) -> None:
    """Show the number of samples near the answer."""
    for callback in engine.progress_callbacks:
        callback(min(done, total), total)


# --- the call -------------------------------------------------------------------------------


def check_targets(width: Any, detect: Any, power: Any, level: Any) -> None:
    """Check the numbers of a target: a width, or an error with a power."""
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
    problems = require_one_problem(call)
    if problems.votes > 1:
        raise InputError("y_true", "rows_needed simulates rows of one label, not soft ones")
    if detect is not None and describe(estimator) != str(BayesCurve()):
        raise InputError("estimator", "goes with {width}, as {detect} has its own test")
    sample, _ = scale_weights(problems.sample(0))
    pilot = make_pilot(replace(sample, vectors=None), has_labels, call.level, key)
    if detect is None:
        target = width_target(pilot, call, width)
        shape = "labels drawn from their curve"
    else:
        check_error(detect, pilot)
        target = power_target(pilot, call.level, detect, power)
        shape = pilot.shape
    answer = search(target)
    rows = max(round(math.exp(answer.log_rows), 6), MIN_ROWS)
    margin = NormalDist().inv_cdf((1 + call.level) / 2) * answer.standard_error
    low = max(MIN_ROWS, math.ceil(rows * math.exp(-margin)))
    high = max(MIN_ROWS, math.ceil(rows * math.exp(margin)))
    return RowsNeeded(
        value=math.ceil(rows),
        confidence_interval=ConfidenceInterval(low, high),
        goal=target.text,
        level=call.level,
        shape=shape,
        n=call.n,
        n_simulations=answer.n_samples,
    )


def check_error(detect: float, pilot: Pilot) -> None:
    """Refuse an error that scores such as these cannot have."""
    largest = pilot.largest_error()
    if largest <= detect:
        rule = f"must be less than {largest:.4g}, the largest error of these scores"
        raise InputError("detect", rule, value=detect)


@shows_options
def rows_needed(  # type: ignore[misc]  # some estimators have a width, too
    y_true: Any, y_prob: Any, *, width: float | None = None, detect: float | None = None,
    power: float = 0.8, level: float = 0.95, estimator: Any = "ece_bayes", rng: Any = 0,
    **options: Unpack[ResamplingKeywords],
) -> RowsNeeded:  # fmt: skip
    """Find the number of rows for an interval of a given width, or a test of an error.

    Parameters
    ----------
    y_true, y_prob
        A pilot: labels and probabilities of one problem, as in `fastece.ece`. With
        ``y_true=None`` the model is taken as calibrated.
    width : float, optional
        Mean width of the interval of `fastece.estimate` that is wanted.
    detect : float, optional
        The error ``E|c(s) - s|`` that `fastece.calibration_test` is to find. Either this or
        `width` must be given.
    power : float, default 0.8
        Probability that the test finds it.
    level : float, default 0.95
        Confidence level of the interval; the test rejects at 1 - `level`.
    estimator : str or object, default "ece_bayes"
        Estimator of the interval, as in `fastece.estimate`.
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
    Scores of 0 and 1 stay right. Then ``logit(width)``, or ``logit(power)``, ``= a + b log(n)`` is
    fitted to the sizes within a factor of 2, or 1.4, of the answer. `confidence_interval` belongs
    to the fit: it leaves out that another pilot would have other scores and another curve. A test
    draws 199 sets of labels. The search takes 1 s for hundreds of rows, and longer for ten
    thousands.

    Riley et al. (2021, "Minimum sample size for external validation of a clinical prediction model
    with a binary outcome") proposed sample sizes for a precision.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import rows_needed
    >>> p = np.random.default_rng(0).random(500)
    >>> rows_needed(None, p, width=0.2).value < 100
    True
    """
    arguments.check_single(estimator)
    check_targets(width, detect, power, level)
    labels = y_true
    if y_true is None:
        labels = np.zeros(
            find_row_axes("y_prob", y_prob, options.get("class_axis")).shape, np.int64
        )
    others = {**options, "n_resamples": INTERVAL_RESAMPLES, "confidence_level": level}
    call = arguments.read_call(
        "rows_needed", labels, {"y_prob": y_prob}, estimator=estimator, **others
    )
    return rows_needed_of(call, width, detect, power, new_key(rng), y_true is not None)
