"""Problems with rows of their own: several yes/no tasks, and the rows of each predicted class.

The setting "tasks" has a problem for each column of labels, over the rows that have a label there.
The setting "top-label" has a problem for each predicted class: its rows with their confidence, as
in Gupta and Ramdas (2022, "Top-label calibration and multiclass-to-binary reductions"). Either is
one table, whose problems lie one after the other.
"""

import math
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers
from fastece.data.counted import as_counts
from fastece.data.errors import InputError, rename_indices
from fastece.data.labels import hide_label
from fastece.data.options import ReadingOptions
from fastece.data.samples import scale_weights
from fastece.data.table import SEPARATE_SETTINGS, RowTable, join_tables, log_odds_of
from fastece.kernels.types import I64


def is_separate(setting: Any) -> bool:
    """Decide whether a setting has problems with rows of their own."""
    return isinstance(setting, str) and setting in SEPARATE_SETTINGS


def refuse_soft_labels(options: ReadingOptions) -> None:
    """Refuse soft labels of tasks, whose labels are a matrix already."""
    for name in ("soft", "votes"):
        value = getattr(options, name)
        if value is not None and value is not False:
            raise InputError(name, "goes without the setting 'tasks'")


# --- several yes/no tasks -------------------------------------------------------------------


def read_tasks(
    read: Any, y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str
) -> RowTable:
    """Read each column of labels (n, T) with its column of probabilities (n, T).

    `read` is `fastece.data.reading.read_problems`.
    """
    prob = containers.as_array(prob_name, y_prob)
    labels = containers.as_array("y_true", y_true)
    if prob.ndim != 2:
        rule = f"'tasks' needs {prob_name} of shape (n, T), a column for each task"
        hint = containers.hint_of_list(prob_name, prob.shape)
        raise InputError("setting", rule, value=prob.shape, hint=hint)
    if labels.shape != prob.shape:
        rule = f"must have the shape (n, T) of {prob_name} with 'tasks', {prob.shape}"
        raise InputError("y_true", rule, value=labels.shape)
    n_rows, n_tasks = prob.shape
    if n_tasks == 0:
        raise InputError("y_true", "must have a column for each task, and has none")
    weights = containers.as_weights(options.sample_weight, n_rows)
    copies = None if options.counts is None else as_counts(options.counts, n_rows)
    columns = containers.column_names(y_prob)
    check_order_of_columns(containers.column_names(y_true), columns, prob_name)
    if containers.all_column_names(y_true):
        containers.check_order_of_numbers(containers.column_names(y_true), columns, prob_name)
    problems = []
    for k in range(n_tasks):
        _, is_missing = hide_label(labels[:, k], math.nan)
        rows = np.flatnonzero(~is_missing)
        if not rows.size:
            raise InputError("y_true", f"has no label of task {k}")
        if weights is not None and weights.any() and not weights[rows].any():
            raise InputError("sample_weight", f"must not all be 0 where task {k} has a label")

        def index_of_caller(
            argument: str, index: tuple[int, ...], rows: I64 = rows, k: int = k
        ) -> tuple[int, ...]:
            row = int(rows[index[0]])
            return (row,) if argument == "sample_weight" else (row, k)

        options_of_task = replace(
            options,
            setting="binary",
            sample_weight=None if weights is None else weights[rows],
        )
        with rename_indices(index_of_caller):
            problem = read(plain_labels(labels[rows, k]), prob[rows, k], options_of_task)
        callers = rows[problem.positions]
        c = None if copies is None else copies[callers]
        problems.append(problem.replace(rows=callers, c=c))
    names = [f"task {k}" for k in range(n_tasks)]
    if columns:
        names = [f"task {name!r}" for name in columns]
    return join_tables(
        problems, setting=SEPARATE_SETTINGS["tasks"], n_classes=n_tasks, problem_names=names
    )


def check_order_of_columns(label_columns: list[str], columns: list[str], prob_name: str) -> None:
    """Refuse columns of labels with the names of the predictions in another order."""
    if label_columns != columns and sorted(label_columns) == sorted(columns):
        rule = f"must have its columns in the order of {prob_name}, {columns}"
        raise InputError("y_true", rule, value=label_columns)


def plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Turn numbers (n,) that were beside missing labels, as objects, into floats."""
    if labels.dtype.kind == "O" and all(isinstance(label, Real) for label in labels):
        return labels.astype(np.float64)
    return labels


# --- the rows of each predicted class -------------------------------------------------------


def read_predicted_classes(
    read: Any, y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str
) -> RowTable:
    """Read the confidences and hits of each predicted class by themselves.

    `read` is `fastece.data.reading.read_rows_or_table`.
    """
    rows: RowTable = read(y_true, y_prob, replace(options, setting="confidence"))
    rows, _ = scale_weights(rows)
    as_array = containers.as_percents if options.percent else containers.as_probabilities
    prob = as_array(y_prob, prob_name)[rows.callers]
    if prob.ndim == 1:
        middle = 0.0 if options.from_logits else 0.5
        predicted = (prob > middle).astype(np.int64)
    else:
        predicted = prob.argmax(axis=1)
    class_names = rows.labels or rows.names or range(rows.n_classes)
    classes, problem_of_row = np.unique(predicted, return_inverse=True)
    weights = np.bincount(problem_of_row, rows.total_weights)
    score, hit = rows.read()
    logits = None if rows.logits is None else log_odds_of(rows.logits, None)
    confidences = rows.replace(prob=score, label=hit, convert=None, logits=logits)
    in_problems = confidences.where(np.argsort(problem_of_row, kind="stable"))
    return in_problems.replace(
        offsets=np.append(0, np.cumsum(np.bincount(problem_of_row))),
        setting=SEPARATE_SETTINGS["top-label"],
        n_classes=classes.size,
        labels=None,
        names=None,
        shares=weights / weights.sum(),
        shares_are_drawn=True,
        problem_names=[f"predicted class {class_names[k]!r}" for k in classes],
    )
