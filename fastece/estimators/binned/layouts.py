"""Bins as grids for the kernels, and sums over rows in them: of all rows, of many replicates.

Where rows are many, bins of equal weight need no sort. One pass adds the rows up in the cells of a
fine grid; their weights tell in which few cells the cuts are, and only the rows of those are looked
at again: a third of the time of a sort at 1e6 rows.

Of replicates there is a way for each of two choices. Are bins the same in every draw (uniform), or
do they depend on it (equal mass)? And is a draw multiplicities of all rows, 32 replicates side by
side, or a list of few of them? Four arrangements of rows make each of them fast:

=============  =====================================  ==========================================
bins           multiplicities, 1 to 2 ns a row        lists, 8 to 20 ns a drawn row
=============  =====================================  ==========================================
uniform        `Tiles`: rows of a bin side by side    what a row brings, in one place
equal mass     sorted rows, with cuts between them    the drawn rows, as a sample of their own
=============  =====================================  ==========================================
"""

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, check_real, list_names
from fastece.data.reading import TOLERANCE as SUM_TOLERANCE
from fastece.data.reading import Map
from fastece.data.samples import NO_HITS, Sample, in_order, sort_rows
from fastece.data.sources import NO_ROWS, Problems, one_problem
from fastece.kernels import WEIGHT
from fastece.kernels.types import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.binning import Grid
    from fastece.kernels.replicates import OrderedRows

# Arithmetic finds the nearest edge while bins are much wider than the spacing of floats: the
# error of a position, in bins, is about 4e-16 * bins / width. Beyond, edges are searched.
MAX_BINS_PER_UNIT = 2.0**40
MAX_KEPT_BINS = 4096


def binomial_ends(hits: Any, misses: Any, lower: float, upper: float) -> tuple[F64, F64]:
    """Compute Clopper and Pearson's ends (1934) of frequencies, at two levels."""
    from scipy.special import betaincinv

    low = np.where(hits > 0, betaincinv(hits, misses + 1, lower), 0.0 * hits)
    high = np.where(misses > 0, betaincinv(hits + 1, misses, upper), 0.0 * hits + 1)
    return low, high


def common_grid(grid: "Grid") -> F64:
    """Write a grid as one array, as kernels of whole problems take it.

    A kernel needs 60 ns to look at each of its arguments.
    """
    return np.array([SUM_TOLERANCE, *grid[:4], grid.right, grid.convex, *grid.knots], np.float64)


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
    def step(self) -> int:
        """Step from the lower to the upper of the two cells of a score."""
        return 1 if self.cells > 1 else 0

    def place(self, s: F64) -> tuple[I32, F64]:
        """Find the lower cell (n,) of each score, and its share there."""
        lower, share = np.empty(s.size, np.int32), np.ones(s.size)
        kernels.binning.place(s, self.grid, lower, np.empty(s.size), share)
        return lower, share

    def spread(self, cells: F64) -> F64:
        """Turn values per cell (..., cells) into values per bin (..., B)."""
        if self.bins is None or self.bins.size == self.edges.size - 1:
            return cells
        values = np.zeros((*cells.shape[:-1], self.edges.size - 1))
        values[..., self.bins] = cells
        return values


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


def fixed_layout(
    n_bins: int, low: float, high: float, right: bool, convex: bool,
    edges: tuple[float, ...] | None = None,
) -> Layout:  # fmt: skip
    """Make the layout of given edges, or of uniform bins on a range; cached if small.

    Uniform edges are ``low + (high - low) * (j / n_bins)``, the last one exactly `high`.
    """
    make = kept_layout if n_bins <= MAX_KEPT_BINS else kept_layout.__wrapped__
    return make(n_bins, low, high, right, convex, edges)


@lru_cache(maxsize=64)
def kept_layout(
    n_bins: int, low: float, high: float, right: bool, convex: bool,
    given: tuple[float, ...] | None,
) -> Layout:  # fmt: skip
    """Make a `fixed_layout`, with a cache of the latest ones."""
    is_even = given is None and n_bins / (high - low) < MAX_BINS_PER_UNIT
    if given is None:
        edges = low + (high - low) * (np.arange(n_bins + 1) / n_bins)
        edges[-1] = high
    else:
        edges = np.array(given)
    if convex:
        return convex_layout(edges, is_even)
    return hard_layout(edges, edges[1:-1], right, is_even)


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


