"""Which options are refused."""

import re
from math import inf, nan

import numpy as np
import pytest

import fastece
from fastece import Binned
from fastece.checks import parameters
from fastece.checks.parameters import check_jobs
from helpers.bad_input import (
    CLASS_TRUE,
    PROB,
    ROWS,
    TRUE,
    WEIGHT,
    assert_refused,
    classes,
    ece,
    put,
)

FUNCTIONS = ["ece", "mce", "sce", "ace", "tace", "reliability_diagram"]

REFUSED = {
    "n_bins 0": (lambda: ece(n_bins=0), ["n_bins", r"\b0\b"]),
    "n_bins negative": (lambda: ece(n_bins=-3), ["n_bins", "-3"]),
    "n_bins fraction": (lambda: ece(n_bins=2.5), ["n_bins", r"2\.5"]),
    "n_bins bool": (lambda: ece(n_bins=True), ["n_bins", "True|bool"]),
    "n_bins nan": (lambda: ece(n_bins=nan), ["n_bins", "nan"]),
    "n_bins unknown": (lambda: ece(n_bins="scott"), ["n_bins", "scott", "sqrt"]),
    "n_bins none": (lambda: ece(n_bins=None), ["n_bins", "None"]),
    "n_bins of sce": (lambda: fastece.sce(CLASS_TRUE, ROWS, n_bins=0), ["n_bins", r"\b0\b"]),
    "n_bins in an object": (lambda: ece(estimator=Binned(n_bins=0)), ["n_bins", r"\b0\b"]),
    "norm below 1": (lambda: ece(norm=0.5), ["norm", r"0\.5"]),
    "norm nan": (lambda: ece(norm=nan), ["norm", "nan"]),
    "norm -inf": (lambda: ece(norm=-inf), ["norm", "-inf"]),
    "norm text": (lambda: ece(norm="l1"), ["norm", "l1"]),
    "edges": (lambda: ece(edges="equal"), ["edges", "equal", "uniform", "quantile"]),
    "mapping": (lambda: ece(mapping="soft"), ["mapping", "soft", "hard", "convex"]),
    "closed": (lambda: ece(closed="both"), ["closed", "both", "right", "left"]),
    "convex, closed left": (lambda: ece(mapping="convex", closed="left"), ["closed", "convex"]),
    "score_range": (lambda: ece(score_range="all"), ["score_range", "all", "unit", "support"]),
    "score_range reversed": (lambda: ece(score_range=(0.75, 0.25)), ["score_range", r"0\.75"]),
    "score_range empty": (lambda: ece(score_range=(0.5, 0.5)), ["score_range", r"0\.5"]),
    "score_range nan": (lambda: ece(score_range=(nan, 1.0)), ["score_range", "nan"]),
    "score_range single": (lambda: ece(score_range=(0.5,)), ["score_range"]),
    "min_count": (lambda: ece(min_count=3), ["min_count", "norm"]),
    "min_count, norm 2": (lambda: ece(min_count=3, norm=2), ["min_count", "norm"]),
    "min_count nan": (lambda: fastece.mce(TRUE, PROB, min_count=nan), ["min_count", "nan"]),
    "bin_weights": (lambda: ece(bin_weights="same"), ["bin_weights", "same", "mass", "equal"]),
    "threshold": (lambda: ece(threshold="low"), ["threshold", "low"]),
    "threshold nan": (lambda: ece(threshold=nan), ["threshold", "nan"]),
    "estimator": (lambda: ece(estimator="ece_x"), ["estimator", "ece_x", r"ece_a\b", r"ece_ac\b"]),
    "estimator of nothing": (lambda: ece(estimator=3), ["estimator"]),
    "setting": (
        lambda: ece(setting="multi"),
        ["setting", "multi", "binary", "confidence", "classwise"],
    ),
    "setting bool": (lambda: ece(setting=True), ["setting", "True|bool"]),
    "setting fraction": (lambda: classes(setting=1.0), ["setting", r"1\.0"]),
    "setting K": (lambda: classes(setting=3), ["setting", r"\b3\b"]),
    "setting 2 of one column": (lambda: ece(setting=2), ["setting", r"\b2\b"]),
    "average": (
        lambda: classes(setting="classwise", average="micro"),
        ["average", "micro", "macro"],
    ),
    "field": (lambda: ece(bins=10), ["bins", "n_bins", "edges", "mapping"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told(name):
    assert_refused(*REFUSED[name])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_everything_after_the_data_is_keyword_only(function):
    with pytest.raises(TypeError):
        getattr(fastece, function)(CLASS_TRUE, ROWS, "ece")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_refuses_the_same_data(function):
    for true, prob, options, words in (
        (TRUE, put(PROB, (3, nan)), {}, ["y_prob", r"\b3\b", "nan"]),
        (put(TRUE, (4, 2)), PROB, {}, ["y_true", r"\b4\b", r"\b2\b"]),
        (TRUE, PROB, {"sample_weight": -WEIGHT}, ["sample_weight", r"\b0\b", r"-1\.0"]),
        (CLASS_TRUE, put(ROWS, ((4, 1), nan)), {}, ["y_prob", r"\b4\b", "nan"]),
        (TRUE, PROB[:, None], {}, ["y_prob"]),
        (TRUE, PROB, {"n_bins": 0}, ["n_bins", r"\b0\b"]),
        (TRUE, PROB, {"nbins": 3}, ["nbins", "n_bins"]),
    ):
        with pytest.raises((ValueError, TypeError)) as error:
            getattr(fastece, function)(true, prob, **options)
        assert all(re.search(word, str(error.value)) for word in words), str(error.value)


def test_the_objects_refuse_what_the_functions_refuse():
    for field, bad in (("n_bins", 0), ("norm", 0.5), ("edges", "equal"), ("mapping", "soft")):
        with pytest.raises((ValueError, TypeError), match=field):
            fastece.ece(TRUE, PROB, estimator=Binned(**{field: bad}))
    with pytest.raises((ValueError, TypeError), match="convex"):
        fastece.ece(TRUE, PROB, estimator=Binned(closed="left"), mapping="convex")


Y, P = [0, 1, 1], [0.2, 0.6, 0.9]
MESSAGES = {
    "from_logits": (lambda: fastece.ece(Y, P, from_logits="no"), "must be True or False"),
    "no jobs": (lambda: fastece.ece(Y, P, n_jobs=0), "n_jobs: must be a positive"),
    "half a job": (lambda: fastece.ece(Y, P, n_jobs=1.5), "n_jobs: must be an integer"),
    "norm bool": (lambda: fastece.ece(Y, P, norm=True), "norm: must be a number"),
    "norm huge": (lambda: fastece.ece(Y, P, norm=10**400), "must be a number from 1 to inf"),
    "n_bins array": (lambda: fastece.ece(Y, P, n_bins=np.array([5, 6])), "an integer or"),
    "average array": (
        lambda: fastece.ece(Y, P, average=np.array([1])),
        "average: must be .* got array",
    ),
    "score_range list": (lambda: fastece.ece(Y, P, score_range=[0, 1]), "must be a pair"),
    "estimator object": (lambda: fastece.ece(Y, P, estimator=object()), "known: 'ece'"),
    "sce": (lambda: fastece.sce(Y, P, setting="binary"), "setting: is 'classwise' in sce"),
    "mce": (lambda: fastece.mce(Y, P, norm=2), "norm: is inf in mce, got 2"),
    "ace": (lambda: fastece.ace(Y, P, estimator="ece"), "estimator: is 'ece_a' in ace"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name):
    call, message = MESSAGES[name]
    assert_refused(call, [message])


def test_an_estimator_without_bins_has_no_diagram():
    class Brier:
        def prepare(self, sample, size):  # noqa: ARG002
            return sample

        def evaluate(self, plan, c):
            return float(np.average((plan.y - plan.s) ** 2, weights=c))

    assert fastece.ece(Y, P, estimator=Brier()) == pytest.approx((0.04 + 0.16 + 0.01) / 3)
    with pytest.raises(TypeError, match="a reliability diagram needs bins"):
        fastece.reliability_diagram(Y, P, estimator=Brier())
    with pytest.raises(TypeError, match="n_bins: is not a parameter of the estimator Brier"):
        fastece.ece(Y, P, estimator=Brier(), n_bins=3)


def test_jobs_are_counted_as_elsewhere(monkeypatch):
    assert check_jobs(None) == 1
    assert check_jobs(3) == 3
    monkeypatch.setattr(parameters, "processors", lambda: 4)
    assert [check_jobs(n) for n in (-1, -2, -(10**6))] == [4, 3, 1]


def test_processors_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3 + pid, 5, 7}, raising=False)
    monkeypatch.delattr("os.process_cpu_count", raising=False)
    assert parameters.processors() == 3
    monkeypatch.setattr("os.process_cpu_count", lambda: 2, raising=False)
    assert parameters.processors() == 2
    monkeypatch.delattr("os.process_cpu_count")
    monkeypatch.delattr("os.sched_getaffinity")
    assert parameters.processors() == 64
