"""Draws against exact laws; the kernels themselves are tested in tests/kernels."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from fastece.kernels import REPLICATES, resampling
from fastece.resampling.draws import (
    LabelDraws,
    RowDraws,
    RowLists,
    Units,
    make_row_draws,
    new_key,
    poisson_law,
)
from helpers.chance import (
    ALPHA,
    chi_square_p,
    class_probabilities,
    multinomial_law,
    poisson_probabilities,
)
from helpers.kernel_forms import PLAIN

compiled_only = pytest.mark.skipif(PLAIN, reason="too slow as plain Python")
R = resampling.REPLICATES
U64 = np.uint64
MANY_BLOCKS = 20 if PLAIN else 1500


RATES = [0.0, 1e-3, 0.05, 0.25, 0.5, 0.9, 0.98, 1 - 2 / sqrt(1e6), 1.0]


@pytest.mark.parametrize("rate", RATES)
def test_levels_and_tail_are_the_poisson_law(rate):
    law, tail = poisson_law(rate)
    assert (law.dtype, law.size) == (np.uint16, resampling.LEVELS)
    assert tail[-1] == 1
    assert (np.diff(tail) >= 0).all()
    decided = np.diff(law.astype(float), prepend=0) / 65536
    decided = np.append(decided, np.zeros(tail.size - decided.size))
    left = (1 - law[-1] / 65536) * np.diff(tail, prepend=0)
    assert decided + left == pytest.approx(poisson_probabilities(rate), abs=1e-15)
    # the levels seldom leave a count open, and no count is above 39
    assert 1 - law[-1] / 65536 < 7e-4
    assert 1 - sum(poisson_probabilities(rate)) < 1e-15


def test_every_replicate_has_size_rows():
    for n in range(1, 60, 7) if PLAIN else range(1, 501):
        for size in {-(-n // 16), -(-n // 3), n // 2 or 1, max(n - 1, 1), n}:
            c = RowDraws(n, Units(n), size).make(n, 1 if PLAIN else 2)
            assert c.shape == (1 if PLAIN else 2, n, REPLICATES)
            assert (c.sum(1, dtype=np.int64) == size).all(), (n, size)


def test_blocks_do_not_depend_on_other_blocks():
    blocks_together = RowDraws(5, Units(30), 30).make(0, 6)
    for first, blocks in ((0, 1), (1, 2), (3, 3), (5, 1)):
        part = RowDraws(5, Units(30), 30).make(first, blocks)
        assert np.array_equal(part, blocks_together[first : first + blocks])
    assert not np.array_equal(blocks_together[0], blocks_together[1])
    assert not np.array_equal(RowDraws(6, Units(30), 30).make(0, 6), blocks_together)
    assert RowDraws(5, Units(30), 30).of_problem(blocks_together, 3) is blocks_together


@pytest.mark.parametrize(
    ("n", "size"),
    [*((n, n) for n in range(1, 7)), (2, 1), (4, 1), (4, 3), (5, 2), (6, 1), (6, 3), (6, 5)],
)
def test_multiplicities_follow_the_multinomial_law(n, size):
    # Chi-square against the enumerated law: false-alarm rate 1e-4 for each of 13.
    law = multinomial_law(n, size)
    c = RowDraws(1000 * n + size, Units(n), size).make(0, MANY_BLOCKS)
    columns = c.swapaxes(1, 2).reshape(-1, n)
    draws_seen, times = np.unique(columns, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, draws_seen.tolist()), times, strict=True))
    assert set(seen) <= set(law)
    expected = len(columns) * np.array(list(law.values()))
    assert chi_square_p([seen.get(draw, 0) for draw in law], expected) > ALPHA


@compiled_only
@pytest.mark.parametrize(("n", "size"), [(50, 50), (300, 300), (300, 100), (1000, 63)])
def test_sums_over_rows_are_binomial(n, size):
    # Rows of the first half, every third, one: chi-square, false-alarm rate 1e-4 for each of 16.
    c = RowDraws(n + size, Units(n), size).make(0, 400)
    i = np.arange(n)
    for chosen in (i < n // 2, i % 3 == 0, i == n - 1, i < n - 1):
        total = c[:, chosen].sum(1, dtype=np.int64).ravel()
        p = np.count_nonzero(chosen) / n
        expected = total.size * stats.binom.pmf(np.arange(size + 1), size, p)
        assert chi_square_p(np.bincount(total, minlength=size + 1), expected) > ALPHA


def test_lists_do_not_depend_on_other_lists():
    draws = RowLists(8, 1000, 12)
    lists = draws.make(0, 50)
    assert lists.shape == (50, 12)
    for first, count in ((0, 1), (1, 7), (31, 2), (49, 1)):
        assert np.array_equal(draws.make(first, count), lists[first : first + count])
    # a longer list begins with the shorter one
    assert np.array_equal(RowLists(8, 1000, 20).make(0, 50)[:, :12], lists)


@pytest.mark.parametrize("n", [3, 7, 100])
def test_lists_draw_rows_and_pairs_equally_often(n):
    # Chi-square of rows and of pairs of successive rows: false-alarm rate 1e-4 for each of 6.
    rows = RowLists(n, n, 20).make(0, 100 if PLAIN else 20_000)
    assert chi_square_p(np.bincount(rows.ravel(), minlength=n), np.full(n, rows.size / n)) > ALPHA
    pairs = np.bincount((rows[:, ::2] * n + rows[:, 1::2]).ravel(), minlength=n * n)
    assert chi_square_p(pairs, np.full(n * n, rows.size / 2 / n**2)) > ALPHA


def test_small_draws_are_lists():
    assert make_row_draws(1, Units(100), 100) == RowDraws(1, Units(100), 100)
    assert make_row_draws(1, Units(100), 7) == RowDraws(1, Units(100), 7)
    assert make_row_draws(1, Units(96), 6) == RowLists(1, 96, 6)
    assert make_row_draws(1, Units(100), 101) == RowLists(1, 100, 101)  # more than there are
    assert make_row_draws(1, Units(1), 1) == RowDraws(1, Units(1), 1)


SCORES = [0.0, 1.0, 0.5, 1e-9, 1 - 2.0**-53, 0.3, 2.0**-16, 1 - 2.0**-16, 2.0**-17, 5e-324, 0.5001]


def test_scores_of_0_and_1_decide_every_outcome():
    # One draw in 65536 has the bits of a score.
    score = np.tile([0.0, 1.0, 1.0, 0.0], 2 if PLAIN else 100)
    for first in range(0, 4 if PLAIN else 400, 4):
        hit, miss = np.split(LabelDraws(3, score).make(first, 4), 2, axis=1)
        assert (hit == (score == 1)[:, None]).all()
        assert (hit + miss == 1).all()


@pytest.mark.slow
@compiled_only
def test_outcomes_are_as_frequent_as_the_scores():
    # Binomial, false-alarm rate 1e-4 for each of 30; and for pairs of neighbours.
    score = np.concatenate([SCORES, np.linspace(0.01, 0.99, 19)])
    hit = LabelDraws(5, score).make(0, 6000)[:, : score.size]
    count = hit.shape[0] * R
    for i, p in enumerate(score):
        assert stats.binomtest(int(hit[:, i].sum()), count, p).pvalue > ALPHA, p
    z = hit[:, -19:] - score[-19:, None]
    z /= np.sqrt(score[-19:] * (1 - score[-19:]))[:, None]
    limit = stats.norm.isf(ALPHA / 2)
    for pairs in (z[:, 1:] * z[:, :-1], z[..., 1:] * z[..., :-1], z[1:] * z[:-1]):
        assert abs(pairs.mean()) < limit / sqrt(pairs.size)


def up_to_of(prob):
    return LabelDraws(0, prob).up_to


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_classes", [2, 3, 1000])
def test_classes_of_probability_zero_are_never_drawn(n_classes, dtype):
    prob = class_probabilities(n_classes).astype(dtype)
    up_to = up_to_of(prob)
    assert up_to.shape == (6, n_classes - 1)
    assert up_to.dtype == np.float64
    widths = np.diff(up_to, prepend=0.0, append=1.0)
    assert ((widths == 0) == (prob == 0)).all()
    label = LabelDraws(1, prob).make(0, 2 if PLAIN else 500)
    for i, row in enumerate(prob):
        assert row[label[:, i]].all()
    assert (label[:, 3] == n_classes - 1).all()


@compiled_only
@pytest.mark.parametrize("n_classes", [2, 3, 50])
def test_classes_are_as_frequent_as_their_probabilities(n_classes):
    # Chi-square, false-alarm rate 1e-4 for each of 18.
    prob = class_probabilities(n_classes)
    label = LabelDraws(2, prob).make(0, 3000)
    for i, row in enumerate(prob):
        possible = row > 0
        seen = np.bincount(label[:, i].ravel(), minlength=n_classes)
        assert chi_square_p(seen[possible], seen.sum() * row[possible]) > ALPHA


def test_class_probabilities_are_scaled_to_sum_1():
    prob = np.array([[0.2, 0.3, 0.4999], [0.5, 0.5, 0.0005]])
    assert up_to_of(prob) == pytest.approx(np.cumsum(prob / prob.sum(1, keepdims=True), 1)[:, :2])


def test_key_is_the_first_word_of_the_generator():
    for seed in (0, 7, np.int64(3), 2**200):
        key = new_key(seed)
        assert type(key) is int
        assert key == np.random.default_rng(seed).integers(2**64, dtype=U64)
    generator = np.random.default_rng(0)
    assert (new_key(generator), new_key(generator)) == tuple(
        np.random.default_rng(0).integers(2**64, size=2, dtype=U64)
    )
    assert new_key(None) != new_key(None)
    for bad in (1.5, "seed", True, np.True_, [1], np.random.RandomState(0)):
        with pytest.raises(TypeError, match="rng"):
            new_key(bad)
    with pytest.raises(ValueError, match="rng"):
        new_key(-1)
