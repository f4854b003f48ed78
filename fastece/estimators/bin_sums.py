"""Sums over rows in bins: of all rows once, and of many replicates.

Where rows are many, bins of equal weight need no sort. One pass adds the rows up in the cells of a
fine grid; their weights tell in which few cells the cuts are, and only the rows of those are looked
at again: a third of the time of a sort at 1e6 rows.

Of replicates there is a way for each of two choices. Are bins the same in every draw (uniform), or
do they depend on it (equal mass)? And is a draw multiplicities of all rows, 32 replicates side by
side, or a list of few of them? Four arrangements of rows make each of them fast:

=============  =====================================  ==========================================
bins           multiplicities, 1 to 2 ns a row        lists, 8 to 20 ns a drawn row
=============  =====================================  ==========================================
uniform        `Tiles`: rows of a bin side by side    `Records`: what a row brings, in one place
equal mass     `Ordered`: cuts between sorted rows    the drawn rows, as a sample of their own
=============  =====================================  ==========================================
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.arrays import contiguous
from fastece.data.reading import Map
from fastece.data.sample import Sample
from fastece.data.source import Problems, one_problem
from fastece.estimators.layouts import (
    Layout,
    float_layout,
    float_scores,
    hard_layout,
    order_rows,
    quantile_edges,
    sort_scores,
)
from fastece.typing import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

# Scores taken at once: a thread is busy with them for a millisecond, so that two seldom wait for
# one another (on 1e8 scores two threads are 1.7 times as fast as one; with 2**16 scores 1.2 times).
# Sums are made per chunk and added in order: the same bits for any number of threads.
CHUNK_SCORES = 2**19
# A chunk clears and reduces every cell once, so it should have many more rows than cells.
CHUNK_ROWS_PER_CELL = 64
# Scores that are looked through at once for the few that are wanted.
SEARCH_SCORES = 2**18
# Cells whose cumulative weight is this close to a cut, relative to the total, are looked at too:
# wider than `kernels.quantiles.TOLERANCE`, since sums of cells are rounded.
TOLERANCE = 1e-11
# From about so many rows on, cells are faster than a sort. A problem takes 0.4 MB, and with more
# cuts most rows are near one.
MANY_ROWS = 2**16
FEW_PROBLEMS = 32
FEW_BINS = 512


def grid_sums(
    problems: Problems, layout: Layout, threshold: float, moments: Sequence[int], run: Map
) -> tuple[F64, F64]:
    """Compute some `kernels.MOMENTS` (Q, K, cells) of the cells of a grid.

    On a float grid also the only score of each cell (K cells,).
    """
    k, cells = problems.n_problems, layout.cells
    rows = max(CHUNK_SCORES // k, CHUNK_ROWS_PER_CELL * cells)
    is_float = layout.grid.spacing == kernels.binning.FLOAT
    v, kinds = kernels.weights(problems.v), np.array(moments)

    def one(start: int) -> tuple[F64, F64]:
        out, only = np.empty((kinds.size, k, cells)), np.empty(k * cells if is_float else 0)
        part = slice(start, start + rows)
        prob, label = problems.prob[part], problems.label[part]
        kernels.moments.cell_moments(prob, label, v[part], layout.grid, threshold, kinds, only, out)
        return out, only

    sums, scores = zip(*run(one, range(0, problems.n, rows)), strict=True)
    return reduce(np.add, sums), reduce(same_score, scores)


def cell_sums(
    problems: Problems, layout: Layout, threshold: float, moments: Sequence[int], run: Map
) -> tuple[F64, ...]:
    """Compute some `kernels.MOMENTS` of each bin: (K, B) arrays."""
    sums, _ = grid_sums(problems, layout, threshold, moments, run)
    return tuple(layout.spread(sums))


def same_score(a: F64, b: F64) -> F64:
    """Combine the only scores of the cells of two chunks."""
    none, several = kernels.moments.NONE, kernels.moments.SEVERAL
    return np.where(b == none, a, np.where((a == b) | (a == none), b, several))


def fits_float_grid(problems: Problems, n_bins: int, convex: bool) -> bool:
    """Return whether summing in the float grid is faster than a sort.

    There are many more rows than cells, few cells have a cut, and the cells of all problems fit
    into memory; convex bins are those of one problem.
    """
    few = problems.n_problems <= (1 if convex else FEW_PROBLEMS)
    return few and problems.n >= MANY_ROWS and n_bins <= FEW_BINS


def cells_of_cuts(weight: F64, n_bins: int) -> NDArray[np.intp]:
    """Find the cells around each cut between bins of equal weight.

    They hold the scores on both sides of it.
    """
    filled = np.flatnonzero(weight)
    if not filled.size:
        return filled
    below = np.cumsum(weight[filled])
    target = np.arange(1, n_bins) * (below[-1] / n_bins)
    slack = TOLERANCE * below[-1]
    first = np.searchsorted(below, target - slack)
    last = np.searchsorted(below, target + slack, "right").clip(max=filled.size - 1)
    inside = np.bincount(first, minlength=filled.size + 1)
    inside -= np.bincount(last + 1, minlength=filled.size + 1)
    return filled[np.cumsum(inside)[:-1] > 0]


def rows_in_cells(
    problems: Problems, layout: Layout, wanted: NDArray[np.bool_], run: Map
) -> list[Sample]:
    """Return the rows of each problem in its wanted cells (K, cells)."""
    k = problems.n_problems
    rows = max(SEARCH_SCORES // k, 1)
    low, high = layout.grid.low, layout.grid.high
    flags = wanted.ravel().view(np.uint8)

    def one(start: int) -> list[NDArray[Any]]:
        part = slice(start, start + rows)
        prob, label = problems.prob[part], problems.label[part]
        row, problem = np.empty(prob.size, np.int64), np.empty(prob.size, np.int32)
        score, hit = np.empty(prob.size), np.empty(prob.size, np.uint8)
        count = kernels.moments.rows_in_cells(
            prob, label, low, high, flags, row, problem, score, hit
        )
        return [row[:count] + start, problem[:count], score[:count].copy(), hit[:count].copy()]

    starts = range(0, problems.n, rows) if wanted.any() else range(1)
    row, problem, score, hit = map(np.concatenate, zip(*run(one, starts), strict=True))
    v = None if problems.v is None else problems.v[row]
    found = Sample(score, hit, v, low, high, row)
    return [found.where(problem == j) for j in range(k)]


def cuts_between(
    sample: Sample, score: F64, weight: F64, n_bins: int, low: float, high: float, right: bool
) -> tuple[F64, F64]:
    """Compute edges and inner cuts of bins of equal weight.

    They come from the rows around the cuts, and from the `weight` of all others at a `score` of
    their cell.
    """
    s, v = sort_scores(sample.s, sample.v)
    at = np.searchsorted(s, score)
    u, w = np.insert(s, at, score), np.insert(np.ones(s.size) if v is None else v, at, weight)
    return quantile_edges(u, w, n_bins, low, high, right)


def equal_mass_sums(
    problems: Problems, n_bins: int, low: float, high: float, right: bool, threshold: float,
    moments: Sequence[int], run: Map,
) -> tuple[list[Layout], tuple[F64, ...]]:  # fmt: skip
    """Compute bins of equal weight of each problem, and their sums (K, B).

    The sums are some `kernels.MOMENTS`, the second of which is the weight, of rows with a score
    above the threshold.
    """
    floats = float_layout(low, high)
    sums, only = grid_sums(problems, floats, threshold, moments, run)
    only = only.reshape(sums.shape[1:])
    mixed = np.zeros(only.shape, np.bool_)
    for k, weight in enumerate(sums[1]):
        mixed[k, cells_of_cuts(weight, n_bins)] = True
    mixed &= only == kernels.moments.SEVERAL
    score = np.where((only >= 0) & (only <= 1), only, float_scores())
    layouts, bins = [], np.empty((len(moments), len(only), n_bins))
    for k, sample in enumerate(rows_in_cells(problems, floats, mixed, run)):
        if threshold > -math.inf:
            sample = sample.where(sample.s > threshold)
        rest = ~mixed[k] & (sums[1, k] > 0)
        where = score[k, rest]
        edges, cuts = cuts_between(sample, where, sums[1, k, rest], n_bins, low, high, right)
        layout = hard_layout(edges, cuts, right)
        inside = np.searchsorted(
            layout.grid.knots, where.clip(low, high), "left" if right else "right"
        )
        for q in range(len(moments)):
            bins[q, k] = np.bincount(inside, sums[q, k, rest], n_bins)
        if sample.n:
            mixed_sums = cell_sums(one_problem(sample), layout, threshold, moments, map)
            bins[:, k] += np.concatenate(mixed_sums)
        layouts.append(layout)
    return layouts, tuple(bins)


# Rows of a tile: with their multiplicities they fit into the first-level cache.
TILE = 1024


def terms_of(sample: Sample, threshold: float, moments: Sequence[int]) -> F64:
    """Compute the terms (Q, n) of each row in sums of some `kernels.MOMENTS`.

    They are of a row that is drawn once.
    """
    terms, v = np.empty((len(moments), sample.n)), kernels.weights(sample.v)
    for kind, term in zip(moments, terms, strict=True):
        kernels.moments.moment(kind, sample.s, sample.y, v, threshold, term)
    return terms


def place_terms(
    sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]
) -> tuple[I32, F64]:
    """Find the (lower) cell of each row (n,) and its terms (Q, n) there.

    With convex mapping also those in the upper cell (2 Q, n).
    """
    lower, share = np.empty(sample.n, np.int32), np.ones(sample.n)
    kernels.binning.place(sample.s, layout.grid, lower, np.empty(sample.n), share)
    terms = terms_of(sample, threshold, moments)
    if layout.grid.convex:
        terms = np.concatenate([terms * share, terms * (1 - share)])
    return lower, terms


def spread(layout: Layout, sums: F64) -> F64:
    """Turn sums per cell (Q, cells, R) into sums per bin (Q, B, R).

    The sums of convex bins lie side by side in memory, which is the order in which numpy adds them
    up.
    """
    if layout.bins is None:
        return sums
    return layout.spread(np.ascontiguousarray(sums.swapaxes(1, 2))).swapaxes(1, 2)


class Tiles(NamedTuple):
    """Rows on fixed edges, as `kernels.replicates.tile_sums` takes them."""

    layout: Layout
    terms: F64
    order: I32
    starts: I32
    cells: I32

    @classmethod
    def of(cls, sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]) -> Self:
        """Arrange the rows of a sample in tiles, sorted by cell within each tile."""
        n, (lower, terms) = sample.n, place_terms(sample, layout, threshold, moments)
        order, runs = np.empty(n, np.int32), np.empty(n, np.int32)
        starts = np.empty(n + 1, np.int32)
        # With more cells than rows in a tile, most runs would be of one row.
        tile = max(TILE, layout.cells)
        count = kernels.replicates.arrange_tiles(lower, layout.cells, tile, order, starts, runs)
        terms = np.take(terms, order, axis=1)
        return cls(layout, terms, order, starts[: count + 1].copy(), runs[:count].copy())

    def sums(self, c: U8) -> F64:
        """Compute sums (Q, B, 32 G) over the bins for counts (G, n, 32)."""
        layout = self.layout
        out = np.empty((len(self.terms) // layout.sides, layout.cells, c.shape[0] * c.shape[2]))
        kernels.replicates.tile_sums(
            self.terms, self.order, self.starts, self.cells, layout.step, c, out
        )
        return spread(layout, out)


class Records(NamedTuple):
    """Cell and terms of each row, as `kernels.moments.drawn_sums` takes them."""

    layout: Layout
    records: F64

    @classmethod
    def of(cls, sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]) -> Self:
        """Make the records of a sample on a layout."""
        lower, terms = place_terms(sample, layout, threshold, moments)
        return cls(layout, np.column_stack([lower, *terms]))

    def sums(self, rows: I32) -> F64:
        """Compute sums (Q, B, R) over the bins for the drawn rows (R, size)."""
        layout = self.layout
        moments = (self.records.shape[1] - 1) // layout.sides
        out = np.empty((moments, layout.cells, len(rows)))
        kernels.moments.drawn_sums(self.records, layout.step, rows, out)
        return spread(layout, out)


class Ordered(NamedTuple):
    """Rows in increasing order of the score, with their terms."""

    rows: "OrderedRows"
    terms: F64

    @classmethod
    def of(
        cls, sample: Sample, low: float, high: float, threshold: float, moments: Sequence[int]
    ) -> Self:
        """Make the ordered rows of a sorted sample, above the threshold."""
        rows = order_rows(sample, low, high, threshold)
        return cls(rows, terms_of(sample.where(slice(rows.skip, None)), threshold, moments))

    def sums(self, c: U8, n_bins: int, right: bool, convex: bool) -> tuple[F64, F64]:
        """Compute the weight (32 G,) and bin sums (Q, B, 32 G) for counts (G, n, 32)."""
        total = np.empty(c.shape[0] * c.shape[2])
        out = np.empty((len(self.terms), n_bins, total.size))
        kernels.replicates.equal_mass_sums(self.rows, self.terms, right, convex, c, total, out)
        return total, out


def drawn_equal_mass_sums(
    sample: Sample, rows: I32, n_bins: int, low: float, high: float, right: bool, convex: bool,
    threshold: float, moments: Sequence[int],
) -> tuple[F64, F64]:  # fmt: skip
    """Compute weights (R,) and equal-mass bin sums (Q, B, R) of drawn rows (R, size)."""
    total, out = np.empty(len(rows)), np.empty((len(moments), n_bins, len(rows)))
    rows = np.sort(contiguous(rows, np.int32), axis=1)
    kernels.moments.drawn_equal_mass_sums(
        sample.s, sample.y, kernels.weights(sample.v), threshold, low, high, right, convex,
        np.array(moments), rows, total, out,
    )  # fmt: skip
    return total, out
