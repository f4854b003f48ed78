"""The density-based estimator: kernel densities of the scores and of the hits."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.errors import InputError
from fastece.checks.parameters import check_choice, check_range, check_real
from fastece.data.order import scale_weights
from fastece.data.sample import Sample
from fastece.estimators.base import Counts, Draws, Parameters, Rows
from fastece.estimators.density.beta import BetaMesh, even_beta_mesh, fitted_beta_mesh
from fastece.estimators.density.grid import SHAPES, Mesh, Shape, fitted_mesh, step_count
from fastece.estimators.density.plan import Copies, CountBlocks, DensityPlan, DrawnRows, Resamples
from fastece.typing import F64

AnyMesh = Mesh | BetaMesh

SILVERMAN, AUTO = "silverman", "auto"
# Where the density is less than this share of its mean over the range, nothing is said of hits.
SUPPORT = 0.01
# A maximum is looked for on a grid that is so many times as fine as an integral's.
REFINEMENT = 4.0


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

    def __post_init__(self) -> None:
        values: dict[str, Any] = {
            "bandwidth": positive_or("bandwidth", self.bandwidth, SILVERMAN),
            "kernel": check_choice("kernel", self.kernel, [*SHAPES, "beta"]),
            "norm": check_real("norm", self.norm, 1.0),
            "score_range": check_range("score_range", self.score_range, ("support", "unit")),
            "grid_step": positive_or("grid_step", self.grid_step, AUTO),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def mesh(self, sample: Sample, h: float, finer: float, even: bool) -> AnyMesh:
        """Make the grid for bandwidths of `h` or more; `even`: of evenly spaced points."""
        low, high = self.range_of(sample)
        shape, step = self._shape, self.grid_step
        count = None if isinstance(step, str) else step_count(low, high, step)
        if self.kernel != "beta":
            if count is None:
                return fitted_mesh(shape, low, high, h, finer)
            return Mesh(shape, low, high, count, cubic=False)
        if count is None and not even:
            return fitted_beta_mesh(low, high, h, finer)
        return even_beta_mesh(low, high, h, count or fitted_mesh(shape, 0.0, 1.0, h, finer).count)

    @property
    def _shape(self) -> Shape:
        """Kernel on even grids; beta kernels need grids as fine as a Gaussian does."""
        return SHAPES.get(self.kernel, SHAPES["gaussian"])

    @property
    def finer(self) -> float:
        """Fineness of the grid, relative to the needs of the norm 1."""
        return {1.0: 1.0, math.inf: REFINEMENT}.get(self.norm, self._shape.finer)

    def plan(self, sample: Sample, size: int, finer: float, even: bool = False) -> DensityPlan:
        """Prepare a sample with grids `finer` times as fine, or with one even grid."""
        sample, _ = scale_weights(sample)
        sample = replace(sample, s=sample.s.clip(*self.range_of(sample)))
        return DensityPlan(self, sample, size, finer, even)

    def prepare(self, sample: Sample, size: int) -> DensityPlan:
        """Prepare a sample for draws of `size` rows."""
        return self.plan(sample, size, self.finer)

    def evaluate(self, plan: DensityPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(self.errors(plan, Copies(c))[0])

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
        value = self.largest_gap if math.isinf(self.norm) else self.integral
        for mesh, density, lanes in plan.densities(resamples, h):
            out[lanes] = value(mesh, density).ravel()[: lanes.size]
        return out

    def integral(self, mesh: AnyMesh, density: F64) -> F64:
        """Integrate the error (L, W) over densities (L, 2, G, W) of scores and hits.

        ``(int |LCE|**p f ds)**(1/p)``.
        """
        out = np.empty((density.shape[0], density.shape[3]))
        kernels.density.integrate(
            density, mesh.score, mesh.width, mesh.low, mesh.high, self.norm, out
        )
        return out if self.norm == 1 else out ** (1.0 / self.norm)

    def largest_gap(self, mesh: AnyMesh, density: F64) -> F64:
        """Find the largest ``|LCE|`` (L, W) of densities (L, 2, G, W).

        Nan if nothing is supported.
        """
        # Up to the ends of the range densities are level, and the score goes on.
        score = np.concatenate([[mesh.low], mesh.score, [mesh.high]])[:, None]
        f, g = density[:, :, np.r_[0, : mesh.count, -1]].swapaxes(0, 1)
        gap = np.abs(posterior(f, g, score, mesh.low, mesh.high) - score)
        largest = np.where(is_supported(f, mesh.low, mesh.high), gap, -1.0).max(1)
        return np.where(largest < 0, np.nan, largest)

    def sweep(self, sample: Sample, size: int, bandwidths: F64) -> F64:
        """Compute the value of a sorted sample with each of some bandwidths.

        The sample is binned once; for beta kernels, whose grids depend on the bandwidth, once for
        all bandwidths that share a grid.
        """
        is_beta = self.kernel == "beta"
        h: Any = SILVERMAN if is_beta else float(bandwidths.min())
        plan = replace(self, bandwidth=h).plan(sample, size, self.finer, even=not is_beta)
        return self.errors(plan, Copies(sample.counts, bandwidths.size), bandwidths)


def is_supported(density: F64, low: float, high: float) -> NDArray[np.bool_]:
    """Return where the density of scores is large enough for a hit rate."""
    return np.asarray(density >= SUPPORT / (high - low))


def posterior(f: F64, g: F64, score: F64, low: float, high: float) -> F64:
    """Compute ``P(y = 1 | s)`` from densities f of the scores and g of the hits.

    `score` fits their shape. Where nothing is supported, the result is the score itself.
    """
    diagonal = np.broadcast_to(score, f.shape).copy()
    return np.asarray(np.divide(g, f, out=diagonal, where=is_supported(f, low, high)))


def positive_or(name: str, value: Any, word: str) -> Any:
    """Return a positive number, or the given word."""
    if isinstance(value, str):
        if value != word:
            raise InputError(name, f"must be {word!r} or a positive number", value=value)
        return word
    number = check_real(name, value, 0.0)
    if not 0 < number < math.inf:
        raise InputError(name, f"must be positive and finite, or {word!r}", value=value)
    return number
