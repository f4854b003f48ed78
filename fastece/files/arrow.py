"""Columns of pyarrow as arrays; where pyarrow is missing, files are read without it."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.files.cells import RawColumn, Texts, encode_texts

# The command that installs pyarrow, for hints of errors.
INSTALL_PYARROW = "pip install 'fastece[files]'"
# Parses bytes of so many characters as a table of pyarrow.
ParseTable = Callable[[Any, int], Any]


def read_lines(
    lines: Sequence[str], names: Sequence[str], parse: ParseTable
) -> dict[str, RawColumn] | None:
    """Read columns of lines by pyarrow, one row a line.

    Return None where pyarrow is missing, or where lines or cells must be looked at one by one.
    """
    try:
        import pyarrow as pa

        data = pa.py_buffer("".join(lines).encode())
        table = parse(pa.BufferReader(data), data.size + 1).combine_chunks()
    except (ImportError, ValueError, LookupError):
        # ValueError and LookupError: the lines are not plain.
        return None
    if not lines or table.num_rows != len(lines):
        return None
    columns: dict[str, RawColumn] = {}
    for name, arrow_column in zip(names, table.columns, strict=True):
        column = read_arrow_column(arrow_column.chunk(0))
        if column is None or has_nan(column):
            return None
        columns[name] = column
    return columns


def read_arrow_batch(rows: Any, names: Sequence[str]) -> dict[str, RawColumn]:
    """Read columns of a record batch as arrays, or as lists of cells."""
    columns: dict[str, RawColumn] = {}
    for name in names:
        column = read_arrow_column(rows.column(name))
        columns[name] = rows.column(name).to_pylist() if column is None else column
    return columns


def release_memory() -> None:
    """Give back the memory that pyarrow keeps to read more.

    After a file it is nearly twice as large as the arrays that were read.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


def has_nan(column: NDArray[Any] | Texts) -> bool:
    """Decide whether a column of numbers has a nan."""
    return isinstance(column, np.ndarray) and bool((column != column).any())


def read_arrow_column(column: Any) -> NDArray[Any] | Texts | None:
    """Read a column of pyarrow that holds strings, numbers, bools, or rows of numbers.

    Return None where there is anything else, or where a cell is missing. `to_numpy` is not used,
    as it imports pandas.
    """
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    cells = column.flatten() if is_list else column
    if column.null_count or cells.null_count:
        return None
    if types.is_string(kind) or types.is_large_string(kind):
        coded = column.dictionary_encode()
        words = encode_texts(coded.dictionary.to_pylist())
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
