"""`Binned` by each of its methods, with edges of every kind."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
import reference

import fastece
from fastece import Binned
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.estimators.binned import replicates
from fastece.estimators.binned.replicates import GROUP_SIZES
from fastece.estimators.draws import Counts, Rows
from helpers import strategies as cases
from helpers.kernel_forms import PLAIN
from helpers.samples import BINNED, R, draws, repeated, sample_of
from helpers.strategies import as_lists, labels_for, weights_for

VARIANTS = {
    **BINNED,
    "norm 2, quantiles, convex": Binned(n_bins=6, edges="quantile", mapping="convex", norm=2),
    "mce, quantiles, convex": Binned(n_bins=6, edges="quantile", mapping="convex", norm=inf),
    "one quantile, convex": Binned(n_bins=1, edges="quantile", mapping="convex"),
    "range, quantiles, convex": Binned(
        n_bins=4, edges="quantile", mapping="convex", score_range=(0.25, 0.6), threshold=0.1
    ),
    "threshold on a score": Binned(n_bins=5, threshold=0.3, edges="quantile", norm=2),
}
KINDS = ["none", "integers", "dynamic", "huge"]
compiled_only = pytest.mark.skipif(PLAIN, reason="too slow as plain Python")


def near(value):
    return pytest.approx(value, abs=1e-12, nan_ok=True)


def all_values(estimator, sample, c, columns=range(R)):
    """Values of columns of `c` (n, 32), of one size, by every method: name -> values."""
    plan = estimator.prepare(sample, int(c[:, 0].sum()))
    alone = [estimator.evaluate(plan, np.ascontiguousarray(c[:, r])) for r in columns]
    rows = np.array([np.repeat(np.arange(sample.n), column) for column in c.T])
    shuffled = np.random.default_rng(0).permuted(rows, axis=1)
    twice = np.stack([c, c[:, ::-1]])
    values = {
        "block": estimator.values(plan, Counts(c[None])),
        "blocks": estimator.values(plan, Counts(twice))[:R],
        "blocks, second": estimator.values(plan, Counts(twice))[R:][::-1],
        "subsets": estimator.values(plan, Rows(shuffled)),
    }
    return alone, {name: np.asarray(results) for name, results in values.items()}


def check_values(estimator, sample, c, columns):
    """Every method has the reference's value of these columns, and all have the same."""
    alone, values = all_values(estimator, sample, c, columns)
    for name, results in values.items():
        assert results.shape == (R,)
        assert results[columns] == near(alone), (name, estimator)
        assert results == near(values["block"]), (name, estimator)
    for value, r in zip(alone, columns, strict=True):
        assert value == near(repeated(sample, c[:, r], estimator)), estimator


def given_weights(kind, n):
    rng = np.random.default_rng(n)
    if kind == "integers":
        return rng.integers(1, 4, n)
    if kind == "dynamic":
        return 10 ** rng.uniform(-8, 8, n)
    return None if kind == "none" else rng.random(n) * 1e200 + 1e190


