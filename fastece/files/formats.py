"""Formats of files: which one a file has is known by its first bytes, not by its name.

A new binary format is a row of `BINARY_FORMATS`; `text` tells formats of text from each other.
"""

import gzip
import io
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from fastece.data.errors import InputError
from fastece.files.archives import find_table, read_archive
from fastece.files.arrays import read_arrays
from fastece.files.arrow_files import FILE_START, STREAM_START, read_arrow_file
from fastece.files.batches import Batch, Choose
from fastece.files.broken import input_errors
from fastece.files.foreign import N_TEXT_BYTES, refuse_binary, refuse_foreign
from fastece.files.parquet import read_parquet
from fastece.files.paths import STANDARD_INPUT, is_piped
from fastece.files.text import read_text

GZIP_START = b"\x1f\x8b"
# An archive holds an NPZ file, a log of inspect, or a table.
ZIP_START = b"PK\x03\x04"
NPZ_ENDING = ".npz"
# An archive without files, which has an end alone.
EMPTY_ZIP = b"PK\x05\x06"


class BinaryFormat(NamedTuple):
    """A format that is no text: how files begin and end, and their reader.

    `read` takes the name of the file for messages, its path or an open file, and the function that
    chooses columns.
    """

    start: bytes
    ending: str
    read: Callable[[str, Any, Choose], Iterator[Batch]]


BINARY_FORMATS = (
    BinaryFormat(b"\x93NUMPY", ".npy", read_arrays),
    BinaryFormat(b"PAR1", ".parquet", read_parquet),
    BinaryFormat(FILE_START, ".feather", read_arrow_file),
    BinaryFormat(STREAM_START, ".arrow", read_arrow_file),
)


def read_batches(path: str, choose: Choose, header_names: Collection[str]) -> Iterator[Batch]:
    """Yield the rows of a file in order; a broken file yields those before the break.

    Parameters
    ----------
    path : str
        A file, a pipe, or "-" for standard input. Pipes are read into memory first.
    choose : callable
        Chooses the columns to read, given the `Header`.
    header_names : collection of str
        Names by one of which the header of delimited text is known.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    # Any error of a library that parses the bytes is the fault of the file.
    with input_errors(name, Exception), ExitStack() as stack:
        file_on_disk = open_bytes(path, stack)
        size = 0 if is_piped(path) else os.path.getsize(path)
        inner_name, file = open_packed(name, file_on_disk, stack)
        start = file.peek(N_TEXT_BYTES)
        binary_format = find_binary_format(inner_name, start)
        # Libraries map a file that is on the disk as it is.
        is_as_it_is = file is file_on_disk and not is_piped(path)
        if start.startswith(ZIP_START):
            content = path if is_as_it_is else io.BytesIO(file.read())
            batches = read_archive(inner_name, content, choose)
        elif binary_format is not None:
            content = path if is_as_it_is else io.BytesIO(file.read())
            batches = binary_format.read(inner_name, content, choose)
        else:
            check_encoding(inner_name, start)
            refuse_binary(inner_name, start)
            text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            lines = stack.enter_context(text)
            batches = read_text(inner_name, lines, choose, header_names)
        n_rows = 0
        for batch in batches:
            n_rows += len(batch.places)
            if len(batch.places):
                yield replace(batch, share_read=file_on_disk.tell() / size if size else 0.0)
        if not n_rows:
            raise InputError("path", "is empty: it has no rows", place=name)


def open_bytes(path: str, stack: ExitStack) -> Any:
    """Open a file as bytes; a pipe is read whole.

    Not all formats are read from one end to the other.
    """
    if path == STANDARD_INPUT:
        return io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
    if is_piped(path):
        return io.BufferedReader(io.BytesIO(Path(path).read_bytes()))
    return stack.enter_context(open(path, "rb"))


def open_packed(name: str, file: Any, stack: ExitStack) -> tuple[str, Any]:
    """Open the content of a file that gzip has packed, or of an archive of one table.

    The name is the one for messages. Other files come back as they are.
    """
    start = file.peek(len(ZIP_START))
    if start.startswith(GZIP_START):
        return name, stack.enter_context(gzip.open(file))
    if not start.startswith((ZIP_START, EMPTY_ZIP)):
        return name, file
    table = find_table(name, file)
    file.seek(0)
    if table is None:
        return name, file
    inner_name = f"{name}: {table}"
    archive = stack.enter_context(ZipFile(file))
    opened: Any = stack.enter_context(archive.open(table))
    member = io.BufferedReader(opened)
    if not member.peek(len(GZIP_START)).startswith(GZIP_START):
        return inner_name, member
    return inner_name, stack.enter_context(gzip.open(member))


def find_binary_format(name: str, start: bytes) -> BinaryFormat | None:
    """Find the binary format that begins so; None for text and for archives."""
    for binary_format in BINARY_FORMATS:
        if start.startswith(binary_format.start):
            return binary_format
    refuse_foreign(name, start)
    ending = Path(name).suffix.lower()
    endings = {NPZ_ENDING, *(binary_format.ending for binary_format in BINARY_FORMATS)}
    if ending in endings and not start.startswith(ZIP_START):
        rule = f"is no {ending[1:]} file: it starts with {start[:6]!r}"
        raise InputError("path", rule, place=name)
    return None


def check_encoding(name: str, start: bytes) -> None:
    """Refuse text in UTF-16 or UTF-32, which its first bytes show."""
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        text = start[:4].decode(encoding, "replace")
        has_mark = text.startswith("\ufeff")
        is_ascii_text = text.isascii() and text.strip("\0") == text != ""
        if has_mark or is_ascii_text:
            rule = f"is {encoding[:6].upper()}; save it as UTF-8"
            raise InputError("path", rule, place=name)
