"""Compile every kernel, one call after another, and print the costs of each.

One process with an empty folder of compiled kernels makes the calls that people begin with, and
then those of `fastece warmup`. Each signature counts where it is first compiled, and for the kinds
of arrays that it is there for. Times are processor seconds, and multiples of the time in which the
same process compiles a small function, so that they can be compared between machines.

    python scripts/evidence/compile_costs.py
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from statistics import median
from typing import NamedTuple

import numba
import numpy as np

# How often the small function is compiled; the median is the unit.
UNIT_ROUNDS = 9


class Signature(NamedTuple):
    """A kernel, the types of its arguments, and the processor seconds that its code took.

    The kernels that it calls have signatures of their own.
    """

    kernel: str
    types: str
    seconds: float


class Step(NamedTuple):
    """A heading of the table, and the calls under it."""

    title: str
    calls: list[Callable[[], object]]


class Clock(numba.core.event.Listener):
    """Note what numba compiles, and how long each signature takes."""

    def __init__(self) -> None:
        self.signatures: list[Signature] = []
        self.running: list[list[float]] = []

    def on_start(self, event: numba.core.event.Event) -> None:  # noqa: ARG002
        """Begin a signature, inside the one that calls it."""
        self.running.append([time.process_time(), 0.0])

    def on_end(self, event: numba.core.event.Event) -> None:
        """End a signature, and take its seconds off the one that calls it."""
        start, seconds_of_callees = self.running.pop()
        total = time.process_time() - start
        if self.running:
            self.running[-1][1] += total
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("fastece"):
            types = ", ".join(str(kind) for kind in event.data["args"])
            seconds = total - seconds_of_callees
            self.signatures.append(Signature(function.__name__, types, seconds))
        elif self.signatures and self.running:
            # Functions of numpy, as numba has them, belong to the kernel that calls them.
            self.running[-1][1] -= total - seconds_of_callees


def seconds_of_small_function() -> float:
    """Return the processor seconds that numba takes for a loop with one sum."""

    def total(values):  # type: ignore[no-untyped-def]
        result = 0.0
        for value in values:
            result += value
        return result

    rounds = []
    for _ in range(UNIT_ROUNDS):
        start = time.process_time()
        numba.njit("float64(float64[::1])")(total)
        rounds.append(time.process_time() - start)
    return median(rounds[1:])


def first_steps() -> Iterable[Step]:
    """Yield what people call first, in the order of the tour."""
    import fastece

    prob = np.random.default_rng(0).random(1000)
    pairs = ((prob > 0.4).astype(int), prob)
    rows = np.random.default_rng(1).dirichlet(np.ones(3), 1000)
    classes = (np.arange(1000) % 3, rows)
    few = {"n_resamples": 1, "rng": 0}
    for name, data in (("(n,)", pairs), ("(n, K)", classes)):
        yield Step(f"`ece` of {name}", [partial(fastece.ece, *data)])
        yield Step(
            f"`reliability_diagram` of {name}", [partial(fastece.reliability_diagram, *data)]
        )
        yield Step(f"`estimate` of {name}", [partial(fastece.estimate, *data, rng=0)])
        yield Step(f"`bootstrap` of {name}", [partial(fastece.bootstrap, *data, **few)])
        yield Step(
            f"`calibration_test` of {name}", [partial(fastece.calibration_test, *data, **few)]
        )
        yield Step(
            f"`calibration_report` of {name}", [partial(fastece.calibration_report, *data, rng=0)]
        )


def remaining_steps() -> Iterable[Step]:
    """Yield the calls of the warm-up, by the kind of their arrays."""
    from fastece.cli import warmup

    for shape in warmup.SETTINGS:
        kind = warmup.DataKind(shape, warmup.PLAIN, is_weighted=False)
        yield Step(
            f"every estimator, resampled, {len(shape)}-D", [*warmup.steps_of_resampling(kind)]
        )
    yield Step("fine grids", [*warmup.steps_of_fine_grids()])
    yield Step("many rows", [*warmup.steps_of_many_rows()])
    for shape in warmup.SETTINGS:
        for kinds in warmup.KINDS[shape]:
            for is_weighted in (False, True):
                kind = warmup.DataKind(shape, kinds, is_weighted)
                weighted = ", weighted" if is_weighted else ""
                title = f"streams, {kinds.prob} and {kinds.label}, {len(shape)}-D{weighted}"
                yield Step(title, [*warmup.steps_of_data(kind)])
    for shape in warmup.SETTINGS:
        for kinds in warmup.KINDS[shape]:
            kind = warmup.DataKind(shape, kinds, is_weighted=False)
            yield Step(
                f"logits and maps, {kinds.prob}, {len(shape)}-D", [*warmup.steps_of_logits(kind)]
            )


def matrix_of(signature: Signature) -> str:
    """Name the matrices that a signature reads: rows of the caller, or what was made of them."""
    two_dimensional = {"float32": "a float32 matrix", "float64": "a float64 matrix"}
    for number, name in two_dimensional.items():
        if f"array({number}, 2d, C)" in signature.types:
            return name
    return "no matrix"


def print_steps(unit: float, clock: Clock) -> None:
    """Make all calls, and print a row of the table for each step that compiles."""
    print("| call | signatures | small functions |")
    print("| --- | ---: | ---: |")
    for step in (*first_steps(), *remaining_steps()):
        n_before = len(clock.signatures)
        for call in step.calls:
            with warnings.catch_warnings(), suppress(TypeError, ValueError):
                warnings.simplefilter("ignore")
                call()
        compiled = clock.signatures[n_before:]
        if compiled:
            multiple = sum(signature.seconds for signature in compiled) / unit
            print(f"| {step.title} | {len(compiled)} | {multiple:.0f} |", flush=True)


def print_matrices(unit: float, signatures: list[Signature]) -> None:
    """Print what each kind of matrix adds to the compilation of everything."""
    seconds_of_matrix = defaultdict(list)
    for signature in signatures:
        seconds_of_matrix[matrix_of(signature)].append(signature.seconds)
    print("\n| reads | signatures | small functions |")
    print("| --- | ---: | ---: |")
    for kind, seconds in sorted(seconds_of_matrix.items()):
        print(f"| {kind} | {len(seconds)} | {sum(seconds) / unit:.0f} |")
    total = sum(signature.seconds for signature in signatures)
    print(f"| all | {len(signatures)} | {total / unit:.0f} |")


def main() -> None:
    """Compile everything in a new process with an empty folder, and print both tables."""
    if "FASTECE_COMPILE_COSTS" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            settings = {"FASTECE_CACHE_DIR": folder, "FASTECE_QUIET": "1"}
            env = {**os.environ, **settings, "FASTECE_COMPILE_COSTS": "1"}
            subprocess.run([sys.executable, __file__], check=True, env=env)
        return
    unit = seconds_of_small_function()
    clock = Clock()
    numba.core.event.register("numba:compile", clock)
    print(f"The small function takes {unit * 1000:.0f} ms of the processor.\n")
    print_steps(unit, clock)
    print_matrices(unit, clock.signatures)


if __name__ == "__main__":
    main()
