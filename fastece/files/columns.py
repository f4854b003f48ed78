"""Columns of a table that hold the labels, the probabilities, the weights and so on.

`choose_columns` takes the columns that options name, or columns of usual names. It never guesses: a
table without them is refused by an error that lists its columns, what these hold, and the options
that name them.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from fastece.data.containers import SEPARATORS, first_number, label_text
from fastece.data.errors import BadArgumentError, InputError
from fastece.data.labels import are_right_or_wrong
from fastece.data.parameters import check_integer
from fastece.files.cells import MISSING_RULE, NUMBER, Texts, read_labels, read_numbers
from fastece.files.tables import Columns, Table

# Columns of the true and the predicted label, and of the confidence of the prediction.
PAIR_COLUMNS = ("true_label", "pred_label", "confidence")
# Names by which a column shows that it holds whether predictions were right.
NAMES_OF_HITS = frozenset({"correct", "is_correct", "was_correct", "correctness"})
LAYOUTS = "y_true,y_prob or y_true,p_0,...,p_{K-1} or " + ",".join(PAIR_COLUMNS)
# Characters by which a name is a pattern of names.
WILDCARDS = frozenset("*?[")
BOOL_WORDS = {"true", "false", "True", "False", "TRUE", "FALSE"}
# Names that a message lists.
MAX_LISTED = 8
# Classes behind a top label, at most.
MAX_CLASSES = 2**31


@dataclass(frozen=True)
class ReadOptions:
    """Knowledge of a caller about a file.

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
    labels : collection of str
        Labels in their order; without them the labels of a stream must be numbers of classes.
    percent : bool
        Whether probabilities are percents, which are divided by 100.
    skips_missing : bool
        Whether rows without a label or a prediction are left out, and counted; otherwise they are
        an error.
    """

    y_true: str | None = None
    y_prob: str | None = None
    classes: int | None = None
    weights: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Collection[str] = ()
    percent: bool = False
    skips_missing: bool = False

    @property
    def label(self) -> str:
        """The column of the labels."""
        return self.y_true or "y_true"

    @property
    def names_columns(self) -> bool:
        """Whether the columns of labels or probabilities are named."""
        return self.y_true is not None or self.y_prob is not None


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of a table that are read.

    Attributes
    ----------
    labels : list of str
        One column of labels, the true and the predicted label of pairs, or the outcome of each
        class.
    probabilities : list of str
    others : dict
        Columns of weights, and of other arguments, by these arguments.
    are_pairs : bool
        Whether the columns are `PAIR_COLUMNS`.
    are_named : bool
        Whether columns of probabilities may be named after the classes.
    """

    labels: list[str]
    probabilities: list[str]
    others: dict[str, str]
    are_pairs: bool = False
    are_named: bool = False

    @property
    def have_outcomes(self) -> bool:
        """Whether there is a column of outcomes for each class."""
        return len(self.labels) > 1 and not self.are_pairs

    @property
    def true_labels(self) -> list[str]:
        """Columns without which a row has no label."""
        return self.labels[:1] if self.are_pairs else self.labels

    def names(self) -> list[str]:
        """List each column once."""
        return list(dict.fromkeys([*self.labels, *self.probabilities, *self.others.values()]))

    def numbers(self) -> list[str]:
        """List the columns whose cells are numbers."""
        weights = self.others.get("sample_weight")
        return [*self.probabilities, *([] if weights is None else [weights])]


