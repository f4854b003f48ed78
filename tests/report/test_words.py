"""What a report says: each sentence is true of the numbers beside it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastece.report.words import (
    FEWEST_ROWS,
    USEFUL_WIDTH,
    decimals,
    ends,
    judge,
    number,
    p_text,
    rows_needed,
)
from fastece.resampling.intervals import ConfidenceInterval as Ends


def told(n=1000, setting="confidence", error=0.021, interval=(0.012, 0.031), p_value=0.0001,
         n_resamples=1000, over=0.02):  # fmt: skip
    return judge(n, setting, error, Ends(*interval), 0.95, p_value, n_resamples, over, error)


@pytest.mark.parametrize(
    ("changes", "verdict", "headline"),
    [
        ({}, "miscalibrated",
         "Over-confident by 0.021 (95 % interval 0.012 to 0.031); chance alone would show as much "
         "in fewer than 1 of 1000 samples of a calibrated model."),
        ({"over": 0.001}, "miscalibrated",
         "Under-confident by 0.021 (95 % interval 0.012 to 0.031); chance alone would show as much "
         "in fewer than 1 of 1000 samples of a calibrated model."),
        ({"setting": "binary", "p_value": 0.008}, "miscalibrated",
         "Off, its probabilities too high, by 0.021 (95 % interval 0.012 to 0.031); chance alone "
         "would show as much in 8 of 1000 samples of a calibrated model."),
        ({"over": 0.01, "p_value": None}, "miscalibrated",
         "Off in both directions, by 0.021 (95 % interval 0.012 to 0.031)."),
        ({"interval": (0, 0.031), "p_value": 0.93}, "no sign",
         "No sign of miscalibration: the error is 0.021 (95 % interval 0 to 0.031), and chance "
         "alone would show as much in 93 of 100 samples of a calibrated model."),
        ({"interval": (0, 0.031), "p_value": 0.02}, "unclear",
         "Probably over-confident by 0.021 (95 % interval 0 to 0.031): chance alone would show as "
         "much in 20 of 1000 samples of a calibrated model, but the interval still holds 0, so "
         "that more rows are needed."),
        ({"p_value": 0.07}, "unclear",
         "Probably over-confident by 0.021 (95 % interval 0.012 to 0.031): the interval leaves out "
         "0, but chance alone would show as much in 70 of 1000 samples of a calibrated model in "
         "the bins of the test, so that more rows are needed."),
        ({"n": 20, "interval": (0, 0.15)}, "too few rows",
         "Too few rows to judge: 20 rows leave the error anywhere from 0 to 0.15; some 45 would "
         "tell it to within 0.05."),
        ({"interval": (0, 0.031), "p_value": None}, "no sign",
         "No sign of miscalibration: the error is 0.021 (95 % interval 0 to 0.031)."),
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
    [(0.02149, 3, "0.021"), (0.0, 3, "0"), (1.0, 2, "1"), (0.0002, 3, "2e-04"),
     (math.inf, 2, "inf"), (math.nan, 2, "-"), (None, 2, "-"), (-0.0213, 3, "-0.021")],
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


@given(st.integers(1, FEWEST_ROWS - 1), st.floats(0.01, 1))
def test_rows_that_are_needed_make_the_interval_useful(n, width):
    rows = rows_needed(n, Ends(0.0, width))
    assert width * math.sqrt(n / rows) <= USEFUL_WIDTH * (1 + 1e-9)
