"""Thresholds: scores from which predictions may act alone, with a promise.

>>> import numpy as np
>>> from fastece.decisions import choose_threshold
>>> rng = np.random.default_rng(0)
>>> confidence = rng.beta(8, 1, 2000)
>>> threshold = choose_threshold(rng.random(2000) < confidence, confidence, accuracy=0.9)
>>> threshold([0.5, 0.99]).tolist()
[False, True]
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_probabilities, index_of, warn_of_index
from fastece.data.errors import InputError, InputTypeError, warn
from fastece.data.labels import LabelledRows, are_right_or_wrong, as_groups
from fastece.data.options import ReadingKeywords, ReadingOptions, shows_options
from fastece.data.parameters import check_choice, check_flag, check_integer
from fastece.data.predictions import Predictions
from fastece.data.reading import read_problems
from fastece.data.table import SETTINGS, class_count
from fastece.decisions.promises import Choice, RankedRows, choose, rank_rows
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, form_of_score, format_percent
from fastece.display.results import Result, group_notes, one_of, sample_text
from fastece.estimators.risk import check_threshold
from fastece.files.saved import SavedFormat
from fastece.resampling.arguments import add_groups, read_call, require_one_problem
from fastece.resampling.call import Call
from fastece.resampling.intervals import as_float

SAVED = SavedFormat("threshold", "fastece.threshold", 1)
# Largest number of rows or classes of a saved threshold: above it, floats skip integers.
MAX_COUNT = 2**53
# Numbers of a threshold, and the heads of their columns.
HEADS = {
    "value": "score at least",
    "coverage": "coverage",
    "accuracy": "accuracy",
    "accuracy_bound": "accuracy at least",
}
LABEL_1 = (
    "A row is right if its label is 1, as of pairs of hits and confidences. Of probabilities of "
    "label 1, the setting confidence takes predictions of either label."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Threshold(Result):
    """A score from which predictions may act alone, with its promise.

    The result of `choose_threshold`. ``threshold(y_prob)`` gives the rows (n,) that may act: True
    where the score is at least `value`. A threshold that was chosen with `by` has (V,) arrays of
    numbers in the order of `labels`, and is called as ``threshold(y_prob, by=...)``; rows of a
    value that it has not seen may not act.

    Attributes
    ----------
    value : float or (V,) array
        The score; nan where none can be promised, and then no row may act.
    coverage, coverage_interval : float, ConfidenceInterval
        The share of rows, by weight, that may act.
    accuracy, accuracy_bound : float
        How often these are right on the rows of the choice, and a lower bound of how often they
        are in all, which is at least `required_accuracy`.
    required_accuracy : float
        The accuracy that was to be promised.
    confidence : float
        The chance that all promises together hold, and the level of each `coverage_interval`.
    labels : list or None
        The values of `by`.
    setting, from_logits, n_classes : str or int, bool, int
        How scores are read from probabilities.
    n, n_groups : int, int or None
        Rows of the choice, and groups of them.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.decisions import Threshold, choose_threshold
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.beta(8, 1, 2000)
    >>> threshold = choose_threshold(rng.random(2000) < confidence, confidence, accuracy=0.9)
    >>> Threshold.from_json(threshold.to_json())([0.5, 0.99]).tolist()
    [False, True]
    """

    value: Any
    coverage: Any
    coverage_interval: ConfidenceInterval
    accuracy: Any
    accuracy_bound: Any
    required_accuracy: float
    confidence: float
    labels: list[Any] | None
    setting: Any
    from_logits: bool
    n_classes: int
    n: int
    n_groups: int | None
    # Whether the labels say that predictions were right or wrong, and so name no classes.
    _is_of_hits: bool = field(default=False, repr=False)

    def __call__(self, y_prob: Any, by: Any = None) -> NDArray[np.bool_]:
        """Return which rows (n,) may act alone.

        Parameters
        ----------
        y_prob : (n,) or (n, K) array_like
            Probabilities, or logits, in the form in which the choice had them.
        by : (n,) array_like, optional
            The value of each row, if there is a threshold for each value.

        Returns
        -------
        (n,) bool array

        Raises
        ------
        ValueError, TypeError
            As in `fastece.ece`; for another number of classes; for `by` without values, or none.
        """
        prob = as_probabilities(y_prob)
        n_classes = class_count(prob.shape)
        if n_classes != self.n_classes:
            rule = f"must have {self.n_classes} classes, as the rows of the choice"
            raise InputError("y_prob", rule, value=n_classes)
        if (by is None) != (self.labels is None):
            rule = "is needed" if by is None else "must be left out"
            raise InputTypeError("by", f"{rule}, as the threshold was chosen")
        any_labels = np.zeros(len(prob), np.int64)
        options = ReadingOptions(setting=self.setting, from_logits=self.from_logits)
        score = read_problems(any_labels, y_prob, options).view().s
        warn_of_index("by", by, index_of(y_prob))
        if self.labels is None:
            return np.asarray(score >= self.value)
        return np.asarray(score >= self._values_of(by, score.size))

    def _values_of(self, by: Any, n: int) -> NDArray[np.float64]:
        """Find the threshold (n,) of each row by its label; nan for labels without one."""
        value_of_label = dict(zip(self.labels or (), self.value, strict=True))
        column = as_groups(by, n)
        values = [value_of_label.get(to_json_label(label), math.nan) for label in column.labels]
        return np.array(values)[column.position]

    @property
    def sentence(self) -> str:
        """The promise, in one sentence."""
        claim = (
            f"predictions are right in at least {100 * self.required_accuracy:g} % of cases, "
            f"with {100 * self.confidence:g} % confidence"
        )
        if self.labels is not None:
            n_with_score = np.count_nonzero(~np.isnan(self.value))
            return (
                f"{n_with_score} of {len(self.labels)} values have a score from which {claim}, "
                "all of them together."
            )
        if math.isnan(self.value):
            return f"No score is found from which {claim}."
        score = f"{self.value:{form_of_score(self.value)}}"
        return f"From the score {score} on, {claim}: {format_percent(self.coverage)} of the rows."

    def document(self) -> Document:
        """Describe the threshold, or one for each value, as a table."""
        notes = [LABEL_1] if self.setting == "binary" and not self._is_of_hits else []
        notes += group_notes(self.n_groups)
        title = f"Threshold, setting {self.setting}: {sample_text(self)}"
        is_missing = self.labels is None and math.isnan(self.value)
        table = None if is_missing else self.table()
        return Document(title, self.sentence, [Section(table=table, notes=notes)])

    def _columns(self) -> dict[str, Any]:
        return self.table().columns()

    def table(self) -> Table:
        """Describe the numbers of each threshold in a row."""
        rows = []
        for k, label in enumerate(self.labels or ["all rows"]):
            interval = one_of(self.coverage_interval, k)
            score = one_of(self.value, k)
            rows.append(
                [
                    f"{label}",
                    Number(score, form=form_of_score(score)),
                    Number(one_of(self.coverage, k), interval),
                    interval,
                    Number(one_of(self.accuracy, k)),
                    Number(one_of(self.accuracy_bound, k)),
                ]
            )
        heads = {**HEADS, "coverage_interval": f"{100 * self.confidence:g} % CI"}
        keys = ["value", "coverage", "coverage_interval", "accuracy", "accuracy_bound"]
        return Table(["", *(heads[key] for key in keys)], rows, ["label", *keys])

    def to_json(self) -> str:
        """Write the threshold as JSON: `from_json` and other programs read it.

        Rows whose score is at least `value` may act; null is no number, so none may. Numbers have
        all their digits.
        """
        return SAVED.to_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a threshold that `to_json` wrote.

        Raises
        ------
        ValueError
            For a text that is damaged, or was not written by it.
        """
        return SAVED.from_text(text, cls.from_dict)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a threshold from the values of `to_dict`.

        Raises
        ------
        ValueError, TypeError, KeyError
            For other values.
        """
        check_flag("from_logits", values["from_logits"])
        check_integer("n_classes", values["n_classes"], 2, MAX_COUNT)
        check_integer("n", values["n"], 1, MAX_COUNT)
        if isinstance(values["setting"], str):
            check_choice("setting", values["setting"], list(SETTINGS))
        labels = values["labels"]
        shape = () if labels is None else (len(labels),)
        numbers = {name: read_numbers(name, values[name], shape) for name in HEADS}
        low, high = (
            read_numbers("coverage_interval", end, shape) for end in values["coverage_interval"]
        )
        for name in ("required_accuracy", "confidence"):
            numbers[name] = read_numbers(name, values[name], ())
        return cls(**{**values, **numbers, "coverage_interval": ConfidenceInterval(low, high)})


def read_numbers(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Read a share, or an array of shares, from JSON, where null is nan."""
    numbers = np.array(value, np.float64)
    if numbers.shape != shape:
        raise InputError(name, f"must have shape {shape}", value=numbers.shape)
    if np.any((numbers < 0) | (numbers > 1)):
        raise InputError(name, "must be from 0 to 1")
    return as_float(numbers)


