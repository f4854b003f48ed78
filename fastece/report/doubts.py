"""Signs that numbers mislead, which are lines of a report and of nothing else.

A sign must never come for good data: `tests/report/test_signs.py` counts how often it does. Columns
in another order are another matter: every function that reads labels warns of them, by
`fastece.data.doubts`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.doubts import LabelledVectors, impossible_rows, some_rows
from fastece.data.table import RowTable
from fastece.display.numbers import first_of
from fastece.kernels.types import I64
from fastece.report.inputs import ReportInput
from fastece.report.words import sentence

# Level at which predicted and true classes must not be found dependent, for a sentence.
INDEPENDENCE_LEVEL = 1e-4
# Mean confidence from which a model claims to know much; below it scores may well be noise.
MIN_CONFIDENCE = 0.85
# With many classes a smaller confidence is a claim too, if it is so many times the hits by chance.
MIN_CONFIDENCE_OF_MANY = 0.5
MIN_RATIO_OF_MANY = 5
# Rows in a cell of the table of classes, on average: with fewer the chi-squared law is not exact.
MIN_CELL_ROWS = 5
# Standard deviations of hits by chance that the model promises above them, for that sentence.
MIN_PROMISE = 10
# Hits may exceed their number by chance by so many standard deviations.
MAX_CHANCE = 3
# Different rows that do not all come a second time by chance, and the columns that tell them apart.
MIN_DISTINCT_ROWS = 20
MAX_COLUMNS_COMPARED = 20
# Rows from which equal scores are no accident.
MIN_CONSTANT_ROWS = 20
# Equal scores of single classes that a sentence lists.
MAX_VALUES_SHOWN = 3


def list_doubts(inputs: ReportInput) -> list[str]:
    """List a sentence for each sign that numbers mislead; a stream has none."""
    table = inputs.table
    if not inputs.has_rows:
        return []
    sentences = [describe_impossible_outcomes(inputs), describe_constant_scores(table)]
    if table.c is None and table.votes == 1:
        setting = "binary" if table.n_classes == 2 else "classwise"
        sentences.append(describe_foreign_labels(inputs.read_rows(setting=setting)))
        if not inputs.call.groups:
            sentences.append(describe_repeats(table))
    return [sentence for sentence in sentences if sentence]


def describe_impossible_outcomes(inputs: ReportInput) -> str:
    """Write a sentence on rows whose outcome had the probability 0, or ""."""
    is_impossible = np.any(impossible_rows(inputs.table), axis=0)
    if not is_impossible.any():
        return ""
    rows = sorted({*inputs.table.callers[is_impossible].tolist()})
    names = first_of(rows, inputs.request.row_name)
    fault = "The outcome had the predicted probability 0"
    if inputs.request.pairs:
        is_right = inputs.table.view().y[is_impossible] > 0
        faults = ["a confidence of 100 % was wrong"] if not is_right.all() else []
        faults += ["a confidence of 0 % was right"] if is_right.any() else []
        fault = sentence(" or ".join(faults))
    return (
        f"{fault} in {names}: no calibrated model allows that, so the test of calibration rejects."
    )


def describe_constant_scores(table: RowTable) -> str:
    """Write a sentence on scores that are all equal, or all 0 or 1; "" for others."""
    n = table.count()
    scores = [sample.s for sample in table.samples(reads_only=True)]
    if n < MIN_CONSTANT_ROWS:
        return ""
    if all(s.min() == s.max() for s in scores):
        values = ", ".join(f"{s[0]:.4g}" for s in scores[:MAX_VALUES_SHOWN])
        return f"All {n} rows have the same prediction, {values}: only its mean can be judged."
    if all(((s <= 0) | (s >= 1)).all() for s in scores):
        return f"All {n} predictions are 0 or 1: are these predicted classes, not probabilities?"
    return ""


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


def describe_repeats(table: RowTable) -> str:
    """Write a sentence on rows that all come several times, or "".

    Predictions of repeated folds are like that, in whatever order the repeats come.
    """
    n_times = count_repeats(table.prob, table.label)
    if n_times == 1:
        return ""
    return (
        f"The rows come {n_times} times with the same labels. If these are repeats of one row, "
        "name the row by groups= or --groups: intervals and p-values take rows as independent."
    )


def count_repeats(prob: NDArray[Any], label: NDArray[Any]) -> int:
    """Count how many times every row comes; 1 for good data."""
    columns = prob.reshape(label.size, -1)[:, :MAX_COLUMNS_COMPARED]
    # The first row alone shows it of nearly all data.
    is_like_first = (columns[:, 0] == columns[0, 0]) & (label == label[0])
    if np.count_nonzero(is_like_first) == 1:
        return 1
    bits = np.ascontiguousarray(columns, np.float64).view(np.uint64)
    rows = np.column_stack([label.astype(np.uint64), bits])
    # Equal rows have equal hashes, and others practically never have.
    factors = np.random.default_rng(0).integers(2**64, size=rows.shape[1], dtype=np.uint64)
    _, counts = np.unique(rows @ factors, return_counts=True)
    return int(np.gcd.reduce(counts)) if counts.size >= MIN_DISTINCT_ROWS else 1
