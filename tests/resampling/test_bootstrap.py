"""Bootstrap: the rows that are drawn, and the values of replicates."""

from dataclasses import asdict
from math import isqrt, nan

import numpy as np
import pytest
import reference

import fastece
from fastece import Binned
from fastece.estimators.table import ESTIMATORS
from helpers.chance import ALPHA, chi_square_p
from helpers.probes import Code, Spy
from helpers.resample_cases import (
    BINNED,
    METHODS,
    binary,
    classes,
    distribution,
    near,
    same_bits,
    two_models,
)
from helpers.samples import CALIBRATION_ERRORS

# Estimators of pairs of rows need two of them.
PAIRS_OF_ROWS = ("canonical", "skce")


def test_values_of_all_classes_equal_ece():
    options = {"setting": "classwise", "average": None}
    result = fastece.bootstrap(*classes(60), n_resamples=50, rng=0, **options)
    assert same_bits(result.value, fastece.ece(*classes(60), **options))
    low, high = result.confidence_interval
    shapes = [np.shape(x) for x in (result.standard_error, result.bias, low, high)]
    assert shapes == [(3,)] * 4
    assert result.bootstrap_distribution.shape == (3, 50)
    macro = distribution(*classes(60), n_resamples=50, rng=0, setting="classwise")
    assert macro == near(result.bootstrap_distribution.mean(axis=0))


def test_a_seed_of_any_kind_draws_the_same_rows_and_none_draws_anew():
    def drawn(rng):
        return distribution(*binary(40), n_resamples=33, rng=rng)

    assert same_bits(drawn(7), drawn(np.int64(7)))
    generator = np.random.default_rng(7)
    assert same_bits(drawn(7), drawn(generator))
    assert not same_bits(drawn(7), drawn(generator))  # which has gone on
    assert not same_bits(drawn(None), drawn(None))


def test_default_is_9999_replicates():
    n = 5
    assert fastece.bootstrap(*binary(n)).bootstrap_distribution.shape == (9999,)


@pytest.mark.parametrize("size", [None, 1, 3, 13])
def test_classes_and_settings_share_each_draw(size):
    data = classes(12, 4)
    code = Code(14)
    options = {"estimator": code, "size": size, "n_resamples": 70}
    drawn = code.counts(distribution(*data, **options), 12)
    assert np.all(drawn.sum(axis=1) == (size or 12))
    every = distribution(*data, setting="classwise", average=None, **options)
    for values in (*every, distribution(*data, setting=2, **options)):
        assert np.array_equal(code.counts(values, 12), drawn)


@pytest.mark.parametrize(("n", "size"), [(40, None), (40, 5), (40, 39), (40, 90), (3000, 7)])
def test_estimators_get_sorted_rows_and_their_counts(n, size):
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


@pytest.mark.parametrize("size", [None, 3, 13])
def test_rows_of_weight_zero_are_never_drawn(size):
    weight = np.array([0, 2, 0.5, 1, 0, 1, 1, 3, 0, 1, 1, 1.0])
    true, prob = binary(12)
    code = Code(14)
    weighted = np.flatnonzero(weight)
    options = {"estimator": code, "size": size, "n_resamples": 200}
    drawn = code.counts(distribution(true, prob, sample_weight=weight, **options), 12)
    assert np.all(drawn[:, weight == 0] == 0)
    assert np.all(drawn[:, weighted].sum(axis=0) > 0)
    assert np.all(drawn.sum(axis=1) == (size or 9))
    without = distribution(
        true[weighted], prob[weighted], sample_weight=weight[weighted], **options
    )
    assert np.array_equal(code.counts(without, 9), drawn[:, weighted])


def test_weights_do_not_change_how_often_rows_are_drawn():
    # False-alarm rate 1e-4.
    n = 50
    count = 4000
    spy = Spy()
    weight = np.geomspace(0.01, 100, n)
    options = {"estimator": spy, "n_resamples": count, "rng": 3}
    values = distribution(*binary(n), sample_weight=weight, **options)
    total = np.bincount(spy.rows(values).ravel(), minlength=n)
    assert chi_square_p(total, np.full(n, float(count))) > ALPHA


