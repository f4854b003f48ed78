"""The estimator "ece_bayes": its value, what does not change it, and awkward rows."""

import math

import numpy as np
import pytest

import fastece
from fastece import BayesCurve, ece, mce, reliability_curve
from fastece.data.reading import read_problems
from fastece.estimators.bayes import REACH
from fastece.estimators.bayes_curves import (
    DRAWS,
    FAR_ODDS,
    LEAST_ODDS,
    MOST_CELLS,
    NEAR_ODDS,
    ROUGHNESS,
    SCALES,
    VALUE_MIDDLE,
    VALUE_POWER,
    cell_count,
    cells_of_problems,
    normals,
)
from oracles import reference_bayes as reference


def rows(n=300, seed=0, digits=9):
    rng = np.random.default_rng(seed)
    s = rng.beta(3, 1, n).round(digits)
    return (rng.random(n) < s**1.5).astype(int), s


def reference_value(y, s, w, norm=1.0):
    """The value from the definition: with sixteen tenths of a second for each hyperparameter."""
    count = reference.effective_count(w)
    n_cells = cell_count(count)
    found = reference.cells(list(zip(s, y, w, strict=True)), n_cells, count)
    cuts = [math.log(LEAST_ODDS + odds * count) for odds in (NEAR_ODDS, FAR_ODDS)]
    x, t = reference.logits(found, *reference.logit_range(found, *cuts))
    chosen = [
        (2.0**VALUE_POWER / (tau / VALUE_MIDDLE + VALUE_MIDDLE / tau) ** VALUE_POWER, tau, *family)
        for tau in SCALES for family in ROUGHNESS
    ]  # fmt: skip
    return reference.posterior_mean(found, x, t, chosen, normals(n_cells, 0).T.tolist(), norm)


@pytest.mark.parametrize("norm", [1.0, math.inf])
def test_value_is_that_of_the_reference(norm):
    y, s = rows(25, digits=1)
    w = np.random.default_rng(1).integers(1, 4, 25)
    expected = reference_value(y.tolist(), s.tolist(), w.tolist(), norm)
    assert ece(y, s, estimator=BayesCurve(norm), sample_weight=w) == pytest.approx(expected)


def test_number_of_cells_grows_with_the_rows():
    assert [cell_count(n) for n in (1, 30, 100, 500, 2000, 1e9)] == [48, 48, 64, 96, 128, 256]


def test_swapped_classes_have_about_the_same_error():
    """Of P(1) and P(0): the model does not care, the draws and the cells' edges do a little."""
    y, s = rows(400)
    value = ece(y, s, estimator="ece_bayes")
    assert ece(1 - y, 1 - s, estimator="ece_bayes") == pytest.approx(value, rel=0.1)


def test_integer_weights_are_repetition_up_to_the_effective_number_of_rows():
    y, s = rows(200, digits=2)
    w = np.random.default_rng(0).integers(1, 3, 200)
    estimator = BayesCurve()
    (weighted,) = cells_of_problems(read_problems(y, s, sample_weight=w), map)
    (repeated,) = cells_of_problems(read_problems(np.repeat(y, w), np.repeat(s, w)), map)
    assert weighted.n == pytest.approx(w.sum() ** 2 / (w * w).sum())
    assert repeated.n == w.sum()
    both = [x.cells.weight / x.n for x in (weighted, repeated)]
    if both[0].size == both[1].size:
        assert both[0] == pytest.approx(both[1])
    assert estimator.value(weighted) == pytest.approx(estimator.value(repeated), rel=0.25)


