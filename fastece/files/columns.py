"""Columns of some rows of a file as arrays, and the places of bad cells."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import ABSENT, InputError

# What numpy reads as a number, without nan.
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
DIGITS = {*"0123456789.+-eE"}
MISSING = ("", "nan", "NaN")
PYARROW = "pip install 'fastece[files]'"  # which brings it
# Columns of labels that are predicted, and their probabilities.
PAIR = ("true_label", "pred_label", "confidence")
# How labels that are no strings are written, and how they are read; 007, 1_1 and +1 are strings.
FORMS: list[tuple[str, Callable[[str], Any]]] = [
    (r"-?(0|[1-9]\d{0,17})", int),  # int64
    (r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", float),
    (r"[Tt]rue|[Ff]alse", lambda cell: cell.lower() == "true"),
]


class Fault(NamedTuple):
    """Rule that a cell breaks, or a whole row, in place of whose cells it stands."""

    rule: str
    value: Any = ABSENT
    inner: str | None = None  # the place within the column; None: of the whole row


class Texts(NamedTuple):
    """Column of strings, as codes of its distinct strings."""

    codes: NDArray[Any]
    words: list[str]


class NamedColumns:
    """Matrix (n, K) whose columns have names, like a data frame."""

    def __init__(self, array: NDArray[Any], columns: list[str]) -> None:
        self.array, self.columns = array, columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.array, dtype, copy=copy)


# A cell and that of the first row, and the rule that it breaks.
Check = Callable[[Any, Any], Fault | None]
Labels = NDArray[Any] | Texts
Numbers = NDArray[Any] | NamedColumns
# A column as a format has it: an array, or a list of cells.
Column = NDArray[Any] | Texts | list[Any]


@dataclass(frozen=True)
class Table:
    """Named columns on some rows of a file."""

    file: str
    names: list[str]  # of all columns of the file
    columns: Mapping[str, Column]  # the chosen ones
    places: range | NDArray[Any] = range(0)  # of each row: the line on which it ends, or the row
    unit: str = "row"  # or "line"
    rows: Sequence[Any] = ()  # of JSON Lines the first object, of a log all
    share: float = 0.0  # of the file that is read when these rows are
    first: Mapping[str, Any] = field(default_factory=dict)  # row of the file, which decides kinds
    note: str = ""  # how a log is read
    groups: str = ""  # the column of a log whose rows with one value belong together

    def row(self, index: int) -> str:
        """Return the name of a row for messages."""
        return f"{self.unit} {self.places[index]}"

    def part(self, start: int, stop: int) -> "Table":
        """Return the table of some of the rows."""
        rows = slice(start, stop)
        columns: dict[str, Column] = {}
        for name, column in self.columns.items():
            if isinstance(column, Texts):
                used, codes = np.unique(column.codes[rows], return_inverse=True)
                columns[name] = Texts(codes, [column.words[k] for k in used])
            else:
                columns[name] = column[rows]
        return replace(self, columns=columns, places=self.places[rows])

    def read(
        self, labels: Sequence[str], numbers: Sequence[str]
    ) -> tuple[dict[str, Labels], dict[str, Numbers]]:
        """Read columns of labels, and columns of numbers, by name.

        Of numbers a cell may be a list or an object of as many in each row.
        """
        found = {name: as_labels(self.columns[name]) for name in labels}
        figures = {name: as_numbers(self.columns[name]) for name in numbers}
        bad = [(name, label_fault) for name, column in found.items() if column is None]
        bad += [(name, numbers_fault) for name, column in figures.items() if column is None]
        if bad:
            self.refuse([(name, cell_list(self.columns[name]), check) for name, check in bad])
        return found, figures  # type: ignore[return-value]

    def refuse(self, columns: Sequence[tuple[str, list[Any], Check]]) -> NoReturn:
        """Raise the error of the first bad row of some columns of cells."""
        faults: dict[int, tuple[str, Fault]] = {}
        for name, cells, check in columns:
            first = next((cell for cell in cells if not isinstance(cell, Fault)), None)
            first = self.first.get(name, first)
            for index, cell in enumerate(cells):
                if index not in faults and (fault := check(cell, first)):
                    faults[index] = name, fault
        index = min(faults)
        name, fault = faults[index]
        column = "" if fault.inner is None else f", column {name}{fault.inner}"
        raise InputError(
            name, fault.rule, index=index, value=fault.value, rows=len(faults),
            place=f"{self.file}: {self.row(index)}{column}",
        )  # fmt: skip


def cell_list(cells: Column) -> list[Any]:
    """Return a column as a list of its cells."""
    if isinstance(cells, Texts):
        return [cells.words[code] for code in cells.codes]
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def as_labels(cells: Column) -> Labels | None:
    """Return a column of labels, or None if it has bad cells.

    No cell may be missing, and either all are strings or none is.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind not in "OU":
        return cells
    if not isinstance(cells, Texts):
        cells = cell_list(cells)
        if not all(isinstance(cell, str) for cell in cells):
            is_bad = any(label_fault(cell, cells[0]) for cell in cells)
            return None if is_bad else cell_array(cells)
        cells = as_texts(cells)
    return None if {*MISSING} & {*cells.words} else cells


def as_texts(cells: Sequence[str]) -> Texts:
    """Encode strings, without surrounding blanks, as a column of texts."""
    words: dict[str, int] = {}
    codes = [words.setdefault(cell.strip(), len(words)) for cell in cells]
    return Texts(np.array(codes, np.int32), [*words])


