"""Calibration errors in two lines of numpy or of a package for histograms, to compare with.

Each gets labels and scores, checks nothing, and adds up the gaps `y - p` of each bin. A package
that is not installed is left out. `where_they_differ` shows what the two lines do with scores on an
edge, at 1.0 or missing.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

import fastece
from benchmarks import baselines
from benchmarks.baselines import N_BINS, Labels, Scores, average_gaps

# Numbers of bins whose edges are tried, all together 20 000 edges. Nobody has many more bins.
NUMBERS_OF_BINS = range(2, 201)
# Largest difference of two values that are the same sums in another order.
TOLERANCE = 1e-12


def by_numpy_histogram(y: Labels, p: Scores, n_bins: int = N_BINS) -> float:
    """Compute the error with bins of equal width by `np.histogram`."""
    sums, _ = np.histogram(p, n_bins, (0, 1), weights=y - p)
    return average_gaps(sums, y.size)


def by_fast_histogram(y: Labels, p: Scores, n_bins: int = N_BINS) -> float:
    """Compute the error with bins of equal width by fast-histogram."""
    from fast_histogram import histogram1d

    return average_gaps(histogram1d(p, n_bins, (0, 1), weights=y - p), y.size)


def by_boost_histogram(y: Labels, p: Scores, n_bins: int = N_BINS) -> float:
    """Compute the error with bins of equal width by boost-histogram.

    A score of 1.0 lies beyond the last bin, in the one for whatever overflows.
    """
    import boost_histogram as bh

    histogram = bh.Histogram(bh.axis.Regular(n_bins, 0, 1), storage=bh.storage.Double())
    histogram.fill(p, weight=y - p)
    return average_gaps(histogram.values(flow=True), y.size)


def by_partition(y: Labels, p: Scores) -> float:
    """Compute the error with bins of equal mass, whose edges `np.partition` finds.

    Bin k ends at the first score that has at least k / N_BINS of the scores at or below it.
    """
    ranks = -(-np.arange(1, N_BINS) * p.size // N_BINS) - 1
    edges = np.partition(p, ranks)[ranks]
    return average_gaps(np.bincount(np.searchsorted(edges, p), weights=y - p), y.size)


class Opponent(NamedTuple):
    """Two lines that compute what an estimator of fastece computes.

    `package` is imported by this name. Those of equal width take the number of bins as well.
    """

    estimator: str
    package: str
    value: Callable[..., float]


OPPONENTS = {
    "np.bincount": Opponent("ece", "numpy", baselines.equal_width_error),
    "np.histogram": Opponent("ece", "numpy", by_numpy_histogram),
    "fast-histogram": Opponent("ece", "fast_histogram", by_fast_histogram),
    "boost-histogram": Opponent("ece", "boost_histogram", by_boost_histogram),
    "np.quantile": Opponent("ece_a", "numpy", baselines.equal_mass_error),
    "np.partition": Opponent("ece_a", "numpy", by_partition),
}


def is_installed(name: str) -> bool:
    """Whether the package of an opponent can be imported."""
    return find_spec(OPPONENTS[name].package) is not None


# --- what two lines do with scores on an edge, at 1.0 or missing ------------------------------


class Difference(NamedTuple):
    """What one way gives where scores lie on the edges of bins.

    `with_ones` is the error of data of which three in ten scores are 1.0, `with_two_decimals` that
    of scores with two decimals, `misplaced` the share of edges whose next smaller score is counted
    in the bin above, and `with_a_missing_score` the error of three rows of which one score is nan,
    which is None where the way refuses them.
    """

    way: str
    with_ones: float
    with_two_decimals: float
    misplaced: float
    with_a_missing_score: float | None


def draw_many_ones(n: int = 10_000) -> tuple[Labels, Scores]:
    """Draw labels and scores, of which three in ten are 1.0 and right four times in five."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(n) < 0.3, 1.0, rng.random(n))
    return (rng.random(n) < 0.8 * p).astype(np.int64), p


def share_of_misplaced(value: Callable[..., float]) -> float:
    """Return the share of edges whose next smaller score is counted in the bin above.

    That score is a hit, and a miss lies in the middle of the bin below the edge. In one bin the two
    gaps have opposite signs and cancel in part, and in two bins they do not.
    """
    y = np.array([1, 0])
    misplaced = []
    for n_bins in NUMBERS_OF_BINS:
        for k in range(1, n_bins):
            score = np.nextafter(k / n_bins, 0)
            middle = (k - 0.5) / n_bins
            in_one_bin = abs(1 - score - middle) / 2
            error = value(y, np.array([score, middle]), n_bins=n_bins)
            misplaced.append(abs(error - in_one_bin) > TOLERANCE)
    return float(np.mean(misplaced))


def with_a_missing_score(value: Callable[..., float]) -> float | None:
    """Return the error of three rows of which one score is nan, or None if that is refused."""
    try:
        with np.errstate(invalid="ignore"):
            return value(np.array([1, 0, 1]), np.array([np.nan, 0.3, 0.2]))
    except ValueError:
        return None


def where_they_differ() -> Iterator[Difference]:
    """Yield what fastece and each installed way of equal-width bins give on hard data."""
    ways: dict[str, Callable[..., float]] = {"fastece": fastece.ece}
    ways |= {
        name: opponent.value
        for name, opponent in OPPONENTS.items()
        if opponent.estimator == "ece" and is_installed(name)
    }
    for way, value in ways.items():
        yield Difference(
            way,
            with_ones=value(*draw_many_ones()),
            with_two_decimals=value(*baselines.draw_binary("tied", 10_000)),
            misplaced=share_of_misplaced(value),
            with_a_missing_score=with_a_missing_score(value),
        )
