"""Silverman's rule: the bandwidth of each replicate, from its own scores."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.problems.order import order_rows, quantile_edges
from fastece.protocol import Sample

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

F64 = NDArray[np.float64]

# Bandwidth where all scores are equal, and the smallest that the rule gives.
SMALLEST = 3e-4
# Distance between the quartiles of a normal distribution, in standard deviations.
IQR_OF_NORMAL = 1.349


def silverman(spreads: F64, size: int) -> F64:
    """``max(0.0003, min(sd, IQR / 1.349) * (3 n / 4)**(-1/5))`` of each replicate of n = `size`
    rows, from `spreads` (4, R): weight W, sums of ``w x`` and ``w x**2``, and IQR.

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
    """The scores of a sorted sample in a range, as the rule adds them up for replicates: x is the
    distance from the middle of all, so that squares do not cancel."""

    sample: Sample
    low: float
    high: float

    @cached_property
    def centre(self) -> float:
        """The mean of the scores."""
        return float(np.average(self.sample.s, weights=self.sample.v))

    @cached_property
    def rows(self) -> "OrderedRows":
        """The rows with runs of equal scores."""
        return order_rows(self.sample, self.low, self.high)

    @cached_property
    def terms(self) -> F64:
        """What each row adds to the sums of w x and w x**2 (2, n)."""
        x = self.rows.u - self.centre
        terms = np.stack([x, x * x])
        return terms if self.rows.v is None else terms * self.rows.v

    def of_blocks(self, c: NDArray[np.uint8]) -> F64:
        """Spreads (4, 32 G) of replicates with multiplicities (G, n, 32)."""
        rows, out = self.rows, np.empty((4, c.shape[0] * c.shape[2]))
        kernels.density.spreads(
            c, rows.u, rows.v, rows.run, rows.first, rows.order, self.terms, rows.low, rows.high,
            out,
        )  # fmt: skip
        return out

    def of_weights(self, c: NDArray[Any]) -> F64:
        """Spreads (4, 1) of one replicate, in which row i counts ``c[i]`` times."""
        c, v = c.astype(np.float64), self.rows.v
        w = c if v is None else c * v
        edges, _ = quantile_edges(self.rows.u, w, 4, self.low, self.high, right=True)
        return np.array([w.sum(), *(self.terms @ c), edges[3] - edges[1]])[:, None]

    def of_rows(self, rows: NDArray[np.int32]) -> F64:
        """Spreads (4, R) of drawn rows (R, size): nothing is computed for the others."""
        ordered, v, out = np.sort(rows, axis=1), self.sample.v, np.empty((4, len(rows)))
        w = None if v is None else v[ordered]
        u = self.sample.s[ordered]
        kernels.density.drawn_spreads(u, w, self.centre, self.low, self.high, out)
        return out
