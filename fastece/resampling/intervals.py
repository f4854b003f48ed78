"""Intervals and p-values from replicates of a statistic.

T is the value on the data and T* are its replicates, of which there are R. Intervals take
``q(a)``, the quantile of the replicates at the level a, by numpy's linear rule.
"""

from typing import Any

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.kernels.types import F64


def as_float(value: Any) -> Any:
    """Return a float for an array without dimensions, or the array itself."""
    value = np.asarray(value, np.float64)
    return value if value.ndim else float(value)


def check_level(value: Any) -> float:
    """Return a checked confidence level."""
    level = check_real("confidence_level", value, 0.0, 1.0)
    if not 0 < level < 1:
        raise InputError("confidence_level", "must be between 0 and 1", value=value)
    return level


def tails_of(level: float) -> F64:
    """Return the levels of the two quantiles that enclose the share `level`."""
    return np.array([(1 - level) / 2, (1 + level) / 2])


def p_value_of(statistic: Any, replicates: F64) -> Any:
    """Compute the p-value ``(1 + #{T* >= T}) / (R + 1)`` of a statistic.

    The data count as one of the replicates, so that the level of the test is exact: Davison and
    Hinkley (1997), "Bootstrap methods and their application", eq. 4.11.

    Parameters
    ----------
    statistic : float or (K,) float64 array
        T.
    replicates : (R,) or (K, R) float64 array
        T* under the null hypothesis.

    Returns
    -------
    float or (K,) float64 array
        Nan where T or one of T* is.
    """
    statistic = np.asarray(statistic)
    n_as_large = (replicates >= statistic[..., None]).sum(-1)
    p_value = (1 + n_as_large) / (replicates.shape[-1] + 1)
    is_unknown = np.isnan(statistic) | np.isnan(replicates).any(-1)
    return as_float(np.where(is_unknown, np.nan, p_value))


def quantiles(distribution: F64, levels: F64) -> F64:
    """Compute quantiles (..., L) of each line (..., R), by numpy's linear rule.

    All lines have the same levels (L,), or each has its own (..., L). Nan where a line or a level
    is.
    """
    if levels.ndim < distribution.ndim:
        return np.moveaxis(quantiles_of_lines(distribution, levels), 0, -1)
    ends = np.full(levels.shape, np.nan)
    for line in np.ndindex(distribution.shape[:-1]):
        if not np.isnan(levels[line]).any():
            ends[line] = quantiles_of_lines(distribution[line], levels[line])
    return ends


def quantiles_of_lines(distribution: F64, levels: F64) -> F64:
    """Compute quantiles (L, ...) at levels (L,).

    Between a finite number and an infinite one the quantile is infinite.
    """
    if not np.isinf(distribution).any():
        return np.asarray(np.quantile(distribution, levels, axis=-1))
    with np.errstate(invalid="ignore"):  # numpy takes the difference of two infinities
        ends = np.quantile(distribution, levels, axis=-1)
        below, above = (
            np.quantile(distribution, levels, axis=-1, method=method)
            for method in ("lower", "higher")
        )
        return np.where(np.isinf(below) | np.isinf(above), below + above, ends)


def percentile_ends(distribution: F64, level: float) -> F64:
    """Compute the ends (..., 2) of the percentile interval, ``q(a)`` and ``q(1 - a)``.

    With ``a = (1 - level) / 2``: Efron and Tibshirani (1993), "An introduction to the bootstrap",
    eq. 13.5.
    """
    return quantiles(distribution, tails_of(level))


def basic_ends(value: Any, distribution: F64, level: float) -> F64:
    """Compute the ends (..., 2) of the basic interval.

    They are ``2 T - q(1 - a)`` and ``2 T - q(a)`` with ``a = (1 - level) / 2``. The spread of T*
    around T stands for the spread of T around the truth, so that a bias of T is taken off: Davison
    and Hinkley (1997), eq. 5.6.
    """
    ends = percentile_ends(distribution, level)
    return np.asarray(2 * np.asarray(value)[..., None] - ends[..., ::-1])


def bca_ends(value: Any, distribution: F64, acceleration: Any, level: float) -> F64:
    """Compute the ends (..., 2) of the BCa interval, quantiles at corrected levels."""
    levels = bca_levels(value, distribution, acceleration, tails_of(level))
    return quantiles(distribution, levels)


def bca_levels(value: Any, distribution: F64, acceleration: Any, tails: F64) -> F64:
    """Compute the quantile levels (..., 2) of the ends of a BCa interval.

    They are ``Phi(z0 + (z0 + z) / (1 - a (z0 + z)))`` with the normal quantiles z of the tails, the
    bias ``z0 = Phi^-1(#{T* < T} / R)``, in which replicates equal to T count half, and the
    acceleration a: Efron (1987), "Better bootstrap confidence intervals", eq. 2.3. Nan where all
    replicates are on one side of T.
    """
    from scipy.special import ndtr, ndtri

    value = np.asarray(value)[..., None]
    acceleration = np.asarray(acceleration)[..., None]
    share_below = (distribution < value).mean(-1, keepdims=True)
    share_up_to = (distribution <= value).mean(-1, keepdims=True)
    share = (share_below + share_up_to) / 2
    share = np.where((share > 0) & (share < 1), share, np.nan)
    bias = ndtri(share)
    z = bias + ndtri(tails)
    levels: F64 = ndtr(bias + z / (1 - acceleration * z))
    return levels


def accelerate(jackknife_values: F64, copies: F64 | None = None) -> F64:
    """Compute the acceleration (...) of a BCa interval from jackknife values (..., P).

    It is ``sum_p d_p**3 / (6 (sum_p d_p**2)**1.5)``, where d_p is the mean of the jackknife values
    minus the value without part p: Efron (1987), eq. 7.3. It is 0 where all of them are equal up
    to rounding. Part p is there `copies[p]` times.
    """
    n = np.ones(jackknife_values.shape[-1]) if copies is None else copies
    mean = np.average(jackknife_values, axis=-1, weights=copies, keepdims=True)
    gap = mean - jackknife_values
    squares = (n * gap**2).sum(-1)
    cubes = (n * gap**3).sum(-1)
    # Leaving out one of many rows hardly changes a value.
    are_equal = squares <= 1e-24 * jackknife_values.shape[-1] / max(1.0, n.mean())
    acceleration = cubes / (6 * np.where(are_equal, 1.0, squares) ** 1.5)
    return np.where(are_equal, 0.0, acceleration)
