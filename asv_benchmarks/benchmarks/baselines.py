"""Data, the numpy code that a user would write, and a clock.

Only public functions of fastece are called, so that the same file measures older versions, too. It
imports nothing else of the benchmarks, so that a copy of it can measure each commit of a bisection.
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
Integers = NDArray[np.int64]
Call = Callable[[], Any]
# An estimate of the calibration error from labels and scores, in plain numpy.
Baseline = Callable[[Labels, Scores], float]
# The same estimate from the rows whose indices are given: from one draw of a bootstrap.
ValueOfDraw = Callable[[Any], float]

# Indices of all rows, for a value that is otherwise computed from drawn rows.
ALL_ROWS = slice(None)
# The default of fastece.
N_BINS = 15
# Classes of the data for settings with several classes.
N_CLASSES = 10

# Seconds. In a shorter round, the clock itself and one interruption would be a visible part.
MIN_SECONDS_PER_ROUND = 1e-3

# Resampled rows of one call of fastece; the number of its replicates follows from it.
ROWS_PER_CALL = 150_000_000
# With fewer replicates, the work that a call does once would be a visible part of its time.
MIN_REPLICATES = 1000
# Without this limit, a call would make millions of replicates of a small sample.
MAX_REPLICATES = 10_000
# Seconds beyond which a call has so much work in its replicates that the fewest are enough.
LONG_CALL = 0.3

# Resampled rows of one numpy loop. All of its replicates cost the same, so that few are enough, but
# a round of a few milliseconds would be spared the interruptions that the call of fastece meets,
# whose rounds take a hundred milliseconds.
ROWS_PER_LOOP = 1_500_000
# The fewest replicates of a loop, for large samples.
MIN_LOOP_REPLICATES = 2
# The most replicates of a loop, for small samples.
MAX_LOOP_REPLICATES = 300

# Points of the grid for densities: steps of 0.0003 give an error with three digits.
N_GRID_POINTS = 3333
# The smallest bandwidth that the grid resolves, in units of the score: one step of it.
MIN_BANDWIDTH = 0.0003
# Bandwidths at which the Gaussian is cut off; its density there is 4e-6 of the largest.
MAX_DISTANCE_IN_BANDWIDTHS = 5
# Interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349


# --- data -----------------------------------------------------------------------------------


def draw_mostly_zeros(rng: np.random.Generator, n: int) -> Scores:
    """Draw n scores of which four in five are 0."""
    p = rng.random(n)
    p[rng.random(n) >= 0.2] = 0.0
    return p


SHAPES: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "uniform": lambda rng, n: rng.random(n),
    "sharp": lambda rng, n: rng.beta(0.3, 0.05, n),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "tied": lambda rng, n: np.round(rng.random(n), 2),
    "zeros": draw_mostly_zeros,
}


def draw_binary(shape: str, n: int) -> tuple[Integers, Scores]:
    """Draw n labels, 0 or 1, and probabilities of 1 that are calibrated."""
    rng = np.random.default_rng(0)
    p = SHAPES[shape](rng, n)
    return (rng.random(n) < p).astype(np.int64), p


def draw_slices(n_slices: int, rows: int) -> tuple[Integers, Scores, Integers]:
    """Draw `rows` labels and scores of each slice, with the slice of each row, in mixed order."""
    y, p = draw_binary("uniform", n_slices * rows)
    slices = np.random.default_rng(1).permutation(np.repeat(np.arange(n_slices), rows))
    return y, p, slices


def draw_class_vectors(
    n: int, n_classes: int, dtype: str = "float64", logits: bool = False
) -> tuple[Integers, Scores]:
    """Draw labels (n,) and class vectors (n, n_classes), probabilities or logits.

    The class with the largest entry is right about four times in five.
    """
    rng = np.random.default_rng(0)
    z = (2 * rng.standard_normal((n, n_classes), np.float32)).astype(dtype)
    y = np.where(rng.random(n) < 0.8, z.argmax(1), rng.integers(0, n_classes, n))
    return y, z if logits else softmax(z)


def draw_data(setting: str, n: int) -> tuple[Labels, Scores]:
    """Draw labels with n uniform scores, or with class vectors of n entries in total."""
    if setting == "binary":
        return draw_binary("uniform", n)
    return draw_class_vectors(n // N_CLASSES, N_CLASSES)


def softmax(z: Scores) -> Scores:
    """Convert logits (n, n_classes) to probabilities."""
    p: Scores = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


# --- numpy code for one value ---------------------------------------------------------------


def average_gaps(gap_sums: NDArray[Any], total_weight: float) -> float:
    """Average the absolute gaps of bins, from their sums and the total weight."""
    return float(np.abs(gap_sums).sum() / total_weight)


def find_equal_width_bins(p: Scores, n_bins: int = N_BINS) -> Integers:
    """Find the bin of equal width of each score; it is wrong on some edges."""
    bins: Integers = np.minimum((p * n_bins).astype(int), n_bins - 1)
    return bins


def find_equal_mass_bins(p: Scores) -> Integers:
    """Find the bin of equal mass of each score."""
    edges = np.quantile(p, np.linspace(0, 1, N_BINS + 1))
    return np.searchsorted(edges[1:-1], p)


def equal_width_error(
    y: Labels, p: Scores, n_bins: int = N_BINS, weight: Scores | None = None
) -> float:
    """Compute the calibration error with bins of equal width."""
    gaps = y - p
    total_weight = y.size
    if weight is not None:
        gaps = weight * gaps
        total_weight = weight.sum()
    return average_gaps(np.bincount(find_equal_width_bins(p, n_bins), weights=gaps), total_weight)


def equal_mass_error(y: Labels, p: Scores) -> float:
    """Compute the calibration error with bins of equal mass."""
    return average_gaps(np.bincount(find_equal_mass_bins(p), weights=y - p), y.size)


def errors_of_slices(y: Labels, p: Scores, slices: Integers) -> NDArray[Any]:
    """Compute the errors of all slices, numbered from 0, with bins of equal width, in one go."""
    rows_of_slices = np.bincount(slices)
    bins = slices * N_BINS + find_equal_width_bins(p)
    sums = np.bincount(bins, weights=y - p, minlength=rows_of_slices.size * N_BINS)
    errors: NDArray[Any] = np.abs(sums).reshape(-1, N_BINS).sum(axis=1) / rows_of_slices
    return errors


def errors_in_a_loop(y: Labels, p: Scores, slices: Integers) -> list[float]:
    """Compute the same errors one slice after another, after a sort by slice."""
    order = np.argsort(slices, kind="stable")
    ends = np.cumsum(np.bincount(slices))[:-1]
    return [equal_width_error(y[rows], p[rows]) for rows in np.split(order, ends)]


def sum_shares(
    lower: Integers, share_of_lower: Scores, share_of_upper: Scores, n_points: int
) -> NDArray[Any]:
    """Sum the shares of rows between the points `lower` and `lower + 1`, by point."""
    sums = np.bincount(lower, weights=share_of_lower, minlength=n_points)
    sums += np.bincount(lower + 1, weights=share_of_upper, minlength=n_points)
    return sums


def prepare_convex(y: Labels, p: Scores, positions: Scores) -> ValueOfDraw:
    """Share each row between two centres of bins, and return a function of drawn rows.

    Centres are counted from 0, and a row at position 2.3 lies between the centres 2 and 3. The
    function sums up the shares of the drawn rows.
    """
    lower = np.minimum(positions.astype(int), N_BINS - 2)
    gaps = y - p
    share_of_upper = gaps * (positions - lower)
    share_of_lower = gaps - share_of_upper

    def value(rows: Any) -> float:
        lower_of_rows = lower[rows]
        sums = sum_shares(lower_of_rows, share_of_lower[rows], share_of_upper[rows], N_BINS)
        return average_gaps(sums, lower_of_rows.size)

    return value


def equal_width_convex_error(y: Labels, p: Scores) -> float:
    """Compute the error with rows shared between centres of bins of equal width."""
    return prepare_equal_width_convex(y, p)(ALL_ROWS)


def equal_mass_convex_error(y: Labels, p: Scores) -> float:
    """Compute the error with rows shared between centres of bins of equal mass."""
    edges = np.quantile(p, np.linspace(0, 1, N_BINS + 1))
    centres = (edges[:-1] + edges[1:]) / 2
    return prepare_convex(y, p, np.interp(p, centres, np.arange(N_BINS)))(ALL_ROWS)


def silverman_bandwidth(p: Scores) -> float:
    """Compute Silverman's bandwidth from scores (n,), in units of the score."""
    spread = float(p.std(ddof=1))
    first_quartile, third_quartile = np.quantile(p, [0.25, 0.75])
    iqr = float(third_quartile - first_quartile)
    if iqr > 0:
        spread = min(spread, iqr / NORMAL_IQR)
    return max(MIN_BANDWIDTH, spread * (0.75 * p.size) ** -0.2)


