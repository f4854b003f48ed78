"""Values of plain arrays by one kernel, compiled and as plain Python, against loops."""

from math import isnan

import numpy as np
import pytest
import reference

from fastece.kernels import plain
from helpers.kernel_forms import PLAIN, forms
from helpers.strategies import as_lists

CUTS = np.array([0.1, 0.1, 0.25, 0.5, 0.875])
NO_CUTS = np.empty(0)
EVEN_BINS = (0.0, 1.0, 10, True, True, NO_CUTS)
ALL_ROWS = 2**19
# Standard deviations by which no labels contradict the predictions.
NEVER = 1e9


def binary_rows(n):
    rng = np.random.default_rng(n)
    p = rng.integers(0, 65, n) / 64
    return (rng.random(n) < p).astype(np.int64), p


@pytest.mark.parametrize("n", [1, 7, plain.ROWS + 9])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("is_even", [True, False])
def test_error_of_one_problem_equals_the_definition(n, right, is_even):
    y, p = binary_rows(n)
    fields = {"n_bins": 10} if is_even else {"edges": [0.0, *CUTS.tolist(), 1.0]}
    closed = "right" if right else "left"
    bins = 0.0, 1.0, 10 if is_even else CUTS.size + 1, is_even, right, CUTS
    expected = reference.ece(*as_lists(y, p), closed=closed, **fields)
    for kernel in forms(plain.binary_error):
        for chunk in (ALL_ROWS, 4):
            for label in (y, y.astype(np.uint8)):
                value = kernel(p, label, 1, NEVER, chunk, *bins)
                assert value == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 120])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_error_of_top_labels_equals_the_definition(n_classes, dtype):
    n = plain.ROWS + 9 if n_classes == 3 else 20
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.full(n_classes, 0.3), n).astype(dtype)
    y = rng.integers(0, n_classes, n)
    score = p.max(axis=1).astype(np.float64)
    expected = reference.ece(*as_lists(p.argmax(axis=1) == y, score), n_bins=10)
    for kernel in forms(plain.top_label_error):
        for chunk in (ALL_ROWS, 7):
            value = kernel(p, y, 1, NEVER, 1e-5, chunk, *EVEN_BINS)
            assert value == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n", [1, plain.ROWS + 1])
@pytest.mark.parametrize(
    ("score", "label"), [(np.nan, 1), (1.1, 1), (-1e-300, 0), (0.5, 2), (0.5, -1)]
)
def test_a_row_that_is_not_valid_gives_nan(score, label, n):
    p = np.full(n, 0.5)
    y = np.ones(n, np.int64)
    p[-1] = score
    y[-1] = label
    for kernel in forms(plain.binary_error):
        assert isnan(kernel(p, y, 1, NEVER, ALL_ROWS, *EVEN_BINS))
    vectors = np.column_stack([1 - p, p])
    for kernel in forms(plain.top_label_error):
        assert isnan(kernel(vectors, y, 1, NEVER, 1e-5, ALL_ROWS, *EVEN_BINS))


def test_labels_that_contradict_the_predictions_give_nan():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) > p).astype(np.int64)
    vectors = np.column_stack([1 - p, p])
    for swapped in (False, True):
        labels = y if swapped else 1 - y
        for kernel in forms(plain.binary_error):
            assert isnan(kernel(p, labels, 1, 4.0, ALL_ROWS, *EVEN_BINS)) == swapped
        for kernel in forms(plain.top_label_error):
            value = kernel(vectors, labels, 1, 4.0, 1e-5, ALL_ROWS, *EVEN_BINS)
            assert isnan(value) == swapped


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_hits_are_read_unless_a_row_is_bad_or_labels_contradict(dtype):
    n = 1500
    y, p = binary_rows(n)
    labels = y.astype(dtype)
    for kernel in forms(plain.read_hits):
        hit = np.full(n, 7, np.uint8)
        assert kernel(p, labels, 1, 4.0, hit)
        assert hit.tolist() == y.tolist()
        assert not kernel(p, labels ^ 1, 1, 4.0, hit)
        assert not kernel(np.where(p == p[3], 1.5, p), labels, 1, NEVER, hit)
        assert not kernel(p, labels * 2, 1, NEVER, hit)


@pytest.mark.skipif(PLAIN, reason="too slow as plain Python")
def test_chunks_are_added_up_one_after_another():
    y, p = binary_rows(3000)
    p = p**1.5  # sums are rounded
    gaps = np.zeros(10)
    cell = np.clip(np.ceil(10 * p).astype(int) - 1, 0, 9)
    for rows in (slice(0, 1000), slice(1000, 2000), slice(2000, 3000)):
        gaps += np.bincount(cell[rows], (y - p)[rows], 10)
    value = plain.binary_error(p, y, 1, NEVER, 1000, *EVEN_BINS)
    assert value == pytest.approx(np.abs(gaps).sum() / 3000, rel=1e-13)
