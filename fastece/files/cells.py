"""Cells of a file as labels or numbers, and the rules that bad cells break.

A format gives a column as it finds it: an array, or a list of cells. `read_label_column` and
`read_number_column` turn it into an array, or give None; then `label_fault` and `numbers_fault`
find the cell that is to blame.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import ABSENT

# Texts that numpy reads as numbers; nan is not among them.
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
NUMBER_CHARACTERS = frozenset("0123456789.+-eE")
MISSING = ("", "nan", "NaN")
PERCENT_SIGN = "%"
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


class Fault(NamedTuple):
    """Rule that a cell breaks; a bad row has its fault in place of each of its cells."""

    rule: str
    value: Any = ABSENT
    # Which entry of a cell that holds several, such as ".0" or ".dog".
    entry: str = ""
    is_of_row: bool = False
    # A remedy, as `BadArgumentError` has it.
    hint: str = ""


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


# Finds the fault of a cell, if any, given the same column's cell in the first row.
FaultFinder = Callable[[Any, Any], Fault | None]
LabelColumn = NDArray[Any] | Texts
NumberColumn = NDArray[Any] | NamedColumns
# A column as a format has it.
RawColumn = NDArray[Any] | Texts | list[Any]


# --- columns --------------------------------------------------------------------------------------


def cell_list(column: RawColumn) -> list[Any]:
    """Return a column as a list of its cells."""
    if isinstance(column, Texts):
        return [column.words[code] for code in column.codes]
    return column.tolist() if isinstance(column, np.ndarray) else column


def as_cells(column: RawColumn) -> NDArray[Any]:
    """Return a column as an array of its cells, which are of any kind."""
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, Texts):
        return np.asarray(np.array(column.words, object)[column.codes])
    return np.fromiter(column, object, len(column))


def first_cell(column: RawColumn) -> Any:
    """Return the first cell of a column that has one."""
    if isinstance(column, Texts):
        return column.words[column.codes[0]]
    return column[0].tolist() if isinstance(column, np.ndarray) else column[0]


def find_missing(column: RawColumn) -> NDArray[np.bool_]:
    """Find the rows (n,) whose cell, or an entry of it, is empty, null or nan."""
    if isinstance(column, Texts):
        is_missing_word = np.array([word in MISSING for word in column.words], bool)
        return np.asarray(is_missing_word[column.codes])
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return np.asarray(np.isnan(column).reshape(len(column), -1).any(axis=1))
    return np.array([has_missing(cell) for cell in cell_list(column)], bool)


def has_missing(cell: Any) -> bool:
    """Decide whether a cell, or an entry of one, is missing."""
    if isinstance(cell, list | dict):
        return any(map(is_missing, cell.values() if isinstance(cell, dict) else cell))
    return is_missing(cell)


def read_label_column(column: RawColumn) -> LabelColumn | None:
    """Read a column of labels; return None if it has bad cells.

    No cell may be missing, and either all are strings or none is.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OU":
        return column
    if isinstance(column, Texts):
        texts = column
    else:
        cells = cell_list(column)
        if not all(isinstance(cell, str) for cell in cells):
            is_bad = any(label_fault(cell, cells[0]) for cell in cells)
            return None if is_bad else make_array(cells)
        texts = encode_texts(cells)
    has_missing = not set(MISSING).isdisjoint(texts.words)
    return None if has_missing else texts


