"""The folder of a study: what is finished is never redone, what is half written is never read."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fastece.study.design import Design, Distribution

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Store", "write_whole"]

UNFINISHED = ".unfinished"
CELLS = "distributions"
# Digits of numbers in CSV files.
DIGITS = 6


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, and give it its own when all of it is on the disk: it is
    there as a whole or not at all, whenever the process ends, and whoever else writes it."""
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}{UNFINISHED}")
    try:
        write(unfinished)
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def is_empty(folder: Path) -> bool:
    """Whether a folder has no files, but for those that a process which was killed left behind."""
    return folder.is_dir() and all(path.name.endswith(UNFINISHED) for path in folder.iterdir())


class Store:
    """A folder with the results of one design.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    design : Design
        What the folder is for; noted there.
    made_by : dict
        Of the code that makes the results: kind -> name -> plain value, which are noted too.

    Raises
    ------
    ValueError
        If the folder holds results of another design or of other code, or files that are none.
    """

    def __init__(self, folder: Path, design: Design, made_by: dict[str, dict[str, Any]]) -> None:
        self.folder = folder
        note = json.dumps({**flat(made_by), **design.to_dict()}, indent=1)
        path = folder / "study.json"
        if path.exists():
            check_note(folder, json.loads(path.read_text(encoding="utf-8")), json.loads(note))
        elif folder.exists() and not is_empty(folder):
            raise ValueError(f"out: {folder} exists, and holds no study")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.write_text(path.name, note + "\n")
        (folder / CELLS).mkdir(exist_ok=True)

    def has(self, which: Distribution) -> bool:
        """Whether the results of one distribution are there."""
        return (self.folder / cell_name(which)).exists()

    def write(self, which: Distribution, table: "pa.Table") -> None:
        """Keep the results of one distribution."""
        self.write_parquet(cell_name(which), table)

    def read(self, which: Distribution) -> "pa.Table":
        """The results of one distribution."""
        from pyarrow import parquet

        return parquet.read_table(self.folder / cell_name(which))

    def write_text(self, name: str, text: str) -> None:
        """A file of the folder."""
        write_whole(self.folder / name, lambda path: path.write_bytes(text.encode()))

    def write_csv(self, name: str, table: "pa.Table") -> None:
        """A table as CSV, numbers with six digits."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow(f"{x:.{DIGITS}g}" if isinstance(x, float) else x for x in row.values())
        self.write_text(name, lines.getvalue())

    def write_parquet(self, name: str, table: "pa.Table") -> None:
        """A table as Parquet."""
        from pyarrow import parquet

        write_whole(self.folder / name, lambda path: parquet.write_table(table, path))


def cell_name(which: Distribution) -> str:
    """The file of one distribution, in the folder."""
    return f"{CELLS}/{which.file_name}.parquet"


def flat(made_by: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The same by "kind of name"."""
    return {f"{kind} of {k}": v for kind, values in made_by.items() for k, v in values.items()}


def check_note(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """An error, if a folder's note is not the one of this design and this code."""
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ValueError(
                f"out: {folder} holds a study with {name} {found.get(name)!r}, not {value!r}: "
                "choose another folder, or remove this one"
            )
