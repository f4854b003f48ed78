"""Layouts of bins, rows in order, and sums over bins."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

import fastece
from fastece import Binned
from fastece.data.samples import scale_weights
from fastece.estimators.binned import cell_sums, estimator, sums
from helpers import strategies as cases
from helpers.kernel_forms import PLAIN
from helpers.samples import sample_of
from helpers.strategies import as_lists


def test_weights_are_left_alone_where_they_can_be():
    sample = sample_of([0.2, 0.5], [0, 1], [1.0, 3.0])
    assert scale_weights(sample) == (sample, 1.0)
    without = sample_of([0.2, 0.5], [0, 1])
    assert scale_weights(without) == (without, 1.0)
    # A row is not to vanish: a weight that is next to nothing stays greater than 0.
    scaled, _ = scale_weights(sample_of([0.2, 0.5], [0, 1], [1e300, 1e-300]))
    assert scaled.v.min() > 0


@pytest.fixture
def by_chunks(monkeypatch):
    """Whether rows are added up in chunks, and how many rows a chunk has."""

    def use(rows):
        monkeypatch.setattr(sums, "MIN_ROWS", 1 if rows else 2**62)
        monkeypatch.setattr(estimator, "MIN_ROWS", 1 if rows else 2**62)
        monkeypatch.setattr(cell_sums, "CHUNK_SCORES", rows or 2**62)

    return use


def crowded(n):
    """name -> scores that are tied, crowd at an end, or differ by one float."""
    rng = np.random.default_rng(30)
    neighbours = [np.nextafter(0.5, 0), 0.5, np.nextafter(0.5, 1), 0.25, np.nextafter(0.25, 1)]
    return {
        "even": rng.random(n),
        "near one": rng.beta(0.3, 0.05, n),
        "near zero": rng.beta(0.05, 0.3, n),
        "hundredths": np.round(rng.random(n), 2),
        "zeros": rng.random(n) * (rng.random(n) < 0.2),
        "one value": np.full(n, 0.3),
        "one cell": 0.3 + 1e-12 * rng.random(n),
        "neighbours": rng.choice([0.0, 1.0, 5e-324, 1 - 2.0**-53, 1e-300, *neighbours], n),
        "float32": rng.random(n).astype(np.float32),
    }


VARIANTS = {
    "plain": Binned(edges="quantile"),
    "left": Binned(n_bins=7, edges="quantile", closed="left"),
    "one bin": Binned(n_bins=1, edges="quantile"),
    "more bins than rows": Binned(n_bins=500, edges="quantile"),
    "range": Binned(edges="quantile", score_range=(0.25, 0.6)),
    "range above": Binned(edges="quantile", score_range=(0.5, 0.9), closed="left"),
    "range below": Binned(edges="quantile", score_range=(0.1, 0.4)),
    "threshold": Binned(edges="quantile", threshold=0.4, bin_weights="equal"),
    "nothing left": Binned(edges="quantile", threshold=1.0),
    "largest": Binned(edges="quantile", norm=np.inf),
    "convex": Binned(edges="quantile", mapping="convex", norm=2),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_chunks_and_all_rows_at_once_agree_on_every_edge_and_sum(by_chunks, name):
    n = 300
    for (case, s), weighted in product(crowded(n).items(), [False, True]):
        y = cases.labels_for(s)
        w = np.random.default_rng(1).integers(0, 4, n) / 4 if weighted else None
        diagrams = []
        for rows in (64, None):
            by_chunks(rows)
            diagrams.append(
                fastece.reliability_diagram(y, s, estimator=VARIANTS[name], sample_weight=w)
            )
        a, b = diagrams
        assert np.array_equal(a.edges, b.edges), case
        assert a.count == pytest.approx(b.count, abs=1e-11), case
        assert a.value == pytest.approx(b.value, abs=1e-12, nan_ok=True), case


@pytest.mark.parametrize("name", VARIANTS)
def test_classes_are_found_at_once_as_one_by_one(by_chunks, name):
    rng = np.random.default_rng(31)
    p = rng.dirichlet([0.3] * 4, 200)
    p[:20] = np.eye(4)[rng.integers(0, 4, 20)]
    y = rng.integers(0, 4, 200)
    for w in (None, rng.random(200)):
        by_chunks(None)
        options = {"setting": "classwise", "average": None, "sample_weight": w}
        expected = fastece.ece(y, p, estimator=VARIANTS[name], **options)
        by_chunks(64)
        for jobs in (1, 2):
            got = fastece.ece(y, p, estimator=VARIANTS[name], n_jobs=jobs, **options)
            assert got == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.slow
@settings(max_examples=10 if PLAIN else 25)
@given(
    cases.binary(), st.sampled_from([1, 2, 3, 7]), st.sampled_from(["right", "left"]),
    st.sampled_from([3, 2**19]),
)  # fmt: skip
def test_bins_of_equal_mass_agree_with_the_reference(data, n_bins, closed, chunk):
    y, s = data
    fields = {"n_bins": n_bins, "edges": "quantile", "closed": closed}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_sums, "CHUNK_SCORES", chunk)
        patch.setattr(sums, "MIN_ROWS", 1)
        patch.setattr(estimator, "MIN_ROWS", 1)
        got = fastece.ece(y, s, estimator=replace(Binned(), **fields))
    true, scores = as_lists(y, s)
    expected = reference.error((scores, true, 0.0, 1.0), None, **fields)
    assert got == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["even", "near one", "near zero", "hundredths", "zeros"])
def test_many_rows_have_the_cuts_of_a_sort(shape):
    n = 1500 if PLAIN else 600_000
    s = crowded(n)[shape]
    n_bins = 15
    diagram = fastece.reliability_diagram(cases.labels_for(s), s, estimator="ece_a")
    u = np.sort(s)
    ranks = [(j * n // n_bins, j * n % n_bins == 0) for j in range(1, n_bins)]
    inner = [(u[r - 1] + u[r]) / 2 if is_between else u[r] for r, is_between in ranks]
    assert diagram.edges.tolist() == [0.0, *inner, 1.0]
    assert diagram.count.sum() == n


@pytest.mark.parametrize("weight", [0.1, 0.7, 1e-3])
def test_ties_of_many_weights_are_seen(by_chunks, weight):
    n = 400 if PLAIN else 400_000
    s = np.repeat([0.2, 0.6, 0.7], [n // 2, n // 4, n // 4])
    for rows in (2**10, None):
        by_chunks(rows)
        diagram = fastece.reliability_diagram(
            np.arange(n) % 2, s, estimator="ece_a", n_bins=2, sample_weight=np.full(n, weight)
        )
        assert diagram.edges.tolist() == [0.0, 0.4, 1.0]


def test_weights_far_apart_keep_their_cuts(by_chunks):
    s = np.linspace(0.01, 0.99, 60)
    w = np.where(np.arange(60) % 3 == 0, 1.0, 1e-13)
    y = np.arange(60) % 2
    values = []
    for rows in (16, None):
        by_chunks(rows)
        diagram = fastece.reliability_diagram(y, s, estimator="ece_a", sample_weight=w)
        values.append((diagram.value, diagram.edges.tolist()))
    assert values[0][1] == values[1][1]
    assert values[0][0] == pytest.approx(values[1][0], abs=1e-12)
