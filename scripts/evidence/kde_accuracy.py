"""Compare the density-based error with brute force, on random cases that are hard for a grid.

Scores are uniform, beta, concentrated at 0 and 1, multiples of 0.01, constant, tiny or in narrow
clusters. n is log-uniform from 1 to 100 000, the bandwidth from 1e-4 (beta kernels: 0.003) to 0.5,
or Silverman's; a third of the cases have weights. The oracle is ``tests/oracles/reference_kde.py``.

Prints the largest error of each kernel in units of the tolerance, ``1e-3 |exact| + 1e-6``, and its
case. Exits with 1 if an error is above 1. Case i of a seed does not depend on the other cases.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from fastece import ece
from helpers import kde_cases
from oracles import reference_kde

HEAD = f"{'kernel':14}{'cases':>7}{'largest':>10}{'above 1':>9}  case"


def case_of(seed: int, number: int, largest: int) -> tuple[Any, dict[str, Any]]:
    """Return hits, scores and weights of one case, and the fields of the estimator."""
    kernel = kde_cases.KERNELS[number % len(kde_cases.KERNELS)]
    return kde_cases.random_case(np.random.default_rng([seed, number]), kernel, largest)


def error_of(data: Any, fields: dict[str, Any]) -> tuple[float, float, float]:
    """Return the package's value, the oracle's, and their difference in tolerances."""
    hits, scores, weights = data
    exact = reference_kde.kde_error((scores, hits, 0.0, 1.0), weights, **fields)
    value = float(ece(hits, scores, estimator="ece_kde", sample_weight=weights, **fields))
    off = abs(value - exact) / (1e-3 * abs(exact) + 1e-6)
    return value, exact, math.inf if math.isnan(off) else off


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="KDE errors against brute force.")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=100_000, help="largest number of rows")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    errors_of: dict[str, list[tuple[float, str]]] = {name: [] for name in kde_cases.KERNELS}
    for number in range(options.cases):
        data, fields = case_of(options.seed, number, options.largest)
        value, exact, off = error_of(data, fields)
        weighted = "" if data[2] is None else ", weights"
        text = f"{number}: n = {len(data[1])}{weighted}, {fields}: {value!r}, exact {exact!r}"
        errors_of[fields["kernel"]].append((off, text))
        if off > 1:
            print(f"above 1 ({off:.3g}): {text}", flush=True)
    print(HEAD)
    for name, errors in errors_of.items():
        if errors:
            largest, text = max(errors)
            above = sum(off > 1 for off, _ in errors)
            print(f"{name:14}{len(errors):7}{largest:10.3g}{above:9}  {text}")
    print(f"seed {options.seed}, {time.perf_counter() - start:.0f} s")
    return int(any(off > 1 for errors in errors_of.values() for off, _ in errors))


if __name__ == "__main__":
    sys.exit(main())
