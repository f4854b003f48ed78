"""A sample: rows of one weighted binary calibration problem."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.kernels.types import F64, I64, U8

ALL = slice(None)
T = TypeVar("T", bound=Any)  # a sample, or problems

NO_HITS, NO_ORDER = np.empty(0, np.uint8), np.empty(0, np.int32)
# Products and sums of weights below 2**500 do not overflow.
SAFE_EXPONENT = 500


class CopyReadOnlyOnUnpickle:
    """A frozen dataclass whose arrays stay writable when it is sent to a process.

    Arrays from another process may be read-only, for which kernels are not compiled.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            frozen = isinstance(value, np.ndarray) and not value.flags.writeable
            object.__setattr__(self, name, value.copy() if frozen else value)


@dataclass(frozen=True, eq=False)
class Vectors(CopyReadOnlyOnUnpickle):
    """Class vectors as a whole, for values that no binary problem has.

    Parameters
    ----------
    prob : (N, K) float64 or float32 array
        Probabilities of the classes, of every row of the caller's data. It may be the caller's
        array, and is not written to.
    label : (N,) int64 array
        Classes from 0 to K - 1.
    """

    prob: NDArray[Any]
    label: I64


@dataclass(frozen=True, eq=False)
class Sample(CopyReadOnlyOnUnpickle):
    """One weighted binary calibration problem.

    Parameters
    ----------
    s : (n,) float64 array
        Scores in [0, 1].
    y : (n,) uint8 array
        Outcomes: 1 where the event occurred, else 0.
    v : (n,) float64 array or None
        Sample weights, greater than 0; None where every row counts 1.
    low, high : float
        Support of the score: [0, 1], or [1/K, 1] for the top label of K classes.
    rows : (n,) int64 array
        Position of each row in the caller's data, so that classes, estimators and models can
        share one draw of the caller's rows.
    vectors : Vectors or None
        The class vectors that the problem was made of, where the setting is "auto" and the
        estimator asks for them: ``vectors.prob[rows]`` belong to the rows.
    c : (n,) float64 array or None
        How often each row counts, which need not be whole: rows of a stream are cells of many.
        None where each counts once.
    votes : float
        How many rows one row of the caller is, on average: more than 1 of soft labels.
    """

    s: F64
    y: U8
    v: F64 | None
    low: float
    high: float
    rows: I64
    vectors: Vectors | None = None
    c: F64 | None = None
    votes: float = 1.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.s.size

    @property
    def counts(self) -> NDArray[Any]:
        """How often each row (n,) counts."""
        return np.ones(self.n, np.uint8) if self.c is None else self.c

    @property
    def weight(self) -> F64 | None:
        """The weight (n,) of all copies of each row; None where it is 1."""
        if self.c is None or self.v is None:
            return self.v if self.c is None else self.c
        return self.c * self.v

    def quantiles(self, shares: Any) -> F64:
        """Return the scores of a sorted sample at shares of its rows."""
        return np.asarray(self.s[np.multiply(shares, self.n - 1).round().astype(np.int64)])

    def where(self, rows: Any) -> "Sample":
        """Select rows: by their positions in a new order, or by a mask."""
        v, c = (None if x is None else x[rows] for x in (self.v, self.c))
        s, y, of_caller = self.s[rows], self.y[rows], self.rows[rows if self.rows.size else ALL]
        return Sample(s, y, v, self.low, self.high, of_caller, self.vectors, c, self.votes)

    def parts(self, rows: int) -> Iterator["Sample"]:
        """Yield the sample in parts of so many rows."""
        for start in range(0, self.n, rows):
            yield self.where(slice(start, start + rows)) if self.n > rows else self

    def with_labels(self, label: NDArray[Any]) -> "Sample":
        """Replace the labels (n,): classes of class vectors, or outcomes."""
        if self.vectors is None:
            return replace(self, y=label.astype(np.uint8))
        labels = self.vectors.label.copy()
        labels[self.rows] = label
        return replace(self, vectors=Vectors(self.vectors.prob, labels))

    def sorted(self) -> "Sample":
        """Sort the rows by their scores; equal scores keep their order."""
        if self.c is not None and (self.s[1:] >= self.s[:-1]).all():  # as cells of streams are
            return self
        if self.weight is None and not self.rows.size:  # hits go along: half the time of an order
            s, y = sort_rows(self.s, self.y)
            return replace(self, s=s, y=y)
        return self.where(in_order(self.s)[1])


def sort_rows(s: F64, y: U8) -> tuple[F64, U8]:
    """Sort scores from 0 to 1 with their outcomes; equal ones keep their order."""
    s, y = s.copy(), y.copy()
    kernels.quantiles.increasing_order(s, y, NO_ORDER)
    return s, y


def in_order(s: F64) -> tuple[F64, NDArray[Any]]:
    """Sort scores from 0 to 1; return the order too, in which equal ones keep theirs."""
    score, rows = s.copy(), np.arange(s.size, dtype=np.int32)
    kernels.quantiles.increasing_order(score, NO_HITS, rows)
    return score, rows.astype(np.intp)  # with which numpy is faster


def scale_weights(problems: T) -> tuple[T, float]:
    """Scale weights so that their products do not overflow; return their unit too.

    It is a power of two, so that nothing is rounded.
    """
    if problems.v is None:
        return problems, 1.0
    exponent = math.frexp(problems.v.max())[1] - 1
    if abs(exponent) < SAFE_EXPONENT:
        return problems, 1.0
    # A weight that becomes 0 would make its row another that does not exist.
    scaled = replace(problems, v=np.maximum(np.ldexp(problems.v, -exponent), 5e-324))
    return scaled, math.ldexp(1.0, exponent)