def to_json_label(label: Any) -> Any:
    """Write a label that JSON does not have as text."""
    return label if isinstance(label, str | int | float) else str(label)


# --- the call -------------------------------------------------------------------------------


def rank_call(call: Call, by: LabelledRows | None = None) -> dict[Any, RankedRows]:
    """Rank the rows of the only model of a call, of each label by itself.

    `by` has the label of each row of the caller; without it, None is the label of all rows.
    """
    data = require_one_problem(call, "{by} takes predicted classes")
    if data.votes > 1:
        rule = "must be right or wrong in each row, and a soft label is neither"
        raise InputError("y_true", rule)
    if call.clusters is not None and data.v is not None:
        rule = "goes without {sample_weight}, as no promise is known for weighted rows that "
        raise InputError("groups", f"{rule}depend on each other")
    sample = data.view()
    if by is None:
        return {None: rank_rows(sample, call.clusters)}
    ranking = {}
    present, label_of_row = np.unique(by.position[data.positions], return_inverse=True)
    for k, position in enumerate(present):
        rows = np.flatnonzero(label_of_row == k)
        groups = None if call.clusters is None else call.clusters.where(rows)
        ranking[to_json_label(by.labels[position])] = rank_rows(sample.where(rows), groups)
    return ranking


def threshold_of_ranking(
    call: Call,
    ranking: Mapping[Any, RankedRows],
    accuracy: float,
    confidence: float,
    *,
    from_logits: bool = False,
    is_of_hits: bool = False,
) -> Threshold:
    """Choose the threshold of the ranked rows of a call, or one for each label."""
    alpha = (1 - confidence) / len(ranking)
    choices = [choose(rows, accuracy, confidence, alpha) for rows in ranking.values()]
    if any(math.isinf(rows.miss_ratio) for rows in ranking.values()):
        rule = "has no weight of a miss, as no row is a miss: how often predictions are right, by "
        hint = "leave {sample_weight} out if misses weigh as much as hits"
        warn("sample_weight", f"{rule}weight, has no bound", hint=hint)
    if None in ranking:
        labels = None
        (numbers,) = choices
    else:
        labels = [*ranking]
        columns: Any = map(np.array, zip(*choices, strict=True))
        numbers = Choice(*columns)
    table = call.models[0]
    setting = table.setting
    return Threshold(
        value=numbers.value,
        coverage=numbers.coverage,
        coverage_interval=ConfidenceInterval(numbers.coverage_low, numbers.coverage_high),
        accuracy=numbers.accuracy,
        accuracy_bound=numbers.accuracy_bound,
        required_accuracy=accuracy,
        confidence=confidence,
        labels=labels,
        setting=setting.name if setting.name in SETTINGS else setting.column,
        from_logits=from_logits,
        n_classes=table.n_classes,
        n=call.n,
        n_groups=call.n_groups,
        _is_of_hits=is_of_hits,
    )


