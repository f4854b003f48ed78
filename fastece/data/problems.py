"""Weighted binary problems over the same rows, every value checked."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.sample import Sample, Vectors
from fastece.data.settings import SETTINGS, Setting
from fastece.data.source import RANKS, ROWS, Source
from fastece.typing import F64, I64, U8


@dataclass(frozen=True, eq=False)
class Problems(Source):
    """One problem, or one for each class; arrays are C-contiguous and writable."""

    setting: Setting
    # Scores in [0, 1] (n,) float64, or class vectors (n, K) float64 or float32, of which every
    # class is a problem. They may be the caller's, and are not written to.
    prob: NDArray[Any]
    label: NDArray[Any]  # (n,) outcomes, uint8, or classes from 0 to K - 1, uint8 or int64
    low: float  # support of the score
    high: float
    n_classes: int = 2
    v: F64 | None = None  # (n,) sample weights, greater than 0
    rows: I64 | None = None  # positions before rows of weight 0 were dropped
    labels: list[Any] | None = None  # what the class indices stand for
    # The class vectors of all rows, rows of weight 0 too, for estimators that need them whole.
    vectors: Vectors | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.label.size

    @property
    def has_vectors(self) -> bool:
        """Whether class vectors are kept as a whole."""
        return self.vectors is not None

    @cached_property
    def positions(self) -> I64:
        """Positions of the rows in the caller's data; one array for all classes."""
        return np.arange(self.n) if self.rows is None else self.rows

    def where(self, rows: I64) -> "Problems":
        """Select rows of all problems."""
        v = None if self.v is None else self.v[rows]
        prob, label = self.prob[rows], self.label[rows]
        return replace(self, prob=prob, label=label, v=v, rows=self.positions[rows])

    def score_and_outcome(self, k: int) -> tuple[F64, U8]:
        """Return scores and outcomes (n,) of problem `k`, which are not to be written to."""
        if self.prob.ndim == 1:
            return self.prob, self.label
        return self.prob[:, k].astype(np.float64), (self.label == k).view(np.uint8)

    def sample(self, k: int, needs: str = RANKS) -> Sample:  # noqa: ARG002
        """Return problem `k` as a sample with arrays that an estimator may change."""
        score, hit = self.score_and_outcome(k)
        if score is self.prob:
            score, hit = score.copy(), hit.copy()
        return Sample(score, hit, self.v, self.low, self.high, self.positions, self.vectors)

    def problem(self, k: int) -> "Problems":
        """Return problem `k` as a source of its own."""
        return one_problem(replace(self.sample(k), vectors=None))


def one_problem(sample: Sample) -> Problems:
    """Turn a sample into a problem without a copy; counts become weights."""
    return Problems(
        SETTINGS["binary"], sample.s, sample.y, sample.low, sample.high, v=sample.weight,
        rows=sample.rows, vectors=sample.vectors,
    )  # fmt: skip


def need_rows(source: Source, reader: str, argument: str = "y_true") -> Problems:
    """Return a source that keeps single rows; refuse any other to a reader."""
    if not isinstance(source, Problems):
        raise source.lack(ROWS, argument, reader)
    return source
