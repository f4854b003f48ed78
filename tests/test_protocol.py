"""prepare once, evaluate often: multiplicities are repeated rows, for every estimator."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

import fastece
from fastece import Binned
from fastece.data.sample import Sample, increasing
from fastece.estimators.base import Counts
from fastece.estimators.table import ESTIMATORS
from helpers import strategies as cases
from helpers.kernel_forms import PLAIN
from helpers.samples import BINNED, repeated, sample_of

FIELDS = [field.name for field in dataclass_fields(Binned)]


def samples():
    """name -> Sample: ties, edges, zeros, one row; weights are positive, others are dropped."""
    sets = cases.score_sets()
    names = ("bell", "80 % zeros", "edges", "hundredths", "constant 0.3", "n < B", "one row")
    for name in names:
        scores = sets[name]
        true, rng = cases.labels_for(scores), np.random.default_rng(len(scores))
        yield name, sample_of(scores, true, low=1 / 3)
        yield f"{name}, random weights", sample_of(scores, true, rng.random(len(scores)) + 0.01)
        yield f"{name}, integer weights", sample_of(scores, true, rng.integers(1, 4, len(scores)))


def draws(n, size, count, seed=0):
    """`count` multinomial draws of `size` rows, as columns (n, count)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(size, np.full(n, 1 / n), size=count).T


