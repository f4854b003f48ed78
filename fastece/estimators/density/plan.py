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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.samples import Sample
from fastece.estimators.base import Plan
from fastece.estimators.binned.replicates import order_rows
from fastece.estimators.density.beta import (
    LEVELS_PER_OCTAVE,
    BetaGrid,
    even_beta_grid,
    fitted_beta_grid,
)
from fastece.estimators.density.even import KINDS, EvenGrid, fitted_even_grid
from fastece.estimators.draws import Counts, Rows
from fastece.kernels import GAUSSIAN, REPLICATES
from fastece.kernels.types import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

Grid = EvenGrid | BetaGrid
# Numbers of replicates.
Lanes = NDArray[np.intp]

# Numbers of cells that are smoothed at once: 0.25 MB.
MAX_CELLS_AT_ONCE = 2**15
# With more numbers of cells than this in a block of 32 replicates, 64 MB, only `NARROW_WIDTH`
# replicates go side by side.
MAX_CELLS_OF_BLOCK = 2**23
NARROW_WIDTH = 2


@dataclass(frozen=True)
class DensityPlan(Plan):
    """Prepared data of `KDE` for one sample and one size of draws.

    Parameters
    ----------
    kernel : str
        As of `KDE`.
    given_bandwidth : float or None
        The bandwidth of all densities; None: by Silverman's rule.
    low, high : float
        The range of the density.
    fineness : float
        How many times as fine grids are as errors of norm 1 need.
    sample : Sample
        Its scores moved into the range; sorted where there are draws of its rows.
    size : int
        Rows per draw.
    """

    kernel: str
    given_bandwidth: float | None
    low: float
    high: float
    fineness: float
    sample: Sample
    size: int

    # --- bandwidths

    @cached_property
    def bandwidth(self) -> float:
        """Bandwidth when every row counts once."""
        return self.bandwidth_of_counts(None)

    def bandwidth_of_counts(self, c: NDArray[Any] | None) -> float:
        """Return the bandwidth when row i counts ``c[i]`` times, or once."""
        if self.given_bandwidth is not None:
            return self.given_bandwidth
        bandwidth: float = kernels.density.bandwidth_of_scores(
            self.sample.s, self.counted_weights(c), self.low, self.high, float(self.size)
        )
        return bandwidth

    def bandwidths(self, draws: Counts | Rows) -> F64:
        """Return the bandwidth (R,) of each replicate: given, or by Silverman's rule."""
        bandwidths = np.empty(replicate_count(draws))
        n = float(self.size)
        if self.given_bandwidth is not None:
            bandwidths[:] = self.given_bandwidth
        elif isinstance(draws, Counts):
            c = draws.blocks(self.sample.n)
            kernels.density.bandwidths_of_counts(
                c, self.ordered_rows, self.distances, n, bandwidths
            )
        else:
            sample = self.sample
            rows = np.sort(contiguous(draws.rows, np.int32), axis=1)
            w = np.empty((0, 0)) if sample.v is None else sample.v[rows]
            kernels.density.bandwidths_of_drawn(
                sample.s[rows], w, self.low, self.high, n, bandwidths
            )
        return bandwidths

    @cached_property
    def ordered_rows(self) -> "OrderedRows":
        """Rows with runs of equal scores."""
        return order_rows(self.sample, self.low, self.high)

    @cached_property
    def distances(self) -> F64:
        """Weighted distances of the scores from the first one, and their squares (2, n)."""
        rows = self.ordered_rows
        x = rows.u - rows.u[0]
        return np.stack([x, x * x]) * (rows.v if rows.v.size else 1.0)

    # --- grids

    @property
    def grid(self) -> Grid:
        """Grid of the bandwidth when every row counts once."""
        return self.grid_for(self.bandwidth)

    def grid_for(self, h: float) -> Grid:
        """Return the grid for a bandwidth."""
        return self.grid_of_finest(float(self.finest_bandwidths(np.array([h])).item()))

    def finest_bandwidths(self, h: F64) -> F64:
        """Compute for bandwidths (R,) the smallest one that the grid of each is made for.

        Beta kernels of a given bandwidth have a grid of their own; all others share grids.
        """
        is_beta = self.kernel == "beta"
        if is_beta and self.given_bandwidth is not None:
            return h
        per_octave = LEVELS_PER_OCTAVE if is_beta else kernels.density.LEVELS_PER_OCTAVE
        finest = np.empty(h.size)
        kernels.density.grid_bandwidths(h, per_octave, finest)
        return finest

    def grid_of_finest(self, h: float) -> Grid:
        """Return the grid on which bandwidths from `h` up to the next level are right."""
        if h not in self._grids:
            if self.kernel == "beta":
                self._grids[h] = fitted_beta_grid(self.low, self.high, h, self.fineness)
            else:
                self._grids[h] = self.even_grid(h)
        return self._grids[h]

    @cached_property
    def _grids(self) -> dict[float, Grid]:
        """Grids made so far, by the smallest bandwidth that each is made for."""
        return {}

    def even_grid(self, h: float) -> Grid:
        """Make a grid of evenly spaced points for bandwidths of `h` or more."""
        if self.kernel == "beta":  # as many points as a Gaussian has
            count = fitted_even_grid(GAUSSIAN, 0.0, 1.0, h, self.fineness).count
            return even_beta_grid(self.low, self.high, h, count)
        return fitted_even_grid(KINDS[self.kernel], self.low, self.high, h, self.fineness)

    # --- densities of one replicate

    def density(self, c: NDArray[Any] | None = None) -> tuple[Grid, F64]:
        """Compute the densities when row i counts ``c[i]`` times, or once.

        Returns
        -------
        grid : EvenGrid or BetaGrid
        densities : (1, 2, G, 1) float64 array
            Densities f of the scores and g of the hits at the points of the grid.
        """
        h = self.bandwidth_of_counts(c)
        grid = self.grid_for(h)
        return grid, smooth_sums(grid, self.sums_in_cells(grid, c), h)

    def sums_in_cells(self, grid: Grid, c: NDArray[Any] | None = None) -> F64:
        """Add rows that count ``c[i]`` times up in cells (2, C), misses and hits apart."""
        sums = np.zeros((2, grid.n_nodes))
        add_rows(grid, self.sample.s, self.sample.y, self.counted_weights(c), sums)
        return sums

    def counted_weights(self, c: NDArray[Any] | None) -> F64:
        """Return the weight (n,) of all copies of each row; empty where every weight is 1."""
        if c is None:
            return kernels.weights(self.sample.v)
        return np.asarray(self.sample.weights * c)

    def expected_density(self) -> tuple[Grid, F64]:
        """Compute the densities of a calibrated model: the share s of a row is a hit."""
        grid = self.grid
        sample = self.sample
        sums = np.zeros((2, grid.n_nodes))
        for outcome, chance in ((0, 1 - sample.s), (1, sample.s)):
            w = chance if sample.v is None else chance * sample.v
            add_rows(grid, sample.s, np.full_like(sample.y, outcome), w, sums)
        return grid, smooth_sums(grid, sums, self.bandwidth)

    # --- densities of many replicates

    def densities(
        self, draws: Counts | Rows, h: F64 | None = None
    ) -> Iterator[tuple[Grid, F64, Lanes]]:
        """Yield the densities of replicates, a batch at a time.

        By default each replicate has its own bandwidth.

        Yields
        ------
        grid : EvenGrid or BetaGrid
        densities : (L, 2, G, W) float64 array
            Densities of L batches of W replicates, overwritten at the next step. The last of them
            may be there only to fill the batches up.
        replicates : (R,) array of intp
            The numbers of these replicates, at most L * W.
        """
        if isinstance(draws, Counts):
            draws = Counts(draws.blocks(self.sample.n))
        h = self.bandwidths(draws) if h is None else h
        for grid, replicates in self.groups(h):
            is_large = 2 * grid.n_nodes * REPLICATES > MAX_CELLS_OF_BLOCK
            width = min(NARROW_WIDTH if is_large else REPLICATES, max(2, replicates.size))
            # The last batch is filled up with the first replicates of the group, and a single one
            # is there twice: a matrix product adds a single column up in another order.
            n_batches = -(-replicates.size // width)
            batches = np.resize(replicates, (n_batches, width))
            step = min(n_batches, max(1, MAX_CELLS_AT_ONCE // (2 * grid.n_nodes * width)))
            cells = np.empty((step, 2, grid.n_nodes, width))
            density = np.empty((step, 2, grid.count, width))
            for begin in range(0, n_batches, step):
                lanes = batches[begin : begin + step]
                self.spread_draws(draws, grid, lanes, cells[: len(lanes)])
                grid.densities(cells[: len(lanes)], h[lanes], density[: len(lanes)])
                numbers = replicates[begin * width : begin * width + lanes.size]
                yield grid, density[: len(lanes)], numbers

    def groups(self, h: F64) -> Iterator[tuple[Grid, Lanes]]:
        """Group the replicates with bandwidths (R,) by grid and by its method."""
        finest = self.finest_bandwidths(h)
        for finest_of_grid in np.unique(finest).tolist():
            grid = self.grid_of_finest(finest_of_grid)
            replicates = np.flatnonzero(finest == finest_of_grid)
            for group in grid.groups(h[replicates]):
                yield grid, replicates[group]

    def spread_draws(self, draws: Counts | Rows, grid: Grid, lanes: Lanes, cells: F64) -> None:
        """Add the rows of replicates (L, W), by number, up in cells (L, 2, C, W)."""
        y = self.sample.y
        if isinstance(draws, Counts):
            if grid not in self._shares:
                self._shares[grid] = share_rows(grid, self.sample)
            cell, share = self._shares[grid]
            kernels.density.spread(counts_of_lanes(draws.c, lanes), y, cell, share, cells)
        else:
            if grid not in self._places:
                self._places[grid] = grid.places(self.sample.s)
            rows = contiguous(draws.rows, np.int32)[lanes]
            kernels.density.spread_drawn_rows(
                rows, self._places[grid], y, kernels.weights(self.sample.v),
                grid.first, grid.spacing, cells,
            )  # fmt: skip

    @cached_property
    def _shares(self) -> dict[Grid, tuple[I32, F64]]:
        """The rows, shared among the cells of some grids."""
        return {}

    @cached_property
    def _places(self) -> dict[Grid, F64]:
        """Places of the rows along the cells of some grids."""
        return {}


def replicate_count(draws: Counts | Rows) -> int:
    """Count the replicates of some draws."""
    return len(draws.c) * REPLICATES if isinstance(draws, Counts) else len(draws.rows)


def share_rows(grid: Grid, sample: Sample) -> tuple[I32, F64]:
    """Find the first of four neighbouring cells (n,) of each row, and shares (4, n).

    Shares are times the weight of the row.
    """
    cell = np.empty(sample.n, np.int32)
    share = np.empty((4, sample.n))
    n_cells = grid.n_nodes - 2 * kernels.density.GHOSTS
    kernels.density.place(grid.places(sample.s), grid.first, grid.spacing, n_cells, cell, share)
    if sample.v is not None:
        share *= sample.v
    return cell, share


def add_rows(grid: Grid, s: F64, y: U8, w: F64, sums: F64) -> None:
    """Add rows, whose weights may be empty, up in the cells (2, C) of a grid."""
    kernels.density.add_rows_to_cells(grid.places(s), y, w, grid.first, grid.spacing, sums)


def smooth_sums(grid: Grid, sums: F64, h: float) -> F64:
    """Smooth the sums (2, C) of one replicate into densities (1, 2, G, 1)."""
    density = np.empty((1, 2, grid.count, 1))
    grid.densities(sums.copy()[None, :, :, None], np.array([[h]]), density)
    return density


def counts_of_lanes(c: U8, lanes: Lanes) -> U8:
    """Return the counts (L, n, W) of replicates (L, W); a view of whole blocks."""
    first = lanes[0, 0]
    is_in_order = (lanes.ravel() == first + np.arange(lanes.size)).all()
    if lanes.shape[1] == REPLICATES and first % REPLICATES == 0 and is_in_order:
        return c[first // REPLICATES : first // REPLICATES + len(lanes)]
    counts = np.empty((len(lanes), c.shape[1], lanes.shape[1]), np.uint8)
    kernels.density.gather_lanes(c, lanes.ravel(), counts)
    return counts
