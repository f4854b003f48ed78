"""Numbers as text, with as many digits as their intervals justify, and as JSON."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import to_printable

# Numbers of a smaller size are rounding errors, and shown as 0.
SHOWN_AS_ZERO = 1e-9
# Decimals of a number without an interval, and the limits where an interval decides.
USUAL_DECIMALS = 4
MIN_DECIMALS = 2
MAX_DECIMALS = 5
# 1 where an interval has so few decimals that it may be rounded.
ONE = f"{1:.{MIN_DECIMALS}f}"
# Decimals of a score that cuts, unless it is near 0 or 1.
MIN_DECIMALS_OF_SCORE = 3
# Weights from here to `MAX_WRITTEN_WEIGHT` have all digits before the point, and none behind it;
# larger ones are powers of ten.
MIN_WHOLE_WEIGHT = 1e6
MAX_WRITTEN_WEIGHT = 1e15
# Shares that differ by this part of the smaller one, or of its distance from 1, look different.
MIN_RELATIVE_DIFFERENCE = 0.01
# Numbers from which a ratio or a slope is written with a power of ten.
MIN_POWER_OF_TEN = 1e6
# The smallest number that is written; smaller ones are shown as an inequality.
SMALLEST_TEXT = f"{10**-MAX_DECIMALS:.{MAX_DECIMALS}f}"
# Smaller p-values are shown as an inequality.
MIN_P_VALUE = 1e-4
# Larger p-values are written with two decimals, smaller ones with two digits.
MAX_P_VALUE_OF_DIGITS = 0.0995


class ConfidenceInterval(NamedTuple):
    """Ends of a confidence interval: floats, or an array with one for each class."""

    low: Any
    high: Any

    def reaching(self, minimum: Any) -> "ConfidenceInterval":
        """Raise the high ends to a minimum, or to one for each class."""
        high = np.maximum(self.high, minimum)
        return ConfidenceInterval(self.low, high if high.ndim else float(high))


@dataclass(frozen=True)
class Number:
    """A number with the digits that its interval is worth, or in a format of its own.

    Attributes
    ----------
    value : float or None
    interval : ConfidenceInterval or None
    form : str
        A format of Python such as ".4f", "" for the digits of the interval.
    """

    value: Any
    interval: ConfidenceInterval | None = None
    form: str = ""

    def __str__(self) -> str:
        if self.form and self.value is not None and not math.isnan(self.value):
            return f"{self.value:{self.form}}"
        has_interval = self.interval is not None
        places = decimals(self.interval)
        return format_number(self.value, places, shows_first_digit=not has_interval)


@dataclass(frozen=True)
class PValue:
    """A p-value; None where there is no test.

    Attributes
    ----------
    value : float or None
    smallest : float or None
        The smallest p-value that so many draws can give; None for a p-value without draws.
    """

    value: Any
    smallest: float | None = None

    def __str__(self) -> str:
        return format_p(self.value, self.smallest)


# --- text -----------------------------------------------------------------------------------


def decimals(interval: ConfidenceInterval | None) -> int:
    """Count the decimals at which the width of an interval has two digits."""
    if interval is None:
        return USUAL_DECIMALS
    width = interval.high - interval.low
    if not 0 < width < math.inf:
        return USUAL_DECIMALS
    return min(max(1 - math.floor(math.log10(width)), MIN_DECIMALS), MAX_DECIMALS)


def format_number(
    value: float | None, places: int = USUAL_DECIMALS, shows_first_digit: bool = True
) -> str:
    """Write a number with a number of decimals; "-" where there is none.

    Parameters
    ----------
    value : float or None
        0, 1 and infinities are written without decimals.
    places : int
        Decimals.
    shows_first_digit : bool
        Whether a number that would be written as 0 gets as many decimals as it needs, or is shown
        as an inequality where it needs more than `MAX_DECIMALS`.
    """
    if value is None or math.isnan(value):
        return "-"
    if abs(value) < SHOWN_AS_ZERO:
        return "0"
    if math.isinf(value) or abs(value - 1) < SHOWN_AS_ZERO:
        return f"{value:.0f}"
    if abs(value) >= MIN_POWER_OF_TEN:
        return f"{value:.1e}"
    text = f"{value:.{places}f}"
    if float(text) != 0:
        return text
    decimals_of_first_digit = -math.floor(math.log10(abs(value)))
    if shows_first_digit and decimals_of_first_digit <= MAX_DECIMALS:
        text = f"{value:.{decimals_of_first_digit}f}"
        if float(text) != 0:
            return text
    if shows_first_digit or places == MAX_DECIMALS:
        return f"<{SMALLEST_TEXT}" if value > 0 else f">-{SMALLEST_TEXT}"
    return text.lstrip("-")


def holds(interval: ConfidenceInterval, value: Any) -> Any:
    """Return whether an interval, or the one of each class, holds a value."""
    is_high = np.greater_equal(value, np.subtract(interval.low, SHOWN_AS_ZERO))
    return is_high & np.less_equal(value, np.add(interval.high, SHOWN_AS_ZERO))


def outside_text(value: float, interval: ConfidenceInterval | None) -> str:
    """Write that noise puts a value outside its interval; "" where it is inside."""
    if interval is None or interval.low is None or math.isnan(interval.low):
        return ""
    is_inside = holds(interval, value)
    return "" if is_inside or math.isnan(value) else "noise puts the value outside its interval"


def format_interval(interval: ConfidenceInterval | None) -> str:
    """Write an interval in brackets, with as many digits as it is worth."""
    if interval is None or interval.low is None or math.isnan(interval.low):
        return "-"
    low, high = (format_number(end, decimals(interval)) for end in interval)
    if low == "0" and high == ONE:
        # All shares are possible: the end is no better known than the 0.
        return "[0, 1]"
    return f"[{low}, {high}]"


def form_of_score(score: float) -> str:
    """Return the format of a score that cuts: two digits of its distance from 0 or 1."""
    distance = min(score, 1 - score)
    if math.isnan(score) or distance < SHOWN_AS_ZERO:
        return ".0f"
    places = max(MIN_DECIMALS_OF_SCORE, 1 - math.floor(math.log10(distance)))
    return f".{places}f"


def form_of_weight(weight: float) -> str:
    """Return the format of a sum of weights: seven digits, or all before the point."""
    is_written = MIN_WHOLE_WEIGHT <= weight < MAX_WRITTEN_WEIGHT
    return ".0f" if is_written else ".7g"


def format_p(p_value: float | None, smallest: float | None = None) -> str:
    """Write a p-value with two digits, or as an inequality where it is too small.

    A p-value from draws that is the `smallest` they can give shows only that it is no larger.
    """
    if p_value is None or math.isnan(p_value):
        return "-"
    if p_value < MIN_P_VALUE:
        return f"<{MIN_P_VALUE:.4f}"
    if smallest is not None and p_value <= smallest * (1 + SHOWN_AS_ZERO):
        return f"<={smallest:.2g}"
    return f"{p_value:.2g}" if p_value < MAX_P_VALUE_OF_DIGITS else f"{p_value:.2f}"


def equate_p(p_value: float, smallest: float | None = None) -> str:
    """Write a p-value in a sentence: p = 0.02, p < 0.0001 or p <= 0.0005."""
    text = format_p(p_value, smallest)
    number = text.lstrip("<=")
    sign = text.removesuffix(number) or "="
    return f"p {sign} {number}"


def smallest_p(n_resamples: int) -> float:
    """Return the smallest p-value that a number of replicates can give."""
    return 1 / (n_resamples + 1)


def format_cell(cell: Any) -> str:
    """Write one cell of a table, or one fact."""
    if isinstance(cell, ConfidenceInterval):
        return format_interval(cell)
    if isinstance(cell, str):
        return to_printable(cell).replace("\n", "\\n")
    if isinstance(cell, Number | PValue | bool):
        return str(cell)
    return f"{cell}" if isinstance(cell, Integral) else format_number(cell)


def format_percent(share: float, places: int = 1) -> str:
    """Write a share in percent, with a number of decimals.

    It is rounded as the share itself is in a table, with two decimals more. A share that would be
    written as 0 % is shown as an inequality.
    """
    rounded_share = float(f"{share:.{places + 2}f}")
    if rounded_share == 0 < share:
        return f"<{10**-places:.{places}f} %"
    return f"{100 * rounded_share:.{places}f} %"


def format_percents(*shares: float, places: int = 1) -> list[str]:
    """Write shares in percent that are compared, so that one sees how they differ.

    All have as many decimals, at least so many `places`, as the one nearest to 0 or 1 needs for two
    digits of its distance from there, unless another one is ten times as far; and one more where
    shares that differ by a hundredth of that distance would be written alike.
    """
    distances = [min(share, 1 - share) for share in shares if 0 < share < 1]
    if distances:
        least = min(distances)
        if max(distances) > 10 * least:
            least = max(distances)
        least = max(least, SHOWN_AS_ZERO)
        places = min(max(places, -1 - math.floor(math.log10(least))), MAX_DECIMALS)
        texts = {format_percent(share, places) for share in shares}
        if len(texts) == 1 and max(shares) - min(shares) >= least * MIN_RELATIVE_DIFFERENCE:
            places = min(places + 1, MAX_DECIMALS)
    return [format_percent(share, places) for share in shares]


def count_of(number: int, name: str) -> str:
    """Write a number of rows, or of files, with their name."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def first_of(rows: Sequence[int], row: Callable[[int], str] = "row {}".format) -> str:
    """Name the first of several rows, and write how many more there are."""
    if len(rows) == 1:
        return row(rows[0])
    return f"{row(rows[0])} and {count_of(len(rows) - 1, 'more row')}"


# --- JSON -----------------------------------------------------------------------------------


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
