"""Calls whose speed pytest-benchmark compares, before and after an edit.

`asv_benchmarks/README.md` has the commands. In the usual run, pytest-benchmark is disabled, and
each call is made once on few rows.
"""

import math

import pytest

import fastece
from benchmarks import baselines
from helpers.samples import CALIBRATION_ERRORS


@pytest.mark.parametrize("estimator", CALIBRATION_ERRORS)
def test_speed_of_calls(benchmark, estimator):
    y, p = baselines.draw_data("binary", 300 if benchmark.disabled else 10_000)
    # The first call compiles; the benchmark makes as many rounds as its time allows.
    fastece.ece(y, p, estimator=estimator)
    value = benchmark(fastece.ece, y, p, estimator=estimator)
    assert math.isfinite(value)


@pytest.mark.parametrize("estimator", CALIBRATION_ERRORS)
def test_speed_of_bootstrap(benchmark, estimator):
    n, replicates = (60, 32) if benchmark.disabled else (50_000, 320)
    y, p = baselines.draw_data("binary", n)
    fastece.bootstrap(y, p, estimator=estimator, n_resamples=1)
    result = benchmark(fastece.bootstrap, y, p, estimator=estimator, n_resamples=replicates, rng=0)
    assert math.isfinite(result.standard_error)
