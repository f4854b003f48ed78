"""Confidence intervals by test inversion: the true errors that fit the data.

A plug-in error exceeds its truth, because noise makes gaps, so an interval around it misses. But
the noise of a model with *given* gaps is known, and a test can decide for each true error whether
the error of the data is a likely one (Neyman 1937, "Outline of a theory of statistical estimation
based on the classical theory of probability"). Truths of one size differ in how much noise they let
in: most where a few gaps are large and the others are noise alone, least where every gap is as
large as its noise. So hypotheses lie on two paths, which begin at a calibrated model: the lower end
of the interval is where the first model with sparse gaps is not rejected, the upper end where the
last one with dense gaps is not.

At 0 only errors that are too large speak against a hypothesis; further on errors that are too small
do so too. The part of the risk that is spent on them grows with the power of the test of
calibration, up to a half: so an interval begins at 0 exactly where that test does not reject.

`cell_curves.py` makes the paths of errors that are norms of gaps, `label_curves.py` makes the paths
of all other errors.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from fastece.display.numbers import ConfidenceInterval
from fastece.kernels.types import F64

# The level of the test whose power decides how risk is shared.
LEVEL = 0.05
# An error below this quantile of the errors of a calibrated model is taken as that quantile: no
# statistic can tell that there is less error than its noise hides.
FLOOR_QUANTILE = 0.1
# Errors closer than this are equal: sums in another order round otherwise.
ROUNDING = 1e-12
# Hypotheses of a path that are evaluated.
NODES = 24
# The range of a path that matters is known to this part of its length, 1 / 8.
RANGE_PARTS = 8
# Steps of the searches for that range, which end much earlier.
MAX_HALVINGS = 60
MAX_DOUBLINGS = 60
# A hypothesis whose gaps are the largest possible ones.
FARTHEST = 1e12
# A lower end above 0 is at least this part of the first truth that fits.
MIN_FRACTION = 1e-6
# How fast the distribution of the difference of two errors passes from one path to the other: in
# the middle four fifths. At once, intervals of two models much alike are 1.7 times as wide.
PASSAGE = 1.25
# The p-value of hypotheses that no error is too small for.
MAX_P = 2.0


# --- the result: confidence curves ----------------------------------------------------------


class ErrorFunction(NamedTuple):
    """Values (M,) of a function of the true error, at increasing errors (M,)."""

    errors: F64
    values: F64


@dataclass(frozen=True, eq=False)
class ConfidenceCurve:
    """Ends of the intervals of all levels, and the p-value of a calibrated model.

    Attributes
    ----------
    p_value : float
    low : ErrorFunction
        The largest p-value of the true errors up to each.
    high : ErrorFunction
        The largest p-value of the true errors from each on.
    sparse, dense : ErrorFunction
        The share of replicates on either path that exceed the error of the data: the distribution
        functions of two confidence distributions.
    replicates : int
        Number of errors of a calibrated model that it is made from.
    null : (R,) float64 array
        These errors, which chance alone shows.
    """

    p_value: float
    low: ErrorFunction
    high: ErrorFunction
    sparse: ErrorFunction
    dense: ErrorFunction
    replicates: int
    null: F64

    def interval(self, level: float) -> ConfidenceInterval:
        """Return the interval of true errors with p-values above 1 - `level`.

        It is nan if there is no number.
        """
        if np.isnan(self.p_value):
            return ConfidenceInterval(np.nan, np.nan)
        alpha = round(1 - level, 12)  # 1 - 0.9 is less than 0.1, which p-values may be
        falling = ErrorFunction(self.high.errors[::-1], self.high.values[::-1])
        high = crossing(falling, alpha)
        if self.p_value > alpha:
            return ConfidenceInterval(0.0, high)
        low = min(crossing(self.low, alpha), crossing(falling, 1.0))
        return ConfidenceInterval(low, max(low, high))

    def quantiles(self, levels: F64) -> F64:
        """Compute quantiles (L,) of the confidence distribution of the true error.

        The low tail comes from the sparse path, the high tail from the dense path, and the middle
        from a mixture of both.
        """
        weight = np.clip(0.5 + PASSAGE * (levels - 0.5), 0.0, 1.0)
        on_paths = [
            np.interp(levels, path.values, path.errors) for path in (self.sparse, self.dense)
        ]
        low, high = np.sort(on_paths, axis=0)
        return np.asarray(low + weight * (high - low))


def crossing(curve: ErrorFunction, alpha: float) -> float:
    """Find the true error whose p-value is alpha, along increasing p-values."""
    errors, p_values = curve
    j = int(np.searchsorted(p_values, alpha, "right"))
    if j == 0 or j == p_values.size:
        return float(errors[min(j, p_values.size - 1)])
    # P-values fall like the tails of a normal law, so their logarithm is interpolated.
    over = np.log(p_values[j] / alpha)
    under = np.log(alpha / p_values[j - 1])
    weight = over / (over + under) if over + under > 0 else 0.0
    error = float(errors[j] + weight * (errors[j - 1] - errors[j]))
    return max(error, MIN_FRACTION * float(errors[j]))


# A p-value or an error that is not known.
NO_VALUES = np.full(1, np.nan)
UNKNOWN = ErrorFunction(NO_VALUES, NO_VALUES)
# The curve of an error that is no number.
NO_CURVE = ConfidenceCurve(
    p_value=np.nan,
    low=UNKNOWN,
    high=UNKNOWN,
    sparse=UNKNOWN,
    dense=UNKNOWN,
    replicates=0,
    null=NO_VALUES,
)
# The curve of an error on which no row bears, as if there is a threshold that no score exceeds: it
# may be anything from 0 to 1.
EITHER_END = ErrorFunction(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
NO_ROWS = replace(
    NO_CURVE,
    p_value=1.0,
    low=ErrorFunction(np.array([0.0]), np.array([1.0])),
    high=ErrorFunction(np.ones(1), np.ones(1)),
    sparse=EITHER_END,
    dense=EITHER_END,
)


# --- paths of hypotheses --------------------------------------------------------------------


class Path(NamedTuple):
    """Hypotheses ``m >= 0``, calibrated at 0, along which both functions grow.

    Attributes
    ----------
    sizes : callable
        The true errors (M,) of some hypotheses (M,).
    errors : callable
        The errors (M, R) of replicates of these.
    nodes : int
        Number of hypotheses that are evaluated.
    """

    sizes: Callable[[F64], F64]
    errors: Callable[[F64], F64]
    nodes: int = NODES


class Evidence(NamedTuple):
    """The error of the data, as tests of hypotheses look at it.

    Attributes
    ----------
    seen : float
        The error of the data; replicates that are as large speak for a hypothesis.
    floor : float
        The same error for the other tail, where replicates that are as small do: it is raised to
        what noise alone shows.
    critical : float
        The error that a calibrated model exceeds with the probability `LEVEL`.
    """

    seen: float
    floor: float
    critical: float


class PathScan(NamedTuple):
    """Tests of the hypotheses (M,) of a path.

    Attributes
    ----------
    sizes : (M,) float64 array
        Their true errors.
    above, below : (M,) float64 array
        The shares of replicates whose errors are at least, and at most, the error of the data.
    small_risk : (M,) float64 array
        The part of the risk that is spent on errors that are too small.
    """

    sizes: F64
    above: F64
    below: F64
    small_risk: F64


def scan_path(path: Path, evidence: Evidence) -> PathScan:
    """Test hypotheses of a path in the range that matters, and at 0."""
    start, end = path_range(path, evidence)
    hypotheses = np.linspace(start, end, path.nodes)
    if start > 0:
        hypotheses = np.concatenate([[0.0], hypotheses])
    errors = path.errors(hypotheses)
    count = errors.shape[1] + 1
    power = (errors > evidence.critical + ROUNDING).mean(1)
    return PathScan(
        sizes=path.sizes(hypotheses),
        above=(1 + (errors >= evidence.seen - ROUNDING).sum(1)) / count,
        below=(1 + (errors <= evidence.floor + ROUNDING).sum(1)) / count,
        small_risk=np.clip((power - LEVEL) / (1 - LEVEL), 0.0, 1.0) / 2,
    )


@dataclass
class Bracket:
    """Ends of a range in which a condition, true at the low end, ceases to be true."""

    low: float
    high: float
    condition: Callable[[float], bool]

    @property
    def width(self) -> float:
        """Distance of the ends."""
        return self.high - self.low

    def halve(self) -> None:
        """Keep the half in which the condition ceases to be true."""
        middle = (self.low + self.high) / 2
        if self.condition(middle):
            self.low = middle
        else:
            self.high = middle


def path_range(path: Path, evidence: Evidence) -> tuple[float, float]:
    """Find the first and the last hypothesis of a path that matter.

    Replicates of hypotheses before never reach the error of the data, and replicates of hypotheses
    after all exceed its floor. Both are known to an eighth of the way between them, which is some
    standard errors long: of 20 000 rows with a gap of 0.4, a hundredth of the way from no gap.
    """

    # The searches for both ends begin alike, and a hypothesis may cost as much as a bootstrap.
    @cache
    def errors_of(m: float) -> F64:
        return path.errors(np.array([m]))

    def is_before(m: float) -> bool:
        return not (errors_of(m) >= evidence.seen - ROUNDING).any()

    def is_within(m: float) -> bool:
        return bool((errors_of(m) <= evidence.floor + ROUNDING).any())

    end = 1.0
    is_end_within = True
    for _ in range(MAX_DOUBLINGS):
        size, next_size = path.sizes(np.array([end, 2 * end]))
        is_end_within = is_within(end)
        if not is_end_within or next_size <= size:
            break
        end *= 2
    first = Bracket(0.0, end if is_before(0.0) else 0.0, is_before)
    last = Bracket(end if is_end_within else 0.0, end, is_within)
    for _ in range(MAX_HALVINGS):
        bracket = first if first.width > last.width else last
        if bracket.width <= (last.high - first.low) / RANGE_PARTS:
            break
        bracket.halve()
    return first.low, last.high


# --- from paths to curves -------------------------------------------------------------------


def invert(
    null: F64, seen: float, row: float, sparse: Path | None, dense: Path, share: float = 1.0
) -> ConfidenceCurve:
    """Invert the tests of the hypotheses on two paths to a confidence curve.

    A hypothesis has the p-value ``above / min(1 - small_risk, share)`` for errors that are too
    large, and ``below / small_risk`` for errors that are too small, as in `PathScan`.

    Parameters
    ----------
    null : (R,) float64 array
        Errors of a calibrated model.
    seen : float
        The error of the data.
    row : float
        The smallest difference that a single row makes.
    sparse : Path or None
        Truths with a few large gaps; None where no gap is clear.
    dense : Path
        Truths whose gaps are all as large as their noise.
    share : float
        The largest part of the risk that is spent on errors that are too large.
    """
    if np.isnan(seen) or np.isnan(null).any():
        return NO_CURVE
    p_value = float((1 + (null >= seen - ROUNDING).sum()) / (null.size + 1))
    p_value = min(1.0, p_value / share)
    evidence = weigh_error(null, seen, row)
    upper = scan_path(dense, evidence)
    lower = upper if sparse is None else scan_path(sparse, evidence)

    p_too_large = lower.above / np.minimum(1 - lower.small_risk, share)
    p_too_large[0] = p_value
    p_too_small = np.minimum(MAX_P, upper.below / np.maximum(upper.small_risk, 1e-300))
    # Beyond the last hypothesis, replicates only show that p is not larger.
    sizes_to_end = np.append(upper.sizes, dense.sizes(np.array([FARTHEST])))
    p_to_end = np.append(p_too_small, p_too_small[-1])
    return ConfidenceCurve(
        p_value=p_value,
        low=ErrorFunction(lower.sizes, np.maximum.accumulate(p_too_large)),
        high=ErrorFunction(sizes_to_end, np.maximum.accumulate(p_to_end[::-1])[::-1]),
        sparse=ErrorFunction(lower.sizes, np.maximum.accumulate(lower.above)),
        dense=ErrorFunction(upper.sizes, np.maximum.accumulate(1 - upper.below)),
        replicates=null.size,
        null=null,
    )


def weigh_error(null: F64, seen: float, row: float) -> Evidence:
    """Compare the error of the data with the errors (R,) of a calibrated model.

    An error that is smaller by less than a row is not smaller: binomial noise may miss the steps a
    bit.
    """
    rank = int(np.ceil((1 - LEVEL) * (null.size + 1)))
    critical = np.sort(null)[min(null.size, rank) - 1]
    floor = max(seen, float(np.quantile(null, FLOOR_QUANTILE)), row / 2) + row / 4
    return Evidence(seen, floor, float(critical))
