"""The command ``recalibrate``: predictions recalibrated and compared.

Methods are applied out of folds, fitted to another file, or loaded; `method_fits` does that.
"""

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastece.cli.arguments import (
    Parser,
    add_clip,
    add_columns,
    add_errors,
    add_file,
    add_forms,
    add_groups,
    add_intervals,
    add_picture,
    add_scale,
    add_setting,
    scores,
)
from fastece.cli.differences import Differences, Model, measure_differences, sign_of
from fastece.cli.inputs import describe_data, read_file, title_of
from fastece.cli.method_fits import (
    ALL,
    FOLDS,
    LOSS,
    RATES,
    Applied,
    RankedMethod,
    apply_methods,
    check_rows,
    choose_method,
    choose_models,
    describe_fit,
    fit_model,
    rank_methods,
    read_rows_to_fit,
    uses_folds,
    warnings_of,
)
from fastece.cli.output import Page, save_picture
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import decimals, format_number
from fastece.files import file_identity, write_predictions
from fastece.recalibration import METHODS, Calibrator, save
from fastece.recalibration.choice import BEST_LEFT, NONE
from fastece.recalibration.methods import AUTO
from fastece.report.inputs import LEAD, TEST
from fastece.report.pictures import diagram_panels
from fastece.report.words import sentence

DESCRIPTION = """Recalibrate predictions and compare them before and after. By default it is out
of fold, no row is used to fit its own correction, and the method is chosen
among a few, none included."""
EXAMPLES = """
  fastece recalibrate predictions.csv --out better.csv --save model.json
  fastece recalibrate test.csv --fit validation.csv --method all
"""
# Names of the predictions on the page.
BEFORE = "before"
AFTER = "after"
LOGITS_REMARK = "(probabilities, where the file has logits)"
FOLDS_REMARK = "(fitted to all rows; the numbers above are of one for each fold)"
OUT_OF_FOLDS = "after: out-of-fold (no row was used to fit its own correction)"
# Options that do not go with another one.
FOLD_OPTIONS = ("cv", "groups")
EXCLUDED = {"load": ("method", *RATES, *FOLD_OPTIONS, "fit", "save"), "fit": FOLD_OPTIONS}
# The change of an error, and of the log loss, where the interval of before - after is above 0,
# below 0, or holds 0.
ERROR_CHANGES = {
    1: "improved the calibration ({})",
    -1: "worsened the calibration ({})",
    0: "made no clear change in the calibration ({})",
}
LOSS_CHANGES = {
    1: "better log loss",
    -1: "worse log loss",
    0: "no clear change in the log loss",
}


