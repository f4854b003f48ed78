"""Curves of a Gaussian process around the diagonal, with a line.

``logit c(s) = x + b_0 + b_1 (x - mean x) + f(u)`` with x the logit of the score and u its mid-rank,
from 0 to 1. All of it has the scale tau: b_0 is normal with standard deviation tau, b_1 with tau /
2, and f is a Gaussian process with the cosines ``cos(pi k u)``, k = 0, 1, 2, ..., whose variances
``v_k = 2 tau**2 / (1 + (k / rho)**d) / Z`` add up to ``2 tau**2`` from k = 1 on: on average over u
its variance is ``tau**2``. With a decay d of 2 or 4 its precision in C cells of equal weight has
three or five diagonals. For each of some hyperparameters (tau, rho, d) the posterior is Laplace's
approximation (Rasmussen and Williams 2006, "Gaussian processes for machine learning", section 3.4).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece import kernels
from fastece.estimators.bayes.fixed_numbers import process_normals
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels.bayes import Fits, Priors, RankCells

# Scales tau.
SCALES = 2.0 ** np.arange(-5, 3)
# How rough f is: (rho, d). The first is smooth, with a turn or two; the second has bends of every
# size.
ROUGHNESS = ((3.0, 4), (9.0, 2))
# Standard deviation of b_1, in units of tau.
SLOPE = 0.5


class ScaleLaw(NamedTuple):
    """The prior of the scale: ``p(tau) ~ sech(log(tau / middle))**power``."""

    power: float
    middle: float


VALUE_LAW = ScaleLaw(power=8.0, middle=0.4)
# An interval should not depend on a guess of the scale: its law is wider.
INTERVAL_LAW = ScaleLaw(power=4.0, middle=0.45)


class Hyperpriors(NamedTuple):
    """Hyperparameters with their log priors, ordered by scale.

    Attributes
    ----------
    curve : Priors
        Prior precisions of the curve under each hyperparameter.
    value, interval : (16,) float64 arrays
        Log prior probability of each, for the value and for the interval.
    """

    curve: "Priors"
    value: F64
    interval: F64


@lru_cache(maxsize=32)
def hyperpriors(n_cells: int) -> Hyperpriors:
    """Compute the hyperparameters and their priors for a number of cells."""
    hyperparameters = [(tau, rho, decay) for tau in SCALES for rho, decay in ROUGHNESS]
    scale = np.array([tau for tau, _, _ in hyperparameters])
    value, interval = (log_probabilities(scale, law) for law in (VALUE_LAW, INTERVAL_LAW))
    return Hyperpriors(arrange_priors(n_cells, hyperparameters), value, interval)


def log_probabilities(scale: F64, law: ScaleLaw) -> F64:
    """Compute the log probability (16,) of each of some scales."""
    log_p = -law.power * np.log((scale / law.middle + law.middle / scale) / 2)
    return np.asarray(log_p - np.log(np.exp(log_p).sum()))


def arrange_priors(n_cells: int, hyperparameters: Sequence[tuple[float, float, int]]) -> "Priors":
    """Arrange the prior precisions of all hyperparameters as kernels take them."""
    precisions = [prior_precision(n_cells, tau, rho, decay) for tau, rho, decay in hyperparameters]
    bands = np.array([precision.bands for precision in precisions])
    lines = np.array([precision.line for precision in precisions])
    log_dets = np.array([precision.log_det for precision in precisions])
    rows = bands[:, :, [0, 1, kernels.bayes.MIDDLE, n_cells - 2, n_cells - 1]].T.ravel()
    return kernels.bayes.Priors(rows, lines.T.ravel(), log_dets / 2)


class PriorPrecision(NamedTuple):
    """Prior precisions under one hyperparameter.

    Attributes
    ----------
    bands : (3, C + 2) float64 array
        The diagonals of the precision of f.
    line : (2,) float64 array
        The precisions of b_0 and b_1.
    log_det : float
        Log determinant of both.
    """

    bands: F64
    line: F64
    log_det: float


def prior_precision(n_cells: int, tau: float, rho: float, decay: int) -> PriorPrecision:
    """Compute the prior precisions of f and b under one hyperparameter.

    The second difference L of cells with level ends has the eigenvectors ``cos(pi k (c + 1/2) /
    C)`` and the eigenvalues ``2 - 2 cos(pi k / C)``, about ``(pi k / C)**2``: a multiple of ``1 +
    (C / pi / rho)**d L**(d / 2)`` is the precision of the process, exact except for the highest k.
    """
    factor = (n_cells / math.pi / rho) ** decay
    eigenvalue = 2 - 2 * np.cos(math.pi * np.arange(n_cells) / n_cells)
    variance = 1 / (1 + factor * eigenvalue ** (decay // 2))
    precision_of_constant = variance[1:].sum() / 2 / tau**2
    scale = precision_of_constant * 2 / n_cells
    power = np.zeros((3, n_cells + 2))  # the diagonals of L, or of its square
    last = n_cells - 1
    if decay == 2:
        power[0, :n_cells] = 2
        power[1, 1:n_cells] = -1
        power[0, [0, last]] = 1
    else:
        power[0, :n_cells] = 6
        power[1, 1:n_cells] = -4
        power[2, 2:n_cells] = 1
        power[0, [0, last]] = 2
        power[1, [1, last]] = -3
    bands = scale * factor * power
    bands[0, :n_cells] += scale
    # The process has a constant of its own, which is taken off b_0.
    line = np.array([1 / (tau**2 - 0.5 / precision_of_constant), 1 / (SLOPE * tau) ** 2])
    log_det = float(np.log(scale / variance).sum() + np.log(line).sum())
    return PriorPrecision(bands, line, log_det)


def fit_process(cells: "RankCells", x: F64, t: F64, priors: "Priors") -> "Fits":
    """Fit the curve in cells by Laplace's method, for each hyperparameter.

    x and t (C,) are the logits of the scores and their distances from the mean.
    """
    bayes = kernels.bayes
    logits = bayes.Logits(*np.empty((3, x.size * int(bayes.LANES))))
    fits = bayes.Fits(
        state=np.zeros((x.size + 4) * int(bayes.LINE)),
        line=np.zeros(bayes.LINE_QUANTITIES * int(bayes.LANES)),
        log_evidence=np.empty(bayes.LANES),
    )
    bayes.fit(x, t, cells, logits, priors, fits)
    bayes.fill_evidence(cells, logits, priors, fits)
    return fits


def draw_process(x: F64, t: F64, fits: "Fits", log_prior: F64, k: int, count: int) -> F64:
    """Draw logits (C, S) of curves, in increasing order of their scale tau.

    With the fixed numbers of problem k, from the mixture over hyperparameters whose log prior
    probabilities (16,) are given.
    """
    logit = np.empty((x.size + 2, count))
    logit[x.size :] = 0.0
    kernels.bayes.draw_logits(x, t, fits, log_prior, process_normals(x.size, k, count), logit)
    return logit[: x.size]
