"""Values of plain arrays by one kernel, compiled and as plain Python, against loops."""

from math import isnan

import numpy as np
import pytest
import reference

from fastece.kernels import CHANCE, DISTANCE, plain, reading
from fastece.kernels.selection import MAX_SORTED
from fastece.resampling.draws import RowDraws, Units, poisson_law
from helpers.strategies import as_lists

CUTS = [0.1, 0.1, 0.25, 0.5, 0.875]
TEN_BINS = np.array([0.0, 1.0, 10, True, True])


def binary_rows(n):
    rng = np.random.default_rng(n)
    p = rng.integers(0, 65, n) / 64
    return (rng.random(n) < p).astype(np.int64), p


@pytest.mark.parametrize("n", [1, 7, plain.ROWS + 9])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("even", [True, False])
def test_error_of_one_problem_equals_the_definition(n, right, even):
    y, p = binary_rows(n)
    fields = {"n_bins": 10} if even else {"edges": [0.0, *CUTS, 1.0]}
    n_bins = 10 if even else len(CUTS) + 1
    bins = np.array([0.0, 1.0, n_bins, even, right, *CUTS])
    expected = reference.ece(*as_lists(y, p), closed="right" if right else "left", **fields)
    for label in (y, y.astype(np.uint8)):
        assert plain.binary_error(p, label, bins) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n", [1, 7, plain.ROWS + 9, MAX_SORTED + 100])
@pytest.mark.parametrize("right", [True, False])
def test_error_in_bins_of_equal_mass_equals_the_definition(n, right):
    y, p = binary_rows(n)
    bins = np.array([0.0, 1.0, 7, False, right, *np.zeros(6)])
    fields = {"n_bins": 7, "edges": "quantile", "closed": "right" if right else "left"}
    expected = reference.ece(*as_lists(y, p), **fields)
    assert plain.find_equal_mass(p, bins)
    assert plain.binary_error(p, y, bins) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 120])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_error_of_top_labels_equals_the_definition(n_classes, dtype):
    n = plain.ROWS + 9 if n_classes == 3 else 20
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.full(n_classes, 0.3), n).astype(dtype)
    y = np.where(rng.random(n) < 0.7, p.argmax(axis=1), rng.integers(0, n_classes, n))
    score = p.max(axis=1).astype(np.float64)
    expected = reference.ece(*as_lists(p.argmax(axis=1) == y, score), n_bins=10)
    assert plain.top_label_error(p, y, 1e-5, TEN_BINS) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n", [1, plain.ROWS + 1])
@pytest.mark.parametrize(
    ("score", "label"), [(np.nan, 1), (1.1, 1), (-1e-300, 0), (0.5, 2), (0.5, -1)]
)
def test_a_row_that_is_not_valid_gives_nan(score, label, n):
    p = np.full(n, 0.5)
    y = np.ones(n, np.int64)
    p[-1] = score
    y[-1] = label
    assert isnan(plain.binary_error(p, y, TEN_BINS))
    assert plain.find_equal_mass(p, np.array([0.0, 1.0, 2, False, True, 0.0])) == (score == 0.5)
    assert not reading.read_hits(p, y, np.empty(n, np.uint8))
    vectors = np.column_stack([1 - p, p])
    assert isnan(plain.top_label_error(vectors, y, 1e-5, TEN_BINS)) or score == -1e-300


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_terms_of_plain_rows_are_checked(dtype):
    y, p = binary_rows(40)
    x = np.empty(40)
    kernel = plain.checked_terms
    assert kernel(DISTANCE, p, y.astype(dtype), x)
    assert x.tolist() == [(s - label) ** 2 for s, label in zip(p.tolist(), y.tolist(), strict=True)]
    assert kernel(CHANCE, p, y.astype(dtype), x)
    assert x.tolist() == [s if label else 1 - s for s, label in zip(p, y, strict=True)]
    for score, label in ((np.nan, 1), (1.1, 1), (-1e-300, 0), (0.5, 2)):
        wrong = y.astype(dtype)
        wrong[3] = label
        assert not kernel(DISTANCE, np.where(np.arange(40) == 3, score, p), wrong, x)


@pytest.mark.parametrize("n", [200, 1500])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_labels_that_contradict_the_predictions_are_no_plain_rows(n, dtype):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int64)
    vectors = np.column_stack([1 - p, p])
    for label, contradicts in ((y, False), (1 - y, True)):
        assert isnan(plain.binary_error(p, label.astype(dtype), TEN_BINS)) == contradicts
        assert isnan(plain.top_label_error(vectors, label, 1e-5, TEN_BINS)) == contradicts
        hit = np.full(n, 7, np.uint8)
        assert reading.read_hits(p, label, hit) != contradicts
        assert contradicts or hit.tolist() == label.tolist()


def groups_of_rows():
    y, p = binary_rows(plain.ROWS + 60)
    offsets = np.array([0, 1, 3, 35, 60, y.size])
    return y.astype(np.uint8), p, offsets


def test_errors_of_groups_are_those_of_each_group():
    y, p, offsets = groups_of_rows()
    values = np.empty(offsets.size - 1)
    plain.errors_of_groups(p, y, offsets, TEN_BINS, values)
    for g, value in enumerate(values):
        rows = slice(offsets[g], offsets[g + 1])
        expected = plain.binary_error(p[rows], y[rows], TEN_BINS)
        assert value == expected or (isnan(value) and isnan(expected))


def test_replicates_of_groups_are_the_errors_of_the_drawn_rows():
    y, p, offsets = groups_of_rows()
    keys = np.arange(5, dtype=np.uint64)
    sizes, law_of_group = np.unique(np.diff(offsets), return_inverse=True)
    rates = np.maximum(0.0, 1 - 2 / np.sqrt(sizes)).tolist()
    laws, tails = map(np.array, zip(*map(poisson_law, rates), strict=True))
    values = np.empty((5, 33))
    plain.replicates_of_groups(
        p, y, offsets, keys, TEN_BINS, laws, tails, law_of_group, 1024, values
    )
    for g in range(5):
        rows = slice(offsets[g], offsets[g + 1])
        drawn = RowDraws(g, Units(sizes[law_of_group[g]]), sizes[law_of_group[g]]).make(0, 2)
        for r in (0, 31, 32):
            chosen = np.repeat(np.arange(rows.start, rows.stop), drawn[r // 32, :, r % 32])
            expected = reference.ece(*as_lists(y[chosen], p[chosen]), n_bins=10)
            assert values[g, r] == pytest.approx(expected, abs=1e-14)
