"""Decompositions of scores: against plain Python and scikit-learn, and laws of their parts."""

import json
import re
from math import inf

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import fastece
from fastece import brier_decomposition, score_decomposition
from helpers import strategies as cases

RULES = {"brier": "brier_score", "log": "log_loss"}
MURPHY = ["reliability", "resolution", "uncertainty", "within_variance", "within_covariance"]
CORP = ["miscalibration", "discrimination", "uncertainty"]
SETTINGS = ["auto", "confidence", "classwise", 2]


def near(value, slack=1e-12):
    return pytest.approx(value, rel=slack, abs=slack)


def values_of(parts, names):
    return [getattr(parts, name) for name in names]


def total_of(parts, names, signs):
    return sum(sign * x for sign, x in zip(signs, values_of(parts, names), strict=True))


def problems_of(data, setting):
    """The binary problems of a setting, and the divisor of the sum of their parts."""
    is_sum = setting == "auto" and data[1].ndim == 2
    problems = reference.problems(*cases.as_lists(*data), "classwise" if is_sum else setting)
    return problems, 1 if is_sum else len(problems)


def check_bins(data, setting, weight, **fields):
    parts = brier_decomposition(*data, setting=setting, sample_weight=weight, **fields)
    problems, divisor = problems_of(data, setting)
    weights = None if weight is None else weight.tolist()
    each = [reference.brier_parts(problem, weights, **fields) for problem in problems]
    want = np.sum(each, axis=0) / divisor
    assert values_of(parts, MURPHY) == near(want.tolist())
    assert parts.score == near(total_of(parts, MURPHY, (1, -1, 1, 1, -1)))
    assert parts.score == near(fastece.brier_score(*data, setting=setting, sample_weight=weight))
    assert min(values_of(parts, MURPHY[:4])) >= 0


def check_isotonic(data, setting, weight):
    weights = None if weight is None else weight.tolist()
    problems, divisor = problems_of(data, setting)
    for rule, name in RULES.items():
        parts = score_decomposition(*data, score=rule, setting=setting, sample_weight=weight)
        each = [reference.score_parts(name, problem, weights) for problem in problems]
        want = np.sum(each, axis=0) / divisor
        assert values_of(parts, CORP) == near(want.tolist(), 1e-11)
        total = total_of(parts, CORP, (1, -1, 1))
        assert parts.score == total == inf if np.isinf(total) else parts.score == near(total)
        assert min(values_of(parts, CORP)) >= 0
        if setting != "auto" or data[1].ndim == 1 or rule == "brier":
            value = getattr(fastece, name)(*data, setting=setting, sample_weight=weight)
            assert parts.score == near(value)


