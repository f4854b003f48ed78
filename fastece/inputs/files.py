"""Reading predictions from CSV, NPZ and Parquet files.

A file is a table of named columns; what its columns are called says how to read it.
"""

import csv
import io
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.inputs.validation import check_integer

__all__ = ["Predictions", "read_predictions"]

PAIR = ("true_label", "pred_label", "confidence")
LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR)


@dataclass(frozen=True)
class Predictions:
    """What a file holds.

    Attributes
    ----------
    y_true, y_prob : arrays
        As `fastece.ece` takes them.
    label : array
        The true label of each row: `y_true`, unless that says whether the prediction is right.
    pairs : bool
        A hit and the confidence of the top label, without a class vector: a binary problem.
    classes : int or None
        Number of classes behind the top label, where it was given.
    """

    y_true: NDArray[Any]
    y_prob: NDArray[Any]
    label: NDArray[Any]
    pairs: bool = False
    classes: int | None = None


@dataclass(frozen=True)
class Table:
    """Named columns: several of them as numbers (n, m), one as it is, (n,); some of them as labels,
    each (n,)."""

    names: list[str]
    numbers: Callable[[Sequence[str]], NDArray[Any]]
    labels: Callable[[Sequence[str]], list[NDArray[Any]]]


def read_predictions(
    path: str | Path,
    *,
    y_true: str | None = None,
    y_prob: str | None = None,
    classes: int | None = None,
) -> Predictions:
    """Read a file of predictions.

    Parameters
    ----------
    path : str or Path
        CSV (by its header), NPZ, or Parquet (needs pyarrow).
    y_true, y_prob : str, optional
        Names of the columns; `y_prob` takes several, separated by commas, in class order.
    classes : int, optional
        Number of classes behind the top label of a file of labels and confidences: its scores
        then lie on [1/K, 1].

    Returns
    -------
    Predictions

    Raises
    ------
    ValueError
        For columns that are not there or not recognised, and for entries that are not numbers.
    OSError
        For a file that cannot be read.
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
    label = table.labels([y_true])[0]
    return Predictions(label, table.numbers(columns), label)


def read_pairs(table: Table, classes: int | None) -> Predictions:
    """Read true label, predicted label and confidence: a hit is that the labels are equal."""
    if classes is not None:
        check_integer("--classes", classes, 2, 2**31)
    true, predicted = table.labels(PAIR[:2])
    confidence = table.numbers(PAIR[2:])
    for name, column in zip(PAIR, (true, predicted, confidence), strict=True):
        if column.ndim != 1 or len(column) != len(true):
            raise ValueError(f"{name} has shape {column.shape}, {PAIR[0]} has {true.shape}")
        if column.dtype.kind == "f" and np.isnan(column).any():
            row = int(np.argmax(np.isnan(column)))
            raise ValueError(f"{name} of row {row + 1} is nan")
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
    names = next((row for row in csv.reader(buffer) if row), [])
    body = text[buffer.tell() :]
    names = [name.strip() for name in names]
    for number, row in numbered_rows(body):
        if len(row) != len(names):
            raise ValueError(f"row {number} has {len(row)} cells, the header has {len(names)}")

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        with warnings.catch_warnings():
            # a file without rows is refused as empty, with the other checks
            warnings.filterwarnings("ignore", message=".*input contained no data")
            matrix = np.loadtxt(
                io.StringIO(body), np.float64, delimiter=",", ndmin=2, quotechar='"',
                comments=None, usecols=[names.index(c) for c in columns],
            )  # fmt: skip
            return matrix if len(columns) > 1 else matrix[:, 0]

    def labels(columns: Sequence[str]) -> list[NDArray[Any]]:
        cells = [column_cells(body, names.index(name), name) for name in columns]
        for number in (int, float):  # numbers only if every one of them is
            with suppress(ValueError):
                return [np.array([number(cell) for cell in column]) for column in cells]
        return [np.array(column) for column in cells]

    return Table(names, numbers, labels)


def numbered_rows(body: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, from 1."""
    rows = (row for row in csv.reader(io.StringIO(body, newline="")) if row)
    return enumerate(rows, 1)


def column_cells(body: str, index: int, name: str) -> list[str]:
    """The cells of one column, none of them blank."""
    cells = [row[index].strip() for _, row in numbered_rows(body)]
    if "" in cells:
        raise ValueError(f"{name} of row {cells.index('') + 1} is blank")
    return cells


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; `y_prob` may be a matrix."""
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("is no NPZ archive")
    with archive:
        arrays = dict(archive)
    return Table(
        list(arrays),
        lambda columns: side_by_side([arrays[c] for c in columns]),
        lambda columns: [arrays[c] for c in columns],
    )


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

    return Table(table.column_names, lambda names: side_by_side(columns(names)), columns)


def side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Several columns as a matrix, one as it is."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".npz": read_npz,
    ".parquet": read_parquet,
}
# What the readers raise for a file that is not what its name says.
UNREADABLE = (
    ValueError, TypeError, EOFError, RuntimeError, csv.Error, zipfile.BadZipFile, zlib.error
)  # fmt: skip
