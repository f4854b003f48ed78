"""Cuts of equal weight, and scores of given ranks, without a sort of all scores.

`kernels.selection` finds the few rows that decide where the cuts are. This is the one way to edges
of equal-mass bins, and to the edges that `fastece.compat` needs.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.table import RowTable
from fastece.kernels.types import F64


def equal_mass_edges(
    problem: RowTable, n_bins: int, low: float, high: float, closed_right: bool = True,
    threshold: float = -math.inf,
) -> tuple[F64, F64]:  # fmt: skip
    """Find the edges (B + 1,) of bins of equal weight, and the inner cuts (B - 1,).

    The cuts decide in which bin a row is: an edge between two scores may be rounded to one of
    them, a cut is not. `kernels.quantiles.quantile_edges` has the definition.

    Parameters
    ----------
    problem : RowTable
        One problem.
    n_bins : int
    low, high : float
        Range that the bins divide, into which scores are moved.
    closed_right : bool
    threshold : float
        Scores up to this one do not exist.
    """
    score, _ = problem.read_problem(0)
    weight = kernels.weights(problem.v)
    shares = kernels.moments.even_shares(n_bins)
    u, w = kernels.selection.deciding_rows(score, weight, shares, threshold)
    kernels.moments.move_into_range(u, low, high)
    edges = np.empty(n_bins + 1)
    cuts = np.empty(n_bins - 1)
    kernels.quantiles.quantile_edges(u, w, low, high, right=closed_right, edges=edges, knots=cuts)
    return edges, cuts


def scores_at_ranks(s: NDArray[Any], ranks: NDArray[np.intp]) -> NDArray[Any]:
    """Find the scores of some ranks, counted from 0, in their dtype."""
    distinct = np.unique(ranks)
    scores = s.astype(np.float64, copy=False)
    # The weight up to a score of rank r is at least r + 1, and up to the one before at most r.
    shares = (distinct + 0.5) / s.size
    u, w = kernels.selection.deciding_rows(scores, kernels.NO_WEIGHTS, shares, -math.inf)
    n_up_to = np.cumsum(w) if w.size else np.arange(1, u.size + 1)
    scores_of_ranks: NDArray[Any] = u[np.searchsorted(n_up_to, ranks, "right")]
    return scores_of_ranks.astype(s.dtype)
