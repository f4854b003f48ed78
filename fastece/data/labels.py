"""Labels as class indices: which column of the probabilities a label stands for.

`as_labels` reads hard labels, and `as_soft_labels` shares and votes. Numeric labels are class
indices unless the caller names classes; for others `class_order` finds the label of each column.
Nothing is guessed: where two readings are possible, the error names the option that decides.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers
from fastece.data.axes import RowAxes
from fastece.data.errors import Hint, InputError, InputTypeError, repr_of
from fastece.kernels.types import F64, I64

Array = NDArray[Any]

# Rows that are made of a soft label at most, unless it has more classes: where votes hardly depend
# on their row, intervals are as narrow as with so many times the rows, and not narrower.
MAX_VOTES = 10
# Labels that a message lists.
MAX_LABELS_SHOWN = 20
# How the missing values of Python, numpy and pandas are written.
MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}
# The remedy of the command line for rows without a label, or without a prediction.
SKIP_MISSING = "{missing} skip leaves such rows out"
# Kinds of dtypes that hold text or objects.
TEXT_KINDS = "OUST"
# Labels, as lower-case text, that say whether a prediction was right and name no class.
RIGHT_OR_WRONG = frozenset({"true", "false", "right", "wrong", "correct", "incorrect"})


def as_labels(
    value: Any, y_prob: Array, prob_name: str, names: Sequence[str], labels: Any, pos_label: Any,
    is_sorted: bool = False,
) -> tuple[Array, list[Any] | None]:  # fmt: skip
    """Convert the caller's labels (n,) to class indices; return the labels too.

    Numeric labels are not yet checked, and the list of labels is None for them. `names` are the
    names of the columns of `y_prob`; `labels` and `pos_label` are as in `fastece.ece`. If
    `is_sorted`, columns without names stand for the sorted strings.
    """
    is_given = labels is not None or pos_label is not None
    y = containers.as_array("y_true", as_objects(value) if is_given else value)
    if y.dtype.kind == "O" and not is_given:
        y = containers.numbers_of_objects("y_true", y)
    y = containers.without_single_column(y)
    if y.ndim != 1:
        hint = one_hot_hint(y, y_prob) or task_hint(y, y_prob) or share_hint(y, y_prob)
        raise InputError("y_true", f"must have shape (n,) or (n, 1), got {y.shape}", hint=hint)
    if y.size == 0:
        raise InputError("y_true", "is empty")
    if y.size != len(y_prob):
        raise InputError("y_true", f"has {y.size} rows, but {prob_name} has {len(y_prob)}")
    order = class_order(
        y, y_prob, prob_name=prob_name, names=names, labels=labels, pos_label=pos_label,
        is_sorted=is_sorted,
    )  # fmt: skip
    if order is None:
        return containers.as_real("y_true", y, "must be integers, bools or strings"), None
    return label_positions(y, order), order


def refuse_right_or_wrong(
    y_true: Any, y_prob: Any, prob_name: str, from_logits: Any = False, percent: Any = False
) -> None:
    """Refuse labels "right" and "wrong" beside scores below 1/2, for top labels.

    Such a setting takes one column as the probability of label 1, so a score below 1/2 counts as a
    prediction of label 0. The confidence of an answer that was wrong is no such prediction.
    """
    if not are_right_or_wrong(y_true):
        return
    as_numbers = containers.as_percents if percent else containers.as_probabilities
    prob = as_numbers(y_prob, prob_name)
    if prob.ndim > 1:
        return
    middle = 0.0 if from_logits else 0.5
    rule = f"must be at least {middle:g} in this setting, as {{y_true}} says right or wrong"
    hint = (
        "leave {setting} out: whether a prediction was right, and its confidence, are a binary "
        "problem",
        f"write labels as 0 and 1 if {prob_name} is the probability of label 1",
    )
    containers.refuse_where(prob_name, rule, prob, lambda part: part < middle, hint)


def are_right_or_wrong(y_true: Any) -> bool:
    """Decide whether labels are bools, or words for right and wrong."""
    y = containers.as_array("y_true", as_objects(y_true))
    if y.dtype.kind not in TEXT_KINDS:
        return y.dtype.kind == "b"
    words = {str(label).lower() for label in y.ravel().tolist() if not is_missing(label)}
    return words <= RIGHT_OR_WRONG


def hide_label(value: Any, ignored: Any) -> tuple[Array, NDArray[np.bool_]]:
    """Find the rows (n,) of an ignored label, and put another label in its place."""
    y = containers.as_array("y_true", as_objects(value))
    y = containers.without_single_column(y)
    is_ignored = np.zeros(y.shape, bool)
    is_float_nan = isinstance(ignored, Real) and ignored != ignored
    if y.dtype.kind == "O":
        is_equal = is_missing if is_float_nan else partial(is_same_label, ignored)
        is_ignored = containers.elementwise(is_equal)(y)
    elif is_float_nan:
        is_ignored = np.isnan(y) if y.dtype.kind == "f" else is_ignored
    elif isinstance(ignored, str) == (y.dtype.kind in TEXT_KINDS):
        is_ignored = np.asarray(y == ignored)
    if is_ignored.any() and not is_ignored.all():
        y = np.where(is_ignored, y[~is_ignored][0], y)
    return y, is_ignored


def is_same_label(label: Any, other: Any) -> bool:
    """Decide whether two labels are equal; a missing one equals none."""
    return not is_missing(other) and bool(label == other)


def as_soft_labels(
    value: Any, votes: Any, y_prob: Array, prob_name: str, names: Sequence[str]
) -> tuple[I64, I64, F64]:
    """Turn soft labels into several rows of one label: their rows, labels and weights.

    Each becomes as many rows as it has votes, at most `MAX_VOTES` but one for every class, whose
    weights are its shares; the weights are 0 without any votes. If all votes of every row agree,
    each becomes one row.

    Parameters
    ----------
    value : (n,) or (n, K) array_like
        Shares, or with `votes` counts, of the positive class or of all classes.
    votes : (n,) array_like or None
        Number of votes for each row.
    y_prob : (n,) or (n, K) array
    prob_name : str
        The caller's name of `y_prob`.
    names : sequence of str
        Names of the columns of `y_prob`.
    """
    y = read_soft_labels(value, y_prob, prob_name, names)
    n = len(y)
    n_votes = None if votes is None else np.asarray(containers.as_weights(votes, n, "votes"))
    total = np.ones(n) if n_votes is None else n_votes
    count = np.column_stack([total - y, y]) if y.ndim == 1 else y
    check_counts(y, count, n_votes)
    share = count.clip(0.0)
    share[total == 0, 0] = 1.0  # some class: the weight of the row will be 0
    share /= share.sum(1, keepdims=True)
    row, label = np.nonzero(share)
    share_of_label = share[row, label]
    is_split = row.size > n
    n_rows = np.full(row.size, MAX_VOTES if is_split else 1.0)
    if n_votes is not None:
        n_rows = np.minimum(n_rows, n_votes[row])
    copies = np.rint(share_of_label * n_rows).clip(1).astype(np.int64)
    weight = np.where(total[row] > 0, share_of_label / copies, 0.0)
    return np.repeat(row, copies), np.repeat(label, copies), np.repeat(weight, copies)


def read_soft_labels(value: Any, y_prob: Array, prob_name: str, names: Sequence[str]) -> F64:
    """Read shares or counts of the positive class (n,), or of all classes (n, K)."""
    y = np.asarray(containers.as_real("y_true", value), np.float64)
    if y.shape[1:] == (1,):
        y = y[:, 0]
    n = len(y_prob)
    n_classes = 2 if y_prob.ndim == 1 else y_prob.shape[1]
    is_binary = y.shape == (n,) and n_classes == 2
    if y.shape != (n, n_classes) and not is_binary:
        shapes = f"({n}, {n_classes})"
        if n_classes == 2:
            shapes = f"({n},) or {shapes}"
        raise InputError("y_true", f"soft labels must have shape {shapes}, got {y.shape}")
    columns = containers.column_names(value)
    if columns and names and columns != [*names]:
        rule = f"must have {prob_name}'s columns, {names!r:.200}"
        raise InputError("y_true", rule, value=columns)
    containers.check_order_of_numbers(columns, names, prob_name)
    return y


def check_counts(y: F64, count: F64, n_votes: F64 | None) -> None:
    """Refuse soft labels whose shares or votes (n, K) do not add up to a row."""
    if n_votes is None:
        rule = "soft labels must lie in [0, 1]"
        if y.ndim > 1:
            rule += ", and those of a row sum to 1"
        is_good = (count >= containers.LOWEST).all(1)
        is_good &= np.abs(count.sum(1) - 1) <= containers.ROW_SUM_TOLERANCE
    else:
        rule = "must be whole numbers of votes, and {votes} in all"
        is_good = ((count >= 0) & (count == np.trunc(count))).all(1)
        is_good &= count.sum(1) == n_votes
    if not is_good.all():
        bad = np.flatnonzero(~is_good)
        raise InputError("y_true", rule, index=int(bad[0]), value=y[bad[0]], rows=bad.size)


def class_order(
    y: Array, y_prob: Array, *, prob_name: str, names: Sequence[str], labels: Any, pos_label: Any,
    is_sorted: bool,
) -> list[Any] | None:  # fmt: skip
    """Find the label of each column; None where labels are class indices.

    The caller's `labels` come first; else the columns' names, if every label is one of them; else
    the positive label and one other; else strings if they are sorted.
    """
    n_classes = 2 if y_prob.ndim == 1 else y_prob.shape[1]
    if pos_label is not None and n_classes != 2:
        rule = f"needs P(positive) or 2 columns, {prob_name} has {n_classes}"
        raise InputError("pos_label", rule)
    order: list[Any] | None = None
    if labels is not None:
        order = given_order(labels, n_classes)
    elif names:
        order = name_order(y, names, prob_name)
        if order is None and y.dtype.kind not in TEXT_KINDS:
            order = bool_order(names) or number_order(y, names, prob_name, pos_label)
    if order is None and pos_label is not None:
        order = pair_order(y, pos_label)
    elif order is None and y.dtype.kind in TEXT_KINDS:
        order = string_order(y, y_prob, prob_name, names, is_sorted)
    if order is not None and pos_label is not None and order[1] != pos_label:
        raise InputError("pos_label", f"must be class 1, {repr_of(order[1])}", value=pos_label)
    return order


def given_order(labels: Any, n_classes: int) -> list[Any]:
    """Read the caller's labels of the columns, one for each and all different."""
    order: list[Any] = containers.as_array("labels", as_objects(labels)).ravel().tolist()
    if len(order) != n_classes:
        rule = f"must name {n_classes} classes, got {len(order)}: {order!r:.200}"
        raise InputError("labels", rule)
    for k, label in enumerate(order):
        if label in order[:k]:
            raise InputError("labels", "must be distinct", index=k, value=label)
    return order


