"""Peak memory of one call beyond its input, in processes of their own."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fastece
from benchmarks.common import ESTIMATORS, run_fresh

# Made by another process and read without a temporary array: the data come last and are larger
# than what imports and compiling left free, so the peak before the call is what is held then.
MAKE = """
import numpy as np
from benchmarks import baselines
y, p = baselines.binary("uniform", {n})
np.save("{folder}/y.npy", y), np.save("{folder}/p.npy", p)
"""

CALLS = {
    "fastece": "fastece.ece(y, p, estimator={estimator!r})",
    "numpy": "baselines.find_baseline({estimator!r})[1](y, p)",
}

DRAWS = {
    "fastece": "fastece.bootstrap(y, p, estimator={estimators}, n_resamples=256, n_jobs={n_jobs})",
    "numpy": """
values = [baselines.value_on_rows(name, y, p) for name in {estimators}]
baselines.resample(values, y.size, y.size, 2)
""",
}

# Linux has the peak of the process itself; its getrusage starts from the parent's.
MEASURE = """
import sys
import fastece, numpy as np
from benchmarks import baselines

def peak():
    try:
        with open("/proc/self/status") as status:
            return 1024 * next(int(line.split()[1]) for line in status if line[:6] == "VmHWM:")
    except OSError:
        import resource
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

y, p = baselines.binary("uniform", 1000)
{call}
y, p = np.load("{folder}/y.npy"), np.load("{folder}/p.npy")
before = peak()
{call}
print((peak() - before) / 1e6)
"""


class Memory:
    """Every estimator of the table on uniform scores; 160 MB of input for ten million."""

    params: tuple[list[Any], ...] = (ESTIMATORS, [10_000_000])
    param_names: tuple[str, ...] = ("estimator", "n")
    timeout = 180.0

    def setup(self, *params: Any) -> None:
        """Keep the data, as many rows as the last parameter says, as files."""
        if sys.platform == "win32":
            raise NotImplementedError("no peak of memory to ask for")
        self.folder = TemporaryDirectory()
        run_fresh(MAKE.format(n=params[-1], folder=Path(self.folder.name).as_posix()))

    def teardown(self, *params: Any) -> None:  # noqa: ARG002
        """Remove the files."""
        self.folder.cleanup()

    def code(self, who: str, *params: Any) -> str:
        """What is measured."""
        return CALLS[who].format(estimator=params[0])

    def extra(self, who: str, *params: Any) -> float:
        """Megabytes beyond the input."""
        folder = Path(self.folder.name).as_posix()
        return float(run_fresh(MEASURE.format(call=self.code(who, *params), folder=folder)))

    def track_extra_megabytes(self, *params: Any) -> float:
        """Peak beyond the input, in units of 1e6 bytes."""
        return self.extra("fastece", *params)

    def track_ratio_to_numpy(self, *params: Any) -> float:
        """The same over that of the numpy baseline."""
        return round(self.extra("fastece", *params) / self.extra("numpy", *params), 4)

    track_extra_megabytes.unit = "MB"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class BootstrapMemory(Memory):
    """Replicates of every estimator, and of all in one call: as many as keep two threads busy; the
    peak does not grow with more."""

    params = ([*ESTIMATORS, "all"], [1, 2], [1_000_000])
    param_names = ("estimator", "n_jobs", "n")

    def setup(self, *params: Any) -> None:
        """Keep the data as files, if there is something to measure."""
        if not hasattr(fastece, "bootstrap"):
            raise NotImplementedError
        super().setup(*params)

    def code(self, who: str, *params: Any) -> str:
        """What is measured."""
        estimator, n_jobs, _ = params
        names = ESTIMATORS if estimator == "all" else [estimator]
        return DRAWS[who].format(estimators=names, n_jobs=n_jobs)
