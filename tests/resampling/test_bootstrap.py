"""Bootstrap, comparison and calibration test: what is drawn, and what becomes of it."""

import json
import pickle
from dataclasses import FrozenInstanceError
from itertools import pairwise
from math import isqrt, nan

import numpy as np
import pytest
import reference
from probes import Code, Distinct, HitCode, Hits, Mean, Spy

import fastece
from fastece import Binned
from fastece.estimators import ESTIMATORS

BINNED = [name for name, estimator in ESTIMATORS.items() if isinstance(estimator, Binned)]
VARIANTS = [
    *(ESTIMATORS[name] for name in BINNED),
    Binned(n_bins="sqrt"),
    Binned(n_bins="sqrt", edges="quantile", mapping="convex"),
    Binned(n_bins=3, edges="quantile", closed="left", norm=2),
    Binned(n_bins=4, norm=np.inf),
    Binned(n_bins=4, edges="quantile", bin_weights="equal", threshold=0.3),
    Binned(n_bins=5, score_range="support"),
]
MANY = 500
METHODS = ["basic", "percentile", "bca"]


def binary(n, seed=0, decimals=None):
    """(y_true, y_prob) of a classifier that is a little too sure of itself."""
    rng = np.random.default_rng(seed)
    prob = rng.random(n) if decimals is None else rng.random(n).round(decimals)
    return (rng.random(n) < 0.1 + 0.7 * prob).astype(np.int64), prob


def classes(n, n_classes=3, seed=0):
    """(y_true, y_prob) of several classes; the same labels for any number of them."""
    rng = np.random.default_rng(seed)
    prob = rng.random((n, n_classes)) ** 3
    prob /= prob.sum(axis=1, keepdims=True)
    return np.where(rng.random(n) < 0.6, prob.argmax(axis=1), rng.integers(0, n_classes, n)), prob


def two_models(n, seed=0):
    """(y_true, y_prob_a, y_prob_b): the second is the first with noise."""
    true, prob = binary(n, seed)
    noise = np.random.default_rng(seed + 1).normal(0, 0.15, n)
    return true, prob, np.clip(prob + noise, 0, 1)


def near(value, slack=1e-12):
    return pytest.approx(value, abs=slack, nan_ok=True)


def same_bits(a, b):
    """The same numbers to the last bit, nan included."""
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)


def distribution(*data, n_resamples=40, rng=5, **options):
    result = fastece.bootstrap(*data, n_resamples=n_resamples, rng=rng, **options)
    return result.bootstrap_distribution


# -- one call --------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["auto", "confidence", "classwise", 1])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_estimate_is_the_single_call_to_the_bit(name, setting):
    weight = np.random.default_rng(3).integers(0, 3, 50)
    for data in (binary(50), classes(50)):
        for options in ({}, {"sample_weight": weight}, {"n_bins": 7}, {"from_logits": True}):
            if "n_bins" in options and name not in BINNED:
                continue
            if "from_logits" in options:
                data = data[0], 4 * data[1] - 2
            options = {"estimator": name, "setting": setting, **options}
            result = fastece.bootstrap(*data, n_resamples=3, rng=0, **options)
            assert type(result.estimate) is float
            assert result.estimate == fastece.ece(*data, **options), options


def test_the_values_of_all_classes_are_those_of_the_single_call():
    options = {"setting": "classwise", "average": None}
    result = fastece.bootstrap(*classes(60), n_resamples=50, rng=0, **options)
    assert same_bits(result.estimate, fastece.ece(*classes(60), **options))
    low, high = result.confidence_interval
    shapes = [np.shape(x) for x in (result.standard_error, result.bias, low, high)]
    assert shapes == [(3,)] * 4
    assert result.bootstrap_distribution.shape == (3, 50)
    macro = distribution(*classes(60), n_resamples=50, rng=0, setting="classwise")
    assert macro == near(result.bootstrap_distribution.mean(axis=0))


def test_average_none_is_one_number_where_there_is_one_problem():
    result = fastece.bootstrap(*binary(30), n_resamples=20, rng=0, average=None)
    assert type(result.estimate) is float
    assert result.bootstrap_distribution.shape == (20,)


def test_error_and_bias_are_those_of_the_distribution():
    result = fastece.bootstrap(*binary(60), n_resamples=100, rng=0)
    assert result.bootstrap_distribution.shape == (100,)
    assert result.bootstrap_distribution.dtype == np.float64
    assert type(result.standard_error) is type(result.bias) is float
    assert result.standard_error == near(np.std(result.bootstrap_distribution, ddof=1))
    assert result.bias == near(np.mean(result.bootstrap_distribution) - result.estimate)
    many = fastece.bootstrap(
        *classes(60), n_resamples=100, rng=0, setting="classwise", average=None
    )
    assert many.standard_error == near(np.std(many.bootstrap_distribution, axis=1, ddof=1))
    assert many.bias == near(np.mean(many.bootstrap_distribution, axis=1) - many.estimate)


def test_the_result_says_what_was_asked():
    weight = np.array([0, 1, 2] * 10)
    options = {"confidence_level": 0.9, "method": "percentile", "sample_weight": weight}
    result = fastece.bootstrap(*binary(30), n_resamples=20, rng=3, **options)
    assert (result.confidence_level, result.method, result.n, result.size) == (
        0.9, "percentile", 20, 20,
    )  # fmt: skip
    assert result.confidence_interval == result.interval(0.9, "percentile")
    assert result.confidence_interval._fields == ("low", "high")
    assert result.interval() == result.interval(0.95, "basic")
    default = fastece.bootstrap(*binary(30), n_resamples=20)
    assert (default.confidence_level, default.method) == (0.95, "basic")
    assert default.confidence_interval == default.interval()


