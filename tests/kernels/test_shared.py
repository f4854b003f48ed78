"""Sums that several kernels share, compiled and as plain Python."""

from fractions import Fraction

import numpy as np
import pytest

from fastece.kernels import REPLICATES, shared
from fastece.kernels.moments import MOST_BINS
from helpers.kernel_forms import forms


def test_sums_are_set_to_zero():
    for kernel in forms(shared.zero):
        sums = np.full(5, np.nan)
        kernel(sums)
        assert sums.tolist() == [0.0] * 5


def test_lanes_are_added_in_the_order_of_numpy():
    rng = np.random.default_rng(0)
    for size in range(MOST_BINS + 1):
        lines = rng.random((5, size)) * 10 ** rng.uniform(-12, 3, (5, size))
        for x in (*lines, np.zeros(size), lines[0] * (rng.random(size) < 0.5)):
            for kernel in forms(shared.lane_sum):
                assert kernel(x) == np.add.reduce(x) == np.add.reduce(x[None], -1)[0]


@pytest.mark.parametrize("n", [129, 1000])
def test_a_long_row_is_added_to_rounding(n):
    row = np.random.default_rng(n).random(n)
    for kernel in forms(shared.lane_sum):
        assert kernel(row) == pytest.approx(row.sum(), rel=1e-15)


def test_a_sum_and_what_its_rounding_took_are_exact():
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(50, 2)) * 10 ** rng.uniform(-20, 20, (50, 2))
    for a, b in [*pairs.tolist(), (1.0, 1e-17), (1e-17, 1.0), (0.1, 0.2), (0.0, 0.0), (1.0, -1.0)]:
        for kernel in forms(shared.two_sum):
            total, lost = kernel(a, b)
            assert total == a + b
            assert Fraction(total) + Fraction(lost) == Fraction(a) + Fraction(b)


@pytest.mark.parametrize("rows", [0, 1, 5, 256])
def test_columns_of_counts_are_added_eight_at_a_time(rows):
    n, first = 300, 7
    c = np.random.default_rng(rows).integers(0, 256, (n, REPLICATES)).astype(np.uint8)
    c[first : first + rows, 3] = 255  # 256 rows of the largest count do not overflow
    words = c.reshape(c.size).view(np.uint64)
    part = c[first : first + rows]
    for kernel in forms(shared.column_sums):
        sums = np.full(8, 99, np.uint64)
        seen = kernel(words, 4 * first, 4 * (first + rows), sums)
        even, odd = np.split(sums.view(np.uint16), 2)
        assert even.tolist() == part[:, ::2].sum(0).tolist()
        assert odd.tolist() == part[:, 1::2].sum(0).tolist()
        assert seen == np.bitwise_or.reduce(words[4 * first : 4 * (first + rows)], initial=0)
