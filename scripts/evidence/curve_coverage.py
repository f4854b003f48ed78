"""How often the band of a reliability curve covers the truth, on simulated data.

Scores come from beta densities, and outcomes are 1 with probability ``P(y = 1 | s) = s**1.3``.
Coverage is by score mass: the share of 2000 scores from the same density at which the band covers
P(y = 1 | s), averaged over simulations. Prints the Markdown table in ``docs/evidence/coverage.md``.
"""

import argparse
import time

import numpy as np

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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of the band of a reliability curve.")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=500)
    options = parser.parse_args()
    start = time.perf_counter()
    print("| scores | rows | bandwidth | mean bandwidth | scores supported | covered |")
    print("|---|---|---|---|---|---|")
    for name, (a, b) in SCORES.items():
        for rows in (500, 2000):
            for bandwidth in BANDWIDTHS:
                covered, supported, h = coverage_of(
                    a, b, rows, bandwidth, options.simulations, options.resamples
                )
                print(
                    f"| {name} | {rows} | {bandwidth} | {h:.4f} | {supported:.1%} | "
                    f"{covered:.1%} |",
                    flush=True,
                )
    print(
        f"\n{options.simulations} simulations of {options.resamples} resamples, "
        f"{time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
