"""Predictions read from files: a file as a whole, its batches, or several logs.

Begin with `Reader`: it reads batches by a format, chooses a layout by their header, and turns them
into `FilePredictions`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import numbers_of
from fastece.data.errors import BadArgumentError, InputError
from fastece.data.labels import SKIP_MISSING
from fastece.files.arrow import release_memory
from fastece.files.batches import Batch, ChosenColumns, Header, Places, read_columns
from fastece.files.cells import (
    LABEL_FORMS,
    NamedColumns,
    NumberColumn,
    Texts,
    as_cells,
    decode_labels,
    encode_texts,
    find_missing,
    first_cell,
    has_percent_sign,
    join_columns,
)
from fastece.files.class_columns import column_kind, read_first_columns
from fastece.files.evaluations import ATTEMPT, PAIR_COLUMNS
from fastece.files.evidence import MAX_COLUMNS, describe_evidence
from fastece.files.file_predictions import FilePredictions
from fastece.files.formats import read_batches
from fastece.files.layouts import (
    ColumnOptions,
    Layout,
    LogLayout,
    NoColumnError,
    ReadRows,
    check_names,
    choose_layout,
    names_to_keep,
    read_questions,
)

# The name of a log, in which a task stands before the time.
LOG_NAME = re.compile(r"^(?:samples_)?(.+?)(?:_\d{4}-\d\d-\d\dT.*)?\.jsonl?(?:\.gz)?$")
# How integers are written.
INTEGER = re.compile(LABEL_FORMS[0][0])
# The rule that a cell without a value breaks.
MUST_BE_THERE = "must not be missing"
# Rows and numbers of the largest file that is read as a whole; larger ones are streams.
MAX_WHOLE_ROWS = 10**7
MAX_WHOLE_NUMBERS = 10**8


class SeenRows(NamedTuple):
    """Facts that good rows have shown, and that later rows have to agree with.

    Attributes
    ----------
    kinds : dict
        Kind of the cells of each column, in words for messages.
    words : list of str
        Strings among the labels.
    first_row : dict
        Cells of the first row by column.
    """

    kinds: dict[str, str]
    words: list[str]
    first_row: dict[str, Any]


class Reader:
    """Reader of one file of predictions, whose columns it chooses by their names.

    Parameters
    ----------
    path : str
        A file, or "-" for standard input.
    **options
        Fields of `ColumnOptions`.

    Attributes
    ----------
    layout : Layout or None
        The layout of the file, once its header is read.
    seen : SeenRows
        Facts that the rows so far have shown.
    """

    def __init__(self, path: str, **options: Any) -> None:
        self.path = path
        self.options = ColumnOptions(**options)
        self.layout: Layout | None = None
        self.chosen = ChosenColumns([], [])
        # The names of all columns, once the header is read.
        self.names: list[str] = []
        # Columns of other arguments than labels, probabilities and weights, by these arguments.
        self.columns_of_others: dict[str, str] = dict(self.options.columns)
        labels = list(self.options.labels)
        (decoded,) = decode_labels([encode_texts(labels)])
        has_texts = decoded.dtype.kind == "U"
        # Labels that are numbers may be written in any way.
        self.seen = SeenRows({}, labels if has_texts else [], {})
        # Rows without a label, and others without a prediction, which were left out; and all rows.
        self.n_unlabelled = 0
        self.n_unpredicted = 0
        self.n_rows = 0
        self.note_of_log = ""

    def batches(self) -> Iterator[Batch]:
        """Yield the unread batches in their order, without rows that are to be dropped."""
        header_names = (self.options.label, *self.options.label.split(","), PAIR_COLUMNS[0])
        try:
            for batch in read_batches(self.path, self.choose, header_names):
                complete = self.drop_missing(batch)
                if len(complete.places):
                    yield complete
            if self.n_rows and self.n_unlabelled + self.n_unpredicted == self.n_rows:
                rule = f"none of its {self.n_rows} rows has a label"
                rule += " and a prediction" if self.n_unpredicted else ""
                raise InputError("path", rule, place=batch.file)
        except NoColumnError as error:
            if error.argument in ("y_true", "y_prob"):
                names = error.distinct_names[:MAX_COLUMNS]
                columns = read_first_columns(self.path, names, header_names)
                evidence = describe_evidence(columns, self.options.label)
                error.show({name: column_kind(x) for name, x in columns.items()}, evidence)
            raise

    def drop_missing(self, batch: Batch) -> Batch:
        """Drop and count rows without a label or prediction, if the options have it so."""
        layout = self.require_layout()
        if not self.options.skips_missing or not layout.label_columns:
            return batch
        is_unlabelled = find_missing_cells(batch, layout.true_columns)
        names = [*layout.label_columns, *layout.probability_columns]
        is_dropped = is_unlabelled | find_missing_cells(batch, names)
        self.n_rows += len(batch.places)
        self.n_unlabelled += int(is_unlabelled.sum())
        self.n_unpredicted += int((is_dropped & ~is_unlabelled).sum())
        return batch.select(np.flatnonzero(~is_dropped)) if is_dropped.any() else batch

    @property
    def note_of_missing(self) -> str:
        """The numbers of rows that were left out as they lack something, or nothing."""
        counts = {"a label": self.n_unlabelled, "a prediction": self.n_unpredicted}
        return "; ".join(
            f"{n} of {self.n_rows} rows without {lacking} are left out"
            for lacking, n in counts.items()
            if n
        )

    @property
    def note(self) -> str:
        """How the file is read, as far as it was read, and which of its rows are left out."""
        return "; ".join(filter(None, [self.note_of_log, self.note_of_missing]))

    def choose(self, header: Header) -> ChosenColumns:
        """Choose the layout of the file, and with it the columns of labels and of numbers."""
        if header.group_column:
            self.columns_of_others = {"groups": header.group_column, **self.options.columns}
        self.note_of_log = header.note
        layout = choose_layout(self.path, header, self.options)
        self.layout = layout
        labels = list(layout.label_columns)
        probabilities = list(layout.probability_columns)
        weights = [] if self.options.weights is None else [self.options.weights]
        check_names(header, "y_true", labels)
        check_names(header, "y_prob", probabilities)
        check_names(header, "weights", weights)
        for argument, name in self.columns_of_others.items():
            check_names(header, argument, [name])
        labels += self.columns_of_others.values()
        numbers = [*probabilities, *weights]
        kept: list[str] = []
        is_table = bool(layout.label_columns) and header.unit != ATTEMPT
        if is_table or self.options.kept is not None:
            kept = names_to_keep(header, {*labels, *numbers}, self.options.kept)
        self.names = list(header.names)
        self.chosen = ChosenColumns(list(dict.fromkeys(labels)), list(dict.fromkeys(numbers)), kept)
        return self.chosen

    def read(self, batch: Batch) -> ReadRows:
        """Read the columns of a batch, which are of the kind of the batches before it."""
        layout = self.require_layout()
        try:
            labels, numbers = read_columns(batch, self.chosen, self.seen.first_row)
        except InputError as error:
            names = [*layout.label_columns, *layout.probability_columns]
            if error.rule == MUST_BE_THERE and error.argument in names:
                error.hint = SKIP_MISSING
            raise
        probabilities = layout.probability_columns
        for name, column in {**numbers, **labels}.items():
            kind = "no string" if name in labels else "a number"
            has_sign = name in numbers and has_percent_sign(first_cell(batch.columns[name]))
            if has_sign:
                kind = "a number with a sign %"
            elif name in probabilities and not batch.header.has_shares:
                numbers[name] = self.read_shares(batch, name, numbers[name])
            if name in probabilities and len(probabilities) > 1:
                # One of several columns of probabilities must not hold lists.
                self.remember_kind(name, kind)
            if isinstance(column, Texts):
                kind = "a string"
            elif np.ndim(column) > 1:
                kind = f"{np.shape(column)[1]} numbers"
            self.check_kind(batch, name, kind)
        if not self.seen.first_row:
            first_row = {name: first_cell(column) for name, column in batch.columns.items()}
            self.seen = self.seen._replace(first_row=first_row)
        kept_names = [name for name in self.chosen.kept if name in batch.columns]
        kept = {name: as_cells(batch.columns[name]) for name in kept_names}
        return ReadRows(replace(batch, columns={}), labels, numbers, kept)

    def read_shares(self, batch: Batch, name: str, column: NumberColumn) -> NumberColumn:
        """Divide probabilities by 100 if they are percents."""
        if not self.options.percent:
            return column
        numbers = np.asarray(column)
        is_outside = ~((numbers >= 0) & (numbers <= 100))
        if is_outside.any():
            bad = np.argwhere(is_outside)
            rule = "must be a number from 0 to 100"
            raise InputError(
                name,
                rule,
                value=numbers[tuple(bad[0])],
                place=batch.cell_place(int(bad[0][0]), name),
                rows=len(set(bad[:, 0].tolist())),
            )
        shares = numbers / 100
        return NamedColumns(shares, column.columns) if isinstance(column, NamedColumns) else shares

    def require_layout(self) -> Layout:
        """Return the layout, which is known once the header is read."""
        assert self.layout is not None, "the header comes before the rows"
        return self.layout

    def remember_kind(self, key: str, kind: str) -> str:
        """Return the kind of the first rows under a key, which is this one for new keys."""
        kinds = {key: kind, **self.seen.kinds}
        self.seen = self.seen._replace(kinds=kinds)
        return kinds[key]

    def check_kind(self, batch: Batch, name: str, kind: str, aspect: str = "") -> None:
        """Refuse a batch whose cells are of another kind than the cells before them."""
        first_kind = self.remember_kind(f"{name}{aspect}", kind)
        if kind != first_kind:
            rule = f"must be {first_kind}, as in other rows, got {kind}"
            raise InputError(name, rule, place=batch.cell_place(0, name))

    def interpret(self, rows: ReadRows) -> FilePredictions:
        """Turn columns into predictions, with weights and the columns of other arguments."""
        predictions = self.require_layout().interpret(rows)
        others = {
            argument: decode_labels([rows.labels[name]])[0]
            for argument, name in self.columns_of_others.items()
        }
        column_of = dict(self.columns_of_others)
        arrays = dict(others)
        weights = None
        if self.options.weights is not None:
            weights = np.asarray(rows.numbers[self.options.weights])
            column_of["sample_weight"] = self.options.weights
            arrays["sample_weight"] = weights
        columns = {argument: [name] for argument, name in column_of.items()}
        cells = {column_of[argument]: array for argument, array in arrays.items()}
        notes = [predictions.note, self.note_of_missing]
        return replace(
            predictions,
            note="; ".join(filter(None, notes)),
            n_unlabelled=self.n_unlabelled,
            n_unpredicted=self.n_unpredicted,
            row=rows.batch.row_name,
            file=rows.batch.file,
            weights=weights,
            others=others,
            columns={**predictions.columns, **columns},
            cells={**predictions.cells, **cells},
            kept=rows.kept,
            names=self.names,
        )

    def read_batch(self, batch: Batch) -> FilePredictions:
        """Read a batch by itself; its labels are numbers of classes, or known."""
        if isinstance(self.layout, LogLayout) or batch.header.group_column:
            rule = "is a log of an evaluation, which is no stream"
            raise InputError("path", rule, place=batch.file)
        rows = self.read(batch)
        label = rows.labels.get(self.options.label)
        if isinstance(label, Texts):
            # Whether strings are numbers depends on the labels of all batches.
            words = list(dict.fromkeys([*label.words, *self.seen.words]))
            self.seen = self.seen._replace(words=words)
            rows.labels[self.options.label] = Texts(label.codes, words)
        predictions = self.interpret(rows)
        strings = {
            name: column.strings()
            for name, column in rows.labels.items()
            if isinstance(column, Texts)
        }
        if predictions.pairs:
            true, predicted = (strings.get(x, predictions.cells[x]) for x in PAIR_COLUMNS[:2])
            check_spelling(batch, predictions, true, predicted)
        elif predictions.label.dtype.kind in "OUST" and not self.options.labels:
            refuse_unknown_label(predictions)
        elif isinstance(label, Texts):
            kind = "a string" if predictions.label.dtype.kind == "U" else "a number"
            self.check_kind(batch, self.options.label, kind, " as it is written")
        if not self.options.labels:
            check_order_of_classes(batch, predictions)
        # The caller decides whether strings are numbers, once it knows them all.
        others = {
            argument: strings.get(self.columns_of_others[argument], array)
            for argument, array in predictions.others.items()
        }
        return replace(
            predictions,
            y_true=as_unsigned(predictions.y_true),
            y_prob=np.asarray(predictions.y_prob),
            others=others,
        )


def find_missing_cells(batch: Batch, names: Sequence[str]) -> NDArray[np.bool_]:
    """Find the rows of a batch that lack a cell in any of some columns."""
    is_lacking = np.zeros(len(batch.places), bool)
    for name in names:
        is_lacking |= find_missing(batch.columns[name])
    return is_lacking


# --- labels of a stream ---------------------------------------------------------------------------


def check_spelling(
    batch: Batch, predictions: FilePredictions, true: NDArray[Any], predicted: NDArray[Any]
) -> None:
    """Refuse equal numbers in two spellings: with later labels they may be strings."""
    bad = np.flatnonzero((true == predicted) != predictions.y_true)
    if bad.size:
        true_name, predicted_name, _ = PAIR_COLUMNS
        index = int(bad[0])
        raise InputError(
            predicted_name,
            f"must be written as {true_name} is, {true[index]!r}, in a stream",
            value=predicted[index],
            place=batch.cell_place(index, predicted_name),
            rows=bad.size,
        )


def refuse_unknown_label(predictions: FilePredictions) -> None:
    """Raise the error of the first label that is no number of a class."""
    are_numbers = [bool(INTEGER.fullmatch(str(x))) for x in predictions.label.tolist()]
    # A text that is a number is no class where another label is a text.
    index = 0 if all(are_numbers) else are_numbers.index(False)
    rule = (
        "must be the number of a class, as which column another label stands for is not known "
        "before all rows are read"
    )
    hint = "pass {labels}, in the order of the classes"
    error = InputError("y_true", rule, index=index, value=predictions.label[index], hint=hint)
    predictions.locate(error)
    raise error


def check_order_of_classes(batch: Batch, predictions: FilePredictions) -> None:
    """Refuse columns of a stream that are numbered in another order than classes."""
    names = getattr(predictions.y_prob, "columns", [])
    numbers = numbers_of(names) if names else None
    if numbers is not None and numbers != list(range(len(numbers))):
        rule = f"columns {names!r:.200} must be numbered from 0 on, in their order, in a stream"
        hint = "pass {labels}, in the order of the columns"
        raise InputError("path", rule, place=batch.file, hint=hint)


def as_unsigned(labels: NDArray[Any]) -> NDArray[Any]:
    """View labels of one byte as unsigned, which kernels are compiled for."""
    if labels.dtype == np.int8 and labels.min(initial=0) >= 0:
        return labels.view(np.uint8)
    return labels


# --- whole files ----------------------------------------------------------------------------------


def read_predictions(path: str | PathLike[str], **options: Any) -> FilePredictions:
    """Read a file of predictions as a whole.

    Text with a header, JSON Lines, NPY, NPZ and Parquet (by pyarrow) are tables of named columns;
    logs of evaluations are known by their keys. Files that gzip has packed are unpacked.

    Parameters
    ----------
    path : str or path-like
        A file, or "-" for standard input.
    **options
        Fields of `ColumnOptions`.

    Returns
    -------
    FilePredictions

    Raises
    ------
    InputError
        If a row is bad, with the place of the first one; if the file cannot be read.
    """
    predictions = read_up_to(Reader(str(path), **options), np.inf, np.inf)
    assert predictions is not None, "there is no limit"
    return predictions


def read_whole(path: str | PathLike[str], **options: Any) -> FilePredictions | None:
    """Read a file as `read_predictions` does, or return None if it is too large."""
    return read_up_to(Reader(str(path), **options), MAX_WHOLE_ROWS, MAX_WHOLE_NUMBERS)


def read_up_to(reader: Reader, max_rows: float, max_numbers: float) -> FilePredictions | None:
    """Read all rows of a file, or return None if it has too many rows or numbers."""
    pieces: list[ReadRows] = []
    n_rows = 0
    n_numbers = 0
    for batch in reader.batches():
        piece = reader.read(batch)
        pieces.append(piece)
        n_rows += len(batch.places)
        n_numbers += sum(np.size(column) for column in piece.numbers.values())
        if n_rows > max_rows or n_numbers > max_numbers:
            return None
    first = pieces[0]
    places = join_places([piece.batch.places for piece in pieces])
    # Pieces are dropped column by column, so that memory holds only one column twice.
    labels = {name: join_columns([x.labels.pop(name) for x in pieces]) for name in [*first.labels]}
    numbers = {
        name: join_columns([x.numbers.pop(name) for x in pieces]) for name in [*first.numbers]
    }
    kept = {name: join_columns([x.kept[name] for x in pieces]) for name in first.kept}
    release_memory()
    return reader.interpret(ReadRows(replace(first.batch, places=places), labels, numbers, kept))


def join_places(places: Sequence[Places]) -> Places:
    """Join the places of the rows of several batches, as a range if there are no gaps."""
    start = int(places[0][0])
    stop = int(places[-1][-1]) + 1
    if stop - start == sum(map(len, places)):
        return range(start, stop)
    return np.concatenate([np.asarray(x) for x in places])


def read_logs(paths: Sequence[str], **options: Any) -> FilePredictions | None:
    """Read the logs of one run, with the "task" of each row; None for other files."""
    if not is_log_file(paths[0]):
        return None
    batches: list[Batch] = []
    logs: list[FilePredictions] = []
    for path in paths:
        reader = Reader(path, **options)
        # A log is one batch.
        batch = next(reader.batches())
        if not isinstance(reader.layout, LogLayout):
            rule = f"must be a log of lm-evaluation-harness, as {paths[0]} is"
            raise InputError("path", rule, place=path)
        batches.append(batch)
        logs.append(reader.interpret(reader.read(batch)))
    tasks = [LOG_NAME.sub(r"\1", os.path.basename(path)) for path in paths]
    names = [f"{log.file}: {log.row(k)}" for log in logs for k in range(len(log.label))]
    others = {key: np.concatenate([log.others[key] for log in logs]) for key in logs[0].others}
    others["task"] = np.repeat(tasks, [len(log.label) for log in logs])
    file = f"{len(paths)} logs"
    predictions = read_questions(batches)
    return replace(predictions, file=file, row=names.__getitem__, others=others)


def is_log_file(path: str) -> bool:
    """Decide whether a file is a log of lm-evaluation-harness."""
    reader = Reader(path)
    # The fault of a broken file shows when it is read.
    with suppress(BadArgumentError):
        next(reader.batches())
    return isinstance(reader.layout, LogLayout)
