"""Draws: how often each row counts in each replicate, or which labels it gets.

Every draw depends on its key, on the number of the replicate and on the rows alone, so it does not
matter who makes it, when, or together with which others.

The classes here are one family. Each holds what its draws depend on, a few numbers and arrays;
`make` draws a block of replicates, and `of_problem` hands them to one problem in the form of
`fastece.estimators.draws`, which is the form that an estimator takes:

===============  ==============================================================  ================
Class            What it draws in each replicate                                 Handed on as
===============  ==============================================================  ================
`RowDraws`       `size` units with replacement: rows, copies of rows, or groups  counts
`RowLists`       the same as a list of rows, faster where few are drawn          `Rows`
`LeaveOutDraws`  nothing: one part of the units is left out (jackknife)          counts
`LabelDraws`     outcomes from the scores, or classes from class vectors         counts or labels
===============  ==============================================================  ================

Counts are `Counts`, or `TableCounts` where they may be larger than a byte holds. Outcomes handed on
as counts have every row twice: n rows with the outcome 1, then the same n rows with the outcome 0.
Of the copies of a row each is one of the two.
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
from fastece.data.samples import ALL
from fastece.estimators.draws import Counts, Labels, Rows, TableCounts
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, I64, U8, U16
from fastece.resampling.groups import Dependence
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
        The class of `fastece.estimators.draws` that a statistic gets.
    replicates_per_block : int
        Replicates that are drawn together.
    """

    kind: Any = Counts
    replicates_per_block: ClassVar[int] = REPLICATES

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows that a statistic reads for each replicate."""

    @abstractmethod
    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw blocks from number `first` on, which all problems share."""

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:  # noqa: ARG002
        """Return the counts or labels (G, n, 32) of one problem from the shared draws."""
        return drawn

    def score_order(self, problem: Problem) -> I32:
        """Return the array by which `reorder` follows the sorted scores of a problem."""
        return problem.order

    def reorder(self, drawn: NDArray[Any], order: I32) -> NDArray[Any]:
        """Rearrange the draws of a problem as its rows are sorted by score."""
        return np.take(drawn, order, axis=1)

    def select(self, drawn: NDArray[Any], replicates: slice) -> NDArray[Any]:
        """Select replicates of one block, by their positions in it."""
        return drawn[:, :, replicates]


def empty_counts(blocks: int, n: int) -> U8:
    """Allocate the counts (G, n, 32) of some blocks."""
    return np.empty((blocks, n, REPLICATES), np.uint8)


def generator_of(key: int, block: int) -> np.random.Generator:
    """Return the generator of the replicates of a block, for counts of any size."""
    return np.random.default_rng((key, block))


# --- draws of rows and of groups ------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """The units of a draw: rows, copies of rows, or groups of rows.

    Attributes
    ----------
    count : int
        Number of units, each with all of its copies.
    of_row : (n,) int32 array or None
        The unit of each row; None where each row is one.
    copies : (count,) float64 array or None
        How many copies of each unit there are, which are drawn one by one; None for one.
    rows : (n,) float64 array or None
        How many independent rows each row stands for, all of which go with a group that is drawn;
        None for one.
    offsets : (K + 1,) int64 array or None
        Where the rows of each problem begin, as in `RowTable`; None where problems share all rows.
    """

    count: int
    of_row: I32 | None = None
    copies: F64 | None = None
    rows: F64 | None = None
    offsets: I64 | None = None

    @property
    def total(self) -> int:
        """Number of units that are there, with all copies."""
        return self.count if self.copies is None else int(self.copies.sum())


class UnitDraws(ReplicateDraws):
    """Base class of counts of the rows of units."""

    units: Units

    @property
    def n(self) -> int:
        """Number of rows that have counts."""
        return self.units.count if self.units.of_row is None else self.units.of_row.size

    @property
    def kind(self) -> Any:
        """The class of counts, larger ones where rows stand for several."""
        has_bytes = self.units.copies is None and self.units.rows is None
        return Counts if has_bytes else TableCounts

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:
        """Return counts (G, m, 32) of the rows of a problem from counts of the units."""
        units = self.units
        rows = ALL
        if units.offsets is not None:
            rows = slice(int(units.offsets[problem]), int(units.offsets[problem + 1]))
        if units.of_row is None:
            return drawn if rows == ALL else np.ascontiguousarray(drawn[:, rows])
        counts = np.take(drawn, units.of_row[rows], axis=1)
        if units.rows is None:
            return counts
        return counts.astype(np.int64) * units.rows[rows].astype(np.int64)[:, None]


@dataclass(frozen=True)
class RowDraws(UnitDraws):
    """Counts of `size` units that are drawn with replacement.

    Groups may be of different sizes, so replicates may differ in their number of rows: Field and
    Welsh (2007), "Bootstrapping clustered data".
    """

    key: int
    units: Units
    size: int

    @property
    def kind(self) -> Any:
        """The class of counts, larger ones also where more units are drawn than there are."""
        return TableCounts if self.size > self.units.count else super().kind

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw the counts (G, units, 32) of some blocks."""
        if self.units.copies is not None:
            return self._make_of_copies(self.units.copies, first, blocks)
        if self.size > self.units.count:
            return self._make_of_lists(first, blocks)
        return self._make_small(first, blocks)

    def _make_small(self, first: int, blocks: int) -> U8:
        """Draw counts of at most as many units as there are.

        They are Poisson counts, to which units are added, or taken away, until there are `size`.
        Their total is about two standard deviations less than the size, since a missing unit is
        cheaper to draw than a unit too many is to take back.
        """
        rate = self.size / self.units.count * max(0.0, 1 - 2 / math.sqrt(self.size))
        law, tail = poisson_law(rate)
        counts = empty_counts(blocks, self.units.count)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            key = np.uint64(self.key)
            kernels.resampling.multiplicities(key, first, self.size, law, tail, counts)
        return counts

    def _make_of_lists(self, first: int, blocks: int) -> I64:
        """Draw counts of more units than there are, from lists of them."""
        n = self.units.count
        lists = RowLists(self.key, n, self.size).make(REPLICATES * first, REPLICATES * blocks)
        counts = np.array([np.bincount(units, minlength=n) for units in lists])
        return np.ascontiguousarray(counts.reshape(blocks, REPLICATES, n).swapaxes(1, 2))

    def _make_of_copies(self, copies: F64, first: int, blocks: int) -> I64:
        """Draw copies of rows: multinomial counts, as repeated rows have."""
        shares = copies / copies.sum()
        drawn = [
            generator_of(self.key, block).multinomial(self.size, shares, REPLICATES).T
            for block in range(first, first + blocks)
        ]
        return np.array(drawn, np.int64)


