"""Even grids: cells that fit a bandwidth, and a kernel reflected at both ends."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from fastece.kernels.density import CellGrid, Points

# Up to this many cells on either side, a sum over them is faster than two cosine transforms.
MAX_TAPS = 96
# Cells of a grid, of which a replicate takes two numbers each: 64 MB.
MAX_CELLS = 2**22


class Shape(NamedTuple):
    """A kernel of standard deviation 1."""

    kind: int  # as `kernels.density.kernel_height` takes it
    reach: float  # where it ends, or is less than 1e-6 of its height
    cells: float  # cells per bandwidth with which an error of norm 1 is right to 1e-3
    # How many times as many cells other norms need: they look at ratios of densities, which change
    # within much less than a bandwidth where a kernel ends with a slope.
    refinement: float


# Whether `cells` and `refinement` are enough, scripts/evidence/kde_accuracy.py measures: in 300
# random cases of each shape, with norms from 1 to 2, the largest deviation from brute force is 0.27
# (Gaussian), 0.17 (triweight) and 0.15 (Epanechnikov) of the tolerance, 1e-3 of the value plus
# 1e-6. A new shape gets numbers with which it stays below 1. The Epanechnikov kernel has the most
# cells, since it ends with a slope.
SHAPES = {
    "gaussian": Shape(kind=kernels.GAUSSIAN, reach=5.5, cells=4.5, refinement=1.0),
    "triweight": Shape(kind=kernels.TRIWEIGHT, reach=3.0, cells=6.0, refinement=1.0),
    "epanechnikov": Shape(
        kind=kernels.EPANECHNIKOV, reach=math.sqrt(5.0), cells=24.0, refinement=4.0
    ),
}


@dataclass(frozen=True)
class Mesh:
    """A kernel that is reflected at both ends of a range, on evenly spaced cells.

    Parameters
    ----------
    shape : Shape
    low, high : float
        The range.
    count : int
        Number of cells.
    cubic : bool
        Whether a row is shared by the four cells around its score, or linearly by two.
    """

    shape: Shape
    low: float
    high: float
    count: int
    cubic: bool

    @property
    def step(self) -> float:
        """Width of a cell."""
        return (self.high - self.low) / self.count

    @cached_property
    def score(self) -> F64:
        """Centres (G,) of the cells."""
        return self.low + (self.high - self.low) * ((np.arange(self.count) + 0.5) / self.count)

    @cached_property
    def width(self) -> F64:
        """Widths (G,) of the cells."""
        return np.full(self.count, self.step)

    @property
    def points(self) -> "Points":
        """The centres, as kernels take them."""
        return kernels.density.Points(self.score, self.width, self.low, self.high)

    @property
    def n_nodes(self) -> int:
        """Number of cells that rows are shared among: two more beyond each end."""
        return self.count + 2 * kernels.density.GHOSTS

    def locate(self, sample: Sample) -> tuple[F64, "CellGrid"]:
        """Return the coordinates (n,) of scores in the range, and the cells along them."""
        return sample.s, kernels.density.CellGrid(self.low, self.step, self.count, self.cubic)

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Compute the densities of scores and hits from rows that were added up in cells.

        Parameters
        ----------
        cells : (L, 2, G + 4, W) float64 array
            Weights of misses and hits of L * W replicates; ghosts are added to their images.
        h : (L, W) float64 array
            Bandwidths.
        out : (L, 2, G, W) float64 array
            Overwritten.
        """
        kernels.density.add_images(cells)
        if self.reach(h) <= MAX_TAPS:
            kernels.density.smooth(cells, self.taps(h), out)
        else:
            out[:] = self.transformed(cells, h)
        kernels.density.normalise(out, self.step)

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """Group replicates with bandwidths (R,) by method: sums, or transforms."""
        is_short = self.shape.reach * self.limited(h) / self.step <= MAX_TAPS
        groups = np.flatnonzero(is_short), np.flatnonzero(~is_short)
        return [lanes for lanes in groups if lanes.size]

    def limited(self, h: F64) -> F64:
        """Limit bandwidths to ten times the range, from which on a kernel is level."""
        return np.minimum(h, kernels.density.MAX_RELATIVE_BANDWIDTH * (self.high - self.low))

    def reach(self, h: F64) -> int:
        """Return how many cells on either side the widest of some kernels reaches."""
        return max(1, math.ceil(self.shape.reach * float(self.limited(h).max()) / self.step))

    def taps(self, h: F64) -> F64:
        """Compute kernels (L, M + 1, W) of bandwidths (L, W) from their middles on."""
        shape = self.shape
        taps = np.empty((len(h), 1 + self.reach(h), h.shape[1]))
        kernels.density.fill_taps(shape.kind, shape.reach, self.step, self.limited(h), taps)
        return taps

    def transformed(self, cells: F64, h: F64) -> F64:
        """Smooth cells by a product of cosine transforms.

        Reflected at both ends of cells, any signal is a sum of cosines, which a symmetric kernel
        only scales.
        """
        from scipy.fft import dct, idct

        shape = self.shape
        taps = np.empty((len(h), self.count + 1, h.shape[1]))
        kernels.density.fill_folded_taps(shape.kind, shape.reach, self.step, self.limited(h), taps)
        factor = dct(taps, type=1, axis=1)[:, None, :-1]
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


@lru_cache(maxsize=4)
def fitted_mesh(shape: Shape, low: float, high: float, h: float, fineness: float = 1.0) -> Mesh:
    """Make a grid for bandwidths of `h` or more, finer than norm 1 needs by a factor."""
    count = check_cell_count("bandwidth", h, fineness * shape.cells * (high - low) / h)
    count = max(math.ceil(count), kernels.density.MIN_CELLS)
    return Mesh(shape, low, high, count, cubic=True)


def check_cell_count(name: str, value: float, count: float) -> float:
    """Return a number of cells; refuse the parameter's value that needs too many."""
    if count > MAX_CELLS:
        rule = f"needs a grid of more than the {MAX_CELLS} cells that fit into memory"
        raise InputError(name, rule, value=value)
    return count
