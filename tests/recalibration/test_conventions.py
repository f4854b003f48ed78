"""scikit-learn's conventions without scikit-learn, and containers of every kind."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

from helpers.layouts import frozen, strided
from helpers.recalibration_cases import METHODS, PROBLEMS, VARIANTS, binary, classes, make

every_method = pytest.mark.parametrize("name", METHODS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def fitted(model):
    """Names of what a fit has left."""
    return {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}


@every_method
def test_parameters_are_the_options(name):
    model = METHODS[name]()
    options = {field.name for field in fields(model)}
    assert set(model.get_params()) == set(model.get_params(deep=False)) == options
    assert model.get_params()["from_logits"] is False
    assert model.set_params(from_logits=True) is model
    assert model.from_logits is True
    assert not fitted(model)
    with pytest.raises(TypeError):
        METHODS[name](True)  # options are keywords


@every_variant
def test_a_fit_does_not_change_the_options(variant):
    model, data = make(variant), binary()
    before = model.get_params()
    model.fit(data.X, data.y, data.w).transform(data.new)
    assert model.get_params() == before
    assert fitted(model)


@every_variant
def test_a_second_fit_forgets_the_first(variant):
    one, many = binary(), classes()
    model = make(variant).fit(many.X, many.y).fit(one.X, one.y, one.w)
    want = make(variant).fit(one.X, one.y, one.w)
    np.testing.assert_array_equal(model.transform(one.new), want.transform(one.new))
    assert fitted(model) == fitted(want)


@every_variant
def test_sklearn_clones_the_options_alone(variant):
    base = pytest.importorskip("sklearn.base")
    data = binary()
    model = make(variant).fit(data.X, data.y)
    fresh = base.clone(model)
    assert type(fresh) is type(model)
    assert fresh.get_params() == model.get_params()
    assert not fitted(fresh)


@every_method
def test_last_step_of_a_pipeline(name):
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    from scipy.special import softmax

    data = classes()
    first = preprocessing.FunctionTransformer(softmax, kw_args={"axis": 1})
    line = pipeline.Pipeline([("softmax", first), ("calibration", METHODS[name]())])
    line.fit(data.logits, data.y, calibration__sample_weight=data.w)
    want = METHODS[name]().fit(data.X, data.y, data.w).transform(data.new)
    np.testing.assert_allclose(line.transform(data.new_logits), want, rtol=0, atol=1e-9)
    both = line.fit_transform(data.logits, data.y)
    np.testing.assert_allclose(both, METHODS[name]().fit_transform(data.X, data.y), atol=1e-9)


@every_variant
def test_copies_and_pickles_answer_alike(variant):
    data = classes()
    model = make(variant).fit(data.X, data.y)
    want = model.transform(data.new)
    for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.transform(data.new), want)


@pytest.mark.parametrize("put", [frozen, strided, np.asfortranarray, np.ndarray.tolist])
@pytest.mark.parametrize("problem", PROBLEMS)
@every_method
def test_layouts_give_the_same_bits(name, problem, put):
    data = PROBLEMS[problem](n=80)
    want = METHODS[name]().fit(data.X, data.y, data.w).transform(data.new)
    got = METHODS[name]().fit(put(data.X), put(data.y), put(data.w)).transform(put(data.new))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["f2", "f4", "g"])
@pytest.mark.parametrize("from_logits", [False, True])
@every_method
def test_floats_of_other_sizes_are_the_numbers_they_are(name, from_logits, dtype):
    """float16 has probabilities that sum to 1 within 1e-3; the answer is as good as any other."""
    for data in (binary(), classes()):
        x = (data.logits if from_logits else data.X).astype(dtype)
        new = (data.new_logits if from_logits else data.new).astype(dtype)
        got = METHODS[name](from_logits=from_logits).fit(x, data.y).transform(new)
        same = METHODS[name](from_logits=from_logits).fit(x.astype(float), data.y)
        want = same.transform(new.astype(float))
        assert got.dtype.kind == "f"
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
        if got.ndim == 2:
            rounding = 1e-6 if got.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(got.sum(axis=1), 1, rtol=0, atol=rounding)


@pytest.mark.filterwarnings("ignore:.*some labels have probability 0")
@every_method
def test_integer_and_bool_columns(name):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 60)
    hard = np.where(rng.random(60) < 0.8, y, 1 - y)
    y[:4], hard[:4] = [0, 0, 1, 1], [0, 1, 0, 1]
    want = METHODS[name]().fit(hard.astype(float), y).transform(hard.astype(float))
    for x in (hard, hard.astype(bool), hard.astype("u1")):
        for labels in (y, y.astype(bool), y.astype(float), y[:, None]):
            np.testing.assert_array_equal(METHODS[name]().fit(x, labels).transform(x), want)
