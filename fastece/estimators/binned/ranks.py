"""Scores of given ranks, such as quartiles, without a sort of all scores.

Other estimators and `fastece.compat` use this; the binned estimators do not.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.samples import Sample
from fastece.data.table import one_problem
from fastece.estimators.binned.cell_sums import bin_sums
from fastece.estimators.binned.float_grid import float_layout, rows_in_cells
from fastece.estimators.binned.layouts import EQUAL_MASS, BinRule, quantile_edges
from fastece.kernels import CHUNK_SCORES, WEIGHT
from fastece.kernels.types import F64

# Numpy finds ranks among so many scores. If there are more, a few are looked at first.
MAX_PARTITIONED = 2**14
# Scores that are looked at first, in units of the square root of the number of all.
PROBE_FACTOR = 4
# The score is looked for between ranks of the probe that are so many standard deviations away.
PROBE_MARGIN = 4.0

# Gives arrays of scores, one after another, and the same ones in every call.
ReadScores = Callable[[], Iterable[F64]]


class RankPair(NamedTuple):
    """A rank among scores in increasing order, and the same or the next rank.

    The lowest score has rank 0.
    """

    first: int
    last: int


class ScorePair(NamedTuple):
    """The scores of a `RankPair`."""

    low: float
    high: float


def quartiles(sample: Any, w: F64 | None, low: float, high: float) -> tuple[float, float]:
    """Find the first and the third quartile: edges of four bins of equal weight.

    Parameters
    ----------
    sample : Sample or table
        Where every row counts 1, only its `n` and its `parts` are used.
    w : (n,) float64 array or None
        Weights of the rows; None: every row counts 1.
    low, high : float
        Range into which scores are moved.
    """
    if w is not None:
        rule = BinRule(
            n_bins=4, low=low, high=high, edges=EQUAL_MASS, closed_right=True, is_convex=False,
            threshold=-math.inf,
        )  # fmt: skip
        edges, _ = quantile_edges(rule, sample.s, w)
        return edges[1], edges[3]

    def read_scores() -> Iterable[F64]:
        return (part.s for part in sample.parts(CHUNK_SCORES))

    pairs = [quartile_ranks(j, sample.n) for j in (1, 3)]
    lower, upper = (
        (min(max(pair.low, low), high) + min(max(pair.high, low), high)) / 2
        for pair in scores_of_ranks(read_scores, sample.n, pairs)
    )
    return lower, upper


def quartile_ranks(j: int, n: int) -> RankPair:
    """Return the ranks of the scores on both sides of the cut at j / 4 of n scores."""
    first = math.ceil(j * n / 4) - 1
    is_between_scores = j * n % 4 == 0
    return RankPair(first, first + 1 if is_between_scores else first)


def scores_of_ranks(read_scores: ReadScores, n: int, pairs: Sequence[RankPair]) -> list[ScorePair]:
    """Find the scores of pairs of ranks of n scores, which increase from pair to pair."""
    if n > MAX_PARTITIONED:
        return [scores_of_pair(read_scores, n, pair) for pair in pairs]
    return partition_scores(read_scores, pairs)


def scores_of_pair(read_scores: ReadScores, n: int, pair: RankPair) -> ScorePair:
    """Find the scores of one pair of ranks of n scores, at 1 ns a score.

    A few scores, at even steps, tell roughly where the pair is. Only the scores there are kept,
    until they are few: Floyd and Rivest (1975, "Expected time bounds for selection").
    """
    if n > MAX_PARTITIONED:
        low, high = bracket(read_scores, n, pair.first)
        n_below, candidates = scores_between(read_scores, low, high)
        has_pair = n_below <= pair.first and pair.last < n_below + candidates.size
        if has_pair and low == high:
            return ScorePair(low, low)
        if has_pair and candidates.size <= n / 2:
            pair = RankPair(pair.first - n_below, pair.last - n_below)
            return scores_of_pair(lambda: [candidates], candidates.size, pair)
        # The rank is at an end, or the scores have a pattern that the few do not show.
    return partition_scores(read_scores, [pair])[0]


def bracket(read_scores: ReadScores, n: int, rank: int) -> tuple[float, float]:
    """Find two of n scores that almost surely have the score of a rank between them."""
    step = math.isqrt(n) // PROBE_FACTOR
    # Copies, since a view would keep the array it is of.
    probe = np.sort(np.concatenate([scores[::step].copy() for scores in read_scores()]))
    rank_in_probe = (rank + 0.5) / n * probe.size
    margin = PROBE_MARGIN * 0.5 * math.sqrt(probe.size)
    first = max(math.floor(rank_in_probe - margin), 0)
    last = min(math.ceil(rank_in_probe + margin), probe.size - 1)
    return probe[first], probe[last]


def scores_between(read_scores: ReadScores, low: float, high: float) -> tuple[int, F64]:
    """Count the scores below `low`, and return those from `low` to `high`."""
    n_below = 0
    between = []
    for scores in read_scores():
        room = np.empty(scores.size)
        below, count = kernels.quantiles.scores_between(scores, low, high, room)
        n_below += below
        between.append(room[:count].copy())
    return n_below, np.concatenate(between)


def partition_scores(read_scores: ReadScores, pairs: Sequence[RankPair]) -> list[ScorePair]:
    """Find the scores of pairs of ranks by numpy, one pair after the other.

    All ranks at once would take half as long again.
    """
    scores = np.concatenate([*read_scores()])
    # As bits, floats that are not negative are in the same order: half the time.
    bits = scores.view(np.int64)
    n_passed = 0
    score_pairs = []
    for pair in pairs:
        bits[n_passed:].partition(pair.first - n_passed)
        low = high = scores.item(pair.first)
        if pair.last > pair.first:
            high = float(scores[pair.last :].min())
        n_passed = pair.first
        score_pairs.append(ScorePair(low, high))
    return score_pairs


def scores_at_ranks(s: NDArray[Any], ranks: NDArray[np.intp]) -> NDArray[Any]:
    """Find the scores of many ranks, counted from 0, in their dtype.

    If there are many scores, only cells of the float grid with such a rank are sorted: it takes
    4 ns a score, where numpy takes 50.
    """
    if s.size < MAX_PARTITIONED:
        return np.sort(s)[ranks]
    grid = float_layout(0.0, 1.0)
    hits = np.zeros(s.size, np.uint8)
    sample = Sample(s.astype(np.float64, copy=False), hits, None, 0.0, 1.0, ranks)
    problem = one_problem(sample)
    (weight,) = bin_sums(problem, grid, -math.inf, (WEIGHT,))[WEIGHT]
    cell_of_rank = np.searchsorted(np.cumsum(weight), ranks, "right")
    has_rank = np.zeros(weight.size, np.bool_)
    has_rank[cell_of_rank] = True
    (candidates,) = rows_in_cells(problem, grid, has_rank[None], map)
    n_left_out = np.cumsum(np.where(has_rank, 0.0, weight))[cell_of_rank].astype(np.intp)
    scores: NDArray[Any] = np.sort(candidates.s)[ranks - n_left_out]
    return scores.astype(s.dtype)
