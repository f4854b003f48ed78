"""Predictions of a file as arrays, with the names of their columns and the places of their rows.

`read_predictions` reads a file as a whole, `iter_batches` one that does not fit in memory. Both are
made of a `Reader`.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isnan
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import check_order_of_numbers, numbers_of
from fastece.data.errors import BadArgumentError, InputError, InputWarning
from fastece.data.labels import SKIP_MISSING
from fastece.data.predicted_labels import warn_of_predicted_labels
from fastece.files.cells import (
    LABEL_FORMS,
    MISSING_RULE,
    PERCENT_KIND,
    Cells,
    Column,
    NamedColumns,
    Texts,
    as_cells,
    count_rows,
    decode_labels,
    encode_texts,
    find_missing,
    join_columns,
    read_labels,
    read_numbers,
    select_cells,
)
from fastece.files.columns import (
    PAIR_COLUMNS,
    ChosenColumns,
    ReadOptions,
    are_hits,
    choose_columns,
)
from fastece.files.formats import open_table
from fastece.files.logs import TASK_COLUMN, LogTable, is_harness, open_log, read_harness
from fastece.files.tables import Columns, JsonObjects, Table, refusing_broken

# Positions of rows in a file, from 0 on.
Positions = range | NDArray[Any]
# The name of a log, in which a task stands before the time.
LOG_NAME = re.compile(r"^(?:samples_)?(.+?)(?:_\d{4}-\d\d-\d\dT.*)?\.jsonl?(?:\.gz)?$")
# How integers are written.
INTEGER = re.compile(LABEL_FORMS[0][0])
# Rows and numbers of the largest file that is read as a whole; larger ones are streams.
MAX_WHOLE_ROWS = 10**7
MAX_WHOLE_NUMBERS = 10**8
# Percents that stand for certainty.
PERCENT = 100


@dataclass(frozen=True)
class FilePredictions:
    """Rows of a file, in the form that `fastece.ece` takes.

    Attributes
    ----------
    y_true : ndarray, (n,)
        Labels, or whether each prediction is right (`hits`).
    y_prob : ndarray or NamedColumns, (n,) or (n, K)
        Columns that the caller names keep their names.
    label : ndarray, (n,)
        The true label, which all models have in common; of hits alone True, as the answer of every
        model should be right.
    hits : bool
        Whether rows are hits and confidences of predictions, which is a binary problem.
    pairs : bool
        Whether hits are made of true and predicted labels.
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
    columns : dict
        Names of the columns of each argument.
    table : Table or None
        The file, whose other columns `read_columns` reads.
    positions : range or ndarray
        Where in the file each row is.
    """

    y_true: NDArray[Any]
    y_prob: Any
    label: NDArray[Any]
    hits: bool = False
    pairs: bool = False
    classes: int | None = None
    from_logits: bool = False
    note: str = ""
    n_unlabelled: int = 0
    n_unpredicted: int = 0
    weights: NDArray[Any] | None = None
    others: dict[str, NDArray[Any]] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    table: Table | None = None
    positions: Positions = range(0)

    @property
    def file(self) -> str:
        """Name of the file for messages."""
        return "" if self.table is None else self.table.file

    def row(self, index: int) -> str:
        """Name a row for messages, from its position among these rows."""
        return str(index) if self.table is None else self.table.row_name(int(self.positions[index]))

    def with_probabilities(self, y_prob: NDArray[Any]) -> "FilePredictions":
        """Return the same rows with other probabilities, in columns of the same names."""
        has_names = isinstance(self.y_prob, NamedColumns)
        prob = NamedColumns(y_prob, self.y_prob.columns) if has_names else y_prob
        return replace(self, y_prob=prob, from_logits=False)

    def select(self, rows: NDArray[Any]) -> "FilePredictions":
        """Return the rows at some positions, in their order."""
        return replace(
            self.with_probabilities(np.asarray(self.y_prob)[rows]),
            from_logits=self.from_logits,
            y_true=self.y_true[rows],
            label=self.label[rows],
            weights=None if self.weights is None else self.weights[rows],
            others={argument: column[rows] for argument, column in self.others.items()},
            positions=np.asarray(self.positions)[rows],
        )

    def read_columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read more columns of the file on these rows, with the cells as they are."""
        assert self.table is not None, "rows are from a file"
        if not names:
            return {}
        with refusing_broken(self.file):
            batches = list(self.table.batches(names))
        pieces = {name: [as_cells(batch[name]) for batch in batches] for name in names}
        if sum(map(len, pieces[names[0]])) <= max(self.positions):
            raise InputError("path", "changed while it was read", place=self.file)
        rows = np.asarray(self.positions)
        return {name: join_columns(columns)[rows] for name, columns in pieces.items()}

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


