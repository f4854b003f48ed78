"""The table of ``fastece bench``: how fast fastece is on this machine, and numpy beside it."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import fastece
from fastece.cli.yardstick import N_CLASSES, find_idiom, race_bootstrap, race_call, replicates_of
from fastece.estimators.table import calibration_errors

SIZES = (100, 10_000, 1_000_000)
BOOTSTRAP_SIZES = (100, 10_000, 50_000)
SETTINGS = ("binary", "confidence", "classwise")
SECONDS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
PER_SECOND = [(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]


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
    def ns(self) -> float:
        """Nanoseconds for each score."""
        return 1e9 * self.seconds / self.n

    @property
    def named(self) -> str:
        """The estimator on a page, with the idiom it is held against if that is another's."""
        return f"`{self.estimator}`" + ("" if self.idiom == self.estimator else f" ({self.idiom})")

    @property
    def times(self) -> str:
        """The ratio with two digits, or all before the point."""
        return f"{self.ratio:.2g}x" if self.ratio < 99.5 else f"{self.ratio:.0f}x"

    @property
    def per_row(self) -> str:
        """Nanoseconds with two digits, or all before the point."""
        return f"{self.ns:.{0 if self.ns >= 10 else 1}f} ns a row"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, rates among them."""
        values, rate = asdict(self), self.n / self.seconds
        if self.replicates is None:
            del values["replicates"]
            return {**values, "scores_per_second": rate, "ns_per_score": self.ns}
        del values["setting"]
        rates = {"replicates_per_second": 1 / self.seconds, "samples_per_second": rate}
        return {**values, **rates, "ns_per_sample": self.ns}


@dataclass(frozen=True)
class BenchResult:
    """Speed of every estimator on one machine: of single calls, and of replicates."""

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
        head = "  scores  setting     estimator         time   scores/s  ns/score  numpy  idiom"
        lines = [self.where, "numpy: how many times as long the idiom written for it takes", head]
        lines += [
            f"{r.n:>8}  {r.setting:<10}  {r.estimator:<12}  {with_unit(r.seconds, SECONDS):>8}  "
            f"{with_unit(r.n / r.seconds, PER_SECOND):>9}  {r.ns:8.2f}  {r.ratio:5.2f}  {r.idiom}"
            for r in self.rows
        ]
        lines += ["", "bootstrap: one of many replicates, and one turn of the numpy loop"]
        lines += [
            "  scores  estimator     replicate  replicates/s    rows/s    ns/row  numpy  loop"
        ]
        lines += [
            f"{r.n:>8}  {r.estimator:<12}  {with_unit(r.seconds, SECONDS):>9}  "
            f"{with_unit(1 / r.seconds, PER_SECOND):>12}  "
            f"{with_unit(r.n / r.seconds, PER_SECOND):>8}  {r.ns:8.2f}  {r.ratio:5.1f}  {r.idiom}"
            for r in self.bootstrap
        ]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Two tables for a page: one line for each setting and estimator, or each estimator, and
        one column for each size."""
        calls = [
            ((r.setting, r.named), r.n, f"{with_unit(r.seconds, SECONDS)}, {r.times}")
            for r in self.rows
        ]
        replicates = [
            ((r.named,), r.n, f"{with_unit(r.seconds, SECONDS)}, {r.per_row}, {r.times}")
            for r in self.bootstrap
        ]
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


def with_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Three digits in the largest unit that is not larger than the value."""
    size, unit = next((u for u in units if value >= u[0]), units[-1])
    scaled = value / size
    return f"{scaled:.{0 if scaled >= 99.5 else 1 if scaled >= 9.95 else 2}f} {unit}"


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


def run_bench(
    sizes: Sequence[int] = SIZES, *, progress: Callable[[str], Any] = lambda _: None
) -> BenchResult:
    """Time one call of every calibration error of the table, and the numpy idiom beside it; and one
    replicate of its bootstrap, and the numpy loop.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of scores: uniform ones for "binary", and class vectors of ten classes, in as many
        rows as make that number, for "confidence" and "classwise".
    progress : callable, optional
        Told what is measured next.
    """
    names = list(calibration_errors())
    calls = list(product(sizes, SETTINGS, names))
    replicates = list(product(BOOTSTRAP_SIZES, names))
    total = len(calls) + len(replicates)
    rows, drawn = [], []
    for done, (n, setting, name) in enumerate(calls, 1):
        progress(f"{done}/{total} {setting} {name}, {n} scores")
        scores = n if setting == "binary" else n // N_CLASSES * N_CLASSES
        times = race_call(n, setting, name)
        rows.append(BenchRow(scores, setting, name, *times, find_idiom(name)[0]))
    for done, (n, name) in enumerate(replicates, len(calls) + 1):
        progress(f"{done}/{total} bootstrap {name}, {n} scores")
        times, idiom = race_bootstrap(n, name), find_idiom(name)[0]
        drawn.append(BenchRow(n, "binary", name, *times, idiom, replicates_of(n)))
    return BenchResult(machine(), tuple(rows), tuple(drawn))
