"""Losses: their derivatives against differences, and the search for the least of them."""

import numpy as np
import pytest
from scipy import optimize

from fastece.recalibration.regression import LogisticLoss, SoftmaxLoss, TemperatureLoss, minimise

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers(monkeypatch):
    """Each test draws the same numbers, whichever ran before it."""
    monkeypatch.setitem(globals(), "rng", np.random.default_rng(0))


K = 4


def shares(n):
    """Weights that sum to 1."""
    v = rng.random(n) + 0.1
    return v / v.sum()


def losses(n=60):
    """Every loss, with a point to look at."""
    z, label, weight = 3 * rng.standard_normal((n, K)) + 1, rng.integers(0, K, n), shares(n)
    x, hit = rng.standard_normal((n, 3)), rng.integers(0, 2, n).astype(float)
    point = rng.standard_normal(K * (K + 1))
    yield "temperature", TemperatureLoss(z, label, weight), np.array([0.4])
    yield "logistic", LogisticLoss(x, hit, weight), point[:3]
    yield "vector", SoftmaxLoss(z, label, weight, 1.0, is_diagonal=True), point[: 2 * K]
    yield "matrix", SoftmaxLoss(z, label, weight, 1.0), point
    yield "penalties", SoftmaxLoss(z, label, weight, 0.5, off_diagonal=0.3, intercept=0.7), point
    yield "one penalty", SoftmaxLoss(z, label, weight, 0.5, off_diagonal=0.3), point


CASES = {name: case for name, *case in losses()}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_differences(name):
    """The second ones but for sums over classes, which a search holds: each change adds up to 0."""
    loss, theta = CASES[name]
    slope = optimize.approx_fprime(theta, lambda at: loss.evaluate(at)[0], 1e-7)
    assert loss.evaluate(theta)[1] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    hessian = loss.hessian(theta)
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-14)
    for direction in rng.standard_normal((5, theta.size)):
        if isinstance(loss, SoftmaxLoss):
            lines = direction.reshape(K, -1)
            direction = (lines - lines.mean(axis=0)).ravel()
        ahead, behind = (loss.evaluate(theta + h * direction)[1] for h in (1e-5, -1e-5))
        curvature = (ahead - behind) / 2e-5
        assert hessian @ direction == pytest.approx(curvature, rel=1e-5, abs=1e-7)


def test_a_minimum_is_one_to_rounding():
    n = 8000
    x = np.column_stack([rng.standard_normal((n, 2)) * [1, 50], np.ones(n)])
    hit = (rng.random(n) < 1 / (1 + np.exp(-(x @ [1, 0.02, 0.5])))).astype(float)
    loss = LogisticLoss(x, hit, shares(n))
    theta, least, warning = minimise(loss, np.zeros(3))
    assert not warning
    assert least == pytest.approx(loss.evaluate(theta)[0], abs=1e-12)
    assert np.abs(loss.evaluate(theta)[1]).max() < 1e-11
    other = optimize.minimize(loss.evaluate, np.zeros(3), jac=True, method="BFGS", tol=1e-9)
    assert theta == pytest.approx(other.x, abs=1e-6)


def test_a_search_without_second_derivatives_finds_the_same_minimum(monkeypatch):
    """As where there are too many parameters for their matrix."""
    z, label = rng.standard_normal((3000, K)), rng.integers(0, K, 3000)
    z[np.arange(3000), label] += 1
    loss = SoftmaxLoss(z, label, shares(3000), 1.0)
    want = minimise(loss, loss.start)
    monkeypatch.setattr("fastece.recalibration.regression.MAX_NEWTON_PARAMETERS", 10)
    got = minimise(loss, loss.start)
    assert got.warning == want.warning == ""
    assert got.theta == pytest.approx(want.theta, abs=1e-4)
    assert got.loss == pytest.approx(want.loss, abs=1e-11)


def test_some_classes_told_apart_without_error_have_no_minimum():
    """The loss falls for ever, but not to 0."""
    z, label = rng.standard_normal((300, 3)), rng.integers(0, 2, 300)
    z[:30, 2], label[:30] = 50, 2
    loss = SoftmaxLoss(z, label, shares(300), 1.0)
    assert minimise(loss, loss.start).warning
