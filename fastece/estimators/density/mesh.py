"""Kernel densities of binned scores, on grids that fit the bandwidth."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.samples import Sample
from fastece.kernels.types import F64, I32

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

        It is where evenly spaced cells begin, their width, number, and whether shares are cubic.
        """
        return sample.s, self.low, self.step, self.count, self.cubic

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Compute the densities (L, 2, G, W) of scores and hits, for bandwidths h (L, W).

        From weights in cells (L, 2, G + 4, W), whose images are gathered.
        """
        add_images(cells)
        reach = self.reach(h)
        if reach <= MOST_TAPS:
            kernels.density.smooth(cells, self.taps(h, reach), folded(self.count, reach), out)
        else:
            out[:] = self.transformed(cells, h)
        kernels.density.normalise(out, self.step)

    def taps(self, h: F64, reach: int) -> F64:
        """Compute kernels (L, M + 1, W) of bandwidths (L, W) from the middle on, of sum 1."""
        (kind, end, *_), taps = self.shape, np.empty((len(h), 1 + reach, h.shape[1]))
        kernels.density.fill_taps(kind, end, self.step, self.limited(h), False, taps)
        return taps

    def reach(self, h: F64) -> int:
        """Return how many cells on either side the widest of kernels reaches."""
        widest = min(float(h.max()), MAX_BANDWIDTH * (self.high - self.low))
        return max(1, math.ceil(self.shape.reach * widest / self.step))

    def limited(self, h: F64) -> F64:
        """Limit bandwidths to ten times the range."""
        return np.minimum(h, MAX_BANDWIDTH * (self.high - self.low))

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """Group replicates by method: smoothing by sums, or by transforms."""
        few = self.shape.reach * self.limited(h) / self.step <= MOST_TAPS
        return [lanes for lanes in (np.flatnonzero(few), np.flatnonzero(~few)) if lanes.size]

    def transformed(self, cells: F64, h: F64) -> F64:
        """Smooth cells by a product of cosine transforms.

        Reflected at both ends of cells, any signal is a sum of cosines, which a symmetric kernel
        only scales.
        """
        from scipy.fft import dct, idct

        kind, reach, h = self.shape.kind, self.shape.reach, self.limited(h)
        around = np.empty((len(h), self.count + 1, h.shape[1]))
        kernels.density.fill_taps(kind, reach, self.step, h, True, around)
        factor = dct(around, type=1, axis=1)[:, None, :-1]
        inside = cells[:, :, GHOSTS:-GHOSTS]
        return np.asarray(idct(dct(inside, type=2, axis=2) * factor, type=2, axis=2))

    def effective_width(self, h: float) -> F64:
        """Compute the width (G,) of an even weight that averages as much as a Gaussian.

        1 over the integral of its square: ``2 sqrt(pi) h``, or half of that at an end.
        """
        below, above = (self.score - self.low) / h, (self.high - self.score) / h
        with np.errstate(under="ignore"):
            images = np.exp(-below * below) + np.exp(-above * above)
        return np.asarray(2 * math.sqrt(math.pi) * h / (1 + images))


@lru_cache(maxsize=4)
def folded(count: int, reach: int) -> I32:
    """Return the cell of each number from -reach to count + reach.

    The range is mirrored at both ends, over and over; and the cells beyond its ends, whose rows
    belong to their images.
    """
    at = np.arange(-reach, count + reach) % (2 * count)
    return (np.minimum(at, 2 * count - 1 - at) + GHOSTS).astype(np.int32)


def add_images(cells: F64) -> None:
    """Add weights beyond the ends to their mirror cells, of cells (L, 2, C, W)."""
    if cells.shape[2] == 1 + 2 * GHOSTS:
        cells[:, :, GHOSTS] = cells.sum(axis=2)
    else:
        cells[:, :, 2:4] += cells[:, :, 1::-1]
        cells[:, :, -4:-2] += cells[:, :, :-3:-1]


@lru_cache(maxsize=4)
def fitted_mesh(shape: Shape, low: float, high: float, h: float, finer: float = 1.0) -> Mesh:
    """Make a grid for bandwidths of `h` or more, or one `finer` times as fine."""
    count = check_count("bandwidth", h, finer * shape.cells * (high - low) / h)
    return Mesh(shape, low, high, max(math.ceil(count), FEWEST_CELLS), cubic=True)


def check_count(name: str, value: float, count: float) -> float:
    """Refuse the value of a parameter that needs too many cells."""
    if count > MOST_CELLS:
        rule = f"needs a grid of more than the {MOST_CELLS} cells that fit into memory"
        raise InputError(name, rule, value=value)
    return count


# Some neighbouring points, the nodes that their kernels reach, and the kernels (P, N) there.
Block = tuple[slice, slice, F64]

# T and e - m/2.
TAIL, BEGIN = 2.0, 1.0
# Points and nodes per unit of position, which is two standard deviations of a kernel.
POINTS, NODES = 12, 8
# How far beyond m/2 points lie, where the density is level, and nodes, at 1e-330.
LAST_POINT, LAST_NODE = 3.0, 12.0
# Positions that a kernel reaches; near the end, from m/2 - 1.5 on, it reaches the last node, and
# those of all points beyond reach back as far as if they were there.
REACH, NEAR_END = 3.0, 1.5
# Grids fit bandwidths from ``0.0003 * 2**(k / 16)`` up to the next one, `NEXT` times as large.
# Densities of both are mixed so that the variance is right; at a point they are to 2e-3.
PER_OCTAVE = 16
NEXT = 2 ** (1 / PER_OCTAVE)
# Points of a block: products are so small that they take one thread.
SIDE = 24
# Positions are interpolated from so many a node: to 1e-4 of their distance.
FINE = 16


def log_at(u: NDArray[Any], h: float) -> F64:
    """Compute the logarithm of x at positions u; at -u it is the one of 1 - x."""
    half = math.pi / 4 / h
    end = half + BEGIN
    z = u + TAIL * (np.exp((u - end) / TAIL) - np.exp((-u - end) / TAIL))
    t = np.logaddexp(0.0, z + half) - np.logaddexp(0.0, z - half)
    return np.asarray(2.0 * np.log(np.sin(h * t)))


def beta_parameter(x: F64, b: float) -> F64:
    """Compute the first parameter of the beta density of each point.

    It is ``x / b``, and near the end ``A - sqrt(A**2 - B)``, Chen's rho, with ``A = 2 b**2 + 2.5``;
    as a quotient, since its terms cancel for a large b.
    """
    half, rest = 2 * b * b + 2.5, 4 * b * b + 4 + x * x + x / b
    edge = rest / (half + np.sqrt(np.maximum(half * half - rest, 0.0)))
    return np.maximum(1.0, np.where(x < 2 * b, edge, x / b))


@dataclass(frozen=True, eq=False)
class BetaMesh:
    """Chen's second beta kernel, whose shape differs from point to point.

    The points of the grid and the nodes that share the scores are even in one coordinate, the
    position u. On the unit interval, with m = pi / (2 h)::

        x = sin(h t)**2                                   t from 0 to m
        t = log(1 + e**(m/2 + z)) - log(1 + e**(z - m/2))        z over the whole line
        z = u + T (e**((u - e) / T) - e**((-u - e) / T))       e = m/2 + 1, T = 2

    In t a kernel is about a normal density of standard deviation 1/2, wherever it is. Where t
    begins, z goes on with half the logarithm of x, in which the kernels near the end change by
    about as much; beyond e, where they are flat, with ever larger steps, so that scores down to
    5e-324 have a place. The same at the other end. A kernel is smooth in u: cubic shares of
    nodes keep it, wherever the scores are.
    """

    low: float
    high: float
    h: float  # the least bandwidth
    x: F64  # (G,) points on the unit interval
    rest: F64  # (G,) 1 minus them
    width: F64  # (G,) what each stands for, in units of the score

    @property
    def count(self) -> int:
        """Number of points."""
        return self.x.size

    @cached_property
    def score(self) -> F64:
        """Scores of the points."""
        return self.low + (self.high - self.low) * self.x

    @property
    def unit(self) -> float:
        """Bandwidth that positions are made for: wider kernels are as smooth."""
        return min(self.h, 1.0)

    @property
    def half(self) -> int:
        """Number of nodes on either side of the middle."""
        return math.ceil(NODES * (math.pi / 4 / self.unit + LAST_NODE))

    @property
    def n_nodes(self) -> int:
        """Number of cells that rows are spread to: nodes, and ghosts for scores 0 and 1."""
        return 2 * self.half + 2 * GHOSTS

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """Return one group of all replicates: any can be neighbours."""
        return [np.arange(h.size)]

    def positions(self, x: F64, rest: F64) -> F64:
        """Compute positions of x, with ``rest = 1 - x``; infinite at the very ends."""
        with np.errstate(divide="ignore"):
            logit = np.log(x) - np.log(rest)
        return np.asarray(np.interp(logit, *self.scale, left=-math.inf, right=math.inf))

    @cached_property
    def scale(self) -> tuple[F64, F64]:
        """Logits of x on a fine grid of positions, and the positions."""
        u = np.arange(-self.half * FINE, self.half * FINE + 1) / (NODES * FINE)
        log_x = log_at(u, self.unit)
        return log_x - log_x[::-1], u

    def cells_of(self, sample: Sample) -> tuple[F64, float, float, int, bool]:
        """Return the coordinates of the scores and the grid of nodes, centres of cells."""
        width = self.high - self.low
        at = self.positions((sample.s - self.low) / width, (self.high - sample.s) / width)
        return at, -self.half / NODES, 1 / NODES, 2 * self.half, True

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Compute the densities (L, 2, G, W) from sums in cells (L, 2, C, W)."""
        nodes = cells[:, :, GHOSTS:-GHOSTS]
        for points, reach, weights in self.table:
            np.matmul(weights, nodes[:, :, reach], out=out[:, :, points])
        if (h > self.h).any():
            ratio = np.minimum(h, MAX_BANDWIDTH) / min(self.h, MAX_BANDWIDTH)
            part = (ratio**2 - 1) / (NEXT**2 - 1)  # so that the variance is right
            nodes = nodes * part[:, None, None]
            for points, reach, change in self.change:
                out[:, :, points] += change @ nodes[:, :, reach]
        np.maximum(out, 0.0, out=out)
        # Divided twice: weights may be so small that a product is nothing.
        out /= cells.sum((1, 2))[:, None, None]
        out /= self.high - self.low
        out[:, 0] += out[:, 1]

    @cached_property
    def table(self) -> list[Block]:
        """Kernels of the least bandwidth, in blocks of points."""
        return self.blocks(self.h)

    @cached_property
    def change(self) -> list[Block]:
        """Differences between the kernels of the next bandwidth and of this one."""
        both = zip(self.blocks(self.h * NEXT), self.table, strict=True)
        return [(points, reach, new - old) for (points, reach, new), (*_, old) in both]

    def shapes(self, h: float) -> tuple[F64, F64]:
        """Compute both parameters of the beta density of each point."""
        b = min(h, MAX_BANDWIDTH) ** 2
        return beta_parameter(self.x, b), beta_parameter(self.rest, b)

    def blocks(self, h: float) -> list[Block]:
        """Compute the kernels of one bandwidth, in blocks of points.

        They are powers with exponents that differ by point, so logarithms are a matrix product.
        """
        from scipy.special import betaln

        a, c = self.shapes(h)
        exponents = np.stack([a - 1, c - 1, -betaln(a, c)], axis=1)
        u = (np.arange(-self.half, self.half) + 0.5) / NODES
        log_x = log_at(u, self.unit)
        logs = np.stack([log_x, log_x[::-1], np.ones(u.size)])
        end = math.pi / 4 / self.unit - NEAR_END
        at = self.positions(self.x, self.rest).clip(-end, end)
        first = np.searchsorted(u, np.where(at - REACH <= -end, -math.inf, at - REACH))
        last = np.searchsorted(u, np.where(at + REACH >= end, math.inf, at + REACH))
        found = []
        for begin in range(0, self.count, SIDE):
            points = slice(begin, min(begin + SIDE, self.count))
            reach = slice(first[begin], last[points.stop - 1])
            found.append((points, reach, np.exp(exponents[points] @ logs[:, reach])))
        return found

    def effective_width(self, h: float) -> F64:
        """Compute the width (G,) of an even weight that averages as much as the kernel.

        1 over the integral of its square: ``B(a, c)**2 / B(2 a - 1, 2 c - 1)``.
        """
        from scipy.special import betaln

        a, c = self.shapes(h)
        widths = np.exp(2 * betaln(a, c) - betaln(2 * a - 1, 2 * c - 1))
        return np.asarray(widths * (self.high - self.low))


def fitted_beta_mesh(low: float, high: float, h: float, finer: float) -> BetaMesh:
    """Make a grid for bandwidths of `h` or more, or one `finer` times as fine."""
    unit, per_unit = min(h, 1.0), POINTS * finer
    half = per_unit * (math.pi / 4 / unit + LAST_POINT)
    half = math.ceil(check_count("bandwidth", h, 2 * half) / 2)
    u = (np.arange(-half, half) + 0.5) / per_unit
    x = np.exp(log_at(u, unit))
    rest = x[::-1]
    before, after = (log_at(u + shift, unit) for shift in (-1e-4, 1e-4))
    slope = (after - before[::-1]) - (before - after[::-1])  # of log(x / (1 - x))
    width = x * rest * slope / (2e-4 * per_unit)
    return BetaMesh(low, high, h, x, rest, width * (high - low))


def even_beta_mesh(low: float, high: float, h: float, count: int) -> BetaMesh:
    """Make a grid of `count` evenly spaced points."""
    x = (np.arange(count) + 0.5) / count
    return BetaMesh(low, high, h, x, x[::-1], np.full(count, (high - low) / count))
