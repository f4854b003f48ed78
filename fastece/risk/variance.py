"""How sums over rows vary: quantities with normal intervals, for independent rows or for groups."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fastece.display.numbers import ConfidenceInterval
from fastece.display.results import Record
from fastece.kernels.types import F64
from fastece.resampling.groups import Groups

# Sums of a smaller part of their largest term are rounding errors.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Quantity(Record):
    """One quantity of a validation.

    Attributes
    ----------
    value : float
        nan where it is not defined.
    confidence_interval : ConfidenceInterval or None
    p_value : float or None
        The p-value of a test; for the intercept, the slope and O/E, of their ideal value.
    """

    value: float
    confidence_interval: ConfidenceInterval | None = None
    p_value: float | None = None

    def with_interval_of(self, other: "Quantity", scale: Callable[[float], Any]) -> "Quantity":
        """Return the quantity with the interval of another one, taken to its own scale."""
        if other.confidence_interval is None:
            return self
        with np.errstate(over="ignore"):  # an end beyond all numbers is infinite
            low, high = map(scale, other.confidence_interval)
        return replace(self, confidence_interval=ConfidenceInterval(float(low), float(high)))


class SamplingLaw(NamedTuple):
    """How sums over rows vary: the rows are independent, or groups of them are.

    Attributes
    ----------
    groups : Groups or None
        None where rows are independent.
    level : float
        The confidence level of intervals.
    counts : (n,) float64 array or None
        How many independent rows each row stands for; None where it is one. Terms are sums over
        all of them.
    """

    groups: Groups | None
    level: float
    counts: F64 | None = None

    def independent_sums(self, terms: F64) -> F64:
        """Sum up the terms (n, ...) of each group, with a correction for few groups.

        Independent rows are returned as they are, and those that stand for c rows so that the sum
        of squares is the one of these: c times the square of a c-th.
        """
        if self.groups is None:
            return terms if self.counts is None else (terms.T / np.sqrt(self.counts)).T
        count = self.groups.count
        sums = np.zeros((count, *terms.shape[1:]))
        np.add.at(sums, self.groups.of_row, terms)
        # Terms that cancel in a group leave a rounding error, which is no variance.
        sums[np.abs(sums) <= ROUNDING * np.abs(terms).max(axis=0)] = 0
        return sums * math.sqrt(count / (count - 1))

    def standard_error(self, terms: F64) -> float:
        """Compute the standard deviation of the sum of terms (n,) with mean 0."""
        sums = self.independent_sums(terms)
        # The squares of 1e200 and of 1e-200 are no numbers.
        unit = float(np.abs(sums).max())
        return unit * float(np.linalg.norm(sums / unit)) if 0 < unit < math.inf else unit

    def quantile(self) -> float:
        """Return the normal quantile of the level; for groups, Student's."""
        if self.groups is None:
            return NormalDist().inv_cdf((1 + self.level) / 2)
        from scipy.special import stdtrit

        return float(stdtrit(self.groups.count - 1, (1 + self.level) / 2))

    def p_value(self, z: float) -> float:
        """Compute the two-sided p-value of a statistic in standard errors."""
        if self.groups is None:
            return math.erfc(abs(z) / math.sqrt(2))
        from scipy.special import stdtr

        return float(2 * stdtr(self.groups.count - 1, -abs(z)))

    def quantity(
        self,
        value: float,
        influences: F64,
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> Quantity:
        """Make a quantity with a normal interval.

        Parameters
        ----------
        value : float
        influences : (n,) float64 array
            The influence of each row on the value; their sum has mean 0.
        low, high : float
            The range of the value, which the interval does not leave.
        """
        standard_error = self.standard_error(influences)
        if not (0 < standard_error < math.inf and math.isfinite(value)):
            return Quantity(value)
        margin = self.quantile() * standard_error
        return Quantity(
            value, ConfidenceInterval(max(value - margin, low), min(value + margin, high))
        )


def wilson_interval(rate: float, influences: F64, law: SamplingLaw) -> ConfidenceInterval:
    """Compute Wilson's interval of a rate, whose rows have these influences (n,).

    The number of rows in the formula is the one that gives the rate its variance (Wilson 1927,
    "Probable inference, the law of succession, and statistical inference").
    """
    standard_error = law.standard_error(influences)
    z = law.quantile()
    n = float(influences.size if law.counts is None else law.counts.sum())
    if standard_error > 0:
        n = rate * (1 - rate) / standard_error**2
    centre = rate + z * z / (2 * n)
    margin = z * math.sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2)
    scale = 1 + z * z / n
    return ConfidenceInterval(
        max(centre - margin, 0.0) / scale, min((centre + margin) / scale, 1.0)
    )
