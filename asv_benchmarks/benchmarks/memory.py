"""Peak memory of one call beyond its input, in processes of their own."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import fastece
from benchmarks.common import run_fresh

# Made by another process and read without a temporary array: the data come last and are larger
# than what imports and compiling left free, so the peak before the call is what is held then.
MAKE = """
import numpy as np
from benchmarks.common import bench
y, p = bench.binary("uniform", {n})
np.save("{folder}/y.npy", y), np.save("{folder}/p.npy", p)
"""

CALLS = {
    "fastece": "fastece.ece(y, p, estimator={estimator!r})",
    "numpy": "bench.find_idiom({estimator!r})[1](y, p)",
}

# Linux has the peak of the process itself; its getrusage starts from the parent's.
MEASURE = """
import sys
import fastece, numpy as np
from benchmarks.common import bench

def peak():
    try:
        with open("/proc/self/status") as status:
            return 1024 * next(int(line.split()[1]) for line in status if line[:6] == "VmHWM:")
    except OSError:
        import resource
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

y, p = bench.binary("uniform", 1000)
{call}
y, p = np.load("{folder}/y.npy"), np.load("{folder}/p.npy")
before = peak()
{call}
print((peak() - before) / 1e6)
"""


class Memory:
    """Every estimator of the table on uniform scores; 160 MB of input for ten million."""

    params = (list(fastece.ESTIMATORS), [10_000_000])
    param_names = ("estimator", "n")
    timeout = 180.0

    def setup(self, estimator: str, n: int) -> None:  # noqa: ARG002
        """Keep the data as files."""
        if sys.platform == "win32":
            raise NotImplementedError("no peak of memory to ask for")
        self.folder = TemporaryDirectory()
        run_fresh(MAKE.format(n=n, folder=Path(self.folder.name).as_posix()))

    def teardown(self, estimator: str, n: int) -> None:  # noqa: ARG002
        """Remove the files."""
        self.folder.cleanup()

    def extra(self, estimator: str, who: str) -> float:
        """Megabytes beyond the input."""
        call = CALLS[who].format(estimator=estimator)
        folder = Path(self.folder.name).as_posix()
        return float(run_fresh(MEASURE.format(call=call, folder=folder)))

    def track_extra_megabytes(self, estimator: str, n: int) -> float:  # noqa: ARG002
        """Peak beyond the input, in units of 1e6 bytes."""
        return self.extra(estimator, "fastece")

    def track_ratio_to_numpy(self, estimator: str, n: int) -> float:  # noqa: ARG002
        """The same over that of the numpy idiom."""
        return round(self.extra(estimator, "fastece") / self.extra(estimator, "numpy"), 4)

    track_extra_megabytes.unit = "MB"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]
