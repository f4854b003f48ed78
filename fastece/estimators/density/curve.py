"""The calibration curve of kernel densities, and its replicates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.estimators.base import Statistic
from fastece.estimators.curve import Curve
from fastece.estimators.density.plan import DensityPlan, replicate_count, smooth_sums
from fastece.estimators.draws import Counts
from fastece.kernels.types import F64

# A curve has so many times as many points as its error needs: its pieces look smooth.
CURVE_FINENESS = 2.0


def density_curve(plan: DensityPlan, c: NDArray[Any] | None) -> Curve:
    """Compute the curve of a sample whose row i counts ``c[i]`` times, or once."""
    bandwidth = plan.bandwidth_of_counts(c)
    grid = plan.even_grid(bandwidth)
    sums = plan.sums_in_cells(grid, c)
    density, density_of_hits = smooth_sums(grid, sums, bandwidth)[0, :, :, 0].copy()
    supported = is_supported(density, plan.low, plan.high)
    probability = posterior(density, density_of_hits, grid.score, plan.low, plan.high)
    probability[~supported] = np.nan
    return Curve(
        score=grid.score.copy(),
        probability=probability,
        density=density,
        supported=supported,
        rows=np.minimum(plan.size, plan.size * density * grid.effective_width(bandwidth)),
        score_range=(plan.low, plan.high),
        bandwidth=bandwidth,
    )


@dataclass(frozen=True, eq=False)
class DensityCurve(Statistic):
    """The curve of a `KDE` at some scores (G,), as a statistic that is resampled."""

    kde: Any
    score: F64

    def prepare(self, sample: Any, size: int) -> DensityPlan:
        """Make a plan with grids that are fine enough to be interpolated."""
        plan: DensityPlan = self.kde.plan(sample, size, CURVE_FINENESS)
        return plan

    def values(self, plan: DensityPlan, draws: Counts) -> F64:
        """Compute the curve (G, R) of each of R replicates."""
        values = np.empty((self.score.size, replicate_count(draws)))
        for grid, density, replicates in plan.densities(draws):
            # Interpolate both densities on their grid, (blocks, 2, grid, lanes).
            place = np.interp(self.score, grid.score, np.arange(grid.count))
            left = place.astype(np.int64)
            right = np.minimum(left + 1, grid.count - 1)
            share = (place - left)[:, None]
            both = (1 - share) * density[:, :, left] + share * density[:, :, right]
            curve = posterior(both[:, 0], both[:, 1], self.score[:, None], plan.low, plan.high)
            lanes = curve.swapaxes(0, 1).reshape(self.score.size, -1)
            values[:, replicates] = lanes[:, : replicates.size]
        return values


def is_supported(density: F64, low: float, high: float) -> NDArray[np.bool_]:
    """Return where the density of scores is large enough for a hit rate."""
    return np.asarray(density >= kernels.density.SUPPORT / (high - low))


def posterior(f: F64, g: F64, score: F64, low: float, high: float) -> F64:
    """Compute ``P(y = 1 | s)`` from densities f and g, or s without support."""
    probability = np.broadcast_to(score, f.shape).copy()
    return np.asarray(np.divide(g, f, out=probability, where=is_supported(f, low, high)))
