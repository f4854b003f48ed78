"""Areas below risk-coverage curves, and promised thresholds, in plain loops.

Written from the definitions; nothing of fastece is imported. AURC and its excess: Geifman, Uziel
and El-Yaniv (2019). AUGRC: Traub et al. (2024). Thresholds: tests in a fixed sequence, Angelopoulos
et al. (2021), with the fallback procedure, Wiens (2003).
"""

from math import comb, exp, log, sqrt


def blocks(scores, losses, weights):
    """Weight and loss of each distinct score, from the highest down, as shares of the weight."""
    total = sum(weights)
    shares = []
    for score in sorted({s for s, w in zip(scores, weights, strict=True) if w > 0}, reverse=True):
        rows = [i for i, s in enumerate(scores) if s == score]
        weight = sum(weights[i] for i in rows)
        shares.append((weight / total, sum(weights[i] * losses[i] for i in rows) / total))
    return shares


def areas(scores, losses, weights):
    """AURC and AUGRC: integrals over the coverage c of L(c) / c and L(c).

    L(c) is the loss of the covered rows as a share of the total weight. It is linear in each block,
    L = a + b c from coverage c_0 to c_1, with a = 0 in the first one. There L(c) / c has the
    integral b (c_1 - c_0) + a log(c_1 / c_0).
    """
    covered = 0.0
    lost = 0.0
    aurc = 0.0
    augrc = 0.0
    for weight, loss in blocks(scores, losses, weights):
        slope = loss / weight
        aurc += slope * weight
        if covered > 0:
            intercept = lost - slope * covered
            aurc += intercept * log((covered + weight) / covered)
        augrc += weight * (lost + loss / 2)
        covered += weight
        lost += loss
    return aurc, augrc


def excess(scores, losses, weights):
    """AURC minus the AURC of the best order, in which losses increase."""
    best_scores = [-x for x in losses]
    return areas(scores, losses, weights)[0] - areas(best_scores, losses, weights)[0]


def stepwise_aurc(scores, losses, steps=200_000):
    """AURC of rows of equal weight by the midpoint rule."""
    all_blocks = blocks(scores, losses, [1.0] * len(scores))
    heights = 0.0
    for k in range(steps):
        c = (k + 0.5) / steps
        covered = 0.0
        lost = 0.0
        for weight, loss in all_blocks:
            if covered + weight >= c:
                lost += loss * (c - covered) / weight
                break
            covered += weight
            lost += loss
        heights += lost / c
    return heights / steps


def binomial_tail(hits, n, p):
    """Probability of so many hits or more."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits, n + 1))


def candidate_ranks(scores):
    """Numbers of rows above the candidates: ranks that grow by 2 %, equal scores together."""
    n = len(scores)
    count = 2 + int(log(n) / log(1.02))
    growing = {max(1, round(exp(log(n) * i / (count - 1)))) for i in range(count)}
    ordered = sorted(scores, reverse=True)
    ends_of_ties = [i + 1 for i in range(n) if i + 1 == n or ordered[i + 1] < ordered[i]]
    return sorted({min(end for end in ends_of_ties if end >= min(r, n)) for r in growing})


def starting_levels(ranks, accuracy, alpha):
    """The share of the risk alpha that is added to the sequence of tests at each candidate rank.

    With fewer than log(alpha) / log(accuracy) rows no test can reject, even if all rows are hits.
    Shares in the proportions 1, 2, 3, ... are added at ranks that grow by a constant factor; the
    first of them is large enough for the first share to reject.
    """
    level = dict.fromkeys(ranks, 0.0)
    n_rows = ranks[-1]
    min_rows = log(alpha) / log(accuracy)
    if n_rows < min_rows:
        return level
    count = 1 + int(log(n_rows / min_rows) / log(3))
    shares = [alpha * (k + 1) / (count * (count + 1) / 2) for k in range(count)]
    first = min(log(shares[0]) / log(accuracy), n_rows)
    for k, share in enumerate(shares):
        target = first * (n_rows / first) ** (k / count) * (1 - 1e-12)
        level[min(rank for rank in ranks if rank >= target)] += share
    return level


def lowest_threshold(scores, hits, accuracy, alpha):
    """The lowest score whose accuracy is promised, by the fallback procedure; None without one.

    A test that rejects passes its level on to the next rank; the others lose it.
    """
    rows = sorted(zip(scores, hits, strict=True), reverse=True)
    ranks = candidate_ranks(scores)
    added = starting_levels(ranks, accuracy, alpha)
    level = 0.0
    lowest = None
    for rank in ranks:
        level += added[rank]
        n_hits = sum(hit for _, hit in rows[:rank])
        if level > 0 and binomial_tail(n_hits, rank, accuracy) <= level:
            lowest = rows[rank - 1][0]
        else:
            level = 0.0
    return lowest


def miss_ratio(hits, weights):
    """Mean weight of misses over the mean weight of hits; 1 where either is missing."""
    of_hits = [w for w, hit in zip(weights, hits, strict=True) if hit]
    of_misses = [w for w, hit in zip(weights, hits, strict=True) if not hit]
    if not of_hits or not of_misses:
        return 1.0
    return sum(of_misses) / len(of_misses) / (sum(of_hits) / len(of_hits))


def effective_rows(scores, hits, weights, groups, lowest):
    """How many independent rows the rows with scores >= `lowest` are worth: (1 - 2 / G) (sum w)^2 /
    sum_ij w_i w_j r_ij over G groups, r_ij = 1 for i = j, r within a group, and 0 otherwise.
    Where every row is a group, the factor (1 - 2 / G) is left out."""
    n = len(scores)
    ratio = miss_ratio(hits, weights)
    weights = [w if hit else w / ratio for w, hit in zip(weights, hits, strict=True)]
    r = correlation_in_groups(scores, hits, weights, groups)
    selected = [i for i in range(n) if scores[i] >= lowest]
    total = sum(weights[i] for i in selected)
    squares = 0.0
    for i in selected:
        for j in selected:
            if i == j:
                squares += weights[i] ** 2
            elif groups[i] == groups[j]:
                squares += weights[i] * weights[j] * r
    n_groups = len(set(groups))
    factor = 1.0 if n_groups == n else max(1 - 2 / n_groups, 0.0)
    return factor * total**2 / squares


def correlation_in_groups(scores, hits, weights, groups):
    """The correlation of outcomes within a group, plus half its standard error, at most 1.

    It is the sum of products of deviations from the hit rates of bins of scores, over all pairs in
    a group, divided by the largest possible sum. The standard error is 1 / sqrt(groups with a
    miss).
    """
    n = len(scores)
    n_bins = min(max(len(set(groups)) // 8, 1), 10)
    bin_of = [sum(t < s for t in scores) * n_bins // n for s in scores]
    rate = {}
    for b in set(bin_of):
        rows = [i for i in range(n) if bin_of[i] == b]
        rate[b] = sum(weights[i] * hits[i] for i in rows) / sum(weights[i] for i in rows)
    products = 0.0
    largest = 0.0
    for i in range(n):
        for j in range(n):
            if i != j and groups[i] == groups[j]:
                p = rate[bin_of[i]]
                q = rate[bin_of[j]]
                pair = weights[i] * weights[j]
                products += pair * (hits[i] - p) * (hits[j] - q)
                largest += pair * sqrt(p * (1 - p) * q * (1 - q))
    if largest == 0:
        return 1.0
    groups_with_miss = {g for g, hit in zip(groups, hits, strict=True) if not hit}
    return min(max(products / largest, 0.0) + 0.5 / sqrt(len(groups_with_miss)), 1.0)
