"""`Binned`: its parameters, and the error as a norm of the gaps of bins."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import parameters
from fastece.data.errors import InputError
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import RANKS, ROWS, SQUARES, RowTable, one_problem
from fastece.data.threads import Map
from fastece.estimators.base import Parameters
from fastece.estimators.binned.layouts import (
    EDGE_RULES,
    EQUAL_MASS,
    BinRule,
    Layout,
    Placement,
    check_edges,
    fixed_layout,
    layout_of,
)
from fastece.estimators.binned.replicates import BinnedPlan, plan_bins
from fastece.estimators.binned.sums import (
    MAX_BINS_OF_FEW_ROWS,
    MIN_ROWS,
    NOT_SUMMED,
    Bins,
    add_bins,
    by_bin,
    gap_errors,
    join_bins,
    sum_bins,
    sum_sample,
)
from fastece.estimators.draws import Counts, Draws, Rows
from fastece.kernels import EMPTY, GAP, HITS, SCORE, SQUARE, WEIGHT
from fastece.kernels.types import F64

SQRT = "sqrt"
MAX_BINS = 2**24
# Bins of all classes together: 1 GB for each kind of sum.
MAX_BINS_OF_CLASSES = 2**27
# The least debiased error of norm 1: of one bin with two rows, one of them a hit, and no gap, from
# which the mean size of a normal variable of variance 1 / 8 is taken off.
LEAST_DEBIASED = -1 / math.sqrt(4 * math.pi)
# Norms that a kernel computes; numpy has the powers of others.
NORMS_OF_KERNEL = (1.0, 2.0, math.inf)


def check_bin_count(name: str, value: Any) -> int | str:
    """Check a number of bins, or "sqrt"."""
    if isinstance(value, str) and value == SQRT:
        return value
    return parameters.check_integer(name, value, 1, MAX_BINS, 'an integer or "sqrt"')


def check_threshold(name: str, value: Any) -> float | None:
    """Check a threshold of scores, or None."""
    return None if value is None else parameters.check_real(name, value, -math.inf)


@dataclass(frozen=True)
class Binned(Parameters):
    """Calibration error over bins of the score.

    With ``a_ib`` the share of row i in bin b, ``W_b = sum_i w_i a_ib`` and
    ``D_b = sum_i w_i a_ib (y_i - s_i)``, the value is
    ``(sum_b W_b / W * |D_b / W_b|**p)**(1/p)``; for p = 1 that is ``sum_b |D_b| / W``, for p = inf
    the largest ``|D_b / W_b|``. Empty bins contribute nothing.

    With ``debias=True``, the part that chance adds to the gaps of a calibrated model is taken off.
    With ``g_b = |D_b / W_b|``, the hit rate q_b, the number ``n_b = W_b**2 / sum_i w_i**2`` of rows
    in the bin and ``t_b**2 = q_b (1 - q_b) / n_b``, the value for p = 1 is ``sum_b W_b / W * (2 g_b
    - E|N(g_b, t_b**2)|)``, with a normal variable N, and may be negative. For p = 2 it is
    ``sqrt(max(0, sum_b W_b / W * (g_b**2 - q_b (1 - q_b) / (n_b - 1))))``, where bins of less than
    2 rows count 0.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Number of bins B; "sqrt" is the floor of the square root of the number of rows. Not with
        given `edges`.
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
        Take off the part that chance adds. Hard mapping and the norms 1 and 2 only.

    Raises
    ------
    ValueError, TypeError
        For a parameter outside its range; ``closed="left"`` with ``mapping="convex"``; `min_count`
        without ``norm=inf``; `debias` with ``mapping="convex"`` or another norm than 1 and 2; given
        `edges` with `n_bins` or `score_range`.

    Notes
    -----
    Right-closed uniform bins are from Guo et al. (2017, "On calibration of modern neural networks",
    eq. 3), other norms from Kumar et al. (2019, "Verified uncertainty calibration", def. 2.1),
    adaptive bins and convex mapping from Posocco and Bonnefoy (2021, "Estimating expected
    calibration errors", section 3). Debiased errors are from Kumar et al. too (section 5 and
    appendix on the plugin estimator of other norms), whose program draws the normal variables at
    random.

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

    checks: ClassVar = {
        "n_bins": check_bin_count,
        "edges": partial(check_edges, names=EDGE_RULES),
        "mapping": partial(parameters.check_choice, choices=("hard", "convex")),
        "norm": partial(parameters.check_real, low=1.0),
        "closed": partial(parameters.check_choice, choices=("right", "left")),
        "score_range": partial(parameters.check_range, names=("unit", "support")),
        "min_count": partial(parameters.check_real, low=0.0),
        "bin_weights": partial(parameters.check_choice, choices=("mass", "equal")),
        "threshold": check_threshold,
        "debias": parameters.check_flag,
    }

    # --- parameters -------------------------------------------------------------------------

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.edges, str):
            self._check_default("n_bins")
            self._check_default("score_range")
        if self.mapping == "convex" and self.closed == "left":
            rule = (
                "must be 'right' with mapping='convex', "
                "where centres on both sides of an edge share its score"
            )
            raise InputError("closed", rule, value=self.closed)
        if self.min_count and self.norm != math.inf:
            rule = f"goes with norm=inf only, not {self.norm!r}"
            raise InputError("min_count", rule, value=self.min_count)
        if self.debias and self.mapping == "convex":
            raise InputError("debias", "goes with mapping='hard' only", value=self.mapping)
        if self.debias and self.norm not in (1.0, 2.0):
            raise InputError("debias", "goes with norm=1 and norm=2 only", value=self.norm)

    def _check_default(self, name: str) -> None:
        """Refuse another value than the default of a parameter beside given edges."""
        value = getattr(self, name)
        if value != getattr(type(self), name):
            names = " and ".join(map(repr, EDGE_RULES))
            rule = f"goes with edges={names}, and edges are given"
            raise InputError(name, rule, value=value, hint="leave it out")

    @cached_property
    def _text(self) -> str:
        """The class with its parameters; beside given edges without their number."""
        text = super()._text
        return text if isinstance(self.edges, str) else text.replace(f"n_bins={self.n_bins}, ", "")

    @property
    def _is_equal_mass(self) -> bool:
        """Whether the bins have equal weight: `BinRule.is_equal_mass` of their rule."""
        return self.edges == EQUAL_MASS

    @property
    def needs(self) -> str:
        """The content of a stream that the bins need: "ranks", "squares" or "rows".

        Cells of a stream are closed at the right, so bins closed at the left need single rows.
        Shares of two centres are linear in the score, so their gaps need squares of scores.
        """
        if self.closed == "left":
            return ROWS
        return SQUARES if self.mapping == "convex" and not self._is_equal_mass else RANKS

    @property
    def needs_sorted(self) -> bool:
        """Whether `prepare` gets a sorted sample, in which equal-mass bins are faster."""
        return self._is_equal_mass

    @property
    def lowest(self) -> float:
        """The least value: below 0 for debiased errors of norm 1."""
        if self._has_other_formula:
            return -math.inf
        return LEAST_DEBIASED if self.debias and self.norm == 1 else 0.0

    @property
    def largest(self) -> float:
        """The largest value."""
        return math.inf if self._has_other_formula else 1.0

    @property
    def is_norm_of_gaps(self) -> bool:
        """Whether the value is a norm of gaps; a derived class may add up something else."""
        return type(self) is Binned and not self.debias

    @property
    def bounds_mean_gap(self) -> bool:
        """Whether the value of a population is at least as large as its mean gap."""
        return self.threshold is None and self.bin_weights == "mass"

    @property
    def _has_other_formula(self) -> bool:
        """Whether a derived class has `errors` of its own, whose bounds it may declare."""
        return type(self).errors is not Binned.errors

    def of_population(self) -> Any:
        """Return the estimator without `debias`: a population has no chance."""
        return replace(self, debias=False) if self.debias else self

    # --- bins -------------------------------------------------------------------------------

    def range_of(self, problems: Any) -> tuple[float, float]:
        """Return the range that the bins divide."""
        if isinstance(self.edges, str):
            return super().range_of(problems)
        return self.edges[0], self.edges[-1]

    def bin_count(self, size: int) -> int:
        """Return the number of bins for `size` rows."""
        if not isinstance(self.edges, str):
            return len(self.edges) - 1
        return max(1, math.isqrt(size)) if self.n_bins == SQRT else int(self.n_bins)

    def rule(self, problems: Any, n_bins: int) -> BinRule:
        """Return how the scores of problems, or of a sample, get into so many bins."""
        rule = self._rule_of_all
        if rule is not None and rule.n_bins == n_bins:
            return rule
        return self._make_rule(n_bins, *self.range_of(problems))

    @cached_property
    def _rule_of_all(self) -> BinRule | None:
        """The rule that is the same for all problems; None if it depends on them."""
        if self.n_bins == SQRT or self.score_range == "support":
            return None
        return self._make_rule(self.bin_count(0), *self.range_of(None))

    def _make_rule(self, n_bins: int, low: float, high: float) -> BinRule:
        """Make the rule of so many bins of a range."""
        return BinRule(
            n_bins=n_bins,
            low=low,
            high=high,
            edges=self.edges if isinstance(self.edges, str) else tuple(self.edges),
            closed_right=self.closed == "right",
            is_convex=self.mapping == "convex",
            threshold=-math.inf if self.threshold is None else self.threshold,
        )

    def layout(self, problem: RowTable, n_bins: int) -> Layout:
        """Return the layout of the bins of one problem."""
        return layout_of(self.rule(problem, n_bins), problem)

    def place(self, sample: Sample, n_bins: int) -> Placement:
        """Find the cells of each row of a sample, and its shares of them."""
        return self.layout(one_problem(sample), n_bins).place(sample.s)

    def bins(
        self, table: RowTable, run: Map = map,
        kinds: Sequence[int] = (GAP, WEIGHT, SCORE, HITS, SQUARE),
    ) -> Bins:  # fmt: skip
        """Add up the rows of each problem of a table in its bins.

        The result has the sums of these `kinds`, and all that `errors` needs. Where every row
        counts 1 it has no squares, which would be the weights.
        """
        if table.c is None and not table.has_own_rows:
            return self._sum_problems(table, self._kinds_to_sum(kinds, table.v is not None), run)
        n_bins = self.bin_count(table.count())
        bins = []
        for sample in table.seen_by(self).samples():
            kinds_of_sample = self._kinds_to_sum(kinds, sample.v is not None)
            bins.append(sum_sample(self.rule(sample, n_bins), sample, kinds_of_sample))
        return join_bins(bins)

    def _sum_problems(self, problems: RowTable, kinds: Sequence[int], run: Map) -> Bins:
        """Add up the rows of each problem in its bins, with weights that do not overflow."""
        rule = self._rule_of_all
        if rule is None:
            rule = self.rule(problems, self.bin_count(problems.count()))
        n_classes = problems.n_problems
        if n_classes * rule.n_bins > MAX_BINS_OF_CLASSES:
            limit = f"must fit into memory: {MAX_BINS_OF_CLASSES} bins for {n_classes} classes"
            raise InputError("n_bins", limit, value=rule.n_bins)
        problems, unit = scale_weights(problems)
        bins = sum_bins(rule, problems, kinds, run)
        return bins if unit == 1.0 else bins._replace(unit=unit)

    def _kinds_to_sum(self, kinds: Sequence[int], has_weights: bool) -> tuple[int, ...]:
        """Return these kinds of sums and the kinds for `errors`, each once."""
        return merge_kinds(tuple(kinds), self._kinds_for_errors(has_weights), has_weights)

    def _kinds_for_errors(self, has_weights: bool) -> tuple[int, ...]:
        """Return the kinds of sums that `errors` needs, with or without weights of rows."""
        if self.debias:
            return (GAP, WEIGHT, HITS, SQUARE) if has_weights else (GAP, WEIGHT, HITS)
        return (GAP,) if self._needs_gaps_alone else (GAP, WEIGHT)

    @cached_property
    def _needs_gaps_alone(self) -> bool:
        """Whether `errors` needs the gaps of bins, and no other sum.

        A derived class may have `errors` that read the weights, whatever the parameters are.
        """
        is_sum_of_gaps = self.norm == 1 and self.bin_weights == "mass" and not self.debias
        return is_sum_of_gaps and self.threshold is None and type(self) is Binned

    def effective_rows(self, table: RowTable, bins: Bins) -> F64:
        """Compute the effective number of rows in each bin (K, B), 0 where it is empty.

        It is ``(sum w a)^2 / sum w^2 a`` with the shares a of the rows: Kish (1965, "Survey
        sampling", section 11.7).
        """
        rows = bins.weight.copy()
        if bins.square is not None:
            squares = bins.square * table.votes
            np.divide(rows**2, squares, out=rows, where=squares > 0)
        return rows

    # --- the error --------------------------------------------------------------------------

    def errors(self, bins: Bins) -> F64:
        """Compute the value (K,) of each problem from the sums of its bins."""
        gap = by_bin(bins.gap)
        weight = by_bin(bins.weight)
        total = bins.total
        is_equal = self.bin_weights == "equal"
        value = np.empty(total.size)
        if self.debias:
            square = NOT_SUMMED if bins.square is None else by_bin(bins.square)
            kernels.errors.debiased_errors(
                gap, weight, by_bin(bins.hits), square, total, is_equal=is_equal, norm=self.norm,
                out=value,
            )  # fmt: skip
            return value
        if self.norm in NORMS_OF_KERNEL:
            min_weight = self.min_count / bins.unit
            kernels.errors.norms(gap, weight, total, self.norm, is_equal, min_weight, value)
            return value
        return power_means(gap, weight, total, self.norm, is_equal)

    def parts(self, table: RowTable) -> F64:
        """Compute the error, its over part and its under part (3, K) of each problem."""
        bins = self.bins(table)
        gaps_of_parts = (bins.gap, np.minimum(bins.gap, 0.0), np.maximum(bins.gap, 0.0))
        return np.array([self.errors(bins._replace(gap=gaps)) for gaps in gaps_of_parts])

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a table."""
        rule = self.rule_of_gaps
        if rule is not None and table.prob.size < MIN_ROWS:
            return gap_errors(rule, table)
        kinds = self._kinds_for_errors(table.v is not None)
        return self.errors(self._sum_problems(table, kinds, run))

    @cached_property
    def rule_of_gaps(self) -> BinRule | None:
        """The rule of `gap_errors`; None if this has not the value of all problems."""
        rule = self._rule_of_all
        if rule is None or rule.n_bins > MAX_BINS_OF_FEW_ROWS or not self._needs_gaps_alone:
            return None
        return rule if rule.is_equal_mass or fixed_layout(rule).cells_are_bins else None

    @cached_property
    def equal_mass_bins(self) -> F64 | None:
        """Hard bins of equal mass as `plain_bins`, with cuts that are to be found."""
        rule = self.rule_of_gaps
        if rule is None or not rule.is_equal_mass or rule.is_convex:
            return None
        knots_to_be_found = np.zeros(rule.n_bins - 1)
        return np.array(
            [rule.low, rule.high, rule.n_bins, 0, rule.closed_right, *knots_to_be_found]
        )

    @cached_property
    def plain_bins(self) -> F64 | None:
        """Fixed hard bins as `kernels.plain` takes them; None if a value needs others."""
        rule = self._rule_of_all
        if rule is None or rule.is_equal_mass or not self._needs_gaps_alone:
            return None
        layout = fixed_layout(rule)
        if not layout.is_plain:
            return None
        grid = layout.grid
        return np.array([grid.low, grid.high, grid.n_bins, grid.even, grid.right, *grid.knots])

    # --- replicates -------------------------------------------------------------------------

    def prepare(self, sample: Sample, size: int) -> BinnedPlan:
        """Prepare a sample for draws of `size` rows."""
        sample, unit = scale_weights(sample)
        needs_no_weights = self._is_equal_mass and not self.debias
        if needs_no_weights and sample.v is not None and (sample.v == 1.0).all():
            # Weights of 1 mean that draws may have any size, as draws of groups have. Equal-mass
            # bins find the weight of a draw anyway, and take 0.7 times the time without weights.
            sample = replace(sample, v=None)
        rule = self.rule(sample, self.bin_count(size))
        kinds = self._kinds_for_errors(sample.v is not None)
        return plan_bins(rule, sample, unit, kinds, size)

    def evaluate(self, plan: BinnedPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(self.errors(self.bins_of_counts(plan, c))[0])

    def bins_of_counts(self, plan: BinnedPlan, c: NDArray[Any]) -> Bins:
        """Add up the rows in bins, row i of the sample ``c[i]`` times."""
        sample = replace(plan.sample, c=c.astype(np.float64))
        kinds = self._kinds_for_errors(sample.v is not None)
        return sum_sample(plan.rule, sample, kinds)._replace(unit=plan.unit)

    def values(self, plan: BinnedPlan, draws: Draws) -> F64:
        """Compute the value of each replicate."""
        if not isinstance(draws, Counts | Rows):
            return super().values(plan, draws)
        return np.concatenate([self.errors(plan.bins(part)) for part in plan.parts(draws)])


@lru_cache(maxsize=64)
def merge_kinds(
    kinds: tuple[int, ...], needed: tuple[int, ...], has_weights: bool
) -> tuple[int, ...]:
    """Return these kinds of sums, each once, and no squares where every row counts 1."""
    distinct = dict.fromkeys((*kinds, *needed))
    return tuple(kind for kind in distinct if has_weights or kind != SQUARE)


def power_means(gap: F64, weight: F64, total: F64, norm: float, is_equal: bool) -> F64:
    """Compute ``(sum_b W_b / W * |D_b / W_b|**p)**(1/p)`` (R,), or with 1/B as shares.

    The sums are as in `kernels.errors.norms`.
    """
    whole = np.maximum(total, kernels.errors.SMALLEST)
    is_filled = weight > (EMPTY * whole if is_equal else 0.0)
    gaps = np.divide(np.abs(gap), weight, out=np.zeros_like(gap), where=is_filled)
    share = 1.0 / len(gap) if is_equal else weight / whole
    # In units of the largest gap, since a large power of a small number would be 0.
    largest = gaps.max(axis=0, initial=kernels.errors.SMALLEST_GAP)
    with np.errstate(under="ignore"):
        means = add_bins(share * (gaps / largest) ** norm)
        return np.asarray(means ** (1 / norm) * largest)


# Makes the estimator with some parameters, or returns the one of an earlier call. It is for callers
# that have bins of their own, and need only `errors`.
formula_of: Callable[..., Binned] = lru_cache(maxsize=64)(Binned)