# --- reading --------------------------------------------------------------------------------------


def read_predictions(path: str | PathLike[str], **options: Any) -> FilePredictions:
    """Read a file of predictions as a whole.

    Parameters
    ----------
    path : str or path-like
        A file, or "-" for standard input.
    **options
        Fields of `ReadOptions`.

    Returns
    -------
    FilePredictions

    Raises
    ------
    InputError
        If a row is bad, with the place of the first one; if the file cannot be read.
    """
    predictions = read_up_to(Reader(path, **options), np.inf, np.inf)
    assert predictions is not None, "there is no limit"
    return predictions


def read_whole(path: str | PathLike[str], **options: Any) -> FilePredictions | None:
    """Read a file as `read_predictions` does, or return None if it is too large."""
    return read_up_to(Reader(path, **options), MAX_WHOLE_ROWS, MAX_WHOLE_NUMBERS)


def iter_batches(path: str | PathLike[str], **options: Any) -> Iterator[FilePredictions]:
    """Read a file in batches, of which only one is in memory.

    Labels are numbers of classes, or known by the option `labels`. Texts of other arguments stay
    texts, as it depends on all rows whether they are numbers.
    """
    reader = Reader(path, **options)
    for batch in reader.batches():
        yield reader.read_batch(batch)


def read_logs(paths: Sequence[str], **options: Any) -> FilePredictions | None:
    """Read the logs of one run, with the "task" of each row; None for other files."""
    first = open_table(paths[0])
    if not is_harness_log(first):
        return None
    tables = [first, *map(open_table, paths[1:])]
    logs = []
    for table in tables:
        if not (isinstance(table, JsonObjects) and is_harness_log(table)):
            rule = f"must be a log of lm-evaluation-harness, as {paths[0]} is"
            raise InputError("path", rule, place=table.file)
        logs.append(table)
    tasks = [LOG_NAME.sub(r"\1", os.path.basename(path)) for path in paths]
    reader = Reader(paths[0], **options, table=read_harness(logs, tasks))
    reader.chosen.others[TASK_COLUMN] = TASK_COLUMN
    return read_up_to(reader, np.inf, np.inf)


def is_harness_log(table: Table) -> bool:
    """Decide whether a table is a log of lm-evaluation-harness."""
    if not isinstance(table, JsonObjects):
        return False
    with refusing_broken(table.file):
        return any(is_harness(row) for _, row in [next(table.read_rows(), (0, {}))])


class Batch(NamedTuple):
    """The chosen columns on some rows of a file, and the positions of the rows."""

    columns: Columns
    positions: Positions

    def cut(self, start: int, stop: int) -> "Batch":
        """Return the batch of the rows from start to stop."""
        return self.select(slice(start, stop))

    def select(self, rows: Any) -> "Batch":
        """Return the batch of some rows."""
        columns = {name: select_cells(column, rows) for name, column in self.columns.items()}
        positions = self.positions if isinstance(rows, slice) else np.asarray(self.positions)
        return Batch(columns, positions[rows])


class ReadRows(NamedTuple):
    """Columns of rows as numbers or labels, and the positions of the rows."""

    columns: dict[str, Any]
    positions: Positions


