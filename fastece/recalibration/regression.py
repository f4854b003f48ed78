"""Losses of logistic and multinomial regression, with gradients and curvatures in closed form."""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from fastece.typing import F64, I64

# Logits that differ by less are equal: what is divided by this, and its square, are numbers.
SMALLEST = 1e-60


class Loss(ABC):
    """A mean loss of some parameters, convex or nearly so, of rows whose weights add up to 1.

    A search asks for the loss, its derivatives and products with the second ones at one point after
    another: what all three need of a point is computed once.
    """

    weight: F64
    _theta: F64 | None = None

    @abstractmethod
    def part(self, step: int) -> "Loss":
        """The mean loss of every step-th row, of the same parameters."""

    @abstractmethod
    def _measure(self, theta: F64) -> tuple[float, F64]:
        """The loss and its derivatives."""

    @abstractmethod
    def _product(self, direction: F64) -> F64:
        """The matrix of second derivatives, where `_measure` was last, times a direction."""

    def value(self, theta: F64) -> float:
        """The loss."""
        self._at(theta)
        return self._value

    def gradient(self, theta: F64) -> F64:
        """Its derivatives."""
        self._at(theta)
        return self._gradient

    def curvature(self, theta: F64, direction: F64) -> F64:
        """The matrix of its second derivatives times a direction."""
        self._at(theta)
        return self._product(direction)

    def hessian(self, theta: F64) -> F64:
        """The matrix of its second derivatives."""
        return np.stack([self.curvature(theta, unit) for unit in np.eye(theta.size)])

    def _at(self, theta: F64) -> None:
        if self._theta is None or not np.array_equal(theta, self._theta):
            self._value, self._gradient = self._measure(theta)
            self._theta = theta.copy()


class Hits(Loss):
    """Mean log loss of binary hits, ``log(1 + exp(z)) - t z`` with ``z = features @ theta``.

    Parameters
    ----------
    features : (n, d) float64 array
    target : (n,) float64 array
        The share of hits of each row.
    weight : (n,) float64 array
        Adds up to 1.
    """

    def __init__(self, features: F64, target: F64, weight: F64) -> None:
        self.features, self.target, self.weight = features, target, weight

    def part(self, step: int) -> "Hits":
        """The mean loss of every step-th row."""
        weight = self.weight[::step]
        return Hits(self.features[::step], self.target[::step], weight / weight.sum())

    def _measure(self, theta: F64) -> tuple[float, F64]:
        z = self.features @ theta
        e = np.exp(-np.abs(z))
        p = np.where(z >= 0, 1.0, e) / (1 + e)
        self.spread = self.weight * p * (1 - p)
        value = self.weight @ (np.maximum(z, 0) - self.target * z + np.log1p(e))
        return float(value), self.features.T @ (self.weight * (p - self.target))

    def _product(self, direction: F64) -> F64:
        product: F64 = self.features.T @ (self.spread * (self.features @ direction))
        return product


class Penalty(NamedTuple):
    """Off-diagonal and intercept regularisation (Kull et al. 2019, section 3)."""

    off_diagonal: float = 0.0
    intercept: float = 0.0


NO_PENALTY = Penalty()


