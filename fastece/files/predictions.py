"""Predictions from a file, whose column names show how to read it."""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import BadArgumentError, InputError, InputWarning
from fastece.checks.parameters import check_integer
from fastece.checks.probabilities import first_number
from fastece.files.harness import is_log, read_log
from fastece.files.source import Source
from fastece.files.table import Labels, NamedColumns, Numbers, Table, Texts, as_arrays, join

PAIR = ("true_label", "pred_label", "confidence")
LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR)
# Larger files are no whole ones: they are streams.
MOST_ROWS, MOST_NUMBERS = 10**7, 10**8


@dataclass(frozen=True)
class Predictions:
    """Rows of a file, in the form that `fastece.ece` takes."""

    y_true: NDArray[Any]
    y_prob: Any  # columns that the caller names keep their names
    label: NDArray[Any]  # the true one: `y_true`, unless that says whether the prediction is right
    pairs: bool = False  # hits and confidences of the top label, no class vectors: a binary problem
    classes: int | None = None  # behind the top label, where the caller says how many
    from_logits: bool = False  # whether the format says that `y_prob` holds logits
    note: str = ""  # how the file is read, where its columns do not say it
    weights: NDArray[Any] | None = None
    others: dict[str, NDArray[Any]] = field(default_factory=dict)  # more arguments of the caller
    file: str = ""
    row: Callable[[int], str] = str  # what messages call a row
    columns: dict[str, list[str]] = field(default_factory=dict)  # of each argument
    cells: dict[str, NDArray[Any]] = field(default_factory=dict)  # of the file, by column

    def with_probabilities(self, y_prob: NDArray[Any]) -> "Predictions":
        """Return the same rows with other probabilities, in columns of the same names."""
        named = isinstance(self.y_prob, NamedColumns)
        prob = NamedColumns(y_prob, self.y_prob.columns) if named else y_prob
        return replace(self, y_prob=prob, from_logits=False)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the place in the file to errors and warnings of the block."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except BadArgumentError as error:
                self.place(error)
                raise
        for one in caught:
            if isinstance(one.message, InputWarning):
                self.place(one.message)
            warnings.warn(one.message, stacklevel=3)

    def place(self, error: BadArgumentError) -> None:
        """Set the place in the file of an error about these rows."""
        is_data = error.argument in ("y_true", "y_prob", "sample_weight")
        if error.place is None and (is_data or (error.index and error.argument in self.columns)):
            error.place = self.place_of(error)

    def place_of(self, error: BadArgumentError) -> str:
        """Return the file, the row and the column of an error."""
        if error.index is None:
            return f"{self.file}: from {self.row(0)} on: {error.argument}"
        row, *place = error.index
        names = self.columns.get(error.argument, [error.argument])
        column = names[place[0]] if place and len(names) > 1 else names[0]
        column += f"[:, {place[0]}]" if place and len(names) == 1 else ""  # of a matrix
        return f"{self.file}: {self.row(row)}, column {column}"


class Rows(NamedTuple):
    """Columns of a table as read, before the labels of all rows are known."""

    table: Table
    labels: dict[str, Labels]
    numbers: dict[str, Numbers]

    @property
    def size(self) -> int:
        """Number of values in the numeric columns."""
        return sum(np.size(column) for column in self.numbers.values())