class Reader:
    """Reader of one file, which finds its columns, reads its batches, and joins them.

    Parameters
    ----------
    path : str or path-like
        A file, or "-" for standard input.
    on_bad_row : callable, optional
        Takes the error of a row that cannot be read at all, and that is left out then.
    table : Table, optional
        The table that was made of several logs.
    **options
        Fields of `ReadOptions`.

    Attributes
    ----------
    table : Table
    chosen : ChosenColumns
    kinds : dict
        Kinds of the columns, by their names, that rows so far have shown.
    words : list of str
        Texts among the labels of the rows so far.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        on_bad_row: Callable[[InputError], None] | None = None,
        table: Table | None = None,
        **options: Any,
    ) -> None:
        self.path = str(path)
        self.options = ReadOptions(**options)
        self._on_bad_row = on_bad_row
        self._is_reading = False
        self._n_skipped = 0
        skip_row = None if on_bad_row is None else self._skip_row
        if table is None:
            known_names = {self.options.label, *self.options.label.split(","), PAIR_COLUMNS[0]}
            table = open_table(self.path, known_names, skip_row)
        self.table = table
        with refusing_broken(table.file):
            self.table = open_log(table, self.options.names_columns)
            self.chosen: ChosenColumns = choose_columns(self.table, self.options)
        # Labels that are numbers may be written in any way.
        (labels,) = decode_labels([encode_texts(self.options.labels)])
        self.words = list(self.options.labels) if labels.dtype.kind == "U" else []
        self.kinds: dict[str, str] = {}
        self.n_rows = 0
        # Rows without a label, and others without a prediction, which were left out.
        self.n_unlabelled = 0
        self.n_unpredicted = 0

    @property
    def note(self) -> str:
        """How the file is read, and which of its rows so far are left out."""
        counts = {"a label": self.n_unlabelled, "a prediction": self.n_unpredicted}
        missing = [
            f"{n} of {self.n_rows} rows without {lacking} are left out"
            for lacking, n in counts.items()
            if n
        ]
        return "; ".join(filter(None, [self.table.note, *missing]))

    def batches(self) -> Iterator[Batch]:
        """Yield the batches in their order, without rows that are to be dropped."""
        self.n_rows = self.n_unlabelled = self.n_unpredicted = 0
        self._is_reading = True
        names = self.chosen.names()
        try:
            with refusing_broken(self.table.file):
                for columns in self.table.batches(names, self.chosen.numbers()):
                    n_rows = count_rows(columns[names[0]])
                    batch = Batch(columns, range(self.n_rows, self.n_rows + n_rows))
                    self.n_rows += n_rows
                    complete = self._drop_missing(batch)
                    if len(complete.positions):
                        yield complete
        finally:
            self._is_reading = False
        if not (self.n_rows or self._n_skipped):
            raise InputError("path", "is empty: it has no rows", place=self.table.file)
        if self.n_rows and self.n_unlabelled + self.n_unpredicted == self.n_rows:
            rule = f"none of its {self.n_rows} rows has a label"
            rule += " and a prediction" if self.n_unpredicted else ""
            raise InputError("path", rule, place=self.table.file)

    def _skip_row(self, error: InputError) -> None:
        """Report a row that is left out; only columns are looked for before rows are read."""
        if self._is_reading and self._on_bad_row is not None:
            self._n_skipped += 1
            self._on_bad_row(error)

    def _drop_missing(self, batch: Batch) -> Batch:
        """Drop and count rows without a label or prediction, if the options have it so."""
        if not self.options.skips_missing:
            return batch
        is_unlabelled = self._find_missing(batch, self.chosen.true_labels)
        names = [*self.chosen.labels, *self.chosen.probabilities]
        is_dropped = is_unlabelled | self._find_missing(batch, names)
        self.n_unlabelled += int(is_unlabelled.sum())
        self.n_unpredicted += int((is_dropped & ~is_unlabelled).sum())
        return batch.select(np.flatnonzero(~is_dropped)) if is_dropped.any() else batch

    def _find_missing(self, batch: Batch, names: Sequence[str]) -> NDArray[np.bool_]:
        """Find the rows of a batch that lack a cell in any of some columns."""
        is_lacking = np.zeros(len(batch.positions), bool)
        for name in names:
            is_lacking |= find_missing(batch.columns[name])
        return is_lacking

    # --- rows -------------------------------------------------------------------------------------

    def read(self, batch: Batch) -> ReadRows:
        """Read the columns of a batch, which are of the kinds of the batches before it."""
        numbers = set(self.chosen.numbers())
        columns = {}
        errors = []
        for name, column in batch.columns.items():
            try:
                read = read_numbers if name in numbers else read_labels
                columns[name] = self._read_column(name, column, read)
            except InputError as error:
                errors.append(error)
        if errors:
            first = min(errors, key=lambda error: error.index[:1] if error.index else ())
            self._locate(first, batch.positions)
            raise first
        return ReadRows(columns, batch.positions)

    def _read_column(self, name: str, column: Column, read: Callable[[str, Any], Cells]) -> Any:
        """Read a column of a batch."""
        chosen = self.chosen
        is_needed = name in chosen.labels or name in chosen.probabilities
        try:
            values, kind = read(name, column)
        except InputError as error:
            if error.rule == MISSING_RULE and is_needed:
                error.hint = SKIP_MISSING
            raise
        is_probability = name in chosen.probabilities
        if is_probability and len(chosen.probabilities) > 1 and np.ndim(values) > 1:
            raise InputError(name, "must be one number", index=0, value=np.asarray(values)[0])
        self.check_kind(name, name, kind)
        is_percent = self.options.percent and not self.table.has_shares and kind != PERCENT_KIND
        return divide_percents(name, values) if is_probability and is_percent else values

    def check_kind(self, key: str, name: str, kind: str) -> None:
        """Refuse cells of another kind than those before them, which are kept by a key."""
        first_kind = self.kinds.setdefault(key, kind)
        if kind != first_kind:
            rule = f"must be {first_kind}, as in other rows, got {kind}"
            raise InputError(name, rule, index=0)

    def _locate(self, error: InputError, positions: Positions) -> None:
        """Set the place of an error whose argument is the name of a column."""
        if error.place is None and error.index is not None:
            row, *entry = error.index
            column = ".".join([error.argument, *map(str, entry)])
            row_name = self.table.row_name(int(positions[row]))
            error.place = f"{self.table.file}: {row_name}, column {column}"
        if error.index is not None:
            error.index = error.index[:1]

    def interpret(self, rows: ReadRows) -> FilePredictions:
        """Turn columns into predictions, with weights and the columns of other arguments."""
        chosen = self.chosen
        columns = rows.columns
        prob, prob_names = self._join_probabilities(columns)
        label, y_true = self._read_outcomes(rows, prob_names)
        if not (chosen.are_pairs or chosen.have_outcomes):
            (name,) = chosen.labels
            place = f"{self.table.file}: column {name}"
            warn_of_predicted_labels(name, label, np.asarray(prob), prob_names, place)
        hits = chosen.are_pairs
        if not hits and np.ndim(prob) == 1:
            is_log = isinstance(self.table, LogTable)
            hits = is_log or are_hits(chosen.labels[0], prob_names[0], y_true)
            label = np.ones(len(y_true), bool) if hits else label
        weights = chosen.others.get("sample_weight")
        others = {
            argument: decode_labels([columns[name]])[0]
            for argument, name in chosen.others.items()
            if argument != "sample_weight"
        }
        names = {argument: [name] for argument, name in chosen.others.items()}
        if not chosen.are_pairs:
            # An error about hits is about no column.
            names["y_true"] = chosen.labels
        return FilePredictions(
            y_true=y_true,
            y_prob=prob,
            label=label,
            hits=hits,
            pairs=chosen.are_pairs,
            classes=self.options.classes,
            from_logits=self.table.from_logits,
            note=self.note,
            n_unlabelled=self.n_unlabelled,
            n_unpredicted=self.n_unpredicted,
            weights=None if weights is None else np.asarray(columns[weights]),
            others=others,
            columns={**names, "y_prob": prob_names},
            table=self.table,
            positions=rows.positions,
        )

    def _join_probabilities(self, columns: Mapping[str, Any]) -> tuple[Any, list[str]]:
        """Join the columns of probabilities, with their names if these may be classes."""
        names = self.chosen.probabilities
        if len(names) == 1:
            prob = columns[names[0]]
            if isinstance(prob, NamedColumns):
                # The cells of one column are objects.
                return prob, [f"{names[0]}.{name}" for name in prob.columns]
            return prob, names
        prob = np.column_stack([np.asarray(columns[name]) for name in names])
        may_be_classes = self.chosen.are_named
        if self.chosen.have_outcomes:
            may_be_classes = numbers_of(names) is None
        return (NamedColumns(prob, names) if may_be_classes else prob), names

    def _read_outcomes(self, rows: ReadRows, prob_names: list[str]) -> tuple[Any, Any]:
        """Read the true labels, and these or whether predictions are right."""
        columns = [rows.columns[name] for name in self.chosen.labels]
        if self.chosen.have_outcomes:
            label = self._class_of_outcomes(decode_each(columns), rows, prob_names)
            return label, label
        if not self.chosen.are_pairs:
            (label,) = decode_labels(columns)
            return label, label
        true, predicted = decode_labels(columns)
        self._check_pairs(rows, true, predicted)
        return true, true == predicted

    def _class_of_outcomes(
        self, columns: list[NDArray[Any]], rows: ReadRows, prob_names: list[str]
    ) -> NDArray[Any]:
        """Find the class whose outcome is 1 in each row, and 0 in the columns of others."""
        names = self.chosen.labels
        if len(names) != len(prob_names):
            rule = f"names {len(names)} columns of outcomes, {{y_prob}} {len(prob_names)}"
            raise InputError("y_true", rule, place=self.table.file)
        check_order_of_numbers(names, prob_names, "y_prob")
        outcomes = np.column_stack(columns)
        is_bad = np.ones(len(outcomes), bool)
        if outcomes.dtype.kind in "biuf":
            is_bad = (outcomes == 1).sum(axis=1) != 1
            is_bad |= ~np.isin(outcomes, (0, 1)).all(axis=1)
        if is_bad.any():
            row = int(is_bad.argmax())
            raise InputError(
                "y_true",
                f"{', '.join(names)} must be 0 or 1, and 1 in one of them",
                value=outcomes[row].tolist(),
                place=f"{self.table.file}: {self.table.row_name(int(rows.positions[row]))}",
                rows=int(is_bad.sum()),
                hint="several yes/no questions go one by one",
            )
        label: NDArray[Any] = outcomes.argmax(axis=1)
        return label

    def _check_pairs(self, rows: ReadRows, true: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Refuse pairs of several values in a row, of missing ones, or of two kinds."""
        confidence = np.asarray(rows.columns[PAIR_COLUMNS[2]])
        for name, column in zip(PAIR_COLUMNS, (true, predicted, confidence), strict=True):
            if column.ndim != 1:
                rule = f"has shape {column.shape}, must have one value in each row"
                raise InputError(name, rule, place=f"{self.table.file}: column {name}")
            missing = np.flatnonzero(column != column)
            if missing.size:
                error = InputError(
                    name, MISSING_RULE, index=int(missing[0]), value=float("nan"), rows=missing.size
                )
                self._locate(error, rows.positions)
                raise error
        kinds = [column.dtype.kind.replace("u", "i") for column in (true, predicted)]
        if kinds[0] != kinds[1] and not set(kinds) <= {"i", "f", "b"}:
            rule = f"has dtype {predicted.dtype}, {PAIR_COLUMNS[0]} has {true.dtype}"
            place = f"{self.table.file}: column {PAIR_COLUMNS[1]}"
            raise InputError(PAIR_COLUMNS[1], rule, place=place)

    # --- streams ----------------------------------------------------------------------------------

    def read_batch(self, batch: Batch) -> FilePredictions:
        """Read a batch by itself; its labels are numbers of classes, or known."""
        if self.table.needs_all_rows:
            rule = "is a log of an evaluation, which is no stream"
            raise InputError("path", rule, place=self.table.file)
        rows = self.read(batch)
        texts = {name: x for name, x in rows.columns.items() if isinstance(x, Texts)}
        if self.chosen.are_pairs:
            predictions = self.interpret(rows)
            self._check_spelling(predictions, rows)
        else:
            predictions = self._interpret_with_words(rows)
        # The caller decides whether texts are numbers, once it knows them all.
        others = {
            argument: texts[name].strings() if name in texts else predictions.others[argument]
            for argument, name in self.chosen.others.items()
            if argument != "sample_weight"
        }
        return replace(
            predictions,
            y_true=as_unsigned(predictions.y_true),
            y_prob=np.asarray(predictions.y_prob),
            others=others,
        )

    def _interpret_with_words(self, rows: ReadRows) -> FilePredictions:
        """Turn columns into predictions, given the texts among the labels of all batches."""
        name = self.chosen.labels[0]
        label = rows.columns[name]
        if isinstance(label, Texts) and not self.chosen.have_outcomes:
            # Whether texts are numbers depends on the labels of all batches.
            self.words = list(dict.fromkeys([*label.words, *self.words]))
            known = {word: k for k, word in enumerate(self.words)}
            codes = np.array([known[word] for word in label.words])[label.codes]
            rows.columns[name] = Texts(codes, self.words)
        predictions = self.interpret(rows)
        is_text = predictions.y_true.dtype.kind in "OUST"
        if is_text and not self.options.labels:
            refuse_unknown_label(predictions)
        elif isinstance(label, Texts):
            try:
                self.check_kind(f"{name} as read", name, "a string" if is_text else "a number")
            except InputError as error:
                self._locate(error, rows.positions)
                raise
        if not self.options.labels:
            self._check_order_of_classes(predictions)
        return predictions

    def _check_spelling(self, predictions: FilePredictions, rows: ReadRows) -> None:
        """Refuse equal numbers in two spellings: with later labels they may be strings."""
        columns = [rows.columns[name] for name in PAIR_COLUMNS[:2]]
        true, predicted = (x.strings() if isinstance(x, Texts) else x for x in columns)
        bad = np.flatnonzero((true == predicted) != predictions.y_true)
        if bad.size:
            true_name, predicted_name, _ = PAIR_COLUMNS
            index = int(bad[0])
            rule = f"must be written as {true_name} is, {str(true[index])!r}, in a stream"
            error = InputError(
                predicted_name, rule, index=index, value=predicted[index], rows=bad.size
            )
            self._locate(error, rows.positions)
            raise error

    def _check_order_of_classes(self, predictions: FilePredictions) -> None:
        """Refuse columns of a stream that are numbered in another order than classes."""
        names = getattr(predictions.y_prob, "columns", [])
        numbers = numbers_of(names) if names else None
        if numbers is not None and numbers != list(range(len(numbers))):
            rule = f"columns {names!r:.200} must be numbered from 0 on, in their order, in a stream"
            hint = "pass {labels}, in the order of the columns"
            raise InputError("path", rule, place=self.table.file, hint=hint)


