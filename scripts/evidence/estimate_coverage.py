"""Coverage of the intervals of `estimate`, `compare` (method="mover"), `direction`, `slices`, and
how often `compare` tells equal models apart.

Scores of several shapes, each with a curve ``c(s) = P(y = 1 | s)`` that is known, so the error that
an interval is to hold is known too: of bins the error of the population *with the bins of the
sample*, of a density the smoothed gap with its bandwidth, of a curve the mean gap of neighbours,
all from 20 000 other scores and their exact chances. Prints the tables of ``docs/intervals.md`` and
``docs/direction.md``, and draws a picture. Every simulation has a seed of its own, so the numbers
do not depend on the threads.
"""

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import numpy as np

import fastece
from fastece.cli.demo import PREDICTIONS as DEMO
from fastece.data.sources import one_problem
from fastece.estimators.protocol import Sample
from fastece.files import read_predictions

SEED, REFERENCE, LEVEL = 20240601, 20_000, 0.95
ESTIMATORS, COMPARED = ("ece", "ece_ac", "ece_kde"), ("ece", "ece_bayes")
Scores = Callable[[np.random.Generator, int], Any]


class Shape(NamedTuple):
    """Scores, and how often they come true."""

    name: str
    scores: Scores
    curve: Callable[[Any], Any]


# --- shapes ---------------------------------------------------------------------------------


def logit(s: Any) -> Any:
    """Log odds."""
    s = np.clip(s, 1e-9, 1 - 1e-9)
    return np.log(s) - np.log1p(-s)


def tempered(s: Any, slope: float, shift: float = 0.0) -> Any:
    """A curve that is a line in log odds: as of a network that is too sure for slopes below 1."""
    return 1 / (1 + np.exp(-slope * logit(s) - shift))


def beta(a: float, b: float) -> Scores:
    """Scores of a Beta law."""
    return lambda rng, n: rng.beta(a, b, n)


def heaped(rng: np.random.Generator, n: int) -> Any:
    """Half of the scores within 1e-6 of 1."""
    return np.where(rng.random(n) < 0.5, 1 - 1e-6 * rng.random(n), rng.beta(4, 1.5, n))


def hundredths(rng: np.random.Generator, n: int) -> Any:
    """Multiples of 0.01."""
    return rng.beta(4, 1.5, n).round(2)


@lru_cache(maxsize=1)
def digits() -> Any:
    """The scores of a network's top labels on handwritten digits."""
    with as_file(files("fastece").joinpath("data", DEMO)) as shipped:
        return np.asarray(read_predictions(shipped).y_prob, np.float64).max(1)


def real(rng: np.random.Generator, n: int) -> Any:
    """Scores of a real network."""
    return rng.choice(digits(), n)


def shapes() -> list[Shape]:
    """The table's rows: calibrated, a little off, far off, of every kind."""
    return [
        Shape("Beta(5, 1.5), calibrated", beta(5, 1.5), lambda s: s),
        Shape("Beta(5, 1.5), too sure", beta(5, 1.5), lambda s: s - 0.1 * 4 * s * (1 - s)),
        Shape("uniform, much too sure", beta(1, 1), partial(tempered, slope=0.5)),
        Shape("uniform, a wave", beta(1, 1), lambda s: s + 0.4 * s * (1 - s) * np.sin(19 * s)),
        Shape("sharp Beta(.5, .2), too sure", beta(0.5, 0.2), partial(tempered, slope=0.7)),
        Shape("rare events, too low", beta(0.4, 6), partial(tempered, slope=1.0, shift=0.4)),
        Shape("half at 1, 3 % of them wrong", heaped, lambda s: np.minimum(s, 0.97)),
        Shape("multiples of 0.01, steps", hundredths, lambda s: np.floor(5 * s + 0.5) / 5),
        Shape("digits, calibrated", real, lambda s: s),
        Shape("digits, too sure", real, partial(tempered, slope=0.6)),
    ]


