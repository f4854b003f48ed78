"""Signs that numbers mislead: each has its sentence, which never comes for good data."""

import numpy as np
import pytest

import fastece
from fastece.data.doubts import impossible_rows
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_table
from fastece.report.doubts import (
    describe_constant_scores,
    describe_foreign_labels,
    describe_repeats,
)
from helpers.bad_input import assert_refused

RNG = np.random.default_rng(0)
N = 500
RISKS = RNG.uniform(0.05, 0.95, N)
EVENTS = (RNG.random(N) < RISKS).astype(int)
CLASSES = RNG.dirichlet([0.5, 0.5, 0.5], N)
LABELS = np.array([RNG.choice(3, p=row) for row in CLASSES])
# Generated samples of good data, quick and slow.
MANY = [100, pytest.param(5000, marks=pytest.mark.slow)]


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


@pytest.mark.parametrize(
    ("outcome", "score", "options"),
    [(1, 0.0, {"n_resamples": 99}), (0, 1.0, {"n_resamples": 99, "sample_weight": RISKS})],
)
def test_one_impossible_outcome_is_rejected_and_named(outcome, score, options):
    row = np.flatnonzero(outcome == EVENTS)[7]
    prob = RISKS.copy()
    prob[row] = score
    p_value = fastece.calibration_test(EVENTS, prob, **options).p_value
    assert p_value <= 1 / 100
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


@pytest.mark.slow
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
        source = read_table(y, prob, ReadingOptions(setting="auto"))
        assert not np.any(impossible_rows(source)), seed
        assert describe_constant_scores(source) == "", seed


# --- labels of other rows -------------------------------------------------------------------


