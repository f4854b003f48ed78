"""Coverage of the 95 % intervals that other libraries print, beside the intervals of fastece.

There are five distributions of scores and, for each, true errors of 0, 0.02 and 0.05: outcomes are
1 with probability ``sigmoid(a logit(p))``, so that scores are over-confident, where ``a`` is solved
for. Coverage refers to the true error and, for each other library, also to the value that its own
estimate tends to, found with 400,000 rows.

Writes ``library_intervals.csv``. Needs relplot and
uncertainty-calibration. Every sample has its own seed; both libraries resample with numpy's global
generator.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from results import new_parser, write_table
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta, bootstrap

import fastece

SIZES = (200, 1000, 5000)
ERRORS = (0.0, 0.02, 0.05)
SEED = 20261126
SAMPLES = 60
# Rows from which the limits of the other libraries' estimates are computed.
LIMIT_ROWS = 400_000
LAWS = {
    "uniform": beta(1, 1),
    "U-shaped": beta(0.5, 0.5),
    "mostly sure": beta(5, 1.5),
    "rare events": beta(1, 9),
    "near one half": beta(8, 8),
}
HEAD = ("uncertainty-calibration", "relplot", "fastece, basic bootstrap", "fastece, estimate")


def quantiles(law: str, n: int) -> Any:
    """Return n scores at evenly spaced quantiles."""
    return LAWS[law].ppf((np.arange(n) + 0.5) / n).clip(1e-9, 1 - 1e-9)


@cache
def slope(law: str, error: float) -> float:
    """Return the factor of log odds at which the true error has a given size."""
    if error == 0:
        return 1.0
    p = quantiles(law, 20_000)
    z = logit(p)
    return float(brentq(lambda a: np.abs(expit(a * z) - p).mean() - error, 1e-3, 1.0))


def draw(law: str, error: float, p: Any, rng: np.random.Generator) -> Any:
    """Draw a label for each score."""
    return (rng.random(len(p)) < expit(slope(law, error) * logit(p))).astype(int)


def smooth_interval(y: Any, p: Any) -> tuple[float, float]:
    """Return the ends of the interval that relplot prints: value plus and minus half a width."""
    from relplot.metrics import smECE_fast

    ends = bootstrap((p, y), smECE_fast, paired=True, n_resamples=100, method="basic")
    value = smECE_fast(p, y)
    half = max(value - ends.confidence_interval.low, ends.confidence_interval.high - value)
    return value - half, value + half


@cache
def limits(law: str, error: float) -> tuple[float, float]:
    """Return the limits of the estimates of uncertainty-calibration and relplot for many rows."""
    from calibration import get_calibration_error
    from relplot.metrics import smECE_fast

    rng = np.random.default_rng([SEED, *law.encode(), round(1000 * error)])
    p = rng.permutation(quantiles(law, LIMIT_ROWS))
    y = draw(law, error, p, rng)
    if error == 0:
        return 0.0, 0.0
    return get_calibration_error(p, y, p=1, debias=False), smECE_fast(p, y)


def one_sample(law: str, error: float, n: int, number: int) -> list[tuple[float, float]]:
    """Return the ends of each library's interval for one sample."""
    from calibration import get_calibration_error_uncertainties

    key = [SEED, *law.encode(), round(1000 * error), n, number]
    rng = np.random.default_rng(key)
    np.random.seed(rng.integers(2**32))  # noqa: NPY002 - both libraries use it
    p = LAWS[law].rvs(n, random_state=rng).clip(1e-9, 1 - 1e-9)
    y = draw(law, error, p, rng)
    low, _, high = get_calibration_error_uncertainties(p, y, p=1, alpha=5)  # in per cent
    basic = fastece.bootstrap(y, p, n_resamples=1000, method="basic", rng=rng, n_jobs=1)
    ours = fastece.estimate(y, p).confidence_interval
    return [(low, high), smooth_interval(y, p), basic.interval(), tuple(ours)]


def coverage(law: str, error: float, n: int, samples: int, pool: Any) -> Iterator[str]:
    """Yield the share of intervals that cover the true error.

    For other libraries the share that covers the limit of their own estimate follows in brackets.
    """
    ends = np.array([*pool.map(partial(one_sample, law, error, n), range(samples), chunksize=2)])
    low, high = np.moveaxis(ends, -1, 0)
    for k, limit in enumerate((*limits(law, error), None, None)):
        covers_error = 100 * np.mean((low[:, k] <= error) & (error <= high[:, k]))
        if limit is None or error == 0:
            yield f"{covers_error:.0f}"
        else:
            covers_limit = 100 * np.mean((low[:, k] <= limit) & (limit <= high[:, k]))
            yield f"{covers_error:.0f} ({covers_limit:.0f})"


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with ProcessPoolExecutor(options.jobs) as pool:
        for error, law, n in product(ERRORS, LAWS, SIZES):
            samples = options.samples if n < SIZES[-1] else options.samples // 2
            yield [f"{error:.2f}", law, f"{n}", *coverage(law, error, n, samples, pool)]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="with 5000 rows, half of it")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    head = ["true error", "scores", "rows", *HEAD]
    write_table(options.out, "library_intervals", head, table_rows(options))


if __name__ == "__main__":
    main()
