"""Predictions from files, whose column names show how to read them, whole or in batches."""

import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import first_number
from fastece.data.errors import BadArgumentError, InputError, InputWarning, warn_outside
from fastece.data.parameters import check_integer
from fastece.files.columns import (
    FORMS,
    PAIR,
    Labels,
    NamedColumns,
    Numbers,
    Table,
    Texts,
    as_arrays,
    as_texts,
    cell_list,
    join,
)
from fastece.files.formats import read_tables
from fastece.files.guess import columns_of_labels
from fastece.files.harness import is_log, read_log

# The task in the name of a log.
LOG_NAME = re.compile(r"^(?:samples_)?(.+?)(?:_\d{4}-\d\d-\d\dT.*)?\.jsonl?(?:\.gz)?$")
LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR)
# After so many bad rows of a file without a good one before them, no row of it is tried any more.
MAX_BAD_PREFIX = 1000
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
        if error.place is not None or not (
            is_data or (error.index and error.argument in self.columns)
        ):
            return
        if error.index is None:
            error.place = f"{self.file}: from {self.row(0)} on: {error.argument}"
            return
        row, *place = error.index
        names = self.columns.get(error.argument, [error.argument])
        column = names[place[0]] if place and len(names) > 1 else names[0]
        column += f"[:, {place[0]}]" if place and len(names) == 1 else ""  # of a matrix
        error.place = f"{self.file}: {self.row(row)}, column {column}"


class Rows(NamedTuple):
    """Columns of a table as arrays, before the labels of all rows are known."""

    table: Table  # without its cells, which would stay in memory
    labels: dict[str, Labels]
    numbers: dict[str, Numbers]