@pytest.mark.parametrize(("n", "size"), [(1, 1), (1, 300), (2, 1000), (3, 2000), (1, 256)])
def test_rows_are_counted_beyond_255(n, size):
    true = np.array([1, 0, 1])[:n]
    prob = np.array([0.2, 0.6, 0.9])[:n]
    spy = Spy()
    values = distribution(true, prob, estimator=spy, size=size, n_resamples=33)
    names = [*BINNED, Binned(n_bins="sqrt")]
    results = fastece.bootstrap(true, prob, estimator=names, size=size, n_resamples=33, rng=5)
    for r, (sample, _, c) in enumerate(spy.draws(values)):
        assert c.sum() == size
        w = [int(c[sample.rows == i].sum()) for i in range(n)]
        for name in names:
            fields = asdict(name if isinstance(name, Binned) else ESTIMATORS[name])
            if fields["n_bins"] == "sqrt":
                fields["n_bins"] = isqrt(size)
            want = reference.error((prob.tolist(), true.tolist(), 0.0, 1.0), w, **fields)
            assert results[str(name)].bootstrap_distribution[r] == near(want)


def test_block_method_equals_evaluate():
    class Fast(Code):
        def block(self, plan, c):
            assert c.dtype == np.uint8
            assert c.shape == (len(plan), 32)
            return plan @ c.astype(np.int64)

    for n_resamples in (1, 32, 33, 100):
        options = {"n_resamples": n_resamples}
        want = distribution(*binary(12), estimator=Code(13), **options)
        assert same_bits(distribution(*binary(12), estimator=Fast(13), **options), want)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in PAIRS_OF_ROWS])
def test_a_single_row_has_no_spread(name):
    result = fastece.bootstrap([1], [0.8], estimator=name, n_resamples=40, rng=0)
    assert result.bootstrap_distribution == near(result.value)
    assert (result.standard_error, result.bias) == (near(0.0), near(0.0))
    assert result.confidence_interval == near((result.value,) * 2)
    options = {"estimator": name, "n_resamples": 9}
    assert len(fastece.bootstrap([1], [0.8], method="bca", **options).interval()) == 2
    assert fastece.compare([1], [0.8], [0.6], method="basic", **options).p_value <= 1
    if name in CALIBRATION_ERRORS:
        test = fastece.calibration_test([1], [0.8], estimator=name, n_resamples=9, rng=0)
        assert test.p_value <= 1


def test_one_replicate_has_no_standard_error():
    result = fastece.bootstrap(*binary(20), n_resamples=1, rng=0)
    assert np.isnan(result.standard_error)
    assert result.interval(method="percentile") == near((result.bootstrap_distribution[0],) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_scores_have_finite_replicates(name):
    for score, hits in ((0.0, 0), (0.0, 5), (0.3, 0), (0.3, 5), (1.0, 5), (1.0, 20)):
        true = np.arange(20) < hits
        prob = np.full(20, score)
        options = {"estimator": name, "n_resamples": 20, "rng": 0}
        result = fastece.bootstrap(true, prob, **options)
        for method in METHODS:
            fastece.bootstrap(true, prob, method=method, **options)
        finite = np.isfinite(result.bootstrap_distribution)
        if name in CALIBRATION_ERRORS:
            assert finite.all()
            assert fastece.calibration_test(true, prob, **options).p_value <= 1
        else:
            assert finite.all() or (name == "log_loss" and result.value == np.inf)


def test_undefined_errors_stay_nan_without_warnings():
    options = {"norm": np.inf, "min_count": 1e6, "n_resamples": 20, "rng": 0}
    for method in METHODS:
        result = fastece.bootstrap(*binary(20), method=method, **options)
        assert np.isnan(result.value)
        assert np.isnan(result.bootstrap_distribution).all()
        assert result.confidence_interval == near((nan, nan))
    options |= {"estimator": "ece", "method": "basic"}
    assert np.isnan(fastece.compare(*two_models(20), **options).value)
