"""Numbers have the digits that they are worth, and JSON has plain values alone."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastece.display.numbers import (
    ConfidenceInterval,
    Number,
    PValue,
    decimals,
    equate_p,
    first_of,
    format_interval,
    format_number,
    format_p,
    format_percents,
    outside_text,
    to_plain,
)


@given(st.floats(1e-9, 1), st.floats(0, 1))
def test_an_interval_has_two_digits_of_its_width(width, low):
    interval = ConfidenceInterval(low, low + width)
    places = decimals(interval)
    assert 2 <= places <= 5
    if 1e-4 < width < 0.9:
        assert width * 10**places >= 10 or places == 5
    assert format_interval(interval).startswith("[")


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.02149, 3, "0.021"),
        (-0.0213, 3, "-0.021"),
        (0.007, 2, "0.01"),
        # 0, 1 and infinities have no decimals, and rounding errors are 0
        (0.0, 3, "0"),
        (1.0, 2, "1"),
        (1 - 1e-12, 2, "1"),
        (2e-18, 3, "0"),
        (-1e-11, 2, "0"),
        (math.inf, 2, "inf"),
        (-math.inf, 2, "-inf"),
        # small numbers show their first digit, or an inequality
        (0.0002, 3, "0.0002"),
        (3e-7, 4, "<0.00001"),
        (-5e-8, 3, ">-0.00001"),
        # no number
        (math.nan, 2, "-"),
        (None, 2, "-"),
    ],
)
def test_a_number_has_its_places_or_its_first_digit(value, places, text):
    assert format_number(value, places) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, 1.0, "[0, 1]"),
        (0.0, 0.997, "[0, 1]"),
        (0.0, 0.99, "[0, 0.99]"),
        (0.003, 0.997, "[0.003, 1.00]"),
        (0.77, 1.003, "[0.77, 1.00]"),
    ],
)
def test_an_interval_of_all_shares_has_whole_ends(low, high, text):
    assert format_interval(ConfidenceInterval(low, high)) == text


def test_no_number_has_more_digits_than_its_interval_is_worth():
    tiny = ConfidenceInterval(0.0, 5e-8)
    assert (str(Number(5e-8, tiny)), format_interval(tiny)) == ("<0.00001", "[0, <0.00001]")
    wide = ConfidenceInterval(0.0004, 0.5)  # which leaves out 0
    assert (str(Number(0.0123, wide)), format_interval(wide)) == ("0.01", "[0.0004, 0.50]")


def test_a_number_with_a_format_has_no_other_digits():
    assert str(Number(0.01234, form=".4f")) == "0.0123"
    assert str(Number(math.nan, form=".4f")) == "-"


@pytest.mark.parametrize("interval", [None, ConfidenceInterval(math.nan, math.nan)])
@pytest.mark.parametrize("p_value", [None, math.nan])
def test_no_interval_and_no_p_value_are_a_dash(interval, p_value):
    assert (format_interval(interval), format_p(p_value)) == ("-", "-")


@pytest.mark.parametrize(
    ("p_value", "text"),
    [(0.001, "0.001"), (0.93, "0.93"), (0.0534, "0.053"), (1.0, "1.00"), (1e-7, "<0.0001")],
)
def test_p_values_have_two_digits_or_an_inequality(p_value, text):
    assert format_p(p_value) == text


@pytest.mark.parametrize(
    ("p_value", "smallest", "text"),
    [
        (0.0005, 1 / 2000, "p <= 0.0005"),
        (0.001, 1 / 2000, "p = 0.001"),
        (1 / 3, 1 / 3, "p <= 0.33"),
        (1e-7, None, "p < 0.0001"),
        (1e-5, 1e-5, "p < 0.0001"),
        (0.93, 1 / 2000, "p = 0.93"),
    ],
)
def test_the_smallest_p_value_of_draws_is_an_upper_bound(p_value, smallest, text):
    assert equate_p(p_value, smallest) == text
    assert str(PValue(p_value, smallest)) == text.removeprefix("p ").removeprefix("= ").replace(
        " ", ""
    )


@pytest.mark.parametrize(
    ("value", "interval", "is_outside"),
    [
        (0.2, ConfidenceInterval(0.1, 0.3), False),
        (0.3, ConfidenceInterval(0.1, 0.3), False),
        (0.31, ConfidenceInterval(0.1, 0.3), True),
        (0.05, ConfidenceInterval(0.1, 0.3), True),
        (0.31, None, False),
        (math.nan, ConfidenceInterval(0.1, 0.3), False),
        (0.31, ConfidenceInterval(math.nan, math.nan), False),
    ],
)
def test_a_value_outside_its_interval_has_a_word_beside_it(value, interval, is_outside):
    assert outside_text(value, interval) == is_outside * "noise puts the value outside its interval"


@pytest.mark.parametrize(
    ("rows", "text"),
    [([4], "row 4"), ([4, 9], "row 4 and 1 more row"), ([0, 1, 2], "row 0 and 2 more rows")],
)
def test_the_first_of_several_rows_is_named_and_the_others_counted(rows, text):
    assert first_of(rows) == text


def test_json_has_null_for_nan_and_words_for_infinities():
    values = {"a": np.array([np.nan, 1.0]), "b": (np.float64(np.inf), -np.inf), 3: np.int64(2)}
    plain = to_plain(values)
    assert plain == {"a": [None, 1.0], "b": ["inf", "-inf"], "3": 2}
    json.dumps(plain, allow_nan=False)


@pytest.mark.parametrize(
    ("shares", "texts"),
    [
        ((0.00076, 0.00102), ["0.076 %", "0.102 %"]),
        ((0.068, 0.074), ["6.8 %", "7.4 %"]),
        ((0.003, 0.0034), ["0.30 %", "0.34 %"]),
        # Two digits would be 1.0 for both, and they differ by 3 %.
        ((0.0101, 0.0104), ["1.01 %", "1.04 %"]),
        ((0.5, 0.5004), ["50.0 %", "50.0 %"]),
        ((0.9995, 0.9997), ["99.950 %", "99.970 %"]),
        # Nothing is gained by digits of a rate that is ten times as small.
        ((1e-9, 0.05), ["<0.1 %", "5.0 %"]),
        ((1e-17, 2e-17), ["<0.00001 %", "<0.00001 %"]),
        ((0.0, 1 / 3), ["0.0 %", "33.3 %"]),
        ((0.1625, 1.0), ["16.3 %", "100.0 %"]),
    ],
)
def test_rates_have_the_digits_that_show_how_they_differ(shares, texts):
    assert format_percents(*shares) == texts


@given(st.floats(1e-5, 0.4), st.floats(1.02, 2))
def test_rates_that_differ_by_two_percent_look_different(rate, ratio):
    assert len({*format_percents(rate, rate * ratio)}) == 2
    assert len({*format_percents(1 - rate, 1 - rate * ratio)}) == 2
