"""Probabilities of logits, compiled and as plain Python, against numpy's."""

import numpy as np
import pytest

from fastece.kernels import logits
from helpers.kernel_forms import forms


def test_exponential_is_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(10)
    x = np.concatenate([-rng.exponential(s, 600) for s in (1e-9, 1e-3, 1, 30, 200)])
    x = np.concatenate([x, [0.0, -0.0, -708.0, -708.1, -745.0, -1e300, -np.inf]])
    expected = np.where(x >= logits.LOWEST_EXPONENT, np.exp(x), 0.0)
    for kernel in forms(logits.exponential):
        e = x.copy()
        kernel(e, np.empty_like(x))
        assert (abs(e - expected) <= 2 * np.spacing(expected)).all()
        assert (e[-4:] == 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [1, 2, 10, 200, logits.BLOCK + 3])
def test_softmax_is_right_to_rounding(dtype, n_classes):
    rng = np.random.default_rng(11)
    n = 2 * max(1, logits.BLOCK // n_classes) + 3  # two whole blocks and a part of one
    z = (30 * rng.standard_normal((n, n_classes))).astype(dtype)
    z[rng.random(z.shape) < 0.1] = -np.inf
    z[:, 0] = np.where(np.isinf(z).all(axis=1), 3.0, z[:, 0])
    z[:2] = 1e30  # equal, and their exponentials beyond every float
    top = z.max(axis=1).astype(np.float64)
    below = z.astype(np.float64) - top[:, None]
    p = np.exp(below)
    p /= p.sum(axis=1, keepdims=True)
    for kernel in forms(logits.softmax):
        got = np.empty(z.shape)
        kernel(z, top, got)
        assert got == pytest.approx(p, rel=1e-13, abs=1e-300)
        assert ((got == 0) == (below < logits.LOWEST_EXPONENT)).all()
    for kernel in forms(logits.exponentials):
        e = np.empty(z.size)
        kernel(z, top, 1.0, e, np.empty(z.size))
        assert e == pytest.approx(np.exp(below).ravel(), rel=1e-14, abs=1e-300)
    for kernel in forms(logits.softmax):
        largest = np.empty((n, 1))
        kernel(z, top, largest)
        assert largest[:, 0] == pytest.approx(p.max(axis=1), rel=1e-13)


def test_a_binary_logit_is_read_as_its_sigmoid():
    z = np.array([-np.inf, -1e4, -750.0, -40.0, -1.0, -0.0, 0.0, 1.0, 40.0, 1e4, 1.7e308, np.inf])
    expected = [0, 0, 0, np.exp(-40), 1 / (1 + np.e), 0.5, 0.5, np.e / (1 + np.e), 1, 1, 1, 1]
    z, expected = np.tile(z, 100), expected * 100  # more than a block
    for kernel in forms(logits.sigmoid):
        p = np.empty(z.size)
        kernel(z, p)
        assert p == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 10, 200, logits.BLOCK + 3])
def test_sums_for_a_temperature_are_the_loss_and_its_derivatives(dtype, n_classes):
    rng = np.random.default_rng(12)
    n, inverse = 2 * max(1, logits.BLOCK // n_classes) + 3, 0.7
    z = (5 * rng.standard_normal((n, n_classes))).astype(dtype)
    label, weight = rng.integers(0, n_classes, n), rng.random(n)
    expected = np.zeros(3)
    for row, y, w in zip(z.astype(np.float64), label, weight, strict=True):
        p = np.exp(inverse * (row - row.max()))
        p /= p.sum()
        d = inverse * (row - p @ row)
        expected += w * np.array([-np.log(p[y]), -d[y], p @ d**2])
    for kernel in forms(logits.temperature_sums):
        sums = np.array([1.0, 2.0, 3.0])  # it adds
        kernel(z, z.max(axis=1).astype(np.float64), label, weight, inverse, sums)
        assert sums - [1, 2, 3] == pytest.approx(expected, rel=1e-12)
