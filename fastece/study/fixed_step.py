"""The density-based estimator on the paper's fixed grid, in plain numpy.

`fastece.KDE` chooses a grid that fits its bandwidth. The paper (Posocco and Bonnefoy 2021,
"Estimating expected calibration errors", section 3) has a triweight kernel on a grid of step
0.0003, whatever the bandwidth. A study takes it as the candidate
``fastece.study.fixed_step:FixedStepDensity``, and any call takes it as its estimator.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample
from fastece.kernels.types import F64

# A triweight kernel of standard deviation h ends at 3 h.
REACH = 3.0


@dataclass(frozen=True)
class FixedStepDensity:
    """Calibration error from triweight densities on a grid of a fixed step.

    Each score is shared linearly by the two points around it, the sums are convolved with the
    kernel, which is reflected at both ends of the support, and ``int |g(s) - s f(s)| ds`` is a sum
    over the points.

    Parameters
    ----------
    bandwidth : float
        Standard deviation of the kernel, which should be well above the step.
    step : float
        Distance of the points, rounded to a fraction of the range.

    Examples
    --------
    >>> from fastece import ece
    >>> from fastece.study.fixed_step import FixedStepDensity
    >>> print(f"{ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=FixedStepDensity()):.3f}")
    0.280
    """

    bandwidth: float = 0.1
    step: float = 0.0003

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sample."""
        return sample

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """Compute the value when row i of the sample counts ``c[i]`` times."""
        low = plan.low
        width = plan.high - low
        n_points = max(1, round(width / self.step))
        place = (plan.s - low) / width * n_points - 0.5
        weight = plan.weights * c
        f = self.smooth(place, weight, n_points, width)
        g = self.smooth(place, weight * plan.y, n_points, width)
        score = low + width * (np.arange(n_points) + 0.5) / n_points
        return float(np.abs(g - score * f).sum() / weight.sum())

    def smooth(self, place: F64, weight: F64, n_points: int, width: float) -> F64:
        """Smooth weights (n,) of rows at places along the points into weights (G,)."""
        from scipy.signal import fftconvolve

        left = np.floor(place).astype(np.int64)
        share = place - left
        cells = np.bincount(left + 1, weight * (1 - share), n_points + 2)
        cells += np.bincount(left + 2, weight * share, n_points + 2)
        cells[1] += cells[0]
        cells[-2] += cells[-1]
        distance = width / n_points / min(self.bandwidth, 10 * width)
        reach = math.ceil(REACH / distance)
        u = np.arange(-reach, reach + 1) * distance
        kernel = (1 - (u / REACH) ** 2).clip(0) ** 3
        reflected = np.pad(cells[1:-1], reach, mode="symmetric")
        smoothed = fftconvolve(reflected, kernel / kernel.sum(), mode="valid")
        return np.asarray(smoothed.clip(0))
