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
from uuid import uuid4

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


def ending_of(path: Path) -> str:
    """Return the ending of a file name, before the one of gzip."""
    return Path(path.name.lower().removesuffix(PACKED)).suffix


def write_predictions(path: Path, predictions: Predictions) -> None:
    """Write the columns of predictions to a file, complete or not at all.

    They have the names that the file had. A name that ends in .gz makes it packed by gzip.
    """
    prob, names = np.asarray(predictions.y_prob), predictions.columns.get("y_prob", ["y_prob"])
    if isinstance(predictions.y_prob, NamedColumns):
        names = predictions.y_prob.columns
    columns = {names[0]: prob} if len(names) == 1 else dict(zip(names, prob.T, strict=True))
    labels = predictions.cells or {"y_true": predictions.y_true}
    content = WRITERS[ending_of(path)]({**labels, **columns})
    if path.suffix.lower() == PACKED:
        content = gzip.compress(content, 6, mtime=0)
    with whole_file(path) as file:
        file.write(content)


def to_text(columns: Columns) -> bytes:
    """Write columns as delimited text with a header; numbers have all their digits."""
    flat: Columns = {}
    for name, column in columns.items():
        word = "p" if name == "y_prob" else name
        one = column.ndim == 1
        flat |= {name: column} if one else {f"{word}_{k}": x for k, x in enumerate(column.T)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(flat)
    writer.writerows(zip(*(column.tolist() for column in flat.values()), strict=True))
    return text.getvalue().encode()


def to_lines(columns: Columns) -> bytes:
    """Write columns as JSON Lines."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    texts = (json.dumps(dict(zip(columns, x, strict=True)), ensure_ascii=False) for x in rows)
    # Half of a surrogate pair was an escape and becomes one.
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "backslashreplace")


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
    ".jsonl": to_lines,
    ".npz": to_archive,
    ".parquet": to_parquet,
}


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write to, which gets its name once it is on the disk as a whole."""
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    with open(part, "xb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            part.unlink()
            raise
    os.replace(part, path)
