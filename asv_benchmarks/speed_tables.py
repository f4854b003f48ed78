"""Print the tables of docs/speed.md: fastece on this machine, and numpy beside it.

    python asv_benchmarks/speed_tables.py

Takes some minutes, on one thread. Each cell is a time and how many times as long the numpy
code takes that is written for the estimator, or for the one in brackets.
"""

import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path

import fastece
from benchmarks import baselines
from benchmarks.common import ESTIMATORS

SIZES = (100, 10_000, 1_000_000)
BOOTSTRAP_SIZES = (100, 10_000, 50_000)
SETTINGS = ("binary", "confidence", "classwise")
UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
# Names of a line, the size of its column and the text.
Cell = tuple[tuple[str, ...], int, str]


def processor() -> str:
    """Name the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def machine() -> str:
    """Describe the machine and the versions in one line."""
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in ("numpy", "numba")]
    where = f"{processor()}, {os.cpu_count()} cores, 1 thread used"
    return f"fastece {fastece.__version__}, {', '.join(versions)}; {where}."


def with_unit(seconds: float) -> str:
    """Write a time with three digits, in the largest unit that is not larger."""
    size, unit = next((u for u in UNITS if seconds >= u[0]), UNITS[-1])
    scaled = seconds / size
    return f"{scaled:.{0 if scaled >= 99.5 else 1 if scaled >= 9.95 else 2}f} {unit}"


def times(ratio: float) -> str:
    """Write a ratio with two digits, or all before the point."""
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:.0f}x"


def label(estimator: str) -> str:
    """Name an estimator, and its baseline in brackets where it is another's."""
    baseline, _ = baselines.find_baseline(estimator)
    return f"`{estimator}`" + ("" if baseline == estimator else f" ({baseline})")


def call_cells(sizes: Sequence[int]) -> Iterator[Cell]:
    """Time a call of every estimator, setting and size."""
    for n, setting, estimator in product(sizes, SETTINGS, ESTIMATORS):
        race = baselines.race_call(n, setting, estimator)
        yield (setting, label(estimator)), n, f"{with_unit(race.seconds)}, {times(race.ratio)}"


def replicate_cells(sizes: Sequence[int]) -> Iterator[Cell]:
    """Time a replicate of the bootstrap of every estimator and size."""
    for n, estimator in product(sizes, ESTIMATORS):
        race = baselines.race_bootstrap(n, estimator)
        ns = 1e9 * race.seconds / n
        per_row = f"{ns:.{0 if ns >= 10 else 1}f} ns a row"
        text = f"{with_unit(race.seconds)}, {per_row}, {times(race.ratio)}"
        yield (label(estimator),), n, text


def table(keys: Sequence[str], unit: str, cells: Sequence[Cell]) -> str:
    """Render cells as a Markdown table with one column for each size."""
    sizes = sorted({n for _, n, _ in cells})
    lines: dict[tuple[str, ...], dict[int, str]] = {}
    for key, n, text in cells:
        lines.setdefault(key, {})[n] = text
    rows = [[*keys, *(f"{n:,} {unit}".replace(",", " ") for n in sizes)]]
    rows.append([*("---" for _ in keys), *("---:" for _ in sizes)])
    rows += [[*key, *(line[n] for n in sizes)] for key, line in lines.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Measure and print both tables."""
    print(table(("setting", "estimator"), "scores", list(call_cells(SIZES))), end="\n\n")
    print(table(("replicate of",), "rows", list(replicate_cells(BOOTSTRAP_SIZES))), end="\n\n")
    print(machine())


if __name__ == "__main__":
    main()
