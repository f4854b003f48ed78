"""Compile ahead: every kernel, for every kind of input that a public call may have.

There is no list of kernels. The public functions are called over the tables of settings and
estimators, on small data of every kind, and compile what they need.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fastece.binned.estimator import Binned
from fastece.binned.single import MANY_ROWS
from fastece.estimators import ESTIMATORS
from fastece.kernels import _jit, cache
from fastece.problems.settings import SETTINGS, find_setting, read_problems
from fastece.reliability.diagram import reliability_diagram
from fastece.resampling.bootstrap import bootstrap, compare
from fastece.resampling.calibration_test import calibration_test
from fastece.resampling.intervals import METHODS
from fastece.scores import ece

__all__ = ["WarmUp", "warm_up"]

FEW = 40
# Kinds of numbers that are read as they are, and one more of each that is converted first.
PROBABILITIES = ("f8", "f4", "f2")
LABELS = ("i8", "u1", "?", "i4")
# What to try of parameters that are numbers; of those that are names, every name.
NUMBERS = {"norm": (2.0, math.inf), "threshold": (0.1,)}


@dataclass(frozen=True)
class WarmUp:
    """What has been compiled, and where it is kept.

    Attributes
    ----------
    seconds : float
        How long it took.
    directory : str or None
        Folder of the compiled kernels; None if they are in this process alone.
    kernels : int
        Number of kernels.
    signatures : int
        Number of sets of argument types that they are compiled for.
    cached : int
        How many of these were in the folder already.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return asdict(self)


def warm_up(*, must_keep: bool = False, progress: Callable[[str], Any] | None = None) -> WarmUp:
    """Compile every kernel for every kind of input, and keep the result on disk.

    Parameters
    ----------
    must_keep : bool
        Whether it is an error if the compiled kernels cannot be kept; else they serve this process.
    progress : callable, optional
        Told the number of signatures so far, whenever it grows.

    Returns
    -------
    WarmUp

    Raises
    ------
    OSError
        With `must_keep`, as soon as it is clear that nothing is kept.
    """
    start, before = time.perf_counter(), misses()
    check: Callable[[], None] = check_kept if must_keep else lambda: None
    check()
    seen = 0
    for step in steps():
        step()
        check()
        count = sum(len(kernel.signatures) for kernel in _jit.KERNELS)
        if progress is not None and count > seen:
            progress(f"{count} signatures")
        seen = count
    directory = None if cache.FAILURES else cache.CACHE_DIRECTORY
    names = kept_names(directory) if directory else compiled_names()
    return WarmUp(
        seconds=time.perf_counter() - start,
        directory=directory,
        kernels=len(set(names)),
        signatures=len(names),
        cached=len(names) - (misses() - before),
    )


def check_kept() -> None:
    """An error, if what is compiled is not kept."""
    if cache.FAILURES:
        raise OSError(cache.FAILURES[-1])
    if cache.CACHE_DIRECTORY is None:
        raise OSError("NUMBA_DISABLE_JIT is set, so nothing is compiled")


def misses() -> int:
    """How many signatures this process has compiled."""
    return sum(kernel.stats.cache_misses.total() for kernel in _jit.KERNELS)


def kept_names(directory: str) -> list[str]:
    """The kernel of each signature in the folder: of kernels that call others, only they are read
    from there, so this process need not know all."""
    return [path.name.partition("-")[0] for path in Path(directory).glob("*.nbc")]


def compiled_names() -> list[str]:
    """The kernel of each signature in this process."""
    return [kernel.__qualname__ for kernel in _jit.KERNELS for _ in kernel.signatures]