def test_ten_thousand_less_one_replicates_are_the_default():
    n = 5
    assert fastece.bootstrap(*binary(n)).bootstrap_distribution.shape == (9999,)


@pytest.mark.parametrize(
    ("setting", "data", "shown"),
    [
        ("auto", binary(20), "binary"),
        ("auto", classes(20), "confidence"),
        ("classwise", classes(20), "classwise"),
        (2, classes(20), "class 2"),
    ],
)
def test_results_name_estimator_parameters_and_setting(setting, data, shown):
    options = {"estimator": "ece_a", "n_bins": 9, "setting": setting, "n_resamples": 20, "rng": 0}
    results = [
        fastece.bootstrap(*data, **options),
        fastece.compare(*data, data[1][::-1], **options),
        fastece.calibration_test(*data, **options),
    ]
    for result in results:
        assert str(Binned(n_bins=9, edges="quantile")) in str(result)
        assert shown in str(result)
        assert "array(" not in str(result)


def test_results_are_frozen_and_become_plain_values():
    data, options = two_models(30), {"n_resamples": 20, "rng": 0}
    results = {
        "estimate": fastece.bootstrap(*data[:2], **options),
        "difference": fastece.compare(*data, **options),
        "statistic": fastece.calibration_test(*data[:2], **options),
    }
    for name, result in results.items():
        value = getattr(result, name)
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, 0.0)
        assert json.loads(json.dumps(result.to_dict()))[name] == value
        assert getattr(pickle.loads(pickle.dumps(result)), name) == value
    many = fastece.bootstrap(*classes(30), setting="classwise", average=None, **options)
    assert json.loads(json.dumps(many.to_dict()))["estimate"] == many.estimate.tolist()


def test_inputs_of_any_kind_are_read_as_by_the_single_call_and_left_alone():
    true, prob = binary(20)
    want = distribution(true, prob)
    assert same_bits(distribution(true.tolist(), prob.tolist()), want)
    assert same_bits(distribution(true[:, None], prob), want)
    kept = true.copy(), prob.copy()
    frozen = true.copy(), prob.copy()
    for array in frozen:
        array.flags.writeable = False
    assert same_bits(
        distribution(*frozen, estimator="ece_a"), distribution(*kept, estimator="ece_a")
    )
    assert np.array_equal(true, kept[0])
    assert np.array_equal(prob, kept[1])
    names = np.array(["no", "yes"])[true]
    assert same_bits(distribution(names, prob, labels=["no", "yes"]), want)
    logits = distribution(true, np.log(prob / (1 - prob)), from_logits=True, estimator=Mean())
    assert logits == near(distribution(true, prob, estimator=Mean()))


# -- what is drawn ---------------------------------------------------------------------------------


def test_the_key_comes_from_the_generator_as_documented():
    data, options = binary(20), {"n_resamples": 10}
    key = int(np.random.default_rng(7).integers(2**64, dtype=np.uint64))
    assert fastece.bootstrap(*data, rng=7, **options).key == key
    assert fastece.bootstrap(*data, rng=np.int64(7), **options).key == key
    generator = np.random.default_rng(7)
    first = fastece.bootstrap(*data, rng=generator, **options)
    second = fastece.bootstrap(*data, rng=generator, **options)
    assert first.key == key
    assert second.key == int(np.random.default_rng(7).integers(2**64, dtype=np.uint64, size=2)[1])
    assert same_bits(first.bootstrap_distribution, distribution(*data, rng=7, n_resamples=10))
    assert not same_bits(first.bootstrap_distribution, second.bootstrap_distribution)


def test_without_a_seed_every_call_draws_anew():
    draws = [distribution(*binary(50), rng=None) for _ in range(2)]
    assert not np.array_equal(*draws)


