"""How often the promise of ``choose_threshold`` is broken, and how much coverage it costs.

Each law gives scores, how often predictions with a score are right, and perhaps groups and weights.
A promise is broken where the true accuracy above the threshold is less than promised. The best
threshold is the lowest one whose true accuracy suffices; coverage is lost where the chosen one is
higher. True accuracies are those of 2 million rows of the law.

Prints the table of ``docs/selective.md``: shares of the simulations in %, and lost coverage in
points. Every simulation has a seed of its own.
"""

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from fastece.decisions import choose_threshold

ACCURACY, CONFIDENCE, SEED, POPULATION = 0.95, 0.95, 20250401, 2 * 10**6
SIZES, SIZE_OF_LOSS, GROUP, MISS = (100, 300, 1000, 2000, 5000), 2000, 10, 3.0
HEAD = ("law", "best coverage", *(f"broken, n = {n}" for n in SIZES), "bound too high",
        f"lost at n = {SIZE_OF_LOSS}")  # fmt: skip


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def logit(p: Any) -> Any:
    """Log odds."""
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return np.log(p) - np.log1p(-p)


def sigmoid(z: Any) -> Any:
    """Probabilities of log odds."""
    return 1 / (1 + np.exp(-z))


def confidences(rng: np.random.Generator, n: int, mean: float, spread: float) -> Any:
    """Larger ones of two probabilities, with normal log odds."""
    return sigmoid(np.abs(rng.normal(mean, spread, n)))


def calibrated(rng: np.random.Generator, n: int) -> Any:
    """Beta(5, 1.5) confidences that come true."""
    s = rng.beta(5, 1.5, n)
    return s, s


def sharp(rng: np.random.Generator, n: int) -> Any:
    """A network that is often sure, and too sure."""
    s = confidences(rng, n, 4, 2.5)
    return s, sigmoid(0.7 * logit(s))


def unsure(rng: np.random.Generator, n: int) -> Any:
    """Confidences spread over 1/2 to 1 that come true."""
    s = 0.5 + 0.5 * rng.random(n)
    return s, s


def even(rng: np.random.Generator, n: int) -> Any:
    """Confidences that hardly matter: 97 % are right above the median, 80 % below."""
    s = rng.random(n)
    return s, np.where(s > 0.5, 0.97, 0.8)


def steep(rng: np.random.Generator, n: int) -> Any:
    """Nearly all right above 0.4, and many wrong below."""
    s = rng.random(n)
    return s, np.where(s > 0.4, 0.99, 0.6)


def heaped(rng: np.random.Generator, n: int) -> Any:
    """Confidences in tenths, a little too high."""
    s = np.ceil(10 * rng.beta(5, 1, n)) / 10
    return s, np.clip(s - 0.02, 0, 0.99)


def saturated(rng: np.random.Generator, n: int) -> Any:
    """Confidences in hundredths, of which half are exactly 1 and right in 97.5 %."""
    s = confidences(rng, n, 3, 2)
    s = np.where(s > 0.97, 1.0, s.round(2))
    return s, np.where(s == 1, 0.975, sigmoid(0.9 * logit(s)))


def votes(rng: np.random.Generator, n: int) -> Any:
    """Shares of 20 votes."""
    k = rng.binomial(20, sigmoid(rng.normal(2, 2, n)))
    s = np.maximum(k, 20 - k) / 20
    return s, sigmoid(1.1 * logit(np.clip(s, 0.02, 0.98)))


def reversing(rng: np.random.Generator, n: int) -> Any:
    """The surest rows are wrong more often than those below."""
    s = rng.random(n)
    return s, np.select([s > 0.9, s > 0.5], [0.92, 0.98], 0.85)


def on_edge(rng: np.random.Generator, n: int) -> Any:
    """Just less than promised at every score, so that every promise is broken."""
    return rng.random(n), np.full(n, ACCURACY - 0.0005)


def dear_misses(rng: np.random.Generator, n: int) -> Any:
    """As on edge by weight, where misses weigh `MISS` times as much as hits."""
    edge = ACCURACY - 0.0005
    return rng.random(n), np.full(n, edge * MISS / (1 - edge + edge * MISS))


class Law(NamedTuple):
    """A law of scores: dependence of a group's hits, spread of log weights, weight of misses."""

    draw: Callable[[np.random.Generator, int], Any]
    share: float = 0.0
    spread: float = 0.0
    miss: float = 1.0


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
    """Distinct scores in increasing order, true accuracy above each, and coverage."""
    law = LAWS[name]
    s, p = law.draw(np.random.default_rng(SEED), POPULATION)
    order = np.argsort(-s)
    s, right, weight = s[order], np.cumsum(p[order]), np.cumsum((p + law.miss * (1 - p))[order])
    last = np.append(np.flatnonzero(s[1:] < s[:-1]), s.size - 1)
    return tuple(x[::-1] for x in (s[last], right[last] / weight[last], (last + 1) / s.size))


def best_coverage(name: str) -> float:
    """Coverage of the lowest threshold whose true accuracy suffices, at least a thousandth."""
    _, accuracy, coverage = population(name)
    good = coverage[(accuracy >= ACCURACY) & (coverage > 1e-3)]
    return float(good.max()) if good.size else 0.0


def simulate(law: Law, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Arguments of ``choose_threshold``."""
    s, p = law.draw(rng, n)
    group = np.arange(n) // GROUP
    is_shared = rng.random(n) < law.share
    right = np.where(is_shared, rng.random(n)[group], rng.random(n)) < p
    weight = np.exp(law.spread * rng.normal(size=n)) * np.where(right, 1, law.miss)
    found = {"y_true": right, "y_prob": s}
    found |= {"groups": group} if law.share else {}
    return found | ({"sample_weight": weight} if law.spread or law.miss > 1 else {})


def one_simulation(name: str, n: int, number: int) -> tuple[float, float, float]:
    """Whether a promise is broken, whether a bound is too high, and the coverage."""
    rng = np.random.default_rng([SEED, [*LAWS].index(name), n, number])
    chosen = choose_threshold(**simulate(LAWS[name], rng, n), accuracy=ACCURACY,
                              confidence=CONFIDENCE)  # fmt: skip
    if np.isnan(chosen.value):
        return 0.0, 0.0, 0.0
    score, accuracy, coverage = population(name)
    at = min(np.searchsorted(score, chosen.value), score.size - 1)
    is_high = accuracy[at] < chosen.accuracy_bound - 1e-4
    return float(accuracy[at] < ACCURACY - 1e-4), float(is_high), float(coverage[at])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(line(HEAD))
    print(line(["---", *["---:"] * (len(HEAD) - 1)]))
    lost, numbers = [], range(options.simulations)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in LAWS:
            best, cells, high = best_coverage(name), [], 0.0
            for n in SIZES:
                found = pool.map(partial(one_simulation, name, n), numbers, chunksize=100)
                broken, too_high, coverage = np.mean([*found], axis=0)
                cells.append(f"{100 * broken:.1f}")
                high = max(high, too_high)
                if n == SIZE_OF_LOSS:
                    loss = best - coverage
            if best:
                lost.append(loss)
            shown = f"{100 * loss:.1f}" if best else ""
            print(line([name, f"{100 * best:.0f}", *cells, f"{100 * high:.1f}", shown]), flush=True)
    print(line(["mean", *[""] * (len(HEAD) - 2), f"{100 * np.mean(lost):.1f}"]))


if __name__ == "__main__":
    main()
