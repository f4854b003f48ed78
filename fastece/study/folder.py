"""The folder of a study: one design and one version of the packages.

Finished work is not repeated, half-written files are not read, and results of another design or of
another version are never mixed with its own.
"""

import io
import json
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

# Other packages that numbers come from.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# Ending of files that a killed process leaves.
UNFINISHED = ".part"
# Digits of a hash in a note.
HASH_DIGITS = 16


def open_folder(folder: Path, design: StudyDesign) -> None:
    """Make the folder of a study with a note, or compare the note that is there.

    Raises
    ------
    ValueError
        If the folder holds something else, or a study of another design or version.
    """
    path = folder / "study.json"
    text = json.dumps(describe(design), indent=1)
    if path.exists():
        noted = json.loads(path.read_text(encoding="utf-8"))
        # JSON has lists in place of tuples.
        for name, value in json.loads(text).items():
            if noted.get(name) != value:
                rule = f"{folder} holds a study with {name} {noted.get(name)!r}, not {value!r}"
                raise InputError("out", f"{rule}: choose another folder, or remove this one")
    elif folder.exists() and not is_unused(folder):
        raise InputError("out", f"{folder} exists, and holds no study")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, text.encode() + b"\n")
    (folder / "distributions").mkdir(exist_ok=True)


def describe(design: StudyDesign) -> dict[str, Any]:
    """Collect versions, the parameters of a design, and hashes of its files."""
    note: dict[str, Any] = {"version of fastece": __version__}
    note |= {f"version of {name}": version(name) for name in PACKAGES}
    note |= design.to_dict()
    modules = {path: import_module(path.partition(":")[0]).__file__ for path in design.estimators}
    files = modules | {path: path for path in design.input_files}
    for name, file in files.items():
        content = Path(file).read_bytes() if file else b""
        note[f"content of {name}"] = sha256(content).hexdigest()[:HASH_DIGITS]
    return note


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
