"""Predictions as they were read from a file, with what messages and written files need of it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import BadArgumentError, InputWarning
from fastece.data.labels import SKIP_MISSING
from fastece.files.cells import NamedColumns


@dataclass(frozen=True)
class FilePredictions:
    """Rows of a file, in the form that `fastece.ece` takes.

    Attributes
    ----------
    y_true : ndarray, (n,)
        Labels, or whether each prediction is right (`pairs`).
    y_prob : ndarray or NamedColumns, (n,) or (n, K)
        Columns that the caller names keep their names.
    label : ndarray, (n,)
        The true label, also where `y_true` shows whether the prediction is right.
    pairs : bool
        Whether rows are hits and confidences of the top label, which is a binary problem.
    classes : int or None
        Number of classes behind the top label, where the caller knows it.
    from_logits : bool
        Whether the format implies that `y_prob` holds logits.
    note : str
        How the file is read, where its columns do not show it.
    n_unlabelled, n_unpredicted : int
        How many rows had no label, and how many others no prediction, and were left out.
    weights : ndarray or None
    others : dict
        More columns, by the arguments of the caller that they are for.
    file : str
        Name of the file for messages.
    row : callable
        Name of a row for messages, from its position.
    columns : dict
        Names of the columns of each argument.
    cells : dict
        Columns that were read and are written beside recalibrated probabilities, by their names.
    kept : dict
        Other columns of the file as they are, by their names.
    names : list of str
        Names of all columns of the file, in its order.
    """

    y_true: NDArray[Any]
    y_prob: Any
    label: NDArray[Any]
    pairs: bool = False
    classes: int | None = None
    from_logits: bool = False
    note: str = ""
    n_unlabelled: int = 0
    n_unpredicted: int = 0
    weights: NDArray[Any] | None = None
    others: dict[str, NDArray[Any]] = field(default_factory=dict)
    file: str = ""
    row: Callable[[int], str] = str
    columns: dict[str, list[str]] = field(default_factory=dict)
    cells: dict[str, NDArray[Any]] = field(default_factory=dict)
    kept: dict[str, NDArray[Any]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def with_probabilities(self, y_prob: NDArray[Any]) -> "FilePredictions":
        """Return the same rows with other probabilities, in columns of the same names."""
        has_names = isinstance(self.y_prob, NamedColumns)
        prob = NamedColumns(y_prob, self.y_prob.columns) if has_names else y_prob
        return replace(self, y_prob=prob, from_logits=False)

    def select(self, rows: NDArray[Any]) -> "FilePredictions":
        """Return the rows at some positions, in their order."""
        prob = np.asarray(self.y_prob)[rows]
        has_names = isinstance(self.y_prob, NamedColumns)
        row = self.row

        def row_at(position: int) -> str:
            return row(int(rows[position]))

        return replace(
            self,
            y_true=self.y_true[rows],
            y_prob=NamedColumns(prob, self.y_prob.columns) if has_names else prob,
            label=self.label[rows],
            weights=None if self.weights is None else self.weights[rows],
            others={argument: column[rows] for argument, column in self.others.items()},
            cells={name: column[rows] for name, column in self.cells.items()},
            kept={name: column[rows] for name, column in self.kept.items()},
            row=row_at,
        )

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the place in the file to errors and warnings of the block."""
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            try:
                yield
            except BadArgumentError as error:
                self.locate(error)
                raise
        for caught in caught_warnings:
            if isinstance(caught.message, InputWarning):
                self.locate(caught.message)
            warnings.warn(caught.message, stacklevel=3)

    def locate(self, error: BadArgumentError) -> None:
        """Set the place in the file of an error about these rows, unless it has one."""
        is_number = isinstance(error.value, float | np.floating)
        if error.argument == "y_prob" and is_number and isnan(error.value):
            error.hint = SKIP_MISSING
        is_about_data = error.argument in ("y_true", "y_prob", "sample_weight")
        is_about_cell = error.index is not None and error.argument in self.columns
        if error.place is not None or not (is_about_data or is_about_cell):
            return
        if error.index is None:
            error.place = f"{self.file}: from {self.row(0)} on: {error.argument}"
            return
        names = self.columns.get(error.argument, [error.argument])
        column = names[0]
        if len(error.index) > 1:
            k = error.index[1]
            # One column may hold a matrix.
            column = names[k] if len(names) > 1 else f"{column}[:, {k}]"
        error.place = f"{self.file}: {self.row(error.index[0])}, column {column}"
