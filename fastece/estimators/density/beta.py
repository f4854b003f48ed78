"""Chen's second beta kernel, whose shape differs from point to point.

The points of the grid and the nodes that share the scores are even in one coordinate, the position
u. On the unit interval, with m = pi / (2 h)::

    x = sin(h t)**2                                   t from 0 to m
    t = log(1 + e**(m/2 + z)) - log(1 + e**(z - m/2))        z over the whole line
    z = u + T (e**((u - e) / T) - e**((-u - e) / T))       e = m/2 + 1, T = 2

In t a kernel is about a normal density of standard deviation 1/2, wherever it is. Where t begins, z
goes on with half the logarithm of x, in which the kernels near the end change by about as much;
beyond e, where they are flat, with ever larger steps, so that scores down to 5e-324 have a place.
The same holds at the other end. A kernel is smooth in u: cubic shares of nodes keep it, wherever
the scores are.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.estimators.density.even import check_cell_count, move_inside
from fastece.kernels.types import F64

# T of the position, and the distance of e from m/2.
TAIL = 2.0
TAIL_BEGIN = 1.0
# Points and nodes per unit of position, which is two standard deviations of a kernel.
POINTS_PER_UNIT = 12
NODES_PER_UNIT = 8
# The outermost point lies this far beyond m/2, where the density is level.
LAST_POINT = 3.0
# The outermost node lies this far beyond m/2, at a score of 1e-330.
LAST_NODE = 12.0
# Positions that a kernel reaches on either side.
REACH = 3.0
# Within this distance of m/2, a kernel reaches the last node; kernels of all points beyond reach
# back as far as if their points were there.
NEAR_END = 1.5
# Grids fit bandwidths from ``0.0003 * 2**(level / 16)`` up to the next one. Kernels of both are
# mixed so that the variance is right; at a point densities are right to 2e-3.
LEVELS_PER_OCTAVE = 16.0
NEXT_BANDWIDTH = 2 ** (1 / LEVELS_PER_OCTAVE)
# Points of a block: products are so small that they take one thread.
POINTS_PER_BLOCK = 24
# Positions of a node's width in the table that scores are looked up in: right to 1e-4 of it.
TABLE_STEPS_PER_NODE = 16
# Half the distance over which the slope of the logit is measured, in positions.
SLOPE_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class BetaGrid:
    """Points where beta kernels give densities, and nodes that share the rows.

    Parameters
    ----------
    low, high : float
        The range.
    h : float
        The smallest bandwidth that the grid is used for.
    x, one_minus_x : (G,) float64 arrays
        The points on the unit interval; both are exact near 0.
    width : (G,) float64 array
        Part of the range that each point stands for.
    """

    low: float
    high: float
    h: float
    x: F64
    one_minus_x: F64
    width: F64

    @property
    def count(self) -> int:
        """Number of points."""
        return self.x.size

    @cached_property
    def score(self) -> F64:
        """Scores (G,) of the points."""
        return self.low + (self.high - self.low) * self.x

    # --- rows

    @property
    def position_bandwidth(self) -> float:
        """Bandwidth that positions are made for: wider kernels are as smooth."""
        return min(self.h, 1.0)

    @property
    def half_of_nodes(self) -> int:
        """Number of nodes on either side of the middle."""
        middle_to_end = math.pi / 4 / self.position_bandwidth
        return math.ceil(NODES_PER_UNIT * (middle_to_end + LAST_NODE))

    @property
    def n_nodes(self) -> int:
        """Number of cells that rows are shared among: nodes, and ghosts for 0 and 1."""
        return 2 * self.half_of_nodes + 2 * kernels.density.GHOSTS

    @property
    def first(self) -> float:
        """The position half a node before the first one."""
        return -self.half_of_nodes / NODES_PER_UNIT

    @property
    def spacing(self) -> float:
        """Distance of the positions of nodes."""
        return 1 / NODES_PER_UNIT

    def places(self, s: F64) -> F64:
        """Return the positions (n,) of scores, along the nodes."""
        width = self.high - self.low
        s = move_inside(s, self.low, self.high)
        return self.positions((s - self.low) / width, (self.high - s) / width)

    def positions(self, x: F64, one_minus_x: F64) -> F64:
        """Compute the positions of scores x on the unit interval; infinite at its ends."""
        with np.errstate(divide="ignore"):
            logit = np.log(x) - np.log(one_minus_x)
        logits, u = self.logit_table
        return np.asarray(np.interp(logit, logits, u, left=-math.inf, right=math.inf))

    @cached_property
    def logit_table(self) -> tuple[F64, F64]:
        """Logits of x at finely spaced positions, and the positions."""
        steps = self.half_of_nodes * TABLE_STEPS_PER_NODE
        u = np.arange(-steps, steps + 1) / (NODES_PER_UNIT * TABLE_STEPS_PER_NODE)
        log_x = log_score(u, self.position_bandwidth)
        return log_x - log_x[::-1], u

    # --- densities

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """Return one group of all replicates, any of which can be neighbours."""
        return [np.arange(h.size)]

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Compute the densities of scores and hits from rows that were added up at nodes.

        Parameters
        ----------
        cells : (L, 2, C, W) float64 array
            Weights of misses and hits of L * W replicates. Scores 0 and 1, which have no density
            anywhere, are in the ghosts.
        h : (L, W) float64 array
            Bandwidths.
        out : (L, 2, G, W) float64 array
            Overwritten.
        """
        ghosts = kernels.density.GHOSTS
        nodes = cells[:, :, ghosts:-ghosts]
        for points, reached, heights in self.kernel_blocks:
            np.matmul(heights, nodes[:, :, reached], out=out[:, :, points])
        if (h > self.h).any():
            nodes = nodes * self.share_of_next(h)[:, None, None]
            for points, reached, changes in self.kernel_changes:
                out[:, :, points] += changes @ nodes[:, :, reached]
        np.maximum(out, 0.0, out=out)
        # Divided twice: weights may be so small that a product is nothing.
        out /= cells.sum((1, 2))[:, None, None]
        out /= self.high - self.low
        out[:, 0] += out[:, 1]

    def share_of_next(self, h: F64) -> F64:
        """Compute the shares of kernels of the next bandwidth that make a variance right."""
        largest = kernels.density.MAX_RELATIVE_BANDWIDTH
        ratio = np.minimum(h, largest) / min(self.h, largest)
        return np.asarray((ratio**2 - 1) / (NEXT_BANDWIDTH**2 - 1))

    @cached_property
    def kernel_blocks(self) -> list[tuple[slice, slice, F64]]:
        """Kernels of the smallest bandwidth."""
        return self.make_blocks(self.h)

    @cached_property
    def kernel_changes(self) -> list[tuple[slice, slice, F64]]:
        """Differences between the kernels of the next bandwidth and of this one."""
        following = self.make_blocks(self.h * NEXT_BANDWIDTH)
        return [
            (points, reached, after - before)
            for (points, reached, after), (_, _, before) in zip(
                following, self.kernel_blocks, strict=True
            )
        ]

    def make_blocks(self, h: float) -> list[tuple[slice, slice, F64]]:
        """Compute the kernels of one bandwidth, in blocks of neighbouring points.

        A block is the points, the nodes that they reach, and the heights (points, nodes). These are
        powers with exponents that differ by point, so logarithms are a matrix product.
        """
        from scipy.special import betaln

        a, c = self.parameters(h)
        exponents = np.stack([a - 1, c - 1, -betaln(a, c)], axis=1)
        u = (np.arange(-self.half_of_nodes, self.half_of_nodes) + 0.5) / NODES_PER_UNIT
        log_x = log_score(u, self.position_bandwidth)
        logs = np.stack([log_x, log_x[::-1], np.ones(u.size)])
        end = math.pi / 4 / self.position_bandwidth - NEAR_END
        position = self.positions(self.x, self.one_minus_x).clip(-end, end)
        leftmost = position - REACH
        rightmost = position + REACH
        first = np.searchsorted(u, np.where(leftmost <= -end, -math.inf, leftmost))
        last = np.searchsorted(u, np.where(rightmost >= end, math.inf, rightmost))
        blocks = []
        for begin in range(0, self.count, POINTS_PER_BLOCK):
            points = slice(begin, min(begin + POINTS_PER_BLOCK, self.count))
            nodes = slice(first[begin], last[points.stop - 1])
            blocks.append((points, nodes, np.exp(exponents[points] @ logs[:, nodes])))
        return blocks

    def parameters(self, h: float) -> tuple[F64, F64]:
        """Compute both parameters (G,) of the beta density of each point."""
        b = min(h, kernels.density.MAX_RELATIVE_BANDWIDTH) ** 2
        return beta_parameter(self.x, b), beta_parameter(self.one_minus_x, b)

    def effective_width(self, h: float) -> F64:
        """Compute the width (G,) of an even weight that averages as much as the kernel.

        1 over the integral of its square: ``B(a, c)**2 / B(2 a - 1, 2 c - 1)``.
        """
        from scipy.special import betaln

        a, c = self.parameters(h)
        widths = np.exp(2 * betaln(a, c) - betaln(2 * a - 1, 2 * c - 1))
        return np.asarray(widths * (self.high - self.low))


