"""ZIP archives: logs of inspect, NPZ files, and archives that pack one table."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from zipfile import ZipFile

from fastece.data.errors import InputError
from fastece.files.arrays import read_arrays
from fastece.files.batches import Batch, Choose
from fastece.files.broken import input_errors
from fastece.files.evaluations import ATTEMPT_FILE, attempt_batch, read_attempt_files
from fastece.files.paths import FILE_ENDINGS, GZIP_ENDING

# Endings of arrays in an NPZ file, each of which is a column.
ARRAY_ENDING = ".npy"
# A folder that macOS adds to archives; it holds no table.
MAC_FOLDER = "__MACOSX/"
# Files by which archives of other programs are known, and the remedy for each.
FOREIGN_ARCHIVES = {
    "[Content_Types].xml": ("a workbook, such as of Excel", "save a sheet as CSV"),
    "content.xml": ("a document, such as of LibreOffice", "save a sheet as CSV"),
    "data.pkl": ("a file of torch, which could run any code", "save the arrays by numpy.savez"),
    "config.json": ("a saved model", "save its predictions"),
}
# Files of an archive that a message lists.
MAX_LISTED = 4


def find_table(name: str, file: Any) -> str | None:
    """Find the one table that an archive packs; None if it is read as a whole.

    Archives without anything that is read are refused, with their format.
    """
    with input_errors(name, Exception), ZipFile(file) as archive:
        names = [x for x in archive.namelist() if not x.endswith("/")]
    names = [x for x in names if not x.startswith(MAC_FOLDER)]
    if any(x.endswith(ARRAY_ENDING) or ATTEMPT_FILE.fullmatch(x) for x in names):
        return None
    for path in names:
        foreign = FOREIGN_ARCHIVES.get(PurePosixPath(path).name)
        if foreign is not None:
            raise InputError("path", f"is {foreign[0]}", place=name, hint=foreign[1])
    tables = [x for x in names if x.lower().removesuffix(GZIP_ENDING).endswith(FILE_ENDINGS)]
    if len(tables) == 1:
        return tables[0]
    listed = ", ".join(names[:MAX_LISTED]) or "nothing"
    if len(names) > MAX_LISTED:
        listed += ", ..."
    rule = f"is a ZIP archive, and must hold one table, or arrays as an NPZ file; it has {listed}"
    raise InputError("path", rule, place=name, hint="unpack it")


def read_archive(name: str, file: Any, choose: Choose) -> Iterator[Batch]:
    """Read a log of inspect, or an NPZ file, from a path or an open file."""
    with input_errors(name, Exception), ZipFile(file) as archive:
        attempts = read_attempt_files(archive, name)
    if attempts:
        return iter([attempt_batch(name, attempts, choose)])
    if not isinstance(file, str):
        file.seek(0)
    return read_arrays(name, file, choose)
