"""scikit-learn's conventions without scikit-learn, and containers of every kind."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

from helpers.layouts import frozen, strided
from helpers.recalibration_cases import (
    METHOD_CASES,
    METHODS,
    PROBLEMS,
    VARIANTS,
    binary,
    classes,
    data_of,
    fitted,
    make,
)

every_method = pytest.mark.parametrize("name", METHODS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def fitted_attributes(model):
    """Names of the attributes that a fit has set."""
    return {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}


@every_method
def test_parameters_are_the_options(name):
    model = METHODS[name]()
    options = {field.name for field in fields(model)}
    assert set(model.get_params()) == set(model.get_params(deep=False)) == options
    assert model.get_params()["from_logits"] is False
    assert model.set_params(from_logits=True) is model
    assert model.from_logits is True
    assert not fitted_attributes(model)
    with pytest.raises(TypeError):
        METHODS[name](True)  # options are keywords


@every_variant
def test_a_fit_does_not_change_the_options(variant):
    data = binary(n=100)
    model = make(variant)
    before = model.get_params()
    model.fit(data.X, data.y, data.w).transform(data.new)
    assert model.get_params() == before
    assert fitted_attributes(model)


@every_variant
def test_a_second_fit_forgets_the_first(variant):
    first = classes(n=100)
    data = data_of("one column")
    model = make(variant).fit(first.X, first.y).fit(data.X, data.y, data.w)
    expected = fitted(variant, "one column")
    np.testing.assert_array_equal(model.transform(data.new), expected.transform(data.new))
    assert fitted_attributes(model) == fitted_attributes(expected)


def test_sklearn_clones_the_options_alone():
    base = pytest.importorskip("sklearn.base")
    for variant in VARIANTS:
        model = fitted(variant, "one column")
        fresh = base.clone(model)
        assert type(fresh) is type(model)
        assert fresh.get_params() == model.get_params()
        assert not fitted_attributes(fresh)


@every_method
def test_last_step_of_a_pipeline(name):
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    from scipy.special import softmax

    data = classes()
    first = preprocessing.FunctionTransformer(softmax, kw_args={"axis": 1})
    line = pipeline.Pipeline([("softmax", first), ("calibration", METHODS[name]())])
    line.fit(data.logits, data.y, calibration__sample_weight=data.w)
    expected = fitted(name, "three classes").transform(data.new)
    np.testing.assert_allclose(line.transform(data.new_logits), expected, rtol=0, atol=1e-9)
    both = line.fit_transform(data.logits, data.y)
    np.testing.assert_allclose(both, METHODS[name]().fit_transform(data.X, data.y), atol=1e-9)


def test_copies_and_pickles_answer_alike():
    new = data_of("three classes").new
    for variant in VARIANTS:
        model = fitted(variant, "three classes")
        expected = model.transform(new)
        for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(other.transform(new), expected)


@pytest.mark.parametrize(("name", "problem"), METHOD_CASES)
def test_layouts_give_the_same_bits(name, problem):
    data = PROBLEMS[problem](n=80)
    expected = METHODS[name]().fit(data.X, data.y, data.w).transform(data.new)
    for put in (frozen, strided, np.asfortranarray, np.ndarray.tolist):
        model = METHODS[name]().fit(put(data.X), put(data.y), put(data.w))
        np.testing.assert_array_equal(model.transform(put(data.new)), expected)


# Every method with every type, with logits and probabilities, two and more classes in turn.
@pytest.mark.parametrize(
    ("name", "dtype", "from_logits", "problem"),
    [
        (name, dtype, (i + j) % 2 == 0, ["one column", "three classes"][(i + j // 2) % 2])
        for i, name in enumerate(METHODS)
        for j, dtype in enumerate(["f2", "f4", "g"])
    ],
)
def test_floats_of_other_sizes_are_the_numbers_they_are(name, dtype, from_logits, problem):
    """float16 has probabilities that sum to 1 within 1e-3; the answer is as good as any other."""
    data = PROBLEMS[problem](n=150)
    x, new = (array.astype(dtype) for array in data.inputs(from_logits))
    q = METHODS[name](from_logits=from_logits).fit(x, data.y).transform(new)
    same = METHODS[name](from_logits=from_logits).fit(x.astype(float), data.y)
    expected = same.transform(new.astype(float))
    assert q.dtype.kind == "f"
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-6)
    if q.ndim == 2:
        rounding = 1e-6 if q.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=rounding)


@pytest.mark.filterwarnings("ignore:.*some labels have probability 0")
@every_method
def test_integer_and_bool_columns(name):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 60)
    hard = np.where(rng.random(60) < 0.8, y, 1 - y)
    y[:4] = [0, 0, 1, 1]
    hard[:4] = [0, 1, 0, 1]
    expected = METHODS[name]().fit(hard.astype(float), y).transform(hard.astype(float))
    columns = (hard, hard.astype(bool), hard.astype("u1"), hard)
    labels = (y.astype(bool), y.astype(float), y[:, None], y)
    for x, of_rows in zip(columns, labels, strict=True):
        np.testing.assert_array_equal(METHODS[name]().fit(x, of_rows).transform(x), expected)
