"""Reading and checking the caller's rows as scores and hits, in one pass.

A kernel that checks returns whether all values are good, not which one is wrong: its caller then
looks again, slowly, to name the first offending entry. Nothing is read through a label that is not
checked yet.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.kernels import DISTANCE, MAX_ROWS_COMPARED, MIN_DEVIATIONS
from fastece.kernels.arithmetic import BLOCK, lane_sum
from fastece.kernels.compiling import jit
from fastece.kernels.types import F64, I64, U8

# A running maximum waits for the comparison before it. In long rows, many of them side by side
# wait less and vectorise: 50 000 x 1000 float32 take 18 ms rather than 42.
LANES = 32
LONG = 3 * LANES


@jit
def is_outside(x: float) -> np.int64:
    """Return 1 if a number is not in [0, 1], as nan is not, otherwise 0."""
    return np.int64(0) if (x >= 0.0) & (x <= 1.0) else np.int64(1)


@jit
def are_scores(score: F64) -> bool:
    """Return whether every number is in [0, 1], as nan is not (0.25 ns each)."""
    outside = np.int64(0)
    for i in range(score.size):
        x = score[i]
        outside |= is_outside(x)
    return bool(outside == 0)


@jit
def read_binary(score: F64, label: I64, hit: U8) -> bool:
    """Fill `hit` (n,) with labels; False if a label or a score is not valid.

    Labels (n,) have to be 0 or 1, and scores (n,) in [0, 1].
    """
    outside = np.int64(0)
    bits = np.int64(0)
    for i in range(label.size):
        x = score[i]
        outside |= is_outside(x)
        bits |= label[i]
        hit[i] = np.uint8(label[i])
    return bool((outside == 0) & (bits >= 0) & (bits <= 1))


@jit
def rows_compared(n: int) -> tuple[int, float]:
    """Return the step between the rows of a sign test, and its deviations.

    A part of many rows has to lean to one side, and all of few rows as far as for a warning.
    """
    step = 1 + n // MAX_ROWS_COMPARED
    return step, MIN_DEVIATIONS if step == 1 else 0.0


@jit
def is_worse_than_complement(
    score: F64, label: NDArray[Any], middle: float, step: int, deviations: float
) -> bool:
    """Return whether the complements of scores beat a guess, by a sign test.

    The guess is the most frequent label for all rows. The complement says 1 where the score is
    below `middle`. It is right where the guess is not in more rows than the other way round, by so
    many standard deviations of a sign test. Only every `step`-th row is read.
    """
    n_ones = np.int64(0)
    n_low = np.int64(0)
    n_low_ones = np.int64(0)
    for i in range(0, label.size, step):
        is_one = np.int64(label[i] == 1)
        is_low = np.int64(score[i] < middle)
        n_ones += is_one
        n_low += is_low
        n_low_ones += is_low & is_one
    n_rows = (label.size + step - 1) // step
    if 2 * n_ones <= n_rows:
        return is_more_often(n_low_ones, n_low - n_low_ones, deviations)
    n_high_ones = n_ones - n_low_ones
    n_high = n_rows - n_low
    return is_more_often(n_high - n_high_ones, n_high_ones, deviations)


@jit
def read_hits(score: F64, label: I64, hit: U8) -> bool:
    """Do as `read_binary`; also False if labels may contradict the scores."""
    step, deviations = rows_compared(score.size)
    if is_worse_than_complement(score, label, 0.5, step, deviations):
        return False
    return read_binary(score, label, hit)


@jit
def is_worse_than_guess(prob: F64, label: NDArray[Any], step: int, deviations: float) -> bool:
    """Return whether a guess beats the most probable class, by a sign test.

    The guess is the most frequent label for all rows. It is right where the prediction is not in
    more rows than the other way round, by so many standard deviations of a sign test. Only every
    `step`-th row is read; labels that are no classes are left out.
    """
    n_classes = prob.shape[1]
    n_of_label = np.zeros(n_classes, np.int64)
    n_right = np.zeros(n_classes, np.int64)
    for i in range(0, label.size, step):
        true = np.int64(label[i])
        if not 0 <= true < n_classes:
            continue
        row = prob[i]
        predicted = 0
        for k in range(1, n_classes):
            if row[k] > row[predicted]:
                predicted = k
        n_of_label[true] += 1
        n_right[true] += np.int64(predicted == true)
    guess = n_of_label.argmax()
    n_guess = n_of_label[guess] - n_right[guess]
    return is_more_often(n_guess, n_right.sum() - n_right[guess], deviations)


@jit
def is_more_often(n: np.int64, n_other: np.int64, deviations: float) -> bool:
    """Return whether a sign test finds `n` larger, by so many deviations."""
    return bool(n - n_other > deviations * np.sqrt(n + n_other))


@jit
def order_by_group(group: I64, starts: I64, order: I64) -> None:
    """Order rows by their group (n,); rows of one group keep their order.

    Parameters
    ----------
    group : (n,) int64 array
        From 0 to G - 1.
    starts : (G,) int64 array
        Where the rows of each group begin in `order`; overwritten.
    order : (n,) int64 array
        Overwritten.
    """
    for i in range(group.size):
        g = np.uint64(group[i])
        order[np.uint64(starts[g])] = i
        starts[g] += 1


@jit
def extremes(x: F64) -> tuple[float, float]:
    """Find the smallest and the largest number; inf and -inf if one is nan."""
    lows = np.full(LANES, np.inf)
    highs = np.full(LANES, -np.inf)
    has_nan = np.int64(0)
    n_in_lanes = x.size // LANES * LANES
    for start in range(0, n_in_lanes, LANES):
        part = x[start : start + LANES]
        for lane in range(LANES):
            has_nan |= np.int64(0) if part[lane] == part[lane] else np.int64(1)
            lows[lane] = part[lane] if part[lane] < lows[lane] else lows[lane]
            highs[lane] = part[lane] if part[lane] > highs[lane] else highs[lane]
    low = np.inf
    high = -np.inf
    for i in range(n_in_lanes, x.size):
        has_nan |= np.int64(0) if x[i] == x[i] else np.int64(1)
        low = x[i] if x[i] < low else low
        high = x[i] if x[i] > high else high
    for lane in range(LANES):
        low = min(low, lows[lane])
        high = max(high, highs[lane])
    return (low, high) if has_nan == 0 else (np.inf, -np.inf)


@jit
def are_classes(prob: F64, label: I64, tolerance: float) -> bool:
    """Return whether rows (n, K) are in [0, 1] and sum to 1, and labels are classes."""
    n, n_classes = prob.shape
    rows = max(1, BLOCK // n_classes)
    good = True
    for start in range(0, n, rows):  # so that sums find the entries in the first-level cache
        part = prob[start : start + rows]
        good &= are_scores(part.reshape(part.size))
        for i in range(part.shape[0]):
            y = label[start + i]
            good &= (y >= 0) & (y < n_classes) & (abs(lane_sum(part[i]) - 1) <= tolerance)
    return good


@jit
def long_row(row: NDArray[Any], lanes: NDArray[Any]) -> tuple[Any, Any, Any]:
    """Return largest entry, smallest entry and sum of a long row.

    It has at least `LANES` entries; `lanes` (3, LANES) is work space.
    """
    tops = lanes[0]
    lows = lanes[1]
    totals = lanes[2]
    for lane in range(LANES):
        tops[lane] = lows[lane] = totals[lane] = row[lane]
    n_in_lanes = row.size // LANES * LANES
    for k in range(LANES, n_in_lanes, LANES):
        for lane in range(LANES):
            x = row[k + lane]
            tops[lane] = x if x > tops[lane] else tops[lane]
            lows[lane] = x if x < lows[lane] else lows[lane]
            totals[lane] += x
    top = tops[0]
    low = lows[0]
    total = totals[0]
    for lane in range(1, LANES):
        top = tops[lane] if tops[lane] > top else top
        low = lows[lane] if lows[lane] < low else low
        total += totals[lane]
    for k in range(n_in_lanes, row.size):
        x = row[k]
        top = x if x > top else top
        low = x if x < low else low
        total += x
    return top, low, total


@jit
def read_top_label(
    prob: NDArray[Any], label: I64, least: float, most: float, tolerance: float, score: F64,
    hit: U8, distance: F64 | None = None,
) -> bool:  # fmt: skip
    """Read scores and hits of top labels from rows (n, K); False if one is bad.

    Parameters
    ----------
    prob, label : (n, K) float64 or float32 and (n,) int64 arrays
        Classes are from 0 to K - 1.
    least, most : float
        Bounds of the entries: 0 and 1; of logits -inf and the largest float, and a row may not be
        all -inf. As numbers, and not as a flag, they need no second compilation.
    tolerance : float
        How far the sum of a row may be from 1.
    score, hit : (n,) float64 and uint8 arrays
        Overwritten with the largest entry of each row, and with whether the label is its column,
        the first if there are more.
    distance : (n,) float64 array or None
        Overwritten with the squared distance of each row from its one-hot class: in the same pass,
        a third of the time of another one.
    """
    lanes = np.empty((3, LANES), prob.dtype)
    n_classes = prob.shape[1]
    squares = np.empty(0 if distance is None else n_classes)
    good = True
    for i in range(prob.shape[0]):
        y = label[i]
        is_class = (y >= 0) & (y < n_classes)
        if n_classes < LONG:  # without a branch that could be mispredicted
            top = low = total = prob[i, 0]
            column = 0
            square: Any = np.float64(top) * np.float64(top)
            for k in range(1, n_classes):
                x = prob[i, k]
                larger = x > top
                top = x if larger else top
                column = k if larger else column
                low = x if x < low else low
                total += x
                if distance is not None:
                    square += np.float64(x) * np.float64(x)
            is_hit = column == y
        else:
            top, low, total = long_row(prob[i], lanes)
            is_hit = is_class and prob[i, y] == top
            if is_hit:
                for k in range(y):
                    is_hit &= prob[i, k] < top
            for k in range(squares.size):
                squares[k] = np.float64(prob[i, k]) * np.float64(prob[i, k])
            square = lane_sum(squares)
        # a nan is in no comparison, but in the sum
        good &= (low >= least) & (top <= most) & (top > -np.inf) & (abs(total - 1) <= tolerance)
        good &= is_class
        score[i] = top
        hit[i] = is_hit
        if distance is not None:
            distance[i] = square - 2.0 * np.float64(prob[i, y if is_class else 0]) + 1.0
    return good


@jit
def read_problem(prob: F64, label: NDArray[Any], k: int, score: F64, hit: U8) -> tuple[F64, U8]:
    """Return the scores and outcomes of one problem.

    Parameters
    ----------
    prob, label : (n,) float64 and uint8 arrays
        Scores and outcomes of the only problem, which are returned as they are; or (n, K) class
        vectors and (n,) classes, each column of which is a problem.
    k : int
        The problem.
    score, hit : (n,) float64 and uint8 arrays
        Space that is filled with scores and outcomes of class k, and returned; for scores (n,) it
        is not looked at.
    """
    if prob.ndim == 1:
        return prob, label
    for i in range(label.size):
        score[i] = prob[i, k]
        hit[i] = label[i] == k
    return score, hit


@jit
def term(kind: int, s: float, y: bool) -> float:
    """Compute a squared distance of score and outcome, or the chance of the outcome."""
    if kind == DISTANCE:
        gap = s - np.float64(y)
        return gap * gap
    return s if y else 1.0 - s


@jit
def row_terms(kind: int, prob: F64, label: NDArray[Any], first: int, x: F64) -> None:
    """Compute a `term` of each row of some problems.

    Parameters
    ----------
    kind : int
        `DISTANCE` or `CHANCE`.
    prob, label : arrays
        As in `read_problem`.
    first : int
        The first problem.
    x : (K', n) float64 array
        Overwritten: a line for each problem from `first` on.
    """
    for k in range(x.shape[0]):
        line = x[k]
        if prob.ndim == 1:
            for i in range(line.size):
                line[i] = term(kind, prob[i], label[i] == 1)
        else:
            for i in range(line.size):
                line[i] = term(kind, prob[i, first + k], label[i] == first + k)


@jit
def vector_terms(kind: int, prob: F64, label: I64, x: F64) -> None:
    """Compute squared distances of vectors from classes, or chances of the classes.

    Parameters
    ----------
    kind : int
        `DISTANCE`, which is the sum of the `term` of each class; or `CHANCE`.
    prob, label : (n, K) float64 and (n,) int64 arrays
        Class vectors and classes, which are not checked.
    x : (n,) float64 array
        Overwritten.
    """
    for i in range(x.size):
        x[i] = prob[i, label[i]]
        if kind == DISTANCE:
            x[i] = 0.0
            for k in range(prob.shape[1]):
                x[i] += term(kind, prob[i, k], label[i] == k)
