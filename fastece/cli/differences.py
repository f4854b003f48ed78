"""Differences between two models on the same rows, measured and described.

`compare` shows them for models, `recalibrate` for predictions before and after.
"""

import math
from argparse import Namespace
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fastece.cli.inputs import estimators_of, read_data
from fastece.cli.progress import Progress
from fastece.display.documents import Section, Table
from fastece.display.numbers import SHOWN_AS_ZERO, Number, PValue, format_interval, outside_text
from fastece.display.results import Results
from fastece.files import FilePredictions
from fastece.inference.compare import comparison_results
from fastece.inference.results import ComparisonResult
from fastece.report.inputs import LEAD
from fastece.report.scores import scores_of
from fastece.report.words import SCORES, infinite_loss
from fastece.resampling.call import Call, find_infinite_rows

INTERVAL_NOTES = (
    "The p-value of an error is below 0.05 exactly where its 95 % interval excludes 0.",
    f"Intervals of errors combine the intervals of both models: {LEAD} by its posterior, others by "
    "test inversion. Values are inflated by noise, so a difference may lie outside its interval. "
    "Intervals of scores are from the bootstrap.",
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
    """

    keys: tuple[str, str]
    names: tuple[str, str]
    call: Call
    errors: Results[ComparisonResult]
    scores: Results[ComparisonResult]
    notes: list[str]

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
        return {
            "name": name,
            first: result.a,
            second: result.b,
            "difference": result.value,
            **result.confidence_interval._asdict(),
            "p_value": result.p_value,
            "method": result.method,
            "estimator": result.estimator,
        }

    def sections(self) -> list[Section]:
        """Describe errors and scores in two tables, as sections of a page."""
        head = [*self.names, "difference", f"{100 * self.call.level:g} % CI", "p-value"]
        errors = [[*cells_of(name, x), estimator_text(x)] for name, x in self.errors.items()]
        scores = [[*cells_of(name, x), SCORES[name]] for name, x in self.scores.items()]
        sign_note = (
            f"The difference is {' - '.join(self.names)}: above 0, {self.names[1]} has the smaller "
            "value. Smaller is better for errors, the Brier score and the log loss, larger for the "
            "accuracy; sharpness and entropy do not rate a model by themselves."
        )
        notes = [*self.notes, sign_note, *INTERVAL_NOTES]
        if self.call.clusters is not None:
            notes.append(GROUP_NOTE)
        return [
            Section("Calibration errors", table=Table(["error", *head, "estimator"], errors)),
            Section("Scores", table=Table(["score", *head, "meaning"], scores), notes=notes),
        ]

    def describe_interval(self, result: ComparisonResult) -> str:
        """Write the interval of a difference, in brackets."""
        interval = format_interval(result.confidence_interval)
        return f"({100 * self.call.level:g} % CI of the difference {interval})"


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
    first: Model, second: Model, options: Namespace, progress: Progress
) -> Differences:
    """Measure two models on the same rows."""
    errors = estimators_of(first.predictions, options)
    scores = scores_of(first.predictions.pairs)
    first_call, second_call = (
        read_data(model.predictions, options, {**errors, **scores}, min_resamples=1)
        for model in (first, second)
    )
    sources = [*first_call.sources, *second_call.sources]
    call = replace(first_call, estimators=errors, sources=sources)
    progress(f"errors of both, {options.resamples} replicates")
    error_results = comparison_results(call, rng=options.seed)
    progress(f"scores of both, {options.resamples} replicates")
    score_results = comparison_results(replace(call, estimators=scores), rng=options.seed)
    notes = []
    for model, source, value_name in zip((first, second), sources, ("a", "b"), strict=True):
        call_on_model = replace(call, sources=[source], estimators=scores)
        values = {name: getattr(result, value_name) for name, result in score_results.items()}
        notes += describe_infinite_scores(model, call_on_model, values)
    return Differences(
        keys=(first.key, second.key),
        names=(first.name, second.name),
        call=call,
        errors=error_results,
        scores=score_results,
        notes=notes,
    )


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
