"""Level and power of the adaptive test of calibration and of each of its statistics.

``python scripts/evidence/power.py [SAMPLES] [LEVELS]`` writes ``power.csv``: the percentage of
samples that reject at 5 %, first for calibrated models (LEVELS samples), then for models that are
miscalibrated in 24 ways (SAMPLES samples). It takes about ten minutes.

Then it prints the least level at which tests of the three statistics reach two goals. Such a test
rejects if any p-value is at most the level of its statistic, as the smallest p-value does with any
weights. The goals are a power within `POINTS_BEHIND_BEST` of the best statistic alone in all cases,
and within `POINTS_BEHIND_ECE` of "ece" alone. The level is counted on the calibrated samples.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from results import new_parser, write_table

from fastece import calibration_test

RNG = np.random.Generator
DRAWS = 499
LEVEL = 0.05
NAMES = "adaptive", "slope", "smooth", "ece"
# Goals of the power, in points.
POINTS_BEHIND_BEST = 10.0
POINTS_BEHIND_ECE = 2.0
# Levels that a statistic may have by itself, and the largest level of the whole test.
OWN_LEVELS = np.append(0.0, np.geomspace(0.004, 0.06, 22))
MAX_LEVEL = 0.1


def logit(s: Any) -> Any:
    """Compute log odds."""
    s = np.clip(s, 1e-9, 1 - 1e-9)
    return np.log(s / (1 - s))


def expit(x: Any) -> Any:
    """Compute probabilities from log odds."""
    return 1 / (1 + np.exp(-x))


def normal(mean: float, deviation: float) -> Callable[[RNG, int], Any]:
    """Return a function that draws scores whose log odds are normal."""
    return lambda rng, n: expit(rng.normal(mean, deviation, n))


def beta(a: float, b: float) -> Callable[[RNG, int], Any]:
    """Return a function that draws scores from a beta distribution."""
    return lambda rng, n: rng.beta(a, b, n)


def point_mass(
    law: Callable[[RNG, int], Any], score: float, share: float
) -> Callable[[RNG, int], Any]:
    """Return a function that draws scores of which a share is equal to one score."""
    return lambda rng, n: np.where(rng.random(n) < share, score, law(rng, n))


def rounded(rng: RNG, n: int) -> Any:
    """Draw scores with one digit."""
    return np.round(rng.random(n), 1)


def top_label(rng: RNG, n: int) -> Any:
    """Draw the largest of five probabilities."""
    p = np.exp(rng.normal(0, 2.2, (n, 5)))
    return p.max(1) / p.sum(1)


def line(intercept: float, slope: float) -> Callable[[Any], Any]:
    """Return a curve whose log odds are linear in the score's log odds."""
    return lambda s: expit(intercept + slope * logit(s))


def wave(count: int, size: float) -> Callable[[Any], Any]:
    """Return a curve that waves around the score."""
    return lambda s: np.clip(s + size * np.sin(2 * np.pi * count * s) * 4 * s * (1 - s), 0, 1)


def moved(low: float, high: float, gap: float) -> Callable[[Any], Any]:
    """Return a curve that differs from the score by a gap where the score is in a range."""
    return lambda s: np.clip(np.where((s >= low) & (s <= high), s + gap, s), 0, 1)


def tails(s: Any) -> Any:
    """Return frequencies that are less extreme than scores near 0 and 1."""
    return np.select([s > 0.98, s < 0.02], [s - 0.02, s + 0.02], s)


CALIBRATED: dict[str, tuple[Any, int]] = {
    "uniform": (beta(1, 1), 1000),
    "uniform, 30 rows": (beta(1, 1), 30),
    "uniform, 5000 rows": (beta(1, 1), 5000),
    "logits N(-3.1, 1.2)": (normal(-3.1, 1.2), 1000),
    "rare, logits N(-5, 1)": (normal(-5, 1), 1000),
    "sharp, logits N(0, 5)": (normal(0, 5), 1000),
    "40 % are 1": (point_mass(beta(4, 1.5), 1.0, 0.4), 1000),
    "one digit": (rounded, 600),
    "top label of five": (top_label, 1000),
    "weights, 200 rows": (beta(2, 1), 200),
    "class by class, 300 rows": (None, 300),
}
OFF: dict[str, tuple[Any, Any, int]] = {
    "clinical: -1 + .65 l": (normal(-3.1, 1.2), line(-1, 0.65), 1000),
    "-.6 + .7 l": (normal(-3.1, 1.2), line(-0.6, 0.7), 1000),
    ".5 + 1.3 l": (normal(-3.1, 1.2), line(0.5, 1.3), 1000),
    ".3 + l": (normal(-3.1, 1.2), line(0.3, 1), 1000),
    "slope 1.25": (beta(0.8, 0.8), line(0, 1.25), 1000),
    "slope 2, 100 rows": (beta(1, 1), line(0, 2), 100),
    "shift .22": (beta(1, 1), line(0.22, 1), 1000),
    "shift .45, 100 rows": (beta(1, 1), line(0.45, 1), 100),
    "two waves": (beta(0.8, 0.8), wave(2, 0.07), 1000),
    "five waves": (beta(0.8, 0.8), wave(5, 0.085), 1000),
    "ten waves": (beta(0.8, 0.8), wave(10, 0.1), 1000),
    "above .9 by -.05": (beta(0.8, 0.8), moved(0.9, 1, -0.05), 1000),
    ".5 to .6 by -.17": (beta(0.8, 0.8), moved(0.5, 0.6, -0.17), 1000),
    ".8 to .87 by -.13": (normal(1, 1.5), moved(0.8, 0.87, -0.13), 1000),
    "step above .7 by -.07": (beta(1, 1), moved(0.7, 1, -0.07), 1000),
    "heap of 40 % at 1, .993": (point_mass(beta(4, 1.5), 1.0, 0.4), moved(1, 1, -0.007), 1000),
    "heap of 30 % at .7, .615": (point_mass(beta(1, 1), 0.7, 0.3), moved(0.7, 0.7, -0.085), 1000),
    "tails by .02": (normal(0, 3), tails, 1000),
    "rare, shift .45": (normal(-5, 1), line(0.45, 1), 2000),
    "rare, -2 + .6 l": (normal(-5, 1), line(-2, 0.6), 2000),
    "one digit, slope 1.3": (rounded, line(0, 1.3), 600),
    "top label, -.1 + .85 l": (top_label, line(-0.1, 0.85), 1000),
    "v shape": (beta(1, 1), lambda s: s + 0.35 * ((s - 0.5) ** 2 - 1 / 12), 1000),
    "square of logit": (
        normal(-1, 1.5),
        lambda s: expit(logit(s) - 0.13 * ((logit(s) + 1) ** 2 - 2.25)),
        1000,
    ),
}


