"""Losses of logistic and multinomial regression, and their minimisation."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from fastece.typing import F64, I64

# Logits that differ by less are equal: quotients by this, and by its square, are finite.
SMALLEST = 1e-60
# A search ends at a slope this small: the loss is then 1e-12 above its least, and nearer to it
# differs by rounding alone. A step of Newton's method squares the error that is left: after few,
# the slope is one of rounding. Where it stays steep, it is that of a loss that falls for ever.
SLOPE, STEEP, ROUNDED = 1e-6, 1e-7, 1e-13
POLISHES = 3
# So small a loss is on its way to 0.
NO_LOSS = 1e-6
# With more parameters than this the matrix of second derivatives is too large, and L-BFGS, which
# does without, takes more and cheaper steps.
MAX_NEWTON_PARAMETERS = 300
# Ordinary fits take ten to a hundred steps; a loss without a minimum never ends.
MAX_STEPS = 500
# A direction in which a loss is less curved than this part of the most counts as that.
LEAST_CURVATURE = 1e-8
DIVERGED = (
    "predictions tell some classes apart without error, so the log loss falls as parameters grow, "
    "and there is no best map: more rows, or a method with fewer parameters, would have one"
)


class Loss(ABC):
    """A mean loss of some parameters, convex or nearly so.

    The weights of the rows sum to 1.
    """

    @abstractmethod
    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at some parameters, and its gradient."""

    @abstractmethod
    def hessian(self, theta: F64) -> F64:
        """Compute the matrix of second derivatives at some parameters."""


class Minimum(NamedTuple):
    """Parameters of the least loss, the loss, and a warning.

    The warning is empty where a best map exists.
    """

    theta: F64
    loss: float
    warning: str


def minimise(loss: Loss, start: F64) -> Minimum:
    """Find the parameters of the least loss, from a start.

    Notes
    -----
    BFGS begins with the second derivatives at the start, and needs a tenth as many of them as
    Newton's method: in matrix scaling of 50 000 rows of 10 classes they take 20 times as long as a
    gradient.
    """
    from scipy.optimize import minimize

    if start.size > MAX_NEWTON_PARAMETERS:
        limits = {"gtol": SLOPE, "ftol": 0.0, "maxiter": MAX_STEPS, "maxcor": 50}
        found = minimize(loss.evaluate, start, jac=True, method="L-BFGS-B", options=limits)
        is_end = abs(found.jac).max() <= SLOPE and found.fun > NO_LOSS
        return Minimum(found.x, float(found.fun), "" if is_end else DIVERGED)
    curvature, axis = np.linalg.eigh(loss.hessian(start))
    size = np.abs(curvature)
    root = axis / np.sqrt(np.maximum(size, LEAST_CURVATURE * size.max() + SMALLEST))
    options = {"gtol": SLOPE, "maxiter": MAX_STEPS, "hess_inv0": root @ root.T}
    found = minimize(loss.evaluate, start, jac=True, method="BFGS", options=options)
    theta, value, slope = polish(loss, found.x)
    is_end = abs(slope).max() <= STEEP and value > NO_LOSS
    return Minimum(theta, value, "" if is_end else DIVERGED)


def polish(loss: Loss, theta: F64) -> tuple[F64, float, F64]:
    """Take Newton steps while the slope falls; return parameters, loss and slope."""
    value, slope = loss.evaluate(theta)
    for _ in range(POLISHES):
        ahead = theta - np.linalg.pinv(loss.hessian(theta), hermitian=True) @ slope
        next_value, next_slope = loss.evaluate(ahead)
        if not abs(next_slope).max() < abs(slope).max():
            break
        theta, value, slope = ahead, next_value, next_slope
        if not ROUNDED < abs(slope).max() <= STEEP:
            break
    return theta, value, slope


