"""The classes that the benchmarks share."""

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import fastece
from benchmarks import baselines

FOLDER = Path(__file__).parents[1]


# The rows of the table, also of packages whose rows say less of themselves. Those that look at all
# pairs of rows have benchmarks of their own.
ROWS = {
    name: getattr(estimator, "is_calibration_error", True)
    for name, estimator in fastece.ESTIMATORS.items()
    if not getattr(estimator, "reads_pairs", False)
}
ESTIMATORS = [name for name, is_calibration_error in ROWS.items() if is_calibration_error]
# Single calls: these errors, the scores of the table, and a diagram.
CALLS = [*ROWS, "reliability_diagram"]


def call_of(name: str) -> Callable[..., Any]:
    """The call of an error, or the public function of this name."""
    return partial(fastece.ece, estimator=name) if name in ESTIMATORS else function_of(name)


def function_of(name: str) -> Any:
    """A public function, if the measured version has it."""
    if not hasattr(fastece, name):
        raise NotImplementedError
    return getattr(fastece, name)


class Single(ABC):
    """A benchmark of one call; abstract, so that asv does not run it."""

    timeout = 180.0
    call: Callable[[], Any]
    baseline: Callable[[], Any]

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Make the data; set `call` and `baseline`, and call the first once, to compile."""

    def time_ece(self, *params: Any) -> None:  # noqa: ARG002
        """Time of one call."""
        self.call()

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one call over that of the numpy baseline: less is better, as asv takes it."""
        return round(baselines.least_ratio(self.call, self.baseline), 4)

    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class Beside(ABC):
    """A benchmark of one call beside another; abstract, so that asv does not run it."""

    timeout = 180.0
    rounds = 7
    call: Callable[[], Any]
    other: Callable[[], Any]

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Make the data; set `call` and `other`."""

    def time_call(self, *params: Any) -> None:  # noqa: ARG002
        """Time of one call."""
        self.call()

    def track_ratio_to_other(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one call over that of the other: less is better, as asv takes it."""
        self.call()
        return round(1 / baselines.race(self.call, self.other, self.rounds).ratio, 4)

    track_ratio_to_other.unit = "of the other's"  # type: ignore[attr-defined]


def other_work() -> Callable[[], Any]:
    """What a program does between two calls: ranks of scipy, a norm of numpy, sorted text."""
    from scipy.stats import rankdata

    x = baselines.binary("uniform", 2000)[1]
    words = [f"{value:.3f}" for value in x]
    return lambda: (rankdata(x), float((x @ x) ** 0.5), sorted(words))


class Replicated(ABC):
    """A benchmark of a call that makes many replicates; abstract, so that asv does not run it.

    Everything is of one replicate, what a call does once being divided among them. Rates would be
    better where they are more: a microsecond stands for a million evaluations in a second, a
    nanosecond for a billion resampled rows.
    """

    timeout = 180.0
    rounds = 3
    call: Callable[[], Any]
    replicates: int
    loop: Callable[[], Any]
    loops: int
    # Rows of a draw, those of each estimator, class and model counted once.
    size: int

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Make the data; set `call` and `loop`, the numbers of their replicates and `size`."""

    def make(
        self, call: Callable[..., Any], loop: Callable[..., Any], size: int, work: int | None = None
    ) -> None:
        """Set all, from a call of the package and a loop of numpy that lack their replicates; the
        work of one is in numbers added up, if these are not its rows."""
        self.replicates = baselines.replicates_of(work or size)
        self.loops = baselines.loops_of(size)
        self.call = partial(call, n_resamples=self.replicates, rng=0)
        self.loop = partial(loop, replicates=self.loops)
        self.size = size

    def seconds(self) -> float:
        """Of one replicate, after a call that compiles."""
        self.call()
        times = [baselines.seconds_of(self.call, 1) for _ in range(self.rounds)]
        return float(median(times)) / self.replicates

    def track_us_per_replicate(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one replicate."""
        return 1e6 * self.seconds()

    def track_ns_per_sample(self, *params: Any) -> float:  # noqa: ARG002
        """The same over the rows that are drawn for it."""
        return 1e9 * self.seconds() / self.size

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Time of one replicate over that of the numpy loop: less is better, as asv takes it."""
        race = baselines.race_replicates(
            self.call, self.replicates, self.loop, self.loops, self.rounds
        )
        return round(1 / race.ratio, 5)

    track_us_per_replicate.unit = "us"  # type: ignore[attr-defined]
    track_ns_per_sample.unit = "ns"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class Draws(Replicated):
    """A benchmark of the bootstrap; abstract, so that asv does not run it."""

    def bootstrap(self, data: Any, estimator: Any, size: int | None = None, **options: Any) -> None:
        """Set the call and the loop, of an estimator or of several that share each draw."""
        if not hasattr(fastece, "bootstrap"):
            raise NotImplementedError
        y, p = data
        names = [estimator] if isinstance(estimator, str) else estimator
        values = [baselines.value_on_rows(name, y, p) for name in names]
        size = size or len(p)
        call = partial(fastece.bootstrap, y, p, estimator=estimator, size=size, **options)
        self.make(call, partial(baselines.resample, values, len(p), size), size)


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
