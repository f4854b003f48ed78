"""Calibration errors with the names, arguments and numbers of relplot.

Functions are those of ``relplot.metrics`` (Blasiok and Nakkiran 2023, "Smooth ECE: principled
reliability diagrams via kernel smoothing"), which is not imported.

Where it departs from `fastece.ece`, and why that matters. `binnedECE` has ten bins, closed at the
left, and a score of 1 has a bin of its own, unless rounding puts it into the last one. `smECE`
finds its scale to 1/1024, cuts the kernel off at a distance of 1/2, looks at 200 points and counts
a score of exactly 0 or 1 half; ``fastece.ece(y, f, estimator="smooth_ece")`` is the integral that
it stands for, and differs in the third digit.

>>> from fastece.compat.relplot import binnedECE, smECE
>>> binnedECE([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1], nbins=2)
np.float64(0.29)
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.parameters import check_flag, check_real
from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.reading import Names, scores_of
from fastece.typing import F64

NAMES = Names("y", "f", "f")
# Points at which the smooth gaps are looked at, in all and per scale.
POINTS, POINTS_PER_SCALE = 200, 10
# Points of the kernel, in all and per scale; rows are spread over half of them.
KERNEL_POINTS, KERNEL_POINTS_PER_SCALE = 2000, 20
# Added to the density, so that it can be divided by.
LEAST_DENSITY = 1e-4
HALVINGS = 10
# Most models are better than that: six halvings are saved.
SMALL_SCALE = 1 / 64
# A scale below this needs a grid of more than 2**22 points.
LEAST_SCALE, LARGEST_SCALE = 5e-6, 1e6
# The kernels of finer ones take megabytes.
LEAST_KEPT = 1 / 1024


def binnedECE(f: Any, y: Any, nbins: int = 10) -> np.float64:  # noqa: N802
    """Calibration error in bins of equal width, as relplot has it.

    Parameters
    ----------
    f : (n,) array_like of float
        Probabilities of class 1.
    y : (n,) array_like of int
        0 or 1.
    nbins : int, default 10
        Number of bins.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    Unlike `fastece.ece`, bins are closed at the left, with edges where ``int(f / (1 / nbins))``
    changes, and a score of 1 is in a bin of its own or, for some `nbins`, in the last: with rounded
    scores the second digit may differ.

    Examples
    --------
    >>> binnedECE([0.25, 0.25, 0.55, 0.75, 1.0], [0, 0, 1, 1, 0]).round(4)
    np.float64(0.44)
    """
    score, nbins = read_scores(f), check_bins("nbins", nbins)
    return NAMES.error(y, score, CONVENTIONS["relplot"].binned(nbins, score))


@overload
def smECE(f: Any, y: Any, eps: float = ..., return_width: Literal[False] = ...) -> np.float64: ...
@overload
def smECE(
    f: Any, y: Any, eps: float = ..., *, return_width: Literal[True]
) -> tuple[np.float64, float]: ...
def smECE(  # noqa: N802
    f: Any, y: Any, eps: float = 0.001, return_width: bool = False
) -> np.float64 | tuple[np.float64, float]:
    """Smooth calibration error at the scale that it equals, nearly, as relplot has it.

    Parameters
    ----------
    f, y
        As in `binnedECE`.
    eps : float, default 0.001
        A scale below this is small enough.
    return_width : bool, default False
        Whether the scale is returned as well.

    Returns
    -------
    numpy.float64, or (numpy.float64, float)

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    Algorithm 1 of Blasiok and Nakkiran (2023): ten halvings of [0, 1] look for the scale, so it is
    right to 1/1024. ``fastece.ece(y, f, estimator="smooth_ece")`` is the integral at the scale that
    it equals: a few thousandths of it apart, more for errors near `eps`.

    Examples
    --------
    >>> smECE([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).round(4)
    np.float64(0.1415)
    """
    eps, return_width = check_real("eps", eps, 0.0), check_flag("return_width", return_width)
    error = smooth_error(f, y)

    def is_enough(scale: float) -> bool:
        return bool(scale < eps or scale < error(scale))

    # Smoothing more makes gaps no larger: what is not enough here is not at twice as much.
    scale, low, halvings = 1.0, 0.0, HALVINGS
    if not is_enough(SMALL_SCALE):
        scale, halvings = SMALL_SCALE, HALVINGS + round(math.log2(SMALL_SCALE))
    elif is_enough(scale):
        halvings = 0
    for _ in range(halvings):
        middle = (low + scale) / 2
        low, scale = (middle, scale) if is_enough(middle) else (low, middle)
    return (error(scale), scale) if return_width else error(scale)


def smECE_sigma(f: Any, y: Any, sigma: float = 0.05) -> np.float64:  # noqa: N802
    """Smooth calibration error at a scale, as relplot has it.

    Parameters
    ----------
    f, y
        As in `binnedECE`.
    sigma : float, default 0.05
        Standard deviation of the kernel, from 5e-6 to 1e6.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    Unlike `fastece.SmoothECE`, the gaps are looked at in 200 points or ten per scale, the ends
    counting as much as the others, and the kernel is cut off at a distance of 1/2: at scales above
    0.2 the value is another one.

    Examples
    --------
    >>> smECE_sigma([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).round(4)
    np.float64(0.3351)
    """
    sigma = check_real("sigma", sigma, LEAST_SCALE, LARGEST_SCALE)
    return smooth_error(f, y)(sigma)


def read_scores(f: Any) -> NDArray[Any]:
    """Scores (n,)."""
    score = NAMES.scores(f)
    if score.ndim != 1:
        raise ValueError(f"f: must have shape (n,), got {score.shape}")
    return score


def node_count(scale: float) -> int:
    """Nodes of the grid on which relplot has a kernel of this scale."""
    return max(KERNEL_POINTS, round(KERNEL_POINTS_PER_SCALE / scale)) // 2 + 1


def smooth_error(f: Any, y: Any) -> Callable[[float], np.float64]:
    """The smooth calibration error as a function of the scale."""
    score = read_scores(f)
    (sample,) = NAMES.read(y, score).samples()
    s = scores_of(sample, score)
    sums = lru_cache(lambda count: node_sums(s, sample.y, count))

    @lru_cache
    def error(scale: float) -> np.float64:
        count = node_count(scale)
        kernel = (kernel_waves if scale >= LEAST_KEPT else kernel_waves.__wrapped__)(scale, count)
        values, reach = sums(count), kernel.reach
        mirrored = np.concatenate(
            [values[:, reach:0:-1], values, values[:, -2 : -2 - reach : -1]], axis=1
        )
        waves = np.fft.rfft(mirrored, kernel.period) * kernel.waves
        smooth = np.fft.irfft(waves, kernel.period)[:, reach : reach + count]
        rows, gap = (np.interp(kernel.at, kernel.nodes, line) for line in smooth)
        return np.float64(np.abs(gap).sum() / (rows.sum() + gap.size * LEAST_DENSITY))

    return error


class Kernel(NamedTuple):
    """A Gaussian on an even grid of nodes, `reach` of them to both sides, and the places, in nodes,
    where what it smooths is looked at."""

    nodes: F64
    reach: int
    period: int
    waves: NDArray[np.complex128]
    at: F64


@lru_cache(maxsize=64)
def kernel_waves(scale: float, count: int) -> Kernel:
    """The kernel of a scale as a sum of waves, kept for the next call.

    It goes from -1/2 to 1/2, as far as it is not 0 (exp(-40) at 9 standard deviations). If the
    number of nodes is even, none of its points is its middle, and it is half a step off.
    """
    from scipy.fft import next_fast_len

    reach = min(count // 2, math.ceil(9 * scale * (count - 1)) + 1)
    step = np.arange(-reach, reach + 1)
    distance = (step + count // 2) / (count - 1) - 0.5
    height = np.exp(-(distance**2) / (2 * scale**2)) / (math.sqrt(2 * math.pi) * scale)
    height[step > count - 1 - count // 2] = 0.0
    period = next_fast_len(count + 2 * reach, real=True)
    around = np.zeros(period)
    around[step] = height
    nodes, points = np.arange(count, dtype=np.float64), max(round(POINTS_PER_SCALE / scale), POINTS)
    at = np.linspace(0, count - 1, points)
    return Kernel(nodes, reach, period, np.fft.rfft(around), at)


def node_sums(s: NDArray[Any], y: NDArray[Any], count: int) -> F64:
    """Rows and gaps (2, count), each row shared by the two nodes of an even grid around its
    score.

    The place of a float32 score is rounded to float32: beside the ends, where half of the node at 0
    or 1 counts, that is seen.
    """
    if s.dtype == np.float32:
        s = (s * np.float32(count - 1)).astype(np.float64) / (count - 1)
    lanes = np.empty((count - 1, 2, 4))
    kernels.gaps.interval_sums(s, y, lanes)
    inside = lanes.sum(axis=1).T
    upper = inside[1::2]
    nodes = np.zeros((2, count))
    nodes[:, :-1] = inside[::2] - upper
    nodes[:, 1:] += upper
    return nodes
