"""Tables of a file, in batches of rows, by the format in its first bytes."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from glob import glob, has_magic
from itertools import chain
from math import ceil
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import BadArgumentError, InputError
from fastece.files.table import Column, Table, arrow_column
from fastece.files.text import Delimited, holds_objects, object_tables, read_lines

STANDARD_INPUT = "-"
GZIP, PACKED = b"\x1f\x8b", ".gz"
# How files start that are no text, and how their names end.
BINARY = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet"}
TEXT = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json")
# At most so many rows of a batch, and so many numbers: a few megabytes.
ROWS, NUMBERS = 2**17, 2**19
# Chooses the columns of labels and those of numbers, of a table without rows.
Choose = Callable[[Table], tuple[list[str], list[str]]]


class Source:
    """File that is read in batches of rows.

    Parameters
    ----------
    path : str
        Of the file; "-" is standard input.
    choose : callable
        Chooses the columns to read.
    header : sequence of str
        Names of columns one of which a header has.
    """

    def __init__(self, path: str, choose: Choose, header: Sequence[str]) -> None:
        self.path, self.choose, self.header = path, choose, header
        self.name = "standard input" if path == STANDARD_INPUT else path
        self.share = 0.0  # of the file that has been read

    def tables(self) -> Iterator[Table]:
        """Yield the rows in order; of a broken file, the rows before the break first."""
        with readable(self.name, EOFError, OSError, zlib.error), ExitStack() as stack:
            is_input = self.path == STANDARD_INPUT
            if is_input:  # whole, as it may hold what is not read from one end to the other
                plain: Any = io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
            else:
                plain = stack.enter_context(open(self.path, "rb"))
            size = 0 if is_input else os.path.getsize(self.path)
            file = plain
            if file.peek(2).startswith(GZIP):
                file = stack.enter_context(gzip.open(file))
            count = 0
            for table in self.read(file, file.peek(6)[:6]):
                self.share = plain.tell() / size if size else 0.0  # of text
                count += len(table.places)
                if len(table.places):
                    yield table
            if not count:
                raise InputError("path", "is empty: it has no rows", place=self.name)

    def read(self, file: Any, start: bytes) -> Iterator[Table]:
        """Read an open, uncompressed file by the format of its first bytes."""
        kind = next((ending for magic, ending in BINARY.items() if start.startswith(magic)), None)
        suffix = Path(self.path).suffix.lower()
        if kind is None and suffix in BINARY.values():
            rule = f"is no {suffix[1:]} file: it starts with {start!r}"
            raise InputError("path", rule, place=self.name)
        if kind is None:
            return self.read_text(file)
        is_file = type(file) is io.BufferedReader and self.path != STANDARD_INPUT
        whole = self.path if is_file else io.BytesIO(file.read())
        if kind == ".parquet":
            return parquet_tables(self.name, whole, self.choose)
        with readable(self.name, Exception):
            if kind == ".npz":
                with np.load(whole, allow_pickle=False) as archive:
                    return self.slices(dict(archive))
            array = np.load(whole, mmap_mode="r" if is_file else None, allow_pickle=False)
        return self.slices(array_columns(array, self.name))

    def read_text(self, file: IO[bytes]) -> Iterator[Table]:
        """Read lines of delimited text or of JSON as tables."""
        chunks = read_lines(file)
        first = next(chunks)
        chunks = chain([first], chunks)
        if holds_objects(first, self.name):
            return object_tables(self.name, chunks)
        text = Delimited(self.name, first, self.header)
        head = Table(self.name, text.names, lambda _: [], range(0), "line")
        return text.tables(chunks, *self.choose(head))

    def slices(self, columns: dict[str, NDArray[Any]]) -> Iterator[Table]:
        """Cut arrays into batches of rows."""
        table = Table(self.name, [*columns], columns.__getitem__, range(0))
        wanted = [*chain(*self.choose(table))]
        first = columns[wanted[0]]
        count = len(np.atleast_1d(first))
        for name in wanted:
            if columns[name].shape[:1] != (count,):
                rule = f"has shape {columns[name].shape}, {wanted[0]} has {first.shape}"
                raise InputError(name, rule, place=f"{self.name}: column {name}")
        step = rows_of(max(first.size // max(count, 1), len(columns)))
        for start in range(0, count, step):
            stop = min(start + step, count)
            places = range(1, count + 1)
            yield Table(self.name, [*columns], columns.__getitem__, places).part(start, stop)


@contextmanager
def readable(name: str, *broken: type[Exception]) -> Generator[None]:
    """Turn errors of libraries about a broken file into input errors."""
    try:
        yield
    except broken as error:
        if isinstance(error, BadArgumentError) or getattr(error, "errno", None) is not None:
            raise  # one of the disk among them
        raise InputError("path", f"cannot be read: {error}", place=name) from error


def rows_of(numbers: float) -> int:
    """Return the number of rows of a batch for so many numbers in a row."""
    return max(1, min(ROWS, NUMBERS // ceil(max(numbers, 1))))


def array_columns(array: NDArray[Any], name: str) -> dict[str, NDArray[Any]]:
    """Return the columns of an array with named fields, or of one (n, 1 + K)."""
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim != 2 or array.shape[1] < 2:
        rule = (
            f"holds an array of shape {array.shape}, and must hold named fields, or a matrix whose "
            "first column is y_true, and whose others are y_prob, or p_0, p_1 and so on"
        )
        raise InputError("path", rule, place=name)
    width = array.shape[1] - 1
    names = ["y_true", *(f"p_{k}" for k in range(width))] if width > 1 else ["y_true", "y_prob"]
    return dict(zip(names, array.T, strict=True))


def parquet_tables(name: str, file: Any, choose: Choose) -> Iterator[Table]:
    """Read a Parquet file by pyarrow, in batches of its row groups."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        advice = "pip install 'fastece[files]'"
        raise InputError("path", "Parquet needs pyarrow", place=name, hint=advice) from error
    with readable(name, OSError, pyarrow.ArrowException):
        # Without the buffer a column of a row group is read at once, however long it is.
        opened = parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
        names = opened.schema_arrow.names
        labels, numbers = choose(Table(name, names, lambda _: [], range(0)))
        wanted = list(dict.fromkeys([*labels, *numbers]))
        size, before = rows_of(numbers_in(opened.metadata, numbers)), 0
        for batch in opened.iter_batches(size, columns=wanted):
            column = partial(column_of, batch)
            yield Table(name, names, column, range(before + 1, before + batch.num_rows + 1))
            before += batch.num_rows


