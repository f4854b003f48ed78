"""Areas below risk-coverage curves, and promised thresholds, in plain loops."""

from math import comb, exp, log, sqrt


def blocks(scores, losses, weights):
    """Weight and loss of each distinct score, from the highest down, as shares of the weight."""
    total = sum(weights)
    found = []
    for score in sorted({s for s, w in zip(scores, weights, strict=True) if w > 0}, reverse=True):
        rows = [i for i, s in enumerate(scores) if s == score]
        weight = sum(weights[i] for i in rows)
        found.append((weight / total, sum(weights[i] * losses[i] for i in rows) / total))
    return found


def areas(scores, losses, weights):
    """AURC and AUGRC: integrals of L(c) / c and L(c), where L is linear in each block."""
    covered = lost = aurc = augrc = 0.0
    for weight, loss in blocks(scores, losses, weights):
        slope = loss / weight
        aurc += loss
        if covered > 0:
            aurc += (lost - slope * covered) * log((covered + weight) / covered)
        augrc += weight * (lost + loss / 2)
        covered, lost = covered + weight, lost + loss
    return aurc, augrc


def excess(scores, losses, weights):
    """AURC less that of the rows in the order of increasing losses."""
    return areas(scores, losses, weights)[0] - areas([-x for x in losses], losses, weights)[0]


def stepwise_aurc(scores, losses, steps=200_000):
    """AURC of rows of equal weight by the midpoint rule."""
    parts, total, count = blocks(scores, losses, [1.0] * len(scores)), 0.0, len(scores)
    for k in range(steps):
        c, covered, lost = (k + 0.5) / steps, 0.0, 0.0
        for weight, loss in parts:
            if covered + weight >= c:
                lost += loss * (c - covered) / weight
                break
            covered, lost = covered + weight, lost + loss
        total += lost / c
    assert count
    return total / steps


def binomial_tail(hits, n, p):
    """Probability of at least so many hits."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits, n + 1))


def candidate_ranks(scores):
    """Numbers of rows above the candidates: ranks that grow by 2 %, equal scores together."""
    n, ordered = len(scores), sorted(scores, reverse=True)
    count = 2 + int(log(n) / log(1.02))
    wanted = {max(1, round(exp(log(n) * i / (count - 1)))) for i in range(count)}
    ends = [i + 1 for i in range(n) if i + 1 == n or ordered[i + 1] < ordered[i]]
    return sorted({min(end for end in ends if end >= min(rank, n)) for rank in wanted})


def starts(ranks, accuracy, alpha):
    """Level that a sequence of tests begins with at each of some candidates."""
    level, most, fewest = dict.fromkeys(ranks, 0.0), ranks[-1], log(alpha) / log(accuracy)
    if most < fewest:
        return level
    count = 1 + int(log(most / fewest) / log(3))
    parts = [alpha * (k + 1) / (count * (count + 1) / 2) for k in range(count)]
    first = min(log(parts[0]) / log(accuracy), most)
    for k, part in enumerate(parts):
        wanted = first * (most / first) ** (k / count) * (1 - 1e-12)
        level[min(rank for rank in ranks if rank >= wanted)] += part
    return level


def lowest_threshold(scores, hits, accuracy, alpha):
    """The lowest score whose accuracy is promised, by the fallback procedure; None without one."""
    rows = sorted(zip(scores, hits, strict=True), reverse=True)
    ranks, left, best = candidate_ranks(scores), 0.0, None
    level = starts(ranks, accuracy, alpha)
    for rank in ranks:
        left += level[rank]
        right = sum(hit for _, hit in rows[:rank])
        if left > 0 and binomial_tail(right, rank, accuracy) <= left:
            best = rows[rank - 1][0]
        else:
            left = 0.0
    return best


def miss_ratio(hits, weights):
    """Mean weight of misses over that of hits; 1 without one of them."""
    of_hits = [w for w, hit in zip(weights, hits, strict=True) if hit]
    of_misses = [w for w, hit in zip(weights, hits, strict=True) if not hit]
    if not of_hits or not of_misses:
        return 1.0
    return sum(of_misses) / len(of_misses) / (sum(of_hits) / len(of_hits))


def effective_rows(scores, hits, weights, groups, lowest):
    """Independent rows that the rows with at least a score are worth."""
    n, names = len(scores), sorted(set(groups))
    ratio = miss_ratio(hits, weights)
    weights = [w if hit else w / ratio for w, hit in zip(weights, hits, strict=True)]
    bins = min(max(len(names) // 8, 1), 10)
    place = [sum(t < s for t in scores) * bins // n for s in scores]
    rate = {}
    for k in set(place):
        rows = [i for i in range(n) if place[i] == k]
        rate[k] = sum(weights[i] * hits[i] for i in rows) / sum(weights[i] for i in rows)
    seen = most = 0.0
    for i in range(n):
        for j in range(n):
            if i != j and groups[i] == groups[j]:
                p, q = rate[place[i]], rate[place[j]]
                pair = weights[i] * weights[j]
                seen += pair * (hits[i] - p) * (hits[j] - q)
                most += pair * sqrt(p * (1 - p) * q * (1 - q))
    missed = len({g for g, hit in zip(groups, hits, strict=True) if not hit})
    r = min(max(seen / most, 0.0) + 1 / sqrt(missed), 1.0) if most > 0 else 1.0
    above = [i for i in range(n) if scores[i] >= lowest]
    total = sum(weights[i] for i in above)
    squares = sum(
        weights[i] * weights[j] * (1.0 if i == j else r)
        for i in above
        for j in above
        if groups[i] == groups[j]
    )
    return max(1 - 2 / len(names), 0.0) * total**2 / squares
