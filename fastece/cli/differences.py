"""Differences between two models on the same rows, measured and described.

`compare` shows them for models, `recalibrate` for predictions before and after.
"""

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fastece.cli.inputs import estimators_of, read_data
from fastece.cli.progress import Progress
from fastece.display.documents import Section, Table
from fastece.display.numbers import SHOWN_AS_ZERO, Number, PValue, format_interval, outside_text
from fastece.display.results import Results
from fastece.files import FilePredictions
from fastece.inference.compare import check_same_classes, comparisons_with_first
from fastece.inference.results import ComparisonResult, JointComparisonResult
from fastece.report.inputs import LEAD
from fastece.report.scores import scores_of
from fastece.report.words import SCORES, infinite_loss
from fastece.resampling.call import Call, find_infinite_rows

P_VALUE_NOTE = "The p-value of an error is below 0.05 exactly where its 95 % interval excludes 0."
JOINT_NOTE = (
    "Each error and score has joint intervals (Bonferroni) and p-values (step-down min-p), which "
    "hold for all {} comparisons together."
)
INTERVAL_NOTE = (
    f"Intervals of errors combine the intervals of both models: {LEAD} by its posterior, others by "
    "test inversion. Values are inflated by noise, so a difference may lie outside its interval. "
    "Intervals of scores are from the bootstrap."
)
GROUP_NOTE = (
    "With groups, intervals of errors are as wide as for independent models; scores are drawn by "
    "group."
)


class Model(NamedTuple):
    """The predictions of a model, and its names.

    Attributes
    ----------
    key : str
        Its key in JSON.
    name : str
        Its name on the page.
    predictions : FilePredictions
    """

    key: str
    name: str
    predictions: FilePredictions


@dataclass(frozen=True)
class Differences:
    """Differences of errors and scores between two models.

    Attributes
    ----------
    keys, names : tuple of str
        Keys of the models in JSON, and their names on the page.
    call : Call
        The data of both.
    errors, scores : Results of ComparisonResult
    notes : list of str
        Notes on scores.
    n_comparisons : int
        Number of models that are compared with the first, for all of which numbers hold together.
    """

    keys: tuple[str, str]
    names: tuple[str, str]
    call: Call
    errors: Results[ComparisonResult]
    scores: Results[ComparisonResult]
    notes: list[str]
    n_comparisons: int

    @property
    def interval_name(self) -> str:
        """Name of the intervals in print."""
        name = f"{100 * self.call.level:g} % CI"
        return f"joint {name}" if self.n_comparisons > 1 else name

    def values(self) -> dict[str, Any]:
        """Return the differences as plain values by name."""
        return {
            "n": self.call.n,
            "setting": self.call.setting,
            "n_resamples": self.call.n_resamples,
            "confidence_level": self.call.level,
            "differences": [self.values_of(name, x) for name, x in self.errors.items()],
            "scores": [self.values_of(name, x) for name, x in self.scores.items()],
        }

    def values_of(self, name: str, result: ComparisonResult) -> dict[str, Any]:
        """Return one difference as plain values by name."""
        first, second = self.keys
        values = {
            "name": name,
            first: result.a,
            second: result.b,
            "difference": result.value,
            **result.confidence_interval._asdict(),
            "p_value": result.p_value,
            "method": result.method,
            "estimator": result.estimator,
        }
        if isinstance(result, JointComparisonResult):
            values["raw_p_value"] = result.raw_p_value
        return values

    def sections(self) -> list[Section]:
        """Describe errors and scores in two tables, as sections of a page."""
        p_value = "joint p-value" if self.n_comparisons > 1 else "p-value"
        head = [*self.names, "difference", self.interval_name, p_value]
        errors = [[*cells_of(name, x), estimator_text(x)] for name, x in self.errors.items()]
        scores = [[*cells_of(name, x), SCORES[name]] for name, x in self.scores.items()]
        sign_note = (
            f"The difference is {' - '.join(self.names)}: above 0, {self.names[1]} has the smaller "
            "value. Smaller is better for errors, the Brier score and the log loss, larger for the "
            "accuracy; sharpness and entropy do not rate a model by themselves."
        )
        p_value_note = P_VALUE_NOTE
        if self.n_comparisons > 1:
            p_value_note = JOINT_NOTE.format(self.n_comparisons)
        notes = [*self.notes, sign_note, p_value_note, INTERVAL_NOTE]
        if self.call.clusters is not None:
            notes.append(GROUP_NOTE)
        return [
            Section("Calibration errors", table=Table(["error", *head, "estimator"], errors)),
            Section("Scores", table=Table(["score", *head, "meaning"], scores), notes=notes),
        ]

    def describe_interval(self, result: ComparisonResult) -> str:
        """Write the interval of a difference, in brackets."""
        interval = format_interval(result.confidence_interval)
        return f"({self.interval_name} of the difference {interval})"


