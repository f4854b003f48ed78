"""Compare the density-based error with brute force, on random cases that are hard for a grid.

Scores are uniform, beta, concentrated at 0 and 1, multiples of 0.01, constant, tiny or in narrow
clusters. n is log-uniform from 1 to 100 000, the bandwidth from 1e-4 (beta kernels: 0.003) to 0.5,
or Silverman's; a third of the cases have weights. The oracle is ``tests/oracles/reference_kde.py``.

Writes ``kde_accuracy.csv``: the largest error of each kernel in units of the tolerance, ``1e-3
|exact| + 1e-6``. Prints the case of each. Exits with 1 if an error is above 1. Case i of a seed
does not depend on the other cases.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from results import new_parser, write_table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from fastece import ece
from helpers import kde_cases
from oracles import reference_kde


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


def main() -> None:
    """Compare, write the table, and exit with 1 if an error is beyond the tolerance."""
    parser = new_parser(__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=100_000, help="largest number of rows")
    options = parser.parse_args()
    errors_of: dict[str, list[tuple[float, str]]] = {name: [] for name in kde_cases.KERNELS}
    for number in range(options.cases):
        data, fields = case_of(options.seed, number, options.largest)
        value, exact, off = error_of(data, fields)
        weighted = "" if data[2] is None else ", weights"
        text = f"{number}: n = {len(data[1])}{weighted}, {fields}: {value!r}, exact {exact!r}"
        errors_of[fields["kernel"]].append((off, text))
    largest = {name: max(errors) for name, errors in errors_of.items()}
    rows = [[name, f"{len(errors_of[name])}", f"{off:.2f}"] for name, (off, _) in largest.items()]
    write_table(options.out, "kde_accuracy", ["kernel", "cases", "largest"], rows)
    for name, (_, text) in largest.items():
        print(f"{name}: {text}")
    if any(off > 1 for off, _ in largest.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
