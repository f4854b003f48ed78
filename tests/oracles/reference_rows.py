"""What the arguments of a call say about single rows, in plain loops.

Written from ``docs/reference/input.md``; nothing of fastece is
imported. Every option is one step on the way from the caller's arrays to rows of one label each.
"""

from math import fsum, isqrt
from typing import Any, NamedTuple

import numpy as np
import reference


class Row(NamedTuple):
    """One label, or one for each task (None: missing), of the caller's row `place`.

    `copies`: so many independent rows, which `repeated` numbers. `share`: the share of a row that
    this is, as one of its votes; the weight is that of the row.
    """

    label: Any
    prob: Any
    weight: float
    copies: int
    share: float
    place: int
    group: Any
    number: int | None = None


class Case(NamedTuple):
    """A row of a binary problem."""

    score: float
    hit: int
    row: Row

    @property
    def weight(self):
        """Of one copy."""
        return self.row.weight * self.row.share


# -- the caller's arrays -> rows of one label each -------------------------------------------------


def expanded(
    y_true,
    y_prob,
    *,
    setting,
    labels=None,
    sample_weight=None,
    counts=None,
    groups=None,
    soft=False,
    votes=None,
    ignore_label=None,
    class_axis=None,
    percent=False,
    from_logits=False,
):
    """The rows that the arguments stand for. Rows of weight 0 do not exist."""
    if class_axis is not None:
        y_prob = classes_last(y_prob, class_axis)
        y_true, sample_weight, counts, groups = (
            None if column is None else np.ravel(column)
            for column in (y_true, sample_weight, counts, groups)
        )
    y_true = np.asarray(y_true).tolist()
    if setting == "binary" and counts is not None and labels is None and ignore_label is None:
        # Counts of events are those where one of them is more than 1.
        if max(y_true) > 1:
            y_true = [[c - k, k] for k, c in zip(y_true, counts, strict=True)]
    elif setting == "binary" and votes is not None:
        y_true = [[m - k, k] for k, m in zip(y_true, votes, strict=True)]
    elif setting == "binary" and soft:
        y_true = [[1 - q, q] for q in y_true]
    rows = []
    for place, given in enumerate(np.asarray(y_prob).tolist()):
        label = y_true[place]
        if setting == "tasks":
            label = [label_of_task(y, labels, ignore_label) for y in label]
        elif ignore_label is not None and label == ignore_label:
            continue
        elif labels is not None:
            label = labels.index(label)
        if sample_weight is not None and sample_weight[place] == 0:
            continue
        row = Row(
            label,
            probability(given, percent, from_logits, setting),
            weight=1.0 if sample_weight is None else float(sample_weight[place]),
            copies=1 if counts is None else int(counts[place]),
            share=1.0,
            place=place,
            group=None if groups is None else groups[place],
        )
        if setting == "tasks" or not isinstance(label, list):
            rows.append(row)
        elif counts is not None:
            rows += [row._replace(label=k, copies=c) for k, c in enumerate(label) if c > 0]
        else:
            # Shares without votes are ten votes; those of the tests are tenths.
            all_votes = 10 if votes is None else int(votes[place])
            of_class = [round(10 * q) for q in label] if votes is None else label
            for k, number in enumerate(of_class):
                rows += [row._replace(label=k, share=1 / all_votes)] * int(number)
    return rows


def classes_last(y_prob, axis):
    """The array (n, K) with the classes in columns; of one class (n,), that of the positive one."""
    y_prob = np.moveaxis(np.asarray(y_prob), axis, -1)
    return y_prob.ravel() if y_prob.shape[-1] == 1 else y_prob.reshape(-1, y_prob.shape[-1])


def label_of_task(label, labels, ignore_label):
    """0, 1, or None where it is missing: nan, or the label that is ignored."""
    if label == ignore_label or label != label:
        return None
    return int(label) if labels is None else labels.index(label)


def probability(given, percent, from_logits, setting):
    """A probability, or a list of them, from what the caller gave."""
    several = given if isinstance(given, list) else [given]
    if percent:
        several = [x / 100 for x in several]
    elif from_logits and (setting == "tasks" or not isinstance(given, list)):
        several = [reference.sigmoid(z) for z in several]
    elif from_logits:
        several = reference.softmax(several)
    return several if isinstance(given, list) else several[0]


def repeated(rows):
    """Every row as often as it counts."""
    copies = [row for row in rows for _ in range(row.copies)]
    return [row._replace(copies=1, number=i) for i, row in enumerate(copies)]


# -- rows -> binary problems -> values -------------------------------------------------------------


def problems(rows, setting):
    """The binary problems of a setting as lists of cases; of predicted classes those that occur."""
    if setting == "tasks":
        return [
            [Case(row.prob[t], row.label[t], row) for row in rows if row.label[t] is not None]
            for t in range(len(rows[0].prob))
        ]
    of_setting = reference.problems(
        [row.label for row in rows],
        [row.prob for row in rows],
        "confidence" if setting == "top-label" else setting,
    )
    all_problems = [
        [Case(s, int(y), row) for s, y, row in zip(scores, hits, rows, strict=True)]
        for scores, hits, _, _ in of_setting
    ]
    if setting != "top-label":
        return all_problems
    predicted = reference.predictions([row.prob for row in rows])
    return [
        [case for case, k in zip(all_problems[0], predicted, strict=True) if k == chosen]
        for chosen in sorted(set(predicted))
    ]


def value(cases, estimator="ece", n_bins=5, edges="uniform"):
    """The Brier score, or the binned error, of a problem of rows that count once.

    "sqrt" goes by the number of rows, in which the votes of a row are one.
    """
    weights = [case.weight for case in cases]
    if estimator == "brier_score":
        return reference.mean_of([(case.score - case.hit) ** 2 for case in cases], weights)
    if n_bins == "sqrt":
        n_bins = max(1, isqrt(round(fsum(case.row.share for case in cases))))
    problem = [case.score for case in cases], [case.hit for case in cases], 0.0, 1.0
    return reference.error(problem, weights, n_bins=n_bins, edges=edges)


def mean(values, all_problems, setting):
    """The mean over problems; predicted classes have the shares of their weights."""
    weights = [1.0] * len(values)
    if setting == "top-label":
        weights = [fsum(case.weight for case in cases) for cases in all_problems]
    return reference.mean_of(values, weights)
