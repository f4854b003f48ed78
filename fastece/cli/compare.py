"""The command ``compare``: two models or more on the same rows, on one page."""

import math
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np

from fastece.cli.inputs import describe_data, estimators_of, read_data, read_file, title_of
from fastece.cli.output import Page, Progress, save_picture
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import SHOWN_AS_ZERO, Number, PValue, format_interval, format_p
from fastece.display.pages import draw_page
from fastece.display.results import Results
from fastece.display.svg import to_svg
from fastece.display.writers import to_html
from fastece.estimators.losses import infinite_rows
from fastece.files import STANDARD_INPUT, FilePredictions, write_file
from fastece.inference.compare import comparison_results
from fastece.inference.results import ComparisonResult
from fastece.report.inputs import LEAD, TEST
from fastece.report.pictures import compare_panels
from fastece.report.scores import scores_of
from fastece.report.words import SCORES, infinite_loss, sentence
from fastece.resampling.adaptive import ADAPTIVE
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.call import Call

MOST_MODELS = len(ascii_lowercase)
OF_ROWS = (
    "p-value of an error: below 0.05 exactly where the 95 % interval leaves out 0",
    f"Intervals of errors are joined from those of both models: {LEAD} by its posterior, others by "
    "test inversion. Noise lifts values, so the difference itself may lie outside. Intervals of "
    "scores are by bootstrap.",
)
OF_GROUPS = "Groups: intervals of errors are as wide as of independent models, of scores as drawn."


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece compare A B [C ...]``: every other model against the first.

    Each model is read by itself, as whether the predicted class is right is another question for
    each; draws are shared.
    """
    paths, columns = models_of(options)
    titles = [title_of(path) for path in paths]
    if len({*columns}) > 1:
        titles = [f"{title}, {name}" for title, name in zip(titles, columns, strict=True)]
    names = dict(zip(ascii_lowercase, titles, strict=False))
    progress(f"reading {' and '.join(names.values())}")
    a, *others = (
        read_file(path, Namespace(**{**vars(options), "y_prob": column, "groups": groups}))
        for path, column, groups in zip(
            paths, columns, [options.groups] + [None] * (len(paths) - 1), strict=True
        )
    )
    for other in others:
        check_same_rows(a, other)
    a = replace(a, note=note_of(dict(zip(names, [a, *others], strict=True))))
    found = [
        measure(a, other, ("a", name), options, progress)
        for name, other in zip([*names][1:], others, strict=True)
    ]
    models = [found[0].call.models[0], *(x.call.models[1] for x in found)]
    call = replace(found[0].call, sources=models)
    verdict = " ".join(map(verdict_of, found))
    tests = tests_of(call, names, options.seed, progress)
    facts = {**names, **describe_data(call, a)}
    shown = (f"p = {format_p(p)} ({name})".replace("= <", "< ") for name, p in tests.items())
    facts["test of calibration"] = ", ".join(shown)
    values: dict[str, Any] = {"n_groups": call.n_groups, "note": a.note, "verdict": verdict}
    values["p_values"] = tests
    each = [x.values() for x in found]
    values |= each[0] if len(each) == 1 else {"comparisons": each}
    sections = [Section(facts=facts), *sections_of(found)]
    title = ", ".join(titles[:-1]) + f" and {titles[-1]}"
    description, panels = Document(title, verdict, sections), partial(compare_panels, call, names)

    def draw(path: Path) -> None:
        save_picture(path, panels(), verdict if len(found) == 1 else "")

    def write(path: Path) -> None:
        pictures = [lambda key: to_svg(draw_page(panels()), title, key)]
        first = Section("Reliability diagram", pictures=pictures)
        page = replace(description, sections=[sections[0], first, *sections[1:]])
        write_file(path, to_html(page).encode())

    return Page(description, {**names, **values}, {"plot": draw, "html": write})


def models_of(options: Namespace) -> tuple[list[str], list[str | None]]:
    """Return the file of each model, and the columns of its probabilities."""
    files = [x for x in (options.a, options.b, *(options.others or [])) if x is not None]
    columns = options.y_prob or [None]
    count = max(len(files), len(columns))
    if not (2 <= count <= MOST_MODELS and {len(files), len(columns)} <= {1, count}):
        rule = f"takes two files, or up to {MOST_MODELS}, or models in the columns of one"
        raise InputError("b", f"{rule}: --y-prob OLD --y-prob NEW")
    paths, columns = (list(x) * (count if len(x) == 1 else 1) for x in (files, columns))
    if paths.count(STANDARD_INPUT) > 1:
        raise InputError("b", "must be another file than standard input, which can be read once")
    return paths, columns


def note_of(models: Mapping[str, FilePredictions]) -> str:
    """Join the notes on how the models were read."""
    notes = {x.note for x in models.values()}
    if len(notes) == 1:
        return notes.pop()
    return ", ".join(f"{x.note or 'as it is'} ({name})" for name, x in models.items())


def sections_of(found: Sequence["Differences"]) -> list[Section]:
    """Describe each comparison; notes of all are below the last."""
    if len(found) == 1:
        return found[0].sections()
    sections = []
    for k, one in enumerate(found):
        for section in one.sections():
            notes = section.notes if k == len(found) - 1 else one.notes
            title = f"{section.title}: {' and '.join(one.names)}"
            sections.append(replace(section, title=title, notes=notes))
    return sections


def tests_of(call: Call, names: Iterable[str], seed: int, progress: Progress) -> dict[str, Any]:
    """Compute the p-value of the adaptive test of each model."""
    progress("tests of calibration")
    each = [replace(call.with_estimator(ADAPTIVE), sources=[model]) for model in call.models]
    found = (calibration_results(one, seed) for one in each)
    return {name: one.p_value for name, one in zip(names, found, strict=True)}


def check_same_rows(a: FilePredictions, b: FilePredictions) -> None:
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
    a: FilePredictions,
    b: FilePredictions,
    names: tuple[str, str],
    options: Namespace,
    progress: Progress,
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
    a, b = found.names
    winners = {1: f"model {b} is", -1: f"model {a} is", 0: f"neither {a} nor {b} is shown to be"}
    parts = [f"{winners[sign_of(x)]} {praise} {found.describe_interval(x)}" for x, praise in claims]
    return sentence("; ".join(parts)) + "."


def sign_of(result: ComparisonResult) -> int:
    """Return the sign of an interval: 1 above 0, -1 below 0, 0 if it contains 0.

    Ends that differ from 0 by rounding alone count as 0.
    """
    low, high = result.confidence_interval
    return int(low > SHOWN_AS_ZERO) - int(high < -SHOWN_AS_ZERO)
