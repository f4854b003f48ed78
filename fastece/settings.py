"""Settings: how labels and predicted probabilities become weighted binary problems.

Each row of `SETTINGS` says which probability is the score and what a hit is. Problems are read a
slice of the rows at a time, so large data are converted in cache and never copied as a whole.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.protocol import Chunk, Sample, UncleanError
from fastece.validation import (
    ROW_SUM_TOLERANCE,
    as_labels,
    as_probabilities,
    as_weights,
    check_class_indices,
    check_flag,
    check_integer,
    check_probabilities,
    known,
    plain,
    shown,
)

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
    n_classes = class_count(shape)
    if isinstance(setting, Integral) and not isinstance(setting, bool | np.bool_):
        return class_setting(check_integer("setting", setting, 0, n_classes - 1, "a class index"))
    if isinstance(setting, str) and setting == "auto":
        return SETTINGS["binary" if len(shape) == 1 else "confidence"]
    if not isinstance(setting, str) or setting not in SETTINGS:
        names = ["auto", *SETTINGS]
        raise ValueError(f"setting: got {setting!r}; {known(names)}, or a class index")
    if setting == "binary" and n_classes != 2:
        raise ValueError(
            f"setting: 'binary' needs P(positive) or 2 columns, y_prob has shape {shape}; "
            "'confidence', 'classwise' or a class index take any number of classes"
        )
    return SETTINGS[setting]


# What has been read before, as `ArrayProblems.kind`: its kernels are compiled, so bad input can be
# found by them without compiling anything.
KNOWN_KINDS: set[tuple[str, ...]] = set()


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
        return f"{name} ({shown(self.labels[column])})" if named else name  # type: ignore[index]

    def chunk(self, start: int, stop: int) -> Chunk:
        """Scores (m, K), hits (m, K) and weights (m,) or None of the rows start to stop."""
        rows = slice(start, stop)
        v = None if self.v is None else self.v[rows]
        if self.clip or not self.kind:
            return *self.checked.split(self.setting, rows), v
        score, hit, clean = self.read(self.prob[rows], self.label[rows])
        if not (clean or self.is_checked):
            raise UncleanError
        KNOWN_KINDS.add(self.kind)
        return score, hit, v

    def sample(self, k: int) -> Sample:
        """Problem `k` as a whole."""
        source, setting = self.checked, self.setting
        if setting.per_class:
            source, setting = source.probabilities, class_setting(k)
        score, hit = source.split(setting, slice(None))
        if np.may_share_memory(score, self.prob):
            score = score.copy()  # an estimator may do with it what it likes
        rows = np.arange(self.n) if self.rows is None else self.rows
        return Sample(score[:, 0], hit[:, 0], self.v, self.low, self.high, rows)

    @cached_property
    def checked(self) -> "ArrayProblems":
        """The same with every value checked, or an error for the first that is bad."""
        if self.is_checked:
            return self
        clip = check_probabilities(self.prob, self.from_logits)
        label = self.label
        if self.labels is None:
            label = check_class_indices(label, self.n_classes, self.prob)
        return replace(self, label=label, is_checked=True, clip=clip)

    @cached_property
    def kind(self) -> tuple[str, ...]:
        """What a reading kernel is compiled for: setting and dtypes. Empty where none reads it."""
        name = self.setting.name if self.prob.ndim == (1 if self.setting.column == 1 else 2) else ""
        types = self.prob.dtype.str[1:], self.label.dtype.str[1:]
        native = self.prob.dtype.isnative and self.label.dtype.isnative
        readable = types[0] in ("f8", "f4") and types[1] in ("i8", "u1", "b1") and native
        return (name, *types) if readable and name in SETTINGS and not self.from_logits else ()

    def read(self, prob: NDArray[Any], label: NDArray[Any]) -> tuple[F64, U8, bool]:
        """Scores and hits of some rows, and whether they are clean, in one pass."""
        label = plain(label.view(np.uint8) if label.dtype == np.bool_ else label, label.dtype)
        prob = plain(prob, prob.dtype)
        columns = self.n_problems
        score, hit = np.empty((label.size, columns)), np.empty((label.size, columns), np.uint8)
        if self.setting.per_class:
            clean = kernels.reading.read_classes(prob, label, ROW_SUM_TOLERANCE, score, hit)
        elif prob.ndim == 2:
            clean = kernels.reading.read_top_label(
                prob, label, ROW_SUM_TOLERANCE, score[:, 0], hit[:, 0]
            )
        else:
            clean = kernels.reading.read_binary(prob, label, score[:, 0], hit[:, 0])
        return score, hit, clean

    @cached_property
    def probabilities(self) -> "ArrayProblems":
        """The same without logits: one softmax, however many classes are asked for."""
        if not self.from_logits or self.prob.ndim == 1:
            return self
        return replace(self, prob=softmax(plain(self.prob, np.float64)), from_logits=False)

    def split(self, setting: Setting, rows: slice) -> tuple[F64, U8]:
        """Scores and hits of some rows, one column for each problem of the setting."""
        prob, label = self.prob[rows], self.label[rows]
        if self.clip:
            prob = prob.clip(0.0, 1.0)
        if setting.column is not None:
            score = self.column(prob, setting.column)
            hit = plain(label == setting.column, np.uint8)
            return plain(score, np.float64)[:, None], hit[:, None]
        if setting.per_class:
            if prob.ndim == 1:
                prob = np.column_stack([self.column(prob, 0), self.column(prob, 1)])
            elif self.from_logits:
                prob = softmax(plain(prob, np.float64))
            hits = label[:, None] == np.arange(self.n_classes)
            return plain(prob, np.float64), hits.view(np.uint8)
        if prob.ndim == 1:
            p = plain(prob, np.float64)
            prob = np.column_stack([np.zeros(p.size) if self.from_logits else 1 - p, p])
        return self.top_label(prob, label)

    def column(self, prob: NDArray[Any], k: int) -> NDArray[Any]:
        """Probability of class `k`."""
        if prob.ndim == 2:
            return softmax(plain(prob, np.float64))[:, k] if self.from_logits else prob[:, k]
        p = prob.astype(np.float64, copy=False)
        if not self.from_logits:
            return p if k == 1 else 1 - p
        # exp(1e4) is inf, and 1 / inf the right limit
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(1 / (1 + np.exp(-p if k == 1 else p)))

    def top_label(self, key: NDArray[Any], label: NDArray[Any]) -> tuple[F64, U8]:
        """Largest probability, and whether its class is the label; the first maximum wins.

        The class is that of the largest logit, where there are logits: their softmax may have ties
        where they have none. Its probability is 1 over the sum of exp(z - largest z).
        """
        key = plain(key, np.float32 if key.dtype == np.float32 else np.float64)
        score, hit = np.empty(label.size), np.empty(label.size, np.uint8)
        kernels.reading.read_top_label(key, plain(label, np.int64), ROW_SUM_TOLERANCE, score, hit)
        if self.from_logits:
            with np.errstate(over="ignore", under="ignore"):
                score = 1 / np.exp(key - score[:, None]).sum(axis=1, dtype=np.float64)
        return score[:, None], hit[:, None]


def softmax(z: F64) -> F64:
    """Softmax of each row; the largest logit is subtracted first, so that nothing overflows."""
    # A difference beyond float64, and an exponential below it, are a probability of 0.
    with np.errstate(over="ignore", under="ignore"):
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def read_problems(
    y_true: Any,
    y_prob: Any,
    *,
    setting: Any = "auto",
    labels: Any = None,
    sample_weight: Any = None,
    from_logits: bool = False,
) -> ArrayProblems:
    """Check the caller's data and read them as problems; rows of weight 0 are dropped."""
    from_logits = check_flag("from_logits", from_logits)
    prob = as_probabilities(y_prob)
    row = find_setting(setting, prob.shape)
    label, order = as_labels(y_true, len(prob), class_count(prob.shape), labels, prob)
    v = as_weights(sample_weight, len(prob))
    problems = ArrayProblems(row, label, prob, v, None, order, from_logits)
    if problems.kind not in KNOWN_KINDS:
        problems = problems.checked
    if v is None or v.all():
        return problems
    problems, rows = problems.checked, np.flatnonzero(v)
    return replace(problems, label=problems.label[rows], prob=prob[rows], v=v[rows], rows=rows)
