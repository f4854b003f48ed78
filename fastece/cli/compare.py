"""The command ``compare``: two models on the same rows, on one page."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fastece.checks.errors import InputError
from fastece.cli.inputs import (
    columns_of,
    estimators_of,
    read_data,
    read_file,
    title_of,
    with_groups_of,
)
from fastece.cli.page import Page, noted
from fastece.cli.targets import check_picture
from fastece.cli.terminal import Progress, show_progress
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import ROUNDING, Number, PValue, format_interval
from fastece.document.result import Results
from fastece.files import STANDARD_INPUT, Predictions
from fastece.intervals.compare import comparison_results
from fastece.plot.pages import save_picture
from fastece.report.report import LEAD, TEST, compare_panels, scores_of
from fastece.report.words import SCORES, question, sentence
from fastece.resampling.arguments import Call
from fastece.resampling.results import ComparisonResult

OF_ROWS = (
    "p-value of an error: below 0.05 exactly where the 95 % interval leaves out 0",
    f"Intervals of errors are joined from those of both models: {LEAD} by its posterior, others by "
    "test inversion. Noise lifts values, so the difference itself may lie outside. Intervals of "
    "scores are by bootstrap.",
)
OF_GROUPS = (
    "Intervals are by the basic bootstrap of whole groups, as rows of one group are not "
    "independent; they often miss a difference where one of the models is calibrated.",
)


def run_compare(options: Namespace) -> Page:
    """Run ``fastece compare A B``.

    Each model is read by itself, as whether the predicted class is right is another question for
    each; draws are shared.
    """
    picture = options.plot and check_picture(options.plot)
    names = [title_of(path) for path in (options.a, options.b)]
    if options.a == options.b == STANDARD_INPUT:
        raise InputError("b", "must be another file than standard input, which can be read once")
    with show_progress() as progress:
        progress(f"reading {names[0]} and {names[1]}")
        a = read_file(options.a, options, columns_of(options, "groups"))
        b = read_file(options.b, options)
        check_same_rows(a, b)
        found = measure(((a, options), (b, options)), progress)
        page = compare_page(found, names, a)
        if picture:
            panels = compare_panels(found.call, [options.a, options.b])
            save_picture(picture, panels, page.description.lead)
    return page.with_file("plot", options.plot) if picture else page


def compare_page(found: "Differences", names: Sequence[str], a: Predictions) -> Page:
    """Make the page of the differences between two files."""
    errors, call = found.errors, found.call
    verdict = verdict_of(errors[LEAD], errors[TEST], found.scores["brier_score"])
    groups = "" if call.n_groups is None else f" in {call.n_groups} groups"
    facts = {
        "a": names[0], "b": names[1], "rows": f"{call.n}{groups}",
        "setting": question(call.setting, a.pairs), **noted(a.note),
    }  # fmt: skip
    sections = [Section(facts=facts), *found.sections(("a", "b"))]
    values = {
        "a": names[0], "b": names[1], "n_groups": call.n_groups, "note": a.note,
        "verdict": verdict, **found.values(("a", "b")),
    }  # fmt: skip
    return Page(Document(f"{names[0]} and {names[1]}", verdict, sections), values)


class Differences(NamedTuple):
    """Measured differences of errors and scores between two models on the same rows."""

    call: Call
    errors: Results[ComparisonResult]
    scores: Results[ComparisonResult]

    def values(self, names: tuple[str, str]) -> dict[str, Any]:
        """Return the differences as plain values, under the names of the models."""
        return {
            "n": self.call.n, "setting": self.call.setting, "n_resamples": self.call.n_resamples,
            "confidence_level": self.call.level,
            "differences": [values_of(name, x, names) for name, x in self.errors.items()],
            "scores": [values_of(name, x, names) for name, x in self.scores.items()],
        }  # fmt: skip

    def sections(self, names: tuple[str, str]) -> list[Section]:
        """Describe errors and scores in two tables, as sections of a page."""
        difference = " - ".join(names)
        head = [*names, difference, f"{100 * self.call.level:g} % CI", "p-value"]
        errors = [[*row_of(name, x), x.estimator] for name, x in self.errors.items()]
        scores = [[*row_of(name, x), SCORES[name]] for name, x in self.scores.items()]
        above = (
            f"{difference} above 0: {names[1]} has the smaller value, which is better but for "
            "accuracy, sharpness"
        )
        notes = (above, *(OF_ROWS if self.call.groups is None else OF_GROUPS))
        return [
            Section("Calibration errors", table=Table(["error", *head, "estimator"], errors)),
            Section("Scores", table=Table(["score", *head, "meaning"], scores), notes=notes),
        ]


def measure(
    models: Sequence[tuple[Predictions, Namespace]], progress: Progress, draws_groups: bool = True
) -> Differences:
    """Measure two models, each with its own options; groups come from the first."""
    first, options = models[0]
    errors, scores = estimators_of(first, options), scores_of(first.pairs)
    a, b = (read_data(model, own, {**errors, **scores}, least=1) for model, own in models)
    call = replace(a, estimators=errors, sources=[*a.models, *b.models])
    if draws_groups and "groups" in first.others:
        call = with_groups_of(call, first)
    progress(f"errors of both, {options.resamples} replicates")
    results = comparison_results(call, rng=options.seed)
    progress(f"scores of both, {options.resamples} replicates")
    scored = comparison_results(replace(call, estimators=scores), rng=options.seed)
    return Differences(call, results, scored)


def verdict_of(error: ComparisonResult, bins: ComparisonResult, brier: ComparisonResult) -> str:
    """Write a sentence on which model is better calibrated, and which predicts better."""
    parts = [
        winner_of(error, f"better calibrated by {LEAD}"),
        winner_of(brier, "better in all by the Brier score"),
    ]
    if sign_of(error) != sign_of(bins):
        parts.insert(1, winner_of(bins, f"better calibrated by {TEST}"))
    return sentence("; ".join(parts)) + "."


def winner_of(result: ComparisonResult, praise: str) -> str:
    """Name the model with the clearly smaller value, and the interval that shows it."""
    sign = sign_of(result)
    winner = f"model {'b' if sign > 0 else 'a'} is" if sign else "neither is shown to be"
    level = f"{100 * result.confidence_level:g} %"
    interval = format_interval(result.confidence_interval)
    return f"{winner} {praise} ({level} interval of a - b {interval})"


def sign_of(result: ComparisonResult) -> int:
    """Return the sign of an interval: 1 above 0, -1 below 0, 0 if it contains 0.

    Ends that differ from 0 by rounding alone count as 0.
    """
    low, high = result.confidence_interval
    return int(low > ROUNDING) - int(high < -ROUNDING)


def check_same_rows(a: Predictions, b: Predictions) -> None:
    """Refuse two files that differ in labels or weights, row by row."""
    if a.pairs != b.pairs:
        rule = f"must have the kind of columns that {a.file} has"
        hint = "only one of them has labels and confidences of the predicted class"
        raise InputError("b", rule, place=b.file, hint=hint)
    if len(a.label) != len(b.label):
        rule = f"must have the rows of {a.file}, which has {len(a.label)}"
        raise InputError("b", rule, value=len(b.label), place=b.file)
    for name, one, other in (("labels", a.label, b.label), ("weights", a.weights, b.weights)):
        pairs = zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=True)  # type: ignore[arg-type]
        for row, (value, got) in enumerate(pairs):
            if value != got:
                rule = f"must have the {name} of {a.file}, which has {value!r} in {a.row(row)}"
                raise InputError("b", rule, value=got, place=f"{b.file}: {b.row(row)}")


def values_of(name: str, result: ComparisonResult, names: tuple[str, str]) -> dict[str, Any]:
    """Return one line of the table as plain values.

    Above 0 the second model is better calibrated.
    """
    low, high = result.confidence_interval
    return {
        "name": name, names[0]: result.a, names[1]: result.b, "difference": result.value,
        "low": low, "high": high, "p_value": result.p_value, "method": result.method,
        "estimator": result.estimator,
    }  # fmt: skip


def row_of(name: str, result: ComparisonResult) -> list[Any]:
    """Return the cells of one line of a table."""
    interval = result.confidence_interval
    numbers = [Number(value, interval) for value in (result.a, result.b, result.value)]
    return [name, *numbers, interval, PValue(result.p_value)]
