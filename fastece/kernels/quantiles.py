"""Edges of bins of equal weight."""

from typing import Any

import numpy as np

from fastece.kernels._jit import jit
from fastece.kernels.shared import two_sum
from fastece.typing import F64

# Cumulative weights closer than this, relative to the total, are equal.
TOLERANCE = 1e-12


@jit
def total_weight(w: F64) -> float:
    """Sum of the weights, of which rounding takes nothing but once, at the end."""
    total = lost = 0.0
    for i in range(w.size):
        total, rounded = two_sum(total, w[i])
        lost += rounded
    return total + lost


@jit
def cut_weights(j: Any, n_bins: int, total: float) -> tuple[float, float]:
    """The weight that the scores up to cut j have at least, and the most that they have where the
    cut lies between two scores rather than on one."""
    target, slack = j * total / n_bins, TOLERANCE * total
    return target - slack, target + slack


@jit
def count_edges(u: F64, right: bool, edges: F64, knots: F64) -> None:
    """The inner edges and knots of `quantile_edges` where every score counts 1: the place of a cut
    is computed, and only scores equal to the one there are looked at (a fifth of the time)."""
    n, n_bins = u.size, edges.size - 1
    end = 0
    for j in range(1, n_bins if n > 0 else 0):
        least, most = cut_weights(j, n_bins, np.float64(n))
        first = max(int(np.ceil(least)), 1)
        x = u[first - 1]
        end = max(end, first)
        while end < n and u[end] == x:
            end += 1
        following = u[end] if (end <= most) & (end < n) else x
        edges[j] = 0.5 * (x + following)
        knots[j - 1] = x if right else following


@jit
def quantile_edges(
    u: F64, w: F64, low: float, high: float, right: bool, edges: F64, knots: F64
) -> None:
    """Edges of bins of equal weight, and the knots that decide which score goes where.

    With ``C`` the weight of all scores up to the distinct score ``u_k``, edge j is the first
    ``u_k`` with ``C >= j W / B``, or the midpoint of ``u_k`` and the next distinct score where the
    two are equal. The knot is not the edge: a midpoint may round onto one of its neighbours, but
    at equality the cut lies between them.

    Parameters
    ----------
    u : (n,) float64 array
        Scores in increasing order, moved into [low, high].
    w : (n,) float64 array
        Their weights; scores of weight 0 do not exist. Empty: every score counts 1.
    right : bool
        Bins are closed at the right: a score passes a knot when it is greater, else when it is
        not less.
    edges : (B + 1,) float64 array, overwritten
    knots : (B - 1,) float64 array, overwritten
    """
    n = u.size
    n_bins = edges.size - 1
    for b in range(n_bins):
        edges[b] = low
    edges[n_bins] = high
    for b in range(knots.size):
        knots[b] = np.inf
    if w.size == 0:
        count_edges(u, right, edges, knots)
        return
    total = total_weight(w)
    j = np.int64(1)
    least, most = cut_weights(j, n_bins, total)  # divides: anew only where j changes
    below = lost = 0.0
    i = 0
    while i < n and j < n_bins:
        x = u[i]
        while i < n and u[i] == x:
            below, rounded = two_sum(below, w[i])
            lost += rounded
            i += 1
        while i < n and w[i] == 0.0:
            i += 1
        while j < n_bins and below + lost >= least:
            following = u[i] if (below + lost <= most) & (i < n) else x
            edges[j] = 0.5 * (x + following)
            knots[j - 1] = x if right else following
            j += 1
            least, most = cut_weights(j, n_bins, total)
