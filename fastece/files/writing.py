"""Predictions written to files, in the format of the file's ending.

A new format is a function that turns columns into bytes, and a row of `WRITERS`.
"""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.files.cells import NamedColumns, decode_labels, encode_texts
from fastece.files.json_objects import follow
from fastece.files.paths import GZIP_ENDING
from fastece.files.predictions import FilePredictions
from fastece.files.replacing import write_file
from fastece.files.tables import JsonObjects, Table

Columns = dict[str, NDArray[Any]]
TEXT_ENDING = ".csv"
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
    columns = columns_to_write(predictions, keeps_texts=ending_of(path) == TEXT_ENDING)
    try:
        content = WRITERS[ending_of(path)](columns)
    except UnicodeError as error:
        rule = "must end in .jsonl or .npz, as half of a surrogate pair, in a label, is no UTF-8"
        raise InputError("out", rule, value=str(path)) from error
    if path.suffix.lower() == GZIP_ENDING:
        content = gzip.compress(content, GZIP_LEVEL, mtime=0)
    write_file(path, content)


def columns_to_write(predictions: FilePredictions, keeps_texts: bool) -> Columns:
    """Return the columns of the file that was read, with these probabilities.

    Columns of a text hold numbers as they are written there; they are read unless `keeps_texts`.
    """
    table = predictions.table
    if table is None:
        return {"y_true": predictions.y_true, "y_prob": np.asarray(predictions.y_prob)}
    probabilities = name_probabilities(predictions, table)
    kept = [name for name in table.names_to_keep() if name not in probabilities]
    columns = predictions.read_columns(kept)
    if not keeps_texts:
        columns = {name: decode_texts(column) for name, column in columns.items()}
    for name in [*probabilities]:
        path = table.paths.get(name, ()) if isinstance(table, JsonObjects) else ()
        if len(path) > 1 and path[0] in columns:
            # The probabilities are within objects that are written whole.
            numbers = probabilities.pop(name)
            columns[path[0]] = replace_within(columns[path[0]], path[1:], numbers)
    columns |= probabilities
    in_order = [name for name in table.names if name in columns]
    return {name: columns[name] for name in dict.fromkeys([*in_order, *columns])}


def name_probabilities(predictions: FilePredictions, table: Table) -> Columns:
    """Return probabilities by their columns, of which one may hold a matrix."""
    names = predictions.columns["y_prob"]
    prob = np.asarray(predictions.y_prob)
    is_object = isinstance(predictions.y_prob, NamedColumns) and names[0] not in table.names
    if is_object:
        keys = predictions.y_prob.columns
        rows = [dict(zip(keys, row, strict=True)) for row in prob.tolist()]
        return {names[0].removesuffix(f".{keys[0]}"): np.fromiter(rows, object, len(rows))}
    return {names[0]: prob} if len(names) == 1 else dict(zip(names, prob.T, strict=True))


def replace_within(
    objects: NDArray[Any], path: tuple[str, ...], numbers: NDArray[Any]
) -> NDArray[Any]:
    """Replace the numbers at a path within the objects of a column."""
    replaced = [deepcopy(row) for row in objects.tolist()]
    *parents, last = path
    for row, number in zip(replaced, numbers.tolist(), strict=True):
        holder = follow(row, parents)
        holder[int(last) if isinstance(holder, list) else last] = number
    return np.fromiter(replaced, object, len(replaced))


def decode_texts(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of texts as numbers or bools, if all of them are written so."""
    cells = column.tolist()
    if not all(isinstance(cell, str) for cell in cells):
        return column
    (decoded,) = decode_labels([encode_texts(cells)])
    return decoded


# --- formats --------------------------------------------------------------------------------------


def to_text(columns: Columns) -> bytes:
    """Write columns as delimited text with a header; numbers have all their digits."""
    flat_columns: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if column.ndim > 1:
            prefix = "p" if name == "y_prob" else name
            flat_columns |= {f"{prefix}_{k}": x.tolist() for k, x in enumerate(column.T)}
        else:
            flat_columns[name] = [to_cell(cell) for cell in column.tolist()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(flat_columns)
    writer.writerows(zip(*flat_columns.values(), strict=True))
    return text.getvalue().encode()


def to_cell(cell: Any) -> Any:
    """Return a cell of a text, in which lists and objects are JSON."""
    return json.dumps(cell, default=str) if isinstance(cell, list | dict) else cell


def to_json_lines(columns: Columns) -> bytes:
    """Write columns as JSON Lines."""
    encode = json.JSONEncoder(ensure_ascii=False, default=str).encode

    def to_json(cell: Any) -> str:
        if not isinstance(cell, float):
            return encode(cell)
        # JSON has no infinity, but numbers that are read as it, and no nan.
        return repr(cell).replace("inf", "1e999") if cell == cell else encode(None)

    names = [encode(name) for name in columns]
    rows = zip(*(map(to_json, column.tolist()) for column in columns.values()), strict=True)
    lines = (", ".join(map("{}: {}".format, names, row)) for row in rows)
    # Half of a surrogate pair was an escape, and becomes one again.
    return "".join(f"{{{line}}}\n" for line in lines).encode("utf-8", "backslashreplace")


def to_archive(columns: Columns) -> bytes:
    """Write columns as an archive of NumPy."""
    file = io.BytesIO()
    # Columns may have the names of arguments of `numpy.savez`.
    with zipfile.ZipFile(file, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, texts_of_objects(column), allow_pickle=False)
    return file.getvalue()


def texts_of_objects(column: NDArray[Any]) -> NDArray[Any]:
    """Return cells of several kinds as texts, empty where one is missing."""
    if column.dtype.kind != "O":
        return column
    return np.array(["" if cell is None else str(to_cell(cell)) for cell in column.tolist()])


def to_parquet(columns: Columns) -> bytes:
    """Write columns as Parquet by pyarrow."""
    import pyarrow as pa
    from pyarrow import parquet

    def to_arrow(column: NDArray[Any]) -> Any:
        try:
            return pa.array(column if column.ndim == 1 else list(column))
        except pa.ArrowException:
            return pa.array(texts_of_objects(column))

    file = io.BytesIO()
    arrays = {name: to_arrow(column) for name, column in columns.items()}
    parquet.write_table(pa.table(arrays), file)
    return file.getvalue()


WRITERS: dict[str, Callable[[Columns], bytes]] = {
    TEXT_ENDING: to_text,
    ".jsonl": to_json_lines,
    ".npz": to_archive,
    ".parquet": to_parquet,
}
