"""Delimited text with a header, and JSON Lines.

The cells of a text are separated by commas, tabs or semicolons.
"""

import csv
import io
import json
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError
from fastece.files.harness import is_log
from fastece.files.table import (
    Column,
    Fault,
    Table,
    Texts,
    arrow_column,
    arrow_texts,
    as_texts,
    follow,
)

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# Characters of a batch: some megabytes, and some ten times as much while its cells are strings.
CHARACTERS = 2**20
# Bytes that are no text, as Python keeps them.
UNDECODED = re.compile("[\udc80-\udcff]")


def read_lines(file: IO[bytes]) -> Iterator[list[str]]:
    """Yield the lines of a text, with their ends, in batches.

    Lines before a part that cannot be unpacked come before the error about it.
    """
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    lines: list[str] = []
    length = 0
    try:
        for line in text:
            lines.append(line)
            length += len(line)
            if length >= CHARACTERS:
                yield lines
                lines, length = [], 0
    except (EOFError, OSError, zlib.error):
        yield lines
        raise
    finally:
        if not text.closed:
            text.detach()  # lest it closes the file
    yield lines


def holds_objects(lines: Sequence[str], file: str) -> bool:
    """Return whether a text is JSON Lines: its first line is an object."""
    first = next(filter(None, map(str.strip, lines)), "")
    if first.startswith("["):
        rule = "is a JSON array; one object a line (JSON Lines) is read"
        raise InputError("path", rule, place=file)
    return first.startswith("{")


class Delimited:
    """Delimited text with a header, in batches.

    Parameters
    ----------
    file : str
    lines : list of str
        The first lines.
    wanted : collection of str
        Names of columns: the header has one of them if it is split where it should be.
    """

    def __init__(self, file: str, lines: list[str], wanted: Collection[str]) -> None:
        self.file = file
        self.delimiter, self.names, self.header = read_header(file, lines, wanted)

    def tables(
        self, chunks: Iterator[list[str]], labels: Sequence[str], numbers: Sequence[str]
    ) -> Iterator[Table]:
        """Yield tables of some columns from batches of lines.

        The first batch has the header.
        """
        rest, before = next(chunks)[self.header :], self.header
        for lines in chain(chunks, [None]):
            table, used = self.table(rest, before, lines is None, labels, numbers)
            if len(table.places):
                yield table
            before += used
            rest = rest[used:] + (lines or [])

    def table(
        self, lines: list[str], before: int, is_last: bool, labels: Sequence[str],
        numbers: Sequence[str],
    ) -> tuple[Table, int]:  # fmt: skip
        """Read lines as a table, and count the lines that were used.

        A last row without an end waits for more of them.
        """
        columns = self.arrow_columns(lines, labels, numbers)
        if columns is not None:
            places = range(before + 1, before + len(lines) + 1)
            return Table(self.file, self.names, columns.__getitem__, places, "line"), len(lines)
        rows, ends, is_open = split_rows(lines, self.delimiter)
        if is_open and not is_last:
            rows, ends = rows[:-1], ends[:-1]
        width, is_ascii = len(self.names), all(map(str.isascii, lines))
        checked = [
            row if is_ascii and type(row) is list and len(row) == width else check_row(row, width)
            for row in rows
        ]
        is_good = all(type(row) is list for row in checked)

        def column(name: str) -> Column:
            k = self.names.index(name)
            cells: list[Any] = [x if isinstance(x, Fault) else x[k].strip() for x in checked]
            return as_texts(cells) if is_good and name in labels else cells

        table = Table(
            self.file, self.names, cache(column), np.array(ends, np.int64) + before, "line"
        )
        return table, len(lines) if is_last or not is_open else (ends[-1] if ends else 0)

    def arrow_columns(
        self, lines: list[str], labels: Sequence[str], numbers: Sequence[str]
    ) -> dict[str, Column] | None:
        """Read plain lines by pyarrow; None without it, or for lines that are not plain.

        Plain is one row a line, no quotes, and good numbers.
        """
        text = "".join(lines)
        if '"' in text or not lines:
            return None
        try:
            import pyarrow as pa
            from pyarrow import csv as reader
        except ImportError:
            return None
        kinds = dict.fromkeys(labels, pa.dictionary(pa.int32(), pa.string()))
        kinds |= dict.fromkeys(numbers, pa.float64())
        keys = {name: str(self.names.index(name)) for name in kinds}
        try:
            data = pa.py_buffer(text.encode())
            found = reader.read_csv(
                pa.BufferReader(data),
                read_options=reader.ReadOptions(
                    use_threads=False, block_size=data.size + 1,
                    column_names=[str(k) for k in range(len(self.names))],
                ),
                parse_options=reader.ParseOptions(delimiter=self.delimiter),
                convert_options=reader.ConvertOptions(
                    column_types={keys[name]: kind for name, kind in kinds.items()},
                    include_columns=[*keys.values()], null_values=[],
                ),
            ).combine_chunks()  # fmt: skip
        except (pa.ArrowInvalid, UnicodeEncodeError):
            return None
        if found.num_rows != len(lines):
            return None
        figures = {name: found[keys[name]].to_numpy() for name in numbers}
        if any(np.isnan(column).any() for column in figures.values()):
            return None
        return figures | {name: arrow_texts(found[keys[name]].chunk(0)) for name in labels}


def check_row(row: list[str] | Fault, width: int) -> list[str] | Fault:
    """Return a row as it is, or the rule that it breaks."""
    if isinstance(row, Fault):
        return row
    if len(row) != width:
        return Fault(f"must have {width} cells, as the header has, got {len(row)}")
    bad = next((cell for cell in row if not cell.isascii() and UNDECODED.search(cell)), None)
    return (
        row if bad is None else Fault("is no text in UTF-8", bad.encode("utf-8", "surrogateescape"))
    )