AWKWARD = {
    "one row": ([1], [0.3]),
    "one row of 0": ([1], [0.0]),
    "one row of 1": ([1], [1.0]),
    "all scores equal": ([0, 1, 1, 1] * 20, [0.5] * 80),
    "hits alone": ([1] * 50, np.linspace(0, 1, 50)),
    "misses alone": ([0] * 50, np.linspace(0, 1, 50)),
    "0 and 1, right": ([0, 1] * 40, [0.0, 1.0] * 40),
    "0 and 1, wrong": ([1, 0] * 40, [0.0, 1.0] * 40),
    "tiny": ([0, 0, 1], [5e-324, 1e-200, 1 - 1e-16]),
    "two": ([0, 1], [0.2, 0.9]),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_rows_have_a_value_and_an_interval(name):
    y, s = np.array(AWKWARD[name][0]), np.array(AWKWARD[name][1], np.float64)
    for norm in (1.0, 2.0, math.inf):
        estimator = BayesCurve(norm)
        value = ece(y, s, estimator=estimator)
        posterior = estimator.posterior(read_problems(y, s).samples())
        low, high = posterior.interval(0.95)
        assert 0 <= low <= value <= high <= 1
        assert posterior.value == pytest.approx(value, rel=1e-6)
        assert np.isfinite(posterior.influence).all()


def test_what_rows_say_beyond_doubt_is_found():
    assert ece([0, 1] * 400, [0.0, 1.0] * 400, estimator="ece_bayes") < 0.01
    assert ece([1, 0] * 400, [0.0, 1.0] * 400, estimator="ece_bayes") > 0.98
    assert ece([1, 0, 0, 0] * 200, [0.75] * 800, estimator="ece_bayes") == pytest.approx(
        0.5, abs=0.02
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_million_rows_are_not_sorted(weighted):
    y, s = rows(100_000, digits=3)
    w = np.random.default_rng(0).random(100_000) if weighted else None
    problems = read_problems(y, s, sample_weight=w)
    estimator = BayesCurve()
    sample = problems.sample(0).sorted()
    expected = estimator.evaluate(estimator.prepare(sample, sample.n), np.ones(sample.n))
    assert estimator.direct(problems)[0] == pytest.approx(expected, rel=1e-3)
    (many,) = cells_of_problems(problems, map)
    assert many.cells.weight.size == MOST_CELLS
    assert many.cells.weight.sum() == pytest.approx(many.n)


def test_norms_increase():
    y, s = rows()
    values = [ece(y, s, estimator="ece_bayes", norm=p) for p in (1, 1.5, 2, 8)]
    values.append(mce(y, s, estimator="ece_bayes"))
    assert (np.diff(values) > 0).all()
    with pytest.raises(ValueError, match="norm"):
        BayesCurve(0.5)


def test_curve_follows_the_rows_and_is_silent_elsewhere():
    rng = np.random.default_rng(0)
    s = np.where(rng.random(20_000) < 0.5, rng.uniform(0.2, 0.4, 20_000), 1.0)
    y = rng.random(20_000) < np.where(s < 1, s**2, 0.95)
    curve = reliability_curve(y, s, estimator="ece_bayes")
    assert curve(0.3) == pytest.approx(0.09, abs=0.02)
    assert curve(1.0) == pytest.approx(0.95, abs=0.01)
    low, high = curve.interval(np.array([0.25, 0.35, 1.0]))
    assert (low < [0.0625, 0.1225, 0.95]).all()
    assert (high > [0.0625, 0.1225, 0.95]).all()
    gaps = np.array([0.0, 0.1, 0.45, 0.7, 0.95])
    assert np.isnan(curve(gaps)).all()
    assert np.isnan(curve.interval(gaps)).all()
    nearest = np.abs(curve.score[:, None] - s[::50]).min(1)
    assert np.isfinite(curve.probability[nearest <= REACH]).all()
    assert (curve.supported == np.isfinite(curve.probability)).all()
    assert curve.value == pytest.approx(ece(y, s, estimator="ece_bayes"))
    assert "no scores" in str(curve)
    assert curve.bandwidth is None


def test_band_widens_with_the_level():
    y, s = rows()
    narrow, wide = (
        reliability_curve(y, s, estimator="ece_bayes", confidence_level=level)
        for level in (0.5, 0.99)
    )
    seen = narrow.supported
    assert (wide.low[seen] <= narrow.low[seen]).all()
    assert (wide.high[seen] >= narrow.high[seen]).all()
    assert np.array_equal(wide.probability, narrow.probability, equal_nan=True)
    assert narrow.estimator == str(fastece.BayesCurve())
    assert len(normals(48, 0)[0]) == DRAWS


def test_large_norms_come_close_to_the_largest_gap():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = rng.random(200) < p**2
    found = [ece(y, p, estimator=BayesCurve(norm=norm)) for norm in (50, 200, 1000, np.inf)]
    assert np.all(np.diff(found) > 0)
    assert found[-2] == pytest.approx(found[-1], rel=0.02)
