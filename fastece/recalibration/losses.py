"""Losses of logistic and multinomial regression, with their first and second derivatives."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.kernels.types import F64, I64

# Logits whose standard deviation, or range, is less count as equal: quotients by this number, and
# by its square, are finite.
MIN_SCALE = 1e-60


class Loss(ABC):
    """A mean log loss as a function of parameters theta (d,)."""

    @abstractmethod
    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta, and its gradient (d,)."""

    @abstractmethod
    def hessian(self, theta: F64) -> F64:
        """Compute the matrix (d, d) of second derivatives at theta."""


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

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix (d, d) of second derivatives at theta."""
        e = np.exp(-np.abs(self.features @ theta))
        curvature = self.weight * e / (1 + e) ** 2
        product: F64 = self.features.T @ (self.features * curvature[:, None])
        return product


class StandardisedLogits:
    """Logits (n, K), centred and divided by their standard deviations.

    Parameters
    ----------
    logits : (n, K) array
    weight : (n,) float64 array
        Sums to 1.

    Attributes
    ----------
    x : (n, K) float64 array
        ``(logits - mean) / scale``.
    mean, scale : (K,) float64 arrays
        The scale is 1 for logits that are all equal.
    """

    def __init__(self, logits: NDArray[Any], weight: F64) -> None:
        logits = logits.astype(np.float64)
        self.mean = weight @ logits
        deviation = np.sqrt(weight @ (logits - self.mean) ** 2)
        self.scale = np.where(deviation > MIN_SCALE, deviation, 1.0)
        self.x = (logits - self.mean) / self.scale


class SoftmaxLoss(Loss):
    """Mean log loss of labels under a softmax, whose logits are linear in features.

    The parameters are a *line* for each class: the weights of its features, the last of which is
    constant 1. Features are standardised logits, so that a search converges in few steps; penalties
    are of the lines for the logits as they were passed, ``line @ unscale``.

    Parameters
    ----------
    features : (m, n, d) float64 array
        m is 1 where all classes have the same features, or K where each has its own.
    unscale : (m, d, d) float64 array
        Converts lines of features to lines of the logits as they were passed.
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    penalty : (K, d) float64 array
        The factor of the square of each entry of the lines of the logits as they were passed.
    shifts : (d,) bool array
        Entries of a line that may change by one number in all classes, which changes no probability
        and no penalty.
    start : (K d,) float64 array
        Lines from which a search starts.

    Notes
    -----
    Guo, Pleiss, Sun and Weinberger (2017, "On calibration of modern neural networks", section 4.2),
    with the penalties of Kull et al. (2019, "Beyond temperature scaling", section 3).
    """

    def __init__(
        self, *, features: F64, unscale: F64, label: I64, weight: F64, penalty: F64,
        shifts: NDArray[np.bool_], start: F64,
    ) -> None:  # fmt: skip
        self.features = features
        self.unscale = unscale
        self.label = label
        self.weight = weight
        self.penalty = penalty
        self.shifts = shifts
        self.start = start
        self.n_classes = len(penalty)
        self.each_row = np.arange(label.size)

    def lines(self, theta: F64) -> F64:
        """Arrange parameters as the lines (m, K / m, d) of each set of features."""
        return theta.reshape(len(self.features), -1, self.features.shape[2])

    def weights_and_intercepts(self, theta: F64) -> tuple[F64, F64]:
        """Compute weights (K, d - 1) and intercepts (K,) for logits as they were passed."""
        lines = (self.lines(theta) @ self.unscale).reshape(self.penalty.shape)
        return lines[:, :-1], lines[:, -1]

    def probabilities(self, theta: F64) -> tuple[F64, F64]:
        """Compute probabilities (n, K) and the log losses (n,) of the labels."""
        z = self.features @ self.lines(theta).transpose(0, 2, 1)
        z = z.transpose(1, 0, 2).reshape(-1, self.n_classes)
        z -= z.max(axis=1, keepdims=True)
        z_of_label = z[self.each_row, self.label]
        p = np.exp(z, out=z)
        total = p.sum(axis=1)
        p /= total[:, None]
        return p, np.log(total) - z_of_label

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta with its penalties, and its gradient."""
        p, losses = self.probabilities(theta)
        p *= self.weight[:, None]
        p[self.each_row, self.label] -= self.weight
        lines = self.lines(theta) @ self.unscale
        penalties = self.penalty.reshape(lines.shape) * lines
        gradient = p.T.reshape(len(lines), -1, self.label.size) @ self.features
        gradient += 2 * penalties @ self.unscale.transpose(0, 2, 1)
        return float(self.weight @ losses + (penalties * lines).sum()), gradient.ravel()

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix (K d, K d) of second derivatives at theta.

        Notes
        -----
        ``sum_i w_i (p_k [k = l] - p_k p_l) x_k x_l`` with x_k the features of class k, and
        penalties. Shifts change nothing, so this matrix is singular: a term that fixes the sum over
        the classes of each entry that may shift, a sum which is 0 at the start and in every step of
        a search, makes it regular. So does a term for weights of logits that are all equal.
        """
        p, _ = self.probabilities(theta)
        n_sets, n_rows, n_features = self.features.shape
        root = np.sqrt(self.weight)[:, None] * p
        scaled = root[:, :, None] * self.features.transpose(1, 0, 2)
        scaled = scaled.reshape(n_rows, -1)
        total: F64 = -scaled.T @ scaled
        for k in range(self.n_classes):
            block = slice(k * n_features, (k + 1) * n_features)
            x = self.features[k % n_sets]
            unscale = self.unscale[k % n_sets]
            total[block, block] += x.T @ (x * (self.weight * p[:, k])[:, None])
            total[block, block] += 2 * (unscale * self.penalty[k]) @ unscale.T
        is_flat = total.diagonal() == 0
        total += np.diag(is_flat.astype(np.float64))
        all_classes = np.ones((self.n_classes, self.n_classes))
        return total + np.kron(all_classes, np.diag(self.shifts.astype(np.float64)))


def vector_scaling_loss(
    logits: NDArray[Any], label: I64, weight: F64, factor: float
) -> SoftmaxLoss:
    """Build the loss of vector scaling: a weight and an intercept for each class.

    Parameters
    ----------
    logits : (n, K) array
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    factor : float
        A search starts at the logits times this factor.
    """
    standard = StandardisedLogits(logits, weight)
    n_classes = logits.shape[1]
    x = standard.x.T[:, :, None]
    unscale = np.zeros((n_classes, 2, 2))
    unscale[:, 0, 0] = 1 / standard.scale
    unscale[:, 0, 1] = -standard.mean / standard.scale
    unscale[:, 1, 1] = 1.0
    start = factor * np.column_stack([standard.scale, standard.mean])
    return SoftmaxLoss(
        features=np.concatenate([x, np.ones_like(x)], axis=2), unscale=unscale, label=label,
        weight=weight, penalty=np.zeros((n_classes, 2)),
        # A change of all weights does change probabilities, as each is of another logit.
        shifts=np.array([False, True]), start=start.ravel(),
    )  # fmt: skip


def matrix_scaling_loss(
    logits: NDArray[Any], label: I64, weight: F64, factor: float, *, off_diagonal: float,
    intercept: float,
) -> SoftmaxLoss:  # fmt: skip
    """Build the loss of matrix scaling: weights of all logits in all classes.

    Parameters
    ----------
    logits : (n, K) array
    label : (n,) int64 array
    weight : (n,) float64 array
        Sums to 1.
    factor : float
        A search starts at the logits times this factor.
    off_diagonal, intercept : float
        Penalties ``off_diagonal / (K (K - 1)) sum W_ij**2`` over i != j, and ``intercept / K sum
        b_j**2`` (Kull et al. 2019, section 3).
    """
    standard = StandardisedLogits(logits, weight)
    n_classes = logits.shape[1]
    x = standard.x
    unscale = np.eye(n_classes + 1)
    unscale[:-1, :-1] = np.diag(1 / standard.scale)
    unscale[:-1, -1] = -standard.mean / standard.scale
    penalty = np.full((n_classes, n_classes + 1), intercept / n_classes)
    penalty[:, :-1] = off_diagonal / (n_classes * (n_classes - 1)) * (1 - np.eye(n_classes))
    start = factor * np.column_stack([np.diag(standard.scale), standard.mean])
    return SoftmaxLoss(
        features=np.column_stack([x, np.ones(len(x))])[None], unscale=unscale[None], label=label,
        weight=weight, penalty=penalty, shifts=(penalty == 0).all(axis=0), start=start.ravel(),
    )  # fmt: skip


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
            kernels.arithmetic.temperature_sums(
                self.logits, self.largest, self.label, self.weight, inverse, sums
            )
            self._sums[inverse] = sums
        return self._sums[inverse]

    def evaluate(self, theta: F64) -> tuple[float, F64]:
        """Compute the loss at theta, and its gradient (1,)."""
        value, slope, _ = self.sums(theta)
        return float(value), np.array([slope])

    def hessian(self, theta: F64) -> F64:
        """Compute the matrix (1, 1) of second derivatives at theta."""
        return np.array([[self.sums(theta)[1:].sum()]])
