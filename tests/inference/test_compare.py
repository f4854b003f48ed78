"""Comparisons of two models on the same draws."""

import numpy as np
import pytest
from scipy import stats

import fastece
from fastece.estimators.table import ESTIMATORS
from fastece.inference.joint import joint_p_values
from helpers.bad_input import assert_refused
from helpers.chance import ALPHA
from helpers.resample_cases import (
    basic,
    binary,
    classes,
    near,
    two_models,
)

BASIC = {"estimator": "ece", "method": "basic"}


@pytest.mark.slow
def test_a_model_does_not_differ_from_itself_on_draws():
    for data, setting in ((binary(40), "auto"), (classes(40), "classwise"), (classes(40), 1)):
        results = fastece.compare(
            *data, data[1], estimator=[*ESTIMATORS], setting=setting, n_resamples=50, method="basic"
        )
        for name, result in results.items():
            assert (result.value, result.p_value) == (0, 1), name
            assert np.all(result.bootstrap_distribution == 0), name
            assert result.confidence_interval == (0, 0), name


@pytest.mark.parametrize("seed", range(4))
def test_difference_has_the_p_value_and_intervals_of_the_definitions(seed):
    data = two_models(60, seed)
    result = fastece.compare(*data, **BASIC, n_resamples=199, rng=seed, confidence_level=0.9)
    d = result.value
    values = result.bootstrap_distribution
    assert result.p_value == (1 + np.sum(np.abs(values - d) >= abs(d))) / 200
    assert result.confidence_interval == near(basic(d, values, 0.9))
    assert result.interval(0.5, "percentile") == near(tuple(np.quantile(values, [0.25, 0.75])))


def test_each_class_is_compared_on_the_same_draws():
    true, a = classes(60)
    b = np.roll(a, 1, axis=0)
    options = {"n_resamples": 99, "rng": 1, **BASIC}
    every = fastece.compare(true, a, b, setting="classwise", average=None, **options)
    assert every.bootstrap_distribution.shape == (3, 99)
    for k in range(3):
        alone = fastece.compare(true, a, b, setting=k, **options)
        assert every.value[k] == near(alone.value)
        assert every.p_value[k] == alone.p_value
        assert every.bootstrap_distribution[k] == near(alone.bootstrap_distribution)
        low, high = every.confidence_interval
        assert (low[k], high[k]) == near(tuple(alone.confidence_interval))


def test_default_method_is_mover_for_errors_and_basic_for_means():
    data = two_models(40)
    results = fastece.compare(*data, estimator=["ece_bayes", "ece", "brier_score"], n_resamples=99)
    assert [result.method for result in results.values()] == ["mover", "mover", "basic"]
    assert results["ece"].bootstrap_distribution.size == 0
    alone = fastece.compare(*data, estimator="brier_score", n_resamples=99)
    assert alone.to_dict() == results["brier_score"].to_dict()
    assert fastece.compare(*data, n_resamples=9).estimator == "BayesCurve()"
    groups = np.arange(40) // 2
    assert fastece.compare(*data, n_resamples=9, groups=groups).method == "mover"


