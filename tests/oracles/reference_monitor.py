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
    """(share of the money, shift, slope, lowest, highest log odds) of each alternative.

    The logit z of a score becomes shift + slope z between the lowest and the highest log odds.
    """
    shifts_of_all = [a for size in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6) for a in (size, -size)]
    lines = [(a, b) for b in (0.65, 0.85, 1.15, 1.35) for a in (0, 0.4, -0.4, 1.2, -1.2)]
    ranges = pairwise([-inf, *range(-5, 6), inf])
    shifts_of_ranges = [(a, u, v) for u, v in ranges for a in (0.3, -0.3, 0.9, -0.9)]
    return [
        *((0.4 / 12, a, 1, -inf, inf) for a in shifts_of_all),
        *((0.35 / 20, a, b, -inf, inf) for a, b in lines),
        *((0.25 / 48, a, 1, u, v) for a, u, v in shifts_of_ranges),
    ]


def log_ratio(rows, shift, slope, low, high):
    """The log likelihood ratio of rows (score, outcome); a cell's rows count with their mean score.

    A row adds y d - log(1 + s (exp(d) - 1)), with d the change of the log odds in its cell.
    """
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
    """The share of the money that has not been bet yet after n rows."""
    return 0.5 / sqrt(1 + n / 10_000)


def monitor(batches, weights=(1.0,)):
    """The e-value after each batch, and the number of rows before the change, as estimated.

    A batch has, for each problem, a list of rows (score, outcome); `weights` are shares of the
    money of each problem. The change is estimated at the largest e-value, as the begin of the bet
    with the largest gain there.
    """
    bets = [(w * share, k, rule) for k, w in enumerate(weights) for share, *rule in alternatives()]
    ratios = [[log_ratio(batch[k], *rule) for batch in batches] for _, k, rule in bets]
    sizes = [len(batch[0]) for batch in batches]
    rows_before = [sum(sizes[:i]) for i in range(len(batches) + 1)]
    values = []
    largest_value = 1.0
    change = 0
    for t in range(1, len(batches) + 1):
        money = [idle(rows_before[t])]
        largest_gain = -inf
        for (share, _, _), ratio in zip(bets, ratios, strict=True):
            for begin in range(t + 1):  # the last one begins now
                stake = 0.5
                if begin > 0:
                    stake = idle(rows_before[begin - 1]) - idle(rows_before[begin])
                gain = fsum(ratio[begin:t])
                money.append(stake * share * exp(gain))
                if begin < t and gain >= largest_gain:
                    largest_gain = gain
                    begin_of_largest = rows_before[begin]
        values.append(fsum(money))
        if values[-1] > largest_value:
            largest_value = values[-1]
            change = begin_of_largest
    return values, change