def choose_columns(table: Table, options: ReadOptions) -> ChosenColumns:
    """Choose the columns of a table by its names, and by options."""
    others = dict(options.columns)
    if options.weights is not None:
        others["sample_weight"] = options.weights
    if table.group_column:
        others.setdefault("groups", table.group_column)
    are_pairs = not options.names_columns and set(PAIR_COLUMNS) <= set(table.names)
    if options.classes is not None:
        if not are_pairs:
            raise InputError("classes", f"goes with the columns {','.join(PAIR_COLUMNS)} only")
        check_integer("classes", options.classes, 2, MAX_CLASSES)
    if are_pairs:
        chosen = ChosenColumns([*PAIR_COLUMNS[:2]], [PAIR_COLUMNS[2]], others, are_pairs=True)
    else:
        outcomes = options.label.split(",")
        labels = [options.label] if options.label in table.names else outcomes
        taken = {*labels, *others.values()}
        chosen = choose_probabilities(table, options, labels, others, taken)
    check_names(table, "y_true", chosen.labels)
    check_names(table, "y_prob", chosen.probabilities)
    for argument, name in chosen.others.items():
        check_names(table, argument, [name])
    return chosen


def choose_probabilities(
    table: Table, options: ReadOptions, labels: list[str], others: dict[str, str],
    taken: Collection[str],
) -> ChosenColumns:  # fmt: skip
    """Choose columns of probabilities: named, usual, or named after the labels."""
    if options.y_prob:
        free_names = [name for name in table.names if name not in taken]
        patterns = options.y_prob.split(",")
        names = [name for pattern in patterns for name in match(table, pattern, free_names)]
        return ChosenColumns(labels, names, others, are_named=True)
    names = find_usual_probabilities(table)
    if names[0] not in table.names and len(labels) == 1:
        class_columns = find_class_columns(table, labels[0])
        if class_columns:
            return ChosenColumns(labels, class_columns, others, are_named=True)
    return ChosenColumns(labels, names, others)


def find_usual_probabilities(table: Table) -> list[str]:
    """Find the column y_prob, or columns p_0, p_1 and so on up to the last."""
    numbers = [int(x[2:]) for x in table.names if x.startswith("p_") and x[2:].isdecimal()]
    if "y_prob" in table.names or not numbers:
        return ["y_prob"]
    if max(numbers) == 0:
        rule = "p_0 is the only probability; name P(positive) y_prob, or add p_1"
        raise InputError("y_prob", rule, place=table.file)
    # There is one name more than there are columns: the first that is missing is among them.
    return [f"p_{k}" for k in range(min(max(numbers), len(numbers)) + 1)]


def match(table: Table, pattern: str, free_names: Sequence[str]) -> list[str]:
    """Find the columns that a name, or a pattern such as prob_*, means.

    They are in the order of the file, or if they are numbered, in the order of their numbers.
    """
    if pattern in table.names or WILDCARDS.isdisjoint(pattern):
        return [pattern]
    names = table.without_holders([name for name in free_names if fnmatchcase(name, pattern)])
    words = {name.rstrip("0123456789") for name in names}
    are_numbered = len(words) == 1 and words.isdisjoint(names)
    if len(names) > 1 and are_numbered:
        (word,) = words
        names.sort(key=lambda name: int(name[len(word) :]))
        if first_number(names) is None:
            rule = f"{pattern!r} must mean columns that count up, found {names}"
            raise InputError("y_prob", rule, place=table.file)
    if len(names) < 2:
        rule = f"{pattern!r} must mean two columns or more, found {', '.join(names) or 'none'}"
        raise InputError("y_prob", rule, place=table.file)
    return names


def find_class_columns(table: Table, label: str) -> list[str]:
    """Find columns named after the labels, all with one prefix or all without.

    Numbers are no such labels, as features may be numbered too.
    """
    words: set[str] = set()
    # The error of a broken file shows when its rows are read.
    with suppress(BadArgumentError):
        if table.names.count(label) == 1:
            for batch in table.batches([label]):
                words |= distinct_labels(label, batch)
    names = [name for name in table.names if name != label]
    if all(map(str.isdecimal, words)):
        return []
    a_word = min(words)
    prefixes = {name.removesuffix(a_word) for name in names if name.endswith(a_word)}
    prefixes = {
        prefix
        for prefix in prefixes
        if (not prefix or prefix[-1] in SEPARATORS)
        and {prefix + word for word in words} <= set(names)
    }
    if len(prefixes) != 1:
        # To take one of several would be a guess.
        return []
    (prefix,) = prefixes
    if prefix:
        columns = [name for name in names if name.startswith(prefix)]
    else:
        columns = [name for name in names if name in words]
    return columns if len(columns) > 1 else []


