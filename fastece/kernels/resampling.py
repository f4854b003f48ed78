"""Multiplicities of rows in draws, made from random words of counters.

Nothing here has a state. A random word is a hash of a counter (SplitMix64: Steele, Lea and Flood
2014, "Fast splittable pseudorandom number generators", with Stafford's mix 13), which vectorises,
and the counter starts at a place given by the key, the number of the draw and the `use`: the same
bits in any order, on any machine. Multiplicities are made for 32 replicates at once, so that one
row's are neighbours in memory.
"""

from typing import Any

import numpy as np

from fastece.kernels import REPLICATES
from fastece.kernels.arithmetic import EIGHT, FOUR, ONE, THREE, TWO, column_sums
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I32, I64, U8, U16, U64

# Random words of a row, 16 bits for each replicate.
ROW_WORDS = REPLICATES // 4
# Comparisons that turn 16 random bits into a count; they leave 6e-4 of all counts open.
LEVELS = 6
# A bit that no decided count has: ask again.
OPEN = LEVELS + 2
OPEN_WORD = np.uint64(0x0808080808080808)
# Rows whose words are made at once, 4 KB.
MADE = 64
# A count of 16 or more, and masks of the bits of a smaller and of any count.
LARGE_WORD = np.uint64(0xF0F0F0F0F0F0F0F0)
FOUR_BITS = np.uint64(15)
EIGHT_BITS = np.uint64(255)
# So many bytes add up in 16 bits.
FITS = 256
LOW_HALF = np.uint64(0xFFFFFFFF)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
ELEVEN = np.uint64(11)
B27 = np.uint64(27)
B30 = np.uint64(30)
B31 = np.uint64(31)
B32 = np.uint64(32)
# Uses of random words; each use has counters of its own.
COUNT, SETTLE, TOP_UP, DRAW, HIT, CLASS, SETTLE_HIT = (np.uint64(use) for use in range(1, 8))


# --- words ----------------------------------------------------------------------------------


@jit
def mix(x: Any) -> Any:
    """Hash a 64-bit word, one to one."""
    x = (x ^ (x >> B30)) * FIRST_FACTOR
    x = (x ^ (x >> B27)) * SECOND_FACTOR
    return x ^ (x >> B31)


@jit
def counter_of(key: Any, number: int, use: Any) -> Any:
    """Return the start of the counter of one block or replicate, for one use."""
    return mix(mix(mix(key + GOLDEN) + np.uint64(number)) + use)


@jit
def word_at(start: Any, i: Any) -> Any:
    """Return the random word number `i` from `start`."""
    return mix(start + (np.uint64(i) + ONE) * GOLDEN)


@jit
def random_words(start: Any, first: int, words: U64) -> None:
    """Fill `words` by SplitMix64 with the seed `start`, from number `first` on."""
    origin = start + (np.uint64(first) + ONE) * GOLDEN
    for i in range(words.size):
        words[i] = mix(origin + np.uint64(i) * GOLDEN)


@jit
def unit(word: Any) -> float:
    """Turn a random word into a float64 in [0, 1), of 53 bits."""
    return np.float64(word >> ELEVEN) * 2.0**-53


@jit
def below(word: Any, n: int) -> int:
    """Turn a random word into one of 0 to n - 1 < 2**32, all equally likely.

    The method is Lemire's (2019).
    """
    count = np.uint64(n)
    product = (word >> B32) * count
    if (product & LOW_HALF) < count:  # seldom: then perhaps one of those that are too many
        excess = (LOW_HALF - count + ONE) % count
        while (product & LOW_HALF) < excess:
            word = mix(word + GOLDEN)
            product = (word >> B32) * count
    return int(product >> B32)


# --- multiplicities -------------------------------------------------------------------------


@jit
def settle(start: Any, first: int, tail: F64, c: U8) -> None:
    """Replace open counts by draws from the tail of the law.

    The tail is the law of the counts that the levels leave open; `first` is the number of the first
    of all counts.
    """
    words = c.view(np.uint64)
    for a in range(np.uint64(0), np.uint64(words.size), FOUR):
        seen = words[a] | words[a + ONE] | words[a + TWO] | words[a + THREE]
        if seen & OPEN_WORD:  # one row in fifty
            for q in range(a, a + FOUR):
                if words[q] & OPEN_WORD:
                    for i in range(np.int64(q * EIGHT), np.int64(q * EIGHT) + 8):
                        if c[i] == OPEN:
                            u = unit(word_at(start, first + i))
                            k = 0
                            while u >= tail[k]:
                                k += 1
                            c[i] = np.uint8(k)


@jit
def poisson_counts(key: Any, block: int, law: U16, tail: F64, words: U64, c: U8) -> None:
    """Draw independent Poisson counts c (n, 32) of rows in one block of replicates.

    They depend on key, block and the numbers of the rows alone. `law` and `tail` are made by
    `fastece.resampling.draws.poisson_law`; `words` is work space, and has `ROW_WORDS` for each of
    the rows that are made at a time.
    """
    start = counter_of(key, block, COUNT)
    again = counter_of(key, block, SETTLE)
    flat = c.reshape(c.size)
    bits = words.view(np.uint16)
    rows = words.size // ROW_WORDS
    levels = law[0], law[1], law[2], law[3], law[4], law[5]
    for first in range(0, c.shape[0], rows):
        count = min(rows, c.shape[0] - first)
        part = flat[first * REPLICATES : (first + count) * REPLICATES]
        random_words(start, first * ROW_WORDS, words[: count * ROW_WORDS])
        for i in range(part.size):  # the levels up to the bits; `OPEN` from the last level on
            w = bits[i]
            k = np.uint16(w >= levels[0]) + np.uint16(w >= levels[1]) + np.uint16(w >= levels[2])
            k += np.uint16(w >= levels[3]) + np.uint16(w >= levels[4])
            part[i] = np.uint8(k + np.uint16(3) * np.uint16(w >= levels[5]))
        settle(again, first * REPLICATES, tail, part)


