"""Silverman's rule: the bandwidth of each replicate, from its own scores."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fastece.data.order import order_rows
from fastece.data.sample import Sample
from fastece.typing import F64

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows


# Bandwidth where all scores are equal, and the smallest that the rule gives.
SMALLEST = 3e-4
# Distance between the quartiles of a normal distribution, in standard deviations.
IQR_OF_NORMAL = 1.349


def silverman(spreads: F64, size: int) -> F64:
    """``max(0.0003, min(sd, IQR / 1.349) * (3 n / 4)**(-1/5))`` of each replicate of n = `size`
    rows, from `spreads` (4, R): weight W, sums of ``w (s - a)`` and ``w (s - a)**2``, and IQR.

    With ``sd**2 = sum w (s - m)**2 / W * n / (n - 1)`` and the distance IQR between the quartiles,
    which is left out where it is 0: Silverman (1986, "Density estimation for statistics and data
    analysis", section 3.4.2), with the factor of a normal density.
    """
    weight, first, second, iqr = spreads
    if size == 1:
        return np.full(weight.size, SMALLEST)
    variance = (second - first * (first / weight)) / weight * (size / (size - 1))
    sd = np.sqrt(np.maximum(variance, 0.0))
    width = np.where(iqr > 0, np.minimum(sd, iqr / IQR_OF_NORMAL), sd)
    return np.asarray(np.maximum(SMALLEST, width * (0.75 * size) ** -0.2))


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a sorted sample in a range, as the rule adds them up for replicates."""

    sample: Sample
    low: float
    high: float

    @cached_property
    def centre(self) -> float:
        """The mean of the scores: squares of distances from it do not cancel."""
        return float(np.average(self.sample.s, weights=self.sample.v))

    @cached_property
    def rows(self) -> "OrderedRows":
        """The rows with runs of equal scores."""
        return order_rows(self.sample, self.low, self.high)

    @cached_property
    def terms(self) -> F64:
        """Weights times distances from the middle, and times their squares (2, n)."""
        x = self.rows.u - self.centre
        terms = np.stack([x, x * x])
        return terms * self.rows.v if self.rows.v.size else terms
