"""Errors of estimators on a benchmark that others have published.

The benchmark is the synthetic binary one of "A variational estimator of L_p calibration errors"
(2026): scores are Beta(0.5, 0.5), and a map of the score gives the probability of an outcome of 1.
The true error is the mean distance of map and score.

Writes ``published_benchmark.csv``: mean absolute errors, times 1000, of each estimator, and of the
value of ``estimate`` times the probability that the model is not calibrated. Every sample has its
own seed.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from results import new_parser, write_table

from fastece import ece, estimate

SIZES = (200, 800, 3000, 10000)
SEED = 20261125
SAMPLES = 1000
NAMES = ("ece", "ece_debiased", "ece_sweep", "smooth_ece", "ece_kde", "ece_bayes")
TIMES = "ece_bayes times P(not calibrated)"
HEAD = ("rows", "map", "true error", *NAMES, TIMES)


def sigmoid(z: Any) -> Any:
    """Return the probabilities with given log odds."""
    return 1 / (1 + np.exp(-z))


def logit(p: Any) -> Any:
    """Return log odds."""
    return np.log(p) - np.log1p(-p)


def wavy(p: Any) -> Any:
    """Return a map with waves of two lengths around the diagonal."""
    first = np.sin(10 * np.pi * p) * 2 / (10 * np.pi)
    return p + first + np.sin(20 * (np.pi - np.pi / 3) * p) / (10 * np.pi)


MAPS = {
    "calibrated": lambda p: p,
    "nearly calibrated": lambda p: np.clip(p + 0.02, 0, 1),
    "over-confident": lambda p: sigmoid(0.4 * logit(p) + 0.3),
    "under-confident": lambda p: sigmoid(4 * logit(p) + 1),
    "wavy": lambda p: np.clip(wavy(p), 0, 1),
}


def true_error(name: str) -> float:
    """Return the mean distance of map and score, over even quantiles of Beta(0.5, 0.5)."""
    p = np.sin(np.pi / 2 * (np.arange(10**6) + 0.5) / 10**6) ** 2
    return float(np.abs(MAPS[name](p) - p).mean())


def one_sample(name: str, n: int, number: int) -> list[float]:
    """Return the values of all estimators for one sample."""
    rng = np.random.default_rng([SEED, [*MAPS].index(name), n, number])
    p = rng.beta(0.5, 0.5, n).clip(1e-12, 1 - 1e-12)
    y = rng.random(n) < MAPS[name](p)
    result = estimate(y, p)
    values = [float(ece(y, p, estimator=x)) for x in NAMES]
    return [*values, result.value * (1 - result.probability_calibrated)]


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with ProcessPoolExecutor(options.jobs) as pool:
        for n in SIZES:
            for name in MAPS:
                one = partial(one_sample, name, n)
                values = np.array([*pool.map(one, range(options.samples), chunksize=10)])
                true = true_error(name)
                mean = 1000 * np.abs(values - true).mean(axis=0)
                yield [f"{n}", name, f"{true:.4f}", *(f"{x:.1f}" for x in mean)]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    write_table(options.out, "published_benchmark", HEAD, table_rows(options))


if __name__ == "__main__":
    main()