def density_error(y: Labels, p: Scores, h: float | None = None) -> float:
    """Compute the error from Gaussian densities of scores and hits on a grid.

    Each row is shared linearly between two points of the grid. The counts are reflected at 0 and 1
    and smoothed by scipy's `fftconvolve`; `gaussian_kde` would evaluate every row at every point.
    The error has three digits, except for bandwidths of a few steps. The default for the bandwidth
    `h` is Silverman's.
    """
    from scipy.signal import fftconvolve

    if h is None:
        h = silverman_bandwidth(p)
    n_points = N_GRID_POINTS
    positions = np.clip(p * n_points - 0.5, 0, n_points - 1)
    lower = np.minimum(positions.astype(int), n_points - 2)
    upper_part = positions - lower
    bandwidth_in_steps = h * n_points
    reach = min(int(MAX_DISTANCE_IN_BANDWIDTHS * bandwidth_in_steps) + 1, n_points)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / bandwidth_in_steps) ** 2)
    kernel /= kernel.sum()

    def smooth(weight: Scores) -> Scores:
        counts = sum_shares(lower, weight * (1 - upper_part), weight * upper_part, n_points)
        density: Scores = fftconvolve(np.pad(counts, reach, "symmetric"), kernel, "valid")
        return density

    points = (np.arange(n_points) + 0.5) / n_points
    return average_gaps(smooth(y) - points * smooth(np.ones(p.size)), y.size)


