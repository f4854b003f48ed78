"""States and laws of the chains that a calibration curve in pieces is drawn from.

A chain goes over the cells. Each of its pieces is calibrated, or off by one shift of the logit, or
at one level, as a heap, a stair or a saturated end is; jumps begin new ones. The kernels are those
of `fastece.kernels.pieces`, the reasons of the constants in docs/bayes.md.
"""

import math
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece import kernels
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels.bayes import Cells
    from fastece.kernels.pieces import Chains, States


class Law(NamedTuple):
    """Law of a chain."""

    jumps: float  # expected, over all cells
    drift: float  # probability of a step of the shift from a cell to the next
    calibrated: float  # probability that a piece is
    scale: int  # number of the scale of shifts


# Of pieces seven in ten are calibrated, or hardly any.
SPARSE = Law(1, 0, 0.7, 0), Law(8, 0, 0.7, 0), Law(2, 0.7, 0.7, 0)
ROUGH = Law(40, 0, 0.02, 0), Law(12, 0, 0.02, 0), Law(12, 0, 0.02, 1), Law(4, 0.5, 0.02, 0)
LAWS = (*SPARSE, *ROUGH)
MOST_JUMPS = 0.5  # from one cell to the next
# Shifts, and distances of levels from the score, have a Student law of this freedom and one of
# these scales; levels have this share of pieces that are not calibrated.
FREEDOM, SCALES, LEVELS = 3, (0.5, 1.2), 0.4
# Beyond, there are levels alone.
LARGEST_SHIFT = 5.0
# Steps of drift, in logits, in 64 cells.
DRIFT, DRIFT_CELLS = 0.16, 64
SEED = 7
# Numbers of the memory of chains, at least. When so much is freed once, the C library of Linux no
# longer gives back each time what is used again: a page costs 2 us, of 500 rows 400 us in all.
MEMORY = 2**18


@lru_cache(maxsize=64)
def chain_states(n: float, n_cells: int) -> "States":
    """Choose the states for a number of rows: steps as wide as their noise."""
    root, top = math.sqrt(n), math.log(2 + n / 2)
    first = min(max(3.9 / root, 0.04), 0.2)
    shift = symmetric_grid(first, min(max(9 / root, 0.12), 0.5), min(top + 1, LARGEST_SHIFT), 6)
    level = symmetric_grid(min(max(9 / root, 0.15), 0.4), 0.5, top, 0)
    widths = np.gradient(shift), np.gradient(level)
    scale = np.array(SCALES)[:, None]
    prior = widths[0] * (1 + (shift / scale) ** 2 / FREEDOM) ** (-(FREEDOM + 1) / 2)
    prior *= (1 - LEVELS) / prior.sum(1, keepdims=True)
    return kernels.pieces.States(
        np.concatenate([shift, [0, 0], level]), np.concatenate([widths[0], [0, 0], widths[1]]),
        np.append(prior, np.zeros((len(SCALES), 2)), axis=1), FREEDOM * scale[:, 0] ** 2, LEVELS,
        max(1, round(DRIFT * math.sqrt(DRIFT_CELLS / n_cells) / first)),
    )  # fmt: skip


def symmetric_grid(first: float, last: float, top: float, rest: int) -> F64:
    """Return numbers from beyond -top to beyond top.

    Their steps grow by a tenth of them, from `first` up to `last`, and there are `rest` more than a
    multiple of eight.
    """
    positive = [first / 2]
    while positive[-1] < top or 2 * len(positive) % 8 != rest:
        positive.append(positive[-1] + min(first + 0.1 * positive[-1], last))
    return np.array([*(-x for x in reversed(positive)), *positive])


@lru_cache(maxsize=32)
def chain_laws(n_cells: int) -> F64:
    """Arrange laws (M, 4) with the probability of a jump between cells."""
    laws = np.array(LAWS, np.float64)
    laws[:, 0] = np.minimum(laws[:, 0] / n_cells, MOST_JUMPS)
    return laws


@lru_cache(maxsize=8)
def normal_quantiles(draws: int) -> F64:
    """Return standard normal quantiles (S,), in increasing order."""
    return np.array([NormalDist().inv_cdf((q + 0.5) / draws) for q in range(draws)])


@lru_cache(maxsize=64)
def chain_numbers(n_cells: int, draws: int) -> tuple[F64, F64]:
    """Return uniform and normal numbers (S, C), a Latin hypercube of each."""
    rng = np.random.RandomState(SEED)  # whose stream never changes
    shape = n_cells, draws
    place, order = (rng.random_sample(shape).argsort(axis=1, kind="stable").T for _ in range(2))
    return (place + rng.random_sample((draws, n_cells))) / draws, normal_quantiles(draws)[order]


def filter_cells(n: float, cells: "Cells", x: F64) -> tuple["States", "Chains"]:
    """Filter the cells of `n` rows, of logits x (C,), by all chains."""
    states, law = chain_states(max(round(n), 1), x.size), chain_laws(x.size)
    m, n_states, size = len(law), states.value.size, x.size * states.value.size
    sizes = 0, len(SCALES) * size, size, size + n_states, m * size, m * x.size, m
    ends = [*accumulate(sizes)]
    memory = np.empty(max(ends[-1], MEMORY))
    prior, like, sums, found, total, evidence = (memory[i:j] for i, j in pairwise(ends))
    total = total.reshape(m, x.size)
    chains = kernels.pieces.Chains(law, prior, like, sums, found, total, evidence)
    moves = states.prior.shape[1]
    shifted = np.add.outer(x, states.value[:moves]).ravel()
    rest = log_rests(np.concatenate([shifted, states.value[moves:]]))
    largest = kernels.pieces.fill_likelihoods(cells, x, rest, states, chains)
    kernels.arithmetic.exponential(like, found)
    kernels.pieces.filter_chains(largest, states, chains)
    return states, chains


def log_rests(logit: F64) -> F64:
    """Compute ``log(1 + exp(-abs(z)))`` (n,) of logits z."""
    rest = -np.abs(logit)
    kernels.arithmetic.exponential(rest, np.empty_like(rest))
    kernels.bayes.log_one_plus(rest)
    return rest


def draw_curves(x: F64, states: "States", chains: "Chains", share: F64, draws: int) -> F64:
    """Draw logits (C, S) of curves of chains, which have shares (M,)."""
    ends = np.floor(share.cumsum() * (draws / share.sum()) + 0.5).astype(np.int64)
    (uniform, normal), paths = chain_numbers(x.size, draws), np.empty((draws, x.size), np.int64)
    logit = np.empty((draws, x.size))
    kernels.pieces.draw_paths(states, chains, ends, uniform, paths)
    kernels.pieces.place_pieces(x, states, chains.log_sums, paths, normal, logit)
    return logit.T.copy()
