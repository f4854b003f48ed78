"""Errors that are norms of gaps: what their cells show, and what chance does to each.

A cell is a bin, or a point of the grid of a density. With the share a_ib of row i in cell b its gap
is ``D_b = sum_i w_i a_ib (y_i - s_i) / W``, and the error is a norm of the gaps. The scores are
known, so the noise of a gap is known too: labels with the probability ``s_i + d / share_b`` have
gaps whose mean is d and whose variance is

    ``v(d) = sum_i w_i^2 a_ib^2 (s_i (1 - s_i) + (1 - 2 s_i) d / share_b) / W^2 - d^2 / n``

where ``share_b = sum_i w_i a_ib / W`` and ``n = W^2 / sum_i w_i^2``; the last term is there because
rows are random too. So the noise of one set of replicates, drawn from the scores, serves every
hypothesis about the gaps: it only has to be stretched by ``sqrt(v(d) / v(0))``.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.binned.edges import Layout
from fastece.binned.estimator import EMPTY, MAX_SUMS, Binned, Bins
from fastece.binned.replicates import Tiles
from fastece.inputs.arrays import contiguous
from fastece.kde.estimator import KDE, is_supported
from fastece.kde.grid import GHOSTS, Mesh
from fastece.kde.plan import Copies, DensityPlan
from fastece.kernels import REPLICATES
from fastece.problems.order import scale_weights
from fastece.problems.problems import Problems, one_problem
from fastece.protocol import Sample
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import (
    LEAST_REPLICATES,
    hits_and_misses,
)
from fastece.resampling.draws import ClassDraws, HitDraws
from fastece.resampling.engine import Problem, Replicates, evaluate, plan_replicates

F64 = NDArray[np.float64]

# No hypothesis has less than this part of the noise of a calibrated model.
FLOOR = 0.05
# Noise of which the variance may have to be stretched by more than this has another law: that of
# rows that hit, or miss, although a calibrated model's hardly ever do.
MOST_STRETCH = 4.0
# Gaps of all replicates, of which there are fewer where cells are many: some 60 hypotheses are
# looked at, so these take half a second.
MOST_GAPS = 4 * 10**6
# Bandwidths between points of a density that no row reaches together.
WIDTH = 3.5


@dataclass(frozen=True, eq=False)
class Cells:
    """The gaps of the cells of K problems, in units in which the error of a problem is the plain
    p-norm of its gaps; the error of all is the mean.

    Attributes
    ----------
    gap : (K, B) float64 array
    null : (K, B, R) float64 array
        Gaps of replicates whose labels are drawn from the scores.
    variance, slope : (K, B) float64 array
        ``v(d) = variance + slope d - d^2 / n`` is the variance of a gap whose mean is d.
    n : (K, 1) float64 array
        Kish's number of rows.
    most : (K, B) float64 array
        The largest possible gap.
    hits : (K, B) float64 array
        What a gap can be below 0: the hits that the scores say.
    norm : float
        p.
    share : (K, B) float64 array
        Part of the weight that each cell has.
    group : (K, B) int64 array
        Cells of one number are made by the same rows, so that a rare row comes to all of them.
    seed : int
        Of what else is random.
    """

    gap: F64
    null: F64
    variance: F64
    slope: F64
    n: F64
    most: F64
    hits: F64
    norm: float
    share: F64
    group: NDArray[np.int64]
    seed: int

    def variance_at(self, gap: F64) -> F64:
        """The variance of gaps whose means are these."""
        v = self.variance + self.slope * gap - gap * gap / self.n
        return np.asarray(np.maximum(v, FLOOR * self.variance))

    @cached_property
    def one_row(self) -> F64:
        """What one row adds to the gap of a cell."""
        ratio = np.divide(self.most, self.share, out=np.zeros_like(self.most), where=self.most > 0)
        return np.asarray(ratio / self.n)

    @cached_property
    def deviation(self) -> F64:
        """The standard error of each gap: of a calibrated model, or with the gap that is there, if
        that is larger. Where less than one hit or miss is expected, one more might have come."""
        v = np.maximum(self.variance, self.variance_at(self.gap))
        rare = self.variance < self.one_row**2
        for other in (self.gap - self.one_row, self.gap + self.one_row):
            v = np.where(rare, np.maximum(v, self.variance_at(other)), v)
        return np.asarray(np.sqrt(v) * (self.most > 0))

    @cached_property
    def rare(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Which line of the permutations belongs to each cell (K, B), -1 where none does, and these
        permutations: of cells in which a calibrated model hardly ever hits, or misses, so that its
        noise cannot be stretched to that of a model that does."""
        reach = 3 * self.deviation
        far = [self.variance_at(self.gap + step) for step in (-reach, reach)]
        needs = (np.maximum(*far) > MOST_STRETCH * self.variance) & (self.most > 0)
        which = np.full(self.gap.shape, -1, np.int32)
        which[needs] = np.arange(needs.sum())
        groups, mine = np.unique(self.group[needs], return_inverse=True)
        rng, count = np.random.default_rng(self.seed), self.null.shape[2]
        order = np.tile(np.arange(count, dtype=np.int32), (groups.size, 1))
        return which, rng.permuted(order, axis=1)[mine]

    def errors(self, gaps: F64) -> F64:
        """The errors (M, R) of the replicates of models with gaps (M, K, B)."""
        which, order = self.rare
        stretch, part = np.zeros_like(gaps), np.zeros_like(gaps)
        np.divide(self.variance_at(gaps), self.variance, out=stretch, where=self.variance > 0)
        if len(order):
            more = self.slope * gaps
            is_rare = (which >= 0) & (more > 0)
            np.divide(gaps * gaps / self.n, more, out=part, where=is_rare)
            part = np.where(is_rare, np.sqrt(np.maximum(1 - part, FLOOR)), 0.0)
            stretch[is_rare] = 1.0
        out = np.empty((len(gaps), self.null.shape[2]))
        kernels.inversion.statistics(
            gaps, np.sqrt(stretch), self.null, np.abs(self.slope), part, which, order, self.norm,
            out,
        )  # fmt: skip
        return out

    def error(self, gaps: F64) -> F64:
        """The errors (M,) of models with gaps (M, K, B)."""
        nothing, none = np.zeros_like(gaps), np.full(gaps.shape[1:], -1, np.int32)
        out = np.empty((len(gaps), 1))
        kernels.inversion.statistics(
            gaps, nothing, np.zeros((*gaps.shape[1:], 1)), nothing[0], nothing, none,
            np.empty((0, 1), np.int32), self.norm, out,
        )  # fmt: skip
        return out[:, 0]

    def of(self, problems: int | slice) -> "Cells":
        """The cells of one problem, or of several."""
        part = slice(problems, problems + 1) if isinstance(problems, int) else problems
        arrays = ("gap", "null", "variance", "slope", "n", "most", "hits", "share", "group")
        return replace(self, **{name: getattr(self, name)[part] for name in arrays})


