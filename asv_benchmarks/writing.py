"""How times are written, and where tables are kept: in docs/evidence/results."""

import csv
from collections.abc import Sequence
from pathlib import Path

# Seconds in a unit of time, and its name.
UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "results"
# Rows of cells, the head first.
Table = list[list[str]]


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


def write_count(count: int) -> str:
    """Write a number of rows with a space before each group of three digits."""
    return f"{count:,}".replace(",", " ")


def write_table(table: Table) -> str:
    """Write a table in Markdown."""
    head, *rows = table
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def save_table(folder: Path, name: str, table: Sequence[Sequence[str]]) -> None:
    """Write a table as NAME.csv in a folder."""
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)
