"""Silverman's rule: the bandwidth of each replicate, from its own scores."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.problems.order import quantile_edges

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

__all__ = ["SMALLEST", "Scores", "drawn_spreads", "scores_of", "silverman"]

F64 = NDArray[np.float64]

# Bandwidth where all scores are equal, and the smallest that the rule gives.
SMALLEST = 3e-4
# Distance between the quartiles of a normal distribution, in standard deviations.
IQR_OF_NORMAL = 1.349


def silverman(spreads: F64, size: int) -> F64:
    """``max(0.0003, min(sd, IQR / 1.349) * (3 n / 4)**(-1/5))`` of each replicate.

    With ``sd**2 = sum w (s - m)**2 / W * n / (n - 1)`` and the distance IQR between the quartiles,
    which is left out where it is 0: Silverman (1986, "Density estimation for statistics and data
    analysis", section 3.4.2), with the factor of a normal density.

    Parameters
    ----------
    spreads : (4, R) float64 array
        Weight, sums of ``w (s - a)`` and of ``w (s - a)**2`` about some a, and IQR.
    size : int
        Number n of rows of a draw.
    """
    weight, first, second, iqr = spreads
    if size == 1:
        return np.full(weight.size, SMALLEST)
    variance = (second - first * (first / weight)) / weight * (size / (size - 1))
    sd = np.sqrt(np.maximum(variance, 0.0))
    width = np.where(iqr > 0, np.minimum(sd, iqr / IQR_OF_NORMAL), sd)
    return np.asarray(np.maximum(SMALLEST, width * (0.75 * size) ** -0.2))


class Scores(NamedTuple):
    """Rows in increasing order of the score, with what the rule adds up of each."""

    ordered: "OrderedRows"
    terms: F64

    def of_blocks(self, c: NDArray[np.uint8]) -> F64:
        """Spreads (4, 32 G) of replicates with multiplicities (G, n, 32)."""
        rows = self.ordered
        out = np.empty((4, c.shape[0] * c.shape[2]))
        kernels.density.spreads(
            c, rows.u, rows.v, rows.run, rows.first, rows.order, self.terms, rows.low, rows.high,
            out,
        )  # fmt: skip
        return out

    def of_weights(self, c: NDArray[Any]) -> F64:
        """Spreads (4, 1) of one replicate, in which row i counts ``c[i]`` times."""
        rows = self.ordered
        w = c * rows.v if rows.v.size else c.astype(np.float64)
        edges, _ = quantile_edges(rows.u, w, 4, rows.low, rows.high, right=True)
        sums = self.terms @ c.astype(np.float64)
        return np.array([[w.sum()], [sums[0]], [sums[1]], [edges[3] - edges[1]]])


def scores_of(ordered: "OrderedRows", centre: float) -> Scores:
    """The scores about their middle, so that squares do not cancel."""
    x = ordered.u - centre
    terms = np.stack([x, x * x])
    return Scores(ordered, terms * ordered.v if ordered.v.size else terms)


def drawn_spreads(u: F64, w: F64 | None, centre: float, low: float, high: float) -> F64:
    """Spreads (4, R) of drawn scores (R, size), each line in increasing order, about the middle of
    all: of the others in the sample nothing else is needed."""
    out = np.empty((4, len(u)))
    w = np.empty((0, 0)) if w is None else w
    kernels.density.drawn_spreads(u, w, centre, low, high, out)
    return out
