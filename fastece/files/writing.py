"""Predictions written to files, in the format of the file's ending."""

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import InputError
from fastece.files.columns import NamedColumns
from fastece.files.formats import PACKED
from fastece.files.predictions import Predictions

Columns = dict[str, NDArray[Any]]


def check_output(path: Path) -> None:
    """Refuse a file name whose ending has no writer."""
    if ending_of(path) not in WRITERS:
        raise InputError("out", f"must end in {', '.join(WRITERS)}", value=str(path))


def write_predictions(path: Path, predictions: Predictions) -> None:
    """Write the columns of predictions to a file, complete or not at all.

    A name that ends in .gz makes it packed by gzip.
    """
    plain = io.BytesIO()
    WRITERS[ending_of(path)](plain, columns_of(predictions))
    packed = path.suffix.lower() == PACKED
    with whole_file(path) as file:
        file.write(gzip.compress(plain.getbuffer(), 6, mtime=0) if packed else plain.getbuffer())


def ending_of(path: Path) -> str:
    """Return the ending of a file name, before the one of gzip."""
    return Path(path.name.lower().removesuffix(PACKED)).suffix


def columns_of(predictions: Predictions) -> Columns:
    """Return the columns of predictions, under the names that the file had."""
    prob, names = np.asarray(predictions.y_prob), predictions.columns.get("y_prob", ["y_prob"])
    if isinstance(predictions.y_prob, NamedColumns):
        names = predictions.y_prob.columns
    columns = {names[0]: prob} if len(names) == 1 else dict(zip(names, prob.T, strict=True))
    return {**(predictions.cells or {"y_true": predictions.y_true}), **columns}


def write_text(file: IO[bytes], columns: Columns) -> None:
    """Write columns as delimited text with a header; numbers have all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    flat: Columns = {}
    for name, column in columns.items():
        word = "p" if name == "y_prob" else name
        flat |= (
            {f"{word}_{k}": x for k, x in enumerate(column.T)}
            if column.ndim > 1
            else {name: column}
        )
    writer.writerow(flat)
    writer.writerows(zip(*(column.tolist() for column in flat.values()), strict=True))
    file.write(text.getvalue().encode())


def write_lines(file: IO[bytes], columns: Columns) -> None:
    """Write columns as JSON Lines."""
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        text = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
        # Half of a surrogate pair was an escape and becomes one.
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def write_archive(file: IO[bytes], columns: Columns) -> None:
    """Write columns as an archive of NumPy."""
    np.savez(file, allow_pickle=False, **columns)


def write_parquet(file: IO[bytes], columns: Columns) -> None:
    """Write columns as Parquet by pyarrow."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(
        pa.table({name: pa.array(x if x.ndim == 1 else list(x)) for name, x in columns.items()}),
        file,
    )


WRITERS: dict[str, Callable[[IO[bytes], Columns], None]] = {
    ".csv": write_text,
    ".jsonl": write_lines,
    ".npz": write_archive,
    ".parquet": write_parquet,
}


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write to, which gets its name when the block has ended well."""
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with open(part, "xb") as file:
        try:
            yield file
        except BaseException:
            part.unlink()
            raise
    os.replace(part, path)