def draw_confident_rows(n, n_classes, seed):
    """Draw labels, and predictions of a network that is right in nearly all rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    logits = rng.normal(0, 1.5, (n, n_classes))
    logits[np.arange(n), y] += 6 if n_classes < 100 else 10
    prob = np.exp(logits)
    prob /= prob.sum(1, keepdims=True)
    return y, prob if n_classes > 2 else prob[:, 1]


def notes_of(y, prob, **options):
    """The notes of a report without draws."""
    return fastece.calibration_report(y, prob, n_resamples=0, **options).notes


def has_note(words, y, prob, **options):
    """Whether a note of a report has some words."""
    return any(words in note for note in notes_of(y, prob, **options))


FOREIGN = "Do predictions and labels belong to the same rows?"


@pytest.mark.parametrize(
    ("n", "n_classes"),
    [(300, 2), (60, 10), pytest.param(2000, 1000, marks=pytest.mark.slow)],
)
def test_labels_of_other_rows_are_a_line_of_the_report_alone(n, n_classes):
    y, prob = draw_confident_rows(n, n_classes, seed=0)
    of_other_rows = np.random.default_rng(1).permutation(y)
    assert has_note(FOREIGN, of_other_rows, prob)
    assert not has_note(FOREIGN, y, prob)
    fastece.bootstrap(of_other_rows, prob, n_resamples=1)  # warnings are errors
    fastece.calibration_test(of_other_rows, prob, n_resamples=1)


def test_most_labels_of_other_rows_are_found():
    found = 0
    for seed in range(50):
        y, prob = draw_confident_rows(400, 2 + seed % 9, seed)
        other = np.random.default_rng(seed).permutation(y)
        found += describe_foreign_labels(read_rows(other, prob)) != ""
    assert found >= 49


def read_rows(y, prob):
    """Read rows as a report does to compare labels with predictions."""
    return read_table(y, prob, ReadingOptions(setting="binary" if prob.ndim == 1 else "classwise"))


@pytest.mark.parametrize("n", [100, 1000])
def test_an_over_confident_model_that_learned_something_is_no_sign(n):
    rng = np.random.default_rng(0)
    for _ in range(20):
        prob = rng.beta(0.1, 0.1, n)
        y = (rng.random(n) < np.where(prob > 0.5, 0.8, 0.2)).astype(int)
        assert describe_foreign_labels(read_rows(y, prob)) == ""


def test_one_predicted_class_is_no_sign():
    y = (RNG.random(N) < 0.5).astype(int)
    assert not has_note(FOREIGN, y, RNG.uniform(0.9, 1.0, N))


@pytest.mark.parametrize("n_samples", MANY)
def test_no_good_sample_has_a_warning_or_a_sentence(n_samples):
    for seed in range(n_samples):
        rows = read_rows(*draw_good_sample(seed))  # warnings are errors
        assert describe_foreign_labels(rows) == describe_repeats(rows) == "", seed


# --- rows that come several times -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n_times", "y", "prob"), [(2, LABELS, CLASSES), (5, EVENTS, RISKS)])
def test_the_same_rows_several_times_are_a_line_of_the_report_alone(n_times, y, prob):
    words = f"The rows come {n_times} times with the same labels. If these are repeats"
    in_blocks = np.tile(np.arange(N), n_times)
    one_after_the_other = np.repeat(np.arange(N), n_times)
    for rows in (in_blocks, one_after_the_other, RNG.permutation(in_blocks)):
        assert words in describe_repeats(read_rows(y[rows], prob[rows]))
    assert has_note(words, y[rows], prob[rows])
    assert not has_note(words, y[rows], prob[rows], groups=rows)
    fastece.bootstrap(y[rows], prob[rows], n_resamples=1)  # warnings are errors


@pytest.mark.slow
def test_the_same_rows_with_other_labels_are_no_sign():
    rows = np.tile(np.arange(N), 3)
    labels = (np.random.default_rng(1).random(3 * N) < RISKS[rows]).astype(int)
    assert not has_note("come", labels, RISKS[rows])
    assert not has_note("come", np.tile([0, 1], 100), np.tile([0.2, 0.8], 100))


# --- scores that are no probabilities -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prob", "sentence"),
    [
        (
            np.full(N, 0.3),
            "All 500 rows have the same prediction, 0.3: only its mean can be",
        ),
        (np.ones(N), "All 500 rows have the same prediction, 1: only"),
        (np.tile([0.2, 0.8], (N, 1)), "All 500 rows have the same prediction, 0.8: only"),
        (RISKS.round(), "All 500 predictions are 0 or 1: are these predicted classes, not"),
        (np.eye(2)[RISKS.round().astype(int)], "All 500 rows have the same prediction, 1: only"),
    ],
)
def test_reports_name_equal_and_certain_scores(prob, sentence):
    notes = fastece.calibration_report(EVENTS, prob, n_resamples=0).notes
    assert any(sentence in note for note in notes)
    good = fastece.calibration_report(EVENTS, RISKS, n_resamples=0).notes
    assert not any("prediction" in note for note in good)


@pytest.mark.slow
def test_zeros_and_ones_that_decide_a_slope_have_a_sentence():
    rng = np.random.default_rng(4)
    z = rng.normal(0, 2, 2000)
    prob = rng.binomial(50, 1 / (1 + np.exp(-2.2 * z))) / 50
    events = (rng.random(2000) < 1 / (1 + np.exp(-z))).astype(int)
    n_certain = int(((prob == 0) | (prob == 1)).sum())
    sentence = (
        f"{n_certain} of 2000 predictions are 0 or 1; slope and intercept depend on the 0.00025 "
        "that stands for them (clip= or --clip chooses another)."
    )
    assert sentence in fastece.validate(events, prob, n_resamples=0).notes
    is_inside = (prob > 0) & (prob < 1)
    without = fastece.validate(events[is_inside], prob[is_inside], n_resamples=0)
    assert not any("0 or 1" in note for note in without.notes)
    for clip in (1e-6, 0.01):
        chosen = fastece.validate(events, prob, n_resamples=0, clip=clip)
        clipped = prob.clip(clip, 1 - clip)
        by_hand = fastece.validate(events, clipped, n_resamples=0)
        assert chosen.slope.to_dict() == by_hand.slope.to_dict()
        assert chosen.intercept.value == pytest.approx(by_hand.intercept.value, abs=0.01)
        assert chosen.brier.value == pytest.approx(fastece.brier_score(events, prob), abs=1e-12)
    assert_refused(
        lambda: fastece.validate(events, prob, clip=0.5),
        ["clip: must be greater than 0 and less than 0.5, got 0.5"],
    )
    counts = rng.integers(1, 4, 2000)
    of_table = fastece.validate(events, prob, n_resamples=0, counts=counts).notes
    repeated = fastece.validate(np.repeat(events, counts), np.repeat(prob, counts), n_resamples=0)
    assert of_table[0] == repeated.notes[0]


@pytest.mark.parametrize("n_samples", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_zeros_and_ones_of_calibrated_scores_never_have_the_sentence(n_samples):
    for seed in range(n_samples):
        rng = np.random.default_rng(seed)
        prob = rng.binomial(50, rng.beta(*rng.uniform(0.02, 2.0, 2), 300)) / 50
        events = (rng.random(300) < prob).astype(int)
        notes = fastece.validate(events, prob, n_resamples=0).notes
        assert not any("are 0 or 1" in note for note in notes)
