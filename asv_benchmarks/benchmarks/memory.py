"""Peak memory of one call beyond its input, in a process for each number."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.baselines import SHAPES
from benchmarks.common import CALLS, ESTIMATORS, Benchmark, require, run_fresh

# Writes the data to files. Another process reads them without a temporary array, after importing
# and compiling. The data are larger than the memory that these left free, so the peak before the
# measured call is the memory in use at that moment.
WRITE_DATA = """
import numpy as np
from benchmarks import baselines
y, p = baselines.draw_binary("{shape}", {n})
np.save("{folder}/y.npy", y.astype("{label_type}"))
np.save("{folder}/p.npy", p.astype("{score_type}"))
"""

# Makes as many replicates as keep two threads busy; the peak does not grow with more.
BOOTSTRAP = "fastece.bootstrap(y, p, estimator={names}, n_resamples=256, n_jobs={n_jobs})"

# Prints the peak of the second call beyond its input, in units of 1e6 bytes. The first call, on few
# rows, compiles. Linux records the peak of the process itself in a file; its getrusage starts from
# the peak of the parent.
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

y, p = baselines.draw_binary("uniform", 1000)
y, p = y.astype("{label_type}"), p.astype("{score_type}")
{call}
y, p = np.load("{folder}/y.npy"), np.load("{folder}/p.npy")
before = peak()
{call}
print((peak() - before) / 1e6)
"""


class Memory(Benchmark):
    """Measure single calls on uniform scores, for several types of labels and scores.

    The input takes 50 to 160 MB.
    """

    params: tuple[list[Any], ...] = (
        CALLS,
        ["int64, float64", "int64, float32", "bool, float64"],
        [10_000_000],
    )
    param_names: tuple[str, ...] = ("call", "kinds", "n")

    def setup(self, *params: Any) -> None:
        """Write the data to files, with the number of rows in the last parameter."""
        self.write_data("uniform", params[1], params[-1])

    def write_data(self, shape: str, kinds: str, n: int) -> None:
        """Write n scores of a shape, and labels, of these kinds to files."""
        if sys.platform == "win32":
            raise NotImplementedError("Windows does not report the peak of memory")
        label_type, score_type = kinds.split(", ")
        self.folder = TemporaryDirectory()
        self.data = {
            "n": n,
            "folder": Path(self.folder.name).as_posix(),
            "label_type": label_type,
            "score_type": score_type,
        }
        run_fresh(WRITE_DATA.format(shape=shape, **self.data))

    def teardown(self, *params: Any) -> None:  # noqa: ARG002
        """Remove the files."""
        self.folder.cleanup()

    def code(self, *params: Any) -> str:
        """Return the source of the measured call."""
        return f"common.find_call({params[0]!r})(y, p)"

    def track_extra_megabytes(self, *params: Any) -> float:
        """Measure the peak of memory beyond the input, in units of 1e6 bytes."""
        return float(run_fresh(MEASURE.format(call=self.code(*params), **self.data)))

    track_extra_megabytes.unit = "MB"  # type: ignore[attr-defined]


class ShapesMemory(Memory):
    """Measure bins of equal width and of equal mass on scores of which many are alike."""

    params = (["ece", "ece_a"], [name for name in SHAPES if name != "uniform"], [10_000_000])
    param_names = ("call", "scores", "n")

    def setup(self, *params: Any) -> None:
        """Write scores of the shape to files."""
        _, shape, n = params
        self.write_data(shape, "int64, float64", n)


class BootstrapMemory(Memory):
    """Measure replicates of every estimator, and of all estimators in one call."""

    params = ([*ESTIMATORS, "all"], ["int64, float64"], [1, 2], [1_000_000])
    param_names = ("estimator", "kinds", "n_jobs", "n")

    def setup(self, *params: Any) -> None:
        """Write the data to files, if the measured version has the bootstrap."""
        require("bootstrap")
        super().setup(*params)

    def code(self, *params: Any) -> str:
        """Return the source of the measured call."""
        estimator, _, n_jobs, _ = params
        names = ESTIMATORS if estimator == "all" else [estimator]
        return BOOTSTRAP.format(names=names, n_jobs=n_jobs)