class Classes(Loss):
    """Mean log loss of labels, of the softmax of ``z @ W.T + b``, with its penalties.

    Logits are centred and divided by their standard deviations, class by class: a step of the
    search then takes a fifth as many products with the second derivatives (CIFAR-10: 174, not 621).
    `theta` holds the parameters of these, one line (w, b) a class: of a diagonal W (K, 2), else
    (K, K + 1). `parameters` are those of the caller's logits. The `start` of a search multiplies
    these by a factor.
    """

    def __init__(
        self, z: Any, label: I64, weight: F64, diagonal: bool, penalty: Penalty, factor: float
    ) -> None:  # fmt: skip
        z = z.astype(np.float64)
        self.mean = weight @ z
        spread = np.sqrt(weight @ (z - self.mean) ** 2)
        self.scale = np.where(spread > SMALLEST, spread, 1.0)
        self.z = (z - self.mean) / self.scale
        self.label, self.weight = label, weight
        self.diagonal, self.penalty = diagonal, penalty
        # A number added to an intercept, or to a weight of one logit, of every class changes
        # nothing. So that a search has no such direction to run away in, sums over the classes are
        # held where they are at the start, unless a penalty or a diagonal does that.
        free = np.full(
            2 if diagonal else self.n_classes + 1, not (diagonal or penalty.off_diagonal)
        )
        free[-1] = not penalty.intercept
        self.held = free.astype(np.float64)
        w = self.scale if diagonal else np.diag(self.scale)
        self.start = factor * np.column_stack([w, self.mean]).ravel()

    def part(self, step: int) -> "Classes":
        """The mean loss of every step-th row, of the same parameters."""
        other = copy(self)
        other.z, other.label, other._theta = self.z[::step], self.label[::step], None
        other.weight = self.weight[::step] / self.weight[::step].sum()
        return other

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.z.shape[1])

    def parameters(self, theta: F64) -> tuple[F64, F64]:
        """``W`` (K,) or (K, K), and ``b`` (K,), for logits as the caller has them."""
        lines = theta.reshape(self.n_classes, -1)
        w = (lines[:, 0] if self.diagonal else lines[:, :-1]) / self.scale
        b: F64 = lines[:, -1] - (w * self.mean if self.diagonal else w @ self.mean)
        return w, b

    def _apply(self, theta: F64) -> F64:
        """Logits (n, K) of the parameters."""
        lines = theta.reshape(self.n_classes, -1)
        z: F64 = self.z * lines[:, 0] if self.diagonal else self.z @ lines[:, :-1].T
        z += lines[:, -1]
        return z

    def _collect(self, residual: F64) -> F64:
        """Sums of residuals (n, K) times what they are the derivatives by: `_apply` transposed."""
        w = (residual * self.z).sum(axis=0) if self.diagonal else residual.T @ self.z
        return np.column_stack([w, residual.sum(axis=0)]).ravel()

    def _measure(self, theta: F64) -> tuple[float, F64]:
        z, each = self._apply(theta), np.arange(self.label.size)
        z -= z.max(axis=1, keepdims=True)
        true = z[each, self.label]
        p = self.p = np.exp(z, out=z)
        total = p.sum(axis=1)
        p /= total[:, None]
        residual = p * self.weight[:, None]
        residual[each, self.label] -= self.weight
        value = float(self.weight @ (np.log(total) - true)) + self._penalty_value(theta)
        drift = theta - self.start
        value += float(drift @ self._hold(drift)) / 2
        return value, self._collect(residual) + self._penalty_slope(theta) + self._hold(drift)

    def _product(self, direction: F64) -> F64:
        u = self._apply(direction)
        u *= self.p
        u -= self.p * u.sum(axis=1, keepdims=True)
        u *= self.weight[:, None]
        return self._collect(u) + self._penalty_slope(direction) + self._hold(direction)

    def _hold(self, drift: F64) -> F64:
        """Sums over the classes of what is held, for each class."""
        sums = drift.reshape(self.n_classes, -1).sum(axis=0) * self.held
        return np.tile(sums, self.n_classes)

    def hessian(self, theta: F64) -> F64:
        """The matrix of second derivatives, ``(p_k [k = l] - p_k p_l) x_k x_l`` with x_k the
        features of class k, by products of matrices: a fifth of the time of `curvature`."""
        self._at(theta)
        if self.diagonal:
            features = np.stack([self.z, np.ones_like(self.z)], axis=2)
        else:
            features = np.column_stack([self.z, np.ones(self.label.size)])[:, None]
        root = np.sqrt(self.weight)[:, None, None]
        a = (root * self.p[:, :, None] * features).reshape(self.label.size, -1)
        total: F64 = -(a.T @ a)
        size = features.shape[2]
        for k in range(self.n_classes):
            x, own = features[:, k if self.diagonal else 0], slice(k * size, (k + 1) * size)
            total[own, own] += x.T @ (x * (self.weight * self.p[:, k])[:, None])
        for unit, line in zip(np.eye(theta.size), total, strict=True):
            line += self._penalty_slope(unit) + self._hold(unit)
        return total

    def _rates(self) -> tuple[F64, float]:
        """What the squares of the weights (K, K), and of the intercepts, are multiplied by."""
        k = self.n_classes
        off = np.full((k, k), self.penalty.off_diagonal / (k * (k - 1)))
        np.fill_diagonal(off, 0.0)
        return off, self.penalty.intercept / k

    def _penalty_value(self, theta: F64) -> float:
        """The penalties, of the parameters for the caller's logits."""
        if self.penalty == NO_PENALTY:
            return 0.0
        (off, each), (w, b) = self._rates(), self.parameters(theta)
        return float((off * w * w).sum() + (each * b * b).sum())  # 0 of what has no square, too

    def _penalty_slope(self, theta: F64) -> F64:
        """Derivatives of the penalties by `theta`; they are linear, so also the second derivatives
        times a direction."""
        if self.penalty == NO_PENALTY:
            return np.zeros(1)
        (off, each), (w, b) = self._rates(), self.parameters(theta)
        by_b = 2 * each * b
        by_w = (2 * off * w - np.outer(by_b, self.mean)) / self.scale
        return np.column_stack([by_w, by_b]).ravel()
