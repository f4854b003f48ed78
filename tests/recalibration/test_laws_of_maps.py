"""What must hold for every method of the table, with no more said about it than its row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from helpers.recalibration_cases import (
    METHODS,
    ONE_SCORE,
    PROBLEMS,
    VARIANTS,
    assert_probabilities,
    binary,
    classes,
    make,
    repeatable,
    two_columns,
)

NEAR = {"rtol": 0, "atol": 1e-7}  # two roads to one optimum
every_problem = pytest.mark.parametrize("problem", PROBLEMS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_method = pytest.mark.parametrize("name", METHODS)
seeds = st.integers(0, 2**32 - 1)


@every_problem
@every_variant
def test_answers_are_probabilities(variant, problem):
    data = PROBLEMS[problem]()
    for from_logits in (False, True):
        x, new = (data.logits, data.new_logits) if from_logits else (data.X, data.new)
        model = make(variant, from_logits=from_logits)
        assert model.fit(x, data.y, data.w) is model
        for rows in (x, new, new[:1]):
            assert_probabilities(model.transform(rows), rows)


@every_problem
@every_variant
def test_what_is_transformed_together_does_not_matter(variant, problem):
    data = PROBLEMS[problem]()
    model = make(variant).fit(data.X, data.y)
    whole = model.transform(data.new)
    rows = np.arange(len(whole))[::-3]
    np.testing.assert_allclose(model.transform(data.new[rows]), whole[rows], rtol=0, atol=1e-15)


@every_problem
@every_method
def test_integer_weights_are_repetitions(name, problem):
    data = PROBLEMS[problem](n=150)
    counts = np.random.default_rng(8).integers(0, 4, 150)
    weighted = repeatable(name).fit(data.X, data.y, counts).transform(data.new)
    repeated = np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts)
    np.testing.assert_allclose(
        repeatable(name).fit(*repeated).transform(data.new), weighted, **NEAR
    )


@every_problem
@every_method
def test_the_scale_of_weights_does_not_matter(name, problem):
    data = PROBLEMS[problem]()
    want = METHODS[name]().fit(data.X, data.y, data.w).transform(data.new)
    for factor in (1e-9, 0.3, 64.0, 1e9):
        got = METHODS[name]().fit(data.X, data.y, data.w * factor).transform(data.new)
        np.testing.assert_allclose(got, want, **NEAR)
    plain = METHODS[name]().fit(data.X, data.y).transform(data.new)
    equal = METHODS[name]().fit(data.X, data.y, np.full(len(data.y), 3.5)).transform(data.new)
    np.testing.assert_allclose(equal, plain, **NEAR)


@every_problem
@every_variant
def test_rows_of_weight_0_do_not_matter(variant, problem):
    data, other = PROBLEMS[problem](), PROBLEMS[problem](n=80, seed=9)
    x, y = np.concatenate([data.X, other.X]), np.concatenate([data.y, 1 - np.minimum(other.y, 1)])
    w = np.concatenate([data.w, np.zeros(80)])
    order = np.random.default_rng(3).permutation(len(y))
    got = make(variant).fit(x[order], y[order], w[order]).transform(data.new)
    want = make(variant).fit(data.X, data.y, data.w).transform(data.new)
    np.testing.assert_allclose(got, want, **NEAR)


@every_problem
@every_variant
def test_the_order_of_rows_does_not_matter(variant, problem):
    data = PROBLEMS[problem]()
    order = np.random.default_rng(2).permutation(len(data.y))
    got = make(variant).fit(data.X[order], data.y[order], data.w[order]).transform(data.new)
    want = make(variant).fit(data.X, data.y, data.w).transform(data.new)
    np.testing.assert_allclose(got, want, **NEAR)


@pytest.mark.parametrize("from_logits", [False, True])
@every_variant
def test_permuting_classes_permutes_the_answer(variant, from_logits):
    data = classes(k=4)
    x, new = (data.logits, data.new_logits) if from_logits else (data.X, data.new)
    order = np.array([2, 0, 3, 1])
    want = make(variant, from_logits=from_logits).fit(x, data.y, data.w).transform(new)
    model = make(variant, from_logits=from_logits)
    got = model.fit(x[:, order], np.argsort(order)[data.y], data.w).transform(new[:, order])
    np.testing.assert_allclose(got, want[:, order], **NEAR)


@every_variant
def test_two_columns_are_one(variant):
    one, two = binary(), two_columns()
    want = make(variant).fit(one.X, one.y, one.w).transform(one.new)
    got = make(variant).fit(two.X, two.y, two.w).transform(two.new)
    np.testing.assert_allclose(got[:, 1], want, **NEAR)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    "variant", [v for v, (name, _) in VARIANTS.items() if name in (*ONE_SCORE, "temperature")]
)
def test_logits_are_their_probabilities(variant, k):
    data = binary() if k == 1 else classes(k=k)
    want = make(variant).fit(data.X, data.y, data.w).transform(data.new)
    model = make(variant, from_logits=True).fit(data.logits, data.y, data.w)
    np.testing.assert_allclose(model.transform(data.new_logits), want, **NEAR)


@pytest.mark.filterwarnings("ignore:.*some labels have probability 0")
@settings(max_examples=20)
@given(seeds, st.integers(2, 6), st.floats(0.1, 30))
def test_temperature_keeps_the_order_of_every_row(seed, k, scale):
    rng = np.random.default_rng(seed)
    z = scale * np.round(rng.standard_normal((60, k)), 1)  # some logits of a row are equal
    y = np.where(rng.random(60) < 0.7, z.argmax(axis=1), rng.integers(0, k, 60))
    y[:k] = np.arange(k)
    q = METHODS["temperature"](from_logits=True).fit_transform(z, y)
    np.testing.assert_array_equal(q.argmax(axis=1), z.argmax(axis=1))
    ranked = np.take_along_axis(q, z.argsort(axis=1), axis=1)
    assert (np.diff(ranked, axis=1) >= 0).all()
    p = softmax(z, axis=1)
    q = METHODS["temperature"]().fit_transform(p, y)
    np.testing.assert_array_equal(q.argmax(axis=1), p.argmax(axis=1))
    ranked = np.take_along_axis(q, p.argsort(axis=1), axis=1)
    assert (np.diff(ranked, axis=1) >= 0).all()


@settings(max_examples=15)
@given(seeds, st.sampled_from(["platt", "isotonic", "scaling_binning", "curve", "beta"]))
def test_maps_of_one_score_do_not_fall(seed, name):
    """Platt's slope may be negative where scores say the opposite; here they do not."""
    data = binary(n=120, seed=seed)
    grid = np.linspace(0, 1, 301)
    assert np.diff(METHODS[name]().fit(data.X, data.y).transform(grid)).min() >= -1e-15
