"""Files and options, turned into arguments of the functions that measure."""

import ast
import csv
import io
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import (
    HIGHEST,
    LOWEST,
    column_names,
    first_number,
    order_of_numbers,
)
from fastece.data.errors import InputError, to_unicode
from fastece.data.labels import as_labels
from fastece.estimators.losses import LogLoss
from fastece.files import STANDARD_INPUT, FilePredictions, read_predictions
from fastece.files.cells import NamedColumns
from fastece.kernels.types import F64
from fastece.report.inputs import ERRORS, choose_errors
from fastece.report.words import question
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.call import Call

# Bools in an option as Python writes them.
PYTHON_BOOLS = {"true": "True", "false": "False", "TRUE": "True", "FALSE": "False"}
PAIRS = "the file has hits and confidences of predictions, which is a binary problem"


# --- reading a file -------------------------------------------------------------------------------


def title_of(path: str) -> str:
    """Return the name of a file for pages and messages."""
    return "standard input" if path == STANDARD_INPUT else to_unicode(path)


def with_options(options: Namespace, **changes: Any) -> Namespace:
    """Return the same options with some changes."""
    return Namespace(**{**vars(options), **changes})


def file_options(options: Namespace) -> dict[str, Any]:
    """Return the options that name the columns of a file, as `Reader` takes them."""
    columns = {
        **slice_columns(options),
        "groups": options.groups,
        "votes": options.votes,
        "counts": options.counts,
    }
    return {
        "y_true": options.y_true,
        "y_prob": options.y_prob,
        "classes": options.classes,
        "weights": options.sample_weight,
        "columns": {argument: name for argument, name in columns.items() if name is not None},
        "percent": reads_percents(options),
        "skips_missing": options.missing == "skip",
    }


def reads_percents(options: Namespace) -> bool:
    """Decide whether probabilities are read as percents."""
    if options.percent and options.from_logits:
        raise InputError("from_logits", "goes without {percent}, which probabilities are in")
    return bool(options.percent)


def slice_columns(options: Namespace) -> dict[str, str]:
    """Return the columns of slices, by the names that errors have for them."""
    names = list(dict.fromkeys(options.by or []))
    if len(names) == 1:
        return {"by": names[0]}
    return {f"by[{name!r}]": name for name in names}


def read_file(path: str, options: Namespace) -> FilePredictions:
    """Read a file with the columns that the options name."""
    return apply_options(read_predictions(path, **file_options(options)), options)


def read_independent(path: str, options: Namespace) -> FilePredictions:
    """Read a file whose rows have to be independent, unlike attempts in a log."""
    predictions = read_file(path, options)
    if "groups" in predictions.others:
        rule = "has several attempts at a question, and this command takes rows as independent"
        raise InputError("path", rule, place=title_of(path))
    return predictions


def apply_options(predictions: FilePredictions, options: Namespace) -> FilePredictions:
    """Mark predictions as logits, if options or the file have it so, and clip them."""
    are_logits = options.from_logits or predictions.from_logits
    predictions = replace(predictions, from_logits=are_logits)
    if options.labels is None and options.pos_label is None:
        predictions = sort_classes(predictions)
    if options.clip is None:
        return predictions
    clip: float = LogLoss(options.clip).clip or 0.0
    if are_logits:
        raise InputError("clip", "needs probabilities, and these are logits", value=clip)
    prob, n_clipped = clip_probabilities(np.asarray(predictions.y_prob, np.float64), clip)
    note = f"probabilities clipped at {clip:g} in {n_clipped} of {len(prob)} rows"
    notes = filter(None, [predictions.note, note])
    return replace(predictions.with_probabilities(prob), note=", ".join(notes))


def sort_classes(predictions: FilePredictions) -> FilePredictions:
    """Sort columns that are numbered from 0 on, if labels are numbers."""
    names = column_names(predictions.y_prob)
    order = order_of_numbers(names)
    are_numbers = predictions.y_true.dtype.kind in "biuf"
    if not order or not are_numbers or first_number([names[k] for k in order]) != 0:
        return predictions
    sorted_names = [names[k] for k in order]
    prob = NamedColumns(np.asarray(predictions.y_prob)[:, order], sorted_names)
    read_names = predictions.columns["y_prob"]
    columns = {**predictions.columns, "y_prob": [read_names[k] for k in order]}
    return replace(predictions, y_prob=prob, columns=columns)


def clip_probabilities(p: F64, clip: float) -> tuple[F64, int]:
    """Clip probabilities, and count the rows in which that changes one.

    Sums of class vectors stay as they are, and no entry that is refused is hidden.
    """
    is_valid = (p >= LOWEST) & (p <= HIGHEST)
    clipped = np.where(is_valid, np.clip(p, clip, 1 - clip), p)
    if p.ndim > 1 and p.shape[1] > 1:
        clipped = np.where(p >= 0.5, p, clipped)
        clipped *= p.sum(axis=1, keepdims=True) / clipped.sum(axis=1, keepdims=True)
    is_changed = (clipped != p).reshape(len(p), -1).any(axis=1)
    return clipped, int(is_changed.sum())


