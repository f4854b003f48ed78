"""Maximum mean calibration error, with a Laplacian kernel."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.errors import InputError
from fastece.checks.parameters import check_real
from fastece.data.order import scale_weights
from fastece.data.sample import Sample
from fastece.estimators.base import Counts, Draws, Parameters, Plan
from fastece.typing import F64


@dataclass(frozen=True)
class PairsPlan(Plan):
    """Prepared data of `MMCE` for one sorted sample and one size of draws."""

    sample: Sample
    size: int
    width: float

    @cached_property
    def rows(self) -> tuple[F64, F64, F64, F64]:
        """Weighted gap, weight, and decay and loss of the kernel at the next row.

        The decay is the factor that is left of the kernel of a row at the next; the loss is the
        part of its square that is lost. Without weights there is no weight.
        """
        sample = self.sample
        gap, weight = sample.y - sample.s, kernels.weights(sample.v)
        step = np.full(sample.n, -np.inf)  # nothing is behind the last
        np.subtract(sample.s[:-1], sample.s[1:], out=step[:-1])
        step /= self.width
        decay, loss = np.exp(step), -np.expm1(2 * step)
        return gap if sample.v is None else gap * weight, weight, decay, loss

    def values(self, c: NDArray[Any]) -> F64:
        """Compute the errors (G W,) of replicates with counts (G, n, W)."""
        out = np.empty((c.shape[0], c.shape[2]))
        total = np.full_like(out, self.size)
        kernels.vectors.pair_sums(c, *self.rows, out, total)
        return np.asarray(np.sqrt(out.ravel()) / total.ravel())


@dataclass(frozen=True)
class MMCE(Parameters):
    """Maximum mean calibration error.

    How large the mean gap is that a smooth function of the score finds.

    ``sqrt(sum_ij w_i w_j (y_i - s_i) (y_j - s_j) exp(-|s_i - s_j| / width)) / W``, over all pairs
    of rows, each with itself too. It is computed in linear time, once rows are sorted.

    Parameters
    ----------
    width : float
        Of the kernel, greater than 0, in units of the score.

    Raises
    ------
    ValueError, TypeError
        For a width that is not positive and finite.

    Notes
    -----
    Kumar, Sarawagi and Jain (2018, "Trainable calibration measures for neural networks from kernel
    mean embeddings", eq. 3 and section 3, with their Laplacian kernel of width 0.4).

    Since the kernel decays by one factor from each score to the next, the kernels of all rows up to
    one add up to ``T_i = r_i + e_i T_(i-1)``, with ``r_i = w_i (y_i - s_i)`` and the factor e_i,
    and the sum over all pairs is ``sum_i T_i**2 (1 - e_(i+1)**2)``, which is never negative.

    Examples
    --------
    >>> from fastece import MMCE, ece
    >>> round(ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=MMCE()), 6)
    0.226522
    >>> print(MMCE())
    MMCE(width=0.4)
    """

    width: float = 0.4

    native = (Counts,)

    def __post_init__(self) -> None:
        width = check_real("width", self.width, 0.0)
        if not 0 < width < np.inf:
            raise InputError("width", "must be positive and finite", value=self.width)
        object.__setattr__(self, "width", width)

    def prepare(self, sample: Sample, size: int) -> PairsPlan:
        """Prepare a sample for draws of `size` rows."""
        return PairsPlan(scale_weights(sample)[0], size, self.width)

    def evaluate(self, plan: PairsPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(plan.values(np.ascontiguousarray(c, np.float64).reshape(1, -1, 1))[0])

    def values(self, plan: PairsPlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts in one pass over the rows."""
        if isinstance(draws, Counts):
            return plan.values(draws.blocks(plan.sample.n))
        return super().values(plan, draws)