def pair_order(y: Array, pos_label: Any) -> list[Any]:
    """List the other label, None if there is none, and the positive one."""
    others = [label for label in distinct_labels(y) if label != pos_label]
    other = others[0] if others else None
    if len(others) > 1:
        rule = f"must be the positive label {pos_label!r} or one other, such as {other!r}"
        refuse_labels("y_true", rule, y, lambda label: label not in (pos_label, other))
    return [other, pos_label]


def name_order(y: Array, names: Sequence[str], prob_name: str) -> list[Any] | None:
    """List the labels in the order of the columns, if columns are named after them.

    Strings may lack a prefix that all columns share; for numbers `number_order` is there.
    """
    first = containers.label_text(y[0])
    is_text = y.dtype.kind in TEXT_KINDS
    columns = next(
        (
            shorter
            for shorter in containers.without_prefix(names)
            if first in shorter or not is_text
        ),
        [],
    )
    if first not in columns:
        return None
    labels = distinct_labels(y)
    label_of = {containers.label_text(label): label for label in labels}
    if len(label_of) < len(labels) or not label_of.keys() <= set(columns):
        return None
    if len(set(columns)) < len(columns):
        rule = f"two columns have one name, {columns!r:.200}"
        raise InputError(prob_name, rule, hint="pass {labels}")
    return [label_of.get(name, name) for name in columns]


