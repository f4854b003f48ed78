"""Measure first calls, which compile kernels, and print a table.

Each call runs in a new process, whose folder of compiled kernels is empty. Its unit is a *small
function*: the processor seconds in which numba compiles a loop with one sum, in a process just
before. Calls and units take turns, and the least time of each counts, so that multiples do not
depend much on the machine or on what else it does. Several checkouts take turns as well: then each
has a line for each call, and the last column is its multiple over that of the first. With
``--shipped`` each checkout is measured as a wheel that carries kernels of its machine's plainest
level, which takes minutes.

    python scripts/evidence/first_calls.py [OPTIONS] [CHECKOUT ...]

To see what a change does to the wait of a new installation, name the checkout before it and the one
after it, and calls by parts of their names:

    python scripts/evidence/first_calls.py --call '`ece`' --call warmup BEFORE AFTER
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from results import write_table

HERE = Path(__file__).parents[2]
DATA = HERE / "fastece" / "data" / "digits_neural_network.npz"
HEADS = ["first call, compiled", "seconds of a processor", "small functions", "kernels compiled"]
HEADS_OF_SEVERAL = ["checkout", "over the first checkout"]
SMALL_FUNCTION = "import compile_costs; print(compile_costs.seconds_of_small_function())"
COMMAND = "from fastece.cli import main; main({})"
BINARY = (
    "import numpy as np, fastece; p = np.random.default_rng(0).random(1000); "
    "fastece.{}((p > 0.4).astype(int), p)"
)
CALLS = {
    "`ece`": BINARY.format("ece"),
    "`estimate`": BINARY.format("estimate"),
    "`bootstrap`": BINARY.format("bootstrap"),
    "`calibration_report`": BINARY.format("calibration_report"),
    "`fastece demo`": COMMAND.format(["demo"]),
    "`fastece report FILE`": COMMAND.format(["report", str(DATA)]),
    "`fastece demo --full`": COMMAND.format(["demo", "--full"]),
    "`fastece warmup`": COMMAND.format(["warmup"]),
}
# Runs a call and prints, as its last line, how long the compiler worked on each kernel, without the
# kernels that it calls.
CHILD = """
import json, sys, time
from collections import Counter
from numba.core import event
stack, seconds = [], Counter()
class Clock(event.Listener):
    def on_start(self, event):
        stack.append([time.perf_counter(), 0.0])
    def on_end(self, event):
        begin, seconds_of_callees = stack.pop()
        total = time.perf_counter() - begin
        if stack:
            stack[-1][1] += total
        function = event.data["dispatcher"].py_func
        is_ours = function.__module__.startswith("fastece")
        name = function.__name__ if is_ours else "numba's own"
        seconds[name] += total - seconds_of_callees
