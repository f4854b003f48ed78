"""Local comparison of two states of the code; `asv_benchmarks/README.md` says how. In the usual
run, where pytest-benchmark is disabled, each runs once on few rows."""

import math

import pytest

import fastece
from fastece import bench


@pytest.mark.parametrize("n", [10_000, 1_000_000])
@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("estimator", fastece.ESTIMATORS)
def test_speed(benchmark, estimator, setting, n):
    y, p = bench.data_of(setting, 300 if benchmark.disabled else n)
    fastece.ece(y, p, estimator=estimator, setting=setting)  # compiles: rounds are as many as fit
    value = benchmark(fastece.ece, y, p, estimator=estimator, setting=setting)
    assert math.isfinite(value)
