"""Layouts of files: which columns hold labels and probabilities, by the names in the header.

A layout knows the columns that it reads, and turns them into `FilePredictions`. `choose_layout`
decides which one a file has. A new layout is a class here, and a case there.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import check_order_of_numbers, first_number, numbers_of
from fastece.data.errors import InputError, RowsWarning, warn_outside
from fastece.data.parameters import check_integer
from fastece.files.batches import Batch, Header
from fastece.files.cells import NUMBER, LabelColumn, NamedColumns, NumberColumn, decode_labels
from fastece.files.class_columns import find_class_columns
from fastece.files.evaluations import PAIR_COLUMNS, SHARE_COLUMNS
from fastece.files.evidence import equal_top_label, without_shared_prefix
from fastece.files.file_predictions import FilePredictions
from fastece.files.harness import ACCURACY, is_log, read_log

LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR_COLUMNS)
WILDCARDS = frozenset("*?[")
# Words by which the name of a column shows that it holds predictions.
WORDS_OF_PREDICTIONS = frozenset({"pred", "predict", "predicted", "prediction", "hat", "yhat"})
# Names that a message lists.
MAX_LISTED = 8
# Classes behind a top label, at most.
MAX_CLASSES = 2**31


class NoColumnError(InputError):
    """Error about a column that a file does not have.

    Parameters
    ----------
    argument : str
        The argument that names the column, as in Python.
    column : str
        The name that is missing.
    header : Header
        The header in which it is missing.
    """

    def __init__(self, argument: str, column: str, header: Header) -> None:
        if argument in ("y_true", "y_prob"):
            hint = (
                f"expected {LAYOUTS}, or name the labels with {{y_true}} and the probabilities "
                "with {y_prob}, one column or one for each class"
            )
        else:
            # An argument that takes several columns is named by['column'] here.
            hint = f"{{{argument.partition('[')[0]}}} takes the name of a column"
        super().__init__(argument, "", place=header.file, hint=hint)
        self.column = column
        self.distinct_names = list(dict.fromkeys(header.names))
        self.show({}, [])

    def show(self, kinds: Mapping[str, str], evidence: Sequence[str]) -> None:
        """Show the kinds of columns behind their names, and evidence for their meaning."""
        names = self.distinct_names[:MAX_LISTED]
        listed = [f"{name} ({kinds[name]})" if name in kinds else name for name in names]
        if len(self.distinct_names) > MAX_LISTED:
            listed.append("...")
        columns = ", ".join(listed) or "none"
        self.rule = "; ".join([f"no column {self.column!r}, it has {columns}", *evidence])
        if self.distinct_names and all(map(NUMBER.fullmatch, self.distinct_names)):
            self.rule += "; these names are numbers: is the header missing?"


@dataclass(frozen=True)
class ColumnOptions:
    """Names of columns, and other knowledge of a caller about a file.

    Attributes
    ----------
    y_true : str or None
        The column of the labels; None: "y_true". Several, separated by commas: a column for each
        class, of which one is 1 in each row.
    y_prob : str or None
        The columns of the probabilities, separated by commas, in class order or named as the
        classes are; prob_* means all columns named so.
    classes : int or None
        Number of classes behind the top label of a file of labels and confidences.
    weights : str or None
        The column of the weights.
    columns : dict
        Columns of other arguments, by the names of these.
    kept : collection of str or None
        Columns that are kept beside as they are; None: all of a table.
    labels : collection of str
        Labels in their order; without them the labels of a stream must be numbers of classes.
    percent : bool
        Whether probabilities are percents, which are divided by 100.
    skips_missing : bool
        Whether rows without a label or a prediction are left out, and counted; otherwise they are
        an error.
    soft : bool
        Whether labels are shares of label 1, of a log the mean credit of its scorers.
    """

    y_true: str | None = None
    y_prob: str | None = None
    classes: int | None = None
    weights: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    kept: Collection[str] | None = ()
    labels: Collection[str] = ()
    percent: bool = False
    skips_missing: bool = False
    soft: bool = False

    @property
    def label(self) -> str:
        """The column of the labels."""
        return self.y_true or "y_true"


class ReadRows(NamedTuple):
    """Columns of rows as arrays, before the labels of all rows are known.

    `batch` is without its cells, which would stay in memory.
    """

    batch: Batch
    labels: dict[str, LabelColumn]
    numbers: dict[str, NumberColumn]
    kept: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ColumnLayout:
    """A column of labels, and one or several of probabilities.

    Several columns keep their names, if these may be the labels (`has_names`).
    """

    label: str
    probability_columns: list[str]
    has_names: bool

    @property
    def label_columns(self) -> list[str]:
        """Columns that are read as labels."""
        return [self.label]

    @property
    def true_columns(self) -> list[str]:
        """Columns of the true labels, of all columns that are read as labels."""
        return [self.label]

    def interpret(self, rows: ReadRows) -> FilePredictions:
        """Turn columns into predictions."""
        names = self.probability_columns
        columns = [rows.numbers[name] for name in names]
        (label,) = decode_labels([rows.labels[self.label]])
        prob: Any = np.column_stack(columns) if len(columns) > 1 else columns[0]
        if isinstance(prob, NamedColumns):
            # The cells of one column are objects.
            names = [f"{names[0]}.{name}" for name in prob.columns]
        elif self.has_names and len(names) > 1:
            prob = NamedColumns(prob, names)
        columns_of = {"y_true": [self.label], "y_prob": names}
        self.warn_of_prediction(rows.batch.file, label, np.asarray(prob))
        return FilePredictions(
            label,
            prob,
            label,
            note=rows.batch.header.note,
            columns=columns_of,
            cells={self.label: label},
        )

    def warn_of_prediction(self, file: str, label: NDArray[Any], prob: NDArray[Any]) -> None:
        """Warn of a column of predictions that is named as the one of the labels."""
        words = set(re.split(r"[\W_]+", self.label.lower()))
        if words.isdisjoint(WORDS_OF_PREDICTIONS):
            return
        names = self.probability_columns
        classes = without_shared_prefix(names) if len(names) > 1 else []
        if equal_top_label(label, prob, classes):
            rule = "is the most probable class in every row: it looks like the prediction"
            place = f"{file}: column {self.label}"
            hint = "name the column of the true labels by {y_true}"
            warn_outside(RowsWarning("y_true", rule, place=place, hint=hint))


@dataclass(frozen=True)
class OutcomeLayout:
    """A column of outcomes, and one of probabilities, for each class."""

    label_columns: Sequence[str]
    probability_columns: list[str]

    @property
    def true_columns(self) -> Sequence[str]:
        """Columns of the true labels, of all columns that are read as labels."""
        return self.label_columns

    def interpret(self, rows: ReadRows) -> FilePredictions:
        """Turn columns into predictions: the label is the class whose outcome is 1."""
        names = self.probability_columns
        if len(self.label_columns) != len(names):
            rule = f"names {len(self.label_columns)} columns of outcomes, {{y_prob}} {len(names)}"
            raise InputError("y_true", rule, place=rows.batch.file)
        check_order_of_numbers(self.label_columns, names, "y_prob")
        columns = {name: decode_labels([rows.labels[name]])[0] for name in self.label_columns}
        outcomes = np.column_stack(list(columns.values()))
        is_bad = (outcomes == 1).sum(axis=1) != 1
        if outcomes.dtype.kind not in "biuf":
            is_bad[:] = True
        else:
            is_bad |= ~np.isin(outcomes, (0, 1)).all(axis=1)
        if is_bad.any():
            row = int(is_bad.argmax())
            rule = f"{', '.join(self.label_columns)} must be 0 or 1, and 1 in one of them"
            raise InputError(
                "y_true",
                rule,
                value=outcomes[row].tolist(),
                place=f"{rows.batch.file}: {rows.batch.row_name(row)}",
                rows=int(is_bad.sum()),
                hint="several yes/no questions go one by one",
            )
        label = outcomes.argmax(axis=1)
        prob: Any = np.column_stack([np.asarray(rows.numbers[name]) for name in names])
        if numbers_of(names) is None:
            prob = NamedColumns(prob, names)
        return FilePredictions(
            label,
            prob,
            label,
            note=rows.batch.header.note,
            columns={"y_true": list(self.label_columns), "y_prob": names},
            cells=columns,
        )


@dataclass(frozen=True)
class PairLayout:
    """True label, predicted label and confidence of the prediction."""

    classes: int | None
    label_columns: Sequence[str] = PAIR_COLUMNS[:2]
    probability_columns: Sequence[str] = PAIR_COLUMNS[2:]
    true_columns: Sequence[str] = PAIR_COLUMNS[:1]

    def interpret(self, rows: ReadRows) -> FilePredictions:
        """Turn columns into predictions, which are right where both labels are equal."""
        true, predicted = decode_labels([rows.labels[name] for name in self.label_columns])
        confidence = np.asarray(rows.numbers[self.probability_columns[0]])
        for name, column in zip(PAIR_COLUMNS, (true, predicted, confidence), strict=True):
            self.check_column(rows.batch, name, column)
        self.check_kinds(rows.batch, true, predicted)
        return FilePredictions(
            y_true=true == predicted,
            y_prob=confidence,
            label=true,
            pairs=True,
            classes=self.classes,
            note=rows.batch.header.note,
            columns={"y_prob": list(self.probability_columns)},
            cells=dict(zip(self.label_columns, (true, predicted), strict=True)),
        )

    def check_column(self, batch: Batch, name: str, column: NDArray[Any]) -> None:
        """Refuse a column with several values in a row, or with missing ones."""
        if column.ndim != 1:
            rule = f"has shape {column.shape}, must have one value in each row"
            raise InputError(name, rule, place=f"{batch.file}: column {name}")
        missing = np.flatnonzero(column != column)
        if missing.size:
            place = batch.cell_place(int(missing[0]), name)
            raise InputError(
                name, "must not be missing", value=float("nan"), place=place, rows=missing.size
            )

    def check_kinds(self, batch: Batch, true: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Refuse labels of two kinds, such as texts and numbers, which are never equal."""
        kinds = [column.dtype.kind.replace("u", "i") for column in (true, predicted)]
        are_numbers = set(kinds) <= {"i", "f", "b"}
        if kinds[0] != kinds[1] and not are_numbers:
            true_name, predicted_name = self.label_columns
            rule = f"has dtype {predicted.dtype}, {true_name} has {true.dtype}"
            place = f"{batch.file}: column {predicted_name}"
            raise InputError(predicted_name, rule, place=place)


