"""Fixed-point sums of rows in cells of the score: integers, so that they are the same bits in any
order.

A number is turned into an integer by adding 1.5 * 2**52, whose last bit is worth 1, and taking the
difference of the bits: one addition that vectorises. Two words of a number hold 2**32 times as much
detail as one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import REPLICATES
from fastece.kernels._jit import jit
from fastece.kernels.binning import ROUND, uniform_bins
from fastece.kernels.reading import read_top_label
from fastece.kernels.resampling import (
    COUNT,
    ROW_WORDS,
    SETTLE,
    counter_of,
    decided_counts,
    random_words,
    settle,
)
from fastece.typing import F64, I32, I64, U8, U16

BLOCK, MADE = 1024, 64
# Entries of class vectors that are looked at twice, in the first-level cache.
ENTRIES = 2048
# How often 1 is counted in sums of weights, in those of first and second moments within a coarse
# cell, in widths of it, and in those of squares of weights, and how often the last bit of a number
# in its second word. So weights up to 2**32 in all fit into 63 bits, and a distance is right to
# 2**-32 / 7200 = 3e-14. Replicates may count a row, or a group, some ten times; squared distances
# of class vectors are up to 2.
WEIGHT_UNIT, MOMENT_UNIT, SQUARE_UNIT = 2.0**30, 2.0**31, 2.0**24
REPLICATE_UNIT, DISTANCE_UNIT = 2.0**26, 2.0**29
DETAIL = 2.0**32
# The words of a coarse cell, a cache line: sums of w r of misses and of hits, and of w r**2, with
# the distance r of the score from the middle of the cell, in widths of it; the sum of w**2 - w; and
# the second words of sums of w and of w r, of misses and of hits. The last five are 0 where every
# row counts 1.
FIRST, SECOND, SQUARE, LOW_WEIGHT, LOW_FIRST, WORDS = 0, 2, 3, 4, 6, 8


@jit
def as_integers(x: F64, scale: float, high: F64) -> None:
    """Numbers times `scale` as integers, in the bits of `high`."""
    zero = np.int64(0x4338000000000000)  # the bits of ROUND
    bits = high.view(np.int64)
    for i in range(x.size):
        high[i] = x[i] * scale + ROUND
    for i in range(x.size):
        bits[i] -= zero


@jit
def as_two_words(x: F64, scale: float, high: F64, low: F64) -> None:
    """`as_integers`, and in the bits of `low` what their rounding took."""
    zero = np.int64(0x4338000000000000)
    high_bits, low_bits = high.view(np.int64), low.view(np.int64)
    for i in range(x.size):
        value = x[i] * scale
        whole = value + ROUND
        high[i] = whole
        low[i] = (value - (whole - ROUND)) * DETAIL + ROUND
    for i in range(x.size):
        high_bits[i] -= zero
        low_bits[i] -= zero


@jit
def place_rows(s: F64, n_cells: int, n_coarse: int, cell: I32, coarse: I32, distance: F64) -> None:
    """The fine and the coarse cell of each score, and how far it is from the middle of the coarse
    one, in widths of it, as a multiple of 2**-31. The first fine cell is that of 0 alone, and the
    last that of 1, where scores are heaped."""
    uniform_bins(s, 0.0, 1.0, n_cells, True, cell)
    ratio, width = np.float64(n_coarse) / np.float64(n_cells), 1.0 / np.float64(n_coarse)
    scale = MOMENT_UNIT * np.float64(n_coarse)
    for i in range(s.size):
        k = np.int32((np.float64(cell[i]) + 0.5) * ratio)
        coarse[i] = k
        cell[i] += np.int32(1) - np.int32(s[i] == 0.0) + np.int32(s[i] == 1.0)
        x = (s[i] - (np.float64(k) + 0.5) * width) * scale
        distance[i] = ((x + ROUND) - ROUND) / MOMENT_UNIT


@jit
def add_rows(s: F64, y: U8, weight: F64, fine: I64, coarse: I64) -> Any:
    """Add rows up in the cells of their scores; what is returned is the second word of the sum of
    all w**2 - w.

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
    n_cells, n_coarse = fine.shape[0] - 2, coarse.shape[0]
    size = min(s.size, BLOCK)
    cell_block, coarse_block = np.empty(size, np.int32), np.empty(size, np.int32)
    blocks, work = np.empty((7, size)), np.empty(size)
    flat, words = fine.reshape(fine.size), coarse.reshape(coarse.size)
    unit, square_low = np.int64(WEIGHT_UNIT), np.int64(0)
    for start in range(0, s.size, BLOCK):
        m = min(BLOCK, s.size - start)
        score, hit, w = s[start : start + m], y[start : start + m], weight[start : start + m]
        cell, big, r, x = cell_block[:m], coarse_block[:m], blocks[0, :m], work[:m]
        place_rows(score, n_cells, n_coarse, cell, big, r)
        for i in range(m):
            x[i] = r[i] * r[i] * w[i] if w.size else r[i] * r[i]
        as_integers(x, MOMENT_UNIT, blocks[1, :m])
        second = blocks[1].view(np.int64)
        if w.size == 0:
            as_integers(r, MOMENT_UNIT, blocks[2, :m])
            first = blocks[2].view(np.int64)
            for i in range(m):
                is_hit, b = np.uint64(hit[i]), np.uint64(WORDS) * np.uint64(big[i])
                flat[np.uint64(2) * np.uint64(cell[i]) + is_hit] += unit
                words[b + is_hit] += first[i]
                words[b + np.uint64(SECOND)] += second[i]
            continue
        for i in range(m):
            x[i] = w[i] * r[i]
        as_two_words(w, WEIGHT_UNIT, blocks[2, :m], blocks[3, :m])
        as_two_words(x, MOMENT_UNIT, blocks[4, :m], blocks[5, :m])
        high, low = blocks[2].view(np.int64), blocks[3].view(np.int64)
        first, rest = blocks[4].view(np.int64), blocks[5].view(np.int64)
        for i in range(m):
            k, kind = big[i], np.int64(hit[i])
            fine[cell[i], kind] += high[i]
            coarse[k, FIRST + kind] += first[i]
            coarse[k, SECOND] += second[i]
            coarse[k, LOW_WEIGHT + kind] += low[i]
            coarse[k, LOW_FIRST + kind] += rest[i]
            square = (w[i] * w[i] - w[i]) * SQUARE_UNIT
            coarse[k, SQUARE] += np.int64(square)
            square_low += np.int64((square - np.float64(np.int64(square))) * DETAIL)
    return square_low