event.register("numba:compile", Clock())
exec(sys.argv[1])
print()
print(json.dumps(seconds))
"""


# Prints the level of processors that needs the fewest features.
PLAINEST_LEVEL = "from fastece.kernels.cache import LEVELS; print(LEVELS[-1].name)"


class FirstCall(NamedTuple):
    """How long a first call took, and the kernels that it compiled.

    `unit` is the processor seconds of the small function.
    """

    seconds: float
    processor_seconds: float
    unit: float
    n_kernels: int
    seconds_of_kernel: dict[str, float]

    @property
    def small_functions(self) -> float:
        """The processor seconds as a multiple of the small function."""
        return self.processor_seconds / self.unit


def least(rounds: list[FirstCall], unit: float) -> FirstCall:
    """Return the last of several rounds of a call, with the least of each time and this unit."""
    return rounds[-1]._replace(
        seconds=min(call.seconds for call in rounds),
        processor_seconds=min(call.processor_seconds for call in rounds),
        unit=unit,
    )


def ship_kernels(checkout: Path, folder: Path) -> Path:
    """Copy the package of a checkout into a folder, with kernels as a wheel has them.

    Raises
    ------
    FileNotFoundError, subprocess.CalledProcessError
        If this version of the package cannot ship kernels.
    """
    shutil.copytree(checkout / "fastece", folder / "fastece")
    build = checkout / "scripts" / "release" / "build_kernels.py"
    if not build.exists():
        raise FileNotFoundError(build)
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    python = partial(
        subprocess.run, check=True, capture_output=True, text=True, env=environment, cwd=folder
    )
    level = python([sys.executable, "-c", PLAINEST_LEVEL]).stdout.strip()
    python([sys.executable, build, folder / "fastece" / "kernels" / "shipped", level])
    return folder


def measure(call: str, checkout: Path) -> FirstCall:
    """Run a call in a new process, and return its times and its kernels."""
    unit = seconds_of_small_function()
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"FASTECE_QUIET": "1", "FASTECE_CACHE_DIR": folder, "PYTHONPATH": str(checkout)}
        start = os.times()
        done = subprocess.run(
            [sys.executable, "-c", CHILD, call],
            capture_output=True, text=True, check=True, env={**os.environ, **quiet}, cwd=folder,
        )  # fmt: skip
        seconds = json.loads(done.stdout.splitlines()[-1])
        count = len([*Path(folder).rglob("*.nbc")])
        end = os.times()
        return FirstCall(
            seconds=end.elapsed - start.elapsed,
            processor_seconds=sum(end[2:4]) - sum(start[2:4]),  # user and system, of children
            unit=unit,
            n_kernels=count,
            seconds_of_kernel=seconds,
        )


def seconds_of_small_function() -> float:
    """Measure the processor seconds of the small function in a new process."""
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FUNCTION],
        capture_output=True, text=True, check=True, cwd=folder,
    )  # fmt: skip
    return float(done.stdout)


def main() -> None:
    """Measure all calls and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--call", action="append", help="only calls whose name contains this")
    parser.add_argument("--kernels", action="store_true", help="also print the slowest kernels")
    parser.add_argument("--shipped", action="store_true", help="measure wheels with kernels")
    parser.add_argument("--out", type=Path, help="folder for speed_first_calls.csv")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        checkouts = [checkout.resolve() for checkout in options.checkouts]
        if options.shipped:
            folders = [Path(tempfile.mkdtemp(dir=parent)) for _ in checkouts]
            checkouts = [*map(ship_kernels, checkouts, folders)]
        heads = HEADS + HEADS_OF_SEVERAL * (len(checkouts) > 1)
        if options.out:
            write_table(options.out, "speed_first_calls", heads, table_rows(checkouts, options))
        else:
            print(*heads, sep=", ")
            for row in table_rows(checkouts, options):
                print(*row, sep=", ", flush=True)


def table_rows(checkouts: list[Path], options: argparse.Namespace) -> Iterator[list[str]]:
    """Measure the calls in the checkouts, which take turns, and yield a line for each of both."""
    for name, call in CALLS.items():
        if options.call and not any(part in name for part in options.call):
            continue
        rounds = [[measure(call, x) for x in checkouts] for _ in range(options.rounds)]
        unit = min(of_call.unit for turns in rounds for of_call in turns)
        of_checkouts = [least([*turns], unit) for turns in zip(*rounds, strict=True)]
        for number, of_call in enumerate(of_checkouts, start=1):
            cells = [
                name,
                f"{of_call.processor_seconds:.1f}",
                f"{of_call.small_functions:.0f}",
                str(of_call.n_kernels),
            ]
            if len(checkouts) > 1:
                ratio = of_call.small_functions / of_checkouts[0].small_functions
                cells += [str(number), f"{ratio:.2f}x"]
            yield cells
            if options.kernels:
                slowest = sorted(of_call.seconds_of_kernel.items(), key=lambda pair: -pair[1])[:12]
                print("  ", ", ".join(f"{kernel} {x:.2f}" for kernel, x in slowest), flush=True)


if __name__ == "__main__":
    main()
