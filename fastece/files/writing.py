"""Predictions written to files in the format of the file's ending, and any file written whole."""

import csv
import gzip
import io
import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError, InputWarning, warn_outside
from fastece.files.columns import NamedColumns
from fastece.files.formats import PACKED
from fastece.files.predictions import Predictions

Columns = dict[str, NDArray[Any]]
# The start of a text that a spreadsheet runs, and no number.
FORMULA = re.compile(r"\A(?=[=@\t\r]|[+-](?!(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z))")
# The attribute of a file on Linux that lists who may use it, where its mode does not say all.
READERS_LIST = "system.posix_acl_access"


def check_output(path: Path) -> None:
    """Refuse a file name whose ending has no writer."""
    if ending_of(path) not in WRITERS:
        raise InputError("out", f"must end in {', '.join(WRITERS)}", value=str(path))


def ending_of(path: Path) -> str:
    """Return the ending of a file name, before the one of gzip."""
    return Path(path.name.lower().removesuffix(PACKED)).suffix


def write_predictions(path: Path, predictions: Predictions, *, is_safe: bool = False) -> None:
    """Write the columns of predictions to a file, complete or not at all.

    They have the names that the file had. A name that ends in .gz makes it packed by gzip. With
    `is_safe`, no text is one that a spreadsheet would run.
    """
    prob, names = np.asarray(predictions.y_prob), predictions.columns.get("y_prob", ["y_prob"])
    if isinstance(predictions.y_prob, NamedColumns):
        names = predictions.y_prob.columns
    columns = {names[0]: prob} if len(names) == 1 else dict(zip(names, prob.T, strict=True))
    labels = predictions.cells or {"y_true": predictions.y_true}
    columns = {**labels, **columns}
    try:
        content = WRITERS[ending_of(path)](quote_formulas(columns) if is_safe else columns)
    except UnicodeError as error:
        rule = "must end in .jsonl or .npz, as half of a surrogate pair, in a label, is no UTF-8"
        raise InputError("out", rule, value=str(path)) from error
    if path.suffix.lower() == PACKED:
        content = gzip.compress(content, 6, mtime=0)
    write_file(path, content)


def quote_formulas(columns: Columns) -> Columns:
    """Put an apostrophe before names and cells that spreadsheets take for formulas."""

    def quote(cell: Any) -> Any:
        return FORMULA.sub("'", cell) if isinstance(cell, str) else cell

    texts = {name: x for name, x in columns.items() if x.dtype.kind in "OUT"}
    texts = {name: np.array([*map(quote, x.tolist())], object) for name, x in texts.items()}
    return {quote(name): texts.get(name, x) for name, x in columns.items()}


def to_text(columns: Columns) -> bytes:
    """Write columns as delimited text with a header; numbers have all their digits."""
    flat: Columns = {}
    for name, column in columns.items():
        word = "p" if name == "y_prob" else name
        one = column.ndim == 1
        flat |= {name: column} if one else {f"{word}_{k}": x for k, x in enumerate(column.T)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(flat)
    writer.writerows(zip(*(column.tolist() for column in flat.values()), strict=True))
    return text.getvalue().encode()


def to_lines(columns: Columns) -> bytes:
    """Write columns as JSON Lines."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

    def text(cell: Any) -> str:  # JSON has no infinity, but numbers that are read as it
        return repr(cell).replace("inf", "1e999") if isinstance(cell, float) else encode(cell)

    names = [*map(encode, columns)]
    rows = zip(*(map(text, column.tolist()) for column in columns.values()), strict=True)
    lines = (", ".join(map("{}: {}".format, names, row)) for row in rows)
    # Half of a surrogate pair was an escape and becomes one.
    return "".join(f"{{{line}}}\n" for line in lines).encode("utf-8", "backslashreplace")


def to_archive(columns: Columns) -> bytes:
    """Write columns as an archive of NumPy."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **columns)
    return file.getvalue()


def to_parquet(columns: Columns) -> bytes:
    """Write columns as Parquet by pyarrow."""
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    arrays = {name: pa.array(x if x.ndim == 1 else list(x)) for name, x in columns.items()}
    parquet.write_table(pa.table(arrays), file)
    return file.getvalue()


WRITERS: dict[str, Callable[[Columns], bytes]] = {
    ".csv": to_text,
    ".jsonl": to_lines,
    ".npz": to_archive,
    ".parquet": to_parquet,
}


# --- any file -----------------------------------------------------------------------------------


def write_file(path: str | PathLike[str], content: bytes) -> None:
    """Write a file: at its place there is the old one, or the whole new one.

    Mode and owner of the old one are kept, or a warning is issued. A pipe or another device is
    written to.
    """
    try:
        if is_device(path):
            with open(os.open(path, os.O_WRONLY), "wb") as file:
                file.write(content)
        else:
            replace_file(path, content)
    except OSError as error:  # which may name no file, or the part of one
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_device(path: str | PathLike[str]) -> bool:
    """Return whether there is something else than a regular file or a folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def replace_file(path: str | PathLike[str], content: bytes) -> None:
    """Write content beside a path, and rename it when it is on the disk."""
    place = Path(os.path.realpath(path))
    old = place.stat() if place.exists() else None
    part = place.with_name(f".{uuid4().hex}.part")

    def write(file: IO[bytes]) -> None:
        file.write(content)
        file.flush()
        if old is not None and hasattr(os, "fchown"):  # not on Windows
            keep_access(place, old, file.fileno())
        os.fsync(file.fileno())

    try:
        make_file(part, 0o666 if old is None else 0o600, write)
        new = part.stat()
        os.replace(part, place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if old is not None and (new.st_uid, new.st_gid, 1) != (old.st_uid, old.st_gid, old.st_nlink):
        rule = "is a new file: its owner or group, or other hard links to it, could not be kept"
        warn_outside(InputWarning("path", rule, place=str(path)))


def make_file(path: Path, mode: int, write: Callable[[IO[bytes]], None]) -> None:
    """Make a file and write to it; on Linux it has no name before it is whole."""
    with suppress(OSError, AttributeError):  # where this system, or this disk, has only names
        with open(os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, mode), "wb") as file:
            write(file)
            # Links are followed only with some folder, though an absolute path has no use of it.
            os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=file.fileno())
        return
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        write(file)


def keep_access(path: Path, old: os.stat_result, file: int) -> None:
    """Give an open file the owner, the mode and the list of readers of an old one."""
    with suppress(OSError):  # a group of one's own can be given, another owner only by root
        os.fchown(file, -1, old.st_gid)
        os.fchown(file, old.st_uid, -1)
    with suppress(OSError, AttributeError):  # most have no such list, but on Linux some do
        os.setxattr(file, READERS_LIST, os.getxattr(path, READERS_LIST))
    # What a group could read is not for another group.
    mask = 0o777 if os.fstat(file).st_gid == old.st_gid else 0o707
    os.fchmod(file, old.st_mode & mask)
