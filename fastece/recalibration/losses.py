"""Losses of logistic and multinomial regression, with their derivatives, and their minimum.

A new loss has `evaluate` and `curvature_along`; `minimise` needs no more of it.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.scores import float64_parts
from fastece.kernels.types import F64, I64

# Logits whose standard deviation, or range, is less count as equal: quotients by this number, and
# by its square, are finite.
MIN_SCALE = 1e-60
# A standard deviation of less than this share of the mean is one of rounding.
MAX_ROUNDING_SHARE = 1e-13
# The search ends at a gradient this small: the loss is then about 1e-14 above its minimum, and
# nearer to the minimum, losses differ by rounding alone.
MAX_SLOPE = 1e-7
# After the search, steps of Newton's method square the error that is left, and end at a gradient
# that moves probabilities by less than 1e-9. Of a loss that falls for ever, each of them only
# divides the gradient by e, so that it is larger than that of a minimum after so many.
MAX_NEWTON_STEPS = 4
MAX_SLOPE_OF_MINIMUM = 1e-10
TARGET_SLOPE = 1e-12
# The linear equations of such a step are solved to this share of the gradient, or to rounding.
SOLVED_SHARE = 1e-3
ROUNDED_RESIDUAL = 1e-15
# Entries (K, m) of rows that are worked on together: they stay in the cache of a processor.
MAX_ENTRIES_OF_BLOCK = 2**16
# A loss as small as this is on its way to 0.
MIN_LOSS = 1e-6
# Ordinary fits take 5 to 25 steps; a loss without a minimum may never end.
MAX_STEPS = 50
# Scores beside one that is far away have large weights. A step is at most twice the last.
MAX_RADIUS = 1e12
DIVERGED = (
    "predictions tell some classes apart without error, so the log loss falls as parameters grow, "
    "and there is no best map: more rows, or a method with fewer parameters, would have one"
)


class Loss(ABC):
    """A mean log loss as a function of parameters theta (d,)."""

    @abstractmethod
    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta, and its gradient (d,)."""

    @abstractmethod
    def curvature_along(self, theta: F64, direction: F64) -> F64:
        """Multiply the second derivatives (d, d) at theta by a direction (d,)."""


class Minimum(NamedTuple):
    """Parameters of the smallest loss.

    Parameters
    ----------
    theta : (d,) float64 array
    loss : float
    warning : str
        A sentence where there is no minimum, else "".
    """

    theta: F64
    loss: float
    warning: str


def minimise(loss: Loss, start: F64) -> Minimum:
    """Find the parameters of the smallest loss, from a start (d,).

    Notes
    -----
    The search of scipy compares losses, whose rounding ends it at gradients of about 1e-8. So
    Newton's method makes the last steps, by gradients alone. Both take products of the second
    derivatives with directions, each as costly as a gradient: matrix scaling of 100 classes has
    10,100 parameters, whose matrix of second derivatives would be too large.
    """
    from scipy.optimize import minimize

    search = minimize(
        loss.evaluate, start, jac=True, hessp=loss.curvature_along, method="trust-ncg",
        options={"gtol": MAX_SLOPE, "maxiter": MAX_STEPS, "max_trust_radius": MAX_RADIUS},
    )  # fmt: skip
    theta = search.x
    value = search.fun
    slope = search.jac
    for _ in range(MAX_NEWTON_STEPS):
        if abs(slope).max() <= TARGET_SLOPE:
            break
        next_theta = theta - newton_step(loss, theta, slope)
        next_value, next_slope = loss.evaluate(next_theta)
        if not abs(next_slope).max() < abs(slope).max():
            break
        theta = next_theta
        value = next_value
        slope = next_slope
    is_minimum = abs(slope).max() <= MAX_SLOPE_OF_MINIMUM and value > MIN_LOSS
    return Minimum(theta, float(value), "" if is_minimum else DIVERGED)


