"""The monotone sweep: the most equal-mass bins with nondecreasing hit rates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.parameters import check_real
from fastece.data.order import scale_weights
from fastece.data.sample import Sample
from fastece.estimators.base import Parameters
from fastece.estimators.binned.estimator import Binned, Bins
from fastece.typing import F64, I32

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check_real("norm", self.norm, 1.0))

    def prepare(self, sample: Sample, size: int) -> tuple[Sample, int]:
        """Return the sorted sample and the number of rows of a draw."""
        return scale_weights(sample)[0], size

    def evaluate(self, plan: tuple[Sample, int], c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        sample, size = plan
        w = c.astype(np.float64) if sample.v is None else c * sample.v
        is_exact = sample.v is None and c.dtype.kind in "ui"
        ends, _ = sweep_bins(sample, w, size, 0.0 if is_exact else TOLERANCE)
        begins = np.append(0, ends[:-1])
        gap, weight = (np.add.reduceat(x, begins) for x in (w * (sample.y - sample.s), w))
        bins = Bins([], 1.0, np.array([weight.sum()]), gap[None], weight[None])
        return float(Binned(norm=self.norm).errors(bins)[0])


def sweep_bins(sample: Sample, w: F64, most: int, tolerance: float) -> tuple[I32, int]:
    """Find the end of each occupied bin, and the number of all bins.

    The end is the row behind the last one, of a sorted sample with weights w.
    """
    n, kernel = sample.n, kernels.quantiles
    end, weight, hits, misses = np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n)
    guide = np.empty(n + 1, np.int32)
    count = kernel.run_sums(sample.s, sample.y, w, end, weight, hits, misses, guide)
    weight, hits, misses = weight[:count], hits[:count], misses[:count]
    guide, last = guide[: count + 1], np.empty(count, np.int32)
    n_bins = kernel.most_bins(weight, hits, misses, guide, most, tolerance)
    return end[last[: kernel.occupied_bins(weight, guide, n_bins, last)]], n_bins
