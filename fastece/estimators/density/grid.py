"""Kernel densities of binned scores, on a grid that fits the bandwidth."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.errors import InputError
from fastece.data.sample import Sample
from fastece.typing import F64, I32

# Up to so many cells on either side, adding them up is faster than two cosine transforms.
MOST_TAPS = 96
FEWEST_CELLS, MOST_CELLS = 48, 2**22
# Cells beyond each end, which cubic shares reach.
GHOSTS = 2
# A kernel this many times as wide as the range is level, to three digits.
MAX_BANDWIDTH = 10.0


class Shape(NamedTuple):
    """A kernel of standard deviation 1."""

    kind: int  # which one, as `kernels.density.fill_taps` knows it
    reach: float  # where it ends, or is less than 1e-6 of its height
    cells: float  # cells of a grid per bandwidth, with which an error is right to 1e-3
    # How many times as many other norms than 1 need: they look at ratios of densities, which
    # change within much less than a bandwidth where a kernel ends with a slope.
    finer: float


# Kinds are `kernels.density.GAUSSIAN` and so on; numba is not imported for them.
SHAPES = {
    "gaussian": Shape(0, 5.5, 4.5, 1.0),
    "triweight": Shape(1, 3.0, 6.0, 1.0),
    "epanechnikov": Shape(2, math.sqrt(5.0), 24.0, 4.0),
}


@dataclass(frozen=True)
class Mesh:
    """A kernel that is reflected at both ends of a range, on evenly spaced cells."""

    shape: Shape
    low: float
    high: float
    count: int  # of cells
    cubic: bool  # scores are shared by the four cells around them; else linearly by two

    @property
    def step(self) -> float:
        """Width of a cell."""
        return (self.high - self.low) / self.count

    @cached_property
    def score(self) -> F64:
        """Centres of the cells."""
        return self.low + (self.high - self.low) * ((np.arange(self.count) + 0.5) / self.count)

    @cached_property
    def width(self) -> F64:
        """Widths of the cells."""
        return np.full(self.count, self.step)

    @property
    def n_nodes(self) -> int:
        """Number of cells that rows are spread to."""
        return self.count + 2 * GHOSTS

    def cells_of(self, sample: Sample) -> tuple[F64, float, float, int, bool]:
        """Return the coordinates of the scores and the grid of cells.

        The grid is where its evenly spaced cells begin, how wide and how many they are, and whether
        shares are cubic.
        """
        return sample.s, self.low, self.step, self.count, self.cubic

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Compute the densities of the scores and of the hits: (L, 2, G, W).

        The weights in cells have the shape (L, 2, G + 4, W), and their images are gathered; the
        bandwidths have the shape (L, W).
        """
        add_images(cells, self.folded(GHOSTS))
        reach = int(self.reach(h).max())
        if reach <= MOST_TAPS:
            kernels.density.smooth(cells, self.taps(h), self.folded(reach), out)
        else:
            out[:] = self.transformed(cells, h)
        kernels.density.normalise(out, self.step)

    def taps(self, h: F64) -> F64:
        """Compute the kernels (L, M + 1, W) of bandwidths (L, W) from the middle on.

        The sum of each is 1.
        """
        taps = np.empty((len(h), 1 + int(self.reach(h).max()), h.shape[1]))
        h = np.minimum(h, self.widest)
        kernels.density.fill_taps(self.shape.kind, self.shape.reach, self.step, h, False, taps)
        return taps

    @property
    def widest(self) -> float:
        """Largest bandwidth that makes a difference."""
        return MAX_BANDWIDTH * (self.high - self.low)

    def reach(self, h: F64) -> F64:
        """Return how many cells on either side kernels of bandwidths h reach."""
        reach = self.shape.reach * np.minimum(h, self.widest) / self.step
        return np.asarray(np.maximum(1.0, np.ceil(reach)))

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """Group replicates by method: smoothing by sums, or by transforms.

        Those of a group can be neighbours, in any order.
        """
        few = self.reach(h) <= MOST_TAPS
        return [lanes for lanes in (np.flatnonzero(few), np.flatnonzero(~few)) if lanes.size]

    def folded(self, reach: int) -> I32:
        """Return the cell of each number from -reach to count + reach.

        The range is mirrored at both ends, over and over; and the cells beyond its ends, whose rows
        belong to their images.
        """
        at = np.arange(-reach, self.count + reach) % (2 * self.count)
        return (np.minimum(at, 2 * self.count - 1 - at) + GHOSTS).astype(np.int32)

    def transformed(self, cells: F64, h: F64) -> F64:
        """Smooth cells by a product of cosine transforms.

        Reflected at both ends of cells, any signal is a sum of cosines, which a symmetric kernel
        only scales.
        """
        from scipy.fft import dct, idct

        around = np.empty((len(h), self.count + 1, h.shape[1]))
        h = np.minimum(h, self.widest)
        kernels.density.fill_taps(self.shape.kind, self.shape.reach, self.step, h, True, around)
        factor = dct(around, type=1, axis=1)[:, None, :-1]
        inside = cells[:, :, GHOSTS:-GHOSTS]
        return np.asarray(idct(dct(inside, type=2, axis=2) * factor, type=2, axis=2))

    def effective_width(self, h: float) -> F64:
        """Compute the effective width of a Gaussian kernel at each point (G,).

        It is the width of an even weight that averages as much: 1 over the integral of the kernel's
        square, ``2 sqrt(pi) h``, or half of that at an end.
        """
        below, above = (self.score - self.low) / h, (self.high - self.score) / h
        with np.errstate(under="ignore"):
            images = np.exp(-below * below) + np.exp(-above * above)
        return np.asarray(2 * math.sqrt(math.pi) * h / (1 + images))


def add_images(cells: F64, folded: I32) -> None:
    """Add the weights beyond the ends to their mirror cells, in cells (L, 2, C, W).

    `folded` has the mirror images of the cells beyond the ends.
    """
    for at in (*range(GHOSTS), *range(-GHOSTS, 0)):
        cells[:, :, folded[at]] += cells[:, :, at]


def fitted_mesh(shape: Shape, low: float, high: float, h: float, finer: float = 1.0) -> Mesh:
    """Make a grid for bandwidths of `h` or more, or one `finer` times as fine."""
    count = math.ceil(min(finer * shape.cells * (high - low) / h, 2.0 * MOST_CELLS))
    if count > MOST_CELLS:
        rule = f"needs a grid of more than the {MOST_CELLS} cells that fit into memory"
        raise InputError("bandwidth", rule, value=h)
    return Mesh(shape, low, high, max(count, FEWEST_CELLS), cubic=True)


def step_count(low: float, high: float, step: float) -> int:
    """Return the number of cells of a range, about `step` wide.

    Their width is `step` rounded so that it divides the range.
    """
    count = max(1, round(min((high - low) / step, 2.0 * MOST_CELLS)))
    if count > MOST_CELLS:
        rule = f"makes more than the {MOST_CELLS} cells that fit into memory"
        raise InputError("grid_step", rule, value=step)
    return count
