"""Losses: their derivatives against differences, and what finds the least of them."""

import numpy as np
import pytest
from scipy import optimize
from scipy.special import log_softmax

from fastece.recalibration.regression import (
    NO_PENALTY,
    Classes,
    Hits,
    Loss,
    Penalty,
)
from fastece.recalibration.scaling import Temperature
from fastece.recalibration.search import SOME_ROWS, Whitened, minimise

rng = np.random.default_rng(0)
K = 4


def shares(n):
    """Weights that add up to 1."""
    v = rng.random(n) + 0.1
    return v / v.sum()


def losses(n=60):
    """Every loss, with a point to look at."""
    z, label = 3 * rng.standard_normal((n, K)) + 1, rng.integers(0, K, n)
    x, hit = rng.standard_normal((n, 3)), rng.integers(0, 2, n).astype(float)
    weight, penalty = shares(n), Penalty(0.3, 0.7)
    yield "temperature", Temperature(z, label, weight), np.array([0.4])
    yield "hits", Hits(x, hit, weight), rng.standard_normal(3)
    yield "vector", Classes(z, label, weight, True, NO_PENALTY, 1.0), rng.standard_normal(2 * K)
    yield (
        "matrix",
        Classes(z, label, weight, False, NO_PENALTY, 1.0),
        rng.standard_normal(K * (K + 1)),
    )
    yield (
        "penalties",
        Classes(z, label, weight, False, penalty, 0.5),
        rng.standard_normal(K * (K + 1)),
    )
    matrix = Classes(z, label, weight, False, penalty, 0.5)
    some, start = matrix.part(2), rng.standard_normal(K * (K + 1))
    yield "whitened", Whitened(matrix, some, start), rng.standard_normal(K * (K + 1))


CASES = {name: case for name, *case in losses()}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_differences(name):
    loss, theta = CASES[name]
    slope = optimize.approx_fprime(theta, loss.value, 1e-7)
    # The last point that was asked for is another one: what is kept of it must not be used.
    assert loss.gradient(theta) == pytest.approx(slope, rel=1e-4, abs=1e-5)
    direction = rng.standard_normal(theta.size)
    ahead, behind = (loss.gradient(theta + h * direction) for h in (1e-5, -1e-5))
    curvature = (ahead - behind) / 2e-5
    assert loss.curvature(theta, direction) == pytest.approx(curvature, rel=1e-5, abs=1e-7)
    if not isinstance(loss, Whitened):
        expected = loss.curvature(theta, direction)
        assert loss.hessian(theta) @ direction == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_parameters_are_those_of_the_logits_as_they_are():
    n = 50
    z, label, weight = 5 * rng.standard_normal((n, K)) - 3, rng.integers(0, K, n), shares(n)
    for diagonal in (True, False):
        penalty = NO_PENALTY if diagonal else Penalty(0.3, 0.7)
        loss = Classes(z, label, weight, diagonal, penalty, 1.0)
        change = 0.1 * rng.standard_normal((K, 2 if diagonal else K + 1))
        theta = loss.start + (change - change.mean(axis=0)).ravel()  # sums are held
        w, b = loss.parameters(theta)
        scores = z * w + b if diagonal else z @ w.T + b
        value = -weight @ log_softmax(scores, axis=1)[np.arange(n), label]
        if not diagonal:
            off = w[~np.eye(K, dtype=bool)]
            value += 0.3 / (K * (K - 1)) * (off**2).sum() + 0.7 / K * (b**2).sum()
        assert loss.value(theta) == pytest.approx(value, rel=1e-12)
        assert loss.parameters(loss.start)[1] == pytest.approx(np.zeros(K), abs=1e-12)


def test_parts_of_the_rows_are_problems_of_their_own():
    n = 90
    z, label, weight = rng.standard_normal((n, K)), rng.integers(0, K, n), shares(n)
    x, hit = rng.standard_normal((n, 2)), rng.integers(0, 2, n).astype(float)
    share = weight[::3] / weight[::3].sum()
    pairs = [
        (Temperature(z, label, weight), Temperature(z[::3].copy(), label[::3].copy(), share)),
        (Hits(x, hit, weight), Hits(x[::3], hit[::3], share)),
    ]
    for whole, part in pairs:
        theta = rng.standard_normal(1 if isinstance(whole, Temperature) else 2)
        assert whole.part(3).value(theta) == part.value(theta)


def test_many_rows_have_the_minimum_of_a_search_from_afar():
    n = 4 * SOME_ROWS
    x = np.column_stack([rng.standard_normal((n, 2)) * [1, 50], np.ones(n)])
    hit = (rng.random(n) < 1 / (1 + np.exp(-(x @ [1, 0.02, 0.5])))).astype(float)
    loss = Hits(x, hit, shares(n))
    theta, least, is_end = minimise(loss, np.array([1.0, 1.0, 0.0]))
    assert is_end
    assert least == loss.value(theta)
    assert np.abs(loss.gradient(theta)).max() < 1e-7
    other = optimize.minimize(loss.value, np.zeros(3), jac=loss.gradient, method="BFGS", tol=1e-9)
    assert theta == pytest.approx(other.x, abs=1e-6)


def test_rows_of_which_some_can_be_told_apart_still_have_a_minimum():
    n = 4 * SOME_ROWS
    x = np.column_stack([np.linspace(-1, 1, n), np.ones(n)])
    hit = (x[:, 0] > 0).astype(float)
    hit[1::2] = rng.integers(0, 2, n // 2)  # every other row, which no part of every 4th has
    loss = Hits(x, hit, np.full(n, 1 / n))
    theta = minimise(loss, np.zeros(2)).theta
    assert np.abs(theta).max() < 100
    assert np.abs(loss.gradient(theta)).max() < 1e-7


def test_a_search_ends_where_losses_differ_by_rounding_alone():
    class Rounded(Loss):
        """A parabola that seems, by rounding, to be a little higher near its least."""

        weight = np.ones(1)
        points = 0

        def part(self, step):
            raise NotImplementedError

        def _measure(self, theta):
            self.points += 1
            return 6 + 2e-14 * (abs(theta[0]) < 1e-7) + theta[0] ** 2 / 2, theta

        def _product(self, direction):
            return direction

    loss = Rounded()
    found = minimise(loss, np.array([1e-7]))
    assert found.is_end
    assert found.theta == pytest.approx([0.0], abs=1e-15)
    assert loss.points <= 3
