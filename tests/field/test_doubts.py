"""Signs that numbers mislead: each has its sentence, which never comes for good data."""

import numpy as np
import pytest

import fastece
from fastece.data.doubts import impossible_rows
from fastece.data.reading import read_source

RNG = np.random.default_rng(0)
N = 500
RISKS = RNG.uniform(0.05, 0.95, N)
EVENTS = (RNG.random(N) < RISKS).astype(int)
CLASSES = RNG.dirichlet([0.5, 0.5, 0.5], N)
LABELS = np.array([RNG.choice(3, p=row) for row in CLASSES])
# Generated samples of good data, quick and slow.
MANY = [200, pytest.param(10_000, marks=pytest.mark.slow)]


def draw_good_sample(seed):
    """Draw labels with the probabilities of a model of one of several kinds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 400))
    n_classes = int(rng.integers(2, 12))
    if n_classes == 2:
        shape = rng.uniform(0.02, 2.0, 2)
        prob = rng.beta(*shape, n)
        if rng.random() < 0.5:
            prob = rng.binomial(50, prob) / 50
        return (rng.random(n) < prob).astype(int), prob
    logits = rng.normal(size=(n, n_classes)) * rng.uniform(0.2, 8.0)
    prob = np.exp(logits - logits.max(1, keepdims=True))
    prob /= prob.sum(1, keepdims=True)
    prob[prob < 1e-9] = 0.0  # the rows still add up to 1 within the tolerance
    below = rng.random((n, 1)) * prob.sum(1, keepdims=True) >= prob.cumsum(1)
    return below.sum(1), prob


# --- outcomes that cannot be ----------------------------------------------------------------


@pytest.mark.parametrize(("row", "score"), [(np.flatnonzero(EVENTS)[7], 0.0),
                                            (np.flatnonzero(1 - EVENTS)[7], 1.0)])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"n_resamples": 99}, {"sample_weight": RISKS}])
def test_one_impossible_outcome_is_rejected_and_named(row, score, options):
    prob = RISKS.copy()
    prob[row] = score
    p_value = fastece.calibration_test(EVENTS, prob, **options).p_value
    assert p_value <= 1 / (options.get("n_resamples", 1999) + 1)
    assert fastece.calibration_test(EVENTS, RISKS, **options).p_value > p_value
    report = fastece.calibration_report(EVENTS, prob, **options)
    assert report.p_value == p_value
    assert f"probability 0 in y_prob[{row}]: " in report.notes[0]
    assert report.notes[0] in " ".join(str(report).split())


def test_an_impossible_outcome_of_a_class_rejects_that_class_and_the_mean():
    prob = CLASSES.copy()
    row = np.flatnonzero(LABELS == 2)[3]
    prob[row] = [0.4, 0.6, 0.0]
    options = {"setting": "classwise", "n_resamples": 99}
    by_class = fastece.calibration_test(LABELS, prob, average=None, **options).p_value
    assert (by_class == 1 / 100).tolist() == [False, False, True]
    assert fastece.calibration_test(LABELS, prob, **options).p_value == 1 / 100


def test_an_impossible_outcome_in_counts_and_streams_is_rejected():
    prob = np.r_[RISKS, 0.0]
    events = np.r_[EVENTS, 1]
    counts = np.full(N + 1, 2)
    report = fastece.calibration_report(events, prob, counts=counts, n_resamples=99)
    assert report.p_value == 1 / 100
    assert f"probability 0 in y_prob[{N}]: " in report.notes[0]
    stream = fastece.Accumulator()
    stream.update(events, prob)
    assert fastece.calibration_test(stream, n_resamples=99).p_value == 1 / 100


def test_rows_of_probability_0_and_1_that_come_true_are_no_sign():
    prob = np.r_[RISKS, np.zeros(20), np.ones(20)]
    events = np.r_[EVENTS, np.zeros(20, int), np.ones(20, int)]
    report = fastece.calibration_report(events, prob, n_resamples=99)
    assert report.notes == []
    assert report.p_value > 1 / 100


@pytest.mark.parametrize("n_samples", MANY)
def test_no_good_sample_has_an_impossible_outcome(n_samples):
    for seed in range(n_samples):
        y, prob = draw_good_sample(seed)
        assert not impossible_rows(read_source(y, prob, setting="auto")).any(), seed
