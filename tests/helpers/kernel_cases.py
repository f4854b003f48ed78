"""Scores, ranges, grids and counts that the tests of kernels share."""

from math import inf

import numpy as np
import reference

from fastece.estimators.binned.layouts import BinRule, convex_layout, fixed_layout, hard_layout
from fastece.kernels import REPLICATES
from helpers import strategies as cases

BINS = [1, 2, 3, 7, 10, 15, 49, 100, 1000]
RANGES = [(0.0, 1.0), (1 / 3, 1.0), (0.1, 0.7), (1 / 7, 1.0)]
WEIGHTS = ["none", "integers", "random", "dynamic"]
# Ranges of bins of equal weight: number of bins, ends of the range, threshold.
RANGES_OF_QUANTILES = [
    (4, 0.0, 1.0, -inf), (1, 0.0, 1.0, -inf), (9, 0.25, 0.6, 0.2), (2, 0.0, 1.0, 0.3),
    (3, 0.0, 1.0, 1.0),
]  # fmt: skip


def awkward_scores(edges):
    """Every edge with its neighbours, 0, 1, the smallest float, the same through float32."""
    scores = np.concatenate([cases.around(edges), [0.0, 1.0, 5e-324], np.linspace(0, 1, 101)])
    return np.concatenate([scores, scores.astype(np.float32).astype(np.float64).clip(0, 1)])


def seven_bins(even, convex):
    """Seven bins, evenly spaced or not."""
    if even:
        return fixed_layout(bin_rule(7, 0.1, 0.9, is_convex=convex))
    edges = np.array([0.1, 0.15, 0.15, 0.3, 0.31, 0.6, 0.8, 0.9])
    return convex_layout(edges) if convex else hard_layout(edges, edges[1:-1], True)


def bin_rule(n_bins, low, high, *, edges="uniform", closed_right=True, is_convex=False):
    """The rule of bins of a range, without a threshold."""
    return BinRule(n_bins, low, high, edges, closed_right, is_convex, threshold=-inf)


def ordered_sets(n_rows):
    """name -> scores in increasing order with ties of every kind, of fewer rows and of more."""
    rng = np.random.default_rng(0)
    return {
        "one": np.array([0.4]),
        "two": np.array([0.2, 0.7]),
        "zeros": np.sort(np.where(rng.random(40) < 0.8, 0.0, rng.random(40))),
        "hundredths": np.sort(rng.random(70).round(2)),
        "constant": np.full(9, 0.3),
        "spread": np.sort(rng.random(50)),
        "not a multiple of 16": np.sort(rng.random(n_rows + 1)).round(2),
        "many": np.sort(rng.random(n_rows + 21)),
        "many, ends of groups": np.sort(rng.random(n_rows + 32).round(1)),
    }


def weights_of(kind, n, seed=1):
    """None, or n positive weights; integers, so that bins hold exactly their share."""
    rng = np.random.default_rng(seed)
    if kind == "none":
        return None
    if kind == "integers":
        return rng.integers(1, 4, n).astype(np.float64)
    return rng.random(n) + 0.01 if kind == "random" else 10 ** rng.uniform(-8, 8, n)


def counts(n, seed=0, rate=1.0):
    """Multiplicities (n, 32), a column without any, and one of the last row alone."""
    c = np.random.default_rng(seed).poisson(rate, (n, REPLICATES)).astype(np.uint8)
    c[:, 5] = c[:, 6] = 0
    c[-1, 6] = 7
    return c


def quantile_fields(n_bins, low, high, threshold, right, convex):
    """The fields of bins of equal weight for the reference."""
    return {
        "n_bins": n_bins, "edges": "quantile", "score_range": (low, high), "threshold": threshold,
        "mapping": "convex" if convex else "hard", "closed": "right" if right else "left",
    }  # fmt: skip


def expected_sums(sample, w, fields):
    """W, and sums (2, B) of w (y - s) and w over the bins of the definition."""
    rows = sample.s.tolist(), sample.y.tolist(), sample.low, sample.high
    cells = reference.cells(rows, w, **fields)[1]
    gaps = [gap for _, gap, _, _ in cells]
    weights = [weight for weight, _, _, _ in cells]
    return sum(weights), np.array([gaps, weights])