def divide_percents(name: str, values: Any) -> Any:
    """Divide percents by 100, and refuse other numbers."""
    numbers = np.asarray(values)
    is_outside = ~((numbers >= 0) & (numbers <= PERCENT))
    if is_outside.any():
        bad = np.argwhere(is_outside)
        first = tuple(map(int, bad[0]))
        n_rows = len(set(bad[:, 0].tolist()))
        rule = f"must be a number from 0 to {PERCENT}"
        raise InputError(name, rule, index=first[0], value=numbers[first], rows=n_rows)
    shares = numbers / PERCENT
    return NamedColumns(shares, values.columns) if isinstance(values, NamedColumns) else shares


def decode_each(columns: Sequence[Any]) -> list[NDArray[Any]]:
    """Decode columns of texts, each by itself."""
    return [decode_labels([column])[0] for column in columns]


def refuse_unknown_label(predictions: FilePredictions) -> None:
    """Raise the error of the first label that is no number of a class."""
    are_numbers = [bool(INTEGER.fullmatch(str(x))) for x in predictions.y_true.tolist()]
    # A text that is a number is no class where another label is a text.
    index = 0 if all(are_numbers) else are_numbers.index(False)
    rule = (
        "must be the number of a class, as which column another label stands for is not known "
        "before all rows are read"
    )
    hint = "pass {labels}, in the order of the classes"
    error = InputError("y_true", rule, index=index, value=predictions.y_true[index], hint=hint)
    predictions.locate(error)
    raise error


