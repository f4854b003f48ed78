"""Fixed-point sums of rows in cells of the score.

Sums are integers, so that they are the same bits in any order.

A number is turned into an integer by adding 1.5 * 2**52, whose last bit is worth 1, and taking the
difference of the bits: one addition that vectorises. Two words of a number hold 2**32 times as much
detail as one.
"""

import numpy as np

from fastece.kernels.arithmetic import BLOCK, ONE, ROUND
from fastece.kernels.binning import uniform_bins
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I32, I64, U8

# Units in which numbers become integers: 1 is so many. Weights up to 2**32 in all fit into 63 bits.
WEIGHT_UNIT = 2.0**30
# First and second moments within a coarse cell are in widths of the cell; so the distance of a
# score from the middle is right to 2**-32 / 7200 = 3e-14.
MOMENT_UNIT = 2.0**31
SQUARE_UNIT = 2.0**24
# Squared distances of class vectors are up to 2.
DISTANCE_UNIT = 2.0**29
# The last bit of a first word in the second word of a number.
DETAIL = 2.0**32
ROUND_BITS = np.int64(0x4338000000000000)
# Words of a coarse cell, which is a cache line; r is the distance of a score from the middle of the
# cell, in widths of the cell. The last five words are 0 where every row counts 1.
# Sums of w r, of misses and then of hits.
FIRST = 0
# The sum of w r**2.
SECOND = 2
# The sum of w**2 - w.
SQUARE = 3
# Second words of the sums of w, of misses and then of hits.
LOW_WEIGHT = 4
# Second words of the sums of w r, of misses and then of hits.
LOW_FIRST = 6
# Number of words.
WORDS = 8
# Totals of a state: rows of positive weight; rows in all; how often the row of the number 0 was
# there; rows with groups; the sum of squared distances of class vectors, in two words; the second
# word of the sum of w**2 - w; states that were merged; and their fingerprints. The last three are
# not saved: the number of the next row, and the sums of weights and of their squares, in units.
TOTALS = (
    "n", "rows", "first_rows", "grouped", "distance", "distance_low", "square_low", "parts",
    "fingerprint", "next_row", "weight", "square",
)  # fmt: skip
DISTANCE, SQUARE_LOW, SAVED = map(TOTALS.index, ("distance", "square_low", "next_row"))