def estimator_text(result: ComparisonResult) -> str:
    """Write the estimator, and whether noise puts the difference outside its interval."""
    remark = outside_text(result.value, result.confidence_interval)
    return f"{result.estimator}; {remark}" if remark else str(result.estimator)


def cells_of(name: str, result: ComparisonResult) -> list[Any]:
    """Return the cells of one line of a table."""
    interval = result.confidence_interval
    numbers = [Number(x, interval) for x in (result.a, result.b, result.value)]
    return [name, *numbers, interval, PValue(result.p_value, result.smallest_p_value)]


def measure_differences(
    models: Sequence[Model], options: Namespace, progress: Progress
) -> list[Differences]:
    """Measure each model but the first against the first, on the same rows."""
    first = models[0]
    errors = estimators_of(first.predictions, options)
    scores = scores_of(first.predictions.hits)
    calls = [
        read_data(model.predictions, options, {**errors, **scores}, min_resamples=1)
        for model in models
    ]
    tables = [table for call in calls for table in call.tables]
    call = replace(calls[0], estimators=errors, tables=tables)
    check_same_classes(call, [model.name for model in models[1:]])
    name = "both" if len(models) == 2 else "all models"
    progress(f"errors of {name}, {options.n_resamples} replicates")
    errors_by_name = comparisons_with_first(call, rng=options.rng)
    progress(f"scores of {name}, {options.n_resamples} replicates")
    call_on_scores = replace(call, estimators=scores)
    scores_by_name = comparisons_with_first(call_on_scores, rng=options.rng)
    differences = []
    for number, second in enumerate(models[1:]):
        pair = replace(call, tables=[tables[0], tables[1 + number]])
        score_results = Results({name: x[number] for name, x in scores_by_name.items()})
        notes = []
        for model, table, value_name in zip((first, second), pair.tables, ("a", "b"), strict=True):
            call_on_model = replace(call, tables=[table], estimators=scores)
            values = {name: getattr(result, value_name) for name, result in score_results.items()}
            notes += describe_infinite_scores(model, call_on_model, values)
        differences.append(
            Differences(
                keys=(first.key, second.key),
                names=(first.name, second.name),
                call=pair,
                errors=Results({name: x[number] for name, x in errors_by_name.items()}),
                scores=score_results,
                notes=notes,
                n_comparisons=len(models) - 1,
            )
        )
    return differences


def describe_infinite_scores(model: Model, call: Call, values: dict[str, float]) -> list[str]:
    """Write for each infinite score of a model which rows make it so."""
    notes = []
    for name, value in values.items():
        if math.isinf(value):
            rows = find_infinite_rows(call, name, value)
            notes.append(infinite_loss(f"{name} of {model.name}", rows, model.predictions.row))
    return notes


def sign_of(result: ComparisonResult) -> int:
    """Return the sign of an interval: 1 above 0, -1 below 0, 0 if it contains 0.

    Ends that differ from 0 by rounding alone count as 0.
    """
    low, high = result.confidence_interval
    if low > SHOWN_AS_ZERO:
        return 1
    return -1 if high < -SHOWN_AS_ZERO else 0