def make_cells(
    gap: F64, null: F64, variance: F64, slope: F64, n: F64, share: F64, hits: F64, unit: F64,
    norm: float, group: NDArray[np.int64], seed: int,
) -> Cells:  # fmt: skip
    """Cells in units: `unit` is what a gap is multiplied by before the norm, 0 for cells that do
    not count. `variance` and `slope` are the sums of ``w^2 a^2 s (1 - s)`` and of
    ``w^2 a^2 (1 - 2 s)`` over W^2."""
    per_gap = np.divide(slope, share, out=np.zeros_like(slope), where=share > 0)
    null *= unit[:, :, None]
    return Cells(
        gap * unit, null, variance * unit**2, per_gap * unit, n[:, None], share * unit, hits * unit,
        norm, share, group, seed,
    )  # fmt: skip


def has_cells(estimator: Any) -> bool:
    """Whether the error of an estimator is a norm of gaps that it tells."""
    is_even = type(estimator) is KDE and estimator.kernel != "beta"
    return is_even or type(estimator) is Binned


def cells_of(call: Call, estimator: Any, key: int) -> Cells:
    """The cells of an estimator for which `has_cells` holds, of the only model of a call; draws
    depend on the key."""
    make = binned_cells if isinstance(estimator, Binned) else density_cells
    return make(call, estimator, key)


