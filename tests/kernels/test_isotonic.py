"""Isotonic regression has the bits of scipy's."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from fastece.kernels import isotonic
from fastece.reliability.isotonic import fit_isotonic

rng = np.random.default_rng(0)


def noisy_values(n):
    return np.linspace(0, 1, n) + rng.normal(0, 0.2, n)


CASES = {
    "one value": (np.array([0.3]), np.array([2.0])),
    "rising": (np.arange(5.0), np.ones(5)),
    "falling": (np.arange(5.0)[::-1].copy(), np.arange(1.0, 6.0)),
    "equal": (np.full(4, 0.1), np.array([1.0, 0.2, 0.3, 4.0])),
    **{f"noise, {n} values": (noisy_values(n), rng.random(n) + 0.01) for n in (2, 3, 7, 50, 400)},
    **{f"ties, {n} values": (rng.integers(0, 4, n) / 3, np.ones(n)) for n in (2, 3, 7, 50, 400)},
}


@pytest.mark.parametrize("name", CASES)
def test_fit_has_the_bits_of_scipy(name):
    value, weight = CASES[name]
    expected = isotonic_regression(value, weights=weight)
    fit = fit_isotonic(value, weight)
    np.testing.assert_array_equal(fit.values, expected.x)
    np.testing.assert_array_equal(fit.first, expected.blocks)


def test_kernel_leaves_means_and_weights_of_the_blocks():
    value = np.array([1.0, 3.0, 2.0, 2.0, 5.0])
    weight = np.array([1.0, 1.0, 1.0, 2.0, 1.0])
    first = np.empty(6, np.int64)
    assert isotonic.pool_falling_values(value, weight, first) == 3
    assert value[:3].tolist() == [1.0, 2.25, 5.0]
    assert weight[:3].tolist() == [1.0, 4.0, 1.0]
    assert first[:4].tolist() == [0, 1, 4, 5]


def test_fit_leaves_its_arguments_alone():
    value = np.array([2.0, 1.0])
    weight = np.array([1.0, 3.0])
    assert fit_isotonic(value, weight).values.tolist() == [1.25, 1.25]
    assert value.tolist() == [2.0, 1.0]
    assert weight.tolist() == [1.0, 3.0]