# --- arguments ------------------------------------------------------------------------------------


def data_of(predictions: FilePredictions, options: Namespace) -> dict[str, Any]:
    """Return the arguments that every function takes: data, and how to read them."""
    if predictions.hits:
        refuse_class_settings(options)
    if predictions.pairs:
        refuse_class_options(options)
    is_text = predictions.y_true.dtype.kind in "OUST"
    labels = None
    if options.labels is not None:
        rows = csv.reader(io.StringIO(options.labels, newline=""))
        labels = [read_label("labels", cell, is_text) for row in rows for cell in row]
    pos_label = None
    if options.pos_label is not None:
        pos_label = read_label("pos_label", options.pos_label, is_text)
    return {
        "y_true": predictions.y_true,
        "y_prob": predictions.y_prob,
        "setting": options.setting,
        "labels": labels,
        "pos_label": pos_label,
        "from_logits": predictions.from_logits,
        "sample_weight": predictions.weights,
        "soft": bool(options.soft),
        "votes": predictions.others.get("votes"),
        "counts": predictions.others.get("counts"),
    }


def refuse_class_settings(options: Namespace) -> None:
    """Refuse settings that hits and confidences have no classes for."""
    if options.setting not in ("auto", "binary"):
        raise InputError("setting", f"needs a class vector, and {PAIRS}", value=options.setting)


def refuse_class_options(options: Namespace) -> None:
    """Refuse options that a file of labels and confidences has no use for."""
    for name in ("from_logits", "labels", "pos_label", "soft", "votes"):
        if getattr(options, name):
            raise InputError(name, f"needs probabilities of classes, and {PAIRS}")


def read_label(option: str, text: str, is_text: bool) -> Any:
    """Read a label of the kind that the file has: a text, or a number."""
    text = text.strip()
    if is_text:
        return text
    try:
        label = ast.literal_eval(PYTHON_BOOLS.get(text, text))
    except (ValueError, SyntaxError):
        label = None
    if not isinstance(label, Real):
        raise InputError(option, "the labels of the file are numbers", value=text)
    return label


def class_numbers(data: Mapping[str, Any]) -> tuple[NDArray[Any], list[Any] | None]:
    """Return the labels of data as numbers of classes, and the labels in their order."""
    y_prob = data["y_prob"]
    return as_labels(
        data["y_true"], np.asarray(y_prob), "y_prob", column_names(y_prob), data["labels"],
        data["pos_label"],
    )  # fmt: skip


def read_data(
    predictions: FilePredictions, options: Namespace, estimators: Mapping[str, Any],
    min_resamples: int = 0,
) -> Call:  # fmt: skip
    """Check predictions and options, as a call with at least so many resamples."""
    data = data_of(predictions, options)
    with predictions.located():
        call = read_call(
            "the command", data.pop("y_true"), {"y_prob": data.pop("y_prob")}, min_resamples,
            **data, n_jobs=-1, estimator=list(estimators.values()), n_resamples=options.n_resamples,
            confidence_level=options.confidence_level,
        )  # fmt: skip
        call = add_groups(call, predictions.others.get("groups"), predictions.y_prob)
    return replace(call, estimators=dict(estimators))


def score_range(predictions: FilePredictions) -> dict[str, Any]:
    """Return the range of scores as a field of estimators, if a class count is given.

    It is for files whose columns do not show the range.
    """
    if predictions.classes is None:
        return {}
    return {"score_range": (1 / predictions.classes, 1.0)}


def needs_everything(options: Namespace) -> bool:
    """Decide whether all errors and diagrams are computed.

    They are for pictures, programs and differences; a report of one screen does with less.
    """
    is_report = options.full is not None
    return not is_report or bool(options.full or options.html or options.plot or options.json)


def estimators_of(predictions: FilePredictions, options: Namespace) -> dict[str, Any]:
    """Choose the errors of a page, with any that the options name.

    The errors have the bins and the range of the options, if they take them. Two errors always come
    first; all others are there if everything is needed.
    """
    names = list(options.estimator)
    if needs_everything(options):
        names = [*ERRORS, *names]
    return choose_errors(names, n_bins=options.n_bins, **score_range(predictions))


# --- the page -------------------------------------------------------------------------------------


def describe_data(call: Call, predictions: FilePredictions) -> dict[str, Any]:
    """Return the facts of a page on the rows of a file."""
    rows = str(call.n)
    if call.n_groups is not None:
        rows += f" in {call.n_groups} groups"
    description = {"rows": rows, "setting": question(call.setting, predictions.hits)}
    if predictions.note:
        description["read as"] = predictions.note
    return description
