"""Print the tables of docs/evidence/speed.md: fastece on this machine, and numpy beside it.

    python asv_benchmarks/speed_tables.py

This takes some minutes, on one thread. Each cell has the time of fastece, and the time of the numpy
code divided by it. Numpy code is written for the estimator, or for the one in brackets.
"""

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

import fastece
from benchmarks import baselines
from benchmarks.common import ESTIMATORS

# Rows of single calls.
SIZES = (100, 10_000, 1_000_000)
# Rows of each replicate.
BOOTSTRAP_SIZES = (100, 10_000, 50_000)
SETTINGS = ("binary", "confidence", "classwise")
# Seconds in a unit of time, and its name.
UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]


class Cell(NamedTuple):
    """A text of a table, with the names of its line and the rows of its column."""

    line: tuple[str, ...]
    n: int
    text: str


def name_processor() -> str:
    """Name the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def describe_machine() -> str:
    """Describe the machine and the versions in one line."""
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in ("numpy", "numba")]
    hardware = f"{name_processor()}, {os.cpu_count()} cores, 1 thread used"
    return f"fastece {fastece.__version__}, {', '.join(versions)}; {hardware}."


def write_seconds(seconds: float) -> str:
    """Write a time with three digits, in the largest unit that does not exceed it."""
    size, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    number = seconds / size
    # Limits at which rounding adds a digit before the point.
    if number >= 99.5:
        return f"{number:.0f} {unit}"
    if number >= 9.95:
        return f"{number:.1f} {unit}"
    return f"{number:.2f} {unit}"


def write_nanoseconds(nanoseconds: float) -> str:
    """Write nanoseconds with a decimal below 10."""
    return f"{nanoseconds:.0f} ns" if nanoseconds >= 10 else f"{nanoseconds:.1f} ns"


def write_ratio(ratio: float) -> str:
    """Write a ratio with two digits, or with all digits before the point."""
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:.0f}x"


def write_estimator(estimator: str) -> str:
    """Write the name of an estimator, and of the estimator that numpy computes.

    The latter is in brackets, and left out if both are the same.
    """
    baseline, _ = baselines.find_baseline(estimator)
    return f"`{estimator}`" if baseline == estimator else f"`{estimator}` ({baseline})"


def measure_calls(sizes: Sequence[int]) -> Iterator[Cell]:
    """Measure a call of every estimator, setting and size."""
    for n, setting, estimator in product(sizes, SETTINGS, ESTIMATORS):
        race = baselines.race_call(n, setting, estimator)
        text = f"{write_seconds(race.seconds)}, {write_ratio(race.ratio)}"
        yield Cell((setting, write_estimator(estimator)), n, text)


def measure_replicates(sizes: Sequence[int]) -> Iterator[Cell]:
    """Measure a replicate of the bootstrap of every estimator and size."""
    for n, estimator in product(sizes, ESTIMATORS):
        race = baselines.race_bootstrap(n, estimator)
        per_row = f"{write_nanoseconds(1e9 * race.seconds / n)} a row"
        text = f"{write_seconds(race.seconds)}, {per_row}, {write_ratio(race.ratio)}"
        yield Cell((write_estimator(estimator),), n, text)


def write_table(line_heads: Sequence[str], unit: str, cells: Iterable[Cell]) -> str:
    """Write cells as a Markdown table with one column for each size."""
    texts_of_lines: dict[tuple[str, ...], dict[int, str]] = {}
    sizes = set()
    for cell in cells:
        texts_of_lines.setdefault(cell.line, {})[cell.n] = cell.text
        sizes.add(cell.n)
    columns = sorted(sizes)
    rows = [
        [*line_heads, *(f"{n:,} {unit}".replace(",", " ") for n in columns)],
        ["---"] * len(line_heads) + ["---:"] * len(columns),
    ]
    for line, texts in texts_of_lines.items():
        rows.append([*line, *(texts[n] for n in columns)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Measure and print both tables."""
    print(write_table(("setting", "estimator"), "scores", measure_calls(SIZES)), end="\n\n")
    replicates = measure_replicates(BOOTSTRAP_SIZES)
    print(write_table(("replicate of",), "rows", replicates), end="\n\n")
    print(describe_machine())


if __name__ == "__main__":
    main()
