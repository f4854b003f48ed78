"""Draws: rows with replacement, groups, leave-out parts, and labels under a null.

Every draw depends on its key, on the number of the replicate and on the number of rows alone, so it
does not matter who makes it, when, or together with which others.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.errors import InputError, InputTypeError
from fastece.estimators.base import Counts, Labels, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, I64, U8, U16

# Draws of at most this part of the rows are lists of rows: a row in a list costs some 8 ns, in a
# block half a nanosecond, drawn or not.
SMALL_PART = 16


def new_key(rng: Any) -> int:
    """Return the key of all draws of a call, from a seed or a generator.

    It is the generator's next word.
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

    Count k is decided by ``floor(65536 p_k)`` of the values of 16 bits, for the first few k: what
    their levels leave open has a law of its own, the cumulative `tail`, so that nothing is rounded.
    """
    levels = kernels.resampling.LEVELS
    parts = [65536 * math.exp(-rate) * rate**k / math.factorial(k) for k in range(40)]
    decided = [min(math.floor(part), 65535) for part in parts[:levels]]
    left = [part - whole for part, whole in zip(parts, decided, strict=False)] + parts[levels:]
    tail = np.cumsum(left) / sum(left)
    tail[-1] = 1.0
    return np.cumsum(decided).astype(np.uint16), tail


class InBlocks:
    """Draws in blocks of `unit` replicates, 32 but for lists of rows.

    `make` draws what all problems have in common for some blocks; `of_problem` is how often the n
    rows of one problem count in them.
    """

    # Replicates that are drawn together, bytes of a row in each of them, and the kind of draws that
    # they are for a statistic.
    unit, item = REPLICATES, 1
    kind: type = Counts

    def make(self: Any, first: int, blocks: int) -> Any:
        """Draw the counts (G, n, 32) of some blocks."""
        c = np.empty((blocks, self.n, REPLICATES), np.uint8)
        with np.errstate(over="ignore"):  # for kernels that are not compiled
            self._fill(first, c)
        return c

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:  # noqa: ARG002
        """Return the drawn counts (G, n, 32), which are the same for every problem."""
        return drawn


@dataclass(frozen=True)
class Multinomial(InBlocks):
    """Counts of `size` draws with replacement from n rows; `size` is at most n."""

    key: int
    n: int
    size: int

    def _fill(self, first: int, c: U8) -> None:
        # The total is about two standard deviations less than the size; what is missing is cheaper
        # to draw than what is too much is to take back.
        law = poisson_law(self.size / self.n * max(0.0, 1 - 2 / math.sqrt(self.size)))
        kernels.resampling.multiplicities(np.uint64(self.key), first, self.size, *law, c)


@dataclass(frozen=True)
class LeaveOut(InBlocks):
    """Counts that leave out one part of the rows in each replicate.

    Replicate r has every row i once, but not the rows with ``i % groups == min(first + r, last)``.
    """

    n: int
    groups: int
    first: int
    last: int

    def _fill(self, first: int, c: U8) -> None:
        c[:] = 1
        begin = self.first + REPLICATES * first
        for r in range(len(c) * REPLICATES):
            left_out = slice(min(begin + r, self.last), None, self.groups)
            c[r // REPLICATES, left_out, r % REPLICATES] = 0


@dataclass(frozen=True)
class Groups:
    """Partition of the rows into groups that belong together.

    Attributes
    ----------
    of_row : (n,) int32 array
        The group of each row, from 0 on, in the order in which groups first appear: where each row
        is a group, a draw of groups is that of rows.
    count : int
        Number of groups.
    """

    of_row: I32
    count: int

    @classmethod
    def of(cls, label: NDArray[Any]) -> Self:
        """Make the groups of rows with equal numbers (n,)."""
        _, first, place = np.unique(label, return_index=True, return_inverse=True)
        number = np.empty(first.size, np.int32)
        number[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
        return cls(number[place], first.size)

    def where(self, rows: I64 | None) -> "Groups":
        """Select rows, all for None, and the groups that they have."""
        return self if rows is None else Groups.of(self.of_row[rows])


@dataclass(frozen=True)
class GroupDraws(InBlocks):
    """Draws of whole groups: the count of a row is the count of its group.

    Groups may be of different sizes, so the number of rows is not that of every replicate.
    """

    of_groups: Multinomial | LeaveOut
    of_row: I32

    @property
    def n(self) -> int:
        """Number of rows that have counts."""
        return self.of_row.size

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw the counts (G, groups, 32) of the groups in some blocks."""
        return np.asarray(self.of_groups.make(first, blocks))

    def of_problem(self, drawn: NDArray[Any], problem: int) -> U8:  # noqa: ARG002
        """Return the counts (G, n, 32) of the rows, for every problem."""
        return np.take(drawn, self.of_row, axis=1)


@dataclass(frozen=True)
class Dependence:
    """How labels of one group depend on each other.

    A label is decided by a uniform number: with the probability `share` by that of its group, else
    by one of its own. So every label keeps its probability, and of two labels of a group the
    covariance is ``share**2`` times the largest that there can be.
    """

    of_row: I32
    count: int
    share: float
    effect: float = 1.0  # how many times it makes the variance of the number of hits

    def rows(self, start: int, count: int) -> "Dependence":
        """Select some rows, which keep the numbers of their groups."""
        return replace(self, of_row=self.of_row[start : start + count])

    def draw(self, key: int, block: int, row: int) -> tuple[NDArray[np.bool_], F64]:
        """Draw whether the group decides (n, 32), and its numbers (n, 32), in a block.

        The first row has the number `row`.
        """
        words = np.array([key, block], np.uint64)
        number = np.random.Generator(np.random.Philox(key=words)).random((self.count, REPLICATES))
        c = np.empty((1, 2 * self.of_row.size, REPLICATES), np.uint8)
        with np.errstate(over="ignore"):
            share = np.full(self.of_row.size, self.share)
            kernels.resampling.hits_of(~np.uint64(key), block, row, share, c)
        return c[0, : self.of_row.size].view(np.bool_), number[self.of_row]


