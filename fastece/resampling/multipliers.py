"""Gaps of whole groups of rows, times random numbers: what bins of a calibrated model may show."""

from dataclasses import dataclass

import numpy as np

from fastece import kernels
from fastece.checks.arrays import contiguous
from fastece.data.order import scale_weights
from fastece.data.problems import one_problem
from fastece.data.sample import Sample
from fastece.estimators.base import Plan
from fastece.estimators.binned.edges import Layout
from fastece.estimators.binned.estimator import Binned, Bins, place_rows
from fastece.estimators.binned.replicates import spread
from fastece.kernels import REPLICATES
from fastece.resampling.draws import Groups
from fastece.typing import F64, I32, U8


@dataclass(frozen=True)
class GapPlan(Plan):
    """What `GroupGaps` needs of one sample.

    Attributes
    ----------
    bins : Bins
        The bins of the sample; in replicates the gaps alone are others.
    layout : Layout
        Their cells.
    gap : (M,) float64 array
        What a group adds to the gap of a cell, wherever it has rows, cell by cell.
    group : (M,) int32 array
        Which group that is.
    starts, cells : (S + 1,) and (S,) int32 arrays
        Where the gaps of each cell begin, and which cell it is.
    """

    bins: Bins
    layout: Layout
    gap: F64
    group: I32
    starts: I32
    cells: I32

    def sums(self, c: U8) -> F64:
        """Gaps (B, 32 G) of the bins, for multiplicities (G, groups, 32)."""
        out = np.empty((1, self.layout.cells, REPLICATES * len(c)))
        kernels.replicates.tile_sums(self.gap[None], self.group, self.starts, self.cells, 0, c, out)
        sums: F64 = spread(self.layout, out)[0]
        return sums


class GroupGaps:
    """A binned estimator, for draws of counts k_g of the groups: where a bin has the gap
    ``D_b = sum_g D_gb``, a replicate has ``sum_g (k_g - 1) D_gb``. Weights and edges stay."""

    needs_sorted = False

    def __init__(self, binned: Binned, groups: Groups) -> None:
        self.binned, self.groups = binned, groups

    def prepare(self, sample: Sample, size: int) -> GapPlan:  # noqa: ARG002
        """The gaps of each cell, group by group."""
        binned, count = self.binned, self.groups.count
        sample, _ = scale_weights(sample)
        bins = binned.bins(one_problem(sample), moments=2)
        layout, lower, share = place_rows(binned, sample, bins.gap.shape[1])
        gap = sample.y - sample.s if sample.v is None else sample.v * (sample.y - sample.s)
        if binned.threshold is not None:
            gap = np.where(sample.s > binned.threshold, gap, 0.0)
        cell, of_row = lower.astype(np.int64), self.groups.of_row
        if layout.grid.convex:
            cell = np.concatenate([cell, np.minimum(cell + 1, layout.cells - 1)])
            gap, of_row = np.concatenate([gap * share, gap * (1 - share)]), np.tile(of_row, 2)
        pair, place = np.unique(cell * count + of_row, return_inverse=True)
        cells, starts = np.unique(pair // count, return_index=True)
        return GapPlan(
            bins,
            layout,
            np.bincount(place, gap, pair.size).astype(np.float64),
            (pair % count).astype(np.int32),
            np.append(starts, pair.size).astype(np.int32),
            cells.astype(np.int32),
        )

    def block_bins(self, plan: GapPlan, c: U8) -> Bins:
        """The bins (32 G, B) of replicates with the counts (G, groups, 32)."""
        once = plan.sums(np.ones((1, self.groups.count, REPLICATES), np.uint8))[:, :1]
        gap = (plan.sums(contiguous(c, np.uint8)) - once).T
        bins = plan.bins
        weight = np.broadcast_to(bins.weight, gap.shape)
        return Bins([], bins.unit, np.broadcast_to(bins.total, len(gap)), gap, weight)

    def blocks(self, plan: GapPlan, c: U8) -> F64:
        """The values (32 G,) of the replicates."""
        return self.values(self.block_bins(plan, c))

    def values(self, bins: Bins) -> F64:
        """The value of each replicate."""
        return self.binned.values(bins)
