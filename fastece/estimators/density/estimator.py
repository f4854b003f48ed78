"""The density-based estimator of the calibration error."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import as_real, refuse_where
from fastece.data.errors import InputError
from fastece.data.options import ReadingKeywords, reading_options, shows_options
from fastece.data.parameters import check_average, check_choice, check_range, check_real
from fastece.data.reading import read_table
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Parameters, check_width
from fastece.estimators.curve import Curve
from fastece.estimators.density.curve import CURVE_FINENESS, DensityCurve, density_curve
from fastece.estimators.density.mesh import SHAPES, check_cell_count
from fastece.estimators.density.plan import (
    Density,
    DensityPlan,
    move_inside,
    replicate_count,
    smooth_sums,
)
from fastece.estimators.density.rule import DensityRule, kernel_shape
from fastece.estimators.draws import Counts, Draws, Rows
from fastece.kernels.types import F64

# Up to this many rows one kernel computes a value, which finds the quartiles by a sort.
MAX_SORTED_ROWS = 2**14
# That kernel sums over up to this many cells on either side; a transform would win beyond.
MAX_SUMMED_TAPS = 128
# A maximum is searched on a grid this many times as fine as that of an integral.
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
        4)**(-1/5))`` of each problem, and of each replicate. A bandwidth of more than ten times
        the range counts as ten times the range.
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
    lowest = 0.0
    bounds_mean_gap = True

    checks: ClassVar = {
        "bandwidth": partial(check_width, word="silverman"),
        "kernel": partial(check_choice, choices=(*SHAPES, "beta")),
        "norm": partial(check_real, low=1.0),
        "score_range": partial(check_range, names=("support", "unit")),
        "grid_step": partial(check_width, word="auto"),
    }

    @property
    def largest(self) -> float:
        """The largest value: none for beta kernels, whose mass may be more than 1."""
        return math.inf if self.kernel == "beta" and self.norm < math.inf else 1.0

    @property
    def is_norm_of_gaps(self) -> bool:
        """Whether the value is a norm of gaps; a derived class may add up something else."""
        return type(self) is KDE and self.kernel != "beta"

    @property
    def fineness(self) -> float:
        """How many times as fine a grid has to be as errors of norm 1 need."""
        if self.norm == 1.0:
            return 1.0
        return REFINEMENT if math.isinf(self.norm) else kernel_shape(self.kernel).refinement

    def rule(self, problems: Sample | RowTable, fineness: float) -> DensityRule:
        """Return the rule of the densities of a problem, on grids of some fineness."""
        limits = self.range_of(problems)
        return DensityRule(self.bandwidth, self.kernel, self.grid_step, limits, fineness)

    # --- single values

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a table; rows need not be sorted."""
        problems, _ = scale_weights(table)
        if problems.n <= MAX_SORTED_ROWS and self._sums_few_taps:
            return self._values_of_arrays(problems)

        def value(k: int) -> float:
            return self.error(self.plan_of(problems, k).density())

        return np.array(list(run(value, range(problems.n_problems))))

    @cached_property
    def _sums_few_taps(self) -> bool:
        """Whether the kernel `density_errors` is fast for these parameters."""
        if self.kernel == "beta" or self.grid_step != "auto":
            return False
        return kernel_shape(self.kernel).reach * self._cells_per_bandwidth <= MAX_SUMMED_TAPS

    @cached_property
    def _cells_per_bandwidth(self) -> float:
        """Cells of an even grid for each bandwidth."""
        return self.fineness * kernel_shape(self.kernel).cells

    def _values_of_arrays(self, problems: RowTable) -> F64:
        """Compute the value (K,) of each problem by one kernel."""
        low, high = self.range_of(problems)
        bandwidth = 0.0  # by Silverman's rule
        if isinstance(self.bandwidth, float):
            bandwidth = self.bandwidth
            self._check_bandwidth(low, high)
        shape = kernel_shape(self.kernel)
        n = float(problems.count())
        kernel = shape.kind, shape.reach, self._cells_per_bandwidth
        parameters = (*kernel, low, high, bandwidth, n, self.norm)
        prob, label = problems.read()
        weight = kernels.weights(problems.v)
        values = np.empty(problems.n_problems)
        kernels.density.density_errors(prob, label, weight, parameters, values)
        return values

    def _check_bandwidth(self, low: float, high: float) -> None:
        """Refuse a bandwidth whose grid has too many cells, at the finest that it may be."""
        assert isinstance(self.bandwidth, float)
        finest = self.bandwidth * 2 ** (-1 / kernels.density.LEVELS_PER_OCTAVE)
        count = self._cells_per_bandwidth * (high - low) / finest
        check_cell_count("bandwidth", self.bandwidth, count)

    # --- resampling

    def plan(self, sample: Sample, size: int, fineness: float) -> DensityPlan:
        """Prepare a sorted sample for draws of `size` rows."""
        rule = self.rule(sample, fineness)
        return DensityPlan(rule, move_inside(scale_weights(sample)[0], *rule.limits), size)

    def plan_of(self, problems: RowTable, k: int) -> DensityPlan:
        """Prepare problem `k`, as it is, for values and densities of all rows."""
        is_single = problems.n_problems == 1 and problems.v is None
        rows = problems if is_single else problems.view(k)
        return DensityPlan(self.rule(problems, self.fineness), rows, problems.count())

    def prepare(self, sample: Sample, size: int) -> DensityPlan:
        """Prepare a sorted sample for draws of `size` rows."""
        return self.plan(sample, size, self.fineness)

    def evaluate(self, plan: DensityPlan, c: NDArray[Any]) -> float:
        """Compute the value when row i of the sample counts ``c[i]`` times."""
        return self.error(plan.density(c))

    def values(self, plan: DensityPlan, draws: Draws) -> F64:
        """Compute the value (R,) of each replicate."""
        if isinstance(draws, Counts | Rows):
            return self.errors(plan, draws)
        return super().values(plan, draws)

    def errors(self, plan: DensityPlan, draws: Counts | Rows, h: F64 | None = None) -> F64:
        """Compute the value (R,) of each replicate, with given bandwidths or its own."""
        values = np.empty(replicate_count(draws))
        for mesh, density, replicates in plan.densities(draws, h):
            errors = self.norms(Density(mesh, density)).ravel()
            values[replicates] = errors[: replicates.size]
        return values

    def error(self, density: Density) -> float:
        """Compute the value of the densities of one replicate."""
        return float(self.norms(density).item())

    def norms(self, density: Density) -> F64:
        """Compute the values (L, W) of the densities (L, 2, G, W) of some replicates."""
        values = np.empty((density.values.shape[0], density.values.shape[3]))
        kernels.density.density_norms(density.values, density.mesh.points, self.norm, values)
        return values

    # --- curves

    def curve(
        self, ordered: Sample, size: int, confidence_level: float = 0.95, effect: float = 1.0,  # noqa: ARG002
    ) -> Curve:  # fmt: skip
        """Compute the curve of a sorted sample of `size` rows, without a band."""
        return density_curve(self.plan(ordered, size, CURVE_FINENESS), ordered.c)

    def curve_statistic(self, score: F64) -> DensityCurve:
        """Return the curve at some scores (G,) as a statistic that is resampled."""
        return DensityCurve(self, score)

    def bandwidths(self, table: RowTable) -> F64:
        """Compute the bandwidth (K,) of each problem of a table."""
        bandwidths = []
        for sample in table.seen_by(self).samples(reads_only=True):
            ordered = sample.sorted()
            plan = self.prepare(ordered, table.count())
            bandwidths.append(plan.bandwidth_of_counts(ordered.c))
        return np.array(bandwidths)

    # --- direction

    def parts(self, table: RowTable) -> F64:
        """Compute the error, its over part and its under part (3, K) of each problem."""
        parts = [self.parts_of_sample(sample, table.count()) for sample in table.samples()]
        return np.transpose(parts)

    def parts_of_sample(self, sample: Sample, size: int) -> F64:
        """Compute the error of a sample, its over part and its under part (3,)."""
        density = self.prepare(sample, size).density(sample.c)
        hits = density.values[:, 1].copy()
        expected = density.mesh.score[:, None] * density.values[:, 0]
        errors = []
        for hits_of_part in (hits, np.minimum(hits, expected), np.maximum(hits, expected)):
            density.values[:, 1] = hits_of_part
            errors.append(self.error(density))
        error, over, under = errors
        larger = max(over, under)
        if not larger > 0:
            return np.array([error, over * error, under * error])
        # Between two points of which one is over and one under, the quadrature of the error knows
        # where the gap is 0, and the quadrature of a part does not. So the parts are scaled to add
        # up.
        norm_of_parts = larger * float(np.linalg.norm(np.array([over, under]) / larger, self.norm))
        return np.array([error, over * error / norm_of_parts, under * error / norm_of_parts])

    # --- several bandwidths

    @shows_options
    def bandwidth_sweep(
        self, y_true: Any, y_prob: Any = None, bandwidths: Any = (), *, average: Any = "macro",
        **options: Unpack[ReadingKeywords],
    ) -> F64:  # fmt: skip
        """Compute the error for each of some bandwidths, in little more time than for one.

        Scores are shared among the cells of a grid once for all bandwidths, and with beta kernels
        once for each.

        Parameters
        ----------
        y_true, y_prob, average, **options
            As in `fastece.ece`: arrays or an `Accumulator`, and how to read them.
        bandwidths : (H,) array_like of float
            Standard deviations of the kernel, greater than 0. The estimator's own bandwidth is not
            used.

        Returns
        -------
        (H,) float64 array, or (K, H) for the classes with ``average=None``

        Raises
        ------
        ValueError, TypeError
            As in `fastece.ece`; for a bandwidth that is not positive and finite.

        Examples
        --------
        >>> import numpy as np
        >>> from fastece import KDE
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(500)
        >>> y = rng.random(500) < p
        >>> print(KDE().bandwidth_sweep(y, p, [0.01, 0.05, 0.2]).round(3))
        [0.075 0.028 0.035]
        """
        check_average(average)
        h = np.asarray(as_real("bandwidths", bandwidths), np.float64)
        if h.ndim != 1 or not h.size:
            raise InputError("bandwidths", f"must be a list of numbers, got shape {h.shape}")
        rule = "must be positive and finite"
        refuse_where("bandwidths", rule, h, lambda x: ~((x > 0) & (x < np.inf)))
        table = read_table(y_true, y_prob, reading_options(options))
        samples = table.seen_by(self).samples()
        values = np.array(
            [self.sweep(sample.sorted(), table.size(k), h) for k, sample in enumerate(samples)]
        )
        if table.setting.per_class and average is None:
            return values
        return np.asarray(table.average(values))

    def sweep(self, sample: Sample, size: int, bandwidths: F64) -> F64:
        """Compute the value (H,) of a sorted sample with each of some bandwidths.

        The rows are shared among cells once, or for beta kernels once for each bandwidth.
        """
        if self.kernel == "beta":
            plan = replace(self, bandwidth="silverman").prepare(sample, size)
            meshes = [plan.mesh_of_bandwidth(h) for h in bandwidths.tolist()]
            sums = [plan.sums_in_cells(mesh, sample.c) for mesh in meshes]
        else:
            plan = self.prepare(sample, size)
            mesh = plan.rule.even_mesh(float(bandwidths.min()))
            meshes = [mesh] * bandwidths.size
            sums = [plan.sums_in_cells(mesh, sample.c)] * bandwidths.size
        densities = map(smooth_sums, meshes, sums, bandwidths.tolist())
        return np.array([self.error(density) for density in densities])
