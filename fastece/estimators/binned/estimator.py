"""The binned estimators: edges, a mapping, and a norm of the gaps of bins."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import parameters
from fastece.data.containers import contiguous
from fastece.data.errors import InputError
from fastece.data.reading import Map, part_of, read_plain
from fastece.data.samples import NO_HITS, Sample, scale_weights, sort_rows
from fastece.data.sources import Problems, Source, one_problem
from fastece.estimators.base import Counts, Draws, Parameters, Plan, Rows
from fastece.estimators.binned import layouts
from fastece.kernels import (
    COUNTS,
    EMPTY,
    GAP,
    HITS,
    MOMENTS,
    PACK,
    REPLICATES,
    SCORE,
    SQUARE,
    WEIGHT,
)
from fastece.kernels.types import F64, I32, U8

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

TINY = np.array(np.finfo(np.float64).tiny)
SQRT = "sqrt"
# 1 GB of sums.
MAX_BINS = 2**24
MAX_CELLS = 2**27
# Sums of some replicates at once: 4 MB.
MAX_SUMS = 2**19

NO_SUMS, NOTHING = np.empty((0, 0)), np.empty(0)
WITH_WEIGHT = {(GAP,): (GAP, WEIGHT), (GAP, COUNTS): (GAP, WEIGHT, HITS)}
SUMS = {GAP: "gap", WEIGHT: "weight", SCORE: "score", HITS: "hits", SQUARE: "square"}


class Bins(NamedTuple):
    """Sums over the bins of K problems: (K, B) arrays, and the edges (B + 1,) of each.

    `gap` is the sum of w (y - s), the others of w, w s, w y and w**2; a sum that nobody needs is
    empty. `total` (K,) is the weight of the rows that exist. Weights are in units of `unit`.
    """

    edges: list[F64]
    unit: float
    total: F64
    gap: F64 = NO_SUMS
    weight: F64 = NO_SUMS
    score: F64 = NO_SUMS
    hits: F64 = NO_SUMS
    square: F64 = NO_SUMS

    @classmethod
    def of(
        cls, edges: list[F64], unit: float, total: F64 | None, moments: Sequence[int], sums: Any
    ) -> Self:
        """Make bins from sums of some `kernels.MOMENTS`, by default of all weight."""
        found = dict(zip(moments, sums, strict=True))
        if COUNTS in found:
            counts = found.pop(COUNTS)
            found[HITS] = np.floor(counts * (1 / PACK))
            found[WEIGHT] = counts - found[HITS] * PACK
        total = found[WEIGHT].sum(-1) if total is None else total
        return cls(edges, unit, total, **{SUMS[kind]: sums for kind, sums in found.items()})


def joined_bins(parts: Sequence[Bins]) -> Bins:
    """Join the bins of single problems whose weights have the same unit."""
    sums = (np.concatenate(part) for part in zip(*(p[2:] for p in parts), strict=True))
    return Bins([part.edges[0] for part in parts], parts[0].unit, *sums)


@dataclass(frozen=True)
class BinnedPlan(Plan):
    """Prepared data of `Binned`, with rows arranged when they are first needed."""

    binned: "Binned"
    sample: Sample
    unit: float
    n_bins: int
    moments: tuple[int, ...]  # the sums that the value of a replicate needs

    @property
    def range(self) -> tuple[float, float]:
        """The range that the bins divide."""
        return self.binned.range_of(self.sample)

    @property
    def layout(self) -> layouts.Layout:
        """Bins that do not depend on the draw."""
        return self.binned.fixed_layout(self.n_bins, *self.range)

    @cached_property
    def tiles(self) -> layouts.Tiles:
        """Rows on fixed edges, for counts."""
        return layouts.Tiles.of(self.sample, self.layout, self.binned._threshold, self.moments)

    @cached_property
    def records(self) -> F64:
        """Cell and terms (n, 1 + Q) of each row on fixed edges, for lists of drawn rows."""
        threshold, moments = self.binned._threshold, self.moments
        lower, terms = layouts.place_terms(self.sample, self.layout, threshold, moments)
        return np.column_stack([lower, *terms])

    @cached_property
    def ordered(self) -> tuple["OrderedRows", F64]:
        """Sorted rows above the threshold with their terms, for edges of each draw."""
        rows = layouts.order_rows(self.sample, *self.range, self.binned._threshold)
        sample = self.sample.where(slice(rows.skip, None))
        return rows, layouts.terms_of(sample, self.binned._threshold, self.moments)

    def count_bins(self, c: U8) -> Bins:
        """Sum up the bins of replicates with counts (G, n, 32)."""
        if self.binned.is_fixed:
            return self.bins(self.tiles.sums(c), float(c[0, :, 0].sum(dtype=np.int64)))
        total = np.empty(len(c) * REPLICATES)
        sums = np.empty((len(self.moments), self.n_bins, total.size))
        kernels.replicates.equal_mass_sums(*self.ordered, *self.binned._rule, c, total, sums)
        return self.bins(sums, total)

    def row_bins(self, rows: I32) -> Bins:
        """Sum up the bins of replicates as lists of drawn rows (R, size)."""
        sample, n_moments = self.sample, len(self.moments)
        if self.binned.is_fixed:
            sums = np.empty((n_moments, self.layout.cells, len(rows)))
            kernels.moments.drawn_sums(self.records, self.layout.step, rows, sums)
            return self.bins(layouts.spread(self.layout, sums), float(rows.shape[1]))
        total, sums = np.empty(len(rows)), np.empty((n_moments, self.n_bins, len(rows)))
        kernels.moments.drawn_equal_mass_sums(
            sample.s, sample.y, kernels.weights(sample.v), self.binned._threshold, *self.range,
            *self.binned._rule, np.array(self.moments), np.sort(rows, axis=1), total, sums,
        )  # fmt: skip
        return self.bins(sums, total)

    def replicates_at_once(self, of: int) -> int:
        """Return how many multiples of `of` replicates have sums of some megabytes."""
        return max(1, MAX_SUMS // (self.n_bins * len(self.moments) * of))

    def bins(self, sums: F64, total: F64 | float) -> Bins:
        """Return sums (Q, B, R) of R replicates, of rows of a total weight, without edges."""
        known = isinstance(total, np.ndarray) or len(self.moments) == 1
        sums = sums.swapaxes(1, 2)
        whole = np.broadcast_to(total, sums.shape[1]) if known else None
        return Bins.of([], self.unit, whole, self.moments, sums)


def check_bin_count(name: str, value: Any) -> int | str:
    """Check a number of bins, or "sqrt"."""
    if isinstance(value, str) and value == SQRT:
        return value
    return parameters.check_integer(name, value, 1, MAX_BINS, 'an integer or "sqrt"')


@dataclass(frozen=True)
class Binned(Parameters):
    """Calibration error over bins of the score.

    With ``a_ib`` the share of row i in bin b, ``W_b = sum_i w_i a_ib`` and
    ``D_b = sum_i w_i a_ib (y_i - s_i)``, the value is
    ``(sum_b W_b / W * |D_b / W_b|**p)**(1/p)``; for p = 1 that is ``sum_b |D_b| / W``, for p = inf
    the largest ``|D_b / W_b|``. Empty bins contribute nothing.

    With ``debias=True``, what chance adds to the gaps of a calibrated model is taken off. With
    ``g_b = |D_b / W_b|``, the hit rate q_b, the number ``n_b = W_b**2 / sum_i w_i**2`` of rows in
    the bin and ``t_b**2 = q_b (1 - q_b) / n_b``, the value for p = 1 is ``sum_b W_b / W * (2 g_b -
    E|N(g_b, t_b**2)|)``, with a normal variable N, and may be negative. For p = 2 it is
    ``sqrt(max(0, sum_b W_b / W * (g_b**2 - q_b (1 - q_b) / (n_b - 1))))``, where bins of less than
    2 rows count 0.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Number of bins B; "sqrt" is the floor of the square root of the number of rows. Given
        `edges` have their own.
    edges : {"uniform", "quantile"} or sequence of B + 1 floats
        Bins of equal width, ``low + (high - low) * (j / B)``, or of equal weight; or these edges,
        which do not decrease. Where some are equal, the bin between them has that score alone, or
        nothing.
    mapping : {"hard", "convex"}
        Every score in its bin, or shared linearly by the two nearest bin centres.
    norm : float
        p, at least 1; ``inf`` for the maximum calibration error.
    closed : {"right", "left"}
        Bins ``(a, b]`` with 0 in the first, or ``[a, b)`` with 1 in the last. Hard mapping only.
    score_range : {"unit", "support"} or (low, high)
        Range the bins divide: [0, 1], the support of the setting's score, or a given one. Scores
        outside count in the bin at its nearest end. Given `edges` have a range of their own.
    min_count : float
        With ``norm=inf``: bins with less weight are left out; none left gives nan.
    bin_weights : {"mass", "equal"}
        Bins count by their weight, or 1/B each.
    threshold : float or None
        Only rows with a score greater than this exist; a problem without any counts 0.
    debias : bool
        Take off what chance adds. Hard mapping and the norms 1 and 2 only.

    Raises
    ------
    ValueError, TypeError
        For a parameter outside its range; ``closed="left"`` with ``mapping="convex"``; `min_count`
        without ``norm=inf``; `debias` with ``mapping="convex"`` or another norm than 1 and 2; given
        `edges` with `n_bins` or `score_range`.

    Notes
    -----
    Right-closed uniform bins are those of Guo et al. (2017, "On calibration of modern neural
    networks", eq. 3), other norms those of Kumar et al. (2019, "Verified uncertainty
    calibration", def. 2.1), adaptive bins and convex mapping those of Posocco and Bonnefoy (2021,
    "Estimating expected calibration errors", section 3). Debiased errors are those of Kumar et al.
    too (section 5 and appendix on the plugin estimator of other norms), whose program draws the
    normal variables at random.

    Examples
    --------
    >>> from fastece import Binned, ece
    >>> ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=Binned(n_bins=2))
    0.25
    >>> print(Binned(n_bins=10, edges="quantile"))
    Binned(n_bins=10, edges='quantile')
    >>> print(Binned(edges=[0, 0.5, 0.9, 1], closed="left"))
    Binned(edges=(0.0, 0.5, 0.9, 1.0), closed='left')
    """

    n_bins: int | Literal["sqrt"] = 15
    edges: Literal["uniform", "quantile"] | Sequence[float] = "uniform"
    mapping: Literal["hard", "convex"] = "hard"
    norm: float = 1.0
    closed: Literal["right", "left"] = "right"
    score_range: Literal["unit", "support"] | tuple[float, float] = "unit"
    min_count: float = 0
    bin_weights: Literal["mass", "equal"] = "mass"
    threshold: float | None = None
    debias: bool = False

    native = (Counts, Rows)
    largest = 1.0

    checks: ClassVar = {
        "n_bins": check_bin_count,
        "edges": partial(layouts.check_edges, names=("uniform", "quantile")),
        "mapping": partial(parameters.check_choice, choices=("hard", "convex")),
        "norm": partial(parameters.check_real, low=1.0),
        "closed": partial(parameters.check_choice, choices=("right", "left")),
        "score_range": partial(parameters.check_range, names=("unit", "support")),
        "min_count": partial(parameters.check_real, low=0.0),
        "bin_weights": partial(parameters.check_choice, choices=("mass", "equal")),
        "threshold": lambda name, t: (
            None if t is None else parameters.check_real(name, t, -math.inf)
        ),
        "debias": parameters.check_flag,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_bins", "score_range"):
            value = getattr(self, name)
            if not isinstance(self.edges, str) and value != getattr(type(self), name):
                rule = "goes with edges='uniform' and 'quantile', and edges are given"
                raise InputError(name, rule, value=value, hint="leave it out")
        convex, norm = self.mapping == "convex", self.norm
        if convex and self.closed == "left":
            rule = "must be 'right' with mapping='convex'"
            reason = "where centres on both sides of an edge share its score"
            raise InputError("closed", f"{rule}, {reason}", value=self.closed)
        if self.min_count and not math.isinf(norm):
            rule = f"goes with norm=inf only, not {norm!r}"
            raise InputError("min_count", rule, value=self.min_count)
        if self.debias and convex:
            raise InputError("debias", "goes with mapping='hard' only", value=self.mapping)
        if self.debias and norm not in (1.0, 2.0):
            raise InputError("debias", "goes with norm=1 and norm=2 only", value=norm)

    @cached_property
    def _text(self) -> str:
        """The class with its parameters, of given edges without their number."""
        text = super()._text
        return text if isinstance(self.edges, str) else text.replace(f"n_bins={self.n_bins}, ", "")

    @cached_property
    def is_fixed(self) -> bool:
        """Whether edges do not depend on the scores."""
        return not isinstance(self.edges, str) or self.edges == "uniform"

    def range_of(self, problems: Any) -> tuple[float, float]:
        """Return the range that the bins divide."""
        if isinstance(self.edges, str):
            return super().range_of(problems)
        return self.edges[0], self.edges[-1]

    @property
    def needs(self) -> str:
        """Needs of the bins from cells of a stream: "ranks", "squares" or "rows".

        Cells are closed at the right. Shares of two centres are linear in the score, so the gaps
        that they add up need its squares.
        """
        if self.closed == "left":
            return "rows"
        return "squares" if self.mapping == "convex" and self.is_fixed else "ranks"

    @property
    def needs_sorted(self) -> bool:
        """Whether `prepare` gets a sorted sample, in which equal-mass bins are faster."""
        return not self.is_fixed

    @cached_property
    def common(self) -> tuple[F64, F64, int] | None:
        """Bins of common calls, whose rows count 1 each; None if there are none.

        Their edges and grid, and how many of `kernels.MOMENTS` the value needs: 0 of bins that
        share scores or depend on them.
        """
        is_inside = self.score_range == "unit" or (self.is_fixed and self.score_range != "support")
        # A class made from this one may add up something else.
        other = not is_inside or type(self) is not Binned or self.n_bins == SQRT
        is_hard = self.is_fixed and self.mapping == "hard" and self.threshold is None
        n_bins, is_sum = self.bin_count(0), self._moments(False) == (GAP,)
        if other or not (is_hard or is_sum) or n_bins > kernels.moments.MOST_BINS:
            return None
        layout = self.fixed_layout(n_bins, *self.range_of(None))
        grid, moments = layouts.common_grid(layout.grid), 1 if is_sum else 4
        return (layout.edges, grid, moments * is_hard) if layout.cells == n_bins else None

    def common_value(self, p: NDArray[Any], y: NDArray[Any]) -> float:
        """Compute the value of plain arrays in one pass; nan of others."""
        if self.common is None:
            return math.nan
        _, grid, moments = self.common
        if moments == 1 and y.size <= layouts.CHUNK_SCORES:
            return float(kernels.moments.hard_error(p, y, grid, NO_SUMS))
        if moments:
            sums, total = self._common_sums(p, y, moments)
            if self.debias and sums.size:
                return float(self._debiased_errors(sums, total)[0])
            return float(self.errors(Bins([], 1.0, total, *sums))[0]) if sums.size else math.nan
        few = layouts.CHUNK_SCORES if self.is_fixed else layouts.MANY_ROWS - 1
        if y.size > few or (found := read_plain(p, y)) is None:
            return math.nan
        u = NOTHING if self.is_fixed else sort_rows(found[0], NO_HITS)[0]
        return float(kernels.errors.binned_error(*found, u, grid))

    def common_bins(self, p: Any, y: Any) -> Bins | None:
        """Sum up the bins of plain arrays; None of others."""
        if self.common is None or not self.common[2]:
            return None
        sums, total = self._common_sums(p, y, 4)
        return Bins([self.common[0]], 1.0, total, *sums) if sums.size else None

    def _common_sums(self, p: Any, y: Any, moments: int) -> tuple[F64, F64]:
        """Sum up 1 or 4 `kernels.MOMENTS` (Q, 1, B) of plain arrays, and rows (1,)."""
        (edges, grid, _), sums = cast(Any, self.common), NO_SUMS
        for start in range(0, y.size, layouts.CHUNK_SCORES):
            part, hard_error = np.empty((moments, edges.size - 1)), kernels.moments.hard_error
            # No name for what is converted: the next part would be made while it is kept.
            if math.isnan(hard_error(*part_of(p, y, start, layouts.CHUNK_SCORES), grid, part)):
                return NO_SUMS, NOTHING
            sums = sums + part if start else part
        return sums.reshape(moments, 1, -1), np.array([float(y.size)])

    def prepare(self, sample: Sample, size: int) -> BinnedPlan:
        """Prepare a sample for draws of `size` rows."""
        sample, unit = scale_weights(sample)
        is_unit = sample.v is not None and (sample.v == 1.0).all()  # of draws of any size
        if is_unit and not self.is_fixed and not self.debias:
            # Equal-mass bins know the weight of a draw anyway: 0.7 times the time.
            sample = replace(sample, v=None)
        moments = self._moments(sample.v is not None, size)
        if sample.v is not None and len(moments) == 1:  # weights need their total
            moments = MOMENTS[:2]
        return BinnedPlan(self, sample, unit, self.bin_count(size), moments)

    def evaluate(self, plan: BinnedPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        moments = (GAP, WEIGHT, HITS) if self.debias else self._moments(False)
        sample = replace(plan.sample, c=c.astype(np.float64))
        return float(self.errors(self.counted_bins(sample, plan.n_bins, moments, plan.unit))[0])

    def counted_bins(
        self, sample: Sample, n_bins: int, moments: Sequence[int] = (GAP, WEIGHT, SCORE, HITS),
        unit: float = 1.0,
    ) -> Bins:  # fmt: skip
        """Sum up the bins of a sample with counts; for weighted hits `square` too."""
        problem, moments = one_problem(sample), tuple(moments)
        bins = self._sums(problem, n_bins, moments, unit, map)
        if sample.v is None or HITS not in moments:
            return bins
        # Copies of a row are rows: squares of their weights are added up, not that of their sum.
        copies = replace(problem, v=sample.counts * sample.v**2)
        layout = self.layout(problem, n_bins)
        (square,) = layouts.cell_sums(copies, layout, self._threshold, (WEIGHT,), map)
        return bins._replace(square=square)

    def values(self, plan: BinnedPlan, draws: Draws) -> F64:
        """Compute the value of each replicate."""
        match draws:
            case Counts(c):
                step = plan.replicates_at_once(REPLICATES)
                parts = [Counts(c[g : g + step]) for g in range(0, len(c), step)]
                return np.concatenate([self.errors(self.bins_of(plan, part)) for part in parts])
            case Rows():
                rows = contiguous(draws.rows, np.int32)
                values = []
                for part in np.array_split(rows, -(-len(rows) // plan.replicates_at_once(1))):
                    # The bins of one replicate alone numpy would add in another order.
                    some = part if len(part) > 1 else np.repeat(part, 2, axis=0)
                    values.append(self.errors(plan.row_bins(some))[: len(part)])
                return np.concatenate(values)
        return super().values(plan, draws)

    def bins_of(self, plan: BinnedPlan, counts: Counts) -> Bins:
        """Sum up the bins of each replicate, without edges."""
        return plan.count_bins(counts.blocks(plan.sample.n))

    def of_population(self) -> "Binned":
        """Return the estimator without `debias`."""
        return replace(self, debias=False) if self.debias else self

    def point_values(self, source: Source, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a source."""
        if not isinstance(source, Problems):
            return super().point_values(source, run)
        moments = self._moments(source.v is not None, source.count())
        return self.errors(self.some_bins(source, run, moments))

    def bins(self, source: Source, run: Map = map, moments: int = 4) -> Bins:
        """Compute the edges and the first `moments` of `kernels.MOMENTS` of all bins.

        With `debias` all that the value needs as well.
        """
        if not isinstance(source, Problems):
            n_bins, samples = self.bin_count(source.n), source.samples(source.needs_of(self))
            return joined_bins([self.counted_bins(sample, n_bins) for sample in samples])
        weighted = source.v is not None
        more = ((HITS, SQUARE) if weighted else (HITS,)) if self.debias else ()
        return self.some_bins(source, run, (*MOMENTS[:moments], *more[max(0, moments - 3) :]))

    def some_bins(self, problems: Problems, run: Map, moments: tuple[int, ...]) -> Bins:
        """Compute the edges and selected sums of the bins of each problem."""
        n_bins = self.bin_count(problems.count())
        if problems.n_problems * n_bins > MAX_CELLS:
            rule = f"must fit into memory: {MAX_CELLS} bins for {problems.n_problems} classes"
            raise InputError("n_bins", rule, value=n_bins)
        problems, unit = scale_weights(problems)
        at_once = self.is_fixed or problems.n_problems == 1
        if at_once or layouts.fits_float_grid(problems, n_bins, self.mapping == "convex"):
            return self._sums(problems, n_bins, moments, unit, run)

        def one(k: int) -> Bins:
            return self._sums(one_problem(problems.sample(k)), n_bins, moments, unit, map)

        return joined_bins(list(run(one, range(problems.n_problems))))

    def errors(self, bins: Bins) -> F64:
        """Compute the value (K,) of each problem from the sums of its bins."""
        norm, equal = self.norm, self.bin_weights == "equal"
        if self.debias:
            square = [bins.square] if bins.square.size else []
            sums = np.array([bins.gap, bins.weight, bins.weight, bins.hits, *square])
            return self._debiased_errors(sums, contiguous(bins.total, np.float64))
        # Without any row, gaps are 0 and so is the value.
        gap, total, weight = np.abs(bins.gap), np.maximum(bins.total, TINY), bins.weight
        if norm == 1 and not equal:
            return np.asarray(np.add.reduce(gap, -1) / total)
        counts = weight > (0.0 if norm < math.inf and not equal else EMPTY * total[:, None])
        ratio = np.divide(gap, weight, out=np.zeros_like(gap), where=counts)
        if math.isinf(norm):
            counts &= weight >= self.min_count / bins.unit
            largest = np.where(counts, ratio, -1.0).max(-1)
            return np.where(bins.total > 0, np.where(largest < 0, np.nan, largest), 0.0)
        share = 1.0 / gap.shape[-1] if equal else weight / total[:, None]
        # In units of the largest gap: a large power of a small number would be 0.
        unit = ratio.max(-1, initial=1e-300)
        with np.errstate(under="ignore"):
            sums = (share * (ratio / unit[:, None]) ** norm).sum(-1)
            return np.asarray(sums ** (1 / norm) * unit)

    def _debiased_errors(self, sums: F64, total: F64) -> F64:
        """Compute the debiased value (K,) of each problem from sums of its bins."""
        out, is_equal = np.empty(total.size), self.bin_weights == "equal"
        kernels.errors.debiased_errors(sums, total, is_equal, self.norm, out)
        return out

    def _moments(self, weighted: bool, size: int = 0) -> tuple[int, ...]:
        """Return the kinds of sums that `errors` needs, for draws of `size` rows."""
        if self.debias:
            both = (COUNTS,) if size < PACK else (WEIGHT, HITS)
            return (GAP, WEIGHT, HITS, SQUARE) if weighted else (GAP, *both)
        # The `errors` of a derived class may read the weights, whatever the parameters are.
        plain = self.norm == 1 and self.bin_weights == "mass" and self.threshold is None
        return (GAP,) if plain and type(self) is Binned else (GAP, WEIGHT)

    @cached_property
    def _threshold(self) -> float:
        """Score up to which rows are left out."""
        return -math.inf if self.threshold is None else self.threshold

    def bin_count(self, size: int) -> int:
        """Return the number of bins for `size` rows."""
        if not isinstance(self.edges, str):
            return len(self.edges) - 1
        return max(1, math.isqrt(size)) if self.n_bins == SQRT else int(self.n_bins)

    @cached_property
    def _rule(self) -> tuple[bool, bool]:
        """Whether bins are closed at the right, and whether two of them share a score."""
        return self.closed == "right", self.mapping == "convex"

    def _sums(
        self, problems: Problems, n_bins: int, moments: tuple[int, ...], unit: float, run: Map
    ) -> Bins:
        """Compute the bins of all problems: fixed, of a float grid, or of one problem."""
        (low, high), (right, convex), found = self.range_of(problems), self._rule, None
        if self.is_fixed:
            each = [self.fixed_layout(n_bins, low, high)] * problems.n_problems
        elif not layouts.fits_float_grid(problems, n_bins, convex):
            each = [self.layout(problems, n_bins)]
        else:
            more = (WEIGHT,) if convex else WITH_WEIGHT.get(moments, moments)
            each, found = layouts.equal_mass_sums(
                problems, n_bins, low, high, right, self._threshold, more, run
            )
            if convex:  # of the grid only edges are known
                each, found = [layouts.convex_layout(each[0].edges)], None
            moments = moments if convex else more
        sums = found or layouts.cell_sums(problems, each[0], self._threshold, moments, run)
        total = None
        if self.threshold is None:  # every row exists, whatever its shares round to
            whole = problems.n if problems.v is None else problems.v.sum()
            total = np.full(problems.n_problems, float(whole))
        return Bins.of([layout.edges for layout in each], unit, total, moments, sums)

    def fixed_layout(self, n_bins: int, low: float, high: float) -> layouts.Layout:
        """Return the layout of bins that do not depend on the scores."""
        edges = None if isinstance(self.edges, str) else tuple(self.edges)
        return layouts.fixed_layout(n_bins, low, high, *self._rule, edges)

    def layout(self, problems: Problems, n_bins: int) -> layouts.Layout:
        """Return the layout of the bins of one problem."""
        low, high = self.range_of(problems)
        right, convex = self._rule
        if self.is_fixed:
            return self.fixed_layout(n_bins, low, high)
        x = problems.view()
        if self.threshold is not None:
            x = x.where(x.s > self.threshold)
        edges, cuts = layouts.quantile_edges(x.s, x.v, n_bins, low, high, right)
        return layouts.convex_layout(edges) if convex else layouts.hard_layout(edges, cuts, right)


