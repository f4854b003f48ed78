"""Calls on a few made-up rows, from which a second process learns which kernels to compile."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from fastece.data.rehearsal import compile_backwards
from fastece.data.second_process import compile_beside
from fastece.estimators.table import ESTIMATORS

# The kind of float to which kinds that no kernel reads are converted.
F64_KIND = "<f8"
# Rows of the small data, and classes where there are classes.
N_ROWS = 60
N_CLASSES = 3
# Rows of each group.
ROWS_PER_GROUP = 2
# One replicate, as kernels draw a block of them at any rate.
N_RESAMPLES = 1
# Options that have an entry for each row.
COLUMNS = ("sample_weight", "counts", "groups")
# Options that depend on the caller's labels and rows, or on no kernel.
LEFT_OUT = (
    "labels", "pos_label", "ignore_label", "class_axis", "size", "n_resamples", "n_jobs", "rng",
)  # fmt: skip
# Types of options that mean the same for the small data, and are written as they are read.
SIMPLE_TYPES = (str, int, float, bool, type(None))
Options = Sequence[tuple[str, Any]]


def compile_call_beside(
    work: Callable[[int, str, Options], object], y_prob: Any, options: dict[str, Any]
) -> AbstractContextManager[None]:
    """Compile kernels in a second process, while the block makes a call.

    Parameters
    ----------
    work : callable
        Calls `compile_call` with the function that was called.
    y_prob : array_like
        The caller's probabilities.
    options : dict
        The other arguments of the call by name, as far as kernels may depend on them.
    """
    if y_prob is None:
        return nullcontext()
    return compile_beside(work, partial(describe_call, y_prob, options))


def describe_call(y_prob: Any, options: dict[str, Any]) -> tuple[int, str, Options]:
    """Describe a call by the arguments of `compile_call` that follow the function."""
    shape: Any = getattr(y_prob, "shape", None)
    is_matrix = isinstance(shape, tuple) and len(shape) > 1
    n_columns = min(shape[1], N_CLASSES) if is_matrix else 1
    return n_columns, kind_of_float(y_prob), simplify_options(options)


def kind_of_float(y_prob: Any) -> str:
    """Return the kind of float in which kernels read probabilities of any container."""
    kind = getattr(y_prob, "dtype", None)
    return kind.str if isinstance(kind, np.dtype) and kind.kind == "f" else F64_KIND


def simplify_options(options: dict[str, Any]) -> Options:
    """Describe options by numbers and names, as far as kernels depend on them."""
    simple: dict[str, Any] = {}
    for name, value in options.items():
        if name in COLUMNS:
            simple[name] = value is not None
        elif name == "estimator":
            simple[name] = name_estimators(value)
        elif type(value) in SIMPLE_TYPES and name not in LEFT_OUT:
            simple[name] = value
    return tuple(simple.items())


def name_estimators(estimator: Any) -> Any:
    """Name estimators by the first of the table that has their class."""
    if isinstance(estimator, list | tuple):
        return tuple(map(name_estimators, estimator))
    if isinstance(estimator, str):
        return estimator
    return next((name for name, row in ESTIMATORS.items() if type(row) is type(estimator)), "")


def compile_call(
    function: Callable[..., object], n_columns: int, kind: str, options: Options
) -> None:
    """Compile the kernels of a call on a few rows, the last one first.

    Parameters
    ----------
    function : callable
        The function that was called.
    n_columns : int
        Number of columns of probabilities; 1 for probabilities of one event.
    kind : str
        Kind of float of the probabilities, as numpy writes it.
    options : pairs of str and value
        As `simplify_options` returns them.
    """
    arguments = {**make_data(n_columns, kind), **dict(options), "n_resamples": N_RESAMPLES}
    for name in COLUMNS:
        is_given = arguments.pop(name, False)
        if is_given:
            arguments[name] = 1 + np.arange(N_ROWS) // ROWS_PER_GROUP
    if isinstance(arguments.get("setting"), int):
        arguments["setting"] = 1
    compile_backwards(partial(function, rng=0, **arguments))


def make_data(n_columns: int, kind: str) -> dict[str, Any]:
    """Make labels, and probabilities of classes or of one event, in steps of 1/64."""
    score = 0.5 + np.arange(N_ROWS) % 33 / 64
    prob = score
    if n_columns > 1:
        prob = np.stack([score, 1 - score, 0 * score], axis=1)[:, :n_columns]
    return {"y_true": np.arange(N_ROWS) % 2, "y_prob": prob.astype(kind)}
