"""Local comparison of two states of the code; `asv_benchmarks/README.md` says how. In the usual
run, where pytest-benchmark is disabled, each runs once on few rows."""

import math

import pytest

import fastece
from benchmarks import baselines
from helpers.samples import CALIBRATION_ERRORS


@pytest.mark.representative(4)
@pytest.mark.parametrize("n", [10_000, 1_000_000])
@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("estimator", CALIBRATION_ERRORS)
def test_speed(benchmark, estimator, setting, n):
    y, p = baselines.data_of(setting, 300 if benchmark.disabled else n)
    fastece.ece(y, p, estimator=estimator, setting=setting)  # compiles: rounds are as many as fit
    value = benchmark(fastece.ece, y, p, estimator=estimator, setting=setting)
    assert math.isfinite(value)


@pytest.mark.representative(2)
@pytest.mark.parametrize("n", [100, 50_000])
@pytest.mark.parametrize("estimator", [*CALIBRATION_ERRORS, "all"])
def test_speed_of_bootstrap(benchmark, estimator, n):
    n, replicates = (60, 32) if benchmark.disabled else (n, baselines.replicates_of(n))
    y, p = baselines.data_of("binary", n)
    names = CALIBRATION_ERRORS if estimator == "all" else [estimator]
    fastece.bootstrap(y, p, estimator=names, n_resamples=1)
    results = benchmark(fastece.bootstrap, y, p, estimator=names, n_resamples=replicates, rng=0)
    assert [math.isfinite(results[name].standard_error) for name in names] == [True] * len(names)
