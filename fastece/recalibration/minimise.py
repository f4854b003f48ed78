"""The search for the parameters of the smallest loss, by scipy's optimisers."""

from typing import Any, NamedTuple

import numpy as np

from fastece.kernels.types import F64
from fastece.recalibration.losses import MIN_SCALE, Loss

# A search ends at a gradient this small: the loss is then about 1e-12 above its minimum, and nearer
# to the minimum, losses differ by rounding alone.
MAX_SLOPE = 1e-6
# After the search, steps of Newton's method square the error that is left, so that few of them
# reach a gradient of rounding. A gradient that is still larger than this belongs to a loss that
# falls for ever.
MAX_SLOPE_OF_MINIMUM = 1e-7
# A gradient this small is one of rounding.
ROUNDED_SLOPE = 1e-13
MAX_NEWTON_STEPS = 3
# A loss as small as this is on its way to 0.
MIN_LOSS = 1e-6
# With more parameters than this the matrix of second derivatives is too large. L-BFGS does without
# it, and takes more and cheaper steps.
MAX_NEWTON_PARAMETERS = 300
# Ordinary fits take ten to a hundred steps; a loss without a minimum never ends.
MAX_STEPS = 500
# Steps that L-BFGS remembers.
LBFGS_MEMORY = 50
# A loss counts as curved by at least this share of its largest curvature, in every direction.
MIN_CURVATURE_SHARE = 1e-8
DIVERGED = (
    "predictions tell some classes apart without error, so the log loss falls as parameters grow, "
    "and there is no best map: more rows, or a method with fewer parameters, would have one"
)


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
    """Find the parameters of the smallest loss, from a start (d,)."""
    if start.size > MAX_NEWTON_PARAMETERS:
        return minimise_by_gradients(loss, start)
    return minimise_by_curvature(loss, start)


def minimise_by_gradients(loss: Loss, start: F64) -> Minimum:
    """Find the parameters of the smallest loss without its second derivatives."""
    from scipy.optimize import minimize

    options: Any = {"gtol": MAX_SLOPE, "ftol": 0.0, "maxiter": MAX_STEPS, "maxcor": LBFGS_MEMORY}
    search = minimize(loss.evaluate, start, jac=True, method="L-BFGS-B", options=options)
    is_minimum = abs(search.jac).max() <= MAX_SLOPE and search.fun > MIN_LOSS
    return Minimum(search.x, float(search.fun), "" if is_minimum else DIVERGED)


def minimise_by_curvature(loss: Loss, start: F64) -> Minimum:
    """Find the parameters of the smallest loss by BFGS and Newton's method.

    Notes
    -----
    BFGS begins with the second derivatives at the start, and needs a tenth as many of them as
    Newton's method: in matrix scaling of 50 000 rows of 10 classes they take 20 times as long as a
    gradient.
    """
    from scipy.optimize import minimize

    options = {"gtol": MAX_SLOPE, "maxiter": MAX_STEPS, "hess_inv0": inverse_curvature(loss, start)}
    search = minimize(loss.evaluate, start, jac=True, method="BFGS", options=options)
    theta = search.x
    value, slope = loss.evaluate(theta)
    for _ in range(MAX_NEWTON_STEPS):
        next_theta = theta - np.linalg.pinv(loss.hessian(theta), hermitian=True) @ slope
        next_value, next_slope = loss.evaluate(next_theta)
        if not abs(next_slope).max() < abs(slope).max():
            break
        theta = next_theta
        value = next_value
        slope = next_slope
        if not ROUNDED_SLOPE < abs(slope).max() <= MAX_SLOPE_OF_MINIMUM:
            break
    is_minimum = abs(slope).max() <= MAX_SLOPE_OF_MINIMUM and value > MIN_LOSS
    return Minimum(theta, value, "" if is_minimum else DIVERGED)


def inverse_curvature(loss: Loss, theta: F64) -> F64:
    """Compute a positive definite inverse (d, d) of the second derivatives at theta."""
    curvature, axes = np.linalg.eigh(loss.hessian(theta))
    size = np.abs(curvature)
    root = axes / np.sqrt(np.maximum(size, MIN_CURVATURE_SHARE * size.max() + MIN_SCALE))
    return np.asarray(root @ root.T)