@dataclass
class Reader:
    """Reader of one file of predictions, whose columns it chooses by their names.

    Of `y_prob` there may be several, separated by commas, in class order or named as the classes
    are; prob_* means all columns named so.
    """

    path: str  # "-" is standard input
    y_true: str | None = None
    y_prob: str | None = None
    classes: int | None = None  # behind the top label of a file of labels and confidences
    weights: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # of other arguments, by their names
    labels: Collection[str] = ()  # that the caller names: in a stream others must be numbers

    def __post_init__(self) -> None:
        self.label = self.y_true or "y_true"
        # Kinds of columns and strings of labels in all batches so far, cells of the first row.
        self.forms, self.words, self.first = dict[str, str](), [*self.labels], dict[str, Any]()
        (words,) = as_arrays([as_texts(self.words)])
        if words.dtype.kind != "U":  # how numbers are written is free
            self.words = []

    def tables(self) -> Iterator[Table]:
        """Yield the unread batches of rows, in their order."""
        return read_tables(self.path, self.choose, (self.label, PAIR[0]))

    def choose(self, head: Table) -> tuple[list[str], list[str]]:
        """Choose the columns of labels, and of numbers, by their names."""
        self.has_names = bool(self.y_prob)
        is_named = self.y_true is not None or self.y_prob is not None
        if head.groups:
            self.columns = {"groups": head.groups, **self.columns}
        self.is_log = not is_named and bool(head.rows) and is_log(head.rows[0])
        self.is_pairs = not (is_named or self.is_log) and {*PAIR} <= {*head.names}
        if self.classes is not None:
            if not self.is_pairs:
                raise InputError("classes", f"goes with the columns {','.join(PAIR)} only")
            check_integer("classes", self.classes, 2, 2**31)
        labels, self.prob_names = [self.label], [PAIR[2]]
        if self.is_log:
            labels = self.prob_names = []
        elif self.is_pairs:
            labels = [*PAIR[:2]]
        elif self.y_prob:
            taken = {self.label, self.weights, *self.columns.values()}
            parts = self.y_prob.split(",")
            self.prob_names = [name for part in parts for name in expand(head, part, taken)]
        else:
            self.prob_names = probability_columns(head)
            if self.prob_names[0] not in head.names:
                found = columns_of_labels(self.path, self.label, head.names)
                self.prob_names, self.has_names = found or self.prob_names, bool(found)
        weights = [] if self.weights is None else [self.weights]
        others = {key: [name] for key, name in self.columns.items()}
        chosen = {"y_true": labels, "y_prob": self.prob_names, "weights": weights, **others}
        for argument, names in chosen.items():
            check_names(head, argument, names)
        labels, numbers = [*labels, *self.columns.values()], [*self.prob_names, *weights]
        self.chosen = [*dict.fromkeys(labels)], [*dict.fromkeys(numbers)]
        return self.chosen

    def read(self, table: Table) -> Rows:
        """Read a batch, whose columns are of the kind of the batches before it."""
        columns = replace(table, first=self.first).read(*self.chosen)
        rows = Rows(replace(table, columns={}), *columns)
        for name, column in {**rows.numbers, **rows.labels}.items():
            one = "no string" if name in rows.labels else "a number"
            if isinstance(column, Texts):
                form = "a string"
            else:
                form = f"{np.shape(column)[1]} numbers" if np.ndim(column) > 1 else one
            if name in self.prob_names and len(self.prob_names) > 1:
                self.forms = {name: one, **self.forms}
            self.check_form(table, name, form)
        if not self.first:
            self.first = {name: cell_list(x)[0] for name, x in table.part(0, 1).columns.items()}
        return rows

    def check_form(self, table: Table, name: str, form: str, key: str = "") -> None:
        """Refuse a batch with cells of another kind than the batches before it."""
        self.forms = {name + key: form, **self.forms}
        if (wanted := self.forms[name + key]) != form:
            place = f"{table.file}: {table.row(0)}, column {name}"
            raise InputError(name, f"must be {wanted}, as in other rows, got {form}", place=place)

    def interpret(self, rows: Rows) -> Predictions:
        """Turn columns into predictions."""
        if self.is_log:
            found = read_questions([rows.table])
        elif self.is_pairs:
            found = read_pairs(rows, self.classes)
        else:
            found = self.read_columns(rows)
        others = {key: as_arrays([rows.labels[name]])[0] for key, name in self.columns.items()}
        names, arrays, weights = {**self.columns}, {**others}, None
        if self.weights is not None:
            names["sample_weight"] = self.weights
            arrays["sample_weight"] = weights = np.asarray(rows.numbers[self.weights])
        return replace(
            found, row=rows.table.row, file=rows.table.file, weights=weights, others=others,
            columns={**found.columns, **{key: [name] for key, name in names.items()}},
            cells={**found.cells, **{names[key]: array for key, array in arrays.items()}},
        )  # fmt: skip

    def read_columns(self, rows: Rows) -> Predictions:
        """Read a column of labels, and one or several of probabilities."""
        names = self.prob_names
        columns = [rows.numbers[name] for name in names]
        (label,) = as_arrays([rows.labels[self.label]])
        prob: Any = np.column_stack(columns) if len(columns) > 1 else columns[0]
        if isinstance(prob, NamedColumns):  # of objects
            names = [f"{names[0]}.{name}" for name in prob.columns]
        elif self.has_names and len(names) > 1:
            prob = NamedColumns(prob, names)
        columns_of = {"y_true": [self.label], "y_prob": names}
        return Predictions(label, prob, label, columns=columns_of, cells={self.label: label})

    def read_batch(self, table: Table) -> Predictions:
        """Read a batch by itself; its labels are numbers of classes, or known."""
        if self.is_log or table.groups:
            rule = "is a log of an evaluation, which is no stream"
            raise InputError("path", rule, place=table.file)
        rows = self.read(table)
        label = rows.labels.get(self.label)
        if isinstance(label, Texts):  # which strings are numbers depends on all of them
            self.words = [*dict.fromkeys([*label.words, *self.words])]
            rows.labels[self.label] = Texts(label.codes, self.words)
        found = self.interpret(rows)
        strings = {  # of which the caller may make numbers, once it knows them all
            name: np.array(column.words)[column.codes]
            for name, column in rows.labels.items() if isinstance(column, Texts)
        }  # fmt: skip
        if found.pairs:
            check_spelling(table, found, *(strings.get(x, found.cells[x]) for x in PAIR[:2]))
        elif found.label.dtype.kind in "OUST" and not self.labels:
            # Text that is a number is so where another row has one that is not.
            are_numbers = [bool(re.fullmatch(FORMS[0][0], str(x))) for x in found.label.tolist()]
            bad = 0 if all(are_numbers) else are_numbers.index(False)
            rule = "must be the number of a class, as which column another label stands for"
            rule += " is not known before all rows are read"
            hint = "pass {labels}, in the order of the classes"
            error = InputError("y_true", rule, index=bad, value=found.label[bad], hint=hint)
            found.place(error)
            raise error
        elif isinstance(label, Texts):
            form = "a string" if found.label.dtype.kind == "U" else "a number"
            self.check_form(table, self.label, form, " as it is written")
        names = getattr(found.y_prob, "columns", [])
        if any(name.isdecimal() and int(name) != k for k, name in enumerate(names)):
            rule = f"columns {names!r:.200} must be in the order of their classes in a stream"
            raise InputError("path", rule, place=table.file)
        y = found.y_true
        if y.dtype == np.int8 and y.min(initial=0) >= 0:
            y = y.view(np.uint8)
        others = {key: strings.get(self.columns[key], x) for key, x in found.others.items()}
        return replace(found, y_true=y, y_prob=np.asarray(found.y_prob), others=others)


