"""Predictions from a table: the names of its columns say what they are."""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import BadArgumentError, InputError, InputWarning
from fastece.checks.parameters import check_integer
from fastece.checks.probabilities import first_number
from fastece.files.harness import is_log, read_log
from fastece.files.json_lines import Objects
from fastece.files.source import STANDARD_INPUT, UNREADABLE, read_table
from fastece.files.table import NamedColumns, Rows, Table, refuse_rows

PAIR = ("true_label", "pred_label", "confidence")
LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR)


@dataclass(frozen=True)
class Predictions:
    """What a file holds, as `fastece.ece` takes it."""

    y_true: NDArray[Any]
    y_prob: Any  # columns that the caller names keep their names
    label: NDArray[Any]  # the true one: `y_true`, unless that says whether the prediction is right
    pairs: bool = False  # hits and confidences of the top label, no class vectors: a binary problem
    classes: int | None = None  # behind the top label, where the caller says how many
    from_logits: bool = False  # whether the format says that `y_prob` holds logits
    note: str = ""  # how the file is read, where its columns do not say it
    weights: NDArray[Any] | None = None
    others: dict[str, NDArray[Any]] = field(default_factory=dict)  # what else the caller names
    file: str = ""
    row: Callable[[int], str] = str  # what messages call a row
    columns: dict[str, list[str]] = field(default_factory=dict)  # of each argument
    table: Table | None = None  # the file itself, where it is wanted to be written again
    prob_columns: Sequence[str] = ()  # in that table; none in a log, which has no probabilities

    def with_probabilities(self, y_prob: NDArray[Any]) -> "Predictions":
        """The same rows with other probabilities, in columns of the same names."""
        named = isinstance(self.y_prob, NamedColumns)
        prob = NamedColumns(y_prob, self.y_prob.columns) if named else y_prob
        return replace(self, y_prob=prob, from_logits=False)

    @contextmanager
    def located(self) -> Iterator[None]:
        """While the block runs, errors and warnings about these rows name their place."""
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
        """Give an error about these rows its place in the file."""
        if error.place is None and error.argument in ("y_true", *self.columns):
            error.place = self.place_of(error)

    def place_of(self, error: BadArgumentError) -> str:
        """Give the file, the row and the column of an entry."""
        if error.index is None:
            return f"{self.file}: from {self.row(0)} on: {error.argument}"
        row, *place = error.index
        names = self.columns.get(error.argument, [error.argument])
        column = names[place[0]] if place and len(names) > 1 else names[0]
        column += f"[:, {place[0]}]" if place and len(names) == 1 else ""  # of a matrix
        return f"{self.file}: {self.row(row)}, column {column}"


def read_predictions(
    path: str | PathLike[str], *, y_true: str | None = None, y_prob: str | None = None,
    classes: int | None = None, weights: str | None = None, columns: Sequence[str] = (),
    option: str = "--by", keep_table: bool = False,
) -> Predictions:  # fmt: skip
    """Read a file of predictions, or standard input, "-".

    Text with a header, JSON Lines, NPY, NPZ and Parquet (needs pyarrow) are tables of named
    columns; per-sample logs of lm-evaluation-harness are known by their keys. What gzip packs is
    unpacked. `y_true` and `y_prob` name the columns, `y_prob` several, separated by commas, in
    class order or named as the classes are; prob_* means all columns named so. `classes` is the
    number of classes behind the top label of a file of labels and confidences: its scores then lie
    on [1/K, 1]. `weights` and `columns` name the column of the weights, and others that are wanted
    by an option. `keep_table`: also hold the whole file, which `write_predictions` wants.
    """
    file = "standard input" if str(path) == STANDARD_INPUT else str(path)
    chosen = Chosen(y_true, y_prob, classes, weights, tuple(columns), option)
    try:
        table = read_table(str(path), chosen.header)
        return replace(read_rows(table, chosen), file=file, table=table if keep_table else None)
    except UNREADABLE as error:
        raise InputError("path", str(error), place=file) from error


@dataclass(frozen=True)
class Chosen:
    """Which columns are read, as the caller says: arguments of `read_predictions`."""

    y_true: str | None = None
    y_prob: str | None = None
    classes: int | None = None
    weights: str | None = None
    columns: tuple[str, ...] = ()
    option: str = "--by"

    @property
    def is_named(self) -> bool:
        """Whether the caller names labels or probabilities."""
        return self.y_true is not None or self.y_prob is not None

    @property
    def header(self) -> tuple[str, str]:
        """Columns one of which a header has."""
        return self.y_true or "y_true", PAIR[0]

    def holds_pairs(self, table: Rows) -> bool:
        """Whether a table has true label, predicted label and confidence."""
        is_pair = not self.is_named and all(name in table.names for name in PAIR)
        if self.classes is not None and not is_pair:
            raise ValueError(f"--classes goes with the columns {','.join(PAIR)} only")
        return is_pair

    def prob_names(self, table: Rows) -> list[str]:
        """The columns of the probabilities, which are not those wanted for something else."""
        if not self.y_prob:
            return probability_columns(table)
        taken = {self.header[0], self.weights, *self.columns}
        parts = self.y_prob.split(",")
        return [name for part in parts for name in expand(table, part, taken)]

    def check(self, table: Rows) -> list[str]:
        """All columns that are read, each of which is there."""
        names = PAIR if self.holds_pairs(table) else (self.header[0], *self.prob_names(table))
        more = [self.weights] if self.weights else []
        check_names(table, names)
        check_names(table, more, "--weights")
        check_names(table, self.columns, self.option)
        return [*dict.fromkeys((*names, *more, *self.columns))]


