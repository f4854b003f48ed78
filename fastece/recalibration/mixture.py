"""Shares of a mixture, of the greatest likelihood."""

import numpy as np

from fastece.kernels.types import F64

# The search ends where no shares have a log likelihood for each row that is greater by more than
# this. Usually it takes about ten steps.
MAX_GAIN = 1e-11
MAX_STEPS = 100
# Log likelihoods that differ by less are equal.
ROUNDING = 1e-14
# Fractions of a step that are tried until the log likelihood does not fall.
STEP_FRACTIONS = 0.5 ** np.arange(50)
# Share of the mean curvature that is added in every direction, where densities cannot tell some
# parts apart.
RIDGE = 1e-12


def mixture_shares(density: F64, weight: F64) -> F64:
    """Find the shares (K,) of the parts of a mixture that make rows the most likely.

    Parameters
    ----------
    density : (n, K) float64 array
        The density of each row in every part, or any multiple of all of them.
    weight : (n,) float64 array
        Sums to 1.

    Notes
    -----
    With ``sum x`` taken off the log likelihood, its maximum over all x of non-negative numbers has
    the sum 1. So each step of Newton's method, which fits a parabola, is a problem of least squares
    in non-negative numbers.
    """
    from scipy.optimize import nnls

    def loss(x: F64) -> float:
        with np.errstate(divide="ignore"):
            return float(x.sum() - weight @ np.log(density @ x))

    n_parts = density.shape[1]
    x = np.full(n_parts, 1 / n_parts)
    for _ in range(MAX_STEPS):
        root = density * (np.sqrt(weight) / (density @ x))[:, None]
        gradient = np.sqrt(weight) @ root  # A step of the EM algorithm is to x * gradient.
        lower = np.linalg.cholesky(curvature(root))
        target, _ = nnls(lower.T, np.linalg.solve(lower, 2 * gradient - 1))
        step = target - x
        max_loss = loss(x) + ROUNDING
        fraction = next((f for f in STEP_FRACTIONS if loss(x + f * step) <= max_loss), None)
        if gradient.max() <= 1 + MAX_GAIN or fraction is None:
            break
        x = x + fraction * step
        x /= x.sum()
    return x


def curvature(root: F64) -> F64:
    """Compute the negative second derivatives (K, K) of a log likelihood.

    The rows of `root` (n, K) are gradients of the log likelihood of a row, times the root of its
    weight.
    """
    hessian = root.T @ root
    return np.asarray(hessian + RIDGE * np.trace(hessian) * np.eye(len(hessian)))
