"""Cells: gaps whose norm is the error, with their noise under the null.

A cell is a bin, or a point of the grid of a density. With the share a_ib of row i in cell b its gap
is ``D_b = sum_i w_i a_ib (y_i - s_i) / W``, and the error is a norm of the gaps. The scores are
known, so the noise of a gap is known too. A model whose gap has the mean d > 0 is one in which a
part t of the misses of a calibrated one come true (of d < 0, a part t of the hits do not): so
``d = t m`` with the misses ``m = sum_i w_i a_ib (1 - s_i) / W``, and the variance of the gap is

    ``v(d) = v(0) (1 - 2 t) + u |d| - d^2 / n``, ``u = sum_i w_i^2 a_ib^2 / (W sum_i w_i a_ib)``

with ``v(0) = sum_i w_i^2 a_ib^2 s_i (1 - s_i) / W^2`` and ``n = W^2 / sum_i w_i^2``; the last term
is there because rows are random too. It is never below 0, and that of a binomial law where scores
are equal. So the noise of one set of replicates, drawn from the scores, serves every hypothesis
about the gaps: it only has to be stretched by ``sqrt(v(d) / v(0))``, or, where hits or misses are
few, replaced by that of a binomial law, in the same order.
"""

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.samples import Sample, scale_weights
from fastece.estimators.base import Statistic
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.binned.replicates import MAX_SUMS
from fastece.estimators.density.estimator import KDE, is_supported
from fastece.estimators.density.mesh import Mesh
from fastece.estimators.density.plan import DensityPlan, SharedRows, add_rows
from fastece.estimators.draws import Counts
from fastece.kernels import EMPTY, GAP, REPLICATES, SCORE, WEIGHT
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.calibration_test import MIN_REPLICATES
from fastece.resampling.call import Call
from fastece.resampling.outcome_sums import NullModel, make_outcome_sums, rows_or_cells

