"""The verdict of a report and its headline, from the evidence for and against calibration.

`judge` decides between too few rows, miscalibrated, unclear and no sign. `judge_classes` decides
for the classes of a stream, whose mean error has no interval: miscalibrated or no sign. `Report`
chooses between the two by whether there is an interval. `report.add_class_vectors` reads the
verdict of a report without class vectors, to measure these only where they may change it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastece.display.numbers import (
    SHOWN_AS_ZERO,
    ConfidenceInterval,
    count_of,
    decimals,
    equate_p,
    format_interval,
    format_number,
    format_percents,
)
from fastece.report.words import sentence

TOO_FEW = "too few rows"
NO_SIGN = "no sign"
MISCALIBRATED = "miscalibrated"
UNCLEAR = "unclear"
# How a page colours a verdict; others are unclear.
TONES = {MISCALIBRATED: "bad", NO_SIGN: "good"}
# With fewer rows the interval is as wide as the error of usual models.
MIN_ROWS = 30
# With so many rows the interval is 0.09 wide, for a model that is off by 0.07 (uniform and Beta(5,
# 1.5) scores, medians of 60 samples).
ENOUGH_ROWS = 400
# An error is of one direction from this share of it on.
ONE_SIDED_SHARE = 0.75
# From this distance of the slope to 1 on, an error of both directions is called one of the slope.
MIN_SLOPE_CHANGE = 0.05
# Headlines begin with these words where the test does not reject: without other evidence, with
# evidence from classes or slices, and with other evidence from all rows.
NO_MISCALIBRATION = "No sign of miscalibration"
NONE_OVERALL = "No miscalibration found overall"
MIXED_EVIDENCE = "Mixed evidence"
# Name of the test whose p-value stands in a headline, after an error that has an interval.
TEST = "test of calibration"
# Added to the headline of a test that rejects although the interval reaches 0.
SURE_WITHOUT_SIZE = "The test rejects, but the size is uncertain: the interval reaches 0."


class Verdict(NamedTuple):
    """The verdict of a report, and its headline: a sentence with the numbers.

    The verdict is "too few rows", "no sign" (of miscalibration), "miscalibrated" where the test
    rejects, or "unclear" where something else speaks against the test.
    """

    verdict: str
    headline: str


class PartsOff(NamedTuple):
    """How many classes or slices are miscalibrated, and which one most clearly.

    Attributes
    ----------
    n_off, n_parts : int
        Parts whose adjusted p-value rejects, and all parts.
    name, plural : str
        A part in words, such as "class", and several of them.
    clearest : str
        The part with the most evidence, in words.
    p_value : str
        Its adjusted p-value, as "p = 0.04"; "" where no part can be tested.
    """

    n_off: int
    n_parts: int
    name: str
    plural: str
    clearest: str
    p_value: str

    @property
    def text(self) -> str:
        """Which parts show miscalibration, and by which p-value."""
        if not self.p_value:
            return f"no {self.name} can be tested"
        if self.n_parts == 1:
            if self.n_off == 0:
                return f"the only {self.name} shows no miscalibration ({self.p_value})"
            return f"the only {self.name} shows miscalibration: {self.clearest}, {self.p_value}"
        adjusted = f"adjusted for all {self.n_parts}"
        if self.n_off == 0:
            return f"no {self.name} shows miscalibration (smallest {self.p_value}, {adjusted})"
        evidence = f"{self.clearest}, {self.p_value}, {adjusted}"
        if self.n_off == 1:
            return f"one {self.name} shows miscalibration: {evidence}"
        return f"{self.n_off} {self.plural} show miscalibration, most clearly {evidence}"

    @property
    def fact(self) -> str:
        """The same in fewer words, for a line whose name has the parts."""
        if not self.p_value:
            return "not tested"
        if self.n_parts == 1:
            if self.n_off == 0:
                return f"shows no miscalibration ({self.p_value})"
            return f"shows miscalibration: {self.clearest} ({self.p_value})"
        p_value = f"adjusted {self.p_value}"
        if self.n_off == 0:
            return f"none of {self.n_parts} shows miscalibration (smallest {p_value})"
        if self.n_off == 1:
            return f"1 of {self.n_parts} shows miscalibration: {self.clearest} ({p_value})"
        counts = f"{self.n_off} of {self.n_parts}"
        return f"{counts} show miscalibration, most clearly {self.clearest} ({p_value})"


@dataclass(frozen=True, kw_only=True)
class ReportEvidence:
    """The numbers of a report that its verdict depends on.

    Attributes
    ----------
    n : float
        Effective number of rows.
    setting : str
        "confidence" also for hits and confidences of predicted classes.
    confidence_level : float
    error : float
    interval : ConfidenceInterval
        Interval of the error.
    p_value : float or None
        Result of the calibration test; None without one.
    smallest_p_value : float
        The smallest p-value that the replicates of the test can give.
    over, total : float
        Error of the scores that are too high, and the error of all scores.
    mean_gap : float
    mean_gap_interval : ConfidenceInterval or None
    off : sequence of PartsOff
        Classes and slices, and how many of them are miscalibrated.
    others : sequence of str
        Other evidence of miscalibration, in words.
    rates : pair of float, or None
        Predicted and observed rate, for a single event.
    linear_slope : float or None
        Slope of the observed frequency over the predicted probability, for a single event.
    hits : pair of float, or None
        Accuracy and mean confidence, for top labels.
    event : str
        Name of the event, "" without one.
    """

    n: float
    setting: str
    confidence_level: float
    error: float
    interval: ConfidenceInterval
    p_value: float | None
    smallest_p_value: float
    over: float
    total: float
    mean_gap: float
    mean_gap_interval: ConfidenceInterval | None
    off: Sequence[PartsOff] = ()
    others: Sequence[str] = ()
    rates: tuple[float, float] | None = None
    linear_slope: float | None = None
    hits: tuple[float, float] | None = None
    event: str = ""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval of the error lies above 0."""
        return bool(self.interval.low > 0)

    @property
    def rejects(self) -> bool:
        """Whether the test rejects calibration; without a test, the interval decides."""
        if self.p_value is None:
            return self.excludes_zero
        return self.p_value < 1 - self.confidence_level


