"""What an estimator is: a function of a weighted binary calibration problem.

A problem is scores in [0, 1], hits in {0, 1}, sample weights and the support of the score
(`Sample`). A setting turns a caller's data into one or K of them (`Problems`), and an estimator
turns each into a number. Whatever resamples the rows only changes how often each of them counts,
so an estimator *prepares* a sample once and *evaluates* it under as many multiplicities as needed.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "Estimator",
    "Map",
    "Problems",
    "Rows",
    "Sample",
    "UncleanError",
    "direct_values",
    "increasing",
    "with_threads",
]

# Replicates of a block, of which `Estimator.block` takes the multiplicities.
BLOCK = 32

T = TypeVar("T")
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


class Rows(NamedTuple):
    """Some rows of a problem or of several, as `kernels.moments.cell_moments` takes them.

    Attributes
    ----------
    prob : (m,) or (m, K) float64 or float32 array, C-contiguous and writable
        Scores, or class vectors, of which every class is a problem.
    label : (m,) int64 or uint8 array, C-contiguous and writable
        Hits, or classes.
    v : (m,) float64 array or None
        Sample weights.
    tolerance : float
        How far from 1 the sum of a class vector may be; infinite for rows known to be good.
    """

    prob: NDArray[Any]
    label: NDArray[Any]
    v: NDArray[np.float64] | None = None
    tolerance: float = math.inf


class UncleanError(Exception):
    """A slice of rows holds something that the fast check does not know: look at all, slowly."""


@dataclass(frozen=True)
class Sample:
    """One weighted binary calibration problem.

    Parameters
    ----------
    s : (n,) float64 array
        Scores in [0, 1].
    y : (n,) uint8 array
        Hits: 1 where the event that the score predicts came true, else 0.
    v : (n,) float64 array or None
        Sample weights, greater than 0; None where every row counts 1.
    low, high : float
        Support of the score: [0, 1], or [1/K, 1] for the top label of K classes.
    rows : (n,) int64 array
        Position of each row in the caller's data, so that classes, estimators and models can
        share one draw of the caller's rows.
    """

    s: NDArray[np.float64]
    y: NDArray[np.uint8]
    v: NDArray[np.float64] | None
    low: float
    high: float
    rows: NDArray[np.int64]

    n_problems = 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What comes from another process may be read-only, which kernels are not compiled for.
        for name, value in state.items():
            frozen = isinstance(value, np.ndarray) and not value.flags.writeable
            object.__setattr__(self, name, value.copy() if frozen else value)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.s.size

    def sample(self, k: int) -> "Sample":  # noqa: ARG002
        """Problem `k` as a whole: a sample is the only one of its problems."""
        return self

    @property
    def checked(self) -> "Sample":
        """The same: a sample holds checked values."""
        return self

    def chunk(self, start: int, stop: int) -> Rows:
        """The rows from `start` to `stop`, as a kernel reads them."""
        rows = slice(start, stop)
        return Rows(self.s[rows], self.y[rows], None if self.v is None else self.v[rows])

    def note_kind(self) -> None:
        """Nothing: a sample is checked."""

    def where(self, rows: Any) -> "Sample":
        """Some of the rows: positions in the order they are to have, or a mask."""
        v = None if self.v is None else self.v[rows]
        return Sample(self.s[rows], self.y[rows], v, self.low, self.high, self.rows[rows])

    def sorted(self) -> "Sample":
        """The same rows in increasing order of the score; equal scores keep their order."""
        return self.where(increasing(self.s))


def increasing(s: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order in which scores increase, equal ones staying as they are.

    The sort that is not stable is vectorised, and several times as fast; without equal scores it
    makes no difference.
    """
    order = np.argsort(s)
    ordered = s[order]
    if (ordered[1:] == ordered[:-1]).any():
        return np.argsort(s, kind="stable")
    return order


class Problems(Protocol):
    """One or several problems over the same rows, read a slice of the rows at a time."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def n_problems(self) -> int:
        """Number of problems."""

    @property
    def low(self) -> float:
        """Lower end of the score's support."""

    @property
    def high(self) -> float:
        """Upper end of the score's support."""

    @property
    def v(self) -> NDArray[np.float64] | None:
        """Sample weights, or None where every row counts 1."""

    def chunk(self, start: int, stop: int) -> Rows:
        """The rows from `start` to `stop`, as a kernel reads and checks them.

        Raises `UncleanError` for rows that are not known to be good.
        """

    def sample(self, k: int) -> Sample:
        """Problem `k` as a whole."""

    def note_kind(self) -> None:
        """Rows of this kind have been read: the kernels that check them are compiled."""

    @property
    def checked(self) -> "Problems":
        """The same with every value checked, or an error for the first that is bad."""


class Estimator(Protocol):
    """What every estimator has. Two methods are enough for single calls, weights, class-wise
    values and whatever else the package does with an estimator.

    Optional, found by name:

    needs_sorted : bool
        Whether `prepare` is to get the sample sorted by score. Without it: yes.
    direct(problems, run) -> (K,) values
        The single call on all problems at once, every row counting once, without a sort or a copy
        of the scores. `run` is `map`, or the `map` of a thread pool.
    block(plan, c) -> (32,) values
        `evaluate` for each column of c, (n, 32) uint8.
    blocks(plan, c) -> (32 G,) values
        `block` for each of c, (G, n, 32) uint8: what Python itself costs is shared by many
        replicates, which matters below some 10 000 rows.
    subsets(plan, rows) -> (R,) values
        For draws that are much smaller than the sample: the value of the rows in each line of
        `rows`, (R, size) int32 positions in the sample, of which each counts once.
    """

    def prepare(self, sample: Sample, size: int) -> Any:
        """Whatever does not depend on the multiplicities. `size`: number of rows per draw."""

    def evaluate(self, plan: Any, c: NDArray[Any]) -> float:
        """The value when row i of the sample counts ``c[i]`` times, ``sum(c) == size``."""


def direct_values(estimator: Estimator, problems: Problems, run: Map = map) -> NDArray[np.float64]:
    """Value of `estimator` on each of the problems, every row counting once."""
    direct = getattr(estimator, "direct", None)
    if direct is not None:
        try:
            return np.asarray(direct(problems, run))
        except UncleanError:
            pass  # left first: the error holds the converted rows, and would show in the next one
        return np.asarray(direct(problems.checked, run))
    problems = problems.checked  # before threads ask for it
    once = np.ones(problems.n, np.uint8)
    needs_sorted = getattr(estimator, "needs_sorted", True)

    def value(k: int) -> float:
        sample = problems.sample(k).sorted() if needs_sorted else problems.sample(k)
        return float(estimator.evaluate(estimator.prepare(sample, sample.n), once))

    return np.array(list(run(value, range(problems.n_problems))))


def with_threads(n_jobs: int, work: Callable[[Map], T]) -> T:
    """`work` with a `map` that runs on `n_jobs` threads; the built-in one for a single job."""
    if n_jobs == 1:
        return work(map)
    with ThreadPoolExecutor(n_jobs) as pool:
        return work(pool.map)
