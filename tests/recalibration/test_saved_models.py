"""Models as JSON: every bit comes back, and what is damaged is refused in one line."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fastece import KDE, BayesCurve
from fastece.recalibration import load, save
from helpers.recalibration_cases import METHODS, PROBLEMS, VARIANTS, binary, classes, make, outcome

DATA = Path(__file__).parents[1] / "fixtures"

every_problem = pytest.mark.parametrize("problem", PROBLEMS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)
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


@pytest.mark.parametrize("from_logits", [False, True])
@every_problem
@every_variant
def test_every_bit_comes_back(variant, problem, from_logits, tmp_path):
    data = PROBLEMS[problem]()
    x, new = (data.logits, data.new_logits) if from_logits else (data.X, data.new)
    model = make(variant, from_logits=from_logits).fit(x, data.y, data.w)
    for path in (tmp_path / "model.json", str(tmp_path / "other.json")):
        save(model, path)
        other = load(path)
        assert type(other) is type(model)
        assert other.transform(new).tobytes() == model.transform(new).tobytes()
        assert other.transform(x).tobytes() == model.transform(x).tobytes()
        got, want = other.get_params(), model.get_params()
        if "estimator" in want:  # a name may come back as the object it stands for
            assert str(got.pop("estimator")) or want.pop("estimator")
            want.pop("estimator", None)
        assert got == want
        for key, value in vars(model).items():
            if key.endswith("_") and isinstance(value, (float, np.ndarray)):
                np.testing.assert_array_equal(getattr(other, key), value)
                assert np.shape(getattr(other, key)) == np.shape(value)
                assert type(getattr(other, key)) is type(value)


@every_problem
@every_method
def test_a_file_is_plain_json(name, problem, tmp_path):
    data = PROBLEMS[problem]()
    path = tmp_path / "model.json"
    save(METHODS[name]().fit(data.X, data.y), path)
    found = document(path)
    assert isinstance(found, dict)
    assert {*found} == {
        "format", "version", "method", "options", "n_classes", "classes", "parameters",
    }  # fmt: skip
    assert found["method"] == name
    assert found["n_classes"] == (3 if problem == "three classes" else 2)
    assert set(found["options"]) == set(METHODS[name]().get_params())
    assert type(found["version"]) is int
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
def test_what_is_not_a_model_is_refused(content, tmp_path):
    assert "is no map that fastece has saved" in refusal(tmp_path / "model.json", content)


def leaves(node, path=()):
    """Paths of everything in a document but itself; of a list its first entry stands for all."""
    if path:
        yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in list(enumerate(node))[:1]:
            yield from leaves(value, (*path, index))


def parent(found, path):
    for key in path[:-1]:
        found = found[key]
    return found


@cache
def models(name):
    return [METHODS[name]().fit(data.X, data.y) for data in (binary(n=60), classes(n=60))]


@every_method
def test_a_truncated_file_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    for model in models(name):
        save(model, path)
        whole = path.read_bytes().rstrip()
        for end in {1, len(whole) // 3, len(whole) // 2, len(whole) - 2, len(whole) - 1}:
            refusal(path, whole[:end])


@every_method
def test_a_missing_key_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    for model in models(name):
        save(model, path)
        for place in leaves(document(path)):
            if isinstance(place[-1], str):
                found = document(path)
                del parent(found, place)[place[-1]]
                sentence = refusal(tmp_path / "damaged.json", found)
                if place != ("format",):  # without which it is no map at all
                    assert place[-1] in sentence, (place, sentence)


WRONG = [
    "text", None, {}, [], [1.0, "a"], True, float("nan"), float("inf"), [[1.0], [2.0, 3.0]],
    10**400, -(10**400),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda x: f"{x!r:.9}")
@every_method
def test_a_value_of_the_wrong_kind_is_refused(name, wrong, tmp_path):
    """Every value of the file, one after the other."""
    path = tmp_path / "model.json"
    for model in models(name):
        save(model, path)
        found = document(path)
        for place in list(leaves(found)):
            holder, key = parent(found, place), place[-1]
            old = holder[key]
            if type(old) is type(wrong) and (old == wrong or isinstance(old, bool)):
                continue
            if wrong is None and "value" in place and "bin" in type(model).__name__.lower():
                continue  # a bin without rows
            if wrong is None and {"new_low", "new_high"} & {*place}:
                continue  # of a rate that is given
            holder[key] = wrong
            refusal(tmp_path / "damaged.json", found)
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
                    found = document(path)
                    parent(found, place)[place[-1]] = new
                    refusal(tmp_path / "damaged.json", found)


@every_method
def test_an_unknown_method_or_a_newer_format_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    save(models(name)[0], path)
    later = document(path)["version"] + 1
    sentence = refusal(tmp_path / "new.json", {**document(path), "version": later})
    assert str(later) in sentence
    assert re.search("newer|later|version", sentence)
    refusal(tmp_path / "old.json", {**document(path), "version": 0})
    refusal(tmp_path / "other.json", {**document(path), "format": "something else"})
    sentence = refusal(tmp_path / "cold.json", {**document(path), "method": "cold"})
    assert "cold" in sentence


@pytest.mark.parametrize("path", sorted(DATA.glob("recalibration_*.json")), ids=lambda p: p.stem)
def test_maps_of_earlier_releases_are_read(path, tmp_path):
    cases = json.loads(path.read_text(encoding="utf-8"))
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
    found = document(path)
    found["parameters"][key] = number
    assert f"{key}: must be from" in refusal(tmp_path / "damaged.json", found)


def test_scores_that_decrease_are_refused(tmp_path):
    path = tmp_path / "model.json"
    save(METHODS["isotonic"]().fit([0.1, 0.4, 0.6, 0.8], [0, 1, 0, 1]), path)
    found = document(path)
    found["parameters"]["score"].reverse()
    assert "score: must not decrease" in refusal(tmp_path / "damaged.json", found)


@pytest.mark.parametrize("key", ["method", "temperature", "from_logits"])
def test_keys_that_come_twice_are_refused(key, tmp_path):
    path = tmp_path / "model.json"
    save(models("temperature")[0], path)
    text = re.sub(f'("{key}": [^,}}]*)', r"\1, \1", path.read_text(encoding="utf-8"))
    assert f"2 of its values have the key {key!r}" in refusal(path, text)


def test_names_of_classes_are_kept(tmp_path):
    data, path = classes(n=100), tmp_path / "model.json"
    model = METHODS["vector"]().fit(data.X, np.array(["ant", "bee", "cow"])[data.y])
    save(model, path)
    assert load(path).classes_ == model.classes_ == ["ant", "bee", "cow"]
    for wrong in (["ant", "bee"], ["ant", "bee", "bee"], [1, 2, 3], "abc", 0):
        content = json.loads(path.read_text(encoding="utf-8"))
        path.with_name("damaged.json").write_text(json.dumps({**content, "classes": wrong}))
        with pytest.raises(ValueError, match="classes: must be null or 3 strings"):
            load(path.with_name("damaged.json"))
