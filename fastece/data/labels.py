"""Labels as class indices: which column of the probabilities a label stands for."""

import math
from collections.abc import Callable, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers as arrays
from fastece.data.errors import InputError, InputTypeError, repr_of
from fastece.kernels.types import F64, I64

Array = NDArray[Any]

# Rows that are made of a soft label, and at least one for each of its classes: where votes hardly
# depend on their row, intervals are as narrow as of so many times the rows, and not narrower.
MOST_VOTES = 10
# How the missing values of Python, numpy and pandas are written.
MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}


def as_labels(
    value: Any, y_prob: Array, prob_name: str, names: Sequence[str], labels: Any, pos_label: Any,
    is_sorted: bool = False,
) -> tuple[Array, list[Any] | None]:  # fmt: skip
    """Convert the caller's labels (n,) to class indices; return the labels too.

    Numeric labels are not yet checked, and the list of labels is None for them. `names` are the
    names of the columns of `y_prob`; `labels` and `pos_label` are as in `fastece.ece`. Columns
    without names are those of the sorted strings if `is_sorted`.
    """
    is_given = labels is not None or pos_label is not None
    y = arrays.as_array("y_true", as_objects(value) if is_given else value)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        hint = one_hot_hint(y, y_prob) or swap_hint(y, y_prob)
        raise InputError("y_true", f"must have shape (n,) or (n, 1), got {y.shape}", hint=hint)
    if y.size == 0:
        raise InputError("y_true", "is empty")
    if y.size != len(y_prob):
        raise InputError("y_true", f"has {y.size} rows, but {prob_name} has {len(y_prob)}")
    order = class_order(y, y_prob, prob_name, names, labels, pos_label, is_sorted)
    if order is None:
        return arrays.as_real("y_true", y, "must be integers, bools or strings"), None
    return label_positions(y, order), order


def as_soft_labels(
    value: Any, votes: Any, y_prob: Array, prob_name: str, names: Sequence[str]
) -> tuple[I64, I64, F64]:
    """Turn soft labels into several rows of one label: their rows, labels and weights.

    Each becomes as many as it has votes, `MOST_VOTES` at most but one for every class, whose
    weights are its shares; without votes they are 0. If all votes of every row agree, one says all.
    """
    y, n = np.asarray(arrays.as_real("y_true", value), np.float64), len(y_prob)
    y, shape = y[:, 0] if y.shape[1:] == (1,) else y, (n, *(y_prob.shape[1:] or (2,)))
    if y.shape != shape and (y.shape != (n,) or shape[1] > 2):
        wanted = f"({n},) or " * (shape[1] == 2) + str(shape)
        raise InputError("y_true", f"soft labels must have shape {wanted}, got {y.shape}")
    own = arrays.column_names(value)
    if own and names and own != [*names]:
        raise InputError("y_true", f"must have {prob_name}'s columns, {names!r:.200}", value=own)
    rule = "soft labels must lie in [0, 1]" + ", and those of a row sum to 1" * (y.ndim > 1)
    total, low, slack = np.ones(n), arrays.LOWEST, arrays.ROW_SUM_TOLERANCE
    if votes is not None:
        rule, low, slack = "must be whole numbers of votes, and {votes} in all", np.float64(0), 0.0
        total = np.asarray(arrays.as_weights(votes, n, "votes"))
    count = np.column_stack([total - y, y]) if y.ndim == 1 else y
    good = (count >= low).all(1) & (np.abs(count.sum(1) - total) <= slack)
    good &= votes is None or (count == np.trunc(count)).all(1)
    if not good.all():
        bad = np.flatnonzero(~good)
        raise InputError("y_true", rule, index=int(bad[0]), value=y[bad[0]], rows=bad.size)
    share = count.clip(0.0)
    share[total == 0, 0] = 1.0
    share /= share.sum(1, keepdims=True)
    row, label = np.nonzero(share)
    most = np.minimum(np.inf if votes is None else total[row], MOST_VOTES if row.size > n else 1)
    copies = np.rint(share[row, label] * most).clip(1).astype(np.int64)
    weight = share[row, label] / copies * (total[row] > 0)
    return np.repeat(row, copies), np.repeat(label, copies), np.repeat(weight, copies)


