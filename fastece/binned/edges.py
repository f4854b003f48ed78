"""Where a score goes: bin edges times mapping, as the grid that a kernel reads."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels

if TYPE_CHECKING:
    from fastece.kernels.binning import Grid

__all__ = [
    "Layout",
    "convex_layout",
    "float_layout",
    "float_scores",
    "hard_layout",
    "is_even",
    "uniform_layout",
]

F64 = NDArray[np.float64]

# Arithmetic finds the nearest edge while bins are much wider than the spacing of floats: the
# error of a position, in bins, is about 4e-16 * bins / width. Beyond, edges are searched.
MAX_BINS_PER_UNIT = 2.0**40
MAX_KEPT_BINS = 4096
NO_KNOTS = np.empty(0)


class Layout(NamedTuple):
    """A grid with what people and results need of it."""

    grid: "Grid"
    edges: F64  # (B + 1,)
    bins: NDArray[np.int32] | None  # first bin of each centre; None: cells are the bins

    @property
    def cells(self) -> int:
        """Number of cells: the bins, or the distinct centres."""
        return self.edges.size - 1 if self.bins is None else self.bins.size

    def spread(self, cells: F64, axis: int = -1) -> F64:
        """Values per cell, along an axis, as values per bin."""
        if self.bins is None or self.bins.size == self.edges.size - 1:
            return cells
        cells = np.moveaxis(cells, axis, -1)
        values = np.zeros((*cells.shape[:-1], self.edges.size - 1))
        values[..., self.bins] = cells
        return np.moveaxis(values, -1, axis)


def is_even(n_bins: int, low: float, high: float) -> bool:
    """Whether arithmetic finds the nearest of uniform edges."""
    return n_bins / (high - low) < MAX_BINS_PER_UNIT


def convex_layout(edges: F64, even: bool = False) -> Layout:
    """Linear binning between the distinct bin centres; a centre that several bins share belongs
    to the first of them."""
    n_bins, binning = edges.size - 1, kernels.binning
    centres, bins = np.empty(n_bins), np.empty(n_bins, np.int32)
    count = binning.distinct_centres(edges, centres, bins)
    spacing = binning.EVEN if even and count > 1 else binning.ANY
    low, high = float(edges[0]), float(edges[-1])
    grid = binning.Grid(low, high, n_bins, spacing, centres[:count].copy(), False, True)
    return Layout(grid, edges, bins[:count])


def hard_layout(edges: F64, cuts: F64, right: bool, even: bool = False) -> Layout:
    """Hard bins with these inner cuts.

    A score outside the range counts as its nearest end: where a cut is that end, the scores beyond
    it must stay on the same side as the end itself.
    """
    low, high, n_bins = float(edges[0]), float(edges[-1]), edges.size - 1
    cuts = np.where(cuts >= high, np.inf, cuts) if right else np.where(cuts <= low, -np.inf, cuts)
    spacing = kernels.binning.EVEN if even else kernels.binning.ANY
    grid = kernels.binning.Grid(low, high, n_bins, spacing, cuts, right, False)
    return Layout(grid, edges, None)


def uniform_layout(n_bins: int, low: float, high: float, right: bool, convex: bool) -> Layout:
    """Edges ``low + (high - low) * (j / n_bins)``, the last one exactly `high`; kept for the next
    call, if small."""
    make = kept_uniform_layout if n_bins <= MAX_KEPT_BINS else make_uniform_layout
    return make(n_bins, low, high, right, convex)


def make_uniform_layout(n_bins: int, low: float, high: float, right: bool, convex: bool) -> Layout:
    """Compute the layout that `uniform_layout` keeps."""
    edges = low + (high - low) * (np.arange(n_bins + 1) / n_bins)
    edges[-1] = high
    even = is_even(n_bins, low, high)
    return convex_layout(edges, even) if convex else hard_layout(edges, edges[1:-1], right, even)


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
    grid = kernels.binning.Grid(
        low, high, scores.size, kernels.binning.FLOAT, NO_KNOTS, True, False
    )
    return Layout(grid, np.append(scores, 1.0), None)
