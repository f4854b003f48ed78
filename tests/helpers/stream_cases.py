"""Data, cuts and comparisons of the tests of streams."""

from functools import cache
from pathlib import Path

import numpy as np

import fastece
from fastece import Accumulator
from helpers.strategies import around, around32

EXACT_BINS = [10, 12, 15, 16, 18, 20, 25, 30, 50, 100]
DATA = Path(fastece.__file__).parent / "data"
SETTINGS = ["binary", "confidence", "classwise", 1]
DTYPES = [np.float32, np.float64]
WEIGHTS = ["none", "integers", "eighths", "random"]


@cache
def digits(name="neural_network"):
    """(y_true, y_prob) of a real network or forest on 1797 digits of 10 classes."""
    with np.load(DATA / f"digits_{name}.npz") as file:
        return file["y_true"], file["y_prob"]


def weights_of(kind, n, seed=0):
    """None, or n weights; of the integers some are 0, the first is not."""
    rng = np.random.default_rng(1000 * seed + n)
    if kind == "none":
        return None
    if kind == "random":
        return rng.random(n) + 1e-3
    weight = np.concatenate([[2], rng.integers(0, 5, n)])[:n]
    return weight / 8 if kind == "eighths" else weight


def scores_of(kind, n, seed=0):
    """n scores: all over [0, 1], like a network that is sure, or around two modes."""
    rng = np.random.default_rng(seed)
    if kind == "spread":
        return rng.random(n)
    if kind == "sharp":
        return rng.beta(20, 0.5, n)
    is_lower_mode = rng.random(n) < 0.4
    return np.where(is_lower_mode, rng.beta(8, 20, n), rng.beta(40, 6, n))


def labels_of(scores, seed=0):
    """Hits a little less frequent than the scores say."""
    rng = np.random.default_rng(10_000 + seed)
    s = np.asarray(scores, dtype=float)
    return (rng.random(len(s)) < s - 0.25 * s * (1 - s) - 0.02 * s).astype(np.int64)


def binary_data(kind, n, seed=0):
    """(y_true, y_prob)."""
    s = scores_of(kind, n, seed)
    return labels_of(s, seed), s


def edge_scores(n_bins, dtype=np.float64):
    """Scores on every edge and centre of the bins, beside them, on 0 and on 1."""
    points = np.arange(2 * n_bins + 1) / (2 * n_bins)
    return around(points) if dtype == np.float64 else around32(points)


def class_data(n, n_classes=5, seed=0, sharp=4.0):
    """(y_true, y_prob) of a simulated network that is sure of most rows."""
    rng = np.random.default_rng(seed)
    z = sharp * rng.standard_normal((n, n_classes))
    y = (0.7 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return y, p / p.sum(axis=1, keepdims=True)


def data_of(setting, n, dtype=np.float64, seed=0):
    """(n_classes, y_true, y_prob) for a setting."""
    if setting == "binary":
        y, p = binary_data("bimodal", n, seed)
        return None, y, p.astype(dtype)
    y, p = class_data(n, seed=seed)
    return p.shape[1], y, p.astype(dtype)


def state_of(y, p, weight=None, *, n_classes=None, **options):
    """The state of one update."""
    update = {name: options.pop(name) for name in ("row_offset", "groups") if name in options}
    return Accumulator(n_classes, **options).update(y, p, sample_weight=weight, **update)


def part(array, rows):
    """Some rows of an array, or of None."""
    return None if array is None else np.asarray(array)[rows]


def arrays(state):
    """Copies of the arrays of a state."""
    return {name: np.array(array) for name, array in state.state_dict().items()}


def same_arrays(a, b):
    """The same names, types and integers."""
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and np.array_equal(a[name], b[name]) for name in a
    )


def assert_same(a, b):
    """Equal states with equal sums; the number of the next row, in the totals, may differ."""
    assert a == b
    one, two = ({k: v for k, v in arrays(x).items() if k != "totals"} for x in (a, b))
    assert same_arrays(one, two)
    assert a.n == b.n
