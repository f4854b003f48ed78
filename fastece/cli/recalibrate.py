"""Recalibrated predictions, and whether they are better, on one page."""

import math
import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from fastece.cli.compare import Differences, measure, sign_of, tables_of
from fastece.cli.inputs import title_of
from fastece.cli.methods import (
    ALL,
    LOSS,
    apply_methods,
    check_way,
    fit,
    of_probabilities,
    rank,
    read_task,
    way_of,
)
from fastece.cli.page import Page, facts, noted, table
from fastece.cli.targets import check_picture, check_writable
from fastece.cli.terminal import progress
from fastece.document.numbers import decimals, format_interval, format_number
from fastece.document.writers import WIDTH
from fastece.files import STANDARD_INPUT, check_output, write_predictions
from fastece.plot.pages import save_picture
from fastece.recalibration import METHODS, Calibrator, save
from fastece.report.measures import LEAD, TEST
from fastece.report.pictures import diagram_panels
from fastece.report.words import question, sentence
from fastece.resampling.results import ComparisonResult

NAMES = ("before", "after")
# What a verdict says where the interval of before - after is above 0, below 0, or holds 0.
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


def run_recalibrate(options: Namespace) -> Page:
    """``fastece recalibrate FILE``."""
    check_way(options)
    picture = options.plot and check_picture(options.plot)
    out, model_file = check_targets(options)
    title = title_of(options.file)
    with progress() as say:
        say(f"reading {title}")
        task = read_task(options)
        results, refused = apply_methods(task, say)
        ranks = rank(task, results, say) if options.method == ALL else []
        best = ranks[0]["method"] if ranks else next(iter(results))
        model, after = results[best]
        name = model.title
        own = of_probabilities(options)
        found = measure([(title, task.before, options), (f"{title} after", after, own)], say)
        if model_file:
            if options.fit is None:
                say(f"{name}, fitted to all rows")
                fit(model, task.rows)
            save(model, model_file)
        if out:
            say(f"writing {options.out}")
            write_predictions(out, after)
    verdict = verdict_of(name, found)
    values = {
        "title": title, "note": task.before.note, "verdict": verdict, "method": best,
        "fitted": way_of(options), "parameters": parameters_of(model), "ranks": ranks,
        "refused": refused, **found.values(NAMES),
    }  # fmt: skip
    page = Page(text_of(values, options, task.before.pairs), values)
    if picture:
        save_picture(picture, diagram_panels(found.call, NAMES), verdict)
        page = page.with_file("plot", options.plot)
    if out:
        note = "probabilities, where the file has logits" if task.rows.from_logits else ""
        page = page.with_file("out", options.out, note)
    if model_file:
        page = page.with_file("save", options.save, OF_ALL_ROWS if options.fit is None else "")
    return page


def check_targets(options: Namespace) -> tuple[Path | None, Path | None]:
    """The files of `--out` and `--save`, which can be written and are no other files of the
    command, or an error before anything is computed."""
    others = [options.file, options.fit, options.load, options.plot]
    taken = {os.path.realpath(path) for path in others if path not in (None, STANDARD_INPUT)}

    def check(option: str, path: str | None) -> Path | None:
        if path is None:
            return None
        if path == STANDARD_INPUT:
            raise ValueError(f"{option}: - is standard input; name a file")
        found = check_writable(option.removeprefix("--"), path)
        whole = os.path.realpath(path)
        if whole in taken:
            raise ValueError(f"{option}: {path} is another file of this command; name a new one")
        if not os.access(os.path.dirname(whole), os.W_OK):  # it is written beside, and renamed
            raise ValueError(f"{option}: {path} cannot be written")
        taken.add(whole)
        return found

    out = check("--out", options.out)
    if out is not None:
        check_output(out)
    return out, check("--save", options.save)


def verdict_of(name: str, found: Differences) -> str:
    """Whether a method helped, in a sentence."""
    error, bins, loss = found.errors[LEAD], found.errors[TEST], found.scores[LOSS]
    said = [change(error, f"{name} {ERRORS[sign_of(error)].format(LEAD)}")]
    if sign_of(error) != sign_of(bins):
        said.append(change(bins, f"it {ERRORS[sign_of(bins)].format(TEST)}"))
    if math.isinf(loss.b):
        said.append("the log loss is infinite after, as a label had probability 0")
    elif math.isinf(loss.a):
        said.append(f"the log loss was infinite, and is {format_number(loss.b, 4)} after")
    else:
        said.append(change(loss, LOSSES[sign_of(loss)]))
    return sentence("; ".join(said)) + "."


def change(result: ComparisonResult, said: str) -> str:
    """What is said, with the values before and after, and the interval that says so."""
    before, after = (
        format_number(x, decimals(result.confidence_interval)) for x in (result.a, result.b)
    )
    level = f"{100 * result.confidence_level:g} %"
    interval = f"{level} interval of before - after {format_interval(result.confidence_interval)}"
    return f"{said}: {before} before, {after} after ({interval})"


def parameters_of(model: Calibrator) -> dict[str, float]:
    """The parameters of a fitted model that are single numbers; none of one that is not fitted."""
    found = {name: getattr(model, f"{name}_", None) for name in model.PARAMETERS}
    return {name: x for name, x in found.items() if isinstance(x, float)}


def text_of(values: dict[str, Any], options: Namespace, pairs: bool) -> str:
    """The page as text."""
    title = "\n".join([values["title"], fill(values["verdict"], WIDTH)])
    known = {"rows": values["n"], "setting": question(values["setting"], pairs), **noted(values)}
    known |= {"method": f"{METHODS[values['method']].title}, {values['fitted']}"}
    is_of_folds = options.load is None and options.fit is None
    note = " (of all rows)" if is_of_folds else ""
    known |= {name: f"{value:.5g}{note}" for name, value in values["parameters"].items()}
    lines = facts(title, **known)
    if values["ranks"]:
        lines += ranks_of(values)
    lines += tables_of(values, NAMES)
    if is_of_folds:
        lines.append("  after: out of folds, so no row by what was fitted to it")
    return "\n".join(lines)


def ranks_of(values: dict[str, Any]) -> list[str]:
    """The table of methods as lines, the best first, and those that cannot be used."""
    before = {line["name"]: line["before"] for line in [*values["differences"], *values["scores"]]}
    rows: list[Sequence[str]] = [
        [METHODS[line["method"]].title, format_number(line[LOSS]), format_number(line[LEAD]),
         share(line["same_class"])]
        for line in values["ranks"]
    ]  # fmt: skip
    rows.append(["as it is", format_number(before[LOSS]), format_number(before[LEAD]), ""])
    lines = ["", *table(["method", LOSS, LEAD, "rows that keep their class"], rows)]
    for name, reason in values["refused"].items():
        lines.append(f"  {METHODS[name].title} cannot be used: {reason}")
    return lines


def share(value: float | None) -> str:
    """A share in percent, 100 only of all."""
    if value is None:
        return "-"
    return "all" if value == 1 else f"{math.floor(10_000 * value) / 100:.2f} %"
