"""Other libraries side by side with `fastece.compat`: one process, one thread, the same arrays.

python asv_benchmarks/peers.py [--rows 100 100000 1000000] [--json]

Each function is called in its own words, in turn with ours, and the table gives the median time of
both and the difference of the values. Libraries that are not installed are named and left out.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from fastece.compat import (
    netcal,
    relplot,
    robustness_metrics,
    sklearn,
    torchmetrics,
    uncertainty_calibration,
)

CLASSES, BINS = 10, 15
SECONDS = 2.0  # of each pair of functions, at least three rounds


class Rows(NamedTuple):
    """Class vectors and labels, and the scores and hits of class 0."""

    p: Any
    y: Any
    s: Any
    h: Any


# Of a library's module, or of ours, on some rows.
Call = Callable[[Any, Rows], Any]


class Peer(NamedTuple):
    """A call of a library's module or of ours: a drop-in takes the same. Slow ones are not called
    with more rows than `most`."""

    name: str
    call: Call
    most: int = 10**7


# Module of a library -> ours, and what is called.
PEERS: dict[str, tuple[Any, list[Peer]]] = {
    "torchmetrics.functional.classification": (torchmetrics, [
        Peer(
            "multiclass_calibration_error",
            lambda lib, r: lib.multiclass_calibration_error(r.p, r.y, CLASSES, BINS),
        ),
        Peer(
            "binary_calibration_error",
            lambda lib, r: lib.binary_calibration_error(r.s, r.h, BINS),
        ),
    ]),
    "netcal.metrics": (netcal, [
        Peer("ECE, classes", lambda lib, r: lib.ECE(BINS).measure(r.p, r.y)),
        Peer("ECE, binary", lambda lib, r: lib.ECE(BINS).measure(r.s, r.h)),
    ]),
    "calibration": (uncertainty_calibration, [
        Peer("get_ece", lambda lib, r: lib.get_ece(r.p, r.y)),
        Peer("get_ece_em", lambda lib, r: lib.get_ece_em(r.p, r.y)),
        Peer(
            "get_calibration_error", lambda lib, r: lib.get_calibration_error(r.p, r.y), 10**5
        ),
    ]),
    "sklearn.calibration": (sklearn, [
        Peer(
            "calibration_curve", lambda lib, r: lib.calibration_curve(r.h, r.s, n_bins=BINS)
        ),
        Peer(
            "calibration_curve, quantile",
            lambda lib, r: lib.calibration_curve(r.h, r.s, n_bins=BINS, strategy="quantile"),
        ),
    ]),
    "relplot.metrics": (relplot, [
        Peer("binnedECE", lambda lib, r: lib.binnedECE(r.s, r.h)),
    ]),
    "uncertainty_metrics": (robustness_metrics, [
        Peer("ece", lambda lib, r: lib.ece(r.y, r.p)),
        Peer("sce", lambda lib, r: lib.sce(r.y, r.p)),
        Peer("ace", lambda lib, r: lib.ace(r.y, r.p), 10**5),
    ]),
}  # fmt: skip


def load(library: str) -> Any:
    """The module, None if it is not installed. Of uncertainty_metrics one file: the package itself
    needs TensorFlow."""
    if find_spec(library.partition(".")[0]) is None:
        return None
    if library != "uncertainty_metrics":
        return import_module(library)
    (folder,) = find_spec(library).submodule_search_locations
    file = Path(folder) / "numpy" / "general_calibration_error.py"
    spec = spec_from_file_location("general_calibration_error", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_rows(n: int, dtype: str, seed: int = 0) -> Rows:
    """Class vectors of a model that is calibrated, with labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(CLASSES, 0.3), n)
    y = (p.cumsum(1) > rng.random(n)[:, None]).argmax(1)
    p = p.astype(dtype)
    return Rows(p, y, p[:, 0].copy(), (y == 0).astype(np.int64))


def as_tensors(rows: Rows) -> Rows:
    """The same rows as torchmetrics takes them."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    return Rows(*map(torch.from_numpy, rows))


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time of a call, and what it returns."""
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def compare(
    call: Callable[[Any, Rows], Any], module: Any, own: Any, rows: Rows
) -> dict[str, float]:
    """Median times of both in turn, after one call of each, and the difference of their values."""
    calls = (partial(call, module, rows), partial(call, own, rows))
    _, theirs = seconds_of(calls[0])
    _, ours = seconds_of(calls[1])
    times: list[tuple[float, float]] = []
    begin = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < SECONDS and len(times) < 500):
        times.append((seconds_of(calls[0])[0], seconds_of(calls[1])[0]))
    a, b = np.median(times, axis=0)
    difference = float(np.abs(np.subtract(theirs, ours)).max())
    return {"theirs": float(a), "ours": float(b), "ratio": float(a / b), "difference": difference}


def measure(sizes: list[int]) -> Iterator[dict[str, Any]]:
    """One line for each function, size and dtype; of a library that is not there, its name."""
    for library, (own, peers) in PEERS.items():
        module = load(library)
        if module is None:
            yield {"library": library, "missing": True}
            continue
        for n in sizes:
            for dtype in ("float32", "float64"):
                rows = make_rows(n, dtype)
                rows = as_tensors(rows) if library.startswith("torchmetrics") else rows
                for peer in peers:
                    if n <= peer.most:
                        found = compare(peer.call, module, own, rows)
                        about = {"library": library, "function": peer.name, "rows": n}
                        yield {**about, "dtype": dtype, **found}


def shown(seconds: float) -> str:
    """A time with three digits."""
    unit, scale = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3)
    return f"{seconds * scale:.3g} {unit}"


def print_table(lines: Iterator[dict[str, Any]]) -> None:
    """A line of a Markdown table for each, as they come; then the libraries that are missing."""
    missing = []
    print("| function | rows | dtype | theirs | fastece | ratio | difference |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for line in lines:
        if "missing" in line:
            missing.append(line["library"])
            continue
        name = f"{line['library'].partition('.')[0]}: {line['function']}"
        times = f"{shown(line['theirs'])} | {shown(line['ours'])} | {line['ratio']:.1f}"
        cells = f"`{name}` | {line['rows']} | {line['dtype']} | {times}"
        print(f"| {cells} | {line['difference']:.1g} |", flush=True)
    if missing:
        print(f"\nNot installed, and left out: {', '.join(missing)}")


def main() -> None:
    """Print the table, or a list as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 10**5, 10**6])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if options.json:
            print(json.dumps(list(measure(options.rows)), indent=1))
        else:
            print_table(measure(options.rows))


if __name__ == "__main__":
    main()
