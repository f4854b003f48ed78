"""Laws that hold for every method of the table, with no more known about it than its row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from helpers.recalibration_cases import (
    CASES,
    METHOD_CASES,
    METHODS,
    PENALISED,
    PROBLEMS,
    VARIANTS,
    assert_probabilities,
    binary,
    classes,
    data_of,
    fitted,
    make,
    repeatable,
)

# Two ways to one optimum.
NEAR = {"rtol": 0, "atol": 1e-7}
every_case = pytest.mark.parametrize(("variant", "problem"), CASES)
every_method_case = pytest.mark.parametrize(("name", "problem"), METHOD_CASES)
every_variant = pytest.mark.parametrize("variant", VARIANTS)
seeds = st.integers(0, 2**32 - 1)


@every_case
def test_answers_are_probabilities(variant, problem):
    data = data_of(problem)
    for from_logits in (False, True):
        x, new = data.inputs(from_logits)
        model = fitted(variant, problem, from_logits)
        for rows in (x, new, new[:1]):
            assert_probabilities(model.transform(rows), rows)


@every_case
def test_rows_are_mapped_one_by_one(variant, problem):
    new = data_of(problem).new
    model = fitted(variant, problem)
    rows = np.arange(len(new))[::-3]
    selected = model.transform(new)[rows]
    np.testing.assert_allclose(model.transform(new[rows]), selected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "problem"), [case for case in METHOD_CASES if case[0] not in PENALISED]
)
def test_integer_weights_equal_repeated_rows(name, problem):
    data = PROBLEMS[problem](n=150)
    counts = np.random.default_rng(8).integers(0, 4, 150)
    weighted = repeatable(name).fit(data.X, data.y, counts).transform(data.new)
    repeated = np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts)
    np.testing.assert_allclose(
        repeatable(name).fit(*repeated).transform(data.new), weighted, **NEAR
    )


@every_method_case
def test_the_scale_of_weights_does_not_matter(name, problem):
    data = data_of(problem)
    expected = fitted(name, problem).transform(data.new)
    for factor in (1e-9, 1e9):
        scaled = METHODS[name]().fit(data.X, data.y, data.w * factor)
        np.testing.assert_allclose(scaled.transform(data.new), expected, **NEAR)


@pytest.mark.parametrize("name", METHODS)
def test_equal_weights_are_none(name):
    data = binary()
    plain = METHODS[name]().fit(data.X, data.y).transform(data.new)
    equal = METHODS[name]().fit(data.X, data.y, np.full(len(data.y), 3.5)).transform(data.new)
    np.testing.assert_allclose(equal, plain, **NEAR)


@every_case
def test_order_and_rows_of_weight_0_do_not_matter(variant, problem):
    data = data_of(problem)
    other = PROBLEMS[problem](n=80, seed=9)
    x = np.concatenate([data.X, other.X])
    y = np.concatenate([data.y, 1 - np.minimum(other.y, 1)])
    w = np.concatenate([data.w, np.zeros(80)])
    order = np.random.default_rng(3).permutation(len(y))
    model = make(variant).fit(x[order], y[order], w[order])
    expected = fitted(variant, problem).transform(data.new)
    np.testing.assert_allclose(model.transform(data.new), expected, **NEAR)


@pytest.mark.parametrize(
    ("variant", "from_logits"), [(v, i % 2 == 0) for i, v in enumerate(VARIANTS)]
)
def test_permuting_classes_permutes_the_answer(variant, from_logits):
    data = classes(k=4)
    x, new = data.inputs(from_logits)
    order = np.array([2, 0, 3, 1])
    expected = make(variant, from_logits=from_logits).fit(x, data.y, data.w).transform(new)
    model = make(variant, from_logits=from_logits)
    permuted = model.fit(x[:, order], np.argsort(order)[data.y], data.w).transform(new[:, order])
    np.testing.assert_allclose(permuted, expected[:, order], **NEAR)


@every_variant
def test_two_columns_equal_one(variant):
    expected = fitted(variant, "one column").transform(data_of("one column").new)
    both = fitted(variant, "two columns").transform(data_of("two columns").new)
    np.testing.assert_allclose(both[:, 1], expected, **NEAR)


@pytest.mark.parametrize(
    ("variant", "problem"),
    [case for case in CASES if VARIANTS[case[0]][0] not in ("vector", "matrix")],
)
def test_logits_equal_their_probabilities(variant, problem):
    data = data_of(problem)
    expected = fitted(variant, problem).transform(data.new)
    model = fitted(variant, problem, from_logits=True)
    np.testing.assert_allclose(model.transform(data.new_logits), expected, **NEAR)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*some labels have probability 0")
@settings(max_examples=10)
@given(seeds, st.integers(2, 6), st.floats(0.1, 30), st.sampled_from(["temperature", "ets"]))
def test_temperatures_keep_the_order_of_every_row(seed, k, scale, name):
    rng = np.random.default_rng(seed)
    z = scale * np.round(rng.standard_normal((60, k)), 1)  # some logits of a row are equal
    y = np.where(rng.random(60) < 0.7, z.argmax(axis=1), rng.integers(0, k, 60))
    y[:k] = np.arange(k)
    for x, from_logits in ((z, True), (softmax(z, axis=1), False)):
        q = METHODS[name](from_logits=from_logits).fit_transform(x, y)
        np.testing.assert_array_equal(q.argmax(axis=1), x.argmax(axis=1))
        ranked = np.take_along_axis(q, x.argsort(axis=1), axis=1)
        assert (np.diff(ranked, axis=1) >= 0).all()


@settings(max_examples=15)
@given(
    seeds, st.sampled_from(["platt", "isotonic", "scaling_binning", "curve", "beta", "quadratic"])
)
def test_maps_of_one_score_do_not_fall(seed, name):
    """Platt's slope is negative where higher scores are less often right; here they are not."""
    data = binary(n=120, seed=seed)
    grid = np.linspace(0, 1, 301)
    assert np.diff(METHODS[name]().fit(data.X, data.y).transform(grid)).min() >= -1e-15
