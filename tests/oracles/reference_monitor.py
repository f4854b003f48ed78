"""Evidence against calibration in plain loops, from the definition; nothing of fastece is imported.

Bets begin before each batch, and each of them is followed by itself.
"""

from collections import defaultdict
from itertools import pairwise
from math import exp, expm1, floor, fsum, inf, log, log1p, sqrt


def cell_of(s):
    """The number of the cell of a score: its log odds in units of 0.25, within 14 of 0."""
    if s in (0, 1):
        return 56 if s else -57
    return min(max(floor((log(s) - log1p(-s)) / 0.25), -57), 56)


def alternatives():
    """(share of the money, shift, slope, lowest, highest log odds) of each alternative."""
    signs = (1, -1)
    sizes = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
    found = [(0.4 / 12, sign * a, 1, -inf, inf) for a in sizes for sign in signs]
    slopes, shifts = (0.65, 0.85, 1.15, 1.35), (0, 0.4, -0.4, 1.2, -1.2)
    found += [(0.35 / 20, a, b, -inf, inf) for b in slopes for a in shifts]
    cuts = [-inf, *range(-5, 6), inf]
    for u, v in pairwise(cuts):
        found += [(0.25 / 48, sign * a, 1, u, v) for a in (0.3, 0.9) for sign in signs]
    return found


def log_ratio(rows, shift, slope, low, high):
    """The log likelihood ratio of rows (score, outcome), those of a cell with their mean score."""
    cells = defaultdict(list)
    for s, y in rows:
        cells[cell_of(s)].append((s, y))
    terms = []
    for cell, members in cells.items():
        z = (cell + 0.5) * 0.25
        d = shift + (slope - 1) * z if low < z < high else 0
        mean = fsum(s for s, _ in members) / len(members)
        hits = sum(y for _, y in members)
        terms.append(hits * d - len(members) * log1p(mean * expm1(d)))
    return fsum(terms)


def idle(n):
    """The money that is not bet after n rows."""
    return 0.5 / sqrt(1 + n / 10_000)


def monitor(batches, weights=(1.0,)):
    """The e-value after each batch, and the number of rows before the change, as estimated.

    A batch has, for each problem, a list of rows (score, outcome); `weights` are shares of the
    money of each problem.
    """
    bets = [(w * share, k, rule) for k, w in enumerate(weights) for share, *rule in alternatives()]
    rows = [len(batch[0]) for batch in batches]
    before = [sum(rows[:i]) for i in range(len(batches) + 1)]
    ratios = [[log_ratio(batch[k], *rule) for batch in batches] for _, k, rule in bets]
    values, most, since = [], 1.0, 0
    for t in range(1, len(batches) + 1):
        money = [idle(before[t])]
        best = -inf
        for (share, _, _), ratio in zip(bets, ratios, strict=True):
            for begin in range(t + 1):  # the last one begins now
                first = 0.5 if begin == 0 else idle(before[begin - 1]) - idle(before[begin])
                gain = fsum(ratio[begin:t])
                money.append(first * share * exp(gain))
                if begin < t and gain >= best:
                    best, start = gain, before[begin]
        values.append(fsum(money))
        if values[-1] > most:
            most, since = values[-1], start
    return values, since
