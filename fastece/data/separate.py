"""Problems with rows of their own: several yes/no tasks, and the rows of each predicted class.

The setting "tasks" has a problem for each column of labels, over the rows that have a label there.
The setting "top-label" has a problem for each predicted class: its rows with their confidence, as
in Gupta and Ramdas (2022, "Top-label calibration and multiclass-to-binary reductions"). A function
that needs the same rows in all problems refuses both by `need_rows`, as it refuses a stream.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers
from fastece.data.errors import InputError, rename_indices
from fastece.data.labels import hide_label
from fastece.data.options import ReadingOptions
from fastece.data.samples import Sample, effective_rows, scale_weights
from fastece.data.sources import (
    RANKS,
    ROWS,
    SEPARATE_SETTINGS,
    SETTINGS,
    SQUARES,
    Problems,
    Source,
)
from fastece.kernels.types import F64, I64

# Options of the reader that need one label for each row.
REFUSED_OPTIONS = ("counts", "soft", "votes")


@dataclass(eq=False)
class SeparateProblems(Source):
    """Binary problems, each over some of the caller's rows.

    Attributes
    ----------
    setting_name : str
        "tasks" or "top-label".
    problems : list of K Problems
        Each with the positions of its rows among the caller's.
    shares : (K,) float64 array
        The weight of each problem in a mean over all; they add up to 1.
    problem_names : list of K str
    """

    setting_name: str
    problems: list[Problems]
    shares: F64
    problem_names: Sequence[str]

    has = frozenset({RANKS, SQUARES, ROWS})

    def __post_init__(self) -> None:
        self.setting = SEPARATE_SETTINGS[self.setting_name]
        self.n_classes = len(self.problems)
        self.low = self.problems[0].low
        self.high = self.problems[0].high
        self.labels = None

    def __repr__(self) -> str:
        return f"<{self.n_problems} problems of the setting {self.setting_name!r}>"

    @cached_property
    def callers(self) -> I64:
        """The caller's row of each row, one problem after the other."""
        return np.concatenate([problem.positions for problem in self.problems])

    @cached_property
    def n(self) -> int:
        """Number of the caller's rows that are in a problem."""
        return int(np.unique(self.callers).size)

    @property
    def n_effective(self) -> float:
        """Effective number of the rows of all problems."""
        joined = self.joined()
        return effective_rows(joined.v, joined.n)

    @property
    def has_vectors(self) -> bool:
        """False: every problem is binary."""
        return False

    def average(self, values: Any) -> Any:
        """Average values (K, ...) over the problems, with their shares."""
        return np.tensordot(self.shares, values, axes=1)

    def sample(self, k: int, needs: str = RANKS) -> Sample:
        """Return problem `k` as a sample, with the positions of its rows."""
        return self.problems[k].sample(0, needs)

    def size(self, k: int) -> int:
        """Count the rows of problem `k`, which its statistics go by."""
        return self.problems[k].count()

    def problem(self, k: int) -> Problems:
        """Return problem `k` as a source of its own."""
        return self.problems[k]

    def joined(self) -> Problems:
        """Join the rows of all problems, one problem after the other."""
        samples = [problem.view() for problem in self.problems]
        weights = None
        if any(sample.v is not None for sample in samples):
            weights = np.concatenate([sample.weights for sample in samples])
        scores = np.concatenate([sample.s for sample in samples])
        outcomes = np.concatenate([sample.y for sample in samples])
        return Problems(SETTINGS["binary"], scores, outcomes, self.low, self.high, v=weights)

    def lack(self, needs: str, argument: str, reader: str) -> InputError:  # noqa: ARG002
        """Build the error for a reader that needs the same rows in all problems."""
        rule = f"{self.setting_name!r} goes without {reader}: its problems have rows of their own"
        hint = "one call for each predicted class, or the setting 'confidence'"
        if self.setting_name == "tasks":
            hint = "one call for each task: {y_true}[:, k] and {y_prob}[:, k]"
        return InputError("setting", rule, hint=hint)

    def name(self, k: int) -> str:
        """Name problem `k`."""
        return self.problem_names[k]


def is_separate(setting: Any) -> bool:
    """Decide whether a setting has problems with rows of their own."""
    return isinstance(setting, str) and setting in SEPARATE_SETTINGS


def refuse_table_options(options: ReadingOptions) -> None:
    """Refuse options that need one label for each row."""
    for name in REFUSED_OPTIONS:
        value = getattr(options, name)
        if value is not None and value is not False:
            raise InputError(name, f"goes without the setting {options.setting!r}")


# --- several yes/no tasks -------------------------------------------------------------------


def read_tasks(
    read: Any, y_true: Any, y_prob: Any, options: ReadingOptions, prob_name: str
) -> SeparateProblems:
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
        problems.append(replace(problem, rows=rows[problem.positions]))
    names = [f"task {k}" for k in range(n_tasks)]
    if columns:
        names = [f"task {name!r}" for name in columns]
    return SeparateProblems("tasks", problems, np.full(n_tasks, 1 / n_tasks), names)


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
) -> SeparateProblems:
    """Read the confidences and hits of each predicted class by themselves.

    `read` is `fastece.data.reading.read_problems`.
    """
    confidences = read(y_true, y_prob, replace(options, setting="confidence"))
    confidences, _ = scale_weights(confidences)
    as_array = containers.as_percents if options.percent else containers.as_probabilities
    prob = as_array(y_prob, prob_name)[confidences.positions]
    if prob.ndim == 1:
        middle = 0.0 if options.from_logits else 0.5
        predicted = (prob > middle).astype(np.int64)
    else:
        predicted = prob.argmax(axis=1)
    classes = np.unique(predicted)
    problems = [confidences.where(np.flatnonzero(predicted == k)).problem(0) for k in classes]
    weights = np.array([problem.view().total_weights.sum() for problem in problems])
    class_names = confidences.labels or confidences.names or range(confidences.n_classes)
    return SeparateProblems(
        "top-label",
        problems,
        weights / weights.sum(),
        [f"predicted class {class_names[k]!r}" for k in classes],
    )