def test_the_global_generator_is_neither_used_nor_moved():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    distribution(*binary(50), rng=None)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("setting", ["confidence", "classwise"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_first_replicates_do_not_depend_on_how_many_are_asked_for(name, setting):
    data, options = classes(12), {"estimator": name, "setting": setting}
    longest = distribution(*data, n_resamples=200, **options)
    for n_resamples in (1, 31, 32, 33, 64, 100):
        assert same_bits(distribution(*data, n_resamples=n_resamples, **options),
                         longest[:n_resamples])  # fmt: skip


@pytest.mark.parametrize("size", [None, 1, 3, 12, 13])
def test_estimators_of_one_call_share_each_draw_with_single_calls(size):
    data, code = classes(12), Code(14)
    names = [*ESTIMATORS, code, Binned(n_bins=4)]
    for setting in ("confidence", "classwise"):
        options = {"n_resamples": 70, "rng": 1, "size": size, "setting": setting, "average": None}
        together = fastece.bootstrap(*data, estimator=names, **options)
        assert list(together) == [*ESTIMATORS, str(code), "Binned(n_bins=4)"]
        for name in names:
            alone = fastece.bootstrap(*data, estimator=name, **options)
            assert same_bits(
                together[str(name)].bootstrap_distribution, alone.bootstrap_distribution
            )


@pytest.mark.parametrize("size", [None, 1, 3, 13])
def test_classes_and_settings_share_each_draw(size):
    data, code = classes(12, 4), Code(14)
    options = {"estimator": code, "size": size, "n_resamples": 70}
    drawn = code.counts(distribution(*data, **options), 12)
    assert np.all(drawn.sum(axis=1) == (size or 12))
    every = distribution(*data, setting="classwise", average=None, **options)
    for values in (*every, distribution(*data, setting=2, **options)):
        assert np.array_equal(code.counts(values, 12), drawn)


def test_other_data_of_as_many_rows_are_drawn_alike():
    # Multiplicities depend on the key, the replicate, n and size, and on nothing else.
    code = Code(13)
    rows = distribution(*binary(12, seed=1), estimator=code)
    assert same_bits(distribution(*binary(12, seed=2, decimals=1), estimator=code), rows)
    weight = np.random.default_rng(3).random(12) + 0.1
    assert same_bits(distribution(*binary(12), estimator=code, sample_weight=weight), rows)


def test_size_n_is_the_same_as_no_size():
    data = binary(30)
    plain = fastece.bootstrap(*data, n_resamples=50, rng=2)
    sized = fastece.bootstrap(*data, n_resamples=50, rng=2, size=30)
    assert same_bits(plain.bootstrap_distribution, sized.bootstrap_distribution)
    assert plain.confidence_interval == sized.confidence_interval
    assert plain.size == sized.size == 30


@pytest.mark.parametrize(("n", "size"), [(40, None), (40, 5), (40, 39), (40, 90), (3000, 7)])
def test_an_estimator_is_handed_rows_of_the_caller_and_how_often_each_counts(n, size):
    true, prob = binary(n)
    spy = Spy()
    values = distribution(true, prob, estimator=spy, size=size, n_resamples=35)
    size = size or n
    for sample, asked, c in spy.draws(values):
        assert asked == size == c.sum()
        assert len(c) == sample.n
        assert np.array_equal(sample.s, prob[sample.rows])
        assert np.array_equal(sample.y, true[sample.rows])
        assert np.all(np.diff(sample.s) >= 0)
        assert (sample.low, sample.high) == (0.0, 1.0)
    assert spy.rows(values).shape == (35, size)
    again = Spy()
    assert np.array_equal(
        again.rows(distribution(true, prob, estimator=again, size=size, n_resamples=35)),
        spy.rows(values),
    )


def test_an_estimator_that_asks_for_no_order_gets_the_same_draws():
    class Unsorted(Code):
        needs_sorted = False

    data = binary(12)
    for size in (None, 2, 13):
        options = {"size": size, "n_resamples": 50}
        want = distribution(*data, estimator=Code(14), **options)
        assert same_bits(distribution(*data, estimator=Unsorted(14), **options), want)


@pytest.mark.parametrize("size", [None, 3, 13])
def test_rows_of_weight_zero_are_never_drawn(size):
    weight = np.array([0, 2, 0.5, 1, 0, 1, 1, 3, 0, 1, 1, 1.0])
    true, prob = binary(12)
    code, kept = Code(14), np.flatnonzero(weight)
    options = {"estimator": code, "size": size, "n_resamples": 200}
    drawn = code.counts(distribution(true, prob, sample_weight=weight, **options), 12)
    assert np.all(drawn[:, weight == 0] == 0)
    assert np.all(drawn[:, kept].sum(axis=0) > 0)
    assert np.all(drawn.sum(axis=1) == (size or 9))
    rest = distribution(true[kept], prob[kept], sample_weight=weight[kept], **options)
    assert np.array_equal(code.counts(rest, 9), drawn[:, kept])


def test_samples_carry_the_weights_of_their_rows():
    weight = np.random.default_rng(4).integers(0, 3, 50) * 0.5
    for size in (None, 4):
        spy = Spy()
        distribution(*binary(50), estimator=spy, sample_weight=weight, size=size)
        assert all(np.array_equal(sample.v, weight[sample.rows]) for sample in spy.samples)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (1, 300), (2, 1000), (3, 2000), (1, 256)])
def test_a_row_may_be_drawn_more_often_than_a_byte_holds(n, size):
    true, prob = np.array([1, 0, 1])[:n], np.array([0.2, 0.6, 0.9])[:n]
    spy = Spy()
    values = distribution(true, prob, estimator=spy, size=size, n_resamples=33)
    names = [*BINNED, Binned(n_bins="sqrt")]
    found = fastece.bootstrap(true, prob, estimator=names, size=size, n_resamples=33, rng=5)
    for r, (sample, _, c) in enumerate(spy.draws(values)):
        assert c.sum() == size
        w = [int(c[sample.rows == i].sum()) for i in range(n)]
        for name in names:
            fields = vars(name if isinstance(name, Binned) else ESTIMATORS[name]).copy()
            if fields["n_bins"] == "sqrt":
                fields["n_bins"] = isqrt(size)
            want = reference.error((prob.tolist(), true.tolist(), 0.0, 1.0), w, **fields)
            assert found[str(name)].bootstrap_distribution[r] == near(want)


# -- what it is worth ------------------------------------------------------------------------------


def repeated(problem, weight, counts, estimator):
    """The reference's value on rows repeated as often as they were drawn."""
    scores, hits, low, high = problem
    rows = np.repeat(np.arange(len(scores)), counts).tolist()
    parts = [scores[i] for i in rows], [hits[i] for i in rows], low, high
    weights = None if weight is None else [float(weight[i]) for i in rows]
    return reference.error(parts, weights, **vars(estimator))


@pytest.mark.parametrize("size", [None, 1, 4, 13])
@pytest.mark.parametrize("weight", [None, "random", "with zeros"])
@pytest.mark.parametrize("decimals", [None, 1])
def test_every_replicate_is_the_value_of_the_repeated_rows(size, weight, decimals):
    true, prob = binary(12, decimals=decimals)
    rng = np.random.default_rng(6)
    weights = {"random": rng.random(12) + 0.01, "with zeros": rng.integers(0, 3, 12)}
    weight = weights.get(weight)
    code, count = Code(14), 70
    found = fastece.bootstrap(
        true, prob, estimator=[code, *VARIANTS], size=size, sample_weight=weight,
        n_resamples=count, rng=8,
    )  # fmt: skip
    problem = prob.tolist(), true.tolist(), 0.0, 1.0
    drawn = code.counts(found[str(code)].bootstrap_distribution, 12)
    for estimator in VARIANTS:
        want = [repeated(problem, weight, counts, estimator) for counts in drawn]
        assert found[str(estimator)].bootstrap_distribution == near(want), str(estimator)


