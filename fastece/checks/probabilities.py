"""Probabilities and logits: shapes, values and names of columns."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.arrays import (
    are_whole,
    as_real,
    find_extremes,
    refuse_infinite,
    refuse_where,
    row_slices,
)
from fastece.checks.errors import InputError, RowsWarning, warn

# float32 softmax exceeds 1 by a few 1e-7; values outside by no more than this are clipped.
TOLERANCE = 1e-6
# float64 scalars, so that a float32 array is compared as the float64 it equals
LOWEST, HIGHEST = np.float64(-TOLERANCE), np.float64(1 + TOLERANCE)
# Rows of a class vector further than this from summing to 1 are worth a warning.
ROW_SUM_TOLERANCE = 1e-3
# Twice the relative rounding of the short floats: a softmax rounds its divisor and its quotient.
SHORT_FLOATS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
# What an entry below the normal numbers of float16 may lose besides.
LEAST_HALF = 2.0**-25
# Standard normal logits lie in [0, 1] with probability 0.34, ten of them with 2e-5.
TOO_FEW = 10


def as_probabilities(value: Any, name: str = "y_prob") -> NDArray[Any]:
    """Read probabilities or logits (n,) or (n, K), their values not yet checked."""
    array = as_real(name, value)
    if array.ndim not in (1, 2):
        raise InputError(name, f"must have 1 or 2 dimensions, got shape {array.shape}")
    if array.size == 0:
        raise InputError(name, f"is empty, shape {array.shape}")
    if array.ndim == 2 and array.shape[1] == 1:
        raise InputError(
            name,
            f"one column, shape {array.shape}, is neither P(positive) nor a class vector",
            hint=f"pass {name}[:, 0] for P(positive)",
        )
    return array


def column_names(value: Any) -> list[str]:
    """Return the names of the columns of a data frame as text.

    The list is empty for anything else, and for names that only count from 0, such as 0, 1, 2 or
    p_0, p_1, p_2.
    """
    names = getattr(value, "column_names", getattr(value, "columns", ()))  # first: pyarrow's
    texts = [] if callable(names) else [label_text(name) for name in names]
    return texts if texts and first_number(texts) != 0 else []


def label_text(label: Any) -> str:
    """Write a label or a column's name as text: 1.0 is "1"."""
    is_whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label) if is_whole else label)


def first_number(names: Sequence[str]) -> int | None:
    """Find the first number of column names such as "p0", "p1", else None."""
    word, *others = {name.rstrip("0123456789") for name in names}
    ends = [name[len(word) :] for name in names]
    if others or "" in ends:
        return None
    first = int(ends[0])
    return first if [int(end) - first for end in ends] == list(range(len(ends))) else None


def row_sum_tolerance(value: Any, array: NDArray[Any]) -> float:
    """Return the tolerance for sums of rows, by the dtype they were read from."""
    is_short = array.dtype.char in "ef"  # read from a short float, or from float32
    dtype = str(getattr(value, "dtype", array.dtype)).rpartition(".")[2] if is_short else ""
    if dtype not in SHORT_FLOATS:
        return ROW_SUM_TOLERANCE
    return float(ROW_SUM_TOLERANCE + SHORT_FLOATS[dtype] + LEAST_HALF * array.shape[-1])


def check_probabilities(
    array: NDArray[Any], from_logits: bool, name: str, tolerance: float
) -> bool:
    """Check probabilities or logits; return whether some have to be clipped."""
    if from_logits:
        rule = "logits must be finite or -inf"
        refuse_where(name, rule, array, lambda part: ~(part < math.inf))
        if array.ndim == 2:
            rule = "a row of logits must not be all -inf"
            refuse_where(name, rule, array, lambda z: (z == -math.inf).all(axis=1, keepdims=True))
        return False
    low, high, off = scan_rows(array, tolerance)
    if not (low >= LOWEST and high <= HIGHEST):
        refuse_infinite(name, array)
        rule = f"probabilities must lie in [0, 1] (tolerance {TOLERANCE:g})"
        hint = hint_at(array)
        refuse_where(name, rule, array, lambda p: (p < LOWEST) | (p > HIGHEST), hint)
    if off.size:
        total = float(array[off[0]].sum(dtype=np.float64))
        warn(
            name,
            f"{off.size} of {len(array)} rows do not sum to 1 (tolerance {tolerance:.2g}); "
            f"the first is {name}[{off[0]}] with sum {total!r}",
            kind=RowsWarning,
        )
    return low < 0 or high > 1


def scan_rows(p: NDArray[Any], tolerance: float) -> tuple[float, float, NDArray[np.intp]]:
    """Find the extremes, and the rows (of K) that do not sum to 1, in one pass."""
    if p.ndim == 1:
        return *find_extremes(p), np.empty(0, np.intp)
    ones = np.ones(p.shape[1], p.dtype if p.dtype.char in "fd" else np.float64)
    low, high, off = math.inf, -math.inf, []
    with np.errstate(invalid="ignore", over="ignore"):  # refused later, with a message
        for start, part in row_slices(p):
            low, high = np.minimum(low, part.min()), np.maximum(high, part.max())
            off.append(start + np.flatnonzero(np.abs(part @ ones - 1) > tolerance))
    return float(low), float(high), np.concatenate(off)


def hint_at(p: NDArray[Any]) -> str:
    """Guess the meaning of finite numbers that are not probabilities."""
    low, high = find_extremes(p)
    sums = p[:100].sum(axis=1, dtype=np.float64) if p.ndim == 2 else np.array(100)
    is_percent = low >= 0 and 2 < high <= 100 and bool(np.allclose(sums, 100, atol=1))
    if p.ndim == 1 and are_whole(p):
        percent = ", or percentages: divide by 100?" if is_percent and high > 10 else ""
        return "it looks like labels: {first} comes first" + percent
    if is_percent:
        return "percentages: divide by 100?"
    return "logits: {from_logits}" if low < LOWEST or high > 2 else ""


def warn_if_probabilities(z: NDArray[Any], tolerance: float, name: str = "y_prob") -> None:
    """Warn of logits that all lie in [0, 1], in rows that sum to 1.

    Logits that are all equal cause no warning. The first few rows nearly always decide.
    """
    if len(z) < TOO_FEW:
        return
    for rows in (z[:TOO_FEW], z):
        low, high, off = scan_rows(rows, tolerance)
        if not (low >= 0 and high <= 1) or off.size:
            return
    if low < high:
        sums = " and rows sum to 1" if z.ndim == 2 else ""
        rule = f"all values are in [0, 1]{sums}: probabilities, but {{from_logits}}?"
        warn(name, rule, kind=RowsWarning)


def are_logits(p: NDArray[Any], name: str = "y_prob") -> bool:
    """Decide whether a number is outside [0, 1]; some libraries then assume logits.

    Warn if that may be due to rounding.
    """
    low, high = find_extremes(p)
    outside = low < 0 or high > 1
    if outside and low >= LOWEST and high <= HIGHEST:
        warn(
            name,
            f"goes from {low!r} to {high!r}: taken for logits, since [0, 1] does not hold it, but "
            "rounding may be the reason",
            hint="clip probabilities to [0, 1]",
        )
    return outside
