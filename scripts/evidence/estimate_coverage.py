"""Coverage of the intervals of `estimate`, `compare` (method="mover"), `direction`, `slices`, and
how often `compare` tells equal models apart.

Scores have several shapes, each with a known curve ``c(s) = P(y = 1 | s)``, so the error that an
interval should cover is known too. For bins it is the error of the population *with the bins of the
sample*, for a density the smoothed gap with its bandwidth, for a curve the mean gap of neighbours,
always from 20 000 other scores and their exact chances. Writes one of the tables in `TABLES`. Every
simulation has its own seed, so the numbers do not depend on the threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from results import new_parser, write_table

import fastece
from fastece import datasets
from fastece.data.table import one_problem
from fastece.estimators.protocol import Sample

SEED = 20240601
# Rows of the population that defines the true error.
REFERENCE = 20_000
LEVEL = 0.95
# "ece_bayes", which needs no resamples, has so many times as many simulations as the others.
POSTERIOR_FACTOR = 4
# The table `estimate` has the basic interval of the first estimator, too.
ESTIMATORS = ("ece", "ece_ac", "ece_kde")
# `compare_coverage.py` is about "ece_bayes".
COMPARED = ("ece",)
Scores = Callable[[np.random.Generator, int], Any]


class Shape(NamedTuple):
    """A distribution of scores, and the chance of an outcome of 1 at each score."""

    name: str
    scores: Scores
    curve: Callable[[Any], Any]


# --- shapes ---------------------------------------------------------------------------------


def logit(s: Any) -> Any:
    """Return log odds of scores, which are clipped to 1e-9 and 1 - 1e-9."""
    s = np.clip(s, 1e-9, 1 - 1e-9)
    return np.log(s) - np.log1p(-s)


def tempered(s: Any, slope: float, shift: float = 0.0) -> Any:
    """Return a curve that is a line in log odds: over-confident scores for slopes below 1."""
    return 1 / (1 + np.exp(-slope * logit(s) - shift))


def beta(a: float, b: float) -> Scores:
    """Return a function that draws scores from a beta distribution."""
    return lambda rng, n: rng.beta(a, b, n)


def near_one(rng: np.random.Generator, n: int) -> Any:
    """Draw scores of which half are within 1e-6 of 1."""
    return np.where(rng.random(n) < 0.5, 1 - 1e-6 * rng.random(n), rng.beta(4, 1.5, n))


def hundredths(rng: np.random.Generator, n: int) -> Any:
    """Draw scores that are multiples of 0.01."""
    return rng.beta(4, 1.5, n).round(2)


@lru_cache(maxsize=1)
def digits() -> Any:
    """Read a network's scores of its top labels on handwritten digits."""
    return np.asarray(datasets.load("digits_network").y_prob, np.float64).max(1)


def real(rng: np.random.Generator, n: int) -> Any:
    """Draw scores of a real network."""
    return rng.choice(digits(), n)


def shapes() -> list[Shape]:
    """Return the shapes of the table: calibrated, slightly and grossly miscalibrated."""
    return [
        Shape("Beta(5, 1.5), calibrated", beta(5, 1.5), lambda s: s),
        Shape("Beta(5, 1.5), too sure", beta(5, 1.5), lambda s: s - 0.1 * 4 * s * (1 - s)),
        Shape("uniform, much too sure", beta(1, 1), partial(tempered, slope=0.5)),
        Shape("uniform, a wave", beta(1, 1), lambda s: s + 0.4 * s * (1 - s) * np.sin(19 * s)),
        Shape("sharp Beta(.5, .2), too sure", beta(0.5, 0.2), partial(tempered, slope=0.7)),
        Shape("rare events, too low", beta(0.4, 6), partial(tempered, slope=1.0, shift=0.4)),
        Shape("half at 1, 3 % of them wrong", near_one, lambda s: np.minimum(s, 0.97)),
        Shape("multiples of 0.01, steps", hundredths, lambda s: np.floor(5 * s + 0.5) / 5),
        Shape("digits, calibrated", real, lambda s: s),
        Shape("digits, too sure", real, partial(tempered, slope=0.6)),
    ]


# --- true errors ----------------------------------------------------------------------------


def sample_of(s: Any, y: Any) -> Sample:
    """Return a binary problem without weights."""
    rows = np.arange(s.size)
    return Sample(s, np.asarray(y, np.uint8), None, 0.0, 1.0, rows)


