"""Errors of bins without what chance adds to them."""

import math

from fastece.kernels._jit import jit
from fastece.typing import F64

# A bin of two rows has as many, whatever its weights round to.
FEWEST = 2.0 - 1e-9
# Gaps beyond so many deviations, times sqrt(2), are noise in no digit: exp(-36) is 2e-16.
FAR = 6.0


@jit
def debiased_errors(
    gap: F64, weight: F64, hits: F64, square: F64, total: F64, least: float, is_equal: bool,
    norm: float, out: F64,
) -> None:  # fmt: skip
    """Compute the debiased error of each problem, in `out` (K,).

    What chance adds to a gap g is ``E|N(g, t**2)| - g``, with the variance ``t**2 = q (1 - q) / n``
    of the hit rate q of n rows: the mean size of a normal variable around it, less the gap.

    Parameters
    ----------
    gap, weight, hits : (K, B) float64 arrays
        Sums of w (y - s), w and w y in each bin.
    square : (K, B) or (0, 0) float64 array
        Those of w**2; empty: every row counts 1.
    total : (K,) float64 array
        Weight of the rows.
    least : float
        Bins that do not have more than this share of it are empty.
    is_equal : bool
        Bins count 1 / B instead of their share.
    norm : float
        1 or 2.
    """
    problems, n_bins = gap.shape
    for k in range(problems):
        value = 0.0
        for b in range(n_bins):
            w = weight[k, b]
            if not w > least * total[k]:
                continue
            g, q = abs(gap[k, b]) / w, min(hits[k, b] / w, 1.0)
            count = w
            if square.size > 0:  # as many rows of one weight would be as noisy
                # Divided twice: the square of a small weight may be nothing.
                count = w / (square[k, b] / w) if square[k, b] > 0.0 else 1.0
            if norm == 1.0:
                noise, part = math.sqrt(2.0 * max(q * (1.0 - q), 0.0) / count), g
                if g < FAR * noise:
                    z = g / noise
                    part -= noise / math.sqrt(math.pi) * math.exp(-z * z) - g * math.erfc(z)
            elif count >= FEWEST:
                part = g * g - max(q * (1.0 - q), 0.0) / (count - 1.0)
            else:
                part = 0.0
            value += part / n_bins if is_equal else part * (w / total[k])
        out[k] = value if norm == 1.0 else math.sqrt(max(value, 0.0))
