"""Methods of recalibration, fitted and applied for the command ``recalibrate``.

They are fitted out of folds, or to another file, or are applied as they were loaded.
"""

import math
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.cli.inputs import (
    class_numbers,
    data_of,
    estimators_of,
    read_data,
    read_file,
    title_of,
)
from fastece.cli.progress import Progress
from fastece.data.errors import BadArgumentError, InputError, InputWarning, RowsWarning
from fastece.estimators.table import ESTIMATORS
from fastece.files import FilePredictions
from fastece.recalibration import METHODS, Calibrator, load, recalibrate, recommend
from fastece.recalibration.choice import MapChoice
from fastece.recalibration.methods import AUTO
from fastece.report.inputs import LEAD
from fastece.resampling.call import compute_values

# The word for all methods, of which the best is taken.
ALL = "all"
LOSS = "log_loss"
FOLDS = 5
# The method that needs base rates, and the options of these.
SHIFT = "prior_shift"
RATES = ("old", "new")
# The classes of pairs of labels.
HITS = ["wrong", "right"]


class CheckedRows(NamedTuple):
    """Checked rows of a file, in the form that methods take.

    Labels are the numbers of their columns; `classes` are the names of these in a saved model, or
    None for numbers.
    """

    predictions: FilePredictions
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
            "the kind of columns": (
                "labels and confidences" if self.predictions.pairs else "probabilities"
            ),
            "the number of classes": self.n_classes,
            "the number of columns": self.x[:1].size,
            "logits or probabilities": name_scale(self.predictions.from_logits),
            "its classes in the order": self.classes,
        }


