"""What a report says: each sentence is true of the numbers beside it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastece
from fastece.report.words import (
    ENOUGH_ROWS,
    Findings,
    decimals,
    ends,
    judge,
    number,
    p_text,
)
from fastece.resampling.intervals import ConfidenceInterval as Ends


def told(**changes):
    usual = {
        "n": 1000, "setting": "confidence", "level": 0.95, "error": 0.021,
        "interval": (0.012, 0.031), "p_value": 0.0001, "n_resamples": 1000, "over": 0.02,
        "total": 0.021, "mean_gap": -0.01, "mean_gap_interval": (-0.03, 0.01), "off": {},
    }  # fmt: skip
    found = {**usual, **changes}
    for name in ("interval", "mean_gap_interval"):
        found[name] = Ends(*found[name])
    return judge(Findings(**found))


SURE = (
    "by 0.021 (95 % interval 0.012 to 0.031); chance alone would show as large an ECE in fewer "
    "than 1 of 1000 samples of a calibrated model."
)
NO_SIGN = (
    "the error is 0.021 (95 % interval 0 to 0.031), and chance alone would show as large an ECE in "
    "93 of 100 samples of a calibrated model"
)
FITS = {"interval": (0, 0.031), "p_value": 0.93}


@pytest.mark.parametrize(
    ("changes", "verdict", "headline"),
    [
        ({}, "miscalibrated", f"Over-confident {SURE}"),
        ({"over": 0.001}, "miscalibrated", f"Under-confident {SURE}"),
        ({"over": 0.01}, "miscalibrated", f"Off in both directions, {SURE}"),
        ({"setting": "binary"}, "miscalibrated", f"Off, its probabilities too high, {SURE}"),
        ({"p_value": 0.008}, "miscalibrated",
         f"Over-confident {SURE.replace('fewer than 1', '8')}"),
        ({"p_value": None}, "miscalibrated",
         "Over-confident by 0.021 (95 % interval 0.012 to 0.031)."),
        (FITS, "no sign", f"No sign of miscalibration: {NO_SIGN}."),
        ({**FITS, "p_value": 1.0}, "no sign",
         f"No sign of miscalibration: {NO_SIGN.replace('93', 'more than 99')}."),
        ({**FITS, "p_value": None}, "no sign",
         "No sign of miscalibration: the error is 0.021 (95 % interval 0 to 0.031)."),
        ({**FITS, "mean_gap_interval": (-0.03, -0.001)}, "unclear",
         f"Not clear: {NO_SIGN}; but the hit rate differs from the mean score by -0.010 [-0.030, "
         "-0.001]."),
        ({**FITS, "off": {"classes": (2, 10), "groups": (0, 3)}}, "unclear",
         f"Not clear: {NO_SIGN}; but 2 of 10 classes are off."),
        ({**FITS, "p_value": 0.02}, "unclear",
         "Probably over-confident by 0.021 (95 % interval 0 to 0.031): chance alone would show as "
         "large an ECE in 20 of 1000 samples of a calibrated model, but the interval still holds "
         "0."),
        ({"p_value": 0.07}, "unclear",
         "Probably over-confident by 0.021 (95 % interval 0.012 to 0.031): the interval leaves out "
         "0, but chance alone would show as large an ECE in 70 of 1000 samples of a calibrated "
         "model."),
        ({"n": 20.3, "interval": (0, 0.15)}, "too few rows",
         "Too few rows to judge: 20 rows may have an error from 0 to 0.15; some 400 tell that of "
         "most models to within 0.05."),
        ({"n": 1.0, "interval": (0, 0.5)}, "too few rows",
         "Too few rows to judge: 1 row may have an error from 0 to 0.50; some 400 tell that of "
         "most models to within 0.05."),
    ],
)  # fmt: skip
def test_the_headline(changes, verdict, headline):
    found = told(**changes)
    assert (found.verdict, found.headline) == (verdict, headline)


@given(st.floats(1e-9, 1), st.floats(0, 1))
def test_an_interval_has_two_digits_of_its_width(width, low):
    interval = Ends(low, low + width)
    places = decimals(interval)
    assert 2 <= places <= 5
    if 1e-4 < width < 0.9:
        assert width * 10 ** decimals(interval) >= 10 or places == 5
    assert ends(interval).startswith("[")


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.02149, 3, "0.021"), (0.0, 3, "0"), (1.0, 2, "1"), (0.0002, 3, "0.0002"),
     (2e-18, 3, "0"), (-1e-11, 2, "0"), (math.inf, 2, "inf"), (math.nan, 2, "-"), (None, 2, "-"),
     (-0.0213, 3, "-0.021")],
)  # fmt: skip
def test_numbers(value, places, text):
    assert number(value, places) == text


def test_what_there_is_not_is_a_dash():
    assert ends(None) == ends(Ends(math.nan, math.nan)) == p_text(None) == p_text(math.nan) == "-"


@pytest.mark.parametrize(
    ("p_value", "least", "text"),
    [(1 / 1001, 1 / 1000, "below 0.001"), (2 / 1001, 1 / 1000, "0.002"), (0.93, 0.001, "0.93"),
     (0.0534, 0.001, "0.053"), (1.0, 0.001, "1.00"), (1e-7, 1e-4, "below 0.0001")],
)  # fmt: skip
def test_p_values(p_value, least, text):
    assert p_text(p_value, least) == text


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