@dataclass(frozen=True)
class RowLists(ReplicateDraws):
    """Draws of `size` of n rows with replacement, as a list of rows in each replicate."""

    kind = Rows
    replicates_per_block = 1

    key: int
    n_rows: int
    size: int

    @property
    def n(self) -> int:
        """Number of rows in a list."""
        return self.size

    def make(self, first: int, blocks: int) -> I32:
        """Draw the rows (R, size) of some replicates, in the order in which they come."""
        rows = np.empty((blocks, self.size), np.int32)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            kernels.resampling.drawn_rows(np.uint64(self.key), first, self.n_rows, rows)
        return rows

    def score_order(self, problem: Problem) -> I32:
        """Return the position of each row in the order of the scores."""
        return problem.place

    def reorder(self, drawn: NDArray[Any], order: I32) -> NDArray[Any]:
        """Replace each row by its position in the order of the scores."""
        return np.take(order, drawn)

    def select(self, drawn: NDArray[Any], replicates: slice) -> NDArray[Any]:
        """Select lists of rows."""
        return drawn[replicates]


@dataclass(frozen=True)
class LeaveOutDraws(UnitDraws):
    """Counts that leave out one part of the units in each replicate, for a jackknife.

    In replicate r every unit counts once, except the units i of part ``min(first + r, last)``, for
    which ``i % parts`` is the number of the part. Of copies of rows, one of row i is left out.
    """

    units: Units
    parts: int
    first: int
    last: int

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Make the counts (G, units, 32) of some blocks; nothing is random."""
        if self.units.copies is not None:
            counts: NDArray[Any] = np.empty((blocks, self.units.count, REPLICATES), np.int64)
            counts[:] = self.units.copies[:, None]
        else:
            counts = empty_counts(blocks, self.units.count)
            counts[:] = 1
        first_part = self.first + REPLICATES * first
        for r in range(blocks * REPLICATES):
            block, lane = divmod(r, REPLICATES)
            part = min(first_part + r, self.last)
            counts[block, part :: self.parts, lane] -= 1
        return counts


def make_row_draws(key: int, units: Units, size: int) -> RowDraws | RowLists:
    """Make draws of `size` units in the faster form."""
    are_rows = units.of_row is None and units.copies is None and units.offsets is None
    if are_rows and not size <= units.count < LIST_FRACTION * size:
        return RowLists(key, units.count, size)
    return RowDraws(key, units, size)


# --- draws of labels ------------------------------------------------------------------------

OUTCOMES_AS_COUNTS = "counts"
OUTCOMES = "outcomes"
CLASSES = "classes"


@dataclass(frozen=True)
class LabelDraws(ReplicateDraws):
    """Draws of labels from predicted probabilities, as if the model were calibrated.

    Attributes
    ----------
    key : int
    prob : (n,) or (n, K) array
        The scores; or class vectors, from which classes are drawn that all problems share.
    first_row : int
        The number of the first row among all rows of the data: if some rows are drawn by
        themselves, they have the draws that they have among all.
    dependence : Dependence or None
        How labels of one group depend on each other; None for independent rows.
    copies : (n,) float64 array or None
        How many independent rows each row stands for; None for one.
    form : str
        How labels are handed on: `OUTCOMES_AS_COUNTS` of every row with either outcome, `OUTCOMES`
        of one problem, or `CLASSES` of whole class vectors.
    """

    key: int
    prob: NDArray[Any]
    first_row: int = 0
    dependence: Dependence | None = None
    copies: F64 | None = None
    form: str = OUTCOMES_AS_COUNTS

    @property
    def n(self) -> int:
        """Number of rows that have counts, two for each row of the data; or labels."""
        return 2 * len(self.prob) if self.form == OUTCOMES_AS_COUNTS else len(self.prob)

    @property
    def kind(self) -> Any:
        """The class of `fastece.estimators.draws` that a statistic gets."""
        if self.form != OUTCOMES_AS_COUNTS:
            return Labels
        return Counts if self.copies is None else TableCounts

    @cached_property
    def up_to(self) -> F64:
        """Cumulative probabilities of the classes (n, K - 1), without the last."""
        total = np.cumsum(self.prob, axis=1, dtype=np.float64)
        total[total[:, -1] == 0] = np.arange(1, total.shape[1] + 1)  # every class is as likely
        return np.ascontiguousarray(total[:, :-1] / total[:, -1:])

    @property
    def shares(self) -> F64:
        """Probabilities of the classes (n, K), with rows that add up to 1."""
        return np.diff(self.up_to, axis=1, prepend=0.0, append=1.0)

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw some blocks: outcomes as counts, classes, or counts of classes."""
        if self.copies is not None:
            numbers = range(first, first + blocks)
            make_block = self._make_classes_of_copies
            if self.prob.ndim == 1:
                make_block = self._make_outcomes_of_copies
            return np.array([make_block(number) for number in numbers], np.int64)
        if self.prob.ndim == 1:
            return self._make_outcomes(first, blocks)
        return self._make_classes(first, blocks)

    def _make_outcomes(self, first: int, blocks: int) -> U8:
        """Draw the counts (G, 2 n, 32) of rows with the outcome 1, then of rows with 0."""
        counts = empty_counts(blocks, 2 * len(self.prob))
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

    def _make_classes(self, first: int, blocks: int) -> I32:
        """Draw the classes (G, n, 32) of some blocks."""
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

    def _make_outcomes_of_copies(self, block: int) -> I64:
        """Draw how many copies (2 n, 32) have the outcome 1, then how many have 0."""
        all_copies = self._whole_copies
        score = np.asarray(self.prob, np.float64)[:, None]
        generator = generator_of(self.key, block)
        shape = (score.size, REPLICATES)
        if self.dependence is None:
            ones = generator.binomial(all_copies, score, shape)
        else:
            shared, number = self.dependence.draw_copies(self.key, block, all_copies)
            ones = generator.binomial(all_copies - shared, score, shape) + shared * (number < score)
        return np.concatenate([ones, all_copies - ones])

    def _make_classes_of_copies(self, block: int) -> I64:
        """Draw how many copies (n, 32, K) of each row have each class."""
        all_copies = self._whole_copies
        shares = np.maximum(self.shares, 0.0)
        shares = (shares / shares.sum(axis=1, keepdims=True))[:, None]
        generator = generator_of(self.key, block)
        shape = (len(self.prob), REPLICATES)
        if self.dependence is None:
            return np.asarray(generator.multinomial(all_copies, shares, shape))
        shared, number = self.dependence.draw_copies(self.key, block, all_copies)
        drawn = np.asarray(generator.multinomial(all_copies - shared, shares, shape))
        shared_class = (number[..., None] >= self.up_to[:, None]).sum(axis=-1)
        rows, lanes = np.indices(shape)
        drawn[rows, lanes, shared_class] += shared
        return drawn

    @property
    def _whole_copies(self) -> I64:
        """The copies (n, 1) of the rows, as integers."""
        assert self.copies is not None
        return self.copies.astype(np.int64)[:, None]

    def outcomes(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:
        """Return outcomes (G, n, 32) of one problem; of copies, the number of hits."""
        if self.prob.ndim == 1:
            return drawn[:, : len(self.prob)]
        if self.copies is not None:
            return np.asarray(drawn[..., problem])
        return np.asarray(drawn == problem).view(np.uint8)

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:
        """Return the counts or the labels of one problem from the shared draws."""
        if self.form == CLASSES:
            return drawn
        if self.form == OUTCOMES:
            return self.outcomes(drawn, problem).astype(np.int32)
        if self.prob.ndim == 1:
            return drawn
        ones = self.outcomes(drawn, problem)
        all_copies = np.uint8(1) if self.copies is None else self._whole_copies
        return np.concatenate([ones, all_copies - ones], axis=1)
