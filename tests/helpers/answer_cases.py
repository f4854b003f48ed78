"""Data, a stand-in for an estimator with a posterior, and hypotheses, for the tests of answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastece.inference.cells import GapCells
from fastece.inference.estimate import gap_cells
from fastece.resampling.arguments import read_call
from helpers.strategies import labels_for

LEVELS = [0.01, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.999999]


def cells_for(y, p, estimator="ece", n_resamples=99, key=1, **options):
    """The cells of an estimator on data."""
    call = read_call(
        "estimate", y, {"y_prob": p}, estimator=estimator, n_resamples=n_resamples, **options
    )
    return gap_cells(call, call.estimators[""], key)


def check_laws(curve, what=None):
    """It begins at 0 exactly where p > alpha, and grows with the level; quantiles do too."""
    intervals = [curve.interval(level) for level in LEVELS]
    for level, (low, high) in zip(LEVELS, intervals, strict=True):
        assert 0 <= low <= high <= 1 + 1e-12, what
        assert (low > 0) == (curve.p_value <= round(1 - level, 12)), what
    assert np.all(np.diff(intervals, axis=0) * [-1, 1] >= 0), what
    quantiles = curve.quantiles(np.array([0.0, *LEVELS, 1.0]))
    assert quantiles[0] >= 0, what
    assert np.all(np.diff(quantiles) >= -1e-12), what
    assert quantiles[-1] <= 1 + 1e-12, what


def tiny_data(rng):
    """(y, p) of 1 to 30 rows: ties, zeros, ones, all equal, sure ones, or anything."""
    n = int(rng.integers(1, 31))
    p = rng.random(n)
    kind = rng.integers(6)
    if kind == 0:
        p = p.round(1)
    elif kind == 1:
        p = np.where(rng.random(n) < 0.7, rng.integers(0, 2, n), p)
    elif kind == 2:
        p = np.full(n, p[0])
    elif kind == 3:
        p = 1 - 1e-6 * p
    if kind == 5:
        return (rng.random(n) < p).astype(int), p
    return labels_for(p, int(rng.integers(10**6))), p


def tiny_classes(rng):
    """(y, p) of 1 to 20 rows and 2 to 5 classes: ties, sure ones, or anything."""
    n = int(rng.integers(1, 21))
    k = int(rng.integers(2, 6))
    p = rng.dirichlet(np.full(k, rng.choice([0.05, 0.5, 5.0])), n)
    if rng.random() < 0.3:  # ties
        p = rng.multinomial(5, np.full(k, 1 / k), n) / 5
    if rng.random() < 0.2:
        p = np.eye(k)[rng.integers(0, k, n)]
    return rng.integers(0, k, n), p


def random_cells(rng, replicates=39):
    """Cells of a few bins of very different sizes, some of them empty."""
    k = int(rng.integers(1, 3))
    b = int(rng.integers(1, 6))
    size = rng.random((k, b)) ** 3
    share = np.where(rng.random((k, b)) < 0.9, size, 0.0)
    share[:, 0] += 0.01
    share /= share.sum(1, keepdims=True)
    n = float(rng.integers(1, 400))
    s = rng.choice([rng.random(), 0.0, 1.0, 1e-5], size=(k, b))
    variance = share * s * (1 - s) / n
    null = rng.normal(size=(k, b, replicates)) * np.sqrt(variance)[:, :, None]
    gap = np.clip(rng.normal(size=(k, b)) * rng.choice([0, 0.01, 0.3]), -s, 1 - s) * share
    gap = np.where(rng.random((k, b)) < 0.2, 0.0, gap)
    norm = float(rng.choice([1, 2, 3, np.inf]))
    unit = np.zeros_like(share)
    np.power(share, -1.0 if np.isinf(norm) else 1 / norm - 1, out=unit, where=share > 0)
    return GapCells(
        gap=gap * unit, null=null * unit[:, :, None], variance=variance * unit**2,
        per_row=unit / n, n=np.full((k, 1), n), max_gap=share * unit,
        expected=share * s * unit,
        norm=norm, share=share, group=np.arange(k * b).reshape(k, b), seed=3,
    )  # fmt: skip


@dataclass(frozen=True)
class Posterior:
    """The least that a posterior needs, with a normal law around the mean gap."""

    value: float
    spread: float
    influence: Any
    log_bayes_factor: float = 0.0

    def interval(self, level):
        from scipy.special import ndtri

        reach = self.spread * ndtri((1 + level) / 2)
        return max(0.0, self.value - reach), self.value + reach


@dataclass(frozen=True)
class Stand:
    """An estimator with a posterior: |mean (y - s)|, as a mean over problems."""

    n_bins: int = 1

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.y - sample.s

    def evaluate(self, plan, c):
        return abs(float(plan @ c)) / float(np.sum(c))

    def posterior(self, samples):
        gaps = [s.y - s.s for s in samples]
        value = float(np.mean([abs(g.mean()) for g in gaps]))
        spread = float(np.mean([g.std() for g in gaps]) / np.sqrt(samples[0].n)) + 1e-9
        influence = np.mean([np.sign(g.mean()) * g for g in gaps], axis=0)
        return Posterior(value, spread, influence)