def as_unsigned(labels: NDArray[Any]) -> NDArray[Any]:
    """View labels of one byte as unsigned, which kernels are compiled for."""
    if labels.dtype == np.int8 and labels.min(initial=0) >= 0:
        return labels.view(np.uint8)
    return labels


# --- whole files ----------------------------------------------------------------------------------


def read_up_to(reader: Reader, max_rows: float, max_numbers: float) -> FilePredictions | None:
    """Read all rows of a file, or return None if it has too many rows or numbers."""
    pieces: list[ReadRows] = []
    n_numbers = 0
    for batch in reader.batches():
        piece = reader.read(batch)
        pieces.append(piece)
        n_numbers += sum(np.size(piece.columns[name]) for name in reader.chosen.numbers())
        if reader.n_rows > max_rows or n_numbers > max_numbers:
            return None
    # Pieces are dropped column by column, so that memory holds only one column twice.
    columns = {
        name: join_columns([piece.columns.pop(name) for piece in pieces])
        for name in reader.chosen.names()
    }
    release_memory()
    positions = join_positions([piece.positions for piece in pieces])
    return reader.interpret(ReadRows(columns, positions))


def join_positions(pieces: Sequence[Positions]) -> Positions:
    """Join positions of the rows of batches, as a range if there are no gaps."""
    start = int(pieces[0][0])
    stop = int(pieces[-1][-1]) + 1
    if stop - start == sum(map(len, pieces)):
        return range(start, stop)
    return np.concatenate([np.asarray(piece) for piece in pieces])


def release_memory() -> None:
    """Give back the memory that pyarrow keeps to read more.

    After a file it is nearly twice as large as the arrays that were read.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()