def binned_gaps(estimator: Any, s: Any, scores: Any, hit: Any) -> Any:
    """Return the gaps of a population in the bins of a sample's scores s.

    The population has `scores`, and each is a hit with probability `hit`.
    """
    data = sample_of(s, np.zeros(s.size))
    layout = estimator.layout(one_problem(data), estimator.n_bins)
    _, lower, a = layout.place(scores)
    gap = np.bincount(lower, a * (hit - scores), layout.cells + 1)
    gap += np.bincount(lower + 1, (1 - a) * (hit - scores), layout.cells + 1)[: gap.size]
    return gap / scores.size


def density_truth(estimator: Any, s: Any, scores: Any, hit: Any) -> float:
    """Return the smoothed gap of a population, with the bandwidth for a sample's scores s."""
    data = sample_of(s, np.zeros(s.size)).sorted()
    h = estimator.prepare(data, s.size).bandwidth
    # Every score stands for a hit and a miss, which are counted as often as their chances.
    doubled_scores = np.tile(scores, 2)
    outcomes = np.repeat([1, 0], scores.size)
    doubled = sample_of(doubled_scores, outcomes).sorted()
    plan = fastece.KDE(bandwidth=float(h)).prepare(doubled, scores.size)
    order = np.argsort(doubled_scores, kind="stable")
    counts = [np.concatenate([chance, 1 - chance])[order] for chance in (hit, scores)]
    seen, expected = (plan.density(c)[1][0, 1, :, 0] for c in counts)
    return float((np.abs(seen - expected) * plan.grid.width).sum())


def curve_truth(scores: Any, hit: Any) -> float:
    """Return the error of a population's curve: gaps of 400 neighbours, with ties together."""
    order = np.argsort(scores, kind="stable")
    s = scores[order]
    neighbourhood = np.searchsorted(s, s) // 400
    gaps = np.bincount(neighbourhood, (hit - scores)[order])
    return float(np.abs(gaps).sum() / s.size)


def truth_of(estimator: Any, s: Any, scores: Any, hit: Any) -> float:
    """Return the error that an interval of an estimator should cover."""
    if isinstance(estimator, fastece.Binned):
        return float(np.abs(binned_gaps(estimator, s, scores, hit)).sum())
    if isinstance(estimator, fastece.BayesCurve):
        return curve_truth(scores, hit)
    return density_truth(estimator, s, scores, hit)


# --- estimate -------------------------------------------------------------------------------


def one_estimate(shape: Shape, n: int, number: int, replicates: int, population: Any) -> list[Any]:
    """Return whether each estimator's interval covers, and its width.

    The first estimator has three more figures: coverage and width of the basic interval, and the
    true error.
    """
    rng = np.random.default_rng([SEED, n, number, *shape.name.encode()])
    s = shape.scores(rng, n)
    y = rng.random(n) < shape.curve(s)
    figures = []
    for name in ESTIMATORS:
        result = fastece.estimate(y, s, estimator=name, n_resamples=replicates, rng=rng)
        low, high = result.confidence_interval
        truth = truth_of(fastece.ESTIMATORS[name], s, *population)
        figures += [low - 1e-9 <= truth <= high + 1e-9, high - low]
        if name == ESTIMATORS[0]:
            basic = fastece.bootstrap(y, s, n_resamples=replicates, rng=rng).confidence_interval
            figures += [basic.low <= truth <= basic.high, basic.high - basic.low, truth]
    return figures


def one_posterior(shape: Shape, n: int, number: int, truth: float) -> list[Any]:
    """Return the value of `ece_bayes`, whether its interval covers the truth, and its width."""
    rng = np.random.default_rng([SEED, n, number, *shape.name.encode()])
    s = shape.scores(rng, n)
    y = rng.random(n) < shape.curve(s)
    result = fastece.estimate(y, s)
    low, high = result.confidence_interval
    return [result.value, low - 1e-9 <= truth <= high + 1e-9, high - low]


