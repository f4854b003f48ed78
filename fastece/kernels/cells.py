"""Fixed-point sums of rows in cells of the score.

Sums are integers, so that they are the same bits in any order.

A number is turned into an integer by adding 1.5 * 2**52, whose last bit is worth 1, and taking the
difference of the bits: one addition that vectorises. Two words of a number hold 2**32 times as much
detail as one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import REPLICATES
from fastece.kernels.arithmetic import BLOCK, ROUND
from fastece.kernels.binning import uniform_bins
from fastece.kernels.compiling import jit
from fastece.kernels.reading import read_problem
from fastece.kernels.resampling import MADE, ROW_WORDS, poisson_counts
from fastece.kernels.types import F64, I32, I64, U8, U16

# Units in which numbers become integers: 1 is so many. Weights up to 2**32 in all fit into 63 bits.
WEIGHT_UNIT = 2.0**30
# First and second moments within a coarse cell are in widths of the cell; so the distance of a
# score from the middle is right to 2**-32 / 7200 = 3e-14.
MOMENT_UNIT = 2.0**31
SQUARE_UNIT = 2.0**24
# A replicate may count a row, or a group, some ten times.
REPLICATE_UNIT = 2.0**26
# Squared distances of class vectors are up to 2.
DISTANCE_UNIT = 2.0**29
# The last bit of a first word in the second word of a number.
DETAIL = 2.0**32
ROUND_BITS = np.int64(0x4338000000000000)
HIT = np.uint64(1)
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
def as_words(x: F64, scale: float, high: F64, low: F64) -> None:
    """Turn numbers times `scale` into integers, in `high` and `low`.

    The integers are in the bits of `high`; unless `low` is empty, it gets the remainders of their
    rounding, as integers too.
    """
    high_bits = high.view(np.int64)
    low_bits = low.view(np.int64)
    if low.size == 0:
        for i in range(x.size):
            high[i] = x[i] * scale + ROUND
        for i in range(x.size):
            high_bits[i] -= ROUND_BITS
        return
    for i in range(x.size):
        value = x[i] * scale
        shifted = value + ROUND
        high[i] = shifted
        low[i] = (value - (shifted - ROUND)) * DETAIL + ROUND
    for i in range(x.size):
        high_bits[i] -= ROUND_BITS
        low_bits[i] -= ROUND_BITS


@jit
def place_rows(
    s: F64, y: U8, n_cells: int, n_coarse: int, fine: I32, coarse: I32, first: F64, second: F64
) -> None:
    """Find the positions of rows in fine and coarse cells, and compute their terms.

    The distance from the middle of the coarse cell is in widths of that cell, as a multiple of
    2**-31; it and its square are integers in the bits of `first` and `second`, above the bits of
    `ROUND`. The first fine cell is for 0 alone, and the last for 1, since many scores are equal to
    one of them.

    Parameters
    ----------
    s, y : (n,) float64 and uint8 arrays
        Scores and hits.
    fine, coarse : (n,) int32 arrays
        Overwritten with positions: 2 words a fine cell, 8 a coarse one, and 1 for a hit.
    """
    uniform_bins(s, 0.0, 1.0, n_cells, n_cells > 0, fine)  # a variable, as elsewhere
    ratio = np.float64(n_coarse) / np.float64(n_cells)
    width = 1.0 / np.float64(n_coarse)
    scale = MOMENT_UNIT * np.float64(n_coarse)
    for i in range(s.size):
        x = s[i]
        k = np.int32((np.float64(fine[i]) + 0.5) * ratio)
        cell = fine[i] + np.int32(1) - np.int32(x == 0.0) + np.int32(x == 1.0)
        place = (x - (np.float64(k) + 0.5) * width) * scale + ROUND
        r = (place - ROUND) / MOMENT_UNIT
        fine[i] = np.int32(2) * cell + np.int32(y[i])
        coarse[i] = np.int32(WORDS) * k + np.int32(y[i])
        first[i] = place
        second[i] = r * r * MOMENT_UNIT + ROUND


@jit
def add_rows(s: F64, y: U8, weight: F64, fine: I64, coarse: I64) -> Any:
    """Add rows up in the cells of their scores, fine and coarse.

    Returned is the second word of the sum of all w**2 - w.

    Parameters
    ----------
    s, y : (n,) float64 and uint8 arrays
        Scores and hits.
    weight : (n,) float64 array
        Up to 2**19; empty: every row counts 1.
    fine : (N + 2, 2) int64 array
        Weights of misses and of hits.
    coarse : (N', 8) int64 array
        The words of each coarse cell; N' divides N.
    """
    n_cells = fine.shape[0] - 2
    n_coarse = coarse.shape[0]
    size = min(s.size, BLOCK)
    fine_block = np.empty(size, np.int32)
    coarse_block = np.empty(size, np.int32)
    first_block = np.empty(size)
    second_block = np.empty(size)
    work = np.empty(size)
    weight_words = np.empty((2, size))
    first_words = np.empty((2, size))
    nothing = np.empty(0)
    flat = fine.reshape(fine.size)
    words = coarse.reshape(coarse.size)
    unit = np.int64(WEIGHT_UNIT)
    square_low = np.int64(0)
    for start in range(0, s.size, BLOCK):
        m = min(BLOCK, s.size - start)
        score = s[start : start + m]
        hit = y[start : start + m]
        w = weight[start : start + m]
        fine_place = fine_block[:m]
        coarse_place = coarse_block[:m]
        x = work[:m]
        r = first_block[:m]
        second = second_block.view(np.int64)
        place_rows(
            score, hit, n_cells, n_coarse,
            fine=fine_place, coarse=coarse_place, first=r, second=second_block[:m],
        )  # fmt: skip
        if w.size == 0:
            first = first_block.view(np.int64)
            for i in range(m):
                b = np.uint64(coarse_place[i])
                flat[np.uint64(fine_place[i])] += unit
                words[b] += first[i] - ROUND_BITS
                words[(b | HIT) + HIT] += second[i] - ROUND_BITS
            continue
        for i in range(m):
            r[i] = (r[i] - ROUND) / MOMENT_UNIT
            x[i] = r[i] * r[i] * w[i]
        as_words(x, MOMENT_UNIT, second_block[:m], nothing)
        for i in range(m):
            x[i] = w[i] * r[i]
        as_words(w, WEIGHT_UNIT, weight_words[0, :m], weight_words[1, :m])
        as_words(x, MOMENT_UNIT, first_words[0, :m], first_words[1, :m])
        high_weight = weight_words[0].view(np.int64)
        low_weight = weight_words[1].view(np.int64)
        first = first_words[0].view(np.int64)
        low_first = first_words[1].view(np.int64)
        for i in range(m):
            k = np.int64(coarse_place[i]) // WORDS
            kind = np.int64(hit[i])
            flat[np.uint64(fine_place[i])] += high_weight[i]
            coarse[k, FIRST + kind] += first[i]
            coarse[k, SECOND] += second[i]
            coarse[k, LOW_WEIGHT + kind] += low_weight[i]
            coarse[k, LOW_FIRST + kind] += low_first[i]
            square = (w[i] * w[i] - w[i]) * SQUARE_UNIT
            coarse[k, SQUARE] += np.int64(square)
            square_low += np.int64((square - np.float64(np.int64(square))) * DETAIL)
    return square_low


@jit
def add_replicates(
    key: Any, s: F64, y: U8, weight: F64, ids: I64, law: U16, tail: F64, n_cells: int, sums: I64
) -> None:
    """Add rows up in the coarse cells of all replicates, as often as each draws them.

    Parameters
    ----------
    s, y, weight
        As in `add_rows`.
    ids : (n,) int64 array
        The draws of each row depend on its number here.
    n_cells : int
        Number of fine cells.
    sums : (blocks, 2 N', 32) int64 array
        Weights of misses and of hits of each coarse cell.
    """
    size = min(s.size, MADE)
    n_coarse = sums.shape[1] // 2
    cell = np.empty(size, np.int32)
    coarse = np.empty(size, np.int32)
    r = np.empty(size)
    c = np.empty((size, REPLICATES), np.uint8)
    high = np.empty(size)
    nothing = np.empty(0)
    words = np.empty(MADE * ROW_WORDS, np.uint64)
    for start in range(0, s.size, MADE):
        m = min(MADE, s.size - start)
        rows = slice(start, start + m)
        place_rows(
            s[rows], y[rows], n_cells, n_coarse,
            fine=cell[:m], coarse=coarse[:m], first=r[:m], second=high[:m],
        )  # fmt: skip
        as_words(weight[rows], REPLICATE_UNIT, high[: weight[rows].size], nothing)
        weights = high.view(np.int64)
        for b in range(sums.shape[0]):
            poisson_counts(key, b, ids[rows], law, tail, words=words, c=c[:m])
            for i in range(m):
                w = weights[i] if weight.size else np.int64(REPLICATE_UNIT)
                line = sums[b, coarse[i] // WORDS * 2 + y[start + i]]
                count = c[i]
                for j in range(REPLICATES):
                    line[j] += np.int64(count[j]) * w


@jit
def add_batch(
    prob: NDArray[Any], label: NDArray[Any], weight: F64, distance: F64, fine: I64, coarse: I64,
    totals: I64, more: I64, draws: Any,
) -> None:  # fmt: skip
    """Add a batch to all sums of a state, in one call.

    Python answers signals between its own steps and never within a kernel, so no interrupt leaves
    a part of a batch.

    Parameters
    ----------
    prob, label : arrays
        Scores (n,) and hits; or class vectors (n, P), whose columns are problems, and classes.
    weight : (n,) float64 array
        Empty: every row counts 1.
    distance : (n,) float64 array
        Squared distances of class vectors from one-hot classes, or empty.
    fine, coarse : (P, ...) int64 arrays
        As of `add_rows`, of each problem.
    totals, more : int64 arrays
        The totals, and the numbers that the batch adds to them, without distances and the second
        words of squares.
    draws : tuple or None
        Key, ids, law and tail of replicates, as in `add_replicates`, and their sums (P, ...).
    """
    low = np.int64(0)
    n_cells = fine.shape[1] - 2
    score = np.empty(label.size if prob.ndim > 1 else 0)
    hit = np.empty(score.size, np.uint8)
    for k in range(fine.shape[0]):
        s, y = read_problem(prob, label, k, score, hit)
        low = add_rows(s, y, weight, fine[k], coarse[k])
        if draws is not None:
            key, ids, law, tail, sums = draws
            add_replicates(key, s, y, weight, ids, law, tail=tail, n_cells=n_cells, sums=sums[k])
    for i in range(totals.size):
        totals[i] += more[i]
    totals[SQUARE_LOW] += low
    for i in range(distance.size):
        x = distance[i] * (weight[i] if weight.size else 1.0) * DISTANCE_UNIT
        totals[DISTANCE] += np.int64(x)
        totals[DISTANCE + 1] += np.int64((x - np.float64(np.int64(x))) * DETAIL)