class Placement(NamedTuple):
    """Lower cell (n,) of each row, and its share there; the next cell has the rest."""

    layout: layouts.Layout
    lower: I32
    share: F64

    @property
    def upper(self) -> I32:
        """Cell that has the rest of each row."""
        return np.asarray(self.lower + self.layout.step, np.int32).clip(max=self.layout.cells - 1)

    def sums(self, x: F64, weight: F64 | float = 1.0, power: int = 1) -> F64:
        """Sum ``x (weight a)^power`` of rows (n,) with shares a in each bin (B,)."""
        part, count = x * (weight * self.share) ** power, self.layout.cells
        cells: F64 = np.bincount(self.lower, part, count).astype(np.float64)
        if self.layout.grid.convex:
            rest = x * (weight * (1 - self.share)) ** power
            cells += np.bincount(self.upper, rest, count)
        return self.layout.spread(cells)

    def rows(self, bins: F64) -> F64:
        """Average values (B,) of bins over the shares of each row (n,)."""
        cells = bins if self.layout.bins is None else bins[self.layout.bins]
        return self.share * cells[self.lower] + (1 - self.share) * cells[self.upper]


def place_rows(binned: Binned, sample: Sample, n_bins: int) -> Placement:
    """Find the cells of each row of a sample, and its shares of them."""
    layout = binned.layout(one_problem(sample), n_bins)
    return Placement(layout, *layout.place(sample.s))


