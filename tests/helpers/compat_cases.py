"""Random data on which libraries differ most, and the libraries themselves where installed."""

import importlib
import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

# Labels of random rows at times contradict the predictions.
RANDOM_LABELS = pytest.mark.filterwarnings(
    "ignore:.*are labels and columns in the same order", "ignore:.*is it the probability of"
)

BINS = (1, 2, 3, 5, 7, 10, 15, 49, 100)
SIZES = (1, 2, 3, 5, 8, 20, 60, 200)
KINDS = (np.float32, np.float64)

QUICK = range(60)
ALL = pytest.param(range(2000), marks=[pytest.mark.peers, pytest.mark.slow], id="2000")
# The loops of the reference are slow, and the library itself is compared 2000 times.
ONLY_QUICK = pytest.mark.parametrize("seeds", [pytest.param(QUICK, id="60")])
SEEDS = pytest.mark.parametrize("seeds", [pytest.param(QUICK, id="60"), ALL])


def library(name):
    """An installed library, or the test is skipped; its import may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, exc_type=ImportError)


def general_calibration_error():
    """The one file of uncertainty_metrics that needs only numpy; the package needs TensorFlow."""
    package = importlib.util.find_spec("uncertainty_metrics")
    if package is None:
        pytest.skip("uncertainty_metrics is not installed")
    file = Path(package.submodule_search_locations[0], "numpy", "general_calibration_error.py")
    spec = importlib.util.spec_from_file_location("general_calibration_error", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quietly(function, *args, **kwargs):
    """The value of a library's function, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def until(seeds, compare):
    """Call `compare(seed)` for 0, 1, ..., until it was true as often as there are seeds."""
    compared = 0
    for seed in range(20 * len(seeds)):
        if compare(seed):
            compared += 1
        if compared == len(seeds):
            return
    raise AssertionError(f"only {compared} of {len(seeds)} cases could be compared")


def tolerance(kind, n):
    """How far a library may be from the definition: float32 sums are added one by one in some."""
    return 1e-12 if kind is np.float64 else 2e-6 + 3e-8 * n


def some_edges(rng, n, n_bins):
    """Edges `j / B` in both types, and the floats next to them."""
    j = rng.integers(0, n_bins + 1, n)
    edge = j / n_bins if rng.random() < 0.5 else (1.0 - (n_bins - j) * (1.0 / n_bins))
    if rng.random() < 0.5:
        edge = edge.astype(np.float32)
    toward = rng.choice([-1.0, 2.0], n).astype(edge.dtype)
    near = np.where(rng.random(n) < 0.5, np.nextafter(edge, toward), edge)
    return np.clip(near, 0, 1).astype(float)


def some_scores(rng, n, n_bins, kind):
    """(n,) scores in [0, 1]: spread, sharp, tied, on edges, 0 and 1, or all of these."""
    pools = [
        rng.random(n),
        rng.beta(0.2, 0.2, n),
        rng.integers(0, 11, n) / 10,
        rng.integers(0, 101, n) / 100,
        some_edges(rng, n, n_bins),
        rng.integers(0, 2, n).astype(float),
        np.full(n, rng.random()),
        rng.choice(rng.random(3), n),
    ]
    which = rng.integers(0, len(pools) + 1)
    mixed = np.choose(rng.integers(0, len(pools), n), pools)
    scores = pools[which] if which < len(pools) else mixed
    return np.clip(scores, 0, 1).astype(kind)


def some_hits(rng, scores):
    """(n,) labels 0 and 1: near calibrated, of one kind only, or by chance."""
    n = len(scores)
    way = rng.integers(0, 4)
    if way == 0:
        return np.full(n, rng.integers(0, 2))
    if way == 1:
        return rng.integers(0, 2, n)
    power = 1 if way == 2 else 2
    return (rng.random(n) < scores.astype(float) ** power).astype(np.int64)


def some_rows(rng, n, k, n_bins, kind):
    """(n, K) class vectors: spread, one-hot, equal, of few values, or with an entry on an edge."""
    shares_of_others = rng.dirichlet(np.full(k - 1, rng.choice([0.3, 1.0])), n)
    top = some_edges(rng, n, n_bins)
    tied = rng.multinomial(10, np.full(k, 1 / k), n) / 10
    on_edges = np.column_stack([top, (1 - top)[:, None] * shares_of_others])
    pools = [
        rng.dirichlet(np.full(k, rng.choice([0.1, 1.0, 5.0])), n),
        np.eye(k)[rng.integers(0, k, n)],
        np.full((n, k), 1 / k),
        tied,
        on_edges,
        tied[rng.integers(0, min(n, 3), n)],
    ]
    rows = pools[rng.integers(0, len(pools))]
    if rng.random() < 0.2:
        pick = rng.integers(0, len(pools), n)
        rows = np.array([pools[which][i] for i, which in enumerate(pick)])
    rows = rows[:, rng.permutation(k)]
    return np.clip(rows, 0, 1).astype(kind)


def some_labels(rng, rows):
    """(n,) labels of class vectors: drawn from them, by chance, or with classes missing."""
    n, k = rows.shape
    way = rng.integers(0, 4)
    if way == 0:
        return rng.integers(0, k, n)
    if way == 1:
        return np.full(n, rng.integers(0, k))
    if way == 2:
        return rng.choice(rng.integers(0, k, 2), n)
    shares = rows.astype(float).cumsum(axis=1)
    return np.minimum((rng.random((n, 1)) * shares[:, -1:] > shares).sum(axis=1), k - 1)


def size_bins_and_kind(rng):
    """A number of rows, a number of bins, and the type of scores."""
    n = rng.choice(SIZES)
    n_bins = int(rng.choice(BINS))
    return n, n_bins, KINDS[rng.integers(0, 2)]


def binary_case(seed):
    """`(rng, scores, hits, n_bins, kind)`."""
    rng = np.random.default_rng(seed)
    n, n_bins, kind = size_bins_and_kind(rng)
    scores = some_scores(rng, n, n_bins, kind)
    return rng, scores, some_hits(rng, scores), n_bins, kind


def class_case(seed):
    """`(rng, rows, labels, n_bins, kind)`."""
    rng = np.random.default_rng(seed)
    n, n_bins, kind = size_bins_and_kind(rng)
    rows = some_rows(rng, n, int(rng.choice([2, 3, 4, 10])), n_bins, kind)
    return rng, rows, some_labels(rng, rows), n_bins, kind


def near(got, want, atol, seed):
    """Is one value, or are two lists of them, within `atol`? The message says the seed."""
    assert np.shape(got) == np.shape(want), f"seed {seed}: {got} against {want}"
    off = np.max(np.abs(np.asarray(got, dtype=float) - np.asarray(want, dtype=float)), initial=0.0)
    assert off <= atol, f"seed {seed}: {got} against {want}, {off:.3g} apart"
