"""Calls whose speed pytest-benchmark compares, before and after an edit.

`asv_benchmarks/README.md` has the commands. In the usual run, pytest-benchmark is disabled, and
each call is made once on few rows.
"""

import math

import pytest

import fastece
from benchmarks import baselines
from helpers.samples import CALIBRATION_ERRORS


@pytest.mark.representative(4)
@pytest.mark.parametrize("n", [10_000, 1_000_000])
@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("estimator", CALIBRATION_ERRORS)
def test_speed_of_calls(benchmark, estimator, setting, n):
    y, p = baselines.draw_data(setting, 300 if benchmark.disabled else n)
    # The first call compiles; the benchmark makes as many rounds as its time allows.
    fastece.ece(y, p, estimator=estimator, setting=setting)
    value = benchmark(fastece.ece, y, p, estimator=estimator, setting=setting)
    assert math.isfinite(value)


@pytest.mark.representative(2)
@pytest.mark.parametrize("n", [100, 50_000])
@pytest.mark.parametrize("estimator", [*CALIBRATION_ERRORS, "all"])
def test_speed_of_bootstrap(benchmark, estimator, n):
    if benchmark.disabled:
        n = 60
        replicates = 32
    else:
        replicates = baselines.count_replicates(n)
    y, p = baselines.draw_data("binary", n)
    names = CALIBRATION_ERRORS if estimator == "all" else [estimator]
    fastece.bootstrap(y, p, estimator=names, n_resamples=1)
    results = benchmark(fastece.bootstrap, y, p, estimator=names, n_resamples=replicates, rng=0)
    assert all(math.isfinite(results[name].standard_error) for name in names)
