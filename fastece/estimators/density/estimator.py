"""The density-based estimator: kernel densities of the scores and of the hits.

Of many replicates of one sample::

    replicates                 how often each row counts, or which rows were drawn
     |  bandwidths             one for each replicate: given, or Silverman's rule
     |  groups                 replicates whose bandwidths fit one grid
     |  cells                  their rows added up, misses and hits apart, some replicates at once
     v  densities              cells smoothed by the kernel: f of the scores, g of the hits
    (grid, densities, numbers of the replicates)

What a replicate gives depends on its own rows and bandwidth, never on its neighbours.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.parameters import check_choice, check_range, check_real
from fastece.data.reading import Map
from fastece.data.samples import Sample, scale_weights
from fastece.data.sources import Problems, Source
from fastece.estimators.base import Counts, Draws, Parameters, Plan, Rows, check_width
from fastece.estimators.binned.ranks import quartiles
from fastece.estimators.binned.replicates import order_rows
from fastece.estimators.density import mesh as grids
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

AnyMesh = grids.Mesh | grids.BetaMesh
Lanes = NDArray[np.intp]
Batch = tuple[AnyMesh, F64, Lanes]

# Rows of a point value that are read at once.
PART = 2**20
# Bandwidth where all scores are equal, and the smallest that the rule gives.
SMALLEST = 3e-4
# Distance between the quartiles of a normal distribution, in standard deviations.
IQR_OF_NORMAL = 1.349
# Sums that are smoothed at once: 0.25 MB.
MAX_SUMS = 2**15
# Sums beyond which fewer replicates are taken side by side: 64 MB.
MOST_SUMS, FEW_LANES = 2**23, 2
# Grids fit bandwidths from ``0.0003 * 2**(k / 4)`` on, so they are up to 1.2 times too fine.
LEVELS = 4
# Where the density is less than this share of its mean over the range, nothing is said of hits.
SUPPORT = 0.01
# A maximum is looked for on a grid that is so many times as fine as an integral's.
REFINEMENT = 4.0


@dataclass(frozen=True, eq=False)
class CellShares:
    """Rows of a sample, shared among the cells of a mesh."""

    mesh: AnyMesh
    sample: Sample

    @cached_property
    def cells(self) -> tuple[F64, float, float, int, bool]:
        """Coordinates of the scores, and the grid of cells."""
        return self.mesh.cells_of(move_inside(self.sample, self.mesh.low, self.mesh.high))

    def add(self, part: Sample, y: U8, w: F64, sums: F64) -> None:
        """Add some rows with weights w up, misses and hits apart, to `sums` (2, C)."""
        at, begin, step, count, cubic = CellShares(self.mesh, part).cells
        kernels.density.share_rows(at, y, w, begin, step, count, cubic, sums)

    @cached_property
    def of_all(self) -> tuple[I32, F64]:
        """First of four neighbouring cells (n,) of each row, and its shares (4, n)."""
        cell, share = np.empty(self.sample.n, np.int32), np.empty((4, self.sample.n))
        kernels.density.place(*self.cells, cell, share)
        if self.sample.v is not None:
            share *= self.sample.v
        return cell, share


@dataclass(frozen=True)
class Copies:
    """Replicates in which row i counts ``c[i]`` times; None: every row counts once.

    One, or several of different bandwidths, whose rows are added up at once. They need no order.
    """

    c: NDArray[Any] | None = None
    count: int = 1

    def weight(self, sample: Sample) -> F64 | None:
        """Return the weight (n,) of all copies of each row; None where it is 1."""
        return sample.v if self.c is None else replace(sample, c=self.c.astype(np.float64)).weight

    def spreads(self, plan: "DensityPlan") -> tuple[float, ...]:
        """Compute the spreads of the scores for Silverman's rule."""
        first, second, whole = 0.0, 0.0, self.weight(plan.sample)
        for part, w in parts_of(plan.sample, whole):
            s = move_inside(part, *plan.range).s
            distance, square = kernels.density.distances(s, w, plan.centre)
            first, second = first + distance, second + square
        weight = plan.sample.n if whole is None else whole.sum()
        lower, upper = quartiles(plan.sample, whole, *plan.range)
        return weight, first, second, upper - lower

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:  # noqa: ARG002
        """Add the rows of the replicates `lanes` (L, W) to the cells (L, 2, C, W)."""
        sample, sums = shares.sample, np.zeros(cells.shape[1:3])
        for part, w in parts_of(sample, self.weight(sample)):
            shares.add(part, part.y, w, sums)
        cells[:] = sums[:, :, None]


