"""Coverage and width of the intervals of `compare` for "ece_bayes", on 45 pairs of models.

Twenty pairs and three with equal errors come from ``estimate_coverage.py``. The others have rough
curves, scores near 1, few events, ties, weights, groups and several classes. The true errors come
from 100 000 other rows, with the exact chances averaged over 400 neighbours. The unit of widths is
the mean width of the basic bootstrap interval for "ece".

Where intervals are more than `WIDE` times as wide, a second table has their width in another unit:
basic intervals that are stretched about their middles by one factor, such that 95 % of those of a
cell cover the true difference. Only somebody who knows the truth can stretch them so.

Writes ``compare_coverage.csv`` and ``compare_wide.csv``. Every simulation has its own seed.
``--pairs`` prints some rows.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from estimate_coverage import (
    Pair,
    beta,
    curve_truth,
    equal_pairs,
    jump,
    near_one,
    pair_data,
    pairs,
    real,
    slope,
    waved,
)
from results import new_parser, write_table

from fastece import compare
from fastece.data.errors import RowsWarning

SEED = 20261127
REFERENCE = 100_000
LEVELS = (0.8, 0.9, 0.95, 0.99)
# Rows of a group, half of which share the random number that decides their outcomes.
GROUP_ROWS = 5
# Several classes take as many times longer, and have as many times fewer simulations.
CLASS_FACTOR = 4
# Errors with a smaller true difference count as equal: the reference has noise.
EQUAL = 0.001
# Cells with wider intervals than so many times the basic one are in the second table.
WIDE = 2.1
# How often stretched basic intervals cover the true difference.
STRETCHED_LEVEL = 0.95


class Data(NamedTuple):
    """Outcomes, the chances behind them, the scores of both models and options of `compare`."""

    y: Any
    chances: Any
    a: Any
    b: Any
    options: dict[str, Any]


# --- models ---------------------------------------------------------------------------------


def same(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return the chances themselves: a calibrated model."""
    return q


def wave(height: float, turns: float) -> Any:
    """Return a model whose scores wave around the chances."""
    return lambda q, rng: np.clip(q + 4 * height * q * (1 - q) * np.sin(turns * q), 1e-5, 1 - 1e-5)  # noqa: ARG005


def blocks(count: int, height: float) -> Any:
    """Return a model that is too high and too low in turn, in blocks of the chances."""

    def scores(q: Any, rng: Any) -> Any:  # noqa: ARG001
        sign = np.where(np.floor(count * q).astype(int) % 2 == 0, 1, -1)
        return np.clip(q + height * sign, 1e-5, 1 - 1e-5)

    return scores


def rounded(model: Any) -> Any:
    """Return a model whose scores are multiples of 0.01."""
    return lambda q, rng: np.clip(model(q, rng).round(2), 0, 1)