def describe_support(ranking: Mapping[Any, RankedRows], accuracy: float, confidence: float) -> str:
    """Write the highest percentage less than an accuracy that all rows support.

    It is "" where they support none. The percentage depends on the rows, so it describes them and
    promises nothing.
    """
    (rows,) = ranking.values()
    for percent in range(math.ceil(100 * accuracy) - 1, 0, -1):
        score = choose(rows, percent / 100, confidence, 1 - confidence).value
        if not math.isnan(score):
            return (
                f"The highest percentage that these rows support is {percent} %, from the score "
                f"{Number(score, form=form_of_score(score))} on; as it was found on them, confirm "
                "it on others."
            )
    return ""


@shows_options
def choose_threshold(
    y_true: Any, y_prob: Any = None, *, accuracy: float = 0.95, confidence: float = 0.95,
    by: Any = None, groups: Any = None, **options: Unpack[ReadingKeywords],
) -> Threshold:  # fmt: skip
    """Choose the lowest score above which predictions are right often enough.

    Parameters
    ----------
    y_true, y_prob : array_like
        As in `fastece.ece`: class vectors (n, K), of which the largest probability is the score, or
        confidences (n,), with whether each prediction was right. Probabilities (n,) of label 1 are
        predictions of either label with ``setting="confidence"``, and of label 1 without.
    accuracy : float, default 0.95
        How often predictions that act alone are to be right.
    confidence : float, default 0.95
        How often such promises are kept.
    by : (n,) array_like, optional
        A value for each row, such as the predicted class: each has a threshold of its own, and all
        promises hold together.
    groups : (n,) array_like, optional
        Rows with the same label belong together, as in `fastece.estimate`; without weights.
    **options
        As in `fastece.ece`: options of reading alone.

    Returns
    -------
    Threshold
        Call it with probabilities; `value` is nan where nothing can be promised.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for an accuracy or a confidence that is not between 0 and 1, several
        problems, groups with weights, and soft labels.

    Warns
    -----
    InputWarning
        With weights, if no row is a miss: no accuracy can be promised, as the weight of a miss is
        not known.

    Notes
    -----
    Among samples of independent rows without weights, at most the share ``1 - confidence`` has a
    threshold above which the true accuracy is less than promised, whatever the model is: the
    promise allows for the choice.
    Candidates are scores at ranks that grow by 2 %, chosen without a look at the labels. Their
    hypotheses "the accuracy above is less than required" are tested from the top in fixed sequence
    (Angelopoulos, Bates, Candes, Jordan and Lei 2021, "Learn then test: calibrating predictive
    algorithms to achieve risk control"), by the binomial law of the rows above (Clopper and Pearson
    1934, "The use of confidence or fiducial limits illustrated in the case of the binomial"). The
    sequence starts where just enough rows lie above to promise anything, and again where there are
    some three times as many, and so on. The starts have parts of the level in the proportion 1, 2,
    3, ..., which are handed on while tests reject (Wiens 2003, "A fixed sequence Bonferroni
    procedure for testing multiple endpoints"). The last candidate that is rejected is the
    threshold. With V values of `by`, each has the level ``(1 - confidence) / V``.

    With weights, rows count by Kish's effective number, after the weights of misses are scaled to
    the mean weight of hits; with groups, by the correlation of hits within groups, with a margin.
    Both are approximate, and without a miss its weight is not known, so that weighted rows promise
    no accuracy; simulations are in ``docs/evidence/decisions.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.decisions import choose_threshold
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.beta(8, 1, 2000)
    >>> threshold = choose_threshold(rng.random(2000) < confidence, confidence, accuracy=0.9)
    >>> print(f"{threshold.value:.3f} {threshold.coverage:.3f}")
    0.763 0.888
    >>> threshold([0.5, 0.99]).tolist()
    [False, True]
    """
    accuracy = check_threshold("accuracy", accuracy)
    confidence = check_threshold("confidence", confidence)
    others = {**options, "estimator": "accuracy", "n_resamples": 0}
    call = read_call("choose_threshold", y_true, {"y_prob": y_prob}, 0, **others)
    call = add_groups(call, groups, y_prob)
    column = None
    if by is not None:
        warn_of_index("by", by, call.index)
        axes = call.tables[0].find_axes("y_prob", y_prob)
        column = as_groups(axes.flatten("by", by), axes.n)
    from_logits = bool(options.get("from_logits", False))
    labels = y_true.arrays[0] if isinstance(y_true, Predictions) else y_true
    return threshold_of_ranking(
        call, rank_call(call, column), accuracy, confidence, from_logits=from_logits,
        is_of_hits=are_right_or_wrong(labels),
    )  # fmt: skip