@jit
def top_up(start: Any, size: int, total: I64, seen: Any, words: U64, c: U8) -> None:
    """Bring the total of each column of counts to `size`, at random.

    Rows drawn at random are added, or some of the drawn ones, chosen at random, are taken back.
    Given their total, independent Poisson counts are multinomial, and both steps keep them so.
    """
    n = c.shape[0]
    # A row is found by rejection: its count over a bound of all counts is its chance to be taken.
    bound = EIGHT_BITS if seen & LARGE_WORD else FOUR_BITS
    for r in range(REPLICATES):
        counter = word_at(start, r)
        missing = size - total[r]
        for a in range(0, missing, words.size):
            part = words[: min(words.size, missing - a)]
            random_words(counter, a, part)
            for word in part:
                c[below(word, n), r] += np.uint8(1)
        excess = -missing
        q = np.int64(0)
        while excess > 0:
            word = word_at(counter, q)
            q += 1
            i = below(word, n)
            if (word & bound) < np.uint64(c[i, r]):
                c[i, r] -= np.uint8(1)
                excess -= 1


@jit
def multiplicities(key: Any, first: int, size: int, law: U16, tail: F64, c: U8) -> None:
    """Draw `size` of n rows with replacement: exact multinomial counts.

    `size` is at most n. c (G, n, 32) is overwritten with how often each row is; its first
    block has the number `first`.

    They are Poisson counts of a rate that makes their total fall short in 98 % of the replicates,
    topped up.
    """
    total = np.empty(REPLICATES, np.int64)
    words = np.empty(MADE * ROW_WORDS, np.uint64)
    sums = np.empty(8, np.uint64)
    halves = sums.view(np.uint16)
    half = REPLICATES // 2
    for g in range(c.shape[0]):
        poisson_counts(key, first + g, law, tail, words=words, c=c[g])
        counts = c[g].reshape(c[g].size).view(np.uint64)
        seen = np.uint64(0)
        for r in range(REPLICATES):
            total[r] = 0
        for a in range(0, counts.size, 4 * FITS):
            seen |= column_sums(counts, a, min(counts.size, a + 4 * FITS), sums)
            for r in range(half):
                total[2 * r] += np.int64(halves[r])
                total[2 * r + 1] += np.int64(halves[r + half])
        top_up(counter_of(key, first + g, TOP_UP), size, total, seen, words, c[g])


@jit
def drawn_rows(key: Any, first: int, n: int, rows: I32) -> None:
    """Draw the `rows` (R, size) of each replicate, from n < 2**31 rows.

    Rows are drawn with replacement, one after the other. The first replicate has the number
    `first`.
    """
    words = np.empty(rows.shape[1], np.uint64)
    for r in range(rows.shape[0]):
        random_words(counter_of(key, first + r, DRAW), 0 * r, words)
        row = rows[r]
        for i in range(row.size):
            row[i] = below(words[i], n)


# --- labels ---------------------------------------------------------------------------------


@jit
def hits_of(key: Any, first: int, row: int, score: F64, c: U8) -> None:
    """Draw hits with the probabilities `score`, in counts c (G, 2 n, 32).

    For a hit of row i line i is 1, for a miss line n + i; all else is 0. The first block has the
    number `first`, and the first row the number `row`.

    16 random bits decide, unless they equal the first 16 bits of the score.
    """
    n = score.size
    words = np.empty(MADE * ROW_WORDS, np.uint64)
    bits = words.view(np.uint16)
    for g in range(c.shape[0]):
        start = counter_of(key, first + g, HIT)
        again = counter_of(key, first + g, SETTLE_HIT)
        for a in range(0, n, MADE):
            random_words(start, (row + a) * ROW_WORDS, words)
            for i in range(a, min(n, a + MADE)):
                scaled = score[i] * 65536.0
                level = np.uint16(min(scaled, 65535.0))
                word = bits[(i - a) * REPLICATES : (i - a + 1) * REPLICATES]
                hit = c[g, i]
                miss = c[g, n + i]
                is_open = np.uint16(0)
                for r in range(REPLICATES):
                    less = np.uint8(word[r] < level)
                    hit[r] = less
                    miss[r] = less ^ np.uint8(1)
                    is_open |= np.uint16(word[r] == level)
                if is_open:
                    for r in range(REPLICATES):
                        if word[r] == level:
                            u = unit(word_at(again, (row + i) * REPLICATES + r))
                            hit[r] = np.uint8(u < scaled - level)
                            miss[r] = hit[r] ^ np.uint8(1)


@jit
def categories(key: Any, first: int, row: int, up_to: F64, label: I32) -> None:
    """Draw classes (G, n, 32) with given probabilities.

    `up_to` (n, K - 1) has the cumulative probabilities of the classes, without the last. The first
    block has the number `first`, and the first row the number `row`.
    """
    u = np.empty(REPLICATES)
    words = np.empty(REPLICATES, np.uint64)
    for g in range(label.shape[0]):
        start = counter_of(key, first + g, CLASS)
        for i in range(up_to.shape[0]):
            random_words(start, (row + i) * REPLICATES, words)
            line = label[g, i]
            for r in range(REPLICATES):
                u[r] = unit(words[r])
                line[r] = 0
            for k in range(up_to.shape[1]):
                edge = up_to[i, k]
                for r in range(REPLICATES):
                    line[r] += np.int32(u[r] >= edge)