def read_number_column(column: RawColumn) -> NumberColumn | None:
    """Read a column of numbers; return None if it has bad cells.

    Cells that are lists or objects must have as many numbers in each row.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OU":
        return column
    cells = cell_list(column)
    plain = read_plain_numbers(cells)
    if plain is not None:
        return plain
    if all(map(has_percent_sign, cells)) and not any(number_fault(cell) for cell in cells):
        return make_floats(cells)
    if any(numbers_fault(cell, cells[0]) for cell in cells):
        return None
    if cells and isinstance(cells[0], dict):
        names = list(cells[0])
        rows = [[cell[name] for name in names] for cell in cells]
        return NamedColumns(make_floats(rows), names)
    return make_floats(cells)


def read_plain_numbers(cells: list[Any]) -> NDArray[Any] | None:
    """Read strings of digits, signs and points alone; return None for others."""
    try:
        characters = set("".join(cells))
        if characters <= NUMBER_CHARACTERS:
            return np.array([float(cell) for cell in cells])
    except (ValueError, TypeError):
        # Some cells are no strings, or are no numbers in spite of their characters.
        pass
    return None


def encode_texts(cells: Sequence[str]) -> Texts:
    """Encode strings, without surrounding blanks, as a column of texts."""
    codes_of_words: dict[str, int] = {}
    codes = [codes_of_words.setdefault(cell.strip(), len(codes_of_words)) for cell in cells]
    return Texts(np.array(codes, np.int32), list(codes_of_words))


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


def has_percent_sign(cell: Any) -> bool:
    """Decide whether a cell, or an entry of one, is a text that ends in a sign %."""
    if isinstance(cell, list | dict):
        entries = cell.values() if isinstance(cell, dict) else cell
        return any(map(has_percent_sign, entries))
    return isinstance(cell, str) and cell.rstrip().endswith(PERCENT_SIGN)


def number_of(text: str) -> float:
    """Return the number that a text is; 91% is 0.91."""
    text = text.strip()
    if text.endswith(PERCENT_SIGN):
        return float(text.removesuffix(PERCENT_SIGN)) / 100
    return float(text)


def decode_labels(columns: Sequence[LabelColumn]) -> list[NDArray[Any]]:
    """Turn columns of strings into numbers or bools, if all cells are written so.

    No two labels that differ may become one, as 1.1 and 1.10 would: those stay strings.
    """
    texts = [column for column in columns if isinstance(column, Texts)]
    read: Callable[[str], Any] = str
    if len(texts) == len(columns):
        forms = [form for form in LABEL_FORMS if all(has_form(x.words, *form) for x in texts)]
        if forms:
            read = forms[0][1]
    return [
        np.array([read(word) for word in column.words])[column.codes]
        if isinstance(column, Texts)
        else column
        for column in columns
    ]


def has_form(words: Sequence[str], form: str, read: Callable[[str], Any]) -> bool:
    """Decide whether words are written in a form, and are read as distinct labels."""
    is_form = re.compile(form, re.ASCII).fullmatch
    return all(map(is_form, words)) and len({read(word) for word in words}) == len(words)


def join_columns(columns: Sequence[Any]) -> Any:
    """Join the pieces of a column, which are of one kind and width."""
    first = columns[0]
    if len(columns) == 1:
        return first
    if isinstance(first, NamedColumns):
        return NamedColumns(np.concatenate([x.array for x in columns]), first.columns)
    if not isinstance(first, Texts):
        return np.concatenate(columns)
    codes_of_words: dict[str, int] = {}
    codes = []
    for column in columns:
        new_codes = [codes_of_words.setdefault(x, len(codes_of_words)) for x in column.words]
        codes.append(np.array(new_codes, np.int32)[column.codes])
    return Texts(np.concatenate(codes), list(codes_of_words))


# --- faults ---------------------------------------------------------------------------------------


def row_fault(cell: Any, _first: Any) -> Fault | None:
    """Find the fault of a whole row, which stands in place of its cells."""
    return cell if isinstance(cell, Fault) else None


def label_fault(cell: Any, first: Any) -> Fault | None:
    """Find the rule that a cell breaks as a label, given the cell of the first row."""
    if isinstance(cell, Fault):
        return cell
    if is_missing(cell):
        return Fault("must not be missing", cell)
    if isinstance(cell, list | dict):
        return Fault("must be one value", cell)
    if isinstance(cell, str) == isinstance(first, str) or isinstance(first, Fault):
        return None
    kind = "a string" if isinstance(first, str) else "no string"
    return Fault(f"must be {kind}, as the first row has", cell)


def numbers_fault(cell: Any, first: Any) -> Fault | None:
    """Find the rule that a cell breaks as a number, or as several numbers.

    There must be as many numbers as in the cell of the first row.
    """
    if isinstance(cell, Fault):
        return cell
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
    faults = (number_fault(entry, f".{key}") for key, entry in entries)
    return next(filter(None, faults), None)


def number_fault(cell: Any, entry: str = "") -> Fault | None:
    """Find the rule that a cell, or an entry of one, breaks as a number."""
    if isinstance(cell, float) and cell == cell:
        return None
    if not isinstance(cell, str) or is_missing(cell):
        fault = label_fault(cell, cell)
        if fault is None:
            is_number = isinstance(cell, Real | Decimal)
            return None if is_number else Fault("must be a number", cell, entry)
        return fault if fault.is_of_row else fault._replace(entry=entry)
    text = cell.strip()
    if NUMBER.fullmatch(text.removesuffix(PERCENT_SIGN).rstrip()):
        return None
    if NUMBER.fullmatch(text.replace(",", ".", 1)):
        rule = "must be a number with a decimal point"
        return Fault(rule, cell, entry, hint=DECIMAL_COMMAS)
    return Fault("must be a number", cell, entry)


def is_missing(cell: Any) -> bool:
    """Decide whether a cell is empty, null or not a number."""
    if isinstance(cell, str):
        return cell.strip() in MISSING
    return bool(cell is None or cell != cell)
