"""Validations of rare events and weak models: every one has an answer, and the right one."""

import numpy as np
import pytest
from scipy.special import expit, logit

import fastece
from helpers.risk_models import draw_risk_model
from oracles.reference_risk import Recalibration

IGNORE_DOUBTS = pytest.mark.filterwarnings("ignore::fastece.data.errors.RowsWarning")


def check_every_output(seed):
    """Validate and report a model in every form; warnings are errors."""
    model = draw_risk_model(seed)
    found = fastece.validate(model.y, model.p, n_resamples=9, **model.options)
    assert str(found)
    assert found.methods_text()
    for name in ("intercept", "slope"):
        quantity = found.to_dict()[name]
        is_number = isinstance(quantity["value"], float)
        assert is_number == (quantity["confidence_interval"] is not None), model.name
        if is_number:
            low, high = quantity["confidence_interval"]
            assert low < quantity["value"] < high, model.name
            assert 0 <= quantity["p_value"] <= 1, model.name
        else:
            assert found.notes, model.name
    report = fastece.calibration_report(model.y, model.p, n_resamples=19, **model.options)
    assert str(report)
    assert report.to_dict()["validation"]["sentence"]
    return found, report


@IGNORE_DOUBTS
@pytest.mark.parametrize("part", range(4))
def test_each_risk_model_has_a_validation_and_a_report(part):
    for seed in range(3 * part, 3 * part + 3):
        check_every_output(seed)


@IGNORE_DOUBTS
@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_each_of_many_risk_models_has_a_validation_and_pictures(part):
    pytest.importorskip("matplotlib")
    for seed in range(1000 + 20 * part, 1000 + 20 * part + 20):
        found, report = check_every_output(seed)
        found.plot().figure.canvas.draw()
        assert 'validation" src=' in report.to_html()


@IGNORE_DOUBTS
@pytest.mark.parametrize(
    ("base_rate", "spread", "n"),
    [(0.002, 0.5, 2000), (0.01, 0.3, 1000), (0.01, 0.5, 200), (0.03, 0.2, 500), (0.1, 0.05, 300)],
)
def test_intercepts_and_slopes_of_rare_events_are_those_of_scipy(base_rate, spread, n):
    compared = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p = expit(logit(base_rate) + spread * rng.standard_normal(n))
        y = rng.random(n) < p
        found = fastece.validate(y, p, n_resamples=0)
        if not np.isfinite(found.slope.value):
            continue
        compared += 1
        right = Recalibration(y, p)
        intercept, slope = right.intercept(), right.slope()
        assert found.intercept.value == pytest.approx(intercept, abs=1e-11)
        assert found.slope.value == pytest.approx(slope, rel=1e-10, abs=1e-11)
        ends = right.ends(right.likelihood_of_intercept, intercept, 0.1)
        assert found.intercept.confidence_interval == pytest.approx(ends, abs=1e-8)
        ends = right.ends(right.likelihood_of_slope, slope, 0.1)
        assert found.slope.confidence_interval == pytest.approx(ends, rel=1e-8, abs=1e-8)
        statistic = fastece.ece(y, p, estimator="calibration_slope")
        assert statistic == pytest.approx(slope, rel=1e-10, abs=1e-11)
    assert compared >= 3


def test_a_portfolio_with_four_defaults_has_the_interval_of_scipy():
    rng = np.random.default_rng(1)
    p = expit(logit(0.002) + 0.5 * rng.standard_normal(2000))
    y = rng.random(2000) < p
    found = fastece.validate(y, p, n_resamples=0)
    assert (found.events.value, round(found.oe.value, 2)) == (4, 0.89)
    assert found.slope.value == pytest.approx(2.69, abs=0.005)
    assert found.slope.confidence_interval == pytest.approx([0.77, 4.71], abs=0.005)


@pytest.mark.parametrize("low", [0.97, 0.99, 0.999])
def test_the_wrong_column_of_a_rare_event_has_numbers(low):
    rng = np.random.default_rng(0)
    p = low + (1 - low) * rng.random(1000)
    y = rng.random(1000) < 0.05
    found = fastece.validate(y, p, n_resamples=0)
    right = Recalibration(y, p)
    assert found.intercept.value == pytest.approx(right.intercept(), abs=1e-11)
    assert found.slope.value == pytest.approx(right.slope(), abs=1e-10)


@IGNORE_DOUBTS
@pytest.mark.parametrize("scale", [1e-17, 1e-100, 1e-300])
def test_probabilities_next_to_nothing_have_numbers(scale):
    rng = np.random.default_rng(0)
    p = scale * rng.random(500)
    y = rng.random(500) < 0.02
    found = fastece.validate(y, p, n_resamples=0)
    expected = float(np.sum(y) / np.sum(p))
    assert found.oe.value == pytest.approx(expected, rel=1e-12)
    low, high = found.oe.confidence_interval
    assert low < expected < high
    # The odds are the probabilities: the intercept moves their mean to the share of events.
    assert found.intercept.value == pytest.approx(Recalibration(y, p).intercept(), rel=1e-11)


@pytest.mark.parametrize("noise", [0.0, 1e-16, 1e-9])
def test_predictions_that_hardly_differ_have_no_slope(noise):
    rng = np.random.default_rng(3)
    p = 0.1 * (1 + noise * rng.standard_normal(300))
    y = rng.random(300) < 0.12
    found = fastece.validate(y, p, n_resamples=0)
    assert np.isnan(found.slope.value)
    assert found.slope.confidence_interval is None
    assert "All predictions are the same, or nearly so" in " ".join(str(found).split())
    assert np.isnan(fastece.ece(y, p, estimator="calibration_slope"))
    assert np.isfinite(found.intercept.confidence_interval).all()


def test_groups_that_are_all_alike_have_no_interval_and_a_sentence():
    rng = np.random.default_rng(0)
    p = np.tile(rng.random(7), 40)
    y = np.tile([0, 1, 0, 1, 1, 0, 1], 40)
    found = fastece.validate(y, p, groups=np.repeat(np.arange(40), 7), n_resamples=0)
    assert found.slope.value == pytest.approx(Recalibration(y, p).slope(), abs=1e-11)
    assert found.slope.confidence_interval is None
    assert found.oe.confidence_interval is None
    assert "do not differ enough for intervals of intercept" in " ".join(str(found).split())
