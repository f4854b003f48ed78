"""Compilation of all kernels, for every kind of input of a public call.

There is no list of kernels. Public functions are called on small data of every kind, with every row
of the table of estimators, and compile what they need; `tests/helpers/public_calls.py` finds out
whether something is missing.
"""

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import fastece
from fastece.cli.output import Page, Progress, kept, run_beside
from fastece.display.documents import Document
from fastece.estimators.binned.float_grid import MIN_ROWS
from fastece.estimators.table import ESTIMATORS
from fastece.kernels import cache
from fastece.recalibration import METHODS
from fastece.report.inputs import TEST

FEW = 40
GROUPS = np.arange(FEW) // 2
DRAWS: dict[str, Any] = {"n_replicates": 1, "seed": 0}
# Kinds of numbers that are read as they are; others are converted to one of them.
KINDS = tuple(product(("f8", "f4"), ("i8", "u1")))
# Settings that read rows in a way of their own, by the shape of the probabilities.
SETTINGS = {(FEW,): ("binary", "confidence", 0), (FEW, 3): ("confidence", "classwise", 1, "auto")}
# Functions that resample, with options that make them draw in each of their ways. What an estimator
# has no part in it refuses.
RESAMPLING: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (fastece.bootstrap, {"method": "bca"}),
    (fastece.bootstrap, {"method": "bca", "size": 1}),
    (fastece.bootstrap, {"groups": GROUPS}),
    (fastece.calibration_test, {}),
    (fastece.calibration_test, {"groups": GROUPS}),
    (fastece.estimate, {}),
)


def run(options: Namespace | None, progress: Progress) -> Page:  # noqa: ARG001
    """Run ``fastece warmup``: compile every kernel for every kind of input.

    `progress` gets the number of signatures so far, whenever it grows. An OSError, as soon as it is
    clear, means that nothing is kept.
    """
    start, cached = time.perf_counter(), len(kept())
    # The other process begins at the end: each reads the kernels that the other has kept.
    with run_beside("compile_all(reversed([*steps()]), print)"):
        names = compile_all(steps(), progress)
    seconds, kernels = time.perf_counter() - start, len(set(names))
    text = (
        f"{len(names)} signatures of {kernels} kernels in {seconds:.1f} s ({cached} were there "
        f"already), kept in {cache.CACHE_DIRECTORY}"
    )
    values = {
        "seconds": seconds, "directory": cache.CACHE_DIRECTORY, "kernels": kernels,
        "signatures": len(names), "cached": cached,
    }  # fmt: skip
    return Page(Document(text), values)


def compile_page(ndim: int, kind: str) -> None:
    """Compile the kernels behind the end of the first page of a report."""
    data = arguments((FEW, 3)[:ndim], kind, "i8", False)
    for estimator in (TEST, "skce")[:ndim]:
        fastece.calibration_test(**data, estimator=estimator, n_resamples=1)


def compile_all(calls: Iterable[Callable[[], object]], progress: Progress) -> list[str]:
    """Do each step, some of which are refused, and list the kernels that are kept."""
    names = kept()
    for step in calls:
        with suppress(TypeError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            step()
        count, names = len(names), kept()
        if len(names) > count:
            progress(f"{len(names)} signatures")
    return names


def steps() -> Iterator[Callable[[], object]]:
    """Yield calls that together use every kernel with every kind of argument."""
    # However data are read: labels and probabilities of every kind, weighted or not.
    for shape, kind, is_weighted in product(SETTINGS, KINDS, (False, True)):
        data = arguments(shape, *kind, is_weighted)
        n_classes = None if len(shape) == 1 else shape[1]
        for state_setting, draws in product(("classwise", "auto"), ({}, DRAWS)):
            state = fastece.Accumulator(n_classes, setting=state_setting, n_cells=90, **draws)
            yield partial(state.update, **data)
        yield partial(fastece.estimate, state)
        for setting, estimator in product(SETTINGS[shape], ESTIMATORS):
            for function in (fastece.ece, fastece.reliability_diagram):
                yield partial(function, **data, setting=setting, estimator=estimator)
    for shape, (prob, _) in product(SETTINGS, KINDS[::2]):
        data = arguments(shape, prob, "i8", False)
        logits = {**data, "y_prob": 2 - 4 * data["y_prob"], "from_logits": True}
        for setting in SETTINGS[shape]:
            yield partial(fastece.ece, **logits, setting=setting)
        for method in METHODS.values():
            yield partial(method().fit, data["y_prob"], GROUPS % 2)
    # So many rows that they are sorted by a kernel, or not at all, which weights do not change.
    single = [name for name, estimator in ESTIMATORS.items() if not estimator.reads_pairs]
    for shape, kind, name in product(SETTINGS, KINDS, single):
        data = arguments((MIN_ROWS, *shape[1:]), *kind, False)
        setting = SETTINGS[shape][len(shape) - 1]
        yield partial(fastece.ece, **data, setting=setting, estimator=name)
    # What resamples gets rows that have been read.
    for shape, is_weighted in product(SETTINGS, (False, True)):
        data = arguments(shape, *KINDS[0], is_weighted)
        for setting, estimator in product(SETTINGS[shape][:2], ESTIMATORS):
            options = {**data, "setting": setting, "estimator": estimator, "rng": 0}
            for function, more in RESAMPLING:
                yield partial(function, **options, n_resamples=1, **more)


def arguments(shape: tuple[int, ...], prob: str, label: str, is_weighted: bool) -> dict[str, Any]:
    """Make data of a shape and of given kinds.

    Probabilities go from 1/2 to 1 in steps of 1/64, so that every kind of float holds them and
    their sums.
    """
    n = shape[0]
    score = 0.5 + np.arange(n) % 33 / 64
    rows = np.stack([score, 1 - score, 0 * score], 1) if len(shape) == 2 else score
    return {
        "y_true": (np.arange(n) % 2).astype(label),
        "y_prob": rows.astype(prob),
        "sample_weight": np.linspace(1.0, 2.0, n) if is_weighted else None,
    }
