"""Formats of files, which are known by their first bytes and not by their names.

A new format is a class of `Table` and a case in `find_format`.
"""

import io
import json
from collections.abc import Callable, Collection, Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.files.json_objects import DECODER, read_object
from fastece.files.tables import (
    ARRAY_ENDING,
    ARROW_FILE_START,
    BYTE_ORDER_MARK,
    MAX_HEAD_LINES,
    NUMPY_START,
    SAMPLES,
    ZIP_STARTS,
    ColumnTable,
    JsonLines,
    JsonObjects,
    NumberedRow,
    ParseLines,
    Source,
    Table,
    find_lists,
    is_text,
    name_of,
    names_in,
    open_zstandard,
    read_entries,
    refusing_broken,
)

PARQUET_START = b"PAR1"
ARROW_STARTS = (ARROW_FILE_START, b"\xff\xff\xff\xff")
# Files of an archive that a message lists.
MAX_LISTED = 4
# A method of ZIP that inspect uses, and that the standard library knows from Python 3.14 on.
ZIP_ZSTANDARD = 93
NO_FORMAT = "is none of CSV and JSON in UTF-8, Parquet, Arrow, NPZ and NPY"
SAVE_AS_CSV = "save the table as CSV in UTF-8"


def open_table(
    path: str,
    known_names: Collection[str] = ("y_true", "true_label"),
    on_bad_row: Callable[[InputError], None] | None = None,
) -> Table:
    """Open a file as a table.

    Parameters
    ----------
    path : str
        A file, a pipe, or "-" for standard input.
    known_names : collection of str
        Names of columns. One of them shows the delimiter of a text, and whether lists of JSON are
        columns.
    on_bad_row : callable, optional
        As in `Table`.
    """
    with refusing_broken(name_of(path)):
        source = Source(path)
        table = find_format(source, known_names)
        table.on_bad_row = on_bad_row
        if isinstance(table, JsonObjects):
            table.find_names()
        return table


def find_format(source: Source, known_names: Collection[str]) -> Table:
    """Find the format of a file by its first bytes."""
    start = source.start
    if start.startswith(PARQUET_START):
        from fastece.files.arrow_tables import ParquetTable

        return ParquetTable(source)
    if start.startswith(ARROW_STARTS):
        from fastece.files.arrow_tables import ArrowTable

        return ArrowTable(source)
    if start.startswith(NUMPY_START):
        return open_array(source)
    if start.startswith(ZIP_STARTS):
        return open_archive(source)
    text = start.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not text:
        raise InputError("path", "is empty", place=source.name)
    if b"\0" in start:
        raise InputError("path", NO_FORMAT, place=source.name, hint=SAVE_AS_CSV)
    if text.startswith((b"{", b"[")):
        return open_json(source, known_names)
    if any(map(holds_object, first_lines(source))):
        # The first lines are no objects, and are refused, or left out.
        return JsonLines(source, find_line_parser())
    if not is_text(text.splitlines()[0]):
        raise InputError("path", NO_FORMAT, place=source.name, hint=SAVE_AS_CSV)
    from fastece.files.arrow_tables import DelimitedText

    return DelimitedText(source, known_names)


# --- JSON -----------------------------------------------------------------------------------------


def find_line_parser() -> ParseLines | None:
    """Return the function that parses lines by pyarrow, or None without it."""
    try:
        from fastece.files.arrow_tables import parse_lines
    except ImportError:
        return None
    return parse_lines


def open_json(source: Source, known_names: Collection[str]) -> Table:
    """Open lines of objects, an array of objects, an object of lists, or one object."""
    lines = first_lines(source)
    if len(lines) > 1 and holds_object(lines[0]):
        return JsonLines(source, find_line_parser())
    with source.opened_text() as text:
        content = text.read()
    try:
        document = DECODER.decode(content.strip())
    except (ValueError, RecursionError) as error:
        if lines[0].startswith(b"{") or any(map(holds_object, lines)):
            # Its lines are refused, or left out, one by one.
            return JsonLines(source, find_line_parser())
        rule = f"is a JSON array that is cut off or broken: {error}"
        raise InputError("path", rule, place=source.name) from error
    if isinstance(document, list):
        if not any(isinstance(entry, dict) for entry in document):
            rule = "is a JSON array without objects; each entry must be one, with its columns"
            raise InputError("path", rule, place=source.name)
        return JsonObjects(source.name, "entry", lambda: read_entries(source.name, document))
    lists = find_lists(document)
    if len(lists) > 1 and not set(known_names).isdisjoint(lists):
        return ColumnTable(source.name, list(lists), lists, unit="entry")
    return JsonObjects(source.name, "line", lambda: iter([(1, document)]))


