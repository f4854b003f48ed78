"""The test of Hosmer and Lemeshow, against its formula in plain loops and scipy's chi-squared."""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

import fastece


def statistic_of(y, p, n_groups=10):
    """The statistic by its definition, for scores without ties and a multiple of ten rows."""
    total = 0.0
    for rows in np.split(np.argsort(p), n_groups):
        events = sum(y[i] for i in rows)
        expected = sum(p[i] for i in rows)
        total += (events - expected) ** 2 / (expected * (1 - expected / len(rows)))
    return total


def risk_model(n=4000, added_risk=0.0, seed=5):
    """Probabilities of rare events, the lower half of them too low by `added_risk`."""
    p = 1 / (1 + np.exp(-np.random.default_rng(3).normal(-3, 1.6, n)))
    true_risk = np.where(p < np.median(p), p + added_risk, p)
    y = np.random.default_rng(seed).random(n) < true_risk
    return y.astype(int), p


def run(y, p, **options):
    options = {"n_resamples": 199, "rng": 0, "estimator": "hosmer_lemeshow", **options}
    return fastece.calibration_test(y, p, **options)


@pytest.mark.parametrize("n_bins", [5, 10])
def test_field_a7_the_value_is_the_statistic_of_its_authors(n_bins):
    y, p = risk_model(added_risk=0.009)
    result = run(y, p, n_bins=n_bins, n_resamples=1999)
    expected = statistic_of(y, p, n_bins)
    assert result.value == pytest.approx(expected, rel=1e-12)
    assert result.df == n_bins
    assert result.asymptotic_p_value == pytest.approx(chi2.sf(expected, n_bins), rel=1e-9)
    assert result.p_value <= 0.01


def test_a_model_fitted_here_has_two_degrees_of_freedom_less():
    y, p = risk_model()
    result = run(y, p, fitted_here=True)
    assert result.value == run(y, p).value
    assert result.df == 8
    assert result.asymptotic_p_value == pytest.approx(chi2.sf(result.value, 8), rel=1e-9)


@pytest.mark.slow
def test_both_p_values_keep_their_level():
    # With 400 samples, a level of 5 % gives more than 37 rejections once in 10,000 runs.
    limit = binom.isf(1e-4, 400, 0.05)
    p_values = np.array([
        (result.p_value, result.asymptotic_p_value)
        for seed in range(400)
        for result in [run(*risk_model(1000, seed=seed), rng=seed)]
    ])  # fmt: skip
    assert ((p_values < 0.05).sum(0) <= limit).all()


def test_tied_scores_are_in_one_group_and_empty_groups_take_no_degree_of_freedom():
    p = np.repeat([0.1, 0.3, 0.6], 20)
    y = np.tile([0, 0, 0, 1], 15)
    result = run(y, p)
    groups = [(5, 20, 0.1), (5, 20, 0.3), (5, 20, 0.6)]
    expected = sum((o - n * s) ** 2 / (n * s * (1 - s)) for o, n, s in groups)
    assert result.value == pytest.approx(expected, rel=1e-12)
    assert result.df == 3
    assert math.isnan(run(y, np.full(60, 0.2), fitted_here=True).asymptotic_p_value)


def test_the_scale_of_weights_does_not_matter():
    y, p = risk_model(1000)
    weight = np.random.default_rng(0).uniform(1, 3, 1000)
    one = run(y, p, sample_weight=weight)
    other = run(y, p, sample_weight=1000 * weight)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert run(y, p, sample_weight=np.full(1000, 7.0)).value == pytest.approx(run(y, p).value)


def test_an_outcome_said_to_be_impossible_makes_the_statistic_infinite():
    p = np.concatenate([np.zeros(50), np.linspace(0.2, 0.8, 50)])
    y = np.tile([0, 1], 50)
    result = run(y, p, n_bins=2)
    assert result.value == math.inf
    assert result.asymptotic_p_value == 0.0
    assert result.p_value == 1 / 200
    calibrated = np.where(np.arange(100) < 50, 0, y)
    assert math.isfinite(run(calibrated, p, n_bins=2).value)


def test_classes_have_a_value_each_and_their_mean_has_no_chi_squared_law():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 500)
    y = np.array([rng.choice(3, p=row) for row in p])
    each = run(y, p, setting="classwise", average=None)
    assert each.value == pytest.approx([statistic_of(y == k, p[:, k]) for k in range(3)])
    assert each.df.tolist() == [10, 10, 10]
    assert each.asymptotic_p_value == pytest.approx(chi2.sf(each.value, 10))
    mean = run(y, p, setting="classwise")
    assert mean.value == pytest.approx(each.value.mean())
    assert math.isnan(mean.df)
    assert math.isnan(mean.asymptotic_p_value)


def test_rows_in_groups_have_a_p_value_by_draws_alone():
    y, p = risk_model(1000)
    result = run(np.repeat(y, 2), np.repeat(p, 2), groups=np.arange(2000) // 2)
    assert math.isnan(result.asymptotic_p_value)
    assert 0 < result.p_value <= 1
    assert "chi-squared" not in str(result)


def test_text_shows_degrees_of_freedom_and_both_p_values():
    y, p = risk_model(added_risk=0.009)
    lines = dict(line.strip().rsplit("  ", 1) for line in str(run(y, p)).splitlines()[1:])
    numbers = {name.strip(): value.strip() for name, value in lines.items()}
    assert numbers["df"] == "10"
    assert numbers["chi-squared p-value"] == "<0.0001"


@pytest.mark.parametrize(
    ("options", "argument"), [({"fitted_here": 1}, "fitted_here"), ({"n_bins": 0}, "n_bins")]
)
def test_parameters_are_checked(options, argument):
    with pytest.raises((TypeError, ValueError), match=rf"^{argument}: "):
        run(*risk_model(100), **options)


def test_it_is_a_test_and_no_error():
    with pytest.raises(ValueError, match=r"^estimator: must be a known name"):
        fastece.ece([0, 1], [0.2, 0.7], estimator="hosmer_lemeshow")
