"""Rows as scores and hits, compiled and as plain Python; what is not good is seen anywhere."""

import numpy as np
import pytest

from fastece.kernels import CHANCE, DISTANCE, reading
from helpers.kernel_forms import forms

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
BAD_SCORES = [np.nan, np.inf, -np.inf, -1e-9, np.nextafter(1, 2), 1.5]
BAD_LABELS = [-1, 300, -(2**63), 2**62]


def top_label_with(kernel, prob, label, logits=False, tolerance=1e-3):
    """Good or not, scores and hits."""
    score, hit = np.empty(len(label)), np.empty(len(label), np.uint8)
    return kernel(prob, label, logits, tolerance, score, hit), score, hit


@DTYPES
@pytest.mark.parametrize("n_classes", [2, 3, 10, reading.LONG - 1, reading.LONG, 300])
def test_top_label_is_the_first_maximum(n_classes, dtype):
    rng = np.random.default_rng(5)
    prob = (rng.integers(0, 40, (30, n_classes)) / 40).astype(dtype)
    label = np.where(rng.random(30) < 0.6, prob.argmax(1), rng.integers(0, n_classes, 30))
    for kernel in forms(reading.read_top_label):
        good, score, hit = top_label_with(kernel, prob, label, tolerance=np.inf)
        assert good
        assert score.tolist() == prob.max(1).tolist()
        assert hit.tolist() == (prob.argmax(1) == label).tolist()
        distance, squares = np.empty(30), (prob - np.eye(n_classes)[label]) ** 2
        assert kernel(prob, label, False, np.inf, score, hit, distance)
        np.testing.assert_allclose(distance, squares.sum(1), rtol=1e-12)


@DTYPES
@pytest.mark.parametrize("n_classes", [1, 2, 10, 300])
def test_the_top_label_of_logits_is_that_of_the_largest(n_classes, dtype):
    rng = np.random.default_rng(11)
    z = (30 * rng.standard_normal((30, n_classes))).astype(dtype)
    z[rng.random(z.shape) < 0.1] = -np.inf
    z[:, 0] = np.where(np.isinf(z).all(axis=1), 3.0, z[:, 0])
    label = rng.integers(0, n_classes, 30)
    for kernel in forms(reading.read_top_label):
        good, score, hit = top_label_with(kernel, z, label, logits=True)
        assert good
        assert score.tolist() == z.max(axis=1).tolist()
        assert hit.tolist() == (z.argmax(axis=1) == label).tolist()


@pytest.mark.parametrize("where", [0, 3, 129])
@pytest.mark.parametrize("n_classes", [3, 200])
def test_bad_rows_are_seen_wherever_they_are(where, n_classes):
    y, p = np.zeros(130, np.int64), np.full((130, n_classes), 1 / n_classes)
    last = where, n_classes - 1

    def are_good(p, y):
        found = {bool(top_label_with(k, p, y)[0]) for k in forms(reading.read_top_label)}
        found |= {bool(kernel(p, y, 1e-3)) for kernel in forms(reading.are_classes)}
        assert len(found) == 1
        return found.pop()

    assert are_good(p, y)
    for bad in [*BAD_SCORES, 0.5]:
        changed = p.copy()
        changed[last] = bad
        assert not are_good(changed, y), bad
    for bad in [n_classes, *BAD_LABELS]:
        labels = y.copy()
        labels[where] = bad
        assert not are_good(p, labels), bad
    for kernel in forms(reading.read_top_label):
        assert top_label_with(kernel, p, y, True)[0]
        for bad, at in ((np.nan, last), (np.inf, last), (-np.inf, where)):
            z = p.copy()
            z[at] = bad
            assert not top_label_with(kernel, z, y, True)[0], bad


@pytest.mark.parametrize("n_classes", [4, reading.LONG + 1])
def test_rows_sum_to_1_within_the_tolerance(n_classes):
    y = np.zeros(3, np.int64)
    for total in (0.99, 0.9995, 1.0005, 1.01):
        p = np.full((3, n_classes), 1 / n_classes)
        p[1, 2] += total - 1
        for tolerance in (1e-3, np.inf):
            good = abs(total - 1) <= tolerance
            for kernel in forms(reading.read_top_label):
                assert top_label_with(kernel, p, y, tolerance=tolerance)[0] == good
            for kernel in forms(reading.are_classes):
                assert kernel(p, y, tolerance) == kernel(p.astype(np.float32), y, tolerance) == good


@DTYPES
@pytest.mark.parametrize("n_classes", [None, 3])
def test_terms_of_means_are_those_of_the_true_class(n_classes, dtype):
    rng = np.random.default_rng(3)
    whole = rng.dirichlet(np.ones(n_classes or 2), 60).astype(dtype)
    prob = whole if n_classes else whole[:, 1].astype(np.float64)
    whole = whole if n_classes else np.stack([1 - prob, prob], 1)
    label = rng.integers(0, n_classes or 2, 60)
    pairs = list(zip(whole.tolist(), label.tolist(), strict=True))
    share = 1 if n_classes else 1 / 2
    expected = {
        DISTANCE: [share * sum((q - (k == y)) ** 2 for k, q in enumerate(p)) for p, y in pairs],
        CHANCE: [p[y] for p, y in pairs],
    }
    for kernel in forms(reading.read_terms):
        for kind, terms in expected.items():
            x = np.empty(60)
            assert kernel(kind, prob, label, 1e-3, x)
            assert x == pytest.approx(np.array(terms), rel=1e-12)
            if not n_classes:
                assert kernel(kind, prob, label.astype(np.uint8), 1e-3, x)
            for bad in BAD_SCORES:
                assert not kernel(kind, with_entry(prob, bad), label, 1e-3, x)
            for bad in BAD_LABELS:
                assert not kernel(kind, prob, with_entry(label, bad), 1e-3, x)


def with_entry(array, value):
    """A copy with another entry in the middle."""
    array = array.copy()
    array.reshape(len(array), -1)[30, -1] = value
    return array


def test_a_problem_is_its_arrays_or_a_column_of_class_vectors():
    rng = np.random.default_rng(8)
    score, hit, label = np.empty(9), np.empty(9, np.uint8), rng.integers(0, 3, 9)
    for kernel in forms(reading.read_problem):
        s, y = rng.random(9), rng.integers(0, 2, 9).astype(np.uint8)
        found = kernel(s, y, 0, score, hit)
        assert np.array_equal(found, [s, y])
        for p in (rng.random((9, 3)), rng.random((9, 3)).astype(np.float32)):
            for k in range(3):
                found = kernel(p, label, k, score, hit)
                assert np.array_equal(found, [p[:, k], label == k])
