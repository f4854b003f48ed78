"""Text with a header, whose cells are separated by commas, tabs or semicolons."""

import csv
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import accumulate, chain, islice, pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fastece.files.table import (
    MISSING,
    Groups,
    label_arrays,
    label_fault,
    number_fault,
    refuse_rows,
    row_fault,
)

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Text:
    """The lines of a file as a table. `wanted` are names of columns: the header has one of them if
    it is split where it should be. `has_mark`: a byte order mark is before it, as Excel has it."""

    endings: tuple[str, ...] = (".csv", ".tsv", ".txt")

    def __init__(
        self, lines: list[str], wanted: Collection[str], *, has_mark: bool = False
    ) -> None:
        self.delimiter, self.names, self.header = read_header(lines, wanted)
        self.head, self.lines = lines[: self.header], lines[self.header :]
        self.mark = "\ufeff" if has_mark else ""
        self.row: Callable[[int], str] = str

    def part(self, lines: list[str], before: int) -> "Text":
        """Other rows under the same header: lines of the file that has so many before them."""
        table = copy(self)
        table.head, table.lines, table.header = [], lines, before
        return table

    def read(self, labels: Groups, numbers: Groups) -> tuple[list[list[NDArray[Any]]], list[Any]]:
        """Groups of columns, as `Table` says."""
        texts, figures = [*chain(*labels)], [*chain(*numbers)]
        places = [self.names.index(name) for name in texts]
        cells: list[list[str]] = [[] for _ in texts]
        ends = []
        for line, row in self.rows():
            if len(row) != len(self.names):
                refuse_rows(self.faults(texts, figures))
            for column, place in zip(cells, places, strict=True):
                column.append(row[place].strip())
            ends.append(line)
        if not ends:
            raise ValueError("is empty: it has a header and no rows")
        matrix = self.matrix(figures) if figures else np.empty((len(ends), 0))
        if len(matrix) != len(ends) or not {*MISSING}.isdisjoint(chain(*map(set, cells))):
            refuse_rows(self.faults(texts, figures))
            raise ValueError(f"columns {', '.join(figures)}: cannot be read as numbers")
        self.row = lambda index: f"line {ends[index]}"
        found, starts = iter(cells), accumulate(map(len, numbers), initial=0)
        return (
            [label_arrays([*islice(found, len(group))]) for group in labels],
            [matrix[:, a:b] if b - a > 1 else matrix[:, a] for a, b in pairwise(starts)],
        )

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table, as `Table` says: every other character stays what it is."""
        places = [self.names.index(name) for name in names]
        new = values.reshape(len(values), len(names)).tolist()
        file.write((self.mark + "".join(self.head)).encode())
        start = 0
        for (line, _), numbers in zip(self.rows(), new, strict=True):
            end = line - self.header
            lines = "".join(self.lines[start:end])
            row = lines.strip("\r\n")  # blank lines are before it
            first, start = lines.index(row), end
            cells = split_row(row, self.delimiter)
            for place, value in zip(places, numbers, strict=True):
                cells[place] = repr(value)
            text = lines[:first] + self.delimiter.join(cells) + lines[first + len(row) :]
            file.write(text.encode())
        file.write("".join(self.lines[start:]).encode())

    def matrix(self, names: Sequence[str]) -> NDArray[Any]:
        """Columns (n, m) of numbers; without rows if one of the cells is no number."""
        with suppress(ValueError):
            matrix = np.loadtxt(
                self.lines, np.float64, delimiter=self.delimiter, ndmin=2, quotechar='"',
                comments=None, usecols=[self.names.index(name) for name in names],
            )  # fmt: skip
            if not np.isnan(matrix).any():
                return matrix
        return np.empty((0, len(names)))

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Rows that are not blank, with the line of the file on which each ends."""
        reader = csv.reader(self.lines, delimiter=self.delimiter, strict=True)
        try:
            for row in reader:
                if row:
                    yield self.header + reader.line_num, row
        except csv.Error as error:
            raise ValueError(f"line {self.header + reader.line_num}: {error}") from error

    def faults(self, labels: Sequence[str], numbers: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Every row, and the rule that it breaks, if it does."""
        rules = [(name, label_fault) for name in labels] + [
            (name, number_fault) for name in numbers
        ]
        columns = [(name, self.names.index(name), rule) for name, rule in rules]
        width = len(self.names)
        for line, row in self.rows():
            fault = f"must have {width} cells, as the header has, got {len(row)}"
            if len(row) == width:
                fault = row_fault((name, row[k].strip(), rule) for name, k, rule in columns)
            yield f"line {line}", fault


def record_ends(lines: Sequence[str], delimiter: str) -> tuple[list[int], bool]:
    """After how many of the lines each row ends, a cell in quotes may hold the ends of lines; and
    whether the last row has an end. Rows with a fault in their quotes end with its line."""
    if not any('"' in line for line in lines):
        return [*range(1, len(lines) + 1)], True
    ends, start, rest = [], 0, iter(lines)
    is_whole = True
    while start < len(lines):
        reader: Any = csv.reader(rest, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                ends.append(start + reader.line_num)  # noqa: PERF401  # those before a fault too
            start = len(lines)
        except csv.Error:
            start += reader.line_num
            ends.append(start)
            is_whole = start < len(lines)
    return ends, is_whole


def split_row(row: str, delimiter: str) -> list[str]:
    """The cells of a row as they are written, with the quotes of those that have them."""
    if '"' not in row:
        return row.split(delimiter)
    cell = rf'(?:^|{delimiter})("(?:[^"]|"")*"|[^{delimiter}]*)'
    return re.findall(cell, row)


def read_header(lines: list[str], wanted: Collection[str]) -> tuple[str, list[str], int]:
    """The delimiter, the names of the columns, and the number of lines that hold them. The right
    delimiter yields one of the wanted names; if none does, it yields several names."""
    found = []
    for delimiter in DELIMITERS:
        reader = csv.reader(lines, delimiter=delimiter)
        names = [name.strip() for name in next(filter(None, reader), [])]
        found.append((delimiter, names, reader.line_num))
    if not found[0][1]:
        raise ValueError("is empty")
    found = (
        [one for one in found if not {*wanted}.isdisjoint(one[1])]
        or [one for one in found if len(one[1]) > 1]
        or found[:1]
    )
    if any(one[1] != found[0][1] for one in found):
        kinds = " or ".join(DELIMITERS[one[0]] for one in found)
        raise ValueError(
            f"line {found[0][2]}: whether {kinds} separate the cells cannot be told; --y-true with "
            "the name of a column of the header would tell"
        )
    return found[0]
