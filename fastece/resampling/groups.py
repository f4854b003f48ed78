"""Groups of rows that depend on each other, and how strongly their labels do."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, I64


@dataclass(frozen=True)
class Groups:
    """A partition of the rows into groups that belong together.

    Attributes
    ----------
    of_row : (n,) int32 array
        The group of each row, from 0 on, in the order in which groups first appear: where each row
        is a group, a draw of groups is a draw of rows.
    count : int
        Number of groups.
    """

    of_row: I32
    count: int

    @classmethod
    def of(cls, labels: NDArray[Any]) -> Self:
        """Make the groups of rows that have equal labels (n,)."""
        _, first_row, sorted_number = np.unique(labels, return_index=True, return_inverse=True)
        number = np.empty(first_row.size, np.int32)
        number[np.argsort(first_row)] = np.arange(first_row.size, dtype=np.int32)
        return cls(number[sorted_number], first_row.size)

    def where(self, rows: I64 | None) -> "Groups":
        """Select rows, or all for None, with the groups that have one of them."""
        return self if rows is None else Groups.of(self.of_row[rows])


@dataclass(frozen=True)
class Dependence:
    """How strongly the labels of one group depend on each other.

    A label is decided by a uniform number u, as in ``u < s``: with the probability `share` by the
    number of its group, otherwise by a number of its own. So every label keeps its probability, and
    two labels of a group have ``share**2`` times the largest covariance that their probabilities p
    and q allow, ``share**2 (min(p, q) - p q)``.

    Attributes
    ----------
    of_row : (n,) int32 array
        The group of each row, as in `Groups`.
    count : int
        Number of groups.
    share : float
        Probability that the group decides a label; 0 for independent labels.
    effect : float
        Design effect: how many times the dependence multiplies the variance of the sum of outcomes.
    """

    of_row: I32
    count: int
    share: float
    effect: float = 1.0

    def rows(self, start: int, count: int) -> "Dependence":
        """Select consecutive rows, which keep the numbers of their groups."""
        return replace(self, of_row=self.of_row[start : start + count])

    def draw_blocks(
        self, key: int, first: int, blocks: int, first_row: int
    ) -> Iterator[tuple[NDArray[np.bool_], F64]]:
        """Yield for each block where groups decide (n, 32), and their numbers (n, 32)."""
        for block in range(first, first + blocks):
            yield self.draw(key, block, first_row)

    def draw_copies(self, key: int, block: int, copies: I64) -> tuple[I64, F64]:
        """Draw how many copies (n, 32) groups decide, and their numbers (n, 32)."""
        words = np.array([key, block], np.uint64)
        generator = np.random.Generator(np.random.Philox(key=words))
        number_of_group = generator.random((self.count, REPLICATES))
        shape = (self.of_row.size, REPLICATES)
        return generator.binomial(copies, self.share, shape), number_of_group[self.of_row]

    def draw(self, key: int, block: int, first_row: int) -> tuple[NDArray[np.bool_], F64]:
        """Draw where groups decide (n, 32), and their numbers (n, 32), in a block.

        `first_row` is the number of the first row among all rows of the data: a row has the same
        draws whether or not the others are drawn with it.
        """
        n = self.of_row.size
        words = np.array([key, block], np.uint64)
        generator = np.random.Generator(np.random.Philox(key=words))
        number_of_group = generator.random((self.count, REPLICATES))
        decisions = np.empty((1, 2 * n, REPLICATES), np.uint8)
        shares = np.full(n, self.share)
        with np.errstate(over="ignore"):  # kernels that are not compiled warn otherwise
            kernels.resampling.hits_of(~np.uint64(key), block, first_row, shares, decisions)
        return decisions[0, :n].view(np.bool_), number_of_group[self.of_row]