def log_score(u: NDArray[Any], h: float) -> F64:
    """Compute log x at positions u, of x on the unit interval; log(1 - x) is at -u."""
    half = math.pi / 4 / h
    end = half + TAIL_BEGIN
    z = u + TAIL * (np.exp((u - end) / TAIL) - np.exp((-u - end) / TAIL))
    t = np.logaddexp(0.0, z + half) - np.logaddexp(0.0, z - half)
    return np.asarray(2.0 * np.log(np.sin(h * t)))


def beta_parameter(x: F64, b: float) -> F64:
    """Compute the first parameter (G,) of the beta density of each point.

    It is ``x / b``, and near the end ``A - sqrt(A**2 - B)``, Chen's rho (1999, "Beta kernel
    estimators for density functions", section 2), with ``A = 2 b**2 + 2.5``; as a quotient, since
    its terms cancel for a large b.
    """
    a = 2 * b * b + 2.5
    product = 4 * b * b + 4 + x * x + x / b
    near_end = product / (a + np.sqrt(np.maximum(a * a - product, 0.0)))
    return np.maximum(1.0, np.where(x < 2 * b, near_end, x / b))


def fitted_beta_grid(low: float, high: float, h: float, fineness: float) -> BetaGrid:
    """Make a grid for bandwidths of `h` or more, finer than norm 1 needs by a factor."""
    unit = min(h, 1.0)
    per_unit = POINTS_PER_UNIT * fineness
    count = 2 * per_unit * (math.pi / 4 / unit + LAST_POINT)
    half = math.ceil(check_cell_count(h, count) / 2)
    u = (np.arange(-half, half) + 0.5) / per_unit
    x = np.exp(log_score(u, unit))
    one_minus_x = x[::-1]
    before = log_score(u - SLOPE_STEP, unit)
    after = log_score(u + SLOPE_STEP, unit)
    change_of_logit = (after - before[::-1]) - (before - after[::-1])
    width = x * one_minus_x * change_of_logit / (2 * SLOPE_STEP * per_unit)
    return BetaGrid(low, high, h, x, one_minus_x, width * (high - low))


def even_beta_grid(low: float, high: float, h: float, count: int) -> BetaGrid:
    """Make a grid of `count` evenly spaced points."""
    x = (np.arange(count) + 0.5) / count
    return BetaGrid(low, high, h, x, x[::-1], np.full(count, (high - low) / count))