def first_lines(source: Source) -> list[bytes]:
    """Return the first lines of a text that are not blank."""
    lines = source.start.removeprefix(BYTE_ORDER_MARK).splitlines()[:MAX_HEAD_LINES]
    return list(filter(None, map(bytes.strip, lines)))


def holds_object(line: bytes) -> bool:
    """Decide whether a line is one object of JSON."""
    try:
        return line.startswith(b"{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


# --- arrays and archives --------------------------------------------------------------------------


def open_array(source: Source) -> Table:
    """Open an NPY file: named fields, or a matrix whose first column is y_true."""
    content = source.for_library()
    mode: Any = "r" if isinstance(content, str) else None
    array = np.load(content, mmap_mode=mode, allow_pickle=False)
    columns = name_columns(array, source.name)
    return ColumnTable(source.name, list(columns), columns)


def name_columns(array: NDArray[Any], file: str) -> dict[str, NDArray[Any]]:
    """Return the columns of an array with named fields, or of a matrix (n, 1 + K)."""
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim != 2 or array.shape[1] < 2:
        rule = (
            f"holds an array of shape {array.shape}, and must hold named fields, or a matrix whose "
            "first column is y_true, and whose others are y_prob, or p_0, p_1 and so on"
        )
        raise InputError("path", rule, place=file)
    n_classes = array.shape[1] - 1
    names = [f"p_{k}" for k in range(n_classes)] if n_classes > 1 else ["y_prob"]
    return dict(zip(["y_true", *names], array.T, strict=True))


def open_archive(source: Source) -> Table:
    """Open arrays of numpy, each of which is a column, or the attempts of inspect."""
    with source.opened() as file, ZipFile(file) as archive:
        names = names_in(archive)
    if any(name.endswith(ARRAY_ENDING) for name in names):
        with np.load(source.for_library(), allow_pickle=False) as arrays:
            # Files that are no arrays come as bytes. A name may come twice.
            columns = {key: x for key, x in arrays.items() if isinstance(x, np.ndarray)}
            return ColumnTable(source.name, [x for x in arrays.files if x in columns], columns)
    if any(name.startswith(SAMPLES) for name in names):
        return JsonObjects(source.name, "attempt", lambda: read_samples(source))
    listed = ", ".join(names[:MAX_LISTED]) or "nothing"
    if len(names) > MAX_LISTED:
        listed += ", ..."
    rule = f"is a ZIP archive, and must hold one table, or arrays as an NPZ file; it has {listed}"
    raise InputError("path", rule, place=source.name, hint="unpack it")


def read_samples(source: Source) -> Iterator[NumberedRow]:
    """Read the attempts in an archive of inspect; a later file of a name counts."""
    with source.opened() as file, ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        samples = [x for x in infos if x.startswith(SAMPLES) and x.endswith(".json")]
        for number, name in enumerate(samples, 1):
            place = f"{source.name}: {name}"
            with refusing_broken(place):
                content = unpack_member(archive, infos[name])
            yield number, read_object(content, place)


def unpack_member(archive: ZipFile, info: ZipInfo) -> bytes:
    """Read a file of an archive, by pyarrow if zstandard has packed it."""
    if info.compress_type != ZIP_ZSTANDARD:
        return archive.read(info)
    # The bytes are read as they are; the checksum is the one of the unpacked ones.
    info.compress_type = ZIP_STORED
    info.file_size = info.compress_size
    del info.CRC
    content: bytes = open_zstandard(io.BytesIO(archive.read(info))).read()
    return content