def estimate_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """Yield the lines of the table `estimate`."""
    yield [
        "scores", "rows", "true ECE", "basic", "basic: width", "ece", "ece: width", "ece_ac",
        "ece_kde", "true error", "ece_bayes: mean value", "ece_bayes", "ece_bayes: width",
    ]  # fmt: skip
    for shape in shapes():
        scores = shape.scores(np.random.default_rng(SEED), REFERENCE)
        population = scores, shape.curve(scores)
        true_error = curve_truth(*population)
        for n in options.sizes:
            one = partial(one_estimate, shape, n, replicates=options.replicates,
                          population=population)  # fmt: skip
            figures = list(pool.map(one, range(options.simulations)))
            means = np.mean(np.array(figures, np.float64), axis=0)
            covers, width, covers_basic, width_basic, truth, covers_2, _, covers_3, _ = means
            posterior = partial(one_posterior, shape, n, truth=true_error)
            figures = list(pool.map(posterior, range(POSTERIOR_FACTOR * options.simulations)))
            value, covers_posterior, width_posterior = np.mean(np.array(figures, float), axis=0)
            yield [
                shape.name, f"{n}", f"{truth:.4f}", f"{100 * covers_basic:.1f}",
                f"{width_basic:.4f}", f"{100 * covers:.1f}", f"{width:.4f}",
                f"{100 * covers_2:.1f}", f"{100 * covers_3:.1f}", f"{true_error:.4f}",
                f"{value:.4f}", f"{100 * covers_posterior:.1f}", f"{width_posterior:.4f}",
            ]  # fmt: skip


# --- compare --------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A distribution of chances of hits, and the scores that two models give to them."""

    name: str
    chances: Scores
    a: Callable[..., Any]
    b: Callable[..., Any]


def slope(t: float, shift: float = 0.0) -> Callable[..., Any]:
    """Return a model whose log odds are a line of the true ones."""
    return lambda q, rng: tempered(q, t, shift)  # noqa: ARG005


def noisy(sd: float) -> Callable[..., Any]:
    """Return a model whose log odds are the true ones with normal noise."""
    return lambda q, rng: 1 / (1 + np.exp(-logit(q) - sd * rng.normal(size=q.size)))


