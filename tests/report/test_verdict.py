"""The verdict of a report follows from the evidence, and the headline has its numbers."""

import re

import numpy as np
import pytest

import fastece
from fastece.display.numbers import ConfidenceInterval
from fastece.report.verdict import ENOUGH_ROWS, PartsOff, ReportEvidence, judge, judge_classes

# ReportEvidence of an over-confident model. Each case below changes some of it.
OVER_CONFIDENT = {
    "n": 1000,
    "setting": "confidence",
    "confidence_level": 0.95,
    "error": 0.021,
    "interval": ConfidenceInterval(0.012, 0.031),
    "p_value": 0.0001,
    "smallest_p_value": 0.00005,
    "over": 0.02,
    "total": 0.021,
    "mean_gap": -0.01,
    "mean_gap_interval": ConfidenceInterval(-0.03, 0.01),
}
RISK = {"setting": "binary", "rates": (0.121, 0.075)}
FITS = {"interval": ConfidenceInterval(0, 0.031), "p_value": 0.93}
GAP = ConfidenceInterval(-0.03, -0.001)
ONE_CLASS = PartsOff(1, 10, "class", "classes", "class 5", "p = 0.04")
NO_SLICE = PartsOff(0, 3, "slice", "slices", "north", "p = 0.3")
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
    ({**RISK, "over": 0.01, "linear_slope": 0.7}, "miscalibrated", ["are too extreme: 12.1 %"]),
    ({**RISK, "over": 0.01, "linear_slope": 1.3}, "miscalibrated", ["are not extreme enough"]),
    ({**RISK, "over": 0.01, "linear_slope": 1.04}, "miscalibrated", ["too high for some rows"]),
    ({**RISK, "linear_slope": 0.7}, "miscalibrated", ["Probabilities are too high: 12.1 %"]),
    ({**RISK, "event": "rain"}, "miscalibrated", ["Probabilities of rain are too high: 12.1 %"]),
    ({**RISK, **FITS}, "no sign", ["7.5 % observed; calibration error 0.021 (95 % CI 0 to"]),
    ({"setting": "class 1", "over": 0}, "miscalibrated", ["Probabilities are too low by"]),
    ({"setting": "classwise"}, "miscalibrated", ["Miscalibrated: probabilities too high by"]),
    (
        {"setting": "classwise", "over": 0.01},
        "miscalibrated",
        ["Miscalibrated in both directions by"],
    ),
    ({"p_value": 1e-7}, "miscalibrated", ["; test of calibration: p < 0.0001."]),
    ({"p_value": 0.0005, "smallest_p_value": 1 / 2000}, "miscalibrated", ["p <= 0.0005."]),
    ({"p_value": 0.001, "smallest_p_value": 1 / 2000}, "miscalibrated", ["p = 0.001."]),
    ({"p_value": None}, "miscalibrated", ["(95 % CI 0.012 to 0.031)."]),
    (FITS, "no sign", ["error 0.021 (95 % CI 0 to 0.031); test of calibration: p = 0.93."]),
    ({**FITS, "p_value": None}, "no sign", ["error 0.021 (95 % CI 0 to 0.031)."]),
    ({**FITS, "mean_gap_interval": None}, "no sign", []),
    ({**FITS, "mean_gap_interval": GAP}, "unclear", ["-0.010 [-0.030, -0.001]"]),
    (
        {**FITS, "off": [ONE_CLASS, NO_SLICE]},
        "unclear",
        [
            "No miscalibration found overall: error 0.021 (95 % CI 0 to 0.031); test of "
            "calibration: p = 0.93. But one class shows miscalibration: class 5, p = 0.04, "
            "adjusted for all 10."
        ],
    ),
    (
        {**FITS, "off": [NO_SLICE, ONE_CLASS], "others": ["a reason"]},
        "unclear",
        ["Mixed evidence: error", "p = 0.93, but a reason and one class shows miscalibration: c"],
    ),
    ({**FITS, "off": [NO_SLICE]}, "no sign", ["No sign of miscalibration: error"]),
    ({**FITS, "others": ["a reason"]}, "unclear", ["but a reason."]),
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
        {"n": 20.3, "interval": ConfidenceInterval(0, 0.15)},
        "too few rows",
        ["20 rows", "from 0 to 0.15"],
    ),
    (
        {"n": 1.0, "interval": ConfidenceInterval(0, 0.5)},
        "too few rows",
        ["1 row ", "from 0 to 0.50"],
    ),
]


@pytest.mark.parametrize(("changes", "verdict", "parts"), CASES)
def test_verdict_and_headline_follow_from_the_evidence(changes, verdict, parts):
    judged = judge(ReportEvidence(**{**OVER_CONFIDENT, **changes}))
    assert judged.verdict == verdict
    assert all(part in judged.headline for part in parts), judged.headline
    assert re.fullmatch(r"[A-Z].*[^.]\.", judged.headline)


@pytest.mark.parametrize(
    ("off", "verdict", "headline"),
    [
        (
            2,
            "miscalibrated",
            "2 classes show miscalibration, most clearly class 5, p = 0.04, adjusted for all 10",
        ),
        (
            0,
            "no sign",
            "No class shows miscalibration (smallest p = 0.04, adjusted for all 10)",
        ),
    ],
)
def test_classes_of_a_stream_are_judged_one_by_one(off, verdict, headline):
    judged = judge_classes(ONE_CLASS._replace(n_off=off), 0.0312)
    assert judged == (verdict, f"{headline}; mean error 0.0312.")


def test_parts_that_cannot_be_tested_have_no_p_value():
    untested = NO_SLICE._replace(p_value="")
    assert untested.text == "no slice can be tested"
    assert untested.fact == "not tested"


def test_facts_count_the_parts_that_show_miscalibration():
    assert NO_SLICE.fact == "none of 3 shows miscalibration (smallest adjusted p = 0.3)"
    assert ONE_CLASS.fact == "1 of 10 shows miscalibration: class 5 (adjusted p = 0.04)"
    assert ONE_CLASS._replace(n_off=2).fact == (
        "2 of 10 show miscalibration, most clearly class 5 (adjusted p = 0.04)"
    )


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


def test_a_table_of_one_part_has_no_smallest_p_value():
    parts = PartsOff(0, 1, "slice", "slices", "north", "p = 0.3")
    assert parts.fact == "shows no miscalibration (p = 0.3)"
    assert parts.text == "the only slice shows no miscalibration (p = 0.3)"
    parts = PartsOff(1, 1, "slice", "slices", "north", "p = 0.01")
    assert parts.fact == "shows miscalibration: north (p = 0.01)"
    assert parts.text == "the only slice shows miscalibration: north, p = 0.01"
