"""Rows as scores and hits; bad rows are noticed anywhere."""

import numpy as np
import pytest

from fastece.kernels import reading

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
BAD_SCORES = [np.nan, np.inf, -np.inf, -1e-9, np.nextafter(1, 2), 1.5]
BAD_LABELS = [-1, 300, -(2**63), 2**62]


PROBABILITIES = (0.0, 1.0)
LOGITS = (-np.inf, np.finfo(np.float64).max)


def top_label_with(kernel, prob, label, bounds=PROBABILITIES, tolerance=1e-3):
    """Good or not, scores and hits."""
    score = np.empty(len(label))
    hit = np.empty(len(label), np.uint8)
    return kernel(prob, label, *bounds, tolerance, score, hit), score, hit


@DTYPES
@pytest.mark.parametrize("n_classes", [2, 3, 10, reading.LONG - 1, reading.LONG, 300])
def test_top_label_is_the_first_maximum(n_classes, dtype):
    rng = np.random.default_rng(5)
    prob = (rng.integers(0, 40, (30, n_classes)) / 40).astype(dtype)
    label = np.where(rng.random(30) < 0.6, prob.argmax(1), rng.integers(0, n_classes, 30))
    kernel = reading.read_top_label
    good, score, hit = top_label_with(kernel, prob, label, tolerance=np.inf)
    assert good
    assert score.tolist() == prob.max(1).tolist()
    assert hit.tolist() == (prob.argmax(1) == label).tolist()
    distance = np.empty(30)
    squares = (prob - np.eye(n_classes)[label]) ** 2
    assert kernel(prob, label, *PROBABILITIES, np.inf, score, hit, distance)
    np.testing.assert_allclose(distance, squares.sum(1), rtol=1e-12)


@pytest.mark.parametrize("where", [0, 3, 129])
@pytest.mark.parametrize("n_classes", [3, 200])
def test_bad_rows_are_noticed_at_any_place(where, n_classes):
    y = np.zeros(130, np.int64)
    p = np.full((130, n_classes), 1 / n_classes)
    last = where, n_classes - 1

    def are_good(p, y):
        answers = [bool(top_label_with(reading.read_top_label, p, y)[0])]
        answers += [bool(reading.are_classes(p, y, 1e-3))]
        assert len(set(answers)) == 1
        return answers[0]

    assert are_good(p, y)
    for bad in [*BAD_SCORES, 0.5]:
        changed = p.copy()
        changed[last] = bad
        assert not are_good(changed, y), bad
    for bad in [n_classes, *BAD_LABELS]:
        labels = y.copy()
        labels[where] = bad
        assert not are_good(p, labels), bad
    kernel = reading.read_top_label
    assert top_label_with(kernel, p, y, LOGITS, np.inf)[0]
    for bad, index in ((np.nan, last), (np.inf, last), (-np.inf, where)):
        z = p.copy()
        z[index] = bad
        assert not top_label_with(kernel, z, y, LOGITS, np.inf)[0], bad


@pytest.mark.parametrize("n_classes", [4, reading.LONG + 1])
def test_rows_sum_to_1_within_the_tolerance(n_classes):
    y = np.zeros(3, np.int64)
    for total in (0.99, 0.9995, 1.0005, 1.01):
        p = np.full((3, n_classes), 1 / n_classes)
        p[1, 2] += total - 1
        for tolerance in (1e-3, np.inf):
            good = abs(total - 1) <= tolerance
            assert top_label_with(reading.read_top_label, p, y, tolerance=tolerance)[0] == good
            assert reading.are_classes(p, y, tolerance) == good


def test_extremes_equal_numpy_and_no_nan_is_lost():
    kernel = reading.extremes
    many = np.random.default_rng(0).normal(size=3 * reading.LANES + 5)
    for x in (np.array([0.3]), np.array([2.0, -1.0, 5.0]), np.array([np.inf, 1.0]), many):
        assert kernel(x) == (x.min(), x.max())
        assert kernel(-x) == (-x.max(), -x.min())
    for n, place in ((3, 0), (3, 1), (3, 2), (reading.LANES + 1, 7), (reading.LANES + 1, -1)):
        x = np.ones(n)
        x[place] = np.nan
        assert kernel(x) == (np.inf, -np.inf)


def with_entry(array, value):
    """A copy with another entry in the middle."""
    array = array.copy()
    array.reshape(len(array), -1)[30, -1] = value
    return array


# --- predictions that lose to a guess -------------------------------------------------------------


def is_more_often(n, n_other, deviations):
    """Does a sign test find the first number larger, by so many standard deviations?"""
    return n - n_other > deviations * (n + n_other) ** 0.5


def test_complements_are_compared_with_a_guess():
    for seed in range(60):
        check_complements(seed)


def check_complements(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    step = int(rng.integers(1, 4))
    deviations = float(rng.choice([0.0, 1.0, 4.0]))
    score = rng.integers(0, 5, n) / 4
    label = rng.integers(0, 2, n).astype(rng.choice([np.int64, np.uint8]))
    rows = range(0, n, step)
    n_ones = sum(int(label[i]) for i in rows)
    guess = int(2 * n_ones > len(rows))
    complement = [int(score[i] < 0.5) for i in rows]
    only_complement = sum(c == label[i] != guess for c, i in zip(complement, rows, strict=True))
    only_guess = sum(guess == label[i] != c for c, i in zip(complement, rows, strict=True))
    expected = is_more_often(only_complement, only_guess, deviations)
    assert reading.is_worse_than_complement(score, label, 0.5, step, deviations) == expected


def test_most_probable_classes_are_compared_with_a_guess():
    for seed in range(60):
        check_most_probable_classes(seed)


def check_most_probable_classes(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    n_classes = int(rng.integers(2, 5))
    step = int(rng.integers(1, 4))
    deviations = float(rng.choice([0.0, 1.0, 4.0]))
    prob = rng.integers(0, 5, (n, n_classes)) / 4
    label = rng.integers(-1, n_classes + 1, n)  # some are no classes
    rows = [i for i in range(0, n, step) if 0 <= label[i] < n_classes]
    guess = max(range(n_classes), key=lambda k: (sum(label[i] == k for i in rows), -k))
    predicted = {i: int(prob[i].argmax()) for i in rows}
    only_guess = sum(guess == label[i] != predicted[i] for i in rows)
    only_predicted = sum(predicted[i] == label[i] != guess for i in rows)
    expected = is_more_often(only_guess, only_predicted, deviations)
    assert reading.is_worse_than_guess(prob, label, step, deviations) == expected