class RankedMethod(NamedTuple):
    """Measures of a method's result; `same_class` is None where rows have no classes."""

    method: str
    log_loss: float
    error: float
    same_class: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the measures by their names in JSON."""
        return {
            "method": self.method,
            LOSS: self.log_loss,
            LEAD: self.error,
            "same_class": self.same_class,
        }


class Applied(NamedTuple):
    """Recalibrated predictions by method, and why other methods cannot be used."""

    results: dict[str, FilePredictions]
    refused: dict[str, str]


def name_scale(from_logits: bool) -> str:
    """Return the word for logits or for probabilities."""
    return "logits" if from_logits else "probabilities"


def uses_folds(options: Namespace) -> bool:
    """Decide whether methods are fitted out of folds."""
    return options.load is None and options.fit is None


def describe_fit(options: Namespace) -> str:
    """Describe how a model is fitted."""
    if options.load is not None:
        return f"loaded from {title_of(options.load)}"
    if options.fit is not None:
        return f"fitted to {title_of(options.fit)}"
    folds = f"{count_folds(options)} folds"
    if options.groups is not None:
        folds += f", rows of the same {options.groups} together"
    return folds


def count_folds(options: Namespace) -> int:
    """Return the number of folds."""
    return FOLDS if options.cv is None else int(options.cv)


def check_rows(predictions: FilePredictions, options: Namespace) -> CheckedRows:
    """Check predictions as every command does, and return them for methods."""
    call = read_data(predictions, options, estimators_of(predictions, options), min_resamples=1)
    label = class_numbers(data_of(predictions, options))[0].astype(np.int64)
    names = call.models[0].labels
    if predictions.pairs:
        classes: list[str] | None = HITS
    else:
        classes = None if names is None else [str(name) for name in names]
    return CheckedRows(predictions, np.asarray(predictions.y_prob), label, classes)


# --- models ---------------------------------------------------------------------------------------


def choose_method(
    rows_to_fit: CheckedRows, groups: Any, options: Namespace, progress: Progress
) -> MapChoice | None:
    """Choose a method out of folds of the rows to fit to; None where it is given."""
    if options.load is not None or options.method not in (None, AUTO):
        return None
    progress("trying methods")
    # Warnings about rows were given when these were read.
    with warnings.catch_warnings(action="ignore", category=InputWarning):
        arguments = fold_arguments(rows_to_fit, groups, options)
        return recommend(rows_to_fit.label, rows_to_fit.x, **arguments)


def choose_models(
    rows: CheckedRows, choice: MapChoice | None, options: Namespace
) -> dict[str, Calibrator]:
    """Return the models of the chosen methods by name, or the one of `--load`."""
    if options.load is not None:
        return load_model(rows, options.load)
    if choice is not None:
        names = [choice.method]
    elif options.method == ALL:
        # No labels show the base rate that the other method needs.
        names = [name for name in METHODS if name != SHIFT]
    else:
        names = [options.method]
    rates = {name: getattr(options, name) for name in RATES if getattr(options, name)}
    if bool(rates) != (SHIFT in names):
        rule = f"goes with --method {SHIFT}, which needs it or the other rate"
        raise InputError(min(rates, default="old"), rule)
    from_logits = rows.predictions.from_logits
    return {name: METHODS[name](from_logits=from_logits, **rates) for name in names}


def load_model(rows: CheckedRows, path: str) -> dict[str, Calibrator]:
    """Load a saved model that fits the rows; return it by the name of its method."""
    model = load(path)
    model_facts: dict[str, Any] = {
        "the number of classes": model.n_classes_,
        "logits or probabilities": name_scale(model.from_logits),
    }
    both_classes = (model.classes_, rows.classes)
    # Names are compared if both have some; hits are no names of classes.
    if HITS in both_classes or None not in both_classes:
        model_facts["its classes in the order"] = model.classes_
    require_same("load", path, rows, model_facts)
    name = next(name for name, kind in METHODS.items() if kind is type(model))
    return {name: model}


def require_same(option: str, path: str, rows: CheckedRows, facts: dict[str, Any]) -> None:
    """Refuse a file of an option that differs from the file to recalibrate."""
    expected = rows.facts()
    for name, fact in facts.items():
        if fact != expected[name]:
            rule = f"must have {name} of the file, {expected[name]!r}"
            place = f"--{option}: {title_of(path)}"
            raise InputError(option, rule, value=fact, place=place)


# --- fits -----------------------------------------------------------------------------------------


def read_rows_to_fit(rows: CheckedRows, options: Namespace) -> CheckedRows:
    """Read the rows of `--fit`; without it, these are the rows themselves."""
    if options.fit is None:
        return rows
    rows_to_fit = check_rows(read_file(options.fit, options), options)
    require_same("fit", options.fit, rows, rows_to_fit.facts())
    return rows_to_fit


def fold_arguments(rows: CheckedRows, groups: Any, options: Namespace) -> dict[str, Any]:
    """Return the arguments of functions that fit out of folds."""
    return {
        "cv": count_folds(options),
        "groups": groups,
        "rng": options.rng,
        "from_logits": rows.predictions.from_logits,
        "sample_weight": rows.predictions.weights,
    }


def apply_methods(
    models: dict[str, Calibrator], rows: CheckedRows, rows_to_fit: CheckedRows, groups: Any,
    options: Namespace, progress: Progress,
) -> Applied:  # fmt: skip
    """Apply models to a file; with all methods, some may be refused."""
    applied = Applied({}, {})
    for name, model in models.items():
        progress(f"{model.title}, {describe_fit(options)}")
        try:
            if options.method == ALL and name == "matrix":
                check_matrix_size(rows_to_fit)
            with warnings_of(model):
                p = apply_model(model, rows, rows_to_fit, groups, options)
            applied.results[name] = rows.predictions.with_probabilities(p)
        except BadArgumentError as error:
            if options.method != ALL:
                raise
            applied.refused[name] = error.rule
    if not applied.results:
        reason = next(iter(applied.refused.values()))
        raise InputError("method", f"no method can be used; the first: {reason}")
    return applied


def check_matrix_size(rows: CheckedRows) -> None:
    """Refuse a matrix with more entries than there are rows to fit."""
    n_rows = len(rows.label)
    n_parameters = rows.n_classes * (rows.n_classes + 1)
    if n_parameters > n_rows:
        rule = f"has {n_parameters} parameters, more than the {n_rows} rows to fit to"
        raise InputError("method", rule)


@contextmanager
def warnings_of(model: Calibrator) -> Iterator[None]:
    """Name the method in warnings of the block, and drop warnings about rows."""
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        yield
    for caught in caught_warnings:
        warning = caught.message
        if isinstance(warning, InputWarning) and warning.argument[0] == "X":
            warning.place = model.title + warning.argument[1:]
        # Warnings about rows were given when these were read.
        if not isinstance(warning, RowsWarning):
            warnings.warn(warning, stacklevel=2)


def apply_model(
    model: Calibrator, rows: CheckedRows, rows_to_fit: CheckedRows, groups: Any, options: Namespace
) -> NDArray[Any]:
    """Apply a model: as it was loaded, fitted to other rows, or out of folds."""
    if uses_folds(options):
        arguments = fold_arguments(rows, groups, options)
        return recalibrate(rows.label, rows.x, method=model, **arguments)
    if options.fit is not None:
        fit_model(model, rows_to_fit)
    return model.transform(rows.x)


def fit_model(model: Calibrator, rows: CheckedRows) -> None:
    """Fit a model to checked rows."""
    model.fit(rows.x, rows.label, rows.predictions.weights)
    model.classes_ = rows.classes


# --- ranks ----------------------------------------------------------------------------------------


def rank_methods(
    models: dict[str, Calibrator], results: dict[str, FilePredictions], rows: CheckedRows,
    options: Namespace, progress: Progress,
) -> list[RankedMethod]:  # fmt: skip
    """Measure the result of each method, and rank the methods by their log loss.

    Measured are the log loss, the error, and the share of rows whose class stays the predicted one;
    infinite losses come last.
    """
    estimators = {
        LEAD: estimators_of(rows.predictions, options)[LEAD],
        LOSS: ESTIMATORS[LOSS],
    }
    middle = 0.0 if rows.predictions.from_logits else 0.5
    classes_before = predicted_classes(rows.x, middle)
    ranked = []
    for name, result in results.items():
        progress(f"measuring {models[name].title}")
        call = read_data(result, options, estimators)
        same_class = None
        if not rows.predictions.pairs:
            classes_after = predicted_classes(np.asarray(result.y_prob), 0.5)
            same_class = float((classes_after == classes_before).mean())
        log_loss = compute_values(call, LOSS)[0]
        error = compute_values(call, LEAD)[0]
        ranked.append(RankedMethod(name, log_loss, error, same_class))
    return sorted(ranked, key=lambda line: (math.isinf(line.log_loss), line.log_loss))


def predicted_classes(x: NDArray[Any], middle: float) -> NDArray[Any]:
    """Return the predicted class of each row; one column is cut at `middle`."""
    return x > middle if x.ndim == 1 else x.argmax(axis=1)
