"""Scores, labels and weights that break binning code: lists, and hypothesis strategies."""

from itertools import pairwise
from math import nextafter

import numpy as np
import reference
from hypothesis import strategies as st

RANGES = ["unit", "support", (0.2, 0.7)]
NORMS = [1.0, 2.0, 3.5, np.inf]
N_BINS = [1, 2, 3, 7, 10, 15, 100, "sqrt"]
BINNINGS = [  # edges, mapping, closed: every combination that is defined
    ("uniform", "hard", "right"),
    ("uniform", "hard", "left"),
    ("uniform", "convex", "right"),
    ("quantile", "hard", "right"),
    ("quantile", "hard", "left"),
    ("quantile", "convex", "right"),
]


def fields_of(binning):
    """The keyword arguments of one entry of BINNINGS."""
    return dict(zip(("edges", "mapping", "closed"), binning, strict=True))


def around(points):
    """Every point and its two neighbouring floats, as float64 in [0, 1]."""
    points = np.asarray(points, dtype=float)
    triples = np.concatenate([np.nextafter(points, -1), points, np.nextafter(points, 2)])
    return np.clip(triples, 0, 1)


def around32(points):
    """The same in float32: a float32 that rounds to an edge need not equal it."""
    points = np.asarray(points, dtype=np.float32)
    down = np.nextafter(points, np.float32(-1))
    up = np.nextafter(points, np.float32(2))
    return np.clip(np.concatenate([down, points, up]), np.float32(0), np.float32(1))


def edges_of(n_bins, score_range="unit", support=(0.0, 1.0)):
    """The uniform edges of one option set."""
    low, high = reference.score_range_of(score_range, *support)
    return reference.uniform_edges(n_bins, low, high)


def centres_of(n_bins, score_range="unit"):
    """The bin centres: where convex shares switch their pair of bins."""
    edges = edges_of(n_bins, score_range)
    return [(a + b) / 2 for a, b in pairwise(edges)]


def score_sets(n_bins=15):
    """name -> scores: every edge of `n_bins` bins on every range, and what real data do."""
    rng = np.random.default_rng(20)
    zeros = np.where(rng.random(60) < 0.8, 0.0, rng.random(60))
    bell = 1 / (1 + np.exp(-3 * rng.standard_normal(120)))
    return {
        "edges": around(edges_of(n_bins)),
        "edges of [1/3, 1]": around(edges_of(n_bins, (1 / 3, 1.0))),
        "edges of [0.2, 0.7]": around(edges_of(n_bins, (0.2, 0.7))),
        "centres": around(centres_of(n_bins)),
        "edges, float32": around32(edges_of(n_bins)),
        "hundredths": np.arange(101) / 100,
        "hundredths, float32": (np.arange(101) / 100).astype(np.float32),
        "80 % zeros": zeros,
        "80 % ones": 1 - zeros,
        "constant 0.3": np.full(12, 0.3),
        "constant 0": np.zeros(7),
        "constant 1": np.ones(7),
        "one row": np.array([0.6]),
        "n < B": np.array([0.9, 0.1, 0.4, 1.0, 0.4]),
        "bell": bell,
        "bell, float32": bell.astype(np.float32),
    }


def labels_for(scores, seed=0):
    """Hits that are roughly, not perfectly, as frequent as the scores say."""
    rng = np.random.default_rng(1000 + seed)
    return (rng.random(len(scores)) < 0.2 + 0.7 * np.asarray(scores, dtype=float)).astype(np.int64)


def class_matrix(scores, seed=0):
    """(y_true, y_prob) with three classes: the score is column i % 3 of row i, the rest is shared
    equally, so the maximum is the score, or a tie of the two others."""
    scores = np.asarray(scores)
    prob = np.repeat(((1 - scores) / 2)[:, None], 3, axis=1)
    rows = np.arange(len(scores))
    prob[rows, rows % 3] = scores
    rng = np.random.default_rng(2000 + seed)
    other = rng.integers(0, 3, len(scores))
    return np.where(rng.random(len(scores)) < 0.6, np.argmax(prob, axis=1), other), prob


WEIGHTS = ["none", "integers", "random", "huge"]


def weights_for(kind, n):
    """None, or n weights: integers with zeros (the first is not), random, random times 1e200."""
    rng = np.random.default_rng(n)
    if kind == "none":
        return None
    if kind == "integers":
        return np.concatenate([[2], rng.integers(0, 4, n)])[:n]
    return rng.random(n) * (1e200 if kind == "huge" else 1.0) + (0.0 if kind == "huge" else 1e-3)


def as_lists(*arrays):
    """Plain Python numbers for the oracle; a float32 becomes the float64 it equals."""
    return tuple(None if array is None else np.asarray(array).tolist() for array in arrays)


POINTS = sorted(
    {
        *(j / b for b in (2, 3, 7, 10, 15) for j in range(b + 1)),
        *(min(nextafter(j / 15, 2), 1.0) for j in range(16)),
        *(max(nextafter(j / 15, -1), 0.0) for j in range(16)),
    }
)


def score():
    """A score: an edge, its neighbour, a hundredth, an end, or anything in [0, 1]."""
    return st.one_of(
        st.sampled_from(POINTS),
        st.integers(0, 100).map(lambda i: i / 100),
        st.sampled_from([0.0, 1.0]),
        st.floats(0, 1, allow_subnormal=False),
    )


@st.composite
def binary(draw, scores=None, max_size=40):
    """(y_true, y_prob) of one to `max_size` rows."""
    scores = score() if scores is None else scores
    prob = draw(st.lists(scores, min_size=1, max_size=max_size))
    true = draw(st.lists(st.integers(0, 1), min_size=len(prob), max_size=len(prob)))
    return np.array(true), np.array(prob)


@st.composite
def multiclass(draw, n_classes=3, max_size=25):
    """(y_true, y_prob): integers over their row sum, so that rows often have ties."""
    row = st.lists(st.integers(0, 40), min_size=n_classes, max_size=n_classes).filter(any)
    parts = np.array(draw(st.lists(row, min_size=1, max_size=max_size)), dtype=float)
    true = st.lists(st.integers(0, n_classes - 1), min_size=len(parts), max_size=len(parts))
    return np.array(draw(true)), parts / parts.sum(axis=1, keepdims=True)


def integer_weights(n, smallest=0):
    """n integer weights, not all 0."""
    weight = st.lists(st.integers(smallest, 4), min_size=n, max_size=n)
    return weight.filter(any).map(np.array)


def dyadic():
    """Scores that are multiples of 2**-30, for which 1 - p is exact; edges of ten bins near by."""
    unit = 2**30
    return st.one_of(
        st.integers(0, unit), st.sampled_from([j * unit // 16 for j in range(17)])
    ).map(lambda i: i / unit)


def binned_fields(mappings=("hard", "convex")):
    """Fields of Binned: edges, mapping, closed and number of bins."""
    binning = st.sampled_from([b for b in BINNINGS if b[1] in mappings]).map(fields_of)
    n_bins = st.sampled_from([1, 2, 3, 7, 10, 15])
    return st.builds(lambda fields, b: {**fields, "n_bins": b}, binning, n_bins)
