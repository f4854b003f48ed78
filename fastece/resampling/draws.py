"""Draws: how often each row counts in each replicate, or which labels it gets.

Every draw depends on its key, on the number of the replicate and on the number of rows alone, so it
does not matter who makes it, when, or together with which others.

The classes here are one family. Each holds what its draws depend on, a few numbers and arrays;
`make` draws a block of replicates, and `of_problem` hands them to one problem in the form of
`fastece.estimators.draws`, which is the form that an estimator takes:

==================  =======================================================  =============
Class               What it draws in each replicate                          Handed on as
==================  =======================================================  =============
`MultinomialDraws`  `size` of n rows with replacement, as counts             `Counts`
`RowDraws`          the same as a list of rows, faster where `size` is small  `Rows`
`LeaveOutDraws`     nothing: one part of the rows is left out (jackknife)    `Counts`
`GroupDraws`        whole groups of rows, by one of the two with counts      `Counts`
`SeparateDraws`     the same for problems with rows of their own              `Counts`
`OutcomeDraws`      outcomes of one binary problem from its scores           `Counts`
`ClassDraws`        classes from class vectors, shared by all problems       `Counts`
`LabelDraws`        outcomes by one of the two above, as labels              `Labels`
`ClassLabelDraws`   classes, as labels of whole class vectors                `Labels`
==================  =======================================================  =============

Outcomes handed on as `Counts` have every row twice: n rows with the outcome 1, then the same n rows
with the outcome 0. One of the two counts once, the other does not count.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.errors import InputError, InputTypeError
from fastece.data.samples import Sample
from fastece.estimators.draws import Counts, Labels, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, U8, U16
from fastece.resampling.groups import Dependence, Groups
from fastece.resampling.problem import Problem

# Draws of at most this fraction of the rows, 1 / 16, are lists of rows: a row in a list costs some
# 8 ns, a row in a block half a nanosecond, drawn or not.
LIST_FRACTION = 16
# Counts of a Poisson law that are told apart; larger ones have a probability below 1e-48.
POISSON_COUNTS = 40


def new_key(rng: Any) -> int:
    """Return the key of all draws of a call, from a seed or a generator.

    It is the generator's next word of 64 bits.
    """
    is_seed = isinstance(rng, Integral) and not isinstance(rng, bool | np.bool_)
    if not (rng is None or is_seed or isinstance(rng, np.random.Generator)):
        rule = "must be None, an integer or a numpy.random.Generator"
        raise InputTypeError("rng", rule, value=rng)
    if is_seed and rng < 0:
        raise InputError("rng", "a seed must not be negative", value=rng)
    return seed_key(int(rng)) if is_seed else seed_key.__wrapped__(rng)


@lru_cache(maxsize=64)
def seed_key(rng: Any) -> int:
    """Return the next 64 random bits, which take 30 us to make from a seed."""
    return int(np.random.default_rng(rng).integers(2**64, dtype=np.uint64))


@lru_cache(maxsize=64)
def poisson_law(rate: float) -> tuple[U16, F64]:
    """Return a Poisson law, as `kernels.resampling` turns random bits into counts.

    Count k is decided by ``floor(65536 p_k)`` of the values of 16 bits, for the first few k. The
    values that these levels leave open have a law of their own, the cumulative `tail`, so that
    nothing is rounded.
    """
    n_levels = kernels.resampling.LEVELS
    expected = [
        65536 * math.exp(-rate) * rate**k / math.factorial(k) for k in range(POISSON_COUNTS)
    ]
    decided = [min(math.floor(values), 65535) for values in expected[:n_levels]]
    undecided = [values - n for values, n in zip(expected, decided, strict=False)]
    undecided += expected[n_levels:]
    tail = np.cumsum(undecided) / sum(undecided)
    tail[-1] = 1.0
    return np.cumsum(decided).astype(np.uint16), tail


# --- the protocol ---------------------------------------------------------------------------


class ReplicateDraws(ABC):
    """Draws of all replicates of a call, which are made when they are needed.

    Replicates are numbered from 0 on and made in blocks of 32 side by side, the layout of the
    kernels; a class with another layout overrides all methods that know of it.

    Attributes
    ----------
    kind : type
        The class of `fastece.estimators.draws` that a statistic gets: Counts, Labels or Rows.
    replicates_per_block : int
        Replicates that are drawn together.
    bytes_per_row : int
        Memory of a row in each replicate.
    n : int
        Number of rows that have counts or labels.
    """

    kind: ClassVar[type] = Counts
    replicates_per_block: ClassVar[int] = REPLICATES
    bytes_per_row: ClassVar[int] = 1

    @abstractmethod
    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw blocks from number `first` on, which all problems share."""

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:  # noqa: ARG002
        """Return the counts or labels (G, n, 32) of one problem from the shared draws."""
        return drawn

    def rows_per_replicate(self: Any) -> int:
        """Return the number of rows that a statistic reads for one replicate."""
        return int(self.n)

    def score_order(self, problem: Problem) -> I32:
        """Return the array by which `reorder` follows the sorted scores of a problem."""
        return problem.order

    def reorder(self, drawn: NDArray[Any], order: I32) -> NDArray[Any]:
        """Rearrange the draws of a problem as its rows are sorted by score."""
        return np.take(drawn, order, axis=1)

    def select(self, drawn: NDArray[Any], replicates: slice) -> NDArray[Any]:
        """Select replicates of one block, by their positions in it."""
        return drawn[:, :, replicates]

    def count_replicates(self, drawn: NDArray[Any]) -> int:
        """Count the replicates that an array of draws holds."""
        return int(len(drawn) * drawn.shape[2])

    def hand_on(self, drawn: NDArray[Any], sample: Sample | None) -> Any:  # noqa: ARG002
        """Return draws of a problem as an object of `kind`, which a statistic takes."""
        return Counts(drawn)