@jit
def add_batch(
    score: F64, hit: U8, weight: F64, group: I32, distance: F64, fine: I64, coarse: I64,
    groups: I64, totals: I64, more: I64,
) -> None:  # fmt: skip
    """Add a batch to all sums of a state, in one call.

    Python answers signals between its own steps and never within a kernel, so no interrupt leaves
    a part of a batch.

    The distance of a score from the middle of its coarse cell is in widths of that cell, as a
    multiple of 2**-31; it and its square are integers in the bits of floats, above the bits of
    `ROUND`. The first fine cell is for 0 alone, and the last for 1, since many scores are equal to
    one of them.

    Parameters
    ----------
    score, hit : (P, n) float64 and uint8 arrays
        Scores and outcomes of each problem.
    weight : (n,) float64 array
        Up to 2**19; empty: every row counts 1.
    group : (n,) int32 array
        The group of each row, from 0 to G - 1; empty where G is 0.
    distance : (n,) float64 array
        Squared distances of class vectors from one-hot classes, or empty.
    fine : (P, N + 2, 2) int64 array
        Weights of misses and of hits.
    coarse : (P, N', 8) int64 array
        The words of each coarse cell; N' divides N.
    groups : (P, G, 2 N') int64 array
        Weights of the misses and of the hits of each coarse cell, by group.
    totals, more : int64 arrays
        The totals, and the numbers that the batch adds to them, without distances and the second
        words of squares.
    """
    n = score.shape[1]
    n_cells = fine.shape[1] - 2
    n_coarse = coarse.shape[1]
    ratio = np.float64(n_coarse) / np.float64(n_cells)
    width = 1.0 / np.float64(n_coarse)
    scale = MOMENT_UNIT * np.float64(n_coarse)
    unit = np.int64(WEIGHT_UNIT)
    size = min(n, BLOCK)
    cell = np.empty(size, np.int32)
    word = np.empty(size, np.int32)
    first = np.empty(size)
    second = np.empty(size)
    low_first = np.empty(size)
    high_weight = np.empty(size)
    low_weight = np.empty(size)
    first_bits = first.view(np.int64)
    second_bits = second.view(np.int64)
    low_first_bits = low_first.view(np.int64)
    weight_bits = high_weight.view(np.int64)
    low_weight_bits = low_weight.view(np.int64)
    for i in range(size):
        weight_bits[i] = unit + ROUND_BITS
    square_low = np.int64(0)
    for k in range(score.shape[0]):
        fine_sums = fine[k].reshape(2 * (n_cells + 2))
        sums = coarse[k].reshape(WORDS * n_coarse)
        sums_of_groups = groups[k]
        square_low = np.int64(0)
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            s = score[k, start : start + m]
            y = hit[k, start : start + m]
            w = weight[start : start + m]
            g = group[start : start + m]
            uniform_bins(s, 0.0, 1.0, n_cells, n_cells > 0, cell)  # a variable, as elsewhere
            for i in range(m):
                x = s[i]
                c = np.int32((np.float64(cell[i]) + 0.5) * ratio)
                own_cell = cell[i] + np.int32(1) - np.int32(x == 0.0) + np.int32(x == 1.0)
                place = (x - (np.float64(c) + 0.5) * width) * scale + ROUND
                r = (place - ROUND) / MOMENT_UNIT
                cell[i] = np.int32(2) * own_cell + np.int32(y[i])
                word[i] = np.int32(WORDS) * c + np.int32(y[i])
                first[i] = place
                second[i] = r * r * MOMENT_UNIT + ROUND
            if w.size == 0:
                for i in range(m):
                    b = np.uint64(word[i])
                    fine_sums[np.uint64(cell[i])] += unit
                    sums[b] += first_bits[i] - ROUND_BITS
                    sums[(b | ONE) + ONE] += second_bits[i] - ROUND_BITS
            for i in range(w.size):
                r = (first[i] - ROUND) / MOMENT_UNIT
                second[i] = r * r * w[i] * MOMENT_UNIT + ROUND
                x = w[i] * WEIGHT_UNIT
                rounded = x + ROUND
                high_weight[i] = rounded
                low_weight[i] = (x - (rounded - ROUND)) * DETAIL + ROUND
                x = w[i] * r * MOMENT_UNIT
                rounded = x + ROUND
                first[i] = rounded
                low_first[i] = (x - (rounded - ROUND)) * DETAIL + ROUND
            for i in range(w.size):
                coarse_cell = np.int64(word[i]) // WORDS
                words = coarse[k, coarse_cell]
                kind = np.int64(y[i])
                fine_sums[np.uint64(cell[i])] += weight_bits[i] - ROUND_BITS
                words[FIRST + kind] += first_bits[i] - ROUND_BITS
                words[SECOND] += second_bits[i] - ROUND_BITS
                words[LOW_WEIGHT + kind] += low_weight_bits[i] - ROUND_BITS
                words[LOW_FIRST + kind] += low_first_bits[i] - ROUND_BITS
                square = (w[i] * w[i] - w[i]) * SQUARE_UNIT
                words[SQUARE] += np.int64(square)
                square_low += np.int64((square - np.float64(np.int64(square))) * DETAIL)
            for i in range(g.size):
                line = np.int64(word[i]) // WORDS * 2 + np.int64(y[i])
                sums_of_groups[g[i], line] += weight_bits[i] - ROUND_BITS
    for i in range(totals.size):
        totals[i] += more[i]
    totals[SQUARE_LOW] += square_low
    for i in range(distance.size):
        x = distance[i] * (weight[i] if weight.size else 1.0) * DISTANCE_UNIT
        totals[DISTANCE] += np.int64(x)
        totals[DISTANCE + 1] += np.int64((x - np.float64(np.int64(x))) * DETAIL)
