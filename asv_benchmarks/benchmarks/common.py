"""Data and clock that the benchmarks share."""

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHAPES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "uniform": lambda rng, n: rng.random(n),
    "sharp": lambda rng, n: rng.beta(0.3, 0.05, n),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "tied": lambda rng, n: np.round(rng.random(n), 2),
    "zeros": lambda rng, n: rng.random(n) * (rng.random(n) < 0.2),
}


def binary(shape: str, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and probabilities of the positive class."""
    rng = np.random.default_rng(0)
    p = SHAPES[shape](rng, n)
    return (rng.random(n) < p).astype(np.int64), p


def numpy_ece(y: NDArray[np.generic], p: NDArray[np.floating], n_bins: int = 15) -> float:
    """The usual idiom: unchecked, and wrong on some edges."""
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, weights=y - p)).sum() / y.size)


def class_vectors(
    n: int, n_classes: int, dtype: str
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Labels and class vectors; the largest probability is right about four times in five."""
    rng = np.random.default_rng(0)
    p = np.exp(2 * rng.standard_normal((n, n_classes), np.float32)).astype(dtype)
    p /= p.sum(axis=1, keepdims=True)
    return np.where(rng.random(n) < 0.8, p.argmax(1), rng.integers(0, n_classes, n)), p


def numpy_confidence(y: NDArray[np.int64], p: NDArray[np.floating]) -> float:
    """The usual idiom for the top label."""
    return numpy_ece(p.argmax(1) == y, p.max(1))


def numpy_classwise(y: NDArray[np.int64], p: NDArray[np.floating]) -> float:
    """The usual idiom for every class against the rest."""
    return float(np.mean([numpy_ece(y == k, p[:, k]) for k in range(p.shape[1])]))


def ratio(fast: Callable[[], Any], slow: Callable[[], Any], rounds: int = 7) -> float:
    """Median of slow / fast over interleaved rounds, after one call of each."""
    fast(), slow()
    ratios = []
    for _ in range(rounds):
        start = perf_counter()
        fast()
        between = perf_counter()
        slow()
        ratios.append((perf_counter() - between) / (between - start))
    return median(ratios)
