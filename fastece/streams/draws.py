"""Draws of the groups of rows that a stream has added up apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.samples import Sample
from fastece.estimators.draws import TableCounts
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.draws import ReplicateDraws, RowDraws


@dataclass(frozen=True, eq=False)
class GroupDraws(ReplicateDraws):
    """Counts of the cells of a stream, of which whole groups of rows are drawn.

    The groups are drawn as `fastece.bootstrap` draws the groups of rows in memory. Each row of a
    cell counts for its share of what the groups that were drawn have there.

    Attributes
    ----------
    draws : RowDraws
        Draws of as many groups as have rows.
    occupied : (m,) int64 array
        The groups that have rows.
    weights : (P, G, 2 N') int64 array
        Weights of both outcomes in the coarse cells of each problem, by group.
    samples : list of Sample
        The cells of each problem as sorted rows with counts.
    """

    draws: RowDraws
    occupied: I64
    weights: I64
    samples: list[Sample]

    kind = TableCounts

    @property
    def n(self) -> int:
        """Number of rows of the problem that has the most."""
        return max(sample.n for sample in self.samples)

    def make(self, first: int, blocks: int) -> NDArray[Any]:
        """Draw how often each group (B, G, 32) counts in some blocks."""
        drawn = self.draws.make(first, blocks)
        counts = np.zeros((blocks, self.weights.shape[1], drawn.shape[2]))
        counts[:, self.occupied] = drawn
        return counts

    def of_problem(self, drawn: NDArray[Any], problem: int) -> F64:
        """Return the counts (B, n, 32) of the rows of one problem.

        Those of one replicate are neighbours in memory, as replicates are evaluated one by one.
        """
        sample = self.samples[problem]
        weights = self.weights[problem].astype(np.float64)
        total = weights.sum(axis=0)
        drawn_weight = np.empty((len(drawn), drawn.shape[2], total.size))
        for block, product in zip(drawn, drawn_weight, strict=True):
            factors = np.ascontiguousarray(block.T)
            kernels.vectors.fill_pairs(factors, weights, kernels.NO_WEIGHTS, False, product)
        counts = drawn_weight[..., sample.rows]
        counts *= sample.counts / total[sample.rows]
        return counts.swapaxes(1, 2)

    def reorder(self, drawn: NDArray[Any], order: I32) -> NDArray[Any]:  # noqa: ARG002
        """Return the counts as they are, since the rows are in order."""
        return drawn
