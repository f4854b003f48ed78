"""Hidden Markov chains over the cells of a calibration curve that comes in pieces.

A state of a chain is a shift of the logit, calibrated, or a level; a jump redraws it whatever it
was, so a step of the forward filter takes as long as there are states, not their square. The states
of a cell are one line of a flat array, a multiple of eight numbers, and no views are made of it,
which would count references: so a filter of seven chains takes 25 us instead of 60.

The states of a line are, in this order::

    shifts of the logit | calibrated | calibrated from the first cell on | levels
    -------------------- moves ---------------------------------------- |
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fastece.kernels.bayes import RankCells
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64

# In place of a probability of 0, which has no logarithm.
MIN_PROBABILITY = 1e-300
# Numbers that are summed up side by side.
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(k) for k in range(9))


class States(NamedTuple):
    """States of every chain: W shifts, two calibrated ones, and L levels; N in all.

    A curve that is calibrated everywhere does not belong to a chain, as it is left to the Bayes
    factor. So "calibrated from the first cell on" is a state apart from "calibrated".
    """

    value: F64  # (N,) added to the logit, or the logit of the level; each in increasing order
    width: F64  # (N,) of the interval of logits that each state stands for
    prior: F64  # (P, W + 2) probability of each shift after a jump, by scale; 0 for calibrated
    squares: F64  # (P,) squared scales of levels around the score, times the degrees of freedom
    levels: float  # prior probability of a level
    drift: int  # a step of drift leads to the shift so many on


class Chains(NamedTuple):
    """Laws of M chains, and their filters of C cells of N states each.

    Attributes
    ----------
    law : (M, 4) float64 array
        For each chain the probability of a jump from one cell to the next, the probability of a
        step of drift without a jump, the probability that the piece after a jump is calibrated, and
        the line of priors.
    prior : (P * C * N,) float64 array
        Prior probability of each state after a jump that does not lead to a calibrated piece.
    likelihood : (C * N,) float64 array
        Likelihood of the hits of each cell under each state, over the largest possible.
    log_sums : ((C + 1) * N,) float64 array
        Their logarithms, summed over the cells before.
    filter : (M * C * N,) float64 array
        Probability of each state given the cells up to its own, up to a factor.
    total : (M, C) float64 array
        Sums of the filter.
    log_evidence : (M,) float64 array
        Log evidence of each chain, given that some piece is not calibrated.
    """

    law: F64
    prior: F64
    likelihood: F64
    log_sums: F64
    filter: F64
    total: F64
    log_evidence: F64


@jit
def fill_likelihoods(
    cells: RankCells, x: F64, log_rest: F64, states: States, chains: Chains
) -> float:
    """Fill in log likelihoods, their sums and priors; return the largest of all.

    Parameters
    ----------
    cells : RankCells
    x : (C,) float64 array
        Logits of the scores.
    log_rest : (C * W + L,) float64 array
        ``log(1 + exp(-abs(z)))`` of the logits z of the W states that are moves, cell after cell,
        then of the levels.
    states : States
    chains : Chains
        `likelihood` gets logarithms, `log_sums` their sums, and `prior` is filled.
    """
    value = states.value
    shifts = states.prior
    like = chains.likelihood
    sums = chains.log_sums
    priors = chains.prior
    largest = 0.0
    n = np.uint64(value.size)
    moves = np.uint64(shifts.shape[1])
    height = np.empty(value.size)
    first_level = np.uint64(x.size) * moves
    for k in range(ZERO, n):
        sums[k] = 0.0
    for c in range(x.size):
        weight = cells.weight[c]
        hits = cells.hits[c]
        middle = x[c]
        cell = np.uint64(c) * n
        first_move = np.uint64(c) * moves
        top = 0.0  # log likelihood of the observed frequency, which no state exceeds
        if 0.0 < hits < weight:
            top = hits * math.log(hits / weight) + (weight - hits) * math.log1p(-hits / weight)
        largest += top
        for k in range(ZERO, moves):
            z = middle + value[k]
            like[cell + k] = hits * z - weight * (max(z, 0.0) + log_rest[first_move + k]) - top
        for k in range(moves, n):
            z = value[k]
            log_odds = max(z, 0.0) + log_rest[first_level + k - moves]
            like[cell + k] = hits * z - weight * log_odds - top
        for k in range(ZERO, n):
            sums[cell + n + k] = sums[cell + k] + like[cell + k]
        for p in range(states.squares.size):
            line = np.uint64(p * x.size + c) * n
            square = states.squares[p]
            total = 0.0
            for k in range(ZERO, moves):
                priors[line + k] = shifts[p, k]
            for k in range(moves, n):
                away = value[k] - middle
                v = 1.0 / (1.0 + away * away / square)
                height[k] = v * v
            for k in range(moves, n):
                total += height[k]
            for k in range(moves, n):
                priors[line + k] = height[k] * (states.levels / total)
    return largest


@jit
def sum_states(f: F64, first: Any, last: Any) -> float:
    """Sum up a line of states, a multiple of eight numbers, in eight lanes."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for k in range(first, last, EIGHT):
        s0, s1, s2, s3 = s0 + f[k], s1 + f[k + ONE], s2 + f[k + TWO], s3 + f[k + THREE]
        s4, s5 = s4 + f[k + FOUR], s5 + f[k + FIVE]
        s6, s7 = s6 + f[k + SIX], s7 + f[k + SEVEN]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@jit