def effective_rows(binned: Binned, source: Source, bins: Bins) -> F64:
    """Compute the effective number of rows in each bin (K, B), 0 where it is empty.

    ``(sum w a)^2 / sum w^2 a`` with the shares a of the rows: Kish (1965, "Survey sampling",
    section 11.7).
    """
    rows = bins.weight.copy()
    if isinstance(source, Problems) and source.v is None:
        return rows
    for k in range(source.n_problems):
        sample, _ = scale_weights(source.sample(k, source.needs_of(binned)))
        if sample.v is None:
            continue
        exists = binned.threshold is None or sample.s > binned.threshold
        square = np.where(exists, sample.counts * sample.v**2 * sample.votes, 0.0)
        squares = place_rows(binned, sample, rows.shape[1]).sums(square)
        np.divide(rows[k] ** 2, squares, out=rows[k], where=squares > 0)
    return rows


# Hit rates that differ by less are equal, where weights are rounded.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Sweep(Parameters):
    """Calibration error over the most equal-mass bins with nondecreasing hit rates.

    The bins are those of ``Binned(n_bins=B, edges="quantile")``, and so is the value. B is the
    largest number, at most that of the rows, such that for each of 1, 2, ..., B bins no occupied
    bin has a lower hit rate than the one before it. So bins are as narrow as they can be while each
    shows more than noise, if the hit rate is assumed to rise with the score.

    Parameters
    ----------
    norm : float
        p, at least 1; ``inf`` for the maximum calibration error. With ``g_b = |D_b / W_b|`` as in
        `Binned` the value is ``(sum_b W_b / W * g_b**p)**(1/p)``.

    Raises
    ------
    ValueError, TypeError
        For a norm less than 1.

    Notes
    -----
    Roelofs et al. (2022, "Mitigating bias in calibration error estimation", algorithm 1 and section
    4.2). With weights, hit rates that differ by less than 1e-12 are equal. Where no bins have a
    hit rate that decreases, as of classes that scores keep apart, there are as many as rows.

    Examples
    --------
    >>> from fastece import Sweep, ece
    >>> ece([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], estimator=Sweep())  # 2 bins
    0.25
    >>> print(Sweep(norm=2))
    Sweep(norm=2.0)
    """

    norm: float = 1.0

    checks: ClassVar = {"norm": partial(parameters.check_real, low=1.0)}

    def prepare(self, sample: Sample, size: int) -> tuple[Sample, int]:
        """Return the sorted sample and the number of rows of a draw."""
        return scale_weights(sample)[0], size

    def evaluate(self, plan: tuple[Sample, int], c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        sample, size = plan
        w = c.astype(np.float64) if sample.v is None else c * sample.v
        is_exact = sample.v is None and c.dtype.kind in "ui"
        return self.error(sample.s, sample.y, w, size, 0.0 if is_exact else TOLERANCE)

    def common_value(self, p: NDArray[Any], y: NDArray[Any]) -> float:
        """Compute the value of plain arrays in one pass; nan of others."""
        if (found := read_plain(p, y)) is None:
            return math.nan
        return self.error(*sort_rows(*found), kernels.NO_WEIGHTS, y.size, 0.0)

    def error(self, s: F64, y: U8, w: F64, most: int, tolerance: float) -> float:
        """Compute the value of rows in order, by the kernel that finds the bins."""
        ends, _ = kernels.quantiles.sweep_bins(s, y, w, most, tolerance)
        begins, gap = np.append(0, ends[:-1]), y - s
        gap = np.add.reduceat(w * gap if w.size else gap, begins)
        weight = np.add.reduceat(w, begins) if w.size else (ends - begins).astype(np.float64)
        bins = Bins([], 1.0, np.array([weight.sum()]), gap[None], weight[None])
        return float(formula_of(norm=self.norm).errors(bins)[0])


# The error of bins that are at hand, from fields of `Binned`.
formula_of: Callable[..., Binned] = lru_cache(maxsize=64)(Binned)