def near(value):
    return pytest.approx(value, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", BINNED)
def test_evaluate_is_the_value_of_the_repeated_rows(name):
    estimator = BINNED[name]
    for case, sample in samples():
        n = len(sample.s)
        for size in sorted({n, max(1, n // 3), 2 * n + 1}):
            plan = estimator.prepare(sample, size)
            dtypes = (np.uint8, np.int64) if size == n else (np.int32, np.uint16)
            for dtype, c in zip(dtypes, draws(n, size, 2).T, strict=True):
                c = np.minimum(c, 255) if c.max() > 255 else c  # one row alone may exceed a uint8
                if c.sum() != size:
                    continue
                got = estimator.evaluate(plan, c.astype(dtype))
                assert got == near(repeated(sample, c, estimator)), (case, size, dtype)


@pytest.mark.parametrize("name", BINNED)
def test_one_of_each_row_is_the_single_call(name):
    estimator = BINNED[name]
    for case, sample in samples():
        plan = estimator.prepare(sample, len(sample.s))
        value = estimator.evaluate(plan, np.ones(len(sample.s), dtype=np.uint8))
        range_ = (sample.low, sample.high) if estimator.score_range == "support" else None
        single = estimator if range_ is None else replace(estimator, score_range=range_)
        got = fastece.ece(sample.y, sample.s, estimator=single, sample_weight=sample.v)
        assert got == near(value), case


@pytest.mark.parametrize("name", {**ESTIMATORS, **BINNED})
def test_block_is_thirty_two_evaluations(name):
    estimator = {**ESTIMATORS, **BINNED}[name]
    for case, sample in samples():
        n = len(sample.s)
        if name == "canonical" and n < 2:  # refused
            continue
        for size in {n, max(1, n // 2)}:
            plan = estimator.prepare(sample, size)
            c = draws(n, size, 32).astype(np.uint8)
            values = np.asarray(estimator.values(plan, Counts(c[None])))
            assert values.shape == (32,)
            alone = [estimator.evaluate(plan, np.ascontiguousarray(c[:, j])) for j in range(32)]
            assert values == near(alone), (case, size)


@pytest.mark.parametrize("name", {**ESTIMATORS, **BINNED})
def test_evaluate_leaves_the_plan_as_it_was(name):
    estimator = {**ESTIMATORS, **BINNED}[name]
    sample = dict(samples())["bell, random weights"]
    copies = [np.array(x) for x in (sample.s, sample.y, sample.v, sample.rows)]
    plan = estimator.prepare(sample, len(sample.s))
    c = draws(len(sample.s), len(sample.s), 20)
    first = [estimator.evaluate(plan, np.ascontiguousarray(column)) for column in c.T]
    again = [estimator.evaluate(plan, np.ascontiguousarray(column)) for column in c.T]
    assert np.array_equal(first, again, equal_nan=True)
    for x, copy in zip((sample.s, sample.y, sample.v, sample.rows), copies, strict=True):
        assert np.array_equal(x, copy)


def test_a_row_that_was_not_drawn_has_no_part_in_the_cuts():
    # Without the second score the cut of two bins is between the first and the third.
    estimator = Binned(n_bins=2, edges="quantile")
    sample = sample_of([0.1, 0.5, 0.6, 0.9], [1, 0, 0, 1])
    plan = estimator.prepare(sample, 4)
    for c in ([2, 0, 1, 1], [0, 2, 2, 0], [4, 0, 0, 0], [1, 0, 0, 3]):
        c = np.array(c, dtype=np.uint8)
        assert estimator.evaluate(plan, c) == near(repeated(sample, c, estimator)), c


def test_sqrt_uses_the_size_and_not_the_weight_nor_the_distinct_rows():
    scores = np.arange(1, 10) / 16
    sample = sample_of(scores, np.arange(9) % 2, np.full(9, 100.0))
    estimator = Binned(n_bins="sqrt")
    plan = estimator.prepare(sample, 25)
    c = np.array([17, 1, 1, 1, 1, 1, 1, 1, 1])
    five = replace(estimator, n_bins=isqrt(25))
    assert estimator.evaluate(plan, c) == five.evaluate(five.prepare(sample, 25), c)


def test_the_table_holds_the_named_estimators():
    assert ESTIMATORS["ece"] == Binned()
    assert ESTIMATORS["ece_a"] == Binned(edges="quantile")
    assert ESTIMATORS["ece_c"] == Binned(mapping="convex")
    assert ESTIMATORS["ece_ac"] == Binned(edges="quantile", mapping="convex")


def test_estimators_are_frozen_values():
    estimator = Binned(n_bins=7)
    with pytest.raises(FrozenInstanceError):
        estimator.n_bins = 8
    assert estimator == Binned(n_bins=7)
    assert len({estimator, Binned(n_bins=7), Binned()}) == 2
    assert "7" in repr(estimator)


# -- an estimator of one's own ---------------------------------------------------------------------


class MeanGap:
    """|sum w (y - s)| / sum w, with nothing but what the protocol requires; keeps its samples."""

    def __init__(self):
        self.samples = []

    def prepare(self, sample, size):
        self.samples.append((sample, size))
        return sample

    def evaluate(self, sample, c):
        assert len(c) == len(sample.s)
        w = c if sample.v is None else c * sample.v
        return abs(np.sum(w * (sample.y - sample.s))) / np.sum(w)


def data(n=60, n_classes=3):
    rng = np.random.default_rng(12)
    prob = rng.random((n, n_classes))
    return rng.integers(0, n_classes, n), prob / prob.sum(axis=1, keepdims=True)


def test_an_estimator_of_ones_own_works_in_every_setting_and_with_weights():
    true, prob = data()
    for weight in (None, np.random.default_rng(13).integers(0, 3, 60)):
        one_bin = {"n_bins": 1, "sample_weight": weight}
        for setting in ("auto", "confidence", "classwise", 2):
            got = fastece.ece(
                true, prob, estimator=MeanGap(), setting=setting, sample_weight=weight
            )
            assert got == near(fastece.ece(true, prob, setting=setting, **one_bin)), setting
        options = {"setting": "classwise", "average": None}
        got = fastece.ece(true, prob, estimator=MeanGap(), sample_weight=weight, **options)
        assert got == near(fastece.ece(true, prob, **options, **one_bin))
        binary = (true == 0, prob[:, 0])
        got = fastece.ece(*binary, estimator=MeanGap(), sample_weight=weight)
        assert got == near(fastece.ece(*binary, **one_bin))
    named = fastece.ece(["a", "b", "a"], [0.2, 0.5, 0.9], labels=["a", "b"], estimator=MeanGap())
    assert named == near(abs(1 - 1.6) / 3)
    logits = fastece.ece([0, 1], [0.0, 0.0], from_logits=True, estimator=MeanGap())
    assert logits == near(0.0)


def test_a_sample_names_the_rows_of_the_caller():
    true, prob = data()
    weight = np.random.default_rng(14).integers(0, 3, 60) * 0.5
    estimator = MeanGap()
    fastece.ece(true, prob, estimator=estimator, setting="classwise", sample_weight=weight)
    assert len(estimator.samples) == 3
    for k, (sample, size) in enumerate(estimator.samples):
        assert size == len(sample.s) == np.count_nonzero(weight)
        assert sorted(sample.rows) == np.flatnonzero(weight).tolist()
        assert np.array_equal(sample.s, prob[sample.rows, k])
        assert np.array_equal(sample.y, true[sample.rows] == k)
        assert np.array_equal(sample.v, weight[sample.rows])
        assert (sample.low, sample.high) == (0.0, 1.0)
        assert sample.s.dtype == np.float64


def test_the_sample_of_the_confidence_setting_has_its_support():
    true, prob = data()
    estimator = MeanGap()
    fastece.ece(true, prob.astype(np.float32), estimator=estimator)
    ((sample, size),) = estimator.samples
    assert size == 60
    assert (sample.low, sample.high) == (1 / 3, 1.0)
    assert np.array_equal(sample.s, prob.astype(np.float32).max(axis=1)[sample.rows])
    assert np.array_equal(sample.y, (prob.argmax(axis=1) == true)[sample.rows])


# -- threads ---------------------------------------------------------------------------------------


def test_eight_threads_give_the_same_bits_as_one():
    n = 2000
    rng = np.random.default_rng(15)
    prob = rng.random((n, 3))
    prob /= prob.sum(axis=1, keepdims=True)
    true, weight = rng.integers(0, 3, n), rng.random(n)
    sample = sample_of(prob[:, 0], true == 0, weight)
    plans = {name: (BINNED[name], BINNED[name].prepare(sample, n)) for name in ("ece", "ece_ac")}
    c = draws(n, n, 1)[:, 0]

    def evaluated(name):
        estimator, plan = plans[name]
        return estimator.evaluate(plan, c)

    calls = [
        lambda: fastece.ece(true == 0, prob[:, 0]),
        lambda: fastece.ece(true, prob, estimator="ece_a"),
        lambda: fastece.ece(true, prob, estimator="ece_c", sample_weight=weight),
        lambda: fastece.ece(
            true == 0, prob[:, 0].astype(np.float32), estimator="ece_ac", n_bins="sqrt"
        ),
        lambda: fastece.ece(true, prob, setting="classwise", n_jobs=2),
        lambda: evaluated("ece"),
        lambda: evaluated("ece_ac"),
        lambda: fastece.mce(true, prob, setting=1),
    ]
    alone = [call() for call in calls]

    def thread(start):
        # Every thread is busy with another call than its neighbours.
        return [(k % 8, calls[k % 8]()) for k in range(start, start + 1000)]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(thread, range(8)):
            assert all(value == alone[k] for k, value in results)


def test_a_sample_from_another_process_can_be_read_by_kernels():
    sample = sample_of([0.2, 0.5], [0, 1], [1.0, 2.0])
    for array in (sample.s, sample.y, sample.v, sample.rows):
        array.flags.writeable = False
    again = pickle.loads(pickle.dumps(sample))
    frozen = Sample.__new__(Sample)
    frozen.__setstate__(vars(sample))  # as what maps memory of another process does
    for copy in (again, frozen):
        for name in ("s", "y", "v", "rows"):
            assert getattr(copy, name).tolist() == getattr(sample, name).tolist()
            assert getattr(copy, name).flags.writeable
        assert (copy.low, copy.high, copy.n) == (0.0, 1.0, 2)


@pytest.mark.parametrize("scores", [[0.4, 0.1, 0.3], [0.3, 0.1, 0.3, 0.1, 0.2], [0.5], []])
def test_equal_scores_keep_their_order(scores):
    expected = sorted(range(len(scores)), key=lambda i: scores[i])
    assert increasing(np.array(scores)).tolist() == expected


def test_parameters_become_plain_python_numbers():
    numpy_like = fastece.Binned(
        n_bins=np.int64(10), norm=np.float32(3), score_range=(Fraction(1, 4), np.float32(0.75))
    )
    assert numpy_like == fastece.Binned(n_bins=10, norm=3.0, score_range=(0.25, 0.75))
    assert hash(numpy_like) == hash(fastece.Binned(n_bins=10, norm=3, score_range=(0.25, 0.75)))
    assert str(numpy_like) == "Binned(n_bins=10, norm=3.0, score_range=(0.25, 0.75))"


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_no_container_or_dtype_compiles_another_kernel():
    from fastece.kernels.moments import cell_moments

    y, p, w = np.array([0, 1, 1]), np.array([0.2, 0.6, 0.9]), np.ones(3)
    two = np.column_stack([1 - p, p])
    for weight in (None, w):
        for dtype in ("f8", "f4"):
            fastece.ece(y, p.astype(dtype), sample_weight=weight, n_jobs=1)
            options = {"setting": "classwise", "sample_weight": weight}
            fastece.ece(y, two.astype(dtype), **options)
    before = len(cell_moments.signatures)
    frozen = [a.copy() for a in (y, p, w, two)]
    for array in frozen:
        array.flags.writeable = False
    labels, scores, weights, vectors = frozen
    fastece.ece(labels, scores, sample_weight=weights)
    fastece.ece(labels, vectors, setting="classwise")
    for dtype in ("f2", "f4", ">f8", "g"):
        for label in ("u1", "i2", ">i8", "f8", bool):
            fastece.ece(y.astype(label), p.astype(dtype), sample_weight=w.astype(dtype))
    fastece.ece(y[::-1], p[::-1], score_range=(0, 1), sample_weight=w[::-1])
    fastece.ece(y, [[0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])
    # Scores, or class vectors of two types; with and without weights.
    assert len(cell_moments.signatures) == before <= 6
