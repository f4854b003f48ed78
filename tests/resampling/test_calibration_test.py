"""Labels drawn as if the model were calibrated."""

import numpy as np
import pytest
from scipy import stats

import fastece
from fastece import Binned, calibration_test
from fastece.resampling.calibration_test import MIN_EXTREME, ROUNDS
from helpers.chance import ALPHA, chi_square_p
from helpers.probes import HitCode, Hits, Mean
from helpers.resample_cases import (
    BINNED,
    binary,
    classes,
    near,
    same_bits,
)
from helpers.samples import CALIBRATION_ERRORS


@pytest.mark.parametrize("name", CALIBRATION_ERRORS)
def test_p_value_counts_replicates_as_large_as_the_error(name):
    weight = np.random.default_rng(1).integers(0, 3, 50)
    for data, setting, w in (
        (binary(50), "auto", None),
        (classes(50), "classwise", weight),
        (classes(50), 1, None),
    ):
        options = {"estimator": name, "setting": setting, "sample_weight": w}
        result = fastece.calibration_test(*data, n_resamples=99, rng=1, **options)
        assert type(result.value) is type(result.p_value) is float
        assert result.value == fastece.ece(*data, **options)
        assert result.null_distribution.shape == (99,)
        # A draw like the data is as far off, whatever the order of its sums.
        above = np.sum(result.null_distribution >= result.value - 1e-12)
        assert result.p_value == (1 + above) / 100


def test_certain_and_right_is_calibrated():
    true = np.arange(40) % 2
    result = fastece.calibration_test(
        true, true.astype(float), estimator="ece", n_resamples=50, rng=0
    )
    assert result.value == 0 == result.null_distribution.max()
    assert result.p_value == 1


def test_certain_and_wrong_is_rejected():
    result = fastece.calibration_test(*binary(2000), estimator="ece", n_resamples=99, rng=0)
    assert result.p_value == 1 / 100
    sure = fastece.calibration_test(
        [0, 1, 1], [1.0, 0.0, 0.0], estimator="ece", n_resamples=99, rng=0
    )
    assert (sure.value, sure.p_value) == (1, 1 / 100)


def test_labels_are_drawn_once_for_all_classes():
    true, prob = classes(30, 4)
    options = {"setting": "classwise", "n_resamples": 40, "rng": 0}
    result = fastece.calibration_test(true, prob, estimator=Hits(), **options)
    assert result.null_distribution == near(30 / 4)  # each row is a hit of exactly one class
    counts = fastece.calibration_test(
        true, prob, estimator=Hits(), setting=1, n_resamples=40, rng=0
    ).null_distribution
    assert len(set(counts)) > 1


def test_equal_seeds_draw_equal_labels():
    data = binary(20)
    options = {"estimator": HitCode(), "rng": 4}
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
def test_band_has_a_range_for_each_bin_of_the_diagram(estimator):
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


def test_each_class_has_a_band_and_estimators_without_bins_none():
    data = classes(40)
    bands = fastece.calibration_test(*data, setting="classwise", n_resamples=20, rng=0).band
    assert type(bands) is list
    assert [band.low.shape for band in bands] == [(15,)] * 3
    assert fastece.calibration_test(*data, estimator=Mean(), n_resamples=20, rng=0).band is None


