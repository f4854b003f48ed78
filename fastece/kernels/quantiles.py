"""Edges of bins of equal weight."""

import numpy as np
from numpy.typing import NDArray

from fastece.kernels._jit import jit

__all__ = ["quantile_edges"]

F64 = NDArray[np.float64]

# Cumulative weights closer than this, relative to the total, are equal.
TOLERANCE = 1e-12


@jit
def total_weight(w: F64) -> float:
    """Sum of the weights with Neumaier's compensation."""
    total = 0.0
    lost = 0.0
    for i in range(w.size):
        t = total + w[i]
        lost += (total - t) + w[i] if total >= w[i] else (w[i] - t) + total
        total = t
    return total + lost


@jit
def count_edges(u: F64, right: bool, edges: F64, knots: F64) -> None:
    """The inner edges and knots of `quantile_edges` where every score counts 1: the place of a cut
    is computed, and only scores equal to the one there are looked at (a fifth of the time)."""
    n, n_bins = u.size, edges.size - 1
    tolerance = TOLERANCE * n
    end = 0
    for j in range(1, n_bins if n > 0 else 0):
        target = j * np.float64(n) / n_bins
        least = max(int(np.ceil(target - tolerance)), 1)
        x = u[least - 1]
        end = max(end, least)
        while end < n and u[end] == x:
            end += 1
        between = (end <= target + tolerance) & (end < n)
        following = u[end] if between else x
        edges[j] = 0.5 * (x + following)
        knots[j - 1] = x if right else following


@jit
def quantile_edges(
    u: F64, w: F64 | None, low: float, high: float, right: bool, edges: F64, knots: F64
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
    w : (n,) float64 array or None
        Their weights; scores of weight 0 do not exist.
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
    if w is None:
        count_edges(u, right, edges, knots)
        return
    total = total_weight(w)
    tolerance = TOLERANCE * total
    j = 1
    target = total / n_bins  # of cut j, computed anew only where j changes: it is a division
    below = 0.0
    lost = 0.0
    i = 0
    while i < n and j < n_bins:
        x = u[i]
        while i < n and u[i] == x:
            t = below + w[i]
            lost += (below - t) + w[i] if below >= w[i] else (w[i] - t) + below
            below = t
            i += 1
        while i < n and w[i] == 0.0:
            i += 1
        while j < n_bins and below + lost >= target - tolerance:
            between = (below + lost <= target + tolerance) & (i < n)
            following = u[i] if between else x
            edges[j] = 0.5 * (x + following)
            knots[j - 1] = x if right else following
            j += 1
            target = j * total / n_bins
