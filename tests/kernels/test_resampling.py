"""Random words and the draws made from them, against plain integers and exact laws."""

from bisect import bisect_right
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fastece.kernels import resampling
from fastece.resampling.draws import LabelDraws, LeaveOutDraws, Units, poisson_law
from helpers.chance import class_probabilities

R = resampling.REPLICATES
ROW_WORDS = resampling.ROW_WORDS
COUNT = resampling.COUNT
SETTLE = resampling.SETTLE
TOP_UP = resampling.TOP_UP
SETTLE_HIT = resampling.SETTLE_HIT
DRAW = resampling.DRAW
HIT = resampling.HIT
CLASS = resampling.CLASS
U64 = np.uint64
# Published: https://prng.di.unimi.it/splitmix64.c, seed 1234567.
SPLITMIX64 = [
    6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
    16408922859458223821,
]  # fmt: skip

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mixed(x):
    """The finalizer of splitmix64."""
    x = (x ^ x >> 30) * FACTORS[0] % WORD
    x = (x ^ x >> 27) * FACTORS[1] % WORD
    return x ^ x >> 31


def start_of(key, number, use):
    return mixed((mixed((mixed((key + GOLDEN) % WORD) + number) % WORD) + int(use)) % WORD)


def word_of(start, i):
    return mixed((start + (i + 1) * GOLDEN) % WORD)


