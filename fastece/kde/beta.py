"""Densities from beta kernels, whose shape differs from point to point: tables, not transforms.

In the angle ``arcsin(sqrt(s))`` a beta kernel is nearly a normal density of standard deviation h/2,
wherever it is; near the ends of the range it varies with the logarithm of the score. So points of
the grid are evenly spaced in ``position``, and scores closer than a small part of its unit may be
shared by the two around them.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.kde.grid import MOST_CELLS, WIDEST, Placed
from fastece.protocol import Sample

__all__ = ["BetaMesh", "fitted_beta_mesh", "stepped_beta_mesh"]

F64 = NDArray[np.float64]

# Points of the grid, and nodes of the scores, per unit of position, which is about one standard
# deviation of a kernel.
POINTS, NODES = 3.0, 16.0
# The outermost points, in units of b: the density is level there.
OUTERMOST = 1e-7
# Ratio of the bandwidths of neighbouring tables: between three of them, densities are interpolated
# to 1e-4 of their height.
LOG_RATIO = 0.04


class Table(NamedTuple):
    """Kernels of the points over the nodes of misses or of hits, as `kernels.beta` makes them."""

    values: F64
    first: NDArray[np.int64]
    last: NDArray[np.int64]


class Nodes(NamedTuple):
    """Logarithms of increasing scores s, and of 1 - s."""

    node: F64
    rest: F64


def position(x: F64, rest: F64, h: float) -> F64:
    """Where scores x, with ``rest = 1 - x``, are in units of a kernel's width."""
    angle = np.where(x < 0.5, np.arcsin(np.sqrt(x)), math.pi / 2 - np.arcsin(np.sqrt(rest)))
    with np.errstate(divide="ignore"):
        return (2 * angle - math.pi / 2) / h + np.log(x) - np.log(rest)


def shapes_of(x: F64, b: float) -> F64:
    """First parameter of the beta density of each point: ``x / b``, and less steep near the end.

    There it is ``A - sqrt(A**2 - B)``, Chen's rho, with ``A = 2 b**2 + 2.5``; as a quotient, since
    its terms cancel for a large b.
    """
    half, rest = 2 * b * b + 2.5, 4 * b * b + 4 + x * x + x / b
    edge = rest / (half + np.sqrt(np.maximum(half * half - rest, 0.0)))
    return np.maximum(1.0, np.where(x < 2 * b, edge, x / b))


@dataclass(frozen=True, eq=False)
class BetaMesh:
    """Chen's second beta kernel on a grid.

    Attributes
    ----------
    low, high : float
        The range.
    x, rest : (G,) float64 arrays
        Points of the grid on the unit interval, and 1 minus them.
    width : (G,) float64 array
        What each stands for, in units of the score.
    unit : float
        The bandwidth that positions are in units of.
    exact : float or None
        The only bandwidth; None: densities are interpolated between tables of fixed ones.
    """

    low: float
    high: float
    x: F64
    rest: F64
    width: F64
    unit: float
    exact: float | None
    nodes: list[Nodes] = field(default_factory=list)
    tables: dict[float, list[Table]] = field(default_factory=dict)

    def groups(self, h: F64) -> list[NDArray[np.intp]]:
        """All replicates, in an order in which neighbours share tables."""
        return [np.argsort(h, kind="stable")]

    @property
    def count(self) -> int:
        """Number of points."""
        return self.x.size

    @property
    def n_nodes(self) -> int:
        """Number of cells that rows are spread to."""
        return 1 + max(nodes.node.size for nodes in self.nodes)

    @cached_property
    def score(self) -> F64:
        """The points."""
        return self.low + (self.high - self.low) * self.x

    def place(self, sample: Sample) -> Placed:
        """Where the rows of a sorted sample go: misses and hits have nodes of their own."""
        x = (sample.s - self.low) / (self.high - self.low)
        rest = (self.high - sample.s) / (self.high - self.low)
        cell, share = np.zeros(sample.n, np.int32), np.zeros((2, sample.n))
        self.nodes.clear()
        for hit in (0, 1):
            mine = np.flatnonzero(sample.y == hit)
            at, to_next, kept = nodes_among(position(x[mine], rest[mine], self.unit))
            cell[mine], share[0, mine], share[1, mine] = at, 1 - to_next, to_next
            with np.errstate(divide="ignore"):
                self.nodes.append(Nodes(np.log(x[mine[kept]]), np.log(rest[mine[kept]])))
        if sample.v is not None:
            share *= sample.v
        return Placed(sample.y, cell, share)

    def densities(self, cells: F64, h: F64, out: F64) -> None:
        """Densities of the scores and of the hits (L, 2, G, W), of weights (L, 2, C, W) and
        bandwidths (L, W)."""
        out[:] = 0.0
        for part, bandwidths in enumerate(h):
            for bandwidth, weight in self.weights(bandwidths).items():
                for signal, table in enumerate(self.table(bandwidth)):
                    kernels.beta.table_sums(
                        table.values, table.first, table.last, weight, cells[part, signal],
                        out[part, signal],
                    )  # fmt: skip
        kernels.beta.scaled(cells, self.high - self.low, out)

    def effective_width(self, h: float) -> F64:
        """The width of an even weight that averages as much as the kernel does at each point (G,):
        1 over the integral of its square, ``B(a, c)**2 / B(2 a - 1, 2 c - 1)``."""
        from scipy.special import betaln

        b = min(h, WIDEST) ** 2
        a, c = shapes_of(self.x, b), shapes_of(self.rest, b)
        widths = np.exp(2 * betaln(a, c) - betaln(2 * a - 1, 2 * c - 1))
        return np.asarray(widths * (self.high - self.low))

    def weights(self, h: F64) -> dict[float, F64]:
        """How much of the table of each bandwidth is in the densities of bandwidths h: parabolas
        through three."""
        if self.exact is not None:
            return {min(self.exact, WIDEST): np.ones(h.size)}
        at = np.log(np.minimum(h, WIDEST)) / LOG_RATIO
        middle = np.rint(at)
        t = at - middle
        shares = (t * (t - 1) / 2, 1 - t * t, t * (t + 1) / 2)
        found = {}
        for k in np.unique([middle - 1, middle, middle + 1]):
            parts = zip((-1, 0, 1), shares, strict=True)
            weights = [np.where(middle + shift == k, share, 0.0) for shift, share in parts]
            found[math.exp(k * LOG_RATIO)] = weights[0] + weights[1] + weights[2]
        return found

    def table(self, h: float) -> list[Table]:
        """The kernels of one bandwidth over the nodes of misses and of hits."""
        if h not in self.tables:
            self.tables[h] = [self.filled(h * h, nodes) for nodes in self.nodes]
        return self.tables[h]

    def filled(self, b: float, nodes: Nodes) -> Table:
        """The kernels over some nodes."""
        from scipy.special import betaln

        a, c = shapes_of(self.x, b), shapes_of(self.rest, b)
        first, last = np.empty(a.size, np.int64), np.empty(a.size, np.int64)
        kernels.beta.reach_of(a, c, *nodes, first, last)
        values = np.empty(int((last - first).sum()))
        kernels.beta.fill_table(a, c, betaln(a, c), *nodes, first, last, values)
        return Table(values, first, last)