def as_numbers(cells: Column) -> Numbers | None:
    """Return a column of numbers, or None if it has bad cells.

    Cells that are lists or objects must have as many numbers in each row.
    """
    if isinstance(cells, np.ndarray) and cells.dtype.kind not in "OU":
        return cells
    cells = cell_list(cells)
    with suppress(ValueError, TypeError):  # of other characters, or no strings
        if set("".join(cells)) <= DIGITS:  # all of which are read as `NUMBER` is
            return np.array([*map(float, cells)])
    if any(numbers_fault(cell, cells[0]) for cell in cells):
        return None
    names = [*cells[0]] if cells and isinstance(cells[0], dict) else []
    array = cell_array([[cell[name] for name in names] for cell in cells] if names else cells)
    array = array.astype(np.float64) if array.dtype.kind == "U" else array
    return NamedColumns(array, names) if names else array


def cell_array(cells: list[Any]) -> NDArray[Any]:
    """Make an array of cells, of floats where integers are too large for others."""
    array = np.array(cells)
    with suppress(ValueError, TypeError, OverflowError):
        return array.astype(np.float64) if array.dtype.kind == "O" else array
    return array


def row_fault(row: Any, _first: Any) -> Fault | None:
    """Return the rule that a whole row breaks, or None."""
    return row if isinstance(row, Fault) else None


def label_fault(cell: Any, first: Any) -> Fault | None:
    """Return the rule that a cell breaks as a label, or None."""
    if isinstance(cell, Fault):
        return cell
    if cell is None or cell != cell or (isinstance(cell, str) and cell.strip() in MISSING):
        return Fault("must not be missing", cell, "")
    if isinstance(cell, list | dict):
        return Fault("must be one value", cell, "")
    if isinstance(cell, str) == isinstance(first, str) or isinstance(first, Fault):
        return None
    kind = "a string" if isinstance(first, str) else "no string"
    return Fault(f"must be {kind}, as the first row has", cell, "")


def numbers_fault(cell: Any, first: Any) -> Fault | None:
    """Return the rule that a cell breaks as one or several numbers, or None.

    There must be as many numbers as in the first row.
    """
    if isinstance(cell, Fault) or not isinstance(first, list | dict):
        return number_fault(cell)
    if isinstance(cell, list | dict) and not cell:
        return Fault("must hold numbers", cell, "")
    keys: Any = set if isinstance(first, dict) else len
    if type(cell) is not type(first) or keys(cell) != keys(first):
        return Fault(f"must hold {len(first)} numbers, as the first row does", cell, "")
    items = cell.items() if isinstance(cell, dict) else enumerate(cell)
    faults = (number_fault(one, f".{key}") for key, one in items)
    return next(filter(None, faults), None)


def number_fault(cell: Any, inner: str = "") -> Fault | None:
    """Return the rule that a cell breaks as a number, or None."""
    if isinstance(cell, float) and cell == cell:
        return None
    if not isinstance(cell, str) or cell.strip() in MISSING:
        fault = label_fault(cell, cell)
        return fault if fault is None or fault.inner is None else fault._replace(inner=inner)
    if NUMBER.fullmatch(cell.strip()):
        return None
    has_comma = NUMBER.fullmatch(cell.strip().replace(",", ".", 1))
    return Fault(f"must be a number{' with a decimal point' if has_comma else ''}", cell, inner)


def as_arrays(columns: Sequence[Labels]) -> list[NDArray[Any]]:
    """Turn columns of strings into numbers or bools, if all are written so.

    No two that differ may become one, as 1.1 and 1.10: those stay strings.
    """
    texts = [column for column in columns if isinstance(column, Texts)]
    read: Callable[[str], Any] = str
    for form, to_value in reversed(FORMS if len(texts) == len(columns) else []):
        is_form = re.compile(form, re.ASCII).fullmatch
        if all(
            all(map(is_form, x.words)) and len({*map(to_value, x.words)}) == len(x.words)
            for x in texts
        ):
            read = to_value
    return [
        np.array([*map(read, x.words)])[x.codes] if isinstance(x, Texts) else x for x in columns
    ]


def join(columns: Sequence[Any]) -> Any:
    """Join the parts of a column.

    They are all strings, or all matrices of one width, and so on.
    """
    first = columns[0]
    if len(columns) == 1:
        return first
    if isinstance(first, NamedColumns):
        return NamedColumns(np.concatenate([x.array for x in columns]), first.columns)
    if not isinstance(first, Texts):
        return np.concatenate(columns)
    words: dict[str, int] = {}
    codes = [
        np.array([words.setdefault(word, len(words)) for word in x.words], np.int32)[x.codes]
        for x in columns
    ]
    return Texts(np.concatenate(codes), [*words])


def arrow_column(column: Any) -> NDArray[Any] | Texts | None:
    """Read a column of pyarrow: strings, numbers, bools, or rows of numbers.

    None where there is anything else, or a cell is missing. No `to_numpy`, which imports pandas.
    """
    from pyarrow import types

    column = column.dictionary_decode() if types.is_dictionary(column.type) else column
    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    cells = column.flatten() if is_list else column
    if column.null_count or cells.null_count:
        return None
    if types.is_string(kind) or types.is_large_string(kind):
        coded = column.dictionary_encode()
        words = as_texts(coded.dictionary.to_pylist())
        return Texts(words.codes[np.from_dlpack(coded.indices)], words.words)
    if types.is_boolean(cells.type):
        array: NDArray[Any] = np.from_dlpack(cells.cast("uint8")).view(bool)
    elif types.is_integer(cells.type) or types.is_floating(cells.type):
        array = np.from_dlpack(cells)
    else:
        return None
    if not is_list:
        return array
    width = len(cells) // max(len(column), 1)
    is_matrix = width > 1 and (np.from_dlpack(column.value_lengths()) == width).all()
    return array.reshape(-1, width) if is_matrix else None
