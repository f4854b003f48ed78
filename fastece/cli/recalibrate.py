"""The command ``recalibrate``: predictions recalibrated and compared.

Methods are applied out of folds, fitted to another file, or saved.
"""

import math
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.cli import inputs
from fastece.cli.compare import Differences, measure, sign_of
from fastece.cli.output import Page, Progress, save_picture
from fastece.data.errors import BadArgumentError, InputError, InputWarning, RowsWarning
from fastece.data.parameters import check_choice
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import decimals, format_number
from fastece.estimators.table import ESTIMATORS
from fastece.files import FilePredictions, file_identity, write_predictions
from fastece.recalibration import METHODS, Calibrator, load, recalibrate, save
from fastece.report.inputs import LEAD, TEST
from fastece.report.pictures import diagram_panels
from fastece.report.words import sentence
from fastece.resampling.call import compute_values

ALL, LOSS = "all", "log_loss"
FOLDS = 5
SHIFT, RATES = "prior_shift", ("old", "new")
NAMES = ("before", "after")
# The classes of pairs of labels.
HITS = ["wrong", "right"]
OF_LOGITS = "(probabilities, where the file has logits)"
OF_ALL_ROWS = "(fitted to all rows; the numbers above are of one for each fold)"
OUT_OF_FOLDS = "after: out of folds, so no row by what was fitted to it"
# Options that do not go with another one.
CUT = ("folds", "groups")
EXCLUDED = {"load": ("method", *RATES, *CUT, "fit", "save"), "fit": CUT}
# The change of an error, and of the log loss, where the interval of before - after is above 0,
# below 0, or holds 0.
ERRORS = {
    1: "made it better calibrated by {}",
    -1: "made it worse calibrated by {}",
    0: "is not shown to have changed how well it is calibrated by {}",
}
LOSSES = {1: "better", -1: "worse", 0: "not shown to be another"}


