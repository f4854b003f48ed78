"""Every benchmark runs, at its smallest size, and measures the function it names."""

import importlib
import inspect
import sys
from pathlib import Path

import pytest

import fastece

FOLDER = Path(__file__).parents[1] / "asv_benchmarks"


def benchmark_classes():
    sys.path.insert(0, str(FOLDER))
    try:
        for path in sorted((FOLDER / "benchmarks").glob("[a-z]*.py")):
            module = importlib.import_module(f"benchmarks.{path.stem}")
            for _, found in inspect.getmembers(module, inspect.isclass):
                if found.__module__ == module.__name__:
                    yield found
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("found", list(benchmark_classes()), ids=lambda found: found.__name__)
def test_benchmark_runs_and_calls_what_it_names(found, monkeypatch):
    smallest = [min(values) if isinstance(values[0], int) else values[0] for values in found.params]
    called = []
    real = fastece.ece
    monkeypatch.setattr(fastece, "ece", lambda *a, **k: called.append("ece") or real(*a, **k))
    benchmark = found()
    benchmark.setup(*smallest)
    methods = [name for name in dir(found) if name.startswith(("time_", "track_"))]
    assert methods
    for name in methods:
        called.clear()
        result = getattr(benchmark, name)(*smallest)
        assert called, name
        assert result is None if name.startswith("time_") else result > 0


def test_the_idiom_it_is_compared_with_is_the_same_number():
    sys.path.insert(0, str(FOLDER))
    try:
        from benchmarks.common import (
            SHAPES,
            binary,
            class_vectors,
            numpy_classwise,
            numpy_confidence,
            numpy_ece,
        )
    finally:
        sys.path.remove(str(FOLDER))
    for shape in SHAPES:
        y, p = binary(shape, 1000)
        if shape != "tied":  # the idiom puts some edges on the wrong side
            assert fastece.ece(y, p) == pytest.approx(numpy_ece(y, p), abs=1e-12)
    y, p = class_vectors(500, 10, "float64")
    assert fastece.ece(y, p) == pytest.approx(numpy_confidence(y, p), abs=1e-12)
    assert fastece.sce(y, p) == pytest.approx(numpy_classwise(y, p), abs=1e-12)