# Gaps of less variance than this many rows have skewed noise, which cannot be stretched. With it
# one bin of 100 rows or more, of which 90 or 100 % come true, has Clopper-Pearson's width to 1 %.
FEW_ROWS = 25.0
# Differences between rows that come before any order of equal gaps.
TIES = 1e-6
# Random numbers of rows make the variance of binomial noise at most so many times as large: where
# nearly all rows miss, or hit, that noise is not binomial.
MOST_STRETCH = 2.0
# A binomial law of a smaller chance is one of Poisson.
LEAST_CHANCE = 1e-3
# Gaps of all replicates, of which there are fewer where cells are many: some 60 hypotheses are
# looked at, so these take half a second.
MOST_GAPS = 4 * 10**6
# Bandwidths between points of a density that no row reaches together.
WIDTH = 3.5


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
    variance : (K, B) float64 array
        Of the gaps of a calibrated model.
    row : (K, B) float64 array
        What a row adds to the gap of a cell: u, on the average.
    n : (K, 1) float64 array, or (K, B)
        Kish's number of rows; with groups, divided by the design effect.
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
    row: F64
    n: F64
    max_gap: F64
    expected_hits: F64
    norm: float
    share: F64
    group: I64
    seed: int
    side: float = 0.0

    def room(self, gaps: F64) -> F64:
        """Compute how far gaps of the same signs may be from 0."""
        return np.where(gaps > 0, self.max_gap - self.expected_hits, self.expected_hits)

    def variance_at(self, gaps: F64) -> F64:
        """Compute the variance of gaps with given means."""
        room = self.room(gaps)
        size = np.minimum(np.abs(gaps), room)
        flips = divide(size, room)
        v = self.variance * (1 - 2 * flips) + self.row * size - size**2 / self.n
        return np.asarray(np.maximum(v, 0.0))

    @cached_property
    def deviation(self) -> F64:
        """Standard error of each gap.

        Of a calibrated model, or with the gap that is there, if that is larger. Where less than one
        hit or miss is expected, one more might have come.
        """
        v = np.maximum(self.variance, self.variance_at(self.gap))
        rare = self.variance < self.row**2
        for other in (self.gap - self.row, self.gap + self.row):
            v = np.where(rare, np.maximum(v, self.variance_at(other)), v)
        # Of a single row all of this is 0.
        v = np.where(rare & (self.n < 2), np.maximum(v, (self.row / 2) ** 2), v)
        return np.asarray(np.sqrt(v) * (self.max_gap > 0))

    @cached_property
    def rare(self) -> tuple[I32, I32]:
        """Line of the orders for each rare cell (K, B), and the orders of replicates.

        The line is -1 for all other cells. In rare cells few hits, or few misses, come of some
        hypothesis that matters. Replicates keep the order that their gaps have in a calibrated
        model; those with equal ones, of which there are many where scores are extreme, have a
        random one.
        """
        reach = 3 * self.deviation
        least = np.minimum.reduce([self.variance, *(
            self.variance_at(self.gap + step) for step in (-reach, 0.0, reach)
        )])  # fmt: skip
        needs = (least < FEW_ROWS * self.row**2) & (self.max_gap > 0)
        which = np.full(self.gap.shape, -1, np.int32)
        which[needs] = np.arange(needs.sum())
        groups, mine = np.unique(self.group[needs], return_inverse=True)
        rng, count = np.random.default_rng(self.seed), self.null.shape[2]
        ties = rng.standard_normal((groups.size, count))[mine]
        is_low = (self.expected_hits < self.max_gap / 2)[needs]
        if len(self.gap) > 1 and is_low.any() and not is_low.all():
            # A row has one class: who is wrong misses in a cell of high scores, and hits in one of
            # low scores of another class. So both kinds have the same sum, in standard errors.
            low, high = (np.where(x, self.deviation[needs], 0.0) for x in (is_low, ~is_low))
            low, high = low / np.linalg.norm(low), high / np.linalg.norm(high)
            ties -= np.outer(low, (low + high) @ ties)
        order = (self.null[needs] + TIES * self.row[needs][:, None] * ties).argsort(axis=1)
        return which, order.astype(np.int32)

    def errors(self, gaps: F64) -> F64:
        """Compute the errors (M, R) of replicates of models with gaps (M, K, B)."""
        which, order = self.rare
        v, rare = self.variance_at(gaps), kernels.errors.NO_RARE_ROWS
        # Where nothing varies, nothing is stretched: rounding may leave a little noise there.
        stretch = np.where(self.variance > 0, divide(v, self.variance), 1.0)
        if len(order):
            rare = self.rare_rows(gaps, v, which, order)
        out = np.empty((len(gaps), self.null.shape[2]))
        noise = np.sqrt(stretch)
        kernels.errors.gap_errors(gaps, noise, self.null, rare, self.side, self.norm, out)
        return out

    def rare_rows(self, gaps: F64, v: F64, which: I32, order: I32) -> Any:
        """Make the binomial laws of rare cells with gaps (M, K, B) of variances v.

        They count the misses that are left where gaps are above 0, else the hits: of equal scores,
        and of scores that are all 0 or 1, that is the law, but for the random number of rows.
        """
        room = self.room(gaps)
        flips = np.minimum(divide(np.abs(gaps), room), 1.0)
        rest = 1 - flips
        mean = rest * divide(room, self.row)
        # The variance with as many rows as there are, and over the mean.
        own = rest * (rest * self.variance + flips * self.row * np.maximum(room, 0.0))
        chance = np.clip(1 - divide(own, self.row**2 * mean), LEAST_CHANCE, 1 - TIES)
        count = np.maximum(np.rint(mean / chance), 1.0)
        own = np.where(mean >= 1, np.minimum(v, MOST_STRETCH * own), own)
        step = np.sqrt(own / (count * chance * (1 - chance)))
        count = np.where((which >= 0) & (gaps != 0), count, 0.0)
        return kernels.errors.RareRows(-np.sign(gaps) * step, count, chance, which, order)

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


def divide(x: F64, y: F64) -> F64:
    """Divide x by y >= 0; 0 where y is."""
    x, y = np.broadcast_arrays(x, y)
    return np.divide(x, y, out=np.zeros(x.shape), where=y > 0)


