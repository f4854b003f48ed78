"""Signs that numbers mislead: when each one is given, and its sentence.

A sign must never come for good data: `tests/field/test_doubts.py` counts how often it does.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.errors import RowsWarning, warn
from fastece.data.samples import Sample
from fastece.data.scores import MAX_ENTRIES_READ, are_native, class_vectors, two_columns
from fastece.data.table import RowTable, class_count
from fastece.kernels import MAX_ROWS_COMPARED, MIN_DEVIATIONS
from fastece.kernels.types import F64, I64

# Means of probabilities that differ by less are equal.
MEAN_TOLERANCE = 1e-12
# Level at which predicted and true classes must not be found dependent, for a warning.
INDEPENDENCE_LEVEL = 1e-4
# Mean confidence from which a model claims to know much; below it scores may well be noise.
MIN_CONFIDENCE = 0.85
# With many classes a smaller confidence is a claim too, if it is so many times the hits by chance.
MIN_CONFIDENCE_OF_MANY = 0.5
MIN_RATIO_OF_MANY = 5
# Rows in a cell of the table of classes, on average: with fewer the chi-squared law is not exact.
MIN_CELL_ROWS = 5
# Standard deviations of hits by chance that the model promises above them, for that warning.
MIN_PROMISE = 10
# Different scores of a block of rows that does not come a second time by chance.
MIN_DISTINCT_ROWS = 20
# Hits may exceed their number by chance by so many standard deviations.
MAX_CHANCE = 3
# Rows from which equal scores are no accident.
MIN_CONSTANT_ROWS = 20
# Equal scores of single classes that a sentence lists.
MAX_VALUES_SHOWN = 3
EQUAL_SCORES = "All {} rows have the same prediction, {}: only its mean can be judged."
CERTAIN_SCORES = "All {} predictions are 0 or 1: are these predicted classes, not probabilities?"
REPEATED_ROWS = (
    "The rows come {} times with the same labels. If these are repeats of one row, name the row by "
    "groups= or --groups: intervals and p-values take rows as independent."
)
IMPOSSIBLE_OUTCOME = (
    "The outcome had the predicted probability 0 in {}: no calibrated model allows that, so the "
    "test of calibration rejects."
)


# --- outcomes that cannot be ----------------------------------------------------------------


def are_impossible(sample: Sample) -> NDArray[np.bool_]:
    """Decide for rows (n,) whether their outcome had the probability 0."""
    impossible = ((sample.s <= 0) & (sample.y > 0)) | ((sample.s >= 1) & (sample.y < 1))
    return np.asarray(impossible)


def impossible_rows(table: RowTable) -> list[NDArray[np.bool_]]:
    """Find the rows (n,) of each problem whose outcome had probability 0.

    The problems of a stream have rows of their own, and not the same number of them.
    """
    return [are_impossible(sample) for sample in table.samples(reads_only=True)]


# --- scores that are no probabilities --------------------------------------------------------


def describe_constant_scores(table: RowTable) -> str:
    """Write a sentence on scores that are all equal, or all 0 or 1; "" for others."""
    n = table.count()
    scores = [sample.s for sample in table.samples(reads_only=True)]
    if n < MIN_CONSTANT_ROWS:
        return ""
    if all(s.min() == s.max() for s in scores):
        values = ", ".join(f"{s[0]:.4g}" for s in scores[:MAX_VALUES_SHOWN])
        return EQUAL_SCORES.format(n, values)
    if all(((s <= 0) | (s >= 1)).all() for s in scores):
        return CERTAIN_SCORES.format(n)
    return ""


# --- labels that do not belong to the predictions --------------------------------------------


@dataclass(frozen=True)
class LabelledVectors:
    """Rows of class vectors with their labels, all rows or evenly spaced ones.

    Attributes
    ----------
    p : (n,) or (n, K) array
        Probabilities, or logits; (n,) of the positive class.
    y : (n,) int64 array
    from_logits : bool
    """

    p: NDArray[Any]
    y: I64
    from_logits: bool

    @property
    def is_binary(self) -> bool:
        """Whether the caller has one column."""
        return self.p.ndim == 1

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return class_count(self.p.shape)

    @cached_property
    def advantage(self) -> F64:
        """Probability of the positive class minus the other one, or its logit (n,)."""
        p = self.p.astype(np.float64, copy=False)
        return p if self.from_logits else np.asarray(p - (1 - p))

    @cached_property
    def predicted(self) -> I64:
        """The most probable class (n,) of each row, the first of equal ones."""
        if self.is_binary:
            return (self.advantage > 0).astype(np.int64)
        return np.asarray(self.p.argmax(axis=1))

    @cached_property
    def probabilities(self) -> F64:
        """Probabilities (n, K)."""
        p = two_columns(self.p, self.from_logits) if self.is_binary else self.p
        return class_vectors(p, self.from_logits)


def warn_of_contradiction(
    prob: NDArray[Any], label: NDArray[Any], from_logits: bool, names: Any, prob_name: str
) -> None:
    """Warn of labels that contradict the predictions, as columns in another order do."""
    if not may_contradict(prob, label, from_logits):
        return
    rows = some_rows(prob)
    labelled = LabelledVectors(prob[rows], label[rows].astype(np.int64, copy=False), from_logits)
    rule = contradiction(labelled, names)
    if rule:
        warn(prob_name, rule, kind=RowsWarning)


def may_contradict(prob: NDArray[Any], label: NDArray[Any], from_logits: bool) -> bool:
    """Decide by some rows whether `contradiction` has to look at more of them.

    A part of many rows has to lean to that side, and all of few rows as far as for a warning.
    Labels of any integers or bools will do, also those that are no classes.
    """
    step = 1 + len(prob) // MAX_ROWS_COMPARED
    deviations = MIN_DEVIATIONS if step == 1 else 0.0  # as `kernels.reading.rows_compared`
    if not are_native(label, prob):
        prob = contiguous(prob[::step], np.float64)
        label = contiguous(label[::step], np.int64)
        step = 1
    if prob.ndim == 2:
        return kernels.reading.is_worse_than_guess(prob, label, step, deviations)
    middle = 0.0 if from_logits else 0.5
    return kernels.reading.is_worse_than_complement(prob, label, middle, step, deviations)


def some_rows(prob: NDArray[Any]) -> slice:
    """Choose all rows, or evenly spaced ones of many."""
    return slice(None, None, 1 + prob.size // MAX_ENTRIES_READ)


def contradiction(rows: LabelledVectors, names: Any) -> str:
    """Describe predictions that contradict the labels, as columns in another order do.

    By a sign test, the predicted class is right less often than the most frequent one would be; and
    labels have no higher probability than in other rows. One column may hold confidences of hits:
    their complement has to be right more often than the most frequent class would be.
    """
    y = rows.y
    share = np.bincount(y, minlength=rows.n_classes) / max(y.size, 1)
    most_frequent = int(share.argmax())
    is_guess_right = y == most_frequent
    is_prediction_right = rows.predicted == y
    n_gained = np.count_nonzero(is_prediction_right) - np.count_nonzero(is_guess_right)
    n_lost = -n_gained
    n_changed = np.count_nonzero(is_prediction_right != is_guess_right)
    if rows.is_binary:
        is_complement_right = (rows.advantage < 0) == y
        n_lost = np.count_nonzero(is_complement_right) - np.count_nonzero(is_guess_right)
        n_changed = np.count_nonzero(is_complement_right != is_guess_right)
    if n_lost <= MIN_DEVIATIONS * math.sqrt(n_changed):
        return ""
    p = rows.probabilities
    p = p - p.mean(axis=0)
    lift = p[np.arange(y.size), y] - p @ share
    if lift.mean() >= 3 * lift.std() / math.sqrt(y.size) - MEAN_TOLERANCE:
        return ""
    class_names = names or range(p.shape[1])
    right = f"{100 * (n_gained / y.size + share[most_frequent]):.3g} %"
    by_guess = f"{100 * share[most_frequent]:.3g} %"
    question = "are labels and columns in the same order?"
    if rows.is_binary:
        question = f"is it the probability of {class_names[1]!r}?"
    return (
        f"its class is right in {right} of the rows, and {class_names[most_frequent]!r} for all "
        f"would be in {by_guess}: {question}"
    )


def describe_foreign_labels(problems: RowTable) -> str:
    """Write a sentence on labels that a confident model knows nothing of, or "".

    `problems` are binary or class-wise.

    Labels of another split are like that. If its confidence were right, hits would be far above the
    number that chance alone gives; they are not, and a chi-squared test finds the predicted and the
    true classes independent.
    """
    prob, label = problems.read(some_rows(problems.prob))
    rows = LabelledVectors(prob, label.astype(np.int64, copy=False), from_logits=False)
    n = rows.y.size
    predicted = rows.predicted
    n_classes = rows.n_classes
    of_predicted = np.bincount(predicted, minlength=n_classes)
    of_true = np.bincount(rows.y, minlength=n_classes)
    chance = float(of_predicted @ of_true) / max(n, 1) ** 2
    deviation = math.sqrt(n * chance * (1 - chance))
    hits = int((predicted == rows.y).sum())
    if deviation == 0 or hits - n * chance > MAX_CHANCE * deviation:
        return ""
    confidence = float(rows.probabilities.max(axis=1).mean())
    is_claim_of_many = confidence >= max(MIN_CONFIDENCE_OF_MANY, MIN_RATIO_OF_MANY * chance)
    if confidence < MIN_CONFIDENCE and not is_claim_of_many:
        return ""
    if n * (confidence - chance) < MIN_PROMISE * deviation:
        return ""
    p_value = independence_p_value(predicted, rows.y, n_classes)
    if math.isnan(p_value) or p_value <= INDEPENDENCE_LEVEL:
        return ""
    return (
        f"The predicted class is right in {100 * hits / n:.3g} % of the rows, as by chance, and "
        f"the mean confidence is {100 * confidence:.3g} %: predicted and true classes are "
        f"independent (p = {p_value:.2g}). Do predictions and labels belong to the same rows?"
    )


def independence_p_value(predicted: I64, true: I64, n_classes: int) -> float:
    """Compute the p-value of Pearson's test of pairs of classes; nan for a single one.

    Classes are pooled, both in the same way, until a cell of the table has enough rows.
    """
    from scipy.special import chdtrc

    n = true.size
    n_pools = max(2, min(n_classes, math.isqrt(n // MIN_CELL_ROWS)))
    table = np.zeros((n_pools, n_pools))
    np.add.at(table, (predicted % n_pools, true % n_pools), 1)
    of_predicted = table.sum(axis=1)
    of_true = table.sum(axis=0)
    expected = np.outer(of_predicted, of_true)[table > 0] / n
    statistic = float((table[table > 0] ** 2 / expected).sum()) - n
    df = ((of_predicted > 0).sum() - 1) * ((of_true > 0).sum() - 1)
    return float(chdtrc(df, max(statistic, 0.0))) if df > 0 else math.nan


# --- rows that come several times -----------------------------------------------------------


def describe_repeats(problems: RowTable) -> str:
    """Write a sentence on blocks of rows that come several times, or "".

    Predictions of repeated folds are like that, in a block for each repeat, or with all repeats of
    a row one after the other.
    """
    n_times = 1 if problems.votes > 1 else count_repeats(problems.prob, problems.label)
    return REPEATED_ROWS.format(n_times) if n_times > 1 else ""


def count_repeats(prob: NDArray[Any], label: NDArray[Any]) -> int:
    """Count how many times a block of rows comes one after the other; 1 for good data."""
    n = label.size
    if n < 2 * MIN_DISTINCT_ROWS:
        return 1
    n_times = repeats_of_block(prob, label)
    is_distinct = n_times > 1 and has_distinct_rows(prob[: n // n_times])
    if is_distinct:
        return n_times
    n_times = repeats_of_each_row(prob, label)
    is_distinct = n_times > 1 and has_distinct_rows(prob[::n_times])
    return n_times if is_distinct else 1


def repeats_of_block(prob: NDArray[Any], label: NDArray[Any]) -> int:
    """Count how often the smallest block of rows that makes all rows comes in them."""
    n_block = label.size
    for factor in prime_factors(label.size):
        step = n_block // factor
        # Most rows differ from the first one, which is seen without a look at all others.
        starts = [slice(1), slice(step), slice(n_block - step)]
        if all(
            np.array_equal(array[: part.stop], array[step : step + part.stop])
            for part in starts
            for array in (label, prob)
        ):
            n_block = step
    return label.size // n_block


def repeats_of_each_row(prob: NDArray[Any], label: NDArray[Any]) -> int:
    """Count how many times every row comes one after the other."""
    if label[0] != label[1] or not np.array_equal(prob[0], prob[1]):
        return 1
    is_new = label[1:] != label[:-1]
    columns = prob[:, None] if prob.ndim == 1 else prob
    is_new |= (columns[1:] != columns[:-1]).any(axis=1)
    return int(np.gcd.reduce(np.append(np.flatnonzero(is_new) + 1, label.size)))


def has_distinct_rows(prob: NDArray[Any]) -> bool:
    """Decide whether a block has so many scores that it does not come again by chance."""
    first_column = prob if prob.ndim == 1 else prob[:, 0]
    return np.unique(first_column).size >= MIN_DISTINCT_ROWS


def prime_factors(number: int) -> list[int]:
    """Factor a number into primes, in increasing order."""
    factors = []
    factor = 2
    while factor * factor <= number:
        if number % factor == 0:
            factors.append(factor)
            number //= factor
        else:
            factor += 1
    return [*factors, number] if number > 1 else factors
