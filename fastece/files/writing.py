"""Predictions written to files, in the format of the file's ending.

A new format is a function that turns columns into bytes, and a row of `WRITERS`.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.files.cells import NamedColumns
from fastece.files.file_predictions import FilePredictions
from fastece.files.paths import GZIP_ENDING
from fastece.files.replacing import write_file

Columns = dict[str, NDArray[Any]]
# Level of compression of gzip, the usual one of its program.
GZIP_LEVEL = 6


def check_output(path: Path) -> None:
    """Refuse a file name whose ending has no writer."""
    if ending_of(path) not in WRITERS:
        raise InputError("out", f"must end in {', '.join(WRITERS)}", value=str(path))


def ending_of(path: Path) -> str:
    """Return the ending of a file name, before the one of gzip."""
    return Path(path.name.lower().removesuffix(GZIP_ENDING)).suffix


def write_predictions(path: Path, predictions: FilePredictions) -> None:
    """Write the columns of predictions to a file, complete or not at all.

    They have the names that the file had. A name that ends in .gz makes it packed by gzip.
    """
    columns = columns_to_write(predictions)
    try:
        content = WRITERS[ending_of(path)](columns)
    except UnicodeError as error:
        rule = "must end in .jsonl or .npz, as half of a surrogate pair, in a label, is no UTF-8"
        raise InputError("out", rule, value=str(path)) from error
    if path.suffix.lower() == GZIP_ENDING:
        content = gzip.compress(content, GZIP_LEVEL, mtime=0)
    write_file(path, content)


def columns_to_write(predictions: FilePredictions) -> Columns:
    """Return labels, other columns that were read, and probabilities, by their names."""
    prob = np.asarray(predictions.y_prob)
    if isinstance(predictions.y_prob, NamedColumns):
        names = predictions.y_prob.columns
    else:
        names = predictions.columns.get("y_prob", ["y_prob"])
    # One column may hold a matrix.
    probabilities = {names[0]: prob} if len(names) == 1 else dict(zip(names, prob.T, strict=True))
    return {**(predictions.cells or {"y_true": predictions.y_true}), **probabilities}


# --- formats --------------------------------------------------------------------------------------


def to_text(columns: Columns) -> bytes:
    """Write columns as delimited text with a header; numbers have all their digits."""
    flat_columns: Columns = {}
    for name, column in columns.items():
        if column.ndim == 1:
            flat_columns[name] = column
        else:
            prefix = "p" if name == "y_prob" else name
            flat_columns |= {f"{prefix}_{k}": x for k, x in enumerate(column.T)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(flat_columns)
    writer.writerows(zip(*(column.tolist() for column in flat_columns.values()), strict=True))
    return text.getvalue().encode()


def to_json_lines(columns: Columns) -> bytes:
    """Write columns as JSON Lines."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

    def to_json(cell: Any) -> str:
        # JSON has no infinity, but numbers that are read as it.
        return repr(cell).replace("inf", "1e999") if isinstance(cell, float) else encode(cell)

    names = [encode(name) for name in columns]
    rows = zip(*(map(to_json, column.tolist()) for column in columns.values()), strict=True)
    lines = (", ".join(map("{}: {}".format, names, row)) for row in rows)
    # Half of a surrogate pair was an escape, and becomes one again.
    return "".join(f"{{{line}}}\n" for line in lines).encode("utf-8", "backslashreplace")


def to_archive(columns: Columns) -> bytes:
    """Write columns as an archive of NumPy."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **columns)
    return file.getvalue()


def to_parquet(columns: Columns) -> bytes:
    """Write columns as Parquet by pyarrow."""
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    arrays = {name: pa.array(x if x.ndim == 1 else list(x)) for name, x in columns.items()}
    parquet.write_table(pa.table(arrays), file)
    return file.getvalue()


WRITERS: dict[str, Callable[[Columns], bytes]] = {
    ".csv": to_text,
    ".jsonl": to_json_lines,
    ".npz": to_archive,
    ".parquet": to_parquet,
}
