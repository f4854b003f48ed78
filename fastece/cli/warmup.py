"""Compile ahead: every kernel, for every kind of input that a public call may have.

There is no list of kernels. The public functions are called on small data of every kind, and
compile what they need; `tests/helpers/public_calls.py` says whether something is missing.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import fastece
from fastece.data.reading import read_problems
from fastece.data.sample import MANY_ROWS as SORTED_ROWS
from fastece.document.result import Record
from fastece.estimators.base import Counts, Rows
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.binned.single import MANY_ROWS
from fastece.estimators.density.estimator import KDE
from fastece.estimators.table import ESTIMATORS
from fastece.kernels import _jit, cache
from fastece.recalibration.scaling import TemperatureScaling
from fastece.streams.accumulator import Accumulator

FEW = 40
# Kinds of numbers that are read as they are; others are converted to one of them.
PROBABILITIES = ("f8", "f4")
LABELS = ("i8", "u1")
# Settings that read rows in a way of their own, by the number of dimensions.
SETTINGS = {1: ("binary", "confidence", 0), 2: ("confidence", "classwise", 1)}
# Besides those of the table.
VARIANTS = (
    KDE(bandwidth=0.1), KDE(bandwidth=5.0), KDE(kernel="beta"), KDE(kernel="beta", bandwidth=0.1),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WarmUp(Record):
    """How long it took, and the folder of the compiled kernels, None if they are in this process
    alone; how many there are, for how many sets of argument types, and how many of these sets were
    in the folder already."""

    seconds: float
    directory: str | None
    kernels: int
    signatures: int
    cached: int

    def __str__(self) -> str:
        kept = f"kept in {self.directory}" if self.directory else "not kept"
        return (
            f"{self.signatures} signatures of {self.kernels} kernels in {self.seconds:.1f} s "
            f"({self.cached} were there already), {kept}"
        )


def warm_up(*, must_keep: bool = False, progress: Callable[[str], Any] | None = None) -> WarmUp:
    """Compile every kernel for every kind of input, and keep the result on disk; `progress` is told
    the number of signatures so far, whenever it grows.

    If nothing is kept, it serves this process; with `must_keep` that is an OSError, as soon as it
    is clear.
    """
    start, before, seen = time.perf_counter(), len(names()), 0
    check: Callable[[], None] = check_kept if must_keep else lambda: None
    check()
    for step in steps():
        step()
        check()
        count = len(names())
        if progress is not None and count > seen:
            progress(f"{count} signatures")
        seen = count
    seconds, found = time.perf_counter() - start, names()
    return WarmUp(seconds, kept_in(), kernels=len(set(found)), signatures=len(found), cached=before)


def check_kept() -> None:
    """An error, if what is compiled is not kept."""
    if cache.FAILURES:
        raise OSError(cache.FAILURES[-1])
    if cache.CACHE_DIRECTORY is None:
        raise OSError("NUMBA_DISABLE_JIT is set, so nothing is compiled")


def kept_in() -> str | None:
    """The folder of the compiled kernels, if they are kept."""
    return None if cache.FAILURES else cache.CACHE_DIRECTORY


def names() -> list[str]:
    """The kernel of each signature in the folder, or in this process where there is none.

    Of kernels that call others, only they are read from the folder, so this process need not know
    all that are there.
    """
    folder = kept_in()
    if folder is not None:
        return [path.name.partition("-")[0] for path in Path(folder).glob("*.nbc")]
    return [kernel.__qualname__ for kernel in _jit.KERNELS for _ in kernel.signatures]


def steps() -> Iterator[Callable[[], object]]:
    """Calls that together use every kernel with every kind of argument."""
    estimators = (*ESTIMATORS.values(), *VARIANTS)
    kinds = list(product(PROBABILITIES, LABELS))
    # However data are read: labels and probabilities of every kind, weighted or not.
    for shape, kind, weighted in product(((FEW,), (FEW, 3)), kinds, (False, True)):
        for setting in SETTINGS[len(shape)]:
            for estimator in ESTIMATORS.values():
                yield partial(measure, estimator, arguments(shape, *kind, setting, weighted))
    for shape, prob in product(((FEW,), (FEW, 3)), PROBABILITIES):
        for setting in SETTINGS[len(shape)]:
            options = arguments(shape, prob, "i8", setting, False, from_logits=True)
            options["y_prob"] = 2 - 4 * options["y_prob"]  # as probabilities, they warn
            yield partial(fastece.ece, **options)
    # So many rows that equal-mass bins are found without a sort; of weights that knows nothing.
    for shape, kind in product(((MANY_ROWS,), (MANY_ROWS, 3)), kinds):
        setting = SETTINGS[len(shape)][len(shape) - 1]
        options = arguments(shape, *kind, setting, False)
        for name in ("ece_a", "ece_ac"):
            yield partial(fastece.ece, **options, estimator=name)
    # So many rows that a kernel sorts them.
    yield partial(fastece.ece, **arguments((SORTED_ROWS,), "f8", "i8", 0, False), estimator="mmce")
    for prob in PROBABILITIES:
        yield partial(recalibrate, arguments((FEW, 3), prob, "i8", None, False))
    for shape, kind, weighted in product(((FEW,), (FEW, 3)), kinds, (False, True)):
        yield partial(stream, arguments(shape, *kind, "auto", weighted))
    # What resamples gets rows that have been read.
    for shape, weighted in product(((FEW,), (FEW, 3)), (False, True)):
        for setting, estimator in product(SETTINGS[len(shape)][:2], estimators):
            options = arguments(shape, "f8", "i8", setting, weighted)
            yield partial(evaluate, estimator, options)
            yield partial(resample, estimator, options)


def arguments(
    shape: tuple[int, ...], prob: str, label: str, setting: Any, weighted: bool, **options: Any
) -> dict[str, Any]:
    """Arguments of the public functions, for probabilities of this shape and these kinds: from 1/2
    to 1 in steps of 1/64, so that every kind of float holds them and their sums."""
    n = shape[0]
    score = 0.5 + np.arange(n) % 33 / 64
    rows = np.stack([score, 1 - score, 0 * score], 1) if len(shape) == 2 else score
    return {
        "y_true": (np.arange(n) % 2).astype(label),
        "y_prob": rows.astype(prob),
        "setting": setting,
        "sample_weight": np.linspace(1.0, 2.0, n) if weighted else None,
        **options,
    }


def measure(estimator: Any, options: dict[str, Any]) -> None:
    """The public functions."""
    fastece.ece(**options, estimator=estimator)
    if isinstance(estimator, Binned):
        fastece.reliability_diagram(**options, estimator=estimator)


def recalibrate(options: dict[str, Any]) -> None:
    """The map that has a kernel of its own, on labels that have a best temperature."""
    TemperatureScaling().fit(options["y_prob"][:, :2], np.arange(FEW) % 4 == 1)


def stream(options: dict[str, Any]) -> None:
    """A batch of a stream."""
    shape, weight = options["y_prob"].shape, options["sample_weight"]
    state = Accumulator(shape[1] if len(shape) == 2 else None, n_cells=90, n_replicates=1, seed=0)
    state.update(options["y_true"], options["y_prob"], weight).estimate()


def resample(estimator: Any, options: dict[str, Any]) -> None:
    """The functions that resample, with draws of all rows, of so few that they are listed, and of
    groups."""
    shared = {**options, "estimator": estimator, "n_resamples": 1, "rng": 0}
    for size in (None, 1):
        fastece.bootstrap(**shared, method="bca", size=size)
    groups = np.arange(len(options["y_true"])) // 2
    fastece.bootstrap(**shared, groups=groups)
    if isinstance(estimator, Binned) and not estimator.debias:
        fastece.calibration_test(**shared, groups=groups)
    if estimator.is_calibration_error:
        fastece.calibration_test(**shared)
        fastece.estimate(**shared)
    prob = shared.pop("y_prob")
    fastece.compare(**shared, y_prob_a=prob, y_prob_b=prob)


def evaluate(estimator: Any, options: dict[str, Any]) -> None:
    """The protocol, as one may use it who resamples the rows."""
    sample = read_problems(**options).sample(0)
    sample = sample.sorted() if estimator.needs_sorted else sample
    plan = estimator.prepare(sample, sample.n)
    for dtype in (np.uint8, np.int64):
        estimator.evaluate(plan, np.ones(sample.n, dtype))
    estimator.values(plan, Counts(np.ones((1, sample.n, 32), np.uint8)))
    if Rows in estimator.native:
        estimator.values(plan, Rows(np.zeros((1, 2), np.int32)))