def class_order(
    y: Array, y_prob: Array, prob_name: str, names: Sequence[str], labels: Any, pos_label: Any,
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
        order = arrays.as_array("labels", as_objects(labels)).ravel().tolist()
        if len(order) != n_classes:
            rule = f"must name {n_classes} classes, got {len(order)}: {order!r:.200}"
            raise InputError("labels", rule)
        for k, label in enumerate(order):
            if label in order[:k]:
                raise InputError("labels", "must be distinct", index=k, value=label)
    elif names:
        order = name_order(y, names, prob_name)
    if order is None and pos_label is not None:
        other, *rest = [*(x for x in distinct_labels(y) if x != pos_label), None]
        if len(rest) > 1:
            rule = f"must be the positive label {pos_label!r} or one other, such as {other!r}"
            refuse_labels("y_true", rule, y, lambda x: x not in (pos_label, other))
        order = [other, pos_label]
    elif order is None and y.dtype.kind in "OUST":
        order = string_order(y, y_prob, prob_name, names, is_sorted)
    if order is not None and pos_label is not None and order[1] != pos_label:
        raise InputError("pos_label", f"must be class 1, {repr_of(order[1])}", value=pos_label)
    return order


def name_order(y: Array, names: Sequence[str], prob_name: str) -> list[Any] | None:
    """List the labels in the order of the columns, if columns are named after them.

    Of prefixes that all columns share only strings are free: 1 is a class index beside p_1.
    """
    first, is_text = arrays.label_text(y[0]), y.dtype.kind in "OUST"
    names = next((x for x in arrays.without_prefix(names) if first in x or not is_text), [])
    if first not in names:
        return None
    found = distinct_labels(y)
    label_of = {arrays.label_text(label): label for label in found}
    if len(label_of) < len(found) or not label_of.keys() <= set(names):
        return None
    if len(set(names)) < len(names):
        rule = f"two columns have one name, {names!r:.200}"
        raise InputError(prob_name, rule, hint="pass {labels}")
    return [label_of.get(name, name) for name in names]


def string_order(
    y: Array, y_prob: Array, prob_name: str, names: Sequence[str], is_sorted: bool
) -> list[Any]:
    """Sort the strings if columns have no names, and `is_sorted`; else refuse them."""
    found = distinct_labels(y)
    if not all(map(arrays.is_text, found)):
        rule, hint = "must be integers, bools or strings", "pass {labels} for others"
        refuse_labels("y_true", rule, y, lambda x: not arrays.is_text(x), hint, InputTypeError)
    if y_prob.ndim == 1:
        rule = f"which label {prob_name} is the probability of is unknown"
        hint = "pass {pos_label}, or {labels} with the negative and the positive one"
    elif names and arrays.first_number(names) is None:
        rule, hint = f"must be names of {prob_name}'s columns, {names!r:.200}", "pass {labels}"
        known = {*chain(*arrays.without_prefix(names))}
        refuse_labels("y_true", rule, y, lambda x: arrays.label_text(x) not in known, hint)
    elif is_sorted and len(found) == y_prob.shape[1]:
        return found
    else:
        shown = ", ".join(map(repr_of, found[:20]))
        rule = f"which of the {y_prob.shape[1]} columns of {prob_name} each label stands for"
        rule += f" is unknown, found {shown}{', ...' if len(found) > 20 else ''}"
        hint = f"pass {{labels}}, in the order of {prob_name}'s columns"
    raise InputError("y_true", rule, index=0, value=y[0], hint=hint)


def as_groups(value: Any, n: int, name: str = "by") -> tuple[I64, list[Any]]:
    """Find the group (n,) of each row among the labels that occur, and these labels.

    Dates are compared as text.
    """
    array = arrays.as_array(name, as_objects(value))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        rule = f"must have shape ({n},) as {{y_prob}} has rows, got {array.shape}"
        raise InputError(name, rule)
    if array.dtype.kind in "mM":
        text = array.astype(str).astype(object)
        text[np.isnat(array)] = None
        array = text
    labels = distinct_labels(array, name)
    return label_positions(array, labels), labels


def distinct_labels(y: Array, name: str = "y_true") -> list[Any]:
    """Find the labels that occur, in the order of their text; none may be missing."""
    try:
        found = sorted(set(y.tolist()), key=str)
    except TypeError as error:
        raise InputTypeError(name, f"labels must be hashable: {error}") from error
    if any(map(is_missing, found)):
        refuse_labels(name, "must not be missing or blank", y, is_missing)
    return found


def refuse_labels(
    name: str, rule: str, y: Array, is_bad: Callable[[Any], bool], hint: str = "",
    error: type[InputError] | type[InputTypeError] = InputError,
) -> None:  # fmt: skip
    """Refuse an array at its first label for which `is_bad` holds."""
    arrays.refuse_where(name, rule, y, arrays.elementwise(is_bad), hint, error)


def is_missing(value: Any) -> bool:
    """Decide whether this is a missing value, or a string of blanks."""
    return not value.strip() if arrays.is_text(value) else str(value) in MISSING


def label_positions(y: Array, order: list[Any]) -> I64:
    """Find the position of each label in the class order."""
    kind = Real if y.dtype.kind in "biuf" else str if y.dtype.kind == "U" else ()
    if all(isinstance(label, kind) for label in order):  # numpy compares them as Python does
        table = np.asarray(order)
        ranks = np.argsort(table)
        nearest = ranks[np.searchsorted(table[ranks], y).clip(max=table.size - 1)]
        found = np.where(table[nearest] == y, nearest, -1)
    else:
        position = {label: k for k, label in enumerate(order)}
        try:
            found = np.array([position.get(label, -1) for label in y.tolist()], np.int64)
        except TypeError as error:
            raise InputTypeError("y_true", f"labels must be hashable: {error}") from error
    if found.min() < 0:
        known, shown = set(order), ", ".join(map(repr_of, order[:20]))
        rule = f"must be among the labels {shown}"
        refuse_labels("y_true", rule, y, lambda x: x not in known)
    return found


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
    low, high = arrays.find_extremes(y)
    if y.dtype.kind == "f":
        if not -math.inf < low <= high < math.inf:
            arrays.refuse_infinite("y_true", y)
        rule, hint = "labels must be whole numbers", swap_hint(y, y_prob)
        arrays.refuse_where("y_true", rule, y, lambda part: part != np.trunc(part), hint)
    if low < 0 or high >= n_classes:
        rule, hint = f"labels must be from 0 to {n_classes - 1}", "{labels} names other classes"
        arrays.refuse_where("y_true", rule, y, lambda part: (part < 0) | (part >= n_classes), hint)
    return y.astype(np.int64) if y.dtype.kind == "f" else y


def swap_hint(y: Array, y_prob: Array) -> str:
    """Return a hint if y_true looks like probabilities and y_prob like labels."""
    if y.dtype.kind != "f" or y.size == 0 or y.min() < 0 or y.max() > 1:
        return ""
    if y_prob.ndim == 1 and arrays.are_whole(y_prob):
        return "{y_true} looks like probabilities and {y_prob} like labels: are they swapped?"
    return "{y_true} looks like probabilities: {first} comes first"


def one_hot_hint(y: Array, y_prob: Array) -> str:
    """Return a hint if y_true looks one-hot, with the columns of y_prob."""
    if y.shape != y_prob.shape or y.dtype.kind not in "fiub" or not np.isin(y, (0, 1)).all():
        return ""
    return "it looks one-hot: pass its argmax(axis=1)" if (y.sum(axis=1) == 1).all() else ""
