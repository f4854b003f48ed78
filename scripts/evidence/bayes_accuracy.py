"""How close the Bayesian curve's error comes to the truth, and how often its interval covers it.

There are three arenas: the study's distributions of scores (with any seed), curves of shapes that
the study does not have, calibrated ones among them, and, instead of both, files of predictions.
Prints the tables of docs/explanation/bayes.md.

    python scripts/evidence/bayes_accuracy.py --draws 40
    python scripts/evidence/bayes_accuracy.py --draws 100 --predictions resnet34.csv vgg16.npz
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import BayesCurve
from fastece.estimators.protocol import Sample
from fastece.resampling.problem import Problem
from fastece.study.candidates import BAYES, corrected
from fastece.study.estimation import drawn_rows
from fastece.study.prediction_files import Predictions
from fastece.study.simulated import Design
from fastece.study.truth import debiased_error

F64 = NDArray[np.float64]

SIZES = (30, 60, 100, 200, 500, 2000)
# Draws have at most this share of the rows, since all rows together define the true error.
MAX_SHARE_DRAWN = 0.1
LEVEL = 0.95
# The estimators of the paper.
FIFTEEN = [candidate for candidate in corrected() if candidate.name != BAYES]
ROWS = 100_000


class Arena(NamedTuple):
    """Problems on the same rows, and the mean of their true errors."""

    samples: list[Sample]
    truth: float
    name: str = ""


class Performance(NamedTuple):
    """How well the Bayesian curve and the study's fifteen estimators did on one arena."""

    errors: list[float]  # of the Bayesian curve, as `errors_of` returns them
    errors_of_others: F64  # (15, 2)
    bias: float
    coverage: float
    width: float  # mean width of the interval, relative to the true error
    above_zero: float  # share of intervals whose low end is above 0


def arenas_of(study: Design | Predictions) -> Iterator[tuple[str, Arena]]:
    """Yield the settings of a study with an arena for each of its distributions of scores."""
    for which in study.distributions:
        for setting, samples, chances, n_bins in study.populations(which):
            pairs = zip(samples, chances, strict=True)
            truths = [debiased_error(x.s, q, n_bins)[0] for x, q in pairs]
            yield setting, Arena(samples, float(np.mean(truths)), str(which))


def drawn(samples: list[Sample], rows: NDArray[np.int64]) -> list[Sample]:
    """Return the rows of a draw, in the same order for all problems."""
    selected = [sample.where(rows) for sample in samples]
    return [Sample(x.s, x.y, x.v, x.low, x.high, np.arange(x.n)) for x in selected]


def measure(arena: Arena, n: int, draws: int, seed: int) -> Performance:
    """Draw rows of an arena many times, and return how well all estimators did."""
    rng = np.random.default_rng([seed, n])
    rows = rng.integers(arena.samples[0].n, size=(draws, n))
    posteriors = [
        BayesCurve().posterior(drawn(arena.samples, rows_of_draw)) for rows_of_draw in rows
    ]
    ratio = np.array([posterior.value for posterior in posteriors]) / arena.truth
    low, high = np.array([posterior.interval(LEVEL) for posterior in posteriors]).T
    covers = (low <= arena.truth) & (arena.truth <= high)
    width = (high - low) / arena.truth
    problems = [drawn_rows(Problem(sample), rows.astype(np.int32)) for sample in arena.samples]
    ratio_of_others = (
        np.array([other.mean(other.estimator, problems) for other in FIFTEEN]) / arena.truth
    )
    return Performance(
        errors=errors_of(ratio),
        errors_of_others=np.array([errors_of(x) for x in ratio_of_others]),
        bias=float(ratio.mean() - 1),
        coverage=float(covers.mean()),
        width=float(width.mean()),
        above_zero=float((low > 0).mean()),
    )


def errors_of(ratio: F64) -> list[float]:
    """Return the 95th percentile of the relative error, and the median absolute log ratio."""
    logs = np.abs(np.log(np.maximum(ratio, 1e-9)))
    return [float(np.quantile(np.abs(ratio - 1), 0.95)), float(np.median(logs))]


def logit(s: F64) -> F64:
    """Return log odds of scores, which are clipped to 1e-9 and 1 - 1e-9."""
    clipped = s.clip(1e-9, 1 - 1e-9)
    return np.asarray(np.log(clipped / (1 - clipped)))


def sigmoid(z: F64) -> F64:
    """Return the scores with given log odds."""
    return np.asarray(1 / (1 + np.exp(-z)))


def wave(periods: int) -> Callable[[F64], F64]:
    """Return a curve that is a wave over the ranks, with an amplitude of 0.7 in the logit."""

    def curve(s: F64) -> F64:
        rank = (s.argsort().argsort() + 0.5) / s.size
        return sigmoid(logit(s) + 0.7 * np.sin(2 * np.pi * periods * rank))

    return curve


def saturated(s: F64, rng: np.random.Generator) -> F64:
    """Return scores of which two in five, chosen at random, become 1."""
    return np.where(rng.random(s.size) < 0.4, 1.0, s)


