"""Evidence against calibration in plain loops, from the definition; nothing of fastece is imported.

Bets begin before the first row and at each look, and each of them is followed by itself.
"""

from collections import defaultdict
from itertools import accumulate, pairwise
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
    parts = {0.05: 2, 0.1: 3, 0.2: 4, 0.4: 4, 0.8: 2, 1.6: 1}
    shifts_of_all = [(n, a) for size, n in parts.items() for a in (size, -size)]
    lines = [(a, b) for b in (0.65, 0.85, 1.15, 1.35) for a in (0, 0.4, -0.4, 1.2, -1.2)]
    ranges = pairwise([-inf, *range(-5, 6), inf])
    shifts_of_ranges = [(a, u, v) for u, v in ranges for a in (0.3, -0.3, 0.9, -0.9)]
    return [
        *((0.5 * n / 32, a, 1, -inf, inf) for n, a in shifts_of_all),
        *((0.3 / 20, a, b, -inf, inf) for a, b in lines),
        *((0.2 / 48, a, 1, u, v) for a, u, v in shifts_of_ranges),
    ]


def log_ratio(rows, shift, slope, low, high):
    """The log likelihood ratio of rows (score, outcome), by the tangent in the middle of a cell.

    A row adds y d - log(1 + m a) - (s - m) a / (1 + m a), with d the change of the log odds in its
    cell, a = exp(d) - 1, and m the score in the middle of the cell.
    """
    terms = []
    for s, y in rows:
        z = (cell_of(s) + 0.5) * 0.25
        d = shift + (slope - 1) * z if low < z < high else 0
        m = 1 / (1 + exp(-z))
        norm = 1 + m * expm1(d)
        terms += [y * d, -log(norm), -(s - m) * expm1(d) / norm]
    return fsum(terms)


def idle(n, forget):
    """The share of the money of a problem that has not been bet yet after n of its rows."""
    if forget is None:
        return 0.5 / sqrt(1 + n / 10_000)
    left = 0.9
    for period in range(n // forget + 1):
        rows = min(n - period * forget, forget)
        left -= 0.9 / ((period + 1) * (period + 2)) * rows / forget
    return left


def looks(n):
    """The numbers of rows after which there is a look."""
    at = []
    following = 0
    while following <= n:
        at.append(following)
        following += min(max(following // 32, 1), max(following // 2048, 160))
    return at


def monitor(rows, weights=(1.0,), forget=None):
    """The looks, the e-value at each, and the number of rows before the change, as estimated.

    A row has (score, outcome) for each problem; `weights` are the shares of the money of the
    problems, which sum to 1. The change is estimated at the largest e-value, as
    the begin of the bet with the largest gain times its share.
    """
    at = looks(len(rows))
    gains = defaultdict(list)
    for begin, end in pairwise(at):
        for k in range(len(weights)):
            members = [row[k] for row in rows[begin:end]]
            for j, (_, *rule) in enumerate(alternatives()):
                gains[k, j].append(log_ratio(members, *rule))
    so_far = {rule: [0.0, *accumulate(gain)] for rule, gain in gains.items()}
    left = [idle(n, forget) for n in at]
    values = [1.0]
    change = 0
    for t in range(1, len(at)):
        money = []
        best = -inf
        for k, weight in enumerate(weights):
            money.append(weight * left[t])
            for j, (share, *_) in enumerate(alternatives()):
                highest = -inf
                for begin in range(t + 1):  # the last one begins now
                    stake = 1 - left[0]
                    if begin > 0:
                        stake = left[begin - 1] - left[begin]
                    gain = so_far[k, j][t] - so_far[k, j][begin]
                    money.append(weight * share * stake * exp(gain))
                    if begin < t and gain >= highest:
                        highest = gain
                        begin_of_highest = at[begin]
                if log(weight * share) + highest > best:
                    best = log(weight * share) + highest
                    begin_of_best = begin_of_highest
        values.append(fsum(money))
        if values[-1] > max(values[:-1]):
            change = begin_of_best
    return at, values, change