def newton_step(loss: Loss, theta: F64, slope: F64) -> F64:
    """Divide a gradient (d,) by the second derivatives at theta.

    Conjugate gradients do so by products with directions.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    product = partial(loss.curvature_along, theta)
    curvature = LinearOperator((theta.size, theta.size), matvec=product, dtype=np.float64)
    step, _ = cg(curvature, slope, rtol=SOLVED_SHARE, atol=ROUNDED_RESIDUAL)
    return np.asarray(step)


class LogisticLoss(Loss):
    """Mean log loss of outcomes in logistic regression.

    It is the mean of ``log(1 + exp(z)) - t z`` with ``z = features @ theta``.

    Parameters
    ----------
    features : (n, d) float64 array
    target : (n,) float64 array
        The outcome t of each row, or a share of outcomes of 1.
    weight : (n,) float64 array
        Sums to 1.
    """

    def __init__(self, features: F64, target: F64, weight: F64) -> None:
        self.features = features
        self.target = target
        self.weight = weight

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta, and its gradient (d,)."""
        z = self.features @ theta
        e = np.exp(-np.abs(z))
        p = np.where(z >= 0, 1.0, e) / (1 + e)
        value = self.weight @ (np.maximum(z, 0) - self.target * z + np.log1p(e))
        return float(value), self.features.T @ (self.weight * (p - self.target))

    def curvature_along(self, theta: F64, direction: F64) -> F64:
        """Multiply the second derivatives (d, d) at theta by a direction (d,)."""
        e = np.exp(-np.abs(self.features @ theta))
        curvature = self.weight * e / (1 + e) ** 2
        return np.asarray(self.features.T @ (curvature * (self.features @ direction)))


