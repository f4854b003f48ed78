"""The dependence of labels within groups, estimated from the data."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.table import RowTable
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
    copies = np.ones(data.n) if data.c is None else data.c
    bin_of_row = assign_bins(score, copies, groups.count)
    weight = vote_shares(data)
    frequency = smooth_outcomes(score, outcome, bin_of_row, copies * weight)
    rows, group = rows_of_some_groups(groups)
    chosen_copies = None if data.c is None else data.c[rows]
    pairs = Pairs(frequency[rows], bin_of_row[rows], weight[rows], group, chosen_copies)
    expected = [
        pairs.quantile_of_products(Dependence(group, groups.count, float(np.sqrt(fraction))))
        for fraction in FRACTIONS
    ]
    observed = float(pairs.add_products((copies * outcome)[rows, None])[0])
    fraction = np.interp(observed, np.maximum.accumulate(expected), FRACTIONS)
    dependence = Dependence(groups.of_row, groups.count, float(np.sqrt(fraction)))
    effect = design_effect(dependence, (score + frequency) / 2, data.v, copies)
    return replace(dependence, effect=effect)


@dataclass(frozen=True)
class Pairs:
    """Rows of which the pairs of one group are looked at, ordered by group.

    Two copies of one row are a pair too.

    Attributes
    ----------
    prob : (m,) float64 array
        Observed frequency near the score.
    bin_of_row : (m,) int64 array
    weight : (m,) float64 array
    group : (m,) int32 array
    copies : (m,) float64 array or None
        How many independent rows each row stands for; None for one.
    """

    prob: F64
    bin_of_row: I64
    weight: F64
    group: I32
    copies: F64 | None

    def add_products(self, hits: NDArray[Any]) -> F64:
        """Add up products (R,) of residuals of pairs, by copies (m, R) that are hits.

        The mean residual of each bin is taken off first, and the products of a group are divided by
        the number of its rows.
        """
        prob = self.prob[:, None]
        weight = self.weight[:, None]
        copies = np.ones_like(prob) if self.copies is None else self.copies[:, None]
        residuals = weight * (hits - copies * prob)
        squares = weight**2 * (hits * (1 - prob) ** 2 + (copies - hits) * prob**2)
        is_member = np.equal.outer(self.bin_of_row, np.arange(self.bin_of_row.max() + 1))
        is_member = is_member.astype(np.float64)
        rows_of_bin = np.maximum(is_member.T @ copies, 1)
        mean = is_member @ ((is_member.T @ residuals) / rows_of_bin)
        squares += mean * (copies * mean - 2 * residuals)
        residuals = residuals - copies * mean
        first_row = np.flatnonzero(np.diff(self.group, prepend=-1))
        size = np.add.reduceat(copies, first_row)
        sums = np.add.reduceat(residuals, first_row)
        sums_of_squares = np.add.reduceat(squares, first_row)
        return np.asarray(((sums * sums - sums_of_squares) / size).sum(0))

    def quantile_of_products(self, dependence: Dependence) -> float:
        """Draw outcomes with a dependence, and return a quantile of their products."""
        draws = LabelDraws(KEY, self.prob, 0, dependence, self.copies)
        blocks = draws.make(0, BLOCKS_PER_FRACTION)
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
    prob, label = data.read_kept()
    return prob.max(1).astype(np.float64), (prob.argmax(1) == label).astype(np.float64)


def vote_shares(data: RowTable) -> F64:
    """Return the shares of the votes (n,) of soft labels; 1 of hard labels."""
    if data.votes == 1 or data.v is None:
        return np.ones(data.n)
    return np.asarray(data.v / data.v.max())


def assign_bins(score: F64, copies: F64, n_groups: int) -> I64:
    """Return the bin (n,) of each score: equal-mass bins of several groups each."""
    order = np.argsort(score, kind="stable")
    rank = np.empty(score.size)
    rank[order] = np.cumsum(copies[order]) - copies[order]
    n_bins = min(max(n_groups // GROUPS_PER_BIN, 1), MAX_BINS)
    bin_of_row: I64 = (rank * n_bins // copies.sum()).astype(np.int64)
    return bin_of_row


def design_effect(
    dependence: Dependence, prob: F64, weight: F64 | None, copies: F64 | None = None
) -> float:
    """Compute how many times dependence multiplies the variance of all outcomes.

    It is ``1 + share**2 sum w_i w_j (min(p_i, p_j) - p_i p_j) / sum w_i**2 p_i (1 - p_i)``, with
    the first sum over the ordered pairs of rows of one group: Kish (1965), "Survey sampling",
    section 8.2. Copies of a row are rows too.
    """
    order = np.lexsort((prob, dependence.of_row))
    p = prob[order]
    group = dependence.of_row[order]
    w = np.ones(p.size) if weight is None else weight[order] / weight.max()
    c = np.ones(p.size) if copies is None else copies[order]
    hits = c * w * p
    size = np.bincount(group)
    # Rows of a group are in order of p, so the smaller one of a pair is the one before.
    before = np.cumsum(hits) - hits
    before -= np.repeat(before[np.cumsum(size) - size], size)
    sums = np.bincount(group, hits)
    of_rows = 2 * float((c * w) @ before) - float(sums @ sums) + float(hits @ hits)
    of_copies = float(((c - 1) * w) @ (hits * (1 - p)))
    covariance = of_rows + of_copies
    variance = float(w @ (hits * (1 - p)))
    if variance <= 0:
        return 1.0
    return 1 + dependence.share**2 * max(covariance, 0.0) / variance
