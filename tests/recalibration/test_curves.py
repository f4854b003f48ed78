"""A reliability curve as a map: the curve itself, or made monotone."""

import numpy as np
import pytest

from fastece import KDE, BayesCurve, reliability_curve
from helpers.recalibration_cases import METHODS, PROBLEMS, binary
from helpers.samples import sample_of

ESTIMATORS = ["ece_kde", "ece_bayes", KDE(bandwidth=0.08), BayesCurve()]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", ["ece_bayes", BayesCurve()], ids=str)
def test_a_bayesian_map_is_the_posterior_mean(estimator, weighted):
    """At its own points to the digit; between them, where lines are straight, within 0.005."""
    data = binary(n=600)
    w = data.w if weighted else None
    model = METHODS["curve"](estimator=estimator, monotone=False).fit(data.X, data.y, w)
    sample = sample_of(data.X, data.y, w)
    for scores, near in ((model.score_, 1e-9), (data.X, 0.005)):
        want = BayesCurve().curve_draws(sample, np.sort(scores)).mean(axis=1)
        np.testing.assert_allclose(model.transform(np.sort(scores)), want, rtol=0, atol=near)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", ["ece_kde", KDE(bandwidth=0.08)], ids=str)
def test_without_monotone_the_map_is_the_curve(estimator, weighted):
    data = binary(n=600)
    w = data.w if weighted else None
    curve = reliability_curve(data.y, data.X, estimator=estimator, sample_weight=w)
    model = METHODS["curve"](estimator=estimator, monotone=False).fit(data.X, data.y, w)
    expected = np.array([float(curve(s)) for s in data.X])
    is_supported = np.isfinite(expected)
    assert is_supported.mean() > 0.9
    q = model.transform(data.X)
    np.testing.assert_allclose(q[is_supported], expected[is_supported], rtol=0, atol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_monotone_map_never_falls(estimator):
    rng = np.random.default_rng(4)
    p = rng.random(400)
    y = (rng.random(400) < 0.5 + 0.4 * np.sin(9 * p)).astype(int)  # up, down, up
    grid = np.linspace(0, 1, 2001)
    rough = METHODS["curve"](estimator=estimator, monotone=False).fit(p, y).transform(grid)
    smooth = METHODS["curve"](estimator=estimator).fit(p, y).transform(grid)
    assert np.diff(rough).min() < -1e-4
    assert np.diff(smooth).min() >= 0
    for q in (rough, smooth):
        assert np.isfinite(q).all()
        assert q.min() >= 0
        assert q.max() <= 1


@pytest.mark.parametrize("problem", PROBLEMS)
def test_far_from_all_rows_there_is_a_probability_still(problem):
    """A curve has no number where there are no scores to speak of; a map needs one."""
    data = PROBLEMS[problem](n=40)
    narrow = (
        0.5 + 0.02 * (data.X - 0.5) if data.X.ndim == 1 else data.X * 0.02 + 0.98 / data.X.shape[1]
    )
    for estimator in ("ece_kde", "ece_bayes"):
        q = METHODS["curve"](estimator=estimator).fit(narrow, data.y).transform(data.new)
        assert np.isfinite(q).all()
        assert q.min() >= 0
        assert q.max() <= 1
