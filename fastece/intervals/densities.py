"""Cells of densities on their grid: smoothed hits minus smoothed scores."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastece import kernels
from fastece.data.sample import Sample, scale_weights
from fastece.estimators.base import Counts, Statistic
from fastece.estimators.binned import EMPTY
from fastece.estimators.density import KDE, Copies, CountBlocks, DensityPlan, is_supported
from fastece.estimators.density_grids import GHOSTS, Mesh, add_images
from fastece.intervals.cells import Cells, count_of, make_cells
from fastece.resampling.arguments import Call
from fastece.resampling.engine import Problem, Replicates, evaluate, plan_replicates
from fastece.resampling.labels import hits_and_misses, label_draws
from fastece.typing import F64

# Bandwidths between points of a density that no row reaches together.
WIDTH = 3.5


@dataclass(frozen=True)
class GapPlan:
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
        ((mesh, density, _),) = plan.densities(Copies(expected), np.array([plan.bandwidth]))
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
    problems = [Problem(hits_and_misses(sample)) for sample in samples]
    members = plan_replicates([DensityGaps(kde)], problems, draws, call.n).members
    points = max(member.plan.hits.size for member in members)
    gaps = DensityGaps(kde, points)
    filled = Replicates(draws, [m._replace(statistic=gaps) for m in members])
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
    """Return the factors of the gaps of points that make the error their plain norm."""
    if kde.norm == 1:
        return np.ones_like(plan.scores)
    counts, power = plan.scores > EMPTY, 1 / kde.norm - 1
    if math.isinf(kde.norm):
        counts = is_supported(plan.scores / plan.mesh.width, plan.mesh.low, plan.mesh.high)
    return np.power(plan.scores, power, out=np.zeros_like(plan.scores), where=counts)


def density_noise(gap_plan: GapPlan, sample: Sample) -> tuple[F64, F64, float]:
    """Compute the noise terms of each point, and Kish's number of rows.

    The terms are ``sum w^2 a^2 s (1 - s) / W^2`` and ``sum w^2 a^2 (1 - 2 s) / W^2``.
    """
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
    add_images(sums, mesh.folded(GHOSTS))
    taps = mesh.taps(np.array([[plan.bandwidth]]))[0, :, 0]
    out = np.empty((mesh.count, 2))
    kernels.inversion.squared_sums(
        np.ascontiguousarray(taps), mesh.folded(taps.size - 1), sums[0, :, :, 0].T.copy(), out
    )
    return np.maximum(out[:, 0], 0.0), out[:, 1].copy(), 1 / float(w @ w)
