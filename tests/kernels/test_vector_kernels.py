"""Bands of pairs of class vectors and sums over them, compiled and as plain Python, against numpy
or loops over pairs."""

from itertools import pairwise

import numpy as np
import pytest

from fastece.kernels import REPLICATES, vectors
from fastece.kernels.arithmetic import BLOCK, LOWEST_EXPONENT
from helpers.kernel_forms import forms

# No multiple of 4 or 8, and more than a piece.
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
def test_products_and_squares_of_two_vectors_with_columns_are_added(n_classes):
    rng = np.random.default_rng(1)
    x, columns = rng.normal(size=(2, n_classes)), rng.normal(size=(n_classes, 30))
    before = rng.random((2, 13))
    products, squares = before.copy(), before.copy()
    for i in range(2):
        for j in range(13):
            for k in range(n_classes):
                products[i, j] += x[i, k] * columns[k, 6 + j]
                squares[i, j] += (x[i, k] - columns[k, 6 + j]) ** 2
    for kernel, expected in ((vectors.add_products, products), (vectors.add_squares, squares)):
        for form in forms(kernel):
            out, more = before.copy()
            form(*x, columns, 6, out, more)
            assert np.stack([out, more]) == close(expected)


@CLASSES
def test_distances_and_products_fill_a_band(n_classes):
    rng = np.random.default_rng(2)
    x, columns, _ = class_vectors(rng, COLUMNS + 7, n_classes)
    start, rows = 7, np.ascontiguousarray(x[6:9])  # a row beside its own column
    seen = x[start:]
    for kernel in forms(vectors.fill_squares):
        band = np.full((3, COLUMNS), np.nan)
        kernel(rows, columns, start, band)
        assert band == close(((rows[:, None] - seen) ** 2).sum(axis=2))
        assert band[1, 0] == band[2, 1] == 0
    before = rng.normal(size=(3, COLUMNS))
    for kernel in forms(vectors.multiply_products):
        band = before.copy()
        kernel(rows, columns, start, band)
        assert band == close(before * (rows @ seen.T))


def kernel_values(prob, v, scale, is_gaussian, rows, columns):
    """What a band has of some rows and columns, pair by pair."""
    band = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if column > row:
                continue
            d = np.linalg.norm(prob[row] - prob[column])
            value = np.exp(scale * (d**2 if is_gaussian else d)) if d > 0 else 1.0
            band[i, j] = v[row] * v[column] * value * (2 if column < row else 1)
    return band


@pytest.mark.parametrize("is_gaussian", [False, True])
@pytest.mark.parametrize("scale", [-3.0, -1e4, -np.inf])
def test_kernel_values_are_of_each_pair_once(scale, is_gaussian):
    prob, columns, v = class_vectors(np.random.default_rng(3), COLUMNS, 3)
    v[1] = 0.0
    bands = [
        (0, 0, 5),  # the first rows, among them equal ones
        (COLUMNS - 3, 0, COLUMNS),  # the last rows with all
        (2, 2, 5),  # a block
        (6, 1, 4),  # without their own columns
    ]
    for first, start, width in bands:
        rows = np.ascontiguousarray(prob[first : first + 3])
        every = range(first, first + 3), range(start, start + width)
        expected = kernel_values(prob, v, scale, is_gaussian, *every)
        for kernel in forms(vectors.fill_kernel):
            band = np.full((3, width), np.nan)
            kernel(rows, columns, v, scale, is_gaussian, first, start, band)
            assert band == close(expected)


@CLASSES
def test_exponents_are_of_all_rows_but_the_own_one(n_classes):
    rng = np.random.default_rng(5)
    prob, columns, constant = class_vectors(rng, COLUMNS, n_classes)
    first, inverse = COLUMNS - 4, 40.0  # own rows behind the first piece
    logs = np.log(np.maximum(prob[first : first + 3], 1e-5))
    expected = constant + inverse * logs @ prob.T
    for i in range(3):
        expected[i, first + i] = -np.inf
    for kernel in forms(vectors.fill_exponents):
        band = np.full((3, COLUMNS), np.nan)
        kernel(logs, columns, constant, inverse, first, band)
        assert band == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("n", [1, 7, 8, 29])
