"""Errors from the gaps of bins: norms, debiased errors, and errors under hypotheses.

Bins are added up one after another, for many problems or replicates side by side: a value has the
same bits alone and among others.
"""

import math
from typing import NamedTuple

import numpy as np

from fastece.kernels import EMPTY
from fastece.kernels.arithmetic import zero
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I32

# Replicates that are taken at once, so that the gaps of all cells of a problem stay in the cache.
LANES = 128
# Smallest normal float: a total of 0 is moved up to it before it divides.
SMALLEST = np.finfo(np.float64).tiny
# Smallest unit of the gaps in a power mean, where all gaps are 0.
SMALLEST_GAP = 1e-300
# A variance needs two rows; weights may round their number down.
MIN_ROWS_OF_VARIANCE = 2.0 - 1e-9
# Gaps beyond so many deviations, times sqrt(2), are noise in no digit: exp(-36) is 2e-16.
FAR = 6.0
# Probabilities below this part of the mode's are left out.
NOTHING = 1e-17


class RareRows(NamedTuple):
    """Cells in which hits, or misses, are few: their number has a binomial law.

    Attributes
    ----------
    step : (M, K, B) float64 array
        Change of the gap of a cell if there is one such row more.
    rows, chance : (M, K, B) float64 arrays
        Parameters of the law. Where `rows` is not 0, the noise is `binomial_noise` alone.
    which : (K, B) int32 array
        The line of `order` of each cell that may have such noise.
    order : (C, R) int32 array
        Permutations of the replicates, in increasing order of their gaps; without a line, the other
        arrays are not read.
    """

    step: F64
    rows: F64
    chance: F64
    which: I32
    order: I32


NO_RARE_ROWS = RareRows(
    np.empty((0, 0, 0)), np.empty((0, 0, 0)), np.empty((0, 0, 0)), np.empty((0, 0), np.int32),
    np.empty((0, 0), np.int32),
)  # fmt: skip


@jit
def binomial_noise(
    gap: float, step: float, count: float, chance: float, order: I32, out: F64
) -> None:
    """Fill `out` (R,) with gaps that a binomial number of rows makes: its quantiles.

    Parameters
    ----------
    gap : float
        The mean.
    step : float
        Change of the gap by one row.
    count, chance : float
        Parameters of the law; the chance is less than 1.
    order : (R,) int32 array
        A permutation: replicate ``order[j]`` has the quantile ``(j + 1/2) / R``.
    out : (R,) float64 array
        Overwritten.
    """
    mean = count * chance
    odds = chance / (1.0 - chance)
    # From the mode to both sides, as far as there is anything, in units of its probability.
    k = top = np.floor(mean)
    p = q = total = 1.0
    while top < count and q > NOTHING:
        q *= odds * (count - top) / (top + 1.0)
        top += 1.0
        total += q
    while k > 0.0 and p > NOTHING:
        p *= k / (odds * (count - k + 1.0))
        k -= 1.0
        total += p
    # Replicates of one number of rows follow one another in the order: they are filled at once.
    replicates = order.size
    done = 0
    below = p
    while done < replicates:
        end = replicates
        if k < top:
            end = min(int(below / total * replicates + 0.5), replicates)
        value = gap + step * (k - mean)
        first = done if step > 0.0 else replicates - end
        for j in range(first, first + end - done):
            out[np.uint64(order[j])] = value
        done = end
        p *= odds * (count - k) / (k + 1.0)
        k += 1.0
        below += p


@jit
def add_norm(x: F64, norm: float, largest: F64, value: F64, out: F64) -> None:
    """Add the p-norm of each column of x (B, R) to `out` (R,).

    `largest` and `value` (R,) are work space. For powers other than the square, the largest entry
    is taken out first, since a large power of a small number is 0.
    """
    zero(value)
    zero(largest)
    if norm == 1.0 or norm == 2.0:
        for b in range(x.shape[0]):
            for r in range(out.size):
                value[r] += abs(x[b, r]) if norm == 1.0 else x[b, r] * x[b, r]
        for r in range(out.size):
            out[r] += value[r] if norm == 1.0 else np.sqrt(value[r])
        return
    for b in range(x.shape[0]):
        for r in range(out.size):
            largest[r] = max(largest[r], abs(x[b, r]))
    for b in range(x.shape[0] if norm < np.inf else 0):
        for r in range(out.size):
            if x[b, r] != 0.0:
                value[r] += (abs(x[b, r]) / largest[r]) ** norm
    for r in range(out.size):
        out[r] += largest[r] * (value[r] ** (1.0 / norm) if norm < np.inf else 1.0)