# --- true errors ----------------------------------------------------------------------------


def sample_of(s: Any, y: Any) -> Sample:
    """A binary problem."""
    rows = np.arange(s.size)
    return Sample(s, np.asarray(y, np.uint8), None, 0.0, 1.0, rows)


def binned_gaps(estimator: Any, s: Any, scores: Any, hit: Any) -> Any:
    """The gaps of a population, its `scores` and how often they `hit`, in the bins of s."""
    data = sample_of(s, np.zeros(s.size))
    layout = estimator.layout(one_problem(data), estimator.n_bins)
    _, lower, a = layout.place(scores)
    gap = np.bincount(lower, a * (hit - scores), layout.cells + 1)
    gap += np.bincount(lower + 1, (1 - a) * (hit - scores), layout.cells + 1)[: gap.size]
    return gap / scores.size


def density_truth(estimator: Any, s: Any, scores: Any, hit: Any) -> float:
    """The smoothed gap of a population, with the bandwidth for s."""
    data = sample_of(s, np.zeros(s.size)).sorted()
    h = estimator.prepare(data, s.size).bandwidth
    twice, once = np.tile(scores, 2), np.repeat([1, 0], scores.size)
    plan = fastece.KDE(bandwidth=float(h)).prepare(sample_of(twice, once).sorted(), scores.size)
    order = np.argsort(twice, kind="stable")
    hits = [np.concatenate([chance, 1 - chance])[order] for chance in (hit, scores)]
    seen, expected = (plan.density(c).values[0, 1, :, 0] for c in hits)
    return float((np.abs(seen - expected) * plan.mesh.width).sum())