def judge(evidence: ReportEvidence) -> Verdict:
    """Judge a model by the test, or by the interval where there is none."""
    if evidence.n < MIN_ROWS:
        return Verdict(TOO_FEW, headline_of_few_rows(evidence))
    p_value = ""
    if evidence.p_value is not None:
        p_value = equate_p(evidence.p_value, evidence.smallest_p_value)
    test = f"{TEST}: {p_value}" if p_value else ""
    error = name_error(evidence)
    if evidence.rejects:
        text = sentence("; ".join(filter(None, [error, test]))) + "."
        if not evidence.excludes_zero:
            text += f" {SURE_WITHOUT_SIZE}"
        return Verdict(MISCALIBRATED, text)
    if evidence.excludes_zero:
        text = f"the interval excludes 0, but the {TEST} does not reject ({p_value})"
        return Verdict(UNCLEAR, f"Perhaps {error}; {text}.")
    fit = "; ".join(filter(None, [size_with_rates(evidence), test]))
    doubts = [*list_doubts(evidence), *evidence.others]
    parts_off = [parts.text for parts in evidence.off if parts.n_off]
    if doubts:
        return Verdict(UNCLEAR, f"{MIXED_EVIDENCE}: {fit}, but {' and '.join(doubts + parts_off)}.")
    if parts_off:
        return Verdict(UNCLEAR, f"{NONE_OVERALL}: {fit}. But {' and '.join(parts_off)}.")
    return Verdict(NO_SIGN, f"{NO_MISCALIBRATION}: {fit}.")