class SoftmaxLoss(Loss):
    """Mean log loss of labels under the softmax of linear functions of logits.

    The parameters are entries of a *line* for each class: the weights of its logits, and an
    intercept. A search is of the lines of standardised logits, so that it converges in few steps.

    Parameters
    ----------
    logits : (n, K) array
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    is_free : (K, K + 1) bool array
        The entries of the lines that are parameters; others are 0. Where a class has only the
        weight of its own logit, products of whole matrices are spared.
    penalty : (K, K + 1) float64 array
        The factor of the square of each entry, which is added to the loss.

    Notes
    -----
    Guo, Pleiss, Sun and Weinberger (2017, "On calibration of modern neural networks", section 4.2),
    with the penalties of Kull et al. (2019, "Beyond temperature scaling", section 3).
    """

    def __init__(
        self, logits: NDArray[Any], label: I64, weight: F64, is_free: NDArray[np.bool_],
        penalty: F64,
    ) -> None:  # fmt: skip
        n_rows, n_classes = logits.shape
        values = np.ascontiguousarray(logits.T, np.float64)
        self.mean = values @ weight
        values = values - self.mean[:, None]
        deviation = np.sqrt(values**2 @ weight)
        rounding = MAX_ROUNDING_SHARE * np.abs(self.mean)
        self.scale = np.where(deviation > np.maximum(MIN_SCALE, rounding), deviation, 1.0)
        # Classes are the first axis (K, n), as numpy is slow at short last ones.
        self.features = values / self.scale[:, None]
        self.label = label
        self.weight = weight
        self.is_free = is_free
        self.penalty = penalty
        self.has_own_logit_alone = bool((is_free[:, :-1] == np.eye(n_classes)).all())
        step = max(1, MAX_ENTRIES_OF_BLOCK // n_classes)
        self.blocks = [slice(start, start + step) for start in range(0, n_rows, step)]
        # Probabilities at a theta, which all products there share.
        self._theta = np.empty(0)
        self._p = np.empty(self.features.shape)

    def theta_of(self, factor: float) -> F64:
        """Compute the parameters (d,) of the logits times a factor."""
        lines = factor * np.column_stack([np.diag(self.scale), self.mean])
        return np.asarray(lines[self.is_free])

    def lines_of(self, theta: F64) -> F64:
        """Arrange parameters (d,) as the lines (K, K + 1) of standardised logits."""
        lines = np.zeros(self.is_free.shape)
        lines[self.is_free] = theta
        return lines

    def for_logits(self, lines: F64) -> F64:
        """Convert lines of standardised logits to lines of the logits as they were passed."""
        weights = lines[:, :-1] / self.scale
        return np.column_stack([weights, lines[:, -1] - weights @ self.mean])

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta with its penalties, and its gradient."""
        lines = self.lines_of(theta)
        value = float((self.penalty * self.for_logits(lines) ** 2).sum())
        slope = self._slope_of_penalty(lines)
        self._theta = theta.copy()
        for rows in self.blocks:
            label = self.label[rows]
            each_row = np.arange(label.size)
            z = self._values(lines, rows)
            z -= z.max(axis=0)
            z_of_label = z[label, each_row]
            p = np.exp(z, out=z)
            total = p.sum(axis=0)
            p /= total
            self._p[:, rows] = p
            value += float(self.weight[rows] @ (np.log(total) - z_of_label))
            p[label, each_row] -= 1
            p *= self.weight[rows]
            self._add_sums(slope, p, rows)
        return value, slope[self.is_free]

    def curvature_along(self, theta: F64, direction: F64) -> F64:
        """Multiply the second derivatives (d, d) at theta by a direction (d,).

        Notes
        -----
        A change u of the z of a row changes its probabilities p by ``p (u - sum p u)``.
        """
        if not np.array_equal(theta, self._theta):
            self.evaluate(theta)
        lines = self.lines_of(direction)
        product = self._slope_of_penalty(lines)
        for rows in self.blocks:
            p = self._p[:, rows]
            change = self._values(lines, rows)
            change -= np.einsum("kn,kn->n", p, change)
            change *= p
            change *= self.weight[rows]
            self._add_sums(product, change, rows)
        return np.asarray(product[self.is_free])

    def _values(self, lines: F64, rows: slice) -> F64:
        """Compute the values (K, m) of lines in some rows."""
        features = self.features[:, rows]
        intercepts = lines[:, -1:]
        if self.has_own_logit_alone:
            return np.asarray(lines.diagonal()[:, None] * features + intercepts)
        return np.asarray(lines[:, :-1] @ features + intercepts)

    def _add_sums(self, sums: F64, values: F64, rows: slice) -> None:
        """Add to entries of lines the sums of values (K, m), and of values times logits."""
        features = self.features[:, rows]
        if self.has_own_logit_alone:
            each_class = np.arange(len(sums))
            sums[each_class, each_class] += np.einsum("kn,kn->k", values, features)
        else:
            sums[:, :-1] += values @ features.T
        sums[:, -1] += values.sum(axis=1)

    def _slope_of_penalty(self, lines: F64) -> F64:
        """Compute the derivatives of the penalty by the entries of lines."""
        slope = 2 * self.penalty * self.for_logits(lines)
        weights = (slope[:, :-1] - np.outer(slope[:, -1], self.mean)) / self.scale
        return np.column_stack([weights, slope[:, -1]])


class TemperatureLoss(Loss):
    """Mean log loss of ``softmax(z / T)``, whose parameter is ``-log T``.

    Parameters
    ----------
    logits : (n, K) float64 or float32 array
        The logits z, which are not copied.
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    """

    def __init__(self, logits: NDArray[Any], label: I64, weight: F64) -> None:
        self.logits = logits
        self.label = label
        self.weight = weight
        self.largest = logits.max(axis=1).astype(np.float64)
        # The sums at each inverse temperature: the loss and both derivatives take one pass.
        self._sums: dict[float, F64] = {}

    def sums(self, theta: F64) -> F64:
        """Compute the loss, its first derivative, and the second less the first."""
        inverse = float(np.exp(theta[0]))
        if inverse not in self._sums:
            sums = np.zeros(3)
            for rows, logits in float64_parts(self.logits):
                kernels.arithmetic.temperature_sums(
                    logits, self.largest[rows], self.label[rows], self.weight[rows], inverse, sums
                )
            self._sums[inverse] = sums
        return self._sums[inverse]

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta, and its gradient (1,)."""
        value, slope, _ = self.sums(theta)
        return float(value), np.array([slope])

    def curvature_along(self, theta: F64, direction: F64) -> F64:
        """Multiply the second derivative at theta by a direction (1,)."""
        return np.asarray(self.sums(theta)[1:].sum() * direction)
