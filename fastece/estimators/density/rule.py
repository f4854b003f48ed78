"""The rule of a density: the parameters that decide it, and its grids."""

from dataclasses import dataclass
from typing import Literal

from fastece import kernels
from fastece.estimators.density.beta import (
    LEVELS_PER_OCTAVE,
    BetaMesh,
    even_beta_mesh,
    fitted_beta_mesh,
)
from fastece.estimators.density.mesh import SHAPES, Mesh, Shape, check_cell_count, fitted_mesh

AnyMesh = Mesh | BetaMesh


def kernel_shape(kernel: str) -> Shape:
    """Return the shape of a kernel; beta kernels have the even grids of a Gaussian."""
    return SHAPES["gaussian" if kernel == "beta" else kernel]


@dataclass(frozen=True)
class DensityRule:
    """Parameters that decide the density of a problem, whatever the norm.

    Parameters
    ----------
    bandwidth, kernel, grid_step
        As of `KDE`.
    limits : (float, float)
        The range of the density.
    fineness : float
        How many times as fine grids are as errors of norm 1 need.
    """

    bandwidth: float | Literal["silverman"]
    kernel: str
    grid_step: float | Literal["auto"]
    limits: tuple[float, float]
    fineness: float

    @property
    def levels_per_octave(self) -> int:
        """Number of grids for each doubling of the bandwidth; 0: one grid for all of them."""
        if self.kernel == "beta":
            return 0 if isinstance(self.bandwidth, float) else LEVELS_PER_OCTAVE
        return kernels.density.LEVELS_PER_OCTAVE if self.grid_step == "auto" else 0

    def fitted_mesh(self, h: float) -> AnyMesh:
        """Make the grid on which bandwidths from `h` up to the next level are right."""
        if self.kernel == "beta" and self.grid_step == "auto":
            return fitted_beta_mesh(*self.limits, h, self.fineness)
        return self.even_mesh(h)

    def even_mesh(self, h: float) -> AnyMesh:
        """Make a grid of evenly spaced points for bandwidths of `h` or more."""
        low, high = self.limits
        step = self.grid_step
        shape = kernel_shape(self.kernel)
        if isinstance(step, float):  # rounded to a fraction of the range
            count = max(1, round(check_cell_count("grid_step", step, (high - low) / step)))
        elif self.kernel == "beta":
            count = fitted_mesh(shape, 0.0, 1.0, h, self.fineness).count
        else:
            return fitted_mesh(shape, low, high, h, self.fineness)
        if self.kernel == "beta":
            return even_beta_mesh(low, high, h, count)
        return Mesh(shape, low, high, count, cubic=False)
