"""Curves in pieces: hidden Markov chains over the cells.

Each piece of a chain is calibrated, or off by one shift of the logit, or at one level, as a heap, a
stair or a saturated end is; jumps begin new pieces. Its kernels are in `fastece.kernels.pieces`,
and the reasons of the constants in docs/explanation/bayes.md.
"""

import math
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastece import kernels
from fastece.estimators.bayes.fixed_numbers import chain_numbers
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels.bayes import RankCells
    from fastece.kernels.pieces import Chains, States


class ChainLaw(NamedTuple):
    """Law of a chain."""

    jumps: float  # expected number, over all cells
    drift: float  # probability of a step of the shift from a cell to the next
    calibrated: float  # probability that a piece is
    scale: int  # position in `SHIFT_SCALES`


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
# Shifts, and distances of levels from the score, have a Student law of this freedom and one of
# these scales.
FREEDOM = 3
SHIFT_SCALES = (0.5, 1.2)
# Share of levels among the pieces that are not calibrated.
LEVEL_SHARE = 0.4
# Beyond this shift there are levels alone.
MAX_SHIFT = 5.0
# Size of a step of drift, in logits, with so many cells.
DRIFT = 0.16
DRIFT_CELLS = 64
# States are filled up to a multiple of this number; two of them are calibrated.
STATES_IN_STEP = 8
N_CALIBRATED = 2
# Smallest size of the memory of chains, in numbers. Once this much has been freed, the C library of
# Linux no longer gives pages back that are soon used again: a page costs 2 us, of 500 rows 400 us
# in all.
MIN_MEMORY = 2**18


@lru_cache(maxsize=64)
def chain_states(n: float, n_cells: int) -> "States":
    """Choose the states for a number of rows: steps as wide as their noise."""
    root = math.sqrt(n)
    top = math.log(2 + n / 2)
    first = min(max(3.9 / root, 0.04), 0.2)
    last = min(max(9 / root, 0.12), 0.5)
    max_shift = min(top + 1, MAX_SHIFT)
    shift = symmetric_grid(first, last, max_shift, STATES_IN_STEP - N_CALIBRATED)
    level = symmetric_grid(min(max(9 / root, 0.15), 0.4), 0.5, top, 0)
    shift_width = np.gradient(shift)
    level_width = np.gradient(level)
    scale = np.array(SHIFT_SCALES)[:, None]
    prior = shift_width * (1 + (shift / scale) ** 2 / FREEDOM) ** (-(FREEDOM + 1) / 2)
    prior *= (1 - LEVEL_SHARE) / prior.sum(1, keepdims=True)
    calibrated = np.zeros(N_CALIBRATED)
    drift = DRIFT * math.sqrt(DRIFT_CELLS / n_cells)
    value = np.concatenate([shift, calibrated, level])
    layout = kernels.pieces.Layout(
        states=value.size, moves=shift.size + N_CALIBRATED, drift=max(1, round(drift / first))
    )
    return kernels.pieces.States(
        layout=layout,
        value=value,
        odds=np.exp(value),
        inverse_odds=np.exp(-value),
        log_rest=np.log1p(np.exp(-np.abs(value))),
        width=np.concatenate([shift_width, calibrated, level_width]),
        prior=np.append(prior, np.zeros((len(SHIFT_SCALES), N_CALIBRATED)), axis=1),
        squares=FREEDOM * scale[:, 0] ** 2,
        levels=LEVEL_SHARE,
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


class FilteredChains(NamedTuple):
    """The states of all chains, and their filters of the cells of a problem."""

    states: "States"
    chains: "Chains"


def filter_cells(n: float, cells: "RankCells", x: F64) -> FilteredChains:
    """Filter the cells of `n` rows, with logits x (C,), by all chains."""
    states = chain_states(max(round(n), 1), x.size)
    chains = allocate_chains(states, chain_laws(x.size), x.size)
    largest = kernels.pieces.fill_cells(cells, x, states, chains)
    # The filter has room for the work of the exponential, and is filled in afterwards.
    kernels.arithmetic.exponential(chains.likelihood, chains.filter)
    kernels.pieces.filter_cells(states.layout, largest, chains)
    return FilteredChains(states, chains)


def allocate_chains(states: "States", law: F64, n_cells: int) -> "Chains":
    """Make chains with these laws, and arrays to be filled side by side in memory."""
    n_laws = len(law)
    n_states = states.value.size
    size = n_cells * n_states
    sizes = {
        "prior": len(SHIFT_SCALES) * size,
        "log_sums": size + n_states,
        "likelihood": size,
        "filter": n_laws * size + 2 * n_states,
        "total": n_laws * n_cells,
        "log_evidence": n_laws,
    }
    memory = np.empty(max(sum(sizes.values()), MIN_MEMORY))
    arrays = {}
    begin = 0
    for name, length in sizes.items():
        arrays[name] = memory[begin : begin + length]
        begin += length
    arrays["total"] = arrays["total"].reshape(n_laws, n_cells)
    return kernels.pieces.Chains(law=law, **arrays)


def draw_chains(x: F64, filtered: FilteredChains, share: list[float], draws: int) -> F64:
    """Draw logits (C, S) of curves of M chains, each of which has a share."""
    states, chains = filtered
    draws_of_share = draws / sum(share)
    ends = np.array([int(passed * draws_of_share + 0.5) for passed in accumulate(share)])
    uniform, normal = chain_numbers(x.size, draws)
    path = np.empty((draws, x.size), np.int64)
    kernels.pieces.draw_paths(states.layout, chains, ends, uniform, path)
    logit = np.empty((x.size, draws))
    kernels.pieces.place_pieces(path, x, states, chains.log_sums, normal, logit)
    return logit
