"""Cells of a column as numbers or labels, or the error of the first cell that is neither.

A format gives a column as an array, as `Texts`, or as a list of cells of any kind. An error has the
name of the column as its argument, and the position of the cell as its index.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError

# Texts that are numbers, without a sign %; nan is not among them.
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
MISSING = ("", "nan", "NaN")
MISSING_RULE = "must not be missing"
PERCENT_SIGN = "%"
# Kinds of columns, which are the same in all batches of a file.
TEXT_KIND = "a string"
OTHER_LABEL_KIND = "no string"
NUMBER_KIND = "a number"
PERCENT_KIND = "a number with a sign %"
# Between semicolons or tabs no other comma stands that would change.
DECIMAL_COMMAS = (
    "save the table with decimal points; between semicolons or tabs, tr , . < FILE > NEW does it"
)
# How labels that are no strings are written, and how they are read; 007, 1_1 and +1 are strings.
# An integer has at most 18 digits, so that int64 holds it.
LABEL_FORMS: list[tuple[str, Callable[[str], Any]]] = [
    (r"-?(0|[1-9]\d{0,17})", int),
    (r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", float),
    (r"[Tt]rue|[Ff]alse|TRUE|FALSE", lambda cell: cell.lower() == "true"),
]


class Texts(NamedTuple):
    """Column of strings, as codes of its distinct strings."""

    codes: NDArray[Any]
    words: list[str]

    def strings(self) -> NDArray[Any]:
        """Return the column as an array of strings."""
        strings: NDArray[Any] = np.array(self.words)[self.codes]
        return strings


class NamedColumns:
    """Matrix (n, K) whose columns have names, like a data frame."""

    def __init__(self, array: NDArray[Any], columns: list[str]) -> None:
        self.array = array
        self.columns = columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.array, dtype, copy=copy)


# A column as a format has it.
Column = NDArray[Any] | Texts | list[Any]


class Cells(NamedTuple):
    """The cells of a column as labels or numbers, and their kind in words."""

    values: Any
    kind: str


class Fault(NamedTuple):
    """The rule that a cell breaks, the bad value, and where in the cell it is."""

    rule: str
    value: Any
    entry: tuple[Any, ...] = ()
    hint: str = ""


# --- columns --------------------------------------------------------------------------------------


def is_numeric(column: Column) -> bool:
    """Decide whether a column is an array that needs no look at its cells."""
    return isinstance(column, np.ndarray) and column.dtype.kind not in "OU"


def cell_list(column: Column) -> list[Any]:
    """Return a column as a list of its cells."""
    if isinstance(column, Texts):
        return [column.words[code] for code in column.codes]
    return column.tolist() if isinstance(column, np.ndarray) else column


def as_cells(column: Column) -> NDArray[Any]:
    """Return a column as an array of its cells, which are of any kind."""
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, Texts):
        return np.asarray(np.array(column.words, object)[column.codes])
    return np.fromiter(column, object, len(column))


def count_rows(column: Column) -> int:
    """Return the number of cells of a column."""
    return len(column.codes) if isinstance(column, Texts) else len(column)


def select_cells(column: Column, rows: slice | NDArray[Any]) -> Column:
    """Return some rows of a column; texts keep only the words that occur."""
    if isinstance(column, Texts):
        used_codes, codes = np.unique(column.codes[rows], return_inverse=True)
        return Texts(codes, [column.words[k] for k in used_codes])
    if isinstance(column, list) and not isinstance(rows, slice):
        return [column[k] for k in rows]
    return column[rows]


def join_columns(columns: Sequence[Any]) -> Any:
    """Join the pieces of a column, which are of one kind and width."""
    first = columns[0]
    if len(columns) == 1:
        return first
    if isinstance(first, NamedColumns):
        return NamedColumns(np.concatenate([x.array for x in columns]), first.columns)
    if isinstance(first, list):
        return [cell for column in columns for cell in column]
    if not isinstance(first, Texts):
        return np.concatenate(columns)
    codes_of_words: dict[str, int] = {}
    codes = []
    for column in columns:
        new_codes = [codes_of_words.setdefault(x, len(codes_of_words)) for x in column.words]
        codes.append(np.array(new_codes, np.int32)[column.codes])
    return Texts(np.concatenate(codes), list(codes_of_words))


def find_missing(column: Column) -> NDArray[np.bool_]:
    """Find the rows (n,) whose cell, or an entry of it, is empty, null or nan."""
    if isinstance(column, Texts):
        is_missing_word = np.array([word in MISSING for word in column.words], bool)
        return np.asarray(is_missing_word[column.codes])
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return np.asarray(np.isnan(column).reshape(len(column), -1).any(axis=1))
    return np.array([any(map(is_missing, entries_of(cell))) for cell in cell_list(column)], bool)


def is_missing(cell: Any) -> bool:
    """Decide whether a cell is empty, null or not a number."""
    if isinstance(cell, str):
        return cell.strip() in MISSING
    return bool(cell is None or cell != cell)


def entries_of(cell: Any) -> Iterable[Any]:
    """Return the entries of a cell that is a list or an object, or the cell alone."""
    if isinstance(cell, dict):
        return cell.values()
    return cell if isinstance(cell, list) else (cell,)


def refuse_first(name: str, cells: Sequence[Any], find_fault: Callable[[Any], Any]) -> None:
    """Raise the error of the first bad cell, if there is one, and count the bad ones."""
    faults = list(map(find_fault, cells))
    bad = [index for index, fault in enumerate(faults) if fault is not None]
    if bad:
        fault = faults[bad[0]]
        index = (bad[0], *fault.entry)
        raise InputError(
            name, fault.rule, index=index, value=fault.value, rows=len(bad), hint=fault.hint
        )


# --- labels ---------------------------------------------------------------------------------------


def read_labels(name: str, column: Column) -> Cells:
    """Read a column of labels; no cell may be missing, and all or none are strings."""
    if is_numeric(column):
        return Cells(column, OTHER_LABEL_KIND)
    if isinstance(column, Texts):
        if not set(MISSING).isdisjoint(column.words):
            refuse_first(name, cell_list(column), missing_fault)
        return Cells(column, TEXT_KIND)
    cells = cell_list(column)
    first = cells[0]
    refuse_first(name, cells, lambda cell: label_fault(cell, first))
    if isinstance(first, str):
        return Cells(encode_texts(cells), TEXT_KIND)
    return Cells(make_array(cells), OTHER_LABEL_KIND)


def missing_fault(cell: Any) -> Fault | None:
    """Find the fault of a cell that is missing."""
    return Fault(MISSING_RULE, cell) if is_missing(cell) else None


def label_fault(cell: Any, first: Any) -> Fault | None:
    """Find the rule that a cell breaks as a label, given the cell of the first row."""
    if is_missing(cell):
        return Fault(MISSING_RULE, cell)
    if isinstance(cell, list | dict):
        return Fault("must be one value", cell)
    if isinstance(cell, str) == isinstance(first, str):
        return None
    kind = TEXT_KIND if isinstance(first, str) else OTHER_LABEL_KIND
    return Fault(f"must be {kind}, as the first row has", cell)


def encode_texts(cells: Iterable[str]) -> Texts:
    """Encode strings, without surrounding blanks, as a column of texts."""
    codes_of_words: dict[str, int] = {}
    codes = [codes_of_words.setdefault(cell.strip(), len(codes_of_words)) for cell in cells]
    return Texts(np.array(codes, np.int32), list(codes_of_words))


def decode_labels(columns: Sequence[Any]) -> list[NDArray[Any]]:
    """Turn columns of strings into numbers or bools, if all cells are written so.

    No two labels that differ may become one, as 1.1 and 1.10 would: those stay strings.
    """
    texts = [column for column in columns if isinstance(column, Texts)]
    read: Callable[[str], Any] = str
    if len(texts) == len(columns):
        forms = [form for form in LABEL_FORMS if all(have_form(x.words, *form) for x in texts)]
        if forms:
            read = forms[0][1]
    return [
        np.array([read(word) for word in column.words])[column.codes]
        if isinstance(column, Texts)
        else column
        for column in columns
    ]


def have_form(words: Sequence[str], form: str, read: Callable[[str], Any]) -> bool:
    """Decide whether words are written in a form, and are read as distinct labels."""
    is_form = re.compile(form, re.ASCII).fullmatch
    return all(map(is_form, words)) and len({read(word) for word in words}) == len(words)


# --- numbers --------------------------------------------------------------------------------------


def read_numbers(name: str, column: Column) -> Cells:
    """Read a column of numbers, or of lists or objects of as many numbers in each row."""
    if isinstance(column, np.ndarray) and is_numeric(column):
        return Cells(column, kind_of_numbers(column))
    cells = cell_list(column)
    first = cells[0]
    refuse_first(name, cells, lambda cell: numbers_fault(cell, first))
    if isinstance(first, dict):
        names = list(first)
        numbers = make_floats([[cell[key] for key in names] for cell in cells])
        return Cells(NamedColumns(numbers, names), f"numbers of {', '.join(names)}")
    numbers = make_floats(cells)
    return Cells(numbers, PERCENT_KIND if has_percent_sign(first) else kind_of_numbers(numbers))


def kind_of_numbers(numbers: NDArray[Any]) -> str:
    """Name the kind of a column of numbers, by how many each row has."""
    return NUMBER_KIND if numbers.ndim == 1 else f"{numbers.shape[1]} numbers"


def numbers_fault(cell: Any, first: Any) -> Fault | None:
    """Find the rule that a cell breaks as a number, or as several numbers.

    There must be as many numbers as in the cell of the first row.
    """
    if not isinstance(first, list | dict):
        fault = number_fault(cell)
        if fault is None and has_percent_sign(cell) != has_percent_sign(first):
            word = "a" if has_percent_sign(first) else "no"
            return Fault(f"must have {word} sign %, as the first row has", cell)
        return fault
    if isinstance(cell, list | dict) and not cell:
        return Fault("must hold numbers", cell)
    keys_of: Callable[[Any], Any] = set if isinstance(first, dict) else len
    if type(cell) is not type(first) or keys_of(cell) != keys_of(first):
        return Fault(f"must hold {len(first)} numbers, as the first row does", cell)
    entries = cell.items() if isinstance(cell, dict) else enumerate(cell)
    for key, entry in entries:
        fault = number_fault(entry)
        if fault is not None:
            return fault._replace(entry=(key,))
    return None


def number_fault(cell: Any) -> Fault | None:
    """Find the rule that a cell, or an entry of one, breaks as a number."""
    if isinstance(cell, float) and cell == cell:
        return None
    if is_missing(cell):
        return Fault(MISSING_RULE, cell)
    if not isinstance(cell, str):
        is_number = isinstance(cell, Real | Decimal)
        return None if is_number else Fault("must be a number", cell)
    text = cell.strip()
    if NUMBER.fullmatch(text.removesuffix(PERCENT_SIGN).rstrip()):
        return None
    if NUMBER.fullmatch(text.replace(",", ".", 1)):
        return Fault("must be a number with a decimal point", cell, hint=DECIMAL_COMMAS)
    return Fault("must be a number", cell)


def has_percent_sign(cell: Any) -> bool:
    """Decide whether a cell, or an entry of one, is a text that ends in a sign %."""
    return any(
        isinstance(entry, str) and entry.rstrip().endswith(PERCENT_SIGN)
        for entry in entries_of(cell)
    )


def make_array(cells: list[Any]) -> NDArray[Any]:
    """Make an array of cells; integers that are too large for int64 become floats."""
    array = np.array(cells)
    if array.dtype.kind == "O":
        with suppress(ValueError, TypeError, OverflowError):
            return array.astype(np.float64)
    return array


def make_floats(cells: list[Any]) -> NDArray[Any]:
    """Make an array of cells that are numbers, some of which may be written as texts."""
    array = make_array(cells)
    if array.dtype.kind != "U":
        return array
    numbers = np.array(cells, object)
    flat = [number_of(x) if isinstance(x, str) else float(x) for x in numbers.flat]
    return np.array(flat).reshape(numbers.shape)


def number_of(text: str) -> float:
    """Return the number that a text is; 91% is 0.91."""
    text = text.strip()
    if text.endswith(PERCENT_SIGN):
        return float(text.removesuffix(PERCENT_SIGN)) / 100
    return float(text)