@pytest.mark.parametrize("estimator", ["ece_bayes", "ece"])
@pytest.mark.parametrize("setting", ["binary", "classwise"])
def test_errors_with_groups_are_those_of_estimate(estimator, setting):
    true, prob = binary(120) if setting == "binary" else classes(120)
    options = {"groups": np.arange(120) // 6, "estimator": estimator, "setting": setting}
    options["average"] = None if setting == "classwise" else "macro"
    result = fastece.compare(true, prob, prob[::-1], **options)
    assert result.a == near(fastece.estimate(true, prob, **options).value)
    assert result.b == near(fastece.estimate(true, prob[::-1], **options).value)
    assert result.value == near(result.a - result.b)


# --- several models --------------------------------------------------------------------------

WAYS = [{}, {"estimator": "ece"}, {"estimator": "brier_score"}, BASIC]


def several_models(n=400, seed=0):
    """Labels, a calibrated model, and others by name, of which two have much in common."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    noise = rng.normal(0, 0.05, n)
    others = {
        "noisy": np.clip(p + noise, 0, 1),
        "noisier": np.clip(p + 1.3 * noise, 0, 1),
        "squared": p**1.3,
        "flat": 0.15 + 0.7 * p,
    }
    return rng.random(n) < p, p, others


@pytest.mark.parametrize("options", WAYS)
def test_each_of_several_comparisons_alone_is_the_comparison_of_two(options):
    y, p, others = several_models()
    results = fastece.compare(y, p, others, n_resamples=499, **options)
    assert [*results] == [*others]
    for name, result in results.items():
        pair = fastece.compare(y, p, others[name], n_resamples=499, **options)
        assert (result.value, result.a, result.b) == (pair.value, pair.a, pair.b)
        assert result.raw_p_value == pair.p_value
        assert result.method == pair.method
        assert result.confidence_interval == pair.interval(1 - 0.05 / 4)
        assert result.interval(0.8) == pair.interval(1 - 0.2 / 4)
        assert result.to_dict()["raw_p_value"] == pair.p_value


@pytest.mark.parametrize("options", [*WAYS, {"groups": np.arange(400) // 2}])
def test_joint_p_values_lie_between_the_p_value_alone_and_holm(options):
    y, p, others = several_models(seed=3)
    results = fastece.compare(y, p, others, **options)
    alone = np.array([result.raw_p_value for result in results.values()])
    joint = np.array([result.p_value for result in results.values()])
    assert np.all(alone <= joint)
    assert np.all(joint <= joint_p_values(alone))
    assert np.argsort(joint, kind="stable").tolist() == np.argsort(alone, kind="stable").tolist()
    assert np.any(joint > alone)


@pytest.mark.parametrize("options", WAYS)
def test_a_model_that_is_named_twice_costs_p_values_nothing(options):
    y, p, others = several_models(seed=1)
    results = fastece.compare(y, p, others, **options)
    again = {f"{name} again": prob for name, prob in others.items()}
    twice = fastece.compare(y, p, {**others, **again, "first": p}, **options)
    assert twice["first"].p_value == 1
    for name, result in results.items():
        for copy in (twice[name], twice[f"{name} again"]):
            assert copy.p_value == result.p_value


@pytest.mark.parametrize("options", WAYS)
def test_the_order_of_models_changes_no_joint_number(options):
    y, p, others = several_models(seed=2)
    results = fastece.compare(y, p, others, **options)
    backwards = fastece.compare(y, p, dict(reversed(others.items())), **options)
    assert [*backwards] == [*reversed(others)]
    for name, result in results.items():
        assert backwards[name].p_value == result.p_value
        assert backwards[name].confidence_interval == result.confidence_interval


def test_joint_p_values_of_draws_equal_plain_loops():
    y, p, others = several_models(seed=4)
    options = {"estimator": "brier_score", "n_resamples": 99}
    results = [*fastece.compare(y, p, others, **options).values()]
    pairs = [fastece.compare(y, p, other, **options) for other in others.values()]
    deviations = [pair.bootstrap_distribution - pair.value for pair in pairs]
    sizes = [np.abs([pair.value, *x]) for pair, x in zip(pairs, deviations, strict=True)]
    shares = [[np.mean(size >= x) for x in size] for size in sizes]
    order = sorted(range(4), key=lambda i: shares[i][0])
    joint = 0.0
    for j, i in enumerate(order):
        smallest = [min(shares[k][r] for k in order[j:]) for r in range(100)]
        joint = max(joint, np.mean(np.array(smallest) <= shares[i][0]))
        # The data's share among the draws moves the draws' own shares by one draw at most.
        assert results[i].p_value == pytest.approx(joint, abs=0.04)


def test_classes_of_several_models_are_families_of_their_own():
    true, a = classes(80)
    others = {"rolled": np.roll(a, 1, axis=0), "flat": np.full_like(a, 1 / 3)}
    options = {"n_resamples": 99, **BASIC}
    each = fastece.compare(true, a, others, setting="classwise", average=None, **options)
    for k in range(3):
        alone = fastece.compare(true, a, others, setting=k, **options)
        for name, result in alone.items():
            assert each[name].p_value[k] == pytest.approx(result.p_value)
            low, high = each[name].confidence_interval
            assert (low[k], high[k]) == near(tuple(result.confidence_interval))


def test_rows_with_counts_are_compared_as_their_copies():
    y, p, others = several_models(200)
    counts = np.arange(200) % 3 + 1
    options = {"estimator": "ece_bayes"}
    table = fastece.compare(y * counts, p, others, counts=counts, **options)
    expanded = {name: np.repeat(prob, counts) for name, prob in others.items()}
    rows = fastece.compare(np.repeat(y, counts), np.repeat(p, counts), expanded, **options)
    for name, result in table.items():
        assert result.raw_p_value == pytest.approx(rows[name].raw_p_value, rel=1e-6)
        assert result.p_value == pytest.approx(rows[name].p_value, abs=0.05)


def test_several_models_print_as_one_table():
    y, p, others = several_models()
    printed = str(fastece.compare(y, p, others))
    assert "joint 95 % CI (mover)" in printed
    assert "joint p-value" in printed
    assert printed.count("hold for all 4 comparisons together.") == 1
    alone = fastece.compare(y, p, {"noisy": others["noisy"]})["noisy"]
    assert alone.p_value == fastece.compare(y, p, others["noisy"]).p_value


@pytest.mark.parametrize(
    ("others", "options", "patterns"),
    [
        ({}, {}, ["y_prob_b", "must have a model"]),
        ({"new": np.full((400, 3), 1 / 3)}, {}, [r"y_prob_b\['new'\]", "classes of y_prob_a, 2"]),
        ({"new": np.full(399, 0.5)}, {}, [r"y_prob_b\['new'\]", "399"]),
        (
            {"new": np.full(400, 0.5), "off": np.full(400, 1.5)},
            {},
            [r"y_prob_b\['off'\]", "0", "1.5"],
        ),
        (
            {"new": np.full(400, 0.5)},
            {"estimator": ["ece", "brier_score"]},
            ["estimator", "must be one, not a list"],
        ),
    ],
)
def test_models_that_cannot_be_compared_are_refused_by_name(others, options, patterns):
    y, p, _ = several_models()
    assert_refused(lambda: fastece.compare(y, p, others, **options), patterns)


def equal_models(rng, n=300):
    """A calibrated model of hidden risks, and three more that see as much, two of them alike."""
    z = rng.normal(0, 1, n)
    y = rng.random(n) < stats.norm.cdf(z)
    views = z + rng.normal(0, 0.7, (4, n))
    views[3] = z + (views[2] - z) * 0.8 + 0.6 * rng.normal(0, 0.7, n)
    variance = 0.49 / 1.49
    first, *others = stats.norm.cdf(views / 1.49 / np.sqrt(1 + variance))
    return y, first, dict(enumerate(others))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"estimator": "brier_score"}, {}])
def test_a_family_of_equal_models_has_a_false_alarm_in_five_of_100_at_most(options):
    alarms = 0
    for seed in range(150):
        results = fastece.compare(
            *equal_models(np.random.default_rng(seed)), n_resamples=399, **options
        )
        alarms += min(result.p_value for result in results.values()) <= 0.05
    assert alarms <= stats.binom.isf(ALPHA, 150, 0.05)