def test_labels_under_the_hypothesis_follow_the_scores():
    # All 16 patterns of four hits, a probability of 0 and of 1 apart; false-alarm rate 1e-4.
    count = 20_000
    s = np.array([0.1, 0.0, 0.5, 1.0, 0.8, 0.35])
    result = fastece.calibration_test(
        [0, 0, 1, 1, 1, 0], s, estimator=HitCode(), n_resamples=count, rng=5
    )
    patterns = np.arange(64)[:, None] >> np.arange(6) & 1
    law = np.prod(np.where(patterns == 1, s, 1 - s), axis=1)
    seen = np.bincount(result.null_distribution.astype(np.int64), minlength=64)
    assert seen[law == 0].sum() == 0
    assert chi_square_p(seen[law > 0], count * law[law > 0]) > ALPHA


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_band_of_equal_scores_is_binomial(level):
    # An end is at most one hit from the quantile; a false alarm needs 4 standard deviations.
    n = 200
    s = 0.3
    result = fastece.calibration_test(
        np.arange(n) % 2, np.full(n, s), estimator="ece", n_bins=1, confidence_level=level,
        n_resamples=20_000, rng=0,
    )  # fmt: skip
    want = stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], n, s) / n
    slack = 1.01 / n
    assert (result.band.low[0], result.band.high[0]) == pytest.approx(tuple(want), abs=slack)


# --- replicates until the p-value is known --------------------------------------------------


def small_p_value_rows():
    """Rows of a model whose p-value is about 0.001."""
    rng = np.random.default_rng(0)
    p = rng.random(500)
    return rng.random(500) < p**1.3, p


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "n_jobs"), [("adaptive", 2), ("ece", 1)])
def test_auto_equals_as_many_replicates_from_the_beginning(estimator, n_jobs):
    y, p = small_p_value_rows()
    result = calibration_test(y, p, estimator=estimator, n_resamples="auto", n_jobs=n_jobs)
    n_resamples = result.null_distribution.size
    assert n_resamples in ROUNDS
    fixed = calibration_test(y, p, estimator=estimator, n_resamples=n_resamples)
    assert fixed.p_value == result.p_value
    assert np.array_equal(fixed.null_distribution, result.null_distribution)


@pytest.mark.slow
def test_auto_stops_at_the_first_round_with_enough_replicates_as_extreme_as_the_data():
    y, p = small_p_value_rows()
    result = calibration_test(y, p, n_resamples="auto")
    reached = ROUNDS.index(result.null_distribution.size)
    assert reached > 0
    p_values = [calibration_test(y, p, n_resamples=n).p_value for n in ROUNDS[: reached + 1]]
    n_extreme = [round(p_value * (n + 1)) - 1 for p_value, n in zip(p_values, ROUNDS, strict=False)]
    assert all(count < MIN_EXTREME for count in n_extreme[:-1])
    assert n_extreme[-1] >= MIN_EXTREME


def test_auto_draws_no_more_where_more_would_show_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    calibrated = calibration_test(y, p, n_resamples="auto")
    assert calibrated.null_distribution.size == ROUNDS[0]
    p[0] = 0.0
    y[0] = True
    impossible = calibration_test(y, p, n_resamples="auto")
    assert impossible.p_value == 1 / (ROUNDS[0] + 1)


def test_auto_has_the_level_of_a_test_with_a_fixed_number():
    rng = np.random.default_rng(1)
    n_tests = 200_000
    true_p_value = rng.random(n_tests)
    n_extreme = np.zeros(n_tests, np.int64)
    p_value = np.ones(n_tests)
    is_open = np.ones(n_tests, np.bool_)
    drawn = 0
    for n_resamples in ROUNDS:
        n_extreme += rng.binomial(n_resamples - drawn, true_p_value)
        drawn = n_resamples
        p_value[is_open] = ((1 + n_extreme) / (n_resamples + 1))[is_open]
        is_open &= n_extreme < MIN_EXTREME
    for alpha in (0.05, 0.01, 0.001, 0.0002):
        rate = np.mean(p_value <= alpha)
        assert rate <= alpha + 4 * np.sqrt(alpha / n_tests)


@pytest.mark.parametrize("n_resamples", ["all", "AUTO", 0, None, 2.5])
def test_numbers_of_replicates_are_whole_or_auto(n_resamples):
    y, p = small_p_value_rows()
    with pytest.raises((ValueError, TypeError), match="n_resamples") as error:
        calibration_test(y, p, n_resamples=n_resamples)
    if isinstance(n_resamples, str):
        assert "an integer or 'auto'" in str(error.value)