@jit
def poisson_weights(key: Any, block: int, ids: I64, law: U16, tail: F64, c: U8) -> None:
    """Independent Poisson counts c (n, 32) of rows in one block of replicates: each depends on key,
    block and the id of its row alone, so rows of one id have the same.

    `law` and `tail` are those of `fastece.resampling.draws.poisson_law`.
    """
    start, again = counter_of(key, block, COUNT), counter_of(key, block, SETTLE)
    words = np.empty(c.shape[0] * ROW_WORDS, np.uint64)
    for i in range(c.shape[0]):
        random_words(start, ids[i] * ROW_WORDS, words[i * ROW_WORDS : (i + 1) * ROW_WORDS])
    decided_counts(words.view(np.uint16), law, c.reshape(c.size))
    for i in range(c.shape[0]):
        settle(again, ids[i] * REPLICATES, tail, c[i])


@jit
def add_replicates(
    key: Any, s: F64, y: U8, weight: F64, ids: I64, law: U16, tail: F64, n_cells: int, sums: I64
) -> None:
    """Add rows up in the coarse cells of all replicates, in each as often as it draws them.

    Parameters
    ----------
    s, y, weight
        As of `add_rows`.
    ids : (n,) int64 array
        What the draws of each row depend on.
    n_cells : int
        Number of fine cells.
    sums : (blocks, 2 N', 32) int64 array
        Weights of misses and of hits of each coarse cell.
    """
    size, n_coarse = min(s.size, MADE), sums.shape[1] // 2
    cell, coarse, r = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
    c, high = np.empty((size, REPLICATES), np.uint8), np.empty(size)
    for start in range(0, s.size, MADE):
        m = min(MADE, s.size - start)
        part = slice(start, start + m)
        place_rows(s[part], n_cells, n_coarse, cell[:m], coarse[:m], r[:m])
        as_integers(weight[part], REPLICATE_UNIT, high[: weight[part].size])
        weights = high.view(np.int64)
        for b in range(sums.shape[0]):
            poisson_weights(key, b, ids[part], law, tail, c[:m])
            for i in range(m):
                w = weights[i] if weight.size else np.int64(REPLICATE_UNIT)
                line, count = sums[b, 2 * coarse[i] + y[start + i]], c[i]
                for j in range(REPLICATES):
                    line[j] += np.int64(count[j]) * w


@jit
def square_distance(row: NDArray[Any], label: int) -> float:
    """``sum_k (p_k - [k = y])**2`` of a class vector, in four sums, since a single one waits for
    every addition."""
    whole = row.size // 4 * 4
    a = b = c = d = 0.0
    for k in range(0, whole, 4):
        p, q, r, s = row[k], row[k + 1], row[k + 2], row[k + 3]
        a += np.float64(p) * np.float64(p)
        b += np.float64(q) * np.float64(q)
        c += np.float64(r) * np.float64(r)
        d += np.float64(s) * np.float64(s)
    for k in range(whole, row.size):
        a += np.float64(row[k]) * np.float64(row[k])
    return ((a + b) + (c + d)) - 2.0 * np.float64(row[label]) + 1.0


@jit
def add_distances(prob: NDArray[Any], label: NDArray[Any], weight: F64, words: I64) -> None:
    """Add up ``w sum_k (p_k - [k = y])**2`` of class vectors (n, K), float64 or float32, and of
    classes, in two words; empty weights are 1."""
    for i in range(label.size):
        x = square_distance(prob[i], label[i]) * DISTANCE_UNIT
        x = x * weight[i] if weight.size else x
        high = np.int64(x)
        words[0] += high
        words[1] += np.int64((x - np.float64(high)) * DETAIL)


@jit
def read_vectors(
    prob: NDArray[Any], label: NDArray[Any], tolerance: float, score: F64, hit: U8, words: I64
) -> bool:
    """`reading.read_top_label` of probabilities, and `add_distances` of rows that count 1 in the
    same pass; what the words are is of no use if something is not good."""
    good = True
    rows = max(1, ENTRIES // prob.shape[1])
    no_weights = np.empty(0)
    for start in range(0, label.size, rows):
        part = slice(start, start + rows)
        p, y = prob[part], label[part]
        good &= read_top_label(p, y, False, tolerance, score[part], hit[part])
        if good:
            add_distances(p, y, no_weights, words)
    return good
