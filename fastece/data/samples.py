"""A sample: the rows of one weighted binary calibration problem."""

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

# Kernels that sort move outcomes or row numbers along with the scores: empty where there are none.
NO_HITS = np.empty(0, np.uint8)
NO_ORDER = np.empty(0, np.int32)
# Weights below 2**500 have products and sums that do not overflow.
SAFE_EXPONENT = 500
SMALLEST_WEIGHT = 5e-324


class CopyReadOnlyOnUnpickle:
    """A dataclass whose arrays are writable after it was sent to another process.

    Arrays from another process may be read-only, for which kernels are not compiled.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            is_read_only = isinstance(value, np.ndarray) and not value.flags.writeable
            object.__setattr__(self, name, value.copy() if is_read_only else value)


# `Vectors` and `Sample` are not frozen: to make a frozen object takes 0.8 us longer, a fifth of
# the time of `ece` of 100 rows. Nothing changes them once they are made.


@dataclass(eq=False)
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


@dataclass(eq=False)
class Sample(CopyReadOnlyOnUnpickle):
    """One weighted binary calibration problem.

    Parameters
    ----------
    s : (n,) float64 array
        Scores in [0, 1].
    y : (n,) uint8 array
        Outcomes: 1 where the event occurred, else 0.
    v : (n,) float64 array or None
        Sample weights, greater than 0; None where every row counts 1. `weights` is always an
        array.
    low, high : float
        Support of the score: [0, 1], or [1/K, 1] for the top label of K classes.
    rows : (n,) int64 array
        Position of each row among the rows that its maker numbers, so that classes, estimators and
        models can share one draw. `RowTable.sample` numbers the caller's rows, also those of weight
        0; with soft labels it numbers the labels, of which a row of the caller has several.
        `RowTable.view` has no positions, an empty array; with `vectors`, its positions are those in
        them, from 0 in each part. Use `RowTable.callers` for the caller's row of each row of a
        problem.
    vectors : Vectors or None
        The class vectors that the problem was made of, where the setting is "auto" and the
        estimator asks for them: ``vectors.prob[rows]`` belong to the rows.
    c : (n,) float64 array or None
        How often each row counts, which need not be whole: the rows of a stream are cells that
        hold many. None where each row counts once. `counts` is always an array.
    votes : float
        How many rows there are for one row of the caller, on average: more than 1 for soft
        labels.
    log_odds : (n,) float64 array or None
        Log odds of the scores, from logits, where scores next to 0 or 1 are equal by rounding
        alone. `ranking` uses them.
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
    log_odds: F64 | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.s.size

    @property
    def counts(self) -> NDArray[Any]:
        """How often each row (n,) counts."""
        return np.ones(self.n, np.uint8) if self.c is None else self.c

    @property
    def weights(self) -> F64:
        """Weight (n,) of each row, of one copy if it counts several times."""
        return np.ones(self.n) if self.v is None else self.v

    @property
    def ranking(self) -> F64:
        """Numbers (n,) that order the rows: log odds where scores are rounded."""
        return self.s if self.log_odds is None else self.log_odds

    @property
    def total_weights(self) -> F64:
        """Weight (n,) of all copies of each row: `counts` times `weights`."""
        return self.weights if self.c is None else self.c * self.weights

    @property
    def weight(self) -> F64 | None:
        """`total_weights`, or None where every row counts 1, as kernels take weights."""
        return None if self.v is None and self.c is None else self.total_weights

    @property
    def gaps(self) -> F64:
        """Outcome minus score (n,), times the weight of the row."""
        gaps: F64 = self.y - self.s
        return gaps if self.v is None else gaps * self.v

    @property
    def n_effective(self) -> float:
        """Number of rows of equal weight whose mean varies as much (`effective_rows`)."""
        return effective_rows(self.v, self.n if self.c is None else self.c)

    @property
    def is_last_of_score(self) -> NDArray[np.bool_]:
        """Whether the next row (n,) of a sorted sample has another score."""
        return np.append(self.s[1:] > self.s[:-1], True)

    @property
    def is_first_of_score(self) -> NDArray[np.bool_]:
        """Whether the row before (n,) of a sorted sample has another score."""
        return np.append(True, self.s[1:] > self.s[:-1])

    def weights_above(self, threshold: float | None) -> F64:
        """Return the weights (n,), 0 where the score is not greater than a threshold."""
        return self.weights if threshold is None else np.where(self.s > threshold, self.weights, 0)

    def quantiles(self, shares: Any) -> F64:
        """Return the scores of a sorted sample at shares of its rows."""
        return np.asarray(self.s[np.multiply(shares, self.n - 1).round().astype(np.int64)])

    def where(self, rows: Any) -> "Sample":
        """Select rows: by their positions in a new order, or by a mask."""
        return Sample(
            s=self.s[rows],
            y=self.y[rows],
            v=pick(self.v, rows),
            low=self.low,
            high=self.high,
            rows=self.rows[rows] if self.rows.size else self.rows,
            vectors=self.vectors,
            c=pick(self.c, rows),
            votes=self.votes,
            log_odds=pick(self.log_odds, rows),
        )

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
        # The cells of a stream are in order already.
        if self.c is not None and (self.s[1:] >= self.s[:-1]).all():
            return self
        # Where only the outcomes go along with the scores, a sort takes half of the time.
        has_scores_alone = self.v is self.c is self.log_odds is None and not self.rows.size
        if has_scores_alone:
            s, y = sort_rows(self.s, self.y)
            return replace(self, s=s, y=y)
        return self.where(in_order(self.s)[1])