def nodes_among(at: F64) -> tuple[NDArray[np.int32], F64, NDArray[np.intp]]:
    """Nodes among increasing positions: the first and the last in each cell of a fine grid.

    Returns
    -------
    node : (n,) int32 array
        The node at or before each.
    to_next : (n,) float64 array
        The share of the node after that.
    kept : array
        Which positions are nodes.
    """
    n = at.size
    if not n:
        return np.empty(0, np.int32), np.empty(0), np.empty(0, np.intp)
    cell = np.floor(at * NODES)
    begins, ends = np.ones(n, np.bool_), np.ones(n, np.bool_)
    begins[1:] = ends[:-1] = cell[1:] != cell[:-1]
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    last = np.flatnonzero(ends)[np.cumsum(begins) - 1]
    is_node = begins | (ends & (at > at[first]))
    kept = np.flatnonzero(is_node)
    node = np.searchsorted(kept, first).astype(np.int32)
    with np.errstate(invalid="ignore"):  # at the very ends positions are infinite
        width = at[last] - at[first]
        to_next = np.where(width > 0, (at - at[first]) / np.where(width > 0, width, 1.0), 0.0)
    return node, to_next, kept


def fitted_beta_mesh(
    low: float, high: float, h: float, finer: float, exact: float | None
) -> BetaMesh:
    """The grid for bandwidths of `h` or more, or one that is some times as fine."""
    h = min(h, 1.0)  # wider kernels are as smooth, and the ends of the range as near
    outermost = np.array([min(OUTERMOST * h * h, 0.25)])
    half = math.ceil(-position(outermost, 1 - outermost, h)[0] * POINTS * finer)
    if 2 * half > MOST_CELLS:
        raise ValueError(
            f"bandwidth: {h!r} needs a grid of more than the {MOST_CELLS} points that fit into "
            "memory"
        )
    step = 1 / (POINTS * finer)
    wanted = -step * (np.arange(half)[::-1] + 0.5)
    # Newton's method on the logarithm of x, from a table.
    logs = np.linspace(math.log(outermost[0]) - 1, math.log(0.5), 512)
    x = np.exp(np.interp(wanted, position(np.exp(logs), 1 - np.exp(logs), h), logs))
    for _ in range(6):
        slope = np.sqrt(x / (1 - x)) / h + 1 / (1 - x)
        x = np.minimum(x * np.exp((wanted - position(x, 1 - x, h)) / slope), 0.5)
    width = step / (1 / (h * np.sqrt(x * (1 - x))) + 1 / (x * (1 - x)))
    points, rest = np.concatenate([x, (1 - x)[::-1]]), np.concatenate([1 - x, x[::-1]])
    widths = np.concatenate([width, width[::-1]]) * (high - low)
    return BetaMesh(low, high, points, rest, widths, h, exact)


def stepped_beta_mesh(
    low: float, high: float, h: float, count: int, exact: float | None
) -> BetaMesh:
    """A grid of so many evenly spaced points."""
    x = (np.arange(count) + 0.5) / count
    return BetaMesh(low, high, x, x[::-1], np.full(count, (high - low) / count), h, exact)
