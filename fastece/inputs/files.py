"""Reading predictions from CSV, NPZ and Parquet files.

A file is a table of named columns; what its columns are called says how to read it.
"""

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.inputs.arrays import refuse_where
from fastece.inputs.parameters import check_integer

PAIR = ("true_label", "pred_label", "confidence")
# How labels that are no strings are written, and how they are read; 007, 1_1 and +1 are strings.
LABELS: list[tuple[str, Callable[[str], Any]]] = [
    (r"-?(0|[1-9]\d*)", int),
    (r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", float),
    (r"[Tt]rue|[Ff]alse", lambda cell: cell.lower() == "true"),
]
# What numpy reads as a number, without nan.
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)
Columns = Callable[[Sequence[str]], list[NDArray[Any]]]
LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR)


@dataclass(frozen=True)
class Predictions:
    """What a file holds, as `fastece.ece` takes it."""

    y_true: NDArray[Any]
    y_prob: Any  # columns that the caller names keep their names
    label: NDArray[Any]  # the true one: `y_true`, unless that says whether the prediction is right
    pairs: bool = False  # hits and confidences of the top label, no class vectors: a binary problem
    classes: int | None = None  # behind the top label, where the caller says how many


@dataclass(frozen=True)
class NamedColumns:
    """A matrix (n, K) whose columns have names, as those of a data frame."""

    array: NDArray[Any]
    columns: list[str]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.array, dtype, copy=copy)


@dataclass(frozen=True)
class Table:
    """Named columns."""

    names: list[str]
    numbers: Callable[[Sequence[str]], NDArray[Any]]  # several as a matrix (n, m), one as it is
    labels: Columns  # each (n,)


def read_predictions(
    path: str | Path,
    *,
    y_true: str | None = None,
    y_prob: str | None = None,
    classes: int | None = None,
) -> Predictions:
    """Read a file of predictions: CSV (by its header), NPZ, or Parquet (needs pyarrow).

    `y_true` and `y_prob` name the columns, `y_prob` several, separated by commas: in class order,
    or named as the classes are. `classes` is the number of classes behind the top label of a file
    of labels and confidences: its scores then lie on [1/K, 1].
    """
    path = Path(path)
    try:
        table = READERS.get(path.suffix.lower(), read_csv)(path)
        twice = {name for name in table.names if table.names.count(name) > 1}
        if twice:
            raise ValueError(f"two columns are named {min(twice)!r}")
        named = y_true is not None or y_prob is not None
        if not named and all(name in table.names for name in PAIR):
            return read_pairs(table, classes)
        if classes is not None:
            raise ValueError(f"--classes goes with the columns {','.join(PAIR)} only")
        return read_columns(table, y_true or "y_true", y_prob)
    except UNREADABLE as error:
        raise ValueError(f"{path.name}: {error}") from error


def read_columns(table: Table, y_true: str, y_prob: str | None) -> Predictions:
    """Read a column of labels and one or several of probabilities."""
    columns = y_prob.split(",") if y_prob else probability_columns(table)
    for name in (y_true, *columns):
        if name not in table.names:
            more = ", ..." if len(table.names) > 8 else ""
            raise ValueError(
                f"no column {name!r}, it has {', '.join(table.names[:8]) or 'none'}{more}; "
                f"expected {LAYOUTS}, or columns named with --y-true and --y-prob"
            )
    label, prob = table.labels([y_true])[0], table.numbers(columns)
    named = NamedColumns(prob, columns) if y_prob and len(columns) > 1 else prob
    return Predictions(label, named, label)


def read_pairs(table: Table, classes: int | None) -> Predictions:
    """Read true label, predicted label and confidence: a hit is that the labels are equal."""
    if classes is not None:
        check_integer("--classes", classes, 2, 2**31)
    true, predicted = table.labels(PAIR[:2])
    confidence = table.numbers(PAIR[2:])
    for name, column in zip(PAIR, (true, predicted, confidence), strict=True):
        if column.ndim != 1 or len(column) != len(true):
            raise ValueError(f"{name} has shape {column.shape}, {PAIR[0]} has {true.shape}")
        if column.dtype.kind == "f":
            refuse_where(name, "must not be missing", column, np.isnan)
    kinds = [column.dtype.kind.replace("u", "i") for column in (true, predicted)]
    if kinds[0] != kinds[1] and not {*kinds} <= {"i", "f", "b"}:
        raise ValueError(f"{PAIR[0]} has dtype {true.dtype}, {PAIR[1]} {predicted.dtype}")
    return Predictions(true == predicted, confidence, true, True, classes)


