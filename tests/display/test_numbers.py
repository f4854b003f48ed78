"""Numbers have the digits that they are worth, and JSON what it can hold."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastece.display.numbers import (
    ConfidenceInterval,
    Number,
    decimals,
    format_interval,
    format_number,
    format_p,
    to_plain,
)


@given(st.floats(1e-9, 1), st.floats(0, 1))
def test_an_interval_has_two_digits_of_its_width(width, low):
    interval = ConfidenceInterval(low, low + width)
    places = decimals(interval)
    assert 2 <= places <= 5
    if 1e-4 < width < 0.9:
        assert width * 10 ** decimals(interval) >= 10 or places == 5
    assert format_interval(interval).startswith("[")


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.02149, 3, "0.021"), (0.0, 3, "0"), (1.0, 2, "1"), (0.0002, 3, "0.0002"),
     (2e-18, 3, "0"), (-1e-11, 2, "0"), (math.inf, 2, "inf"), (math.nan, 2, "-"), (None, 2, "-"),
     (-0.0213, 3, "-0.021"), (-math.inf, 2, "-inf"), (-5e-8, 3, ">-0.00001"), (3e-7, 4, "<0.00001"),
     (0.007, 2, "0.01")],
)  # fmt: skip
def test_numbers(value, places, text):
    assert format_number(value, places) == text


def test_no_number_has_more_digits_than_its_interval_is_worth():
    tiny = ConfidenceInterval(0.0, 5e-8)
    assert (str(Number(5e-8, tiny)), format_interval(tiny)) == ("<0.00001", "[0, <0.00001]")
    wide = ConfidenceInterval(0.0004, 0.5)  # which leaves out 0
    assert (str(Number(0.0123, wide)), format_interval(wide)) == ("0.01", "[0.0004, 0.50]")
    assert str(Number(0.01234, form=".4f")) == "0.0123"
    assert str(Number(math.nan, form=".4f")) == "-"


def test_no_interval_and_no_p_value_are_a_dash():
    nowhere = ConfidenceInterval(math.nan, math.nan)
    assert {
        format_interval(None),
        format_interval(nowhere),
        format_p(None),
        format_p(math.nan),
    } == {"-"}


@pytest.mark.parametrize(
    ("p_value", "text"),
    [(0.001, "0.001"), (0.93, "0.93"), (0.0534, "0.053"), (1.0, "1.00"), (1e-7, "<0.0001")],
)
def test_p_values(p_value, text):
    assert format_p(p_value) == text


def test_json_has_null_for_nan_and_words_for_infinities():
    values = {"a": np.array([np.nan, 1.0]), "b": (np.float64(np.inf), -np.inf), 3: np.int64(2)}
    plain = to_plain(values)
    assert plain == {"a": [None, 1.0], "b": ["inf", "-inf"], "3": 2}
    json.dumps(plain, allow_nan=False)
