"""Recalibration methods on a file: out of folds, fitted to another file, or saved."""

import math
import os
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.checks.errors import BadArgumentError, InputError, InputWarning, RowsWarning
from fastece.checks.labels import as_labels
from fastece.checks.parameters import check_choice, check_integer
from fastece.checks.probabilities import column_names
from fastece.cli.inputs import (
    columns_of,
    data_of,
    estimators_of,
    read_data,
    read_file,
    title_of,
)
from fastece.cli.terminal import Progress
from fastece.data.reading import read_problems
from fastece.estimators.table import ESTIMATORS
from fastece.files import STANDARD_INPUT, Predictions
from fastece.recalibration import METHODS, Calibrator, load, recalibrate
from fastece.recalibration.methods import method_name
from fastece.report.report import LEAD
from fastece.resampling.arguments import MOST_RESAMPLES

ALL, LOSS = "all", "log_loss"
FOLDS = 5
PAIR_KINDS = {True: "labels and confidences", False: "probabilities"}
# The classes of pairs of labels.
HITS = ["wrong", "right"]


class Rows(NamedTuple):
    """Checked predictions, in the form that methods take.

    Labels are the numbers of their columns, and `order` what these stand for, if they have names.
    """

    x: NDArray[Any]
    label: NDArray[Any]
    weight: NDArray[Any] | None
    from_logits: bool
    pairs: bool
    order: list[Any] | None

    @property
    def n_classes(self) -> int:
        """Number of classes; two for a single column."""
        return 2 if self.x.ndim == 1 else self.x.shape[1]

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes in a saved model; None for numbers."""
        if self.pairs:
            return HITS
        return None if self.order is None else [str(label) for label in self.order]

    @property
    def kind(self) -> str:
        """Kind of the file's numbers: logits or probabilities."""
        return "logits" if self.from_logits else "probabilities"


class Task(NamedTuple):
    """File to recalibrate, and the rows of `--fit`."""

    before: Predictions
    rows: Rows
    other: Rows | None
    options: Namespace

    @property
    def is_of_folds(self) -> bool:
        """Whether each fold has a model of its own."""
        return self.options.load is None and self.other is None


class Recalibrated(NamedTuple):
    """Calibration model and the recalibrated file.

    The model is not fitted if each fold had its own.
    """

    model: Calibrator
    after: Predictions


def check_way(options: Namespace) -> None:
    """Check the method, that there is one way to fit it, and that there are intervals."""
    excluded = {"load": ("method", "folds", "groups", "fit", "save"), "fit": ("folds", "groups")}
    for name, others in excluded.items():
        given = [x for x in others if getattr(options, x) is not None]
        if getattr(options, name) is not None and given:
            raise InputError(given[0], f"does not go with --{name}")
    check_integer("n_resamples", options.resamples, 1, MOST_RESAMPLES)
    if options.method is not None:
        check_choice("method", options.method, [*METHODS, ALL])
    paths = [options.file, options.fit]
    is_input = paths == [STANDARD_INPUT] * 2
    if is_input or (options.fit and all(map(os.path.exists, paths)) and os.path.samefile(*paths)):
        rule = "must be another file, or rows are recalibrated by what was fitted to them"
        raise InputError("fit", rule, hint="{cv} is for one file")


def read_task(options: Namespace) -> Task:
    """Read the file and the one of `--fit`, which must be of the same kind."""
    before = read_file(options.file, options, columns_of(options, "groups"))
    estimators_of(before, options)  # refused now, not after methods have been fitted
    rows = rows_of(before, options)
    if options.fit is None:
        return Task(before, rows, None, options)
    other = rows_of(read_file(options.fit, options), options)
    require_same("fit", options.fit, {
        "the kind of columns": [PAIR_KINDS[x.pairs] for x in (rows, other)],
        "the number of classes": [x.n_classes for x in (rows, other)],
        "the number of columns": [x.x[:1].size for x in (rows, other)],
        "logits or probabilities": [x.kind for x in (rows, other)],
        "its classes in the order": [x.order for x in (rows, other)],
    })  # fmt: skip
    return Task(before, rows, other, options)


def require_same(option: str, path: str, facts: dict[str, list[Any]]) -> None:
    """Refuse a file of an option that differs from the file to recalibrate."""
    for name, (wanted, got) in facts.items():
        if wanted != got:
            rule = f"must have {name} of the file, {wanted!r}"
            raise InputError(option, rule, value=got, place=f"--{option}: {title_of(path)}")


def rows_of(predictions: Predictions, options: Namespace) -> Rows:
    """Check predictions as every command does, and return them for methods."""
    data = data_of(predictions, options)
    y_true, y_prob = data.pop("y_true"), data.pop("y_prob")
    with predictions.located():
        order = read_problems(y_true, y_prob, **data).labels
    x = np.asarray(y_prob)
    label, _ = as_labels(
        y_true, x, "y_prob", column_names(y_prob), data["labels"], data["pos_label"]
    )
    label = label.astype(np.int64)
    return Rows(x, label, predictions.weights, data["from_logits"], predictions.pairs, order)