def make_cells(
    call: Call, null: F64, n: F64, norm: float, group: I64, seed: int,
    gap: F64, variance: F64, squares: F64, share: F64, hits: F64, unit: F64,
) -> Cells:  # fmt: skip
    """Make cells in units of the norm from gaps, null replicates and noise.

    `unit` multiplies a gap before the norm, and is 0 for cells that do not count. `variance` and
    `squares` are the sums of ``w^2 a^2 s (1 - s)`` and of ``w^2 a^2`` over W^2.
    """
    effect = design_effects(call, null, variance)
    null *= unit[:, :, None]
    return Cells(
        gap * unit, null, effect * variance * unit**2, effect * divide(squares, share) * unit,
        n[:, None] / effect, share * unit, hits * unit, norm, share, group, seed,
    )  # fmt: skip


def design_effects(call: Call, null: F64, variance: F64) -> Any:
    """Compute the design effects (K, B) of groups on cells, as replicates show them.

    Without replicates, and where these hardly vary, it is that on the number of hits.
    """
    if call.dependence is None:
        return 1.0
    effect = np.full(variance.shape, call.design_effect)
    drawn = null.var(axis=2) if null.size else np.zeros_like(variance)
    np.divide(drawn, variance, out=effect, where=(variance > 0) & (drawn > variance / 2))
    return np.maximum(effect, 1.0)


