"""Exact intervals of binomial frequencies."""

from typing import Any

import numpy as np

from fastece.kernels.types import F64


def binomial_ends(hits: Any, misses: Any, lower: float, upper: float) -> tuple[F64, F64]:
    """Compute Clopper and Pearson's ends (1934) of frequencies, at two levels."""
    from scipy.special import betaincinv

    low = np.where(hits > 0, betaincinv(hits, misses + 1, lower), 0.0 * hits)
    high = np.where(misses > 0, betaincinv(hits + 1, misses, upper), 0.0 * hits + 1)
    return low, high
