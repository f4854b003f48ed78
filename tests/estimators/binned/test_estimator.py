"""`Binned` by each of its methods: one value, whichever way it is added up."""

import pickle
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import strategies as st

from fastece import Binned
from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.data.source import one_problem
from fastece.estimators.base import Counts, Rows
from fastece.estimators.binned import estimator as binned
from fastece.estimators.layouts import GROUPS
from fastece.kernels.moments import MOST_BINS
from helpers import strategies as cases
from helpers.kernel_forms import PLAIN
from helpers.samples import BINNED, R, draws, repeated, sample_of

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
    return alone, {name: np.asarray(found) for name, found in values.items()}


def check_values(estimator, sample, c, columns):
    """Every method has the reference's value of these columns, and all have the same."""
    alone, values = all_values(estimator, sample, c, columns)
    for name, found in values.items():
        assert found.shape == (R,)
        assert found[columns] == near(alone), (name, estimator)
        assert found == near(values["block"]), (name, estimator)
    for value, r in zip(alone, columns, strict=True):
        assert value == near(repeated(sample, c[:, r], estimator)), estimator


def given_weights(kind, n):
    rng = np.random.default_rng(n)
    if kind == "integers":
        return rng.integers(1, 4, n)
    if kind == "dynamic":
        return 10 ** rng.uniform(-8, 8, n)
    return None if kind == "none" else rng.random(n) * 1e200 + 1e190


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_and_lists_have_the_values_of_the_repeated_rows(name, kind):
    for seed, scores in enumerate(cases.score_sets().values()):
        # Each set of scores with every other kind of weights, and draws of one of two sizes.
        if (seed + 5 * KINDS.index(kind)) % 16 if PLAIN else (seed + KINDS.index(kind)) % 2:
            continue
        n = len(scores)
        scores = scores.astype(np.float64)
        sample = sample_of(scores, cases.labels_for(scores), given_weights(kind, n), low=1 / 3)
        size = n if seed % 4 < 2 else max(1, n // 3)
        check_values(VARIANTS[name], sample, draws(n, size, seed=seed)[0], [seed, seed + 16])


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("n", [GROUPS[0][0], GROUPS[0][0] + 1])
def test_values_of_more_rows_than_are_kept_one_by_one(name, n):
    if PLAIN and (n != GROUPS[0][0] + 1 or name not in ("ece_a", "ece_ac", "ece_c")):
        pytest.skip("too slow as plain Python")
    rng = np.random.default_rng(n)
    scores = rng.random(n).round(3)
    for weight in (None, rng.integers(1, 3, n)):
        sample = sample_of(scores, cases.labels_for(scores), weight)
        check_values(VARIANTS[name], sample, draws(n, n)[0], [0, 9])


@st.composite
def problem(draw):
    """A sample, multiplicities (n, 32) of one size, and an estimator."""
    true, prob = draw(cases.binary(max_size=30))
    n = len(prob)
    positive = st.sampled_from([1e-8, 0.1, 0.25, 1 / 3, 1.0, 2.0, 3.0, 1e8])
    weight = draw(st.none() | st.lists(positive, min_size=n, max_size=n))
    low = draw(st.sampled_from([0.0, 1 / 3]))
    size = draw(st.integers(1, 2 * n))
    c = draws(n, size, seed=draw(st.integers(0, 10**6)))[0]
    return sample_of(prob, true, weight, low=low), c, draw(st.sampled_from(list(VARIANTS)))


def test_negative_zero_is_zero():
    # As integers, the two are far from each other.
    for share in (0.2, 0.5, 0.8):
        rng = np.random.default_rng(4)
        zeros = rng.random(40) < share
        scores, true = np.where(zeros, 0.0, rng.random(40)), rng.random(40) < 0.4
        c = draws(40, 40)[0]
        for name in ("ece", "ece_a", "ece_c", "ece_ac"):
            plain = sample_of(scores, true)
            signed = sample_of(np.where(zeros, -0.0, scores), true)
            expected = all_values(VARIANTS[name], plain, c)[0]
            alone, values = all_values(VARIANTS[name], signed, c)
            assert alone == near(expected)
            for found in values.values():
                assert found == near(expected), name


@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_have_the_same_bits_in_any_company(name):
    estimator, n = VARIANTS[name], 90
    rng = np.random.default_rng(9)
    scores = rng.random(n)
    for weight in (None, rng.random(n)):
        sample = sample_of(scores, rng.random(n) < scores, weight)
        plan = estimator.prepare(sample, n)
        c = draws(n, n, 2 if PLAIN else 4)
        whole = estimator.values(plan, Counts(c))
        alone = np.concatenate([estimator.values(plan, Counts(block[None])) for block in c])
        assert np.array_equal(whole, alone, equal_nan=True)
        rows = rng.integers(0, n, (7, 5))
        plan = estimator.prepare(sample, 5)
        alone = np.concatenate([estimator.values(plan, Rows(row[None])) for row in rows])
        assert np.array_equal(estimator.values(plan, Rows(rows)), alone, equal_nan=True)


def test_more_sums_than_memory_are_made_in_parts(monkeypatch):
    n = 40
    rng = np.random.default_rng(2)
    c, rows = draws(n, n, 5), rng.integers(0, n, (50, 9))
    for weight in (None, rng.random(n)):
        for name in ("ece", "ece_ac"):
            estimator, s = VARIANTS[name], rng.random(n)
            plan = estimator.prepare(sample_of(s, rng.random(n) < s, weight), n)
            whole = estimator.values(plan, Counts(c)), estimator.values(plan, Rows(rows))
            with monkeypatch.context() as patch:
                patch.setattr(binned, "MAX_SUMS", 2 * 15 * R)
                parts = estimator.values(plan, Counts(c)), estimator.values(plan, Rows(rows))
            assert [x.tolist() for x in parts] == [x.tolist() for x in whole]


def test_multiplicities_of_other_rows_are_refused():
    plan = Binned().prepare(sample_of([0.2, 0.7], [0, 1]), 2)
    for shape in ((3, R), (2, R - 1)):
        with pytest.raises(ValueError, match="c: must have 2 rows of 32 counts"):
            Binned().values(plan, Counts(np.ones(shape, np.uint8)[None]))


def test_multiplicities_and_rows_may_lie_in_memory_in_any_way():
    n = 30
    rng = np.random.default_rng(3)
    s = np.sort(rng.random(n))
    c, rows = draws(n, n, 2), rng.integers(0, n, (6, 9)).astype(np.int32)
    for name in ("ece", "ece_a", "ece_c", "ece_ac"):
        estimator = VARIANTS[name]
        plan = estimator.prepare(sample_of(s, rng.random(n) < s), n)
        expected = estimator.values(plan, Counts(c)), estimator.values(plan, Rows(rows))
        frozen = c.copy(), rows.copy()
        for array in frozen:
            array.flags.writeable = False
        turned = np.asfortranarray(c), np.asfortranarray(rows)
        for multiplicities, listed in (frozen, turned, (c.astype("i8"), rows.astype("i8"))):
            assert estimator.values(plan, Counts(multiplicities)).tolist() == expected[0].tolist()
            assert estimator.values(plan, Rows(listed)).tolist() == expected[1].tolist()


def test_a_plan_is_sent_without_its_arrangements():
    n = 50
    s = np.random.default_rng(4).random(n)
    sample, c = sample_of(s, s > 0.5), draws(n, n, 1)
    for name in ("ece", "ece_ac"):
        plan = VARIANTS[name].prepare(sample, n)
        small = len(pickle.dumps(plan))
        values = VARIANTS[name].values(plan, Counts(c))
        sent = pickle.loads(pickle.dumps(plan))
        assert len(pickle.dumps(plan)) == small
        assert VARIANTS[name].values(sent, Counts(c)).tolist() == values.tolist()


# -- sums ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ece", "ece_a", "ece_c", "ece_ac"])
def test_classes_have_the_bins_of_one_problem_each(name):
    rng = np.random.default_rng(5)
    p, y = rng.dirichlet([0.5] * 3, 80), rng.integers(0, 3, 80)
    for weight in (None, rng.random(80) * 1e300):
        problems = read_problems(y, p, setting="classwise", sample_weight=weight)
        together = VARIANTS[name].bins(problems)
        assert together.weight.sum(-1) * together.unit == pytest.approx(
            np.full(3, 80.0 if weight is None else weight.sum())
        )
        for k, sample in enumerate(problems.samples()):
            alone = VARIANTS[name].bins(one_problem(sample))
            assert together.edges[k].tolist() == alone.edges[0].tolist()
            assert together.unit == alone.unit
            for a, b in zip(together[2:], alone[2:], strict=True):
                assert a.size == 0 == b.size or a[k] == pytest.approx(b[0], rel=1e-12, abs=1e-15)


def test_a_problem_without_a_row_above_the_threshold_counts_0():
    empty = Sample(np.array([0.2]), np.array([1], np.uint8), None, 0.0, 1.0, np.arange(1))
    for estimator in (Binned(threshold=0.5), Binned(threshold=0.5, norm=2), Binned(threshold=0.2)):
        assert estimator.direct(one_problem(empty)).tolist() == [0.0]


# -- the common call -------------------------------------------------------------------------------


def test_uniform_bins_of_few_sums_are_common():
    assert Binned().common[:4] == (0.0, 1.0, 15, True)
    left = Binned(n_bins=7, closed="left", score_range=(0.25, 0.6))
    assert left.common[:4] == (0.25, 0.6, 7, False)
    assert [type(x) for x in left.common[:4]] == [float, float, int, bool]
    assert left.common[4].size == 0
    given = Binned(edges=[0.25, 0.3, 0.6]).common
    assert given[:4] == (0.25, 0.6, 2, True)
    assert given[4].tolist() == [0.3]
    others = [
        {"n_bins": "sqrt"}, {"n_bins": MOST_BINS + 1}, {"edges": "quantile"}, {"norm": 2},
        {"mapping": "convex"}, {"score_range": "support"}, {"norm": inf}, {"threshold": 0.1},
        {"bin_weights": "equal"}, {"score_range": (0.3, 0.3 + 1e-15)},
    ]  # fmt: skip
    for fields in others:
        assert replace(Binned(), **fields).common is None, fields