def numbers_in(metadata: Any, names: Sequence[str]) -> float:
    """Return the mean count of numbers in a row, from the first row group."""
    if not metadata.num_row_groups or not metadata.row_group(0).num_rows:
        return 1.0
    group = metadata.row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    wanted = [x for x in columns if x.path_in_schema.split(".")[0] in names]
    return float(sum(column.num_values for column in wanted) / group.num_rows)


def column_of(batch: Any, name: str) -> Column:
    """Read a column of pyarrow as an array, or as a list of cells if it must be one."""
    column = batch.column(name)
    found = arrow_column(column)
    return column.to_pylist() if found is None else found


def expand_paths(paths: Sequence[str]) -> list[str]:
    """Find the files of paths, patterns and folders.

    The files of a folder are all below it that end as files of predictions do and do not begin with
    "." or "_", in the order of their names.
    """
    found = [file for path in paths for file in files_of(path)]
    places = [os.path.realpath(file) for file in found]
    for k, place in enumerate(places):
        if place in places[:k]:
            raise InputError("path", "is named twice; its rows would count twice", place=found[k])
    return found


def files_of(path: str) -> list[str]:
    """Find the files of one path."""
    if os.path.isdir(path):
        endings = (*TEXT, *BINARY.values())
        every = (file for file in Path(path).rglob("*") if file.is_file())
        below = sorted(str(file) for file in every if not is_hidden(file.relative_to(path)))
        files = [x for x in below if x.lower().removesuffix(PACKED).endswith(endings)]
        rule = f"no file in this folder ends in {', '.join(endings)}"
    elif os.path.exists(path) or not has_magic(path):
        return [path]
    else:
        files = sorted(file for file in glob(path, recursive=True) if os.path.isfile(file))
        rule = "no file has such a name"
    if not files:
        raise InputError("path", rule, place=path)
    return files


def is_hidden(path: Path) -> bool:
    """Return whether a path has the name of a hidden file or folder.

    Names of notebooks' copies and of unfinished work begin with a dot or an underscore.
    """
    return any(part.startswith((".", "_")) for part in path.parts)
