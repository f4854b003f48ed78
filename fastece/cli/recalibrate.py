"""The command ``recalibrate``: predictions recalibrated and compared."""

import math
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from fastece.checks.errors import InputError
from fastece.cli.compare import Differences, measure, sign_of
from fastece.cli.inputs import title_of
from fastece.cli.methods import (
    ALL,
    LOSS,
    Recalibrated,
    Task,
    apply_methods,
    check_way,
    describe_way,
    fit,
    of_probabilities,
    rank,
    read_task,
)
from fastece.cli.page import Page, noted
from fastece.cli.targets import check_picture, check_writable
from fastece.cli.terminal import show_progress
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import decimals, format_interval, format_number
from fastece.files import STANDARD_INPUT, check_output, write_predictions
from fastece.plot.pages import save_picture
from fastece.recalibration import METHODS, Calibrator, save
from fastece.report.report import LEAD, TEST, diagram_panels
from fastece.report.words import question, sentence
from fastece.resampling.results import ComparisonResult

NAMES = ("before", "after")
# The change of an error, and of the log loss, where the interval of before - after is above 0,
# below 0, or holds 0.
ERRORS = {
    1: "made it better calibrated by {}",
    -1: "made it worse calibrated by {}",
    0: "is not shown to have changed how well it is calibrated by {}",
}
LOSSES = {
    1: "the log loss is better",
    -1: "the log loss is worse",
    0: "the log loss is not shown to be another",
}
OF_ALL_ROWS = "fitted to all rows; the numbers above are of one for each fold"
OUT_OF_FOLDS = "after: out of folds, so no row by what was fitted to it"


def run_recalibrate(options: Namespace) -> Page:
    """Run ``fastece recalibrate FILE``."""
    check_way(options)
    picture = options.plot and check_picture(options.plot)
    out, model_file = check_targets(options)
    with show_progress() as progress:
        progress(f"reading {title_of(options.file)}")
        task = read_task(options)
        found, refused = apply_methods(task, progress)
        ranks = rank(task, found, progress) if options.method == ALL else []
        best = ranks[0]["method"] if ranks else next(iter(found))
        model, after = found[best]
        both = ((task.before, options), (after, of_probabilities(options)))
        differences = measure(both, progress, draws_groups=False)
        if model_file:
            if task.is_of_folds:
                progress(f"{model.title}, fitted to all rows")
                fit(model, task.rows)
            save(model, model_file)
        if out:
            progress(f"writing {options.out}")
            write_predictions(out, after)
        page = page_of(task, best, found[best], differences, ranks, refused)
        if picture:
            save_picture(picture, diagram_panels(differences.call, NAMES), page.description.lead)
    page = page.with_file("plot", options.plot) if picture else page
    if out:
        note = "probabilities, where the file has logits" if task.rows.from_logits else ""
        page = page.with_file("out", options.out, note)
    if model_file:
        page = page.with_file("save", options.save, OF_ALL_ROWS if task.is_of_folds else "")
    return page


def check_targets(options: Namespace) -> tuple[Path | None, Path | None]:
    """Return the checked paths of `--out` and `--save`, which can be written.

    They must be no other files of the command.
    """
    others = [options.file, options.fit, options.load, options.plot]
    taken = {os.path.realpath(path) for path in others if path not in (None, STANDARD_INPUT)}
    found: list[Path | None] = []
    for option in ("out", "save"):
        path = getattr(options, option)
        if path is None:
            found.append(None)
            continue
        if path == STANDARD_INPUT:
            raise InputError(option, "must be a file, and - is standard input")
        found.append(check_writable(option, path))
        whole = os.path.realpath(path)
        if whole in taken:
            raise InputError(option, "must be no other file of this command", value=path)
        if not os.access(os.path.dirname(whole), os.W_OK):  # it is written beside, and renamed
            raise InputError(option, "must be in a folder that can be written", value=path)
        taken.add(whole)
    if found[0] is not None:
        check_output(found[0])
    return found[0], found[1]


def page_of(
    task: Task, method: str, result: Recalibrated, differences: Differences,
    ranks: list[dict[str, Any]], refused: dict[str, str],
) -> Page:  # fmt: skip
    """Make the page of a file before and after, and of the ranks of methods."""
    model, before, title = result.model, task.before, title_of(task.options.file)
    parameters, way = parameters_of(model), describe_way(task.options)
    call, verdict = differences.call, verdict_of(model.title, differences)
    values = {
        "title": title, "note": before.note, "verdict": verdict, "method": method, "fitted": way,
        "parameters": parameters, "ranks": ranks, "refused": refused, **differences.values(NAMES),
    }  # fmt: skip
    note = " (of all rows)" if task.is_of_folds else ""
    facts = {"rows": call.n, "setting": question(call.setting, before.pairs), **noted(before.note)}
    facts |= {"method": f"{model.title}, {way}"}
    facts |= {name: f"{value:.5g}{note}" for name, value in parameters.items()}
    sections = [Section(facts=facts)]
    if ranks:
        sections.append(rank_section(ranks, refused, differences))
    sections += differences.sections(NAMES)
    if task.is_of_folds:
        sections.append(Section(notes=[OUT_OF_FOLDS]))
    return Page(Document(title, verdict, sections), values)


def verdict_of(name: str, found: Differences) -> str:
    """Write a sentence on whether a method helped."""
    error, bins, loss = found.errors[LEAD], found.errors[TEST], found.scores[LOSS]
    parts = [change(error, f"{name} {ERRORS[sign_of(error)].format(LEAD)}")]
    if sign_of(error) != sign_of(bins):
        parts.append(change(bins, f"it {ERRORS[sign_of(bins)].format(TEST)}"))
    if math.isinf(loss.b):
        parts.append("the log loss is infinite after, as a label had probability 0")
    elif math.isinf(loss.a):
        parts.append(f"the log loss was infinite, and is {format_number(loss.b)} after")
    else:
        parts.append(change(loss, LOSSES[sign_of(loss)]))
    return sentence("; ".join(parts)) + "."


def change(result: ComparisonResult, claim: str) -> str:
    """Add to a claim the values before and after, and the interval that shows it."""
    interval = result.confidence_interval
    before, after = (format_number(x, decimals(interval)) for x in (result.a, result.b))
    level = f"{100 * result.confidence_level:g} %"
    difference = f"{level} interval of before - after {format_interval(interval)}"
    return f"{claim}: {before} before, {after} after ({difference})"


def parameters_of(model: Calibrator) -> dict[str, float]:
    """Return the parameters of a fitted model that are single numbers."""
    found = {name: getattr(model, f"{name}_", None) for name in model.PARAMETERS}
    return {name: x for name, x in found.items() if isinstance(x, float)}


def rank_section(
    ranks: list[dict[str, Any]], refused: dict[str, str], differences: Differences
) -> Section:
    """Describe the ranked methods, and the unusable ones, as a section of a page."""
    rows = [[METHODS[x["method"]].title, x[LOSS], x[LEAD], share(x["same_class"])] for x in ranks]
    rows.append(["as it is", differences.scores[LOSS].a, differences.errors[LEAD].a, ""])
    head = ["method", LOSS, LEAD, "rows that keep their class"]
    notes = [f"{METHODS[name].title} cannot be used: {refused[name]}" for name in refused]
    return Section("Methods", table=Table(head, rows), notes=notes)


def share(value: float | None) -> str:
    """Write a share in percent; only a share of 1 becomes "all"."""
    if value is None:
        return "-"
    return "all" if value == 1 else f"{math.floor(10_000 * value) / 100:.2f} %"
