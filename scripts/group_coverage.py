"""Coverage of the 95 % intervals of `bootstrap`, and false alarms of `calibration_test`, with and
without ``groups=``, where rows of one group are right or wrong together.

The scores and the hit rate are those of ``interval_coverage.py``: Beta(5, 1.5), and either a model
that is too sure everywhere, with a true ECE of 0.06, or a calibrated one. Hits of one group are
correlated by a Gaussian copula: row i is a hit where ``sqrt(r) Z_g + sqrt(1 - r) Z_i`` is less than
the normal quantile of its hit rate, so every score comes true as often as without groups. Sizes of
groups are geometric, with a mean of 10 rows.

Prints the table of ``docs/intervals.md``. Every simulation has a seed of its own.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from interval_coverage import A, B, delta_of, line, outcome_probability
from scipy.special import ndtri

from fastece import bootstrap, calibration_test

GROUPS, CORRELATIONS, ROWS = (20, 200, 1000), (0.0, 0.3, 0.8), 10
ERROR, LEVEL, SEED = 0.06, 0.95, 20250301
NAMES = ("ece", "brier_score")
HEAD = (
    "groups", "correlation", *(f"`{name}`: {way}" for name in NAMES for way in ("rows", "groups")),
    "width", "test: rows", "test: groups",
)  # fmt: skip


def simulate(rng: np.random.Generator, count: int, r: float, error: float) -> tuple[Any, ...]:
    """Labels, scores and groups of the rows."""
    group = np.repeat(np.arange(count), rng.geometric(1 / ROWS, count))
    s = rng.beta(A, B, group.size)
    z = np.sqrt(r) * rng.normal(size=count)[group] + np.sqrt(1 - r) * rng.normal(size=group.size)
    return z < ndtri(outcome_probability(s, delta_of(error))), s, group


def brier_score_of(error: float, points: int = 10**4) -> float:
    """The Brier score of the population, as a mean over quantiles of the score."""
    from scipy.stats import beta

    s = beta.ppf((np.arange(points) + 0.5) / points, A, B)
    c = outcome_probability(s, delta_of(error))
    return float(np.mean(c * (1 - s) ** 2 + (1 - c) * s**2))


def one_simulation(count: int, r: float, replicates: int, truth: Any, number: int) -> list[float]:
    """Whether each interval holds the truth, their widths, and whether tests reject."""
    rng = np.random.default_rng([SEED, count, round(10 * r), number])
    covered, widths = [], []
    y, s, group = simulate(rng, count, r, ERROR)
    ways = (None, group)
    options: dict[str, Any] = {"n_resamples": replicates, "rng": number}
    results = [bootstrap(y, s, estimator=[*NAMES], groups=way, **options) for way in ways]
    for name in NAMES:
        for result in results:
            low, high = result[name].confidence_interval
            covered.append(low <= truth[name] <= high)
            widths.append(high - low)
    y, s, group = simulate(rng, count, r, 0.0)
    tests = [calibration_test(y, s, groups=way, **options).p_value for way in (None, group)]
    return [*covered, *widths, *(p <= 1 - LEVEL for p in tests)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=499)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    truth = {"ece": ERROR, "brier_score": brier_score_of(ERROR)}
    print(line(HEAD))
    print(line(["---:"] * len(HEAD)))
    with ThreadPoolExecutor(options.jobs) as pool:
        for count in GROUPS:
            for r in CORRELATIONS:
                one = partial(one_simulation, count, r, options.resamples, truth)
                means = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
                covered, widths, rejected = means[:4], means[4:8], means[8:]
                cells = [f"{count}", f"{r:g}", *(f"{100 * c:.1f}" for c in covered)]
                cells.append(f"{widths[3] / widths[2]:.2f}")
                print(line([*cells, *(f"{100 * c:.1f}" for c in rejected)]), flush=True)


if __name__ == "__main__":
    main()
