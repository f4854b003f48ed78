"""Sums over bins for many replicates of one sample.

There is a way for each of two choices. Are bins the same in every draw (uniform), or do they depend
on it (equal mass)? And is a draw multiplicities of all rows, 32 replicates side by side, or a list
of few of them? The four arrangements of rows below are what makes each of them fast:

=============  =====================================  ==========================================
bins           multiplicities, 1 to 2 ns a row        lists, 8 to 20 ns a drawn row
=============  =====================================  ==========================================
uniform        `Tiles`: rows of a bin side by side    `Records`: what a row brings, in one place
equal mass     `Ordered`: cuts between sorted rows    the drawn rows, as a sample of their own
=============  =====================================  ==========================================
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from fastece import kernels
from fastece.checks.arrays import contiguous
from fastece.data.order import order_rows
from fastece.data.sample import Sample
from fastece.estimators.binned.edges import Layout
from fastece.typing import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows


# Rows of a tile: with their multiplicities they fit into the first-level cache.
TILE = 1024


def terms_of(sample: Sample, threshold: float, moments: Sequence[int]) -> F64:
    """Compute the terms (Q, n) of each row in sums of some `kernels.MOMENTS`.

    They are of a row that is drawn once.
    """
    terms, v = np.empty((len(moments), sample.n)), kernels.weights(sample.v)
    for kind, term in zip(moments, terms, strict=True):
        kernels.binning.moment(kind, sample.s, sample.y, v, threshold, term)
    return terms


def place_terms(
    sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]
) -> tuple[I32, F64]:
    """Find the (lower) cell of each row (n,) and its terms (Q, n) there.

    With convex mapping also those in the upper cell (2 Q, n).
    """
    lower, share = np.empty(sample.n, np.int32), np.ones(sample.n)
    kernels.binning.place(sample.s, layout.grid, lower, np.empty(sample.n), share)
    terms = terms_of(sample, threshold, moments)
    if layout.grid.convex:
        terms = np.concatenate([terms * share, terms * (1 - share)])
    return lower, terms


def spread(layout: Layout, sums: F64) -> F64:
    """Turn sums per cell (Q, cells, R) into sums per bin (Q, B, R).

    The sums of convex bins lie side by side in memory, which is the order in which numpy adds them
    up.
    """
    if layout.bins is None:
        return sums
    return layout.spread(np.ascontiguousarray(sums.swapaxes(1, 2))).swapaxes(1, 2)


class Tiles(NamedTuple):
    """Rows on fixed edges, as `kernels.replicates.tile_sums` takes them."""

    layout: Layout
    terms: F64
    order: I32
    starts: I32
    cells: I32

    @classmethod
    def of(cls, sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]) -> Self:
        """Arrange the rows of a sample in tiles, sorted by cell within each tile."""
        n, (lower, terms) = sample.n, place_terms(sample, layout, threshold, moments)
        order, runs = np.empty(n, np.int32), np.empty(n, np.int32)
        starts = np.empty(n + 1, np.int32)
        # With more cells than rows in a tile, most runs would be of one row.
        tile = max(TILE, layout.cells)
        count = kernels.replicates.arrange_tiles(lower, layout.cells, tile, order, starts, runs)
        terms = np.take(terms, order, axis=1)
        return cls(layout, terms, order, starts[: count + 1].copy(), runs[:count].copy())

    def sums(self, c: U8) -> F64:
        """Compute sums (Q, B, 32 G) over the bins for counts (G, n, 32)."""
        layout = self.layout
        out = np.empty((len(self.terms) // layout.sides, layout.cells, c.shape[0] * c.shape[2]))
        kernels.replicates.tile_sums(
            self.terms, self.order, self.starts, self.cells, layout.step, c, out
        )
        return spread(layout, out)


class Records(NamedTuple):
    """Cell and terms of each row, as `kernels.subsets.drawn_sums` takes them."""

    layout: Layout
    records: F64

    @classmethod
    def of(cls, sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]) -> Self:
        """Make the records of a sample on a layout."""
        lower, terms = place_terms(sample, layout, threshold, moments)
        return cls(layout, np.column_stack([lower, *terms]))

    def sums(self, rows: I32) -> F64:
        """Compute sums (Q, B, R) over the bins for the drawn rows (R, size)."""
        layout = self.layout
        moments = (self.records.shape[1] - 1) // layout.sides
        out = np.empty((moments, layout.cells, len(rows)))
        kernels.subsets.drawn_sums(self.records, layout.step, rows, out)
        return spread(layout, out)


class Ordered(NamedTuple):
    """Rows in increasing order of the score, with their terms."""

    rows: "OrderedRows"
    terms: F64

    @classmethod
    def of(
        cls, sample: Sample, low: float, high: float, threshold: float, moments: Sequence[int]
    ) -> Self:
        """Make the ordered rows of a sorted sample, above the threshold."""
        rows = order_rows(sample, low, high, threshold)
        return cls(rows, terms_of(sample.where(slice(rows.skip, None)), threshold, moments))

    def sums(self, c: U8, n_bins: int, right: bool, convex: bool) -> tuple[F64, F64]:
        """Compute the weight (32 G,) and bin sums (Q, B, 32 G) for counts (G, n, 32)."""
        total = np.empty(c.shape[0] * c.shape[2])
        out = np.empty((len(self.terms), n_bins, total.size))
        kernels.replicates.equal_mass_sums(self.rows, self.terms, right, convex, c, total, out)
        return total, out


def drawn_equal_mass_sums(
    sample: Sample, rows: I32, n_bins: int, low: float, high: float, right: bool, convex: bool,
    threshold: float, moments: Sequence[int],
) -> tuple[F64, F64]:  # fmt: skip
    """Compute weights (R,) and equal-mass bin sums (Q, B, R) of drawn rows (R, size)."""
    total, out = np.empty(len(rows)), np.empty((len(moments), n_bins, len(rows)))
    rows = np.sort(contiguous(rows, np.int32), axis=1)
    kernels.subsets.drawn_equal_mass_sums(
        sample.s, sample.y, kernels.weights(sample.v), threshold, low, high, right, convex,
        np.array(moments), rows, total, out,
    )  # fmt: skip
    return total, out
