"""Sums over the bins of many replicates: a sample is prepared once and added up often.

Two things decide how the rows of the sample are arranged. Are the bins the same in every draw, or
do they depend on it? And is a draw given by the counts of all rows, for 32 replicates side by side,
or by a list of the drawn rows, which are few? Each of the four cases has its own kernel:

==========  =======================================  ===========================================
bins        counts, 1 to 2 ns a row                  lists, 8 to 20 ns a drawn row
==========  =======================================  ===========================================
fixed       tiles: rows of a bin are side by side    records: cell and terms of a row in a line
equal mass  sorted rows, with cuts between them      the drawn rows, as a sample of their own
==========  =======================================  ===========================================

A *term* of a row is its part of a sum when it is drawn once.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.samples import Sample
from fastece.estimators.base import Plan
from fastece.estimators.binned.cell_sums import name_sums, pack_counts, unpack_counts
from fastece.estimators.binned.layouts import BinRule, Layout, Placement, fixed_layout
from fastece.estimators.binned.sums import Bins, make_bins
from fastece.estimators.draws import Counts, Rows
from fastece.kernels import COUNTS, PACK, REPLICATES, WEIGHT
from fastece.kernels.types import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

# Sums of the replicates that are made together: 4 MB.
MAX_SUMS = 2**19
# Rows of a tile: with their counts they fit into the first-level cache.
TILE_ROWS = 1024
# `kernels.replicates` keeps the cumulative weight before every group of rows. A pair is the largest
# sample, in rows, and the rows of a group for it.
GROUP_SIZES = ((512, 1), (65536, 16), (2**31, 64))


def plan_bins(
    rule: BinRule, sample: Sample, unit: float, kinds: Sequence[int], size: int
) -> "BinnedPlan":
    """Prepare a sample, with weights in a unit, for sums of draws of `size` rows."""
    if rule.is_equal_mass:
        make_plan: type[BinnedPlan] = EqualMassPlan
    else:
        make_plan = FixedBinPlan
        # Fixed bins have to add up the weight of a draw; equal-mass bins know it anyway.
        if sample.v is not None and WEIGHT not in kinds:
            kinds = (*kinds, WEIGHT)
    if sample.v is None and size < PACK and not rule.is_convex:
        kinds = pack_counts(kinds)
    return make_plan(rule, sample, unit, tuple(kinds))


@dataclass(frozen=True)
class BinnedPlan(Plan, ABC):
    """A sample prepared for the sums of replicates.

    Its rows are arranged when they are first needed.

    Attributes
    ----------
    rule : BinRule
    sample : Sample
    unit : float
        Weights of the sample are in units of this power of two.
    kinds : tuple of int
        The Q sums that a replicate needs, perhaps packed by `cell_sums.pack_counts`.
    """

    rule: BinRule
    sample: Sample
    unit: float
    kinds: tuple[int, ...]

    @abstractmethod
    def sum_counts(self, c: U8) -> tuple[F64, F64 | None]:
        """Compute the sums (Q, B, R) of replicates with counts (G, n, 32) of the rows.

        With them comes the weight (R,) of the drawn rows, or None if it is the sum over the bins.
        """

    @abstractmethod
    def sum_lists(self, rows: I32) -> tuple[F64, F64 | None]:
        """Compute the same for replicates that are lists (R, size) of rows."""

    def bins(self, draws: Counts | Rows) -> Bins:
        """Add up the rows of each replicate in its bins, without their edges."""
        if isinstance(draws, Counts):
            sums, total = self.sum_counts(draws.blocks(self.sample.n))
        else:
            sums, total = self.sum_lists(contiguous(draws.rows, np.int32))
        named_sums = unpack_counts(name_sums(self.kinds, sums.swapaxes(1, 2)))
        return make_bins([], named_sums, total, self.unit)

    def parts(self, draws: Counts | Rows) -> Iterator[Counts | Rows]:
        """Split draws so that the sums of each part take some megabytes."""
        max_replicates = max(1, MAX_SUMS // (self.rule.n_bins * len(self.kinds)))
        if isinstance(draws, Counts):
            n_blocks = max(1, max_replicates // REPLICATES)
            for start in range(0, len(draws.c), n_blocks):
                yield Counts(draws.c[start : start + n_blocks])
        else:
            for start in range(0, len(draws.rows), max_replicates):
                yield Rows(draws.rows[start : start + max_replicates])


def terms_of(sample: Sample, threshold: float, kinds: Sequence[int]) -> F64:
    """Compute the terms (Q, n) of rows in sums of Q kinds."""
    weight = kernels.weights(sample.v)
    terms = np.empty((len(kinds), sample.n))
    for kind, term in zip(kinds, terms, strict=True):
        kernels.moments.moment(kind, sample.s, sample.y, weight, threshold, term)
    return terms


# --- bins that are the same in every draw ---------------------------------------------------


def share_terms(terms: F64, place: Placement) -> F64:
    """Share terms (Q, n) among the cells of their rows.

    With convex mapping the result is (2 Q, n): all terms in the lower cells, then all in the upper
    ones. With hard mapping a row has one cell.
    """
    if not place.layout.grid.convex:
        return terms
    return np.concatenate([terms * place.share, terms * (1 - place.share)])


def spread_replicates(layout: Layout, sums: F64) -> F64:
    """Turn sums per cell (Q, cells, R) into sums per bin (Q, B, R)."""
    if layout.cells_are_bins:
        return sums
    sums_of_bins = np.zeros((len(sums), layout.n_bins, sums.shape[2]))
    sums_of_bins[:, layout.bin_of_cell] = sums
    return sums_of_bins


class Tiles(NamedTuple):
    """Rows in fixed bins for counts, as `kernels.replicates.tile_sums` takes them.

    In a tile the rows of a cell are side by side, and the counts of a tile stay in the first-level
    cache.
    """

    layout: Layout
    terms: F64
    order: I32
    starts: I32
    cells: I32

    @classmethod
    def of(cls, sample: Sample, layout: Layout, threshold: float, kinds: Sequence[int]) -> Self:
        """Arrange the rows of a sample in tiles, for sums of Q kinds."""
        place = layout.place(sample.s)
        order = np.empty(sample.n, np.int32)
        starts = np.empty(sample.n + 1, np.int32)
        cells = np.empty(sample.n, np.int32)
        # With more cells than rows in a tile, most runs would be of one row.
        tile = max(TILE_ROWS, layout.cells)
        n_runs = kernels.replicates.arrange_tiles(
            place.lower, layout.cells, tile, order, starts, cells
        )
        terms = share_terms(terms_of(sample, threshold, kinds), place)
        return cls(
            layout=layout,
            terms=np.take(terms, order, axis=1),
            order=order,
            starts=starts[: n_runs + 1].copy(),
            cells=cells[:n_runs].copy(),
        )

    def sums(self, c: U8) -> F64:
        """Compute sums (Q, B, 32 G) over the bins for counts (G, n, 32)."""
        n_blocks, _, width = c.shape
        n_kinds = len(self.terms)
        if self.layout.grid.convex:
            n_kinds //= 2
        sums = np.empty((n_kinds, self.layout.cells, n_blocks * width))
        kernels.replicates.tile_sums(
            self.terms, self.order, self.starts, self.cells, step=self.layout.step, c=c, out=sums
        )
        return spread_replicates(self.layout, sums)


@dataclass(frozen=True)
class FixedBinPlan(BinnedPlan):
    """Rows of a sample in bins that are the same in every draw."""

    @cached_property
    def layout(self) -> Layout:
        """The layout of the bins."""
        return fixed_layout(self.rule)

    @cached_property
    def tiles(self) -> Tiles:
        """The rows for counts."""
        return Tiles.of(self.sample, self.layout, self.rule.threshold, self.kinds)

    @cached_property
    def records(self) -> F64:
        """The rows for lists: lower cell and shared terms, (n, 1 + Q) or (n, 1 + 2 Q)."""
        place = self.layout.place(self.sample.s)
        terms = share_terms(terms_of(self.sample, self.rule.threshold, self.kinds), place)
        return np.column_stack([place.lower, *terms])

    def sum_counts(self, c: U8) -> tuple[F64, F64 | None]:
        """Compute the sums of replicates with counts (G, n, 32) of the rows."""
        # Without weights all replicates draw as many rows.
        n_drawn = int(c[0, :, 0].sum(dtype=np.int64))
        sums = self.tiles.sums(c)
        return sums, self.total_of(n_drawn, sums.shape[2])

    def sum_lists(self, rows: I32) -> tuple[F64, F64 | None]:
        """Compute the sums of replicates that are lists (R, size) of rows."""
        n_replicates, size = rows.shape
        sums = np.empty((len(self.kinds), self.layout.cells, n_replicates))
        kernels.moments.drawn_sums(self.records, self.layout.step, rows, sums)
        return spread_replicates(self.layout, sums), self.total_of(size, n_replicates)

    def total_of(self, n_drawn: int, n_replicates: int) -> F64 | None:
        """Return the number of drawn rows for each replicate; None if a sum has it."""
        if WEIGHT in self.kinds or COUNTS in self.kinds:
            return None
        return np.full(n_replicates, float(n_drawn))


# --- bins of equal weight, which depend on the draw -----------------------------------------


def order_rows(
    sample: Sample, low: float, high: float, threshold: float = -math.inf
) -> "OrderedRows":
    """Arrange the rows of a sorted sample above a threshold in runs of equal scores."""
    skip = int(np.searchsorted(sample.s, threshold, "right"))
    sample = sample.where(slice(skip, None))
    is_in_range = sample.n == 0 or (low <= sample.s[0] and sample.s[-1] <= high)
    u = sample.s if is_in_range else sample.s.clip(low, high)
    begins_run = np.ones(u.size, np.bool_)
    begins_run[1:] = u[1:] != u[:-1]
    return kernels.replicates.OrderedRows(
        s=sample.s,
        u=u,
        v=kernels.weights(sample.v),
        order=np.arange(u.size, dtype=np.int32),
        run=(np.cumsum(begins_run) - 1).astype(np.int32),
        first=np.append(np.flatnonzero(begins_run), u.size).astype(np.int32),
        skip=skip,
        low=low,
        high=high,
        group=next(size for max_rows, size in GROUP_SIZES if u.size <= max_rows),
    )


@dataclass(frozen=True)
class EqualMassPlan(BinnedPlan):
    """Rows of a sorted sample, for bins that have equal weight in every draw."""

    @cached_property
    def ordered(self) -> "OrderedRows":
        """The rows above the threshold, for counts."""
        return order_rows(self.sample, self.rule.low, self.rule.high, self.rule.threshold)

    @cached_property
    def terms(self) -> F64:
        """Terms (Q, n) of the `ordered` rows."""
        rows_above = self.sample.where(slice(self.ordered.skip, None))
        return terms_of(rows_above, self.rule.threshold, self.kinds)

    def sum_counts(self, c: U8) -> tuple[F64, F64 | None]:
        """Compute the sums of replicates with counts (G, n, 32) of the rows."""
        n_replicates = len(c) * REPLICATES
        total = np.empty(n_replicates)
        sums = np.empty((len(self.kinds), self.rule.n_bins, n_replicates))
        kernels.replicates.equal_mass_sums(
            self.ordered, self.terms, right=self.rule.closed_right, convex=self.rule.is_convex,
            c=c, total=total, out=sums,
        )  # fmt: skip
        return sums, total

    def sum_lists(self, rows: I32) -> tuple[F64, F64 | None]:
        """Compute the sums of replicates that are lists (R, size) of rows."""
        total = np.empty(len(rows))
        sums = np.empty((len(self.kinds), self.rule.n_bins, len(rows)))
        kernels.moments.drawn_equal_mass_sums(
            self.sample.s, self.sample.y, kernels.weights(self.sample.v),
            self.rule.equal_mass_fields,
            kinds=np.array(self.kinds), rows=np.sort(rows, axis=1), total=total, out=sums,
        )  # fmt: skip
        return sums, total
