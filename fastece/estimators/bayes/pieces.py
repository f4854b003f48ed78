"""Curves in pieces: hidden Markov chains over the cells.

Each piece of a chain is calibrated, or off by one shift of the logit, or at one level, as a heap, a
stair or a saturated end is; jumps begin new pieces. Its kernels are in `fastece.kernels.pieces`,
and the reasons of the constants in docs/explanation/bayes.md.
"""

import math
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from fastece import kernels
from fastece.estimators.bayes.process import normal_quantiles
from fastece.kernels.types import F64


class ChainLaw(NamedTuple):
    """Law of a chain."""

    jumps: float  # expected number, over all cells
    drift: float  # probability of a step of the shift from a cell to the next
    calibrated: float  # probability that a piece is
    scale: int  # position in `kernels.pieces.SHIFT_SCALES`


# Seven in ten pieces are calibrated.
SPARSE_LAWS = (
    ChainLaw(jumps=1, drift=0, calibrated=0.7, scale=0),
    ChainLaw(jumps=8, drift=0, calibrated=0.7, scale=0),
    ChainLaw(jumps=2, drift=0.7, calibrated=0.7, scale=0),
)
# Hardly any piece is calibrated.
ROUGH_LAWS = (
    ChainLaw(jumps=40, drift=0, calibrated=0.02, scale=0),
    ChainLaw(jumps=12, drift=0, calibrated=0.02, scale=0),
    ChainLaw(jumps=12, drift=0, calibrated=0.02, scale=1),
    ChainLaw(jumps=4, drift=0.5, calibrated=0.02, scale=0),
)
LAWS = (*SPARSE_LAWS, *ROUGH_LAWS)
# Largest probability of a jump from one cell to the next.
MAX_JUMP = 0.5
# Beyond this shift there are levels alone.
MAX_SHIFT = 5.0
# Size of a step of drift, in logits, with so many cells.
DRIFT = 0.16
DRIFT_CELLS = 64
# States are filled up to a multiple of this number; two of them are calibrated.
STATES_IN_STEP = 8
N_CALIBRATED = 2
SEED = 7


class States(NamedTuple):
    """States of every chain: W shifts, two calibrated ones, and L levels; N in all.

    Attributes
    ----------
    table : (7, N) float64 array
        The states, line by line, as `fastece.kernels.pieces` has them.
    moves : int
        Shifts and the two calibrated states come first, W + 2.
    drift : int
        A step of drift leads to the shift so many on.
    """

    table: F64
    moves: int
    drift: int


@lru_cache(maxsize=64)
def chain_states(n: float, n_cells: int) -> States:
    """Choose the states for a number of rows: steps as wide as their noise."""
    root = math.sqrt(n)
    top = math.log(2 + n / 2)
    first = min(max(3.9 / root, 0.04), 0.2)
    last = min(max(9 / root, 0.12), 0.5)
    max_shift = min(top + 1, MAX_SHIFT)
    shift = symmetric_grid(first, last, max_shift, STATES_IN_STEP - N_CALIBRATED)
    level = symmetric_grid(min(max(9 / root, 0.15), 0.4), 0.5, top, 0)
    calibrated = np.zeros(N_CALIBRATED)
    value = np.concatenate([shift, calibrated, level])
    width = np.concatenate([np.gradient(shift), calibrated, np.gradient(level)])
    pieces = kernels.pieces
    scale = np.array(pieces.SHIFT_SCALES)[:, None]
    freedom = pieces.FREEDOM
    prior = np.zeros((pieces.N_SCALES, value.size))
    shift_prior = width[: shift.size] * (1 + (shift / scale) ** 2 / freedom) ** (-(freedom + 1) / 2)
    shift_prior *= (1 - pieces.LEVEL_SHARE) / shift_prior.sum(1, keepdims=True)
    prior[:, : shift.size] = shift_prior
    log_rest = np.log1p(np.exp(-np.abs(value)))
    drift = DRIFT * math.sqrt(DRIFT_CELLS / n_cells)
    return States(
        table=np.array([value, np.exp(value), np.exp(-value), log_rest, width, *prior]),
        moves=shift.size + N_CALIBRATED,
        drift=max(1, round(drift / first)),
    )


def symmetric_grid(first: float, last: float, top: float, remainder: int) -> F64:
    """Return numbers from beyond -top to beyond top.

    Their steps grow by a tenth of the numbers, from `first` up to `last`. How many there are has
    the given remainder on division by eight.
    """
    positive = [first / 2]
    while positive[-1] < top or 2 * len(positive) % STATES_IN_STEP != remainder:
        positive.append(positive[-1] + min(first + 0.1 * positive[-1], last))
    return np.array([*(-x for x in reversed(positive)), *positive])


@lru_cache(maxsize=32)
def chain_laws(n_cells: int) -> F64:
    """Arrange laws (M, 4) with the probability of a jump between cells."""
    laws = np.array(LAWS, np.float64)
    laws[:, 0] = np.minimum(laws[:, 0] / n_cells, MAX_JUMP)
    return laws


class Pieces(NamedTuple):
    """All chains, filtered in the cells of a problem.

    Attributes
    ----------
    x : (C,) float64 array
        Logits of the scores.
    states : States
    law, prior, log_sums, filtered, total : float64 arrays
        The chains, as `fastece.kernels.pieces` has them.
    log_evidence : (M,) float64 array
        Log evidence of each chain, given that some piece is not calibrated.
    """

    x: F64
    states: States
    law: F64
    prior: F64
    log_sums: F64
    filtered: F64
    total: F64
    log_evidence: F64

    def draw(self, share: list[float], draws: int) -> F64:
        """Draw logits (C, S) of curves of M chains, each of which has a share."""
        x, states, law, prior, log_sums, filtered, total, _ = self
        draws_of_share = draws / sum(share)
        ends = np.array([int(passed * draws_of_share + 0.5) for passed in accumulate(share)])
        uniform, normal = chain_numbers(x.size, draws)
        drawn: F64 = kernels.pieces.draw_chains(
            x, *states, law, prior, log_sums, filtered, total, ends, uniform, normal
        )
        return drawn


def filter_pieces(n: float, cells: F64, x: F64) -> Pieces:
    """Filter the cells (3, C) of `n` rows, with logits x (C,), by all chains."""
    states = chain_states(max(round(n), 1), x.size)
    law = chain_laws(x.size)
    table, moves, drift = states
    weights = kernels.pieces.weigh_states(cells, x, table, moves, len(law))
    prior, log_sums, likelihood, filtered, total, largest = weights
    log_evidence = kernels.pieces.filter_chains(
        law, prior, likelihood, filtered, total, moves, drift, largest
    )
    return Pieces(x, states, law, prior, log_sums, filtered, total, log_evidence)


@lru_cache(maxsize=64)
def chain_numbers(n_cells: int, draws: int) -> tuple[F64, F64]:
    """Return uniform and normal numbers (S, C), a Latin hypercube of each."""
    rng = np.random.RandomState(SEED)  # whose stream never changes
    shape = n_cells, draws
    place = rng.random_sample(shape).argsort(axis=1, kind="stable").T
    order = rng.random_sample(shape).argsort(axis=1, kind="stable").T
    uniform = (place + rng.random_sample((draws, n_cells))) / draws
    return uniform, normal_quantiles(draws)[order]
