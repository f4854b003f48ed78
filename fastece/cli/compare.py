"""Two models on the same rows, on one page."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from fastece.cli.inputs import (
    columns_of,
    estimators_of,
    read_data,
    read_file,
    title_of,
    with_groups_of,
)
from fastece.cli.page import Page, facts, level_of, noted, table
from fastece.cli.targets import check_picture
from fastece.cli.terminal import Say, progress
from fastece.document.numbers import ROUNDING, decimals, format_interval, format_number, format_p
from fastece.document.result import Results
from fastece.document.writers import WIDTH
from fastece.files import STANDARD_INPUT, Predictions
from fastece.intervals.compare import comparison_results
from fastece.plot.pages import save_picture
from fastece.report.measures import LEAD, TEST, scores_of
from fastece.report.pictures import compare_panels
from fastece.report.words import SCORES, question, sentence
from fastece.resampling.arguments import Call
from fastece.resampling.intervals import ConfidenceInterval
from fastece.resampling.results import ComparisonResult

# What is said of intervals where groups of rows are drawn.
OF_GROUPS = [
    "  intervals: basic bootstrap of whole groups, as rows of one group are not independent;",
    "  they often miss a difference where one of the models is calibrated",
]


def run_compare(options: Namespace) -> Page:
    """``fastece compare A B``. Each model is read by itself: whether the predicted class is right
    is another question for each. Draws are shared."""
    picture = options.plot and check_picture(options.plot)
    paths = [title_of(path) for path in (options.a, options.b)]
    if options.a == options.b == STANDARD_INPUT:
        raise ValueError("-: standard input can be only one of the files")
    with progress() as say:
        say(f"reading {paths[0]} and {paths[1]}")
        models = [
            read_file(options.a, options, columns_of(options, "groups")),
            read_file(options.b, options),
        ]
        check_same_rows(models[0], models[1], paths)
        found = measure(
            [*zip(paths, models, [options, options], strict=True)], say, options.groups is not None
        )
    errors, scores = found.errors, found.scores
    values = {
        "a": paths[0],
        "b": paths[1],
        "n_groups": found.call.n_groups,
        "note": models[0].note,
        "verdict": verdict_of(errors[LEAD], errors[TEST], scores["brier_score"]),
        **found.values(),
    }
    page = Page(text_of(values, models[0].pairs), values)
    if not picture:
        return page
    save_picture(
        picture, compare_panels(found.call, [options.a, options.b]), str(values["verdict"])
    )
    return page.with_file("plot", options.plot)


class Differences(NamedTuple):
    """Two models on the same rows: what was measured, and the differences of errors and scores."""

    call: Call
    errors: Results[ComparisonResult]
    scores: Results[ComparisonResult]

    def values(self, names: tuple[str, str] = ("a", "b")) -> dict[str, Any]:
        """The differences as plain values, under the names of the models."""
        return {
            "n": self.call.n,
            "setting": self.call.setting,
            "n_resamples": self.call.n_resamples,
            "confidence_level": self.call.level,
            "differences": [values_of(name, x, names) for name, x in self.errors.items()],
            "scores": [values_of(name, x, names) for name, x in self.scores.items()],
        }


def measure(
    models: Sequence[tuple[str, Predictions, Namespace]], say: Say, draws_groups: bool = False
) -> Differences:
    """Measure two models: what messages call each, its predictions, and how they are read; and of
    the first one the column of the groups, if they are drawn."""
    _, first, options = models[0]
    errors, scores = estimators_of(first, options), scores_of(first.pairs)
    a, b = (read_data(model, own, {**errors, **scores}, least=1) for _, model, own in models)
    call = replace(a, estimators=errors, sources=[*a.models, *b.models])
    if not draws_groups:
        say(f"intervals of both, {options.resamples} replicates of a calibrated model")
    else:
        call = with_groups_of(call, first)
        say(f"errors of both, {options.resamples} resamples of {call.n_groups} groups")
    results = comparison_results(call, rng=options.seed)
    say(f"scores of both, {options.resamples} resamples")
    scored = comparison_results(replace(call, estimators=scores), rng=options.seed)
    return Differences(call, results, scored)


def verdict_of(error: ComparisonResult, bins: ComparisonResult, brier: ComparisonResult) -> str:
    """Which model is better calibrated, and which predicts better, in a sentence."""
    said = [
        winner_of(error, f"better calibrated by {LEAD}"),
        winner_of(brier, "better in all by the Brier score"),
    ]
    if sign_of(error) != sign_of(bins):
        said.insert(1, winner_of(bins, f"better calibrated by {TEST}"))
    return sentence("; ".join(said)) + "."


def winner_of(result: ComparisonResult, what: str) -> str:
    """The model with the smaller value, if that is clear, and the interval that says so."""
    sign = sign_of(result)
    said = (
        f"model {'b' if sign > 0 else 'a'} is {what}" if sign else f"neither is shown to be {what}"
    )
    level = f"{100 * result.confidence_level:g} %"
    return f"{said} ({level} interval of a - b {format_interval(result.confidence_interval)})"


def sign_of(result: ComparisonResult) -> int:
    """On which side of 0 the interval lies, but for rounding; 0 if it holds 0."""
    low, high = result.confidence_interval
    return int(low > ROUNDING) - int(high < -ROUNDING)


def check_same_rows(a: Predictions, b: Predictions, paths: Sequence[str]) -> None:
    """Both have the same labels and weights, row by row."""
    if a.pairs != b.pairs:
        raise ValueError(
            f"{paths[1]}: must have the kind of columns that {paths[0]} has: only one of them "
            "has labels and confidences of the predicted class"
        )
    if len(a.label) != len(b.label):
        raise ValueError(
            f"{paths[1]}: must have the rows of {paths[0]}, which has {len(a.label)}; "
            f"got {len(b.label)}"
        )
    columns: list[Any] = [("labels", a.label, b.label), ("weights", a.weights, b.weights)]
    for name, one, other in columns:
        pairs = zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=True)
        for row, (value, got) in enumerate(pairs):
            if value != got:
                raise ValueError(
                    f"{paths[1]}: {b.row(row)}: must have the {name} of {paths[0]}, which has "
                    f"{value!r} in {a.row(row)}; got {got!r}"
                )


def values_of(name: str, result: ComparisonResult, names: tuple[str, str]) -> dict[str, Any]:
    """One line of the table: above 0 the second model is better calibrated."""
    low, high = result.confidence_interval
    return {
        "name": name, names[0]: result.a, names[1]: result.b, "difference": result.value,
        "low": low, "high": high, "p_value": result.p_value, "method": result.method,
        "estimator": result.estimator,
    }  # fmt: skip


def row_of(line: dict[str, Any], names: tuple[str, str], last: str) -> list[str]:
    """One line of a table as text, with as many digits as the interval is worth."""
    interval = ConfidenceInterval(line["low"], line["high"])
    places = decimals(interval)
    numbers = [format_number(line[key], places) for key in (*names, "difference")]
    p_value = format_p(line["p_value"])
    return [line["name"], *numbers, format_interval(interval), p_value, last]


def tables_of(values: dict[str, Any], names: tuple[str, str] = ("a", "b")) -> list[str]:
    """The tables of errors and of scores, and what is to be said about them, as lines."""
    difference = " - ".join(names)
    errors = [row_of(line, names, line["estimator"]) for line in values["differences"]]
    scores = [row_of(line, names, SCORES[line["name"]]) for line in values["scores"]]
    head = [*names, difference, *level_of(values), "p-value"]
    above = f"  {difference} above 0: {names[1]} has the smaller value, which is better"
    errors_note = [
        "  p-value of an error: below 0.05 exactly where the 95 % interval leaves out 0",
        f"  intervals: joined from those of both models, {LEAD} by its posterior, others by test "
        "inversion;",
        f"  noise lifts values, so {difference} itself may lie outside; those of scores by "
        "bootstrap",
    ]
    return [
        "",
        *table(["error", *head, "estimator"], errors),
        "",
        *table(["score", *head, ""], scores),
        "",
        f"{above} but for accuracy, sharpness",
        *(errors_note if values.get("n_groups") is None else OF_GROUPS),
    ]


def text_of(values: dict[str, Any], pairs: bool) -> str:
    """The page as text."""
    title = "\n".join([f"a: {values['a']}", f"b: {values['b']}", fill(values["verdict"], WIDTH)])
    groups = "" if values["n_groups"] is None else f" in {values['n_groups']} groups"
    known = {
        "rows": f"{values['n']}{groups}",
        "setting": question(values["setting"], pairs),
        **noted(values),
    }
    return "\n".join([*facts(title, **known), *tables_of(values)])