def count_of(call: Call, cells: int) -> int:
    """Return the number of replicates for so many cells."""
    return min(call.n_resamples, max(MIN_REPLICATES, MOST_GAPS // max(cells, 1)))


# --- bins -----------------------------------------------------------------------------------


def binned_cells(call: Call, binned: Binned, key: int = 0, *, has_noise: bool = True) -> Cells:
    """Compute the cells of a binned estimator; without noise they have no replicates."""
    data = rows_or_cells(call, "the interval")
    bins = binned.bins(data, kinds=(GAP, WEIGHT, SCORE))
    n_bins, total = bins.gap.shape[1], np.where(bins.total > 0, bins.total, 1.0)[:, None]
    count = count_of(call, bins.gap.size) if has_noise else 0
    model = NullModel(call, data, make_outcome_sums(binned, data, n_bins), key)
    variance, squares, all_squares = model.noise()
    hits = model.draw(0, count)
    share, group = bins.weight / total, np.arange(bins.gap.size).reshape(bins.gap.shape)
    null = (hits - bins.score[:, :, None]) / total[:, :, None]
    n = total[:, 0] ** 2 / np.where(all_squares[:, 0] > 0, all_squares[:, 0], 1.0)
    return make_cells(
        call, null, n, binned.norm, group, key, bins.gap / total, variance / total**2,
        squares / total**2, share, bins.score / total, bin_units(binned, bins, share),
    )  # fmt: skip


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


@dataclass(frozen=True)
class DensityHits(Statistic):
    """Weight of the hits in the cells of a density's grid, of each draw of labels."""

    mesh: Mesh
    nodes: int  # sums are filled up with zeros to so many

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> tuple[I32, F64]:  # noqa: ARG002
        """Share the rows of a sample, with their weights, among the cells."""
        return SharedRows(self.mesh, sample).shares

    def values(self, shares: tuple[I32, F64], draws: Counts) -> F64:
        """Compute weights (nodes, 32 G) for counts (G, 2 n, 32) of hits, then of misses."""
        n = shares[0].size
        step = max(1, MAX_SUMS // (2 * REPLICATES * self.nodes))
        kind, parts = np.zeros(n, np.uint8), []
        for begin in range(0, len(draws.c), step):
            hits = contiguous(draws.c[begin : begin + step, :n], np.uint8)
            out = np.zeros((len(hits), 2, self.nodes, REPLICATES))
            kernels.density.spread(hits, kind, *shares, out)
            parts.append(np.moveaxis(out[:, 0], 0, 1).reshape(self.nodes, -1))
        return np.concatenate(parts, axis=1)

    def noise(self, sample: Sample) -> F64:
        """Sum ``w^2 a s (1 - s)``, ``w^2 a`` and w a, with shares a: (3, nodes)."""
        s, v, out = sample.s, 1.0 if sample.v is None else sample.v, np.zeros((3, 2, self.nodes))
        kind = np.zeros(sample.n, np.uint8)
        weights = v * v * s * (1 - s), np.full_like(s, v * v), np.full_like(s, v)
        for w, sums in zip(weights, out, strict=True):
            add_rows(self.mesh, sample, kind, w, sums)
        return out[:, 0]


def density_cells(call: Call, kde: KDE, key: int) -> Cells:
    """Compute the cells of a density on its grid.

    Gaps are smoothed hits minus smoothed scores, which are equal where hits come true as often as
    the scores say. What the estimator itself takes off, the density times the score, is not.
    Problems with fewer points are filled up with zeros.
    """
    data, _ = scale_weights(call.models[0])
    plans = [kde.plan_of(data, k) for k in range(data.n_problems)]
    meshes: Any = [plan.mesh for plan in plans]
    points, nodes = (max(getattr(mesh, x) for mesh in meshes) for x in ("count", "n_nodes"))
    count = count_of(call, points * len(plans))
    sums = [DensityHits(mesh, nodes) for mesh in meshes]
    model = NullModel(call, data, sums, key)
    noise, hits = model.noise(), model.draw(0, count)
    columns, null = np.zeros((6, len(plans), points)), np.zeros((len(plans), points, count))
    group = np.zeros((len(plans), points), np.int64)
    total, squares = (data.n, data.n) if data.v is None else (data.v.sum(), data.v @ data.v)
    for k, (plan, mesh) in enumerate(zip(plans, meshes, strict=True)):
        own, inside = slice(mesh.count), slice(mesh.n_nodes)
        share, score = plan.expected_density().values[0, :, :, 0] * mesh.width
        gap = plan.density().values[0, 1, :, 0] * mesh.width - score
        variance, of_row = squared_noise(mesh, plan.bandwidth, noise[:2, k, inside]) / total**2
        columns[:, k, own] = gap, variance, of_row, share, score, point_units(kde, mesh, share)
        group[k, own] = k * points + np.floor(mesh.score / (WIDTH * plan.bandwidth))
        for begin in range(0, count, REPLICATES):
            lanes = slice(begin, begin + REPLICATES)
            drawn = smooth_hits(plan, noise[2, k, inside], hits[k, inside, lanes])
            null[k, own, lanes] = drawn - score[:, None]
    n = np.full(len(plans), total**2 / squares)
    return make_cells(call, null, n, kde.norm, group, key, *columns)


def smooth_hits(plan: DensityPlan, weight: F64, hits: F64) -> F64:
    """Smooth hits in cells (C, R) of rows with weights (C,) into points (G, R)."""
    # A lane of its own would be smoothed in another order.
    x = hits if hits.shape[1] > 1 else np.repeat(hits, 2, axis=1)
    mesh, cells = plan.mesh, np.stack([weight[:, None] - x, x])[None]
    h, out = np.full((1, x.shape[1]), plan.bandwidth), np.empty((1, 2, plan.mesh.count, x.shape[1]))
    mesh.densities(cells, h, out)
    return np.asarray(out[0, 1, :, : hits.shape[1]] * mesh.width[:, None])


def point_units(kde: KDE, mesh: Mesh, share: F64) -> F64:
    """Return the factors of the gaps of points that make the error their plain norm."""
    if kde.norm == 1:
        return np.ones_like(share)
    counts, power = share > EMPTY, 1 / kde.norm - 1
    if math.isinf(kde.norm):
        counts = is_supported(share / mesh.width, mesh.low, mesh.high)
    return np.power(share, power, out=np.zeros_like(share), where=counts)


def squared_noise(mesh: Mesh, bandwidth: float, noise: F64) -> F64:
    """Smooth noise of cells (2, C) by the squared kernel into points (2, G)."""
    cells = noise[None, :, :, None].copy()
    kernels.density.add_images(cells)
    out = np.empty((mesh.count, 2))
    taps = np.ascontiguousarray(mesh.taps(np.array([[bandwidth]]))[0, :, 0])
    kernels.density.squared_sums(taps, cells[0, :, :, 0].T.copy(), out)
    return np.maximum(out.T, 0.0)  # rounding
