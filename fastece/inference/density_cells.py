"""The cells of densities: points of their grids."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.samples import Sample, scale_weights
from fastece.estimators.base import Statistic
from fastece.estimators.binned.replicates import MAX_SUMS
from fastece.estimators.density.curve import is_supported
from fastece.estimators.density.estimator import KDE
from fastece.estimators.density.even import EvenGrid, add_images
from fastece.estimators.density.plan import DensityPlan, add_rows, share_rows
from fastece.estimators.draws import Counts, columns
from fastece.inference.binned_cells import power_where
from fastece.inference.cells import CellSums, GapCells, limit_replicates, make_cells
from fastece.kernels import EMPTY, REPLICATES
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.call import Call
from fastece.resampling.engine import ranges
from fastece.resampling.outcome_sums import NullModel

# Points of a density so many bandwidths apart have no row in common.
BANDWIDTHS_APART = 3.5


@dataclass(frozen=True)
class DensityOutcomes(Statistic):
    """Weight of the outcomes 1 in the cells of a grid, for each draw of labels.

    Attributes
    ----------
    grid : EvenGrid
    nodes : int
        Sums are filled up with zeros to so many cells, as other problems have more.
    """

    grid: EvenGrid
    nodes: int

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> tuple[I32, F64]:  # noqa: ARG002
        """Share the rows of a sample, with their weights, among the cells."""
        return share_rows(self.grid, sample)

    def values(self, shares: tuple[I32, F64], draws: Counts) -> F64:
        """Compute weights (nodes, 32 G) for the counts (G, 2 n, 32) of `LabelDraws`."""
        cells, shares_of_cells = shares
        n = cells.size
        one_kind = np.zeros(n, np.uint8)
        step = max(1, MAX_SUMS // (2 * REPLICATES * self.nodes))
        weights = []
        for start, end in ranges(0, len(draws.c), step):
            ones = contiguous(draws.c[start:end, :n], np.uint8)
            sums = np.zeros((len(ones), 2, self.nodes, REPLICATES))
            kernels.density.spread(ones, one_kind, cells, shares_of_cells, sums)
            weights.append(np.moveaxis(sums[:, 0], 0, 1).reshape(self.nodes, -1))
        return np.concatenate(weights, axis=1)

    def of_table(self, sample: Sample, hits: NDArray[Any]) -> F64:
        """Compute weights (nodes, 32 G) of hits (G, n, 32), copies with the outcome 1."""
        one_kind = np.zeros(sample.n, np.uint8)
        weights = np.zeros((len(hits) * REPLICATES, 2, self.nodes))
        for sums, hits_of_replicate in zip(weights, columns(hits), strict=True):
            w = sample.weights * hits_of_replicate
            add_rows(self.grid, sample.s, one_kind, w, sums)
        return weights[:, 0].T.copy()

    def noise(self, sample: Sample) -> F64:
        """Sum ``w^2 a s (1 - s)``, ``w^2 a`` and w a, with shares a: (3, nodes)."""
        s = sample.s
        weight = sample.total_weights
        square = weight * sample.weights
        one_kind = np.zeros(sample.n, np.uint8)
        sums = np.zeros((3, 2, self.nodes))
        add_rows(self.grid, s, one_kind, square * s * (1 - s), sums[0])
        add_rows(self.grid, s, one_kind, square, sums[1])
        add_rows(self.grid, s, one_kind, weight, sums[2])
        return sums[:, 0]


def density_cells(call: Call, kde: KDE, key: int) -> GapCells:
    """Compute the cells of a density on its grid.

    Gaps are smoothed outcomes minus smoothed scores, which are equal where outcomes are 1 as often
    as the scores say. The estimator itself takes off the density times the score: the difference
    is a bias, which calibrated labels have too. Problems with fewer points are filled up with
    zeros.
    """
    table = call.tables[0]
    if table.c is not None:
        data, _ = scale_weights(table)
        n_effective = data.n_effective
        # Weights of all copies give the densities of the repeated rows.
        samples = [replace(x, v=x.total_weights, c=None).sorted() for x in data.samples()]
        plans: list[Any] = [kde.prepare(sample, data.count()) for sample in samples]
        total = float(data.total_weights.sum())
    else:
        data, _ = scale_weights(call.models[0])
        n_effective = data.n_effective
        plans = [kde.plan_of(data, k) for k in range(data.n_problems)]
        total = float(data.n if data.v is None else data.v.sum())
    n_points = max(plan.grid.count for plan in plans)
    n_nodes = max(plan.grid.n_nodes for plan in plans)
    n_replicates = limit_replicates(call, n_points * len(plans))
    model = NullModel(call, data, [DensityOutcomes(plan.grid, n_nodes) for plan in plans], key)
    noise = model.noise()
    drawn = model.draw(0, n_replicates)

    shape = (len(plans), n_points)
    gap, variance, row_squares, share, score, unit, bias = np.zeros((7, *shape))
    null = np.zeros((*shape, n_replicates))
    group = np.zeros(shape, np.int64)
    for k, plan in enumerate(plans):
        grid = plan.grid
        points = slice(grid.count)
        nodes = slice(grid.n_nodes)
        share[k, points], score[k, points] = point_sums(*plan.expected_density())
        _, ones = point_sums(*plan.density())
        gap[k, points] = ones - score[k, points]
        smoothed = squared_noise(grid, plan.bandwidth, noise[:2, k, nodes]) / total**2
        variance[k, points], squares_of_shares = smoothed
        row_squares[k, points] = squares_of_shares
        bias[k, points] = score[k, points] - share[k, points] * grid.score
        unit[k, points] = point_units(kde, grid, share[k, points])
        group[k, points] = k * n_points + point_groups(plan)
        weight = noise[2, k, nodes]
        for start, end in ranges(0, n_replicates, REPLICATES):
            outcomes = smooth_outcomes(plan, weight, drawn[k, nodes, start:end])
            null[k, points, start:end] = outcomes - score[k, points, None]
    n = np.full(len(plans), n_effective)
    sums = CellSums(
        gap=gap,
        null=null,
        variance=variance,
        squares=row_squares,
        share=share,
        score=score,
        group=group,
        n=n,
        bias=bias,
    )
    return make_cells(call, sums, unit, kde.norm, key)


def point_sums(grid: EvenGrid, density: F64) -> tuple[F64, F64]:
    """Return weights and outcomes 1 (G,) at the points of densities (1, 2, G, 1)."""
    weight, ones = density[0, :, :, 0] * grid.width
    return weight, ones


def point_groups(plan: DensityPlan) -> I64:
    """Return the numbers (G,) of points; points with another number share no rows."""
    return np.floor(plan.grid.score / (BANDWIDTHS_APART * plan.bandwidth)).astype(np.int64)


def smooth_outcomes(plan: DensityPlan, weight: F64, ones: F64) -> F64:
    """Smooth outcomes in cells (C, R) of rows with weights (C,) into points (G, R)."""
    grid = plan.grid
    cells = np.stack([weight[:, None] - ones, ones])[None]
    bandwidths = np.full((1, ones.shape[1]), plan.bandwidth)
    densities = np.empty((1, 2, grid.count, ones.shape[1]))
    grid.densities(cells, bandwidths, densities)
    return np.asarray(densities[0, 1] * grid.width[:, None])


def point_units(kde: KDE, grid: EvenGrid, share: F64) -> F64:
    """Return the factors (G,) of gaps that make the error their plain norm."""
    if kde.norm == 1:
        return np.ones_like(share)
    if math.isinf(kde.norm):
        return power_where(share, -1.0, is_supported(share / grid.width, grid.low, grid.high))
    return power_where(share, 1 / kde.norm - 1, share > EMPTY)


def squared_noise(grid: EvenGrid, bandwidth: float, noise: F64) -> F64:
    """Smooth noise of cells (2, C) by the squared kernel into points (2, G).

    A cell and all its images have a share at a point each. These are added up before the sum is
    squared.
    """
    from scipy.sparse import csr_array

    ghosts = kernels.density.GHOSTS
    cells = noise[None, :, :, None].copy()
    add_images(cells)
    taps = grid.taps(np.array([[bandwidth]]))[0, :, 0]
    distances = np.arange(1 - taps.size, taps.size)
    places = (np.arange(grid.count)[:, None] + distances) % (2 * grid.count)
    cell_of_tap = np.minimum(places, 2 * grid.count - 1 - places)
    taps_of_point = np.tile(taps[np.abs(distances)], grid.count)
    begins = np.arange(grid.count + 1) * distances.size
    shares = csr_array((taps_of_point, cell_of_tap.ravel(), begins), (grid.count, grid.count))
    shares.sum_duplicates()
    smoothed = shares.power(2) @ cells[0, :, ghosts:-ghosts, 0].T
    return np.asarray(np.maximum(smoothed.T, 0.0))  # rounding may leave less