def curve_truth(scores: Any, hit: Any) -> float:
    """The error of a population's curve: gaps of 400 neighbours, or of all rows of one score."""
    order = np.argsort(scores, kind="stable")
    s = scores[order]
    return float(
        np.abs(np.bincount(np.searchsorted(s, s) // 400, (hit - scores)[order])).sum() / s.size
    )


def truth_of(estimator: Any, s: Any, scores: Any, hit: Any) -> float:
    """The error that an interval is to hold."""
    if isinstance(estimator, fastece.Binned):
        return float(np.abs(binned_gaps(estimator, s, scores, hit)).sum())
    if isinstance(estimator, fastece.BayesCurve):
        return curve_truth(scores, hit)
    return density_truth(estimator, s, scores, hit)


# --- estimate -------------------------------------------------------------------------------


def one_estimate(shape: Shape, n: int, number: int, replicates: int, population: Any) -> list[Any]:
    """Of each estimator whether the interval covers and its width, and of the basic interval."""
    rng = np.random.default_rng([SEED, n, number, *shape.name.encode()])
    s = shape.scores(rng, n)
    y = rng.random(n) < shape.curve(s)
    out = []
    for name in ESTIMATORS:
        result = fastece.estimate(y, s, estimator=name, n_resamples=replicates, rng=rng)
        low, high = result.confidence_interval
        truth = truth_of(fastece.ESTIMATORS[name], s, *population)
        out += [low - 1e-9 <= truth <= high + 1e-9, high - low]
        if name == ESTIMATORS[0]:
            basic = fastece.bootstrap(y, s, n_resamples=replicates, rng=rng).confidence_interval
            out += [basic.low <= truth <= basic.high, basic.high - basic.low, truth]
    return out


def estimate_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """The lines of the first table."""
    yield ["scores", "rows", "true ECE", "basic", *(f"`{name}`" for name in ESTIMATORS), "width",
           "basic: width"]  # fmt: skip
    for shape in shapes():
        if not shape.name.startswith(tuple(options.shapes)):
            continue
        scores = shape.scores(np.random.default_rng(SEED), REFERENCE)
        population = scores, shape.curve(scores)
        for n in options.sizes:
            one = partial(one_estimate, shape, n, replicates=options.replicates,
                          population=population)  # fmt: skip
            found = list(pool.map(one, range(options.simulations)))
            x = np.mean(np.array(found, np.float64), axis=0)
            covered = [f"{100 * c:.1f}" for c in (x[2], x[0], x[5], x[7])]
            yield [shape.name, f"{n}", f"{x[4]:.4f}", *covered, f"{x[1]:.4f}", f"{x[3]:.4f}"]


# --- compare --------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Chances of hits, and what two models make of them."""

    name: str
    chances: Scores
    a: Callable[..., Any]
    b: Callable[..., Any]


def slope(t: float, shift: float = 0.0) -> Callable[..., Any]:
    """A model that is off by a line in log odds."""
    return lambda q, rng: tempered(q, t, shift)  # noqa: ARG005


def noisy(sd: float) -> Callable[..., Any]:
    """A model that knows the log odds up to noise."""
    return lambda q, rng: 1 / (1 + np.exp(-logit(q) - sd * rng.normal(size=q.size)))


def waved(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """A model that is off by a wave."""
    return np.clip(q + 0.08 * np.sin(12 * q), 1e-4, 1 - 1e-4)


def saturated(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """A model whose scores above .85 are too high, many of them 1."""
    return np.where(q > 0.85, np.minimum(q + 0.12, 1), q)


def heap(q: Any, rng: Any) -> Any:
    """A model that gives .7 to a third of the rows."""
    return np.where(rng.random(q.size) < 0.3, 0.7, q)


def jump(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """A model that is too sure above .68 alone."""
    return np.where(q > 0.68, np.minimum(q + 0.12, 1), q)


def pairs() -> list[Pair]:
    """Twenty pairs of models."""
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
        Pair("uniform: heap, wave", beta(1, 1), heap, waved),
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
    """Chances and the scores of both models."""
    q = np.clip(pair.chances(rng, n), 1e-5, 1 - 1e-5)
    return q, pair.a(q, rng), pair.b(q, rng)


def one_comparison(pair: Pair, n: int, number: int, replicates: int, population: Any) -> list[Any]:
    """Whether intervals cover, basic and "mover", and their widths, of both estimators; then the
    difference."""
    rng = np.random.default_rng([SEED, n, number, *pair.name.encode()])
    q, a, b = pair_data(pair, rng, n)
    y = rng.random(n) < q
    options = {"n_resamples": replicates, "rng": int(rng.integers(2**32))}
    q, *models = population
    out: list[Any] = []
    for name in COMPARED:
        estimator = fastece.ESTIMATORS[name]
        parts = zip((a, b), models, strict=True)
        d = np.subtract(*(truth_of(estimator, s, m, q) for s, m in parts))
        for method in ("basic", "mover"):
            result = fastece.compare(y, a, b, **options, estimator=name, method=method)
            low, high = result.confidence_interval
            out += [low <= d <= high, high - low]
    return [*out, d]


def compare_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """The lines of the second table."""
    kinds = "basic", *(kind for name in COMPARED for kind in (f"`{name}`", "width"))
    yield ["models", "difference", *(f"{n}: {kind}" for n in options.sizes for kind in kinds)]
    for pair in pairs():
        population = pair_data(pair, np.random.default_rng(SEED), REFERENCE)
        line = [pair.name, ""]
        for n in options.sizes:
            one = partial(one_comparison, pair, n,
                          replicates=options.replicates, population=population)  # fmt: skip
            x = np.mean(np.array(list(pool.map(one, range(options.simulations))), float), axis=0)
            line[1] = f"{x[8]:.4f}"
            line += [f"{100 * x[0]:.0f}"]
            line += [
                part
                for i in (0, 4)
                for part in (f"{100 * x[i + 2]:.0f}", f"{x[i + 3] / x[i + 1]:.2f}")
            ]
        yield line


# --- equal errors ---------------------------------------------------------------------------


def fifths(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """A calibrated model that tells apart five kinds of rows whose chances are uniform."""
    return (np.floor(5 * q).clip(0, 4) + 0.5) / 5


def equal_pairs() -> list[Pair]:
    """Pairs of other scores and the same error: both calibrated, alike, or mirror images."""
    return [
        Pair("both calibrated", beta(1, 1), slope(1), fifths),
        Pair("noise .1 each", beta(2, 0.8), noisy(0.1), noisy(0.1)),
        Pair("noise .7 each", beta(2, 0.8), noisy(0.7), noisy(0.7)),
        Pair("shifts .3 and -.3", beta(2, 2), slope(1, 0.3), slope(1, -0.3)),
        Pair("shifts .7 and -.7", beta(2, 2), slope(1, 0.7), slope(1, -0.7)),
        Pair("sharp: shifts 1 and -1", beta(0.3, 0.3), slope(1, 1), slope(1, -1)),
    ]


def one_alarm(pair: Pair, n: int, number: int, replicates: int) -> list[bool]:
    """Whether equal models differ at 5 %: "ece" by both methods, "ece_bayes" by "mover"."""
    rng = np.random.default_rng([SEED, n, number, *pair.name.encode()])
    q, a, b = pair_data(pair, rng, n)
    y = rng.random(n) < q
    options = {"n_resamples": replicates, "rng": int(rng.integers(2**32))}
    results = [fastece.compare(y, a, b, **options, estimator="ece", method="basic")]
    results += [
        fastece.compare(y, a, b, **options, estimator=name, method="mover")
        for name in ("ece", "ece_bayes")
    ]
    return [result.p_value < 1 - LEVEL for result in results]


def alarm_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """The lines of the third table."""
    kinds = ("basic", "`ece`", "`ece_bayes`")
    yield ["models", *(f"{n} rows: {kind}" for n in options.sizes for kind in kinds)]
    for pair in equal_pairs():
        line = [pair.name]
        for n in options.sizes:
            one = partial(one_alarm, pair, n, replicates=options.replicates)
            x = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
            line += [f"{100 * rate:.1f}" for rate in x]
        yield line


# --- direction ------------------------------------------------------------------------------


def one_direction(shape: Shape, n: int, number: int, replicates: int, population: Any) -> list[Any]:
    """The true parts and the mean gap, and whether their intervals cover."""
    rng = np.random.default_rng([SEED, n, number, *shape.name.encode()])
    s = shape.scores(rng, n)
    y = rng.random(n) < shape.curve(s)
    gap = binned_gaps(fastece.Binned(), s, *population)
    truth = [-gap.clip(max=0).sum(), gap.clip(min=0).sum(), gap.sum()]
    found = fastece.direction(y, s, n_resamples=replicates, rng=rng)
    ends: Any = found.over_interval, found.under_interval, found.mean_gap_interval
    covered = [x.low - 1e-9 <= t <= x.high + 1e-9 for x, t in zip(ends, truth, strict=True)]
    return [*truth, *covered]


def direction_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """The lines of the fourth table."""
    yield ["scores", "rows", "true over", "true under", "over", "under", "mean gap"]
    for shape in shapes():
        scores = shape.scores(np.random.default_rng(SEED), REFERENCE)
        population = scores, shape.curve(scores)
        for n in options.sizes:
            one = partial(one_direction, shape, n, replicates=options.replicates,
                          population=population)  # fmt: skip
            found = list(pool.map(one, range(options.simulations)))
            x = np.mean(np.array(found, np.float64), axis=0)
            covered = [f"{100 * c:.1f}" for c in x[3:]]
            yield [shape.name, f"{n}", f"{x[0]:.4f}", f"{x[1]:.4f}", *covered]


# --- slices ---------------------------------------------------------------------------------

GROUPS = 20


def one_table(n: int, name: str, number: int, replicates: int) -> list[bool]:
    """Of 20 groups whether some calibrated one is flagged, whether the one that is too sure is
    found, and whether all intervals hold where all groups are."""
    rng = np.random.default_rng([SEED, n, number])
    by = np.arange(n * GROUPS) % GROUPS
    found = []
    for off in ([], [0], by):
        s = rng.beta(5, 1.5, by.size)
        y = rng.random(s.size) < np.where(np.isin(by, off), tempered(s, 0.6), s)
        options = {"estimator": name, "n_resamples": replicates, "rng": rng}
        found.append(fastece.slices(y, s, by=by, **options))
    none, one, every = found
    scores = np.random.default_rng(SEED).beta(5, 1.5, REFERENCE)
    gap = tempered(scores, 0.6) - scores
    truth = np.abs(gap).mean()
    if name != "ece_bayes":
        truth = np.abs(binned_gaps(fastece.ESTIMATORS[name], scores, scores, gap + scores)).sum()
    return [
        any(row.p_value <= 0.05 for row in none),
        any(row.p_value <= 0.05 for row in one if row.label == 0),
        all(row.low <= truth <= row.high for row in every),
    ]


def slices_rows(options: Any, pool: ThreadPoolExecutor) -> Any:
    """The lines of the fifth table."""
    yield ["estimator", "rows of a group", "some flagged", "the one found", "all held"]
    for name in ("ece_bayes", "ece"):
        for n in options.sizes:
            one = partial(one_table, n, name, replicates=options.replicates)
            x = np.mean(list(pool.map(one, range(options.simulations))), axis=0)
            yield [f"`{name}`", f"{n}", *(f"{100 * part:.1f}" for part in x)]


# --- picture --------------------------------------------------------------------------------


def draw(path: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Coverage by the number of rows from the lines of the first table: a panel for each kind of
    interval, a line for each shape."""
    from matplotlib.figure import Figure

    kinds = {head[j].strip("`"): j for j in range(3, 4 + len(ESTIMATORS))}
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    panels = figure.subplots(1, len(kinds), sharey=True)
    names = list(dict.fromkeys(row[0] for row in rows))
    for ax, (kind, j) in zip(panels, kinds.items(), strict=True):
        ax.axhline(100 * LEVEL, color="0.7", linewidth=0.8)
        for i, name in enumerate(names):
            mine = [(int(row[1]), float(row[j])) for row in rows if row[0] == name]
            ax.plot(*zip(*mine, strict=True), marker=".", color=f"C{i}", linewidth=1, label=name)
        ax.set(xscale="log", ylim=(40, 101), title=f"{kind}{' bootstrap' * (kind == 'basic')}")
        ax.set_xlabel("rows")
    panels[0].set_ylabel("intervals that hold the truth, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=4, fontsize="small", frameon=False
    )
    figure.savefig(path, dpi=110)


TABLES = {
    "estimate": estimate_rows,
    "compare": compare_rows,
    "alarms": alarm_rows,
    "direction": direction_rows,
    "slices": slices_rows,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", choices=list(TABLES))
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=999)
    parser.add_argument("--sizes", type=int, nargs="+", default=(100, 1000, 10_000))
    parser.add_argument(
        "--shapes", nargs="+", default=[""], help="first words of some, of estimate"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--picture", metavar="FILE", help="of the table estimate, with matplotlib")
    options = parser.parse_args(arguments)
    if options.picture and options.table != "estimate":
        parser.error("--picture goes with the table estimate")
    lines = []
    with ThreadPoolExecutor(options.threads) as pool:
        for cells in TABLES[options.table](options, pool):
            print(f"| {' | '.join(cells)} |", flush=True)
            if not lines:
                print("| :--- |" + " ---: |" * (len(cells) - 1), flush=True)
            lines.append(cells)
    if options.picture:
        draw(options.picture, *lines[:1], lines[1:])


if __name__ == "__main__":
    main()