BASELINES: dict[str, Baseline] = {
    "ece": equal_width_error,
    "ece_a": equal_mass_error,
    "ece_c": equal_width_convex_error,
    "ece_ac": equal_mass_convex_error,
    "ece_kde": density_error,
}


def find_baseline(estimator: str, setting: str = "binary") -> tuple[str, Baseline]:
    """Find the baseline for an estimator, and the estimator that it computes.

    Estimators without a baseline are compared with the one of "ece".
    """
    name = estimator if estimator in BASELINES else "ece"
    baseline = BASELINES[name]
    settings: dict[str, Baseline] = {
        "binary": baseline,
        "confidence": lambda y, p: baseline(p.argmax(1) == y, p.max(1)),
        "classwise": lambda y, p: float(np.mean([baseline(y == k, q) for k, q in enumerate(p.T)])),
    }
    return name, settings[setting]


# --- numpy loops for replicates -------------------------------------------------------------


def prepare_equal_width(y: Labels, p: Scores) -> ValueOfDraw:
    """Find bins of equal width once, and return the error as a function of rows."""
    bins = find_equal_width_bins(p)
    gaps = y - p

    def value(rows: Any) -> float:
        sums = np.bincount(bins[rows], weights=gaps[rows], minlength=N_BINS)
        return average_gaps(sums, rows.size)

    return value


def prepare_equal_width_convex(y: Labels, p: Scores) -> ValueOfDraw:
    """Find the centres around scores once, and return the error as a function of rows."""
    return prepare_convex(y, p, np.clip(p * N_BINS - 0.5, 0, N_BINS - 1))


def repeat_on_draws(
    baseline: Callable[..., float], **options: Any
) -> Callable[[Labels, Scores], ValueOfDraw]:
    """Make a function of rows that calls the baseline anew with every draw."""
    return lambda y, p: lambda rows: baseline(y[rows], p[rows], **options)


LOOPS: dict[str, Callable[[Labels, Scores], ValueOfDraw]] = {
    "ece": prepare_equal_width,
    "ece_a": repeat_on_draws(equal_mass_error),
    "ece_c": prepare_equal_width_convex,
    "ece_ac": repeat_on_draws(equal_mass_convex_error),
    "ece_kde": repeat_on_draws(density_error),
}


def prepare_estimator(estimator: str, y: Labels, p: Scores) -> ValueOfDraw:
    """Return an estimate as a function of rows; for class vectors, the class mean."""
    prepare = LOOPS[estimator if estimator in LOOPS else "ece"]
    if p.ndim == 1:
        return prepare(y, p)
    values = [prepare(y == k, np.ascontiguousarray(p[:, k])) for k in range(p.shape[1])]
    return lambda rows: float(np.mean([value(rows) for value in values]))


def resample(values: Sequence[ValueOfDraw], n: int, size: int, replicates: int) -> Scores:
    """Compute values (len(values), replicates) of the same draws of `size` of n rows."""
    rng = np.random.default_rng(0)
    draws = (rng.integers(0, n, size) for _ in range(replicates))
    return np.array([[value(rows) for value in values] for rows in draws]).T


def redraw_labels(estimator: str, p: Scores, replicates: int) -> Scores:
    """Compute the values (replicates,) for labels drawn with the probabilities.

    Scores stay as they are, and so do their bins.
    """
    rng = np.random.default_rng(0)
    bins = find_equal_mass_bins(p) if estimator == "ece_a" else find_equal_width_bins(p)
    values = []
    for _ in range(replicates):
        labels = rng.random(p.size) < p
        values.append(average_gaps(np.bincount(bins, weights=labels - p), p.size))
    return np.array(values)