def read_predictions(path: str | PathLike[str], **options: Any) -> Predictions:
    """Read a file of predictions as a whole, with the options of `Reader`.

    Text with a header, JSON Lines, NPY, NPZ and Parquet (by pyarrow) are tables of named columns;
    per-sample logs of lm-evaluation-harness are known by their keys. What gzip packs is unpacked.

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
    reader, parts = Reader(str(path), **options), []
    rows = numbers = 0
    for table in reader.tables():
        part = reader.read(table)
        parts.append(part)
        rows, numbers = rows + len(table.places), numbers + sum(map(np.size, part.numbers.values()))
        if is_limited and (rows > MOST_ROWS or numbers > MOST_NUMBERS):
            return None
    first, places = parts[0], [part.table.places for part in parts]
    start, stop = places[0][0], places[-1][-1] + 1
    joined = range(start, stop) if stop - start == rows else np.concatenate(places)
    return reader.interpret(Rows(
        replace(first.table, places=joined),
        {name: join([part.labels.pop(name) for part in parts]) for name in [*first.labels]},
        {name: join([part.numbers.pop(name) for part in parts]) for name in [*first.numbers]},
    ))  # fmt: skip


def read_pairs(rows: Rows, classes: int | None) -> Predictions:
    """Read true label, predicted label and confidence; equal labels are a hit."""
    table, labels = rows.table, as_arrays([rows.labels[name] for name in PAIR[:2]])
    true, predicted = labels
    confidence = np.asarray(rows.numbers[PAIR[2]])
    for name, column in zip(PAIR, (true, predicted, confidence), strict=True):
        if column.ndim != 1:
            rule = f"has shape {column.shape}, must have one value in each row"
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
        true == predicted, confidence, true, True, classes, note=table.note,
        columns={"y_prob": [PAIR[2]]}, cells=dict(zip(PAIR[:2], labels, strict=True)),
    )  # fmt: skip


def check_spelling(
    table: Table, found: Predictions, true: NDArray[Any], predicted: NDArray[Any]
) -> None:
    """Refuse equal numbers in two spellings: with later labels they may be strings."""
    bad = np.flatnonzero((true == predicted) != found.y_true)
    if bad.size:
        index = int(bad[0])
        rule = f"must be written as {PAIR[0]} is, {true[index]!r}, in a stream"
        place = f"{table.file}: {table.row(index)}, column {PAIR[1]}"
        raise InputError(PAIR[1], rule, value=predicted[index], place=place, rows=bad.size)


def read_logs(paths: Sequence[str], **options: Any) -> Predictions | None:
    """Read the logs of one run, with the "task" of each row; None of other files."""
    first = Reader(paths[0])
    with suppress(BadArgumentError):  # the reader of a stream raises it again
        next(first.tables())
    if not getattr(first, "is_log", False):
        return None
    tables: list[Table] = []
    parts: list[Predictions] = []
    for path in paths:
        reader = Reader(path, **options)
        table = next(reader.tables())  # of a log there is one
        if not reader.is_log:
            rule = f"must be a log of lm-evaluation-harness, as {paths[0]} is"
            raise InputError("path", rule, place=path)
        tables.append(table)
        parts.append(reader.interpret(reader.read(table)))
    tasks = [LOG_NAME.sub(r"\1", os.path.basename(path)) for path in paths]
    counts = [len(part.label) for part in parts]
    names = [f"{x.file}: {x.row(k)}" for x in parts for k in range(len(x.label))]
    others = {key: np.concatenate([x.others[key] for x in parts]) for key in parts[0].others}
    others["task"] = np.repeat(tasks, counts)
    file = f"{len(paths)} logs"
    return replace(read_questions(tables), file=file, row=names.__getitem__, others=others)


def read_questions(tables: Sequence[Table]) -> Predictions:
    """Read logs of multiple-choice questions as predictions.

    They are class vectors if all questions have as many choices; else whether the likeliest choice
    is right, and its softmax.
    """
    logs = [*map(read_log, tables)]
    right, scores = [k for x, _ in logs for k in x], [z for _, x in logs for z in x]
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


class NoColumnError(InputError):
    """Error about a column that a file does not have."""


def check_names(table: Table, argument: str, names: Sequence[str]) -> None:
    """Refuse names of columns that are missing or ambiguous."""
    is_data = argument in ("y_true", "y_prob")
    for name in names:
        if name not in table.names:
            more = ", ..." if len(table.names) > 8 else ""
            rule = f"no column {name!r}, it has {', '.join(table.names[:8]) or 'none'}{more}"
            hint = f"expected {LAYOUTS}, or columns named with {{y_true}} and {{y_prob}}"
            option = argument.partition("[")[0]  # of one of several columns
            hint = hint if is_data else f"{{{option}}} takes the name of a column"
            raise NoColumnError(argument, rule, place=table.file, hint=hint)
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


# --- sums over files ----------------------------------------------------------------------------


@dataclass
class FileCount:
    """Counts of a file's rows that were added or skipped."""

    file: str
    rows: int = 0
    batches: int = 0
    skipped: int = 0
    is_cut: bool = False  # it could not be read to its end
    reason: str = ""  # the first fault


