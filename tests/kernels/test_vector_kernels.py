"""Bands of pairs of class vectors and sums over them, against numpy
or loops over pairs."""

from math import inf

import numpy as np
import pytest

from fastece.kernels import NO_WEIGHTS, vectors
from fastece.kernels.arithmetic import BLOCK, LOWEST_EXPONENT

# More than a piece, and no multiple of 4 or 8.
COLUMNS = vectors.PIECE + 5
CLASSES = pytest.mark.parametrize("n_classes", [1, 3, 5, 10])


def close(expected):
    """Within rounding of sums of positive and negative parts of about 1."""
    return pytest.approx(expected, rel=1e-12, abs=1e-13)


def class_vectors(rng, n, n_classes):
    """Class vectors (n, K), the same column by column, and weights; some rows are equal."""
    prob = rng.dirichlet(np.full(n_classes, 0.5), n)
    prob[1:4] = prob[0]
    return prob, np.ascontiguousarray(prob.T), rng.random(n) + 0.1


@CLASSES
def test_distances_and_products_fill_a_band(n_classes):
    rng = np.random.default_rng(2)
    x, columns, constant = class_vectors(rng, COLUMNS, n_classes)
    rows = np.ascontiguousarray(x[-3:])
    distances = ((rows[:, None] - x) ** 2).sum(axis=2)
    products = rows @ x.T
    cases = (
        (NO_WEIGHTS, True, distances), (NO_WEIGHTS, False, products),
        (constant, False, constant + products),
    )  # fmt: skip
    for constants, is_distance, expected in cases:
        band = np.full((3, COLUMNS), np.nan)
        vectors.fill_pairs(rows, columns, constants, is_distance, band)
        assert band == close(expected)
        if is_distance:
            assert (band[[0, 1, 2], [-3, -2, -1]] == 0).all()


def kernel_values(prob, scale, is_gaussian, rows, columns):
    """The values of a band for these rows and columns, pair by pair."""
    band = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if column >= row:
                continue
            d = np.linalg.norm(prob[row] - prob[column])
            power = d**2 if is_gaussian else d
            band[i, j] = 2 * np.exp(scale * power) if d > 0 else 2.0
    return band


@pytest.mark.parametrize("is_gaussian", [False, True])
@pytest.mark.parametrize("scale", [-3.0, -1e4, -np.inf])
def test_kernel_values_are_of_each_pair_once(scale, is_gaussian):
    prob, columns, _ = class_vectors(np.random.default_rng(3), COLUMNS, 3)
    for first in (0, 2, COLUMNS - 3):
        rows = np.ascontiguousarray(prob[first : first + 3])
        width = first + 3
        expected = kernel_values(prob, scale, is_gaussian, range(first, width), range(width))
        band = np.full((3, width), np.nan)
        vectors.fill_kernel(rows, columns, scale, is_gaussian, first, band)
        assert band == close(expected)


@pytest.mark.parametrize("n", [1, 7, 8, 29])
def test_the_largest_value_is_returned_from_any_place(n):
    x = -1 - np.random.default_rng(6).random(n)
    kernel = vectors.largest
    for i in range(n):
        y = x.copy()
        y[i] = 3.0
        y[i - 1] = -np.inf if n > 1 else 3.0
        assert kernel(y) == 3.0
    assert kernel(np.full(n, -np.inf)) == kernel(x[:0]) == -np.inf
    assert kernel(x) == max(x.tolist())


