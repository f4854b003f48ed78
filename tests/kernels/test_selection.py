"""Deciding rows: they have the cuts of all rows, and few rows."""

from itertools import product

import numpy as np
import pytest

from fastece.kernels import NO_WEIGHTS, quantiles, selection
from helpers.kernel_forms import PLAIN

RNG = np.random.default_rng(3)
N = selection.MAX_SORTED + 300
UNIFORM = RNG.random(N)
ADJACENT = np.nextafter(0.5, [0.0, 1.0])
# The hardest are scores of which many crowd in one part, or on either side of its boundary.
SETS = {
    "uniform": UNIFORM,
    "in order": np.sort(UNIFORM),
    "sharp": RNG.beta(0.2, 0.2, N),
    "at 1": 1 - UNIFORM * 1e-12,
    "tiny": UNIFORM * 1e-9,
    "hundredths": UNIFORM.round(2),
    "zeros": np.where(RNG.random(N) < 0.8, 0.0, UNIFORM),
    "signed zeros": np.where(UNIFORM < 0.5, -0.0, UNIFORM),
    "constant": np.full(N, 0.3),
    "boundaries": np.arange(N) % 65 / 64,
    "beside a boundary": RNG.choice([*ADJACENT, 0.5, 0.25, 1.0], N),
    "denormal": np.where(UNIFORM < 0.3, 5e-324, UNIFORM),
    "few": UNIFORM[:40],
    "one": np.array([0.4]),
}
WEIGHTS = {
    "none": NO_WEIGHTS,
    "integers": RNG.integers(1, 4, N).astype(np.float64),
    "random": RNG.random(N) + 0.01,
    "over sixteen decades": 10 ** RNG.uniform(-8, 8, N),
}


def edges_and_knots(u, w, n_bins):
    edges = np.empty(n_bins + 1)
    knots = np.empty(n_bins - 1)
    quantiles.quantile_edges(u, w, 0.0, 1.0, True, edges, knots)
    return edges.tolist(), knots.tolist()


@pytest.mark.parametrize("name", SETS)
def test_deciding_rows_have_the_cuts_of_all_rows(name):
    for kind, threshold in product(WEIGHTS, [-np.inf, 0.2]):
        check_cuts(name, kind, threshold)


def check_cuts(name, kind, threshold):
    s = SETS[name]
    w = WEIGHTS[kind][: s.size]
    order = np.argsort(s, kind="stable")
    order = order[s[order] > threshold]
    u = s[order] + 0.0
    v = w[order] if w.size else w
    # In plain Python a set of rows takes 20 ms.
    for n_bins in (1, 2, 3, 15, 100):
        shares = np.arange(1, n_bins) / n_bins
        found, weight = selection.deciding_rows(s, w, shares, threshold)
        assert (np.diff(found) >= 0).all()
        if s.size > selection.MAX_SORTED and n_bins > 1:
            assert weight.sum() == pytest.approx(v.sum() if w.size else u.size, rel=1e-14)
        assert edges_and_knots(found, weight, n_bins) == edges_and_knots(u, v, n_bins)


@pytest.mark.skipif(PLAIN, reason="50,000 rows take a second in plain Python")
@pytest.mark.parametrize("name", ["uniform", "sharp", "hundredths", "zeros"])
def test_few_rows_decide(name):
    rng = np.random.default_rng(1)
    scores = {
        "uniform": rng.random(50_000),
        "sharp": rng.beta(0.3, 0.05, 50_000),
        "hundredths": rng.random(50_000).round(2),
        "zeros": np.where(rng.random(50_000) < 0.8, 0.0, rng.random(50_000)),
    }[name]
    found, weight = selection.deciding_rows(scores, NO_WEIGHTS, np.arange(1, 15) / 15, -np.inf)
    assert found.size < 4000
    assert weight.sum() == scores.size


def test_a_part_of_one_score_is_one_row_wherever_its_rows_are():
    for scores in (UNIFORM.round(1), np.sort(UNIFORM.round(1))):
        found, weight = selection.deciding_rows(
            scores, NO_WEIGHTS, np.array([0.25, 0.5, 0.75]), -np.inf
        )
        values, counts = np.unique(scores, return_counts=True)
        assert set(found) <= set(values)
        assert found.size == np.unique(found).size
        assert weight.sum() == counts.sum()