@dataclass(frozen=True)
class LogLayout:
    """A log of lm-evaluation-harness: objects with log-likelihoods, no columns."""

    label_columns: Sequence[str] = ()
    probability_columns: Sequence[str] = ()
    true_columns: Sequence[str] = ()

    def interpret(self, rows: ReadRows) -> FilePredictions:
        """Turn the objects of a log into predictions."""
        return read_questions([rows.batch])


Layout = ColumnLayout | OutcomeLayout | PairLayout | LogLayout


def read_questions(batches: Sequence[Batch]) -> FilePredictions:
    """Read logs of multiple-choice questions as predictions.

    They are class vectors if all questions have as many choices and a clear target; otherwise they
    are whether the likeliest choice is right, and its softmax.
    """
    logs = [read_log(batch) for batch in batches]
    scores = [choices for log in logs for choices in log.scores]
    hits = np.array([hit for log in logs for hit in log.hits])
    min_choices = min(map(len, scores))
    max_choices = max(map(len, scores))
    note = "log of lm-evaluation-harness, softmax over the choices of each question"
    has_targets = all(log.right is not None for log in logs)
    if has_targets and min_choices == max_choices:
        label = np.array([right for log in logs for right in log.right or ()])
        return FilePredictions(label, np.array(scores), label, from_logits=True, note=note)
    logits = np.full((len(scores), max_choices), -np.inf)
    for row, choices in zip(logits, scores, strict=True):
        row[: len(choices)] = choices
    top = 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)
    if min_choices != max_choices:
        note += f", which has {min_choices} to {max_choices}: of the likeliest choice alone"
    if not has_targets:
        note += f"; no target is one of them, so {ACCURACY} says whether it is right"
    return FilePredictions(hits, top, hits, pairs=True, note=note)


