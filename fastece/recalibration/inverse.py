"""The smallest number from which on a condition holds, by bisection of the bits of float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels.types import F64, I64

# As an integer, the bits of a negative number are this plus the bits of its absolute value.
SIGN_BIT = np.int64(-(2**63))


def smallest_numbers(
    holds: Callable[[F64], NDArray[Any]], low: float, high: float, size: int
) -> F64:
    """Find the smallest number (n,) from low to high for which a condition holds.

    Parameters
    ----------
    holds : callable
        It takes numbers (n,), and returns whether entry i of them fulfils condition i: from some
        number on it does.
    low, high : float
    size : int
        The number of conditions.

    Returns
    -------
    (n,) float64 array
        The next number above `high` where the condition never holds.

    Notes
    -----
    Numbers are halved by their place among all float64, so that the search ends after 64 steps at
    the number itself, near 0 as well.
    """
    first, last = place_among_numbers(np.array([low, high]))
    below = np.full(size, first)
    end = np.full(size, last + 1)
    while (below < end).any():
        middle = (below & end) + ((below ^ end) >> 1)  # their mean, without overflow
        is_enough = holds(number_at(middle))
        end = np.where(is_enough, middle, end)
        below = np.where(is_enough, below, np.minimum(middle + 1, end))
    return number_at(end)


def place_among_numbers(number: F64) -> I64:
    """Count the float64 between 0 and each number, negative below 0."""
    bits = number.view(np.int64)
    return np.where(bits >= 0, bits, SIGN_BIT - bits)


def number_at(place: I64) -> F64:
    """Return the float64 at each place among all of them."""
    return np.where(place >= 0, place, SIGN_BIT - place).view(np.float64)
