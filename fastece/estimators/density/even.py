"""Even grids: cells that fit a bandwidth, and a kernel reflected at both ends."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.kernels.types import F64

# The kernels that are reflected at both ends, by name.
KINDS = {
    "gaussian": kernels.GAUSSIAN,
    "triweight": kernels.TRIWEIGHT,
    "epanechnikov": kernels.EPANECHNIKOV,
}
# Up to this many cells on either side, a sum over them is faster than two cosine transforms.
MAX_TAPS = 96
# Cells of a grid, of which a replicate takes two numbers each: 64 MB.
MAX_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class EvenGrid:
    """A kernel that is reflected at both ends of a range, on evenly spaced cells.

    Parameters
    ----------
    kind : int
        The kernel, one of `KINDS`.
    low, high : float
        The range.
    count : int
        Number of cells.
    """

    kind: int
    low: float
    high: float
    count: int

    @cached_property
    def score(self) -> F64:
        """Centres (G,) of the cells."""
        return self.low + (self.high - self.low) * ((np.arange(self.count) + 0.5) / self.count)

    @cached_property
    def width(self) -> F64:
        """Widths (G,) of the cells."""
        return np.full(self.count, self.spacing)

    # --- rows

    @property
    def first(self) -> float:
        """Where the first cell begins."""
        return self.low

    @property
    def spacing(self) -> float:
        """Width of a cell."""
        return (self.high - self.low) / self.count

    @property
    def n_nodes(self) -> int:
        """Number C of cells that rows are shared among: two more beyond each end."""
        return self.count + 2 * kernels.density.GHOSTS

    def places(self, s: F64) -> F64:
        """Return the places (n,) of scores along the cells."""
        return move_inside(s, self.low, self.high)

    # --- densities

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Compute the densities of scores and hits from rows that were added up in cells.

        Parameters
        ----------
        cells : (L, 2, C, W) float64 array
            Weights of misses and hits of L * W replicates; ghosts are added to their images.
        h : (L, W) float64 array
            Bandwidths.
        out : (L, 2, G, W) float64 array
            Overwritten.
        """
        add_images(cells)
        taps = self.taps(h)
        if taps.shape[1] - 1 <= MAX_TAPS:
            kernels.density.smooth(cells, taps, out)
        else:
            out[:] = self.transformed(cells, taps)
        kernels.density.normalise(out, self.spacing)

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """Group replicates with bandwidths (R,) by method: sums, or transforms."""
        reach = kernels.density.REACH[self.kind]
        is_short = reach * self.limited(h) / self.spacing <= MAX_TAPS
        groups = np.flatnonzero(is_short), np.flatnonzero(~is_short)
        return [lanes for lanes in groups if lanes.size]

    def limited(self, h: F64) -> F64:
        """Limit bandwidths to ten times the range, from which on a kernel is level."""
        return np.minimum(h, kernels.density.MAX_RELATIVE_BANDWIDTH * (self.high - self.low))

    def taps(self, h: F64) -> F64:
        """Compute kernels (L, M + 1, W) of bandwidths (L, W) from their middles on."""
        limited = self.limited(h)
        n_taps = kernels.density.tap_count(self.kind, self.spacing, float(limited.max()))
        taps = np.empty((len(h), n_taps, h.shape[1]))
        kernels.density.fill_taps(self.kind, self.spacing, limited, taps)
        return taps

    def transformed(self, cells: F64, taps: F64) -> F64:
        """Smooth cells by a product of cosine transforms.

        Reflected at both ends of cells, any signal is a sum of cosines, which a symmetric kernel
        only scales.
        """
        from scipy.fft import dct, idct

        factor = dct(fold_taps(taps, self.count), type=1, axis=1)[:, None, :-1]
        ghosts = kernels.density.GHOSTS
        inside = cells[:, :, ghosts:-ghosts]
        return np.asarray(idct(dct(inside, type=2, axis=2) * factor, type=2, axis=2))

    def effective_width(self, h: float) -> F64:
        """Compute the width (G,) of an even weight that averages as much as a Gaussian.

        1 over the integral of its square: ``2 sqrt(pi) h``, or half of that at an end.
        """
        below = (self.score - self.low) / h
        above = (self.high - self.score) / h
        with np.errstate(under="ignore"):
            images = np.exp(-below * below) + np.exp(-above * above)
        return np.asarray(2 * math.sqrt(math.pi) * h / (1 + images))


def fitted_even_grid(kind: int, low: float, high: float, h: float, fineness: float) -> EvenGrid:
    """Make a grid for bandwidths of `h` or more, finer than norm 1 needs by a factor."""
    needed = kernels.density.cells_needed(kind, fineness, high - low, h)
    count = math.ceil(check_cell_count(h, needed))
    return EvenGrid(kind, low, high, max(count, kernels.density.MIN_CELLS))


def add_images(cells: F64) -> None:
    """Add ghosts to the cells that they stand for, in cells (L, 2, C, W)."""
    ghosts = kernels.density.GHOSTS
    inwards = cells[:, :, ::-1]
    cells[:, :, ghosts : 2 * ghosts] += inwards[:, :, -ghosts:]
    inwards[:, :, ghosts : 2 * ghosts] += cells[:, :, -ghosts:]


def fold_taps(taps: F64, count: int) -> F64:
    """Fold taps (L, M + 1, W) at both ends of `count` cells, as in two mirrors.

    There are ``count + 1`` of them then, however wide the kernel is. In a mirror the other half of
    the kernel comes to the same place.
    """
    folded = np.zeros((len(taps), count + 1, taps.shape[2]))
    for turn, begin in enumerate(range(0, taps.shape[1], count)):
        part = taps[:, begin : begin + count]
        there = folded if turn % 2 == 0 else folded[:, ::-1]
        there[:, : part.shape[1]] += part
        if turn:
            there[:, 0] += part[:, 0]
    return folded


def check_cell_count(h: float, count: float) -> float:
    """Return a number of cells; refuse the bandwidth that needs too many."""
    if count > MAX_CELLS:
        rule = f"needs a grid of more than the {MAX_CELLS} cells that fit into memory"
        raise InputError("bandwidth", rule, value=h)
    return count


def move_inside(s: F64, low: float, high: float) -> F64:
    """Move scores outside a range to its nearest end."""
    return s if low <= 0 and high >= 1 else s.clip(low, high)