# --- the layout of a file -------------------------------------------------------------------------


def choose_layout(path: str, header: Header, options: ColumnOptions) -> Layout:
    """Choose the layout of a file by its header, and by columns that are named."""
    are_named = options.y_true is not None or options.y_prob is not None
    has_log = header.first_object is not None and is_log(header.first_object)
    is_log_layout = has_log and not are_named
    # Outcomes of pairs are no shares.
    has_shares = options.soft and set(SHARE_COLUMNS) <= set(header.names)
    has_pairs = set(PAIR_COLUMNS) <= set(header.names) and not has_shares
    is_pair_layout = has_pairs and not (are_named or has_log)
    if options.classes is not None:
        if not is_pair_layout:
            rule = f"goes with the columns {','.join(PAIR_COLUMNS)} only"
            raise InputError("classes", rule)
        check_integer("classes", options.classes, 2, MAX_CLASSES)
    if is_log_layout:
        return LogLayout()
    if is_pair_layout:
        return PairLayout(options.classes)
    outcomes = options.label.split(",")
    has_outcomes = len(outcomes) > 1 and options.label not in header.names
    if options.y_prob:
        taken = {options.label, *outcomes, options.weights, *options.columns.values()}
        patterns = options.y_prob.split(",")
        names = [name for pattern in patterns for name in match_columns(header, pattern, taken)]
        if has_outcomes:
            return OutcomeLayout(outcomes, names)
        return ColumnLayout(options.label, names, has_names=True)
    names = find_probability_columns(header)
    if has_outcomes:
        return OutcomeLayout(outcomes, names)
    if names[0] in header.names:
        return ColumnLayout(options.label, names, has_names=False)
    named_after_labels = find_class_columns(path, options.label, header.names)
    if named_after_labels:
        return ColumnLayout(options.label, named_after_labels, has_names=True)
    return ColumnLayout(options.label, names, has_names=False)