class Rows(NamedTuple):
    """Checked rows of a file, in the form that methods take.

    Labels are the numbers of their columns; `classes` are the names of these in a saved model, or
    None for numbers.
    """

    file: FilePredictions
    x: NDArray[Any]
    label: NDArray[Any]
    classes: list[str] | None

    @property
    def n_classes(self) -> int:
        """Number of classes; two for a single column."""
        return 2 if self.x.ndim == 1 else self.x.shape[1]

    def facts(self) -> dict[str, Any]:
        """Return facts that a model, or another file, must have in common."""
        return {
            "the kind of columns": "labels and confidences" if self.file.pairs else "probabilities",
            "the number of classes": self.n_classes,
            "the number of columns": self.x[:1].size,
            "logits or probabilities": "logits" if self.file.from_logits else "probabilities",
            "its classes in the order": self.classes,
        }


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece recalibrate FILE``."""
    check_way(options)
    title = inputs.title_of(options.file)
    progress(f"reading {title}")
    before = inputs.read_file(options.file, options)
    groups, before = before.others.get("groups"), replace(before, others={})
    rows = read_rows(before, options)
    models = choose_models(rows, options)
    results, refused = apply_methods(models, rows, groups, options, progress)
    ranks = rank(models, results, rows, options, progress) if options.method == ALL else []
    best = ranks[0]["method"] if ranks else next(iter(results))
    model, after = models[best], results[best]
    found = measure(before, after, NAMES, options, progress)
    is_of_folds = options.load is None and options.fit is None
    if options.save and is_of_folds:
        progress(f"{model.title}, fitted to all rows")
        with warnings_of(model):
            fit(model, rows)
    parameters = {x.name: getattr(model, f"{x.name}_", None) for x in model.PARAMETERS}
    parameters = {name: x for name, x in parameters.items() if isinstance(x, float)}
    verdict, way = verdict_of(model.title, found), describe_way(options)
    values = {
        "title": title, "note": before.note, "verdict": verdict, "method": best, "fitted": way,
        "parameters": parameters, "ranks": ranks, "refused": refused, **found.values(),
    }  # fmt: skip
    note = " (of all rows)" if is_of_folds else ""
    facts = {**inputs.describe_data(found.call, before), "method": f"{model.title}, {way}"}
    facts |= {name: f"{x:.5g}{note}" for name, x in parameters.items()}
    sections = [Section(facts=facts), *rank_sections(ranks, refused, found), *found.sections()]
    sections += [Section(notes=[OUT_OF_FOLDS])] if is_of_folds else []
    writers = {
        "plot": lambda path: save_picture(path, diagram_panels(found.call, NAMES), verdict),
        "out": lambda path: write_predictions(path, after, is_safe=options.safe_csv),
        "save": lambda path: save(model, path),
    }
    remarks = {"out": OF_LOGITS * before.from_logits, "save": OF_ALL_ROWS * is_of_folds}
    return Page(Document(title, verdict, sections), values, writers, remarks)


def check_way(options: Namespace) -> None:
    """Check the method, and that there is one way to fit it."""
    for name, others in EXCLUDED.items():
        given = [x for x in others if getattr(options, x) is not None]
        if getattr(options, name) is not None and given:
            raise InputError(given[0], f"does not go with --{name}")
    if options.method is not None:
        check_choice("method", options.method, [*METHODS, ALL])
    if options.fit and file_identity(options.fit) == file_identity(options.file):
        rule = "must be another file, or rows are recalibrated by what was fitted to them"
        raise InputError("fit", rule, hint="{cv} is for one file")


def describe_way(options: Namespace) -> str:
    """Describe how a model is fitted."""
    if options.load is not None:
        return f"loaded from {inputs.title_of(options.load)}"
    if options.fit is not None:
        return f"fitted to {inputs.title_of(options.fit)}"
    whole = "" if options.groups is None else f", rows of the same {options.groups} together"
    return f"{FOLDS if options.folds is None else options.folds} folds{whole}"


def read_rows(file: FilePredictions, options: Namespace) -> Rows:
    """Check predictions as every command does, and return them for methods."""
    call = inputs.read_data(file, options, inputs.estimators_of(file, options), least=1)
    label = inputs.class_numbers(inputs.data_of(file, options))[0].astype(np.int64)
    order = call.models[0].labels
    classes = HITS if file.pairs else None if order is None else [str(one) for one in order]
    return Rows(file, np.asarray(file.y_prob), label, classes)


def choose_models(rows: Rows, options: Namespace) -> dict[str, Calibrator]:
    """Return the models of the chosen methods by name, or the one of `--load`."""
    if options.load is None:
        every = [name for name in METHODS if name != SHIFT]  # whose rate no labels say
        names = every if options.method == ALL else [options.method or "temperature"]
        own = {name: getattr(options, name) for name in RATES if getattr(options, name)}
        if bool(own) != (SHIFT in names):
            rule = f"goes with --method {SHIFT}, which needs it or the other rate"
            raise InputError(min(own, default="old"), rule)
        return {name: METHODS[name](from_logits=rows.file.from_logits, **own) for name in names}
    model = load(options.load)
    got: dict[str, Any] = {
        "the number of classes": model.n_classes_,
        "logits or probabilities": "logits" if model.from_logits else "probabilities",
    }
    named = (model.classes_, rows.classes)
    if HITS in named or None not in named:
        got["its classes in the order"] = model.classes_
    require_same("load", options.load, rows, got)
    return {next(name for name, kind in METHODS.items() if kind is type(model)): model}


def require_same(option: str, path: str, rows: Rows, got: dict[str, Any]) -> None:
    """Refuse a file of an option that differs from the file to recalibrate."""
    wanted = rows.facts()
    for name, value in got.items():
        if value != wanted[name]:
            rule = f"must have {name} of the file, {wanted[name]!r}"
            place = f"--{option}: {inputs.title_of(path)}"
            raise InputError(option, rule, value=value, place=place)


def apply_methods(
    models: dict[str, Calibrator], rows: Rows, groups: Any, options: Namespace, progress: Progress
) -> tuple[dict[str, FilePredictions], dict[str, str]]:
    """Apply models to a file, and return results and reasons of failure by name.

    A method that cannot be used is an error, unless all methods are applied.
    """
    others = rows  # to fit to
    if options.fit is not None:
        others = read_rows(inputs.read_file(options.fit, options), options)
        require_same("fit", options.fit, rows, others.facts())
    n, count = len(others.label), others.n_classes * (others.n_classes + 1)
    results, refused = {}, {}
    for name, model in models.items():
        progress(f"{model.title}, {describe_way(options)}")
        try:
            if options.method == ALL and name == "matrix" and count > n:
                rule = f"has {count} parameters, more than the {n} rows to fit to"
                raise InputError("method", rule)
            with warnings_of(model):
                p = apply(model, rows, others, groups, options)
            results[name] = rows.file.with_probabilities(p)
        except BadArgumentError as error:
            if options.method != ALL:
                raise
            refused[name] = error.rule
    if not results:
        reason = next(iter(refused.values()))
        raise InputError("method", f"no method can be used; the first: {reason}")
    return results, refused


@contextmanager
def warnings_of(method: Any) -> Iterator[None]:
    """Name the method in warnings of the block, and drop warnings about rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        warning = one.message
        if isinstance(warning, InputWarning) and warning.argument[0] == "X":
            warning.place = method.title + warning.argument[1:]
        if not isinstance(warning, RowsWarning):  # which was given as they were read
            warnings.warn(warning, stacklevel=2)


