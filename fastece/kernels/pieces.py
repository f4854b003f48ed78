"""Hidden Markov chains over the cells of a calibration curve that comes in pieces.

A state of a chain is a shift of the logit, calibrated, or a level; a jump redraws it whatever it
was, so a step of the forward filter takes as long as there are states, not their square. The states
of a cell are one line of a flat array, a multiple of eight numbers, and no views are made of it,
which would count references: so a filter of seven chains takes 25 us instead of 60.

The states of a line are, in this order::

    shifts of the logit | calibrated | calibrated from the first cell on | levels
    -------------------- moves ---------------------------------------- |

A curve that is calibrated everywhere does not belong to a chain, as it is left to the Bayes factor.
So "calibrated from the first cell on" is a state apart from "calibrated".

Kernels know M chains in C cells by these arrays::

    table       (7, N)              the states, line by line
    law         (M, 4)              the chains, column by column
    prior       (2 * C * N,)        probability of each state after a jump that does not lead to a
                                    calibrated piece, by scale and cell
    log_sums    ((C + 1) * N,)      log likelihood of the hits of each cell under each state, over
                                    the largest possible, summed over the cells before
    likelihood  (C * N,)            likelihood of the hits of each cell under each state, over the
                                    largest possible
    filtered    ((M * C + 2) * N,)  probability of each state given the cells up to its own, up to a
                                    factor; then the states before the first cell, and work space
    total       (M * C,)            sums of `filtered`
"""

import math
from typing import Any

import numpy as np

from fastece.kernels.arithmetic import exponential
from fastece.kernels.bayes import log_one_plus
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64

# In place of a probability of 0, which has no logarithm.
MIN_PROBABILITY = 1e-300
# Smaller products of totals are not multiplied further: they would soon be 0.
MIN_PRODUCT = 1e-100
# Shifts, and distances of levels from the score, have a Student law of this freedom and one of
# these scales.
FREEDOM = 3
SHIFT_SCALES = (0.5, 1.2)
N_SCALES = len(SHIFT_SCALES)
# Share of levels among the pieces that are not calibrated.
LEVEL_SHARE = 0.4
# Smallest size of the memory of chains, in numbers. Once this much has been freed, the C library of
# Linux no longer gives pages back that are soon used again: a page costs 2 us, of 500 rows 400 us
# in all.
MIN_MEMORY = 2**18
# Columns of the laws: the probability of a jump from one cell to the next, of a step of drift
# without a jump, and of a calibrated piece after a jump; and the position of the scale of shifts.
JUMP, STEP, SPIKE, SCALE = range(4)
# Lines of the table of states: what is added to the logit, or the logit of the level, each kind in
# increasing order; the exponentials of these values and of their opposites; ``log(1 +
# exp(-abs(z)))`` of the values z; the widths of the intervals of logits that they stand for; and,
# for each scale, the probability of each shift after a jump.
VALUE, ODDS, INVERSE_ODDS, LOG_REST, WIDTH, PRIOR = range(6)
# Numbers that are summed up side by side.
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(k) for k in range(9))


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
def weigh_states(
    cells: F64, x: F64, table: F64, moves: int, n_laws: int
) -> tuple[F64, F64, F64, F64, F64, float]:
    """Compute likelihoods and priors of the states in cells (3, C).

    `x` (C,) are the logits of the scores. The odds of a shifted score are a product, so that no
    exponential is computed for each cell and shift.

    Returns
    -------
    prior, log_sums, likelihood : float64 arrays
    filtered, total : float64 arrays
        Not yet filled in.
    largest : float
        The log of the largest possible likelihood.
    """
    n_states = table.shape[1]
    size = x.size * n_states
    end_of_prior = N_SCALES * size
    end_of_sums = end_of_prior + size + n_states
    end_of_likelihood = end_of_sums + size
    end_of_filter = end_of_likelihood + n_laws * size + 2 * n_states
    end = end_of_filter + n_laws * x.size
    memory = np.empty(max(end, MIN_MEMORY))
    prior = memory[:end_of_prior]
    log_sums = memory[end_of_prior:end_of_sums]
    likelihood = memory[end_of_sums:end_of_likelihood]
    filtered = memory[end_of_likelihood:end_of_filter]
    total = memory[end_of_filter:end]
    value = table[VALUE]
    odds = table[ODDS]
    inverse_odds = table[INVERSE_ODDS]
    log_rest = table[LOG_REST]
    n = np.uint64(n_states)
    end_of_moves = np.uint64(moves)
    for k in range(ZERO, n):
        log_sums[k] = 0.0
    largest = 0.0
    for c in range(ZERO, np.uint64(x.size)):
        cell = c * n
        weight = cells[0, c]
        hits = cells[1, c]
        middle = x[c]
        top = 0.0  # log likelihood of the observed frequency, which no state exceeds
        if 0.0 < hits < weight:
            top = hits * math.log(hits / weight) + (weight - hits) * math.log1p(-hits / weight)
        largest += top
        odds_of_score = math.exp(middle)
        inverse_odds_of_score = math.exp(-middle)
        for k in range(ZERO, end_of_moves):
            z = middle + value[k]
            if_positive = inverse_odds_of_score * inverse_odds[k]
            if_negative = odds_of_score * odds[k]
            log_odds = max(z, 0.0) + log_one_plus(if_positive if z >= 0.0 else if_negative)
            likelihood[cell + k] = hits * z - weight * log_odds - top
        for k in range(end_of_moves, n):
            z = value[k]
            likelihood[cell + k] = hits * z - weight * (max(z, 0.0) + log_rest[k]) - top
        for k in range(cell, cell + n):
            log_sums[k + n] = log_sums[k] + likelihood[k]
        for p in range(N_SCALES):
            line = np.uint64(p * x.size) * n + cell
            square = FREEDOM * SHIFT_SCALES[p] ** 2
            for k in range(ZERO, end_of_moves):
                prior[line + k] = table[PRIOR + p, k]
            for k in range(end_of_moves, n):
                away = value[k] - middle
                v = 1.0 / (1.0 + away * away / square)
                prior[line + k] = v * v
            scale = LEVEL_SHARE / sum_states(prior, line + end_of_moves, line + n)
            for k in range(line + end_of_moves, line + n):
                prior[k] *= scale
    exponential(likelihood, filtered)  # the filter is work space here
    return prior, log_sums, likelihood, filtered, total, largest


