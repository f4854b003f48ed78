"""ZIP archives: logs of inspect, and NPZ files."""

from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

from fastece.files.arrays import read_arrays
from fastece.files.batches import Batch, Choose
from fastece.files.broken import input_errors
from fastece.files.evaluations import attempt_batch, read_attempt_files


def read_archive(name: str, file: Any, choose: Choose) -> Iterator[Batch]:
    """Read a log of inspect, or an NPZ file, from a path or an open file."""
    with input_errors(name, Exception), ZipFile(file) as archive:
        attempts = read_attempt_files(archive, name)
    if attempts:
        return iter([attempt_batch(name, attempts, choose)])
    if not isinstance(file, str):
        file.seek(0)
    return read_arrays(name, file, choose)
