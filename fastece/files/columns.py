"""Columns that are there one by one, of whatever format."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.files.table import (
    Check,
    Groups,
    NamedColumns,
    label_arrays,
    label_fault,
    number_fault,
    refuse_rows,
    row_fault,
)

Column = NDArray[Any] | list[Any]


class Columns:
    """A table whose columns are arrays, or lists of the cells that a file has; a format says how it
    is written."""

    def __init__(
        self, names: list[str], column: Callable[[str], Column],
        row: Callable[[int], str] = lambda index: f"row {index + 1}",
    ) -> None:  # fmt: skip
        self.names, self.column, self.row = names, column, row

    def part(self, start: int, stop: int, before: int = 0) -> "Columns":
        """Some of the rows, of a file that has so many `before` the first row of this table."""
        return Columns(
            self.names,
            lambda name: self.column(name)[start:stop],
            lambda index: self.row(before + start + index),
        )

    def read(self, labels: Groups, numbers: Groups) -> tuple[list[list[NDArray[Any]]], list[Any]]:
        """Groups of columns, as `Table` says; cells that are lists, or objects, of numbers are
        rows of a matrix, that of objects has names."""
        texts = {name: self.column(name) for name in chain(*labels)}
        figures = {name: self.column(name) for name in chain(*numbers)}
        try:
            found = {name: as_numbers(column) for name, column in figures.items()}
            return [as_labels([texts[name] for name in group]) for group in labels], [
                found[group[0]] if len(group) == 1 else np.column_stack([found[n] for n in group])
                for group in numbers
            ]
        except (ValueError, TypeError):
            refuse_rows(self.faults(texts, figures))
            raise

    def faults(
        self, texts: dict[str, Column], figures: dict[str, Column]
    ) -> Iterator[tuple[str, str]]:
        """Every row, and the rule that it breaks, if it does. Cells of arrays of numbers break
        none here."""
        lists = [
            (checks, name, cells if isinstance(cells, list) else cells.tolist())
            for checks, columns in ((label_checks, texts), (number_checks, figures))
            for name, cells in columns.items()
            if isinstance(cells, list) or cells.dtype.kind in "OU"
        ]
        for index, row in enumerate(zip(*(cells for *_, cells in lists), strict=False)):
            pairs = zip(lists, row, strict=True)
            found = (checks(name, cell, cells[0]) for (checks, name, cells), cell in pairs)
            yield self.row(index), row_fault(chain(*found))


def label_checks(name: str, cell: Any, first: Any) -> Iterator[Check]:
    """What a label has to be: one value, of the kind of that in the first row."""
    yield name, cell, label_fault
    if isinstance(first, str) != isinstance(cell, str):
        kind = "a string" if isinstance(first, str) else "no string"
        yield name, cell, lambda _: f"must be {kind}, as the first row has"


def number_checks(name: str, cell: Any, first: Any) -> Iterator[Check]:
    """What numbers have to be: one, or as many as the first row has, with the same names."""
    if not isinstance(first, list | dict):
        yield name, cell, number_fault
    elif type(cell) is not type(first) or keys_of(cell) != keys_of(first):
        yield name, cell, lambda _: f"must hold {len(first)} numbers, as the first row does"
    else:
        items = cell.items() if isinstance(cell, dict) else enumerate(cell)
        yield from ((f"{name}.{key}", x, number_fault) for key, x in items)


def keys_of(cell: Any) -> Any:
    """What tells the numbers of a cell apart: their names, or how many there are."""
    return cell.keys() if isinstance(cell, dict) else len(cell)


def as_labels(group: list[Column]) -> list[NDArray[Any]]:
    """Columns of labels as arrays; cells that are all strings are read as those of text are."""
    lists = [column for column in group if isinstance(column, list) or column.dtype.kind == "O"]
    for column in lists:
        if any(map(label_fault, column)) or len({isinstance(x, str) for x in column}) != 1:
            raise ValueError("cannot be read as labels" if len(column) else "is empty")
    texts = [column for column in group if isinstance(column, list) and isinstance(column[0], str)]
    return label_arrays(texts) if len(texts) == len(group) else [*map(np.asarray, group)]


def as_numbers(column: Column) -> Any:
    """A column of numbers as an array, or a matrix, with names if its rows are objects."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OU":
        return column
    names = column[0] if len(column) and isinstance(column[0], dict) else {}
    if names and any(not isinstance(x, dict) or x.keys() != names.keys() for x in column):
        raise ValueError("the cells have other names")
    array = np.array([[cell[x] for x in names] for cell in column] if names else column)
    if array.dtype.kind in "OU" and not any(map(number_fault, array.flat)):
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub" or np.isnan(array).any():
        raise ValueError("cannot be read as numbers")
    return NamedColumns(array, [*names]) if names else array


def by_column(names: Sequence[str], values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The numbers of a group of columns, as `Table.read` gives them, column by column."""
    return {names[0]: values} if len(names) == 1 else dict(zip(names, values.T, strict=True))


def float_type(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The type of new numbers where there were some of a type: float32 and float64 stay."""
    return kind if kind.kind == "f" and kind.itemsize in (4, 8) else np.dtype(np.float64)
