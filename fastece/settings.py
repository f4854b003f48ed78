"""Settings: how labels and predicted probabilities become weighted binary problems.

Each row of `SETTINGS` says which columns of the class vector are scores and what a hit is. It works
on any slice of the rows, so large data are converted a slice at a time and never copied as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.protocol import Chunk, Sample
from fastece.validation import as_labels, as_probabilities, as_weights, check_integer, known

__all__ = ["SETTINGS", "Data", "Setting", "read_problems"]

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
# (labels (m,), probabilities (m, K), logits (m, K) or None) -> scores (k, m), hits (k, m)
Split = Callable[[NDArray[np.int64], NDArray[Any], F64 | None], tuple[F64, U8]]


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    Parameters
    ----------
    name : str
        As the caller writes it and as results show it.
    split : callable
        (labels (m,), probabilities (m, K), logits (m, K) or None) -> scores (k, m), hits (k, m).
    top : bool
        The score is a maximum over K classes, so its support is [1/K, 1] rather than [0, 1].
    per_class : bool
        K problems rather than one.
    """

    name: str
    split: Split
    top: bool = False
    per_class: bool = False


def split_top_label(
    label: NDArray[np.int64], prob: NDArray[Any], logits: F64 | None
) -> tuple[F64, U8]:
    """Score the largest probability; a hit is a label in its column, the first if there are more.

    The column is that of the largest logit, where there are logits: their softmax may have ties
    where they have none.
    """
    score, hit = np.empty(label.size), np.empty(label.size, np.uint8)
    kernels.toplabel.top_label(prob if logits is None else logits, label, score, hit)
    if logits is not None:
        np.max(prob, axis=1, out=score)
    return score[None], hit[None]


def split_every_class(
    label: NDArray[np.int64], prob: NDArray[Any], _: F64 | None
) -> tuple[F64, U8]:
    """Score each class against the rest."""
    classes = np.arange(prob.shape[1])[:, None]
    return np.ascontiguousarray(prob.T, np.float64), (label == classes).view(np.uint8)


def class_setting(k: int) -> Setting:
    """Score class `k` against the rest."""

    def split(label: NDArray[np.int64], prob: NDArray[Any], _: F64 | None) -> tuple[F64, U8]:
        score = np.ascontiguousarray(prob[:, k], np.float64)
        return score[None], (label == k).view(np.uint8)[None]

    return Setting(f"class {k}", split)


SETTINGS = {
    "binary": Setting("binary", class_setting(1).split),
    "confidence": Setting("confidence", split_top_label, top=True),
    "classwise": Setting("classwise", split_every_class, per_class=True),
}


def find_setting(setting: Any, shape: tuple[int, ...]) -> Setting:
    """The row that `setting` names, for probabilities of this shape."""
    n_classes = 2 if len(shape) == 1 else shape[1]
    if isinstance(setting, Integral) and not isinstance(setting, bool | np.bool_):
        check_integer("setting", setting, 0, n_classes - 1, "a class index")
        return class_setting(int(setting))
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


@dataclass(frozen=True)
class Data:
    """The checked arrays of one call, read as the problems of its setting."""

    setting: Setting
    label: NDArray[Any]
    prob: NDArray[Any]
    v: F64 | None
    rows: NDArray[np.int64] | None
    clip: bool
    from_logits: bool

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.label.size

    @property
    def n_classes(self) -> int:
        """Number of classes; probabilities of the positive class alone are of 2."""
        return 2 if self.prob.ndim == 1 else self.prob.shape[1]

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return self.n_classes if self.setting.per_class else 1

    @property
    def low(self) -> float:
        """Lower end of the score's support."""
        return 1 / self.n_classes if self.setting.top else 0.0

    @property
    def high(self) -> float:
        """Upper end of the score's support."""
        return 1.0

    @property
    def total_weight(self) -> float:
        """Sum of the weights, or the number of rows."""
        return float(self.n if self.v is None else self.v.sum())

    def chunk(self, start: int, stop: int) -> Chunk:
        """Scores (K, m), hits (K, m) and weights (m,) or None of the rows start to stop."""
        v = None if self.v is None else self.v[start:stop]
        return *self.split(self.setting, slice(start, stop)), v

    def sample(self, k: int) -> Sample:
        """Problem `k` as a whole."""
        setting = class_setting(k) if self.setting.per_class else self.setting
        score, hit = self.split(setting, slice(None))
        rows = np.arange(self.n) if self.rows is None else self.rows
        return Sample(score[0], hit[0], self.v, self.low, self.high, rows)

    def split(self, setting: Setting, rows: slice) -> tuple[F64, U8]:
        """Scores and hits of some rows."""
        prob = self.prob[rows]
        if prob.dtype != np.float32 or prob.ndim == 1 or self.from_logits:
            prob = plain(prob, np.float64)
        prob = np.clip(prob, 0.0, 1.0) if self.clip else plain(prob, prob.dtype)
        if prob.ndim == 1 and setting is SETTINGS["binary"] and not self.from_logits:
            return prob[None], plain(self.label[rows], np.uint8)[None]
        label = plain(self.label[rows], np.int64)
        if self.from_logits:
            logits = np.column_stack([np.zeros(prob.size), prob]) if prob.ndim == 1 else prob
            return setting.split(label, softmax(logits), logits)
        prob = np.column_stack([1 - prob, prob]) if prob.ndim == 1 else prob
        return setting.split(label, prob, None)


def plain(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """C-contiguous, of this dtype and writable: kernels compile anew for each combination. No copy
    where it is so already."""
    if array.dtype == np.bool_ and dtype is np.uint8:
        array = array.view(np.uint8)
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.writeable else array.copy()


def softmax(z: F64) -> F64:
    """Softmax of each row; the largest logit is subtracted first, so that nothing overflows."""
    with np.errstate(over="ignore"):  # a difference beyond float64 is a probability of 0
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
) -> Data:
    """Check the caller's data and read them as problems; rows of weight 0 are dropped."""
    prob, clip = as_probabilities(y_prob, from_logits)
    row = find_setting(setting, prob.shape)
    n_classes = 2 if prob.ndim == 1 else prob.shape[1]
    label = as_labels(y_true, len(prob), n_classes, labels, prob)
    v = as_weights(sample_weight, len(prob))
    rows = None
    if v is not None and not v.all():
        rows = np.flatnonzero(v)
        label, prob, v = label[rows], prob[rows], v[rows]
    return Data(row, label, prob, v, rows, clip, from_logits)