def test_exponentials_of_a_line_are_relative_to_its_largest_value():
    rng = np.random.default_rng(7)
    x = 1e4 + 300 * rng.normal(size=(2, BLOCK + 5))  # their exponentials are beyond every float
    x[0, 2] = x[1, BLOCK + 1] = -np.inf
    v = rng.random(BLOCK + 5)
    v[5] = 0.0
    below = x - x.max(axis=1, keepdims=True)
    expected = np.where(below >= LOWEST_EXPONENT, np.exp(below), 0.0) * v
    assert (expected[0] == 0).sum() > 2
    band = x.copy()
    vectors.exponentiate(band, v)
    assert band == pytest.approx(expected, rel=1e-13, abs=1e-300)
    assert band[0, 2] == band[1, BLOCK + 1] == band[0, 5] == 0.0
    plain = x.copy()
    vectors.exponentiate(plain, np.empty(0))  # no weights
    assert plain * v == pytest.approx(expected, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize(
    "levels",
    [
        (0.0, 0.0, 0.0),
        (0.0, -100.0, -1e4),  # pieces that add nothing
        (0.0, 30.0, -10.0),  # a piece that raises the largest
        (-1e4, 0.0, 1e4),  # so that nothing is left of what came before
        (0.0, -25.0, -45.0),
        (-np.inf, 0.0, 1.0),
    ],
)
def test_sums_of_exponentials_over_pieces_of_any_size(levels):
    rng = np.random.default_rng(8)
    n = 2 * vectors.PIECE + 1
    x = rng.normal(size=(2, n))
    constant = rng.normal(size=(3, n)) + np.repeat(levels, vectors.PIECE)[:n]
    inverse = np.array([3.0, 1, 40])
    x[0, 3] = x[1, -1] = -np.inf  # a pair of a row with itself; the last piece has no other
    terms = constant[:, None] + inverse[:, None, None] * x
    top = terms.max(axis=2)
    expected = top + np.log(np.exp(terms - top[:, :, None]).sum(axis=2))
    out = np.empty((3, 2))
    vectors.log_sums(x, constant, inverse, out)
    assert out == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_sums_of_pairs_equal_sums_over_all_pairs():
    rng = np.random.default_rng(4)
    for n in (1, 2, 30):
        s = np.sort(rng.random(n).round(1))
        gap = rng.normal(size=n)
        v = rng.random(n)
        c = rng.integers(0, 3, (2, n, 4))
        near = np.exp(-np.abs(s[:, None] - s) / 0.4)
        decay = np.exp(-np.append(np.diff(s), inf) / 0.4)
        loss = 1 - decay**2
        for weight in (NO_WEIGHTS, v):
            out = np.full((2, 4), np.nan)
            total = np.full((2, 4), -1.0)
            vectors.pair_sums(c.astype(np.uint8), gap, weight, decay, loss, out, total)
            r = c * gap[:, None]
            assert out == pytest.approx(np.einsum("gir,ij,gjr->gr", r, near, r), abs=1e-12)
            assert (out >= 0).all()
            expected = np.einsum("gir,i->gr", c, v) if weight.size else -np.ones((2, 4))
            assert total == pytest.approx(expected)


def test_decay_and_loss_over_a_step_equal_the_exponential():
    steps = -np.array([0.0, 1e-300, 1e-17, 1e-9, vectors.NEAR, 1.01 * vectors.NEAR, 0.3, 40.0, inf])
    values = np.array([vectors.decay_over(step) for step in steps])
    expected = np.stack([np.exp(steps), -np.expm1(2 * steps)], axis=1)
    assert values == pytest.approx(expected, rel=1e-15)


def test_errors_over_pairs_are_roots_of_sums_over_all_pairs():
    rng = np.random.default_rng(5)
    for s in (rng.random(30).round(1), rng.random(30) / 20, np.array([0.3])):
        n = s.size
        y = rng.integers(0, 2, n).astype(np.uint8)
        v = rng.random(n)
        near = np.exp(-np.abs(s[:, None] - s) / 0.4)
        score = np.empty(n)
        hit = np.empty(n, np.uint8)
        for weight in (NO_WEIGHTS, v):
            w = weight if weight.size else np.ones(n)
            gap = w * (y - s)
            expected = np.sqrt(gap @ near @ gap) / w.sum()
            out = np.full(2, np.nan)
            vectors.pair_errors(s, y, weight, 0.4, score, hit, out[:1])
            assert out[0] == pytest.approx(expected, rel=1e-13)
            vectors.pair_errors(np.column_stack([1 - s, s]), y, weight, 0.4, score, hit, out)
            assert out == pytest.approx(np.full(2, expected), rel=1e-13)


def test_errors_over_pairs_have_the_bits_of_counts_of_one():
    rng = np.random.default_rng(7)
    for n in (1, 2, 50):
        s = np.sort(rng.random(n).round(2))
        y = rng.integers(0, 2, n).astype(np.uint8)
        out = np.empty(1)
        vectors.pair_errors(s, y, NO_WEIGHTS, 0.3, np.empty(n), np.empty(n, np.uint8), out)
        decay = np.empty(n)
        loss = np.empty(n)
        vectors.pair_terms(s, 0.3, decay, loss)
        c = np.ones((1, n, 1), np.uint8)
        pairs = np.empty((1, 1))
        vectors.pair_sums(c, y - s, NO_WEIGHTS, decay, loss, pairs, np.empty((1, 1)))
        assert out[0] == np.sqrt(pairs[0, 0]) / n


def test_the_extremes_of_cumulated_gaps_equal_a_loop():
    rng = np.random.default_rng(6)
    for n in (1, 2, 30):
        gap = rng.normal(size=n)
        v = rng.random(n)
        c = rng.integers(0, 3, (2, n, 4))
        is_last = (np.append(rng.random(n - 1), 1) > 0.4).astype(np.uint8)
        expected = np.zeros((2, 2, 4))
        for g, r in np.ndindex(2, 4):
            level = 0.0
            for i in range(n):
                level += c[g, i, r] * gap[i]
                if is_last[i]:
                    low, high = expected[:, g, r]
                    expected[:, g, r] = min(low, level), max(high, level)
        for weight in (NO_WEIGHTS, v):
            low, high, total = (np.full((2, 4), -1.0) for _ in range(3))
            vectors.cumulated_extremes(c.astype(np.uint8), gap, weight, is_last, low, high, total)
            assert np.stack([low, high]) == pytest.approx(expected, abs=1e-12)
            expected_total = np.einsum("gir,i->gr", c, v) if weight.size else -np.ones((2, 4))
            assert total == pytest.approx(expected_total)
