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
# The least second derivatives that a search is scaled by, times the variances of logits: some
# logits do not vary, and some classes have a probability of nearly 0 in all rows.
MIN_CURVATURE = 1e-8
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
        # Second derivatives at a theta, which all products there share.
        self._theta = np.empty(0)
        self._curvatures = np.empty((0, 0))

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta, and its gradient (d,)."""
        z = self.features @ theta
        e = np.exp(-np.abs(z))
        p = np.where(z >= 0, 1.0, e) / (1 + e)
        curvature = self.weight * e / (1 + e) ** 2
        self._theta = theta.copy()
        self._curvatures = (self.features.T * curvature) @ self.features
        value = self.weight @ (np.maximum(z, 0) - self.target * z + np.log1p(e))
        return float(value), self.features.T @ (self.weight * (p - self.target))

    def curvature_along(self, theta: F64, direction: F64) -> F64:
        """Multiply the second derivatives (d, d) at theta by a direction (d,)."""
        if not np.array_equal(theta, self._theta):
            self.evaluate(theta)
        return np.asarray(self._curvatures @ direction)


class LinesLoss(Loss):
    """Mean log loss of labels under the softmax of a line of logits for each class.

    A line (m,) has the weights of one logit or of all, and its value at the mean logits, which may
    be far from 0. The search is of lines times the Cholesky factor of about their second
    derivatives at the start, so that it takes few steps. A subclass writes `_sums` and `_product`.

    Parameters
    ----------
    mean, variance : (K,) or (K, K) float64 arrays
        Of the logits of each line.
    start : (K, m) float64 array
        Lines at which the search begins.
    identity : (K, m) float64 array
        The weights and the intercepts, at logits of 0, of lines that change nothing.
    penalty : (K, m) float64 array
        The factor of the squared distance of each entry from `identity`, added to the loss.

    Notes
    -----
    Guo, Pleiss, Sun and Weinberger (2017, "On calibration of modern neural networks", section 4.2).
    With penalties, a search for 1000 classes of vector scaling takes 14 passes over the logits, and
    of standardised logits 45; one for 100 classes of matrix scaling takes 130 rather than 430.
    """

    def __init__(self, mean: F64, variance: F64, start: F64, identity: F64, penalty: F64) -> None:
        n_classes, n_entries = penalty.shape
        self.identity = identity
        self.penalty = penalty
        self.mean = np.broadcast_to(mean, (n_classes, n_entries - 1))
        # The derivatives of an intercept by the entries of its line.
        ones = np.ones((n_classes, 1))
        by_entries = np.column_stack([-self.mean, ones])
        curvature = self._curvatures(start)
        curvature += 2 * penalty[:, -1, None, None] * by_entries[:, :, None] * by_entries[:, None]
        each = np.arange(n_entries)
        curvature[:, each[:-1], each[:-1]] += 2 * penalty[:, :-1]
        scale = np.column_stack([np.broadcast_to(variance, self.mean.shape), ones])
        curvature[:, each, each] += MIN_CURVATURE * scale
        cholesky = np.linalg.cholesky(curvature)
        self.start = (cholesky.mT @ start[..., None]).ravel()
        self.factor = np.linalg.inv(cholesky.mT)

    @abstractmethod
    def _sums(self, lines: F64) -> tuple[float, F64]:
        """Compute the loss of lines (K, m) without penalties, and its derivatives (K, m)."""

    @abstractmethod
    def _product(self, lines: F64, change: F64) -> F64:
        """Multiply second derivatives without penalties by a change of lines (K, m)."""

    @abstractmethod
    def _curvatures(self, lines: F64) -> F64:
        """Compute about the second derivatives (K, m, m) of each class by its line."""

    def lines_at(self, theta: F64) -> tuple[F64, F64]:
        """Return the weights (K, m - 1) and the intercepts (K,) of lines at theta."""
        lines = self._with_intercepts(self._lines(theta))
        return lines[:, :-1], lines[:, -1]

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta with its penalties, and its gradient."""
        lines = self._lines(theta)
        distance = self._with_intercepts(lines) - self.identity
        value, slope = self._sums(lines)
        value += float((self.penalty * distance**2).sum())
        return value, self._gradient(slope + self._slope_of_penalty(distance))

    def curvature_along(self, theta: F64, direction: F64) -> F64:
        """Multiply the second derivatives (d, d) at theta by a direction (d,)."""
        change = self._lines(direction)
        product = self._product(self._lines(theta), change)
        return self._gradient(product + self._slope_of_penalty(self._with_intercepts(change)))

    def _lines(self, theta: F64) -> F64:
        """Return the lines (K, m) at theta (d,)."""
        return np.asarray(self.factor @ theta.reshape(*self.penalty.shape, 1))[..., 0]

    def _gradient(self, slope: F64) -> F64:
        """Convert derivatives by lines (K, m) to those by theta (d,)."""
        return np.asarray(self.factor.mT @ slope[..., None]).ravel()

    def _with_intercepts(self, lines: F64) -> F64:
        """Replace values of lines (K, m) at the mean logits by those at logits of 0."""
        weights = lines[:, :-1]
        intercept = lines[:, -1] - (weights * self.mean).sum(axis=1)
        return np.column_stack([weights, intercept])

    def _slope_of_penalty(self, distance: F64) -> F64:
        """Compute the derivatives by lines of the penalty of a distance (K, m)."""
        slope = 2 * self.penalty * distance
        slope[:, :-1] -= self.mean * slope[:, -1:]
        return slope


