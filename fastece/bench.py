"""How fast fastece is: data, the numpy idioms it is compared with, a clock, and a table.

Only the public functions of the package are called, so that the benchmarks can load this file by
its path and hold an older version of the package to the same yardstick.
"""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastece

__all__ = ["IDIOMS", "SHAPES", "BenchResult", "BenchRow", "ratio", "run_bench"]

Labels = NDArray[Any]
Scores = NDArray[np.floating]
Call = Callable[[], Any]
Idiom = Callable[[Labels, Scores], float]

SIZES = (100, 10_000, 1_000_000)
N_CLASSES = 10
# Shorter than this, the clock itself and one interruption are a visible part of a round.
SHORTEST_ROUND = 1e-3


# --- data -----------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "uniform": lambda rng, n: rng.random(n),
    "sharp": lambda rng, n: rng.beta(0.3, 0.05, n),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "tied": lambda rng, n: np.round(rng.random(n), 2),
    "zeros": lambda rng, n: rng.random(n) * (rng.random(n) < 0.2),
}


def binary(shape: str, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and probabilities of the positive class."""
    rng = np.random.default_rng(0)
    p = SHAPES[shape](rng, n)
    return (rng.random(n) < p).astype(np.int64), p


def class_vectors(
    n: int, n_classes: int, dtype: str = "float64", logits: bool = False
) -> tuple[NDArray[np.int64], Scores]:
    """Labels and class vectors; the largest entry is right about four times in five."""
    rng = np.random.default_rng(0)
    z = (2 * rng.standard_normal((n, n_classes), np.float32)).astype(dtype)
    y = np.where(rng.random(n) < 0.8, z.argmax(1), rng.integers(0, n_classes, n))
    return y, z if logits else softmax(z)


# --- what a user writes without fastece -----------------------------------------------------


def sum_of_gaps(y: Labels, sums: NDArray[Any], weight: Scores | None = None) -> float:
    """Value of the sums of the bins."""
    return float(np.abs(sums).sum() / (y.size if weight is None else weight.sum()))


def uniform_hard(y: Labels, p: Scores, n_bins: int = 15, weight: Scores | None = None) -> float:
    """Bins of equal width: unchecked, and wrong on some edges."""
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gap = y - p if weight is None else weight * (y - p)
    return sum_of_gaps(y, np.bincount(bins, weights=gap), weight)


def quantile_hard(y: Labels, p: Scores, n_bins: int = 15) -> float:
    """Bins of equal mass."""
    edges = np.quantile(p, np.linspace(0, 1, n_bins + 1))
    return sum_of_gaps(y, np.bincount(np.searchsorted(edges[1:-1], p), weights=y - p))


def shared(y: Labels, p: Scores, place: Scores, n_bins: int) -> float:
    """Every row shared by the two centres, counted from 0, around its place."""
    lower = np.minimum(place.astype(int), n_bins - 2)
    upper_share = place - lower
    gap = y - p
    below = np.bincount(lower, weights=gap * (1 - upper_share), minlength=n_bins)
    above = np.bincount(lower + 1, weights=gap * upper_share, minlength=n_bins)
    return sum_of_gaps(y, below + above)


def uniform_convex(y: Labels, p: Scores, n_bins: int = 15) -> float:
    """Linear binning between the centres of bins of equal width."""
    return shared(y, p, np.clip(p * n_bins - 0.5, 0, n_bins - 1), n_bins)


def quantile_convex(y: Labels, p: Scores, n_bins: int = 15) -> float:
    """Linear binning between the centres of bins of equal mass."""
    edges = np.quantile(p, np.linspace(0, 1, n_bins + 1))
    centres = (edges[:-1] + edges[1:]) / 2
    return shared(y, p, np.interp(p, centres, np.arange(n_bins)), n_bins)


IDIOMS: dict[str, Idiom] = {
    "ece": uniform_hard,
    "ece_a": quantile_hard,
    "ece_c": uniform_convex,
    "ece_ac": quantile_convex,
}


def softmax(z: Scores) -> Scores:
    """Probabilities of logits."""
    p: Scores = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def confidence(idiom: Idiom, y: Labels, p: Scores) -> float:
    """An idiom on the top label."""
    return idiom(p.argmax(1) == y, p.max(1))


def classwise(idiom: Idiom, y: Labels, p: Scores) -> float:
    """An idiom on every class against the rest."""
    return float(np.mean([idiom(y == k, p[:, k]) for k in range(p.shape[1])]))


def find_idiom(estimator: str, setting: str = "binary") -> tuple[str, Idiom]:
    """The idiom an estimator is compared with, and the name of the estimator it is written for:
    "ece" for an estimator that has none of its own."""
    name = estimator if estimator in IDIOMS else "ece"
    settings = {"confidence": confidence, "classwise": classwise}
    if setting == "binary":
        return name, IDIOMS[name]
    return name, partial(settings[setting], IDIOMS[name])


# --- clock ----------------------------------------------------------------------------------


class Race(NamedTuple):
    """Seconds of one call of `fast`, and how many times as long one of `slow` takes."""

    seconds: float
    ratio: float


def seconds_of(call: Call, repeats: int) -> float:
    """Mean seconds of one of several calls in a row."""
    start = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - start) / repeats


def repeats_of(call: Call) -> int:
    """How many calls make a round, after a first one that compiles and warms up."""
    call()
    repeats = 1
    while repeats * seconds_of(call, repeats) < SHORTEST_ROUND:
        repeats *= 2
    return repeats


def race(fast: Call, slow: Call, rounds: int = 7) -> Race:
    """Medians over rounds in which the two take turns, so that both meet the same noise."""
    fast_repeats, slow_repeats = repeats_of(fast), repeats_of(slow)
    times = [
        (seconds_of(fast, fast_repeats), seconds_of(slow, slow_repeats)) for _ in range(rounds)
    ]
    return Race(median(f for f, _ in times), median(s / f for f, s in times))


def ratio(fast: Call, slow: Call, rounds: int = 7) -> float:
    """Median of slow / fast over interleaved rounds of a millisecond or more."""
    return race(fast, slow, rounds).ratio


# --- table ----------------------------------------------------------------------------------


def processor() -> str:
    """Model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the times depend on."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": 1,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "fastece": fastece.__version__,
    }


