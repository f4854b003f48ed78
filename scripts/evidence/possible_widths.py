"""How short any 95 % interval of the calibration error can be, beside the intervals of `estimate`.

The mean width of an interval is the integral over errors e of the probability that it contains e
(Pratt 1961, "Length of confidence intervals"). An interval that covers the errors of all curves of
a class is a family of tests of 5 %, so that this probability is at least one minus the power of the
best such test of "the error is e" against the true curve. Any single curve or mixture of curves
with the error e is tested with at least as much power as all of them together (Neyman and Pearson),
which gives a bound. Here the mixture is chosen, among several, that makes the bound largest, in
draws that the bound itself does not use.

Writes ``possible_widths.csv`` in about five minutes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from power import line, moved, wave
from results import new_parser, write_table
from scipy.optimize import brentq
from scipy.stats import beta

from fastece import estimate

SEED = 20261128
LEVEL = 0.05
SIZES = (200, 1000, 5000)
# Scores of the bounds: even quantiles of the scores of the samples, a multiple of the blocks.
CELLS = 320
BLOCKS = 16
# Knots, at even ranks, between which a smooth departure runs in straight lines.
KNOTS = 4
# Draws of outcomes that choose a mixture, and others that measure the power against it.
DRAWS_TO_CHOOSE = 4000
DRAWS = 10_000
# Errors e lie at so many places within so many standard errors on both sides of the true one.
PLACES = 25
REACH = 8.0
# Samples behind a width and a coverage of `estimate`.
SAMPLES = 1000
# A curve comes as near to 0 and 1 as this part of the room that its scores leave.
FILLED = 1 - 1e-6
# Numbers of curves in a smooth mixture, with those that are nearest to the true curve.
SMOOTH_COUNTS = (1, 2, 4, 8, 16)
# Gaps move by so many variances of an outcome, at most: to the diagonal, and to 0 or 1.
MIN_PLACE = -40.0
MAX_PLACE = 4.0
# A block keeps the side of its gap if that is more than so many standard errors wide.
SIDE_LIMITS = (0.0, 0.5, 1.0, 2.0, 100.0)
LAW = beta(5, 1.5)
HEAD = (
    "curve", "rows", "true error", "bound: smooth", "bound: sixteen blocks", "estimate: width",
    "over smooth", "over blocks", "coverage",
)  # fmt: skip


class Model(NamedTuple):
    """A curve, the probability of an outcome of 1 at each score, with its name."""

    name: str
    curve: Callable[[Any], Any]


def models() -> list[Model]:
    """Return the curves of the table."""
    return [
        Model("calibrated", lambda s: s),
        Model("shift of -0.5", line(-0.5, 1)),
        Model("slope of 0.7", line(0, 0.7)),
        Model("0.8 to 0.87 by -0.13", moved(0.8, 0.87, -0.13)),
        Model("five waves of 0.085", wave(5, 0.085)),
    ]


# --- likelihoods ----------------------------------------------------------------------------


class Draws(NamedTuple):
    """Numbers of hits and misses (D, CELLS) in draws of n rows, and the chances behind them."""

    hits: Any
    misses: Any
    chance: Any


def quantile_scores() -> Any:
    """Return scores (CELLS,) that are equally probable."""
    return LAW.ppf((np.arange(CELLS) + 0.5) / CELLS)


def draw_outcomes(chance: Any, n: int, draws: int, rng: np.random.Generator) -> Draws:
    """Draw samples of n rows whose outcomes have some chances (CELLS,)."""
    rows = rng.multinomial(n, np.full(CELLS, 1 / CELLS), draws)
    hits = rng.binomial(rows, chance).astype(np.float64)
    return Draws(hits, rows - hits, chance)


def block_ratios(draws: Draws, chance: Any, blocks: int) -> Any:
    """Compute likelihood ratios (D, blocks) of a curve to the drawn one, block by block."""
    hit = np.log(chance / draws.chance).reshape(blocks, -1)
    miss = np.log((1 - chance) / (1 - draws.chance)).reshape(blocks, -1)
    hits = draws.hits.reshape(-1, *hit.shape)
    misses = draws.misses.reshape(-1, *hit.shape)
    return np.exp(np.einsum("dbc,bc->db", hits, hit) + np.einsum("dbc,bc->db", misses, miss))


def best_power(ratio: Any) -> float:
    """Compute the power of the best test at 5 % from likelihood ratios (D,) in draws.

    They are ratios of the null hypothesis to the alternative that was drawn. The test rejects where
    they are small; the level is the mean of the ratios that are rejected, and of 0 elsewhere.
    """
    level = np.cumsum(np.sort(ratio)) / ratio.size
    return float(np.searchsorted(level, LEVEL) / ratio.size)


# --- mixtures of curves with a given error --------------------------------------------------


# A mixture is a function from draws to the ratios (D,) of its likelihood to the drawn curve's.
Mixture = Callable[[Draws], Any]


class Problem(NamedTuple):
    """Scores (CELLS,), the true curve's gaps, and the number of rows."""

    score: Any
    gap: Any
    n: int

    @property
    def chance(self) -> Any:
        """The true curve."""
        return self.score + self.gap

    @property
    def variance(self) -> Any:
        """The variance of an outcome."""
        return self.chance * (1 - self.chance)

    @property
    def error(self) -> float:
        """The true error."""
        return float(np.abs(self.gap).mean())

    @property
    def side(self) -> Any:
        """The side of the gap: 1 above the diagonal and on it, -1 below."""
        return np.where(self.gap < 0, -1.0, 1.0)


