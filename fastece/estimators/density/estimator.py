"""The density-based estimator of the calibration error."""

import math
from dataclasses import dataclass, replace
from functools import partial
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
from fastece.estimators.base import Parameters, check_width, values_of_problems
from fastece.estimators.curve import Curve
from fastece.estimators.density.curve import CURVE_FINENESS, DensityCurve, density_curve
from fastece.estimators.density.even import KINDS, check_cell_count, move_inside
from fastece.estimators.density.plan import DensityPlan, Grid, replicate_count
from fastece.estimators.draws import Counts, Draws, Rows
from fastece.kernels import GAUSSIAN
from fastece.kernels.types import F64, U8

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

    Raises
    ------
    ValueError, TypeError
        For a parameter outside its range; for a bandwidth that needs more than 2**22 points.

    Notes
    -----
    The integral is a sum over a grid that is as fine as the bandwidth needs: right to 1e-3 of the
    value plus 1e-6.

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

    native = (Counts, Rows)
    lowest = 0.0
    bounds_mean_gap = True

    checks: ClassVar = {
        "bandwidth": partial(check_width, word="silverman"),
        "kernel": partial(check_choice, choices=(*KINDS, "beta")),
        "norm": partial(check_real, low=1.0),
        "score_range": partial(check_range, names=("support", "unit")),
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
        kind = KINDS.get(self.kernel, GAUSSIAN)
        return REFINEMENT if math.isinf(self.norm) else kernels.density.REFINEMENT_OF_RATIOS[kind]

    # --- values

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a table; rows need not be sorted."""
        problems, _ = scale_weights(table)
        value = partial(self.value_of_problem, problems)
        return np.array(list(run(value, range(problems.n_problems))))

    def value_of_problem(self, problems: RowTable, k: int) -> float:
        """Compute the value of problem `k`, whose rows count once."""
        if self.kernel == "beta":
            grid, density = self.plan_of(problems, k).density()
            return float(self.norms(grid, density).item())
        s, y = problems.read_problem(k)
        low, high = self.range_of(problems)
        w = kernels.weights(problems.v)
        bandwidth = self.bandwidth
        if bandwidth == "silverman":
            n = float(problems.count())
            bandwidth = kernels.density.bandwidth_of_scores(s, w, low, high, n)
        return self.value_of_rows(s, y, w, low, high, bandwidth)

    def evaluate(self, plan: DensityPlan, c: NDArray[Any]) -> float:
        """Compute the value when row i of the sample counts ``c[i]`` times."""
        if self.kernel == "beta":
            grid, density = plan.density(c)
            return float(self.norms(grid, density).item())
        s = plan.sample.s
        y = plan.sample.y
        w = plan.counted_weights(c)
        return self.value_of_rows(s, y, w, plan.low, plan.high, plan.bandwidth_of_counts(c))

    def value_of_rows(
        self, s: F64, y: U8, w: F64, low: float, high: float, bandwidth: float
    ) -> float:  # fmt: skip
        """Compute the value of rows (n,), for a kernel that is reflected at the ends."""
        kind = KINDS[self.kernel]
        fineness = self.fineness
        if bandwidth < kernels.density.MIN_BANDWIDTH:  # from there on grids are small enough
            finest = bandwidth * 2 ** (-1 / kernels.density.LEVELS_PER_OCTAVE)
            needed = kernels.density.cells_needed(kind, fineness, high - low, finest)
            check_cell_count(bandwidth, needed)
        error: float = kernels.density.density_error(
            s, y, w, kind, fineness, low, high, bandwidth, self.norm
        )
        return error

    # --- resampling

    def plan(self, sample: Sample, size: int, fineness: float) -> DensityPlan:
        """Prepare a sample for draws of `size` rows; sorted, if its rows are drawn."""
        low, high = self.range_of(sample)
        scaled, _ = scale_weights(sample)
        rows = replace(scaled, s=move_inside(scaled.s, low, high))
        bandwidth = None if self.bandwidth == "silverman" else self.bandwidth
        return DensityPlan(self.kernel, bandwidth, low, high, fineness, rows, size)

    def plan_of(self, problems: RowTable, k: int) -> DensityPlan:
        """Prepare problem `k`, as it is, for values and densities of all rows."""
        return self.plan(problems.view(k), problems.count(), self.fineness)

    def prepare(self, sample: Sample, size: int) -> DensityPlan:
        """Prepare a sorted sample for draws of `size` rows."""
        return self.plan(sample, size, self.fineness)

    def values(self, plan: DensityPlan, draws: Draws) -> F64:
        """Compute the value (R,) of each replicate."""
        if isinstance(draws, Counts | Rows):
            return self.errors(plan, draws)
        return super().values(plan, draws)

    def errors(self, plan: DensityPlan, draws: Counts | Rows, h: F64 | None = None) -> F64:
        """Compute the value (R,) of each replicate, with given bandwidths or its own."""
        values = np.empty(replicate_count(draws))
        for grid, density, replicates in plan.densities(draws, h):
            errors = self.norms(grid, density).ravel()
            values[replicates] = errors[: replicates.size]
        return values

    def norms(self, grid: Grid, density: F64) -> F64:
        """Compute the values (L, W) of the densities (L, 2, G, W) of some replicates."""
        values = np.empty((density.shape[0], density.shape[3]))
        kernels.density.density_norms(
            density, grid.score, grid.width, grid.low, grid.high, self.norm, values
        )
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
        grid, density = self.prepare(sample, size).density(sample.c)
        hits = density[:, 1].copy()
        expected = grid.score[:, None] * density[:, 0]
        errors = []
        for hits_of_part in (hits, np.minimum(hits, expected), np.maximum(hits, expected)):
            density[:, 1] = hits_of_part
            errors.append(float(self.norms(grid, density).item()))
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
        """Compute the error for each of some bandwidths, of data that are read once.

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
        of_bandwidth = [values_of_problems(replace(self, bandwidth=x), table) for x in h.tolist()]
        values = np.stack(of_bandwidth, axis=1)
        if table.setting.per_class and average is None:
            return values
        return np.asarray(table.average(values))
