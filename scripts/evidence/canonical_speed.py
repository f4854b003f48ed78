"""How long errors of whole class vectors take, beside numpy and torch.

Class vectors have ten classes. Writes ``canonical_*.csv``:

- single: one call on one thread, beside numpy with all pairs in one matrix (`asv_benchmarks`), and,
  where torch is installed, beside the formulas of Popordanoska, Sayer and Blaschko (2022) in its
  float32. All take turns, and the table has medians and, in brackets, their ratios to our time.
- large: one call on two threads in a process of its own, and its peak of memory beyond the input.
- replicates: many draws of the labels or the rows, on one thread and two.

Takes about five minutes on two idle cores.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from results import new_parser, write_table

import fastece

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_benchmarks"))
from benchmarks import baselines, pairs
from benchmarks.common import run_fresh

BANDWIDTHS = (0.001, 0.01, 0.1)
# The published code raises sums of densities to this: shares come out too small where few rows lie
# within a bandwidth.
MIN_DENSITY = 1e-10


class Call(NamedTuple):
    """A public function and its options."""

    function: str
    options: dict[str, Any]

    def __str__(self) -> str:
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"{self.function}(y, p{options})"


LARGE = [
    Call("canonical_error", {"bandwidth": 0.01, "n_jobs": 2}),
    Call("canonical_error", {"n_jobs": 2}),
    Call("kernel_calibration_error", {"n_jobs": 2}),
]
REPLICATES = [
    Call("bootstrap", {"estimator": "canonical", "n_resamples": 1000}),
    Call("bootstrap", {"estimator": "skce", "n_resamples": 1000}),
    Call("calibration_test", {"estimator": "canonical", "n_resamples": 999}),
    Call("calibration_test", {"estimator": "skce", "n_resamples": 999}),
    Call("estimate", {"estimator": "canonical"}),
    Call("estimate", {"estimator": "skce"}),
]
# The first call loads the kernels, and the second is measured. Linux records the peak of memory.
FRESH = """
import time
import fastece
from benchmarks import baselines

def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line[:6] == "VmHWM:")

for n in (100, {rows}):
    y, p = baselines.draw_class_vectors(n, {classes})
    before, begin = peak(), time.perf_counter()
    fastece.{call}
print(time.perf_counter() - begin, (peak() - before) / 1e6)
"""


def canonical_in_torch(y: Any, p: Any, bandwidth: float) -> float:
    """Return the canonical error of tensors, in the steps of the published code.

    Each step makes a new matrix, and densities are not divided by the largest of their row.
    """
    import torch

    with torch.no_grad():
        alpha = p / bandwidth + 1
        log_factor = torch.lgamma(alpha.sum(dim=1)) - torch.lgamma(alpha).sum(dim=1)
        log_density = torch.log(p.clamp(min=pairs.MIN_PROBABILITY)) @ (alpha - 1).T + log_factor
        without_itself = torch.diag(torch.finfo(p.dtype).min * torch.ones(len(p)))
        density = torch.exp(log_density + without_itself)
        hits = density @ torch.nn.functional.one_hot(y, p.shape[1]).to(p.dtype)
        share = hits / density.sum(dim=1, keepdim=True).clamp(min=MIN_DENSITY)
        return float((share - p).abs().sum(dim=1).mean())


def calls_of(n: int) -> Iterator[tuple[str, dict[str, Callable[[], float]]]]:
    """Yield the text of each call of ours with the implementations that take turns."""
    y, p = baselines.draw_class_vectors(n, baselines.N_CLASSES)
    tensors = None
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        tensors = torch.from_numpy(y), torch.from_numpy(p).float()
    for h in BANDWIDTHS:
        calls = {
            "fastece": partial(fastece.canonical_error, y, p, bandwidth=h),
            "numpy": partial(pairs.canonical, y, p, h),
        }
        if tensors:
            calls["torch"] = partial(canonical_in_torch, *tensors, h)
        yield f"`canonical_error(y, p, bandwidth={h})`", calls
    yield (
        "`canonical_error(y, p)`",
        {
            "fastece": partial(fastece.canonical_error, y, p),
            "numpy": partial(pairs.canonical, y, p, "likelihood"),
        },
    )
    yield (
        "`kernel_calibration_error(y, p)`",
        {
            "fastece": partial(fastece.kernel_calibration_error, y, p),
            "numpy": partial(pairs.skce, y, p),
        },
    )


def seconds_of(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median time of each call, over rounds in which all take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: median(times_of_call) for name, times_of_call in times.items()}


def single(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the lines for one thread: times, and how far other values are from ours."""
    others = ("numpy", "torch")
    yield [f"{options.rows} rows, one thread", "fastece", *others, *(f"{x} is off" for x in others)]
    for name, calls in calls_of(options.rows):
        values = {who: call() for who, call in calls.items()}
        seconds = seconds_of(calls, options.rounds)
        ours = seconds["fastece"]
        times = [f"{ours:.3g} s"]
        differences = []
        for other in others:
            if other in calls:
                times.append(f"{seconds[other]:.3g} s ({seconds[other] / ours:.1f})")
                differences.append(f"{values[other] - values['fastece']:.0e}")
            else:
                times.append("")
                differences.append("")
        yield [name, *times, *differences]


def large(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the lines for one large call on two threads: seconds and peak of memory."""
    yield [f"{options.large} rows, two threads", "seconds", "MB"]
    for call in LARGE:
        code = FRESH.format(rows=options.large, classes=baselines.N_CLASSES, call=call)
        seconds, megabytes = map(float, run_fresh(code).split())
        yield [f"`{call}`", f"{seconds:.3g}", f"{megabytes:.0f}"]


def replicates(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the lines for calls that resample, on one thread and two."""
    yield [f"{options.few} rows", "one thread, s", "two threads, s"]
    for call in REPLICATES:
        function = partial(getattr(fastece, call.function), rng=0, **call.options)
        function(*baselines.draw_class_vectors(100, baselines.N_CLASSES))  # loads the kernels
        data = baselines.draw_class_vectors(options.few, baselines.N_CLASSES)
        calls = {str(k): partial(function, *data, n_jobs=k) for k in (1, 2)}
        seconds = seconds_of(calls, min(3, options.rounds))
        yield [f"`{call}`", f"{seconds['1']:.3g}", f"{seconds['2']:.3g}"]


TABLES = {"single": single, "large": large, "replicates": replicates}


def main() -> None:
    """Write the tables."""
    parser = new_parser(__doc__)
    parser.add_argument("tables", nargs="*", default=[*TABLES], help=f"of {', '.join(TABLES)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--large", type=int, default=50_000)
    parser.add_argument("--few", type=int, default=2000)
    options = parser.parse_args()
    for name in options.tables:
        head, *rows = TABLES[name](options)
        write_table(options.out, f"canonical_{name}", head, rows)


if __name__ == "__main__":
    main()
