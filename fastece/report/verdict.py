"""The verdict of a report and its headline, from the evidence for and against calibration.

`judge` decides between too few rows, miscalibrated, unclear and no sign. The classes of a stream,
whose mean error has no interval, are judged one by one: miscalibrated or no sign.
"""

import math
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
    smallest_p,
)
from fastece.inference.slices import Slices
from fastece.report.class_vectors import DECISIVE
from fastece.report.result import MISCALIBRATED, NO_SIGN, TOO_FEW, UNCLEAR, Report
from fastece.report.sample import hits_of, is_of_top_label, linear_slope_of, rates_of
from fastece.report.words import sentence

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
# Ends the name of classes where predicted classes are there too.
AGAINST_REST = " against the rest"


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


def judge(report: Report) -> tuple[str, str]:
    """Judge a model: the verdict, and the headline, a sentence with its numbers.

    The calibration test decides, or the interval of the first error where there is no test. The
    verdict is "unclear" where something else speaks against them.
    """
    parts = list_parts_off(report)
    interval = report.confidence_interval
    if report.direction is None or interval is None:
        return judge_classes(report, parts)
    if report.n_effective < MIN_ROWS:
        return TOO_FEW, headline_of_few_rows(report.n_effective, interval)
    excludes_zero = interval.low > 0
    p_value = ""
    test = ""
    rejects = excludes_zero
    if report.p_value is not None:
        p_value = equate_p(report.p_value, smallest_p(report.n_resamples))
        test = f"; {TEST}: {p_value}"
        rejects = report.p_value < 1 - report.confidence_level
    if rejects:
        headline = f"{sentence(name_error(report, interval))}{test}."
        if not excludes_zero:
            headline += f" {SURE_WITHOUT_SIZE}"
        return MISCALIBRATED, headline
    if excludes_zero:
        reason = f"the interval excludes 0, but the {TEST} does not reject ({p_value})"
        return UNCLEAR, f"Perhaps {name_error(report, interval)}; {reason}."
    fit = f"{size_with_rates(report, interval)}{test}"
    doubts = [*doubts_of_mean_gap(report), *doubts_of_vectors(report)]
    parts_off = [part.text for part in parts if part.n_off]
    if doubts:
        return UNCLEAR, f"{MIXED_EVIDENCE}: {fit}, but {' and '.join(doubts + parts_off)}."
    if parts_off:
        return UNCLEAR, f"{NONE_OVERALL}: {fit}. But {' and '.join(parts_off)}."
    return NO_SIGN, f"{NO_MISCALIBRATION}: {fit}."


def judge_classes(report: Report, parts: list[PartsOff]) -> tuple[str, str]:
    """Judge the classes of a stream one by one, whose mean error has no interval."""
    (classes,) = [part for part in parts if part.name == "class"]
    verdict = MISCALIBRATED if classes.n_off else NO_SIGN
    return verdict, f"{sentence(classes.text)}; mean error {format_number(report.value)}."


# --- evidence -------------------------------------------------------------------------------


def list_parts_off(report: Report) -> list[PartsOff]:
    """Count how many classes and slices are miscalibrated, and name the clearest ones."""
    parts = []
    ending = ""
    if report.predicted_classes is not None:
        parts.append(count_off(report.predicted_classes, "predicted class", "predicted classes"))
        ending = AGAINST_REST
    if report.classes is not None:
        parts.append(count_off(report.classes, f"class{ending}", f"classes{ending}"))
    if report.slices is not None:
        parts.append(count_off(report.slices, "slice", "slices"))
    return parts


def count_off(table: Slices, name: str, plural: str) -> PartsOff:
    """Count the miscalibrated parts of a table, and name the clearest one in words."""
    (first,) = table.clearest(1)
    label = f"{first.label}"
    p_value = "" if math.isnan(first.p_value) else equate_p(first.p_value, table.bound_of(first))
    return PartsOff(
        n_off=table.off,
        n_parts=len(table),
        name=name,
        plural=plural,
        clearest=label if name == "slice" else f"class {label.removeprefix('class ')}",
        p_value=p_value,
    )


