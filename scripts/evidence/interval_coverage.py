"""Coverage of the 95 % intervals of the plain ECE, on simulated problems whose true ECE is known.

Scores are Beta(5, 1.5), like a classifier that is sure of most rows, and
``P(y = 1 | s) = s - delta 4 s (1 - s)``: over-confident everywhere, so that no gaps cancel within
bins and the error of 15 bins tends to the true one, ``E |P(y = 1 | s) - s| = delta 4 E s (1 - s)``.
Coverage refers to this true ECE. On calibrated problems ``calibration_test`` at 5 % is measured
too.

Writes ``interval_coverage.csv``, with shares in percent. Every simulation has its own seed, so the
numbers do not depend on the threads.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from results import new_parser, write_table

from fastece import bootstrap, calibration_test

# Parameters of the beta distribution of scores.
A = 5.0
B = 1.5
SIZES = (200, 1000, 10_000)
ERRORS = (0.0, 0.02, 0.06)
METHODS = ("basic", "percentile", "bca")
LEVEL = 0.95
SEED = 20240501
HEAD = (
    "rows", "true ECE", "mean estimate", *(f"{m}: coverage" for m in METHODS),
    *(f"{m}: width" for m in METHODS), "bca: nan", "test rejects",
)  # fmt: skip


def delta_of(error: float) -> float:
    """Return the delta with a given true ECE: up to 0.25, no probability is negative."""
    delta = error * (A + B) * (A + B + 1) / (4 * A * B)
    if not 0 <= delta <= 0.25:
        raise ValueError(f"error: the design has true errors from 0 to 0.15, got {error!r}")
    return delta


def outcome_probability(s: Any, delta: float) -> Any:
    """Return P(y = 1 | s)."""
    return s - delta * 4 * s * (1 - s)


def simulate(rng: np.random.Generator, n: int, error: float) -> tuple[Any, Any]:
    """Return labels and scores of n rows."""
    s = rng.beta(A, B, n)
    return rng.random(n) < outcome_probability(s, delta_of(error)), s


def one_simulation(n: int, error: float, number: int, replicates: int) -> list[float]:
    """Return the estimate, both ends by each method, and the p-value of the test or nan."""
    rng = np.random.default_rng([SEED, n, round(1e6 * error), number])
    y, s = simulate(rng, n, error)
    result = bootstrap(y, s, n_resamples=replicates, rng=rng, method="bca")
    ends = [end for method in METHODS for end in result.interval(LEVEL, method)]
    p_value = np.nan
    if error == 0:
        p_value = calibration_test(y, s, n_resamples=replicates, rng=rng).p_value
    return [result.value, *ends, p_value]


def row_of(n: int, error: float, values: np.ndarray) -> list[str]:
    """Return a row of the table from the numbers of each simulation.

    An interval that is nan covers nothing and has no width.
    """
    low = values[:, 1:-1:2]
    high = values[:, 2:-1:2]
    covered = ((low <= error) & (error <= high)).mean(0)
    total_width = np.nansum(high - low, 0)
    n_finite = np.isfinite(low).sum(0)
    widths = [f"{w / n:.4f}" if n else "" for w, n in zip(total_width, n_finite, strict=True)]
    missing = np.isnan(low[:, METHODS.index("bca")]).mean()
    rejects = f"{100 * (values[:, -1] <= 1 - LEVEL).mean():.1f}" if error == 0 else ""
    return [
        f"{n}", f"{error:g}", f"{values[:, 0].mean():.4f}", *(f"{100 * c:.1f}" for c in covered),
        *widths, f"{100 * missing:.1f}", rejects,
    ]  # fmt: skip


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with ThreadPoolExecutor(options.threads) as pool:
        for n in options.sizes:
            for error in options.errors:
                values = pool.map(
                    lambda i, n=n, error=error: one_simulation(n, error, i, options.replicates),
                    range(options.simulations),
                )
                yield row_of(n, error, np.array(list(values)))


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=5000)
    parser.add_argument("--replicates", type=int, default=999)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--errors", type=float, nargs="+", default=ERRORS)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    write_table(options.out, "interval_coverage", HEAD, table_rows(options))


if __name__ == "__main__":
    main()
