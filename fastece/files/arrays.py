"""NPY and NPZ files: arrays of NumPy with names, or a matrix whose first column is y_true."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.files.batches import Batch, Choose, Header, rows_per_batch
from fastece.files.broken import input_errors


def read_arrays(name: str, file: Any, choose: Choose) -> Iterator[Batch]:
    """Read the arrays of an NPZ file, or the mapped one of an NPY file, in batches."""
    with input_errors(name, Exception):
        mode: Any = "r" if isinstance(file, str) else None
        content = np.load(file, mmap_mode=mode, allow_pickle=False)
        if isinstance(content, np.ndarray):
            columns = name_columns(content, name)
            names = list(columns)
        else:
            with content as archive:
                # Files that are no arrays come as bytes.
                columns = {k: x for k, x in archive.items() if isinstance(x, np.ndarray)}
                # A name may come twice here.
                names = [name for name in archive.files if name in columns]
    chosen_names = choose(Header(name, names))
    column_names = chosen_names.names()
    first = columns[column_names[0]]
    n_rows = len(np.atleast_1d(first))
    # Other arrays of an archive need not hold rows.
    no_rows = {key for key in chosen_names.kept if columns[key].shape[:1] != (n_rows,)}
    column_names = [key for key in column_names if key not in no_rows]
    for key in column_names:
        if columns[key].shape[:1] != (n_rows,):
            expected = f"{column_names[0]} has {first.shape}" if first.ndim else "must be a column"
            rule = f"has shape {columns[key].shape}, {expected}"
            raise InputError(key, rule, place=f"{name}: column {key}")
    chosen = {key: columns[key] for key in column_names}
    batch = Batch(Header(name, list(columns)), chosen, range(1, n_rows + 1))
    n_numbers = sum(column.size for column in chosen.values())
    step = rows_per_batch(n_numbers / max(n_rows, 1))
    for start in range(0, n_rows, step):
        yield batch.cut(start, start + step)


def name_columns(array: NDArray[Any], file: str) -> dict[str, NDArray[Any]]:
    """Return the columns of an array with named fields, or of a matrix (n, 1 + K)."""
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim != 2 or array.shape[1] < 2:
        rule = (
            f"holds an array of shape {array.shape}, and must hold named fields, or a matrix whose "
            "first column is y_true, and whose others are y_prob, or p_0, p_1 and so on"
        )
        raise InputError("path", rule, place=file)
    n_classes = array.shape[1] - 1
    names = [f"p_{k}" for k in range(n_classes)] if n_classes > 1 else ["y_prob"]
    return dict(zip(["y_true", *names], array.T, strict=True))
