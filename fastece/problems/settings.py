"""Settings: how labels and predicted probabilities become weighted binary problems.

Each row of `SETTINGS` says which probability is the score and what a hit is. Problems are read a
slice of the rows at a time, so large data are converted in cache and never copied as a whole.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.inputs.arrays import as_weights, contiguous, repr_of
from fastece.inputs.labels import as_labels, check_class_indices
from fastece.inputs.parameters import check_flag, check_integer, list_names
from fastece.inputs.probabilities import (
    ROW_SUM_TOLERANCE,
    as_probabilities,
    check_probabilities,
    column_names,
    row_sum_tolerance,
    warn_if_probabilities,
)
from fastece.protocol import Rows, Sample, UncleanError

__all__ = ["SETTINGS", "ArrayProblems", "Setting", "read_problems"]

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    Parameters
    ----------
    name : str
        As the caller writes it and as results show it.
    column : int or None
        The class whose probability is the score, and whose label is a hit. None: the class of the
        largest probability, or every class in turn.
    per_class : bool
        Every class in turn: K problems rather than one.
    """

    name: str
    column: int | None = None
    per_class: bool = False

    @property
    def is_top(self) -> bool:
        """The score is the largest of K probabilities, so its support is [1/K, 1]."""
        return self.column is None and not self.per_class


SETTINGS = {
    "binary": Setting("binary", column=1),
    "confidence": Setting("confidence"),
    "classwise": Setting("classwise", per_class=True),
}


def class_setting(k: int) -> Setting:
    """Class `k` against the rest."""
    return Setting(f"class {k}", column=k)


def class_count(shape: tuple[int, ...]) -> int:
    """Number of classes; probabilities of the positive class alone are of 2."""
    return 2 if len(shape) == 1 else shape[1]


def find_setting(setting: Any, shape: tuple[int, ...]) -> Setting:
    """The row that `setting` names, for probabilities of this shape."""
    if isinstance(setting, str) and setting == "auto":
        return SETTINGS["binary" if len(shape) == 1 else "confidence"]
    n_classes = class_count(shape)
    if isinstance(setting, Integral) and not isinstance(setting, bool | np.bool_):
        return class_setting(check_integer("setting", setting, 0, n_classes - 1, "a class index"))
    if not isinstance(setting, str) or setting not in SETTINGS:
        names = ["auto", *SETTINGS]
        raise ValueError(f"setting: got {setting!r}; {list_names(names)}, or a class index")
    if setting == "binary" and n_classes != 2:
        raise ValueError(
            f"setting: 'binary' needs P(positive) or 2 columns, y_prob has shape {shape}; "
            "'confidence', 'classwise' or a class index take any number of classes"
        )
    return SETTINGS[setting]


# What has been read before, as `ArrayProblems.kind`: its kernels are compiled, so bad input can be
# found by them without compiling anything.
KNOWN_KINDS: set[tuple[Any, ...]] = set()

# Entries of class vectors that are converted at once, 8 MB, where they become one score a row.
CONVERTED = 2**20


