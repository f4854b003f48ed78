"""Print what each step of a call costs.

    python asv_benchmarks/step_costs.py

Compiled kernels are timed while a call runs, and added up by the modules that they are in.
Whatever is left of the call's time is Python and numpy around them. All times are of the processor,
and medians over repetitions, so that other programs do no harm. The clocks themselves take about
0.5 us of a call. The script takes half a minute.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Any, NamedTuple

from machine import describe_machine
from numba.core.registry import CPUDispatcher
from writing import Table, write_count, write_seconds, write_table

import fastece
from benchmarks import baselines

# Rows of the problems.
SIZES = (100, 10_000, 1_000_000)
CALLS: dict[str, Callable[..., Any]] = {
    "`ece`": fastece.ece,
    "`ece_a`": partial(fastece.ece, estimator="ece_a"),
    "`ece_kde`": partial(fastece.ece, estimator="ece_kde"),
    "`estimate`": fastece.estimate,
    "`bootstrap`, 1000 replicates": partial(fastece.bootstrap, n_resamples=1000, rng=0),
}
# Columns of the table, and the modules of kernels that belong to each.
STEPS = {
    "check": ("reading",),
    "sort": ("quantiles", "selection"),
    # The same pass checks the rows of plain arrays.
    "check, bin, sum": ("plain", "binning", "moments", "errors", "isotonic"),
    "densities": ("density",),
    "curves": ("bayes", "pieces", "arithmetic"),
    "draw": ("resampling",),
    "replicates": ("replicates", "cells"),
}
STEP_OF_MODULE = {module: step for step, modules in STEPS.items() for module in modules}
AROUND = "around"
# Seconds for each call, and the fewest and the most repetitions.
SECONDS = 1.5
MIN_REPEATS = 5
MAX_REPEATS = 2000


class Costs(NamedTuple):
    """The seconds of a call, and the share of each step."""

    seconds: float
    shares: dict[str, float]


@contextmanager
def timed_kernels() -> Iterator[dict[str, float]]:
    """Time all kernels that Python calls, and yield the seconds by step, which grow.

    They are objects of one class of numba, whose calls are replaced.
    """
    seconds: dict[str, float] = defaultdict(float)
    call = CPUDispatcher.__call__

    def timed_call(kernel: Any, *args: Any, **options: Any) -> Any:
        start = thread_time()
        result = call(kernel, *args, **options)
        elapsed = thread_time() - start
        module = kernel.py_func.__module__.rpartition(".")[2]
        seconds[STEP_OF_MODULE.get(module, AROUND)] += elapsed
        return result

    CPUDispatcher.__call__ = timed_call
    try:
        yield seconds
    finally:
        del CPUDispatcher.__call__


def measure(call: Callable[[], Any], seconds_of_steps: dict[str, float]) -> Costs:
    """Repeat a call whose kernels are timed, and return medians."""
    totals = []
    shares = defaultdict(list)
    begin = perf_counter()
    while len(totals) < MIN_REPEATS or (
        len(totals) < MAX_REPEATS and perf_counter() - begin < SECONDS
    ):
        seconds_of_steps.clear()
        start = process_time()
        call()
        total = process_time() - start
        totals.append(total)
        for step in STEPS:
            shares[step].append(seconds_of_steps.get(step, 0.0) / total)
    return Costs(median(totals), {step: median(values) for step, values in shares.items()})


def write_share(share: float) -> str:
    """Write a share in percent, and nothing where it rounds to 0."""
    return f"{100 * share:.0f} %" if share >= 0.005 else ""


def measure_steps() -> Table:
    """Measure all calls, which compile first."""
    calls = {
        (name, n): partial(call, *baselines.draw_binary("uniform", n))
        for name, call in CALLS.items()
        for n in SIZES
    }
    for call in calls.values():
        call()
    lines = []
    with timed_kernels() as seconds_of_steps:
        for (name, n), call in calls.items():
            costs = measure(call, seconds_of_steps)
            shares = [*costs.shares.values(), 1 - sum(costs.shares.values())]
            numbers = [write_count(n), write_seconds(costs.seconds), *map(write_share, shares)]
            lines.append([name, *numbers])
    return [["call", "rows", "time", *STEPS, AROUND], *lines]


def main() -> None:
    """Print the table, and the machine."""
    found = describe_machine()
    print(f"{write_table(measure_steps())}\n\n{write_table([[*found], [*found.values()]])}")


if __name__ == "__main__":
    main()
