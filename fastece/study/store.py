"""The folder of a study, from which an interrupted study continues.

Finished work is not repeated, half-written files are not read, and results of another design or of
other code are never mixed with its own.
"""

import ast
import json
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fastece import __version__
from fastece.checks.errors import InputError
from fastece.study.base import StudyDesign

if TYPE_CHECKING:
    import pyarrow as pa

UNFINISHED = ".unfinished"
# Packages that numbers come from, and the module of this one that makes tables of them.
PACKAGES, TABLES = ("numpy", "scipy", "numba", "scikit-learn"), "study.summary"


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a temporary name; rename it once it is on the disk.

    The file is complete or absent, whenever the process ends, and whoever else writes it.
    """
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}{UNFINISHED}")
    try:
        write(unfinished)
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def is_taken(folder: Path) -> bool:
    """Return whether a folder holds files other than remains of a killed process."""
    if not folder.is_dir():
        return folder.exists()
    return not all(path.name.endswith(UNFINISHED) for path in folder.iterdir())


class Store:
    """A folder with the results of one design, and a note of design and code.

    A folder with results of another design or code raises an `InputError`.
    """

    def __init__(self, folder: Path, design: StudyDesign, made_by: dict[str, str]) -> None:
        self.folder, self.cells = folder, folder / "distributions"
        note = json.dumps({**made_by, **design.to_dict()}, indent=1)
        path = folder / "study.json"
        if path.exists():
            check_note(folder, json.loads(path.read_text(encoding="utf-8")), json.loads(note))
        elif is_taken(folder):
            raise InputError("out", f"{folder} exists, and holds no study")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.write_text(path.name, note + "\n")
        self.cells.mkdir(exist_ok=True)

    def has(self, which: Any) -> bool:
        """Return whether the results of one distribution are there."""
        return bool((self.cells / which.file_name).exists())

    def write(self, which: Any, table: "pa.Table") -> None:
        """Write the results of one distribution."""
        self.write_parquet(f"{self.cells.name}/{which.file_name}", table)

    def read(self, which: Any) -> "pa.Table":
        """Read the results of one distribution."""
        from pyarrow import parquet

        return parquet.read_table(self.cells / which.file_name)

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the folder."""
        write_whole(self.folder / name, lambda path: path.write_bytes(text.encode()))

    def write_csv(self, name: str, table: "pa.Table") -> None:
        """Write a table as CSV."""
        from pyarrow import csv

        options = csv.WriteOptions(quoting_style="needed")
        write_whole(self.folder / name, lambda path: csv.write_csv(table, path, options))

    def write_parquet(self, name: str, table: "pa.Table") -> None:
        """Write a table as Parquet."""
        from pyarrow import parquet

        write_whole(self.folder / name, lambda path: parquet.write_table(table, path))


def check_note(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a folder whose note is not the one of this design and this code."""
    for name, value in wanted.items():
        if found.get(name) != value:
            rule = f"{folder} holds a study with {name} {found.get(name)!r}, not {value!r}"
            raise InputError("out", f"{rule}: choose another folder, or remove this one")


def code_of(design: StudyDesign) -> dict[str, str]:
    """Collect versions and hashes of all sources and files that affect results."""
    versions = {"fastece": __version__} | {name: version(name) for name in PACKAGES}
    kinds = [kind.__module__.partition("fastece.")[2] for kind in type(design).__mro__]
    sources = {"fastece": package_hash([TABLES, *filter(None, kinds)])}
    sources |= {path: source_hash(path) for path in design.estimators}
    sources |= {path: file_hash(path) for path in design.files}
    found = {f"version of {name}": value for name, value in versions.items()}
    return found | {f"source of {name}": value for name, value in sources.items()}


def package_hash(modules: list[str], folder: Path = Path(__file__).parents[1]) -> str:
    """Hash modules of this package with all modules of it that they import."""
    found, todo = dict[str, str](), set(modules)
    while todo:
        name = todo.pop()
        for path in (folder.joinpath(*name.split(".")), folder / f"{name.replace('.', '/')}.py"):
            file = path / "__init__.py" if path.is_dir() else path
            if file.is_file():
                found[name] = file_hash(file)
                todo |= {*imports_of(file)} - found.keys() - {""}
    return sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def imports_of(file: Path) -> Iterator[str]:
    """Yield the modules of this package, and names in them, that a file imports."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("fastece."):
            module = str(node.module).removeprefix("fastece").lstrip(".")
            yield module
            yield from (f"{module}.{alias.name}".lstrip(".") for alias in node.names)


def source_hash(path: str) -> str:
    """Hash the file of a user's estimator "module:name"; "" where there is none."""
    file = import_module(path.partition(":")[0]).__file__
    return file_hash(file) if file else ""


def file_hash(path: str | Path) -> str:
    """Hash a file."""
    return sha256(Path(path).read_bytes()).hexdigest()[:16]
