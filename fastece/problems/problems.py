"""Weighted binary problems over the same rows, every value checked."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.inputs.validation import shown
from fastece.problems.settings import SETTINGS, Setting
from fastece.protocol import Sample

__all__ = ["Problems", "one_problem"]

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Problems:
    """One problem, or one for each class.

    Attributes
    ----------
    setting : Setting
        What made them.
    prob : (n,) float64 array, or (n, K) float64 or float32 array, C-contiguous and writable
        Scores in [0, 1], or class vectors, of which every class is a problem. They may be the
        caller's, and are not written to.
    label : (n,) uint8 or int64 array
        Hits, or classes from 0 to K - 1.
    low, high : float
        Support of the score.
    n_classes : int
    v : (n,) float64 array or None
        Sample weights, greater than 0.
    rows : (n,) int64 array or None
        Positions in the caller's data, where rows of weight 0 were dropped.
    labels : list or None
        The labels that the class indices stand for.
    """

    setting: Setting
    prob: NDArray[Any]
    label: NDArray[Any]
    low: float
    high: float
    n_classes: int = 2
    v: F64 | None = None
    rows: NDArray[np.int64] | None = None
    labels: list[Any] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.label.size

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return 1 if self.prob.ndim == 1 else self.prob.shape[1]

    def name(self, k: int) -> str:
        """Setting of problem `k`, with the caller's label if it is of one class."""
        column = k if self.setting.per_class else self.setting.column
        name = f"class {k}" if self.setting.per_class else self.setting.name
        if self.labels is None or column is None:
            return name
        return f"{name} ({shown(self.labels[column])})"

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Positions of the rows in the caller's data; one array for all classes."""
        return np.arange(self.n) if self.rows is None else self.rows

    def sample(self, k: int) -> Sample:
        """Problem `k` with arrays of its own: an estimator may do with them what it likes."""
        if self.prob.ndim == 1:
            score, hit = self.prob.copy(), self.label.copy()
        else:
            score, hit = self.prob[:, k].astype(np.float64), (self.label == k).view(np.uint8)
        return Sample(score, hit, self.v, self.low, self.high, self.positions)

    def samples(self) -> list[Sample]:
        """Every problem as a sample."""
        return [self.sample(k) for k in range(self.n_problems)]


def one_problem(sample: Sample) -> Problems:
    """The problem of a sample, without a copy."""
    return Problems(
        SETTINGS["binary"], sample.s, sample.y, sample.low, sample.high, v=sample.v,
        rows=sample.rows,
    )  # fmt: skip
