"""The folder of a study: one design and one version of the code each.

Finished work is not repeated, half-written files are not read, and results of another design or of
other code are never mixed with its own.
"""

import ast
import io
import json
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece import __version__
from fastece.data.errors import InputError
from fastece.files import write_file
from fastece.study.design import StudyDesign

if TYPE_CHECKING:
    import pyarrow as pa

# Packages that numbers come from, and the module of this one that makes tables of them.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
TABLES = "study.summary"
# Ending of files that a killed process leaves.
UNFINISHED = ".part"
# Digits of a hash in a note.
HASH_DIGITS = 16
FOLDER_OF_PACKAGE = Path(__file__).parents[1]


def open_folder(folder: Path, design: StudyDesign[Any]) -> None:
    """Make the folder of a study with a note on its code, or compare its note.

    Raises
    ------
    ValueError
        If the folder holds something else, or a study of another design or of other code.
    """
    path = folder / "study.json"
    # Values as they come back from JSON, so that they can be compared.
    text = json.dumps({**describe_code(design), **design.to_dict()}, indent=1)
    if path.exists():
        compare_notes(folder, json.loads(path.read_text(encoding="utf-8")), json.loads(text))
    elif folder.exists() and not is_unused(folder):
        raise InputError("out", f"{folder} exists, and holds no study")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, text.encode() + b"\n")
    (folder / "distributions").mkdir(exist_ok=True)


def compare_notes(folder: Path, noted: dict[str, Any], current: dict[str, Any]) -> None:
    """Refuse a folder whose note differs from the current design or code."""
    for name, value in current.items():
        if noted.get(name) != value:
            rule = f"{folder} holds a study with {name} {noted.get(name)!r}, not {value!r}"
            raise InputError("out", f"{rule}: choose another folder, or remove this one")


def is_unused(folder: Path) -> bool:
    """Return whether a path is a folder that is empty, up to unfinished files."""
    if not folder.is_dir():
        return False
    return all(path.name.endswith(UNFINISHED) for path in folder.iterdir())


def write_table(path: Path, table: "pa.Table") -> None:
    """Write a table as CSV or Parquet, by the ending of the file."""
    from pyarrow import csv, parquet

    content = io.BytesIO()
    if path.suffix == ".csv":
        csv.write_csv(table, content, csv.WriteOptions(quoting_style="needed"))
    else:
        parquet.write_table(table, content)
    write_file(path, content.getvalue())


# -- the code behind numbers -----------------------------------------------------------------------


def describe_code(design: StudyDesign[Any]) -> dict[str, str]:
    """Collect versions and hashes of all sources and files that affect results."""
    versions = {"fastece": __version__} | {name: version(name) for name in PACKAGES}
    modules_of_design = [
        kind.__module__.removeprefix("fastece.")
        for kind in type(design).__mro__
        if kind.__module__.startswith("fastece.")
    ]
    hashes = {"fastece": package_hash([TABLES, *modules_of_design])}
    for path in design.estimators:
        file = import_module(path.partition(":")[0]).__file__
        hashes[path] = file_hash(file) if file else ""
    hashes |= {path: file_hash(path) for path in design.input_files}
    notes = {f"version of {name}": value for name, value in versions.items()}
    return notes | {f"source of {name}": value for name, value in hashes.items()}


def package_hash(modules: list[str], folder: Path = FOLDER_OF_PACKAGE) -> str:
    """Hash modules of this package together with all modules of it that they import."""
    hashes: dict[str, str] = {}
    remaining = set(modules)
    while remaining:
        name = remaining.pop()
        path = folder.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file():  # Other names are of something in a module.
            hashes[name] = file_hash(file)
            remaining |= imported_names(file.read_bytes()) - hashes.keys()
    return sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]


@lru_cache(maxsize=256)  # To parse all modules takes a second.
def imported_names(source: bytes) -> set[str]:
    """Name the modules of this package that a source may import, and names in them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("fastece.") for name in names if name.startswith("fastece.")}


def file_hash(path: str | Path) -> str:
    """Hash a file."""
    return sha256(Path(path).read_bytes()).hexdigest()[:HASH_DIGITS]