@dataclass
class FileSum:
    """Sum over files, added batch by batch."""

    add: Callable[[Predictions], Any]  # adds nothing where it raises an error
    skips: bool  # bad rows, and what cannot be read, are left out; else they are errors
    progress: Callable[[FileCount, float], None]  # after each batch: the share that is read
    files: list[FileCount] = field(default_factory=list)
    has_warned: bool = False

    def add_file(self, reader: Reader) -> None:
        """Add a file; errors name the file, the row and the rule."""
        count = FileCount(reader.path)
        self.files.append(count)
        tables = reader.tables()
        while True:
            try:
                table = next(tables, None)
            except BadArgumentError as error:
                if not self.skips:
                    raise
                count.is_cut, count.reason = True, count.reason or str(error)
                return
            if table is None:
                return
            count.batches += 1
            self.add_batch(reader, table, count)
            self.progress(count, table.share)

    def add_batch(self, reader: Reader, table: Table, count: FileCount) -> None:
        """Add a batch; if it is bad and bad rows are skipped, add its halves separately."""
        size, known = len(table.places), (reader.forms, reader.words, reader.first)
        try:
            self.add_rows(reader.read_batch(table))
            count.rows += size
        except BadArgumentError as error:
            reader.forms, reader.words, reader.first = known  # of good rows
            if not self.skips or error.place is None:
                raise
            if size > 1:
                self.add_batch(reader, table.part(0, size // 2), count)
                self.add_batch(reader, table.part(size // 2, size), count)
                return
            count.skipped += 1
            count.reason = count.reason or str(error)
            if count.skipped == MAX_BAD_PREFIX and not count.rows:
                rule = f"none of its first {MAX_BAD_PREFIX} rows is good"
                rule += f"; the first: {count.reason}"
                raise InputError("path", rule, place=count.file) from error

    def add_rows(self, found: Predictions) -> None:
        """Add predictions; errors, and the first warning, name the file."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with found.located():
                self.add(found)
        if caught and not self.has_warned:
            self.has_warned = True
            if isinstance(caught[0].message, InputWarning):
                caught[0].message.place = f"{found.file}: from {found.row(0)} on"
            warn_outside(caught[0].message)
