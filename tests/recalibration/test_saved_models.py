"""Maps in files: every bit comes back, and damaged files are refused in one line."""

import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from fastece import KDE, BayesCurve
from fastece.recalibration import load, save
from helpers.recalibration_cases import (
    CASES,
    METHOD_CASES,
    METHODS,
    binary,
    classes,
    data_of,
    fitted,
    outcome,
)

GOLDEN = Path(__file__).parents[1] / "fixtures" / "recalibration.json"

every_method = pytest.mark.parametrize("name", METHODS)


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def document(path):
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=no_constant)


def refusal(path, content):
    """The sentence that refuses a file of this content."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError) as error:
        load(path)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert path.name in sentence
    return sentence


@pytest.mark.parametrize(
    ("variant", "problem", "from_logits"),
    [(*case, i % 4 in (0, 3)) for i, case in enumerate(CASES)],
)
def test_every_bit_comes_back(variant, problem, from_logits, tmp_path):
    x, new = data_of(problem).inputs(from_logits)
    model = fitted(variant, problem, from_logits)
    path = tmp_path / "model.json"
    save(model, str(path) if from_logits else path)
    loaded = load(path)
    assert type(loaded) is type(model)
    for rows in (x, new):
        assert loaded.transform(rows).tobytes() == model.transform(rows).tobytes()
    assert loaded.get_params() == model.get_params()
    for key, value in vars(model).items():
        if key.endswith("_") and isinstance(value, (float, np.ndarray)):
            np.testing.assert_array_equal(getattr(loaded, key), value)
            assert np.shape(getattr(loaded, key)) == np.shape(value)
            assert type(getattr(loaded, key)) is type(value)


@pytest.mark.parametrize(("name", "problem"), METHOD_CASES)
def test_a_file_is_plain_json(name, problem, tmp_path):
    path = tmp_path / "model.json"
    save(fitted(name, problem), path)
    content = document(path)
    assert list(content) == ["format", "method", "options", "n_classes", "classes", "parameters"]
    assert content["method"] == name
    assert content["n_classes"] == (3 if problem == "three classes" else 2)
    assert set(content["options"]) == set(METHODS[name]().get_params())
    first = path.read_bytes()
    save(load(path), path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "estimator", [KDE(bandwidth=0.07, score_range=(0.1, 0.9)), BayesCurve(norm=np.inf)]
)
def test_the_estimator_of_a_curve_is_kept(estimator, tmp_path):
    data = binary(n=100)
    save(METHODS["curve"](estimator=estimator).fit(data.X, data.y), tmp_path / "curve.json")
    assert load(tmp_path / "curve.json").estimator == estimator


@pytest.mark.slow
@pytest.mark.parametrize("name", ["temperature", "vector", "matrix", "platt", "beta", "isotonic"])
def test_a_model_of_separable_data_is_plain_json_too(name, tmp_path):
    x = np.linspace(0.1, 0.9, 10)
    for labels in (x > 0.5, x < 0.5):
        model, _ = outcome(lambda labels=labels: METHODS[name]().fit(x, labels))
        if model is not None:
            save(model, tmp_path / "model.json")
            document(tmp_path / "model.json")
            got = load(tmp_path / "model.json").transform(x)
            np.testing.assert_array_equal(got, model.transform(x))


NO_MODELS = [
    "", "{", "[]", "3", "null", '"temperature"', "not json", "{}", '{"method": "temperature"}',
    b"\xff\xfe\x00", b"PK\x03\x04", b"a,b\n0,0.5\n", "[" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("content", NO_MODELS)
def test_other_content_is_refused(content, tmp_path):
    assert "is no map that fastece has saved" in refusal(tmp_path / "model.json", content)


def leaves(node, path=()):
    """Paths of all values in a document; the first entry of a list stands for all."""
    if path:
        yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in list(enumerate(node))[:1]:
            yield from leaves(value, (*path, index))


def parent(node, path):
    """The dictionary or list that holds the value at a path."""
    for key in path[:-1]:
        node = node[key]
    return node


@cache
def models(name):
    return [METHODS[name]().fit(data.X, data.y) for data in (binary(n=60), classes(n=60))]


def document_of(model):
    """The content of the file of a model."""
    with TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.json")
        return document(Path(folder) / "model.json")


@every_method
def test_a_truncated_file_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    for model in models(name):
        save(model, path)
        content = path.read_bytes().rstrip()
        for end in {1, len(content) // 3, len(content) // 2, len(content) - 2, len(content) - 1}:
            refusal(path, content[:end])


@every_method
def test_a_missing_key_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    for model in models(name):
        save(model, path)
        for place in leaves(document(path)):
            if isinstance(place[-1], str):
                content = document(path)
                del parent(content, place)[place[-1]]
                sentence = refusal(tmp_path / "damaged.json", content)
                if place != ("format",):  # without which it is no map at all
                    assert place[-1] in sentence, (place, sentence)


WRONG = [
    "text", None, {}, [], [1.0, "a"], True, float("nan"), float("inf"), [[1.0], [2.0, 3.0]],
    10**400, -(10**400),
]  # fmt: skip


def may_replace(old, value, place, model):
    """Whether a value of another kind is a good one at a place of a file."""
    if type(old) is type(value) and (old == value or isinstance(old, bool)):
        return True
    is_empty_bin = "value" in place and "Binning" in type(model).__name__
    is_end_of_no_interval = bool({"new_low", "new_high"} & {*place})
    return value is None and (is_empty_bin or is_end_of_no_interval)


@every_method
def test_a_value_of_the_wrong_kind_is_refused(name, tmp_path):
    """Each value in four ways, in turn, so that every place has all kinds in some method."""
    shift = list(METHODS).index(name)
    path = tmp_path / "damaged.json"
    for model in models(name):
        content = document_of(model)
        for i, place in enumerate(list(leaves(content))):
            holder = parent(content, place)
            key = place[-1]
            old = holder[key]
            for step in range(4):
                wrong = WRONG[(i + shift + 3 * step) % len(WRONG)]
                if not may_replace(old, wrong, place, model):
                    holder[key] = wrong
                    refusal(path, content)
            holder[key] = old


@every_method
def test_lists_of_the_wrong_length_are_refused(name, tmp_path):
    path = tmp_path / "model.json"
    for model in models(name):
        save(model, path)
        for place in leaves(document(path)):
            old = parent(document(path), place)[place[-1]]
            if isinstance(old, list) and old:
                for new in (old[:-1], [*old, old[-1]]):
                    content = document(path)
                    parent(content, place)[place[-1]] = new
                    refusal(tmp_path / "damaged.json", content)


@every_method
def test_an_unknown_method_or_another_format_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    save(models(name)[0], path)
    sentence = refusal(tmp_path / "new.json", {**document(path), "format": "something else"})
    assert sentence.endswith("fastece has saved: its format is 'something else'")
    sentence = refusal(
        tmp_path / "new.json", {**document(path), "format": "fastece.recalibration 7"}
    )
    assert sentence.endswith("is a map of version 7, and this fastece reads 1")
    sentence = refusal(tmp_path / "cold.json", {**document(path), "method": "cold"})
    assert "cold" in sentence


def test_maps_that_were_saved_long_ago_have_the_same_answers(tmp_path):
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert {case["model"]["method"] for case in cases} == {*METHODS}
    for case in cases:
        (tmp_path / "model.json").write_text(json.dumps(case["model"]), encoding="utf-8")
        got = load(tmp_path / "model.json").transform(case["x"])
        np.testing.assert_allclose(got, case["p"], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "key", "number"),
    [("temperature", "temperature", 1e-310), ("platt", "slope", 1e300), ("beta", "a", 1e250)],
)
def test_numbers_that_would_make_no_probabilities_are_refused(method, key, number, tmp_path):
    path = tmp_path / "model.json"
    save(METHODS[method]().fit([0.1, 0.4, 0.6, 0.8], [0, 1, 0, 1]), path)
    content = document(path)
    content["parameters"][key] = number
    assert f"{key}: must be from" in refusal(tmp_path / "damaged.json", content)


def test_scores_that_decrease_are_refused(tmp_path):
    path = tmp_path / "model.json"
    save(METHODS["isotonic"]().fit([0.1, 0.4, 0.6, 0.8], [0, 1, 0, 1]), path)
    content = document(path)
    content["parameters"]["score"].reverse()
    assert "score: must not decrease" in refusal(tmp_path / "damaged.json", content)


@pytest.mark.parametrize("key", ["method", "temperature", "from_logits"])
def test_keys_that_come_twice_are_refused(key, tmp_path):
    path = tmp_path / "model.json"
    save(models("temperature")[0], path)
    text = re.sub(f'("{key}": [^,}}]*)', r"\1, \1", path.read_text(encoding="utf-8"))
    assert f"2 of its values have the key {key!r}" in refusal(path, text)


def test_names_of_classes_are_kept(tmp_path):
    data = classes(n=100)
    path = tmp_path / "model.json"
    model = METHODS["vector"]().fit(data.X, np.array(["ant", "bee", "cow"])[data.y])
    save(model, path)
    assert load(path).classes_ == model.classes_ == ["ant", "bee", "cow"]
    for wrong in (
        ["ant", "bee"],
        ["ant", "bee", "bee"],
        ["ant", "bee", "cow", 1],
        [1, 1, 2],
        [None, 2, 3],
        "abc",
        0,
    ):
        content = json.loads(path.read_text(encoding="utf-8"))
        path.with_name("damaged.json").write_text(json.dumps({**content, "classes": wrong}))
        with pytest.raises(ValueError, match="classes: must be null or 3 strings or num"):
            load(path.with_name("damaged.json"))