def make_parser() -> Parser:
    """Make the parser of ``fastece recalibrate FILE``."""
    parser = Parser("recalibrate", DESCRIPTION, "fastece recalibrate FILE [options]", EXAMPLES)
    add_file(parser)
    add_columns(parser)
    add_scale(parser)
    add_clip(parser)
    add_groups(parser)
    add = parser.input.add_argument
    add("--fit", metavar="FILE", help="fit to these rows, of the same model, not to folds")
    add("--load", metavar="FILE", help="fit nothing: a model of --save")
    add = parser.measure.add_argument
    add("--method", metavar="NAME", help="auto (default, which chooses), a method, or all")
    add("--old", metavar="P,P,...", type=scores, help="base rate of the fit, for prior_shift")
    add("--new", metavar="P,P,...", type=scores, help="base rate of these rows (estimated)")
    add("--folds", metavar="N", type=int, dest="cv", help=f"each fitted to the others ({FOLDS})")
    add_setting(parser)
    add_errors(parser)
    add_intervals(parser)
    add = parser.output.add_argument
    add("--out", metavar="FILE", help="the file with recalibrated probabilities")
    add("--save", metavar="FILE", help="the fitted model as JSON; of folds, one of all")
    add_picture(parser)
    add_forms(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece recalibrate FILE``."""
    check_options(options)
    title = title_of(options.file)
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    groups = predictions.others.get("groups")
    # Groups decide about folds, and not about the intervals of the comparison.
    before = replace(predictions, others={})
    rows = check_rows(before, options)
    rows_to_fit = read_rows_to_fit(rows, options)
    groups_to_fit = groups if uses_folds(options) else None
    choice = choose_method(rows_to_fit, groups_to_fit, options, progress)
    models = choose_models(rows, choice, options)
    applied = apply_methods(models, rows, rows_to_fit, groups, options, progress)
    ranked: list[RankedMethod] = []
    if options.method == ALL:
        ranked = rank_methods(models, applied.results, rows, options, progress)
    best = ranked[0].method if ranked else next(iter(applied.results))
    model = models[best]
    after = applied.results[best]
    before_and_after = [Model(BEFORE, BEFORE, before), Model(AFTER, AFTER, after)]
    (differences,) = measure_differences(before_and_after, options, progress)
    if options.save and uses_folds(options):
        progress(f"{model.title}, fitted to all rows")
        with warnings_of(model):
            fit_model(model, rows)

    verdict = write_verdict(model.title, differences)
    if best == NONE and (choice is not None or ranked):
        verdict = BEST_LEFT
    parameters = parameters_of(model)
    values = {
        "title": title,
        "note": before.note,
        "verdict": verdict,
        "method": best,
        "fitted": describe_fit(options),
        "parameters": parameters,
        "trials": [] if choice is None else [trial.to_dict() for trial in choice.trials],
        "ranks": [line.to_dict() for line in ranked],
        "refused": applied.refused if choice is None else choice.refused,
        **differences.values(),
    }
    parameter_note = " (of all rows)" if uses_folds(options) else ""
    description = {
        **describe_data(differences.call, before),
        "method": f"{model.title}, {describe_fit(options)}",
        **{name: f"{x:.5g}{parameter_note}" for name, x in parameters.items()},
    }
    sections = [Section(facts=description)]
    if choice is not None:
        sections.append(choice.section())
    if ranked:
        sections.append(describe_ranks(ranked, applied))
    sections += differences.sections()
    if uses_folds(options):
        sections.append(Section(notes=[OUT_OF_FOLDS]))

    def draw(path: Path) -> None:
        save_picture(path, diagram_panels(differences.call, (BEFORE, AFTER)), verdict)

    writers = {
        "plot": draw,
        "out": lambda path: write_predictions(path, after),
        "save": lambda path: save(model, path),
    }
    remarks = {}
    if before.from_logits:
        remarks["out"] = LOGITS_REMARK
    if uses_folds(options):
        remarks["save"] = FOLDS_REMARK
    return Page(Document(title, verdict, sections), values, writers, remarks)


def check_options(options: Namespace) -> None:
    """Check the method, that there is one way to fit it, and that options go together."""
    for name, others in EXCLUDED.items():
        conflicts = [other for other in others if getattr(options, other) is not None]
        if getattr(options, name) is not None and conflicts:
            raise InputError(conflicts[0], f"does not go with --{name}")
    if options.method is not None:
        check_choice("method", options.method, [AUTO, *METHODS, ALL])
    if options.fit and file_identity(options.fit) == file_identity(options.file):
        rule = "must be another file, or rows are recalibrated by what was fitted to them"
        raise InputError("fit", rule, hint="{cv} is for one file")


def parameters_of(model: Calibrator) -> dict[str, float]:
    """Return the fitted parameters of a model that are single numbers."""
    fitted = {x.name: getattr(model, f"{x.name}_", None) for x in model.PARAMETERS}
    return {name: x for name, x in fitted.items() if isinstance(x, float)}


# --- the page -------------------------------------------------------------------------------------


def describe_ranks(ranked: Sequence[RankedMethod], applied: Applied) -> Section:
    """Describe the ranked methods, and why others cannot be used."""
    rows: list[list[Any]] = [
        [METHODS[x.method].title, x.log_loss, x.error, format_share(x.same_class)] for x in ranked
    ]
    head = ["method", LOSS, LEAD, "rows that keep their class"]
    notes = [
        f"{METHODS[name].title} cannot be used: {rule}" for name, rule in applied.refused.items()
    ]
    return Section("Methods", table=Table(head, rows), notes=notes)


def format_share(share: float | None) -> str:
    """Write a share in percent; only a share of 1 becomes "all"."""
    if share is None:
        return "-"
    return "all" if share == 1 else f"{math.floor(10_000 * share) / 100:.2f} %"


def write_verdict(method: str, differences: Differences) -> str:
    """Write a sentence on whether a method helped."""
    lead = differences.errors[LEAD]
    test = differences.errors[TEST]
    loss = differences.scores[LOSS]
    claims = [(lead, f"{method} {ERROR_CHANGES[sign_of(lead)].format(LEAD)}")]
    if sign_of(lead) != sign_of(test):
        claims.append((test, f"it {ERROR_CHANGES[sign_of(test)].format(TEST)}"))
    if math.isfinite(loss.a) and math.isfinite(loss.b):
        claims.append((loss, LOSS_CHANGES[sign_of(loss)]))
    parts = []
    for result, claim in claims:
        places = decimals(result.confidence_interval)
        before = format_number(result.a, places)
        after = format_number(result.b, places)
        interval = differences.describe_interval(result)
        parts.append(f"{claim}: {before} before, {after} after {interval}")
    if math.isinf(loss.b):
        parts.append("the log loss is infinite after, as a label had probability 0")
    elif math.isinf(loss.a):
        parts.append(f"the log loss was infinite, and is {format_number(loss.b)} after")
    return sentence("; ".join(parts)) + "."
