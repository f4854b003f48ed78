"""The machine: its name, its versions, and whether it is quiet enough to publish times.

Two signs show that something else wants the processor: rounds of one short call that differ, and
processor time of other programs, or of other machines on the same processor.
"""

import os
import platform
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

import numpy as np

import fastece
from benchmarks import baselines

# Rounds of one look, of a millisecond each.
N_ROUNDS = 800
# Scores of the call that is measured: numpy's two lines take a few microseconds for them.
N_SCORES = 100
# The ninth decile of the rounds over the least: 1.05 to 1.18 on a quiet machine, and 5 to 8 where
# other programs use one and a half of two cores.
MAX_SPREAD = 1.25
# Processors that others use: up to 0.06 on a quiet machine, whose clock counts hundredths of a
# second.
MAX_LOAD = 0.1
SECONDS_BETWEEN_LOOKS = 5.0

STATISTICS = Path("/proc/stat")
# Columns of the first line of the statistics: user, nice, system, irq, softirq and steal, which is
# what other machines took. Columns 4 and 5 are idle, and guests after column 8 are users as well.
BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)


class NoisyMachineError(Exception):
    """Something else wants the processor, so that times would not be those of the calls."""


class Noise(NamedTuple):
    """What one look at the machine shows.

    `spread` is the ninth decile of the rounds of one call over the least of them, and `load` the
    number of processors that others use.
    """

    spread: float
    load: float

    def complaint(self) -> str:
        """Say what is wrong, and nothing about a quiet machine."""
        if self.load > MAX_LOAD:
            return f"other programs use {self.load:.2f} processors, and {MAX_LOAD} are allowed"
        if self.spread > MAX_SPREAD:
            return (
                f"one round in ten of the same call takes {self.spread:.2f} times as long as the "
                f"fastest, and {MAX_SPREAD} are allowed"
            )
        return ""


class Moment(NamedTuple):
    """The clock, and the seconds of all processors that others have used so far."""

    clock: float
    others: float


def now() -> Moment:
    """Read the clock and what others have used.

    Where the system does not tell, others count as idle, and the rounds alone are judged.
    """
    if not STATISTICS.exists():
        return Moment(perf_counter(), 0.0)
    columns = STATISTICS.read_text(encoding="ascii").splitlines()[0].split()
    busy = sum(int(columns[i]) for i in BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK")
    own = sum(os.times()[:4])
    return Moment(perf_counter(), busy - own)


def load_since(start: Moment) -> float:
    """Return the number of processors that others have used since a moment."""
    end = now()
    return (end.others - start.others) / (end.clock - start.clock)


def spread_of(rounds: Sequence[float]) -> float:
    """Return the ninth decile of the times of rounds over the least of them."""
    return float(np.quantile(rounds, 0.9) / min(rounds))


def look() -> Noise:
    """Measure for about a second how quiet the machine is."""
    call = partial(baselines.equal_width_error, *baselines.draw_binary("uniform", N_SCORES))
    start = now()
    repeats = baselines.count_repeats(call)
    rounds = [baselines.measure_seconds(call, repeats) for _ in range(N_ROUNDS)]
    return Noise(spread_of(rounds), load_since(start))


def wait_until_quiet(seconds: float) -> float:
    """Wait until the machine is quiet, and return what is left of the seconds.

    A line on stderr says what the machine does meanwhile.

    Raises
    ------
    NoisyMachineError
        If the machine is not quiet before the seconds are over.
    """
    start = perf_counter()
    noise = look()
    while complaint := noise.complaint():
        left = seconds - (perf_counter() - start)
        if left <= 0:
            raise NoisyMachineError(complaint)
        print(f"waiting for a quiet machine, {left:.0f} s more: {complaint}", file=sys.stderr)
        sleep(min(left, SECONDS_BETWEEN_LOOKS))
        noise = look()
    return max(0.0, seconds - (perf_counter() - start))


def name_processor() -> str:
    """Name the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def describe_machine(packages: Sequence[str] = ("numpy", "numba")) -> dict[str, str]:
    """Return the versions of fastece, Python and packages, and the hardware, by name."""
    return {
        "fastece": fastece.__version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in packages},
        "processor": name_processor(),
        "cores": str(os.cpu_count()),
        "threads used": "1",
    }