@dataclass(frozen=True)
class Chosen:
    """Choice of the columns of a file, by the caller.

    Attributes
    ----------
    y_true, y_prob, weights : str or None
        Names of columns; of `y_prob` several, separated by commas, in class order or named as the
        classes are; prob_* means all columns named so.
    classes : int or None
        Number of classes behind the top label of a file of labels and confidences.
    columns : mapping
        Columns of other arguments, by their names.
    """

    y_true: str | None = None
    y_prob: str | None = None
    classes: int | None = None
    weights: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """Whether the caller names labels or probabilities."""
        return self.y_true is not None or self.y_prob is not None

    @property
    def label(self) -> str:
        """Column of the labels, where they are not pairs."""
        return self.y_true or "y_true"

    def source(self, path: str) -> Source:
        """Open a file by its path."""
        return Source(path, self.choose, (self.label, PAIR[0]))

    def choose(self, table: Table) -> tuple[list[str], list[str]]:
        """Choose the existing columns of labels and of numbers of a table."""
        labels, numbers = [self.label], []
        if self.holds_pairs(table):
            labels, numbers = [*PAIR[:2]], [*PAIR[2:]]
        elif self.holds_log(table):
            labels = []
        else:
            numbers = self.prob_names(table)
        for argument, names in (("y_true", labels), ("y_prob", numbers)):
            check_names(table, argument, names)
        for argument, name in [("weights", self.weights), *self.columns.items()]:
            if name is not None:
                check_names(table, argument, [name])
        return (
            [*dict.fromkeys([*labels, *self.columns.values()])],
            [*dict.fromkeys([*numbers, *([self.weights] if self.weights else [])])],
        )

    def holds_pairs(self, table: Table) -> bool:
        """Return whether a table has true label, predicted label and confidence."""
        is_pair = not self.is_named and all(name in table.names for name in PAIR)
        if self.classes is not None and not is_pair:
            raise InputError("classes", f"goes with the columns {','.join(PAIR)} only")
        if self.classes is not None:
            check_integer("classes", self.classes, 2, 2**31)
        return is_pair

    def prob_names(self, table: Table) -> list[str]:
        """Find the columns of the probabilities, without columns of other arguments."""
        if not self.y_prob:
            return probability_columns(table)
        taken = {self.label, self.weights, *self.columns.values()}
        parts = self.y_prob.split(",")
        return [name for part in parts for name in expand(table, part, taken)]

    def read(self, table: Table) -> Rows:
        """Read the chosen columns of a table."""
        found = table.read(*self.choose(table))
        return Rows(table.bare, *found)  # without the cells, which would stay in memory

    def holds_log(self, table: Table) -> bool:
        """Return whether a table is a log of lm-evaluation-harness."""
        return not self.is_named and bool(table.rows) and is_log(table.rows[0])

    def interpret(self, rows: Rows) -> Predictions:
        """Turn columns into predictions."""
        table = rows.table
        if self.holds_log(table):
            found = read_questions(table)
        elif self.holds_pairs(table):
            found = read_pairs(rows, self.classes)
        else:
            found = self.read_columns(rows)
        others = {
            argument: as_arrays([rows.labels[name]])[0] for argument, name in self.columns.items()
        }
        weight = None if self.weights is None else np.asarray(rows.numbers[self.weights])
        more = {argument: [name] for argument, name in self.columns.items()}
        if self.weights is not None:
            more["sample_weight"] = [self.weights]
        cells = {name: others[argument] for argument, (name,) in more.items() if argument in others}
        cells |= {} if weight is None else {str(self.weights): weight}
        return replace(
            found, row=table.row, file=table.file, weights=weight, others=others,
            columns={**found.columns, **more}, cells={**found.cells, **cells},
        )  # fmt: skip

    def read_columns(self, rows: Rows) -> Predictions:
        """Read a column of labels, and one or several of probabilities."""
        names = self.prob_names(rows.table)
        columns = [rows.numbers[name] for name in names]
        (label,) = as_arrays([rows.labels[self.label]])
        prob: Any = np.column_stack(columns) if len(columns) > 1 else columns[0]
        shown = names
        if isinstance(prob, NamedColumns):  # of objects
            shown = [f"{names[0]}.{name}" for name in prob.columns]
        elif self.y_prob and len(names) > 1:
            prob = NamedColumns(prob, names)
        columns_of = {"y_true": [self.label], "y_prob": shown}
        return Predictions(label, prob, label, columns=columns_of, cells={self.label: label})


def read_predictions(path: str | PathLike[str], **options: Any) -> Predictions:
    """Read a file of predictions as a whole.

    Text with a header, JSON Lines, NPY, NPZ and Parquet (by pyarrow) are tables of named columns;
    per-sample logs of lm-evaluation-harness are known by their keys. What gzip packs is unpacked.

    Parameters
    ----------
    path : str or path
        "-" is standard input.
    options
        Columns: attributes of `Chosen`.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        With the place of the first bad row, for a bad row; for a file that cannot be read.
    """
    found = read_whole(path, is_limited=False, **options)
    assert found is not None, "there is no limit"
    return found


def read_whole(
    path: str | PathLike[str], *, is_limited: bool = True, **options: Any
) -> Predictions | None:
    """Read a file as `read_predictions` does, or return None if it is too large."""
    chosen, parts = Chosen(**options), []
    rows = numbers = 0
    for table in chosen.source(str(path)).tables():
        parts.append(chosen.read(table))
        rows, numbers = rows + len(table.places), numbers + parts[-1].size
        if is_limited and (rows > MOST_ROWS or numbers > MOST_NUMBERS):
            return None
    return whole(chosen, parts)


def whole(chosen: Chosen, rows: Sequence[Rows]) -> Predictions:
    """Join the batches of one file into predictions."""
    first = rows[0]
    for part in rows[1:]:
        for name in (*first.labels, *first.numbers):
            check_kind(part.table, name, form_of(first, name), form_of(part, name))
    places = [part.table.places for part in rows]
    is_one = all(isinstance(x, range) for x in places) and all(
        a[-1] + 1 == b[0] for a, b in pairwise(places)
    )
    joined = range(places[0][0], places[-1][-1] + 1) if is_one else np.concatenate(places)
    return chosen.interpret(Rows(
        replace(first.table, places=joined),
        {name: join([part.labels.pop(name) for part in rows]) for name in [*first.labels]},
        {name: join([part.numbers.pop(name) for part in rows]) for name in [*first.numbers]},
    ))  # fmt: skip


def form_of(rows: Rows, name: str) -> str:
    """Describe the kind of a column's cells, which is the same in all rows."""
    if name in rows.labels:
        return "a string" if isinstance(rows.labels[name], Texts) else "no string"
    column = rows.numbers[name]
    width = np.shape(column)[1] if np.ndim(column) > 1 else 1
    return f"{width} numbers" if width > 1 else "a number"


