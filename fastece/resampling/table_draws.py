"""Draws of tables whose rows count several times, as `fastece.data.counted` reads them.

They follow the laws of the draws of repeated rows in `fastece.resampling.draws`, from counts alone:
rows drawn with replacement are multinomial, and outcomes drawn from the scores are binomial, or
multinomial for classes. A block of replicates has a generator of its own.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample
from fastece.estimators.draws import TableCounts
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.draws import ClassDraws, GroupDraws, OutcomeDraws, ReplicateDraws


class TableDraws(ReplicateDraws):
    """Base class of draws that are handed on as counts of any size."""

    counts: F64
    kind = TableCounts
    bytes_per_row = 8

    @property
    def _whole_counts(self) -> I64:
        """The counts (n, 1) of the rows of the table, as integers."""
        return self.counts.astype(np.int64)[:, None]

    def hand_on(self, drawn: NDArray[Any], sample: Sample | None) -> TableCounts:  # noqa: ARG002
        """Return draws of a problem as counts."""
        return TableCounts(drawn)


class TableRowsDraws(TableDraws):
    """Base class of draws of the rows of a table, each of which has one count."""

    @property
    def n(self) -> int:
        """Number of rows of the table."""
        return self.counts.size


def generator_of(key: int, block: int) -> np.random.Generator:
    """Return the generator of the replicates of a block."""
    return np.random.default_rng((key, block))


@dataclass(frozen=True)
class TableRowDraws(TableRowsDraws):
    """Draws of `size` of the rows that a table stands for, with replacement."""

    key: int
    counts: F64
    size: int

    def make(self, first: int, blocks: int) -> I64:
        """Draw the counts (G, n, 32) of some blocks."""
        shares = self.counts / self.counts.sum()
        drawn = [
            generator_of(self.key, block).multinomial(self.size, shares, REPLICATES).T
            for block in range(first, first + blocks)
        ]
        return np.array(drawn, np.int64)


@dataclass(frozen=True)
class TableLeaveOutDraws(TableRowsDraws):
    """Counts that leave out one copy of row r in replicate r, for a jackknife."""

    counts: F64

    def make(self, first: int, blocks: int) -> I64:
        """Make the counts (G, n, 32) of some blocks; nothing is random."""
        counts = np.empty((blocks, self.n, REPLICATES), np.int64)
        counts[:] = self._whole_counts
        for r in range(blocks * REPLICATES):
            block, lane = divmod(r, REPLICATES)
            row = min(REPLICATES * first + r, self.n - 1)
            counts[block, row, lane] -= 1
        return counts


@dataclass(frozen=True)
class TableGroupDraws(TableRowsDraws):
    """Draws of whole groups of rows of a table."""

    of_groups: GroupDraws
    counts: F64

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw the counts (G, groups, 32) of the groups in some blocks."""
        return self.of_groups.make(first, blocks)

    def of_problem(self, drawn: NDArray[Any], problem: int) -> I64:
        """Return the counts (G, n, 32) of the rows, which are the same for every problem."""
        of_rows = self.of_groups.of_problem(drawn, problem).astype(np.int64)
        return np.asarray(of_rows * self._whole_counts)


# --- outcomes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableOutcomeDraws(TableDraws, OutcomeDraws):
    """Draws of how many copies of each row have the outcome 1.

    Attributes
    ----------
    counts : (n / 2,) float64 array
        How often each row counts; `prob` has its score.
    """

    counts: F64 = field(kw_only=True)

    def make(self, first: int, blocks: int) -> Any:
        """Draw the counts (G, n, 32) of rows with the outcome 1, then of rows with 0."""
        count = self._whole_counts
        score = np.asarray(self.prob, np.float64)[:, None]
        shape = (score.size, REPLICATES)
        ones = np.array([
            generator_of(self.key, block).binomial(count, score, shape)
            for block in range(first, first + blocks)
        ], np.int64)  # fmt: skip
        return np.concatenate([ones, count - ones], axis=1)

    def outcomes(self, drawn: NDArray[Any], problem: int) -> I32:  # noqa: ARG002
        """Return how many copies (G, n / 2, 32) have the outcome 1."""
        return drawn[:, : self.n // 2]


@dataclass(frozen=True)
class TableClassDraws(TableDraws, ClassDraws):
    """Draws of how many copies of each row have each class.

    Attributes
    ----------
    counts : (n / 2,) float64 array
        How often each row counts; `prob` has its class vector.
    """

    counts: F64 = field(kw_only=True)

    def make(self, first: int, blocks: int) -> Any:
        """Draw the counts (G, n / 2, 32, K) of the classes in some blocks."""
        count = self._whole_counts
        shares = np.maximum(self.shares, 0.0)
        shares = (shares / shares.sum(axis=1, keepdims=True))[:, None]
        shape = (len(self.prob), REPLICATES)
        drawn = [
            generator_of(self.key, block).multinomial(count, shares, shape)
            for block in range(first, first + blocks)
        ]
        return np.array(drawn, np.int64)

    def of_problem(self, drawn: NDArray[Any], problem: int) -> Any:
        """Return the counts (G, n, 32) of one class, then of all others."""
        ones = drawn[..., problem]
        return np.concatenate([ones, self._whole_counts - ones], axis=1)

    def outcomes(self, drawn: NDArray[Any], problem: int) -> I32:
        """Return how many copies (G, n / 2, 32) have the class."""
        outcomes: I32 = drawn[..., problem]
        return outcomes
