"""Classes from which benchmarks are derived, and calls that several measure."""

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

# Whether each estimator and score of the package measures an error of calibration. Older versions
# lack the attributes. Estimators that read all pairs of rows have benchmarks of their own, in
# `pairs.py`.
IS_CALIBRATION_ERROR = {
    name: getattr(estimator, "is_calibration_error", True)
    for name, estimator in fastece.ESTIMATORS.items()
    if not getattr(estimator, "reads_pairs", False)
}
ESTIMATORS = [name for name, is_error in IS_CALIBRATION_ERROR.items() if is_error]
# Names of single calls: calibration errors, scores, and a diagram.
CALLS = [*IS_CALIBRATION_ERROR, "reliability_diagram"]


def find_call(name: str) -> Callable[..., Any]:
    """Find the call for a calibration error, or the public function of a name."""
    return partial(fastece.ece, estimator=name) if name in ESTIMATORS else find_function(name)


def find_function(name: str) -> Any:
    """Find a public function; asv skips versions of fastece that lack it."""
    require(name)
    return getattr(fastece, name)


def require(*names: str) -> None:
    """Make asv skip the benchmark unless fastece has these public names."""
    if not all(hasattr(fastece, name) for name in names):
        raise NotImplementedError


class Benchmark:
    """Attributes that asv reads from every benchmark."""

    # Seconds after which asv ends a benchmark.
    timeout = 180.0
    # Numbers of different versions are not compared. Raise it in the class whose measurement
    # changes. Without it, asv would hash the source, and a new comment would start a new history.
    version = "1"


class Single(Benchmark, ABC):
    """A benchmark of one call beside numpy; abstract, so that asv does not run it."""

    call: Callable[[], Any]
    baseline: Callable[[], Any]

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Draw the data, set `call` and `baseline`, and call the former once to compile."""

    def time_ece(self, *params: Any) -> None:  # noqa: ARG002
        """Run the call, whose seconds asv measures."""
        self.call()

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Divide the time of the call by the time of the numpy code; less is better."""
        return round(baselines.race_fastest_rounds(self.call, self.baseline), 4)

    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class Beside(Benchmark, ABC):
    """A benchmark of one call beside another; abstract, so that asv does not run it."""

    rounds = 7
    call: Callable[[], Any]
    other: Callable[[], Any]

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Draw the data, and set `call` and `other`."""

    def time_call(self, *params: Any) -> None:  # noqa: ARG002
        """Run the call, whose seconds asv measures."""
        self.call()

    def track_ratio_to_other(self, *params: Any) -> float:  # noqa: ARG002
        """Divide the time of the call by the time of the other one; less is better."""
        self.call()
        return round(1 / baselines.race(self.call, self.other, self.rounds).ratio, 4)

    track_ratio_to_other.unit = "of the other's"  # type: ignore[attr-defined]


class Replicated(Benchmark, ABC):
    """A benchmark of many replicates; abstract, so that asv does not run it.

    All numbers are per replicate: the work that a call does once is divided among its replicates.
    Less is better. A replicate in a microsecond is a million evaluations in a second, and a row in
    a nanosecond is a billion resampled rows in a second.
    """

    rounds = 3
    call: Callable[[], Any]
    # Replicates that the call makes.
    replicates: int
    loop: Callable[[], Any]
    # Replicates that the numpy loop makes.
    loop_replicates: int
    # Rows of a draw; they count once, however many estimators, classes and models share the draw.
    size: int

    @abstractmethod
    def setup(self, *params: Any) -> None:
        """Draw the data, and set the attributes by `prepare`."""

    def prepare(
        self,
        call: Callable[..., Any],
        loop: Callable[..., Any],
        size: int,
        summands: int | None = None,
    ) -> None:
        """Set all attributes, from a call and a numpy loop without replicates.

        A replicate adds up `summands` numbers, by default one for each of its `size` rows.
        """
        self.replicates = baselines.count_replicates(size if summands is None else summands)
        self.loop_replicates = baselines.count_loop_replicates(size)
        self.call = partial(call, n_resamples=self.replicates, rng=0)
        self.loop = partial(loop, replicates=self.loop_replicates)
        self.size = size

    def measure_seconds(self) -> float:
        """Measure the seconds of one replicate, after a call that compiles."""
        self.call()
        times = [baselines.measure_seconds(self.call, 1) for _ in range(self.rounds)]
        return median(times) / self.replicates

    def track_us_per_replicate(self, *params: Any) -> float:  # noqa: ARG002
        """Measure one replicate in microseconds."""
        return 1e6 * self.measure_seconds()

    def track_ns_per_sample(self, *params: Any) -> float:  # noqa: ARG002
        """Measure one drawn row of a replicate in nanoseconds."""
        return 1e9 * self.measure_seconds() / self.size

    def track_ratio_to_numpy(self, *params: Any) -> float:  # noqa: ARG002
        """Divide the time of a replicate by the time of one in numpy; less is better."""
        race = baselines.race_replicates(
            fast=self.call,
            replicates=self.replicates,
            slow=self.loop,
            loop_replicates=self.loop_replicates,
            rounds=self.rounds,
        )
        return round(1 / race.ratio, 5)

    track_us_per_replicate.unit = "us"  # type: ignore[attr-defined]
    track_ns_per_sample.unit = "ns"  # type: ignore[attr-defined]
    track_ratio_to_numpy.unit = "of numpy's"  # type: ignore[attr-defined]


class Draws(Replicated):
    """A benchmark of the bootstrap; abstract, so that asv does not run it."""

    def prepare_bootstrap(
        self,
        data: tuple[Any, Any],
        estimator: str | list[str],
        size: int | None = None,
        **options: Any,
    ) -> None:
        """Set the call and the loop for one estimator, or several on the same draws."""
        require("bootstrap")
        y, p = data
        size = len(p) if size is None else size
        names = [estimator] if isinstance(estimator, str) else estimator
        values = [baselines.prepare_estimator(name, y, p) for name in names]
        call = partial(fastece.bootstrap, y, p, estimator=estimator, size=size, **options)
        self.prepare(call, partial(baselines.resample, values, len(p), size), size)


def prepare_other_work() -> Callable[[], Any]:
    """Return work as a program does between two calls: ranks, a norm, sorted text."""
    from scipy.stats import rankdata

    _, x = baselines.draw_binary("uniform", 2000)
    words = [f"{value:.3f}" for value in x]
    return lambda: (rankdata(x), float((x @ x) ** 0.5), sorted(words))


def run_fresh(code: str, **environment: str) -> str:
    """Run code in a new process that imports the same fastece, and return its output."""
    paths = [Path(fastece.__file__).parents[1], FOLDER]
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **environment},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