def bits_of(start, i):
    """16 random bits, number `i`."""
    return word_of(start, i // 4) >> 16 * (i % 4) & 0xFFFF


def unit_of(word):
    return (word >> 11) / 2**53


def one_below(word, n):
    """Lemire's method with as many multiplications as it takes."""
    while True:
        product = (word >> 32) * n
        if product % 2**32 >= 2**32 % n:
            return product >> 32
        word = mixed((word + GOLDEN) % WORD)


def counts_of(key, block, rows, law, tail):
    """Poisson counts (rows, 32)."""
    start = start_of(key, block, COUNT)
    again = start_of(key, block, SETTLE)
    law = law.tolist()
    tail = tail.tolist()

    def count(i):
        k = bisect_right(law, bits_of(start, i))
        return k if k < len(law) else bisect_right(tail, unit_of(word_of(again, i)))

    return [[count(i * R + r) for r in range(R)] for i in rows]


def topped_up(start, size, c, bound):
    """Counts (n, 32) with `size` in each column: added or taken back one by one."""
    c = [list(row) for row in c]
    for r in range(R):
        counter = word_of(start, r)
        q = 0
        total = sum(row[r] for row in c)
        for q in range(size - total):
            c[one_below(word_of(counter, q), len(c))][r] += 1
        q = 0
        while total > size:
            word = word_of(counter, q)
            i = one_below(word, len(c))
            if word % (bound + 1) < c[i][r]:
                c[i][r] -= 1
                total -= 1
            q += 1
    return c


def drawn(key, first, blocks, n, size, rate):
    """Multiplicities (blocks, n, 32)."""
    law, tail = poisson_law(rate)
    made = []
    for block in range(first, first + blocks):
        c = counts_of(key, block, range(n), law, tail)
        bound = 255 if max(max(row) for row in c) > 15 else 15
        made.append(topped_up(start_of(key, block, TOP_UP), size, c, bound))
    return made


def keys(count, seed=0):
    """Random keys, and the extreme ones."""
    rng = np.random.default_rng(seed)
    return [0, 1, 2**63, WORD - 1, *rng.integers(WORD, size=count, dtype=U64).tolist()]


def test_words_are_the_published_sequence():
    kernel = resampling.random_words
    words = np.empty(5, U64)
    kernel(U64(1234567), 0, words)
    assert words.tolist() == SPLITMIX64
    kernel(U64(1234567), 3, words)
    assert words[:2].tolist() == SPLITMIX64[3:]
    assert [int(resampling.word_at(U64(1234567), i)) for i in range(5)] == SPLITMIX64
    assert [word_of(1234567, i) for i in range(5)] == SPLITMIX64
    uses = [COUNT, SETTLE, TOP_UP, DRAW, HIT, CLASS, SETTLE_HIT]
    assert len(set(uses)) == len(uses)


SIZES = [1, 2, 3, 5, 6, 7, 10, 1000, 2**16, 2**20 - 1, 2**31 - 1, 2**31, 2**31 + 1, 3 * 2**30]
SIZES += [2**32 - 2**16, 2**32 - 3, 2**32 - 2, 2**32 - 1]


@pytest.mark.parametrize("n", SIZES)
def test_each_number_below_n_has_as_many_words(n):
    rng = np.random.default_rng(n)
    excess = 2**32 % n
    for j in {0, 1 % n, n // 2, n - 1, *rng.integers(n, size=20).tolist()}:
        # The high halves of a word that are j go from the first to the last accepted one.
        first = -((-j * 2**32 - excess) // n)
        last = -(-(j + 1) * 2**32 // n) - 1
        assert last - first + 1 == 2**32 // n
        kernel = resampling.below
        assert kernel(U64(first << 32), n) == kernel(U64((last << 32) + 5), n) == j
        if first > 0:  # the one before is of j - 1, or rejected
            word = (first - 1 << 32) + 77
            assert kernel(U64(word), n) == one_below(word, n)


def made_counts(key, block, rows, law, kernel, made=64):
    """Poisson counts (rows, 32) that the kernel makes, `made` rows at a time."""
    levels, tail = law
    c = np.empty((rows, R), np.uint8)
    words = np.empty(made * ROW_WORDS, np.uint64)
    with np.errstate(over="ignore"):
        kernel(U64(key), block, levels, tail, words, c)
    return c.tolist()


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_counts_equal_plain_integers(rate):
    levels, tail = poisson_law(rate)
    for key in keys(1):
        for block, rows in ((0, 150), (7, 70), (2**35, 5)):
            expected = counts_of(key, block, range(rows), levels, tail)
            assert (
                made_counts(key, block, rows, (levels, tail), resampling.poisson_counts) == expected
            )


def test_levels_are_passed_by_bits_that_equal_them():
    _, tail = poisson_law(1.0)
    for key in keys(3):
        bits = np.array([bits_of(start_of(key, 3, COUNT), i) for i in range(R)])
        for drawn_bits in (bits[:6], bits[9:15], bits[-6:]):
            for difference in (0, 1):
                levels = np.sort(drawn_bits + difference).clip(0, 65535).astype(np.uint16)
                expected = counts_of(key, 3, [0], levels, tail)
                assert made_counts(key, 3, 1, (levels, tail), resampling.poisson_counts) == expected
    assert int(resampling.OPEN_WORD) == int.from_bytes(bytes([resampling.OPEN] * 8))


def test_counts_do_not_depend_on_how_many_rows_are_made_at_a_time():
    levels, tail = law = poisson_law(1.0)
    expected = counts_of(9, 3, range(6), levels, tail)
    for made in (1, 4, 64):
        assert made_counts(9, 3, 6, law, resampling.poisson_counts, made=made) == expected


def top_up_with(kernel, start, size, c, words=512):
    c = c.copy()
    total = c.sum(0, dtype=np.int64)
    seen = np.bitwise_or.reduce(c.reshape(-1).view(U64))
    with np.errstate(over="ignore"):
        kernel(U64(start), size, total, U64(seen), np.empty(words, U64), c)
    return c


def given_counts():
    """name -> counts (n, 32): few and many, small and large."""
    rng = np.random.default_rng(6)
    small = rng.integers(7, 10, (5, R))
    large = rng.integers(30, 33, (4, R))
    large[2, 7] = 255
    return {
        "nothing": np.zeros((3, R)),
        "one": np.eye(3, R),
        "small": small,
        "fifteen": np.full((2, R), 15),
        "sixteen in one column": np.where(np.arange(R) == 3, 16, small),
        "large": large,
        "one row": np.full((1, R), 40),
        "Poisson": rng.poisson(1, (30, R)),
    }


@pytest.mark.parametrize("name", given_counts())
def test_totals_are_brought_to_the_size_one_row_at_a_time(name):
    c = given_counts()[name].astype(np.uint8)
    bound = 255 if c.max() > 15 else 15
    middle = int(np.median(c.sum(0)))
    for start, by in ((0, -5), (WORD - 1, 0), (9, 4), (77, -1)):
        near = max(middle + by, 0)
        for size in {near, 0} if c.sum() < 5 * R else {near}:
            expected = topped_up(start, size, c.tolist(), bound)
            assert all(sum(column) == size for column in zip(*expected, strict=True))
            for words in (1, 3, 512):
                assert top_up_with(resampling.top_up, start, size, c, words).tolist() == expected, (
                    size
                )


def made(kernel, key, first, blocks, *, n, size, rate):
    """Multiplicities (blocks, n, 32) with Poisson counts of this rate."""
    levels, tail = poisson_law(rate)
    c = np.empty((blocks, n, R), np.uint8)
    with np.errstate(over="ignore"):
        kernel(U64(key), first, size, levels, tail, c)
    return c


@pytest.mark.parametrize(
    ("n", "size", "rate"),
    [
        (1, 1, 0.0), (1, 1, 1.0), (2, 1, 0.5), (7, 7, 0.2), (7, 7, 1.0), (64, 64, 0.75),
        (65, 65, 1.0), (130, 130, 0.82), (200, 40, 0.1), (40, 30, 1.0), (3, 40, 1.0),
    ],
)  # fmt: skip
def test_multiplicities_equal_plain_integers(n, size, rate):
    for key, first in zip(keys(1), (0, 3, 2**33, 1, 0), strict=True):
        expected = drawn(key, first, 2, n, size, rate)
        c = made(resampling.multiplicities, key, first, 2, n=n, size=size, rate=rate)
        assert c.tolist() == expected


def test_multiplicities_of_a_great_rate_are_taken_back():
    # A rate of 30 makes counts of 16 and more.
    tail = np.cumsum(stats.poisson.pmf(np.arange(100), 30.0))
    tail = tail / tail[-1]
    law = np.zeros(resampling.LEVELS, np.uint16)  # every count is open
    c = np.empty((1, 8, R), np.uint8)
    with np.errstate(over="ignore"):
        resampling.multiplicities(U64(1), 0, 230, law, tail, c)
    assert (c.sum(1) == 230).all()
    counts = counts_of(1, 0, range(8), law, tail)
    assert max(map(max, counts)) > 15
    assert c[0].tolist() == topped_up(start_of(1, 0, TOP_UP), 230, counts, 255)


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 2**31 - 2, 2**31 - 1])
def test_rows_equal_plain_integers(n):
    for key in keys(2):
        for first in (0, 5, 2**40):
            expected = [
                [one_below(word_of(start_of(key, r, DRAW), i), n) for i in range(20)]
                for r in range(first, first + 3)
            ]
            rows = np.full((3, 20), -1, np.int32)
            resampling.drawn_rows(U64(key), first, n, rows)
            assert rows.tolist() == expected


@pytest.mark.parametrize(("n", "groups"), [(1, 1), (5, 5), (40, 7), (100, 64), (70, 70)])
def test_each_group_is_left_out_once(n, groups):
    for first, last in ((0, groups - 1), (groups // 2, groups - 1), (0, groups // 2)):
        expected = [
            [[int(i % groups != min(first + g * R + r, last)) for r in range(R)] for i in range(n)]
            for g in range(3)
        ]
        draws = LeaveOutDraws(Units(n), groups, first, last)
        assert draws.make(0, 3).tolist() == expected
        assert draws.make(1, 2).tolist() == expected[1:]


SCORES = [0.0, 1.0, 0.5, 1e-9, 1 - 2.0**-53, 0.3, 2.0**-16, 1 - 2.0**-16, 2.0**-17, 5e-324, 1e-6]


def hits(key, block, score):
    """Hits and misses (2 n, 32)."""
    start = start_of(key, block, HIT)
    again = start_of(key, block, SETTLE_HIT)

    def hit(i, r):
        level = min(int(score[i] * 65536), 65535)
        bits = bits_of(start, i * R + r)
        if bits != level:
            return int(bits < level)
        return int(unit_of(word_of(again, i * R + r)) < Fraction(score[i]) * 65536 - level)

    hits_of_rows = [[hit(i, r) for r in range(R)] for i in range(len(score))]
    misses_of_rows = [[1 - x for x in row] for row in hits_of_rows]
    return hits_of_rows + misses_of_rows


def test_hits_equal_plain_integers():
    rng = np.random.default_rng(7)
    score = np.array([*SCORES, *rng.random(150), *(rng.integers(0, 65537, 20) / 65536)])
    for key, first in zip(keys(1), (0, 1, 2**33, 7, 0), strict=True):
        expected = [hits(key, block, score.tolist()) for block in (first, first + 1)]
        c = np.full((2, 2 * score.size, R), 9, np.uint8)
        resampling.hits_of(U64(key), first, 0, score, c)
        assert c.tolist() == expected
        assert LabelDraws(key, score).make(first, 2).tolist() == expected
        from_row_70 = LabelDraws(key, score[70:], 70).make(first, 2)
        assert from_row_70[:, : score.size - 70].tolist() == [c[70 : score.size] for c in expected]
    assert LabelDraws(0, score).n == 2 * score.size


@pytest.mark.parametrize("row", [0, 63, 64])
def test_equal_bits_are_settled_by_more_of_them(row):
    # The first 16 bits of these scores equal the bits that a replicate draws.
    outcomes = set()
    for key in keys(0):
        start = start_of(key, 3, HIT)
        again = start_of(key, 3, SETTLE_HIT)
        for r, part in product((0, 2, 31), (0.0, 2.0**-30, 0.3, 0.6, 1 - 2.0**-37)):
            i = row * R + r
            scores = np.full(row + 1, 0.5)
            level = bits_of(start, i)
            scores[row] = (level + part) / 65536
            hit = unit_of(word_of(again, i)) < Fraction(scores[row]) * 65536 - level
            c = np.empty((1, 2 * row + 2, R), np.uint8)
            resampling.hits_of(U64(key), 3, 0, scores, c)
            assert (c[0, row, r], c[0, 2 * row + 1, r]) == (hit, not hit)
            outcomes.add(hit)
    assert outcomes == {True, False}


@pytest.mark.parametrize("n_classes", [2, 3, 1000])
def test_classes_equal_plain_integers(n_classes):
    prob = class_probabilities(n_classes, n=4 if n_classes == 1000 else 6)
    up_to = LabelDraws(0, prob).up_to
    for key, first in ((0, 0), (WORD - 1, 2**33), (12345, 6)):
        expected = [
            [
                [
                    bisect_right(row, unit_of(word_of(start_of(key, block, CLASS), i * R + r)))
                    for r in range(R)
                ]
                for i, row in enumerate(up_to.tolist())
            ]
            for block in (first, first + 1)
        ]
        label = np.full((2, len(prob), R), -1, np.int32)
        resampling.categories(U64(key), first, 0, up_to, label)
        assert label.tolist() == expected
        assert LabelDraws(key, prob).make(first, 2).tolist() == expected
        assert LabelDraws(key, prob[3:], 3).make(first, 2).tolist() == [c[3:] for c in expected]
