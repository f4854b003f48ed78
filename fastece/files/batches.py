"""Rows of a file in batches, whatever its format: the header, the rows, and their places.

A reader of a format yields `Batch` after `Batch`. It gets a function that chooses the columns to
read by the `Header`, as a file may have thousands of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.files.cells import (
    Fault,
    FaultFinder,
    LabelColumn,
    NumberColumn,
    RawColumn,
    Texts,
    cell_list,
    label_fault,
    numbers_fault,
    read_label_column,
    read_number_column,
)

# Rows of a batch, and numbers in it, at most: a few megabytes.
MAX_ROWS = 2**17
MAX_NUMBERS = 2**19


@dataclass(frozen=True)
class Header:
    """The names of a file's columns, and the kind of its rows, before these are read.

    Attributes
    ----------
    file : str
        Name of the file for messages.
    names : list of str
        Names of all columns.
    unit : str
        The word for a row in messages: "row", "line" or "attempt".
    first_object : dict or None
        The first good object of JSON Lines.
    note : str
        How a log is read.
    group_column : str
        The column of a log whose rows with one value belong together; "" without one.
    has_shares : bool
        Whether probabilities are known to be shares, also if percents are expected.
    """

    file: str
    names: list[str]
    unit: str = "row"
    first_object: Mapping[str, Any] | None = None
    note: str = ""
    group_column: str = ""
    has_shares: bool = False


class ChosenColumns(NamedTuple):
    """Names of the columns that are read as labels, and as numbers, or only kept."""

    labels: list[str]
    numbers: list[str]
    kept: list[str] = []  # noqa: RUF012

    def names(self) -> list[str]:
        """List each chosen column once, and the kept ones last."""
        return list(dict.fromkeys([*self.labels, *self.numbers, *self.kept]))


Choose = Callable[[Header], ChosenColumns]
Places = range | NDArray[Any]


@dataclass(frozen=True)
class Batch:
    """Chosen columns on some rows of a file.

    Attributes
    ----------
    header : Header
    columns : dict
        The chosen columns by name, as the format has them.
    places : range or ndarray of int
        The line on which each row ends, or its number from 1 on.
    objects : sequence
        All objects of a log, which is one batch; empty for other files.
    share_read : float
        The share of the file that is read when these rows are.
    """

    header: Header
    columns: Mapping[str, RawColumn]
    places: Places
    objects: Sequence[Any] = ()
    share_read: float = 0.0

    @property
    def file(self) -> str:
        """Name of the file for messages."""
        return self.header.file

    def row_name(self, index: int) -> str:
        """Return the name of a row for messages."""
        return f"{self.header.unit} {self.places[index]}"

    def cell_place(self, index: int, column: str) -> str:
        """Return the place of a cell for messages."""
        return f"{self.file}: {self.row_name(index)}, column {column}"

    def cut(self, start: int, stop: int) -> "Batch":
        """Return the batch of the rows from start to stop."""
        columns = {name: select_cells(x, slice(start, stop)) for name, x in self.columns.items()}
        return replace(self, columns=columns, places=self.places[start:stop])

    def select(self, rows: NDArray[Any]) -> "Batch":
        """Return the batch of the rows at some positions."""
        columns = {name: select_cells(x, rows) for name, x in self.columns.items()}
        return replace(self, columns=columns, places=np.asarray(self.places)[rows])


def select_cells(column: RawColumn, rows: slice | NDArray[Any]) -> RawColumn:
    """Return some rows of a column; texts keep only the words that occur."""
    if isinstance(column, Texts):
        used_codes, codes = np.unique(column.codes[rows], return_inverse=True)
        return Texts(codes, [column.words[k] for k in used_codes])
    if isinstance(column, list) and not isinstance(rows, slice):
        return [column[k] for k in rows]
    return column[rows]


class BadColumn(NamedTuple):
    """Column with a bad cell, and the function that finds its fault."""

    name: str
    cells: list[Any]
    find_fault: FaultFinder


def rows_per_batch(numbers_per_row: float) -> int:
    """Return the number of rows of a batch, given how many numbers a row has."""
    return max(1, min(MAX_ROWS, MAX_NUMBERS // ceil(max(numbers_per_row, 1))))


def read_columns(
    batch: Batch, chosen: ChosenColumns, first_row: Mapping[str, Any]
) -> tuple[dict[str, LabelColumn], dict[str, NumberColumn]]:
    """Read the chosen columns of a batch as labels and as numbers, by name.

    `first_row` holds the cells of the file's first row, which decide about the kind of others; it
    is empty while that row is in this batch.
    """
    labels: dict[str, LabelColumn] = {}
    numbers: dict[str, NumberColumn] = {}
    bad_columns: list[BadColumn] = []
    for name in chosen.labels:
        label_column = read_label_column(batch.columns[name])
        if label_column is None:
            bad_columns.append(BadColumn(name, cell_list(batch.columns[name]), label_fault))
        else:
            labels[name] = label_column
    for name in chosen.numbers:
        number_column = read_number_column(batch.columns[name])
        if number_column is None:
            bad_columns.append(BadColumn(name, cell_list(batch.columns[name]), numbers_fault))
        else:
            numbers[name] = number_column
    if bad_columns:
        refuse_first_fault(batch, bad_columns, first_row)
    return labels, numbers


def refuse_first_fault(
    batch: Batch, columns: Sequence[BadColumn], first_row: Mapping[str, Any]
) -> NoReturn:
    """Raise the error of the first bad row in some columns, and count the bad rows."""
    faults: dict[int, tuple[str, Fault]] = {}
    for name, cells, find_fault in columns:
        first_good = next((cell for cell in cells if not isinstance(cell, Fault)), None)
        first = first_row.get(name, first_good)
        for index, cell in enumerate(cells):
            if index not in faults:
                fault = find_fault(cell, first)
                if fault is not None:
                    faults[index] = name, fault
    index = min(faults)
    name, fault = faults[index]
    place = f"{batch.file}: {batch.row_name(index)}"
    if not fault.is_of_row:
        place += f", column {name}{fault.entry}"
    raise InputError(
        name,
        fault.rule,
        index=index,
        value=fault.value,
        rows=len(faults),
        place=place,
        hint=fault.hint,
    )