def waved(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return scores that wave around the chances."""
    return np.clip(q + 0.08 * np.sin(12 * q), 1e-4, 1 - 1e-4)


def saturated(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return scores that are too high where the chance is above .85: many of them are 1."""
    return np.where(q > 0.85, np.minimum(q + 0.12, 1), q)


def point_mass(q: Any, rng: Any) -> Any:
    """Return scores of which three in ten, chosen at random, are .7."""
    return np.where(rng.random(q.size) < 0.3, 0.7, q)


def jump(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return scores that are too high only where the chance is above .68."""
    return np.where(q > 0.68, np.minimum(q + 0.12, 1), q)


def pairs() -> list[Pair]:
    """Return the twenty pairs of models of the table `compare`."""
    good = slope(1)
    return [
        Pair("calibrated, slope 1.6", beta(2, 0.8), good, slope(1.6)),
        Pair("saturated, slope 1.5", beta(5, 1.5), saturated, slope(1.5)),
        Pair("calibrated, slope .5", beta(2, 0.8), good, slope(0.5)),
        Pair("calibrated, shift 1", beta(2, 0.8), good, slope(1, 1)),
        Pair("slopes 1.6 and .6", beta(2, 0.8), slope(1.6), slope(0.6)),
        Pair("shifts .7 and -.7", beta(2, 0.8), slope(1, 0.7), slope(1, -0.7)),
        Pair("slopes 1.6 and 1.5", beta(2, 0.8), slope(1.6), slope(1.5)),
        Pair("noise .7 each", beta(2, 0.8), noisy(0.7), noisy(0.7)),
        Pair("calibrated, noise 1", beta(2, 0.8), good, noisy(1)),
        Pair("noise .1 each", beta(2, 0.8), noisy(0.1), noisy(0.1)),
        Pair("uniform: heap, wave", beta(1, 1), point_mass, waved),
        Pair("calibrated, slope 2", beta(5, 1.5), good, slope(2)),
        Pair("slopes 1.5 and .5", beta(5, 1.5), slope(1.5), slope(0.5)),
        Pair("shifts .5 and 1", beta(5, 1.5), slope(1, 0.5), slope(1, 1)),
        Pair("uniform: calibrated, slope 2", beta(1, 1), good, slope(2)),
        Pair("uniform: jump, slope 1.5", beta(1, 1), jump, slope(1.5)),
        Pair("uniform: slopes 1.2 and .85", beta(1, 1), slope(1.2), slope(0.85)),
        Pair("sharp: calibrated, slope .3", beta(0.5, 0.2), good, slope(0.3)),
        Pair("sharp: slopes 2 and 1.3", beta(0.5, 0.2), slope(2), slope(1.3)),
        Pair("uniform: wave, calibrated", beta(1, 1), waved, good),
    ]


def pair_data(pair: Pair, rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Return n chances and the scores of both models."""
    q = np.clip(pair.chances(rng, n), 1e-5, 1 - 1e-5)
    return q, pair.a(q, rng), pair.b(q, rng)


def one_comparison(pair: Pair, n: int, number: int, replicates: int, population: Any) -> list[Any]:
    """Return coverage and width of the basic and the "mover" interval for each estimator, then the
    true difference."""
    rng = np.random.default_rng([SEED, n, number, *pair.name.encode()])
    q, a, b = pair_data(pair, rng, n)
    y = rng.random(n) < q
    options = {"n_resamples": replicates, "rng": int(rng.integers(2**32))}
    chances, all_a, all_b = population
    figures: list[Any] = []
    for name in COMPARED:
        estimator = fastece.ESTIMATORS[name]
        truth_a = truth_of(estimator, a, all_a, chances)
        truth_b = truth_of(estimator, b, all_b, chances)
        difference = truth_a - truth_b
        for method in ("basic", "mover"):
            result = fastece.compare(y, a, b, **options, estimator=name, method=method)
            low, high = result.confidence_interval
            figures += [low <= difference <= high, high - low]
    return [*figures, difference]


def compare_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """Yield the lines of the table `compare`."""
    kinds = "basic", *(kind for name in COMPARED for kind in (name, "width"))
    yield [
        "models",
        "true difference",
        *(f"{n} rows: {kind}" for n in options.sizes for kind in kinds),
    ]
    for pair in pairs():
        population = pair_data(pair, np.random.default_rng(SEED), REFERENCE)
        line = [pair.name, ""]
        for n in options.sizes:
            one = partial(one_comparison, pair, n,
                          replicates=options.replicates, population=population)  # fmt: skip
            figures = list(pool.map(one, range(options.simulations)))
            *means, difference = np.mean(np.array(figures, float), axis=0)
            by_estimator = np.reshape(means, (len(COMPARED), 4))
            line[1] = f"{difference:.4f}"
            # The basic interval of the first estimator, then "mover" of each.
            line.append(f"{100 * by_estimator[0, 0]:.0f}")
            for _, width_basic, covers, width in by_estimator:
                line += [f"{100 * covers:.0f}", f"{width / width_basic:.2f}"]
        yield line


# --- equal errors ---------------------------------------------------------------------------


def fifths(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return scores of a calibrated model that rounds uniform chances to five values."""
    return (np.floor(5 * q).clip(0, 4) + 0.5) / 5


def equal_pairs() -> list[Pair]:
    """Return pairs with different scores and equal errors.

    Both are calibrated, or have the same distribution, or are mirror images.
    """
    return [
        Pair("both calibrated", beta(1, 1), slope(1), fifths),
        Pair("noise .1 each", beta(2, 0.8), noisy(0.1), noisy(0.1)),
        Pair("noise .7 each", beta(2, 0.8), noisy(0.7), noisy(0.7)),
        Pair("shifts .3 and -.3", beta(2, 2), slope(1, 0.3), slope(1, -0.3)),
        Pair("shifts .7 and -.7", beta(2, 2), slope(1, 0.7), slope(1, -0.7)),
        Pair("sharp: shifts 1 and -1", beta(0.3, 0.3), slope(1, 1), slope(1, -1)),
    ]


def one_alarm(pair: Pair, n: int, number: int, replicates: int) -> list[bool]:
    """Return whether equal models differ at 5 %, by both methods."""
    rng = np.random.default_rng([SEED, n, number, *pair.name.encode()])
    q, a, b = pair_data(pair, rng, n)
    y = rng.random(n) < q
    options = {"n_resamples": replicates, "rng": int(rng.integers(2**32))}
    results = [
        fastece.compare(y, a, b, **options, estimator="ece", method=method)
        for method in ("basic", "mover")
    ]
    return [result.p_value < 1 - LEVEL for result in results]


def alarm_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """Yield the lines of the table `alarms`."""
    kinds = ("basic", "mover")
    yield ["models", *(f"{n} rows: {kind}" for n in options.sizes for kind in kinds)]
    for pair in equal_pairs():
        line = [pair.name]
        for n in options.sizes:
            one = partial(one_alarm, pair, n, replicates=options.replicates)
            rates = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
            line += [f"{100 * rate:.1f}" for rate in rates]
        yield line


# --- direction ------------------------------------------------------------------------------


def one_direction(shape: Shape, n: int, number: int, replicates: int, population: Any) -> list[Any]:
    """Return true over- and under-confidence and mean gap, then whether their intervals cover."""
    rng = np.random.default_rng([SEED, n, number, *shape.name.encode()])
    s = shape.scores(rng, n)
    y = rng.random(n) < shape.curve(s)
    gap = binned_gaps(fastece.Binned(), s, *population)
    truth = [-gap.clip(max=0).sum(), gap.clip(min=0).sum(), gap.sum()]
    result = fastece.direction(y, s, n_resamples=replicates, rng=rng)
    intervals: Any = result.over_interval, result.under_interval, result.mean_gap_interval
    covered = [x.low - 1e-9 <= t <= x.high + 1e-9 for x, t in zip(intervals, truth, strict=True)]
    return [*truth, *covered]


def direction_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """Yield the lines of the table `direction`."""
    yield ["scores", "rows", "true over", "true under", "over", "under", "mean gap"]
    for shape in shapes():
        scores = shape.scores(np.random.default_rng(SEED), REFERENCE)
        population = scores, shape.curve(scores)
        for n in options.sizes:
            one = partial(one_direction, shape, n, replicates=options.replicates,
                          population=population)  # fmt: skip
            figures = list(pool.map(one, range(options.simulations)))
            over, under, _, *covers = np.mean(np.array(figures, np.float64), axis=0)
            covered = [f"{100 * x:.1f}" for x in covers]
            yield [shape.name, f"{n}", f"{over:.4f}", f"{under:.4f}", *covered]


# --- slices ---------------------------------------------------------------------------------

GROUPS = 20


def one_table(n: int, name: str, number: int, replicates: int) -> list[bool]:
    """Return three facts about 20 groups.

    They are: whether any group is flagged where all are calibrated, whether the only over-confident
    group is detected, and whether all intervals cover where all groups are over-confident.
    """
    rng = np.random.default_rng([SEED, n, number])
    by = np.arange(n * GROUPS) % GROUPS
    tables = []
    for over_confident in ([], [0], by):
        s = rng.beta(5, 1.5, by.size)
        chance = np.where(np.isin(by, over_confident), tempered(s, 0.6), s)
        y = rng.random(s.size) < chance
        options = {"estimator": name, "n_resamples": replicates, "rng": rng}
        tables.append(fastece.slices(y, s, by=by, **options))
    all_calibrated, one_off, all_off = tables
    scores = np.random.default_rng(SEED).beta(5, 1.5, REFERENCE)
    gap = tempered(scores, 0.6) - scores
    truth = np.abs(gap).mean()
    if name != "ece_bayes":
        truth = np.abs(binned_gaps(fastece.ESTIMATORS[name], scores, scores, gap + scores)).sum()
    return [
        any(row.p_value <= 0.05 for row in all_calibrated),
        any(row.p_value <= 0.05 for row in one_off if row.label == 0),
        all(row.low <= truth <= row.high for row in all_off),
    ]


def slices_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """Yield the lines of the table `slices`."""
    yield ["estimator", "rows of a group", "some flagged", "the one found", "all held"]
    for name in ("ece_bayes", "ece"):
        for n in options.sizes:
            one = partial(one_table, n, name, replicates=options.replicates)
            shares = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
            yield [name, f"{n}", *(f"{100 * share:.1f}" for share in shares)]


# --- tables -----------------------------------------------------------------------------------


class Table(NamedTuple):
    """The name of a file, what yields its lines, and the design that it was published with."""

    file: str
    lines: Callable[[Any, ThreadPoolExecutor], Any]
    sizes: tuple[int, ...]
    simulations: int


TABLES = {
    "estimate": Table("estimate_coverage", estimate_rows, (100, 1000, 5000), 100),
    "compare": Table("mover_coverage", compare_rows, (200, 1000), 60),
    "alarms": Table("mover_alarms", alarm_rows, (200, 1000), 100),
    "direction": Table("direction_coverage", direction_rows, (200, 2000), 200),
    "slices": Table("slices_coverage", slices_rows, (100, 1000), 300),
}


def main() -> None:
    """Write a table."""
    parser = new_parser(__doc__)
    parser.add_argument("table", choices=list(TABLES))
    parser.add_argument("--simulations", type=int)
    parser.add_argument("--replicates", type=int, default=999)
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    table = TABLES[options.table]
    options.sizes = options.sizes or table.sizes
    options.simulations = options.simulations or table.simulations
    with ThreadPoolExecutor(options.threads) as pool:
        head, *rows = table.lines(options, pool)
    write_table(options.out, table.file, head, rows)


if __name__ == "__main__":
    main()