def judge_classes(classes: PartsOff, mean: float) -> Verdict:
    """Judge the classes of a stream one by one, whose mean error has no interval."""
    verdict = MISCALIBRATED if classes.n_off else NO_SIGN
    return Verdict(verdict, f"{sentence(classes.text)}; mean error {format_number(mean)}.")


# --- sentences ------------------------------------------------------------------------------


def headline_of_few_rows(evidence: ReportEvidence) -> str:
    """Write how large the error may be with so few rows."""
    places = decimals(evidence.interval)
    low, high = (format_number(end, places) for end in evidence.interval)
    rows = count_of(round(evidence.n), "row")
    return (
        f"Too few rows to judge: with {rows} the error may be from {low} to {high}; about "
        f"{ENOUGH_ROWS} rows are enough for most models."
    )


def name_error(evidence: ReportEvidence) -> str:
    """Write direction and size of the error: over-confident by 0.1 (95 % CI ...)."""
    share = evidence.over / evidence.total if evidence.total > 0 else 0.5
    name = direction(share, evidence.setting, evidence.event, evidence.linear_slope)
    if evidence.rates is not None:
        return f"{name}: {size_with_rates(evidence)}"
    size = f"{name} by {size_of_error(evidence)}"
    return size if evidence.hits is None else f"{size}: {claim_of(evidence.hits)}"


def size_with_rates(evidence: ReportEvidence) -> str:
    """Write the size of the error, with the rates of an event or of right top labels."""
    if evidence.rates is None:
        size = f"error {size_of_error(evidence)}"
        return size if evidence.hits is None else f"{size}, {claim_of(evidence.hits)}"
    predicted, observed = format_percents(*evidence.rates)
    size = size_of_error(evidence)
    return f"{predicted} predicted, {observed} observed; calibration error {size}"


def claim_of(hits: tuple[float, float]) -> str:
    """Write how often a model is right, and how often by its confidence."""
    accuracy, confidence = format_percents(*hits)
    return f"right {accuracy} of the time, claims {confidence}"


def size_of_error(evidence: ReportEvidence) -> str:
    """Write the error with its interval."""
    places = decimals(evidence.interval)
    low, high = (format_number(end, places) for end in evidence.interval)
    error = format_number(evidence.error, places, shows_first_digit=False)
    return f"{error} ({100 * evidence.confidence_level:g} % CI {low} to {high})"


def list_doubts(evidence: ReportEvidence) -> list[str]:
    """List evidence of all rows against calibration besides the test and the interval."""
    interval = evidence.mean_gap_interval
    if interval is not None and (interval.low > SHOWN_AS_ZERO or interval.high < -SHOWN_AS_ZERO):
        gap = format_number(evidence.mean_gap, decimals(interval), shows_first_digit=False)
        return [
            "the observed frequency differs from the mean predicted probability by "
            f"{gap} {format_interval(interval)}"
        ]
    return []


def direction(
    share: float, setting: str, event: str = "", linear_slope: float | None = None
) -> str:
    """Name the direction of an error from the share of scores that are too high."""
    is_both = 1 - ONE_SIDED_SHARE < share < ONE_SIDED_SHARE
    is_over = share > 0.5
    side = "high" if is_over else "low"
    if setting == "confidence":
        if is_both:
            return "miscalibrated in both directions"
        return "over-confident" if is_over else "under-confident"
    if setting == "classwise":
        if is_both:
            return "miscalibrated in both directions"
        return f"miscalibrated: probabilities too {side}"
    probabilities = f"probabilities of {event}" if event else "probabilities"
    if is_both and linear_slope is not None and abs(linear_slope - 1) >= MIN_SLOPE_CHANGE:
        extreme = "too extreme" if linear_slope < 1 else "not extreme enough"
        return f"{probabilities} are {extreme}"
    if is_both:
        return f"{probabilities} are too high for some rows and too low for others"
    return f"{probabilities} are too {side}"