@pytest.mark.parametrize("setting", ["confidence", "classwise", 1])
def test_every_replicate_of_class_vectors_is_the_value_of_the_repeated_rows(setting):
    true, prob = classes(12)
    code, count = Code(14), 33
    options = {"setting": setting, "average": None, "n_resamples": count, "rng": 8}
    found = fastece.bootstrap(true, prob, estimator=[code, *VARIANTS], **options)
    problems = reference.problems(true.tolist(), prob.tolist(), setting)
    for estimator in VARIANTS:
        values = np.atleast_2d(found[str(estimator)].bootstrap_distribution)
        codes = np.atleast_2d(found[str(code)].bootstrap_distribution)
        for problem, value, drawn in zip(problems, values, codes, strict=True):
            want = [repeated(problem, None, c, estimator) for c in code.counts(drawn, 12)]
            assert value == near(want), str(estimator)


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize(("n", "size"), [(150, None), (150, 20), (900, 30)])
def test_replicates_of_more_rows_than_a_block_are_right_too(n, size, decimals):
    true, prob = binary(n, decimals=decimals)
    spy = Spy()
    found = fastece.bootstrap(
        true, prob, estimator=[spy, *VARIANTS], size=size, n_resamples=33, rng=9
    )
    rows = spy.rows(found["Spy()"].bootstrap_distribution)
    for r in (0, 1, 31, 32):
        s, y = prob[rows[r]].tolist(), true[rows[r]].tolist()
        for estimator in VARIANTS:
            want = reference.error((s, y, 0.0, 1.0), **vars(estimator))
            assert found[str(estimator)].bootstrap_distribution[r] == near(want), str(estimator)


def test_scaling_all_weights_changes_nothing():
    weight = np.random.default_rng(5).random(40)
    for name in ESTIMATORS:
        value = distribution(*binary(40), estimator=name, sample_weight=weight)
        for scale in (4.0, 0.1, 1e200, 1e-300):
            scaled = distribution(*binary(40), estimator=name, sample_weight=weight * scale)
            assert scaled == near(value)


def test_an_optional_fast_path_is_the_slow_one_32_at_a_time():
    class Fast(Code):
        def block(self, plan, c):
            assert c.dtype == np.uint8
            assert c.shape == (len(plan), 32)
            return plan @ c.astype(np.int64)

    for n_resamples in (1, 32, 33, 100):
        options = {"n_resamples": n_resamples}
        want = distribution(*binary(12), estimator=Code(13), **options)
        assert same_bits(distribution(*binary(12), estimator=Fast(13), **options), want)


# -- several estimators, and more replicates -------------------------------------------------------


def test_a_list_of_estimators_gives_results_by_name():
    for names in (["ece_c", "ece"], ("ece_c", "ece"), ["ece"]):
        found = fastece.bootstrap(*binary(30), estimator=names, n_resamples=10, rng=0)
        assert type(found) is dict
        assert list(found) == list(names)
    seven = fastece.bootstrap(
        *binary(30), estimator=["ece", "ece_a"], n_bins=7, n_resamples=10, rng=0
    )
    for name, result in seven.items():
        alone = fastece.bootstrap(*binary(30), estimator=name, n_bins=7, n_resamples=10, rng=0)
        assert result.estimate == alone.estimate
        assert same_bits(result.bootstrap_distribution, alone.bootstrap_distribution)


@pytest.mark.parametrize("rng", [None, 11])
@pytest.mark.parametrize("first", [1, 31, 32, 100])
def test_a_result_can_be_extended_as_if_all_had_been_asked_for_at_once(first, rng):
    options = {"setting": "classwise", "average": None, "estimator": "ece_a"}
    data = classes(15)
    start = fastece.bootstrap(*data, n_resamples=first, rng=11, **options)
    more = fastece.bootstrap(*data, n_resamples=150, rng=rng, bootstrap_result=start, **options)
    whole = fastece.bootstrap(*data, n_resamples=first + 150, rng=11, **options)
    assert same_bits(more.bootstrap_distribution, whole.bootstrap_distribution)
    assert more.key == whole.key
    assert same_bits(more.standard_error, whole.standard_error)
    assert same_bits(more.confidence_interval, whole.confidence_interval)
    assert start.bootstrap_distribution.shape == (3, first)


def test_a_result_without_a_seed_can_be_extended():
    data = binary(40)
    start = fastece.bootstrap(*data, n_resamples=40)
    more = fastece.bootstrap(*data, n_resamples=30, bootstrap_result=start)
    assert same_bits(more.bootstrap_distribution[:40], start.bootstrap_distribution)
    assert len(set(more.bootstrap_distribution)) > 60  # and not the same draws again


def test_extending_by_nothing_changes_the_interval_only():
    data = binary(40)
    start = fastece.bootstrap(*data, n_resamples=40, rng=1)
    other = fastece.bootstrap(
        *data, n_resamples=0, bootstrap_result=start, confidence_level=0.5, method="percentile"
    )
    assert same_bits(other.bootstrap_distribution, start.bootstrap_distribution)
    assert other.confidence_interval == start.interval(0.5, "percentile")


