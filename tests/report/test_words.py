"""The verdict of a report follows from its numbers, and the headline has them."""

import re

import numpy as np
import pytest

import fastece
from fastece.display.numbers import ConfidenceInterval
from fastece.report.words import ENOUGH_ROWS, judge

USUAL = {
    "n": 1000, "setting": "confidence", "level": 0.95, "error": 0.021,
    "interval": (0.012, 0.031), "p_value": 0.0001, "over": 0.02, "total": 0.021, "mean_gap": -0.01,
    "mean_gap_interval": (-0.03, 0.01), "off": {},
}  # fmt: skip
RISK = {"setting": "binary", "rates": (0.121, 0.075)}
FITS = {"interval": (0, 0.031), "p_value": 0.93}


@pytest.mark.parametrize(
    ("changes", "verdict", "parts"),
    [
        ({}, "miscalibrated", ["Over-confident by 0.021 (95 % CI 0.012 to 0.031); p = 0.0001."]),
        ({"over": 0.001}, "miscalibrated", ["Under-confident"]),
        ({"over": 0.01}, "miscalibrated", ["Miscalibrated in both directions by"]),
        (
            {**RISK, "over": 0.02},
            "miscalibrated",
            [
                "Probabilities are too high: 12.1 % predicted, "
                "7.5 % observed; calibration error 0.021 (95 % CI 0.012 to 0.031); p = 0.0001."
            ],
        ),
        ({**RISK, "over": 0.01}, "miscalibrated", ["too high for some rows and too low"]),
        (
            {**RISK, "event": "rain"},
            "miscalibrated",
            ["Probabilities of rain are too high: 12.1 %"],
        ),
        ({**RISK, **FITS}, "no sign", ["7.5 % observed; calibration error 0.021 (95 % CI 0 to"]),
        ({"setting": "class 1", "over": 0}, "miscalibrated", ["Probabilities are too low by"]),
        ({"p_value": 1e-7}, "miscalibrated", ["; p < 0.0001."]),
        ({"p_value": None}, "miscalibrated", ["(95 % CI 0.012 to 0.031)."]),
        (FITS, "no sign", ["error 0.021 (95 % CI 0 to 0.031); p = 0.93."]),
        ({**FITS, "p_value": None}, "no sign", ["error 0.021 (95 % CI 0 to 0.031)."]),
        ({**FITS, "mean_gap_interval": None}, "no sign", []),
        ({**FITS, "mean_gap_interval": (-0.03, -0.001)}, "unclear", ["-0.010 [-0.030, -0.001]"]),
        ({**FITS, "off": {"classes": (2, 10), "slices": (0, 3)}}, "unclear", ["2 of 10 classes"]),
        ({**FITS, "others": ["a reason"]}, "unclear", ["but a reason."]),
        ({**FITS, "p_value": 0.02}, "miscalibrated", ["p = 0.02", "The interval reaches 0"]),
        ({"p_value": 0.07}, "unclear", ["leaves out 0", "p = 0.07"]),
        ({"n": 20.3, "interval": (0, 0.15)}, "too few rows", ["20 rows", "from 0 to 0.15"]),
        ({"n": 1.0, "interval": (0, 0.5)}, "too few rows", ["1 row ", "from 0 to 0.50"]),
    ],
)
def test_the_headline(changes, verdict, parts):
    found = {**USUAL, **changes}
    for name in ("interval", "mean_gap_interval"):
        found[name] = found[name] and ConfidenceInterval(*found[name])
    judgement = judge(**found)
    assert judgement.verdict == verdict
    assert all(part in judgement.headline for part in parts), judgement.headline
    assert re.fullmatch(r"[A-Z].*[^.]\.", judgement.headline)


def test_enough_rows_tell_the_error_to_within_005():
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
