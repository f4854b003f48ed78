"""The table of ``fastece bench``: how fast fastece is on this machine, and numpy beside it."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import count, product
from pathlib import Path
from typing import Any

import fastece
from fastece.speed.yardstick import N_CLASSES, find_idiom, race_bootstrap, race_call, replicates_of

__all__ = ["BenchResult", "BenchRow", "run_bench"]

SIZES = (100, 10_000, 1_000_000)
BOOTSTRAP_SIZES = (100, 10_000, 50_000)


# --- where ----------------------------------------------------------------------------------


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


# --- rows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BenchRow:
    """One line of the tables: a call of `fastece.ece`, or one replicate of `fastece.bootstrap`.

    Attributes
    ----------
    n : int
        Number of scores: rows, or rows times classes. Replicates are of uniform scores.
    setting, estimator : str
        As `fastece.ece` takes them.
    seconds : float
        Of one call, checks included; of one replicate: of the call, divided by their number.
    ratio : float
        How many times as long the numpy idiom, or one replicate of the numpy loop, takes.
    idiom : str
        The estimator that the idiom is written for.
    replicates : int or None
        Number of replicates of one call of `fastece.bootstrap`.
    """

    n: int
    setting: str
    estimator: str
    seconds: float
    ratio: float
    idiom: str
    replicates: int | None = None

    @property
    def ns_per_score(self) -> float:
        """Nanoseconds for each score."""
        return 1e9 * self.seconds / self.n

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, rates among them."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        per_second = self.n / self.seconds
        if self.replicates is None:
            rates = {"scores_per_second": per_second, "ns_per_score": self.ns_per_score}
        else:
            del values["setting"]
            rates = {"replicates_per_second": 1 / self.seconds, "samples_per_second": per_second,
                     "ns_per_sample": self.ns_per_score}  # fmt: skip
        return {**values, **rates}


# --- tables ---------------------------------------------------------------------------------


def digits(x: float) -> str:
    """Two digits of a number, or all before the point."""
    return f"{x:.0f}" if x >= 10 else f"{x:.1f}"


def times_of(ratio: float) -> str:
    """Two digits, or all before the point."""
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:.0f}x"


def named(estimator: str, idiom: str) -> str:
    """An estimator on a page, with the idiom it is held against if that is another's."""
    return f"`{estimator}`" if idiom == estimator else f"`{estimator}` ({idiom})"


def page_table(
    keys: Sequence[str], unit: str, cells: Sequence[tuple[tuple[str, ...], int, str]]
) -> str:
    """A table for a page from cells with the key of their line and the size of their column."""
    sizes = sorted({n for _, n, _ in cells})
    lines: dict[tuple[str, ...], dict[int, str]] = {}
    for key, n, text in cells:
        lines.setdefault(key, {})[n] = text
    table = [[*keys, *(f"{n:,} {unit}".replace(",", " ") for n in sizes)]]
    table.append([*("---" for _ in keys), *("---:" for _ in sizes)])
    table += [[*key, *(line[n] for n in sizes)] for key, line in lines.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


@dataclass(frozen=True)
class BenchResult:
    """Speed of every estimator on one machine.

    Attributes
    ----------
    machine : dict
        Processor, cores, threads and versions.
    rows : tuple of BenchRow
        Single calls.
    bootstrap : tuple of BenchRow
        Replicates.
    """

    machine: dict[str, Any]
    rows: tuple[BenchRow, ...]
    bootstrap: tuple[BenchRow, ...]

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
            f"{with_unit(r.n / r.seconds, PER_SECOND):>9}  {r.ns_per_score:8.2f}  "
            f"{r.ratio:5.2f}  {r.idiom}"
            for r in self.rows
        ]
        lines += ["", "bootstrap: one of many replicates, and one turn of the numpy loop"]
        lines += ["  scores  estimator  replicate  replicates/s    rows/s    ns/row  numpy  loop"]
        lines += [
            f"{r.n:>8}  {r.estimator:<9}  {with_unit(r.seconds, SECONDS):>9}  "
            f"{with_unit(1 / r.seconds, PER_SECOND):>12}  "
            f"{with_unit(r.n / r.seconds, PER_SECOND):>8}  {r.ns_per_score:8.2f}  "
            f"{r.ratio:5.1f}  {r.idiom}"
            for r in self.bootstrap
        ]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Two tables for a page: one line for each setting and estimator, or each estimator, and
        one column for each size."""
        calls, replicates = [], []
        for r in self.rows:
            text = f"{with_unit(r.seconds, SECONDS)}, {times_of(r.ratio)}"
            calls.append(((r.setting, named(r.estimator, r.idiom)), r.n, text))
        for b in self.bootstrap:
            text = f"{with_unit(b.seconds, SECONDS)}, {digits(b.ns_per_score)} ns a row"
            text = f"{text}, {times_of(b.ratio)}"
            replicates.append(((named(b.estimator, b.idiom),), b.n, text))
        return "\n\n".join([
            page_table(("setting", "estimator"), "scores", calls),
            page_table(("replicate of",), "rows", replicates),
            f"{self.where}.",
        ])  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {
            "machine": self.machine,
            "rows": [row.to_dict() for row in self.rows],
            "bootstrap": [row.to_dict() for row in self.bootstrap],
        }


# --- measuring ------------------------------------------------------------------------------


def measure(n: int, setting: str, estimator: str, rounds: int) -> BenchRow:
    """One line of the table of calls."""
    times = race_call(n, setting, estimator, rounds)
    scores = n if setting == "binary" else n // N_CLASSES * N_CLASSES
    return BenchRow(scores, setting, estimator, *times, find_idiom(estimator)[0])


def measure_bootstrap(n: int, estimator: str, rounds: int) -> BenchRow:
    """One line of the table of replicates."""
    times = race_bootstrap(n, estimator, rounds)
    idiom = find_idiom(estimator)[0]
    return BenchRow(n, "binary", estimator, *times, idiom, replicates_of(n))


def run_bench(
    sizes: Sequence[int] = SIZES,
    rounds: int = 7,
    progress: Callable[[str], Any] | None = None,
    bootstrap_sizes: Sequence[int] | None = None,
) -> BenchResult:
    """Time one call of every estimator of the table, and the numpy idiom beside it; and one
    replicate of its bootstrap, and the numpy loop.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of scores: uniform ones for "binary", and class vectors of ten classes, in as many
        rows as make that number, for "confidence" and "classwise".
    rounds : int
        Rounds that the medians are of; half as many for the bootstrap, whose calls are long.
    progress : callable, optional
        Told what is measured next.
    bootstrap_sizes : sequence of int, optional
        Numbers of uniform scores that are resampled.

    Returns
    -------
    BenchResult
    """
    drawn = BOOTSTRAP_SIZES if bootstrap_sizes is None else bootstrap_sizes
    names = list(fastece.ESTIMATORS)
    calls = list(product(sizes, ("binary", "confidence", "classwise"), names))
    replicates = list(product(drawn, names))
    told = count(1)

    def tell(name: str) -> None:
        if progress is not None:
            progress(f"{next(told)}/{len(calls) + len(replicates)} {name}")

    rows, drawn_rows = [], []
    for n, setting, estimator in calls:
        tell(f"{setting} {estimator}, {n} scores")
        rows.append(measure(n, setting, estimator, rounds))
    for n, estimator in replicates:
        tell(f"bootstrap {estimator}, {n} scores")
        drawn_rows.append(measure_bootstrap(n, estimator, max(1, rounds // 2)))
    return BenchResult(machine(), tuple(rows), tuple(drawn_rows))