def pick(column: NDArray[Any] | None, rows: Any) -> NDArray[Any] | None:
    """Select rows of a column that may be None, which stands for ones or for nothing."""
    return None if column is None else column[rows]


def sort_rows(s: F64, y: U8) -> tuple[F64, U8]:
    """Sort scores from 0 to 1 with their outcomes; equal ones keep their order."""
    s = s.copy()
    y = y.copy()
    kernels.quantiles.increasing_order(s, y, NO_ORDER)
    return s, y


def in_order(s: F64) -> tuple[F64, NDArray[Any]]:
    """Sort scores from 0 to 1, and return the order, in which equal ones keep theirs."""
    score = s.copy()
    rows = np.arange(s.size, dtype=np.int32)
    kernels.quantiles.increasing_order(score, NO_HITS, rows)
    return score, rows.astype(np.intp)  # the type with which numpy selects rows faster


def effective_rows(weights: F64 | None, counts: F64 | int) -> float:
    """Compute how many rows of equal weight have a mean that varies as much.

    ``(sum_i c_i w_i)**2 / sum_i c_i w_i**2``: Kish (1965, "Survey sampling", section 11.7).

    Parameters
    ----------
    weights : (n,) float64 array or None
        None where every row counts 1.
    counts : (n,) float64 array or int
        How often each row counts, or n where each counts once.
    """
    if weights is None:
        return float(np.sum(counts))
    # The squares of 1e300 and of 1e-300 are no numbers; a power of two rounds nothing.
    w = np.ldexp(weights, -math.frexp(weights.max())[1])
    c = 1.0 if isinstance(counts, int) else counts
    return float((c * w).sum() ** 2 / (c * w * w).sum())


def scale_weights(problems: T) -> tuple[T, float]:
    """Scale the weights so that their products do not overflow; return their unit too.

    The unit is a power of two, so that nothing is rounded.
    """
    if problems.v is None:
        return problems, 1.0
    exponent = math.frexp(np.maximum.reduce(problems.v))[1] - 1
    if abs(exponent) < SAFE_EXPONENT:
        return problems, 1.0
    # A weight that became 0 would turn its row into one that does not exist.
    scaled = np.maximum(np.ldexp(problems.v, -exponent), SMALLEST_WEIGHT)
    return replace(problems, v=scaled), math.ldexp(1.0, exponent)