def probability_columns(table: Table) -> list[str]:
    """Columns y_prob, or p_0, p_1 and so on up to the last that is there."""
    numbers = [int(n[2:]) for n in table.names if n.startswith("p_") and n[2:].isdecimal()]
    if "y_prob" in table.names or not numbers:
        return ["y_prob"]
    if max(numbers) == 0:
        raise ValueError("p_0 is the only probability; name P(positive) y_prob, or add p_1")
    return [f"p_{k}" for k in range(max(numbers) + 1)]


def read_csv(path: Path) -> Table:
    """Read a CSV file with a header."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        text = file.read()
    buffer = io.StringIO(text, newline="")
    reader = csv.reader(buffer)
    names = [name.strip() for name in next(filter(None, reader), [])]
    body, header_lines = text[buffer.tell() :], reader.line_num
    for line, row in csv_rows(body, header_lines):
        if len(row) != len(names):
            raise ValueError(f"line {line}: has {len(row)} cells, the header has {len(names)}")

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        if not body.strip():
            raise ValueError("is empty: it has no rows")
        places = [names.index(name) for name in columns]
        with suppress(ValueError):
            matrix = np.loadtxt(
                io.StringIO(body), np.float64, delimiter=",", ndmin=2, quotechar='"',
                comments=None, usecols=places,
            )  # fmt: skip
            if not np.isnan(matrix).any():
                return matrix if len(columns) > 1 else matrix[:, 0]
        for line, row in csv_rows(body, header_lines):
            for name, place in zip(columns, places, strict=True):
                if not NUMBER.fullmatch(row[place].strip()):
                    raise ValueError(f"line {line}: {name} is {row[place].strip()!r}, no number")
        raise ValueError(f"{columns[0]}: cannot be read as numbers")

    def labels(columns: Sequence[str]) -> list[NDArray[Any]]:
        cells: list[list[str]] = [[] for _ in columns]
        for line, row in csv_rows(body, header_lines):
            for name, column in zip(columns, cells, strict=True):
                column.append(row[names.index(name)].strip())
                if column[-1] in ("", "nan", "NaN"):
                    raise ValueError(f"line {line}: {name} is {column[-1] or 'blank'}")
        return label_arrays(cells)

    return Table(names, numbers, labels)


def csv_rows(body: str, lines_before: int) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the line of the file on which each ends."""
    reader = csv.reader(io.StringIO(body, newline=""))
    return ((lines_before + reader.line_num, row) for row in reader if row)


def label_arrays(columns: list[list[str]]) -> list[NDArray[Any]]:
    """Columns of cells as numbers or bools, if all are written so, and no two of a column that
    differ would be one, as 1.1 and 1.10; else as strings."""
    distinct = [set(cells) for cells in columns]
    for form, read in LABELS:
        is_form = re.compile(form, re.ASCII).fullmatch
        if all(all(map(is_form, x)) and len(set(map(read, x))) == len(x) for x in distinct):
            return [np.array([read(cell) for cell in cells]) for cells in columns]
    return [np.array(cells) for cells in columns]


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; `y_prob` may be a matrix."""
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("is no NPZ archive")
    with archive:
        arrays = dict(archive)
    return array_table(list(arrays), lambda names: [arrays[name] for name in names])


def read_parquet(path: Path) -> Table:
    """Read an Apache Parquet file."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError("Parquet needs pyarrow: pip install pyarrow") from error
    with open(path, "rb") as file:
        table = parquet.read_table(file)

    def columns(names: Sequence[str]) -> list[NDArray[Any]]:
        for name in names:
            if table.column(name).null_count:
                raise ValueError(f"column {name!r} has missing values")
        return [table.column(name).to_numpy() for name in names]

    return array_table(table.column_names, columns)


def array_table(names: list[str], columns: Columns) -> Table:
    """A table of arrays, several of which are a matrix."""

    def numbers(names: Sequence[str]) -> NDArray[Any]:
        found = columns(names)
        return found[0] if len(found) == 1 else np.column_stack(found)

    return Table(names, numbers, columns)


READERS = {".csv": read_csv, ".npz": read_npz, ".parquet": read_parquet}
# What the readers raise for a file that is not what its name says.
UNREADABLE = (
    ValueError, TypeError, EOFError, RuntimeError, csv.Error, zipfile.BadZipFile, zlib.error
)  # fmt: skip
