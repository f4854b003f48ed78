"""The command ``compare``: two models on the same rows, on one page."""

import math
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.cli.inputs import describe_data, estimators_of, read_data, read_file, title_of
from fastece.cli.output import Page, Progress, save_picture
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import ROUNDING, Number, PValue, format_interval, format_p
from fastece.document.result import Results
from fastece.estimators.losses import infinite_rows
from fastece.files import STANDARD_INPUT, Predictions
from fastece.intervals.compare import comparison_results
from fastece.report.report import LEAD, TEST, compare_panels, scores_of
from fastece.report.words import SCORES, infinite_loss, sentence
from fastece.resampling.adaptive import ADAPTIVE
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.results import ComparisonResult

OF_ROWS = (
    "p-value of an error: below 0.05 exactly where the 95 % interval leaves out 0",
    f"Intervals of errors are joined from those of both models: {LEAD} by its posterior, others by "
    "test inversion. Noise lifts values, so the difference itself may lie outside. Intervals of "
    "scores are by bootstrap.",
)
OF_GROUPS = "Groups: intervals of errors are as wide as of independent models, of scores as drawn."


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece compare A B``.

    Each model is read by itself, as whether the predicted class is right is another question for
    each; draws are shared.
    """
    columns, paths = options.y_prob or [None], [options.a, options.b or options.a]
    if len(columns) > 2 or (options.b is None and len(columns) < 2):
        rule = "takes two files, or two models in the columns of one: --y-prob OLD --y-prob NEW"
        raise InputError("b", rule)
    if options.a == paths[1] == STANDARD_INPUT:
        raise InputError("b", "must be another file than standard input, which can be read once")
    titles = [title_of(path) for path in paths]
    if len(columns) > 1:
        titles = [f"{title}, {name}" for title, name in zip(titles, columns, strict=True)]
    names = dict(zip("ab", titles, strict=True))
    progress(f"reading {names['a']} and {names['b']}")
    a, b = (
        read_file(path, Namespace(**{**vars(options), "y_prob": columns[k], "groups": groups}))
        for path, k, groups in zip(paths, (0, -1), (options.groups, None), strict=True)
    )
    check_same_rows(a, b)
    note = a.note if a.note == b.note else f"{a.note or 'as it is'} (a), {b.note or 'as it is'} (b)"
    a = replace(a, note=note)
    found = measure(a, b, ("a", "b"), options, progress)
    verdict, tests = verdict_of(found), tests_of(found.call, options.seed, progress)
    facts = {**names, **describe_data(found.call, a)}
    shown = (f"p = {format_p(p)} ({name})".replace("= <", "< ") for name, p in tests.items())
    facts["test of calibration"] = ", ".join(shown)
    sections = [Section(facts=facts), *found.sections()]
    values: dict[str, Any] = {"n_groups": found.call.n_groups, "note": a.note, "verdict": verdict}
    values["p_values"] = tests
    description = Document(f"{names['a']} and {names['b']}", verdict, sections)

    def draw(path: Path) -> None:
        save_picture(path, compare_panels(found.call, [*names.values()]), verdict)

    return Page(description, {**names, **values, **found.values()}, {"plot": draw})


def tests_of(call: Call, seed: int, progress: Progress) -> dict[str, Any]:
    """Compute the p-value of the adaptive test of each model."""
    progress("tests of calibration")
    each = [replace(call.only(ADAPTIVE), sources=[model]) for model in call.models]
    found = (calibration_results(one, seed) for one in each)
    return {name: one.p_value for name, one in zip("ab", found, strict=True)}


def check_same_rows(a: Predictions, b: Predictions) -> None:
    """Refuse two files that differ in labels or weights, row by row."""
    if a.pairs != b.pairs:
        rule = f"must have the kind of columns that {a.file} has"
        hint = "only one of them has labels and confidences of the predicted class"
        raise InputError("b", rule, place=b.file, hint=hint)
    if len(a.label) != len(b.label):
        rule = f"must have the rows of {a.file}, which has {len(a.label)}"
        raise InputError("b", rule, value=len(b.label), place=b.file)
    own = [(x.label, x.weights, x.others.get("votes")) for x in (a, b)]
    for name, *columns in zip(("labels", "weights", "votes"), *own, strict=True):
        pairs = zip(*(np.ravel(x).tolist() for x in columns), strict=True)
        for row, (value, got) in enumerate(pairs):
            if value != got:
                rule = f"must have the {name} of {a.file}, which has {value!r} in {a.row(row)}"
                raise InputError("b", rule, value=got, place=f"{b.file}: {b.row(row)}")


@dataclass(frozen=True)
class Differences:
    """Differences of errors and scores between two models of some names."""

    names: tuple[str, str]
    call: Call
    errors: Results[ComparisonResult]
    scores: Results[ComparisonResult]
    notes: list[str]  # on scores

    def values(self) -> dict[str, Any]:
        """Return the differences as plain values by name."""
        a, b = self.names
        tables = {
            key: [
                {"name": name, a: x.a, b: x.b, "difference": x.value,
                 **x.confidence_interval._asdict(), "p_value": x.p_value, "method": x.method,
                 "estimator": x.estimator}
                for name, x in results.items()
            ]
            for key, results in (("differences", self.errors), ("scores", self.scores))
        }  # fmt: skip
        facts = {"n": self.call.n, "setting": self.call.setting}
        work = {"n_resamples": self.call.n_resamples, "confidence_level": self.call.level}
        return {**facts, **work, **tables}

    def sections(self) -> list[Section]:
        """Describe errors and scores in two tables, as sections of a page."""
        difference, better = " - ".join(self.names), self.names[1]
        head = [*self.names, difference, f"{100 * self.call.level:g} % CI", "p-value"]
        errors = [[*row_of(name, x), x.estimator] for name, x in self.errors.items()]
        scores = [[*row_of(name, x), SCORES[name]] for name, x in self.scores.items()]
        above = f"{difference} above 0: {better} has the smaller value"
        above += ", which is better but for accuracy, sharpness"
        notes = (above, *OF_ROWS, *[OF_GROUPS] * (self.call.clusters is not None))
        first = Section("Calibration errors", table=Table(["error", *head, "estimator"], errors))
        notes = (*self.notes, *notes)
        scored = Section("Scores", table=Table(["score", *head, "meaning"], scores), notes=notes)
        return [first, scored]

    def describe_interval(self, result: ComparisonResult) -> str:
        """Write the interval of a difference, in brackets."""
        interval = format_interval(result.confidence_interval)
        return f"({100 * self.call.level:g} % interval of {' - '.join(self.names)} {interval})"


def row_of(name: str, result: ComparisonResult) -> list[Any]:
    """Return the cells of one line of a table."""
    interval = result.confidence_interval
    numbers = [Number(value, interval) for value in (result.a, result.b, result.value)]
    return [name, *numbers, interval, PValue(result.p_value)]


def measure(
    a: Predictions, b: Predictions, names: tuple[str, str], options: Namespace, progress: Progress
) -> Differences:
    """Measure two models on the same rows."""
    errors, scores = estimators_of(a, options), scores_of(a.pairs)
    first, other = (read_data(x, options, {**errors, **scores}, least=1) for x in (a, b))
    call = replace(first, estimators=errors, sources=[*first.models, *other.models])
    progress(f"errors of both, {options.resamples} replicates")
    results = comparison_results(call, rng=options.seed)
    progress(f"scores of both, {options.resamples} replicates")
    scored = comparison_results(replace(call, estimators=scores), rng=options.seed)
    notes = [
        infinite_loss(f"{score} of {name}", infinite_rows(source, scores[score]), data.row)
        for name, data, source, value in zip(names, (a, b), call.models, "ab", strict=True)
        for score, result in scored.items() if math.isinf(getattr(result, value))
    ]  # fmt: skip
    return Differences(names, call, results, scored, notes)


def verdict_of(found: Differences) -> str:
    """Write a sentence on which model is better calibrated, and which predicts better."""
    error, bins = found.errors[LEAD], found.errors[TEST]
    claims = [(error, f"better calibrated by {LEAD}")]
    if sign_of(error) != sign_of(bins):
        claims.append((bins, f"better calibrated by {TEST}"))
    claims.append((found.scores["brier_score"], "better in all by the Brier score"))
    winners = {1: "model b is", -1: "model a is", 0: "neither is shown to be"}
    parts = [f"{winners[sign_of(x)]} {praise} {found.describe_interval(x)}" for x, praise in claims]
    return sentence("; ".join(parts)) + "."


def sign_of(result: ComparisonResult) -> int:
    """Return the sign of an interval: 1 above 0, -1 below 0, 0 if it contains 0.

    Ends that differ from 0 by rounding alone count as 0.
    """
    low, high = result.confidence_interval
    return int(low > ROUNDING) - int(high < -ROUNDING)
