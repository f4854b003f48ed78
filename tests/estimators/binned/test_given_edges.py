"""Bins between edges that the caller gives: as others by the definition, and with every method."""

from dataclasses import replace

import numpy as np
import pytest
import reference

import fastece
from fastece import Binned
from fastece.data.sample import Sample
from fastece.estimators.base import Counts, Rows
from helpers.strategies import as_lists, labels_for, weights_for

EDGES = {
    "two": [0.0, 1.0],
    "uneven": [0.0, 0.1, 0.2, 0.5, 0.95, 1.0],
    "a part": [0.25, 0.3, 0.75],
    "1 by itself": [0.0, 0.25, 0.5, 0.75, 1.0, 1.0],
    "0 by itself": [0.0, 0.0, 0.5, 1.0],
    "empty bins": [0.0, 0.25, 0.25, 0.25, 0.5, 1.0],
    "many": np.linspace(0, 1, 201, dtype=np.float32).tolist(),
}
RULES = [("hard", "right"), ("hard", "left"), ("convex", "right")]
NORMS = [1.0, 2.0, np.inf]


def scores_on(edges):
    """Edges, their neighbours, the ends, and scores between."""
    edges = np.array(edges)
    near = [np.nextafter(edges, -1), edges, np.nextafter(edges, 2), [0.0, 1.0, 0.0, 1.0]]
    scores = np.concatenate([*near, np.random.default_rng(3).random(60)])
    return scores.clip(0, 1)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(("mapping", "closed"), RULES)
def test_values_are_those_of_the_definition(name, mapping, closed):
    fields = {"edges": EDGES[name], "mapping": mapping, "closed": closed}
    p = scores_on(EDGES[name])
    y = labels_for(p)
    for norm in NORMS:
        for v in (None, weights_for("random", p.size)):
            expected = reference.ece(*as_lists(y, p), weights=as_lists(v)[0], norm=norm, **fields)
            value = fastece.ece(y, p, sample_weight=v, norm=norm, **fields)
            assert value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(("mapping", "closed"), RULES)
def test_replicates_are_those_of_the_definition(name, mapping, closed):
    s = scores_on(EDGES[name])
    y, rng = labels_for(s).astype(np.uint8), np.random.default_rng(4)
    fields = {"edges": tuple(EDGES[name]), "mapping": mapping, "closed": closed}
    binned = Binned(**fields)
    plan = binned.prepare(Sample(s, y, None, 0.0, 1.0, np.arange(s.size)), s.size)
    c = rng.multinomial(s.size, np.full(s.size, 1 / s.size), 32).T.astype(np.uint8)
    block = binned.values(plan, Counts(np.ascontiguousarray(c)[None]))
    for r in range(0, 32, 8):
        rows = np.repeat(np.arange(s.size, dtype=np.int32), c[:, r])
        expected = reference.ece(*as_lists(y[rows], s[rows]), **fields)
        assert block[r] == pytest.approx(expected, abs=1e-12)
        assert binned.evaluate(plan, c[:, r]) == pytest.approx(expected, abs=1e-12)
        assert binned.values(plan, Rows(rows[None]))[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_edges_of_equal_width_give_the_bits_of_uniform_bins(closed, dtype):
    rng = np.random.default_rng(5)
    p = rng.random(3000).round(3).astype(dtype)
    y = labels_for(p)
    edges = np.arange(16) / 15
    assert fastece.ece(y, p, edges=edges, closed=closed) == fastece.ece(y, p, closed=closed)
    few = Binned(edges=[0, 0.5, 1], closed=closed)
    assert fastece.ece(y, p, estimator=few, edges=edges) == fastece.ece(y, p, closed=closed)
    result = fastece.bootstrap(y, p, edges=edges, closed=closed, n_resamples=64, rng=0)
    uniform = fastece.bootstrap(y, p, closed=closed, n_resamples=64, rng=0)
    assert (result.bootstrap_distribution == uniform.bootstrap_distribution).all()


def test_classes_and_diagrams_have_the_edges():
    rng = np.random.default_rng(6)
    p = rng.dirichlet([0.5, 0.5, 0.5], 300)
    y = rng.integers(0, 3, 300)
    edges = [0.0, 0.2, 0.6, 1.0]
    values = fastece.ece(y, p, setting="classwise", average=None, edges=edges)
    for k in range(3):
        assert values[k] == pytest.approx(fastece.ece(y == k, p[:, k], edges=edges), abs=1e-15)
    diagram = fastece.reliability_diagram(y, p, edges=edges)
    assert diagram.edges.tolist() == edges
    assert diagram.count.sum() == 300


def test_text_is_short():
    assert str(Binned(edges=[0, 0.5, 1])) == "Binned(edges=(0.0, 0.5, 1.0))"
    assert str(Binned(edges=np.arange(11) / 10)) == "Binned(edges=(0.0, 0.1, ..., 1.0))"
    assert str(replace(Binned(edges=[0, 0.5, 1]), edges="quantile")) == str(
        Binned(edges="quantile")
    )
    assert hash(Binned(edges=[0, 1])) == hash(Binned(edges=(0.0, 1.0)))


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"edges": [0.5]}, ValueError, "edges: must be at least two edges, not all equal"),
        ({"edges": [0.5, 0.5]}, ValueError, "edges: must be at least two edges, not all equal"),
        (
            {"edges": [0, 0.7, 0.3]},
            ValueError,
            "edges: must not decrease after 0.7; edges\\[2\\] is 0.3",
        ),
        ({"edges": [0, 1.5]}, ValueError, "edges\\[1\\]: must be a number from 0 to 1, got 1.5"),
        ({"edges": [0, np.nan]}, ValueError, "edges\\[1\\]: must be a number"),
        ({"edges": 3}, TypeError, "edges: must be edges of bins, got 3; known: 'uniform'"),
        ({"edges": [0, None]}, TypeError, "edges: must be edges of bins.*edges\\[1\\]: must be"),
        ({"edges": "even"}, ValueError, "edges: must be a known name, got 'even'; known"),
        ({"edges": {0, 0.5, 1}}, TypeError, "edges: must be edges of bins, got {.*}; known"),
        ({"edges": [0, 1], "n_bins": 4}, ValueError, "n_bins: goes with .*, got 4; leave it out"),
        ({"edges": [0, 1], "n_bins": "sqrt"}, ValueError, "n_bins: goes with .*, got 'sqrt'"),
        ({"edges": [0, 1], "score_range": (0, 1)}, ValueError, "score_range: goes with"),
    ],
)
def test_edges_that_are_none_are_refused(fields, error, message):
    with pytest.raises(error, match=message):
        replace(Binned(), **fields)
