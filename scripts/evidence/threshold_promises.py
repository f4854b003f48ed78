"""How often the promise of ``choose_threshold`` is broken, and how much coverage it costs.

Each law gives scores, how often predictions with a score are right, and perhaps groups and weights.
A promise is broken where the true accuracy above the threshold is less than promised. The best
threshold is the lowest one whose true accuracy suffices; coverage is lost where the chosen one is
higher. True accuracies come from 2 million rows of the law.

The last column is a yardstick: the coverage that is lost by one sequence of tests with all of the
level, which begins at the coverage that is best for the law, the least of the mean losses over
`STARTS`. No procedure knows this place.

Prints the table of ``docs/evidence/decisions.md``: percentages of the simulations, and
lost coverage in percentage points. Every simulation has its own seed. ``--laws`` prints some rows.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from fastece.data.errors import InputWarning
from fastece.decisions import choose_threshold, promises

ACCURACY = 0.95
CONFIDENCE = 0.95
SEED = 20250401
# Rows from which true accuracies are computed.
POPULATION = 2 * 10**6
SIZES = (100, 300, 1000, 2000, 5000)
# Rows for which the lost coverage is printed.
SIZE_OF_LOSS = 2000
# Shares of the best coverage where the single sequence of the last column may begin.
STARTS = np.geomspace(0.1, 1, 16)
# One in so many simulations is repeated with each of the starts.
SIMULATIONS_PER_START = 10
# Rows of a group.
GROUP = 10
# Weight of a miss, relative to a hit, in the law where they differ.
MISS = 3.0
HEAD = ("law", "best coverage", *(f"broken, n = {n}" for n in SIZES), "bound too high",
        f"lost at n = {SIZE_OF_LOSS}", "lost from the best start")  # fmt: skip


def line(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def logit(p: Any) -> Any:
    """Return log odds of probabilities, which are clipped to 1e-9 and 1 - 1e-9."""
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return np.log(p) - np.log1p(-p)


def sigmoid(z: Any) -> Any:
    """Return the probabilities with given log odds."""
    return 1 / (1 + np.exp(-z))


def confidences(rng: np.random.Generator, n: int, mean: float, spread: float) -> Any:
    """Draw the larger one of two probabilities whose log odds are normal."""
    return sigmoid(np.abs(rng.normal(mean, spread, n)))


def calibrated(rng: np.random.Generator, n: int) -> Any:
    """Draw Beta(5, 1.5) confidences that are calibrated."""
    s = rng.beta(5, 1.5, n)
    return s, s


def sharp(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences of a network that is often sure, and over-confident."""
    s = confidences(rng, n, 4, 2.5)
    return s, sigmoid(0.7 * logit(s))


def unsure(rng: np.random.Generator, n: int) -> Any:
    """Draw calibrated confidences, uniform from 1/2 to 1."""
    s = 0.5 + 0.5 * rng.random(n)
    return s, s


