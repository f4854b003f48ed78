"""Compilation of all kernels, for every kind of input of a public call.

There is no list of kernels. Public functions are called on small data of every kind, with every row
of the table of estimators, and compile the kernels that they need; `tests/helpers/public_calls.py`
finds out whether something is missing.
"""

import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import fastece
from fastece.cli.arguments import (
    Parser,
    add_forms,
)
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.display.documents import Document
from fastece.estimators.binned.sums import MIN_ROWS
from fastece.estimators.table import ESTIMATORS
from fastece.recalibration import METHODS

DESCRIPTION = """Compile every kernel for every kind of input, and keep them in a folder of
FASTECE_CACHE_DIR or of the user's cache folder."""
EXAMPLES = """
  FASTECE_CACHE_DIR=/opt/fastece fastece warmup
"""
# Rows of the small data; three classes where there are classes.
N_ROWS = 40
N_CLASSES = 3
Step = Callable[[], object]


class NumberKinds(NamedTuple):
    """Kinds of probabilities and of labels that are read without conversion."""

    prob: str
    label: str


class DataKind(NamedTuple):
    """The shape of probabilities, the kinds of numbers, and whether there are weights."""

    shape: tuple[int, ...]
    kinds: NumberKinds
    is_weighted: bool


PLAIN = NumberKinds("f8", "i8")
# The kinds that kernels read, by the shape of the probabilities: all others are converted.
KINDS = {
    (N_ROWS,): (PLAIN, NumberKinds("f8", "u1")),
    (N_ROWS, N_CLASSES): (PLAIN, NumberKinds("f4", "i8")),
}
# Settings that read rows in a way of their own, by the shape of the probabilities.
SETTINGS: dict[tuple[int, ...], tuple[Any, ...]] = {
    (N_ROWS,): ("binary", "confidence", 0),
    (N_ROWS, N_CLASSES): ("confidence", "classwise", 1, "auto"),
}
# Functions that resample, with options that make them draw in each of their ways. An estimator may
# refuse some of them. Groups and weights are drawn by the same kernels.
RESAMPLING: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (fastece.bootstrap, {"method": "bca"}),
    (fastece.bootstrap, {"method": "bca", "size": 1}),
    (fastece.calibration_test, {}),
    (fastece.estimate, {}),
)


def make_parser() -> Parser:
    """Make the parser of ``fastece warmup``."""
    parser = Parser("warmup", DESCRIPTION, "fastece warmup [options]", EXAMPLES)
    add_forms(parser)
    return parser


def run(options: Namespace | None, progress: Progress) -> Page:  # noqa: ARG001
    """Run ``fastece warmup``: compile every kernel for every kind of input.

    Kernels that came with the package are compiled too: for this very processor they are faster.

    `progress` gets the number of signatures so far, whenever it grows. An OSError, as soon as it is
    clear, means that nothing is kept.
    """
    from fastece.kernels.cache import USER

    start = time.perf_counter()
    n_cached = len(kept_kernels())
    names = compile_all(steps(), progress)
    seconds = time.perf_counter() - start
    n_kernels = len(set(names))
    text = (
        f"{len(names)} signatures of {n_kernels} kernels in {seconds:.1f} s ({n_cached} were there "
        f"already), kept in {USER.path}"
    )
    values = {
        "seconds": seconds,
        "directory": str(USER.path),
        "kernels": n_kernels,
        "signatures": len(names),
        "cached": n_cached,
    }
    return Page(Document(text), values)


