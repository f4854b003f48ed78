"""The folder of a study: what is finished is never redone, what is half written is never read, and
results of another design or of other code are never mixed with its own."""

import csv
import io
import json
import os
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import fastece
from fastece.study.arena import Arena

if TYPE_CHECKING:
    import pyarrow as pa

UNFINISHED = ".unfinished"
# Packages that numbers come from.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# Rooms and modules that decide on no number of a study: what shows results, and what measures time.
NO_NUMBERS = {"__main__.py", "cli", "plot", "reliability", "speed", "study/figures.py"}


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


def is_taken(folder: Path) -> bool:
    """Whether there is a file, or one in the folder, but for what a killed process left behind."""
    if not folder.is_dir():
        return folder.exists()
    return not all(path.name.endswith(UNFINISHED) for path in folder.iterdir())


class Store:
    """A folder with the results of one design, and a note of the design and of the code that made
    them: plain values by name. ValueError if it is another's."""

    def __init__(self, folder: Path, arena: Arena, made_by: dict[str, str]) -> None:
        self.folder, self.cells = folder, folder / "distributions"
        note = json.dumps({**made_by, **arena.to_dict()}, indent=1)
        path = folder / "study.json"
        if path.exists():
            check_note(folder, json.loads(path.read_text(encoding="utf-8")), json.loads(note))
        elif is_taken(folder):
            raise ValueError(f"out: {folder} exists, and holds no study")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.write_text(path.name, note + "\n")
        self.cells.mkdir(exist_ok=True)

    def has(self, which: Any) -> bool:
        """Whether the results of one distribution are there."""
        return bool((self.cells / which.file_name).exists())

    def write(self, which: Any, table: "pa.Table") -> None:
        """Keep the results of one distribution."""
        self.write_parquet(f"{self.cells.name}/{which.file_name}", table)

    def read(self, which: Any) -> "pa.Table":
        """The results of one distribution."""
        from pyarrow import parquet

        return parquet.read_table(self.cells / which.file_name)

    def write_text(self, name: str, text: str) -> None:
        """A file of the folder."""
        write_whole(self.folder / name, lambda path: path.write_bytes(text.encode()))

    def write_csv(self, name: str, table: "pa.Table") -> None:
        """A table as CSV, numbers with six digits."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow(f"{x:.6g}" if isinstance(x, float) else x for x in row.values())
        self.write_text(name, lines.getvalue())

    def write_parquet(self, name: str, table: "pa.Table") -> None:
        """A table as Parquet."""
        from pyarrow import parquet

        write_whole(self.folder / name, lambda path: parquet.write_table(table, path))


def check_note(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """An error, if a folder's note is not the one of this design and this code."""
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ValueError(
                f"out: {folder} holds a study with {name} {found.get(name)!r}, not {value!r}: "
                "choose another folder, or remove this one"
            )


def code_of(arena: Arena) -> dict[str, str]:
    """What decides on the results of a study besides its parameters: versions, and a hash of the
    sources of this package, of each of the user's estimators and of each of the user's files."""
    versions = {"fastece": fastece.__version__} | {name: version(name) for name in PACKAGES}
    sources = {"fastece": package_hash()} | {path: source_hash(path) for path in arena.estimators}
    sources |= {path: file_hash(path) for path in arena.files}
    found = {f"version of {name}": value for name, value in versions.items()}
    return found | {f"source of {name}": value for name, value in sources.items()}


def package_hash(folder: Path = Path(fastece.__file__).parent) -> str:
    """Hash of the modules of this package that the numbers of a study come from."""
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name not in NO_NUMBERS and name.partition("/")[0] not in NO_NUMBERS:
            digest.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def source_hash(path: str) -> str:
    """Hash of the file that a user's estimator "module:name" is in; "" where there is none."""
    file = import_module(path.partition(":")[0]).__file__
    return file_hash(file) if file else ""


def file_hash(path: str) -> str:
    """Hash of a file."""
    return sha256(Path(path).read_bytes()).hexdigest()[:16]
