"""How often the band of a reliability curve covers the truth, on simulated data.

Scores come from beta densities, and outcomes are 1 with probability ``P(y = 1 | s) = s**1.3``.
Coverage is by score mass: the share of 2000 scores from the same density at which the band covers
P(y = 1 | s), averaged over simulations. Writes ``curve_coverage.csv``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from results import new_parser, write_table

from fastece import reliability_curve

POWER = 1.3
SCORES = {
    "Beta(2, 2)": (2.0, 2.0),
    "Beta(5, 1.5)": (5.0, 1.5),
    "Beta(8, 0.5)": (8.0, 0.5),
    "Beta(2, 0.1)": (2.0, 0.1),
    "Beta(0.5, 0.05)": (0.5, 0.05),
}
BANDWIDTHS = ("silverman", 0.05)


def coverage_of(
    a: float, b: float, rows: int, bandwidth: str | float, simulations: int, resamples: int
) -> tuple[float, float, float]:
    """Return the share of scores covered, the share supported, and the mean bandwidth."""
    figures = []
    for seed in range(simulations):
        rng = np.random.default_rng(seed)
        s = rng.beta(a, b, rows)
        fresh = rng.beta(a, b, 2000)
        curve = reliability_curve(
            rng.random(rows) < s**POWER, s, estimator="ece_kde", bandwidth=bandwidth,
            n_resamples=resamples, rng=seed,
        )  # fmt: skip
        low, high = curve.interval(fresh)
        truth = fresh**POWER
        supported = np.isfinite(curve(fresh))
        covered = (low <= truth) & (truth <= high)
        figures.append((covered.mean(), supported.mean(), curve.bandwidth))
    return tuple(np.mean(figures, axis=0).tolist())


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table, with shares in percent."""
    for name, (a, b) in SCORES.items():
        for rows in (500, 2000):
            for bandwidth in BANDWIDTHS:
                covered, supported, h = coverage_of(
                    a, b, rows, bandwidth, options.simulations, options.resamples
                )
                shares = (f"{100 * supported:.1f}", f"{100 * covered:.1f}")
                yield [name, f"{rows}", f"{bandwidth}", f"{h:.4f}", *shares]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--resamples", type=int, default=300)
    options = parser.parse_args()
    head = ["scores", "rows", "bandwidth", "mean bandwidth", "scores supported", "covered"]
    write_table(options.out, "curve_coverage", head, table_rows(options))


if __name__ == "__main__":
    main()
