"""The command ``compare``: two models or more on the same rows, on one page."""

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

from fastece.cli.arguments import (
    Parser,
    add_clip,
    add_errors,
    add_forms,
    add_groups,
    add_id,
    add_intervals,
    add_labels,
    add_meaning,
    add_page,
    add_picture,
    add_scale,
    add_setting,
    add_soft_labels,
)
from fastece.cli.differences import Differences, Model, measure_differences, sign_of
from fastece.cli.inputs import describe_data, title_of, with_options
from fastece.cli.output import Page, save_picture
from fastece.cli.pairing import ModelFile, read_same_rows
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section
from fastece.display.numbers import equate_p, smallest_p
from fastece.display.pages import page_pictures
from fastece.display.writers import to_html
from fastece.files import STANDARD_INPUT, write_file
from fastece.report.inputs import LEAD, TEST
from fastece.report.pictures import compare_panels
from fastece.report.words import sentence
from fastece.resampling.adaptive import ADAPTIVE
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.call import Call

DESCRIPTION = """Compare models on the same rows, in files or in columns of one: the errors of
both, the difference with its interval, and the p-value of no difference. Each
of more than two models is compared with the first, with joint intervals."""
EXAMPLES = """
  fastece compare old.csv new.csv --groups patient
  fastece compare both.csv --y-prob old --y-prob new
"""
# In JSON models are a, b, c and so on.
MAX_MODELS = len(ascii_lowercase)
# Characters of a name in the head of a column; models with longer names are a, b, c too.
MAX_NAME = 24


class ModelColumns(NamedTuple):
    """Where the predictions of a model are, and how pages call them."""

    path: str
    columns: str | None
    title: str


