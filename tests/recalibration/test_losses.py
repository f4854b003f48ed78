"""Losses and their minimum: derivatives equal differences, and a search ends at the minimum."""

import numpy as np
import pytest
from scipy import optimize

from fastece.recalibration.losses import (
    LogisticLoss,
    TemperatureLoss,
    matrix_scaling_loss,
    vector_scaling_loss,
)
from fastece.recalibration.minimise import minimise

N_CLASSES = 4
UNPENALISED = {"off_diagonal": 0.0, "intercept": 0.0}


def draw_weights(rng, n):
    """Weights that sum to 1."""
    weight = rng.random(n) + 0.1
    return weight / weight.sum()


def draw_losses(n=60):
    """Every loss by its name, with a point to look at."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.standard_normal((n, N_CLASSES)) + 1
    label = rng.integers(0, N_CLASSES, n)
    rows = (logits, label, draw_weights(rng, n))
    features = rng.standard_normal((n, 3))
    outcome = rng.integers(0, 2, n).astype(float)
    point = rng.standard_normal(N_CLASSES * (N_CLASSES + 1))
    off_diagonal = {"off_diagonal": 0.3, "intercept": 0.0}
    both = {"off_diagonal": 0.3, "intercept": 0.7}
    return {
        "temperature": (TemperatureLoss(*rows), np.array([0.4])),
        "logistic": (LogisticLoss(features, outcome, rows[2]), point[:3]),
        "vector": (vector_scaling_loss(*rows, 1.0), point[: 2 * N_CLASSES]),
        "matrix": (matrix_scaling_loss(*rows, 1.0, **UNPENALISED), point),
        "matrix, one penalty": (matrix_scaling_loss(*rows, 0.5, **off_diagonal), point),
        "matrix, both penalties": (matrix_scaling_loss(*rows, 0.5, **both), point),
    }


LOSSES = draw_losses()


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_equal_differences(name):
    """Second derivatives are compared along changes that add up to 0 over the classes.

    A search stays in them, and the matrix has terms that fix the sums.
    """
    loss, theta = LOSSES[name]
    slope = optimize.approx_fprime(theta, lambda x: loss.evaluate(x)[0], 1e-7)
    assert loss.evaluate(theta)[1] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    hessian = loss.hessian(theta)
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-14)
    for direction in np.random.default_rng(1).standard_normal((5, theta.size)):
        if name.startswith(("vector", "matrix")):
            lines = direction.reshape(N_CLASSES, -1)
            direction = (lines - lines.mean(axis=0)).ravel()
        ahead = loss.evaluate(theta + 1e-5 * direction)[1]
        behind = loss.evaluate(theta - 1e-5 * direction)[1]
        curvature = (ahead - behind) / 2e-5
        assert hessian @ direction == pytest.approx(curvature, rel=1e-5, abs=1e-7)


def test_a_minimum_is_exact_to_rounding():
    rng = np.random.default_rng(0)
    n = 8000
    x = np.column_stack([rng.standard_normal((n, 2)) * [1, 50], np.ones(n)])
    outcome = (rng.random(n) < 1 / (1 + np.exp(-(x @ [1, 0.02, 0.5])))).astype(float)
    loss = LogisticLoss(x, outcome, draw_weights(rng, n))
    minimum = minimise(loss, np.zeros(3))
    assert not minimum.warning
    value, slope = loss.evaluate(minimum.theta)
    assert minimum.loss == pytest.approx(value, abs=1e-12)
    assert np.abs(slope).max() < 1e-11
    other = optimize.minimize(loss.evaluate, np.zeros(3), jac=True, method="BFGS", tol=1e-9)
    assert minimum.theta == pytest.approx(other.x, abs=1e-6)


def test_a_search_without_second_derivatives_ends_at_the_same_minimum(monkeypatch):
    """Losses with many parameters are minimised without the matrix of second derivatives."""
    rng = np.random.default_rng(0)
    n = 3000
    logits = rng.standard_normal((n, N_CLASSES))
    label = rng.integers(0, N_CLASSES, n)
    logits[np.arange(n), label] += 1
    loss = matrix_scaling_loss(logits, label, draw_weights(rng, n), 1.0, **UNPENALISED)
    expected = minimise(loss, loss.start)
    monkeypatch.setattr("fastece.recalibration.minimise.MAX_NEWTON_PARAMETERS", 10)
    minimum = minimise(loss, loss.start)
    assert minimum.warning == expected.warning == ""
    assert minimum.theta == pytest.approx(expected.theta, abs=1e-4)
    assert minimum.loss == pytest.approx(expected.loss, abs=1e-11)


def test_a_class_told_apart_without_error_has_no_minimum():
    """The loss falls for ever, but not to 0."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((300, 3))
    label = rng.integers(0, 2, 300)
    logits[:30, 2] = 50
    label[:30] = 2
    loss = matrix_scaling_loss(logits, label, draw_weights(rng, 300), 1.0, **UNPENALISED)
    assert minimise(loss, loss.start).warning
