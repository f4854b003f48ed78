"""Start-up: whole processes, from their start to their end."""

import re
import sys
from math import nan
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import NamedTuple

import fastece
from benchmarks import baselines
from benchmarks.common import FOLDER, Benchmark, run_fresh

sys.path.append(str(FOLDER.parent / "scripts" / "evidence"))
import first_calls

CHECKOUT = Path(fastece.__file__).parents[1]
KERNELS = {
    name
    for path in CHECKOUT.glob("fastece/kernels/*.py")
    for name in re.findall(r"^@jit\ndef (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}
# Times of a call that the measured version refuses.
NO_CALL = first_calls.FirstCall(nan, nan, nan, nan, {})
IMPORT = "import fastece"
FIRST_CALL = "import fastece; fastece.ece([0, 1, 1], [0.2, 0.6, 0.9])"


class StartUp(Benchmark):
    """Measure new processes that import, or also call, with compiled kernels."""

    class Case(NamedTuple):
        """The code of a process, the code to compare it with, and the number of rounds.

        A process that takes longer gets fewer rounds.
        """

        code: str
        baseline: str
        rounds: int

    CASES = {  # noqa: RUF012
        "import": Case(IMPORT, "import numpy", rounds=9),
        "first call": Case(FIRST_CALL, "import numpy, numba", rounds=5),
    }
    params = (list(CASES),)
    param_names = ("case",)
    # The processes run one after another, and the first of them may compile.
    timeout = 300.0

    def setup(self, name: str) -> None:
        """Run the process once, which compiles and brings files into memory."""
        self.case = self.CASES[name]
        self.start()

    def start(self) -> None:
        """Run one process."""
        run_fresh(self.case.code)

    def track_seconds(self, name: str) -> float:  # noqa: ARG002
        """Measure the seconds of one process."""
        times = [baselines.measure_seconds(self.start, 1) for _ in range(self.case.rounds)]
        return median(times)

    def track_ratio_to_numpy(self, name: str) -> float:  # noqa: ARG002
        """Divide by the time of a process that imports numpy, or numpy and numba, alone."""

        def start_baseline() -> None:
            run_fresh(self.case.baseline)

        return round(1 / baselines.race(self.start, start_baseline, self.case.rounds).ratio, 4)

    track_seconds.unit = "s"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


def measure_calls(checkout: Path) -> dict[str, first_calls.FirstCall]:
    """Make each first call once; all times are nan where the version refuses it."""
    results: dict[str, first_calls.FirstCall] = {}
    for name, call in first_calls.CALLS.items():
        try:
            results[name] = first_calls.measure(call, checkout)
        except (CalledProcessError, ValueError):
            results[name] = NO_CALL
    return results


class FirstCalls(Benchmark):
    """Measure first calls in new processes, whose folder of compiled kernels is empty."""

    params = (list(first_calls.CALLS),)
    param_names = ("call",)

    def setup_cache(self) -> dict[str, first_calls.FirstCall]:
        """Make each call once; all times are nan where the measured version refuses it."""
        return measure_calls(CHECKOUT)

    setup_cache.timeout = 1800  # type: ignore[attr-defined]

    def track_seconds(self, results: dict[str, first_calls.FirstCall], name: str) -> float:
        """Return the seconds from the start of the process to its end."""
        return results[name].seconds

    def track_processor_seconds(
        self, results: dict[str, first_calls.FirstCall], name: str
    ) -> float:
        """Return the seconds of all processors, which depend less on other processes."""
        return results[name].processor_seconds

    def track_small_functions(self, results: dict[str, first_calls.FirstCall], name: str) -> float:
        """Return the processor seconds, in units of compiling one fixed small function.

        The unit is measured just before the call, so that the number hardly depends on the machine.
        """
        return results[name].small_functions

    def track_kernels(self, results: dict[str, first_calls.FirstCall], name: str) -> float:
        """Return the number of signatures that the process compiles."""
        return float(results[name].n_kernels)

    track_seconds.unit = track_processor_seconds.unit = "s"  # type: ignore[attr-defined]
    track_small_functions.unit = "small functions"  # type: ignore[attr-defined]
    track_kernels.unit = "kernels"  # type: ignore[attr-defined]


class ShippedCalls(FirstCalls):
    """Measure first calls of a package that carries compiled kernels, as a wheel does."""

    def setup_cache(self) -> dict[str, first_calls.FirstCall]:
        """Compile kernels into a copy of the package, which takes minutes, and make each call."""
        with TemporaryDirectory() as folder:
            try:
                package = first_calls.ship_kernels(CHECKOUT, Path(folder))
            except (FileNotFoundError, CalledProcessError):
                return dict.fromkeys(first_calls.CALLS, NO_CALL)
            return measure_calls(package)

    setup_cache.timeout = 1800  # type: ignore[attr-defined]


class Compile(Benchmark):
    """Measure each kernel alone, as compiled for the whole page of the demonstration."""

    params = (sorted(KERNELS),)
    param_names = ("kernel",)
    setup_cache = FirstCalls.setup_cache

    def track_seconds(self, results: dict[str, first_calls.FirstCall], name: str) -> float:
        """Return the seconds of all signatures, without the kernels that the kernel calls.

        Versions that refuse `--full` are measured with the demonstration without options.
        """
        seconds_of_kernel = results["`fastece demo --full`"].seconds_of_kernel
        if not seconds_of_kernel:
            seconds_of_kernel = results["`fastece demo`"].seconds_of_kernel
        return float(seconds_of_kernel.get(name, nan))

    track_seconds.unit = "s"  # type: ignore[attr-defined]
