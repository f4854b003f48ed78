"""Rows of a sample as the kernels for replicates read them, and sums over bins for replicates."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.binned.edges import Layout
from fastece.inputs.arrays import contiguous
from fastece.protocol import Sample

__all__ = [
    "Ordered",
    "Placed",
    "Tiles",
    "drawn_in_order",
    "order_rows",
    "place_rows",
    "tile_rows",
]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]

# Rows of a tile: with their multiplicities they fit into the first-level cache.
TILE = 1024


def terms_of(sample: Sample, threshold: float, moments: int) -> F64:
    """What each row adds to each of the first `moments` sums when it is drawn once: (Q, n)."""
    terms = np.empty((moments, sample.n))
    for q, term in enumerate(terms):
        kernels.binning.moment(q, sample.s, sample.y, sample.v, threshold, term)
    return terms


def cells_of(sample: Sample, layout: Layout) -> tuple[I32, F64]:
    """The cell of each row, and its share there; the rest is in the next cell."""
    lower, share = np.empty(sample.n, np.int32), np.ones(sample.n)
    kernels.binning.place(sample.s, *layout.grid, lower, np.empty(sample.n), share)
    return lower, share


def shared_terms(sample: Sample, layout: Layout, share: F64, threshold: float, moments: int) -> F64:
    """`terms_of` in the cell of each row; with convex mapping those of the next cell follow."""
    terms = terms_of(sample, threshold, moments)
    if layout.grid.convex:
        terms = np.concatenate([terms * share, terms * (1 - share)])
    return terms


class Tiles(NamedTuple):
    """Rows whose cells do not depend on the draw, as `kernels.replicates.tile_sums` takes them."""

    layout: Layout
    terms: F64
    order: I32
    starts: I32
    cells: I32

    def sums(self, c: NDArray[np.uint8]) -> F64:
        """Sums (Q, B, 32 G) over the bins, for (G, n, 32) multiplicities."""
        step = 1 if self.layout.cells > 1 else 0
        moments = len(self.terms) // (2 if self.layout.grid.convex else 1)
        out = np.empty((moments, self.layout.cells, c.shape[0] * c.shape[2]))
        kernels.replicates.tile_sums(self.terms, self.order, self.starts, self.cells, step, c, out)
        return spread(self.layout, out)


def spread(layout: Layout, sums: F64) -> F64:
    """Sums per cell as sums per bin."""
    return sums if layout.bins is None else layout.spread(sums.swapaxes(1, 2)).swapaxes(1, 2)


def tile_rows(sample: Sample, layout: Layout, threshold: float, moments: int) -> Tiles:
    """Bring the rows into tiles, and in each tile those of one cell together."""
    lower, share = cells_of(sample, layout)
    order, runs = np.empty(sample.n, np.int32), np.empty(sample.n, np.int32)
    starts = np.empty(sample.n + 1, np.int32)
    # With more cells than rows in a tile, most runs would be of one row.
    tile = max(TILE, layout.cells)
    count = kernels.replicates.arrange_tiles(lower, layout.cells, tile, order, starts, runs)
    terms = shared_terms(sample, layout, share, threshold, moments)
    arranged = np.take(terms, order, axis=1)
    return Tiles(layout, arranged, order, starts[: count + 1].copy(), runs[:count].copy())


class Placed(NamedTuple):
    """Rows with their cells, as `kernels.subsets.drawn_sums` takes them."""

    layout: Layout
    records: F64

    def sums(self, rows: I32) -> F64:
        """Sums (Q, B, R) over the bins, for the drawn rows (R, size)."""
        moments = (self.records.shape[1] - 1) // (2 if self.layout.grid.convex else 1)
        out = np.empty((moments, self.layout.cells, len(rows)))
        step = 1 if self.layout.cells > 1 else 0
        kernels.subsets.drawn_sums(self.records, step, rows, out)
        return spread(self.layout, out)


def place_rows(sample: Sample, layout: Layout, threshold: float, moments: int) -> Placed:
    """The cell of each row beside what it brings there, and to the next cell."""
    records = np.empty((sample.n, 1 + moments * (2 if layout.grid.convex else 1)))
    kernels.subsets.fill_records(sample.s, sample.y, sample.v, *layout.grid, threshold, records)
    return Placed(layout, records)


class Ordered(NamedTuple):
    """Rows in increasing order of the score, as `kernels.replicates.equal_mass_sums` takes them."""

    s: F64
    u: F64
    v: F64 | None
    terms: F64
    order: I32
    run: I32
    first: I32
    skip: int
    low: float
    high: float

    def sums(self, c: NDArray[np.uint8], n_bins: int, right: bool, convex: bool) -> tuple[F64, F64]:
        """Weight (32 G,) and sums (Q, B, 32 G) over the bins, for (G, n, 32) multiplicities."""
        total = np.empty(c.shape[0] * c.shape[2])
        out = np.empty((len(self.terms), n_bins, total.size))
        kernels.replicates.equal_mass_sums(*self, right, convex, c, total, out)
        return total, out


def order_rows(sample: Sample, low: float, high: float, threshold: float, moments: int) -> Ordered:
    """The rows that exist of a sorted sample, with runs of equal scores."""
    skip = int(np.searchsorted(sample.s, threshold, "right"))
    sample = sample.where(slice(skip, None))
    inside = sample.n == 0 or (low <= sample.s[0] and sample.s[-1] <= high)
    u = sample.s if inside else sample.s.clip(low, high)
    begins = np.ones(u.size, np.bool_)
    begins[1:] = u[1:] != u[:-1]
    first = np.append(np.flatnonzero(begins), u.size).astype(np.int32)
    run = (np.cumsum(begins) - 1).astype(np.int32)
    order = np.arange(u.size, dtype=np.int32)
    terms = terms_of(sample, threshold, moments)
    return Ordered(sample.s, u, sample.v, terms, order, run, first, skip, low, high)


def drawn_in_order(
    sample: Sample, rows: NDArray[Any], n_bins: int, low: float, high: float, right: bool,
    convex: bool, threshold: float, moments: int,
) -> tuple[F64, F64]:  # fmt: skip
    """Weight (R,) and sums (Q, B, R) over bins of equal weight of the drawn rows (R, size)."""
    total, out = np.empty(len(rows)), np.empty((moments, n_bins, len(rows)))
    rows = np.sort(contiguous(rows, np.int32), axis=1)
    kernels.subsets.drawn_equal_mass_sums(
        sample.s, sample.y, sample.v, threshold, low, high, right, convex, rows, total, out
    )
    return total, out
