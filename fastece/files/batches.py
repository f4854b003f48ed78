"""Predictions from files that need not fit in memory, a batch of rows at a time.

Text and JSON Lines, packed by gzip or not, are read line by line, Parquet by its row groups, and
arrays of NumPy are mapped. Archives, and arrays and Parquet that gzip packs, are read whole and
handed out in batches.
"""

import glob
import gzip
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, prod
from os import PathLike
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError, repr_of
from fastece.files.columns import Columns
from fastece.files.json_lines import Objects
from fastece.files.numpy_files import array_table
from fastece.files.parquet import Parquet, parquet_tables
from fastece.files.predictions import Chosen, Predictions, read_rows
from fastece.files.source import (
    BINARY,
    GZIP,
    STANDARD_INPUT,
    UNREADABLE,
    check_lines,
    holds_objects,
    read_lines,
    read_table,
)
from fastece.files.table import Rows
from fastece.files.text import Text, record_ends
from fastece.files.writing import FORMATS, PACKED

# At most so many rows of a batch, so many numbers, and so many characters of text: a few megabytes
# as arrays, and some ten times as much while the cells of text are strings.
ROWS, NUMBERS, CHARACTERS = 2**19, 2**21, 2**22
WHOLE = "; such a file is read whole, by fastece report without --stream"
T = TypeVar("T")


class Batch(Protocol):
    """Some rows of a file, not yet read as predictions."""

    @property
    def share(self) -> float:
        """The share of the file that is read with them."""

    def table(self) -> Rows:
        """The rows as a table, whose messages have the numbers of rows in the file."""

    def parts(self) -> Sequence["Batch"]:
        """Two halves, or none of a single row."""


