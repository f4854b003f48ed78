"""The dependence of labels within groups, estimated from the data."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.sources import RowTable
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.draws import LabelDraws
from fastece.resampling.groups import Dependence, Groups

# Bins of the scores whose gaps are taken off, so that a calibration error is not taken for
# dependence: there is one bin for so many groups.
GROUPS_PER_BIN = 8
MAX_BINS = 10
# Covariances that are tried, as fractions of the largest ones.
FRACTIONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0])
# Blocks of 32 replicates that are drawn with each of them.
BLOCKS_PER_FRACTION = 4
# A dependence is believed if this fraction of its samples shows as little of it as the data.
QUANTILE = 0.25
# Every k-th group is looked at, so that there are about so many rows, but not fewer groups.
TARGET_ROWS = 2**14
MIN_GROUPS = 200
# Key of the draws: the estimate is the same in every call.
KEY = 6


def estimate_dependence(data: RowTable, groups: Groups) -> Dependence:
    """Estimate the dependence within groups, rather too large than too small.

    It is the largest one under which, in a quarter of all samples, the products of the residuals of
    two rows of one group add up to no more than in the data. A residual is the outcome minus the
    observed frequency near its score. If there are several classes, the outcome is whether the top
    label is right.
    """
    score, outcome = top_problem(data)
    bin_of_row = assign_bins(score, groups.count)
    weight = vote_shares(data)
    frequency = smooth_outcomes(score, outcome, bin_of_row, weight)
    rows, group = rows_of_some_groups(groups)
    pairs = Pairs(frequency[rows], bin_of_row[rows], weight[rows, None], group)
    expected = [
        pairs.quantile_of_products(Dependence(group, groups.count, float(np.sqrt(fraction))))
        for fraction in FRACTIONS
    ]
    observed = float(pairs.add_products(outcome[rows, None])[0])
    fraction = np.interp(observed, np.maximum.accumulate(expected), FRACTIONS)
    dependence = Dependence(groups.of_row, groups.count, float(np.sqrt(fraction)))
    effect = design_effect(dependence, (score + frequency) / 2, data.v)
    return replace(dependence, effect=effect)


@dataclass(frozen=True)
class Pairs:
    """Rows of which the pairs of one group are looked at, ordered by group.

    Attributes
    ----------
    prob : (m,) float64 array
        Observed frequency near the score.
    bin_of_row : (m,) int64 array
    weight : (m, 1) float64 array
    group : (m,) int32 array
    """

    prob: F64
    bin_of_row: I64
    weight: F64
    group: I32

    def add_products(self, outcomes: NDArray[Any]) -> F64:
        """Add up the products (R,) of residuals of pairs, for outcomes (m, R)."""
        residuals = self.weight * (outcomes - self.prob[:, None])
        return pair_products(residuals, self.bin_of_row, self.group)

    def quantile_of_products(self, dependence: Dependence) -> float:
        """Draw outcomes with a dependence, and return a quantile of their products."""
        blocks = LabelDraws(KEY, self.prob, 0, dependence).make(0, BLOCKS_PER_FRACTION)
        outcomes = blocks[:, : self.prob.size]
        return float(np.quantile([self.add_products(block) for block in outcomes], QUANTILE))


def smooth_outcomes(score: F64, outcome: F64, bin_of_row: I64, weight: F64) -> F64:
    """Return the observed frequency (n,) near each score.

    It is the score plus the gap of its bin.
    """
    weight_of_bin = np.maximum(np.bincount(bin_of_row, weight), 1e-300)
    gap = np.bincount(bin_of_row, weight * (outcome - score)) / weight_of_bin
    return np.clip(score + gap[bin_of_row], 0.0, 1.0)


def rows_of_some_groups(groups: Groups) -> tuple[I64, I32]:
    """Select rows (m,) of every k-th group, and number these groups (m,).

    The rows are ordered by group.
    """
    k = max(min(groups.of_row.size // TARGET_ROWS, groups.count // MIN_GROUPS), 1)
    rows = np.argsort(groups.of_row, kind="stable")
    rows = rows[groups.of_row[rows] % k == 0]
    return rows, groups.of_row[rows] // k


def top_problem(data: RowTable) -> tuple[F64, F64]:
    """Return the scores and outcomes (n,) of the only problem, or of the top label."""
    if not data.setting.per_class:
        sample = data.view(0)
        return sample.s, sample.y.astype(np.float64)
    prob, label = data.read()
    return prob.max(1).astype(np.float64), (prob.argmax(1) == label).astype(np.float64)


def vote_shares(data: RowTable) -> F64:
    """Return the shares of the votes (n,) of soft labels; 1 of hard labels."""
    if data.votes == 1 or data.v is None:
        return np.ones(data.n)
    return np.asarray(data.v / data.v.max())


def assign_bins(score: F64, n_groups: int) -> I64:
    """Return the bin (n,) of each score: equal-mass bins of several groups each."""
    rank = np.empty(score.size, np.int64)
    rank[np.argsort(score, kind="stable")] = np.arange(score.size)
    n_bins = min(max(n_groups // GROUPS_PER_BIN, 1), MAX_BINS)
    return rank * n_bins // score.size


def pair_products(gap: F64, bin_of_row: I64, group: I32) -> F64:
    """Add up products (R,) of gaps (n, R) of pairs of rows of each group.

    The mean gap of each bin is taken off first, and the products of a group are divided by the
    number of its rows. Rows are ordered by group.
    """
    is_member = np.equal.outer(bin_of_row, np.arange(bin_of_row.max() + 1)).astype(np.float64)
    rows_of_bin = np.maximum(is_member.sum(0), 1)[:, None]
    gap = gap - is_member @ ((is_member.T @ gap) / rows_of_bin)
    first_row = np.flatnonzero(np.diff(group, prepend=-1))
    size = np.diff(first_row, append=group.size)[:, None]
    sums = np.add.reduceat(gap, first_row)
    squares = np.add.reduceat(gap * gap, first_row)
    return np.asarray(((sums * sums - squares) / size).sum(0))


def design_effect(dependence: Dependence, prob: F64, weight: F64 | None) -> float:
    """Compute how many times dependence multiplies the variance of all outcomes.

    It is ``1 + share**2 sum w_i w_j (min(p_i, p_j) - p_i p_j) / sum w_i**2 p_i (1 - p_i)``, with
    the first sum over the ordered pairs of rows of one group: Kish (1965), "Survey sampling",
    section 8.2.
    """
    order = np.lexsort((prob, dependence.of_row))
    p = prob[order]
    group = dependence.of_row[order]
    w = np.ones(p.size) if weight is None else weight[order] / weight.max()
    hits = w * p
    size = np.bincount(group)
    # Rows of a group are in order of p, so the smaller one of a pair is the one before.
    before = np.cumsum(hits) - hits
    before -= np.repeat(before[np.cumsum(size) - size], size)
    sums = np.bincount(group, hits)
    covariance = 2 * float(w @ before) - float(sums @ sums) + float(hits @ hits)
    variance = float(w @ (hits * (1 - p)))
    if variance <= 0:
        return 1.0
    return 1 + dependence.share**2 * max(covariance, 0.0) / variance
