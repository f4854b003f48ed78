"""Roots and the steps to them are those of scipy."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from fastece.inference.roots import find_root

FUNCTIONS = {
    "a line": lambda x: x - 0.3,
    "a cubic": lambda x: x**3 - 2 * x - 0.1,
    "saturated": lambda x: math.tanh(40 * (x - 0.7)),
    "steep": lambda x: math.exp(20 * x) - 1000,
    "a jump": lambda x: math.copysign(1.0, x - 0.6),
    "a root at a bound": lambda x: x - 1,
    "infinite at a bound": lambda x: np.inf if x == 1 else x - np.float64(0.3) ** 2,
}


@pytest.mark.parametrize("tolerance", [2e-12, 1e-9, 1e-3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_to_a_root_are_those_of_scipy(name, tolerance):
    expected_points = []
    points = []

    def call(x, visited):
        visited.append(x)
        return FUNCTIONS[name](x)

    low, high = (-1.0, 1.0) if name != "a cubic" else (0.0, 3.0)
    expected = brentq(call, low, high, args=(expected_points,), xtol=tolerance)
    assert find_root(lambda x: call(x, points), low, high, tolerance) == expected
    assert points == expected_points


def test_random_cubics_have_the_roots_of_scipy():
    rng = np.random.default_rng(0)
    n_roots = 0
    for _ in range(500):
        cubic = np.polynomial.Polynomial(rng.normal(size=4))
        low, high = np.sort(rng.normal(size=2)).tolist()
        if cubic(low) * cubic(high) < 0:
            n_roots += 1
            assert find_root(cubic, low, high) == brentq(cubic, low, high)
    assert n_roots > 100


def test_bounds_of_the_same_sign_are_refused():
    with pytest.raises(ValueError, match="same sign at both bounds"):
        find_root(lambda x: x * x + 1, -1.0, 1.0)


def test_a_search_without_end_is_refused():
    with pytest.raises(RuntimeError, match="no root was found in 100 steps"):
        find_root(lambda x: math.copysign(1.0, x), -1.0, 1e300, tolerance=1e-320)
