"""Prepare once, evaluate often: laws of plans and draws, for every estimator of the table."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import fastece
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.estimators.protocol import Counts, Labels, Rows
from helpers import strategies as cases
from helpers.kernel_forms import PLAIN
from helpers.samples import BINNED, draws, sample_of
from helpers.table import CASES, ERRORS, LOSSES, VECTORS, every_error, every_estimator, slack_of

SHAPES = ("bell", "80 % zeros", "edges", "constant 0.3", "n < B", "one row")
WEIGHTED = ("80 % zeros", "edges", "n < B")


def near(value, slack=1e-12):
    return pytest.approx(value, abs=slack, rel=slack, nan_ok=True)


def samples(name):
    """Samples for an estimator: ties, edges, zeros, one row; with and without weights."""
    rng = np.random.default_rng(3)
    if name in VECTORS:
        for n, k in ((2, 2), (9, 3), (40, 4)):
            p, y = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
            for weight in (None, rng.random(n) + 0.1):
                yield read_problems(
                    y, p, ReadingOptions(sample_weight=weight), vectors=True
                ).sample(0)
        return
    for shape in SHAPES:
        scores = cases.score_sets()[shape]
        weight = rng.random(len(scores)) + 0.01 if shape in WEIGHTED else None
        low = 1 / 3 if shape == "bell" else 0.0
        yield sample_of(scores, cases.labels_for(scores), weight, low=low)


def prepared(name, sizes=lambda n: {n, max(1, n // 3)}):
    """Estimator, sample, size and plan, for draws as large as the sample, and for smaller ones."""
    estimator = CASES[name]
    for sample in samples(name):
        for size in sizes(sample.n):
            yield estimator, sample, size, estimator.prepare(sample, size)


def once(estimator, sample):
    """Value of a sample, each row counting once."""
    whole = estimator.prepare(sample, sample.n)
    return float(estimator.evaluate(whole, np.ones(sample.n, np.uint8)))


@every_estimator
def test_a_draw_has_the_value_of_the_repeated_rows(name):
    if name in VECTORS:
        return  # copies of a row count as one
    for estimator, sample, size, plan in prepared(name):
        for dtype, c in zip(("u1", "i8"), draws(sample.n, size)[0].T, strict=False):
            if c.sum() == size:  # one row alone may exceed a uint8
                value = estimator.evaluate(plan, c.astype(dtype))
                want = once(estimator, sample.where(np.repeat(np.arange(sample.n), c)))
                assert value == near(want, slack_of(name)), (sample.n, size)


@every_estimator
def test_values_of_counts_are_evaluations(name):
    for estimator, sample, size, plan in prepared(name):
        c = draws(sample.n, size, 2)
        values = estimator.values(plan, Counts(c))
        alone = [estimator.evaluate(plan, c[r // 32, :, r % 32].copy()) for r in (0, 31, 32)]
        assert values.shape == (64,)
        assert values[[0, 31, 32]] == near(alone, slack_of(name)), (sample.n, size)
        company = estimator.values(plan, Counts(np.asfortranarray(c[1:])))
        assert np.array_equal(company, values[32:], equal_nan=True)


@every_estimator
def test_values_of_rows_are_evaluations(name):
    for estimator, sample, size, plan in prepared(name, lambda n: {1 + (n > 1), max(2, n // 5)}):
        rows = np.random.default_rng(size).integers(0, sample.n, (5, size)).astype(np.int32)
        if name in VECTORS:
            rows[:, :2] = [0, 1]  # a draw of one row alone has no other
        values = estimator.values(plan, Rows(rows, sample))
        counts = [np.bincount(row, minlength=sample.n) for row in rows]
        want = [estimator.evaluate(plan, c) for c in counts]
        if name not in VECTORS:
            assert values == near(want, slack_of(name)), (sample.n, size)
        assert values.shape == (5,)


@every_error
def test_values_of_labels_are_those_of_the_sample_with_them(name):
    for estimator, sample, _, plan in prepared(name, lambda n: {n}):
        classes = 2 if sample.vectors is None else sample.vectors.prob.shape[1]
        labels = np.random.default_rng(0).integers(0, classes, (1, sample.n, 32)).astype(np.int32)
        values = estimator.values(plan, Labels(labels, sample))
        for r in (0, 31):
            want = once(estimator, sample.with_labels(labels[0, :, r]))
            assert values[r] == near(want, slack_of(name)), sample.n


@every_estimator
def test_values_change_neither_plan_nor_sample(name):
    for estimator, sample, size, plan in prepared(name, lambda n: {n}):
        arrays = [x for x in (sample.s, sample.y, sample.v, sample.rows) if x is not None]
        copies = [x.copy() for x in arrays]
        c = draws(sample.n, size)
        values = estimator.values(plan, Counts(c))
        assert np.array_equal(estimator.values(plan, Counts(c)), values, equal_nan=True)
        assert all(np.array_equal(x, y) for x, y in zip(arrays, copies, strict=True))
        sent_estimator, sent_plan = pickle.loads(pickle.dumps((estimator, plan)))
        assert sent_estimator == estimator
        assert np.array_equal(sent_estimator.values(sent_plan, Counts(c)), values, equal_nan=True)


class Bare:
    """An estimator as a caller writes it, with two methods and what it declares."""

    def __init__(self, estimator):
        self.needs_vectors = estimator.needs_vectors
        self.is_calibration_error = estimator.is_calibration_error
        self.prepare, self.evaluate = estimator.prepare, estimator.evaluate

    def __str__(self):
        return "Bare()"


@every_estimator
def test_two_methods_are_enough(name):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 30)
    y = np.array([rng.choice(3, p=row) for row in p])
    y, p = (y, p) if name in VECTORS or name in LOSSES else (np.minimum(y, 1), p[:, 1])
    bare, options = Bare(CASES[name]), {"n_resamples": 33, "rng": 2}
    for setting in ("auto", "classwise"):
        whole, two = (
            fastece.bootstrap(y, p, estimator=e, setting=setting, **options)
            for e in (CASES[name], bare)
        )
        assert two.value == near(whole.value, slack_of(name))
        values = whole.bootstrap_distribution
        assert two.bootstrap_distribution == near(values, slack_of(name))
    few = [
        fastece.bootstrap(y, p, estimator=e, size=3, **options).bootstrap_distribution
        for e in (CASES[name], bare)
    ]
    if name not in VECTORS:
        assert few[1] == near(few[0], slack_of(name))
    if name in ERRORS:
        null, of_bare = (
            fastece.calibration_test(y, p, estimator=e, **options).null_distribution
            for e in (CASES[name], bare)
        )
        assert of_bare == near(null, slack_of(name))


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
    weights = (None, np.random.default_rng(13).integers(0, 3, 60))
    settings = ("auto", "confidence", "classwise", 2)
    for weight, setting, average in product(weights, settings, ("macro", None)):
        options = {"setting": setting, "average": average, "sample_weight": weight}
        got = fastece.ece(true, prob, estimator=MeanGap(), **options)
        assert got == near(fastece.ece(true, prob, n_bins=1, **options)), options
    named = fastece.ece(["a", "b", "a"], [0.2, 0.5, 0.9], labels=["a", "b"], estimator=MeanGap())
    assert named == near(abs(1 - 1.6) / 3)


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


# --- abilities ------------------------------------------------------------------------------


class Lent:
    """A caller's object that has two methods, and some abilities, of an estimator."""

    def __init__(self, estimator, *abilities):
        for name in ("prepare", "evaluate", *abilities):
            setattr(self, name, getattr(estimator, name))

    def __str__(self):
        return "Lent()"


