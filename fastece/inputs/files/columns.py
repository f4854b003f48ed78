"""Columns that are there one by one: NumPy arrays and archives, Apache Parquet."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fastece.inputs.files.table import (
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
    """A table whose columns are arrays, or lists of the cells that a file has."""

    def __init__(
        self, names: list[str], column: Callable[[str], Column],
        row: Callable[[int], str] = lambda index: f"row {index + 1}",
    ) -> None:  # fmt: skip
        self.names, self.column, self.row = names, column, row

    def read(self, labels: Groups, numbers: Groups) -> tuple[list[list[NDArray[Any]]], list[Any]]:
        """Groups of columns, as `Table` says; cells that are lists, or objects, of numbers are
        rows of a matrix, that of objects has names."""
        texts = {name: self.column(name) for name in chain(*labels)}
        figures = {name: self.column(name) for name in chain(*numbers)}
        if not (all(map(are_labels, texts.values())) and all(map(are_numbers, figures.values()))):
            refuse_rows(self.faults(texts, figures))
        found = {name: as_numbers(column) for name, column in figures.items()}
        return [as_labels([texts[name] for name in group]) for group in labels], [
            found[group[0]] if len(group) == 1 else np.column_stack([found[n] for n in group])
            for group in numbers
        ]

    def faults(
        self, texts: dict[str, Column], figures: dict[str, Column]
    ) -> Iterator[tuple[str, str]]:
        """Every row, and the rule that it breaks, if it does. Cells of arrays of numbers break
        none here."""
        lists = [
            (checks, name, list(cells))
            for checks, columns in ((label_checks, texts), (number_checks, figures))
            for name, cells in columns.items()
            if isinstance(cells, list) or cells.dtype.kind in "OU"
        ]
        for index in range(max(len(cells) for *_, cells in lists)):
            found = (checks(name, cells[index], cells[0]) for checks, name, cells in lists)
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


def are_labels(column: Column) -> bool:
    """Whether labels are all strings, or none is one, and none is missing."""
    if not is_list(column):
        return True
    kinds = set(map(type, column))
    is_mixed = len({issubclass(kind, str) for kind in kinds}) > 1 or kinds & {list, dict}
    return not is_mixed and not any(map(label_fault, set(column)))


def are_numbers(column: Column) -> bool:
    """Whether cells are numbers, or lists of as many of them; not strings, and not nan."""
    if not is_list(column):
        return True
    try:
        array = as_array(column)
    except (ValueError, TypeError, LookupError):
        return False
    return array.dtype.kind in "fiub" and not np.isnan(array).any()


def is_list(column: Column) -> bool:
    """Whether cells may be anything, as in lists."""
    return isinstance(column, list) or column.dtype.kind in "OU"


def as_labels(group: list[Column]) -> list[NDArray[Any]]:
    """Columns of labels as arrays. Cells that are all strings are read as those of text are."""
    texts = [column for column in group if isinstance(column, list) and isinstance(column[0], str)]
    if len(texts) == len(group):
        return label_arrays(texts)
    return [np.asarray(column) for column in group]


def as_numbers(column: Column) -> Any:
    """A column of numbers as an array, or as a matrix with names."""
    array = as_array(column)
    array = array.astype(np.float64) if array.dtype.kind in "OU" else array
    return NamedColumns(array, [*column[0]]) if isinstance(column[0], dict) else array


def as_array(column: Column) -> NDArray[Any]:
    """Cells as they are, those of objects in the order of the first one."""
    if not isinstance(column[0], dict):
        return np.asarray(column)
    names = column[0].keys()
    if any(cell.keys() != names for cell in column):
        raise KeyError
    return np.array([[cell[name] for name in names] for cell in column])


def read_npy(file: IO[bytes]) -> Columns:
    """Read a NumPy array: one with named fields, or (n, 1 + K) of labels and probabilities."""
    array = np.load(file, allow_pickle=False)
    if array.dtype.names:
        return Columns([*array.dtype.names], array.__getitem__)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"holds an array of shape {array.shape}, and must hold named fields, or a matrix whose "
            "first column is y_true, and whose others are y_prob, or p_0, p_1 and so on"
        )
    names = ["y_true", *([f"p_{k}" for k in range(array.shape[1] - 1)])]
    names = names if len(names) > 2 else ["y_true", "y_prob"]
    return Columns(names, lambda name: array[:, names.index(name)])


def read_npz(file: IO[bytes]) -> Columns:
    """Read a NumPy archive; `y_prob` may be a matrix."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    return Columns([*arrays], arrays.__getitem__)


def read_parquet(file: IO[bytes]) -> Columns:
    """Read an Apache Parquet file; `y_prob` may be lists."""
    try:
        from pyarrow import parquet, types
    except ImportError as error:
        raise ValueError("Parquet needs pyarrow: pip install pyarrow") from error
    try:
        table = parquet.read_table(file)
    except OSError as error:
        raise ValueError(f"cannot be read as Parquet: {error}") from error

    def column(name: str) -> Column:
        found = table.column(name)
        is_plain = found.null_count == 0 and not types.is_nested(found.type)
        return found.to_numpy() if is_plain else found.to_pylist()  # type: ignore[no-any-return]

    return Columns(table.column_names, column)
