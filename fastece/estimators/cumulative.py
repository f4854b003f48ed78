"""Cumulative calibration errors: gaps added up in the order of the scores, without bins."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.options import ReadingKeywords, reading_options, shows_options
from fastece.data.parameters import check_choice
from fastece.data.reading import read_table
from fastece.data.samples import Sample, scale_weights
from fastece.estimators.base import Parameters, values_of_problems
from fastece.estimators.draws import Counts, Draws
from fastece.kernels.types import F64, U8

# Each law has two series, one for small and one for large numbers. Here both converge: the last of
# ten terms is less than 1e-60 of the first.
CROSSING = 1.5
# Below this number, the p-value is 1 to 1e-200.
MIN_RANGE = 0.05
# Numbers of the terms of the series, and the factors that they enter with.
K = np.arange(1.0, 11.0)
ODD = 2 * K - 1
SIGN = (-1) ** (K - 1)


class CumulativePlan(NamedTuple):
    """Prepared data of `CumulativeError` for one sorted sample and one size of draws.

    Attributes
    ----------
    size : int
        Number of rows of a draw.
    gap : (n,) float64 array
        Gap of each row, times its weight.
    weight : (n,) or (0,) float64 array
        Weights; empty where every row counts 1.
    is_last : (n,) uint8 array
        Whether the next row has another score.
    """

    size: int
    gap: F64
    weight: F64
    is_last: U8

    def extremes(self, c: NDArray[Any]) -> tuple[F64, F64]:
        """Compute the smallest and largest (G W,) cumulative gap for counts (G, n, W)."""
        shape = c.shape[0], c.shape[2]
        low = np.empty(shape)
        high = np.empty(shape)
        total = np.full(shape, float(self.size))  # overwritten where rows have weights
        kernels.vectors.cumulated_extremes(
            c, self.gap, self.weight, self.is_last, low, high, total
        )  # fmt: skip
        return (low / total).ravel(), (high / total).ravel()


@dataclass(frozen=True)
class CumulativeError(Parameters):
    """Cumulative calibration error: the range or the largest size of cumulated gaps.

    With the distinct scores ``u_1 < u_2 < ...`` the cumulative gap is ``C_0 = 0`` and
    ``C_k = sum_{s_i <= u_k} w_i (y_i - s_i) / W``. Its range is ``max C - min C``, the largest
    size of the sum of gaps over any range of scores; its largest size is ``max |C|``, over the
    ranges that begin at 0. Nothing is binned and nothing smoothed.

    Parameters
    ----------
    statistic : {"range", "max"}
        ``max C - min C``, which is "ecce_r", or ``max |C|``, which is "ecce_mad".

    Raises
    ------
    ValueError, TypeError
        For another statistic.

    Notes
    -----
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022, "Metrics of calibration for probabilistic
    predictions", section 2): ECCE-R and ECCE-MAD, the statistics of Kuiper and of Kolmogorov and
    Smirnov. Rows of one score are one step, so their order does not matter. Gaps that change their
    sign with the score cancel in a wide range, but not in the worst one, whose ends are found.

    A stream knows the gaps at the ends of its cells, and takes the scores of one cell as one.

    Examples
    --------
    >>> from fastece import CumulativeError, ece
    >>> round(ece([0, 1, 1, 0], [0.2, 0.4, 0.7, 0.9], estimator=CumulativeError()), 6)
    0.225
    >>> round(ece([0, 1, 1, 0], [0.2, 0.4, 0.7, 0.9], estimator="ecce_mad"), 6)
    0.175
    >>> print(CumulativeError("max"))
    CumulativeError(statistic='max')
    """

    statistic: Literal["range", "max"] = "range"

    native = (Counts,)
    lowest = 0.0
    largest = 1.0
    checks: ClassVar = {"statistic": partial(check_choice, choices=("range", "max"))}

    def prepare(self, sample: Sample, size: int) -> CumulativePlan:
        """Prepare a sorted sample for draws of `size` rows."""
        sample, _ = scale_weights(sample)
        is_last = sample.is_last_of_score.view(np.uint8)
        return CumulativePlan(size, sample.gaps, kernels.weights(sample.v), is_last)

    def evaluate(self, plan: CumulativePlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(self.errors(plan, np.ascontiguousarray(c, np.float64).reshape(1, -1, 1))[0])

    def values(self, plan: CumulativePlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts in one pass over the rows."""
        if isinstance(draws, Counts):
            return self.errors(plan, draws.blocks(plan.gap.size))
        return super().values(plan, draws)

    def errors(self, plan: CumulativePlan, c: NDArray[Any]) -> F64:
        """Compute the value (G W,) of each replicate with counts (G, n, W)."""
        low, high = plan.extremes(c)
        return high - low if self.statistic == "range" else np.maximum(high, -low)

    @shows_options
    def asymptotic_p_value(
        self, y_true: Any, y_prob: Any = None, **options: Unpack[ReadingKeywords]
    ) -> Any:
        """Compute the p-value of the hypothesis of calibration in closed form.

        No labels are drawn, so millions of rows take no longer than the value itself.

        Parameters
        ----------
        y_true, y_prob, **options
            As in `fastece.ece`: arrays or an `Accumulator`, and how to read them. Rows are
            independent.

        Returns
        -------
        float, or (K,) float64 array with ``setting="classwise"``

        Raises
        ------
        ValueError, TypeError
            As in `fastece.ece`.

        Notes
        -----
        For a calibrated model ``C_k W / sqrt(sum_i w_i**2 s_i (1 - s_i))`` is close to Brownian
        motion on [0, 1], where rows are many and none has most of the weight. Its range
        has the law of Feller (1951, "The asymptotic distribution of the range of sums of
        independent random variables", eq. 4.3), its largest size the law of Erdos and Kac (1946,
        "On certain limit theorems of the theory of probability"). A path of few steps stays below
        its limit, so the p-value is too large rather than too small: of few rows, or of scores with
        few distinct values, `fastece.calibration_test` is exact.

        Examples
        --------
        >>> import numpy as np
        >>> from fastece import CumulativeError
        >>> p = np.linspace(0.01, 0.99, 500)
        >>> y = np.random.default_rng(0).random(500) < p**1.3
        >>> print(f"{CumulativeError().asymptotic_p_value(y, p):.3f}")
        0.000
        """
        table = read_table(y_true, y_prob, reading_options(options))
        values = values_of_problems(self, table)
        samples = table.seen_by(self).samples(reads_only=True)
        pairs = zip(values, samples, strict=True)
        p_values = [self.p_value(float(value), null_deviation(sample)) for value, sample in pairs]
        return np.array(p_values) if table.setting.per_class else p_values[0]

    def p_value(self, value: float, deviation: float) -> float:
        """Compute the probability that Brownian motion exceeds a value in its own units."""
        if deviation == 0:
            return float(value == 0)
        law = range_survival if self.statistic == "range" else size_survival
        return law(value / deviation)