@jit
def filter_chains(
    law: F64, prior: F64, likelihood: F64, filtered: F64, total: F64, moves: int, drift: int,
    largest: float,
) -> F64:  # fmt: skip
    """Filter the cells forward by all chains; return their log evidence (M,).

    `filtered` and `total` are filled in. The chains take each cell together, so that no chain waits
    for the total of another. The evidence of a chain is that of its curves in which some piece is
    not calibrated.
    """
    f = filtered
    n_laws = len(law)
    n_cells = total.size // n_laws
    n = np.uint64(likelihood.size // n_cells)
    ever = np.uint64(moves) - ONE  # calibrated from the first cell on
    calibrated = ever - ONE
    shifts = calibrated
    far = np.uint64(drift)
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
            first = np.uint64(law[i, SCALE]) * np.uint64(n_cells) * n + cell
            line = np.uint64(i * n_cells) * n + cell
            before = start
            jump = 1.0
            sum_before = 1.0
            if c > 0:
                before = line - n
                jump = law[i, JUMP]
                sum_before = total[i * n_cells + c - 1]
            stay = (1.0 - jump) / sum_before
            share_of_ever = f[before + ever] / sum_before
            after = stay * f[before + calibrated] + jump * spike * (1.0 - share_of_ever)
            if law[i, STEP] > 0.0:
                # Half of the share of each shift that drifts moves to either side; at an end, the
                # half that has no place to go to stays.
                half = 0.5 * law[i, STEP]
                for k in range(ZERO, shifts - far):
                    share = f[before + k]
                    f[moved + k] = share + half * (f[before + k + far] - share)
                for k in range(shifts - far, n):
                    f[moved + k] = f[before + k]
                for k in range(far, shifts):
                    f[moved + k] += half * (f[before + k - far] - f[before + k])
                before = moved
            new = jump * (1.0 - spike)
            for k in range(ZERO, n):
                f[line + k] = (stay * f[before + k] + new * prior[first + k]) * likelihood[cell + k]
            f[line + calibrated] = after * likelihood[cell + calibrated]
            f[line + ever] = share_of_ever * (1.0 - jump + jump * spike) * likelihood[cell + ever]
            total[i * n_cells + c] = sum_states(f, line, line + n)
    log_evidence = np.empty(n_laws)
    for i in range(n_laws):
        jump = law[i, JUMP]
        spike = law[i, SPIKE]
        # Totals are multiplied before a logarithm is taken, which takes as long as 20 products.
        evidence = 0.0
        product = 1.0
        for c in range(n_cells):
            factor = total[i * n_cells + c]
            next_product = product * factor
            if next_product < MIN_PRODUCT:
                evidence += math.log(product) + math.log(factor)
                next_product = 1.0
            product = next_product
        last = np.uint64((i + 1) * n_cells - 1) * n
        not_calibrated = 1.0 - f[last + ever] / total[(i + 1) * n_cells - 1]
        all_calibrated = spike * (1.0 - jump + jump * spike) ** (n_cells - 1)
        evidence += largest + math.log(product)
        evidence += math.log(max(not_calibrated, MIN_PROBABILITY))
        log_evidence[i] = evidence - math.log(1.0 - all_calibrated)
    return log_evidence


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
def draw_chains(
    x: F64, table: F64, moves: int, drift: int, law: F64, prior: F64, log_sums: F64,
    filtered: F64, total: F64, ends: I64, uniform: F64, normal: F64,
) -> F64:  # fmt: skip
    """Draw logits (C, S) of curves from filtered chains: backward sampling.

    A shift or a level is drawn within its state by a normal law, from the log likelihoods of that
    state and of its neighbours: drawn from all of the state, a piece would be wider than its rows
    make it.

    Parameters
    ----------
    x : (C,) float64 array
        The logits of the scores.
    table, moves, drift, law, prior, log_sums, filtered, total
        Filtered chains. The share of the state "calibrated from the first cell on" is taken out of
        a line for a moment, where this state is not possible.
    ends : (M,) int64 array
        The draw after the last one of each chain, in order.
    uniform : (S, C) float64 array
        Random numbers for the state of each cell given the state of the next.
    normal : (S, C) float64 array
        Normal numbers. A piece takes the one of the cell in which it begins.
    """
    draws, n_cells = uniform.shape
    n = table.shape[1]
    value = table[VALUE]
    ever = moves - 1  # calibrated from the first cell on
    f = filtered
    path = np.empty(n_cells, np.int64)
    logit = np.empty((n_cells, draws))
    i = 0
    for q in range(draws):
        while ends[i] <= q:
            i += 1
        # The states of the cells, from the last to the first.
        jump = law[i, JUMP]
        step = law[i, STEP]
        spike = law[i, SPIKE]
        first_prior = int(law[i, SCALE]) * n_cells
        move = drift if step > 0.0 else 0
        stay = (1.0 - jump) * (1.0 - step)
        walk = (1.0 - jump) * step / 2.0
        state = n  # beyond the last cell
        for c in range(n_cells - 1, -1, -1):
            if state == ever:  # as all cells before it
                path[c] = state
                continue
            k0 = (i * n_cells + c) * n
            mass = total[i * n_cells + c]
            # Weights of staying, of a step of drift down or up, and of a jump.
            same = lower = upper = 0.0
            jumped = 1.0
            down = up = state
            may_be_ever = state < ever - 1 or ever < state < n
            if not may_be_ever:
                mass -= f[k0 + ever]
            if state < n:
                same = (1.0 - jump) * f[k0 + state]
                jumped = jump * spike * mass
            if may_be_ever:
                after_jump = prior[(first_prior + c + 1) * n + state]
                jumped = jump * (1.0 - spike) * after_jump * mass
            if state < ever - 1 and move > 0:
                down = state - move if state >= move else state
                up = state + move if state + move < ever - 1 else state
                same = stay * f[k0 + state]
                lower = walk * f[k0 + down]
                upper = walk * f[k0 + up]
            u = uniform[q, c] * (same + lower + upper + jumped)
            if u >= same + lower + upper:
                u = (u - same - lower - upper) * (mass / jumped)
                share_of_ever = f[k0 + ever]
                f[k0 + ever] = share_of_ever if may_be_ever else 0.0
                state = find_state(f, np.uint64(k0), np.uint64(n), u)
                f[k0 + ever] = share_of_ever
                # Rounding may lead to `ever`, although it has no share.
                state = ever - 1 if state == ever and not may_be_ever else state
            elif u >= same:
                state = down if u < same + lower else up
            path[c] = state
        # The logits of the pieces.
        stop = n_cells
        for c in range(n_cells - 1, -1, -1):
            state = path[c]
            if c > 0 and path[c - 1] == state:
                continue
            middle = value[state]
            width = table[WIDTH, state]
            variance = width * width / 12.0
            slope = 0.0
            # A state has neighbours on both sides, unless it is the first or the last of its kind,
            # or calibrated.
            if 0 < state < moves - 3 or moves < state < n - 1:
                a = c * n + state
                b = stop * n + state
                here = log_sums[b] - log_sums[a]
                to_lower = middle - value[state - 1]
                to_upper = value[state + 1] - middle
                fall = (here - (log_sums[b - 1] - log_sums[a - 1])) / to_lower
                rise = (log_sums[b + 1] - log_sums[a + 1] - here) / to_upper
                slope = (fall * to_upper + rise * to_lower) / (to_lower + to_upper)
                variance = 1.0 / max(2.0 * (fall - rise) / (to_lower + to_upper), 1.0 / variance)
            mean = min(max(slope * variance, -0.5 * width), 0.5 * width)
            drawn = middle + (mean + math.sqrt(variance) * normal[q, c])
            for k in range(c, stop):
                logit[k, q] = drawn + x[k] if state < moves else drawn
            stop = c
    return logit