def label_draws(call: Call, prob: list[F64], key: int) -> ClassDraws | HitDraws:
    """Labels with probabilities (n,) of each problem: of all classes together, or of the only one's
    hits."""
    if call.models[0].setting.per_class:
        return ClassDraws(key, np.column_stack(prob))
    return HitDraws(key, prob[0])


def count_of(call: Call, cells: int) -> int:
    """How many replicates there are of so many cells."""
    return min(call.n_resamples, max(LEAST_REPLICATES, MOST_GAPS // max(cells, 1)))


# --- bins -----------------------------------------------------------------------------------


def binned_cells(call: Call, binned: Binned, key: int) -> Cells:
    """The cells of a binned estimator."""
    (data,) = call.models
    bins, samples = binned.bins(data, moments=3), data.samples()
    problems = [Problem(sample) for sample in samples]
    draws = label_draws(call, [sample.s for sample in samples], key)
    count, size = count_of(call, bins.gap.size), bins.gap.shape[1]
    hits = call.replicates([HitSums(binned, size)], problems, draws, call.n, 0, count)
    return bin_cells(binned, data, bins, hits - bins.score[:, :, None], key)


@dataclass(frozen=True)
class HitSums:
    """The weight of the hits in each bin, for replicates of labels: scores and so bins are always
    the same, and rows that miss add nothing."""

    binned: Binned
    n_bins: int

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> Tiles:  # noqa: ARG002
        """Rows with their weights, in tiles."""
        sample, _ = scale_weights(sample)
        layout = self.binned.layout(one_problem(sample), self.n_bins)
        tiles = Tiles.of(sample, layout, self.binned._threshold, 2)
        return tiles._replace(terms=np.ascontiguousarray(tiles.terms[1::2]))

    def blocks(self, tiles: Tiles, c: NDArray[np.uint8]) -> F64:
        """(B, 32 G) weights, of multiplicities (G, 2 n, 32) of hits and then of misses."""
        hits = c[:, : tiles.order.size]
        step = max(1, MAX_SUMS // (REPLICATES * self.n_bins))
        parts = [contiguous(hits[g : g + step], np.uint8) for g in range(0, len(c), step)]
        return np.concatenate([tiles.sums(part)[0] for part in parts], axis=1)


def bin_cells(binned: Binned, data: Problems, bins: Bins, null: F64, seed: int) -> Cells:
    """The cells of bins, from the gaps of replicates as they are added up."""
    n_bins = bins.gap.shape[1]
    noise = [bin_noise(binned, sample, n_bins) for sample in data.samples()]
    variance, slope, squares = (np.array(part) for part in zip(*noise, strict=True))
    total = np.where(bins.total > 0, bins.total, 1.0)
    share = bins.weight / total[:, None]
    return make_cells(
        bins.gap / total[:, None], null / total[:, None, None], variance / total[:, None] ** 2,
        slope / total[:, None] ** 2, total**2 / np.where(squares > 0, squares, 1.0), share,
        bins.score / total[:, None], bin_units(binned, bins, share), binned.norm,
        np.arange(share.size).reshape(share.shape), seed,
    )  # fmt: skip


def bin_units(binned: Binned, bins: Bins, share: F64) -> F64:
    """What the gaps of bins are multiplied by, so that the error is their plain norm: that of
    `Binned.values`."""
    norm, equal = binned.norm, binned.bin_weights == "equal"
    if norm == 1 and not equal:
        return np.ones_like(share)
    counts = share > (0.0 if norm < math.inf and not equal else EMPTY)
    if math.isinf(norm):
        counts &= bins.weight >= binned.min_count / bins.unit
    power = -1.0 if equal or math.isinf(norm) else 1 / norm - 1
    unit = np.zeros_like(share)
    np.power(share, power, out=unit, where=counts)
    return unit * (share.shape[1] ** (-1 / norm) if equal and norm < math.inf else 1.0)


def place_rows(
    binned: Binned, sample: Sample, n_bins: int
) -> tuple[Layout, NDArray[np.int32], F64]:
    """Bins, the first one of each row, and its share of the row; the rest is the next one's."""
    layout = binned.layout(one_problem(sample), n_bins)
    lower, a = np.empty(sample.n, np.int32), np.ones(sample.n)
    kernels.binning.place(sample.s, layout.grid, lower, np.empty(sample.n), a)
    return layout, lower, a


def bin_noise(binned: Binned, sample: Sample, n_bins: int) -> tuple[F64, F64, float]:
    """Sums over the rows of each bin of ``w^2 a^2 s (1 - s)`` and of ``w^2 a^2 (1 - 2 s)``, and
    that of all w^2."""
    sample, _ = scale_weights(sample)
    layout, lower, a = place_rows(binned, sample, n_bins)
    w = np.ones(sample.n) if sample.v is None else sample.v
    if binned.threshold is not None:
        w = np.where(sample.s > binned.threshold, w, 0.0)
    upper = np.minimum(lower + 1, layout.cells - 1)
    sums = []
    for x in (sample.s * (1 - sample.s), 1 - 2 * sample.s):
        cells: F64 = np.bincount(lower, x * (w * a) ** 2, layout.cells).astype(np.float64)
        if layout.grid.convex:
            cells += np.bincount(upper, x * (w * (1 - a)) ** 2, layout.cells)
        sums.append(layout.spread(cells))
    return sums[0], sums[1], float(w @ w)


# --- densities ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GapPlan:
    """A plan for rows that stand there twice, as hits and as misses, with the density of the hits
    that a calibrated model would have (G,), that of the scores, and the mesh."""

    plan: DensityPlan
    mesh: Mesh
    scores: F64
    hits: F64


@dataclass(frozen=True)
class DensityGaps:
    """The gaps of the points of a density's grid, for replicates of `hits_and_misses`.

    They are smoothed hits minus smoothed scores, which are equal where hits come true as often as
    the scores say. What the estimator itself takes off, the density times the score, is not.
    """

    kde: KDE
    points: int = 0  # gaps are filled up with zeros to so many

    needs_sorted = True

    def prepare(self, sample: Sample, size: int) -> GapPlan:
        """As the estimator, with its bandwidth for the scores as they are."""
        plan = self.kde.prepare(sample, size)
        expected = np.where(sample.y == 1, sample.s, 1 - sample.s)
        ((mesh, density, _),) = plan.densities(Copies(expected), np.array([plan.bandwidth]))
        assert isinstance(mesh, Mesh)
        f, g = density[0, :, :, 0] * mesh.width
        return GapPlan(plan, mesh, f, g)

    def gaps(self, gap_plan: GapPlan, resamples: Any) -> F64:
        """(points, R) gaps."""
        plan = gap_plan.plan
        out = np.zeros((max(self.points, gap_plan.hits.size), resamples.count))
        h = np.full(resamples.count, plan.bandwidth)
        for mesh, density, lanes in plan.densities(resamples, h):
            hits = np.moveaxis(density[:, 1], 1, 0).reshape(mesh.count, -1)[:, : lanes.size]
            out[: mesh.count, lanes] = hits * mesh.width[:, None] - gap_plan.hits[:, None]
        return out

    def blocks(self, gap_plan: GapPlan, c: NDArray[np.uint8]) -> F64:
        """(points, 32 G) gaps."""
        return self.gaps(gap_plan, gap_plan.plan.blocks(c))


def density_cells(call: Call, kde: KDE, key: int) -> Cells:
    """The cells of a density on its grid: those of problems with fewer points are filled up."""
    samples = call.models[0].samples()
    draws = label_draws(call, [sample.s for sample in samples], key)
    problems = [Problem(hits_and_misses(sample)) for sample in samples]
    members = plan_replicates([DensityGaps(kde)], problems, draws, call.n).members
    points = max(member.plan.hits.size for member in members)
    gaps = DensityGaps(kde, points)
    filled = Replicates(draws, [m._replace(estimator=gaps) for m in members])
    null = evaluate(filled, 0, count_of(call, points * len(samples)), call.jobs, call.executor)
    gap, share, hits, unit = np.zeros((4, len(samples), points))
    variance, slope, n = np.zeros_like(gap), np.zeros_like(gap), np.zeros(len(samples))
    group = np.zeros(gap.shape, np.int64)
    for k, (sample, member) in enumerate(zip(samples, members, strict=True)):
        plan, own = member.plan, slice(member.plan.hits.size)
        drawn = np.concatenate([sample.y, 1 - sample.y])[member.order]
        gap[k] = gaps.gaps(plan, Copies(drawn))[:, 0]
        share[k, own], hits[k, own] = plan.scores, plan.hits
        unit[k, own] = point_units(kde, plan)
        width = WIDTH * plan.plan.bandwidth
        group[k, own] = k * points + np.floor(plan.mesh.score / width).astype(np.int64)
        variance[k, own], slope[k, own], n[k] = density_noise(plan, sample)
    return make_cells(gap, null, variance, slope, n, share, hits, unit, kde.norm, group, key)


def point_units(kde: KDE, plan: GapPlan) -> F64:
    """What the gaps of points are multiplied by, so that the error is their plain norm."""
    if kde.norm == 1:
        return np.ones_like(plan.scores)
    counts, power = plan.scores > EMPTY, 1 / kde.norm - 1
    if math.isinf(kde.norm):
        counts = is_supported(plan.scores / plan.mesh.width, plan.mesh.low, plan.mesh.high)
    return np.power(plan.scores, power, out=np.zeros_like(plan.scores), where=counts)


def density_noise(gap_plan: GapPlan, sample: Sample) -> tuple[F64, F64, float]:
    """``sum w^2 a^2 s (1 - s) / W^2`` and ``sum w^2 a^2 (1 - 2 s) / W^2`` of each point, and Kish's
    number of rows."""
    mesh, plan = gap_plan.mesh, gap_plan.plan
    sample, _ = scale_weights(sample)
    w = np.ones(sample.n) if sample.v is None else sample.v
    w = w / w.sum()
    cell, share = np.empty(sample.n, np.int32), np.empty((4, sample.n))
    inside = sample.s.clip(mesh.low, mesh.high)
    kernels.density.place(inside, mesh.low, mesh.step, mesh.count, mesh.cubic, cell, share)
    sums = np.empty((1, 2, mesh.n_nodes, 1))
    for q, x in enumerate((sample.s * (1 - sample.s), 1 - 2 * sample.s)):
        parts = [np.bincount(cell + j, w * w * x * a, mesh.n_nodes) for j, a in enumerate(share)]
        sums[0, q, :, 0] = np.sum(parts, axis=0)
    kernels.density.gather_images(mesh.folded(GHOSTS), GHOSTS, sums)
    taps = mesh.taps(np.array([[plan.bandwidth]]))[0, :, 0]
    out = np.empty((mesh.count, 2))
    kernels.inversion.squared_sums(
        np.ascontiguousarray(taps), mesh.folded(taps.size - 1), sums[0, :, :, 0].T.copy(), out
    )
    return np.maximum(out[:, 0], 0.0), out[:, 1].copy(), 1 / float(w @ w)