def test_the_largest_is_found_wherever_it_is(n):
    x = -1 - np.random.default_rng(6).random(n)
    for kernel in forms(vectors.largest):
        for i in range(n):
            y = x.copy()
            y[i] = 3.0
            y[i - 1] = -np.inf if n > 1 else 3.0
            assert kernel(y) == 3.0
        assert kernel(np.full(n, -np.inf)) == kernel(x[:0]) == -np.inf
        assert kernel(x) == max(x.tolist())


def test_exponentials_of_a_line_are_over_the_largest_of_them():
    rng = np.random.default_rng(7)
    x = 1e4 + 300 * rng.normal(size=(2, BLOCK + 5))  # their exponentials are beyond every float
    x[0, 2] = x[1, BLOCK + 1] = -np.inf
    v = rng.random(BLOCK + 5)
    v[5] = 0.0
    below = x - x.max(axis=1, keepdims=True)
    expected = np.where(below >= LOWEST_EXPONENT, np.exp(below), 0.0) * v
    assert (expected[0] == 0).sum() > 2
    for kernel in forms(vectors.exponentiate):
        band = x.copy()
        kernel(band, v)
        assert band == pytest.approx(expected, rel=1e-13, abs=1e-300)
        assert band[0, 2] == band[1, BLOCK + 1] == band[0, 5] == 0.0
        plain = x.copy()
        kernel(plain, np.empty(0))  # no weights
        assert plain * v == pytest.approx(expected, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize(
    "levels",
    [
        (0.0, 0.0, 0.0),
        (0.0, -100.0, -1e4),  # pieces that are not seen
        (0.0, 30.0, -10.0),  # a piece that raises the largest
        (-1e4, 0.0, 1e4),  # so that nothing is left of what came before
        (0.0, -25.0, -45.0),
        (-np.inf, 0.0, 1.0),
    ],
)
def test_sums_of_exponentials_over_pieces_of_any_size(levels):
    rng = np.random.default_rng(8)
    n = 2 * vectors.PIECE + 1
    x, constant, inverse = rng.normal(size=(2, n)), rng.normal(size=(3, n)), np.array([3.0, 1, 40])
    constant += np.repeat(levels, vectors.PIECE)[:n]
    x[0, 3] = x[1, -1] = -np.inf  # own rows: all that there is in the last piece
    terms = constant[:, None] + inverse[:, None, None] * x
    top = terms.max(axis=2)
    expected = top + np.log(np.exp(terms - top[:, :, None]).sum(axis=2))
    for kernel in forms(vectors.log_sums):
        out = np.empty((3, 2))
        kernel(x, constant, inverse, out)
        assert out == pytest.approx(expected, rel=1e-13, abs=1e-13)


# Runs that are empty, at the begin, inside and at the end; of one to three columns, of a multiple
# of 4 or 8, and of more.
STARTS = np.array([0, 0, 1, 4, 4, 12, 14, 33, 33])


def test_products_over_runs_of_columns():
    rng = np.random.default_rng(9)
    band, x = rng.normal(size=(3, 33)), rng.normal(size=(33, 6))
    runs = [slice(*ends) for ends in pairwise(STARTS)]
    for kernel in forms(vectors.run_products):
        out = np.full((3, 8, 6), np.nan)
        kernel(band, x, STARTS, out)
        assert out == close(np.stack([band[:, run] @ x[run] for run in runs], axis=1))
        assert (out[:, [0, 3, 7]] == 0).all()


def test_sums_at_places_are_of_each_replicate():
    rng = np.random.default_rng(10)
    n, n_classes = 23, 3
    band, y = rng.normal(size=(2, n)), rng.integers(0, n_classes, (n, REPLICATES))
    place = (y * REPLICATES + np.arange(REPLICATES)).astype(np.uint32)
    expected = np.zeros((2, n_classes, REPLICATES))
    for j in range(n):
        for r in range(REPLICATES):
            expected[:, y[j, r], r] += band[:, j]
    for kernel in forms(vectors.place_sums):
        out = np.full((2, n_classes * REPLICATES), np.nan)
        kernel(band, place, out)
        assert out == close(expected.reshape(2, -1))
