"""Hidden Markov chains over the cells of a calibration curve that comes in pieces.

A state of a chain is a shift of the logit, calibrated, or a level; a jump redraws it whatever it
was, so a step of the forward filter takes as long as there are states, not their square. The states
of a cell are one line of a flat array, a multiple of eight: without that, and without views, which
count references, a filter of seven chains takes 60 us instead of 25.
"""

import math
from typing import NamedTuple

import numpy as np

from fastece.kernels.bayes import Cells
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64

# Of a probability that is only to have a logarithm.
SMALLEST = 1e-300
# Numbers that are summed up side by side.
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(k) for k in range(9))


class States(NamedTuple):
    """States of every chain, N in all.

    W shifts, calibrated, calibrated from the first cell on, L levels. That one is a state of its
    own, since a curve that is calibrated everywhere is none of a chain: that is left to the Bayes
    factor.
    """

    value: F64  # (N,) added to the logit, or the logit of the level; each in increasing order
    width: F64  # (N,) of each state's part of the line
    prior: F64  # (P, W + 2) probability of each shift after a jump, by scale; 0 for calibrated
    squares: F64  # (P,) of the scales of levels around the score, times the degrees of freedom
    levels: float  # prior probability of a level
    drift: int  # a step of drift leads to the shift so many on


class Chains(NamedTuple):
    """Laws of M chains, and their filters of C cells of N states each.

    Attributes
    ----------
    law : (M, 4) float64 array
        Of each chain the probability of a jump from one cell to the next, that of a step of drift
        in its absence, that of a calibrated piece after a jump, and the line of priors.
    prior : (P * C * N,) float64 array
        Prior probability of each state after a jump that does not lead to a calibrated piece.
    likelihood : (C * N,) float64 array
        Of the hits of each cell, over the largest possible.
    log_sums : ((C + 1) * N,) float64 array
        Their logarithms, summed over the cells before.
    filter : (M * C * N,) float64 array
        Probability of each state given the cells up to its own, up to a factor.
    total : (M, C) float64 array
        Sums of the filter.
    log_evidence : (M,) float64 array
        Of each chain, given that some piece is not calibrated.
    """

    law: F64
    prior: F64
    likelihood: F64
    log_sums: F64
    filter: F64
    total: F64
    log_evidence: F64


@jit
def fill_likelihoods(cells: Cells, x: F64, rest: F64, states: States, chains: Chains) -> float:
    """Fill in log likelihoods, their sums and priors; return the largest of all.

    `x` (C,) are logits of the scores. With z the logits of the states, `rest` (C * W + L,) is
    ``log(1 + exp(-abs(z)))``, cell after cell of the W states that are moves, then of levels.
    """
    value, shifts, like, sums = states.value, states.prior, chains.likelihood, chains.log_sums
    priors, largest, n = chains.prior, 0.0, np.uint64(value.size)
    moves, work = np.uint64(shifts.shape[1]), np.empty(value.size)
    of_levels = np.uint64(x.size) * moves
    for k in range(ZERO, n):
        sums[k] = 0.0
    for c in range(x.size):
        weight, hits, middle, at = cells.weight[c], cells.hits[c], x[c], np.uint64(c) * n
        first = np.uint64(c) * moves
        top = 0.0  # of the frequency of the hits, which no state exceeds
        if 0.0 < hits < weight:
            top = hits * math.log(hits / weight) + (weight - hits) * math.log1p(-hits / weight)
        largest += top
        for k in range(ZERO, moves):
            z = middle + value[k]
            like[at + k] = hits * z - weight * (max(z, 0.0) + rest[first + k]) - top
        for k in range(moves, n):
            z = value[k]
            like[at + k] = hits * z - weight * (max(z, 0.0) + rest[of_levels + k - moves]) - top
        for k in range(ZERO, n):
            sums[at + n + k] = sums[at + k] + like[at + k]
        for p in range(states.squares.size):
            line, square, total = np.uint64(p * x.size + c) * n, states.squares[p], 0.0
            for k in range(ZERO, moves):
                priors[line + k] = shifts[p, k]
            for k in range(moves, n):
                away = value[k] - middle
                v = 1.0 / (1.0 + away * away / square)
                work[k] = v * v
            for k in range(moves, n):
                total += work[k]
            for k in range(moves, n):
                priors[line + k] = work[k] * (states.levels / total)
    return largest


