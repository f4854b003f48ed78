"""Bets against calibration: rows are added one by one, and bets are settled at looks.

A calendar of the rows decides when bets are settled and new ones begin, so that the cuts between
batches change no bit::

    rows          1 2 3 ... 64 66 68 ...           5202      5362      5522
    looks         | | | ...  |  |  | ...              |         |         |
    rows between   1 1  ...   2  2   (a 32nd part)        160       160

Between two looks, rows wait in the sums of their cells. `follow_rows` is the loop over the rows;
`look` turns the sums into the money of the bets.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64, U8

# There is a look when the rows have grown by one part in so many, ...
PARTS_BETWEEN_LOOKS = 32
# ... but at least after so many rows, or a longer part of a very long stream: settling the bets
# costs 10 ns for each of 160 rows, and 2 ns for each of 1000.
MAX_WAITING = 160
PARTS_OF_LONG_STREAM = 2048
# Equal pieces of [0, 1] whose lowest cells are known.
N_PIECES = 1024
# Share of a problem's money that is bet before its first row.
SHARE_AT_START = 0.5
# Rows after which the money that is not bet yet has shrunk by the factor sqrt(2).
ROWS_OF_SCHEDULE = 10_000.0
# The same with a calendar of periods, whose bets begin evenly over the rows.
SHARE_AT_START_OF_PERIODS = 0.1
# Larger logarithms of gains, and of money, are moved to the common scale: exponentials of 709 are
# larger than floats.
MAX_LOG_GAIN = 250.0
MAX_LOG_MONEY = 300.0
# Places in `Bets.numbers`, ...
N_ROWS, N_AT_LOOK, SINCE, BEST, IS_IMPOSSIBLE = tuple(range(5))
# ... in `Bets.values`, ...
LOG_E_VALUE, MAX_LOG_E_VALUE, LOG_SCALE, HITS, SCORES = tuple(range(5))
# ... and in a row of looks.
LOOK_ROWS, LOOK_LOG_E_VALUE, LOOK_HITS, LOOK_SCORES = tuple(range(4))
# In place of a bet, where an outcome had the probability 0.
NO_BET = -1


class Wagers(NamedTuple):
    """J alternatives to calibration in C cells of scores.

    The log likelihood ratio of the rows of a cell is linear in their number, their hits, and the
    sum of their distances from the middle of the cell.

    Attributes
    ----------
    edges : (C - 1,) float64 array
        Scores between two cells.
    middles : (C,) float64 array
        A score in each cell.
    lowest_cell : (N_PIECES + 2,) int64 array
        The cell of the score ``k / N_PIECES``, for each k.
    gains : (C, 3, J) float64 array
        Gain of each alternative for a row, a hit, and a unit of distance from the middle.
    first, last : (C,) int64 arrays
        Besides the first `n_everywhere` alternatives, those from `first` to `last` change the odds
        of the scores in a cell.
    money, log_money : (J,) float64 arrays
        Share of the money that is bet on each alternative, and its logarithm.
    n_everywhere : int
        Number of alternatives that change the odds in all cells.
    forget : float
        Rows of a period of the calendar, or 0 for the calendar without periods.
    """

    edges: F64
    middles: F64
    lowest_cell: I64
    gains: F64
    first: I64
    last: I64
    money: F64
    log_money: F64
    n_everywhere: int
    forget: float


class Bets(NamedTuple):
    """Money of P problems in bets on J alternatives, and rows that wait for a look.

    Attributes
    ----------
    money : (P, J) float64 array
        Money in the bets on each alternative, from all beginnings, over the common scale.
    log_ratio : (P, J) float64 array
        Log likelihood ratio since the most likely beginning; it begins anew after a look at which
        it was not above 0 (Page 1954, "Continuous inspection schemes").
    first_row : (P, J) int64 array
        Rows of the stream before that beginning.
    share, total : (P,) float64 arrays
        Share of all money that the problem had at the beginning, and the money that it has now,
        over the common scale.
    waiting_rows, waiting_hits : (P, C) int64 arrays
        Numbers of rows and hits in each cell since the last look.
    waiting_distance : (P, C) float64 array
        Sum of their distances from the middle of the cell.
    numbers : (5,) int64 array
        Rows so far; rows at the last look; rows before the estimated change, and the bet that
        estimates it, when the e-value was largest; whether an outcome was impossible.
    values : (5,) float64 array
        Logarithm of the e-value now, its largest value, logarithm of the common scale, and the sums
        of the hits and the scores of the first problem.
    """

    money: F64
    log_ratio: F64
    first_row: I64
    share: F64
    total: F64
    waiting_rows: I64
    waiting_hits: I64
    waiting_distance: F64
    numbers: I64
    values: F64


@jit
def rows_between_looks(n: int) -> int:
    """Return the number of rows from a look after n rows to the next one."""
    longest = max(n // PARTS_OF_LONG_STREAM, MAX_WAITING)
    n_rows: int = min(max(n // PARTS_BETWEEN_LOOKS, 1), longest)
    return n_rows


@jit
def money_left(n: float, forget: float) -> float:
    """Return the share of a problem's money that is not bet yet after n of its rows.

    Without periods, half is bet at the start and the rest falls as 1 / sqrt(n). With periods of
    `forget` rows, the share 1 / ((j + 1) (j + 2)) of the rest is bet evenly over period j.
    """
    if forget == 0:
        return (1.0 - SHARE_AT_START) / math.sqrt(1.0 + n / ROWS_OF_SCHEDULE)
    period = math.floor(n / forget)
    spent = n / forget - period
    return (1.0 - SHARE_AT_START_OF_PERIODS) * (1.0 - spent / (period + 2.0)) / (period + 1.0)


@jit
def cell_of(s: float, edges: F64, lowest_cell: I64) -> int:
    """Find the cell of a score: the number of edges that are at most the score.

    `edges` and `lowest_cell` are those of `Wagers`.

    Most pieces of [0, 1] have at most one edge: 1 ns in place of 24 for bisection alone.
    """
    piece = int(s * N_PIECES)
    low: int = lowest_cell[piece]
    high = lowest_cell[piece + 1]
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= s:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def find_impossible(scores: F64, outcomes: U8) -> int:
    """Find the first row whose outcome had the probability 0, or return -1."""
    n_impossible = 0
    for i in range(scores.size):
        n_impossible += scores[i] == 1.0 - outcomes[i]
    if n_impossible == 0:
        return -1
    i = 0
    while scores[i] != 1.0 - outcomes[i]:
        i += 1
    return i


@jit
def raise_scale(bets: Bets, log_factor: float) -> None:
    """Divide all money by a factor, which goes to the common scale."""
    factor = math.exp(-log_factor)
    for problem in range(bets.total.size):
        bets.total[problem] *= factor
        for j in range(bets.money.shape[1]):
            bets.money[problem, j] *= factor
    bets.values[LOG_SCALE] += log_factor


@jit
def look(wagers: Wagers, bets: Bets, gain: F64) -> None:
    """Pay the bets for the waiting rows, begin new ones, and find the e-value.

    `gain` (J,) is work space.
    """
    numbers = bets.numbers
    values = bets.values
    for problem in range(bets.share.size):
        # The log likelihood ratio of the waiting rows; their cells are emptied.
        waiting_rows = bets.waiting_rows[problem]
        waiting_hits = bets.waiting_hits[problem]
        waiting_distance = bets.waiting_distance[problem]
        for j in range(gain.size):
            gain[j] = 0.0
        for cell in range(wagers.middles.size):
            if waiting_rows[cell] == 0:
                continue
            rows = float(waiting_rows[cell])
            hits = float(waiting_hits[cell])
            distance = waiting_distance[cell]
            gains = wagers.gains[cell]  # for a row, a hit, and a unit of distance
            for j in range(wagers.n_everywhere):
                gain[j] += hits * gains[1, j] + rows * gains[0, j] + distance * gains[2, j]
            for j in range(wagers.first[cell], wagers.last[cell]):
                gain[j] += hits * gains[1, j] + rows * gains[0, j] + distance * gains[2, j]
            waiting_rows[cell] = 0
            waiting_hits[cell] = 0
            waiting_distance[cell] = 0.0

        # Gains that are too large for floats go to the common scale first.
        largest = -math.inf
        for j in range(gain.size):
            largest = max(largest, gain[j])
        if largest > MAX_LOG_GAIN:
            raise_scale(bets, largest)

        # Bets are paid, and the money that falls due is bet.
        scale = math.exp(-values[LOG_SCALE])
        left = bets.share[problem] * money_left(float(numbers[N_ROWS]), wagers.forget)
        left_before = bets.share[problem] * money_left(float(numbers[N_AT_LOOK]), wagers.forget)
        new_money = left_before - left
        money = bets.money[problem]
        log_ratio = bets.log_ratio[problem]
        total = 0.0
        for j in range(gain.size):
            if log_ratio[j] <= 0.0:
                log_ratio[j] = 0.0
                bets.first_row[problem, j] = numbers[N_AT_LOOK]
            log_ratio[j] += gain[j]
            money[j] = money[j] * math.exp(gain[j]) + new_money * wagers.money[j] * scale
            total += money[j]
        bets.total[problem] = total + left * scale
        log_total = math.log(bets.total[problem])
        if log_total > MAX_LOG_MONEY:
            raise_scale(bets, log_total)

    # The e-value is the money of all problems.
    all_money = 0.0
    for problem in range(bets.total.size):
        all_money += bets.total[problem]
    numbers[N_AT_LOOK] = numbers[N_ROWS]
    if numbers[IS_IMPOSSIBLE] == 1:
        return
    values[LOG_E_VALUE] = values[LOG_SCALE] + math.log(all_money)
    if values[LOG_E_VALUE] <= values[MAX_LOG_E_VALUE]:
        return

    # It is larger than ever: the bet with the largest gain for its money tells since when.
    values[MAX_LOG_E_VALUE] = values[LOG_E_VALUE]
    highest = -math.inf
    for problem in range(bets.share.size):
        log_share = math.log(bets.share[problem])
        for j in range(wagers.money.size):
            height = log_share + wagers.log_money[j] + bets.log_ratio[problem, j]
            if height > highest:
                highest = height
                numbers[BEST] = problem * wagers.money.size + j
                numbers[SINCE] = bets.first_row[problem, j]


@jit
def follow_rows(scores: F64, outcomes: U8, wager_fields: Any, bet_fields: Any, looks: F64) -> int:
    """Add the rows of a batch in their order, with looks by the calendar.

    Parameters
    ----------
    scores : (Q, n) float64 array
        Scores in [0, 1] of Q problems.
    outcomes : (Q, n) uint8 array
    wager_fields, bet_fields : tuples
        Fields of `Wagers` and of `Bets`; these are changed.
    looks : (L, 4) float64 array
        Receives the rows, the log e-value, the hits and the scores at each look.

    Returns
    -------
    int
        Number of looks.
    """
    wagers = Wagers(*wager_fields)
    bets = Bets(*bet_fields)
    numbers = bets.numbers
    values = bets.values
    n_problems, n = scores.shape
    gain = np.empty(wagers.money.size)
    n_looks = 0
    begin = 0
    while begin < n:
        waiting = numbers[N_ROWS] - numbers[N_AT_LOOK]
        n_missing = rows_between_looks(numbers[N_AT_LOOK]) - waiting
        end = min(begin + n_missing, n)
        for q in range(n_problems):
            s = scores[q, begin:end]
            y = outcomes[q, begin:end]
            # Rows wait in the sums of their cells.
            waiting_rows = bets.waiting_rows[q]
            waiting_hits = bets.waiting_hits[q]
            waiting_distance = bets.waiting_distance[q]
            for i in range(s.size):
                score = s[i]
                cell = np.uint64(cell_of(score, wagers.edges, wagers.lowest_cell))
                waiting_rows[cell] += 1
                waiting_hits[cell] += y[i]
                waiting_distance[cell] += score - wagers.middles[cell]
            # An outcome that had the probability 0 makes the e-value infinite for good.
            impossible = find_impossible(s, y)
            since = numbers[N_ROWS] + impossible
            if impossible >= 0 and (numbers[IS_IMPOSSIBLE] == 0 or since < numbers[SINCE]):
                numbers[IS_IMPOSSIBLE] = 1
                numbers[BEST] = NO_BET
                numbers[SINCE] = since
                values[LOG_E_VALUE] = math.inf
                values[MAX_LOG_E_VALUE] = math.inf
        hits = 0
        sum_of_scores = values[SCORES]
        for i in range(begin, end):
            sum_of_scores += scores[0, i]
            hits += outcomes[0, i]
        values[SCORES] = sum_of_scores
        values[HITS] += hits
        numbers[N_ROWS] += end - begin
        if end - begin == n_missing:
            look(wagers, bets, gain)
            looks[n_looks, LOOK_ROWS] = numbers[N_ROWS]
            looks[n_looks, LOOK_LOG_E_VALUE] = values[LOG_E_VALUE]
            looks[n_looks, LOOK_HITS] = values[HITS]
            looks[n_looks, LOOK_SCORES] = values[SCORES]
            n_looks += 1
        begin = end
    return n_looks