class VectorLoss(LinesLoss):
    """Loss of lines of one logit: a slope and an intercept for each class.

    Parameters
    ----------
    logits : (n, K) float64 or float32 array
        They are not copied: each evaluation is a pass over them.
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    slope : float
        The slope of all classes at the start, where intercepts are 0.
    penalty : float
        The factor of the squares of each slope less 1, and of each intercept.
    """

    def __init__(
        self, logits: NDArray[Any], label: I64, weight: F64, slope: float, penalty: float
    ) -> None:
        self.logits = logits
        self.label = label
        self.weight = weight
        self.mean_logit, variance = moments_of(logits, weight)
        ones = np.ones(self.mean_logit.size)
        start = slope * np.column_stack([ones, self.mean_logit])
        identity = np.column_stack([ones, 0 * ones])
        mean = self.mean_logit[:, None]
        super().__init__(mean, variance[:, None], start, identity, np.full(start.shape, penalty))

    def lines_at(self, theta: F64) -> tuple[F64, F64]:
        """Return the slopes (K,) and the intercepts (K,) of lines at theta."""
        weights, intercepts = super().lines_at(theta)
        return weights[:, 0], intercepts

    def _sums(self, lines: F64) -> tuple[float, F64]:
        loss, sums = self._all_sums(lines)
        return loss, sums[:2].T

    def _product(self, lines: F64, change: F64) -> F64:
        slope, at_mean = np.ascontiguousarray(lines.T)
        slope_change, change_at_mean = np.ascontiguousarray(change.T)
        sums = np.zeros((2, slope.size))
        for rows, logits in float64_parts(self.logits):
            kernels.arithmetic.vector_product(
                logits, self.mean_logit, slope, at_mean, slope_change, change_at_mean,
                self.weight[rows], sums,
            )  # fmt: skip
        return sums.T

    def _curvatures(self, lines: F64) -> F64:
        _, (_, _, by_slopes, by_both, by_values) = self._all_sums(lines)
        return np.stack([by_slopes, by_both, by_both, by_values], 1).reshape(-1, 2, 2)

    def _all_sums(self, lines: F64) -> tuple[float, F64]:
        """Compute the loss of lines, and sums (5, K) of its first and second derivatives."""
        slope, at_mean = np.ascontiguousarray(lines.T)
        sums = np.zeros((len(kernels.arithmetic.VECTOR_SUMS), slope.size))
        loss = 0.0
        for rows, logits in float64_parts(self.logits):
            loss += kernels.arithmetic.vector_sums(
                logits, self.mean_logit, slope, at_mean, self.label[rows], self.weight[rows], sums
            )
        return loss, sums


