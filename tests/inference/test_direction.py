"""The parts of an error, against plain loops and laws, and whether their intervals hold."""

import json
import math
from statistics import NormalDist

import numpy as np
import pytest
import reference

import fastece
from fastece import KDE, BayesCurve, Binned, direction
from helpers.answer_cases import Stand, tiny_data
from helpers.bad_input import assert_refused
from helpers.probes import OneBin
from helpers.resample_cases import VARIANTS, binary, classes
from helpers.strategies import BINNINGS, as_lists, fields_of, weights_for

WAYS = ["ece", "ece_ac", "ece_kde", "ece_bayes"]
PLAIN = [row for row in VARIANTS if not getattr(row, "debias", False)]
NAMES = ["error", "over", "under", "mean_gap"]
VALUES = {"n_resamples": 0}


def values(result):
    return np.array([getattr(result, name) for name in NAMES])


def ends(result):
    return np.array([getattr(result, f"{name}_interval") for name in NAMES])


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("weights", ["none", "integers", "random", "huge"])
def test_parts_of_bins_are_those_of_plain_loops(binning, weights):
    fields = {**fields_of(binning), "n_bins": 7}
    for seed, norm in enumerate([1.0, 2.0, math.inf]):
        y, p = binary(60, seed, decimals=2)
        w = weights_for(weights, 60)
        found = direction(y, p, sample_weight=w, norm=norm, **fields, **VALUES)
        lists = as_lists(p, y, None if w is None else w / w.max())
        over, under = reference.parts([*lists[:2], 0.0, 1.0], lists[2], norm=norm, **fields)
        assert (found.over, found.under) == pytest.approx((over, under), abs=1e-12)
        assert found.mean_gap == pytest.approx(reference.mean_gap(*lists), abs=1e-12)
        assert found.error == fastece.ece(y, p, sample_weight=w, norm=norm, **fields)


@pytest.mark.parametrize("estimator", [*PLAIN, KDE(), KDE(kernel="triweight"), BayesCurve()])
def test_both_parts_make_the_error(estimator):
    for seed in range(5):
        data = binary(50, seed)
        found = direction(*data, estimator=estimator, **VALUES)
        assert found.error == pytest.approx(fastece.ece(*data, estimator=estimator), rel=1e-12)
        norm = estimator.norm
        together = np.linalg.norm([found.over, found.under], norm)
        assert together == pytest.approx(found.error, rel=1e-12)
        assert min(found.over, found.under) >= 0


@pytest.mark.parametrize("norm", [2.0, 7.0, math.inf])
@pytest.mark.parametrize("kind", [KDE, BayesCurve])
def test_parts_of_smooth_curves_have_a_norm_each(kind, norm):
    found = direction(*binary(80), estimator=kind(norm=norm), **VALUES)
    assert 0 <= found.under <= found.over <= found.error * (1 + 1e-9)
    if kind is KDE:
        together = np.linalg.norm([found.over, found.under], norm)
        assert together == pytest.approx(found.error, rel=1e-12)


def test_the_parts_of_a_density_are_those_of_its_curve():
    y, p = binary(400)
    kde = KDE(bandwidth=0.08)
    curve = fastece.reliability_curve(y, p, estimator=kde)
    step = curve.score[1] - curve.score[0]
    found = direction(y, p, estimator=kde, **VALUES)
    for side, part in ((-1, found.over), (1, found.under)):
        want = (np.maximum(side * curve.lce, 0) * curve.density).sum() * step
        assert part == pytest.approx(want, rel=5e-3, abs=2e-4)


@pytest.mark.parametrize("estimator", WAYS)
def test_misses_exchange_both_parts(estimator):
    y, p = binary(90)
    one = direction(y, p, estimator=estimator, n_resamples=199)
    other = direction(1 - y, 1 - p, estimator=estimator, n_resamples=199)
    slack = {"ece_bayes": 6e-3, "ece_kde": 1e-4}.get(estimator, 1e-12)
    assert values(other)[[0, 2, 1]] == pytest.approx(values(one)[:3], abs=slack)
    assert other.mean_gap == pytest.approx(-one.mean_gap)
    assert other.mean_gap_interval == pytest.approx(
        (-one.mean_gap_interval.high, -one.mean_gap_interval.low)
    )


@pytest.mark.parametrize("estimator", WAYS)
def test_classes_have_parts_each_and_their_mean(estimator):
    true, prob = classes(80)
    options = {"estimator": estimator, "setting": "classwise", "n_resamples": 99}
    every, mean = direction(true, prob, average=None, **options), direction(true, prob, **options)
    assert values(every).shape == (4, 3)
    assert ends(every).shape == (4, 2, 3)
    assert values(mean) == pytest.approx(values(every).mean(1), rel=1e-9, abs=1e-15)
    assert abs(mean.mean_gap) < 1e-12
    alone = direction(true, prob, estimator=estimator, setting=2, n_resamples=99)
    slack = 1e-3 if estimator == "ece_bayes" else 1e-12
    assert values(alone) == pytest.approx(values(every)[:, 2], abs=slack)
    assert [len(every.verdict), str(every).count("\n")] == [3, 4]


@pytest.mark.parametrize("estimator", ["ece", "ece_bayes", Binned(norm=2)])
def test_the_interval_of_the_error_is_that_of_estimate_and_not_below_its_parts(estimator):
    raised = 0
    for seed in range(6):
        y, p = binary(120, seed)
        options = {"estimator": estimator, "n_resamples": 199}
        found, other = direction(y, p**2, **options), fastece.estimate(y, p**2, **options)
        low, high = other.confidence_interval
        lows = found.over_interval.low, found.under_interval.low
        if low > 0:
            raised += max(lows) > low
            low, high = max(low, *lows), max(high, *lows)
        assert found.error_interval == (low, high)
        assert found.method == other.method
    assert raised or estimator == "ece_bayes"
    true, prob = classes(80)
    prob = prob**2 / (prob**2).sum(1)[:, None]
    each = direction(true, prob, setting="classwise", average=None, **options)
    is_off = each.error_interval.low > 0
    assert (each.error_interval.low >= each.over_interval.low)[is_off].all()