def one_bin(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return scores that are too high by .15 where the chance is from .5 to .6."""
    return np.where((q > 0.5) & (q < 0.6), q + 0.15, q)


def near_top(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return scores that are too near to 1 where the chance is above .8."""
    return np.where(q > 0.8, 1 - (1 - q) * 0.3, q)


def at_most_97(q: Any, rng: Any) -> Any:  # noqa: ARG001
    """Return the chances, or .97 where they are larger."""
    return np.minimum(q, 0.97)


def top_heavy(rng: np.random.Generator, n: int) -> Any:
    """Draw chances of which three in five are near 1."""
    return np.where(rng.random(n) < 0.6, rng.beta(40, 1.2, n), rng.beta(2, 1.5, n))


def score_pairs() -> list[Pair]:
    """Return the pairs of models with one score for each row."""
    uniform = beta(1, 1)
    rare = beta(0.4, 6)
    calibrated = slope(1)
    unequal = pairs()
    names = {pair.name for pair in unequal}
    return [
        *unequal,
        *(pair for pair in equal_pairs() if pair.name not in names),
        Pair("top-heavy: near 1, wave", top_heavy, near_top, wave(0.1, 19)),
        Pair("top-heavy: wave, calibrated", top_heavy, wave(0.1, 19), same),
        Pair("uniform: 8 blocks, calibrated", uniform, blocks(8, 0.06), same),
        Pair("uniform: 8 blocks, 16 blocks", uniform, blocks(8, 0.06), blocks(16, 0.06)),
        Pair("uniform: one bin, calibrated", uniform, one_bin, same),
        Pair("uniform: waves", uniform, wave(0.08, 12), wave(0.08, 25)),
        Pair("rare: calibrated, shift", rare, same, slope(1, -0.5)),
        Pair("rare: slope 1.5, shift", rare, slope(1.5), slope(1, -0.5)),
        Pair("hundredths: slope 1.3, calibrated", beta(4, 1.5), rounded(slope(1.3)), rounded(same)),
        Pair("near one: calibrated, at most .97", near_one, same, at_most_97),
        Pair("digits: slope 1.6, calibrated", real, slope(1.6), same),
        Pair("digits: slopes 1.6 and .7", real, slope(1.6), slope(0.7)),
        Pair("uniform: slopes 1 and 1.1", uniform, calibrated, slope(1.1)),
        Pair("uniform: jump, wave", uniform, jump, waved),
        Pair("weights: calibrated, slope 1.5", beta(2, 0.8), calibrated, slope(1.5)),
        Pair("weights: wave, shift .5", uniform, waved, slope(1, 0.5)),
        Pair("groups: calibrated, slope 1.6", beta(5, 1.5), calibrated, slope(1.6)),
        Pair("groups: slopes 1.5 and .6", beta(5, 1.5), slope(1.5), slope(0.6)),
        Pair("Beta(2, 2): shifts .7 and -.7", beta(2, 2), slope(1, 0.7), slope(1, -0.7)),
    ]


class ClassPair(NamedTuple):
    """Two models of several classes, by the factors and the first class's shift of their logits."""

    name: str
    n_classes: int
    factors: tuple[float, float]
    shifts: tuple[float, float]


CLASS_PAIRS = [
    ClassPair("5 classes: calibrated, slope 1.7", 5, (1.0, 1.7), (0.0, 0.0)),
    ClassPair("5 classes: slopes 1.7 and .7", 5, (1.7, 0.7), (0.0, 0.0)),
    ClassPair("10 classes: slope 1.7, shift .8", 10, (1.7, 1.0), (0.0, 0.8)),
]


def compared_pairs() -> list[Pair | ClassPair]:
    """Return the pairs of models of the table."""
    return [*score_pairs(), *CLASS_PAIRS]


def simulate(pair: Pair | ClassPair, rng: np.random.Generator, n: int) -> Data:
    """Draw the rows of a pair."""
    if isinstance(pair, ClassPair):
        return simulate_classes(pair, rng, n)
    if pair.name.startswith("groups"):
        group = np.arange(n) // GROUP_ROWS
        q, a, b = pair_data(pair, rng, n)
        shared = rng.random(group[-1] + 1)[group]
        u = np.where(rng.random(n) < 0.5, shared, rng.random(n))
        return Data(u < q, q, a, b, {"groups": group})
    q, a, b = pair_data(pair, rng, n)
    y = rng.random(n) < q
    options = {}
    if pair.name.startswith("weights"):
        options["sample_weight"] = rng.gamma(2, size=n)
    return Data(y, q, a, b, options)


def simulate_classes(pair: ClassPair, rng: np.random.Generator, n: int) -> Data:
    """Draw the rows of a pair of models of several classes."""
    logits = 1.5 * rng.normal(size=(n, pair.n_classes))
    first_class = np.eye(pair.n_classes)[0]
    q = softmax(logits)
    y = (q.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, pair.n_classes - 1)
    a, b = (
        softmax(factor * logits + shift * first_class)
        for factor, shift in zip(pair.factors, pair.shifts, strict=True)
    )
    return Data(y, q, a, b, {"setting": "classwise"})


def softmax(logits: Any) -> Any:
    """Return the probabilities (n, K) of logits (n, K)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def true_difference(pair: Pair | ClassPair) -> float:
    """Return the error of the first model minus the error of the second."""
    data = simulate(pair, np.random.default_rng(SEED), REFERENCE)
    columns = [np.reshape(x, (REFERENCE, -1)).T for x in (data.a, data.b, data.chances)]
    differences = [curve_truth(a, q) - curve_truth(b, q) for a, b, q in zip(*columns, strict=True)]
    return float(np.mean(differences))


# --- simulations ----------------------------------------------------------------------------


def one_comparison(pair: Pair | ClassPair, n: int, truth: float, number: int) -> Any:
    """Return coverage by level, the width, whether 0 is outside, and the same for "basic".

    The last number is the factor by which the basic interval has to be stretched about its middle
    to reach the true difference.
    """
    rng = np.random.default_rng([SEED, n, number, *pair.name.encode()])
    data = simulate(pair, rng, n)
    result = compare(data.y, data.a, data.b, rng=number, **data.options)
    basic = compare(data.y, data.a, data.b, rng=number, estimator="ece", method="basic",
                    n_resamples=199, **data.options)  # fmt: skip
    intervals = [result.interval(level) for level in LEVELS]
    low, high = result.confidence_interval
    basic_low, basic_high = basic.confidence_interval
    basic_width = basic_high - basic_low
    distance = abs(truth - (basic_low + basic_high) / 2)
    return [
        *(x.low - 1e-9 <= truth <= x.high + 1e-9 for x in intervals),
        high - low,
        low > 0 or high < 0,
        basic_low <= truth <= basic_high,
        basic_width,
        2 * distance / basic_width,
    ]


def main() -> None:
    """Write the tables, and print a summary."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 3000])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pairs", nargs="+", metavar="PAIR", help="names of pairs of the table")
    options = parser.parse_args()
    # In a few samples of rare outcomes a model is no better than chance.
    warnings.simplefilter("ignore", RowsWarning)
    columns = ("basic", "coverage", "width")
    sizes = [f"{n} rows: {x}" for n in options.sizes for x in columns]
    rows = []
    cells = []
    wide = []
    alarms = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for pair in compared_pairs():
            if options.pairs and pair.name not in options.pairs:
                continue
            truth = true_difference(pair)
            count = options.simulations
            if isinstance(pair, ClassPair):
                count = max(count // CLASS_FACTOR, 1)
            line = [pair.name, f"{truth:.4f}"]
            for n in options.sizes:
                one = partial(one_comparison, pair, n, truth)
                figures = np.array(list(pool.map(one, range(count))), float)
                *covered, width, rejected, basic, basic_width, _ = figures.mean(axis=0)
                if width / basic_width > WIDE:
                    factor = np.quantile(figures[:, -1], STRETCHED_LEVEL)
                    wide.append([
                        pair.name, f"{n}", f"{100 * basic:.0f}", f"{100 * covered[2]:.0f}",
                        f"{width / basic_width:.2f}", f"{width / basic_width / factor:.2f}",
                    ])  # fmt: skip
                cells.append([*covered, width / basic_width, basic])
                line += [f"{100 * basic:.0f}", f"{100 * covered[2]:.0f}",
                         f"{width / basic_width:.2f}"]  # fmt: skip
                if abs(truth) < EQUAL:
                    alarms[f"{pair.name}, {n} rows"] = round(100 * rejected, 1)
            rows.append(line)
    head = ["models", "true difference", *sizes]
    write_table(options.out, "compare_coverage", head, rows)
    head = ["models", "rows", "basic", "coverage", "width", "width by stretched basic"]
    write_table(options.out, "compare_wide", head, wide)
    *coverage, ratio, basic = np.array(cells).T
    print("\nmean width", ratio.mean().round(3), "largest", ratio.max().round(2))
    for level, covered in zip(LEVELS, coverage, strict=True):
        print("level", level, "mean", (100 * covered.mean()).round(1), "lowest",
              (100 * np.sort(covered)[:5]).round(1))  # fmt: skip
    print("basic: mean", (100 * basic.mean()).round(1), "lowest", (100 * basic.min()).round(1))
    print("equal errors told apart", alarms)


if __name__ == "__main__":
    main()