@jit
def filter_chains(largest: float, states: States, chains: Chains) -> None:
    """Fill in all of the chains by the forward filter.

    Their likelihoods are over the `largest`, whose logarithm is given.
    """
    n, drift, priors = np.uint64(states.value.size), np.uint64(states.drift), chains.prior
    f, like, n_cells = chains.filter, chains.likelihood, chains.total.shape[1]
    ever = np.uint64(states.prior.shape[1] - 1)
    calibrated = ever - ONE
    for i in range(chains.law.shape[0]):
        jump, step, spike = chains.law[i, 0], chains.law[i, 1], chains.law[i, 2]
        line, evidence, total = np.uint64(chains.law[i, 3]) * np.uint64(n_cells), largest, 1.0
        stay, new, after, never = 0.0, 1.0 - spike, 0.0, spike
        for c in range(n_cells):
            a, p = np.uint64(c) * n, (line + np.uint64(c)) * n
            at = np.uint64(i * n_cells + c) * n
            before = at - n if c > 0 else at
            if c == 0:
                for k in range(ZERO, n):
                    f[at + k] = 0.0
            if c > 0 and step > 0.0:
                half, pairs = 0.5 * step, calibrated - drift
                for k in range(ZERO, n):
                    f[at + k] = f[before + k]
                for k in range(ZERO, pairs):
                    f[at + k] += half * (f[before + k + drift] - f[before + k])
                for k in range(drift, calibrated):
                    f[at + k] += half * (f[before + k - drift] - f[before + k])
                before = at
            for k in range(ZERO, n):
                f[at + k] = (stay * f[before + k] + new * priors[p + k]) * like[a + k]
            f[at + calibrated] = after * like[a + calibrated]
            f[at + ever] = never * like[a + ever]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
            for k in range(at, at + n, EIGHT):
                s0, s1, s2, s3 = s0 + f[k], s1 + f[k + ONE], s2 + f[k + TWO], s3 + f[k + THREE]
                s4, s5 = s4 + f[k + FOUR], s5 + f[k + FIVE]
                s6, s7 = s6 + f[k + SIX], s7 + f[k + SEVEN]
            total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
            chains.total[i, c] = total
            evidence += math.log(total)
            stay, new = (1.0 - jump) / total, jump * (1.0 - spike)
            never = f[at + ever] / total
            after = stay * f[at + calibrated] + jump * spike * (1.0 - never)
            other, never = 1.0 - never, never * (1.0 - jump + jump * spike)
        all_calibrated = spike * (1.0 - jump + jump * spike) ** (n_cells - 1)
        evidence += math.log(max(other, SMALLEST)) - math.log(1.0 - all_calibrated)
        chains.log_evidence[i] = evidence


@jit
def draw_paths(states: States, chains: Chains, ends: I64, uniform: F64, paths: I64) -> None:
    """Draw the states of the cells of curves from the chains: backward sampling.

    Parameters
    ----------
    ends : (M,) int64 array
        The draw after the last one of each chain, in order.
    uniform : (S, C) float64 array
        Random numbers: of the state of a cell given the next one's.
    paths : (S, C) int64 array
        Overwritten.
    """
    n_cells, n, ever = paths.shape[1], states.value.size, states.prior.shape[1] - 1
    f, i = chains.filter, 0
    for q in range(paths.shape[0]):
        path = paths[q]
        while ends[i] <= q:
            i += 1
        jump, step, spike = chains.law[i, 0], chains.law[i, 1], chains.law[i, 2]
        line, move = int(chains.law[i, 3]) * n_cells, states.drift if step > 0.0 else 0
        stay, walk = (1.0 - jump) * (1.0 - step), (1.0 - jump) * step / 2.0
        state = n  # beyond the last cell
        for c in range(n_cells - 1, -1, -1):
            if state == ever:  # as all cells before it
                path[c] = state
                continue
            at, total = (i * n_cells + c) * n, chains.total[i, c]
            same, lower, upper, rest, down, up = 0.0, 0.0, 0.0, 1.0, state, state
            may_be_ever = state < ever - 1 or ever < state < n
            if not may_be_ever:
                total -= f[at + ever]
            if state < n:
                same = (1.0 - jump) * f[at + state]
                rest = jump * spike * total
            if may_be_ever:
                rest = jump * (1.0 - spike) * chains.prior[(line + c + 1) * n + state] * total
            if state < ever - 1 and move > 0:
                down = state - move if state >= move else state
                up = state + move if state + move < ever - 1 else state
                same, lower, upper = stay * f[at + state], walk * f[at + down], walk * f[at + up]
            u = uniform[q, c] * (same + lower + upper + rest)
            if u >= same + lower + upper:
                u = (u - same - lower - upper) * (total / rest)
                state = 0
                while state < n - 1:
                    u -= f[at + state] if state != ever or may_be_ever else 0.0
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

    A shift or a level is drawn within its state by a normal law from the log likelihoods of that
    and of its neighbours: from all of the state, a piece would be wider than its rows make it. Of
    the `normal` numbers (S, C) a piece has that of the cell in which it begins.
    """
    value, n, moves = states.value, states.value.size, states.prior.shape[1]
    for q in range(paths.shape[0]):
        path, stop = paths[q], paths.shape[1]
        for c in range(path.size - 1, -1, -1):
            state = path[c]
            if c > 0 and path[c - 1] == state:
                continue
            at, width = value[state], states.width[state]
            variance, slope = width * width / 12.0, 0.0
            if state not in (0, moves - 3, moves - 2, moves - 1, moves, n - 1):
                a, b = c * n + state, stop * n + state
                here = log_sums[b] - log_sums[a]
                down, up = at - value[state - 1], value[state + 1] - at
                fall = (here - (log_sums[b - 1] - log_sums[a - 1])) / down
                rise = (log_sums[b + 1] - log_sums[a + 1] - here) / up
                slope = (fall * up + rise * down) / (down + up)
                variance = 1.0 / max(2.0 * (fall - rise) / (down + up), 1.0 / variance)
            mean = min(max(slope * variance, -0.5 * width), 0.5 * width)
            at += mean + math.sqrt(variance) * normal[q, c]
            own = 1.0 if state < moves else 0.0
            for k in range(c, stop):
                logit[q, k] = at + own * x[k]
            stop = c