class MatrixLoss(LinesLoss):
    """Loss of lines of all logits.

    Parameters
    ----------
    logits : (n, K) array
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    factor : float
        The lines at the start are the logits times this number.
    penalty : (K, K + 1) float64 array
        The factor of the square of each entry of ``[W - I, b]``.

    Notes
    -----
    With the penalties of Kull et al. (2019, "Beyond temperature scaling", section 3).
    """

    def __init__(
        self, logits: NDArray[Any], label: I64, weight: F64, factor: float, penalty: F64
    ) -> None:
        n_rows, n_classes = logits.shape
        mean, variance = moments_of(logits, weight)
        # Classes are the first axis (K, n), as numpy is slow at short last ones.
        self.distance = np.ascontiguousarray(logits.T, np.float64) - mean[:, None]
        self.label = label
        self.weight = weight
        step = max(1, MAX_ENTRIES_OF_BLOCK // n_classes)
        self.blocks = [slice(start, start + step) for start in range(0, n_rows, step)]
        # Probabilities of some lines, which all products there share.
        self._lines_of_p = np.empty(0)
        self._p = np.empty(self.distance.shape)
        start = factor * np.column_stack([np.eye(n_classes), mean])
        super().__init__(mean, variance, start, np.eye(*penalty.shape), penalty)

    def _sums(self, lines: F64) -> tuple[float, F64]:
        loss = 0.0
        slope = np.zeros(lines.shape)
        self._lines_of_p = lines
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
            loss += float(self.weight[rows] @ (np.log(total) - z_of_label))
            p[label, each_row] -= 1
            p *= self.weight[rows]
            self._add_sums(slope, p, rows)
        return loss, slope

    def _product(self, lines: F64, change: F64) -> F64:
        """Multiply second derivatives without penalties by a change of lines (K, m).

        Notes
        -----
        A change u of the z of a row changes its probabilities p by ``p (u - sum p u)``.
        """
        if not np.array_equal(lines, self._lines_of_p):
            self._sums(lines)
        product = np.zeros(lines.shape)
        for rows in self.blocks:
            p = self._p[:, rows]
            u = self._values(change, rows)
            u -= np.einsum("kn,kn->n", p, u)
            u *= p
            u *= self.weight[rows]
            self._add_sums(product, u, rows)
        return product

    def _curvatures(self, lines: F64) -> F64:
        """Compute second derivatives (K, m, m), were logits and shares independent."""
        self._sums(lines)
        of_class = (self._p * (1 - self._p)) @ self.weight
        ones = np.ones((1, self.weight.size))
        entries = np.concatenate([self.distance, ones])
        return np.asarray(of_class[:, None, None] * ((entries * self.weight) @ entries.T))

    def _values(self, lines: F64, rows: slice) -> F64:
        """Compute the values (K, m) of lines in some rows."""
        return np.asarray(lines[:, :-1] @ self.distance[:, rows] + lines[:, -1:])

    def _add_sums(self, sums: F64, values: F64, rows: slice) -> None:
        """Add to entries of lines the sums of values (K, m), and of values times logits."""
        sums[:, :-1] += values @ self.distance[:, rows].T
        sums[:, -1] += values.sum(axis=1)


def moments_of(logits: NDArray[Any], weight: F64) -> tuple[F64, F64]:
    """Compute means (K,) of logits, and variances, or 1 where these are rounding."""
    mean = np.zeros(logits.shape[1])
    for rows, part in float64_parts(logits):
        mean += weight[rows] @ part
    variance = np.zeros(mean.size)
    for rows, part in float64_parts(logits):
        variance += weight[rows] @ (part - mean) ** 2
    rounding = np.maximum(MIN_SCALE, MAX_ROUNDING_SHARE * np.abs(mean))
    return mean, np.where(variance > rounding**2, variance, 1.0)


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
