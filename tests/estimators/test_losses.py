"""Brier score, log loss, accuracy, sharpness and entropy: against scikit-learn, against plain
Python, and through everything that takes an estimator."""

import pickle
import re
import tracemalloc
from dataclasses import dataclass
from math import inf, log, nan

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import fastece
from fastece import LogLoss
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.data.samples import Vectors
from fastece.estimators.losses import MeanPlan
from fastece.estimators.table import ESTIMATORS
from fastece.resampling.draws import Units, make_row_draws
from fastece.resampling.engine import plan_replicates
from fastece.resampling.problem import Problem
from fastece.study.candidates import import_estimator
from helpers import strategies as cases

NAMES = [
    "brier_score", "ranked_probability_score", "log_loss", "accuracy", "sharpness", "entropy",
]  # fmt: skip
SETTINGS = ["auto", "confidence", "classwise", 1]
MESSAGE = "is no calibration error"


def near(value, slack=1e-12):
    return pytest.approx(value, rel=slack, abs=slack, nan_ok=True)


def call(name, *data, **options):
    return getattr(fastece, name)(*data, **options)


def random_problem(seed):
    """Labels, probabilities of 2 to 5 classes or of one, and weights or none; some of them tied."""
    rng = np.random.default_rng(seed)
    n, k = rng.integers(2, 60), rng.integers(2, 6)
    p = rng.dirichlet(np.full(k, 0.7), n) * 0.98 + 0.02 / k
    p = p.round(1) + 0.02 if seed % 3 == 0 else p
    p /= p.sum(axis=1, keepdims=True)
    y = np.where(rng.random(n) < 0.5, p.argmax(axis=1), rng.integers(0, k, n))
    weight = [None, rng.random(n) + 0.01, rng.integers(1, 4, n)][rng.integers(3)]
    return (y, p, weight) if seed % 2 else (np.minimum(y, 1), p[:, 0], weight)


@pytest.mark.slow
def test_random_problems_are_those_of_scikit_learn():
    for seed in range(60):
        y, p, weight = random_problem(seed)
        options = {"sample_weight": weight}
        whole = p if p.ndim == 2 else np.column_stack([1 - p, p])
        right = whole.argmax(axis=1) == y
        labels = np.arange(whole.shape[1])
        brier = (
            metrics.brier_score_loss(y, p, **options, pos_label=1)
            if p.ndim == 1
            else metrics.brier_score_loss(y, p, **options, labels=labels, scale_by_half=False)
        )
        checks = {
            "brier_score": brier,
            "log_loss": metrics.log_loss(y, whole, **options, labels=labels),
            "accuracy": metrics.accuracy_score(np.ones(len(y)), right, **options),
        }
        for name, want in checks.items():
            assert call(name, y, p, **options) == near(want, 1e-10), (seed, name)


