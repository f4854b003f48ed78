"""What the benchmarks share. Data, idioms and clock are those of the checkout that these benchmarks
lie in, whatever version of the package is measured."""

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import fastece

FOLDER = Path(__file__).parents[1]


def load_bench() -> Any:
    """`fastece/bench.py` beside these benchmarks: the measured package may have another or none."""
    spec: Any = spec_from_file_location("yardstick", FOLDER.parent / "fastece" / "bench.py")
    sys.modules["yardstick"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load_bench()


class Single(ABC):
    """A benchmark of one call; abstract, so that asv does not run it."""

    timeout = 180.0
    call: Callable[[], Any]
    idiom: Callable[[], Any]

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Make the data; set `call` and `idiom`, and call the first once, to compile."""

    def time_ece(self, *params: Any) -> None:  # noqa: ARG002
        """Time of one call."""
        self.call()

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one call over that of the numpy idiom: less is better, as asv takes it."""
        return round(1 / bench.ratio(self.call, self.idiom), 4)

    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


def run_fresh(code: str, **environment: str) -> str:
    """Standard output of a new process, which imports the same package, and these benchmarks."""
    paths = [Path(fastece.__file__).parents[1], FOLDER]
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **environment},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
