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

from fastece.data.errors import InputError
from fastece.files.archives import read_archive
from fastece.files.arrays import read_arrays
from fastece.files.batches import Batch, Choose
from fastece.files.broken import input_errors
from fastece.files.lines import BROKEN
from fastece.files.parquet import read_parquet
from fastece.files.paths import STANDARD_INPUT, is_piped
from fastece.files.text import read_text

GZIP_START = b"\x1f\x8b"
# Bytes of a file that tell its format.
N_START = 6


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
    BinaryFormat(b"PK\x03\x04", ".npz", read_archive),
    BinaryFormat(b"PAR1", ".parquet", read_parquet),
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
    with input_errors(name, *BROKEN), ExitStack() as stack:
        file_on_disk = open_bytes(path, stack)
        size = 0 if is_piped(path) else os.path.getsize(path)
        is_packed = file_on_disk.peek(2).startswith(GZIP_START)
        file: Any = stack.enter_context(gzip.open(file_on_disk)) if is_packed else file_on_disk
        start = file.peek(N_START)[:N_START]
        binary_format = find_binary_format(name, path, start)
        if binary_format is not None:
            # Libraries map a file that is on the disk as it is.
            is_as_it_is = not is_packed and not is_piped(path)
            content = path if is_as_it_is else io.BytesIO(file.read())
            batches = binary_format.read(name, content, choose)
        else:
            check_encoding(name, start)
            text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            lines = stack.enter_context(text)
            batches = read_text(name, lines, choose, header_names)
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


def find_binary_format(name: str, path: str, start: bytes) -> BinaryFormat | None:
    """Find the binary format that begins so, or None for text."""
    for binary_format in BINARY_FORMATS:
        if start.startswith(binary_format.start):
            return binary_format
    ending = Path(path).suffix.lower()
    if ending in {binary_format.ending for binary_format in BINARY_FORMATS}:
        rule = f"is no {ending[1:]} file: it starts with {start!r}"
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
