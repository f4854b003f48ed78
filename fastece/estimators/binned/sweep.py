"""`Sweep`: as many equal-mass bins as have hit rates that do not decrease."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data import parameters
from fastece.data.samples import Sample, scale_weights
from fastece.estimators.base import Parameters
from fastece.estimators.binned.estimator import formula_of
from fastece.estimators.binned.sums import Bins
from fastece.kernels.types import F64, U8

# Hit rates that differ by less are equal, where weights are rounded.
TOLERANCE = 1e-12


class SweepPlan(NamedTuple):
    """A sorted sample, and the largest number of bins: the rows of a draw."""

    sample: Sample
    max_bins: int


@dataclass(frozen=True)
class Sweep(Parameters):
    """Calibration error over the most equal-mass bins with nondecreasing hit rates.

    Bins and value are the same as of ``Binned(n_bins=B, edges="quantile")``. B is the largest
    number, at most the number of rows, such that for each of 1, 2, ..., B bins no occupied bin has
    a lower hit rate than the one before it. So bins are as narrow as they can be while each shows
    more than noise, if the hit rate is assumed to rise with the score.

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

    lowest = 0.0
    largest = 1.0
    checks: ClassVar = {"norm": partial(parameters.check_real, low=1.0)}

    def prepare(self, sample: Sample, size: int) -> SweepPlan:
        """Prepare a sorted sample for draws of `size` rows."""
        scaled, _ = scale_weights(sample)
        return SweepPlan(scaled, size)

    def evaluate(self, plan: SweepPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        sample = plan.sample
        is_exact = sample.v is None and c.dtype.kind in "ui"
        if sample.v is not None:
            w = c * sample.v
        elif is_exact and (c == 1).all():
            w = kernels.NO_WEIGHTS  # half of the time, and the same bits
        else:
            w = c.astype(np.float64)
        tolerance = 0.0 if is_exact else TOLERANCE
        return self.error(sample.s, sample.y, w, plan.max_bins, tolerance)

    def error(self, s: F64, y: U8, w: F64, max_bins: int, tolerance: float) -> float:
        """Compute the value of rows in order; without weights, every row counts 1."""
        end, _ = kernels.quantiles.sweep_bins(s, y, w, max_bins, tolerance)
        begin = np.append(0, end[:-1])
        gap = y - s
        if w.size:
            gap = w * gap
            weight = np.add.reduceat(w, begin)
        else:
            weight = (end - begin).astype(np.float64)
        bins = Bins(
            edges=[], unit=1.0, total=np.array([weight.sum()]),
            gap=np.add.reduceat(gap, begin)[None], weight=weight[None],
        )  # fmt: skip
        return float(formula_of(norm=self.norm).errors(bins)[0])