def make_parser() -> Parser:
    """Make the parser of ``fastece compare A B [C ...]``."""
    parser = Parser("compare", DESCRIPTION, "fastece compare A B [C ...] [options]", EXAMPLES)
    add = parser.input.add_argument
    add("models", metavar="FILE", nargs="+", help="a table for each model, or one for all")
    add_labels(parser)
    add("--y-prob", metavar="A,B,...", action="append",
        help="probabilities; once for each model of one file")  # fmt: skip
    add_meaning(parser)
    add_soft_labels(parser)
    add_scale(parser)
    add_clip(parser)
    add_groups(parser)
    add_id(parser)
    add_setting(parser)
    add_errors(parser)
    add_intervals(parser)
    add_picture(parser)
    add_page(parser)
    add_forms(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece compare A B [C ...]``: every other model against the first.

    Each model is read by itself, as whether the predicted class is right is another question for
    each; draws are shared.
    """
    columns = find_models(options)
    titles = [model.title for model in columns]
    progress(f"reading {' and '.join(titles)}")
    models = read_models(columns, options)
    differences = measure_differences(models, options, progress)
    tables = [differences[0].call.tables[0], *(x.call.tables[1] for x in differences)]
    call = replace(differences[0].call, tables=tables)
    p_values = adaptive_p_values(call, [model.name for model in models], options.rng, progress)
    return make_page(models, titles, call, differences, p_values)


# --- models ---------------------------------------------------------------------------------------


def find_models(options: Namespace) -> list[ModelColumns]:
    """Find the file of each model, and the columns of its probabilities."""
    files = list(options.models)
    columns = options.y_prob or [None]
    n_models = max(len(files), len(columns))
    are_complete = {len(files), len(columns)} <= {1, n_models}
    if not (2 <= n_models <= MAX_MODELS and are_complete):
        rule = f"takes two files, or up to {MAX_MODELS}, or models in the columns of one"
        raise InputError("models", f"{rule}: --y-prob OLD --y-prob NEW")
    if len(files) == 1:
        files = files * n_models
    if len(columns) == 1:
        columns = columns * n_models
    if files.count(STANDARD_INPUT) > 1:
        raise InputError("models", "names standard input twice, which can be read once")
    titles = [title_of(file) for file in files]
    if len(set(columns)) > 1:
        titles = [f"{title}, {names}" for title, names in zip(titles, columns, strict=True)]
    return list(map(ModelColumns, files, columns, titles))


def read_models(models: Sequence[ModelColumns], options: Namespace) -> list[Model]:
    """Read the predictions of each model, all on the rows of the first."""
    files: list[ModelFile] = []
    for model in models:
        groups = None if files else options.groups
        own_options = with_options(options, y_prob=model.columns, groups=groups)
        files.append(ModelFile(model.path, own_options))
    predictions = read_same_rows(files, options.id)
    names = short_names(models)
    return list(map(Model, ascii_lowercase, names, predictions))


def short_names(models: Sequence[ModelColumns]) -> list[str]:
    """Name models by their columns, or by their files without folders and endings."""
    columns = [model.columns or "" for model in models]
    if len(set(columns)) == len(models):
        return columns
    names = [Path(title_of(model.path)).name.partition(".")[0] for model in models]
    if len(set(columns)) > 1:
        names = [" ".join(filter(None, pair)) for pair in zip(names, columns, strict=True)]
    if len(set(names)) < len(names) or not all(names) or max(map(len, names)) > MAX_NAME:
        return list(ascii_lowercase[: len(models)])
    return names


def adaptive_p_values(
    call: Call, names: Iterable[str], seed: int, progress: Progress
) -> dict[str, float]:
    """Compute the p-value of the adaptive test of each model."""
    progress("tests of calibration")
    adaptive = call.with_estimator(ADAPTIVE)
    results = (calibration_results(replace(adaptive, tables=[x]), seed) for x in call.tables)
    return {name: result.p_value for name, result in zip(names, results, strict=True)}


# --- the page -------------------------------------------------------------------------------------


def make_page(
    models: Sequence[Model], titles: Sequence[str], call: Call,
    differences: Sequence[Differences], p_values: Mapping[str, float],
) -> Page:  # fmt: skip
    """Make the page of all comparisons with the first model."""
    names = {model.name: title for model, title in zip(models, titles, strict=True)}
    keys = {model.key: title for model, title in zip(models, titles, strict=True)}
    note = describe_reading(models)
    verdict = " ".join(map(write_verdict, differences))
    first_section = {
        **names,
        **describe_data(call, replace(models[0].predictions, note=note)),
        "test of calibration": ", ".join(
            f"{equate_p(p, smallest_p(call.n_resamples))} ({name})" for name, p in p_values.items()
        ),
    }
    head = Section(facts=first_section)
    tables = describe_differences(differences)
    title = f"{', '.join(titles[:-1])} and {titles[-1]}"
    panels = partial(compare_panels, call, names)

    def draw(path: Path) -> None:
        # The verdicts of several comparisons would not fit on a picture.
        save_picture(path, panels(), verdict if len(differences) == 1 else "")

    def write_page(path: Path) -> None:
        pictures = page_pictures(panels(), title)
        diagram = Section("Reliability diagram", pictures=pictures)
        document = Document(title, verdict, [head, diagram, *tables])
        write_file(path, to_html(document).encode())

    values: dict[str, Any] = {
        **keys,
        "n_groups": call.n_groups,
        "note": note,
        "verdict": verdict,
        "p_values": {x.key: p_values[x.name] for x in models},
    }
    if len(differences) == 1:
        values |= differences[0].values()
    else:
        values["comparisons"] = [x.values() for x in differences]
    document = Document(title, verdict, [head, *tables])
    return Page(document, values, {"plot": draw, "html": write_page})


def describe_reading(models: Sequence[Model]) -> str:
    """Join the notes on how the models were read."""
    notes = {model.predictions.note for model in models}
    if len(notes) == 1:
        return notes.pop()
    return ", ".join(f"{x.predictions.note or 'as it is'} ({x.name})" for x in models)


def describe_differences(differences: Sequence[Differences]) -> list[Section]:
    """Describe each comparison; notes that all have in common are below the last."""
    if len(differences) == 1:
        return differences[0].sections()
    sections = []
    for difference in differences:
        is_last = difference is differences[-1]
        for section in difference.sections():
            notes = section.notes if is_last else difference.notes
            title = f"{section.title}: {' and '.join(difference.names)}"
            sections.append(replace(section, title=title, notes=notes))
    return sections


def write_verdict(differences: Differences) -> str:
    """Write a sentence on which model is better calibrated, and which predicts better."""
    lead = differences.errors[LEAD]
    test = differences.errors[TEST]
    better = f"is better calibrated by {LEAD}"
    claims = [(lead, better, f"no clear difference in {LEAD}")]
    if sign_of(lead) != sign_of(test):
        better = f"is better calibrated by {TEST}"
        claims.append((test, better, f"no clear difference in {TEST}"))
    score = differences.scores["brier_score"]
    claims.append((score, "has the better Brier score", "no clear difference in the Brier score"))
    parts = []
    for result, praise, tie in claims:
        claim = tie
        if sign_of(result) != 0:
            better_model = differences.names[1 if sign_of(result) > 0 else 0]
            claim = f"model {better_model} {praise}"
        parts.append(f"{claim} {differences.describe_interval(result)}")
    return sentence("; ".join(parts)) + "."
