"""Every method equals brute force: the same optimum of the same loss, the same bins, to 1e-6."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from helpers.recalibration_cases import (
    CASES,
    METHODS,
    ONE_SCORE,
    PROBLEMS,
    VARIANTS,
    classes,
    make,
)
from oracles import reference_recalibration as oracle

NEAR = {"rtol": 0, "atol": 1e-6}
# The methods with a short oracle; the curve has a test of its own.
ORACLES = {
    "temperature": oracle.temperature_map,
    "ets": oracle.ets_map,
    "vector": oracle.vector_map,
    "matrix": oracle.matrix_map,
    "svs": oracle.svs_map,
    "sms": oracle.sms_map,
    "platt": oracle.platt_map,
    "beta": oracle.fitted_beta_map,
    "quadratic": oracle.quadratic_map,
    "isotonic": oracle.isotonic_map,
    "histogram": oracle.histogram_map,
    "scaling_binning": oracle.scaling_binning_map,
}


def brute_force(name, options, new, prob, y, w):
    def mapping(*data):
        return ORACLES[name](*data, **options)

    if name in ONE_SCORE:
        return oracle.one_vs_rest(mapping, new, prob, y, w)
    return mapping(new, prob, y, w)


@pytest.mark.parametrize(
    ("variant", "problem", "is_weighted"),
    [
        (variant, problem, i % 2 == 0)
        for i, (variant, problem) in enumerate(CASES)
        if VARIANTS[variant][0] in ORACLES
    ]
    + [(variant, "three classes", False) for variant in ("vector", "platt", "histogram")]
    + [(variant, "one column", True) for variant in ("matrix", "beta", "scaling_binning")],
)
def test_outputs_equal_brute_force(variant, problem, is_weighted):
    name, options = VARIANTS[variant]
    data = PROBLEMS[problem](seed=3)
    model = make(variant).fit(data.X, data.y, data.w if is_weighted else None)
    weights = data.w if is_weighted else np.ones(len(data.y))
    new = np.concatenate([data.X, data.new])
    q = brute_force(name, options, new, data.X, data.y, weights)
    has_value = np.isfinite(q) if q.ndim == 1 else np.isfinite(q).all(axis=1)
    assert has_value.mean() > 0.8
    np.testing.assert_allclose(model.transform(new)[has_value], q[has_value], **NEAR)


@pytest.mark.parametrize(
    "penalties",
    [(0.0, 0.0), (0.3, 0.2)]
    + [pytest.param(x, marks=pytest.mark.slow) for x in ((0.5, 0.0), (0.0, 0.5), (100, 100))],
)
def test_matrix_scaling_of_logits_has_the_smallest_loss(penalties):
    data = classes(k=4)
    names = dict(zip(("off_diagonal", "intercept"), penalties, strict=True))
    model = METHODS["matrix"](from_logits=True, **names).fit(data.logits, data.y, data.w)
    assert model.weight_.shape == (4, 4)
    assert model.intercept_.shape == (4,)
    rows = (data.logits, data.y, data.w, *penalties)
    weight, intercept = oracle.matrix(*rows)
    smallest_loss = oracle.matrix_loss(weight, intercept, *rows)
    assert oracle.matrix_loss(model.weight_, model.intercept_, *rows) <= smallest_loss + 1e-12
    q = model.transform(data.new_logits)
    expected = softmax(data.new_logits @ weight.T + intercept, axis=1)
    np.testing.assert_allclose(q, expected, **NEAR)
    z = data.new_logits @ model.weight_.T + model.intercept_
    np.testing.assert_allclose(q, softmax(z, axis=1), atol=1e-12)
    if min(penalties) > 0:  # then the parameters themselves are determined
        np.testing.assert_allclose(model.weight_, weight, **NEAR)
        np.testing.assert_allclose(model.intercept_, intercept, **NEAR)


@pytest.mark.parametrize(
    "power",
    [(3.0, 0.0), (1.0, -2.0), (-1.0, -1.0)]
    + [pytest.param(x, marks=pytest.mark.slow) for x in ((0.0, 3.0), (-2.0, 1.0))],
)
def test_beta_of_negative_powers_is_cut_at_zero(power):
    """The labels ask for these a and b; where one is negative, the allowed optimum has it 0."""
    rng = np.random.default_rng(5)
    p = rng.uniform(0.02, 0.98, 1500)
    true = oracle.beta_map(p, *power, 0.2)
    y = (rng.random(1500) < true).astype(int)
    model = METHODS["beta"]().fit(p, y)
    got = np.array([model.a_, model.b_, model.c_])
    assert got[:2].min() >= 0
    np.testing.assert_allclose(got, oracle.beta(p, y, np.ones(1500)), **NEAR)
    np.testing.assert_allclose(model.transform(p), oracle.beta_map(p, *got), atol=1e-12)


@pytest.mark.parametrize("bend", [0.3, -0.3, 0.0])
def test_a_parabola_that_would_fall_is_flat_at_one_end(bend):
    """The labels ask for a parabola that falls, or for scores that say the opposite."""
    rng = np.random.default_rng(6)
    z = rng.uniform(-3, 3, 800)
    line = (0.5 if bend else -0.5) * z + bend * z**2
    y = (rng.random(800) < 1 / (1 + np.exp(-line))).astype(int)
    model = METHODS["quadratic"](from_logits=True).fit(z, y)
    got = np.array([model.a_, model.b_, model.c_])
    np.testing.assert_allclose(got, oracle.quadratic(z, y, np.ones(800)), rtol=0, atol=1e-5)
    ends = model.b_ + 2 * model.c_ * np.array([model.low_, model.high_])
    assert ends.min() == pytest.approx(0, abs=1e-12)
    assert np.diff(model.transform(np.linspace(-20, 20, 999))).min() >= -1e-15


@pytest.mark.parametrize("edges", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 2, 10, 15, 400])
def test_histogram_of_scores_on_edges(n_bins, edges):
    """Scores in hundredths lie on the edges of ten bins, which are closed on the right."""
    rng = np.random.default_rng(2)
    p = rng.integers(0, 101, 300) / 100
    y = (rng.random(300) < p**2).astype(int)
    w = rng.integers(0, 4, 300).astype(float)
    model = METHODS["histogram"](n_bins=n_bins, edges=edges).fit(p, y, w)
    used = p[w > 0]
    want = oracle.histogram_map(used, p, y, w, n_bins, edges)
    np.testing.assert_allclose(model.transform(used), want, rtol=0, atol=1e-12)


def test_equal_mass_bins_end_halfway_where_the_weight_is_even():
    """As the bins of an error do: a new score between two of the fit belongs to the nearer."""
    p = np.array([0.1, 0.2, 0.4, 0.9])
    y = np.array([0, 0, 1, 1])
    model = METHODS["histogram"](n_bins=2, edges="quantile").fit(p, y)
    np.testing.assert_array_equal(model.transform([0.25, 0.3, 0.31, 0.35]), [0, 0, 1, 1])
    y = np.array([0, 1, 0, 1])
    scaled = METHODS["platt"]().fit(p, y)
    grid = np.linspace(0.2, 0.4, 201)
    grid = grid[np.abs(scaled.transform(grid) - scaled.transform(p[1:3]).mean()) > 1e-3]
    got = METHODS["scaling_binning"](n_bins=2).fit(p, y).transform(grid)
    low, high = scaled.transform(p).reshape(2, 2).mean(axis=1)
    halfway = scaled.transform(p[1:3]).mean()
    want = np.where(scaled.transform(grid) < halfway, low, high)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["temperature", "vector", "matrix"])
@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e4])
def test_the_unit_of_logits_does_not_matter(name, unit):
    data = classes(n=200)
    want = METHODS[name](from_logits=True).fit_transform(data.logits, data.y)
    got = METHODS[name](from_logits=True).fit_transform(data.logits * unit, data.y)
    np.testing.assert_allclose(got, want, **NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["temperature", "vector", "matrix"])
@pytest.mark.filterwarnings("ignore:X. no temperature makes predictions better")
def test_logits_of_1e4_of_few_rows_have_an_optimum_too(name):
    """The start is far away, with a loss of thousands; the end is the same as for small logits."""
    y = np.arange(40) % 3
    for seed in range(20):
        z = np.random.default_rng(seed).choice([-1.0, 1.0], (40, 3))
        losses = []
        for unit in (1, 1e4):
            q = METHODS[name](from_logits=True).fit_transform(z * unit, y)
            losses.append(-np.mean(np.log(np.maximum(q[np.arange(40), y], 1e-300))))
        assert losses[1] == pytest.approx(losses[0], abs=1e-6), seed


@pytest.mark.parametrize("row", [(0.4, 0.35, 0.25), (0.4, 0.25, 0.2, 0.1, 0.05)])
def test_rows_that_every_map_takes_to_0_are_uniform(row):
    """The label is always the class with 0.4, so at 1/K every map is 0."""
    k = len(row)
    rows = np.array([np.roll(row, shift) for shift in range(k)] * 3)
    even = np.full((1, k), 1 / k)
    q = METHODS["isotonic"]().fit(rows, rows.argmax(axis=1)).transform(np.vstack([rows, even]))
    np.testing.assert_allclose(q[:-1], rows == 0.4, rtol=0, atol=1e-12)
    np.testing.assert_allclose(q[-1:], even, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["platt", "beta"])
def test_log_odds_of_one_class_are_those_of_its_logit_against_the_sum_of_the_others(name):
    """A softmax rounds 1 - p away where a class is sure, in float32 from 1e-7 on."""
    rng = np.random.default_rng(7)
    z = (8 * rng.standard_normal((2000, 3))).astype(np.float32)
    y = (0.3 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    got = METHODS[name](from_logits=True).fit_transform(z, y)
    want = np.empty(z.shape)
    for k in range(3):
        others = np.delete(z, k, axis=1).astype(np.float64)
        odds = z[:, k] - logsumexp(others, axis=1)
        model = METHODS[name](from_logits=True).fit(odds, y == k)
        want[:, k] = model.transform(odds)
    np.testing.assert_allclose(got, want / want.sum(axis=1, keepdims=True), rtol=0, atol=1e-6)
