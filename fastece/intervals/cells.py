"""Cells: gaps whose norm is the error, with their noise under the null.

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
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.checks.arrays import contiguous
from fastece.data.sample import Sample, scale_weights
from fastece.data.source import one_problem
from fastece.estimators.base import Counts, Statistic
from fastece.estimators.binned import MAX_SUMS, Binned, Bins, Placement
from fastece.estimators.bins import Layout, Tiles
from fastece.estimators.density import KDE, Copies, CountBlocks, DensityPlan, is_supported
from fastece.estimators.density_grids import Mesh, add_images, folded
from fastece.kernels import EMPTY, MOMENTS, REPLICATES
from fastece.resampling import engine
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import LEAST_REPLICATES, hits_and_misses, label_draws
from fastece.typing import F64, I32, I64

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
# Rows whose labels are drawn at once: 64 bytes each, for a block of replicates.
PART = 2**18


@dataclass(frozen=True, eq=False)
class Cells:
    """Gaps of the cells of K problems, with their noise under the null.

    They are in units in which the error of a problem is the plain p-norm of its gaps; the error of
    all is the mean.

    Attributes
    ----------
    gap : (K, B) float64 array
    null : (K, B, R) float64 array
        Gaps of replicates whose labels are drawn from the scores.
    variance, slope : (K, B) float64 array
        ``v(d) = variance + slope d - d^2 / n`` is the variance of a gap whose mean is d.
    n : (K, 1) float64 array
        Kish's number of rows.
    max_gap : (K, B) float64 array
        The largest possible gap.
    expected_hits : (K, B) float64 array
        What a gap can be below 0: the hits that the scores say.
    norm : float
        p.
    share : (K, B) float64 array
        Part of the weight that each cell has.
    group : (K, B) int64 array
        Cells of one number are made by the same rows, so that a rare row comes to all of them.
    seed : int
        Of what else is random.
    side : float
        Which gaps count: all for 0, those above 0 for 1, those below 0 for -1.
    """

    gap: F64
    null: F64
    variance: F64
    slope: F64
    n: F64
    max_gap: F64
    expected_hits: F64
    norm: float
    share: F64
    group: I64
    seed: int
    side: float = 0.0

    def variance_at(self, gap: F64) -> F64:
        """Compute the variance of gaps with given means."""
        v = self.variance + self.slope * gap - gap * gap / self.n
        return np.asarray(np.maximum(v, FLOOR * self.variance))

    @cached_property
    def one_row(self) -> F64:
        """Contribution of one row to the gap of each cell."""
        gap = self.max_gap
        ratio = np.divide(gap, self.share, out=np.zeros_like(gap), where=gap > 0)
        return np.asarray(ratio / self.n)

    @cached_property
    def deviation(self) -> F64:
        """Standard error of each gap.

        Of a calibrated model, or with the gap that is there, if that is larger. Where less than one
        hit or miss is expected, one more might have come.
        """
        v = np.maximum(self.variance, self.variance_at(self.gap))
        rare = self.variance < self.one_row**2
        for other in (self.gap - self.one_row, self.gap + self.one_row):
            v = np.where(rare, np.maximum(v, self.variance_at(other)), v)
        # Of a single row all of this is 0.
        v = np.where(rare & (self.n < 2), np.maximum(v, (self.one_row / 2) ** 2), v)
        return np.asarray(np.sqrt(v) * (self.max_gap > 0))

    @cached_property
    def rare(self) -> tuple[I32, I32]:
        """Line of the permutations for each rare cell (K, B), and the permutations.

        The line is -1 for all other cells. In rare cells a calibrated model hardly ever hits, or
        misses, so that its noise cannot be stretched to the noise of a model that does.
        """
        reach = 3 * self.deviation
        far = [self.variance_at(self.gap + step) for step in (-reach, reach)]
        needs = (np.maximum(*far) > MOST_STRETCH * self.variance) & (self.max_gap > 0)
        which = np.full(self.gap.shape, -1, np.int32)
        which[needs] = np.arange(needs.sum())
        groups, mine = np.unique(self.group[needs], return_inverse=True)
        rng, count = np.random.default_rng(self.seed), self.null.shape[2]
        order = np.tile(np.arange(count, dtype=np.int32), (groups.size, 1))
        return which, rng.permuted(order, axis=1)[mine]

    def errors(self, gaps: F64) -> F64:
        """Compute the errors (M, R) of replicates of models with gaps (M, K, B)."""
        which, order = self.rare
        # Where nothing varies, nothing is stretched: rounding may leave a little noise there.
        stretch, part = np.ones_like(gaps), np.zeros_like(gaps)
        np.divide(self.variance_at(gaps), self.variance, out=stretch, where=self.variance > 0)
        if len(order):
            more = self.slope * gaps
            is_rare = (which >= 0) & (more > 0)
            np.divide(gaps * gaps / self.n, more, out=part, where=is_rare)
            part = np.where(is_rare, np.sqrt(np.maximum(1 - part, FLOOR)), 0.0)
            stretch[is_rare] = 1.0
        rare = kernels.errors.RareRows(np.abs(self.slope), part, which, order)
        out = np.empty((len(gaps), self.null.shape[2]))
        noise = np.sqrt(stretch)
        kernels.errors.gap_errors(gaps, noise, self.null, rare, self.side, self.norm, out)
        return out

    def error(self, gaps: F64) -> F64:
        """Compute the errors (M,) of models with gaps (M, K, B)."""
        null, out = np.zeros((*gaps.shape[1:], 1)), np.empty((len(gaps), 1))
        none = kernels.errors.NO_RARE_ROWS
        kernels.errors.gap_errors(gaps, np.zeros_like(gaps), null, none, self.side, self.norm, out)
        return np.asarray(np.minimum(out[:, 0], 1.0))  # rounding

    def split(self, per_class: bool) -> list["Cells"]:
        """Return the cells of each problem, or of all together."""
        if not per_class:
            return [self]
        values = {x.name: getattr(self, x.name) for x in fields(self)}
        arrays = {name: x for name, x in values.items() if isinstance(x, np.ndarray)}
        own = [{name: x[k : k + 1] for name, x in arrays.items()} for k in range(len(self.gap))]
        return [Cells(**{**values, **each}) for each in own]


def make_cells(
    null: F64, n: F64, norm: float, group: I64, seed: int,
    gap: F64, variance: F64, slope: F64, share: F64, hits: F64, unit: F64,
) -> Cells:  # fmt: skip
    """Make cells in units of the norm from gaps, null replicates and noise.

    `unit` multiplies a gap before the norm, and is 0 for cells that do not count. `variance` and
    `slope` are the sums of ``w^2 a^2 s (1 - s)`` and of ``w^2 a^2 (1 - 2 s)`` over W^2.
    """
    per_gap = np.divide(slope, share, out=np.zeros_like(slope), where=share > 0)
    # Of rows that are sure of a hit beside rows that are sure of a miss the slopes cancel, but rows
    # that are not what they say still vary: as if all were of the kind that can make such a gap.
    is_mixed = (variance == 0) & (gap != 0) & (per_gap * gap <= gap * gap / n[:, None])
    per_gap = np.where(is_mixed, np.sign(gap) / n[:, None], per_gap)
    null *= unit[:, :, None]
    return Cells(
        gap * unit, null, variance * unit**2, per_gap * unit, n[:, None], share * unit, hits * unit,
        norm, share, group, seed,
    )  # fmt: skip


def count_of(call: Call, cells: int) -> int:
    """Return the number of replicates for so many cells."""
    return min(call.n_resamples, max(LEAST_REPLICATES, MOST_GAPS // max(cells, 1)))


# --- bins -----------------------------------------------------------------------------------


def binned_cells(call: Call, binned: Binned, key: int = 0, *, has_noise: bool = True) -> Cells:
    """Compute the cells of a binned estimator; without noise they have no replicates."""
    (data,) = call.models
    bins, (data, _) = binned.bins(data, moments=3), scale_weights(data)
    n_bins, total = bins.gap.shape[1], np.where(bins.total > 0, bins.total, 1.0)[:, None]
    classes, count = range(data.n_problems), count_of(call, bins.gap.size) if has_noise else 0
    sums = [HitSums(binned, binned.layout(one_problem(data.view(k)), n_bins)) for k in classes]
    noise, hits = np.zeros((data.n_problems, 3, n_bins)), np.zeros((1, 1, count))
    for start in range(0, data.n, step := max(1, PART // data.n_problems)):
        samples = [data.view(k, slice(start, start + step)) for k in classes]
        noise += [sums[k].noise(samples[k]) for k in classes]
        if has_noise:
            draws = label_draws(call, [sample.s for sample in samples], key, start)
            plans = [sums[k].prepare(samples[k], call.n) for k in classes]
            drawn = [engine.PreparedStatistic(k, None, None, sums[k], plans[k]) for k in classes]
            some = engine.Replicates(draws, drawn)
            hits = hits + engine.evaluate(some, 0, count, call.jobs, call.executor)
    variance, slope, squares = noise.swapaxes(0, 1)
    share, group = bins.weight / total, np.arange(bins.gap.size).reshape(bins.gap.shape)
    null = (hits - bins.score[:, :, None]) / total[:, :, None]
    n = total[:, 0] ** 2 / np.where(squares[:, 0] > 0, squares[:, 0], 1.0)
    return make_cells(
        null, n, binned.norm, group, key, bins.gap / total, variance / total**2, slope / total**2,
        share, bins.score / total, bin_units(binned, bins, share),
    )  # fmt: skip


@dataclass(frozen=True)
class HitSums(Statistic):
    """Weight of the hits in bins of each draw of labels; rows that miss add nothing."""

    binned: Binned
    layout: Layout

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> Tiles:  # noqa: ARG002
        """Arrange the rows of a sample with their weights in tiles."""
        tiles = Tiles.of(sample, self.layout, self.binned._threshold, MOMENTS[:2])
        return tiles._replace(terms=np.ascontiguousarray(tiles.terms[1::2]))

    def values(self, tiles: Tiles, draws: Counts) -> F64:
        """Compute weights (B, 32 G) for counts (G, 2 n, 32) of hits, then of misses."""
        hits = draws.c[:, : tiles.order.size]
        step = max(1, MAX_SUMS // (REPLICATES * self.layout.cells))
        parts = [contiguous(hits[g : g + step], np.uint8) for g in range(0, len(hits), step)]
        return np.concatenate([tiles.sums(part)[0] for part in parts], axis=1)

    def noise(self, sample: Sample) -> F64:
        """Sum ``w^2 a^2 s (1 - s)``, ``w^2 a^2 (1 - 2 s)`` and all w^2: (3, B)."""
        places = Placement(self.layout, *self.layout.place(sample.s))
        s, v = sample.s, 1.0 if sample.v is None else sample.v
        w = np.where(s > self.binned._threshold, v, 0.0)
        sums = [places.sums(x, w, 2) for x in (s * (1 - s), 1 - 2 * s)]
        return np.stack([*sums, np.full(sums[0].size, w @ w)])


def bin_units(binned: Binned, bins: Bins, share: F64) -> F64:
    """Return the factors of the gaps that make `Binned.errors` their plain norm."""
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


# --- densities ------------------------------------------------------------------------------


class GapPlan(NamedTuple):
    """Prepared data of `DensityGaps`: rows twice, densities and the mesh.

    Rows stand there as hits and as misses; `hits` is the density of the hits (G,) that a calibrated
    model would have, and `scores` the density of the scores.
    """

    plan: DensityPlan
    mesh: Mesh
    scores: F64
    hits: F64


@dataclass(frozen=True)
class DensityGaps(Statistic):
    """Gaps at the points of a density's grid, for replicates of `hits_and_misses`.

    They are smoothed hits minus smoothed scores, which are equal where hits come true as often as
    the scores say. What the estimator itself takes off, the density times the score, is not.
    """

    kde: KDE
    points: int = 0  # gaps are filled up with zeros to so many

    def prepare(self, sample: Sample, size: int) -> GapPlan:
        """Prepare the densities of a sample, with the bandwidth of its scores."""
        plan = self.kde.prepare(sample, size)
        expected = np.where(sample.y == 1, sample.s, 1 - sample.s)
        mesh, density = plan.density(Copies(expected), plan.bandwidth)
        assert isinstance(mesh, Mesh)
        f, g = density[0, :, :, 0] * mesh.width
        return GapPlan(plan, mesh, f, g)

    def gaps(self, gap_plan: GapPlan, resamples: Any) -> F64:
        """Compute the gaps (points, R) of some replicates."""
        plan = gap_plan.plan
        out = np.zeros((max(self.points, gap_plan.hits.size), resamples.count))
        h = np.full(resamples.count, plan.bandwidth)
        for mesh, density, lanes in plan.densities(resamples, h):
            hits = np.moveaxis(density[:, 1], 1, 0).reshape(mesh.count, -1)[:, : lanes.size]
            out[: mesh.count, lanes] = hits * mesh.width[:, None] - gap_plan.hits[:, None]
        return out

    def values(self, gap_plan: GapPlan, draws: Counts) -> F64:
        """Compute gaps (points, 32 G)."""
        return self.gaps(gap_plan, CountBlocks(draws.blocks(gap_plan.plan.sample.n)))


def density_cells(call: Call, kde: KDE, key: int) -> Cells:
    """Compute the cells of a density on its grid.

    Problems with fewer points are filled up with zeros.
    """
    samples = call.models[0].samples()
    draws = label_draws(call, [sample.s for sample in samples], key)
    problems = [engine.Problem(hits_and_misses(sample)) for sample in samples]
    members = engine.plan_replicates([DensityGaps(kde)], problems, draws, call.n).members
    points = max(member.plan.hits.size for member in members)
    gaps = DensityGaps(kde, points)
    filled = engine.Replicates(draws, [m._replace(statistic=gaps) for m in members])
    count = count_of(call, points * len(samples))
    null = engine.evaluate(filled, 0, count, call.jobs, call.executor)
    columns, n, group = np.zeros((6, len(samples), points)), np.zeros(len(samples)), []
    for k, (sample, member) in enumerate(zip(samples, members, strict=True)):
        plan, own = member.plan, slice(member.plan.hits.size)
        drawn = np.concatenate([sample.y, 1 - sample.y])[member.order]
        variance, slope, n[k] = density_noise(plan, sample)
        gap = gaps.gaps(plan, Copies(drawn))[own, 0]
        units = point_units(kde, plan)
        columns[:, k, own] = gap, variance, slope, plan.scores, plan.hits, units
        number = np.floor(plan.mesh.score / (WIDTH * plan.plan.bandwidth)).astype(np.int64)
        group.append(np.pad(k * points + number, (0, points - number.size)))
    return make_cells(null, n, kde.norm, np.array(group), key, *columns)


def point_units(kde: KDE, plan: GapPlan) -> F64:
    """Return the factors of the gaps of points that make the error their plain norm."""
    if kde.norm == 1:
        return np.ones_like(plan.scores)
    counts, power = plan.scores > EMPTY, 1 / kde.norm - 1
    if math.isinf(kde.norm):
        counts = is_supported(plan.scores / plan.mesh.width, plan.mesh.low, plan.mesh.high)
    return np.power(plan.scores, power, out=np.zeros_like(plan.scores), where=counts)


def density_noise(gap_plan: GapPlan, sample: Sample) -> tuple[F64, F64, float]:
    """Compute noise of points, as `HitSums.noise` over W^2, and Kish's number."""
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
    add_images(sums)
    h, out = np.array([[plan.bandwidth]]), np.empty((mesh.count, 2))
    taps = np.ascontiguousarray(mesh.taps(h, mesh.reach(h))[0, :, 0])
    places = folded(mesh.count, taps.size - 1)
    kernels.density.squared_sums(taps, places, sums[0, :, :, 0].T.copy(), out)
    return np.maximum(out[:, 0], 0.0), out[:, 1].copy(), 1 / float(w @ w)
