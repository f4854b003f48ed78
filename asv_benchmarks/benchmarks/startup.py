"""Start-up: whole processes, from their start to their end."""

import re
import sys
from math import nan
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError
from typing import Any

import fastece
from benchmarks import baselines
from benchmarks.common import FOLDER, run_fresh

sys.path.append(str(FOLDER.parent / "scripts" / "evidence"))
import first_calls

MEASURED = Path(fastece.__file__).parents[1]
KERNELS = {
    name
    for path in MEASURED.glob("fastece/kernels/*.py")
    for name in re.findall(r"^@jit\ndef (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}
IMPORT = "import fastece"
FIRST_CALL = "import fastece; fastece.ece([0, 1, 1], [0.2, 0.6, 0.9])"


class StartUp:
    """A new process that imports, or imports and calls, with kept kernels."""

    # What is run, what it is held against, and how many rounds noise and patience allow.
    CASES = {  # noqa: RUF012
        "import": (IMPORT, "import numpy", 9),
        "first call": (FIRST_CALL, "import numpy, numba", 5),
    }
    params = (list(CASES),)
    param_names = ("case",)
    timeout = 300.0

    def setup(self, case: str) -> None:
        """Fill the caches of files."""
        self.code, self.base, self.rounds = self.CASES[case]
        self.start()

    def start(self) -> None:
        """One process."""
        run_fresh(self.code)

    def track_seconds(self, case: str) -> float:  # noqa: ARG002
        """Time of one process."""
        return median(baselines.seconds_of(self.start, 1) for _ in range(self.rounds))

    def track_ratio_to_numpy(self, case: str) -> float:  # noqa: ARG002
        """The same over a process that imports numpy, or numpy and numba, and nothing else."""
        race = baselines.race(self.start, lambda: run_fresh(self.base), self.rounds)
        return round(1 / race.ratio, 4)

    track_seconds.unit = "s"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class FirstCalls:
    """A new process with an empty folder of kernels, for each row of the table of first calls."""

    params = (list(first_calls.CALLS),)
    param_names = ("call",)

    def setup_cache(self) -> dict[str, Any]:
        """Make each call once: what it takes, or nan if the measured version refuses it."""
        found: dict[str, Any] = {}
        for name, call in first_calls.CALLS.items():
            try:
                found[name] = first_calls.measure(call, MEASURED)
            except (CalledProcessError, ValueError):
                found[name] = (nan, nan, nan, {})
        return found

    setup_cache.timeout = 1800  # type: ignore[attr-defined]

    def track_seconds(self, found: dict[str, Any], name: str) -> float:
        """From the start of the process to its end."""
        return float(found[name][0])

    def track_processor_seconds(self, found: dict[str, Any], name: str) -> float:
        """The same of all processors, whatever else they do."""
        return float(found[name][1])

    def track_kernels(self, found: dict[str, Any], name: str) -> float:
        """Signatures that the process compiles."""
        return float(found[name][2])

    track_seconds.unit = track_processor_seconds.unit = "s"  # type: ignore[attr-defined]
    track_kernels.unit = "kernels"  # type: ignore[attr-defined]


class Compile:
    """Each kernel alone, as it is compiled for the whole page of the demonstration."""

    params = (sorted(KERNELS),)
    param_names = ("kernel",)
    setup_cache = FirstCalls.setup_cache

    def track_seconds(self, found: dict[str, Any], name: str) -> float:
        """Seconds of all its signatures, without those of kernels that it calls."""
        demo = found["`fastece demo --full`"][3] or found["`fastece demo`"][3]
        return float(demo.get(name, nan))

    track_seconds.unit = "s"  # type: ignore[attr-defined]
