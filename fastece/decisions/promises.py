"""The choice of a threshold: candidates, and the tests that its promise rests on.

Everything here is about one set of rows, from the highest score down. A threshold is the score of a
candidate row; the rows down to it, and those with the same score, are the ones that act alone.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample, in_order, scale_weights
from fastece.estimators.binomial import binomial_ends
from fastece.kernels.types import F64, I64
from fastece.resampling.dependence import GROUPS_PER_BIN, MAX_BINS
from fastece.resampling.groups import Groups
from fastece.resampling.intervals import tails_of

# Candidates have ranks that grow by this factor: no finer grid finds lower thresholds.
RANK_FACTOR = 1.02
# The sequence of tests begins again where there are so many times as many rows above.
RESTART_FACTOR = 3.0
# In place of a weight or a sum of 0 that is divided by, and of a shape of 0 of the beta law.
SMALL = 1e-300
# Relative distance that a rank may lie below the start of a sequence by rounding alone.
ROUNDING = 1e-12
# Margin of the correlation of hits within groups, times the root of the number of groups with a
# miss. With 1/2, promises of rows on the edge are broken in at most 4.2 % of simulations, with
# groups of 3 to 60 rows; with 1 in at most 3.4 %, and up to 8 points more coverage are lost.
CORRELATION_MARGIN = 0.5


# --- rows from the highest score down -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows from the highest score down, with weights or with groups.

    Attributes
    ----------
    score : (n,) float64 array
    outcome : (n,) array
        1 where the prediction was right, else 0.
    weight : (n,) float64 array
        Weights of the rows; the largest is 1. With groups all are.
    miss_ratio : float
        Mean weight of the misses over the mean weight of the hits, 1 without weights. With weights
        and no miss it is not known, and inf.
    groups : Groups or None
    """

    score: F64
    outcome: NDArray[Any]
    weight: F64
    miss_ratio: float
    groups: Groups | None

    @cached_property
    def candidates(self) -> "Candidates":
        """The candidate thresholds, chosen without a look at labels."""
        return find_candidates(self)


def rank_rows(sample: Sample, groups: Groups | None) -> RankedRows:
    """Order the rows of a sample, and the groups they belong to, by falling scores."""
    rising_score, rising_order = in_order(sample.s)
    order = rising_order[::-1]
    outcome = sample.y[order]
    # One number in place of n, as a report of millions of rows holds most of its memory here.
    weight = np.broadcast_to(1.0, sample.n)
    miss_ratio = 1.0
    if sample.v is not None:
        weights = scale_weights(sample)[0].weights
        weight = np.maximum(weights[order] / weights.max(), SMALL)
        miss_ratio = ratio_of_weights(outcome, weight)
    return RankedRows(
        score=rising_score[::-1],
        outcome=outcome,
        weight=weight,
        miss_ratio=miss_ratio,
        groups=None if groups is None else groups.where(order),
    )


def ratio_of_weights(outcome: NDArray[Any], weight: F64) -> float:
    """Divide the mean weight of misses by the mean of hits.

    Without a miss the ratio is inf: rows that are all hits say nothing about the weight of a miss,
    even if their weights are equal. Without a hit it is 1.
    """
    n_hits = np.count_nonzero(outcome)
    n_misses = weight.size - n_hits
    if n_misses == 0:
        return math.inf
    if n_hits == 0 or weight.min() == weight.max():
        return 1.0
    return float((weight @ (outcome == 0)) / (weight @ outcome) * n_hits / n_misses)


def sums_down_to(values: NDArray[Any], end: I64) -> F64:
    """Sum the values (n,) of the rows down to each end (M,)."""
    return np.asarray(np.cumsum(values)[end])


def products_down_to(a: F64, b: NDArray[Any], end: I64) -> F64:
    """Sum the products of two values (n,) of the rows down to each end (M,)."""
    products = a * b
    # In place, which saves 8 bytes a row.
    np.cumsum(products, out=products)
    return np.asarray(products[end])


def effective_rows(rows: RankedRows, end: I64) -> F64:
    """Count the independent rows that the rows down to each end (M,) are worth.

    For rows with weights w it is Kish's number (1965, "Survey sampling", section 11.7): ``(sum_i
    w_i)^2 / sum_i w_i^2``. Weights of misses are divided by `miss_ratio` before, as misses that
    weigh more than hits are fewer than they seem.
    """
    if rows.groups is not None:
        return effective_rows_of_groups(rows, rows.groups, end)
    weight = rows.weight
    if rows.miss_ratio != 1:
        weight = np.where(rows.outcome == 1, weight, weight / rows.miss_ratio)
    squares = products_down_to(weight, weight, end)
    return sums_down_to(weight, end) ** 2 / np.maximum(squares, SMALL)