def read_rows(table: Rows, chosen: Chosen) -> Predictions:
    """Read a table, or a part of one."""
    if chosen.holds_pairs(table):
        found = read_pairs(table, chosen.classes)
    elif not chosen.is_named and isinstance(table, Objects) and is_log(table.rows[0]):
        found = read_questions(table)
    else:
        found = read_columns(table, chosen)
    weights, columns = chosen.weights, chosen.columns
    if weights is None and not columns:
        return replace(found, row=table.row)
    more = [weights] if weights else []
    check_names(table, more, "--weights")
    check_names(table, columns, chosen.option)
    others, weight = table.read([[name] for name in columns], [more] if more else [])
    return replace(
        found, row=table.row, weights=weight[0] if more else None,
        others={name: column for name, (column,) in zip(columns, others, strict=True)},
        columns={**found.columns, "sample_weight": more},
    )  # fmt: skip


def read_columns(table: Rows, chosen: Chosen) -> Predictions:
    """Read a column of labels and one or several of probabilities."""
    y_true, y_prob, names = chosen.header[0], chosen.y_prob, chosen.prob_names(table)
    check_names(table, [y_true, *names])
    ((label,),), (prob,) = table.read([[y_true]], [names])
    if isinstance(prob, NamedColumns):  # of objects
        shown = [f"{names[0]}.{name}" for name in prob.columns]
    else:
        shown, is_named = names, y_prob and len(names) > 1
        prob = NamedColumns(prob, names) if is_named else prob
    columns = {"y_true": [y_true], "y_prob": shown}
    return Predictions(label, prob, label, columns=columns, prob_columns=names)


def read_pairs(table: Rows, classes: int | None) -> Predictions:
    """Read true label, predicted label and confidence: a hit is that the labels are equal."""
    if classes is not None:
        check_integer("--classes", classes, 2, 2**31)
    check_names(table, PAIR)
    ((true, predicted),), (confidence,) = table.read([PAIR[:2]], [PAIR[2:]])
    for name, column in zip(PAIR, (true, predicted, confidence), strict=True):
        if column.ndim != 1 or len(column) != len(true):
            raise ValueError(f"{name} has shape {column.shape}, {PAIR[0]} has {true.shape}")
        if column.dtype.kind == "f":
            fault = f"column {name}: must not be missing, got nan"
            refuse_rows((table.row(int(i)), fault) for i in np.flatnonzero(np.isnan(column)))
    kinds = [column.dtype.kind.replace("u", "i") for column in (true, predicted)]
    if kinds[0] != kinds[1] and not {*kinds} <= {"i", "f", "b"}:
        raise ValueError(f"{PAIR[0]} has dtype {true.dtype}, {PAIR[1]} {predicted.dtype}")
    return Predictions(
        true == predicted, confidence, true, True, classes,
        columns={"y_prob": [PAIR[2]]}, prob_columns=PAIR[2:],
    )  # fmt: skip


def read_questions(table: Objects) -> Predictions:
    """Read a log of multiple-choice questions: class vectors if all have as many choices; else
    whether the likeliest choice is right, and its softmax."""
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


def check_names(table: Rows, names: Sequence[str], option: str = "") -> None:
    """Each name is that of one column; `option` names it, unless it is one of predictions."""
    advice = (
        f"{option} takes the name of a column" if option
        else f"expected {LAYOUTS}, or columns named with --y-true and --y-prob"
    )  # fmt: skip
    for name in names:
        if name not in table.names:
            more = ", ..." if len(table.names) > 8 else ""
            raise ValueError(
                f"no column {name!r}, it has {', '.join(table.names[:8]) or 'none'}{more}; {advice}"
            )
        if table.names.count(name) > 1:
            raise ValueError(f"two columns are named {name!r}")


def expand(table: Rows, pattern: str, taken: Collection[str | None]) -> list[str]:
    """The columns that a name or a pattern such as prob_* means, in the order of the file; those
    that are numbered in the order of their numbers."""
    if pattern in table.names or not {*pattern} & {*"*?["}:
        return [pattern]
    names = [name for name in table.names if name not in taken and fnmatchcase(name, pattern)]
    if isinstance(table, Objects):  # without what holds other columns
        names = [name for name in names if not any(x.startswith(f"{name}.") for x in table.names)]
    if len(names) < 2:
        found = ", ".join(names) or "none"
        raise ValueError(f"--y-prob {pattern!r}: must mean two columns or more, found {found}")
    heads = {name.rstrip("0123456789") for name in names}
    if len(heads) == 1 and heads.isdisjoint(names):
        names.sort(key=lambda name: int(name[len(*heads) :]))
        if first_number(names) is None:
            raise ValueError(
                f"--y-prob {pattern!r}: must mean columns that count up, found {names}"
            )
    return names


def probability_columns(table: Rows) -> list[str]:
    """Columns y_prob, or p_0, p_1 and so on up to the last that is there."""
    numbers = [int(n[2:]) for n in table.names if n.startswith("p_") and n[2:].isdecimal()]
    if "y_prob" in table.names or not numbers:
        return ["y_prob"]
    if max(numbers) == 0:
        raise ValueError("p_0 is the only probability; name P(positive) y_prob, or add p_1")
    # One more than there are: the first that is missing is among them.
    return [f"p_{k}" for k in range(min(max(numbers), len(numbers)) + 1)]
