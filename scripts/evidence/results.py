"""Where scripts of evidence put their tables: docs/evidence/results/NAME.csv.

`scripts/write_pages.py` makes the tables of pages from these files.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "results"


def new_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows the folder of the files."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder of the files")
    return parser


def write_table(
    folder: Path, name: str, head: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Write a table to NAME.csv in a folder, and print its rows as they come.

    The file is written last, so an interrupted run leaves the old one.
    """
    print(*head, sep=", ")
    kept = [head]
    for row in rows:
        print(*row, sep=", ", flush=True)
        kept.append(row)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(kept)
