"""The verdict of a report follows from its numbers, and the headline has them."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import fastece
from fastece.display.numbers import ConfidenceInterval
from fastece.inference.slices import Slice, Slices
from fastece.report.first_page import first_page
from fastece.report.result import ClassVectors, VectorLine
from fastece.report.verdict import ENOUGH_ROWS, judge

# Numbers of an over-confident model. Each case below changes some of them.
OVER_CONFIDENT = {
    "n": 1000,
    "setting": "confidence",
    "interval": (0.012, 0.031),
    "p_value": 0.0001,
    "n_resamples": 19_999,
    "over": 0.02,
    "mean_gap_interval": (-0.03, 0.01),
    "hits": (None, None),
    "rates": (0.5, 0.5),
    "slope": 1.0,
    "event": "",
    "classes": None,
    "slices": None,
    "vectors": None,
}
RISK = {"setting": "binary", "rates": (0.121, 0.075)}
FITS = {"interval": (0, 0.031), "p_value": 0.93}
GAP = (-0.03, -0.001)


@cache
def report_of_rows():
    """A report whose numbers are changed below."""
    rng = np.random.default_rng(0)
    score = rng.random(60)
    return fastece.calibration_report(rng.random(60) < score, score, n_resamples=0)


def changed_report(changes):
    """A report with the numbers of the over-confident model, but for some."""
    numbers = {**OVER_CONFIDENT, **changes}
    report = report_of_rows()
    low, high = numbers["interval"]
    accuracy, confidence = numbers["hits"]
    direction = replace(
        report.direction,
        value=0.021,
        over=numbers["over"],
        mean_gap=-0.01,
        mean_gap_interval=ConfidenceInterval(*numbers["mean_gap_interval"]),
    )
    diagrams = [diagram_with(*numbers["rates"], numbers["slope"], report.diagrams[0])]
    if numbers["setting"] == "classwise":
        diagrams *= 3
    return replace(
        report,
        n_effective=numbers["n"],
        measures=[replace(report.measures[0], value=0.021, low=low, high=high)],
        direction=direction,
        diagrams=diagrams,
        accuracy=accuracy,
        mean_confidence=confidence,
        **{
            name: numbers[name]
            for name in (
                "setting", "p_value", "n_resamples", "event", "classes", "slices", "vectors"
            )
        },
    )  # fmt: skip


def diagram_with(predicted, observed, slope, diagram):
    """A diagram of two bins with these rates, and the slope of the line through both."""
    step = np.array([-0.05, 0.05])
    return replace(
        diagram, count=np.ones(2), score=predicted + step, frequency=observed + slope * step
    )


def slices_with(p_values, label):
    """Slices with these p-values, of which the first one has a label."""
    rows = [
        Slice(
            label=label if k == 0 else f"other {k}", n=50, n_effective=50.0, events=0.5,
            predicted=0.4, value=0.1, low=0.0, high=0.2, p_value=p, raw_p_value=p, note="",
        )
        for k, p in enumerate(p_values)
    ]  # fmt: skip
    return Slices(
        rows=tuple(rows), confidence_level=0.95, method="posterior",
        correction="step-down min-p", n=500, n_resamples=1999, key=0, estimator="",
        setting="binary",
    )  # fmt: skip


def vectors_with(p_value, name="skce"):
    """An error of class vectors with a p-value."""
    return ClassVectors([VectorLine(name=name, value=0.1, p_value=p_value, meaning="")], 99)


ONE_CLASS = slices_with([0.04] + 9 * [0.5], 5)
TWO_CLASSES = slices_with([0.04, 0.04] + 8 * [0.5], 5)
NO_CLASS = slices_with([0.2] + 9 * [0.5], 5)
NO_SLICE = slices_with([0.3, 0.5, 0.5], "north")
UNTESTED = slices_with([np.nan], "north")
CASES = [
    # changes, verdict, parts of the headline
    (
        {},
        "miscalibrated",
        ["Over-confident by 0.021 (95 % CI 0.012 to 0.031); test of calibration: p = 0.0001."],
    ),
    ({"over": 0.001}, "miscalibrated", ["Under-confident"]),
    (
        {"hits": (0.9766, 0.7833)},
        "miscalibrated",
        ["0.012 to 0.031): right 97.7 % of the time, claims 78.3 %; test of calibration: p = "],
    ),
    (
        {**FITS, "hits": (0.971, 0.972)},
        "no sign",
        ["0 to 0.031), right 97.1 % of the time, claims 97.2 %; test of calibration: p = 0.93."],
    ),
    ({"over": 0.01}, "miscalibrated", ["Miscalibrated in both directions by"]),
    (
        RISK,
        "miscalibrated",
        [
            "Probabilities are too high: 12.1 % predicted, 7.5 % observed; calibration error "
            "0.021 (95 % CI 0.012 to 0.031); test of calibration: p = 0.0001."
        ],
    ),
    ({**RISK, "over": 0.01}, "miscalibrated", ["too high for some rows and too low"]),
    ({**RISK, "over": 0.01, "slope": 0.7}, "miscalibrated", ["are too extreme: 12.1 %"]),
    ({**RISK, "over": 0.01, "slope": 1.3}, "miscalibrated", ["are not extreme enough"]),
    ({**RISK, "over": 0.01, "slope": 1.04}, "miscalibrated", ["too high for some rows"]),
    ({**RISK, "slope": 0.7}, "miscalibrated", ["Probabilities are too high: 12.1 %"]),
    ({**RISK, "event": "rain"}, "miscalibrated", ["Probabilities of rain are too high: 12.1 %"]),
    ({**RISK, **FITS}, "no sign", ["7.5 % observed; calibration error 0.021 (95 % CI 0 to"]),
    ({"setting": "class 1", "over": 0}, "miscalibrated", ["Probabilities are too low: 50.0 %"]),
    ({"setting": "classwise"}, "miscalibrated", ["Miscalibrated: probabilities too high by"]),
    (
        {"setting": "classwise", "over": 0.01},
        "miscalibrated",
        ["Miscalibrated in both directions by"],
    ),
    ({"p_value": 1e-7}, "miscalibrated", ["; test of calibration: p < 0.0001."]),
    ({"p_value": 0.0005, "n_resamples": 1999}, "miscalibrated", ["p <= 0.0005."]),
    ({"p_value": 0.001, "n_resamples": 1999}, "miscalibrated", ["p = 0.001."]),
    ({"p_value": None}, "miscalibrated", ["(95 % CI 0.012 to 0.031)."]),
    (FITS, "no sign", ["error 0.021 (95 % CI 0 to 0.031); test of calibration: p = 0.93."]),
    ({**FITS, "p_value": None}, "no sign", ["error 0.021 (95 % CI 0 to 0.031)."]),
    ({**FITS, "mean_gap_interval": GAP}, "unclear", ["-0.010 [-0.030, -0.001]"]),
    (
        {**FITS, "classes": ONE_CLASS, "slices": NO_SLICE},
        "unclear",
        [
            "No miscalibration found overall: error 0.021 (95 % CI 0 to 0.031); test of "
            "calibration: p = 0.93. But one class shows miscalibration: class 5, p = 0.04, "
            "adjusted for all 10."
        ],
    ),
    (
        {**FITS, "classes": ONE_CLASS, "slices": NO_SLICE, "vectors": vectors_with(0.01)},
        "unclear",
        [
            "Mixed evidence: error",
            "p = 0.93, but the test of class vectors rejects (skce, p <= 0.01) and one class shows",
        ],
    ),
    ({**FITS, "slices": NO_SLICE}, "no sign", ["No sign of miscalibration: error"]),
    (
        {**FITS, "vectors": vectors_with(0.02)},
        "unclear",
        ["but the test of class vectors rejects (skce, p = 0.02)."],
    ),
    ({**FITS, "vectors": vectors_with(0.2)}, "no sign", []),
    ({**FITS, "vectors": vectors_with(0.01, "canonical")}, "no sign", []),
    ({**FITS, "vectors": vectors_with(None)}, "no sign", []),
    (
        {**FITS, "classes": TWO_CLASSES},
        "unclear",
        ["But 2 classes show miscalibration, most clearly class 5, p = 0.04, adjusted for all 10."],
    ),
    (
        {**FITS, "slices": slices_with([0.01], "north")},
        "unclear",
        ["But the only slice shows miscalibration: north, p = 0.01."],
    ),
    (
        {**FITS, "p_value": 0.02},
        "miscalibrated",
        ["p = 0.02", "The test rejects, but the size"],
    ),
    (
        {"p_value": 0.07},
        "unclear",
        ["excludes 0, but the test of calibration does not reject (p = 0.07)"],
    ),
    (
        {"n": 20.3, "interval": (0, 0.15)},
        "too few rows",
        ["20 rows", "from 0 to 0.15"],
    ),
    (
        {"n": 1.0, "interval": (0, 0.5)},
        "too few rows",
        ["1 row ", "from 0 to 0.50"],
    ),
]


@pytest.mark.parametrize(("changes", "verdict", "parts"), CASES)
def test_verdict_and_headline_follow_from_the_numbers(changes, verdict, parts):
    found, headline = judge(changed_report(changes))
    assert found == verdict
    assert all(part in headline for part in parts), headline
    assert re.fullmatch(r"[A-Z].*[^.]\.", headline)


@pytest.mark.parametrize(
    ("classes", "verdict", "headline"),
    [
        (
            TWO_CLASSES,
            "miscalibrated",
            "2 classes show miscalibration, most clearly class 5, p = 0.04, adjusted for all 10",
        ),
        (
            NO_CLASS,
            "no sign",
            "No class shows miscalibration (smallest p = 0.20, adjusted for all 10)",
        ),
        (UNTESTED, "no sign", "No class can be tested"),
        (
            slices_with([0.3], 5),
            "no sign",
            "The only class shows no miscalibration (p = 0.30)",
        ),
    ],
)
def test_classes_of_a_stream_are_judged_one_by_one(classes, verdict, headline):
    stream = replace(changed_report({"classes": classes}), direction=None)
    assert judge(stream) == (verdict, f"{headline}; mean error 0.0210.")


@pytest.mark.parametrize(
    ("slices", "note"),
    [
        (NO_SLICE, "No slice shows miscalibration (smallest p = 0.30, adjusted for all 3)."),
        (ONE_CLASS, "One slice shows miscalibration: 5, p = 0.04, adjusted for all 10."),
        (slices_with([0.01], "north"), "The only slice shows miscalibration: north, p = 0.01."),
        (UNTESTED, "No slice can be tested."),
    ],
)
def test_a_sentence_of_the_first_page_counts_the_slices_that_are_off(slices, note):
    report = replace(report_of_rows(), slices=slices, verdict="no sign")
    sample = first_page(report, ["ece_bayes", "ece"]).sections[0]
    assert sample.notes[-1] == note


def test_enough_rows_estimate_the_error_to_within_005():
    # The median width is 0.085 and 0.091; of 60 samples, nine in ten are below 0.1.
    for shape in ((1, 1), (5, 1.5)):
        widths = []
        for seed in range(15):
            rng = np.random.default_rng(seed)
            p = rng.beta(*shape, ENOUGH_ROWS)
            y = rng.random(ENOUGH_ROWS) < p - 0.4 * p * (1 - p)
            low, high = fastece.estimate(y, p).confidence_interval
            widths.append(high - low)
        assert np.median(widths) <= 0.1