def bool_order(names: Sequence[str]) -> list[Any] | None:
    """List the bools that two columns are named after, as p_TRUE and p_FALSE are."""
    for shorter in containers.without_prefix(names):
        words = [name.lower() for name in shorter]
        if sorted(words) == ["false", "true"]:
            return [word == "true" for word in words]
    return None


def number_order(
    y: Array, names: Sequence[str], prob_name: str, pos_label: Any
) -> list[Any] | None:
    """List the numbers that end the names of all columns, which are then the classes.

    None where names are not numbered, or another rule on numeric labels is broken.
    """
    numbers = containers.numbers_of(names)
    is_whole = y.dtype.kind != "f" or bool((y == np.trunc(y)).all() and np.isfinite(y).all())
    if numbers is None or not is_whole:
        return None
    if len(set(numbers)) < len(numbers):
        rule = f"two columns have one number, {names!r:.200}"
        raise InputError(prob_name, rule, hint="pass {labels}")
    if pos_label is None:
        rule = f"must be a number at the end of the names of {prob_name}'s columns, {names!r:.200}"
        hint = "pass {labels}, in the order of the columns"
        containers.refuse_where("y_true", rule, y, lambda part: ~np.isin(part, numbers), hint)
    elif not np.isin(y, numbers).all():
        return None
    return numbers