def filter_chains(largest: float, states: States, chains: Chains) -> None:
    """Compute the filters, totals and evidences of all chains by the forward filter.

    Likelihoods are over the `largest`, whose logarithm is given.
    """
    n = np.uint64(states.value.size)
    drift = np.uint64(states.drift)
    f = chains.filter
    like = chains.likelihood
    priors = chains.prior
    n_cells = chains.total.shape[1]
    ever = np.uint64(states.prior.shape[1] - 1)  # calibrated from the first cell on
    calibrated = ever - ONE
    for i in range(chains.law.shape[0]):
        jump = chains.law[i, 0]
        step = chains.law[i, 1]
        spike = chains.law[i, 2]
        first_prior = np.uint64(chains.law[i, 3]) * np.uint64(n_cells)
        evidence = largest
        # Factors of a state that stays and of one after a jump, and the probabilities of the two
        # calibrated states before the likelihood.
        stay = after = 0.0
        new = 1.0 - spike
        never = spike
        for c in range(n_cells):
            cell = np.uint64(c) * n
            prior = (first_prior + np.uint64(c)) * n
            k0 = np.uint64(i * n_cells + c) * n
            before = k0 - n if c > 0 else k0
            if c == 0:
                for k in range(ZERO, n):
                    f[k0 + k] = 0.0
            if c > 0 and step > 0.0:
                half = 0.5 * step
                pairs = calibrated - drift
                for k in range(ZERO, n):
                    f[k0 + k] = f[before + k]
                for k in range(ZERO, pairs):
                    f[k0 + k] += half * (f[before + k + drift] - f[before + k])
                for k in range(drift, calibrated):
                    f[k0 + k] += half * (f[before + k - drift] - f[before + k])
                before = k0
            for k in range(ZERO, n):
                f[k0 + k] = (stay * f[before + k] + new * priors[prior + k]) * like[cell + k]
            f[k0 + calibrated] = after * like[cell + calibrated]
            f[k0 + ever] = never * like[cell + ever]
            total = sum_states(f, k0, k0 + n)
            chains.total[i, c] = total
            evidence += math.log(total)
            stay = (1.0 - jump) / total
            new = jump * (1.0 - spike)
            never = f[k0 + ever] / total
            after = stay * f[k0 + calibrated] + jump * spike * (1.0 - never)
            not_calibrated = 1.0 - never
            never *= 1.0 - jump + jump * spike
        all_calibrated = spike * (1.0 - jump + jump * spike) ** (n_cells - 1)
        evidence += math.log(max(not_calibrated, MIN_PROBABILITY)) - math.log(1.0 - all_calibrated)
        chains.log_evidence[i] = evidence