@dataclass(frozen=True)
class HitCounts(InBlocks):
    """Draws of labels from predicted probabilities: scores (n,) or vectors (n, K).

    Every row stands there twice, as a hit and, in the second half, as a miss, and one of the two is
    drawn: so labels are multiplicities.
    """

    key: int
    prob: NDArray[Any]
    row: int = 0  # the number of the first one: of some rows, the draws of all are drawn
    dependence: Dependence | None = None

    @property
    def n(self) -> int:
        """Number of rows that have counts: two for each row of the data."""
        return 2 * len(self.prob)

    def shared(self, first: int, blocks: int) -> Iterator[tuple[NDArray[np.bool_], F64]]:
        """Yield where groups decide in each of some blocks, and by which numbers."""
        if self.dependence is not None:
            for block in range(first, first + blocks):
                yield self.dependence.draw(self.key, block, self.row)


class HitDraws(HitCounts):
    """Draws of outcomes with the score as the probability of a hit."""

    def _fill(self, first: int, c: U8) -> None:
        score = contiguous(self.prob, np.float64)
        kernels.resampling.hits_of(np.uint64(self.key), first, self.row, score, c)
        for block, (is_shared, number) in zip(c, self.shared(first, len(c)), strict=False):
            hit, miss = np.split(block, 2)
            np.less(number, score[:, None], out=hit, where=is_shared, casting="unsafe")
            np.subtract(1, hit, out=miss)


class ClassDraws(HitCounts):
    """Draws of classes, shared by the problems of all classes."""

    @cached_property
    def up_to(self) -> F64:
        """Cumulative probabilities of the classes (n, K - 1), without the last."""
        total = np.cumsum(self.prob, axis=1, dtype=np.float64)
        total[total[:, -1] == 0] = np.arange(1, total.shape[1] + 1)  # no class more than another
        return np.ascontiguousarray(total[:, :-1] / total[:, -1:])

    @property
    def shares(self) -> F64:
        """Probabilities of the classes (n, K), with rows that add up to 1."""
        return np.diff(self.up_to, axis=1, prepend=0.0, append=1.0)

    def make(self, first: int, blocks: int) -> I32:
        """Draw the labels (G, n / 2, 32) of some blocks."""
        label = np.empty((blocks, len(self.prob), REPLICATES), np.int32)
        with np.errstate(over="ignore"):
            kernels.resampling.categories(np.uint64(self.key), first, self.row, self.up_to, label)
        for block, (is_shared, number) in zip(label, self.shared(first, blocks), strict=False):
            block[is_shared] = 0
            for edge in self.up_to.T:
                block += is_shared & (number >= edge[:, None])
        return label

    def of_problem(self, drawn: I32, problem: int) -> U8:
        """Return the counts (G, n, 32) of hits and misses of one class."""
        is_drawn, half = np.empty((len(drawn), self.n, REPLICATES), np.bool_), self.n // 2
        np.equal(drawn, problem, out=is_drawn[:, :half])
        np.not_equal(drawn, problem, out=is_drawn[:, half:])
        return is_drawn.view(np.uint8)


@dataclass(frozen=True)
class LabelDraws(InBlocks):
    """Draws of labels, for estimators that take the labels themselves.

    Classes of whole class vectors, or the hits of each problem.
    """

    drawn: HitDraws | ClassDraws
    are_classes: bool

    item, kind = 4, Labels

    @property
    def n(self) -> int:
        """Number of rows that have labels."""
        return len(self.drawn.prob)

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw some blocks, as `drawn` makes them."""
        return np.asarray(self.drawn.make(first, blocks))

    def of_problem(self, drawn: NDArray[Any], problem: int) -> NDArray[Any]:
        """Return the labels (G, n, 32) of the rows for a problem."""
        if isinstance(self.drawn, HitDraws):
            return drawn[:, : self.n].astype(np.int32)
        return drawn if self.are_classes else (drawn == problem).astype(np.int32)


@dataclass(frozen=True)
class RowDraws(InBlocks):
    """Draws of `size` of n rows with replacement, as a list of rows in each replicate."""

    unit, item, kind = 1, 4, Rows

    key: int
    n: int
    size: int

    def make(self, first: int, replicates: int) -> I32:
        """Draw the rows (R, size) of some replicates, in the order in which they come."""
        rows = np.empty((replicates, self.size), np.int32)
        with np.errstate(over="ignore"):
            kernels.resampling.drawn_rows(np.uint64(self.key), first, self.n, rows)
        return rows


AnyDraws = Multinomial | LeaveOut | GroupDraws | HitDraws | ClassDraws | LabelDraws | RowDraws


def draws_of(
    key: int, n: int, size: int, groups: Groups | None = None
) -> Multinomial | GroupDraws | RowDraws:
    """Make draws of `size` of n rows in the faster form, or of all groups."""
    if groups is not None:
        return GroupDraws(Multinomial(key, groups.count, groups.count), groups.of_row)
    is_block = size <= n < SMALL_PART * size
    return Multinomial(key, n, size) if is_block else RowDraws(key, n, size)