def quantile_edges(
    s: F64, w: F64 | None, n_bins: int, low: float, high: float, right: bool
) -> tuple[F64, F64]:
    """Find the edges (B + 1,) of bins of equal weight, and the inner cuts (B - 1,).

    The cuts decide which bin a row is in.
    """
    u, order = (sort_rows(s, NO_HITS)[0], None) if w is None else in_order(s)
    w = None if w is None else w[order]
    np.clip(u, low, high, out=u)
    edges, cuts = np.empty(n_bins + 1), np.empty(n_bins - 1)
    kernels.quantiles.quantile_edges(u, kernels.weights(w), low, high, right, edges, cuts)
    return edges, cuts


# Up to so many scores numpy looks for ranks; of more, `PART` times the root of their number at even
# steps tell where these are, but for `MARGIN` standard deviations of their own ranks.
FEW_SCORES, PART, MARGIN = 2**14, 4, 4.0


def scores_of_ranks(parts: Any, n: int, *pairs: tuple[int, int]) -> list[tuple[float, float]]:
    """Find the scores of pairs of ranks of n, counted from 0, without a sort.

    A pair is one rank, or that and the next, and pairs increase.

    `parts` gives the scores, one array after another. Floyd and Rivest (1975, "Expected time bounds
    for selection"): 1 ns a score.
    """
    if n > FEW_SCORES and len(pairs) > 1:
        return [scores_of_ranks(parts, n, pair)[0] for pair in pairs]
    while n > FEW_SCORES:
        ((first, last),) = pairs
        some = np.sort(np.concatenate([s[:: math.isqrt(n) // PART].copy() for s in parts()]))
        at = (first + 0.5) / n * some.size
        margin = MARGIN * 0.5 * math.sqrt(some.size)
        ends = (math.floor(at - margin), math.ceil(at + margin))
        low, high = (some[min(max(end, 0), some.size - 1)] for end in ends)
        below, found = 0, []
        for s in parts():
            inside = np.empty(s.size)
            less, count = kernels.quantiles.scores_between(s, low, high, inside)
            below += less
            found.append(inside[:count].copy())
        s = np.concatenate(found)
        good = below <= first <= last < below + s.size
        if good and low == high:
            return [(low, low)]
        if not good or s.size > n / 2:  # at an end, or where rows have a pattern
            break
        parts, n, pairs = [s].__iter__, s.size, ((first - below, last - below),)
    ordered = np.concatenate([*parts()])
    # As bits, floats that are not negative are in the same order: half the time.
    bits, begin, out = ordered.view(np.int64), 0, []
    for first, last in pairs:  # two thirds of the time of all ranks at once
        bits[begin:].partition(first - begin)
        low, begin = ordered.item(first), first
        out.append((low, low if first == last else float(ordered[last:].min())))
    return out


def quartiles(sample: Any, w: F64 | None, low: float, high: float) -> tuple[float, ...]:
    """Find the outer cuts of four bins of equal weight, without a sort of many.

    As `quantile_edges` defines them. Where rows count once, only the `parts` of the sample are
    looked at.
    """
    if w is None:
        n = sample.n  # on both sides of a cut, if it is between two scores
        pairs = [(first := -(-j * n // 4) - 1, first + (j * n % 4 == 0)) for j in (1, 3)]
        found = scores_of_ranks(lambda: (x.s for x in sample.parts(CHUNK_SCORES)), n, *pairs)
        return tuple((min(max(a, low), high) + min(max(b, low), high)) / 2 for a, b in found)
    edges, _ = quantile_edges(sample.s, w, 4, low, high, right=True)
    return edges[1], edges[3]


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
# Of more of the rows than this near a cut all are sorted, which takes less memory.
MOST_MIXED = 0.4


def grid_sums(
    problems: Problems, layout: Layout, threshold: float, moments: Sequence[int], run: Map,
    with_scores: bool = True,
) -> tuple[F64, F64]:  # fmt: skip
    """Compute some `kernels.MOMENTS` (Q, K, cells) of the cells of a grid.

    On a float grid also the only score of each cell (K cells,), at 1 ns a row.
    """
    k, cells = problems.n_problems, layout.cells
    rows = max(CHUNK_SCORES // k, CHUNK_ROWS_PER_CELL * cells)
    size = k * cells if with_scores and layout.grid.spacing == kernels.binning.FLOAT else 0
    none, several = kernels.moments.NONE, kernels.moments.SEVERAL
    v, kinds = kernels.weights(problems.v), np.array(moments)

    def one(start: int) -> tuple[F64, F64]:
        out, only = np.empty((kinds.size, k, cells)), np.full(size, none)
        part = slice(start, start + rows)
        prob, label = problems.read(part)
        kernels.moments.cell_moments(prob, label, v[part], layout.grid, threshold, kinds, only, out)
        return out, only

    def same(a: F64, b: F64) -> F64:
        return np.where(b == none, a, np.where((a == b) | (a == none), b, several))

    sums, scores = zip(*run(one, range(0, problems.n, rows)), strict=True)
    return reduce(np.add, sums), reduce(same, scores)


def cell_sums(
    problems: Problems, layout: Layout, threshold: float, moments: Sequence[int], run: Map
) -> tuple[F64, ...]:
    """Compute some `kernels.MOMENTS` of each bin: (K, B) arrays."""
    sums, _ = grid_sums(problems, layout, threshold, moments, run, with_scores=False)
    return tuple(layout.spread(sums))


def fits_float_grid(problems: Problems, n_bins: int, convex: bool) -> bool:
    """Return whether summing in the float grid is faster than a sort.

    There are many more rows than cells, few cells have a cut, and the cells of all problems fit
    into memory; convex bins are those of one problem.
    """
    few = problems.n_problems <= (1 if convex else FEW_PROBLEMS)
    return few and problems.n >= MANY_ROWS and n_bins <= FEW_BINS


def cells_of_cuts(weight: F64, n_bins: int) -> NDArray[np.intp]:
    """Find the cells that hold the scores on both sides of each cut of equal weight."""
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
        prob, label = problems.read(part)
        row, problem = np.empty(prob.size, np.int64), np.empty(prob.size, np.int32)
        score, hit = np.empty(prob.size), np.empty(prob.size, np.uint8)
        found = row, problem, score, hit
        count = kernels.moments.rows_in_cells(prob, label, low, high, flags, *found)
        row[:count] += start
        kept = (row if has_rows else NO_ROWS, problem if k > 1 else NO_ROWS, score, hit)
        return [x[:count].copy() for x in kept]

    has_rows = problems.v is not None  # else only the scores and the hits: less than half of it
    starts = range(0, problems.n, rows) if wanted.any() else range(1)
    row, problem, score, hit = map(np.concatenate, zip(*run(one, starts), strict=True))
    v = None if problems.v is None else problems.v[row]
    found = Sample(score, hit, v, low, high, row)
    return [found.where(problem == j) if k > 1 else found for j in range(k)]


def equal_mass_sums(
    problems: Problems, n_bins: int, low: float, high: float, right: bool, threshold: float,
    moments: Sequence[int], run: Map,
) -> tuple[list[Layout], tuple[F64, ...]]:  # fmt: skip
    """Compute bins of equal weight of each problem, and some moments (K, B).

    One of the `moments` is the weight. Rows count whose score is above the threshold.
    """
    floats = float_layout(low, high)
    sums, only = grid_sums(problems, floats, threshold, moments, run)
    weights = sums[moments.index(WEIGHT)]
    only = only.reshape(sums.shape[1:])
    mixed = np.zeros(only.shape, np.bool_)
    for k, weight in enumerate(weights):
        mixed[k, cells_of_cuts(weight, n_bins)] = True
    mixed &= only == kernels.moments.SEVERAL
    sorts = (weights * mixed).sum(1) > (MOST_MIXED * problems.n if problems.v is None else math.inf)
    mixed[sorts] = False
    score = np.where((only >= 0) & (only <= 1), only, float_scores())
    layouts, bins = [], np.empty((len(moments), len(only), n_bins))
    for k, sample in enumerate(rows_in_cells(problems, floats, mixed, run)):
        sample = problems.view(k) if sorts[k] else sample
        sample = sample.where(sample.s > threshold) if threshold > -math.inf else sample
        rest = ~mixed[k] & (weights[k] > 0) & ~sorts[k]
        # The rows around the cuts, and all others at a score of their cell.
        where, s, w = score[k, rest], sample.s, sample.v
        if not sorts[k]:
            s = np.append(s, where)
            w = np.append(np.ones(sample.n) if w is None else w, weights[k, rest])
        edges, cuts = quantile_edges(s, w, n_bins, low, high, right)
        layout = hard_layout(edges, cuts, right)
        side: Any = "left" if right else "right"
        inside = np.searchsorted(layout.grid.knots, where.clip(low, high), side)
        for q in range(len(moments)):
            bins[q, k] = np.bincount(inside, sums[q, k, rest], n_bins)
        if sample.n:
            own = cell_sums(one_problem(sample), layout, threshold, moments, map)
            bins[:, k] += np.concatenate(own)
        layouts.append(layout)
    return layouts, tuple(bins)


def scores_at_ranks(s: NDArray[Any], ranks: NDArray[np.intp]) -> NDArray[Any]:
    """Find the scores of ranks, counted from 0, in their dtype.

    Of many, only those in cells with such a rank are sorted: 4 ns a score, where numpy takes 50.
    """
    if s.size < FEW_SCORES:
        return np.sort(s)[ranks]
    hits, floats = np.zeros(s.size, np.uint8), float_layout(0.0, 1.0)
    problem = one_problem(Sample(s.astype(np.float64, copy=False), hits, None, 0.0, 1.0, ranks))
    ((weight,),) = cell_sums(problem, floats, -math.inf, (WEIGHT,), map)
    cell = np.searchsorted(np.cumsum(weight), ranks, "right")
    wanted = np.zeros(weight.size, np.bool_)
    wanted[cell] = True
    (found,) = rows_in_cells(problem, floats, wanted[None], map)
    at = ranks - np.cumsum(weight * ~wanted)[cell].astype(np.intp)
    return np.sort(found.s)[at].astype(s.dtype)


# Rows of a tile: with their multiplicities they fit into the first-level cache.
TILE = 1024


def terms_of(sample: Sample, threshold: float, moments: Sequence[int]) -> F64:
    """Compute the terms (Q, n) of rows drawn once in sums of `kernels.MOMENTS`."""
    terms, v = np.empty((len(moments), sample.n)), kernels.weights(sample.v)
    for kind, term in zip(moments, terms, strict=True):
        kernels.moments.moment(kind, sample.s, sample.y, v, threshold, term)
    return terms


def place_terms(
    sample: Sample, layout: Layout, threshold: float, moments: Sequence[int]
) -> tuple[I32, F64]:
    """Find the lower cells (n,) of rows, and terms (Q, n), or (2 Q, n) in both."""
    lower, share = layout.place(sample.s)
    terms = terms_of(sample, threshold, moments)
    if layout.grid.convex:
        terms = np.concatenate([terms * share, terms * (1 - share)])
    return lower, terms


def spread(layout: Layout, sums: F64) -> F64:
    """Turn sums per cell (Q, cells, R) into sums per bin (Q, B, R).

    Those of convex bins lie side by side in memory: in that order numpy adds them up.
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
        n_moments = len(self.terms) // (2 if layout.grid.convex else 1)
        out = np.empty((n_moments, layout.cells, c.shape[0] * c.shape[2]))
        kernels.replicates.tile_sums(
            self.terms, self.order, self.starts, self.cells, layout.step, c, out
        )
        return spread(layout, out)
