"""Layouts: the edges of bins, and the cells in which rows are added up.

A `BinRule` says how scores get into bins. `layout_of` turns it into a `Layout` for one problem: the
edges, and a grid of cells for the kernels. With hard mapping the cells are the bins. With convex
mapping the cells are the distinct bin centres, and each score is shared by the two centres around
it. `Layout.place` gives the cells and shares of single rows.

A new rule whose edges do not depend on the scores is a name in `EDGE_RULES` and a case in
`make_fixed_layout`. Bins of equal mass are the only ones whose edges depend on the scores: another
such rule needs a case of its own wherever `BinRule.is_equal_mass` is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, check_real, list_names
from fastece.data.table import RowTable
from fastece.estimators.binned.cuts import equal_mass_edges
from fastece.kernels.types import F64, I32

if TYPE_CHECKING:
    from fastece.kernels.binning import Grid, GridFields
    from fastece.kernels.moments import EqualMassFields

# Rules for edges, by the names that `Binned` has for them: bins of equal width, or of equal mass.
UNIFORM = "uniform"
EQUAL_MASS = "quantile"
EDGE_RULES = (UNIFORM, EQUAL_MASS)
# Arithmetic finds the nearest edge while bins are much wider than the spacing of floats: the error
# of a position, in bins, is about 4e-16 * bins / width. Narrower bins have their edges searched.
MAX_BINS_PER_UNIT = 2.0**40
# Fixed layouts with more bins are made anew in every call, since 64 of them are kept in memory.
MAX_CACHED_BINS = 4096


class BinRule(NamedTuple):
    """How scores get into bins.

    It has the parameters of `Binned` that decide this, for data of a known range and size.

    Attributes
    ----------
    n_bins : int
    low, high : float
        Range that the bins divide.
    edges : "uniform", "quantile" or tuple of float
        As in `Binned`, checked.
    closed_right : bool
        Whether bins are closed at the right, or else at the left.
    is_convex : bool
        Whether a score is shared by the two nearest bin centres, or else is in its bin alone.
    threshold : float
        Rows with a score up to this one do not exist; -inf if all rows exist.
    """

    n_bins: int
    low: float
    high: float
    edges: str | tuple[float, ...]
    closed_right: bool
    is_convex: bool
    threshold: float

    @property
    def is_equal_mass(self) -> bool:
        """Whether bins have equal weight; other edges are the same for all scores."""
        return self.edges == EQUAL_MASS

    @property
    def equal_mass_fields(self) -> "EqualMassFields":
        """The fields of `kernels.moments.EqualMass`, as a plain tuple."""
        return self.low, self.high, self.closed_right, self.is_convex, self.threshold


@dataclass(frozen=True, eq=False)
class Layout:
    """The bins of one problem: their edges, and the cells that kernels add rows up in.

    Attributes
    ----------
    grid : kernels.binning.Grid
    edges : (B + 1,) float64 array
    bin_of_cell : (cells,) int32 array or None
        With convex mapping the bin of each centre; a centre that several bins share belongs to the
        first of them. None: the cells are the bins.
    """

    grid: "Grid"
    edges: F64
    bin_of_cell: I32 | None

    @cached_property
    def grid_fields(self) -> "GridFields":
        """The fields of the grid, as kernels of whole problems take them."""
        return (*self.grid,)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.edges.size - 1

    @cached_property
    def cells(self) -> int:
        """Number of cells: the bins, or the distinct centres."""
        return self.n_bins if self.bin_of_cell is None else self.bin_of_cell.size

    @cached_property
    def cells_are_bins(self) -> bool:
        """Whether cell number b is bin number b."""
        return self.bin_of_cell is None or self.bin_of_cell.size == self.n_bins

    @cached_property
    def is_plain(self) -> bool:
        """Whether `kernels.moments.hard_moments` takes the cells."""
        grid = self.grid
        return self.cells <= kernels.moments.MAX_CELLS_IN_LANES and not grid.convex

    @property
    def step(self) -> int:
        """Number of cells from the lower to the upper of the two cells of a score."""
        return 1 if self.cells > 1 else 0

    def place(self, s: F64) -> "Placement":
        """Find the cells of scores (n,), and their shares of them."""
        lower = np.empty(s.size, np.int32)
        share = np.ones(s.size)
        kernels.binning.place(s, self.grid, lower, np.empty(s.size), share)
        return Placement(self, lower, share)

    def spread(self, cells: F64) -> F64:
        """Turn values per cell (..., cells) into values per bin (..., B)."""
        if self.cells_are_bins:
            return cells
        bins = np.zeros((*cells.shape[:-1], self.n_bins))
        bins[..., self.bin_of_cell] = cells
        return bins


class Placement(NamedTuple):
    """Cells of the rows of a sample.

    Attributes
    ----------
    layout : Layout
    lower : (n,) int32 array
        The only cell of each row, or with convex mapping the lower of its two cells.
    share : (n,) float64 array
        Share of each row in its lower cell; the upper cell has the remainder.
    """

    layout: Layout
    lower: I32
    share: F64

    @property
    def upper(self) -> I32:
        """Upper cell (n,) of each row."""
        return np.asarray(self.lower + self.layout.step, np.int32).clip(max=self.layout.cells - 1)

    def sums(self, x: F64, weight: F64 | float = 1.0, power: int = 1) -> F64:
        """Sum ``x (weight a)^power`` of rows (n,) with shares a in each bin (B,)."""
        n_cells = self.layout.cells
        term = x * (weight * self.share) ** power
        cells: F64 = np.bincount(self.lower, term, n_cells).astype(np.float64)
        if self.layout.grid.convex:
            upper_term = x * (weight * (1 - self.share)) ** power
            cells += np.bincount(self.upper, upper_term, n_cells)
        return self.layout.spread(cells)

    def means(self, bins: F64) -> F64:
        """Average values (B,) of bins over the shares of each row (n,)."""
        bin_of_cell = self.layout.bin_of_cell
        cells = bins if bin_of_cell is None else bins[bin_of_cell]
        return self.share * cells[self.lower] + (1 - self.share) * cells[self.upper]


# --- layouts of given edges -----------------------------------------------------------------


def hard_layout(edges: F64, cuts: F64, closed_right: bool, is_even: bool = False) -> Layout:
    """Make the layout of hard bins with edges (B + 1,) and inner cuts (B - 1,).

    A cut decides on which side of an edge a score is. `is_even` says that the edges are evenly
    spaced. Scores beyond an end of the range are on the same side of each cut as that end.
    """
    low = float(edges[0])
    high = float(edges[-1])
    cuts = cuts.copy()
    kernels.moments.open_ends(cuts, low, high, closed_right)
    grid = kernels.binning.Grid(
        low=low, high=high, n_bins=edges.size - 1, even=is_even, knots=cuts,
        right=closed_right, convex=False,
    )  # fmt: skip
    return Layout(grid, edges, None)


def convex_layout(edges: F64, is_even: bool = False) -> Layout:
    """Make the layout of linear binning between the distinct centres of bins."""
    n_bins = edges.size - 1
    centres = np.empty(n_bins)
    first_bin = np.empty(n_bins, np.int32)
    count = kernels.moments.distinct_centres(edges, centres, first_bin)
    grid = kernels.binning.Grid(
        low=float(edges[0]), high=float(edges[-1]), n_bins=n_bins,
        even=is_even and count > 1, knots=centres[:count].copy(),
        right=False, convex=True,
    )  # fmt: skip
    return Layout(grid, edges, first_bin[:count])


# --- layouts of rules -----------------------------------------------------------------------


def layout_of(rule: BinRule, problem: RowTable) -> Layout:
    """Make the layout of the bins of one problem; equal-mass bins depend on its rows."""
    if not rule.is_equal_mass:
        return fixed_layout(rule)
    edges, cuts = equal_mass_edges(
        problem, rule.n_bins, rule.low, rule.high, rule.closed_right, rule.threshold
    )
    if rule.is_convex:
        return convex_layout(edges)
    return hard_layout(edges, cuts, rule.closed_right)


def fixed_layout(rule: BinRule) -> Layout:
    """Make the layout of given edges, or of uniform bins; small ones are cached."""
    if rule.n_bins > MAX_CACHED_BINS:
        return make_fixed_layout(rule)
    return cached_fixed_layout(rule)


def make_fixed_layout(rule: BinRule) -> Layout:
    """Make the layout of a rule whose edges do not depend on the scores.

    Uniform edges are ``low + (high - low) * (j / n_bins)``, and the last one is exactly `high`.
    """
    if rule.edges == UNIFORM:
        edges = rule.low + (rule.high - rule.low) * (np.arange(rule.n_bins + 1) / rule.n_bins)
        edges[-1] = rule.high
        is_even = rule.n_bins / (rule.high - rule.low) < MAX_BINS_PER_UNIT
    else:
        edges = np.array(rule.edges)
        is_even = False
    if rule.is_convex:
        return convex_layout(edges, is_even)
    return hard_layout(edges, edges[1:-1], rule.closed_right, is_even)


cached_fixed_layout = lru_cache(maxsize=64)(make_fixed_layout)


# --- edges given by a caller ----------------------------------------------------------------


def check_edges(name: str, value: Any, names: Sequence[str]) -> str | tuple[float, ...]:
    """Return a named rule, or two or more edges in [0, 1] that do not decrease."""
    if isinstance(value, str):
        return check_choice(name, value, names)
    if isinstance(value, list | tuple) and {*map(type, value)} == {float} and len(value) > 1:
        # A tenth of the time that the checks below take, one edge after the other.
        array = np.array(value)
        if 0 <= array[0] < array[-1] <= 1 and (array[1:] >= array[:-1]).all():
            return tuple(value)
    hint = list_names(names)
    if not isinstance(value, Sequence) and not hasattr(value, "__array__"):
        raise InputTypeError(name, "must be edges of bins", value=value, hint=hint)
    try:
        edges = tuple(check_real(f"{name}[{j}]", edge, 0.0, 1.0) for j, edge in enumerate(value))
    except TypeError as error:
        rule = f"must be edges of bins ({error})"
        raise InputTypeError(name, rule, value=value, hint=hint) from None
    if len(edges) < 2 or edges[0] == edges[-1]:
        raise InputError(name, "must be at least two edges, not all equal", value=value)
    for j, (low, high) in enumerate(pairwise(edges)):
        if high < low:
            raise InputError(name, f"must not decrease after {low!r}", index=j + 1, value=high)
    return edges
