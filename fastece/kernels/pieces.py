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

from fastece.kernels.arithmetic import exponential
from fastece.kernels.bayes import RankCells, log_one_plus
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64

# In place of a probability of 0, which has no logarithm.
MIN_PROBABILITY = 1e-300
# Smaller products of totals are not multiplied further: they would soon be 0.
MIN_PRODUCT = 1e-100
# Columns of the laws of the chains.
JUMP = 0
STEP = 1
SPIKE = 2
PRIOR = 3
# Numbers that are summed up side by side.
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(k) for k in range(9))


class States(NamedTuple):
    """States of every chain: W shifts, two calibrated ones, and L levels; N in all.

    A curve that is calibrated everywhere does not belong to a chain, as it is left to the Bayes
    factor. So "calibrated from the first cell on" is a state apart from "calibrated".
    """

    value: F64  # (N,) added to the logit, or the logit of the level; each in increasing order
    odds: F64  # (N,) the exponentials of the values
    inverse_odds: F64  # (N,)
    log_rest: F64  # (N,) ``log(1 + exp(-abs(z)))`` of the values z
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
    log_sums : ((C + 1) * N,) float64 array
        Log likelihood of the hits of each cell under each state, over the largest possible, summed
        over the cells before.
    filter : (M * C * N,) float64 array
        Probability of each state given the cells up to its own, up to a factor.
    total : (M, C) float64 array
        Sums of the filter.
    log_evidence : (M,) float64 array
        Log evidence of each chain, given that some piece is not calibrated.
    """

    law: F64
    prior: F64
    log_sums: F64
    filter: F64
    total: F64
    log_evidence: F64


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
def cell_likelihoods(weight: float, hits: float, x: float, states: States, like: F64) -> float:
    """Fill in the log likelihoods (N,) of a cell, over the largest, which is returned.

    `x` is the logit of the score. The odds of a shifted score are a product, so that no exponential
    is computed for each cell and shift.
    """
    value = states.value
    odds = states.odds
    inverse_odds = states.inverse_odds
    log_rest = states.log_rest
    n = np.uint64(value.size)
    moves = np.uint64(states.prior.shape[1])
    top = 0.0  # log likelihood of the observed frequency, which no state exceeds
    if 0.0 < hits < weight:
        top = hits * math.log(hits / weight) + (weight - hits) * math.log1p(-hits / weight)
    odds_of_score = math.exp(x)
    inverse_odds_of_score = math.exp(-x)
    for k in range(ZERO, moves):
        z = x + value[k]
        if_positive = inverse_odds_of_score * inverse_odds[k]
        if_negative = odds_of_score * odds[k]
        log_odds = max(z, 0.0) + log_one_plus(if_positive if z >= 0.0 else if_negative)
        like[k] = hits * z - weight * log_odds - top
    for k in range(moves, n):
        z = value[k]
        like[k] = hits * z - weight * (max(z, 0.0) + log_rest[k]) - top
    return top


@jit
def fill_priors(c: int, x: float, states: States, height: F64, chains: Chains) -> None:
    """Fill in the priors of cell `c`, whose score has the logit `x`.

    `height` (N,) is work space.
    """
    value = states.value
    priors = chains.prior
    n = np.uint64(value.size)
    moves = np.uint64(states.prior.shape[1])
    for p in range(states.squares.size):
        line = np.uint64(p * chains.total.shape[1] + c) * n
        square = states.squares[p]
        for k in range(ZERO, moves):
            priors[line + k] = states.prior[p, k]
        for k in range(moves, n):
            away = value[k] - x
            v = 1.0 / (1.0 + away * away / square)
            height[k] = v * v
        scale = states.levels / sum_states(height, moves, n)
        for k in range(moves, n):
            priors[line + k] = height[k] * scale


@jit
def drift_states(f: F64, line: Any, step: float, states: States, moved: F64) -> None:
    """Move half of the share `step` of each shift to either side.

    Shares come from a line of f and go to `moved`, whose calibrated states are not filled in. At an
    end, the half that has no place to go to stays.
    """
    n = np.uint64(states.value.size)
    moves = np.uint64(states.prior.shape[1])
    shifts = moves - TWO
    drift = np.uint64(states.drift)
    half = 0.5 * step
    for k in range(ZERO, drift):
        before = f[line + k]
        moved[k] = before + half * (f[line + k + drift] - before)
    for k in range(drift, shifts - drift):
        before = f[line + k]
        moved[k] = before + half * (f[line + k + drift] - before)
        moved[k] += half * (f[line + k - drift] - before)
    for k in range(shifts - drift, shifts):
        before = f[line + k]
        moved[k] = before + half * (f[line + k - drift] - before)
    for k in range(moves, n):
        moved[k] = f[line + k]


@jit
def filter_cells(cells: RankCells, x: F64, states: States, chains: Chains) -> None:
    """Filter the cells, whose scores have the logits x (C,), forward by all chains.

    All of `chains` is filled in except the laws. The chains take each cell together: its
    likelihoods and priors stay in the first-level cache, and no chain waits for the total of
    another.
    """
    f = chains.filter
    law = chains.law
    priors = chains.prior
    log_sums = chains.log_sums
    log_evidence = chains.log_evidence
    n_laws, n_cells = chains.total.shape
    n = np.uint64(states.value.size)
    ever = np.uint64(states.prior.shape[1]) - ONE  # calibrated from the first cell on
    calibrated = ever - ONE
    like = np.empty(states.value.size)
    work = np.empty(states.value.size)
    moved = np.zeros(states.value.size)
    # Factors of a state that stays and of one after a jump, and the probabilities of the two
    # calibrated states before the likelihood.
    stay = np.zeros(n_laws)
    new = np.empty(n_laws)
    after = np.zeros(n_laws)
    never = np.empty(n_laws)
    # Totals are multiplied before a logarithm is taken of them, which takes as long as 20 products.
    product = np.ones(n_laws)
    for i in range(n_laws):
        new[i] = 1.0 - law[i, SPIKE]
        never[i] = law[i, SPIKE]
        log_evidence[i] = 0.0
    for k in range(ZERO, n):
        log_sums[k] = 0.0
    largest = 0.0
    for c in range(n_cells):
        cell = np.uint64(c) * n
        largest += cell_likelihoods(cells.weight[c], cells.hits[c], x[c], states, like)
        for k in range(ZERO, n):
            log_sums[cell + n + k] = log_sums[cell + k] + like[k]
        fill_priors(c, x[c], states, work, chains)
        exponential(like, work)
        for i in range(n_laws):
            jump = law[i, JUMP]
            spike = law[i, SPIKE]
            prior = (np.uint64(law[i, PRIOR]) * np.uint64(n_cells) + np.uint64(c)) * n
            k0 = np.uint64(i * n_cells + c) * n
            stay_factor = stay[i]
            new_factor = new[i]
            if c == 0:
                for k in range(ZERO, n):
                    f[k0 + k] = new_factor * priors[prior + k] * like[k]
            elif law[i, STEP] > 0.0:
                drift_states(f, k0 - n, law[i, STEP], states, moved)
                for k in range(ZERO, n):
                    staying = stay_factor * moved[k]
                    f[k0 + k] = (staying + new_factor * priors[prior + k]) * like[k]
            else:
                for k in range(ZERO, n):
                    staying = stay_factor * f[k0 - n + k]
                    f[k0 + k] = (staying + new_factor * priors[prior + k]) * like[k]
            f[k0 + calibrated] = after[i] * like[calibrated]
            f[k0 + ever] = never[i] * like[ever]
            total = sum_states(f, k0, k0 + n)
            chains.total[i, c] = total
            next_product = product[i] * total
            if next_product < MIN_PRODUCT:
                log_evidence[i] += math.log(product[i]) + math.log(total)
                next_product = 1.0
            product[i] = next_product
            share_of_ever = f[k0 + ever] / total
            stay[i] = (1.0 - jump) / total
            new[i] = jump * (1.0 - spike)
            after[i] = stay[i] * f[k0 + calibrated] + jump * spike * (1.0 - share_of_ever)
            never[i] = share_of_ever * (1.0 - jump + jump * spike)
    for i in range(n_laws):
        jump = law[i, JUMP]
        spike = law[i, SPIKE]
        last = np.uint64(i * n_cells + n_cells - 1) * n
        not_calibrated = 1.0 - f[last + ever] / chains.total[i, n_cells - 1]
        all_calibrated = spike * (1.0 - jump + jump * spike) ** (n_cells - 1)
        log_evidence[i] += largest + math.log(product[i])
        log_evidence[i] += math.log(max(not_calibrated, MIN_PROBABILITY))
        log_evidence[i] -= math.log(1.0 - all_calibrated)


@jit
def find_state(f: F64, first: Any, n: int, ever: int, may_be_ever: bool, u: float) -> int:
    """Return the state of a line in which the running sum of f passes `u`.

    Without `may_be_ever`, the state `ever` counts as 0. Eight states are passed at once.
    """
    state = 0
    while state < n - 8:
        k = first + np.uint64(state)
        # `ever` is the last of eight states.
        last = f[k + SEVEN] if may_be_ever or state + 7 != ever else 0.0
        low = (f[k] + f[k + ONE]) + (f[k + TWO] + f[k + THREE])
        high = (f[k + FOUR] + f[k + FIVE]) + (f[k + SIX] + last)
        if u < low + high:
            break
        u -= low + high
        state += 8
    last_state = state + 7
    if last_state == ever and not may_be_ever:
        last_state -= 1
    while state < last_state:
        u -= f[first + np.uint64(state)]
        if u < 0.0:
            break
        state += 1
    return state


@jit
def draw_path(i: int, q: int, uniform: F64, states: States, chains: Chains, path: I64) -> None:
    """Draw the states (C,) of the cells of curve q from chain i: backward sampling.

    `uniform` (S, C) are random numbers for the state of each cell given the state of the next.
    """
    n_cells = path.size
    n = states.value.size
    ever = states.prior.shape[1] - 1  # calibrated from the first cell on
    f = chains.filter
    jump = chains.law[i, JUMP]
    step = chains.law[i, STEP]
    spike = chains.law[i, SPIKE]
    first_prior = int(chains.law[i, PRIOR]) * n_cells
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
            state = find_state(f, np.uint64(k0), n, ever=ever, may_be_ever=may_be_ever, u=u)
        elif u >= same:
            state = down if u < same + lower else up
        path[c] = state


@jit
def place_pieces(
    q: int, path: I64, x: F64, states: States, log_sums: F64, normal: F64, logit: F64
) -> None:
    """Draw the logits of a curve, whose cells have the states of a path.

    They are column q of `logit` (C, S).

    A shift or a level is drawn within its state by a normal law, from the log likelihoods of that
    state and of its neighbours: drawn from all of the state, a piece would be wider than its rows
    make it. A piece takes the `normal` number (S, C) of the cell in which it begins.
    """
    value = states.value
    n = value.size
    moves = states.prior.shape[1]
    stop = path.size
    for c in range(path.size - 1, -1, -1):
        state = path[c]
        if c > 0 and path[c - 1] == state:
            continue
        middle = value[state]
        width = states.width[state]
        variance = width * width / 12.0
        slope = 0.0
        # A state has neighbours on both sides, unless it is the first or the last of its kind, or
        # calibrated.
        if 0 < state < moves - 3 or moves < state < n - 1:
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
            logit[k, q] = drawn + x[k] if state < moves else drawn
        stop = c


@jit
def draw_curves(
    x: F64, states: States, chains: Chains, ends: I64, uniform: F64, normal: F64, logit: F64
) -> None:
    """Draw logits (C, S) of curves from the chains.

    Parameters
    ----------
    x : (C,) float64 array
        Logits of the scores.
    states : States
    chains : Chains
    ends : (M,) int64 array
        The draw after the last one of each chain, in order.
    uniform, normal : (S, C) float64 arrays
        Random numbers for the states of the cells, and for the places of the pieces.
    logit : (C, S) float64 array
        Overwritten.
    """
    path = np.empty(x.size, np.int64)
    i = 0
    for q in range(logit.shape[1]):
        while ends[i] <= q:
            i += 1
        draw_path(i, q, uniform, states, chains, path)
        place_pieces(q, path, x, states, chains.log_sums, normal=normal, logit=logit)
