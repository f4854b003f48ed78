"""Tables that pyarrow reads: delimited text, Parquet and Arrow; and plain lines of JSON.

This module is imported where such a file is read, as pyarrow is optional.
"""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import json as arrow_json
from pyarrow import types

from fastece.data.errors import InputError
from fastece.files import tables
from fastece.files.cells import Column, Texts, encode_texts
from fastece.files.tables import ARROW_FILE_START, BYTE_ORDER_MARK, Columns, Source, Table

DELIMITERS = (",", ";", "\t")
# The first line by which a spreadsheet is told the delimiter.
DELIMITER_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
# The standard library refuses cells of more than 131,072 characters, which pyarrow reads.
csv.field_size_limit(2**31 - 1)
# The error of pyarrow for a text without rows.
NO_ROWS = "Empty CSV file"
# How pyarrow names the row of an error about a text, and the error.
ROW_OF_ERROR = re.compile(r"Row #(\d+): (.*)", re.DOTALL)
WRONG_WIDTH = re.compile(r"Expected (\d+) columns, got (\d+)")
# Lines as long as the header that a block holds at least: tables may have thousands of columns.
MIN_LINES = 16
# Bytes that end a line, and pairs of bytes around a blank line.
LINE_ENDS = (b"\n", b"\r")
BLANK_LINES = (b"\n\n", b"\n\r", b"\r\r")
# Levels of an object that pyarrow may read; Python reads deeper ones, or refuses them.
MAX_DEPTH = 500


# --- columns of pyarrow ---------------------------------------------------------------------------


def read_columns(batch: Any, names: Sequence[str], numbers: Collection[str]) -> Columns:
    """Read columns of a batch, whose texts may come as numbers."""
    return {name: read_column(batch.column(name), name in numbers) for name in names}


def read_column(column: Any, is_number: bool) -> Column:
    """Read a column of pyarrow as an array, as texts, or else as a list of cells."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if column.null_count:
        return list(column.to_pylist())
    if is_list(kind):
        return read_lists(column)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return to_numpy(column)
    if types.is_string(kind) or types.is_large_string(kind):
        return read_numbers_in_texts(column) if is_number else read_texts(column)
    if types.is_decimal(kind) and is_number:
        return to_numpy(column.cast(pa.float64()))
    if not (is_number or types.is_nested(kind)):
        with suppress(pa.ArrowException):
            # Labels may be bytes or dates.
            return read_texts(column.cast(pa.string()))
    return list(column.to_pylist())


def to_numpy(column: Any) -> NDArray[Any]:
    """Return numbers or bools as an array; pyarrow's own way imports pandas."""
    if types.is_boolean(column.type):
        bits: NDArray[Any] = np.from_dlpack(column.cast(pa.uint8())).view(bool)
        return bits
    numbers: NDArray[Any] = np.from_dlpack(column)
    return numbers


def read_texts(column: Any) -> Texts:
    """Read a column as codes of its distinct texts, without blanks around them."""
    coded = column.dictionary_encode()
    words = encode_texts(coded.dictionary.to_pylist())
    return Texts(words.codes[np.from_dlpack(coded.indices)], words.words)


def read_numbers_in_texts(column: Any) -> Column:
    """Read texts as numbers, if all of them are some; otherwise they stay as they are."""
    try:
        numbers = np.from_dlpack(pc.utf8_trim_whitespace(column).cast(pa.float64()))
    except pa.ArrowInvalid:
        return list(column.to_pylist())
    return list(column.to_pylist()) if np.isnan(numbers).any() else numbers


def read_lists(column: Any) -> Column:
    """Read a column of lists as a matrix, if they are of one length and hold numbers."""
    cells = column.flatten()
    kind = cells.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if cells.null_count or not is_number:
        return list(column.to_pylist())
    width = len(cells) // max(len(column), 1)
    is_matrix = width > 1 and (np.from_dlpack(pc.list_value_length(column)) == width).all()
    return to_numpy(cells).reshape(-1, width) if is_matrix else list(column.to_pylist())