def apply_methods(task: Task, progress: Progress) -> tuple[dict[str, Recalibrated], dict[str, str]]:
    """Apply the chosen methods, and return results and reasons of failure by name.

    A method that cannot be used is an error, unless all methods are applied.
    """
    options = task.options
    if options.load is not None:
        return apply_saved(task), {}
    names = [*METHODS] if options.method == ALL else [options.method or "temperature"]
    results, refused = {}, {}
    for name in names:
        progress(f"{METHODS[name].title}, {describe_way(options)}")
        try:
            if len(names) > 1:
                check_size(name, task)
            results[name] = apply(name, task)
        except BadArgumentError as error:
            if len(names) == 1:
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


def apply(name: str, task: Task) -> Recalibrated:
    """Apply a method to a file, fitted to another file or out of folds."""
    rows, options = task.rows, task.options
    model = METHODS[name](from_logits=rows.from_logits)
    if task.other is not None:
        return transform(fit(model, task.other), task)
    groups = None if options.groups is None else task.before.others["groups"]
    with warnings_of(model):
        p = recalibrate(
            rows.label, rows.x, method=model, groups=groups, rng=options.seed,
            cv=FOLDS if options.folds is None else options.folds, from_logits=rows.from_logits,
            sample_weight=rows.weight,
        )  # fmt: skip
    return Recalibrated(model, task.before.with_probabilities(p))


def fit(model: Calibrator, rows: Rows) -> Calibrator:
    """Fit a model to checked predictions."""
    with warnings_of(model):
        model.fit(rows.x, rows.label, rows.weight)
    model.classes_ = rows.classes
    return model


def transform(model: Calibrator, task: Task) -> Recalibrated:
    """Apply a fitted model to the file of a task."""
    with warnings_of(model):
        return Recalibrated(model, task.before.with_probabilities(model.transform(task.rows.x)))


def apply_saved(task: Task) -> dict[str, Recalibrated]:
    """Apply the model of `--load` to the file of a task."""
    path, rows = task.options.load, task.rows
    model = load(path)
    are_named = HITS in (model.classes_, rows.classes) or None not in (model.classes_, rows.classes)
    require_same("load", path, {
        "the number of classes": [rows.n_classes, model.n_classes_],
        "logits or probabilities": [rows.kind, "logits" if model.from_logits else "probabilities"],
        "the classes, in the order": [rows.classes, model.classes_] if are_named else [None, None],
    })  # fmt: skip
    name = method_name(model)
    assert name is not None, "it was saved by its name in the table"
    return {name: transform(model, task)}


def check_size(name: str, task: Task) -> None:
    """Refuse a method that has more parameters than rows to fit them to.

    It is refused where all methods are applied.
    """
    n_classes, n = task.rows.n_classes, len((task.other or task.rows).label)
    count = n_classes * (n_classes + 1)
    if name == "matrix" and count > n:
        raise InputError("method", f"has {count} parameters, more than the {n} rows to fit to")


def rank(task: Task, results: dict[str, Recalibrated], progress: Progress) -> list[dict[str, Any]]:
    """Measure the result of each method, and rank the methods by their log loss.

    Measured are the log loss, the error, and the share of rows whose class stays the predicted one;
    infinite losses come last.
    """
    lines = []
    errors = estimators_of(task.before, task.options)
    measured = {LEAD: errors[LEAD], LOSS: ESTIMATORS[LOSS]}
    guess = guess_of(task.rows.x, 0.0 if task.rows.from_logits else 0.5)
    for name, result in results.items():
        progress(f"measuring {result.model.title}")
        call = read_data(result.after, of_probabilities(task.options), measured)
        kept = guess_of(np.asarray(result.after.y_prob), 0.5) == guess
        lines.append({
            "method": name, **{name: call.values(name)[0] for name in (LOSS, LEAD)},
            "same_class": None if task.rows.pairs else float(kept.mean()),
        })  # fmt: skip
    return sorted(lines, key=lambda line: (math.isinf(line[LOSS]), line[LOSS]))


def guess_of(x: NDArray[Any], middle: float) -> NDArray[Any]:
    """Return the predicted class of each row."""
    return x > middle if x.ndim == 1 else x.argmax(axis=1)


def of_probabilities(options: Namespace) -> Namespace:
    """Return the options for recalibrated predictions, which are never logits."""
    return Namespace(**{**vars(options), "from_logits": False})


def describe_way(options: Namespace) -> str:
    """Describe how a model is fitted."""
    if options.load is not None:
        return f"loaded from {title_of(options.load)}"
    if options.fit is not None:
        return f"fitted to {title_of(options.fit)}"
    whole = "" if options.groups is None else f", rows of the same {options.groups} together"
    return f"{FOLDS if options.folds is None else options.folds} folds{whole}"