class LogisticLoss(Loss):
    """Mean log loss of outcomes in logistic regression.

    It is the mean of ``log(1 + exp(z)) - t z`` with ``z = features @ theta``.

    Parameters
    ----------
    features : (n, d) float64 array
    target : (n,) float64 array
        The outcome of each row, or a share of outcomes of 1.
    weight : (n,) float64 array
        Sums to 1.
    """

    def __init__(self, features: F64, target: F64, weight: F64) -> None:
        self.features, self.target, self.weight = features, target, weight

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at some parameters, and its gradient."""
        z = self.features @ theta
        e = np.exp(-np.abs(z))
        p = np.where(z >= 0, 1.0, e) / (1 + e)
        value = self.weight @ (np.maximum(z, 0) - self.target * z + np.log1p(e))
        return float(value), self.features.T @ (self.weight * (p - self.target))

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix of second derivatives at some parameters."""
        e = np.exp(-np.abs(self.features @ theta))
        curvature = self.weight * e / (1 + e) ** 2
        product: F64 = self.features.T @ (self.features * curvature[:, None])
        return product


class SoftmaxLoss(Loss):
    """Mean log loss of labels under the softmax of one line for each class.

    A line has a weight, or several, and an intercept. `theta` holds the lines (K, d) of logits
    that are centred and divided by their standard deviations, class by class. The `start` of a
    search multiplies the logits by a factor.
    """

    features: F64  # (n, K, d), or (n, 1, d) where all classes have the same

    def __init__(self, z: Any, label: I64, weight: F64, factor: float) -> None:
        z = z.astype(np.float64)
        self.label, self.weight, self.each = label, weight, np.arange(label.size)
        self.n_classes = z.shape[1]
        self.mean = weight @ z
        deviation = np.sqrt(weight @ (z - self.mean) ** 2)
        self.scale = np.where(deviation > SMALLEST, deviation, 1.0)
        self.features, identity = self.design((z - self.mean) / self.scale)
        self.start = factor * np.column_stack([identity, self.mean]).ravel()

    @abstractmethod
    def design(self, z: F64) -> tuple[F64, F64]:
        """Arrange standardised logits as features; return weights that undo the scale."""

    @abstractmethod
    def logits(self, theta: F64) -> F64:
        """Compute the logits (n, K) of some parameters."""

    @abstractmethod
    def collect(self, residual: F64) -> F64:
        """Add up residuals (n, K) times features (K, d)."""

    @abstractmethod
    def parameters(self, theta: F64) -> tuple[F64, F64]:
        """Compute weights and intercepts (K,) for logits as they were given."""

    @property
    def is_free(self) -> F64:
        """1 for each column (d,) whose parameters may shift together freely, else 0.

        A shift that all classes share does not change the probabilities.
        """
        return np.append(np.zeros(self.features.shape[2] - 1), 1.0)

    def probabilities(self, theta: F64) -> tuple[F64, F64]:
        """Compute probabilities (n, K) and the log losses (n,) of the labels."""
        z = self.logits(theta)
        z -= z.max(axis=1, keepdims=True)
        true = z[self.each, self.label]
        p = np.exp(z, out=z)
        total = p.sum(axis=1)
        p /= total[:, None]
        return p, np.log(total) - true

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at some parameters, and its gradient."""
        p, losses = self.probabilities(theta)
        p *= self.weight[:, None]
        p[self.each, self.label] -= self.weight
        return float(self.weight @ losses), self.collect(p).ravel()

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix of second derivatives at some parameters.

        Notes
        -----
        ``sum_i w_i (p_k [k = l] - p_k p_l) x_k x_l`` with x_k the features of class k. A number
        added to one column of the lines of all classes changes nothing, so the matrix is singular:
        a term that fixes the sums of columns, which is 0 at the start and in every step of a
        search, makes it regular. So does a term for weights of logits that are all equal.
        """
        x, (p, _) = self.features, self.probabilities(theta)
        n, size = self.label.size, x.shape[2]
        a = (np.sqrt(self.weight)[:, None, None] * p[:, :, None] * x).reshape(n, -1)
        total: F64 = -a.T @ a
        for k in range(self.n_classes):
            own, mine = slice(k * size, (k + 1) * size), x[:, k % x.shape[1]]
            total[own, own] += mine.T @ (mine * (self.weight * p[:, k])[:, None])
        total += np.diag(total.diagonal() == 0)
        return total + np.kron(np.ones((self.n_classes,) * 2), np.diag(self.is_free))


