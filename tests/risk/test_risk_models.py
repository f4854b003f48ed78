"""Validations of rare events and weak models: every one has an answer, and the right one."""

import numpy as np
import pytest
from scipy.special import expit, logit

import fastece
from oracles.reference_risk import Recalibration

IGNORE_DOUBTS = pytest.mark.filterwarnings("ignore::fastece.data.errors.RowsWarning")


def between(rng, low, high):
    """Draw a number between two positive ones, uniform on the log scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def separated(rng, z, y):
    """Predictions below the base rate for all outcomes 0, and above it for all outcomes 1."""
    return expit(z.mean() + np.where(y == 1, 1, -1) * rng.exponential(1, z.size))


def separated_but_for_one(rng, z, y):
    """Separated predictions, of which one is anywhere."""
    p = separated(rng, z, y)
    p[rng.integers(z.size)] = rng.random()
    return p


# ruff: noqa: ARG005 - every kind takes the same three arguments
# Predictions of each kind of model, from a generator, the logits of the risks, and the outcomes.
KINDS = {
    "calibrated": lambda rng, z, y: expit(z),
    "another slope": lambda rng, z, y: expit(z.mean() + between(rng, 0.05, 20) * (z - z.mean())),
    "shifted": lambda rng, z, y: expit(z + rng.uniform(-8, 8)),
    "separated": separated,
    "separated but for one": separated_but_for_one,
    "constant": lambda rng, z, y: np.full(z.size, rng.choice([0, 1e-17, expit(z.mean()), 1])),
    "few scores": lambda rng, z, y: expit(z).round(2),
    "nearly constant": lambda rng, z, y: expit(
        z.mean() + between(rng, 1e-16, 1e-3) * (z - z.mean())
    ),
    "wrong column": lambda rng, z, y: 1 - expit(z),
    "sure of the event": lambda rng, z, y: 1 - between(rng, 1e-17, 0.03) * rng.random(z.size),
    "sure of no event": lambda rng, z, y: between(rng, 1e-300, 1e-3) * rng.random(z.size),
    "zeros and ones": lambda rng, z, y: np.where(
        rng.random(z.size) < 0.3, expit(z).round(), expit(z)
    ),
}
OPTIONS = [
    lambda rng, n: {},
    lambda rng, n: {"sample_weight": rng.gamma(rng.choice([0.05, 1.0]), 1.0, n) + 1e-9},
    lambda rng, n: {"counts": rng.integers(1, 20, n)},
    lambda rng, n: {"groups": rng.integers(0, max(2, n // 10), n)},
]


def draw_risk_model(kind, seed):
    """Outcomes, predictions and options of a model of a kind, with 50 to 1000 rows."""
    rng = np.random.default_rng([seed, *kind.encode()])
    n = int(between(rng, 50, 1000))
    z = logit(between(rng, 0.001, 0.5)) + between(rng, 0.02, 3) * rng.standard_normal(n)
    y = (rng.random(n) < expit(z)).astype(int)
    return y, KINDS[kind](rng, z, y), OPTIONS[rng.integers(4)](rng, n)


@pytest.mark.slow
@IGNORE_DOUBTS
@pytest.mark.parametrize("kind", KINDS)
def test_each_risk_model_has_a_validation_and_no_warning(kind):
    for seed in range(5):
        y, p, options = draw_risk_model(kind, seed)
        found = fastece.validate(y, p, n_resamples=9, **options)
        assert str(found)
        assert found.methods_text()
        for quantity in (found.to_dict()["intercept"], found.to_dict()["slope"]):
            interval = quantity["confidence_interval"]
            if isinstance(quantity["value"], float):
                assert interval[0] < quantity["value"] < interval[1]
                assert 0 <= quantity["p_value"] <= 1
            else:
                assert interval is None
                assert found.notes


@IGNORE_DOUBTS
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["separated but for one", "constant", "sure of no event"])
def test_each_risk_model_has_a_page_with_pictures(kind):
    pytest.importorskip("matplotlib")
    y, p, options = draw_risk_model(kind, 0)
    report = fastece.calibration_report(y, p, n_resamples=19, **options)
    assert str(report)
    assert report.to_dict()["validation"]["sentence"]
    assert 'validation" src=' in report.to_html()


@pytest.mark.slow
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
