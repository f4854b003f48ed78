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
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.inputs.arrays import contiguous
from fastece.kde.bandwidth import SMALLEST, Scores, drawn_spreads, scores_of, silverman
from fastece.kde.beta import PER_OCTAVE, BetaMesh
from fastece.kde.grid import CellShares, Mesh
from fastece.kernels import REPLICATES
from fastece.problems.order import order_rows
from fastece.protocol import Sample

if TYPE_CHECKING:
    from fastece.kde.estimator import KDE

__all__ = ["Copies", "CountBlocks", "DensityPlan", "DrawnRows", "Resamples"]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
Lanes = NDArray[np.intp]

# Sums that are smoothed at once: 0.25 MB.
MAX_SUMS = 2**15
# Sums beyond which fewer replicates are taken side by side: 64 MB.
MOST_SUMS, FEW_LANES = 2**23, 2
# Grids fit bandwidths from ``0.0003 * 2**(k / 4)`` on, so they are up to 1.2 times too fine.
LEVELS = 4


@dataclass(frozen=True)
class Copies:
    """Replicates in which row i counts ``c[i]`` times: one, or several of different bandwidths,
    whose rows are added up once."""

    c: NDArray[Any]
    count: int = 1
    sums: dict[CellShares, F64] = field(default_factory=dict)

    def spreads(self, plan: "DensityPlan") -> F64:
        """What Silverman's rule needs of their scores (4, R)."""
        return np.repeat(plan.scores.of_weights(self.c), self.count, axis=1)

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:  # noqa: ARG002
        """Add the rows of replicates (L, W), by their numbers, up in the cells (L, 2, C, W)."""
        if shares not in self.sums:
            self.sums.clear()
            self.sums[shares] = np.empty((1, *cells.shape[1:3], 1))
            once = np.ascontiguousarray(self.c, np.float64).reshape(1, -1, 1)
            shares.spread(once, self.sums[shares])
        cells[:] = self.sums[shares]


