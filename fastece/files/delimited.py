"""Delimited text: a header, and cells between commas, tabs or semicolons.

Plain chunks of lines are parsed by pyarrow; the others, and all where pyarrow is missing, by the
standard library, which shows which row is bad.
"""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.files.arrow import ParseTable, read_lines
from fastece.files.batches import Batch, Choose, Header, Places
from fastece.files.cells import Fault, RawColumn
from fastece.files.json_objects import UNDECODED
from fastece.files.lines import BROKEN, LineChunks

# The first line by which a spreadsheet is told the delimiter.
DELIMITER_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
# Lines among which the header is looked for where the first one is none.
MAX_LINES_BEFORE_HEADER = 20
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class HeaderRow(NamedTuple):
    """Names of the columns, their delimiter, and how many lines the header takes."""

    delimiter: str
    names: list[str]
    n_lines: int


class SplitRows(NamedTuple):
    """Rows of cells, or their faults, and how many lines each row ends after."""

    rows: list[list[str] | Fault]
    ends: list[int]
    n_lines: int


def read_delimited(
    file: str, chunks: LineChunks, choose: Choose, header_names: Collection[str]
) -> Iterator[Batch]:
    """Read delimited text; a row whose cell in quotes goes on takes more of the lines."""
    header_row = read_header(file, chunks.head, header_names)
    header = Header(file, header_row.names, unit="line")
    chosen = choose(header)
    places_of_columns = {name: header.names.index(name) for name in chosen.names()}
    text_places = {places_of_columns[name] for name in (*chosen.labels, *chosen.kept)}
    parse = make_parser(header_row, list(places_of_columns.values()), text_places)
    n_before = header_row.n_lines
    chunks.head = chunks.head[n_before:]
    for chunk in chunks:
        n_lines = len(chunk)
        columns: dict[str, RawColumn] | None = None
        if not any('"' in line for line in chunk):
            columns = read_lines(chunk, list(places_of_columns), parse)
        if columns is not None:
            places: Places = range(n_before + 1, n_before + n_lines + 1)
        else:
            split = split_rows(chunk, chunks.lines, header_row)
            n_lines = split.n_lines
            places = np.array(split.ends, np.int64) + n_before
            columns = {
                name: [row if isinstance(row, Fault) else row[k].strip() for row in split.rows]
                for name, k in places_of_columns.items()
            }
        yield Batch(header, columns, places)
        n_before += n_lines


def read_header(file: str, lines: Sequence[str], header_names: Collection[str]) -> HeaderRow:
    """Read the header of delimited text.

    The right delimiter yields one of the names that are looked for; if none does, it yields several
    names. A line sep=; before the header names the delimiter.
    """
    possible_delimiters = list(DELIMITERS)
    n_before = 0
    named = DELIMITER_LINE.fullmatch(lines[0].rstrip("\r\n")) if lines else None
    if named is not None:
        possible_delimiters = [named[1]]
        n_before = 1
    header_rows = []
    for delimiter in possible_delimiters:
        reader = csv.reader(lines[n_before:], delimiter=delimiter)
        try:
            names = [name.strip() for name in next(filter(None, reader), [])]
        except csv.Error as error:
            raise InputError("path", str(error), place=f"{file}: line 1") from error
        header_rows.append(HeaderRow(delimiter, names, n_before + reader.line_num))
    if not header_rows[0].names:
        raise InputError("path", "is empty", place=file)
    with_known_name = [x for x in header_rows if not set(header_names).isdisjoint(x.names)]
    if not with_known_name:
        refuse_later_header(file, lines, header_names)
    with_several_names = [x for x in header_rows if len(x.names) > 1]
    candidates = with_known_name or with_several_names or header_rows[:1]
    first = candidates[0]
    if any(candidate.names != first.names for candidate in candidates):
        delimiters = " or ".join(DELIMITERS[candidate.delimiter] for candidate in candidates)
        rule = f"the cells may be separated by {delimiters}"
        hint = "name a column of the header by {y_true}"
        raise InputError("path", rule, place=f"{file}: line {first.n_lines}", hint=hint)
    return first


def refuse_later_header(file: str, lines: Sequence[str], header_names: Collection[str]) -> None:
    """Refuse a text in which another line than the first names a known column."""
    for number, line in enumerate(lines[1:MAX_LINES_BEFORE_HEADER], 2):
        for delimiter in DELIMITERS:
            cells = {cell.strip() for cell in line.split(delimiter)}
            if not cells.isdisjoint(header_names):
                rule = f"the header seems to be in line {number}"
                raise InputError("path", rule, place=file, hint="remove the lines before it")


def make_parser(
    header_row: HeaderRow, places: Sequence[int], text_places: Collection[int]
) -> ParseTable:
    """Make the function by which pyarrow parses columns as text or numbers."""
    # Names of columns may come twice, their places do not.
    names = [str(k) for k in range(len(header_row.names))]

    def parse(source: Any, size: int) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = {names[k]: pa.string() if k in text_places else pa.float64() for k in places}
        return arrow_csv.read_csv(
            source,
            arrow_csv.ReadOptions(use_threads=False, block_size=size, column_names=names),
            arrow_csv.ParseOptions(delimiter=header_row.delimiter),
            arrow_csv.ConvertOptions(
                column_types=types, include_columns=[names[k] for k in places], null_values=[]
            ),
        )

    return parse


def split_rows(chunk: Sequence[str], lines: Iterator[str], header_row: HeaderRow) -> SplitRows:
    """Split lines into rows of cells; cells in quotes may contain ends of lines.

    The last row may take lines from `lines`, which follow the chunk. A broken row uses its first
    line only, as what follows a quote that nothing closes may be rows.
    """
    rows: list[list[str] | Fault] = []
    ends: list[int] = []
    n_used = 0
    lines_read = list(chunk)

    def lines_from(start: int) -> Iterator[str]:
        yield from (lines_read[k] for k in range(start, len(lines_read)))
        for line in lines:
            lines_read.append(line)
            yield line

    while n_used < len(lines_read):
        reader = csv.reader(lines_from(n_used), delimiter=header_row.delimiter, strict=True)
        n_before = n_used
        try:
            for row in reader:
                n_used = n_before + reader.line_num
                if row:
                    rows.append(check_row(row, len(header_row.names)))
                    ends.append(n_used)
                if n_used >= len(lines_read):
                    break
        except (csv.Error, *BROKEN) as error:
            n_used += 1
            rows.append(Fault(str(error), is_of_row=True))
            ends.append(n_used)
    return SplitRows(rows, ends, n_used)


def check_row(row: list[str], width: int) -> list[str] | Fault:
    """Return a row as it is, or the rule that it breaks."""
    if len(row) != width:
        rule = f"must have {width} cells, as the header has, got {len(row)}"
        return Fault(rule, is_of_row=True)
    if all(map(str.isascii, row)):
        return row
    undecoded = next(filter(UNDECODED.search, row), None)
    if undecoded is None:
        return row
    value = undecoded.encode("utf-8", "surrogateescape")
    return Fault("is no text in UTF-8", value, is_of_row=True)