class Expected(Copies):
    """Rows of a calibrated model: of each the part s is a hit, the rest a miss."""

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:  # noqa: ARG002
        """Add the parts of the rows to the cells (L, 2, C, W)."""
        sums = np.zeros(cells.shape[1:3])
        for part in shares.sample.parts(PART):
            for y, chance in ((0, 1 - part.s), (1, part.s)):
                w = chance if part.v is None else chance * part.v
                shares.add(part, np.full_like(part.y, y), w, sums)
        cells[:] = sums[:, :, None]


def move_inside(sample: Sample, low: float, high: float) -> Sample:
    """Move scores outside a range to its nearest end."""
    return sample if low <= 0 and high >= 1 else replace(sample, s=sample.s.clip(low, high))


def parts_of(sample: Any, w: F64 | None) -> Iterator[tuple[Sample, F64]]:
    """Yield the rows in parts, with their weights for kernels."""
    start = 0
    for part in sample.parts(PART):
        weight = kernels.weights(None if w is None else w[start : start + part.n])
        start += part.n
        yield part, weight


@dataclass(frozen=True)
class CountBlocks:
    """Replicates with counts c (G, n, 32)."""

    c: U8

    @property
    def count(self) -> int:
        """Number of replicates: 32 G."""
        return len(self.c) * REPLICATES

    def spreads(self, plan: "DensityPlan") -> F64:
        """Compute the spreads (4, R) of the scores for Silverman's rule."""
        out = np.empty((4, self.count))
        kernels.density.spreads(self.c, plan.rows, plan.terms, out)
        return out

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:
        """Add the rows of the replicates `lanes` (L, W) to the cells (L, 2, C, W)."""
        first = lanes[0, 0]
        mine = self.c[first // REPLICATES : first // REPLICATES + len(lanes)]
        in_order = (lanes.ravel() == first + np.arange(lanes.size)).all()
        if lanes.shape[1] != REPLICATES or first % REPLICATES or not in_order:
            mine = np.empty((len(lanes), self.c.shape[1], lanes.shape[1]), np.uint8)
            kernels.density.gather_lanes(self.c, lanes.ravel(), mine)
        kernels.density.spread(mine, shares.sample.y, *shares.of_all, cells)


@dataclass(frozen=True)
class DrawnRows:
    """Replicates as lists of drawn rows (R, size)."""

    rows: I32

    @property
    def count(self) -> int:
        """Number of replicates: R."""
        return len(self.rows)

    def spreads(self, plan: "DensityPlan") -> F64:
        """Compute the spreads (4, R) of the scores for Silverman's rule."""
        sample, ordered = plan.sample, np.sort(contiguous(self.rows, np.int32), axis=1)
        w = np.empty((0, 0)) if sample.v is None else sample.v[ordered]
        out = np.empty((4, self.count))
        kernels.density.drawn_spreads(sample.s[ordered], w, plan.centre, *plan.range, out)
        return out

    def spread(self, shares: CellShares, lanes: Lanes, cells: F64) -> None:
        """Add the rows of the replicates `lanes` (L, W) to the cells (L, 2, C, W)."""
        sample, (at, begin, step, count, cubic) = shares.sample, shares.cells
        rows, v = contiguous(self.rows, np.int32)[lanes], kernels.weights(sample.v)
        kernels.density.spread_scores(rows, at, sample.y, v, begin, step, count, cubic, cells)


Resamples = Copies | CountBlocks | DrawnRows


@dataclass(frozen=True)
class DensityPlan(Plan):
    """Prepared data of `KDE` for one sample and one size of draws."""

    kde: "KDE"
    # Sorted, its scores moved into the range; or of point values one problem, as it is.
    sample: Any
    size: int  # rows per draw
    finer: float  # how many times finer grids are than errors need
    # All replicates have one grid, of evenly spaced points, which fits the bandwidth of the sample;
    # else grids fit the bandwidths.
    even: bool

    @property
    def range(self) -> tuple[float, float]:
        """The range of the density."""
        return self.kde.range_of(self.sample)

    @cached_property
    def centre(self) -> float:
        """The first score: squared distances from it do not cancel."""
        return float(next(self.sample.parts(PART)).s.item(0))

    @cached_property
    def rows(self) -> "OrderedRows":
        """Rows with runs of equal scores."""
        return order_rows(self.sample, *self.range)

    @cached_property
    def terms(self) -> F64:
        """Weighted distances from the centre, and weighted squares of them (2, n)."""
        x = self.rows.u - self.centre
        return np.stack([x, x * x]) * (self.rows.v if self.rows.v.size else 1.0)

    @cached_property
    def bandwidth(self) -> float:
        """Bandwidth when every row counts once."""
        return float(self.bandwidths(Copies())[0])

    def bandwidths(self, replicates: Resamples) -> F64:
        """Return the bandwidth (R,) of each replicate: given, or by Silverman's rule.

        With ``sd**2 = sum w (s - m)**2 / W * n / (n - 1)`` and the distance IQR between the
        quartiles, which is left out where it is 0. Of each replicate there are the weight W, the
        sums of ``w (s - a)`` and ``w (s - a)**2``, and IQR.
        """
        if isinstance(self.kde.bandwidth, float):
            return np.full(replicates.count, self.kde.bandwidth)
        n, (weight, first, second, iqr) = self.size, replicates.spreads(self)
        variance = (second - first * (first / weight)) / weight * (n / max(n - 1, 1))
        sd = np.sqrt(np.maximum(variance, 0.0))
        width = np.where(iqr > 0, np.minimum(sd, iqr / IQR_OF_NORMAL), sd)
        return np.full(replicates.count, np.maximum(SMALLEST, width * (0.75 * n) ** -0.2))

    @cached_property
    def grids(self) -> dict[int, CellShares]:
        """Grids made so far, by level, with the rows shared among their cells."""
        return {}

    @property
    def mesh(self) -> AnyMesh:
        """Grid of the bandwidth when every row counts once."""
        return self.grid(int(self.levels(self.bandwidth))).mesh

    @property
    def per_octave(self) -> int:
        """Number of grids for each doubling of the bandwidth; 0: one grid in all."""
        is_beta = self.kde.kernel == "beta"
        choice = self.kde.bandwidth if is_beta else self.kde.grid_step
        levels = grids.PER_OCTAVE if is_beta else LEVELS
        return 0 if self.even or isinstance(choice, float) else levels

    def levels(self, h: Any) -> NDArray[Any]:
        """Return the level of the grid for each bandwidth, which depends on that alone."""
        return np.asarray(np.floor(self.per_octave * np.log2(h / SMALLEST) + 1e-9))

    def grid(self, level: int) -> CellShares:
        """Return the grid of a level, with the rows shared among its cells."""
        if level not in self.grids:
            step = self.per_octave
            least = SMALLEST * 2.0 ** (level / step) if step else self.bandwidth
            mesh = self.kde.mesh(self.sample, least, self.finer, self.even)
            self.grids[level] = CellShares(mesh, self.sample)
        return self.grids[level]

    def groups(self, h: F64) -> Iterator[tuple[CellShares, Lanes]]:
        """Group the replicates by grid."""
        levels = self.levels(h)
        for level in map(int, np.unique(levels)):
            grid, mine = self.grid(level), np.flatnonzero(levels == level)
            for group in grid.mesh.groups(h[mine]):
                yield grid, mine[group]

    def density(self, copies: Copies, h: float | None = None) -> tuple[AnyMesh, F64]:
        """Compute the densities (1, 2, G, 1) of one replicate, and return its grid too."""
        h = float(self.bandwidths(copies)[0]) if h is None else h
        grid = self.grid(int(self.levels(h)))
        mesh = grid.mesh
        cells, density = np.empty((1, 2, mesh.n_nodes, 1)), np.empty((1, 2, mesh.count, 1))
        copies.spread(grid, np.zeros((1, 1), np.intp), cells)
        mesh.densities(cells, np.array([[h]]), density)
        return mesh, density

    def densities(self, replicates: Resamples, h: F64 | None = None) -> Iterator[Batch]:
        """Yield the densities of replicates, a batch at a time, with their grid.

        Of each time the grid; the densities (L, 2, G, W) of the scores and of the hits on its
        points, until the next step; and the numbers of the replicates, at most L * W: the last
        lanes may be there only to fill it up. By default each has its own bandwidth.
        """
        h = self.bandwidths(replicates) if h is None else h
        for shares, mine in self.groups(h):
            mesh = shares.mesh
            is_large = 2 * mesh.n_nodes * REPLICATES > MOST_SUMS
            width = min(FEW_LANES if is_large else REPLICATES, max(2, mine.size))
            # The last part is filled up with the first replicates of the group, and one is twice
            # there: a lane of its own is smoothed in another order.
            parts = np.resize(mine, (-(-mine.size // width), width))
            step = min(len(parts), max(1, MAX_SUMS // (2 * mesh.n_nodes * width)))
            cells = np.empty((step, 2, mesh.n_nodes, width))
            density = np.empty((step, 2, mesh.count, width))
            for begin in range(0, len(parts), step):
                lanes, first = parts[begin : begin + step], begin * width
                replicates.spread(shares, lanes, cells[: len(lanes)])
                mesh.densities(cells[: len(lanes)], h[lanes], density[: len(lanes)])
                yield mesh, density[: len(lanes)], mine[first : first + lanes.size]


@dataclass(frozen=True)
class KDE(Parameters):
    """Calibration error from kernel densities.

    With the kernel k_h of standard deviation h, reflected at both ends of the range, the scores
    have the density ``f(s) = sum_i w_i k_h(s, s_i) / W`` and the hits ``g(s) = sum_i w_i y_i k_h(s,
    s_i) / W``. By Bayes' rule ``P(y = 1 | s) = g / f``, so the local calibration error is
    ``LCE(s) = g / f - s``, and the value is ``(int |LCE|**p f ds)**(1/p)``: for p = 1 that is
    ``int |g - s f| ds``, for p = inf the largest ``|LCE|`` where ``f >= 0.01 / (high - low)``.

    Parameters
    ----------
    bandwidth : "silverman" or float
        h, in units of the score; "silverman" is ``max(0.0003, min(sd, IQR / 1.349) * (3 n /
        4)**(-1/5))`` of each problem, and of each replicate. Bandwidths beyond ten times the range
        are taken as that.
    kernel : {"gaussian", "triweight", "epanechnikov", "beta"}
        "beta" is Chen's second kernel with ``b = h**2`` on ``(s - low) / (high - low)``. It is not
        reflected, its mass is not exactly 1, and scores at the very ends of the range have none.
    norm : float
        p, at least 1; ``inf`` for the maximum calibration error.
    score_range : {"support", "unit"} or (low, high)
        Range of the density: the support of the setting's score, [0, 1], or a given one. Scores
        outside are moved to its nearest end.
    grid_step : "auto" or float
        Distance of the points of the grid; "auto" is as fine as the bandwidth needs, for errors
        within 1e-3 of the integral. A step, which should be well below the bandwidth, is rounded to
        a fraction of the range; scores are then shared linearly by two points (0.0003 with a
        "triweight" kernel: the paper).

    Raises
    ------
    ValueError, TypeError
        For a parameter outside its range; for one that needs more than 2**22 points.

    Notes
    -----
    Posocco and Bonnefoy (2021, "Estimating expected calibration errors", section 3); Silverman
    (1986, "Density estimation for statistics and data analysis", section 3.4.2); Chen (1999, "Beta
    kernel estimators for density functions", the second estimator).

    Examples
    --------
    >>> from fastece import KDE, ece
    >>> print(f"{ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=KDE(bandwidth=0.1)):.5f}")
    0.27867
    >>> print(KDE(kernel="beta"))
    KDE(bandwidth='silverman', kernel='beta')
    """

    bandwidth: float | Literal["silverman"] = "silverman"
    kernel: Literal["gaussian", "triweight", "epanechnikov", "beta"] = "gaussian"
    norm: float = 1.0
    score_range: Literal["support", "unit"] | tuple[float, float] = "support"
    grid_step: float | Literal["auto"] = "auto"

    native = (Counts, Rows)
    # The mass of beta kernels is not exactly 1, nor are their errors at most 1.
    largest = 1.0

    checks: ClassVar = {
        "bandwidth": partial(check_width, word="silverman"),
        "kernel": partial(check_choice, choices=(*grids.SHAPES, "beta")),
        "norm": partial(check_real, low=1.0),
        "score_range": partial(check_range, names=("support", "unit")),
        "grid_step": partial(check_width, word="auto"),
    }

    def mesh(self, sample: Sample, h: float, finer: float, even: bool) -> AnyMesh:
        """Make the grid for bandwidths of `h` or more; `even`: of evenly spaced points."""
        low, high = self.range_of(sample)
        shape, step = self._shape, self.grid_step
        count = None
        if not isinstance(step, str):  # rounded so that it divides the range
            count = max(1, round(grids.check_count("grid_step", step, (high - low) / step)))
        if self.kernel != "beta":
            if count is None:
                return grids.fitted_mesh(shape, low, high, h, finer)
            return grids.Mesh(shape, low, high, count, cubic=False)
        if count is None and not even:
            return grids.fitted_beta_mesh(low, high, h, finer)
        count = count or grids.fitted_mesh(shape, 0.0, 1.0, h, finer).count
        return grids.even_beta_mesh(low, high, h, count)

    @property
    def _shape(self) -> grids.Shape:
        """Kernel on even grids; beta kernels need grids as fine as a Gaussian does."""
        return grids.SHAPES.get(self.kernel, grids.SHAPES["gaussian"])

    @property
    def finer(self) -> float:
        """Fineness of the grid, relative to the needs of the norm 1."""
        return {1.0: 1.0, math.inf: REFINEMENT}.get(self.norm, self._shape.finer)

    def plan(self, sample: Sample, size: int, finer: float, even: bool = False) -> DensityPlan:
        """Prepare a sample with grids `finer` times as fine, or with one even grid."""
        sample = move_inside(scale_weights(sample)[0], *self.range_of(sample))
        return DensityPlan(self, sample, size, finer, even)

    def plan_of(self, problems: Problems, k: int) -> DensityPlan:
        """Prepare problem `k`, as it is, for values and densities of all rows."""
        is_whole = problems.n_problems == 1 and problems.v is None
        rows = problems if is_whole else problems.view(k)
        return DensityPlan(self, rows, problems.count(), self.finer, False)

    def prepare(self, sample: Sample, size: int) -> DensityPlan:
        """Prepare a sample for draws of `size` rows."""
        return self.plan(sample, size, self.finer)

    def evaluate(self, plan: DensityPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return self.error(plan, Copies(c))

    def error(self, plan: DensityPlan, copies: Copies) -> float:
        """Compute the value of one replicate."""
        mesh, density = plan.density(copies)
        return float(self.norms(mesh, density)[0, 0])

    def norms(self, mesh: AnyMesh, density: F64) -> F64:
        """Compute the values (L, W) of densities (L, 2, G, W) of scores and hits."""
        return (self.largest_gap if math.isinf(self.norm) else self.integral)(mesh, density)

    def point_values(self, source: Source, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a source; rows are not sorted."""
        if not isinstance(source, Problems):
            return super().point_values(source, run)
        problems, _ = scale_weights(source)

        def value(k: int) -> float:
            return self.error(self.plan_of(problems, k), Copies())

        return np.array(list(run(value, range(source.n_problems))))

    def values(self, plan: DensityPlan, draws: Draws) -> F64:
        """Compute the value of each replicate."""
        match draws:
            case Counts():
                return self.errors(plan, CountBlocks(draws.blocks(plan.sample.n)))
            case Rows(rows):
                return self.errors(plan, DrawnRows(rows))
        return super().values(plan, draws)

    def errors(self, plan: DensityPlan, resamples: Resamples, h: F64 | None = None) -> F64:
        """Compute the value (R,) of each replicate, with given or its own bandwidths."""
        out = np.empty(resamples.count)
        for mesh, density, lanes in plan.densities(resamples, h):
            out[lanes] = self.norms(mesh, density).ravel()[: lanes.size]
        return out

    def integral(self, mesh: AnyMesh, density: F64) -> F64:
        """Integrate the error (L, W) over densities (L, 2, G, W) of scores and hits."""
        out = np.empty((density.shape[0], density.shape[3]))
        where = mesh.score, mesh.width, mesh.low, mesh.high
        kernels.density.integrate(density, *where, self.norm, out)
        return out if self.norm == 1 else out ** (1.0 / self.norm)

    def largest_gap(self, mesh: AnyMesh, density: F64) -> F64:
        """Find the largest ``|LCE|`` (L, W) of densities; nan without support."""
        # Up to the ends of the range densities are level, and the score goes on.
        score = np.concatenate([[mesh.low], mesh.score, [mesh.high]])[:, None]
        f, g = density[:, :, np.r_[0, : mesh.count, -1]].swapaxes(0, 1)
        gap = np.abs(posterior(f, g, score, mesh.low, mesh.high) - score)
        largest = np.where(is_supported(f, mesh.low, mesh.high), gap, -1.0).max(1)
        return np.where(largest < 0, np.nan, largest)

    def sweep(self, sample: Sample, size: int, bandwidths: F64) -> F64:
        """Compute the value of a sorted sample with each of some bandwidths.

        The sample is binned once, or for beta kernels once for all bandwidths that share a grid.
        """
        is_beta = self.kernel == "beta"
        h: Any = "silverman" if is_beta else float(bandwidths.min())
        plan = replace(self, bandwidth=h).plan(sample, size, self.finer, even=not is_beta)
        return self.errors(plan, Copies(sample.c, bandwidths.size), bandwidths)


def is_supported(density: F64, low: float, high: float) -> NDArray[np.bool_]:
    """Return where the density of scores is large enough for a hit rate."""
    return np.asarray(density >= SUPPORT / (high - low))


def posterior(f: F64, g: F64, score: F64, low: float, high: float) -> F64:
    """Compute ``P(y = 1 | s)`` from densities f and g, or s without support."""
    diagonal = np.broadcast_to(score, f.shape).copy()
    return np.asarray(np.divide(g, f, out=diagonal, where=is_supported(f, low, high)))
