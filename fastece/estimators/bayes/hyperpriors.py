"""Prior distributions of a calibration curve and of its hyperparameters.

``logit c(s) = x + b_0 + b_1 (x - mean x) + f(u)`` with x the logit of the score and u its mid-rank,
from 0 to 1. All of it has the scale tau: b_0 is normal with standard deviation tau, b_1 with tau /
2, and f is a Gaussian process with the cosines ``cos(pi k u)``, k = 0, 1, 2, ..., whose variances
``v_k = 2 tau**2 / (1 + (k / rho)**d) / Z`` add up to ``2 tau**2`` from k = 1 on: on average over u
its variance is ``tau**2``. With a decay d of 2 or 4 that is, in C cells of equal weight, a
precision of three or five diagonals. Every constant has its reason in docs/bayes.md.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece import kernels
from fastece.typing import F64

if TYPE_CHECKING:
    from fastece.kernels.bayes import Fits


# Scales tau, and how rough f is: (rho, d). The first is smooth, with a turn or two; the second has
# bends of every size.
SCALES = 2.0 ** np.arange(-5, 3)
ROUGHNESS = ((3.0, 4), (9.0, 2))
# p(tau) ~ sech(log(tau / middle))**power: of the value, and, wider, of the interval.
VALUE_POWER, VALUE_MIDDLE = 8.0, 0.4
INTERVAL_POWER, INTERVAL_MIDDLE = 4.0, 0.45
# Standard deviation of b_1, in units of tau.
SLOPE = 0.5
# Cells: so many for a hundred rows, in steps of 16, as the fourth root of the rows.
CELLS, CELL_STEP, FEWEST_CELLS, MOST_CELLS = 64, 16, 48, 256
# Draws from the posterior: the value's own noise is then a thirtieth of its standard error.
DRAWS = 128
SEED = 5


class Hyperpriors(NamedTuple):
    """Hyperparameters with their log priors, ordered by scale.

    Attributes
    ----------
    fits : Fits
        What `kernels.bayes.fit` begins with, to be copied.
    value, interval : (G,) float64 array
        Log prior probability of each hyperparameter.
    """

    fits: "Fits"
    value: F64
    interval: F64


def cell_count(n: float) -> int:
    """Return the number of cells for `n` rows."""
    steps = round(CELLS / CELL_STEP * math.sqrt(math.sqrt(n / 100)))
    return min(max(CELL_STEP * steps, FEWEST_CELLS), MOST_CELLS)


@lru_cache(maxsize=32)
def hyperpriors(n_cells: int) -> Hyperpriors:
    """Compute the hyperparameters and their priors for a number of cells."""
    chosen = [(tau, *roughness) for tau in SCALES for roughness in ROUGHNESS]
    scale = np.array([tau for tau, _, _ in chosen])
    return Hyperpriors(
        prior_fits(n_cells, [prior_of(n_cells, *h) for h in chosen]),
        log_probabilities(scale, VALUE_POWER, VALUE_MIDDLE),
        log_probabilities(scale, INTERVAL_POWER, INTERVAL_MIDDLE),
    )


def prior_fits(n_cells: int, priors: list[tuple[F64, F64, float]]) -> "Fits":
    """Arrange the prior precisions of all hyperparameters as fits start with them.

    `priors` are the results of `prior_of` for each hyperparameter.
    """
    lanes, quantities = kernels.bayes.LANES, int(kernels.bayes.LINE) // kernels.bayes.LANES
    band = int(kernels.bayes.BAND0) // lanes
    blocks = len(priors) // lanes
    state = np.zeros((blocks, n_cells + 4, quantities, lanes))
    line = np.empty((blocks, 2, lanes))
    for g, (bands, of_line, _) in enumerate(priors):
        state[g // lanes, 2:, band : band + 3, g % lanes] = bands.T
        line[g // lanes, :, g % lanes] = of_line
    half = np.array([log_det / 2 for _, _, log_det in priors])
    return kernels.bayes.Fits(
        state.reshape(blocks, -1), np.zeros_like(line), line, np.empty((blocks, 3, lanes)), half
    )


def log_probabilities(scale: F64, power: float, middle: float) -> F64:
    """Compute normalized log prior probabilities of scales tau.

    They are proportional to ``sech(log(tau / middle))**power``.
    """
    log_p = -power * np.log((scale / middle + middle / scale) / 2)
    return np.asarray(log_p - np.log(np.exp(log_p).sum()))


def prior_of(n_cells: int, tau: float, rho: float, decay: int) -> tuple[F64, F64, float]:
    """Compute the prior precisions of f and b, and their log determinant.

    Bands (3, C + 2) of the precision of f, the two precisions of b, and the log determinant of
    both.

    The second difference L of cells with level ends has the eigenvectors ``cos(pi k (c + 1/2) /
    C)`` and the eigenvalues ``2 - 2 cos(pi k / C)``, about ``(pi k / C)**2``: a multiple of ``1 +
    (C / pi / rho)**d L**(d / 2)`` is the precision of the process, exact but for the highest k.
    """
    factor = (n_cells / math.pi / rho) ** decay
    root = 2 - 2 * np.cos(math.pi * np.arange(n_cells) / n_cells)
    variance = 1 / (1 + factor * root ** (decay // 2))
    unit = variance[1:].sum() / 2 / tau**2
    scale = unit * 2 / n_cells
    power = np.zeros((3, n_cells + 2))  # of L
    if decay == 2:
        power[0, :n_cells], power[1, 1:n_cells] = 2, -1
        power[0, [0, n_cells - 1]] = 1
    else:
        power[0, :n_cells], power[1, 1:n_cells], power[2, 2:n_cells] = 6, -4, 1
        power[0, [0, n_cells - 1]], power[1, [1, n_cells - 1]] = 2, -3
    bands = scale * factor * power
    bands[0, :n_cells] += scale
    # The process has a constant of its own, which is taken off b_0.
    line = np.array([1 / (tau**2 - 0.5 / unit), 1 / (SLOPE * tau) ** 2])
    return bands, line, float(np.log(scale / variance).sum() + np.log(line).sum())


@lru_cache(maxsize=64)
def normals(n_cells: int, k: int) -> F64:
    """Return standard normal numbers (C + 2, S) for the draws of problem k.

    In each line the quantiles of (q + 1/2) / S in random order (McKay, Beckman and Conover 1979: a
    Latin hypercube), which for another problem is turned by as much as no other line.
    """
    rng = np.random.RandomState(SEED)  # whose stream never changes
    quantiles = normal_quantiles()
    order = rng.random_sample((n_cells + 2, DRAWS)).argsort(axis=1, kind="stable")
    turn = k * rng.randint(1, DRAWS, (n_cells + 2, 1))
    return quantiles[np.take_along_axis(order, (np.arange(DRAWS) + turn) % DRAWS, axis=1)]


@lru_cache(maxsize=1)
def normal_quantiles() -> F64:
    """Return standard normal quantiles (S,), in increasing order."""
    return np.array([NormalDist().inv_cdf((q + 0.5) / DRAWS) for q in range(DRAWS)])


@lru_cache(maxsize=1)
def draw_order() -> F64:
    """Return a normal number (S,) for each draw, in an unrelated order."""
    golden = np.arange(DRAWS) * ((math.sqrt(5) - 1) / 2) % 1
    return normal_quantiles()[golden.argsort().argsort()]