@jit
def draw_paths(states: States, chains: Chains, ends: I64, uniform: F64, paths: I64) -> None:
    """Draw the states of the cells of curves from the chains: backward sampling.

    Parameters
    ----------
    states : States
    chains : Chains
    ends : (M,) int64 array
        The draw after the last one of each chain, in order.
    uniform : (S, C) float64 array
        Random numbers for the state of each cell given the state of the next.
    paths : (S, C) int64 array
        Overwritten.
    """
    n_cells = paths.shape[1]
    n = states.value.size
    ever = states.prior.shape[1] - 1  # calibrated from the first cell on
    f = chains.filter
    i = 0
    for q in range(paths.shape[0]):
        path = paths[q]
        while ends[i] <= q:
            i += 1
        jump = chains.law[i, 0]
        step = chains.law[i, 1]
        spike = chains.law[i, 2]
        first_prior = int(chains.law[i, 3]) * n_cells
        move = states.drift if step > 0.0 else 0
        stay = (1.0 - jump) * (1.0 - step)
        walk = (1.0 - jump) * step / 2.0
        state = n  # beyond the last cell
        for c in range(n_cells - 1, -1, -1):
            if state == ever:  # as all cells before it
                path[c] = state
                continue
            k0 = (i * n_cells + c) * n
            total = chains.total[i, c]
            # Weights of staying, of a step of drift down or up, and of a jump.
            same = lower = upper = 0.0
            jumped = 1.0
            down = up = state
            may_be_ever = state < ever - 1 or ever < state < n
            if not may_be_ever:
                total -= f[k0 + ever]
            if state < n:
                same = (1.0 - jump) * f[k0 + state]
                jumped = jump * spike * total
            if may_be_ever:
                prior = chains.prior[(first_prior + c + 1) * n + state]
                jumped = jump * (1.0 - spike) * prior * total
            if state < ever - 1 and move > 0:
                down = state - move if state >= move else state
                up = state + move if state + move < ever - 1 else state
                same = stay * f[k0 + state]
                lower = walk * f[k0 + down]
                upper = walk * f[k0 + up]
            u = uniform[q, c] * (same + lower + upper + jumped)
            if u >= same + lower + upper:
                u = (u - same - lower - upper) * (total / jumped)
                state = 0
                while state < n - 1:
                    u -= f[k0 + state] if state != ever or may_be_ever else 0.0
                    if u < 0.0:
                        break
                    state += 1
            elif u >= same:
                state = down if u < same + lower else up
            path[c] = state


@jit
def place_pieces(
    x: F64, states: States, log_sums: F64, paths: I64, normal: F64, logit: F64
) -> None:
    """Draw logits (S, C) of curves whose cells have the states of paths (S, C).

    A shift or a level is drawn within its state by a normal law, from the log likelihoods of that
    state and of its neighbours: drawn from all of the state, a piece would be wider than its rows
    make it. A piece takes the `normal` number (S, C) of the cell in which it begins.
    """
    value = states.value
    n = value.size
    moves = states.prior.shape[1]
    # States without a neighbour of their kind on both sides, and the two calibrated ones.
    is_single = np.zeros(n, np.bool_)
    for state in (0, moves - 3, moves - 2, moves - 1, moves, n - 1):
        is_single[state] = bool(ONE)
    for q in range(paths.shape[0]):
        path = paths[q]
        stop = paths.shape[1]
        for c in range(path.size - 1, -1, -1):
            state = path[c]
            if c > 0 and path[c - 1] == state:
                continue
            middle = value[state]
            width = states.width[state]
            variance = width * width / 12.0
            slope = 0.0
            if not is_single[state]:
                a = c * n + state
                b = stop * n + state
                here = log_sums[b] - log_sums[a]
                down = middle - value[state - 1]
                up = value[state + 1] - middle
                fall = (here - (log_sums[b - 1] - log_sums[a - 1])) / down
                rise = (log_sums[b + 1] - log_sums[a + 1] - here) / up
                slope = (fall * up + rise * down) / (down + up)
                variance = 1.0 / max(2.0 * (fall - rise) / (down + up), 1.0 / variance)
            mean = min(max(slope * variance, -0.5 * width), 0.5 * width)
            drawn = middle + (mean + math.sqrt(variance) * normal[q, c])
            for k in range(c, stop):
                logit[q, k] = drawn + x[k] if state < moves else drawn
            stop = c