@dataclass(frozen=True)
class ArrayProblems:
    """The arrays of one call, read as the problems of its setting.

    Attributes
    ----------
    setting : Setting
    label : (n,) array of integers, bools or floats
        Class index of each row.
    prob : (n,) or (n, K) array
        Probabilities, or logits with `from_logits`.
    v : (n,) float64 array or None
        Sample weights, greater than 0.
    rows : (n,) int64 array or None
        Positions in the caller's data, where rows of weight 0 were dropped.
    labels : list or None
        The labels that the class indices stand for.
    from_logits : bool
    is_checked : bool
        Every value has been checked; else that is done slice by slice as the rows are read.
    clip : bool
        Some probabilities are outside [0, 1] by rounding.
    prob_name : str
        What the caller calls the probabilities.
    row_tolerance : float
        How far from 1 a row may sum, by the dtype that the caller gave.
    """

    setting: Setting
    label: NDArray[Any]
    prob: NDArray[Any]
    v: F64 | None = None
    rows: NDArray[np.int64] | None = None
    labels: list[Any] | None = None
    from_logits: bool = False
    is_checked: bool = False
    clip: bool = False
    prob_name: str = "y_prob"
    row_tolerance: float = ROW_SUM_TOLERANCE

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.label.size

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return class_count(self.prob.shape)

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return self.n_classes if self.setting.per_class else 1

    @property
    def low(self) -> float:
        """Lower end of the score's support."""
        return 1 / self.n_classes if self.setting.is_top else 0.0

    @property
    def high(self) -> float:
        """Upper end of the score's support."""
        return 1.0

    def name(self, k: int) -> str:
        """Setting of problem `k`, with the caller's label if it is of one class."""
        column = k if self.setting.per_class else self.setting.column
        name = f"class {k}" if self.setting.per_class else self.setting.name
        named = self.labels is not None and column is not None
        return f"{name} ({repr_of(self.labels[column])})" if named else name  # type: ignore[index]

    def chunk(self, start: int, stop: int) -> Rows:
        """The rows from `start` to `stop`, as a kernel reads and checks them."""
        stop = min(stop, self.n)
        v = None if self.v is None else self.v[start:stop]
        step = stop - start
        if self.prob.ndim == 2 and not self.setting.per_class:
            step = max(1, CONVERTED // self.prob.shape[1])
        parts = [self.read(i, min(i + step, stop)) for i in range(start, stop, step)]
        prob, label = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        return Rows(prob, label, v, self.tolerance)

    @property
    def tolerance(self) -> float:
        """How far from 1 the sum of a row may be before all are looked at again, which alone says
        what is to be said: sums in another order are rounded otherwise."""
        return math.inf if self.is_checked else 0.9 * self.row_tolerance

    def read(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Probabilities and labels of some rows, in the types that kernels are compiled for."""
        prob, label = self.prob[start:stop], self.label[start:stop]
        if self.setting.column is not None:
            prob, label = self.column(prob, label, self.setting.column)
        elif prob.ndim == 1:
            prob = two_columns(prob, self.from_logits)
        prob = native_scores(prob.clip(0.0, 1.0) if self.clip else prob)
        if self.setting.is_top:
            return top_label(prob, native_labels(label), self.from_logits, self.tolerance)
        if self.setting.per_class and self.from_logits:
            prob = all_softmax(prob)
        return prob, native_labels(label)

    def note_kind(self) -> None:
        """The kernels that read rows like these are compiled."""
        if self.kind:
            KNOWN_KINDS.add(self.kind)

    def column(
        self, prob: NDArray[Any], label: NDArray[Any], k: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Probability of class `k` and whether it is the label."""
        if prob.ndim == 2:
            return (all_softmax(prob) if self.from_logits else prob)[:, k], label == k
        if self.from_logits:
            prob = sigmoid(native_scores(prob if k == 1 else -prob))
        elif k == 0:
            prob = 1 - prob.astype(np.float64, copy=False)
        return prob, label if k == 1 else label == 0

    def sample(self, k: int) -> Sample:
        """Problem `k` as a whole."""
        source = self.checked
        if self.setting.per_class:
            source = replace(source.probabilities, setting=class_setting(k))
        prob, label, *_ = source.chunk(0, self.n)
        # copies: an estimator may do with them what it likes
        score, hit = prob.astype(np.float64), label.astype(np.uint8)
        return Sample(score, hit, self.v, self.low, self.high, self.positions)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Positions of the rows in the caller's data; one array for all classes."""
        return np.arange(self.n) if self.rows is None else self.rows

    @cached_property
    def checked(self) -> "ArrayProblems":
        """The same with every value checked, or an error for the first that is bad."""
        if self.is_checked:
            return self
        clip = check_probabilities(self.prob, self.from_logits, self.prob_name, self.row_tolerance)
        label = self.label
        if self.labels is None:
            label = check_class_indices(label, self.n_classes, self.prob)
        return replace(self, label=label, is_checked=True, clip=clip)

    @cached_property
    def probabilities(self) -> "ArrayProblems":
        """The same without logits of class vectors: one softmax, however many classes are asked
        for."""
        if not self.from_logits or self.prob.ndim == 1:
            return self
        return replace(self, prob=all_softmax(self.prob), from_logits=False)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What the kernels that read and check the rows are compiled for. Empty where the rows have
        to be checked before they are read: float labels, one column of several, logits that are
        not of a top label."""
        row, y, vectors = self.setting, self.label.dtype, self.prob.ndim == 2
        as_it_lies = row.column is None or (row.column == 1 and not vectors)
        if y.kind == "f" or not as_it_lies or (self.from_logits and not row.is_top):
            return ()
        single = self.prob.dtype == np.float32 and (vectors or row.column == 1)
        return row.is_top, row.per_class, single, y in (np.bool_, np.uint8), self.v is None


def native_scores(array: NDArray[Any]) -> NDArray[Any]:
    """Probabilities in one of the two types that kernels are compiled for."""
    return contiguous(array, np.float32 if array.dtype == np.float32 else np.float64)


def native_labels(array: NDArray[Any]) -> NDArray[Any]:
    """Labels in one of the two types that kernels are compiled for."""
    array = array.view(np.uint8) if array.dtype == np.bool_ else array
    return contiguous(array, np.uint8 if array.dtype == np.uint8 else np.int64)


def two_columns(p: NDArray[Any], logits: bool) -> F64:
    """Class vectors of two classes from the positive one alone."""
    p = p.astype(np.float64, copy=False)
    return np.column_stack([np.zeros(p.size) if logits else 1 - p, p])


def top_label(
    key: NDArray[Any], label: NDArray[Any], logits: bool, tolerance: float
) -> tuple[F64, U8]:
    """Largest probability, and whether its class is the label; the first maximum wins.

    Of logits, the class is that of the largest: their softmax may have ties where they have none.
    """
    score, hit = np.empty(label.size), np.empty(label.size, np.uint8)
    if not kernels.reading.read_top_label(key, label, logits, tolerance, score, hit):
        raise UncleanError
    return (softmax(key, score, 1)[:, 0] if logits else score), hit


def sigmoid(z: NDArray[Any]) -> F64:
    """Probability of the positive class."""
    p = np.empty(z.size)
    kernels.logits.sigmoid(z, p)
    return p


def softmax(z: NDArray[Any], top: F64, columns: int) -> F64:
    """Softmax of each row of logits, whose largest are `top`: of every class, or of the largest
    alone."""
    p = np.empty((len(z), columns))
    with np.errstate(over="ignore"):  # -inf, beyond float64, is a probability of 0
        kernels.logits.softmax(z, top, p)
    return p


def all_softmax(z: NDArray[Any]) -> F64:
    """Softmax of each row of logits."""
    z = native_scores(z)
    return softmax(z, z.max(axis=1).astype(np.float64), z.shape[1])


def read_problems(
    y_true: Any,
    y_prob: Any,
    *,
    setting: Any = "auto",
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    from_logits: bool = False,
    prob_name: str = "y_prob",
) -> ArrayProblems:
    """Check the caller's data and read them as problems; rows of weight 0 are dropped."""
    from_logits = check_flag("from_logits", from_logits)
    prob = as_probabilities(y_prob, prob_name)
    row = find_setting(setting, prob.shape)
    label, order = as_labels(
        y_true, prob, names=column_names(y_prob), labels=labels, pos_label=pos_label,
        prob_name=prob_name,
    )  # fmt: skip
    v = as_weights(sample_weight, len(prob))
    tolerance = row_sum_tolerance(y_prob, prob)
    if from_logits:
        warn_if_probabilities(prob, tolerance, prob_name)
    problems = ArrayProblems(
        row, label, prob, v, None, order, from_logits, prob_name=prob_name, row_tolerance=tolerance
    )
    if problems.kind not in KNOWN_KINDS:
        problems = problems.checked
    if v is None or v.all():
        return problems
    problems, rows = problems.checked, np.flatnonzero(v)
    return replace(problems, label=problems.label[rows], prob=prob[rows], v=v[rows], rows=rows)