class VectorLoss(SoftmaxLoss):
    """Mean log loss of the softmax of ``w * z + b``."""

    def design(self, z: F64) -> tuple[F64, F64]:
        """Arrange standardised logits as features (n, K, 2)."""
        return np.stack([z, np.ones_like(z)], axis=2), self.scale

    def logits(self, theta: F64) -> F64:
        """Compute the logits (n, K) of some parameters."""
        lines = theta.reshape(self.n_classes, 2)
        return np.asarray(self.features[:, :, 0] * lines[:, 0] + lines[:, 1])

    def collect(self, residual: F64) -> F64:
        """Add up residuals (n, K) times features (K, 2)."""
        return np.column_stack([(residual * self.features[:, :, 0]).sum(0), residual.sum(0)])

    def parameters(self, theta: F64) -> tuple[F64, F64]:
        """Compute weights (K,) and intercepts (K,) for logits as they were given."""
        w, b = theta.reshape(self.n_classes, 2).T
        w = w / self.scale
        return w, b - w * self.mean


class MatrixLoss(SoftmaxLoss):
    """Mean log loss of the softmax of ``W z + b``, with penalties.

    Notes
    -----
    Off-diagonal and intercept regularisation (Kull et al. 2019, section 3): ``off_diagonal / (K (K
    - 1)) sum W_ij**2`` over i != j, and ``intercept / K sum b_j**2``.
    """

    def __init__(
        self, z: Any, label: I64, weight: F64, factor: float,
        off_diagonal: float = 0.0, intercept: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(z, label, weight, factor)
        k = self.n_classes
        # Rates (K, d) of the squares of (w, b) = line @ unscale, for logits as they were given.
        self.rates = np.full((k, k + 1), intercept / k)
        self.rates[:, :-1] = off_diagonal / (k * (k - 1)) * (1 - np.eye(k))
        self.unscale = np.diag(np.append(1 / self.scale, 1.0))
        self.unscale[:-1, -1] = -self.mean / self.scale

    def design(self, z: F64) -> tuple[F64, F64]:
        """Arrange standardised logits as features (n, 1, K + 1)."""
        return np.column_stack([z, np.ones(len(z))])[:, None], np.diag(self.scale)

    def logits(self, theta: F64) -> F64:
        """Compute the logits (n, K) of some parameters."""
        return np.asarray(self.features[:, 0] @ theta.reshape(self.n_classes, -1).T)

    def collect(self, residual: F64) -> F64:
        """Add up residuals (n, K) times features (K, K + 1)."""
        return np.asarray(residual.T @ self.features[:, 0])

    def parameters(self, theta: F64) -> tuple[F64, F64]:
        """Compute weights (K, K) and intercepts (K,) for logits as they were given."""
        lines = theta.reshape(self.n_classes, -1) @ self.unscale
        return lines[:, :-1], lines[:, -1]

    @property
    def is_free(self) -> F64:
        """1 for each column (K + 1,) of the lines that no penalty fixes, else 0."""
        off_diagonal, intercept = self.rates[:, :-1].any(), self.rates[:, -1].any()
        return np.append(np.full(self.n_classes, not off_diagonal), not intercept) * 1.0

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at some parameters with its penalties, and its gradient."""
        value, gradient = super().evaluate(theta)
        lines = theta.reshape(self.n_classes, -1) @ self.unscale
        slope = 2 * (self.rates * lines) @ self.unscale.T
        return value + float((self.rates * lines * lines).sum()), gradient + slope.ravel()

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix of second derivatives at some parameters, penalties included."""
        total, size = super().hessian(theta), self.n_classes + 1
        for k, rates in enumerate(self.rates):
            own = slice(k * size, (k + 1) * size)
            total[own, own] += 2 * (self.unscale * rates) @ self.unscale.T
        return total