def steps() -> Iterator[Callable[[], object]]:
    """Calls that together use every kernel with every kind of argument."""
    # However data are read, for the estimators as they are.
    kinds = list(product(PROBABILITIES, LABELS))
    usual = list(product(PROBABILITIES[:2], LABELS[:3]))
    for options in chain(
        inputs((FEW,), kinds, "C", (False, True)),
        inputs((FEW, 2), kinds, "CF", (False, True)),
        inputs((FEW, 200), usual),
    ):
        for estimator in ESTIMATORS.values():
            yield partial(measure, estimator, options)
    # Estimators in all their forms, on data that are read as they are.
    every = [variant for estimator in ESTIMATORS.values() for variant in variants(estimator)]
    for options in chain(inputs((FEW,), usual), inputs((FEW, 3), usual)):
        for estimator in every:
            yield partial(measure, estimator, options)
    # What resamples gets rows that have been read: of them, one kind for each shape.
    for options in chain(inputs((FEW,), [("f8", "i8")]), inputs((FEW, 3), [("f8", "i8")])):
        for estimator in every:
            yield partial(evaluate, estimator, options)
        for estimator in ESTIMATORS.values():
            yield partial(resample, estimator, options)
    # So many rows that equal-mass bins are found without a sort; of weights that knows nothing.
    for options in chain(inputs((MANY_ROWS,), usual), inputs((MANY_ROWS, 3), usual)):
        for estimator in ESTIMATORS.values():
            if options["sample_weight"] is None:
                yield partial(ece, **options, estimator=estimator)


def measure(estimator: Any, options: dict[str, Any]) -> None:
    """The public functions."""
    ece(**options, estimator=estimator)
    if isinstance(estimator, Binned):
        reliability_diagram(**options, estimator=estimator)


def resample(estimator: Any, options: dict[str, Any]) -> None:
    """The functions that resample, with draws of all rows and of so few that they are listed."""
    shared = {**options, "estimator": estimator, "n_resamples": 1, "rng": 0}
    for method, size in product(METHODS, (None, 1)):
        bootstrap(**shared, method=method, size=size)
    calibration_test(**shared)
    prob = shared.pop("y_prob")
    compare(**shared, y_prob_a=prob, y_prob_b=prob)


def evaluate(estimator: Any, options: dict[str, Any]) -> None:
    """The protocol, as one may use it who resamples the rows."""
    sample = read_problems(**options).sample(0)
    sample = sample.sorted() if getattr(estimator, "needs_sorted", True) else sample
    plan = estimator.prepare(sample, sample.n)
    for dtype in (np.uint8, np.int64):
        estimator.evaluate(plan, np.ones(sample.n, dtype))
    if hasattr(estimator, "block"):
        estimator.block(plan, np.ones((sample.n, 32), np.uint8))
    if hasattr(estimator, "subsets"):
        estimator.subsets(plan, np.zeros((1, 2), np.int32))


def variants(estimator: Any) -> Iterator[Any]:
    """The estimator, and with one field changed, in every way that its type or `NUMBERS` names."""
    yield estimator
    if not is_dataclass(estimator) or isinstance(estimator, type):
        return
    hints = get_type_hints(type(estimator))
    for field in fields(estimator):
        for value in (*names(hints[field.name]), *NUMBERS.get(field.name, ())):
            if value != getattr(estimator, field.name):
                with suppress(ValueError):  # not with the other fields
                    yield replace(estimator, **{field.name: value})


def names(hint: Any) -> Iterator[Any]:
    """Every value that the `Literal` parts of an annotation name."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    else:
        for part in get_args(hint):
            yield from names(part)


def inputs(
    shape: tuple[int, ...], kinds: Sequence[tuple[str, str]], layouts: str = "C",
    logits: tuple[bool, ...] = (False,),
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Arguments of the public functions, for probabilities of this shape and these kinds."""
    n = shape[0]
    for (prob, label), layout, setting, weight, from_logits in product(
        kinds, layouts, settings(shape), (None, np.linspace(1.0, 2.0, n)), logits
    ):
        yield {
            "y_true": (np.arange(n) % 2).astype(label),
            "y_prob": np.array(probabilities(shape), prob, order=layout),  # type: ignore[call-overload]
            "setting": setting,
            "sample_weight": weight,
            "from_logits": from_logits,
        }


def probabilities(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Scores from 1/2 to 1 in steps of 1/64: every kind of float holds them and their sums."""
    score = 0.5 + np.arange(shape[0]) % 33 / 64
    if len(shape) == 1:
        return score
    prob = np.zeros(shape)
    prob[:, 0], prob[:, 1] = score, 1 - score
    return prob


def settings(shape: tuple[int, ...]) -> Iterator[Any]:
    """Every setting that takes probabilities of this shape."""
    for setting in [*SETTINGS, 0]:
        with suppress(ValueError):
            find_setting(setting, shape)
            yield setting