def compile_all(calls: Iterable[Step], progress: Progress) -> list[str]:
    """Do each step, some of which are refused, and list the kernels that are kept.

    Kernels that came with the package are left alone, so that native ones are compiled.
    """
    from fastece.kernels.cache import SHIPPED

    SHIPPED.path = None
    names = kept_kernels()
    for step in calls:
        with suppress(TypeError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            step()
        n_before = len(names)
        names = kept_kernels()
        if len(names) > n_before:
            progress(f"{len(names)} signatures")
    return names


def kept_kernels() -> list[str]:
    """List the kernel of each signature that is kept on disk.

    Those that other kernels call are among them, whichever process compiled them.

    Raises
    ------
    OSError
        If no kernels can be kept.
    """
    from fastece.kernels.cache import USER

    if USER.problem:
        raise OSError(USER.problem)
    return USER.kernels()


# --- steps ----------------------------------------------------------------------------------------


def steps() -> Iterator[Step]:
    """Yield calls that together use every kernel with every kind of argument."""
    for shape in SETTINGS:
        for kinds, is_weighted in product(KINDS[shape], (False, True)):
            yield from steps_of_data(DataKind(shape, kinds, is_weighted))
        for kinds in KINDS[shape]:
            yield from steps_of_logits(DataKind(shape, kinds, is_weighted=False))
    yield from steps_of_many_rows()
    yield bootstrap_groups
    yield monitor_rows
    for shape in SETTINGS:
        yield from steps_of_resampling(DataKind(shape, PLAIN, is_weighted=False))


def steps_of_data(kind: DataKind) -> Iterator[Step]:
    """Yield calls for labels and probabilities of a kind, of streams and of rows."""
    data = make_data(kind)
    # Without any option, kernels of their own have the value of plain arrays.
    for name in ("ece", "ece_a", "brier_score"):
        yield partial(fastece.ece, data["y_true"], data["y_prob"], estimator=name)
    n_classes = None if len(kind.shape) == 1 else kind.shape[1]
    for setting in ("classwise", "auto"):
        state = fastece.Accumulator(n_classes, setting=setting, n_cells=90, n_replicates=1, seed=0)
        yield partial(state.update, **data)
    yield partial(fastece.estimate, state)
    for setting, estimator in product(SETTINGS[kind.shape], ESTIMATORS):
        for function in (fastece.ece, fastece.reliability_diagram):
            yield partial(function, **data, setting=setting, estimator=estimator)


def steps_of_logits(kind: DataKind) -> Iterator[Step]:
    """Yield calls for logits of a kind, and fits of all methods of recalibration."""
    data = make_data(kind)
    logits = {**data, "y_prob": 2 - 4 * data["y_prob"], "from_logits": True}
    for setting in SETTINGS[kind.shape]:
        yield partial(fastece.ece, **logits, setting=setting)
    labels = np.arange(N_ROWS) // 2 % 2  # no score separates them
    for method in METHODS.values():
        yield partial(method().fit, data["y_prob"], labels)


def steps_of_many_rows() -> Iterator[Step]:
    """Yield calls for so many rows that kernels sum them in chunks or in fine cells."""
    names = [name for name, estimator in ESTIMATORS.items() if not estimator.reads_pairs]
    for shape, name in product(SETTINGS, names):
        data = make_data(DataKind((MIN_ROWS, *shape[1:]), PLAIN, is_weighted=False))
        setting = "binary" if len(shape) == 1 else "classwise"
        yield partial(fastece.ece, **data, setting=setting, estimator=name)


def bootstrap_groups() -> None:
    """Resample groups of plain rows, which have kernels of their own."""
    data = make_data(DataKind((N_ROWS,), PLAIN, is_weighted=False))
    fastece.bootstrap(**data, by=np.arange(N_ROWS) // 2, n_resamples=1, rng=0)


def monitor_rows() -> None:
    """Bet against predictions on enough rows for a first look at the bets."""
    data = make_data(DataKind((N_ROWS,), PLAIN, is_weighted=False))
    fastece.Monitor().update(data["y_true"], data["y_prob"])


def steps_of_resampling(kind: DataKind) -> Iterator[Step]:
    """Yield calls that resample rows, which are read before."""
    data = make_data(kind)
    for setting, estimator in product(SETTINGS[kind.shape][:2], ESTIMATORS):
        call = {**data, "setting": setting, "estimator": estimator, "rng": 0, "n_resamples": 1}
        for function, options in RESAMPLING:
            yield partial(function, **call, **options)


def make_data(kind: DataKind) -> dict[str, Any]:
    """Make data of a kind.

    Probabilities go from 1/2 to 1 in steps of 1/64, so that every kind of float holds them and
    their sums.
    """
    n = kind.shape[0]
    score = 0.5 + np.arange(n) % 33 / 64
    has_classes = len(kind.shape) == 2
    prob = np.stack([score, 1 - score, 0 * score], axis=1) if has_classes else score
    return {
        "y_true": (np.arange(n) % 2).astype(kind.kinds.label),
        "y_prob": prob.astype(kind.kinds.prob),
        "sample_weight": np.linspace(1.0, 2.0, n) if kind.is_weighted else None,
    }