def names_to_keep(
    header: Header, taken: Collection[str], wanted: Collection[str] | None
) -> list[str]:
    """Find the columns to keep as they are, of the ones not taken; None wants all."""
    # Which of two columns of one name is meant would be a guess.
    names = [name for name, n in Counter(header.names).items() if n == 1 and name not in taken]
    if header.first_object is not None:
        # What is within an object or a list, or holds a column that is taken, is no other column.
        names = [x for x in names if x in header.first_object and not holds_columns(x, list(taken))]
    return names if wanted is None else [name for name in names if name in wanted]


def check_names(header: Header, argument: str, names: Sequence[str]) -> None:
    """Refuse names of columns that are missing or ambiguous."""
    for name in names:
        if name not in header.names:
            raise NoColumnError(argument, name, header)
        if header.names.count(name) > 1:
            raise InputError(argument, f"two columns are named {name!r}", place=header.file)


def match_columns(header: Header, pattern: str, taken: Collection[str | None]) -> list[str]:
    """Find the columns that a name or a pattern such as prob_* matches.

    Columns that are taken for something else are left out.

    They are in the order of the file, or if they are numbered, in the order of their numbers.
    """
    if pattern in header.names or WILDCARDS.isdisjoint(pattern):
        return [pattern]
    names = [name for name in header.names if name not in taken and fnmatchcase(name, pattern)]
    if header.first_object is not None:
        names = [name for name in names if not holds_columns(name, header.names)]
    words = {name.rstrip("0123456789") for name in names}
    are_numbered = len(words) == 1 and words.isdisjoint(names)
    if len(names) > 1 and are_numbered:
        (word,) = words
        names.sort(key=lambda name: int(name[len(word) :]))
        if first_number(names) is None:
            rule = f"{pattern!r} must mean columns that count up, found {names}"
            raise InputError("y_prob", rule, place=header.file)
    if len(names) < 2:
        rule = f"{pattern!r} must mean two columns or more, found {', '.join(names) or 'none'}"
        raise InputError("y_prob", rule, place=header.file)
    return names


def holds_columns(name: str, names: Sequence[str]) -> bool:
    """Decide whether a column of objects holds other columns, as "a" holds "a.b"."""
    return any(other.startswith(f"{name}.") for other in names)


def find_probability_columns(header: Header) -> list[str]:
    """Find the column y_prob, or columns p_0, p_1 and so on up to the last."""
    numbers = [
        int(name[2:]) for name in header.names if name.startswith("p_") and name[2:].isdecimal()
    ]
    if "y_prob" in header.names or not numbers:
        return ["y_prob"]
    if max(numbers) == 0:
        rule = "p_0 is the only probability; name P(positive) y_prob, or add p_1"
        raise InputError("y_prob", rule, place=header.file)
    # There is one name more than there are columns: the first that is missing is among them.
    return [f"p_{k}" for k in range(min(max(numbers), len(numbers)) + 1)]