def is_list(kind: Any) -> bool:
    """Decide whether a column has lists."""
    is_variable = types.is_list(kind) or types.is_large_list(kind)
    return bool(is_variable or types.is_fixed_size_list(kind))


# --- delimited text -------------------------------------------------------------------------------


class Header(NamedTuple):
    """The delimiter of a text, the names of its columns, their lines and bytes."""

    delimiter: str
    names: list[str]
    n_lines: int
    n_bytes: int


class DelimitedText(Table):
    """A header, and cells between commas, semicolons or tabs; all cells are texts.

    pyarrow splits the text into cells. Where it finds a fault, the standard library finds the line.
    """

    unit = "line"

    def __init__(self, source: Source, known_names: Collection[str]) -> None:
        self.file = source.name
        self._source = source
        self._header = read_header(source.start, known_names)
        self.names = self._header.names
        # The lines of the last batches, which need no second look if each is a row.
        self._lines: LineCounter | None = None

    def batches(self, names: Sequence[str], numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order."""
        n_rows = 0
        with self._source.opened() as file:
            file.read(self._header.n_bytes)
            lines = LineCounter(file, replaces_bytes=self.on_bad_row is not None)
            self._lines = lines
            try:
                for batch in self._parse(lines, names):
                    n_rows += batch.num_rows
                    columns = zip(names, batch.columns, strict=True)
                    yield {name: read_column(x, name in numbers) for name, x in columns}
            except pa.ArrowInvalid as error:
                if str(error) == NO_ROWS:
                    return
                self._refuse_row(error)
                raise
        has_other_lines = n_rows < lines.count
        if lines.n_quotes and (has_other_lines or lines.n_quotes % 2):
            # Some lines are blank, or a cell has several lines, or nothing closes a quote.
            self._check_quotes()

    def _parse(self, lines: Any, names: Sequence[str]) -> Any:
        """Parse lines by pyarrow; without threads its errors number the rows."""
        # Names of columns may come twice, their numbers do not.
        numbers = [str(self.names.index(name)) for name in names]
        skip_row = None if self.on_bad_row is None else self._skip_row
        return arrow_csv.open_csv(
            lines,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=max(tables.BLOCK_SIZE, MIN_LINES * sum(map(len, self.names))),
                column_names=[str(k) for k in range(len(self.names))],
            ),
            arrow_csv.ParseOptions(
                delimiter=self._header.delimiter,
                newlines_in_values=True,
                invalid_row_handler=skip_row,
            ),
            arrow_csv.ConvertOptions(
                include_columns=numbers,
                column_types=dict.fromkeys(numbers, pa.string()),
                strings_can_be_null=False,
            ),
        )

    def _skip_row(self, row: Any) -> str:
        """Leave out a row that has not as many cells as the header."""
        assert self.on_bad_row is not None, "rows are skipped"
        rule = self._width_rule(row.expected_columns, row.actual_columns)
        place = f"{self.file}: row {row.number}"
        if self._lines is not None and self._lines.are_rows:
            place = f"{self.file}: line {self._header.n_lines + row.number}"
        self.on_bad_row(InputError("path", rule, place=place))
        return "skip"

    def _width_rule(self, expected: int, got: int) -> str:
        """Return the rule that a row with another number of cells breaks."""
        return f"must have {expected} cells, as the header has, got {got}"

    def _refuse_row(self, error: pa.ArrowInvalid) -> None:
        """Raise the error of pyarrow with the line of the row, if it names one."""
        found = ROW_OF_ERROR.search(str(error))
        if found is None:
            return
        rule = f"cannot be read: {' '.join(found[2].split())}"
        widths = WRONG_WIDTH.search(found[2])
        if widths is not None:
            rule = self._width_rule(int(widths[1]), int(widths[2]))
        if "UTF8" in found[2]:
            rule = "is no text in UTF-8"
        index = int(found[1]) - 1
        self._check_quotes(index + 1)
        raise InputError("path", rule, place=f"{self.file}: {self.row_name(index)}") from error

    def _check_quotes(self, n_rows: int | None = None) -> None:
        """Refuse a quote that nothing closes, after which pyarrow takes rows for one cell.

        Only the first rows are looked at, if their number is given.
        """
        with self._source.opened_text() as text:
            rows = csv.reader(text, delimiter=self._header.delimiter, strict=True)
            # The header is the first row.
            n_looked_at = None if n_rows is None else n_rows + 1
            n_lines = 0
            try:
                for _ in islice(filter(None, rows), n_looked_at):
                    n_lines = rows.line_num
            except csv.Error as error:
                place = f"{self.file}: line {n_lines + 1}"
                raise InputError("path", str(error), place=place) from error

    def row_name(self, index: int) -> str:
        """Find the line on which a row ends; blank lines are no rows."""
        is_plain = self._lines is not None and self._lines.are_rows and self.on_bad_row is None
        if is_plain:
            # Each line after the header is a row.
            return f"line {self._header.n_lines + index + 1}"
        with self._source.opened_text() as text:
            n_header = sum(1 for _ in islice(text, self._header.n_lines))
            rows = csv.reader(text, delimiter=self._header.delimiter)
            # Rows that are left out are no rows.
            full_rows = (row for row in rows if row and self._is_row(row))
            next(islice(full_rows, index, None), None)
            return f"line {n_header + rows.line_num}"

    def _is_row(self, row: list[str]) -> bool:
        """Decide whether a row is not left out for its number of cells."""
        return self.on_bad_row is None or len(row) == len(self.names)


class LineCounter(io.RawIOBase):
    """The bytes of a file, whose lines are counted as they are read.

    With `replaces_bytes` bytes that are no UTF-8 are replaced, as pyarrow names no row that it
    leaves out if it holds such a byte.
    """

    def __init__(self, file: Any, replaces_bytes: bool) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if replaces_bytes else None
        # Lines end with either mark, or with both.
        self._n_marks = dict.fromkeys(LINE_ENDS, 0)
        self._last = b""
        self._has_blank_lines = False
        self.n_quotes = 0

    @property
    def count(self) -> int:
        """How many lines were read."""
        return max(self._n_marks.values())

    @property
    def are_rows(self) -> bool:
        """Whether each line is a row: none is blank, and no cell has several."""
        return not (self.n_quotes or self._has_blank_lines)

    def readable(self) -> bool:
        """Return True, as bytes can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read bytes."""
        content: bytes = self._file.read(size)
        for mark in LINE_ENDS:
            self._n_marks[mark] += content.count(mark)
        joined = self._last + content
        self._has_blank_lines = self._has_blank_lines or any(x in joined for x in BLANK_LINES)
        self.n_quotes += content.count(b'"')
        self._last = content[-1:]
        if self._decoder is not None:
            content = self._decoder.decode(content, final=not content).encode()
        return content


def read_header(start: bytes, known_names: Collection[str]) -> Header:
    """Read the header of a text by the delimiter that gives known or more names."""
    n_mark = len(BYTE_ORDER_MARK) if start.startswith(BYTE_ORDER_MARK) else 0
    lines = list(io.StringIO(start[n_mark:].decode("utf-8", "surrogateescape"), newline=""))
    told = DELIMITER_LINE.fullmatch(lines[0])
    n_before = 0 if told is None else 1
    headers = []
    for delimiter in DELIMITERS if told is None else told[1]:
        rows = csv.reader(lines[n_before:], delimiter=delimiter)
        names = [name.strip() for name in next(filter(None, rows), [])]
        n_lines = n_before + rows.line_num
        n_bytes = sum(len(line.encode("utf-8", "surrogateescape")) for line in lines[:n_lines])
        headers.append(Header(delimiter, names, n_lines, n_mark + n_bytes))

    def fitness(header: Header) -> tuple[bool, int]:
        has_known_name = not set(known_names).isdisjoint(header.names)
        return has_known_name, len(header.names)

    return max(headers, key=fitness)


# --- lines of JSON --------------------------------------------------------------------------------


def parse_lines(block: bytes, names: Sequence[str], numbers: Collection[str]) -> Columns | None:
    """Read columns of lines of objects, or return None if the lines are not simple."""
    lines = block.splitlines()
    if not are_plain_objects(block, lines):
        return None
    options = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        table = arrow_json.read_json(pa.BufferReader(block), options).select(list(names))
    except (ValueError, LookupError):
        return None
    if table.num_rows != len(lines):
        return None
    columns: Columns = {}
    for name, chunks in zip(names, table.columns, strict=True):
        column = read_column(chunks.combine_chunks(), name in numbers)
        is_temporal = types.is_temporal(chunks.type)
        if isinstance(column, list) or is_temporal or has_nan(column):
            return None
        columns[name] = column
    return columns


def has_nan(column: Column) -> bool:
    """Decide whether a column of numbers has a nan."""
    return isinstance(column, np.ndarray) and bool((column != column).any())


def are_plain_objects(block: bytes, lines: Sequence[bytes]) -> bool:
    """Decide whether each line looks like an object that is not nested deeply.

    Otherwise pyarrow reads on in the next line, and crashes on null and on objects of many levels.
    """
    text = block.strip()
    n_ends = text.count(b"}\n{") or text.count(b"}\r\n{")
    is_plain = text.startswith(b"{") and text.endswith(b"}") and n_ends == len(lines) - 1
    if not is_plain or not tables.is_text(block):
        return False
    return max(map(len, lines)) <= MAX_DEPTH or not any(
        line.count(b"[") + line.count(b"{") > MAX_DEPTH for line in lines
    )


# --- Parquet and Arrow ----------------------------------------------------------------------------


class ParquetTable(Table):
    """A Parquet file, whose row groups need not fit in memory."""

    def __init__(self, source: Source) -> None:
        from pyarrow import parquet

        self.file = source.name
        # Without a buffer size a column of a row group is read at once, however long it is.
        self._opened = parquet.ParquetFile(
            source.for_library(), pre_buffer=False, buffer_size=tables.BLOCK_SIZE
        )
        self.names = self._opened.schema_arrow.names

    def batches(self, names: Sequence[str], numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order."""
        if not self._opened.num_row_groups:
            return
        group = self._opened.metadata.row_group(0)
        columns = [group.column(k) for k in range(group.num_columns)]
        # Cells may be lists.
        n_numbers = sum(
            x.num_values for x in columns if x.path_in_schema.partition(".")[0] in names
        )
        size = tables.rows_per_batch(numbers_per_row(n_numbers, group.num_rows))
        # Threads gain nothing with two columns, and take memory.
        has_threads = len(names) > 2
        for batch in self._opened.iter_batches(size, columns=list(names), use_threads=has_threads):
            if batch.num_rows:
                yield read_columns(batch, names, numbers)


class ArrowTable(Table):
    """A file of Arrow, also known as Feather, or a stream; mapped, or in memory."""

    def __init__(self, source: Source) -> None:
        self.file = source.name
        self._content = source.for_library()
        self._is_file = source.start.startswith(ARROW_FILE_START)
        self.names = self._open().schema.names

    def _open(self) -> Any:
        """Open the file at its start."""
        is_path = isinstance(self._content, str)
        file = (
            pa.memory_map(self._content) if is_path else pa.BufferReader(self._content.getvalue())
        )
        return pa.ipc.open_file(file) if self._is_file else pa.ipc.open_stream(file)

    def batches(self, names: Sequence[str], numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield the rows in their order."""
        opened = self._open()
        parts = opened
        if self._is_file:
            parts = (opened.get_batch(k) for k in range(opened.num_record_batches))
        for part in parts:
            # Offsets of a damaged file may lead out of its memory.
            part.validate(full=True)
            n_numbers = sum(len(part.column(name)) for name in names)
            size = tables.rows_per_batch(numbers_per_row(n_numbers, part.num_rows))
            for start in range(0, part.num_rows, size):
                yield read_columns(part.slice(start, size), names, numbers)


def numbers_per_row(n_numbers: int, n_rows: int) -> int:
    """Return how many numbers each of so many rows has at most, on average."""
    return -(-n_numbers // max(n_rows, 1))