def string_order(
    y: Array, y_prob: Array, prob_name: str, names: Sequence[str], is_sorted: bool
) -> list[Any]:
    """Sort the strings if columns have no names, and `is_sorted`; else refuse them."""
    labels = distinct_labels(y)
    if not all(map(containers.is_text, labels)):
        refuse_labels(
            "y_true", "must be integers, bools or strings", y,
            lambda label: not containers.is_text(label), "pass {labels} for others", InputTypeError,
        )  # fmt: skip
    has_names = bool(names) and containers.first_number(names) is None
    n_numbers = sum(map(is_number, labels))
    if not has_names and len(labels) > 2 and 0 < n_numbers < len(labels):
        rule = "must be a number or a bool, as other labels are"
        hint = "leave out rows that are none, such as totals, or pass {labels}"
        refuse_labels("y_true", rule, y, lambda label: not is_number(label), hint)
    if y_prob.ndim == 1:
        rule = f"which label {prob_name} is the probability of is unknown"
        if len(labels) == 2 and np.isfinite(y_prob).all():
            means = {label: float(y_prob[y == label].mean()) for label in labels}
            low, high = sorted(labels, key=means.__getitem__)
            rule += f"; its mean is {means[high]:.2g} where the label is {high!r}"
            rule += f" and {means[low]:.2g} where it is {low!r}"
        hint = "pass {pos_label}, or {labels} with the negative and the positive one"
    elif has_names:
        rule = f"must be names of {prob_name}'s columns, {names!r:.200}"
        hint = "pass {labels}"
        readings = {*chain(*containers.without_prefix(names))}
        refuse_labels(
            "y_true", rule, y, lambda label: containers.label_text(label) not in readings, hint
        )
    elif is_sorted and len(labels) == y_prob.shape[1]:
        return labels
    else:
        listed = ", ".join(map(repr_of, labels[:MAX_LABELS_SHOWN]))
        if len(labels) > MAX_LABELS_SHOWN:
            listed += ", ..."
        rule = f"which of the {y_prob.shape[1]} columns of {prob_name} each label stands for"
        rule += f" is unknown, found {listed}"
        hint = f"pass {{labels}}, in the order of {prob_name}'s columns"
    raise InputError("y_true", rule, index=0, value=y[0], hint=hint)


def is_number(text: Any) -> bool:
    """Decide whether a text is written as a number, or as a bool."""
    try:
        float(text)
    except ValueError:
        return str(text).lower() in ("true", "false")
    return True


# Integers in a range of at most so many times the rows are numbered without a sort.
MAX_RANGE = 4


