"""Losses of logistic and multinomial regression, and their minimisation."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.kernels.types import F64, I64

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


class LogisticLoss:
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


class SoftmaxLoss:
    """Mean log loss of labels under the softmax of a line for each class.

    A line of `theta` has weights and an intercept, d numbers, for logits that are centred and
    divided by their standard deviations. It has the weight of its own logit alone if `is_diagonal`,
    else of all logits. The `start` of a search multiplies the logits by a factor.

    Notes
    -----
    Off-diagonal and intercept regularisation (Kull et al. 2019, section 3): ``off_diagonal / (K (K
    - 1)) sum W_ij**2`` over i != j, and ``intercept / K sum b_j**2``.
    """

    def __init__(
        self, z: Any, label: I64, weight: F64, factor: float, *, is_diagonal: bool = False,
        off_diagonal: float = 0.0, intercept: float = 0.0,
    ) -> None:  # fmt: skip
        self.label, self.weight, self.each = label, weight, np.arange(label.size)
        z = z.astype(np.float64)
        self.n_classes = k = z.shape[1]
        mean = weight @ z
        deviation = np.sqrt(weight @ (z - mean) ** 2)
        scale = np.where(deviation > SMALLEST, deviation, 1.0)
        x = (z - mean) / scale
        x = x.T[:, :, None] if is_diagonal else x[None]
        # (m, n, d), where m is the number of classes, or 1 if all have the same features.
        self.features = np.concatenate([x, np.ones_like(x[:, :, :1])], axis=2)
        own = scale[:, None] if is_diagonal else np.diag(scale)
        self.start = factor * np.column_stack([own, mean]).ravel()
        # Lines times `unscale` (m, d, d) are those of logits as they were given.
        size = self.features.shape[2]
        self.unscale = np.tile(np.eye(size), (len(x), 1, 1))
        each = np.arange(size - 1)
        self.unscale[:, each, each] = (1 / scale).reshape(len(x), -1)
        self.unscale[:, :-1, -1] = (-mean / scale).reshape(len(x), -1)
        self.rates = np.full((k, size), intercept / k)  # of the squares of these lines
        self.rates[:, :-1] = 0.0 if is_diagonal else off_diagonal / (k * (k - 1)) * (1 - np.eye(k))
        # Columns whose parameters may shift together: such a shift changes no probability.
        self.is_free = (self.rates == 0).all(axis=0)
        self.is_free[0] &= not is_diagonal

    def lines(self, theta: F64) -> F64:
        """Arrange parameters as the lines (m, K / m, d) of each set of features."""
        return theta.reshape(len(self.features), -1, self.features.shape[2])

    def parameters(self, theta: F64) -> tuple[F64, F64]:
        """Compute weights (K, d - 1) and intercepts (K,) for logits as they were given."""
        given = (self.lines(theta) @ self.unscale).reshape(self.rates.shape)
        return given[:, :-1], given[:, -1]

    def probabilities(self, theta: F64) -> tuple[F64, F64]:
        """Compute probabilities (n, K) and the log losses (n,) of the labels."""
        z = self.features @ self.lines(theta).transpose(0, 2, 1)
        z = z.transpose(1, 0, 2).reshape(-1, self.n_classes)
        z -= z.max(axis=1, keepdims=True)
        true = z[self.each, self.label]
        p = np.exp(z, out=z)
        total = p.sum(axis=1)
        p /= total[:, None]
        return p, np.log(total) - true

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at some parameters with its penalties, and its gradient."""
        p, losses = self.probabilities(theta)
        p *= self.weight[:, None]
        p[self.each, self.label] -= self.weight
        given = self.lines(theta) @ self.unscale
        penalties = self.rates.reshape(given.shape) * given
        slope = p.T.reshape(len(given), -1, self.label.size) @ self.features
        slope += 2 * penalties @ self.unscale.transpose(0, 2, 1)
        return float(self.weight @ losses + (penalties * given).sum()), slope.ravel()

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix of second derivatives at some parameters.

        Notes
        -----
        ``sum_i w_i (p_k [k = l] - p_k p_l) x_k x_l`` with x_k the features of class k, and
        penalties. A number added to a free column of the lines of all classes changes nothing, so
        the matrix is singular: a term that fixes the sums of columns, which is 0 at the start and
        in every step of a search, makes it regular. So does a term for weights of logits that are
        all equal.
        """
        p, _ = self.probabilities(theta)
        root, size = np.sqrt(self.weight), len(self.is_free)
        a = (root[:, None] * p)[:, :, None] * self.features.transpose(1, 0, 2)
        a = a.reshape(self.label.size, -1)
        total: F64 = -a.T @ a
        for k, rates in enumerate(self.rates):
            own, of = slice(k * size, (k + 1) * size), k % len(self.features)
            x, unscale = self.features[of], self.unscale[of]
            total[own, own] += x.T @ (x * (self.weight * p[:, k])[:, None])
            total[own, own] += 2 * (unscale * rates) @ unscale.T
        total += np.diag(total.diagonal() == 0)
        return total + np.kron(np.ones((self.n_classes,) * 2), np.diag(self.is_free * 1.0))


class TemperatureLoss:
    """Mean log loss of ``softmax(z / T)``, whose parameter is ``-log T``."""

    def __init__(self, z: NDArray[Any], label: I64, weight: F64) -> None:
        self.z, self.label, self.weight = z, label, weight
        self.top = z.max(axis=1).astype(np.float64)
        self.known: dict[float, F64] = {}

    def sums(self, theta: F64) -> F64:
        """Compute the loss, its slope, and its second derivative less the slope."""
        inverse = float(np.exp(theta[0]))
        if inverse not in self.known:  # one pass gives all three
            sums = self.known[inverse] = np.zeros(3)
            data = self.z, self.top, self.label, self.weight
            kernels.arithmetic.temperature_sums(*data, inverse, sums)
        return self.known[inverse]

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at some parameters, and its gradient."""
        value, slope, _ = self.sums(theta)
        return float(value), np.array([slope])

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix of second derivatives at some parameters."""
        return np.array([[self.sums(theta)[1:].sum()]])


Loss = LogisticLoss | SoftmaxLoss | TemperatureLoss


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
    theta, (value, slope) = found.x, loss.evaluate(found.x)
    for _ in range(POLISHES):  # steps of Newton's method while the slope falls
        ahead = theta - np.linalg.pinv(loss.hessian(theta), hermitian=True) @ slope
        next_value, next_slope = loss.evaluate(ahead)
        if not abs(next_slope).max() < abs(slope).max():
            break
        theta, value, slope = ahead, next_value, next_slope
        if not ROUNDED < abs(slope).max() <= STEEP:
            break
    is_end = abs(slope).max() <= STEEP and value > NO_LOSS
    return Minimum(theta, value, "" if is_end else DIVERGED)
