"""Peak memory of one call beyond its input, in processes of their own."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fastece
from benchmarks.common import CALLS, ESTIMATORS, run_fresh

# Made by another process and read without a temporary array: the data come last and are larger
# than what imports and compiling left free, so the peak before the call is what is held then.
MAKE = """
import numpy as np
from benchmarks import baselines
y, p = baselines.binary("uniform", {n})
np.save("{folder}/y.npy", y.astype("{label}")), np.save("{folder}/p.npy", p.astype("{prob}"))
"""

DRAWS = "fastece.bootstrap(y, p, estimator={names}, n_resamples=256, n_jobs={n_jobs})"

# Linux has the peak of the process itself; its getrusage starts from the parent's.
MEASURE = """
import sys
import fastece, numpy as np
from benchmarks import baselines, common

def peak():
    try:
        with open("/proc/self/status") as status:
            return 1024 * next(int(line.split()[1]) for line in status if line[:6] == "VmHWM:")
    except OSError:
        import resource
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

y, p = baselines.binary("uniform", 1000)
y, p = y.astype("{label}"), p.astype("{prob}")
{call}
y, p = np.load("{folder}/y.npy"), np.load("{folder}/p.npy")
before = peak()
{call}
print((peak() - before) / 1e6)
"""


class Memory:
    """Single calls on uniform scores, for kinds of labels and scores: 50 to 160 MB of input."""

    params: tuple[list[Any], ...] = (
        CALLS,
        ["int64, float64", "int64, float32", "bool, float64"],
        [10_000_000],
    )
    param_names: tuple[str, ...] = ("call", "kinds", "n")
    timeout = 180.0

    def setup(self, *params: Any) -> None:
        """Keep the data, as many rows as the last parameter says, as files."""
        if sys.platform == "win32":
            raise NotImplementedError("no peak of memory to ask for")
        self.folder = TemporaryDirectory()
        self.places = {"n": params[-1], "folder": Path(self.folder.name).as_posix()}
        self.places["label"], self.places["prob"] = params[1].split(", ")
        run_fresh(MAKE.format(**self.places))

    def teardown(self, *params: Any) -> None:  # noqa: ARG002
        """Remove the files."""
        self.folder.cleanup()

    def code(self, *params: Any) -> str:
        """What is measured."""
        return f"common.call_of({params[0]!r})(y, p)"

    def track_extra_megabytes(self, *params: Any) -> float:
        """Peak beyond the input, in units of 1e6 bytes."""
        return float(run_fresh(MEASURE.format(call=self.code(*params), **self.places)))

    track_extra_megabytes.unit = "MB"  # type: ignore[attr-defined]


class BootstrapMemory(Memory):
    """Replicates of every estimator, and of all in one call: as many as keep two threads busy; the
    peak does not grow with more."""

    params = ([*ESTIMATORS, "all"], ["int64, float64"], [1, 2], [1_000_000])
    param_names = ("estimator", "kinds", "n_jobs", "n")

    def setup(self, *params: Any) -> None:
        """Keep the data as files, if there is something to measure."""
        if not hasattr(fastece, "bootstrap"):
            raise NotImplementedError
        super().setup(*params)

    def code(self, *params: Any) -> str:
        """What is measured."""
        estimator, _, n_jobs, _ = params
        names = ESTIMATORS if estimator == "all" else [estimator]
        return DRAWS.format(names=names, n_jobs=n_jobs)