CURVES: dict[str, Callable[[F64], F64]] = {
    "calibrated": lambda s: s,
    "wave, 3 periods": wave(3),
    "wave, 6 periods": wave(6),
    "wave in the score, 6": lambda s: (s + 0.08 * np.sin(12 * np.pi * s)).clip(0, 1),
    "stairs": lambda s: (np.floor(5 * s).clip(0, 4) + 0.5) / 5,
    "heap at 1": lambda s: np.where(s == 1, 0.95, s**1.2),
    "multiples of 0.01": lambda s: s**1.3,
}
SCORES: dict[str, Callable[[np.random.Generator], F64]] = {
    "uniform": lambda rng: rng.random(ROWS),
    "top label": lambda rng: rng.beta(5, 1.5, ROWS),
    "both ends": lambda rng: rng.beta(0.5, 0.5, ROWS),
    "bell": lambda rng: sigmoid(rng.normal(0.5, 1.2, ROWS)),
    "sharp": lambda rng: rng.beta(8, 0.4, ROWS),
}


def shape_arena(shape: str, scores: str, seed: int) -> Arena:
    """Return an arena with a named distribution of scores and a named shape of the curve."""
    rng = np.random.default_rng([seed, list(CURVES).index(shape), list(SCORES).index(scores)])
    s = SCORES[scores](rng)
    if shape == "heap at 1":
        s = saturated(s, rng)
    elif shape == "multiples of 0.01":
        s = s.round(2)
    chance = CURVES[shape](s)
    y = (rng.random(ROWS) < chance).astype(np.uint8)
    truth = float(np.abs(chance - s).mean())
    return Arena([Sample(s, y, None, 0.0, 1.0, np.arange(ROWS))], truth)


def print_errors(title: str, arenas: Sequence[Arena], seed: int, draws: int) -> None:
    """Print one line for each size, then the coverage of each arena.

    Errors, bias and width are medians over arenas; errors are divided by the smallest errors of any
    of the fifteen, chosen in hindsight. Coverage is a mean over arenas.
    """
    coverage: dict[str, list[float]] = {arena.name: [] for arena in arenas}
    print(f"\n{title}, seed {seed}\n| n | arenas | p95 | log | bias | covers | lowest | width | "
          "above 0 |")  # fmt: skip
    for n in SIZES:
        large = [arena for arena in arenas if n <= MAX_SHARE_DRAWN * arena.samples[0].n]
        if not large:
            continue
        measured = [measure(arena, n, draws, seed) for arena in large]
        for arena, performance in zip(large, measured, strict=True):
            coverage[arena.name].append(performance.coverage)
        errors = np.median([x.errors for x in measured], axis=0)
        errors_of_others = np.median([x.errors_of_others for x in measured], axis=0)
        ratio = errors / errors_of_others.min(axis=0)
        bias = np.median([x.bias for x in measured])
        width = np.median([x.width for x in measured])
        covers = np.array([x.coverage for x in measured])
        above = np.mean([x.above_zero for x in measured])
        print(f"| {n} | {len(measured)} | {ratio[0]:.2f} | {ratio[1]:.2f} | {bias:+.2f} | "
              f"{covers.mean():.1%} | {covers.min():.0%} | {width:.2f} | {above:.0%} |",
              flush=True)  # fmt: skip
    print("\n| distribution | all sizes | each |")
    for name, covers_by_size in sorted(coverage.items(), key=lambda item: np.mean(item[1])):
        each = " ".join(f"{x:.0%}" for x in covers_by_size)
        print(f"| {name} | {np.mean(covers_by_size):.1%} | {each} |")


def print_shapes(seed: int, draws: int) -> None:
    """Print one line for each shape and size: coverage over the distributions of scores."""
    print(f"\nshapes, seed {seed}\n| shape | n | covers | {' | '.join(SCORES)} | above 0 |")
    for shape in CURVES:
        for n in (200, 500, 2000):
            covers = []
            above = []
            for scores in SCORES:
                arena = shape_arena(shape, scores, seed)
                rng = np.random.default_rng([seed, n])
                ends = np.array([
                    BayesCurve().posterior(drawn(arena.samples, rows)).interval(LEVEL)
                    for rows in rng.integers(ROWS, size=(draws, n))
                ])  # fmt: skip
                covers.append(((ends[:, 0] <= arena.truth) & (arena.truth <= ends[:, 1])).mean())
                above.append((ends[:, 0] > 0).mean())
            each = " | ".join(f"{x:.0%}" for x in covers)
            print(f"| {shape} | {n} | {np.mean(covers):.1%} | {each} | {np.mean(above):.1%} |",
                  flush=True)  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=11, help="of the study's design")
    parser.add_argument("--draws", type=int, default=40, help="of each size")
    parser.add_argument("--predictions", nargs="+", metavar="FILE", help="instead of the study")
    options = parser.parse_args()
    seed = options.seed
    draws = options.draws
    study: Design | Predictions = Design(mixtures=1, trainings=1, holdout=60_000, seed=seed)
    if options.predictions:
        study = Predictions(tuple(options.predictions))
    arenas: dict[str, list[Arena]] = {}
    for setting, arena in arenas_of(study):
        arenas.setdefault(setting, []).append(arena)
    for setting, arenas_of_setting in arenas.items():
        print_errors(setting, arenas_of_setting, seed, draws)
    if not options.predictions:
        print_shapes(seed, draws)


if __name__ == "__main__":
    main()
