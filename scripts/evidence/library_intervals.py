"""Coverage of the 95 % intervals that other libraries print, beside those of fastece.

Five laws of scores and, at each, true errors of 0, 0.02 and 0.05: events come true with the
probability ``sigmoid(a logit(p))``, over-confident, where ``a`` is solved for. Covered or not is
the true error and, for each other library, also the value that its own estimate tends to, by
400,000 rows.

Prints the table of ``docs/library_intervals.md``. Needs relplot and uncertainty-calibration. Every
sample has a seed of its own; both libraries resample with numpy's global generator.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta, bootstrap

import fastece

SIZES, ERRORS = (200, 1000, 5000), (0.0, 0.02, 0.05)
SEED, NUMBER, MANY = 20261126, 60, 400_000
LAWS = {
    "uniform": beta(1, 1),
    "U-shaped": beta(0.5, 0.5),
    "mostly sure": beta(5, 1.5),
    "rare events": beta(1, 9),
    "near one half": beta(8, 8),
}
HEAD = ("uncertainty-calibration", "relplot", "fastece, basic bootstrap", "fastece, `estimate`")


def quantiles(law: str, n: int) -> Any:
    """Scores at even quantiles."""
    return LAWS[law].ppf((np.arange(n) + 0.5) / n).clip(1e-9, 1 - 1e-9)


@cache
def slope(law: str, error: float) -> float:
    """The factor of log odds at which the mean distance of event and score is the error."""
    if error == 0:
        return 1.0
    p = quantiles(law, 20_000)
    z = logit(p)
    return float(brentq(lambda a: np.abs(expit(a * z) - p).mean() - error, 1e-3, 1.0))


def draw(law: str, error: float, p: Any, rng: np.random.Generator) -> Any:
    """Draw a label for each score."""
    return (rng.random(len(p)) < expit(slope(law, error) * logit(p))).astype(int)


def smooth_interval(y: Any, p: Any) -> tuple[float, float]:
    """Ends of the interval that relplot prints in its diagram: value and half a width."""
    from relplot.metrics import smECE_fast

    ends = bootstrap((p, y), smECE_fast, paired=True, n_resamples=100, method="basic")
    value = smECE_fast(p, y)
    half = max(value - ends.confidence_interval.low, ends.confidence_interval.high - value)
    return value - half, value + half


@cache
def limits(law: str, error: float) -> tuple[float, float]:
    """What the estimates of uncertainty-calibration and relplot tend to."""
    from calibration import get_calibration_error
    from relplot.metrics import smECE_fast

    rng = np.random.default_rng([SEED, *law.encode(), round(1000 * error)])
    p = rng.permutation(quantiles(law, MANY))
    y = draw(law, error, p, rng)
    # Its own bins, of equal mass, whose error of a calibrated model tends to 0 from above.
    binned = 0.0 if error == 0 else get_calibration_error(p, y, p=1, debias=False)
    return binned, 0.0 if error == 0 else smECE_fast(p, y)


def one_sample(law: str, error: float, n: int, number: int) -> list[tuple[float, float]]:
    """The ends of each library's interval."""
    from calibration import get_calibration_error_uncertainties

    key = [SEED, *law.encode(), round(1000 * error), n, number]
    rng = np.random.default_rng(key)
    np.random.seed(rng.integers(2**32))  # noqa: NPY002 - the only one that they use
    p = LAWS[law].rvs(n, random_state=rng).clip(1e-9, 1 - 1e-9)
    y = draw(law, error, p, rng)
    low, _, high = get_calibration_error_uncertainties(p, y, p=1, alpha=5)  # in per cent
    basic = fastece.bootstrap(y, p, n_resamples=1000, method="basic", rng=rng, n_jobs=1)
    ours = fastece.estimate(y, p).confidence_interval
    return [(low, high), smooth_interval(y, p), basic.interval(), tuple(ours)]


def coverage(law: str, error: float, n: int, samples: int, pool: Any) -> Iterator[str]:
    """Shares of intervals that hold the true error, of others also those that hold their limit."""
    ends = np.array([*pool.map(partial(one_sample, law, error, n), range(samples), chunksize=2)])
    low, high = np.moveaxis(ends, -1, 0)
    binned, smooth = limits(law, error)
    for k, own in enumerate((binned, smooth, None, None)):
        true = 100 * np.mean((low[:, k] <= error) & (error <= high[:, k]))
        if own is None or error == 0:
            yield f"{true:.0f}"
        else:
            yield f"{true:.0f} ({100 * np.mean((low[:, k] <= own) & (own <= high[:, k])):.0f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=NUMBER, help="of 5000 rows half as many")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(f"| true error | scores | rows | {' | '.join(HEAD)} |")
    print(f"| ---: | --- | ---: |{' ---: |' * len(HEAD)}")
    with ProcessPoolExecutor(options.jobs) as pool:
        for error, law, n in product(ERRORS, LAWS, SIZES):
            samples = options.samples if n < SIZES[-1] else options.samples // 2
            cells = coverage(law, error, n, samples, pool)
            print(f"| {error:.2f} | {law} | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