def distinct_labels(label: str, batch: Columns) -> set[str]:
    """Find the distinct labels of a batch as text; none if a cell is bad."""
    try:
        labels = read_labels(label, batch[label]).values
    except InputError as error:
        if error.rule == MISSING_RULE:
            return set()
        raise
    if isinstance(labels, Texts):
        return set(labels.words)
    return {label_text(x) for x in np.unique(labels)} if labels.ndim == 1 else set()


def are_hits(label: str, probability: str, outcomes: Any) -> bool:
    """Decide whether labels mean that predictions were right or wrong.

    Its name shows it, or right and wrong beside a column of confidences.
    """
    if last_part(label) in NAMES_OF_HITS:
        return True
    return last_part(probability) == PAIR_COLUMNS[2] and are_right_or_wrong(outcomes)


def last_part(name: str) -> str:
    """Return the last part of a name, which may be a path into an object."""
    return name.lower().rpartition(".")[2]


# --- columns that are not there -------------------------------------------------------------------


def check_names(table: Table, argument: str, names: Sequence[str]) -> None:
    """Refuse columns that a table does not have, or has twice."""
    for name in names:
        count = table.names.count(name)
        if count > 1:
            raise InputError(argument, f"two columns are named {name!r}", place=table.file)
        if count == 0:
            refuse_name(table, argument, name)


def refuse_name(table: Table, argument: str, name: str) -> None:
    """Raise the error about a column that a table does not have."""
    # An argument that takes several columns is named by['column'] here.
    hint = f"{{{argument.partition('[')[0]}}} takes the name of a column"
    if argument in ("y_true", "y_prob"):
        hint = (
            f"expected {LAYOUTS}, or name the labels with {{y_true}} and the probabilities "
            "with {y_prob}, one column or one for each class"
        )
    rule = f"no column {name!r}, it has {list_columns(table)}"
    raise InputError(argument, rule, place=table.file, hint=hint)


def list_columns(table: Table) -> str:
    """List the columns of a table, with their kinds."""
    names = list(dict.fromkeys(table.names))
    listed = [describe_column(table, name) for name in names[:MAX_LISTED]]
    if len(names) > MAX_LISTED:
        listed.append("...")
    text = ", ".join(listed) or "none"
    if names and all(map(NUMBER.fullmatch, names)):
        text += "; these names are numbers: is the header missing?"
    return text


def describe_column(table: Table, name: str) -> str:
    """Name a column, with the kind of its first cells, if these can be read."""
    if table.names.count(name) > 1:
        return name
    try:
        batch = next(table.batches([name], [name]), None)
    except Exception:
        # The fault of a broken file shows when its columns are found.
        return name
    return name if batch is None else f"{name} ({column_kind(name, batch)})"


def column_kind(name: str, batch: Columns) -> str:
    """Describe the cells of a column."""
    try:
        numbers = np.asarray(read_numbers(name, batch[name]).values)
    except InputError:
        return kind_of_labels(name, batch)
    if numbers.dtype.kind not in "biuf":
        return "neither text nor numbers"
    if numbers.ndim > 1:
        return f"{numbers.shape[1]} numbers each"
    if numbers.dtype.kind == "b":
        return "true or false"
    if np.isin(numbers, (0, 1)).all():
        return "0 or 1"
    if (numbers % 1 == 0).all():
        return "whole numbers"
    return "numbers from 0 to 1" if ((numbers >= 0) & (numbers <= 1)).all() else "numbers"


def kind_of_labels(name: str, batch: Columns) -> str:
    """Describe the cells of a column that are no numbers."""
    try:
        labels = read_labels(name, batch[name]).values
    except InputError:
        return "mixed or missing"
    is_bool = isinstance(labels, Texts) and set(labels.words) <= BOOL_WORDS
    return "true or false" if is_bool else "text"
