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
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fastece import kernels
from fastece.kernels.types import F64

# Scales tau.
SCALES = 2.0 ** np.arange(-5, 3)
# How rough f is: (rho, d). The first is smooth, with a turn or two; the second has bends of every
# size.
ROUGHNESS = ((3.0, 4), (9.0, 2))
# Standard deviation of b_1, in units of tau.
SLOPE = 0.5
# The priors of the scale, ``p(tau) ~ sech(log(tau / middle))**power``: (power, middle). An interval
# should not depend on a guess of the scale: its law is wider.
VALUE_LAW = (8.0, 0.4)
INTERVAL_LAW = (4.0, 0.45)
# Draws from the posterior: the value's own noise is then a thirtieth of its standard error.
DRAWS = 128
# Random numbers are the same in every call, so that values depend on rows alone.
SEED = 5


class Priors(NamedTuple):
    """Priors of the curve under each of sixteen hyperparameters, ordered by scale.

    Attributes
    ----------
    bands : (5 * 3 * 16,) float64 array
        Precisions of f, as `fastece.kernels.bayes.fit_process` takes them.
    precision : (2 * 16,) float64 array
        Precisions of b_0 and b_1.
    half : (16,) float64 array
        Half the log determinants of both.
    value, interval : (16,) float64 arrays
        Log prior probability of each hyperparameter, for the value and for the interval.
    """

    bands: F64
    precision: F64
    half: F64
    value: F64
    interval: F64


@lru_cache(maxsize=32)
def process_priors(n_cells: int) -> Priors:
    """Compute the priors for a number of cells."""
    hyperparameters = [(tau, rho, decay) for tau in SCALES for rho, decay in ROUGHNESS]
    scale = np.array([tau for tau, _, _ in hyperparameters])
    value, interval = (log_probabilities(scale, *law) for law in (VALUE_LAW, INTERVAL_LAW))
    return Priors(*arrange_priors(n_cells, hyperparameters), value, interval)


def log_probabilities(scale: F64, power: float, middle: float) -> F64:
    """Compute the log probability (16,) of each of some scales."""
    log_p = -power * np.log((scale / middle + middle / scale) / 2)
    return np.asarray(log_p - np.log(np.exp(log_p).sum()))


def arrange_priors(
    n_cells: int, hyperparameters: Sequence[tuple[float, float, int]]
) -> tuple[F64, F64, F64]:
    """Arrange precisions as kernels take them, with half log determinants."""
    precisions = [prior_precision(n_cells, tau, rho, decay) for tau, rho, decay in hyperparameters]
    bands, lines, log_dets = (np.array(part) for part in zip(*precisions, strict=True))
    rows = bands[:, :, [0, 1, kernels.bayes.MIDDLE, n_cells - 2, n_cells - 1]]
    return rows.T.ravel(), lines.T.ravel(), log_dets / 2


def prior_precision(n_cells: int, tau: float, rho: float, decay: int) -> tuple[F64, F64, float]:
    """Compute the prior precisions of f and b under one hyperparameter.

    The second difference L of cells with level ends has the eigenvectors ``cos(pi k (c + 1/2) /
    C)`` and the eigenvalues ``2 - 2 cos(pi k / C)``, about ``(pi k / C)**2``: a multiple of ``1 +
    (C / pi / rho)**d L**(d / 2)`` is the precision of the process, exact except for the highest k.

    Returns
    -------
    bands : (3, C + 2) float64 array
        The diagonals of the precision of f.
    line : (2,) float64 array
        The precisions of b_0 and b_1.
    log_det : float
        Log determinant of both.
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
    return bands, line, log_det


class Process(NamedTuple):
    """Laplace's approximations of the process in cells, one for each hyperparameter.

    Attributes
    ----------
    x, t : (C,) float64 arrays
        Logits of the scores and their distances from the mean.
    state, b : float64 arrays
        The modes and shapes of the curves and of their lines, as `fastece.kernels.bayes` has them.
    log_evidence : (16,) float64 array
    """

    x: F64
    t: F64
    state: F64
    b: F64
    log_evidence: F64

    def draw(self, log_prior: F64, k: int, count: int) -> F64:
        """Draw logits (C, S) of curves, in increasing order of their scale tau.

        With the fixed numbers of problem k, from the mixture over hyperparameters whose log prior
        probabilities (16,) are given.
        """
        x, t, state, b, log_evidence = self
        normals = process_normals(x.size, k, count)
        drawn: F64 = kernels.bayes.draw_process(x, t, state, b, log_evidence + log_prior, normals)
        return drawn


def fit_process(cells: F64, x: F64, t: F64, priors: Priors) -> Process:
    """Fit the process in cells (3, C).

    x and t (C,) are the logits of the scores and their distances from the mean.
    """
    bands, precision, half, *_ = priors
    fits = kernels.bayes.fit_process(cells, x, t, bands, precision)
    log_evidence = kernels.bayes.process_evidence(cells, bands, precision, half, *fits)
    state, b, *_ = fits
    return Process(x, t, state, b, log_evidence)


# --- fixed numbers --------------------------------------------------------------------------


@lru_cache(maxsize=8)
def normal_quantiles(draws: int) -> F64:
    """Return standard normal quantiles (S,) of ``(q + 1/2) / S``, in increasing order."""
    return np.array([NormalDist().inv_cdf((q + 0.5) / draws) for q in range(draws)])


@lru_cache(maxsize=64)
def process_normals(n_cells: int, k: int, draws: int = DRAWS) -> F64:
    """Return normal numbers (C + 2, S) for curves of the process in problem k.

    Each line has the quantiles of (q + 1/2) / S in random order (McKay, Beckman and Conover 1979: a
    Latin hypercube). For another problem each line is turned by a number of places of its own.
    """
    rng = np.random.RandomState(SEED)  # whose stream never changes
    quantiles = normal_quantiles(draws)
    order = rng.random_sample((n_cells + 2, draws)).argsort(axis=1, kind="stable")
    turn = k * rng.randint(1, draws, (n_cells + 2, 1))
    return quantiles[np.take_along_axis(order, (np.arange(draws) + turn) % draws, axis=1)]