def apply(
    model: Calibrator, rows: Rows, others: Rows, groups: Any, options: Namespace
) -> NDArray[Any]:
    """Apply a model: as it was loaded, fitted to other rows, or out of folds."""
    if options.load is None and options.fit is None:
        return recalibrate(
            rows.label, rows.x, method=model, groups=groups, rng=options.seed,
            cv=FOLDS if options.folds is None else options.folds, from_logits=model.from_logits,
            sample_weight=rows.file.weights,
        )  # fmt: skip
    if options.fit is not None:
        fit(model, others)
    return model.transform(rows.x)


def fit(model: Calibrator, rows: Rows) -> None:
    """Fit a model to checked rows."""
    model.fit(rows.x, rows.label, rows.file.weights)
    model.classes_ = rows.classes


def rank(
    models: dict[str, Calibrator], results: dict[str, FilePredictions], rows: Rows,
    options: Namespace, progress: Progress,
) -> list[dict[str, Any]]:  # fmt: skip
    """Measure the result of each method, and rank the methods by their log loss.

    Measured are the log loss, the error, and the share of rows whose class stays the predicted one;
    infinite losses come last.
    """
    lines = []
    measured = {LEAD: inputs.estimators_of(rows.file, options)[LEAD], LOSS: ESTIMATORS[LOSS]}
    guess = guess_of(rows.x, 0.0 if rows.file.from_logits else 0.5)
    for name, result in results.items():
        progress(f"measuring {models[name].title}")
        call = inputs.read_data(result, options, measured)
        kept = guess_of(np.asarray(result.y_prob), 0.5) == guess
        lines.append({
            "method": name, **{name: compute_values(call, name)[0] for name in (LOSS, LEAD)},
            "same_class": None if rows.file.pairs else float(kept.mean()),
        })  # fmt: skip
    return sorted(lines, key=lambda line: (math.isinf(line[LOSS]), line[LOSS]))


def guess_of(x: NDArray[Any], middle: float) -> NDArray[Any]:
    """Return the predicted class of each row."""
    return x > middle if x.ndim == 1 else x.argmax(axis=1)


def rank_sections(
    ranks: list[dict[str, Any]], refused: dict[str, str], found: Differences
) -> list[Section]:
    """Describe the ranked methods, if any, and the unusable ones."""
    if not ranks:
        return []
    rows = [[METHODS[x["method"]].title, x[LOSS], x[LEAD], share(x["same_class"])] for x in ranks]
    rows.append(["as it is", found.scores[LOSS].a, found.errors[LEAD].a, ""])
    head = ["method", LOSS, LEAD, "rows that keep their class"]
    notes = [f"{METHODS[name].title} cannot be used: {refused[name]}" for name in refused]
    return [Section("Methods", table=Table(head, rows), notes=notes)]


def share(value: float | None) -> str:
    """Write a share in percent; only a share of 1 becomes "all"."""
    if value is None:
        return "-"
    return "all" if value == 1 else f"{math.floor(10_000 * value) / 100:.2f} %"


def verdict_of(name: str, found: Differences) -> str:
    """Write a sentence on whether a method helped."""
    error, bins, loss = found.errors[LEAD], found.errors[TEST], found.scores[LOSS]
    claims = [(error, f"{name} {ERRORS[sign_of(error)].format(LEAD)}")]
    if sign_of(error) != sign_of(bins):
        claims.append((bins, f"it {ERRORS[sign_of(bins)].format(TEST)}"))
    if math.isfinite(loss.a) and math.isfinite(loss.b):
        claims.append((loss, f"the log loss is {LOSSES[sign_of(loss)]}"))
    parts = []
    for result, claim in claims:
        places = decimals(result.confidence_interval)
        a, b = (format_number(x, places) for x in (result.a, result.b))
        parts.append(f"{claim}: {a} before, {b} after {found.describe_interval(result)}")
    if math.isinf(loss.b):
        parts.append("the log loss is infinite after, as a label had probability 0")
    elif math.isinf(loss.a):
        parts.append(f"the log loss was infinite, and is {format_number(loss.b)} after")
    return sentence("; ".join(parts)) + "."
