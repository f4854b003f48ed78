"""Measure other libraries beside `fastece.compat`, on one thread.

    python asv_benchmarks/peers.py [--rows 100 100000 1000000] [--json] [--write]

Both get the same arrays in one process. Each function is called under the names of its library, in
turn with the one of fastece. The table has the median time of both and the difference of their
values. Libraries that are not installed are named and left out. The last lines are calibration
errors in two lines of numpy and of packages for histograms, beside `fastece.ece`. `--write` writes
docs/evidence/results/peers.csv.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits
from writing import RESULTS, Table, save_table, write_seconds, write_table

import fastece
from benchmarks import baselines
from benchmarks.opponents import OPPONENTS, is_installed
from fastece.compat import (
    netcal,
    relplot,
    robustness_metrics,
    sklearn,
    torchmetrics,
    uncertainty_calibration,
)

N_CLASSES = 10
N_BINS = 15
# Concentration of the Dirichlet distribution of class vectors. Below 1, few entries are large.
CONCENTRATION = 0.3
# Slow functions are not called with more rows than this.
MAX_ROWS_OF_SLOW_FUNCTIONS = 10**5


class Data(NamedTuple):
    """The arguments of functions: class vectors, labels, and class 0 alone.

    Fields are named as short as in the calls below: class vectors (n, K), labels (n,), scores (n,)
    of class 0, and hits (n,), which are 1 where the label is 0.
    """

    p: Any
    y: Any
    s: Any
    h: Any


# A call of a function in a module, of another library or of `fastece.compat`, with some data.
Call = Callable[[Any, Data], Any]


class Peer(NamedTuple):
    """A function that a library and `fastece.compat` both have, and a call of it."""

    name: str
    call: Call
    max_rows: int = 10**7


class Library(NamedTuple):
    """The module of fastece that stands in for a library, and the functions to call."""

    stand_in: Any
    peers: list[Peer]


# Functions by the module of the library that has them.
LIBRARIES: dict[str, Library] = {
    "torchmetrics.functional.classification": Library(torchmetrics, [
        Peer(
            "multiclass_calibration_error",
            lambda lib, d: lib.multiclass_calibration_error(d.p, d.y, N_CLASSES, N_BINS),
        ),
        Peer(
            "binary_calibration_error",
            lambda lib, d: lib.binary_calibration_error(d.s, d.h, N_BINS),
        ),
    ]),
    "netcal.metrics": Library(netcal, [
        Peer("ECE, classes", lambda lib, d: lib.ECE(N_BINS).measure(d.p, d.y)),
        Peer("ECE, binary", lambda lib, d: lib.ECE(N_BINS).measure(d.s, d.h)),
    ]),
    "calibration": Library(uncertainty_calibration, [
        Peer("get_ece", lambda lib, d: lib.get_ece(d.p, d.y)),
        Peer("get_ece_em", lambda lib, d: lib.get_ece_em(d.p, d.y)),
        Peer(
            "get_calibration_error",
            lambda lib, d: lib.get_calibration_error(d.p, d.y),
            MAX_ROWS_OF_SLOW_FUNCTIONS,
        ),
    ]),
    "sklearn.calibration": Library(sklearn, [
        Peer(
            "calibration_curve",
            lambda lib, d: lib.calibration_curve(d.h, d.s, n_bins=N_BINS),
        ),
        Peer(
            "calibration_curve, quantile",
            lambda lib, d: lib.calibration_curve(d.h, d.s, n_bins=N_BINS, strategy="quantile"),
        ),
    ]),
    "relplot.metrics": Library(relplot, [
        Peer("binnedECE", lambda lib, d: lib.binnedECE(d.s, d.h)),
    ]),
    "uncertainty_metrics": Library(robustness_metrics, [
        Peer("ece", lambda lib, d: lib.ece(d.y, d.p)),
        Peer("sce", lambda lib, d: lib.sce(d.y, d.p)),
        Peer("ace", lambda lib, d: lib.ace(d.y, d.p), MAX_ROWS_OF_SLOW_FUNCTIONS),
    ]),
}  # fmt: skip


class Comparison(NamedTuple):
    """One line of the table; the JSON has the same fields."""

    library: str
    function: str
    rows: int
    dtype: str
    # Median seconds of the library and of fastece.
    theirs: float
    ours: float
    # Seconds of the library, divided by the seconds of fastece.
    ratio: float
    # The largest absolute difference of the values.
    difference: float


class MissingLibrary(NamedTuple):
    """A library that is not installed; the JSON has the same fields."""

    library: str
    missing: bool = True


def load_library(name: str) -> Any:
    """Import the module of a library, and return it, or None if it is not installed.

    From uncertainty_metrics only one file is loaded, as the package itself needs TensorFlow.
    """
    if find_spec(name.partition(".")[0]) is None:
        return None
    if name != "uncertainty_metrics":
        return import_module(name)
    (folder,) = find_spec(name).submodule_search_locations
    path = Path(folder) / "numpy" / "general_calibration_error.py"
    spec = spec_from_file_location("general_calibration_error", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_data(n: int, dtype: str, seed: int = 0) -> Data:
    """Draw n class vectors of a calibrated model, and labels from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(N_CLASSES, CONCENTRATION), n)
    y = (p.cumsum(1) > rng.random(n)[:, None]).argmax(1)
    p = p.astype(dtype)
    return Data(p, y, p[:, 0].copy(), (y == 0).astype(np.int64))


