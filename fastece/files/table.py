"""What every format offers, a table of named columns, and what messages say of its bad rows."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Names of columns that belong together: labels of one kind, or the columns of one matrix.
Groups = Sequence[Sequence[str]]
# A column's name, a cell of it, and what says which rule this breaks, or nothing.
Check = tuple[str, Any, Callable[[Any], str]]
# What numpy reads as a number, without nan.
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
MISSING = ("", "nan", "NaN")
# How labels that are no strings are written, and how they are read; 007, 1_1 and +1 are strings.
LABELS: list[tuple[str, Callable[[str], Any]]] = [
    (r"-?(0|[1-9]\d*)", int),
    (r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", float),
    (r"[Tt]rue|[Ff]alse", lambda cell: cell.lower() == "true"),
]


class Rows(Protocol):
    """Named columns on the same rows, of a file or of a part of it."""

    names: list[str]

    def read(self, labels: Groups, numbers: Groups) -> tuple[list[list[NDArray[Any]]], list[Any]]:
        """The columns of each group of labels, and of each group of numbers a matrix (n, m), or
        where it has one column, that as it is."""

    def row(self, index: int) -> str:
        """What a message calls a row: the line on which it ends, or its number, the first is 1."""


class Table(Rows, Protocol):
    """A whole file, which can be written with other numbers."""

    endings: tuple[str, ...]  # of names of files in this format

    def write(self, file: IO[bytes], names: Sequence[str], values: NDArray[Any]) -> None:
        """Write the table in its format, with other numbers in some columns, which are those of one
        group of `read`, and the numbers of the shape that it gives."""


class NamedColumns:
    """A matrix (n, K) whose columns have names, as those of a data frame."""

    def __init__(self, array: NDArray[Any], columns: list[str]) -> None:
        self.array, self.columns = array, columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.array, dtype, copy=copy)


def label_arrays(columns: list[list[str]]) -> list[NDArray[Any]]:
    """Columns of cells as numbers or bools, if all are written so, and no two of a column that
    differ would be one, as 1.1 and 1.10; else as strings."""
    distinct = [set(cells) for cells in columns]
    for form, read in LABELS:
        is_form = re.compile(form, re.ASCII).fullmatch
        if all(all(map(is_form, x)) and len(set(map(read, x))) == len(x) for x in distinct):
            return [np.array([read(cell) for cell in cells]) for cells in columns]
    return [np.array(cells) for cells in columns]


def label_fault(cell: Any) -> str:
    """The rule that a cell breaks as a label, if it does."""
    if cell is None or cell != cell or (isinstance(cell, str) and cell.strip() in MISSING):
        return "must not be missing"
    return "must be one value" if isinstance(cell, list | dict) else ""


def number_fault(cell: Any) -> str:
    """The rule that a cell breaks as a number, if it does."""
    if not isinstance(cell, str) or cell.strip() == "":
        return label_fault(cell)
    if NUMBER.fullmatch(cell.strip()):
        return ""
    has_comma = NUMBER.fullmatch(cell.strip().replace(",", ".", 1))
    return "must be a number" + (" with a decimal point" if has_comma else "")


def row_fault(checks: Iterable[Check]) -> str:
    """The first rule that a cell of a row breaks, if one does."""
    for column, cell, rule in checks:
        if fault := rule(cell):
            return f"column {column}: {fault}, got {shown(cell)}"
    return ""


def refuse_rows(faults: Iterable[tuple[str, str]]) -> None:
    """Raise the first fault, if there is one: rows as messages call them, and what they break."""
    found = [(row, fault) for row, fault in faults if fault]
    if found:
        (row, fault), more = found[0], more_rows(len(found) - 1)
        raise ValueError(f"{row}{', ' if fault.startswith('column ') else ': '}{fault}{more}")


def more_rows(count: int) -> str:
    """The end of a message about a bad row, where there are more of them."""
    return f"; and {count} more row{'s' * (count > 1)}" if count else ""


def shown(value: Any) -> str:
    """A value of a file as a message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
