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
# Digits of numbers in CSV files.
DIGITS = 6


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
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
        Of the code that makes the results: plain values, which are noted too.

    Raises
    ------
    ValueError
        If the folder holds results of another design or of other code, or files that are none.
    """

    def __init__(self, folder: Path, design: Design, made_by: dict[str, Any]) -> None:
        self.folder, self.cells = folder, folder / "distributions"
        note = json.dumps({**made_by, **design.to_dict()}, indent=1)
        path = folder / "study.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            wanted = json.loads(note)
            other = [name for name in wanted if found.get(name) != wanted[name]]
            if other:
                name = other[0]
                raise ValueError(
                    f"out: {folder} holds a study with {name} {found.get(name)!r}, not "
                    f"{wanted[name]!r}: choose another folder, or remove this one"
                )
        elif folder.exists() and not is_empty(folder):
            raise ValueError(f"out: {folder} exists, and holds no study")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.write_text(path.name, note + "\n")
        self.cells.mkdir(exist_ok=True)

    def path(self, which: Distribution) -> Path:
        """Where the results of one distribution are."""
        return self.cells / f"{which.file_name}.parquet"

    def has(self, which: Distribution) -> bool:
        """Whether they are finished."""
        return self.path(which).exists()

    def write(self, which: Distribution, table: "pa.Table") -> None:
        """Keep the results of one distribution."""
        from pyarrow import parquet

        write_whole(self.path(which), lambda path: parquet.write_table(table, path))

    def read(self, which: Distribution) -> "pa.Table":
        """The results of one distribution."""
        from pyarrow import parquet

        return parquet.read_table(self.path(which))

    def write_text(self, name: str, text: str) -> None:
        """A file of the folder."""
        write_whole(self.folder / name, lambda path: _write(path, text))

    def write_csv(self, name: str, table: "pa.Table") -> None:
        """A table as CSV, numbers with six digits."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(table.column_names)
        writer.writerows([_text(cell) for cell in row.values()] for row in table.to_pylist())
        self.write_text(name, lines.getvalue())

    def write_parquet(self, name: str, table: "pa.Table") -> None:
        """A table as Parquet."""
        from pyarrow import parquet

        write_whole(self.folder / name, lambda path: parquet.write_table(table, path))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _text(cell: Any) -> Any:
    return f"{cell:.{DIGITS}g}" if isinstance(cell, float) else cell
