"""Which format a file has: its first bytes say so, whatever its name is."""

import codecs
import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from fastece.files.json_lines import Objects
from fastece.files.numpy_files import Archive, read_npy
from fastece.files.parquet import read_parquet
from fastece.files.table import Table, shown
from fastece.files.text import Text

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"
# How files that are no text start, and their names end.
BINARY = {
    b"\x93NUMPY": (".npy", read_npy),
    b"PK\x03\x04": (".npz", Archive),
    b"PAR1": (".parquet", read_parquet),
}
# Bytes that are no text, as Python keeps them.
UNDECODED = re.compile("[\udc80-\udcff]")
# What readers raise for a file that is not whole, or not what its first bytes say.
UNREADABLE = (
    ValueError, TypeError, EOFError, RuntimeError, csv.Error, gzip.BadGzipFile, zlib.error
)  # fmt: skip


def read_table(path: str, wanted: Collection[str]) -> Table:
    """Read a file, or standard input, as a table; `wanted` are columns that a header may have."""
    if path == STANDARD_INPUT:
        return read_source(io.BytesIO(sys.stdin.buffer.read()), "", wanted)
    with open(path, "rb") as file:
        return read_source(file, Path(path).suffix.lower(), wanted)


def read_source(file: IO[bytes], suffix: str, wanted: Collection[str]) -> Table:
    """Read an open file; `suffix` is how its name ends."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(GZIP):
        # No BufferedReader, of which numpy would take the file below, which is packed.
        with gzip.open(file) as unpacked:
            return read_source(cast("IO[bytes]", unpacked), "", wanted)
    for magic, (ending, read) in BINARY.items():
        if start.startswith(magic):
            try:
                return read(file)
            except ValueError:
                raise
            except Exception as error:  # whatever numpy and pyarrow raise for broken files
                raise ValueError(f"cannot be read as {ending[1:]}: {error}") from error
    if suffix in [ending for ending, _ in BINARY.values()]:
        raise ValueError(f"is no {suffix[1:]} file: it starts with {start!r}")
    lines = [line for chunk in read_lines(file) for line in chunk]
    check_lines(lines)
    if holds_objects(lines):
        return Objects(lines)
    return Text(lines, wanted, has_mark=start.startswith(codecs.BOM_UTF8))


def holds_objects(lines: Sequence[str]) -> bool:
    """Whether a text is JSON Lines: its first line is an object."""
    first = next(filter(None, map(str.strip, lines)), "")
    if first.startswith("["):
        raise ValueError("is a JSON array; one object a line (JSON Lines) is read")
    return first.startswith("{")


def read_lines(file: IO[bytes], size: float = math.inf) -> Iterator[list[str]]:
    """The lines of a text, with their ends, some `size` characters at a time. Those that are there
    before what cannot be unpacked come before the error about that."""
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    lines: list[str] = []
    length, fault = 0, None
    try:
        for line in text:
            lines.append(line)
            length += len(line)
            if length >= size:
                yield lines
                lines, length = [], 0
    except UNREADABLE as error:
        fault = error
    finally:
        text.detach()  # lest it closes the file
    yield lines
    if fault is not None:
        raise fault


def check_lines(lines: Sequence[str], before: int = 0) -> None:
    """Lines are text; `before`: how many lines of the file are before them."""
    for number, line in enumerate(lines, before + 1):
        if not line.isascii() and UNDECODED.search(line):
            found = shown(line.encode(errors="surrogateescape"))
            known = ", ".join(ending[1:] for ending, _ in BINARY.values())
            raise ValueError(
                f"line {number}: is no text in UTF-8, got {found}; and the file is no {known} or "
                "gzip file"
            )
