"""Base rates of classes: checked, and estimated from predictions of rows without labels."""

from statistics import NormalDist
from typing import Any

import numpy as np

from fastece.data import containers as arrays
from fastece.data.errors import InputError
from fastece.kernels.types import F64

# Twice the log likelihood that is lost at the ends of an interval of 95 %, by Wilks' theorem: a
# quantile of chi-squared with one degree of freedom.
LOST_LIKELIHOOD = NormalDist().inv_cdf(0.975) ** 2
# The search ends where no rates have a log likelihood for each row that is greater by more than
# this. Usually it takes about ten steps.
MAX_GAIN = 1e-11
MAX_STEPS = 100
# Log likelihoods that differ by less are equal.
ROUNDING = 1e-14
# Fractions of a step that are tried until the log likelihood does not fall.
STEP_FRACTIONS = 0.5 ** np.arange(50)
# Share of the mean curvature that is added in every direction, where predictions cannot tell some
# classes apart.
RIDGE = 1e-12
# A base rate by which predictions are divided is at least this.
MIN_OLD_RATE = 1e-300


def read_old_rates(value: Any, n_classes: int | None = None) -> F64:
    """Check the base rates (K,) that predictions are for; none may be 0."""
    return read_rates("old", value, n_classes, min_rate=MIN_OLD_RATE, rule=", and none of them 0")


def read_new_rates(value: Any, n_classes: int | None = None) -> F64:
    """Check the base rates (K,) that predictions are mapped to."""
    return read_rates("new", value, n_classes, min_rate=0.0, rule="")


def read_rates(name: str, value: Any, n_classes: int | None, *, min_rate: float, rule: str) -> F64:
    """Check the base rate of class 1, or of every class, and return all of them (K,).

    Parameters
    ----------
    name : str
        The argument.
    value : array_like
    n_classes : int or None
        K; None for any number.
    min_rate : float
    rule : str
        Text that messages add, about `min_rate`.
    """
    rates = arrays.as_real(name, np.atleast_1d(value))
    are_numbers = rates.dtype.kind != "b"
    if rates.shape == (1,):
        rates = np.append(1.0 - rates, rates)
    is_vector = rates.ndim == 1 and n_classes in (None, rates.size)
    sums_to_one = abs(rates.sum() - 1) <= arrays.ROW_SUM_TOLERANCE
    if not (are_numbers and is_vector and (rates >= min_rate).all() and sums_to_one):
        classes = "classes" if n_classes is None else f"{n_classes} classes"
        text = f"must be the rate of class 1, or of all {classes} with the sum 1{rule}"
        raise InputError(name, text, value=value)
    return np.asarray(rates / rates.sum(), np.float64)


def estimate_rates(ratio: F64, weight: F64) -> F64:
    """Find the rates x (K,) of the greatest log likelihood ``sum w log(ratio @ x)``.

    Parameters
    ----------
    ratio : (n, K) float64 array
        Predictions divided by old rates.
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
            return float(x.sum() - weight @ np.log(ratio @ x))

    n_classes = ratio.shape[1]
    x = np.full(n_classes, 1 / n_classes)
    for _ in range(MAX_STEPS):
        root = ratio * (np.sqrt(weight) / (ratio @ x))[:, None]
        gradient = np.sqrt(weight) @ root  # A step of the EM algorithm is to x * gradient.
        lower = np.linalg.cholesky(curvature(root))
        target, _ = nnls(lower.T, np.linalg.solve(lower, 2 * gradient - 1))
        step = target - x
        max_loss = loss(x) + ROUNDING
        fraction = next((f for f in STEP_FRACTIONS if loss(x + f * step) <= max_loss), None)
        if gradient.max() <= 1 + MAX_GAIN or fraction is None:
            break
        x = x + fraction * step
    return np.asarray(x / x.sum())


def curvature(root: F64) -> F64:
    """Compute the negative second derivatives (K, K) of a log likelihood.

    The rows of `root` (n, K) are gradients of the log likelihood of a row, times the root of its
    weight.
    """
    hessian = root.T @ root
    return np.asarray(hessian + RIDGE * np.trace(hessian) * np.eye(len(hessian)))


def rate_interval(ratio: F64, weight: F64, x: F64, k: int) -> tuple[float, float]:
    """Find the interval of 95 % of the rate of class k.

    Parameters
    ----------
    ratio : (n, K) float64 array
        Predictions divided by old rates.
    weight : (n,) float64 array
        Sums to the number of rows that the weights are worth.
    x : (K,) float64 array
        The rates of the greatest log likelihood.
    k : int

    Notes
    -----
    The interval has the rates that lose at most `LOST_LIKELIHOOD`. As the rate of class k moves,
    the other rates above 0 move with it on a straight line, by the curvature at the maximum. With
    two classes that is the profile likelihood.
    """
    from scipy.optimize import brentq

    moves = (x > 0) | (np.arange(x.size) == k)
    if moves.sum() < 2:  # All rows are of class k: any other class may take a share.
        moves = np.ones(x.size, bool)
    place_of_k = int(moves[:k].sum())
    root = ratio[:, moves] * (np.sqrt(weight) / (ratio @ x))[:, None]
    inverse = np.linalg.inv(curvature(root))
    # The direction of the smallest loss for a change of class k, along which rates sum to 0.
    change = inverse[place_of_k] - inverse.sum(0) * inverse[place_of_k].sum() / inverse.sum()
    likelihood = ratio @ x
    slope = ratio[:, moves] @ (change / change[place_of_k])

    def excess(rate: float) -> float:
        relative = 1 + (rate - x[k]) * slope / likelihood
        if relative.min() <= 0:
            return np.inf
        return -2 * float(weight @ np.log(relative)) - LOST_LIKELIHOOD

    def end_towards(bound: float) -> float:
        return bound if excess(bound) <= 0 else float(brentq(excess, x[k], bound))

    return end_towards(0.0), end_towards(1.0)
