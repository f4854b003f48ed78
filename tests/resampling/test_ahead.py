"""A call is described so that its kernels can be compiled before its rows are read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.resampling.ahead import compile_call, compile_call_beside, describe_call

P = np.linspace(0.1, 0.9, 9)


def description_of(y_prob, **options):
    """The description of a call, with its options as a dict."""
    n_columns, kind, simple = describe_call(y_prob, {"estimator": "ece", **options})
    return n_columns, kind, dict(simple)


@pytest.mark.parametrize(
    ("y_prob", "shape"),
    [
        (P, (1, "<f8")),
        (P.astype("f4"), (1, "<f4")),
        (list(P), (1, "<f8")),
        (np.arange(9), (1, "<f8")),
        (np.ones((9, 2)), (2, "<f8")),
        (np.ones((9, 10), np.float32), (3, "<f4")),
    ],
)
def test_probabilities_are_described_by_shape_and_kind(y_prob, shape):
    assert description_of(y_prob)[:2] == shape


def test_options_are_described_without_the_callers_data():
    options = {
        "setting": "classwise", "average": None, "n_bins": 20, "n_resamples": 9999, "size": 7,
        "labels": ["a", "b"], "sample_weight": P, "groups": None, "executor": object(),
    }  # fmt: skip
    assert description_of(P, **options)[2] == {
        "estimator": "ece", "setting": "classwise", "average": None, "n_bins": 20,
        "sample_weight": True, "groups": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        ("ece_kde", "ece_kde"),
        (fastece.Binned(n_bins=7), "ece"),
        (fastece.KDE(), "ece_kde"),
        (["ece", fastece.BayesCurve()], ("ece", "ece_bayes")),
        (object(), ""),
    ],
)
def test_estimators_are_described_by_names(estimator, name):
    assert description_of(P, estimator=estimator)[2]["estimator"] == name


def test_numbers_that_are_not_written_as_they_are_read_are_left_out():
    options = description_of(P, n_bins=np.int64(9), debias=True, score_range=(0.0, 1.0))[2]
    assert options == {"estimator": "ece", "debias": True}


def test_a_description_is_read_from_its_text():
    description = describe_call(P, {"estimator": ["ece"], "average": None, "groups": P})
    assert json.loads(json.dumps(description)) == [
        1, "<f8", [["estimator", ["ece"]], ["average", None], ["groups", True]]
    ]  # fmt: skip
    # Code of a process is written with the text of its arguments.
    assert eval(repr(description)) == description


def test_a_stream_has_no_second_process():
    with compile_call_beside(compile_call, None, {}) as process:
        assert process is None


# Compares the kernels that calls load with those that a description of them needs.
COMPARE = """
import numpy as np
from fastece.data.rehearsal import rehearse
from fastece.inference.compare import compare, compile_comparison
from fastece.inference.estimate import compile_estimate, estimate
from fastece.kernels.compiling import KERNELS
from fastece.resampling import ahead
from fastece.resampling.bootstrap import bootstrap, compile_bootstrap
from fastece.resampling.calibration_test import calibration_test, compile_test

rng = np.random.default_rng(0)
vectors = rng.dirichlet(np.ones(3), 300)
p = vectors[:, 0]
y = rng.integers(0, 3, 300)
needed = set()
ahead.compile_backwards = lambda call: needed.update(map(tuple, rehearse(call)))
works = {
    estimate: compile_estimate, bootstrap: compile_bootstrap, calibration_test: compile_test,
    compare: compile_comparison,
}
calls = [
    (estimate, y // 2, p, {"estimator": "ece_bayes"}),
    (estimate, y // 2, p, {"estimator": "ece", "sample_weight": 1 + p}),
    (estimate, y, vectors.astype("f4"), {"estimator": "ece", "setting": "classwise"}),
    (bootstrap, y // 2, p, {"estimator": "ece", "groups": np.arange(300) // 3}),
    (bootstrap, y, vectors, {"estimator": "ece_ac", "setting": "classwise", "average": None}),
    (bootstrap, y // 2, p, {"estimator": "brier_score", "counts": 1 + y}),
    (calibration_test, y // 2, p, {"estimator": "adaptive"}),
    (calibration_test, y, vectors, {"estimator": "ece_c", "setting": "classwise"}),
    (compare, y // 2, p, {"estimator": "ece_bayes"}),
    (compare, y, vectors, {"estimator": "ece", "method": "basic", "setting": 1}),
]
for function, labels, prob, options in calls:
    works[function](*ahead.describe_call(prob, options))
    models = [prob, prob[::-1].copy()] if function is compare else [prob]
    function(labels, *models, n_resamples=99, rng=0, **options)
loaded = {(kernel, types) for kernel in KERNELS for types in kernel.overloads}
is_compiled = any(kernel.stats.cache_misses for kernel in KERNELS)
print(is_compiled, [kernel.__name__ for kernel, _ in loaded - needed])
"""


def kernels_not_described():
    """Names of kernels that calls load and no description needs, if none was compiled."""
    environment = os.environ | {
        "FASTECE_ONE_PROCESS": "1", "NUMBA_DISABLE_JIT": "0",
        "PYTHONPATH": str(Path(fastece.__file__).parents[1]),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", COMPARE],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_descriptions_need_the_kernels_that_calls_load():
    kernels_not_described()  # which may compile, and then has kernels that others call
    assert kernels_not_described() == "False []\n"