def doubts_of_mean_gap(report: Report) -> list[str]:
    """Write that the mean gap speaks against calibration, if it does."""
    direction = report.direction
    interval = None if direction is None else direction.mean_gap_interval
    if direction is None or interval is None:
        return []
    if interval.low <= SHOWN_AS_ZERO and interval.high >= -SHOWN_AS_ZERO:
        return []
    gap = format_number(direction.mean_gap, decimals(interval), shows_first_digit=False)
    return [
        "the observed frequency differs from the mean predicted probability by "
        f"{gap} {format_interval(interval)}"
    ]


def doubts_of_vectors(report: Report) -> list[str]:
    """Write that the stronger test of class vectors rejects, if it does."""
    if report.vectors is None:
        return []
    smallest = smallest_p(report.vectors.n_resamples)
    return [
        f"the test of class vectors rejects ({line.name}, {equate_p(line.p_value, smallest)})"
        for line in report.vectors.lines
        if line.name == DECISIVE
        and line.p_value is not None
        and line.p_value < 1 - report.confidence_level
    ]


# --- sentences ------------------------------------------------------------------------------


def headline_of_few_rows(n: float, interval: ConfidenceInterval) -> str:
    """Write how large the error may be with so few rows."""
    places = decimals(interval)
    low, high = (format_number(end, places) for end in interval)
    return (
        f"Too few rows to judge: with {count_of(round(n), 'row')} the error may be from {low} to "
        f"{high}; about {ENOUGH_ROWS} rows are enough for most models."
    )


def name_error(report: Report, interval: ConfidenceInterval) -> str:
    """Write direction and size of the error: over-confident by 0.1 (95 % CI ...)."""
    name = name_direction(report)
    if rates_of(report) is not None:
        return f"{name}: {size_with_rates(report, interval)}"
    size = f"{name} by {size_of_error(report, interval)}"
    hits = hits_of(report)
    return size if hits is None else f"{size}: {claim_of(hits)}"


def size_with_rates(report: Report, interval: ConfidenceInterval) -> str:
    """Write the size of the error, with the rates of an event or of right top labels."""
    size = size_of_error(report, interval)
    rates = rates_of(report)
    if rates is not None:
        predicted, observed = format_percents(*rates)
        return f"{predicted} predicted, {observed} observed; calibration error {size}"
    hits = hits_of(report)
    return f"error {size}" if hits is None else f"error {size}, {claim_of(hits)}"


def claim_of(hits: tuple[float, float]) -> str:
    """Write how often a model is right, and how often by its confidence."""
    accuracy, confidence = format_percents(*hits)
    return f"right {accuracy} of the time, claims {confidence}"


def size_of_error(report: Report, interval: ConfidenceInterval) -> str:
    """Write the error with its interval."""
    places = decimals(interval)
    low, high = (format_number(end, places) for end in interval)
    error = format_number(report.value, places, shows_first_digit=False)
    return f"{error} ({100 * report.confidence_level:g} % CI {low} to {high})"


def name_direction(report: Report) -> str:
    """Name the direction of the error from the share of it that is of scores too high."""
    direction = report.direction
    share = 0.5
    if direction is not None and direction.value > 0:
        share = direction.over / direction.value
    is_both = 1 - ONE_SIDED_SHARE < share < ONE_SIDED_SHARE
    is_over = share > 0.5
    side = "high" if is_over else "low"
    if is_of_top_label(report):
        if is_both:
            return "miscalibrated in both directions"
        return "over-confident" if is_over else "under-confident"
    if report.setting == "classwise":
        if is_both:
            return "miscalibrated in both directions"
        return f"miscalibrated: probabilities too {side}"
    probabilities = f"probabilities of {report.event}" if report.event else "probabilities"
    slope = linear_slope_of(report)
    if is_both and slope is not None and abs(slope - 1) >= MIN_SLOPE_CHANGE:
        extreme = "too extreme" if slope < 1 else "not extreme enough"
        return f"{probabilities} are {extreme}"
    if is_both:
        return f"{probabilities} are too high for some rows and too low for others"
    return f"{probabilities} are too {side}"
