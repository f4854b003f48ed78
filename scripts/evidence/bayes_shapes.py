"""How often the interval of the Bayesian curve covers the true error, shape by shape.

There are sixteen curves, each for five distributions of scores: point masses, saturated ends,
jumps, stairs, waves, ties, smooth curves, calibrated ones. Writes ``bayes_shapes.csv``, with the
lowest coverage first, and then the mean of all and how many are below 90 %.

    python scripts/evidence/bayes_shapes.py --draws 100
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from results import new_parser, write_table

from fastece import BayesCurve
from fastece.estimators.protocol import Sample

SIZES = (60, 200, 1000, 2000, 5000)
LEVEL = 0.95
# Rows of the population whose error is the true one.
POPULATION = 400_000


def logit(s: Any) -> Any:
    """Return log odds of scores, which are clipped to 1e-9 and 1 - 1e-9."""
    s = np.clip(s, 1e-9, 1 - 1e-9)
    return np.log(s) - np.log1p(-s)


def sigmoid(z: Any) -> Any:
    """Return the scores with given log odds."""
    return 1 / (1 + np.exp(-z))


SCORES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "top label": lambda rng, n: rng.beta(5, 1.5, n),
    "both ends": lambda rng, n: rng.beta(0.5, 0.5, n),
    "bell": lambda rng, n: sigmoid(rng.normal(0.5, 1.2, n)),
    "sharp": lambda rng, n: rng.beta(8, 0.4, n),
}


class Shape(NamedTuple):
    """How scores drawn from a distribution are changed, and the chances of an outcome of 1."""

    scores: Callable[[Any, np.random.Generator], Any]
    chance: Callable[[Any, Any], Any]  # takes the changed scores and the scores as drawn


def as_drawn(s: Any, rng: np.random.Generator) -> Any:  # noqa: ARG001
    """Return the scores unchanged."""
    return s


def point_mass(share: float, score: float) -> Callable[[Any, np.random.Generator], Any]:
    """Return a change that moves a random share of the scores to one score."""
    return lambda s, rng: np.where(rng.random(s.size) < share, score, s)


def rounded(digits: int) -> Callable[[Any, np.random.Generator], Any]:
    """Return a change that rounds scores."""
    return lambda s, rng: s.round(digits)  # noqa: ARG005


def curve(chance: Callable[[Any], Any]) -> Shape:
    """Return the shape of a curve over unchanged scores."""
    return Shape(as_drawn, lambda s, _: chance(s))


def stairs(count: int, height: float) -> Callable[[Any], Any]:
    """Return a curve that steps up and down from the diagonal."""
    return lambda s: np.clip(s + height * (-1.0) ** np.floor(count * s), 0, 1)


SHAPES = {
    "calibrated": curve(lambda s: s),
    "calibrated, hundredths": Shape(rounded(2), lambda s, _: s),
    "too sure": curve(lambda s: sigmoid(0.7 * logit(s))),
    "too high": curve(lambda s: sigmoid(logit(s) - 0.4)),
    "power, hundredths": Shape(rounded(2), lambda s, _: s**1.3),
    "power, tenths": Shape(rounded(1), lambda s, _: s**1.3),
    "three waves": curve(lambda s: np.clip(s + 0.08 * np.sin(6 * np.pi * s), 0, 1)),
    "six waves": curve(lambda s: np.clip(s + 0.08 * np.sin(12 * np.pi * s), 0, 1)),
    "six waves, a heap at 1": Shape(
        point_mass(0.3, 1.0),
        lambda s, _: np.where(s == 1, 0.96, np.clip(s + 0.08 * np.sin(12 * np.pi * s), 0, 1)),
    ),
    "five stairs": curve(lambda s: (np.floor(5 * s).clip(0, 4) + 0.5) / 5),
    "ten steps of .05": curve(stairs(10, 0.05)),
    "a jump of -.12 above .8": curve(lambda s: np.where(s > 0.8, s - 0.12, s)),
    "a jump of +.1 below .4": curve(lambda s: np.where(s < 0.4, s + 0.1, s)),
    "a heap at 1, .95 come true": Shape(
        point_mass(0.4, 1.0), lambda s, _: np.where(s == 1, 0.95, s)
    ),
    "a heap at .7, .6 come true": Shape(
        point_mass(0.3, 0.7), lambda s, _: np.where(s == 0.7, 0.6, s)
    ),
    "calibrated, above .85 moved up": Shape(
        lambda s, _: np.where(s > 0.85, np.minimum(s + 0.12, 1), s), lambda _, before: before
    ),
}


def draw_rows(shape: Shape, scores: str, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return n scores and their chances."""
    as_drawn_scores = SCORES[scores](rng, n)
    s = shape.scores(as_drawn_scores, rng)
    return s, shape.chance(s, as_drawn_scores)


def coverage(shape: Shape, scores: str, n: int, draws: int, seed: int) -> Any:
    """Return the coverage, the mean width, and the mean absolute error of the value."""
    s, chance = draw_rows(shape, scores, np.random.default_rng(seed), POPULATION)
    truth = float(np.abs(chance - s).mean())
    measured = []
    if truth < 1e-12:
        truth = 0.0
    for k in range(draws):
        rng = np.random.default_rng([seed, n, k])
        s, chance = draw_rows(shape, scores, rng, n)
        y = (rng.random(n) < chance).astype(np.uint8)
        posterior = BayesCurve().posterior([Sample(s, y, None, 0.0, 1.0, np.arange(n))])
        low, high = posterior.interval(LEVEL)
        measured.append((low <= truth <= high, high - low, abs(posterior.value - truth)))
    return np.mean(measured, axis=0)


def main() -> None:
    """Write the table."""
    parser = new_parser(__doc__)
    parser.add_argument("--draws", type=int, default=400, help="samples of each size")
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    names = [(shape, scores) for shape in SHAPES for scores in SCORES]
    covers = 100 * np.array([
        [coverage(SHAPES[shape], scores, n, options.draws, options.seed)[0] for n in options.sizes]
        for shape, scores in names
    ])  # fmt: skip
    lowest_first = np.lexsort((covers.mean(1), covers.min(1)))
    rows = [[*names[i], *(f"{x:.0f}" for x in covers[i])] for i in lowest_first]
    rows.append(["mean", "", *(f"{x:.1f}" for x in covers.mean(0))])
    rows.append(["below 90", "", *map(str, (covers < 90).sum(0))])
    write_table(options.out, "bayes_shapes", ["shape", "scores", *map(str, options.sizes)], rows)


if __name__ == "__main__":
    main()