@pytest.mark.slow
def test_laws_of_intervals_hold_for_tiny_data():
    rng = np.random.default_rng(0)
    for i in range(24):
        y, p = tiny_data(rng)
        estimator = ["ece", "ece_ac", Binned(n_bins=3, norm=np.inf), "ece_bayes"][i % 4]
        options = {"estimator": estimator, "n_resamples": 39}
        found = [direction(y, p, confidence_level=level, **options) for level in (0.3, 0.95, 0.999)]
        for result in found:
            low, high = ends(result).T
            assert (low <= high).all()
            assert (low[:3] >= 0).all()
            assert (high <= 1 + 1e-12).all()
            assert low[3] <= result.mean_gap <= high[3]
            assert p.mean() + low[3] >= -1e-12
            assert p.mean() + high[3] <= 1 + 1e-12
        widths = np.array([np.diff(ends(result))[:, 0] for result in found])
        assert (np.diff(widths, axis=0) >= -1e-12).all()


def test_ends_of_the_mean_gap_are_those_of_plain_search():
    rng, z = np.random.default_rng(2), NormalDist().inv_cdf(0.975)
    for i in range(40):
        y, p = tiny_data(rng)
        w = rng.random(y.size) + 0.1 if i % 2 else None
        result = direction(y, p, sample_weight=w, **VALUES)
        rows, score = as_lists(p, y, w), float(np.average(p, weights=w))
        for end, most in zip(result.mean_gap_interval, (-score, 1 - score), strict=True):
            inside, outside = result.mean_gap, most
            for _ in range(60):
                middle = (inside + outside) / 2
                if reference.is_possible_gap(middle, *rows, z):
                    inside = middle
                else:
                    outside = middle
            assert end == pytest.approx(inside, abs=1e-7)


def test_one_score_has_the_interval_of_wilson():
    # 45 of 50: Wilson's limits of the hit rate are 0.786398 and 0.956524.
    result = direction(np.arange(50) < 45, np.full(50, 0.7), **VALUES)
    low, high = result.mean_gap_interval
    assert low + 0.7 == pytest.approx(0.786398, abs=1e-6)
    assert high + 0.7 == pytest.approx(0.956524, abs=1e-6)


def test_without_replicates_bins_have_values_alone():
    result = direction(*binary(40), **VALUES)
    assert result.error_interval is result.over_interval is result.under_interval is None
    assert result.mean_gap_interval.low < result.mean_gap
    assert result.verdict == "unclear"
    assert "nan" not in str(result)
    assert (result.error, result.error_interval) == (result.value, None)
    assert direction(*binary(40), estimator="ece_bayes", **VALUES).over_interval.high > 0


def test_verdicts_say_which_parts_are_sure():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    curves = {
        "over-confident": p**1.5,
        "under-confident": p**0.7,
        "both": 0.25 + 0.5 * p,
        "unclear": p,
    }
    for verdict, c in curves.items():
        result = direction(rng.random(2000) < c, p, n_resamples=499)
        assert result.verdict == verdict
        assert f"Verdict: {verdict}" in str(result)
    assert direction(rng.random(2000) < p**1.5, p, estimator="ece_bayes").verdict == (
        "over-confident"
    )


def test_plain_values_are_written_as_json():
    every = direction(*classes(50), setting="classwise", average=None, n_resamples=39)
    for result in (direction(*binary(50), n_resamples=39), direction(*binary(9), **VALUES), every):
        found = json.loads(json.dumps(result.to_dict()))
        assert found["verdict"] == result.verdict
        assert {f"{name}_interval" for name in NAMES[1:]} | {"confidence_interval"} < set(found)
    nothing = direction(*binary(20), norm=math.inf, min_count=1e9, n_resamples=39)
    assert np.isnan([nothing.over, *nothing.over_interval]).all()


def test_what_tells_no_gaps_has_no_direction():
    for estimator in (OneBin(), Stand(), KDE(kernel="beta")):
        assert_refused(
            lambda estimator=estimator: direction(*binary(20), estimator=estimator),
            ["^estimator: ", "gaps"],
        )
    assert_refused(lambda: direction(*binary(20), estimator=["ece"]), ["^estimator: ", "list"])
    assert_refused(lambda: direction(*binary(20), n_resamples=-1), ["^n_resamples: "])
    assert_refused(lambda: direction(*binary(20), size=3), ["^size: "])


@pytest.mark.slow
def test_parts_are_covered():
    # Of each of 9 intervals 93 % are to be covered, to be on the safe side of 95; a binomial of 50
    # with 93 % is below 40 once in 1700.
    rng, n = np.random.default_rng(0), 300
    for curve in (lambda s: s, lambda s: s**1.4, lambda s: 0.2 + 0.6 * s):
        s = (np.arange(15 * 1000) + 0.5) / (15 * 1000)
        gap = (curve(s) - s).reshape(15, -1).mean(1) / 15
        truth = [np.abs(gap).sum(), -gap.clip(max=0).sum(), gap.clip(min=0).sum()]
        covered = np.zeros(3)
        for i in range(50):
            p = rng.random(n)
            found = direction(rng.random(n) < curve(p), p, n_resamples=199, rng=i)
            low, high = ends(found)[:3].T
            covered += (low <= np.array(truth) + 1e-9) & (truth <= high + 1e-9)
        assert (covered >= 40).all(), covered