def first_root(excess: Callable[[float], float], start: float, stop: float) -> float | None:
    """Find the first place from start to stop where a function changes its sign."""
    places = np.linspace(start, stop, 60)
    is_above = np.array([excess(place) >= 0 for place in places])
    changes = np.flatnonzero(is_above[1:] != is_above[:-1])
    if not changes.size:
        return None
    first = changes[0]
    return float(brentq(excess, places[first], places[first + 1]))


def gap_of_error(error: float, gap_at: Callable[[float], Any], start: float) -> Any:
    """Find the gaps with an error along a path of gaps; None if it has none."""
    place = first_root(lambda k: float(np.abs(gap_at(k)).mean()) - error, start, MAX_PLACE)
    return None if place is None else gap_at(place)


def in_range(problem: Problem, gap: Any) -> Any:
    """Return gaps that are cut where the curve would leave the range from 0 to 1."""
    return np.clip(gap, -FILLED * problem.score, FILLED * (1 - problem.score))


def nearest_gap(problem: Problem, k: float) -> Any:
    """Return the gaps nearest to the true ones among all with their error.

    Each is moved by k times its variance, away from 0 for positive k, and towards it otherwise.
    """
    size = np.maximum(np.abs(problem.gap) + k * problem.variance, 0.0)
    return in_range(problem, problem.side * size)


def departed_gap(problem: Problem, direction: Any, k: float) -> Any:
    """Return the true gaps moved by k times their variance in some directions (CELLS,)."""
    return in_range(problem, problem.gap + k * problem.variance * direction)


def mean_ratio(gaps: list[Any], problem: Problem, draws: Draws) -> Any:
    """Compute the likelihood ratio of curves that are equally probable."""
    ratios = [block_ratios(draws, problem.score + gap, 1)[:, 0] for gap in gaps]
    return np.mean(ratios, axis=0)


def smooth_mixtures(problem: Problem, error: float) -> Iterator[Mixture]:
    """Yield mixtures of curves that are as smooth as the true one, or bend three times more.

    They are the nearest curve and those whose departure from the true curve, over the variance of
    an outcome, is 1 or -1 at each of four knots.
    """
    rank = (np.arange(CELLS) + 0.5) / CELLS
    knots = np.linspace(0, 1, KNOTS)
    paths = [partial(nearest_gap, problem)]
    paths += [
        partial(departed_gap, problem, np.interp(rank, knots, signs))
        for signs in product((1.0, -1.0), repeat=KNOTS)
    ]
    starts = [MIN_PLACE] + [0.0] * (len(paths) - 1)
    candidates = [gap_of_error(error, path, x) for path, x in zip(paths, starts, strict=True)]
    gaps = [gap for gap in candidates if gap is not None]
    distances = [((gap - problem.gap) ** 2 / problem.variance).mean() for gap in gaps]
    by_distance = [gaps[i] for i in np.argsort(distances, kind="stable")]
    for count in SMOOTH_COUNTS:
        if count <= len(by_distance):
            yield partial(mean_ratio, by_distance[:count], problem)


def block_gap(problem: Problem, keeps_side: Any, k: float) -> Any:
    """Return gaps of a size that is possible on both sides, except where they keep their side.

    The sizes are those nearest to the true gaps on average over the sides.
    """
    variance_part = k * problem.variance
    size = np.maximum(np.abs(problem.gap) + variance_part, 0.0)
    size_on_both_sides = np.clip(
        variance_part, 0.0, FILLED * np.minimum(problem.score, 1 - problem.score)
    )
    return in_range(problem, problem.side * np.where(keeps_side, size, size_on_both_sides))


def block_ratio(gap: Any, mirrored: Any, blocks: int, problem: Problem, draws: Draws) -> Any:
    """Compute the likelihood ratio of curves that take either gap in each block."""
    ratio = block_ratios(draws, problem.score + gap, blocks)
    mirrored_ratio = block_ratios(draws, problem.score + mirrored, blocks)
    return ((ratio + mirrored_ratio) / 2).prod(axis=1)


