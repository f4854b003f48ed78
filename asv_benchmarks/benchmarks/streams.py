"""Streams on one thread: batches that are added up, and states that are merged."""

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.baselines import N_CLASSES
from benchmarks.common import Benchmark, Beside, require

# Modules that have `CalibrationMetric` in this version and in older ones.
METRIC_MODULES = ("fastece.streams.metric", "fastece.training")


def make_accumulator(*args: Any, **options: Any) -> Any:
    """Make an accumulator; asv skips versions of fastece that lack it."""
    require("Accumulator")
    return fastece.Accumulator(*args, **options)


def make_metric() -> Any:
    """Make a metric of a training loop; asv skips versions of fastece that lack it."""
    for module_name in METRIC_MODULES:
        try:
            module = import_module(module_name)
        except ImportError:
            continue
        return module.CalibrationMetric(N_CLASSES)
    raise NotImplementedError


class Update(Beside):
    """Measure rows that enter a stream, beside their calibration error in memory."""

    params = (["binary", "confidence", "auto"], [1_000_000])
    param_names = ("setting", "n")

    def setup(self, setting: str, n: int) -> None:
        """Draw the data."""
        if setting == "binary":
            y, p = baselines.draw_binary("uniform", n)
            state = make_accumulator(setting=setting)
        else:
            y, p = baselines.draw_class_vectors(n, N_CLASSES)
            state = make_accumulator(N_CLASSES, setting=setting)
        self.call = partial(state.update, y, p)
        self.other = partial(fastece.ece, y, p)

    def track_ns_per_row(self, setting: str, n: int) -> float:  # noqa: ARG002
        """Measure one row with its checks in nanoseconds."""
        self.call()
        return 1e9 * min(baselines.measure_seconds(self.call, 1) for _ in range(5)) / n

    track_ns_per_row.unit = "ns"  # type: ignore[attr-defined]


class Metric(Beside):
    """Measure a batch of a training loop, beside the error of its rows.

    Rows have ten classes.
    """

    params = ([256],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Draw the data and compile, which `--quick` would count."""
        y, p = baselines.draw_class_vectors(n, N_CLASSES)
        self.call = partial(make_metric().update, p, y)
        self.other = partial(fastece.ece, y, p)
        self.call()


class Replicates(Benchmark):
    """Measure rows that enter a stream with 200 replicates."""

    params = ([False, True], [100_000])
    param_names = ("grouped", "n")
    replicates = 200

    def setup(self, grouped: bool, n: int) -> None:
        """Draw the data."""
        y, p = baselines.draw_binary("uniform", n)
        groups = np.arange(n) // 10 if grouped else None
        state = make_accumulator(n_replicates=self.replicates, seed=0)
        self.call = partial(state.update, y, p, groups=groups)

    def track_ns_per_row_and_replicate(self, grouped: bool, n: int) -> float:  # noqa: ARG002
        """Measure one row of one replicate in nanoseconds."""
        self.call()
        seconds = min(baselines.measure_seconds(self.call, 1) for _ in range(3))
        return 1e9 * seconds / n / self.replicates

    track_ns_per_row_and_replicate.unit = "ns"  # type: ignore[attr-defined]


class Merge(Benchmark):
    """Measure two states of a binary stream."""

    params = ([1_000_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the states."""
        y, p = baselines.draw_binary("uniform", n)
        self.state = make_accumulator().update(y, p)
        self.other = make_accumulator().update(y, p)

    def time_merge(self, n: int) -> None:  # noqa: ARG002
        """Merge one state into the other."""
        self.state.merge(self.other)

    def track_bytes(self, n: int) -> int:  # noqa: ARG002
        """Return the size of a state in bytes."""
        return int(self.state.nbytes)

    track_bytes.unit = "bytes"  # type: ignore[attr-defined]
