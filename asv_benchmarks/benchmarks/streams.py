"""Streams on one thread: batches that are added up, and states that are merged."""

from functools import partial
from typing import Any

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.common import Beside


def accumulator(*args: Any, **options: Any) -> Any:
    """One, if the measured version has it."""
    if not hasattr(fastece, "Accumulator"):
        raise NotImplementedError
    return fastece.Accumulator(*args, **options)


class Update(Beside):
    """A million rows into a stream, beside their calibration error in memory."""

    params = (["binary", "confidence", "auto"], [1_000_000])
    param_names = ("setting", "n")

    def setup(self, setting: str, n: int) -> None:
        """Make the data."""
        if setting == "binary":
            y, p = baselines.binary("uniform", n)
        else:
            y, p = baselines.class_vectors(n, 10)
        state = accumulator(None if setting == "binary" else 10, setting=setting)
        self.call = partial(state.update, y, p)
        self.other = partial(fastece.ece, y, p)

    def track_ns_per_row(self, setting: str, n: int) -> float:  # noqa: ARG002
        """Time of a row, checks and all."""
        self.call()
        return 1e9 * min(baselines.seconds_of(self.call, 1) for _ in range(5)) / n

    track_ns_per_row.unit = "ns"  # type: ignore[attr-defined]


class Metric(Beside):
    """A batch of training, of ten classes, beside the error of its rows."""

    params = ([256],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the data and compile, which `--quick` would count."""
        accumulator()
        from fastece.streams.metric import CalibrationMetric

        y, p = baselines.class_vectors(n, 10)
        self.call = partial(CalibrationMetric(10).update, p, y)
        self.other = partial(fastece.ece, y, p)
        self.call()


class Replicates:
    """Rows into a stream with 200 replicates."""

    params = ([False, True], [100_000])
    param_names = ("grouped", "n")
    replicates = 200

    def setup(self, grouped: bool, n: int) -> None:
        """Make the data."""
        y, p = baselines.binary("uniform", n)
        groups = np.arange(n) // 10 if grouped else None
        state = accumulator(n_replicates=self.replicates, seed=0)
        self.call = partial(state.update, y, p, groups=groups)

    def track_ns_per_row_and_replicate(self, grouped: bool, n: int) -> float:  # noqa: ARG002
        """Time of a row in each replicate."""
        self.call()
        seconds = min(baselines.seconds_of(self.call, 1) for _ in range(3))
        return 1e9 * seconds / n / self.replicates

    track_ns_per_row_and_replicate.unit = "ns"  # type: ignore[attr-defined]


class Merge:
    """Two states of a binary stream."""

    params = ([1_000_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the states."""
        y, p = baselines.binary("uniform", n)
        self.state, self.other = accumulator().update(y, p), accumulator().update(y, p)

    def time_merge(self, n: int) -> None:  # noqa: ARG002
        """One into the other."""
        self.state.merge(self.other)

    def track_bytes(self, n: int) -> int:  # noqa: ARG002
        """Size of a state."""
        return int(self.state.nbytes)

    track_bytes.unit = "bytes"  # type: ignore[attr-defined]
