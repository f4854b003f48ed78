"""Files and options, turned into arguments of the functions that measure."""

import ast
import csv
import io
from argparse import Namespace
from dataclasses import replace
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import HIGHEST, LOWEST, column_names
from fastece.data.errors import InputError, to_unicode
from fastece.data.labels import as_labels
from fastece.estimators.losses import LogLoss
from fastece.files import STANDARD_INPUT, FilePredictions, read_predictions
from fastece.kernels.types import F64
from fastece.report.inputs import ERRORS, choose_errors
from fastece.report.words import question
from fastece.resampling.arguments import add_groups, read_call
from fastece.resampling.call import Call

BOOLS = {"true": "True", "false": "False"}
PAIRS = "the file has labels and confidences of predicted classes, which is a binary problem"


def title_of(path: str) -> str:
    """Return the name of a file for pages and messages."""
    return "standard input" if path == STANDARD_INPUT else to_unicode(path)


def file_options(options: Namespace) -> dict[str, Any]:
    """Return the options that name the columns of a file."""
    found = {name: getattr(options, name) for name in ("y_true", "y_prob", "classes", "weights")}
    columns = {**slice_columns(options), "groups": options.groups, "votes": options.votes}
    return {**found, "columns": {name: x for name, x in columns.items() if x is not None}}


def slice_columns(options: Namespace) -> dict[str, str]:
    """Return the columns of slices, by the names that errors have for them."""
    names = [*dict.fromkeys(options.by or [])]
    return {"by" if len(names) == 1 else f"by[{name!r}]": name for name in names}


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
    found = replace(predictions, from_logits=options.from_logits or predictions.from_logits)
    if options.clip is None:
        return found
    clip: float = LogLoss(options.clip).clip or 0.0
    if found.from_logits:
        raise InputError("clip", "needs probabilities, and these are logits", value=clip)
    prob, count = clip_probabilities(np.asarray(found.y_prob, np.float64), clip)
    note = f"probabilities clipped at {clip:g} in {count} of {len(prob)} rows"
    return replace(found.with_probabilities(prob), note=", ".join(filter(None, [found.note, note])))


def clip_probabilities(p: F64, clip: float) -> tuple[F64, int]:
    """Clip probabilities, and count the rows in which that changes one.

    Sums of class vectors stay as they are, and no entry that is refused is hidden.
    """
    q = np.where((p >= LOWEST) & (p <= HIGHEST), np.clip(p, clip, 1 - clip), p)
    if p.ndim > 1 and p.shape[1] > 1:
        q = np.where(p >= 0.5, p, q)
        q *= p.sum(axis=1, keepdims=True) / q.sum(axis=1, keepdims=True)
    return q, int((q != p).reshape(len(p), -1).any(axis=1).sum())


def data_of(predictions: FilePredictions, options: Namespace) -> dict[str, Any]:
    """Return the arguments that every function takes: data, and how to read them."""
    order, positive = options.labels, options.pos_label
    if predictions.pairs:
        if options.setting not in ("auto", "binary"):
            raise InputError("setting", f"needs a class vector, and {PAIRS}", value=options.setting)
        for name in ("from_logits", "labels", "pos_label", "soft", "votes"):
            if getattr(options, name):
                raise InputError(name, f"needs probabilities of classes, and {PAIRS}")
    is_text = predictions.y_true.dtype.kind in "OUST"
    if order is not None:
        cells = chain(*csv.reader(io.StringIO(order, newline="")))
        order = [read_label("labels", cell, is_text) for cell in cells]
    if positive is not None:
        positive = read_label("pos_label", positive, is_text)
    return {
        "y_true": predictions.y_true,
        "y_prob": predictions.y_prob,
        "setting": options.setting,
        "labels": order,
        "pos_label": positive,
        "from_logits": predictions.from_logits,
        "sample_weight": predictions.weights,
        "soft": bool(options.soft),
        "votes": predictions.others.get("votes"),
    }


def read_label(option: str, text: str, is_text: bool) -> Any:
    """Read a label of the kind that the file has: a text, or a number."""
    text = text.strip()
    if is_text:
        return text
    try:
        value = ast.literal_eval(BOOLS.get(text, text))
    except (ValueError, SyntaxError):
        value = None
    if not isinstance(value, Real):
        raise InputError(option, "the labels of the file are numbers", value=text)
    return value


def class_numbers(data: dict[str, Any]) -> tuple[NDArray[Any], list[Any] | None]:
    """Return the labels of data as numbers of classes, and the labels in their order."""
    y_true, y_prob, *order = (data[x] for x in ("y_true", "y_prob", "labels", "pos_label"))
    return as_labels(y_true, np.asarray(y_prob), "y_prob", column_names(y_prob), *order)


def read_data(
    predictions: FilePredictions, options: Namespace, estimators: dict[str, Any], least: int = 0
) -> Call:
    """Check predictions and options, as a call with at least `least` replicates."""
    data = data_of(predictions, options)
    with predictions.located():
        call = read_call(
            "the command", data.pop("y_true"), {"y_prob": data.pop("y_prob")}, least, **data,
            n_jobs=-1, estimator=[*estimators.values()], n_resamples=options.resamples,
            confidence_level=options.confidence_level,
        )  # fmt: skip
        call = add_groups(call, predictions.others.get("groups"), predictions.y_prob)
    return replace(call, estimators=estimators)


def describe_data(call: Call, predictions: FilePredictions) -> dict[str, Any]:
    """Return the facts of a page on the rows of a file."""
    groups = "" if call.n_groups is None else f" in {call.n_groups} groups"
    facts = {"rows": f"{call.n}{groups}", "setting": question(call.setting, predictions.pairs)}
    return {**facts, **({"read as": predictions.note} if predictions.note else {})}


def score_range(predictions: FilePredictions) -> dict[str, Any]:
    """Return the range of scores as a field of estimators, if a class count is given.

    It is for files whose columns do not show the range.
    """
    return {} if predictions.classes is None else {"score_range": (1 / predictions.classes, 1.0)}


def estimators_of(predictions: FilePredictions, options: Namespace) -> dict[str, Any]:
    """Choose the errors of a report, with any that the options name.

    The errors have the bins and the range of the options, if they take them. Of a report that is
    not full there are the two that always come first, and those of the options.
    """
    names = [*(() if options.full is False else ERRORS), *options.estimators]
    return choose_errors(names, n_bins=options.n_bins, **score_range(predictions))
