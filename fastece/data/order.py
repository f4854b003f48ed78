"""Weights without overflow, rows sorted by score, edges of equal-mass bins."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fastece import kernels
from fastece.data.problems import Problems
from fastece.data.sample import Sample, increasing
from fastece.typing import F64

if TYPE_CHECKING:
    from fastece.kernels.replicates import OrderedRows

T = TypeVar("T", Sample, Problems)

# Rows between the cumulative weights that `kernels.replicates` keeps, of up to so many rows.
GROUPS = ((512, 1), (65536, 16), (2**31, 64))
# Products and sums of weights below 2**500 do not overflow.
SAFE_EXPONENT = 500


def scale_weights(problems: T) -> tuple[T, float]:
    """Scale weights so that their products do not overflow; return their unit too.

    It is a power of two, so that nothing is rounded.
    """
    if problems.v is None:
        return problems, 1.0
    exponent = math.frexp(problems.v.max())[1] - 1
    if abs(exponent) < SAFE_EXPONENT:
        return problems, 1.0
    # A weight that becomes 0 would make its row another that does not exist.
    scaled = replace(problems, v=np.maximum(np.ldexp(problems.v, -exponent), 5e-324))
    return scaled, math.ldexp(1.0, exponent)


def order_rows(
    sample: Sample, low: float, high: float, threshold: float = -math.inf
) -> "OrderedRows":
    """Arrange the rows of a sorted sample above a threshold in runs of equal scores."""
    skip = int(np.searchsorted(sample.s, threshold, "right"))
    sample = sample.where(slice(skip, None))
    inside = sample.n == 0 or (low <= sample.s[0] and sample.s[-1] <= high)
    u = sample.s if inside else sample.s.clip(low, high)
    begins = np.ones(u.size, np.bool_)
    begins[1:] = u[1:] != u[:-1]
    first = np.append(np.flatnonzero(begins), u.size).astype(np.int32)
    run = (np.cumsum(begins) - 1).astype(np.int32)
    order, v = np.arange(u.size, dtype=np.int32), kernels.weights(sample.v)
    group = next(size for rows, size in GROUPS if u.size <= rows)
    return kernels.replicates.OrderedRows(sample.s, u, v, order, run, first, skip, low, high, group)


def sort_scores(s: F64, w: F64 | None) -> tuple[F64, F64 | None]:
    """Sort scores, with their weights."""
    if w is None:
        return np.sort(s), None  # several times as fast as the order
    order = increasing(s)
    return s[order], w[order]


def quantile_edges(
    u: F64, w: F64 | None, n_bins: int, low: float, high: float, right: bool
) -> tuple[F64, F64]:
    """Find the edges (B + 1,) of bins of equal weight, and the inner cuts (B - 1,).

    `u` are scores in increasing order. The cuts decide which bin a row is in.
    """
    u = u.clip(low, high)
    edges, cuts = np.empty(n_bins + 1), np.empty(n_bins - 1)
    kernels.quantiles.quantile_edges(u, kernels.weights(w), low, high, right, edges, cuts)
    return edges, cuts
