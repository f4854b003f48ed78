"""Densities of the scores and of the hits, for many replicates of one sample.

::

    replicates                 how often each row counts, or which rows were drawn
     |  bandwidths             one for each replicate: given, or Silverman's rule
     |  groups                 replicates whose bandwidths fit one grid
     |  cells                  their rows added up, misses and hits apart, some replicates at once
     v  densities              cells smoothed by the kernel: f of the scores, g of the hits
    (grid, densities, numbers of the replicates)

What a replicate gives depends on its own rows and bandwidth, never on its neighbours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.arrays import contiguous
from fastece.data.order import order_rows, quantile_edges
from fastece.data.sample import Sample
from fastece.estimators.base import Plan
from fastece.estimators.density.beta import PER_OCTAVE, BetaMesh
from fastece.estimators.density.grid import Mesh
from fastece.kernels import REPLICATES
from fastece.typing import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

Lanes = NDArray[np.intp]

# Bandwidth where all scores are equal, and the smallest that the rule gives.
SMALLEST = 3e-4
# Distance between the quartiles of a normal distribution, in standard deviations.
IQR_OF_NORMAL = 1.349
# Sums that are smoothed at once: 0.25 MB.
MAX_SUMS = 2**15
# Sums beyond which fewer replicates are taken side by side: 64 MB.
MOST_SUMS, FEW_LANES = 2**23, 2
# Grids fit bandwidths from ``0.0003 * 2**(k / 4)`` on, so they are up to 1.2 times too fine.
LEVELS = 4


def silverman(spreads: F64, size: int) -> F64:
    """Compute Silverman's bandwidth of each replicate from spreads (4, R).

    ``max(0.0003, min(sd, IQR / 1.349) * (3 n / 4)**(-1/5))`` for replicates of n = `size` rows;
    `spreads` are the weight W, the sums of ``w (s - a)`` and ``w (s - a)**2``, and IQR.

    With ``sd**2 = sum w (s - m)**2 / W * n / (n - 1)`` and the distance IQR between the quartiles,
    which is left out where it is 0: Silverman (1986, "Density estimation for statistics and data
    analysis", section 3.4.2), with the factor of a normal density.
    """
    weight, first, second, iqr = spreads
    if size == 1:
        return np.full(weight.size, SMALLEST)
    variance = (second - first * (first / weight)) / weight * (size / (size - 1))
    sd = np.sqrt(np.maximum(variance, 0.0))
    width = np.where(iqr > 0, np.minimum(sd, iqr / IQR_OF_NORMAL), sd)
    return np.asarray(np.maximum(SMALLEST, width * (0.75 * size) ** -0.2))


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of a sorted sample in a range, with terms for Silverman's rule."""

    sample: Sample
    low: float
    high: float

    @cached_property
    def centre(self) -> float:
        """Mean of the scores: squared distances from it do not cancel."""
        return float(np.average(self.sample.s, weights=self.sample.v))

    @cached_property
    def rows(self) -> "OrderedRows":
        """Rows with runs of equal scores."""
        return order_rows(self.sample, self.low, self.high)

    @cached_property
    def terms(self) -> F64:
        """Weighted distances from the centre, and weighted squares of them (2, n)."""
        x = self.rows.u - self.centre
        terms = np.stack([x, x * x])
        return terms * self.rows.v if self.rows.v.size else terms


@dataclass(frozen=True, eq=False)
class CellShares:
    """Rows of a sample, shared among the cells of a mesh.

    In draws that are much smaller than the sample, only those rows that are drawn are ever placed.
    """

    mesh: Mesh | BetaMesh
    sample: Sample

    @cached_property
    def of_all(self) -> tuple[I32, F64]:
        """First of four neighbouring cells (n,) of each row, and its shares (4, n)."""
        cell, share = np.empty(self.sample.n, np.int32), np.empty((4, self.sample.n))
        kernels.density.place(*self.cells, cell, share)
        if self.sample.v is not None:
            share *= self.sample.v
        return cell, share

    @cached_property
    def cells(self) -> tuple[F64, float, float, int, bool]:
        """Coordinates of the scores, and the grid of cells."""
        return self.mesh.cells_of(self.sample)

    def spread(self, c: NDArray[Any], cells: F64) -> None:
        """Add the rows to the cells (L, 2, C, W), for counts (L, n, W)."""
        kernels.density.spread(c, self.sample.y, *self.of_all, cells)


@dataclass(frozen=True)
class Copies:
    """Replicates in which row i counts ``c[i]`` times.

    One, or several of different bandwidths, whose rows are added up once.
    """

    c: NDArray[Any]
    count: int = 1
    sums: dict[CellShares, F64] = field(default_factory=dict)

    def spreads(self, scores: Scores) -> F64:
        """Compute the spreads (4, R) of the scores for Silverman's rule."""
        c, rows = self.c.astype(np.float64), scores.rows
        w = c * rows.v if rows.v.size else c
        edges, _ = quantile_edges(rows.u, w, 4, rows.low, rows.high, right=True)
        spread = np.array([w.sum(), *(scores.terms @ c), edges[3] - edges[1]])
        return np.repeat(spread[:, None], self.count, axis=1)

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:  # noqa: ARG002
        """Add the rows of the replicates `lanes` (L, W) to the cells (L, 2, C, W)."""
        if shares not in self.sums:
            self.sums.clear()
            self.sums[shares] = np.empty((1, *cells.shape[1:3], 1))
            once = np.ascontiguousarray(self.c, np.float64).reshape(1, -1, 1)
            shares.spread(once, self.sums[shares])
        cells[:] = self.sums[shares]


@dataclass(frozen=True)
class CountBlocks:
    """Replicates with counts c (G, n, 32)."""

    c: U8

    @property
    def count(self) -> int:
        """Number of replicates: 32 G."""
        return len(self.c) * REPLICATES

    def spreads(self, scores: Scores) -> F64:
        """Compute the spreads (4, R) of the scores for Silverman's rule."""
        rows, out = scores.rows, np.empty((4, self.count))
        kernels.density.spreads(self.c, rows, scores.terms, out)
        return out

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:
        """Add the rows of the replicates `lanes` (L, W) to the cells (L, 2, C, W)."""
        first = lanes[0, 0]
        mine = self.c[first // REPLICATES : first // REPLICATES + len(lanes)]
        in_order = (lanes.ravel() == first + np.arange(lanes.size)).all()
        if lanes.shape[1] != REPLICATES or first % REPLICATES or not in_order:
            mine = np.empty((len(lanes), self.c.shape[1], lanes.shape[1]), np.uint8)
            kernels.density.gather_lanes(self.c, lanes.ravel(), mine)
        shares.spread(mine, cells)


@dataclass(frozen=True)
class DrawnRows:
    """Replicates as lists of drawn rows (R, size)."""

    rows: I32

    @property
    def count(self) -> int:
        """Number of replicates: R."""
        return len(self.rows)

    def spreads(self, scores: Scores) -> F64:
        """Compute the spreads (4, R) of the scores for Silverman's rule.

        They depend on the drawn rows alone.
        """
        sample, ordered = scores.sample, np.sort(contiguous(self.rows, np.int32), axis=1)
        w = np.empty((0, 0)) if sample.v is None else sample.v[ordered]
        out = np.empty((4, self.count))
        u = sample.s[ordered]
        kernels.density.drawn_spreads(u, w, scores.centre, scores.low, scores.high, out)
        return out

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:
        """Add the rows of the replicates `lanes` (L, W) to the cells (L, 2, C, W)."""
        sample, (at, begin, step, count, cubic) = shares.sample, shares.cells
        rows, v = contiguous(self.rows, np.int32)[lanes], kernels.weights(sample.v)
        kernels.density.spread_scores(rows, at, sample.y, v, begin, step, count, cubic, cells)


Resamples = Copies | CountBlocks | DrawnRows


@dataclass(frozen=True)
class DensityPlan(Plan):
    """Prepared data of `KDE` for one sample and one size of draws."""

    kde: Any  # the `KDE`
    sample: Sample  # sorted, its scores moved into the range
    size: int  # rows per draw
    finer: float  # how many times finer grids are than errors need
    # All replicates have one grid, of evenly spaced points, which fits the bandwidth of the sample;
    # else grids fit the bandwidths.
    even: bool

    @cached_property
    def scores(self) -> Scores:
        """Scores with the terms of Silverman's rule."""
        return Scores(self.sample, *self.kde.range_of(self.sample))

    @cached_property
    def bandwidth(self) -> float:
        """Bandwidth when every row counts once."""
        return float(self.bandwidths(Copies(np.ones(self.sample.n)))[0])

    def bandwidths(self, replicates: Resamples) -> F64:
        """Return the bandwidth (R,) of each replicate: given, or by Silverman's rule."""
        if isinstance(self.kde.bandwidth, float):
            return np.full(replicates.count, self.kde.bandwidth)
        return silverman(replicates.spreads(self.scores), self.size)

    @cached_property
    def levels(self) -> int:
        """Number of grids per doubling of the bandwidth; 0 for one grid in all."""
        is_beta = self.kde.kernel == "beta"
        choice = self.kde.bandwidth if is_beta else self.kde.grid_step
        if self.even or isinstance(choice, float):
            return 0
        return PER_OCTAVE if is_beta else LEVELS

    @cached_property
    def grids(self) -> dict[int, CellShares]:
        """Grids made so far, by level, with the rows shared among their cells."""
        return {}

    def groups(self, h: F64) -> Iterator[tuple[CellShares, Lanes]]:
        """Group the replicates by grid, which depends on each one's bandwidth alone."""
        grids, levels = self.grids, np.floor(self.levels * np.log2(h / SMALLEST) + 1e-9)
        for level in map(int, np.unique(levels)):
            if level not in grids:
                least = SMALLEST * 2.0 ** (level / self.levels) if self.levels else self.bandwidth
                mesh = self.kde.mesh(self.sample, least, self.finer, self.even)
                grids[level] = CellShares(mesh, self.sample)
            mine = np.flatnonzero(levels == level)
            for group in grids[level].mesh.groups(h[mine]):
                yield grids[level], mine[group]

    def densities(
        self, replicates: Resamples, h: F64 | None = None
    ) -> Iterator[tuple[Mesh | BetaMesh, F64, Lanes]]:
        """Yield the densities of replicates, a batch at a time, with their grid.

        By default each replicate has its own bandwidth.

        Of each time the grid; the densities (L, 2, G, W) of the scores and of the hits on its
        points, until the next step; and the numbers of the replicates, at most L * W: the last
        lanes may be there only to fill it up.
        """
        h = self.bandwidths(replicates) if h is None else h
        for shares, mine in self.groups(h):
            mesh = shares.mesh
            is_large = 2 * mesh.n_nodes * REPLICATES > MOST_SUMS
            width = min(FEW_LANES if is_large else REPLICATES, mine.size)
            # The last part is filled up with the first replicates of the group.
            parts = np.resize(mine, (-(-mine.size // width), width))
            step = min(len(parts), max(1, MAX_SUMS // (2 * mesh.n_nodes * width)))
            cells = np.empty((step, 2, mesh.n_nodes, width))
            density = np.empty((step, 2, mesh.count, width))
            for begin in range(0, len(parts), step):
                lanes = parts[begin : begin + step]
                replicates.spread(shares, lanes, cells[: len(lanes)])
                mesh.densities(cells[: len(lanes)], h[lanes], density[: len(lanes)])
                first = begin * width
                yield mesh, density[: len(lanes)], mine[first : first + lanes.size]