def cumulative_path(sample: Sample) -> tuple[F64, F64, F64]:
    """Return shares of the weight, cumulative gaps and scores of a sorted sample.

    Each (D + 1,) is before all rows, and then after each of D distinct scores.
    """
    plan = CumulativeError().prepare(sample, sample.n)
    ends = np.append(-1, np.flatnonzero(plan.is_last)) + 1
    weight = plan.weight if plan.weight.size else np.ones(sample.n)
    sums = [np.append(0.0, np.cumsum(x * sample.counts))[ends] for x in (weight, plan.gap)]
    share, gap = (x / sums[0][-1] for x in sums)
    return share, gap, sample.s[np.maximum(ends - 1, 0)]


def null_deviation(sample: Sample) -> float:
    """Compute the standard deviation of the mean gap of a calibrated model."""
    sample, _ = scale_weights(sample)
    weights = sample.total_weights
    of_label = sample.s * (1 - sample.s)
    variance = sample.votes * float(np.sum(weights * sample.weights * of_label))
    return math.sqrt(variance) / float(weights.sum())


# --- Brownian motion on [0, 1] --------------------------------------------------------------


def range_survival(x: float) -> float:
    """Compute the probability that the range of Brownian motion on [0, 1] exceeds x."""
    x = max(x, MIN_RANGE)
    if x >= CROSSING:
        return float(4 * (SIGN * K) @ tails(K * x))
    factors = 8 / x**2 + 8 / (math.pi * ODD) ** 2
    return float(1 - factors @ np.exp(-((ODD * math.pi / x) ** 2) / 2))


def size_survival(x: float) -> float:
    """Compute the probability that the size of Brownian motion on [0, 1] exceeds x."""
    x = max(x, MIN_RANGE)
    if x >= CROSSING:
        return float(2 * SIGN @ tails(ODD * x))
    return float(1 - 4 / math.pi * (SIGN / ODD) @ np.exp(-((ODD * math.pi / x) ** 2) / 8))


def tails(x: F64) -> F64:
    """Compute the probability of both tails of the normal law beyond x and -x."""
    return np.array([math.erfc(one / math.sqrt(2)) for one in x])
