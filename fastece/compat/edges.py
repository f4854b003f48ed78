"""Rules for the edges of bins, as other libraries have them.

Each takes the number of bins and the scores, or an array with their dtype, and returns edges from 0
to 1. The rules of bins of equal width look at the dtype alone.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.estimators.binned.cuts import scores_at_ranks
from fastece.kernels.types import F64

Scores = NDArray[np.floating[Any]]
Rule = Callable[[int, Scores], Scores]
ZERO = np.zeros(1)
ONE = np.ones(1)
# A product and a quotient are each rounded once, so an edge is at most this many floats off.
MAX_STEPS = 4


# --- bins of equal width --------------------------------------------------------------------


def quotients(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """Divide ``j / B``, rounded once."""
    return np.arange(n_bins + 1) / n_bins


def linspace(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """Multiply ``j * (1 / B)``, rounded twice: a float above ``j / B`` at 0.3."""
    return np.linspace(0.0, 1.0, n_bins + 1)


def two_sided_steps(n_bins: int, scores: Scores) -> Scores:
    """Step by ``1 / B`` up from 0 to the middle and down from 1 to it, as torch does.

    The steps are float64 if the scores are, else float32. ``1 - (B - j) * (1 / B)`` is rounded
    once, as by a fused multiply-add, which torch uses on processors that have it (AVX2, AVX-512);
    without, about every second edge there is a float off.
    """
    kind = np.float64 if scores.dtype == np.float64 else np.float32
    step = kind(1) / kind(n_bins)
    exact_step = Fraction(float(step))
    half = (n_bins + 1) // 2
    lower = [step * kind(j) for j in range(half)]
    upper = [kind(float(1 - (n_bins - j) * exact_step)) for j in range(half, n_bins + 1)]
    return np.array([*lower, *upper])


def single_two_sided_steps(n_bins: int, scores: Scores) -> Scores:
    """Return `two_sided_steps` as float32, for scores that are rounded first.

    For float64 scores an edge is the smallest that rounds to it.
    """
    edges = two_sided_steps(n_bins, np.empty(0, np.float32))
    if scores.dtype != np.float64:
        return edges
    below = np.nextafter(edges, np.float32(-1)).astype(np.float64)
    middle = (below + edges) / 2
    rounds_down = middle.astype(np.float32) < edges
    return np.where(rounds_down, np.nextafter(middle, 2), middle).clip(0, 1)


def smallest_with_quotient(n_bins: int, scores: Scores) -> Scores:
    """Find the smallest scores whose quotients by ``1 / B`` are j, in their precision."""
    kind = scores.dtype.type if scores.dtype.kind == "f" else np.float64
    width = kind(1.0 / n_bins)
    j = np.arange(1, n_bins + 1).astype(kind)
    edge = j * width
    for _ in range(MAX_STEPS):
        below = np.nextafter(edge, kind(-1))
        edge = np.where(below / width >= j, below, edge)
        edge = np.where(edge / width < j, np.nextafter(edge, kind(2)), edge)
    return np.concatenate([[0.0], edge[edge <= 1], [1.0]])


def one_alone(rule: Rule) -> Rule:
    """Extend a rule of left-closed bins by one for scores of 1 after the last."""

    def edges(n_bins: int, scores: Scores) -> Scores:
        return np.append(rule(n_bins, scores), 1.0)

    return edges


# --- bins of equal mass ---------------------------------------------------------------------


class QuantileRanks(NamedTuple):
    """Where quantiles lie between scores in order.

    Attributes
    ----------
    ranks : (3 (B - 1),) intp array
        Ranks of the scores below, above and nearest to each inner quantile.
    step : (B - 1,) float64 array
        Distance from the nearest score, in steps between the two.
    """

    ranks: NDArray[np.intp]
    step: F64


def quantiles(unit: float, n_bins: int, scores: Scores) -> Scores:
    """Take numpy's quantiles, of shares in a unit: between two scores, in proportion.

    The difference of the two is rounded in their precision, all else in float64.
    """
    places = rank_quantiles(unit, n_bins, scores.size)
    low, high, nearest = scores_at_ranks(scores, places.ranks).reshape(3, -1)
    return with_ends(nearest + (high - low) * places.step)


@lru_cache(maxsize=64)
def rank_quantiles(unit: float, n_bins: int, n: int) -> QuantileRanks:
    """Find the ranks of the scores around inner quantiles of n scores."""
    place = (np.linspace(0, 1, n_bins + 1) * unit / unit)[1:-1] * (n - 1)
    below = place.astype(np.intp)
    nearest = below + np.where(place - below >= 0.5, 1, 0)
    ranks = np.concatenate([below, below + 1, nearest])
    return QuantileRanks(np.minimum(ranks, n - 1), place - nearest)


def middles_of_groups(n_bins: int, scores: Scores) -> Scores:
    """Take the middles between groups of n // B scores in order.

    The first n % B groups have one more score; if B is larger than n there are n groups.
    """
    group = np.arange(1, min(n_bins, scores.size))
    size, n_larger = divmod(scores.size, group.size + 1)
    return middles_before(group * size + np.minimum(group, n_larger), scores)


def middles_of_runs(size: int, scores: Scores) -> Scores:
    """Take the middles between runs of a number of scores; the last run may have more."""
    return middles_before(np.arange(1, max(scores.size // size, 1)) * size, scores)


def middles_before(start: NDArray[np.intp], scores: Scores) -> Scores:
    """Take the middles between scores at ranks and the scores before them."""
    low, high = scores_at_ranks(scores, np.concatenate([start - 1, start])).reshape(2, -1)
    return with_ends((low + high) / scores.dtype.type(2))


def middles_of_scores(n_bins: int, scores: Scores) -> Scores:  # noqa: ARG001
    """Take the middles of distinct scores: every score has a bin of its own."""
    distinct = np.unique(scores)
    return with_ends((distinct[:-1] + distinct[1:]) / scores.dtype.type(2))


def order_statistics(n_bins: int, scores: Scores) -> Scores:
    """Take the scores at the positions ``round(j n / B)`` of all in order."""
    ranks = np.rint(np.arange(1, n_bins) * (scores.size / n_bins)).astype(np.intp)
    return with_ends(scores_at_ranks(scores, np.minimum(ranks, scores.size - 1)))


def with_ends(inner: Scores) -> Scores:
    """Add the ends 0 and 1 to inner edges."""
    return np.concatenate([ZERO, np.maximum.accumulate(inner), ONE])
