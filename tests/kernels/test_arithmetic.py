"""Sums, and probabilities of logits, against numpy's."""

import numpy as np
import pytest

from fastece.kernels import REPLICATES, arithmetic


def test_lanes_are_added_in_the_order_of_numpy():
    rng = np.random.default_rng(0)
    for size in range(129):
        lines = rng.random((5, size)) * 10 ** rng.uniform(-12, 3, (5, size))
        with_zeros = np.where(rng.random(size) < 0.5, lines[0], 0.0)
        for x in (*lines, np.zeros(size), with_zeros):
            assert arithmetic.lane_sum(x) == np.add.reduce(x) == np.add.reduce(x[None], -1)[0]


@pytest.mark.parametrize("n", [129, 1000])
def test_a_long_row_is_added_to_rounding(n):
    row = np.random.default_rng(n).random(n)
    assert arithmetic.lane_sum(row) == pytest.approx(row.sum(), rel=1e-15)


@pytest.mark.parametrize("rows", [0, 1, 5, 256])
def test_columns_of_counts_are_added_eight_at_a_time(rows):
    n = 300
    first = 7
    c = np.random.default_rng(rows).integers(0, 256, (n, REPLICATES)).astype(np.uint8)
    c[first : first + rows, 3] = 255  # 256 rows of the largest count do not overflow
    words = c.reshape(c.size).view(np.uint64)
    part = c[first : first + rows]
    sums = np.full(8, 99, np.uint64)
    seen = arithmetic.column_sums(words, 4 * first, 4 * (first + rows), sums)
    even, odd = np.split(sums.view(np.uint16), 2)
    assert even.tolist() == part[:, ::2].sum(0).tolist()
    assert odd.tolist() == part[:, 1::2].sum(0).tolist()
    assert seen == np.bitwise_or.reduce(words[4 * first : 4 * (first + rows)], initial=0)


def test_exponential_is_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(10)
    x = np.concatenate([-rng.exponential(s, 600) for s in (1e-9, 1e-3, 1, 30, 200)])
    x = np.concatenate([x, [0.0, -0.0, -708.0, -708.1, -745.0, -1e300, -np.inf]])
    expected = np.where(x >= arithmetic.LOWEST_EXPONENT, np.exp(x), 0.0)
    e = x.copy()
    arithmetic.exponential(e, np.empty_like(x))
    assert (abs(e - expected) <= 2 * np.spacing(expected)).all()
    assert (e[-4:] == 0).all()


@pytest.mark.parametrize("n_classes", [1, 2, 10, 200, arithmetic.BLOCK + 3])
def test_softmax_is_right_to_rounding(n_classes):
    rng = np.random.default_rng(11)
    n = 2 * max(1, arithmetic.BLOCK // n_classes) + 3  # two whole blocks and a part of one
    z = 30 * rng.standard_normal((n, n_classes))
    z[rng.random(z.shape) < 0.1] = -np.inf
    z[:, 0] = np.where(np.isinf(z).all(axis=1), 3.0, z[:, 0])
    z[:2] = 1e30  # equal, and their exponentials beyond every float
    top = z.max(axis=1).astype(np.float64)
    below = z.astype(np.float64) - top[:, None]
    p = np.exp(below)
    p /= p.sum(axis=1, keepdims=True)
    got = np.empty(z.shape)
    arithmetic.softmax(z, top, got)
    assert got == pytest.approx(p, rel=1e-13, abs=1e-300)
    assert ((got == 0) == (below < arithmetic.LOWEST_EXPONENT)).all()
    e = np.empty(z.size)
    arithmetic.exponentials(z, top, 1.0, e, np.empty(z.size))
    assert e == pytest.approx(np.exp(below).ravel(), rel=1e-14, abs=1e-300)
    largest = np.empty((n, 1))
    arithmetic.softmax(z, top, largest)
    assert largest[:, 0] == pytest.approx(p.max(axis=1), rel=1e-13)


def test_a_binary_logit_is_read_as_its_sigmoid():
    z = np.array([-np.inf, -1e4, -750.0, -40.0, -1.0, -0.0, 0.0, 1.0, 40.0, 1e4, 1.7e308, np.inf])
    expected = [0, 0, 0, np.exp(-40), 1 / (1 + np.e), 0.5, 0.5, np.e / (1 + np.e), 1, 1, 1, 1]
    # Repeated, these are more than a block.
    z = np.tile(z, 100)
    expected = np.tile(expected, 100)
    p = np.empty(z.size)
    arithmetic.sigmoid(z, p)
    assert p == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("n_classes", [2, 10, 200, arithmetic.BLOCK + 3])
def test_sums_for_a_temperature_are_the_loss_and_its_derivatives(n_classes):
    rng = np.random.default_rng(12)
    n = 2 * max(1, arithmetic.BLOCK // n_classes) + 3
    inverse = 0.7
    z = 5 * rng.standard_normal((n, n_classes))
    label = rng.integers(0, n_classes, n)
    weight = rng.random(n)
    expected = np.zeros(3)
    for row, y, w in zip(z.astype(np.float64), label, weight, strict=True):
        p = np.exp(inverse * (row - row.max()))
        p /= p.sum()
        d = inverse * (row - p @ row)
        expected += w * np.array([-np.log(p[y]), -d[y], p @ d**2])
    sums = np.array([1.0, 2.0, 3.0])  # it adds
    arithmetic.temperature_sums(z, z.max(axis=1).astype(np.float64), label, weight, inverse, sums)
    assert sums - [1, 2, 3] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 10, 200, arithmetic.BLOCK + 3])
def test_sums_for_vector_scaling_are_the_loss_and_its_derivatives(n_classes):
    rng = np.random.default_rng(13)
    n = 2 * max(1, arithmetic.BLOCK // n_classes) + 3
    z = 5 * rng.standard_normal((n, n_classes))
    mean, slope, intercept, slope_change, intercept_change = rng.standard_normal((5, n_classes))
    label = rng.integers(0, n_classes, n)
    weight = rng.random(n)
    loss = 0.0
    sums = np.zeros((5, n_classes))
    product = np.zeros((2, n_classes))
    for row, y, w in zip(z, label, weight, strict=True):
        x = row - mean
        line = slope * x + intercept
        p = np.exp(line - line.max())
        p /= p.sum()
        loss -= w * np.log(p[y])
        gap = w * (p - (np.arange(n_classes) == y))
        curvature = w * p * (1 - p)
        sums += [gap * x, gap, curvature * x**2, curvature * x, curvature]
        change = slope_change * x + intercept_change
        change_of_gap = w * p * (change - p @ change)
        product += [change_of_gap * x, change_of_gap]
    lines = (z, mean, slope, intercept)
    got = np.ones((5, n_classes))  # it adds
    assert arithmetic.vector_sums(*lines, label, weight, got) == pytest.approx(loss, rel=1e-12)
    assert got - 1 == pytest.approx(sums, rel=1e-11, abs=1e-12)
    got = np.ones((2, n_classes))
    arithmetic.vector_product(*lines, slope_change, intercept_change, weight, got)
    assert got - 1 == pytest.approx(product, rel=1e-11, abs=1e-12)


def test_the_largest_of_any_number_of_numbers():
    rng = np.random.default_rng(14)
    for n in (1, 7, 8, 9, 16, 23):
        for place in range(n):
            x = -rng.random(n)
            x[place] = 1.0
            assert arithmetic.lane_max(x) == 1.0
