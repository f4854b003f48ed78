"""The prediction behind a recalibrated probability, by laws and a plain search."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastece.recalibration import (
    BetaCalibration,
    IsotonicCalibration,
    PlattScaling,
    PriorShift,
    ScalingBinning,
    TemperatureScaling,
)
from helpers.bad_input import assert_refused
from helpers.recalibration_cases import METHODS, data_of, fitted

# Continuous maps that increase everywhere, and maps that are constant somewhere.
SMOOTH = ("none", "temperature", "ets", "platt", "beta", "quadratic", "prior_shift")
INCREASING = (*SMOOTH, "isotonic", "curve", "scaling_binning", "scaling_binning, 4 bins")
NEAR = {"rtol": 0, "atol": 1e-12}
every_map = pytest.mark.parametrize("variant", INCREASING)
every_smooth_map = pytest.mark.parametrize("variant", SMOOTH)
both_inputs = pytest.mark.parametrize("from_logits", [False, True])


def smallest_score(model, p):
    """The smallest probability whose map is at least p, by halving differences of numbers."""
    low, high = 0.0, 1.0
    if model.transform([low])[0] >= p:
        return low
    while math.nextafter(low, 1) < high:
        middle = low + (high - low) / 2
        if model.transform([middle])[0] >= p:
            high = middle
        else:
            low = middle
    return high


@every_map
@both_inputs
def test_it_is_the_smallest_prediction_that_reaches_p(variant, from_logits):
    model = fitted(variant, "one column", from_logits)
    p = model.transform(data_of("one column").inputs(from_logits)[0])
    p = np.concatenate([p, (p[1:] + p[:-1]) / 2])
    score = model.inverse(p)
    assert score.shape == p.shape
    assert (model.transform(score) >= p).all()
    is_inner = score > (-1e100 if from_logits else 0)
    before = model.transform(np.where(is_inner, np.nextafter(score, -np.inf), score))
    assert (before[is_inner] < p[is_inner]).all()


@every_map
def test_it_equals_a_plain_search(variant):
    model = fitted(variant, "one column")
    p = model.transform([0.03, 0.4, 0.97]) * 0.999
    expected = [smallest_score(model, x) for x in p]
    np.testing.assert_allclose(model.inverse(p), expected, rtol=1e-14, atol=0)


@every_smooth_map
@given(score=st.lists(st.floats(1e-9, 1 - 1e-9), min_size=1, max_size=20))
def test_round_trips_of_probabilities(variant, score):
    model = fitted(variant, "one column")
    p = model.transform(score)
    np.testing.assert_allclose(model.inverse(p), score, **NEAR)
    np.testing.assert_allclose(model.transform(model.inverse(p)), p, **NEAR)


@every_smooth_map
@given(score=st.lists(st.floats(-8, 3), min_size=1, max_size=20))
def test_round_trips_of_log_odds(variant, score):
    model = fitted(variant, "one column", from_logits=True)
    p = model.transform(score)
    np.testing.assert_allclose(model.inverse(p), score, **NEAR)
    np.testing.assert_allclose(model.transform(model.inverse(p)), p, **NEAR)


@every_map
@given(share=st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_it_does_not_decrease(variant, share):
    model = fitted(variant, "one column")
    smallest, largest = model.transform([0.0, 1.0])
    p = np.sort(smallest + np.array(share) * (largest - smallest)).clip(smallest, largest)
    assert (np.diff(model.inverse(p)) >= 0).all()


@every_smooth_map
@both_inputs
def test_class_vectors_give_class_vectors(variant, from_logits):
    model = fitted(variant, "one column", from_logits)
    score = np.array([0.1, 0.5, 0.8])
    p = model.transform(score)
    rows = np.column_stack([1 - p, p])
    vectors = model.inverse(rows)
    assert vectors.shape == rows.shape
    if from_logits:
        np.testing.assert_allclose(vectors[:, 1] - vectors[:, 0], score, **NEAR)
        vectors = np.exp(vectors)
    else:
        np.testing.assert_allclose(vectors[:, 1], score, **NEAR)
    np.testing.assert_allclose(vectors.sum(axis=1), 1, **NEAR)


@both_inputs
def test_temperature_scaling_of_more_classes(from_logits):
    model = fitted("temperature", "three classes", from_logits)
    data = data_of("three classes")
    p = model.transform(data.inputs(from_logits)[1])
    score = model.inverse(p)
    expected = np.log(data.new) if from_logits else data.new
    np.testing.assert_allclose(score, expected, **NEAR)
    np.testing.assert_allclose(model.transform(score), p, **NEAR)


def test_probabilities_that_no_prediction_reaches_are_refused():
    model = IsotonicCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 0])
    largest = model.transform([1.0])[0]
    assert largest < 0.9
    patterns = [r"p\[1\] is 0\.9", str(largest), r"0\.0 to"]
    assert_refused(lambda: model.inverse([0.2, 0.9, 0.95]), patterns)
    many = fitted("temperature", "three classes")
    rows = [[0.2, 0.3, 0.5], [0.0, 0.5, 0.5]]
    assert_refused(lambda: many.inverse(rows), [r"p\[1, 0\] is 0\.0", "clip_"])


def test_maps_that_may_decrease_are_refused():
    for name in set(METHODS) - {*INCREASING}:
        model = fitted(name, "one column")
        assert_refused(lambda model=model: model.inverse([0.5]), ["no inverse", model.title])
    model = fitted("curve, not monotone", "one column")
    assert_refused(lambda: model.inverse([0.5]), ["monotone", "decrease"])
    for kind in (PlattScaling, ScalingBinning):
        falling = kind().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [1, 1, 0, 1, 0, 0])
        assert falling.slope_ < 0
        assert_refused(lambda falling=falling: falling.inverse([0.5]), ["slope_", "decreases"])


def test_maps_of_more_classes_are_refused():
    for name in set(METHODS) - {"temperature"}:
        model = fitted(name, "three classes")
        rows = [[0.2, 0.3, 0.5]]
        assert_refused(lambda model=model, rows=rows: model.inverse(rows), ["two classes"])


def test_bad_probabilities_are_refused():
    model = fitted("platt", "one column")
    assert_refused(lambda: model.inverse([0.5, 1.5]), [r"\bp\b", r"\b1\b", r"1\.5"])
    assert_refused(lambda: model.inverse([[0.2, 0.3, 0.5]]), [r"\bp\b", "2 classes"])
    assert_refused(lambda: model.inverse(0.5), [r"\bp\b", "array", "0.5"])
    assert_refused(lambda: PlattScaling().inverse([0.5]), [r"\bp\b", "fitted"])


def test_formulas_of_single_maps():
    """Inverses in closed form, of maps whose numbers are set."""
    p = np.array([0.05, 0.3, 0.5, 0.9])
    logit = np.log(p / (1 - p))
    shift = PriorShift(old=0.5, new=0.1).fit([0.5])
    np.testing.assert_allclose(shift.inverse(p), 9 * p / (9 * p + 1 - p), **NEAR)
    platt = fitted("platt", "one column", from_logits=True)
    expected = (logit - platt.intercept_) / platt.slope_
    np.testing.assert_allclose(platt.inverse(p), expected, **NEAR)
    temperature = fitted("temperature", "one column", from_logits=True)
    expected = temperature.temperature_ * logit
    np.testing.assert_allclose(temperature.inverse(p), expected, **NEAR)


def test_a_constant_map_has_its_rate_at_every_prediction():
    with pytest.warns(UserWarning, match="all scores are equal"):
        model = BetaCalibration().fit([0.5] * 4, [0, 1, 1, 1])
    assert model.inverse([0.75 - 1e-9]) == 0
    assert_refused(lambda: model.inverse([0.8]), [r"p\[0\] is 0\.8"])


def test_float32_probabilities_have_float64_scores():
    model = TemperatureScaling().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    p = np.array([0.2, 0.7], np.float32)
    score = model.inverse(p)
    assert score.dtype == np.float64
    np.testing.assert_allclose(model.transform(score), p.astype(float), **NEAR)
