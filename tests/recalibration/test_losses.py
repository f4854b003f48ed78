"""Losses and their minimum: derivatives equal differences, and a search ends at the minimum."""

import numpy as np
import pytest
from scipy import optimize

from fastece.recalibration.losses import (
    LogisticLoss,
    MatrixLoss,
    TemperatureLoss,
    VectorLoss,
    minimise,
)

N_CLASSES = 4


def draw_weights(rng, n):
    """Weights that sum to 1."""
    weight = rng.random(n) + 0.1
    return weight / weight.sum()


def draw_losses(n=60):
    """Every loss by its name."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.standard_normal((n, N_CLASSES)) + 1
    label = rng.integers(0, N_CLASSES, n)
    rows = (logits, label, draw_weights(rng, n))
    features = rng.standard_normal((n, 3))
    outcome = rng.integers(0, 2, n).astype(float)
    penalty = rng.random((N_CLASSES, N_CLASSES + 1))
    return {
        "temperature": TemperatureLoss(*rows),
        "logistic": LogisticLoss(features, outcome, rows[2]),
        "vector": VectorLoss(*rows, 0.7, 0.0),
        "vector, penalty": VectorLoss(*rows, 0.7, 0.3),
        "matrix": MatrixLoss(*rows, 0.7, 0 * penalty),
        "matrix, penalties": MatrixLoss(*rows, 0.7, penalty),
    }


LOSSES = draw_losses()


def start_of(loss):
    """Parameters where a search begins."""
    if isinstance(loss, VectorLoss | MatrixLoss):
        return loss.start
    return np.zeros(1 if isinstance(loss, TemperatureLoss) else 3)


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_equal_differences(name):
    loss = LOSSES[name]
    rng = np.random.default_rng(1)
    theta = start_of(loss) + 0.3 * rng.standard_normal(start_of(loss).size)
    slope = optimize.approx_fprime(theta, lambda x: loss.evaluate(x)[0], 1e-7)
    assert loss.evaluate(theta)[1] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    for direction in rng.standard_normal((5, theta.size)):
        ahead = loss.evaluate(theta + 1e-5 * direction)[1]
        behind = loss.evaluate(theta - 1e-5 * direction)[1]
        curvature = (ahead - behind) / 2e-5
        product = loss.curvature_along(theta, direction)
        assert product == pytest.approx(curvature, rel=1e-5, abs=1e-7)


def test_rows_are_added_up_in_blocks(monkeypatch):
    whole = draw_losses()["matrix, penalties"]
    monkeypatch.setattr("fastece.recalibration.losses.MAX_ENTRIES_OF_BLOCK", 28)
    blocks = draw_losses()["matrix, penalties"]
    assert len(blocks.blocks) == 9
    theta = whole.start
    assert blocks.evaluate(theta)[0] == pytest.approx(whole.evaluate(theta)[0], rel=1e-14)
    assert blocks.evaluate(theta)[1] == pytest.approx(whole.evaluate(theta)[1], abs=1e-14)
    products = [loss.curvature_along(theta, theta) for loss in (blocks, whole)]
    assert products[0] == pytest.approx(products[1], abs=1e-14)


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


@pytest.mark.slow
def test_a_minimum_of_many_parameters_is_exact_too():
    """With 20 classes, 420 parameters: the gradient is one of rounding."""
    rng = np.random.default_rng(0)
    n = 3000
    n_classes = 20
    logits = rng.standard_normal((n, n_classes))
    label = rng.integers(0, n_classes, n)
    logits[np.arange(n), label] += 1
    loss = MatrixLoss(
        logits, label, draw_weights(rng, n), 1.0, np.zeros((n_classes, n_classes + 1))
    )
    minimum = minimise(loss, loss.start)
    assert not minimum.warning
    assert np.abs(loss.evaluate(minimum.theta)[1]).max() < 1e-10


def test_a_class_told_apart_without_error_has_no_minimum():
    """The loss falls for ever, but not to 0."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((300, 3))
    label = rng.integers(0, 2, 300)
    logits[:30, 2] = 50
    label[:30] = 2
    loss = MatrixLoss(logits, label, draw_weights(rng, 300), 1.0, np.zeros((3, 4)))
    assert minimise(loss, loss.start).warning
