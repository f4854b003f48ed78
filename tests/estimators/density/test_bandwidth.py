"""Silverman's rule: of all rows and of replicates."""

from dataclasses import replace

import numpy as np
import pytest

from fastece import KDE, calibration_test
from helpers.kde_helpers import (
    KDE_NAME,
    close,
    exact,
    kde,
    multiplicities,
    rows_of,
    same,
    samples,
    smooth,
)
from oracles import reference_kde as oracle


def test_silverman_counts_rows_and_not_weights():
    y, s = smooth(60)
    rng = np.random.default_rng(4)
    for weight in (None, np.full(60, 9.0), rng.integers(0, 4, 60), 10 ** rng.uniform(-3, 3, 60)):
        n = 60 if weight is None else int((weight > 0).sum())
        h = oracle.silverman(s, weight, n)
        value = kde(y, s, weight)
        assert value == same(kde(y, s, weight, bandwidth=h), 1e-9)
        assert value == close(exact(y, s, weight))
    # hits and misses in two places: the posterior is 1/2 and the error grows with the bandwidth
    y, s = np.array([0, 0, 1, 1]), np.array([0.45, 0.55, 0.45, 0.55])
    twice = kde(np.repeat(y, 2), np.repeat(s, 2))
    assert kde(y, s, np.full(4, 2)) == same(kde(y, s), 1e-9)
    assert kde(y, s, np.full(4, 2)) > 1.02 * twice


@pytest.mark.parametrize(
    "s",
    [
        [0.2, 0.2, 0.2, 0.2, 0.8],  # IQR 0: left out
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],  # cuts between two scores
        [0.0, 0.45, 0.5, 0.55, 1.0, 0.52, 0.47],  # the IQR is the smaller one
        [0.5, 0.5 + 1e-9],  # the least bandwidth
        [0.05, 0.1, 0.6, 0.61, 0.99],
    ],
)
def test_silverman_by_the_rule(s):
    y = np.arange(len(s)) % 2
    for low, high in ((0.0, 1.0), (0.15, 0.58)):
        h = oracle.silverman(s, None, len(s), low, high)
        value = kde(y, s, score_range=(low, high))
        assert value == same(kde(y, s, score_range=(low, high), bandwidth=h), 1e-9)


def test_silverman_in_a_draw_counts_the_rows_drawn():
    sample = dict(samples())["spread, weights"]
    fixed = replace(KDE(), bandwidth=0.1)
    for size in (5, 50, 200):
        c = multiplicities(sample.n, size, 1)[:, 0].copy()
        _, s, w = rows_of(sample, c)
        h = oracle.silverman(s, w, size)
        fixed = KDE(bandwidth=h)
        value = KDE().evaluate(KDE().prepare(sample, size), c)
        assert value == same(fixed.evaluate(fixed.prepare(sample, size), c), 1e-9)


def test_labels_under_the_null_do_not_move_the_scores():
    # The bandwidth is one of the scores, which the null keeps: the same null for fixed and rule.
    y, s = smooth(100)
    h = oracle.silverman(s, None, 100)
    options = {**KDE_NAME, "n_resamples": 64, "rng": 2}
    rule, fixed = (calibration_test(y, s, bandwidth=b, **options) for b in ("silverman", h))
    assert rule.null_distribution.tolist() == same(fixed.null_distribution.tolist(), 1e-9)
