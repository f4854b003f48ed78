"""Reading predictions from CSV, NPZ and Parquet files.

A file is a table of named columns; what its columns are called says how to read it.
"""

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.validation import check_integer

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
    pairs : bool
        A hit and the confidence of the top label, without a class vector: a binary problem.
    classes : int or None
        Number of classes behind the top label, where it was given.
    """

    y_true: NDArray[Any]
    y_prob: NDArray[Any]
    pairs: bool = False
    classes: int | None = None


@dataclass(frozen=True)
class Table:
    """Column names, and how to read some of them as numbers (n, m) or one as labels (n,)."""

    names: list[str]
    numbers: Callable[[Sequence[str]], NDArray[Any]]
    labels: Callable[[str], NDArray[Any]]


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
    table = READERS.get(path.suffix.lower(), read_csv)(path)
    named = y_true is not None or y_prob is not None
    if not named and all(name in table.names for name in PAIR):
        return read_pairs(table, classes)
    if classes is not None:
        raise ValueError(f"--classes: goes with the columns {','.join(PAIR)} only")
    columns = [y_true or "y_true", *(y_prob.split(",") if y_prob else probability_columns(table))]
    missing = [name for name in columns if name not in table.names]
    if missing:
        raise ValueError(
            f"{path.name}: no column {missing[0]!r}, it has {', '.join(table.names[:8])}"
            f"{', ...' if len(table.names) > 8 else ''}; expected {LAYOUTS}, or columns named "
            "with --y-true and --y-prob"
        )
    probabilities = table.numbers(columns[1:])
    if probabilities.ndim == 2 and probabilities.shape[1] == 1:
        probabilities = probabilities[:, 0]
    return Predictions(table.labels(columns[0]), probabilities)


def read_pairs(table: Table, classes: int | None) -> Predictions:
    """Read true label, predicted label and confidence: a hit is that the labels are equal."""
    true, predicted, confidence = PAIR
    if classes is not None:
        check_integer("--classes", classes, 2, 2**31)
    hit = table.labels(true) == table.labels(predicted)
    return Predictions(hit, table.numbers([confidence])[:, 0], True, classes)


def probability_columns(table: Table) -> list[str]:
    """Columns y_prob, or p_0, p_1 and so on up to the last that is there."""
    numbers = [int(n[2:]) for n in table.names if n.startswith("p_") and n[2:].isdecimal()]
    if "y_prob" in table.names or not numbers:
        return ["y_prob"]
    return [f"p_{k}" for k in range(max(numbers) + 1)]


def read_csv(path: Path) -> Table:
    """Read a CSV file with a header."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        names = [name.strip() for name in next(csv.reader(file), [])]

    def load(columns: Sequence[str], dtype: Any) -> NDArray[Any]:
        with warnings.catch_warnings():
            # a file without rows is refused as empty, with the other checks
            warnings.filterwarnings("ignore", message=".*input contained no data")
            try:
                return np.loadtxt(
                    path, dtype, delimiter=",", skiprows=1, ndmin=2, quotechar='"', comments=None,
                    encoding="utf-8-sig", usecols=[names.index(c) for c in columns],
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{path.name}: {error}".replace("\n", " ")) from error

    return Table(
        names, lambda columns: load(columns, np.float64), lambda c: numeric(load([c], str)[:, 0])
    )


def numeric(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as numbers where every one is a number, else as they are."""
    try:
        return labels.astype(np.float64)
    except ValueError:
        return np.char.strip(labels)


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; `y_prob` may be a matrix."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path.name}: {error}") from error

    def numbers(columns: Sequence[str]) -> NDArray[Any]:
        return arrays[columns[0]] if len(columns) == 1 else stack([arrays[c] for c in columns])

    return Table(list(arrays), numbers, arrays.__getitem__)


def read_parquet(path: Path) -> Table:
    """Read an Apache Parquet file."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(f"{path.name}: Parquet needs pyarrow: pip install pyarrow") from error
    table = parquet.read_table(path)

    def column(name: str) -> NDArray[Any]:
        array: NDArray[Any] = table.column(name).to_numpy()
        return array

    return Table(table.column_names, lambda columns: stack([column(c) for c in columns]), column)


def stack(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of equal length as a matrix."""
    return np.column_stack(columns)


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".npz": read_npz,
    ".parquet": read_parquet,
}
