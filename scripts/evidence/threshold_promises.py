"""How often the promise of ``choose_threshold`` is broken, and how much coverage it costs.

Each law gives scores, how often predictions with a score are right, and perhaps groups and weights.
A promise is broken where the true accuracy above the threshold is less than promised. The best
threshold is the lowest one whose true accuracy suffices; coverage is lost where the chosen one is
higher. True accuracies come from 2 million rows of the law.

Three columns are yardsticks:

- the coverage that is lost by one sequence of tests with all of the level, which begins at the
  coverage that is best for the law, the least of the mean losses over `STARTS`. No procedure knows
  this place;
- the coverage that is lost if each candidate is tested alone at the whole level. This allows for no
  choice among candidates, so its promises are broken too often;
- for independent rows of equal weight, the least coverage that any procedure with this confidence
  loses (`least_loss`).

Writes ``threshold_promises.csv``: percentages of the simulations, and lost coverage in percentage
points. Every simulation has its own seed. ``--laws`` writes some rows.
"""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from results import new_parser, write_table
from scipy.special import betainc

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
# Cells of the coverage for the least loss, and cells between a threshold and the best one.
CELLS = 150
CELLS_BETWEEN = 20
# Samples of each of two laws from which the power of their best test is computed.
SAMPLES_OF_POWER = 4000
# Rows of a group.
GROUP = 10
# Weight of a miss, relative to a hit, in the law where they differ.
MISS = 3.0
HEAD = ("law", "best coverage", *(f"broken, n = {n}" for n in SIZES), "bound too high",
        f"lost at n = {SIZE_OF_LOSS}", "lost from the best start", "lost by each alone",
        "least loss")  # fmt: skip


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


def pass_alone(candidates: Any, miss_ratio: float, accuracy: float, alpha: float) -> Any:
    """Find the last candidate that passes its own test at the whole level."""
    required = promises.scale_odds(accuracy, miss_ratio)
    n = candidates.n_effective
    hits = promises.scale_odds(candidates.accuracy, miss_ratio) * n
    p_values = betainc(np.maximum(hits, promises.SMALL), n - hits + 1, required)
    passed = np.flatnonzero(p_values <= alpha)
    return (int(passed[-1]), 0.0) if passed.size else None


def coverage_of(name: str, data: dict[str, Any]) -> float:
    """Return the true coverage of the threshold of a sample, 0 without one."""
    score, _, coverage = population(name)
    chosen = choose_quietly(data)
    place = min(np.searchsorted(score, chosen.value), score.size - 1)
    return 0.0 if np.isnan(chosen.value) else float(coverage[place])


def coverages_of_yardsticks(name: str, number: int) -> list[float]:
    """Return the coverage of one sequence from each of `STARTS`, and of tests that stand alone."""
    data = draw_one(name, SIZE_OF_LOSS, number)
    coverages = []
    for share in best_coverage(name) * STARTS:
        with patch.object(promises, "start_levels", partial(start_once, share)):
            coverages.append(coverage_of(name, data))
    with patch.object(promises, "lowest_promise", pass_alone):
        coverages.append(coverage_of(name, data))
    return coverages


# --- the least loss -------------------------------------------------------------------------


def least_loss(name: str) -> float:
    """Compute a lower bound of the mean coverage that is lost, for independent rows.

    Take another law with the same scores whose accuracy down to the coverage c, and in every cell
    from there to the best threshold, is `ACCURACY` where it was larger: it breaks all promises of
    the coverage c or more. Therefore these are made, under the law itself, at most as often as the
    best test of level ``1 - CONFIDENCE`` rejects the other law (Neyman and Pearson 1933). The mean
    coverage is the integral of this power over c; beyond the best threshold none is counted.
    """
    coverage, hits = cells_of_coverage(name)
    power = np.ones(coverage.size)
    rng = np.random.default_rng(SEED)
    for k in range(coverage.size):
        ends = np.unique(np.linspace(k, coverage.size - 1, CELLS_BETWEEN + 1).astype(int))
        mass = np.diff(coverage[ends], prepend=0.0)
        accuracy = np.diff(hits[ends], prepend=0.0) / mass
        power[k] = best_power(mass, np.minimum(accuracy, 1 - 1e-9), rng)
    # A coverage of at least c is also at least every smaller one.
    power = np.minimum.accumulate(power)
    is_continuous = coverage.size == CELLS
    if is_continuous:
        power = (power + np.append(1.0, power[:-1])) / 2
    return float(coverage[-1] - np.diff(coverage, prepend=0.0) @ power)