@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_and_lists_have_the_values_of_the_repeated_rows(name):
    number = [*VARIANTS].index(name)
    for seed, scores in enumerate(cases.score_sets().values()):
        # Each set of scores with a kind of weights, and draws of one of two sizes.
        if (seed - number) % 16 and PLAIN:
            continue
        kind = KINDS[(seed + number) % 4]
        n = len(scores)
        scores = scores.astype(np.float64)
        sample = sample_of(scores, cases.labels_for(scores), given_weights(kind, n), low=1 / 3)
        size = n if seed % 4 < 2 else max(1, n // 3)
        check_values(VARIANTS[name], sample, draws(n, size, seed=seed)[0], [seed, seed + 16])


@pytest.mark.parametrize(
    "name", ["ece_a", "ece_ac", "ece_c", "many quantiles, convex", "threshold on a score"]
)
def test_values_of_more_rows_than_are_kept_one_by_one(name):
    for n in (GROUP_SIZES[0][0], GROUP_SIZES[0][0] + 1)[PLAIN:]:
        rng = np.random.default_rng(n)
        scores = rng.random(n).round(3)
        for weight in (None, rng.integers(1, 3, n)):
            sample = sample_of(scores, cases.labels_for(scores), weight)
            check_values(VARIANTS[name], sample, draws(n, n)[0], [0, 9])


def test_negative_zero_is_zero():
    # As integers, the two are far from each other.
    for share in (0.2, 0.5, 0.8):
        rng = np.random.default_rng(4)
        zeros = rng.random(40) < share
        scores = np.where(zeros, 0.0, rng.random(40))
        true = rng.random(40) < 0.4
        c = draws(40, 40)[0]
        for name in ("ece", "ece_a", "ece_c", "ece_ac"):
            plain = sample_of(scores, true)
            signed = sample_of(np.where(zeros, -0.0, scores), true)
            expected = all_values(VARIANTS[name], plain, c)[0]
            alone, values = all_values(VARIANTS[name], signed, c)
            assert alone == near(expected)
            for results in values.values():
                assert results == near(expected), name


SOME = ["ece", "ece_a", "ece_c", "ece_ac", "sqrt quantiles, convex, norm 2", "debiased square"]


@pytest.mark.parametrize("name", SOME)
def test_blocks_have_the_same_bits_in_any_company(name):
    estimator = VARIANTS[name]
    n = 90
    rng = np.random.default_rng(9)
    scores = rng.random(n)
    for weight in (None, rng.random(n)):
        sample = sample_of(scores, rng.random(n) < scores, weight)
        plan = estimator.prepare(sample, n)
        c = draws(n, n, 2 if PLAIN else 4)
        together = estimator.values(plan, Counts(c))
        alone = np.concatenate([estimator.values(plan, Counts(block[None])) for block in c])
        assert np.array_equal(together, alone, equal_nan=True)
        rows = rng.integers(0, n, (7, 5))
        plan = estimator.prepare(sample, 5)
        alone = np.concatenate([estimator.values(plan, Rows(row[None])) for row in rows])
        assert np.array_equal(estimator.values(plan, Rows(rows)), alone, equal_nan=True)


WHOLE = {
    **VARIANTS,
    "128 bins": Binned(n_bins=128),
    "129 bins": Binned(n_bins=129, edges="quantile"),
    "one bin, convex": Binned(n_bins=1, mapping="convex"),
    "given edges": Binned(edges=[0, 0.2, 0.2, 1]),
    "given edges, convex": Binned(edges=[0, 0.2, 0.2, 1], mapping="convex"),
    "range of quantiles, left": Binned(edges="quantile", score_range=(0.2, 0.7), closed="left"),
}


@pytest.mark.parametrize("n", [1, 8, pytest.param(1100, marks=compiled_only)])
def test_values_have_the_bits_of_the_norm_of_the_bins(n):
    for estimator in WHOLE.values():
        check_bits_of_the_norm(estimator, n)


def check_bits_of_the_norm(estimator, n):
    rng = np.random.default_rng(n)
    vectors = rng.dirichlet([0.3] * 3, n)
    vectors[::2] = np.eye(3)[rng.integers(0, 3, vectors[::2].shape[0])]
    classes = rng.integers(0, 3, n)
    data = [
        (classes == 1, vectors[:, 1].copy(), "binary"),
        (classes, vectors, "confidence"),
        (classes, vectors.astype(np.float32), "classwise"),
    ]
    for weight in (None, rng.random(n) + 0.1):
        for label, prob, setting in data:
            problems = read_problems(
                label, prob, ReadingOptions(setting=setting, sample_weight=weight)
            )
            values = estimator.point_values(problems)
            bins = estimator.bins(problems)
            assert values.tolist() == same_bits(estimator.errors(bins)), (estimator, setting)


def same_bits(values):
    """The values, where nan equals nan."""
    return pytest.approx(values.tolist(), rel=0, abs=0, nan_ok=True)


def test_more_sums_than_memory_are_made_in_parts(monkeypatch):
    n = 40
    rng = np.random.default_rng(2)
    c = draws(n, n, 5)
    rows = rng.integers(0, n, (50, 9))
    for weight in (None, rng.random(n)):
        for name in ("ece", "ece_ac"):
            estimator = VARIANTS[name]
            s = rng.random(n)
            plan = estimator.prepare(sample_of(s, rng.random(n) < s, weight), n)
            together = estimator.values(plan, Counts(c)), estimator.values(plan, Rows(rows))
            with monkeypatch.context() as patch:
                patch.setattr(replicates, "MAX_SUMS", 2 * 15 * R)
                parts = estimator.values(plan, Counts(c)), estimator.values(plan, Rows(rows))
            assert [x.tolist() for x in parts] == [x.tolist() for x in together]


def test_multiplicities_of_other_rows_are_refused():
    plan = Binned().prepare(sample_of([0.2, 0.7], [0, 1]), 2)
    for shape in ((3, R), (2, R - 1)):
        with pytest.raises(ValueError, match="c: must have 2 rows of 32 counts"):
            Binned().values(plan, Counts(np.ones(shape, np.uint8)[None]))


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
def test_values_are_those_of_the_definition(name):
    for mapping, closed in RULES:
        check_definition(name, mapping, closed)


def check_definition(name, mapping, closed):
    fields = {"edges": EDGES[name], "mapping": mapping, "closed": closed}
    p = scores_on(EDGES[name])
    y = labels_for(p)
    for norm in NORMS:
        for v in (None, weights_for("random", p.size)):
            expected = reference.ece(*as_lists(y, p), weights=as_lists(v)[0], norm=norm, **fields)
            value = fastece.ece(y, p, sample_weight=v, norm=norm, **fields)
            assert value == pytest.approx(expected, abs=1e-13)
    c = draws(p.size, p.size)[0]
    check_values(Binned(**fields), sample_of(p, y), c, list(range(0, R, 8)))


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_edges_of_equal_width_give_the_bits_of_uniform_bins(closed, dtype):
    rng = np.random.default_rng(5)
    p = rng.random(3000).round(3).astype(dtype)
    y = labels_for(p)
    edges = np.arange(16) / 15
    assert fastece.ece(y, p, edges=edges, closed=closed) == fastece.ece(y, p, closed=closed)
    two_bins = Binned(edges=[0, 0.5, 1], closed=closed)
    assert fastece.ece(y, p, estimator=two_bins, edges=edges) == fastece.ece(y, p, closed=closed)
    result = fastece.bootstrap(y, p, edges=edges, closed=closed, n_resamples=64, rng=0)
    uniform = fastece.bootstrap(y, p, closed=closed, n_resamples=64, rng=0)
    assert (result.bootstrap_distribution == uniform.bootstrap_distribution).all()


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
