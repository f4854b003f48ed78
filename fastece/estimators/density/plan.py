"""From rows and how often they count to the densities of replicates.

Replicates go through these steps::

    draws                     how often each row counts, or which rows were drawn
      -> bandwidths           one for each replicate: given, or by Silverman's rule
      -> groups               replicates whose bandwidths fit one grid
      -> cells                their rows added up, misses and hits apart, some replicates at once
      -> densities            cells smoothed by the kernel: f of the scores, g of the hits

The value of a replicate depends on its own rows and bandwidth, never on its neighbours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.samples import Sample
from fastece.estimators.base import Plan
from fastece.estimators.binned.cuts import quartiles
from fastece.estimators.binned.replicates import order_rows
from fastece.estimators.density.rule import AnyMesh, DensityRule
from fastece.estimators.draws import Counts, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.density import CellGrid
    from fastece.kernels.replicates import OrderedRows

# Numbers of replicates.
Lanes = NDArray[np.intp]

# Rows of a single replicate that are read at once.
ROWS_AT_ONCE = 2**20
# Numbers of cells that are smoothed at once: 0.25 MB.
MAX_CELLS_AT_ONCE = 2**15
# With more numbers of cells than this in a block of 32 replicates, 64 MB, only `NARROW_WIDTH`
# replicates go side by side.
MAX_CELLS_OF_BLOCK = 2**23
NARROW_WIDTH = 2


class Density(NamedTuple):
    """Densities on the points of a mesh.

    Attributes
    ----------
    mesh : Mesh or BetaMesh
    values : (L, 2, G, W) float64 array
        Densities f of the scores and g of the hits, of L batches of W replicates.
    """

    mesh: AnyMesh
    values: F64


class DensityBatch(NamedTuple):
    """Densities of some replicates, with the numbers of these.

    Attributes
    ----------
    mesh, values
        As in `Density`. The last of the L * W lanes may be there only to fill them up.
    replicates : (R,) array of intp
        At most L * W.
    """

    mesh: AnyMesh
    values: F64
    replicates: Lanes


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows of a sample, shared among the cells of a mesh."""

    mesh: AnyMesh
    sample: Sample

    @cached_property
    def coordinates(self) -> F64:
        """Place (n,) of each row along the cells."""
        return self._located[0]

    @property
    def grid(self) -> "CellGrid":
        """The cells."""
        return self._located[1]

    @cached_property
    def _located(self) -> tuple[F64, "CellGrid"]:
        return self.mesh.locate(move_inside(self.sample, self.mesh.low, self.mesh.high))

    @cached_property
    def shares(self) -> tuple[I32, F64]:
        """First of four neighbouring cells (n,) of each row, and its shares (4, n)."""
        cell = np.empty(self.sample.n, np.int32)
        share = np.empty((4, self.sample.n))
        kernels.density.place(self.coordinates, self.grid, cell, share)
        if self.sample.v is not None:
            share *= self.sample.v
        return cell, share


def move_inside(sample: Sample, low: float, high: float) -> Sample:
    """Move scores outside a range to its nearest end."""
    return sample if low <= 0 and high >= 1 else replace(sample, s=sample.s.clip(low, high))


def add_rows(mesh: AnyMesh, rows: Sample, y: U8, w: F64, sums: F64) -> None:
    """Add rows with outcomes y and weights w, or empty, up in cells (2, C) of a mesh."""
    coordinates, grid = mesh.locate(move_inside(rows, mesh.low, mesh.high))
    kernels.density.add_rows_to_cells(coordinates, y, w, grid, sums)


def counted_weights(sample: Any, c: NDArray[Any] | None) -> F64 | None:
    """Return the weight (n,) of all copies of each row; None where every weight is 1."""
    weight: F64 | None = sample.v
    if c is not None:
        weight = replace(sample, c=c.astype(np.float64)).weight
    return weight


def weighted_parts(sample: Any, weight: F64 | None) -> Iterator[tuple[Sample, F64]]:
    """Yield the rows in parts, with their weights as kernels take them."""
    start = 0
    for part in sample.parts(ROWS_AT_ONCE):
        yield part, kernels.weights(None if weight is None else weight[start : start + part.n])
        start += part.n


def replicate_count(draws: Counts | Rows) -> int:
    """Count the replicates of some draws."""
    return len(draws.c) * REPLICATES if isinstance(draws, Counts) else len(draws.rows)


