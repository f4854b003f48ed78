"""Where a score goes: bin edges, and the grid that a kernel reads."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels

__all__ = [
    "Grid",
    "Layout",
    "convex_layout",
    "float_layout",
    "float_scores",
    "hard_layout",
    "in_order",
    "quantile_cuts",
    "quantile_layout",
    "uniform_layout",
]

F64 = NDArray[np.float64]

# Arithmetic finds the nearest edge while bins are much wider than the spacing of floats: the
# error of a position, in bins, is about 4e-16 * bins / width. Beyond, edges are searched.
MAX_BINS_PER_UNIT = 2.0**40
MAX_KEPT_BINS = 4096
NO_KNOTS = np.empty(0)


class Grid(NamedTuple):
    """A grid as `kernels.moments.cell_moments` takes it, in the order of its arguments."""

    low: float
    high: float
    n_bins: int
    spacing: int  # of the knots: `kernels.binning.ANY`, EVEN (arithmetic finds them) or FLOAT
    knots: F64  # inner cuts (hard; read with ANY only) or centres (convex)
    right: bool  # a score passes a knot when it is greater; else when it is not less
    convex: bool


class Layout(NamedTuple):
    """A grid with what people and results need of it."""

    grid: Grid
    edges: F64  # (B + 1,)
    bins: NDArray[np.int64] | None  # bin of each cell; None: cells are the bins

    @property
    def cells(self) -> int:
        """Number of cells: the bins, or the distinct centres."""
        return self.edges.size - 1 if self.bins is None else self.bins.size

    def spread(self, cells: F64) -> F64:
        """Values per cell (..., cells) as values per bin (..., B)."""
        if self.bins is None:
            return cells
        values = np.zeros((*cells.shape[:-1], self.edges.size - 1))
        values[..., self.bins] = cells
        return values


def convex_layout(edges: F64, even: bool) -> Layout:
    """Linear binning between the distinct bin centres; a centre that several bins share belongs
    to the first of them."""
    centres, bins = np.unique((edges[:-1] + edges[1:]) / 2, return_index=True)
    spacing = kernels.binning.EVEN if even and centres.size > 1 else kernels.binning.ANY
    grid = Grid(float(edges[0]), float(edges[-1]), edges.size - 1, spacing, centres, False, True)
    return Layout(grid, edges, bins)


def hard_layout(edges: F64, knots: F64, right: bool) -> Layout:
    """Hard bins whose inner cuts are `knots`.

    A score outside the range counts as its nearest end: where a knot is that end, the scores beyond
    it must stay on the same side as the end itself.
    """
    low, high, n_bins = float(edges[0]), float(edges[-1]), edges.size - 1
    knots = (
        np.where(knots >= high, np.inf, knots) if right else np.where(knots <= low, -np.inf, knots)
    )
    grid = Grid(low, high, n_bins, kernels.binning.ANY, knots, right, False)
    return Layout(grid, edges, None)


def uniform_layout(n_bins: int, low: float, high: float, right: bool, convex: bool) -> Layout:
    """Edges ``low + (high - low) * (j / n_bins)``, the last one exactly `high`; kept for the next
    call, if small."""
    if n_bins > MAX_KEPT_BINS:
        return make_uniform_layout(n_bins, low, high, right, convex)
    return kept_uniform_layout(n_bins, low, high, right, convex)


def make_uniform_layout(n_bins: int, low: float, high: float, right: bool, convex: bool) -> Layout:
    """Compute the layout that `uniform_layout` keeps."""
    edges = low + (high - low) * (np.arange(n_bins + 1) / n_bins)
    edges[-1] = high
    even = n_bins / (high - low) < MAX_BINS_PER_UNIT
    if convex:
        return convex_layout(edges, even)
    if even:
        grid = Grid(low, high, n_bins, kernels.binning.EVEN, edges[1:-1], right, False)
        return Layout(grid, edges, None)
    return hard_layout(edges, edges[1:-1], right)


kept_uniform_layout = lru_cache(maxsize=64)(make_uniform_layout)


@lru_cache(maxsize=1)
def float_scores() -> F64:
    """A score of each cell of the float grid, in increasing order."""
    binning = kernels.binning
    half = binning.FLOAT_CELLS // 2
    bits = (np.arange(half) + ((1023 - binning.OCTAVES) << binning.CELL_BITS)).astype(np.int64)
    distance = (bits << (52 - binning.CELL_BITS)).view(np.float64)
    return np.concatenate([distance, (1 - distance)[::-1]])


def float_layout(low: float, high: float) -> Layout:
    """The float grid, for scores moved into [low, high]; its edges are a score of each cell."""
    scores = float_scores()
    grid = Grid(low, high, scores.size, kernels.binning.FLOAT, NO_KNOTS, True, False)
    return Layout(grid, np.append(scores, 1.0), None)


def quantile_cuts(
    u: F64, w: F64 | None, n_bins: int, low: float, high: float, right: bool
) -> tuple[F64, F64]:
    """Edges of bins of equal weight, and the inner cuts that decide, for scores in increasing
    order."""
    u = u.clip(low, high)
    edges, knots = np.empty(n_bins + 1), np.empty(n_bins - 1)
    kernels.quantiles.quantile_edges(u, w, low, high, right, edges, knots)
    return edges, knots


def in_order(s: F64, w: F64 | None) -> tuple[F64, F64 | None]:
    """Scores in increasing order, with their weights."""
    if w is None:
        return np.sort(s), None  # several times as fast as the order
    order = np.argsort(s, kind="stable")
    return s[order], w[order]


def quantile_layout(
    s: F64, w: F64 | None, n_bins: int, low: float, high: float, right: bool, convex: bool
) -> Layout:
    """Bins of equal weight for scores `s` with weights `w`."""
    s, w = in_order(s, w)
    edges, knots = quantile_cuts(s, w, n_bins, low, high, right)
    return convex_layout(edges, even=False) if convex else hard_layout(edges, knots, right)
