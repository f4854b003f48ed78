"""Numbers as text, with as many digits as their intervals justify, and as JSON."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

# Smaller numbers are rounding, and shown as 0.
ROUNDING = 1e-9
# Decimals of a number without an interval, and the most that any number has.
USUAL_DECIMALS, MOST_DECIMALS = 4, 5
SMALLEST = f"{10**-MOST_DECIMALS:.{MOST_DECIMALS}f}"
# Smaller p-values are shown as an inequality.
SMALLEST_P = 1e-4


class ConfidenceInterval(NamedTuple):
    """Ends of a confidence interval: floats, or an array with one for each class."""

    low: Any
    high: Any

    def reaching(self, least: Any) -> "ConfidenceInterval":
        """Raise the high ends to at least some numbers."""
        high = np.maximum(self.high, least)
        return ConfidenceInterval(self.low, high if high.ndim else float(high))


@dataclass(frozen=True)
class Number:
    """A number with the digits that its interval is worth, or in a format of its own."""

    value: Any
    interval: ConfidenceInterval | None = None
    form: str = ""

    def __str__(self) -> str:
        if self.form and self.value is not None and not math.isnan(self.value):
            return f"{self.value:{self.form}}"
        return format_number(self.value, decimals(self.interval), self.interval is None)


@dataclass(frozen=True)
class PValue:
    """A p-value; None where there is no test."""

    value: Any

    def __str__(self) -> str:
        return format_p(self.value)


def decimals(interval: ConfidenceInterval | None) -> int:
    """Count the decimals at which the width of an interval has two digits."""
    width = math.nan if interval is None else interval.high - interval.low
    if not 0 < width < math.inf:
        return USUAL_DECIMALS
    return min(max(1 - math.floor(math.log10(width)), 2), MOST_DECIMALS)


def format_number(
    value: float | None, places: int = USUAL_DECIMALS, shows_first_digit: bool = True
) -> str:
    """Write a number with `places` decimals; show the first digit of small ones.

    0 and 1 are written as they are, and "-" stands for no number; what is smaller than the smallest
    number of `MOST_DECIMALS` is shown as an inequality.
    """
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value) or value == 1 or abs(value) < ROUNDING:
        return f"{abs(value) if abs(value) < 1 else value:.0f}"
    text = f"{value:.{places}f}"
    first_digit = -math.floor(math.log10(abs(value)))
    if shows_first_digit and float(text) == 0 and first_digit <= MOST_DECIMALS:
        text = f"{value:.{first_digit}f}"
    if float(text) != 0:
        return text
    if shows_first_digit or places == MOST_DECIMALS:
        return f"<{SMALLEST}" if value > 0 else f">-{SMALLEST}"
    return text.lstrip("-")


def format_interval(interval: ConfidenceInterval | None) -> str:
    """Write an interval in brackets, with as many digits as it is worth."""
    if interval is None or interval.low is None or math.isnan(interval.low):
        return "-"
    low, high = (format_number(end, decimals(interval)) for end in interval)
    return f"[{low}, {high}]"


def format_p(p_value: float | None) -> str:
    """Write a p-value with two digits; "<0.0001" where it is smaller than that."""
    if p_value is None or math.isnan(p_value):
        return "-"
    if p_value < SMALLEST_P:
        return f"<{SMALLEST_P:.4f}"
    return f"{p_value:.2g}" if p_value < 0.0995 else f"{p_value:.2f}"


def format_cell(cell: Any) -> str:
    """Write one cell of a table, or one fact."""
    if isinstance(cell, ConfidenceInterval):
        return format_interval(cell)
    if isinstance(cell, str | Number | PValue | bool):
        return str(cell)
    return f"{cell}" if isinstance(cell, Integral) else format_number(cell)


def count_of(number: int, name: str) -> str:
    """Write a number of rows, or of files."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def first_of(rows: Sequence[int], row: Callable[[int], str] = "row {}".format) -> str:
    """Name the first of some rows, and write how many more there are."""
    more = f" and {count_of(len(rows) - 1, 'more row')}" if len(rows) > 1 else ""
    return row(rows[0]) + more


def to_plain(value: Any) -> Any:
    """Convert a value to plain Python: nan to None, infinities to "inf" and "-inf".

    Arrays and sequences become lists, numpy's numbers become Python's, and objects with a method
    `to_dict` become its result.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