def check_kind(table: Table, name: str, wanted: str, got: str) -> None:
    """Refuse a batch with cells of another kind than the batches before it."""
    if wanted != got:
        place = f"{table.file}: {table.row(0)}, column {name}"
        raise InputError(name, f"must be {wanted}, as rows before it, got {got}", place=place)


def read_pairs(rows: Rows, classes: int | None) -> Predictions:
    """Read true label, predicted label and confidence; equal labels are a hit."""
    table, labels = rows.table, as_arrays([rows.labels[name] for name in PAIR[:2]])
    true, predicted = labels
    confidence = np.asarray(rows.numbers[PAIR[2]])
    for name, column in zip(PAIR, (true, predicted, confidence), strict=True):
        if column.ndim != 1 or len(column) != len(true):
            rule = f"has shape {column.shape}, {PAIR[0]} has {true.shape}"
            raise InputError(name, rule, place=f"{table.file}: column {name}")
        bad = np.flatnonzero(column != column)
        if bad.size:
            place = f"{table.file}: {table.row(int(bad[0]))}, column {name}"
            value = float("nan")
            raise InputError(name, "must not be missing", value=value, place=place, rows=bad.size)
    kinds = [column.dtype.kind.replace("u", "i") for column in labels]
    if kinds[0] != kinds[1] and not {*kinds} <= {"i", "f", "b"}:
        rule = f"has dtype {predicted.dtype}, {PAIR[0]} has {true.dtype}"
        raise InputError(PAIR[1], rule, place=f"{table.file}: column {PAIR[1]}")
    return Predictions(
        true == predicted, confidence, true, True, classes,
        columns={"y_prob": [PAIR[2]]}, cells=dict(zip(PAIR[:2], labels, strict=True)),
    )  # fmt: skip


def read_questions(table: Table) -> Predictions:
    """Read a log of multiple-choice questions as predictions.

    They are class vectors if all questions have as many choices; else whether the likeliest choice
    is right, and its softmax.
    """
    right, scores = read_log(table)
    label, counts = np.array(right), [len(choices) for choices in scores]
    fewest, most = min(counts), max(counts)
    note = "log of lm-evaluation-harness, softmax over the choices of each question"
    if fewest == most:
        return Predictions(label, np.array(scores), label, from_logits=True, note=note)
    logits = np.full((len(scores), most), -np.inf)
    for row, choices in zip(logits, scores, strict=True):
        row[: len(choices)] = choices
    top = 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)
    note += f", which has {fewest} to {most}: of the likeliest choice alone"
    return Predictions(logits.argmax(axis=1) == label, top, label, True, note=note)


def check_names(table: Table, argument: str, names: Sequence[str]) -> None:
    """Refuse names of columns that are missing or ambiguous."""
    is_data = argument in ("y_true", "y_prob")
    for name in names:
        if name not in table.names:
            more = ", ..." if len(table.names) > 8 else ""
            rule = f"no column {name!r}, it has {', '.join(table.names[:8]) or 'none'}{more}"
            hint = f"expected {LAYOUTS}, or columns named with {{y_true}} and {{y_prob}}"
            hint = hint if is_data else f"{{{argument}}} takes the name of a column"
            raise InputError(argument, rule, place=table.file, hint=hint)
        if table.names.count(name) > 1:
            raise InputError(argument, f"two columns are named {name!r}", place=table.file)


def expand(table: Table, pattern: str, taken: Collection[str | None]) -> list[str]:
    """Find the columns that a name or a pattern such as prob_* matches.

    They are in the order of the file; those that are numbered in the order of their numbers.
    """
    if pattern in table.names or not {*pattern} & {*"*?["}:
        return [pattern]
    names = [name for name in table.names if name not in taken and fnmatchcase(name, pattern)]
    if table.rows:  # of objects, without what holds other columns
        names = [name for name in names if not any(x.startswith(f"{name}.") for x in table.names)]
    heads = {name.rstrip("0123456789") for name in names}
    if len(names) > 1 and len(heads) == 1 and heads.isdisjoint(names):
        names.sort(key=lambda name: int(name[len(*heads) :]))
        if first_number(names) is None:
            rule = f"{pattern!r} must mean columns that count up, found {names}"
            raise InputError("y_prob", rule, place=table.file)
    if len(names) < 2:
        rule = f"{pattern!r} must mean two columns or more, found {', '.join(names) or 'none'}"
        raise InputError("y_prob", rule, place=table.file)
    return names


def probability_columns(table: Table) -> list[str]:
    """Find the column y_prob, or columns p_0, p_1 and so on up to the last."""
    numbers = [int(n[2:]) for n in table.names if n.startswith("p_") and n[2:].isdecimal()]
    if "y_prob" in table.names or not numbers:
        return ["y_prob"]
    if max(numbers) == 0:
        rule = "p_0 is the only probability; name P(positive) y_prob, or add p_1"
        raise InputError("y_prob", rule, place=table.file)
    # One more than there are: the first that is missing is among them.
    return [f"p_{k}" for k in range(min(max(numbers), len(numbers)) + 1)]