def cells_of_coverage(name: str) -> tuple[Any, Any]:
    """Return up to `CELLS` coverages of thresholds up to the best one, and their shares of hits."""
    _, accuracy, coverage = population(name)
    is_below = coverage <= best_coverage(name)
    accuracy = accuracy[is_below][::-1]
    coverage = coverage[is_below][::-1]
    if coverage.size > CELLS:
        even = best_coverage(name) * np.arange(1, CELLS + 1) / CELLS
        places = np.searchsorted(coverage, even).clip(0, coverage.size - 1)
        accuracy = accuracy[places]
        coverage = coverage[places]
    return coverage, coverage * accuracy


def best_power(mass: Any, accuracy: Any, rng: np.random.Generator) -> float:
    """Compute the power of the best test between a law of cells and one that breaks promises."""
    broken = np.minimum(accuracy, ACCURACY)
    weight_of_hit = np.log(accuracy / broken)
    weight_of_miss = np.log((1 - accuracy) / (1 - broken))

    def log_ratios(chances: Any) -> Any:
        rows = rng.binomial(SIZE_OF_LOSS, mass, (SAMPLES_OF_POWER, mass.size))
        hits = rng.binomial(rows, chances)
        return hits @ weight_of_hit + (rows - hits) @ weight_of_miss

    limit = np.quantile(log_ratios(broken), CONFIDENCE)
    return float(np.mean(log_ratios(accuracy) >= limit))


def table_rows(options: Any) -> Iterator[list[str]]:
    """Yield the rows of the table, the mean of all last."""
    lost: list[list[float]] = [[], [], [], []]
    numbers = range(options.simulations)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.laws:
            best = best_coverage(name)
            cells = []
            max_too_high = 0.0
            losses = ["", "", "", ""]
            for n in SIZES:
                figures = pool.map(partial(one_simulation, name, n), numbers, chunksize=100)
                broken, too_high, coverage = np.mean([*figures], axis=0)
                cells.append(f"{100 * broken:.1f}")
                max_too_high = max(max_too_high, too_high)
                if n == SIZE_OF_LOSS and best:
                    repeated = numbers[::SIMULATIONS_PER_START]
                    yardsticks = pool.map(partial(coverages_of_yardsticks, name), repeated)
                    *by_start, alone = np.mean([*yardsticks], axis=0)
                    lost[0].append(best - coverage)
                    lost[1].append(best - max(by_start))
                    lost[2].append(best - alone)
                    losses = [f"{100 * values[-1]:.1f}" for values in lost[:3]]
                    if LAWS[name].share or LAWS[name].spread:
                        losses.append("")
                    else:
                        lost[3].append(least_loss(name))
                        losses.append(f"{100 * lost[3][-1]:.1f}")
            cells.append(f"{100 * max_too_high:.1f}")
            yield [name, f"{100 * best:.0f}", *cells, *losses]
    means = [f"{100 * np.mean(values):.1f}" for values in lost]
    yield ["mean", *[""] * (len(HEAD) - 5), *means]


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=[*LAWS], metavar="LAW")
    options = parser.parse_args()
    write_table(options.out, "threshold_promises", HEAD, table_rows(options))


if __name__ == "__main__":
    main()