@pytest.mark.slow
@given(
    cases.binary(),
    st.sampled_from([1, 2, 7, 15, "sqrt"]),
    st.sampled_from(["uniform", "quantile"]),
    st.data(),
)
def test_parts_of_bins_equal_the_reference(data, n_bins, edges, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    check_bins(data, "auto", weight, n_bins=n_bins, edges=edges)


@given(cases.multiclass(), st.sampled_from(SETTINGS), st.data())
def test_parts_of_class_vectors_equal_the_reference(data, setting, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    check_bins(data, setting, weight)
    check_isotonic(data, setting, weight)


@pytest.mark.slow
@given(cases.binary(), st.data())
def test_parts_of_isotonic_regression_equal_the_reference(data, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    check_isotonic(data, "auto", weight)


@pytest.mark.slow
@given(cases.binary(), st.data())
def test_integer_weights_are_repetitions(data, draw):
    true, prob = data
    weight = draw.draw(cases.integer_weights(len(true)))
    repeated = np.repeat(true, weight), np.repeat(prob, weight)
    murphy = brier_decomposition(*data, sample_weight=weight)
    assert values_of(murphy, MURPHY) == near(values_of(brier_decomposition(*repeated), MURPHY))
    for rule in RULES:
        corp = score_decomposition(*data, score=rule, sample_weight=weight)
        corp_of_repeated = score_decomposition(*repeated, score=rule)
        assert values_of(corp, CORP) == near(values_of(corp_of_repeated, CORP))


@pytest.mark.parametrize("scale", [1.0, 1e-310, 1.7e308])  # of which the sum is infinite
@pytest.mark.parametrize("decimals", [2, 17])
def test_parts_of_many_weighted_rows_sum_to_the_score(scale, decimals):
    rng = np.random.default_rng(0)
    p = rng.random(20_000).round(decimals)
    y = rng.random(20_000) < p**1.3
    weight = rng.random(20_000) * scale
    murphy = brier_decomposition(y, p, sample_weight=weight, edges="quantile")
    assert murphy.score == near(total_of(murphy, MURPHY, (1, -1, 1, 1, -1)))
    for rule in RULES:
        corp = score_decomposition(y, p, score=rule, sample_weight=weight)
        assert corp.score == near(total_of(corp, CORP, (1, -1, 1)))


@pytest.mark.parametrize("decimals", [1, 17])
def test_recalibrated_scores_are_those_of_scikit_learn(decimals):
    isotonic = pytest.importorskip("sklearn.isotonic")
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = rng.integers(2, 200)
        p = rng.random(n).round(decimals)
        weight = rng.random(n) + 0.01
        y = rng.random(n) < p
        fit = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=weight)
        fitted = fit.predict(p).clip(0, 1)
        base = np.full(n, np.average(y, weights=weight))
        for rule, name in RULES.items():
            value = getattr(fastece, name)
            seen, best, even = (value(y, s, sample_weight=weight) for s in (p, fitted, base))
            parts = score_decomposition(y, p, score=rule, sample_weight=weight)
            want = [seen - best, even - best, even]
            assert values_of(parts, CORP) == near(want, 1e-10)


def test_no_part_is_negative_by_rounding():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 4, 40)
        y = rng.random(40) < 0.1 + 0.25 * group
        rate = np.array([y[group == k].mean() for k in range(4)])
        for rule in RULES:
            for prob in (rate[group], np.full(40, y.mean())):
                parts = score_decomposition(y, prob, score=rule)
                assert min(values_of(parts, CORP)) >= 0
                assert parts.miscalibration == near(0) or np.any(np.diff(rate) < 0)


def test_increasing_maps_of_scores_keep_the_discrimination():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    calibrated = score_decomposition(y, p)
    cubed = score_decomposition(y, p**3)
    assert calibrated.discrimination == near(cubed.discrimination)
    assert calibrated.miscalibration < cubed.miscalibration


def test_bins_of_equal_scores_have_no_parts_within_them():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    parts = brier_decomposition(y, p.round(1), n_bins=1000)
    assert (parts.within_variance, parts.within_covariance) == near((0, 0))


@pytest.mark.parametrize(
    ("true", "prob", "murphy", "corp"),
    [
        ([1], [0.75], (0.0625, 0, 0, 0, 0), (0.0625, 0, 0)),
        ([0, 1], [0.2, 0.7], (0.065, 0.25, 0.25, 0, 0), (0.065, 0.25, 0.25)),
        ([0, 1], [0.0, 1.0], (0, 0.25, 0.25, 0, 0), (0, 0.25, 0.25)),
        ([1, 0], [0.0, 1.0], (1, 0.25, 0.25, 0, 0), (0.75, 0, 0.25)),
        ([1, 1, 1], [0.2, 0.2, 0.2], (0.64, 0, 0, 0, 0), (0.64, 0, 0)),
        ([0, 1], [0.5, 0.5], (0, 0, 0.25, 0, 0), (0, 0, 0.25)),
    ],
)
def test_small_and_uniform_data_have_parts(true, prob, murphy, corp):
    assert values_of(brier_decomposition(true, prob), MURPHY) == near(list(murphy))
    assert values_of(score_decomposition(true, prob), CORP) == near(list(corp))


def test_zeros_of_both_signs_are_one_score():
    parts = score_decomposition([1, 0, 0, 1], [-0.0, 0.0, 0.0, -0.0])
    assert values_of(parts, CORP) == near([0.25, 0, 0.25])


def test_rates_that_round_to_one_do_no_harm():
    weight = [1.0, 1e-20]
    parts = score_decomposition([1, 0], [0.5, 0.5], score="log", sample_weight=weight)
    assert np.isfinite(values_of(parts, CORP)).all()


def test_an_infinite_log_loss_is_miscalibrated():
    parts = score_decomposition([0, 1, 1], [0.2, 0.0, 0.7], score="log")
    assert parts.score == parts.miscalibration == inf
    assert np.isfinite([parts.discrimination, parts.uncertainty]).all()


def test_results_are_written_in_words_and_as_plain_values():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 50)
    y = rng.integers(0, 3, 50)
    murphy = brier_decomposition(y, p, n_bins=4)
    corp = score_decomposition(y, p, score="log")
    assert "4 bins, setting sum over 3 classes: 50 rows" in str(murphy)
    assert str(corp).startswith("log loss by isotonic regression, setting sum over 3 classes")
    assert (murphy.value, corp.value) == (murphy.score, corp.score)
    assert [line.split()[:2] for line in str(corp).splitlines()[2:]] == [
        ["+", "miscalibration"], ["-", "discrimination"], ["+", "uncertainty"],
    ]  # fmt: skip
    for parts, names in ((murphy, MURPHY), (corp, CORP)):
        values = json.loads(json.dumps(parts.to_dict()))
        assert {"score", "n", "setting", *names} <= set(values)
        assert values["score"] == values["value"] == parts.value
    assert brier_decomposition(y, p, n_bins="sqrt", setting=1).n_bins == 7
    for setting, name in (("classwise", "classwise"), ("confidence", "confidence"), (1, "class 1")):
        assert score_decomposition(y, p, setting=setting).setting == name


@pytest.mark.parametrize(
    ("function", "options", "error", "message"),
    [
        (brier_decomposition, {"n_bins": 0}, ValueError, "n_bins: must be an integer"),
        (brier_decomposition, {"edges": "equal"}, ValueError, "edges: must be a known"),
        (
            brier_decomposition,
            {"setting": "both"},
            ValueError,
            "setting: must be a known name, got 'both'",
        ),
        (score_decomposition, {"score": "accuracy"}, ValueError, "score: must be a known"),
        (score_decomposition, {"sample_weight": [1.0]}, ValueError, "sample_weight: must have"),
    ],
)
def test_bad_arguments_are_refused(function, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        function([0, 1], [0.2, 0.7], **options)