class LabelledRows(NamedTuple):
    """A column: the position of each row's label (n,) among the labels."""

    position: I64
    labels: Sequence[Any]


def as_groups(value: Any, n: int, name: str = "by") -> LabelledRows:
    """Find the label of each of n rows among the labels that occur.

    Dates are compared as text.
    """
    array = containers.as_array(name, as_objects(value))
    array = containers.without_single_column(array)
    if array.shape != (n,):
        rule = f"must have shape ({n},) as {{y_prob}} has rows, got {array.shape}"
        raise InputError(name, rule)
    if array.dtype.kind in "mM":
        text = array.astype(str).astype(object)
        text[np.isnat(array)] = None
        array = text
    labels = distinct_labels(array, name)
    return LabelledRows(label_positions(array, labels), labels)


def read_parts(by: Any, axes: RowAxes) -> LabelledRows:
    """Find the group of each row, by one column or a combination of several.

    Groups are in the order of their labels: of numbers, or else of texts.
    """
    if isinstance(by, np.ndarray) and by.dtype.kind in "iu" and by.shape == (axes.n,):
        numbers = number_integers(by)
        if numbers is not None:
            return numbers
    columns = columns_of(by)
    numbered = [
        sort_labels(as_groups(axes.flatten("by", column), axes.n, by_name(name)))
        for name, column in columns.items()
    ]
    if len(numbered) == 1:
        return numbered[0]
    positions = np.column_stack([column.position for column in numbered])
    present, position = np.unique(positions, axis=0, return_inverse=True)
    labels = [
        tuple(column.labels[k] for column, k in zip(numbered, line, strict=True))
        for line in present.tolist()
    ]
    return LabelledRows(position.reshape(-1), labels)


def number_integers(by: Array) -> LabelledRows | None:
    """Find the group of each integer (n,); None where they are far apart."""
    low = int(by.min())
    high = int(by.max())
    if high - low > MAX_RANGE * by.size:
        return None
    distance = by - low
    is_there = np.zeros(high - low + 1, np.bool_)
    is_there[distance] = True
    number = np.cumsum(is_there) - 1
    return LabelledRows(number[distance], (np.flatnonzero(is_there) + low).tolist())


def sort_labels(column: LabelledRows) -> LabelledRows:
    """Return a column with its labels in the order of numbers, if they are numbers."""
    labels = column.labels
    if not all(isinstance(label, Real) for label in labels):
        return column
    order = sorted(range(len(labels)), key=labels.__getitem__)
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels))
    return LabelledRows(place[column.position], [labels[k] for k in order])


def columns_of(by: Any) -> dict[Any, Any]:
    """Return columns by name, of a mapping or a data frame; a single one by None."""
    names = by if isinstance(by, Mapping) else getattr(by, "columns", None)
    names = getattr(by, "column_names", names)  # of pyarrow
    if names is None:
        return {None: by}
    columns = {name: by[name] for name in names}
    if not columns:
        raise InputError("by", "must have a column")
    return columns


def by_name(name: Any) -> str:
    """Return the name of a column of `by` in messages."""
    return "by" if name is None else f"by[{name!r}]"


def distinct_labels(y: Array, name: str = "y_true") -> list[Any]:
    """Find the labels that occur, in the order of their text; none may be missing."""
    try:
        labels = sorted(set(y.tolist()), key=str)
    except TypeError as error:
        raise InputTypeError(name, f"labels must be hashable: {error}") from error
    if any(map(is_missing, labels)):
        refuse_labels(name, "must not be missing or blank", y, is_missing)
    return labels


def refuse_labels(
    name: str, rule: str, y: Array, is_bad: Callable[[Any], bool], hint: str = "",
    error: type[InputError] | type[InputTypeError] = InputError,
) -> None:  # fmt: skip
    """Refuse an array at its first label for which `is_bad` holds."""
    containers.refuse_where(name, rule, y, containers.elementwise(is_bad), hint, error)


def is_missing(value: Any) -> bool:
    """Decide whether this is a missing value, or a string of blanks."""
    if containers.is_text(value):
        return not value.strip()
    return str(value) in MISSING