@dataclass(frozen=True)
class DensityPlan(Plan):
    """Prepared data of `KDE` for one sample and one size of draws.

    Parameters
    ----------
    rule : DensityRule
    sample : Sample or RowTable
        Sorted, its scores moved into the range; for point values one problem as it is.
    size : int
        Rows per draw.
    """

    rule: DensityRule
    sample: Any
    size: int

    # --- bandwidths

    @cached_property
    def bandwidth(self) -> float:
        """Bandwidth when every row counts once."""
        return self.bandwidth_of_counts(None)

    def bandwidth_of_counts(self, c: NDArray[Any] | None) -> float:
        """Return the bandwidth when row i counts ``c[i]`` times, or once."""
        if isinstance(self.rule.bandwidth, float):
            return self.rule.bandwidth
        weight = counted_weights(self.sample, c)
        first = second = 0.0
        for part, w in weighted_parts(self.sample, weight):
            s = move_inside(part, *self.rule.limits).s
            distance, square = kernels.density.add_distances(s, w, self.centre)
            first += distance
            second += square
        total = float(self.sample.n if weight is None else weight.sum())
        lower, upper = quartiles(self.sample, weight, *self.rule.limits)
        n = float(self.size)
        return float(kernels.density.silverman(total, first, second, upper - lower, n))

    def bandwidths(self, draws: Counts | Rows) -> F64:
        """Return the bandwidth (R,) of each replicate: given, or by Silverman's rule."""
        bandwidths = np.empty(replicate_count(draws))
        if isinstance(self.rule.bandwidth, float):
            bandwidths[:] = self.rule.bandwidth
        else:
            sums = self.score_sums(draws)
            kernels.density.silverman_bandwidths(sums, float(self.size), bandwidths)
        return bandwidths

    def score_sums(self, draws: Counts | Rows) -> F64:
        """Compute the sums (4, R) that Silverman's rule needs of each replicate."""
        sums = np.empty((4, replicate_count(draws)))
        if isinstance(draws, Counts):
            c = draws.blocks(self.sample.n)
            kernels.density.sum_counted_scores(c, self.ordered_rows, self.distances, sums)
        else:
            sample = self.sample
            rows = np.sort(contiguous(draws.rows, np.int32), axis=1)
            w = np.empty((0, 0)) if sample.v is None else sample.v[rows]
            low, high = self.rule.limits
            kernels.density.sum_drawn_scores(sample.s[rows], w, self.centre, low, high, sums)
        return sums

    @cached_property
    def centre(self) -> float:
        """The first score: squared distances from it do not cancel."""
        return float(next(self.sample.parts(ROWS_AT_ONCE)).s.item(0))

    @cached_property
    def ordered_rows(self) -> "OrderedRows":
        """Rows with runs of equal scores."""
        return order_rows(self.sample, *self.rule.limits)

    @cached_property
    def distances(self) -> F64:
        """Weighted distances of the scores from the centre, and their squares (2, n)."""
        rows = self.ordered_rows
        x = rows.u - self.centre
        return np.stack([x, x * x]) * (rows.v if rows.v.size else 1.0)

    # --- grids

    @property
    def mesh(self) -> AnyMesh:
        """Grid of the bandwidth when every row counts once."""
        return self.mesh_of_bandwidth(self.bandwidth)

    def mesh_of_bandwidth(self, h: float) -> AnyMesh:
        """Return the grid for a bandwidth."""
        per_octave = self.rule.levels_per_octave
        level = kernels.density.grid_level(h, per_octave) if per_octave else 0
        return self.rows_of_level(level).mesh

    @cached_property
    def _rows_by_level(self) -> dict[int, SharedRows]:
        """Grids made so far, with the rows shared among their cells."""
        return {}

    def rows_of_level(self, level: int) -> SharedRows:
        """Return the rows, shared among the cells of the grid of a level."""
        if level not in self._rows_by_level:
            per_octave = self.rule.levels_per_octave
            if per_octave:
                h = float(kernels.density.bandwidth_of_level(level, per_octave))
            else:
                h = self.bandwidth
            mesh = self.rule.fitted_mesh(h)
            self._rows_by_level[level] = SharedRows(mesh, self.sample)
        return self._rows_by_level[level]

    def groups(self, h: F64) -> Iterator[tuple[SharedRows, Lanes]]:
        """Group the replicates with bandwidths (R,) by grid and by its method."""
        levels = np.zeros(h.size, np.int64)
        if self.rule.levels_per_octave:
            kernels.density.grid_levels(h, self.rule.levels_per_octave, levels)
        for level in np.unique(levels).tolist():
            shared = self.rows_of_level(level)
            replicates = np.flatnonzero(levels == level)
            for group in shared.mesh.groups(h[replicates]):
                yield shared, replicates[group]

    # --- densities of one replicate

    def density(self, c: NDArray[Any] | None = None) -> Density:
        """Compute the densities (1, 2, G, 1) when row i counts ``c[i]`` times, or once."""
        h = self.bandwidth_of_counts(c)
        mesh = self.mesh_of_bandwidth(h)
        return smooth_sums(mesh, self.sums_in_cells(mesh, c), h)

    def sums_in_cells(self, mesh: AnyMesh, c: NDArray[Any] | None = None) -> F64:
        """Add rows that count ``c[i]`` times up in cells (2, C), misses and hits apart."""
        sums = np.zeros((2, mesh.n_nodes))
        for part, w in weighted_parts(self.sample, counted_weights(self.sample, c)):
            add_rows(mesh, part, part.y, w, sums)
        return sums

    def expected_density(self) -> Density:
        """Compute the densities of a calibrated model: the share s of a row is a hit."""
        mesh = self.mesh
        sums = np.zeros((2, mesh.n_nodes))
        for part in self.sample.parts(ROWS_AT_ONCE):
            for outcome, chance in ((0, 1 - part.s), (1, part.s)):
                w = chance if part.v is None else chance * part.v
                add_rows(mesh, part, np.full_like(part.y, outcome), w, sums)
        return smooth_sums(mesh, sums, self.bandwidth)

    # --- densities of many replicates

    def densities(self, draws: Counts | Rows, h: F64 | None = None) -> Iterator[DensityBatch]:
        """Yield the densities of replicates, a batch at a time.

        Arrays are overwritten at the next step. By default each replicate has its own bandwidth.
        """
        if isinstance(draws, Counts):
            draws = Counts(draws.blocks(self.sample.n))
        h = self.bandwidths(draws) if h is None else h
        for shared, replicates in self.groups(h):
            mesh = shared.mesh
            is_large = 2 * mesh.n_nodes * REPLICATES > MAX_CELLS_OF_BLOCK
            width = min(NARROW_WIDTH if is_large else REPLICATES, max(2, replicates.size))
            # The last batch is filled up with the first replicates of the group, and a single one
            # is there twice: a lane of its own is smoothed in another order.
            n_batches = -(-replicates.size // width)
            batches = np.resize(replicates, (n_batches, width))
            step = min(n_batches, max(1, MAX_CELLS_AT_ONCE // (2 * mesh.n_nodes * width)))
            cells = np.empty((step, 2, mesh.n_nodes, width))
            density = np.empty((step, 2, mesh.count, width))
            for begin in range(0, n_batches, step):
                lanes = batches[begin : begin + step]
                spread_draws(draws, shared, lanes, cells[: len(lanes)])
                mesh.densities(cells[: len(lanes)], h[lanes], density[: len(lanes)])
                numbers = replicates[begin * width : begin * width + lanes.size]
                yield DensityBatch(mesh, density[: len(lanes)], numbers)


def smooth_sums(mesh: AnyMesh, sums: F64, h: float) -> Density:
    """Smooth the sums (2, C) of one replicate into densities (1, 2, G, 1)."""
    density = np.empty((1, 2, mesh.count, 1))
    mesh.densities(sums.copy()[None, :, :, None], np.array([[h]]), density)
    return Density(mesh, density)


def spread_draws(draws: Counts | Rows, shared: SharedRows, lanes: Lanes, cells: F64) -> None:
    """Add the rows of replicates (L, W), by number, up in cells (L, 2, C, W)."""
    sample = shared.sample
    if isinstance(draws, Counts):
        cell, share = shared.shares
        kernels.density.spread(counts_of_lanes(draws.c, lanes), sample.y, cell, share, cells)
    else:
        rows = contiguous(draws.rows, np.int32)[lanes]
        v = kernels.weights(sample.v)
        kernels.density.spread_drawn_rows(rows, shared.coordinates, sample.y, v, shared.grid, cells)


def counts_of_lanes(c: U8, lanes: Lanes) -> U8:
    """Return the counts (L, n, W) of replicates (L, W); a view of whole blocks."""
    first = lanes[0, 0]
    is_in_order = (lanes.ravel() == first + np.arange(lanes.size)).all()
    if lanes.shape[1] == REPLICATES and first % REPLICATES == 0 and is_in_order:
        return c[first // REPLICATES : first // REPLICATES + len(lanes)]
    counts = np.empty((len(lanes), c.shape[1], lanes.shape[1]), np.uint8)
    kernels.density.gather_lanes(c, lanes.ravel(), counts)
    return counts
