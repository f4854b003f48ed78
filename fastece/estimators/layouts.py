"""Bins as a grid for the kernels, and edges of bins of equal weight."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_choice, check_real, list_names
from fastece.data.sample import Sample, increasing
from fastece.typing import F64, I32

if TYPE_CHECKING:
    from fastece.kernels.binning import Grid
    from fastece.kernels.replicates import OrderedRows

# Arithmetic finds the nearest edge while bins are much wider than the spacing of floats: the
# error of a position, in bins, is about 4e-16 * bins / width. Beyond, edges are searched.
MAX_BINS_PER_UNIT = 2.0**40
MAX_KEPT_BINS = 4096


class Layout(NamedTuple):
    """A grid of the kernels, with its edges and the bins of its cells."""

    grid: "Grid"
    edges: F64  # (B + 1,)
    bins: I32 | None  # first bin of each centre; None: cells are the bins

    @property
    def cells(self) -> int:
        """Number of cells: the bins, or the distinct centres."""
        return self.edges.size - 1 if self.bins is None else self.bins.size

    @property
    def sides(self) -> int:
        """Number of cells that share a score."""
        return 2 if self.grid.convex else 1

    @property
    def step(self) -> int:
        """Step from the lower to the upper of the two cells of a score."""
        return 1 if self.cells > 1 else 0

    def spread(self, cells: F64) -> F64:
        """Turn values per cell (..., cells) into values per bin (..., B)."""
        if self.bins is None or self.bins.size == self.edges.size - 1:
            return cells
        values = np.zeros((*cells.shape[:-1], self.edges.size - 1))
        values[..., self.bins] = cells
        return values


def is_even(n_bins: int, low: float, high: float) -> bool:
    """Return whether the nearest uniform edge can be found by arithmetic."""
    return n_bins / (high - low) < MAX_BINS_PER_UNIT


def convex_layout(edges: F64, even: bool = False) -> Layout:
    """Make the layout of linear binning between the distinct bin centres.

    A centre that several bins share belongs to the first of them.
    """
    n_bins, binning = edges.size - 1, kernels.binning
    centres, bins = np.empty(n_bins), np.empty(n_bins, np.int32)
    count = kernels.moments.distinct_centres(edges, centres, bins)
    spacing = binning.EVEN if even and count > 1 else binning.ANY
    low, high = float(edges[0]), float(edges[-1])
    grid = binning.Grid(low, high, n_bins, spacing, centres[:count].copy(), False, True)
    return Layout(grid, edges, bins[:count])


def hard_layout(edges: F64, cuts: F64, right: bool, even: bool = False) -> Layout:
    """Make the layout of hard bins with given edges and inner cuts.

    A score outside the range counts as its nearest end: where a cut is that end, the scores beyond
    it must stay on the same side as the end itself.
    """
    low, high, binning = float(edges[0]), float(edges[-1]), kernels.binning
    cuts = np.where(cuts >= high, np.inf, cuts) if right else np.where(cuts <= low, -np.inf, cuts)
    spacing = binning.EVEN if even else binning.ANY
    return Layout(binning.Grid(low, high, edges.size - 1, spacing, cuts, right, False), edges, None)


def uniform_layout(n_bins: int, low: float, high: float, right: bool, convex: bool) -> Layout:
    """Make the layout of uniform bins on a range.

    The edges are ``low + (high - low) * (j / n_bins)``, the last one exactly `high`.

    Kept for the next call, if small.
    """
    make = kept_uniform_layout if n_bins <= MAX_KEPT_BINS else kept_uniform_layout.__wrapped__
    return make(n_bins, low, high, right, convex)


@lru_cache(maxsize=64)
def kept_uniform_layout(n_bins: int, low: float, high: float, right: bool, convex: bool) -> Layout:
    """Make a `uniform_layout`, with a cache of the latest ones."""
    edges = low + (high - low) * (np.arange(n_bins + 1) / n_bins)
    edges[-1] = high
    even = is_even(n_bins, low, high)
    return convex_layout(edges, even) if convex else hard_layout(edges, edges[1:-1], right, even)


def given_layout(edges: tuple[float, ...], right: bool, convex: bool) -> Layout:
    """Make the layout of bins with given edges, cached if there are few."""
    few = len(edges) <= MAX_KEPT_BINS + 1
    make = kept_given_layout if few else kept_given_layout.__wrapped__
    return make(edges, right, convex)


@lru_cache(maxsize=64)
def kept_given_layout(edges: tuple[float, ...], right: bool, convex: bool) -> Layout:
    """Make a `given_layout`, with a cache of the latest ones."""
    e = np.array(edges)
    return convex_layout(e) if convex else hard_layout(e, e[1:-1], right)


def check_edges(name: str, value: Any, names: Sequence[str]) -> str | tuple[float, ...]:
    """Return a named rule, or two or more edges in [0, 1] that do not decrease."""
    if isinstance(value, str):
        return check_choice(name, value, names)
    if isinstance(value, list | tuple) and {*map(type, value)} == {float} and len(value) > 1:
        array = np.array(value)
        if 0 <= array[0] < array[-1] <= 1 and (array[1:] >= array[:-1]).all():
            return tuple(value)  # a tenth of the time of looking at one after the other
    if not isinstance(value, Sequence) and not hasattr(value, "__array__"):
        raise InputTypeError(name, "must be edges of bins", value=value, hint=list_names(names))
    try:
        edges = tuple(check_real(f"{name}[{j}]", edge, 0.0, 1.0) for j, edge in enumerate(value))
    except TypeError as error:
        rule = f"must be edges of bins ({error})"
        raise InputTypeError(name, rule, value=value, hint=list_names(names)) from None
    if len(edges) < 2 or edges[0] == edges[-1]:
        raise InputError(name, "must be at least two edges, not all equal", value=value)
    for j, (low, high) in enumerate(pairwise(edges)):
        if high < low:
            raise InputError(name, f"must not decrease after {low!r}", index=j + 1, value=high)
    return edges


@lru_cache(maxsize=1)
def float_scores() -> F64:
    """Return one score of each cell of the float grid, in increasing order."""
    binning = kernels.binning
    half = binning.FLOAT_CELLS // 2
    bits = (np.arange(half) + ((1023 - binning.OCTAVES) << binning.CELL_BITS)).astype(np.int64)
    distance = (bits << (52 - binning.CELL_BITS)).view(np.float64)
    return np.concatenate([distance, (1 - distance)[::-1]])


def float_layout(low: float, high: float) -> Layout:
    """Make the layout of the float grid, for scores clipped to [low, high].

    Its edges are a score of each cell.
    """
    scores, binning = float_scores(), kernels.binning
    grid = binning.Grid(low, high, scores.size, binning.FLOAT, np.empty(0), True, False)
    return Layout(grid, np.append(scores, 1.0), None)


# Rows between the cumulative weights that `kernels.replicates` keeps, of up to so many rows.
GROUPS = ((512, 1), (65536, 16), (2**31, 64))


def order_rows(
    sample: Sample, low: float, high: float, threshold: float = -math.inf
) -> "OrderedRows":
    """Arrange the rows of a sorted sample above a threshold in runs of equal scores."""
    skip = int(np.searchsorted(sample.s, threshold, "right"))
    sample = sample.where(slice(skip, None))
    inside = sample.n == 0 or (low <= sample.s[0] and sample.s[-1] <= high)
    u = sample.s if inside else sample.s.clip(low, high)
    begins = np.ones(u.size, np.bool_)
    begins[1:] = u[1:] != u[:-1]
    first = np.append(np.flatnonzero(begins), u.size).astype(np.int32)
    run = (np.cumsum(begins) - 1).astype(np.int32)
    order, v = np.arange(u.size, dtype=np.int32), kernels.weights(sample.v)
    group = next(size for rows, size in GROUPS if u.size <= rows)
    return kernels.replicates.OrderedRows(sample.s, u, v, order, run, first, skip, low, high, group)


def sort_scores(s: F64, w: F64 | None) -> tuple[F64, F64 | None]:
    """Sort scores, with their weights."""
    if w is None:
        return np.sort(s), None  # several times as fast as the order
    order = increasing(s)
    return s[order], w[order]


def quantile_edges(
    u: F64, w: F64 | None, n_bins: int, low: float, high: float, right: bool
) -> tuple[F64, F64]:
    """Find the edges (B + 1,) of bins of equal weight, and the inner cuts (B - 1,).

    `u` are scores in increasing order. The cuts decide which bin a row is in.
    """
    u = u.clip(low, high)
    edges, cuts = np.empty(n_bins + 1), np.empty(n_bins - 1)
    kernels.quantiles.quantile_edges(u, kernels.weights(w), low, high, right, edges, cuts)
    return edges, cuts