@dataclass(frozen=True)
class CountBlocks:
    """Replicates with multiplicities c (G, n, 32)."""

    c: NDArray[np.uint8]

    @property
    def count(self) -> int:
        """32 G."""
        return len(self.c) * REPLICATES

    def spreads(self, plan: "DensityPlan") -> F64:
        """What Silverman's rule needs of their scores (4, R)."""
        return plan.scores.of_blocks(self.c)

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:
        """Add the rows of replicates (L, W), by their numbers, up in the cells (L, 2, C, W)."""
        first = lanes[0, 0]
        mine = self.c[first // REPLICATES : first // REPLICATES + len(lanes)]
        in_order = (lanes.ravel() == first + np.arange(lanes.size)).all()
        if lanes.shape[1] != REPLICATES or first % REPLICATES or not in_order:
            mine = np.empty((len(lanes), self.c.shape[1], lanes.shape[1]), np.uint8)
            kernels.density.gather_lanes(self.c, lanes.ravel(), mine)
        shares.spread(mine, cells)


@dataclass(frozen=True)
class DrawnRows:
    """Replicates as the rows (R, size) that each has drawn."""

    rows: I32

    @property
    def count(self) -> int:
        """R."""
        return len(self.rows)

    def spreads(self, plan: "DensityPlan") -> F64:
        """What Silverman's rule needs of their scores (4, R), from drawn rows alone."""
        ordered, v = np.sort(contiguous(self.rows, np.int32), axis=1), plan.sample.v
        w = None if v is None else v[ordered]
        return drawn_spreads(plan.sample.s[ordered], w, plan.centre, *plan.limits)

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:
        """Add the rows of replicates (L, W), by their numbers, up in the cells (L, 2, C, W)."""
        shares.spread_rows(contiguous(self.rows, np.int32)[lanes], cells)


Resamples = Copies | CountBlocks | DrawnRows


@dataclass(frozen=True)
class DensityPlan:
    """What `KDE` needs of one sample and one size.

    Attributes
    ----------
    kde : KDE
    sample : Sample
        Sorted, its scores moved into the range.
    size : int
        Rows per draw.
    finer : float
        How many times finer grids are than errors need.
    even : bool
        All replicates have the same grid, of evenly spaced points, which fits the bandwidth of the
        sample; else grids fit the bandwidths.
    """

    kde: "KDE"
    sample: Sample
    size: int
    finer: float = 1.0
    even: bool = False
    grids: dict[int, tuple[Any, CellShares]] = field(default_factory=dict, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**state, "grids": {}}

    def blocks(self, c: NDArray[np.uint8]) -> CountBlocks:
        """Replicates with multiplicities (G, n, 32), checked: kernels do not look."""
        if c.shape[1:] != (self.sample.n, REPLICATES):
            raise ValueError(
                f"c: must have {self.sample.n} rows of {REPLICATES} multiplicities, "
                f"got {c.shape[1:]}"
            )
        return CountBlocks(contiguous(c, np.uint8))

    @property
    def limits(self) -> tuple[float, float]:
        """The range of the density."""
        return self.kde.range_of(self.sample)

    @cached_property
    def centre(self) -> float:
        """The mean of the scores."""
        return float(np.average(self.sample.s, weights=self.sample.v))

    @cached_property
    def scores(self) -> Scores:
        """Rows as Silverman's rule reads them."""
        return scores_of(order_rows(self.sample, *self.limits), self.centre)

    @cached_property
    def bandwidth(self) -> float:
        """The bandwidth when every row counts once."""
        return float(self.bandwidths(Copies(np.ones(self.sample.n)))[0])

    def bandwidths(self, replicates: Resamples) -> F64:
        """The bandwidth (R,) of each replicate: given, or by Silverman's rule."""
        if isinstance(self.kde.bandwidth, float):
            return np.full(replicates.count, self.kde.bandwidth)
        return silverman(replicates.spreads(self), self.size)

    @cached_property
    def levels(self) -> int:
        """How many grids there are as a bandwidth doubles; 0: one for all."""
        if self.even:
            return 0
        if self.kde.kernel == "beta":
            return 0 if isinstance(self.kde.bandwidth, float) else PER_OCTAVE
        return LEVELS if isinstance(self.kde.grid_step, str) else 0

    def grid(self, level: int) -> tuple[Mesh | BetaMesh, CellShares]:
        """The grid of a level, with the rows shared by its cells."""
        if level not in self.grids:
            h = SMALLEST * 2.0 ** (level / self.levels) if self.levels else self.bandwidth
            mesh = self.kde.mesh(self.sample, h, self.finer, self.even)
            self.grids[level] = mesh, CellShares(mesh, self.sample)
        return self.grids[level]

    def groups(self, h: F64) -> Iterator[tuple[Mesh | BetaMesh, CellShares, Lanes]]:
        """Which replicates have which grid: that of a replicate depends on its bandwidth alone."""
        levels = np.floor(self.levels * np.log2(h / SMALLEST) + 1e-9)
        for level in np.unique(levels):
            mine = np.flatnonzero(levels == level)
            mesh, shares = self.grid(int(level))
            for group in mesh.groups(h[mine]):
                yield mesh, shares, mine[group]

    def densities(
        self, replicates: Resamples, h: F64 | None = None
    ) -> Iterator[tuple[Mesh | BetaMesh, F64, Lanes]]:
        """Densities of replicates, by default with their own bandwidths, some at a time.

        Yields
        ------
        mesh
            The grid.
        density : (L, 2, G, W) float64 array
            Of the scores and of the hits, on the points of the grid, until the next step. Replicate
            by replicate it is (L * W,), of which the last ones may be there only to fill it up.
        lanes : (at most L * W,) array
            The numbers of the replicates.
        """
        h = self.bandwidths(replicates) if h is None else h
        for mesh, shares, mine in self.groups(h):
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