def empty_counts(blocks: int, n: int) -> U8:
    """Allocate the counts (G, n, 32) of some blocks."""
    return np.empty((blocks, n, REPLICATES), np.uint8)


# --- draws of rows and of groups ------------------------------------------------------------


@dataclass(frozen=True)
class MultinomialDraws(ReplicateDraws):
    """Counts of `size` draws with replacement from n rows; `size` is at most n."""

    key: int
    n: int
    size: int

    def make(self, first: int, blocks: int) -> U8:
        """Draw the counts (G, n, 32) of some blocks.

        They are Poisson counts, to which rows are added, or taken away, until there are `size`.
        Their total is about two standard deviations less than the size, since a missing row is
        cheaper to draw than a row too many is to take back.
        """
        rate = self.size / self.n * max(0.0, 1 - 2 / math.sqrt(self.size))
        law, tail = poisson_law(rate)
        counts = empty_counts(blocks, self.n)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            key = np.uint64(self.key)
            kernels.resampling.multiplicities(key, first, self.size, law, tail, counts)
        return counts


@dataclass(frozen=True)
class RowDraws(ReplicateDraws):
    """Draws of `size` of n rows with replacement, as a list of rows in each replicate."""

    kind = Rows
    replicates_per_block = 1
    bytes_per_row = 4

    key: int
    n: int
    size: int

    def make(self, first: int, blocks: int) -> I32:
        """Draw the rows (R, size) of some replicates, in the order in which they come."""
        rows = np.empty((blocks, self.size), np.int32)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            kernels.resampling.drawn_rows(np.uint64(self.key), first, self.n, rows)
        return rows

    def rows_per_replicate(self) -> int:
        """Return the number of rows in a list."""
        return self.size

    def score_order(self, problem: Problem) -> I32:
        """Return the position of each row in the order of the scores."""
        return problem.place

    def reorder(self, drawn: NDArray[Any], order: I32) -> NDArray[Any]:
        """Replace each row by its position in the order of the scores."""
        return np.take(order, drawn)

    def select(self, drawn: NDArray[Any], replicates: slice) -> NDArray[Any]:
        """Select lists of rows."""
        return drawn[replicates]

    def count_replicates(self, drawn: NDArray[Any]) -> int:
        """Count the lists of rows."""
        return len(drawn)

    def hand_on(self, drawn: NDArray[Any], sample: Sample | None) -> Rows:
        """Return lists of rows of a sample."""
        return Rows(drawn, sample)