def with_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Three digits in the largest unit that is not larger than the value."""
    size, unit = next((u for u in units if value >= u[0]), units[-1])
    scaled = value / size
    return f"{scaled:.{0 if scaled >= 99.5 else 1 if scaled >= 9.95 else 2}f} {unit}"


SECONDS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
PER_SECOND = [(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]


@dataclass(frozen=True)
class BenchRow:
    """One line of the table.

    Attributes
    ----------
    n : int
        Number of scores: rows, or rows times classes.
    setting, estimator : str
        As `fastece.ece` takes them.
    seconds : float
        Of one call, checks included.
    ratio : float
        How many times as long the numpy idiom takes.
    idiom : str
        The estimator that the idiom is written for.
    """

    n: int
    setting: str
    estimator: str
    seconds: float
    ratio: float
    idiom: str

    @property
    def scores_per_second(self) -> float:
        """Scores read in a second."""
        return self.n / self.seconds

    @property
    def ns_per_score(self) -> float:
        """Nanoseconds for each score."""
        return 1e9 * self.seconds / self.n

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, the two rates among them."""
        rates = {name: getattr(self, name) for name in ("scores_per_second", "ns_per_score")}
        return {**asdict(self), **rates}


@dataclass(frozen=True)
class BenchResult:
    """Speed of every estimator on one machine.

    Attributes
    ----------
    machine : dict
        Processor, cores, threads and versions.
    rows : tuple of BenchRow
    """

    machine: dict[str, Any]
    rows: tuple[BenchRow, ...]

    @property
    def where(self) -> str:
        """The machine, in one line."""
        m = self.machine
        versions = [f"Python {m['python']}", *(f"{k} {m[k]}" for k in ("numpy", "numba"))]
        where = f"{m['processor']}, {m['cores']} cores, {m['threads']} thread used"
        return f"fastece {m['fastece']}, {', '.join(versions)}; {where}"

    def __str__(self) -> str:
        head = "  scores  setting     estimator      time   scores/s  ns/score  numpy  idiom"
        lines = [self.where, "numpy: how many times as long the idiom written for it takes", head]
        lines += [
            f"{r.n:>8}  {r.setting:<10}  {r.estimator:<9}  {with_unit(r.seconds, SECONDS):>8}  "
            f"{with_unit(r.scores_per_second, PER_SECOND):>9}  {r.ns_per_score:8.2f}  "
            f"{r.ratio:5.2f}  {r.idiom}"
            for r in self.rows
        ]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """A table for a page: one line for each setting and estimator, one column for each size."""
        sizes = sorted({r.n for r in self.rows})
        cells: dict[tuple[str, str], dict[int, str]] = {}
        for r in self.rows:
            name = f"`{r.estimator}`" if r.idiom == r.estimator else f"`{r.estimator}` ({r.idiom})"
            text = f"{with_unit(r.seconds, SECONDS)}, {r.ratio:.2g}x"
            cells.setdefault((r.setting, name), {})[r.n] = text
        table = [["setting", "estimator", *(f"{n:,} scores".replace(",", " ") for n in sizes)]]
        table.append(["---", "---", *("---:" for _ in sizes)])
        table += [[*key, *(line[n] for n in sizes)] for key, line in cells.items()]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in table), "", f"{self.where}."])

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {"machine": self.machine, "rows": [row.to_dict() for row in self.rows]}


def data_of(setting: str, n: int) -> tuple[Labels, Scores]:
    """Labels and n uniform scores, or class vectors of as many entries."""
    if setting == "binary":
        return binary("uniform", n)
    return class_vectors(n // N_CLASSES, N_CLASSES)


def measure(n: int, setting: str, estimator: str, rounds: int) -> BenchRow:
    """One line of the table."""
    y, p = data_of(setting, n)
    name, idiom = find_idiom(estimator, setting)
    times = race(
        lambda: fastece.ece(y, p, estimator=estimator, setting=setting),
        lambda: idiom(y, p),
        rounds,
    )
    return BenchRow(p.size, setting, estimator, times.seconds, times.ratio, name)


def run_bench(
    sizes: Sequence[int] = SIZES,
    rounds: int = 7,
    progress: Callable[[str], Any] | None = None,
) -> BenchResult:
    """Time one call of every estimator of the table, and the numpy idiom beside it.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of scores: uniform ones for "binary", and class vectors of ten classes, in as many
        rows as make that number, for "confidence" and "classwise".
    rounds : int
        Rounds that the medians are of.
    progress : callable, optional
        Told what is measured next.

    Returns
    -------
    BenchResult
    """
    cases = [
        (n, setting, estimator)
        for n in sizes
        for setting in ("binary", "confidence", "classwise")
        for estimator in fastece.ESTIMATORS
    ]
    rows = []
    for i, case in enumerate(cases):
        if progress is not None:
            progress(f"{i + 1}/{len(cases)} {case[1]} {case[2]}, {case[0]} scores")
        rows.append(measure(*case, rounds))
    return BenchResult(machine(), tuple(rows))
