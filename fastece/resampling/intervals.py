"""Confidence intervals from a bootstrap distribution."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.parameters import check_real
from fastece.document.numbers import ConfidenceInterval as ConfidenceInterval
from fastece.typing import F64

Method = Literal["basic", "percentile", "bca"]
METHODS = get_args(Method)


def as_float(value: Any) -> Any:
    """Return a float for an array without dimensions, or the array itself."""
    value = np.asarray(value, np.float64)
    return value if value.ndim else float(value)


def of_parts(parts: Sequence[Any], level: float, per_class: bool) -> ConfidenceInterval:
    """Compute the interval of each part at a level, or of the only one."""
    ends = np.array([part.interval(level) for part in parts], np.float64).reshape(-1, 2)
    return ConfidenceInterval(*(ends.T.copy() if per_class else ends[0].tolist()))


def check_level(value: Any) -> float:
    """Return a checked confidence level."""
    level = check_real("confidence_level", value, 0.0, 1.0)
    if not 0 < level < 1:
        raise InputError("confidence_level", "must be between 0 and 1", value=value)
    return level


def tails_of(level: float) -> F64:
    """Return the levels of the two quantiles that enclose the share `level`."""
    return np.array([(1 - level) / 2, (1 + level) / 2])


def p_value_of(statistic: Any, values: F64) -> Any:
    """Compute the p-value of a statistic T from replicates T* (..., R).

    ``(1 + #{T* >= T}) / (R + 1)`` of each line.

    Nan where one of them is.
    """
    statistic = np.asarray(statistic)
    p = (1 + (values >= statistic[..., None]).sum(-1)) / (values.shape[-1] + 1)
    return as_float(np.where(np.isnan(statistic) | np.isnan(values).any(-1), np.nan, p))


def quantiles(distribution: F64, levels: F64) -> F64:
    """Compute quantiles (..., L) of each line (..., R), by numpy's linear rule.

    At the same levels (L,), or each at its own (..., L). nan where a line or a level is.
    """
    if levels.ndim < distribution.ndim:
        return np.moveaxis(np.quantile(distribution, levels, axis=-1), 0, -1)
    out = np.full(levels.shape, np.nan)
    for line in np.ndindex(distribution.shape[:-1]):
        if not np.isnan(levels[line]).any():
            out[line] = np.quantile(distribution[line], levels[line])
    return out


def acceleration_of(values: F64) -> Any:
    """Compute the acceleration of BCa intervals from jackknife values (..., groups).

    It is a sixth of their skewness.

    Efron (1987), "Better bootstrap confidence intervals", eq. 7.3; 0 where all values are equal.
    """
    gap = values.mean(-1, keepdims=True) - values
    square = (gap**2).sum(-1)
    nothing = square <= 1e-24 * values.shape[-1]  # rounding of equal values
    skew = (gap**3).sum(-1)
    return np.where(nothing, 0.0, skew / (6 * np.where(nothing, 1.0, square) ** 1.5))


def bca_levels(estimate: Any, distribution: F64, acceleration: Any, tails: F64) -> F64:
    """Compute the quantile levels (..., 2) of the ends of a BCa interval.

    Efron (1987), eq. 2.3.

    Replicates equal to the estimate count half. nan where all are on one side of it.
    """
    from scipy.special import ndtr, ndtri

    estimate, acceleration = np.asarray(estimate)[..., None], np.asarray(acceleration)[..., None]
    below = (distribution < estimate).mean(-1, keepdims=True)
    share = (below + (distribution <= estimate).mean(-1, keepdims=True)) / 2
    share = np.where((share > 0) & (share < 1), share, np.nan)
    z = ndtri(share) + ndtri(tails)
    levels: F64 = ndtr(ndtri(share) + z / (1 - acceleration * z))
    return levels