def convert_to_tensors(data: Data) -> Data:
    """Convert arrays to tensors, which torchmetrics takes."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    return Data(*map(torch.from_numpy, data))


def compare_calls(theirs: Callable[[], Any], ours: Callable[[], Any]) -> dict[str, float]:
    """Measure two calls that take turns, and compare their values; fields of a `Comparison`."""
    race = baselines.race(fast=ours, slow=theirs)
    return {
        "theirs": race.seconds * race.ratio,
        "ours": race.seconds,
        "ratio": race.ratio,
        "difference": float(np.abs(np.subtract(theirs(), ours())).max()),
    }


def measure_libraries(sizes: list[int]) -> Iterator[Comparison | MissingLibrary]:
    """Measure each function for each size and type, and yield the lines."""
    for name, library in LIBRARIES.items():
        module = load_library(name)
        if module is None:
            yield MissingLibrary(name)
            continue
        for n in sizes:
            for dtype in ("float32", "float64"):
                data = draw_data(n, dtype)
                if name.startswith("torchmetrics"):
                    data = convert_to_tensors(data)
                for peer in library.peers:
                    if n <= peer.max_rows:
                        theirs = partial(peer.call, module, data)
                        ours = partial(peer.call, library.stand_in, data)
                        yield Comparison(name, peer.name, n, dtype, **compare_calls(theirs, ours))


def measure_opponents(sizes: list[int]) -> Iterator[Comparison | MissingLibrary]:
    """Measure two lines of numpy and of packages for histograms, beside `fastece.ece`."""
    for name, opponent in OPPONENTS.items():
        if not is_installed(name):
            yield MissingLibrary(name)
            continue
        for n in sizes:
            data = draw_data(n, "float64")
            theirs = partial(opponent.value, data.h, data.s)
            ours = partial(fastece.ece, data.h, data.s, estimator=opponent.estimator)
            yield Comparison("two lines", name, n, "float64", **compare_calls(theirs, ours))


def make_table(lines: Iterable[Comparison | MissingLibrary]) -> Table:
    """Make a table of the comparisons, as texts."""
    head = ["function", "rows", "dtype", "theirs", "fastece", "ratio", "difference"]
    rows = [
        [
            f"`{line.library.partition('.')[0]}: {line.function}`",
            str(line.rows),
            line.dtype,
            write_seconds(line.theirs),
            write_seconds(line.ours),
            f"{line.ratio:.2g}",
            f"{line.difference:.1g}",
        ]
        for line in lines
        if isinstance(line, Comparison)
    ]
    return [head, *rows]


def main() -> None:
    """Print the table or a list as JSON, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 10**5, 10**6])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the file of results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = [*measure_libraries(options.rows), *measure_opponents(options.rows)]
    missing = [line.library for line in lines if isinstance(line, MissingLibrary)]
    if options.json:
        print(json.dumps([line._asdict() for line in lines], indent=1))
    elif options.write:
        save_table(RESULTS, "peers", make_table(lines))
    else:
        print(write_table(make_table(lines)))
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