def effective_rows_of_groups(rows: RankedRows, groups: Groups, end: I64) -> F64:
    """Count the independent rows that rows in groups down to each end are worth.

    With the correlation r of two hits of one group, n rows of which P ordered pairs of different
    rows share a group are worth ``n^2 / (n + r P)`` (Kish 1965, "Survey sampling", section 5.4).
    With G groups it is multiplied by ``1 - 2 / G``, about as quantiles of Student's law exceed
    normal ones.
    """
    n_rows = end + 1.0
    n_pairs = 2.0 * sums_down_to(earlier_rows_of_group(groups), end)
    factor = max(1 - 2 / groups.count, 0.0)
    return np.asarray(factor * n_rows**2 / (n_rows + correlation_of_hits(rows, groups) * n_pairs))


def earlier_rows_of_group(groups: Groups) -> I64:
    """Count, for each row (n,), the rows of its group before it."""
    order = np.argsort(groups.of_row, kind="stable")
    n_rows = np.bincount(groups.of_row)
    first_of_group = np.cumsum(n_rows) - n_rows
    earlier = np.empty(order.size, np.int64)
    earlier[order] = np.arange(order.size) - np.repeat(first_of_group, n_rows)
    return earlier


def correlation_of_hits(rows: RankedRows, groups: Groups) -> float:
    """Estimate the correlation of the hits of two rows of a group, with a margin.

    It is the ratio of two sums over all pairs of different rows of one group, where q_i is the hit
    rate of the rows whose scores are near the score of row i::

        sum_ij (y_i - q_i) (y_j - q_j) / sum_ij sqrt(q_i (1 - q_i) q_j (1 - q_j))

    The margin of ``1 / (2 sqrt(M))`` allows for chance, with the number M of groups that have a
    miss, as these alone show a correlation: with it the promises hold in simulations.
    """
    n_bins = min(max(groups.count // GROUPS_PER_BIN, 1), MAX_BINS)
    n_below = np.searchsorted(rows.score[::-1], rows.score)  # so equal scores are in one bin
    bins = n_below * n_bins // rows.score.size
    rows_of_bin = np.maximum(np.bincount(bins), 1)
    rate = (np.bincount(bins, rows.outcome) / rows_of_bin)[bins]
    observed = pair_products(rows.outcome - rate, groups)
    largest = pair_products(np.sqrt(rate * (1 - rate)), groups)
    if largest <= 0:
        return 1.0
    n_groups_with_misses = np.unique(groups.of_row[rows.outcome == 0]).size
    margin = CORRELATION_MARGIN / math.sqrt(n_groups_with_misses)
    return min(max(observed / largest, 0.0) + margin, 1.0)


def pair_products(values: F64, groups: Groups) -> float:
    """Add up the products of all ordered pairs of different rows of one group."""
    sums = np.bincount(groups.of_row, values)
    return float((sums**2).sum() - values @ values)


def effective_rows_of_share(rows: RankedRows, share: float, end: int) -> float:
    """Count the independent rows that determine the share of the rows down to one.

    The share c of the weight has the variance of so many rows: with ``e_i = w_i (a_i - c)``, where
    a_i is 1 for the rows down to `end` and 0 for others, it is ``W^2 c (1 - c)`` over the sum of
    squares of e, each group added up first. Where all rows act, it is ``W^2 / sum_i w_i^2``.
    """
    is_above = np.arange(rows.weight.size) <= end
    if share < 1:
        variance = share * (1 - share)
        residual = np.where(is_above, 1 - share, -share)
        residual *= rows.weight
    else:
        variance = 1.0
        residual = np.where(is_above, rows.weight, 0.0)
    if rows.groups is not None:
        residual = np.bincount(rows.groups.of_row, residual).astype(np.float64)
    return float(rows.weight.sum() ** 2 / (residual @ residual) * variance)


# --- candidates -----------------------------------------------------------------------------


class Candidates(NamedTuple):
    """Candidate thresholds, chosen without a look at labels; arrays (M,), scores fall.

    Attributes
    ----------
    score : (M,) float64 array
        The threshold.
    end : (M,) int64 array
        The last row with this score.
    coverage, accuracy : (M,) float64 arrays
        The share of the weight of the rows down to `end`, and how much of that weight is right.
    n_effective : (M,) float64 array
        How many independent rows these are worth.
    """

    score: F64
    end: I64
    coverage: F64
    accuracy: F64
    n_effective: F64


def find_candidates(rows: RankedRows) -> Candidates:
    """Take scores at ranks that grow by a constant factor; ties stay together."""
    end = last_rows_at_ranks(rows)
    *weights, total_weight = sums_down_to(rows.weight, np.append(end, -1))
    weight = np.array(weights)
    hits = products_down_to(rows.weight, rows.outcome, end)
    return Candidates(
        score=rows.score[end],
        end=end,
        coverage=weight / total_weight,
        accuracy=hits / weight,
        n_effective=effective_rows(rows, end),
    )


def last_rows_at_ranks(rows: RankedRows) -> I64:
    """Find the last row of the score at each of the ranks that candidates have."""
    n = rows.score.size
    n_ranks = 2 + int(math.log(n) / math.log(RANK_FACTOR))
    # Integers, since numpy would convert the rows of all scores to the type of the ranks.
    ranks = np.rint(np.geomspace(1, n, n_ranks)).astype(np.int64) - 1
    # Truth values are appended to, as they take an eighth of the memory of row numbers.
    last_of_score = np.flatnonzero(np.append(rows.score[1:] < rows.score[:-1], True))
    return last_of_score[np.unique(np.searchsorted(last_of_score, ranks))]


# --- promises -------------------------------------------------------------------------------


def lowest_promise(
    candidates: Candidates, miss_ratio: float, accuracy: float, alpha: float
) -> tuple[int, float] | None:
    """Find the last candidate that passes an accuracy, and the bound of its test.

    It is None where no candidate passes.

    The hypothesis "the accuracy is less than a" of a candidate with h hits among n effective rows
    has the p-value ``P(X >= h) = I_a(h, n - h + 1)`` of the binomial law of X, with the incomplete
    beta function I. Candidates are tested in their order, each at the sum of the levels of the
    starts since the last one that was not rejected: the fallback procedure of Wiens (2003, "A fixed
    sequence Bonferroni procedure for testing multiple endpoints"). All rejections together are
    right with the probability ``1 - alpha``. The bound is Clopper and Pearson's (1934) at the
    level of the last test that rejected.

    With weights, an accuracy and its bound are compared on the scale where misses weigh as much as
    hits, as their numbers count. Nothing passes where the weight of misses is not known.
    """
    from scipy.special import betainc

    if math.isinf(miss_ratio):
        return None
    required = scale_odds(accuracy, miss_ratio)
    n = candidates.n_effective
    hits = scale_odds(candidates.accuracy, miss_ratio) * n
    p_values = betainc(np.maximum(hits, SMALL), n - hits + 1, required)
    last_rejected = None
    level_of_rejection = 0.0
    level = 0.0
    for candidate, new_level in enumerate(start_levels(n, required, alpha)):
        level += new_level
        if 0 < level >= p_values[candidate]:
            last_rejected = candidate
            level_of_rejection = level
        else:
            level = 0.0
    if last_rejected is None:
        return None
    n_hits = hits[last_rejected]
    bound, _ = binomial_ends(n_hits, n[last_rejected] - n_hits, level_of_rejection, 1.0)
    return last_rejected, float(scale_odds(bound, 1 / miss_ratio))


def start_levels(n_rows: F64, accuracy: float, alpha: float) -> F64:
    """Share a level among the candidates (M,) where a sequence of tests begins.

    The first start is the candidate with the fewest of the `n_rows` rows that can promise anything,
    all of them right: ``accuracy ** n <= its level``. Each following start has some three times as
    many. Starts get parts in the proportion 1, 2, 3, ...: with equal parts, and with other ratios
    of their rows, more coverage was lost in simulations.
    """
    levels = np.zeros(n_rows.size)
    most_rows = n_rows.max()
    fewest_rows = math.log(alpha) / math.log(accuracy)
    if most_rows < fewest_rows:
        return levels
    n_starts = 1 + int(math.log(most_rows / fewest_rows) / math.log(RESTART_FACTOR))
    parts = np.arange(1.0, n_starts + 1)
    parts *= alpha / parts.sum()
    first = min(math.log(parts[0]) / math.log(accuracy), most_rows)
    rows_of_starts = np.geomspace(first, most_rows, n_starts + 1)[:-1] * (1 - ROUNDING)
    # Effective rows may decrease where a heavy row or a large group comes in.
    starts = np.searchsorted(np.maximum.accumulate(n_rows), rows_of_starts)
    np.add.at(levels, starts, parts)
    return levels


def scale_odds(p: Any, factor: float) -> Any:
    """Multiply the odds of probabilities by a factor."""
    return p * factor / (1 - p + p * factor)


# --- the choice -----------------------------------------------------------------------------


class Choice(NamedTuple):
    """The threshold of some rows; nan stands for a number that there is none of."""

    value: float = math.nan
    coverage: float = 0.0
    accuracy: float = math.nan
    accuracy_bound: float = math.nan
    coverage_low: float = 0.0
    coverage_high: float = 0.0


def choose(rows: RankedRows, accuracy: float, confidence: float, alpha: float) -> Choice:
    """Choose the threshold of some rows, with a promise of an accuracy.

    The promise fails with chance alpha, and the interval of the coverage has the level
    `confidence`.
    """
    candidates = rows.candidates
    promise = lowest_promise(candidates, rows.miss_ratio, accuracy, alpha)
    if promise is None:
        return Choice()
    candidate, accuracy_bound = promise
    coverage = float(candidates.coverage[candidate])
    n = effective_rows_of_share(rows, coverage, int(candidates.end[candidate]))
    low, high = binomial_ends(coverage * n, (1 - coverage) * n, *tails_of(confidence))
    return Choice(
        value=float(candidates.score[candidate]),
        coverage=coverage,
        accuracy=float(candidates.accuracy[candidate]),
        accuracy_bound=accuracy_bound,
        coverage_low=float(low),
        coverage_high=float(high),
    )
