"""The verdict of a report and its headline, from the evidence for and against calibration.

`judge` decides between too few rows, miscalibrated, unclear and no sign. The classes of a stream,
whose mean error has no interval, are judged one by one: miscalibrated or no sign.
"""

import math

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
# Parts of the rows by their names, and several of them.
PARTS_OF_ROWS = {
    "predicted class": "predicted classes",
    "class": "classes",
    "class against the rest": "classes against the rest",
    "slice": "slices",
}


def judge(report: Report) -> tuple[str, str]:
    """Judge a model: the verdict, and the headline, a sentence with its numbers.

    The calibration test decides, or the interval of the first error where there is no test. The
    verdict is "unclear" where something else speaks against them.
    """
    interval = report.confidence_interval
    if report.direction is None or interval is None:
        return judge_classes(report)
    if report.n_effective < MIN_ROWS:
        return TOO_FEW, headline_of_few_rows(report.n_effective, interval)
    excludes_zero = interval.low > 0
    p_value = ""
    test = ""
    rejects = excludes_zero
    if report.p_value is not None:
        p_value = equate_p(report.p_value, smallest_p(report.n_resamples))
        test = f"; test of calibration: {p_value}"
        rejects = report.p_value < 1 - report.confidence_level
    if rejects:
        headline = f"{sentence(name_error(report, interval))}{test}."
        if not excludes_zero:
            headline += " The test rejects, but the size is uncertain: the interval reaches 0."
        return MISCALIBRATED, headline
    if excludes_zero:
        reason = f"the interval excludes 0, but the test of calibration does not reject ({p_value})"
        return UNCLEAR, f"Perhaps {name_error(report, interval)}; {reason}."
    fit = f"{size_with_rates(report, interval)}{test}"
    doubts = [*doubts_of_mean_gap(report), *doubts_of_vectors(report)]
    parts_off = [
        describe_parts_off(name, table)
        for name, table in tables_of_parts(report).items()
        if table.off
    ]
    if doubts:
        return UNCLEAR, f"Mixed evidence: {fit}, but {' and '.join(doubts + parts_off)}."
    if parts_off:
        return UNCLEAR, f"No miscalibration found overall: {fit}. But {' and '.join(parts_off)}."
    return NO_SIGN, f"No sign of miscalibration: {fit}."


def judge_classes(report: Report) -> tuple[str, str]:
    """Judge the classes of a stream one by one, whose mean error has no interval."""
    classes = tables_of_parts(report)["class"]
    verdict = MISCALIBRATED if classes.off else NO_SIGN
    text = sentence(describe_parts_off("class", classes))
    return verdict, f"{text}; mean error {format_number(report.value)}."


# --- evidence -------------------------------------------------------------------------------


def tables_of_parts(report: Report) -> dict[str, Slices]:
    """Return the tables of classes and slices by the name of a part."""
    name = "class" if report.predicted_classes is None else "class against the rest"
    tables = {
        "predicted class": report.predicted_classes,
        name: report.classes,
        "slice": report.slices,
    }
    return {name: table for name, table in tables.items() if table is not None}


def describe_parts_off(name: str, table: Slices) -> str:
    """Write how many parts are miscalibrated, the clearest one, and its p-value."""
    (first,) = table.clearest(1)
    if math.isnan(first.p_value):
        return f"no {name} can be tested"
    p_value = equate_p(first.p_value, table.bound_of(first))
    clearest = f"{first.label}"
    if name != "slice":
        clearest = f"class {clearest.removeprefix('class ')}"
    if len(table) == 1:
        if table.off == 0:
            return f"the only {name} shows no miscalibration ({p_value})"
        return f"the only {name} shows miscalibration: {clearest}, {p_value}"
    adjusted = f"adjusted for all {len(table)}"
    if table.off == 0:
        return f"no {name} shows miscalibration (smallest {p_value}, {adjusted})"
    evidence = f"{clearest}, {p_value}, {adjusted}"
    if table.off == 1:
        return f"one {name} shows miscalibration: {evidence}"
    return f"{table.off} {PARTS_OF_ROWS[name]} show miscalibration, most clearly {evidence}"


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