@pytest.mark.slow
@given(cases.binary(), st.data())
def test_any_binary_data_equal_the_reference(data, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    for name in NAMES:
        want = reference.score(name, *cases.as_lists(*data), "auto", weight)
        assert call(name, *data, sample_weight=weight) == near(want), name


@pytest.mark.slow
@given(cases.multiclass(), st.sampled_from(SETTINGS), st.data())
def test_any_class_vectors_equal_the_reference(data, setting, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    for name in NAMES:
        want = reference.score(name, *cases.as_lists(*data), setting, weight)
        assert call(name, *data, setting=setting, sample_weight=weight) == near(want), name


@pytest.mark.slow
@given(cases.binary(), st.floats(1e-9, 0.5))
def test_clipped_log_losses_equal_the_reference(data, clip):
    want = reference.score("log_loss", *cases.as_lists(*data), clip=clip)
    assert fastece.log_loss(*data, clip=clip) == near(want)
    assert want <= -log(clip) + 1e-12


@pytest.mark.parametrize(
    ("true", "prob", "values"),
    [
        ([1], [0.75], (0.0625, 0.0625, -log(0.75), 1, 0, None)),
        ([0, 1], [0.0, 1.0], (0, 0, 0, 1, 0.25, 0)),
        ([1, 0], [0.0, 1.0], (1, 1, inf, 0, 0.25, 0)),
        ([1, 1], [0.3, 0.3], (0.49, 0.49, -log(0.3), 0, 0, None)),
        ([0, 1, 0], [0.5, 0.5, 0.5], (0.25, 0.25, log(2), 2 / 3, 0, log(2))),
        ([0, 0], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], (1, 1, inf, 0.5, 0, 0)),
        ([2, 2], [[1 / 3] * 3] * 2, (2 / 3, 5 / 9, log(3), 0, 0, log(3))),
    ],
)
def test_small_and_uniform_data_have_values(true, prob, values):
    for name, want in zip(NAMES, values, strict=True):
        if want is not None:
            assert call(name, true, prob) == near(want), name
    assert str(fastece.entropy([0, 1], [0.0, 1.0])) == "0.0"
    assert fastece.sharpness([0, 1, 1], [0.3, 0.3, 0.3], sample_weight=[0.1, 0.2, 0.7]) == 0


@pytest.mark.parametrize(
    ("clip", "error", "message"),
    [
        (0, ValueError, "clip: must be greater than 0; None clips nothing, got 0"),
        (-0.1, ValueError, "clip: must be a number from 0 to 0.5, got -0.1"),
        (0.6, ValueError, "clip: must be a number from 0 to 0.5, got 0.6"),
        (nan, ValueError, "clip: must be a number from 0 to 0.5, got nan"),
        ("no", TypeError, "clip: must be a number, got 'no'"),
    ],
)
def test_other_clips_are_refused(clip, error, message):
    with pytest.raises(error, match=re.escape(message)):
        fastece.log_loss([0, 1], [0.2, 0.7], clip=clip)


def test_class_vectors_are_kept_where_they_are_asked_for():
    y, p, _ = random_problem(11)
    p32 = p.astype(np.float32)
    for prob in (p, p32):
        problems = read_problems(y, prob, vectors=True)
        assert problems.vectors.prob is prob
        assert problems.vectors.label.dtype == np.int64
        assert problems.sample(0).where([2, 0]).sorted().vectors is problems.vectors
    assert read_problems(y, p).vectors is None
    for setting in ("confidence", "classwise", 0):
        assert read_problems(y, p, ReadingOptions(setting=setting), vectors=True).vectors is None
    assert read_problems(y % 2, p[:, 0], vectors=True).vectors is None


def test_class_vectors_are_those_of_the_rows_that_are_left():
    y, p, _ = random_problem(11)
    weight = np.arange(len(y)) % 2
    sample = read_problems(y, p, ReadingOptions(sample_weight=weight), vectors=True).sample(0)
    assert np.array_equal(sample.vectors.prob[sample.rows].max(axis=1), sample.s)
    clipped = p / p.sum(axis=1, keepdims=True)
    clipped[0] = 0.0
    clipped[0, 0] = 1 + 5e-7
    assert read_problems(y, clipped, vectors=True).vectors.prob.max() == 1


@dataclass(frozen=True)
class TrueClass:
    """Mean probability of the true class, with nothing but what the protocol requires."""

    needs_vectors = True
    needs_sorted = True

    def prepare(self, sample, size):  # noqa: ARG002
        prob, label = sample.vectors.prob, sample.vectors.label
        return prob[np.arange(len(label)), label][sample.rows]

    def evaluate(self, plan, c):
        return float(plan @ c / c.sum())


@pytest.mark.parametrize("size", [None, 5])
def test_an_estimator_of_ones_own_gets_class_vectors(size):
    y, p, _ = random_problem(11)
    assert fastece.ece(y, p, estimator=TrueClass()) == near(p[np.arange(len(y)), y].mean())
    names = ["ece", TrueClass()]
    found = fastece.bootstrap(y, p, estimator=names, n_resamples=40, rng=0, size=size)
    alone = fastece.bootstrap(y, p, n_resamples=40, rng=0, size=size)
    assert np.array_equal(found["ece"].bootstrap_distribution, alone.bootstrap_distribution)
    assert (found["ece"].setting, found["TrueClass()"].setting) == ("confidence", "class vectors")
    # Labels are drawn for whole vectors, and hypotheses are asked of those that have the methods.
    test = fastece.calibration_test(y, p, estimator=TrueClass(), n_resamples=400, rng=0)
    error = test.null_distribution.std() / 20
    assert test.null_distribution.mean() == pytest.approx((p * p).sum(axis=1).mean(), abs=5 * error)
    assert test.setting == "class vectors"
    with pytest.raises(ValueError, match=r"must have a method truth for .*TrueClass"):
        fastece.estimate(y, p, estimator=TrueClass())


def test_what_is_sent_to_other_processes_has_no_class_vectors_that_nobody_reads():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(50), 400), rng.integers(0, 50, 400)
    problem = Problem(read_problems(y, p, vectors=True).sample(0))
    estimators = [ESTIMATORS[name] for name in ("ece", *NAMES)]
    for size in (400, 3):
        replicates = plan_replicates(
            estimators, [problem], make_row_draws(0, Units(400), size), [size]
        )
        sent = pickle.dumps(replicates)
        assert len(sent) < p.nbytes / 2
        assert np.array_equal(pickle.loads(sent).values(0, 40), replicates.values(0, 40))


