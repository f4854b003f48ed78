"""Scores of exactly 0 or 1, such as shares of trees: the least probability before logarithms."""

import warnings

import numpy as np
import pytest

import fastece
from fastece.recalibration import TemperatureScaling, load, save
from helpers.recalibration_cases import METHODS

LOGIT_MAPS = ["temperature", "vector", "matrix", "platt", "beta", "scaling_binning"]
TINY = 2.0**-52
IMPOSSIBLE = "some labels have probability 0"


def forest(n, seed, trees=100):
    """Shares of trees, sharper than the truth: a third are exactly 0 or 1, a few of them wrong."""
    rng = np.random.default_rng(seed)
    true = rng.beta(0.35, 0.35, n)
    y = (rng.random(n) < 0.01 + 0.98 * true).astype(int)
    sharp = true**1.4 / (true**1.4 + (1 - true) ** 1.4)
    return y, rng.binomial(trees, sharp) / trees


@pytest.mark.filterwarnings(f"ignore:.*{IMPOSSIBLE}")
@pytest.mark.parametrize("name", ["temperature", "platt", "beta"])
def test_the_clip_fixes_maps_of_a_forest(name):
    """Errors of new rows over three samples: a clip that is far too small makes them worse.

    Before, 0.044; with the smallest clip, 0.075 to 0.081; with the default, 0.019 to 0.020.
    """
    errors = []
    for seed in range(3):
        y, x = forest(2000, seed)
        new_y, new_x = forest(40_000, 100 + seed)
        with_smallest_clip = METHODS[name](clip=TINY).fit(x, y).transform(new_x)
        with_default = METHODS[name]().fit(x, y).transform(new_x)
        errors.append([fastece.ece(new_y, p) for p in (new_x, with_smallest_clip, with_default)])
    before, smallest_clip, default = np.mean(errors, axis=0)
    assert before == pytest.approx(0.044, abs=0.002)
    assert smallest_clip == pytest.approx(0.079, abs=0.006)
    assert default == pytest.approx(0.0195, abs=0.002)


@pytest.mark.parametrize("name", LOGIT_MAPS)
def test_the_clip_depends_on_the_rows(name):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.05, 0.95, 99)
    y = (rng.random(99) < x).astype(int)
    fit = METHODS[name]().fit
    assert fit(x, y).clip_ == TINY  # no score is exactly 0 or 1
    x[:2] = [0, 1]
    y[:2] = [0, 1]
    assert fit(x, y).clip_ == 1 / 200
    assert fit(np.column_stack([1 - x, x]), y).clip_ == 1 / 200
    assert fit(x, y, np.r_[1, 1, np.zeros(60), np.ones(37)]).clip_ == 1 / 80  # rows to fit to
    assert METHODS[name](clip=0.01).fit(x, y).clip_ == 0.01
    x[2] = 0.001
    y[2] = 0
    assert fit(x, y).clip_ == 0.001  # so that no other score is clipped
    x[3] = 1 - 1e-300  # as good as 1
    y[3] = 1
    assert fit(x, y).clip_ == 0.001


@pytest.mark.parametrize("name", LOGIT_MAPS)
def test_a_label_of_probability_0_is_a_warning(name):
    y, x = forest(300, 0)
    rows = np.column_stack([1 - x, x])
    probability_of_label = rows[np.arange(300), y]
    is_possible = probability_of_label > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        METHODS[name]().fit(x[is_possible], y[is_possible])
        METHODS[name](clip=1e-3).fit(np.r_[x, 0.0], np.r_[y, 1])  # the caller has chosen
    with pytest.warns(UserWarning, match=f"X: {IMPOSSIBLE}"):
        METHODS[name]().fit(np.r_[x, 0.0], np.r_[y, 1])


def test_logits_of_minus_infinity_have_the_same_clip():
    y, x = forest(300, 0)
    rows = np.column_stack([1 - x, x])
    is_possible = rows[np.arange(300), y] > 0
    rows = rows[is_possible]
    y = y[is_possible]
    with np.errstate(divide="ignore"):
        logits = np.log(rows)
    model = TemperatureScaling().fit(rows, y)
    other = TemperatureScaling(from_logits=True).fit(logits, y)
    assert model.clip_ <= 1 / (2 * len(y) + 2)
    assert other.temperature_ == pytest.approx(model.temperature_, rel=0.02)


@pytest.mark.filterwarnings(f"ignore:.*{IMPOSSIBLE}")
@pytest.mark.parametrize("name", LOGIT_MAPS)
def test_the_clip_is_saved(name, tmp_path):
    y, x = forest(300, 0)
    model = METHODS[name]().fit(x, y)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert (loaded.clip, loaded.clip_) == (None, model.clip_)
    np.testing.assert_array_equal(loaded.transform(x), model.transform(x))


@pytest.mark.parametrize(
    ("clip", "message"),
    [(0.6, "must be a number from"), (0, "must be"), ("a", "must be a"), (-1, "m")],
)
def test_a_bad_clip_is_refused(clip, message):
    with pytest.raises((ValueError, TypeError), match=f"clip: {message}"):
        METHODS["platt"](clip=clip)
