"""How close the Bayesian curve's error comes to the truth, and how often its interval holds it.

Three arenas: the study's distributions of scores (or those of another seed), curves of shapes that
the study does not have, calibrated ones among them, and, instead of both, a user's own files of
predictions. Prints the tables of docs/bayes.md.

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
# Draws have at most this part of the rows: the truth is that of the rest, too.
LARGEST_PART = 0.1
LEVEL = 0.95
# The estimators of the paper.
FIFTEEN = [candidate for candidate in corrected() if candidate.name != BAYES]
ROWS = 100_000


class Arena(NamedTuple):
    """Problems of the same rows, and the mean of their true errors."""

    samples: list[Sample]
    truth: float
    name: str = ""


def arenas_of(study: Design | Predictions) -> Iterator[tuple[str, Arena]]:
    """Each distribution of scores of a study in each of its settings, with that."""
    for which in study.distributions:
        for setting, samples, chances, n_bins in study.populations(which, {}):
            pairs = zip(samples, chances, strict=True)
            truths = [debiased_error(x.s, q, n_bins).value for x, q in pairs]
            yield setting, Arena(samples, float(np.mean(truths)), str(which))


def drawn(samples: list[Sample], rows: NDArray[np.int64]) -> list[Sample]:
    """The rows of a draw, in one order for all problems."""
    parts = [sample.where(rows) for sample in samples]
    return [Sample(p.s, p.y, p.v, p.low, p.high, np.arange(p.n)) for p in parts]


def measures(arena: Arena, n: int, draws: int, seed: int) -> tuple[F64, F64]:
    """Of the Bayesian curve: 95th percentile of the relative error, median abs log ratio, bias,
    coverage, mean relative width, share of intervals that leave out 0; and the first two (15, 2) of
    the study's fifteen."""
    rng = np.random.default_rng([seed, n])
    rows = rng.integers(arena.samples[0].n, size=(draws, n))
    values, low, high = [], [], []
    for line in rows:
        posterior = BayesCurve().posterior(drawn(arena.samples, line))
        values.append(posterior.value)
        ends = posterior.interval(LEVEL)
        low.append(ends[0])
        high.append(ends[1])
    ratio = np.array(values) / arena.truth
    held = (np.array(low) <= arena.truth) & (arena.truth <= np.array(high))
    width = (np.array(high) - np.array(low)) / arena.truth
    own = [ratio.mean() - 1, held.mean(), width.mean(), np.mean(np.array(low) > 0)]
    found = [drawn_rows(Problem(sample), rows.astype(np.int32)) for sample in arena.samples]
    others = np.array([candidate.values(found) for candidate in FIFTEEN]) / arena.truth
    return np.array([*errors_of(ratio), *own]), np.array([errors_of(r) for r in others])


def errors_of(ratio: F64) -> list[float]:
    """95th percentile of the relative error, and median abs log ratio."""
    logs = np.abs(np.log(np.maximum(ratio, 1e-9)))
    return [float(np.quantile(np.abs(ratio - 1), 0.95)), float(np.median(logs))]


def logit(s: F64) -> F64:
    """Of scores, which are kept a little inside."""
    inside = s.clip(1e-9, 1 - 1e-9)
    return np.asarray(np.log(inside / (1 - inside)))


def sigmoid(z: F64) -> F64:
    """The inverse."""
    return np.asarray(1 / (1 + np.exp(-z)))


def wave(periods: int) -> Callable[[F64], F64]:
    """Over the ranks, with an amplitude of 0.7 in the logit."""

    def curve(s: F64) -> F64:
        rank = (s.argsort().argsort() + 0.5) / s.size
        return sigmoid(logit(s) + 0.7 * np.sin(2 * np.pi * periods * rank))

    return curve


def heaped(s: F64, rng: np.random.Generator) -> F64:
    """Two in five scores become 1."""
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
    """Scores of a distribution whose curve has a shape."""
    rng = np.random.default_rng([seed, list(CURVES).index(shape), list(SCORES).index(scores)])
    s = SCORES[scores](rng)
    s = heaped(s, rng) if shape == "heap at 1" else s
    s = s.round(2) if shape == "multiples of 0.01" else s
    chance = CURVES[shape](s)
    y = (rng.random(ROWS) < chance).astype(np.uint8)
    return Arena([Sample(s, y, None, 0.0, 1.0, np.arange(ROWS))], float(np.abs(chance - s).mean()))


def print_errors(title: str, arenas: Sequence[Arena], seed: int, draws: int) -> None:
    """One line for each size: medians over arenas, errors over those of the best of the fifteen, in
    hindsight; coverage is the mean over arenas. Then the coverage of each, over all sizes."""
    each: dict[str, list[float]] = {arena.name: [] for arena in arenas}
    print(f"\n{title}, seed {seed}\n| n | arenas | p95 | log | bias | covers | lowest | width | "
          "above 0 |")  # fmt: skip
    for n in SIZES:
        large = [arena for arena in arenas if n <= LARGEST_PART * arena.samples[0].n]
        found = [measures(arena, n, draws, seed) for arena in large]
        if not found:
            continue
        own, others = (np.array(part) for part in zip(*found, strict=True))
        for arena, held in zip(large, own[:, 3], strict=True):
            each[arena.name].append(held)
        ratio = np.median(own[:, :2], axis=0) / np.median(others, axis=0).min(axis=0)
        bias, _, width, _ = np.median(own[:, 2:], axis=0)
        covers, above = own[:, 3].mean(), own[:, 5].mean()
        print(f"| {n} | {len(own)} | {ratio[0]:.2f} | {ratio[1]:.2f} | {bias:+.2f} | "
              f"{covers:.1%} | {own[:, 3].min():.0%} | {width:.2f} | {above:.0%} |",
              flush=True)  # fmt: skip
    print("\n| distribution | all sizes | each |")
    for name, held in sorted(each.items(), key=lambda item: np.mean(item[1])):
        print(f"| {name} | {np.mean(held):.1%} | {' '.join(f'{x:.0%}' for x in held)} |")


def print_shapes(seed: int, draws: int) -> None:
    """One line for each shape and size: coverage over the distributions of scores."""
    print(f"\nshapes, seed {seed}\n| shape | n | covers | {' | '.join(SCORES)} | above 0 |")
    for shape in CURVES:
        for n in (200, 500, 2000):
            covers, above = [], []
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
    seed, draws = options.seed, options.draws
    study: Design | Predictions = Design(mixtures=1, trainings=1, holdout=60_000, seed=seed)
    if options.predictions:
        study = Predictions(tuple(options.predictions))
    found = list(arenas_of(study))
    for setting in dict.fromkeys(name for name, _ in found):
        print_errors(setting, [arena for name, arena in found if name == setting], seed, draws)
    if not options.predictions:
        print_shapes(seed, draws)


if __name__ == "__main__":
    main()