def test_class_vectors_from_another_process_can_be_written_to():
    frozen = np.eye(2)
    frozen.flags.writeable = False
    vectors = Vectors(frozen, np.array([0, 1]))
    again = Vectors.__new__(Vectors)
    again.__setstate__(vars(vectors))
    assert again.prob.flags.writeable
    assert again.label is vectors.label
    plan = MeanPlan(frozen, 2, False, False)
    sent = MeanPlan.__new__(MeanPlan)
    sent.__setstate__(plan.__getstate__())
    assert sent.terms.flags.writeable


def test_an_infinite_log_loss_has_no_interval():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(4), 40), rng.integers(0, 4, 40)
    sure = p.copy()
    sure[3] = np.eye(4)[(y[3] + 1) % 4]
    options = {"estimator": "log_loss", "n_resamples": 50, "rng": 0}
    result = fastece.bootstrap(y, sure, method="bca", **options)
    assert result.value == inf
    assert set(np.isinf(result.bootstrap_distribution)) == {True, False}
    assert not np.isnan(result.bootstrap_distribution).any()
    for method in ("basic", "percentile", "bca"):
        assert np.isnan(result.interval(method=method)).all()
    assert np.isnan([result.standard_error, result.bias, result.acceleration]).all()
    text = " ".join(str(result).split())
    assert "no interval: the outcome had probability 0 in row 3; clip= makes a log loss" in text
    for other, difference in ((p, inf), (sure, nan)):
        pair = fastece.compare(y, sure, other, **options)
        assert pair.value == pytest.approx(difference, nan_ok=True)
        assert np.isnan([*pair.confidence_interval, pair.p_value]).all()
    classes = fastece.bootstrap(y, sure, setting="classwise", average=None, method="bca", **options)
    finite = np.isfinite(classes.value)
    assert set(finite) == {True, False}
    assert np.array_equal(np.isfinite(classes.interval(method="bca").low), finite)
    assert np.isfinite(fastece.bootstrap(y, sure, estimator=LogLoss(1e-6), n_resamples=9).bias)


@pytest.mark.parametrize("name", NAMES)
def test_functions_that_ask_for_calibration_refuse_scores(name):
    y, p, _ = random_problem(11)
    message = rf"estimator: {type(ESTIMATORS[name]).__name__}\(.* {MESSAGE}.*; bootstrap and"
    with pytest.raises(ValueError, match=message):
        fastece.estimate(y, p, estimator=name)
    with pytest.raises(ValueError, match=message):
        fastece.calibration_test(y, p, estimator=["ece", name])
    with pytest.raises(ValueError, match=message):
        fastece.compare(y, p, p, estimator=name, method="mover")


def test_the_study_refuses_scores():
    with pytest.raises(ValueError, match="'fastece:BrierScore' is no calibration error"):
        import_estimator("fastece:BrierScore")


def test_the_numbers_of_sharpness_are_all_that_it_holds():
    s = np.random.default_rng(0).random(100_000)
    sample = read_problems(np.zeros(s.size, np.uint8), s).view()
    sharpness = ESTIMATORS["sharpness"]
    tracemalloc.start()
    squares, distances = sharpness.numbers(sample)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (squares == distances**2).all()
    assert peak < 1.1 * (squares.nbytes + distances.nbytes)