def p_values(y: Any, p: Any, seed: int, **options: Any) -> list[float]:
    """Compute the p-values of the test and of its statistics."""
    result = calibration_test(y, p, n_resamples=DRAWS, rng=seed, n_jobs=1, **options)
    return [result.p_value, *(x.p_value for x in result.components)]


def sample(name: str, rng: RNG, seed: int) -> list[float]:
    """Draw a sample of one case, and return its p-values."""
    if name in OFF:
        law, frequency, n = OFF[name]
        s = law(rng, n)
        return p_values(rng.random(n) < frequency(s), s, seed)
    law, n = CALIBRATED[name]
    if law is None:
        p = rng.dirichlet(np.ones(4), n)
        y = (p.cumsum(1) < rng.random((n, 1))).sum(1)
        return p_values(np.minimum(y, 3), p, seed, setting="classwise")
    s = law(rng, n)
    options = {"sample_weight": rng.gamma(2, 1, n)} if "weights" in name else {}
    return p_values(rng.random(n) < s, s, seed, **options)


def reject(p: Any, levels: Any) -> Any:
    """Return how often any p-value (..., 3) is at most its statistic's own level, in percent."""
    return 100 * np.mean((p <= levels).any(axis=-1), axis=-1)


def least_level(calibrated: Any, off: Any, points_behind_ece: float) -> tuple[float, Any]:
    """Find the least level in percent that reaches the goals, and the statistics' own levels.

    Parameters
    ----------
    calibrated : (N, 3) array
        P-values of the statistics on calibrated samples.
    off : (C, S, 3) array
        P-values on the samples of each case that is miscalibrated.
    points_behind_ece : float
        Points that the power may lie behind "ece" alone.
    """
    power_alone = 100 * np.mean(off <= LEVEL, axis=1)
    goal_of_best = power_alone.max(axis=1) - POINTS_BEHIND_BEST
    goals = np.maximum(goal_of_best, power_alone[:, -1] - points_behind_ece)
    least: tuple[float, Any] = (np.inf, None)
    for own_levels in product(OWN_LEVELS, repeat=3):
        level = reject(calibrated, np.array(own_levels))
        if level < min(least[0], 100 * MAX_LEVEL):
            is_reached = reject(off, np.array(own_levels)) >= goals
            if is_reached.all():
                least = (level, own_levels)
    return least


def print_least_levels(calibrated: Any, off: Any) -> None:
    """Print the least levels for both goals, and for the first one alone."""
    goals = f"within {POINTS_BEHIND_BEST:g} points of the best"
    for points_behind_ece in (POINTS_BEHIND_ECE, 100.0):
        level, own_levels = least_level(calibrated, off, points_behind_ece)
        if own_levels is None:
            print(f"{goals}: not below {100 * MAX_LEVEL:g} %")
            continue
        pairs = zip(NAMES[1:], own_levels, strict=True)
        own = ", ".join(f"{name} {100 * value:.1f}" for name, value in pairs)
        behind = f' and {POINTS_BEHIND_ECE:g} of "ece"' if points_behind_ece < 100 else ""
        print(f"{goals}{behind}: level {level:.1f} % ({own})")


def main() -> None:
    """Write a line for each case, and print the least levels."""
    parser = new_parser(__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=400)
    parser.add_argument("levels", type=int, nargs="?", default=4000)
    options = parser.parse_args()
    calibrated = []
    off = []
    rows = []
    for i, name in enumerate([*CALIBRATED, *OFF]):
        rng = np.random.default_rng(i)
        count = options.samples if name in OFF else options.levels
        p = np.array([sample(name, rng, seed) for seed in range(count)])
        (off if name in OFF else calibrated).append(p[:, 1:])
        rows.append([name, *(f"{100 * x:.1f}" for x in np.mean(p <= LEVEL, axis=0))])
    write_table(options.out, "power", ["case", *NAMES], rows)
    print_least_levels(np.concatenate(calibrated), np.array(off))


if __name__ == "__main__":
    main()