def even(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences with little information: 97 % are right above the median, 80 % below."""
    s = rng.random(n)
    return s, np.where(s > 0.5, 0.97, 0.8)


def steep(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences where nearly all rows are right above 0.4, and many are wrong below."""
    s = rng.random(n)
    return s, np.where(s > 0.4, 0.99, 0.6)


def heaped(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences in tenths, which are slightly too high."""
    s = np.ceil(10 * rng.beta(5, 1, n)) / 10
    return s, np.clip(s - 0.02, 0, 0.99)


def saturated(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences in hundredths: half are exactly 1, and 97.5 % of these are right."""
    s = confidences(rng, n, 3, 2)
    s = np.where(s > 0.97, 1.0, s.round(2))
    return s, np.where(s == 1, 0.975, sigmoid(0.9 * logit(s)))


def votes(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences that are shares of 20 votes."""
    k = rng.binomial(20, sigmoid(rng.normal(2, 2, n)))
    s = np.maximum(k, 20 - k) / 20
    return s, sigmoid(1.1 * logit(np.clip(s, 0.02, 0.98)))


def reversing(rng: np.random.Generator, n: int) -> Any:
    """Draw confidences where the highest are wrong more often than the next lower ones."""
    s = rng.random(n)
    return s, np.select([s > 0.9, s > 0.5], [0.92, 0.98], 0.85)


def on_edge(rng: np.random.Generator, n: int) -> Any:
    """Draw rows whose accuracy is just below the promise everywhere: every promise is broken."""
    return rng.random(n), np.full(n, ACCURACY - 0.0005)


def dear_misses(rng: np.random.Generator, n: int) -> Any:
    """Draw rows whose weighted accuracy is just below the promise; a miss weighs `MISS` hits."""
    edge = ACCURACY - 0.0005
    return rng.random(n), np.full(n, edge * MISS / (1 - edge + edge * MISS))


class Law(NamedTuple):
    """A distribution of rows: scores and chances, and how hits of a group and weights are drawn."""

    draw: Callable[[np.random.Generator, int], Any]
    share: float = 0.0  # of rows whose hit depends on a number that their group shares
    spread: float = 0.0  # standard deviation of the logarithm of weights
    miss: float = 1.0  # weight of a miss, relative to a hit


LAWS = {
    **{law.__name__.replace("_", " "): Law(law) for law in (
        calibrated, sharp, unsure, even, steep, heaped, saturated, votes, reversing, on_edge)},
    "sharp, groups of 10": Law(sharp, share=0.5),
    "saturated, groups of 10": Law(saturated, share=0.5),
    "on edge, groups of 10": Law(on_edge, share=0.5),
    "on edge, one answer a group": Law(on_edge, share=1.0),
    "sharp, weights": Law(sharp, spread=0.7),
    "on edge, weights": Law(on_edge, spread=0.7),
    "on edge, misses weigh 3 times": Law(dear_misses, miss=MISS),
}  # fmt: skip


@cache
def population(name: str) -> tuple[Any, Any, Any]:
    """Return distinct scores in increasing order, true accuracy above each, and coverage."""
    law = LAWS[name]
    s, p = law.draw(np.random.default_rng(SEED), POPULATION)
    order = np.argsort(-s)
    s = s[order]
    p = p[order]
    weight_of_hits = np.cumsum(p)
    weight = np.cumsum(p + law.miss * (1 - p))
    last_of_ties = np.append(np.flatnonzero(s[1:] < s[:-1]), s.size - 1)
    accuracy = weight_of_hits[last_of_ties] / weight[last_of_ties]
    coverage = (last_of_ties + 1) / s.size
    return s[last_of_ties][::-1], accuracy[::-1], coverage[::-1]


@cache
def best_coverage(name: str) -> float:
    """Return the coverage of the best threshold, or 0 if it is below a thousandth."""
    _, accuracy, coverage = population(name)
    sufficient = coverage[(accuracy >= ACCURACY) & (coverage > 1e-3)]
    return float(sufficient.max(initial=0.0))


def simulate(law: Law, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Draw n rows, and return them as arguments of ``choose_threshold``."""
    s, p = law.draw(rng, n)
    group = np.arange(n) // GROUP
    is_shared = rng.random(n) < law.share
    right = np.where(is_shared, rng.random(n)[group], rng.random(n)) < p
    weight = np.exp(law.spread * rng.normal(size=n)) * np.where(right, 1, law.miss)
    data = {"y_true": right, "y_prob": s}
    if law.share:
        data["groups"] = group
    if law.spread or law.miss > 1:
        data["sample_weight"] = weight
    return data


def draw_one(name: str, n: int, number: int) -> dict[str, Any]:
    """Draw the rows of one simulation of a law."""
    return simulate(LAWS[name], np.random.default_rng([SEED, [*LAWS].index(name), n, number]), n)


def choose_quietly(data: dict[str, Any]) -> Any:
    """Choose a threshold, without a warning of weighted rows that have no miss."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return choose_threshold(**data, accuracy=ACCURACY, confidence=CONFIDENCE)


def one_simulation(name: str, n: int, number: int) -> tuple[float, float, float]:
    """Return whether a promise is broken, whether a bound is too high, and the coverage."""
    chosen = choose_quietly(draw_one(name, n, number))
    if np.isnan(chosen.value):
        return 0.0, 0.0, 0.0
    score, accuracy, coverage = population(name)
    place = min(np.searchsorted(score, chosen.value), score.size - 1)
    is_broken = accuracy[place] < ACCURACY - 1e-4
    is_too_high = accuracy[place] < chosen.accuracy_bound - 1e-4
    return float(is_broken), float(is_too_high), float(coverage[place])


def start_once(share: float, n_rows: Any, _accuracy: float, alpha: float) -> Any:
    """Give all of the level to the candidate that has a share of the rows."""
    levels = np.zeros(n_rows.size)
    levels[np.searchsorted(np.maximum.accumulate(n_rows), share * n_rows.max())] = alpha
    return levels


def coverage_by_start(name: str, number: int) -> list[float]:
    """Return the coverage of one sequence with all of the level, for each of `STARTS`."""
    score, _, coverage = population(name)
    data = draw_one(name, SIZE_OF_LOSS, number)
    coverages = []
    for share in best_coverage(name) * STARTS:
        with patch.object(promises, "start_levels", partial(start_once, share)):
            chosen = choose_quietly(data)
        place = min(np.searchsorted(score, chosen.value), score.size - 1)
        coverages.append(0.0 if np.isnan(chosen.value) else float(coverage[place]))
    return coverages


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=[*LAWS], metavar="LAW")
    options = parser.parse_args()
    print(line(HEAD))
    print(line(["---", *["---:"] * (len(HEAD) - 1)]))
    lost = []
    lost_from_best_start = []
    numbers = range(options.simulations)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.laws:
            best = best_coverage(name)
            cells = []
            max_too_high = 0.0
            losses = ["", ""]
            for n in SIZES:
                figures = pool.map(partial(one_simulation, name, n), numbers, chunksize=100)
                broken, too_high, coverage = np.mean([*figures], axis=0)
                cells.append(f"{100 * broken:.1f}")
                max_too_high = max(max_too_high, too_high)
                if n == SIZE_OF_LOSS and best:
                    repeated = numbers[::SIMULATIONS_PER_START]
                    by_start = pool.map(partial(coverage_by_start, name), repeated)
                    lost.append(best - coverage)
                    lost_from_best_start.append(best - np.mean([*by_start], axis=0).max())
                    losses = [f"{100 * x[-1]:.1f}" for x in (lost, lost_from_best_start)]
            cells.append(f"{100 * max_too_high:.1f}")
            print(line([name, f"{100 * best:.0f}", *cells, *losses]), flush=True)
    means = [f"{100 * np.mean(x):.1f}" for x in (lost, lost_from_best_start)]
    print(line(["mean", *[""] * (len(HEAD) - 3), *means]))


if __name__ == "__main__":
    main()
