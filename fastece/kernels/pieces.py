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


class Layout(NamedTuple):
    """Where the states of a line stand."""

    states: int  # how many, N
    moves: int  # shifts and the two calibrated states come first, W + 2
    drift: int  # a step of drift leads to the shift so many on


class States(NamedTuple):
    """States of every chain: W shifts, two calibrated ones, and L levels; N in all.

    A curve that is calibrated everywhere does not belong to a chain, as it is left to the Bayes
    factor. So "calibrated from the first cell on" is a state apart from "calibrated".
    """

    layout: Layout
    value: F64  # (N,) added to the logit, or the logit of the level; each in increasing order
    odds: F64  # (N,) the exponentials of the values
    inverse_odds: F64  # (N,)
    log_rest: F64  # (N,) ``log(1 + exp(-abs(z)))`` of the values z
    width: F64  # (N,) of the interval of logits that each state stands for
    prior: F64  # (P, W + 2) probability of each shift after a jump, by scale; 0 for calibrated
    squares: F64  # (P,) squared scales of levels around the score, times the degrees of freedom
    levels: float  # prior probability of a level


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
    likelihood : (C * N,) float64 array
        Likelihood of the hits of each cell under each state, over the largest possible.
    filter : ((M * C + 2) * N,) float64 array
        Probability of each state given the cells up to its own, up to a factor. Two lines follow:
        the states before the first cell, and work space.
    total : (M, C) float64 array
        Sums of the filter.
    log_evidence : (M,) float64 array
        Log evidence of each chain, given that some piece is not calibrated.
    """

    law: F64
    prior: F64
    log_sums: F64
    likelihood: F64
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
def fill_cells(cells: RankCells, x: F64, states: States, chains: Chains) -> float:
    """Fill in log likelihoods and priors of cells; return the largest log likelihood.

    `x` (C,) are the logits of the scores. Likelihoods are over the largest possible. The odds of a
    shifted score are a product, so that no exponential is computed for each cell and shift.
    """
    value = states.value
    odds = states.odds
    inverse_odds = states.inverse_odds
    log_rest = states.log_rest
    like = chains.likelihood
    log_sums = chains.log_sums
    priors = chains.prior
    n = np.uint64(states.layout.states)
    moves = np.uint64(states.layout.moves)
    for k in range(ZERO, n):
        log_sums[k] = 0.0
    largest = 0.0
    for c in range(ZERO, np.uint64(x.size)):
        cell = c * n
        weight = cells.weight[c]
        hits = cells.hits[c]
        middle = x[c]
        top = 0.0  # log likelihood of the observed frequency, which no state exceeds
        if 0.0 < hits < weight:
            top = hits * math.log(hits / weight) + (weight - hits) * math.log1p(-hits / weight)
        largest += top
        odds_of_score = math.exp(middle)
        inverse_odds_of_score = math.exp(-middle)
        for k in range(ZERO, moves):
            z = middle + value[k]
            if_positive = inverse_odds_of_score * inverse_odds[k]
            if_negative = odds_of_score * odds[k]
            log_odds = max(z, 0.0) + log_one_plus(if_positive if z >= 0.0 else if_negative)
            like[cell + k] = hits * z - weight * log_odds - top
        for k in range(moves, n):
            z = value[k]
            like[cell + k] = hits * z - weight * (max(z, 0.0) + log_rest[k]) - top
        for k in range(cell, cell + n):
            log_sums[k + n] = log_sums[k] + like[k]
        for p in range(states.squares.size):
            line = np.uint64(p * x.size) * n + cell
            square = states.squares[p]
            for k in range(ZERO, moves):
                priors[line + k] = states.prior[p, k]
            for k in range(moves, n):
                away = value[k] - middle
                v = 1.0 / (1.0 + away * away / square)
                priors[line + k] = v * v
            scale = states.levels / sum_states(priors, line + moves, line + n)
            for k in range(line + moves, line + n):
                priors[k] *= scale
    return largest


@jit
def drift_states(f: F64, line: Any, moved: Any, step: float, layout: Layout) -> None:
    """Move half of the share `step` of each shift to either side.

    Shares come from a line of f and go to the line `moved`. At an end, the half that has no place
    to go to stays.
    """
    n = np.uint64(layout.states)
    shifts = np.uint64(layout.moves) - TWO
    drift = np.uint64(layout.drift)
    half = 0.5 * step
    for k in range(ZERO, shifts - drift):
        before = f[line + k]
        f[moved + k] = before + half * (f[line + k + drift] - before)
    for k in range(shifts - drift, n):
        f[moved + k] = f[line + k]
    for k in range(drift, shifts):
        f[moved + k] += half * (f[line + k - drift] - f[line + k])


@jit
def filter_cells(layout: Layout, largest: float, chains: Chains) -> None:
    """Filter the cells forward by all chains, with their likelihoods and priors.

    The filters, their sums and the evidence are filled in. `largest` is the log of the largest
    possible likelihood. The chains take each cell together, so that no chain waits for the total of
    another.
    """
    f = chains.filter
    law = chains.law
    priors = chains.prior
    like = chains.likelihood
    totals = chains.total
    n_laws, n_cells = totals.shape
    n = np.uint64(layout.states)
    ever = np.uint64(layout.moves) - ONE  # calibrated from the first cell on
    calibrated = ever - ONE
    # Before the first cell all is calibrated, and every chain jumps from there.
    start = np.uint64(n_laws * n_cells) * n
    moved = start + n
    for k in range(start, moved):
        f[k] = 0.0
    f[start + ever] = 1.0
    for c in range(n_cells):
        cell = np.uint64(c) * n
        for i in range(n_laws):
            spike = law[i, SPIKE]
            prior = np.uint64(law[i, PRIOR]) * np.uint64(n_cells) * n + cell
            line = np.uint64(i * n_cells) * n + cell
            before = start
            jump = 1.0
            total = 1.0
            if c > 0:
                before = line - n
                jump = law[i, JUMP]
                total = totals[i, c - 1]
            stay = (1.0 - jump) / total
            share_of_ever = f[before + ever] / total
            after = stay * f[before + calibrated] + jump * spike * (1.0 - share_of_ever)
            if law[i, STEP] > 0.0:
                drift_states(f, before, moved, law[i, STEP], layout)
                before = moved
            new = jump * (1.0 - spike)
            for k in range(ZERO, n):
                f[line + k] = (stay * f[before + k] + new * priors[prior + k]) * like[cell + k]
            f[line + calibrated] = after * like[cell + calibrated]
            f[line + ever] = share_of_ever * (1.0 - jump + jump * spike) * like[cell + ever]
            totals[i, c] = sum_states(f, line, line + n)
    for i in range(n_laws):
        jump = law[i, JUMP]
        spike = law[i, SPIKE]
        # Totals are multiplied before a logarithm is taken, which takes as long as 20 products.
        evidence = 0.0
        product = 1.0
        for c in range(n_cells):
            next_product = product * totals[i, c]
            if next_product < MIN_PRODUCT:
                evidence += math.log(product) + math.log(totals[i, c])
                next_product = 1.0
            product = next_product
        last = np.uint64((i + 1) * n_cells - 1) * n
        not_calibrated = 1.0 - f[last + ever] / totals[i, n_cells - 1]
        all_calibrated = spike * (1.0 - jump + jump * spike) ** (n_cells - 1)
        evidence += largest + math.log(product)
        evidence += math.log(max(not_calibrated, MIN_PROBABILITY))
        chains.log_evidence[i] = evidence - math.log(1.0 - all_calibrated)


@jit
def find_state(f: F64, first: Any, n: Any, u: float) -> Any:
    """Return the state of a line in which the running sum of f passes `u`.

    Eight states are passed at once.
    """
    state = ZERO
    while state < n - EIGHT:
        k = first + state
        low = (f[k] + f[k + ONE]) + (f[k + TWO] + f[k + THREE])
        high = (f[k + FOUR] + f[k + FIVE]) + (f[k + SIX] + f[k + SEVEN])
        if u < low + high:
            break
        u -= low + high
        state += EIGHT
    last = state + SEVEN
    while state < last:
        u -= f[first + state]
        if u < 0.0:
            break
        state += ONE
    return np.int64(state)


@jit
def draw_paths(layout: Layout, chains: Chains, ends: I64, uniform: F64, path: I64) -> None:
    """Draw the states of the cells of curves from the chains: backward sampling.

    Parameters
    ----------
    layout : Layout
    chains : Chains
        Filtered. The share of the state "calibrated from the first cell on" is taken out of a line
        for a moment, where this state is not possible.
    ends : (M,) int64 array
        The draw after the last one of each chain, in order.
    uniform : (S, C) float64 array
        Random numbers for the state of each cell given the state of the next.
    path : (S, C) int64 array
        Overwritten.
    """
    draws, n_cells = path.shape
    n = layout.states
    ever = layout.moves - 1  # calibrated from the first cell on
    f = chains.filter
    i = 0
    for q in range(draws):
        while ends[i] <= q:
            i += 1
        jump = chains.law[i, JUMP]
        step = chains.law[i, STEP]
        spike = chains.law[i, SPIKE]
        first_prior = int(chains.law[i, PRIOR]) * n_cells
        move = layout.drift if step > 0.0 else 0
        stay = (1.0 - jump) * (1.0 - step)
        walk = (1.0 - jump) * step / 2.0
        state = n  # beyond the last cell
        for c in range(n_cells - 1, -1, -1):
            if state == ever:  # as all cells before it
                path[q, c] = state
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
                share_of_ever = f[k0 + ever]
                f[k0 + ever] = share_of_ever if may_be_ever else 0.0
                state = find_state(f, np.uint64(k0), np.uint64(n), u)
                f[k0 + ever] = share_of_ever
                # Rounding may lead to `ever`, although it has no share.
                state = ever - 1 if state == ever and not may_be_ever else state
            elif u >= same:
                state = down if u < same + lower else up
            path[q, c] = state


@jit
def place_pieces(path: I64, x: F64, states: States, log_sums: F64, normal: F64, logit: F64) -> None:
    """Draw the logits (C, S) of curves, whose cells have the states of paths (S, C).

    A shift or a level is drawn within its state by a normal law, from the log likelihoods of that
    state and of its neighbours: drawn from all of the state, a piece would be wider than its rows
    make it. A piece takes the `normal` number (S, C) of the cell in which it begins.
    """
    value = states.value
    n = states.layout.states
    moves = states.layout.moves
    draws, n_cells = path.shape
    for q in range(draws):
        stop = n_cells
        for c in range(n_cells - 1, -1, -1):
            state = path[q, c]
            if c > 0 and path[q, c - 1] == state:
                continue
            middle = value[state]
            width = states.width[state]
            variance = width * width / 12.0
            slope = 0.0
            # A state has neighbours on both sides, unless it is the first or the last of its kind,
            # or calibrated.
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