def label_positions(y: Array, order: list[Any]) -> I64:
    """Find the position of each label in the class order."""
    if are_comparable(y, order):
        table = np.asarray(order)
        ranks = np.argsort(table)
        nearest = ranks[np.searchsorted(table[ranks], y).clip(max=table.size - 1)]
        positions = np.where(table[nearest] == y, nearest, -1)
    else:
        position_of = {label: k for k, label in enumerate(order)}
        try:
            positions = np.array([position_of.get(label, -1) for label in y.tolist()], np.int64)
        except TypeError as error:
            raise InputTypeError("y_true", f"labels must be hashable: {error}") from error
    if positions.min() < 0:
        classes = set(order)
        names = ", ".join(map(repr_of, order[:MAX_LABELS_SHOWN]))
        rule = f"must be among the labels {names}"
        refuse_labels("y_true", rule, y, lambda label: label not in classes)
    return positions


def are_comparable(y: Array, order: list[Any]) -> bool:
    """Decide whether numpy compares labels with classes as Python does."""
    if y.dtype.kind in "biuf":
        return all(isinstance(label, Real) for label in order)
    return y.dtype.kind == "U" and all(isinstance(label, str) for label in order)


def as_objects(value: Any) -> Any:
    """Turn a list of labels into an object array: numpy would make ["a", 1] strings."""
    if not isinstance(value, list | tuple) or not value:
        return value
    if any(isinstance(x, list) for x in value):
        return value
    if isinstance(value[0], str | int | float | np.generic) and len({*map(type, value)}) == 1:
        return value
    return np.fromiter(value, object, len(value))


def check_class_indices(y: Array, n_classes: int, y_prob: Array) -> Array:
    """Check labels that are integers or bools from 0 to K - 1."""
    if y.dtype.kind == "b":
        return np.not_equal(y.view(np.uint8), 0)  # bools made of other bytes are True
    low, high = containers.find_extremes(y)
    if y.dtype.kind == "f":
        if not -math.inf < low <= high < math.inf:
            hints = ("{ignore_nan} leaves rows without a label out", SKIP_MISSING)
            containers.refuse_infinite("y_true", y, hints)
        rule = "labels must be whole numbers"
        containers.refuse_where(
            "y_true", rule, y, lambda part: part != np.trunc(part), share_hint(y, y_prob)
        )
    if low < 0 or high >= n_classes:
        rule = f"labels must be from 0 to {n_classes - 1}"
        remedies = [
            "{labels} names other classes",
            "{ignore_label} leaves the rows of one label out",
        ]
        if n_classes == 2 and low >= 0:
            remedies.append("{counts} says of how many rows they count the events")
        containers.refuse_where(
            "y_true", rule, y, lambda part: (part < 0) | (part >= n_classes), tuple(remedies)
        )
    return y.astype(np.int64) if y.dtype.kind == "f" else y


def share_hint(y: Array, y_prob: Array) -> Hint:
    """Return a hint if y_true looks like shares of votes, or like probabilities."""
    if y.dtype.kind != "f" or y.size == 0 or y.min() < 0 or y.max() > 1:
        return ""
    if y_prob.ndim == 1 and containers.are_whole(y_prob):
        return "{y_true} looks like probabilities and {y_prob} like labels: are they swapped?"
    return ("shares of votes: {soft}", "it looks like probabilities: {first} comes first")


def task_hint(y: Array, y_prob: Array) -> str:
    """Return a hint if y_true holds several yes/no tasks, perhaps with gaps."""
    if y.shape != y_prob.shape or y.dtype.kind not in "fiub":
        return ""
    is_missing_label = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)
    if not (np.isin(y, (0, 1)) | is_missing_label).all():
        return ""
    return "for several yes/no tasks: {tasks}"


def one_hot_hint(y: Array, y_prob: Array) -> str:
    """Return a hint if y_true looks one-hot, with the columns of y_prob."""
    if y.shape != y_prob.shape or y.dtype.kind not in "fiub" or not np.isin(y, (0, 1)).all():
        return ""
    return "it looks one-hot: pass its argmax(axis=1)" if (y.sum(axis=1) == 1).all() else ""
