"""The dependence of labels within groups, estimated from the data."""

from dataclasses import replace

import numpy as np

from fastece.data.sources import Problems
from fastece.kernels.types import F64, I64
from fastece.resampling.draws import Dependence, Groups, HitDraws

# Bins of the scores whose gaps are taken off, so that an error is not taken for dependence: one for
# so many groups, and at most so many.
GROUPS_OF_BIN, MOST_BINS = 8, 10
# Covariances that are tried, as parts of the largest ones, and blocks of 32 replicates of each.
PARTS, BLOCKS = np.array([0.0, 0.05, 0.2, 0.5, 1.0]), 4
# Part of the samples of a dependence that show as little of it as the data, of the largest one that
# is believed.
QUANTILE = 0.25
# Of more rows, some groups are looked at, but so many.
MOST_ROWS, LEAST_GROUPS = 2**14, 200
SEED = 6


def dependence_of(data: Problems, groups: Groups) -> Dependence:
    """Estimate the dependence within groups, rather too large than too small.

    It is the largest one under which, in a quarter of all samples, the products of the residuals of
    two rows of one group add up to no more than in the data. A residual is the outcome minus the
    observed frequency near its score. Of several classes it is whether the top label is right.
    """
    s, y = top_problem(data)
    place = bins_of_groups(s, groups.count)
    # Weights of soft labels are the shares of their votes.
    w = np.ones(data.n) if data.votes == 1 or data.v is None else data.v / data.v.max()
    gap = np.bincount(place, w * (y - s)) / np.maximum(np.bincount(place, w), 1e-300)
    prob = np.clip(s + gap[place], 0.0, 1.0)
    step = max(min(s.size // MOST_ROWS, groups.count // LEAST_GROUPS), 1)
    order = np.argsort(groups.of_row, kind="stable")
    order = order[groups.of_row[order] % step == 0]
    group, place, p, w = groups.of_row[order] // step, place[order], prob[order], w[order, None]
    tried, quantiles = Dependence(group, groups.count, 0.0), []
    for part in PARTS:
        draws = HitDraws(SEED, p, 0, replace(tried, share=float(np.sqrt(part))))
        blocks = draws.make(0, BLOCKS)[:, : p.size]
        drawn = [pair_products(w * (block - p[:, None]), place, group) for block in blocks]
        quantiles.append(np.quantile(drawn, QUANTILE))
    seen = float(pair_products(w * (y[order] - p)[:, None], place, group)[0])
    share = float(np.sqrt(np.interp(seen, np.maximum.accumulate(quantiles), PARTS)))
    found = replace(tried, of_row=groups.of_row, share=share)
    return replace(found, effect=design_effect(found, (s + prob) / 2, data.v))


def top_problem(data: Problems) -> tuple[F64, F64]:
    """Return the scores and outcomes (n,) of the only problem, or of the top label."""
    if not data.setting.per_class:
        sample = data.view(0)
        return sample.s, sample.y.astype(np.float64)
    prob, label = data.read()
    return prob.max(1).astype(np.float64), (prob.argmax(1) == label).astype(np.float64)


def bins_of_groups(s: F64, n_groups: int) -> I64:
    """Return the bin (n,) of each score: equal-mass bins of some groups each."""
    rank = np.empty(s.size, np.int64)
    rank[np.argsort(s, kind="stable")] = np.arange(s.size)
    return rank * min(max(n_groups // GROUPS_OF_BIN, 1), MOST_BINS) // s.size


def pair_products(gap: F64, place: I64, group: I64) -> F64:
    """Add up products (R,) of gaps (n, R) of pairs of rows of each group.

    The mean gap of each bin is taken off first, and a group counts by the number of its rows.
    """
    member = np.equal.outer(place, np.arange(place.max() + 1)).astype(np.float64)
    gap = gap - member @ ((member.T @ gap) / np.maximum(member.sum(0), 1)[:, None])
    start = np.flatnonzero(np.diff(group, prepend=-1))
    size = np.diff(start, append=group.size)[:, None]
    sums, squares = (np.add.reduceat(x, start) for x in (gap, gap * gap))
    return np.asarray(((sums * sums - squares) / size).sum(0))


def design_effect(dependence: Dependence, prob: F64, v: F64 | None) -> float:
    """Compute how many times dependence makes the variance of the weight of all hits.

    Hits with the probabilities p and q have at most the covariance ``min(p, q) - p q``.
    """
    order = np.lexsort((prob, dependence.of_row))
    p, group = prob[order], dependence.of_row[order]
    w = np.ones(p.size) if v is None else v[order] / v.max()
    hits, size = w * p, np.bincount(group)
    below = np.cumsum(hits) - hits
    below -= np.repeat(below[np.cumsum(size) - size], size)
    sums = np.bincount(group, hits)
    pairs = 2 * float(w @ below) - float(sums @ sums) + float(hits @ hits)
    own = float(w @ (hits * (1 - p)))
    return 1 + dependence.share**2 * max(pairs, 0.0) / own if own > 0 else 1.0