@dataclass(frozen=True)
class LeaveOutDraws(ReplicateDraws):
    """Counts that leave out one part of the rows in each replicate, for a jackknife.

    In replicate r every row counts once, except the rows i of part ``min(first + r, last)``, for
    which ``i % parts`` is the number of the part.
    """

    n: int
    parts: int
    first: int
    last: int

    def make(self, first: int, blocks: int) -> U8:
        """Make the counts (G, n, 32) of some blocks; nothing is random."""
        counts = empty_counts(blocks, self.n)
        counts[:] = 1
        first_part = self.first + REPLICATES * first
        for r in range(blocks * REPLICATES):
            block, lane = divmod(r, REPLICATES)
            part = min(first_part + r, self.last)
            counts[block, part :: self.parts, lane] = 0
        return counts


@dataclass(frozen=True)
class GroupDraws(ReplicateDraws):
    """Draws of whole groups: the count of a row is the count of its group.

    Groups may be of different sizes, so replicates may differ in their number of rows: Field and
    Welsh (2007), "Bootstrapping clustered data".
    """

    of_groups: MultinomialDraws | LeaveOutDraws
    of_row: I32

    @property
    def n(self) -> int:
        """Number of rows that have counts."""
        return self.of_row.size

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw the counts (G, groups, 32) of the groups in some blocks."""
        return self.of_groups.make(first, blocks)

    def of_problem(self, drawn: NDArray[Any], problem: int) -> U8:  # noqa: ARG002
        """Return the counts (G, n, 32) of the rows, which are the same for every problem."""
        return np.take(drawn, self.of_row, axis=1)


@dataclass(frozen=True)
class SeparateDraws(GroupDraws):
    """Draws of rows or groups for problems with rows of their own.

    Attributes
    ----------
    of_groups : MultinomialDraws
        Draws of the caller's rows, or of groups of them.
    of_row : (N,) int32 array
        The row or group behind each row, one problem after the other.
    ends : tuple of int
        The position after the last row of each problem.
    """

    ends: tuple[int, ...] = ()

    def of_problem(self, drawn: NDArray[Any], problem: int) -> U8:
        """Return the counts (G, n, 32) of the rows of one problem."""
        start = self.ends[problem - 1] if problem > 0 else 0
        return np.take(drawn, self.of_row[start : self.ends[problem]], axis=1)


def make_row_draws(
    key: int, n: int, size: int, groups: Groups | None = None
) -> MultinomialDraws | GroupDraws | RowDraws:
    """Make draws of `size` of n rows in the faster form, or of all groups."""
    if groups is not None:
        return GroupDraws(MultinomialDraws(key, groups.count, groups.count), groups.of_row)
    if size <= n < LIST_FRACTION * size:
        return MultinomialDraws(key, n, size)
    return RowDraws(key, n, size)


# --- draws of labels ------------------------------------------------------------------------


@dataclass(frozen=True)
class NullDraws(ReplicateDraws):
    """Draws of labels from predicted probabilities, as if the model were calibrated.

    Attributes
    ----------
    key : int
    prob : (n / 2,) or (n / 2, K) array
        The scores, or the class vectors.
    first_row : int
        The number of the first row among all rows of the data: if some rows are drawn by
        themselves, they have the draws that they have among all.
    dependence : Dependence or None
        How labels of one group depend on each other; None for independent rows.
    """

    key: int
    prob: NDArray[Any]
    first_row: int = 0
    dependence: Dependence | None = None

    @property
    def n(self) -> int:
        """Number of rows that have counts: two for each row of the data."""
        return 2 * len(self.prob)

    @abstractmethod
    def outcomes(self, drawn: NDArray[Any], problem: int) -> I32:
        """Return the outcomes (G, n / 2, 32) of one problem from the shared draws."""


class OutcomeDraws(NullDraws):
    """Draws of outcomes: 1 with the score as its probability."""

    def make(self, first: int, blocks: int) -> U8:
        """Draw the counts (G, n, 32) of rows with the outcome 1, then of rows with 0."""
        counts = empty_counts(blocks, self.n)
        score = contiguous(self.prob, np.float64)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            kernels.resampling.hits_of(np.uint64(self.key), first, self.first_row, score, counts)
        if self.dependence is not None:
            shared = self.dependence.draw_blocks(self.key, first, blocks, self.first_row)
            for block, (is_shared, number) in zip(counts, shared, strict=True):
                is_one, is_zero = np.split(block, 2)
                np.less(number, score[:, None], out=is_one, where=is_shared, casting="unsafe")
                np.subtract(1, is_one, out=is_zero)
        return counts

    def outcomes(self, drawn: NDArray[Any], problem: int) -> I32:  # noqa: ARG002
        """Return the outcomes (G, n / 2, 32), of which there is one problem."""
        return drawn[:, : self.n // 2].astype(np.int32)


class ClassDraws(NullDraws):
    """Draws of classes, which the problems of all classes share."""

    @cached_property
    def up_to(self) -> F64:
        """Cumulative probabilities of the classes (n / 2, K - 1), without the last."""
        total = np.cumsum(self.prob, axis=1, dtype=np.float64)
        total[total[:, -1] == 0] = np.arange(1, total.shape[1] + 1)  # every class is as likely
        return np.ascontiguousarray(total[:, :-1] / total[:, -1:])

    @property
    def shares(self) -> F64:
        """Probabilities of the classes (n / 2, K), with rows that add up to 1."""
        return np.diff(self.up_to, axis=1, prepend=0.0, append=1.0)

    def make(self, first: int, blocks: int) -> I32:
        """Draw the classes (G, n / 2, 32) of some blocks."""
        label = np.empty((blocks, len(self.prob), REPLICATES), np.int32)
        key = np.uint64(self.key)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            kernels.resampling.categories(key, first, self.first_row, self.up_to, label)
        if self.dependence is not None:
            shared = self.dependence.draw_blocks(self.key, first, blocks, self.first_row)
            for block, (is_shared, number) in zip(label, shared, strict=True):
                block[is_shared] = 0
                for edge in self.up_to.T:
                    block += is_shared & (number >= edge[:, None])
        return label

    def of_problem(self, drawn: I32, problem: int) -> U8:
        """Return the counts (G, n, 32) of one class, then of all others."""
        half = self.n // 2
        is_drawn = np.empty((len(drawn), self.n, REPLICATES), np.bool_)
        np.equal(drawn, problem, out=is_drawn[:, :half])
        np.not_equal(drawn, problem, out=is_drawn[:, half:])
        return is_drawn.view(np.uint8)

    def outcomes(self, drawn: NDArray[Any], problem: int) -> I32:
        """Return the outcomes (G, n / 2, 32) of one class: 1 where it was drawn."""
        is_drawn: NDArray[np.bool_] = drawn == problem
        return is_drawn.astype(np.int32)


@dataclass(frozen=True)
class LabelDraws(ReplicateDraws):
    """Draws of outcomes for statistics that take labels, and not counts."""

    kind = Labels
    bytes_per_row = 4

    of_rows: OutcomeDraws | ClassDraws

    @property
    def n(self) -> int:
        """Number of rows that have labels."""
        return len(self.of_rows.prob)

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw some blocks, as the draws of rows make them."""
        return self.of_rows.make(first, blocks)

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:
        """Return the outcomes (G, n, 32) of one problem."""
        return self.of_rows.outcomes(drawn, problem)

    def hand_on(self, drawn: NDArray[Any], sample: Sample | None) -> Labels:
        """Return labels of the rows of a sample."""
        return Labels(drawn, sample)


class ClassLabelDraws(LabelDraws):
    """Draws of classes, for statistics of whole class vectors."""

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:  # noqa: ARG002
        """Return the classes (G, n, 32) that were drawn."""
        return drawn