def block_mixtures(problem: Problem, error: float) -> Iterator[Mixture]:
    """Yield mixtures of curves whose gaps may lie on either side in each of up to sixteen blocks.

    In blocks where the true gap is small in comparison with its noise, both sides are equally
    probable, independently of other blocks, and the size of the gap is the same.
    """
    square = problem.gap**2 / problem.variance
    for blocks in (BLOCKS // 4, BLOCKS // 2, BLOCKS):
        width = np.sqrt(problem.n * square.reshape(blocks, -1).sum(axis=1) / CELLS)
        for limit in SIDE_LIMITS:
            keeps_side = np.repeat(width > limit, CELLS // blocks)
            gap = gap_of_error(error, partial(block_gap, problem, keeps_side), MIN_PLACE)
            if gap is not None:
                mirrored = np.where(keeps_side, gap, -gap)
                yield partial(block_ratio, gap, mirrored, blocks, problem)


# --- the bound ------------------------------------------------------------------------------


class Bounds(NamedTuple):
    """The least mean width of any interval that covers smooth curves, or blocks too."""

    smooth: float
    blocks: float


def misses(mixtures: Iterator[Mixture], to_choose: Draws, draws: Draws) -> float:
    """Compute one minus the power against the mixture that is hardest to tell apart."""
    powers = [(best_power(mixture(to_choose)), mixture) for mixture in mixtures]
    if not powers:
        return 0.0
    _, hardest = min(powers, key=lambda pair: pair[0])
    return 1 - best_power(hardest(draws))


def least_widths(model: Model, n: int, rng: np.random.Generator) -> Bounds:
    """Compute the bounds on the mean width for samples of n rows of a model."""
    score = quantile_scores()
    problem = Problem(score, model.curve(score) - score, n)
    to_choose = draw_outcomes(problem.chance, n, DRAWS_TO_CHOOSE, rng)
    draws = draw_outcomes(problem.chance, n, DRAWS, rng)
    reach = REACH * float(np.sqrt(problem.variance.mean() / n))
    errors = np.unique([
        *np.linspace(max(problem.error - reach, 0.0), problem.error, PLACES),
        *np.linspace(problem.error, problem.error + reach, PLACES),
    ])  # fmt: skip
    smooth = []
    blocks = []
    for error in errors:
        if abs(error - problem.error) < 1e-9:
            smooth.append(1 - LEVEL)
            blocks.append(1 - LEVEL)
            continue
        smooth.append(misses(smooth_mixtures(problem, error), to_choose, draws))
        blocks.append(misses(block_mixtures(problem, error), to_choose, draws))
    larger = np.maximum(smooth, blocks)  # smooth curves are covered too
    return Bounds(float(np.trapezoid(smooth, errors)), float(np.trapezoid(larger, errors)))


# --- estimate -------------------------------------------------------------------------------


def widths_of_estimate(model: Model, n: int) -> tuple[float, float]:
    """Compute the mean width of the intervals of `estimate`, and their coverage."""
    population = LAW.ppf((np.arange(200_000) + 0.5) / 200_000)
    truth = float(np.abs(model.curve(population) - population).mean())
    figures = []
    for number in range(SAMPLES):
        rng = np.random.default_rng([SEED, n, number, *model.name.encode()])
        s = LAW.rvs(n, random_state=rng)
        y = rng.random(n) < model.curve(s)
        low, high = estimate(y, s).confidence_interval
        figures.append([high - low, low - 1e-9 <= truth <= high + 1e-9])
    width, covers = np.mean(figures, axis=0)
    return float(width), float(covers)


def table_rows() -> Iterator[list[str]]:
    """Yield the rows of the table."""
    score = quantile_scores()
    for model in models():
        truth = np.abs(model.curve(score) - score).mean()
        for n in SIZES:
            rng = np.random.default_rng([SEED, n, *model.name.encode()])
            bounds = least_widths(model, n, rng)
            width, covers = widths_of_estimate(model, n)
            yield [
                model.name, f"{n}", f"{truth:.4f}", f"{bounds.smooth:.4f}", f"{bounds.blocks:.4f}",
                f"{width:.4f}", f"{width / bounds.smooth:.2f}", f"{width / bounds.blocks:.2f}",
                f"{100 * covers:.1f}",
            ]  # fmt: skip


def main() -> None:
    """Write the table."""
    options = new_parser(__doc__).parse_args()
    write_table(options.out, "possible_widths", HEAD, table_rows())


if __name__ == "__main__":
    main()