@dataclass(frozen=True)
class LineBatch:
    """Lines of a text, of which no row is cut; `before`: how many lines are before them. Without a
    delimiter each is an object of JSON."""

    lines: list[str]
    before: int
    make: Callable[[list[str], int], Rows]
    delimiter: str | None
    share: float = 1.0

    def table(self) -> Rows:
        """The rows as a table, unless there are bytes that are no text."""
        check_lines(self.lines, self.before)
        return self.make(self.lines, self.before)

    def parts(self) -> Sequence[Batch]:
        """Two halves, without one that is blank."""
        ends, _ = row_ends(self.lines, self.delimiter)
        if len(ends) < 2:
            return []
        middle = ends[len(ends) // 2 - 1]
        first = replace(self, lines=self.lines[:middle])
        second = replace(self, lines=self.lines[middle:], before=self.before + middle)
        return [part for part in (first, second) if part.has_rows]

    @property
    def has_rows(self) -> bool:
        """Whether a line is not blank."""
        return any(line.strip() for line in self.lines)


@dataclass(frozen=True)
class ColumnBatch:
    """Rows from `start` to `stop` of columns, before which the file has so many more."""

    columns: Columns
    start: int
    stop: int
    before: int = 0
    share: float = 1.0

    def table(self) -> Rows:
        """The rows as a table."""
        return self.columns.part(self.start, self.stop, self.before)

    def parts(self) -> Sequence[Batch]:
        """Two halves."""
        middle = (self.start + self.stop) // 2
        halves = [replace(self, stop=middle), replace(self, start=middle)]
        return halves if middle > self.start else []


class BatchReader:
    """The batches of one file, which are all read in the way that the first one is.

    Parameters
    ----------
    path : str or path
    options
        Of `fastece.files.read_predictions`, but for `keep_table`.
    """

    def __init__(self, path: str | PathLike[str], **options: Any) -> None:
        self.path, self.chosen = str(path), Chosen(**options)
        self.form = ""

    def batches(self) -> Iterator[Batch]:
        """The batches in their order, and where the file cannot be read further an error."""
        if self.path == STANDARD_INPUT:
            raise InputError("path", "is no stream: it is read whole, without --stream", place="-")
        count = 0
        try:
            for count, batch in enumerate(ahead(self.open()), 1):  # noqa: B007
                yield batch
            if not count:
                raise ValueError("is empty: it has no rows")
        except UNREADABLE as error:
            raise InputError("path", str(error), place=self.path) from error

    def read(self, batch: Batch) -> Predictions:
        """A batch as predictions, whose labels are numbers of classes."""
        try:
            return self.checked(read_rows(batch.table(), self.chosen))
        except UNREADABLE as error:
            raise InputError("path", str(error), place=self.path) from error

    def checked(self, found: Predictions) -> Predictions:
        """Predictions that mean the same whatever the rows of other batches are, with labels and
        probabilities of the kind that the first batch has."""
        if found.note:
            raise ValueError(f"is a log of lm-evaluation-harness, which is no stream{WHOLE}")
        is_text = found.label.dtype.kind in "OUST"
        if is_text and not found.pairs:
            # Text that is a number is so where another row of the batch has one that is not.
            bad = next((i for i, x in enumerate(found.label) if not is_number(str(x))), 0)
            raise ValueError(
                f"{found.row(bad)}, column {found.columns['y_true'][0]}: must be the number of a "
                "class, as which column another label stands for is not known before all rows are "
                f"read, got {repr_of(found.label[bad])}{WHOLE}"
            )
        names = getattr(found.y_prob, "columns", [])
        if any(name.isdecimal() and int(name) != k for k, name in enumerate(names)):
            raise ValueError(f"columns {names!r:.200} are not in the order of their classes{WHOLE}")
        prob = np.asarray(found.y_prob)
        width = f"{prob.shape[1]} probabilities" if prob.ndim > 1 else "one probability"
        form = f"{'a string' if is_text else 'a number'} as label and {width}"
        if form != (self.form or form):
            raise ValueError(
                f"{found.row(0)}: must have {self.form}, as rows before it, got {form}"
            )
        self.form = form
        return replace(found, y_true=as_bytes(found.y_true), y_prob=prob, file=self.path)

    def open(self) -> Generator[Batch]:
        """The batches of a file, by its format."""
        with open(self.path, "rb") as file:
            start = file.peek(6)[:6]
            if start.startswith(GZIP):
                with gzip.open(file) as unpacked:
                    is_text = not unpacked.peek(6)[:6].startswith(tuple(BINARY))
                    text = self.text(cast("IO[bytes]", unpacked), file)
                    yield from text if is_text else self.whole()
                return
            known = {ending: magic for magic, (ending, _) in BINARY.items()}
            found = [ending for ending, magic in known.items() if start.startswith(magic)]
            if found == [".npy"]:
                yield from self.array(file)
            elif found == [".parquet"]:
                yield from self.parquet()
            elif found or Path(self.path).suffix.lower() in known:
                yield from self.whole()  # or what is wrong
            else:
                yield from self.text(file, file)

    def whole(self) -> Iterator[Batch]:
        """What is read whole, as batches."""
        table = read_table(self.path, self.chosen.header)
        assert isinstance(table, Columns), "text is read by lines"
        yield from self.slices(table)

    def slices(self, table: Columns) -> Iterator[Batch]:
        """A table as batches."""
        first = table.column(self.chosen.check(table)[0])
        count, step = len(first), rows_of(np.size(first) // max(len(first), 1) + len(table.names))
        for start in range(0, count, step):
            stop = min(start + step, count)
            yield ColumnBatch(table, start, stop, share=stop / count)

    def text(self, file: IO[bytes], packed: IO[bytes]) -> Iterator[Batch]:
        """Lines of text, or of JSON. `packed` is the file on the disk, which tells how far it is
        read."""
        size = os.fstat(packed.fileno()).st_size
        chunks = read_lines(file, CHARACTERS)
        lines = next(chunks)
        make: Callable[[list[str], int], Rows] = Objects
        delimiter, before = None, 0
        if not holds_objects(lines):
            table = Text(lines, self.chosen.header)
            self.chosen.check(table)
            make, delimiter, before, lines = table.part, table.delimiter, table.header, table.lines
        rest: list[str] = []
        for chunk in chain([lines], chunks):
            lines = rest + chunk
            ends, is_whole = row_ends(lines, delimiter)
            stop = len(lines) if is_whole else [0, *ends][-2]
            batch = LineBatch(lines[:stop], before, make, delimiter, packed.tell() / size)
            if batch.has_rows:
                yield batch
            rest, before = lines[stop:], before + stop
        if rest:  # behind a quote that nothing closes
            yield LineBatch(rest, before, make, delimiter)

    def array(self, file: IO[bytes]) -> Iterator[Batch]:
        """An array of NumPy, mapped batch by batch, so that what was read does not stay."""
        layout = np.lib.format
        known = {(1, 0): layout.read_array_header_1_0, (2, 0): layout.read_array_header_2_0}
        read = known.get(layout.read_magic(file))
        shape, is_fortran, kind = read(file) if read else ((), True, np.dtype(object))
        if is_fortran or kind.hasobject or not shape:
            yield from self.slices(array_table(np.load(self.path, mmap_mode="r")))
            return
        names = self.chosen.check(array_table(np.empty((0, *shape[1:]), kind)))
        start, width = file.tell(), kind.itemsize * prod(shape[1:])
        count = min(shape[0], (os.fstat(file.fileno()).st_size - start) // width)
        step = rows_of(max(prod(shape[1:]), len(names)))
        for row in range(0, count, step):
            size = min(step, count - row)
            place = start + row * width
            part = np.memmap(self.path, kind, "r", place, (size, *shape[1:]))
            yield ColumnBatch(array_table(part), 0, size, row, (row + size) / count)
        if count < shape[0]:
            raise ValueError(f"is cut off: {count} of its {shape[0]} rows are there")

    def parquet(self) -> Iterator[Batch]:
        """Rows of a Parquet file."""
        before = 0
        for table, total in parquet_tables(self.path, self.chosen.check, rows_of):
            size, start = table.num_rows, before
            before += size
            yield ColumnBatch(Parquet(table), 0, size, start, before / total)


def read_batches(path: str | PathLike[str], **options: Any) -> Iterator[Predictions]:
    """Read a file of predictions a batch at a time: so much of it is in memory as two batches have.

    Parameters
    ----------
    path : str or path
    options
        Of `fastece.files.read_predictions`, but for `keep_table`.

    Yields
    ------
    Predictions
        Some rows, in the order of the file; `row` tells their numbers in the file.

    Raises
    ------
    ValueError
        As `read_predictions` does; where labels are no numbers of classes, or a batch has others
        than the first one.
    """
    reader = BatchReader(path, **options)
    return map(reader.read, reader.batches())


def expand_paths(paths: Sequence[str]) -> list[str]:
    """The files that paths, patterns, and folders mean: of a folder all below it that end as files
    of predictions do and do not begin with "." or "_", in the order of their names."""
    found = [file for path in paths for file in files_of(path)]
    places = [os.path.realpath(file) for file in found]
    for k, place in enumerate(places):
        if place in places[:k]:
            raise InputError("path", "is named twice; its rows would count twice", place=found[k])
    return found


def files_of(path: str) -> list[str]:
    """The files that one path means."""
    if os.path.isdir(path):
        endings = tuple(ending for one in FORMATS for ending in one.endings)
        every = (file for file in Path(path).rglob("*") if file.is_file())
        below = sorted(str(file) for file in every if not is_hidden(file.relative_to(path)))
        files = [x for x in below if x.lower().removesuffix(PACKED).endswith(endings)]
        if not files:
            raise InputError(
                "path", f"no file in this folder ends in {', '.join(endings)}", place=path
            )
        return files
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    files = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not files:
        raise InputError("path", "no file has such a name", place=path)
    return files


def is_hidden(path: Path) -> bool:
    """Whether a file, or a folder that it is in, has the name of what is not meant: those of
    notebooks' copies and of unfinished work begin with a dot or an underscore."""
    return any(part.startswith((".", "_")) for part in path.parts)


def is_number(text: str) -> bool:
    """Whether a label is written as a whole number is."""
    return text.strip().removeprefix("-").isdecimal()


def ahead(items: Generator[T]) -> Iterator[T]:
    """The same, each made by another thread while the one before is used."""
    with closing(items), ThreadPoolExecutor(1) as pool:
        future = pool.submit(next, items, None)
        while (item := future.result()) is not None:
            future = pool.submit(next, items, None)
            yield item


def row_ends(lines: list[str], delimiter: str | None) -> tuple[list[int], bool]:
    """As `record_ends`, and of JSON, without a delimiter, each line."""
    if delimiter is None:
        return [*range(1, len(lines) + 1)], True
    return record_ends(lines, delimiter)


def rows_of(numbers: float) -> int:
    """How many rows a batch has whose rows have so many numbers."""
    return max(1, min(ROWS, NUMBERS // ceil(max(numbers, 1))))


def as_bytes(y: NDArray[Any]) -> NDArray[Any]:
    """Labels, as unsigned if they are bytes of which none is negative."""
    return y.view(np.uint8) if y.dtype == np.int8 and y.min(initial=0) >= 0 else y
