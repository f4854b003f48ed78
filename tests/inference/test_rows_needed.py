"""Rows needed, against formulas of binomial widths and power, and what is refused."""

from statistics import NormalDist

import numpy as np
import pytest

from fastece import InputError, InputTypeError, calibration_test, rows_needed
from fastece.inference import rows_needed as module

Z = NormalDist().inv_cdf
SCORE = np.full(400, 0.3)
HALF, CALIBRATED = np.arange(400) % 2, np.arange(400) % 10 < 3


@pytest.mark.slow
def test_the_width_of_one_bin_is_that_of_a_binomial():
    # Of one score, whose labels come true in one half: 2 z sqrt(p q / n).
    found = rows_needed(HALF, SCORE, width=0.08, estimator="ece", n_bins=1)
    assert found.value == pytest.approx((2 * Z(0.975) / 0.08) ** 2 / 4, rel=0.1)
    low, high = found.confidence_interval
    assert low <= found.value <= high < 1.2 * low
    assert "a mean width of 0.08" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [None, CALIBRATED])
def test_the_power_for_one_score_is_that_of_a_binomial(labels):
    # The test has 5 %, and labels come true in 0.3 + 0.08: the shift is towards one half.
    found = rows_needed(labels, SCORE, detect=0.08, power=0.9)
    root = Z(0.975) * np.sqrt(0.3 * 0.7) + Z(0.9) * np.sqrt(0.38 * 0.62)
    assert found.value == pytest.approx((root / 0.08) ** 2, rel=0.15)
    assert "a shift" in found.shape
    assert found.to_frame()["goal"][0] == "power 0.9 for an error of 0.08 by a test at 5 %"


@pytest.mark.slow
def test_the_shape_is_the_pilots_curve_and_weights_go_along():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    found = rows_needed(rng.random(500) < p**2, p, detect=0.1, sample_weight=1 + p)
    assert "their curve, scaled" in found.shape
    n = found.value
    rejects = [
        calibration_test(rng.random(n) < q - 0.6 * q * (1 - q), q, n_resamples=199).p_value <= 0.05
        for q in (rng.random(n) for _ in range(100))
    ]  # the true error is 0.1, and the weights are all the same: a bit more power
    assert 0.68 <= np.mean(rejects) <= 0.98  # of 100 binomial ones with 0.83, all but 1e-4


@pytest.mark.slow
def test_many_rows_are_those_of_fewer_with_a_larger_error(monkeypatch):
    p = np.random.default_rng(0).random(300)
    known = rows_needed(None, p, detect=0.03).value
    monkeypatch.setattr(module, "MAX_TEST_ROWS", 500)
    assert rows_needed(None, p, detect=0.03).value == pytest.approx(known, rel=0.2)
    monkeypatch.setattr(module, "MAX_INTERVAL_ROWS", 300)
    assert rows_needed(None, p, width=0.05).value > 600
    assert rows_needed(None, p, width=0.97).value == 10


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({}, "width"),
        ({"width": 0.1, "detect": 0.1}, "width"),
        ({"width": 0.0}, "width"),
        ({"detect": 1.0}, "detect"),
        ({"detect": 0.75}, "detect"),
        ({"detect": 0.1, "power": 0.04}, "power"),
        ({"detect": 0.1, "level": 95}, "level"),
        ({"detect": 0.1, "estimator": "ece"}, "estimator"),
        ({"width": 0.1, "estimator": ["ece"]}, "estimator"),
        ({"width": 0.1, "estimator": "brier_score"}, "estimator"),
        ({"width": 1e-5}, "width"),
        ({"width": 0.1, "estimator": "ece", "norm": np.inf, "min_count": 500}, "estimator"),
    ],
)
def test_bad_goals_name_the_argument(options, argument):
    with pytest.raises((InputError, InputTypeError)) as error:
        rows_needed(CALIBRATED, SCORE, **options)
    assert error.value.argument == argument


@pytest.mark.slow
def test_several_problems_are_refused():
    rows = np.column_stack([SCORE, 1 - SCORE])
    with pytest.raises(InputError, match="one problem"):
        rows_needed(HALF, rows, width=0.1, setting="classwise")
    assert rows_needed(HALF, rows, width=0.2, setting="confidence").n == 400