@jit
def gap_errors(
    gap: F64, noise: F64, null: F64, rare: RareRows, side: float, norm: float, out: F64
) -> None:
    """Compute the error of each replicate under each hypothesis, in `out` (M, R).

    It is the mean over problems of norms of gaps.

    Parameters
    ----------
    gap : (M, K, B) float64 array
        Gap of each cell of each problem under each hypothesis, in units in which a problem's error
        is a plain norm.
    noise : (M, K, B) float64 array
        Factor of the noise of each cell.
    null : (K, B, R) float64 array
        The noise of the replicates.
    rare : RareRows
        Perhaps `NO_RARE_ROWS`.
    side : float
        Which gaps count: those above 0 for 1, those below for -1, all for 0.
    norm : float
    out : (M, R) float64 array
        Overwritten.
    """
    problems, cells, count = null.shape
    x = np.zeros((cells, LANES))
    largest = np.empty(LANES)
    value = np.empty(LANES)
    total = np.empty(LANES)
    rare_noises = np.empty(rare.order.shape)
    for m in range(gap.shape[0]):
        for k in range(problems if rare.order.size > 0 else 0):
            for b in range(cells):
                if rare.rows[m, k, b] > 0.0:
                    line = rare.which[k, b]
                    binomial_noise(
                        gap[m, k, b], rare.step[m, k, b], rare.rows[m, k, b],
                        rare.chance[m, k, b], rare.order[line], rare_noises[line],
                    )  # fmt: skip
        for first in range(0, count, LANES):
            lanes = min(LANES, count - first)
            zero(total)
            for k in range(problems):
                for b in range(cells):
                    d = gap[m, k, b]
                    f = noise[m, k, b]
                    line = null[k, b]
                    if rare.order.size > 0 and rare.rows[m, k, b] > 0.0:
                        d = 0.0  # the noise of a rare cell has the gap in it
                        f = 1.0
                        line = rare_noises[rare.which[k, b]]
                    noises = line[first : first + lanes]
                    sums = x[b]
                    for r in range(lanes):
                        sums[r] = d + f * noises[r]
                    if side != 0.0:
                        for r in range(lanes):
                            sums[r] = max(side * sums[r], 0.0)
                add_norm(x, norm, largest, value, total)
            for r in range(lanes):
                out[m, first + r] = total[r] / problems


@jit
def add_bins(x: F64, out: F64) -> None:
    """Sum up numbers (B, R) of bins, one bin after another, in `out` (R,)."""
    zero(out)
    for b in range(x.shape[0]):
        line = x[b]
        for r in range(out.size):
            out[r] += line[r]