def scores(n=120):
    rng = np.random.default_rng(16)
    p = rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def ends(result):
    return np.array([result.value, *result.confidence_interval])


@every_estimator
def test_functions_refuse_an_estimator_without_the_ability_that_they_need(name):
    estimator = CASES[name]
    y, p = scores()
    functions = {
        "bins": (fastece.reliability_diagram, "a reliability diagram needs bins"),
        "curve": (fastece.reliability_curve, "a reliability curve needs"),
    }
    for ability, (function, rule) in functions.items():
        if getattr(estimator, ability) is None:
            with pytest.raises(TypeError, match=f"^estimator: {rule}"):
                function(y, p, estimator=estimator)
        else:
            assert function(y, p, estimator=estimator).value >= 0
    if estimator.posterior_parts is None and not estimator.is_norm_of_gaps:
        with pytest.raises(TypeError, match=r"^estimator: must be bins, a density .* have gaps"):
            fastece.direction(y, p, estimator=estimator)
    else:
        assert fastece.direction(y, p, estimator=estimator, n_resamples=0).value >= 0


def test_an_object_with_a_posterior_of_its_own_has_its_intervals():
    y, p = scores()
    groups = np.arange(120) // 2
    bayes = fastece.BayesCurve()
    lent = Lent(bayes, "posterior", "posterior_parts")
    for options in ({}, {"groups": groups}):
        for function in (fastece.estimate, fastece.direction):
            want, got = (function(y, p, estimator=x, **options) for x in (bayes, lent))
            assert np.array_equal(ends(got), ends(want)), (function, options)
    want, got = (
        fastece.compare(y, p, p**0.8, estimator=x, method="mover", n_resamples=99)
        for x in (bayes, lent)
    )
    assert tuple(got.confidence_interval) == tuple(want.confidence_interval)
    with pytest.raises(TypeError, match=r"^estimator: must be bins"):
        fastece.direction(y, p, estimator=Lent(bayes, "posterior"))


