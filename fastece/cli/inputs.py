"""Files and options as the arguments of the functions that measure."""

import ast
import csv
from argparse import Namespace
from importlib.resources import as_file, files
from numbers import Real
from typing import Any

from fastece.inputs.files import Predictions, read_predictions

__all__ = ["data_of", "read_demo", "read_file", "score_range"]

DEMO = "digits_neural_network.npz"
BOOLS = {"true": "True", "false": "False"}
PAIRS = "the file has labels and confidences of predicted classes, which is a binary problem"


def read_file(path: str, options: Namespace) -> Predictions:
    """Read a file as the options say."""
    return read_predictions(
        path, y_true=options.y_true, y_prob=options.y_prob, classes=options.classes
    )


def read_demo() -> Predictions:
    """Read the predictions that ship with fastece."""
    with as_file(files("fastece").joinpath("data", DEMO)) as path:
        return read_predictions(path)


def data_of(predictions: Predictions, options: Namespace) -> dict[str, Any]:
    """Arguments that every function takes: the data, how they are to be read, and the threads."""
    order, positive = getattr(options, "labels", None), getattr(options, "pos_label", None)
    if predictions.pairs:
        if options.setting not in ("auto", "binary"):
            raise ValueError(f"--setting: {options.setting!r} needs a class vector; {PAIRS}")
        if options.from_logits or order is not None or positive is not None:
            raise ValueError(f"--from-logits, --labels, --pos-label: need probabilities; {PAIRS}")
    is_text = predictions.y_true.dtype.kind in "OUST"
    if order is not None:
        order = [read_label("--labels", cell, is_text) for cell in next(csv.reader([order]), [])]
    if positive is not None:
        positive = read_label("--pos-label", positive, is_text)
    return {
        "y_true": predictions.y_true,
        "y_prob": predictions.y_prob,
        "setting": options.setting,
        "labels": order,
        "pos_label": positive,
        "from_logits": options.from_logits,
        "n_jobs": -1,
    }


def read_label(option: str, text: str, is_text: bool) -> Any:
    """A label like those of the file: a text, or a number."""
    text = text.strip()
    if is_text:
        return text
    try:
        value = ast.literal_eval(BOOLS.get(text, text))
    except (ValueError, SyntaxError):
        value = None
    if not isinstance(value, Real):
        raise ValueError(f"{option}: the labels of the file are numbers, got {text!r}")
    return value


def score_range(predictions: Predictions) -> dict[str, Any]:
    """The range of the scores as a field of estimators, where the file does not tell it."""
    return {} if predictions.classes is None else {"score_range": (1 / predictions.classes, 1.0)}