@jit
def norms(
    gap: F64, weight: F64, total: F64, norm: float, is_equal: bool, min_weight: float, out: F64
) -> None:
    """Compute the norm of the mean gaps of the bins of each problem or replicate.

    ``sum_b |D_b| / W`` for the norm 1, ``sqrt(sum_b W_b / W |D_b / W_b|**2)`` for 2, and the
    largest ``|D_b / W_b|`` for infinity.

    Parameters
    ----------
    gap : (B, R) float64 array
        Sums D of w (y - s) in each bin, for R problems or replicates side by side.
    weight : (B, R) or (0, 0) float64 array
        Sums of w. Not read for the norm 1, unless bins count 1 / B.
    total : (R,) float64 array
        Weight W of the rows.
    norm : float
        1, 2 or infinity.
    is_equal : bool
        Bins count 1 / B instead of their share.
    min_weight : float
        For infinity: bins of less weight are left out; without any other the value is nan.
    out : (R,) float64 array
        Overwritten.
    """
    n_bins, count = gap.shape
    terms = np.empty((n_bins, min(count, LANES)))
    largest = np.empty(terms.shape[1])
    whole = np.empty(terms.shape[1])
    least_share = EMPTY if (norm == np.inf) | is_equal else 0.0
    for first in range(0, count, LANES):
        lanes = min(LANES, count - first)
        value = out[first : first + lanes]
        zero(value)
        for r in range(lanes):
            whole[r] = max(total[first + r], SMALLEST)
            largest[r] = -1.0 if norm == np.inf else SMALLEST_GAP
        if norm == 1.0 and not is_equal:
            for b in range(n_bins):
                line = gap[b, first : first + lanes]
                for r in range(lanes):
                    value[r] += abs(line[r])
            for r in range(lanes):
                value[r] /= whole[r]
            continue
        for b in range(n_bins):
            line = gap[b, first : first + lanes]
            weight_of_bin = weight[b, first : first + lanes]
            term = terms[b]
            for r in range(lanes):
                w = weight_of_bin[r]
                is_filled = w > least_share * whole[r]
                term[r] = abs(line[r]) / w if is_filled else 0.0
                is_counted = (norm < np.inf) | (is_filled & (w >= min_weight))
                larger = is_counted & (term[r] > largest[r])
                largest[r] = term[r] if larger else largest[r]
        if norm == np.inf:
            for r in range(lanes):
                found = largest[r] if largest[r] >= 0.0 else np.nan
                value[r] = found if total[first + r] > 0.0 else 0.0
            continue
        # In units of the largest gap, since the square of a small number would be 0.
        for b in range(n_bins):
            weight_of_bin = weight[b, first : first + lanes]
            term = terms[b]
            for r in range(lanes):
                size = term[r] / largest[r]
                power = size * size if norm == 2.0 else size
                share = 1.0 / n_bins if is_equal else weight_of_bin[r] / whole[r]
                value[r] += share * power
        for r in range(lanes):
            root = np.sqrt(value[r]) if norm == 2.0 else value[r]
            value[r] = root * largest[r]


@jit
def debiased_errors(
    gap: F64, weight: F64, hits: F64, square: F64, total: F64, is_equal: bool, norm: float, out: F64
) -> None:
    """Compute the debiased error of each problem or replicate from sums in bins.

    Chance adds ``E|N(g, t**2)| - g`` to a gap g, with the variance ``t**2 = q (1 - q) / n`` of the
    hit rate q of n rows: the mean size of a normal variable around it, less the gap.

    Parameters
    ----------
    gap, weight, hits : (B, R) float64 arrays
        Sums of w (y - s), w and w y in each bin, for R problems or replicates side by side.
    square : (B, R) or (0, 0) float64 array
        Sums of w**2; without any, every row counts 1.
    total : (R,) float64 array
        Weight of the rows.
    is_equal : bool
        Bins count 1 / B instead of their share, and are empty if that is not more than `EMPTY`.
    norm : float
        1 or 2.
    out : (R,) float64 array
        Overwritten.
    """
    min_share = EMPTY if is_equal else 0.0
    n_bins = gap.shape[0]
    for r in range(out.size):
        value = 0.0
        for b in range(n_bins):
            w = weight[b, r]
            if not w > min_share * total[r]:
                continue
            g = abs(gap[b, r]) / w
            q = min(hits[b, r] / w, 1.0)
            count = w
            if square.size > 0:  # as many rows of one weight would be as noisy
                # Divided twice: the square of a small weight may be nothing.
                count = w / (square[b, r] / w) if square[b, r] > 0.0 else 1.0
            if norm == 1.0:
                noise = math.sqrt(2.0 * max(q * (1.0 - q), 0.0) / count)
                part = g
                if g < FAR * noise:
                    z = g / noise
                    part -= noise / math.sqrt(math.pi) * math.exp(-z * z) - g * math.erfc(z)
            elif count >= MIN_ROWS_OF_VARIANCE:
                part = g * g - max(q * (1.0 - q), 0.0) / (count - 1.0)
            else:
                part = 0.0
            value += part / n_bins if is_equal else part * (w / total[r])
        out[r] = value if norm == 1.0 else math.sqrt(max(value, 0.0))
