"""The density-based estimator: kernel densities of the scores and of the hits."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.inputs.validation import check_choice, check_range, check_real, known, plain
from fastece.kde.bandwidth import SMALLEST, Scores, drawn_spreads, scores_of, silverman
from fastece.kde.beta import fitted_beta_mesh, stepped_beta_mesh
from fastece.kde.grid import SHAPES, Mesh, Placed, PlacedLater, fitted_mesh, stepped_cells
from fastece.kernels import REPLICATES as BLOCK
from fastece.problems.order import order_rows, scale_weights
from fastece.problems.problems import Problems
from fastece.protocol import Sample

__all__ = ["KDE", "Plan", "is_supported", "posterior"]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
Rows = Placed | PlacedLater
Lanes = NDArray[np.intp]
# What is found of the densities (L, 2, G, W) of scores and hits on a mesh: (..., L, W) values.
Measure = Callable[[Any, F64], F64]
# Adds the rows of the replicates with the numbers (L, W) up in the cells (L, 2, C, W).
Spread = Callable[[Rows, Lanes, F64], None]

SILVERMAN, AUTO = "silverman", "auto"
# Where the density is less than this share of its mean over the range, nothing is said of hits.
SUPPORT = 0.01
# Sums that are smoothed at once: 0.25 MB.
MAX_SUMS = 2**15
# Sums beyond which fewer replicates are taken side by side: 64 MB.
MOST_SUMS, FEW_LANES = 2**23, 2
# Grids fit bandwidths from ``0.0003 * 2**(k / 4)`` on, so they are up to 1.2 times too fine.
LEVELS = 4
# A maximum is looked for on a grid that is so many times as fine as an integral's.
FINER = 4.0


@dataclass(frozen=True)
class Plan:
    """What `KDE` needs of one sample and one size.

    Attributes
    ----------
    kde : KDE
    sample : Sample
        Sorted, its scores moved into the range.
    size : int
        Rows per draw.
    finer : float
        How many times finer grids are than errors need.
    levels : bool
        Replicates of smaller bandwidths have finer grids; else all have the same, of evenly spaced
        points, which fits the bandwidth of the sample.
    """

    kde: "KDE"
    sample: Sample
    size: int
    finer: float = 1.0
    levels: bool = True
    meshes: dict[int | None, tuple[Any, Rows]] = field(default_factory=dict, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**state, "meshes": {}}

    @cached_property
    def centre(self) -> float:
        """The mean of the scores."""
        return float(np.average(self.sample.s, weights=self.sample.v))

    @cached_property
    def scores(self) -> Scores:
        """Rows as Silverman's rule reads them."""
        low, high = self.kde.range_of(self.sample)
        return scores_of(order_rows(self.sample, low, high), self.centre)

    @cached_property
    def bandwidth(self) -> float:
        """The bandwidth when every row counts once."""
        return float(self.bandwidths(1, lambda: self.scores.of_weights(np.ones(self.sample.n)))[0])

    def bandwidths(self, count: int, spreads: Callable[[], F64]) -> F64:
        """The bandwidth of each of some replicates: given, or from their spreads."""
        if isinstance(self.kde.bandwidth, float):
            return np.full(count, self.kde.bandwidth)
        return silverman(spreads(), self.size)

    def mesh(self, level: int | None) -> tuple[Any, Rows]:
        """The grid of a level, with the rows in it; None: the only one."""
        if level not in self.meshes:
            h = self.bandwidth if level is None else SMALLEST * 2.0 ** (level / LEVELS)
            mesh = self.kde.mesh(self.sample, h, self.finer, even=not self.levels)
            self.meshes[level] = mesh, mesh.place(self.sample)
        return self.meshes[level]

    def groups_of(self, h: F64) -> Iterator[tuple[Any, Rows, Lanes]]:
        """Which replicates have which grid, so that a grid depends on the bandwidth alone."""
        levels = np.zeros(h.size)
        # Beta kernels have nodes that fit the bandwidth, whatever the points are.
        is_fitted = self.levels and (self.kde.grid_step == AUTO or self.kde.kernel == "beta")
        if is_fitted:
            levels = np.floor(LEVELS * np.log2(h / SMALLEST) + 1e-9)
        for level in np.unique(levels):
            mine = np.flatnonzero(levels == level)
            mesh, placed = self.mesh(int(level) if is_fitted else None)
            for group in mesh.groups(h[mine]):
                yield mesh, placed, mine[group]

    def values(self, h: F64, spread: Spread, measure: Measure) -> F64:
        """What is measured (..., R) of replicates with bandwidths (R,)."""
        return measured(self.groups_of(h), h, spread, measure)

    def of_weights(self, c: NDArray[Any], measure: Measure) -> F64:
        """What is measured (..., 1) when row i counts ``c[i]`` times."""
        h = self.bandwidths(1, lambda: self.scores.of_weights(c))
        lane = np.ascontiguousarray(c, np.float64).reshape(1, -1, 1)

        def spread(placed: Rows, _: Lanes, cells: F64) -> None:
            placed.spread(lane, cells)

        return self.values(h, spread, measure)

    def of_blocks(self, c: NDArray[np.uint8], measure: Measure) -> F64:
        """What is measured (..., 32 G) of replicates with multiplicities (G, n, 32)."""
        c = plain(c, np.uint8)
        if c.shape[1:] != (self.sample.n, BLOCK):  # kernels do not look
            raise ValueError(
                f"c: must have {self.sample.n} rows of {BLOCK} multiplicities, got {c.shape[1:]}"
            )

        def spread(placed: Rows, lanes: Lanes, cells: F64) -> None:
            first = lanes[0, 0]
            mine = c[first // BLOCK : first // BLOCK + len(lanes)]
            in_order = (lanes.ravel() == first + np.arange(lanes.size)).all()
            if lanes.shape[1] != BLOCK or first % BLOCK or not in_order:
                mine = np.empty((len(lanes), self.sample.n, lanes.shape[1]), np.uint8)
                kernels.density.gather_lanes(c, lanes.ravel(), mine)
            placed.spread(mine, cells)

        h = self.bandwidths(len(c) * BLOCK, lambda: self.scores.of_blocks(c))
        return self.values(h, spread, measure)

    def drawn_bandwidths(self, rows: I32) -> F64:
        """The bandwidth (R,) of each of some draws, as lists of rows (R, size)."""

        def spreads() -> F64:
            ordered, v = np.sort(plain(rows, np.int32), axis=1), self.sample.v
            u, w = self.sample.s[ordered], None if v is None else v[ordered]
            return drawn_spreads(u, w, self.centre, *self.kde.range_of(self.sample))

        return self.bandwidths(len(rows), spreads)

    def of_rows(self, rows: I32, h: F64, measure: Measure) -> F64:
        """What is measured (..., R) of drawn rows (R, size) with bandwidths (R,)."""
        rows = plain(rows, np.int32)

        def spread(placed: Rows, lanes: Lanes, cells: F64) -> None:
            placed.spread_rows(rows[lanes], cells)

        return self.values(h, spread, measure)


def measured(
    groups: Iterable[tuple[Any, Rows, Lanes]], h: F64, spread: Spread, measure: Measure
) -> F64:
    """What is measured (..., R) of the densities with bandwidths (R,) of replicates.

    `groups` says which of them have which grid, and `spread` adds their rows up there, some lanes
    at a time.
    """
    parts, order = [], []
    for mesh, placed, mine in groups:
        is_large = 2 * mesh.n_nodes * BLOCK > MOST_SUMS
        width = min(FEW_LANES if is_large else BLOCK, mine.size)
        # The last part is filled up with its first replicates.
        whole = np.resize(mine, (-(-mine.size // width), width))
        step = min(len(whole), max(1, MAX_SUMS // (2 * mesh.n_nodes * width)))
        cells = np.empty((step, 2, mesh.n_nodes, width))
        density = np.empty((step, 2, mesh.count, width))
        for begin in range(0, len(whole), step):
            lanes = whole[begin : begin + step]
            spread(placed, lanes, cells[: len(lanes)])
            mesh.densities(cells[: len(lanes)], h[lanes], density[: len(lanes)])
            found = measure(mesh, density[: len(lanes)])
            parts.append(found.reshape(*found.shape[:-2], -1))
        order.append(whole.ravel())
    _, first = np.unique(np.concatenate(order), return_index=True)
    return np.concatenate(parts, axis=-1)[..., first]


@dataclass(frozen=True)
class KDE:
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

    needs_sorted = True

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

    def __str__(self) -> str:
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name == "bandwidth" or getattr(self, field.name) != field.default
        ]
        return f"KDE({', '.join(shown)})"

    def range_of(self, problems: Problems | Sample) -> tuple[float, float]:
        """The range of the density."""
        if self.score_range == "unit":
            return 0.0, 1.0
        if self.score_range == "support":
            return problems.low, problems.high
        return self.score_range

    def mesh(self, sample: Sample, h: float, finer: float, even: bool) -> Any:
        """The grid for bandwidths of `h` or more; `even`: of evenly spaced points."""
        low, high = self.range_of(sample)
        step = self.grid_step
        stepped = None if isinstance(step, str) else stepped_cells(low, high, step)
        if self.kernel == "beta":
            exact = None if isinstance(self.bandwidth, str) else self.bandwidth
            if even and stepped is None:
                stepped = fitted_mesh(SHAPES["gaussian"], 0.0, 1.0, h, finer).count
            if stepped is None:
                return fitted_beta_mesh(low, high, h, finer, exact)
            return stepped_beta_mesh(low, high, h, stepped, exact)
        shape = SHAPES[self.kernel]
        if stepped is None:
            return fitted_mesh(shape, low, high, h, finer)
        return Mesh(shape, low, high, stepped, cubic=False)

    def prepare(self, sample: Sample, size: int) -> Plan:
        """What the other methods need, for draws of `size` rows."""
        return self.plan(sample, size, self.finer)

    @property
    def finer(self) -> float:
        """How many times as fine grids are as the error with the norm 1 needs."""
        if self.norm == 1:
            return 1.0
        if math.isinf(self.norm):
            return FINER
        return SHAPES[self.kernel].finer if self.kernel in SHAPES else 1.0

    def plan(self, sample: Sample, size: int, finer: float, levels: bool = True) -> Plan:
        """A plan with grids that are some times as fine as errors need."""
        return Plan(self, self.placed(sample), size, finer, levels)

    def placed(self, sample: Sample) -> Sample:
        """A sample with its scores moved into the range, and weights that can be added up."""
        sample, _ = scale_weights(sample)
        return replace(sample, s=sample.s.clip(*self.range_of(sample)))

    def evaluate(self, plan: Plan, c: NDArray[Any]) -> float:
        """The value when row i of the sample counts ``c[i]`` times."""
        return float(plan.of_weights(c, self.values)[0])

    def block(self, plan: Plan, c: NDArray[np.uint8]) -> F64:
        """`evaluate` for each column of `c` (n, 32)."""
        return self.blocks(plan, c[None])

    def blocks(self, plan: Plan, c: NDArray[np.uint8]) -> F64:
        """`evaluate` for each of the 32 G columns of `c` (G, n, 32)."""
        return plan.of_blocks(c, self.values)

    def subsets(self, plan: Plan, rows: I32) -> F64:
        """The value of the drawn rows in each line of `rows` (R, size)."""
        return plan.of_rows(rows, plan.drawn_bandwidths(rows), self.values)

    def values(self, mesh: Any, density: F64) -> F64:
        """The values (L, W) from densities (L, 2, G, W) of scores and of hits."""
        if math.isinf(self.norm):
            gap = np.abs(posterior(mesh, density) - mesh.score[:, None])
            # Up to the ends of the range densities are level, and the score goes on.
            gap[:, 0] = np.maximum(gap[:, 0], np.abs(gap_at(mesh, density, 0, mesh.low)))
            gap[:, -1] = np.maximum(gap[:, -1], np.abs(gap_at(mesh, density, -1, mesh.high)))
            largest = np.where(is_supported(mesh, density[:, 0]), gap, -1.0).max(1)
            return np.where(largest < 0, np.nan, largest)
        out = np.empty((density.shape[0], density.shape[3]))
        kernels.density.integrate(
            density, mesh.score, mesh.width, mesh.low, mesh.high, self.norm, out
        )
        return out if self.norm == 1 else out ** (1.0 / self.norm)

    def sweep(self, sample: Sample, bandwidths: F64) -> F64:
        """The values with each of some bandwidths, of a sorted sample that is binned once; for beta
        kernels, whose points and nodes depend on the bandwidth, once for those that share them."""
        plan = replace(self, bandwidth="silverman").prepare(sample, sample.n)
        groups: Iterable[tuple[Any, Rows, Lanes]] = plan.groups_of(bandwidths)
        if self.kernel != "beta":
            mesh = self.mesh(plan.sample, float(bandwidths.min()), self.finer, even=False)
            placed = mesh.place(plan.sample)
            groups = [(mesh, placed, lanes) for lanes in mesh.groups(bandwidths)]
        once = np.ones((1, sample.n, 1))
        binned: dict[int, F64] = {}

        def spread(placed: Rows, _: Lanes, cells: F64) -> None:
            if id(placed) not in binned:
                binned.clear()
                binned[id(placed)] = np.empty((1, *cells.shape[1:3], 1))
                placed.spread(once, binned[id(placed)])
            cells[:] = binned[id(placed)]

        return measured(groups, bandwidths, spread, self.values)

    def bandwidths(self, problems: Problems) -> F64:
        """The bandwidth (K,) that is used for each problem."""
        samples = (problems.sample(k).sorted() for k in range(problems.n_problems))
        return np.array([self.prepare(sample, sample.n).bandwidth for sample in samples])


def is_supported(mesh: Any, density: F64) -> NDArray[np.bool_]:
    """Where a density of scores is one to speak of."""
    return np.asarray(density >= SUPPORT / (mesh.high - mesh.low))


def posterior(mesh: Any, density: F64) -> F64:
    """``P(y = 1 | s)`` (L, G, W): the score itself where nothing is supported."""
    f, g = density[:, 0], density[:, 1]
    score = np.broadcast_to(mesh.score[:, None], f.shape)
    return np.asarray(np.divide(g, f, out=score.copy(), where=is_supported(mesh, f)))


def gap_at(mesh: Any, density: F64, point: int, score: float) -> F64:
    """``P(y = 1 | s)`` at a point of a grid minus a score, (L, W); 0 where nothing is supported."""
    f, g = density[:, 0, point], density[:, 1, point]
    return np.asarray(
        np.divide(g, f, out=np.full(f.shape, score), where=is_supported(mesh, f)) - score
    )


def positive_or(name: str, value: Any, word: str) -> Any:
    """A positive number, or a word."""
    if isinstance(value, str):
        if value != word:
            raise ValueError(f"{name}: got {value!r}; {known([word])}, or a positive number")
        return word
    number = check_real(name, value, 0.0)
    if not 0 < number < math.inf:
        raise ValueError(f"{name}: must be positive and finite, or {word!r}; got {value!r}")
    return number
