"""Baselines of the benchmarks: data, the numpy code that a user would write, and a clock.

Only public functions of the package are called, so that older versions of it meet the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fastece

Labels = NDArray[Any]
Scores = NDArray[np.floating]
Rows = NDArray[np.int64]
Call = Callable[[], Any]
Baseline = Callable[[Labels, Scores], float]
# The value of the rows that were drawn.
OnRows = Callable[[Any], float]
EVERY = slice(None)

N_BINS, N_CLASSES = 15, 10
# Shorter than this, the clock itself and one interruption are a visible part of a round.
SHORTEST_ROUND = 1e-3
# Resampled rows of one call, within these numbers of replicates: with fewer, what a call does once
# would be seen; with more, nobody would wait.
CALL_ROWS, LEAST_REPLICATES, MOST_REPLICATES = 150_000_000, 1000, 10_000
# The same of a numpy loop: its replicates all cost the same, but a round of a few milliseconds
# beside one of a hundred would be spared the interruptions that the other meets.
LOOP_ROWS, LEAST_LOOPS, MOST_LOOPS = 1_500_000, 2, 300


# --- data -----------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "uniform": lambda rng, n: rng.random(n),
    "sharp": lambda rng, n: rng.beta(0.3, 0.05, n),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "tied": lambda rng, n: np.round(rng.random(n), 2),
    "zeros": lambda rng, n: rng.random(n) * (rng.random(n) < 0.2),
}


def binary(shape: str, n: int) -> tuple[Rows, Scores]:
    """Labels and probabilities of the positive class."""
    rng = np.random.default_rng(0)
    p = SHAPES[shape](rng, n)
    return (rng.random(n) < p).astype(np.int64), p


def class_vectors(
    n: int, n_classes: int, dtype: str = "float64", logits: bool = False
) -> tuple[Rows, Scores]:
    """Labels and class vectors; the largest entry is right about four times in five."""
    rng = np.random.default_rng(0)
    z = (2 * rng.standard_normal((n, n_classes), np.float32)).astype(dtype)
    y = np.where(rng.random(n) < 0.8, z.argmax(1), rng.integers(0, n_classes, n))
    return y, z if logits else softmax(z)


# --- what a user writes without fastece -----------------------------------------------------


def value_of(sums: NDArray[Any], total: float) -> float:
    """The value, from the sums of the gaps of the bins, and from that of the weights."""
    return float(np.abs(sums).sum() / total)


def uniform_bins(p: Scores, n_bins: int = N_BINS) -> Rows:
    """Bins of equal width: unchecked, and wrong on some edges."""
    bins: Rows = np.minimum((p * n_bins).astype(int), n_bins - 1)
    return bins


def quantile_bins(p: Scores) -> Rows:
    """Bins of equal mass."""
    edges = np.quantile(p, np.linspace(0, 1, N_BINS + 1))
    return np.searchsorted(edges[1:-1], p)


def uniform_hard(y: Labels, p: Scores, n_bins: int = N_BINS, weight: Scores | None = None) -> float:
    """The gaps of bins of equal width."""
    gap, total = (y - p, y.size) if weight is None else (weight * (y - p), weight.sum())
    return value_of(np.bincount(uniform_bins(p, n_bins), weights=gap), total)


def quantile_hard(y: Labels, p: Scores) -> float:
    """The gaps of bins of equal mass."""
    return value_of(np.bincount(quantile_bins(p), weights=y - p), y.size)


def split(lower: Rows, below: Scores, above: Scores, n: int) -> NDArray[Any]:
    """Sums over n points of what each row brings to the lower one beside it, and to the next."""
    sums = np.bincount(lower, weights=below, minlength=n)
    sums += np.bincount(lower + 1, weights=above, minlength=n)
    return sums


def convex_rows(y: Labels, p: Scores, place: Scores) -> OnRows:
    """Every row shared by the two centres, counted from 0, around its place."""
    lower, gap = np.minimum(place.astype(int), N_BINS - 2), y - p
    above = gap * (place - lower)
    below = gap - above

    def value(i: Any) -> float:
        at = lower[i]
        return value_of(split(at, below[i], above[i], N_BINS), at.size)

    return value


def uniform_convex(y: Labels, p: Scores) -> float:
    """Linear binning between the centres of bins of equal width."""
    return uniform_convex_rows(y, p)(EVERY)


def quantile_convex(y: Labels, p: Scores) -> float:
    """Linear binning between the centres of bins of equal mass."""
    edges = np.quantile(p, np.linspace(0, 1, N_BINS + 1))
    centres = (edges[:-1] + edges[1:]) / 2
    return convex_rows(y, p, np.interp(p, centres, np.arange(N_BINS)))(EVERY)


def density_error(y: Labels, p: Scores, h: float | None = None) -> float:
    """Gaussian densities of scores and hits, Silverman's bandwidth, a grid of 0.0003. Scores
    are shared linearly by two points, counts reflected at 0 and 1 and smoothed by scipy's
    `fftconvolve`. Three digits, but for bandwidths of a few steps; scipy's `gaussian_kde` would
    look at every score from every point."""
    from scipy.signal import fftconvolve

    if h is None:
        sd, quartiles = p.std(ddof=1), np.quantile(p, [0.25, 0.75])
        iqr = quartiles[1] - quartiles[0]
        h = max(0.0003, (min(sd, iqr / 1.349) if iqr > 0 else sd) * (0.75 * p.size) ** -0.2)
    n_points = 3333
    place = np.clip(p * n_points - 0.5, 0, n_points - 1)
    lower = np.minimum(place.astype(int), n_points - 2)
    above = place - lower
    reach = min(int(5 * h * n_points) + 1, n_points)
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / (h * n_points)) ** 2)
    taps /= taps.sum()

    def smooth(weight: Scores) -> Scores:
        counts = split(lower, weight * (1 - above), weight * above, n_points)
        out: Scores = fftconvolve(np.pad(counts, reach, "symmetric"), taps, "valid")
        return out

    points = (np.arange(n_points) + 0.5) / n_points
    return value_of(smooth(y) - points * smooth(np.ones(p.size)), y.size)


BASELINES: dict[str, Baseline] = {
    "ece": uniform_hard,
    "ece_a": quantile_hard,
    "ece_c": uniform_convex,
    "ece_ac": quantile_convex,
    "ece_kde": density_error,
}


def softmax(z: Scores) -> Scores:
    """Probabilities of logits."""
    p: Scores = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def find_baseline(estimator: str, setting: str = "binary") -> tuple[str, Baseline]:
    """The baseline an estimator is compared with, and the name of the estimator it is written for:
    "ece" for an estimator that has none of its own."""
    name = estimator if estimator in BASELINES else "ece"
    baseline = BASELINES[name]
    settings: dict[str, Baseline] = {
        "binary": baseline,
        "confidence": lambda y, p: baseline(p.argmax(1) == y, p.max(1)),
        "classwise": lambda y, p: float(np.mean([baseline(y == k, q) for k, q in enumerate(p.T)])),
    }
    return name, settings[setting]


# --- the loops a user writes without fastece ------------------------------------------------


def uniform_hard_rows(y: Labels, p: Scores) -> OnRows:
    """Bins of equal width are found once, before the loop."""
    bins, gap = uniform_bins(p), y - p
    return lambda i: value_of(np.bincount(bins[i], weights=gap[i], minlength=N_BINS), i.size)


def uniform_convex_rows(y: Labels, p: Scores) -> OnRows:
    """So are the centres around each score, and what it brings to each of them."""
    return convex_rows(y, p, np.clip(p * N_BINS - 0.5, 0, N_BINS - 1))


def on_rows(baseline: Callable[..., float], **options: Any) -> Callable[[Labels, Scores], OnRows]:
    """What depends on the draw, such as the edges of bins of equal mass, is found in each."""
    return lambda y, p: lambda i: baseline(y[i], p[i], **options)


LOOPS: dict[str, Callable[[Labels, Scores], OnRows]] = {
    "ece": uniform_hard_rows,
    "ece_a": on_rows(quantile_hard),
    "ece_c": uniform_convex_rows,
    "ece_ac": on_rows(quantile_convex),
    "ece_kde": on_rows(density_error),
}


def value_on_rows(estimator: str, y: Labels, p: Scores) -> OnRows:
    """The value of an estimator on drawn rows: of scores, or the mean over the classes."""
    make = LOOPS[estimator if estimator in LOOPS else "ece"]
    if p.ndim == 1:
        return make(y, p)
    each = [make(y == k, np.ascontiguousarray(p[:, k])) for k in range(p.shape[1])]
    return lambda i: float(np.mean([value(i) for value in each]))


def resample(values: Sequence[OnRows], n: int, size: int, replicates: int) -> Scores:
    """The values (len(values), replicates) of the same draws of `size` of n rows."""
    rng = np.random.default_rng(0)
    draws = (rng.integers(0, n, size) for _ in range(replicates))
    return np.array([[value(i) for value in values] for i in draws]).T


def redraw_labels(estimator: str, p: Scores, replicates: int) -> Scores:
    """The values for labels drawn with the probabilities: scores, and so bins, stay as they are."""
    rng = np.random.default_rng(0)
    bins = (quantile_bins if estimator == "ece_a" else uniform_bins)(p)
    gaps = ((rng.random(p.size) < p) - p for _ in range(replicates))
    return np.array([value_of(np.bincount(bins, weights=gap), p.size) for gap in gaps])


# --- clock ----------------------------------------------------------------------------------


class Race(NamedTuple):
    """Seconds of one call of `fast`, and how many times as long one of `slow` takes."""

    seconds: float
    ratio: float


def seconds_of(call: Call, repeats: int) -> float:
    """Mean seconds of one of several calls in a row."""
    start = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - start) / repeats


def repeats_of(call: Call) -> int:
    """How many calls make a round, after a first one that compiles and warms up."""
    call()
    repeats = 1
    while repeats * seconds_of(call, repeats) < SHORTEST_ROUND:
        repeats *= 2
    return repeats


def race(fast: Call, slow: Call, rounds: int = 7) -> Race:
    """Medians over rounds in which the two take turns, so that both meet the same noise."""
    fast_repeats, slow_repeats = repeats_of(fast), repeats_of(slow)
    times = [
        (seconds_of(fast, fast_repeats), seconds_of(slow, slow_repeats)) for _ in range(rounds)
    ]
    return Race(median(f for f, _ in times), median(s / f for f, s in times))


def least_ratio(fast: Call, slow: Call, rounds: int = 15) -> float:
    """The least time of `fast` over that of `slow`, which take turns: on a busy machine most rounds
    are interrupted, and hardly ever all."""
    repeats = [(call, repeats_of(call)) for call in (fast, slow)]
    times = [[seconds_of(call, count) for call, count in repeats] for _ in range(rounds)]
    ours, theirs = map(min, zip(*times, strict=True))
    return ours / theirs


def race_between(fast: Call, slow: Call, other: Call, rounds: int = 200) -> Race:
    """Medians of single calls, each after `other` work, which takes instructions, branches and data
    out of the caches: how a program meets a call that it makes now and then."""
    seconds: dict[Call, list[float]] = {fast: [], slow: []}
    for _ in range(rounds):
        for call in seconds:
            other()
            seconds[call].append(seconds_of(call, 1))
    return Race(median(seconds[fast]), median(seconds[slow]) / median(seconds[fast]))


def race_replicates(fast: Call, replicates: int, slow: Call, loops: int, rounds: int = 3) -> Race:
    """`race` of calls that make so many replicates: seconds, and the ratio, of one replicate."""
    times = race(fast, slow, rounds)
    return Race(times.seconds / replicates, times.ratio * replicates / loops)


# --- what is measured most ------------------------------------------------------------------


def replicates_of(rows: int) -> int:
    """How many replicates one call draws, of so many rows in each."""
    return max(LEAST_REPLICATES, min(MOST_REPLICATES, CALL_ROWS // rows))


def loops_of(rows: int) -> int:
    """How often a numpy loop is run through."""
    return max(LEAST_LOOPS, min(MOST_LOOPS, LOOP_ROWS // rows))


def data_of(setting: str, n: int) -> tuple[Labels, Scores]:
    """Labels and n uniform scores, or class vectors of as many entries."""
    if setting == "binary":
        return binary("uniform", n)
    return class_vectors(n // N_CLASSES, N_CLASSES)


def race_call(n: int, setting: str, estimator: str, rounds: int = 7) -> Race:
    """A call of `fastece.ece`, and its baseline."""
    y, p = data_of(setting, n)
    call = partial(fastece.ece, y, p, estimator=estimator, setting=setting)
    return race(call, partial(find_baseline(estimator, setting)[1], y, p), rounds)


def race_bootstrap(n: int, estimator: str) -> Race:
    """One replicate of `fastece.bootstrap` on uniform scores, and of its loop."""
    y, p = binary("uniform", n)
    values, count, loops = [value_on_rows(estimator, y, p)], replicates_of(n), loops_of(n)
    call = partial(fastece.bootstrap, y, p, estimator=estimator, n_resamples=count, rng=0)
    return race_replicates(call, count, partial(resample, values, n, n, loops), loops)
