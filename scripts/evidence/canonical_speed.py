"""How long errors of all classes at once take, beside numpy and torch.

Class vectors have ten classes. Tables, in Markdown:

- single: one call on one thread, beside numpy with all pairs in one matrix (`asv_benchmarks`), and,
  where torch is installed, beside the formulas of Popordanoska, Sayer and Blaschko (2022) in its
  float32. All take turns, and the table has medians; in brackets, how many times as long as ours.
- large: one call on two threads in a process of its own, and its peak of memory beyond the input.
- replicates: many draws of the labels or the rows, on one thread and two.

Five minutes or so of two cores that do nothing else.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import fastece

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "asv_benchmarks"))
from benchmarks import baselines, pairs
from benchmarks.common import run_fresh

BANDWIDTHS = (0.001, 0.01, 0.1)
# Sums of densities are at least this, as published: where a bandwidth leaves few rows near, shares
# come out too small.
LEAST_DENSITY = 1e-10


class Call(NamedTuple):
    """A function of the package, and its options."""

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
# The second call has the kernels; Linux has the peak of a process itself.
FRESH = """
import time
import fastece
from benchmarks import baselines

def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line[:6] == "VmHWM:")

for n in (100, {rows}):
    y, p = baselines.class_vectors(n, {classes})
    before, begin = peak(), time.perf_counter()
    fastece.{call}
print(time.perf_counter() - begin, (peak() - before) / 1e6)
"""


def canonical_in_torch(y: Any, p: Any, bandwidth: float) -> float:
    """The canonical error of tensors, in the steps of the published code: each makes a matrix of
    its own, and no density is over the largest of its row."""
    import torch

    with torch.no_grad():
        alpha = p / bandwidth + 1
        log_factor = torch.lgamma(alpha.sum(dim=1)) - torch.lgamma(alpha).sum(dim=1)
        log_density = torch.log(p.clamp(min=pairs.FLOOR)) @ (alpha - 1).T + log_factor
        own = torch.diag(torch.finfo(p.dtype).min * torch.ones(len(p)))
        density = torch.exp(log_density + own)
        hits = density @ torch.nn.functional.one_hot(y, p.shape[1]).to(p.dtype)
        share = hits / density.sum(dim=1, keepdim=True).clamp(min=LEAST_DENSITY)
        return float((share - p).abs().sum(dim=1).mean())


def calls_of(n: int) -> Iterator[tuple[str, dict[str, Callable[[], float]]]]:
    """What is called, and the calls: ours, and those of others."""
    y, p = baselines.class_vectors(n, pairs.CLASSES)
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
    ours, theirs = partial(fastece.canonical_error, y, p), partial(pairs.canonical, y, p)
    yield "`canonical_error(y, p)`", {"fastece": ours, "numpy": partial(theirs, "likelihood")}
    ours = partial(fastece.kernel_calibration_error, y, p)
    yield "`kernel_calibration_error(y, p)`", {"fastece": ours, "numpy": partial(pairs.skce, y, p)}


def seconds_of(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Medians over rounds in which all take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - begin)
    return {name: median(times) for name, times in found.items()}


def single(options: argparse.Namespace) -> Iterator[list[str]]:
    """One call on one thread, beside others, and how far their values are from ours."""
    others = ("numpy", "torch")
    yield [f"{options.rows} rows, one thread", "fastece", *others, *(f"{x} is off" for x in others)]
    for name, calls in calls_of(options.rows):
        values = {who: call() for who, call in calls.items()}
        seconds = seconds_of(calls, options.rounds)
        ours = seconds["fastece"]
        yield [
            name,
            f"{ours:.3g} s",
            *(
                f"{seconds[x]:.3g} s ({seconds[x] / ours:.1f})" if x in calls else ""
                for x in others
            ),
            *(f"{values[x] - values['fastece']:.0e}" if x in calls else "" for x in others),
        ]


def large(options: argparse.Namespace) -> Iterator[list[str]]:
    """One call on two threads, and its memory."""
    yield [f"{options.large} rows, two threads", "seconds", "MB"]
    for call in LARGE:
        code = FRESH.format(rows=options.large, classes=pairs.CLASSES, call=call)
        seconds, megabytes = map(float, run_fresh(code).split())
        yield [f"`{call}`", f"{seconds:.3g}", f"{megabytes:.0f}"]


def replicates(options: argparse.Namespace) -> Iterator[list[str]]:
    """Many draws in one call."""
    yield [f"{options.few} rows", "one thread, s", "two threads, s"]
    for call in REPLICATES:
        function = partial(getattr(fastece, call.function), rng=0, **call.options)
        function(*baselines.class_vectors(100, pairs.CLASSES))  # has the kernels
        data = baselines.class_vectors(options.few, pairs.CLASSES)
        calls = {str(k): partial(function, *data, n_jobs=k) for k in (1, 2)}
        seconds = seconds_of(calls, min(3, options.rounds))
        yield [f"`{call}`", f"{seconds['1']:.3g}", f"{seconds['2']:.3g}"]


TABLES = {"single": single, "large": large, "replicates": replicates}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Speed of errors of all classes at once.")
    parser.add_argument("tables", nargs="*", default=[*TABLES], help=f"of {', '.join(TABLES)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--large", type=int, default=50_000)
    parser.add_argument("--few", type=int, default=2000)
    options = parser.parse_args(arguments)
    for name in options.tables:
        for i, cells in enumerate(TABLES[name](options)):
            print(f"| {' | '.join(cells)} |", flush=True)
            if i == 0:
                print(f"|{'---|' * len(cells)}", flush=True)
        print()


if __name__ == "__main__":
    main()