def test_draws_of_another_size_and_several_estimators_can_be_extended():
    options = {"estimator": ["ece", Mean()], "size": 5}
    start = fastece.bootstrap(*binary(40), n_resamples=10, rng=1, **options)
    more = fastece.bootstrap(*binary(40), n_resamples=25, bootstrap_result=start, **options)
    whole = fastece.bootstrap(*binary(40), n_resamples=35, rng=1, **options)
    for name in whole:
        assert same_bits(more[name].bootstrap_distribution, whole[name].bootstrap_distribution)


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (binary(41), {}),
        (binary(40, seed=9), {}),
        (binary(40), {"estimator": "ece_a"}),
        (binary(40), {"n_bins": 9}),
        (binary(40), {"setting": "confidence"}),
        (binary(40), {"setting": 0}),
        (binary(40), {"size": 20}),
        (binary(40), {"sample_weight": np.arange(40)}),
    ],
)
def test_a_result_of_something_else_is_not_extended(data, options):
    start = fastece.bootstrap(*binary(40), n_resamples=10, rng=1)
    with pytest.raises(ValueError, match="bootstrap_result"):
        fastece.bootstrap(*data, n_resamples=10, bootstrap_result=start, **options)


# -- intervals -------------------------------------------------------------------------------------


def basic(theta, values, level):
    """Reflected quantiles."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return 2 * theta - high, 2 * theta - low


def bca(theta, values, deleted, level):
    """Efron's (1987) interval from replicates without ties and delete-block values."""
    from scipy.special import ndtr, ndtri

    z0 = ndtri(np.mean(values < theta))
    d = np.mean(deleted) - deleted
    a = np.sum(d**3) / (6 * np.sum(d**2) ** 1.5)
    z = z0 + ndtri([(1 - level) / 2, (1 + level) / 2])
    return tuple(np.quantile(values, ndtr(z0 + z / (1 - a * z))))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_are_quantiles_by_the_linear_rule(level):
    data = binary(60)
    for estimator in ("ece", "ece_ac"):
        result = fastece.bootstrap(*data, estimator=estimator, n_resamples=MANY, rng=3)
        values = result.bootstrap_distribution
        quantiles = tuple(np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
        assert result.interval(level, "percentile") == near(quantiles)
        clipped = tuple(max(0.0, end) for end in basic(result.estimate, values, level))
        assert result.interval(level, "basic") == near(clipped)


@pytest.mark.parametrize(("hits", "ends"), [(52, (0, 0.04)), (50, (0, 0))])
def test_the_basic_interval_ends_at_zero(hits, ends):
    # The error of one bin is |hits / 100 - 1/2|, and of some draw it is 0, of others above 0.1.
    true, prob = np.arange(100) < hits, np.full(100, 0.5)
    result = fastece.bootstrap(true, prob, n_bins=1, n_resamples=MANY, rng=1)
    low, high = basic(result.estimate, result.bootstrap_distribution, 0.95)
    assert low < -0.05
    assert high <= ends[1] + 1e-12
    assert result.confidence_interval == near((0, max(0, high)))
    assert result.confidence_interval.low == 0
    assert result.confidence_interval.high >= 0


@pytest.mark.parametrize("n", [50, 200, 400])
def test_the_bca_interval_takes_its_acceleration_from_deleted_blocks(n):
    true, prob = binary(n)
    prob = prob**4  # skewed
    order = np.random.default_rng(1).permutation(n)
    true, prob = true[order], prob[order]
    result = fastece.bootstrap(true, prob, estimator=Mean(), n_resamples=999, rng=4, method="bca")
    blocks, x = np.arange(n) % min(n, 200), true + prob
    deleted = np.array([x[blocks != b].mean() for b in range(min(n, 200))])
    for level in (0.5, 0.95):
        want = bca(result.estimate, result.bootstrap_distribution, deleted, level)
        assert result.interval(level, "bca") == near(want, 1e-9)
    assert result.confidence_interval == result.interval(0.95, "bca")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_bca_interval_of_an_error_is_made_of_its_single_calls(estimator):
    true, prob = binary(60)
    result = fastece.bootstrap(true, prob, estimator=estimator, n_resamples=MANY, rng=4)
    rows = np.arange(60)
    deleted = [fastece.ece(true[rows != i], prob[rows != i], estimator=estimator) for i in rows]
    want = bca(result.estimate, result.bootstrap_distribution, np.array(deleted), 0.9)
    assert result.interval(0.9, "bca") == near(want, 1e-9 if estimator in BINNED else 1e-6)


def test_bca_is_nan_where_all_replicates_are_on_one_side():
    result = fastece.bootstrap(
        *binary(50), estimator=Distinct(), n_resamples=50, rng=0, method="bca"
    )
    assert result.estimate == 1 > result.bootstrap_distribution.max()
    assert result.confidence_interval == near((nan, nan))
    assert np.isfinite(result.interval(method="percentile")).all()


def test_intervals_need_no_further_evaluation():
    spy = Spy()
    result = fastece.bootstrap(*binary(50), estimator=spy, n_resamples=50, rng=0)
    before = len(spy.asked), len(spy.samples)
    for method in METHODS:
        for level in (0.5, 0.99):
            result.interval(level, method=method)
    assert (len(spy.asked), len(spy.samples)) == before


def test_intervals_of_classes_are_those_of_each_class():
    options = {"n_resamples": MANY, "rng": 3}
    every = fastece.bootstrap(*classes(80), setting="classwise", average=None, **options)
    for k in range(3):
        alone = fastece.bootstrap(*classes(80), setting=k, **options)
        for method in METHODS:
            low, high = every.interval(0.8, method)
            assert (low[k], high[k]) == near(tuple(alone.interval(0.8, method)))


def test_intervals_grow_with_the_level():
    result = fastece.bootstrap(*binary(80), n_resamples=MANY, rng=0)
    for method in METHODS:
        ends = [result.interval(level, method) for level in (0.5, 0.8, 0.9, 0.99)]
        assert all(a.low >= b.low and a.high <= b.high for a, b in pairwise(ends))


@pytest.mark.parametrize("size", [1, 5, 49, 51, 120])
def test_draws_of_another_size_have_a_distribution_and_no_interval(size):
    for method in METHODS:
        result = fastece.bootstrap(*binary(50), size=size, n_resamples=40, rng=0, method=method)
        assert (result.n, result.size) == (50, size)
        assert result.estimate == fastece.ece(*binary(50))
        assert np.isfinite(result.bootstrap_distribution).all()
        assert np.isfinite([result.standard_error, result.bias]).all()
        assert result.confidence_interval == near((nan, nan))
        assert result.interval(0.5, "percentile") == near((nan, nan))


# -- two models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("size", [None, 7])
def test_models_are_compared_on_the_same_draws(name, size):
    true, a, b = two_models(50)
    options = {"estimator": name, "n_resamples": 100, "rng": 6, "size": size}
    result = fastece.compare(true, a, b, **options)
    one, other = (fastece.bootstrap(true, prob, **options) for prob in (a, b))
    assert same_bits(
        result.bootstrap_distribution, one.bootstrap_distribution - other.bootstrap_distribution
    )
    assert (result.a, result.b) == (one.estimate, other.estimate)
    assert result.difference == result.a - result.b
    assert type(result.difference) is type(result.p_value) is float
    assert result.standard_error == near(np.std(result.bootstrap_distribution, ddof=1))


def test_models_share_their_draws_though_their_scores_are_ordered_otherwise():
    true, a, _ = two_models(12)
    for size in (None, 3, 13):
        result = fastece.compare(
            true, a, 1 - a, estimator=Code(14), n_resamples=70, rng=0, size=size
        )
        assert np.all(result.bootstrap_distribution == 0)


@pytest.mark.parametrize("setting", ["auto", "classwise", 1])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_does_not_differ_from_itself(name, setting):
    for data in (binary(40), classes(40)):
        result = fastece.compare(
            *data, data[1], estimator=name, setting=setting, n_resamples=50, rng=0
        )
        assert result.difference == 0
        assert result.p_value == 1
        assert np.all(result.bootstrap_distribution == 0)
        assert result.confidence_interval == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_p_values_and_intervals_of_a_difference_follow_their_definitions(seed):
    data = two_models(60, seed)
    result = fastece.compare(*data, n_resamples=199, rng=seed, confidence_level=0.9)
    d, values = result.difference, result.bootstrap_distribution
    assert result.p_value == (1 + np.sum(np.abs(values - d) >= abs(d))) / 200
    assert result.confidence_interval == near(basic(d, values, 0.9))
    assert result.interval(0.5, "percentile") == near(tuple(np.quantile(values, [0.25, 0.75])))


def test_exchanging_the_models_mirrors_the_comparison():
    true, a, b = two_models(60)
    options = {"n_resamples": 199, "rng": 1, "estimator": Mean()}
    one, other = fastece.compare(true, a, b, **options), fastece.compare(true, b, a, **options)
    assert one.difference == -other.difference
    assert one.p_value == other.p_value
    for method in METHODS:
        low, high = other.interval(0.9, method)
        assert one.interval(0.9, method) == near((-high, -low), 1e-9)


def test_classes_are_compared_one_by_one():
    true, a = classes(60)
    b = np.roll(a, 1, axis=0)
    options = {"n_resamples": 99, "rng": 1}
    every = fastece.compare(true, a, b, setting="classwise", average=None, **options)
    assert every.bootstrap_distribution.shape == (3, 99)
    for k in range(3):
        alone = fastece.compare(true, a, b, setting=k, **options)
        assert every.difference[k] == near(alone.difference)
        assert every.p_value[k] == alone.p_value
        assert every.bootstrap_distribution[k] == near(alone.bootstrap_distribution)
        low, high = every.confidence_interval
        assert (low[k], high[k]) == near(tuple(alone.confidence_interval))


def test_several_estimators_compare_models_on_the_same_draws():
    data = two_models(40)
    options = {"n_resamples": 50, "rng": 2}
    found = fastece.compare(*data, estimator=["ece", Mean()], **options)
    assert list(found) == ["ece", str(Mean())]
    alone = fastece.compare(*data, estimator=Mean(), **options)
    assert same_bits(found[str(Mean())].bootstrap_distribution, alone.bootstrap_distribution)
    assert found[str(Mean())].p_value == alone.p_value


def test_a_comparison_can_be_extended():
    data = two_models(40)
    start = fastece.compare(*data, n_resamples=40, rng=2)
    more = fastece.compare(*data, n_resamples=60, bootstrap_result=start)
    whole = fastece.compare(*data, n_resamples=100, rng=2)
    assert same_bits(more.bootstrap_distribution, whole.bootstrap_distribution)
    assert (more.p_value, more.confidence_interval) == (whole.p_value, whole.confidence_interval)
    with pytest.raises(ValueError, match="bootstrap_result"):
        fastece.compare(data[0], data[2], data[1], n_resamples=60, bootstrap_result=start)


def test_a_much_better_model_is_seen():
    rng = np.random.default_rng(0)
    prob = rng.random(400)
    true = rng.random(400) < prob
    result = fastece.compare(true, prob**3, prob, n_resamples=199, rng=0)
    assert result.p_value == 1 / 200
    assert result.confidence_interval.low > 0
    assert fastece.compare(true, prob, prob**3, n_resamples=199, rng=0).confidence_interval.high < 0


# -- is it calibrated? -----------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["auto", "classwise", 1])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_p_value_counts_errors_as_large_as_that_of_the_data(name, setting):
    weight = np.random.default_rng(1).integers(0, 3, 50)
    for data in (binary(50), classes(50)):
        for options in ({}, {"sample_weight": weight}):
            options = {"estimator": name, "setting": setting, **options}
            result = fastece.calibration_test(*data, n_resamples=99, rng=1, **options)
            assert type(result.statistic) is type(result.p_value) is float
            assert result.statistic == fastece.ece(*data, **options)
            assert result.null_distribution.shape == (99,)
            above = np.sum(result.null_distribution >= result.statistic)
            assert result.p_value == (1 + above) / 100


def test_a_classifier_that_is_sure_and_right_is_calibrated():
    true = np.arange(40) % 2
    result = fastece.calibration_test(true, true.astype(float), n_resamples=50, rng=0)
    assert result.statistic == 0 == result.null_distribution.max()
    assert result.p_value == 1


def test_a_classifier_that_is_sure_and_wrong_is_not():
    result = fastece.calibration_test(*binary(2000), n_resamples=99, rng=0)
    assert result.p_value == 1 / 100
    sure = fastece.calibration_test([0, 1, 1], [1.0, 0.0, 0.0], n_resamples=99, rng=0)
    assert (sure.statistic, sure.p_value) == (1, 1 / 100)


def test_labels_are_drawn_once_for_all_classes():
    true, prob = classes(30, 4)
    options = {"setting": "classwise", "n_resamples": 40, "rng": 0}
    result = fastece.calibration_test(true, prob, estimator=Hits(), **options)
    assert result.null_distribution == near(30 / 4)  # each row is a hit of exactly one class
    counts = fastece.calibration_test(
        true, prob, estimator=Hits(), setting=1, n_resamples=40, rng=0
    ).null_distribution
    assert len(set(counts)) > 1


def test_labels_of_the_same_seed_are_the_same():
    data, options = binary(20), {"estimator": HitCode(), "rng": 4}
    long = fastece.calibration_test(*data, n_resamples=100, **options).null_distribution
    again = fastece.calibration_test(*data, n_resamples=100, **options, confidence_level=0.5)
    assert same_bits(again.null_distribution, long)
    for n_resamples in (1, 32, 33):
        short = fastece.calibration_test(*data, n_resamples=n_resamples, **options)
        assert same_bits(short.null_distribution, long[:n_resamples])
    other = fastece.calibration_test(*data, n_resamples=100, estimator=HitCode(), rng=5)
    assert not np.array_equal(other.null_distribution, long)


def test_rows_of_weight_zero_get_no_labels():
    true, prob = binary(20)
    weight = np.where(np.arange(20) % 4 == 0, 0, 1.5)
    result = fastece.calibration_test(
        true, prob, estimator=HitCode(), sample_weight=weight, n_resamples=60, rng=0
    )
    hits = result.null_distribution.astype(np.int64)[:, None] >> np.arange(20) & 1
    assert np.all(hits[:, weight == 0] == 0)
    # false alarm: 0.8**60 for each row
    assert np.all(hits[:, (weight > 0) & (prob > 0.2)].sum(axis=0) > 0)


@pytest.mark.parametrize(
    "estimator",
    [*BINNED, Binned(n_bins="sqrt"), Binned(n_bins=40), Binned(n_bins=4, threshold=0.3)],
)
def test_the_band_has_one_range_for_each_bin_of_the_diagram(estimator):
    data = binary(60)
    options = {"estimator": estimator, "n_resamples": 99, "rng": 0}
    band = fastece.calibration_test(*data, **options).band
    count = fastece.reliability_diagram(*data, estimator=estimator).count
    for end in (band.low, band.high):
        assert end.shape == count.shape
        assert np.array_equal(np.isnan(end), count == 0)
    full = count > 0
    assert np.all((band.low[full] >= 0) & (band.high[full] <= 1))
    narrow = fastece.calibration_test(*data, confidence_level=0.5, **options).band
    assert np.all(band.low[full] <= narrow.low[full])
    assert np.all(narrow.low[full] <= narrow.high[full])
    assert np.all(narrow.high[full] <= band.high[full])


def test_classes_have_a_band_each_and_estimators_without_bins_none():
    data = classes(40)
    bands = fastece.calibration_test(*data, setting="classwise", n_resamples=20, rng=0).band
    assert type(bands) is list
    assert [band.low.shape for band in bands] == [(15,)] * 3
    assert fastece.calibration_test(*data, estimator=Mean(), n_resamples=20, rng=0).band is None


# -- an estimator of one's own ---------------------------------------------------------------------


class OneBin:
    """|sum w (y - s)| / sum w, with nothing but what the protocol requires."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample

    def evaluate(self, sample, c):
        w = c if sample.v is None else c * sample.v
        return abs(np.sum(w * (sample.y - sample.s))) / np.sum(w)


@pytest.mark.parametrize("setting", ["auto", "classwise", 1])
@pytest.mark.parametrize("weight", [None, np.arange(40) % 3])
def test_an_estimator_of_ones_own_works_wherever_the_built_in_ones_do(setting, weight):
    true, prob = classes(40)
    options = {"setting": setting, "sample_weight": weight, "n_resamples": 40, "rng": 0}
    own, built_in = {"estimator": OneBin()}, {"estimator": "ece", "n_bins": 1}
    for size in (None, 3, 60):
        values = [distribution(true, prob, size=size, **options, **e) for e in (own, built_in)]
        assert values[0] == near(values[1])
    if setting == "classwise":
        values = [distribution(true, prob, average=None, **options, **e) for e in (own, built_in)]
        assert values[0] == near(values[1])
    other = np.roll(prob, 1, axis=0)
    one, two = (fastece.compare(true, prob, other, **options, **e) for e in (own, built_in))
    assert one.bootstrap_distribution == near(two.bootstrap_distribution)
    one, two = (fastece.calibration_test(true, prob, **options, **e) for e in (own, built_in))
    assert one.null_distribution == near(two.null_distribution)
    assert two.band is not None


# -- what is refused -------------------------------------------------------------------------------

BAD = [
    *[("n_resamples", value) for value in (0, -1, 1.5, True, "many", None)],
    *[("size", value) for value in (0, -3, 2.5, True, "n")],
    *[("confidence_level", value) for value in (0, 1, 1.5, -0.1, nan, "high", None, True)],
    *[("method", value) for value in ("studentized", None, 3)],
    *[("rng", value) for value in ("seed", 1.5, -1, True)],
    *[("executor", value) for value in (object(), 3, "threads")],
    *[("n_jobs", value) for value in (0, 1.5)],
    *[("estimator", value) for value in ([], (), "nothing", ["ece", "nothing"], [3])],
    *[("bootstrap_result", value) for value in ("previous", 3, {})],
    *[("average", value) for value in ("micro", 1)],
    ("setting", "nothing"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_arguments_are_refused_by_name(name, value):
    true, a, b = two_models(10)
    options = {"n_resamples": 5, name: value}
    with pytest.raises((ValueError, TypeError), match=name):
        fastece.bootstrap(true, a, **options)
    with pytest.raises((ValueError, TypeError), match=name):
        fastece.compare(true, a, b, **options)
    if name not in {"size", "method", "bootstrap_result"} and not isinstance(value, list | tuple):
        with pytest.raises((ValueError, TypeError), match=name):
            fastece.calibration_test(true, a, **options)


def test_an_unknown_method_is_answered_with_those_that_are_known():
    result = fastece.bootstrap(*binary(20), n_resamples=10, rng=0)
    for call in (
        lambda: fastece.bootstrap(*binary(20), n_resamples=10, method="BC"),
        lambda: result.interval(method="BC"),
    ):
        with pytest.raises(ValueError, match=r"basic.*percentile.*bca"):
            call()
    for level in (0, 1, nan, "high"):
        with pytest.raises((ValueError, TypeError), match="confidence_level"):
            result.interval(level)


def test_bad_data_are_refused_by_name():
    true, a, b = two_models(10)
    bad = np.where(np.arange(10) == 3, 1.5, a)
    options = {"n_resamples": 5}
    with pytest.raises(ValueError, match=r"y_prob\[3\]"):
        fastece.bootstrap(true, bad, **options)
    with pytest.raises(ValueError, match=r"y_prob\[3\]"):
        fastece.calibration_test(true, bad, **options)
    with pytest.raises(ValueError, match=r"y_prob_a\[3\]"):
        fastece.compare(true, bad, b, **options)
    with pytest.raises(ValueError, match=r"y_prob_b\[3\]"):
        fastece.compare(true, a, bad, **options)
    with pytest.raises(ValueError, match="y_prob_b"):
        fastece.compare(true, a, b[:9], **options)
    with pytest.raises(ValueError, match=r"y_true\[0\]"):
        fastece.bootstrap([5, *true[1:]], a, **options)
    with pytest.raises(TypeError, match="n_bin"):
        fastece.bootstrap(true, a, n_bin=3, **options)


def test_everything_but_the_data_is_named():
    for call in (fastece.bootstrap, fastece.calibration_test):
        with pytest.raises(TypeError):
            call(*binary(5), "ece")
    with pytest.raises(TypeError):
        fastece.compare(*two_models(5), "ece")


# -- small and uniform data ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_row_is_drawn_again_and_again(name):
    result = fastece.bootstrap([1], [0.8], estimator=name, n_resamples=40, rng=0)
    assert result.bootstrap_distribution == near(result.estimate)
    assert (result.standard_error, result.bias) == (near(0.0), near(0.0))
    assert result.confidence_interval == near((result.estimate,) * 2)
    assert len(result.interval(method="bca")) == 2
    assert fastece.compare([1], [0.8], [0.6], estimator=name, n_resamples=9, rng=0).p_value <= 1
    assert fastece.calibration_test([1], [0.8], estimator=name, n_resamples=9, rng=0).p_value <= 1


def test_one_replicate_has_no_standard_error():
    result = fastece.bootstrap(*binary(20), n_resamples=1, rng=0)
    assert np.isnan(result.standard_error)
    assert result.interval(method="percentile") == near((result.bootstrap_distribution[0],) * 2)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
def test_uniform_data_are_no_exception(name, score):
    for hits in (0, 5, 20):
        true, prob = np.arange(20) < hits, np.full(20, score)
        options = {"estimator": name, "n_resamples": 20, "rng": 0}
        result = fastece.bootstrap(true, prob, **options)
        for method in METHODS:
            result.interval(method=method)
        assert np.isfinite(result.bootstrap_distribution).all()
        assert fastece.calibration_test(true, prob, **options).p_value <= 1


def test_an_error_that_is_not_defined_stays_so_without_a_word():
    options = {"norm": np.inf, "min_count": 1e6, "n_resamples": 20, "rng": 0}
    result = fastece.bootstrap(*binary(20), **options)
    assert np.isnan(result.estimate)
    assert np.isnan(result.bootstrap_distribution).all()
    for method in METHODS:
        assert result.interval(method=method) == near((nan, nan))
    assert np.isnan(fastece.compare(*two_models(20), **options).difference)