# --- clock ----------------------------------------------------------------------------------


class Race(NamedTuple):
    """Seconds of one call of `fast`, and the time of `slow` divided by it."""

    seconds: float
    ratio: float


def measure_seconds(call: Call, repeats: int) -> float:
    """Measure the mean seconds of a call that is repeated without a break."""
    start = perf_counter()
    for _ in range(repeats):
        call()
    return (perf_counter() - start) / repeats


def count_repeats(call: Call) -> int:
    """Count the calls that make up a round, after a first one that warms up."""
    call()
    repeats = 1
    while repeats * measure_seconds(call, repeats) < MIN_SECONDS_PER_ROUND:
        repeats *= 2
    return repeats


def race_rounds(fast: Call, slow: Call, rounds: int) -> list[tuple[float, float]]:
    """Measure the seconds of both calls in rounds, in which the two take turns."""
    fast_repeats = count_repeats(fast)
    slow_repeats = count_repeats(slow)
    return [
        (measure_seconds(fast, fast_repeats), measure_seconds(slow, slow_repeats))
        for _ in range(rounds)
    ]


def race(fast: Call, slow: Call, rounds: int = 7) -> Race:
    """Measure medians over rounds in which two calls take turns."""
    times = race_rounds(fast, slow, rounds)
    seconds = median(fast_seconds for fast_seconds, _ in times)
    ratio = median(slow_seconds / fast_seconds for fast_seconds, slow_seconds in times)
    return Race(seconds, ratio)


def race_fastest_rounds(fast: Call, slow: Call, rounds: int = 15) -> float:
    """Divide the shortest time of `fast` by the shortest time of `slow`.

    The two take turns. On a busy machine most rounds are interrupted, and hardly ever all of them.
    """
    fast_times, slow_times = zip(*race_rounds(fast, slow, rounds), strict=True)
    return min(fast_times) / min(slow_times)


def race_between(fast: Call, slow: Call, other_work: Call, rounds: int = 200) -> Race:
    """Measure medians of single calls, each of them after other work.

    The other work takes instructions, branches and data out of the caches, as in a program that
    makes a call now and then.
    """
    seconds: dict[Call, list[float]] = {fast: [], slow: []}
    for _ in range(rounds):
        for call in seconds:
            other_work()
            seconds[call].append(measure_seconds(call, 1))
    return Race(median(seconds[fast]), median(seconds[slow]) / median(seconds[fast]))


def race_replicates(
    fast: Call, replicates: int, slow: Call, loop_replicates: int, rounds: int = 3
) -> Race:
    """Measure one replicate, from calls that make several of them."""
    times = race(fast, slow, rounds)
    return Race(times.seconds / replicates, times.ratio * replicates / loop_replicates)


# --- measurements that several tools share --------------------------------------------------


def count_replicates(rows: int) -> int:
    """Count the replicates of one call of fastece, for the number of rows in each."""
    return max(MIN_REPLICATES, min(MAX_REPLICATES, ROWS_PER_CALL // rows))


def count_loop_replicates(rows: int) -> int:
    """Count the replicates of one numpy loop, for the number of rows in each."""
    return max(MIN_LOOP_REPLICATES, min(MAX_LOOP_REPLICATES, ROWS_PER_LOOP // rows))


def race_call(n: int, setting: str, estimator: str, rounds: int = 7) -> Race:
    """Measure a call of `fastece.ece` beside its baseline."""
    y, p = draw_data(setting, n)
    _, baseline = find_baseline(estimator, setting)
    call = partial(fastece.ece, y, p, estimator=estimator, setting=setting)
    return race(call, partial(baseline, y, p), rounds)


def race_bootstrap(n: int, estimator: str) -> Race:
    """Measure one replicate of `fastece.bootstrap`, beside its numpy loop."""
    y, p = draw_binary("uniform", n)
    bootstrap = partial(fastece.bootstrap, y, p, estimator=estimator, rng=0)
    shortest_call = partial(bootstrap, n_resamples=MIN_REPLICATES)
    shortest_call()
    is_long = measure_seconds(shortest_call, 1) > LONG_CALL
    replicates = MIN_REPLICATES if is_long else count_replicates(n)
    loop_replicates = count_loop_replicates(n)
    call = partial(bootstrap, n_resamples=replicates)
    loop = partial(resample, [prepare_estimator(estimator, y, p)], n, n, loop_replicates)
    return race_replicates(call, replicates, loop, loop_replicates)