def split_rows(lines: Sequence[str], delimiter: str) -> tuple[list[Any], list[int], bool]:
    """Split lines into rows of cells; cells in quotes may contain ends of lines.

    Returns
    -------
    list
        Cells, or the rule that a row breaks; that row ends with its line.
    list of int
        After how many of the lines each row ends.
    bool
        Whether the last row has no end.
    """
    rows: list[Any] = []
    ends: list[int] = []
    start, rest = 0, iter(lines)
    while start < len(lines):
        reader: Any = csv.reader(rest, delimiter=delimiter, strict=True)
        try:
            for row in filter(None, reader):
                rows.append(row)
                ends.append(start + reader.line_num)
            return rows, ends, False
        except csv.Error as error:
            start += reader.line_num
            rows.append(Fault(str(error)))
            ends.append(start)
    return rows, ends, bool(rows) and isinstance(rows[-1], Fault)


def read_header(file: str, lines: list[str], wanted: Collection[str]) -> tuple[str, list[str], int]:
    """Read the delimiter and the names of the columns, and count their lines.

    The right delimiter yields one of the wanted names; if none does, it yields several names.
    """
    found = []
    for delimiter in DELIMITERS:
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            names = [name.strip() for name in next(filter(None, reader), [])]
        except csv.Error as error:
            raise InputError("path", str(error), place=f"{file}: line 1") from error
        found.append((delimiter, names, reader.line_num))
    if not found[0][1]:
        raise InputError("path", "is empty", place=file)
    found = (
        [one for one in found if not {*wanted}.isdisjoint(one[1])]
        or [one for one in found if len(one[1]) > 1]
        or found[:1]
    )
    if any(one[1] != found[0][1] for one in found):
        rule = f"the cells may be separated by {' or '.join(DELIMITERS[one[0]] for one in found)}"
        raise InputError(
            "path", rule, place=f"{file}: line {found[0][2]}",
            hint="name a column of the header by {y_true}",
        )  # fmt: skip
    return found[0]


def object_tables(file: str, chunks: Iterator[list[str]]) -> Iterator[Table]:
    """Yield tables from batches of JSON Lines.

    Columns are the keys of the first object; a dotted path, such as a.b.0, leads to what is inside.
    A log is one batch.
    """
    first = next(chunks)
    objects = [(k, read_object(line)) for k, line in enumerate(first, 1) if line.strip()]
    head = next((row for _, row in objects if isinstance(row, dict)), None)
    if head is None:
        start, fault = objects[0]
        assert isinstance(fault, Fault)
        raise InputError("path", fault.rule, value=fault.value, place=f"{file}: line {start}")
    is_one = is_log(head)
    chunks = chain([[*first, *chain(*chunks)]] if is_one else [first], chunks)
    names, before = dict(paths_of(head)), 0
    for lines in chunks:
        cells = Objects(lines, before, names)
        rows = cells.rows if is_one else [head]
        yield Table(file, [*names], cells.column, cells.places, "line", rows=rows)
        before += len(lines)


class Objects:
    """Cells of JSON Lines, read by pyarrow where that is possible.

    That is where pyarrow is installed and a column is as simple as most are.

    Parameters
    ----------
    lines : list of str
    before : int
        How many lines of the file are before them.
    paths : dict
        The path that each name of a column stands for.
    """

    def __init__(self, lines: list[str], before: int, paths: dict[str, tuple[str, ...]]) -> None:
        self.lines, self.before, self.paths = lines, before, paths

    @cached_property
    def places(self) -> range | NDArray[Any]:
        """Line number of each row."""
        found = [k for k, line in enumerate(self.lines, self.before + 1) if line.strip()]
        is_full = len(found) == len(self.lines)
        return range(self.before + 1, self.before + 1 + len(found)) if is_full else np.array(found)

    @cached_property
    def rows(self) -> list[dict[str, Any] | Fault]:
        """Objects of the lines, or the rules that lines break."""
        return [read_object(line) for line in self.lines if line.strip()]

    @cached_property
    def arrow(self) -> Any:
        """Table of pyarrow, or None."""
        try:
            import pyarrow as pa
            from pyarrow import json as reader
        except ImportError:
            return None
        try:
            data = pa.py_buffer("".join(self.lines).encode())
            options = reader.ReadOptions(use_threads=False, block_size=data.size + 1)
            found = reader.read_json(pa.BufferReader(data), read_options=options).combine_chunks()
        except (pa.ArrowInvalid, UnicodeEncodeError):
            return None
        return found if found.num_rows == len(self.places) else None

    def column(self, name: str) -> Column:
        """Return the cells that a path leads to; None where it leads nowhere."""
        if self.arrow is not None and self.paths[name] == (name,):
            found = arrow_column(self.arrow.column(name).chunk(0))
            if isinstance(found, Texts) or (found is not None and (found == found).all()):
                return found
        path = self.paths[name]
        return [row if isinstance(row, Fault) else follow(row, path) for row in self.rows]


def read_object(line: str) -> dict[str, Any] | Fault:
    """Read the object of a line, or return the rule that it breaks."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        is_text = line.isascii() or not UNDECODED.search(line)
        return Fault(f"must hold a JSON object: {error}" if is_text else "is no text in UTF-8")
    return row if isinstance(row, dict) else Fault("must hold a JSON object", row)


def paths_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield all paths into a value, with their dotted names."""
    if path:
        yield ".".join(path), path
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    for key in inner if isinstance(inner, dict) else ():
        yield from paths_of(inner[key], (*path, str(key)))
