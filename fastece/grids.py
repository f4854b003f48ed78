"""Where a score goes: bin edges, and the grid that a kernel reads."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels

__all__ = ["Grid", "Layout", "quantile_layout", "uniform_layout"]

F64 = NDArray[np.float64]

# Arithmetic finds the nearest edge while bins are much wider than the spacing of floats: the
# error of a position, in bins, is about 4e-16 * bins / width. Beyond, edges are searched.
MAX_BINS_PER_UNIT = 2.0**40
# Rows per bin from which selecting ranks is faster than sorting everything.
RANKED = 256
MAX_KEPT_BINS = 4096


class Grid(NamedTuple):
    """A grid as `kernels.binning.cell_moments` takes it, in the order of its arguments."""

    low: float
    high: float
    n_bins: int
    even: bool  # knots evenly spaced: arithmetic finds them
    knots: F64  # inner cuts (hard; not read where even) or centres (convex)
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
    even = even and centres.size > 1
    grid = Grid(float(edges[0]), float(edges[-1]), edges.size - 1, even, centres, False, True)
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
    return Layout(Grid(low, high, n_bins, False, knots, right, False), edges, None)


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
        return Layout(Grid(low, high, n_bins, True, edges[1:-1], right, False), edges, None)
    return hard_layout(edges, edges[1:-1], right)


kept_uniform_layout = lru_cache(maxsize=64)(make_uniform_layout)


def ranked(s: F64, n_bins: int) -> tuple[F64, F64 | None]:
    """What the quantile rule needs of the sorted scores, and how many scores each entry stands for.

    The rule looks at the scores of rank ``ceil(j n / B)`` and at the ones after them. Where n is
    much greater than B, selecting those costs half of a sort.
    """
    n = s.size
    if n < RANKED * n_bins:
        return np.sort(s), None
    at = -(-np.arange(1, n_bins) * n // n_bins) - 1
    ranks = np.unique(np.concatenate([at, at + 1, [n - 1]]))
    return np.partition(s, ranks)[ranks], np.diff(ranks, prepend=-1).astype(np.float64)


def quantile_layout(
    s: F64, w: F64 | None, n_bins: int, low: float, high: float, right: bool, convex: bool
) -> Layout:
    """Bins of equal weight for scores `s` with weights `w`."""
    if w is None:
        u, w = ranked(s, n_bins)
    else:
        order = np.argsort(s, kind="stable")
        u, w = s[order], w[order]
    np.clip(u, low, high, out=u)
    edges, knots = np.empty(n_bins + 1), np.empty(n_bins - 1)
    kernels.quantiles.quantile_edges(u, w, low, high, right, edges, knots)
    return convex_layout(edges, even=False) if convex else hard_layout(edges, knots, right)
