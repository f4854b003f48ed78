"""Start-up: whole processes, from their start to their end."""

from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import baselines
from benchmarks.common import run_fresh

IMPORT = "import fastece"
FIRST_CALL = "import fastece; fastece.ece([0, 1, 1], [0.2, 0.6, 0.9])"


class StartUp:
    """A new process that imports, or imports and calls, with kept kernels or without any."""

    # What is run, what it is held against, and how many rounds noise and patience allow.
    CASES = {  # noqa: RUF012
        "import": (IMPORT, "import numpy", 9),
        "first call": (FIRST_CALL, "import numpy, numba", 5),
        "first call, nothing compiled": (FIRST_CALL, "import numpy, numba", 1),
    }
    params = (list(CASES),)
    param_names = ("case",)
    timeout = 300.0

    def setup(self, case: str) -> None:
        """Fill the caches of files."""
        self.code, self.base, self.rounds = self.CASES[case]
        self.empty = case.endswith("nothing compiled")
        if not self.empty:
            self.start()

    def start(self) -> None:
        """One process."""
        if not self.empty:
            run_fresh(self.code)
            return
        with TemporaryDirectory() as folder:
            run_fresh(self.code, FASTECE_CACHE_DIR=folder)

    def track_seconds(self, case: str) -> float:  # noqa: ARG002
        """Time of one process."""
        return median(baselines.seconds_of(self.start, 1) for _ in range(self.rounds))

    def track_ratio_to_numpy(self, case: str) -> float:  # noqa: ARG002
        """The same over a process that imports numpy, or numpy and numba, and nothing else."""
        race = baselines.race(self.start, lambda: run_fresh(self.base), self.rounds)
        return round(1 / race.ratio, 4)

    track_seconds.unit = "s"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]