@pytest.mark.parametrize("estimator", [fastece.BayesCurve(), fastece.KDE()], ids=str)
def test_an_object_with_a_curve_of_its_own_is_drawn(estimator):
    y, p = scores()
    lent = Lent(estimator, "curve", "curve_statistic")
    want, got = (
        fastece.reliability_curve(y, p, estimator=x, n_resamples=33) for x in (estimator, lent)
    )
    for name in ("score", "probability", "density", "low", "high"):
        assert np.array_equal(getattr(got, name), getattr(want, name), equal_nan=True), name


def test_a_curve_without_a_band_needs_no_resamples():
    y, p = scores()
    lent = Lent(fastece.KDE(), "curve")
    assert fastece.reliability_curve(y, p, estimator=lent).low is None
    with pytest.raises(ValueError, match=r"^n_resamples: must be 0 for Lent\(\), .* not resampled"):
        fastece.reliability_curve(y, p, estimator=lent, n_resamples=33)


def test_an_object_may_have_another_form_for_populations():
    """Without it, hypotheses would have the true error less what chance alone shows."""
    y, p = scores()
    debiased = fastece.Binned(5, debias=True)
    lent = Lent(debiased, "of_population")
    options = {"n_resamples": 99, "n_jobs": 1}
    want = fastece.estimate(y, p, estimator=debiased, **options)
    assert ends(fastece.estimate(y, p, estimator=lent, **options)) == near(ends(want))
    without = fastece.estimate(y, p, estimator=Lent(debiased), **options)
    assert abs(without.confidence_interval.high - want.confidence_interval.high) > 1e-3


def test_eight_threads_give_the_same_bits_as_one():
    n = 2000
    rng = np.random.default_rng(15)
    prob = rng.random((n, 3))
    prob /= prob.sum(axis=1, keepdims=True)
    true, weight = rng.integers(0, 3, n), rng.random(n)
    sample = sample_of(prob[:, 0], true == 0, weight)
    plans = {name: (BINNED[name], BINNED[name].prepare(sample, n)) for name in ("ece", "ece_ac")}
    c = draws(n, n)[0, :, 0]

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
        return [(k % 8, calls[k % 8]()) for k in range(start, start + 300)]

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


class Overwriting:
    """An estimator that writes into the rows of its sample."""

    def prepare(self, sample, size):  # noqa: ARG002
        for column in (sample.s, sample.y, sample.v):
            column[:] = 1
        return sample

    def evaluate(self, plan, c):  # noqa: ARG002
        return float(c.sum())


def test_an_estimator_may_write_into_its_sample():
    arrays = [np.array([0, 1, 1], np.uint8), np.array([0.2, 0.6, 0.7]), np.array([1.0, 2.0, 3.0])]
    kept = [array.copy() for array in arrays]
    label, prob, weight = arrays
    fastece.ece(label, prob, sample_weight=weight, estimator=Overwriting())
    fastece.bootstrap(label, prob, sample_weight=weight, estimator=Overwriting(), n_resamples=9)
    assert all(map(np.array_equal, arrays, kept))


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
